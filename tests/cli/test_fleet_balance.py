#!/usr/bin/env python3
"""test_fleet_balance.py - parts spread over nodes that come and go, with clients that write all the time.

    test_fleet_balance.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Over a PostgreSQL primary with a synchronous standby on loopback; skipped where no server is installed.  With
CORTEX_FLEET_SECONDS=30 there are six parts and not three, and what takes long is tried, too.
"""
import contextlib
import json
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fleet"))
import kit  # noqa: E402
from fleet_kit import SERVERS, Database, Fleet, Node, Writer, freeze, node_role, wait  # noqa: E402
from judge import judge  # noqa: E402
from kit import check, main, test  # noqa: E402

LONG = int(os.environ.get("CORTEX_FLEET_SECONDS", "0")) >= 30


class Parts:
    """So many parts, nodes that have a process for each, and a client for each that writes through all nodes.
    The nodes may do what the role of nodes may."""

    def __init__(self, database, count):
        self.stack, self.database = contextlib.ExitStack(), database
        self.parts = [self.stack.enter_context(Fleet(database)) for _ in range(count)]
        self.nodes, self.writers = {}, []

    def __enter__(self):
        self.sql("TRUNCATE cortex_fleet.cx_event")
        self.sql(node_role("balanced"))
        self.ok("fleet", "balance", "--on", "--after", "1")
        return self

    def __exit__(self, *_):
        for writer in self.writers:
            writer.ends = True
        self.stack.close()

    def ok(self, *words):
        return self.parts[0].ok(*words)

    def sql(self, text):
        return self.parts[0].sql(text)

    def start(self, name, *options):
        check(all("cortex@" in f.url for f in self.parts))
        self.nodes[name] = [Node(f, name, *options, url=f.url.replace("cortex@", "balanced@")) for f in self.parts]

    def write(self):
        for i, f in enumerate(self.parts):
            self.writers.append(Writer([self.nodes[name][i] for name in self.nodes], pause=0.05))

    def owners(self):
        rows = json.loads(self.ok("fleet", "parts", "--json"))["parts"]
        names = {f.part for f in self.parts}
        return {row["name"]: (row["owner"] or "").split("/")[0] for row in rows if row["name"] in names and row["address"]}

    def spread(self):
        """How many parts each node serves, most first; and no part is without one."""
        owners = self.owners()
        counts = {name: list(owners.values()).count(name) for name in self.nodes}
        return sorted(counts.values(), reverse=True) if sum(counts.values()) == len(self.parts) else []

    def balance(self):
        return json.loads(self.ok("fleet", "balance", "--json"))["balance"]

    def wait_spread(self, *counts):
        wait(lambda: self.spread() == list(counts), "parts spread as", counts)
        wait(lambda: self.balance()["part"] is None, "the end of the last move")

    def kill(self, name):
        for node in self.nodes.pop(name):
            node.kill()

    def events(self):
        return [line.split("\t") for line in self.sql(
            "SELECT kind, part, left(node, -17), coalesce(detail, ''), extract(epoch FROM at) FROM cortex_fleet.cx_event "
            "ORDER BY id").split("\n")]

    def check_one_at_a_time(self):
        """A part that was handed over was taken before the next one was."""
        going = None
        for kind, part, node, detail, _ in self.events():
            if kind == "handed":
                check(going is None, "two moves at once", self.events())
                going = part, detail
            elif kind == "take" and going is not None and going[0] == part:
                check(going[1] == f"to {node}", node, "took a part that went", going[1])
                going = None

    def check_written(self, failures=False):
        for i, writer in enumerate(self.writers):
            writer.end()
            check(writer.lost == [] and len(set(writer.entries.values())) == len(writer.entries) > 10, writer.lost)
            check(failures or writer.failures == [], writer.failures[:3])
            node = next(iter(self.nodes.values()))[i]
            for key in list(writer.entries)[::7]:
                status, again = node.write(key)
                check(status == 200 and again["duplicate"] and again["entry"] == writer.entries[key], key, status, again)

    def check_judged(self):
        report = judge(self.database.cluster.primary, [])
        check(report.findings == [] and report.commits > 100, report.findings, report.line())


@test
def nodes_that_join_are_given_parts_one_at_a_time(database):
    each = 2 if LONG else 1
    with Parts(database, 3 * each) as p:
        p.start("a")
        p.wait_spread(3 * each)
        p.write()
        p.ok("fleet", "balance", "--off")
        p.start("b")
        time.sleep(2.5)
        check(p.spread() == [3 * each, 0] and p.balance()["moves"] == 0, p.owners())
        p.ok("fleet", "balance", "--on")
        p.wait_spread(*([3, 3] if LONG else [2, 1]))
        p.start("c")
        p.wait_spread(each, each, each)
        balance, moves = p.balance(), 5 if LONG else 2
        check(balance["enabled"] and balance["moves"] == moves and balance["failures"] == 0, balance)
        p.check_one_at_a_time()
        shown = json.loads(p.ok("fleet", "balance", "--json"))["nodes"]
        check(sorted((n["node"], n["parts"], n["processes"]) for n in shown) == [(name, each, 3 * each) for name in "abc"], shown)
        rows = json.loads(p.ok("fleet", "parts", "--json"))["parts"]
        check(sum(row["handed"] for row in rows) == moves and all(row["going_to"] is None for row in rows), rows)
        check(f"on, after 1.0 s; {moves} moved, 0 failed" in p.ok("fleet", "status"), p.ok("fleet", "status"))
        told = [e for n in p.nodes["a"] for e in n.ask("GET", "/api/v1/nodes")[1]["events"] if e["kind"] == "handed"]
        check(len(told) == moves and {e["node"] for e in told} <= {"a", "b"}, told)
        # A node that drains gives all, and is given some again.
        p.ok("fleet", "drain", "b")
        wait(lambda: "b" not in p.owners().values() and p.spread(), "the node that drains has none")
        p.ok("fleet", "drain", "b", "--undo")
        p.wait_spread(each, each, each)
        p.check_written()
        p.check_one_at_a_time()
        p.check_judged()


@test
def a_node_that_died_is_given_parts_later(database):
    if not LONG:
        kit.skip("it takes 40 seconds; CORTEX_FLEET_SECONDS=30 runs it")
    with Parts(database, 4) as p:
        p.start("a")
        p.wait_spread(4)
        p.start("b")
        p.write()
        p.wait_spread(2, 2)
        p.kill("b")
        p.wait_spread(4)
        p.start("b")
        p.wait_spread(2, 2)
        waited = float(p.sql("SELECT min(extract(epoch FROM e.at - n.started_at)) FROM cortex_fleet.cx_node n JOIN cortex_fleet.cx_event e "
                             "ON e.part = n.part AND e.kind = 'handed' AND e.detail = 'to b' AND e.at > n.started_at WHERE "
                             "n.node = 'b' AND n.seen_at > now() - interval '3 s'"))
        check(waited >= 2, "a node that died came back, and was given a part after", waited)
        # Off: what comes is given nothing; and what it has stays with it.
        p.ok("fleet", "balance", "--off")
        p.kill("b")
        p.wait_spread(4)
        moves = p.balance()["moves"]
        p.start("c")
        time.sleep(3)
        check(p.spread() == [4, 0] and p.balance()["moves"] == moves, p.owners())
        p.ok("fleet", "balance", "--on")
        p.wait_spread(2, 2)
        p.check_written(failures=True)
        p.check_judged()


@test
def a_node_that_takes_nothing_costs_a_pause(database):
    if not LONG:
        kit.skip("it takes 20 seconds; CORTEX_FLEET_SECONDS=30 runs it")
    with Parts(database, 2) as p:
        p.start("a")
        p.wait_spread(2)
        p.ok("fleet", "balance", "--off")
        p.start("b", "--worker-timeout", 60)
        p.start("kept", "--keep-part")
        p.write()
        frozen = [node.worker() for node in p.nodes["b"]]
        for pid in frozen:
            freeze(pid)
        begun = p.balance()
        p.ok("fleet", "balance", "--on")
        wait(lambda: p.balance()["failures"] > begun["failures"], "a move that failed")
        wait(lambda: p.spread() == [2, 0, 0], "the parts are back")
        check(p.balance()["moves"] == begun["moves"])
        check(any("this one takes it again" in node.said() for node in p.nodes["a"]), [n.said() for n in p.nodes["a"]])
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        p.wait_spread(1, 1, 0)
        check("kept" not in p.owners().values(), p.owners())
        p.check_written()
        p.check_judged()


if SERVERS is None:
    kit.skip_all("no PostgreSQL server is installed", count=len(kit.collected))
main(Database)
