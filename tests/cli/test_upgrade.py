#!/usr/bin/env python3
"""Data directories of earlier versions, opened by this one (tests/vectors/homes, with their origin).

Every copy is a new one.  What the old program answered is kept beside it: the answers of this program
may have more members, never other values.

Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tarfile

import kit
from kit import BIN, TESTS, TIMEOUT_S, Folder, Place, check, main, sibling, skip, test

HOMES = TESTS / "vectors" / "homes"
VERSIONS = sorted(path.name[:-len(".tar.xz")] for path in HOMES.glob("*.tar.xz"))
VERIFY = sibling("cortex-verify")
PART = 1 << 16


unpacked = {}  # version -> the folder of it that is copied


def copy_with_holes(source, target):
    """As shutil.copy2, but zeros, which are most of a log, are left out."""
    with open(source, "rb") as read, open(target, "wb") as write:
        write.truncate(os.fstat(read.fileno()).st_size)
        at = 0
        while True:
            try:
                at = read.seek(at, os.SEEK_DATA)
            except OSError:
                break  # nothing more but a hole
            part = read.read(PART)
            if part.count(0) != len(part):
                write.seek(at)
                write.write(part)
            at += len(part)
    shutil.copystat(source, target)
    return target


def copy_of(folder, target):
    shutil.copytree(folder, target, symlinks=True, copy_function=copy_with_holes, dirs_exist_ok=True)


def unpack(version, folder):
    if version not in unpacked:
        unpacked[version] = kit.make_folder("cortex-upgrade-")
        with Folder() as made, tarfile.open(HOMES / f"{version}.tar.xz") as archive:
            archive.extractall(made, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
            copy_of(made, unpacked[version])
    copy_of(unpacked[version], folder)


@kit.afterwards
def remove_unpacked():
    for folder in unpacked.values():
        kit.remove(folder)


class Old:
    """with Old("0.1") as old: an unpacked copy of that version's fixture."""

    def __init__(self, version):
        self.version = version

    def __enter__(self):
        self.folder = Folder("cortex-upgrade-")
        self.base = self.folder.__enter__()
        unpack(self.version, self.base)
        self.home, self.repo, self.out = self.base / "home", self.base / "repo", self.base / "outside"
        self.names = json.loads((self.base / "names.json").read_text())
        self.answers = json.loads((self.base / "answers.json").read_text())
        return self

    def __exit__(self, *_):
        self.folder.__exit__()

    def env(self, **more):
        return kit.clean_env(CORTEX_HOME=self.home, CORTEX_ACTOR="desk", HOME="/nonexistent",
                             GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", **more)

    def run(self, *args, env=None):
        return subprocess.run([BIN, *map(str, args)], cwd=self.repo, env={**self.env(), **(env or {})},
                              capture_output=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)

    def ok(self, *args, code=0):
        done = self.run(*args)
        check(done.returncode == code, args, done.returncode, done.stdout[-1500:], done.stderr[-1500:])
        return done.stdout.decode().rstrip("\n")

    def json(self, *args, code=0):
        return json.loads(self.ok(*args, "--json", code=code))

    def bytes_of_home(self):
        return {str(p.relative_to(self.home)): p.read_bytes()
                for p in sorted(self.home.rglob("*")) if p.is_file() and p.stat().st_size < 1 << 22}


def of_each(function):
    """One test for each version."""
    for version in VERSIONS:
        def one(version=version):
            with Old(version) as old:
                function(old)
        one.__name__ = f"{function.__name__}_{version}"
        test(one)
    return function


# --- answers ------------------------------------------------------------------------------------------

def lines(text):
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text.splitlines()


# Sentences for people, which each version may word anew, and whether the tables were of this version.
WORDS = {"title", "by", "not_proven", "limits", "tables_checked"}


def differences(old, new, where=""):
    """Places where `new` does not say what `old` says; members that only `new` has are no difference."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [found for name, value in old.items() if name not in WORDS for found in
                (differences(value, new[name], f"{where}/{name}") if name in new else [f"{where}/{name} is gone"])]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [found for index, pair in enumerate(zip(old, new))
                for found in differences(*pair, f"{where}/{index}")]
    return [] if old == new else [f"{where}: {str(old)[:200]} is now {str(new)[:200]}"]


def comparable(words, answer):
    """How salient a memory is depends on when one asks, and the order of `memory find` on that.  What a
    recorded session is as a history depends on the importer, and with it the hashes of its nodes."""
    for line in answer:
        if "@session/s1" in words and isinstance(line, dict):
            line["heads"] = len(line.get("heads", []))
        if isinstance(line, dict) and "memories" in line:
            line["memories"].sort(key=lambda memory: memory["id"])
            for memory in line["memories"]:
                memory.pop("salience", None)
    return answer


def compare_answers(old):
    wrong = []
    for answer in old.answers:
        words = [word.replace("BASE", str(old.base)) for word in answer["args"]]
        done = old.run(*words)
        found = done.stdout.decode().replace(str(old.base), "BASE").rstrip("\n")
        check(done.returncode == answer["code"], words, done.returncode, found[:500], done.stderr[:500])
        wrong += [(words, *found) for found in [differences(
            comparable(words, lines(answer["out"])), comparable(words, lines(found)))] if found]
    check(wrong == [], *("\n" + str(one)[:900] for one in wrong))


@of_each
def every_question_is_answered_as_before(old):
    check(len(old.answers) > 40)
    compare_answers(old)



# --- proofs -------------------------------------------------------------------------------------------

def judge(words, folder):
    return subprocess.run([VERIFY, *words], cwd=folder, capture_output=True, check=False, timeout=TIMEOUT_S)


@of_each
def proofs_of_the_old_version_are_judged_as_before(old):
    verdicts = json.loads((old.base / "verdicts.json").read_text())
    held = []
    for one in verdicts:
        done = judge(one["args"], old.out)
        if done.returncode == 0 and not one["args"][-1].endswith(".scope"):  # a scope alone covers nothing
            held.append(one["args"])
        if one["code"] == 2:
            continue  # an option that the old version did not have
        # Since 0.2 nothing holds that no key, root or checkpoint confirms.
        stricter = one["code"] == 0 and done.returncode == 3 and b"NotAnchored" in done.stdout
        check(done.returncode == one["code"] or stricter, one, done.stdout, done.stderr)
    check(len(verdicts) >= 30 and len({words[-1] for words in held}) >= 8, held)
    for words in held:  # a changed byte is seen
        path = old.out / words[-1]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        check(judge(words, old.out).returncode != 0, "a changed byte holds", words)
        data[len(data) // 2] ^= 1
        path.write_bytes(data)


# --- the data directory -------------------------------------------------------------------------------

@of_each
def reading_changes_nothing(old):
    before = old.bytes_of_home()
    old.ok("roots", "--json")
    old.ok("memory", "list", "--json")
    old.ok("verify", "--home", old.home)
    check(old.bytes_of_home() == before, "reading changed a file")


@of_each
def it_holds_and_is_written_to(old):
    note, public = old.out / "checkpoint.note", old.out / "log.pub"
    anchored = ("verify", "--home", old.home, "--checkpoint", note, "--key", public, "--actor", "desk")
    old.ok(*anchored)
    old.ok("append", "note.new", "written by the new version")
    check(json.loads((old.home / "format").read_text())["format"] == 1)
    new = old.ok("memory", "write", "Fact", '{"statement":"the limit is 700","subject":"limits","predicate":"is"}')
    again = old.ok("memory", "update", old.names["uris"]["limit2"],
                   '{"statement":"the limit is 800","subject":"limits","predicate":"is"}')
    check(again.endswith("#3"), again)
    old.ok("memory", "link", new, "references", old.names["uris"]["other"])
    proof = old.base / "new.proof"
    old.ok("prove", again, old.names["uris"]["other"], "--fresh", "-o", proof)
    check(judge(["--self-consistent", proof], old.base).returncode == 0)
    old.ok("prove", old.names["uris"]["other"], "--at", 0, "-o", old.base / "past.proof")
    # A snapshot of the old version is proven byte for byte as the old version did.
    check((old.base / "past.proof").read_bytes() == (old.out / "old.proof").read_bytes())
    old.ok(*anchored)
    report = old.json("verify", "--home", old.home)
    check(report["verdict"] == "holds" and report["tables_checked"] is True, report)


@of_each
def text_is_found(old):
    found = old.json("search", "limit")["hits"]
    check(any(old.names["uris"]["limit"].split("#")[0] in hit["ref"] for hit in found), found)
    found = old.json("trace", "query", "--verified", "any", "--text", "words decision")
    check(sorted(row["trace_id"] for row in found["traces"]) == sorted(old.names["traces"]), found)


@of_each
def tables_and_index_are_made_again(old):
    roots = old.json("roots")
    for names in ((), ("cortex.db",), ("cirislens.db",), ("cortex.db", "cirislens.db")):
        for name in names:
            for path in old.home.glob(name + "*"):
                path.unlink()
        made = old.json("tables", "rebuild")
        check(made["index"]["traces"] == len(old.names["traces"]), made)
        check(old.json("roots") == roots, names)
    compare_answers(old)


# --- kills --------------------------------------------------------------------------------------------

def killed(old, number, *words):
    """Whether the program was killed before its `number`th change of a file of the data directory."""
    done = old.run(*words, env={"LD_PRELOAD": sibling("fault_injector.so"), "CORTEX_KILL_AT": str(number),
                                "CORTEX_FAULTS_UNDER": str(old.home)})
    check(done.returncode in (0, -9), words, number, done.returncode, done.stderr)
    return done.returncode == -9


def kill_everywhere(old, *words):
    """Kills the first command of the new version at each of its first changes, and then at some."""
    entries = {row["actor"]: row["journal_size"] for row in old.json("roots")["actors"]}
    fresh = old.base / "fresh"
    copy_of(old.home, fresh)
    number, kills = 0, 0
    while True:
        number += 1 if number < 10 else number // 2
        shutil.rmtree(old.home)
        copy_of(fresh, old.home)
        if not killed(old, number, *words):
            break
        kills += 1
        old.ok("verify", "--home", old.home)
        now = {row["actor"]: row["journal_size"] for row in old.json("roots")["actors"]}
        check({**now, "desk": 0} == {**entries, "desk": 0}, now, entries)
        check(now["desk"] - entries["desk"] in (0, 1), now, entries)
        old.ok("append", "note.after", "the kill")
        check(old.json("verify", "--home", old.home)["tables_checked"] is True)
        check(json.loads((old.home / "format").read_text())["format"] == 1)
        check(old.ok("memory", "get", old.names["uris"]["limit2"]) != "")
    check(kills >= 5, words, "was killed only", kills, "times")


def needs_injector():
    if not os.path.exists(sibling("fault_injector.so")):
        skip("there is no fault_injector.so")


@of_each
def a_kill_during_the_first_write_is_harmless(old):
    needs_injector()
    kill_everywhere(old, "append", "note.first", "written by the new version")


@of_each
def a_kill_during_a_rebuild_is_harmless(old):
    needs_injector()
    kill_everywhere(old, "tables", "rebuild")


# --- later versions -----------------------------------------------------------------------------------

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def bytes_of(folder):
    """All but the lock file, where a writer says who it is."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.name != "lock"}


def refused_everywhere(p, *texts):
    """Every way to open the data directory is refused with these words, and no byte is changed."""
    before = bytes_of(p.home)
    for words in (["roots"], ["log"], ["append", "note.x", "y"], ["memory", "list"], ["status"], ["tables", "rebuild"],
                  ["tables", "rebuild", "--verify-only"], ["backup", p.folder / "copy"], ["erase", 0, "--reason", "x"],
                  ["verify", "--home", p.home], ["serve", "--listen", "127.0.0.1:0"], ["checkpoint"]):
        done = p.run(*words)
        said = (done.stdout + done.stderr).decode()
        check(done.returncode == 3, words, done.returncode, said)
        for text in texts:
            check(text in said, words, "says no", text, said)
        check(bytes_of(p.home) == before, words, "changed something")
    check(not (p.folder / "copy/log").exists())


@test
def a_later_format_is_refused_with_words():
    with Place() as p:
        p.ok("append", "note.x", "hello")
        stamp = p.home / "format"
        check(json.loads(stamp.read_text())["format"] == 1, stamp.read_text())
        kept = stamp.read_bytes()
        stamp.write_text('{"format":2,"written_by":"0.9.1","more":[1]}\n')
        refused_everywhere(p, "format 2", "cortex 0.9.1", "formats up to 1")
        check(b"restore" in p.run("roots").stderr)
        check(json.loads(p.run("roots", "--json").stdout)["error"]["code"] == "NewerFormat")
        stamp.write_text('{"format":18446744073709551615}')
        refused_everywhere(p, "(unknown)")
        stamp.write_bytes(kept)
        p.ok("verify", "--home", p.home)


@test
def a_damaged_format_file_is_refused_with_words():
    with Place() as p:
        p.ok("append", "note.x", "hello")
        stamp = p.home / "format"
        for text in ("", "{}", "[]", '{"format":0}', '{"format":-1}', '{"format":"1"}', '{"format":1.0}', "\0" * 10,
                     '{"format":1,"written_by":"\\u001b[2J"}', '{"format":1,"written_by":"' + "1" * 33 + '"}',
                     '{"format":1' + " " * 5000 + "}"):
            stamp.write_text(text)
            before = bytes_of(p.home)
            done = p.run("append", "note.x", "y")
            check(done.returncode in (2, 3) and b"format" in done.stderr, text, done)
            check(b"\x1b" not in done.stderr and bytes_of(p.home) == before, text)
        stamp.unlink()
        p.ok("append", "note.x", "y")
        check(stamp.exists())


@test
def a_log_of_a_later_format_is_refused_with_words():
    """What a later version has to do to be refused by 0.1 and 0.2, too."""
    with Place() as p:
        p.ok("append", "note.x", "hello")
        path = p.home / "log/000000.seg"
        data = bytearray(path.read_bytes())
        check(crc32c(data[:4092]) == struct.unpack(">I", data[4092:4096])[0])
        data[8:12] = struct.pack(">I", 2)
        data[4092:4096] = struct.pack(">I", crc32c(data[:4092]))
        path.write_bytes(data)
        refused_everywhere(p, "log format 2", "reads 1")


main()
