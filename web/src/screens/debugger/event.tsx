// event.tsx - the node in focus: the event, its changes, its parents.

import {isLive} from '../../base/api';
import {focusKey, keyText} from '../../base/focus';
import {ago, count, plural, shortAgent, shortId, time} from '../../base/format';
import {readJson, stringMember} from '../../base/json';
import {adjust, linkTo} from '../../base/router';
import {Badge, type Tone} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Answer, Empty} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import {copy} from '../../ui/toast';
import {Short, Value} from '../../ui/value';
import type {Model} from './model';
import {MEANING, type Change, type NodeDetail, type NodeRef} from './types';

const FORKS: Record<string, {tone: Tone; words: string}> = {
  natural: {tone: 'good', words: 'natural fork'},
  observation: {tone: 'info', words: 'observation fork'},
  injection: {tone: 'warn', words: 'injection fork'},
  unknown: {tone: 'bad', words: 'fork of unknown kind'},
};

/** What people read first in an event, and what only the record needs. */
const READABLE = [
  'kind',
  'role',
  'text',
  'tool',
  'decision',
  'arguments',
  'result',
  'error',
  'because',
  'thinking',
  'input',
  'tool_calls',
  'model',
  'tokens',
  'cost_usd',
  'duration_ns',
];
const TECHNICAL = ['call_id', 'at', 't_ns', 'src_id', 'src_parent', 'source', 'raw', 'raw_step'];

export function EventPane({model}: {model: Model}) {
  const of = model.node.signal.value;
  if (!of.value && !of.error && !of.isLoading)
    return (
      <Empty title="No event selected">Click an event in the lanes, or press an arrow key.</Empty>
    );
  return (
    <Answer of={of} what="Loading the event">
      {(node) => <Event node={node} model={model} />}
    </Answer>
  );
}

function Event({node, model}: {node: NodeDetail; model: Model}) {
  const fork = FORKS[node.fork];
  const event = readJson(node.event.text);
  const traceId =
    stringMember(event, 'source') === 'trace' ? stringMember(event, 'trace_id') : undefined;
  return (
    <div class="event">
      <div class="event-head">
        <span
          class="lane-mark"
          style={{background: `var(--lane-${node.lane % 8})`}}
          aria-hidden="true"
        />
        <h3 class="event-agent line">
          <Text text={shortAgent(node.agent)} most={80} />
        </h3>
        <span class="mono dim">{`#${node.seq}`}</span>
        {stringMember(event, 'kind') === 'input' && (
          <Badge title="What a person, or the system prompt, said">input</Badge>
        )}
        {fork && (
          <Badge tone={fork.tone} icon="fork">
            {fork.words}
          </Badge>
        )}
        {node.parents.length > 1 && <Badge icon="merge">{`merge of ${node.parents.length}`}</Badge>}
        {node.failed && (
          <Badge tone="bad" icon="stop" title="The event says that something failed (e, E)">
            failed
          </Badge>
        )}
        {node.override > 0 && (
          <Badge
            tone="warn"
            icon="warn"
            title={
              node.agent.startsWith('run/')
                ? 'A person overrode a limit of the contract'
                : 'The conscience overrode the agent\u2019s choice'
            }
          >
            overridden
          </Badge>
        )}
        {!node.in_graph && <Badge tone="bad">excluded from the history</Badge>}
      </div>
      <p class="event-when">
        {node.t === null ? (
          <span class="dim" title="This history has no times, only an order">
            no time
          </span>
        ) : (
          <span title={ago(node.t)}>{time(node.t)}</span>
        )}
        <button
          type="button"
          class="link mono"
          title="Copy the id"
          onClick={() => copy(node.id, 'Id')}
        >
          <Line text={shortId(node.id)} most={40} />
        </button>
        {node.line > 0 && <span class="dim">{`line ${count(node.line)}`}</span>}
        {traceId && (
          <a
            href={linkTo(
              'trace',
              traceId,
              node.agent.startsWith('agent/') ? {agent: node.agent.slice(6)} : {},
            )}
          >
            signed trace
          </a>
        )}
        {isLive() && node.in_graph && (
          <button
            type="button"
            class="link"
            title="The steps after it that carry its text (w)"
            onClick={() => {
              model.askReach(node.n);
              adjust({pane: 'why'}, false);
            }}
          >
            What did it reach?
          </button>
        )}
        {node.fold > 0 && (
          <button
            type="button"
            class="link"
            onClick={() => model.toggleFold()}
          >{`one of ${count(node.fold)} folded events: unfold`}</button>
        )}
      </p>
      {node.findings.map((finding, i) => (
        <div
          key={i}
          class={`finding ${finding.code.startsWith('W') ? 'finding-warning' : ''}`}
          role="note"
        >
          <Badge tone={finding.code.startsWith('W') ? 'warn' : 'bad'}>{finding.code}</Badge>
          <div>
            <p>{`${finding.code.startsWith('W') ? 'Warning:' : 'Invalid event:'} ${MEANING[finding.code] ?? 'see lattice.md'}.`}</p>
            {finding.detail && (
              <p class="dim">
                <Text text={finding.detail} most={300} />
              </p>
            )}
          </div>
        </div>
      ))}
      {node.snapshots.map((one) => (
        <p key={`${one.actor} ${one.number}`} class="event-held">
          <Icon name="lock" />
          <span>{`Snapshot ${one.number}${one.sealed ? ', sealed,' : ''} was taken after this event, ${time(Math.floor(one.created_ns / 1e9))}, with ${plural(one.entries, 'entry', 'entries')}.`}</span>
          {isLive() && (
            <a
              href={linkTo('evidence', undefined, {
                actor: one.actor,
                what: 'state',
                at: String(one.number),
              })}
            >
              Evidence
            </a>
          )}
        </p>
      ))}
      <Value key={node.n} value={node.event} hide={['__seal']} first={READABLE} last={TECHNICAL} />
      <h3>
        {node.changes.length === 0
          ? 'No changes'
          : `Changed ${plural(node.changes.length, 'value')}${node.more_changes ? ' or more' : ''}`}
      </h3>
      <ul class="changes">
        {node.changes.map((change, i) => (
          <li key={i}>
            <ChangeRow change={change} isPart={model.part !== null} />
          </li>
        ))}
      </ul>
      <div class="kin">
        <Kin
          title={node.parents.length === 0 ? 'First event' : 'Previous'}
          nodes={node.parents}
          model={model}
          lineage={node.lineage}
        />
        <Kin
          title={node.child_count === 0 ? 'Last event' : 'Next'}
          nodes={node.children}
          model={model}
          lineage={null}
          more={node.child_count - node.children.length}
        />
      </div>
      <details class="hashes">
        <summary>Hashes</summary>
        <dl>
          <dt>hash</dt>
          <dd class="mono">
            <Text text={node.hash} most={80} />
          </dd>
          <dt>previous</dt>
          <dd class="mono">
            <Text text={node.prev_hash} most={80} />
          </dd>
          <dt>id</dt>
          <dd class="mono">
            <Text text={node.id} most={200} />
          </dd>
        </dl>
      </details>
    </div>
  );
}

export function ChangeRow({change, isPart = false}: {change: Change; isPart?: boolean}) {
  const key = {section: change.section, key: change.key};
  return (
    <button
      type="button"
      class="change"
      onClick={() => focusKey(key)}
      title="Show why this value was set"
    >
      <span class="change-key">
        <Line text={keyText(key)} most={80} />
      </span>
      <span class="change-old">
        {isPart && change.old === null ? (
          <span class="dim" title="It may have been set before this part of the history">
            not in this part
          </span>
        ) : (
          <Short value={change.old} most={60} />
        )}
      </span>
      <span class="change-arrow" role="img" aria-label="became">
        {'\u2192'}
      </span>
      <span class="change-new">
        <Short value={change.new} most={80} />
      </span>
      {change.via === 'merge' && (
        <Badge icon="merge" title="Branches merge here">
          merged
        </Badge>
      )}
    </button>
  );
}

function Kin({
  title,
  nodes,
  model,
  lineage,
  more = 0,
}: {
  title: string;
  nodes: readonly NodeRef[];
  model: Model;
  lineage: number | null;
  more?: number;
}) {
  return (
    <section>
      <h3>{title}</h3>
      <ul>
        {nodes.map((node) => (
          <li key={node.n}>
            <button type="button" class="link kin-node" onClick={() => model.select(node.n)}>
              <span
                class="lane-mark"
                style={{background: `var(--lane-${node.lane % 8})`}}
                aria-hidden="true"
              />
              <Line text={shortAgent(node.agent)} most={50} />
              <span class="mono dim">{`#${node.seq}`}</span>
              {node.n === lineage && nodes.length > 1 && <Icon name="up" label="predecessor" />}
            </button>
          </li>
        ))}
        {more > 0 && <li class="dim">{`and ${count(more)} more`}</li>}
      </ul>
    </section>
  );
}
