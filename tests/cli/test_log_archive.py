#!/usr/bin/env python3
"""Archived segments of the log: what was recorded is read, proven, erased, copied and verified as before.

    test_log_archive.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import random
import shutil
import signal
import socket
import subprocess
import time

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

    def has(self, text):
        """Files that hold these bytes, packed ones unpacked."""
        found = []
        for path in self.home.rglob("*"):
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


@test
def a_server_keeps_its_log_and_archiving_says_so():
    with Place() as p:
        p.fill()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        server = subprocess.Popen([BIN, "serve", "--listen", f"127.0.0.1:{port}"], env=p.env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(1200):
                if (p.home / "socket").exists() and p.json("status")["owner"]:
                    break
                time.sleep(0.05)
            done = p.expect(3, "log", "archive")
            check(b"Locked" in done.stderr, done.stderr)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
        p.ok("log", "archive", "--keep", "1")


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
