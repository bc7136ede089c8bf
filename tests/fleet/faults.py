#!/usr/bin/env python3
"""faults.py - nodes of a fleet under faults, judged from outside by the tables (judge.py).

    faults.py DRIVER [--seconds N] [--seed N] [--pause S] [WORD..]

First aimed faults: each is tried with all rules, where the judge must be content, and with the rule
left out that stands against it, where the judge must find it.  Then several nodes write under random
faults: killed and frozen nodes, cut connections, cancelled waits, crashes, failovers.  CORTEX_FLEET_SECONDS
makes that part long (CI: 9 seconds), and with 30 or more a restored database is tried without its rule, too.

DRIVER is cortex-fleet-driver (driver.c).  Skipped where no PostgreSQL is installed.
"""
import argparse
import collections
import glob
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE))
ARGUMENTS = sys.argv[1:]
sys.argv = sys.argv[:1]
import kit  # noqa: E402
import cluster as clusters  # noqa: E402
import judge as judging  # noqa: E402
from judge import judge  # noqa: E402

GUARD, LEASE, WARN, RESOLVE, CHAIN = 1, 2, 8, 16, 32
BIN = os.environ.get("CORTEX_BIN", "")
tests = []


def aimed(function):
    tests.append(function)
    return function


class Node:
    """cortex-fleet-driver ask: does what it is told, line by line."""

    count = 0

    def __init__(self, fleet, out=0, lease=700, answer=1500, resolve=6000, url=None, env=None):
        Node.count += 1
        log = f"{fleet.logs}/ask-{Node.count}.log"
        open(log, "w", encoding="utf-8").close()
        fleet.log_paths.append(log)
        self.process = subprocess.Popen(
            [fleet.driver, "ask", url or fleet.cluster.url(), f"n{Node.count}", str(fleet.parts), str(lease), str(answer),
             str(resolve), str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "CORTEX_DRIVER_LOG": log, **(env or {})})
        fleet.nodes.append(self)
        self.hello = self.process.stdout.readline().strip()
        if not self.hello.startswith("ready"):
            raise RuntimeError(f"a node did not start: {self.hello}")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def ask(self, line):
        self.tell(line)
        return self.hear()

    def later(self, line):
        """Asks, and gives a function that waits for the answer."""
        self.tell(line)
        return self.hear

    def freeze(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Fleet:
    """A cluster with the tables of a fleet, and what its nodes logged."""

    def __init__(self, driver, standby=True):
        self.driver = driver
        self.cluster = clusters.Cluster(standby)
        self.logs = f"{self.cluster.home}/logs"
        self.long = False
        self.pause = 0.35
        self.parts = 2
        os.mkdir(self.logs)
        self.log_paths, self.nodes = [], []
        self.init()

    def init(self, url=None, strict=True):
        return subprocess.run([self.driver, "init", url or self.cluster.url(), str(self.parts), "1" if strict else "0"],
                              capture_output=True, text=True, check=False)

    def fresh(self, parts=2):
        """Empty tables; nodes and logs of the test before are gone."""
        for node in self.nodes:
            node.end()
        self.nodes.clear()
        self.log_paths.clear()
        self.parts = parts
        self.cluster.disarm()
        self.cluster.bring_standby_back()
        for proxy in self.cluster.proxies:
            proxy.cuts.clear()
        self.cluster.primary.sql("DROP SCHEMA IF EXISTS cortex_fleet CASCADE")
        done = self.init()
        if done.returncode != 0:
            raise RuntimeError(done.stderr)

    def judge(self):
        return judge(self.cluster.primary, self.log_paths)

    def close(self):
        for node in self.nodes:
            node.end()
        self.cluster.close()


def expect(condition, *what):
    kit.check(condition, *what)


def good(fleet):
    report = fleet.judge()
    expect(not report.findings, report.line(), report.findings[:4])
    return report


def found(fleet, *rules):
    report = fleet.judge()
    expect(any(rule in report.rules() for rule in rules), "the judge did not find it:", report.line(), report.findings[:4])


def wait_until(what, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")


# --- aimed ----------------------------------------------------------------------------------------------

@aimed
def a_frozen_node_is_fenced(fleet):
    """F1: the frozen node decided to write, lost its part meanwhile, and sends; both forms of a commit."""
    for verb, out in (("append", 0), ("many", 0), ("append", GUARD)):
        fleet.fresh()
        a, b = Node(fleet, out), Node(fleet)
        expect(a.ask("take 0").startswith("ok"))
        expect(a.ask("append 0 a1 a2").startswith("ok"))
        a.freeze()
        wait_until(lambda: b.ask("take 0").startswith("ok"))
        # Without a place that the late commit wants, which would be an error of its own.
        expect(b.ask("whole 0 0").startswith("ok"))
        a.tell(f"{verb} 0 a3")
        a.thaw()
        answer = a.hear()
        if out == 0:
            expect(answer.startswith("error Fenced"), answer)
            expect(a.ask("append 0 a4") == "error NotOwned")
            expect(b.ask("append 0 b2").startswith("ok"))
            expect(good(fleet).refused == 1)
        else:
            found(fleet, "J3", "J4")


@aimed
def a_lease_that_is_ended_for_the_dead(fleet):
    """N4: the part can be taken at once; and who was taken for dead and lives is fenced as any other."""
    fleet.fresh()
    a, b = Node(fleet, lease=600000), Node(fleet)
    owner = a.hello.split()[1]
    expect(a.ask("take 0").startswith("ok"))
    expect(a.ask("append 0 a1").startswith("ok"))
    a.end()
    expect(b.ask("take 0") == "held")
    answers = b.ask(f"release 0 {owner}"), b.ask(f"release 0 {owner}")
    expect(answers == ("ok 0", "gone"), answers)
    expect(b.ask("take 0").startswith("ok") and b.ask("append 0 b1").startswith("ok"))
    good(fleet)
    for verb, out in (("append", 0), ("many", 0), ("append", GUARD)):
        fleet.fresh()
        a, b = Node(fleet, out, lease=600000), Node(fleet)
        owner = a.hello.split()[1]
        expect(a.ask("take 0").startswith("ok"))
        expect(a.ask("append 0 a1 a2").startswith("ok"))
        a.freeze()
        expect(b.ask(f"release 0 {owner}") == "ok 0")
        if verb == "many":  # also when no one has taken it yet
            a.tell("append 0 a3")
        else:
            expect(b.ask("take 0").startswith("ok") and b.ask("whole 0 0").startswith("ok"))
            a.tell(f"{verb} 0 a3")
        a.thaw()
        answer = a.hear()
        if out != 0:
            found(fleet, "J3", "J4")
            continue
        expect(answer.startswith("error Fenced"), answer)
        expect(a.ask("append 0 a4") == "error NotOwned")
        expect(b.ask(f"release 0 {owner}") == "gone")
        expect(b.ask("take 0").startswith("ok") and b.ask("append 0 b2").startswith("ok"))
        expect(good(fleet).refused == 1)


@aimed
def a_lease_is_respected(fleet):
    """F3, by the server's clock."""
    for out in (0, LEASE):
        fleet.fresh()
        a, b = Node(fleet, lease=60000), Node(fleet, out)
        expect(a.ask("take 0").startswith("ok"))
        a.ask("append 0 a1")
        answer = b.ask("take 0")
        expect(answer == "held" if out == 0 else answer.startswith("ok"), answer)
        good(fleet) if out == 0 else found(fleet, "J5")


@aimed
def a_lost_request_is_resolved(fleet):
    """F6: the connection broke before the server had the statement, or the COMMIT of a transaction."""
    for verb, cut, out in (("append", "request", 0), ("many", "commit-request", 0), ("append", "request", RESOLVE),
                           ("many", "request", 0), ("many", "commit-request", RESOLVE))[:5 if fleet.long else 3]:
        fleet.fresh()
        a = Node(fleet, out)
        expect((said := a.ask("take 0")).startswith("ok"), said)
        expect((said := a.ask("append 0 a1")) == "ok 0", said)
        fleet.cluster.arm(cut)
        answer = a.ask(f"{verb} 0 a2")
        fleet.cluster.disarm()
        expect(answer == "ok 1", verb, cut, answer)
        expect(cuts(fleet, cut) == 1, "nothing was cut")
        if out == 0:
            expect(a.ask("append 0 a3") == "ok 2")
        good(fleet) if out == 0 else found(fleet, "J1")


@aimed
def a_lost_answer_is_resolved(fleet):
    """F6: the connection broke after COMMIT, or in the middle of a transaction."""
    for verb, cut in (("append", "answer"), ("many", "answer"), ("many", "commit-answer")):
        fleet.fresh()
        a = Node(fleet)
        expect((said := a.ask("take 0")).startswith("ok"), said)
        expect((said := a.ask("append 0 a1")) == "ok 0", said)
        fleet.cluster.arm(cut)
        expect((said := a.ask(f"{verb} 0 a2")) == "ok 1", verb, cut, said)
        fleet.cluster.disarm()
        expect(cuts(fleet, cut) == 1, "nothing was cut")
        expect(a.ask("append 0 a3") == "ok 2" and a.ask("many 0 a4") == "ok 3")
        good(fleet)


def cuts(fleet, kind):
    """Since the last time."""
    return sum(proxy.cuts.pop(kind, 0) for proxy in fleet.cluster.proxies)


@aimed
def an_outcome_is_resolved_after_the_part_was_lost(fleet):
    """F6: the network of the node is gone with the answer; another node has the part when it is back."""
    for verb, cut, there in (("append", "answer", True), ("many", "commit-request", False), ("append", "request", False),
                             ("many", "commit-answer", True))[:4 if fleet.long else 2]:
        fleet.fresh()
        proxy = clusters.Proxy(fleet.cluster.primary)
        url = f"postgresql://cortex@127.0.0.1:{proxy.port}/cortex?connect_timeout=2"
        a, b = Node(fleet, url=url, resolve=15000), Node(fleet)
        expect((said := a.ask("take 0")).startswith("ok"), said)
        expect((said := a.ask("append 0 a1")) == "ok 0", said)
        proxy.blocks = True
        proxy.armed.add(cut)
        answer = a.later(f"{verb} 0 a2")
        wait_until(lambda: b.ask("take 0").startswith("ok"))
        expect(b.ask("append 0 b1").startswith("ok"))
        proxy.blocks = proxy.blocked = False
        said = answer()
        expect(said == "ok 1" if there else said.startswith("error Fenced"), verb, cut, said)
        expect(a.ask("append 0 a3") == "error NotOwned")
        proxy.close()
        good(fleet)


@aimed
def a_node_killed_in_a_transaction_leaves_nothing(fleet):
    """Its COMMIT was never sent: the next owner finds none of its statements."""
    fleet.fresh()
    cluster = fleet.cluster
    a, b = Node(fleet), Node(fleet)
    a.ask("take 0")
    a.ask("append 0 a1")
    for proxy in cluster.proxies:
        proxy.before_cut = a.process.kill
    cluster.arm("commit-request")
    expect(a.ask("many 0 a2") == "", "the node answered")
    cluster.disarm()
    for proxy in cluster.proxies:
        proxy.before_cut = lambda: None
    wait_until(lambda: b.ask("take 0").startswith("ok"))
    files = cluster.primary.sql("SELECT string_agg(name, ' ') FROM cortex_fleet.cx_file")
    expect(files == "log/x", files)
    expect(b.ask("many 0 b1") == "ok 1")
    expect(good(fleet).acknowledged == 2)


@aimed
def a_node_that_is_silent_in_a_transaction_lets_go(fleet):
    """Its machine or network is gone without a word, between a statement and COMMIT: the lock of the part's row goes with
    the server's idle_in_transaction_session_timeout, and another node takes the part."""
    for frozen in (False, True):
        fleet.fresh()
        cluster = fleet.cluster
        a, b = Node(fleet, answer=3000, resolve=15000), Node(fleet)
        expect((said := a.ask("take 0")).startswith("ok"), said)
        expect((said := a.ask("append 0 a1")) == "ok 0", said)
        if frozen:
            for proxy in cluster.proxies:
                proxy.before_cut = a.freeze
        cluster.arm("commit-hold")
        answer = a.later("many 0 a2")
        wait_until(lambda: cuts(fleet, "commit-hold") == 1)
        wait_until(lambda: b.ask("take 0").startswith("ok"), 8)
        expect(b.ask("many 0 b1") == "ok 1")
        for proxy in cluster.proxies:
            proxy.before_cut = lambda: None
            proxy.release()
        a.thaw()
        said = answer()
        expect(said.startswith("error Fenced"), said)
        good(fleet)


def cancel_waits(server):
    """Ends the wait of those whose COMMIT waits for the standby."""
    return server.sql("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                      timeout=20) != "0"


@aimed
def a_cancelled_wait_is_no_acknowledgement(fleet):
    """F5, F6: COMMIT's wait for the standby is cancelled, then the primary is lost before the standby has it."""
    for verb, out in (("append", 0), ("many", 0), ("append", WARN), ("many", WARN)) if fleet.long else (
            ("append", 0), ("many", WARN)):
        fleet.fresh()
        cluster = fleet.cluster
        a = Node(fleet, out, lease=60000, answer=2000, resolve=2500)
        expect((said := a.ask("take 0")).startswith("ok"), said)
        expect((said := a.ask("append 0 a1")) == "ok 0", said)
        cluster.standby.stop("immediate")
        answer = a.later(f"{verb} 0 a2")
        wait_until(lambda: cancel_waits(cluster.primary))
        said = answer()
        if out == 0:
            expect(said.startswith("error OutcomeUnknown"), said)
        else:
            expect(said.startswith("ok"), said)
        cluster.standby.start(wait=False)
        lost = cluster.primary
        lost.kill()  # before the standby has connected to it
        wait_until(lambda: cluster.standby.sql("SELECT 1", check=False) == "1")
        had = cluster.standby.sql("SELECT count(*) FROM cortex_fleet.cx_commit WHERE num = 1")
        fail_over_from(cluster, lost)
        if had == "1":
            raise kit.Skipped("the standby was faster than the kill")
        good(fleet) if out == 0 else found(fleet, "J1")


def fail_over_from(cluster, lost):
    """The rest of Cluster.failover for a primary that is gone."""
    cluster.standby.promote()
    cluster.primary = cluster.standby
    shutil.rmtree(lost.data, ignore_errors=True)
    cluster.servers.remove(lost)
    index = 0 if cluster.proxies[0].server is lost else 1
    cluster.add_standby()
    cluster.proxies[index].server = cluster.standby


@aimed
def without_a_standby_nothing_is_acknowledged(fleet):
    """F5: the standby is lost; what was sent is there when it is back."""
    fleet.fresh()
    cluster = fleet.cluster
    a = Node(fleet, lease=60000, answer=1000, resolve=1500)
    a.ask("take 0")
    cluster.standby.stop("immediate")
    said = a.ask("append 0 a1")
    expect(said.startswith("error OutcomeUnknown"), said)
    cluster.standby.start()
    cluster.wait_for_standby()
    wait_until(lambda: a.ask("take 0").startswith("ok"))
    expect(a.ask("append 0 a2 a3").startswith("ok"))
    good(fleet)


@aimed
def a_part_that_was_moved_stays_so(fleet):
    """The mark is not taken for done while only the primary has it: after a failover the part would be in two places."""
    fleet.fresh()
    cluster = fleet.cluster
    a = Node(fleet, lease=60000, answer=1000, resolve=1500)
    a.ask("take 0")
    a.ask("append 0 a1")
    cluster.standby.stop("immediate")
    answer = a.later("moved 0 postgresql://elsewhere/cortex")
    wait_until(lambda: cancel_waits(cluster.primary))
    said = answer()
    cluster.standby.start()
    cluster.wait_for_standby()
    expect(said.startswith("error"), said)
    a.ask("take 1")
    cluster.arm("answer")
    expect(a.ask("moved 1 postgresql://elsewhere/cortex").startswith("ok"))
    said = Node(fleet).ask("take 1")
    expect(said.startswith("error PartMoved"), said)
    good(fleet)


@aimed
def a_server_that_stops_waiting_is_refused(fleet):
    """F5: somebody empties synchronous_standby_names."""
    fleet.fresh()
    server = fleet.cluster.primary
    a = Node(fleet, lease=60000)
    a.ask("take 0")
    a.ask("append 0 a1")
    server.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
    server.sql("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: server.sql("SHOW synchronous_standby_names") == "")
        time.sleep(0.1)
        said = a.ask("append 0 a2")
        expect(said.startswith("error NotStrict"), said)
    finally:
        server.sql("ALTER SYSTEM RESET synchronous_standby_names")
        server.sql("SELECT pg_reload_conf()")
    wait_until(lambda: server.sql("SHOW synchronous_standby_names") == "*")
    wait_until(lambda: a.ask("append 0 a2").startswith("ok"))
    good(fleet)


@aimed
def a_failover_loses_nothing(fleet):
    """The primary is killed while a commit waits; the standby has everything that was acknowledged."""
    fleet.fresh()
    a = Node(fleet, lease=60000, resolve=20000)
    a.ask("take 0")
    for n in range(20):
        expect(a.ask(f"append 0 a{n}").startswith("ok"))
    fleet.cluster.failover()
    expect(a.ask("append 0 after").startswith("ok"))
    expect(a.ask("many 0 and then").startswith("ok"))
    good(fleet)


@aimed
def a_restored_database_is_noticed(fleet):
    """F7: the database is put back to a state before the last acknowledged group."""
    for out in (0, CHAIN) if fleet.long else (0,):
        fleet.fresh()
        server, standby = fleet.cluster.primary, fleet.cluster.standby
        a = Node(fleet, out, lease=60000, resolve=15000)
        expect((said := a.ask("take 0")).startswith("ok"), said)
        expect((said := a.ask("append 0 a1")) == "ok 0", said)
        standby.stop()
        server.stop()
        shutil.copytree(server.data, f"{server.data}.old", symlinks=True)
        subprocess.run(["chown", "-R", "--reference", server.data, f"{server.data}.old"], check=True)
        os.chmod(f"{server.data}.old", 0o700)
        server.start()
        standby.start()
        fleet.cluster.wait_for_standby()
        expect(a.ask("append 0 a2").startswith("ok"))
        standby.stop()
        server.stop()
        shutil.rmtree(server.data)
        os.rename(f"{server.data}.old", server.data)
        server.start()
        shutil.rmtree(standby.data)
        standby.copy_of(server)
        standby.start()
        fleet.cluster.wait_for_standby()
        said = a.ask("append 0 a3")
        if out == 0:
            expect(said.startswith("error PartStopped"), said)
            said = a.ask("take 0")
            expect(said.startswith("error PartStopped"), said)
            expect(Node(fleet).ask("take 1").startswith("ok"), "the other part goes on")
            other = Node(fleet).ask("take 0")
            expect(other.startswith("error PartStopped"), other)
            expect(fleet.judge().rules() == ["lost, noticed"], fleet.judge().findings)
        else:
            if not said.startswith("ok"):
                wait_until(lambda: a.ask("take 0").startswith("ok"))
                expect(a.ask("append 0 a3").startswith("ok"))
            found(fleet, "J8")


@aimed
def two_fleets_do_not_share_a_database(fleet):
    """Nodes of a fleet that is not strict find the other's tables; two sets of nodes exclude each other."""
    fleet.fresh()
    done = fleet.init(strict=False)
    expect(done.returncode == 1 and "OtherFleet" in done.stderr, done)
    one, two = Node(fleet), Node(fleet)
    expect(one.ask("take 0").startswith("ok") and two.ask("take 0") == "held")
    one.ask("append 0 a")
    expect(two.ask("append 0 b") == "error NotOwned")
    good(fleet)


@aimed
def a_node_needs_only_its_role(fleet):
    """The role of roles.sql takes, writes, changes files, renews, resolves, checks and gives back."""
    fleet.fresh()
    server = fleet.cluster.primary
    server.sql((HERE.parent.parent / "sql/fleet/roles.sql").read_text(encoding="utf-8"))
    server.sql("DROP ROLE IF EXISTS node_1; CREATE ROLE node_1 LOGIN IN ROLE cortex_fleet_node")
    a, b = (Node(fleet, url=fleet.cluster.url().replace("cortex@", "node_1@")) for _ in range(2))
    expect(a.ask("take 0").startswith("ok") and a.ask("append 0 a1 a2 a3").startswith("ok"))
    for line in ("many 0 a4", "whole 0 0", "renew 0", "put 0 tokens.json x", "drop 0 tokens.json", "check 0"):
        said = a.ask(line)
        expect(said.startswith("ok"), line, said)
    fleet.cluster.arm("answer")
    expect(a.ask("append 0 a5").startswith("ok"))
    fleet.cluster.disarm()
    a.freeze()
    wait_until(lambda: b.ask("take 0").startswith("ok"))
    expect(b.ask("append 0 b1").startswith("ok"))
    a.thaw()
    expect(a.ask("append 0 a6").startswith("error Fenced"))
    expect(b.ask("give 0").startswith("ok"))
    kinds = server.sql("SELECT string_agg(kind, ' ' ORDER BY id) FROM cortex_fleet.cx_event")
    expect(kinds == "take take fenced", kinds)
    good(fleet)


@aimed
def what_is_overwritten_cannot_be_tried(fleet):
    """Nonces go with the bytes: of a chunk written anew, of a file cut, replaced or removed; others stay, and a check
    leaves the connection as it was."""
    fleet.fresh()
    a, b = Node(fleet, lease=60000), Node(fleet, lease=60000)
    a.ask("take 0")
    server = fleet.cluster.primary

    def nonces():
        return server.sql("SELECT coalesce(string_agg(num::text, ' ' ORDER BY num), '') FROM cortex_fleet.cx_commit WHERE "
                          "nonce IS NOT NULL")

    for n, line in enumerate(("append 0 a b c", "append 0 d", "large 0 e 150000", "append 0 f")):
        expect(a.ask(line) == f"ok {n}")
    expect(nonces() == "0 1 2 3", nonces())
    expect(a.ask("whole 0 0") == "ok 4" and nonces() == "3 4", nonces())
    expect(a.ask("many 0 g") == "ok 5" and nonces() == "3 4 5", nonces())  # wrote log/s1 and log/s2
    expect(a.ask("many 0 h") == "ok 6" and nonces() == "3 4 6", nonces())  # replaced log/s2, removed log/s1
    expect(a.ask("check 0") == "ok 7 3 2", a.ask("check 0"))
    b.ask("take 1")
    b.ask("append 1 z")
    expect(a.ask("append 0 i") == "ok 7" and a.ask("check 1") == "ok 1 1 0", "it reads an old state")
    good(fleet)
    server.sql("UPDATE cortex_fleet.cx_extent SET bytes = set_byte(bytes, 0, get_byte(bytes, 0) # 1) WHERE part = 0 AND "
               "num = 3")
    said = a.ask("check 0")
    expect(said.startswith("error ChainBroken") and "commit 3" in said, said)
    found(fleet, "J3")
    server.sql("INSERT INTO cortex_fleet.cx_extent SELECT part, file, chunk + 9, start, 77, bytes FROM "
               "cortex_fleet.cx_extent WHERE part = 1")
    said = a.ask("check 1")
    expect(said.startswith("error ChainBroken") and "beyond" in said, said)


CHAIN_OF_0 = ("next", "head", "epoch", "base", "base_head", "base_num")


def keep_chain(server, name):
    """Part 0 as it is, to be put back later as a restored backup does."""
    server.sql(f"CREATE TABLE cortex_fleet.{name}_c AS SELECT * FROM cortex_fleet.cx_commit WHERE part = 0; "
               f"CREATE TABLE cortex_fleet.{name}_p AS SELECT * FROM cortex_fleet.cx_part WHERE part = 0; "
               f"CREATE TABLE cortex_fleet.{name}_e AS SELECT * FROM cortex_fleet.cx_extent WHERE part = 0")


def put_chain_back(server, name):
    server.sql("".join(f"DELETE FROM cortex_fleet.{table} WHERE part = 0; "
                       f"INSERT INTO cortex_fleet.{table} SELECT * FROM cortex_fleet.{name}_{table[3]}; "
                       for table in ("cx_commit", "cx_extent"))
               + "UPDATE cortex_fleet.cx_part p SET " + ", ".join(f"{c} = k.{c}" for c in CHAIN_OF_0)
               + f" FROM cortex_fleet.{name}_p k WHERE p.part = 0")


@aimed
def many_commits_are_pruned_in_several_transactions(fleet):
    """F8: the driver prunes 20 commits in one transaction; each states its base."""
    fleet.fresh()
    a, server = Node(fleet, lease=60000), fleet.cluster.primary
    a.ask("take 0")
    expect(a.ask("append 0 a") == "ok 0")
    for n in range(1, 50):
        expect(a.ask("whole 0 0") == f"ok {n}")
    said = a.ask("prune 0 2")
    expect(said.split()[:2] == ["ok", "48"], said)
    base, stated, following = map(int, server.sql("SELECT base, base_num, next FROM cortex_fleet.cx_part WHERE part = 0").split("\t"))
    expect((base, stated, following) == (48, 52, 53), base, stated, following)
    rows = int(server.sql("SELECT count(*) FROM cortex_fleet.cx_commit WHERE part = 0"))
    expect(rows == 53 - int(said.split()[2]), rows, said)
    good(fleet)
    expect(a.ask("append 0 b") == "ok 53")


@aimed
def what_is_pruned_leaves_what_is_checked(fleet):
    """F8: rows go whose bytes are gone; what stays, and where the chain begins, is stated by a commit of the chain."""
    fleet.fresh()
    a, server = Node(fleet, lease=60000), fleet.cluster.primary
    a.ask("take 0")
    for n, line in enumerate(("append 0 a b c", "append 0 d", "large 0 e 150000", "append 0 f", "whole 0 0", "many 0 g",
                              "many 0 h")):
        expect(a.ask(line) == f"ok {n}", line)
    expect(a.ask("check 0") == "ok 7 3 2", a.ask("check 0"))
    keep_chain(server, "before")
    # What is broken is not pruned away: bytes without a commit, a commit without bytes, a link.
    for wrong in ("DELETE FROM cortex_fleet.cx_commit WHERE part = 0 AND num = 3",
                  "DELETE FROM cortex_fleet.cx_extent WHERE part = 0 AND num = 3",
                  "UPDATE cortex_fleet.cx_commit SET digest = head WHERE part = 0 AND num = 1"):
        server.sql(wrong)
        said = a.ask("prune 0 1")
        expect(said.startswith("error ChainBroken"), wrong, said)
        put_chain_back(server, "before")
    said = a.ask("prune 0 1")
    expect(said == "ok 6 2 4", "of 0 to 5 these have no bytes: 0, 1;", said)
    expect(server.sql("SELECT string_agg(num::text, ' ' ORDER BY num) FROM cortex_fleet.cx_commit WHERE part = 0")
           == "2 3 4 5 6 7")
    expect(a.ask("check 0") == "ok 2 3 2", a.ask("check 0"))
    expect(good(fleet).pruned == 2)
    expect(a.ask("prune 0 1") == "ok 6 0 0", "there is nothing more")
    expect(a.ask("append 0 i") == "ok 8")
    keep_chain(server, "after")
    # A row before the base with another content and the hash of it, as a DBA could write it.
    epoch, prev, own = server.sql("SELECT epoch, encode(prev, 'hex'), encode(digest, 'hex') FROM cortex_fleet.cx_commit "
                                  "WHERE part = 0 AND num = 3").split("\t")
    forged = judging.digest(bytes.fromhex(own))
    head = judging.digest(b"cortex.fleet.commit.v1", bytes.fromhex(prev), judging.u64(0, int(epoch), 3), forged)
    where = "WHERE part = 0 AND num = 3"
    for wrong in (f"UPDATE cortex_fleet.cx_commit SET digest = '\\x{forged.hex()}', head = '\\x{head.hex()}', nonce = NULL {where}",
                  f"DELETE FROM cortex_fleet.cx_commit {where}; DELETE FROM cortex_fleet.cx_extent {where}",
                  "INSERT INTO cortex_fleet.cx_commit SELECT * FROM cortex_fleet.before_c WHERE num = 1",
                  "UPDATE cortex_fleet.cx_part SET base = 0, base_head = NULL, base_num = NULL WHERE part = 0",
                  "UPDATE cortex_fleet.cx_part SET base = 7 WHERE part = 0",
                  "UPDATE cortex_fleet.cx_part SET base_num = 8 WHERE part = 0",
                  "UPDATE cortex_fleet.cx_part SET base_head = head WHERE part = 0",
                  "DELETE FROM cortex_fleet.cx_commit WHERE part = 0 AND num = 7"):
        server.sql(wrong)
        said = a.ask("check 0")
        expect(said.startswith("error ChainBroken"), wrong, said)
        found(fleet, "J3", "J6")
        put_chain_back(server, "after")
    expect(a.ask("check 0") == "ok 3 4 2", a.ask("check 0"))
    good(fleet)
    # A database of before is noticed by the node that knows better.
    put_chain_back(server, "before")
    said = a.ask("append 0 j")
    expect(said.startswith("error PartStopped"), said)


@aimed
def who_knows_less_than_what_was_pruned_is_told(fleet):
    """A process takes a part again that was pruned past what it knew: it cannot compare, and says so; a new one can."""
    fleet.fresh()
    a, b = Node(fleet, lease=60000), Node(fleet, lease=60000)
    expect(b.ask("take 0").startswith("ok") and b.ask("append 0 a") == "ok 0" and b.ask("give 0").startswith("ok"))
    expect(a.ask("take 0").startswith("ok"))
    for line in ["large 0 b 150000"] + 5 * ["whole 0 0"]:
        expect(a.ask(line).startswith("ok"))
    said = a.ask("prune 0 1")
    expect(said == "ok 6 5 1", said)
    expect(a.ask("give 0").startswith("ok"))
    said = b.ask("take 0")
    expect(said.startswith("error Pruned") and "start it again" in said, said)
    expect(fleet.cluster.primary.sql("SELECT count(*) FROM cortex_fleet.cx_event WHERE kind = 'stopped'") == "0")
    b.end()
    fleet.cluster.primary.sql("UPDATE cortex_fleet.cx_part SET lease_until = NULL")  # what a lease's end does
    expect(Node(fleet).ask("take 0").startswith("ok"))
    good(fleet)


def plans_of(log, offset, words):
    """What auto_explain wrote of statements that have these words."""
    with open(log, encoding="utf-8", errors="replace") as f:
        f.seek(offset)
        entries = f.read().split(" plan:\n")[1:]
    return [entry.split("LOG:")[0] for entry in entries if words in entry.split("LOG:")[0]]


@aimed
def removing_a_file_does_not_scan_commits(fleet):
    """Cutting, removing and replacing a file finds the commits that wrote it by their key, among any number."""
    if not os.path.exists(f"{clusters.BIN}/../lib/auto_explain.so"):
        kit.skip("auto_explain is not installed")
    server = fleet.cluster.primary
    for analyzed in (False, True):
        fleet.fresh()
        server.sql("INSERT INTO cortex_fleet.cx_commit SELECT 0, -n, 1, '', '', '', '\\x00' FROM generate_series(1, 20000) n")
        if analyzed:  # so that the server takes each file for a large one
            server.sql("INSERT INTO cortex_fleet.cx_extent SELECT 0, -1, n, 0, -n, 'x' FROM generate_series(1, 20000) n")
            server.sql("ANALYZE cortex_fleet.cx_commit, cortex_fleet.cx_extent")
        for setting in ("session_preload_libraries = 'auto_explain'", "auto_explain.log_min_duration = 0"):
            server.sql(f"ALTER DATABASE cortex SET {setting}")
        try:
            offset = os.path.getsize(server.log)
            a = Node(fleet)
            expect(a.ask("take 0").startswith("ok"))
            for n in range(12):  # with files that are made, renamed, cut and removed
                expect(a.ask(f"many 0 k{n}").startswith("ok"))
            a.end()
        finally:
            server.sql("ALTER DATABASE cortex RESET ALL")
        server.sql("DELETE FROM cortex_fleet.cx_commit WHERE num < 0; DELETE FROM cortex_fleet.cx_extent WHERE num < 0")
        found_plans = plans_of(server.log, offset, "SET nonce = NULL")
        expect(sum("DELETE FROM cortex_fleet.cx_file" in plan for plan in found_plans) >= 2, "no file was removed")
        expect(sum("chunk * 65536 >=" in plan for plan in found_plans) >= 2, "no file was cut")
        for plan in found_plans:
            expect("Seq Scan on cx_commit" not in plan, plan)
            lines = plan.splitlines()
            for i, line in enumerate(lines):
                if "cx_commit_pkey" in line:
                    expect("num" in lines[i + 1], plan)
        good(fleet)


@aimed
def small_files_of_two_nodes(fleet):
    """F4: the last acknowledged write of a file that two nodes write at once stays, whatever answer was lost."""
    fleet.fresh()
    a, b = Node(fleet), Node(fleet)
    a.ask("put 0 f 0")
    answers = [node.later(f"put 0 f {node is a}-{n}") for n in range(20) for node in (a, b)]
    expect(all(answer().startswith("ok") for answer in answers))
    seen = {a.ask("get 0 f"), b.ask("get 0 f")}
    expect(seen in ({"ok True-19"}, {"ok False-19"}), seen)
    for skips in (0, 1):
        for each in fleet.cluster.proxies:
            each.skips = skips
        fleet.cluster.arm("answer")
        expect(a.ask(f"put 0 f lost{skips}").startswith("ok") and b.ask("get 0 f") == f"ok lost{skips}")
        expect((count := cuts(fleet, "answer")) == 1, skips, count)
    # A write whose answer was lost, and another's after it: the first one must not come back.
    proxy = clusters.Proxy(fleet.cluster.primary)
    c = Node(fleet, url=f"postgresql://cortex@127.0.0.1:{proxy.port}/cortex?connect_timeout=2", resolve=15000)

    def overtaken(first, late, between, verb):
        """`late` is answered after `verb` of another node was."""
        a.ask(first)
        proxy.skips = 1  # a change looks first
        proxy.blocks = True
        proxy.armed.add("answer")
        answer = c.later(late)
        wait_until(lambda: b.ask("get 0 f").startswith(between))
        expect(b.ask(verb).startswith("ok"))
        proxy.blocks = proxy.blocked = False
        expect(answer().startswith("ok"))
        return a.ask("get 0 f")

    expect(overtaken("put 0 f before", "put 0 f older", "ok older", "put 0 f newer") == "ok newer")
    expect(overtaken("put 0 f before", "put 0 f older", "ok older", "drop 0 f").startswith("error NoFile"))
    expect(overtaken("drop 0 f", "put 0 f older", "ok older", "put 0 f newer") == "ok newer")
    expect(overtaken("put 0 f before", "drop 0 f", "error NoFile", "put 0 f newer") == "ok newer")
    proxy.close()


FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)


@aimed
def a_clock_that_jumps_changes_nothing(fleet):
    """Clocks of nodes (libfaketime): a year ahead, a year behind, and jumping each second.  The clock of the server is not
    touched here.  Time that only grows (CLOCK_MONOTONIC) is the machine's."""
    if FAKETIME is None:
        raise kit.Skipped("libfaketime is not installed")
    fleet.fresh()
    jumps = f"{fleet.cluster.home}/jumps"
    base = {"LD_PRELOAD": FAKETIME, "DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}

    def jump(text):
        pathlib.Path(jumps).write_text(text, encoding="utf-8")

    jump("+0")
    a = Node(fleet, env={**base, "FAKETIME": "+365d"})
    b = Node(fleet, env={**base, "FAKETIME": "-365d"})
    c = Node(fleet, env={**base, "FAKETIME_TIMESTAMP_FILE": jumps})
    expect(a.ask("take 0").startswith("ok") and b.ask("take 0") == "held" and c.ask("take 1").startswith("ok"))
    for n in range(12):
        jump(("+300d", "-300d", "+0")[n % 3])
        expect(a.ask(f"append 0 a{n}").startswith("ok") and c.ask(f"many 1 c{n}").startswith("ok"))
        expect(b.ask("take 0") == "held" and b.ask("take 1") == "held")
    fleet.cluster.arm("answer")
    jump("+1000d")
    expect(c.ask("append 1 c").startswith("ok"))
    fleet.cluster.disarm()
    a.freeze()
    wait_until(lambda: b.ask("take 0").startswith("ok"))
    a.thaw()
    expect(a.ask("append 0 late").startswith("error Fenced"))
    good(fleet)


@aimed
def the_clock_of_the_server_jumps(fleet):
    """A primary under libfaketime: a day ahead, then two days back.  A lease ends at once, or late; who was fenced writes
    nothing, and who has the part goes on."""
    if FAKETIME is None:
        raise kit.Skipped("libfaketime is not installed")
    fleet.fresh()
    cluster = fleet.cluster
    jumps = f"{cluster.home}/server-jumps"
    env = {"LD_PRELOAD": FAKETIME, "DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1", "FAKETIME_TIMESTAMP_FILE": jumps}

    def jump(text):
        pathlib.Path(jumps).write_text(text, encoding="utf-8")
        hour = int(cluster.primary.sql("SELECT extract(epoch FROM now())::bigint / 3600")) - int(time.time()) // 3600
        expect(abs(hour - 24 * int(text[:2])) <= 1, "the server has another clock", text, hour)

    pathlib.Path(jumps).write_text("+0d", encoding="utf-8")
    cluster.primary.stop()
    cluster.primary.start(env=env)
    try:
        cluster.wait_for_standby()
        a, b = Node(fleet, lease=60000, resolve=20000), Node(fleet, lease=60000, resolve=20000)
        expect(a.ask("take 0").startswith("ok") and a.ask("append 0 a1").startswith("ok") and b.ask("take 0") == "held")
        jump("+1d")
        wait_until(lambda: b.ask("take 0").startswith("ok"))
        expect(a.ask("append 0 a2").startswith("error Fenced"))
        expect(b.ask("many 0 b1").startswith("ok"))
        jump("-1d")
        expect(a.ask("take 0") == "held")
        expect(b.ask("append 0 b2").startswith("ok") and b.ask("many 0 b3").startswith("ok"))
        expect(b.ask("give 0").startswith("ok") and a.ask("take 0").startswith("ok"))
        expect(a.ask("append 0 a3").startswith("ok"))
        good(fleet)
    finally:
        cluster.primary.stop()
        cluster.primary.start()
        cluster.wait_for_standby()


class Certificates:
    """An authority, and a server's certificates by it."""

    def __init__(self, folder):
        self.folder = folder
        os.mkdir(folder)
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
                 "-out", "ca.crt", "-days", "10", "-subj", "/CN=authority")
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "server.key", "-out",
                 "server.csr", "-subj", "/CN=localhost")
        pathlib.Path(f"{folder}/names").write_text("subjectAltName = IP:127.0.0.1\n", encoding="utf-8")

    def run(self, *words, early=None):
        prefix = ["faketime", early] if early else []
        subprocess.run([*prefix, "openssl", *words], cwd=self.folder, check=True, capture_output=True,
                       stdin=subprocess.DEVNULL)

    def give(self, server, early=None):
        """A certificate for a day, of today or `early`."""
        self.run("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                 "server.crt", "-days", "1", "-extfile", "names", early=early)
        for name in ("server.key", "server.crt"):
            shutil.copy(f"{self.folder}/{name}", f"{server.data}/{name}")
            os.chmod(f"{server.data}/{name}", 0o600)
            if clusters.USER:
                os.chown(f"{server.data}/{name}", clusters.USER.pw_uid, clusters.USER.pw_gid)
        server.sql("ALTER SYSTEM SET ssl = on")
        server.sql("SELECT pg_reload_conf()")


@aimed
def an_expired_certificate_is_refused(fleet):
    """sslmode=verify-full: a node does not speak with a server whose certificate has expired; with a new one it works."""
    if shutil.which("openssl") is None or shutil.which("faketime") is None:
        raise kit.Skipped("openssl or faketime is not installed")
    fleet.fresh()
    server = fleet.cluster.primary
    certificates = Certificates(f"{fleet.cluster.home}/certificates")
    url = (f"postgresql://cortex@127.0.0.1:{server.port}/cortex?sslmode=verify-full&sslrootcert={certificates.folder}/ca.crt"
           "&connect_timeout=2")

    def wait_for(valid):
        wait_until(lambda: (subprocess.run(["psql", "-X", "-q", "-c", "SELECT 1", url], capture_output=True,
                                           check=False).returncode == 0) == valid)

    try:
        certificates.give(server)
        wait_for(True)
        a = Node(fleet, url=url, resolve=1500)
        expect(a.ask("take 0").startswith("ok") and a.ask("append 0 a1").startswith("ok"))
        certificates.give(server, early="2 days ago")
        wait_for(False)
        try:
            Node(fleet, url=url, env={"CORTEX_DRIVER_ONCE": "1"})
            expect(False, "a node started")
        except RuntimeError as why:
            expect("certificate" in str(why), why)
        end_backends(server)  # what is connected goes on; this must connect again
        said = a.ask("append 0 a2")
        expect(said.startswith("error") and "certificate" in said, said)
        certificates.give(server)
        wait_for(True)
        wait_until(lambda: a.ask("take 0").startswith("ok"))
        expect(a.ask("append 0 a3").startswith("ok"))
        good(fleet)
    finally:
        server.sql("ALTER SYSTEM RESET ssl")
        server.sql("SELECT pg_reload_conf()")


def end_backends(server, limit=100):
    """How many of nodes there were."""
    return int(server.sql("SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE "
                          f"application_name = 'cortex fleet' ORDER BY random() LIMIT {limit}) a"))


class Pooler:
    """pgbouncer before the primary, as the user of the server."""

    def __init__(self, fleet, mode):
        self.port = clusters.free_port()
        folder = f"{fleet.cluster.home}/pooler-{mode}"
        os.mkdir(folder)
        with open(f"{folder}/ini", "w", encoding="utf-8") as f:
            f.write(f"[databases]\ncortex = host=127.0.0.1 port={fleet.cluster.primary.port} dbname=cortex user=cortex\n"
                    f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nauth_type = any\n"
                    f"pool_mode = {mode}\nunix_socket_dir =\nlogfile = {folder}/log\npidfile = {folder}/pid\n"
                    "default_pool_size = 2\nignore_startup_parameters = extra_float_digits\n")
        if clusters.USER:
            for each in (folder, f"{folder}/ini"):
                os.chown(each, clusters.USER.pw_uid, clusters.USER.pw_gid)
        prefix = ["runuser", "-u", clusters.USER.pw_name, "--"] if clusters.USER else []
        self.process = subprocess.Popen([*prefix, "pgbouncer", "-q", f"{folder}/ini"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.url = f"postgresql://cortex@127.0.0.1:{self.port}/cortex?target_session_attrs=read-write"
        wait_until(lambda: subprocess.run(["psql", "-X", "-q", "-c", "SELECT 1", self.url], capture_output=True,
                                          check=False).returncode == 0)

    def end(self):
        self.process.terminate()
        self.process.wait()


@aimed
def a_pooler_in_between(fleet):
    """In session mode it works.  In transaction mode, which is not supported, a second node is refused at its start
    (its prepared statements are the first one's), or nothing wrong is acknowledged."""
    if shutil.which("pgbouncer") is None:
        raise kit.Skipped("pgbouncer is not installed")
    for mode in ("session", "transaction") if fleet.long else ("session",):
        fleet.fresh()
        pooler = Pooler(fleet, mode)
        try:
            nodes = [Node(fleet, url=pooler.url, lease=60000)]
            try:
                nodes.append(Node(fleet, url=pooler.url, lease=60000))
            except RuntimeError:
                expect(mode == "transaction", "a node did not start")
            answers = [node.ask(f"take {n}") for n, node in enumerate(nodes)]
            for number in range(12):
                for n, node in enumerate(nodes):
                    answers.append(node.ask(f"append {n} k{n}-{number}"))
            if mode == "session":
                expect(all(answer.startswith("ok") for answer in answers), answers)
            good(fleet)
        finally:
            for node in fleet.nodes:
                node.end()
            pooler.end()


@aimed
def a_slow_network_is_only_slow(fleet):
    """40 ms each way: nothing is lost or taken away.  An answer that takes longer than a node waits for it is resolved."""
    fleet.fresh()
    proxies = fleet.cluster.proxies
    a, b = Node(fleet, lease=5000, answer=1000), Node(fleet)
    expect(a.ask("take 0").startswith("ok") and a.ask("append 0 a").startswith("ok"))

    def delay(seconds):
        for proxy in proxies:
            proxy.delay = seconds

    try:
        delay(0.04)
        begun = time.monotonic()
        for n in range(2):
            expect(a.ask(f"append 0 a{n}").startswith("ok") and a.ask(f"many 0 m{n}").startswith("ok"))
            expect(a.ask("renew 0").startswith("ok"))
        expect(time.monotonic() - begun > 6 * 0.08, "the network was not slow")
        expect(b.ask("take 0") == "held")
        late = ("append", "many")[:2 if fleet.long else 1]
        for verb in late:
            delay(0.7)
            answer = a.later(f"{verb} 0 slow-{verb}")
            time.sleep(1.6)
            delay(0.0)
            said = answer()
            expect(said.startswith("ok"), verb, said)
        epoch = fleet.cluster.primary.sql("SELECT epoch FROM cortex_fleet.cx_part WHERE part = 0")
        expect(int(epoch) > 1, "no answer was too late")
    finally:
        delay(0.0)
    expect(fleet.cluster.primary.sql("SELECT count(*) FROM cortex_fleet.cx_event WHERE kind = 'fenced'") == "0")
    expect(good(fleet).acknowledged == 5 + len(late))


def not_removable(server):
    """Dead rows of extents that vacuum must keep, as it says."""
    done = subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(server.port), "-U", "cortex", "-d", "cortex", "-c",
                           "VACUUM VERBOSE cortex_fleet.cx_extent"], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL)
    said = re.search(r"tuples: .*, ([0-9]+) are dead but not yet removable", done.stderr)
    expect(said is not None, done.stderr)
    return int(said.group(1))


@aimed
def a_long_transaction_stops_no_one(fleet):
    """Somebody's snapshot stays open: nodes write, erase and take parts.  What they overwrote stays in the table until the
    transaction is over, and then goes with vacuum."""
    fleet.fresh()
    server = fleet.cluster.primary
    a, b = Node(fleet), Node(fleet)
    expect(a.ask("take 0").startswith("ok") and a.ask("append 0 a1 a2 a3").startswith("ok"))
    reader = subprocess.Popen(["psql", "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", str(server.port), "-U", "cortex", "-d",
                               "cortex"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        reader.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT count(*) FROM cortex_fleet.cx_extent;\n")
        reader.stdin.flush()
        seen = reader.stdout.readline()
        for line in ("append 0 a4", "whole 0 0", "many 0 a5", "renew 0"):
            expect((said := a.ask(line)).startswith("ok"), line, said)
        a.freeze()
        wait_until(lambda: b.ask("take 0").startswith("ok"))
        a.thaw()
        expect(a.ask("append 0 late").startswith("error Fenced"))
        expect(b.ask("append 0 b1").startswith("ok"))
        expect(not_removable(server) > 0, "nothing was kept")
        reader.stdin.write("SELECT count(*) FROM cortex_fleet.cx_extent;\nCOMMIT;\n")
        reader.stdin.close()
        expect(reader.stdout.readline() == seen, "the transaction sees what came later")
        reader.wait(10)
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()
    wait_until(lambda: not_removable(server) == 0)
    good(fleet)


@aimed
def a_large_commit_is_one(fleet):
    """More than one statement takes: all of it is there, or nothing."""
    fleet.fresh()
    a = Node(fleet, lease=60000, answer=20000)
    a.ask("take 0")
    expect(a.ask("large 0 k1 34000000") == "ok 0")
    for cut in ("commit-request", "commit-answer"):
        fleet.cluster.arm(cut)
        said = a.ask(f"large 0 {cut} 17000000")
        expect(said.startswith("ok"), said)
    fleet.cluster.disarm()
    expect(a.ask("check 0") == "ok 3 3 0")
    good(fleet)


@aimed
def a_full_disk_is_said(fleet):
    """53100: a tablespace of 2 MB; what was refused is accepted when there is room."""
    fleet.fresh()
    folder = f"{fleet.cluster.home}/small"
    os.mkdir(folder)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode != 0:
        raise kit.Skipped("no tmpfs can be mounted here")
    server = fleet.cluster.primary
    try:
        inside = f"{folder}/space"
        os.mkdir(inside)
        if clusters.USER:
            os.chown(inside, clusters.USER.pw_uid, clusters.USER.pw_gid)
        # Its standby would look for the same folder, so this is tried without one.
        fleet.cluster.standby.stop()
        server.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: server.sql("SHOW synchronous_standby_names") == "")
        server.sql(f"CREATE TABLESPACE small LOCATION '{inside}'")
        server.sql("DROP SCHEMA cortex_fleet CASCADE")
        url = f"postgresql://cortex@127.0.0.1:{server.port}/cortex"
        expect(fleet.init(url, strict=False).returncode == 0)
        server.sql("ALTER TABLE cortex_fleet.cx_extent SET TABLESPACE small")
        a = Node(fleet, lease=60000, url=url)
        a.ask("take 0")
        said, sent = "ok", 0
        while said.startswith("ok") and sent < 4000:
            said = a.ask("append 0 " + " ".join(f"k{sent + n}" for n in range(16)))
            sent += 16
        expect(said.startswith("error DatabaseFull"), said, sent)
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        again = a.ask("append 0 " + " ".join(f"k{sent - 16 + n}" for n in range(16)))
        expect(again.startswith("ok"), again)
        good(fleet)
    finally:
        for node in fleet.nodes:
            node.end()
        server.sql("DROP SCHEMA IF EXISTS cortex_fleet CASCADE", check=False)
        server.sql("DROP TABLESPACE IF EXISTS small", check=False)
        subprocess.run(["umount", folder], check=False)
        server.sql("ALTER SYSTEM RESET synchronous_standby_names", check=False)
        server.sql("SELECT pg_reload_conf()", check=False)
        # It would replay the making of a tablespace in a folder that is the primary's.
        shutil.rmtree(fleet.cluster.standby.data)
        fleet.cluster.standby.copy_of(server)
        fleet.cluster.standby.start()
        fleet.cluster.wait_for_standby()


# --- random ---------------------------------------------------------------------------------------------

class Writers:
    """Nodes that write until the time is over; those that are killed are started again over their logs."""

    def __init__(self, fleet, count, parts, seconds):
        self.fleet, self.parts, self.share = fleet, parts, parts // count + 1
        self.end = time.monotonic() + seconds
        self.running = {}
        self.frozen = set()
        for n in range(count):
            self.start(f"w{n}")

    def start(self, name):
        left = int(self.end - time.monotonic())
        if left < 1:
            return
        log = f"{self.fleet.logs}/{name}.log"
        if log not in self.fleet.log_paths:
            self.fleet.log_paths.append(log)
            open(log, "a", encoding="utf-8").close()
        self.running[name] = subprocess.Popen(
            [self.fleet.driver, "write", self.fleet.cluster.url(), name, log, str(self.parts), str(self.share), str(left),
             "800", "1500", "8000"], stdout=subprocess.DEVNULL)
        self.frozen.discard(name)

    def kill(self, rng):
        name = rng.choice(sorted(self.running))
        self.running[name].kill()
        self.running[name].wait()
        self.start(name)

    def freeze(self, rng):
        """A timer that ends it, or None when that node is frozen already, or has ended."""
        name = rng.choice(sorted(self.running))
        process = self.running[name]
        if name in self.frozen or process.poll() is not None:
            return None
        self.frozen.add(name)
        os.kill(process.pid, signal.SIGSTOP)

        def thaw():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                if self.running[name] is process:
                    self.frozen.discard(name)

        timer = threading.Timer(1.0 + rng.random(), thaw)
        timer.start()
        return timer

    def wait(self):
        for name, process in self.running.items():
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError(f"{name} did not end")


class Faults:
    """One fault after the other.  False: it was not possible, as when the one before is still to come; a cut is counted when
    it happens."""

    def __init__(self, fleet, writers, rng):
        self.fleet, self.writers, self.rng = fleet, writers, rng
        self.counts = collections.Counter()
        self.timers = []
        self.promotions = []

    def node_killed(self):
        self.writers.kill(self.rng)

    def node_frozen(self):
        timer = self.writers.freeze(self.rng)
        if timer is None:
            return False
        self.timers.append(timer)
        return True

    def request_cut(self):
        self.fleet.cluster.arm("request")
        return False

    def answer_cut(self):
        self.fleet.cluster.arm("answer")
        return False

    def transaction_cut(self):
        self.fleet.cluster.arm(self.rng.choice(("commit-request", "commit-answer")))
        return False

    def transaction_held(self):
        """The network of a node is silent for a while, from a COMMIT on."""
        if self.fleet.cluster.arm("commit-hold"):
            for proxy in self.fleet.cluster.proxies:
                timer = threading.Timer(1 + self.rng.random(), proxy.release)
                timer.start()
                self.timers.append(timer)
        return False

    def backend_ended(self):
        return end_backends(self.fleet.cluster.primary, 1) != 0

    def wait_cancelled(self):
        """The standby is held for a moment, so that a COMMIT waits."""
        server = self.fleet.cluster.primary
        standby = self.fleet.cluster.standby.pid()
        receivers = subprocess.run(["pgrep", "-P", str(standby), "-f", "walreceiver"], stdout=subprocess.PIPE,
                                   text=True, check=False).stdout.split()
        for pid in receivers:
            os.kill(int(pid), signal.SIGSTOP)
        try:
            time.sleep(0.15)
            return cancel_waits(server)
        finally:
            for pid in receivers:
                try:
                    os.kill(int(pid), signal.SIGCONT)
                except ProcessLookupError:
                    pass

    def standby_lost(self):
        self.fleet.cluster.standby.stop("immediate")
        time.sleep(0.3)
        self.fleet.cluster.standby.start()

    def primary_crashed(self):
        self.fleet.cluster.primary.kill()
        self.fleet.cluster.primary.start()

    def failover(self):
        self.promotions.append(self.fleet.cluster.failover())

    def locks_held(self):
        self.fleet.cluster.primary.sql("BEGIN; SELECT * FROM cortex_fleet.cx_part FOR UPDATE; SELECT pg_sleep(0.5); COMMIT")

    def network_slow(self):
        """30 ms each way, for a second."""
        for proxy in self.fleet.cluster.proxies:
            proxy.delay = 0.03
        time.sleep(1)
        for proxy in self.fleet.cluster.proxies:
            proxy.delay = 0.0

    def long_transaction(self):
        """A snapshot that stays, so that nothing can be vacuumed meanwhile."""
        server = self.fleet.cluster.primary
        threading.Thread(target=server.sql, daemon=True, args=(
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM cortex_fleet.cx_part; SELECT pg_sleep(3)", False)
        ).start()

    COMMON = [node_killed, node_frozen, request_cut, answer_cut, backend_ended, wait_cancelled, request_cut, answer_cut,
              transaction_cut, transaction_cut, transaction_held]
    RARE = [standby_lost, primary_crashed, failover, locks_held, network_slow, long_transaction]

    def run(self, end, pause):
        rare_at = time.monotonic() + 1
        rare = list(self.RARE)
        self.rng.shuffle(rare)
        rare.sort(key=lambda fault: fault.__name__ != "failover")  # that at least once, also in a short run
        while time.monotonic() < end:
            time.sleep(pause * (0.5 + self.rng.random()))
            fault = self.rng.choice(self.COMMON)
            if time.monotonic() > rare_at and end - time.monotonic() > 4:
                fault = rare[0]
                rare.append(rare.pop(0))
                rare_at = time.monotonic() + 4
            try:
                if fault(self) is not False:
                    self.counts[fault.__name__] += 1
            except (RuntimeError, subprocess.TimeoutExpired) as why:
                # The server was on its way up or down, as a fault before wanted it.
                self.counts[f"{fault.__name__} (not possible)"] += 1
                if "PANIC" in str(why):
                    raise
        for timer in self.timers:
            timer.join()
        self.fleet.cluster.disarm()
        for proxy in self.fleet.cluster.proxies:
            self.counts.update({f"{kind} cut": count for kind, count in proxy.cuts.items()})

    def total(self):
        return sum(count for name, count in self.counts.items() if "not possible" not in name)


def random_faults(fleet, seconds, seed):
    """Several nodes, all faults; at the end the judge."""
    fleet.fresh(parts=8)
    rng = random.Random(seed)
    writers = Writers(fleet, 3, 8, seconds)
    faults = Faults(fleet, writers, rng)
    faults.run(time.monotonic() + seconds - 3, fleet.pause)
    writers.wait()
    report = good(fleet)
    if fleet.long:
        print(f"random faults, seed {seed}, {seconds} s: {report.line()}")
        print(f"  {faults.total()} faults:", ", ".join(f"{n} {name}" for name, n in sorted(faults.counts.items())))
        print("  answers of nodes:", dict(report.errors))
        print(f"  promotions took {min(faults.promotions, default=0):.2f} to {max(faults.promotions, default=0):.2f} s")
    expect(report.acknowledged > 100, "hardly anything was written")
    expect(report.stopped == 0, "a part was stopped, and nothing was restored")
    if seconds >= 30:
        expect(report.refused > 0, "no write of a node that had lost its part was refused")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("CORTEX_FLEET_SECONDS", "9")))
    parser.add_argument("--pause", type=float, default=0.35, help="seconds between two random faults, about")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CORTEX_FLEET_SEED", "17")))
    given = parser.parse_args(ARGUMENTS)
    if clusters.BIN is None or shutil.which("psql") is None:
        kit.skip_all("no PostgreSQL server is installed", len(tests) + 1)

    def random_faults_with_all_rules(fleet):
        random_faults(fleet, given.seconds, given.seed)

    long = given.seconds >= 30 or given.words != []
    # The longest first; two at a time, each with servers of its own, as most of the time is waiting.
    left = collections.deque(function for function in [random_faults_with_all_rules, *tests]
                             if not given.words or any(word in function.__name__ for word in given.words))
    counts = collections.Counter()

    def work():
        fleet = Fleet(given.driver)
        fleet.pause, fleet.long = given.pause, long
        try:
            while left:
                function = left.popleft()
                begun = time.monotonic()
                counts[kit.call(function, fleet)] += 1
                if long:
                    print(f"  {time.monotonic() - begun:5.1f} s {function.__name__}", flush=True)
        except IndexError:
            pass  # the other one had the last
        finally:
            fleet.close()

    expected = len(left)
    workers = [threading.Thread(target=work) for _ in range(1 if long else 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counts["failed"] += expected - sum(counts.values())  # a worker that ended early
    kit.finish(counts["passed"], counts["failed"], counts["skipped"])


if __name__ == "__main__":
    main()
