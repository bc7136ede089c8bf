// fleet.tsx - all agents: findings of the detectors, independence and reliability over time, and
// gaps of audit chains.
//
//   #/fleet?agent=HASH&days=7|30|90&alerts=all&only=HASH

import type {Alerts as AlertPage} from '../../base/api-types';
import {useEffect, useMemo, useState} from 'preact/hooks';
import {count, plural, shortAgent} from '../../base/format';
import {addCommands} from '../../base/keys';
import {useAnswer} from '../../base/load';
import {adjust, go, linkTo, route} from '../../base/router';
import {plain} from '../../base/text';
import {Badge, type Tone} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Answer, Empty, Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import {when} from '../trace/model';
import {Alerts} from './alerts';
import {Chart} from './chart';
import {
  chainWords,
  FEW,
  leftOut,
  MEASURES,
  newest,
  total,
  worstFirst,
  type Agent,
  type Fleet as FleetData,
} from './model';

const TONES: Record<string, Tone> = {holds: 'good', broken: 'bad', indeterminate: 'plain'};
const DAYS = ['7', '30', '90'];

export function Fleet() {
  const days = DAYS.includes(route.value.query['days'] ?? '') ? route.value.query['days']! : '30';
  const only = route.value.query['only'];
  const of = useAnswer<FleetData>('/api/v1/covenant/fleet', {days, agent: only});
  const agents = useMemo(() => worstFirst(of.value?.agents ?? []), [of.value]);
  useKeys(agents);
  if (of.error) return <Failed error={of.error} again={() => location.reload()} />;
  if (!of.value) return <Loading what="Loading the fleet" />;
  return (
    <>
      <Head fleet={of.value} days={days} only={only} />
      <div class="fleet-body">
        <div class="fleet-main">
          {agents.length === 0 && only ? (
            <Empty title="This agent has not sent a verified trace">
              <button type="button" onClick={() => adjust({only: null})}>
                All agents
              </button>
            </Empty>
          ) : agents.length === 0 ? (
            <Empty title="No agent has sent a verified trace yet">
              <p>
                This screen measures agents that sign their traces. Add their keys with{' '}
                <code>cortex key add</code>, then record their traces with{' '}
                <code>cortex record FILE</code>, or POST /api/v1/covenant/events. Sessions,
                OpenTelemetry traces and steps are in the <a href={linkTo('inbox')}>inbox</a>.
              </p>
              <Measures />
            </Empty>
          ) : (
            <>
              <Charts fleet={of.value} agents={agents} />
              <LeftOut fleet={of.value} />
              <Agents agents={agents} />
              <Measures />
            </>
          )}
        </div>
        <AlertSide />
      </div>
    </>
  );
}

const DRAWN = 40;

function Head({fleet, days, only}: {fleet: FleetData; days: string; only: string | undefined}) {
  return (
    <header class="screen-head">
      <h1>Fleet</h1>
      <span class="dim">
        {plural(fleet.agents.length, 'agent')}
        {fleet.left_out.agents > 0 ? ` of ${fleet.agents.length + fleet.left_out.agents}` : ''}
      </span>
      {only && (
        <button type="button" onClick={() => adjust({only: null, agent: null})}>
          Show all agents
        </button>
      )}
      <span class="grow" />
      {fleet.left_out.agents > 0 && <LookUp />}
      <div class="fleet-days" role="group" aria-label="Period">
        {DAYS.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={one === days}
            onClick={() => adjust({days: one})}
          >{`${one} days`}</button>
        ))}
      </div>
    </header>
  );
}

function Measures() {
  return (
    <section class="fleet-measures" aria-labelledby="fleet-measures-title">
      <h2 id="fleet-measures-title">What the measures mean</h2>
      <dl>
        {MEASURES.map((one) => (
          <div key={one.title}>
            <dt>{one.title}</dt>
            <dd>
              {one.words}. <span class="dim">{`Needs ${one.needs}.`}</span>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** For an agent that is left out. */
function LookUp() {
  const [name, setName] = useState('');
  return (
    <form
      class="fleet-look"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim()) adjust({only: name.trim()});
      }}
    >
      <input
        type="search"
        aria-label="Find an agent"
        placeholder="Find an agent"
        maxLength={200}
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
    </form>
  );
}

/** Lists what is left out, next to the table. */
function LeftOut({fleet}: {fleet: FleetData}) {
  const words = leftOut(fleet, DRAWN);
  return words.length === 0 ? null : (
    <p class="fleet-left dim" role="note">
      {words.join(' ')}
    </p>
  );
}

function choose(agent: string | null): void {
  adjust({agent: agent === route.value.query['agent'] ? null : agent}, false);
}

function useKeys(agents: readonly Agent[]): void {
  useEffect(() => {
    const step = (by: number): void => {
      if (agents.length === 0) return;
      const now = agents.findIndex((one) => one.agent === route.value.query['agent']);
      const next =
        now < 0
          ? by > 0
            ? 0
            : agents.length - 1
          : Math.max(0, Math.min(agents.length - 1, now + by));
      adjust({agent: agents[next]!.agent}, false);
    };
    return addCommands([
      {keys: 'ArrowDown j', what: 'Next agent', group: 'Fleet', run: () => step(1)},
      {keys: 'ArrowUp k', what: 'Previous agent', group: 'Fleet', run: () => step(-1)},
      {
        keys: 'Escape',
        what: 'Clear the selected agent',
        group: 'Fleet',
        run: () => adjust({agent: null}, false),
      },
      {
        keys: 'a',
        what: 'Toggle open and all alerts',
        group: 'Fleet',
        run: () => adjust({alerts: route.value.query['alerts'] ? null : 'all'}),
      },
      {
        keys: 'd',
        what: 'Open the agent in the debugger',
        group: 'Fleet',
        run: () => {
          const agent = route.value.query['agent'];
          if (agent) go('debugger', `agent/${agent}`);
        },
      },
    ]);
  }, [agents]);
}

function Charts({fleet, agents}: {fleet: FleetData; agents: readonly Agent[]}) {
  const names = useMemo(() => fleet.agents.map((one) => one.agent).sort(), [fleet]);
  const chosen = route.value.query['agent'] ?? null;
  const shown = useMemo(() => agents.slice(0, DRAWN), [agents]);
  return (
    <div class="fleet-charts">
      {(['k_eff', 'capacity'] as const).map((series) => (
        <Chart
          key={series}
          series={series}
          agents={shown}
          names={names}
          days={fleet.days}
          chosen={chosen}
        />
      ))}
    </div>
  );
}

function Agents({agents}: {agents: readonly Agent[]}) {
  const chosen = route.value.query['agent'];
  const names = useMemo(() => agents.map((one) => one.agent).sort(), [agents]);
  return (
    <div class="fleet-scroll" tabIndex={0} role="region" aria-label="Agents">
      <table class="fleet-table">
        <thead>
          <tr>
            <th scope="col">Agent</th>
            <th scope="col">Traces</th>
            <th scope="col">k_eff</th>
            <th scope="col">Capacity</th>
            <th scope="col">Fragile</th>
            <th scope="col">Overridden</th>
            <th scope="col">Audit chain</th>
            <th scope="col">Newest</th>
          </tr>
        </thead>
        <tbody>
          {agents.map((one) => (
            <AgentRow
              key={one.agent}
              one={one}
              chosen={one.agent === chosen}
              lane={names.indexOf(one.agent) % 8}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function AgentRow({one, chosen, lane}: {one: Agent; chosen: boolean; lane: number}) {
  const traces = total(one.traces),
    k = newest(one.k_eff),
    capacity = newest(one.capacity);
  const wrong = chainWords(one.chain);
  return (
    <tr class={chosen ? 'fleet-chosen' : ''}>
      <th scope="row">
        <div class="fleet-name">
          <span
            class="lane-mark fleet-lane"
            style={{background: `var(--lane-${lane})`}}
            aria-hidden="true"
          />
          <button
            type="button"
            class="link mono"
            aria-pressed={chosen}
            onClick={() => choose(one.agent)}
          >
            <Line text={shortAgent(one.agent)} most={30} />
          </button>
          <a
            href={linkTo('debugger', `agent/${one.agent}`)}
            aria-label={`Open ${plain(one.agent)} in the debugger`}
            title="Open in the debugger"
          >
            <Icon name="lanes" />
          </a>
        </div>
      </th>
      <td class="mono">
        {count(traces)}
        <Spark values={one.traces} />
      </td>
      <td class={`mono ${k !== null && k < 2 ? 'fleet-low' : ''}`}>
        {k === null ? '\u2013' : k.toFixed(2)}
      </td>
      <td class={`mono ${capacity !== null && capacity < 0.3 ? 'fleet-low' : ''}`}>
        {capacity === null ? (
          <span class="dim" title="fewer than ten decisions in thirty days">
            too few decisions
          </span>
        ) : (
          capacity.toFixed(2)
        )}
      </td>
      <td class="mono">
        {traces < FEW ? (
          <span class="dim" title={`A share needs ${FEW} traces in this period`}>
            too few traces
          </span>
        ) : (
          `${Math.round((100 * one.fragile) / traces)} %`
        )}
      </td>
      <td class="mono">{count(one.overridden)}</td>
      <td class="fleet-chain">
        <Badge
          tone={TONES[one.chain.verdict]}
          title={`${one.chain.entries} entries, profile ${one.chain.profile}`}
        >
          {one.chain.verdict}
        </Badge>
        {wrong && (
          <span class={one.chain.verdict === 'broken' ? 'fleet-wrong' : 'dim'}>{wrong}</span>
        )}
      </td>
      <td class="dim">{one.last ? when(one.last).slice(0, 10) : '\u2013'}</td>
    </tr>
  );
}

/** Traces by day, as small bars. */
function Spark({values}: {values: readonly number[]}) {
  const most = Math.max(1, ...values);
  const width = 64 / values.length;
  return (
    <svg class="fleet-spark" viewBox="0 0 64 16" width="64" height="16" aria-hidden="true">
      {values.map(
        (value, i) =>
          value > 0 && (
            <rect
              key={i}
              x={i * width}
              y={16 - (16 * value) / most}
              width={Math.max(1, width - 0.5)}
              height={(16 * value) / most}
              fill="currentColor"
            />
          ),
      )}
    </svg>
  );
}

function AlertSide() {
  const all = route.value.query['alerts'] === 'all';
  const agent = route.value.query['agent'];
  const [turn, setTurn] = useState(0);
  return (
    <aside class="fleet-side" aria-label="Alerts">
      <header class="fleet-side-head">
        <h2>Alerts</h2>
        <button
          type="button"
          aria-pressed={all}
          onClick={() => adjust({alerts: all ? null : 'all'})}
        >
          Include resolved
        </button>
      </header>
      <AlertList key={turn} all={all} agent={agent} again={() => setTurn(turn + 1)} />
    </aside>
  );
}

const MOST = 200;

function AlertList({all, agent, again}: {all: boolean; agent: string | undefined; again(): void}) {
  const of = useAnswer<AlertPage>('/api/v1/covenant/alerts', {
    status: all ? 'all' : 'open',
    limit: MOST,
  });
  return (
    <Answer of={of} what="Alerts">
      {(found) => {
        const shown = agent
          ? found.alerts.filter((one) => one.agent_id_hash === agent)
          : found.alerts;
        return (
          <>
            {found.alerts.length >= MOST && (
              <p class="fleet-note dim">
                {`The newest ${MOST}; `}
                <a href={linkTo('inbox', '', {kind: 'alert'})}>see the inbox for all</a>.
              </p>
            )}
            {agent && (
              <p class="fleet-note dim">
                {`${shown.length} of ${found.alerts.length}, for the selected agent. `}
                <button type="button" class="link" onClick={() => adjust({agent: null}, false)}>
                  All
                </button>
              </p>
            )}
            {shown.length === 0 ? (
              <Empty title={all ? 'No alerts' : 'No open alerts'}>
                <p>
                  Five detectors examine scores, chains, drift and overrides when{' '}
                  <code>cortex detect</code> runs.
                </p>
              </Empty>
            ) : (
              <Alerts alerts={shown} again={again} />
            )}
          </>
        );
      }}
    </Answer>
  );
}
