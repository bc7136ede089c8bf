#!/usr/bin/env python3
"""The home root: one checkpoint for a whole data directory.

    test_home_root.py [PROGRAM] [WORD..]

Closes with `N passed, N failed, N skipped`.
"""
import json
import shutil

import kit
from kit import main, sibling, test

VERIFY = sibling("cortex-verify")

FACT = '{"statement":"sky is blue","subject":"sky","predicate":"is"}'


class Place(kit.Place):
    def write(self, actor, text="sky"):
        return self.ok("memory", "write", "Fact", FACT.replace("sky", text), "--actor", actor)

    def key(self, name="example.com/home"):
        path = self.folder / f"{name.replace('/', '-')}.key"
        return path, self.ok("key", "new", path, "--name", name)

    def verifier(self, *args):
        return self.run(*args, program=VERIFY)

    def offline(self, code, *args):
        done = self.verifier("--json", *args)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def findings(self, *args, code=1):
        done = self.json("verify", "--home", *args, code=code)
        return [(f["reason"], f["actor"]) for f in done["findings"]]


@test
def one_checkpoint_stands_for_all_actors():
    with Place() as p:
        p.expect(2, "checkpoint", "--all", err="nothing is recorded yet")
        p.write("ann")
        p.write("bob")
        key, vkey = p.key()
        made = p.json("checkpoint", "--all", "--sign", key, "-o", "first")
        assert made["actor"] == "home:root" and made["size"] == 1 and made["signed"], made
        assert made["home_root"]["actors"] == 2 and made["home_root"]["entries"] == 2, made
        again = p.json("checkpoint", "--all", "--sign", key)
        assert again["size"] == 1 and again["root"] == made["root"], "nothing has changed"
        p.write("bob", "sea")
        later = p.json("checkpoint", "--all", "--sign", key, "--consistency-from", "first", "--proof",
                       "growth", "-o", "second")
        assert later["size"] == 2 and later["consistent_from"] == 1, later
        p.ok("verify", "growth", "--key", vkey, "--from-checkpoint", "first", "--checkpoint", "second")
        for note in ("first", "second"):
            done = p.json("verify", "--home", p.home, "--checkpoint", note, "--all", "--key", vkey,
                          "--require", "signed")
            assert done["verdict"] == "holds" and done["anchored"] and done["signed"], done
            assert done["home_root"]["covered"] == done["home_root"]["recorded"] == 3, done
            assert done["totals"]["actors"] == 3, "all of them are verified"


@test
def the_default_origin_says_what_a_checkpoint_is_of():
    with Place() as p:
        p.write("ann")
        note = p.ok("checkpoint", "--all", "-o", "note")
        assert (p.folder / "note").read_text().splitlines()[0].endswith("/home:root")
        p.ok("verify", "--home", p.home, "--checkpoint", "note")
        p.expect(2, "verify", "--home", p.home, "--all", err="--checkpoint NOTE")
        p.expect(2, "checkpoint", "--all", "--actor", "ann", err="either --all or --actor")
        assert note == ""


@test
def roots_and_verify_show_what_is_covered():
    with Place() as p:
        p.write("ann")
        shown = p.json("roots")["home_root"]
        assert shown["actors"] == 1 and shown["recorded"] is None, shown
        assert "not recorded yet" in p.ok("roots")
        done = p.json("verify", "--home", p.home)
        assert done["home_root"] is None
        assert any("checkpoint --all" in limit for limit in done["limits"]), done["limits"]
        p.ok("checkpoint", "--all")
        p.write("cleo")
        shown = p.json("roots")["home_root"]
        assert shown["actors"] == 2 and shown["recorded"]["actors"] == 1, shown
        assert shown["root"] != shown["recorded"]["root"]
        done = p.json("verify", "--home", p.home)
        assert (done["home_root"]["covered"], done["home_root"]["recorded"]) == (1, 2), done
        assert any("newest entries" in limit for limit in done["limits"]), done["limits"]
        assert "covers 1 actors and 1 of 2 entries" in p.ok("verify", "--home", p.home)
        assert p.json("roots", "--actor", "ann")["home_root"] is None


@test
def a_data_directory_of_before_is_truncated():
    with Place() as p:
        p.write("ann")
        p.ok("checkpoint", "--all", "-o", "early")
        shutil.copytree(p.home, p.folder / "before")
        p.write("bob")
        p.ok("checkpoint", "--all", "-o", "late")
        p.ok("verify", "--home", p.folder / "before", "--checkpoint", "early")
        found = p.findings(p.folder / "before", "--checkpoint", "late")
        assert found == [("Truncated", "home:root")], found
        # Another history from there on.
        p.ok("memory", "write", "Fact", FACT, "--actor", "eve", "--home", p.folder / "before")
        p.ok("checkpoint", "--all", "--home", p.folder / "before")
        found = p.findings(p.folder / "before", "--checkpoint", "late")
        assert found == [("Forked", "home:root")], found


@test
def no_one_writes_under_the_reserved_name():
    with Place() as p:
        p.write("ann")
        p.ok("checkpoint", "--all")
        p.expect(2, "memory", "write", "Fact", FACT, "--actor", "home:root", err="reserved")
        p.expect(2, "snapshot", "--actor", "home:root", err="reserved")
        assert "home.root" in p.ok("log", "--actor", "home:root")


@test
def an_outsider_checks_that_an_actor_is_in_it():
    with Place() as p:
        p.write("ann")
        p.expect(2, "prove", "--in-home", "--actor", "ann", "-o", "x", err="NoHomeRoot")
        for actor in ("bob", "cleo", "dora", "eve"):
            p.write(actor)
        key, vkey = p.key()
        p.ok("checkpoint", "--all", "--sign", key, "-o", "note")
        overall = p.json("roots", "--actor", "cleo")["actors"][0]["overall_root"]
        made = p.json("prove", "--in-home", "--actor", "cleo", "--checkpoint", "note", "-o", "cleo")
        assert made["overall_root"] == overall and made["position"] == 2 and made["checkpoint"], made
        done = p.offline(0, "--key", vkey, "cleo")
        assert done["kind"] == "home" and done["signed"] and done["anchors"] == ["checkpoint"], done
        assert done["home"]["actor"] == "cleo" and done["home"]["actors"] == 5, done
        assert done["home"]["overall_root"] == overall, done
        assert p.offline(0, "--key", vkey, "--overall-root", overall, "cleo")["verdict"] == "holds"
        assert p.offline(1, "--key", vkey, "--overall-root", "0" * 64, "cleo")["reason"] == "AnchorMismatch"
        assert p.offline(3, "cleo")["reason"] == "NotAnchored"
        other = p.key("example.com/other")[1]
        assert p.offline(3, "--key", other, "cleo")["reason"] == "NotSigned"
        # Without its checkpoint it rests on the one that the reader has.
        p.ok("prove", "--in-home", "--actor", "bob", "-o", "bob")
        assert p.offline(3, "--key", vkey, "bob")["reason"] == "NotSigned"
        assert p.offline(0, "--key", vkey, "--checkpoint", "note", "bob")["home"]["actor"] == "bob"
        p.ok("verify", "bob", "--key", vkey, "--checkpoint", "note")
        whole = (p.folder / "cleo").read_bytes()
        for at in range(0, len(whole), 7):
            (p.folder / "bad").write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
            code = p.verifier("--key", vkey, "bad").returncode
            assert code in (1, 3), (at, code)


@test
def proofs_of_an_actor_and_their_mistakes():
    with Place() as p:
        p.write("ann")
        p.ok("checkpoint", "--all", "-o", "early")
        p.write("bob")
        p.expect(2, "prove", "--in-home", "--actor", "bob", "-o", "x", err="is not in the home root")
        p.ok("checkpoint", "--all")
        p.expect(1, "prove", "--in-home", "--actor", "bob", "--checkpoint", "early", "-o", "x",
                 err="NotCovered")
        p.write("bob", "sea")
        p.ok("checkpoint", "--actor", "bob", "-o", "other")
        p.expect(1, "prove", "--in-home", "--actor", "bob", "--checkpoint", "other", "-o", "x",
                 err="Forked")
        p.expect(2, "prove", "--in-home", "--fresh", "-o", "x", err="--fresh does not apply")
        p.expect(2, "prove", "--in-home", "matrix://x", "-o", "x", err="expected no URI")


main()
