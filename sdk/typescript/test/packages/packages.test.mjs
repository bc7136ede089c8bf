// The integrations with the real packages of npm and a model server on loopback.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import {cortex, folder} from '../kit.mjs';
import {modelServer} from './stub.mjs';

const {memory} = cortex.testing;
const SUNNY = {kind: 'message', role: 'assistant', text: 'It is sunny.', model: 'stub-1'};
const TOKENS = {input: 11, output: 7, cached: 3};
const CALL = {call_id: 'call_1', tool: 'weather', arguments: {city: 'Ulm'}};

function has(event, members) {
  for (const [name, value] of Object.entries(members)) {
    assert.deepEqual(event?.[name], value, `${name} of ${JSON.stringify(event)}`);
  }
}

function whole(cx, count) {
  assert.equal(cx.stats.failed, 0);
  assert.equal(cx.steps.length, count, JSON.stringify(cx.events(), null, 1));
  return cx.events();
}

async function drain(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

test('openai: chat completions, whole, streamed, parsed, tools, errors', async (t) => {
  const {default: OpenAI} = await import('openai');
  const cx = memory();
  const client = cortex.instrumentOpenAI(
    new OpenAI({apiKey: 'k', baseURL: await modelServer(t), maxRetries: 0}),
    cx,
  );
  assert.equal(cortex.instrumentOpenAI(client, cx), client); // once
  const question = {
    model: 'stub',
    messages: [
      {role: 'user', content: 'old'},
      {role: 'assistant', content: 'x'},
      {role: 'user', content: 'How is it?'},
    ],
  };
  const tools = [{type: 'function', function: {name: 'weather', parameters: {type: 'object'}}}];
  const answer = await client.chat.completions.create(question);
  assert.equal(answer.choices[0].message.content, 'It is sunny.');
  const {data, response} = await client.chat.completions.create(question).withResponse();
  assert.equal(response.status, 200);
  assert.equal(data.id, 'chat_1');
  await client.chat.completions.create({...question, tools});
  assert.equal(
    (await drain(await client.chat.completions.create({...question, stream: true}))).length,
    4,
  );
  await drain(await client.chat.completions.create({...question, tools, stream: true}));
  await client.chat.completions.parse(question);
  assert.equal(await client.chat.completions.stream(question).finalContent(), 'It is sunny.');
  await assert.rejects(
    client.chat.completions.create({
      model: 'stub',
      messages: [{role: 'user', content: 'please fail'}],
    }),
  );
  for await (const _ of await client.chat.completions.create({...question, stream: true})) break;
  const events = whole(cx, 9);
  for (const at of [0, 1, 3, 5, 6]) {
    has(events[at], {
      ...SUNNY,
      tokens: TOKENS,
      stop: 'stop',
      message_id: 'chat_1',
      input: [{role: 'user', text: 'How is it?'}],
    });
    assert.ok(events[at].duration_ns > 0);
  }
  for (const at of [2, 4]) has(events[at], {tool_calls: [CALL], stop: 'tool_calls'});
  has(events[7], {kind: 'error'});
  assert.match(events[7].error, /the stub refuses/);
  has(events[8], {text: 'It is '}); // what the program read
});

test('openai: responses, whole, streamed, tools', async (t) => {
  const {default: OpenAI} = await import('openai');
  const cx = memory();
  const client = cortex.instrumentOpenAI(
    new OpenAI({apiKey: 'k', baseURL: await modelServer(t), maxRetries: 0}),
    cx,
  );
  const tools = [{type: 'function', name: 'weather', parameters: {type: 'object'}, strict: false}];
  assert.equal(
    (await client.responses.create({model: 'stub', input: 'How is it?'})).output_text,
    'It is sunny.',
  );
  await drain(await client.responses.create({model: 'stub', input: 'How is it?', stream: true}));
  await client.responses.create({model: 'stub', input: 'How is it?', tools});
  await client.responses.parse({model: 'stub', input: 'How is it?'});
  await assert.rejects(client.responses.create({model: 'stub', input: 'please fail'}));
  const events = whole(cx, 5);
  for (const at of [0, 1, 3])
    has(events[at], {
      ...SUNNY,
      tokens: TOKENS,
      api: 'openai.responses',
      input: [{role: 'user', text: 'How is it?'}],
    });
  has(events[2], {tool_calls: [CALL]});
  has(events[4], {kind: 'error'});
});

test('anthropic: messages, whole, streamed, stream(), tools, errors', async (t) => {
  const {default: Anthropic} = await import('@anthropic-ai/sdk');
  const cx = memory();
  const client = cortex.instrumentAnthropic(
    new Anthropic({apiKey: 'k', baseURL: await modelServer(t), maxRetries: 0}),
    cx,
  );
  const question = {
    model: 'stub',
    max_tokens: 100,
    messages: [{role: 'user', content: [{type: 'text', text: 'How is it?'}]}],
  };
  const tools = [{name: 'weather', input_schema: {type: 'object'}}];
  assert.equal((await client.messages.create(question)).content[1].text, 'It is sunny.');
  await drain(await client.messages.create({...question, stream: true}));
  assert.equal(await client.messages.stream(question).finalText(), 'It is sunny.');
  await client.messages.create({...question, tools});
  await drain(await client.messages.create({...question, tools, stream: true}));
  await assert.rejects(
    client.messages.create({...question, messages: [{role: 'user', content: 'please fail'}]}),
  );
  const events = whole(cx, 6);
  for (const at of [0, 1, 2]) {
    has(events[at], {
      ...SUNNY,
      thinking: 'Sun.',
      tokens: TOKENS,
      stop: 'end_turn',
      message_id: 'msg_1',
      input: [{role: 'user', text: 'How is it?'}],
    });
  }
  for (const at of [3, 4])
    has(events[at], {text: 'I look.', tool_calls: [{...CALL, call_id: 'toolu_1'}]});
  assert.match(events[5].error, /the stub refuses/);
});

test('Vercel AI SDK: generateText with a tool, streamText, errors', async (t) => {
  const {generateText, streamText, wrapLanguageModel, tool, stepCountIs} = await import('ai');
  const {createOpenAI} = await import('@ai-sdk/openai');
  const {z} = await import('zod');
  const cx = memory();
  const provider = createOpenAI({apiKey: 'k', baseURL: await modelServer(t)});
  const model = wrapLanguageModel({
    model: provider.chat('stub'),
    middleware: cortex.aiMiddleware(cx),
  });
  const tools = {
    weather: tool({
      inputSchema: z.object({city: z.string()}),
      execute: async ({city}) => ({city, sun: true}),
    }),
  };
  const answer = await generateText({model, tools, prompt: 'How is it?', stopWhen: stepCountIs(3)});
  assert.equal(answer.text, 'It is sunny.');
  const streamed = streamText({model, prompt: 'How is it?'});
  assert.equal(await streamed.text, 'It is sunny.');
  await assert.rejects(generateText({model, prompt: 'please fail', maxRetries: 0}));
  const events = whole(cx, 6);
  has(events[0], {
    kind: 'message',
    tool_calls: [CALL],
    input: [{role: 'user', text: 'How is it?'}],
  });
  has(events[1], {kind: 'tool_call', tool: 'weather', call_id: 'call_1', arguments: {city: 'Ulm'}});
  has(events[2], {kind: 'tool_result', status: 'ok', result: {city: 'Ulm', sun: true}});
  has(events[3], {...SUNNY, tokens: TOKENS});
  has(events[4], {...SUNNY, tokens: TOKENS});
  has(events[5], {kind: 'error'});
});

test('OpenAI Agents SDK: a run with a tool and a handoff', async (t) => {
  const {Agent, Runner, addTraceProcessor, setTraceProcessors, tool} = await import(
    '@openai/agents-core'
  );
  const {OpenAIProvider} = await import('@openai/agents-openai');
  const {z} = await import('zod');
  const cx = memory();
  setTraceProcessors([]);
  addTraceProcessor(cortex.agentsProcessor(cx));
  const weather = tool({
    name: 'weather',
    description: 'w',
    parameters: z.object({city: z.string()}),
    execute: async ({city}) => `sunny in ${city}`,
  });
  for (const useResponses of [true, false]) {
    cx.clear();
    const modelProvider = new OpenAIProvider({
      apiKey: 'k',
      baseURL: await modelServer(t),
      useResponses,
    });
    const agent = new Agent({name: 'forecaster', model: 'stub', tools: [weather]});
    const result = await new Runner({modelProvider, tracingDisabled: false}).run(
      agent,
      'How is it?',
    );
    assert.equal(result.finalOutput, 'It is sunny.');
    assert.equal(cx.stats.failed, 0);
    const said = cx.events('message');
    assert.equal(said.length, 2, JSON.stringify(cx.events(), null, 1));
    has(said[1], {text: 'It is sunny.', by: 'forecaster'});
    has(cx.events('tool_call')[0], {tool: 'weather', arguments: {city: 'Ulm'}, by: 'forecaster'});
    has(cx.events('tool_result')[0], {tool: 'weather', result: 'sunny in Ulm', status: 'ok'});
    assert.match(cx.events('note')[0].text, /^run /);
  }
});

test('LangChain: a chat model, a tool, a retriever, errors', async (t) => {
  const {ChatOpenAI} = await import('@langchain/openai');
  const {tool} = await import('@langchain/core/tools');
  const {BaseRetriever} = await import('@langchain/core/retrievers');
  const {z} = await import('zod');
  const cx = memory();
  const callbacks = [cortex.langchainHandler(cx)];
  const model = new ChatOpenAI({
    apiKey: 'k',
    model: 'stub',
    maxRetries: 0,
    configuration: {baseURL: await modelServer(t)},
  });
  assert.equal((await model.invoke('How is it?', {callbacks})).content, 'It is sunny.');
  await drain(await model.stream('How is it?', {callbacks}));
  const weather = tool(
    async ({city}) => {
      if (city === 'Bonn') throw new Error('no station');
      return `sunny in ${city}`;
    },
    {name: 'weather', schema: z.object({city: z.string()})},
  );
  await weather.invoke({city: 'Ulm'}, {callbacks});
  await assert.rejects(weather.invoke({city: 'Bonn'}, {callbacks}));
  class Fixed extends BaseRetriever {
    lc_namespace = ['test'];
    async _getRelevantDocuments() {
      return [{pageContent: 'Sun.', metadata: {source: 'sky.md'}}];
    }
  }
  await new Fixed().invoke('sky', {callbacks});
  await assert.rejects(model.invoke('please fail', {callbacks}));
  const events = whole(cx, 8);
  for (const at of [0, 1])
    has(events[at], {
      kind: 'message',
      text: 'It is sunny.',
      tokens: TOKENS,
      input: [{role: 'user', text: 'How is it?'}],
    });
  has(events[2], {kind: 'tool_call', tool: 'weather', arguments: {city: 'Ulm'}});
  has(events[3], {
    kind: 'tool_result',
    tool: 'weather',
    result: 'sunny in Ulm',
    call_id: events[2].call_id,
  });
  has(events[5], {kind: 'tool_result', status: 'error', error: 'no station'});
  has(events[6], {kind: 'observation', query: 'sky'});
  has(events[6].saw[0], {name: 'sky.md', text: 'Sun.'});
  has(events[7], {kind: 'error'});
});

test('Claude Agent SDK: query, with a program in place of Claude Code', async (t) => {
  const {query} = await import('@anthropic-ai/claude-agent-sdk');
  const cx = memory();
  const where = folder(t);
  const program = path.join(where, 'claude.mjs');
  const session_id = '00000000-0000-4000-8000-000000000001';
  const say = (content) => ({
    type: 'assistant',
    session_id,
    uuid: 'u',
    parent_tool_use_id: null,
    message: {
      id: 'm',
      model: 'stub-1',
      role: 'assistant',
      content,
      usage: {input_tokens: 11, output_tokens: 7},
    },
  });
  const messages = [
    {type: 'system', subtype: 'init', session_id, model: 'stub-1', tools: ['Read']},
    say([
      {type: 'text', text: 'I look.'},
      {type: 'tool_use', id: 't1', name: 'Read', input: {file_path: 'a'}},
    ]),
    {
      type: 'user',
      session_id,
      uuid: 'u',
      parent_tool_use_id: null,
      message: {role: 'user', content: [{type: 'tool_result', tool_use_id: 't1', content: 'Sun.'}]},
    },
    say([{type: 'text', text: 'It is sunny.'}]),
    {
      type: 'result',
      subtype: 'success',
      is_error: false,
      session_id,
      duration_ms: 5,
      num_turns: 2,
      result: 'It is sunny.',
      total_cost_usd: 0.01,
      usage: {input_tokens: 22, output_tokens: 14},
    },
  ];
  fs.writeFileSync(
    program,
    `
    import readline from 'node:readline';
    const out = (one) => process.stdout.write(JSON.stringify(one) + '\\n');
    for await (const line of readline.createInterface({input: process.stdin})) {
      const one = JSON.parse(line);
      if (one.type === 'control_request') out({type: 'control_response', response: {subtype: 'success', request_id: one.request_id, response: {commands: [], models: [], account: {}}}});
      if (one.type === 'user') { for (const message of ${JSON.stringify(messages)}) out(message); break; }
    }
    process.exit(0);
  `,
  );
  const options = {pathToClaudeCodeExecutable: program, executable: 'node', cwd: where};
  const seen = await drain(cortex.watchClaude(query({prompt: 'How is it?', options}), cx));
  assert.equal(seen.filter((one) => one.type === 'assistant').length, 2);
  const events = whole(cx, 6);
  has(events[0], {kind: 'note', model: 'stub-1'});
  has(events[1], {kind: 'message', text: 'I look.', tokens: {input: 11, output: 7}});
  has(events[2], {kind: 'tool_call', tool: 'Read', call_id: 't1', arguments: {file_path: 'a'}});
  has(events[3], {kind: 'tool_result', tool: 'Read', result: 'Sun.', status: 'ok'});
  has(events[5], {kind: 'note', cost_usd: 0.01, text: 'It is sunny.', duration_ns: 5_000_000});
});

test('MCP: tools, a tool that fails, resources and prompts of a real server', async (t) => {
  const {Client} = await import('@modelcontextprotocol/sdk/client/index.js');
  const {InMemoryTransport} = await import('@modelcontextprotocol/sdk/inMemory.js');
  const {McpServer} = await import('@modelcontextprotocol/sdk/server/mcp.js');
  const {z} = await import('zod');
  const cx = memory();
  const server = new McpServer({name: 'docs', version: '1'});
  server.registerTool('weather', {inputSchema: {city: z.string()}}, async ({city}) => {
    if (city === 'Bonn') throw new Error('no station');
    return {content: [{type: 'text', text: `sunny in ${city}`}]};
  });
  server.registerResource('sky', 'mem://sky', {}, async () => ({
    contents: [{uri: 'mem://sky', text: 'Sun.'}],
  }));
  server.registerPrompt('ask', {}, () => ({
    messages: [{role: 'user', content: {type: 'text', text: 'Ask.'}}],
  }));
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = cortex.instrumentMcp(new Client({name: 'test', version: '1'}), {
    server: 'docs',
    cx,
  });
  await Promise.all([server.connect(there), client.connect(here)]);
  t.after(() => client.close());
  assert.equal(
    (await client.callTool({name: 'weather', arguments: {city: 'Ulm'}})).content[0].text,
    'sunny in Ulm',
  );
  assert.equal((await client.callTool({name: 'weather', arguments: {city: 'Bonn'}})).isError, true);
  await client.readResource({uri: 'mem://sky'});
  await client.getPrompt({name: 'ask'});
  await assert.rejects(client.readResource({uri: 'mem://none'}));
  const events = whole(cx, 7);
  has(events[0], {kind: 'tool_call', tool: 'weather', arguments: {city: 'Ulm'}, server: 'docs'});
  has(events[1], {
    kind: 'tool_result',
    result: 'sunny in Ulm',
    status: 'ok',
    call_id: events[0].call_id,
  });
  has(events[3], {status: 'error'});
  assert.match(events[3].error, /no station/);
  has(events[4].saw[0], {name: 'mem://sky', text: 'Sun.'});
  has(events[5].saw[0], {name: 'ask', text: 'Ask.'});
  assert.match(events[6].error, /none|not found/i);
});
