// sha256.ts - SHA-256 (FIPS 180-4). The browser's own is asynchronous and missing on pages that
// were loaded over plain HTTP from another machine; a proof has a few hundred hashes, so this is
// fast enough.

import {concat} from './bytes';

const K = new Uint32Array(64);
const START = new Uint32Array(8);

/** Constants are the fractions of roots of the first primes; they are computed, not copied. */
function fraction(root: (x: number) => number, prime: number): number {
  return Math.floor((root(prime) % 1) * 2 ** 32) >>> 0;
}

(function fill(): void {
  let count = 0;
  for (let n = 2; count < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n && prime; d++) prime = n % d !== 0;
    if (!prime) continue;
    if (count < 8) START[count] = fraction(Math.sqrt, n);
    K[count++] = fraction(Math.cbrt, n);
  }
})();

const rotate = (x: number, by: number): number => (x >>> by) | (x << (32 - by));

function block(state: Uint32Array, view: DataView, at: number, w: Uint32Array): void {
  for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15]!,
      y = w[i - 2]!;
    w[i] =
      w[i - 16]! +
      (rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3)) +
      w[i - 7]! +
      (rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  for (let i = 0; i < 64; i++) {
    const t1 =
      (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) |
      0;
    const t2 = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => {
    state[i] = state[i]! + value;
  });
}

export function sha256(...parts: readonly Uint8Array[]): Uint8Array {
  const message = parts.length === 1 ? parts[0]! : concat(...parts);
  const padded = new Uint8Array((message.length + 9 + 63) & ~63);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n);
  const state = START.slice(),
    w = new Uint32Array(64);
  for (let at = 0; at < padded.length; at += 64) block(state, view, at, w);
  const out = new Uint8Array(32);
  state.forEach((word, i) => {
    new DataView(out.buffer).setUint32(4 * i, word);
  });
  return out;
}
