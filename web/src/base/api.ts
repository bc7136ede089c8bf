// api.ts - requests to the server: one function, one kind of error, and every request can be
// aborted.

import {signal} from '@preact/signals';
import type {Problem} from './api-types';

export type {Problem};

export class ApiError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
    this.name = 'ApiError';
  }

  get status(): number {
    return this.problem.status;
  }
}

export type Query = Record<string, string | number | boolean | undefined | null>;

/** Where answers come from: a server, or the data of a file that carries its own. */
export interface Answers {
  get(path: string, query: Query, signal?: AbortSignal): Promise<unknown>;
  /** False where nothing can be asked of a server. */
  readonly live: boolean;
}

export const isSignedOut = signal(false);

export function target(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') params.set(name, String(value));
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

/** A name with slashes as a path: each part escaped, the slashes preserved. */
export function segments(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/');
}

function problemOf(status: number, body: unknown, text: string): Problem {
  if (body && typeof body === 'object' && 'detail' in body && 'status' in body)
    return body as Problem;
  return {
    type: 'about:blank',
    title: 'The server sent an unusable response',
    status,
    detail: text.slice(0, 300) || `HTTP status ${status}`,
  };
}

async function read(response: Response, asText = false): Promise<unknown> {
  const text = await response.text();
  if (asText && response.ok) return text;
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    if (response.ok)
      throw new ApiError(problemOf(response.status, null, 'the response is not JSON'));
  }
  if (response.status === 401) isSignedOut.value = true;
  if (!response.ok) throw new ApiError(problemOf(response.status, body, text));
  return body;
}

async function send(
  method: string,
  path: string,
  init: RequestInit,
  asText = false,
): Promise<unknown> {
  try {
    const response = await fetch(path, {
      method,
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      ...init,
    });
    return await read(response, asText);
  } catch (error) {
    if (error instanceof ApiError || (error instanceof DOMException && error.name === 'AbortError'))
      throw error;
    throw unreachable();
  }
}

function unreachable(): ApiError {
  return new ApiError({
    type: 'about:blank',
    title: 'The server cannot be reached',
    status: 0,
    detail: 'The server does not answer. Check that cortex serve is still running.',
  });
}

class Server implements Answers {
  readonly live = true;

  get(path: string, query: Query, abort?: AbortSignal): Promise<unknown> {
    return send('GET', target(path, query), abort ? {signal: abort} : {});
  }
}

let answers: Answers = new Server();

/** For a file that carries its data, and for tests. */
export function answerWith(other: Answers): void {
  answers = other;
}

export function isLive(): boolean {
  return answers.live;
}

export async function get<T>(path: string, query: Query = {}, abort?: AbortSignal): Promise<T> {
  return (await answers.get(path, query, abort)) as T;
}

/** A stored file as text, at most so many bytes of it. */
export async function getText(
  path: string,
  most: number,
  abort?: AbortSignal,
): Promise<{text: string; isCut: boolean}> {
  if (!answers.live) {
    const value = await answers.get(path, {}, abort);
    return {text: typeof value === 'string' ? value : JSON.stringify(value), isCut: false};
  }
  const response = await fetch(path, {
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    ...(abort ? {signal: abort} : {}),
  }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw unreachable();
  });
  if (!response.ok) await read(response);
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let size = 0;
  for (;;) {
    const part = await reader?.read();
    if (!part || part.done) return {text: text + decoder.decode(), isCut: false};
    size += part.value.length;
    text += decoder.decode(
      part.value.subarray(0, Math.max(0, part.value.length - Math.max(0, size - most))),
      {stream: true},
    );
    if (size <= most) continue;
    await reader?.cancel();
    return {text, isCut: true};
  }
}

/** The answer as it was written, for what readJson reads without losing a digit. */
export async function getAsWritten(
  path: string,
  query: Query = {},
  abort?: AbortSignal,
): Promise<string> {
  if (!answers.live) return JSON.stringify(await answers.get(path, query, abort));
  return (await send('GET', target(path, query), abort ? {signal: abort} : {}, true)) as string;
}

/** Sends a text as is: JSON of the user, of which no digit may change. */
export async function sendText<T>(path: string, text: string): Promise<T> {
  return (await send('POST', path, {
    headers: {'X-Cortex-Page': '1', 'Content-Type': 'application/json'},
    body: text,
  })) as T;
}

/** A file as it is; only of a server. */
export async function getFile(path: string, query: Query = {}): Promise<Blob> {
  let response: Response;
  try {
    response = await fetch(target(path, query), {
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
    });
  } catch {
    throw unreachable();
  }
  if (!response.ok) await read(response);
  // The name may be ambiguous: then the answer is a list of candidates.
  if (response.headers.get('Content-Type')?.includes('json'))
    throw new ApiError({
      type: 'about:blank',
      title: 'The id is ambiguous',
      status: 409,
      detail: 'Enter more characters of the id.',
    });
  return response.blob();
}

/** Changes something: the header is what no other page's form can send. */
export async function change<T>(
  method: 'POST' | 'DELETE' | 'PUT',
  path: string,
  body?: unknown,
): Promise<T> {
  const headers: Record<string, string> = {'X-Cortex-Page': '1'};
  const init: RequestInit = {headers};
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(body);
  }
  return (await send(method, path, init)) as T;
}

/** Turns the token of the address into a session; the token is not stored. */
export async function signIn(token: string): Promise<void> {
  await send('POST', '/api/v1/session', {
    headers: {Authorization: `Bearer ${token}`, 'X-Cortex-Page': '1'},
  });
  isSignedOut.value = false;
}
