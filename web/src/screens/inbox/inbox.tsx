// inbox.tsx - everything that is recorded here, newest first: histories, traces and runs, with
// facets, search, and what is new as it comes.

import {signal} from '@preact/signals';
import {useEffect, useMemo, useState} from 'preact/hooks';
import {ApiError, get} from '../../base/api';
import {ago, count, plural, shortAgent, shortId, time, trimmed} from '../../base/format';
import {addCommands} from '../../base/keys';
import {adjust, route} from '../../base/router';
import {may, session} from '../../base/session';
import {follow} from '../../base/stream';
import {Badge} from '../../ui/badge';
import {Icon, type IconName} from '../../ui/icon';
import {VirtualList} from '../../ui/list';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import {counted, FACETS, filtered, ofHistory, ofRun, ofTrace, TIMES, type Chosen, type History, type Item, type RunRow, type TraceRow} from './items';

const PAGE = 300;

interface Traces {
  traces: TraceRow[];
  next_cursor: string | null;
}

class Recorded {
  readonly items = signal<readonly Item[] | null>(null);
  readonly error = signal<Error | null>(null);
  readonly fresh = signal<ReadonlySet<string>>(new Set());
  readonly isUp = signal(false);
  readonly cursor = signal<string | null>(null);
  readonly runCursor = signal<string | null>(null);
  private readonly abort = new AbortController();
  private readonly stream;
  private timer = 0;
  private isMore = false;

  constructor() {
    void this.load();
    this.stream = session.value?.traces
      ? follow('/api/v1/feed', ['trace', 'conflict'], () => this.soon(), (up) => (this.isUp.value = up)) : null;
  }

  close(): void {
    this.abort.abort();
    this.stream?.close();
    clearTimeout(this.timer);
  }

  /** Several traces of one batch are one look. */
  private soon(): void {
    if (this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      void this.load();
    }, 300);
  }

  async load(): Promise<void> {
    try {
      const [traces, runs, histories] = await Promise.all([
        session.value?.traces && may('trace:read') ? this.ask<Traces>('/api/v1/covenant/traces', {limit: PAGE, verified: 'any', level: 'full_traces'}) : null,
        session.value?.repo && may('run:read') ? this.ask<{runs?: RunRow[]; items?: RunRow[]; next?: string | null}>('/api/v1/runs', {limit: PAGE}) : null,
        this.ask<{histories: History[]}>('/api/v1/view', {}),
      ]);
      this.cursor.value = traces?.next_cursor ?? null;
      this.runCursor.value = runs?.next ?? null;
      this.put([...(histories?.histories ?? []).map(ofHistory), ...(traces?.traces ?? []).map(ofTrace),
        ...(runs?.items ?? runs?.runs ?? []).map(ofRun)]);
    } catch (error) {
      if (!this.abort.signal.aborted) this.error.value = error as Error;
    }
  }

  /** What the token may not see, or this server does not have, is left out. */
  private async ask<T>(path: string, query: Record<string, string | number>): Promise<T | null> {
    try {
      return await get<T>(path, query, this.abort.signal);
    } catch (error) {
      if (error instanceof ApiError && [403, 404, 501].includes(error.status)) return null;
      throw error;
    }
  }

  private put(items: Item[]): void {
    const before = this.items.value;
    const known = new Set(before?.map((item) => item.id));
    if (before) {
      const added = items.filter((item) => !known.has(item.id)).map((item) => item.id);
      if (added.length > 0) this.fresh.value = new Set([...this.fresh.value, ...added]);
    }
    const now = new Set(items.map((item) => item.id));
    this.items.value = [...items, ...(before ?? []).filter((item) => !now.has(item.id))];
  }

  async more(): Promise<void> {
    if (this.isMore || (!this.cursor.value && !this.runCursor.value)) return;
    this.isMore = true;
    try {
      const [traces, runs] = await Promise.all([
        this.cursor.value ? this.ask<Traces>('/api/v1/covenant/traces', {limit: PAGE, verified: 'any', level: 'full_traces', cursor: this.cursor.value}) : null,
        this.runCursor.value ? this.ask<{items?: RunRow[]; runs?: RunRow[]; next?: string | null}>('/api/v1/runs', {limit: PAGE, cursor: this.runCursor.value}) : null,
      ]);
      this.cursor.value = traces?.next_cursor ?? null;
      this.runCursor.value = runs?.next ?? null;
      const known = new Set(this.items.value?.map((item) => item.id));
      const more = [...(traces?.traces ?? []).map(ofTrace), ...(runs?.items ?? runs?.runs ?? []).map(ofRun)];
      this.items.value = [...(this.items.value ?? []), ...more.filter((item) => !known.has(item.id))];
    } catch (error) {
      if (!this.abort.signal.aborted) this.error.value = error as Error;
    } finally {
      this.isMore = false;
    }
  }
}

export function Inbox() {
  const recorded = useMemo(() => new Recorded(), []);
  useEffect(() => () => recorded.close(), [recorded]);
  const chosen = route.value.query;
  const items = recorded.items.value;
  const [active, setActive] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => addCommands([
    {keys: '/', what: 'Search', group: 'Inbox', run: () => document.getElementById('inbox-search')?.focus()},
    {keys: 'Escape', what: 'Leave the search', group: 'Inbox', run: (event) => (event.target as HTMLElement | null)?.blur()},
  ]), []);
  if (recorded.error.value && !items) return <Failed error={recorded.error.value} again={() => location.reload()} />;
  if (!items) return <Loading what="Looking what is recorded" />;
  const shown = filtered(items, chosen);
  const isNarrowed = Object.keys(chosen).length > 0;
  return (
    <>
      <header class="screen-head">
        <h1>Inbox</h1>
        <span class="dim">{isNarrowed ? `${count(shown.length)} of ${plural(items.length, 'record')}` : plural(items.length, 'record')}
          {recorded.cursor.value || recorded.runCursor.value ? ' so far' : ''}</span>
        {recorded.isUp.value && <Badge tone="info" title="What is recorded now appears by itself">live</Badge>}
        {recorded.fresh.value.size > 0 && (
          <button type="button" onClick={() => (recorded.fresh.value = new Set())}>{`${count(recorded.fresh.value.size)} new: mark as seen`}</button>
        )}
        <span class="grow" />
        <button type="button" class="facets-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Filter</button>
        <input id="inbox-search" type="search" placeholder="Search all fields" aria-label="Search all fields"
               value={chosen['q'] ?? ''} onInput={(event) => adjust({q: event.currentTarget.value}, false)} />
      </header>
      <div class="inbox">
        <Facets items={items} chosen={chosen} isOpen={isOpen} />
        {items.length === 0 ? <Nothing />
          : shown.length === 0 ? (
            <Empty title="Nothing matches">
              <button type="button" onClick={clear}>Clear the filter</button>
            </Empty>
          ) : (
            <VirtualList items={shown} rowHeight={46} label="Records" class="inbox-list" keyOf={(item) => item.id}
                         active={active} onActive={setActive} onOpen={(i) => (location.hash = shown[i]!.href)}
                         onEnd={() => void recorded.more()}
                         render={(item) => <Row item={item} isFresh={recorded.fresh.value.has(item.id)} />} />
          )}
      </div>
    </>
  );
}

function clear(): void {
  adjust({...Object.fromEntries(FACETS.map((facet) => [facet.id, null])), time: null, q: null});
}

function Nothing() {
  return (
    <Empty title="Nothing is recorded here yet">
      <p>Agents send their signed traces to <code>/api/v1/covenant/events</code>; <code>cortex record FILE</code> takes them from files.</p>
      <p>Governed runs appear when the server is started with <code>--repo DIR</code>.</p>
      <p>A single history needs no server: <code>cortex lattice view FILE</code>.</p>
    </Empty>
  );
}

function Facets({items, chosen, isOpen}: {items: readonly Item[]; chosen: Chosen; isOpen: boolean}) {
  const isNarrowed = Object.keys(chosen).length > 0;
  return (
    <aside class={`facets ${isOpen ? 'facets-open' : ''}`} aria-label="Filter">
      {FACETS.map((facet) => {
        const values = counted(items, chosen, facet.id);
        if (values.length < 2 && !chosen[facet.id]) return null;
        return (
          <fieldset key={facet.id}>
            <legend>{facet.title}</legend>
            {values.slice(0, 12).map(([value, n]) => (
              <Choice key={value} facet={facet.id} value={value} n={n} isOn={chosen[facet.id] === value}
                      text={facet.id === 'agent' ? shortAgent(value) : value} />
            ))}
            {values.length > 12 && <p class="dim">{`and ${count(values.length - 12)} more: search for them`}</p>}
          </fieldset>
        );
      })}
      <fieldset>
        <legend>Time</legend>
        {TIMES.map((one) => <Choice key={one.id} facet="time" value={one.id} isOn={chosen['time'] === one.id} text={one.title}
                                    n={filtered(items, {...chosen, time: one.id}).length} />)}
      </fieldset>
      {isNarrowed && <button type="button" onClick={clear}>Clear the filter</button>}
    </aside>
  );
}

function Choice({facet, value, text, n, isOn}: {facet: string; value: string; text: string; n: number; isOn: boolean}) {
  return (
    <button type="button" class="choice" aria-pressed={isOn} onClick={() => adjust({[facet]: isOn ? null : value})}>
      <Line text={text} most={40} /><span class="choice-count">{count(n)}</span>
    </button>
  );
}

const ICONS: Record<Item['kind'], IconName> = {trace: 'shield', run: 'next', history: 'lanes'};

function Row({item, isFresh}: {item: Item; isFresh: boolean}) {
  return (
    <div class={`item item-${item.kind}`}>
      <Icon name={ICONS[item.kind]} label={item.kind} />
      <div class="item-what">
        <span class="item-title"><Line text={item.title} most={120} />{isFresh && <Badge tone="info">new</Badge>}</span>
        <span class="item-sub dim"><Line text={item.sub} most={160} /></span>
      </div>
      <div class="item-signs"><Signs item={item} /></div>
      <span class="item-agent mono dim"><Line text={item.agent ? shortId(item.agent) : ''} most={24} /></span>
      <span class="item-when dim" title={item.when === null ? undefined : time(item.when)}>{item.when === null ? '' : ago(item.when)}</span>
    </div>
  );
}

function Signs({item}: {item: Item}) {
  const {trace, run, history} = item;
  if (trace)
    return (
      <>
        {trace.conscience.overridden && <Badge tone="warn">overridden</Badge>}
        {trace.conscience.passed === false && <Badge tone="warn">conscience</Badge>}
        {trace.idma.fragility_flag && <Badge tone="plain">fragile</Badge>}
        {trace.scores.k_eff !== null && <span class="dim" title="effective number of independent sources">{`k ${trimmed(trace.scores.k_eff)}`}</span>}
        {trace.signature_verified ? <Badge tone="good">verified</Badge> : <Badge tone="bad">not verified</Badge>}
      </>
    );
  if (run)
    return (
      <>
        {run.failed_gate && <Badge tone="warn"><Line text={run.failed_gate} most={40} /></Badge>}
        {run.sealed && <Badge icon="lock">sealed</Badge>}
        {run.status === 'SUCCESS' ? <Badge tone="good">merged</Badge> : run.status === 'RUNNING' ? <Badge tone="info">running</Badge> : <Badge tone="bad">failed</Badge>}
      </>
    );
  return history ? <span class="dim">{plural(history.entries, 'record')}</span> : null;
}
