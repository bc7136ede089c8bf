#!/usr/bin/env python3
"""Chains of governed runs from outside: order, skipping, side by side, and what is refused.

Closes with `N passed, N failed, N skipped`.
"""
import json

from kit import Folder, check, main, skip, test
from run_kit import GOOD_OPS, Repo, contract, reply, script, skip_with_old_git


def chain(repo, steps, *options, script_of=None, name="chain.json"):
    path = repo.base / name
    path.write_text(json.dumps({"version": "v1", "chain_id": "release", "steps": steps}))
    more = []
    if script_of is not None:
        (repo.base / "chain-script.json").write_text(json.dumps(script_of))
        more = ["--script", repo.base / "chain-script.json"]
    done = repo.cortex("run", "chain", path, "--json", *more, *options)
    return done, json.loads(done.stdout) if done.stdout else None


def states(answer):
    return {step["name"]: step["status"] for step in answer["steps"]}


def run_or_skip(done, answer):
    skip_with_old_git(f"{answer} {done.stderr}")
    if answer is not None and any("sandbox" in (step.get("reason") or "") for step in answer.get("steps", [])):
        skip("no sandbox on this machine")


def step(name, paths, after=(), task=None):
    made = contract(task or "chain_step_" + name)
    made["allowed_paths"] = paths
    return {"name": name, "contract": made, "depends_on": list(after)}


@test
def a_step_builds_on_the_one_before_it():
    with Folder() as folder:
        repo = Repo(folder)
        # The same agent twice: what it appends the second time follows the first.
        turns = script((GOOD_OPS, reply("step_both")))
        first = step("first", ["src/app/"], task="step_both")
        second = step("second", ["src/app/"], ["first"], "step_both")
        done, answer = chain(repo, [second, first], script_of=turns)
        run_or_skip(done, answer)
        check(done.returncode == 0 and answer["status"] == "SUCCESS", answer, done.stderr)
        by_name = {made["name"]: made for made in answer["steps"]}
        check(by_name["second"]["final_commit"] == repo.head("main"), answer)
        check(by_name["first"]["final_commit"] == repo.head("main~1"), answer)
        check((repo.path / "src/app/main.c").read_text().count("/* more */") == 2)
        manifest = list(repo.root.glob("chains/*/manifest.json"))
        check(len(manifest) == 1 and json.loads(manifest[0].read_text()) == answer, manifest)
        for made in answer["steps"]:
            check(repo.cortex("run", "verify", made["run_id"]).returncode == 0, made)
        journal = "run:" + repo.git("rev-list", "--max-parents=0", "HEAD")[:16]
        entries = repo.cortex("log", "--all", "--actor", journal, "--json")
        check(entries.stdout.count(b'"run.chain"') == 1, entries.stdout[-1000:], entries.stderr)
        repo.clean()


@test
def independent_steps_run_in_parallel():
    with Folder() as folder:
        repo = Repo(folder)
        steps = [step(name, [f"src/app/{name}.c"]) for name in "abc"]
        # Everybody is given the script of "a": the others write outside of their paths.
        done, answer = chain(repo, steps, "--parallel", "3", script_of=script(
            ([["write", "src/app/a.c", "int a;\n"]], reply("chain_step_a"))))
        run_or_skip(done, answer)
        check(done.returncode == 4, done.returncode, done.stderr)
        check(states(answer) == {"a": "SUCCESS", "b": "FAILED", "c": "FAILED"}, answer)
        check(len({made["run_id"] for made in answer["steps"]}) == 3, answer)
        repo.clean()


@test
def steps_after_a_failed_step_are_skipped():
    with Folder() as folder:
        repo = Repo(folder)
        turns = script(([["write", "outside.txt", "x\n"]], reply("chain_step_first")))
        before = repo.head("main")
        done, answer = chain(repo, [step("first", ["src/app/"]),
                                    step("second", ["src/app/"], ["first"]),
                                    step("third", ["src/app/"], ["second"])], script_of=turns)
        run_or_skip(done, answer)
        check(done.returncode == 4, done.returncode, done.stderr)
        check(states(answer) == {"first": "FAILED", "second": "SKIPPED", "third": "SKIPPED"}, answer)
        check(answer["status"] == "FAILURE" and answer["steps"][1]["run_id"] is None, answer)
        check(repo.head("main") == before)
        repo.clean()


@test
def invalid_chains_start_no_run():
    with Folder() as folder:
        repo = Repo(folder)
        for steps, rule in [
                ([step("a", ["src/"], ["a"])], "CH04"),
                ([step("a", ["src/"], ["nobody"])], "CH03"),
                ([step("a", ["src/"]), step("a", ["src/"])], "CH02"),
                ([{"name": "a", "contract": "missing.json"}], "CH05"),
                ([], "CH01")]:
            done, answer = chain(repo, steps)
            check(done.returncode == 4, done.returncode, done.stderr)
            check([error["rule"] for error in answer["errors"]] == [rule], answer)
        check(not list(repo.root.glob("chains/*")), "something was started")


@test
def a_missing_chain_file_is_a_usage_error():
    with Folder() as folder:
        repo = Repo(folder)
        done = repo.cortex("run", "chain", "nowhere.json")
        check(done.returncode == 3 and b"nowhere.json" in done.stderr, done.returncode, done.stderr)


main()
