"""What is tested, and what is known about it: the faults, the log of what was acknowledged, commands
that may be killed, the server that comes and goes."""
import contextlib
import http.client
import json
import mmap
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import kit  # noqa: E402

COMMAND_LIMIT_S = kit.TIMEOUT_S  # a command that takes longer hangs, on any machine
GRACE_S = 2.0          # what was begun under faults may still end with an error so much later


class Defect(Exception):
    """Something that must never be."""


class FaultInjector:
    """The file that fault_injector.so reads: clock, room on the disk, refusals."""

    def __init__(self, path):
        path.write_bytes(struct.pack("=qqQ", 0, -1, 0))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 24)
        self.path, self.ballast, self.mounted = path, None, False

    def _set(self, offset, value):
        self.map[offset:offset + 8] = struct.pack("=q", value)

    def clock(self, nanoseconds):
        self._set(0, nanoseconds)

    def disk(self, bytes_left):
        self._set(8, bytes_left)

    def refusals(self):
        return struct.unpack("=Q", self.map[16:24])[0]

    def stop(self):
        self.disk(-1)


class OperationLog:
    """One JSON object a line, on the disk before the caller continues: what was tried and how it ended."""

    def __init__(self, path):
        self.file, self.lock, self.count = open(path, "a", encoding="utf-8"), threading.Lock(), 0
        self.lines = []

    def note(self, **line):
        text = json.dumps(line)
        with self.lock:
            self.lines.append(line)
            self.file.write(text + "\n")
            self.file.flush()
            os.fdatasync(self.file.fileno())

    def attempt(self, op, **what):
        with self.lock:
            self.count += 1
            number = self.count
        self.note(n=number, op=op, **what)
        return number

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class Done:
    """A command that ended, was killed by us (code None), or hung."""

    def __init__(self, argv, code, out, err, began):
        self.argv, self.code, self.out, self.err = argv, code, out, err
        self.began, self.ended = began, time.monotonic()

    @property
    def killed(self):
        return self.code is None

    def json(self):
        return json.loads(self.out)

    def tag(self):
        """The reason of a refusal or an error."""
        with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
            return json.loads(self.out.splitlines()[-1])["error"]["code"]
        return "?"

    def said(self):
        return f"{' '.join(map(str, self.argv))[:600]}\nexit {self.code}\n" \
               f"{self.out.decode(errors='replace')[-1500:]}\n{self.err.decode(errors='replace')[-1500:]}"


class World:
    """A data directory, the log of operations on it, and the programs and faults between them."""

    def __init__(self, folder, options, generation):
        self.folder = pathlib.Path(folder)
        self.disk = self.folder / "disk"
        self.disk.mkdir(parents=True, exist_ok=True)
        self.home = self.disk / "home"
        self.out = self.folder / "out"
        self.out.mkdir(exist_ok=True)
        self.options, self.generation = options, generation
        self.injector = FaultInjector(self.folder / "faults")
        self.oplog = OperationLog(self.folder / "operations.jsonl")
        self.windows, self.open_windows = [], {}
        self.lock = threading.Lock()
        self.stopping, self.defects = threading.Event(), []
        self.counts, self.errors = {}, {}
        self.gate = Gate()
        self.env = kit.clean_env(HOME=self.folder, CORTEX_HOME=self.home, CORTEX_ACTOR="nobody")
        if getattr(options, "small", False):
            self.env["CORTEX_LIMITS_CACHE"] = "64K"
        self.bad_env = {**self.env, "LD_PRELOAD": str(options.injector), "CORTEX_FAULTS": str(self.injector.path),
                        "CORTEX_FAULTS_UNDER": str(self.disk)}

    # --- what goes wrong -----------------------------------------------------------------------

    def defect(self, what):
        with self.lock:
            self.defects.append(what)
        print("DEFECT: " + what, flush=True)
        self.stopping.set()
        raise Defect(what)

    @contextlib.contextmanager
    def fault(self, kind):
        """Between entering and leaving, errors of that kind are to be expected."""
        key = object()
        with self.lock:
            self.open_windows[key] = (time.monotonic(), kind)
        try:
            yield
        finally:
            with self.lock:
                self.windows.append((self.open_windows.pop(key)[0], time.monotonic() + GRACE_S, kind))

    def excused(self, began, ended, kinds=("full",)):
        """Whether something was wrong with the world while a command ran."""
        with self.lock:
            return any(a <= ended and kind in kinds for a, kind in self.open_windows.values()) or \
                any(a <= ended and began <= b and kind in kinds for a, b, kind in self.windows[-400:])

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def error(self, where, tag):
        with self.lock:
            key = f"{where}: {tag}"
            self.errors[key] = self.errors.get(key, 0) + 1

    def poisoned(self, tag):
        """A server whose disk was full takes nothing more until it is started again: said through its
        socket, too, until that has happened (docs/operating.md)."""
        return tag == "Poisoned" and self.injector.refusals() > 0

    # --- commands ------------------------------------------------------------------------------

    def run(self, *args, program=None, actor=None, stdin=b"", kill_after=None, bad=True, cwd=None, env=None):
        """Runs the program; with kill_after it is killed then, unless it has ended."""
        argv = [program or kit.BIN, *map(str, args)]
        env = {**(self.bad_env if bad else self.env), **(env or {})}
        if actor is not None:
            env["CORTEX_ACTOR"] = actor
        began = time.monotonic()
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=env, cwd=cwd or self.folder)
        code = None
        try:
            out, err = process.communicate(stdin, timeout=kill_after or COMMAND_LIMIT_S)
            code = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            if kill_after is None:
                self.defect(f"it hangs for {COMMAND_LIMIT_S} s: {argv}\n{err.decode(errors='replace')}")
        done = Done(argv, code, out, err, began)
        if code is not None and code < 0:
            self.defect(f"ended by signal {-code}: {done.said()}")
        return done

    def must(self, *args, **more):
        """A command without injected faults, which cannot fail."""
        done = self.run(*args, bad=False, **more)
        if done.code != 0:
            self.defect("while no fault is injected: " + done.said())
        return done


class Gate:
    """Workers pass through it for each operation; the judge closes it and waits until all are out."""

    def __init__(self):
        self.condition, self.inside, self.closed = threading.Condition(), 0, False

    def __enter__(self):
        with self.condition:
            while self.closed:
                self.condition.wait()
            self.inside += 1

    def __exit__(self, *_):
        with self.condition:
            self.inside -= 1
            self.condition.notify_all()

    @contextlib.contextmanager
    def shut(self):
        with self.condition:
            self.closed = True
            while self.inside:
                self.condition.wait()
        try:
            yield
        finally:
            with self.condition:
                self.closed = False
                self.condition.notify_all()


class Server:
    """`cortex serve` over the home, started, killed, stopped, and started again."""

    def __init__(self, world, seed):
        self.world, self.rng = world, random.Random(f"{seed}-server")
        self.process, self.port, self.lock = None, None, threading.Lock()
        self.token = world.must("token", "add", "--scope", "trace:write", "--scope", "trace:read", "--level",
                                "full_traces", "--name", "torture").out.decode().strip()
        self.starts = self.kills = 0
        self.failed = False

    def start(self):
        env = dict(self.world.bad_env)
        if self.rng.random() < 0.5:  # then it archives by itself
            env["CORTEX_ARCHIVE_KEEP"] = str(self.rng.choice((1, 2, 5)))
            if getattr(self.world, "archives_elsewhere", False):
                env["CORTEX_ARCHIVE_TO"] = str(self.world.disk / "archives")
        with open(self.world.folder / "server.log", "ab") as log:
            process = subprocess.Popen(
                [kit.BIN, "serve", "--home", str(self.world.home), "--listen", "127.0.0.1:0",
                 "--otlp", "off", "--json"], stdout=subprocess.PIPE, stderr=log, env=env)
        line = process.stdout.readline()
        process.stdout.close()
        if b'"url"' not in line:
            process.wait()
            tag = json.loads(line)["error"]["code"] if line else "nothing"
            self.world.error("serve", tag)
            return tag == "Locked"  # by a command that is at it; the next time
        self.failed = False
        self.process, self.port = process, int(json.loads(line)["url"].rsplit(":", 1)[1])
        self.starts += 1
        return True

    def log_tail(self):
        path = self.world.folder / "server.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def end(self, how=signal.SIGKILL):
        with self.lock:
            process, self.process, self.port = self.process, None, None
        if process is None:
            return
        ended_itself = process.poll()
        if ended_itself is not None:
            self.world.defect(f"the server ended by itself with {ended_itself}\n{self.log_tail()}")
        with self.world.fault("server"):
            self.kills += how == signal.SIGKILL
            process.send_signal(how)
            try:
                code = process.wait(timeout=COMMAND_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self.world.defect(f"the server does not end\n{self.log_tail()}")
        if how == signal.SIGTERM and code not in (0, 3) or code not in (0, 3, -how):
            self.world.defect(f"the server ended with {code}\n{self.log_tail()}")

    def live(self):
        """Comes and goes until the world ends."""
        while not self.world.stopping.is_set():
            with self.world.gate:
                if self.process is None:
                    with self.world.fault("server"):
                        began = time.monotonic()
                        if not self.start() and not self.world.excused(began, time.monotonic()):
                            self.world.defect(f"the server does not start\n{self.log_tail()}")
            self.wait(self.rng.uniform(2, self.world.options.server_s))
            with self.world.gate:
                self.end(self.rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            if self.rng.random() < 0.5:
                self.wait(self.rng.uniform(0.2, self.world.options.server_s / 2))

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.world.stopping.is_set():
            time.sleep(0.1)
            if self.process is not None and self.sick():
                return

    def sick(self):
        """After a failed write it takes no more until it is started again (docs/operating.md)."""
        return self.failed or self.process.poll() is not None

    def ask(self, method, path, body=None, timeout=COMMAND_LIMIT_S):
        """(status, bytes), or None when there is no server, or it went away."""
        port = self.port
        if port is None:
            return None
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Authorization": "Bearer " + self.token,
                                                    "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except TimeoutError:
            self.world.defect(f"the server does not answer {method} {path[:100]}")
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
