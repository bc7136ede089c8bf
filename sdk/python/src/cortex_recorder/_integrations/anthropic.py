"""Anthropic's client: messages.create, also asynchronous and streamed, and messages.stream."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Optional, TypeVar

from .._errors import UsageError
from .._recorder import Recorder
from .._values import Json, text_of
from .common import (RecordedStream, Timer, call_recorded, decoded, guard, items, member,
                     new_messages, put, recorder_of, tokens_of, wrap_method)

C = TypeVar("C")


def instrument_anthropic(client: C, cx: Optional[Recorder] = None) -> C:
    """`client = cortex.instrument_anthropic(Anthropic())`: each call of a model becomes a message."""
    recorder = recorder_of(cx)
    messages = member(client, "messages")
    if messages is None or not wrap_method(messages, "create", lambda o: _create(recorder, o)):
        raise UsageError("instrument_anthropic: found no messages.create; expected a client of the "
                         "package anthropic")
    wrap_method(messages, "stream", lambda o: _stream(recorder, o))
    return client


def _create(cx: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    def create(*args: Any, **kwargs: Any) -> Any:
        one = _Reader(kwargs)

        def done(result: Any, error: Optional[BaseException]) -> Any:
            if error is None and kwargs.get("stream"):
                return RecordedStream(result, one.see,
                                      lambda e: guard(cx, lambda: cx.record(one.event(e))))
            if error is None:
                guard(cx, lambda: one.take(result))
            guard(cx, lambda: cx.record(one.event(error)))
            return None
        return call_recorded(original, args, kwargs, done)
    return create


def _stream(cx: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    def stream(*args: Any, **kwargs: Any) -> Any:
        return _Manager(cx, original(*args, **kwargs), _Reader(kwargs))
    return stream


class _Manager:
    """The context manager of messages.stream; the stream itself is handed on as it is."""

    def __init__(self, cx: Recorder, manager: Any, reader: "_Reader") -> None:
        self._cx, self._manager, self._reader = cx, manager, reader
        self._stream: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def _done(self, error: Optional[BaseException]) -> None:
        def read() -> None:
            self._reader.take(getattr(self._stream, "current_message_snapshot", None))
        guard(self._cx, read)
        guard(self._cx, lambda: self._cx.record(self._reader.event(error)))

    def __enter__(self) -> Any:
        self._stream = self._manager.__enter__()
        return self._stream

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self._done(error)
        return self._manager.__exit__(kind, error, trace)

    async def __aenter__(self) -> Any:
        self._stream = await self._manager.__aenter__()
        return self._stream

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self._done(error)
        found = self._manager.__aexit__(kind, error, trace)
        return await found if inspect.isawaitable(found) else found


class _Reader:
    def __init__(self, request: Dict[str, Any]) -> None:
        self.request, self.timer = request, Timer()
        self.model: Any = request.get("model")
        self.blocks: List[Json] = []
        self.usage: Json = {}
        self.stop: Any = None
        self.id: Any = None

    def take(self, message: Any) -> None:
        self.model = member(message, "model") or self.model
        self.stop, self.id = member(message, "stop_reason"), member(message, "id")
        self._count(member(message, "usage"))
        self.blocks = [self._block(block) for block in items(member(message, "content"))]

    def _block(self, block: Any) -> Json:
        return {"type": member(block, "type"), "text": member(block, "text") or "",
                "thinking": member(block, "thinking") or "", "id": member(block, "id"),
                "name": member(block, "name"), "input": member(block, "input"), "json": ""}

    def _count(self, usage: Any) -> None:
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens"):
            found = member(usage, name)
            if isinstance(found, int):
                self.usage[name] = found

    def see(self, part: Any) -> None:
        kind = member(part, "type")
        if kind == "message_start":
            self.take(member(part, "message"))
        elif kind == "content_block_start":
            self.blocks.append(self._block(member(part, "content_block")))
        elif kind == "content_block_delta" and self.blocks:
            block, delta = self.blocks[-1], member(part, "delta")
            block["text"] += member(delta, "text") or ""
            block["thinking"] += member(delta, "thinking") or ""
            block["json"] += member(delta, "partial_json") or ""
        elif kind == "message_delta":
            self.stop = member(part, "delta", "stop_reason") or self.stop
            self._count(member(part, "usage"))

    def event(self, error: Optional[BaseException]) -> Json:
        event: Json = {"kind": "message", "role": "assistant", "api": "anthropic.messages",
                       "duration_ns": self.timer.ns}
        calls = [{"call_id": b["id"], "tool": b["name"],
                  "arguments": decoded(b["json"]) if b["json"] else b["input"]}
                 for b in self.blocks if b["type"] in ("tool_use", "server_tool_use")]
        given = new_messages(self.request.get("messages"))
        system = text_of(self.request.get("system"))
        if system and len(items(self.request.get("messages"))) == len(given):  # of the first call only
            given.insert(0, {"role": "system", "text": system})
        put(event, text="\n\n".join(b["text"] for b in self.blocks if b["text"]),
            thinking="\n\n".join(b["thinking"] for b in self.blocks if b["thinking"]),
            model=self.model, stop=self.stop, tokens=tokens_of(self.usage), tool_calls=calls,
            input=given, message_id=self.id)
        if error is not None:
            event["kind"] = "error"
            event["error"] = error
        return event
