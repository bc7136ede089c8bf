#!/usr/bin/env python3
"""patroni_faults.py - nodes of a fleet over PostgreSQL under Patroni with etcd, and HAProxy, under faults.

    patroni_faults.py [PROGRAM] [--rounds N] [--settings recommended|defaults] [--seed N] [FAULT..]

Three servers, one of them a synchronous standby, with the settings in packaging/patroni (tests/fleet/patroni.py).
Two parts, each with two nodes (`cortex serve --fleet`) and two clients that write keys without a pause: the nodes of
one part connect through HAProxy, those of the other by libpq with all hosts in the URL.  Each round tries each fault
once.  At the end

- each acknowledged key is in the log of its part exactly once: counted in the tables against a key that was written
  before the faults; and some are asked of a node by writing them again, which answers the same entry;
- the judge (judge.py) finds nothing in chains, epochs, leases and extents;
- `cortex verify --home` and `cortex fleet doctor --chains` hold;

and the longest time without an acknowledgement is printed for each fault: lowest, middle, highest.

`recommended` are the settings of packaging/patroni/dcs.yaml; `defaults` are Patroni's own, with synchronous_mode and
synchronous_mode_strict.  A round takes three to five minutes, so that this is skipped unless --rounds or
CORTEX_PATRONI_ROUNDS says how many.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE))
ARGUMENTS, sys.argv = sys.argv[1:], sys.argv[:1] + [a for a in sys.argv[1:2] if os.path.isfile(a)]
import kit  # noqa: E402
import patroni  # noqa: E402
from fleet_kit import Fleet, Writer, wait  # noqa: E402
from judge import judge, rows  # noqa: E402
from kit import BIN, check  # noqa: E402

ASKED_AGAIN = 300  # keys of each part that a node is asked for again
DEFAULTS = {"ttl": 30, "loop_wait": 10, "retry_timeout": 10, "failsafe_mode": None, "primary_start_timeout": None}
TAKES_NOTHING_BACK = (3, 0, 3)  # Patroni before it: a primary that wakes up can take the lock from the one that replaced it
PATIENCE_S = 180  # of a client: a part that does not come back in it is a failure
QUIET_S = 5
SYNCHRONOUS = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')"
REFERENCE = "key-0-0"  # written once before the faults: how often the text of a memory is in a log
PREFIX = "the text of "  # of each memory, before its key


class Way:
    """A part, its nodes, which connect to the database by the same URL, and its clients."""

    def __init__(self, name, url, number):
        self.name = name
        self.fleet = Fleet(types.SimpleNamespace(cluster=types.SimpleNamespace(url=lambda: url), parts=number))

    def begin(self):
        self.nodes = [self.fleet.node(f"{self.name}-{n}") for n in (1, 2)]
        self.nodes[0].write(REFERENCE, PATIENCE_S, PREFIX + REFERENCE)
        self.writers = [Writer(self.nodes, pause=0.05, patience=PATIENCE_S, prefix=PREFIX) for _ in range(2)]

    def times(self):
        return sorted(t for writer in self.writers for t in list(writer.times))

    def acknowledged(self):
        return sum(len(writer.times) for writer in self.writers)

    def gap(self, begun, ended):
        """The longest time without an acknowledgement between the two."""
        times = self.times()
        before = [t for t in times if t < begun]
        within = [t for t in times if begun <= t <= ended]
        moments = [before[-1] if before else begun, *within, *([] if within else [ended])]
        return max((b - a for a, b in zip(moments, moments[1:])), default=0.0)

    def owner(self):
        wait(lambda: sum(node.serves() and node.process.poll() is None for node in self.nodes) == 1, self.name, "an owner")
        return next(n for n, node in enumerate(self.nodes) if node.serves())

    def end(self):
        for writer in self.writers:
            writer.end()
            check(writer.lost == [], self.name, "no answer in time:", writer.lost)

    def keys(self):
        return {key: entry for writer in self.writers for key, entry in writer.entries.items()}


def is_primary(member):
    return member.ask("GET", "/primary")[0] == 200


def has_standby(member):
    try:
        return member.sql(SYNCHRONOUS, check=False, database="postgres", timeout=15) not in ("", "0")
    except subprocess.TimeoutExpired:
        return False


class Faults:
    """Each returns when what was broken is started again."""

    def __init__(self, cluster, ways):
        self.cluster, self.ways = cluster, ways
        self.seen = []  # of the last fault: when another primary was there, and when it had a standby

    def nothing(self):
        time.sleep(QUIET_S)

    def switch_over(self):
        """To the synchronous standby, as before an upgrade of the primary."""
        leader, candidate = self.cluster.primary, self.cluster.synchronous()
        status, text = leader.ask("POST", "/switchover", {"leader": leader.name, "candidate": candidate.name}, 120)
        check(status == 200, "switchover:", status, text)
        self.wait_for_another(leader)

    def primary_lost(self):
        """kill -9 of PostgreSQL and Patroni."""
        lost = self.cluster.primary
        lost.lose()
        self.wait_for_another(lost)
        lost.start_patroni()

    def postgres_killed(self):
        """kill -9 of PostgreSQL alone: Patroni is there, and hands over (or starts it again, by its defaults)."""
        self.cluster.primary.kill_server()

    def primary_frozen(self):
        """Patroni and PostgreSQL stand still until another server is the primary, and then go on."""
        frozen = self.cluster.primary
        frozen.signal_all(signal.SIGSTOP)
        try:
            self.wait_for_another(frozen)
            self.wait_for_writes()
        finally:
            frozen.signal_all(signal.SIGCONT)

    def etcd_stopped(self):
        """For longer than the lock of the primary is valid."""
        ttl = self.cluster.primary.ask("GET", "/config")[1]
        self.cluster.etcd.end()
        time.sleep(1.5 * json.loads(ttl)["ttl"])
        self.cluster.etcd.start()

    def haproxy_killed(self):
        self.cluster.proxy.end(signal.SIGKILL)
        time.sleep(2)
        self.cluster.proxy.start()

    def node_killed(self):
        """The node that serves each part, parent and worker."""
        for way in self.ways:
            n = way.owner()
            way.nodes[n].kill()
            way.nodes[n] = way.fleet.node(way.nodes[n].name)

    def standby_lost(self):
        """kill -9 of the synchronous one: the other standby takes its place."""
        lost = self.cluster.synchronous()
        lost.lose()
        self.wait_for_writes()
        lost.start_patroni()

    def all_standbys_lost(self):
        """For ten seconds: nothing is acknowledged meanwhile."""
        leader = self.cluster.primary
        standbys = [member for member in self.cluster.members if member is not leader]
        for standby in standbys:
            standby.lose()
        time.sleep(0.5)
        before = [way.acknowledged() for way in self.ways]
        time.sleep(10)
        check([way.acknowledged() for way in self.ways] == before, "acknowledged without a standby")
        for standby in standbys:
            standby.start_patroni()

    ALL = [nothing, switch_over, primary_lost, postgres_killed, primary_frozen, etcd_stopped, haproxy_killed, node_killed,
           standby_lost, all_standbys_lost]

    def wait_for_another(self, lost):
        others = [member for member in self.cluster.members if member is not lost]
        self.cluster.wait(lambda: any(is_primary(member) for member in others), "another primary")
        self.seen.append(time.monotonic())
        self.cluster.wait(lambda: any(is_primary(member) and has_standby(member) for member in others), "its standby")
        self.seen.append(time.monotonic())

    def wait_for_writes(self, count=5):
        seen = [way.acknowledged() for way in self.ways]
        end = time.monotonic() + PATIENCE_S
        for way, before in zip(self.ways, seen):
            while way.acknowledged() < before + count:
                check(time.monotonic() < end, way.name, "nothing is acknowledged any more", self.cluster.tails())
                time.sleep(0.02)

    def measure(self, fault):
        """[the longest time without an acknowledgement] of each way."""
        self.cluster.wait_healthy()
        self.wait_for_writes()
        time.sleep(1)
        self.seen = []
        begun = time.monotonic()
        fault(self)
        self.wait_for_writes()
        self.cluster.wait_healthy()
        self.wait_for_writes()
        ended = time.monotonic()
        return [way.gap(begun, ended) for way in self.ways], [moment - begun for moment in self.seen]


def texts_of(server, part):
    """key -> how often its text is in the log of the part, read from the tables."""
    number, = (int(row[0]) for row in rows(server, f"SELECT part FROM cortex_fleet.cx_part WHERE name = '{part}'"))
    log = collections.defaultdict(bytes)
    for name, data in rows(server, "SELECT f.name, encode(e.bytes, 'hex') FROM cortex_fleet.cx_extent e JOIN "
                           f"cortex_fleet.cx_file f USING (part, file) WHERE part = {number} AND NOT f.derived AND f.name "
                           "LIKE 'log/%' ORDER BY f.name, e.chunk, e.start"):
        log[name] += bytes.fromhex(data)
    found = collections.Counter()
    for data in log.values():
        found.update(key.decode() for key in re.findall(PREFIX.encode() + rb"(key-[0-9]+-[0-9]+)", data))
    return found


def judge_all(cluster, ways):
    for way in ways:
        way.end()
    cluster.wait_healthy()
    for way in ways:
        keys = way.keys()
        check(len(set(keys.values())) == len(keys), way.name, "two keys in one entry")
        node = way.nodes[way.owner()]
        for key in random.sample(sorted(keys), min(ASKED_AGAIN, len(keys))):
            status, again = node.write(key, statement=PREFIX + key)
            check(status == 200 and again["duplicate"] and again["entry"] == keys[key], key, keys[key], status, again)
        for node in way.nodes:
            check(node.stop() == 0, node.said())
        found = texts_of(cluster.primary, way.fleet.part)
        check(found[REFERENCE] > 0, way.name, "the first key is not there")
        wrong = {key: found[key] for key in {*keys, *found} if found[key] != found[REFERENCE]}
        check(not wrong, way.name, "keys that are not there exactly once:", len(wrong), list(wrong.items())[:5])
        way.fleet.ok("verify", "--home", way.fleet.url)
    report = judge(cluster.primary, [])
    check(not report.findings, report.line(), report.findings[:4])
    ways[0].fleet.ok("fleet", "doctor", "--chains")
    return report


def show(name, gaps, ways):
    print(f"settings: {name}; seconds without an acknowledgement, lowest, middle, highest")
    for fault, values in gaps.items():
        cells = [f"{way.name} {min(v):.1f} {statistics.median(v):.1f} {max(v):.1f}" for way, v in zip(ways, zip(*values))]
        print(f"  {fault} ({len(values)}): {'; '.join(cells)}", flush=True)


def keep_evidence(cluster, ways):
    """What all programs said, and what the tables have, before both are removed."""
    folder = kit.make_folder("cortex-patroni-failed-")
    for program in cluster.programs():
        shutil.copy(program.log, folder)
    for way in ways:
        for node in way.fleet.nodes:
            shutil.copy(node.log_path, folder)
    print(f"the logs are in {folder}; {cluster.state()}; the key /sync: {cluster.etcd.get('/service/cortex/sync')}")
    if cluster.leader() is None:
        return
    for what in ("cx_event WHERE kind <> 'take'", "cx_part"):
        print(what, cluster.leader().sql(f"SELECT * FROM cortex_fleet.{what}", check=False, timeout=30))
    for way in ways:
        found = texts_of(cluster.leader(), way.fleet.part)
        missing = [key for key in way.keys() if found[key] == 0]
        print(f"{way.name}: {len(missing)} of {len(way.keys())} acknowledged keys are not there", missing[:5])


def ends_at_signals():
    """So that what was started is stopped."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: sys.exit(128 + got))


def try_settings(name, rounds, rng, words):
    gaps = collections.defaultdict(list)
    cluster = patroni.Cluster()
    ways = []
    try:
        if name == "defaults":
            cluster.configure(**DEFAULTS)
        kit.expect(kit.run(BIN, "fleet", "init", "--database", cluster.url_of_all(), env=kit.clean_env()), 0)
        for n, (kind, url) in enumerate((("haproxy", cluster.url_by_proxy()), ("hosts", cluster.url_of_all()))):
            way = Way(kind, url, n)
            way.fleet.__enter__()
            ways.append(way)
            way.begin()
        faults = Faults(cluster, ways)
        if not words and patroni.version() < TAKES_NOTHING_BACK:
            faults.ALL = [fault for fault in faults.ALL if fault is not Faults.primary_frozen]
            print("  not tried: primary_frozen; this Patroni can lose what was acknowledged (docs/fleet.md)", flush=True)
        for n in range(rounds):
            chosen = [f for f in faults.ALL if not words or any(word in f.__name__ for word in words)]
            rng.shuffle(chosen)
            for fault in chosen:
                found, seen = faults.measure(fault)
                gaps[fault.__name__].append(found)
                print(f"  round {n + 1}, {name}, {fault.__name__}:", ", ".join(f"{gap:.1f} s" for gap in found),
                      *(["(another primary after {:.1f} s, with a standby after {:.1f} s)".format(*seen)] if seen else []),
                      flush=True)
        report = judge_all(cluster, ways)
        show(name, {f.__name__: gaps[f.__name__] for f in faults.ALL if f.__name__ in gaps}, ways)
        for way in ways:
            writers = way.writers
            failures = collections.Counter(str(failure[1]).split("(")[0] for w in writers for failure in w.failures)
            print(f"  {way.name}: {len(way.keys())} acknowledged, each there once; slowest request "
                  f"{max(w.slowest for w in writers):.1f} s; sent again: {dict(failures)}")
        print("  judge:", report.line())
        print(f"  Patroni that kept an old copy of a key was started again: {cluster.restarts_of_stale} times", flush=True)
    except Exception:
        keep_evidence(cluster, ways)
        raise
    finally:
        # A second signal must not leave servers.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        try:
            for way in ways:
                way.fleet.__exit__()
        finally:
            cluster.close()
        ends_at_signals()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("CORTEX_PATRONI_ROUNDS", "0")))
    parser.add_argument("--settings", choices=["recommended", "defaults"], action="append")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CORTEX_FLEET_SEED", "17")))
    given = parser.parse_args([a for a in ARGUMENTS if not os.path.isfile(a)])
    chosen = given.settings or ["recommended", "defaults"]
    why = patroni.missing() or (None if given.rounds > 0 else "minutes long; CORTEX_PATRONI_ROUNDS=1 runs it")
    if why:
        kit.skip_all(why, len(chosen))
    ends_at_signals()
    rng = random.Random(given.seed)
    counts = collections.Counter()
    for name in chosen:
        def faults_lose_nothing(name=name):
            try_settings(name, given.rounds, rng, given.words)
        faults_lose_nothing.__name__ = f"faults_lose_nothing, {name}"
        counts[kit.call(faults_lose_nothing)] += 1
    kit.finish(counts["passed"], counts["failed"], counts["skipped"])


if __name__ == "__main__":
    main()
