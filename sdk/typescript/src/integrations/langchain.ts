// LangChain and LangGraph: a callback handler.
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
  Timer,
  tokensOf,
} from './common.js';

const MAX_OPEN = 10_000; // runs that never ended

interface Run extends Json {
  timer: Timer;
}

/**
 * `{callbacks: [langchainHandler()]}`: models, tools, retrievers and the nodes of a graph become steps.
 * LangChain makes a handler of any object with these methods.
 */
export function langchainHandler(cx: Recorder = current()): LangchainHandler {
  return handlerOf(new Runs(cx));
}

export interface LangchainHandler {
  awaitHandlers: boolean;
  handleChatModelStart(...args: unknown[]): void;
  handleLLMStart(...args: unknown[]): void;
  handleLLMEnd(...args: unknown[]): void;
  handleLLMError(...args: unknown[]): void;
  handleToolStart(...args: unknown[]): void;
  handleToolEnd(...args: unknown[]): void;
  handleToolError(...args: unknown[]): void;
  handleRetrieverStart(...args: unknown[]): void;
  handleRetrieverEnd(...args: unknown[]): void;
  handleRetrieverError(...args: unknown[]): void;
  handleChainStart(...args: unknown[]): void;
  handleChainEnd(...args: unknown[]): void;
  handleChainError(...args: unknown[]): void;
}

function handlerOf(runs: Runs): LangchainHandler {
  const guarded =
    (read: (...args: unknown[]) => void) =>
    (...args: unknown[]): void =>
      guard(runs.cx, () => read(...args));
  const failed = guarded((error, id) => runs.fail(error, id));
  return {
    awaitHandlers: true, // in order, also where runs are concurrent
    handleChatModelStart: guarded((_model, messages, id, _parent, extra, _tags, metadata) =>
      runs.begin(id, {input: newMessages(items(messages)[0]), model: modelOf(extra, metadata)}),
    ),
    handleLLMStart: guarded((_model, prompts, id, _parent, extra, _tags, metadata) =>
      runs.begin(id, {
        input: items(prompts).map((prompt) => ({role: 'user', text: String(prompt)})),
        model: modelOf(extra, metadata),
      }),
    ),
    handleLLMEnd: guarded((output, id) => runs.endModel(output, runs.end(id))),
    handleLLMError: failed,
    handleToolStart: guarded((tool, input, id, _parent, _tags, _metadata, name) =>
      runs.beginTool(tool, input, String(id), name),
    ),
    handleToolEnd: guarded((output, id) => {
      const result = member(output, 'content') ?? output;
      runs.endTool(String(id), {result});
    }),
    handleToolError: guarded((error, id) => runs.endTool(String(id), {error})),
    handleRetrieverStart: guarded((_retriever, query, id) => runs.begin(id, {query})),
    handleRetrieverEnd: guarded((documents, id) => {
      const run = runs.end(id);
      const members = {kind: 'observation' as const, query: run.query, duration_ns: run.timer.ns};
      const step = runs.cx.beginStep('retrieve', members);
      for (const document of items(documents).slice(0, 100)) step.saw(document);
      step.end();
    }),
    handleRetrieverError: failed,
    handleChainStart: guarded((chain, _inputs, id, parent, _tags, metadata, _type, name) => {
      const node = member(metadata, 'langgraph_node');
      const found = name ?? member(chain, 'name') ?? items(member(chain, 'id')).slice(-1)[0];
      const isNode = node !== undefined && found === node;
      runs.begin(
        id,
        put({root: parent === undefined}, {name: found, node: isNode ? node : undefined}),
      );
    }),
    handleChainEnd: guarded((outputs, id) => {
      const run = runs.end(id);
      if (run.node === undefined) return;
      runs.cx.record({
        kind: 'decision',
        name: run.node,
        text: `node ${String(run.node)}`,
        result: outputs,
        api: 'langgraph',
        duration_ns: run.timer.ns,
      });
    }),
    handleChainError: guarded((error, id) => {
      const run = runs.end(id);
      if (run.node !== undefined || run.root === true) runs.recordError(error, run);
    }),
  };
}

/** The runs that are open, by their ids. */
class Runs {
  private readonly open = new Map<string, Run>();

  constructor(readonly cx: Recorder) {}

  begin(id: unknown, about: Json): void {
    if (this.open.size >= MAX_OPEN) this.open.delete(this.open.keys().next().value!);
    this.open.set(String(id), {...about, timer: new Timer()});
  }

  end(id: unknown): Run {
    const found = this.open.get(String(id)) ?? {timer: new Timer()};
    this.open.delete(String(id));
    return found;
  }

  fail(error: unknown, id: unknown): void {
    this.recordError(error, this.end(id));
  }

  recordError(error: unknown, run: Run): void {
    this.cx.error(
      error,
      put(
        {api: 'langchain', duration_ns: run.timer.ns},
        {
          input: run.input,
          model: run.model,
          name: run.name,
        },
      ),
    );
  }

  endModel(output: unknown, run: Run): void {
    const generation = items(items(member(output, 'generations'))[0])[0];
    const message = member(generation, 'message');
    const llm = member(output, 'llmOutput');
    const usage =
      member(message, 'usage_metadata') ?? first(llm, 'tokenUsage', 'token_usage', 'usage');
    const calls = items(member(message, 'tool_calls')).map((call) => ({
      call_id: member(call, 'id'),
      tool: member(call, 'name'),
      arguments: member(call, 'args'),
    }));
    const event: Json = {
      kind: 'message',
      role: 'assistant',
      api: 'langchain',
      duration_ns: run.timer.ns,
    };
    this.cx.record(
      put(event, {
        text: textOf(member(message, 'content')) || textOf(member(generation, 'text')),
        model:
          member(message, 'response_metadata', 'model_name') ??
          member(message, 'response_metadata', 'model') ??
          run.model,
        tokens: tokensOf(usage),
        tool_calls: calls,
        input: run.input,
        message_id: member(message, 'id'),
      }),
    );
  }

  beginTool(tool: unknown, input: unknown, id: string, name: unknown): void {
    const found = String(
      name ?? member(tool, 'name') ?? items(member(tool, 'id')).slice(-1)[0] ?? 'tool',
    );
    const args = decoded(input);
    this.begin(id, {tool: found, arguments: args});
    this.cx.beginCall(found, id, args, {api: 'langchain'});
  }

  endTool(id: string, outcome: {result?: unknown; error?: unknown}): void {
    const run = this.end(id);
    this.cx.endCall(String(run.tool ?? 'tool'), id, {
      ...outcome,
      arguments: run.arguments,
      duration_ns: run.timer.ns,
      api: 'langchain',
    });
  }
}

function modelOf(extra: unknown, metadata: unknown): unknown {
  return (
    member(extra, 'invocation_params', 'model') ??
    member(extra, 'invocation_params', 'model_name') ??
    member(metadata, 'ls_model_name')
  );
}
