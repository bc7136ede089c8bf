"""fleet_kit.py - nodes of a fleet over a PostgreSQL primary with a synchronous standby on loopback
(tests/fleet/cluster.py)."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import kit
from kit import BIN, check
from run_kit import GOOD_OPS, Repo, reply, script, types, with_policies

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
import cluster as clusters  # noqa: E402

SERVERS = clusters.BIN  # None where no PostgreSQL server is installed
PATIENCE_S = 60  # of a client: a node that does not come back in it is a failure
FACT = {"type": "Fact", "data": {"statement": "the limit is 500", "subject": "policy", "predicate": "is"}}


def children_of(pid):
    """Process ids, of this program's workers."""
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return [int(word) for word in done.stdout.split()]


def runs(task):
    """Whether a thread is not stopped, or ended."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] not in "TtXZ"
    except OSError:
        return False


def freeze(pid):
    """SIGSTOP; and all threads stand still: one that had the processor may go on for a moment."""
    os.kill(pid, signal.SIGSTOP)
    end = time.monotonic() + PATIENCE_S
    while any(runs(task) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()):
        check(time.monotonic() < end, "a process that was stopped goes on:", pid)
        time.sleep(0.002)


class Node:
    """cortex serve --fleet."""

    def __init__(self, fleet, name, *options, url=None):
        self.fleet, self.name = fleet, name
        self.log_path = fleet.folder / f"{name}-{len(fleet.nodes)}.log"
        self.log = open(self.log_path, "w", encoding="utf-8")
        self.process = subprocess.Popen(
            [BIN, "serve", "--fleet", url or fleet.url, "--node", name, "--json", *map(str, options),
             *([] if "--listen" in options else ["--listen", "127.0.0.1:0"])], stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=fleet.folder,
            env=fleet.env, stdin=subprocess.DEVNULL)
        fleet.nodes.append(self)
        line = self.process.stdout.readline()
        check(line, name, "did not start:", self.said())
        self.about = json.loads(line)
        check("url" in self.about, line)
        self.port = int(self.about["url"].rsplit(":", 1)[1])
        self.inner = int(self.about["node_address"].rsplit(":", 1)[1])

    def said(self):
        return self.log_path.read_text(encoding="utf-8")

    def worker(self):
        found = children_of(self.process.pid)
        check(len(found) == 1, self.name, "has workers:", found, self.said())
        return found[0]

    def wait_said(self, text, seconds=PATIENCE_S):
        end = time.monotonic() + seconds
        while text not in self.said():
            check(time.monotonic() < end, self.name, "did not say", text, ":", self.said())
            time.sleep(0.02)

    def serves(self):
        """Whether it has the part now, by what it said last."""
        said = self.said()
        return said.rfind("and serves it") > said.rfind("not serve the part")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """The whole node, as when its machine is lost."""
        worker = children_of(self.process.pid)
        for pid in [self.process.pid, *worker]:
            os.kill(pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def stop(self):
        self.signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)
        return self.process.returncode

    def ask(self, method, path, body=None, timeout=PATIENCE_S):
        """(status, object) of one request on a connection of its own."""
        if self.fleet.tls:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.fleet.tls)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {self.fleet.token}", "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def write(self, key, timeout=PATIENCE_S, statement=FACT["data"]["statement"]):
        return self.ask("POST", "/api/v1/actors/ann/memories",
                        {**FACT, "data": {**FACT["data"], "statement": statement}, "key": key}, timeout)


class Database:
    """A primary and its standby, with the tables of a fleet."""

    def __enter__(self):
        self.cluster = clusters.Cluster()
        self.parts = 0
        kit.expect(kit.run(BIN, "fleet", "init", "--database", self.cluster.url(), env=kit.clean_env()), 0)
        return self

    def __exit__(self, *_):
        self.cluster.close()


def node_role(name):
    """SQL for a login that may do what roles.sql lets a node do, and no more."""
    printed = kit.expect(kit.run(BIN, "fleet", "init", "--print-sql", env=kit.clean_env()), 0).stdout.decode()
    roles = printed[printed.index("-- roles.sql"):]
    return f"{roles}; DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN; GRANT cortex_fleet_node TO {name}"


class Fleet:
    """A part of its own with a token, and nodes."""

    def __init__(self, database):
        self.cluster, self.database = database.cluster, database.cluster.url()
        database.parts += 1
        self.part = f"part-{database.parts}"
        self.tls = None  # an ssl.SSLContext

    def __enter__(self):
        self.folder = kit.make_folder("cortex-nodes-")
        self.nodes, self.url = [], f"{self.database}#{self.part}"
        self.env = kit.clean_env(HOME=str(self.folder), CORTEX_ACTOR="ann", CORTEX_FLEET=self.database)
        try:
            self.ok("fleet", "add", self.part)
            added = self.ok("token", "add", "--name", "all", "--scope", "memory:write", "--scope", "trace:read", "--json",
                            home=self.url)
            self.token = json.loads(added)["token"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            if node.process.poll() is None:
                node.signal(signal.SIGCONT)
                node.kill()
            node.process.stdout.close()
            node.log.close()
        kit.remove(self.folder)

    def ok(self, *words, home=None):
        env = {**self.env, **({"CORTEX_HOME": home} if home else {})}
        return kit.expect(kit.run(BIN, *words, env=env, cwd=self.folder), 0).stdout.decode()

    def listed(self):
        """The nodes of this part; those of former tests stay in the list for a while."""
        nodes = json.loads(self.ok("fleet", "nodes", "--json"))["nodes"]
        return [node for node in nodes if node["part"] == self.part]

    def sql(self, text):
        return self.cluster.primary.sql(text)

    def node(self, name, *options):
        return Node(self, name, *options)

    def pair(self, *options):
        """Two nodes, of which the first has the part."""
        one = self.node("one", *options)
        one.wait_said("and serves it")
        return one, self.node("two", *options)


class Writing(Fleet):
    """A part with a token that may write as a command does."""

    def __enter__(self):
        super().__enter__()
        added = self.ok("token", "add", "--name", "writer", "--scope", "home:write", "--json", home=self.url)
        self.writer = json.loads(added)["token"]
        return self

    def env_of(self, node, **more):
        return {**self.env, "CORTEX_HOME": self.url, "CORTEX_URL": node.about["url"], "CORTEX_TOKEN": self.writer, **more}

    def through(self, node, *words, code=0, **more):
        done = kit.run(BIN, *words, env=self.env_of(node, **more), cwd=self.folder)
        check(done.returncode == code, words, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode() + done.stderr.decode()


class Machine(Repo):
    """A clone of a repository on a machine of its own, whose runs are recorded in the part."""

    def __init__(self, repo, base, fleet, node):
        self.base, self.path, self.home = pathlib.Path(base), pathlib.Path(base) / "repo", None
        self.fleet, self.node = fleet, node
        shutil.copytree(repo.path, self.path, symlinks=True)

    def cortex(self, *args, env=None, popen=False):
        more = {name: value for name, value in self.fleet.env_of(self.node).items() if name.startswith("CORTEX_")}
        return super().cortex(*args, env={**more, **(env or {})}, popen=popen)


SLOW = "#!/bin/sh\nsleep %s\ngrep -q \"return 0\" src/app/main.c && echo pass\n"


def policies(folder, ttl_s, slow_s=None, **more):
    """A repository with policies, whose locks have that lease and whose test takes that long."""
    settings = json.loads((kit.TESTS.parent / "policies" / "cortex.json").read_text())
    repo, key = with_policies(folder, limits={**settings["limits"], "lock_ttl_sec": ttl_s}, **more)
    if slow_s is not None:
        repo.write("scripts/test.sh", SLOW % slow_s, True)
        repo.commit("slow")
    return repo, key


class Going:
    """A run that is going on, event by event."""

    def __init__(self, machine, value, ops=GOOD_OPS, *more):
        self.machine, self.events = machine, []
        self.process = machine.cortex("run", machine.keep("contract.json", value), "--follow", "--script",
                                      machine.keep("script.json", script((ops, reply()))), *more, popen=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.communicate()

    def until(self, event_type):
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["event_type"] == event_type:
                return self
        raise AssertionError((event_type, "never came", types(self.events), self.process.stderr.read()))

    def id(self):
        return self.events[0]["run_id"]

    def freeze(self):
        freeze(self.process.pid)
        return self

    def end(self):
        """(exit code, what it printed) of a run that may go on."""
        self.process.send_signal(signal.SIGCONT)
        out, err = self.process.communicate(timeout=kit.TIMEOUT_S)
        return self.process.returncode, out, err


class Writer(threading.Thread):
    """A client that writes keys, and asks again with the same key after each failure.  With `prefix` each key is also what
    it writes, with that before it."""

    def __init__(self, nodes, retries=True, pause=0.01, patience=PATIENCE_S, prefix=None):
        super().__init__(daemon=True)
        self.nodes, self.retries, self.pause, self.patience, self.prefix = nodes, retries, pause, patience, prefix
        self.entries, self.failures, self.lost, self.slowest = {}, [], [], 0.0
        self.times = []  # of acknowledgements
        self.ends = False
        self.start()

    def run(self):
        n = 0
        while not self.ends:
            n += 1
            self.write(f"key-{id(self)}-{n}", n)
            time.sleep(self.pause)  # a connection has a port for a minute

    def write(self, key, n):
        begun = time.monotonic()
        said = {} if self.prefix is None else {"statement": self.prefix + key}
        while True:
            try:
                status, answer = self.nodes[n % len(self.nodes)].write(key, **said)
                if status in (200, 201):
                    break
                self.failures.append((key, status, answer))
            except (OSError, http.client.HTTPException) as problem:
                self.failures.append((key, repr(problem)))
            if not self.retries or time.monotonic() - begun > self.patience:
                self.lost.append(key)
                return
            n += 1
            time.sleep(0.02)
        self.times.append(time.monotonic())
        self.slowest = max(self.slowest, self.times[-1] - begun)
        self.entries[key] = answer["entry"]

    def end(self):
        self.ends = True
        self.join(self.patience)
        check(not self.is_alive(), "a client waits for an answer")
        return self


def wait(condition, *what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        check(time.monotonic() < end, "waited for", *what)
        time.sleep(0.02)
