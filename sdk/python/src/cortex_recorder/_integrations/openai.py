"""OpenAI's client: chat.completions and responses, also asynchronous and streamed."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, TypeVar

from .._recorder import Recorder
from .._errors import UsageError
from .._values import Json, text_of
from .common import (RecordedStream, Timer, call_recorded, decoded, first, guard, items, member,
                     new_messages, put, recorder_of, tokens_of, wrap_method)

C = TypeVar("C")


def instrument_openai(client: C, cx: Optional[Recorder] = None) -> C:
    """`client = cortex.instrument_openai(OpenAI())`: each call of a model becomes a message."""
    recorder = recorder_of(cx)
    found = False
    for owner, reader in ((member(client, "chat", "completions"), _Chat),
                          (member(client, "responses"), _Responses)):
        if owner is None:
            continue
        for method in ("create", "parse"):
            found |= wrap_method(owner, method, _recorded(recorder, reader))
    if not found:
        raise UsageError("instrument_openai: found no chat.completions.create and no responses.create; "
                         "expected a client of the package openai")
    return client


def _recorded(cx: Recorder, reader: "type[_Reader]") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def create(*args: Any, **kwargs: Any) -> Any:
            one = reader(kwargs)

            def done(result: Any, error: Optional[BaseException]) -> Any:
                if error is None and kwargs.get("stream"):
                    return RecordedStream(result, one.see, lambda e: guard(
                        cx, lambda: cx.record(one.event(e))))
                if error is None:
                    guard(cx, lambda: one.take(result))
                guard(cx, lambda: cx.record(one.event(error)))
                return None
            return call_recorded(original, args, kwargs, done)
        return create
    return make


class _Reader:
    api = ""

    def __init__(self, request: Dict[str, Any]) -> None:
        self.request, self.timer = request, Timer()
        self.text: List[str] = []
        self.calls: List[Json] = []
        self.thinking: Optional[str] = None
        self.model: Any = request.get("model")
        self.usage: Any = None
        self.stop: Any = None
        self.id: Any = None

    def given(self) -> Any:
        return self.request.get("messages")

    def take(self, answer: Any) -> None:
        raise NotImplementedError

    def see(self, part: Any) -> None:
        raise NotImplementedError

    def event(self, error: Optional[BaseException]) -> Json:
        event: Json = {"kind": "message", "role": "assistant", "api": self.api,
                       "duration_ns": self.timer.ns}
        for call in self.calls:
            call["arguments"] = decoded(call.get("arguments"))
        put(event, text="".join(self.text), thinking=self.thinking, model=self.model, stop=self.stop,
            tokens=tokens_of(self.usage), tool_calls=self.calls, input=new_messages(self.given()),
            message_id=self.id)
        if error is not None:
            event["kind"] = "error"
            event["error"] = error
        return event


class _Chat(_Reader):
    api = "openai.chat.completions"

    def take(self, answer: Any) -> None:
        self.model = member(answer, "model") or self.model
        self.usage, self.id = member(answer, "usage"), member(answer, "id")
        for choice in items(member(answer, "choices"))[:1]:
            message = member(choice, "message")
            self.stop = member(choice, "finish_reason")
            self.text.append(text_of(first(message, "content", "refusal")) or "")
            for call in items(member(message, "tool_calls")):
                self.calls.append({"call_id": member(call, "id"),
                                   "tool": first(member(call, "function") or call, "name"),
                                   "arguments": member(call, "function", "arguments")})

    def see(self, part: Any) -> None:
        self.model = member(part, "model") or self.model
        self.usage = member(part, "usage") or self.usage
        self.id = member(part, "id") or self.id
        for choice in items(member(part, "choices"))[:1]:
            self.stop = member(choice, "finish_reason") or self.stop
            self.text.append(member(choice, "delta", "content") or "")
            for call in items(member(choice, "delta", "tool_calls")):
                at = member(call, "index") or 0
                while len(self.calls) <= at and at < 256:
                    self.calls.append({"call_id": None, "tool": "", "arguments": ""})
                one = self.calls[min(at, 255)]
                one["call_id"] = member(call, "id") or one["call_id"]
                one["tool"] += member(call, "function", "name") or ""
                one["arguments"] += member(call, "function", "arguments") or ""


class _Responses(_Reader):
    api = "openai.responses"

    def given(self) -> Any:
        return self.request.get("input")

    def take(self, answer: Any) -> None:
        self.model = member(answer, "model") or self.model
        self.usage, self.id = member(answer, "usage"), member(answer, "id")
        self.stop = member(answer, "status")
        for item in items(member(answer, "output")):
            kind = member(item, "type")
            if kind == "message":
                self.text.append(text_of(member(item, "content")) or "")
            elif kind == "reasoning":
                self.thinking = text_of(member(item, "summary"))
            elif kind in ("function_call", "custom_tool_call", "mcp_call"):
                self.calls.append({"call_id": first(item, "call_id", "id"), "tool": member(item, "name"),
                                   "arguments": first(item, "arguments", "input")})

    def see(self, part: Any) -> None:
        kind = member(part, "type")
        if kind in ("response.completed", "response.failed", "response.incomplete"):
            self.text = []
            self.take(member(part, "response"))
        elif kind == "response.output_text.delta":
            self.text.append(member(part, "delta") or "")
