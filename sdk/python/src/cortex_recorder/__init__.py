"""Cortex records what an agent does: durable, exactly once, signed if there is a key.

    import cortex_recorder as cortex

    cx = cortex.init(agent="refunds")
    with cx.step("triage") as s:
        s.saw(document)
        s.set("memory/limit", 500, because=document)
    print(cx.flush().root, cx.why("memory/limit"))
"""
from __future__ import annotations

import os
from typing import Optional, Union

from ._client import Client, find_token, open_spool
from ._errors import (CortexError, MissingExtra, NotDelivered, Refused, ServerError, UsageError)
from ._keys import SigningKey, find_key, load_key, new_key
from ._receipt import Receipt
from ._recorder import KINDS, Call, Change, Recorder, Redact, Ref, Source, Stats, Step, _check_agent

__version__ = "0.3.0"

_default: Optional[Recorder] = None


def init(agent: Optional[str] = None, *, url: Optional[str] = None, token: Optional[str] = None,
         key: Union[None, bool, str, "os.PathLike[str]", SigningKey] = None,
         key_id: Optional[str] = None, register: bool = True, redact: Optional[Redact] = None,
         spool: Union[None, bool, str, "os.PathLike[str]"] = None, spool_bytes: int = 256 << 20,
         fsync: str = "interval", otel: bool = False, timeout: float = 10.0,
         exit_timeout: float = 2.0, ca: Optional[str] = None) -> Client:
    """Starts recording. Nothing here waits for the server.

    agent         who takes the steps; default $CORTEX_AGENT
    url           default $CORTEX_URL, else http://127.0.0.1:8420
    token         scope trace:write, and trace:read for receipts and questions; default $CORTEX_TOKEN, or
                  for a server on this machine the file `token` of its data directory
    key           file of the agent's key, or a SigningKey; default $CORTEX_KEY, or
                  ~/.config/cortex/keys/AGENT.key if it is there; True: it must be; False: none
    key_id        what the trust store calls the key; default AGENT-DIGITS
    register      registers the key, or puts it into the queue of keys that wait for approval
    redact        redact({"event", "state_delta"}) returns what is recorded, or None for nothing;
                  called before anything is written
    spool         folder; default $CORTEX_SPOOL, else ~/.local/state/cortex/spool; False: memory
    spool_bytes   what may wait; after that new steps are dropped, counted and reported
    fsync         "always": before a call returns; "interval": once a second; "never"
    otel          steps name the current span of OpenTelemetry
    timeout       seconds for one request
    exit_timeout  seconds for delivering at exit
    ca            file of certificates that the server's is checked with
    """
    global _default
    name = agent if agent is not None else os.environ.get("CORTEX_AGENT")
    if name is None:
        raise UsageError("agent: not given, and CORTEX_AGENT is not set; expected the agent's name")
    _check_agent(name)
    where = (url or os.environ.get("CORTEX_URL") or "http://127.0.0.1:8420").rstrip("/")
    if spool_bytes < 64 << 10:
        raise UsageError("spool_bytes: expected at least 65536")
    if not timeout > 0 or not exit_timeout >= 0:
        raise UsageError("timeout and exit_timeout: expected seconds, more than 0")
    found, _ = find_key(key, name, key_id)
    client = Client(name, where, find_token(where, token), found,
                    open_spool(where, name, spool, spool_bytes, fsync), redact, otel, register,
                    timeout, exit_timeout, ca)
    _default = client
    return client


def current() -> Recorder:
    """The recorder that init() made last in this process."""
    if _default is None:
        raise UsageError("nothing records: call cortex_recorder.init(agent=...) first")
    return _default


from ._integrations import (agents_processor, instrument_anthropic, instrument_mcp,  # noqa: E402
                            instrument_openai, langchain_handler, otel_processor, watch_claude)

__all__ = [
    "KINDS", "Call", "Change", "Client", "CortexError", "MissingExtra", "NotDelivered", "Receipt",
    "Recorder", "Redact", "Ref", "Refused", "ServerError", "SigningKey", "Source", "Stats", "Step",
    "UsageError", "agents_processor", "current", "init", "instrument_anthropic", "instrument_mcp",
    "instrument_openai", "langchain_handler", "load_key", "new_key", "otel_processor", "watch_claude",
]
