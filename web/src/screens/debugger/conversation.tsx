// conversation.tsx - a history as it is read: messages, calls with what they were given and what
// came back, edits as differences; it loads as it is looked at.

import {signal} from '@preact/signals';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import {get} from '../../base/api';
import type {ViewSteps} from '../../base/api-types';
import {bytes, clock, count, duration, plural, shortAgent, time} from '../../base/format';
import {fileOf} from '../../base/editor';
import {adjust, route} from '../../base/router';
import {session} from '../../base/session';
import {Badge} from '../../ui/badge';
import {FileLink} from '../../ui/file_link';
import {Empty, Failed, Loading} from '../../ui/states';
import {Line, Text} from '../../ui/text';
import type {Reached} from './marks';
import type {Model} from './model';
import {SaidBar} from './said';
import {
  argumentsOf,
  callSummary,
  type DiffLine,
  divided,
  editOf,
  kindWords,
  type StepText,
  type ViewStep,
} from './talk';

const PAGE = 60;

class Steps {
  readonly list = signal<readonly ViewStep[] | null>(null);
  readonly error = signal<Error | null>(null);
  readonly next = signal<number | null>(null);
  readonly first = signal(0);
  private isLoading = false;
  private readonly abort = new AbortController();

  constructor(private readonly path: string) {}

  close(): void {
    this.abort.abort();
  }

  private async page(query: Record<string, string | number>): Promise<ViewSteps | null> {
    if (this.isLoading) return null;
    this.isLoading = true;
    try {
      return await get<ViewSteps>(`${this.path}/steps`, {max: PAGE, ...query}, this.abort.signal);
    } catch (error) {
      if (!this.abort.signal.aborted) this.error.value = error as Error;
      return null;
    } finally {
      this.isLoading = false;
    }
  }

  /** From a node's surroundings on, or from the beginning. */
  async begin(node: string | null): Promise<void> {
    const page = await this.page(node ? {node} : {from: 0});
    if (!page) return;
    this.list.value = page.steps;
    this.first.value = page.from;
    this.next.value = page.next;
    const first = page.steps[0];
    if (!node && first) adjust({node: '#' + first.n}, false);
  }

  async more(): Promise<void> {
    if (this.next.value === null) return;
    const page = await this.page({from: this.next.value});
    if (!page) return;
    this.list.value = [...(this.list.value ?? []), ...page.steps];
    this.next.value = page.next;
  }

  async earlier(): Promise<void> {
    const from = Math.max(0, this.first.value - PAGE);
    const page = await this.page({from, max: this.first.value - from});
    if (!page) return;
    const known = new Set(this.list.value?.map((step) => step.n));
    this.list.value = [
      ...page.steps.filter((step) => step.at < this.first.value && !known.has(step.n)),
      ...(this.list.value ?? []),
    ];
    this.first.value = from;
  }
}

export function Conversation({model}: {model: Model}) {
  const steps = useMemo(() => new Steps(model.path), [model]);
  useEffect(() => () => steps.close(), [steps]);
  const at = model.detail.value;
  const wanted = route.value.query['node'] ?? null;
  const isThere = at && steps.list.value?.some((step) => step.n === at.n);
  useEffect(() => {
    if (steps.list.value === null) void steps.begin(wanted);
    else if (at && !isThere) void steps.begin('#' + at.n);
  }, [wanted, at?.n]);
  const now = useRef<HTMLElement>(null);
  useEffect(() => now.current?.scrollIntoView({block: 'nearest'}), [at?.n, isThere]);
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!end.current) return undefined;
    const watcher = new IntersectionObserver((seen) => {
      if (seen.some((one) => one.isIntersecting)) void steps.more();
    });
    watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [steps, steps.list.value]);
  if (steps.error.value)
    return <Failed error={steps.error.value} again={() => location.reload()} />;
  const list = steps.list.value;
  if (!list) return <Loading what="Loading the conversation" />;
  if (list.length === 0)
    return (
      <Empty title="Nothing was said">The records of this history hold no text to read.</Empty>
    );
  return (
    <>
      <SaidBar model={model} />
      <div class="talk" role="feed" aria-label="Conversation">
        {steps.first.value > 0 && (
          <button type="button" class="talk-more" onClick={() => void steps.earlier()}>
            Show earlier steps
          </button>
        )}
        {steps.first.value === 0 && model.part !== null && model.part.from > 0 && (
          <button type="button" class="talk-more" onClick={() => void model.goPart(false)}>
            Show the part before
          </button>
        )}
        {list.map((step) => (
          <Step
            key={step.n}
            step={step}
            path={model.path}
            isNow={step.n === at?.n}
            reached={model.reached.value.get(step.n)}
            refNow={step.n === at?.n ? now : undefined}
            select={() => model.select(step.n)}
          />
        ))}
        {steps.next.value !== null && (
          <div ref={end} class="talk-more dim" role="status">
            {'Loading more\u2026'}
          </div>
        )}
        {steps.next.value === null && model.hasLater && (
          <button type="button" class="talk-more" onClick={() => void model.goPart(true)}>
            Show the part after
          </button>
        )}
      </div>
    </>
  );
}

/** As pictures what is one of four kinds by its own bytes; anything else is a file to save. */
function Pictures({step, path}: {step: ViewStep; path: string}) {
  const pictures = step.pictures ?? [];
  const elsewhere = (step.images ?? 0) - pictures.length;
  if (pictures.length === 0 && elsewhere <= 0) return null;
  return (
    <div class="talk-pictures">
      {pictures.map((one, i) => {
        const from = `${path}/image?node=${encodeURIComponent('#' + step.n)}&index=${i}`;
        const words = `Image ${i + 1} of ${pictures.length}, ${one.type}, ${bytes(one.size)}`;
        return one.type === 'other' ? (
          <a key={i} href={from} download={`image-${step.n}-${i}.bin`}>
            {`Save image ${i + 1}: of a kind that is not shown, ${bytes(one.size)}`}
          </a>
        ) : (
          <a key={i} href={from} target="_blank" rel="noreferrer" title={words}>
            <img src={from} alt={words} loading="lazy" decoding="async" />
          </a>
        );
      })}
      {elsewhere > 0 && (
        <span class="dim">{`${plural(elsewhere, 'image')} that the record only names`}</span>
      )}
    </div>
  );
}

function Step({
  step,
  path,
  isNow,
  reached,
  refNow,
  select,
}: {
  step: ViewStep;
  path: string;
  isNow: boolean;
  reached: Reached | undefined;
  refNow: preact.RefObject<HTMLElement> | undefined;
  select: () => void;
}) {
  const tokens = (step.tokens_input ?? 0) + (step.tokens_output ?? 0);
  const side = step.role === 'user' ? 'talk-person' : step.failed ? 'talk-error' : '';
  return (
    <article
      ref={refNow}
      data-n={step.n}
      class={`talk-step ${side} ${isNow ? 'talk-now' : ''} ${reached ? `talk-${reached}` : ''}`}
      aria-label={`${shortAgent(step.agent)}, ${kindWords(step)}${step.failed ? ', failed' : ''}`}
      aria-current={isNow ? 'true' : undefined}
    >
      <header class="talk-head">
        <span
          class="lane-mark"
          style={{background: `var(--lane-${step.lane % 8})`}}
          aria-hidden="true"
        />
        <button type="button" class="link talk-who" title="Select this event" onClick={select}>
          <Line text={shortAgent(step.agent)} most={60} />
        </button>
        <span class="dim">{kindWords(step)}</span>
        {step.failed && (
          <Badge tone="bad" icon="stop" title="e and E go to the next and previous error">
            failed
          </Badge>
        )}
        {reached === 'carries' && <Badge tone="warn">carries its text</Badge>}
        {reached === 'source' && <Badge tone="info">asked about</Badge>}
        {reached === 'follows' && <span class="dim">follows</span>}
        <span class="grow" />
        {step.model && (
          <span class="dim">
            <Line text={step.model} most={40} />
          </span>
        )}
        {tokens > 0 && (
          <span
            class="dim"
            title={`${count(step.tokens_input ?? 0)} in, ${count(step.tokens_output ?? 0)} out`}
          >{`${count(tokens)} tokens`}</span>
        )}
        {step.cost_usd ? <span class="dim">{`$${step.cost_usd.toFixed(4)}`}</span> : null}
        {step.duration_ns ? <span class="dim">{duration(step.duration_ns / 1e9)}</span> : null}
        {step.t !== null && step.t > 1e8 && (
          <span class="dim" title={time(step.t)}>
            {clock(step.t)}
          </span>
        )}
      </header>
      {(step.input?.length ?? 0) > 0 && (
        <details class="talk-part">
          <summary>{`given ${plural(step.input!.length, 'message')}`}</summary>
          {step.input!.map((one, i) => (
            <div key={i} class="talk-text">
              <span class="dim">{one.role}</span> <Said of={one.text} />
            </div>
          ))}
        </details>
      )}
      {step.thinking && (
        <details class="talk-part">
          <summary>thinking</summary>
          <div class="talk-text dim">
            <Said of={step.thinking} />
          </div>
        </details>
      )}
      {step.text && (
        <div class="talk-text">
          <Said of={step.text} />
        </div>
      )}
      {step.because && (
        <p class="talk-text dim">
          because <Said of={step.because} />
        </p>
      )}
      <Call step={step} />
      {step.calls?.map((call, i) => (
        <Call key={i} step={call} isPart />
      ))}
      {step.error && (
        <p class="talk-text talk-failed">
          <Said of={step.error} />
        </p>
      )}
      <Pictures step={step} path={path} />
      {step.data && <Data step={step} of={step.data} />}
    </article>
  );
}

/** What the step wrote; open where it has the words that were searched for. */
function Data({step, of}: {step: ViewStep; of: StepText}) {
  const text = pretty(of);
  const words = route.value.query['q'];
  const found = words !== undefined && divided(text.slice(0, 20000), words).length > 1;
  return (
    <details class="talk-part" open={found}>
      <summary>
        <Line text={step.name ?? step.event_type ?? step.component ?? 'changes'} most={80} />
      </summary>
      <pre>
        <Said of={{...of, text}} />
      </pre>
    </details>
  );
}

/** Recorded text, with the words that were searched for marked. */
function Said({of, most = 4000}: {of: StepText | undefined; most?: number}) {
  const words = route.value.query['q'];
  if (!of) return null;
  return (
    <>
      {words ? (
        divided(of.text.slice(0, 20000), words).map((piece, i) =>
          i % 2 === 1 ? <mark key={i}>{piece}</mark> : <Text key={i} text={piece} most={most} />,
        )
      ) : (
        <Text text={of.text} most={most} />
      )}
      {of.cut && <span class="dim">{` \u2026 ${count(of.size)} bytes in all: see Event`}</span>}
    </>
  );
}

type AnyCall = Pick<ViewStep, 'tool' | 'arguments' | 'result' | 'failed'>;

function Call({step, isPart = false}: {step: AnyCall; isPart?: boolean}) {
  if (!step.arguments && !step.result) return null;
  const edit = editOf(step.arguments);
  const file = fileOf(argumentsOf(step.arguments));
  // Of a relative path it is not known what it is relative to.
  const isWhole = file?.path.startsWith('/') ?? false;
  return (
    <>
      {step.arguments && (
        <details class="talk-part talk-call" open={edit !== null}>
          <summary>
            <strong>
              <Line text={step.tool ?? 'call'} most={60} />
            </strong>{' '}
            <code>
              <FileLink
                path={file?.path ?? ''}
                line={file?.line ?? null}
                root={isWhole ? session.value?.folder : null}
              >
                <Line text={edit ? edit.path : callSummary(step.arguments)} most={160} />
              </FileLink>
            </code>
          </summary>
          {edit ? (
            <Edit lines={edit.lines} />
          ) : (
            <pre>
              <Text text={pretty(step.arguments)} most={4000} />
            </pre>
          )}
        </details>
      )}
      {step.result && (
        <details class="talk-part talk-result" open={step.result.size < 600}>
          <summary>
            {step.arguments ? 'result' : `result of ${step.tool ?? 'a call'}`}{' '}
            <span class="dim">{`${count(step.result.size)} bytes`}</span>{' '}
            {isPart && step.failed && (
              <Badge tone="bad" icon="stop">
                failed
              </Badge>
            )}
          </summary>
          <pre>
            <Said of={step.result} />
          </pre>
        </details>
      )}
    </>
  );
}

function Edit({lines}: {lines: readonly DiffLine[]}) {
  return (
    <pre class="talk-diff">
      {lines.map((line, i) => (
        <div
          key={i}
          class={line.sign === '+' ? 'diff-added' : line.sign === '-' ? 'diff-removed' : ''}
        >
          {line.sign} <Text text={line.text} most={400} />
        </div>
      ))}
    </pre>
  );
}

/** JSON indented, when it is whole; else as it is. */
function pretty(of: StepText): string {
  if (of.cut || !/^[[{]/.test(of.text)) return of.text;
  try {
    return JSON.stringify(JSON.parse(of.text), null, 2);
  } catch {
    return of.text;
  }
}
