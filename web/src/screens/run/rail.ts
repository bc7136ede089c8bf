// rail.ts - the states of a run as rows, one for each attempt.

import {seconds, type Transition} from './types';

export interface Visit {
  state: string;
  /** Seconds; NaN where unknown. */
  from: number;
  to: number;
  /** Why it was left; null while the run is in it. */
  reason: string | null;
  next: string | null;
  /** Events that belong to it: first and last index; 0 = up to now. */
  first: number;
  last: number;
}

/** Rows of visits: the first attempt, then one for each fix. */
export function rowsOf(states: readonly Transition[], created: number): Visit[][] {
  const begin = (state: string, from: number, first: number): Visit => ({
    state,
    from,
    to: NaN,
    reason: null,
    next: null,
    first,
    last: 0,
  });
  let visit = begin(states[0]?.from ?? 'S0', created, 1);
  let row = [visit];
  const rows = [row];
  for (const step of states) {
    const at = seconds(step.ts);
    visit.to = at;
    visit.reason = step.reason;
    visit.next = step.to;
    visit.last = step.index;
    visit = begin(step.to, at, step.index + 1);
    if (step.to === 'S5') {
      row = [visit];
      rows.push(row);
    } else {
      row.push(visit);
    }
  }
  return rows;
}

export type VisitState = 'passed' | 'failed' | 'now' | 'done';

export function stateOf(visit: Visit): VisitState {
  if (visit.state === 'S6') return 'done';
  if (visit.state === 'FAIL') return 'failed';
  if (visit.next === null) return 'now';
  return visit.next === 'FAIL' || visit.next === 'S5' ? 'failed' : 'passed';
}
