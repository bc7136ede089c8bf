"""Sessions as agents print them: recorded shapes of Claude Code, Codex, Gemini, OpenCode, Cursor."""
import json

SECRET = "sk-ant-" + "abcDEF0123" * 4


def agent(records, before="", after=""):
    """A script that changes a file and prints the records."""
    lines = "\n".join(r if isinstance(r, str) else json.dumps(r) for r in records)
    return ("#!/bin/sh\ncat >/dev/null\n%s\necho '/* by a program */' >> src/app/main.c\n"
            "cat <<'END'\n%s\nEND\n%s\n" % (before, lines, after))


def claude(answer, command="ls src"):
    return [
        {"type": "system", "subtype": "init", "session_id": "s-1", "tools": ["Bash"], "model": "m"},
        {"type": "assistant", "session_id": "s-1", "message": {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "first look"},
            {"type": "text", "text": "I look.\n# not a heading \x1b[31m\u202e"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": command}}]}},
        {"type": "user", "session_id": "s-1", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True,
             "content": [{"type": "text", "text": "key " + SECRET}]}]}},
        {"type": "assistant", "session_id": "s-1", "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_2", "name": "Edit",
             "input": {"file_path": "src/app/main.c", "new_string": "y" * 9000}}]}},
        {"type": "hologram", "session_id": "s-1"},
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-1",
         "result": json.dumps(answer)},
    ]


def codex(answer):
    shell = {"id": "item_1", "type": "command_execution", "command": "bash -lc ls",
             "aggregated_output": "", "exit_code": None, "status": "in_progress"}
    return [
        {"type": "thread.started", "thread_id": "t-7"}, {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "hm"}},
        {"type": "item.started", "item": shell},
        {"type": "item.updated", "item": shell},
        {"type": "item.completed", "item": {**shell, "aggregated_output": "src\n", "exit_code": 0,
                                            "status": "completed"}},
        {"type": "item.completed", "item": {
            "id": "item_2", "type": "file_change", "status": "completed",
            "changes": [{"path": "src/app/main.c", "kind": "update"}]}},
        {"type": "item.completed", "item": {
            "id": "item_3", "type": "mcp_tool_call", "server": "docs", "tool": "find",
            "arguments": {"q": "x"}, "result": None, "error": {"message": "no"}, "status": "failed"}},
        {"type": "item.completed", "item": {"id": "item_4", "type": "agent_message",
                                            "text": json.dumps(answer)}},
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
    ]


def gemini(answer):
    text = json.dumps(answer)
    return [
        {"type": "init", "session_id": "g-1", "model": "m"},
        {"type": "message", "role": "user", "content": "go"},
        {"type": "message", "role": "assistant", "content": "I list ", "delta": True},
        {"type": "message", "role": "assistant", "content": "files.", "delta": True},
        {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "c1",
         "parameters": {"command": "ls"}},
        {"type": "tool_result", "tool_id": "c1", "status": "success", "output": "src"},
        {"type": "message", "role": "assistant", "content": text[:9], "delta": True},
        {"type": "message", "role": "assistant", "content": text[9:], "delta": True},
        {"type": "result", "status": "success", "stats": {}},
    ]


def older_codex(answer):
    return [
        {"id": "0", "msg": {"type": "session_configured", "session_id": "o-1"}},
        {"id": "1", "msg": {"type": "exec_command_begin", "call_id": "k", "command": ["ls", "-l"]}},
        {"id": "1", "msg": {"type": "exec_command_end", "call_id": "k", "exit_code": 1,
                            "aggregated_output": "denied"}},
        {"id": "1", "msg": {"type": "agent_message", "message": json.dumps(answer)}},
    ]


def opencode(answer):
    return [
        {"type": "step_start", "sessionID": "e-1", "part": {"type": "step-start"}},
        {"type": "tool_use", "sessionID": "e-1", "part": {
            "tool": "bash", "callID": "b1", "state": {"status": "completed", "output": "ok",
                                                      "input": {"command": "ls"}}}},
        {"type": "text", "sessionID": "e-1", "part": {"text": json.dumps(answer)}},
    ]


def cursor(answer):
    return [
        {"type": "system", "subtype": "init", "session_id": "u-1"},
        {"type": "tool_call", "subtype": "started", "call_id": "r1", "session_id": "u-1",
         "tool_call": {"readToolCall": {"args": {"path": "README.md"}}}},
        {"type": "tool_call", "subtype": "completed", "call_id": "r1", "session_id": "u-1",
         "tool_call": {"readToolCall": {"args": {"path": "README.md"}, "result": {"success": {}}}}},
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "u-1",
         "result": json.dumps(answer)},
    ]
