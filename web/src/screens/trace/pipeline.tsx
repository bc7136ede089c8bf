// pipeline.tsx - the components of a trace in order, with their scores.

import type {ComponentChildren} from 'preact';
import {duration} from '../../base/format';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Text} from '../../ui/text';
import {Value} from '../../ui/value';
import {
  checksOf,
  flagAt,
  jsonText,
  numberAt,
  secondsBetween,
  textAt,
  TITLES,
  type Check,
  type Component,
  type Digits,
} from './model';

/** A number between 0 and `most` as a bar; the mark is a threshold. */
export function Meter({
  label,
  digits,
  most = 1,
  mark,
  low,
}: {
  label: string;
  digits: Digits | undefined;
  most?: number;
  mark?: number;
  low?: boolean;
}) {
  if (!digits) return null;
  const share = Math.max(0, Math.min(1, digits.value / most));
  return (
    <div class={`trace-meter ${low ? 'trace-low' : ''}`}>
      <span class="trace-meter-name">{label}</span>
      <span class="trace-bar" aria-hidden="true">
        <span class="trace-fill" style={{width: `${share * 100}%`}} />
        {mark !== undefined && (
          <span class="trace-mark" style={{left: `${(mark / most) * 100}%`}} />
        )}
      </span>
      <span class="mono">{digits.text.length > 8 ? digits.value.toFixed(3) : digits.text}</span>
    </div>
  );
}

function CheckRow({check}: {check: Check}) {
  if (check.passed === undefined && !check.score) return null;
  return (
    <li class="trace-check">
      {check.passed === undefined ? (
        <Badge title="Not in the trace">not stated</Badge>
      ) : (
        <Badge tone={check.passed ? 'good' : 'bad'}>{check.passed ? 'passed' : 'failed'}</Badge>
      )}
      <span>{check.name}</span>
      <span class="mono dim">
        {check.score ? check.score.text.slice(0, 9) : ''}
        {check.threshold ? ` / ${check.threshold.text.slice(0, 9)}` : ''}
      </span>
      {check.reason && (
        <span class="trace-reason">
          <Text text={check.reason} most={300} />
        </span>
      )}
    </li>
  );
}

function Analysis({data}: {data: Component['data']}) {
  const k = numberAt(data, 'idma.k_eff') ?? numberAt(data, 'k_eff') ?? numberAt(data, 'idma_k_eff');
  return (
    <>
      <Meter
        label="plausibility"
        digits={
          numberAt(data, 'csdma.plausibility_score') ?? numberAt(data, 'csdma_plausibility_score')
        }
      />
      <Meter
        label="alignment"
        digits={
          numberAt(data, 'dsdma.domain_alignment') ?? numberAt(data, 'dsdma_domain_alignment')
        }
      />
      <Meter label="k_eff" digits={k} most={4} mark={2} low={k !== undefined && k.value < 2} />
    </>
  );
}

function Rationale({data}: {data: Component['data']}) {
  const chosen = textAt(data, 'selected_action');
  const why = textAt(data, 'action_rationale') ?? textAt(data, 'reasoning_summary');
  return (
    <>
      {chosen && (
        <p>
          chose{' '}
          <strong class="mono">
            <Text text={chosen.replace(/^.*\./, '')} most={80} />
          </strong>
        </p>
      )}
      {why && (
        <blockquote class="trace-words">
          <Text text={why} most={600} />
        </blockquote>
      )}
      <Meter label="confidence" digits={numberAt(data, 'selection_confidence')} />
    </>
  );
}

function Conscience({data}: {data: Component['data']}) {
  const passed = flagAt(data, 'conscience_passed'),
    overridden = flagAt(data, 'action_was_overridden');
  const reason = textAt(data, 'conscience_override_reason');
  return (
    <>
      <p class="trace-row">
        {passed !== undefined && (
          <Badge tone={passed ? 'good' : 'bad'}>
            {passed ? 'conscience passed' : 'conscience objected'}
          </Badge>
        )}
        {overridden !== undefined && (
          <Badge tone={overridden ? 'warn' : 'plain'}>
            {overridden ? 'action overridden' : 'action kept'}
          </Badge>
        )}
      </p>
      {reason && (
        <blockquote class="trace-words">
          <Text text={reason} most={600} />
        </blockquote>
      )}
      <ul class="trace-checks">
        {checksOf(data).map((check) => (
          <CheckRow key={check.name} check={check} />
        ))}
      </ul>
    </>
  );
}

function Action({data}: {data: Component['data']}) {
  const done = textAt(data, 'action_executed'),
    good = flagAt(data, 'execution_success') ?? flagAt(data, 'success');
  const facts = [
    ['tokens', numberAt(data, 'tokens_total')],
    ['cents', numberAt(data, 'cost_cents')],
    ['ms', numberAt(data, 'execution_time_ms')],
    ['audit entry', numberAt(data, 'audit_sequence_number')],
  ] as const;
  return (
    <>
      <p class="trace-row">
        {done && (
          <strong class="mono">
            <Text text={done} most={80} />
          </strong>
        )}
        {good !== undefined && (
          <Badge tone={good ? 'good' : 'bad'}>{good ? 'succeeded' : 'failed'}</Badge>
        )}
        {facts.map(
          ([name, digits]) =>
            digits && (
              <span key={name} class="dim">
                <span class="mono">{digits.text.slice(0, 12)}</span>
                {` ${name}`}
              </span>
            ),
        )}
      </p>
      {textAt(data, 'execution_error') && (
        <blockquote class="trace-words">
          <Text text={textAt(data, 'execution_error')!} most={600} />
        </blockquote>
      )}
    </>
  );
}

const PARTS: Record<string, (props: {data: Component['data']}) => ComponentChildren> = {
  DMA_RESULTS: Analysis,
  IDMA_RESULT: Analysis,
  ASPDMA_RESULT: Rationale,
  CONSCIENCE_RESULT: Conscience,
  ACTION_RESULT: Action,
};

function isEmpty(component: Component): boolean {
  return component.data.kind === 'object' && component.data.members.length === 0;
}

function Step({
  component,
  since,
  isSigned,
  node,
  chosen,
  onChoose,
}: {
  component: Component;
  since: number | null;
  isSigned: boolean;
  node: string | null;
  chosen: boolean;
  onChoose(): void;
}) {
  const Part = PARTS[component.event];
  const text = jsonText(component.data);
  return (
    <li class={`trace-step ${chosen ? 'trace-chosen' : ''}`} id={`component-${component.index}`}>
      <span class="trace-dot" aria-hidden="true">
        {component.index + 1}
      </span>
      <div class="trace-card">
        <header>
          <h2>
            <button
              type="button"
              class="link trace-title"
              aria-expanded={chosen}
              onClick={onChoose}
            >
              {TITLES[component.event] ?? <Text text={component.type} most={40} />}
            </button>
          </h2>
          <span class="mono dim">
            <Text text={component.event} most={60} />
          </span>
          <span class="trace-when dim">
            {since === null ? '' : since === 0 ? 'begin' : `+${duration(since)}`}
          </span>
          {isSigned ? (
            <Icon name="lock" label="covered by the signature" />
          ) : (
            <Badge tone="warn">not covered</Badge>
          )}
        </header>
        {Part && <Part data={component.data} />}
        {isEmpty(component) ? (
          <p class="dim">No data at this level.</p>
        ) : chosen || !Part ? (
          <Value key={text.length} value={{cut: false, size: text.length, text}} />
        ) : (
          <button type="button" class="link trace-all" onClick={onChoose}>
            Show JSON
          </button>
        )}
        {chosen && node && (
          <p>
            <a href={node}>Show in the history</a>
          </p>
        )}
      </div>
    </li>
  );
}

export function Pipeline({
  components,
  isSigned,
  chosen,
  onChoose,
  nodeLink,
}: {
  components: readonly Component[];
  isSigned: boolean;
  chosen: number | null;
  onChoose(index: number): void;
  nodeLink(index: number): string | null;
}) {
  const begin = components[0]?.timestamp ?? '';
  return (
    <ol class="trace-pipeline" aria-label="Components of the trace">
      {components.map((component) => (
        <Step
          key={component.index}
          component={component}
          since={secondsBetween(begin, component.timestamp)}
          isSigned={isSigned}
          chosen={chosen === component.index}
          node={nodeLink(component.index)}
          onChoose={() => onChoose(component.index)}
        />
      ))}
    </ol>
  );
}
