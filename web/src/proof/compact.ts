// compact.ts - a proof of state without the hashes that its keys determine (ledger.md §8.3): the
// walk from the root finds every key's siblings, given ones and computed ones.

import {bit, equal, toHex} from './bytes';
import {Malformed} from './journal';
import type {Scheme} from './scheme';
import type {KeyProof} from './state';

/** A key, and how far down its path ends; its siblings are filled in. */
export interface Placed {
  key: KeyProof;
  depth: number;
}

const DEPTH_MAX = 256;
const ZEROS = new Uint8Array(32);

/** What the proof tells of siblings, in the order of the walk. */
class SiblingHashes {
  private place = 0;
  private at = 0;

  constructor(
    private readonly hashes: Uint8Array,
    private readonly presence: Uint8Array,
  ) {}

  next(): Uint8Array {
    if (this.place >= this.presence.length * 8)
      throw new Malformed('a sibling without a presence bit');
    if (bit(this.presence, this.place++) === 0) return ZEROS;
    const hash = this.hashes.subarray(this.at, this.at + 32);
    this.at += 32;
    if (hash.length !== 32 || equal(hash, ZEROS))
      throw new Malformed('a sibling that is marked as present and is missing');
    return hash;
  }

  end(): void {
    if (this.at !== this.hashes.length || Math.ceil(this.place / 8) !== this.presence.length)
      throw new Malformed('unused siblings');
    for (; this.place < this.presence.length * 8; this.place++)
      if (bit(this.presence, this.place) === 1)
        throw new Malformed('a bit is set after the last sibling');
  }
}

function ascends(a: Uint8Array, b: Uint8Array): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! < b[i]!;
  return false;
}

function checkKeys(placed: readonly Placed[]): void {
  placed.forEach(({key, depth}, i) => {
    if (depth > DEPTH_MAX) throw new Malformed('a path that is longer than the tree is deep');
    if (i > 0 && !ascends(placed[i - 1]!.key.key, key.key))
      throw new Malformed('keys that do not ascend');
    for (let k = 0; key.other && k < depth; k++)
      if (bit(key.other.key, k) !== bit(key.key, k))
        throw new Malformed('the other leaf is at another position');
  });
}

/**
 * Fills in the siblings of all keys.  `end` is the hash where a key's path ends; when two end in one place, the first
 * one's stands, and the other's own path will not lead to the root unless it says the same.
 */
export function expand(
  scheme: Scheme,
  placed: readonly Placed[],
  hashes: Uint8Array,
  presence: Uint8Array,
  end: (one: Placed) => Uint8Array,
): void {
  // No key, or a key twice: that is said by another name, and there is nothing to walk to.
  if (placed.length === 0 || new Set(placed.map(({key}) => toHex(key.key))).size !== placed.length)
    return;
  const reader = new SiblingHashes(hashes, presence);
  checkKeys(placed);
  const below = (from: number, to: number, depth: number): Uint8Array => {
    const first = placed[from]!;
    if (placed.slice(from, to).some((one) => one.depth <= depth)) {
      if (placed.slice(from, to).some((one) => one.depth !== depth))
        throw new Malformed('a path that ends on the path of another key');
      return end(first);
    }
    let middle = from;
    while (middle < to && bit(placed[middle]!.key.key, depth) === 0) middle++;
    // Only one side has keys: the other's hash stands before all that is below.
    const sibling = middle === from || middle === to ? reader.next() : null;
    const left = middle === from ? sibling! : below(from, middle, depth + 1);
    const right = middle === to ? sibling! : below(middle, to, depth + 1);
    for (let i = from; i < to; i++) placed[i]!.key.siblings[depth] = i < middle ? right : left;
    return scheme.node(left, right);
  };
  below(0, placed.length, 0);
  reader.end();
}
