// load.ts - an answer as a signal: loading, loaded, or failed.

import {type ReadonlySignal, signal} from '@preact/signals';
import {useEffect, useMemo} from 'preact/hooks';
import {type ApiError, get, getAsWritten, type Query} from './api';

export interface Loaded<T> {
  /** The last answer, shown while a newer one is loading. */
  value: T | null;
  error: ApiError | Error | null;
  isLoading: boolean;
}

export class Loader<T> {
  private readonly state = signal<Loaded<T>>({value: null, error: null, isLoading: false});
  private abort: AbortController | null = null;
  private loadedKey = '';

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
  load(path: string, query: Query = {}, keepValue = true): void {
    const key = path + JSON.stringify(query);
    if (key === this.loadedKey) return;
    this.loadedKey = key;
    this.again(path, query, keepValue);
  }

  again(path: string, query: Query = {}, keepValue = true): void {
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.state.value = {
      value: keepValue ? this.state.value.value : null,
      error: null,
      isLoading: true,
    };
    (this.fetch(path, query, abort.signal) as Promise<T>).then(
      (value) => {
        if (!abort.signal.aborted) this.state.value = {value, error: null, isLoading: false};
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        this.loadedKey = '';
        this.state.value = {value: null, error: error as Error, isLoading: false};
      },
    );
  }

  /**
   * Asks for what is shown once more, quietly: nothing is marked as loading, and a failure leaves
   * what is there. An answer to something else than is shown by then is dropped.
   */
  async renew(path: string, query: Query = {}): Promise<T | null> {
    const {loadedKey, abort} = this;
    try {
      const value = (await this.fetch(path, query)) as T;
      if (this.loadedKey !== loadedKey || this.abort !== abort) return null;
      this.state.value = {value, error: null, isLoading: false};
      return value;
    } catch {
      return null;
    }
  }

  stop(): void {
    this.abort?.abort();
    this.loadedKey = '';
  }
}

/** The answer to a request, loaded again when the request changes; a null path loads nothing. */
export function useAnswer<T>(path: string | null, query: Query = {}, keepValue = true): Loaded<T> {
  return useLoader<T>(
    useMemo(() => new Loader<T>(), []),
    path,
    query,
    keepValue,
  );
}

/** The same as the text that came, for numbers that must keep their digits. */
export function useText(path: string | null, query: Query = {}, keepValue = true): Loaded<string> {
  return useLoader<string>(
    useMemo(() => new Loader<string>(getAsWritten), []),
    path,
    query,
    keepValue,
  );
}

function useLoader<T>(
  loader: Loader<T>,
  path: string | null,
  query: Query,
  keepValue: boolean,
): Loaded<T> {
  const key = path === null ? null : path + JSON.stringify(query);
  useEffect(() => {
    if (path !== null) loader.load(path, query, keepValue);
  }, [key]);
  useEffect(() => () => loader.stop(), []);
  const now = loader.signal.value;
  return path === null ? {value: null, error: null, isLoading: false} : now;
}
