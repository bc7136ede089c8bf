// followed.ts - an answer that is asked for again when a session moves.

import {useEffect, useRef, useState} from 'preact/hooks';
import {follow} from '../../base/stream';

/** Several entries of one moment are one look. */
const GATHER_MS = 200;
/** Without the stream it is asked for again all the same. */
const AGAIN_MS = 5000;

export interface Followed<T> {
  value: T | null;
  error: Error | null;
  isUp: boolean;
  again(): void;
}

export function useSessions<T>(ask: (abort: AbortSignal) => Promise<T>, key: string): Followed<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isUp, setUp] = useState(false);
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    let isAsking = false;
    let isStale = false;
    setValue(null);
    setError(null);
    const soon = (ms: number): void => {
      clearTimeout(timer);
      timer = window.setTimeout(load, ms);
    };
    // One question at a time; what is heard meanwhile is asked after it.
    const load = (): void => {
      if (isAsking) {
        isStale = true;
        return;
      }
      isAsking = true;
      isStale = false;
      ask(abort.signal)
        .then(
          (found) => {
            if (abort.signal.aborted) return;
            setValue(found);
            setError(null);
          },
          (failed: Error) => {
            if (!abort.signal.aborted) setError(failed);
          },
        )
        .finally(() => {
          isAsking = false;
          if (!abort.signal.aborted) soon(isStale ? GATHER_MS : AGAIN_MS);
        });
    };
    again.current = load;
    load();
    const stream = follow('/api/v1/feed?hints=true', ['session'], () => soon(GATHER_MS), setUp);
    return () => {
      abort.abort();
      clearTimeout(timer);
      stream.close();
    };
  }, [key]);
  return {value, error, isUp, again: () => again.current()};
}
