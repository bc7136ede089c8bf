#!/usr/bin/env python3
"""soak.py - `cortex serve` under mixed load for a given time: does it stay as it is?

    soak.py [PROGRAM] [--seconds N] [--seed S] [--rate R] [--out FILE.csv]

Batches of signed traces and OpenTelemetry spans, questions of every kind, proofs, histories, readers of the feed that come and go,
writes of other programs through its socket, and clients that misbehave: half a request, a connection that
is dropped while it is answered.  Memory, descriptors and threads of the server are sampled once a second.

Holds when every request was answered as it should be, few descriptors are open after all clients have gone,
the server ends when it is told to, and its home verifies.  When it lasts JUDGED_S or more, also: over the second half of the time its own memory (RssAnon)
grows by less than BYTES_AN_ENTRY for each entry that came in, plus SLACK_BYTES; its descriptors and threads
do not grow.  Before that, the caches of the databases (up to 64 MiB and 16 MiB a reader) are still being
filled, and how soon everything was opened once depends on the machine.  Latencies are printed by route, and
not judged.

Closes with `N passed, N failed, N skipped`.
"""
import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
sys.dont_write_bytecode = True
import kit  # noqa: E402

BYTES_AN_ENTRY = 1000    # trees and maps; rows, until their page cache of 64 MiB is full
SLACK_BYTES = 6 << 20
SLACK_DESCRIPTORS = 12   # connections that are open at that moment
JUDGED_S = 1200
AGENTS = 40
AGENTS_PROGRAM = kit.sibling("cortex-agents")
API = "/api/v1/covenant"


class Soak:
    def __init__(self, options, folder):
        self.options, self.home = options, folder / "home"
        self.env = kit.clean_env(CORTEX_HOME=self.home, CORTEX_ACTOR="soak")
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.times = collections.defaultdict(list)
        self.wrong, self.agents, self.sent = [], {}, collections.Counter()
        self.samples, self.entries = [], 0
        self.cortex("init", "--no-repo", "--segment-size", "4M")
        names = [f"{i:016x}" for i in range(AGENTS)]
        for at in range(0, AGENTS, 10):  # the program takes so many at once
            store = kit.expect(kit.run(AGENTS_PROGRAM, "trust", *names[at:at + 10]), 0)
            (folder / "trust").write_bytes(store.stdout)
            self.cortex("key", "add", folder / "trust")
        for name in names:
            trace = json.loads(self.batch(name, 0, 1))["events"][0]["trace"]
            self.agents[name] = trace["agent_id_hash"]
        self.token = self.cortex("token", "add", "--scope", "trace:write", "--scope", "trace:read", "--level",
                                 "full_traces")
        self.log = open(folder / "server.log", "wb")
        self.server = subprocess.Popen([kit.BIN, "serve", "--listen", "127.0.0.1:0", "--otlp", "127.0.0.1:0",
                                        "--json"], env=self.env,
                                       stdout=subprocess.PIPE, stderr=self.log)
        said = json.loads(self.server.stdout.readline())
        self.port, self.otlp_port = (int(said[key].rsplit(":", 1)[1]) for key in ("url", "otlp_url"))

    def cortex(self, *args):
        return kit.expect(kit.run(kit.BIN, *args, env=self.env), 0).stdout.decode().strip()

    def batch(self, name, first, count):
        return kit.expect(kit.run(AGENTS_PROGRAM, "batch", f"first={first}", name, count), 0).stdout

    def complain(self, what):
        with self.lock:
            self.wrong.append(what)
            if len(self.wrong) < 20:
                print("WRONG: " + what, flush=True)

    # --- asking --------------------------------------------------------------------------------

    def ask(self, connection, route, method, path, body=None, accepted=(200,)):
        began = time.monotonic()
        connection.request(method, path, body, {"Authorization": "Bearer " + self.token,
                                                "Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        took = time.monotonic() - began
        with self.lock:
            self.times[route].append(took)
        if response.status not in accepted:
            self.complain(f"{method} {path[:120]}: {response.status} {answer[:300]!r}")
        return answer if response.status == 200 else None

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def ingest(self, rng, connection):
        name = rng.choice(list(self.agents))
        with self.lock:
            first, count = self.sent[name], rng.choice((1, 4, 16))
            self.sent[name] += count
        body = self.batch(name, first, count)
        answer = self.ask(connection, "POST events", "POST", API + "/events", body)
        if answer and json.loads(answer)["accepted"] != count:
            self.complain(f"not all accepted: {answer[:300]!r}")
        with self.lock:
            self.entries += count

    def query(self, rng, connection):
        self.ask(connection, "GET traces", "GET", f"{API}/traces?limit={rng.choice((1, 20, 100))}&agent_id_hash=" +
                 rng.choice(list(self.agents.values())))

    def one(self, rng, connection):
        name = rng.choice(list(self.agents))
        with self.lock:
            last = self.sent[name]
        if last:
            self.ask(connection, "GET traces/{id}", "GET",
                     f"{API}/traces/trace-{self.agents[name]}-{rng.randrange(last):06d}", accepted=(200, 404))

    def agent(self, rng, connection):
        what = rng.choice(("chain", "capacity", "wakeup"))
        self.ask(connection, "GET " + what, "GET", f"{API}/{what}/{rng.choice(list(self.agents.values()))}",
                 accepted=(200, 404))

    def proof(self, rng, connection):
        actor = rng.choice(list(self.agents.values()))
        roots = self.ask(connection, "GET roots", "GET", "/api/v1/roots?actor=" + actor, accepted=(200, 404))
        rows = json.loads(roots)["actors"] if roots else []
        if rows and rows[0]["journal_size"] > 1:
            size = rows[0]["journal_size"]
            self.ask(connection, "GET proofs/entry", "GET",
                     f"/api/v1/proofs/entry?actor={actor}&seq={rng.randrange(size)}&size={size}")
            self.ask(connection, "GET proofs/consistency", "GET",
                     f"/api/v1/proofs/consistency?actor={actor}&from={rng.randrange(1, size)}&to={size}")

    def lattice(self, rng, connection):
        actor = rng.choice(list(self.agents.values()))
        what = rng.choice((f"heads", f"state?node=%40agent%2F{actor}", "verify?strict=1", "render?form=svg"))
        self.ask(connection, "GET lattice/" + what.split("?")[0], "GET", f"/api/v1/lattice/agent/{actor}/{what}",
                 accepted=(200, 404))

    def about(self, rng, connection):
        path = rng.choice(("/metrics", "/healthz", "/readyz", "/openapi.json", API + "/alerts"))
        self.ask(connection, "GET " + path.rsplit("/", 1)[-1], "GET", path)

    def otlp(self, rng, _):
        """Spans as an OpenTelemetry exporter sends them, each batch a trace of its own."""
        trace, began = f"{rng.getrandbits(128):032x}", time.time_ns()
        spans = [{"traceId": trace, "spanId": f"{rng.getrandbits(64):016x}", "name": "step", "kind": 1,
                  "startTimeUnixNano": str(began + i), "endTimeUnixNano": str(began + i + 1000),
                  "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}
                 for i in range(rng.choice((1, 10)))]
        body = json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]})
        connection = http.client.HTTPConnection("127.0.0.1", self.otlp_port, timeout=300)
        self.ask(connection, "POST otlp", "POST", "/v1/traces", body)
        connection.close()
        with self.lock:
            self.entries += 1

    def misbehave(self, rng, _):
        """Half a request, or an answer that nobody waits for."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as raw:
            head = f"GET {API}/traces?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
            raw.sendall((head + rng.choice(("", "\r\n"))).encode()[:rng.choice((10, 60, 4000))])

    def command(self, rng, _):
        """Another program writes, through the server's socket."""
        began = time.monotonic()
        self.cortex("append", "note.soak", str(rng.random()))
        with self.lock:
            self.times["cortex append"].append(time.monotonic() - began)
            self.entries += 1

    # --- threads -------------------------------------------------------------------------------

    def client(self, number):
        rng = random.Random(f"{self.options.seed}-{number}")
        calls = [self.ingest, self.query, self.one, self.agent, self.proof, self.lattice, self.about, self.misbehave,
                 self.command, self.otlp]
        weights = [20, 12, 10, 4, 8, 2, 3, 1, 1, 3]
        connection = self.connect()
        while not self.stopping.is_set():
            try:
                rng.choices(calls, weights)[0](rng, connection)
                if rng.random() < 0.02:
                    connection.close()
                    connection = self.connect()
            except (OSError, http.client.HTTPException, RuntimeError) as why:
                self.complain(f"client {number}: {why!r}")
                connection = self.connect()
            self.stopping.wait(rng.expovariate(self.options.rate / self.options.clients))
        connection.close()

    def follower(self, number):
        """Reads the feed for a while, goes away, comes back where it was."""
        rng, last = random.Random(f"{self.options.seed}-feed-{number}"), "0.0"
        while not self.stopping.is_set():
            end = time.monotonic() + rng.uniform(1, 20)
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            try:
                connection.request("GET", "/api/v1/feed", headers={
                    "Authorization": "Bearer " + self.token, "Last-Event-ID": last})
                response = connection.getresponse()
                while time.monotonic() < end and not self.stopping.is_set():
                    line = response.readline().decode().rstrip("\n")
                    if line.startswith("id: "):
                        last = line[4:]
                        self.sent["events of the feed"] += 1
            except (TimeoutError, OSError, http.client.HTTPException):
                pass
            connection.close()
            self.stopping.wait(rng.uniform(0, 2))

    def sample(self):
        folder = pathlib.Path(f"/proc/{self.server.pid}")
        fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        with self.lock:
            entries = self.entries
        return {"at": time.monotonic(), "rss": int(fields["VmRSS"].split()[0]) * 1024,
                "own": int(fields["RssAnon"].split()[0]) * 1024, "threads": int(fields["Threads"]),
                "descriptors": len(list((folder / "fd").iterdir())), "entries": entries}

    def run(self):
        threads = [threading.Thread(target=self.client, args=(i,), daemon=True) for i in range(self.options.clients)]
        threads += [threading.Thread(target=self.follower, args=(i,), daemon=True) for i in range(3)]
        for thread in threads:
            thread.start()
        end, said = time.monotonic() + self.options.seconds, time.monotonic()
        while time.monotonic() < end and self.server.poll() is None:
            self.samples.append(self.sample())
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(" ".join(f"{k} {v}" for k, v in self.samples[-1].items() if k != "at"), flush=True)
            time.sleep(1)
        self.stopping.set()
        for thread in threads:
            thread.join(timeout=330)

    # --- judging -------------------------------------------------------------------------------

    def judge(self):
        if self.server.poll() is not None:
            self.complain(f"the server ended by itself: {self.server.returncode}")
            return
        time.sleep(1)
        idle = self.sample()
        if idle["descriptors"] > 48 + 4 * idle["threads"]:  # databases that several threads read
            self.complain(f"{idle['descriptors']} descriptors are open with nobody there")
        if len(self.samples) < 8:
            print(f"{len(self.samples)} samples: too few to say how anything grew")
        else:
            self.growth(idle)
        self.latencies()
        self.server.terminate()
        code = self.server.wait(timeout=300)
        if code != 0:
            self.complain(f"told to end, it ended with {code}")
        self.cortex("verify", "--home", self.home)

    def growth(self, idle):
        """Over the second half.  Threads that live for one request do not count: the least of many samples."""
        half = self.samples[len(self.samples) // 2:]
        growth = slope(half, "own") * (half[-1]["at"] - half[0]["at"])
        came = half[-1]["entries"] - half[0]["entries"]
        allowed = came * BYTES_AN_ENTRY + SLACK_BYTES
        parts = half[:len(half) // 2], half[len(half) // 2:]
        first, second = ([s["descriptors"] for s in part] for part in parts)
        threads = [min(s["threads"] for s in part) for part in parts]
        print(f"\n{self.options.seconds} s, {sum(map(len, self.times.values()))} requests, "
              f"{half[-1]['entries']} entries, {self.sent['events of the feed']} events of the feed")
        print(f"own memory: {self.samples[0]['own'] >> 10} KiB at first, {half[0]['own'] >> 10} at half time, "
              f"{half[-1]['own'] >> 10} at the end; grew by {growth / 1024:.0f} KiB over the second half, "
              f"{growth / max(came, 1):.0f} bytes an entry; allowed {allowed >> 10} KiB")
        print(f"descriptors: {min(first)} to {max(first)}, then {min(second)} to {max(second)}; "
              f"{idle['descriptors']} with nobody there.  threads: {threads[0]}, then {threads[1]}")
        if self.options.seconds < JUDGED_S:
            return
        if growth > allowed:
            self.complain("memory grows")
        if max(second) > max(first) + SLACK_DESCRIPTORS or idle["descriptors"] > max(first):
            self.complain("descriptors grow")
        if threads[1] > threads[0]:
            self.complain("threads grow")

    def latencies(self):
        print(f"\n{'route':<26}{'count':>8}{'p50 ms':>10}{'p95 ms':>10}{'p99 ms':>10}{'max ms':>10}")
        for route, times in sorted(self.times.items()):
            times.sort()
            print(f"{route:<26}{len(times):>8}" + "".join(
                f"{1000 * times[min(len(times) - 1, int(len(times) * q))]:>10.1f}" for q in (0.5, 0.95, 0.99, 1)))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            out.write("seconds,rss,own,threads,descriptors,entries\n")
            for s in self.samples:
                out.write(f"{s['at'] - self.samples[0]['at']:.1f},{s['rss']},{s['own']},{s['threads']},"
                          f"{s['descriptors']},{s['entries']}\n")


def slope(samples, name):
    """Least squares: bytes a second."""
    n = len(samples)
    mean_t, mean_v = sum(s["at"] for s in samples) / n, sum(s[name] for s in samples) / n
    above = sum((s["at"] - mean_t) * (s[name] - mean_v) for s in samples)
    below = sum((s["at"] - mean_t) ** 2 for s in samples)
    return above / below if below else 0.0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--rate", type=float, default=40, help="requests a second, all clients together")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--out", help="the samples, as CSV")
    options = parser.parse_args(kit.arguments)
    kit.need_program(AGENTS_PROGRAM)
    print(f"seed {options.seed}, {options.seconds} s", flush=True)
    folder = kit.make_folder("cortex-soak-")
    soak = Soak(options, folder)
    try:
        soak.run()
        soak.judge()
        if options.out:
            soak.write(options.out)
    finally:
        if soak.server.poll() is None:
            soak.server.kill()
            soak.server.wait()
        soak.server.stdout.close()
        soak.log.close()
    if soak.wrong:
        print(f"kept: {folder}; " + (folder / "server.log").read_text(errors="replace")[-2000:])
    else:
        kit.remove(folder)
    kit.finish_comparison(not soak.wrong)


if __name__ == "__main__":
    main()
