// A model server on loopback that answers as the services of OpenAI and Anthropic do: whole or
// streamed, with a tool call when the question asks for one.
import http from 'node:http';

const usage = {
  prompt_tokens: 11,
  completion_tokens: 7,
  total_tokens: 18,
  prompt_tokens_details: {cached_tokens: 3},
};

function chat(request) {
  const wantsTool = request.tools && !request.messages.some((one) => one.role === 'tool');
  const message = wantsTool
    ? {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_1',
            type: 'function',
            function: {name: 'weather', arguments: '{"city":"Ulm"}'},
          },
        ],
      }
    : {role: 'assistant', content: 'It is sunny.'};
  const base = {id: 'chat_1', created: 1, model: 'stub-1'};
  const reason = wantsTool ? 'tool_calls' : 'stop';
  if (!request.stream) {
    return {
      ...base,
      object: 'chat.completion',
      usage,
      choices: [{index: 0, message, finish_reason: reason}],
    };
  }
  const part = (delta, finish_reason = null) => ({
    ...base,
    object: 'chat.completion.chunk',
    choices: [{index: 0, delta, finish_reason}],
  });
  const parts = wantsTool
    ? [
        part({
          role: 'assistant',
          tool_calls: [
            {
              index: 0,
              id: 'call_1',
              type: 'function',
              function: {name: 'weather', arguments: '{"ci'},
            },
          ],
        }),
        part({tool_calls: [{index: 0, function: {arguments: 'ty":"Ulm"}'}}]}),
      ]
    : [part({role: 'assistant', content: 'It is '}), part({content: 'sunny.'})];
  return [
    ...parts,
    part({}, reason),
    {...base, object: 'chat.completion.chunk', choices: [], usage},
  ];
}

function responses(request) {
  const asked = JSON.stringify(request.input);
  const wantsTool = request.tools?.length > 0 && !asked.includes('function_call_output');
  const output = wantsTool
    ? [
        {
          type: 'function_call',
          id: 'fc_1',
          call_id: 'call_1',
          name: 'weather',
          arguments: '{"city":"Ulm"}',
          status: 'completed',
        },
      ]
    : [
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          status: 'completed',
          content: [{type: 'output_text', text: 'It is sunny.', annotations: []}],
        },
      ];
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'stub-1',
    output,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    usage: {
      input_tokens: 11,
      output_tokens: 7,
      total_tokens: 18,
      input_tokens_details: {cached_tokens: 3},
      output_tokens_details: {reasoning_tokens: 0},
    },
  };
  if (!request.stream) return response;
  return [
    {
      type: 'response.created',
      sequence_number: 0,
      response: {...response, status: 'in_progress', output: []},
    },
    {
      type: 'response.output_item.added',
      sequence_number: 1,
      output_index: 0,
      item: {...output[0], content: []},
    },
    {
      type: 'response.content_part.added',
      sequence_number: 2,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      part: {type: 'output_text', text: '', annotations: []},
    },
    {
      type: 'response.output_text.delta',
      sequence_number: 3,
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: 'It is sunny.',
      logprobs: [],
    },
    {type: 'response.completed', sequence_number: 4, response},
  ];
}

function messages(request) {
  const wantsTool = request.tools && !JSON.stringify(request.messages).includes('tool_result');
  const content = wantsTool
    ? [
        {type: 'text', text: 'I look.'},
        {type: 'tool_use', id: 'toolu_1', name: 'weather', input: {city: 'Ulm'}},
      ]
    : [
        {type: 'thinking', thinking: 'Sun.', signature: 's'},
        {type: 'text', text: 'It is sunny.'},
      ];
  const base = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'stub-1',
    stop_sequence: null,
  };
  const stop_reason = wantsTool ? 'tool_use' : 'end_turn';
  const used = {
    input_tokens: 11,
    output_tokens: 7,
    cache_read_input_tokens: 3,
    cache_creation_input_tokens: 0,
  };
  if (!request.stream) return {...base, content, stop_reason, usage: used};
  const parts = [
    {
      type: 'message_start',
      message: {...base, content: [], stop_reason: null, usage: {...used, output_tokens: 1}},
    },
  ];
  for (const [index, block] of content.entries()) {
    const {text, thinking, input, ...rest} = block;
    const start =
      text !== undefined ? {text: ''} : thinking !== undefined ? {thinking: ''} : {input: {}};
    parts.push({type: 'content_block_start', index, content_block: {...rest, ...start}});
    if (text !== undefined)
      parts.push({type: 'content_block_delta', index, delta: {type: 'text_delta', text}});
    else if (thinking !== undefined)
      parts.push({type: 'content_block_delta', index, delta: {type: 'thinking_delta', thinking}});
    else {
      const json = JSON.stringify(input);
      parts.push({
        type: 'content_block_delta',
        index,
        delta: {type: 'input_json_delta', partial_json: json.slice(0, 5)},
      });
      parts.push({
        type: 'content_block_delta',
        index,
        delta: {type: 'input_json_delta', partial_json: json.slice(5)},
      });
    }
    parts.push({type: 'content_block_stop', index});
  }
  parts.push({
    type: 'message_delta',
    delta: {stop_reason, stop_sequence: null},
    usage: {output_tokens: 7},
  });
  parts.push({type: 'message_stop'});
  return parts;
}

/** The address of a stub that is closed after the test. */
export async function modelServer(t) {
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text || '{}');
    if (JSON.stringify(body).includes('please fail')) {
      response.writeHead(400, {'content-type': 'application/json'});
      response.end('{"error":{"message":"the stub refuses","type":"invalid_request_error"}}');
      return;
    }
    const answers = {'/chat/completions': chat, '/responses': responses, '/messages': messages};
    const found = Object.entries(answers).find(([end]) => request.url.split('?')[0].endsWith(end));
    if (!found) {
      response.writeHead(404).end();
      return;
    }
    const answer = found[1](body);
    if (!Array.isArray(answer)) {
      response.writeHead(200, {'content-type': 'application/json'});
      response.end(JSON.stringify(answer));
      return;
    }
    response.writeHead(200, {'content-type': 'text/event-stream'});
    for (const part of answer) {
      if (part.type) response.write(`event: ${part.type}\n`);
      response.write(`data: ${JSON.stringify(part)}\n\n`);
    }
    response.end(found[0] === '/chat/completions' ? 'data: [DONE]\n\n' : '');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}
