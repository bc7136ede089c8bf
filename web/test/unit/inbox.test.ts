import {describe, expect, it} from 'vitest';
import {
  hrefOf,
  isAfter,
  keyOf,
  renewed,
  seconds,
  textsOf,
  facetLabel,
  type Item,
} from '../../src/screens/inbox/items';

const trace = (id: string): Item => ({
  kind: 'trace',
  agent: 'aa',
  id,
  when: '2026-01-01T00:00:00.123456789Z',
  value: {
    agent_id_hash: 'aa',
    trace_id: id,
    timestamp: '2026-01-01T00:00:00.123456789Z',
    action_success: null,
    audit: {hash: null, seq: null},
    canonical_form: null,
    envelope_signed: false,
    thought_id: null,
    selected_action: null,
    signature_verified: true,
    trace_level: 'generic',
    trace_type: null,
    task_id: 'T',
    cognitive_state: null,
    conscience: {
      coherence_passed: null,
      entropy_passed: null,
      epistemic_humility_passed: null,
      optimization_veto_passed: null,
      overridden: null,
      passed: null,
      thought_depth_triggered: null,
      updated_status_detected: null,
    },
    idma: {check: null, fragility_flag: null, phase: null, phase_computed: null},
    scores: {
      coherence_level: null,
      correlation_risk: null,
      csdma: null,
      dsdma: null,
      entropy_level: null,
      k_eff: null,
    },
  },
});
const ids = (items: readonly Item[]): string[] => items.map((item) => item.id);

describe('the inbox', () => {
  it('puts what is new before what is there, each once', () => {
    const before = ['d', 'c', 'b', 'a'].map(trace);
    const {items, fresh, isWhole} = renewed(before, ['e', 'd', 'c'].map(trace), false);
    expect(ids(items)).toEqual(['e', 'd', 'c', 'b', 'a']);
    expect(fresh).toEqual([keyOf(trace('e'))]);
    expect(isWhole).toBe(true);
  });

  it('begins anew where more came than a page holds', () => {
    const {items, isWhole} = renewed(['b', 'a'].map(trace), ['z', 'y'].map(trace), false);
    expect([ids(items), isWhole]).toEqual([['z', 'y'], false]);
  });

  it('keeps nothing that a whole list does not have any more', () => {
    expect(ids(renewed(['b', 'a'].map(trace), ['b'].map(trace), true).items)).toEqual(['b']);
    expect(renewed([], ['a'].map(trace), false)).toMatchObject({isWhole: true});
  });

  it('compares positions', () => {
    expect(isAfter('10.0', '9.5')).toBe(true);
    expect(isAfter('9.10', '9.9')).toBe(true);
    expect(isAfter('9.9', '9.9')).toBe(false);
    expect(isAfter('9.9', '9.10')).toBe(false);
  });

  it('labels facet values with any name', () => {
    expect(facetLabel('k_eff', 'below_2')).toBe('below 2');
    expect(facetLabel('gate', '__proto__')).toBe('__proto__');
    expect(facetLabel('gate', 'constructor')).toBe('constructor');
    expect(textsOf(trace('x'))).toEqual(['trace', 'T \u00b7 x']);
    expect(seconds('2026-01-01T00:00:00.123456789Z')).toBe(1767225600.123);
    expect(seconds('never')).toBeNull();
  });

  it('leads to where the thing is looked at', () => {
    expect(hrefOf(trace('a/b'))).toBe('#/trace/a/b?agent=aa');
    expect(
      hrefOf({
        kind: 'history',
        agent: null,
        id: 'otel/x',
        when: null,
        value: {name: 'otel/x', entries: 1},
      }),
    ).toBe('#/debugger/otel/x');
  });
});
