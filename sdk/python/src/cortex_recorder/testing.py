"""An in-memory double for tests of programs that record: no server, no disk, no thread.

    cx = cortex_recorder.testing.Memory(agent="refunds")
    run_my_agent(cx)
    assert cx.events("tool_call")[0]["tool"] == "refund"
    assert cx.why("memory/limit")[0].new == 500
"""
from __future__ import annotations

import copy
import hashlib
from typing import Any, Dict, List, Optional, Tuple

from ._client import question_key
from ._errors import ServerError
from ._keys import SigningKey
from ._receipt import Receipt
from ._recorder import Change, Recorder, Redact
from ._values import Json, canonical

__all__ = ["Memory"]


class Memory(Recorder):
    """Keeps the steps in `steps`, as they would be sent. `fail=True`: the spool refuses everything, to
    test what a program does then."""

    def __init__(self, agent: str = "test", *, key: Optional[SigningKey] = None,
                 redact: Optional[Redact] = None, fail: bool = False) -> None:
        super().__init__(agent, key, redact, otel=False)
        self.steps: List[Json] = []
        self.fail = fail

    def _store(self, step: Json, data: bytes) -> bool:
        if self.fail:
            return False
        with self._lock:
            self.steps.append(copy.deepcopy(step))
        return True

    def _why_not(self) -> str:
        return "this double was told to fail"

    def events(self, kind: Optional[str] = None) -> List[Json]:
        """The events of the steps, or of those of a kind."""
        return [s["event"] for s in self.steps if kind is None or s["event"].get("kind") == kind]

    def clear(self) -> None:
        self.steps.clear()

    def flush(self, timeout: float = 30.0) -> Receipt:
        """A receipt without a proof; `root` is a hash over the steps, for comparing runs."""
        root = hashlib.sha256(b"".join(canonical(s) + b"\n" for s in self.steps)).hexdigest()
        count = len(self.steps)
        return Receipt(self.agent, count, 0, self.stats_.dropped, None, count - 1 if count else None,
                       None, root, count, None, None, None, "nothing was sent: this is a test double")

    async def aflush(self, timeout: float = 30.0) -> Receipt:
        return self.flush(timeout)

    def close(self, timeout: Optional[float] = None) -> None:
        pass

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- questions, over the steps of this agent alone ---

    def _states(self) -> List[Tuple[Json, Json]]:
        """Each step of the agent with the state after it (docs/formats/lattice.md §6)."""
        state: Json = {"memory": {}, "beliefs": {}, "goals": [], "context_stack": []}
        made = []
        for step in self.steps:
            if step["agent"] != self.agent:
                continue
            state = dict(state)
            for section, delta in step.get("state_delta", {}).items():
                state[section] = _merged(state[section], delta) if isinstance(delta, dict) else delta
            made.append((step, state))
        return made

    def state(self) -> Json:
        states = self._states()
        return states[-1][1] if states else {"memory": {}, "beliefs": {}, "goals": [],
                                             "context_stack": []}

    def why(self, key: str, events: int = 20) -> List[Change]:
        """Every change that led to the value, newest first, as a server answers."""
        asked = question_key(key)
        changes: List[Change] = []
        old: Any = _ABSENT
        for number, (step, state) in enumerate(self._states()):
            new = _value(state, asked)
            if new is not _ABSENT and old is _ABSENT or not _equal(old, new):
                changes.append(Change(self.agent, number, step["key"], asked,
                                      None if old is _ABSENT else old, None if new is _ABSENT else new,
                                      step["event"]))
            old = new
        if not changes:
            raise ServerError(f"no step changed {key!r}", 404)
        return changes[::-1]


_ABSENT = object()


def _equal(a: Any, b: Any) -> bool:
    if a is _ABSENT or b is _ABSENT:
        return a is b
    return canonical(a) == canonical(b)


def _merged(old: Any, delta: Json) -> Json:
    """RFC 7396."""
    made: Dict[str, Any] = dict(old) if isinstance(old, dict) else {}
    for name, value in delta.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, dict):
            made[name] = _merged(made.get(name), value)
        else:
            made[name] = value
    return made


def _value(state: Json, key: str) -> Any:
    if not key.startswith("/"):
        for section in ("memory", "beliefs"):
            if key in state[section]:
                return state[section][key]
        key = "/" + key.replace(".", "/")
        if key.split("/")[1] not in state:
            key = "/memory" + key
    found: Any = state
    for name in key[1:].split("/"):
        name = name.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return _ABSENT
        found = found[name]
    return found
