// rail_view.tsx - the state machine: a column a state, a row an attempt, and the path of the run.

import {clock, duration, plural} from '../../base/format';
import {plain} from '../../base/text';
import {Icon, type IconName} from '../../ui/icon';
import {Line} from '../../ui/text';
import {stateOf, rowsOf, type VisitState, type Visit} from './rail';
import {entry, seconds, STATES, type RunShown, type Timeline} from './types';

const COLUMNS = ['S0', 'S1', 'S2', 'S3', 'S4', 'S6'];
const SIGNS: Readonly<Record<VisitState, IconName>> = {
  passed: 'check',
  done: 'check',
  failed: 'cross',
  now: 'clock',
};
const WORDS: Readonly<Record<VisitState, string>> = {
  passed: 'passed',
  done: 'reached',
  failed: 'not passed',
  now: 'now',
};

/** Fix takes the place of the contract: it is the contract of the next attempt. */
function columnOf(visit: Visit): number {
  if (visit.state === 'S5') return 1;
  if (visit.state === 'FAIL') return COLUMNS.length;
  return Math.max(1, COLUMNS.indexOf(visit.state) + 1);
}

export function Rail({
  timeline,
  shown,
  choose,
}: {
  timeline: Timeline;
  shown: RunShown;
  choose: (visit: Visit) => void;
}) {
  const rows = rowsOf(timeline.states, seconds(shown.created_at));
  const fixes = rows.length - 1;
  return (
    <section class="run-rail" aria-label="States">
      <p class="sr">{`${plural(rows.length, 'attempt')}, ${plural(fixes, 'fix', 'fixes')}`}</p>
      {rows.map((row, i) => (
        <ol
          key={i}
          class={`rail-row ${i > 0 ? 'rail-fix' : ''}`}
          aria-label={i === 0 ? 'First attempt' : `Fix ${i}`}
        >
          {row.map((visit, k) => (
            <Stop key={k} visit={visit} fix={i} choose={choose} />
          ))}
          {i === rows.length - 1 &&
            coming(row).map((state) => (
              <li
                key={state}
                class="stop stop-open"
                style={{gridColumn: `${COLUMNS.indexOf(state) + 1}`}}
              >
                <span class="stop-name">{STATES[state]}</span>
                <span class="dim stop-why">not reached</span>
              </li>
            ))}
        </ol>
      ))}
    </section>
  );
}

/** The states after the one where the last attempt is or ended. */
function coming(row: readonly Visit[]): string[] {
  const last = row.at(-1)!;
  const from = last.state === 'FAIL' ? (row.at(-2) ?? last) : last;
  const at = from.state === 'S5' ? 1 : COLUMNS.indexOf(from.state);
  return COLUMNS.slice(at + 1).filter((state) => !(last.state === 'FAIL' && state === 'S6'));
}

function Stop({visit, fix, choose}: {visit: Visit; fix: number; choose: (visit: Visit) => void}) {
  const visitState = stateOf(visit);
  const name =
    visit.state === 'S5' ? `Fix ${fix}` : (entry(STATES, visit.state) ?? plain(visit.state, 20));
  const took = visit.to - visit.from;
  return (
    <li
      class={`stop stop-${visitState}`}
      style={{gridColumn: `${columnOf(visit)}${visit.state === 'S5' ? ' / span 2' : ''}`}}
    >
      <button
        type="button"
        onClick={() => choose(visit)}
        aria-current={visitState === 'now' ? 'step' : undefined}
        title={`Events ${visit.first} to ${visit.last || 'now'}`}
      >
        <span class="stop-name">
          <Icon name={SIGNS[visitState]} label={WORDS[visitState]} />
          {name}
          <span class="stop-time dim">
            {Number.isFinite(took) ? duration(took) : clock(visit.from)}
          </span>
        </span>
        <span class="stop-why">
          <Line text={why(visit, visitState)} most={60} />
        </span>
      </button>
    </li>
  );
}

function why(visit: Visit, visitState: VisitState): string {
  if (visitState === 'now') return 'in progress';
  if (visit.state === 'FAIL') return 'run ended here';
  if (visit.state === 'S6') return 'ready to merge';
  const reason = (visit.reason ?? '').replace(/_/g, ' ');
  return visit.next === 'FAIL' ? `rejected: ${reason}` : reason;
}
