#!/usr/bin/env python3
"""cortex watch from outside: session files that grow, are cut, move, are watched twice.

CORTEX_WATCH_FULL=1 also archives a file of 100 MB.
"""
import json
import os
import pathlib
import signal
import subprocess
import time

from kit import BIN, Folder, check, main, run, skip, test

ENV = {k: v for k, v in os.environ.items()
       if k not in ("CORTEX_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME")}
PATIENCE_S = 60


def line(number, text="", session="s1"):
    return json.dumps({"type": "user" if number % 2 else "assistant", "uuid": f"u{number}",
                       "parentUuid": f"u{number - 1}" if number else None, "sessionId": session,
                       "timestamp": f"2026-11-01T10:00:{number % 60:02}.000Z",
                       "message": {"role": "user" if number % 2 else "assistant",
                                   "content": text or f"line {number}"}}).encode() + b"\n"


def rollout(number):
    if number == 0:
        body = {"timestamp": "2026-11-01T10:00:00Z", "type": "session_meta",
                "payload": {"id": "c1", "cwd": "/", "cli_version": "1"}}
    else:
        body = {"timestamp": f"2026-11-01T10:00:{number:02}Z", "type": "response_item",
                "payload": {"type": "message", "role": "assistant",
                            "content": [{"type": "output_text", "text": f"word {number}"}]}}
    return json.dumps(body).encode() + b"\n"


class Place:
    """with Place() as p: a home, and a folder for sessions."""

    def __enter__(self):
        self.folder = Folder("cortex-watch-")
        root = self.folder.__enter__()
        self.home, self.root = root / "home", root / "projects"
        self.root.mkdir()
        self.command("init", "--no-repo")
        self.running = []
        return self

    def __exit__(self, *_):
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
        self.folder.__exit__()

    def command(self, *args, expect=0, env=None):
        done = run(BIN, *args, "--home", self.home, env=env or ENV)
        check(done.returncode == expect, args, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    def once(self, expect=0):
        lines = self.command("watch", "--once", "--json", self.root, expect=expect).splitlines()
        return json.loads(lines[-1]), [json.loads(text) for text in lines[:-1]]

    def watch(self, *options):
        process = subprocess.Popen([BIN, "watch", "--home", self.home, "--json", *options, self.root],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV)
        process.stderr.close()
        self.running.append(process)
        return process

    def sessions(self):
        found = [json.loads(text) for text in self.command("watch", "--list", "--json").splitlines()]
        return {(pathlib.Path(s["file"]).name, s["generation"]): s for s in found}

    def archived(self, name, generation=0):
        """The bytes of a session, put together from the ledger's entries; None when there is none."""
        session = self.sessions().get((name, generation))
        if session is None:
            return None
        who = f"watch:{session['session']}@"
        pieces = {}
        for text in self.command("log", "--all", "--actor", "sessions", "--json").splitlines():
            entry = json.loads(text)
            if not entry["created_by"].startswith(who):
                continue
            offset = int(entry["created_by"][len(who):])
            check(offset not in pieces, "two pieces at", offset)
            payload = entry["payload"]
            pieces[offset] = bytes.fromhex(payload["hex"]) if isinstance(payload, dict) \
                else payload.encode()
        whole = b""
        for offset in sorted(pieces):
            check(offset == len(whole), "a gap or an overlap at", offset)
            whole += pieces[offset]
        check(len(whole) == session["bytes"], len(whole), session)
        return whole

    def await_bytes(self, name, wanted, generation=0):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            got = self.sessions().get((name, generation), {"bytes": 0})["bytes"]
            if got >= len(wanted):
                break
            time.sleep(0.05)
        found = self.archived(name, generation)
        check(found == wanted, name, found and len(found), len(wanted))


@test
def existing_session_files_are_archived_once():
    with Place() as p:
        lines = b"".join(map(line, range(20)))
        (p.root / "a").mkdir()
        (p.root / "a" / "s1.jsonl").write_bytes(lines + b'{"type":"us')
        (p.root / "rollout-1.jsonl").write_bytes(b"".join(map(rollout, range(5))))
        (p.root / "notes.jsonl").write_bytes(b'{"x":1}\n')
        (p.root / "readme.md").write_bytes(b"hello\n")
        (p.root / "empty.jsonl").write_bytes(b"")
        (p.root / "link.jsonl").symlink_to(p.root / "a" / "s1.jsonl")
        total, steps = p.once()
        check(total["sessions"] == 3 and total["lines"] == 26, total)
        check(total["unknown"] == 1 and total["waiting_bytes"] == 11, total)
        check({step["format"] for step in steps} == {"claude-code", "codex", "unread"}, steps)
        check(p.archived("s1.jsonl") == lines)
        again, steps = p.once()
        check(again["bytes"] == 0 and not steps, again)
        with (p.root / "a" / "s1.jsonl").open("ab") as file:
            file.write(b'er"}\n' + line(21))
        total, _ = p.once()
        check(total["lines"] == 2, total)
        check(p.archived("s1.jsonl") == (p.root / "a" / "s1.jsonl").read_bytes())
        p.command("verify")
        p.command("lattice", "verify", "@session/s1")
        heads = json.loads(p.command("lattice", "heads", "@session/rollout-1", "--json"))
        check("codex" in [head["agent"] for head in heads["heads"]], heads)


@test
def the_archived_session_equals_the_import():
    with Place() as p:
        path = p.root / "s1.jsonl"
        path.write_bytes(b"".join(map(line, range(30))))
        (p.root / "s1" / "subagents").mkdir(parents=True)
        helper = p.root / "s1" / "subagents" / "agent-7.jsonl"
        helper.write_bytes(b"".join(line(i, session="s1").replace(b'"type"', b'"agentId":"7","type"')
                                    for i in range(100, 104)))
        p.once()
        out = p.root.parent / "lattice.jsonl"
        run(BIN, "import", "claude-code", path, helper, "-o", out)
        direct = run(BIN, "lattice", "heads", out, "--json").stdout.decode()
        check(p.command("lattice", "heads", "@session/s1", "--json") == direct, direct)
        session = p.sessions()[("s1.jsonl", 0)]["session"]
        check(p.command("lattice", "heads", "@session/" + session, "--json") == direct)
        p.command("lattice", "heads", "@session/none", expect=2)
        (p.root / "other").mkdir()
        (p.root / "other" / "s1.jsonl").write_bytes(line(0))
        p.once()
        done = run(BIN, "lattice", "heads", "@session/s1", "--home", p.home, env=ENV)
        check(done.returncode != 0 and b"several" in done.stderr, done)


@test
def a_growing_session_is_archived_line_by_line():
    with Place() as p:
        process = p.watch()
        path, wanted = p.root / "s1.jsonl", b""
        with path.open("ab", buffering=0) as file:
            for number in range(12):
                text = line(number)
                file.write(text[:7])
                time.sleep(0.01)
                file.write(text[7:])
                wanted += text
                if number % 4 == 0:
                    p.await_bytes("s1.jsonl", wanted)
        p.await_bytes("s1.jsonl", wanted)
        folder = p.root / "later" / "deep"
        folder.mkdir(parents=True)
        (folder / "s2.jsonl").write_bytes(line(1))
        p.await_bytes("s2.jsonl", line(1))
        process.send_signal(signal.SIGTERM)
        check(process.wait(PATIENCE_S) == 0, "it did not end well")
        lines = process.stdout.read().decode().splitlines()
        check(json.loads(lines[-1])["lines"] == 13, lines[-1])


@test
def a_watcher_killed_at_any_moment_resumes():
    with Place() as p:
        path, wanted, number = p.root / "s1.jsonl", b"", 0
        for _ in range(8):
            process = p.watch()
            end = time.monotonic() + 0.25
            with path.open("ab", buffering=0) as file:
                while time.monotonic() < end:
                    text = line(number, "x" * (number * 37 % 900))
                    file.write(text)
                    wanted += text
                    number += 1
                    time.sleep(0.002)
            process.kill()
            process.wait()
        p.once()
        check(p.archived("s1.jsonl") == wanted, "bytes are missing, or twice there")
        p.command("verify")


@test
def two_watchers_archive_once():
    with Place() as p:
        first, second = p.watch(), p.watch()
        wanted = {}
        for name in ("a.jsonl", "b.jsonl"):
            with (p.root / name).open("ab", buffering=0) as file:
                for number in range(60):
                    file.write(line(number))
                    time.sleep(0.004)
            wanted[name] = b"".join(map(line, range(60)))
        for name, text in wanted.items():
            p.await_bytes(name, text)
        for process in (first, second):
            process.send_signal(signal.SIGTERM)
            check(process.wait(PATIENCE_S) == 0)


@test
def a_truncated_and_rewritten_session_is_archived():
    with Place() as p:
        path = p.root / "s1.jsonl"
        old = b"".join(map(line, range(10)))
        path.write_bytes(old)
        p.once()
        path.write_bytes(line(0))                         # shorter
        p.once()
        check(p.archived("s1.jsonl", 1) == line(0) and p.archived("s1.jsonl") == old)
        other = b"".join(line(i, "anew") for i in range(20))
        path.write_bytes(other)                           # longer, and other bytes
        p.once()
        check(p.archived("s1.jsonl", 2) == other, p.sessions())
        path.write_bytes(other + line(21))                # written anew, but the same so far
        p.once()
        check(p.archived("s1.jsonl", 2) == other + line(21), p.sessions())
        p.command("verify")


@test
def a_renamed_and_replaced_session_is_archived():
    with Place() as p:
        path, moved = p.root / "s1.jsonl", p.root / "kept.jsonl"
        path.write_bytes(line(0) + line(1))
        p.once()
        path.rename(moved)
        with moved.open("ab") as file:
            file.write(line(2))
        path.write_bytes(line(0, "another"))
        p.once()
        whole = line(0) + line(1) + line(2)
        sessions = p.sessions()
        texts = sorted(p.archived(*key) for key in sessions)
        check(line(0, "another") in texts, sessions)
        check(sum(map(len, texts)) <= 2 * len(whole) + len(line(0, "another")), "archived again and again")
        before = p.sessions()
        p.once()
        check(p.sessions() == before, "it does not come to rest")
        other = p.root / "moves.jsonl"
        other.write_bytes(line(7))
        p.once()
        other.rename(p.root / "moved-on.jsonl")
        with (p.root / "moved-on.jsonl").open("ab") as file:
            file.write(line(8))
        p.once()
        check(p.archived("moved-on.jsonl") == line(7) + line(8), p.sessions())


@test
def sessions_are_archived_through_a_server():
    with Place() as p:
        server = subprocess.Popen([BIN, "serve", "--home", p.home, "--listen", "127.0.0.1:0",
                                   "--otlp", "off", "--json"], stdout=subprocess.PIPE, env=ENV,
                                  stderr=subprocess.DEVNULL)
        p.running.append(server)
        check(server.stdout.readline(), "no server")
        watcher = p.watch()
        with (p.root / "s1.jsonl").open("ab", buffering=0) as file:
            for number in range(20):
                file.write(line(number))
                if number == 10:
                    server.kill()                         # the watcher takes the home itself
                    server.wait()
                time.sleep(0.02)
        p.await_bytes("s1.jsonl", b"".join(map(line, range(20))))
        watcher.send_signal(signal.SIGTERM)
        check(watcher.wait(PATIENCE_S) == 0)


@test
def a_session_that_begins_with_a_pasted_file_is_recognised():
    """The first line is longer than any fixed head; what it says of itself comes at its end."""
    for size in (70_000, 3_000_000):
        with Place() as p:
            long = json.dumps({"message": {"role": "user", "content": "x" * size}, "type": "user",
                               "uuid": "u0", "parentUuid": None, "sessionId": "s1",
                               "timestamp": "2026-11-01T10:00:00.000Z"}).encode() + b"\n"
            path = p.root / "s1.jsonl"
            path.write_bytes(long + line(1))
            total, steps = p.once()
            check(total["unknown"] == 0 and {s["format"] for s in steps} == {"claude-code"}, steps)
            check(p.archived("s1.jsonl") == path.read_bytes())
            p.command("lattice", "verify", "@session/s1")
            for args in (["import", "auto", path], ["verify", path]):
                done = run(BIN, *args, env=ENV)
                check(b"claude-code" in done.stderr or done.returncode == 0, args, done.stderr)
            check(run(BIN, "verify", path, env=ENV).returncode == 3)


@test
def a_file_of_no_known_format_is_archived_as_bytes_and_shown():
    with Place() as p:
        other = p.root / "other.jsonl"
        other.write_bytes(b'{"x":1}\nnot even JSON\n')
        base = p.root / "state.jsonl"
        base.write_bytes(b"SQLite format 3\0" + bytes(84) + b"\n")
        done = run(BIN, "watch", "--once", p.root, "--home", p.home, env=ENV)
        check(done.returncode == 0, done.stderr)
        check(b"other.jsonl is of no known format: archived as bytes" in done.stderr, done.stderr)
        check(p.archived("other.jsonl") == other.read_bytes())
        check(b"state.jsonl is a SQLite" in done.stderr, done.stderr)
        check(p.archived("state.jsonl") == base.read_bytes())
        check("2 of them unread" in p.command("status"))
        ledger = json.loads(p.command("status", "--json"))["ledger"]
        check(ledger["unread_files"] == 2 and ledger["session_files"] == 2, ledger)
        done = run(BIN, "lattice", "verify", "@session/other", "--home", p.home, env=ENV)
        check(done.returncode == 3 and b"no known format" in done.stderr, done.stderr)
        with other.open("ab") as file:
            file.write(b"".join(map(line, range(4))))
        _, steps = p.once()
        check(steps[0]["format"] == "claude-code", steps)
        check(p.archived("other.jsonl") == other.read_bytes())
        check("1 of them unread" in p.command("status"))


@test
def very_long_lines_are_archived_or_reported():
    with Place() as p:
        text = line(0, "x" * 5_000_000) + line(1) + line(2, "y" * 2_100_000)
        (p.root / "s1.jsonl").write_bytes(text)
        p.once()
        check(p.archived("s1.jsonl") == text)
        p.command("lattice", "verify", "@session/s1")


@test
def erased_parts_of_a_session_are_gone():
    with Place() as p:
        path = p.root / "s1.jsonl"
        path.write_bytes(line(0, "the secret"))
        p.once()
        with path.open("ab") as file:
            file.write(line(1))
        p.once()
        p.command("erase", "0", "--actor", "sessions", "--reason", "it held a secret")
        total, _ = p.once()
        check(total["bytes"] == 0, "it was archived again", total)
        heads = json.loads(p.command("lattice", "heads", "@session/s1", "--json"))
        check(sum(h["seq"] + 1 for h in heads["heads"]) == 2, heads)   # the file's node and line 1
        p.command("verify")
        for kept in p.home.rglob("*"):
            check(not kept.is_file() or b"the secret" not in kept.read_bytes(), kept)


@test
def default_session_folders_are_watched():
    with Place() as p:
        user = p.root.parent / "user"
        (user / ".claude" / "projects" / "x").mkdir(parents=True)
        (user / ".codex" / "sessions" / "2026" / "11").mkdir(parents=True)
        (user / ".claude" / "projects" / "x" / "s.jsonl").write_bytes(line(0))
        (user / ".codex" / "sessions" / "2026" / "11" / "rollout-2.jsonl").write_bytes(rollout(0))
        env = dict(ENV, HOME=str(user))
        p.command("watch", "--once", env=env)
        check(len(p.sessions()) == 2, p.sessions())
        empty = p.root.parent / "empty"
        empty.mkdir()
        p.command("watch", "--once", env=dict(ENV, HOME=str(empty)), expect=2)
        p.command("watch", "--once", env=dict(env, CODEX_HOME=str(empty)))


@test
def watch_reports_usage_errors():
    with Place() as p:
        p.command("watch", "--once", p.root / "none", expect=2)
        (p.root / "file").write_bytes(b"x")
        p.command("watch", "--once", p.root / "file", expect=2)
        p.command("watch", "--once", "--rescan", "0", p.root, expect=2)
        check(p.command("watch", "--list") == "")
        if os.geteuid() != 0:
            (p.root / "closed.jsonl").write_bytes(line(0))
            (p.root / "closed.jsonl").chmod(0)
            p.command("watch", "--once", p.root, expect=3)
        done = run(BIN, "watch", "--once", p.root, "--home", p.root / "nohome", env=ENV)
        (p.root / "s.jsonl").write_bytes(line(0))
        done = run(BIN, "watch", "--once", p.root, "--home", p.root / "nohome", env=ENV)
        check(done.returncode in (2, 3) and b"home" in done.stderr, done)


@test
def real_session_files_are_archived():
    folder = pathlib.Path(os.environ.get("CORTEX_TESTDATA", "/nonexistent")) / "data" / "claude_code"
    if not folder.is_dir():
        skip("$CORTEX_TESTDATA/data/claude_code is not there")
    with Place() as p:
        files = sorted(folder.rglob("*.jsonl"))
        for file in files:
            (p.root / file.name).write_bytes(file.read_bytes())
        total, _ = p.once()
        check(total["sessions"] == len(files) and total["unknown"] == 0, total)
        for file in files:
            text = file.read_bytes()
            check(p.archived(file.name) == text[:text.rfind(b"\n") + 1], file)
            p.command("lattice", "verify", "@session/" + file.stem)


@test
def a_session_of_a_hundred_megabytes_is_archived():
    if os.environ.get("CORTEX_WATCH_FULL") != "1":
        skip("CORTEX_WATCH_FULL is not 1")
    with Place() as p:
        with (p.root / "s1.jsonl").open("wb") as file:
            number = size = 0
            while size < 100_000_000:
                size += file.write(line(number, "x" * 400))
                number += 1
        began = time.monotonic()
        total, _ = p.once()
        print(f"100 MB of {number} lines in {time.monotonic() - began:.1f} s")
        check(total["lines"] == number and total["bytes"] == size, total)
        p.command("lattice", "heads", "@session/s1")


if __name__ == "__main__":
    main()
