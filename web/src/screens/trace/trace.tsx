// trace.tsx - one signed decision: its contents, the signature's coverage, and its context.
//
//   #/trace/ID?agent=HASH&part=N      a recorded trace
//   #/trace                           verifies a trace of the user

import {useEffect, useMemo} from 'preact/hooks';
import {ApiError} from '../../base/api';
import {shortAgent} from '../../base/format';
import {readJson, member, stringMember, type Json} from '../../base/json';
import {addCommands} from '../../base/keys';
import {useAnswer, useText} from '../../base/load';
import {adjust, go, linkTo, route} from '../../base/router';
import {Badge} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line} from '../../ui/text';
import {copy} from '../../ui/toast';
import {CheckTrace} from './check';
import {componentsOf, when} from './model';
import {
  ChainPanel,
  ElsewherePanel,
  IdmaPanel,
  LedgerPanel,
  Refusal,
  SignedPanel,
  TONES,
} from './panels';
import {Pipeline} from './pipeline';
import type {Around, Row, TraceAnswer} from './types';

export function Trace() {
  const name = route.value.name;
  return name ? <Recorded key={name} id={name} /> : <CheckTrace />;
}

interface Read {
  answer: TraceAnswer;
  trace: Json;
}

function Recorded({id}: {id: string}) {
  const agent = route.value.query['agent'];
  const path = `/api/v1/covenant/traces/${encodeURIComponent(id)}`;
  const of = useText(path, {agent_id_hash: agent});
  const read = useMemo<Read | null>(
    () =>
      of.value === null
        ? null
        : {
            answer: JSON.parse(of.value) as TraceAnswer,
            trace: member(readJson(of.value), 'trace')!,
          },
    [of.value],
  );
  const around = useAnswer<Around>(read ? `${path}/around` : null, {
    agent_id_hash: agent,
    nodes: true,
  });
  if (of.error instanceof ApiError && of.error.status === 404) return <Missing id={id} />;
  if (of.error) return <Failed error={of.error} again={() => location.reload()} />;
  if (!read) return <Loading what="Loading the trace" />;
  return <Shown id={id} read={read} around={around.value} />;
}

function Missing({id}: {id: string}) {
  return (
    <Empty title="Trace not found">
      <p class="mono">
        <Line text={id} most={200} />
      </p>
      <p>
        Rejected traces are not stored; their batch records how many were rejected, and why. If you
        have the trace, <a href={linkTo('trace')}>check it</a> to see why it is rejected.
      </p>
      <p>
        A trace that was just recorded may take a moment to appear.{' '}
        <a href={linkTo('inbox')}>Go to the inbox</a>
      </p>
    </Empty>
  );
}

function open(row: Row | null | undefined): void {
  if (row) go('trace', row.trace_id, {agent: row.agent_id_hash});
}

function useKeys(around: Around | null, parts: number): void {
  useEffect(() => {
    const step = (by: number): void => {
      const now = Number(route.value.query['part'] ?? (by > 0 ? 0 : parts + 1));
      const next = Math.max(1, Math.min(parts, now + by));
      adjust({part: String(next)}, false);
      document.getElementById(`component-${next - 1}`)?.scrollIntoView({block: 'nearest'});
    };
    return addCommands([
      {
        keys: '[ p',
        what: 'Previous trace of the agent',
        group: 'Trace',
        run: () => open(around?.previous),
      },
      {
        keys: '] n',
        what: 'Next trace of the agent',
        group: 'Trace',
        run: () => open(around?.next),
      },
      {keys: 'ArrowDown j', what: 'Next component', group: 'Trace', run: () => step(1)},
      {keys: 'ArrowUp k', what: 'Previous component', group: 'Trace', run: () => step(-1)},
      {
        keys: 'd',
        what: 'Open in the debugger',
        group: 'Trace',
        run: () =>
          around &&
          go(
            'debugger',
            `agent/${around.agent_id_hash}`,
            around.nodes[0] ? {node: around.nodes[0]} : {},
          ),
      },
    ]);
  }, [around, parts]);
}

function Step({row, way}: {row: Row | null | undefined; way: 'prev' | 'next'}) {
  const words = way === 'prev' ? 'Previous trace of the agent ([)' : 'Next trace of the agent (])';
  return (
    <button
      type="button"
      class="quiet"
      title={words}
      aria-label={words}
      disabled={!row}
      onClick={() => open(row)}
    >
      <Icon name={way} />
    </button>
  );
}

function Shown({id, read, around}: {id: string; read: Read; around: Around | null}) {
  const {answer, trace} = read;
  const components = useMemo(() => componentsOf(trace), [trace]);
  const {verdict} = answer;
  const agent = around?.agent_id_hash ?? answer.entry.actor;
  const at =
    stringMember(trace, 'completed_at') ?? components[components.length - 1]?.timestamp ?? '';
  const part = route.value.query['part'];
  const chosen = part ? Number(part) - 1 : null;
  useKeys(around, components.length);
  const lowered = member(trace, 'derived') !== undefined;
  return (
    <>
      <header class="screen-head">
        <Step row={around?.previous} way="prev" />
        <h1 class="line">
          <button
            type="button"
            class="link trace-id mono"
            title="Copy the id"
            onClick={() => copy(id, 'Id')}
          >
            <Line text={id} most={80} />
          </button>
        </h1>
        <Step row={around?.next} way="next" />
        <Badge tone={TONES[verdict.verdict]}>{verdict.verdict}</Badge>
        <Badge title="Trace level">{answer.level.replace('_', ' ')}</Badge>
        {verdict.trace_type && (
          <Badge tone="info">
            <Line text={verdict.trace_type} most={40} />
          </Badge>
        )}
        <span class="grow" />
        <span class="dim">
          agent{' '}
          <span class="mono">
            <Line text={shortAgent(agent)} most={40} />
          </span>
        </span>
        <span class="dim">
          <Line text={when(at)} most={40} />
        </span>
      </header>
      <div class="trace-body">
        <div class="trace-main">
          <Refusal verdict={verdict} />
          {lowered && (
            <p class="trace-note">
              <Icon name="warn" /> Redacted: your token reads up to {answer.level.replace('_', ' ')}
              . The omitted parts are still signed and in the ledger.
            </p>
          )}
          <Pipeline
            components={components}
            isSigned={verdict.verdict === 'holds' && verdict.signed !== null}
            chosen={chosen}
            onChoose={(index) => adjust({part: chosen === index ? null : String(index + 1)}, false)}
            nodeLink={(index) =>
              around?.nodes[index]
                ? linkTo('debugger', `agent/${agent}`, {node: around.nodes[index]!})
                : null
            }
          />
        </div>
        <aside class="trace-side" aria-label="Details">
          <SignedPanel verdict={verdict} />
          <IdmaPanel components={components} row={around?.row ?? null} />
          <ChainPanel agent={agent} traceId={id} around={around} />
          <LedgerPanel answer={answer} />
          <ElsewherePanel agent={agent} around={around} />
        </aside>
      </div>
    </>
  );
}
