// Vercel AI SDK: middleware of a language model. Tools are called by the SDK between two calls of the
// model: the call is in the answer of the one, the result in the prompt of the next.
import type {Recorder} from '../recorder.js';
import {errorMembers, type Json, textOf} from '../values.js';
import {
  current,
  decoded,
  first,
  guard,
  items,
  member,
  newMessages,
  put,
  Timer,
  tokensOf,
} from './common.js';

const API = {api: 'ai-sdk'};
const MAX_OPEN = 10_000; // tools whose results never came

interface Call {
  doGenerate: () => PromiseLike<unknown>;
  doStream: () => PromiseLike<unknown>;
  params: unknown;
  model: unknown;
}

/** A `LanguageModelMiddleware`. Its types are those of whatever release of the AI SDK takes it. */
export interface AiMiddleware {
  readonly specificationVersion: 'v3';
  // biome-ignore lint/suspicious/noExplicitAny: the types belong to a package that is not required.
  wrapGenerate(call: any): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  wrapStream(call: any): Promise<any>;
}

/** `wrapLanguageModel({model, middleware: aiMiddleware()})` */
export function aiMiddleware(cx: Recorder = current()): AiMiddleware {
  const tools = new Map<string, {name: string; input: unknown; timer: Timer}>();
  return {
    specificationVersion: 'v3',
    async wrapGenerate(call: Call): Promise<unknown> {
      const reader = new ModelCall(cx, call, tools);
      let result: unknown;
      try {
        result = await call.doGenerate();
      } catch (error) {
        reader.finish(error);
        throw error;
      }
      guard(cx, () => reader.take(result));
      reader.finish();
      return result;
    },
    async wrapStream(call: Call): Promise<unknown> {
      const reader = new ModelCall(cx, call, tools);
      let result: {stream: ReadableStream<unknown>};
      try {
        result = (await call.doStream()) as typeof result;
      } catch (error) {
        reader.finish(error);
        throw error;
      }
      return {...result, stream: recordedStream(result.stream, cx, reader)};
    },
  };
}

function recordedStream(
  stream: ReadableStream<unknown>,
  cx: Recorder,
  reader: ModelCall,
): ReadableStream<unknown> {
  const source = stream.getReader();
  return new ReadableStream<unknown>(
    {
      async pull(out) {
        let next: Awaited<ReturnType<typeof source.read>>;
        try {
          next = await source.read();
        } catch (error) {
          reader.finish(error);
          out.error(error);
          return;
        }
        if (next.done) {
          reader.finish();
          out.close();
          return;
        }
        const part = next.value;
        guard(cx, () => reader.see(part));
        out.enqueue(part);
      },
      async cancel(reason) {
        reader.finish(); // the program reads no further
        await source.cancel(reason);
      },
    },
    {highWaterMark: 0},
  );
}

class ModelCall {
  private readonly timer = new Timer();
  private text = '';
  private thinking = '';
  private calls: Json[] = [];
  private model: unknown;
  private id: unknown;
  private usage: unknown;
  private stop: unknown;
  private error: unknown;
  private done = false;

  constructor(
    private readonly cx: Recorder,
    private readonly call: Call,
    private readonly tools: Map<string, {name: string; input: unknown; timer: Timer}>,
  ) {
    this.model = member(call.model, 'modelId');
    guard(cx, () => this.endTools());
  }

  /** The results that came with this prompt. */
  private endTools(): void {
    for (const message of items(member(this.call.params, 'prompt'))) {
      for (const part of items(member(message, 'content'))) {
        if (member(part, 'type') !== 'tool-result') continue;
        const id = String(member(part, 'toolCallId'));
        const tool = this.tools.get(id);
        if (!tool) continue;
        this.tools.delete(id);
        const output = member(part, 'output');
        const value = member(output, 'value') ?? output;
        const failed = String(member(output, 'type') ?? '').startsWith('error');
        this.cx.endCall(tool.name, id, {
          ...API,
          result: failed ? undefined : value,
          error: failed
            ? {message: typeof value === 'string' ? value : JSON.stringify(value)}
            : undefined,
          arguments: tool.input,
          duration_ns: tool.timer.ns,
        });
      }
    }
  }

  take(result: unknown): void {
    for (const part of items(member(result, 'content'))) this.addPart(part);
    this.usage = member(result, 'usage');
    this.stop = member(result, 'finishReason');
    this.model = member(result, 'response', 'modelId') ?? this.model;
    this.id = member(result, 'response', 'id');
  }

  private addPart(part: unknown): void {
    const kind = member(part, 'type');
    if (kind === 'text') this.text += String(member(part, 'text') ?? '');
    else if (kind === 'reasoning') this.thinking += String(member(part, 'text') ?? '');
    else if (kind === 'tool-call') {
      this.calls.push({
        call_id: member(part, 'toolCallId'),
        tool: member(part, 'toolName'),
        arguments: decoded(first(part, 'input', 'args')),
      });
    }
  }

  see(part: unknown): void {
    const kind = member(part, 'type');
    const delta = String(first(part, 'delta', 'textDelta') ?? '');
    if (kind === 'text-delta') this.text += delta;
    else if (kind === 'reasoning-delta') this.thinking += delta;
    else if (kind === 'tool-call') this.addPart(part);
    else if (kind === 'error') this.error = member(part, 'error') ?? 'the stream failed';
    else if (kind === 'response-metadata') {
      this.model = member(part, 'modelId') ?? this.model;
      this.id = member(part, 'id') ?? this.id;
    } else if (kind === 'finish') {
      this.usage = member(part, 'usage');
      this.stop = member(part, 'finishReason');
    }
  }

  finish(error: unknown = this.error): void {
    if (this.done) return;
    this.done = true;
    guard(this.cx, () => this.record(error));
  }

  private record(error: unknown): void {
    const event: Json = {kind: 'message', role: 'assistant', ...API, duration_ns: this.timer.ns};
    put(event, {
      text: this.text,
      thinking: this.thinking,
      model: this.model,
      provider: member(this.call.model, 'provider'),
      stop: textOf(this.stop) ?? member(this.stop, 'unified'),
      tokens: tokensOf(this.usage),
      tool_calls: this.calls,
      input: newMessages(member(this.call.params, 'prompt')),
      message_id: this.id,
    });
    if (error !== undefined) Object.assign(event, {kind: 'error'}, errorMembers(error));
    this.cx.record(event);
    for (const call of this.calls) {
      if (this.tools.size >= MAX_OPEN) this.tools.delete(this.tools.keys().next().value!);
      const [id, name] = [String(call.call_id), String(call.tool)];
      this.tools.set(id, {name, input: call.arguments, timer: new Timer()});
      this.cx.beginCall(name, id, call.arguments, API);
    }
  }
}
