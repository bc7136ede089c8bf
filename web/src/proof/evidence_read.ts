// evidence_read.ts - reads an evidence file (docs/formats/evidence.md): the block at its end, and
// its data. As strict as cortex-verify.

import {ascii, equal, fromBase64} from './bytes';
import {asBytes, asList, asMap, asNumber, asText, decode, only, Wrong, type Cbor} from './cbor';
import {Broken} from './check';
import {schemeNamed, type Scheme} from './scheme';

export interface Journal {
  actor: string;
  scheme: Scheme;
  size: number;
  root: Uint8Array;
  checkpoint: Uint8Array | null;
}

export interface ShownEntry {
  journal: number;
  inclusion: Uint8Array;
  payload: Uint8Array | null;
  salt: Uint8Array | null;
}

export interface BundleFile {
  path: string;
  bytes: Uint8Array;
}

export interface Decision {
  entry: number;
  canonical: Uint8Array;
  signature: Uint8Array;
  keyId: string;
}

export interface Memory {
  uri: string;
  entry: number;
  version: Uint8Array | null;
}

export interface ClaimedKey {
  id: string;
  key: Uint8Array;
  role: string;
}

/** A journal in a home root: a home proof, and what the overall root in it is made of. */
export interface Home {
  journal: number;
  proof: Uint8Array;
  journalRoot: Uint8Array;
  memoriesRoot: Uint8Array;
  edgesRoot: Uint8Array;
  consistency: Uint8Array | null;
}

export interface Evidence {
  kind: string;
  id: string;
  madeAtNs: number;
  journals: Journal[];
  entries: ShownEntry[];
  files: BundleFile[];
  decisions: Decision[];
  memories: Memory[];
  packs: Uint8Array[];
  keys: ClaimedKey[];
  commit: Uint8Array | null;
  homes: Home[];
}

/* --- the container ------------------------------------------------------------------------------ */

const FIRST = '<!DOCTYPE html>\n<html lang="en" data-cortex-evidence="';
const BEGIN = '<script type="application/vnd.cortex.evidence" id="evidence">\n';
const END = '</script>\n</body>\n</html>\n';
const DATA_MAX = 16 << 20;

export function isEvidence(bytes: Uint8Array): boolean {
  return equal(bytes.subarray(0, FIRST.length), ascii(FIRST));
}

/** The data, where its block begins, and what was read of the rest: only that it begins and ends as it must. */
export function readBlock(bytes: Uint8Array): Uint8Array {
  const refuse = (why: string): never => {
    throw new Broken('BadEvidence', why);
  };
  if (!isEvidence(bytes)) refuse('it does not start like an evidence file');
  if (!equal(bytes.subarray(0, FIRST.length + 4), ascii(FIRST + '1">\n')))
    refuse('it was created for another version of the page');
  const end = bytes.length - END.length;
  if (end < 0 || !equal(bytes.subarray(end), ascii(END)))
    refuse('it does not end with a data block');
  // Base64 has no '<': the last one before the end begins the block.
  const open = bytes.lastIndexOf(0x3c, end - 1);
  if (open < 0 || !equal(bytes.subarray(open, open + BEGIN.length), ascii(BEGIN)))
    refuse('found no data block at its end');
  const lines = new TextDecoder('latin1').decode(bytes.subarray(open + BEGIN.length, end));
  const text = lines.replace(/\n/g, '');
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4 !== 0)
    refuse('its data block is not base64');
  let data: Uint8Array;
  try {
    data = fromBase64(text);
  } catch {
    return refuse('its data block is not base64');
  }
  if (lines !== blockOf(data))
    throw new Broken('PageMismatch', 'its data block is not the canonical form of the data');
  if (data.length > DATA_MAX)
    throw new Broken('EvidenceTooLarge', 'its data is larger than 16 MiB');
  return data;
}

/** Base64 in lines; a slice at a time, because a call takes only so many arguments. */
function blockOf(data: Uint8Array): string {
  let text = '';
  for (let at = 0; at < data.length; at += 57)
    text += btoa(String.fromCharCode(...data.subarray(at, at + 57))) + '\n';
  return text;
}

/* --- the data ----------------------------------------------------------------------------------- */

const MOST = {journals: 64, entries: 4096, files: 4096, parts: 256} as const;

function name(value: Cbor | undefined, what: string): string {
  const text = asText(value, what);
  const size = ascii(text).length;
  if (size === 0 || size > 1024) throw new Wrong(`${what}: expected 1 to 1024 bytes of text`);
  return text;
}

function some(
  map: Map<number | string, Cbor>,
  key: number,
  what: string,
  size?: number,
): Uint8Array | null {
  if (!map.has(key)) return null;
  const bytes = asBytes(map.get(key), what, size);
  if (bytes.length === 0) throw new Wrong(`${what}: nothing is left out, not empty`);
  return bytes;
}

function whole(value: Cbor | undefined, what: string): number {
  const number = asNumber(value, what);
  if (number < 0) throw new Wrong(`${what}: expected a number from 0 on`);
  return number;
}

function members(value: Cbor, what: string, known: number[]): Map<number | string, Cbor> {
  const map = asMap(value, what);
  only(map, what, known);
  return map;
}

function list<T>(
  map: Map<number | string, Cbor>,
  key: number,
  what: string,
  most: number,
  isNeeded: boolean,
  read: (value: Cbor) => T,
): T[] {
  if (!map.has(key) && !isNeeded) return [];
  const found = asList(map.get(key), what);
  if (found.length > most) throw new Wrong(`${what}: expected at most ${most}`);
  if (found.length === 0 && !isNeeded) throw new Wrong(`${what}: an empty list is left out`);
  return found.map(read);
}

function readJournal(value: Cbor): Journal {
  const map = members(value, 'journal', [0, 1, 2, 3, 4]);
  const scheme = schemeNamed(asText(map.get(1), 'scheme'));
  if (!scheme) throw new Wrong('journal: found an unknown scheme');
  return {
    actor: name(map.get(0), 'actor'),
    scheme,
    size: whole(map.get(2), 'size'),
    root: asBytes(map.get(3), 'root', 32),
    checkpoint: some(map, 4, 'checkpoint'),
  };
}

function within(value: Cbor | undefined, what: string, count: number): number {
  const number = whole(value, what);
  if (number >= count) throw new Wrong(`no such ${what} in the file`);
  return number;
}

export function readEvidence(data: Uint8Array): Evidence {
  const map = members(decode(data), 'evidence', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  if (map.get(0) !== 1 || map.get(1) !== 'cortex.evidence')
    throw new Wrong('evidence: expected version 1 of cortex.evidence');
  const journals = list(map, 5, 'journals', MOST.journals, true, readJournal);
  const entries = list(map, 6, 'entries', MOST.entries, true, (value): ShownEntry => {
    const of = members(value, 'entry', [0, 1, 2, 3]);
    const payload = some(of, 2, 'payload'),
      salt = some(of, 3, 'salt', 32);
    if (payload && !salt) throw new Wrong('a payload needs its salt');
    const inclusion = some(of, 1, 'inclusion');
    if (!inclusion) throw new Wrong('entry: its proof is missing');
    return {journal: within(of.get(0), 'journal', journals.length), inclusion, payload, salt};
  });
  const files = list(map, 7, 'files', MOST.files, false, (value): BundleFile => {
    const of = members(value, 'file', [0, 1]);
    return {path: name(of.get(0), 'path'), bytes: asBytes(of.get(1), 'file')};
  });
  for (let i = 1; i < files.length; i++)
    if (compare(ascii(files[i - 1]!.path), ascii(files[i]!.path)) >= 0)
      throw new Wrong('files are not in the order of their paths');
  const homes = list(map, 13, 'home roots', MOST.journals, false, (value): Home => {
    const of = members(value, 'home root', [0, 1, 2, 3, 4, 5]);
    const proof = some(of, 1, 'home proof');
    if (!proof) throw new Wrong('home root: its proof is missing');
    return {
      journal: within(of.get(0), 'journal', journals.length),
      proof,
      journalRoot: asBytes(of.get(2), 'journal root', 32),
      memoriesRoot: asBytes(of.get(3), 'memories root', 32),
      edgesRoot: asBytes(of.get(4), 'edges root', 32),
      consistency: some(of, 5, 'consistency proof'),
    };
  });
  for (let i = 1; i < homes.length; i++)
    if (homes[i - 1]!.journal >= homes[i]!.journal)
      throw new Wrong('home roots are not in the order of their journals');
  const entryOf = (value: Cbor | undefined): number => within(value, 'entry', entries.length);
  const made = asNumber(map.get(4), 'time');
  return {
    kind: name(map.get(2), 'kind'),
    id: name(map.get(3), 'id'),
    madeAtNs: made,
    journals,
    entries,
    files,
    decisions: list(map, 8, 'decisions', MOST.parts, false, (value): Decision => {
      const of = members(value, 'decision', [0, 1, 2, 3]);
      const canonical = some(of, 1, 'signed bytes');
      if (!canonical) throw new Wrong('decision: its bytes are missing');
      return {
        entry: entryOf(of.get(0)),
        canonical,
        signature: asBytes(of.get(2), 'signature', 64),
        keyId: name(of.get(3), 'key id'),
      };
    }),
    memories: list(map, 9, 'memories', MOST.parts, false, (value): Memory => {
      const of = members(value, 'memory', [0, 1, 2]);
      return {
        uri: name(of.get(0), 'uri'),
        entry: entryOf(of.get(1)),
        version: some(of, 2, 'version'),
      };
    }),
    packs: list(map, 10, 'proofs', MOST.parts, false, (value) => asBytes(value, 'proof')),
    keys: list(map, 11, 'keys', MOST.parts, false, (value): ClaimedKey => {
      const of = members(value, 'key', [0, 1, 2]);
      return {
        id: name(of.get(0), 'key id'),
        key: asBytes(of.get(1), 'key', 32),
        role: name(of.get(2), 'role'),
      };
    }),
    commit: some(map, 12, 'commit'),
    homes,
  };
}

function compare(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}
