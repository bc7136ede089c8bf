// model.ts - two nodes side by side, as view/compare returns them, and the folding of steps. Pure.

import type {
  CompareSide as Side,
  CompareStep as Pair,
  CompareValue as Difference,
  ViewComparison as Comparison,
} from '../../base/api-types';

export type {Comparison, Difference, Pair, Side};

export type StepRow =
  | {kind: 'pair'; index: number; pair: Pair}
  | {kind: 'same'; index: number; count: number};

/** Steps that are the same and have such ones on both sides become one row. */
export function folded(steps: readonly Pair[], from: number, least = 3): StepRow[] {
  const rows: StepRow[] = [];
  for (let i = 0; i < steps.length; ) {
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

/** What a row is called, and the first of all rows that differ. */
export function rowWords(
  pair: Pair,
  index: number,
  of: Comparison,
): {words: string; isFirst: boolean} {
  const isFirst = index === of.first;
  if (pair.same) return {words: 'identical', isFirst};
  if (pair.how === 'alike') return {words: 'similar', isFirst};
  return {words: !pair.b ? 'only in a' : !pair.a ? 'only in b' : 'paired by number', isFirst};
}

/** "run/ID" and what else names a run; null for other histories. */
export function runOf(name: string): string | null {
  return name.startsWith('run/') ? name.slice(4).split('/')[0]! : null;
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

/** The two that are compared by default: those with most steps. */
export function firstTwo(
  lanes: readonly {agent: string; nodes: number}[],
): [string, string] | null {
  const named = lanes.filter((lane) => lane.agent !== '?');
  const most = [...named].sort((x, y) => y.nodes - x.nodes || (x.agent < y.agent ? -1 : 1));
  return most.length < 2 ? null : [`@${most[0]!.agent}`, `@${most[1]!.agent}`];
}
