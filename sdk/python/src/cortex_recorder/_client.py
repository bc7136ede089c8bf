"""The recorder that writes to the spool, and the thread that delivers the spool to the server.

D1  recording waits for one write() to the spool and for nothing else
D2  the thread reads from the spool, never from the recording calls: memory is one batch
D3  a step leaves the spool when the server said stored or duplicate, or was put into rejected.jsonl
D4  no lock is held while the network is waited for, so a fork never waits for it either
"""
from __future__ import annotations

import atexit
import json
import os
import queue
import random
import sys
import tempfile
import threading
import time
import urllib.parse
import weakref
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from ._errors import NotDelivered, ServerError, UsageError
from ._http import Answer, Connection
from ._keys import SigningKey
from ._receipt import Receipt
from ._recorder import Change, Recorder, Redact, Stats, log
from ._spool import AnyPart, AnySpool, Line, Queue, Spool
from ._values import Json, base64_of, canonical, digest, journal_of, to_sign

BATCH_STEPS = 500
BATCH_BYTES = 1 << 20
LINGER_S = 0.02        # collects what comes together
BACKOFF_S = 0.2
BACKOFF_MAX_S = 30.0
PARENT_WAIT_S = 10.0   # for a parent that another process has not delivered yet
ADOPT_EVERY_S = 15.0
MEMORY_BYTES = 8 << 20


class _Result(NamedTuple):
    status: str
    reason: str
    detail: str
    answer: Json


class _Wake:
    """An event whose set() may interrupt itself: a finalizer or a signal handler records within the
    recording of the same thread, and SimpleQueue.put is reentrant where Event.set is not."""

    def __init__(self) -> None:
        self._queue: "queue.SimpleQueue[None]" = queue.SimpleQueue()
        self._flag = False

    def set(self) -> None:
        if not self._flag:
            self._flag = True
            self._queue.put(None)

    def is_set(self) -> bool:
        return self._flag

    def clear(self) -> None:
        self._flag = False
        try:
            while True:
                self._queue.get_nowait()
        except queue.Empty:
            pass

    def wait(self, timeout: float) -> None:
        if not self._flag:
            try:
                self._queue.get(timeout=timeout)
            except queue.Empty:
                pass


class Client(Recorder):
    """What `init` returns."""

    def __init__(self, agent: str, url: str, token: Optional[str], key: Optional[SigningKey],
                 spool: AnySpool, redact: Optional[Redact], otel: bool, register: bool,
                 timeout: float, exit_timeout: float, ca: Optional[str]) -> None:
        super().__init__(agent, key, redact, otel)
        self.url = url
        self.exit_timeout = exit_timeout
        self._spool = spool
        tls = None
        if ca is not None:
            import ssl
            try:
                tls = ssl.create_default_context(cafile=ca)
            except (OSError, ssl.SSLError) as error:
                raise UsageError(f"ca: cannot read certificates from {ca}: {error}") from error
        self._connection = Connection(url, token, timeout, tls)
        self._questions = Connection(url, token, timeout, tls)
        if token and not self._connection.secure and not _is_here(url):
            log.warning("agent %s: the token is sent to %s without encryption", agent, url)
        self._register = register
        self._closed = False
        self._renew_sender()
        _clients.add(self)
        spool.adopt()
        if spool.parts():
            self._wake_up()

    def _renew_sender(self) -> None:
        self._wake = _Wake()
        self._changed = threading.Condition(threading.Lock())
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._thread: Optional[threading.Thread] = None
        self._thread_lock = threading.RLock()
        self._stop = False
        self._hurry = 0                          # how many flush() wait
        self._own_done = 0                       # own steps that left the spool
        self._newest: Optional[Json] = None      # the answer about the newest own step
        self._failures = 0
        self._last_problem = ""
        self._held: Dict[str, float] = {}        # part -> since when its first step waits
        self._limits: Dict[str, int] = {}        # part -> steps a batch while one is looked for
        self._not_before: Dict[str, float] = {}
        self._next_adopt = time.monotonic() + ADOPT_EVERY_S
        self._key_asked = -1e9
        self._last_sync = 0.0
        self._damage_told = 0

    # --- recording ---

    def _store(self, step: Json, data: bytes) -> bool:
        if self._closed:
            return False
        stored = self._spool.append(data)
        if self._spool.lost:
            with self._spool.lock:
                lost, self._spool.lost = self._spool.lost, 0
            self._take_back(lost)
        if not stored:
            return False
        if not self._wake.is_set():
            self._wake_up()
        return True

    def _why_not(self) -> str:
        return "the recorder is closed" if self._closed else self._spool.why_not or "unknown"

    def _wake_up(self) -> None:
        self._wake.set()
        if self._thread is not None:
            return
        with self._thread_lock:
            if self._thread is None and not self._stop:
                thread = threading.Thread(target=self._send_loop, name="cortex-recorder", daemon=True)
                try:
                    thread.start()
                    self._thread = thread
                    _finish_with_multiprocessing()
                except RuntimeError:
                    pass  # the interpreter is ending: what remains is delivered at exit

    @property
    def stats(self) -> Stats:
        made, found = Stats(), self.stats_
        vars(made).update(vars(found))
        made.damaged += self._spool.past_damaged + sum(p.damaged for p in self._spool.parts())
        made.torn += self._spool.past_torn + sum(p.torn for p in self._spool.parts())
        made.pending = self._left()
        return made

    # --- the sending thread ---

    def _send_loop(self) -> None:
        while not self._stop:
            try:
                delay = self._send_once()
            except Exception:  # of the spool's folder; what it holds stays there
                log.exception("agent %s: delivering failed", self.agent)
                delay = 1.0
            if self._stop:
                return
            if delay is None:  # nothing to send
                self._wake.wait(1.0 if self._spool.unsynced else ADOPT_EVERY_S)
                self._sync_if_due()
                if self._wake.is_set():
                    time.sleep(0 if self._hurry else LINGER_S)
            elif delay > 0:
                self._pause(delay)

    def _sync_if_due(self) -> None:
        now = time.monotonic()
        if now - self._last_sync >= 1.0:
            self._last_sync = now
            self._spool.sync()

    def _pause(self, delay: float) -> None:
        """Waits; less while a flush() waits, or when there are new steps and it is not the server that
        is waited for but what one part's step needs."""
        end = time.monotonic() + delay
        while not self._stop:
            left = end - time.monotonic()
            if left <= 0 or (self._hurry and delay - left > 0.2):
                return
            if self._failures == 0 and self._wake.is_set():
                return
            time.sleep(min(left, 0.05))
            self._sync_if_due()

    def _send_once(self) -> Optional[float]:
        """One batch of each part. None: there is nothing to send; else how long to wait."""
        with self._sending:
            self._wake.clear()
            now = time.monotonic()
            if now >= self._next_adopt:
                self._next_adopt = now + ADOPT_EVERY_S
                self._spool.adopt()
            self._sync_if_due()
            delays: List[float] = []
            for part in self._spool.parts():
                if part.empty:
                    continue
                wait = self._not_before.get(_name(part), 0.0) - time.monotonic()
                if wait > 0 and not self._hurry:
                    delays.append(wait)
                    continue
                try:
                    delays.append(self._send_batch(part))
                except Exception as error:
                    self._last_problem = str(error)
                    delays.append(self._backoff(None))
                    if not isinstance(error, ServerError):
                        log.exception("agent %s: delivering failed", self.agent)
                    break
            self._tell_damage()
            self._spool.drop_delivered()
        with self._changed:
            self._changed.notify_all()
        return min(delays) if delays else None

    def _tell_damage(self) -> None:
        found = self._spool.past_damaged + sum(part.damaged for part in self._spool.parts())
        if found > self._damage_told:
            self._say("damaged", "%d places of the spool in %s are damaged or gone; what stood there is "
                      "lost", found, self._spool.folder)
        self._damage_told = found

    def _backoff(self, after: Optional[str]) -> float:
        """Exponential with full jitter; at least what the server asked for."""
        self._failures += 1
        most = min(BACKOFF_MAX_S, BACKOFF_S * 2.0 ** min(self._failures, 12))
        delay = random.uniform(most / 2, most)
        try:
            delay = max(delay, min(float(after or 0), 300.0))
        except ValueError:
            pass
        self._say("server", "cannot deliver now (%s); steps wait in %s", self._last_problem,
                  self._spool.folder or "memory")
        return delay

    def _send_batch(self, part: AnyPart) -> float:
        name = _name(part)
        lines = part.read(self._limits.get(name, BATCH_STEPS), BATCH_BYTES)
        if not lines:
            return 0.0
        body = b'{"steps":[' + b",".join(line.data for line in lines) + b"]}"
        answer = self._connection.ask("POST", "/api/v1/steps", body)
        if answer.status == 200:
            found = answer.json()
            results = found.get("results") if isinstance(found, dict) else None
            if isinstance(results, list) and len(results) == len(lines):
                return self._take_results(part, lines, results)
            self._last_problem = f"{self.url} does not answer as a Cortex server does"
            return self._backoff(None)
        return self._take_problem(part, lines, answer)

    def _take_results(self, part: AnyPart, lines: List[Line], results: List[Json]) -> float:
        self._failures = 0
        for line, result in zip(lines, results):
            status = str(result.get("status"))
            if status in ("stored", "duplicate"):
                self._delivered(part, line, result)
                continue
            if status == "skipped":
                return 0.0  # its turn comes when the one before it was decided
            return self._decide(part, line, _Result(status, str(result.get("reason")),
                                                    str(result.get("detail")), result))
        return 0.0

    def _delivered(self, part: AnyPart, line: Line, result: Json) -> None:
        name = _name(part)
        self._held.pop(name, None)
        self._limits.pop(name, None)
        self._not_before.pop(name, None)
        if part.own:
            self.stats_.delivered += 1
            self._own_done += 1
            if result.get("agent") == self.agent:
                self._newest = result
        part.ack(line.place)  # last: flush() waits for it

    def _take_problem(self, part: AnyPart, lines: List[Line], answer: Answer) -> float:
        name = _name(part)
        found = answer.json()
        errors = found.get("errors") if isinstance(found, dict) else None
        pointer = errors[0].get("pointer") if isinstance(errors, list) and errors else None
        self._last_problem = f"{self.url}: {answer.problem}"
        about_first = isinstance(pointer, str) and pointer.startswith("/steps/0")
        if about_first and answer.status in (403, 409, 422):
            self._failures = 0
            return self._decide(part, lines[0], _reason_of(answer, lines[0]))
        if answer.status == 401 or answer.status == 403:
            self._say("token", "%s; check CORTEX_TOKEN (scope trace:write); steps wait in %s",
                      self._last_problem, self._spool.folder or "memory")
            return self._backoff(None)
        ours = isinstance(found, dict) and str(found.get("type", "")).startswith("urn:cortex:problem:")
        if ours and answer.status in (400, 413, 422):  # else it is not Cortex that answers
            if len(lines) > 1:  # find the one
                self._limits[name] = max(1, len(lines) // 2)
                return 0.0
            self._reject(part, lines[0], _Result("rejected", f"HTTP {answer.status}",
                                                 answer.problem, {}))
            return 0.0
        return self._backoff(answer.headers.get("Retry-After"))

    # --- a step that was not taken ---

    def _decide(self, part: AnyPart, line: Line, result: _Result) -> float:
        """Waits, sends it otherwise, or gives it up, in this order."""
        name = _name(part)
        since = self._held.setdefault(name, time.monotonic())
        waited = time.monotonic() - since
        if result.reason == "BadSignature" and "it is not of this step" not in result.detail:
            self._last_problem = result.detail
            if self._ask_for_key():
                return 0.0
            self._say("key", "%s; steps wait in %s", result.detail, self._spool.folder or "memory")
            return self._hold(name, min(BACKOFF_MAX_S, max(0.5, waited / 2)))
        step = _step_of(line)
        linked = step is not None and bool(step.get("parents") or "head" in step)
        if result.reason == "KeyReused" and linked:
            # Recorded without its parents, by a process that ended before it read the answer.
            self._delivered(part, line, {})
            return 0.0
        if result.reason in ("NoParent", "NotTheHead", "HeadMoved", "Ambiguous") and linked:
            if result.reason == "NoParent" and waited < PARENT_WAIT_S:
                self._last_problem = result.detail
                return self._hold(name, max(0.1, waited / 4))
            assert step is not None
            if self._unlink(part, line, step, result):
                return 0.0
        self._reject(part, line, result)
        return 0.0

    def _hold(self, name: str, delay: float) -> float:
        self._not_before[name] = time.monotonic() + delay
        return delay

    def _unlink(self, part: AnyPart, line: Line, step: Json, result: _Result) -> bool:
        """The step without its parents, which it names in its event: better than no step. What another
        key signed cannot be changed."""
        signed = step.pop("signature", None)
        key = self.signing_key
        if signed is not None and (key is None or signed.get("key_id") != key.key_id):
            return False
        parents = step.pop("parents", None)
        for name in ("head", "fork", "fork_type"):
            step.pop(name, None)
        step["event"] = dict(step.get("event") or {}, unresolved_parents=parents,
                             unresolved_reason=result.detail)
        if signed is not None and key is not None:
            step["signature"] = key.signature_of(to_sign(step))
        part.replaced[line.place] = canonical(step)
        self._say("parents", "a step is recorded without its parents: %s", result.detail)
        return True

    def _reject(self, part: AnyPart, line: Line, result: _Result) -> None:
        why = canonical({"detail": result.detail, "reason": result.reason})
        kept = self._spool.reject(line.data, why)
        self._held.pop(_name(part), None)
        self._limits.pop(_name(part), None)
        self._not_before.pop(_name(part), None)
        self.stats_.rejected += 1
        if part.own:
            self._own_done += 1
        part.ack(line.place)
        where = f"kept in {self._spool.folder}/rejected.jsonl" if kept else "and is not kept"
        log.error("agent %s: the server does not take a step (%s: %s); it is %s", self.agent,
                  result.reason, result.detail, where)

    # --- the key ---

    def _ask_for_key(self) -> bool:
        """After a signature was refused: registers the public key, at once with a token that may, else
        where the server lets keys wait for approval (`cortex serve --open-signed`)."""
        now = time.monotonic()
        key = self.signing_key
        if key is None or not self._register or now - self._key_asked < 30.0:
            return False
        self._key_asked = now
        body: Json = {"key_id": key.key_id, "public_key_base64": base64_of(key.public),
                      "algorithm": "ed25519", "description": f"cortex-recorder, agent {self.agent}"[:200]}
        bound = dict(body, agents=[key.agent])
        answer = self._connection.ask("POST", "/api/v1/covenant/public-keys", canonical(bound))
        if answer.status in (401, 403):
            answer = self._connection.ask("POST", "/api/v1/covenant/public-keys", canonical(body),
                                          with_token=False)
        found = answer.json()
        status = found.get("status") if isinstance(found, dict) else None
        if answer.status == 201:
            log.info("agent %s: key %s is registered", self.agent, key.key_id)
            return True
        if answer.status == 200 and status == "pending":
            self._say("pending", "key %s waits for approval: cortex key approve %s", key.key_id,
                      key.key_id)
        elif answer.status == 401:
            self._say("register", "this token may not register keys; on the server: "
                      "cortex key add --id %s --public-key %s --agent %s", key.key_id,
                      base64_of(key.public), key.agent)
        elif answer.status != 200:
            self._say("register", "key %s was not registered: %s", key.key_id, answer.problem)
        return False

    # --- flush ---

    def flush(self, timeout: float = 30.0) -> Receipt:
        """Waits until everything that this process recorded is durable on the server, and returns a
        receipt. Raises NotDelivered when that takes longer; the steps stay in the spool."""
        self._drain(timeout)
        return self._receipt()

    async def aflush(self, timeout: float = 30.0) -> Receipt:
        """flush() without blocking the event loop."""
        import asyncio
        return await asyncio.get_running_loop().run_in_executor(None, self.flush, timeout)

    def _drain(self, timeout: float) -> None:
        end = time.monotonic() + timeout
        with self._changed:
            self._hurry += 1
        try:
            self._spool.settle()
            self._wake_up()
            while self._left() > 0:
                left = end - time.monotonic()
                if left <= 0:
                    why = f": {self._last_problem}" if self._last_problem else ""
                    count = self._left()
                    raise NotDelivered(f"{count} {'step is' if count == 1 else 'steps are'} not delivered "
                                       f"after {timeout:g} s, and {'waits' if count == 1 else 'wait'} in "
                                       f"{self._spool.folder or 'memory'}{why}", count)
                if self._thread is None or not self._thread.is_alive():
                    delay = self._send_once()
                    if delay:
                        time.sleep(min(delay, max(0.0, end - time.monotonic()), 0.5))
                    continue
                with self._changed:
                    self._changed.wait(min(left, 0.05))
        finally:
            with self._changed:
                self._hurry -= 1

    def _left(self) -> int:
        if all(part.empty for part in self._spool.parts() if part.own):
            return 0
        return max(1, self._spool.appended - self._own_done)

    def _receipt(self) -> Receipt:
        newest, stats = self._newest, self.stats
        base = (self.agent, stats.delivered, stats.rejected, stats.dropped)
        if newest is None:
            return Receipt(*base, None, None, None, None, None, None, None, None,
                           "no step of this process was delivered")
        entry = int(newest["entry"])
        known = (str(newest["hash"]), int(newest["seq"]), entry)
        try:
            found, checkpoint = self._prove(entry)
        except ServerError as error:
            return Receipt(*base, *known, None, None, None, None, None, str(error))
        import base64
        return Receipt(*base, *known, str(found["journal_root"]), int(found["journal_size"]),
                       str(found["leaf_hash"]), base64.b64decode(found["proof"]), checkpoint, None)

    def _prove(self, entry: int) -> Tuple[Json, Optional[str]]:
        """The entry's inclusion in the journal of a signed checkpoint, or else of now."""
        where = {"actor": journal_of(self.agent), "seq": entry}
        newest: Json = self._get("/api/v1/proofs/entry", where)
        try:
            notes = self._get("/api/v1/checkpoints", {}).get("items", [])
        except ServerError:
            notes = []
        sizes = sorted((n for n in notes if entry < int(n["size"]) <= int(newest["journal_size"])),
                       key=lambda n: -int(n["size"]))
        for note in sizes[:8]:
            found = self._get("/api/v1/proofs/entry", dict(where, size=note["size"]))
            if found.get("journal_root") == note["root"]:
                return found, str(note["note"])
        return newest, None

    # --- questions ---

    def _get(self, path: str, query: Dict[str, Any]) -> Json:
        text = path + ("?" + urllib.parse.urlencode(query) if query else "")
        with self._asking:
            answer = self._questions.ask("GET", text)
        found = answer.json()
        if answer.status != 200 or not isinstance(found, dict):
            raise ServerError(f"{path}: {answer.problem}", answer.status)
        return found

    def _branch(self, question: str) -> str:
        return "/api/v1/lattice/" + urllib.parse.quote(f"agent/{journal_of(self.agent)}") + "/" + question

    def why(self, key: str, events: int = 20) -> List[Change]:
        """Every change that led to the value of a key (`memory/limit`), newest first, with the events of
        the newest `events`. Delivers what is in the spool first."""
        self._drain(30.0)
        found = self._get(self._branch("why"), {"node": "@" + self.agent, "key": question_key(key)})
        changes = []
        for at, change in enumerate(found["changes"]):
            event: Json = {}
            if at < events:
                event = self._get(self._branch("show"), {"node": change["node"]})["node"]["event"]
            changes.append(Change(change["agent"], change["seq"], change["node"], found["key"],
                                  change.get("old"), change.get("new"), event))
        return changes

    def state(self) -> Json:
        """The agent's state: memory, beliefs, goals, context_stack."""
        self._drain(30.0)
        found: Json = self._get(self._branch("state"), {"node": "@" + self.agent})["state"]
        return found

    # --- ends ---

    def close(self, timeout: Optional[float] = None) -> None:
        """Delivers what there is time for and ends the thread. What remains is delivered by the next
        process of this agent on this machine."""
        if self._closed:
            return
        wait = self.exit_timeout if timeout is None else timeout
        try:
            self._drain(wait)
        except NotDelivered as error:
            log.warning("agent %s: %s; the next start of this agent delivers %s", self.agent, error,
                        "it" if error.pending == 1 else "them")
        except Exception as error:
            log.warning("agent %s: %s", self.agent, error)
        self._closed = self._stop = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(min(wait, 2.0))
        if self._sending.acquire(timeout=0.5):
            try:
                self._spool.close()
                self._connection.close()
            finally:
                self._sending.release()
        self._questions.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- fork ---

    def _before_fork(self) -> None:
        self._lock.acquire()
        self._spool.lock.acquire()

    def _after_fork_in_parent(self) -> None:
        self._spool.lock.release()
        self._lock.release()

    def _after_fork_in_child(self) -> None:
        """The parent delivers what was recorded before; the child has a spool and locks of its own."""
        self._lock = threading.RLock()
        self._spool.forget()
        self._connection.forget()
        self._questions.forget()
        self._gap = None
        self.stats_ = Stats()
        self._renew()
        self._renew_sender()


def _name(part: AnyPart) -> str:
    return getattr(part, "name", "memory")


def _step_of(line: Line) -> Optional[Json]:
    try:
        found = json.loads(line.data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _reason_of(answer: Answer, line: Line) -> _Result:
    """A problem about one step says its reason in words; these are told apart by what can be."""
    detail = answer.problem
    status, reason = "rejected", "BadStep"
    if answer.status == 409:
        found = answer.json()
        status = "conflict"
        reason = "KeyReused" if str(found.get("type", "")).endswith(":key-conflict") else "NotTheHead"
    elif answer.status == 403:
        reason = "BadSignature"
    elif b'"parents"' in line.data and detail.startswith("parent"):
        reason = "BadStep" if detail.startswith("parents:") else "NoParent"
    return _Result(status, reason, detail, {})


def question_key(key: str) -> str:
    """`memory/limit` as the server asks for it; a key without '/' goes as it is."""
    if "/" not in key:
        return key
    names = key.strip("/").split("/")
    if names[0] not in ("memory", "beliefs"):
        names.insert(0, "memory")
    return "/" + "/".join(name.replace("~", "~0") for name in names)


# --- all clients of the process ---

_clients: "weakref.WeakSet[Client]" = weakref.WeakSet()
_forking: List[Client] = []


def _before_fork() -> None:
    _forking[:] = sorted(_clients, key=id)
    for client in _forking:
        client._before_fork()


def _after_fork_in_parent() -> None:
    for client in reversed(_forking):
        client._after_fork_in_parent()
    _forking.clear()


def _after_fork_in_child() -> None:
    for client in _forking:
        client._after_fork_in_child()
    _forking.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent,
                        after_in_child=_after_fork_in_child)


@atexit.register
def _at_exit() -> None:
    for client in list(_clients):
        client.close()


_imported_in = os.getpid()


def _finish_with_multiprocessing() -> None:
    """Children of multiprocessing end without atexit; its own finalizers run."""
    global _imported_in
    if _imported_in != os.getpid() and "multiprocessing.util" in sys.modules:
        from multiprocessing.util import Finalize
        _imported_in = os.getpid()
        Finalize(None, _at_exit, exitpriority=10)


# --- init ---

def spool_folder(url: str, agent: str, base: Union[None, str, "os.PathLike[str]"] = None) -> Path:
    """One folder for each agent and server, so that steps never reach another server."""
    if base is None:
        base = os.environ.get("CORTEX_SPOOL")
    if base is None:
        state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        base = Path(state) / "cortex" / "spool"
    name = "".join(c if c.isalnum() and c.isascii() or c in "._-" else "_" for c in agent)[:60]
    return Path(base) / f"{name}-{digest(f'{url} {agent}'.encode())[:12]}"


def open_spool(url: str, agent: str, where: Union[None, bool, str, "os.PathLike[str]"],
               limit_bytes: int, fsync: str) -> AnySpool:
    """The spool; where its folder cannot be written, one in the folder of temporary files; where that
    cannot either, memory. The last two are said."""
    if where is False:
        return Queue(min(limit_bytes, MEMORY_BYTES))
    base = None if where is None or where is True else where
    folder = spool_folder(url, agent, base)
    try:
        return Spool(folder, limit_bytes, fsync)
    except OSError as error:
        if base is not None:
            raise UsageError(f"spool: cannot write {folder}: {error}") from error
        problem = error
    user = os.getuid() if hasattr(os, "getuid") else 0
    other = Path(tempfile.gettempdir()) / f"cortex-spool-{user}"
    try:
        spool = Spool(spool_folder(url, agent, other), limit_bytes, fsync)
        log.warning("agent %s: cannot write %s (%s): steps wait in %s", agent, folder, problem,
                    spool.folder)
        return spool
    except OSError as error:
        log.warning("agent %s: no folder for a spool (%s; %s): steps wait in memory, and are lost with "
                    "the process", agent, problem, error)
        return Queue(min(limit_bytes, MEMORY_BYTES))


def _is_here(url: str) -> bool:
    return urllib.parse.urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def find_token(url: str, token: Optional[str]) -> Optional[str]:
    """The argument, $CORTEX_TOKEN, or for a server on this machine the token of its data directory."""
    token = token or os.environ.get("CORTEX_TOKEN")
    if token:
        token = token.strip() if isinstance(token, str) else ""
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError("token: expected one line of printable characters without spaces")
        return token
    if not _is_here(url):
        return None
    home = os.environ.get("CORTEX_HOME")
    if home is None:
        data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
        home = os.path.join(data, "cortex")
    try:
        with open(os.path.join(home, "token"), encoding="ascii") as file:
            return file.read(4096).strip() or None
    except (OSError, ValueError):
        return None


