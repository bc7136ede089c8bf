// why.tsx - the origin of a value: every change of its key before the event in focus, newest first,
// each a link; and the next change after it.

import {focus, focusKey, keyText} from '../../base/focus';
import {clock, count, plural, shortAgent} from '../../base/format';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Answer, Empty} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {Short, Value} from '../../ui/value';
import type {Model} from './model';
import {PaneHead} from './pane_head';
import {NeedsWhole} from './part';
import {ReachPane} from './reach';
import {SaidPane} from './said';
import type {Write, Writes} from './types';

export function WhyPane({model}: {model: Model}) {
  const key = focus.key.value;
  if (model.part && (key || model.reachAsked.value !== null || model.saidAsked.value))
    return (
      <NeedsWhole
        model={model}
        what={model.reachAsked.value === null ? 'Where it came from' : 'What it reached'}
      />
    );
  if (model.reachAsked.value !== null) return <ReachPane model={model} />;
  if (model.saidAsked.value) return <SaidPane model={model} />;
  if (!key)
    return (
      <Empty title="No value selected">
        <p>
          Click a value in the state or a change of an event to see every change that led to it, or
          select text in the conversation to see who said it first.
        </p>
      </Empty>
    );
  if (key.key === null || (key.section !== 'memory' && key.section !== 'beliefs'))
    return (
      <Empty title="Not available for lists">{`The ${key.section.replace('_', ' ')} are replaced as a whole; see the events for the changes.`}</Empty>
    );
  return (
    <div class="why">
      <PaneHead icon="key" asked={keyText(key)} close={() => focusKey(null)}>
        <span class="mono">
          <Line text={keyText(key)} most={100} />
        </span>
      </PaneHead>
      <Answer of={model.writes.signal.value} what="Loading the changes">
        {(writes) => <Chain writes={writes} model={model} />}
      </Answer>
    </div>
  );
}

function Chain({writes, model}: {writes: Writes; model: Model}) {
  const at = model.detail.value?.n;
  const newest = writes.changes[0];
  const before = writes.changes.find((write) => write.n !== at);
  // Merges pass a value on; the event that brought it in is the oldest that made it by itself.
  const origin = [...writes.changes]
    .reverse()
    .find(
      (write) =>
        write.via === 'delta' && write.new !== null && write.new.text === newest?.new?.text,
    );
  return (
    <>
      <div class="why-now">
        {newest ? (
          <>
            <span class="dim">
              {newest.n === at ? 'This event set the value to' : 'Current value:'}
            </span>
            {newest.new ? (
              <Value key={`${newest.n}`} value={newest.new} />
            ) : (
              <span class="value-none">gone</span>
            )}
          </>
        ) : (
          <span class="dim">The key had no value before this event.</span>
        )}
      </div>
      <div class="why-steps">
        <button type="button" disabled={!before} onClick={() => model.previousWrite()} title="[">
          <Icon name="prev" /> Previous write
        </button>
        <button type="button" disabled={!writes.next} onClick={() => model.nextWrite()} title="]">
          Next write <Icon name="next" />
        </button>
      </div>
      {writes.changes.length > 0 && (
        <h3>{plural(writes.changes.length + writes.more, 'change')} led to this value</h3>
      )}
      <ol class="chain" aria-label="Changes, newest first">
        {writes.changes.map((write, i) => (
          <li key={write.n}>
            <Step
              write={write}
              model={model}
              isNow={write.n === at}
              isFirst={i === writes.changes.length - 1 && writes.more === 0}
              isOrigin={write === origin}
            />
            <Reason write={write} model={model} />
          </li>
        ))}
      </ol>
      {writes.more > 0 && (
        <p class="dim">{`${count(writes.more)} older changes are not listed; open the oldest change in this list to see them.`}</p>
      )}
      <p class="note">
        These are recorded changes with the reason that the agent gave; “from” is the newest step
        before that has the value in its text.
      </p>
    </>
  );
}

function Step({
  write,
  model,
  isNow,
  isFirst,
  isOrigin,
}: {
  write: Write;
  model: Model;
  isNow: boolean;
  isFirst: boolean;
  isOrigin: boolean;
}) {
  return (
    <button
      type="button"
      class={`step ${isNow ? 'step-now' : ''}`}
      data-node={write.n}
      aria-current={isNow ? 'step' : undefined}
      onClick={() => model.select(write.n)}
    >
      <span class="step-who">
        <span
          class="lane-mark"
          style={{background: `var(--lane-${write.lane % 8})`}}
          aria-hidden="true"
        />
        <Line text={shortAgent(write.agent)} most={50} />
        <span class="mono dim">{`#${write.seq}`}</span>
        <span class="dim step-when">{write.t === null ? '' : clock(write.t)}</span>
        {write.via === 'merge' && (
          <Badge icon="merge" title="Branches merge here">
            merged
          </Badge>
        )}
        {isOrigin ? (
          <Badge tone="info" icon="key">
            wrote this value
          </Badge>
        ) : (
          isFirst && <Badge>first write</Badge>
        )}
      </span>
      <span class="step-what">
        <Short value={write.old} most={50} />
        <span class="change-arrow" role="img" aria-label="became">
          {'\u2192'}
        </span>
        <Short value={write.new} most={70} />
      </span>
    </button>
  );
}

/** What the agent said when it made the change, and where the value was read before. */
function Reason({write, model}: {write: Write; model: Model}) {
  const said = [
    ['because', write.because],
    ['thinking', write.thinking],
    ['said', write.text],
  ] as const;
  const source = write.source;
  if (!source && said.every(([, text]) => !text)) return null;
  return (
    <dl class="reason">
      {said.map(
        ([name, text]) =>
          text && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                <Text text={text} most={300} />
              </dd>
            </div>
          ),
      )}
      {source && (
        <div>
          <dt>from</dt>
          <dd>
            <button type="button" class="link" onClick={() => model.select(source.n)}>
              <Line text={`${shortAgent(source.agent)} #${source.seq}`} most={60} />
            </button>{' '}
            <Text text={source.text} most={300} />
          </dd>
        </div>
      )}
    </dl>
  );
}
