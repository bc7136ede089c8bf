#!/usr/bin/env python3
"""`cortex verify --home` of data directories: what it shows while it works, and what its answer has.

    test_verify_home.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import os
import re
import shutil
import sqlite3

from kit import Place, check, main, test

FACT = '{"statement":"%s","subject":"b","predicate":"c"}'


@test
def progress_is_shown_when_it_is_asked_for():
    with Place() as p:
        p.ok("memory", "write", "Fact", '{"statement":"a","subject":"b","predicate":"c"}')
        for words in (["verify", "--home", p.home], ["tables", "rebuild"]):
            quiet = p.expect(0, *words)
            check(quiet.stderr == b"", quiet.stderr)
            shown = p.expect(0, *words, "--progress").stderr.decode()
            check(re.search(r"^(log|tables) 100 %, \d+ entries/s, \d+\.\d MB/s$", shown, re.M), shown)
            check("\r" not in shown and "\033" not in shown, shown)


@test
def an_answer_has_the_totals():
    with Place() as p:
        p.ok("append", "note.x", "text")
        p.ok("append", "note.x", "text", "--actor", "other")
        done = p.json("verify", "--home", p.home)
        totals = done["totals"]
        check(totals["actors"] == 2 and totals["entries"] == 2 and totals["findings"] == 0, totals)
        check(0 < totals["log_bytes"] <= (p.home / "log/000000.seg").stat().st_size, totals)
        check(done["actors_left_out"] == 0 and len(done["actors"]) == 2, done)


class Kept(Place):
    """A data directory with two memories, and a verification that is kept."""

    def __enter__(self):
        super().__enter__()
        (self.folder / "mine").mkdir(0o700)
        self.state = self.folder / "mine/state"
        self.write("one")
        self.write("two")
        return self

    def write(self, text):
        return self.ok("memory", "write", "Fact", FACT % text).split()[-1]

    def verify(self, code=0):
        return self.json("verify", "--home", self.home, "--state", self.state, code=code)

    def flip(self, path, at):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    def place_of(self, text):
        """Where these bytes are in the log."""
        at = (self.home / "log/000000.seg").read_bytes().find(text.encode())
        check(at > 0, text)
        return at


def reasons(answer):
    return {(f["check"], f["reason"]) for f in answer["findings"]}


@test
def a_kept_verification_reads_what_came_after_and_says_so():
    with Kept() as p:
        first = p.verify()
        check(first["verdict"] == "holds" and first["since"] is None, first)
        check(oct(p.state.stat().st_mode & 0o777) == "0o600", oct(p.state.stat().st_mode))
        p.write("three")
        then = p.verify()
        check(then["verdict"] == "holds_since", then)
        check(then["since"]["entries_before"] == first["totals"]["entries"], then)
        check(then["since"]["commit"] == first["totals"]["commits"], then)
        check(then["totals"]["entries"] == 1 and then["totals"]["memories"] == 1, then)
        check(then["tables_checked"] and any("--state" in limit for limit in then["limits"]), then)
        text = p.ok("verify", "--home", p.home, "--state", p.state)
        check(": holds since commit " in text and f"before it as of {p.state} (" in text, text)
        check(p.json("verify", "--home", p.home)["verdict"] == "holds")


@test
def a_kept_verification_finds_what_is_wrong_after_its_point():
    with Kept() as p:
        p.verify()
        p.write("three")
        path, at = p.home / "log/000000.seg", p.place_of("three")
        p.write("four")
        p.flip(path, at)
        found = p.verify(code=1)
        check(found["verdict"] == "broken" and ("log", "LogDamaged") in reasons(found), found)
        check(p.verify(code=1)["verdict"] == "broken", "a finding must not go into the state")
        p.flip(path, at)
        check(p.verify()["verdict"] == "holds_since")


@test
def what_is_before_the_point_is_never_called_verified():
    with Kept() as p:
        p.verify()
        p.write("three")
        p.flip(p.home / "log/000000.seg", p.place_of("one"))
        check(p.json("verify", "--home", p.home, code=1)["verdict"] == "broken")
        check(p.verify()["verdict"] == "holds_since")


@test
def rows_that_changed_since_are_compared():
    with Kept() as p:
        p.verify()
        p.write("three")
        with sqlite3.connect(p.home / "cortex.db") as tables:
            changed = tables.execute("UPDATE record SET value=substr(value,1,length(value)-1)||x'00' "
                                     "WHERE key>=x'6d762f' AND key<x'6d7630'").rowcount
        tables.close()
        check(changed == 3, changed)
        found = p.verify(code=1)
        check(reasons(found) == {("table", "TableMismatch")} and len(found["findings"]) == 1, found)


@test
def a_log_that_was_cut_or_rewritten_is_not_continued():
    with Kept() as p:
        shutil.copytree(p.home, p.folder / "old")
        p.write("three")
        p.verify()
        shutil.rmtree(p.home)
        shutil.copytree(p.folder / "old", p.home)
        check(("state", "Truncated") in reasons(p.verify(code=1)))
        p.write("another")
        check(("state", "Forked") in reasons(p.verify(code=1)))
        p.write("and more")
        check(("state", "Forked") in reasons(p.verify(code=1)))
        check(p.json("verify", "--home", p.home)["verdict"] == "holds", "it is a log of its own")


@test
def a_false_state_is_refused_or_named():
    with Kept() as p:
        p.verify()
        p.write("three")
        for name in ("digest", "home"):
            shutil.copy(p.state, p.folder / "mine/saved")
            with sqlite3.connect(p.state) as state:
                state.execute("UPDATE kept SET value=zeroblob(length(value)) WHERE name=?", (name,))
            state.close()
            if name == "home":
                p.expect(3, "verify", "--home", p.home, "--state", p.state, err="another data directory")
            else:
                check(("state", "Forked") in reasons(p.verify(code=1)))
            shutil.copy(p.folder / "mine/saved", p.state)
        with sqlite3.connect(p.state) as state:
            state.execute("UPDATE kept SET value=value+1 WHERE name='commit'")
        state.close()
        p.expect(3, "verify", "--home", p.home, "--state", p.state, err="damaged")


@test
def a_state_is_a_file_of_its_own_that_others_cannot_write():
    with Kept() as p:
        def refused(path, code, why):
            p.expect(code, "verify", "--home", p.home, "--state", path, err=why)
        refused(p.home / "state", 2, "inside the data directory")
        refused(p.folder / "mine", 2, "no regular file")
        os.chmod(p.folder / "mine", 0o777)
        refused(p.state, 2, "others can write")
        os.chmod(p.folder / "mine", 0o700)
        p.verify()
        os.chmod(p.state, 0o666)
        refused(p.state, 2, "written by others")
        os.chmod(p.state, 0o600)
        os.symlink(p.state, p.folder / "mine/link")
        refused(p.folder / "mine/link", 2, "no regular file")
        other = p.folder / "mine/other.db"
        with sqlite3.connect(other) as database:
            database.execute("CREATE TABLE record(actor, key, value)")
            database.execute("INSERT INTO record VALUES(1, 2, 3)")
        database.close()
        os.chmod(other, 0o600)
        before = other.read_bytes()
        refused(other, 3, "not the kept state")
        check(other.read_bytes() == before)
        (p.folder / "mine/text").write_text("hello " * 1000)
        os.chmod(p.folder / "mine/text", 0o600)
        refused(p.folder / "mine/text", 3, "not the kept state")


main()
