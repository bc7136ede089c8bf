// model.ts - the fleet as the server returns it (covenant/fleet, covenant/alerts), and values
// derived from it. Pure.

import type {Alert, ChainCounts, Fleet, FleetAgent as Agent} from '../../base/api-types';
import {plural} from '../../base/format';

export type {Agent, Alert, Fleet};

export const MECHANISMS: Record<string, string> = {
  cross_agent_divergence: 'Scores differ from those of other agents',
  intra_agent_consistency: 'Inconsistent decisions',
  hash_chain: 'Broken audit chain',
  temporal_drift: 'Scores drifted between days',
  conscience_override: 'Overridden more often than other agents',
  trace_id_conflict: 'Two traces with the same id',
  enforcement_gap: 'A tool call ran that no hook decided',
};

/** Fewer traces than this are no share of anything. */
export const FEW = 5;

export const SERIES = ['k_eff', 'capacity', 'plausibility'] as const;
export type Series = (typeof SERIES)[number];

export const ABOUT: Record<Series, {title: string; words: string; mark?: number}> = {
  k_eff: {
    title: 'k_eff',
    words: 'effective number of independent sources per decision; below 2 is fragile',
    mark: 2,
  },
  capacity: {
    title: 'Capacity',
    words: 'reliability score of the agent, 0 to 1; below 0.3 is fragile',
    mark: 0.3,
  },
  plausibility: {
    title: 'Plausibility',
    words: 'mean plausibility score of the agent\u2019s decisions',
  },
};

/** What the table's columns mean, and from when on they say something. */
export const MEASURES: readonly {title: string; words: string; needs: string}[] = [
  {
    title: 'k_eff',
    words:
      'how many of an agent\u2019s sources are independent of each other, as the agent itself reports it; below 2 is fragile',
    needs: 'one trace with the score',
  },
  {
    title: 'Capacity',
    words: 'reliability computed from verified decisions, 0 to 1; below 0.3 is fragile',
    needs: 'ten decisions in thirty days',
  },
  {
    title: 'Fragile',
    words: 'share of traces whose agent marks its own decision as fragile',
    needs: `${FEW} traces in the period`,
  },
  {
    title: 'Overridden',
    words: 'decisions whose action the agent\u2019s conscience overrode',
    needs: 'one trace',
  },
  {
    title: 'Audit chain',
    words:
      'whether the numbers and hashes of the agent\u2019s traces follow each other without a gap',
    needs: 'two traces',
  },
];

export function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** The newest value that there is. */
export function newest(values: readonly (number | null)[]): number | null {
  for (let i = values.length; i-- > 0; ) if (values[i] !== null) return values[i]!;
  return null;
}

const ordinal = (n: number): string =>
  `${n}${n % 10 === 1 && n % 100 !== 11 ? 'st' : n % 10 === 2 && n % 100 !== 12 ? 'nd' : n % 10 === 3 && n % 100 !== 13 ? 'rd' : 'th'}`;

/** What the charts and the table do not show, in sentences; empty when they show all. */
export function leftOut(fleet: Fleet, drawn: number): string[] {
  const words: string[] = [];
  if (fleet.left_out.agents > 0)
    words.push(
      `${plural(fleet.left_out.agents, 'agent')} with fewer traces (${plural(fleet.left_out.traces, 'trace')} in this period) are not shown; alerts cover all agents.`,
    );
  if (fleet.agents.length > drawn)
    words.push(
      `The charts show the ${drawn} worst of the ${fleet.agents.length} agents in the table.`,
    );
  if (fleet.capacity_step > 1)
    words.push(`Capacity is computed for every ${ordinal(fleet.capacity_step)} day.`);
  return words;
}

/** Days as seconds, for an axis. */
export function daySeconds(days: readonly string[]): number[] {
  return days.map((day) => Date.parse(day + 'T00:00:00Z') / 1000);
}

/** What is wrong with a chain in a few words; empty when nothing is. */
export function chainWords(chain: ChainCounts): string {
  const words: string[] = [];
  for (const kind of ['gap', 'fork', 'mismatch', 'reorder', 'duplicate'] as const)
    if (chain[kind] > 0)
      words.push(
        `${chain[kind]} ${kind}${chain[kind] > 1 ? (kind === 'mismatch' ? 'es' : 's') : ''}`,
      );
  return words.join(', ');
}

/** Worst first: broken chains, then what is most fragile, then by name. */
export function worstFirst(agents: readonly Agent[]): Agent[] {
  const rank = (agent: Agent): number => (agent.chain.verdict === 'broken' ? 0 : 1);
  return [...agents].sort(
    (a, b) =>
      rank(a) - rank(b) ||
      (newest(a.capacity) ?? 2) - (newest(b.capacity) ?? 2) ||
      (a.agent < b.agent ? -1 : 1),
  );
}
