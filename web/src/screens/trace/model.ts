// model.ts - the contents of a trace, read from its JSON without changing a digit. Pure.

import type {Chain, ChainFinding} from '../../base/api-types';
import {member, stringMember, type Json} from '../../base/json';

export type {Chain, ChainFinding};

/** A JSON value as text again, numbers spelled as they came. */
export function jsonText(json: Json): string {
  switch (json.kind) {
    case 'string':
      return JSON.stringify(json.text);
    case 'array':
      return `[${json.items.map(jsonText).join(',')}]`;
    case 'object':
      return `{${json.members.map(([name, value]) => `${JSON.stringify(name)}:${jsonText(value)}`).join(',')}}`;
    default:
      return json.text;
  }
}

/** The value at a dotted path. */
export function at(json: Json | undefined, path: string): Json | undefined {
  let found = json;
  for (const name of path.split('.')) found = found && member(found, name);
  return found;
}

export function textAt(json: Json | undefined, path: string): string | undefined {
  const found = at(json, path);
  return found?.kind === 'string' ? found.text : undefined;
}

/** A number: its digits as they came, and how large it is for drawing. */
export interface Digits {
  text: string;
  value: number;
}

export function numberAt(json: Json | undefined, path: string): Digits | undefined {
  const found = at(json, path);
  return found?.kind === 'number' && Number.isFinite(Number(found.text))
    ? {text: found.text, value: Number(found.text)}
    : undefined;
}

export function flagAt(json: Json | undefined, path: string): boolean | undefined {
  const found = at(json, path);
  return found?.kind === 'word' && found.text !== 'null' ? found.text === 'true' : undefined;
}

export function countAt(json: Json | undefined, path: string): number | undefined {
  const found = at(json, path);
  return found?.kind === 'array' ? found.items.length : undefined;
}

/* --- components ------------------------------------------------------------------------------- */

export interface Component {
  index: number;
  type: string;
  event: string;
  timestamp: string;
  data: Json;
}

export function componentsOf(trace: Json): Component[] {
  const list = member(trace, 'components');
  if (list?.kind !== 'array') return [];
  return list.items.map((item, index) => ({
    index,
    type: stringMember(item, 'component_type') ?? '?',
    event: stringMember(item, 'event_type') ?? '?',
    timestamp: stringMember(item, 'timestamp') ?? '',
    data: member(item, 'data') ?? {kind: 'object', members: []},
  }));
}

export const TITLES: Record<string, string> = {
  THOUGHT_START: 'Observation',
  SNAPSHOT_AND_CONTEXT: 'Context',
  DMA_RESULTS: 'Analysis',
  IDMA_RESULT: 'Independence',
  ASPDMA_RESULT: 'Rationale',
  TSASPDMA_RESULT: 'Tool rationale',
  CONSCIENCE_RESULT: 'Conscience',
  ACTION_RESULT: 'Action',
  LLM_CALL: 'Model call',
  VERB_SECOND_PASS_RESULT: 'Second pass',
};

/** A time as it is written, to the second, for people; what is no time stays as it is. */
export function when(timestamp: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)/.exec(timestamp);
  return match ? `${match[1]} ${match[2]}` : timestamp.slice(0, 40);
}

/** Seconds between two timestamps as they are written; null when one is none. */
export function secondsBetween(first: string, second: string): number | null {
  const a = Date.parse(first),
    b = Date.parse(second);
  return Number.isFinite(a) && Number.isFinite(b) ? (b - a) / 1000 : null;
}

/* --- what is signed (trace.md §3, §4.5) ------------------------------------------------------- */

export interface Covered {
  name: string;
  signed: boolean;
}

/** Each part of a trace, and whether the signature is over it. */
export function coverage(signed: string | null): Covered[] {
  const all = signed === 'envelope';
  return [
    {name: 'components', signed: signed !== null},
    {name: 'trace_level', signed: all || signed === 'components+level'},
    ...['trace_id', 'task_id', 'thought_id', 'agent_id_hash', 'started_at', 'completed_at'].map(
      (name) => ({name, signed: all}),
    ),
  ];
}

export const FORMS: Record<string, string> = {
  A: 'SHA-256 of envelope and components, compact',
  B: 'components in Python formatting (spec 1.0)',
  C: 'components, compact',
  D: 'components, compact, empty members left out',
  E: 'components and level, empty members left out',
  F: 'envelope, level and components, stamped 2.7.0',
  G: 'envelope with profile, stamped 2.7.9',
  H: 'envelope by RFC 8785, stamped 3.0.0',
};

/** Why a trace is rejected, for users who have not read trace.md. */
export const REASONS: Record<string, string> = {
  invalid_utf8: 'It is not valid UTF-8.',
  malformed_json: 'It is not JSON.',
  duplicate_key: 'A member occurs twice, which makes it ambiguous.',
  depth_exceeded: 'It is nested too deeply for a trace.',
  limit_exceeded: 'It exceeds the size limit of a trace.',
  number_not_finite: 'It contains a number that is not finite.',
  missing_field: 'A required member is missing.',
  field_type: 'A member has the wrong type.',
  level_unknown: 'Its trace level is unknown.',
  component_type_mismatch: 'A component type does not match its event type.',
  timestamp_invalid: 'It contains an invalid timestamp.',
  components_missing: 'One of the six component types is missing.',
  signature_encoding: 'Its signature is malformed.',
  signature_length: 'Its signature is not 64 bytes long.',
  key_unknown: 'The key that it names is not trusted by this server.',
  key_agent_mismatch: 'The key it names belongs to another agent.',
  key_not_yet_valid: 'It is dated before its key was valid.',
  key_expired: 'It is dated after its key had expired.',
  key_revoked: 'Its key was revoked.',
  signature_invalid:
    'The signature does not match the trace: the trace was changed after signing, or another key signed it.',
  level_violation: 'It contains more than its trace level allows.',
  signature_replayed: 'The same signature was already seen under another id.',
  trace_id_conflict: 'Another trace with this id is stored.',
};

/* --- conscience ------------------------------------------------------------------------------- */

export interface Check {
  name: string;
  passed: boolean | undefined;
  score?: Digits;
  threshold?: Digits;
  reason?: string;
}

export function checksOf(data: Json): Check[] {
  return [
    {
      name: 'Entropy',
      passed: flagAt(data, 'entropy_passed'),
      score:
        numberAt(data, 'entropy_score') ??
        numberAt(data, 'entropy_level') ??
        numberAt(data, 'epistemic_data.entropy_level'),
      threshold: numberAt(data, 'entropy_threshold'),
      reason: textAt(data, 'entropy_reason'),
    },
    {
      name: 'Coherence',
      passed: flagAt(data, 'coherence_passed'),
      score:
        numberAt(data, 'coherence_score') ??
        numberAt(data, 'coherence_level') ??
        numberAt(data, 'epistemic_data.coherence_level'),
      threshold: numberAt(data, 'coherence_threshold'),
      reason: textAt(data, 'coherence_reason'),
    },
    {
      name: 'Optimization veto',
      passed: flagAt(data, 'optimization_veto_passed'),
      score: numberAt(data, 'optimization_veto_entropy_ratio'),
      reason: textAt(data, 'optimization_veto_justification'),
    },
    {
      name: 'Humility',
      passed: flagAt(data, 'epistemic_humility_passed'),
      score: numberAt(data, 'epistemic_humility_certainty'),
      reason: textAt(data, 'epistemic_humility_justification'),
    },
  ];
}

/* --- IDMA (trace.md §6) ----------------------------------------------------------------------- */

export interface Idma {
  stated?: Digits;
  sources?: number;
  risk?: Digits;
  /** k / (1 + rho (k - 1)); null when an input is missing or out of range. */
  computed: number | null;
  check: 'consistent' | 'mismatch' | 'indeterminate';
  flag?: boolean;
  phase?: string;
}

export function idmaOf(components: readonly Component[]): Idma | null {
  const own = components.filter((one) => one.event === 'IDMA_RESULT').pop()?.data;
  const data =
    own ?? at(components.filter((one) => one.event === 'DMA_RESULTS').pop()?.data, 'idma');
  if (!data) return null;
  const stated = numberAt(data, 'k_eff') ?? numberAt(data, 'idma_k_eff');
  const risk = numberAt(data, 'correlation_risk') ?? numberAt(data, 'idma_correlation_risk');
  const sources = countAt(data, 'sources_identified');
  const usable = sources !== undefined && risk !== undefined && risk.value >= 0 && risk.value <= 1;
  const computed = !usable ? null : sources === 0 ? 0 : sources / (1 + risk.value * (sources - 1));
  const check =
    computed === null || !stated
      ? 'indeterminate'
      : Math.abs(stated.value - computed) <= 0.01
        ? 'consistent'
        : 'mismatch';
  return {
    stated,
    sources,
    risk,
    computed,
    check,
    flag: flagAt(data, 'fragility_flag'),
    phase: textAt(data, 'phase'),
  };
}

/* --- the audit chain (trace.md §5) ------------------------------------------------------------ */

export function findingWords(finding: ChainFinding): string {
  switch (finding.kind) {
    case 'gap':
      return `${finding.missing ?? 'Some'} missing between ${finding.seq} and ${finding.next}`;
    case 'duplicate':
      return `entry ${finding.seq} appears in two traces`;
    case 'fork':
      return `two different entries have sequence number ${finding.seq}`;
    case 'reorder':
      return `entry ${finding.seq} is dated before its predecessor`;
    case 'mismatch':
      return `entry ${finding.seq} does not follow from its predecessor`;
    case 'unchecked':
      return `entry ${finding.seq} has no predecessor to check against`;
    case 'empty':
      return 'no entry';
    default:
      return finding.kind;
  }
}

/** Whether a finding is about this entry or this trace. */
export function concerns(finding: ChainFinding, seq: number | undefined, traceId: string): boolean {
  return (finding.trace_ids ?? []).includes(traceId) || (seq !== undefined && finding.seq === seq);
}
