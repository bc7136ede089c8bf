// stream.ts - server-sent events, with a delay between reconnects.

import {isLive} from './api';

export interface Stream {
  close(): void;
}

/** Calls `take` with each event's name, data, id, and the data as it came; `state` with whether the stream is up. */
export function follow(
  path: string,
  names: readonly string[],
  onEvent: (name: string, data: unknown, id: string, text: string) => void,
  state?: (up: boolean) => void,
): Stream {
  if (!isLive() || typeof EventSource === 'undefined') return {close() {}};
  let source: EventSource | null = null;
  let timer = 0;
  let wait = 1000;
  const open = (): void => {
    source = new EventSource(path, {withCredentials: true});
    source.onopen = () => {
      wait = 1000;
      state?.(true);
    };
    source.onerror = () => {
      state?.(false);
      if (source?.readyState !== EventSource.CLOSED) return;
      timer = window.setTimeout(open, wait);
      wait = Math.min(wait * 2, 30000);
    };
    for (const name of names)
      source.addEventListener(name, (event) => {
        const message = event as MessageEvent<string>;
        try {
          onEvent(name, JSON.parse(message.data), message.lastEventId, message.data);
        } catch {
          // A line that is no JSON is no event of ours.
        }
      });
  };
  open();
  return {
    close() {
      clearTimeout(timer);
      source?.close();
    },
  };
}
