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


def refused_for(repo, place, path, *ops):
    """The agent's work leads where `place` is, which git ignores: main stays, and `path` does."""
    before, text = repo.head("main"), (repo.path / path).read_text()
    done, answer = repo.run(contract(), script((list(ops), reply())))
    check(done.returncode == 4, answer, done.stderr)
    fails_at(answer, "merge", "checked_out_dirty")
    said = payloads(repo.events(answer), "MERGE_REFUSED")
    check(len(said) == 1 and f"checked out with {place}" in said[0]["detail"], said)
    check(repo.head("main") == before)
    check((repo.path / path).read_text() == text, path)
    check(repo.verify(answer).returncode == 0)
    repo.clean()


@sandboxed
def ignored_files_are_in_the_way_of_an_agents_new_ones():
    """git would remove them without a word: folders of the name of a file, and the reverse, and files
    that a .gitignore of the person's own hides."""
    with Folder() as folder:
        repo = Repo(folder, files={".gitignore": ".runtime-cache/\ndata/\n*.local\n"})
        for name in ("src/app/data/deep/rows.csv", "src/app/own/.gitignore", "src/app/own/secret",
                     "src/app/notes.local"):
            repo.write(name, "*\n")
        repo.clean()
        refused_for(repo, "src/app/data/deep/rows.csv", "src/app/data/deep/rows.csv",
                    ["write", "src/app/data", "no folder\n"])
        refused_for(repo, "src/app/own/secret", "src/app/own/secret",
                    ["write", "src/app/own/secret", "mine\n"])
        refused_for(repo, "src/app/own/", "src/app/own/.gitignore",
                    ["write", "src/app/own", "mine\n"])
        done, answer = repo.run(contract(), script((GOOD_OPS + [
            ["write", "src/app/other/new.c", "int x;\n"]], reply())))
        check(done.returncode == 0 and answer["merged"] == "fast_forward", answer)
        check((repo.path / "src/app/other/new.c").exists())
        check((repo.path / "src/app/data/deep/rows.csv").exists())
        repo.clean()


@sandboxed
def a_folder_that_becomes_a_file_takes_nothing_ignored_along():
    with Folder() as folder:
        repo = Repo(folder, files={".gitignore": ".runtime-cache/\n*.local\n", "src/app/part/a.c": "int a;\n"})
        ops = [["delete", "src/app/part"], ["write", "src/app/part", "int a;\n"]]
        repo.write("src/app/part/my.local", "mine\n")
        refused_for(repo, "src/app/part/my.local", "src/app/part/my.local", *ops)
        (repo.path / "src/app/part/my.local").unlink()
        done, answer = repo.run(contract(), script((ops, reply())))
        check(done.returncode == 0, answer, done.stderr)
        check((repo.path / "src/app/part").read_text() == "int a;\n")
        repo.clean()


@sandboxed
def a_moved_main_is_merged_and_checked_again():
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
def a_locked_path_refuses_a_run():
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
def parallel_runs_merge_one_after_the_other():
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
def sigint_ends_a_run_in_order():
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


def stop_at_follow(repo, *shell):
    """The checkout of main stops while it follows: a filter of its own does what `shell` says, once."""
    flag, filter_ = repo.base / "armed", repo.base / "filter.sh"
    flag.write_text("")
    filter_.write_text("#!/bin/sh\nif [ -e '%s' ] && [ \"$PWD\" = '%s' ]; then\n  rm '%s'\n  %s\n"
                       "fi\nexec cat\n" % (flag, repo.path.resolve(), flag, "\n  ".join(shell)))
    filter_.chmod(0o755)
    (repo.path / ".git/info").mkdir(exist_ok=True)
    (repo.path / ".git/info/attributes").write_text("*.c filter=stop\n")
    repo.git("config", "filter.stop.smudge", str(filter_))
    repo.git("config", "filter.stop.clean", "cat")
    return flag


# Git is the filter's parent.
KILL_GIT = ("kill -TERM $PPID", "exit 1")
KILL_BOTH = ("read -r _ _ _ governor _ < /proc/$PPID/stat", "kill -KILL $governor", *KILL_GIT)


@sandboxed
def a_stale_checkout_is_updated():
    """Its git dies after main has moved: the run says so, and cleanup ends what was begun."""
    with Folder() as folder:
        repo = Repo(folder)
        flag = stop_at_follow(repo, *KILL_GIT)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)
        check(not flag.exists(), "the filter was never asked")
        check(repo.head("main") == answer["final_commit"])
        applied = payloads(repo.events(answer), "MERGE_APPLIED")[0]
        check("did not follow" in applied["detail"], applied)
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        check(repo.git("status", "--porcelain").strip() != "")
        done = repo.cortex("run", "cleanup", "--json")
        items = json.loads(done.stdout)["items"]
        check([(i["kind"], i["name"], i["reason"], i["done"]) for i in items] ==
              [("checkout", "refs/heads/main", "branch_moved", False)], items)
        done = repo.cortex("run", "cleanup", "--apply", "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["items"][0]["done"], done.stdout)
        repo.clean()
        check(json.loads(repo.cortex("run", "cleanup", "--json").stdout)["items"] == [])


@sandboxed
def a_death_between_main_and_its_checkout():
    """The next run, or cleanup, brings the checkout along; what a person changed there stays."""
    for ender in ("run", "cleanup"):
        with Folder() as folder:
            repo = Repo(folder)
            flag = stop_at_follow(repo, *KILL_BOTH)
            before = repo.head("main")
            done = repo.cortex("run", repo.keep("c.json", contract()), "--json", "--script",
                               repo.keep("s.json", script((GOOD_OPS, reply()))))
            check(done.returncode < 0 and not flag.exists(), done.returncode, done.stdout)
            check(repo.head("main") != before and repo.git("status", "--porcelain").strip() != "")
            (repo.path / "README.md").write_text("changed by a person\n")
            if ender == "cleanup":
                done = repo.cortex("run", "cleanup", "--apply", "--json")
                check(done.returncode == 0, done.stdout, done.stderr)
                check("checkout" in [i["kind"] for i in json.loads(done.stdout)["items"]], done.stdout)
            else:
                # Its own merge is refused, as a person's changes are there; but the checkout has followed.
                done, answer = repo.run(contract("unit_task_2"), script((GOOD_OPS, reply("unit_task_2"))))
                fails_at(answer, "merge", "checked_out_dirty")
            left = repo.git("status", "--porcelain").split()
            check(left == ["M", "README.md"], ender, left)
            check((repo.path / "README.md").read_text() == "changed by a person\n")


if __name__ == "__main__":
    main()
