// replay.tsx - whether the bundle says what happened: verification, telling the run again from its
// events, comparing it with another one, and what doing it again gave.

import type {RunItems} from '../../base/api-types';
import {useEffect, useState} from 'preact/hooks';
import {change} from '../../base/api';
import {count, plural} from '../../base/format';
import {useAnswer} from '../../base/load';
import {adjust, linkTo} from '../../base/router';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {Answer, Failed} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {Value} from '../../ui/value';
import type {RunModel} from './model';
import {meaningOf, verdictTone, type Replayed, type Verified} from './types';

export function ReplayPane({model}: {model: RunModel}) {
  return (
    <div class="replay">
      <Verification model={model} />
      <Again model={model} />
      <Reexec model={model} />
    </div>
  );
}

export function verdictWords(verified: Verified): string {
  if (verified.verdict === 'holds')
    return 'Every file, every event and the chain are what the ledger sealed.';
  if (verified.verdict === 'broken') return 'The bundle does not say what happened.';
  return verified.reason === 'unsealed'
    ? 'The bundle fits together, but the ledger here has no seal of it: nobody vouches for when it was made, or that it was not made anew.'
    : 'It cannot be decided here.';
}

/** What is wrong, by its code: what that means, where, and how the check says it. */
export function Codes({verified}: {verified: Verified}) {
  return (
    <ul class="codes">
      {verified.codes.slice(0, 60).map((code) => (
        <li key={code}>
          <p>
            <Badge tone="bad">{plain(code, 60)}</Badge> <span>{meaningOf(code)}</span>
          </p>
          <ul>
            {verified.details
              .filter((one) => one.code === code)
              .slice(0, 5)
              .map((one, i) => (
                <li key={i} class="code-detail">
                  {one.path && (
                    <code>
                      <Text text={one.path} most={120} />
                    </code>
                  )}{' '}
                  <span class="dim">
                    <Text text={one.message} most={300} />
                  </span>
                </li>
              ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

function Verification({model}: {model: RunModel}) {
  return (
    <section>
      <h2>Verification</h2>
      <Answer of={model.verdict.signal.value} what="Checking every hash">
        {(verified) => (
          <>
            <p>
              <Badge tone={verdictTone(verified.verdict)}>{verified.verdict}</Badge>{' '}
              {verdictWords(verified)}
            </p>
            <Codes verified={verified} />
            <dl class="facts">
              <dt>files</dt>
              <dd>{count(verified.files)}</dd>
              <dt>events</dt>
              <dd>{count(verified.events)}</dd>
              <dt>seal</dt>
              <dd>
                <Text text={String(verified.seal)} most={80} />
              </dd>
              <dt>manifest</dt>
              <dd class="mono">
                <Text text={verified.manifest_sha256 ?? ''} most={80} />
              </dd>
              <dt>end of the chain</dt>
              <dd class="mono">
                <Text text={verified.chain_head ?? ''} most={80} />
              </dd>
            </dl>
            <button type="button" onClick={() => model.verify()}>
              Check again
            </button>
          </>
        )}
      </Answer>
    </section>
  );
}

function Again({model}: {model: RunModel}) {
  const others = useAnswer<RunItems>('/api/v1/runs', {limit: 200});
  const [against, setAgainst] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [got, setGot] = useState<Replayed | Error | null>(null);
  const replay = (): void => {
    setBusy(true);
    change<Replayed>('POST', model.path('/replay'), against ? {against} : {})
      .then(setGot, (error: Error) => setGot(error))
      .finally(() => setBusy(false));
  };
  return (
    <section>
      <h2>Replay</h2>
      <p class="dim">
        Tells the run again from its events alone: states, gates and reports must come out as they
        are stored. Nothing is executed.
      </p>
      <div class="replay-tools">
        <label for="against">Compare with</label>
        <select
          id="against"
          value={against}
          onChange={(event) => setAgainst(event.currentTarget.value)}
        >
          <option value="">nothing</option>
          {others.value?.items
            .filter((one) => one.run_id !== model.id)
            .map((one) => (
              <option key={one.run_id} value={one.run_id}>
                {plain(
                  `${(one.task_id ?? '').slice(0, 60)} ${one.run_id.slice(4, 19)} ${one.status}`,
                )}
              </option>
            ))}
        </select>
        <button type="button" class="primary" id="replay" disabled={isBusy} onClick={replay}>
          {isBusy ? 'Replaying\u2026' : 'Replay'}
        </button>
      </div>
      <div role="status">
        {got instanceof Error ? <Failed error={got} /> : got && <Told told={got} />}
      </div>
    </section>
  );
}

function Told({told}: {told: Replayed}) {
  const hashes = [
    ...told.evidence_hashes.missing.map((path) => ['missing', path]),
    ...told.evidence_hashes.mismatched.map((path) => ['changed', path]),
    ...told.evidence_hashes.extra.map((path) => ['not named', path]),
  ];
  return (
    <div class="told">
      <p>
        <Badge tone={told.status === 'ok' ? 'good' : 'bad'}>
          {told.status === 'ok' ? 'comes out the same' : 'comes out differently'}
        </Badge>
        {` ${plural(told.events_count, 'event')} read.`}
      </p>
      {told.first_divergence && (
        <p>
          <strong>First difference: </strong>
          <button
            type="button"
            class="link"
            onClick={() =>
              adjust({tab: 'events', event: String(told.first_divergence!.index), filter: null})
            }
          >{`event ${told.first_divergence.index}`}</button>
          {told.baseline_run_id && (
            <>
              {' '}
              against{' '}
              <a href={linkTo('run', told.baseline_run_id)}>
                <Line text={told.baseline_run_id} most={60} />
              </a>
            </>
          )}
        </p>
      )}
      {told.first_divergence && <Value value={sent(told.first_divergence)} />}
      {hashes.length > 0 && (
        <ul class="codes">
          {hashes.slice(0, 200).map(([word, path], i) => (
            <li key={i}>
              <Badge tone="bad">{word}</Badge>{' '}
              <code>
                <Text text={path ?? ''} most={120} />
              </code>
            </li>
          ))}
        </ul>
      )}
      {told.mismatches.length > 0 && (
        <>
          <h3>Does not come out as stored</h3>
          <Value value={sent(told.mismatches)} />
        </>
      )}
      <ul class="reports">
        {Object.entries(told.reports).map(([path, one]) => (
          <li key={path}>
            <Badge tone={one.ok ? 'good' : 'bad'}>
              {one.ok ? 'as its schema says' : 'not as its schema says'}
            </Badge>
            <button type="button" class="link" onClick={() => adjust({tab: 'files', file: path})}>
              <Line text={path} most={80} />
            </button>
            {one.error && <Text text={one.error} most={200} />}
          </li>
        ))}
      </ul>
    </div>
  );
}

function sent(value: unknown): {cut: boolean; size: number; text: string} {
  const text = JSON.stringify(value);
  return {cut: false, size: text.length, text};
}

function Reexec({model}: {model: RunModel}) {
  const stored = model.files.signal.value.value?.items.find((file) =>
    /(^|\/)reexec_report\.json$/.test(file.path),
  );
  const [value, setValue] = useState<unknown>(null);
  useEffect(() => setValue(null), [model]);
  const of = useAnswer<unknown>(stored ? model.path(`/artifacts/${stored.path}`) : null);
  useEffect(() => setValue(of.value), [of.value]);
  return (
    <section>
      <h2>Re-execution</h2>
      {value !== null ? (
        <Value value={sent(value)} />
      ) : (
        <p class="dim">
          Applies the stored patch to the recorded baseline again, compares trees, and runs the
          tests again. It executes commands of the contract, so it is started where the repository
          is, not from a page: <code>{`cortex run replay ${plain(model.id, 80)} --reexec`}</code>. A
          difference ends it with exit code 5.
        </p>
      )}
    </section>
  );
}
