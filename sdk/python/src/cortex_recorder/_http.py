"""Requests to the server over one kept connection."""
from __future__ import annotations

import http.client
import json
import socket
import ssl
import urllib.parse
from typing import Any, Mapping, NamedTuple, Optional

from ._errors import ServerError, UsageError

ANSWER_BYTES = 64 << 20


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def problem(self) -> str:
        found = self.json()
        if isinstance(found, dict) and isinstance(found.get("detail"), str):
            return str(found["detail"])
        return f"HTTP {self.status}"


class Connection:
    """Not for several threads at once."""

    def __init__(self, url: str, token: Optional[str], timeout: float,
                 tls: Optional[ssl.SSLContext] = None) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"url: found {url!r}, expected http://HOST:PORT or https://HOST")
        if parts.username is not None or parts.password is not None:
            raise UsageError("url: found a name or password in it; the token is given as `token`")
        self.host, self.secure = parts.hostname, parts.scheme == "https"
        try:
            self.port = parts.port or (443 if self.secure else 8420)
        except ValueError as error:
            raise UsageError(f"url: found {url!r}: {error}") from error
        self.base = parts.path.rstrip("/")
        self.url, self.token, self.timeout, self.tls = url, token, timeout, tls
        self._open: Optional[http.client.HTTPConnection] = None

    def _connect(self) -> http.client.HTTPConnection:
        if self.secure:
            context = self.tls or ssl.create_default_context()
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout,
                                               context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)

    def ask(self, method: str, path: str, body: Optional[bytes] = None,
            with_token: bool = True, timeout: Optional[float] = None) -> Answer:
        """Any answer; an error when there is none. What is sent twice is harmless (steps have keys),
        so a connection that the server closed meanwhile is opened again."""
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if with_token and self.token:
            headers["Authorization"] = "Bearer " + self.token
        for fresh in (False, True):
            used = self._open
            connection = used if used is not None and not fresh else self._connect()
            self._open = None
            try:
                connection.timeout = timeout or self.timeout
                if connection.sock is not None:
                    connection.sock.settimeout(connection.timeout)
                connection.request(method, self.base + path, body=body, headers=headers)
                response = connection.getresponse()
                data = response.read(ANSWER_BYTES)
                answer = Answer(response.status, dict(response.headers.items()), data)
                if response.isclosed() and not response.will_close:
                    self._open = connection
                else:
                    connection.close()
                return answer
            except (http.client.HTTPException, ConnectionError, socket.timeout, OSError) as error:
                connection.close()
                stale = used is not None and not fresh and not isinstance(error, socket.timeout)
                if not stale:
                    why = str(error) or type(error).__name__
                    if isinstance(error, ConnectionRefusedError):
                        why = "nothing listens there; is 'cortex serve' running?"
                    raise ServerError(f"{self.url}: {why}") from error
        raise AssertionError("not reached")

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None

    def forget(self) -> None:
        """In a child after fork: the connection is the parent's."""
        self._open = None
