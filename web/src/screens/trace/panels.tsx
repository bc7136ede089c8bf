// panels.tsx - panels next to the components: signature, independence, audit chain, ledger entry,
// context.

import type {ComponentChildren} from 'preact';
import {useAnswer} from '../../base/load';
import {count, shortAgent, shortId} from '../../base/format';
import {linkTo} from '../../base/router';
import {plain} from '../../base/text';
import {Badge, type Tone} from '../../ui/badge';
import {Icon} from '../../ui/icon';
import {Answer} from '../../ui/states';
import {Digest, Line, Text} from '../../ui/text';
import {copy} from '../../ui/toast';
import {
  concerns,
  coverage,
  findingWords,
  FORMS,
  REASONS,
  type Chain,
  type Component,
  type Idma,
  idmaOf,
  when,
} from './model';
import type {Around, Row, TraceAnswer, Verdict} from './types';

export const TONES: Record<string, Tone> = {holds: 'good', broken: 'bad', indeterminate: 'warn'};

export function Panel({
  title,
  mark,
  children,
}: {
  title: string;
  mark?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="trace-panel">
      <header>
        <h2>{title}</h2>
        {mark}
      </header>
      {children}
    </section>
  );
}

function Hash({text, what}: {text: string; what: string}) {
  return (
    <button
      type="button"
      class="link mono"
      title={`${plain(text)} (copy)`}
      onClick={() => copy(text, what)}
    >
      <Line text={shortId(text)} most={30} />
    </button>
  );
}

/** What is wrong, in words, before anything else. */
export function Refusal({verdict}: {verdict: Verdict}) {
  if (verdict.verdict === 'holds') return null;
  const bad = verdict.verdict === 'broken';
  return (
    <div class={`trace-refusal ${bad ? '' : 'trace-unsure'}`} role="note">
      <Icon name={bad ? 'cross' : 'warn'} />
      <div>
        <p class="state-title">
          {bad ? 'This trace is rejected' : 'This trace could not be authenticated'}
        </p>
        <p>{REASONS[verdict.reason ?? ''] ?? 'It could not be verified.'}</p>
        <p class="dim">
          {verdict.reason && <code>{verdict.reason}</code>}
          {verdict.path && (
            <>
              {' '}
              at{' '}
              <code>
                <Text text={verdict.path} most={200} />
              </code>
            </>
          )}
          {verdict.detail && (
            <>
              {': '}
              <Text text={verdict.detail} most={400} />
            </>
          )}
        </p>
        {verdict.paths.length > 0 && (
          <ul>
            {verdict.paths.slice(0, 20).map((path) => (
              <li key={path}>
                <code>
                  <Text text={path} most={200} />
                </code>
              </li>
            ))}
          </ul>
        )}
        {verdict.reason === 'key_unknown' && verdict.key_id && (
          <p class="dim">
            If you trust the owner of the key, <code>cortex key add</code> adds it, and the trace is
            verified again.
          </p>
        )}
      </div>
    </div>
  );
}

export function SignedPanel({verdict}: {verdict: Verdict}) {
  const parts = coverage(verdict.verdict === 'holds' ? verdict.signed : null);
  const open = parts.filter((part) => !part.signed);
  return (
    <Panel
      title="Signature coverage"
      mark={<Badge tone={TONES[verdict.verdict]}>{verdict.verdict}</Badge>}
    >
      <ul class="trace-cover">
        {parts.map((part) => (
          <li key={part.name} class={part.signed ? '' : 'trace-open'}>
            <Icon
              name={part.signed ? 'lock' : 'minus'}
              label={part.signed ? 'covered' : 'not covered'}
            />
            <code>{part.name}</code>
          </li>
        ))}
      </ul>
      {verdict.verdict === 'holds' && (
        <p class="dim">
          {open.length === 0
            ? 'The signature covers the whole trace.'
            : 'Parts that are not covered may have been changed in transit. Component times and contents are covered.'}
        </p>
      )}
      <dl class="trace-facts">
        {verdict.key_id && (
          <>
            <dt>key</dt>
            <dd class="mono">
              <Digest text={verdict.key_id} what="Key" />
            </dd>
          </>
        )}
        {verdict.form && (
          <>
            <dt>form</dt>
            <dd>
              <strong class="mono">{verdict.form}</strong>{' '}
              <span class="dim">{FORMS[verdict.form]}</span>
            </dd>
          </>
        )}
        {verdict.numbers && (
          <>
            <dt>numbers</dt>
            <dd>{verdict.numbers === 'same' ? 'single form' : `numbers as ${verdict.numbers}`}</dd>
          </>
        )}
        {verdict.canonical_sha256 && (
          <>
            <dt>SHA-256</dt>
            <dd>
              <Hash text={verdict.canonical_sha256} what="Digest" />{' '}
              <span class="dim">{`of ${count(verdict.canonical_len ?? 0)} signed bytes`}</span>
            </dd>
          </>
        )}
        {verdict.pqc && (
          <>
            <dt>ML-DSA-65</dt>
            <dd>{verdict.pqc.replace('_', ' ')}</dd>
          </>
        )}
        {verdict.warnings.length > 0 && (
          <>
            <dt>warnings</dt>
            <dd>
              {verdict.warnings.map((one) => (
                <Badge key={one} tone="warn">
                  <Text text={one} most={60} />
                </Badge>
              ))}
            </dd>
          </>
        )}
      </dl>
    </Panel>
  );
}

const IDMA_WORDS: Record<Idma['check'], string> = {
  consistent: 'k_eff matches its inputs.',
  mismatch: 'k_eff does not match its inputs.',
  indeterminate: 'Some inputs are not available at this level.',
};

export function IdmaPanel({components, row}: {components: readonly Component[]; row: Row | null}) {
  const idma = idmaOf(components);
  if (!idma) return null;
  const tone: Tone =
    idma.check === 'consistent' ? 'good' : idma.check === 'mismatch' ? 'bad' : 'plain';
  return (
    <Panel title="Independence (IDMA)" mark={<Badge tone={tone}>{idma.check}</Badge>}>
      <p class="trace-formula mono">
        {idma.computed === null ? (
          'k / (1 + \u03c1(k \u2212 1))'
        ) : (
          <>
            {`${idma.sources} / (1 + ${idma.risk!.text.slice(0, 8)} \u00b7 ${Math.max(0, idma.sources! - 1)}) = `}
            <strong>{idma.computed.toFixed(3)}</strong>
          </>
        )}
      </p>
      <p class="dim">{IDMA_WORDS[idma.check]}</p>
      <dl class="trace-facts">
        <dt>k_eff stated</dt>
        <dd class="mono">{idma.stated?.text.slice(0, 20) ?? '\u2013'}</dd>
        {(idma.phase || row?.idma.phase_computed) && (
          <>
            <dt>phase</dt>
            <dd>
              {idma.phase ? <Text text={idma.phase} most={40} /> : '\u2013'}
              {row?.idma.phase_computed && (
                <span class="dim">{` (computed: ${row.idma.phase_computed})`}</span>
              )}
            </dd>
          </>
        )}
        {idma.flag !== undefined && (
          <>
            <dt>fragile</dt>
            <dd>
              {idma.flag ? 'yes (stated)' : 'no (stated)'}
              {idma.stated && idma.flag !== idma.stated.value < 2 && (
                <Badge tone="warn">contradicts k_eff</Badge>
              )}
            </dd>
          </>
        )}
      </dl>
    </Panel>
  );
}

function ChainEntry({row, here}: {row: Row | null; here?: boolean}) {
  if (!row) return <li class="trace-link dim">{'\u2013'}</li>;
  return (
    <li class={`trace-link ${here ? 'trace-here' : ''}`}>
      <span class="mono">{row.audit.seq === null ? '?' : `#${row.audit.seq}`}</span>
      {here ? (
        <strong>this trace</strong>
      ) : (
        <a href={linkTo('trace', row.trace_id, {agent: row.agent_id_hash})}>
          <Line text={row.selected_action ?? row.trace_id} most={40} />
        </a>
      )}
      <span class="mono dim" title={row.audit.hash ? plain(row.audit.hash) : undefined}>
        {row.audit.hash && <Line text={shortId(row.audit.hash)} most={30} />}
      </span>
    </li>
  );
}

export function ChainPanel({
  agent,
  traceId,
  around,
}: {
  agent: string;
  traceId: string;
  around: Around | null;
}) {
  const of = useAnswer<Chain>(`/api/v1/covenant/chain/${encodeURIComponent(agent)}`);
  const seq = around?.row.audit.seq ?? undefined;
  return (
    <Panel
      title="Audit chain"
      mark={of.value && <Badge tone={TONES[of.value.verdict]}>{of.value.verdict}</Badge>}
    >
      {around && (
        <ol class="trace-chain">
          <ChainEntry row={around.previous} />
          <ChainEntry row={around.row} here />
          <ChainEntry row={around.next} />
        </ol>
      )}
      <Answer of={of} what="Checking the chain">
        {(chain) => {
          const own = chain.findings.filter((one) => concerns(one, seq, traceId));
          const others = chain.findings.filter((one) => !own.includes(one) && one.kind !== 'empty');
          return (
            <>
              {own.map((one, i) => (
                <p key={i} class="trace-wrong">
                  <Icon name="warn" /> Here: <Text text={findingWords(one)} most={200} />
                </p>
              ))}
              {chain.profile === 'agent' && (
                <p class="dim">
                  This agent hashes data that is not in its traces, so the links cannot be
                  recomputed; only sequence numbers are checked.
                </p>
              )}
              <p class="dim">{`${count(chain.entries)} entries, ${others.length === 0 ? (own.length === 0 ? 'no findings' : 'no other findings') : `${others.length} findings in other traces`}`}</p>
              <ul>
                {others.slice(0, 5).map((one, i) => (
                  <li key={i}>
                    {one.trace_ids?.[0] ? (
                      <a href={linkTo('trace', one.trace_ids[0], {agent})}>
                        <Text text={findingWords(one)} most={200} />
                      </a>
                    ) : (
                      <Text text={findingWords(one)} most={200} />
                    )}
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Answer>
    </Panel>
  );
}

export function LedgerPanel({answer}: {answer: TraceAnswer}) {
  const {entry, proof, conflicts} = answer;
  return (
    <Panel
      title="Ledger entry"
      mark={<Badge tone="good" icon="lock">{`entry ${entry.seq}`}</Badge>}
    >
      <p class="dim">
        {`Entry ${count(entry.seq)} of ${count(proof.journal_size)} in the journal of `}
        <span class="mono">
          <Line text={shortAgent(entry.actor)} most={50} />
        </span>
      </p>
      <dl class="trace-facts">
        <dt>received</dt>
        <dd>
          {when(entry.received_at)} <span class="dim">{entry.capture}</span>
        </dd>
        <dt>content</dt>
        <dd>
          <Hash text={entry.content_sha256} what="Digest" />
        </dd>
        <dt>leaf</dt>
        <dd>
          <Hash text={proof.leaf} what="Leaf" />
        </dd>
        <dt>root</dt>
        <dd>
          <Hash text={proof.journal_root} what="Root" />
        </dd>
      </dl>
      <p>
        <a
          href={linkTo('evidence', '', {actor: entry.actor, what: 'entry', seq: String(entry.seq)})}
        >
          Recompute the inclusion proof
        </a>
      </p>
      {conflicts.length > 0 && (
        <div class="trace-wrong">
          <p>
            <Icon name="warn" />{' '}
            {conflicts.length === 1
              ? 'Another trace arrived'
              : `${conflicts.length} other traces arrived`}{' '}
            with this id. The first one counts; later ones are stored as evidence.
          </p>
          <ul>
            {conflicts.map((one) => (
              <li key={one.seq}>
                <a
                  href={linkTo('evidence', '', {
                    actor: one.actor,
                    what: 'entry',
                    seq: String(one.seq),
                  })}
                >{`entry ${one.seq}`}</a>{' '}
                <Hash text={one.content_sha256} what="Digest" />{' '}
                <span class="dim">{when(one.received_at)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </Panel>
  );
}

export function ElsewherePanel({agent, around}: {agent: string; around: Around | null}) {
  const run = around?.batch?.correlation_metadata?.['run_id'];
  const node = around?.nodes.find((one) => one !== null);
  return (
    <Panel title="Related">
      <ul class="trace-around">
        <li>
          <Icon name="lanes" />{' '}
          <a href={linkTo('debugger', `agent/${agent}`, node ? {node} : {})}>
            Open in the debugger
          </a>
        </li>
        {typeof run === 'string' && (
          <li>
            <Icon name="fork" /> <a href={linkTo('run', run)}>Run that it names</a>{' '}
            <span class="dim">(stated by the batch, not signed)</span>
          </li>
        )}
        <li>
          <Icon name="shield" /> <a href={linkTo('fleet', '', {agent})}>Agent in the fleet</a>
        </li>
        {around?.batch && (
          <li>
            <Icon name="inbox" /> {`Received in a batch of ${count(around.batch.received)}`}
            {around.batch.rejected > 0 && (
              <Badge tone="warn">{`${around.batch.rejected} rejected`}</Badge>
            )}
          </li>
        )}
      </ul>
    </Panel>
  );
}
