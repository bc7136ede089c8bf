"""What the integrations share. Reading a shape never raises: what is not as expected is left out, and
what was read is recorded."""
from __future__ import annotations

import inspect
import json
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from .._recorder import Recorder, log
from .._values import Json, plain, text_of


def recorder_of(cx: Optional[Recorder]) -> Recorder:
    if cx is not None:
        return cx
    from .. import current
    return current()


def member(value: Any, *names: str) -> Any:
    """A member of an object or a mapping, by its path; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        if value is None:
            return None
    return value


def first(value: Any, *names: str) -> Any:
    for name in names:
        found = member(value, name)
        if found is not None:
            return found
    return None


def items(value: Any) -> List[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def decoded(text: Any) -> Any:
    """JSON in a text becomes its value."""
    if isinstance(text, str):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def tokens_of(usage: Any) -> Optional[Json]:
    found = {"input": first(usage, "input_tokens", "prompt_tokens"),
             "output": first(usage, "output_tokens", "completion_tokens"),
             "cached": first(usage, "cache_read_input_tokens", "cached_input_tokens")}
    for details in ("prompt_tokens_details", "input_tokens_details"):
        if found["cached"] is None:
            found["cached"] = member(usage, details, "cached_tokens")
    made = {name: value for name, value in found.items() if isinstance(value, int)}
    return made or None


def role_of(message: Any) -> str:
    found = first(message, "role", "type")
    return {"human": "user", "ai": "assistant"}.get(str(found), str(found or "user"))


def new_messages(messages: Any) -> List[Json]:
    """What a model was given: the messages after its own last one (docs/formats/imports.md §1.15)."""
    if isinstance(messages, str):
        return [{"role": "user", "text": messages}]
    given: List[Json] = []
    for message in items(messages):
        role = role_of(message)
        if role == "assistant":
            given = []
            continue
        said = first(message, "content", "text", "output")
        text = text_of(said)
        if text is None and said is not None:
            text = json.dumps(plain(said))
        given.append({"role": role, "text": text or ""})
    return given


def put(event: Json, **members: Any) -> Json:
    """Adds what is there: no None, no empty text or list."""
    event.update({n: v for n, v in members.items() if v is not None and v != "" and v != []})
    return event


class Timer:
    def __init__(self) -> None:
        self.started = time.perf_counter_ns()

    @property
    def ns(self) -> int:
        return time.perf_counter_ns() - self.started


def guard(cx: Recorder, call: Callable[[], Any]) -> Any:
    """Runs what reads and records; the program goes on whatever comes of it, and it is said."""
    try:
        return call()
    except Exception as error:
        cx.stats_.failed += 1
        cx._say("integration", "a call was not recorded: %s: %s", type(error).__name__, error)
        log.debug("integration", exc_info=True)
        return None


_MARK = "_cortex_recorded"


def wrap_method(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> bool:
    """Replaces a method of one object, once; False when there is no such method."""
    original = getattr(owner, name, None)
    if not callable(original):
        return False
    if getattr(original, _MARK, False):
        return True
    wrapped = make(original)
    setattr(wrapped, _MARK, True)
    setattr(owner, name, wrapped)
    return True


# What it returns, unless None, is handed on in place of the result.
Done = Callable[[Any, Optional[BaseException]], Any]


def call_recorded(original: Callable[..., Any], args: Any, kwargs: Dict[str, Any], done: Done) -> Any:
    """Calls it, and `done(result, error)` after it or, of a coroutine, after it was awaited."""
    try:
        result = original(*args, **kwargs)
    except BaseException as error:
        done(None, error)
        raise
    if inspect.isawaitable(result):
        async def wait() -> Any:
            try:
                found = await result
            except BaseException as error:
                done(None, error)
                raise
            return _returned(found, done)
        return wait()
    return _returned(result, done)


def _returned(result: Any, done: Done) -> Any:
    changed = done(result, None)
    return result if changed is None else changed


class RecordedStream:
    """A stream of a model's answer, handed on unchanged; `finish` is called once, at its end."""

    def __init__(self, stream: Any, see: Callable[[Any], None],
                 finish: Callable[[Optional[BaseException]], Any]) -> None:
        self._stream, self._see, self._finish = stream, see, finish
        self._iterator: Any = None
        self._over = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _end(self, error: Optional[BaseException] = None) -> None:
        if not self._over:
            self._over = True
            self._finish(error)

    def _seen(self, item: Any) -> Any:
        try:
            self._see(item)
        except Exception:
            log.debug("integration", exc_info=True)
        return item

    def __iter__(self) -> "RecordedStream":
        self._iterator = iter(self._stream)
        return self

    def __next__(self) -> Any:
        if self._iterator is None:
            self._iterator = iter(self._stream)
        try:
            return self._seen(next(self._iterator))
        except StopIteration:
            self._end()
            raise
        except BaseException as error:
            self._end(error)
            raise

    def __aiter__(self) -> "RecordedStream":
        self._iterator = self._stream.__aiter__()
        return self

    async def __anext__(self) -> Any:
        if self._iterator is None:
            self._iterator = self._stream.__aiter__()
        try:
            return self._seen(await self._iterator.__anext__())
        except StopAsyncIteration:
            self._end()
            raise
        except BaseException as error:
            self._end(error)
            raise

    def __enter__(self) -> "RecordedStream":
        if hasattr(self._stream, "__enter__"):
            self._stream.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self._end(error)
        return self._stream.__exit__(kind, error, trace) if hasattr(self._stream, "__exit__") else None

    async def __aenter__(self) -> "RecordedStream":
        if hasattr(self._stream, "__aenter__"):
            await self._stream.__aenter__()
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> Any:
        self._end(error)
        if hasattr(self._stream, "__aexit__"):
            return await self._stream.__aexit__(kind, error, trace)
        return None

    def close(self) -> Any:
        self._end()
        return self._stream.close()

    def __del__(self) -> None:
        if getattr(self, "_over", True) is False:
            self._end()
