"""OpenTelemetry: a span processor that makes steps of spans of models, tools and agents (extra
`otel`). Spans of an application that already exports to Cortex do not need it: Cortex reads OTLP."""
from __future__ import annotations

from typing import Any, Mapping, Optional

from .._recorder import Recorder
from .._values import Json
from .common import decoded, guard, items, member, put, recorder_of

_PREFIXES = ("gen_ai.", "llm.", "openinference.", "traceloop.", "ai.")


def otel_processor(cx: Optional[Recorder] = None, all_spans: bool = False) -> Any:
    """`provider.add_span_processor(cortex.otel_processor())`"""
    recorder = recorder_of(cx)
    try:
        from opentelemetry.sdk.trace import SpanProcessor
    except ImportError:
        return OtelProcessor(recorder, all_spans)
    made = type("CortexSpanProcessor", (OtelProcessor, SpanProcessor), {})
    return made(recorder, all_spans)


class OtelProcessor:
    """The methods of `opentelemetry.sdk.trace.SpanProcessor`."""

    def __init__(self, cx: Recorder, all_spans: bool) -> None:
        self._cx, self._all = cx, all_spans

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        pass

    def on_end(self, span: Any) -> None:
        guard(self._cx, lambda: self._end(span))

    def _end(self, span: Any) -> None:
        found = member(span, "attributes")
        attributes: Json = dict(found) if isinstance(found, Mapping) else {}
        if not self._all and not any(n.startswith(_PREFIXES) for n in attributes):
            return
        name = str(member(span, "name"))
        event: Json = {"kind": _kind(attributes), "name": name, "text": name, "api": "opentelemetry",
                       "attributes": attributes}
        begin, end = member(span, "start_time"), member(span, "end_time")
        tokens = put({}, input=_first(attributes, "gen_ai.usage.input_tokens",
                                      "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
                     output=_first(attributes, "gen_ai.usage.output_tokens",
                                   "gen_ai.usage.completion_tokens", "llm.token_count.completion"))
        put(event, by=attributes.get("gen_ai.agent.name"),
            model=_first(attributes, "gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
            tool=_first(attributes, "gen_ai.tool.name", "tool.name"),
            call_id=attributes.get("gen_ai.tool.call.id"),
            arguments=decoded(_first(attributes, "gen_ai.tool.call.arguments", "tool.parameters")),
            result=decoded(attributes.get("gen_ai.tool.call.result")), tokens=tokens or None,
            duration_ns=end - begin if isinstance(begin, int) and isinstance(end, int) else None,
            otel=_ids(span))
        code = member(span, "status", "status_code")
        if str(getattr(code, "name", code)) == "ERROR":
            event["error"] = {"message": member(span, "status", "description") or "error"}
        for one in items(member(span, "events")):
            if member(one, "name") == "exception":
                about = member(one, "attributes") or {}
                event["error"] = put({}, type=about.get("exception.type"),
                                     message=about.get("exception.message"))
        self._cx.record(event)

    def shutdown(self) -> None:
        self.force_flush()

    def force_flush(self, timeout_millis: int = 5000) -> bool:
        return guard(self._cx, lambda: self._cx.flush(timeout_millis / 1000)) is not None


def _first(attributes: Json, *names: str) -> Any:
    return next((attributes[n] for n in names if attributes.get(n) is not None), None)


def _ids(span: Any) -> Optional[Json]:
    context = member(span, "context")
    trace, own = member(context, "trace_id"), member(context, "span_id")
    if not isinstance(trace, int) or not isinstance(own, int):
        return None
    return {"trace_id": f"{trace:032x}", "span_id": f"{own:016x}"}


def _kind(attributes: Json) -> str:
    what = str(_first(attributes, "gen_ai.operation.name", "openinference.span.kind",
                      "traceloop.span.kind") or "").lower()
    if what in ("execute_tool", "tool"):
        return "tool_result"
    if what in ("chat", "text_completion", "generate_content", "llm"):
        return "message"
    if what in ("embeddings", "embedding", "retriever"):
        return "observation"
    return "decision" if what in ("invoke_agent", "create_agent", "agent", "workflow", "task", "chain") \
        else "note"
