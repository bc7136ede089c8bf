#!/usr/bin/env python3
"""cortex fleet from outside: tables, parts, commands on a part, a data directory into a part and out again.

    test_fleet.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Starts a PostgreSQL of its own; skipped where none is installed.  Faults are in tests/fleet.
"""
import json
import pathlib
import subprocess
import sys

import kit
from kit import afterwards, check, main, sibling, skip_all, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
import cluster  # noqa: E402

CLUSTER = None
SCHEMAS = {"init": "fleet_init", "add": "fleet_add", "status": "fleet_status", "parts": "fleet_parts", "nodes": "fleet_nodes",
           "drain": "fleet_drain", "balance": "fleet_balance", "doctor": "fleet_doctor", "import": "fleet_copied", "export": "fleet_copied",
           "move": "fleet_move", "config": "fleet_config", "quota": "fleet_quota", "prune": "fleet_prune", "checkpoint": "fleet_checkpoint"}
VERIFY = sibling("cortex-verify")


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
        answer = json.loads(done.stdout)
        self.fits(SCHEMAS[args[0]] if code in (0, 1) and "code" not in answer else "error", answer)
        return answer

    def fits(self, name, answer):
        """The answer has its schema, and loses it when its first level loses or gains anything."""
        path = self.folder / "answer.json"
        for told, expected in [(answer, 0), ({**answer, "surprise": 1}, 4)] + [
                ({k: v for k, v in answer.items() if k != key}, 4) for key in answer]:
            path.write_text(json.dumps(told))
            done = kit.run(kit.BIN, "gate", "schema", name + ".v1", path, "--json")
            check(done.returncode == expected, name, told, done.stdout)

    def fill(self, actors=("alice", "bob", "carol"), home=None):
        """Entries, memories and an erasure of each actor, one after the other."""
        where = [] if home is None else ["--home", home]
        for n in range(2):
            for actor in actors:
                self.ok("append", "note.x", f"{actor} {n}", "--actor", actor, *where)
        for actor in actors:
            self.ok("append", "note.secret", f"the secret of {actor}", "--committed", "--actor", actor, *where)
            self.ok("append", "note.secret", f"what {actor} keeps", "--committed", "--actor", actor, *where)
            self.ok("memory", "write", "Fact", '{"statement":"sky is blue","subject":"sky","predicate":"is"}', "--actor",
                    actor, *where)
            self.ok("erase", "2", "--reason", "a test", "--actor", actor, *where)

    def export(self, part="main", name="out"):
        folder = self.folder / name
        self.fleet("export", folder, "--part", part)
        return folder


def server():
    return CLUSTER.primary


def url(part=None):
    return f"postgresql://cortex@127.0.0.1:{server().port}/cortex" + (f"#{part}" if part else "")


def log_bytes(home):
    """What was written: a copy's last segment ends where its commits end."""
    return {p.name: p.read_bytes().rstrip(b"\0") for p in sorted((home / "log").glob("*.seg"))}


def all_bytes():
    return server().sql("SELECT string_agg(encode(bytes, 'escape'), '') FROM cortex_fleet.cx_extent")


@afterwards
def stop_the_server():
    if CLUSTER is not None:
        CLUSTER.close()


@test
def tables_are_made_once_and_not_for_another_fleet():
    with Place(tables=False) as p:
        check("NoFleet" in p.fleet("status", code=2))
        check("ran 5 migrations" in p.fleet("init", "--no-standby"))
        first = p.fleet_json("status")
        check("up to date" in p.fleet("init", "--no-standby"))
        check(p.fleet_json("status")["id"] == first["id"] and len(first["id"]) == 32 and not first["strict"], first)
        check("OtherFleet" in p.fleet("init", code=1))
        parts = p.fleet_json("parts")["parts"]
        check([row["name"] for row in parts] == ["main"] and parts[0]["lease_left_ms"] <= 0, parts)
        check("up to date" in p.ok("init", "--fleet", url(), "--no-standby"), "init --fleet")


@test
def the_sql_that_is_printed_makes_the_same_tables():
    with Place() as p:
        columns = ("SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = "
                   "'cortex_fleet' ORDER BY 1, 2")
        made = server().sql(columns)
        server().sql("DROP SCHEMA cortex_fleet CASCADE")
        server().sql(p.fleet("init", "--print-sql"))
        check(server().sql(columns) == made and "cx_extent" in made, made)


@test
def a_node_role_cannot_change_what_is_committed():
    with Place() as p:
        sql = p.fleet("init", "--print-sql")
        server().sql(sql[sql.index("-- roles.sql"):])
        for statement in ("DELETE FROM cortex_fleet.cx_commit", "UPDATE cortex_fleet.cx_commit SET head = prev",
                          "DELETE FROM cortex_fleet.cx_event", "UPDATE cortex_fleet.cx_part SET id = id",
                          "DROP TABLE cortex_fleet.cx_extent"):
            done = subprocess.run(["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(server().port), "-U", "cortex", "-d",
                                   "cortex", "-c", "SET ROLE cortex_fleet_node", "-c", statement],
                                  capture_output=True, text=True, check=False)
            check("denied" in done.stderr or "must be owner" in done.stderr, statement, done.stderr)
        # What a node needs: a command that writes, as that role.
        server().sql("DROP ROLE IF EXISTS worker; CREATE ROLE worker LOGIN; GRANT cortex_fleet_node TO worker")
        home = url().replace("cortex@", "worker@")
        p.ok("append", "note.x", "as a node", "--actor", "alice", "--home", home)
        p.ok("verify", "--home", home)
        for n in range(24):
            p.ok("append", "note.x", "-", "--actor", "alice", "--home", home, input=b"%d" % n * 250_000)
        check(server().sql("SELECT octet_length(trail) FROM cortex_fleet.cx_part") == "48", "no place to begin was left")
        server().sql("DROP ROLE worker")


@test
def a_wrong_place_to_begin_changes_nothing():
    changes = {"none": "NULL", "zeros": "decode(repeat('00', 48), 'hex')", "ones": "decode(repeat('ff', 48), 'hex')",
               "another place": "set_byte(trail, 11, get_byte(trail, 11) # 8)", "another mark": "set_byte(trail, 30, get_byte(trail, 30) # 1)"}
    with Place() as p:
        for n in range(24):
            p.ok("append", "note.x", "-", "--actor", "alice", "--home", url(), input=b"%d" % n * 250_000)
        for n, (what, value) in enumerate(changes.items()):
            roots, verified = (p.ok(*words, "--json", "--home", url()) for words in (("roots", "--actor", "alice"), ("verify",)))
            server().sql(f"UPDATE cortex_fleet.cx_part SET trail = {value}")
            check(p.ok("roots", "--actor", "alice", "--json", "--home", url()) == roots, what, "roots")
            check(p.ok("verify", "--json", "--home", url()) == verified, what, "verify")
            p.ok("append", "note.x", f"after {what}", "--actor", "alice", "--home", url())
            check(f"({25 + n} entries" in p.ok("roots", "--home", url()).replace(", ", " ("), what, p.ok("roots", "--home", url()))
        check("ok    chains" in p.fleet("doctor", "--chains"), "the chain")


@test
def commands_work_on_a_part_as_on_a_directory():
    with Place() as p:
        p.fill(home=url())
        p.fill()
        p.ok("snapshot", "make", "--actor", "bob", "--home", url())
        done = p.run("verify", "--home", url(), "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["verdict"] == "holds", done.stdout)
        uri = p.json("memory", "list", "--actor", "bob", "--home", url())["memories"][0]["uri"]
        p.ok("prove", uri, "-o", p.folder / "a.proof", "--actor", "bob", "--home", url())
        done = subprocess.run([VERIFY, "--self-consistent", p.folder / "a.proof"], capture_output=True, check=False)
        check(done.returncode == 0, done)
        p.ok("key", "new", p.folder / "log.key", "--name", "example.com/log")
        p.ok("checkpoint", "--all", "--sign", p.folder / "log.key", "-o", p.folder / "note", "--home", url())
        p.ok("append", "note.x", "after the checkpoint", "--actor", "alice", "--home", url())
        p.ok("checkpoint", "--all", "--sign", p.folder / "log.key", "-o", p.folder / "note2", "--home", url())
        p.ok("memory", "find", "--text", "sky", "--actor", "bob", "--home", url())
        p.ok("tables", "rebuild", "--home", url())
        p.ok("status", "--home", url())
        check(not p.fleet_json("parts")["parts"][0].get("owner"), "the lease was not given back")
        check("ok    chains" in p.fleet("doctor", "--chains"))
        # The environment names it, too; no file was left where the command ran.
        before = sorted(p.folder.rglob("*"))
        done = p.run("roots", "--actor", "alice", "--json", env={"CORTEX_HOME": url()})
        check(done.returncode == 0, done)
        check(sorted(p.folder.rglob("*")) == before, "files were made")


@test
def a_directory_comes_back_with_the_same_bytes_and_proofs():
    with Place() as p:
        p.fill()
        p.ok("snapshot", "make", "--actor", "bob")
        p.fleet("import", p.home)
        uri = p.json("memory", "list", "--actor", "bob")["memories"][0]["uri"]
        p.ok("prove", uri, "-o", p.folder / "a.proof", "--actor", "bob")
        p.ok("prove", uri, "-o", p.folder / "b.proof", "--actor", "bob", "--home", url())
        check((p.folder / "a.proof").read_bytes() == (p.folder / "b.proof").read_bytes(), "the proof has other bytes")
        out = p.export()
        check(log_bytes(out) == log_bytes(p.home) and log_bytes(out), "the log has other bytes")
        for actor in ("alice", "bob", "carol"):
            for command in (("roots", "--json"), ("log", "--all", "--json")):
                here = p.ok(*command, "--actor", actor)
                check(here == p.ok(*command, "--actor", actor, "--home", url()), command, actor)
                check(here == p.ok(*command, "--actor", actor, "--home", out), command, actor)
        done = p.run("verify", "--home", out, "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["verdict"] == "holds", done.stdout)
        check("PartNotEmpty" in p.fleet("import", p.home, code=1))
        p.fleet("import", p.home, "--part", "second")
        check(p.ok("roots", "--json", "--actor", "bob") == p.ok("roots", "--json", "--actor", "bob", "--home", url("second")))


@test
def erased_content_is_not_in_the_database():
    with Place() as p:
        p.fill(["alice"], home=url())
        check("what alice keeps" in all_bytes() and "the secret of alice" not in all_bytes(), "content")
        check("ok    chains" in p.fleet("doctor", "--chains"))


@test
def large_contents_come_back():
    with Place() as p:
        p.ok("append", "note.big", "-", "--actor", "alice", "--home", url(), input=b"0123456789abcdef" * 200000)
        p.ok("append", "note.big", "-", "--committed", "--actor", "alice", "--home", url(), input=b"fedcba9876543210" * 200000)
        out = p.export()
        check(p.ok("roots", "--json", "--actor", "alice", "--home", out) ==
              p.ok("roots", "--json", "--actor", "alice", "--home", url()), "roots")
        check(p.run("verify", "--home", out).returncode == 0, "does not hold")


@test
def a_changed_database_is_found():
    changes = {
        "a byte of the log": "UPDATE cortex_fleet.cx_extent SET bytes = set_byte(bytes, 40, get_byte(bytes, 40) # 1) WHERE "
                             "num = (SELECT max(num) FROM cortex_fleet.cx_commit WHERE nonce IS NOT NULL)",
        "bytes that are missing": "DELETE FROM cortex_fleet.cx_extent WHERE num = (SELECT max(num) FROM "
                                  "cortex_fleet.cx_commit WHERE nonce IS NOT NULL)",
        "a commit that is missing": "DELETE FROM cortex_fleet.cx_commit WHERE num = 2",
        "an epoch": "UPDATE cortex_fleet.cx_commit SET epoch = epoch + 1 WHERE num = 1",
        "the identity": "UPDATE cortex_fleet.cx_part SET id = decode(repeat('00', 16), 'hex')",
        "a head": "UPDATE cortex_fleet.cx_part SET head = decode(repeat('00', 32), 'hex')",
    }
    with Place() as p:
        for what, statement in changes.items():
            server().sql("DROP SCHEMA IF EXISTS cortex_fleet CASCADE")
            p.fleet("init", "--no-standby")
            p.ok("append", "note.x", "one", "--actor", "alice", "--home", url())
            p.ok("append", "note.x", "two", "--actor", "alice", "--home", url())
            check("ok    chains" in p.fleet("doctor", "--chains"), what)
            server().sql(statement)
            check("fail" in p.fleet("doctor", "--chains", code=1), what)


@test
def parts_know_nothing_of_each_other():
    with Place() as p:
        p.fleet("add", "team-b")
        p.ok("append", "note.x", "of main", "--actor", "alice", "--home", url())
        p.ok("append", "note.x", "of b", "--actor", "bob", "--home", url("team-b"))
        check(b"NoActor" in p.run("roots", "--actor", "bob", "--home", url()).stderr)
        check(b"NoActor" in p.run("roots", "--actor", "alice", "--home", url("team-b")).stderr)
        p.ok("token", "add", "--home", url("team-b"), "--name", "ci", "--scope", "trace:write")
        check("ci" in p.ok("token", "list", "--home", url("team-b")) and "ci" not in p.ok("token", "list", "--home", url()))
        check("PartExists" in p.fleet("add", "team-b", code=1))
        check([row["name"] for row in p.fleet_json("parts")["parts"]] == ["main", "team-b"])


@test
def a_backup_of_a_part_is_one_of_a_directory():
    with Place() as p:
        p.fleet("add", "team-b")
        p.fill(home=url("team-b"))
        p.ok("token", "add", "--home", url("team-b"), "--name", "ci", "--scope", "trace:write")
        roots = p.ok("roots", "--json", "--actor", "alice", "--home", url("team-b"))
        copy, back = p.folder / "copy", p.folder / "back"
        check("copied to" in p.ok("backup", copy, "--home", url("team-b")))
        check("holds" in p.ok("backup", "--verify", copy))
        check(not (copy / "tokens").exists() and b"the secret of" not in b"".join(log_bytes(copy).values()), "secrets")
        p.ok("restore", copy, "--to", back)
        check(p.run("verify", "--home", back).returncode == 0)
        check(p.ok("roots", "--json", "--actor", "alice", "--home", back) == roots, "roots")
        # A part is no place for a backup, and a backup is no part.
        done = p.run("backup", copy, "--home", url("team-b"))
        check(done.returncode == 1 and b"exists" in done.stderr, done)
        done = p.run("backup", p.folder / "none", "--home", url("nothere"))
        check(done.returncode == 2 and b"NoPart" in done.stderr and b"cortex fleet parts" in done.stderr, done)
        p.ok("append", "note.x", "after the restore", "--actor", "alice", "--home", back)
        p.fleet("import", back, "--part", "team-c")
        check(p.run("verify", "--home", url("team-c")).returncode == 0)


@test
def a_part_moves_to_another_database():
    with Place() as p:
        p.fill(["alice"], home=url())
        server().sql("DROP DATABASE IF EXISTS other")
        server().sql("CREATE DATABASE other")
        other = url()[:-len("cortex")] + "other"
        p.fleet("init", "--no-standby", "--database", other)
        check("PartNotEmpty" in p.fleet("move", "main", "--to", other, code=1))
        check(p.fleet_json("parts")["parts"][0].get("moved_to") is None, "marked although nothing was moved")
        p.fleet("add", "elsewhere")
        p.fill(["alice"], home=url("elsewhere"))
        roots = p.ok("roots", "--json", "--actor", "alice", "--home", url("elsewhere"))
        server().sql("UPDATE cortex_fleet.cx_part SET trail = decode(repeat('07', 48), 'hex') WHERE name = 'elsewhere'")
        p.fleet("move", "elsewhere", "--to", other)
        trail = server().sql("SELECT encode(trail, 'hex') FROM cortex_fleet.cx_part WHERE name = 'elsewhere'", database="other")
        check(trail == "07" * 48, "where reading begins", trail)
        check(p.ok("roots", "--json", "--actor", "alice", "--home", other + "#elsewhere") == roots, "roots")
        # Where to is not among the events: an address may have a password.
        told = str(server().sql("SELECT p.name || ' ' || e.detail || '.' FROM cortex_fleet.cx_event e JOIN "
                                "cortex_fleet.cx_part p USING (part) WHERE e.kind = 'moved'"))
        check("elsewhere ." in told, told)
        done = p.run("append", "note.x", "late", "--actor", "alice", "--home", url("elsewhere"))
        check(done.returncode != 0 and b"moved" in done.stderr, done)
        p.ok("append", "note.x", "at the new place", "--actor", "alice", "--home", other + "#elsewhere")
        check(p.run("verify", "--home", other + "#elsewhere").returncode == 0)


@test
def every_answer_has_its_schema():
    with Place(tables=False) as p:
        commands = {c["name"] for c in json.loads(kit.run(kit.BIN, "help", "--json").stdout)["commands"]}
        check({f"fleet {word}" for word in SCHEMAS} == {c for c in commands if c.startswith("fleet ")}, "a command is missing")
        check(p.fleet_json("init", "--no-standby")["made"] and not p.fleet_json("init", "--no-standby")["made"])
        check(p.fleet_json("add", "team-b") == {"name": "team-b", "part": 1})
        check(p.fleet_json("nodes") == {"nodes": []})
        sql = server().sql
        sql("INSERT INTO cortex_fleet.cx_node (owner, node, part, address, version) VALUES "
            "('n1/0123456789abcdef', 'n1', 1, '127.0.0.1:1', '1.0')")
        sql("UPDATE cortex_fleet.cx_part SET owner = 'n1/0123456789abcdef', address = '127.0.0.1:2', "
            "lease_until = now() + interval '1 hour' WHERE part = 1")
        shown = p.fleet_json("balance", "--off", "--after", "7")
        check(shown["balance"]["after_ms"] == 7000 and not shown["balance"]["enabled"], shown)
        check([(n["node"], n["parts"], n["processes"]) for n in shown["nodes"]] == [("n1", 1, 1)], shown)
        check(p.fleet_json("drain", "n1")["processes"] == 1)
        node = p.fleet_json("nodes")["nodes"][0]
        check(node["draining"] and node["state"] == "drains" and node["part"] == "team-b", node)
        part = p.fleet_json("parts")["parts"][1]
        check(part["owner"].startswith("n1/") and part["address"] and part["lease_left_ms"] > 0, part)
        got = p.fleet_json("status")
        check((got["parts"], got["parts_owned"], got["parts_served"]) == (2, 1, 1), got)
        check(p.fleet_json("doctor", "--chains")["ok"])
        p.fleet_json("checkpoint")
        p.fill(["alice"])
        check(p.fleet_json("import", p.home, "--part", "third")["part"] == "third")
        check(p.fleet_json("export", p.folder / "out", "--part", "third")["commits"] > 1)
        sql("DROP DATABASE IF EXISTS other")
        sql("CREATE DATABASE other")
        other = url()[:-len("cortex")] + "other"
        p.fleet("init", "--no-standby", "--database", other)
        check(p.fleet_json("move", "third", "--to", other)["bytes"] > 0)
        check(p.fleet_json("parts")["parts"][2]["moved_to"] == other)


@test
def mistakes_are_explained():
    with Place() as p:
        for args, code, word in (
                (["status", "--database", "mysql://x"], 2, "postgresql://"),
                (["status", "--database", "postgresql://127.0.0.1:1/x"], 3, "DatabaseAway"),
                (["export", p.folder / "x", "--part", "none"], 2, "NoPart"),
                (["import", p.folder / "none"], 3, "NoHome"),
                (["add", "A b"], 2, "a to z"),
                (["doctor", "--accept", "none"], 2, "NoPart"),
                (["move", "main"], 2, "--to"),
                (["move", "main", "--to", "postgresql://me:secret@h/d"], 2, "pgpass")):
            said = p.fleet(*args, code=code)
            check(word in said, args, said)
        check(not (p.folder / "x").exists(), "something is left")
        # A user whom the server refuses: nothing was checked, whatever the command.
        for words in (["fleet", "status"], ["fleet", "nodes"], ["roots", "--actor", "alice", "--home"]):
            stranger = url().replace("cortex@", "stranger@")
            done = p.run(*words, *([stranger] if "--home" in words else ["--database", stranger]))
            check(done.returncode == 3, words, done)
        done = p.run("fleet", "status", env={"CORTEX_FLEET": ""})
        check(done.returncode == 2 and b"--database" in done.stderr, done)
        for home, word in ((url("none"), b"NoPart"), (url("A"), b"NoPart"), (url() + "#", b"name of a part"),
                           ("postgresql://127.0.0.1:1/x", b"DatabaseAway"), (url()[:-len("cortex")] + "no", b"Database")):
            done = p.run("roots", "--actor", "alice", "--home", home)
            check(done.returncode in (2, 3) and word in done.stderr, home, done)


@test
def a_stopped_part_is_accepted_by_an_operator():
    with Place() as p:
        server().sql("INSERT INTO cortex_fleet.cx_event (part, epoch, node, kind, detail) VALUES (0, 1, 'n', "
                     "'stopped', 'commits that were acknowledged are gone')")
        check("stopped" in p.fleet("doctor", code=1) and p.fleet_json("status")["parts_stopped"] == 1)
        done = p.run("append", "note.x", "text", "--actor", "alice", "--home", url())
        check(done.returncode == 3 and b"fleet:main/log/lock: " in done.stderr and b"stopped" in done.stderr, done)
        p.fleet("doctor", "--accept", "main")
        p.ok("append", "note.x", "text", "--actor", "alice", "--home", url())


if __name__ == "__main__":
    if cluster.BIN is None:
        skip_all("no PostgreSQL server is installed", 13)
    CLUSTER = cluster.Cluster(standby=False)
    main()
