#!/usr/bin/env python3
"""Governed runs from outside: signals, the loss of whoever holds the home, runs that meet, and what is
left after many of them.

$CORTEX_SOAK is how many runs in a row are looked at (3).
Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from kit import BIN, TIMEOUT_S, Folder, sibling, check, main, skip, test
from run_kit import (GOOD_OPS, Repo, approve, clean_env, contract, fails_at, payloads, reply, sandboxed,
                     script, types, with_policies)

SOAK = int(os.environ.get("CORTEX_SOAK", "3"))


def until(done, what):
    """Waits for what comes about by itself, or fails."""
    end = time.monotonic() + TIMEOUT_S
    while not done():
        check(time.monotonic() < end, "never: " + what)
        time.sleep(0.02)


def processes_of(folder):
    """Processes that have to do with a folder: its path is among their words, or they work there."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words or os.readlink(entry / "cwd").startswith(str(folder)):
                found[entry.name] = words
        except OSError:
            pass  # gone, or not ours to look at
    return found


def alone(folder):
    until(lambda: not processes_of(folder), f"no process of {folder}: {processes_of(folder)}")


class Following:
    """A run under way; events can be waited for."""

    def __init__(self, repo, value, *more, ops=None, env=None):
        name = value["task_id"]
        self.lines = []
        self.process = repo.cortex(
            "run", repo.keep(f"{name}.json", value), "--follow", "--json", "--script",
            repo.keep(f"{name}.script.json", script((ops or GOOD_OPS, reply(name)))), *more,
            popen=True, env=env)

    def until(self, *event_types):
        """The next event of one of these types, or None at the end."""
        for line in self.process.stdout:
            self.lines.append(json.loads(line))
            if self.lines[-1].get("event_type") in event_types:
                return self.lines[-1]["event_type"]
        return None

    def end(self):
        """(exit code, answer)"""
        self.until()
        code = self.process.wait(timeout=TIMEOUT_S)
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        check(self.lines, said)
        return code, self.lines[-1]


def slow(folder, text="sleep 600"):
    """A repository whose e2e test takes long; the contract's own is quick."""
    repo = Repo(folder)
    repo.write("scripts/e2e.sh", f"#!/bin/sh\n{text}\n", True)
    repo.commit("slow")
    return repo


def slow_contract(task_id="slow_task_1", **more):
    return contract(task_id, timeout_retry__timeout_sec=500, acceptance_tests=[
        {"name": "e2e", "cmd": "scripts/e2e.sh", "must_pass": True}], **more)


# --- signals ----------------------------------------------------------------------------------------


@sandboxed
def sigterm_ends_a_run_in_order():
    with Folder() as folder:
        repo = slow(folder)
        before = repo.head("main")
        running = Following(repo, slow_contract())
        check(running.until("TOOL_GATE_RESULT") is not None, running.lines)
        running.process.send_signal(signal.SIGTERM)
        code, answer = running.end()
        check(code == 4, code, answer)
        fails_at(answer, "interrupted", "signal")
        events = repo.events(answer)
        check(types(events)[-1] == "RUN_FINISHED" and "WORKTREE_REMOVED" in types(events), types(events))
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        check(repo.head("main") == before)
        repo.clean()
        alone(folder)


def has_handler(pid, number):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) & 1 << (number - 1))
    return False


def ended_twice(first, second):
    """What does not listen is given 5 s; a second signal does not wait for it."""
    with Folder() as folder:
        repo = slow(folder, "trap '' TERM INT\nwhile :; do sleep 1; done")
        running = Following(repo, slow_contract())
        check(running.until("TOOL_GATE_RESULT") is not None, running.lines)
        pid = running.process.pid
        until(lambda: running.process.poll() is not None or
              any("e2e.sh" in words and "bwrap" not in words and "sandbox-stage" not in words
                  for words in processes_of(folder).values()), "the test runs")
        if running.process.poll() is not None:  # it has to be told to end first: say why it did
            check(False, *running.end(), running.lines[-3:])
        running.process.send_signal(first)
        until(lambda: running.process.poll() is not None or not has_handler(pid, first), "heard")
        running.process.send_signal(second)
        code, answer = running.end()
        if code == 4:  # this machine was so slow that the 5 s were over
            fails_at(answer, "interrupted", "signal")
        else:
            check(code == -second, code, answer)
            done = repo.cortex("run", "cleanup", "--apply", "--json")
            check(done.returncode == 0, done.stdout, done.stderr)
        alone(folder)
        repo.clean()
        bundle = next((repo.root / "runs").iterdir())
        check(json.loads((bundle / "manifest.json").read_text())["status"] == "FAILURE")


@sandboxed
def a_run_that_died_before_its_first_event_is_cleaned_up():
    """Its trace id stands in a file, and no event says it: the one of the events counts."""
    with Folder() as folder:
        repo = slow(folder)
        running = Following(repo, slow_contract())
        check(running.until("TOOL_GATE_RESULT") is not None, running.lines)
        running.process.kill()
        running.end()
        alone(folder)
        bundle = next((repo.root / "runs").iterdir())
        before = (bundle / "trace/trace_id.txt").read_text()
        for name in ("events.jsonl", "events.hashchain.jsonl"):
            (bundle / name).unlink()
        shutil.rmtree(repo.home)  # nor has the journal heard of it
        repo.cortex("init", "--no-repo", "--home", repo.home)
        done = repo.cortex("run", "cleanup", "--apply", "--json")
        check(done.returncode == 0, done.stdout, done.stderr)
        check((bundle / "trace/trace_id.txt").read_text() != before, before)
        done = repo.cortex("run", "verify", bundle.name, "--json")
        check(done.returncode == 0, done.stdout, done.stderr)


@test
def before_the_first_run_lists_are_empty():
    with Folder() as folder:
        repo = Repo(folder)
        check(not repo.root.exists(), repo.root)
        for words, said in ((("run", "list"), b"No runs"), (("run", "cleanup", "--apply"), b"Nothing"),
                            (("locks", "list"), b"")):
            done = repo.cortex(*words)
            check(done.returncode == 0 and said in done.stdout, words, done)
        check(not repo.root.exists(), repo.root)
        done = repo.cortex("run", "show", "run_20260101_000000_" + "0" * 32)
        check(done.returncode == 3 and b"NoRun" in done.stderr, done)


@sandboxed
def a_second_signal_ends_at_once():
    ended_twice(signal.SIGTERM, signal.SIGTERM)


@sandboxed
def a_second_different_signal_ends_at_once():
    ended_twice(signal.SIGINT, signal.SIGTERM)


# --- whoever holds the home -------------------------------------------------------------------------


def entries(repo, run_id):
    done = repo.cortex("log", "--all", "--json", "--actor", repo.actor())
    check(done.returncode == 0, done.stderr)
    found = [json.loads(line) for line in done.stdout.decode().splitlines()]
    return [one["kind"] for one in found if run_id in (one["payload"] or "")]


def whole(repo, code, answer):
    """A success with each of its events and its seal in the journal, once."""
    check(code == 0, answer)
    check(answer["seal"] is not None, answer)
    check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
    kinds = entries(repo, answer["run_id"])
    check(kinds == ["run.event"] * len(repo.events(answer)) + ["run.seal"], kinds)
    repo.clean()


def holder_dies_at(event_type, argv):
    with Folder() as folder:
        repo = Repo(folder)
        holder = subprocess.Popen([str(word) for word in argv(repo)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  env=clean_env(CORTEX_HOME=str(repo.home)))
        try:
            check(holder.stdout.readline(), "the holder did not start")
            running = Following(repo, contract("holder_task_1"))
            check(running.until(event_type) is not None, running.lines)
        finally:
            holder.kill()
            holder.wait()
            holder.stdin.close()
            holder.stdout.close()
        whole(repo, *running.end())


@sandboxed
def a_run_survives_the_death_of_the_writer_process():
    if not os.path.exists(sibling("cortex-writer")):
        skip("there is no cortex-writer")
    for event_type in ("RUN_CREATED", "RUNNER_STARTED", "TEST_RESULT"):
        holder_dies_at(event_type, lambda repo: [sibling("cortex-writer"), repo.home])


@sandboxed
def a_run_survives_the_death_of_the_server():
    holder_dies_at("CANDIDATE_COMMITTED", lambda repo: [
        BIN, "serve", "--home", repo.home, "--listen", "127.0.0.1:0", "--json"])


@sandboxed
def a_run_survives_the_death_of_the_run_that_writes():
    with Folder() as folder:
        repo = slow(folder)
        first = Following(repo, slow_contract())
        check(first.until("TOOL_GATE_RESULT") is not None, first.lines)
        second = Following(repo, contract("other_task_1", allowed_paths=["README.md"]),
                           ops=[["append", "README.md", "more\n"]])
        check(second.until("WORKTREE_CREATED") is not None, second.lines)
        first.process.kill()
        code, answer = second.end()
        first.end()
        done = repo.cortex("run", "cleanup", "--apply", "--json")
        check(done.returncode == 0, done.stdout, done.stderr)
        whole(repo, code, answer)
        alone(folder)


# --- runs that meet ---------------------------------------------------------------------------------


@sandboxed
def one_of_two_runs_on_the_same_path_is_refused():
    """Both come at once; who has the lock waits for a signature until the other has ended."""
    with Folder() as folder:
        repo, key = with_policies(folder)
        values = [contract(f"meeting_task_{i}", allowed_paths=[path],
                           tool_permissions__mcp_tools=["codex", "sampling"])
                  for i, path in enumerate(("src/app/main.c", "src/app/"))]
        both = [Following(repo, value, "--approval-wait", str(TIMEOUT_S)) for value in values]
        seen = [one.until("HUMAN_APPROVAL_REQUIRED", "LOCK_FAILED") for one in both]
        check(sorted(seen) == ["HUMAN_APPROVAL_REQUIRED", "LOCK_FAILED"], seen)
        loser, winner = seen.index("LOCK_FAILED"), seen.index("HUMAN_APPROVAL_REQUIRED")
        code, answer = both[loser].end()
        check(code == 4, code, answer)
        fails_at(answer, "lock", "path_locked")
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        approve(repo, key, values[winner], "sampling")
        code, answer = both[winner].end()
        check(code == 0 and answer["merged"], code, answer)
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        repo.clean()


@sandboxed
def two_runs_on_different_paths_both_succeed():
    """Each waits with its lock until the other has its own."""
    with Folder() as folder:
        repo, key = with_policies(folder)
        names = ("src/app/main.c", "src/lib/a.c")
        values = [contract(f"apart_task_{i}", allowed_paths=[path],
                           tool_permissions__mcp_tools=["codex", "sampling"])
                  for i, path in enumerate(names)]
        both = [Following(repo, value, "--approval-wait", str(TIMEOUT_S),
                          ops=[["append", name, f"/* {name} */\n"]])
                for value, name in zip(values, names)]
        for one in both:
            check(one.until("HUMAN_APPROVAL_REQUIRED", "LOCK_FAILED") == "HUMAN_APPROVAL_REQUIRED")
        for value in values:
            approve(repo, key, value, "sampling")
        for one in both:
            code, answer = one.end()
            check(code == 0 and answer["merged"], code, answer)
            check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        for name in names:
            check(f"/* {name} */" in repo.git("show", f"main:{name}"), "lost a change")
        repo.clean()


# --- many runs --------------------------------------------------------------------------------------


def footprint(repo, folder):
    """What there is beside bundles, by kind."""
    files = {str(path.relative_to(repo.root)) for path in repo.root.rglob("*")
             if "runs" not in path.relative_to(repo.root).parts[:1]}
    temporary = {str(path) for path in folder.rglob("*")
                 if path.name.startswith(".") and path.name.endswith(".tmp")}
    return {"root": sorted(files), "tmp": sorted(temporary),
            "home": sorted(p.name for p in repo.home.iterdir()),
            "worktrees": repo.git("worktree", "list").count("\n"),
            "git worktrees": sorted(p.name for p in (repo.path / ".git").glob("worktrees/*")),
            "git locks": sorted(str(p) for p in (repo.path / ".git").rglob("*.lock")
                                if p.name != "cortex-worktrees.lock"),
            "branches": repo.git("for-each-ref", "--format=%(refname)", "refs/heads"),
            "boxes": sorted(p.name for p in pathlib.Path("/tmp").glob("cortex-box-*"))
            if SOAK > 3 else []}  # /tmp is everybody's: looked at when nobody else is here


@sandboxed
def many_runs_leave_nothing_but_bundles():
    with Folder() as folder:
        repo = Repo(folder)
        before = None
        for i in range(SOAK + 1):
            good = i % 3 != 2  # every third one is refused after its agent worked
            ops = GOOD_OPS if good else [["write", "outside.txt", "x\n"]]
            done, answer = repo.run(contract(f"soak_task_{i}"), script((ops, reply(f"soak_task_{i}"))))
            check(done.returncode == (0 if good else 4), i, answer, done.stderr)
            repo.clean()
            alone(folder)
            now = footprint(repo, folder)
            if before is None:
                before = now  # the first run makes the folders
            check(now == before, i, {k: (before[k], now[k]) for k in now if now[k] != before[k]})
        listed = json.loads(repo.cortex("run", "list", "--json", "--limit", "1000").stdout)["items"]
        check(len(listed) == SOAK + 1, len(listed))
        check(all(one["sealed"] is True for one in listed), listed)
        done = repo.cortex("run", "list", "--json", env={"CORTEX_HOME": str(folder / "none")})
        check(all(one["sealed"] is False for one in json.loads(done.stdout)["items"]), done.stdout)
        if SOAK > 3:
            sizes = sum(p.stat().st_size for p in repo.home.rglob("*") if p.is_file())
            print(f"{SOAK + 1} runs: {len(before['root'])} files beside bundles, home {sizes} bytes")


if __name__ == "__main__":
    main()
