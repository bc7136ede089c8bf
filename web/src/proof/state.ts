// state.ts - proofs of state: a record is in the sparse Merkle tree, or no record is (ledger.md §8).

import {bit, equal} from './bytes';
import {asBytes, asList, asMap, asNumber, asText, only, Wrong, type Cbor} from './cbor';
import {expand, type Placed} from './compact';
import {schemeNamed, type Scheme} from './scheme';
import type {Folded, Step} from './journal';
import {Malformed} from './journal';

export type Membership = 'member' | 'erased' | 'absent';

export interface KeyProof {
  key: Uint8Array;
  membership: Membership;
  /** The record's own bytes, when the proof shows them. */
  record: Uint8Array | null;
  valueHash: Uint8Array | null;
  /** Another leaf that stands where this key would. */
  other: {key: Uint8Array; value: Uint8Array} | null;
  /** From the root down. */
  siblings: Uint8Array[];
}

export interface StateProof {
  scheme: Scheme;
  namespace: 'memories' | 'edges';
  root: Uint8Array;
  keys: KeyProof[];
}

const ZEROS = new Uint8Array(32);
const isZero = (bytes: Uint8Array): boolean => equal(bytes, ZEROS);

function readNamespace(value: Cbor | undefined): 'memories' | 'edges' {
  const name = asText(value, 'namespace');
  if (name !== 'memories' && name !== 'edges')
    throw new Wrong('namespace: expected memories or edges');
  return name;
}

function readOther(value: Cbor | undefined): KeyProof['other'] {
  if (value === undefined) return null;
  const list = asList(value, 'other');
  if (list.length !== 2) throw new Wrong('other: expected key and value');
  return {key: asBytes(list[0], 'other key', 32), value: asBytes(list[1], 'other value', 32)};
}

/** What schemas 2 and 3 say of a key, but for its siblings. */
function readKey(map: Map<number | string, Cbor>): KeyProof {
  only(map, 'key', [0, 1, 2, 3, 4]);
  const leaf = map.get(1);
  const record = leaf === null ? null : asBytes(leaf, 'record');
  const other = readOther(map.get(3));
  const valueHash = map.has(4) ? asBytes(map.get(4), 'value hash', 32) : null;
  if ([record, other, valueHash].filter((one) => one !== null).length > 1)
    throw new Malformed('a key has more than one result');
  return {
    key: asBytes(map.get(0), 'key hash', 32),
    record,
    other,
    valueHash,
    siblings: [],
    membership: record !== null ? 'member' : valueHash !== null ? 'erased' : 'absent',
  };
}

function readPooledKey(value: Cbor, pool: readonly Uint8Array[], used: Set<number>): KeyProof {
  const map = asMap(value, 'key'),
    key = readKey(map);
  key.siblings = asList(map.get(2), 'siblings').map((one) => {
    const number = asNumber(one, 'sibling');
    if (number > pool.length) throw new Malformed('a sibling that is not in the pool');
    if (number > 0) used.add(number - 1);
    return number === 0 ? ZEROS : pool[number - 1]!;
  });
  if (key.siblings.length > 256) throw new Malformed('more siblings than the tree is deep');
  return key;
}

function readCortexScheme(map: Map<number | string, Cbor>): Scheme {
  const scheme = schemeNamed(asText(map.get(4), 'scheme'));
  if (scheme?.name !== 'cortex-1') throw new Wrong('scheme: expected cortex-1');
  return scheme;
}

function readCortex(map: Map<number | string, Cbor>): StateProof {
  only(map, 'proof', [0, 1, 2, 3, 4, 5]);
  const scheme = readCortexScheme(map);
  const pool = asList(map.get(5), 'pool').map((one) => asBytes(one, 'pool', 32));
  if (pool.some(isZero)) throw new Malformed('an empty hash in the pool');
  const used = new Set<number>();
  const keys = asList(map.get(3), 'keys').map((one) => readPooledKey(one, pool, used));
  if (used.size !== pool.length) throw new Malformed('a hash of the pool is not used');
  return {
    scheme,
    namespace: readNamespace(map.get(1)),
    root: asBytes(map.get(2), 'root', 32),
    keys,
  };
}

/** Of a compact proof every key gets the siblings that it leaves out (compact.ts). */
function readCompact(map: Map<number | string, Cbor>): StateProof {
  only(map, 'proof', [0, 1, 2, 3, 4, 5, 6]);
  const scheme = readCortexScheme(map);
  const placed = asList(map.get(3), 'keys').map((one) => {
    const key = asMap(one, 'key');
    return {key: readKey(key), depth: asNumber(key.get(2), 'depth')};
  });
  const ends = (place: Placed): Uint8Array => start(scheme, place.key);
  expand(scheme, placed, asBytes(map.get(5), 'siblings'), asBytes(map.get(6), 'presence'), ends);
  const keys = placed.map((place) => place.key);
  return {
    scheme,
    namespace: readNamespace(map.get(1)),
    root: asBytes(map.get(2), 'root', 32),
    keys,
  };
}

function readMatrix(map: Map<number | string, Cbor>): StateProof {
  only(map, 'proof', [0, 1, 2, 3]);
  const keys = asList(map.get(3), 'keys').map((value): KeyProof => {
    const one = asMap(value, 'key');
    only(one, 'key', ['KeyHash', 'Siblings', 'ValueHash']);
    const valueHash = asBytes(one.get('ValueHash'), 'ValueHash', 32);
    const siblings = asList(one.get('Siblings'), 'Siblings').map((s) => asBytes(s, 'sibling', 32));
    if (siblings.length !== 256) throw new Malformed('expected 256 siblings');
    return {
      key: asBytes(one.get('KeyHash'), 'KeyHash', 32),
      record: null,
      other: null,
      siblings,
      valueHash: isZero(valueHash) ? null : valueHash,
      membership: isZero(valueHash) ? 'absent' : 'member',
    };
  });
  return {
    scheme: schemeNamed('matrix-1')!,
    namespace: readNamespace(map.get(1)),
    root: asBytes(map.get(2), 'root', 32),
    keys,
  };
}

export function readStateProof(value: Cbor): StateProof {
  const map = asMap(value, 'proof');
  const schema = asNumber(map.get(0), 'schema');
  if (schema === 3) return readCompact(map);
  if (schema === 2) return readCortex(map);
  if (schema === 1) return readMatrix(map);
  throw new Wrong('schema: expected 1, 2 or 3');
}

function start(scheme: Scheme, key: KeyProof): Uint8Array {
  if (key.record !== null) return scheme.leaf(key.key, scheme.value(key.record));
  if (key.valueHash !== null) return scheme.leaf(key.key, key.valueHash);
  if (key.other === null) return scheme.empty(scheme.name === 'matrix-1' ? 256 : 0);
  if (equal(key.other.key, key.key)) throw new Malformed('the other leaf is this one');
  for (let i = 0; i < key.siblings.length; i++)
    if (bit(key.other.key, i) !== bit(key.key, i))
      throw new Malformed('the other leaf is at another position');
  return scheme.leaf(key.other.key, key.other.value);
}

/** From the leaf to the root. */
export function foldKey(scheme: Scheme, key: KeyProof): Folded {
  const steps: Step[] = [];
  let now = start(scheme, key);
  for (let i = key.siblings.length; i-- > 0; ) {
    const sibling = key.siblings[i]!;
    const ours = bit(key.key, i) === 0 ? 'left' : 'right';
    const left = ours === 'left' ? now : sibling,
      right = ours === 'left' ? sibling : now;
    now = scheme.node(left, right);
    steps.push({left, right, result: now, ours});
  }
  return {root: now, steps};
}
