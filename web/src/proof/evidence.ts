// evidence.ts - verifies an evidence file part by part, as cortex-verify does
// (docs/formats/evidence.md), with one exception: only the program can rebuild the page that the
// file shows.

import {ascii, concat, equal, toHex} from './bytes';
import {asBytes, asMap, asNumber, decode, joinMap, splitMap, type Cbor} from './cbor';
import {
  blank,
  Broken,
  checkFile,
  checkInclusion,
  reported,
  readInclusion,
  type Chain,
  type Entry,
  type Report,
  type Verdict,
} from './check';
import {verifyEd25519} from './ed25519';
import {isEvidence, readBlock, readEvidence, type Evidence, type Journal} from './evidence_read';
import {checkHome} from './evidence_home';
import {checkCommit, checkRun, readObject} from './evidence_run';
import {manifestDigest, type Manifest} from './manifest';
import {checkNote, type Checkpoint, readCheckpoint, type VerifierKey} from './note';
import {sha256} from './sha256';
import {readUri, ulid} from './uri';

export type Part =
  | 'page'
  | 'journal'
  | 'entry'
  | 'home'
  | 'run'
  | 'commit'
  | 'trace'
  | 'memory'
  | 'proof';

export interface Finding {
  part: Part;
  number: number;
  verdict: Exclude<Verdict, 'holds'>;
  reason: string;
  message: string;
}

export interface EvidenceReport {
  /** Of the data; the page that the file shows is not among what was checked. */
  verdict: Verdict;
  reason: string | null;
  message: string;
  evidence: Evidence | null;
  findings: Finding[];
  /** By entry; null when it is not in its journal. */
  entries: (Entry | null)[];
  payloads: (Uint8Array | null)[];
  chains: Chain[];
  proofs: Report[];
  journalsSigned: number;
  journalsAnchored: number;
  /** Journals whose home root a trusted key signed. */
  homesSigned: number;
  tracesSigned: number;
  bodiesMissing: number;
  filesListed: number;
  limits: string[];
}

/** What the person in front of the page trusts. */
export interface EvidenceTrust {
  keys: readonly VerifierKey[];
  /** Hex. */
  roots: readonly string[];
}

const FINDINGS_MAX = 64;

export class Checker {
  readonly findings: Finding[] = [];
  readonly limits: string[] = [];
  readonly entries: (Entry | null)[];
  readonly payloads: (Uint8Array | null)[];
  readonly chains: Chain[] = [];
  readonly proofs: Report[] = [];
  /** Journals: by a trusted key; by anything trusted; whose owner is not only what the file says. */
  readonly signed = new Set<number>();
  readonly anchored = new Set<number>();
  readonly named = new Set<number>();
  homesSigned = 0;
  tracesSigned = 0;
  bodiesMissing = 0;
  filesListed = 0;
  isWholeSession = false;

  constructor(
    readonly evidence: Evidence,
    readonly trust: EvidenceTrust,
  ) {
    this.entries = evidence.entries.map(() => null);
    this.payloads = evidence.entries.map(() => null);
  }

  get journalsSigned(): number {
    return this.signed.size;
  }

  get journalsAnchored(): number {
    return this.anchored.size;
  }

  /** The first broken one is always stored. */
  find(
    part: Part,
    number: number,
    verdict: Finding['verdict'],
    reason: string,
    message: string,
  ): void {
    const isFirstBroken =
      verdict === 'broken' && !this.findings.some((one) => one.verdict === 'broken');
    if (this.findings.length < FINDINGS_MAX)
      this.findings.push({part, number, verdict, reason, message});
    else if (isFirstBroken)
      this.findings[FINDINGS_MAX - 1] = {part, number, verdict, reason, message};
  }

  limit(text: string): void {
    if (!this.limits.includes(text)) this.limits.push(text);
  }

  /** Whether an entry is in its journal and is of that kind. */
  isGood(number: number, ...kinds: string[]): boolean {
    const entry = this.entries[number];
    return entry !== null && entry !== undefined && kinds.includes(entry.kind);
  }
}

/* --- journals ----------------------------------------------------------------------------------- */

const HASHED = 'actor-sha256:';

/** "HOME/ACTOR", or the whole hash of a name that no origin can hold. No actor's name has a slash. */
function namesActor(origin: string, actor: string): boolean {
  if (origin.startsWith(HASHED)) return origin === HASHED + toHex(sha256(ascii(actor)));
  return origin.length > actor.length + 1 && origin.endsWith(`/${actor}`) && !actor.includes('/');
}

/** 16 digits of the name's hash, as version 0.1 wrote it: more names than one can have them. */
function namesActorWeakly(origin: string, actor: string): boolean {
  return origin === `cortex/${toHex(sha256(ascii(actor))).slice(0, 16)}`;
}

/** The same key under the name of a journal: one key signs many, each under a name of its own. */
export function keyNamed(key: VerifierKey, name: string): VerifierKey {
  return {
    name,
    key: key.key,
    id: sha256(ascii(name), Uint8Array.of(10, 1), key.key).subarray(0, 4),
  };
}

function isSigned(c: Checker, journal: Journal, number: number): boolean {
  let note: Checkpoint;
  try {
    note = readCheckpoint(new TextDecoder('utf-8', {fatal: true}).decode(journal.checkpoint!));
  } catch (error) {
    c.find(
      'journal',
      number,
      'broken',
      'BadNote',
      `its checkpoint is not a signed note: ${(error as Error).message}`,
    );
    return false;
  }
  if (!namesActor(note.origin, journal.actor) && namesActorWeakly(note.origin, journal.actor)) {
    c.find(
      'journal',
      number,
      'indeterminate',
      'WeakOrigin',
      'the checkpoint names its journal by 16 digits of a hash, as version 0.1 did, which several names can share; create the file again',
    );
    return false;
  }
  const mismatch =
    note.size !== journal.size || !equal(note.root, journal.root)
      ? 'the checkpoint is of another journal, or of another moment'
      : !namesActor(note.origin, journal.actor)
        ? 'the checkpoint names another journal'
        : null;
  if (mismatch) {
    c.find('journal', number, 'broken', 'CheckpointMismatch', mismatch);
    return false;
  }
  const results = c.trust.keys.map((key) => checkNote(note, keyNamed(key, note.origin)));
  if (!results.includes('forged')) return results.includes('signed');
  c.find(
    'journal',
    number,
    'broken',
    'SignatureInvalid',
    'a key that you trust did not make its signature',
  );
  return false;
}

function checkJournals(c: Checker): void {
  c.evidence.journals.forEach((journal, i) => {
    const signed = journal.checkpoint !== null && isSigned(c, journal, i);
    if (journal.checkpoint !== null) c.named.add(i);
    if (signed) c.signed.add(i);
    if (signed || c.trust.roots.includes(toHex(journal.root))) c.anchored.add(i);
  });
}

/* --- entries ------------------------------------------------------------------------------------ */

/** What a check that throws would say, as a finding. */
export function addFindings(c: Checker, part: Part, number: number, step: () => void): boolean {
  const report = reported(blank('unknown'), step);
  if (report.verdict === 'broken')
    c.find(part, number, 'broken', report.reason ?? 'NotRead', report.message);
  return report.verdict === 'holds';
}

function commitmentOf(salt: Uint8Array, payload: Uint8Array): Uint8Array {
  const size = new Uint8Array(8);
  new DataView(size.buffer).setBigUint64(0, BigInt(payload.length));
  return sha256(ascii('cortex.payload.v1'), salt, size, payload);
}

function checkPayload(c: Checker, number: number, entry: Entry): void {
  const {salt, payload: shown} = c.evidence.entries[number]!;
  if (!entry.commitment) {
    c.payloads[number] = entry.payload ?? new Uint8Array(0);
    if (salt)
      c.find(
        'entry',
        number,
        'broken',
        'PayloadMismatch',
        'the entry commits to no content, and some is shown',
      );
    return;
  }
  if (!salt) {
    c.bodiesMissing++;
    return c.find(
      'entry',
      number,
      'indeterminate',
      'BodyMissing',
      'its content was erased, or is not in the file',
    );
  }
  const payload = shown ?? new Uint8Array(0);
  if (equal(commitmentOf(salt, payload), entry.commitment) && payload.length === entry.payloadSize)
    c.payloads[number] = payload;
  else
    c.find(
      'entry',
      number,
      'broken',
      'PayloadMismatch',
      'the content shown does not match the commitment of the entry',
    );
}

function checkEntry(c: Checker, number: number): void {
  const given = c.evidence.entries[number]!,
    journal = c.evidence.journals[given.journal]!;
  const report = blank('inclusion');
  const good = addFindings(c, 'entry', number, () => {
    const proof = readInclusion(decode(given.inclusion));
    if (proof.size !== journal.size)
      throw new Broken('SizeMismatch', 'the proof is of a journal of another size');
    checkInclusion(report, proof, journal.root, `the root of journal ${given.journal + 1}`);
    if (proof.scheme !== journal.scheme)
      throw new Broken('SchemeMismatch', 'the proof is of another scheme than its journal');
  });
  c.chains.push(...report.chains);
  if (!good) return;
  c.entries[number] = report.entry;
  checkPayload(c, number, report.entry!);
}

/* --- what it is about --------------------------------------------------------------------------- */

/** Entries of a session's journal, and whether each of them is there. */
function checkSession(c: Checker): boolean {
  const {evidence} = c;
  const journal = evidence.journals.findIndex((one) => one.actor === evidence.id);
  const seqs = new Set<number>();
  let isShown = false;
  evidence.entries.forEach((one, i) => {
    const entry = c.entries[i];
    if (!entry || one.journal !== journal) return;
    isShown ||= entry.kind.startsWith('live.');
    seqs.add(entry.seq);
  });
  c.isWholeSession = isShown && seqs.size === evidence.journals[journal]!.size;
  c.limit('A call that an agent made without its hook has no entry.');
  if (!c.isWholeSession) c.limit('Not every entry of the session\u2019s journal is in the file.');
  return isShown;
}

function checkSubject(c: Checker): void {
  const {evidence} = c;
  const isShown: Record<string, () => boolean> = {
    run: () => evidence.files.length > 0,
    commit: () => evidence.commit !== null,
    trace: () =>
      evidence.entries.some(
        (one, i) =>
          c.isGood(i, 'trace.received') &&
          ((c.entries[i]!.commitment !== null && !one.salt) ||
            readObject(c.payloads[i] ?? null)?.['trace_id'] === evidence.id),
      ),
    memory: () => evidence.memories.some((one) => one.uri === evidence.id),
    session: () => checkSession(c),
  };
  if (!(isShown[evidence.kind]?.() ?? false))
    c.find('page', 0, 'broken', 'SubjectMissing', 'its subject is not in the file');
}

/* --- decisions and memories --------------------------------------------------------------------- */

const base64 = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes)).replace(/=+$/, '');

function checkDecision(c: Checker, number: number): void {
  const decision = c.evidence.decisions[number]!;
  if (!c.entries[decision.entry]) return; // reported already
  if (!c.isGood(decision.entry, 'trace.received'))
    return c.find('trace', number, 'broken', 'EntryMismatch', 'its entry is not a received trace');
  const payload = new TextDecoder().decode(c.payloads[decision.entry] ?? new Uint8Array(0));
  const plain = base64(decision.signature),
    url = plain.replace(/\+/g, '-').replace(/\//g, '_');
  if (!(payload.includes(url) || payload.includes(plain)) || !payload.includes(decision.keyId))
    c.find(
      'trace',
      number,
      'broken',
      'TraceMismatch',
      'the trace in the ledger does not have this signature',
    );
  const key = c.evidence.keys.find((one) => one.role === 'trace' && one.id === decision.keyId);
  if (!key)
    return c.find(
      'trace',
      number,
      'indeterminate',
      'NoKey',
      'the key that signed it is not in the file',
    );
  if (!verifyEd25519(key.key, decision.canonical, decision.signature))
    c.find(
      'trace',
      number,
      'broken',
      'SignatureInvalid',
      'the named key did not sign the bytes shown',
    );
  else if (c.trust.keys.some((one) => equal(one.key, key.key))) c.tracesSigned++;
  else
    c.limit(
      'The owner of the key that signed a decision is what the file states: add that key on the left to compare it.',
    );
  c.limit('A signed decision is the agent\u2019s own statement.');
  c.limit(
    'The bytes shown of a decision are the signed ones; only cortex verify computes whether they are the canonical form of the received trace.',
  );
}

/** Field 12 of a version is the hash of the version with 32 zero bytes there. */
function versionHash(bytes: Uint8Array): Uint8Array {
  const zeros = concat(Uint8Array.of(12, 0x58, 32), new Uint8Array(32));
  const members = splitMap(bytes).map((one) => (one.key === 12 ? {bytes: zeros} : one));
  return sha256(
    ascii('matrix.cortex.memory.v1'),
    Uint8Array.of(asNumber(asMap(decode(bytes), 'version').get(3), 'type')),
    joinMap(members),
  );
}

function writes(
  c: Checker,
  number: number,
): {id: Uint8Array; version: number; type: number; hash: Uint8Array} | null {
  if (!c.isGood(number, 'write', 'update')) return null;
  try {
    const map = asMap(decode(c.payloads[number]!), 'write');
    return {
      id: asBytes(map.get(1), 'id', 16),
      version: asNumber(map.get(2), 'version'),
      type: asNumber(map.get(3), 'type'),
      hash: asBytes(map.get(4), 'hash', 32),
    };
  } catch {
    return null;
  }
}

function checkMemory(c: Checker, number: number): void {
  const memory = c.evidence.memories[number]!;
  if (!c.entries[memory.entry]) return;
  const written = writes(c, memory.entry),
    subject = readUri(memory.uri);
  const id = ulid(/\/([^/#]+)#/.exec(memory.uri)?.[1] ?? '');
  if (
    !written ||
    subject?.namespace !== 'memories' ||
    !id ||
    !equal(id, written.id) ||
    subject.version !== written.version ||
    subject.type !== written.type
  )
    return c.find(
      'memory',
      number,
      'broken',
      'EntryMismatch',
      'its entry did not write this version of this memory',
    );
  if (!memory.version) {
    c.bodiesMissing++;
    return c.find(
      'memory',
      number,
      'indeterminate',
      'BodyMissing',
      'its content was erased, or is not in the file',
    );
  }
  const version = memory.version;
  let isGood = false;
  try {
    const hash = versionHash(version);
    isGood =
      equal(hash, written.hash) &&
      equal(hash, asBytes(asMap(decode(version), 'version').get(12), 'hash', 32));
  } catch {
    isGood = false;
  }
  if (!isGood)
    c.find(
      'memory',
      number,
      'broken',
      'VersionMismatch',
      'the memory shown does not have the hash that was recorded',
    );
  c.limit('The content and the origin of a memory are what its writer stated.');
}

/* --- proofs of state ---------------------------------------------------------------------------- */

function seals(c: Checker, number: number, manifest: Manifest): boolean {
  if (!c.isGood(number, 'seal') || !manifest.signature) return false;
  if (c.evidence.journals[c.evidence.entries[number]!.journal]!.actor !== manifest.actor)
    return false;
  try {
    const seal = asMap(decode(c.payloads[number]!), 'seal');
    const signature: Cbor | undefined = seal.get(5);
    return (
      equal(asBytes(seal.get(2), 'digest', 32), manifestDigest(manifest)) &&
      (seal.get(4) ?? '') === manifest.signedBy &&
      signature instanceof Uint8Array &&
      equal(signature, manifest.signature)
    );
  } catch {
    return false;
  }
}

function checkPack(c: Checker, number: number): void {
  const bytes = c.evidence.packs[number]!;
  const first = checkFile(bytes);
  const root =
    first.manifest && c.trust.roots.includes(toHex(first.manifest.overall))
      ? first.manifest.overall
      : undefined;
  const report = root ? checkFile(bytes, {overallRoot: root}) : first;
  c.proofs.push(report);
  c.chains.push(...report.chains);
  // Its missing anchor is a limit here: the anchor is the seal, below.
  const isSound = report.verdict === 'holds' || report.reason === 'NotAnchored';
  if (isSound && report.kind !== 'pack')
    return c.find('proof', number, 'broken', 'BadProof', 'it is not a proof pack');
  if (!isSound)
    return c.find(
      'proof',
      number,
      report.verdict === 'broken' ? 'broken' : 'indeterminate',
      report.reason ?? 'BadProof',
      report.message,
    );
  const manifest = report.manifest!;
  const isSealed = c.evidence.entries.some((_, i) => seals(c, i, manifest));
  if (!isSealed && manifest.signature)
    c.find(
      'proof',
      number,
      'broken',
      'SealMismatch',
      'its snapshot is signed, and no entry in the file seals that manifest',
    );
  else if (!isSealed && !root)
    c.limit('A proof of state has no anchor: no entry in the file seals its snapshot.');
}

/* --- the verdict -------------------------------------------------------------------------------- */

function conclude(c: Checker): void {
  const count = c.evidence.journals.length,
    keys = c.trust.keys.length > 0;
  if (count === 0) c.find('journal', 0, 'indeterminate', 'NoRoot', 'it contains no journal');
  if (c.journalsSigned < count && c.journalsSigned > 0)
    c.find(
      'journal',
      0,
      'indeterminate',
      'NotSigned',
      `it is consistent, but the keys that you trust have signed ${c.journalsSigned} of ${count} journals`,
    );
  else if (c.journalsAnchored < count)
    c.find(
      'journal',
      0,
      'indeterminate',
      keys && c.journalsAnchored === 0 ? 'NotSigned' : 'NotAnchored',
      `it is consistent, but ${count - c.journalsAnchored} of ${count} journals are not anchored by anything that you trust`,
    );
  if (c.journalsAnchored < count)
    c.limit(
      'A journal that no trusted key has signed is not attested: anyone can create a consistent one.',
    );
  if (c.evidence.journals.some((_, i) => !c.named.has(i)))
    c.limit('Where a journal has no signed checkpoint, its owner is only what the file states.');
  if (!c.isWholeSession)
    c.limit('That nothing was left out is not proven: the creator of the file chose its content.');
  c.limit('That what was recorded is true is not proven.');
}

export const PAGE_NOT_CHECKED =
  'That the page which this file shows in a browser matches its data: cortex-verify rebuilds that page and compares every byte, this page does not. Read the contents shown here, or run cortex-verify.';

function empty(reason: string, message: string): EvidenceReport {
  return {
    verdict: 'broken',
    reason,
    message,
    evidence: null,
    findings: [{part: 'page', number: 0, verdict: 'broken', reason, message}],
    entries: [],
    payloads: [],
    chains: [],
    proofs: [],
    journalsSigned: 0,
    journalsAnchored: 0,
    homesSigned: 0,
    tracesSigned: 0,
    bodiesMissing: 0,
    filesListed: 0,
    limits: [],
  };
}

/** Checks the data of an evidence file, which readBlock has taken out of it. */
export function checkEvidence(data: Uint8Array, trust: EvidenceTrust): EvidenceReport {
  let c!: Checker;
  const read = reported(blank('unknown'), () => (c = new Checker(readEvidence(data), trust)));
  if (read.verdict === 'broken')
    return empty(read.reason === 'NotRead' ? 'NonCanonical' : read.reason!, read.message);
  checkJournals(c);
  for (const i of c.evidence.entries.keys()) checkEntry(c, i);
  for (const i of c.evidence.homes.keys()) checkHome(c, i);
  checkSubject(c);
  checkRun(c);
  checkCommit(c);
  for (const i of c.evidence.decisions.keys()) checkDecision(c, i);
  for (const i of c.evidence.memories.keys()) checkMemory(c, i);
  for (const i of c.evidence.packs.keys()) checkPack(c, i);
  conclude(c);
  c.limits.unshift(PAGE_NOT_CHECKED);
  const worst = c.findings.find((one) => one.verdict === 'broken') ?? c.findings[0];
  const {
    evidence,
    findings,
    entries,
    payloads,
    chains,
    proofs,
    journalsSigned,
    journalsAnchored,
    homesSigned,
    tracesSigned,
    bodiesMissing,
    filesListed,
    limits,
  } = c;
  return {
    verdict: worst?.verdict ?? 'holds',
    reason: worst?.reason ?? null,
    message: worst?.message ?? '',
    evidence,
    findings,
    entries,
    payloads,
    chains,
    proofs,
    journalsSigned,
    journalsAnchored,
    homesSigned,
    tracesSigned,
    bodiesMissing,
    filesListed,
    limits: worst?.verdict === 'broken' ? [] : limits,
  };
}

/** The same for a whole file. */
export function checkEvidenceFile(bytes: Uint8Array, trust: EvidenceTrust): EvidenceReport {
  let data!: Uint8Array;
  const read = reported(blank('unknown'), () => (data = readBlock(bytes)));
  return read.verdict === 'broken'
    ? empty(read.reason ?? 'BadEvidence', read.message)
    : checkEvidence(data, trust);
}

export {isEvidence, readBlock};
