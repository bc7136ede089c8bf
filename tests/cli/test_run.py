#!/usr/bin/env python3
"""Governed runs from outside: the golden scenarios, every way to be refused, and what is left behind.

Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import re
import signal
import threading

from kit import BIN, Folder, check, main, run, skip, test
from run_kit import (GOLDEN, GOOD_OPS, SCENARIOS, Repo, approve, clean_env, contract, golden, payloads, reply,
                     script, sha256, types, with_policies)


def need_sandbox():
    """Runs refuse to start without a sandbox; that is tested, too, but not with everything else."""
    with Folder() as folder:
        repo = Repo(folder)
        _, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        if answer["failed_gate"] == "sandbox":
            skip("no sandbox on this machine: " + ", ".join(answer["violations"]))


sandbox_state = []


def sandboxed(function):
    def wrapped():
        if not sandbox_state:
            try:
                need_sandbox()
                sandbox_state.append(None)
            except Exception as why:  # skip() or a failure: each test says so again
                sandbox_state.append(why)
        if sandbox_state[0] is not None:
            raise sandbox_state[0]
        function()
    wrapped.__name__ = function.__name__
    return test(wrapped)


def fails_at(answer, gate, reason=None):
    check(answer["status"] == "FAILURE", answer)
    check(answer["failed_gate"] == gate, answer)
    check(reason is None or answer["reason"] == reason, answer)


def refused(repo, done, answer, gate, reason=None):
    """Exit 4, a sealed bundle that verifies, nothing left, main where it was."""
    check(done.returncode == 4, done.returncode, done.stderr)
    fails_at(answer, gate, reason)
    events = repo.events(answer)
    check(types(events)[0] == "RUN_CREATED" and types(events)[-1] == "RUN_FINISHED", types(events))
    check(types(events)[-2] == "STATE_TRANSITION", types(events))
    check(events[-2]["payload"]["to"] == "FAIL" and events[-2]["payload"]["reason"] == gate,
          events[-2])
    verdict = repo.verify(answer)
    check(verdict.returncode == 0, verdict.stdout)
    repo.clean()
    return events


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
def a_permission_above_the_role():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(tool_permissions__network="allow"),
                                script((GOOD_OPS, reply())))
        refused(repo, done, answer, "policy", "permission_exceeds_role")


@sandboxed
def a_reply_with_prose_around_it():
    with Folder() as folder:
        repo = Repo(folder)
        text = "Sure! Here it is: " + json.dumps(reply())
        done, answer = repo.run(contract(), script((GOOD_OPS, text)))
        refused(repo, done, answer, "output_schema")


@sandboxed
def a_reply_that_breaks_the_schema():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply(extra=1))))
        refused(repo, done, answer, "output_schema")


@sandboxed
def a_reply_for_another_task():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply("other_task"))))
        refused(repo, done, answer, "output_schema")


@sandboxed
def an_agent_that_gives_up_is_believed():
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
def an_operation_that_cannot_be_done():
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
def what_an_agent_commits_is_judged_too():
    with Folder() as folder:
        repo = Repo(folder)
        ops = [["write", "secret.txt", "x\n"], ["git", "add", "-A"], ["git", "commit", "-m", "one"],
               ["git", "rm", "-q", "secret.txt"], ["git", "commit", "-m", "two"], *GOOD_OPS]
        done, answer = repo.run(contract(), script((ops, reply())))
        refused(repo, done, answer, "diff", "outside_allowed_paths")


@sandboxed
def commits_inside_the_paths_are_fine():
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
def missing_outputs_end_the_run_in_the_end():
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


# --- approvals ------------------------------------------------------------------------------------


@sandboxed
def a_wide_path_with_an_approval():
    with Folder() as folder:
        repo, key = with_policies(folder)
        value = contract(allowed_paths=["src/"])
        approve(repo, key, value, "wide_path:src/")
        done, answer = repo.run(value, script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)
        events = repo.events(answer)
        check([p["passed"] for p in payloads(events, "POLICY_GATE_RESULT")] == [False, True])
        check(payloads(events, "HUMAN_APPROVAL_COMPLETED")[0]["scopes"] == ["wide_path:src/"])
        check(list((pathlib.Path(answer["bundle"]) / "artifacts").glob("approval_*.json")))
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        # Once only.
        done, answer = repo.run(value, script((GOOD_OPS, reply())))
        refused(repo, done, answer, "policy", "wide_path")


@sandboxed
def an_approval_for_another_contract_approves_nothing():
    with Folder() as folder:
        repo, key = with_policies(folder)
        approve(repo, key, contract("other_task_9", allowed_paths=["src/"]), "wide_path:src/")
        done, answer = repo.run(contract(allowed_paths=["src/"]), script((GOOD_OPS, reply())))
        refused(repo, done, answer, "policy", "wide_path")


@sandboxed
def a_changed_script_with_an_approval():
    with Folder() as folder:
        repo, key = with_policies(folder)
        value = contract(allowed_paths=["src/app/", "scripts/test.sh"])
        out = repo.base / "approval.json"
        approve(repo, key, value, "script:scripts/test.sh", out=out)
        ops = [["append", "scripts/test.sh", "# one more line\n"]]
        done, answer = repo.run(value, script((ops, reply())), "--approval", out)
        check(done.returncode == 0, answer, done.stderr)
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)


@sandboxed
def waiting_for_an_approval():
    with Folder() as folder:
        repo, key = with_policies(folder)
        value = contract(allowed_paths=["src/"])
        process = repo.cortex("run", repo.keep("contract.json", value), "--follow", "--json",
                              "--approval-wait", "100", "--script",
                              repo.keep("s.json", script((GOOD_OPS, reply()))), popen=True)
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1].get("event_type") == "HUMAN_APPROVAL_REQUIRED":
                approve(repo, key, value, "wide_path:src/")
        check(process.wait(timeout=120) == 0, lines[-1], process.stderr.read())
        process.stdout.close()
        process.stderr.close()


# --- programs as agents ---------------------------------------------------------------------------

AGENT = """#!/bin/sh
cat > "$TMPDIR/prompt"
grep -q "<<<CONTRACT>>>" "$TMPDIR/prompt" || exit 9
echo '/* by a program */' >> src/app/main.c
echo 'noise'
echo '%s'
"""


def exec_config(agent, **more):
    return {"runner": {"mcp_only": False, "default": "tool"},
            "runners": {"tool": {"kind": "exec", "argv": ["sh", agent],
                                 "provides": ["codex"]}},
            "integrations": {"tool": {"argv": ["sh"], "sha256": sha256(
                pathlib.Path("/bin/sh").resolve().read_bytes())}}, **more}


def exec_repo(folder, text, **more):
    """A repository whose agent is a script of the baseline."""
    repo, key = with_policies(folder, **exec_config("scripts/agent.sh", **more))
    repo.write("scripts/agent.sh", text, True)
    repo.commit("agent")
    return repo, key


@sandboxed
def a_program_does_the_work():
    with Folder() as folder:
        repo, _ = exec_repo(folder, AGENT % json.dumps(reply()))
        done, answer = repo.run(contract())
        check(done.returncode == 0, answer, done.stderr)
        events = repo.events(answer)
        check(payloads(events, "RUNNER_SELECTED") == [{"runner": "exec", "profile": "tool"}],
              payloads(events, "RUNNER_SELECTED"))
        check(len(payloads(events, "TOOL_GATE_RESULT")) == 2, types(events))
        check("by a program" in repo.git("show", "main:src/app/main.c"))
        session = pathlib.Path(answer["bundle"]) / "codex/unit_task_1/events.jsonl"
        check(session.read_text().startswith("noise\n"), session.read_text())
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)


@sandboxed
def a_program_that_fails():
    with Folder() as folder:
        repo, _ = exec_repo(folder, "#!/bin/sh\necho broken >&2\nexit 3\n")
        done, answer = repo.run(contract())
        refused(repo, done, answer, "runner", "failed")
        check("broken" in answer["hint"], answer)


@sandboxed
def a_program_that_hangs():
    with Folder() as folder:
        repo, _ = exec_repo(folder, "#!/bin/sh\nsleep 600\n")
        done, answer = repo.run(contract(timeout_retry__timeout_sec=1))
        refused(repo, done, answer, "runner", "timeout")


@sandboxed
def programs_need_mcp_only_off_or_a_diagnosis():
    with Folder() as folder:
        repo, _ = exec_repo(folder, AGENT % json.dumps(reply()),
                            runner={"mcp_only": True, "default": "tool"})
        before = repo.head("main")
        done, answer = repo.run(contract())
        refused(repo, done, answer, "runner", "mcp_only")
        done, answer = repo.run(contract(), None, "--diagnostic")
        check(done.returncode == 0, answer, done.stderr)
        manifest = json.loads((pathlib.Path(answer["bundle"]) / "manifest.json").read_text())
        check(manifest["diagnostic"] is True, manifest["diagnostic"])
        check(repo.head("main") == before and answer["merged"] is None, "a diagnosis merged")


REVIEWER = """#!/bin/sh
cat > /dev/null
test -f "$CORTEX_EVIDENCE/patch.diff" || exit 8
%s
echo "{\\"run_id\\":\\"$CORTEX_RUN_ID\\",\\"reviewer\\":{\\"role\\":\\"REVIEWER\\",\\"agent_id\\":\\"r\\"},\\"reviewed_at\\":\\"2026-01-01T00:00:00Z\\",\\"verdict\\":\\"%s\\",\\"summary\\":\\"looked\\",\\"scope_check\\":{\\"passed\\":true,\\"violations\\":[]},\\"evidence\\":[],\\"produced_diff\\":false}"
"""


def reviewed(folder, does, verdict):
    repo, _ = with_policies(folder, roles={"REVIEWER": "reviewer"},
                            runner={"mcp_only": False, "default": "reviewer"},
                            runners={"reviewer": {"kind": "exec",
                                                  "argv": ["sh", "scripts/review.sh"]}})
    repo.write("scripts/review.sh", REVIEWER % (does, verdict), True)
    repo.commit("reviewer")
    return repo


@sandboxed
def an_agent_reviews():
    with Folder() as folder:
        repo = reviewed(folder, ":", "PASS")
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 0, answer, done.stderr)
        report = json.loads((pathlib.Path(answer["bundle"]) / "reports/review_report.json").read_text())
        check(report["summary"] == "looked" and report["reviewer"]["agent_id"] == "r", report)


@sandboxed
def an_agent_that_fails_as_reviewer_is_not_replaced():
    with Folder() as folder:
        repo = reviewed(folder, "exit 5", "PASS")
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        refused(repo, done, answer, "review", "reviewer_blocked")


@sandboxed
def a_reviewer_that_says_no_enters_the_fix_loop():
    with Folder() as folder:
        repo = reviewed(folder, ":", "FAIL")
        done, answer = repo.run(contract(timeout_retry__max_retries=1),
                                script((GOOD_OPS, reply()), (GOOD_OPS, reply())))
        events = refused(repo, done, answer, "review", "review_failed")
        check(payloads(events, "FIX_LOOP_EXHAUSTED") == [{"attempts": 2}], types(events))


@sandboxed
def a_reviewer_cannot_write():
    with Folder() as folder:
        repo = reviewed(folder, "echo x >> src/app/main.c && exit 0", "PASS")
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode in (0, 4), done.stderr)
        check("/* more */" in repo.git("show", f"{answer['final_commit']}:src/app/main.c")
              or answer["failed_gate"] == "review", answer)


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
        for at in range(1, count + 1, 1 if os.environ.get("CX_TEST_ALL") else 3):
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
def without_a_home_nothing_starts():
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
        done, answer = repo.run(contract(allowed_paths=["src/"]), script((GOOD_OPS, reply())),
                                "--dry-run")
        check(done.returncode == 4 and not answer["allow"], answer)
        check(answer["gates"]["policy"]["violations"] == ["wide_path src/"], answer)
        check(not (repo.path / ".runtime-cache").exists(), "the runtime root was made")


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
def secrets_of_the_environment_stay_out():
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
