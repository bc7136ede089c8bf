#!/usr/bin/env python3
"""The ledger from outside: real homes, every command, wrong inputs, and what others can check.

    test_ledger.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN; cortex-verify lies beside it

Closes with `N passed, N failed, N skipped`.
"""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

import kit
from kit import BIN, sibling, main, skip, test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VERIFY = sibling("cortex-verify")
ENV = {k: v for k, v in os.environ.items()
       if k not in ("CORTEX_HOME", "CORTEX_ACTOR", "XDG_DATA_HOME", "LOGNAME", "USER")}
ABSENT = "matrix://cortex/Fact/01HF7YAT000000000000000003#1"
FACT = '{"statement":"sky is blue","subject":"sky","predicate":"is"}'
GREY = '{"statement":"sky is grey","subject":"sky","predicate":"is"}'


class Place(kit.Place):
    def __init__(self, scheme="cortex-1", init=True):
        super().__init__(init, scheme)

    def refused(self, code, tag, *args, **more):
        """The exit code, a line that names the reason, and the same in JSON."""
        done = self.expect(code, *args, **more)
        lines = done.stderr.decode().splitlines()
        assert lines and lines[0].startswith("cortex: ") and f"{tag}" in lines[0], (args, lines)
        assert done.stdout == b"", (args, done.stdout)
        said = self.expect(code, *args, "--json", **more)
        error = json.loads(said.stdout)["error"]
        assert sorted(error) == ["byte", "code", "detail", "line"], error
        assert error["code"] == tag, (args, error)
        return lines

    def write(self, data=FACT, kind="Fact", *more, **rest):
        return self.ok("memory", "write", kind, data, *more, **rest)

    def key(self, name="example.com/log", file="log.key"):
        path = self.folder / file
        return path, self.ok("key", "new", path, "--name", name)

    def bytes_of_home(self):
        return {str(p.relative_to(self.home)): p.read_bytes()
                for p in sorted(self.home.rglob("*")) if p.is_file()}

    def verify_elsewhere(self, code, *args):
        """cortex-verify in a folder of its own, with nothing but the files named."""
        with tempfile.TemporaryDirectory(prefix="cortex-elsewhere-") as other:
            moved = []
            for word in map(str, args):
                if word.startswith("/") and os.path.isfile(word):
                    shutil.copy(word, other)
                    word = os.path.basename(word)
                moved.append(word)
            done = subprocess.run([VERIFY, *moved], capture_output=True, cwd=other, timeout=60,
                                  env={"PATH": "/usr/bin:/bin"})
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()


def ulid(uri):
    return re.search(r"[0-9A-Z]{26}", uri).group()


def at_version(uri, version):
    return f"{uri.split('#')[0]}#{version}"


# --- homes --------------------------------------------------------------------------------------------


@test
def init_creates_a_data_directory_once():
    with Place(init=False) as p:
        done = p.json("init", p.folder / "a/b/c", "--scheme", "matrix-1", "--segment-size", "64K")
        assert done == {"home": os.path.realpath(p.folder / "a/b/c"), "scheme": "matrix-1"}
        assert sorted(x.name for x in (p.folder / "a/b/c").iterdir()) == ["format", "keys", "log"]
        p.expect(1, "init", p.folder / "a/b/c", err="exists already")
        p.expect(2, "init", p.folder / "x", "--home", p.folder / "y", err="expected either")
        p.expect(2, "init", p.folder / "x", "--scheme", "cortex-2", err="cortex-1")
        p.expect(3, "init", "/proc/nothing/here", err="init: ")


@test
def output_files_inside_a_data_directory_are_refused():
    """An output that names a home's own file would destroy it; homes in homes confuse."""
    with Place() as p:
        p.write()
        key, _ = p.key()
        p.ok("checkpoint", "--sign", key)
        def log_and_names():
            files = p.bytes_of_home()
            return files["log/000000.seg"], sorted(name for name in files if ".db-" not in name)
        before = log_and_names()
        inside = p.home / "log"
        for words in (["export", "entry", 0, "-o", inside / "000000.seg"],
                      ["export", "entry", 0, "-o", p.home / "cortex.db"],
                      ["export", "tiles", inside], ["export", "tiles", p.home],
                      ["export", "tiles", inside / "new"],
                      ["checkpoint", "-o", p.home / "checkpoint"],
                      ["prove", "--fresh", ABSENT, "--absent", "-o", p.home / "a.proof"],
                      ["backup", p.home / "copy"], ["init", p.home / "other"],
                      ["init", inside / "deep/er"], ["key", "new", p.home / "k"]):
            p.expect(2, *words, err="InsideHome")
            assert log_and_names() == before, words
        assert not (inside / "new").exists() and not (inside / "tile").exists()
        os.symlink(inside, p.folder / "link")
        p.expect(2, "export", "entry", 0, "-o", p.folder / "link/000000.seg", err="InsideHome")
        p.expect(2, "export", "entry", 0, "-o", "x", cwd=inside, err="InsideHome")
        os.symlink(inside / "000000.seg", p.folder / "file")
        p.expect(2, "export", "entry", 0, "-o", p.folder / "file", err="InsideHome")
        assert log_and_names() == before
        p.ok("export", "entry", 0, "-o", p.folder / "home.entry")
        p.ok("verify", "--home", p.home)


@test
def an_unwritable_output_is_refused_before_the_work_begins():
    with Place() as p:
        uri = p.write()
        p.expect(3, "prove", "--fresh", uri, "-o", p.folder / "no/such/a.proof", err="cannot write")
        assert p.json("snapshot", "list")["snapshots"] == []


@test
def who_only_reads_is_told_that_the_tables_are_missing():
    with Place() as p:
        steps = "".join(json.dumps({"agent": "a", "key": f"k{i}", "event": {"n": i}}) + "\n" for i in range(24000))
        (p.folder / "steps.jsonl").write_text(steps)
        p.ok("lattice", "append", p.folder / "steps.jsonl")
        assert p.expect(0, "roots", "--actor", "a").stderr == b""
        for path in pathlib.Path(p.home).glob("cortex.db*"):
            path.unlink()
        p.expect(0, "roots", "--actor", "a", err="'cortex tables rebuild' writes them once")
        p.ok("tables", "rebuild")
        assert p.expect(0, "roots", "--actor", "a").stderr == b""


@test
def errors_say_what_to_do_next():
    with Place() as p:
        uri = p.write()
        key, public = p.key()
        p.expect(1, "key", "new", key, err="never overwritten")
        p.ok("backup", p.folder / "copy")
        p.expect(1, "backup", p.folder / "copy", err="that does not exist")
        note = p.folder / "note"
        note.write_text("none")
        p.expect(3, "checkpoint", "--consistency-from", note, err=f"{note}: ")
        p.expect(2, "log", "--kind", "Not A Kind", err="option --kind: found 'Not A Kind'")
        p.expect(2, "memory", "get", "nonsense", err="found 'nonsense'")
        p.expect(2, "memory", "get", "x" * 4000, err="x'.., it must start with matrix://cortex/")
        p.ok("snapshot")
        scope = p.folder / "scope"
        p.ok("scope", "make", "--to", "bob", "--type", "Fact", "--sign", key, "-o", scope)
        p.expect(3, "scope", "check", scope, out="--key andrew=KEY")
        p.expect(1, "scope", "check", scope, "--key", f"other={public}", out="--key andrew=KEY")
        p.expect(1, "memory", "get", uri, "--scope", scope, "--key", f"other={public}",
                 err="--key AGENT=KEY")
        p.expect(0, "scope", "check", scope, "--key", f"andrew={public}")
        proof = p.folder / "a.proof"
        p.ok("prove", "--fresh", uri, "-o", proof)
        p.expect(2, "verify", proof, "--root", "x", err="option --root: found 'x'")
        (p.home / "cortex.db").write_bytes(b"no database at all" * 100)
        lines = p.expect(3, "memory", "write", "Fact", FACT).stderr.decode()
        assert "'cortex tables rebuild --replace'" in lines, lines
        p.expect(1, "tables", "rebuild")
        p.ok("tables", "rebuild", "--replace")
        p.write()


@test
def the_data_directory_is_found_as_documented():
    with Place(init=False) as p:
        none = {"CORTEX_HOME": "", "XDG_DATA_HOME": ""}
        def where(env, *args):
            return p.json("init", "--segment-size", "64K", *args, env={**none, **env})["home"]
        real = os.path.realpath(p.folder)
        assert where({}) == real + "/.local/share/cortex"
        assert where({"XDG_DATA_HOME": str(p.folder / "xdg")}) == real + "/xdg/cortex"
        assert where({"CORTEX_HOME": str(p.folder / "own")}) == real + "/own"
        assert where({"CORTEX_HOME": str(p.folder / "own")}, "--home", p.folder / "given") == \
            real + "/given"
        # A relative XDG_DATA_HOME does not count.
        p.expect(1, "init", env={**none, "XDG_DATA_HOME": "relative"}, err=".local/share")
        p.expect(2, "roots", env={**none, "HOME": ""}, err="expected --home DIR")


@test
def without_a_data_directory_errors_name_cortex_init():
    with Place(init=False) as p:
        for words in (["roots"], ["memory", "write", "Fact", FACT], ["memory", "list"],
                      ["snapshot"], ["log"], ["checkpoint"], ["tables", "status"],
                      ["tables", "rebuild"], ["backup", "x"], ["prove", ABSENT, "-o", "x"],
                      ["verify", "--home", p.home], ["erase", "0", "--reason", "r"]):
            p.expect(3, *words, err="NoHome")
        assert "cortex init" in p.run("roots").stderr.decode()
        assert not p.home.exists()


@test
def actors_have_journals_of_their_own():
    with Place() as p:
        uri = p.write()
        p.refused(2, "NoActor", "memory", "get", uri, "--actor", "nobody")
        assert "andrew" in p.run("log", "--actor", "nobody").stderr.decode()
        p.write(GREY, "Fact", "--actor", "bob")
        roots = p.json("roots")["actors"]
        assert [a["actor"] for a in roots] == ["andrew", "bob"]
        assert [a["journal_size"] for a in roots] == [1, 1]
        assert p.json("roots", "--actor", "bob")["actors"] == roots[1:]
        p.refused(2, "NotFound", "memory", "get", uri, "--actor", "bob")
        for env, actor in (({"LOGNAME": "lou"}, "lou"), ({"USER": "uma"}, "uma"), ({}, "local")):
            p.write(FACT, "Fact", env={"CORTEX_ACTOR": "", **env})
            assert p.json("roots")["actors"][-1]["actor"] == actor
        for bad in ("a/b", "", "x" * 257, "a\x01b"):
            p.expect(2, "memory", "write", "Fact", FACT, "--actor", bad, err="--actor")


# --- memories -----------------------------------------------------------------------------------------


MEMORY_MEMBERS = sorted([
    "actor_scope", "confidence", "created_at", "created_by", "current_version", "data", "embedding",
    "erased", "expired", "expires_at", "forms", "frames", "head_hash", "id", "importance",
    "provenance", "tags", "tombstone", "type", "updated_at", "uri", "version", "version_hash",
    "visibility"])


@test
def write_and_get():
    with Place() as p:
        done = p.json("memory", "write", "Fact", FACT, "--tag", "a", "--tag", "b", "--importance", "5",
                      "--visibility", "scoped", "--frame", "acquire:service:gpu", "--confidence",
                      "0.5", "--source", "observed", "--derived-from", "https://x", "--by", "carl")
        assert sorted(done) == ["actor", "id", "uri", "version"] and done["version"] == 1
        assert done["uri"] == f"matrix://cortex/Fact/{done['id']}#1"
        got = p.json("memory", "get", done["uri"])
        assert sorted(got) == MEMORY_MEMBERS
        assert got["data"] == json.loads(FACT) and got["tags"] == ["a", "b"]
        assert (got["importance"], got["visibility"], got["created_by"]) == (5, "scoped", "carl")
        assert got["frames"] == [{"verb": "acquire", "kind": "service", "ref": "gpu"}]
        assert got["confidence"] == 0.5 and got["actor_scope"] == "andrew"
        assert got["provenance"] == {"attestations": [], "derived_from": ["https://x"],
                                     "signed_by": None, "source": "observed"}
        assert got["forms"] == {"medium": "is(sky)=sky is blue", "short": "is(sky)=sky is blue"}
        assert p.json("memory", "get", done["id"]) == got
        assert "sky is blue" in p.ok("memory", "get", done["id"])
        p.refused(2, "NotFound", "memory", "get", ABSENT)
        p.refused(2, "NotFound", "memory", "get", ulid(ABSENT))
        p.refused(1, "TypeMismatch", "memory", "get", done["uri"].replace("Fact", "Goal"))
        p.refused(2, "NotFound", "memory", "get", at_version(done["uri"], 2))
        for bad in ("x", done["uri"].lower(), done["uri"][:-2], at_version(done["uri"], "latest"),
                    at_version(done["uri"], "01"), done["id"][:-1]):
            p.refused(2, "BadURI", "memory", "get", bad)


@test
def data_comes_from_argument_file_or_input():
    with Place() as p:
        (p.folder / "fact.json").write_text(FACT)
        uris = [p.write(), p.write("@fact.json"), p.write("-", input=FACT.encode()),
                p.ok("memory", "write", "Fact", "--data-cbor",
                     "a40001016161026162036163")]
        shown = [p.json("memory", "get", u)["data"] for u in uris]
        assert shown[:3] == [json.loads(FACT)] * 3
        assert shown[3] == {"statement": "a", "subject": "b", "predicate": "c"}
        (p.folder / "fact.cbor").write_bytes(bytes.fromhex("a40001016161026162036163"))
        assert p.json("memory", "get", p.ok("memory", "write", "Fact", "--data-cbor",
                                            "@fact.cbor"))["data"] == shown[3]
        p.expect(3, "memory", "write", "Fact", "@nothing", err="nothing")
        p.expect(2, "memory", "write", "Fact", err="expected DATA")
        p.expect(2, "memory", "write", "Fact", FACT, "--data-cbor", "a0", err="either DATA")
        p.expect(2, "memory", "write", "Fact", "--data-cbor", "xyz", err="hex")


@test
def invalid_writes_are_refused_and_change_nothing():
    with Place() as p:
        uri = p.write()
        before = p.json("roots")
        wrong = [
            ("Fakt", FACT), ("Fact", "{"), ("Fact", "[]"), ("Fact", "{}"),
            ("Fact", '{"statement":" ","subject":"s","predicate":"p"}'),
            ("Fact", '{"statement":"x","subject":"s","predicate":"p","color":1}'),
            ("Preference", '{"topic":"t","polarity":"prefer","strength":2}'),
            ("Constraint", '{"statement":"s","strength":"iron","source":"learned"}'),
        ]
        for kind, data in wrong:
            p.expect(2, "memory", "write", kind, data)
        p.refused(2, "FieldMissing", "memory", "write", "Fact", wrong[4][1])
        p.refused(2, "EmptyData", "memory", "write", "Fact", "{}")
        p.refused(2, "TypeDataMismatch", "memory", "write", "Fact", wrong[5][1])
        p.refused(2, "TooManyTags", "memory", "write", "Fact", FACT,
                  *[w for i in range(17) for w in ("--tag", f"t{i}")])
        p.refused(2, "TagTooLong", "memory", "write", "Fact", FACT, "--tag", "x" * 65)
        p.refused(2, "DanglingReference", "memory", "write", "Fact", FACT, "--derived-from", ABSENT)
        p.refused(1, "AlreadyExists", "memory", "write", "Fact", FACT, "--id", ulid(uri))
        p.refused(2, "FormTooLong", "memory", "write", "Fact", FACT, "--short", "x" * 300, "--medium",
                  "m")
        for options in (["--short", "x"], ["--importance", "11"], ["--importance", "-1"],
                        ["--confidence", "2"], ["--confidence", "much"], ["--expires", "soon"],
                        ["--frame", "acquire"], ["--frame", "steal:service:x"], ["--id", "abc"],
                        ["--visibility", "secret"], ["--source", "rumour"], ["--nope"]):
            p.expect(2, "memory", "write", "Fact", FACT, *options)
        assert p.json("roots") == before


@test
def update_is_compare_and_set():
    with Place() as p:
        uri = p.write(FACT, "Fact", "--tag", "keep")
        assert p.ok("memory", "update", uri, GREY) == at_version(uri, 2)
        p.refused(1, "VersionConflict", "memory", "update", uri, FACT)
        assert p.ok("memory", "update", ulid(uri), FACT) == at_version(uri, 3)
        assert [p.json("memory", "get", at_version(uri, n))["data"] for n in (1, 2, 3)] == \
            [json.loads(x) for x in (FACT, GREY, FACT)]
        head = p.json("memory", "get", ulid(uri))
        assert head["tags"] == ["keep"] and head["current_version"] == 3
        p.ok("memory", "update", uri, "--tag", "new", "--importance", "3", "--if-head",
             head["head_hash"])
        p.refused(1, "HeadConflict", "memory", "update", uri, "--no-tags", "--if-head",
                  head["head_hash"])
        after = p.json("memory", "get", ulid(uri))
        assert (after["tags"], after["importance"], after["version"]) == (["new"], 3, 3)
        p.ok("memory", "update", uri, "--no-tags")
        assert p.json("memory", "get", ulid(uri))["tags"] == []
        p.expect(2, "memory", "update", uri, err="expected DATA")
        p.expect(2, "memory", "update", uri, FACT, "--tag", "x", err="use two commands")
        p.expect(2, "memory", "update", uri, "--no-tags", "--tag", "x")
        p.refused(2, "NotFound", "memory", "update", ABSENT, FACT)
        p.expect(2, "memory", "update", at_version(uri, 3), '{"topic":"x"}')


@test
def tombstones_hide_and_keep():
    with Place() as p:
        uri = p.write()
        p.ok("memory", "tombstone", uri, "--reason", "wrong", "--by", "eve")
        size = p.json("roots")["actors"][0]["journal_size"]
        p.ok("memory", "tombstone", ulid(uri))
        assert p.json("roots")["actors"][0]["journal_size"] == size
        got = p.json("memory", "get", uri)
        assert got["tombstone"]["reason"] == "wrong" and got["tombstone"]["by"] == "eve"
        assert p.json("memory", "list")["memories"] == []
        assert len(p.json("memory", "list", "--all")["memories"]) == 1
        assert p.json("memory", "find", "--type", "Fact")["count"] == 0
        assert p.json("memory", "find", "--type", "Fact", "--all")["count"] == 1
        p.expect(1, "memory", "update", uri, GREY, err="Tombstoned")
        p.refused(2, "NotFound", "memory", "tombstone", ABSENT)


@test
def edges():
    with Place() as p:
        a, b = p.write(), p.write(GREY)
        edge = f"matrix://cortex/edge/{ulid(a)}/references/{ulid(b)}"
        done = p.json("memory", "link", a, "references", ulid(b), "--weight", "0.5", "--data", "x")
        assert done == {"actor": "andrew", "uri": edge, "written": True}
        assert p.json("memory", "link", a, "references", b)["written"] is False
        assert "nothing written" in p.ok("memory", "link", a, "references", b)
        got = p.json("memory", "get", a, "--edges")
        assert got["edges_to"] == [] and len(got["edges_from"]) == 1
        assert sorted(got["edges_from"][0]) == ["created_at", "created_by", "data", "dst", "removed",
                                                "src", "type", "uri", "weight"]
        assert got["edges_from"][0]["weight"] == 0.5 and got["edges_from"][0]["uri"] == edge
        assert p.json("memory", "get", b, "--edges")["edges_to"] == got["edges_from"]
        assert [m["uri"] for m in p.json("memory", "find", "--from", a)["memories"]] == [b]
        assert p.json("memory", "find", "--from", a, "--follow", "caused_by")["count"] == 0
        steps = p.json("memory", "walk", a, "--depth", "2")
        assert [s["depth"] for s in steps["steps"]] == [0, 1] and steps["cut"] is False
        assert [s["uri"] for s in p.json("memory", "walk", b, "--backwards")["steps"]] == [b, a]
        assert p.json("memory", "unlink", a, "references", b, "--reason", "old")["written"] is True
        assert p.json("memory", "unlink", a, "references", b)["written"] is False
        assert p.json("memory", "get", a, "--edges")["edges_from"][0]["removed"]["reason"] == "old"
        p.refused(2, "SelfEdge", "memory", "link", a, "references", a)
        p.refused(2, "DanglingEdge", "memory", "link", a, "references", ABSENT)
        p.expect(2, "memory", "link", a, "likes", b, err="references")
        p.expect(2, "memory", "walk", a, "--depth", "9", err="at most 8")


@test
def find_is_bounded_and_exact():
    with Place() as p:
        uris = [p.write(json.dumps({"statement": f"s{i}", "subject": "x", "predicate": "p"}), "Fact",
                        "--tag", "even" if i % 2 == 0 else "odd", "--importance", str(i))
                for i in range(6)]
        found = p.json("memory", "find", "--tag", "even")
        assert sorted(found) == ["actor", "count", "memories"]
        assert [m["uri"] for m in found["memories"]] == [uris[4], uris[2], uris[0]]
        assert p.json("memory", "find", "--type", "Fact", "--limit", "2")["count"] == 2
        assert [m["data"]["statement"] for m in
                p.json("memory", "find", "--type", "Fact", "--where", "statement=s3")["memories"]] == ["s3"]
        assert p.json("memory", "find", "--type", "Fact", "--where", "statement~s")["count"] == 6
        assert p.json("memory", "find", "--type", "Goal")["count"] == 0
        assert "nothing found" in p.ok("memory", "find", "--type", "Goal")
        size = p.json("roots")["actors"][0]["journal_size"]
        p.ok("memory", "find", "--tag", "odd", "--late", "which are odd")
        entry = p.json("log", "-n", "1")
        assert entry["kind"] == "find_late" and entry["seq"] == size
        assert entry["payload"]["predicate"] == "which are odd" and entry["payload"]["result_count"] == 3
        for options in ([], ["--limit", "5"], ["--type", "Fact", "--limit", "0"],
                        ["--type", "Fact", "--limit", "1001"], ["--type", "Fact", "--where", "x"],
                        ["--type", "Fact", "--follow", "references"], ["--frame", "acquire"]):
            p.expect(2, "memory", "find", *options)
        listed = p.json("memory", "list", "--limit", "4")
        assert [m["uri"] for m in listed["memories"]] == uris[:4]
        rest = p.json("memory", "list", "--after", listed["next_after"])
        assert [m["uri"] for m in rest["memories"]] == uris[4:] and rest["next_after"] is None


@test
def expired_memories_are_left_out():
    with Place() as p:
        uri = p.write(FACT, "Fact", "--expires", "2020-01-01T00:00:00Z")
        assert p.json("memory", "get", uri)["expired"] is True
        assert p.json("memory", "find", "--type", "Fact")["count"] == 0
        assert p.json("memory", "find", "--type", "Fact", "--expired")["count"] == 1
        assert p.ok("memory", "context") == ""


@test
def context_attest_compact():
    with Place() as p:
        fact = p.write()
        goal = p.write('{"statement":"ship it","status":"active"}', "Goal")
        assert p.ok("memory", "context").splitlines() == ["[active] ship it", "is(sky)=sky is blue"]
        assert p.ok("memory", "context", "--budget", "5").splitlines() == ["[active] ship it"]
        done = p.json("memory", "attest", "intent", "success", fact, ABSENT)
        assert done["used"] == 1 and done["learned"] is True and done["seq"] == 2
        assert abs(sum(done["weights"].values()) - 1) < 1e-5
        p.refused(2, "InvalidOutcome", "memory", "attest", "intent", "perhaps", fact)
        p.refused(2, "EmptyIntent", "memory", "attest", "", "success", fact)
        p.expect(2, "memory", "attest", "intent", "success", err="expected URI")
        for _ in range(4):
            p.run("memory", "attest", "busy", "success", fact)
        done = p.json("memory", "compact", "intent", "step", fact, goal)
        assert done["kept"] == [goal] and [c["uri"] for c in done["compacted"]] == [fact]
        assert done["uri"] == "matrix://journal/logs/intent/step" and done["budget"] == 4000
        assert p.json("memory", "compact", "intent", "step2", fact, "--load-bearing",
                      fact)["kept"] == [fact]
        p.refused(2, "BudgetUnreachable", "memory", "compact", "intent", "s3", goal, "--budget", "1")


@test
def vectors():
    with Place() as p:
        uris = [p.write(json.dumps({"statement": f"s{i}", "subject": "x", "predicate": "p"}))
                for i in range(3)]
        for uri, vector in zip(uris, ([1, 0, 0], [0.9, 0.1, 0], [0, 0, 1])):
            p.ok("memory", "embed", uri, json.dumps(vector), "--model", "m")
        near = p.json("memory", "near", "[1,0,0]", "--limit", "2")["memories"]
        assert [m["uri"] for m in near] == uris[:2]
        assert near[0]["similarity"] == 1.0 and 0.9 < near[1]["similarity"] < 1
        assert near[0]["embedding"] == {"dim": 3, "model": "m", "stale": False, "vertex": 1}
        assert p.json("memory", "near", uris[2], "--limit", "1")["memories"][0]["uri"] == uris[2]
        p.refused(2, "NotFound", "memory", "near", p.write())
        p.ok("memory", "update", uris[0], GREY)
        p.refused(1, "StaleVersion", "memory", "embed", uris[0], "[1,0,0]", "--model", "m")
        for vector in ("[]", "{}", '["a"]', "[1e999]", "nonsense"):
            p.expect(2, "memory", "near", vector)
        p.expect(2, "memory", "embed", uris[1], "[1,0]", err="--model")


# --- journal ------------------------------------------------------------------------------------------


@test
def log_shows_entries():
    with Place() as p:
        uri = p.write()
        p.ok("memory", "update", uri, GREY)
        assert p.ok("append", "note.deploy", "hello") == "2"
        lines = p.ok("log").splitlines()
        assert [l.split("  ")[0] for l in lines] == ["0", "1", "2"]
        assert uri in lines[0] and at_version(uri, 2) in lines[1] and "5 bytes" in lines[2]
        entries = [json.loads(l) for l in p.ok("log", "--json").splitlines()]
        assert [e["kind"] for e in entries] == ["write", "update", "note.deploy"]
        assert sorted(entries[0]) == ["actor", "committed", "created_at", "created_at_ns",
                                      "created_by", "erased", "kind", "leaf_hash", "payload",
                                      "payload_size", "seq", "subject"]
        assert entries[0]["payload"]["id"] == ulid(uri) and entries[2]["payload"] == "hello"
        for words, kinds in ((["--kind", "write"], ["write"]), (["--kind", "note"], ["note.deploy"]),
                             (["--from", "1"], ["update", "note.deploy"]), (["--kind", "not"], []),
                             (["-n", "1"], ["note.deploy"]), (["--all", "--kind", "update"], ["update"])):
            assert [json.loads(l)["kind"] for l in p.ok("log", "--json", *words).splitlines()] == kinds
        p.expect(2, "log", "--from", "1", "--all", err="at most one")
        for bad in ("write", "Note", "note.", "x y"):
            p.expect(2, "append", bad, "x", err="KIND")
        binary = p.json("append", "raw", "-", input=b"\xff\x00")["seq"]
        assert json.loads(p.ok("log", "--json", "-n", "1"))["payload"] == {"hex": "ff00"}
        p.ok("export", "entry", binary, "-o", "entry.bin")
        leaf = hashlib.sha256(b"matrix.cortex.journal.v1" + (p.folder / "entry.bin").read_bytes())
        assert leaf.hexdigest() == json.loads(p.ok("log", "--json", "-n", "1"))["leaf_hash"]


@test
def log_follows():
    with Place() as p:
        p.write()
        follower = subprocess.Popen([BIN, "log", "--follow", "--json"], stdout=subprocess.PIPE,
                                    env=p.env, cwd=p.folder)
        try:
            assert json.loads(follower.stdout.readline())["seq"] == 0
            p.write(GREY)
            p.ok("append", "note.x", "y")
            assert json.loads(follower.stdout.readline())["seq"] == 1
            assert json.loads(follower.stdout.readline())["kind"] == "note.x"
        finally:
            follower.send_signal(signal.SIGINT)
            follower.wait(timeout=20)
            follower.stdout.close()


# --- applying -----------------------------------------------------------------------------------------


def scenario(scheme):
    """The steps of the vectors as a file for `cortex apply`, with the overall roots after each."""
    folder = ROOT / "tests/vectors/ledger"
    source = json.loads((folder / "matrix-1/scenario.json").read_text())["steps"]
    roots = {s["step"]: s["overall_root"]
             for s in json.loads((folder / scheme / "scenario.json").read_text())["steps"]}
    steps, expected = [], []
    for step in source:
        op, args = step["op"].split(" ")[0], step["args"] or {}
        made = {"now_ns": step["clock_ns_after"]}
        if op == "open":
            continue
        if op == "write":
            made.update(op="write", type=args["type"], data_cbor=args["data_cbor"],
                        id=ulid(args["uri"]), importance=args["importance"])
            if args["tags"]:
                made["tags"] = args["tags"]
            if args["type"] == "Event":
                made["frames"] = [{"verb": "acquire", "kind": "service", "ref": "gpu_inference"}]
        elif op == "update_head":
            made.update(op=op, uri=args["uri"], tags=args["tags"], importance=args["importance"],
                        visibility=args["visibility"])
        elif op == "tombstone":
            made.update(op=op, **args)
        else:
            break
        steps.append(made)
        expected.append(roots[step["step"]])
    return steps, expected


@test
def apply_gives_the_roots_of_the_vectors():
    for scheme in ("cortex-1", "matrix-1"):
        steps, expected = scenario(scheme)
        assert len(steps) >= 5
        with Place(scheme) as p:
            text = "\n".join(map(json.dumps, steps)) + "\n\n"
            done = p.ok("apply", "-", "--json", input=text.encode())
            answers = [json.loads(line) for line in done.splitlines()]
            assert [a["overall_root"] for a in answers] == expected, scheme
            assert sorted(answers[0]) == ["edges_root", "journal_root", "journal_size", "line",
                                          "memories_root", "op", "overall_root", "refused", "seq",
                                          "snapshot", "uri"]
            assert p.json("roots")["actors"][0]["overall_root"] == expected[-1]
            p.expect(0, "verify", p.home, out="holds")


@test
def apply_reports_the_refused_operation_and_its_line():
    with Place() as p:
        fine = {"op": "write", "type": "Fact", "data": json.loads(FACT), "id": ulid(ABSENT)}
        text = "\n".join(map(json.dumps, [fine, fine]))
        done = p.expect(1, "apply", "-", "--json", input=text.encode())
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [a["refused"] for a in answers] == [None, "AlreadyExists"]
        p.expect(1, "apply", "-", input=text.encode(), out="refused: AlreadyExists")
        for line, word in (("{", "line 2"), ('{"op":"dance"}', "line 2"), ("[]", "line 2"),
                           ('{"op":"write","type":"Fact","colour":1}', "line 2")):
            second = {**fine, "id": "0" * 25 + "7"}
            p.expect(2, "apply", "-", input=f"\n{line}\n{json.dumps(second)}\n".encode(), err=word)
        assert p.json("roots")["actors"][0]["journal_size"] == 1


# --- snapshots ----------------------------------------------------------------------------------------


MANIFEST_MEMBERS = sorted([
    "actor", "counts", "created_at", "created_at_ns", "edges_root", "journal_root", "journal_size",
    "memories_root", "overall_root", "reason", "scheme", "sealed", "signed_by", "snapshot"])


@test
def snapshots():
    with Place() as p:
        p.refused(2, "NoActor", "snapshot")
        p.write()
        before = p.json("roots")
        first = p.json("snapshot")
        assert sorted(first) == MANIFEST_MEMBERS and first["snapshot"] == 0
        assert first["reason"] == "explicit" and first["sealed"] is False
        assert first["overall_root"] == before["actors"][0]["overall_root"]
        assert p.json("roots") == before
        p.write(GREY)
        second = p.json("snapshot", "make", "--reason", "pre-compile")
        assert p.json("snapshot", "--reason", "x")["snapshot"] == 2
        assert p.json("snapshot", "list")["snapshots"][:2] == [first, second]
        assert p.json("snapshot", "show", "1") == second
        assert p.json("snapshot", "show", "--root", first["overall_root"]) == first
        assert p.json("snapshot", "drop", "0") == {"actor": "andrew", "dropped": 0}
        p.refused(2, "SnapshotNotFound", "snapshot", "show", "0")
        p.refused(2, "SnapshotNotFound", "snapshot", "drop", "0")
        p.refused(2, "SnapshotNotFound", "snapshot", "show", "--root", first["overall_root"])
        p.expect(2, "snapshot", "show", err="either SNAPSHOT or --root")
        p.expect(2, "snapshot", "show", "x", err="expected a number")
        p.expect(2, "snapshot", "lst", err="did you mean 'snapshot list'?")
        assert "snapshot seal" in p.ok("snapshot", "--help")
        p.expect(0, "verify", p.home)


@test
def seals():
    with Place() as p:
        p.write()
        p.ok("snapshot")
        p.ok("snapshot")
        key, vkey = p.key("sealer")
        done = p.json("snapshot", "seal", "0", "--sign", key)
        assert done["sealed"] is True and done["signed_by"] == "sealer"
        p.refused(1, "AlreadySealed", "snapshot", "seal", "0", "--sign", key)
        # A signature made elsewhere, over the bytes handed out.
        p.ok("snapshot", "seal", "1", "--to-sign", "-o", "bytes")
        bytes_ = (p.folder / "bytes").read_bytes()
        assert bytes_.startswith(b"cortex.manifest.v1")
        signature = sign_with(p, key, bytes_)
        wrong = ("00" if signature[:2] != "00" else "01") + signature[2:]
        p.refused(1, "BadSignature", "snapshot", "seal", "1", "--signature", wrong, "--key", vkey)
        p.ok("snapshot", "seal", "1", "--signature", signature, "--key", vkey)
        p.expect(0, "verify", p.home, "--seal-key", vkey, out="holds")
        other = p.key("other", "other.key")[1]
        p.expect(1, "verify", p.home, "--seal-key", other, out="SignatureInvalid")
        for words in ([], ["--to-sign", "--sign", key], ["--signature", signature], ["--sign", "nothing"]):
            p.expect(3 if "nothing" in words else 2, "snapshot", "seal", "1", *words)


# --- keys and signing ---------------------------------------------------------------------------------


def seed_of(key):
    return base64.b64decode(key.read_text().strip().split("+", 4)[4])[1:]


# RFC 8032 in a few lines, so that nothing of ours checks our own signatures.
P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
GY = 4 * pow(5, P - 2, P) % P


def recover_x(y, sign):
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if (x & 1) != sign else x


G = (recover_x(GY, 0), GY, 1, recover_x(GY, 0) * GY % P)


def point_add(a, b):
    s, t = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    u, v = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = t - s, v - u, v + u, t + s
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def point_mul(n, point):
    sum_ = (0, 1, 1, 0)
    while n:
        if n & 1:
            sum_ = point_add(sum_, point)
        point = point_add(point, point)
        n >>= 1
    return sum_


def compress(point):
    z = pow(point[2], P - 2, P)
    return ((point[1] * z % P) | ((point[0] * z % P & 1) << 255)).to_bytes(32, "little")


def ed25519_sign(seed, message):
    h = hashlib.sha512(seed).digest()
    a = (int.from_bytes(h[:32], "little") & ((1 << 254) - 8)) | (1 << 254)
    public = compress(point_mul(a, G))
    r = int.from_bytes(hashlib.sha512(h[32:] + message).digest(), "little") % Q
    big_r = compress(point_mul(r, G))
    k = int.from_bytes(hashlib.sha512(big_r + public + message).digest(), "little") % Q
    return big_r + ((r + k * a) % Q).to_bytes(32, "little"), public


def sign_with(p, key, message):
    return ed25519_sign(seed_of(key), message)[0].hex()


@test
def keys_are_created_outside_the_data_directory():
    with Place() as p:
        key, vkey = p.key("example.com/log")
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        name, key_id, public = vkey.split("+", 2)
        assert name == "example.com/log"
        raw = base64.b64decode(public)
        assert raw[0] == 1 and raw[1:] == ed25519_sign(seed_of(key), b"")[1]
        assert hashlib.sha256(name.encode() + b"\n" + raw).hexdigest()[:8] == key_id
        assert p.ok("key", "show", key) == vkey
        assert p.json("key", "show", key) == {"file": str(key), "name": name,
                                              "public_key": raw[1:].hex(), "verifier_key": vkey}
        p.expect(1, "key", "new", key, err="exists")
        assert p.ok("key", "show", key) == vkey
        before = p.bytes_of_home()
        (p.folder / "link").symlink_to(p.home / "keys")
        for inside in (p.home / "k", p.home / "keys" / "k", "home/k", "link/k", "link/../k"):
            p.refused(2, "InsideHome", "key", "new", inside)
            # Whatever home is configured: any home is one.
            p.expect(2, "key", "new", inside, env={"CORTEX_HOME": str(p.folder / "x")}, err="InsideHome")
        assert p.bytes_of_home() == before
        for name in ("a b", "a+b", ""):
            p.expect(2, "key", "new", p.folder / "k2", "--name", name, err="is not valid")
        p.expect(3, "key", "new", p.folder / "no/where/k", err="cannot write")
        assert p.ok("key", "new", p.folder / "k3").startswith("home/andrew+")
        (p.folder / "bad").write_text("PRIVATE+KEY+x+00000000+" + base64.b64encode(b"\1" * 33).decode())
        p.refused(2, "BadKey", "key", "show", "bad")


SIGNER = """#!{python}
import sys, time
sys.path.insert(0, {folder!r})
sys.argv[1:2] = [sys.argv[1]]
message = sys.stdin.buffer.read()
mode = sys.argv[1]
if mode == "slow": time.sleep(20)
if mode == "fail": sys.exit("no key\\nno luck")
if mode == "short": print("abc"); sys.exit()
from signing import ed25519_sign
signature, _ = ed25519_sign(bytes.fromhex({seed!r}), message if mode != "wrong" else b"x")
if mode == "hex": print(signature.hex())
else: sys.stdout.buffer.write(signature)
"""


@test
def other_programs_can_sign():
    with Place() as p:
        p.write()
        key, vkey = p.key("example.com/log")
        source = pathlib.Path(__file__).read_text()
        math = source[source.index("# RFC 8032"):source.index("def sign_with")]
        (p.folder / "signing.py").write_text("import hashlib\n" + math)
        signer = p.folder / "signer"
        signer.write_text(SIGNER.format(python=sys.executable, folder=str(p.folder),
                                        seed=seed_of(key).hex()))
        signer.chmod(0o700)
        by_file = p.ok("checkpoint", "--sign", key)
        for mode in ("raw", "hex"):
            assert p.ok("checkpoint", "--signer", f"{signer} {mode}", "--signer-key", vkey) == by_file
        ask = ["checkpoint", "--signer-key", vkey]
        p.refused(1, "BadSignature", *ask, "--signer", f"{signer} wrong")
        p.refused(3, "SignerFailed", *ask, "--signer", f"{signer} short")
        assert "no key" in p.refused(3, "SignerFailed", *ask, "--signer", f"{signer} fail")[0]
        start = time.monotonic()
        p.expect(3, *ask, "--signer", f"{signer} slow", "--signer-timeout", "1", err="did not answer")
        assert time.monotonic() - start < 10
        p.expect(3, *ask, "--signer", "/no/such/program")
        p.expect(2, "checkpoint", "--signer", f"{signer} raw", err="or neither")
        p.expect(2, "checkpoint", "--sign", key, "--signer", "x", "--signer-key", vkey, err="either")


@test
def checkpoints_are_signed_notes_that_never_contradict():
    with Place() as p:
        p.write()
        key, vkey = p.key("example.com/log")
        text = p.ok("checkpoint", "--origin", "example.com/log")
        roots = p.json("roots")["actors"][0]
        assert text.splitlines() == ["example.com/log", "1",
                                     base64.b64encode(bytes.fromhex(roots["journal_root"])).decode()]
        note = p.run("checkpoint", "--sign", key).stdout.decode()
        body, line = note.split("\n\n")
        assert body == text and line.startswith("\u2014 example.com/log ")
        blob = base64.b64decode(line.split(" ")[2])
        assert blob[4:] == ed25519_sign(seed_of(key), (text + "\n").encode())[0]
        assert blob[:4].hex() == vkey.split("+")[1]
        (p.folder / "old").write_text(note)
        p.verify_elsewhere(0, "--key", vkey, p.folder / "old")
        copy = p.folder / "copy"
        shutil.copytree(p.home, copy)
        p.write(GREY)
        p.write(GREY)
        done = p.json("checkpoint", "--sign", key, "--consistency-from", "old", "--proof", "cons",
                      "-o", "new")
        assert sorted(done) == ["actor", "checkpoint", "consistent_from", "cosigned", "origin", "root",
                                "signed", "size"]
        assert (done["consistent_from"], done["size"], done["signed"], done["cosigned"]) == (1, 3, True, 0)
        p.verify_elsewhere(0, "--key", vkey, "--from-checkpoint", p.folder / "old", "--checkpoint",
                           p.folder / "new", p.folder / "cons")
        p.expect(2, "checkpoint", "--proof", "x", err="needs --consistency-from")
        p.expect(2, "checkpoint", "--sign", key, "--origin", "other", err="the name of the signing key")
        # The past of the home is swapped for a shorter one; what was signed stays.
        kept = [f for f in (p.home / "keys").iterdir()]
        assert len(kept) == 1 and kept[0].read_text() == (p.folder / "new").read_text()
        shutil.rmtree(p.home / "log")
        shutil.copytree(copy / "log", p.home / "log")
        (p.home / "cortex.db").unlink()
        p.refused(1, "Truncated", "checkpoint", "--sign", key)
        p.refused(1, "Truncated", "checkpoint", "--consistency-from", "new")
        for _ in range(4):
            p.write()
        p.refused(1, "Forked", "checkpoint", "--sign", key)
        p.refused(1, "Forked", "checkpoint", "--consistency-from", "new")
        p.ok("checkpoint", "--consistency-from", "old")
        # Another actor under the same origin is a fork, too.
        p.write(FACT, "Fact", "--actor", "bob")
        p.expect(1, "checkpoint", "--sign", key, "--actor", "bob")
        kept[0].write_text("damaged")
        p.expect(3, "checkpoint", "--sign", key, err="nothing is signed")


@test
def exports():
    with Place() as p:
        uris = [p.write() for _ in range(5)]
        key, vkey = p.key("example.com/log")
        p.ok("export", "entry", "2", "-o", "entry")
        p.ok("export", "tlog-proof", "2", "--sign", key, "-o", "a.tlog-proof")
        p.ok("checkpoint", "--sign", key, "-o", "note")
        p.write()
        p.ok("export", "tlog-proof", "2", "--checkpoint", "note", "-o", "b.tlog-proof")
        p.ok("export", "receipt", "2", "--sign", key, "-o", "a.receipt")
        p.ok("export", "receipt", "--consistency-from", "5", "--sign", key, "-o", "c.receipt")
        f = p.folder
        for proof in ("a.tlog-proof", "b.tlog-proof", "a.receipt"):
            p.verify_elsewhere(0, "--key", vkey, "--entry", f / "entry", f / proof)
            p.expect(0, "verify", proof, "--key", vkey, "--entry", "entry", out="holds")
            p.ok("export", "entry", "3", "-o", "other")
            p.verify_elsewhere(1, "--key", vkey, "--entry", f / "other", f / proof)
        p.ok("checkpoint", "--sign", key, "-o", "newer")
        p.verify_elsewhere(0, "--key", vkey, "--from-checkpoint", f / "note", "--checkpoint",
                           f / "newer", f / "c.receipt")
        done = p.json("export", "tiles", "tiles", "--sign", key)
        assert done["tiles"] == 2 and done["size"] == 6 and done["signed"] is True
        files = sorted(str(x.relative_to(f / "tiles")) for x in (f / "tiles").rglob("*") if x.is_file())
        assert files == ["checkpoint", "tile/0/000.p/6", "tile/entries/000.p/6"]
        level0 = (f / "tiles/tile/0/000.p/6").read_bytes()
        leaf = hashlib.sha256(b"matrix.cortex.journal.v1" + (f / "entry").read_bytes()).digest()
        assert level0[64:96] == hashlib.sha256(b"\0" + leaf).digest()
        assert (f / "tiles/tile/entries/000.p/6").read_bytes()[68:102] == b"\0\x20" + leaf
        p.verify_elsewhere(0, "--key", vkey, f / "tiles/checkpoint")
        p.expect(2, "export", "entry", "99", "-o", "x", err="NoEntry")
        p.expect(2, "export", "tlog-proof", "99", "--checkpoint", "note", "-o", "x", err="OutOfRange")
        p.expect(2, "export", "tlog-proof", "1", "-o", "x", err="--checkpoint NOTE")
        p.expect(2, "export", "receipt", "--sign", key, "-o", "x", err="either SEQ")
        p.expect(2, "export", "entry", "1", "--json", err="needs --output")
    with Place("matrix-1") as p:
        p.write()
        key, _ = p.key()
        for words in (["checkpoint"], ["export", "tiles", "x"], ["export", "receipt", "0", "--sign", key],
                      ["export", "tlog-proof", "0", "--sign", key]):
            p.expect(2, *words, err="SchemeUnsupported")


# --- proofs -------------------------------------------------------------------------------------------


@test
def proofs_are_checked_without_the_data_directory():
    for scheme in ("cortex-1", "matrix-1"):
        with Place(scheme) as p:
            a, b = p.write(), p.write(GREY)
            edge = p.ok("memory", "link", a, "references", b)
            p.ok("snapshot")
            f = p.folder
            done = p.json("prove", a, b, "-o", "in")
            assert sorted(done) == ["actor", "bytes", "claims", "compact", "file", "overall_root",
                                    "sealed", "snapshot"]
            assert done["claims"] == [{"claim": "member", "uri": u} for u in (a, b)]
            p.ok("prove", "--absent", ABSENT, "-o", "out")
            p.ok("prove", edge, "-o", "edge")
            p.ok("prove", "--edges", a, "-o", "edges")
            p.ok("prove", ulid(a), "-o", "id")
            p.ok("prove", "--entry", "0", "-o", "entry")
            root = p.json("snapshot", "show", "0")["overall_root"]
            roots = p.json("roots")["actors"][0]
            for name, said in (("in", a), ("out", "absent"), ("edge", edge), ("edges", edge), ("id", a)):
                trusted = ["--overall-root", root, "--require", "anchored", f / name]
                assert said in p.verify_elsewhere(0, *trusted), name
                p.verify_elsewhere(3, "--require", "signed", f / name)
                p.verify_elsewhere(1, "--overall-root", "0" * 64, f / name)
                own = p.expect(0, "verify", name, "--overall-root", root, "--json")
                other = p.verify_elsewhere(0, "--overall-root", root, "--json", f / name)
                own, other = json.loads(own.stdout), json.loads(other)
                assert {**own, "file": ""} == {**other, "file": ""}, name
            p.verify_elsewhere(1, "--members", f / "out")
            p.verify_elsewhere(1, "--absent", f / "in")
            p.verify_elsewhere(0, "--root", roots["journal_root"], "--size", roots["journal_size"],
                               f / "entry")
            assert p.expect(0, "verify", "-", "--self-consistent", input=(f / "in").read_bytes(), out="holds")
            p.expect(3, "verify", f / "in", out="NotAnchored")
            assert p.run("prove", a, b).stdout == (f / "in").read_bytes()
            shutil.rmtree(p.home)
            p.verify_elsewhere(0, "--overall-root", root, f / "in")


@test
def a_compact_proof_proves_the_same_in_fewer_bytes():
    with Place() as p:
        uris = [p.write(FACT.replace("blue", str(n))) for n in range(24)]
        edges = [p.ok("memory", "link", uris[0], "references", other) for other in uris[1:9]]
        p.ok("snapshot")
        f = p.folder
        root = p.json("snapshot", "show", "0")["overall_root"]
        for asked, plain in ((uris, ["prove", *uris]), (uris[:1], ["prove", uris[0]]),
                             (edges, ["prove", "--edges", uris[0]]), ([ABSENT], ["prove", "--absent", ABSENT])):
            told = {}
            for name, more in (("whole", []), ("compact", ["--compact"])):
                done = p.json(*plain, *more, "-o", name)
                assert done["compact"] is bool(more)
                seen = json.loads(p.verify_elsewhere(0, "--overall-root", root, "--json", f / name))
                assert seen["verdict"] == "holds" and seen["anchors"] == ["overall_root"]
                assert [(k["uri"], k["result"]) for k in seen["keys"]] == \
                    [(c["uri"], c["claim"]) for c in done["claims"]]
                told[name] = sorted(json.dumps(k) for k in seen["keys"])
                assert sorted(k["uri"] for k in seen["keys"]) == sorted(asked)
            assert told["whole"] == told["compact"]
            sizes = {name: (f / name).stat().st_size for name in told}
            assert sizes["compact"] < sizes["whole"] or len(asked) == 1, sizes
            p.verify_elsewhere(1, "--overall-root", "0" * 64, f / "compact")
        # In whichever order they are asked it is one proof, byte for byte.
        p.ok("prove", "--compact", *uris, "-o", "one")
        p.ok("prove", "--compact", *reversed(uris), "-o", "two")
        assert (f / "one").read_bytes() == (f / "two").read_bytes()
        p.refused(1, "NotMember", "prove", "--compact", *uris, ABSENT, "-o", "x")
        p.refused(1, "QuestionMismatch", "prove", "--compact", *uris, at_version(p.write(), 9), "--fresh",
                  "-o", "x")
        p.refused(2, "InvalidArgument", "prove", "--compact", uris[0], uris[1], uris[0], "-o", "x", "--at", "0")
        p.expect(2, "prove", "--compact", "--entry", "0", "-o", "x", err="--compact")
        assert not (f / "x").exists()
    with Place("matrix-1") as p:
        uri = p.write()
        p.ok("snapshot")
        p.refused(2, "SchemeUnsupported", "prove", "--compact", uri, "-o", "x")


@test
def every_damaged_proof_is_noticed():
    with Place() as p:
        uri = p.write()
        p.ok("snapshot")
        key, vkey = p.key()
        p.ok("snapshot", "seal", "0", "--sign", key)
        p.ok("checkpoint", "--sign", key, "-o", "note")
        trust = ["--key", vkey, "--checkpoint", "note"]
        for form in ([], ["--compact"]):
            p.ok("prove", uri, "--at", "0", *form, "-o", "proof")
            p.expect(0, "verify", "proof", *trust, out="holds")
            whole = (p.folder / "proof").read_bytes()
            # The manifest's label of its signer is under no signature: the key tells who signed.
            label = range(whole.index(b"example.com/log"), whole.index(b"example.com/log") + 15)
            bad = p.folder / "bad"
            for at in range(0, len(whole), 7):
                if at in label:
                    continue
                bad.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
                done = p.run("verify", bad, *trust)
                assert done.returncode in (1, 3) and b": holds" not in done.stdout, (at, done)
            for cut in (1, 100, len(whole) - 1):
                bad.write_bytes(whole[:cut])
                assert p.run("verify", bad, *trust).returncode in (1, 3)


@test
def prove_reports_absent_members():
    with Place() as p:
        uri = p.write()
        p.refused(2, "SnapshotNotFound", "prove", uri, "-o", "x")
        p.ok("snapshot")
        p.refused(1, "NotMember", "prove", ABSENT, "-o", "x")
        p.refused(1, "NotAbsent", "prove", uri, "--absent", "-o", "x")
        p.refused(1, "QuestionMismatch", "prove", at_version(uri, 9), "-o", "x")
        p.expect(2, "prove", ulid(ABSENT), "--absent", "-o", "x", err="whole URI")
        p.expect(2, "prove", uri, uri, "-o", "x")
        p.refused(2, "BadURI", "prove", "x", "-o", "x")
        p.ok("memory", "update", uri, GREY)
        p.refused(1, "ManifestRootMismatch", "prove", uri, "-o", "x")
        p.ok("prove", uri, "--at", "0", "-o", "old")
        p.ok("prove", uri, "--fresh", "-o", "new")
        assert (p.folder / "old").read_bytes() != (p.folder / "new").read_bytes()
        p.refused(2, "SnapshotNotFound", "prove", uri, "--at", "7", "-o", "x")
        other = p.write()
        edge = p.ok("memory", "link", uri, "references", other)
        for words in ([], ["--entry", "0", uri], ["--entry", "0", "--absent"], [uri, "--size", "1"],
                      [uri, "--at", "0", "--fresh"], [uri, edge, "--at", "0"]):
            p.expect(2, "prove", *words, "-o", "x")
        p.refused(2, "OutOfRange", "prove", "--entry", "99", "-o", "x")
        p.expect(2, "prove", uri, "--at", "0", "--json", err="needs --output")
        assert not (p.folder / "x").exists()
        # A proof of before is the same bytes after, and after the tables were made anew.
        p.ok("prove", uri, "--at", "0", "-o", "again")
        (p.home / "cortex.db").unlink()
        p.ok("prove", uri, "--at", "0", "-o", "anew")
        assert len({(p.folder / n).read_bytes() for n in ("old", "again", "anew")}) == 1


@test
def a_proof_follows_its_seal_to_a_signed_checkpoint():
    with Place() as p:
        uri = p.write()
        p.ok("snapshot")
        key, vkey = p.key("example.com/log")
        p.ok("checkpoint", "--sign", key, "-o", "early")
        p.expect(1, "prove", uri, "--checkpoint", "early", "-o", "x", err="NotSealed")
        p.ok("snapshot", "seal", "0", "--sign", key)
        p.expect(1, "prove", uri, "--checkpoint", "early", "-o", "x", err="NotSealed")
        p.ok("checkpoint", "--sign", key, "-o", "late")
        p.write()
        p.ok("prove", uri, "--at", "0", "--checkpoint", "late", "-o", "proof")
        p.verify_elsewhere(0, "--key", vkey, "--require", "signed", p.folder / "proof")
        other = p.key("example.com/log", "other.key")[1]
        p.verify_elsewhere(1, "--key", other, "--require", "signed", p.folder / "proof")


# --- verifying homes ----------------------------------------------------------------------------------


def filled(p):
    uri = p.write(FACT, "Fact", "--tag", "t")
    other = p.write(GREY)
    p.ok("memory", "link", uri, "references", other)
    p.ok("memory", "update", uri, GREY)
    p.ok("append", "note.x", "payload to keep", "--committed")
    p.ok("snapshot")
    p.ok("memory", "tombstone", other)
    return uri, other


@test
def verify_holds_and_writes_nothing():
    with Place() as p:
        uri, other = filled(p)
        before = p.bytes_of_home()
        done = p.json("verify", "--home", p.home)
        assert sorted(done) == ["actors", "actors_left_out", "anchored", "detail", "findings", "home", "home_root",
                                "limits", "reason", "signed", "since", "tables_checked", "totals", "verdict"]
        assert done["verdict"] == "holds" and done["findings"] == [] and done["anchored"] is False
        assert done["totals"]["entries"] == 6 and done["totals"]["payloads"] == 1
        assert done["actors"] == p.json("roots")["actors"]
        assert any("truncated" in text for text in done["limits"])
        assert p.expect(0, "verify", p.home).stdout == p.run("verify", "--home", p.home).stdout
        p.expect(3, "verify", p.home, "--require", "anchored", out="NotAnchored")
        for words in (["roots"], ["memory", "get", uri, "--edges"], ["memory", "list"],
                      ["memory", "find", "--type", "Fact"], ["memory", "walk", uri],
                      ["memory", "context"], ["log"], ["snapshot", "list"], ["snapshot", "show", "0"],
                      ["checkpoint"], ["prove", uri, "--at", "0", "-o", "x"], ["tables", "status"],
                      ["tables", "rebuild", "--verify-only"], ["export", "entry", "0", "-o", "x"],
                      ["export", "tiles", "x.d"], ["backup", p.folder / "bk"]):
            p.ok(*words)
        assert p.bytes_of_home() == before
        # Also where nothing may be written at all.
        if os.geteuid() != 0:
            for path in [p.home, *p.home.rglob("*")]:
                path.chmod(0o500 if path.is_dir() else 0o400)
            p.expect(0, "verify", p.home)
            p.ok("memory", "get", uri)
            p.expect(3, "memory", "write", "Fact", FACT)
            for path in [p.home, *p.home.rglob("*")]:
                path.chmod(0o700 if path.is_dir() else 0o600)
        # Without tables as well: reading does not make them.
        (p.home / "cortex.db").unlink()
        assert p.json("verify", p.home)["verdict"] == "holds"
        assert p.json("memory", "get", uri)["uri"] == uri
        assert not (p.home / "cortex.db").exists()


def segments(p):
    return sorted(x for x in (p.home / "log").iterdir() if x.suffix == ".seg" or x.stat().st_size > 60000)


@test
def a_changed_log_never_holds():
    with Place() as p:
        filled(p)
        p.ok("checkpoint", "-o", "kept")
        size = p.json("tables", "status")["log_commits"]
        assert size > 5
        path = segments(p)[0]
        whole = path.read_bytes()
        end = len(whole.rstrip(b"\0"))
        assert end > 1000
        for at in [n for n in range(0, end, max(1, end // 40))]:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1:])
            done = p.run("verify", p.home, "--checkpoint", "kept")
            assert done.returncode in (1, 3), (at, done.stdout, done.stderr)
            assert b": holds" not in done.stdout, at
        for cut in (end - 10, end // 2, 10):
            path.write_bytes(whole[:cut] + bytes(len(whole) - cut))
            done = p.run("verify", p.home, "--checkpoint", "kept")
            assert done.returncode in (1, 3) and b": holds" not in done.stdout, (cut, done)
        path.unlink()
        assert p.run("verify", p.home, "--checkpoint", "kept").returncode in (1, 3)
        path.write_bytes(whole)
        p.expect(0, "verify", p.home, "--checkpoint", "kept", out=": holds")


@test
def verify_reports_changed_tables():
    with Place() as p:
        uri, _ = filled(p)
        import sqlite3
        db = sqlite3.connect(p.home / "cortex.db")
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        changed = 0
        for table in tables:
            columns = [r[1] for r in db.execute(f"PRAGMA table_info({table})")]
            if "value" in columns and "key" in columns:
                changed += db.execute(f"UPDATE {table} SET value = x'a0' WHERE substr(key,1,2) = x'6d2f'").rowcount
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        if changed == 0:
            skip("the tables have another shape")
        done = p.expect(1, "verify", p.home, "--json")
        assert any(f["check"] == "table" for f in json.loads(done.stdout)["findings"])
        p.refused(1, "RootMismatch", "tables", "rebuild")
        p.ok("tables", "rebuild", "--replace")
        p.expect(0, "verify", p.home)
        assert p.json("memory", "get", uri)["data"] == json.loads(FACT)


@test
def a_cut_journal_is_found_with_a_checkpoint():
    with Place() as p:
        p.write()
        shorter = p.folder / "shorter"
        shutil.copytree(p.home, shorter)
        p.write(GREY)
        p.write(GREY)
        key, vkey = p.key("example.com/log")
        p.ok("checkpoint", "--sign", key, "-o", "note")
        p.ok("checkpoint", "-o", "text")
        p.ok("snapshot")
        p.ok("snapshot", "show", "0", "-o", "manifest")
        root = p.json("roots")["actors"][0]
        anchors = (["--checkpoint", "note", "--key", vkey], ["--checkpoint", "text"],
                   ["--manifest", "manifest"],
                   ["--root", root["journal_root"], "--size", root["journal_size"]])
        p.expect(0, "verify", shorter, out="holds")
        for words in anchors:
            p.expect(0, "verify", p.home, *words, "--require", "anchored", out="holds")
            p.expect(1, "verify", shorter, *words, out="Truncated")
        for _ in range(3):
            p.write(FACT, "Fact", "--home", shorter)
        for words in anchors:
            p.expect(1, "verify", shorter, *words, out="Forked")
        p.expect(0, "verify", p.home, *anchors[0], "--require", "signed", out="holds")
        p.expect(3, "verify", p.home, *anchors[1], "--require", "signed", out="NotSigned")
        other = p.key("example.com/log", "other.key")[1]
        p.expect(1, "verify", p.home, "--checkpoint", "note", "--key", other)
        p.expect(2, "verify", p.home, "--key", vkey, err="--checkpoint NOTE")
        p.expect(2, "verify", p.home, "--absent", err="applies to a proof file")
        p.expect(2, "verify", err="expected FILE or --home DIR")
        p.expect(2, "verify", p.home, "--home", p.home, err="either")
        p.expect(2, "verify", p.home, "--size", "3", err="--root")
        p.expect(3, "verify", p.home, "--checkpoint", "nothing")


# --- looking after a home -----------------------------------------------------------------------------


@test
def tables_are_rebuilt_from_the_log():
    with Place() as p:
        uri, _ = filled(p)
        roots = p.json("roots")
        status = p.json("tables", "status")
        assert sorted(status) == ["entries", "index", "log_commits", "records", "table_commits"]
        assert status["log_commits"] == status["table_commits"] and status["entries"] == 6
        done = p.json("tables", "rebuild")
        assert sorted(done) == ["changed", "commits", "entries", "index", "records", "resumed"]
        assert done["changed"] is False and done["entries"] == 6
        (p.home / "cortex.db").unlink()
        assert p.json("tables", "rebuild")["changed"] is True
        assert status.pop("index") is None and done["index"]["traces"] == 0
        again = p.json("tables", "status")
        assert again.pop("index")["lag"] == 0
        assert p.json("roots") == roots and again == status
        p.expect(2, "tables", "rebuild", "--replace", "--verify-only")


@test
def a_backup_is_a_complete_data_directory():
    with Place() as p:
        uri, _ = filled(p)
        copy = p.folder / "copy"
        p.ok("backup", copy)
        assert p.json("roots", "--home", copy) == p.json("roots")
        p.expect(0, "verify", copy)
        p.expect(1, "backup", copy)
        p.write(FACT, "Fact", "--home", copy)
        assert p.json("roots", "--home", copy) != p.json("roots")


@test
def a_second_signer_is_refused_and_writers_go_on():
    with Place() as p:
        uri = p.write()
        key, vkey = p.key()
        # Its signer makes a file when it is asked, and then sleeps: it is signing from there on.
        asked = p.folder / "asked"
        signer = p.folder / "signer"
        signer.write_text(f"#!/bin/sh\ntouch {asked}\nexec sleep 20\n")
        signer.chmod(0o700)
        first = subprocess.Popen([BIN, "checkpoint", "--signer", str(signer), "--signer-key", vkey,
                                  "--signer-timeout", "60"], env=p.env, cwd=p.folder,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            while not asked.exists() and first.poll() is None:
                time.sleep(0.01)
            done = p.run("checkpoint", "--sign", key)
            assert done.returncode == 3 and b"Locked" in done.stderr, done
            assert b"signing" in done.stderr, done
            p.write()
            p.ok("checkpoint")
            assert p.json("memory", "get", uri)["uri"] == uri
            p.expect(0, "verify", p.home)
        finally:
            first.kill()
            first.wait()
        p.ok("checkpoint", "--sign", key)


@test
def erased_content_is_in_no_file():
    with Place() as p:
        secret = "zebra-crossing-at-midnight"
        other = "a-perfectly-public-remark"
        data = json.dumps({"statement": secret, "subject": "s", "predicate": "p"})
        uri = p.write(data, "Fact", "--tag", "tag-" + secret, "--blind")
        p.ok("memory", "update", uri, data)
        kept = p.write(json.dumps({"statement": other, "subject": "s", "predicate": "p"}))
        seq = p.ok("append", "note.private", "payload-" + secret, "--committed")
        p.ok("append", "note.public", "plain")
        p.ok("snapshot")
        key, vkey = p.key()
        p.ok("prove", uri, "-o", "before")
        p.ok("checkpoint", "--sign", key, "-o", "note")
        root = p.json("snapshot", "show", "0")["overall_root"]
        holds = lambda: [n for n, b in p.bytes_of_home().items() if secret.encode() in b]
        assert holds()
        p.expect(2, "erase", uri, err="--reason")
        p.expect(2, "erase", "999", "--reason", "r")
        p.refused(1, "NotCommitted", "erase", "0", "--reason", "r")
        assert p.json("erase", seq, "--reason", "asked") == {
            "actor": "andrew", "erased_entry": int(seq), "erased_memory": None}
        p.refused(1, "AlreadyRedacted", "erase", seq, "--reason", "r")
        p.ok("erase", uri, "--reason", "asked for")
        assert holds() == []
        assert any(other.encode() in b for b in p.bytes_of_home().values())
        p.refused(2, "NotFound", "erase", ABSENT, "--reason", "r")
        got = p.json("memory", "get", uri)
        assert got["erased"] is True and got["data"] is None and got["tags"] == []
        assert p.json("memory", "get", kept)["data"]["statement"] == other
        entry = json.loads(p.ok("log", "--json", "--from", seq, "--kind", "note.private"))
        assert entry["erased"] is True and entry["payload"] is None
        p.expect(0, "verify", p.home, "--checkpoint", "note", "--key", vkey, out="holds")
        p.verify_elsewhere(0, "--overall-root", root, p.folder / "before")
        p.ok("prove", uri, "--at", "0", "-o", "after")
        assert "erased" in p.verify_elsewhere(0, "--overall-root", root, p.folder / "after")
        (p.home / "cortex.db").unlink()
        p.ok("tables", "rebuild")
        assert holds() == []


# --- scopes -------------------------------------------------------------------------------------------


@test
def a_scope_grants_exactly_its_reads():
    with Place() as p:
        public = p.write(FACT, "Fact", "--tag", "public")
        private = p.write(GREY)
        key, vkey = p.key("andrew")
        p.refused(2, "SnapshotNotFound", "scope", "make", "--to", "bob", "--tag", "x", "--sign", key,
                  "-o", "x")
        p.ok("snapshot", "--reason", "for-scope")
        p.ok("memory", "update", public, GREY)
        make = ["scope", "make", "--sign", key]
        p.ok(*make, "--to", "bob", "--tag", "public", "--expires", "2999-01-01T00:00:00Z", "-o", "s")
        trust = ["--key", f"andrew={vkey}"]
        done = p.json("scope", "check", "s", *trust, "--presenter", "bob")
        assert sorted(done) == ["actor", "budget", "detail", "expires_at", "granted_by", "granted_to",
                                "ids", "overall_root", "reason", "verdict", "writable"]
        assert done["verdict"] == "holds" and done["granted_to"] == "bob"
        assert p.json("scope", "check", "s", *trust, "--presenter", "eve", code=1)["reason"] == "NotGrantee"
        assert p.json("scope", "check", "s", code=3)["reason"] == "NoKeyResolver"
        other = p.key("other", "other.key")[1]
        assert p.json("scope", "check", "s", "--key", f"andrew={other}", code=1)["reason"] == \
            "SignatureInvalid"
        whole = (p.folder / "s").read_bytes()
        (p.folder / "bad").write_bytes(whole[:-1])
        assert p.json("scope", "check", "bad", *trust, code=1)["verdict"] == "broken"
        # As it was in the snapshot, whatever came later.
        under = ["--scope", "s", *trust]
        assert p.json("memory", "get", public, *under)["data"] == json.loads(FACT)
        assert [m["id"] for m in p.json("memory", "find", "--type", "Fact", *under)["memories"]] == \
            [ulid(public)]
        assert p.ok("memory", "context", *under).splitlines() == ["is(sky)=sky is blue"]
        p.refused(1, "ScopeViolation", "memory", "get", private, *under)
        entry = json.loads(p.ok("log", "--json", "-n", "1"))
        assert entry["kind"] == "scope_violation" and entry["payload"]["granted_to"] == "bob"
        p.refused(1, "SignatureInvalid", "memory", "get", public, "--scope", "s", "--key",
                  f"andrew={other}")
        p.ok(*make, "--to", "bob", "--id", public, "-o", "by-id")
        assert p.json("scope", "check", "by-id", *trust)["ids"] == 1
        p.ok(*make, "--to", "bob", "--type", "Fact", "--not-tag", "public", "-o", "not")
        assert [m["id"] for m in p.json("memory", "find", "--type", "Fact", "--scope", "not",
                                        *trust)["memories"]] == [ulid(private)]
        p.ok(*make, "--to", "bob", "--tag", "x", "--expires", "2020-01-01T00:00:00Z", "-o", "late")
        assert p.json("scope", "check", "late", *trust, code=1)["reason"] == "ScopeExpired"
        p.refused(2, "EmptyInclude", *make, "--to", "bob", "-o", "x")
        p.expect(2, *make, "--tag", "x", "-o", "x", err="--to")
        p.expect(2, *make, "--to", "bob", "--id", ABSENT, "-o", "x", err="NotFound")
        p.expect(2, "scope", "check", "s", "--key", "nonsense", err="AGENT=KEY")


@test
def the_recipient_of_a_scope_can_check_it():
    """By cortex-verify, in a folder that has nothing but the scope and what is given for it."""
    with Place() as p:
        fact = p.write(FACT, "Fact", "--tag", "public")
        key, vkey = p.key("andrew")
        other = p.key("other", "other.key")[1]
        p.ok("snapshot", "--reason", "for-scope")
        make = ["scope", "make", "--sign", key, "--to", "bob"]
        far = ["--expires", "2999-01-01T00:00:00Z"]
        p.ok(*make, "--tag", "public", *far, "-o", "s")
        p.ok(*make, "--id", fact, "-o", "by-id")
        p.ok(*make, "--tag", "x", "--expires", "2020-01-01T00:00:00Z", "-o", "late")
        p.write(GREY)
        p.ok("snapshot", "--reason", "later")
        p.ok("snapshot", "show", "0", "-o", "manifest")
        p.ok("snapshot", "show", "1", "-o", "later")
        s, by_id, late, manifest, later = (p.folder / name for name in
                                           ("s", "by-id", "late", "manifest", "later"))

        def found(code, *args):
            return json.loads(p.verify_elsewhere(code, "--json", *args))

        for scope in (s, by_id):
            it = found(0, "--key", vkey, scope)
            assert (it["kind"], it["verdict"], it["anchors"]) == ("scope", "holds", ["scope_signature"]), it
            assert it["signed"] and it["scope"]["granted_to"] == "bob", it
            assert any("--manifest" in limit for limit in it["limits"]) == (scope == by_id), it
            root = it["scope"]["overall_root"]
            it = found(0, "--key", vkey, "--manifest", manifest, scope)
            assert not any("--manifest" in limit for limit in it["limits"]), it
            it = found(0, "--overall-root", root, scope)
            assert it["anchors"] == ["overall_root"] and not it["signed"], it
            assert any("author is not proven" in limit for limit in it["limits"]), it
            for reason, code, args in [
                    ("NotAnchored", 3, ()), ("NotSigned", 3, ("--require", "signed")),
                    ("SignatureInvalid", 1, ("--key", base64.b64decode(other.split("+", 2)[2])[1:].hex())),
                    ("NotSigned", 3, ("--key", other)), ("AnchorMismatch", 1, ("--overall-root", "ab" * 32)),
                    ("ManifestRootMismatch", 1, ("--key", vkey, "--manifest", later))]:
                it = found(code, *args, scope)
                assert it["reason"] == reason, (reason, it)
            said = p.verify_elsewhere(0, "--key", vkey, scope)
            assert "holds, resting on a key given, which signed the scope" in said, said
            assert "holds in itself only" in p.verify_elsewhere(0, "--self-consistent", scope)
        assert found(1, "--key", vkey, late)["reason"] == "ScopeExpired"
        whole = s.read_bytes()
        for at in range(len(whole)):
            changed = bytearray(whole)
            changed[at] ^= 1 << at % 8
            (p.folder / f"flipped-{at}").write_bytes(changed)
        done = subprocess.run([VERIFY, "--json", "--key", vkey,
                               *[p.folder / f"flipped-{at}" for at in range(len(whole))]],
                              capture_output=True, timeout=60)
        lines = done.stdout.splitlines()
        assert len(lines) == len(whole), len(lines)
        for line in lines:
            assert json.loads(line)["verdict"] != "holds", line


def strings_of(path, text):
    return sum(part.read_bytes().count(text.encode()) for part in pathlib.Path(path).glob("cortex.db*"))


@test
def memories_are_found_by_their_words():
    def fact(text):
        return json.dumps({"statement": text, "subject": "s", "predicate": "p"})

    with Place() as p:
        uris = [p.write(fact(text), "Fact", *more) for text, *more in (
            ("The refund limit is 500", "--tag", "money"), ("A limit of memory",), ("Refunds are slow",),
            ("\u00c4rger mit \u00dcbersicht",), ("zebraword once",))]

        def found(*args):
            return [m["uri"] for m in p.json("memory", "find", "--text", *args)["memories"]]

        assert sorted(found("LIMIT")) == sorted(uris[:2])
        assert found("limit refund") == [uris[0]] and found("limit nothing") == []
        assert sorted(found("refund*")) == sorted([uris[0], uris[2]])
        assert found("refun") == [] and found("\u00e4RGER") == [uris[3]]
        assert found("limit", "--tag", "money") == [uris[0]] and found("limit", "--type", "Goal") == []
        assert found("limit", "--limit", "1", "--type", "Fact")[0] in uris[:2]
        # Words of the version that is current.
        later = p.ok("memory", "update", uris[1], fact("A bound of memory"))
        assert found("limit") == [uris[0]] and found("bound") == [later]
        # The index is made again, the same.
        p.ok("tables", "rebuild")
        assert found("limit") == [uris[0]] and found("bound") == [later]
        # The end of a memory hides it; erased content leaves the index.
        p.ok("memory", "tombstone", uris[2])
        assert found("refunds") == [] and found("refunds", "--all")[0].split("#")[0] == uris[2].split("#")[0]
        p.ok("tables", "rebuild")
        assert strings_of(p.home, "zebraword") > 0
        p.ok("erase", uris[4], "--reason", "asked for")
        assert found("zebraword", "--all") == []
        assert strings_of(p.home, "zebraword") == 0
        p.ok("tables", "rebuild")
        assert found("zebraword", "--all") == [] and strings_of(p.home, "zebraword") == 0
        p.ok("verify", "--home", p.home)
        p.expect(2, "memory", "find", "--text", "", err="--text")
        p.refused(2, "InvalidArgument", "memory", "find", "--text", "?!")
        p.refused(2, "InvalidArgument", "memory", "find", "--text", "w " * 33)


@test
def rate_limits_count_in_the_ledger():
    """Each command is a process of its own; the clock is that of the steps."""
    with Place() as p:
        uri = p.write(FACT)
        now = 4_000_000_000_000_000_000

        def attest(at, intent="i"):
            step = {"op": "attest", "now_ns": at, "intent": intent, "outcome": "success", "cited": [uri]}
            (p.folder / "steps").write_text(json.dumps(step) + "\n")
            done = p.run("apply", "steps", "--json")
            return b"RateLimited" not in done.stdout + done.stderr

        assert [attest(now) for _ in range(6)] == [True] * 5 + [False]
        assert attest(now, "other"), "each intent has its own"
        p.ok("tables", "rebuild")
        assert not attest(now) and attest(now + 1_000_000_000) and not attest(now + 1_000_000_000)
        assert [attest(now + 9_000_000_000) for _ in range(6)] == [True] * 5 + [False]
        p.ok("verify", "--home", p.home)


@test
def a_seed_names_what_a_compilation_depends_on():
    intent, mtx, model = "01HF7YAT000000000000000003", "ab" * 32, "m-7"
    with Place() as p:
        p.write(FACT)
        ask = ["seed", "--intent", intent, "--mtx", mtx, "--model", model]
        made = p.json(*ask)
        root = p.json("roots", "--actor", "andrew")["actors"][0]["overall_root"]
        parts = [intent.encode(), b"andrew", bytes.fromhex(root), bytes.fromhex(mtx),
                 hashlib.sha256(model.encode()).digest()]
        wanted = hashlib.sha256(b"".join(parts)).hexdigest()
        assert made == {"actor": "andrew", "overall_root": root, "scheme": "cortex-1", "seed": wanted,
                        "snapshot": None}, made
        assert p.ok(*ask) == wanted
        p.ok("snapshot", "make", "--reason", "pre-compile")
        assert p.json(*ask) == {**made, "snapshot": 0}, "the snapshot has that root"
        p.write(GREY)
        later = p.json(*ask)
        assert later["seed"] != wanted and later["snapshot"] is None, later
        assert p.json(*ask, "--at", "0") == {**made, "snapshot": 0}
        for other in (["--model", "m-8"], ["--mtx", "cd" * 32], ["--intent", intent[:-1] + "4"]):
            changed = list(ask)
            changed[changed.index(other[0]) + 1] = other[1]
            assert p.ok(*changed, "--at", "0") != wanted, other
        for missing in ("--intent", "--mtx", "--model"):
            at = ask.index(missing)
            p.expect(2, *ask[:at], *ask[at + 2:], err=missing)
        p.refused(2, "InvalidArgument", "seed", "--intent", "i", "--mtx", mtx, "--model", model)
        p.refused(2, "InvalidArgument", "seed", "--intent", intent, "--mtx", "ab", "--model", model)
        p.refused(2, "SnapshotNotFound", *ask, "--at", "7")
        p.refused(2, "NoActor", *ask, "--actor", "nobody")


# --- all commands -------------------------------------------------------------------------------------


@test
def control_characters_do_not_reach_the_terminal():
    with Place() as p:
        evil = "\x1b[31mred\u202e"
        uri = p.write(json.dumps({"statement": evil, "subject": "s", "predicate": "p"}), "Fact",
                      "--tag", evil)
        p.ok("snapshot", "--reason", "\x1b]0;x\x07")
        for words in (["memory", "get", uri], ["memory", "list"], ["memory", "context"], ["log"],
                      ["memory", "find", "--type", "Fact"], ["snapshot", "list"],
                      ["memory", "walk", uri]):
            shown = p.run(*words).stdout
            assert b"\x1b" not in shown and b"\x07" not in shown and "\u202e".encode() not in shown, words
        assert p.json("memory", "get", uri)["data"]["statement"] == evil


@test
def a_full_disk_on_standard_output_is_3():
    with Place() as p:
        uri = p.write()
        p.ok("snapshot")
        with open("/dev/full", "wb") as full:
            for words in (["roots"], ["memory", "get", uri], ["memory", "list"], ["log"],
                          ["snapshot", "list"], ["checkpoint"], ["verify", str(p.home)],
                          ["prove", uri], ["memory", "write", "Fact", FACT]):
                done = subprocess.run([BIN, *words], stdout=full, stderr=subprocess.PIPE, env=p.env,
                                      timeout=60)
                assert done.returncode == 3, (words, done)


main()
