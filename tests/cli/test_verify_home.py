#!/usr/bin/env python3
"""`cortex verify --home` of data directories: what it shows while it works, and what its answer has.

    test_verify_home.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time

from kit import BIN, Place, check, main, test

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


@test
def a_kept_verification_that_is_killed_or_interrupted_goes_on():
    with Kept() as p:
        whole = p.json("verify", "--home", p.home)["totals"]["entries"]
        for n in range(40):
            started = subprocess.Popen([BIN, "verify", "--home", p.home, "--state", p.state], env=p.env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(n % 20 / 500)
            started.send_signal(signal.SIGINT if n % 3 else signal.SIGKILL)
            check(started.wait() in (0, 3, -signal.SIGINT, -signal.SIGKILL), started.returncode)
            done = p.verify()
            before = done["since"]["entries_before"] if done["since"] else 0
            check(done["verdict"] == ("holds_since" if done["since"] else "holds"), done)
            check(before + done["totals"]["entries"] == whole and done["tables_checked"], done)
            if n % 4 == 0:
                p.write(f"more {n}")
                whole += 1
            if n % 5 == 0:
                for path in p.state.parent.iterdir():
                    path.unlink()


class Since(Place):
    """Two checkpoints of a journal, one of them signed, with an entry and a memory after each."""

    def __enter__(self):
        super().__enter__()
        for n in range(3):
            self.ok("append", "note.x", "-", input=b"before %d " % n + b"x" * 100000)
        self.public = self.ok("key", "new", "key", "--name", "log.example")
        self.ok("checkpoint", "--sign", "key", "-o", "note")
        self.ok("append", "note.x", "the entry after")
        self.ok("memory", "write", "Fact", FACT % "memory after")
        self.ok("append", "note.x", "the last one", "--actor", "other")
        return self

    def since(self, *words, code=0):
        return self.json("verify", "--home", self.home, "--since", "note", *words, code=code)


@test
def since_a_checkpoint_only_what_came_after_is_read():
    with Since() as p:
        done = p.since("--key", p.public)
        check(done["verdict"] == "holds_since" and done["signed"] and done["anchored"], done)
        check(done["since"] == {"actor": "andrew", "checkpoint": "note", "entries_before": 3}, done)
        check(done["totals"]["entries"] == 2 and not done["tables_checked"], done)
        check(any("was not read" in limit for limit in done["limits"]), done)
        text = p.ok("verify", "--home", p.home, "--since", "note")
        check(": holds since entry 3 of andrew; the entries before it as of note" in text, text)
        for word, code in (("before 0", 0), ("the entry after", 1), ("memory after", 1)):
            log, data, at = next((path, data, data.find(word.encode())) for path in sorted((p.home / "log").iterdir())
                                 for data in [path.read_bytes()] if word.encode() in data)
            log.write_bytes(data[:at] + b"X" + data[at + 1:])
            check(p.since(code=code)["verdict"] == ("holds_since" if code == 0 else "broken"), word)
            p.expect(1, "verify", "--home", p.home)
            log.write_bytes(data)
        p.expect(2, "verify", "--home", p.home, "--since", "note", "--state", "x", err="--since")


@test
def since_a_checkpoint_of_another_journal_is_broken():
    with Since() as p:
        check(("anchor", "Truncated") in reasons(p.since("--actor", "other", code=1)))
        for n in range(3):
            p.ok("append", "note.x", f"more {n}", "--actor", "other")
        check(("anchor", "Forked") in reasons(p.since("--actor", "other", code=1)))
        with sqlite3.connect(p.home / "cortex.db") as tables:
            rows = tables.execute("SELECT actor, seq, leaf FROM entry").fetchall()
            tables.executemany("UPDATE entry SET leaf=zeroblob(32) WHERE actor=? AND seq=?",
                               [row[:2] for row in rows])
        tables.close()
        check(p.since(code=1)["verdict"] == "broken")


def change(p, sql, *values):
    """How many rows of the tables were changed; they are in the file alone then."""
    with sqlite3.connect(p.home / "cortex.db") as tables:
        count = tables.execute(sql, values).rowcount
    tables.close()
    return count


def flip_column(p, table, column, key, byte):
    """One byte of one row; the row is the `key`-th by its own order."""
    with sqlite3.connect(p.home / "cortex.db") as tables:
        names = {"leaf": "tree, key", "page": "tree, level, prefix", "fold": "actor, level, number"}[table]
        rows = tables.execute(f"SELECT {names}, {column} FROM {table} ORDER BY {names}").fetchall()
        row = rows[key % len(rows)]
        value = row[-1]
        if isinstance(value, bytes):
            new = bytearray(value)
            new[byte % len(new)] ^= 0x40
            new = bytes(new)
        else:
            new = value ^ (1 << byte % 6)
        where = " AND ".join(f"{name}=?" for name in names.split(", "))
        tables.execute(f"UPDATE {table} SET {column}=? WHERE {where}", (new, *row[:-1]))
    tables.close()


class Pages(Place):
    """A data directory with pages of more than one level, and nodes of journals."""

    def __enter__(self):
        super().__enter__()
        memories = [{"op": "write", "type": "Fact", "data": {"statement": f"s{n}", "subject": "b",
                                                             "predicate": "c"}} for n in range(300)]
        (self.folder / "many").write_text("\n".join(json.dumps(m) for m in memories) + "\n")
        self.ok("apply", self.folder / "many")
        check(self.json("tables", "check")["verdict"] == "holds")
        return self


@test
def every_damaged_page_is_named_and_repaired():
    flip_and_repair("cortex-1", 3)


@test
def every_damaged_page_of_the_other_scheme_too():
    flip_and_repair("matrix-1", 1)


def flip_and_repair(scheme, times):
    with Pages(scheme=scheme) as p:
        saved = p.folder / "saved"
        shutil.copy(p.home / "cortex.db", saved)
        seed = random.Random(23)
        for table, column in (("leaf", "value"), ("leaf", "key"), ("page", "hash"), ("page", "depth"),
                              ("page", "prefix"), ("fold", "hash")):
            for _ in range(times):
                shutil.copy(saved, p.home / "cortex.db")
                flip_column(p, table, column, seed.randrange(1 << 20), seed.randrange(1 << 20))
                check(p.json("verify", "--home", p.home, code=1)["verdict"] == "broken", table, column)
                found = p.json("tables", "check", code=1)
                check(found["verdict"] == "broken" and found["damaged"] >= 1, found)
                first = found["damage"][0]
                check(first["actor"] == "andrew" and first["where"], found)
                check(first["table"] == ("journal" if table == "fold" else "memories"), found)
                check(p.expect(1, "tables", "check").stdout.decode().count("damaged andrew, ") >= 1)
                repaired = p.json("tables", "repair")
                check(repaired["verdict"] == "holds" and repaired["repaired"] == repaired["damaged"] >= 1, repaired)
                check(p.json("tables", "check")["damaged"] == 0)
                check(p.json("verify", "--home", p.home)["verdict"] == "holds", table, column)


@test
def many_damaged_rows_are_repaired_in_one_go():
    with Pages() as p:
        check(change(p, "UPDATE leaf SET value=zeroblob(32)") >= 300)
        check(change(p, "UPDATE page SET hash=zeroblob(32)") >= 2)
        p.json("tables", "check", code=1)
        p.ok("tables", "repair")
        check(p.json("verify", "--home", p.home)["verdict"] == "holds")
        check(change(p, "DELETE FROM leaf") >= 300)
        p.json("tables", "check", code=1)
        p.ok("tables", "repair")
        check(p.json("verify", "--home", p.home)["verdict"] == "holds")


@test
def what_cannot_be_repaired_is_named_and_stays():
    with Pages() as p:
        check(change(p, "UPDATE record SET value=CAST(value||x'00' AS BLOB) "
                        "WHERE key=(SELECT max(key) FROM record WHERE key>=x'6d76' AND key<x'6d77')") == 1)
        for words in ("check", "repair"):
            found = p.json("tables", words, code=1)
            check([d["table"] for d in found["damage"]] == ["record"], found)
        check("rebuild" in found["damage"][0]["not_repaired"], found)
        p.ok("tables", "rebuild", "--replace")
        check(p.json("tables", "check")["verdict"] == "holds")
    with Pages() as p:
        p.ok("snapshot", "make")
        check(change(p, "DELETE FROM leaf WHERE key=(SELECT min(key) FROM leaf)") == 1)
        found = p.json("tables", "repair", code=1)
        check("snapshot" in found["damage"][0]["not_repaired"], found)
        p.ok("tables", "rebuild", "--replace")
        check(p.json("verify", "--home", p.home)["verdict"] == "holds")


@test
def a_flipped_byte_of_the_file_never_passes():
    with Pages() as p:
        saved = (p.home / "cortex.db").read_bytes()
        seed, noticed = random.Random(7), 0
        before = p.ok("roots"), p.ok("log", "--last", "3")
        for _ in range(25):
            data = bytearray(saved)
            data[seed.randrange(len(data))] ^= 1 << seed.randrange(8)
            (p.home / "cortex.db").write_bytes(data)
            whole = p.run("verify", "--home", p.home).returncode
            found = p.run("tables", "check").returncode
            check(whole in (0, 1, 3) and found in (0, 1, 3), whole, found)
            check(found != 1 or whole != 0, "found by the check alone")
            noticed += whole != 0
            if whole == 0:
                check((p.ok("roots"), p.ok("log", "--last", "3")) == before, "no difference, but other answers")
        check(noticed >= 5, noticed)
        p.ok("tables", "rebuild", "--replace")
        check(p.json("verify", "--home", p.home)["verdict"] == "holds")


def verdicts_with_threads(p, code):
    """What each number of threads finds, but for what is about time."""
    answers = []
    for threads in (1, 2, 8):
        found = p.json("verify", "--home", p.home, "--threads", threads, code=code)
        text = p.run("verify", "--home", p.home, "--threads", threads)
        check(text.returncode == code, text.returncode)
        answers.append((found, text.stdout))
    check(answers[0] == answers[1] == answers[2], *answers)
    return answers[0][0]


@test
def any_number_of_threads_has_the_same_answer():
    with Pages() as p:
        for actor in ("ann", "bob"):
            p.ok("append", "note.x", "text", "--actor", actor)
        p.ok("snapshot", "make")
        p.ok("checkpoint", "--all")
        whole = verdicts_with_threads(p, 0)
        check(whole["verdict"] == "holds" and whole["totals"]["entries"] > 300, whole["totals"])
        # Rows of several tables, and of several agents.
        for table, column in (("leaf", "value"), ("page", "hash"), ("entry", "created_ns")):
            check(change(p, f"UPDATE {table} SET {column}=({column}||1)") > 0, table)
        found = verdicts_with_threads(p, 1)
        tables = {finding["where"] for finding in found["findings"]}
        check({"leaf", "page", "entry"} <= tables, tables)
    with Pages() as p:
        # And of the log itself: the tables lie behind it, and are derived from what is left.
        segment = p.home / "log/000000.seg"
        data = bytearray(segment.read_bytes())
        data[len(data.rstrip(b"\0")) // 2] ^= 1
        segment.write_bytes(data)
        found = verdicts_with_threads(p, 1)
        check(found["verdict"] == "broken", found)


@test
def tables_that_are_missing_are_not_called_whole():
    with Place() as p:
        p.ok("append", "note.x", "text")
        (p.home / "cortex.db").unlink()
        check(p.json("tables", "check", code=3)["verdict"] == "indeterminate")


main()
