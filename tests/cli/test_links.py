#!/usr/bin/env python3
"""Links to files in a terminal (OSC 8): where they are made, what they open, and that no name makes one of its own.

    test_links.py [PROGRAM] [WORDS..]     PROGRAM defaults to $CORTEX_BIN
"""
import json
import os
import pty
import re
import select
import socket
import subprocess
import tty
import urllib.parse

from kit import BIN, Folder, check, clean_env, main, run, test

GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
       "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
LINK = re.compile(r"\x1b\]8;;([^\x1b]+)\x1b\\([^\x1b]*)\x1b\]8;;\x1b\\")


class Repo(Folder):
    def __enter__(self):
        self.folder = super().__enter__()
        self.path = self.folder / "my repo"
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("src/a b.c", "int a;\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "base")
        return self

    def env(self, **more):
        return clean_env(HOME=str(self.folder), **{**GIT, **more})

    def git(self, *words):
        done = run("git", "-C", self.path, *words, env=self.env())
        check(done.returncode == 0, words, done.stderr)

    def write(self, name, text):
        path = os.path.join(os.fsencode(self.path), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def pipe(self, *words, env=None):
        done = run(BIN, *words, env=self.env(**(env or {})), cwd=self.path)
        return done.stdout.decode()

    def terminal(self, *words, **env):
        ours, theirs = pty.openpty()
        tty.setraw(theirs)
        started = subprocess.Popen([BIN, *words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                                   cwd=self.path, env=self.env(**{"TERM": "xterm-256color", "NO_COLOR": "", **env}))
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:
                break
            if not part:
                break
            seen += part
        os.close(ours)
        started.wait(60)
        return seen.decode()


GATE = ("gate", "diff", "--allow", "docs/")


@test
def links_are_for_terminals_that_may_know_them():
    with Repo() as repo:
        repo.write("src/a b.c", "int b;\n")
        check(LINK.search(repo.pipe(*GATE)) is None, "a pipe has links")
        check("\x1b" not in repo.pipe(*GATE), "a pipe has sequences")
        check(LINK.search(repo.terminal(*GATE)) is not None, repo.terminal(*GATE))
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}, {"TERM": "linux"}, {"TERM": "vt100"}):
            text = repo.terminal(*GATE, **env)
            check("src/a b.c" in text and "\x1b]" not in text, env, text)
        check("\x1b]" not in repo.terminal(*GATE, "--links", "never"))
        for env in ({}, {"NO_COLOR": "1"}, {"TERM": "linux"}):
            check(LINK.search(repo.pipe(*GATE, "--links", "always", env=env)) is not None, env)
        # What is written to a file, or is no text, has none.
        repo.pipe(*GATE, "--links", "always", "-o", repo.folder / "out.txt")
        check("\x1b" not in (repo.folder / "out.txt").read_text())
        for form in ("json", "sarif", "junit"):
            check("\x1b" not in repo.pipe(*GATE, "--links", "always", "--format", form), form)
        done = run(BIN, *GATE, "--links", "sometimes", env=repo.env(), cwd=repo.path)
        check(done.returncode == 2, done.stderr)


@test
def what_they_open_is_an_option():
    with Repo() as repo:
        repo.write("src/a b.c", "int b;\n")
        place = urllib.parse.quote(str(repo.path)) + "/src/a%20b.c"
        host = socket.gethostname()
        for to, wanted in (("file", f"file://{host}{place}"), ("vscode", f"vscode://file{place}"),
                           ("vscodium", f"vscodium://file{place}"), ("cursor", f"cursor://file{place}"),
                           ("idea", f"idea://open?file={place}")):
            found = LINK.findall(repo.pipe(*GATE, "--links", "always", "--link-to", to))
            check(found == [(wanted, "src/a b.c")], found, wanted)
        for to in ("javascript", "http", "vscode://x", ""):
            done = run(BIN, *GATE, "--links", "always", "--link-to", to, env=repo.env(), cwd=repo.path)
            check(done.returncode == 2, to, done.returncode)
        config = repo.folder / "config.toml"
        config.write_text('links = "always"\nlink-to = "vscode"\n')
        found = LINK.findall(repo.pipe(*GATE, env={"CORTEX_CONFIG": str(config)}))
        check(found and found[0][0].startswith("vscode://"), found)


@test
def why_links_to_the_line():
    with Repo() as repo:
        for to, end in (("vscode", ":1"), ("file", "#1"), ("idea", "&line=1")):
            text = repo.pipe("why", "src/a b.c:1", "--links", "always", "--link-to", to)
            found = LINK.findall(text)
            check(len(found) == 1 and found[0][0].endswith("/src/a%20b.c" + end), to, text)
        check("\x1b" not in repo.pipe("why", "src/a b.c:1"))
        check("\x1b" not in repo.pipe("why", "src/a b.c:1", "--links", "always", "--json"))


@test
def a_session_links_to_the_files_of_its_calls():
    with Repo() as repo:
        home = str(repo.folder / "home")
        run(BIN, "init", "--no-repo", "--home", home, env=repo.env())

        def call(number, tool, **given):
            payload = {"hook_event_name": "PreToolUse", "cwd": str(repo.path), "tool_name": tool, "tool_input": given,
                       "session_id": "s1", "tool_use_id": f"c{number}"}
            run(BIN, "hook", "claude", "--home", home, stdin=json.dumps(payload).encode(), env=repo.env())

        call(1, "Read", file_path=f"{repo.path}/src/a b.c", offset=7)
        call(2, "Read", file_path="/etc/hostname")
        call(3, "Read", file_path=f"{repo.path}/../x")
        call(4, "Read", file_path=f"{repo.path}/x\x1b]8;;file:///etc\x1b\\y")
        call(5, "Edit", file_path=f"{repo.path}/src/a b.c", old_string="a", new_string="b")
        call(6, "Bash", command="cat x")
        text = repo.pipe("session", "show", "s1", "--home", home, "--links", "always", "--link-to", "vscode")
        found = [uri.rsplit("/", 2)[1:] for uri, _ in LINK.findall(text)]
        check(found == [["src", "a%20b.c:7"], ["src", "a%20b.c"]], found, text)
        check("\x1b" not in LINK.sub("", text), repr(text))
        for words in ((), ("--links", "always", "--json")):
            check("\x1b" not in repo.pipe("session", "show", "s1", "--home", home, *words))


@test
def no_name_makes_a_link_of_its_own():
    hostile = ["x\x1b]8;;file:///etc/passwd\x1b\\y\x1b]8;;\x1b\\", "x\x1b]8;;http://evil.example\x07y", "a:5.c",
               "back\\slash", "b\u202e.c", "q?x", "h#x", "\u0085.c", "x\x1b[31m", "\x9d8;;file:///a\x9c"]
    with Repo() as repo:
        for name in hostile:
            repo.write(name, "x\n")
        repo.write("p\u00e9 %41;.c", "x\n")
        for to in ("file", "vscode", "idea"):
            text = repo.pipe(*GATE, "--links", "always", "--link-to", to)
            found = LINK.findall(text)
            check([urllib.parse.unquote(uri).rsplit("/", 1)[1] for uri, _ in found] == ["p\u00e9 %41;.c"], found)
            check("\x1b" not in LINK.sub("", text) and "\x07" not in text and "\x9d" not in text, repr(text))
            for uri, _ in found:
                check(re.fullmatch(r"[A-Za-z0-9._~:/?=&#%-]+", uri), uri)


main()
