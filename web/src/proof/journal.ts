// journal.ts - proofs about the journal: an entry is in it, and it only grew (ledger.md §6).
//
// Each check gives the steps it took, so that they can be drawn: what stood on the left, what on the
// right, and what came of it.

import {equal} from './bytes';
import type {Scheme} from './scheme';

export interface Step {
  left: Uint8Array;
  right: Uint8Array;
  result: Uint8Array;
  /** Which side was computed by us; the other one was given. */
  ours: 'left' | 'right';
}

export interface Folded {
  root: Uint8Array;
  steps: Step[];
}

export class Malformed extends Error {}

/** The largest power of two below n. */
function half(n: number): number {
  let k = 1;
  while (2 * k < n) k *= 2;
  return k;
}

/** The root that a leaf's path leads to. */
export function foldInclusion(
  scheme: Scheme,
  leafHash: Uint8Array,
  index: number,
  size: number,
  path: readonly Uint8Array[],
): Folded {
  if (!(index >= 0 && index < size)) throw new Malformed('the index is not in the tree');
  const steps: Step[] = [];
  let used = path.length;
  const walk = (m: number, n: number): Uint8Array => {
    if (n === 1) return scheme.entryNode(leafHash);
    const k = half(n);
    if (used === 0) throw new Malformed('the path is too short');
    const isGiven = path[--used]!;
    const left = m < k ? walk(m, k) : isGiven;
    const right = m < k ? isGiven : walk(m - k, n - k);
    const result = scheme.join(left, right, n === 2 * k);
    steps.push({left, right, result, ours: m < k ? 'left' : 'right'});
    return result;
  };
  const acc = walk(index, size);
  if (used !== 0) throw new Malformed('the path is too long');
  return {root: scheme.journalRoot(acc, size), steps};
}

export interface Grown {
  older: Uint8Array;
  newer: Uint8Array;
  steps: Step[];
}

/** Both roots that a consistency proof leads to. */
export function foldConsistency(
  scheme: Scheme,
  olderRoot: Uint8Array,
  size1: number,
  size2: number,
  path: readonly Uint8Array[],
  newerRoot: Uint8Array,
): Grown {
  if (size1 > size2) throw new Malformed('the older journal is the longer one');
  if (size1 === 0 || size1 === size2) {
    if (path.length !== 0) throw new Malformed('the path is too long');
    return {older: size1 === 0 ? scheme.emptyJournal : newerRoot, newer: newerRoot, steps: []};
  }
  const steps: Step[] = [];
  let used = path.length;
  const nextHash = (): Uint8Array => {
    if (used === 0) throw new Malformed('the path is too short');
    return path[--used]!;
  };
  const join = (
    left: Uint8Array,
    right: Uint8Array,
    perfect: boolean,
    ours: 'left' | 'right',
  ): Uint8Array => {
    const result = scheme.join(left, right, perfect);
    steps.push({left, right, result, ours});
    return result;
  };
  const walk = (m: number, n: number, isGiven: boolean): [Uint8Array, Uint8Array] => {
    if (m === n) {
      const start = isGiven ? olderRoot : nextHash();
      return [start, start];
    }
    const k = half(n);
    const other = nextHash();
    if (m <= k) {
      const [older, newer] = walk(m, k, isGiven);
      return [older, join(newer, other, n === 2 * k, 'left')];
    }
    const [older, newer] = walk(m - k, n - k, false);
    return [join(other, older, false, 'right'), join(other, newer, n === 2 * k, 'right')];
  };
  const [older, newer] = walk(size1, size2, scheme.isStartGiven);
  if (used !== 0) throw new Malformed('the path is too long');
  return {older: scheme.journalRoot(older, size1), newer: scheme.journalRoot(newer, size2), steps};
}

export function leadsTo(folded: Folded, root: Uint8Array): boolean {
  return equal(folded.root, root);
}
