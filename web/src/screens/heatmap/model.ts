// model.ts - cells of a heatmap as view/heat returns them. Pure.

import type {ViewHeat as HeatAnswer} from '../../base/api-types';
import {duration, plural, trimmed} from '../../base/format';

export type {HeatAnswer};

export const LAYERS = ['divergence', 'time', 'cost', 'overrides'] as const;
export type Layer = (typeof LAYERS)[number];

export const ABOUT: Record<Layer, {title: string; words: string; none: string}> = {
  divergence: {
    title: 'Divergence',
    words: 'where histories branch',
    none: 'This history has no branches.',
  },
  time: {
    title: 'Time',
    words: 'time since the previous step',
    none: 'All steps have the same time.',
  },
  cost: {title: 'Cost', words: 'recorded cost of the steps', none: 'No step records a cost.'},
  overrides: {
    title: 'Overrides',
    words: 'decisions that the conscience overrode',
    none: 'No decision was overridden.',
  },
};

export const NO_TIMES = 'This history has no times, only an order.';

export interface HeatCell {
  lane: number;
  bin: number;
  nodes: number;
  value: number;
  node: number;
}

export function cellsOf(answer: HeatAnswer): HeatCell[] {
  const cells: HeatCell[] = [];
  for (let i = 0; i + 4 < answer.cells.length; i += 5) {
    const [lane, bin, nodes, value, node] = answer.cells.slice(i, i + 5) as [
      number,
      number,
      number,
      number,
      number,
    ];
    cells.push({lane, bin, nodes, value, node});
  }
  return cells;
}

/** 0 .. 1; the root makes small differences among small values visible. */
export function strength(value: number, max: number): number {
  return max > 0 && value > 0 ? Math.sqrt(Math.min(1, value / max)) : 0;
}

export function amount(layer: Layer, value: number): string {
  switch (layer) {
    case 'divergence':
      return plural(value, 'branch', 'branches');
    case 'time':
      return duration(value);
    case 'cost':
      return `${trimmed(value)} cents`;
    case 'overrides':
      return `${value} overridden`;
  }
}

/** Where a bin begins on the axis. */
export function binStart(answer: HeatAnswer, bin: number): number {
  return answer.from + ((answer.to - answer.from) * bin) / answer.bins;
}

export function hottest(cells: readonly HeatCell[], most: number): HeatCell[] {
  return cells
    .filter((cell) => cell.value > 0)
    .sort((a, b) => b.value - a.value || a.lane - b.lane || a.bin - b.bin)
    .slice(0, most);
}

/** The nearest cell that holds something, in a direction; the same when there is none. */
export function step(
  cells: readonly HeatCell[],
  at: HeatCell | null,
  dx: number,
  dy: number,
): HeatCell | null {
  if (!at) return cells[0] ?? null;
  let best = at,
    distance = Infinity;
  for (const cell of cells) {
    const x = cell.bin - at.bin,
      y = cell.lane - at.lane;
    if (dx !== 0 ? y !== 0 || Math.sign(x) !== dx : Math.sign(y) !== dy) continue;
    const far = dx !== 0 ? Math.abs(x) : Math.abs(y) * 10000 + Math.abs(x);
    if (far < distance) {
      distance = far;
      best = cell;
    }
  }
  return best;
}
