// Claude Agent SDK: the messages of `query`.
import type {Recorder} from '../recorder.js';
import {type Json, textOf} from '../values.js';
import {current, first, guard, items, member, put, recordedItems, tokensOf} from './common.js';

const API = {api: 'claude.agent'};

/** `for await (const message of watchClaude(query({prompt}))) ...`: the messages, unchanged. */
export function watchClaude<M>(
  messages: AsyncIterable<M>,
  cx: Recorder = current(),
): AsyncGenerator<M> {
  const reader = new ClaudeReader(cx);
  return recordedItems(
    messages[Symbol.asyncIterator](),
    (message) => guard(cx, () => reader.read(message)),
    (error) => {
      if (error !== undefined) cx.error(error, API);
    },
  );
}

class ClaudeReader {
  private readonly tools = new Map<string, {name: string; input: unknown}>(); // by call id

  constructor(private readonly cx: Recorder) {}

  read(message: unknown): void {
    const kind = member(message, 'type');
    if (kind === 'assistant') this.readAssistant(message);
    else if (kind === 'user') this.readUser(message);
    else if (kind === 'result') this.readResult(message);
    else if (kind === 'system' && member(message, 'subtype') === 'init') {
      const session = String(member(message, 'session_id') ?? '');
      this.cx.note(
        `session ${session}`,
        put(
          {...API},
          {
            model: member(message, 'model'),
            tools: member(message, 'tools'),
            session_id: session,
          },
        ),
      );
    }
  }

  private readAssistant(message: unknown): void {
    const answer = member(message, 'message');
    const blocks = items(member(answer, 'content'));
    const ofKind = (kind: string): unknown[] =>
      blocks.filter((block) => member(block, 'type') === kind);
    const within = member(message, 'parent_tool_use_id');
    const text = ofKind('text')
      .map((block) => member(block, 'text'))
      .filter(Boolean)
      .join('\n\n');
    const thinking = ofKind('thinking')
      .map((block) => member(block, 'thinking'))
      .filter(Boolean)
      .join('\n\n');
    if (text || thinking) {
      this.cx.record(
        put(
          {kind: 'message', role: 'assistant', ...API},
          {
            text,
            thinking,
            model: member(answer, 'model'),
            message_id: member(answer, 'id'),
            parent_call: within,
            tokens: tokensOf(member(answer, 'usage')),
          },
        ),
      );
    }
    for (const use of ofKind('tool_use')) {
      const callId = String(member(use, 'id'));
      const name = String(member(use, 'name'));
      const input = member(use, 'input');
      this.tools.set(callId, {name, input});
      this.cx.beginCall(name, callId, input, put({...API}, {parent_call: within}));
    }
  }

  private readUser(message: unknown): void {
    const content = member(message, 'message', 'content');
    const texts: unknown[] = typeof content === 'string' ? [content] : [];
    for (const block of items(content)) {
      if (member(block, 'type') === 'text') texts.push(block);
      if (member(block, 'type') !== 'tool_result') continue;
      const callId = String(member(block, 'tool_use_id'));
      const tool = this.tools.get(callId) ?? {name: 'tool', input: undefined};
      this.tools.delete(callId);
      const said = textOf(member(block, 'content')) ?? member(block, 'content');
      const failed = member(block, 'is_error') === true;
      this.cx.endCall(tool.name, callId, {
        ...API,
        result: failed ? undefined : said,
        error: failed ? {message: said} : undefined,
        arguments: tool.input,
      });
    }
    const text = textOf(texts);
    if (text) this.cx.message('user', text, API);
  }

  private readResult(message: unknown): void {
    const failed = member(message, 'is_error') === true;
    const ms = member(message, 'duration_ms');
    const said = first(message, 'result', 'subtype');
    const event: Json = {kind: failed ? 'error' : 'note', ...API};
    put(event, {
      text: said,
      cost_usd: member(message, 'total_cost_usd'),
      turns: member(message, 'num_turns'),
      session_id: member(message, 'session_id'),
      usage: tokensOf(member(message, 'usage')),
      duration_ns: typeof ms === 'number' ? Math.round(ms * 1e6) : undefined,
    });
    if (failed) event.error = textOf(member(message, 'errors')) ?? String(said ?? 'failed');
    this.cx.record(event);
  }
}
