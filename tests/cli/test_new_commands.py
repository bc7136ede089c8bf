#!/usr/bin/env python3
"""What somebody new meets: errors of the commands about runs as text and JSON, repositories without
commits or with another main branch, FIFOs where files belong.

    test_new_commands.py [PROGRAM] [WORDS..]     PROGRAM defaults to $CORTEX_BIN
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

from kit import BIN, Folder, check, main, run, test
from run_kit import clean_env

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.invalid",
       "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.invalid"}
GIT = shutil.which("git")


class Place:
    """A repository on `branch` and a home beside it."""

    def __init__(self, folder, branch="main", commit=True):
        self.path = pathlib.Path(folder) / "repo"
        self.env = clean_env(CORTEX_HOME=str(pathlib.Path(folder) / "home"), **WHO)
        self.path.mkdir()
        self.git("init", "-q", "-b", branch)
        (self.path / "a.txt").write_text("a\n")
        if commit:
            self.git("add", "-A")
            self.git("commit", "-qm", "base")

    def git(self, *words):
        subprocess.run([GIT, "-C", self.path, *words], check=True, env=self.env, capture_output=True)

    def cortex(self, *words, code=0):
        done = run(BIN, *words, env=self.env, cwd=self.path)
        check(done.returncode == code, words, "exit", done.returncode, "expected", code,
              done.stdout[:500], done.stderr[:500])
        return done

    def config(self):
        return json.loads((self.path / "policies/cortex.json").read_text())


def error_of(done):
    check(done.stdout.count(b"\n") == 1, done.stdout)
    error = json.loads(done.stdout)["error"]
    check(error["code"] and error["message"], error)
    return error


@test
def a_typo_or_a_missing_place_is_said():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init", "--no-repo")
        check(b"did you mean 'status'?" in p.cortex("staus", code=2).stderr)
        check(b"does not exist" in p.cortex("mcp", "--home", "/nonexistent", code=2).stderr)
        check(b"no trace of agent 'nope'" in p.cortex("capacity", "nope", code=2).stderr)


@test
def keys_of_zeros_and_keys_with_a_typo_are_refused():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init", "--no-repo")
        key = "log.example+a8b2ee13+AZcnS5Z0Jh0xVq4eX1t5x2cJm3yqM5pNq4cBzXW1pq0A"
        for bad, words in (("0" * 64, b"a key of zeros"), (key, b"a checksum, does not fit")):
            done = p.cortex("verify", "--home", p.env["CORTEX_HOME"], "--seal-key", bad, code=2)
            check(words in done.stderr, bad, done.stderr)
        done = p.cortex("key", "add", "--id", "k", "--public-key", "A" * 43, code=2)
        check(b"not 32 zero bytes" in done.stderr, done.stderr)


@test
def hooks_install_says_how_to_undo_it():
    with Folder() as folder:
        p = Place(folder)
        done = p.cortex("hooks", "install")
        check(b"'cortex hooks remove' undoes this" in done.stderr, done.stderr)
        p.cortex("hooks", "remove")
        check(not (p.path / ".git/hooks/pre-commit").exists())


@test
def a_token_is_good_for_days():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init", "--no-repo")
        for text, code in (("30d", 0), ("12h", 0), ("4w", 0), ("0d", 2), ("30", 2), ("d", 2),
                           ("99999999999999999999d", 2), ("3y", 2), ("2099-01-31T12:00:00Z", 0)):
            done = p.cortex("token", "add", "--scope", "trace:read", "--expires", text, code=code)
            check(code == 0 or b"30d, 12h" in done.stderr, text, done.stderr)
        shown = p.cortex("token", "list").stdout.decode()
        soon = [line for line in shown.splitlines() if "2099" not in line]
        check(len(soon) == 3 and "expired" not in shown, shown)


@test
def log_without_an_actor_shows_the_newest_of_all():
    with Folder() as folder:
        p = Place(folder)
        p.env.pop("CORTEX_ACTOR", None)
        p.cortex("init", "--no-repo")
        check(p.cortex("log").stdout == b"")
        for actor, text in (("one", "a"), ("two", "b"), ("one", "c")):
            p.cortex("append", "note.x", text, "--actor", actor)
        entries = [json.loads(line) for line in p.cortex("log", "--json").stdout.splitlines()]
        check([(e["actor"], e["payload"]) for e in entries]
              == [("one", "a"), ("two", "b"), ("one", "c")], entries)
        last = p.cortex("log", "-n", "2").stdout.decode().splitlines()
        check([line.split()[0] for line in last] == ["two", "one"], last)
        only = p.cortex("log", "--actor", "two", "--json").stdout.splitlines()
        check(len(only) == 1, only)


@test
def usage_errors_of_new_commands_are_json():
    with Folder() as folder:
        p = Place(folder)
        for words in (["run", "--json"], ["run", "--json", "--nonsense", "x"],
                      ["run", "export", "x", "--json"], ["contract", "lint", "--format", "json"],
                      ["contract", "hash", "--json", "a", "b"], ["gate", "diff", "--format=json"],
                      ["gate", "command", "--json"], ["approve", "--json"]):
            done = p.cortex(*words, code=2)
            check(error_of(done)["code"] == "U_USAGE", words, done.stdout)
            check(done.stderr.startswith(b"cortex: " + words[0].encode()), words, done.stderr)
        done = p.cortex("run", "--", "--json", "--json", code=2)
        check(done.stdout == b"", "words after -- are operands:", done.stdout)


@test
def errors_name_a_place_only_where_there_is_one():
    with Folder() as folder:
        p = Place(folder)
        missing = p.cortex("contract", "lint", "no.json", "--json", code=3)
        check(b":0:0:" not in missing.stderr, missing.stderr)
        check(b"no.json" in missing.stderr and missing.stderr.count(b"\n") == 1, missing.stderr)
        error_of(missing)


@test
def init_writes_what_runs_need_and_nothing_else():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init", "--yes")
        made = {entry.name for entry in p.path.iterdir()}
        check(made == {".git", ".gitignore", ".runtime-cache", "a.txt", "policies", "schemas"}, made)
        check(not (p.path / "schemas/answers").exists())


@test
def the_only_branch_is_the_main_branch():
    for branch, also, wanted in (("main", None, "main"), ("master", None, "master"),
                                 ("trunk", None, "trunk"), ("feature/x", "main", "main"),
                                 ("feature/x", "master", "master")):
        with Folder() as folder:
            p = Place(folder, branch)
            if also is not None:
                p.git("branch", also)
            p.cortex("init")
            check(p.config()["main_branch"] == wanted, branch, also, p.config())
    with Folder() as folder:
        p = Place(folder, "trunk", commit=False)
        p.cortex("init")
        check(p.config()["main_branch"] == "trunk", p.config())
        p.cortex("init")
    with Folder() as folder:
        p = Place(folder)
        p.git("checkout", "-q", "--detach")
        p.git("branch", "-D", "main")
        p.cortex("init")
        check(p.config()["main_branch"] == "main", p.config())


@test
def a_resolved_contract_is_one_line_for_programs():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init")
        p.git("add", "-A")
        p.git("commit", "-qm", "policies")
        p.cortex("contract", "new", "x", "--path", "a.txt", "--test", "git diff --check", "-o",
                 "../t.json")
        people = p.cortex("contract", "resolve", "../t.json").stdout
        program = p.cortex("contract", "resolve", "../t.json", "--json").stdout
        check(program.count(b"\n") == 1 and json.loads(program) == json.loads(people), program)


@test
def a_repository_without_commits():
    with Folder() as folder:
        p = Place(folder, commit=False)
        p.cortex("init")
        p.cortex("contract", "new", "x", "--path", "a.txt", "--test", "git diff --check", "-o",
                 "../t.json")
        done = p.cortex("run", "../t.json", "--json", code=3)
        check("no commit yet" in error_of(done)["message"], done.stdout)
        check(b"rev-list" not in done.stderr, done.stderr)
        check(p.cortex("approvals", "list").stdout == b"", "approvals of an empty repository")
        check(json.loads(p.cortex("approvals", "list", "--json").stdout)["items"] == [], "json")


@test
def a_fifo_is_refused_without_waiting():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init")
        for name in (".gitignore", "policies/cortex.json"):
            (p.path / name).unlink()
            os.mkfifo(p.path / name)
        done = p.cortex("runner", "list", code=3)
        check(b"not a regular file" in done.stderr, done.stderr)
        p.cortex("runner", "add", "x", "git", code=3)
        out = json.loads(p.cortex("init", "--json").stdout)
        check(out["gitignore"] == "refused", out)


@test
def contract_new_refuses_invalid_contracts():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init")
        before = p.config()
        for name in ("../x", "x y", "", ".x", "a" * 65):
            done = p.cortex("runner", "add", name, "git", code=2)
            check(b"NAME" in done.stderr, done.stderr)
        check(p.config() == before, "the configuration has changed")
        p.cortex("runner", "add", "fixer-2.0_b", "git")
        new = ["contract", "new", "x", "--path", "a.txt", "--test", "git diff --check"]
        for option in (["--retries", "11"], ["--timeout", "0"]):
            done = p.cortex(*new, *option, code=2)
            check(option[0].encode() in done.stderr and done.stdout == b"", done.stderr)
        p.cortex(*new, "--retries", "10", "--timeout", "1")
        done = p.cortex(*new, "--id", "short", "-o", "../t.json", code=2)
        check(b"/task_id" in done.stderr and not (p.path.parent / "t.json").exists(), done.stderr)


@test
def runners_and_new_contracts_answer_programs():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init")
        listed = json.loads(p.cortex("runner", "list", "--json").stdout)
        check([one["integrated"] for one in listed["runners"]] == [False] and
              listed["mcp_only"] is True, listed)
        added = json.loads(p.cortex("runner", "add", "x", "--default", "git", "version", "--json")
                           .stdout)
        check(set(added) == {"config", "name", "program", "sha256", "diagnostic_only"}, added)
        check(added["name"] == "x" and added["diagnostic_only"] is True, added)
        check(added["config"] == str(p.path / "policies/cortex.json"), added)
        check(added["sha256"] == hashlib.sha256(open(added["program"], "rb").read()).hexdigest(),
              added)
        full = json.loads(p.cortex("runner", "add", "y", "--full", "git", "--json").stdout)
        check(full["diagnostic_only"] is False, full)
        listed = json.loads(p.cortex("runner", "list", "--json").stdout)
        check(listed["mcp_only"] is False and listed["runners"][1:] == [
            {"name": "x", "kind": "exec", "argv": ["git", "version"], "default": True,
             "integrated": True},
            {"name": "y", "kind": "exec", "argv": ["git"], "default": False,
             "integrated": True}], listed)
        done = p.cortex("runner", "add", "x", "no-such-program", "--json", code=2)
        check("error" in json.loads(done.stdout), done.stdout)
        new = ["contract", "new", "x", "--path", "a.txt", "--test", "git diff --check"]
        people, program = p.cortex(*new).stdout, p.cortex(*new, "--json").stdout
        check(json.loads(people) == json.loads(program), program)
        check(program.count(b"\n") == 1 and program.endswith(b"\n"), program)
        done = p.cortex("contract", "new", "x", "--json", code=2)
        check("error" in json.loads(done.stdout), done.stdout)


@test
def a_work_tree_that_cannot_be_created_leaves_no_files():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init")
        p.cortex("runner", "add", "x", "--full", "--default", "git", "version")
        p.git("add", "-A")
        blob = subprocess.run([GIT, "-C", p.path, "hash-object", "-w", "a.txt"], check=True,
                              env=p.env, capture_output=True).stdout.decode().strip()
        p.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{'n' * 300}")
        p.git("commit", "-qm", "a name that no file system takes")
        p.cortex("contract", "new", "x", "--id", "task_long", "--path", "a.txt",
                 "--test", "git diff --check", "-o", "../t.json")
        done = json.loads(p.cortex("run", "../t.json", "--json", code=4).stdout)
        check(done["failed_gate"] == "worktree", done)
        check("git read-tree failed" in done["hint"], done)
        left = subprocess.run([GIT, "-C", p.path, "for-each-ref", "refs/heads/cortex"], check=True,
                              env=p.env, capture_output=True).stdout
        check(left == b"", left)
        text = p.cortex("run", "../t.json", code=4).stdout
        check(text.count(b"git read-tree failed") == 1, "said once:", text)


@test
def entries_that_are_not_directories_are_not_runs():
    with Folder() as folder:
        p = Place(folder)
        p.cortex("init")
        runs = p.path / ".runtime-cache/cortexpilot/runs"
        runs.mkdir(exist_ok=True)
        (runs / "notes").write_text("x")
        os.symlink("/", runs / "run_elsewhere")
        os.mkfifo(runs / "fifo")
        check(p.cortex("run", "list").stdout == b"No runs.\n", p.cortex("run", "list").stdout)


main()
