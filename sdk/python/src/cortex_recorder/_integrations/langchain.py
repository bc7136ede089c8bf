"""LangChain and LangGraph: a callback handler."""
from __future__ import annotations

from typing import Any, Dict, Optional

from .._recorder import Recorder
from .._values import Json, text_of
from .common import (Timer, decoded, first, guard, items, member, new_messages, put, recorder_of,
                     tokens_of)


def langchain_handler(cx: Optional[Recorder] = None) -> Any:
    """`config={"callbacks": [cortex.langchain_handler()]}`: models, tools, retrievers and the nodes of
    a graph become steps."""
    recorder = recorder_of(cx)
    try:
        from langchain_core.callbacks import BaseCallbackHandler
    except ImportError:
        return LangChainHandler(recorder)
    made = type("CortexCallbackHandler", (LangChainHandler, BaseCallbackHandler), {})
    return made(recorder)


class LangChainHandler:
    """The methods that LangChain's callback manager calls."""

    raise_error = False
    run_inline = True  # in order, also where runs are asynchronous
    ignore_llm = ignore_chain = ignore_agent = ignore_retriever = ignore_chat_model = False
    ignore_retry = ignore_custom_event = True

    def __init__(self, cx: Recorder) -> None:
        self._cx = cx
        self._open: Dict[str, Json] = {}

    def _begin(self, run_id: Any, about: Json) -> None:
        if len(self._open) > 10_000:  # runs that never ended
            self._open.pop(next(iter(self._open)))
        self._open[str(run_id)] = dict(about, timer=Timer())

    def _end(self, run_id: Any) -> Json:
        return self._open.pop(str(run_id), {"timer": Timer()})

    # --- models ---

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: Any = None,
                            **more: Any) -> None:
        guard(self._cx, lambda: self._begin(run_id, {
            "input": new_messages((items(messages) or [[]])[0]), "model": _model(more)}))

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: Any = None, **more: Any) -> None:
        guard(self._cx, lambda: self._begin(run_id, {
            "input": [{"role": "user", "text": p} for p in items(prompts)], "model": _model(more)}))

    def on_llm_end(self, response: Any, *, run_id: Any = None, **more: Any) -> None:
        guard(self._cx, lambda: self._model_end(response, self._end(run_id)))

    def _model_end(self, response: Any, run: Json) -> None:
        generation = (items((items(member(response, "generations")) or [[]])[0]) or [None])[0]
        message = member(generation, "message")
        usage = (member(message, "usage_metadata") or member(response, "llm_output", "token_usage")
                 or member(response, "llm_output", "usage"))
        calls = [{"call_id": member(c, "id"), "tool": member(c, "name"), "arguments": member(c, "args")}
                 for c in items(member(message, "tool_calls"))]
        event: Json = {"kind": "message", "role": "assistant", "api": "langchain",
                       "duration_ns": run["timer"].ns}
        self._cx.record(put(
            event, text=text_of(member(message, "content")) or text_of(member(generation, "text")),
            model=(member(message, "response_metadata", "model_name")
                   or member(response, "llm_output", "model_name") or run.get("model")),
            tokens=tokens_of(usage), tool_calls=calls, input=run.get("input")))

    def on_llm_error(self, error: BaseException, *, run_id: Any = None, **more: Any) -> None:
        guard(self._cx, lambda: self._failed(error, self._end(run_id)))

    def _failed(self, error: BaseException, run: Json) -> None:
        self._cx.error(error, **put({"duration_ns": run["timer"].ns}, input=run.get("input"),
                                    model=run.get("model"), name=run.get("name")))

    # --- tools ---

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Any = None, inputs: Any = None,
                      **more: Any) -> None:
        def begin() -> None:
            name = str(first(serialized, "name") or more.get("name") or "tool")
            arguments = inputs if inputs is not None else decoded(input_str)
            self._begin(run_id, {"tool": name, "arguments": arguments})
            self._cx.begin_call(name, arguments, call_id=str(run_id))
        guard(self._cx, begin)

    def on_tool_end(self, output: Any, *, run_id: Any = None, **more: Any) -> None:
        def end() -> None:
            run = self._end(run_id)
            result = member(output, "content") if member(output, "content") is not None else output
            self._cx.end_call(str(run.get("tool", "tool")), str(run_id), result,
                              arguments=run.get("arguments"), duration_ns=run["timer"].ns)
        guard(self._cx, end)

    def on_tool_error(self, error: BaseException, *, run_id: Any = None, **more: Any) -> None:
        def end() -> None:
            run = self._end(run_id)
            self._cx.end_call(str(run.get("tool", "tool")), str(run_id), error=error,
                              arguments=run.get("arguments"), duration_ns=run["timer"].ns)
        guard(self._cx, end)

    # --- retrievers ---

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: Any = None, **more: Any) -> None:
        guard(self._cx, lambda: self._begin(run_id, {"query": query}))

    def on_retriever_end(self, documents: Any, *, run_id: Any = None, **more: Any) -> None:
        def end() -> None:
            run = self._end(run_id)
            with self._cx.step("retrieve", kind="observation", query=run.get("query"),
                               duration_ns=run["timer"].ns) as s:
                for document in items(documents)[:100]:
                    s.saw(document)
        guard(self._cx, end)

    def on_retriever_error(self, error: BaseException, *, run_id: Any = None, **more: Any) -> None:
        guard(self._cx, lambda: self._failed(error, self._end(run_id)))

    # --- nodes of a graph ---

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any = None, metadata: Any = None,
                       parent_run_id: Any = None, **more: Any) -> None:
        def begin() -> None:
            name = more.get("name") or first(serialized, "name")
            node = member(metadata, "langgraph_node")
            about: Json = {"name": name, "root": parent_run_id is None}
            if node is not None and name == node:
                about["node"] = node
            self._begin(run_id, about)
        guard(self._cx, begin)

    def on_chain_end(self, outputs: Any, *, run_id: Any = None, **more: Any) -> None:
        def end() -> None:
            run = self._end(run_id)
            if run.get("node"):
                self._cx.record({"kind": "decision", "name": run["node"], "text": f"node {run['node']}",
                                 "result": outputs, "api": "langgraph", "duration_ns": run["timer"].ns})
        guard(self._cx, end)

    def on_chain_error(self, error: BaseException, *, run_id: Any = None, **more: Any) -> None:
        def end() -> None:
            run = self._end(run_id)
            if run.get("node") or run.get("root"):
                self._failed(error, run)
        guard(self._cx, end)


def _model(more: Json) -> Any:
    return (member(more.get("invocation_params"), "model")
            or member(more.get("invocation_params"), "model_name")
            or member(more.get("metadata"), "ls_model_name"))
