// inbox.tsx - everything recorded, newest first: traces, runs, histories and findings, with facets,
// search, and live updates.
//
//   #/inbox?q=WORDS&kind=..&verdict=..&gate=..&k_eff=..&level=..&agent=..&time=..

import {useEffect, useMemo, useState} from 'preact/hooks';
import type {HistoryRow, LiveSession} from '../../base/api-types';
import {ago, count, duration, plural, shortId, time, trimmed} from '../../base/format';
import {addCommands} from '../../base/keys';
import {adjust, route} from '../../base/router';
import {Badge} from '../../ui/badge';
import {Connect} from '../../ui/connect';
import {Icon, type IconName} from '../../ui/icon';
import {VirtualList} from '../../ui/list';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import {FACETS, hrefOf, keyOf, seconds, textsOf, facetLabel, type Facets, type Item} from './items';
import {Hits} from './hits';
import {Recorded, type Chosen} from './recorded';

const TYPING_MS = 200;

/** What of the address is asked for. */
function chosenOf(query: Readonly<Record<string, string>>): Chosen {
  const chosen: Record<string, string> = {};
  for (const id of [...FACETS.map((facet) => facet.id), 'q'])
    if (query[id]) chosen[id] = query[id]!;
  return chosen;
}

export function Inbox() {
  const recorded = useMemo(() => new Recorded(), []);
  useEffect(() => () => recorded.close(), [recorded]);
  const chosen = chosenOf(route.value.query);
  const key = JSON.stringify(chosen);
  useEffect(() => {
    const timer = setTimeout(() => recorded.show(chosen), recorded.items.value ? TYPING_MS : 0);
    return () => clearTimeout(timer);
  }, [key]);
  const items = recorded.items.value;
  const facets = recorded.facets.value;
  const [active, setActive] = useState(-1);
  const [isOpen, setOpen] = useState(false);
  useEffect(
    () =>
      addCommands([
        {
          keys: '/',
          what: 'Search',
          group: 'Inbox',
          run: () => document.getElementById('inbox-search')?.focus(),
        },
        {
          keys: 'Escape',
          what: 'Leave the search field',
          group: 'Inbox',
          run() {}, // as in all screens
        },
      ]),
    [],
  );
  const isNarrowed = Object.keys(chosen).length > 0;
  return (
    <>
      <header class="screen-head">
        <h1>Inbox</h1>
        {facets && !recorded.error.value && (
          <span class="dim" role="status">
            {facets.complete
              ? plural(facets.total, 'record')
              : `${count(facets.total)} records or more`}
            {isNarrowed ? ' found' : ''}
          </span>
        )}
        {recorded.isUp.value && (
          <Badge tone="info" title="New records appear automatically">
            live
          </Badge>
        )}
        {recorded.fresh.value.size > 0 && (
          <button
            type="button"
            onClick={() => (recorded.fresh.value = new Set())}
          >{`${count(recorded.fresh.value.size)} new: mark as seen`}</button>
        )}
        <span class="grow" />
        <button
          type="button"
          class="facets-toggle"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          Filter
        </button>
        <input
          id="inbox-search"
          type="search"
          placeholder="Search everything"
          aria-label="Search everything"
          maxLength={80}
          title="Words of prompts, messages, tool arguments and results, and of rationales; prefixes of ids, actions and types; all terms must match"
          value={chosen['q'] ?? ''}
          onInput={(event) => adjust({q: event.currentTarget.value}, false)}
        />
      </header>
      {recorded.error.value ? (
        <Failed error={recorded.error.value} again={() => location.reload()} />
      ) : !items || !facets ? (
        <Loading what="Loading the records" />
      ) : (
        <div class="inbox">
          <FacetSide facets={facets} chosen={chosen} isOpen={isOpen} />
          <div class="inbox-main">
            {chosen['q'] && <Hits words={chosen['q']} />}
            {items.length === 0 ? (
              isNarrowed ? (
                <NothingFound />
              ) : (
                <Nothing />
              )
            ) : (
              <VirtualList
                items={items}
                rowHeight={46}
                label="Records"
                class="inbox-list"
                keyOf={keyOf}
                active={active}
                onActive={setActive}
                onOpen={(i) => (location.hash = hrefOf(items[i]!))}
                onEnd={() => void recorded.more()}
                render={(item) => (
                  <Row item={item} isFresh={recorded.fresh.value.has(keyOf(item))} />
                )}
              />
            )}
          </div>
        </div>
      )}
    </>
  );
}

function clear(): void {
  adjust({...Object.fromEntries(FACETS.map((facet) => [facet.id, null])), q: null});
}

function NothingFound() {
  return (
    <Empty title="No matching records">
      <p>
        The search matches words of prompts, messages, tool arguments and results, words of
        rationales, and prefixes of ids, actions and types; all terms must match.
      </p>
      <button type="button" onClick={clear}>
        Clear the filter
      </button>
    </Empty>
  );
}

function Nothing() {
  return (
    <div class="inbox-first">
      <h2>No records yet: connect an agent</h2>
      <Connect />
      <p class="dim">
        Signed traces are sent to <code>/api/v1/covenant/events</code>, or read by{' '}
        <code>cortex record FILE</code>. Governed runs appear with{' '}
        <code>cortex serve --repo DIR</code>. One file needs no server:{' '}
        <code>cortex lattice view FILE</code>.
      </p>
    </div>
  );
}

const SHOWN = 12;

function FacetSide({facets, chosen, isOpen}: {facets: Facets; chosen: Chosen; isOpen: boolean}) {
  return (
    <aside class={`facets ${isOpen ? 'facets-open' : ''}`} aria-label="Filter">
      {!facets.complete && (
        <p class="facets-note">
          Too many matches: the counts cover the newest 20 000 matching traces.
        </p>
      )}
      {FACETS.map((facet) => (
        <Facet
          key={facet.id}
          facets={facets}
          id={facet.id}
          title={facet.title}
          chosen={chosen[facet.id]}
        />
      ))}
      {Object.keys(chosen).length > 0 && (
        <button type="button" onClick={clear}>
          Clear the filter
        </button>
      )}
    </aside>
  );
}

function Facet({
  facets,
  id,
  title,
  chosen,
}: {
  facets: Facets;
  id: string;
  title: string;
  chosen: string | undefined;
}) {
  const [isAll, setAll] = useState(false);
  const {values, more} = facets.facets[id]!;
  const all =
    chosen !== undefined && !values.some((one) => one.value === chosen)
      ? [...values, {value: chosen, count: 0}]
      : values;
  if (all.length < 2 && chosen === undefined) return null;
  const shown = isAll ? all : all.filter((one, i) => i < SHOWN || one.value === chosen);
  return (
    <fieldset>
      <legend>{title}</legend>
      {shown.map((one) => (
        <Choice
          key={one.value}
          facet={id}
          value={one.value}
          n={one.count}
          isOn={chosen === one.value}
        />
      ))}
      {shown.length < all.length && (
        <button
          type="button"
          class="link facets-more"
          onClick={() => setAll(true)}
        >{`${count(all.length - shown.length)} more`}</button>
      )}
      {isAll && more > 0 && (
        <p class="dim facets-more">{`${count(more)} less frequent values: use the search`}</p>
      )}
    </fieldset>
  );
}

function Choice({facet, value, n, isOn}: {facet: string; value: string; n: number; isOn: boolean}) {
  return (
    <button
      type="button"
      class="choice"
      aria-pressed={isOn}
      onClick={() => adjust({[facet]: isOn ? null : value})}
    >
      <Line text={facetLabel(facet, value)} most={40} />
      <span class="choice-count">{count(n)}</span>
    </button>
  );
}

const ICONS: Record<Item['kind'], IconName> = {
  trace: 'shield',
  run: 'next',
  history: 'lanes',
  alert: 'warn',
};
const KINDS: Record<Item['kind'], string> = {
  trace: 'trace',
  run: 'run',
  history: 'history',
  alert: 'finding',
};

function Row({item, isFresh}: {item: Item; isFresh: boolean}) {
  const [title, sub] = textsOf(item);
  const when = seconds(item.when);
  return (
    <div class={`item item-${item.kind}`}>
      <Icon name={ICONS[item.kind]} label={KINDS[item.kind]} />
      <div class="item-what">
        <span class="item-title">
          <Line text={title} most={120} />
          {isFresh && <Badge tone="info">new</Badge>}
        </span>
        <span class="item-sub dim">
          <Line text={sub} most={160} />
        </span>
      </div>
      <div class="item-signs">
        <Signs item={item} />
      </div>
      <span class="item-agent mono dim">
        <Line text={item.agent ? shortId(item.agent) : ''} most={24} />
      </span>
      <span class="item-when dim" title={when === null ? undefined : time(when)}>
        {when === null ? '' : ago(when)}
      </span>
    </div>
  );
}

const LIVE_S = 120;

function HistorySigns({of}: {of: HistoryRow}) {
  const [first, last] = [seconds(of.first), seconds(of.last)];
  const tokens = of.tokens_input + of.tokens_output;
  return (
    <>
      {of.errors > 0 && <Badge tone="bad">{plural(of.errors, 'error')}</Badge>}
      {last !== null && Date.now() / 1000 - last < LIVE_S && (
        <Badge tone="info" title="It grew in the last two minutes">
          live
        </Badge>
      )}
      {tokens > 0 && (
        <span
          class="dim item-number"
          title={`${count(of.tokens_input)} tokens in, ${count(of.tokens_output)} out`}
        >{`${short(tokens)} tokens`}</span>
      )}
      {of.cost_usd > 0 && <span class="dim item-number">{`$${of.cost_usd.toFixed(2)}`}</span>}
      {first !== null && last !== null && last > first && (
        <span class="dim item-number">{duration(last - first)}</span>
      )}
      <span class="dim item-number">{plural(of.steps, 'step')}</span>
    </>
  );
}

function SessionSigns({of}: {of: LiveSession}) {
  return (
    <>
      {of.waiting > 0 && (
        <Badge tone="warn" icon="clock">
          {`${of.waiting} waiting`}
        </Badge>
      )}
      {of.denied > 0 && <Badge tone="bad">{`${of.denied} denied`}</Badge>}
      <span class="dim item-number">{plural(of.calls, 'call')}</span>
    </>
  );
}

function short(value: number): string {
  return value < 10000
    ? count(value)
    : value < 1e6
      ? `${Math.round(value / 1000)} k`
      : `${(value / 1e6).toFixed(1)} M`;
}

function Signs({item}: {item: Item}) {
  if (item.kind === 'trace') {
    const {conscience, idma, scores, signature_verified} = item.value;
    return (
      <>
        {conscience.overridden && <Badge tone="warn">overridden</Badge>}
        {conscience.passed === false && <Badge tone="warn">conscience</Badge>}
        {idma.fragility_flag && <Badge tone="plain">fragile</Badge>}
        {scores.k_eff !== null && (
          <span
            class="dim"
            title="effective number of independent sources"
          >{`k ${trimmed(scores.k_eff)}`}</span>
        )}
        {signature_verified ? (
          <Badge tone="good">verified</Badge>
        ) : (
          <Badge tone="bad">not verified</Badge>
        )}
      </>
    );
  }
  if (item.kind === 'run') {
    const {failed_gate, sealed, status} = item.value;
    return (
      <>
        {failed_gate && (
          <Badge tone="warn">
            <Line text={failed_gate} most={40} />
          </Badge>
        )}
        {sealed && <Badge icon="lock">sealed</Badge>}
        {status === 'SUCCESS' ? (
          <Badge tone="good">merged</Badge>
        ) : status === 'RUNNING' ? (
          <Badge tone="info">running</Badge>
        ) : (
          <Badge tone="bad">failed</Badge>
        )}
      </>
    );
  }
  if (item.kind === 'alert') {
    const {acknowledged, resolved} = item.value;
    return resolved ? (
      <Badge tone="plain">resolved</Badge>
    ) : acknowledged ? (
      <Badge tone="info">acknowledged</Badge>
    ) : (
      <Badge tone="warn">open</Badge>
    );
  }
  if ('cwd' in item.value) return <SessionSigns of={item.value} />;
  if (!('steps' in item.value))
    return <span class="dim">{plural(item.value.entries, 'record')}</span>;
  return <HistorySigns of={item.value} />;
}
