// model.ts - the states of a workflow case, in words and tones.

import type {Tone} from '../../ui/badge';

export const STATES = [
  'QUEUED',
  'PLANNING',
  'PLANNED',
  'REFUSED',
  'RUNNING',
  'DONE',
  'FAILED',
  'CANCELLED',
] as const;

/** "QUEUED" as "Queued"; a word of a newer server stays a word. */
export function stateWords(state: string): string {
  const text = state.slice(0, 20).toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function stateTone(state: string): Tone {
  switch (state) {
    case 'DONE':
    case 'PLANNED':
      return 'good';
    case 'REFUSED':
    case 'FAILED':
      return 'bad';
    case 'QUEUED':
    case 'PLANNING':
    case 'RUNNING':
      return 'info';
    default:
      return 'plain';
  }
}

/** Whether it changes without anybody doing something. */
export function canChange(state: string): boolean {
  return state === 'QUEUED' || state === 'PLANNING' || state === 'RUNNING';
}
