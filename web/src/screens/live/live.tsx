// live.tsx - sessions of coding agents as they happen: what each call would do, what was decided
// and why, what waits for a person, and limits.
//
//   #/live            all sessions, the newest first
//   #/live/ACTOR      one of them

import {useEffect, useState} from 'preact/hooks';
import type {LiveSession, LiveSessionShown, LiveSessions} from '../../base/api-types';
import {ApiError, get} from '../../base/api';
import {ago, plural, shortId} from '../../base/format';
import {addCommands} from '../../base/keys';
import {adjust, go, linkTo, route} from '../../base/router';
import {Badge} from '../../ui/badge';
import {VirtualList} from '../../ui/list';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {seconds} from '../run/types';
import {Entries} from './entries';
import {useSessions} from './followed';
import {Limits} from './limits';
import {folderName, modeTone, newlyWaiting} from './model';
import {Waiting} from './waiting';

export function Live() {
  const name = route.value.name;
  return name ? <Opened key={name} name={name} /> : <SessionList />;
}

// --- all of them ---------------------------------------------------------------------------------

function SessionList() {
  const running = route.value.query['running'] ?? '';
  const cursor = route.value.query['after'] ?? '';
  const [active, setActive] = useState(0);
  const {value, error, isUp} = useSessions<LiveSessions>(
    (abort) =>
      get(
        '/api/v1/sessions',
        {limit: 200, running: running || null, cursor: cursor || null},
        abort,
      ),
    `${running} ${cursor}`,
  );
  const waiting = value?.sessions.reduce((sum, one) => sum + one.waiting, 0) ?? 0;
  return (
    <>
      <header class="screen-head">
        <h1>Live</h1>
        <button
          type="button"
          aria-pressed={running !== ''}
          onClick={() => adjust({running: running ? null : '1', after: null})}
        >
          Running only
        </button>
        {waiting > 0 && (
          <Badge tone="warn" icon="clock">
            {plural(waiting, 'call waits', 'calls wait')}
          </Badge>
        )}
        <span class="grow" />
        <span class="dim">{isUp ? 'live' : ''}</span>
      </header>
      <p class="sr" role="status">
        {waiting > 0 ? `${plural(waiting, 'call waits', 'calls wait')} for a person` : ''}
      </p>
      <div class="live-list">
        {error instanceof ApiError && error.status === 404 ? (
          <Empty title="A single file has no sessions">
            Start <code>cortex serve</code> over a data directory to watch agents.
          </Empty>
        ) : error && value === null ? (
          <Failed error={error} />
        ) : value === null ? (
          <Loading what="Loading the sessions" />
        ) : value.sessions.length === 0 ? (
          <Empty title={running ? 'No session is running' : 'No sessions yet'}>
            <p>
              <code>cortex hook install claude</code> lets Cortex decide and record what an agent
              does; the next session then appears here.
            </p>
          </Empty>
        ) : (
          <VirtualList
            items={value.sessions}
            rowHeight={44}
            label="Sessions"
            keyOf={(one) => one.actor}
            active={active}
            onActive={setActive}
            onOpen={(i) => go('live', value.sessions[i]!.actor)}
            render={(one) => <Row one={one} />}
          />
        )}
      </div>
      {(cursor || value?.next_cursor) && (
        <p class="live-pages">
          {cursor && (
            <button type="button" onClick={() => adjust({after: null})}>
              Newest
            </button>
          )}
          {value?.next_cursor && (
            <button type="button" onClick={() => adjust({after: value.next_cursor})}>
              Older
            </button>
          )}
        </p>
      )}
    </>
  );
}

function Row({one}: {one: LiveSession}) {
  return (
    <span class="live-row">
      <span class="live-row-mode">
        <Badge tone={modeTone(one.mode)}>{one.mode}</Badge>
      </span>
      <span class="live-row-name">
        <Line text={folderName(one.cwd)} most={80} />
        <Line class="dim" text={`${one.agent} ${shortId(one.session)}`} most={60} />
      </span>
      <span class="grow" />
      {one.waiting > 0 && (
        <Badge tone="warn" icon="clock">
          {one.waiting} waiting
        </Badge>
      )}
      {one.denied > 0 && <Badge tone="bad">{one.denied} denied</Badge>}
      <span class="dim live-row-calls">{plural(one.calls, 'call')}</span>
      <span class="dim live-row-time">
        {one.ended ? 'ended ' : ''}
        {ago(seconds(one.latest))}
      </span>
    </span>
  );
}

// --- one -----------------------------------------------------------------------------------------

function Opened({name}: {name: string}) {
  const before = route.value.query['before'] ?? '';
  const path = `/api/v1/sessions/${encodeURIComponent(name)}`;
  const {value, error, isUp, again} = useSessions<LiveSessionShown>(
    (abort) => get(path, {limit: 200, before: before || null}, abort),
    before,
  );
  const [known, setKnown] = useState<LiveSessionShown | null>(null);
  const [news, setNews] = useState('');
  useEffect(() => {
    if (!value) return;
    const fresh = newlyWaiting(known?.waiting ?? null, value.waiting);
    if (fresh.length > 0)
      setNews(
        fresh.length === 1
          ? `A call of ${fresh[0]!.tool} waits for you`
          : `${plural(fresh.length, 'call')} wait for you`,
      );
    setKnown(value);
  }, [value]);
  useEffect(
    () =>
      addCommands([
        {keys: 'l', what: 'Go to all sessions', group: 'Session', run: () => go('live', '')},
        {
          keys: 'w',
          what: 'Go to the first call that waits',
          group: 'Session',
          run: () => document.querySelector<HTMLElement>('.live-waits')?.focus(),
        },
      ]),
    [],
  );
  if (error && value === null) return <Failed error={error} again={again} />;
  if (value === null) return <Loading what="Opening the session" />;
  return (
    <>
      <Head one={value.session} isUp={isUp} />
      <p class="sr" role="status">
        {news}
      </p>
      <div class="live-body" tabIndex={0} role="region" aria-label="The session">
        <Waiting path={path} items={value.waiting} again={again} />
        <Limits path={path} policy={value.policy} ended={value.session.ended} again={again} />
        <Entries entries={value.entries} root={value.policy?.root || value.session.cwd} />
        {(before || value.next !== null) && (
          <p class="live-more">
            {before && (
              <button type="button" onClick={() => adjust({before: null})}>
                Newest
              </button>
            )}
            {value.next !== null && (
              <button type="button" onClick={() => adjust({before: String(value.next)})}>
                Older
              </button>
            )}
          </p>
        )}
      </div>
    </>
  );
}

function Head({one, isUp}: {one: LiveSession; isUp: boolean}) {
  return (
    <header class="screen-head">
      <h1 class="line">
        <Line text={folderName(one.cwd)} most={80} />
      </h1>
      <Badge>
        <Line text={one.agent} most={30} />
      </Badge>
      <Badge tone={modeTone(one.mode)}>{one.mode}</Badge>
      {one.ended && <Badge>ended</Badge>}
      {one.denied > 0 && <Badge tone="bad">{one.denied} denied</Badge>}
      <span class="dim live-head-cwd">
        <Text text={one.cwd} most={200} />
      </span>
      <span class="grow" />
      <span class="dim">{isUp && !one.ended ? 'live' : ''}</span>
      <a class="run-link" href={linkTo('debugger', `session/${one.session}`)}>
        History
      </a>
      <a class="run-link" href={linkTo('evidence', '', {what: 'auditor', id: one.actor})}>
        Evidence
      </a>
      <a class="run-link" href={linkTo('live')}>
        All sessions
      </a>
    </header>
  );
}
