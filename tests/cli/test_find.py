#!/usr/bin/env python3
"""`cortex show HASH` is a lookup in the tables: what they lead to is read and compared, what is gone
is not found, and rows that are damaged or missing are an error, never "unknown".

    test_find.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import json
import sqlite3

from kit import Place, check, main, test

FACT = '{"statement":"%s","subject":"b","predicate":"c"}'
UNKNOWN = "ab" * 32


def change(p, sql):
    """How many rows of the tables were changed; they are in the file alone then."""
    with sqlite3.connect(p.home / "cortex.db") as tables:
        count = tables.execute(sql).rowcount
    tables.close()
    return count


def ask(p, text):
    """What was found, and by which of its names; None = it is unknown."""
    done = p.run("show", text, "--json")
    check(done.returncode in (0, 2), done.returncode, done.stdout, done.stderr)
    if done.returncode == 2:
        check(b"NoThing" in done.stderr, done.stderr)
        return None
    found = json.loads(done.stdout)
    return found["kind"], found["id"], found["matched"]


class Recorded(Place):
    """Two agents, of which one has a snapshot, and a recorded home root."""

    def __enter__(self):
        super().__enter__()
        for n in range(5):
            self.ok("memory", "write", "Fact", FACT % n, "--actor", "ann")
            self.ok("append", "note.x", f"text {n}", "--actor", "bob")
        self.ok("snapshot", "--actor", "ann")
        self.ok("checkpoint", "--all")
        self.manifest = self.json("snapshot", "show", "0", "--actor", "ann")
        return self


def hex_members(value, names=()):
    if isinstance(value, dict):
        for name, member in value.items():
            yield from hex_members(member, (*names, name))
    if isinstance(value, str) and len(value) == 64 and all(c in "0123456789abcdef" for c in value):
        yield names[-1], value


@test
def each_root_and_hash_leads_to_what_has_it():
    with Recorded() as p:
        roots = dict(hex_members(p.manifest))
        check({"overall_root", "memories_root", "journal_root"} <= set(roots), roots)
        for name in ("overall_root", "memories_root", "edges_root", "journal_root"):
            kind, it, matched = ask(p, roots[name])
            check((kind, it) == ("snapshot", "ann@0"), name, kind, it)
            check(matched == name, matched)
        entry = json.loads(p.ok("log", "--actor", "bob", "--json").splitlines()[2])
        leaf, number = entry["leaf_hash"], entry["seq"]
        for digits in (64, 40, 16, 12):
            check(ask(p, leaf[:digits]) == ("entry", f"bob/{number}", "leaf_hash"), digits)
        check(ask(p, leaf.upper()) == ("entry", f"bob/{number}", "leaf_hash"))
        # Sixteen digits are in the tables: the rest is that of what they lead to, or it is unknown.
        for digits in (17, 40, 64):
            other = leaf[:digits - 1] + ("0" if leaf[digits - 1] != "0" else "1")
            check(ask(p, other) is None, other)
        # A root of now that nothing records, and one of a former size.
        now = p.json("roots", "--actor", "bob")["actors"][0]
        check(ask(p, now["overall_root"]) == ("actor", "bob", "overall_root"))
        check(ask(p, now["journal_root"])[0] == "journal")
        check(ask(p, UNKNOWN) is None and ask(p, UNKNOWN[:9]) is None)


@test
def a_home_root_leads_to_its_entry():
    with Recorded() as p:
        root = p.json("verify", "--home", p.home)["home_root"]["root"]
        check(ask(p, root) == ("entry", "home:root/0", "home_root"), root)
        p.ok("append", "note.x", "more", "--actor", "bob")
        check(ask(p, root) == ("entry", "home:root/0", "home_root"), root)


@test
def what_was_dropped_is_unknown_and_a_rebuild_changes_nothing():
    with Recorded() as p:
        root = p.manifest["overall_root"]
        memory = p.ok("memory", "write", "Fact", FACT % "later", "--actor", "ann")
        names = [root, p.manifest["memories_root"],
                 json.loads(p.ok("log", "--actor", "ann", "--last", "1", "--json"))["leaf_hash"]]
        before = [ask(p, name) for name in names]
        check(None not in before and memory, before)
        check(p.json("tables", "rebuild")["changed"] is False)
        check([ask(p, name) for name in names] == before)
        p.ok("snapshot", "drop", "0", "--actor", "ann")
        check(ask(p, root) is None)
        check(ask(p, names[2]) == before[2])
        check(p.json("verify", "--home", p.home)["verdict"] == "holds")


@test
def rows_that_are_missing_or_damaged_are_never_unknown():
    with Recorded() as p:
        saved = (p.home / "cortex.db").read_bytes()
        for sql in ("DELETE FROM hash_new WHERE number=4", "UPDATE hash_new SET number=6 WHERE number=4",
                    "UPDATE hash_new SET head=head+1", "DELETE FROM hash_new"):
            check(change(p, sql) > 0, sql)
            check(p.json("tables", "check", code=1)["damage"][0]["table"] == "hash", sql)
            check(p.json("verify", "--home", p.home, code=1)["verdict"] == "broken", sql)
            if sql.startswith("DELETE"):
                done = p.expect(3, "show", UNKNOWN)
                check(b"rebuild" in done.stderr, done.stderr)
            (p.home / "cortex.db").write_bytes(saved)
        check(change(p, "DELETE FROM hash_new") > 0)
        p.ok("tables", "rebuild", "--replace")
        check(ask(p, UNKNOWN) is None and ask(p, p.manifest["overall_root"])[0] == "snapshot")


main()
