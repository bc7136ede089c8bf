// reach.tsx - what a step reached: the steps after it that carry its text, and how many only follow.

import type {ViewCarrier, ViewReach} from '../../base/api-types';
import {count, plural, shortAgent} from '../../base/format';
import {Badge} from '../../ui/badge';
import {Answer} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import type {Model} from './model';
import {PaneHead} from './pane_head';

export function ReachPane({model}: {model: Model}) {
  return (
    <div class="why">
      <PaneHead
        icon="fork"
        asked={model.reachAsked.value}
        close={() => {
          model.reachAsked.value = null;
        }}
      >
        What did this step reach?
      </PaneHead>
      <Answer of={model.reach.signal.value} what="Looking through the steps after it">
        {(reach) => <Reached reach={reach} model={model} />}
      </Answer>
    </div>
  );
}

function Reached({reach, model}: {reach: ViewReach; model: Model}) {
  return (
    <>
      <p>
        <button type="button" class="link" onClick={() => model.select(reach.node.n)}>
          <Line text={`${shortAgent(reach.node.agent)} #${reach.node.seq}`} most={60} />
        </button>
        {`: ${plural(reach.follows_total, 'step')} after it, ${count(reach.total)} with its text or call.`}
      </p>
      <ol class="chain" aria-label="Steps that carry its text, oldest first">
        {reach.carries.map((carrier) => (
          <li key={carrier.n}>
            <Carrier carrier={carrier} model={model} />
          </li>
        ))}
      </ol>
      {reach.total > reach.carries.length && (
        <p class="dim">{`${count(reach.total - reach.carries.length)} later ones are not listed.`}</p>
      )}
      <p class="note">
        A step that follows may have been influenced. One that carries shares 24 bytes or more that
        only this step and those after it have, or its call. Paraphrases are not found.
        {reach.cut && ' Of this step’s text the first MiB was compared.'}
      </p>
    </>
  );
}

function Carrier({carrier, model}: {carrier: ViewCarrier; model: Model}) {
  const isNow = carrier.n === model.detail.value?.n;
  return (
    <button
      type="button"
      class={`step ${isNow ? 'step-now' : ''}`}
      aria-current={isNow ? 'step' : undefined}
      onClick={() => model.select(carrier.n)}
    >
      <span class="step-who">
        <span
          class="lane-mark"
          style={{background: `var(--lane-${carrier.lane % 8})`}}
          aria-hidden="true"
        />
        <Line text={shortAgent(carrier.agent)} most={50} />
        <span class="mono dim">{`#${carrier.seq}`}</span>
        {carrier.by.map((one) => (
          <Badge key={one} tone={one === 'text' ? 'warn' : 'info'}>
            {one}
          </Badge>
        ))}
      </span>
      {carrier.keys.length > 0 && (
        <span class="step-said mono">
          <Text text={carrier.keys.join(', ')} most={200} />
        </span>
      )}
      {carrier.text && (
        <span class="step-said">
          <Text text={carrier.text} most={200} />
        </span>
      )}
    </button>
  );
}
