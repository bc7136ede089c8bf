#!/usr/bin/env python3
"""cortex up from outside: from nothing to a served session, and what it refuses."""
import json
import os
import signal
import subprocess
import time
import urllib.request

from kit import BIN, Folder, check, clean_env, main, run, skip, test

PATIENCE_S = 60
FREE = ["--listen", "127.0.0.1:0"]


def line(number, text):
    return json.dumps({"type": "assistant" if number % 2 else "user", "uuid": f"u{number}",
                       "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s",
                       "timestamp": f"2026-11-01T10:00:{number:02}.000Z",
                       "message": {"role": "assistant" if number % 2 else "user",
                                   "content": text}}) + "\n"


class Person:
    """A home folder, and a program that stands for the one that opens addresses."""

    def __enter__(self):
        self.folder = Folder("cortex-up-")
        self.root = self.folder.__enter__()
        self.home = self.root / "data" / "cortex"
        self.sessions = self.root / ".claude" / "projects" / "p"
        self.opened = self.root / "opened"
        opener = self.root / "bin" / "xdg-open"
        opener.parent.mkdir()
        opener.write_text('#!/bin/sh\n[ "$1" = --version ] || echo "$1" >>"$OPENED"\n')
        opener.chmod(0o755)
        self.env = clean_env(HOME=self.root, BROWSER="x", OPENED=self.opened,
                             PATH=f"{opener.parent}:{os.environ['PATH']}")
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "DISPLAY", "WAYLAND_DISPLAY"):
            self.env.pop(name, None)
        self.process = None
        return self

    def __exit__(self, *_):
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
        self.folder.__exit__()

    def write(self, name, *texts):
        self.sessions.mkdir(parents=True, exist_ok=True)
        path = self.sessions / name
        path.write_text("".join(line(i, text) for i, text in enumerate(texts)))
        return path

    def up(self, *options, otlp="off"):
        self.process = subprocess.Popen([BIN, "up", "--home", self.home, "--json", *FREE, "--otlp", otlp,
                                         *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=self.env)
        said = self.process.stdout.readline()
        check(said, "it ended with", self.process.poll())
        return json.loads(said)

    def run(self, *args):
        return run(BIN, *args, env=self.env)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        check(self.process.wait(PATIENCE_S) == 0, "it did not end well")

    def get(self, url, path):
        token = (self.home / "token").read_text().strip()
        asked = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def await_true(self, condition, *what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            check(time.monotonic() < end, *what)
            time.sleep(0.05)


@test
def from_nothing_to_the_newest_session():
    with Person() as p:
        os.utime(p.write("old.jsonl", "an older question", "x"), (1e9, 1e9))
        p.write("agent-1.jsonl", "a subagent is no session of a person")
        os.utime(p.write("new.jsonl", "the newest question", "its answer"), (1.1e9, 1.1e9))
        said = p.up()
        check(said["home"] == str(p.home) and not said["already_running"], said)
        view = p.get(said["url"], f"/api/v1/view/{said['session']}/summary")
        check(view["nodes"] >= 2, view)
        found = p.run("watch", "--list", "--json", "--home", p.home).stdout.decode().splitlines()
        newest = [s for s in map(json.loads, found) if s["file"].endswith("/new.jsonl")]
        check(said["session"] == "session/" + newest[0]["session"], said, found)
        p.await_true(lambda: len(p.run("watch", "--list", "--home", p.home).stdout.splitlines()) == 3,
                     "the other sessions were not archived")
        p.write("later.jsonl", "a session that comes later", "y")
        p.await_true(lambda: len(p.run("watch", "--list", "--home", p.home).stdout.splitlines()) == 4,
                     "a later session was not archived")
        p.end()
        check(not (p.home / "server.json").exists(), "it is still described")
        tokens = p.run("token", "list", "--home", p.home).stdout.decode()
        check("up-" not in tokens and "first" in tokens, "the browser's token stayed", tokens)
        check(p.run("verify", "--home", p.home).returncode == 0)
        if not said["page"]:
            skip("the program was built without the page")
        p.await_true(p.opened.exists, "no browser was opened")
        address = p.opened.read_text().strip()
        check(address.startswith(said["url"] + "/#token=cortex_"), address)
        check(address.endswith("&to=%2Fdebugger%2F" + said["session"]), address)


@test
def folders_of_sessions_may_come_later():
    with Person() as p:
        said = p.up("--no-open")
        check(said["session"] is None and not p.opened.exists(), said)
        p.write("s.jsonl", "the first session of all", "x")
        p.await_true(lambda: p.run("watch", "--list", "--home", p.home).stdout,
                     "a folder that came later was not found")
        p.end()


@test
def a_running_server_is_opened():
    with Person() as p:
        said = p.up("--no-watch", "--no-open")
        again = p.run("up", "--home", p.home, "--json", "--no-open")
        check(again.returncode == 0, again.stderr)
        told = json.loads(again.stdout)
        check(told["already_running"] and told["url"] == said["url"], told)
        check(p.run("up", "--home", p.home).returncode == 0)
        p.process.kill()
        p.process.wait()
        check((p.home / "server.json").exists(), "a killed server cannot remove its description")
        p.process.stdout.close()
        check(not p.up("--no-watch", "--no-open")["already_running"], "a killed server was found")
        p.end()


@test
def the_page_is_told_where_to_send():
    with Person() as p:
        said = p.up("--no-watch", "--no-open", otlp="127.0.0.1:0")
        session = p.get(said["url"], "/api/v1/session")
        check(session["otlp_url"] == said["otlp_url"] and said["otlp_url"], session, said)
        check(session["token_file"] == str(p.home / "token"), session)
        p.end()


@test
def what_cannot_be_served_is_refused():
    with Person() as p:
        (p.root / "other").mkdir()
        (p.root / "other" / "file").write_text("x")
        for options, words in ((("--home", p.root / "other"), b"has files"),
                               (("--listen", "192.0.2.1:1"), b"expected an address of loopback"),
                               (("--listen", "nowhere"), b"expected ADDRESS:PORT"),
                               (("--no-watch", "dir"), b"either DIR or --no-watch"),
                               ((p.root / "missing",), b"does not exist")):
            done = p.run("up", "--no-open", *({"--home": ()}.get(options[0], ("--home", p.home))),
                         *options, "--otlp", "off", *(() if options[0] == "--listen" else FREE))
            check(done.returncode == 2 and words in done.stderr, options, done.stderr)
        check(os.listdir(p.root / "other") == ["file"], "something was written")


main()
