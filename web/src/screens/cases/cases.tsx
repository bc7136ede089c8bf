// cases.tsx - workflow cases: requests, the plans made of them, what would refuse them, their runs.
// A summary to read: nothing is started from here, the task contract stays the authority.

import {useEffect, useState} from 'preact/hooks';
import type {Case, CaseItem, Cases as CasePage} from '../../base/api-types';
import {ApiError, get} from '../../base/api';
import {ago, duration, plural} from '../../base/format';
import {addCommands} from '../../base/keys';
import {adjust, go, linkTo, route} from '../../base/router';
import {plain} from '../../base/text';
import {Badge, type Tone} from '../../ui/badge';
import {VirtualList} from '../../ui/list';
import {Empty, Failed, Loading} from '../../ui/states';
import {Digest, Line, Text} from '../../ui/text';
import {seconds, statusTone} from '../run/types';
import {canChange, STATES, stateTone, stateWords} from './model';

const AGAIN_MS = 2000;

export function Cases() {
  const name = route.value.name;
  return name ? <Opened key={name} id={name} /> : <CaseList />;
}

/** Asks at once, and again while `isOpen` says that the answer may change. */
function useFollowed<T>(
  ask: (abort: AbortSignal) => Promise<T>,
  key: string,
  isOpen: (value: T) => boolean,
): {value: T | null; error: Error | null} {
  const [now, setNow] = useState<{value: T | null; error: Error | null}>({
    value: null,
    error: null,
  });
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    setNow({value: null, error: null});
    const again = (): void => {
      ask(abort.signal).then(
        (value) => {
          if (abort.signal.aborted) return;
          setNow({value, error: null});
          if (isOpen(value)) timer = setTimeout(again, AGAIN_MS);
        },
        (error: Error) => {
          if (!abort.signal.aborted) setNow((before) => ({value: before.value, error}));
        },
      );
    };
    again();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key]);
  return now;
}

// --- all of them ---------------------------------------------------------------------------------

function CaseList() {
  const state = route.value.query['state'] ?? '';
  const cursor = route.value.query['after'] ?? '';
  const [active, setActive] = useState(0);
  const {value, error} = useFollowed<CasePage>(
    (abort) => get<CasePage>('/api/v1/cases', {limit: 200, state, cursor: cursor || null}, abort),
    `${state} ${cursor}`,
    () => true,
  );
  return (
    <>
      <header class="screen-head">
        <h1>Cases</h1>
        <span class="case-choices" role="group" aria-label="Filter by state">
          {['', ...STATES].map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === state}
              onClick={() => adjust({state: one || null, after: null})}
            >
              {one === '' ? 'All' : stateWords(one)}
            </button>
          ))}
        </span>
      </header>
      <div class="case-list">
        {error instanceof ApiError && error.status === 501 ? (
          <Empty title="This server serves no repository">
            Start <code>cortex serve --repo DIR</code> to show the cases of a repository.
          </Empty>
        ) : error && value === null ? (
          <Failed error={error} />
        ) : value === null ? (
          <Loading what="Loading the cases" />
        ) : value.items.length === 0 ? (
          <Empty title={state ? `No case is ${stateWords(state).toLowerCase()}` : 'No cases'}>
            <p>
              <code>POST /api/v1/intents</code> queues a request; a planner makes a contract of it.
            </p>
          </Empty>
        ) : (
          <VirtualList
            items={value.items}
            rowHeight={44}
            label="Cases"
            keyOf={(one) => one.case_id}
            active={active}
            onActive={setActive}
            onOpen={(i) => go('cases', value.items[i]!.case_id)}
            render={(one) => <Row one={one} />}
          />
        )}
      </div>
      {(cursor || value?.next) && (
        <p class="case-pages">
          {cursor && (
            <button type="button" onClick={() => adjust({after: null})}>
              Newest
            </button>
          )}
          {value?.next && (
            <button type="button" onClick={() => adjust({after: value.next})}>
              Older
            </button>
          )}
        </p>
      )}
    </>
  );
}

function StateBadge({state}: {state: string}) {
  const tone: Tone = stateTone(state);
  return (
    <Badge tone={tone} icon={canChange(state) ? 'clock' : undefined}>
      {stateWords(state).toLowerCase()}
    </Badge>
  );
}

function Row({one}: {one: CaseItem}) {
  const from = seconds(one.created_at);
  return (
    <span class="case-row">
      <span class="case-row-state">
        <StateBadge state={one.state} />
      </span>
      <span class="case-row-name">
        <Line text={one.intent} most={160} />
        <Line class="dim mono" text={one.case_id} most={60} />
      </span>
      <span class="grow" />
      {one.requested_by && (
        <span class="dim case-row-by">
          <Line text={one.requested_by} most={40} />
        </span>
      )}
      <span class="dim case-row-time">{Number.isFinite(from) ? ago(from) : ''}</span>
    </span>
  );
}

// --- one -----------------------------------------------------------------------------------------

function Opened({id}: {id: string}) {
  const {value, error} = useFollowed<Case>(
    (abort) => get<Case>(`/api/v1/cases/${encodeURIComponent(id)}`, {}, abort),
    id,
    (one) => canChange(one.state),
  );
  useEffect(
    () =>
      addCommands([
        {keys: 'l', what: 'Go to all cases', group: 'Case', run: () => go('cases', '')},
        {
          keys: 'r',
          what: 'Open the newest run',
          group: 'Case',
          run: () => value?.run_id && go('run', value.run_id),
        },
      ]),
    [value?.run_id],
  );
  if (error && value === null) return <Failed error={error} />;
  if (value === null) return <Loading what="Opening the case" />;
  return (
    <>
      <header class="screen-head">
        <h1 class="line">
          <Line text={value.intent} most={100} />
        </h1>
        <StateBadge state={value.state} />
        <span class="grow" />
        <a class="run-link" href={linkTo('cases')}>
          All cases
        </a>
      </header>
      <div class="case-body" tabIndex={0} role="region" aria-label="The case">
        <p class="case-note dim">
          A read-only summary. The task contract has the authority, the bundles of the runs are the
          evidence.
        </p>
        <Facts one={value} />
        <Request one={value} />
        <Refusals one={value} />
        <Plan one={value} />
        <Runs one={value} />
      </div>
    </>
  );
}

function Facts({one}: {one: Case}) {
  const asked = seconds(one.created_at);
  return (
    <dl class="case-facts">
      <dt class="dim">Case</dt>
      <dd class="mono">
        <Text text={one.case_id} most={60} />
      </dd>
      <dt class="dim">Asked</dt>
      <dd>
        {Number.isFinite(asked) ? ago(asked) : ''}
        {one.requested_by && (
          <>
            {' by '}
            <Text text={one.requested_by} most={60} />
          </>
        )}
      </dd>
      {one.note && (
        <>
          <dt class="dim">Note</dt>
          <dd>
            <Text text={one.note} most={600} />
          </dd>
        </>
      )}
      {one.plan_run_id && (
        <>
          <dt class="dim">Planner</dt>
          <dd>
            <a class="mono" href={linkTo('run', one.plan_run_id)}>
              <Line text={one.plan_run_id} most={60} />
            </a>
          </dd>
        </>
      )}
    </dl>
  );
}

function Request({one}: {one: Case}) {
  return (
    <section aria-labelledby="case-request">
      <h2 id="case-request">Request</h2>
      <p class="case-text">
        <Text text={one.intent} most={20000} />
      </p>
    </section>
  );
}

function Refusals({one}: {one: Case}) {
  if (one.preview === null && one.refusals.length === 0) return null;
  return (
    <section aria-labelledby="case-refusals">
      <h2 id="case-refusals">
        {one.refusals.length === 0
          ? 'Nothing that precedes the work would refuse it'
          : `Refused: ${plural(one.refusals.length, 'reason')}`}
      </h2>
      {one.refusals.length !== 0 && (
        <ul class="case-refusals">
          {one.refusals.map((refusal, i) => (
            <li key={i}>
              <Badge tone="bad">{plain(refusal.gate, 30)}</Badge>{' '}
              <Text text={refusal.text} most={600} />
              {refusal.source === 'planner' && <span class="dim"> (in the planner's run)</span>}
            </li>
          ))}
        </ul>
      )}
      {one.preview?.gates && (
        <p class="dim">
          Checked:{' '}
          {Object.entries(one.preview.gates).map(([gate, verdict], i) => (
            <span key={gate}>
              {i > 0 && ', '}
              {plain(gate, 30)} {verdict.passed ? 'passes' : 'refuses'}
            </span>
          ))}
        </p>
      )}
    </section>
  );
}

function Plan({one}: {one: Case}) {
  if (one.contract === null) return null;
  return (
    <section aria-labelledby="case-plan">
      <h2 id="case-plan">Contract</h2>
      <p>
        {'A start names its hash: '}
        <Digest text={one.contract_sha256 ?? ''} what="Hash of the contract" />
      </p>
      <pre class="case-contract" tabIndex={0} role="region" aria-label="The contract as JSON">
        <Text text={JSON.stringify(one.contract, null, 2)} most={100000} />
      </pre>
    </section>
  );
}

function Runs({one}: {one: Case}) {
  if (one.runs.length === 0) return null;
  return (
    <section aria-labelledby="case-runs">
      <h2 id="case-runs">Runs</h2>
      <ul class="case-runs">
        {one.runs.map((run) => {
          const from = seconds(run.created_at);
          const to = seconds(run.finished_at);
          return (
            <li key={run.run_id}>
              <Badge
                tone={statusTone(run.status)}
                icon={run.status === 'RUNNING' ? 'clock' : undefined}
              >
                {plain(run.status, 20).toLowerCase()}
              </Badge>{' '}
              <a class="mono" href={linkTo('run', run.run_id)}>
                <Line text={run.run_id} most={60} />
              </a>
              {run.failed_gate && (
                <span class="dim">
                  {' at the gate '}
                  <b>
                    <Text text={run.failed_gate} most={40} />
                  </b>
                </span>
              )}
              <span class="dim">
                {Number.isFinite(from) && ` ${ago(from)}`}
                {to >= from && `, ${duration(to - from)}`}
              </span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
