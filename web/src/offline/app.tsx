// app.tsx - files in, verdicts out.

import {useEffect, useId, useRef, useState} from 'preact/hooks';
import {bytes as size, plural} from '../base/format';
import {plain} from '../base/text';
import type {Verdict} from '../proof/check';
import {Badge, type Tone} from '../ui/badge';
import {Text} from '../ui/text';
import type {Result} from './check';
import {Form, readGiven} from './form';
import {FILE_MAX, NO_OPTIONS, type Options} from './options';
import type {Checks} from './worker';

/** So many at once; more would only be waited for. */
const FILES_MAX = 200;
/** Options are typed: the checks begin when no key was pressed for a while. */
const PAUSE_MS = 400;

const TONES: Record<Verdict, Tone> = {holds: 'good', broken: 'bad', indeterminate: 'warn'};
const MEANING: Record<Exclude<Verdict, 'holds'>, string> = {
  broken: 'A check failed. Rely on nothing that this file shows.',
  indeterminate: 'Nothing false was found, but this is not enough to rely on the file.',
};

interface Row {
  id: number;
  file: File;
  result: Result | null;
  /** No verdict: what went wrong. */
  problem: string | null;
}

/** What a file that holds rests on, in the program's words: the end of its first line. */
function restsOn(result: Result): string {
  const line = result.text.split('\n')[0]!;
  return line.slice(line.lastIndexOf(': holds') + 2);
}

/** It agrees with itself, and with nothing that the reader brought. */
const isAlone = (result: Result): boolean => /in itself only|no given anchor/.test(restsOn(result));

function Second({result}: {result: Result}) {
  const {second} = result;
  if (!second) return null;
  const words =
    second.verdict === null
      ? `none: ${second.message}`
      : second.contradicts
        ? `CONTRADICTS the program: ${second.verdict}${second.reason ? ` (${second.reason})` : ''}`
        : `${second.verdict}${second.reason ? ` (${second.reason})` : ''}, which does not contradict the program`;
  return (
    <p class="second">
      <strong>Second opinion:</strong> <Text text={words} most={400} />
    </p>
  );
}

/** A word of a shell. */
const quoted = (word: string): string =>
  /^[\w./:=+@,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

function Verdicts({result}: {result: Result}) {
  return (
    <>
      <p class="meaning">
        {result.verdict === 'holds' ? `It ${restsOn(result)}.` : MEANING[result.verdict]}
      </p>
      {result.message && (
        <p class="why">
          {result.reason && <code>{result.reason}</code>} <Text text={result.message} most={1000} />
        </p>
      )}
      {result.limits.length > 0 && result.verdict !== 'broken' && (
        <div class="limits">
          <h3>Not proven</h3>
          <ul>
            {result.limits.map((limit) => (
              <li key={limit}>
                <Text text={limit} />
              </li>
            ))}
          </ul>
        </div>
      )}
      <Second result={result} />
      <details>
        <summary>What cortex-verify prints</summary>
        <pre tabIndex={0}>
          <Text text={result.text} most={20000} />
        </pre>
        {result.args.length > 0 && (
          <p class="hint">
            The same in a terminal:{' '}
            <code>
              <Text
                text={`cortex-verify --details ${result.args.map(quoted).join(' ')}`}
                most={2000}
              />
            </code>
          </p>
        )}
      </details>
    </>
  );
}

function RowView({row, drop}: {row: Row; drop(): void}) {
  const id = useId();
  const {result} = row;
  return (
    <li
      class={`result ${result ? `is-${result.verdict === 'holds' && isAlone(result) ? 'indeterminate' : result.verdict}` : ''}`}
    >
      <article aria-labelledby={id}>
        <header>
          {result ? (
            <Badge
              tone={result.verdict === 'holds' && isAlone(result) ? 'warn' : TONES[result.verdict]}
            >
              {result.verdict}
            </Badge>
          ) : row.problem ? (
            <Badge tone="warn">no verdict</Badge>
          ) : (
            <Badge>checking{'\u2026'}</Badge>
          )}
          <h3 id={id} class="mono">
            <Text text={row.file.name} most={200} />
          </h3>
          <span class="dim">
            {size(row.file.size)}
            {result && result.kind !== 'unknown' ? `, ${result.kind.replaceAll('_', ' ')}` : ''}
          </span>
          <span class="grow" />
          <button
            type="button"
            class="quiet"
            aria-label={`Remove ${plain(row.file.name, 80)}`}
            onClick={drop}
          >
            Remove
          </button>
        </header>
        {row.problem && (
          <p class="wrong">
            <Text text={row.problem} most={1000} />
          </p>
        )}
        {result && <Verdicts result={result} />}
      </article>
    </li>
  );
}

/** "2 hold, 1 is broken": read out when the checks are done. */
function summary(rows: readonly Row[]): string {
  const of = (verdict: Verdict): number =>
    rows.filter((row) => row.result?.verdict === verdict).length;
  const waiting = rows.filter((row) => !row.result && !row.problem).length;
  if (waiting > 0) return `checking ${plural(waiting, 'file')}\u2026`;
  const parts = (['holds', 'broken', 'indeterminate'] as const)
    .filter((verdict) => of(verdict) > 0)
    .map((verdict) => `${of(verdict)} ${verdict}`);
  const none = rows.filter((row) => row.problem).length;
  return [...parts, ...(none > 0 ? [`${none} without a verdict`] : [])].join(', ');
}

let nextId = 0;

export function App({checks, version, digest}: {checks: Checks; version: string; digest: string}) {
  const [rows, setRows] = useState<readonly Row[]>([]);
  const [options, setOptions] = useState<Options>(NO_OPTIONS);
  const [notice, setNotice] = useState<string | null>(null);
  const [unusable, setUnusable] = useState<string | null>(null);
  const [isOver, setOver] = useState(false);
  const [isBusy, setBusy] = useState(false);
  // What the checks that run were begun with; a change begins them again.
  const run = useRef(0);
  const chooser = useRef<HTMLInputElement>(null);
  const latest = useRef(rows);
  latest.current = rows;

  const update = (id: number, change: Partial<Row>): void =>
    setRows((now) => now.map((row) => (row.id === id ? {...row, ...change} : row)));

  async function checkAll(list: readonly Row[], with_: Options): Promise<void> {
    const mine = ++run.current;
    checks.stop();
    setBusy(list.length > 0);
    setUnusable(null);
    for (const row of list) {
      const file = await readGiven(row.file);
      if (run.current !== mine) return;
      if (typeof file === 'string') {
        update(row.id, {problem: file});
        continue;
      }
      const reply = await checks.run({file, options: with_, nowMs: Date.now()});
      if (run.current !== mine) return;
      if ('result' in reply) update(row.id, {result: reply.result, problem: null});
      else if ('unusable' in reply) {
        setUnusable(reply.unusable);
        update(row.id, {problem: `an option is not usable: ${reply.unusable}`});
      } else update(row.id, {problem: `the check failed: ${reply.failed}`});
    }
    setBusy(false);
  }

  function stop(): void {
    run.current++;
    checks.stop();
    setBusy(false);
    setRows((now) =>
      now.map((row) => (row.result || row.problem ? row : {...row, problem: 'stopped by you'})),
    );
  }

  function add(files: readonly File[]): void {
    const room = FILES_MAX - rows.length;
    setNotice(
      files.length > room
        ? `At most ${FILES_MAX} files at once: ${plural(files.length - Math.max(room, 0), 'file')} left out. Remove some, or use cortex-verify.`
        : null,
    );
    const more = files
      .slice(0, Math.max(room, 0))
      .map((file) => ({id: nextId++, file, result: null, problem: null}));
    const all = [...more, ...rows];
    setRows(all);
    void checkAll(
      all.filter((row) => !row.result && !row.problem),
      options,
    );
  }

  // All files again when the options have changed.
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    run.current++;
    checks.stop();
    const timer = setTimeout(() => {
      const again = latest.current.map((row) => ({...row, result: null, problem: null}));
      setRows(again);
      void checkAll(again, options);
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [options]);

  useEffect(() => {
    const over = (event: DragEvent): void => {
      event.preventDefault();
      setOver(event.type === 'dragover');
    };
    const dropped = (event: DragEvent): void => {
      event.preventDefault();
      setOver(false);
      addNow.current([...(event.dataTransfer?.files ?? [])]);
    };
    document.addEventListener('dragover', over);
    document.addEventListener('dragleave', over);
    document.addEventListener('drop', dropped);
    return () => {
      document.removeEventListener('dragover', over);
      document.removeEventListener('dragleave', over);
      document.removeEventListener('drop', dropped);
    };
  }, []);
  const addNow = useRef(add);
  addNow.current = add;

  return (
    <>
      <header class="top">
        <h1>Offline verifier</h1>
        <p class="dim">
          Checks what Cortex gives out: evidence files, proofs, receipts, checkpoints, scopes.
          Nothing leaves this page: its policy forbids every connection, and it works without a
          network.
        </p>
      </header>
      <main>
        <section aria-labelledby="files-title" class="files">
          <h2 id="files-title">Files</h2>
          <div class={`drop ${isOver ? 'is-over' : ''}`}>
            <button type="button" class="primary" onClick={() => chooser.current?.click()}>
              Choose files
            </button>
            <span>or drop them anywhere on this page</span>
            <input
              ref={chooser}
              type="file"
              multiple
              class="sr"
              tabIndex={-1}
              aria-label="Files to check"
              onChange={(event) => {
                add([...(event.currentTarget.files ?? [])]);
                event.currentTarget.value = '';
              }}
            />
            <p class="hint">
              At most {FILE_MAX >> 20} MiB each, {FILES_MAX} at once. The kind of a file is
              recognised by its content.
            </p>
          </div>
          {notice && (
            <p class="wrong" role="alert">
              {notice}
            </p>
          )}
          <div class="status">
            <p role="status">{rows.length > 0 ? summary(rows) : ''}</p>
            {isBusy && (
              <button type="button" onClick={stop}>
                Stop
              </button>
            )}
            {rows.length > 0 && !isBusy && (
              <button
                type="button"
                class="quiet"
                onClick={() => {
                  setRows([]);
                  setNotice(null);
                }}
              >
                Remove all
              </button>
            )}
          </div>
          <ul class="results">
            {rows.map((row) => (
              <RowView
                key={row.id}
                row={row}
                drop={() => setRows((now) => now.filter((one) => one.id !== row.id))}
              />
            ))}
          </ul>
        </section>
        <section aria-labelledby="trust-title" class="trust">
          <h2 id="trust-title">What you trust and ask</h2>
          {unusable && (
            <p class="wrong" role="alert">
              <Text text={unusable} most={1000} />
            </p>
          )}
          <Form options={options} change={(change) => setOptions((now) => ({...now, ...change}))} />
        </section>
      </main>
      <footer>
        <h2>What a verdict rests on</h2>
        <ul>
          <li>
            The check is the program <code>cortex-verify</code> {version} as WebAssembly, carried in
            this file (SHA-256 <code class="digest">{digest}</code>). A second check, written apart
            from it, looks for a contradiction.
          </li>
          <li>
            This page can say only what its own bytes make it say. Compare the SHA-256 of this HTML
            file with the one published with its release before you rely on it.
          </li>
          <li>
            Keys and roots are yours to bring: a file that brings its own proves nothing about where
            it comes from.
          </li>
        </ul>
      </footer>
    </>
  );
}
