// events.tsx - all events of the run, live.

import {useEffect, useMemo, useState} from 'preact/hooks';
import {clock, count, time} from '../../base/format';
import {oneLine, readJson} from '../../base/json';
import {adjust, route} from '../../base/router';
import {plain} from '../../base/text';
import {Badge} from '../../ui/badge';
import {VirtualList} from '../../ui/list';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {copy} from '../../ui/toast';
import {Value} from '../../ui/value';
import type {RunEvent, RunModel} from './model';

/** Words that all must occur; "12-40" is a range of indexes. */
export function matching(events: readonly RunEvent[], filter: string): readonly RunEvent[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const ranges = words
    .map((word) => /^#?(\d+)-(\d*)$/.exec(word))
    .filter((one) => one !== null)
    .map((one) => [Number(one[1]), one[2] === '' ? Infinity : Number(one[2])] as const);
  const texts = words.filter((word) => !/^#?\d+-\d*$/.test(word));
  if (words.length === 0) return events;
  return events.filter(
    (event) =>
      ranges.every(([from, to]) => event.index >= from && event.index <= to) &&
      (texts.length === 0 || texts.every((text) => event.raw.toLowerCase().includes(text))),
  );
}

const WORRIES =
  /^(gate_failed|policy_violation|MERGE_REFUSED|FIX_LOOP_EXHAUSTED|LOCK_FAILED|SANDBOX_DEGRADED|HUMAN_APPROVAL_(REJECTED|TIMEOUT))$/;

export function EventsPane({model}: {model: RunModel}) {
  const filter = route.value.query['filter'] ?? '';
  const [isFollowing, setFollowing] = useState(true);
  const all = model.events.value;
  const shown = useMemo(() => matching(all, filter), [all, filter]);
  const wanted = Number(route.value.query['event'] ?? 0);
  const chosen = wanted > 0 ? shown.findIndex((event) => event.index === wanted) : -1;
  const follows = isFollowing && model.isRunning.value && wanted === 0;
  useEffect(() => {
    if (filter && model.hasMore.value) void model.readOn();
  }, [filter]);
  if (model.eventsError.value && all.length === 0)
    return <Failed error={model.eventsError.value} again={() => void model.readOn()} />;
  if (all.length === 0)
    return model.hasMore.value ? (
      <Loading what="Loading the events" />
    ) : (
      <Empty title="No events yet">Events appear here as they are written.</Empty>
    );
  const active = chosen >= 0 ? chosen : follows ? shown.length - 1 : -1;
  const open = chosen >= 0 ? shown[chosen] : undefined;
  return (
    <div class="events-pane">
      <div class="pane-tools">
        <input
          id="run-filter"
          type="search"
          placeholder="Filter: words or a range (12-40)"
          aria-label="Filter the events by words or by a range of numbers"
          value={filter}
          onInput={(event) => adjust({filter: event.currentTarget.value}, false)}
        />
        <span class="dim events-count" role="status">
          {filter ? `${count(shown.length)} of ${count(all.length)}` : count(all.length)}
          {model.hasMore.value ? '+' : ''}
        </span>
        {model.isRunning.value && (
          <button
            type="button"
            aria-pressed={follows}
            onClick={() => {
              setFollowing(!follows);
              adjust({event: null}, false);
            }}
          >
            {model.isUp.value ? 'Follow' : 'Follow (connecting)'}
          </button>
        )}
      </div>
      {shown.length === 0 ? (
        <Empty title="No matching events">
          Change the filter, or show{' '}
          <button type="button" class="link" onClick={() => adjust({filter: null}, false)}>
            all events
          </button>
          .
        </Empty>
      ) : (
        <div class="events-body">
          <VirtualList
            items={shown}
            rowHeight={26}
            label="Events"
            class="events-list"
            keyOf={(event) => String(event.index)}
            active={active}
            onActive={(i) => adjust({event: String(shown[i]!.index)}, false)}
            onEnd={() => model.hasMore.value && void model.readOn()}
            render={(event) => <EventRow event={event} />}
          />
          {open && <EventDetail event={open} />}
        </div>
      )}
    </div>
  );
}

function tone(event: RunEvent): string {
  if (event.level === 'ERROR' || WORRIES.test(event.type)) return 'event-error';
  if (event.level === 'WARN') return 'event-warn';
  return event.type === 'STATE_TRANSITION' ? 'event-state' : '';
}

function EventRow({event}: {event: RunEvent}) {
  const kind = tone(event);
  return (
    <span class={`event-row ${kind}`}>
      <span class="mono dim event-no">{event.index}</span>
      <span class="mono dim event-time">{clock(event.at)}</span>
      <span class="event-type">
        <Line text={event.type} most={60} />
      </span>
      {kind === 'event-error' && <Badge tone="bad">error</Badge>}
      {kind === 'event-warn' && <Badge tone="warn">warning</Badge>}
      <Line
        class="mono dim event-payload"
        text={oneLine(readJson(event.payload.slice(0, 2000)), 200)}
        most={200}
      />
    </span>
  );
}

function EventDetail({event}: {event: RunEvent}) {
  return (
    <section class="event-detail" aria-label={`Event ${event.index}`}>
      <header>
        <h3>
          <span class="mono dim">{event.index}</span> <Text text={event.type} most={80} />
        </h3>
        <span class="dim">
          {time(event.at)}
          {event.attempt && event.attempt !== '0' ? `, fix ${plain(event.attempt, 20)}` : ''}
        </span>
        <span class="grow" />
        <button type="button" class="quiet" onClick={() => copy(event.raw, 'Event line')}>
          Copy the line
        </button>
        <button type="button" class="quiet" onClick={() => adjust({event: null}, false)}>
          Close
        </button>
      </header>
      <Value
        key={event.index}
        value={{cut: false, size: event.payload.length, text: event.payload}}
      />
    </section>
  );
}
