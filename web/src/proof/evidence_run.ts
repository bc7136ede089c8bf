// evidence_run.ts - the files of a run against the entry that sealed it, and the commit that the
// run made (run.md §17, docs/formats/evidence.md).

import {readJson} from '../base/json';
import {ascii, concat, toHex} from './bytes';
import type {Checker} from './evidence';
import {sha1} from './sha1';
import {sha256} from './sha256';

type Json = Record<string, unknown>;

const words = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

/** A name twice in one object could be read in two ways, so such a text says nothing. */
function hasNameTwice(json: ReturnType<typeof readJson>): boolean {
  if (json.kind === 'array') return json.items.some(hasNameTwice);
  if (json.kind !== 'object') return false;
  return (
    new Set(json.members.map(([name]) => name)).size !== json.members.length ||
    json.members.some(([, value]) => hasNameTwice(value))
  );
}

export function readObject(bytes: Uint8Array | null): Json | null {
  if (!bytes) return null;
  try {
    const text = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(bytes);
    const value: unknown = JSON.parse(text);
    if (hasNameTwice(readJson(text))) return null;
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Json)
      : null;
  } catch {
    return null;
  }
}

function hasHash(bytes: Uint8Array | undefined, hex: unknown): boolean {
  return bytes !== undefined && typeof hex === 'string' && toHex(sha256(bytes)) === hex;
}

/** Each event's link in the chain: over its number, the link before it, and its own hash. */
function chainOf(events: Uint8Array): string[] {
  const links: string[] = [];
  for (let at = 0; at < events.length; ) {
    const end = events.indexOf(10, at);
    if (end < 0) break;
    const own = toHex(sha256(events.subarray(at, end)));
    links.push(toHex(sha256(ascii(`${links.length + 1}:${links[links.length - 1] ?? ''}:${own}`))));
    at = end + 1;
  }
  return links;
}

function checkFiles(c: Checker, artifacts: Json[]): void {
  const listed = new Map(artifacts.map((one) => [one['path'], one['sha256']]));
  c.evidence.files.forEach((file, i) => {
    if (file.path === 'manifest.json') return;
    if (!listed.has(file.path))
      c.find('run', i, 'broken', 'FileUnlisted', `file ${i} is not in the manifest of the run`);
    else if (!hasHash(file.bytes, listed.get(file.path)))
      c.find(
        'run',
        i,
        'broken',
        'FileMismatch',
        `file ${i} does not match its hash in the manifest`,
      );
  });
}

function checkEvents(c: Checker, events: Uint8Array, seal: Json): void {
  const chain = chainOf(events);
  if (
    chain.length === 0 ||
    seal['events_count'] !== chain.length ||
    seal['chain_head'] !== chain[chain.length - 1]
  )
    c.find(
      'run',
      0,
      'broken',
      'ChainMismatch',
      'the events are not those whose chain the seal ends',
    );
  c.evidence.entries.forEach((_, i) => {
    const payload = c.isGood(i, 'run.event') ? readObject(c.payloads[i] ?? null) : null;
    if (!payload) return;
    const index = payload['index'];
    if (
      typeof index !== 'number' ||
      payload['run_id'] !== seal['run_id'] ||
      chain[index - 1] === undefined ||
      payload['hash'] !== chain[index - 1]
    )
      c.find('entry', i, 'broken', 'ChainMismatch', 'the recorded event is not the one shown');
  });
}

export function checkRun(c: Checker): void {
  const {evidence} = c;
  if (evidence.files.length === 0) return;
  const named = (path: string): Uint8Array | undefined =>
    evidence.files.find((file) => file.path === path)?.bytes;
  const broken = (reason: string, message: string): void =>
    c.find('run', 0, 'broken', reason, message);
  const at = evidence.entries.findIndex(
    (_, i) => c.isGood(i, 'run.seal') && readObject(c.payloads[i] ?? null) !== null,
  );
  if (at < 0)
    return c.find(
      'run',
      0,
      'indeterminate',
      'NotSealed',
      'it contains files of a run, and no entry that sealed them',
    );
  const seal = readObject(c.payloads[at]!)!;
  if (evidence.kind === 'run' && seal['run_id'] !== evidence.id)
    broken('SealMismatch', 'the seal is of another run');
  const manifest = named('manifest.json');
  if (!hasHash(manifest, seal['manifest_sha256']))
    return broken('SealMismatch', 'the manifest is not the one that was sealed');
  const read = readObject(manifest!);
  if (!read) return broken('SealMismatch', 'the manifest cannot be read');
  const artifacts = Array.isArray(read['artifacts'])
    ? read['artifacts'].filter((one): one is Json => typeof one === 'object' && one !== null)
    : [];
  c.filesListed = artifacts.length;
  checkFiles(c, artifacts);
  const contract = named('contract.json'),
    events = named('events.jsonl');
  if (contract && !hasHash(contract, seal['contract_sha256']))
    broken('SealMismatch', 'the contract is not the one that was sealed');
  if (artifacts.length + 1 > evidence.files.length)
    c.limit('The evidence file does not contain all files of the run: the manifest lists them.');
  c.limit('Passed gates do not prove that the change is good.');
  if (events) checkEvents(c, events, seal);
}

/* --- the commit --------------------------------------------------------------------------------- */

/** Git's hash of a commit object, as long as the name is. */
export function isCommit(raw: Uint8Array, id: string): boolean {
  const message = concat(ascii(`commit ${raw.length}\0`), raw);
  return id === toHex(id.length === 40 ? sha1(message) : sha256(message));
}

function runMade(events: Uint8Array | undefined, commit: string): boolean {
  return (
    events !== undefined &&
    words(events)
      .split('\n')
      .some((line) => {
        const event = line.includes(commit) ? readObject(ascii(line)) : null;
        const payload = event?.['payload'];
        return (
          event !== null &&
          (event['event_type'] === 'MERGE_APPLIED' ||
            event['event_type'] === 'CANDIDATE_COMMITTED') &&
          typeof payload === 'object' &&
          payload !== null &&
          (payload as Json)['commit'] === commit
        );
      })
  );
}

export function checkCommit(c: Checker): void {
  const {commit, id, kind, files} = c.evidence;
  if (!commit) return;
  const broken = (message: string): void =>
    c.find('commit', 0, 'broken', 'CommitMismatch', message);
  if (kind !== 'commit') return broken('a commit is shown in evidence about something else');
  if (!isCommit(commit, id)) broken('the commit shown does not have the hash that is its name');
  else if (!runMade(files.find((file) => file.path === 'events.jsonl')?.bytes, id))
    broken('no event of the run shown made this commit');
  if (id.length === 40) c.limit('The commit is named by SHA-1, as git does.');
}
