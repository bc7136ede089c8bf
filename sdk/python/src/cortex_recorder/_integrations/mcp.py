"""MCP: a ClientSession of the package mcp."""
from __future__ import annotations

from typing import Any, Callable, Optional, TypeVar

from .._errors import UsageError
from .._recorder import Recorder
from .._values import text_of
from .common import Timer, call_recorded, first, guard, member, recorder_of, wrap_method

S = TypeVar("S")


def instrument_mcp(session: S, cx: Optional[Recorder] = None, server: Optional[str] = None) -> S:
    """`cortex.instrument_mcp(session)`: calls of tools, before and after; resources and prompts that
    are read. `server` names the server in the steps."""
    recorder = recorder_of(cx)
    about = {"api": "mcp", **({"server": server} if server else {})}
    if not wrap_method(session, "call_tool", lambda o: _call_tool(recorder, o, about)):
        raise UsageError("instrument_mcp: found no call_tool; expected a ClientSession of the package mcp")
    for method, member_name in (("read_resource", "contents"), ("get_prompt", "messages")):
        wrap_method(session, method, _reads(recorder, method, member_name, about))
    return session


def _call_tool(cx: Recorder, original: Callable[..., Any], about: Any) -> Callable[..., Any]:
    def call_tool(name: str, arguments: Any = None, *args: Any, **kwargs: Any) -> Any:
        call_id, timer = cx._new_key()[1], Timer()
        guard(cx, lambda: cx.begin_call(name, arguments, call_id=call_id, **about))

        def done(result: Any, error: Optional[BaseException]) -> None:
            failure: Any = error
            said: Any = first(result, "structuredContent", "structured_content")
            if said is None:
                said = text_of(member(result, "content"))
            if error is None and bool(first(result, "isError", "is_error")):
                failure, said = {"message": said}, None
            guard(cx, lambda: cx.end_call(name, call_id, said, error=failure, arguments=arguments,
                                          duration_ns=timer.ns, **about))
        return call_recorded(original, (name, arguments, *args), kwargs, done)
    return call_tool


def _reads(cx: Recorder, method: str, member_name: str,
           about: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def read(what: Any, *args: Any, **kwargs: Any) -> Any:
            def done(result: Any, error: Optional[BaseException]) -> None:
                def record() -> None:
                    with cx.step(f"{method} {what}", kind="observation", **about) as s:
                        if error is not None:
                            s.add(error=error)
                        else:
                            s.saw(text_of(member(result, member_name)) or "", name=str(what))
                guard(cx, record)
            return call_recorded(original, (what, *args), kwargs, done)
        return read
    return make
