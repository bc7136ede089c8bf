"""What this package raises. Recording itself never raises because of a server, a disk or a value."""
from __future__ import annotations

from typing import Optional


class CortexError(Exception):
    """Base of all errors of this package."""


class UsageError(CortexError, ValueError):
    """A call that cannot mean anything; the message says what was expected."""


class MissingExtra(CortexError, ImportError):
    """A package of an extra is needed and not installed."""


class ServerError(CortexError):
    """The server refused a question, or could not be asked."""

    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status


class NotDelivered(CortexError):
    """`flush` ended before everything was delivered. The steps are still in the spool."""

    def __init__(self, message: str, pending: int) -> None:
        super().__init__(message)
        self.pending = pending


class Refused(CortexError):
    """A gate did not allow a tool to be called; the tool did not run."""

    def __init__(self, tool: str, gate: str, reason: str) -> None:
        super().__init__(f"{tool}: gate '{gate}' refused the call: {reason}")
        self.tool, self.gate, self.reason = tool, gate, reason
