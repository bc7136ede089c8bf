import {describe, expect, it} from 'vitest';
import {fitted, hit, xOf, yOf, type Scene} from '../../src/screens/debugger/draw';
import {clampView} from '../../src/screens/debugger/model';
import {escapePointer} from '../../src/screens/debugger/state';
import {counted, filtered, ofHistory, ofRun, ofTrace, type TraceRow} from '../../src/screens/inbox/items';

const scene: Scene = {
  width: 1000, height: 300, from: 0, to: 10, scroll: 0, lanes: [], far: null, focusNode: null, focusCol: null, hover: null,
  writes: new Map(),
  near: {
    cut: false, edges: [], from: 0, to: 10,
    nodes: {code: [19, 19], col: [1, 2], fold: [0, 0], fork: [0, 0], lane: [0, 1], marks: [0, 0], n: [7, 8], t: [1, 2]},
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

const trace = (id: string, more: Partial<TraceRow> = {}): TraceRow => ({
  agent_id_hash: 'aa', trace_id: id, timestamp: '2026-01-01T00:00:00.123456789Z', selected_action: 'SPEAK', signature_verified: true,
  trace_level: 'generic', trace_type: null, task_id: null, cognitive_state: 'WORK', conscience: {overridden: false, passed: true},
  idma: {fragility_flag: false, phase_computed: null}, scores: {csdma: 1, dsdma: 1, k_eff: 1.5}, ...more,
});

describe('the list', () => {
  const items = [
    ofTrace(trace('one')), ofTrace(trace('two', {signature_verified: false, conscience: {overridden: true, passed: false}})),
    ofRun({run_id: 'r1', task_id: 'T', status: 'FAILURE', created_at: '2026-01-02T00:00:00Z', finished_at: null, failed_gate: 'diff', sealed: true}),
    ofHistory({name: 'agent/aa', entries: 2}),
  ];

  it('has the newest first, and histories before all', () => {
    expect(filtered(items, {}).map((item) => item.kind)).toEqual(['history', 'run', 'trace', 'trace']);
  });

  it('is narrowed by facets and words', () => {
    expect(filtered(items, {verdict: 'not verified'})).toHaveLength(1);
    expect(filtered(items, {q: 'TWO aa'})).toHaveLength(1);
    expect(filtered(items, {gate: 'overridden', kind: 'run'})).toHaveLength(0);
    expect(filtered(items, {time: '24h'}, Date.parse('2026-01-02T12:00:00Z') / 1000)).toHaveLength(1);
  });

  it('counts what each choice would leave', () => {
    expect(counted(items, {verdict: 'verified'}, 'kind')).toEqual([['trace', 1]]);
    expect(counted(items, {verdict: 'verified'}, 'verdict')).toContainEqual(['not verified', 1]);
  });
});
