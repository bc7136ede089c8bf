"""Claude Agent SDK: the stream of messages of `query` or of a client."""
from __future__ import annotations

from typing import Any, AsyncIterator, Dict, List, Optional, TypeVar

from .._recorder import Recorder
from .._values import Json, text_of
from .common import first, guard, items, member, put, recorder_of, tokens_of

M = TypeVar("M")


async def watch_claude(messages: AsyncIterator[M], cx: Optional[Recorder] = None) -> AsyncIterator[M]:
    """`async for message in cortex.watch_claude(query(prompt=...)):` - the messages, unchanged; what
    they say becomes steps."""
    reader = _Reader(recorder_of(cx))
    try:
        async for message in messages:
            guard(reader.cx, lambda: reader.read(message))  # noqa: B023  called at once
            yield message
    except BaseException as error:
        if not isinstance(error, GeneratorExit):
            reader.cx.error(error, api="claude.agent")
        raise


class _Reader:
    """Tells the kinds apart by the names of their classes."""

    def __init__(self, cx: Recorder) -> None:
        self.cx = cx
        self.tools: Dict[str, Json] = {}  # call id -> name and arguments

    def read(self, message: Any) -> None:
        kind = type(message).__name__
        if kind == "AssistantMessage":
            self._assistant(message)
        elif kind == "UserMessage":
            self._user(message)
        elif kind == "ResultMessage":
            self._result(message)
        elif kind == "SystemMessage" and member(message, "subtype") == "init":
            data = member(message, "data") or {}
            self.cx.note("session " + str(first(data, "session_id") or ""), api="claude.agent",
                         **put({}, model=first(data, "model"), tools=first(data, "tools")))

    def _assistant(self, message: Any) -> None:
        blocks = items(member(message, "content"))
        text = [member(b, "text") for b in blocks if type(b).__name__ == "TextBlock"]
        thinking = [member(b, "thinking") for b in blocks if type(b).__name__ == "ThinkingBlock"]
        uses = [b for b in blocks if type(b).__name__ == "ToolUseBlock"]
        within = member(message, "parent_tool_use_id")
        if text or thinking:
            self.cx.record(put({"kind": "message", "role": "assistant", "api": "claude.agent"},
                               text="\n\n".join(t for t in text if t),
                               thinking="\n\n".join(t for t in thinking if t),
                               model=member(message, "model"), parent_call=within,
                               tokens=tokens_of(member(message, "usage"))))
        for use in uses:
            call, name = str(member(use, "id")), str(member(use, "name"))
            self.tools[call] = {"name": name, "input": member(use, "input")}
            self.cx.begin_call(name, member(use, "input"), call_id=call,
                               **put({"api": "claude.agent"}, parent_call=within))

    def _user(self, message: Any) -> None:
        content = member(message, "content")
        results: List[Any] = [b for b in items(content) if type(b).__name__ == "ToolResultBlock"]
        for block in results:
            call = str(member(block, "tool_use_id"))
            tool = self.tools.pop(call, {"name": "tool", "input": None})
            said = text_of(member(block, "content")) or member(block, "content")
            failed = bool(member(block, "is_error"))
            self.cx.end_call(tool["name"], call, None if failed else said, arguments=tool["input"],
                             error={"message": said} if failed else None, api="claude.agent")
        text = content if isinstance(content, str) else text_of(
            [b for b in items(content) if type(b).__name__ == "TextBlock"])
        if text:
            self.cx.message("user", text, api="claude.agent")

    def _result(self, message: Any) -> None:
        milliseconds = member(message, "duration_ms")
        event: Json = {"kind": "error" if member(message, "is_error") else "note", "api": "claude.agent"}
        self.cx.record(put(event, text=member(message, "result") or member(message, "subtype"),
                           cost_usd=member(message, "total_cost_usd"), turns=member(message, "num_turns"),
                           session_id=member(message, "session_id"),
                           usage=tokens_of(member(message, "usage")),
                           duration_ns=None if milliseconds is None else int(milliseconds) * 1_000_000))
