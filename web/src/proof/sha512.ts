// sha512.ts - SHA-512 (FIPS 180-4) with big integers: slow and short; only signatures need it.

const MASK = (1n << 64n) - 1n;

/** Whole part of the root of the given power. */
function root(value: bigint, exponent: bigint): bigint {
  let low = 0n,
    high = 1n << (BigInt(value.toString(2).length) / exponent + 1n);
  while (low < high) {
    const middle = (low + high + 1n) / 2n;
    if (middle ** exponent <= value) low = middle;
    else high = middle - 1n;
  }
  return low;
}

function primes(count: number): bigint[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++)
    if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found.map(BigInt);
}

let constants: {k: bigint[]; start: bigint[]} | null = null;

/** The first 64 bits of the fractions of cube and square roots of the first primes. */
function tables(): {k: bigint[]; start: bigint[]} {
  constants ??= {
    k: primes(80).map((prime) => root(prime << 192n, 3n) & MASK),
    start: primes(8).map((prime) => root(prime << 128n, 2n) & MASK),
  };
  return constants;
}

const rotate = (x: bigint, by: bigint): bigint => ((x >> by) | (x << (64n - by))) & MASK;

function block(state: bigint[], view: DataView, at: number, k: readonly bigint[]): void {
  const w: bigint[] = [];
  for (let i = 0; i < 16; i++) w.push(view.getBigUint64(at + 8 * i));
  for (let i = 16; i < 80; i++) {
    const x = w[i - 15]!,
      y = w[i - 2]!;
    w.push(
      (w[i - 16]! +
        (rotate(x, 1n) ^ rotate(x, 8n) ^ (x >> 7n)) +
        w[i - 7]! +
        (rotate(y, 19n) ^ rotate(y, 61n) ^ (y >> 6n))) &
        MASK,
    );
  }
  let [a, b, c, d, e, f, g, h] = state as [
    bigint,
    bigint,
    bigint,
    bigint,
    bigint,
    bigint,
    bigint,
    bigint,
  ];
  for (let i = 0; i < 80; i++) {
    const t1 =
      h +
      (rotate(e, 14n) ^ rotate(e, 18n) ^ rotate(e, 41n)) +
      ((e & f) ^ (~e & MASK & g)) +
      k[i]! +
      w[i]!;
    const t2 = (rotate(a, 28n) ^ rotate(a, 34n) ^ rotate(a, 39n)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = (d + t1) & MASK;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) & MASK;
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => {
    state[i] = (state[i]! + value) & MASK;
  });
}

export function sha512(message: Uint8Array): Uint8Array {
  const {k, start} = tables();
  const padded = new Uint8Array((message.length + 17 + 127) & ~127);
  padded.set(message);
  padded[message.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(message.length) * 8n);
  const state = [...start];
  for (let at = 0; at < padded.length; at += 128) block(state, view, at, k);
  const out = new Uint8Array(64);
  state.forEach((word, i) => {
    new DataView(out.buffer).setBigUint64(8 * i, word);
  });
  return out;
}
