#!/usr/bin/env python3
"""cortex witness, checkpoint --witness, cortex-verify --witness-key: cosignatures, and what is refused.

Closes with `N passed, N failed, N skipped`.
"""
import base64
import hashlib
import http.client
import json
import shutil
import signal
import subprocess

import kit
from kit import BIN, check, main, sibling, skip, test

VERIFY = sibling("cortex-verify")


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


class Witness:
    """A witness of some logs, on a port that the kernel chose."""

    def __init__(self, place, *logs, name="witness.example/w1"):
        self.place, self.logs, self.name = place, logs, name
        self.key = place.folder / (name.replace("/", "-") + ".key")
        if not self.key.exists():
            place.ok("key", "new", self.key, "--name", name)
        self.folder = place.folder / ("of-" + name.replace("/", "-"))
        self.start()

    def start(self):
        logs = [word for log in self.logs for word in ("--log", log)]
        self.process = subprocess.Popen(
            [BIN, "witness", "--key", self.key, "--dir", self.folder, "--listen", "127.0.0.1:0", "--json",
             *logs],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = json.loads(self.process.stdout.readline())
        self.url, self.vkey = said["url"], said["key"]

    def stop(self, kill=False):
        self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self.process.communicate()
        return self.process.returncode

    def post(self, body, path="/add-checkpoint", method="POST", headers=None):
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=10)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        got = (answer.status, answer.getheader("Content-Type"), answer.read().decode())
        connection.close()
        return got


class Place(kit.Place):
    def __enter__(self):
        super().__enter__()
        self.running = []
        self.key = self.folder / "log.key"
        self.vkey = self.ok("key", "new", self.key, "--name", "log.example/ann").strip()
        return self

    def __exit__(self, *args):
        for witness in self.running:
            if witness.process.poll() is None:
                witness.stop(kill=True)
        super().__exit__(*args)

    def witness(self, *logs, name="witness.example/w1"):
        self.running.append(Witness(self, *(logs or (self.vkey,)), name=name))
        return self.running[-1]

    def append(self, count=1):
        for i in range(count):
            self.ok("append", "note.more", str(i), "--actor", "ann")

    def checkpoint(self, *args, code=0, out="note"):
        done = self.run("checkpoint", "--actor", "ann", "--sign", self.key, "-o", out, *args)
        check(done.returncode == code, args, done.returncode, done.stdout, done.stderr)
        return self.folder / out, done.stderr.decode()

    def verify(self, code, *args):
        done = self.run("--json", *args, program=VERIFY)
        check(done.returncode == code, args, done.stdout, done.stderr)
        return json.loads(done.stdout)


def need_curl():
    if shutil.which("curl") is None:
        skip("no curl")


@test
def a_witness_cosigns_what_grows():
    need_curl()
    with Place() as p:
        w = p.witness()
        at = ["--witness", f"{w.url}/={w.vkey}"]
        for more in (1, 1, 3):
            p.append(more)
            note, _ = p.checkpoint(*at)
            done = p.verify(0, "--key", p.vkey, "--witness-key", w.vkey, note)
            check(done["checkpoint"]["cosigned"] == 1 and done["signed"], done)
            check(len(note.read_text().splitlines()) == 6, note.read_text())
        note, _ = p.checkpoint(*at)
        check(p.verify(0, "--key", p.vkey, "--witness-key", w.vkey, note), "the same once more")
        # It is durable: after a kill the witness knows what it cosigned.
        w.stop(kill=True)
        w.start()
        check(w.post(b"old 0\n\n" + note.read_bytes())[0::2] == (409, "5\n"))
        p.append()
        p.checkpoint("--witness", f"{w.url}={w.vkey}")
        check(w.stop() == 0)


@test
def n_of_m_witnesses_are_demanded():
    need_curl()
    with Place() as p:
        p.append()
        one, two = p.witness(), p.witness(name="witness.example/w2")
        both = ["--witness", f"{one.url}={one.vkey}", "--witness", f"{two.url}={two.vkey}"]
        note, _ = p.checkpoint(*both)
        keys = ["--key", p.vkey, "--witness-key", one.vkey, "--witness-key", two.vkey]
        check(p.verify(0, *keys, note)["checkpoint"]["cosigned"] == 2)
        two.stop()
        p.append()
        note, told = p.checkpoint(*both, code=3, out="three")
        check("NotCosigned" in told and not note.exists(), told)
        note, _ = p.checkpoint(*both, "--witnesses", "1")
        check(p.verify(1, *keys, note)["reason"] == "NotSigned")
        p.verify(0, *keys, "--cosigners", "1", note)
        plain, _ = p.checkpoint(out="plain")
        check(p.verify(1, *keys, "--cosigners", "1", plain)["reason"] == "NotSigned")
        # A changed cosignature of a known witness is no note.
        lines = note.read_text().splitlines(keepends=True)
        at = len(lines[-1]) - 8
        lines[-1] = lines[-1][:at] + ("A" if lines[-1][at] != "A" else "B") + lines[-1][at + 1:]
        (p.folder / "forged").write_text("".join(lines))
        check(p.verify(1, *keys, "--cosigners", "1", p.folder / "forged")["reason"]
              == "SignatureInvalid")


@test
def a_rewritten_journal_is_not_cosigned():
    need_curl()
    with Place() as p:
        w = p.witness()
        at = ["--witness", f"{w.url}={w.vkey}"]
        p.append(2)
        shutil.copytree(p.home, p.folder / "before")
        p.append(2)
        p.checkpoint(*at)
        # Another history from there on, shorter, as long, and longer.
        for entries, why in ((1, "has cosigned 4"), (1, "409"), (1, "422")):
            for _ in range(entries):
                p.ok("append", "note.other", "x", "--actor", "ann", "--home", p.folder / "before")
            done = p.run("checkpoint", "--actor", "ann", "--sign", p.key, "-o", "forked", *at, "--home",
                         p.folder / "before")
            check(done.returncode == 3 and why in done.stderr.decode(), why, done.stderr)


@test
def a_restored_older_copy_is_not_cosigned():
    """It has the same id, and what it records from there on is another history."""
    need_curl()
    with Place() as p:
        w = p.witness()
        at = ["--witness", f"{w.url}={w.vkey}"]
        p.append(2)
        p.checkpoint(*at)
        p.ok("backup", p.folder / "copy")
        p.append(2)
        p.checkpoint(*at)
        p.ok("restore", p.folder / "copy", "--to", p.folder / "restored")
        p.env["CORTEX_HOME"] = str(p.folder / "restored")
        for entries, why in ((1, "has cosigned 4"), (1, "409"), (1, "422")):
            for _ in range(entries):
                p.ok("append", "note.other", "x", "--actor", "ann")
            _, told = p.checkpoint(*at, code=3, out="forked")
            check(why in told, why, told)


@test
def the_protocol_is_answered_as_specified():
    with Place() as p:
        w = p.witness()
        p.append(1)
        first = p.checkpoint(out="first")[0].read_bytes()
        p.append(2)
        later = p.checkpoint(out="later")[0].read_bytes()
        other_key = p.folder / "other.key"
        other = p.ok("key", "new", other_key, "--name", "log.example/bob").strip()
        p.ok("append", "note.more", "x", "--actor", "bob")
        p.ok("checkpoint", "--actor", "bob", "--sign", other_key, "-o", "unknown")
        unknown = (p.folder / "unknown").read_bytes()
        check(w.post(b"old 0\n\n" + unknown)[0] == 404)
        check(other != p.vkey)
        unsigned = later.replace(b"log.example/ann ", b"log.example/eve ", 2)
        forged = b"log.example/ann\n" + first.split(b"\n", 1)[1].replace(
            b"\xe2\x80\x94 log.example/ann", b"\xe2\x80\x94 log.example/eve")
        check(w.post(b"old 0\n\n" + forged)[0] == 403, "signed by no known key")
        check(unsigned)
        for body in (b"", b"old\n\n" + first, b"old 00\n\n" + first, b"old -1\n\n" + first,
                     b"old 0\n" + first, b"old 0\nAAAA\n\n" + first, b"old 0\n\n" + first[:-1],
                     b"old 2\n\n" + first, b"old 18446744073709551616\n\n" + first,
                     b"old 0\n" + 64 * (base64.b64encode(bytes(32)) + b"\n") + b"\n" + first):
            check(w.post(body)[0] == 400, body[:60], w.post(body))
        check(w.post(b"old 1\n\n" + first) == (409, "text/x.tlog.size", "0\n"))
        check(w.post(b"old 0\n" + base64.b64encode(bytes(32)) + b"\n\n" + first)[0] == 422)
        status, _, line = w.post(b"old 0\n\n" + first)
        check(status == 200 and line.startswith("\u2014 witness.example/w1 ") and line.endswith("\n"))
        raw = base64.b64decode(line.split(" ")[2])
        public = base64.b64decode(w.vkey.split("+", 2)[2])
        check(public[0] == 4 and len(raw) == 76, w.vkey)
        check(raw[:4] == sha(b"witness.example/w1\n\x04", public[1:])[:4] == bytes.fromhex(
            w.vkey.split("+")[1]))
        check(w.post(b"old 0\n\n" + later)[0::2] == (409, "1\n"))
        check(w.post(b"old 1\n\n" + later)[0] == 422)
        check(w.post(b"old 1\n" + 2 * (base64.b64encode(bytes(32)) + b"\n") + b"\n" + later)[0] == 422)
        check(w.post(b"old 1\n\n" + first)[0] == 200, "the same once more")
        # HTTP.
        check(w.post(b"", method="GET")[0] == 405 and w.post(b"", "/")[0] == 404)
        check(w.post(b"x" * 70000)[0] == 413)
        check(w.post(iter([b"old 0\n\n"]), headers={"Transfer-Encoding": "chunked"})[0] == 411)
        check(w.post(b"old 0\n\n" + later)[0] == 409, "it still answers")


@test
def wrong_options_are_said():
    with Place() as p:
        p.append()
        for args, err in ((["--witness", "http://x"], "URL=KEY"),
                          (["--witness", f"http://x={p.vkey}"], "key of a log"),
                          (["--witnesses", "1"], "at most 0")):
            p.expect(2, "checkpoint", "--actor", "ann", "--sign", p.key, *args, err=err)
        w = p.witness()
        p.expect(2, "checkpoint", "--actor", "ann", "--witness", f"{w.url}={w.vkey}", err="--sign")
        p.expect(2, "checkpoint", "--actor", "ann", "--sign", p.key, "--witness", f"ftp://x={w.vkey}",
                 err="http://")
        p.expect(2, "witness", "--key", p.key, "--log", p.vkey, err="--dir DIR")
        p.expect(2, "witness", "--key", p.key, "--dir", p.folder / "d", err="--log KEY")
        p.expect(2, "witness", "--key", p.key, "--dir", p.folder / "d", "--log", w.vkey, err="of a log")
        done = p.run("witness", "--key", p.key, "--dir", w.folder, "--log", p.vkey, "--listen",
                     "127.0.0.1:0")
        check(done.returncode == 3, "one process serves a folder", done.stderr)
        done = p.run("--witness-key", p.vkey, "x", program=VERIFY)
        check(done.returncode == 2 and b"of a witness" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
