#!/usr/bin/env python3
"""A contract of a tech lead: planned, split, worked on side by side, joined, and merged at once or not
at all.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib
import shutil
import signal

from kit import Folder, check, main, skip, test
from run_kit import (LEAD, Repo, contract, part, payloads, plan_script, reply, script, turns, types,
                     whole)

LOOKS = "git grep -q int -- src"
APP = [["append", "src/app/main.c", "/* app */\n"]]
LIB = [["append", "src/lib/a.c", "/* lib */\n"], ["write", "src/lib/b.c", "int b;\n"]]


def two(**changes):
    parts = [part("part_app", "src/app/"), part("part_lib", "src/lib/", LOOKS)]
    work = {"part_app": [(APP, reply("part_app"))], "part_lib": [(LIB, reply("part_lib"))]}
    work.update({"part_" + name: given for name, given in changes.items()})
    return parts, work


def prepared(function):
    def wrapped():
        with Folder() as folder:
            repo = Repo(folder)
            if not state:
                _, answer = repo.run(contract(), script(([], reply("unit_task_1"))))
                state.append(", ".join(answer["violations"]) if answer["failed_gate"] == "sandbox" else "")
            if state[0]:
                skip("no sandbox on this machine: " + state[0])
            function(repo)
    wrapped.__name__ = function.__name__
    return test(wrapped)


state = []


def verified(repo, answer):
    done = repo.verify(answer)
    check(done.returncode == 0, done.stdout)
    told = repo.cortex("run", "replay", answer["run_id"], "--json")
    check(told.returncode == 0, told.returncode, told.stdout, told.stderr)
    check(json.loads(told.stdout)["mismatches"] == [], told.stdout)
    repo.clean()


def refused(repo, before, done, answer, gate, reason):
    check(done.returncode == 4, done.returncode, done.stderr, answer)
    check((answer["failed_gate"], answer["reason"]) == (gate, reason), answer)
    check(repo.head("main") == before, "main moved")
    verified(repo, answer)
    events = repo.events(answer)
    check(events[-2]["payload"]["to"] == "FAIL" and events[-2]["task_id"] == "split_task", events[-2])
    return events


@prepared
def two_parts_are_joined_and_merged_at_once(repo):
    before = repo.head("main")
    done, answer = repo.run(whole(), plan_script(*two()))
    check(done.returncode == 0, done.returncode, answer, done.stderr)
    check(answer["merged"] == "fast_forward", answer)
    check(repo.head("main") == answer["final_commit"] != before, answer)
    check("/* app */" in repo.git("show", "main:src/app/main.c"))
    check(repo.git("show", "main:src/lib/b.c") == "int b;")
    check(repo.git("rev-list", "--count", before + "..main") == "3", repo.git("log", "--oneline"))
    events = repo.events(answer)
    moves = [(e["task_id"], e["payload"]["from"], e["payload"]["to"], e["payload"]["reason"])
             for e in events if e["event_type"] == "STATE_TRANSITION"]
    check(("split_task", "S1", "S2", "plan_split") in moves, moves)
    for name in ("part_app", "part_lib"):
        own = [m[1:3] for m in moves if m[0] == name]
        check(own == [("S2", "S3"), ("S3", "S4"), ("S4", "S6")], own)
    passed = [i for i, m in enumerate(moves) if m[1:3] == ("S3", "S4") and m[0] != "split_task"]
    joined = [i for i, m in enumerate(moves) if m[1:3] == ("S4", "S6") and m[0] != "split_task"]
    check(max(passed) < min(joined), "joined before all had passed", moves)
    bundle = pathlib.Path(answer["bundle"])
    manifest = json.loads((bundle / "manifest.json").read_text())
    check([t["task_id"] for t in manifest["tasks"]] == ["split_task", "part_app", "part_lib"], manifest["tasks"])
    names = (bundle / "diff_name_only.txt").read_text().splitlines()
    check(names == ["src/app/main.c", "src/lib/a.c", "src/lib/b.c"], names)
    for name in ("part_app", "part_lib"):
        for path in (f"tasks/{name}.json", f"results/{name}/result.json", f"results/{name}/patch.diff",
                     f"reviews/{name}.json", f"ci/{name}/report.json", f"patches/{name}.diff",
                     f"codex/{name}/thread_id.txt", f"results/{name}/tests/command.txt"):
            check((bundle / path).is_file(), path)
        check(json.loads((bundle / f"tasks/{name}.json").read_text())["parent_task_id"] == "split_task")
    verified(repo, answer)
    again = repo.cortex("run", "replay", answer["run_id"], "--reexec", "--json")
    check(again.returncode == 0, again.returncode, again.stdout, again.stderr)
    again = repo.cortex("run", "replay", answer["run_id"], "--reexec", "--script", repo.base / "script.json",
                        "--json")
    check(again.returncode == 0, again.returncode, again.stdout, again.stderr)
    shown = repo.cortex("run", "show", answer["run_id"], "--json")
    check(shown.returncode == 0 and b'"part_lib"' in shown.stdout, shown.stdout)


@prepared
def a_part_that_fails_its_test_is_fixed(repo):
    parts, work = two(app=[([["write", "src/app/main.c", "int main(void)\n{\n\treturn 1;\n}\n"]], reply("part_app")),
                           ([["write", "src/app/main.c", "int main(void)\n{\n\treturn 0;\n}\n/* x */\n"]],
                            reply("part_app"))])
    parts[0]["timeout_retry"]["max_retries"] = 1
    done, answer = repo.run(whole(), plan_script(parts, work))
    check(done.returncode == 0, done.returncode, answer, done.stderr)
    bundle = pathlib.Path(answer["bundle"])
    check((bundle / "tasks/part_app.fix1.json").is_file())
    check((bundle / "artifacts/tasks/part_app/tests_failed_attempt_0.json").is_file())
    check(answer["attempts"] == 4, answer)
    verified(repo, answer)


@prepared
def a_part_outside_its_paths_prevents_the_merge(repo):
    before = repo.head("main")
    parts, work = two(lib=[([["write", "src/app/extra.c", "int x;\n"]], reply("part_lib"))])
    done, answer = repo.run(whole(), plan_script(parts, work))
    refused(repo, before, done, answer, "split", "part_refused")
    check(any(v.startswith("part_lib: diff") for v in answer["violations"]), answer)
    tasks = json.loads((pathlib.Path(answer["bundle"]) / "manifest.json").read_text())["tasks"]
    check([t["status"] for t in tasks] == ["FAILED", "SUCCESS", "FAILED"], tasks)


@prepared
def a_part_whose_test_fails_prevents_the_merge(repo):
    before = repo.head("main")
    parts, work = two(app=[([["write", "src/app/main.c", "int main;\n"]], reply("part_app"))])
    done, answer = repo.run(whole(), plan_script(parts, work))
    refused(repo, before, done, answer, "split", "part_refused")
    check(any(v.startswith("part_app: tests") for v in answer["violations"]), answer)


@prepared
def the_tests_of_the_whole_decide(repo):
    before = repo.head("main")
    value = whole(acceptance_tests=[{"name": "whole", "cmd": "scripts/test.sh", "must_pass": True}])
    parts, work = two(app=[([["write", "src/app/main.c", "int main;\n"]], reply("part_app"))])
    parts[0]["acceptance_tests"][0]["cmd"] = LOOKS
    done, answer = repo.run(value, plan_script(parts, work))
    events = refused(repo, before, done, answer, "tests", "must_pass_failed")
    check("FIX_LOOP_TRIGGERED" not in types(events), types(events))


def plan_refused(repo, parts, reason, **changes):
    before = repo.head("main")
    done, answer = repo.run(whole(**changes), plan_script(parts, {}))
    events = refused(repo, before, done, answer, "plan", reason)
    check(types(events).count("RUNNER_STARTED") == 1, types(events))
    return answer


@prepared
def invalid_plans_are_refused(repo):
    def one(reason, *parts, **changes):
        plan_refused(repo, list(parts), reason, **changes)
    one("no_contracts")
    one("too_many_contracts", *[part(f"part_{i:04}", f"src/app/f{i}.c") for i in range(17)])
    one("overlap", part("part_one", "src/app/"), part("part_two", "src/app/main.c"))
    one("overlap", part("part_one", "src/app/", locks=["src/app/main.c"]), part("part_two", "src/app/"))
    one("overlap", part("part_one", "src/app/", locks=["src/app/main.c"]),
        part("part_two", "src/app/", locks=["src/app/main.c"]))
    one("contract_invalid", part("part_one", "src/app/", locks=["src/lib/"]))
    one("wider_than_parent", part("part_one", "tests/run.sh"))
    one("wider_than_parent", part("part_one", "src/app/", tool_permissions__shell="never"),
        tool_permissions__shell="deny")
    one("nested_plan", whole("part_one"))
    one("task_id_taken", part("part_one", "src/app/"), part("part_one", "src/lib/"))
    one("task_id_taken", part("part_one", "src/app/"), part("part_one.test", "src/lib/"))
    one("not_of_this_plan", part("part_one", "src/app/", parent_task_id="other"))
    one("contract_invalid", part("part_one", "../src/"))
    one("contract_invalid", {"task_id": "a"})


def shared(*more, **changes):
    """Two parts that may both change src/app/main.c, and say so; more parts beside them."""
    parts = [part("part_top", "src/app/", LOOKS, locks=["src/app/main.c"], **changes),
             part("part_end", "src/app/main.c", LOOKS, locks=["src/app/main.c"])]
    return parts + list(more)


def of(events, name, kind):
    return [i for i, e in enumerate(events) if e["task_id"] == name and e["event_type"] == kind]


@prepared
def the_refusal_names_the_lock(repo):
    answer = plan_refused(repo, [part("part_one", "src/app/"), part("part_two", "src/app/main.c")], "overlap")
    check('declare "locks": ["src/app/main.c"] in both' in answer["hint"], answer["hint"])
    check(answer["violations"] == [answer["hint"]], answer)


@prepared
def parts_that_declare_a_lock_write_one_after_the_other(repo):
    body = "".join(f"int line_{i};\n" for i in range(30))
    repo.write("src/app/main.c", body)
    repo.commit("long")
    before = repo.head("main")
    parts = shared(part("part_lib", "src/lib/", LOOKS))
    work = {"part_top": [([["write", "src/app/main.c", "int top;\n" + body]], reply("part_top"))],
            "part_end": [([["write", "src/app/main.c", body + "int end;\n"]], reply("part_end"))],
            "part_lib": [(LIB, reply("part_lib"))]}
    tests = [{"name": "whole", "cmd": LOOKS, "must_pass": True}]
    done, answer = repo.run(whole(acceptance_tests=tests), plan_script(parts, work))
    check(done.returncode == 0, done.returncode, answer, done.stderr)
    check(repo.head("main") == answer["final_commit"] != before, answer)
    check(repo.git("show", "main:src/app/main.c") == ("int top;\n" + body + "int end;\n").strip())
    events = repo.events(answer)
    passed = [i for i in of(events, "part_top", "STATE_TRANSITION") if events[i]["payload"]["to"] == "S4"]
    tested = of(events, "part_top", "TEST_RESULT")
    begun = of(events, "part_end", "WORKTREE_CREATED")
    check(passed and tested and begun and max(passed + tested) < min(begun), "they worked at the same time",
          types(events))
    check(of(events, "part_end", "LOCK_ACQUIRED") and of(events, "part_top", "LOCK_RELEASED"))
    left = repo.cortex("locks", "list", "--json")
    check(json.loads(left.stdout)["items"] == [], left.stdout)
    contracts = [json.loads((pathlib.Path(answer["bundle"]) / f"tasks/{name}.json").read_text())
                 for name in ("part_top", "part_lib")]
    check(contracts[0]["locks"] == ["src/app/main.c"] and "locks" not in contracts[1], contracts)
    verified(repo, answer)
    again = repo.cortex("run", "replay", answer["run_id"], "--reexec", "--json")
    check(again.returncode == 0, again.returncode, again.stdout, again.stderr)


@prepared
def changes_of_the_same_lines_are_not_joined(repo):
    before = repo.head("main")
    work = {"part_top": [([["write", "src/app/main.c", "int one;\n"]], reply("part_top"))],
            "part_end": [([["write", "src/app/main.c", "int two;\n"]], reply("part_end"))]}
    done, answer = repo.run(whole(), plan_script(shared(), work))
    refused(repo, before, done, answer, "split", "join_refused")
    check(any(v.startswith("part_end: merge conflict") for v in answer["violations"]), answer)


@prepared
def a_shared_path_is_free_after_a_part_that_failed(repo):
    before = repo.head("main")
    work = {"part_top": [([["write", "README.md", "outside\n"]], reply("part_top"))],
            "part_end": [(APP, reply("part_end"))]}
    done, answer = repo.run(whole(), plan_script(shared(), work))
    events = refused(repo, before, done, answer, "split", "part_refused")
    check(of(events, "part_end", "TEST_RESULT"), types(events))
    check([v.split(":")[0] for v in answer["violations"]] == ["part_top"], answer)


@prepared
def a_plan_changes_nothing(repo):
    before = repo.head("main")
    parts, work = two()
    done, answer = repo.run(whole(), plan_script(parts, work, ops=APP))
    check(done.returncode == 4, done.returncode, answer)
    check(answer["failed_gate"] in ("runner", "diff"), answer)
    check(repo.head("main") == before)
    verified(repo, answer)


@prepared
def a_moved_main_is_merged_into_the_parts(repo):
    parts, work = two()
    baseline = repo.head("main")
    value = whole(rollback__baseline_ref=baseline)
    for one in parts:
        one["rollback"]["baseline_ref"] = baseline
    repo.write("README.md", "moved\n")
    repo.commit("moved")
    done, answer = repo.run(value, plan_script(parts, work))
    check(done.returncode == 0, done.returncode, answer, done.stderr)
    check(answer["merged"] == "merge", answer)
    check(repo.git("show", "main:README.md") == "moved")
    verified(repo, answer)


@prepared
def a_baseline_of_its_own_is_refused(repo):
    old = repo.head("main")
    repo.write("README.md", "moved\n")
    repo.commit("moved")
    plan_refused(repo, [part("part_one", "src/app/", rollback__baseline_ref=old)], "not_of_this_plan")


def all_parts_are_told(repo, task, runs):
    """The manifest of a run that died: its parts as far as they came, and it verifies."""
    run_id = next(r["run_id"] for r in runs if r["task_id"] == task)
    bundle = repo.root / "runs" / run_id
    manifest = json.loads((bundle / "manifest.json").read_text())
    events = [json.loads(line) for line in (bundle / "events.jsonl").read_text().splitlines()]
    begun = {e["task_id"] for e in events} & {"part_app", "part_lib"}
    told = {t["task_id"]: t["status"] for t in manifest["tasks"]}
    check(set(told) == {task} | begun and told[task] == "FAILED", told, begun)
    for name in begun:
        result = bundle / f"results/{name}/result.json"
        if result.is_file():
            check(told[name] == json.loads(result.read_text())["status"], name, told)
        else:
            check(told[name] in ("FAILED", "SKIPPED"), name, told)
    done = repo.cortex("run", "verify", run_id, "--json")
    check(done.returncode == 0, done.stdout, done.stderr)
    return len(begun)


@prepared
def a_split_run_killed_at_any_event_is_cleaned_up(repo):
    done, answer = repo.run(whole(), plan_script(*two()))
    check(done.returncode == 0, answer)
    count = len(repo.events(answer))
    for at in sorted({18, count // 3, count // 2, count - 12, count - 3}):
        repo.git("reset", "-q", "--hard", "HEAD")
        baseline = repo.head("main")
        parts, work = two(app=[([["append", "src/app/main.c", f"/* {at} */\n"]], reply("part_app"))],
                          lib=[([["append", "src/lib/a.c", f"/* {at} */\n"]], reply("part_lib"))])
        done, answer = repo.run(whole(f"split_{at}"), plan_script(parts, work, f"split_{at}"),
                                env={"CORTEX_RUN_FAULT": str(at)})
        check(done.returncode == -signal.SIGABRT, at, done.returncode, answer)
        cleaned = repo.cortex("run", "cleanup", "--apply", "--json")
        check(cleaned.returncode == 0, cleaned.stdout, cleaned.stderr)
        listed = json.loads(repo.cortex("run", "list", "--json").stdout)
        text = json.dumps(listed)
        parts_told = all_parts_are_told(repo, f"split_{at}", listed["items"])
        check(at < count // 2 or parts_told == 2, "parts came to nothing", at, parts_told)
        check("RUNNING" not in text, text)
        repo.clean()
        merged = repo.head("main") != baseline
        check(at >= count - 12 or not merged, "half merged", at)


@prepared
def an_interrupt_ends_all_parts(repo):
    # The first part's test goes on until the interrupt comes, however fast the machine is.
    repo.write("scripts/test.sh", "#!/bin/sh\nsleep 300\n", executable=True)
    repo.commit("a test that takes its time")
    parts, work = two()
    value = whole()
    process = repo.cortex("run", repo.keep("contract.json", value), "--json", "--follow", "--script",
                          repo.keep("script.json", plan_script(parts, work)), popen=True)
    lines, sent = [], False
    for line in process.stdout:
        lines.append(json.loads(line))
        if lines[-1].get("event_type") == "LOCK_ACQUIRED" and not sent:
            process.send_signal(signal.SIGINT)  # a second one ends it at once
            sent = True
    check(process.wait(timeout=120) == 4, process.returncode, process.stderr.read(), lines[-3:])
    process.stdout.close()
    process.stderr.close()
    answer = lines[-1]
    check((answer["failed_gate"], answer["reason"]) == ("interrupted", "signal"), answer)
    verified(repo, answer)


@prepared
def the_bundle_of_a_part_is_evidence_too(repo):
    done, answer = repo.run(whole(), plan_script(*two()))
    check(done.returncode == 0, answer)
    for name in ("results/part_lib/result.json", "results/part_lib/patch.diff", "tasks/part_lib.json"):
        copy = repo.base / "copy" / answer["run_id"]
        shutil.rmtree(copy.parent, ignore_errors=True)
        shutil.copytree(answer["bundle"], copy, copy_function=shutil.copyfile)
        for folder in [copy, *copy.rglob("*")]:
            folder.chmod(0o755 if folder.is_dir() else 0o644)
        text = (copy / name).read_text().replace("part_lib", "part_lob").replace("src/lib", "src/lob")
        (copy / name).write_text(text)
        verdict = repo.cortex("run", "verify", copy, "--json")
        check(verdict.returncode == 1, name, verdict.stdout)
        details = json.loads(verdict.stdout)["details"]
        check(any(d["path"] == name and d["code"] in ("ref_mismatch", "diff_scope") for d in details)
              or name.startswith("tasks/"), name, details)
        check(name != "tasks/part_lib.json" or any(d["code"] == "diff_scope" for d in details), details)


@prepared
def a_part_without_a_turn_of_its_own(repo):
    before = repo.head("main")
    parts, work = two()
    del work["part_lib"]
    done, answer = repo.run(whole(), plan_script(parts, work))
    refused(repo, before, done, answer, "split", "part_refused")
    check(any(v.startswith("part_lib: runner") for v in answer["violations"]), answer)


if __name__ == "__main__":
    main()
