#!/usr/bin/env python3
"""Governed runs from outside: approvals, programs as agents, agents as reviewers.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib

from kit import Folder, check, main
from run_kit import (AGENT, GOOD_OPS, approve, contract, exec_config, exec_repo, payloads, refused,
                     reply, sandboxed, script, sha256, types, with_policies)


# --- approvals ------------------------------------------------------------------------------------


@sandboxed
def a_wide_path_is_allowed_by_an_approval():
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
def a_changed_script_is_allowed_by_an_approval():
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
def a_run_waits_for_an_approval():
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


@sandboxed
def an_exec_agent_does_the_work():
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
def an_exec_agent_that_fails_ends_the_run():
    with Folder() as folder:
        repo, _ = exec_repo(folder, "#!/bin/sh\necho broken >&2\nexit 3\n")
        done, answer = repo.run(contract())
        refused(repo, done, answer, "runner", "failed")
        check("broken" in answer["hint"], answer)


@sandboxed
def an_exec_agent_that_hangs_is_ended():
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
def an_agent_can_review():
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
def a_rejecting_reviewer_starts_the_fix_loop():
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


@sandboxed
def agents_and_tests_do_not_see_what_reaches_the_data_directory():
    look = "(env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n')"
    reach = {"CORTEX_URL": "https://r3ach.example:8420", "CORTEX_TOKEN": "cortex_r3ach" + "x" * 38,
             "CORTEX_HOME": "postgresql://ann:r3ach@db.example/cortex", "PGPASSWORD": "r3ach"}
    with Folder() as folder:
        repo, _ = exec_repo(folder, AGENT.replace("echo 'noise'", look + " | sed 's/^/seen /' | tee -a src/app/main.c")
                            % json.dumps(reply()))
        repo.write("scripts/test.sh", f"#!/bin/sh\n{look} | sed 's/^/tested /'\n", True)
        repo.commit("tests that look, too")
        done, answer = repo.run(contract(), None, "--home", repo.home, env=reach)
        check(done.returncode == 0, answer, done.stderr)
        told = repo.path.joinpath("src/app/main.c").read_text()
        check("seen CORTEX_RUN_ID=" in told and "seen PATH=" in told, told)
        names = {line.split("=")[0] for line in told.splitlines() if line.startswith("seen CORTEX_")}
        check(names <= {"seen CORTEX_RUN_ID", "seen CORTEX_TASK_ID"}, names)
        parts = [p.read_bytes() for p in pathlib.Path(answer["bundle"]).rglob("*") if p.is_file()]
        check(any(b"tested PATH=" in part for part in parts), "the tests' output is in no file")
        check("r3ach" not in told and not any(b"r3ach" in part for part in parts))


RESUMED = """#!/bin/sh
cat > /dev/null
echo "args: $*"
echo "/* $# */" >> src/app/more.c
sed -i 's/return 0/return 1/' src/app/main.c
echo '{"thread_id":"%s"}'
echo '%s'
"""


@sandboxed
def an_agent_does_not_name_options_of_its_program():
    """The thread of one attempt is a word of the next one's command line."""
    for thread, used in (("thread-7", "--resume thread-7"), ("--approve-everything", ""), ("a b", ""), ("x" * 257, "")):
        with Folder() as folder:
            config = exec_config("scripts/agent.sh")
            config["runners"]["tool"]["argv"] += ["--resume", "{thread}"]
            repo, _ = with_policies(folder, **config)
            repo.write("scripts/agent.sh", RESUMED % (thread, json.dumps(reply())), True)
            repo.commit("agent")
            done, answer = repo.run(contract(timeout_retry__max_retries=1))
            check(done.returncode == 4 and answer["failed_gate"] in ("tests", "fix_loop"), answer)
            parts = [p.read_bytes() for p in pathlib.Path(answer["bundle"]).rglob("*") if p.is_file()]
            told = {line for part in parts for line in part.decode(errors="replace").splitlines()
                    if line.startswith("args:")}
            check(told == {"args: ", f"args: {used}"}, told)


if __name__ == "__main__":
    main()
