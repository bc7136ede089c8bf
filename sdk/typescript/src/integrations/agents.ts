// OpenAI Agents SDK: a trace processor.
import type {Recorder} from '../recorder.js';
import {type Json, textOf} from '../values.js';
import {
  current,
  decoded,
  first,
  guard,
  items,
  member,
  newMessages,
  put,
  tokensOf,
} from './common.js';

const API = 'openai.agents';
const MAX_OPEN = 10_000; // spans that never ended

/** The methods of `TracingProcessor` of @openai/agents. */
export interface AgentsProcessor {
  onTraceStart(trace: unknown): Promise<void>;
  onTraceEnd(trace: unknown): Promise<void>;
  onSpanStart(span: unknown): Promise<void>;
  onSpanEnd(span: unknown): Promise<void>;
  shutdown(timeout?: number): Promise<void>;
  forceFlush(): Promise<void>;
}

/** `addTraceProcessor(agentsProcessor())`: models, tools, handoffs and guardrails become steps. */
export function agentsProcessor(cx: Recorder = current()): AgentsProcessor {
  const reader = new AgentsReader(cx);
  const flush = async (): Promise<void> => {
    await cx.flush(5000).then(undefined, () => undefined); // it stays in the spool
  };
  return {
    async onTraceStart(trace) {
      guard(cx, () => reader.startTrace(trace));
    },
    async onTraceEnd() {},
    async onSpanStart(span) {
      guard(cx, () => reader.startSpan(span));
    },
    async onSpanEnd(span) {
      guard(cx, () => reader.endSpan(span));
    },
    shutdown: flush,
    forceFlush: flush,
  };
}

interface Open {
  name: string | undefined; // of an agent
  parent: string | undefined;
  called: boolean; // a tool that was begun
}

class AgentsReader {
  private readonly open = new Map<string, Open>();

  constructor(private readonly cx: Recorder) {}

  startTrace(trace: unknown): void {
    const name = String(member(trace, 'name') ?? '');
    this.cx.note(`run ${name}`.trim(), put({api: API}, {trace_id: member(trace, 'traceId')}));
  }

  startSpan(span: unknown): void {
    const data = member(span, 'spanData');
    const id = String(member(span, 'spanId'));
    const parent = member(span, 'parentId');
    if (this.open.size >= MAX_OPEN) this.open.delete(this.open.keys().next().value!);
    const entry: Open = {
      name: member(data, 'type') === 'agent' ? String(member(data, 'name')) : undefined,
      parent: parent === undefined ? undefined : String(parent),
      called: false,
    };
    this.open.set(id, entry);
    const input = member(data, 'input');
    if (member(data, 'type') === 'function' && input !== undefined && input !== '') {
      entry.called = true;
      this.cx.beginCall(String(member(data, 'name')), id, decoded(input), this.about(span));
    }
  }

  /** The agent within the framework: the nearest span around that is an agent's. */
  private agentOf(span: unknown): string | undefined {
    let id = member(span, 'parentId');
    for (let depth = 0; id !== undefined && depth < 64; depth++) {
      const entry = this.open.get(String(id));
      if (entry?.name !== undefined) return entry.name;
      id = entry?.parent;
    }
    return undefined;
  }

  private about(span: unknown): Json {
    const begin = Date.parse(String(member(span, 'startedAt')));
    const end = Date.parse(String(member(span, 'endedAt')));
    return put(
      {api: API},
      {
        by: this.agentOf(span),
        duration_ns: Number.isFinite(end - begin) ? (end - begin) * 1_000_000 : undefined,
      },
    );
  }

  endSpan(span: unknown): void {
    const data = member(span, 'spanData');
    const id = String(member(span, 'spanId'));
    const kind = member(data, 'type');
    const error = member(span, 'error');
    const about = this.about(span);
    const said: Json = {...about, kind: 'message', role: 'assistant'};
    const entry = this.open.get(id);
    this.open.delete(id);
    switch (kind) {
      case 'function': {
        const tool = String(member(data, 'name'));
        const args = decoded(member(data, 'input'));
        // The input is known when the span ends, where it was not when it began.
        if (!entry?.called) this.cx.beginCall(tool, id, args, put({api: API}, {by: about.by}));
        this.cx.endCall(tool, id, {
          ...about,
          result: decoded(member(data, 'output')),
          error,
          arguments: args,
        });
        break;
      }
      case 'generation':
        this.cx.record(
          put(said, {
            error,
            text: generatedText(member(data, 'output')),
            model: member(data, 'model'),
            tokens: tokensOf(member(data, 'usage')),
            input: newMessages(member(data, 'input')),
          }),
        );
        break;
      case 'response':
        this.recordResponse(data, said, error);
        break;
      case 'handoff': {
        const to = String(member(data, 'to_agent'));
        this.cx.handoff(
          to,
          `${String(member(data, 'from_agent'))} to ${to}`,
          put({...about}, {error}),
        );
        break;
      }
      case 'guardrail': {
        const name = String(member(data, 'name'));
        const verdict = member(data, 'triggered') === true ? 'refused' : 'allowed';
        const text = `guardrail ${name}: ${verdict}`;
        this.cx.record(put({...about, kind: 'decision', gate: name, verdict, text}, {error}));
        break;
      }
      default:
        if (error !== undefined) {
          const text = String(member(data, 'name') ?? kind);
          this.cx.record({...about, kind: 'error', text, error});
        } else if (kind === 'custom') {
          const text = String(member(data, 'name') ?? kind);
          this.cx.record(put({...about, kind: 'note', text}, {data: member(data, 'data')}));
        }
    }
  }

  private recordResponse(data: unknown, event: Json, error: unknown): void {
    const response = first(data, '_response', 'response');
    const output = items(member(response, 'output'));
    const texts = output
      .filter((item) => member(item, 'type') === 'message')
      .map((item) => textOf(member(item, 'content')) ?? '');
    const calls = output
      .filter((item) => member(item, 'type') === 'function_call')
      .map((item) => ({
        call_id: first(item, 'call_id', 'callId', 'id'),
        tool: member(item, 'name'),
        arguments: decoded(member(item, 'arguments')),
      }));
    this.cx.record(
      put(event, {
        error,
        text: texts.join('\n\n'),
        model: member(response, 'model'),
        tokens: tokensOf(member(response, 'usage')),
        tool_calls: calls,
        input: newMessages(first(data, '_input', 'input')),
        message_id: first(data, 'response_id') ?? member(response, 'id'),
      }),
    );
  }
}

/** Chat completions come as they are: their text is in `choices`. */
function generatedText(output: unknown): string | undefined {
  const found = items(output)[0];
  const message = member(items(member(found, 'choices'))[0], 'message');
  return textOf(member(message, 'content')) ?? textOf(output);
}
