#!/usr/bin/env python3
"""Archived segments of the log: what was recorded is read, proven, erased, copied and verified as before.

    test_log_archive.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import json
import os
import random
import shutil
import signal
import subprocess
import time
import urllib.request

import kit
from kit import BIN, check, main, sibling, test

VERIFY = sibling("cortex-verify")
SECRET = "the-password-is-" + "q7wz" * 8
SIZE = 48 << 20  # so that segments of 64 MiB are filled by few entries


class Place(kit.Place):
    def fill(self, big=0):
        """A first segment of 256 KiB that is full, memories with a secret in it, and `big` large entries."""
        self.uri = self.ok("memory", "write", "Fact", f'{{"statement":"{SECRET}","subject":"sky","predicate":"is"}}').split()[-1]
        for n in range(6):
            self.ok("append", "note.x", "-", input=random.Random(n).randbytes(60000).hex().encode()[:60000])
        for n in range(big):
            self.ok("append", "note.big", "-", input=(b"%08d" % n) * (SIZE // 8))

    def log(self):
        return sorted(p.name for p in (self.home / "log").iterdir())

    def answers(self):
        roots = self.ok("roots", "--json")
        return roots, self.ok("log", "--all", "--json"), self.ok("memory", "list", "--json")

    def has(self, text, folder="."):
        """Files that hold these bytes, packed ones unpacked."""
        found = []
        for path in (self.home / folder).rglob("*"):
            if not path.is_file():
                continue
            data = path.read_bytes()
            if path.suffix == ".zst" and shutil.which("zstd"):
                data += subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
            if text.encode() in data:
                found.append(path.name)
        return found


@test
def answers_are_the_same_before_and_after():
    with Place() as p:
        p.fill()
        proof = p.folder / "proof.cbor"
        overall = p.json("snapshot", "make")["overall_root"]
        before = p.answers()
        plain = (p.home / "log/000000.seg").read_bytes()
        done = p.json("log", "archive", "--keep", "1")
        check(done["archived"] == 1 and done["changed"] == 1 and done["segments"] == 2, done)
        check(done["bytes_stored"] < done["bytes_unpacked"] and done["folder"] is None, done)
        check(p.log() == ["000000.seg.zst", "000001.seg", "lock"], p.log())
        check(p.answers() == before)
        p.expect(0, "verify", "--home", p.home)
        p.ok("prove", p.uri, "-o", proof)
        p.expect(0, "verify", proof, "--overall-root", overall)
        check(p.run(proof, "--overall-root", overall, program=VERIFY).returncode == 0)
        status = p.json("status")["ledger"]
        check(status["archived_segments"] == 1 and status["segments"] == 2, status)
        check(status["log_bytes"] == done["bytes_stored"], status)
        check("1 of them archived" in p.ok("status"))
        check(p.json("log", "archive", "--keep", "1")["changed"] == 0)
        p.ok("tables", "rebuild")
        check(p.answers() == before)
        if shutil.which("zstd"):
            unpacked = subprocess.run(["zstd", "-dc", p.home / "log/000000.seg.zst"], capture_output=True,
                                      check=True).stdout
            check(unpacked == plain, "zstd -d gives another segment")
        p.ok("log", "restore")
        check((p.home / "log/000000.seg").read_bytes() == plain)
        check(p.log() == ["000000.seg", "000001.seg", "lock"], p.log())
        check(p.answers() == before)


@test
def what_is_erased_in_an_archive_is_gone():
    with Place() as p:
        p.fill()
        p.ok("log", "archive", "--keep", "1")
        check("000000.seg.zst" in p.has(SECRET) or not shutil.which("zstd"))
        p.ok("erase", p.uri, "--reason", "asked for")
        check(p.has(SECRET) == [], p.has(SECRET))
        p.expect(0, "verify", "--home", p.home)
        check(p.log()[0] == "000000.seg.zst" and "archiving" not in p.log(), p.log())


@test
def a_copy_of_an_archived_log_is_whole():
    with Place() as p:
        p.fill()
        before = p.answers()
        other = p.folder / "elsewhere"
        done = p.json("log", "archive", "--keep", "1", "--to", other)
        check(done["folder"] == str(other.resolve()), done)
        check(sorted(x.name for x in other.iterdir()) == ["000000.seg.zst"], list(other.iterdir()))
        copy = p.folder / "copy"
        p.ok("backup", copy)
        shutil.rmtree(other)  # the copy needs it no more
        p.expect(0, "verify", "--home", copy)
        moved = p.run("log", "--all", "--json", env={"CORTEX_HOME": str(copy)})
        check(moved.stdout.decode().rstrip("\n") == before[1])


@test
def a_folder_that_is_not_there_is_named():
    with Place() as p:
        p.fill()
        before = p.answers()
        other = p.folder / "disk"
        p.ok("log", "archive", "--keep", "1", "--to", other)
        other.rename(p.folder / "moved")
        for words in (["log"], ["roots"], ["verify", "--home", p.home], ["append", "note.x", "text"]):
            done = p.expect(3, *words)
            check(b"disk" in done.stderr and b"archived in" in done.stderr, words, done.stderr)
        (p.home / "log/archive").write_text(f"{p.folder / 'moved'}\n")
        check(p.answers() == before)
        for text in ("", "relative\n", "/two\n/lines\n", "/nul\0\n", "/" + "x" * 5000):
            (p.home / "log/archive").write_text(text)
            done = p.expect(3, "log")
            check(b"archive" in done.stderr, text[:20], done.stderr)


@test
def changed_bytes_are_told():
    with Place() as p:
        p.fill()
        p.ok("log", "archive", "--keep", "1")
        path = p.home / "log/000000.seg.zst"
        whole = path.read_bytes()
        tried = told = 0
        for at in [0, 9, len(whole) // 2, len(whole) - 1, len(whole) - 20] + \
                [random.Random(7).randrange(len(whole)) for _ in range(12)]:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1:])
            code = p.run("verify", "--home", p.home).returncode
            check(code in (0, 1), at, code)
            tried, told = tried + 1, told + (code == 1)
        check(told >= tried - 1, told, tried)
        path.write_bytes(whole[:-5])
        p.expect(1, "verify", "--home", p.home)
        path.unlink()
        check(p.run("verify", "--home", p.home).returncode in (1, 3))
        path.write_bytes(whole)
        p.expect(0, "verify", "--home", p.home)


class Server:
    """`cortex serve` on a free port; ends with the block, by SIGTERM or, `kill()`, at once."""

    def __init__(self, place, **env):
        self.place = place
        self.child = subprocess.Popen(
            [BIN, "serve", "--listen", "127.0.0.1:0", "--otlp", "off", "--json"],
            env={**place.env, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.url = json.loads(self.child.stdout.readline())["url"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        self.child.wait(60)
        self.child.stdout.close()
        self.child.stderr.close()

    def kill(self):
        self.child.kill()
        self.child.wait(60)

    def get(self, path):
        token = (self.place.home / "token").read_text().strip()
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def metric(self, name):
        for line in self.get("/metrics").splitlines():
            if line.startswith(name + " "):
                return int(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no metric {name}")


def until(what, holds, tries=1200):
    for _ in range(tries):
        if holds():
            return
        time.sleep(0.05)
    check(False, "never came: " + what)


@test
def a_server_archives_for_the_command():
    with Place() as p:
        p.fill()
        with Server(p):
            before = p.answers()
            done = p.json("log", "archive", "--keep", "1")
            check(done["archived"] == 1 and done["changed"] == 1 and done["folder"] is None, done)
            check(p.log()[0] == "000000.seg.zst", p.log())
            check(p.answers() == before)
            check(p.json("log", "restore")["changed"] == 1)
            check(p.log()[0] == "000000.seg", p.log())
            other = p.folder / "other"
            done = p.json("log", "archive", "--keep", "1", "--to", other)
            check(done["folder"] == str(other.resolve()), done)
            check([x.name for x in other.iterdir()] == ["000000.seg.zst"])
            check(p.expect(2, "log", "archive", "--keep", "1", "--to", p.folder / "third").stderr)
            check(p.json("log", "archive", "--after", "30d")["changed"] == 0)
            check(p.answers() == before)
            p.ok("append", "note.x", "still written")
        p.expect(0, "verify", "--home", p.home)


CONFIG = '[archive]\nkeep = 1\n'


@test
def a_server_archives_by_itself():
    with Place() as p:
        p.fill()
        (p.home / "config.toml").write_text(CONFIG)
        (p.home / "config.toml").chmod(0o600)
        before = p.answers()
        check("'cortex log archive' does it" in p.ok("status"))
        with Server(p) as server:
            until("an archive", lambda: p.log()[0] == "000000.seg.zst" and "000000.seg" not in p.log())
            check(p.answers() == before)
            until("the metric", lambda: server.metric("cortex_log_archived_total") == 1)
            check(server.metric("cortex_log_archive_failures_total") == 0)
            archive = p.json("status")["ledger"]["archive"]
            check(archive["archived_segments"] == 1 and archive["bytes_compressed"] > 0, archive)
            check(archive["bytes_elsewhere"] == 0 and archive["error"] is None, archive)
            check(archive["configured"] == {"after_seconds": 0, "keep": 1}, archive)
            done = p.expect(2, "log", "restore")
            check(b"[archive]" in done.stderr, done.stderr)
            (p.home / "config.toml").unlink()  # the server has read it
            done = p.expect(2, "log", "restore")
            check(b"by its configuration" in done.stderr, done.stderr)
            p.ok("erase", p.uri, "--reason", "asked for")
            check(p.has(SECRET, "log") == [], p.has(SECRET, "log"))
        p.expect(0, "verify", "--home", p.home)
        p.ok("log", "restore")


@test
def segments_that_are_young_stay():
    with Place() as p:
        p.fill()
        with Server(p, CORTEX_ARCHIVE_AFTER="1h", CORTEX_ARCHIVE_KEEP="1") as server:
            time.sleep(4)  # it looks each two seconds
            check(p.log()[0] == "000000.seg", p.log())
            old = time.time() - 7200
            os.utime(p.home / "log/000000.seg", (old, old))
            until("an archive", lambda: p.log()[0] == "000000.seg.zst")
            check(server.metric("cortex_log_archive_failures_total") == 0)


@test
def another_folder_by_configuration():
    with Place() as p:
        p.fill()
        other = p.folder / "slow disk"
        with Server(p, CORTEX_ARCHIVE_KEEP="1", CORTEX_ARCHIVE_TO=str(other)):
            until("an archive", lambda: "000000.seg" not in p.log())
            check([x.name for x in other.iterdir()] == ["000000.seg.zst"])
            archive = p.json("status")["ledger"]["archive"]
            check(archive["bytes_elsewhere"] > 0 and archive["bytes_compressed"] == 0, archive)
            check(archive["folder"] == str(other), archive)
        p.expect(0, "verify", "--home", p.home)


@test
def what_fails_is_said():
    with Place() as p:
        p.fill()
        blocked = p.folder / "file"
        blocked.write_text("no folder")
        with Server(p, CORTEX_ARCHIVE_KEEP="1", CORTEX_ARCHIVE_TO=str(blocked / "in it")) as server:
            until("a failure", lambda: p.json("status")["ledger"]["archive"]["error"])
            archive = p.json("status")["ledger"]["archive"]
            check("cannot make" in archive["error"] and archive["failed_at"], archive)
            check("failed at" in p.ok("status"))
            check(server.metric("cortex_log_archive_failures_total") >= 1)
            p.ok("append", "note.x", "still written")
        with Server(p, CORTEX_ARCHIVE_KEEP="1"):
            until("an archive", lambda: "000000.seg" not in p.log())
            until("no failure", lambda: p.json("status")["ledger"]["archive"]["error"] is None)


@test
def a_server_killed_while_it_archives():
    with Place() as p:
        p.fill(3)
        before = p.ok("roots", "--json")
        hit = 0
        for n in range(6):
            with Server(p, CORTEX_ARCHIVE_KEEP="1") as server:
                until("packing", lambda: "packing" in p.log() or "000000.seg" not in p.log())
                time.sleep(0.03 * n)
                hit += "packing" in p.log()
                server.kill()
            check(p.ok("roots", "--json") == before, n)
            p.expect(0, "verify", "--home", p.home)
            p.ok("append", "note.x", str(n))  # who writes next overwrites the copy
            check("packing" not in p.log() and "archiving" not in p.log(), p.log())
            before = p.ok("roots", "--json")
            p.ok("log", "restore")
        check(hit >= 2, hit)


@test
def nothing_erased_stays_in_a_copy_of_a_killed_server():
    with Place() as p:
        p.fill(1)
        left = 0
        for n in range(8):
            uri = p.ok("memory", "write", "Fact", f'{{"statement":"{SECRET}{n}","subject":"sky","predicate":"is"}}').split()[-1]
            p.ok("append", "note.big", "-", input=(b"%08d" % n) * (SIZE // 8))
            with Server(p, CORTEX_ARCHIVE_KEEP="1") as server:
                until("packing", lambda: "packing" in p.log())
                server.kill()
            left += "packing" in p.log()
            p.ok("erase", uri, "--reason", "asked for")
            check("packing" not in p.log(), p.log())
            check(p.has(f"{SECRET}{n}", "log") == [], n, p.has(f"{SECRET}{n}", "log"))
        check(left >= 1, left)


@test
def settings_of_archiving_are_checked():
    with Place() as p:
        config = p.home / "config.toml"
        for text, word in (('[archive]\nkeep = "x"\n', b"whole number"), ('[archive]\nafter = "soon"\n', b"an age"),
                           ('[archive]\nto = "/elsewhere"\n', b"cannot name a folder"), ('[archive]\nkeeps = 1\n', b"'keep'")):
            config.write_text(text)
            config.chmod(0o600)
            done = p.expect(2, "append", "note.x", "text")
            check(word in done.stderr and b"config.toml: line 2" in done.stderr, text, done.stderr)
        config.unlink()
        for name, value, word in (("KEEP", "x", b"a number"), ("AFTER", "soon", b"an age"), ("TO", "near", b"absolute")):
            done = p.expect(2, "append", "note.x", "text", env={f"CORTEX_ARCHIVE_{name}": value})
            check(word in done.stderr and b"CORTEX_ARCHIVE_" in done.stderr, done.stderr)
        p.expect(2, "log", "archive", "--after", "soon")


@test
def killed_at_any_moment_each_segment_is_whole():
    with Place() as p:
        p.fill(2)  # segments of 64 MiB: long enough to be hit
        before = p.ok("roots", "--json")
        rounds = killed = 0
        for n in range(8):
            words = ["log", "archive", "--keep", "1"] if n % 2 == 0 else ["log", "restore"]
            child = subprocess.Popen([BIN, *words], env=p.env, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(0.02 * (1 + n * 7 % 11))
            child.kill()
            killed += child.wait() == -signal.SIGKILL
            rounds += 1
            check(p.ok("roots", "--json") == before, n)
        check(killed >= 2, killed, rounds)
        p.expect(0, "verify", "--home", p.home)
        p.ok("log", "archive", "--keep", "1")
        p.expect(0, "verify", "--home", p.home)
        check(p.ok("roots", "--json") == before)


@test
def usage_is_checked():
    with Place() as p:
        p.expect(2, "log", "archive", "--keep", "x")
        p.expect(2, "log", "archive", "extra")
        p.expect(2, "log", "restore", "--keep", "1")
        p.expect(3, "log", "archive", "--home", p.folder / "none")
        check(p.json("log", "archive")["changed"] == 0)  # nothing is full
        full = p.folder / "file"
        full.write_text("x")
        p.expect(3, "log", "archive", "--to", full)
        a, b = p.folder / "a", p.folder / "b"
        p.fill()
        p.ok("log", "archive", "--keep", "1", "--to", a)
        done = p.expect(2, "log", "archive", "--keep", "1", "--to", b)
        check(b"archives are in" in done.stderr, done.stderr)
        p.ok("log", "restore")
        check(p.json("log", "archive", "--keep", "1", "--to", "")["folder"] is None)
        check(p.log()[0] == "000000.seg.zst", p.log())


if __name__ == "__main__":
    main()
