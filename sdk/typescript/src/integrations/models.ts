// The clients of OpenAI and Anthropic: each call of a model becomes a message. Both hand out promises
// with more methods than `then` (asResponse, withResponse), and read the answer in `parseResponse`
// however it is asked for, so that is where the answer is seen.
import {UsageError} from '../errors.js';
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
  recordedItems,
  Timer,
  tokensOf,
  wrapMethod,
} from './common.js';

/** `const client = instrumentOpenAI(new OpenAI())` */
export function instrumentOpenAI<C extends object>(client: C, cx: Recorder = current()): C {
  const chat = wrapCreate(member(client, 'chat', 'completions'), cx, Chat);
  const responses = wrapCreate(member(client, 'responses'), cx, Responses);
  if (!chat && !responses) {
    throw new UsageError(
      'instrumentOpenAI: found no chat.completions.create and no responses.create; ' +
        'expected a client of the package openai',
    );
  }
  return client;
}

/** `const client = instrumentAnthropic(new Anthropic())` */
export function instrumentAnthropic<C extends object>(client: C, cx: Recorder = current()): C {
  if (!wrapCreate(member(client, 'messages'), cx, Messages)) {
    throw new UsageError(
      'instrumentAnthropic: found no messages.create; expected a client of the package @anthropic-ai/sdk',
    );
  }
  wrapCreate(member(client, 'beta', 'messages'), cx, Messages);
  return client;
}

function wrapCreate(
  owner: unknown,
  cx: Recorder,
  reader: new (request: unknown) => Reader,
): boolean {
  return wrapMethod(owner, 'create', (original) => (...args) => {
    const one = new reader(args[0]);
    const answer = original(...args);
    guard(cx, () => watchAnswer(answer, cx, one));
    return answer;
  });
}

type Parse = (...args: unknown[]) => Promise<unknown>;

function watchAnswer(answer: unknown, cx: Recorder, reader: Reader): void {
  let done = false;
  const finish = (error?: unknown): void => {
    if (done) return;
    done = true;
    guard(cx, () => cx.record(reader.event(error)));
  };
  const see = (value: unknown): void => {
    if (typeof member(value, Symbol.asyncIterator as unknown as string) === 'function') {
      watchStream(value as Json, cx, reader, finish);
      return;
    }
    guard(cx, () => reader.take(value));
    finish();
  };
  const promise = answer as {parseResponse?: Parse; responsePromise?: Promise<unknown>};
  if (typeof promise?.parseResponse === 'function') {
    const parse = promise.parseResponse.bind(promise);
    promise.parseResponse = async (...args) => {
      let value: unknown;
      try {
        value = await parse(...args);
      } catch (error) {
        finish(error);
        throw error;
      }
      see(value);
      return value;
    };
    promise.responsePromise?.then(undefined, finish);
  } else if (typeof member(answer, 'then') === 'function') {
    (answer as Promise<unknown>).then(see, finish);
  }
}

/** The stream stays the object that it is; what iterates it is seen. */
function watchStream(
  stream: Json,
  cx: Recorder,
  reader: Reader,
  finish: (error?: unknown) => void,
): void {
  const name =
    typeof stream.iterator === 'function'
      ? 'iterator'
      : (Symbol.asyncIterator as unknown as string);
  const iterate = (stream[name] as () => AsyncIterator<unknown>).bind(stream);
  stream[name] = () =>
    recordedItems(iterate(), (item) => guard(cx, () => reader.see(item)), finish);
}

abstract class Reader {
  protected readonly timer = new Timer();
  protected text = '';
  protected thinking = '';
  protected calls: Json[] = [];
  protected model: unknown;
  protected usage: unknown;
  protected stop: unknown;
  protected id: unknown;
  abstract readonly api: string;

  constructor(protected readonly request: unknown) {
    this.model = member(request, 'model');
  }

  /** A whole answer. */
  abstract take(answer: unknown): void;
  /** A part of a stream. */
  abstract see(part: unknown): void;

  protected given(): unknown {
    return member(this.request, 'messages');
  }

  event(error: unknown): Json {
    const event: Json = {
      kind: 'message',
      role: 'assistant',
      api: this.api,
      duration_ns: this.timer.ns,
    };
    put(event, {
      text: this.text,
      thinking: this.thinking,
      model: this.model,
      stop: this.stop,
      tokens: tokensOf(this.usage),
      tool_calls: this.calls.map((call) => ({...call, arguments: decoded(call.arguments)})),
      input: newMessages(this.given()),
      message_id: this.id,
    });
    if (error !== undefined) Object.assign(event, {kind: 'error'}, errorMembers(error));
    return event;
  }
}

class Chat extends Reader {
  readonly api = 'openai.chat.completions';

  take(answer: unknown): void {
    this.model = member(answer, 'model') ?? this.model;
    this.usage = member(answer, 'usage');
    this.id = member(answer, 'id');
    const choice = items(member(answer, 'choices'))[0];
    const message = member(choice, 'message');
    this.stop = member(choice, 'finish_reason');
    this.text = textOf(first(message, 'content', 'refusal')) ?? '';
    this.calls = items(member(message, 'tool_calls')).map((call) => ({
      call_id: member(call, 'id'),
      tool: first(member(call, 'function') ?? member(call, 'custom'), 'name'),
      arguments: member(call, 'function', 'arguments') ?? member(call, 'custom', 'input'),
    }));
  }

  see(part: unknown): void {
    this.model = member(part, 'model') ?? this.model;
    this.usage = member(part, 'usage') ?? this.usage;
    this.id = member(part, 'id') ?? this.id;
    const choice = items(member(part, 'choices')).find((one) => (member(one, 'index') ?? 0) === 0);
    this.stop = member(choice, 'finish_reason') ?? this.stop;
    this.text += textOf(member(choice, 'delta', 'content')) ?? '';
    for (const call of items(member(choice, 'delta', 'tool_calls'))) {
      const at = Math.min(Number(member(call, 'index') ?? 0), 255);
      while (this.calls.length <= at) this.calls.push({call_id: null, tool: '', arguments: ''});
      const one = this.calls[at]!;
      one.call_id = member(call, 'id') ?? one.call_id;
      one.tool = String(one.tool) + String(member(call, 'function', 'name') ?? '');
      one.arguments = String(one.arguments) + String(member(call, 'function', 'arguments') ?? '');
    }
  }
}

class Responses extends Reader {
  readonly api = 'openai.responses';

  protected override given(): unknown {
    return member(this.request, 'input');
  }

  take(answer: unknown): void {
    this.model = member(answer, 'model') ?? this.model;
    this.usage = member(answer, 'usage');
    this.id = member(answer, 'id');
    this.stop = member(answer, 'status');
    this.text = '';
    for (const item of items(member(answer, 'output'))) {
      const kind = member(item, 'type');
      if (kind === 'message') {
        this.text += textOf(member(item, 'content')) ?? '';
      } else if (kind === 'reasoning') {
        this.thinking += textOf(member(item, 'summary')) ?? '';
      } else if (kind === 'function_call' || kind === 'custom_tool_call' || kind === 'mcp_call') {
        this.calls.push({
          call_id: first(item, 'call_id', 'id'),
          tool: member(item, 'name'),
          arguments: first(item, 'arguments', 'input'),
        });
      }
    }
  }

  see(part: unknown): void {
    const kind = member(part, 'type');
    if (
      kind === 'response.completed' ||
      kind === 'response.failed' ||
      kind === 'response.incomplete'
    ) {
      this.take(member(part, 'response'));
    } else if (kind === 'response.output_text.delta') {
      this.text += String(member(part, 'delta') ?? '');
    }
  }
}

class Messages extends Reader {
  readonly api = 'anthropic.messages';
  private readonly blocks: Json[] = []; // of a stream

  take(answer: unknown): void {
    this.model = member(answer, 'model') ?? this.model;
    this.usage = member(answer, 'usage');
    this.id = member(answer, 'id');
    this.stop = member(answer, 'stop_reason');
    const texts: string[] = [];
    const thoughts: string[] = [];
    for (const block of items(member(answer, 'content'))) {
      const kind = member(block, 'type');
      if (kind === 'text') texts.push(String(member(block, 'text') ?? ''));
      else if (kind === 'thinking') thoughts.push(String(member(block, 'thinking') ?? ''));
      else if (kind === 'tool_use' || kind === 'server_tool_use') {
        this.calls.push({
          call_id: member(block, 'id'),
          tool: member(block, 'name'),
          arguments: member(block, 'input'),
        });
      }
    }
    this.text = texts.join('\n\n');
    this.thinking = thoughts.join('\n\n');
  }

  see(part: unknown): void {
    const kind = member(part, 'type');
    if (kind === 'message_start') {
      const message = member(part, 'message');
      this.model = member(message, 'model') ?? this.model;
      this.id = member(message, 'id');
      this.usage = {...(member(message, 'usage') as Json | undefined)};
    } else if (kind === 'content_block_start') {
      const at = Math.min(Number(member(part, 'index') ?? 0), 1023);
      this.blocks[at] = {...(member(part, 'content_block') as Json | undefined)};
    } else if (kind === 'content_block_delta') {
      this.seeDelta(this.blocks[Number(member(part, 'index') ?? 0)], member(part, 'delta'));
    } else if (kind === 'message_delta') {
      this.stop = member(part, 'delta', 'stop_reason') ?? this.stop;
      this.usage = {...(this.usage as Json | undefined), ...known(member(part, 'usage'))};
    }
  }

  private seeDelta(block: Json | undefined, delta: unknown): void {
    if (!block) return;
    const json = member(delta, 'partial_json');
    if (json !== undefined) {
      block.json = String(block.json ?? '') + String(json);
      block.input = decoded(block.json);
    }
    for (const name of ['text', 'thinking']) {
      const more = member(delta, name);
      if (more !== undefined) block[name] = String(block[name] ?? '') + String(more);
    }
  }

  override event(error: unknown): Json {
    if (this.blocks.length > 0) {
      this.take({
        model: this.model,
        usage: this.usage,
        id: this.id,
        stop_reason: this.stop,
        content: this.blocks.filter((block) => block),
      });
    }
    return super.event(error);
  }
}

/** The members that are numbers: a delta repeats the others as null. */
function known(usage: unknown): Json {
  if (typeof usage !== 'object' || usage === null) return {};
  return Object.fromEntries(Object.entries(usage).filter(([, value]) => typeof value === 'number'));
}
