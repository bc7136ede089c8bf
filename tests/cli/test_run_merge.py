#!/usr/bin/env python3
"""Governed runs from outside: the main branch, locks, runs side by side, interrupts and crashes.

Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import signal
import threading

from kit import Folder, check, main
from run_kit import (GOOD_OPS, Repo, contract, fails_at, payloads, refused, reply, sandboxed, script,
                     sha256, types)


# --- the main branch ------------------------------------------------------------------------------


@sandboxed
def no_merge_keeps_the_candidate():
    with Folder() as folder:
        repo = Repo(folder)
        before = repo.head("main")
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())), "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        check(repo.head("main") == before)
        check(answer["final_commit"] not in (None, before))
        refs = repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/cortex")
        check(answer["final_commit"] in refs, refs)
        repo.clean()


@sandboxed
def a_dirty_main_is_not_touched():
    with Folder() as folder:
        repo = Repo(folder)
        before = repo.head("main")
        (repo.path / "README.md").write_text("changed by a person\n")
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 4, answer)
        fails_at(answer, "merge", "checked_out_dirty")
        check(repo.head("main") == before)
        check((repo.path / "README.md").read_text() == "changed by a person\n")
        check("MERGE_REFUSED" in types(repo.events(answer)))


@sandboxed
def a_moved_main_is_merged_and_judged_again():
    with Folder() as folder:
        repo = Repo(folder)
        baseline = repo.head()
        repo.write("docs/notes.txt", "by somebody else\n")
        moved = repo.commit("elsewhere")
        done, answer = repo.run(contract(rollback__baseline_ref=baseline),
                                script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)
        check(answer["merged"] == "merge", answer)
        check(repo.git("rev-list", "--parents", "-1", "main").split()[1] == moved)
        check((repo.path / "docs/notes.txt").exists(), "the checkout follows")
        check("/* more */" in (repo.path / "src/app/main.c").read_text())
        events = repo.events(answer)
        check([p.get("phase") for p in payloads(events, "DIFF_GATE_RESULT")][-1] == "merge")
        check(len(payloads(events, "TEST_RESULT")) == 2, types(events))
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)


@sandboxed
def a_conflict_with_a_moved_main_is_refused():
    with Folder() as folder:
        repo = Repo(folder)
        baseline = repo.head()
        repo.write("src/app/main.c", "int main(void)\n{\n\treturn 0;\n}\n/* theirs */\n")
        moved = repo.commit("elsewhere")
        done, answer = repo.run(contract(rollback__baseline_ref=baseline),
                                script((GOOD_OPS, reply())))
        refused(repo, done, answer, "merge", "conflict")
        check(repo.head("main") == moved)


# --- locks and neighbours -------------------------------------------------------------------------


@sandboxed
def a_locked_path_refuses():
    with Folder() as folder:
        repo = Repo(folder)
        repo.cortex("run", repo.keep("c.json", contract()), "--dry-run")
        locks = repo.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        host = os.uname().nodename
        boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
        held = {"run_id": "run_20260101_000000_" + "0" * 32, "task_id": "other", "path": "src",
                "pid": os.getpid(), "start_time": int(fields[19]), "boot_id": boot, "host": host,
                "acquired_at": "2026-01-01T00:00:00.000000Z",
                "renewed_at": "2099-01-01T00:00:00.000000Z", "ttl_sec": 900}
        name = locks / (sha256(b"src") + ".lock")
        name.write_text(json.dumps(held))
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 4, answer)
        fails_at(answer, "lock", "path_locked")
        check("LOCK_FAILED" in types(repo.events(answer)))
        check(name.exists(), "another run's lock stays")
        held["pid"], held["start_time"] = 2 ** 22 + 1, 1
        name.write_text(json.dumps(held))
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer)
        check("LOCK_RECLAIMED" in types(repo.events(answer)))
        repo.clean()


@sandboxed
def runs_side_by_side():
    """Disjoint paths: all succeed, whoever merges first; the journal has all of them."""
    with Folder() as folder:
        repo = Repo(folder, files={f"part{i}/x.c": "int x;\n" for i in range(3)})
        results = [None] * 3

        def one(i):
            value = contract(f"side_task_{i}", allowed_paths=[f"part{i}/x.c"])
            ops = [["append", f"part{i}/x.c", f"/* {i} */\n"]]
            done = repo.cortex("run", repo.keep(f"c{i}.json", value), "--json", "--script",
                               repo.keep(f"s{i}.json", script((ops, reply(f"side_task_{i}")))))
            results[i] = done

        threads = [threading.Thread(target=one, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers = [json.loads(done.stdout) for done in results]
        for done, answer in zip(results, answers):
            check(done.returncode == 0, answer, done.stderr)
            check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        for i in range(3):
            check(f"/* {i} */" in repo.git("show", f"main:part{i}/x.c"), "lost a change")
        repo.clean()


# --- the end of the process -----------------------------------------------------------------------


@sandboxed
def an_interrupt_ends_in_order():
    with Folder() as folder:
        repo = Repo(folder, files={"scripts/slow.sh": "x"})
        repo.write("scripts/test.sh", "#!/bin/sh\nsleep 120\n", True)
        repo.commit("slow")
        process = repo.cortex("run", repo.keep("c.json", contract(timeout_retry__timeout_sec=110)),
                              "--follow", "--json", "--script",
                              repo.keep("s.json", script((GOOD_OPS, reply()))), popen=True)
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1].get("event_type") == "TOOL_GATE_RESULT":
                process.send_signal(signal.SIGINT)
        check(process.wait(timeout=120) == 4, process.stderr.read())
        answer = lines[-1]
        fails_at(answer, "interrupted", "signal")
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        repo.clean()
        process.stdout.close()
        process.stderr.close()


@sandboxed
def a_crash_at_any_event_is_cleaned_up():
    """The process dies behind each event in turn; cleanup ends the run as a FAILURE."""
    with Folder() as folder:
        repo = Repo(folder)
        _, whole = repo.run(contract(), script((GOOD_OPS, reply())), "--no-merge")
        count = len(repo.events(whole))
        for at in range(1, count + 1, 1 if os.environ.get("CX_TEST_ALL") else 6):
            before = repo.head("main")
            done = repo.cortex("run", repo.keep("c.json", contract()), "--json", "--no-merge",
                               "--script", repo.keep("s.json", script((GOOD_OPS, reply()))),
                               env={"CORTEX_RUN_FAULT": str(at)})
            check(done.returncode < 0, at, done.returncode, done.stdout)
            cleaned = repo.cortex("run", "cleanup", "--apply", "--json")
            check(cleaned.returncode == 0, at, cleaned.stdout, cleaned.stderr)
            check(repo.head("main") == before)
            repo.clean()
            newest = max(p.name for p in (repo.root / "runs").iterdir()
                         if (p / "events.jsonl").stat().st_mtime_ns > 0
                         and p.name != whole["run_id"])
            manifest = json.loads((repo.root / "runs" / newest / "manifest.json").read_text())
            check(manifest["status"] == "FAILURE", at, manifest["status"])
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)


if __name__ == "__main__":
    main()
