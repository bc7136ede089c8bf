// replay.tsx - verification of the bundle, replay from its events, comparison with another run, and
// the result of re-execution.

import type {RunItems} from '../../base/api-types';
import {useEffect, useState} from 'preact/hooks';
import {change} from '../../base/api';
import {count, plural} from '../../base/format';
import {useAnswer} from '../../base/load';
import {adjust, linkTo} from '../../base/router';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {Answer, Failed} from '../../ui/states';
import {Digest, Line, Text} from '../../ui/text';
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
    return 'All files, events and the chain match the seal in the ledger.';
  if (verified.verdict === 'broken') return 'The bundle does not match what was recorded.';
  return verified.reason === 'unsealed'
    ? 'The bundle is consistent, but this ledger has no seal for it. When it was created, and that it was not rewritten, is not attested.'
    : 'The check is inconclusive.';
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
      <Answer of={model.verdict.signal.value} what="Checking all hashes">
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
              <dd>
                <Digest text={verified.manifest_sha256 ?? ''} />
              </dd>
              <dt>end of the chain</dt>
              <dd>
                <Digest text={verified.chain_head ?? ''} />
              </dd>
            </dl>
            <button type="button" onClick={() => model.verify()}>
              Verify again
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
        Replays the run from its events: states, gates and reports must match the stored ones.
        Nothing is executed.
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
        {got instanceof Error ? <Failed error={got} /> : got && <ReplayResult replayed={got} />}
      </div>
    </section>
  );
}

function ReplayResult({replayed}: {replayed: Replayed}) {
  const hashes = [
    ...replayed.evidence_hashes.missing.map((path) => ['missing', path]),
    ...replayed.evidence_hashes.mismatched.map((path) => ['changed', path]),
    ...replayed.evidence_hashes.extra.map((path) => ['not listed', path]),
  ];
  return (
    <div class="replay-result">
      <p>
        <Badge tone={replayed.status === 'ok' ? 'good' : 'bad'}>
          {replayed.status === 'ok' ? 'replay matches' : 'replay diverged'}
        </Badge>
        {` ${plural(replayed.events_count, 'event')} read.`}
      </p>
      {replayed.first_divergence && (
        <p>
          <strong>First difference: </strong>
          <button
            type="button"
            class="link"
            onClick={() =>
              adjust({tab: 'events', event: String(replayed.first_divergence!.index), filter: null})
            }
          >{`event ${replayed.first_divergence.index}`}</button>
          {replayed.baseline_run_id && (
            <>
              {' '}
              against{' '}
              <a href={linkTo('run', replayed.baseline_run_id)}>
                <Line text={replayed.baseline_run_id} most={60} />
              </a>
            </>
          )}
        </p>
      )}
      {replayed.first_divergence && <Value value={sent(replayed.first_divergence)} />}
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
      {replayed.mismatches.length > 0 && (
        <>
          <h3>Differs from the stored run</h3>
          <Value value={sent(replayed.mismatches)} />
        </>
      )}
      <ul class="reports">
        {Object.entries(replayed.reports).map(([path, one]) => (
          <li key={path}>
            <Badge tone={one.ok ? 'good' : 'bad'}>
              {one.ok ? 'schema valid' : 'schema invalid'}
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
          Re-execution applies the stored patch to the recorded baseline, compares trees, and runs
          the tests again. It executes commands of the contract, so start it in the repository, not
          from this page:{' '}
          <Digest text={`cortex run replay ${plain(model.id, 80)} --reexec`} what="Command" />. It
          exits with code 5 if the result differs.
        </p>
      )}
    </section>
  );
}
