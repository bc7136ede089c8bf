// debugger.tsx - a history as lanes, one event in focus, and panes that follow it.

import {useEffect, useMemo, useState} from 'preact/hooks';
import {isLive} from '../../base/api';
import type {HistoriesPage, ViewExtent} from '../../base/api-types';
import {focus} from '../../base/focus';
import {count, duration, plural, shortAgent} from '../../base/format';
import {addCommands} from '../../base/keys';
import {useAnswer} from '../../base/load';
import {adjust, linkTo, route} from '../../base/router';
import {session} from '../../base/session';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Edge, Split, useWidth} from '../../ui/split';
import {Recent} from '../../ui/recent';
import {Failed, Loading} from '../../ui/states';
import {Tabs} from '../../ui/tabs';
import {Text} from '../../ui/text';
import {Conversation} from './conversation';
import {RULER} from './draw';
import {EventPane} from './event';
import {Findings} from './findings';
import {Lanes} from './lanes';
import {KINDS} from './marks';
import {Model} from './model';
import {choosePart, extentOf, hasParts, type Part, PartBar} from './part';
import {isName} from './talk';
import {Scrubber} from './scrubber';
import {StatePane} from './state';
import type {Summary} from './types';
import {WhyPane} from './why';

export function Debugger() {
  const name = route.value.name;
  if (!name)
    return (
      <>
        <header class="screen-head">
          <h1>Debugger</h1>
        </header>
        <Recent screen="debugger" title="Open a history" />
      </>
    );
  return <Opened key={name} name={name} />;
}

/** A long history of an agent in parts: it is asked first how long it is. */
function Opened({name}: {name: string}) {
  const [extent, setExtent] = useState<ViewExtent | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const wanted = route.value.query['part'];
  const node = focus.node.value;
  // Once for each part, and not for each step in it.
  useEffect(() => {
    if (!hasParts(name)) return undefined;
    const abort = new AbortController();
    extentOf(name, node, abort.signal).then(setExtent, (found: Error) => {
      if (!abort.signal.aborted) setError(found);
    });
    return () => abort.abort();
  }, [name, wanted]);
  const part = useMemo(() => (extent ? choosePart(extent, wanted, node) : null), [extent, wanted]);
  // The address names it, so that numbers of steps in it mean something.
  useEffect(() => {
    if (part && !wanted) adjust({part: String(part.from)}, false);
  }, [part, wanted]);
  if (error) return <Failed error={error} again={() => location.reload()} />;
  if (hasParts(name) && !extent) return <Loading what="Opening the history" />;
  return <Shown key={part ? `${part.from}` : 'all'} name={name} part={part} />;
}

function Shown({name, part}: {name: string; part: Part | null}) {
  const model = useMemo(() => new Model(name, part), [name, part?.from]);
  useEffect(() => () => model.close(), [model]);
  useEffect(() => {
    if (part && part.entries > model.entries.peek()) model.entries.value = part.entries;
  }, [model, part?.entries]);
  useKeys(model);
  const of = model.summary.signal.value;
  useEffect(() => {
    if (of.value && !focus.node.value && !isTalk(name, of.value)) selectFirst(model, of.value);
  }, [of.value]);
  if (of.error) return <Failed error={of.error} again={() => location.reload()} />;
  if (!of.value) return <Loading what="Opening the history" />;
  const talk = isTalk(name, of.value);
  return (
    <>
      <Head name={name} summary={of.value} model={model} />
      <PartBar model={model} />
      <div class="debugger">
        <Split
          key={String(talk)}
          direction="column"
          name={talk ? 'conversation' : 'history and time'}
          initial={talk ? 0.62 : roomFor(of.value.lanes.length)}
        >
          <History model={model} talk={talk} />
          <Panes model={model} />
        </Split>
      </div>
      <p id="focus-words" class="sr" aria-live="polite">
        {words(model)}
      </p>
    </>
  );
}

/** One lane does not need the height of five; many are scrolled. */
function roomFor(lanes: number): number {
  const wanted = (RULER + lanes * 68 + 96) / Math.max(1, window.innerHeight - 44);
  return Math.max(0.24, Math.min(0.42, wanted));
}

const NAMES = {least: 90, most: 420, initial: 168};

function History({model, talk}: {model: Model; talk: boolean}) {
  const [names, setNames] = useWidth('agents', NAMES.initial, NAMES.least, NAMES.most);
  if (talk)
    return (
      <div class="history">
        <Conversation model={model} />
        <Scrubber model={model} />
      </div>
    );
  return (
    <div class="history" style={{'--names': `${names}px`}}>
      <Lanes model={model} />
      <div class="under">
        <LaneTools model={model} />
        <Scrubber model={model} />
      </div>
      <Edge name="the names of agents" width={names} move={setNames} {...NAMES} />
    </div>
  );
}

/** People come to sessions and traces of spans to read them, to other histories for their shape; a
    file that was imported is one of the former. */
function isTalk(name: string, summary: Summary): boolean {
  const wanted = route.value.query['view'];
  if (!isLive()) return false;
  return wanted
    ? wanted === 'text'
    : /^(session|otel)\//.test(name) ||
        (name === 'file' && summary.lanes.some((lane) => lane.agent === 'importer'));
}

/** Where there is something wrong, there; else at the newest event. */
function selectFirst(model: Model, summary: Summary): void {
  const wrong = summary.findings.find(
    (finding) => finding.n !== undefined && finding.code.startsWith('E'),
  );
  const lane = [...summary.lanes].sort((a, b) => b.last - a.last)[0];
  if (wrong?.n !== undefined) model.select(wrong.n, true);
  else if (lane && lane.agent !== '?') adjust({node: '@' + lane.agent}, false);
}

function words(model: Model): string {
  const at = model.detail.value;
  if (!at) return '';
  return `${plain(shortAgent(at.agent), 80)}, event ${at.seq}, ${plural(at.changes.length, 'change')}${at.findings.length ? ', invalid' : ''}${at.failed ? ', failed' : ''}${at.override ? ', overridden' : ''}${at.snapshots.length ? ', snapshot taken here' : ''}`;
}

/** What the inbox calls it: a session's id tells people nothing. */
function useTitle(name: string): string | null {
  const of = useAnswer<HistoriesPage>(
    isLive() && /^(session|otel|agent)\//.test(name) ? '/api/v1/histories' : null,
    {history: name, limit: 1},
  );
  return of.value?.histories[0]?.title ?? null;
}

function Head({name, summary, model}: {name: string; summary: Summary; model: Model}) {
  const title = useTitle(name);
  const [first, last] = summary.time;
  const file = session.value?.file;
  return (
    <header class="screen-head">
      <h1 class="line" title={plain(file ?? name, 300)}>
        <Text
          text={
            name === 'file' && file
              ? file.slice(file.lastIndexOf('/') + 1)
              : name === 'all'
                ? 'All recorded traces'
                : (title ?? shortAgent(name))
          }
          most={120}
        />
      </h1>
      {summary.verified ? (
        <Badge
          tone="good"
          title={`Every hash, link and branch ${model.part ? 'of this part ' : ''}was recomputed when ${model.part ? 'it' : 'the history'} was opened`}
        >
          {model.part ? 'this part is valid' : 'valid'}
        </Badge>
      ) : (
        <button type="button" class="quiet" onClick={() => adjust({pane: 'findings'})}>
          <Badge tone="bad">{`invalid: ${plural(summary.errors, 'finding')}`}</Badge>
        </button>
      )}
      <span class="dim">
        {`${plural(summary.nodes, 'event')}, ${plural(summary.agents, 'agent')}`}
        {first !== undefined && last !== undefined && last > first
          ? `, ${duration(last - first)}`
          : ''}
      </span>
      {model.isUp.value && (
        <Badge tone="info" title="New events appear automatically">
          live
        </Badge>
      )}
      {isLive() && (
        <span class="group">
          <a href={linkTo('compare', name)}>Compare</a>
          <a href={linkTo('heatmap', name)}>Heatmap</a>
        </span>
      )}
      <span class="grow" />
      {isLive() && (
        <span class="group" role="group" aria-label="Show the history as">
          {(['text', 'lanes'] as const).map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={isTalk(name, summary) === (one === 'text')}
              onClick={() => adjust({view: one})}
            >
              {one === 'text' ? 'Conversation' : 'Lanes'}
            </button>
          ))}
        </span>
      )}
      <Find model={model} />
    </header>
  );
}

/** Below the names, where there is room. */
function LaneTools({model}: {model: Model}) {
  const byTime = model.byTime.value;
  return (
    <div class="lane-tools">
      <span class="group" role="group" aria-label="Lanes by">
        <button
          type="button"
          aria-pressed={byTime}
          disabled={!model.isTimed.value}
          title={
            model.isTimed.value
              ? 'By time, with a bar for how long each step took (x)'
              : 'This history has no times, only an order'
          }
          onClick={() => adjust({axis: 'time'})}
        >
          Time
        </button>
        <button
          type="button"
          aria-pressed={!byTime}
          title="One step after the other (x)"
          onClick={() => adjust({axis: null})}
        >
          Order
        </button>
      </span>
      <span class="group" role="group" aria-label="View">
        <button
          type="button"
          aria-pressed={model.fold.value}
          aria-label="Fold"
          title="Fold quiet ranges (f)"
          onClick={() => model.toggleFold()}
        >
          <Icon name="fold" />
        </button>
        <button
          type="button"
          aria-label="Zoom out"
          title="Zoom out (-)"
          onClick={() => model.zoom(1.6)}
        >
          <Icon name="minus" />
        </button>
        <button
          type="button"
          aria-label="Zoom in"
          title="Zoom in (+)"
          onClick={() => model.zoom(0.625)}
        >
          <Icon name="plus" />
        </button>
        <button
          type="button"
          aria-label="Zoom to fit"
          title="Zoom to fit (0)"
          onClick={() => model.fit()}
        >
          <Icon name="fit" />
        </button>
      </span>
    </div>
  );
}

function Find({model}: {model: Model}) {
  const [text, setText] = useState('');
  const hits = model.hits.value;
  return (
    <form
      class="find"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = text.trim();
        if (!wanted) return;
        if (isName(wanted) || !isLive()) adjust({node: wanted});
        else void model.findWords(wanted);
      }}
    >
      <input
        id="find"
        type="search"
        placeholder="Find words, #number, @agent, id"
        aria-label="Find words, or go to an event: id, hash, #number or @agent"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !event.shiftKey || !text.trim()) return;
          event.preventDefault();
          if (isLive() && !isName(text.trim())) void model.findWords(text.trim(), -1);
        }}
      />
      {hits && hits.words === text.trim() && (
        <span class="dim" role="status">
          {hits.problem ??
            (hits.nodes.length === 0
              ? model.part
                ? 'not in this part'
                : 'not found'
              : `${count(hits.at + 1)} of ${count(hits.nodes.length)}`)}
        </span>
      )}
    </form>
  );
}

function Panes({model}: {model: Model}) {
  const narrow = useNarrow();
  const summary = model.summary.signal.value.value;
  const wrong = (summary?.errors ?? 0) + (summary?.warnings ?? 0);
  const pane = route.value.query['pane'];
  if (narrow) {
    const active = pane ?? (focus.key.value ? 'why' : 'event');
    return (
      <Tabs
        label="Panes"
        active={active}
        onActive={(id) => adjust({pane: id}, false)}
        tabs={[
          {id: 'event', title: 'Event'},
          {id: 'state', title: 'State'},
          {id: 'why', title: 'Why'},
          ...(wrong > 0 ? [{id: 'findings', title: `Findings ${count(wrong)}`}] : []),
        ]}
      >
        {active === 'state' ? (
          <StatePane model={model} />
        ) : active === 'why' ? (
          <WhyPane model={model} />
        ) : active === 'findings' ? (
          <Findings model={model} />
        ) : (
          <EventPane model={model} />
        )}
      </Tabs>
    );
  }
  const right = pane === 'findings' && wrong > 0 ? 'findings' : 'why';
  return (
    <Split direction="row" name="event and state" initial={0.36}>
      <section class="pane" aria-label="Event">
        <h2 class="pane-title">Event</h2>
        <div class="pane-body">
          <EventPane model={model} />
        </div>
      </section>
      <Split direction="row" name="state and why" initial={0.5}>
        <section class="pane" aria-label="State">
          <h2 class="pane-title">State</h2>
          <div class="pane-body">
            <StatePane model={model} />
          </div>
        </section>
        <section class="pane" aria-label="Why">
          {wrong > 0 ? (
            <Tabs
              label="Why and findings"
              active={right}
              onActive={(id) => adjust({pane: id === 'why' ? null : id}, false)}
              tabs={[
                {id: 'why', title: 'Why'},
                {id: 'findings', title: `Findings ${count(wrong)}`},
              ]}
            >
              {right === 'findings' ? <Findings model={model} /> : <WhyPane model={model} />}
            </Tabs>
          ) : (
            <>
              <h2 class="pane-title">Why</h2>
              <div class="pane-body">
                <WhyPane model={model} />
              </div>
            </>
          )}
        </section>
      </Split>
    </Split>
  );
}

function useNarrow(): boolean {
  const media = useMemo(() => matchMedia('(max-width: 860px)'), []);
  const [is, set] = useState(media.matches);
  useEffect(() => {
    const follow = (): void => set(media.matches);
    media.addEventListener('change', follow);
    return () => media.removeEventListener('change', follow);
  }, [media]);
  return is;
}

function useKeys(model: Model): void {
  useEffect(
    () =>
      addCommands([
        {
          keys: 'ArrowLeft',
          what: 'Previous event of the agent',
          group: 'Debugger',
          run: () => model.step(-1),
        },
        {
          keys: 'ArrowRight',
          what: 'Next event of the agent',
          group: 'Debugger',
          run: () => model.step(1),
        },
        {
          keys: 'ArrowUp',
          what: 'Nearest event in the lane above',
          group: 'Debugger',
          run: () => model.stepLane(-1),
        },
        {
          keys: 'ArrowDown',
          what: 'Nearest event in the lane below',
          group: 'Debugger',
          run: () => model.stepLane(1),
        },
        {
          keys: 'Ctrl+f',
          what: 'Find words in the history; Enter for the next hit, Shift+Enter for the previous',
          group: 'Debugger',
          run: () => document.getElementById('find')?.focus(),
        },
        {
          keys: 'w',
          what: 'What the event reached',
          group: 'Debugger',
          run: () => {
            const at = model.detail.value;
            if (at?.in_graph && isLive()) model.askReach(at.n);
          },
        },
        {
          keys: '[',
          what: 'Previous write of the key',
          group: 'Debugger',
          run: () => model.previousWrite(),
        },
        {keys: ']', what: 'Next write of the key', group: 'Debugger', run: () => model.nextWrite()},
        {
          keys: 'n',
          what: 'Next mark: error, violation, fork, merge, override, snapshot, write',
          group: 'Marks',
          run: () => model.stepMark(1),
        },
        {keys: 'p', what: 'Previous mark', group: 'Marks', run: () => model.stepMark(-1)},
        ...KINDS.flatMap(({key, word}, kind) =>
          key
            ? [
                {
                  keys: key,
                  what: `Next ${word}`,
                  group: 'Marks',
                  run: () => model.stepMark(1, kind),
                },
                {
                  keys: key.toUpperCase(),
                  what: `Previous ${word}`,
                  group: 'Marks',
                  run: () => model.stepMark(-1, kind),
                },
              ]
            : [],
        ),
        {
          keys: 'x',
          what: 'Lanes by time or by order',
          group: 'View',
          run: () => model.toggleAxis(),
        },
        {keys: '+ =', what: 'Zoom in', group: 'View', run: () => model.zoom(0.625)},
        {keys: '-', what: 'Zoom out', group: 'View', run: () => model.zoom(1.6)},
        {keys: '0', what: 'Zoom to fit', group: 'View', run: () => model.fit()},
        {
          keys: 'f',
          what: 'Fold or unfold quiet ranges',
          group: 'View',
          run: () => model.toggleFold(),
        },
        {
          keys: '/',
          what: 'Go to an event',
          group: 'View',
          run: () => document.getElementById('find')?.focus(),
        },
        {
          keys: 'Escape',
          what: 'Close the key or leave the field',
          group: 'View',
          run: () => adjust({key: null, pane: null}),
        },
      ]),
    [model],
  );
}
