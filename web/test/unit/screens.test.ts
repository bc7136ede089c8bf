import {describe, expect, it} from 'vitest';
import {
  firstTwo,
  folded,
  variance,
  whose,
  type Difference,
  type Pair,
} from '../../src/screens/compare/model';
import {chainWords, leftOut, newest, worstFirst, type Agent} from '../../src/screens/fleet/model';
import {
  amount,
  binStart,
  cellsOf,
  hottest,
  step,
  strength,
  type HeatAnswer,
} from '../../src/screens/heatmap/model';

const pair = (same: boolean): Pair => ({
  a: null,
  b: null,
  same,
  how: same ? 'same' : 'only',
  differs: [],
  differ_count: 0,
});
const sent = {cut: false, size: 1, text: '1'};

describe('compare', () => {
  it('folds stretches of the same, and keeps places', () => {
    const rows = folded(
      [pair(true), pair(true), pair(true), pair(false), pair(true), pair(false)],
      10,
    );
    expect(rows.map((row) => [row.kind, row.index])).toEqual([
      ['same', 10],
      ['pair', 13],
      ['pair', 14],
      ['pair', 15],
    ]);
    expect(rows[0]).toMatchObject({count: 3});
    expect(folded([pair(true), pair(true), pair(true)], 0, Infinity)).toHaveLength(3);
    expect(folded([], 0)).toEqual([]);
  });

  it('counts who knows what', () => {
    const of = (a: Difference['a'], b: Difference['b']): Difference => ({
      a,
      b,
      key: 'k',
      section: 'memory',
    });
    expect(whose(of(sent, null))).toBe('a');
    expect(variance([of(sent, null), of(null, sent), of(sent, sent), of(sent, sent)])).toEqual({
      a: 1,
      b: 1,
      both: 2,
    });
  });

  it('begins with the two that did most', () => {
    expect(
      firstTwo([
        {agent: 'x', nodes: 1},
        {agent: 'y', nodes: 9},
        {agent: 'z', nodes: 5},
        {agent: '?', nodes: 99},
      ]),
    ).toEqual(['@y', '@z']);
    expect(firstTwo([{agent: 'x', nodes: 1}])).toBeNull();
  });
});

describe('fleet', () => {
  const agent = (
    name: string,
    verdict: 'holds' | 'broken',
    capacity: (number | null)[],
  ): Agent => ({
    agent: name,
    capacity,
    fragile: 0,
    k_eff: [],
    last: null,
    overridden: 0,
    plausibility: [],
    traces: [],
    chain: {
      entries: 1,
      gap: 2,
      duplicate: 0,
      fork: 0,
      reorder: 0,
      mismatch: 1,
      unchecked: 5,
      profile: 'agent',
      verdict,
    },
  });

  it('shows what is worst first', () => {
    const sorted = worstFirst([
      agent('b', 'holds', [0.9]),
      agent('a', 'holds', [0.2]),
      agent('d', 'holds', [null]),
      agent('c', 'broken', [0.9]),
    ]);
    expect(sorted.map((one) => one.agent)).toEqual(['c', 'a', 'b', 'd']);
  });

  it('says what it does not show, and nothing when it shows all', () => {
    const fleet = {
      agents: [agent('a', 'holds', [])],
      capacity_step: 1,
      days: [],
      left_out: {agents: 0, traces: 0},
      more: false,
    };
    expect(leftOut(fleet, 40)).toEqual([]);
    expect(
      leftOut({...fleet, capacity_step: 3, left_out: {agents: 1200, traces: 1}, more: true}, 0),
    ).toEqual([
      '1\u202f200 agents with fewer traces (1 trace in this period) are not shown; alerts cover all agents.',
      'The charts show the 0 worst of the 1 agents in the table.',
      'Capacity is computed for every 3rd day.',
    ]);
    for (const [step, word] of [
      [2, '2nd'],
      [4, '4th'],
      [11, '11th'],
      [21, '21st'],
    ] as const)
      expect(leftOut({...fleet, capacity_step: step}, 40)[0]).toContain(word);
  });

  it('tells holes in words, a zero is a value', () => {
    expect(chainWords(agent('a', 'broken', []).chain)).toBe('2 gaps, 1 mismatch');
    expect(newest([1, 0, null])).toBe(0);
    expect(newest([null])).toBeNull();
  });
});

describe('heatmap', () => {
  const answer: HeatAnswer = {
    axis: 'time',
    bins: 4,
    cells: [0, 0, 3, 0, 7, 0, 2, 1, 4, 8, 1, 3, 2, 1, 9],
    from: 100,
    lanes: 2,
    max: 4,
    to: 300,
    total: 5,
  };
  const cells = cellsOf(answer);

  it('reads cells and places', () => {
    expect(cells).toHaveLength(3);
    expect(cells[1]).toEqual({lane: 0, bin: 2, nodes: 1, value: 4, node: 8});
    expect(binStart(answer, 2)).toBe(200);
    expect(strength(4, 4)).toBe(1);
    expect(strength(0, 4)).toBe(0);
    expect(strength(1, 0)).toBe(0);
    expect(hottest(cells, 1)[0]!.node).toBe(8);
    expect(hottest(cells, 9)).toHaveLength(2);
  });

  it('goes from cell to cell over empty places', () => {
    expect(step(cells, null, 1, 0)).toBe(cells[0]);
    expect(step(cells, cells[0]!, 1, 0)).toBe(cells[1]);
    expect(step(cells, cells[1]!, 1, 0)).toBe(cells[1]);
    expect(step(cells, cells[1]!, 0, 1)).toBe(cells[2]);
    expect(step([], null, 1, 0)).toBeNull();
  });

  it('says how much', () => {
    expect(amount('divergence', 1)).toBe('1 branch');
    expect(amount('cost', 0.5)).toBe('0.5 cents');
  });
});
