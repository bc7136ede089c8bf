// What happens when the process ends. Steps are on the disk already; here they are delivered, if that
// takes no longer than `exitTimeoutMs`.
//
//   the event loop is empty   delivered (beforeExit); the process ends after that
//   SIGTERM, SIGINT, SIGHUP   delivered, then the signal ends the process, unless the program has a
//                             handler of its own; a second signal ends it at once
//   process.exit()            nothing can be sent any more; the next process delivers
//
// The registry is shared by all copies of this package in a process (ESM and CommonJS).
import {isMainThread} from 'node:worker_threads';

export interface Endable {
  _left(): number;
  _drainQuietly(): Promise<void>;
  _closeNow(): void;
}

interface Registry {
  clients: Set<Endable>;
  current: unknown;
  undo: (() => void) | undefined;
}

const NAME = Symbol.for('@cortex/recorder 1');
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

export function registry(): Registry {
  const owner = globalThis as {[NAME]?: Registry};
  owner[NAME] ??= {clients: new Set(), current: undefined, undo: undefined};
  return owner[NAME];
}

export function addClient(client: Endable): void {
  const found = registry();
  found.clients.add(client);
  found.undo ??= installHooks(found.clients);
}

export function removeClient(client: Endable): void {
  const found = registry();
  found.clients.delete(client);
  if (found.clients.size > 0) return;
  found.undo?.();
  found.undo = undefined;
}

function installHooks(clients: Set<Endable>): () => void {
  const given = new WeakMap<Endable, number>(); // what the last end could not deliver
  const drainAll = (): Promise<unknown> =>
    Promise.all([...clients].map((client) => client._drainQuietly()));

  function beforeExit(): void {
    const left = [...clients].filter(
      (client) => client._left() > 0 && given.get(client) !== client._left(),
    );
    if (left.length === 0) return;
    void Promise.all(
      left.map(async (client) => {
        await client._drainQuietly();
        given.set(client, client._left());
      }),
    );
  }

  function exit(): void {
    for (const client of [...clients]) client._closeNow();
  }

  let ending = false;
  function onSignal(signal: NodeJS.Signals): void {
    const onlyOurs = process.listenerCount(signal) === 1;
    if (ending && onlyOurs) return raise(signal);
    ending = true;
    void drainAll().then(() => {
      ending = false;
      if (onlyOurs) raise(signal);
    });
  }

  /** The signal as if nobody had handled it. */
  function raise(signal: NodeJS.Signals): void {
    exit(); // removes the handlers
    process.removeListener(signal, onSignal);
    process.kill(process.pid, signal);
  }

  process.on('beforeExit', beforeExit);
  process.on('exit', exit);
  if (isMainThread) for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    process.removeListener('beforeExit', beforeExit);
    process.removeListener('exit', exit);
    if (isMainThread) for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  };
}
