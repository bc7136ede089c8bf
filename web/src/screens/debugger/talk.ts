// talk.ts - a step of a history in words: its summary line, and what an edit changed. Pure.

import type {LatticePlace, StepText, ViewStep} from '../../base/api-types';

export type {StepText, ViewStep};

const KIND_WORDS: Record<string, string> = {
  reason: 'message',
  act: 'tool call',
  tool_call: 'tool call',
  tool_result: 'tool result',
  observe: 'observation',
  run: 'span',
  state: 'state',
  config: 'configuration',
  bad: 'unreadable record',
};

/** The kind for people; imported records and native steps share the words. */
export function kindWords(step: ViewStep): string {
  const kind = step.kind ?? step.component ?? step.event_type ?? step.source ?? 'step';
  return (Object.hasOwn(KIND_WORDS, kind) ? KIND_WORDS[kind]! : kind).replaceAll('_', ' ');
}

/** Arguments as an object, when they are one and were not cut. */
export function argumentsOf(text: StepText | undefined): Record<string, unknown> | null {
  if (!text || text.cut || !text.text.startsWith('{')) return null;
  try {
    const value: unknown = JSON.parse(text.text);
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const TELLING = [
  'command',
  'cmd',
  'file_path',
  'filePath',
  'path',
  'pattern',
  'query',
  'url',
  'description',
  'prompt',
  'text',
];

/** The one argument that tells most, in one line. */
export function callSummary(text: StepText | undefined): string {
  const given = argumentsOf(text);
  if (!given) return text ? text.text.slice(0, 200) : '';
  for (const name of TELLING)
    if (Object.hasOwn(given, name)) {
      const value = given[name];
      if (typeof value === 'string' && value) return value;
      if (Array.isArray(value)) return value.join(' ');
    }
  const keys = Object.keys(given);
  return keys.length === 0 ? '' : keys.map((key) => `${key}: ${short(given[key])}`).join(', ');
}

function short(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text === undefined ? '' : text.length > 60 ? `${text.slice(0, 60)}\u2026` : text;
}

export interface DiffLine {
  sign: '+' | '-' | ' ';
  text: string;
}

const DIFF_LINES_MAX = 400;

/** An edit as removed and added lines, or a written file as added ones; null for other calls. */
export function editOf(text: StepText | undefined): {path: string; lines: DiffLine[]} | null {
  const given = argumentsOf(text);
  if (!given) return null;
  const path = [given['file_path'], given['filePath'], given['path'], given['notebook_path']].find(
    (one): one is string => typeof one === 'string',
  );
  const before = [given['old_string'], given['oldString'], given['old_str']].find(isText);
  const after = [
    given['new_string'],
    given['newString'],
    given['new_str'],
    ...(before === undefined ? [given['content'], given['file_text'], given['contents']] : []),
  ].find(isText);
  if (path === undefined || (before === undefined && after === undefined)) return null;
  return {path, lines: changedLines(before ?? '', after ?? '')};
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Lines that both begin and end with are the same; what is between them was exchanged. */
export function changedLines(before: string, after: string): DiffLine[] {
  const old = before === '' ? [] : before.split('\n');
  const now = after === '' ? [] : after.split('\n');
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  let tail = 0;
  while (
    tail < old.length - head &&
    tail < now.length - head &&
    old[old.length - 1 - tail] === now[now.length - 1 - tail]
  )
    tail++;
  const lines: DiffLine[] = [
    ...old.slice(Math.max(0, head - 2), head).map((text): DiffLine => ({sign: ' ', text})),
    ...old.slice(head, old.length - tail).map((text): DiffLine => ({sign: '-', text})),
    ...now.slice(head, now.length - tail).map((text): DiffLine => ({sign: '+', text})),
    ...old
      .slice(old.length - tail, Math.min(old.length, old.length - tail + 2))
      .map((text): DiffLine => ({sign: ' ', text})),
  ];
  return lines.slice(0, DIFF_LINES_MAX);
}

/** Text divided at the words that were searched for: odd pieces are hits. */
export function divided(text: string, words: string): string[] {
  const list = words.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  if (list.length === 0) return [text];
  const pattern = list.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  return text.split(new RegExp(`(${pattern})`, 'iu'));
}

const SENTENCE_MAX = 1000;

/** What a selection asks for: white space aside, and too little says nothing. */
export function sentenceOf(selected: string): string {
  const text = selected.replace(/\s+/g, ' ').trim();
  return text.length < 3 ? '' : text.slice(0, SENTENCE_MAX);
}

/** How a text was there. */
export function placeWords(place: LatticePlace): string {
  const tool = place.tool ?? 'a call';
  switch (place.how) {
    case 'result':
      return place.path ? `read from ${place.path} by ${tool}` : `result of ${tool}`;
    case 'arguments':
      return place.path ? `arguments of ${tool} on ${place.path}` : `arguments of ${tool}`;
    case 'given':
      return `given to the model as ${place.role ?? 'input'}`;
    case 'message':
      return place.role ? `message of role ${place.role}` : 'message';
    default:
      return place.how;
  }
}

/** Whether a text names an event, and is nothing to look for. */
export function isName(text: string): boolean {
  return /^([#@]\S+|src:\S+|at:\S+|[0-9a-f]{8,64}|\S+#\d+)$/.test(text);
}
