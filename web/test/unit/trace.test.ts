import {describe, expect, it} from 'vitest';
import {readJson} from '../../src/base/json';
import {
  checksOf,
  componentsOf,
  concerns,
  coverage,
  findingWords,
  idmaOf,
  jsonText,
  numberAt,
  REASONS,
  secondsBetween,
  when,
} from '../../src/screens/trace/model';

const trace = (data: string, event = 'DMA_RESULTS') =>
  componentsOf(
    readJson(
      `{"components":[{"component_type":"rationale","event_type":"${event}","timestamp":"2026-01-01T00:00:00Z","data":${data}}]}`,
    ),
  );

describe('numbers of a trace', () => {
  it('keep the digits they came with', () => {
    const data = trace(
      '{"csdma":{"plausibility_score":0.0031992000000000006},"n":9007199254740993,"z":1.0}',
    )[0]!.data;
    expect(numberAt(data, 'csdma.plausibility_score')!.text).toBe('0.0031992000000000006');
    expect(jsonText(data)).toContain('9007199254740993');
    expect(jsonText(data)).toContain('"z":1.0');
  });

  it('are not read out of words', () => {
    const data = trace('{"csdma":{"plausibility_score":"0.9"}}')[0]!.data;
    expect(numberAt(data, 'csdma.plausibility_score')).toBeUndefined();
    expect(numberAt(data, 'nothing.there')).toBeUndefined();
  });
});

describe('IDMA', () => {
  it('computes k_eff from sources and risk, as trace.md has it', () => {
    const idma = idmaOf(
      trace('{"idma":{"k_eff":2.0,"correlation_risk":0.2,"sources_identified":["a","b"]}}'),
    )!;
    expect(idma.computed).toBeCloseTo(1.6667, 4);
    expect(idma.check).toBe('mismatch');
    expect(
      idmaOf(
        trace('{"idma":{"k_eff":1.667,"correlation_risk":0.2,"sources_identified":["a","b"]}}'),
      )!.check,
    ).toBe('consistent');
  });

  it('says nothing where an input is missing or out of range', () => {
    expect(idmaOf(trace('{"idma":{"k_eff":2}}'))!.check).toBe('indeterminate');
    expect(
      idmaOf(trace('{"idma":{"k_eff":2,"correlation_risk":1.5,"sources_identified":["a"]}}'))!
        .check,
    ).toBe('indeterminate');
    expect(
      idmaOf(trace('{"idma":{"k_eff":0,"correlation_risk":0.5,"sources_identified":[]}}'))!
        .computed,
    ).toBe(0);
    expect(idmaOf(trace('{}'))).toBeNull();
  });

  it('prefers a component of its own', () => {
    expect(idmaOf(trace('{"k_eff":3.5}', 'IDMA_RESULT'))!.stated!.text).toBe('3.5');
  });
});

describe('what is signed', () => {
  it('differs by form', () => {
    const covered = (signed: string | null) =>
      coverage(signed)
        .filter((part) => part.signed)
        .map((part) => part.name);
    expect(covered('components')).toEqual(['components']);
    expect(covered('components+level')).toEqual(['components', 'trace_level']);
    expect(covered('envelope')).toHaveLength(8);
    expect(covered(null)).toEqual([]);
  });

  it('has words for each reason of trace.md', () => {
    for (const reason of [
      'signature_invalid',
      'key_unknown',
      'key_revoked',
      'level_violation',
      'trace_id_conflict',
      'duplicate_key',
    ])
      expect(REASONS[reason]).toBeTruthy();
  });
});

it('conscience: what is not said is not a failure', () => {
  const checks = checksOf(
    trace(
      '{"entropy_passed":false,"entropy_score":0,"coherence_passed":null}',
      'CONSCIENCE_RESULT',
    )[0]!.data,
  );
  expect(checks.map((check) => check.passed)).toEqual([false, undefined, undefined, undefined]);
  expect(checks[0]!.score!.text).toBe('0');
});

it('chain findings are told and belong to their traces', () => {
  const finding = {kind: 'mismatch', seq: 6, trace_ids: ['t-5']};
  expect(findingWords(finding)).toContain('entry 6');
  expect(concerns(finding, undefined, 't-5')).toBe(true);
  expect(concerns(finding, 6, 'other')).toBe(true);
  expect(concerns(finding, undefined, 'other')).toBe(false);
});

it('times stay as they are written', () => {
  expect(when('2026-01-01T05:10:00.600000+00:00')).toBe('2026-01-01 05:10:00');
  expect(when('yesterday')).toBe('yesterday');
  expect(secondsBetween('2026-01-01T00:00:00.1Z', '2026-01-01T00:00:00.3Z')).toBeCloseTo(0.2);
  expect(secondsBetween('', 'x')).toBeNull();
});
