#!/usr/bin/env python3
"""faults.py - nodes of a fleet under faults, judged from outside by the tables (judge.py).

    faults.py DRIVER [--seconds N] [--seed N] [WORD..]

First aimed faults: each is tried with all rules, where the judge must be content, and with the rule
left out that stands against it, where the judge must find it.  Then several nodes write under random
faults: killed and frozen nodes, cut connections, cancelled waits, crashes, failovers.  CORTEX_FLEET_SECONDS
makes that part long (CI: 12 seconds), and with 30 or more a restored database is tried without its rule, too.

DRIVER is cortex-fleet-driver (driver.c).  Skipped where no PostgreSQL is installed.
"""
import argparse
import collections
import os
import pathlib
import random
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
from judge import judge  # noqa: E402

GUARD, LEASE, KEYS, WARN, RESOLVE, CHAIN = 1, 2, 4, 8, 16, 32
BIN = os.environ.get("CORTEX_BIN", "")
tests = []


def aimed(function):
    tests.append(function)
    return function


class Node:
    """cortex-fleet-driver ask: does what it is told, line by line."""

    count = 0

    def __init__(self, fleet, out=0, lease=700, answer=1500, resolve=6000, url=None):
        Node.count += 1
        self.log = open(f"{fleet.logs}/ask-{Node.count}.log", "w", encoding="utf-8")
        fleet.log_paths.append(self.log.name)
        self.process = subprocess.Popen(
            [fleet.driver, "ask", url or fleet.cluster.url(), f"n{Node.count}", str(lease), str(answer), str(resolve),
             str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        fleet.nodes.append(self)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("a node did not start")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self, line):
        """The answer; what it acknowledges is in the log that the judge reads."""
        answer = self.process.stdout.readline().strip()
        words = line.split()
        if words[0] in ("append", "large") and answer.startswith("ok"):
            for key, place in zip(words[2:3] if words[0] == "large" else words[2:], answer.split()[1:]):
                num, frame = place.rstrip("r").split("/")
                self.log.write(f"ack {key} {words[1]} {num} {frame} 0 -\n")
        elif answer.startswith("error"):
            self.log.write(answer.split(maxsplit=1)[1] + "\n")
        self.log.flush()
        return answer

    def ask(self, line):
        self.tell(line)
        return self.hear(line)

    def later(self, line):
        """Asks, and gives a function that waits for the answer."""
        self.tell(line)
        return lambda: self.hear(line)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()


class Fleet:
    """A cluster with the tables of a fleet, and what its nodes logged."""

    def __init__(self, driver, standby=True):
        self.driver = driver
        self.cluster = clusters.Cluster(standby)
        self.logs = f"{self.cluster.home}/logs"
        self.long = False
        self.pause = 0.35
        os.mkdir(self.logs)
        self.log_paths, self.nodes = [], []
        self.init()

    def init(self):
        command = [BIN, "fleet", "init", "--database", self.cluster.url()]
        if self.cluster.standby is None:
            command.append("--no-standby")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def fresh(self):
        """Empty tables; nodes and logs of the test before are gone."""
        for node in self.nodes:
            node.end()
        self.nodes.clear()
        self.log_paths.clear()
        self.cluster.primary.sql("DROP SCHEMA IF EXISTS cortex_fleet CASCADE")
        self.init()

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
    """F1: the frozen node decided to write, lost its part meanwhile, and sends."""
    for out in (0, GUARD):
        fleet.fresh()
        a, b = Node(fleet, out), Node(fleet)
        expect(a.ask("take 0").startswith("ok"))
        expect(a.ask("append 0 a1 a2").startswith("ok"))
        os.kill(a.process.pid, signal.SIGSTOP)
        wait_until(lambda: b.ask("take 0").startswith("ok"))
        expect(b.ask("append 0 b1").startswith("ok"))
        a.tell("append 0 a3")
        os.kill(a.process.pid, signal.SIGCONT)
        answer = a.hear("append 0 a3")
        b.ask("append 0 b2")
        if out == 0:
            expect(answer.startswith("error Fenced"), answer)
            expect(good(fleet).refused == 1)
        else:
            found(fleet, "J3", "J4")


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
def a_key_counts_once_on_any_node(fleet):
    """F4: the client did not get the answer, and asks another node."""
    for out in (0, KEYS):
        fleet.fresh()
        a, b = Node(fleet, out), Node(fleet, out)
        a.ask("take 0")
        expect(a.ask("append 0 k1 k2") == "ok 0/0 0/1")
        a.ask("give 0")
        b.ask("take 0")
        answer = b.ask("append 0 k1 k3")
        expect((answer == "ok 0/0r 1/0") == (out == 0), answer)
        good(fleet) if out == 0 else found(fleet, "J2")


@aimed
def a_lost_request_is_resolved(fleet):
    """F6: the connection broke before the server had the request."""
    for out in (0, RESOLVE):
        fleet.fresh()
        a = Node(fleet, out)
        a.ask("take 0")
        a.ask("append 0 a1")
        for proxy in fleet.cluster.proxies:
            proxy.cut = "request"
        answer = a.ask("append 0 a2")
        for proxy in fleet.cluster.proxies:
            proxy.cut = None
        expect(answer.startswith("ok"), answer)
        good(fleet) if out == 0 else found(fleet, "J1")


@aimed
def a_lost_answer_is_resolved(fleet):
    """F6: the connection broke after COMMIT."""
    fleet.fresh()
    a = Node(fleet)
    a.ask("take 0")
    a.ask("append 0 a1")
    for proxy in fleet.cluster.proxies:
        proxy.cut = "answer"
    expect(a.ask("append 0 a2") == "ok 1/0")
    for proxy in fleet.cluster.proxies:
        proxy.cut = None
    expect(a.ask("append 0 a3") == "ok 2/0" and a.ask("append 0 a2") == "ok 1/0r")
    good(fleet)


@aimed
def an_outcome_is_resolved_after_the_part_was_lost(fleet):
    """F6: the network of the node is gone with the answer; another node has the part when it is back."""
    for what in ("answer", "request"):
        fleet.fresh()
        proxy = clusters.Proxy(fleet.cluster.primary)
        url = f"postgresql://cortex@127.0.0.1:{proxy.port}/cortex?connect_timeout=2"
        a, b = Node(fleet, url=url, resolve=15000), Node(fleet)
        a.ask("take 0")
        a.ask("append 0 a1")
        proxy.blocks, proxy.cut = True, what
        answer = a.later("append 0 a2")
        wait_until(lambda: b.ask("take 0").startswith("ok"))
        expect(b.ask("append 0 b1").startswith("ok"))
        proxy.blocks = proxy.blocked = False
        said = answer()
        expect(said == "ok 1/0" if what == "answer" else said.startswith("error Fenced"), what, said)
        expect(a.ask("append 0 a3").startswith("error Fenced"))
        proxy.close()
        good(fleet)


def cancel_waits(server):
    """Ends the wait of those whose COMMIT waits for the standby."""
    return server.sql("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
                      timeout=20) != "0"


@aimed
def a_cancelled_wait_is_no_acknowledgement(fleet):
    """F5, F6: COMMIT's wait for the standby is cancelled, then the primary is lost before the standby has it."""
    for out in (0, WARN):
        fleet.fresh()
        cluster = fleet.cluster
        a = Node(fleet, out, lease=60000, answer=2000, resolve=2500)
        a.ask("take 0")
        a.ask("append 0 a1")
        cluster.standby.stop("immediate")
        answer = a.later("append 0 a2")
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
        had = cluster.standby.sql("SELECT count(*) FROM cortex_fleet.cx_group WHERE num = 1")
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
    expect(a.ask("append 0 a1 a2").startswith("ok"))
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
    wait_until(lambda: a.ask("append 0 after a19").startswith("ok"), 20)
    good(fleet)


@aimed
def a_restored_database_is_noticed(fleet):
    """F7: the database is put back to a state before the last acknowledged group."""
    for out in (0, CHAIN) if fleet.long else (0,):
        fleet.fresh()
        server, standby = fleet.cluster.primary, fleet.cluster.standby
        a = Node(fleet, out, lease=60000, resolve=15000)
        a.ask("take 0")
        a.ask("append 0 a1")
        standby.stop()
        server.stop()
        shutil.copytree(server.data, f"{server.data}.old", symlinks=True)
        subprocess.run(["chown", "-R", "--reference", server.data, f"{server.data}.old"], check=True)
        os.chmod(f"{server.data}.old", 0o700)
        server.start()
        standby.start()
        fleet.cluster.wait_for_standby()
        wait_until(lambda: a.ask("append 0 a2").startswith("ok"), 20)
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
    done = subprocess.run([BIN, "fleet", "init", "--no-standby", "--database", fleet.cluster.url()],
                          capture_output=True, text=True, check=False)
    expect(done.returncode == 1 and "OtherFleet" in done.stderr, done)
    one, two = Node(fleet), Node(fleet)
    expect(one.ask("take 0").startswith("ok") and two.ask("take 0") == "held")
    one.ask("append 0 a")
    expect(two.ask("append 0 b").startswith("error Fenced"))
    good(fleet)


@aimed
def a_node_needs_only_its_role(fleet):
    """The role of roles.sql takes, appends, renews, resolves and gives back."""
    fleet.fresh()
    server = fleet.cluster.primary
    sql = subprocess.run([BIN, "fleet", "init", "--print-sql"], check=True, stdout=subprocess.PIPE, text=True).stdout
    server.sql(sql[sql.index("-- roles.sql"):])
    server.sql("DROP ROLE IF EXISTS node_1; CREATE ROLE node_1 LOGIN IN ROLE cortex_fleet_node")
    a, b = (Node(fleet, url=fleet.cluster.url().replace("cortex@", "node_1@")) for _ in range(2))
    expect(a.ask("take 0").startswith("ok") and a.ask("append 0 a1 a2 a3").startswith("ok"))
    expect(a.ask("large 0 a4 2000000").startswith("ok") and a.ask("renew 0").startswith("ok"))
    for proxy in fleet.cluster.proxies:
        proxy.cut = "answer"
    expect(a.ask("append 0 a5").startswith("ok"))
    for proxy in fleet.cluster.proxies:
        proxy.cut = None
    os.kill(a.process.pid, signal.SIGSTOP)
    wait_until(lambda: b.ask("take 0").startswith("ok"))
    expect(b.ask("append 0 a5 b1").startswith("ok"))
    os.kill(a.process.pid, signal.SIGCONT)
    expect(a.ask("append 0 a6").startswith("error Fenced"))
    expect(b.ask("give 0").startswith("ok"))
    kinds = server.sql("SELECT string_agg(kind, ' ' ORDER BY id) FROM cortex_fleet.cx_event")
    expect(kinds == "take take fenced", kinds)
    good(fleet)


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
def a_large_group_is_there_in_pieces(fleet):
    """1 MiB and more; the limit of a group is an error, and nothing is there."""
    fleet.fresh()
    a = Node(fleet, lease=60000, answer=8000)
    a.ask("take 0")
    expect(a.ask("large 0 k1 3000000") == "ok 0/0")
    expect(a.ask("large 0 k1 3000000") == "ok 0/0r")
    expect(a.ask("large 0 k2 1000000") == "ok 1/0")
    expect(a.ask("large 0 k3 90000000").startswith("error Other"), "a frame that is too large")
    sizes = fleet.cluster.primary.sql("SELECT num, count(*), sum(length(bytes)) FROM cortex_fleet.cx_piece GROUP BY num")
    expect(sizes.split("\t")[:2] == ["0", "3"], sizes)
    good(fleet)
    done = subprocess.run([BIN, "fleet", "doctor", "--chains", "--database", fleet.cluster.url()], capture_output=True,
                          text=True, check=False)
    expect(done.returncode == 0 and "1 parts recomputed" in done.stdout, done)


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
        subprocess.run([BIN, "fleet", "init", "--no-standby", "--database", url], check=True, stdout=subprocess.DEVNULL)
        server.sql("ALTER TABLE cortex_fleet.cx_live SET TABLESPACE small")
        a = Node(fleet, lease=60000, url=url)
        a.ask("take 0")
        said, sent = "ok", 0
        while said.startswith("ok") and sent < 4000:
            said = a.ask("append 0 " + " ".join(f"k{sent + n}" for n in range(16)))
            sent += 16
        expect(said.startswith("error DatabaseFull"), said, sent)
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
        again = a.ask("append 0 " + " ".join(f"k{sent - 16 + n}" for n in range(16)))
        expect(again.startswith("ok") and "r" not in again[2:], again)
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

    def kill(self, rng):
        name = rng.choice(sorted(self.running))
        self.running[name].kill()
        self.running[name].wait()
        self.start(name)

    def freeze(self, rng):
        process = self.running[rng.choice(sorted(self.running))]
        os.kill(process.pid, signal.SIGSTOP)
        timer = threading.Timer(1.0 + rng.random(), lambda: process.poll() is None and process.send_signal(signal.SIGCONT))
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
    """One fault after the other, each counted."""

    def __init__(self, fleet, writers, rng):
        self.fleet, self.writers, self.rng = fleet, writers, rng
        self.counts = collections.Counter()
        self.timers = []
        self.promotions = []

    def node_killed(self):
        self.writers.kill(self.rng)

    def node_frozen(self):
        self.timers.append(self.writers.freeze(self.rng))

    def request_cut(self):
        for proxy in self.fleet.cluster.proxies:
            proxy.cut = "request"

    def answer_cut(self):
        for proxy in self.fleet.cluster.proxies:
            proxy.cut = "answer"

    def backend_ended(self):
        self.fleet.cluster.primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
                                       "'cortex fleet' ORDER BY random() LIMIT 1")

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
            cancel_waits(server)
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

    COMMON = [node_killed, node_frozen, request_cut, answer_cut, backend_ended, wait_cancelled]
    RARE = [standby_lost, primary_crashed, failover, locks_held, network_slow, long_transaction]

    def run(self, end, pause):
        rare_at = time.monotonic() + 2
        rare = list(self.RARE)
        self.rng.shuffle(rare)
        rare.sort(key=lambda fault: fault.__name__ != "failover")  # that at least once, also in a short run
        while time.monotonic() < end:
            time.sleep(pause * (0.5 + self.rng.random()))
            fault = self.rng.choice(self.COMMON)
            if time.monotonic() > rare_at and end - time.monotonic() > 6:
                fault = rare[0]
                rare.append(rare.pop(0))
                rare_at = time.monotonic() + 4
            try:
                fault(self)
                self.counts[fault.__name__] += 1
            except (RuntimeError, subprocess.TimeoutExpired) as why:
                # The server was on its way up or down, as a fault before wanted it.
                self.counts[f"{fault.__name__} (not possible)"] += 1
                if "PANIC" in str(why):
                    raise
        for timer in self.timers:
            timer.join()


def random_faults(fleet, seconds, seed):
    """Several nodes, all faults; at the end the judge."""
    fleet.fresh()
    rng = random.Random(seed)
    writers = Writers(fleet, 3, 8, seconds)
    faults = Faults(fleet, writers, rng)
    faults.run(time.monotonic() + seconds - 3, fleet.pause)
    writers.wait()
    report = good(fleet)
    if fleet.long:
        print(f"random faults, seed {seed}, {seconds} s: {report.line()}")
        print("  faults:", ", ".join(f"{n} {name}" for name, n in sorted(faults.counts.items())))
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
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("CORTEX_FLEET_SECONDS", "12")))
    parser.add_argument("--pause", type=float, default=0.35, help="seconds between two random faults, about")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("CORTEX_FLEET_SEED", "17")))
    given = parser.parse_args(ARGUMENTS)
    if clusters.BIN is None or shutil.which("psql") is None:
        kit.skip_all("no PostgreSQL server is installed", len(tests) + 1)

    def random_faults_with_all_rules(fleet):
        random_faults(fleet, given.seconds, given.seed)

    counts = collections.Counter()
    fleet = Fleet(given.driver)
    fleet.pause = given.pause
    fleet.long = given.seconds >= 30 or given.words != []
    try:
        for function in [*tests, random_faults_with_all_rules]:
            if not given.words or any(word in function.__name__ for word in given.words):
                begun = time.monotonic()
                counts[kit.call(function, fleet)] += 1
                if fleet.long:
                    print(f"  {time.monotonic() - begun:5.1f} s {function.__name__}", flush=True)
    finally:
        fleet.close()
    kit.finish(counts["passed"], counts["failed"], counts["skipped"])


if __name__ == "__main__":
    main()
