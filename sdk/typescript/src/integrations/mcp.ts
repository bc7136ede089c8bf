// MCP: a Client of the package @modelcontextprotocol/sdk.
import {UsageError} from '../errors.js';
import type {Recorder} from '../recorder.js';
import {canonical, type Json, plain, textOf} from '../values.js';
import {callRecorded, current, guard, member, Timer, wrapMethod} from './common.js';

/** `instrumentMcp(client, {server: 'docs'})`: tools before and after, resources and prompts that are read. */
export function instrumentMcp<C extends object>(
  client: C,
  options: {server?: string; cx?: Recorder} = {},
): C {
  const cx = options.cx ?? current();
  const about: Json = {
    api: 'mcp',
    ...(options.server === undefined ? {} : {server: options.server}),
  };
  const found = wrapMethod(client, 'callTool', (original) => (...args) => {
    const tool = String(member(args[0], 'name'));
    const given = member(args[0], 'arguments');
    const callId = cx._newKey();
    const timer = new Timer();
    guard(cx, () => cx.beginCall(tool, callId, given, about));
    return callRecorded(
      () => original(...args),
      (result, error) =>
        guard(cx, () => {
          const said = member(result, 'structuredContent') ?? textOf(member(result, 'content'));
          const failed = error === undefined && member(result, 'isError') === true;
          cx.endCall(tool, callId, {
            ...about,
            result: failed ? undefined : said,
            error: failed
              ? {message: typeof said === 'string' ? said : canonical(plain(said))}
              : error,
            arguments: given,
            duration_ns: timer.ns,
          });
        }),
    );
  });
  if (!found) {
    throw new UsageError(
      'instrumentMcp: found no callTool; expected a Client of the package @modelcontextprotocol/sdk',
    );
  }
  wrapReading(client, cx, about, 'readResource', 'uri', 'contents');
  wrapReading(client, cx, about, 'getPrompt', 'name', 'messages');
  return client;
}

function wrapReading(
  client: object,
  cx: Recorder,
  about: Json,
  method: string,
  what: string,
  content: string,
): void {
  wrapMethod(client, method, (original) => (...args) => {
    const name = String(member(args[0], what));
    const step = cx.beginStep(`${method} ${name}`, {kind: 'observation', ...about});
    return callRecorded(
      () => original(...args),
      (result, error) =>
        guard(cx, () => {
          if (error !== undefined) step.fail(error);
          else step.saw(textOf(member(result, content)) ?? '', name);
          step.end();
        }),
    );
  });
}
