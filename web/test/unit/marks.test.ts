import {expect, test} from 'vitest';
import {
  counts,
  KINDS,
  marksOf,
  nextMark,
  OVERRIDE,
  reachedBy,
  roundMark,
  WRITE,
} from '../../src/screens/debugger/marks';

const marks = marksOf([0, 5, 50, 6, 5, 51, 6, 9, 90, 7, 2, 20, 8, 11, 110], [{col: 7, n: 70}]);

test('marks come from the overview, and from the writes of a key', () => {
  expect(counts(marks)).toEqual([1, 0, 0, 0, 0, 0, 2, 1, 1, 1]);
  expect(marksOf([6, 1], [])).toEqual([]);
});

test('each of one column is reached, forwards and backwards', () => {
  const walk = (by: 1 | -1, from: {col: number; n: number}): number[] => {
    const seen = [];
    for (let at = nextMark(marks, from, by); at; at = nextMark(marks, at, by)) seen.push(at.n);
    return seen;
  };
  expect(walk(1, {col: 0, n: 0})).toEqual([20, 50, 51, 70, 90, 110]);
  expect(walk(-1, {col: 99, n: 0})).toEqual([110, 90, 70, 51, 50, 20]);
});

test('one kind alone, and round again', () => {
  expect(nextMark(marks, {col: 5, n: 51}, 1, OVERRIDE)?.n).toBe(90);
  expect(nextMark(marks, {col: 9, n: 90}, 1, OVERRIDE)).toBeNull();
  expect(roundMark(marks, {col: 9, n: 90}, OVERRIDE)?.n).toBe(51);
  expect(roundMark(marks, null, WRITE)?.n).toBe(70);
  expect(roundMark(marks, null, 1)).toBeNull();
});

test('no two kinds of a row look alike, and no two have one key', () => {
  for (const row of [0, 1, 2]) {
    const of = KINDS.filter((kind) => kind.row === row);
    expect(new Set(of.map((kind) => kind.path)).size).toBe(of.length);
  }
  const keys = KINDS.map((kind) => kind.key).filter(Boolean);
  expect(new Set(keys).size).toBe(keys.length);
});

test('what a step reached is told apart from what only follows', () => {
  const reached = reachedBy({node: {n: 1}, follows: [2, 3], carries: [{n: 3}]});
  expect([...reached]).toEqual([
    [2, 'follows'],
    [3, 'carries'],
    [1, 'source'],
  ]);
  expect(reachedBy(null).size).toBe(0);
});
