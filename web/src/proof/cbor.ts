// cbor.ts - the strict reader of deterministic CBOR (ledger.md §2): one value has one encoding, and
// input that our encoder would not write is rejected with its offset.

import {concat} from './bytes';

export type Cbor =
  | number
  | string
  | boolean
  | null
  | Uint8Array
  | Cbor[]
  | Map<number | string, Cbor>;

export class NotCanonical extends Error {
  constructor(
    what: string,
    readonly offset: number,
  ) {
    super(`${what} at byte ${offset}`);
    this.name = 'NotCanonical';
  }
}

const DEPTH_MAX = 32;

class Reader {
  at = 0;
  private readonly view: DataView;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  need(size: number, start: number): void {
    if (size > this.bytes.length - this.at) throw new NotCanonical('unexpected end of data', start);
  }

  /** The argument of a head; shortest form only. */
  argument(info: number, start: number): number {
    if (info < 24) return info;
    const width = [1, 2, 4, 8][info - 24];
    if (width === undefined) throw new NotCanonical('an indefinite length', start);
    this.need(width, start);
    const big = width === 8 ? this.view.getBigUint64(this.at) : 0n;
    const value =
      width === 1
        ? this.view.getUint8(this.at)
        : width === 2
          ? this.view.getUint16(this.at)
          : width === 4
            ? this.view.getUint32(this.at)
            : Number(big);
    const least = [24, 0x100, 0x10000, 0x100000000][info - 24]!;
    if (value < least) throw new NotCanonical('a number that is not in its shortest form', start);
    this.at += width;
    // Times in nanoseconds are beyond 2^53: they are stored as doubles, for display only.
    return value;
  }

  readBytes(size: number, start: number): Uint8Array {
    this.need(size, start);
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }
}

function readText(reader: Reader, size: number, start: number): string {
  const raw = reader.readBytes(size, start);
  try {
    return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(raw);
  } catch {
    throw new NotCanonical('text that is not UTF-8', start);
  }
}

function readMap(reader: Reader, count: number, depth: number): Map<number | string, Cbor> {
  const map = new Map<number | string, Cbor>();
  let before: Uint8Array | null = null;
  for (let i = 0; i < count; i++) {
    const start = reader.at;
    const key = readValue(reader, depth + 1);
    if (typeof key !== 'number' && typeof key !== 'string')
      throw new NotCanonical('a key of the wrong type', start);
    const spelled = reader.bytes.subarray(start, reader.at);
    if (before !== null && !isLess(before, spelled))
      throw new NotCanonical('keys out of order', start);
    before = spelled;
    map.set(key, readValue(reader, depth + 1));
  }
  return map;
}

function isLess(a: Uint8Array, b: Uint8Array): boolean {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i]! < b[i]!;
  return a.length < b.length;
}

function readHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1,
    exponent = (bits >> 10) & 31,
    fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return (
    sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15))
  );
}

/** Whether a half would have the same value. */
function isHalf(value: number): boolean {
  const size = Math.abs(value);
  if (size === 0 || size === Infinity) return true;
  const exponent = Math.max(Math.floor(Math.log2(size)), -14);
  return size <= 65504 && Number.isInteger(size / 2 ** (exponent - 10));
}

function readSimple(reader: Reader, info: number, start: number): Cbor {
  if (info === 20 || info === 21) return info === 21;
  if (info === 22) return null;
  const width = {25: 2, 26: 4, 27: 8}[info];
  if (width === undefined) throw new NotCanonical('a simple value', start);
  const raw = reader.readBytes(width, start);
  const view = new DataView(raw.buffer, raw.byteOffset, width);
  if (width === 2) {
    const half = readHalf(view.getUint16(0));
    if (Number.isNaN(half) && view.getUint16(0) !== 0x7e00)
      throw new NotCanonical('a non-canonical NaN', start);
    return half;
  }
  const value = width === 4 ? view.getFloat32(0) : view.getFloat64(0);
  if (Number.isNaN(value) || (width === 4 ? isHalf(value) : Math.fround(value) === value))
    throw new NotCanonical('a float that is not in its shortest form', start);
  return value;
}

function readValue(reader: Reader, depth: number): Cbor {
  const start = reader.at;
  if (depth > DEPTH_MAX) throw new NotCanonical('values nested too deeply', start);
  const head = reader.readBytes(1, start)[0]!;
  const major = head >> 5,
    info = head & 31;
  if (major === 7) return readSimple(reader, info, start);
  const value = reader.argument(info, start);
  switch (major) {
    case 0:
      return value;
    case 1:
      return -1 - value;
    case 2:
      return reader.readBytes(value, start);
    case 3:
      return readText(reader, value, start);
    case 4: {
      reader.need(value, start);
      return Array.from({length: value}, () => readValue(reader, depth + 1));
    }
    case 5: {
      reader.need(2 * value, start);
      return readMap(reader, value, depth);
    }
    default:
      throw new NotCanonical('a tag', start);
  }
}

export function decode(bytes: Uint8Array): Cbor {
  const reader = new Reader(bytes);
  const value = readValue(reader, 0);
  if (reader.at !== bytes.length)
    throw new NotCanonical('trailing bytes after the value', reader.at);
  return value;
}

/** The members of a map with their spellings, so that some can be left out and the rest put together again. */
export function splitMap(bytes: Uint8Array): {key: number | string; bytes: Uint8Array}[] {
  const reader = new Reader(bytes);
  const head = reader.readBytes(1, 0)[0]!;
  if (head >> 5 !== 5) throw new NotCanonical('not a map', 0);
  const count = reader.argument(head & 31, 0);
  const members = [];
  for (let i = 0; i < count; i++) {
    const start = reader.at;
    const key = readValue(reader, 1) as number | string;
    readValue(reader, 1);
    members.push({key, bytes: bytes.subarray(start, reader.at)});
  }
  return members;
}

export function joinMap(members: readonly {bytes: Uint8Array}[]): Uint8Array {
  if (members.length >= 24) throw new Error('too many members');
  return concat(Uint8Array.of(0xa0 | members.length), ...members.map((member) => member.bytes));
}

// --- taking members of maps ---------------------------------------------------------------------

export class Wrong extends Error {}

export function asMap(value: Cbor | undefined, what: string): Map<number | string, Cbor> {
  if (!(value instanceof Map)) throw new Wrong(`${what}: expected a map`);
  return value;
}
export function asList(value: Cbor | undefined, what: string): Cbor[] {
  if (!Array.isArray(value)) throw new Wrong(`${what}: expected a list`);
  return value;
}
export function asBytes(value: Cbor | undefined, what: string, size?: number): Uint8Array {
  if (!(value instanceof Uint8Array) || (size !== undefined && value.length !== size))
    throw new Wrong(`${what}: expected ${size === undefined ? '' : `${size} `}bytes`);
  return value;
}
export function asNumber(value: Cbor | undefined, what: string): number {
  if (typeof value !== 'number') throw new Wrong(`${what}: expected a number`);
  return value;
}
export function asText(value: Cbor | undefined, what: string): string {
  if (typeof value !== 'string') throw new Wrong(`${what}: expected text`);
  return value;
}

/** Refuses members other than these. */
export function only(
  map: Map<number | string, Cbor>,
  what: string,
  known: readonly (number | string)[],
): void {
  for (const key of map.keys())
    if (!known.includes(key)) throw new Wrong(`${what}: unknown member ${key}`);
}
