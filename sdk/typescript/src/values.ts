// Values as JSON: anything a program hands over becomes plain JSON of bounded size, and a step
// becomes the bytes that are sent and signed (docs/formats/lattice.md §3.2, steps.md §5).
import {createHash} from 'node:crypto';
import {messageOf} from './errors.js';

export type Json = {[name: string]: unknown};

export const MAX_DEPTH = 48; // nested containers of one value
export const MAX_ITEMS = 20_000; // values within one value
export const MAX_TEXT = 64 * 1024; // characters of one text
export const SIGNED_PREFIX = 'cortex.step.v1\n';

const NOT_ASCII = /[\u007f-\uffff]/g;
const PLAIN_ASCII = /^[ !#-[\]-~]*$/;

function quoted(text: string): string {
  if (PLAIN_ASCII.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(
    NOT_ASCII,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** Order of names by code point; JavaScript's own order is by UTF-16 unit, which differs from U+E000 on. */
function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i);
    let y = b.charCodeAt(i);
    if (x === y) continue;
    // Surrogates are above all other units.
    if (x >= 0xd800 && y >= 0xd800) {
      x = x >= 0xe000 ? x - 0x800 : x + 0x2000;
      y = y >= 0xe000 ? y - 0x800 : y + 0x2000;
    }
    return x - y;
  }
  return a.length - b.length;
}

/** The spelling of lattice.md §3.2. A whole number below 1e21 is written as an integer. */
function number(value: number): string {
  if (Object.is(value, -0)) return '0';
  const text = String(value);
  const size = Math.abs(value);
  if (size >= 1e-4 || value === 0) return text;
  // JavaScript writes 1e-7 as "1e-7", and 0.00001 without exponent; the format has 1e-07 and 1e-05.
  const [digits, exponent] = value.toExponential().split('e-') as [string, string];
  return `${digits}e-${exponent.padStart(2, '0')}`;
}

/** Canonical JSON: sorted names, no spaces, ASCII. Members that are undefined are left out. */
export function canonical(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quoted(value);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no JSON form`);
      return number(value);
    case 'bigint':
      return value.toString();
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object': {
      if (value === null) return 'null';
      if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
      const names = Object.keys(value).sort(byCodePoint);
      let text = '{';
      for (const name of names) {
        const member = (value as Json)[name];
        if (member === undefined) continue;
        text += (text.length > 1 ? ',' : '') + quoted(name) + ':' + canonical(member);
      }
      return text + '}';
    }
    default:
      throw new TypeError(`${typeof value} has no JSON form`);
  }
}

export function digest(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

/** The text, or its beginning and what the whole was; nothing is shortened without saying so. */
export function cut(text: string, limit = MAX_TEXT): string {
  if (text.length <= limit) return text;
  const whole = Buffer.from(text, 'utf8');
  const last = text.charCodeAt(limit - 1);
  const end = last >= 0xd800 && last < 0xdc00 ? limit - 1 : limit; // not in the middle of a pair
  return `${text.slice(0, end)}… [cut: ${whole.length} bytes, sha256 ${digest(whole)}]`;
}

/** One conversion; counts the values that it has made. */
class Conversion {
  private left = MAX_ITEMS;
  private readonly open = new Set<object>();

  constructor(private readonly limit: number) {}

  of(value: unknown, depth = 0): unknown {
    switch (typeof value) {
      case 'string':
        return value.length <= this.limit ? value : cut(value, this.limit);
      case 'number':
        return Number.isFinite(value) ? value : String(value);
      case 'boolean':
        return value;
      case 'undefined':
        return null;
      case 'bigint': {
        const text = value.toString();
        return text.length <= 78 ? value : cut(text, this.limit);
      }
      case 'symbol':
        return cut(value.toString(), 500);
      case 'function':
        return cut(`[function] ${value.name}`, 500);
    }
    if (typeof value !== 'object' || value === null) return null;
    this.left--;
    if (this.left < 0) return `[more than ${MAX_ITEMS} values]`;
    if (depth > MAX_DEPTH) return `[deeper than ${MAX_DEPTH} levels]`;
    if (this.open.has(value)) return '[a value that contains itself]';
    this.open.add(value);
    try {
      return this.object(value, depth);
    } catch (error) {
      return `[object: ${messageOf(error).slice(0, 200)} while it was read]`;
    } finally {
      this.open.delete(value);
    }
  }

  private object(value: object, depth: number): unknown {
    if (Array.isArray(value)) return this.list(value, depth);
    if (value instanceof Uint8Array) return {bytes: value.length, sha256: digest(value)};
    if (value instanceof ArrayBuffer) return this.object(new Uint8Array(value), depth);
    if (ArrayBuffer.isView(value)) {
      return this.object(new Uint8Array(value.buffer, value.byteOffset, value.byteLength), depth);
    }
    if (value instanceof Date) {
      return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
    }
    if (value instanceof Error) {
      return {type: value.name, message: cut(value.message, this.limit)};
    }
    if (value instanceof Map) {
      const made: Json = {};
      for (const [name, member] of value)
        add(made, this.name(String(name)), this.of(member, depth + 1));
      return made;
    }
    if (value instanceof Set) return this.list([...value], depth);
    if (value instanceof URL || value instanceof RegExp) return cut(String(value), this.limit);
    const toJSON = (value as {toJSON?: unknown}).toJSON;
    if (typeof toJSON === 'function') {
      const made: unknown = toJSON.call(value);
      if (made !== value) return this.of(made, depth + 1);
    }
    const made: Json = {};
    for (const name of Object.keys(value)) {
      const member = (value as Json)[name];
      if (member === undefined || typeof member === 'function') continue;
      add(made, this.name(name), this.of(member, depth + 1));
    }
    return made;
  }

  private list(values: unknown[], depth: number): unknown[] {
    const made: unknown[] = [];
    for (const value of values) {
      made.push(this.of(value, depth + 1));
      if (this.left < 0) break;
    }
    return made;
  }

  private name(name: string): string {
    return cut(name, 1024);
  }
}

/** A member, also one with the name `__proto__`. */
function add(made: Json, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(made, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    made[name] = value;
  }
}

/** `value` as JSON. Never throws: what has no JSON form is shown by its type. */
export function plain(value: unknown, limit = MAX_TEXT): unknown {
  try {
    return new Conversion(limit).of(value);
  } catch (error) {
    return `[${typeof value}: ${messageOf(error).slice(0, 200)} while it was read]`;
  }
}

function contentOf(step: Json, without: readonly string[]): Json {
  const members: Json = {event: {}, state_delta: {}, ...step};
  for (const name of without) delete members[name];
  return members;
}

/** The text that is signed: all of the step but `signature`, event and state_delta in place. */
export function toSign(step: Json): string {
  return SIGNED_PREFIX + canonical(contentOf(step, ['signature']));
}

/** What two sendings of one key must agree in: all but `key` and `signature` (steps.md §4). */
export function contentDigest(step: Json): string {
  return digest(canonical(contentOf(step, ['signature', 'key'])));
}

/** The journal of an agent's steps: its name, '/', '%' and controls as %XX (steps.md §3). */
export function journalOf(agent: string): string {
  return agent.replace(
    /[/%\u0000-\u001f\u007f]/g,
    (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0'),
  );
}

/** The text of a message's content: a string, or the text parts of a list of blocks. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) {
    const parts = value.map(textOf).filter((part) => part);
    return parts.length > 0 ? parts.join('\n\n') : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const found = (value as Json).text ?? (value as Json).content;
  return found === undefined || found === null ? undefined : textOf(found);
}

/** What failed, as members of an event: `error` is its message, for people; `error_type` its class. */
export function errorMembers(error: unknown): Json {
  if (error instanceof Error) {
    return {error: cut(error.message, 8192) || error.name, error_type: error.name};
  }
  const found = plain(error);
  if (typeof found !== 'object' || found === null || Array.isArray(found)) {
    return {error: typeof found === 'string' ? found : canonical(found)};
  }
  const {message, type} = found as Json;
  const made: Json = {error: typeof message === 'string' && message ? message : canonical(found)};
  if (typeof type === 'string') made.error_type = type;
  return made;
}
