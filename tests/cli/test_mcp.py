#!/usr/bin/env python3
"""Agents that are MCP servers: `cortex run` with tests/mcp_server.py, which does its work or misbehaves.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib
import shutil

import run_kit
from kit import TESTS, Folder, check, main, skip
from run_kit import (GOOD_OPS, Repo, contract, payloads, reply, script, sha256, types,
                     with_policies)

PYTHON = pathlib.Path("/usr/bin/python3")
TASK = "unit_task_1"
MAIN_C = "int main(void){return 0;}\n/* by an agent */\n"


def sandboxed(function):
    """A test that needs the full sandbox and the Python of the system, which the agents run with."""
    def wrapped():
        if not PYTHON.exists():
            skip(f"there is no {PYTHON}")
        function()
    wrapped.__name__ = function.__name__
    return run_kit.sandboxed(wrapped)


def agent_repo(folder, *turns, **server):
    """A repository whose agent is the scripted server, both part of the baseline."""
    config = {"runner": {"mcp_only": True, "default": "agent"},
              "runners": {"agent": {"kind": "mcp", "provides": ["codex"],
                                    "argv": ["python3", "scripts/mcp_server.py",
                                             "scripts/agent.json"],
                                    "connect_sec": 120}},
              "integrations": {"agent": {"argv": ["python3"],
                                         "sha256": sha256(PYTHON.resolve().read_bytes())}}}
    repo, _ = with_policies(folder, **config)
    shutil.copy(TESTS / "mcp_server.py", repo.path / "scripts/mcp_server.py")
    repo.write("scripts/agent.json", json.dumps({**server, "turns": list(turns)}))
    repo.commit("agent")
    return repo


def good(**more):
    return {"writes": {"src/app/main.c": MAIN_C}, "output": reply(), "thread": "thread-7", **more}


def session(answer):
    """What was said, both ways: (lines as they are, messages)"""
    path = pathlib.Path(answer["bundle"]) / "codex" / TASK / "events.jsonl"
    lines = path.read_text().splitlines()
    messages = []
    for line in lines:
        try:
            messages.append(json.loads(line))
        except ValueError:
            messages.append(None)
    return lines, messages


def refused(repo, done, answer, gate, reason=None):
    check(done.returncode == 4, done.returncode, answer, done.stderr)
    check(answer["status"] == "FAILURE" and answer["failed_gate"] == gate, answer)
    check(reason is None or answer["reason"] == reason, answer)
    check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
    repo.clean()


@sandboxed
def an_mcp_agent_does_the_work():
    with Folder() as folder:
        repo = agent_repo(folder, good(actions=[
            {"notify": ["codex/event", {"msg": {"type": "patch_apply_begin",
                                                "changes": {"src/app/main.c": {}}}}]}]))
        done, answer = repo.run(contract())
        check(done.returncode == 0, answer, done.stderr)
        events = repo.events(answer)
        check(payloads(events, "RUNNER_SELECTED")[0]["runner"] == "mcp", events)
        tools = [payload["tool"] for payload in payloads(events, "TOOL_INVOCATION")]
        check(tools == ["codex", "apply_patch"], tools)
        check(repo.git("show", "main:src/app/main.c") == MAIN_C.strip(), "not merged")
        bundle = pathlib.Path(answer["bundle"])
        check((bundle / "codex" / TASK / "thread_id.txt").read_text().strip() == "thread-7")
        _, messages = session(answer)
        methods = [message.get("method") for message in messages]
        check(methods[:1] == ["initialize"] and "notifications/initialized" in methods, methods)
        hello = messages[0]["params"]
        check(hello["protocolVersion"] == "2025-11-25" and hello["capabilities"] == {}, hello)
        call = next(message for message in messages if message.get("method") == "tools/call")
        arguments = call["params"]["arguments"]
        check(arguments["sandbox"] == "workspace-write", arguments)
        check(arguments["approval-policy"] == "never", arguments)
        check(TASK in arguments["prompt"] and "threadId" not in arguments, arguments)
        check(arguments["cwd"].endswith(TASK), arguments)
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        repo.clean()


def a_thread_goes_on(name, **server):
    with Folder() as folder:
        repo = agent_repo(folder,
                          {"writes": {"src/app/BROKEN": "x"}, "output": reply(), "thread": "t-9"},
                          {"actions": [{"remove": "src/app/BROKEN"}],
                           "writes": {"src/app/main.c": MAIN_C}, "output": reply(),
                           "thread": "t-9"}, **server)
        repo.write("scripts/test.sh", "#!/bin/sh\ntest ! -e src/app/BROKEN\n", True)
        repo.commit("a test that can fail")
        done, answer = repo.run(contract(timeout_retry__max_retries=1))
        check(done.returncode == 0, answer, done.stderr)
        check(answer["attempts"] == 2, answer)
        _, messages = session(answer)
        calls = [message["params"] for message in messages
                 if message is not None and message.get("method") == "tools/call"]
        check([call["name"] for call in calls] == ["codex", "codex-reply"], calls)
        check(calls[1]["arguments"][name] == "t-9", calls[1])
        check(sorted(calls[1]["arguments"]) == sorted(["prompt", name]), calls[1])


@sandboxed
def an_mcp_agent_of_each_revision_does_the_work():
    for version in ("2025-06-18", "2025-11-25", "2026-07-28"):
        with Folder() as folder:
            repo = agent_repo(folder, good(), protocol=version, tools=[["codex"], ["codex-reply"]])
            done, answer = repo.run(contract())
            check(done.returncode == 0, version, answer, done.stderr)
            _, messages = session(answer)
            asked = [m for m in messages if m.get("method")]
            stateless = version == "2026-07-28"
            check([m["method"] for m in asked] ==
                  ["initialize", *(["server/discover"] if stateless else ["notifications/initialized"]),
                   "tools/list", "tools/list", "tools/call"], version, asked)
            for message in asked[1:] if stateless else []:
                meta = message["params"]["_meta"]
                check(meta["io.modelcontextprotocol/protocolVersion"] == version and
                      meta["io.modelcontextprotocol/clientCapabilities"] == {} and
                      meta["io.modelcontextprotocol/clientInfo"]["name"] == "cortex", message)
            check(stateless or not any("_meta" in m.get("params", {}) for m in asked), asked)
            check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
            repo.clean()


@sandboxed
def a_revision_that_there_is_not_ends_the_run():
    with Folder() as folder:
        repo = agent_repo(folder, good(), protocol="2099-01-01")
        done, answer = repo.run(contract())
        check(done.returncode == 4 and "2099-01-01" in json.dumps(answer), answer)
        repo.clean()


@sandboxed
def an_mcp_thread_continues_in_the_fix_loop():
    a_thread_goes_on("threadId")


@sandboxed
def an_mcp_thread_continues_by_its_older_name():
    a_thread_goes_on("conversationId", required={"codex-reply": ["conversationId", "prompt"]})


@sandboxed
def claims_of_agents_are_not_trusted():
    for turn, gate in (
            (good(writes={"README.md": "mine now\n"}), "diff"),
            (good(output="Sure! " + json.dumps(reply())), "output_schema"),
            (good(output={"task_id": TASK, "status": "SUCCESS"}), "output_schema"),
            (good(output=reply("another_task")), "output_schema"),
            ({"result": {"content": [{"type": "text", "text": "out of tokens"}], "isError": True}},
             "runner")):
        with Folder() as folder:
            repo = agent_repo(folder, turn)
            before = repo.head("main")
            done, answer = repo.run(contract())
            refused(repo, done, answer, gate)
            check(repo.head("main") == before)


@sandboxed
def mcp_approval_requests_are_answered_by_the_contract():
    ask = {"ask": ["elicitation/create", {"codex_elicitation": "exec-approval",
                                          "codex_command": ["make", "all"]}]}
    with Folder() as folder:  # never: every request is answered, and the answer is no
        repo = agent_repo(folder, good(actions=[ask, {"ask": ["sampling/createMessage", {}]},
                                                {"ask": ["roots/list", {}]}]))
        done, answer = repo.run(contract())
        check(done.returncode == 0, answer, done.stderr)
        lines, messages = session(answer)
        said = {message["id"]: message for message in messages
                if message is not None and str(message.get("id")).startswith("ask-")
                and "method" not in message}
        check(said["ask-1"]["result"]["decision"] == "denied", said)
        check(said["ask-2"]["error"]["code"] == -32601, said)
        check(said["ask-3"]["error"]["code"] == -32601, said)
        asked = [payload for payload in payloads(repo.events(answer), "TOOL_INVOCATION")
                 if payload["tool"] == "approval_request"]
        check([payload["granted"] for payload in asked] == [False, False], asked)
        check(asked[0]["command"] == "make all", asked)
    with Folder() as folder:  # deny: having asked is enough
        repo = agent_repo(folder, good(actions=[ask]))
        done, answer = repo.run(contract(tool_permissions__shell="deny"))
        refused(repo, done, answer, "runner", "shell_denied")
        check(payloads(repo.events(answer), "policy_violation") != [], types(repo.events(answer)))


@sandboxed
def mcp_servers_that_break_the_protocol_are_refused():
    for server in (
            {"hello": [{"say": "Welcome to the agent!"}]},
            {"hello": [{"complain": "no licence"}, {"exit": 3}]},
            {"protocol": "2001-01-01"},
            {"tools": [["chat"]]},
            {"turns": [good(actions=[{"wrong_id": True}])]},
            {"turns": [good(actions=[{"huge": 17000000}])]},
            {"turns": [good(actions=[{"exit": 0}])]}):
        turns = server.pop("turns", [good()])
        with Folder() as folder:
            repo = agent_repo(folder, *turns, **server)
            done, answer = repo.run(contract())
            refused(repo, done, answer, "runner")
            lines, _ = session(answer)
            check(len(lines) >= 1, "nothing is kept of the session", server)


@sandboxed
def an_mcp_server_that_hangs_is_ended():
    with Folder() as folder:
        repo = agent_repo(folder, good(actions=[{"hang": True}]))
        done, answer = repo.run(contract(timeout_retry__timeout_sec=2))
        refused(repo, done, answer, "runner", "timeout")


main()
