#!/usr/bin/env python3
"""What `cortex hook` takes a shell's line for, against what shells do: random lines are decided, and run by
bash and by sh, with programs that only write down how they were called.  Of a line that would be allowed, every
program that ran was judged with these words, and every file that was made is among the writes.

CORTEX_SHELL_LINES is how many lines (default 150), CORTEX_SHELL_SEED the seed.
Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import random
import select
import shutil
import subprocess

import kit
from kit import BIN, check, clean_env, main, run, skip, test

LINES = int(os.environ.get("CORTEX_SHELL_LINES", "150"))
SEED = int(os.environ.get("CORTEX_SHELL_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
PROGRAMS = ("cat", "ls", "wc", "head", "tail", "grep", "touch", "mkdir", "cp", "sort", "cut", "stat", "tee", "rm")
STUB = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" END-OF-CALL >> "$CALLS"
exit $((${#1} % 2))
"""


class Lines:
    """A grammar of lines; most of what it makes is plain, so that much is allowed."""

    def __init__(self, chance):
        self.chance = chance

    def pick(self, *texts):
        return self.chance.choice(texts)

    def few(self, make, least, most, between):
        return between.join(make() for _ in range(self.chance.randint(least, most)))

    def word(self):
        if self.chance.random() < 0.75:
            return self.pick("a", "b", "x1", "in", "src", "-n", "-l", "--", "f.c", "a-b", "1", "dir/a", ".")
        return self.pick(
            "'a b'", '"a b"', "a\\ b", "'$x'", '"\\$x"', "a'b'\"c\"", "''", '""', "\\a", "'\\'", '"a\\b"', '"`true`"', "$x",
            "${x}", '"$x"', "$(ls a)", "`ls b`", '"$(cat a)"', "*", "a*", "[ab]", "?", "{a,b}", "x{1,2}y", "~", "$'a\\nb'",
            "$((1+1))", "#a", "a#b", "!", "a=b", "%", "\\\nrest", "'multi\nline'", '"q\\"q"', "é", "\\;", "';'", "a\\\\", "=",
            "if", "do", "{", "}", "<(ls a)", "$\"a\"", "a:b", "--x=$(ls)", "\"${x:-$(ls in)}\"", "^a", "\\\"", "'a'\\''b'",
            "$#", "$@", "\t", "$'\\x27'", "$'\\''", "\"a\nb\"", "\\$(ls)", "'`ls`'", "a\rb")

    def redirect(self):
        return self.pick("> out", ">> out", "< a", "2> err", "2>&1", "> 'o p'", ">out2", "&> both", ">| out", "<> rw", "> $x",
                         ">&out3", "3> three", "<<< a", "> out > out4", "2>/dev/null", "{fd}> four", "1>&2", "> ./*", "> ../up", ">&1x", ">&1/../z")

    def simple(self):
        words = [self.pick(*PROGRAMS)] + [self.word() for _ in range(self.chance.randint(0, 3))]
        if self.chance.random() < 0.15:
            words.insert(self.chance.randint(0, len(words)), self.redirect())
        if self.chance.random() < 0.04:
            words.insert(0, self.pick("A=1", "x=b", "PATH=.", "!", "time", "command", "exec", "\\", "''"))
        if self.chance.random() < 0.04:
            return self.pick("echo a", "true", ":", "cd src", "x=a", "set -e", "echo $(ls a)", "eval ls", "ls() { cat; }", "false",
                             "[ -f a ]", "[[ a == b ]]", "printf '%s' a", "alias ls=cat", "((1))", "source a", ". ./a", "unset x",
                             "export x=1", "cd dir", "cd nope", "cd ..", "cd src && ls > ../up", "(cd src; ls > made)", "trap 'ls a' EXIT", "exit", "echo a | xargs rm", "let x=1", "coproc ls", "pwd")
        return " ".join(words)

    def compound(self, depth):
        inner = lambda: self.lines(depth + 1)  # noqa: E731
        return self.pick(
            "(%s)", "{ %s; }", "if %s; then ls y; fi", "if true; then %s; else cat z; fi", "for i in a b; do %s; done",
            "for i in $(ls a); do %s; done", "while false; do %s; done", "until true; do %s; done", "! %s", "( %s ) > out",
            "{ %s; } 2> err", "case a in a) %s;; esac", "f() { %s; }; f", "if ls q\nthen\n%s\nfi", "(%s) & wait",
            "for i in 1 2\ndo %s\ndone", "if false; then ls; elif true; then %s; fi").replace("%s", inner())

    def here(self):
        mark = self.pick("EOF", "'EOF'", '"EOF"', "-EOF", "E\\OF")
        body = self.pick("text", "$(ls h)", "`ls h`", "a\\\nb", "$x", "", "\tindented", "EOF ", "'x", "\\$(ls h)")
        indent = "\t" if mark == "-EOF" and self.chance.random() < 0.5 else ""
        return f"cat <<{mark}{self.pick('', ' > out', ' | wc', '; ls a', ' && ls b')}\n{body}\n{indent}EOF\n{self.pick('', 'ls after')}"

    def part(self, depth):
        roll = self.chance.random()
        if depth < 3 and roll < 0.13:
            return self.compound(depth)
        if depth == 0 and roll < 0.18:
            return self.here()
        return self.simple()

    def lines(self, depth=0):
        text = self.part(depth)
        for _ in range(self.chance.choice((0, 0, 0, 1, 1, 2))):
            text += self.pick(" | ", " && ", " || ", "; ", ";", "\n", " & ", "|", "&&", " |& ", " \\\n&& ", " # note\n") + \
                self.part(depth)
        return text


def shown(words):
    """As an effect says it (src/live/commands.c)."""
    plain = set(" \t\n'\"\\|&;<>()")
    texts = [word if word and not set(word) & plain else f"'{word}'" for word in words]
    return " ".join(texts)


def calls_of(log):
    """What the programs wrote down: lists of words."""
    if not log.exists():
        return []
    calls, words = [], []
    for part in log.read_bytes().split(b"\0")[:-1]:
        if part == b"END-OF-CALL":
            calls.append(words)
            words = []
        else:
            words.append(part.decode(errors="replace"))
    return calls


class Ground(kit.Folder):
    """A repository, a data directory, and a folder with the programs that write down."""

    def __enter__(self):
        self.folder = super().__enter__()
        self.home, self.bin, self.lines = self.folder / "home", self.folder / "bin", 0
        self.env = clean_env(HOME=self.folder / "user", USER="ann", LOGNAME="ann")
        (self.folder / "user").mkdir()
        self.bin.mkdir()
        for name in PROGRAMS:
            (self.bin / name).write_text(STUB)
            (self.bin / name).chmod(0o755)
        check(run(BIN, "init", "--home", self.home, env=self.env).returncode == 0)
        return self

    def place(self):
        repo = self.folder / "repo"
        if repo.exists():
            kit.remove(repo)
        (repo / "src").mkdir(parents=True)
        (repo / "dir").mkdir()
        for name in ("a", "b", "in", "f.c", "dir/a"):
            (repo / name).write_text("a\n")
        return repo

    def run(self, shell, line):
        """(calls, files made) of the line in a fresh place, with what it left in the background: its processes hold
        the write end of a pipe, and the log is of this line alone."""
        repo = self.place()
        self.lines += 1
        log = self.folder / f"calls{self.lines}"
        before = {path for path in repo.rglob("*")}
        done, held = os.pipe()
        try:
            subprocess.run([shell, "-c", line], cwd=repo, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env={"PATH": str(self.bin), "CALLS": str(log), "HOME": str(repo)},
                           timeout=20, check=False, pass_fds=(held,))
        except subprocess.TimeoutExpired:
            pass
        os.close(held)
        select.select([done], [], [], 20)
        os.close(done)
        calls = calls_of(log)
        log.unlink(missing_ok=True)
        return calls, {str(path) for path in repo.rglob("*") if path not in before}

    def decide(self, lines):
        """The decisions, in the order of the lines."""
        repo = self.place()
        for n, line in enumerate(lines):
            payload = {"session_id": "s1", "cwd": str(repo), "hook_event_name": "PreToolUse", "tool_name": "Bash",
                       "tool_input": {"command": line}, "tool_use_id": f"c{n}"}
            done = run(BIN, "hook", "codex", "--home", self.home, "--deadline", "60", stdin=json.dumps(payload).encode(),
                       env=self.env)
            check(done.returncode == 0, line, done.stderr)
        done = run(BIN, "session", "show", "s1", "--all", "--json", "--home", self.home, env=self.env)
        return [e["payload"] for e in json.loads(done.stdout)["entries"] if e["kind"] == "live.decision"]


@test
def what_runs_was_judged():
    shells = [shell for shell in ("bash", "dash", "sh") if shutil.which(shell)]
    if not shells:
        skip("there is no shell")
    shells = [shutil.which(shell) for shell in shells]
    chance = random.Random(SEED)
    lines = [Lines(chance).lines() for _ in range(LINES)]
    allowed = ran = 0
    problems = []
    with Ground() as ground:
        decisions = ground.decide(lines)
        check(len(decisions) == len(lines), len(decisions))
        for line, decision in zip(lines, decisions):
            if decision["would"] != "allow":
                continue
            allowed += 1
            judged = {effect["text"] for effect in decision["effects"] if effect["kind"] == "command"}
            writes = {effect["text"] for effect in decision["effects"] if effect["kind"] == "write"}
            for shell in shells:
                calls, made = ground.run(shell, line)
                ran += len(calls)
                for words in calls:
                    words = ["~" if word == str(ground.folder / "repo") else word for word in words]
                    if shown(words) not in judged and not any_glob(words, judged):
                        problems.append(f"{shell} {line!r}: ran {words}, judged {sorted(judged)}")
                for path in made:
                    if path not in writes:
                        problems.append(f"{shell} {line!r}: made {path}, judged {sorted(writes)}")
    print(f"seed {SEED}: {len(lines)} lines, {allowed} would be allowed, {ran} calls in {len(shells)} shells")
    check(not problems, "seed", SEED, "\n" + "\n".join(problems[:20]))
    check(LINES < 100 or (allowed > LINES // 10 and ran > LINES // 10), "nothing was tested")


def any_glob(words, judged):
    """Patterns that cannot become options are judged as they are written."""
    return any(set(text) & set("*?[") and text.split(" ")[0] == words[0] for text in judged)


main()
