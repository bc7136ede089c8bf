// model.ts - two nodes side by side, as view/compare sends them, and how the steps are folded.  Pure.

import type {NodeRef} from '../debugger/types';
import type {Section} from '../../base/focus';
import type {Sent} from '../../ui/value';

export interface Side extends NodeRef {
  label: string;
}

export interface Pair {
  a: Side | null;
  b: Side | null;
  same: boolean;
}

export interface Difference {
  a: Sent | null;
  b: Sent | null;
  key: string | null;
  section: Section;
}

export interface Comparison {
  a: NodeRef;
  b: NodeRef;
  common: NodeRef | null;
  counts: [number, number];
  diff: Difference[];
  first: number | null;
  from: number;
  knowledge: NodeRef[];
  more_diff: boolean;
  steps: Pair[];
  verified: boolean;
}

export type StepRow = {kind: 'pair'; index: number; pair: Pair} | {kind: 'same'; index: number; count: number};

/** Steps that are the same and have such ones on both sides become one row. */
export function folded(steps: readonly Pair[], from: number, least = 3): StepRow[] {
  const rows: StepRow[] = [];
  for (let i = 0; i < steps.length;) {
    let end = i;
    while (end < steps.length && steps[end]!.same) end++;
    if (end - i >= least) {
      rows.push({kind: 'same', index: from + i, count: end - i});
      i = end;
    } else {
      rows.push({kind: 'pair', index: from + i, pair: steps[i]!});
      i++;
    }
  }
  return rows;
}

/** Who of the two has a value: "a", "b" or "both". */
export function whose(difference: Difference): 'a' | 'b' | 'both' {
  return difference.a === null ? 'b' : difference.b === null ? 'a' : 'both';
}

export function variance(diff: readonly Difference[]): {a: number; b: number; both: number} {
  const counts = {a: 0, b: 0, both: 0};
  for (const one of diff) counts[whose(one)]++;
  return counts;
}

/** The two that are compared when nobody has chosen: those who did most. */
export function firstTwo(lanes: readonly {agent: string; nodes: number}[]): [string, string] | null {
  const named = lanes.filter((lane) => lane.agent !== '?');
  const most = [...named].sort((x, y) => y.nodes - x.nodes || (x.agent < y.agent ? -1 : 1));
  return most.length < 2 ? null : [`@${most[0]!.agent}`, `@${most[1]!.agent}`];
}
