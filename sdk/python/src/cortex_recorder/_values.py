"""Values as JSON: anything a program hands over becomes plain JSON of bounded size, and a step
becomes the bytes that are sent and signed (docs/formats/lattice.md §3.2, steps.md §5)."""
from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import hashlib
import json
import math
import os
from typing import Any, Dict, List, Mapping, Optional

Json = Dict[str, Any]

MAX_DEPTH = 48         # nested containers of one value
MAX_ITEMS = 20_000     # values within one value
MAX_TEXT = 64 * 1024   # characters of one text
SIGNED_PREFIX = b"cortex.step.v1\n"

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> bytes:
    """Canonical JSON: sorted names, no spaces, ASCII."""
    return _encoder.encode(value).encode("ascii")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def cut(text: str, limit: int = MAX_TEXT) -> str:
    """The text, or its beginning and what the whole was; nothing is shortened without saying so."""
    if len(text) <= limit:
        return text
    whole = text.encode("utf-8", "surrogatepass")
    return f"{text[:limit]}… [cut: {len(whole)} bytes, sha256 {digest(whole)}]"


class _Plain:
    """One conversion; counts the values it has made."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = MAX_ITEMS

    def of(self, value: Any, depth: int = 0) -> Any:
        if value is None or value is True or value is False:
            return value
        kind = type(value)
        if kind is str:
            return value if len(value) <= self.limit else cut(value, self.limit)
        if kind is int:
            return value if -(1 << 256) < value < 1 << 256 else cut(hex(value), self.limit)
        if kind is float:
            return value if math.isfinite(value) else repr(value)
        self.left -= 1
        if self.left < 0:
            return "[more than 20000 values]"
        if depth > MAX_DEPTH:
            return f"[deeper than {MAX_DEPTH} levels]"
        if isinstance(value, Mapping):
            return {self.name(k): self.of(v, depth + 1) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.of(v, depth + 1) for v in value]
        return self.other(value, depth)

    def name(self, key: Any) -> str:
        return cut(key if type(key) is str else str(key), 1024)

    def other(self, value: Any, depth: int) -> Any:
        if isinstance(value, enum.Enum):
            return self.of(value.value, depth + 1)
        if isinstance(value, str):
            return self.of(str.__str__(value), depth)
        if isinstance(value, bool):
            return bool(value)
        if isinstance(value, int):
            return self.of(int(value), depth)
        if isinstance(value, float):
            return self.of(float(value), depth)
        if isinstance(value, (bytes, bytearray, memoryview)):
            data = bytes(value)
            return {"bytes": len(data), "sha256": digest(data)}
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, os.PathLike):
            return self.of(os.fsdecode(value), depth)
        if isinstance(value, (set, frozenset)):
            return sorted((self.of(v, depth + 1) for v in value), key=canonical)
        if isinstance(value, BaseException):
            return {"type": type(value).__name__, "message": cut(str(value), self.limit)}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: self.of(getattr(value, f.name, None), depth + 1)
                    for f in dataclasses.fields(value)}
        for method in ("model_dump", "to_dict", "dict"):
            call = getattr(value, method, None)
            if callable(call) and not isinstance(value, type):
                try:
                    made = call()
                except Exception:  # not the method that was meant
                    continue
                if isinstance(made, Mapping):
                    return self.of(made, depth + 1)
        return cut(f"[{type(value).__name__}] {_shown(value)}", 500)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"(no repr: {type(error).__name__})"


def plain(value: Any, limit: int = MAX_TEXT) -> Any:
    """`value` as JSON. Never raises: what has no JSON form is shown by its type and repr."""
    try:
        return _Plain(limit).of(value)
    except Exception as error:
        return f"[{type(value).__name__}: {type(error).__name__} while it was read]"


def to_sign(step: Mapping[str, Any]) -> bytes:
    """The bytes that are signed: all of the step but `signature`, event and state_delta in place."""
    members = {name: value for name, value in step.items() if name != "signature"}
    members.setdefault("event", {})
    members.setdefault("state_delta", {})
    return SIGNED_PREFIX + canonical(members)


def content_digest(step: Mapping[str, Any]) -> str:
    """What two sendings of one key must agree in: all but `key` and `signature` (steps.md §4)."""
    members = {n: v for n, v in step.items() if n not in ("signature", "key")}
    members.setdefault("event", {})
    members.setdefault("state_delta", {})
    return digest(canonical(members))


def journal_of(agent: str) -> str:
    """The journal of an agent's steps: its name, '/', '%' and controls as %XX (steps.md §3)."""
    return "".join(f"%{ord(c):02X}" if c in "/%" or ord(c) < 0x20 or ord(c) == 0x7F else c
                   for c in agent)


def text_of(value: Any) -> Optional[str]:
    """The text of a message's content: a string, or the text parts of a list of blocks."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        found = value.get("text", value.get("content"))
        return text_of(found) if found is not None else None
    if isinstance(value, (list, tuple)):
        parts: List[str] = [part for part in map(text_of, value) if part]
        return "\n\n".join(parts) if parts else None
    for name in ("text", "content"):
        found = getattr(value, name, None)
        if isinstance(found, (str, list, tuple)):
            return text_of(found)
    return None


def error_members(error: Any) -> Json:
    """What failed, as members of an event: `error` is its message, for people; `error_type` its class."""
    if isinstance(error, BaseException):
        return {"error": cut(str(error), 8192) or type(error).__name__, "error_type": type(error).__name__}
    found = plain(error)
    if not isinstance(found, dict):
        return {"error": found if isinstance(found, str) else canonical(found).decode()}
    message, kind = found.get("message"), found.get("type")
    made: Json = {"error": message if isinstance(message, str) and message else canonical(found).decode()}
    if isinstance(kind, str):
        made["error_type"] = kind
    return made


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
