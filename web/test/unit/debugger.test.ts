import {describe, expect, it} from 'vitest';
import {fitted, hit, xOf, yOf, type Scene} from '../../src/screens/debugger/draw';
import {clampView} from '../../src/screens/debugger/model';
import {escapePointer} from '../../src/screens/debugger/state';

const scene: Scene = {
  width: 1000,
  height: 300,
  from: 0,
  to: 10,
  scroll: 0,
  lane: 40,
  axis: null,
  lanes: [],
  far: null,
  focusNode: null,
  focusCol: null,
  hover: null,
  writes: new Map(),
  reached: new Map(),
  near: {
    cut: false,
    edges: [],
    from: 0,
    to: 10,
    nodes: {
      code: [19, 19],
      col: [1, 2],
      fold: [0, 0],
      fork: [0, 0],
      lane: [0, 1],
      marks: [0, 0],
      n: [7, 8],
      t: [1, 2],
    },
  },
};

describe('the picture', () => {
  it('finds the node under the pointer, and none beside it', () => {
    expect(hit(scene, xOf(scene, 2) + 3, yOf(scene, 1) - 4)).toBe(1);
    expect(hit(scene, xOf(scene, 6), yOf(scene, 1))).toBe(-1);
    expect(hit({...scene, near: null}, 0, 0)).toBe(-1);
  });

  it('never leaves the history', () => {
    expect(clampView(-50, -40, 100)).toEqual({from: -1.5, to: 8.5});
    expect(clampView(200, 210, 100)).toEqual({from: 90.5, to: 100.5});
    expect(clampView(0, 500, 10)).toEqual({from: -245, to: 255});
  });

  it('cuts words to their room', () => {
    const ruler = {measureText: (text: string) => ({width: text.length * 6})};
    expect(fitted(ruler, 'abcdef', 100)).toBe('abcdef');
    expect(fitted(ruler, 'abcdef', 24)).toBe('abc\u2026');
    expect(fitted(ruler, 'abcdef', 3)).toBe('');
  });

  it('spells pointers as RFC 6901 does', () => {
    expect(escapePointer('a/b~c')).toBe('a~1b~0c');
  });
});
