// items.ts - traces, runs, histories and alerts as rows of one list, and the facets they have.

import {shortAgent, shortId} from '../../base/format';
import {linkTo} from '../../base/router';

export interface TraceRow {
  agent_id_hash: string | null;
  trace_id: string;
  timestamp: string | null;
  selected_action: string | null;
  signature_verified: boolean;
  trace_level: string | null;
  trace_type: string | null;
  task_id: string | null;
  cognitive_state: string | null;
  conscience: {overridden: boolean | null; passed: boolean | null};
  idma: {fragility_flag: boolean | null; phase_computed: string | null};
  scores: {csdma: number | null; dsdma: number | null; k_eff: number | null};
}

export interface RunRow {
  run_id: string;
  task_id: string | null;
  status: string;
  created_at: string | null;
  finished_at: string | null;
  failed_gate: string | null;
  sealed: boolean;
}

export interface History {
  name: string;
  entries: number;
}

export interface Alert {
  alert_id?: string;
  id?: string;
  detector?: string;
  kind?: string;
  severity?: string;
  summary?: string;
  message?: string;
  agent_id_hash?: string | null;
  first_seen?: string;
  created_at?: string;
  status?: string;
}

export type Kind = 'trace' | 'run' | 'history';

export interface Item {
  kind: Kind;
  id: string;
  href: string;
  /** Seconds; null when nothing says when. */
  when: number | null;
  title: string;
  /** In one line below or beside. */
  sub: string;
  agent: string | null;
  facets: Record<string, string>;
  /** All that the search looks through, in lower case. */
  text: string;
  trace?: TraceRow;
  run?: RunRow;
  history?: History;
}

const seconds = (text: string | null | undefined): number | null => {
  const value = text ? Date.parse(text.replace(/(\.\d{3})\d+/, '$1')) : NaN;
  return Number.isFinite(value) ? value / 1000 : null;
};

function kEff(value: number | null): string {
  if (value === null) return 'unknown';
  return value < 2 ? 'below 2' : value < 5 ? '2 to 5' : '5 and more';
}

export function ofTrace(trace: TraceRow): Item {
  const agent = trace.agent_id_hash;
  const gate = trace.conscience.overridden ? 'overridden' : trace.conscience.passed === false ? 'not passed' : 'passed';
  return {
    kind: 'trace', id: `trace ${agent ?? ''} ${trace.trace_id}`,
    href: linkTo('trace', trace.trace_id, agent ? {agent} : {}),
    when: seconds(trace.timestamp), title: trace.selected_action ?? trace.trace_type ?? 'trace',
    sub: [trace.trace_type, trace.task_id, trace.trace_id].filter(Boolean).join(' \u00b7 '), agent,
    facets: {
      kind: 'trace', verdict: trace.signature_verified ? 'verified' : 'not verified', level: trace.trace_level ?? 'unknown',
      k_eff: kEff(trace.scores.k_eff), gate, ...(agent ? {agent} : {}),
    },
    text: JSON.stringify(trace).toLowerCase(), trace,
  };
}

export function ofRun(run: RunRow): Item {
  return {
    kind: 'run', id: `run ${run.run_id}`, href: linkTo('run', run.run_id), when: seconds(run.created_at),
    title: run.task_id ?? run.run_id, sub: run.run_id, agent: null,
    facets: {
      kind: 'run', verdict: run.status === 'SUCCESS' ? 'merged' : run.status === 'RUNNING' ? 'running' : 'failed',
      gate: run.failed_gate ?? (run.status === 'SUCCESS' ? 'passed' : 'unknown'),
    },
    text: JSON.stringify(run).toLowerCase(), run,
  };
}

export function ofHistory(history: History): Item {
  const agent = history.name.startsWith('agent/') ? history.name.slice(6) : null;
  return {
    kind: 'history', id: `history ${history.name}`, href: linkTo('debugger', history.name), when: null,
    title: shortAgent(history.name), sub: agent ? 'history of an agent\u2019s signed traces' : 'history from spans', agent,
    facets: {kind: 'history', ...(agent ? {agent} : {})}, text: history.name.toLowerCase(), history,
  };
}

export const FACETS: readonly {id: string; title: string}[] = [
  {id: 'kind', title: 'Kind'}, {id: 'verdict', title: 'Verdict'}, {id: 'gate', title: 'Conscience or gate'},
  {id: 'k_eff', title: 'k_eff'}, {id: 'level', title: 'Level'}, {id: 'agent', title: 'Agent'},
];

export const TIMES: readonly {id: string; title: string; seconds: number}[] = [
  {id: '1h', title: 'Last hour', seconds: 3600}, {id: '24h', title: 'Last day', seconds: 86400},
  {id: '7d', title: 'Last week', seconds: 604800},
];

export type Chosen = Readonly<Record<string, string>>;

function holds(item: Item, chosen: Chosen, now: number, without?: string): boolean {
  for (const {id} of FACETS) {
    const wanted = chosen[id];
    if (wanted && id !== without && item.facets[id] !== wanted) return false;
  }
  const time = TIMES.find((one) => one.id === chosen['time']);
  if (time && without !== 'time' && (item.when === null || now - item.when > time.seconds)) return false;
  const words = (chosen['q'] ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return words.every((word) => item.text.includes(word));
}

export function filtered(items: readonly Item[], chosen: Chosen, now = Date.now() / 1000): Item[] {
  return items.filter((item) => holds(item, chosen, now))
    .sort((a, b) => (b.when ?? Infinity) - (a.when ?? Infinity) || (a.id < b.id ? -1 : 1));
}

/** How many items each value of a facet would leave, the other facets as they are. */
export function counted(items: readonly Item[], chosen: Chosen, facet: string, now = Date.now() / 1000): [string, number][] {
  const counts = new Map<string, number>();
  for (const item of items) {
    const value = item.facets[facet];
    if (value !== undefined && holds(item, chosen, now, facet)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
}

export {shortId};
