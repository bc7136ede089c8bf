#!/usr/bin/env python3
"""A coding agent that people use, governed: the Codex CLI, both as a server (`mcp`) and as a command (`exec`),
driven by a model that this test plays (fake_model.py).

CORTEX_AGENTS names the folder that scripts/fetch-agents.sh has filled; without it everything is skipped.
Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from fake_model import FakeModel, Say, Shell  # noqa: E402
from kit import Folder, check, main, skip, test  # noqa: E402
from run_kit import contract, need_sandbox, payloads, reply, sha256, with_policies  # noqa: E402

TASK = "unit_task_1"
EDIT = Shell("echo '/* by an agent */' >> src/app/main.c")
CONFIG = """model = "played"
model_provider = "played"
[model_providers.played]
name = "played"
base_url = "%s"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def program(which):
    """The CLI itself, not what npm puts before it."""
    folder = os.environ.get("CORTEX_AGENTS")
    if not folder:
        skip("CORTEX_AGENTS names no folder (scripts/fetch-agents.sh)")
    need_sandbox()
    here = f"vendor/{platform.machine()}-unknown-linux-musl/*/codex"
    found = sorted((pathlib.Path(folder) / which).glob("node_modules/@openai/codex*/" + here))
    check(found, "no codex below", folder, which)
    return found[0].resolve()


def repository(folder, codex, **runner):
    """Its agent is the CLI; the model is on loopback, so it needs the network and its role may have it."""
    name = {"mcp": "codex", "exec": "command"}[runner["kind"]]
    repo, key = with_policies(
        folder, runner={"mcp_only": False, "default": name},
        runners={name: {"provides": ["codex"], "network": True, "connect_sec": 120, **runner}},
        integrations={name: {"argv": ["codex"], "sha256": sha256(codex.read_bytes())}},
        trusted_dirs=["/usr/local/bin", "/usr/bin", "/bin", str(codex.parent)],
        trusted_uid=codex.stat().st_uid, read_only=[str(codex.parent)],
        limits={"memory_bytes": None, "file_bytes": 1 << 30})
    registry = repo.path / "policies" / "agent_registry.json"
    rows = json.loads(registry.read_text())
    for row in rows["agents"]:
        row["defaults"].update(network="allow", approval_policy="on-request")
    registry.write_text(json.dumps(rows))
    repo.commit("agents may reach their model")
    return repo, key


def task(**more):
    return contract(tool_permissions__network="allow", **more)


def governed(folder, repo, model, value):
    base = pathlib.Path(folder) / "codex-base"
    base.mkdir()
    (base / "config.toml").write_text(CONFIG % model.url)
    return repo.run(value, env={"CORTEXPILOT_CODEX_BASE_HOME": str(base)})


def merged(repo, answer):
    check(answer["status"] == "SUCCESS", answer)
    check("/* by an agent */" in repo.git("show", "main:src/app/main.c"), "not merged")
    check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
    repo.clean()


def said_to(model):
    """What its tools answered, as the model heard it."""
    return [item.get("output") for body in model.requests[-1:] for item in body.get("input", [])
            if item.get("type") == "function_call_output"]


def session(answer):
    path = pathlib.Path(answer["bundle"]) / "codex" / TASK / "events.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]


EXEC = ["codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--cd", "{cwd}",
        "--output-schema", "{schema}", "--output-last-message", "{output}", "-"]


@test
def codex_as_a_command_does_its_task():
    codex = program("exec")
    with Folder() as folder, FakeModel([EDIT, Say(reply())]) as model:
        repo, _ = repository(folder, codex, kind="exec", argv=EXEC)
        done, answer = governed(folder, repo, model, task())
        check(done.returncode == 0, answer, done.stderr, model.requests and len(model.requests))
        merged(repo, answer)
        check(any(event.get("type") == "turn.completed" for event in session(answer)), session(answer))


@test
def codex_as_a_command_is_held_to_its_paths():
    codex = program("exec")
    with Folder() as folder, FakeModel([Shell("echo x >> README.md"), EDIT, Say(reply())]) as model:
        repo, _ = repository(folder, codex, kind="exec", argv=EXEC)
        before = repo.head("main")
        done, answer = governed(folder, repo, model, task())
        check(done.returncode == 4 and answer["failed_gate"] == "diff", answer, done.stderr)
        check(repo.head("main") == before)
        repo.clean()


@test
def codex_as_an_mcp_server_does_its_task():
    codex = program("mcp")
    with Folder() as folder, FakeModel([EDIT, Say(reply())]) as model:
        repo, _ = repository(folder, codex, kind="mcp", argv=["codex", "mcp-server"])
        done, answer = governed(folder, repo, model, task())
        check(done.returncode == 0, answer, done.stderr, said_to(model))
        merged(repo, answer)
        thread = (pathlib.Path(answer["bundle"]) / "codex" / TASK / "thread_id.txt").read_text().strip()
        check(thread, "it has no thread")


@test
def a_thread_goes_on_after_a_failed_test():
    codex = program("mcp")
    steps = [Shell("touch src/app/BROKEN"), Say(reply()), Shell("rm src/app/BROKEN"), EDIT, Say(reply())]
    with Folder() as folder, FakeModel(steps) as model:
        repo, _ = repository(folder, codex, kind="mcp", argv=["codex", "mcp-server"])
        repo.write("scripts/test.sh", "#!/bin/sh\ntest ! -e src/app/BROKEN\n", True)
        repo.commit("a test that can fail")
        done, answer = governed(folder, repo, model, task(timeout_retry__max_retries=1))
        check(done.returncode == 0, answer, done.stderr, said_to(model))
        check(answer["attempts"] == 2, answer)
        calls = [line["params"]["name"] for line in session(answer) if line.get("method") == "tools/call"]
        check(calls == ["codex", "codex-reply"], calls)
        merged(repo, answer)


@test
def requests_of_codex_are_answered_by_the_contract():
    codex = program("mcp")
    with Folder() as folder, FakeModel([EDIT, Say(reply())]) as model:
        repo, _ = repository(folder, codex, kind="mcp", argv=["codex", "mcp-server"])
        done, answer = governed(folder, repo, model, task(tool_permissions__shell="untrusted"))
        check(done.returncode == 4 and answer["failed_gate"] == "review", answer, done.stderr)
        asked = [line["id"] for line in session(answer) if line.get("method") == "elicitation/create"]
        check(len(asked) == 1, session(answer))
        said = [line["result"] for line in session(answer) if line.get("id") == asked[0] and "result" in line]
        check(said == [{"action": "decline", "decision": "denied"}], said)
        check(["exec command rejected by user"] == said_to(model), said_to(model))
        repo.clean()


if __name__ == "__main__":
    main()
