// nodes.tsx - a fleet on PostgreSQL as its database says: parts with their owners and leases, nodes,
// how far derived tables lag, and what happened last. Asked for again while it is open.
//
//   #/nodes

import type {ComponentChild} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {ago, bytes, count} from '../../base/format';
import {addCommands} from '../../base/keys';
import {session} from '../../base/session';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {when} from '../trace/model';
import {useNodes} from './asked';
import {
  connectionWords,
  eventSign,
  eventWords,
  type FleetNodes,
  indexLag,
  leaseLeft,
  newestNodes,
  nodeSign,
  notice,
  pageOf,
  partSign,
  type Sign,
  sinceMs,
  tableLag,
} from './model';

export function Nodes() {
  return session.value?.fleet ? (
    <Fleet />
  ) : (
    <Empty title="This server is not a node of a fleet">
      <p>
        It serves a folder. <code>cortex serve --fleet URL</code> serves a data directory in
        PostgreSQL, together with other nodes.
      </p>
    </Empty>
  );
}

function Fleet() {
  const [isPaused, setPaused] = useState(false);
  const {value, sinceMs: passedMs, error, again} = useNodes(isPaused);
  useEffect(
    () =>
      addCommands([
        {keys: 'p', what: 'Pause, or go on', group: 'Nodes', run: () => setPaused((is) => !is)},
      ]),
    [],
  );
  if (value === null)
    return error ? <Failed error={error} again={again} /> : <Loading what="Loading the nodes" />;
  const ageMs = (value.age_ms ?? 0) + passedMs;
  return (
    <>
      <header class="screen-head">
        <h1>Nodes</h1>
        <span class="grow" />
        <span class="dim">{value.age_ms === null ? '' : `as of ${past(ageMs)}`}</span>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Pause
        </button>
      </header>
      <Said value={value} ageMs={ageMs} failed={error?.message ?? null} />
      <div class="nodes-body">
        <Parts value={value} ageMs={ageMs} />
        <NodeTable value={value} ageMs={ageMs} />
        <Lag value={value} passedMs={passedMs} />
        <Events value={value} ageMs={ageMs} />
      </div>
    </>
  );
}

const past = (ms: number): string => ago(0, ms / 1000);
const NONE = '\u2013';

/** What speaks against what is shown; and for those who hear the page, what is new. */
function Said({value, ageMs, failed}: {value: FleetNodes; ageMs: number; failed: string | null}) {
  const about = notice(value, ageMs, failed);
  const news = value.events[0] ? eventWords(value.events[0]) : '';
  const first = useRef(news);
  return (
    <>
      {about && (
        <div class="state-failed">
          <p class="state-title">
            <Icon name="warn" /> {about.title}
          </p>
          <Text text={about.words} />
        </div>
      )}
      <p class="sr" role="status">
        {`${about?.title ?? ''} ${news === first.current ? '' : news}`}
      </p>
    </>
  );
}

function Shown({sign}: {sign: Sign}) {
  return (
    <Badge tone={sign.tone}>
      <Line text={sign.word} />
    </Badge>
  );
}

function Address({text}: {text: string}) {
  const page = pageOf(text, location);
  return page ? (
    <a href={page}>
      <Line text={text} />
    </a>
  ) : (
    <Line text={text} />
  );
}

/** Texts are those of others; the first cell of a row is its name. */
function Table({
  title,
  columns,
  rows,
  note,
}: {
  title: string;
  columns: readonly string[];
  rows: readonly (readonly ComponentChild[])[];
  note?: string;
}) {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <div class="fleet-scroll" tabIndex={0} role="region" aria-label={title}>
        <table class="fleet-table">
          <thead>
            <tr>
              {columns.map((one) => (
                <th key={one} scope="col">
                  {one}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((cells, row) => (
              <tr key={row}>
                {cells.map((cell, i) => {
                  const shown = typeof cell === 'string' ? <Line text={cell} /> : cell;
                  return i === 0 ? (
                    <th key={i} scope="row">
                      {shown}
                    </th>
                  ) : (
                    <td key={i}>{shown}</td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {note && <p class="dim nodes-note">{note}</p>}
    </section>
  );
}

function Parts({value, ageMs}: {value: FleetNodes; ageMs: number}) {
  return (
    <Table
      title="Parts"
      columns={[
        'Part',
        'State',
        'Owner',
        'Address',
        'Epoch',
        'Lease left',
        'Commits',
        'Written',
        'Fenced',
      ]}
      rows={value.parts.map((part) => [
        part.name,
        <Shown key="" sign={partSign(part)} />,
        part.node ?? NONE,
        part.address === null ? NONE : <Address key="" text={part.address} />,
        count(part.epoch),
        leaseLeft(part, ageMs),
        count(part.commits),
        bytes(part.bytes_written),
        count(part.fences),
      ])}
      note={
        value.parts.some((part) => part.stopped)
          ? 'cortex fleet doctor says why a part is stopped, and accepts its state.'
          : value.part === 'main'
            ? undefined
            : 'A node of the part main shows all parts.'
      }
    />
  );
}

function NodeTable({value, ageMs}: {value: FleetNodes; ageMs: number}) {
  return (
    <Table
      title="Nodes"
      columns={['Node', 'State', 'Part', 'Address', 'Last heard', 'Up', 'Connections', 'Version']}
      rows={newestNodes(value.nodes).map((node) => [
        node.node,
        <Shown key="" sign={nodeSign(node)} />,
        node.part,
        <Address key="" text={node.address} />,
        past(node.silent_ms + ageMs),
        node.state === 'silent' ? NONE : sinceMs(node.up_ms + ageMs),
        node.state === 'silent' ? NONE : connectionWords(node.connections),
        node.version,
      ])}
      note="A node that is silent for an hour is left out."
    />
  );
}

function Lag({value, passedMs}: {value: FleetNodes; passedMs: number}) {
  const lag = value.lag;
  return lag ? (
    <Table
      title="Derived tables"
      columns={['Part', 'Commits of the log', 'Tables', 'Index', 'Tables in the database']}
      rows={[
        [
          value.part ?? '',
          count(lag.log_commits),
          <Shown key="" sign={tableLag(lag)} />,
          <Shown key="" sign={indexLag(lag)} />,
          lag.tables_age_ms === null
            ? 'not written by this owner yet'
            : `written ${past(lag.tables_age_ms + passedMs)}`,
        ],
      ]}
      note="A node that takes the part derives what was recorded since they were written."
    />
  ) : null;
}

function Events({value, ageMs}: {value: FleetNodes; ageMs: number}) {
  return (
    <Table
      title="Events"
      columns={['Time (UTC)', 'Ago', 'Event', 'What happened', 'Epoch']}
      rows={value.events.map((event) => [
        when(event.at),
        past(event.ago_ms + ageMs),
        <Shown key="" sign={eventSign(event)} />,
        <Text key="" text={eventWords(event)} most={300} />,
        count(event.epoch),
      ])}
    />
  );
}
