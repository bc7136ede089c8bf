// part.test.ts - which part of a long history an address opens.

import {expect, test} from 'vitest';
import {
  choosePart,
  edgeNames,
  hasParts,
  lastEntry,
  nameOf,
  partOf,
} from '../../src/screens/debugger/part';

const long = {entries: 100000, entry: null, part: 4096, parts: true};
const of = (from: number) => ({from, size: 4096, entries: 100000});

test('parts overlap by a half, and each entry is in one', () => {
  for (const entry of [0, 1, 2047, 2048, 4095, 4096, 5000, 99999]) {
    const part = partOf(entry, {entries: 100000, size: 4096});
    expect(part.from % 2048).toBe(0);
    expect(entry).toBeGreaterThanOrEqual(part.from);
    expect(entry).toBeLessThanOrEqual(lastEntry(part));
  }
  expect(lastEntry(of(98304))).toBe(99999);
});

test('without a wish the newest part, or that of the step', () => {
  expect(choosePart(long, undefined, null)).toEqual(of(96256));
  expect(choosePart(long, undefined, '@desk')).toEqual(of(96256));
  expect(choosePart({...long, entry: 5000}, undefined, 'ab')).toEqual(of(2048));
});

test('a number without a part counts in the whole, as does a name of no step', () => {
  expect(choosePart(long, undefined, '#5')).toBe(null);
  expect(choosePart(long, undefined, 'src:1')).toBe(null);
});

test('the wish counts when there is such a part', () => {
  expect(choosePart(long, '2048', '#5')).toEqual(of(2048));
  expect(choosePart(long, 'all', null)).toBe(null);
  for (const wrong of ['100000', '-1', 'x', '1e3', '9999999999999999'])
    expect(choosePart(long, wrong, null)).toEqual(of(96256));
});

test('a short history, and one without parts, is opened as a whole', () => {
  expect(choosePart({...long, entries: 8192}, undefined, null)).toBe(null);
  expect(choosePart({...long, parts: false}, '0', null)).toBe(null);
});

test('a step has a name that is the same in other parts', () => {
  const at = {hash: 'ab', place: 'at:0:7'};
  expect(nameOf('agent/desk', {hash: 'ab', place: null})).toBe('ab');
  expect(nameOf('session/s1', at)).toBe('at:0:7');
  expect(nameOf('session/s1', {hash: 'ab', place: null})).toBe(null);
});

test('a step of a session is in the part with its line', () => {
  expect(hasParts('session/s1')).toBe(hasParts('agent/desk'));
  expect(hasParts('run/r1')).toBe(hasParts('agent/desk'));
  expect(hasParts('all')).toBe(false);
  expect(choosePart({...long, entry: 5000}, undefined, 'src:u5000')).toEqual(of(2048));
  expect(choosePart(long, undefined, 'src:of-a-subagent')).toBe(null);
});

test('the step at the edge of a part is that of its line, of its record, or the newest', () => {
  expect(edgeNames('session/s1', of(2048), 100000, false)).toEqual(['at:0:2049']);
  expect(edgeNames('session/s1', of(2048), 100000, true)).toEqual(['at:0:6144', 'at:0:6143']);
  expect(edgeNames('session/s1', of(98304), 100000, true)).toEqual(['at:0:100000', 'at:0:99999']);
  expect(edgeNames('agent/desk', of(2048), 100000, true)).toEqual(['@desk']);
  expect(edgeNames('agent/desk', of(2048), 100000, false)).toEqual(['#0']);
  expect(edgeNames('run/r1', of(2048), 100000, true)).toEqual(['#4095']);
});
