#!/usr/bin/env python3
"""The integrations, against recorded sequences of calls: small classes of the shapes that the packages
hand over. None of these packages is in Debian, so none of them is run here (docs/sdk-python.md)."""
import asyncio
import json
import sys
from types import SimpleNamespace as Object

from sdk_kit import Said, check, cortex, main, test
from cortex_recorder.testing import Memory


def fails(error, call):
    try:
        call()
    except error as found:
        return found
    raise AssertionError("it did not fail")


def answers(answer, seen=None):
    """A method that gives the answer, or raises it."""
    def create(*args, **kwargs):
        if seen is not None:
            seen.append((args, kwargs))
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer
    return create


def answers_later(answer):
    async def create(*args, **kwargs):
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
    return create


class Stream:
    """Parts one after the other, with what streams of the clients have besides."""

    def __init__(self, parts, error=None):
        self.parts, self.error, self.response, self.closed = list(parts), error, "raw", False

    def __iter__(self):
        yield from self.parts
        if self.error:
            raise self.error

    async def _later(self):
        for part in self.parts:
            yield part

    def __aiter__(self):
        return self._later()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.closed = True


# --- OpenAI ---

def chat(text=None, calls=(), reason="stop"):
    message = Object(content=text, tool_calls=[Object(id=i, type="function", function=Object(
        name=n, arguments=json.dumps(a))) for i, n, a in calls] or None)
    return Object(id="chatcmpl-1", model="gpt-x-2026", choices=[Object(message=message, finish_reason=reason)],
                  usage=Object(prompt_tokens=12, completion_tokens=5,
                               prompt_tokens_details=Object(cached_tokens=4)))


def openai_client(completion=None, response=None):
    return Object(chat=Object(completions=Object(create=completion or answers(None))),
                  responses=Object(create=response or answers(None)))


MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "refund 7?"}]


@test
def openai_chat():
    cx, seen = Memory(), []
    client = openai_client(answers(chat("yes", [("c1", "refund", {"order": 7})], "tool_calls"), seen))
    check(cortex.instrument_openai(client, cx) is client)
    cortex.instrument_openai(client, cx)  # a second time changes nothing
    answer = client.chat.completions.create(model="gpt-x", messages=MESSAGES)
    check(answer.choices[0].message.content == "yes" and seen[0][1]["model"] == "gpt-x")
    event, = cx.events()
    check(event["kind"] == "message" and event["role"] == "assistant" and event["text"] == "yes", event)
    check(event["model"] == "gpt-x-2026" and event["tokens"] == {"input": 12, "output": 5, "cached": 4})
    check(event["tool_calls"] == [{"call_id": "c1", "tool": "refund", "arguments": {"order": 7}}], event)
    check(event["input"] == [{"role": "system", "text": "be brief"}, {"role": "user", "text": "refund 7?"}])
    check(event["duration_ns"] > 0 and event["stop"] == "tool_calls" and event["message_id"] == "chatcmpl-1")
    # The next call has all before it; only what is new is input.
    client.chat.completions.create(model="gpt-x", messages=MESSAGES + [
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "done"}]}])
    check(cx.events()[1]["input"] == [{"role": "tool", "text": "done"}], cx.events()[1])


@test
def openai_errors_streams_and_async():
    cx = Memory()
    client = cortex.instrument_openai(openai_client(answers(TimeoutError("slow"))), cx)
    fails(TimeoutError, lambda: client.chat.completions.create(model="m", messages=MESSAGES))
    check(cx.events()[0]["kind"] == "error" and cx.events()[0]["error_type"] == "TimeoutError")

    def delta(content=None, call=None, usage=None, choices=True):
        made = Object(content=content, tool_calls=None)
        if call:
            made.tool_calls = [Object(index=call[0], id=call[1], function=Object(name=call[2], arguments=call[3]))]
        return Object(id="chatcmpl-2", model="gpt-x", usage=usage,
                      choices=[Object(delta=made, finish_reason=None)] if choices else [])
    parts = [delta("Sure"), delta(", I do"), delta(call=(0, "c1", "refund", '{"or')),
             delta(call=(0, None, None, 'der":7}')), delta(call=(1, "c2", "mail", "{}")),
             delta(usage=Object(prompt_tokens=3, completion_tokens=9), choices=False)]
    stream = Stream(parts)
    client = cortex.instrument_openai(openai_client(answers(stream)), cx)
    found = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    check(len(cx.steps) == 1 and found.response == "raw" and [p for p in found] == parts)
    event = cx.events()[1]
    check(event["text"] == "Sure, I do" and event["tokens"] == {"input": 3, "output": 9}, event)
    check(event["tool_calls"] == [{"call_id": "c1", "tool": "refund", "arguments": {"order": 7}},
                                  {"call_id": "c2", "tool": "mail", "arguments": {}}], event)
    # One that is given up, and one that fails, are recorded as far as they went, once.
    client = cortex.instrument_openai(openai_client(answers(lambda: Stream(parts, RuntimeError("cut")))), cx)
    with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as found:
        next(iter(found))
    check(cx.events()[2]["text"] == "Sure" and len(cx.steps) == 3, cx.events())
    found = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    fails(RuntimeError, lambda: list(found))
    check(cx.events()[3]["error"] == "cut" and len(cx.steps) == 4)

    async def later():
        client = cortex.instrument_openai(openai_client(answers_later(chat("hello"))), cx)
        check((await client.chat.completions.create(model="m", messages=MESSAGES)).model == "gpt-x-2026")
        client = cortex.instrument_openai(openai_client(answers_later(Stream(parts))), cx)
        seen = [p async for p in await client.chat.completions.create(model="m", messages=[], stream=True)]
        check(seen == parts)
        client = cortex.instrument_openai(openai_client(answers_later(ValueError("no"))), cx)
        try:
            await client.chat.completions.create(model="m", messages=[])
        except ValueError:
            pass
    asyncio.run(later())
    check([e["kind"] for e in cx.events()[4:]] == ["message", "message", "error"], cx.events()[4:])
    check("openai" in str(fails(cortex.UsageError, lambda: cortex.instrument_openai(Object(), cx))))


@test
def openai_responses():
    cx = Memory()
    response = Object(id="resp_1", model="gpt-x", status="completed",
                      usage=Object(input_tokens=7, output_tokens=2,
                                   input_tokens_details=Object(cached_tokens=1)),
                      output=[Object(type="reasoning", summary=[Object(type="summary_text", text="hm")]),
                              Object(type="message", content=[Object(type="output_text", text="ok")]),
                              Object(type="function_call", name="refund", arguments='{"n":1}', call_id="c9")])
    client = cortex.instrument_openai(openai_client(response=answers(response)), cx)
    client.responses.create(model="gpt-x", input="please")
    event, = cx.events()
    check(event["text"] == "ok" and event["thinking"] == "hm" and event["input"][0]["text"] == "please")
    check(event["tool_calls"] == [{"call_id": "c9", "tool": "refund", "arguments": {"n": 1}}], event)
    check(event["tokens"] == {"input": 7, "output": 2, "cached": 1} and event["api"] == "openai.responses")
    parts = [Object(type="response.created"), Object(type="response.output_text.delta", delta="o"),
             Object(type="response.completed", response=response)]
    client = cortex.instrument_openai(openai_client(response=answers(Stream(parts))), cx)
    list(client.responses.create(model="gpt-x", input=[{"role": "user", "content": "x"}], stream=True))
    check(cx.events()[1]["text"] == "ok" and cx.events()[1]["input"] == [{"role": "user", "text": "x"}])


# --- Anthropic ---

def claude(*blocks, stop="end_turn"):
    return Object(id="msg_1", type="message", model="claude-x", stop_reason=stop, content=list(blocks),
                  usage=Object(input_tokens=10, output_tokens=4, cache_read_input_tokens=2))


@test
def anthropic_messages():
    cx = Memory()
    answer = claude(Object(type="thinking", thinking="let me see"), Object(type="text", text="I refund it"),
                    Object(type="tool_use", id="t1", name="refund", input={"order": 7}), stop="tool_use")
    client = cortex.instrument_anthropic(Object(messages=Object(create=answers(answer))), cx)
    client.messages.create(model="claude-x", system="be kind", max_tokens=9,
                           messages=[{"role": "user", "content": "refund 7"}])
    event, = cx.events()
    check(event["text"] == "I refund it" and event["thinking"] == "let me see", event)
    check(event["tool_calls"] == [{"call_id": "t1", "tool": "refund", "arguments": {"order": 7}}])
    check(event["tokens"] == {"input": 10, "output": 4, "cached": 2} and event["stop"] == "tool_use")
    check(event["input"] == [{"role": "system", "text": "be kind"}, {"role": "user", "text": "refund 7"}])
    client.messages.create(model="claude-x", system="be kind", messages=[
        {"role": "user", "content": "refund 7"}, {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]}])
    check(cx.events()[1]["input"] == [{"role": "user", "text": "done"}], cx.events()[1])

    async def later():
        client = cortex.instrument_anthropic(Object(messages=Object(create=answers_later(answer))), cx)
        await client.messages.create(model="claude-x", messages=[])
    asyncio.run(later())
    check(cx.events()[2]["text"] == "I refund it")
    check("anthropic" in str(fails(cortex.UsageError, lambda: cortex.instrument_anthropic(Object(), cx))))


@test
def anthropic_streams():
    cx = Memory()
    parts = [Object(type="message_start", message=claude(stop=None)),
             Object(type="content_block_start", index=0, content_block=Object(type="text", text="")),
             Object(type="content_block_delta", index=0, delta=Object(type="text_delta", text="Sure")),
             Object(type="content_block_delta", index=0, delta=Object(type="text_delta", text="!")),
             Object(type="content_block_stop", index=0),
             Object(type="content_block_start", index=1,
                    content_block=Object(type="tool_use", id="t1", name="refund", input={})),
             Object(type="content_block_delta", index=1, delta=Object(type="input_json_delta",
                                                                       partial_json='{"order"')),
             Object(type="content_block_delta", index=1, delta=Object(type="input_json_delta",
                                                                       partial_json=':7}')),
             Object(type="message_delta", delta=Object(stop_reason="tool_use"), usage=Object(output_tokens=31)),
             Object(type="message_stop")]
    client = cortex.instrument_anthropic(Object(messages=Object(create=answers(Stream(parts)))), cx)
    check(list(client.messages.create(model="claude-x", messages=[], stream=True)) == parts)
    event, = cx.events()
    check(event["text"] == "Sure!" and event["stop"] == "tool_use", event)
    check(event["tokens"] == {"input": 10, "output": 31, "cached": 2}, event)
    check(event["tool_calls"] == [{"call_id": "t1", "tool": "refund", "arguments": {"order": 7}}], event)

    class Manager:
        def __enter__(self):
            return Object(text_stream=iter("ab"), current_message_snapshot=claude(
                Object(type="text", text="ab")))

        def __exit__(self, *_):
            return None

        async def __aenter__(self):
            return self.__enter__()

        async def __aexit__(self, *_):
            return None
    client = cortex.instrument_anthropic(Object(messages=Object(create=answers(None), stream=answers(
        lambda: Manager()))), cx)
    with client.messages.stream(model="claude-x", messages=[]) as stream:
        check("".join(stream.text_stream) == "ab")
    check(cx.events()[1]["text"] == "ab")

    async def later():
        async with client.messages.stream(model="claude-x", messages=[]):
            pass
    asyncio.run(later())
    check(cx.events()[2]["text"] == "ab" and len(cx.steps) == 3)


# --- LangChain and LangGraph ---

@test
def langchain_models_tools_and_retrievers():
    cx = Memory()
    handler = cortex.langchain_handler(cx)
    human, ai = Object(type="human", content="refund 7"), Object(type="ai", content="")
    handler.on_chain_start({}, {"messages": [human]}, run_id="r0", name="LangGraph", metadata={})
    handler.on_chain_start({}, {}, run_id="r1", parent_run_id="r0", name="agent",
                           metadata={"langgraph_node": "agent"})
    handler.on_chat_model_start({"name": "ChatX"}, [[human]], run_id="m1", parent_run_id="r1",
                                invocation_params={"model": "gpt-x"}, tags=[], metadata={})
    ai = Object(type="ai", content=[{"type": "text", "text": "on it"}],
                tool_calls=[{"name": "refund", "args": {"order": 7}, "id": "c1", "type": "tool_call"}],
                usage_metadata={"input_tokens": 5, "output_tokens": 3, "total_tokens": 8},
                response_metadata={"model_name": "gpt-x-2026"})
    handler.on_llm_end(Object(generations=[[Object(text="on it", message=ai)]], llm_output=None), run_id="m1")
    handler.on_chain_end({"messages": [ai]}, run_id="r1", parent_run_id="r0")
    handler.on_tool_start({"name": "refund"}, "{'order': 7}", run_id="t1", inputs={"order": 7})
    handler.on_tool_end(Object(type="tool", content="done", tool_call_id="c1"), run_id="t1")
    handler.on_tool_start({"name": "mail"}, '{"to": "x"}', run_id="t2")
    handler.on_tool_error(RuntimeError("no such host"), run_id="t2")
    handler.on_retriever_start({}, "limits", run_id="q1")
    handler.on_retriever_end([Object(page_content="the limit is 500", metadata={"source": "policy.md"})],
                             run_id="q1")
    handler.on_chain_end({}, run_id="r0")
    handler.on_llm_start({}, ["complete me"], run_id="m2")
    handler.on_llm_error(ValueError("overloaded"), run_id="m2")
    kinds = [(e["kind"], e.get("tool") or e.get("name")) for e in cx.events()]
    check(kinds == [("message", None), ("decision", "agent"), ("tool_call", "refund"),
                    ("tool_result", "refund"), ("tool_call", "mail"), ("tool_result", "mail"),
                    ("observation", "retrieve"), ("error", None)], kinds)
    said, node, call, result, _, failed, seen, error = cx.events()
    check(said["text"] == "on it" and said["model"] == "gpt-x-2026" and
          said["tokens"] == {"input": 5, "output": 3} and said["input"] == [{"role": "user", "text": "refund 7"}])
    check(said["tool_calls"] == [{"call_id": "c1", "tool": "refund", "arguments": {"order": 7}}])
    check(call["arguments"] == {"order": 7} and result["result"] == "done", call, result)
    check(failed["error"] == "no such host" and failed["error_type"] == "RuntimeError", failed)
    check(seen["saw"][0]["name"] == "policy.md" and seen["query"] == "limits", seen)
    check(error["input"] == [{"role": "user", "text": "complete me"}], error)
    for name in ("ignore_llm", "ignore_chain", "ignore_agent", "ignore_retriever", "ignore_chat_model",
                 "raise_error"):
        check(getattr(handler, name) is False, name)


@test
def langchain_base_class_is_used_where_it_is():
    class BaseCallbackHandler:
        pass
    modules = {"langchain_core": Object(), "langchain_core.callbacks": Object(
        BaseCallbackHandler=BaseCallbackHandler)}
    sys.modules.update(modules)
    try:
        check(isinstance(cortex.langchain_handler(Memory()), BaseCallbackHandler))
    finally:
        for name in modules:
            del sys.modules[name]


# --- OpenAI Agents SDK ---

@test
def openai_agents():
    cx = Memory()
    processor = cortex.agents_processor(cx)
    trace = Object(name="refunds", trace_id="trace_1")

    def span(id, data, parent=None, error=None):
        return Object(span_id=id, trace_id="trace_1", parent_id=parent, error=error, span_data=data,
                      started_at="2026-01-01T00:00:00+00:00", ended_at="2026-01-01T00:00:01.500000Z")
    processor.on_trace_start(trace)
    agent = span("s1", Object(type="agent", name="Triage", tools=["refund"], handoffs=[], output_type="str"))
    processor.on_span_start(agent)
    response = span("s2", Object(type="response", input=[{"role": "user", "content": "refund 7"}],
                                 response=Object(model="gpt-x", usage=Object(input_tokens=3, output_tokens=4),
                                                 output=[Object(type="message", content=[Object(
                                                     type="output_text", text="on it")]),
                                                     Object(type="function_call", name="refund", call_id="c1",
                                                            arguments='{"order":7}')])), "s1")
    processor.on_span_start(response)
    processor.on_span_end(response)
    tool = span("s3", Object(type="function", name="refund", input=None, output=None), "s1")
    processor.on_span_start(tool)
    tool.span_data.input, tool.span_data.output = '{"order":7}', "done"
    processor.on_span_end(tool)
    generation = span("s4", Object(type="generation", input=[{"role": "user", "content": "x"}],
                                   output=[{"role": "assistant", "content": "y"}], model="other",
                                   usage={"input_tokens": 1, "output_tokens": 2}), "s1")
    processor.on_span_end(generation)
    processor.on_span_end(span("s5", Object(type="handoff", from_agent="Triage", to_agent="Billing"), "s1"))
    processor.on_span_end(span("s6", Object(type="guardrail", name="pii", triggered=True), "s1"))
    processor.on_span_end(span("s7", Object(type="function", name="mail", input="{}", output=None), "s1",
                               {"message": "failed", "data": {}}))
    processor.on_span_end(agent)
    processor.on_trace_end(trace)
    processor.shutdown()
    events = cx.events()
    check([e["kind"] for e in events] == ["note", "message", "tool_call", "tool_result", "message", "handoff",
                                          "decision", "tool_result"], [e["kind"] for e in events])
    check(events[1]["text"] == "on it" and events[1]["by"] == "Triage" and
          events[1]["duration_ns"] == 1_500_000_000, events[1])
    check(events[1]["tool_calls"][0]["arguments"] == {"order": 7})
    check(events[3]["result"] == "done" and json.loads(
        cx.state()["memory"]["tool.refund.last"]["arguments"]) == {"order": 7})
    check(events[4]["text"] == "y" and events[5]["to"] == "Billing" and events[6]["verdict"] == "refused")
    check(events[7]["error"] == "failed", events[7])


# --- Claude Agent SDK ---

def of_class(name, /, **members):
    made = type(name, (), {})()
    vars(made).update(members)
    return made


@test
def claude_agent():
    cx = Memory()
    sent = [
        of_class("SystemMessage", subtype="init", data={"session_id": "s-1", "model": "claude-x"}),
        of_class("AssistantMessage", model="claude-x", parent_tool_use_id=None, content=[
            of_class("ThinkingBlock", thinking="hm", signature="x"), of_class("TextBlock", text="I look"),
            of_class("ToolUseBlock", id="t1", name="Read", input={"file_path": "/a"})]),
        of_class("UserMessage", content=[of_class("ToolResultBlock", tool_use_id="t1", is_error=None,
                                                  content=[{"type": "text", "text": "content of a"}])]),
        of_class("AssistantMessage", model="claude-x", parent_tool_use_id="t0", content=[
            of_class("ToolUseBlock", id="t2", name="Bash", input={"command": "false"})]),
        of_class("UserMessage", content=[of_class("ToolResultBlock", tool_use_id="t2", is_error=True,
                                                  content="exit 1")]),
        of_class("ResultMessage", subtype="success", is_error=False, result="done", num_turns=2,
                 total_cost_usd=0.012, duration_ms=1500, session_id="s-1",
                 usage={"input_tokens": 9, "output_tokens": 8})]

    async def query():
        for message in sent:
            yield message

    async def watch():
        return [m async for m in cortex.watch_claude(query(), cx)]
    check(asyncio.run(watch()) == sent)
    events = cx.events()
    check([e["kind"] for e in events] == ["note", "message", "tool_call", "tool_result", "tool_call",
                                          "tool_result", "note"], events)
    check(events[1]["text"] == "I look" and events[1]["thinking"] == "hm" and events[1]["model"] == "claude-x")
    check(events[2]["arguments"] == {"file_path": "/a"} and events[3]["result"] == "content of a")
    check(events[4]["parent_call"] == "t0" and events[5]["error"] == "exit 1", events[5])
    check(events[6]["cost_usd"] == 0.012 and events[6]["duration_ns"] == 1_500_000_000, events[6])

    async def broken():
        yield sent[0]
        raise ConnectionError("gone")

    async def watch_broken():
        async for _ in cortex.watch_claude(broken(), cx):
            pass
    fails(ConnectionError, lambda: asyncio.run(watch_broken()))
    check(cx.events()[-1]["kind"] == "error" and cx.events()[-1]["error"] == "gone")


# --- MCP ---

@test
def mcp_sessions():
    cx = Memory()

    class Session:
        async def call_tool(self, name, arguments=None, read_timeout_seconds=None):
            if name == "missing":
                raise KeyError(name)
            check(read_timeout_seconds == 5 or name != "search")
            return Object(content=[Object(type="text", text=f"{name} says no" if name == "bad" else "found")],
                          structuredContent={"hits": 2} if name == "search" else None, isError=name == "bad")

        async def read_resource(self, uri):
            return Object(contents=[Object(uri=uri, text="the limit is 500")])

    async def use():
        session = cortex.instrument_mcp(Session(), cx, server="docs")
        check((await session.call_tool("search", {"q": "limit"}, read_timeout_seconds=5)).isError is False)
        await session.call_tool("bad")
        try:
            await session.call_tool("missing")
        except KeyError:
            pass
        await session.read_resource("file:///policy.md")
    asyncio.run(use())
    events = cx.events()
    check([e["kind"] for e in events] == ["tool_call", "tool_result"] * 3 + ["observation"], events)
    check(events[0]["arguments"] == {"q": "limit"} and events[0]["server"] == "docs")
    check(events[1]["result"] == {"hits": 2} and events[1]["status"] == "ok", events)
    check(events[3]["error"] == "bad says no" and events[3]["status"] == "error", events)
    check(events[5]["error_type"] == "KeyError")
    check(events[6]["saw"][0]["text"] == "the limit is 500" and events[6]["saw"][0]["name"].endswith("policy.md"))
    check("ClientSession" in str(fails(cortex.UsageError, lambda: cortex.instrument_mcp(Object(), cx))))


# --- OpenTelemetry ---

@test
def opentelemetry_spans():
    cx = Memory()
    processor = cortex.otel_processor(cx)

    def span(name, attributes, status="UNSET", events=()):
        return Object(name=name, attributes=attributes, start_time=10, end_time=25, events=list(events),
                      status=Object(status_code=Object(name=status), description=None),
                      context=Object(trace_id=0xABC, span_id=0xDEF))
    processor.on_start(span("x", {}))
    processor.on_end(span("chat gpt-x", {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x",
                                         "gen_ai.usage.input_tokens": 4, "gen_ai.agent.name": "Triage"}))
    processor.on_end(span("execute_tool refund", {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"order":7}', "gen_ai.tool.call.result": '"done"'}))
    processor.on_end(span("invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, "ERROR", [
        Object(name="exception", attributes={"exception.type": "E", "exception.message": "bad"})]))
    processor.on_end(span("GET /", {"http.method": "GET"}))
    message, tool, agent = cx.events()
    check(message["kind"] == "message" and message["tokens"] == {"input": 4} and message["by"] == "Triage")
    check(message["otel"] == {"trace_id": f"{0xABC:032x}", "span_id": f"{0xDEF:016x}"}, message)
    check(tool["kind"] == "tool_result" and tool["arguments"] == {"order": 7} and tool["result"] == "done")
    check(agent["error"] == "bad" and agent["error_type"] == "E" and agent["duration_ns"] == 15, agent)
    check(processor.force_flush() is True)
    every = cortex.otel_processor(cx, all_spans=True)
    every.on_end(span("GET /", {"http.method": "GET"}))
    check(cx.events()[3]["kind"] == "note")


@test
def steps_name_the_current_span():
    context = Object(is_valid=True, trace_id=1, span_id=2)
    modules = {"opentelemetry": Object(trace=Object(get_current_span=lambda: Object(
        get_span_context=lambda: context)))}
    sys.modules.update(modules)
    try:
        cx = Memory()
        cx._otel = True
        cx.note("x")
        context.is_valid = False
        cx.note("y")
    finally:
        del sys.modules["opentelemetry"]
    cx.note("z")
    check([e.get("otel") for e in cx.events()] == [{"trace_id": "0" * 31 + "1", "span_id": "0" * 15 + "2"},
                                                   None, None], cx.events())


@test
def a_shape_that_is_not_known_does_not_stop_the_program():
    class Odd:
        def __getattr__(self, name):
            raise RuntimeError("odd")
    cx = Memory()
    client = cortex.instrument_openai(openai_client(answers(Odd())), cx)
    with Said() as said:
        check(isinstance(client.chat.completions.create(model="m", messages=3), Odd))
        check(said.has("not recorded") and cx.stats.failed == 1, said.texts)
    check(len(cx.steps) == 1)  # that there was a call is recorded
    handler = cortex.langchain_handler(cx)
    handler.on_llm_end(Odd(), run_id="never begun")
    cortex.agents_processor(cx).on_span_end(Odd())
    cortex.otel_processor(cx).on_end(Odd())
    check(cx.stats.failed == 4, cx.stats)


if __name__ == "__main__":
    main()
