// asked.ts - the fleet, asked for again and again while a screen shows it.

import {useEffect, useRef, useState} from 'preact/hooks';
import {get} from '../../base/api';
import type {FleetNodes} from '../../base/api-types';

const AGAIN_MS = 2000;
/** After a failure, and for what is said of the time that has passed. */
const SECOND_MS = 1000;
/** A node holds connections while no node has the part; a process that is frozen says nothing. */
const PATIENCE_MS = 15000;

export interface Asked {
  value: FleetNodes | null;
  /** Since the answer came. */
  sinceMs: number;
  /** Why the last question had no answer; the answer before it stays. */
  error: Error | null;
  again(): void;
}

export function useNodes(isPaused: boolean): Asked {
  const [state, setState] = useState<{
    value: FleetNodes | null;
    at: number;
    error: Error | null;
  }>({value: null, at: 0, error: null});
  const [now, setNow] = useState(() => performance.now());
  const again = useRef<() => void>(() => {});
  useEffect(() => {
    let timer = 0;
    let hasEnded = false;
    let asking: AbortController | null = null;
    // One question at a time; the answer before is shown until the next one is there.
    const ask = (): void => {
      clearTimeout(timer);
      if (asking) return;
      const abort = new AbortController();
      asking = abort;
      const patience = setTimeout(() => abort.abort(), PATIENCE_MS);
      get<FleetNodes>('/api/v1/nodes', {}, abort.signal)
        .then(
          (value) => ({value, error: null}),
          (error: Error) => ({
            value: null,
            error: abort.signal.aborted ? new Error('There was no answer in 15 s.') : error,
          }),
        )
        .then(({value, error}) => {
          clearTimeout(patience);
          asking = null;
          if (hasEnded) return;
          const at = performance.now();
          setNow(at);
          setState((known) => (value ? {value, at, error: null} : {...known, error}));
          if (!isPaused) timer = window.setTimeout(ask, error ? SECOND_MS : AGAIN_MS);
        });
    };
    again.current = ask;
    ask();
    const tick = window.setInterval(() => setNow(performance.now()), SECOND_MS);
    return () => {
      hasEnded = true;
      asking?.abort();
      clearTimeout(timer);
      clearInterval(tick);
    };
  }, [isPaused]);
  return {
    value: state.value,
    sinceMs: Math.max(0, now - state.at),
    error: state.error,
    again: () => again.current(),
  };
}
