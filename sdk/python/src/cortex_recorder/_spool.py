"""The spool: what is recorded and not delivered yet, on the disk of this machine.

A *writer* is one process's part of it; NAME is 32 random hex digits:

    NAME.lock         locked (flock) as long as the process lives
    NAME.000001.seg   segments, append-only; a line each step: CRC-32 in 8 hex digits, space, JSON, LF
    NAME.ack          "SEGMENT OFFSET": everything before it was delivered; a hint, never synced
    rejected.jsonl    steps that the server does not take, with its reason

A step is written with one write() before the call that records it returns, so a process that is killed
loses nothing that was recorded. `fsync` decides what a machine that loses power loses. A part whose
lock is free belongs to a process that ended: the next one adopts and delivers it. Sending a step twice
is harmless, since the server takes each key once; so the ack needs no sync.

S1  a line counts when its CRC is right and its LF is there; a tail without LF was never recorded
S2  a writer's files are changed by the owner of its lock only
S3  a segment is removed when all of it was delivered or put into rejected.jsonl
"""
from __future__ import annotations

import os
import threading
import time
import zlib
from collections import deque
from pathlib import Path
from typing import Deque, Dict, List, NamedTuple, Optional, Tuple, Union

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

from ._errors import UsageError

FSYNC = ("always", "interval", "never")
SEGMENT_BYTES = 4 << 20
REJECTED_BYTES = 16 << 20
LINE_BYTES = 6 << 20  # no line is longer

_sync_file = getattr(os, "fdatasync", os.fsync)


class Place(NamedTuple):
    """Where a line is; `end` is the offset after it."""
    segment: int
    start: int
    end: int


class Line(NamedTuple):
    place: Place
    data: bytes  # canonical JSON of a step


def _sync_folder(path: Path) -> None:
    """A new file's name is durable, too."""
    folder = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def make_folder(path: Path) -> None:
    """Readable by this user only; a folder of another user, or a link, is refused."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = os.lstat(path)
    if not os.path.isdir(path) or os.path.islink(path):
        raise OSError(f"{path} is no folder")
    if hasattr(os, "getuid") and found.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user")
    probe = path / f".probe-{os.getpid()}-{threading.get_ident()}"
    with open(probe, "wb"):
        pass
    probe.unlink()


def _lock(path: Path, create: bool) -> Optional[int]:
    """The open lock file, or None when another process has it."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
    try:
        file = os.open(path, flags, 0o600)
    except (FileNotFoundError, FileExistsError):
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_nlink != 0:
            return file
    except OSError:
        pass
    os.close(file)
    return None


def segment_path(folder: Path, name: str, number: int) -> Path:
    return folder / f"{name}.{number:06d}.seg"


def _segments(folder: Path, name: str) -> List[int]:
    found = []
    for path in folder.glob(f"{name}.*.seg"):
        number = path.name[len(name) + 1:-4]
        if number.isdigit():
            found.append(int(number))
    return sorted(found)


class Part:
    """A writer's files as they are read and delivered: this process's own, or adopted ones."""

    def __init__(self, folder: Path, name: str, lock: int, own: bool) -> None:
        self.folder, self.name, self.lock_file, self.own = folder, name, lock, own
        self.segment, self.offset = 1, 0         # delivered up to here
        self.damaged = 0                         # lines whose CRC is wrong
        self.torn = 0                            # tails that were never recorded
        self.gone = False                        # the segment that is written was removed
        self.replaced: Dict[Place, bytes] = {}   # what is sent in place of a line
        # Of the own part: how far the writer is. An adopted one does not grow.
        self.written = (0, 0)                    # segment and end; one value, since two threads see it
        self._ack_file: Optional[int] = None
        if not own:
            self._read_ack()

    def _read_ack(self) -> None:
        numbers = _segments(self.folder, self.name)
        self.segment = numbers[0] if numbers else 1
        if numbers:
            self.written = (numbers[-1],
                            os.path.getsize(segment_path(self.folder, self.name, numbers[-1])))
        try:
            segment, offset = (self.folder / f"{self.name}.ack").read_text().split()
            if int(segment) >= self.segment:
                self.segment, self.offset = int(segment), int(offset)
        except (OSError, ValueError):
            pass  # it starts over: the server takes each step once

    @property
    def empty(self) -> bool:
        return (self.segment, self.offset) >= self.written

    def read(self, count: int, size: int) -> List[Line]:
        """The next lines that are not delivered, at most `count` with about `size` bytes."""
        lines: List[Line] = []
        while not lines and not self.empty:
            segment, end = self.written
            last = self.segment >= segment
            data = self._bytes(end - self.offset if last else LINE_BYTES, size)
            if data is None:
                self.damaged += 1
                self.gone = last
                data = b""
            lines = self._lines(data, count, size)
            if not lines:
                self._next_segment(last, end, data)
        return lines

    def _bytes(self, most: int, size: int) -> Optional[bytes]:
        """At least one whole line from here on, where there is one; None: the file was removed."""
        try:
            with open(segment_path(self.folder, self.name, self.segment), "rb") as file:
                file.seek(self.offset)
                data = file.read(min(most, size))
                return data if b"\n" in data else data + file.read(max(0, most - len(data)))
        except FileNotFoundError:
            return None

    def _lines(self, data: bytes, count: int, size: int) -> List[Line]:
        lines: List[Line] = []
        at = taken = 0
        while len(lines) < count and taken < size:
            end = data.find(b"\n", at)
            if end < 0:
                break
            place = Place(self.segment, self.offset + at, self.offset + end + 1)
            line, at = data[at:end], end + 1
            body = line[9:]
            if line[:9] != b"%08x " % zlib.crc32(body):
                if lines:
                    break  # it comes first the next time
                self.damaged += 1
                self.offset, data, at = place.end, data[at:], 0
                continue
            taken += len(body)
            lines.append(Line(place, self.replaced.get(place, body)))
        return lines

    def _next_segment(self, last: bool, end: int, data: bytes) -> None:
        if data and not data.endswith(b"\n"):
            self.torn += 1
        if last:
            self.offset = max(self.offset, end)
        else:
            self._remove(self.segment)
            self.segment, self.offset = self.segment + 1, 0

    def _remove(self, number: int) -> None:
        try:
            segment_path(self.folder, self.name, number).unlink()
        except OSError:
            pass

    def ack(self, place: Place) -> None:
        """Everything up to the end of this line was delivered."""
        self.segment, self.offset = place.segment, place.end
        self.replaced.pop(place, None)
        while self.segment < self.written[0] and self._at_end():
            self._remove(self.segment)
            self.segment, self.offset = self.segment + 1, 0
        try:
            if self._ack_file is None:
                self._ack_file = os.open(self.folder / f"{self.name}.ack",
                                         os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.pwrite(self._ack_file, b"%010d %012d\n" % (self.segment, self.offset), 0)
        except OSError:
            pass  # a hint only

    def size(self) -> int:
        """Of its segments; not less than what waits."""
        total = 0
        for number in _segments(self.folder, self.name):
            try:
                total += os.path.getsize(segment_path(self.folder, self.name, number))
            except OSError:
                pass
        return total

    def _at_end(self) -> bool:
        try:
            return self.offset >= os.path.getsize(segment_path(self.folder, self.name, self.segment))
        except OSError:
            return True

    def close(self, remove: bool) -> None:
        """Gives the lock back; `remove`: and the files, since everything was delivered."""
        if remove:
            for number in _segments(self.folder, self.name):
                self._remove(number)
            for end in (".ack", ".lock"):
                try:
                    (self.folder / (self.name + end)).unlink()
                except OSError:
                    pass
        for file in (self._ack_file, self.lock_file):
            if file is not None and file >= 0:
                os.close(file)
        self._ack_file, self.lock_file = None, -1


class _Writer:
    """Appends one line at a time. A finalizer or a signal handler may record a step within the append of
    the same thread, between any two of its instructions: that line is written when the append has ended,
    and before it returns."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.appended = 0
        self.why_not: Optional[str] = None  # of the last append that failed
        self.lost = 0                       # steps recorded within an append, and not written after it
        self._writing = False
        self._within: Deque[bytes] = deque()

    def append(self, data: bytes) -> bool:
        """Whether the line is written. Not: the spool is full, or the disk refused (`why_not`)."""
        with self.lock:
            if self._writing:
                self._within.append(data)
                return True
            written = self._alone(data)
            self.settle()
            return written

    def settle(self) -> None:
        """Writes what was recorded within an append, also within one that an exception ended."""
        with self.lock:
            while self._within and not self._writing:
                try:
                    data = self._within.popleft()
                except IndexError:  # a handler was here meanwhile
                    break
                if not self._alone(data):
                    self.lost += 1

    def _alone(self, data: bytes) -> bool:
        self._writing = True
        try:
            written = self._write(data)
            self.appended += written
            return written
        finally:
            self._writing = False

    def _write(self, data: bytes) -> bool:
        raise NotImplementedError

    def _renew(self) -> None:
        """In a child after fork."""
        self.lock = threading.RLock()
        self.appended = self.lost = 0
        self._writing = False
        self._within = deque()


class Spool(_Writer):
    """This process's writer, and what it adopted from processes that ended."""

    def __init__(self, folder: Path, limit_bytes: int, fsync: str) -> None:
        if fcntl is None:
            raise OSError("a spool on the disk needs a POSIX system")
        if fsync not in FSYNC:
            raise UsageError(f"fsync: found {fsync!r}, expected one of {', '.join(FSYNC)}")
        self.folder, self.limit_bytes, self.fsync = folder, limit_bytes, fsync
        super().__init__()
        make_folder(folder)
        self.part: Optional[Part] = None
        self.adopted: List[Part] = []
        self.adopted_bytes = 0
        self.past_damaged = self.past_torn = 0  # of parts that were delivered
        self._file = -1
        self.unsynced = False
        self._sizes: Dict[int, int] = {}

    # --- writing ---

    def _write(self, data: bytes) -> bool:
        try:
            return self._append(b"%08x %b\n" % (zlib.crc32(data), data))
        except OSError as error:
            self.why_not = f"{self.folder}: {error.strerror or error}"
            return False

    def _append(self, line: bytes) -> bool:
        part = self.part
        if part is None:
            part = self._start()
        if self.pending_bytes() + self.adopted_bytes + len(line) > self.limit_bytes:
            self.why_not = f"the spool is full ({self.limit_bytes} bytes)"
            return False
        if self._file < 0 or 0 < part.written[1] > SEGMENT_BYTES - len(line) or part.gone:
            self._roll(part)
        written = 0
        try:
            written = os.write(self._file, line)
            if written != len(line):
                raise OSError(28, "no space left on the device")
        except OSError:
            if written:
                os.ftruncate(self._file, part.written[1])
            raise
        segment, end = part.written
        part.written = (segment, end + len(line))
        self._sizes[segment] = end + len(line)
        if self.fsync == "always":
            _sync_file(self._file)
        else:
            self.unsynced = True
        return True

    def _start(self) -> Part:
        for _ in range(8):
            name = os.urandom(16).hex()
            lock = _lock(self.folder / f"{name}.lock", create=True)
            if lock is not None:
                self.part = Part(self.folder, name, lock, own=True)
                return self.part
        raise OSError(11, "cannot lock a file of the spool")

    def _roll(self, part: Part) -> None:
        if part.gone:
            make_folder(self.folder)
            part.gone = False
        number = part.written[0] + 1
        file = os.open(segment_path(self.folder, part.name, number),
                       os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if self._file >= 0:
            self._sync_now()
            os.close(self._file)
        self._file = file
        part.written = (number, 0)
        self._sizes[number] = 0
        if self.fsync != "never":
            _sync_folder(self.folder)

    def pending_bytes(self) -> int:
        part = self.part
        if part is None:
            return 0
        for number in [n for n in self._sizes if n < part.segment]:
            del self._sizes[number]
        return sum(self._sizes.values()) - (part.offset if part.segment in self._sizes else 0)

    def _sync_now(self) -> None:
        if self.unsynced and self.fsync != "never":
            _sync_file(self._file)
        self.unsynced = False

    def sync(self) -> None:
        """For `fsync="interval"`: called by the sending thread, at most once a second."""
        if not self.unsynced or self.fsync != "interval":
            return
        with self.lock:
            if self._file < 0:
                return
            copy = os.dup(self._file)
            self.unsynced = False
        try:
            _sync_file(copy)
        except OSError:
            pass  # the next write says what is wrong with the disk
        finally:
            os.close(copy)

    # --- reading ---

    def parts(self) -> List[Part]:
        own = [self.part] if self.part is not None else []
        return self.adopted + own

    def adopt(self) -> int:
        """Takes over what processes left that ended; how many parts."""
        known = {part.name for part in self.parts()}
        taken = 0
        try:
            locks = sorted(self.folder.glob("*.lock"), key=lambda p: p.stat().st_mtime)
        except OSError:
            return 0
        for path in locks:
            name = path.name[:-5]
            if name in known:
                continue
            lock = _lock(path, create=False)
            if lock is None:
                continue
            part = Part(self.folder, name, lock, own=False)
            if part.empty:
                part.close(remove=True)
                continue
            self.adopted.append(part)
            self.adopted_bytes += part.size()
            taken += 1
        return taken

    def drop_delivered(self) -> None:
        for part in [p for p in self.adopted if p.empty]:
            self.past_damaged += part.damaged
            self.past_torn += part.torn
            part.close(remove=True)
            self.adopted.remove(part)
            self.adopted_bytes = sum(one.size() for one in self.adopted)

    def reject(self, data: bytes, why: bytes) -> bool:
        """Keeps what the server does not take; `why` is the JSON of its reason."""
        path = self.folder / "rejected.jsonl"
        try:
            if path.exists() and path.stat().st_size > REJECTED_BYTES:
                return False
            with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
                              0o600), "ab") as file:
                file.write(b'{"at":%d,"step":%b,"why":%b}\n' % (int(time.time()), data, why))
            return True
        except OSError:
            return False

    def close(self) -> None:
        """Removes the own files when all was delivered, and leaves them to the next process if not."""
        with self.lock:
            if self._file >= 0:
                try:
                    self._sync_now()
                except OSError:
                    pass
                os.close(self._file)
                self._file = -1
            for part in self.parts():
                part.close(remove=part.empty)
            self.part, self.adopted, self.adopted_bytes, self._sizes = None, [], 0, {}

    def forget(self) -> None:
        """In a child after fork: the files are the parent's. Its locks are closed, never unlocked."""
        if self._file >= 0:
            os.close(self._file)
        for part in self.parts():
            part.close(remove=False)
        self._file, self.part, self.adopted, self._sizes = -1, None, [], {}
        self.adopted_bytes, self.unsynced = 0, False
        self.past_damaged = self.past_torn = 0
        self._renew()


class Queue(_Writer):
    """In place of a spool where no folder can be written: the same in memory, bounded, lost with the
    process."""

    folder: Optional[Path] = None
    unsynced = False
    past_damaged = past_torn = 0

    def __init__(self, limit_bytes: int) -> None:
        super().__init__()
        self.limit_bytes = limit_bytes
        self.part: Optional["MemoryPart"] = MemoryPart()

    def _write(self, data: bytes) -> bool:
        part = self.part
        assert part is not None
        if part.size + len(data) > self.limit_bytes:
            self.why_not = f"the queue in memory is full ({self.limit_bytes} bytes)"
            return False
        part.lines.append((part.next, data))
        part.next += 1
        part.size += len(data)
        return True

    def parts(self) -> "List[MemoryPart]":
        return [self.part] if self.part is not None else []

    def pending_bytes(self) -> int:
        return self.part.size if self.part is not None else 0

    def sync(self) -> None:
        pass

    def adopt(self) -> int:
        return 0

    def drop_delivered(self) -> None:
        pass

    def reject(self, data: bytes, why: bytes) -> bool:
        return False

    def close(self) -> None:
        pass

    def forget(self) -> None:
        self._renew()
        self.part = MemoryPart()


class MemoryPart:
    own = True
    damaged = torn = 0

    def __init__(self) -> None:
        self.lines: List[Tuple[int, bytes]] = []
        self.next = 0
        self.size = 0
        self.replaced: Dict[Place, bytes] = {}

    @property
    def empty(self) -> bool:
        return not self.lines

    def read(self, count: int, size: int) -> List[Line]:
        taken: List[Line] = []
        total = 0
        for number, data in self.lines[:count]:
            place = Place(0, number, number + 1)
            taken.append(Line(place, self.replaced.get(place, data)))
            total += len(data)
            if total >= size:
                break
        return taken

    def ack(self, place: Place) -> None:
        self.replaced.pop(place, None)
        while self.lines and self.lines[0][0] < place.end:
            self.size -= len(self.lines.pop(0)[1])


AnyPart = Union[Part, MemoryPart]
AnySpool = Union[Spool, Queue]
