// load.ts - an answer that is on its way, here, or has failed, as a signal.

import {type ReadonlySignal, signal} from '@preact/signals';
import {useEffect, useMemo} from 'preact/hooks';
import {type ApiError, get, getAsWritten, type Query} from './api';

export interface Loaded<T> {
  /** What came last, kept while something newer is on its way. */
  value: T | null;
  error: ApiError | Error | null;
  isLoading: boolean;
}

export class Loader<T> {
  private readonly state = signal<Loaded<T>>({value: null, error: null, isLoading: false});
  private abort: AbortController | null = null;
  private asked = '';

  constructor(
    private readonly fetch: (
      path: string,
      query: Query,
      abort?: AbortSignal,
    ) => Promise<unknown> = get,
  ) {}

  get signal(): ReadonlySignal<Loaded<T>> {
    return this.state;
  }

  /** Asks unless the same was asked last; whatever else is on its way is taken back. */
  ask(path: string, query: Query = {}, keep = true): void {
    const key = path + JSON.stringify(query);
    if (key === this.asked) return;
    this.asked = key;
    this.again(path, query, keep);
  }

  again(path: string, query: Query = {}, keep = true): void {
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.state.value = {value: keep ? this.state.value.value : null, error: null, isLoading: true};
    (this.fetch(path, query, abort.signal) as Promise<T>).then(
      (value) => {
        if (!abort.signal.aborted) this.state.value = {value, error: null, isLoading: false};
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        this.asked = '';
        this.state.value = {value: null, error: error as Error, isLoading: false};
      },
    );
  }

  stop(): void {
    this.abort?.abort();
    this.asked = '';
  }
}

/** The answer to a question, asked anew when it changes; a null path asks nothing. */
export function useAnswer<T>(path: string | null, query: Query = {}, keep = true): Loaded<T> {
  return useLoader<T>(
    useMemo(() => new Loader<T>(), []),
    path,
    query,
    keep,
  );
}

/** The same as the text that came, for numbers that must keep their digits. */
export function useText(path: string | null, query: Query = {}, keep = true): Loaded<string> {
  return useLoader<string>(
    useMemo(() => new Loader<string>(getAsWritten), []),
    path,
    query,
    keep,
  );
}

function useLoader<T>(
  loader: Loader<T>,
  path: string | null,
  query: Query,
  keep: boolean,
): Loaded<T> {
  const key = path === null ? null : path + JSON.stringify(query);
  useEffect(() => {
    if (path !== null) loader.ask(path, query, keep);
  }, [key]);
  useEffect(() => () => loader.stop(), []);
  const now = loader.signal.value;
  return path === null ? {value: null, error: null, isLoading: false} : now;
}
