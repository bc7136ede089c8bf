// entries.tsx - what a session did, newest first: each decision with its rule, reason and result.

import type {LiveEffect, LiveEntry} from '../../base/api-types';
import {fileOf} from '../../base/editor';
import {bytes, clock, plural} from '../../base/format';
import {Badge, type Tone} from '../../ui/badge';
import {FileLink} from '../../ui/file_link';
import {Line, Text} from '../../ui/text';
import {seconds} from '../run/types';
import {aboutOf, entryWord, toldOf, verdictTone, verdictWord, type Told} from './model';

/** `root`: the folder that files are below when they are linked to an editor. */
export function Entries({entries, root}: {entries: readonly LiveEntry[]; root: string}) {
  // A result is shown with its decision, where that is there.
  const shownResults = new Set(entries.map((one) => one.result?.seq));
  const rows = entries.filter((one) => one.kind !== 'result' || !shownResults.has(one.seq));
  return (
    <section aria-labelledby="live-entries">
      <h2 id="live-entries">What happened</h2>
      {rows.length === 0 && <p class="dim">Nothing was recorded here.</p>}
      <ol class="live-entries" reversed>
        {rows.map((one) => (
          <li key={one.seq} class={`live-entry live-${one.kind}`}>
            <Entry one={one} root={root} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function When({one}: {one: LiveEntry}) {
  return (
    <time class="dim live-when" dateTime={one.time}>
      {clock(Math.floor(seconds(one.time)))}
    </time>
  );
}

function Entry({one, root}: {one: LiveEntry; root: string}) {
  if (one.erased)
    return (
      <p class="live-line">
        <When one={one} /> <span class="dim">entry {one.seq}: its content was erased</span>
      </p>
    );
  const told = toldOf(one.payload);
  return one.kind === 'decision' ? (
    <Decision one={one} told={told} root={root} />
  ) : (
    <p class="live-line">
      <When one={one} /> <span>{entryWord(one, told)}</span>{' '}
      {told.call && <Line text={told.call.tool} most={60} />}
      {told.by && (
        <span class="dim">
          by <Text text={told.by} most={60} />
        </span>
      )}
    </p>
  );
}

function Decision({one, told, root}: {one: LiveEntry; told: Told; root: string}) {
  const file = fileOf(told.call?.input);
  const differs = told.would !== '' && told.would !== told.verdict;
  return (
    <details>
      <summary class="live-line">
        <When one={one} />{' '}
        <Badge tone={verdictTone(told)}>
          {verdictWord(told.verdict)}
          {differs && ` (would be ${verdictWord(told.would)})`}
        </Badge>{' '}
        <strong>
          <Line text={told.call?.tool ?? 'no tool'} most={60} />
        </strong>{' '}
        <Line class="mono" text={aboutOf(told)} most={160} />
        <Result one={one} />
      </summary>
      <dl class="live-facts">
        <dt class="dim">Rule</dt>
        <dd>
          <Text text={told.rule} most={10} />
          {told.reason && (
            <>
              : <Text text={told.reason} most={600} />
            </>
          )}
        </dd>
        {one.approved_by && (
          <>
            <dt class="dim">Answered by</dt>
            <dd>
              <Text text={one.approved_by} most={80} />
            </dd>
          </>
        )}
        {told.subagent && (
          <>
            <dt class="dim">Sub-agent</dt>
            <dd>
              <Text text={told.subagent} most={80} />
            </dd>
          </>
        )}
        {told.rewrite && (
          <>
            <dt class="dim">Runs instead</dt>
            <dd class="mono">
              <Text text={told.rewrite} most={600} />
            </dd>
          </>
        )}
        {file && (
          <>
            <dt class="dim">File</dt>
            <dd class="mono">
              <FileLink path={file.path} line={file.line} root={root}>
                <Text text={file.path} most={300} />
                {file.line !== null && `:${file.line}`}
              </FileLink>
            </dd>
          </>
        )}
        <dt class="dim">Mode</dt>
        <dd>
          {told.mode}
          {told.failOpen && ', open on failure'}
        </dd>
        <dt class="dim">Entry</dt>
        <dd>{one.seq}</dd>
      </dl>
      <Effects effects={told.effects} />
      {told.call && (
        <pre class="live-input" tabIndex={0} role="region" aria-label="The input of the call">
          <Text
            text={
              told.call.input === null
                ? `${bytes(told.call.inputBytes)}: not shown here`
                : JSON.stringify(told.call.input, null, 2)
            }
            most={6000}
          />
        </pre>
      )}
    </details>
  );
}

function Result({one}: {one: LiveEntry}) {
  const told = toldOf(one.payload);
  if (one.result === null)
    return told.verdict === 'deny' ? null : <span class="dim"> no result yet</span>;
  return (
    <span class="dim">
      {' '}
      {one.result.outcome}, {bytes(one.result.output_bytes)}
    </span>
  );
}

const EFFECTS: Record<string, Tone> = {allow: 'good', unlisted: 'warn', forbidden: 'bad'};

function Effects({effects}: {effects: readonly LiveEffect[]}) {
  if (effects.length === 0) return null;
  return (
    <>
      <p class="dim live-label">{plural(effects.length, 'effect')}</p>
      <ul class="live-effects">
        {effects.map((one, i) => (
          <li key={i}>
            <Badge tone={EFFECTS[one.verdict] ?? 'plain'}>{one.verdict}</Badge> {one.kind}{' '}
            <span class="mono">
              <Text text={one.text} most={400} />
            </span>{' '}
            <span class="dim">
              {one.rule}
              {one.why && (
                <>
                  : <Text text={one.why} most={400} />
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
