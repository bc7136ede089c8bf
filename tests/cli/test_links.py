#!/usr/bin/env python3
"""test_links.py - links.db: where the entries are that link objects.  It is read on, not made again; never believed;
and has nothing of what was erased.

    test_links.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import contextlib
import hashlib
import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "http"))
import kit  # noqa: E402
from agent import Agent, batch  # noqa: E402
from kit import BIN, check, main, test  # noqa: E402

RUN = "run_20260101_000000_aee408847d35e44e99430f0979c3357b"


class Place(kit.Place):
    """Two memories, the second derived from the first; a trace whose batch states a run."""

    def __enter__(self):
        super().__enter__()
        self.file = self.home / "links.db"
        self.first = self.fact("a")
        self.second = self.fact("b", "--derived-from", self.first)
        return self

    def fact(self, statement, *options):
        return self.ok("memory", "write", "Fact", json.dumps({"statement": statement, "subject": "x", "predicate": "is"}), *options)

    def trace(self, name="trace-1", run=RUN):
        agent = Agent("ann")
        for file, value in (("keys.json", {"keys": [agent.registration()]}),
                            ("batch.json", batch(agent.trace(name, second=len(run) + ord(run[-1])), correlation_metadata={"run_id": run}))):
            (self.folder / file).write_text(json.dumps(value))
        self.run("key", "add", "--key-id", agent.key_id, agent.registration()["public_key_base64"])
        self.ok("record", "--unknown-key", "keep", self.folder / "batch.json")
        return name

    def links(self, name):
        return sorted((link["relation"], link["id"]) for link in self.json("show", name)["links"])

    def sql(self, text, *values):
        with contextlib.closing(sqlite3.connect(self.file)) as db:
            rows = db.execute(text, values).fetchall()
            db.commit()
            return rows

    def bytes(self):
        return b"".join(path.read_bytes() for path in self.home.glob("links.db*"))


def name_of_memory(uri):
    """The eight bytes that stand for a memory in a row, as SQLite writes an integer."""
    ulid = uri.rsplit("/", 1)[1].partition("#")[0]
    return hashlib.sha256(b"B" + ulid.encode()).digest()[:8][::-1]


@test
def links_are_found_and_the_log_is_read_on():
    with Place() as p:
        check(p.links(p.first) == [("remembered_as", p.second)], p.links(p.first))
        check(p.file.stat().st_mode & 0o777 == 0o600)
        at = p.sql("SELECT position_commit, seq FROM at")
        check(p.links(p.second) == [("derived_from", p.first)])
        check(p.sql("SELECT position_commit, seq FROM at") == at)
        # It is this file that says where to look; and what is new is added.
        p.sql("DELETE FROM links")
        check(p.links(p.first) == [])
        third = p.fact("c", "--derived-from", p.first)
        check(p.links(p.first) == [("remembered_as", third)])
        check(p.sql("SELECT position_commit FROM at") > at and len(p.sql("SELECT * FROM links")) == 1)
        p.ok("tables", "rebuild")
        check(p.links(p.first) == [("remembered_as", p.second), ("remembered_as", third)])
        p.ok("verify", "--home", p.home)
        p.ok("backup", p.folder / "backup")
        check(not list((p.folder / "backup").glob("links.db*")))


@test
def a_trace_is_linked_with_the_run_of_its_batch():
    with Place() as p:
        check(p.links(p.first) != [])
        trace = p.trace()
        check(("performed_in", RUN) in p.links(trace), p.links(trace))
        other = p.trace("trace-2", RUN[:-1] + "c")
        check(("performed_in", RUN[:-1] + "c") in p.links(other) and ("performed_in", RUN) in p.links(trace))
        # A row that leads to the trace of another batch is none.
        rows = p.sql("SELECT id, trace_seq FROM links WHERE trace_seq IS NOT NULL ORDER BY id")
        check(len(rows) == 2, rows)
        p.sql("UPDATE links SET trace_seq = ? WHERE id = ?", rows[1][1], rows[0][0])
        check(p.links(trace) == [] and len(p.links(other)) == 1)


@test
def rows_that_are_wrong_lead_to_nothing():
    with Place() as p:
        trace = p.trace()
        right = p.links(p.first)
        check(right != [])
        for change in ("SET seq = 0", "SET seq = 99999", "SET actor = 7", "SET name_to = name_from", "SET trace_actor = 3, trace_seq = 1",
                       "SET trace_actor = 1, trace_seq = 0", "SET seq = -1", "SET seq = NULL, actor = NULL", "SET seq = 'x'"):
            p.sql(f"UPDATE links {change}")
            for name in (p.first, p.second, trace):
                for relation, other in p.links(name):
                    check((relation, other) in (("remembered_as", p.second), ("derived_from", p.first), ("performed_in", RUN)), change)
            p.sql("UPDATE links SET seq = 1, actor = 1")
        p.sql("UPDATE at SET position_commit = 99")
        check(p.links(p.first) == right, "a position behind the log's end")
        p.sql("UPDATE at SET leaf = zeroblob(32)")
        check(p.links(p.first) == right, "an entry that is another")
        p.sql("UPDATE at SET format = 2")
        check(p.links(p.first) == right)


@test
def a_file_of_another_log_is_made_again():
    with Place() as p, Place() as other:
        check(p.links(p.first) and other.links(other.first))
        shutil.copytree(p.home, p.folder / "older")
        third = p.fact("c", "--derived-from", p.first)
        check(len(p.links(p.first)) == 2)
        # The log is put back, and goes on with something else, as long.
        kept = p.file.read_bytes()
        kit.remove(p.home)
        shutil.copytree(p.folder / "older", p.home)
        for path in p.home.glob("links.db*"):
            path.unlink()
        p.file.write_bytes(kept)
        fourth = p.fact("d", "--derived-from", p.second)
        check(p.links(p.first) == [("remembered_as", p.second)] and ("remembered_as", fourth) in p.links(p.second), third)
        shutil.copy(other.file, p.file)
        check(p.links(p.first) == [("remembered_as", p.second)])


@test
def what_was_erased_leaves_no_row():
    with Place() as p:
        trace = p.trace()
        check(p.links(p.first) and p.links(trace))
        name = name_of_memory(p.second)
        check(name in p.bytes())
        p.ok("erase", p.second, "--reason", "asked for")
        check(p.links(p.first) == [] and name not in p.bytes())
        check(len(p.sql("SELECT * FROM links")) == 1)
        seq = str(p.sql("SELECT trace_seq FROM links")[0][0])
        actor = p.sql("SELECT name FROM actors WHERE id = (SELECT trace_actor FROM links)")[0][0].decode()
        p.ok("erase", seq, "--actor", actor, "--reason", "asked for")
        check(p.sql("SELECT * FROM links") == [])
        # Many at once, and with a file that was behind.
        fifth = p.fact("e", "--derived-from", p.first)
        check(p.links(p.first) == [("remembered_as", fifth)])
        p.ok("erase", "--agent", "andrew", "--reason", "asked for")
        check(p.sql("SELECT * FROM links") == [] and name_of_memory(fifth) not in p.bytes())


@test
def a_file_that_cannot_be_used_costs_no_answer():
    with Place() as p:
        p.file.write_bytes(b"not a database" * 1000)
        check(p.links(p.first) == [("remembered_as", p.second)])
        p.expect(0, "erase", p.second, "--reason", "asked for", err="remove it, it is made again")
        p.ok("tables", "rebuild")
        third = p.fact("c", "--derived-from", p.first)
        check(p.links(p.first) == [("remembered_as", third)] and p.file.exists())
    with Place() as p:
        p.file.mkdir()
        check(p.links(p.first) == [("remembered_as", p.second)])


@test
def several_read_on_at_once():
    with Place() as p:
        for i in range(40):
            p.fact(f"n{i}", "--derived-from", p.first)
        going = [subprocess.Popen([BIN, "show", p.first, "--json"], env=p.env, stdout=subprocess.PIPE) for _ in range(6)]
        for process in going:
            told = json.loads(process.communicate(timeout=kit.TIMEOUT_S)[0])
            check(process.returncode == 0 and len(told["links"]) == 41, told)
        check(p.sql("SELECT count(*) FROM links") == [(41,)])


main()
