#!/usr/bin/env python3
"""cortex fleet checkpoint: one statement about all parts, and what is said when a part does not lead from it.

    test_fleet_checkpoint.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Starts a PostgreSQL of its own; skipped where none is installed.
"""
import base64
import json
import pathlib
import subprocess
import sys

import kit
from kit import BIN, afterwards, check, main, run, sibling, skip_all, test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fleet"))
import cluster  # noqa: E402

CLUSTER = None
VERIFY = sibling("cortex-verify")
CHAIN = ("cortex_fleet.cx_commit", "cortex_fleet.cx_extent", "cortex_fleet.cx_file", "cortex_fleet.cx_part",
         "cortex_fleet.cx_small")


def sql(text):
    return CLUSTER.primary.sql(text)


def url(part=None, user="cortex"):
    return f"postgresql://{user}@127.0.0.1:{CLUSTER.primary.port}/cortex" + (f"#{part}" if part else "")


class Place(kit.Place):
    """A fleet with the parts main, team-b and audit, each with something in it but the last."""

    def __enter__(self):
        super().__enter__()
        sql("DROP SCHEMA IF EXISTS cortex_fleet, kept CASCADE")
        self.fleet("init", "--no-standby")
        for part in ("team-b", "audit"):
            self.fleet("add", part)
        for part in ("main", "team-b"):
            self.write(part, "one")
            self.write(part, "two", actor="bob")
            self.ok("checkpoint", "--all", "--home", url(part))
        self.key = self.folder / "fleet.key"
        self.vkey = self.ok("key", "new", self.key, "--name", "example.com/fleet").strip()
        self.file = self.folder / "fleet.json"
        return self

    def write(self, part, text, actor="alice"):
        self.ok("append", "note.x", text, "--actor", actor, "--home", url(part))

    def fleet(self, *args, code=0):
        done = self.run("fleet", *args, env={"CORTEX_FLEET": url()})
        check(done.returncode == code, args, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode() + done.stderr.decode()

    def fleet_json(self, *args, code=0):
        done = self.run("fleet", *args, "--json", env={"CORTEX_FLEET": url()})
        check(done.returncode == code, args, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def state(self, *more):
        return self.fleet_json("checkpoint", "--part", "audit", "--sign", self.key, "-o", self.file, *more)

    def follow(self, *more, code=0):
        got = self.fleet_json("checkpoint", "--check", self.file, "--key", self.vkey, *more, code=code)
        check(got["verdict"] == {0: "holds", 1: "broken", 3: "indeterminate"}[code], got)
        self.fits("fleet_checkpoint_check", got)
        return {part["name"]: part["reason"] for part in got["parts"]}

    def fits(self, name, answer):
        path = self.folder / "answer.json"
        path.write_text(json.dumps(answer))
        done = run(BIN, "gate", "schema", name + ".v1", path, "--json")
        check(done.returncode == 0, name, done.stdout)
        for wrong in [{**answer, "surprise": 1}] + [{k: v for k, v in answer.items() if k != key} for key in answer]:
            path.write_text(json.dumps(wrong))
            check(run(BIN, "gate", "schema", name + ".v1", path, "--json").returncode == 4, name, "takes", wrong)

    def keep(self):
        """The tables as they are, to be put back later as a restored backup does."""
        sql("CREATE SCHEMA kept; " + "; ".join(f"CREATE TABLE kept.{t.split('.')[1]} AS TABLE {t}" for t in CHAIN))

    def put_back(self, part):
        """One part's rows of the kept state."""
        number = f"(SELECT part FROM cortex_fleet.cx_part WHERE name = '{part}')"
        for table in CHAIN:
            if not table.endswith("cx_part"):
                sql(f"DELETE FROM {table} WHERE part = {number}; "
                    f"INSERT INTO {table} SELECT * FROM kept.{table.split('.')[1]} WHERE part = {number}")
        sql("UPDATE cortex_fleet.cx_part p SET next = k.next, head = k.head, epoch = k.epoch, bytes = k.bytes "
            f"FROM kept.cx_part k WHERE k.part = p.part AND p.name = '{part}'")


@afterwards
def stop_the_server():
    if CLUSTER is not None:
        CLUSTER.close()


@test
def all_parts_are_in_one_statement_and_lead_from_it():
    with Place() as p:
        made = p.state()
        p.fits("fleet_checkpoint", made)
        check(made == json.loads(p.file.read_text()), "the file is the answer")
        check(made["part"] == "audit" and made["signed"] and made["seq"] == 0, made)
        parts = {part["name"]: part for part in made["statement"]["parts"]}
        check(list(parts) == ["main", "team-b", "audit"], parts)
        rows = {row["name"]: row for row in p.fleet_json("parts")["parts"]}
        for name in ("main", "team-b"):
            check(all(parts[name][key] == rows[name][key] for key in ("commits", "epoch", "head", "id", "part")), name)
            roots = p.json("roots", "--home", url(name))["home_root"]
            check(parts[name]["home_root"] == {k: roots[k] for k in ("actors", "entries", "root")}, parts[name], roots)
            check(parts[name]["home_roots"]["size"] == 1, parts[name])
        check(parts["audit"]["home_root"]["entries"] == 0 and parts["audit"]["home_roots"] is None, parts["audit"])
        check(set(p.follow().values()) == {None}, "nothing has changed")
        # Parts go on, and are taken by others; another one is made.
        for part in ("main", "team-b"):
            p.write(part, "three")
            p.ok("checkpoint", "--all", "--home", url(part))
        p.fleet("add", "later")
        check(set(p.follow("--chains").values()) == {None}, "it has only grown")
        got = p.fleet_json("checkpoint", "--check", p.file)
        check(got["new_parts"] == 1 and not got["signed"] and len(got["limits"]) == 4, got)
        said = p.fleet("checkpoint", "--check", p.file, "--key", p.vkey)
        check("holds" in said and "team-b" in said and "signed by a key given" in said, said)
        # The next one extends the one before, under the same origin.
        check(p.state()["seq"] == 1)
        check(set(p.follow().values()) == {None}, "the second")


@test
def checkpoints_and_proofs_of_the_part_vouch_for_it():
    with Place() as p:
        made = p.state()
        log = p.json("log", "--all", "--actor", "fleet:parts", "--home", url("audit"))
        check("fleet.checkpoint" in json.dumps(log), log)
        proof, note = p.folder / "entry.proof", p.folder / "note"
        proof.write_bytes(base64.b64decode(made["proof"]))
        note.write_text(made["checkpoint"])
        done = subprocess.run([VERIFY, "--key", p.vkey, "--checkpoint", note, proof], capture_output=True, check=False)
        check(done.returncode == 0, done)
        p.ok("verify", "--home", url("audit"), "--checkpoint", note, "--actor", "fleet:parts", "--key", p.vkey)
        # No one else writes that journal.
        p.ok("checkpoint", "--all", "--home", url("audit"))
        p.ok("prove", "--in-home", "--actor", "fleet:parts", "-o", p.folder / "in-home", "--home", url("audit"))
        unsigned = p.fleet_json("checkpoint", "--part", "audit", "-o", p.file)
        check(not unsigned["signed"] and len(unsigned["checkpoint"].splitlines()) == 3, unsigned)
        p.follow(code=3)  # and a key was given
        check(p.fleet_json("checkpoint", "--check", p.file)["verdict"] == "holds")


@test
def a_part_that_was_restored_older_is_broken():
    with Place() as p:
        p.keep()
        p.write("team-b", "three")
        p.state()
        check(set(p.follow().values()) == {None})
        p.put_back("team-b")
        p.ok("verify", "--home", url("team-b"))  # a consistent, older state
        found = p.follow(code=1)
        check(found["team-b"] == "RolledBack" and found["main"] is None, found)
        said = p.fleet("checkpoint", "--check", p.file, "--key", p.vkey, code=1)
        check("broken" in said and "restored to an older state" in said, said)
        # Written on from there until it is as long: another commit is at that place.
        while p.fleet_json("parts")["parts"][1]["commits"] < 60:
            p.write("team-b", "instead")
        found = p.follow(code=1)
        check(found["team-b"] == "Forked" and found["main"] is None, found)


@test
def a_part_that_was_removed_or_replaced_is_broken():
    with Place() as p:
        p.state()
        for table in ("cx_extent", "cx_file", "cx_small", "cx_commit", "cx_event", "cx_pulse", "cx_part"):
            sql(f"DELETE FROM cortex_fleet.{table} WHERE part = 1")
        check(p.follow(code=1) == {"main": None, "team-b": "PartRemoved", "audit": None})
        p.fleet("add", "team-b")
        p.write("team-b", "one")
        check(p.follow(code=1) == {"main": None, "team-b": "PartReplaced", "audit": None})


@test
def a_changed_history_is_broken():
    changes = {
        "a head": ("UPDATE cortex_fleet.cx_part SET head = decode(repeat('00', 32), 'hex') WHERE name = 'main'", "ChainBroken"),
        "a link since": ("UPDATE cortex_fleet.cx_commit SET head = decode(repeat('00', 32), 'hex') WHERE part = 0 AND num = "
                         "(SELECT max(num) FROM cortex_fleet.cx_commit WHERE part = 0)", "ChainBroken"),
        "the link stated": ("UPDATE cortex_fleet.cx_commit SET head = decode(repeat('00', 32), 'hex') WHERE part = 0 AND num = "
                            "{stated} - 1", "Forked"),
        "a missing commit": ("DELETE FROM cortex_fleet.cx_commit WHERE part = 0 AND num = {stated} - 1", "ChainBroken"),
        "an epoch": ("UPDATE cortex_fleet.cx_part SET epoch = 0 WHERE name = 'main'", "RolledBack"),
        "an id": ("UPDATE cortex_fleet.cx_part SET id = decode(repeat('00', 16), 'hex') WHERE name = 'main'", "PartReplaced"),
    }
    with Place() as p:
        made = p.state()
        stated = made["statement"]["parts"][0]["commits"]
        p.write("main", "three")
        p.keep()
        for what, (statement, reason) in changes.items():
            sql(statement.format(stated=stated))
            found = p.follow(code=1)
            check(found["main"] == reason and found["team-b"] is None, what, found)
            sql("UPDATE cortex_fleet.cx_part p SET id = k.id FROM kept.cx_part k WHERE k.part = p.part")
            p.put_back("main")
        check(set(p.follow("--chains").values()) == {None}, "put back")
        # Bytes alone: links still fit.
        sql("UPDATE cortex_fleet.cx_extent SET bytes = set_byte(bytes, 40, get_byte(bytes, 40) # 1) WHERE part = 0 AND num = "
            "(SELECT max(num) FROM cortex_fleet.cx_commit WHERE part = 0 AND nonce IS NOT NULL)")
        check(p.follow("--chains", code=1)["main"] == "ChainBroken")


@test
def a_data_directory_written_anew_under_the_same_chain_is_broken():
    with Place() as p:
        p.state()
        # A user who may write everything makes the log of team-b that of main, and leaves all links.
        sql("DELETE FROM cortex_fleet.cx_extent WHERE part = 1; DELETE FROM cortex_fleet.cx_file WHERE part = 1; "
            "DELETE FROM cortex_fleet.cx_small WHERE part = 1")
        check(p.follow(code=1)["team-b"] == "NoHome")


@test
def what_cannot_be_read_is_indeterminate():
    with Place() as p:
        p.state()
        # The log of one part is not there: nothing can be said of its roots.
        sql("UPDATE cortex_fleet.cx_extent SET bytes = decode(repeat('00', octet_length(bytes)), 'hex') WHERE part = 1")
        found = p.follow(code=3)
        check(found["team-b"] is not None and found["main"] is None, found)
        done = p.run("fleet", "checkpoint", "--check", p.file, "--database", "postgresql://127.0.0.1:1/x")
        check(done.returncode == 3 and b"DatabaseAway" in done.stderr, done)
        done = p.run("fleet", "checkpoint", "--check", p.file, "--database", url(user="stranger"))
        check(done.returncode == 3, done)
        # Nothing is stated of a fleet of which a part cannot be read.
        said = p.fleet("checkpoint", "--part", "audit", code=3)
        check("recorded" not in said, said)


@test
def a_part_that_was_moved_is_indeterminate():
    with Place() as p:
        sql("DROP DATABASE IF EXISTS other")
        sql("CREATE DATABASE other")
        other = url()[:-len("cortex")] + "other"
        p.state()
        p.fleet("init", "--no-standby", "--database", other)
        p.fleet("move", "team-b", "--to", other)
        check(p.follow(code=3) == {"main": None, "team-b": "PartMoved", "audit": None})
        done = p.run("fleet", "checkpoint", "--check", p.file, "--database", other, "--json")
        check(done.returncode == 1 and json.loads(done.stdout)["file"]["reason"] == "OtherFleet", done)


@test
def a_file_that_was_changed_is_broken():
    with Place() as p:
        made = p.state()

        def changed(**more):
            p.file.write_text(json.dumps({**made, **more}))

        statement = json.loads(json.dumps(made["statement"]))
        statement["parts"][0]["commits"] -= 1
        changed(statement=statement)
        got = p.fleet_json("checkpoint", "--check", p.file, "--key", p.vkey, code=1)
        check(got["file"]["reason"] == "StatementChanged" and got["parts"] == [], got)
        p.fits("fleet_checkpoint_check", got)
        changed(seq=7)
        check(p.fleet_json("checkpoint", "--check", p.file, code=1)["file"]["reason"] == "NotAStatement")
        lines = made["checkpoint"].splitlines()
        lines[2] = base64.b64encode(bytes(32)).decode()
        changed(checkpoint="\n".join(lines) + "\n")
        check(p.fleet_json("checkpoint", "--check", p.file, "--key", p.vkey, code=1)["verdict"] == "broken")
        changed(part="main")
        check(p.fleet_json("checkpoint", "--check", p.file, code=1)["file"]["reason"] == "Truncated")
        changed(part="gone")
        check(p.fleet_json("checkpoint", "--check", p.file, code=1)["file"]["reason"] == "PartRemoved")
        for more in ({"type": "x"}, {"proof": "?"}, {"statement": []}, {"part": ""}, {"checkpoint": "x"},
                     {"part": "a\x1b[2J"}, {"part": "main?x=y"}):
            changed(**more)
            done = p.run("fleet", "checkpoint", "--check", p.file, "--database", url())
            check(done.returncode == 3 and b"fleet.json" in done.stderr, more, done)
        p.file.write_text("{")
        check(p.run("fleet", "checkpoint", "--check", p.file, "--database", url()).returncode == 3)
        p.file.write_text(json.dumps(made))
        stranger = p.ok("key", "new", p.folder / "other.key", "--name", "example.com/fleet").strip()
        done = p.fleet_json("checkpoint", "--check", p.file, "--key", stranger, code=1)
        check(not done["signed"] and done["file"]["reason"] == "NotSigned", done)


@test
def a_part_that_is_served_is_not_written_and_the_rest_is_read():
    with Place() as p:
        # A process that owns main and goes on: what a node does.
        sql("UPDATE cortex_fleet.cx_part SET owner = 'n1/0123456789abcdef', lease_until = now() + interval '1 hour' "
            "WHERE name IN ('main', 'team-b')")
        said = p.fleet("checkpoint", code=3)
        check("--part" in said and "Locked" in said, said)
        check(p.state()["part"] == "audit")
        check(set(p.follow().values()) == {None})


@test
def mistakes_are_explained():
    with Place() as p:
        for args, code, word in (
                (["--key", "x"], 2, "--check"),
                (["--chains"], 2, "--check"),
                (["--check", p.file, "--part", "main"], 2, "records nothing"),
                (["--check", p.folder / "none"], 2, "none"),
                (["--part", "none"], 2, "NoPart"),
                (["--sign", p.folder / "none"], 2, "none"),
                (["-o", "/none/x"], 3, "/none/x")):
            done = p.run("fleet", "checkpoint", *args, "--database", url())
            check(done.returncode in (code, 3 if code == 2 else code) and word in done.stderr.decode(), args, done)
        check(p.fleet_json("checkpoint", "--part", "audit")["seq"] == 0, "something was recorded before")


if __name__ == "__main__":
    if cluster.BIN is None:
        skip_all("no PostgreSQL server is installed", 11)
    CLUSTER = cluster.Cluster(standby=False)
    main()
