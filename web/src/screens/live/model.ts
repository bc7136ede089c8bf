// model.ts - words and colours for sessions of coding agents and what their hooks decided.

import type {LiveEffect, LiveEntry, LivePolicy, LiveWaiting} from '../../base/api-types';
import type {Tone} from '../../ui/badge';

export interface Call {
  id: string;
  tool: string;
  input: unknown;
  inputBytes: number;
}

/** What the page reads of an entry's payload: it comes from a record, so nothing is taken for sure. */
export interface Told {
  verdict: string;
  would: string;
  rule: string;
  reason: string;
  mode: string;
  event: string;
  outcome: string;
  by: string;
  subagent: string;
  rewrite: string;
  allow: boolean;
  failOpen: boolean;
  effects: LiveEffect[];
  call: Call | null;
}

type Loose = Record<string, unknown>;

function looseOf(value: unknown): Loose {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Loose)
    : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function effectOf(value: unknown): LiveEffect {
  const one = looseOf(value);
  return {
    kind: textOf(one['kind']),
    rule: textOf(one['rule']),
    text: textOf(one['text']),
    verdict: textOf(one['verdict']),
    why: textOf(one['why']),
  };
}

function callOf(value: unknown): Call | null {
  if (value === null || typeof value !== 'object') return null;
  const one = looseOf(value);
  const size = one['input_bytes'];
  return {
    id: textOf(one['id']),
    tool: textOf(one['tool']),
    input: one['input'] ?? null,
    inputBytes: typeof size === 'number' ? size : 0,
  };
}

export function toldOf(payload: unknown): Told {
  const one = looseOf(payload);
  const subagent = looseOf(one['subagent']);
  const effects = one['effects'];
  return {
    verdict: textOf(one['verdict']),
    would: textOf(one['would']),
    rule: textOf(one['rule']),
    reason: textOf(one['reason']),
    mode: textOf(one['mode']),
    event: textOf(one['event']),
    outcome: textOf(one['outcome']),
    by: textOf(one['by']),
    subagent: textOf(subagent['type']) || textOf(subagent['id']),
    rewrite: textOf(one['rewrite']),
    allow: one['allow'] === true,
    failOpen: one['fail_open'] === true,
    effects: Array.isArray(effects) ? effects.map(effectOf) : [],
    call: callOf(one['call']),
  };
}

const VERDICTS: Record<string, [string, Tone]> = {
  allow: ['allowed', 'good'],
  deny: ['denied', 'bad'],
  ask: ['asked', 'warn'],
  rewrite: ['rewritten', 'info'],
};

export function verdictWord(verdict: string): string {
  return VERDICTS[verdict]?.[0] ?? verdict;
}

/** In mode observe what would have been has the colour: nothing was blocked. */
export function verdictTone(told: Told): Tone {
  if (told.verdict !== told.would && told.would !== '') return 'warn';
  return VERDICTS[told.verdict]?.[1] ?? 'plain';
}

export function modeTone(mode: string): Tone {
  return mode === 'enforce' ? 'good' : mode === 'ask' ? 'info' : 'plain';
}

/** The last part of a path: what people call the project. */
export function folderName(path: string): string {
  const parts = path.split('/').filter((part) => part !== '');
  return parts[parts.length - 1] ?? (path || 'no folder');
}

/** The heaviest effect decides what a line is about. */
export function aboutOf(told: Told): string {
  const weight = (one: LiveEffect): number =>
    one.verdict === 'forbidden' ? 0 : one.verdict === 'unlisted' ? 1 : 2;
  const sorted = [...told.effects].sort((a, b) => weight(a) - weight(b));
  return sorted[0]?.text ?? '';
}

/** What an entry is, in a word, when it is no decision. */
export function entryWord(entry: LiveEntry, told: Told): string {
  switch (entry.kind) {
    case 'start':
      return 'began';
    case 'end':
      return 'ended';
    case 'limit':
      return 'narrowed';
    case 'approval':
      return told.allow ? 'approved' : 'refused';
    case 'result':
      return told.outcome || 'result';
    default:
      return told.event || entry.kind;
  }
}

/** Sentences for a policy as it holds now. */
export function policyWords(policy: LivePolicy): string[] {
  const words = [
    policy.network === 'deny'
      ? 'No network.'
      : policy.network === 'on-request'
        ? 'Network: listed hosts, others are asked.'
        : policy.hosts.length > 0
          ? 'Network: listed hosts.'
          : 'Network: any host.',
  ];
  for (const paths of policy.write)
    words.push(`Writes only below ${paths.length > 0 ? paths.join(', ') : 'nothing'}.`);
  if (policy.write.length === 0) words.push('Writes in the work tree.');
  if (policy.tools_deny.length > 0) words.push(`No calls of ${policy.tools_deny.join(', ')}.`);
  if (policy.forbidden_actions.length > 0)
    words.push(`Forbidden: ${policy.forbidden_actions.join(', ')}.`);
  words.push(
    policy.unlisted === 'deny'
      ? 'What nothing allows is denied.'
      : policy.unlisted === 'sandbox'
        ? 'Commands that nothing allows run in the sandbox; other calls are asked.'
        : 'What nothing allows is asked.',
  );
  return words;
}

/** Calls that wait now and did not before. */
export function newlyWaiting(before: readonly LiveWaiting[] | null, now: readonly LiveWaiting[]) {
  if (before === null) return [];
  const known = new Set(before.map((one) => one.input_sha256));
  return now.filter((one) => !known.has(one.input_sha256));
}

/** "src/, docs/guide.md" as a list. */
export function pathsOf(text: string): string[] {
  return text
    .split(/[,\n]/)
    .map((one) => one.trim())
    .filter((one) => one !== '');
}
