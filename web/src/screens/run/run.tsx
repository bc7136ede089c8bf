// run.tsx - a governed run: its path, gate results, changes, and whether its record can be trusted.

import {useEffect, useMemo, useState} from 'preact/hooks';
import {addCommands} from '../../base/keys';
import {ago, duration, plural, shortId, time} from '../../base/format';
import {adjust, go, linkTo, route} from '../../base/router';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Split} from '../../ui/split';
import {Failed, Loading} from '../../ui/states';
import {Tabs, type Tab} from '../../ui/tabs';
import {Line, Text} from '../../ui/text';
import {copy} from '../../ui/toast';
import {ChangesPane} from './changes';
import {EventsPane} from './events';
import {FilesPane} from './files';
import {GatesPane} from './gates';
import {RunList} from './list';
import {RunModel} from './model';
import type {Visit} from './rail';
import {Rail} from './rail_view';
import {Codes, ReplayPane, verdictWords} from './replay';
import {seconds, statusTone, verdictTone, type RunShown, type Verified} from './types';

export function Run() {
  const name = route.value.name;
  return name ? <Opened key={name} id={name} /> : <RunList />;
}

function Opened({id}: {id: string}) {
  const model = useMemo(() => new RunModel(id), [id]);
  useEffect(() => () => model.close(), [model]);
  useKeys(model);
  const of = model.show.signal.value;
  if (of.error) return <Failed error={of.error} again={() => model.load()} />;
  if (!of.value) return <Loading what="Opening the run" />;
  const timeline = model.timeline.signal.value.value;
  return (
    <>
      <Head shown={of.value} model={model} />
      {model.verdict.signal.value.value?.verdict === 'broken' && (
        <Broken verified={model.verdict.signal.value.value} />
      )}
      {timeline && <Rail timeline={timeline} shown={of.value} choose={(visit) => choose(visit)} />}
      <Panes model={model} />
    </>
  );
}

function choose(visit: Visit): void {
  adjust({tab: 'events', filter: `${visit.first}-${visit.last || ''}`, event: null});
}

function Head({shown, model}: {shown: RunShown; model: RunModel}) {
  const from = seconds(shown.created_at);
  const to = seconds(shown.finished_at);
  const verified = model.verdict.signal.value;
  const commit = shown.repo?.final_ref;
  const changed = commit !== undefined && commit !== shown.repo?.baseline_ref;
  return (
    <header class="screen-head run-head">
      <h1 class="line">
        <Text text={shown.task_id || shown.run_id} most={100} />
      </h1>
      <Badge
        tone={statusTone(shown.status)}
        icon={shown.status === 'RUNNING' ? 'clock' : undefined}
      >
        {plain(shown.status, 20).toLowerCase()}
      </Badge>
      {shown.failure_reason && (
        <span class="dim">
          at the gate{' '}
          <b>
            <Text text={shown.failure_reason} most={40} />
          </b>
        </span>
      )}
      {shown.status !== 'RUNNING' &&
        (verified.value ? (
          <button
            type="button"
            class="quiet run-verdict"
            title={verdictWords(verified.value)}
            onClick={() => adjust({tab: 'replay'})}
          >
            <Badge
              tone={verdictTone(verified.value.verdict)}
              icon={verified.value.verdict === 'holds' ? 'shield' : undefined}
            >
              {verified.value.verdict === 'indeterminate'
                ? 'not sealed'
                : `record ${verified.value.verdict}`}
            </Badge>
          </button>
        ) : verified.isLoading ? (
          <span class="dim">{'checking\u2026'}</span>
        ) : null)}
      {shown.user_request && (
        <span class="run-request">
          <Line text={shown.user_request} most={160} />
        </span>
      )}
      <span class="grow" />
      <span class="run-facts dim">
        {Number.isFinite(from) && <span title={time(from)}>{ago(from)}</span>}
        {to >= from && <span>{duration(to - from)}</span>}
        {changed && (
          <button
            type="button"
            class="link mono"
            title="Copy the commit"
            onClick={() => copy(commit, 'Commit')}
          >
            {plain(shortId(commit), 40)}
          </button>
        )}
        {shown.trace?.trace_id && (
          <button
            type="button"
            class="link"
            title={plain(`Copy the trace id ${shortId(shown.trace.trace_id)}`)}
            onClick={() => copy(shown.trace!.trace_id!, 'Trace id')}
          >
            trace id
          </button>
        )}
      </span>
      <a class="run-link" href={linkTo('debugger', `run/${shown.run_id}`)}>
        <Icon name="lanes" /> Debugger
      </a>
      <a class="run-link" href={linkTo('compare', `run/${shown.run_id}`)}>
        <Icon name="fork" /> Compare
      </a>
      {shown.sealed && (
        <a class="run-link" href={linkTo('evidence', '', {what: 'auditor', id: shown.run_id})}>
          <Icon name="shield" /> Evidence
        </a>
      )}
    </header>
  );
}

function Broken({verified}: {verified: Verified}) {
  return (
    <div class="run-broken" role="alert">
      <p>
        <Icon name="cross" /> <strong>{verdictWords(verified)}</strong> The recorded content is
        shown below nevertheless.
      </p>
      <Codes verified={verified} />
    </div>
  );
}

const WIDE = '(min-width: 1000px)';

function useWide(): boolean {
  const media = useMemo(() => matchMedia(WIDE), []);
  const [is, set] = useState(media.matches);
  useEffect(() => {
    const follow = (): void => set(media.matches);
    media.addEventListener('change', follow);
    return () => media.removeEventListener('change', follow);
  }, [media]);
  return is;
}

const TABS: readonly Tab[] = [
  {id: 'changes', title: 'Changes'},
  {id: 'events', title: 'Events'},
  {id: 'files', title: 'Files'},
  {id: 'replay', title: 'Verify'},
];

function Panes({model}: {model: RunModel}) {
  const isWide = useWide();
  const tab = route.value.query['tab'];
  const tabs = isWide ? TABS : [{id: 'gates', title: 'Gates'}, ...TABS];
  const standard = !isWide ? 'gates' : model.isRunning.value ? 'events' : 'changes';
  const active = tabs.some((one) => one.id === tab) ? tab! : standard;
  const panes = (
    <Tabs label="The run" tabs={tabs} active={active} onActive={(id) => adjust({tab: id}, false)}>
      {active === 'gates' ? (
        <GatesPane model={model} />
      ) : active === 'events' ? (
        <EventsPane model={model} />
      ) : active === 'files' ? (
        <FilesPane model={model} />
      ) : active === 'replay' ? (
        <ReplayPane model={model} />
      ) : (
        <ChangesPane model={model} />
      )}
    </Tabs>
  );
  if (!isWide) return <div class="run-panes">{panes}</div>;
  return (
    <div class="run-panes">
      <Split direction="row" name="gates and record" initial={0.36}>
        <section class="pane" aria-label="Gates">
          <h2 class="pane-title">{gatesTitle(model)}</h2>
          <div class="pane-body">
            <GatesPane model={model} />
          </div>
        </section>
        {panes}
      </Split>
    </div>
  );
}

function gatesTitle(model: RunModel): string {
  const verdicts = model.gates.signal.value.value?.verdicts ?? [];
  const bad = verdicts.filter((one) => !one.passed).length;
  return verdicts.length === 0
    ? 'Gates'
    : `Gates: ${plural(verdicts.length, 'check')}, ${bad} rejected`;
}

function useKeys(model: RunModel): void {
  useEffect(
    () =>
      addCommands([
        ...TABS.map((tab, i) => ({
          keys: String(i + 1),
          what: String(tab.title),
          group: 'Run',
          run: () => adjust({tab: tab.id}, false),
        })),
        {
          keys: '/',
          what: 'Filter the events',
          group: 'Run',
          run: () => {
            adjust({tab: 'events'}, false);
            setTimeout(() => document.getElementById('run-filter')?.focus());
          },
        },
        {keys: 'v', what: 'Verify the record again', group: 'Run', run: () => model.verify()},
        {
          keys: 'd',
          what: 'Open in the debugger',
          group: 'Run',
          run: () => go('debugger', `run/${model.id}`),
        },
        {
          keys: 'c',
          what: 'Compare with another run',
          group: 'Run',
          run: () => go('compare', `run/${model.id}`),
        },
        {
          keys: 'Escape',
          what: 'Close the event or leave the field',
          group: 'Run',
          run: () => adjust({event: null, filter: null}, false),
        },
      ]),
    [model],
  );
}
