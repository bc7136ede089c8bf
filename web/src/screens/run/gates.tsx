// gates.tsx - the results of each gate, by attempt, with their evidence.

import {clock, count, plural} from '../../base/format';
import {adjust} from '../../base/router';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Answer, Empty} from '../../ui/states';
import {Text} from '../../ui/text';
import {Value} from '../../ui/value';
import type {RunModel} from './model';
import {entry, GATES, readViolation, REPORT_OF, seconds} from './types';
import type {Gates, OutputEnd, Verdict} from './types';

interface Group {
  gate: string;
  name: string;
  meaning: string;
  verdicts: Verdict[];
}

/** In the order of run.md 13; gates that are not listed there come last. */
export function groupsOf(gates: Gates): Group[] {
  const found = new Map<string, Verdict[]>();
  for (const one of gates.verdicts) found.set(one.gate, [...(found.get(one.gate) ?? []), one]);
  const groups: Group[] = [];
  for (const [gate, name, meaning] of GATES) {
    const verdicts = found.get(gate);
    if (verdicts) groups.push({gate, name, meaning, verdicts});
    found.delete(gate);
  }
  for (const [gate, verdicts] of found) groups.push({gate, name: gate, meaning: '', verdicts});
  return groups;
}

const SHORT: readonly [string, string][] = [
  ['policy_gate', 'Policy'],
  ['diff_gate', 'Diff'],
  ['review_gate', 'Review'],
  ['tests_gate', 'Tests'],
];

export function GatesPane({model}: {model: RunModel}) {
  return (
    <Answer of={model.gates.signal.value} what="Loading the gates">
      {(gates) => {
        const groups = groupsOf(gates);
        const open = SHORT.filter(([gate]) => gates.gates[gate]?.reached === false);
        if (groups.length === 0)
          return (
            <Empty title="No gate results yet">
              {model.isRunning.value
                ? 'Gate results appear here during the run.'
                : 'The run ended before the first gate.'}
            </Empty>
          );
        return (
          <div class="gates">
            {groups.map((group) => (
              <GateRow key={group.gate} group={group} model={model} />
            ))}
            {open.length > 0 && (
              <p class="dim gates-open">{`Not reached: ${open.map(([, name]) => name).join(', ')}.`}</p>
            )}
          </div>
        );
      }}
    </Answer>
  );
}

function GateRow({group, model}: {group: Group; model: RunModel}) {
  const last = group.verdicts.at(-1)!;
  const rejected = group.verdicts.filter((one) => !one.passed);
  return (
    <details class={`gate ${last.passed ? '' : 'gate-bad'}`} open={!last.passed}>
      <summary>
        <Icon
          name={last.passed ? 'check' : 'cross'}
          class={last.passed ? 'good' : 'bad'}
          label={last.passed ? 'passed' : 'rejected'}
        />
        <span class="gate-name">
          <Text text={group.name} most={60} />
        </span>
        <span class="gate-meaning dim">{group.meaning}</span>
        {last.passed && rejected.length > 0 && (
          <Badge tone="warn">{`rejected ${count(rejected.length)}\u00d7 before`}</Badge>
        )}
        {group.verdicts.length > 1 && (
          <span class="dim">{`${count(group.verdicts.length)}\u00d7`}</span>
        )}
      </summary>
      <ol class="gate-times">
        {group.verdicts.map((one) => (
          <GateResult key={one.index} result={one} model={model} />
        ))}
      </ol>
    </details>
  );
}

function GateResult({result, model}: {result: Verdict; model: RunModel}) {
  const event = model.events.value[result.index - 1];
  const file = entry(REPORT_OF, result.gate);
  const there =
    file !== undefined && model.files.signal.value.value?.items.some((one) => one.path === file);
  return (
    <li class="gate-result">
      <p class="gate-result-head">
        <Badge tone={result.passed ? 'good' : 'bad'}>{result.passed ? 'passed' : 'rejected'}</Badge>
        {result.attempt !== null && (
          <span class="dim">
            {result.attempt === 0 ? 'first attempt' : `fix ${result.attempt}`}
          </span>
        )}
        <span class="dim">{clock(seconds(result.ts))}</span>
        <button
          type="button"
          class="link"
          onClick={() => adjust({tab: 'events', event: String(result.index), filter: null})}
        >{`event ${count(result.index)}`}</button>
        {there && (
          <button type="button" class="link" onClick={() => adjust({tab: 'files', file})}>
            {file}
          </button>
        )}
        {result.gate === 'diff' && (
          <button type="button" class="link" onClick={() => adjust({tab: 'changes'})}>
            changes
          </button>
        )}
      </p>
      {result.violations.length > 0 && (
        <ul class="violations" aria-label={plural(result.violations.length, 'violation')}>
          {result.violations.slice(0, 200).map((text, i) => (
            <Violation key={i} text={text} />
          ))}
          {result.violations.length > 200 && (
            <li class="dim">{`and ${count(result.violations.length - 200)} more`}</li>
          )}
        </ul>
      )}
      {result.gate === 'tests' && !result.passed && <FailedTests model={model} result={result} />}
      {event && event.index === result.index && (
        <div class="gate-result-facts">
          <Value
            value={{cut: false, size: event.payload.length, text: event.payload}}
            hide={['violations']}
          />
        </div>
      )}
    </li>
  );
}

/** The record keeps what the last attempt of a task printed. */
function FailedTests({model, result}: {model: RunModel; result: Verdict}) {
  const later = model.gates.signal.value.value?.verdicts.some(
    (one) => one.gate === 'tests' && one.index > result.index && one.task_id === result.task_id,
  );
  const tests = model.show.signal.value.value?.failed_tests ?? [];
  if (later || tests.length === 0) return null;
  return (
    <ul class="failed-tests">
      {tests
        .filter((one) => result.task_id === null || one.task_id === result.task_id)
        .map((one, i) => (
          <li key={i}>
            <Text text={one.name} most={80} />
            <span class="dim">{one.exit_code === null ? '' : ` exit code ${one.exit_code}`}</span>
            {one.problem && (
              <p>
                <Text text={one.problem} most={400} />
              </p>
            )}
            {(['stdout', 'stderr'] as const).map((name) => (
              <Output key={name} name={name} end={one[name]} />
            ))}
          </li>
        ))}
    </ul>
  );
}

function Output({name, end}: {name: string; end: OutputEnd | undefined}) {
  if (!end || end.text === '') return null;
  const title = `${end.cut ? 'end of ' : ''}${name}, ${count(end.bytes)} bytes`;
  return (
    <figure>
      <figcaption class="dim">
        {`${title} `}
        <button type="button" class="link" onClick={() => adjust({tab: 'files', file: end.path})}>
          {end.path}
        </button>
      </figcaption>
      <pre>
        {end.text.split('\n').map((line, i) => (
          <div key={i}>
            <Text text={line} most={4096} />
          </div>
        ))}
      </pre>
    </figure>
  );
}

function Violation({text}: {text: string}) {
  const read = readViolation(text);
  return (
    <li>
      {read.rule && (
        <Badge tone="bad" icon={null}>
          {read.rule}
        </Badge>
      )}
      <span>
        {read.meaning && `${read.meaning}: `}
        <code>
          <Text text={read.about} most={200} />
        </code>
      </span>
    </li>
  );
}
