#!/usr/bin/env python3
"""cortex fleet from outside: tables, parts, a data directory into parts and out again, with the same bytes.

    test_fleet.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Starts a PostgreSQL of its own; skipped where none is installed.  Faults are in tests/fleet.
"""
import hashlib
import json
import pathlib
import subprocess
import sys

import kit
from kit import afterwards, check, main, sibling, skip_all, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
import cluster  # noqa: E402

CLUSTER = None
VERIFY = sibling("cortex-verify")


def part_of(actor):
    return hashlib.sha256(actor.encode()).digest()[0]


class Place(kit.Place):
    """A data directory, and an empty database in place of the last test's."""

    def __init__(self, tables=True):
        super().__init__()
        self.tables = tables

    def __enter__(self):
        super().__enter__()
        server().sql("DROP SCHEMA IF EXISTS cortex_fleet CASCADE")
        if self.tables:
            self.fleet("init", "--no-standby")
        return self

    def fleet(self, *args, code=0):
        done = self.run("fleet", *args, env={"CORTEX_FLEET": url()})
        check(done.returncode == code, args, done.stdout, done.stderr)
        return done.stdout.decode() + done.stderr.decode()

    def fleet_json(self, *args, code=0):
        done = self.run("fleet", *args, "--json", env={"CORTEX_FLEET": url()})
        check(done.returncode == code, args, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def fill(self, actors=("alice", "bob", "carol")):
        """Entries, memories and an erasure of each actor, one after the other."""
        for n in range(4):
            for actor in actors:
                self.ok("append", "note.x", f"{actor} {n}", "--actor", actor)
        for actor in actors:
            self.ok("append", "note.secret", f"the secret of {actor}", "--committed", "--actor", actor)
            self.ok("append", "note.secret", f"what {actor} keeps", "--committed", "--actor", actor)
            self.ok("memory", "write", "Fact", '{"statement":"sky is blue","subject":"sky","predicate":"is"}', "--actor",
                    actor)
            self.ok("erase", "4", "--reason", "a test", "--actor", actor)

    def export(self, *how, name="out"):
        folder = self.folder / name
        self.fleet("export", *how, folder)
        return folder


def server():
    return CLUSTER.primary


def url():
    return f"postgresql://cortex@127.0.0.1:{server().port}/cortex"


def log_bytes(home):
    return {p.name: p.read_bytes() for p in sorted((home / "log").glob("*.seg"))}


@afterwards
def stop_the_server():
    if CLUSTER is not None:
        CLUSTER.close()


@test
def tables_are_made_once_and_not_for_another_fleet():
    with Place(tables=False) as p:
        check("NoFleet" in p.fleet("status", code=2))
        check("ran 1 migrations" in p.fleet("init", "--no-standby"))
        first = p.fleet_json("status")
        check("up to date" in p.fleet("init", "--no-standby"))
        check(p.fleet_json("status") == first and len(first["id"]) == 32 and not first["strict"], first)
        check("OtherFleet" in p.fleet("init", code=1))
        check(len(p.fleet_json("parts", "--all")["parts"]) == 256 and p.fleet_json("parts")["parts"] == [])


@test
def the_sql_that_is_printed_makes_the_same_tables():
    with Place() as p:
        columns = ("SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = "
                   "'cortex_fleet' ORDER BY 1, 2")
        made = server().sql(columns)
        server().sql("DROP SCHEMA cortex_fleet CASCADE")
        server().sql(p.fleet("init", "--print-sql"))
        check(server().sql(columns) == made and "cx_group" in made, made)


@test
def a_node_role_cannot_change_what_is_committed():
    with Place() as p:
        p.fill(["alice"])
        p.fleet("import", p.home)
        sql = p.fleet("init", "--print-sql")
        server().sql(sql[sql.index("-- roles.sql"):])
        for statement in ("DELETE FROM cortex_fleet.cx_group", "UPDATE cortex_fleet.cx_group SET head = prev",
                          "UPDATE cortex_fleet.cx_seen SET num = 0", "DELETE FROM cortex_fleet.cx_event",
                          "UPDATE cortex_fleet.cx_part SET home_id = home_id", "DROP TABLE cortex_fleet.cx_live"):
            done = subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(server().port), "-U", "cortex", "-d",
                                   "cortex", "-c", "SET ROLE cortex_fleet_node", "-c", statement],
                                  capture_output=True, text=True, check=False)
            check("denied" in done.stderr or "must be owner" in done.stderr, statement, done.stderr)
        server().sql("SET ROLE cortex_fleet_node; UPDATE cortex_fleet.cx_part SET epoch = epoch WHERE part = 0")


@test
def a_directory_of_one_actor_comes_back_with_the_same_bytes():
    with Place() as p:
        p.fill(["alice"])
        before = p.fleet_json("import", p.home)
        check(before["actors"] == 1 and before["parts"] == 1 and before["repeated"] == 0, before)
        out = p.export("--part", part_of("alice"), "--segment", "256K")
        check(log_bytes(out) == log_bytes(p.home), "the log has other bytes")
        check(len(log_bytes(out)) >= 1, "no log")


@test
def roots_and_proofs_are_those_of_the_source():
    with Place() as p:
        p.fill()
        p.ok("snapshot", "make", "--actor", "bob")
        p.fleet("import", p.home)
        uri = p.json("memory", "list", "--actor", "bob")["memories"][0]["uri"]
        p.ok("prove", uri, "-o", p.folder / "a.proof", "--actor", "bob")
        for actor in ("alice", "bob", "carol"):
            out = p.export("--part", part_of(actor), name=f"part-{actor}")
            check(p.ok("roots", "--json", "--actor", actor) == p.ok("roots", "--json", "--actor", actor, "--home", out), actor)
            check(p.ok("log", "--all", "--json", "--actor", actor) ==
                  p.ok("log", "--all", "--json", "--actor", actor, "--home", out), actor)
            done = p.run("verify", "--home", out, "--json")
            check(done.returncode == 0 and json.loads(done.stdout)["verdict"] == "holds", done.stdout)
        p.ok("prove", uri, "-o", p.folder / "b.proof", "--actor", "bob", "--home", p.folder / "part-bob")
        check((p.folder / "a.proof").read_bytes() == (p.folder / "b.proof").read_bytes(), "the proof has other bytes")
        done = subprocess.run([VERIFY, "--self-consistent", p.folder / "b.proof"], capture_output=True, check=False)
        check(done.returncode == 0, done)
        both = p.export("--actor", "alice", "--actor", "carol", name="both")
        for actor in ("alice", "carol"):
            check(p.ok("roots", "--json", "--actor", actor) == p.ok("roots", "--json", "--actor", actor, "--home", both), actor)
        check(b"NoActor" in p.run("roots", "--actor", "bob", "--home", both).stderr, "bob came along")


@test
def erased_content_is_not_in_the_database():
    with Place() as p:
        p.fill(["alice"])
        p.fleet("import", p.home)
        dump = server().sql("SELECT string_agg(encode(bytes, 'escape'), '') FROM cortex_fleet.cx_live") + \
            server().sql("SELECT string_agg(encode(bytes, 'escape'), '') FROM cortex_fleet.cx_group")
        check("what alice keeps" in dump and "the secret of alice" not in dump, "content")
        check("what alice keeps" not in server().sql("SELECT string_agg(encode(bytes, 'escape'), '') FROM "
                                                     "cortex_fleet.cx_group"), "content in cx_group")


@test
def an_import_goes_on_where_it_was():
    with Place() as p:
        p.fill()
        first = p.fleet_json("import", p.home)
        again = p.fleet_json("import", p.home)
        check(again["groups"] == 0 and again["repeated"] == first["groups"] - first["parts"], first, again)
        p.ok("append", "note.x", "one more", "--actor", "bob")
        more = p.fleet_json("import", p.home)
        check(more["groups"] == 1, more)
        out = p.export("--part", part_of("bob"))
        check(p.ok("roots", "--json", "--actor", "bob") == p.ok("roots", "--json", "--actor", "bob", "--home", out), "roots")


@test
def another_directory_with_the_same_actor_is_refused():
    with Place() as p:
        p.fill(["alice"])
        p.fleet("import", p.home)
        other = p.folder / "other"
        p.ok("init", "--home", other)
        p.ok("append", "note.x", "not the same", "--actor", "alice", "--home", other)
        before = p.fleet_json("parts")
        check("ActorExists" in p.fleet("import", other, code=1))
        after = p.fleet_json("parts")
        check([row["head"] for row in before["parts"]] == [row["head"] for row in after["parts"]], "something was written")


@test
def actors_of_one_part_share_it_and_are_exported_apart():
    with Place() as p:
        names = [f"agent-{n}" for n in range(2000) if part_of(f"agent-{n}") == part_of("agent-0")][:3]
        check(len(names) == 3, names)
        p.fill(names)
        done = p.fleet_json("import", p.home)
        check(done["parts"] == 1 and done["actors"] == 3, done)
        whole, one = p.export("--part", part_of(names[0])), p.export("--actor", names[1], name="one")
        for name in names:
            check(p.ok("roots", "--json", "--actor", name) == p.ok("roots", "--json", "--actor", name, "--home", whole), name)
        check(p.ok("roots", "--json", "--actor", names[1]) == p.ok("roots", "--json", "--actor", names[1], "--home", one))
        check(b"NoActor" in p.run("roots", "--actor", names[2], "--home", one).stderr, "another actor came along")


@test
def home_roots_stay_with_the_directory():
    with Place() as p:
        p.fill(["alice"])
        p.ok("key", "new", p.folder / "log.key", "--name", "example.com/log")
        p.ok("checkpoint", "--all", "--sign", p.folder / "log.key", "-o", p.folder / "note")
        p.ok("append", "note.x", "after the checkpoint", "--actor", "alice")
        done = p.fleet_json("import", p.home)
        check(done["home_root_frames_left_out"] > 0 and done["actors"] == 1, done)
        out = p.export("--part", part_of("alice"))
        check(p.ok("roots", "--json", "--actor", "alice") == p.ok("roots", "--json", "--actor", "alice", "--home", out))
        check(p.run("verify", "--home", out).returncode == 0, "does not hold")


@test
def large_contents_come_back():
    with Place() as p:
        p.ok("append", "note.big", "-", "--actor", "alice", input=b"0123456789abcdef" * 200000)
        p.ok("append", "note.big", "-", "--committed", "--actor", "alice", input=b"fedcba9876543210" * 200000)
        p.fleet("import", p.home)
        out = p.export("--part", part_of("alice"), "--segment", "256K")
        check(log_bytes(out) == log_bytes(p.home), "the log has other bytes")


@test
def a_changed_database_is_found():
    changes = {
        "a byte of a group": "UPDATE cortex_fleet.cx_group SET bytes = set_byte(bytes, 40, get_byte(bytes, 40) # 1) "
                             "WHERE num = 3",
        "a group that is missing": "DELETE FROM cortex_fleet.cx_group WHERE num = 2",
        "an epoch": "UPDATE cortex_fleet.cx_group SET epoch = epoch + 1 WHERE num = 1",
        "an erasable part": "UPDATE cortex_fleet.cx_live SET bytes = set_byte(bytes, 9, get_byte(bytes, 9) # 1)",
        "the identity": "UPDATE cortex_fleet.cx_part SET home_id = decode(repeat('00', 16), 'hex') WHERE next > 0",
        "a head": "UPDATE cortex_fleet.cx_part SET head = decode(repeat('00', 32), 'hex') WHERE next > 0",
    }
    with Place() as p:
        p.fill(["alice"])
        for what, statement in changes.items():
            server().sql("DROP SCHEMA IF EXISTS cortex_fleet CASCADE")
            p.fleet("init", "--no-standby")
            p.fleet("import", p.home)
            check("ok    chains" in p.fleet("doctor", "--chains"), what)
            server().sql(statement)
            out = p.folder / what.replace(" ", "-")
            if what == "an erasable part":
                # The chain does not cover what may be erased; the checksum and the ledger's commitment do.
                done = p.run("fleet", "export", "--part", part_of("alice"), out, env={"CORTEX_FLEET": url()})
                check(done.returncode != 0 or p.run("verify", "--home", out).returncode == 1, what)
                continue
            check("fail" in p.fleet("doctor", "--chains", code=1), what)
            done = p.run("fleet", "export", "--part", part_of("alice"), out, env={"CORTEX_FLEET": url()})
            check(done.returncode == 3 and not out.exists(), what, done)


@test
def mistakes_are_explained():
    with Place() as p:
        for args, code, word in (
                (["status", "--database", "mysql://x"], 2, "postgresql://"),
                (["status", "--database", "postgresql://127.0.0.1:1/x"], 3, "DatabaseAway"),
                (["export", p.folder / "x"], 2, "--part or --actor"),
                (["export", "--part", "256", p.folder / "x"], 2, "0 to 255"),
                (["export", "--part", "3", p.folder / "x"], 2, "EmptyPart"),
                (["export", "--actor", "nobody", p.folder / "x"], 2, "E"),
                (["import", p.folder / "none"], 3, "NoHome"),
                (["doctor", "--accept", "300"], 2, "0 to 255")):
            said = p.fleet(*args, code=code)
            check(word in said, args, said)
        check(not (p.folder / "x").exists() and not (p.folder / "x.exporting").exists(), "something is left")
        done = p.run("fleet", "status", env={"CORTEX_FLEET": ""})
        check(done.returncode == 2 and b"--database" in done.stderr, done)
        p.ok("append", "note.x", "text", "--actor", "alice")
        p.fleet("import", p.home)
        out = p.export("--part", part_of("alice"))
        check("exists" in p.fleet("export", "--part", part_of("alice"), out, code=1))


@test
def a_stopped_part_is_accepted_by_an_operator():
    with Place() as p:
        p.fill(["alice"])
        p.fleet("import", p.home)
        part = part_of("alice")
        server().sql(f"INSERT INTO cortex_fleet.cx_event (part, epoch, node, kind, detail) VALUES ({part}, 1, 'n', "
                     "'stopped', 'groups that were committed are gone')")
        check("stopped" in p.fleet("doctor", code=1) and p.fleet_json("status")["parts_stopped"] == 1)
        check("PartStopped" in p.fleet("import", p.home, code=3))
        p.fleet("doctor", "--accept", part)
        p.fleet("import", p.home)


if __name__ == "__main__":
    if cluster.BIN is None:
        skip_all("no PostgreSQL server is installed", 14)
    CLUSTER = cluster.Cluster(standby=False)
    main()
