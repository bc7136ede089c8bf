"""OpenAI Agents SDK: a trace processor."""
from __future__ import annotations

import datetime
from typing import Any, Dict, Optional

from .._recorder import Recorder
from .._values import Json, text_of
from .common import decoded, first, guard, items, member, new_messages, put, recorder_of, tokens_of


def agents_processor(cx: Optional[Recorder] = None) -> Any:
    """`agents.add_trace_processor(cortex.agents_processor())`: models, tools, handoffs and guardrails
    become steps."""
    recorder = recorder_of(cx)
    try:
        from agents.tracing import TracingProcessor
    except ImportError:
        return AgentsProcessor(recorder)
    made = type("CortexTracingProcessor", (AgentsProcessor, TracingProcessor), {})
    return made(recorder)


class AgentsProcessor:
    """The methods of `agents.tracing.TracingProcessor`."""

    def __init__(self, cx: Recorder) -> None:
        self._cx = cx
        self._names: Dict[str, str] = {}  # span of an agent -> its name

    def on_trace_start(self, trace: Any) -> None:
        guard(self._cx, lambda: self._cx.note(
            f"run {member(trace, 'name') or ''}".strip(),
            **put({"api": "openai.agents"}, trace_id=member(trace, "trace_id"))))

    def on_trace_end(self, trace: Any) -> None:
        self._names.clear()

    def on_span_start(self, span: Any) -> None:
        def begin() -> None:
            data = member(span, "span_data")
            kind = member(data, "type")
            if kind == "agent":
                self._names[str(member(span, "span_id"))] = str(member(data, "name"))
            elif kind == "function":
                self._cx.begin_call(str(member(data, "name")), decoded(member(data, "input")),
                                    call_id=str(member(span, "span_id")), **self._about(span))
        guard(self._cx, begin)

    def on_span_end(self, span: Any) -> None:
        guard(self._cx, lambda: self._end(span, member(span, "span_data")))

    def _about(self, span: Any) -> Json:
        return put({"api": "openai.agents"}, by=self._names.get(str(member(span, "parent_id"))),
                   duration_ns=_duration(span))

    def _end(self, span: Any, data: Any) -> None:
        kind, error = member(data, "type"), member(span, "error")
        about = self._about(span)
        if kind == "function":
            self._cx.end_call(str(member(data, "name")), str(member(span, "span_id")),
                              decoded(member(data, "output")), error=error,
                              arguments=decoded(member(data, "input")), **about)
        elif kind == "generation":
            self._cx.record(put(dict(about, kind="message", role="assistant"), error=error,
                                text=text_of(member(data, "output")), model=member(data, "model"),
                                tokens=tokens_of(member(data, "usage")),
                                input=new_messages(member(data, "input"))))
        elif kind == "response":
            self._response(data, dict(about, kind="message", role="assistant"), error)
        elif kind == "handoff":
            to = str(member(data, "to_agent"))
            self._cx.handoff(to, f"{member(data, 'from_agent')} to {to}", **put(about, error=error))
        elif kind == "guardrail":
            triggered = bool(member(data, "triggered"))
            self._cx.record(put(dict(about, kind="decision", gate=member(data, "name"),
                                     verdict="refused" if triggered else "allowed",
                                     text=f"guardrail {member(data, 'name')}"), error=error))
        elif kind == "agent":
            self._names.pop(str(member(span, "span_id")), None)
            if error is not None:
                self._cx.record(dict(about, kind="error", text=str(member(data, "name")), error=error))
        elif error is not None or kind == "custom":
            self._cx.record(put(dict(about, kind="note", text=str(member(data, "name") or kind)),
                                error=error, data=member(data, "data")))

    def _response(self, data: Any, event: Json, error: Any) -> None:
        response = member(data, "response")
        calls = [{"call_id": first(i, "call_id", "id"), "tool": member(i, "name"),
                  "arguments": decoded(member(i, "arguments"))}
                 for i in items(member(response, "output")) if member(i, "type") == "function_call"]
        texts = [text_of(member(i, "content")) or "" for i in items(member(response, "output"))
                 if member(i, "type") == "message"]
        self._cx.record(put(event, error=error, text="\n\n".join(texts), model=member(response, "model"),
                            tokens=tokens_of(member(response, "usage")), tool_calls=calls,
                            input=new_messages(member(data, "input"))))

    def shutdown(self) -> None:
        self.force_flush()

    def force_flush(self) -> None:
        guard(self._cx, lambda: self._cx.flush(5.0))


def _duration(span: Any) -> Optional[int]:
    try:
        begin, end = (datetime.datetime.fromisoformat(str(member(span, name)).replace("Z", "+00:00"))
                      for name in ("started_at", "ended_at"))
        return int((end - begin).total_seconds() * 1e9)
    except ValueError:
        return None
