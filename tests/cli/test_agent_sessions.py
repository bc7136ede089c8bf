#!/usr/bin/env python3
"""Agents that print their session while they work: tool calls become events at once, the
conversation is transcript.md, and the reply is what the session calls its result.

The agents are scripts that print recorded shapes of Claude Code, Codex, Gemini and others.
Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib
import time

from agent_records import SECRET, agent, claude, codex, cursor, gemini, older_codex, opencode
from kit import Folder, check, main
from run_kit import contract, exec_repo, payloads, refused, reply, sandboxed, types


def played(folder, text, **changes):
    repo, _ = exec_repo(folder, text)
    done, answer = repo.run(contract(**changes))
    return repo, done, answer


def conversation(answer):
    return (pathlib.Path(answer["bundle"]) / "codex/unit_task_1/transcript.md").read_text()


def session_of(events):
    return payloads(events, "RUNNER_FINISHED")[0].get("session")


@sandboxed
def claude_codes_calls_are_events_and_its_result_is_the_reply():
    with Folder() as folder:
        repo, done, answer = played(folder, agent(claude(reply()) + ["{broken", "noise"]))
        check(done.returncode == 0, answer, done.stderr)
        events = repo.events(answer)
        calls = payloads(events, "TOOL_INVOCATION")
        check([c["tool"] for c in calls] == ["Bash", "Edit"], calls)
        check(calls[0]["call"] == "toolu_1" and calls[0]["command"] == "ls src", calls[0])
        check(len(calls[1]["input"]) == 4096 and calls[1]["input_cut"] is True, calls[1])
        check(session_of(events) == {"format": "claude", "lines": 8, "unknown": 1, "broken": 2,
                                     "messages": 2, "tool_calls": 2}, session_of(events))
        text = conversation(answer)
        for part in ("### reasoning\n\n> first look\n", "### assistant\n\n> I look.\n> # not a",
                     "### call of Bash (toolu_1)\n\n    {\"command\":\"ls src\"}\n",
                     "### result of toolu_1, failed\n\n    key [masked]\n", "more bytes are in"):
            check(part in text, part, text)
        check("\x1b" not in text and "\u202e" not in text and SECRET not in text, text)
        check(text.endswith("\n- turn 0: done\n"), text[-80:])
        raw = (pathlib.Path(answer["bundle"]) / "codex/unit_task_1/events.jsonl").read_text()
        check("{broken\nnoise\n" in raw and "hologram" in raw, raw[-200:])
        check((pathlib.Path(answer["bundle"]) / "codex/unit_task_1/thread_id.txt").read_text()
              == "s-1\n")
        check(repo.verify(answer).returncode == 0)


@sandboxed
def every_known_form_is_read():
    rows = [(codex, "codex", "t-7", ["shell", "apply_patch", "mcp"]),
            (gemini, "gemini", "g-1", ["run_shell_command"]),
            (older_codex, "codex", "o-1", ["shell"]),
            (opencode, "opencode", "e-1", ["bash"]),
            (cursor, "cursor", "u-1", ["readToolCall"])]
    for records, form, thread, tools in rows:
        with Folder() as folder:
            repo, done, answer = played(folder, agent(records(reply())))
            check(done.returncode == 0, records.__name__, answer, done.stderr)
            events = repo.events(answer)
            got = [c["tool"] for c in payloads(events, "TOOL_INVOCATION")]
            check(got == tools, records.__name__, got)
            check(session_of(events)["format"] == form, session_of(events))
            check(session_of(events)["unknown"] == 0, session_of(events))
            text = conversation(answer)
            check("### call of " + tools[0] in text and "### result of " in text, text)
            bundle = pathlib.Path(answer["bundle"])
            check((bundle / "codex/unit_task_1/thread_id.txt").read_text().strip() == thread)
        if records is gemini:
            check("> I list \n> files.\n" in text, text)


@sandboxed
def a_denied_shell_ends_the_turn():
    with Folder() as folder:
        repo, done, answer = played(folder, agent(claude(reply()), after="sleep 60"),
                                    tool_permissions__shell="deny")
        events = refused(repo, done, answer, "runner", "shell_denied")
        check(len(payloads(events, "TOOL_INVOCATION")) == 1, types(events))


@sandboxed
def an_agent_that_says_it_failed_is_believed():
    failed = {"type": "result", "subtype": "error_during_execution", "is_error": True,
              "session_id": "s-1", "result": "Invalid API key \u00b7 Please run /login"}
    with Folder() as folder:
        repo, done, answer = played(folder, agent(claude(reply())[:1] + [failed]))
        refused(repo, done, answer, "runner", "failed")
        check("Please run /login" in answer["hint"], answer)
    with Folder() as folder:
        records = codex(reply())[:2] + [{"type": "error", "message": "Reconnecting 1/5"},
                                        {"type": "turn.failed", "error": {"message": "quota"}}]
        repo, done, answer = played(folder, agent(records))
        refused(repo, done, answer, "runner", "failed")
        check("quota" in answer["hint"], answer)
        check("Reconnecting" in conversation(answer), conversation(answer))


@sandboxed
def calls_are_recorded_while_the_agent_works():
    with Folder() as folder:
        repo, _ = exec_repo(folder, agent(claude(reply())[:2], after="sleep 600"))
        process = repo.cortex("run", repo.keep("contract.json", contract()), popen=True)
        seen, until = "", time.monotonic() + 60
        while "TOOL_INVOCATION" not in seen and time.monotonic() < until:
            for path in (repo.root / "runs").glob("*/events.jsonl"):
                seen = path.read_text()
            time.sleep(0.1)
        process.terminate()
        process.communicate(timeout=60)
        check("TOOL_INVOCATION" in seen and "RUNNER_FINISHED" not in seen, seen[-300:])


if __name__ == "__main__":
    main()
