// ed25519.ts - verifies Ed25519 signatures (RFC 8032 §5.1.7), by cortex-verify's rule: S below the
// group's order, A canonical, neither A nor R of small order, no cofactor, R compared byte by byte.
// Browsers disagree about the rest, and older ones have no Ed25519. All values are public, so
// nothing here needs constant time.

import {concat, equal} from './bytes';
import {sha512} from './sha512';

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const mod = (a: bigint, m = P): bigint => ((a % m) + m) % m;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = (b * b) % P)
    if (e & 1n) result = (result * b) % P;
  return result;
}

const D = mod(-121665n * power(121666n, P - 2n));
const ROOT_OF_MINUS_1 = power(2n, (P - 1n) / 4n);

/** Extended coordinates: x = X/Z, y = Y/Z, XY = ZT. */
interface Point {
  X: bigint;
  Y: bigint;
  Z: bigint;
  T: bigint;
}

const ZERO: Point = {X: 0n, Y: 1n, Z: 1n, T: 0n};

function add(p: Point, q: Point): Point {
  const a = mod((p.Y - p.X) * (q.Y - q.X)),
    b = mod((p.Y + p.X) * (q.Y + q.X));
  const c = mod(2n * p.T * q.T * D),
    d = mod(2n * p.Z * q.Z);
  const e = b - a,
    f = d - c,
    g = d + c,
    h = b + a;
  return {X: mod(e * f), Y: mod(g * h), Z: mod(f * g), T: mod(e * h)};
}

function times(point: Point, scalar: bigint): Point {
  let result = ZERO;
  for (let p = point, s = scalar; s > 0n; s >>= 1n, p = add(p, p))
    if (s & 1n) result = add(result, p);
  return result;
}

function number(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length; i-- > 0; ) value = (value << 8n) | BigInt(bytes[i]!);
  return value;
}

function encode(point: Point): Uint8Array {
  const inverse = power(point.Z, P - 2n);
  const x = mod(point.X * inverse);
  let y = mod(point.Y * inverse);
  const out = new Uint8Array(32);
  for (let i = 0; i < 32; i++, y >>= 8n) out[i] = Number(y & 255n);
  out[31]! |= Number(x & 1n) << 7;
  return out;
}

/** Null when the bytes are no point, or spell one in another way than the shortest. */
function decodePoint(bytes: Uint8Array): Point | null {
  const sign = BigInt(bytes[31]! >> 7);
  const y = number(bytes) & (2n ** 255n - 1n);
  if (y >= P) return null;
  const u = mod(y * y - 1n),
    v = mod(D * y * y + 1n);
  let x = mod(u * power(v, 3n) * power(u * power(v, 7n), (P - 5n) / 8n));
  if (mod(v * x * x) === mod(-u)) x = mod(x * ROOT_OF_MINUS_1);
  if (mod(v * x * x) !== u) return null;
  if (x === 0n && sign === 1n) return null;
  if ((x & 1n) !== sign) x = P - x;
  return {X: x, Y: y, Z: 1n, T: mod(x * y)};
}

function isSmall(point: Point): boolean {
  const eight = times(point, 8n);
  return eight.X === 0n && eight.Y === eight.Z;
}

const BASE = decodePoint(Uint8Array.from({length: 32}, (_, i) => (i === 0 ? 0x58 : 0x66)))!;

export function verifyEd25519(
  key: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  if (key.length !== 32 || signature.length !== 64) return false;
  const rBytes = signature.subarray(0, 32),
    s = number(signature.subarray(32));
  if (s >= L) return false;
  const a = decodePoint(key),
    r = decodePoint(rBytes);
  if (!a || isSmall(a) || (r && isSmall(r))) return false;
  const k = number(sha512(concat(rBytes, key, message))) % L;
  const minusA = {X: mod(-a.X), Y: a.Y, Z: a.Z, T: mod(-a.T)};
  return equal(encode(add(times(BASE, s), times(minusA, k))), rBytes);
}
