#!/usr/bin/env python3
"""fleet-demo.py [--stay] [PROGRAM] - from nothing to three nodes and two failovers, on this machine.

Starts a PostgreSQL of its own with a synchronous standby on loopback, makes a fleet in it, and starts three nodes
(`cortex serve --fleet`).  Clients write memories through all of them.  Meanwhile the node that serves is killed, another
one is drained and upgraded, and the primary is lost and its standby promoted.  At the end everything that was
acknowledged must be there once, and `cortex verify --home` must hold.

It begins with the address of the page: open it, and watch parts, nodes and events while all this happens.  --stay leaves
everything running afterwards, for you to kill.
PROGRAM is build/release/bin/cortex unless named.  Needs the package postgresql.  Nothing of the system is touched; all
is in one temporary folder, and gone at the end.
"""
import argparse
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/fleet"))
import cluster as clusters  # noqa: E402

FACT = {"type": "Fact", "data": {"subject": "the fleet", "predicate": "is", "statement": "up"}}
BEGUN = time.monotonic()


def say(*words):
    print(f"{time.monotonic() - BEGUN:6.1f} s  ", *words, flush=True)


class Node:
    """cortex serve --fleet: a parent, which holds the address, and a worker."""

    def __init__(self, demo, name, listen="127.0.0.1:0"):
        self.demo, self.name = demo, name
        self.log = open(demo.folder / f"{name}.log", "a", encoding="utf-8")
        self.process = subprocess.Popen(
            [demo.program, "serve", "--fleet", demo.url, "--node", name, "--listen", listen, "--json"], text=True,
            stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL, env=demo.env, start_new_session=True)
        self.address = json.loads(self.process.stdout.readline())["url"]

    def again(self):
        """The same node, where browsers know it."""
        return Node(self.demo, self.name, self.address.split("//")[1])

    def kill(self):
        """Parent and worker at once, as when the machine is lost."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def write(self, token, key):
        host = self.address.split("//")[1]
        connection = http.client.HTTPConnection(host, timeout=60)
        try:
            connection.request("POST", "/api/v1/actors/demo/memories", json.dumps({**FACT, "key": key}),
                               {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


class Client(threading.Thread):
    """Writes through all nodes in turn, and sends again with the same key what had no answer."""

    def __init__(self, demo, name):
        super().__init__(daemon=True)
        self.demo, self.name_of_keys = demo, name
        self.entries, self.again, self.slowest, self.ends = {}, 0, 0.0, False
        self.start()

    def run(self):
        n = 0
        while not self.ends:
            n += 1
            self.write(f"{self.name_of_keys}-{n}", n)
            time.sleep(0.02)

    def write(self, key, n):
        begun = time.monotonic()
        while not self.ends:
            nodes = self.demo.nodes
            try:
                status, answer = nodes[n % len(nodes)].write(self.demo.token, key)
                if status in (200, 201):
                    self.entries[key] = answer["entry"]
                    self.slowest = max(self.slowest, time.monotonic() - begun)
                    return
            except (OSError, http.client.HTTPException):
                pass
            self.again += 1
            n += 1
            time.sleep(0.05)


class Demo:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("CORTEX")}
        self.env["HOME"] = str(folder)
        self.nodes, self.clients = [], []
        say("PostgreSQL: a primary and a synchronous standby")
        self.cluster = clusters.Cluster()
        self.url = self.cluster.url()

    def cortex(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, env=self.env, check=False)
        if done.returncode != 0:
            raise SystemExit(f"cortex {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def parts(self):
        return json.loads(self.cortex("fleet", "parts", "--database", self.url, "--json"))["parts"][0]

    def owner(self, other_than=None, seconds=60):
        """The node that has the part."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            part = self.parts()
            name = (part.get("owner") or "/").split("/")[0]
            if part.get("address") and part["lease_left_ms"] > 0 and name != other_than:
                return name
            time.sleep(0.1)
        raise SystemExit("no node took the part in time")

    def named(self, name):
        return next(node for node in self.nodes if node.name == name)

    def begin(self):
        self.cortex("fleet", "init", "--database", self.url)
        self.token = json.loads(self.cortex("token", "add", "--home", self.url, "--name", "demo", "--scope", "memory:write",
                                            "--scope", "trace:read", "--level", "full_traces", "--json"))["token"]
        self.nodes = [Node(self, name) for name in ("n1", "n2", "n3")]
        say("three nodes:", ", ".join(f"{node.name} at {node.address}" for node in self.nodes))
        say("served by", self.owner())
        self.show_page()
        self.clients = [Client(self, f"client-{n}") for n in range(3)]

    def written(self):
        return sum(len(client.entries) for client in self.clients)

    def lose_the_owner(self):
        name, begun = self.owner(), time.monotonic()
        self.named(name).kill()
        say(f"{name} is killed, parent and worker; its lease runs out")
        after = self.owner(other_than=name)
        say(f"{after} serves after {time.monotonic() - begun:.1f} s; {self.written()} acknowledged so far")
        self.nodes[self.nodes.index(self.named(name))] = self.named(name).again()

    def upgrade_the_owner(self):
        name, begun = self.owner(), time.monotonic()
        self.cortex("fleet", "drain", name, "--database", self.url)
        say(f"{name} is drained, as before an upgrade")
        after = self.owner(other_than=name)
        say(f"{after} serves after {time.monotonic() - begun:.1f} s")
        self.named(name).stop()
        self.cortex("fleet", "drain", name, "--undo", "--database", self.url)
        self.nodes[self.nodes.index(self.named(name))] = self.named(name).again()

    def lose_the_primary(self):
        before, begun = self.written(), time.monotonic()
        say("the primary of PostgreSQL is lost, and its standby promoted")
        self.cluster.failover()
        while self.written() < before + 3:
            if time.monotonic() - begun > 90:
                raise SystemExit("nothing was acknowledged after the failover")
            time.sleep(0.05)
        say(f"acknowledged again after {time.monotonic() - begun:.1f} s, a new standby included")

    def judge(self):
        for client in self.clients:
            client.ends = True
        for client in self.clients:
            client.join(90)
        entries = {}
        for client in self.clients:
            for key, entry in client.entries.items():
                if entry in entries:
                    raise SystemExit(f"two keys in entry {entry}: {entries[entry]}, {key}")
                entries[entry] = key
        node = self.named(self.owner())
        for entry, key in entries.items():
            status, answer = node.write(self.token, key)
            if status != 200 or answer["entry"] != entry:
                raise SystemExit(f"{key} was acknowledged as entry {entry}, and is {status} {answer}")
        say(f"{len(entries)} acknowledged, each is there once; {sum(c.again for c in self.clients)} were sent again, the "
            f"slowest took {max(c.slowest for c in self.clients):.1f} s")
        say("cortex verify --home:", self.cortex("verify", "--home", self.url).splitlines()[0])
        say("cortex fleet doctor --chains:", self.cortex("fleet", "doctor", "--chains", "--database", self.url).splitlines()[-1])

    def show_page(self):
        say("watch it in a browser:")
        for node in self.nodes:
            print(f"            {node.address}/#token={self.token}&to=%2Fnodes    ({node.name})", flush=True)

    def stay(self):
        self.show_page()
        for node in self.nodes:
            say(f"kill {node.name}: kill -9 -{node.process.pid}")
        say(f"in a terminal: {self.program} fleet nodes --database '{self.url}'")
        say("Ctrl-C ends all of it")
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()

    def end(self):
        # A second Ctrl-C must not leave servers.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for client in self.clients:
            client.ends = True
        for node in self.nodes:
            node.stop()
        self.cluster.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stay", action="store_true", help="leave it running until Ctrl-C")
    parser.add_argument("program", nargs="?", default=str(ROOT / "build/release/bin/cortex"))
    given = parser.parse_args()
    if clusters.BIN is None:
        raise SystemExit("no PostgreSQL server is installed: apt-get install postgresql")
    if not os.access(given.program, os.X_OK):
        raise SystemExit(f"{given.program} is no program: ./scripts/bootstrap.sh makes it, or name one")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="cortex-fleet-demo-") as folder:
        demo = Demo(str(pathlib.Path(given.program).resolve()), folder)
        try:
            demo.begin()
            time.sleep(2)
            demo.lose_the_owner()
            time.sleep(1)
            demo.upgrade_the_owner()
            time.sleep(1)
            demo.lose_the_primary()
            time.sleep(1)
            demo.judge()
            if given.stay:
                demo.stay()
        finally:
            demo.end()


if __name__ == "__main__":
    main()
