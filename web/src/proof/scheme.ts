// scheme.ts - every hash of both commitment schemes (ledger.md §1.1).

import {ascii, concat, u64be} from './bytes';
import {sha256} from './sha256';

export interface Scheme {
  name: 'cortex-1' | 'matrix-1';
  entryNode(leafHash: Uint8Array): Uint8Array;
  /** Two subtrees of the journal; `perfect` when both are full. */
  join(left: Uint8Array, right: Uint8Array, perfect: boolean): Uint8Array;
  journalRoot(acc: Uint8Array, size: number): Uint8Array;
  emptyJournal: Uint8Array;
  /** Whether a consistency proof leaves its start out (ledger.md §6). */
  isStartGiven: boolean;
  memoryKey(id: Uint8Array): Uint8Array;
  edgeKey(source: Uint8Array, type: number, destination: Uint8Array): Uint8Array;
  value(record: Uint8Array): Uint8Array;
  leaf(key: Uint8Array, value: Uint8Array): Uint8Array;
  node(left: Uint8Array, right: Uint8Array): Uint8Array;
  /** Of a subtree at this depth. */
  empty(depth: number): Uint8Array;
  overall(journal: Uint8Array, memories: Uint8Array, edges: Uint8Array): Uint8Array;
}

const ZEROS = new Uint8Array(32);
const b0 = Uint8Array.of(0),
  b1 = Uint8Array.of(1);
const domain = (name: string): Uint8Array => ascii(`matrix.cortex.${name}.v1`);

export function entryLeafHash(entry: Uint8Array): Uint8Array {
  return sha256(domain('journal'), entry);
}

const cortex1: Scheme = {
  name: 'cortex-1',
  entryNode: (leafHash) => sha256(b0, leafHash),
  join: (left, right) => sha256(b1, left, right),
  journalRoot: (acc) => acc,
  emptyJournal: sha256(new Uint8Array(0)),
  isStartGiven: true,
  memoryKey: (id) => sha256(ascii('m/'), id),
  edgeKey: (source, type, destination) => sha256(source, Uint8Array.of(type), destination),
  value: (record) => sha256(record),
  leaf: (key, value) => sha256(b0, key, value),
  node: (left, right) => sha256(b1, left, right),
  empty: () => ZEROS,
  overall: (journal, memories, edges) => sha256(journal, memories, edges),
};

let empties: Uint8Array[] | null = null;

/** By depth: [256] is the empty leaf. */
function matrixEmpties(): Uint8Array[] {
  if (empties) return empties;
  const made = new Array<Uint8Array>(257);
  made[256] = sha256(domain('snapshot.smt.empty'));
  for (let depth = 255; depth >= 0; depth--)
    made[depth] = matrix1.node(made[depth + 1]!, made[depth + 1]!);
  empties = made;
  return made;
}

const matrix1: Scheme = {
  name: 'matrix-1',
  entryNode: (leafHash) => leafHash,
  join: (left, right, perfect) =>
    sha256(domain(perfect ? 'snapshot.mmr.node' : 'snapshot.mmr.bag'), left, right),
  journalRoot: (acc, size) => sha256(domain('snapshot.mmr.root'), u64be(size), acc),
  emptyJournal: sha256(domain('snapshot.mmr.root'), u64be(0), ZEROS),
  isStartGiven: false,
  memoryKey: (id) => sha256(domain('snapshot.smt.key.memories'), id),
  edgeKey: (source, type, destination) =>
    sha256(domain('snapshot.smt.key.edges'), source, Uint8Array.of(type), destination),
  value: (record) => sha256(domain('snapshot.smt.value'), record),
  leaf: (key, value) => sha256(domain('snapshot.smt.leaf'), key, value),
  node: (left, right) => sha256(domain('snapshot.smt.node'), left, right),
  empty: (depth) => matrixEmpties()[depth]!,
  overall: (journal, memories, edges) =>
    sha256(
      domain('snapshot.overall'),
      b1,
      journal,
      Uint8Array.of(0, 2),
      concat(Uint8Array.of(5), ascii('edges'), edges),
      concat(Uint8Array.of(8), ascii('memories'), memories),
    ),
};

export function schemeNamed(name: string): Scheme | null {
  return name === 'cortex-1' ? cortex1 : name === 'matrix-1' ? matrix1 : null;
}
