import {describe, expect, it} from 'vitest';
import {
  colAt,
  describe as told,
  hit,
  labelPlaces,
  laneHeight,
  type Scene,
} from '../../src/screens/debugger/draw';
import {
  axisOf,
  depths,
  spanOf,
  timeMarks,
  tookWords,
  xAt,
} from '../../src/screens/debugger/timeline';
import type {Window} from '../../src/screens/debugger/types';

const T = 1_700_000_000;
/** A span, one inside of it, one in another lane, and a moment without a duration. */
const near: Window = {
  cut: false,
  edges: [],
  from: 0,
  to: 10,
  nodes: {
    code: [19, 19, 19, 19],
    col: [0, 1, 2, 3],
    fold: [0, 0, 0, 0],
    fork: [0, 0, 0, 0],
    label: ['plan', 'search', 'write', 'end'],
    lane: [0, 0, 1, 0],
    marks: [4, 2048, 0, 2],
    n: [10, 11, 12, 13],
    span: [T, T + 8, T + 1, T + 2, T + 4, T + 10, null, null],
    t: [T, T + 1, T + 4, T + 8.01],
  },
};
const scene = (axis: Scene['axis']): Scene => ({
  width: 1056,
  height: 300,
  from: -1,
  to: 4.5,
  scroll: 0,
  lane: 40,
  axis,
  lanes: [
    {agent: 'a', first: 0, last: 3, nodes: 3, verdict: 'valid'},
    {agent: 'b', first: 2, last: 2, nodes: 1, verdict: 'valid'},
  ],
  far: null,
  focusNode: null,
  focusCol: null,
  hover: null,
  writes: new Map(),
  reached: new Map(),
  near,
});

describe('lanes by time', () => {
  const axis = axisOf(near, -1, 4.5, 1056)!;

  it('reaches from the first beginning to the last end', () => {
    expect(xAt(axis, T)).toBeCloseTo(28);
    expect(xAt(axis, T + 10)).toBeCloseTo(1028);
    expect(axis.x.get(12)).toBeCloseTo(428);
    expect(
      axisOf({...near, nodes: {...near.nodes, t: [null, null, null, null]}}, 0, 9, 900),
    ).toBeNull();
  });

  it('is one moment where everything happened at once', () => {
    const one = axisOf({...near, nodes: {...near.nodes, span: [], t: [T, T, T, T]}}, -1, 4, 1000)!;
    expect(one.x.get(10)).toBeCloseTo(500);
  });

  it('finds what is under the pointer, and the column to zoom around', () => {
    expect(hit(scene(axis), 428, 82)).toBe(2);
    expect(colAt(scene(axis), 430)).toBe(2);
    expect(colAt(scene(null), 0)).toBe(-1);
  });

  it('says round times, apart from each other', () => {
    const marks = timeMarks(axis);
    expect(marks.length).toBeGreaterThan(3);
    marks.forEach((mark, i) => {
      if (i > 0) expect(mark.x - marks[i - 1]!.x).toBeGreaterThanOrEqual(110);
    });
  });
});

describe('durations', () => {
  it('are those that were recorded', () => {
    expect(spanOf(near, 0)).toEqual({began: T, ended: T + 8});
    expect(spanOf(near, 3)).toBeNull();
    expect(tookWords(spanOf(near, 0))).toBe('8 s');
    expect(tookWords(null)).toBe('');
    expect(told(near, 1, scene(null).lanes)).toBe('a: search, 1 s, failed');
  });

  it('lie in those that they are inside of, lane by lane', () => {
    expect(depths(near)).toEqual([0, 1, 0, 0]);
  });
});

describe('room', () => {
  it('labels end before the next one of their lane begins', () => {
    for (const axis of [null, axisOf(near, -1, 4.5, 1056), axisOf(near, -1, 4.5, 130)]) {
      const places = labelPlaces({...scene(axis), width: axis?.width ?? 1056}, near);
      for (const a of places)
        for (const b of places)
          if (a.i !== b.i && near.nodes.lane[a.i] === near.nodes.lane[b.i] && a.x <= b.x)
            expect(a.x + a.space).toBeLessThan(b.x);
    }
  });

  it('is given to few lanes, and many keep the least', () => {
    expect(laneHeight(2, 300)).toBe(68);
    expect(laneHeight(5, 300)).toBe(54);
    expect(laneHeight(50, 300)).toBe(44);
  });
});
