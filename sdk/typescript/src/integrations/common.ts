// What the integrations share. Reading a shape never throws: what is not as expected is left out, and
// what was read is recorded.
import {UsageError} from '../errors.js';
import {registry} from '../exits.js';
import {isThenable, Recorder, sinceNs} from '../recorder.js';
import {canonical, type Json, plain, textOf} from '../values.js';

/** The recorder that `init` made last in this process. */
export function current(): Recorder {
  const found = registry().current as Recorder | undefined;
  if (!found) throw new UsageError('nothing records: call init({agent}) first');
  return found;
}

/** A member of an object, by its path; undefined where there is none. */
export function member(value: unknown, ...names: string[]): unknown {
  for (const name of names) {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function'))
      return undefined;
    value = (value as Json)[name];
  }
  return value === null ? undefined : value;
}

export function first(value: unknown, ...names: string[]): unknown {
  for (const name of names) {
    const found = member(value, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function items(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** JSON in a text becomes its value. */
export function decoded(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function count(value: unknown): number | undefined {
  // The AI SDK has {total, noCache, ...} in place of a number.
  const found = typeof value === 'object' ? member(value, 'total') : value;
  return typeof found === 'number' && Number.isFinite(found) ? found : undefined;
}

export function tokensOf(usage: unknown): Json | undefined {
  const found = {
    input: count(first(usage, 'input_tokens', 'prompt_tokens', 'inputTokens', 'promptTokens')),
    output: count(
      first(usage, 'output_tokens', 'completion_tokens', 'outputTokens', 'completionTokens'),
    ),
    cached: count(
      first(usage, 'cache_read_input_tokens', 'cached_input_tokens', 'cachedInputTokens') ??
        member(usage, 'prompt_tokens_details', 'cached_tokens') ??
        member(usage, 'input_tokens_details', 'cached_tokens') ??
        member(usage, 'input_token_details', 'cache_read') ??
        member(usage, 'inputTokens', 'cacheRead'),
    ),
  };
  const made: Json = {};
  for (const [name, value] of Object.entries(found)) if (value !== undefined) made[name] = value;
  return Object.keys(made).length > 0 ? made : undefined;
}

const ROLES: {[name: string]: string} = {human: 'user', ai: 'assistant'};

function roleOf(message: unknown): string {
  const getType = member(message, '_getType') ?? member(message, 'getType');
  const type = typeof getType === 'function' ? (getType.call(message) as unknown) : undefined;
  const found = String(type ?? first(message, 'role', 'type') ?? 'user');
  return ROLES[found] ?? found;
}

/** What a model was given: the messages after its own last one (docs/formats/imports.md §1.15). */
export function newMessages(messages: unknown): Json[] {
  if (typeof messages === 'string') return [{role: 'user', text: messages}];
  let given: Json[] = [];
  for (const message of items(messages)) {
    const role = roleOf(message);
    if (role === 'assistant' || role === 'function_call' || role === 'reasoning') {
      given = [];
      continue;
    }
    const said = first(message, 'content', 'text', 'output');
    given.push({role, text: textOf(said) ?? (said === undefined ? '' : canonical(plain(said)))});
  }
  return given;
}

/** Adds what is there: no undefined, no empty text or list. */
export function put(event: Json, members: Json): Json {
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined || value === null || value === '') continue;
    if (Array.isArray(value) && value.length === 0) continue;
    event[name] = value;
  }
  return event;
}

export class Timer {
  private readonly started = process.hrtime.bigint();

  get ns(): number {
    return sinceNs(this.started);
  }
}

/** Runs what reads and records; the program goes on whatever comes of it, and it is said. */
export function guard(cx: Recorder, read: () => void): void {
  try {
    read();
  } catch (error) {
    cx._failed(error);
  }
}

const MARK = Symbol.for('@cortex/recorder wrapped');

type Method = (...args: unknown[]) => unknown;

/** Replaces a method of one object, once; false when there is no such method. */
export function wrapMethod(
  owner: unknown,
  name: string,
  make: (original: Method) => Method,
): boolean {
  const original = member(owner, name) as (Method & {[MARK]?: boolean}) | undefined;
  if (typeof original !== 'function') return false;
  if (original[MARK]) return true;
  const wrapped = make(original.bind(owner)) as Method & {[MARK]?: boolean};
  wrapped[MARK] = true;
  (owner as Json)[name] = wrapped;
  return true;
}

/** Calls it, and `done` after it or after its promise; the result is handed on unchanged. */
export function callRecorded(
  call: () => unknown,
  done: (result: unknown, error: unknown) => void,
): unknown {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    done(undefined, error ?? 'thrown without a value');
    throw error;
  }
  if (!isThenable(result)) {
    done(result, undefined);
    return result;
  }
  return result.then(
    (value) => {
      done(value, undefined);
      return value;
    },
    (error: unknown) => {
      done(undefined, error ?? 'rejected without a reason');
      throw error;
    },
  );
}

/** The items of a stream, unchanged; `finish` is called once, at its end. */
export async function* recordedItems<T>(
  iterator: AsyncIterator<T>,
  see: (item: T) => void,
  finish: (error?: unknown) => void,
): AsyncGenerator<T> {
  let ended = false;
  try {
    for (;;) {
      const next = await iterator.next();
      if (next.done) {
        ended = true;
        break;
      }
      see(next.value);
      yield next.value;
    }
    finish();
  } catch (error) {
    ended = true;
    finish(error);
    throw error;
  } finally {
    if (!ended) {
      finish(); // the program reads no further
      await iterator.return?.();
    }
  }
}
