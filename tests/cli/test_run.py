#!/usr/bin/env python3
"""Governed runs from outside: the golden scenarios, and how a run is refused before and after its
agent has worked.

Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import re
import shutil

from kit import BIN, Folder, check, main, run, test
from run_kit import (GOLDEN, GOOD_OPS, SCENARIOS, Repo, clean_env, contract, exec_config, fails_at,
                     golden, payloads, refused, reply, sandboxed, script, sha256, types, with_policies)


# --- golden ---------------------------------------------------------------------------------------


def golden_scenario(name):
    expected = golden(name, "expected.json")
    with Folder() as folder:
        repo = Repo(folder)
        before = repo.head("main")
        done, answer = repo.run(golden(name, "contract.input.json"), golden(name, "script.json"))
        check(done.returncode == expected["run_exit"], done.returncode, answer, done.stderr)
        check(answer["status"] == expected["manifest_status"], answer)
        check(answer["task_status"] == expected["task_status"], answer)
        events = repo.events(answer)
        check(types(events) == expected["event_types"], types(events))
        bundle = pathlib.Path(answer["bundle"])
        patch = (bundle / "patch.diff").read_bytes()
        check(sha256(patch) == expected["patch_sha256"] == answer["patch_sha256"], patch)
        check(patch == (GOLDEN / name / "bundle" / "patch.diff").read_bytes())
        names = (bundle / "diff_name_only.txt").read_text().splitlines()
        check(names == expected["changed_files"], names)
        mine = json.loads((bundle / "reports" / "task_result.json").read_text())
        theirs = json.loads((GOLDEN / name / "bundle/reports/task_result.json").read_text())
        check(mine["gates"] == theirs["gates"], mine["gates"])
        check(mine["status"] == theirs["status"])
        check(mine["attempt"] == theirs["attempt"])
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        check(run(BIN, "init", "--home", repo.base / "other", cwd=repo.base,
                  env=clean_env()).returncode == 0)
        loose = repo.cortex("run", "verify", bundle, "--home", repo.base / "other", "--json")
        check(loose.returncode == 3, loose.returncode, loose.stdout, loose.stderr)
        repo.clean()
        if expected["run_exit"] == 0:
            check(repo.head("main") == answer["final_commit"] != before, answer)
            trailers = repo.git("log", "-1", "--format=%(trailers)", "main")
            check(f"Cortex-Run: {answer['run_id']}" in trailers, trailers)
            note = repo.git("notes", "--ref", "cortex", "show", "main")
            check(answer["manifest_sha256"] in note, note)
        else:
            check(repo.head("main") == before)
        files = {str(p.relative_to(bundle)) for p in bundle.rglob("*") if p.is_file()}
        theirs = {str(p.relative_to(GOLDEN / name / "bundle"))
                  for p in (GOLDEN / name / "bundle").rglob("*") if p.is_file()}
        check(theirs <= files, "files missing:", theirs - files)


def make_golden(name):
    def wrapped():
        golden_scenario(name)
    wrapped.__name__ = "golden_" + name
    sandboxed(wrapped)


for scenario in SCENARIOS:
    make_golden(scenario)


# --- refusals -------------------------------------------------------------------------------------


@test
def a_contract_that_breaks_its_schema():
    with Folder() as folder:
        repo = Repo(folder)
        bad = contract()
        del bad["acceptance_tests"]
        done, answer = repo.run(bad, script((GOOD_OPS, reply())))
        check(done.returncode == 4, done.stderr)
        fails_at(answer, "contract", "K01")
        check(answer["bundle"] is not None, answer)


@test
def a_contract_without_a_usable_name_leaves_no_bundle():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract("../../etc/x"), script((GOOD_OPS, reply())))
        check(done.returncode == 4, done.stderr)
        fails_at(answer, "contract", "task_id_unusable")
        check(answer["bundle"] is None and answer["run_id"] is None, answer)


@sandboxed
def wildcards_in_allowed_paths():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(allowed_paths=["src/**"]), script((GOOD_OPS, reply())))
        refused(repo, done, answer, "contract", "K02")


@sandboxed
def a_permission_above_the_role_is_refused():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(tool_permissions__network="allow"),
                                script((GOOD_OPS, reply())))
        refused(repo, done, answer, "policy", "permission_exceeds_role")


@sandboxed
def prose_around_a_reply_is_ignored():
    with Folder() as folder:
        repo = Repo(folder)
        text = "Sure! Here it is: " + json.dumps(reply())
        done, answer = repo.run(contract(), script((GOOD_OPS, text)))
        refused(repo, done, answer, "output_schema")


@sandboxed
def a_reply_that_breaks_the_schema_is_refused():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply(extra=1))))
        refused(repo, done, answer, "output_schema")


@sandboxed
def a_reply_for_another_task_is_refused():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply("other_task"))))
        refused(repo, done, answer, "output_schema")


@sandboxed
def an_agent_that_reports_failure_ends_the_run():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply(status="BLOCKED"))))
        refused(repo, done, answer, "runner", "agent_gave_up")


@sandboxed
def a_script_without_turns():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script())
        refused(repo, done, answer, "runner", "failed")


@sandboxed
def an_impossible_operation_ends_the_run():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script(([["delete", "src/app/none.c"]], reply())))
        refused(repo, done, answer, "runner", "failed")


@sandboxed
def every_rollback_restores():
    for strategy in ("git_reset_hard", "git_revert_commit", "worktree_drop"):
        with Folder() as folder:
            repo = Repo(folder)
            ops = [["write", "outside.txt", "x\n"], *GOOD_OPS]
            done, answer = repo.run(contract(rollback__strategy=strategy), script((ops, reply())))
            events = refused(repo, done, answer, "diff", "outside_allowed_paths")
            applied = payloads(events, "ROLLBACK_APPLIED")
            check(applied[0]["strategy"] == strategy and applied[0]["verified"], applied)


@sandboxed
def commits_of_an_agent_pass_the_diff_gate():
    with Folder() as folder:
        repo = Repo(folder)
        ops = [["write", "secret.txt", "x\n"], ["git", "add", "-A"], ["git", "commit", "-m", "one"],
               ["git", "rm", "-q", "secret.txt"], ["git", "commit", "-m", "two"], *GOOD_OPS]
        done, answer = repo.run(contract(), script((ops, reply())))
        refused(repo, done, answer, "diff", "outside_allowed_paths")


@sandboxed
def commits_inside_the_allowed_paths_are_accepted():
    with Folder() as folder:
        repo = Repo(folder)
        ops = [*GOOD_OPS, ["git", "add", "-A"], ["git", "commit", "-m", "mine"]]
        done, answer = repo.run(contract(), script((ops, reply())))
        check(done.returncode == 0, answer, done.stderr)
        check(repo.git("rev-list", "--count", "HEAD") == "2")
        repo.clean()


@sandboxed
def missing_outputs_enter_the_fix_loop():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(timeout_retry__max_retries=1),
                                script(([], reply()), (GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)
        events = repo.events(answer)
        check([e["payload"]["verdict"] for e in events if e["event_type"] == "REVIEW_RESULT"]
              == ["FAIL", "PASS"])
        check(payloads(events, "FIX_LOOP_TRIGGERED"), types(events))
        bundle = pathlib.Path(answer["bundle"])
        fixed = json.loads((bundle / "tasks" / "unit_task_1.fix1.json").read_text())
        check(fixed["parent_task_id"] == "unit_task_1", fixed)
        evidence = fixed["inputs"]["artifacts"][-1]
        check(evidence["uri"] == "artifacts/review_failed_attempt_0.json", evidence)
        check(sha256((bundle / evidence["uri"]).read_bytes()) == evidence["sha256"])


@sandboxed
def missing_outputs_end_the_run_after_the_fix_loop():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script(([], reply())))
        refused(repo, done, answer, "review", "review_failed")


@sandboxed
def new_instructions_for_agents_need_an_approval():
    with Folder() as folder:
        repo = Repo(folder)
        ops = [["write", "src/app/AGENTS.override.md", "obey\n"]]
        done, answer = repo.run(contract(), script((ops, reply())))
        refused(repo, done, answer, "policy", "override_file")


@sandboxed
def an_audit_changes_nothing():
    with Folder() as folder:
        repo = Repo(folder)
        before = repo.head("main")
        done, answer = repo.run(contract(audit_only=True), script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)
        check(answer["attempts"] == 0 and repo.head("main") == before, answer)
        check([p["reason"] for p in payloads(repo.events(answer), "STATE_TRANSITION")]
              == ["contract_accepted", "audit_only", "review_passed", "tests_passed"])
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        repo.clean()


# --- starting -------------------------------------------------------------------------------------


@test
def a_runtime_root_that_git_sees_is_refused():
    with Folder() as folder:
        repo = Repo(folder)
        repo.write(".gitignore", "nothing\n")
        repo.commit("not ignored")
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 3, done.returncode, done.stderr)
        check("error" in answer, answer)
        check(b"not ignored" in done.stderr, done.stderr)


@test
def a_relative_runtime_root_is_refused():
    with Folder() as folder:
        repo = Repo(folder)
        done, _ = repo.run(contract(), script((GOOD_OPS, reply())),
                           env={"CORTEXPILOT_RUNTIME_ROOT": "relative/root"})
        check(done.returncode == 2, done.returncode, done.stderr)


@test
def without_a_data_directory_no_run_starts():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        done, _ = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 3, done.returncode, done.stderr)
        check(not (repo.root / "runs").exists() or not list((repo.root / "runs").iterdir()))


@test
def a_dry_run_writes_nothing():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())), "--dry-run")
        check(done.returncode == 0, done.stderr, answer)
        check(answer["allow"] and answer["valid"], answer)
        # One view of the role, before and after: the contract decides (decision 0025).
        summary = answer["role_contract_summary"]
        check(summary["execution_authority"] == "task_contract" and summary["role"] == "WORKER", summary)
        done = repo.cortex("contract", "explain", repo.keep("contract.json", contract()), "--json")
        check(json.loads(done.stdout)["role_contract_summary"] == summary, done.stdout)
        done, answer = repo.run(contract(allowed_paths=["src/"]), script((GOOD_OPS, reply())),
                                "--dry-run")
        check(done.returncode == 4 and not answer["allow"], answer)
        check(answer["gates"]["policy"]["violations"] == ["wide_path src/"], answer)
        check(not (repo.path / ".runtime-cache").exists(), "the runtime root was made")


def refusals(repo, path):
    """What `contract explain` says that a run refuses, as "gate: reason"; the text says the same."""
    done = repo.cortex("contract", "explain", path, "--json")
    found = [f"{one['gate']}: {one['reason']}" for one in json.loads(done.stdout)["refusals"]]
    text = repo.cortex("contract", "explain", path).stdout.decode()
    check(all(one in text for one in found), found, text)
    check(("refuse nothing" in text) == (not found), text)
    return found


@sandboxed
def explain_and_run_refuse_the_same_contracts():
    """A runner that the policy bars, one that is not pinned, a test whose program nothing has."""
    barred = exec_config("scripts/agent.sh", runner={"mcp_only": True, "default": "tool"})
    unpinned = exec_config("scripts/agent.sh", integrations={})
    test_of = {"acceptance_tests": [{"name": "t", "cmd": "pytest -q", "must_pass": True}]}
    cases = [(barred, {}, "runner", "MCP runners only"), (unpinned, {}, "integrated", "no integration"),
             (exec_config("scripts/agent.sh"), test_of, "tests", "C16 'pytest'")]
    for config, changes, gate, why in cases:
        with Folder() as folder:
            # Programs come from a folder that has the agent's and not the test's.
            programs = folder / "programs"
            programs.mkdir(mode=0o755)
            shutil.copy(pathlib.Path("/bin/sh").resolve(), programs / "sh")
            repo, _ = with_policies(folder, **config, trusted_dirs=[str(programs)],
                                    trusted_uid=os.getuid())
            repo.write("scripts/agent.sh", "#!/bin/sh\n", True)
            repo.commit("agent")
            path = repo.keep("contract.json", contract(**changes))
            said = refusals(repo, path)
            check(any(one.startswith(gate + ": ") and why in one for one in said), gate, said)
            done, answer = repo.run(contract(**changes), None)
            check(answer["failed_gate"] == gate, done.stderr, answer)
            check([f"{gate}: {one}" for one in answer["violations"]] ==
                  [one for one in said if one.startswith(gate + ": ")], answer, said)
    with Folder() as folder:
        repo = Repo(folder)
        path = repo.keep("contract.json", contract(acceptance_tests=[
            {"name": "t", "cmd": ".venv/bin/pytest -q", "must_pass": True}]))
        text = repo.cortex("contract", "explain", path).stdout.decode()
        check("K10" in text and "refuse nothing" not in text, text)


@sandboxed
def read_models_say_that_the_contract_decides():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)
        kept = json.loads((pathlib.Path(answer["bundle"]) / "manifest.json").read_text())
        binding = kept["role_binding_summary"]
        check(binding["execution_authority"] == "task_contract", binding)
        check({"skills_bundle_ref", "mcp_bundle_ref", "runtime_binding"} <= set(binding), binding)
        done = repo.cortex("run", "show", answer["run_id"], "--json")
        shown = json.loads(done.stdout)
        case = shown["workflow_case_read_model"]
        check(case["execution_authority"] == "task_contract", case)
        check(case["run_id"] == answer["run_id"] and case["status"] == "SUCCESS", case)
        check(case["role_binding_summary"] == binding == shown["role_binding_read_model"], shown)


@sandboxed
def follow_prints_each_event():
    with Folder() as folder:
        repo = Repo(folder)
        done = repo.cortex("run", repo.keep("c.json", contract()), "--follow", "--json", "--script",
                           repo.keep("s.json", script((GOOD_OPS, reply()))))
        lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
        answer = lines[-1]
        stored = (pathlib.Path(answer["bundle"]) / "events.jsonl").read_text().splitlines()
        check(done.stdout.decode().splitlines()[:-1] == stored, "not the lines of the bundle")


@sandboxed
def secrets_of_the_environment_are_not_recorded():
    with Folder() as folder:
        repo = Repo(folder)
        secret = "hunter2-very-secret-value"
        calls = [{"tool": "note", "text": f"token is {secret}"}]
        done, answer = repo.run(contract(), script((GOOD_OPS, reply(summary=f"uses {secret}"), calls)),
                                env={"MY_API_TOKEN": secret})
        check(done.returncode == 0, answer, done.stderr)
        bundle = pathlib.Path(answer["bundle"])
        for path in bundle.rglob("*"):
            if path.is_file() and "codex" not in path.parts:
                check(secret not in path.read_text(errors="replace"), path)
        check(re.search(r"\[masked\]", (bundle / "events.jsonl").read_text()))


if __name__ == "__main__":
    main()
