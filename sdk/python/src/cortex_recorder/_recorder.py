"""What an agent calls: steps, tools, gates. Where steps go is the business of the subclasses (a spool
and a server: _client.py; memory: testing.py)."""
from __future__ import annotations

import contextvars
import functools
import inspect
import itertools
import logging
import os
import threading
import time
from types import TracebackType
from typing import (Any, Awaitable, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set,
                    Tuple, Type, TypeVar, Union, cast, overload)

from ._errors import Refused, UsageError
from ._keys import SigningKey
from ._receipt import Receipt
from ._values import Json, canonical, cut, digest, error_members, plain, to_sign

log = logging.getLogger("cortex_recorder")

KINDS = ("message", "decision", "tool_call", "tool_result", "observation", "handoff", "memory",
         "error", "note")
MAX_STEP = 1 << 20     # bytes of one step; what is longer is shortened, and says so
EXCERPT = 2000         # characters kept of what was seen
REASON = 400           # of each reason in `because`
STATE_TEXT = 4096      # characters of a text in a state
SAID_EVERY_S = 60.0

F = TypeVar("F", bound=Callable[..., Any])
Redact = Callable[[Json], Optional[Json]]


class Ref(NamedTuple):
    """A step by the key that its sender gave it; another agent's step can follow it."""
    agent: str
    key: str


class Source(NamedTuple):
    """What a step saw; give it to `because`."""
    sha256: str
    name: Optional[str]
    text: Optional[str]
    ref: Optional[Ref]


class Call(NamedTuple):
    """What a gate is asked about."""
    gate: str
    tool: str
    arguments: Json
    call_id: str
    agent: str


class Change(NamedTuple):
    """One change that led to a value, newest first in the answer of `why`."""
    agent: str
    seq: int
    node: str
    key: str
    old: Any
    new: Any
    event: Json

    @property
    def because(self) -> List[str]:
        """The reasons that were given for this change, as text."""
        wanted = self.key.replace("/", ".")
        wanted = wanted[1:] if wanted.startswith(".") else wanted
        reasons = []
        for reason in self.event.get("reasons") or []:
            if isinstance(reason, dict) and _same_key(reason.get("key"), wanted):
                reasons.append(_shown(reason))
        return reasons


def _shown(reason: Json) -> str:
    return str(reason.get("text") or reason.get("name") or reason.get("step") or reason.get("sha256"))


def _same_key(found: Any, wanted: str) -> bool:
    if not isinstance(found, str):
        return False
    found = found.replace("/", ".")
    tail = found.split(".", 1)[-1]
    return wanted in (found, tail) or found.startswith(wanted + ".") or tail.startswith(wanted + ".")


class Stats:
    """Counts since init(). Nothing is left out without one of them being raised."""

    def __init__(self) -> None:
        self.recorded = 0    # written to the spool
        self.delivered = 0   # durable on the server (also those that were there)
        self.dropped = 0     # not recorded: the spool was full, or the disk refused
        self.rejected = 0    # the server does not take them; they are in rejected.jsonl
        self.suppressed = 0  # redact() returned None
        self.shortened = 0   # longer than 1 MiB
        self.failed = 0      # calls of the recorder that failed inside of it
        self.damaged = 0     # lines of the spool with a wrong check sum
        self.torn = 0        # ends of segments that a crash cut; their calls had not returned
        self.pending = 0     # in the spool, not delivered

    def __repr__(self) -> str:
        return "Stats(" + ", ".join(f"{n}={v}" for n, v in vars(self).items()) + ")"


Seen = Union[Source, Ref, str, bytes, Mapping[str, Any], Any]


class Step:
    """One step, recorded when its `with` block ends; an exception in the block is its error."""

    def __init__(self, recorder: "Recorder", name: Optional[str], members: Json) -> None:
        self._recorder = recorder
        self._event: Json = {"kind": "decision"}
        if name is not None:
            self._event["name"] = name
        self._delta: Json = {}
        self._parents: List[Any] = []
        self._seen: List[Tuple[Any, Source]] = []
        self._because: List[Json] = []
        self._started = time.perf_counter_ns()
        self._token: Optional[contextvars.Token[Optional["Step"]]] = None
        self._outer: Optional[Step] = None
        self._done = False
        self._generation, self.key = recorder._new_key()
        self.add(**members)

    @property
    def ref(self) -> Ref:
        return Ref(self._recorder.agent, self.key)

    # --- what happened ---

    def add(self, **members: Any) -> "Step":
        """Members of the event: kind, text, role, model, tokens, or the program's own."""
        for name, value in members.items():
            if name.startswith("__"):
                raise UsageError(f"event: the name {name!r} begins with __, which is for Cortex's own")
            if name == "kind" and value not in KINDS:
                raise UsageError(f"kind: found {value!r}, expected one of {', '.join(KINDS)}")
            self._event[name] = value
        return self

    def say(self, text: str, role: Optional[str] = None) -> "Step":
        self._event["text"] = text
        if role is not None:
            self._event["role"] = role
        return self

    def saw(self, value: Seen, name: Optional[str] = None) -> Source:
        """Notes what the step is based on: a text, bytes, a document, or another agent's step (a Ref,
        which becomes a parent)."""
        if isinstance(value, Source):
            source = value
        elif isinstance(value, Ref):
            source = Source("", name, None, value)
        else:
            source = _source_of(value, name)
        if source.ref is not None:
            self.follow(source.ref)
        self._seen.append((value, source))
        return source

    def follow(self, *steps: Union[Ref, str]) -> "Step":
        """Parents: steps of other agents, as Ref, hash, AGENT#SEQ or @AGENT."""
        for step in steps:
            self._parents.append({"agent": step.agent, "key": step.key} if isinstance(step, Ref)
                                 else step)
        return self

    # --- what changed ---

    def set(self, path: str, value: Any, because: Seen = None) -> "Step":
        """`memory/limit`, `beliefs/safe`; a path without a section is in memory. None removes it."""
        section, names = _path(path)
        inner = self._delta.setdefault(section, {})
        for name in names[:-1]:
            found = inner.get(name)
            if not isinstance(found, dict):
                found = inner[name] = {}
            inner = found
        inner[names[-1]] = value
        self._reason(".".join([section, *names]), because)
        return self

    def forget(self, path: str, because: Seen = None) -> "Step":
        return self.set(path, None, because)

    def believe(self, name: str, value: Any, confidence: float = 1.0, because: Seen = None) -> "Step":
        return self.set("beliefs/" + name, {"value": value, "confidence": confidence}, because)

    def goals(self, goals: Iterable[Any], because: Seen = None) -> "Step":
        """All goals; replaces the former ones."""
        self._delta["goals"] = list(goals)
        self._reason("goals", because)
        return self

    def _reason(self, key: str, because: Seen) -> None:
        if because is None:
            return
        for one in because if isinstance(because, (list, tuple)) and not isinstance(because, (Ref, Source)) \
                else [because]:
            source = self._source(one)
            reason: Json = {"key": key}
            if source.ref is not None:
                reason["step"] = f"{source.ref.agent}/{source.ref.key}"
            if source.sha256:
                reason["sha256"] = source.sha256
            if source.name:
                reason["name"] = source.name
            if source.text:
                reason["text"] = source.text[:EXCERPT]
            self._because.append(reason)

    def _source(self, value: Seen) -> Source:
        if isinstance(value, Source):
            return value
        if isinstance(value, Ref):
            return Source("", None, None, value)
        for seen, source in self._seen:
            if seen is value:
                return source
        if isinstance(value, str):
            return Source("", None, value, None)
        return _source_of(value, None)

    # --- the block ---

    def __enter__(self) -> "Step":
        self._outer = _current.get()
        self._token = _current.set(self)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if self._token is not None:
            try:
                _current.reset(self._token)
            except ValueError:  # ended in another context, as generators can
                _current.set(self._outer)
        if error is not None:
            self._event.setdefault("error", error)
        self.end()

    async def __aenter__(self) -> "Step":
        return self.__enter__()

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        self.__exit__(kind, error, trace)

    def end(self) -> Ref:
        """Records the step, once; for code without a `with` block."""
        if self._done:
            return self.ref
        self._done = True
        event = self._event
        if self._seen:
            event["saw"] = [_seen_as_json(source) for _, source in self._seen]
        if self._because:
            event["reasons"] = self._because
            event.setdefault("because", "; ".join(dict.fromkeys(
                _shown(reason)[:REASON] for reason in self._because)))
        if self._outer is not None:
            event.setdefault("within", self._outer.key)
        event.setdefault("duration_ns", time.perf_counter_ns() - self._started)
        event.setdefault("text", event.get("name", ""))
        return self._recorder.record(event, state_delta=self._delta, parents=self._parents,
                                     _key=(self._generation, self.key))


def _path(path: str) -> Tuple[str, List[str]]:
    names = [name for name in path.strip("/").split("/")]
    section = names.pop(0) if names[0] in ("memory", "beliefs") else "memory"
    if not names or not all(names):
        raise UsageError(f"path: found {path!r}, expected memory/NAME, beliefs/NAME, or NAME/NAME")
    return section, names


def _source_of(value: Any, name: Optional[str]) -> Source:
    text: Optional[str] = None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Source(digest(bytes(value)), name, None, None)
    if isinstance(value, str):
        text = value
    else:
        for member in ("page_content", "text", "content"):
            found = value.get(member) if isinstance(value, Mapping) else getattr(value, member, None)
            if isinstance(found, str):
                text = found
                break
        about = value.get("metadata") if isinstance(value, Mapping) else getattr(value, "metadata", None)
        if name is None and isinstance(about, Mapping):
            name = about.get("source") or about.get("title")
    if text is None:
        text = canonical(plain(value)).decode()
    data = text.encode("utf-8", "surrogatepass")
    return Source(digest(data), str(name) if name is not None else None, text, None)


def _seen_as_json(source: Source) -> Json:
    seen: Json = {}
    if source.ref is not None:
        seen["step"] = f"{source.ref.agent}/{source.ref.key}"
    if source.sha256:
        seen["sha256"] = source.sha256
    if source.name:
        seen["name"] = source.name
    if source.text is not None:
        seen["text"] = source.text[:EXCERPT]
        if len(source.text) > EXCERPT:
            seen["characters"] = len(source.text)
    return seen


_current: "contextvars.ContextVar[Optional[Step]]" = contextvars.ContextVar("cortex_step", default=None)


class Recorder:
    """Thread-safe, and safe in asyncio: no call of it waits for the network but flush, why and state."""

    def __init__(self, agent: str, key: Optional[SigningKey], redact: Optional[Redact],
                 otel: bool) -> None:
        _check_agent(agent)
        self.agent = agent
        self.signing_key = key
        self.stats_ = Stats()
        self._redact, self._otel = redact, otel
        self._gates: Dict[str, Callable[[Call], Any]] = {}
        self._lock = threading.RLock()
        self._said: Dict[str, float] = {}
        self._gap: Optional[Tuple[int, float, str]] = None
        self._generation = 0
        self._renew()

    def _renew(self) -> None:
        self._sender_id = os.urandom(12).hex()
        self._numbers = itertools.count(1)
        self._generation += 1

    def _new_key(self) -> Tuple[int, str]:
        return self._generation, f"{self._sender_id}-{next(self._numbers)}"

    # --- for subclasses ---

    def _store(self, step: Json, data: bytes) -> bool:
        raise NotImplementedError

    def _why_not(self) -> str:
        raise NotImplementedError

    def flush(self, timeout: float = 30.0) -> Receipt:
        raise NotImplementedError

    async def aflush(self, timeout: float = 30.0) -> Receipt:
        raise NotImplementedError

    def why(self, key: str, events: int = 20) -> "List[Change]":
        raise NotImplementedError

    def state(self) -> Json:
        raise NotImplementedError

    def close(self, timeout: Optional[float] = None) -> None:
        raise NotImplementedError

    @property
    def stats(self) -> Stats:
        return self.stats_

    # --- steps ---

    def step(self, name: Optional[str] = None, **members: Any) -> Step:
        """`with cx.step("triage") as s:` - one step, recorded when the block ends."""
        return Step(self, name, members)

    def message(self, role: str, text: str, **members: Any) -> Ref:
        return self.record({"kind": "message", "role": role, "text": text, **members})

    def observe(self, text: str, **members: Any) -> Ref:
        return self.record({"kind": "observation", "text": text, **members})

    def note(self, text: str, **members: Any) -> Ref:
        return self.record({"kind": "note", "text": text, **members})

    def error(self, error: Union[str, BaseException], **members: Any) -> Ref:
        return self.record({"kind": "error", "text": str(error), "error": error, **members})

    def handoff(self, to: str, text: str = "", **members: Any) -> Ref:
        """Gives work to another agent, whose first step should follow the Ref: `s.saw(ref)`."""
        return self.record({"kind": "handoff", "to": to, "text": text or f"to {to}", **members})

    def record(self, event: Optional[Mapping[str, Any]] = None, *,
               state_delta: Optional[Mapping[str, Any]] = None,
               parents: Iterable[Any] = (), agent: Optional[str] = None,
               timestamp: Optional[float] = None,
               _key: Optional[Tuple[int, str]] = None) -> Ref:
        """Records a step that is complete. Returns when it is in the spool; never raises for what the
        disk, the server or a value does."""
        who = agent or self.agent
        generation, key = _key or self._new_key()
        if generation != self._generation:  # begun before a fork, ended in the child
            key = self._new_key()[1]
        try:
            self._record(who, key, dict(event or {}), state_delta, list(parents), timestamp)
        except Exception as error:
            self.stats_.failed += 1
            self._say("failed", "a step was not recorded: %s: %s", type(error).__name__, error)
        return Ref(who, key)

    def _record(self, agent: str, key: str, event: Json, delta: Optional[Mapping[str, Any]],
                parents: List[Any], timestamp: Optional[float]) -> None:
        outer = _current.get()
        if outer is not None and outer._recorder is self and outer.key != key:
            event.setdefault("within", outer.key)
        if self._otel:
            _add_span(event)
        if event.get("error") is not None and type(event["error"]) is not str:
            event.update(error_members(event["error"]))
        step: Json = {"agent": agent, "event": plain(event), "key": key,
                      "timestamp": round(time.time() if timestamp is None else timestamp, 6)}
        if delta:
            step["state_delta"] = plain(delta)
        if parents:
            step["parents"] = parents[:64]
        if self._redact is not None and not self._redacted(step):
            self.stats_.suppressed += 1
            return
        if self._gap is not None:
            self._tell_gap()
        self._finish(step)

    def _redacted(self, step: Json) -> bool:
        """Lets the program's callback change event and state_delta; False: not to be recorded."""
        assert self._redact is not None
        content: Json = {"event": step["event"], "state_delta": step.get("state_delta", {})}
        try:
            found = self._redact(content)
        except Exception as error:
            self._say("redact", "redact() failed (%s: %s): steps are recorded without their content",
                      type(error).__name__, error)
            found = {"event": {"kind": content["event"].get("kind", "note"),
                               "text": f"[redact() failed: {type(error).__name__}]"}}
        if found is None:
            return False
        step["event"] = plain(found.get("event", {}))
        step.pop("state_delta", None)
        if found.get("state_delta"):
            step["state_delta"] = plain(found["state_delta"])
        return True

    def _finish(self, step: Json) -> None:
        data = self._sealed(step)
        if len(data) > MAX_STEP:
            self.stats_.shortened += 1
            size = len(data)
            step["event"] = dict(plain(step["event"], 2000), too_long=size)
            step["state_delta"] = plain(step.get("state_delta", {}), 2000)
            data = self._sealed(step)
            if len(data) > MAX_STEP:
                step["event"] = {"kind": step["event"].get("kind", "note"), "too_long": size,
                                 "text": cut(str(step["event"].get("text", "")), 2000)}
                step["state_delta"] = {}
                data = self._sealed(step)
        stored = self._store(step, data)
        with self._lock:
            if stored:
                self.stats_.recorded += 1
                return
        self._drop(1)

    def _drop(self, count: int) -> None:
        with self._lock:
            self.stats_.dropped += count
            before, since, _ = self._gap or (0, time.time(), "")
            self._gap = (before + count, since, self._why_not())
        self._say("dropped", "%d steps were dropped: %s", self.stats_.dropped, self._why_not())

    def _take_back(self, count: int) -> None:
        """Steps that counted as recorded, and could not be written after all."""
        with self._lock:
            self.stats_.recorded -= count
        self._drop(count)

    def _sealed(self, step: Json) -> bytes:
        step.pop("signature", None)
        key = self.signing_key
        if key is not None and key.agent == step["agent"]:
            step["signature"] = key.signature_of(to_sign(step))
        return canonical(step)

    def _tell_gap(self) -> None:
        """The first step after a gap says how many are missing, since when, and why."""
        with self._lock:
            gap, self._gap = self._gap, None
        if gap is None:
            return
        count, since, why = gap
        note: Json = {"agent": self.agent, "key": self._new_key()[1], "timestamp": round(time.time(), 6),
                      "event": {"kind": "note", "dropped": count, "since": round(since, 6),
                                "text": f"{count} steps were not recorded: {why}"}}
        if not self._store(note, self._sealed(note)):
            with self._lock:
                newer: Optional[Tuple[int, float, str]] = self._gap
                self._gap = (count + (newer[0] if newer is not None else 0), since, why)

    def _say(self, cause: str, message: str, *args: Any, every: float = SAID_EVERY_S) -> None:
        """A warning in the log, each cause once a minute."""
        now = time.monotonic()
        with self._lock:
            if now - self._said.get(cause, -1e9) < every:
                return
            self._said[cause] = now
        log.warning("agent %s: " + message, self.agent, *args)

    # --- gates ---

    @overload
    def gate(self, name: str, decide: Callable[[Call], Any]) -> Callable[[Call], Any]: ...

    @overload
    def gate(self, name: str, decide: None = None) -> Callable[[F], F]: ...

    def gate(self, name: str, decide: Optional[Callable[[Call], Any]] = None) -> Any:
        """Registers who decides: decide(call) returns True (go on), False or a reason (refused). What
        returns something else, raises, or is not registered refuses."""
        if decide is None:
            def register(function: F) -> F:
                self._gates[name] = function
                return function
            return register
        self._gates[name] = decide
        return decide

    def _verdict(self, call: Call, answer: Any) -> Optional[str]:
        """None: allowed; else the reason."""
        if answer is True:
            return None
        if answer is False:
            return "not allowed"
        if isinstance(answer, str):
            return answer or "not allowed"
        return f"the gate returned {type(answer).__name__}, expected True, False or a reason"

    def _note_verdict(self, call: Call, reason: Optional[str]) -> None:
        verdict = "allowed" if reason is None else "refused"
        self.record({"kind": "decision", "tool": call.tool, "call_id": call.call_id, "gate": call.gate,
                     "verdict": verdict,
                     "text": f"gate {call.gate}: {verdict}" + ("" if reason is None else f": {reason}")})
        if reason is not None:
            self._end_call(call.tool, call.call_id, call.arguments, None, None,
                           {"type": "Refused", "message": reason})
            raise Refused(call.tool, call.gate, reason)

    def _ask_gate(self, call: Call) -> None:
        decide = self._gates.get(call.gate)
        try:
            if decide is None:
                reason: Optional[str] = f"no gate '{call.gate}' is registered"
            else:
                answer = decide(call)
                if inspect.isawaitable(answer):
                    if inspect.iscoroutine(answer):
                        answer.close()
                    reason = "this gate is asynchronous, and the tool is not"
                else:
                    reason = self._verdict(call, answer)
        except Exception as error:
            reason = str(error) if isinstance(error, Refused) \
                else f"the gate failed: {type(error).__name__}: {error}"
        self._note_verdict(call, reason)

    async def _ask_gate_async(self, call: Call) -> None:
        decide = self._gates.get(call.gate)
        try:
            if decide is None:
                reason: Optional[str] = f"no gate '{call.gate}' is registered"
            else:
                answer = decide(call)
                if inspect.isawaitable(answer):
                    answer = await answer
                reason = self._verdict(call, answer)
        except Exception as error:
            reason = str(error) if isinstance(error, Refused) \
                else f"the gate failed: {type(error).__name__}: {error}"
        self._note_verdict(call, reason)

    # --- tools ---

    @overload
    def tool(self, function: F) -> F: ...

    @overload
    def tool(self, function: None = None, *, name: Optional[str] = None,
             gate: Optional[str] = None) -> Callable[[F], F]: ...

    def tool(self, function: Optional[F] = None, *, name: Optional[str] = None,
             gate: Optional[str] = None) -> Any:
        """Records each call of a function before and after it; `gate` may refuse it."""
        def wrap(function: F) -> F:
            return self._wrap_tool(function, name or function.__name__, gate)
        return wrap if function is None else wrap(function)

    def _wrap_tool(self, function: F, name: str, gate: Optional[str]) -> F:
        try:
            signature: Optional[inspect.Signature] = inspect.signature(function)
        except (TypeError, ValueError):
            signature = None

        def begin(args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[str, Json]:
            call_id, arguments = self._new_key()[1], plain(_bound(signature, args, kwargs))
            self.begin_call(name, arguments, call_id=call_id, **({"gate": gate} if gate else {}))
            return call_id, arguments

        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                call_id, arguments = begin(args, kwargs)
                if gate is not None:
                    await self._ask_gate_async(Call(gate, name, arguments, call_id, self.agent))
                started = time.perf_counter_ns()
                try:
                    result = await cast(Callable[..., Awaitable[Any]], function)(*args, **kwargs)
                except BaseException as error:
                    self._end_call(name, call_id, arguments, started, None, error)
                    raise
                self._end_call(name, call_id, arguments, started, result, None)
                return result
            return cast(F, asynchronous)

        @functools.wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            call_id, arguments = begin(args, kwargs)
            if gate is not None:
                self._ask_gate(Call(gate, name, arguments, call_id, self.agent))
            started = time.perf_counter_ns()
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                self._end_call(name, call_id, arguments, started, None, error)
                raise
            self._end_call(name, call_id, arguments, started, result, None)
            return result
        return cast(F, synchronous)

    def begin_call(self, tool: str, arguments: Any = None, *, call_id: str, **members: Any) -> Ref:
        """A tool is about to be called; for code that `tool` cannot wrap."""
        return self.record({"kind": "tool_call", "tool": tool, "call_id": call_id,
                            "arguments": arguments, **members},
                           state_delta=_last(tool, call_id, arguments, "open"))

    def end_call(self, tool: str, call_id: str, result: Any = None, *, error: Any = None,
                 arguments: Any = None, duration_ns: Optional[int] = None, **members: Any) -> Ref:
        event: Json = {"kind": "tool_result", "tool": tool, "call_id": call_id,
                       "status": "ok" if error is None else "error", **members}
        if duration_ns is not None:
            event["duration_ns"] = duration_ns
        if error is not None:
            event["error"] = error
        else:
            event["result"] = result
        return self.record(event, state_delta=_last(tool, call_id, arguments,
                                                    "ok" if error is None else "error", result))

    def _end_call(self, tool: str, call_id: str, arguments: Any, started: Optional[int], result: Any,
                  error: Any) -> None:
        self.end_call(tool, call_id, result, error=error, arguments=arguments,
                      duration_ns=None if started is None else time.perf_counter_ns() - started)


def _last(tool: str, call_id: str, arguments: Any, status: str, result: Any = None) -> Json:
    """`tool.NAME.last` of the state, as imported histories have it (docs/formats/imports.md §1.15)."""
    last: Json = {"call": call_id, "arguments": _as_text(arguments), "status": status,
                  "result": None if result is None else _as_text(result)}
    return {"memory": {f"tool.{tool}.last": last}}


def _as_text(value: Any) -> str:
    text = value if isinstance(value, str) else canonical(plain(value)).decode()
    return cut(text, STATE_TEXT)


def _bound(signature: Optional[inspect.Signature], args: Tuple[Any, ...],
           kwargs: Dict[str, Any]) -> Json:
    if signature is not None:
        try:
            bound = dict(signature.bind(*args, **kwargs).arguments)
            for name in ("self", "cls"):
                if args and bound.get(name) is args[0]:
                    bound.pop(name)
            return bound
        except TypeError:
            pass  # the call itself will say what is wrong
    return {**{str(i): v for i, v in enumerate(args)}, **kwargs}


def _add_span(event: Json) -> None:
    try:
        from opentelemetry import trace
        context = trace.get_current_span().get_span_context()
    except Exception:  # not installed, or not set up: a step has no span then
        return
    if context.is_valid:
        event.setdefault("otel", {"trace_id": f"{context.trace_id:032x}",
                                  "span_id": f"{context.span_id:016x}"})


_OWN_JOURNALS: Set[str] = {"alerts", "batches", "otel", "sessions", "trust"}


def _check_agent(agent: str) -> None:
    if not isinstance(agent, str) or not 1 <= len(agent.encode("utf-8", "replace")) <= 200:
        raise UsageError(f"agent: found {agent!r}, expected a name of 1 to 200 bytes")
    if any(ord(c) < 0x20 or ord(c) == 0x7F or 0xD800 <= ord(c) <= 0xDFFF for c in agent):
        raise UsageError("agent: found a control character or half of a surrogate pair")
    if agent in _OWN_JOURNALS or agent.startswith(("run:", "key:", "home:")):
        raise UsageError(f"agent: {agent!r} is a journal of Cortex's own; choose another name")
