// uri.ts - the subject of a claim (ledger.md §4): a memory at a version, or an edge.

import {asMap, asNumber, decode} from './cbor';
import type {Scheme} from './scheme';

const TYPES = [
  'Identity',
  'Fact',
  'Preference',
  'Belief',
  'Event',
  'Goal',
  'Constraint',
  'Capability',
  'Pattern',
];
const EDGES = [
  'derived_from',
  'supersedes',
  'references',
  'contradicts',
  'corroborates',
  'consents_to',
  'dispatched_to',
  'attested_by',
  'cited_in',
  'tombstones',
  'part_of',
  'instance_of',
  'caused_by',
  'observed_by',
];
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

export interface Subject {
  namespace: 'memories' | 'edges';
  type: number;
  /** Of a memory. */
  version: number;
  key(scheme: Scheme): Uint8Array;
}

/** The 16 bytes of 26 digits, of which the first is at most 7. */
export function ulid(text: string): Uint8Array | null {
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(text)) return null;
  let value = 0n;
  for (const c of text) value = value * 32n + BigInt(DIGITS.indexOf(c));
  const out = new Uint8Array(16);
  for (let i = 15; i >= 0; i--, value >>= 8n) out[i] = Number(value & 255n);
  return out;
}

export function readUri(uri: string): Subject | null {
  const edge = /^matrix:\/\/cortex\/edge\/([^/]+)\/([a-z_]+)\/([^/]+)$/.exec(uri);
  if (edge) {
    const source = ulid(edge[1]!),
      destination = ulid(edge[3]!),
      type = EDGES.indexOf(edge[2]!) + 1;
    if (!source || !destination || type === 0) return null;
    return {
      namespace: 'edges',
      type,
      version: 0,
      key: (scheme) => scheme.edgeKey(source, type, destination),
    };
  }
  const memory = /^matrix:\/\/cortex\/([A-Za-z]+)\/([^/#]+)#([1-9][0-9]*)$/.exec(uri);
  const id = memory && ulid(memory[2]!),
    type = memory ? TYPES.indexOf(memory[1]!) + 1 : 0;
  if (!memory || !id || type === 0) return null;
  return {
    namespace: 'memories',
    type,
    version: Number(memory[3]),
    key: (scheme) => scheme.memoryKey(id),
  };
}

/** Null when the record that is shown answers the question; else why not. */
export function unlike(subject: Subject, record: Uint8Array): string | null {
  if (subject.namespace === 'edges') return null;
  const map = asMap(decode(record), 'record');
  if (asNumber(map.get(2), 'type') !== subject.type) return 'the memory is of another type';
  if (asNumber(map.get(3), 'version') < subject.version)
    return 'the memory has not reached the version asked about';
  return null;
}
