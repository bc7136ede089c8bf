#!/usr/bin/env python3
"""Live sessions over HTTP: hooks that are posted, sessions that are shown, answered and narrowed."""
import json
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import check, main, test  # noqa: E402
from server_kit import ENV, Server  # noqa: E402

BEFORE = {"gemini": "BeforeTool", "cursor": "preToolUse"}


class Live(Server):
    """A server with a repository to work in, and a token for hooks."""

    def __init__(self, *options, home=None):
        super().__init__("--otlp", "off", "--otlp-grpc", "off", *options, home=home)
        self.hook_token = self.add_token("hook", name="hooks")
        self.repo = self.folder / "work"
        (self.repo / "src").mkdir(parents=True)
        (self.repo / "src/a.c").write_text("int a;\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=self.repo,
                       env=ENV, check=True, capture_output=True)

    def event(self, agent, event, session="s1", **members):
        return {"hook_event_name": event, "cwd": str(self.repo),
                "conversation_id" if agent == "cursor" else "session_id": session, **members}

    def hook(self, body, agent="claude", query="", token=""):
        return self.ask("POST", f"/hook/{agent}{query}", body=body, token=token or self.hook_token)

    def call(self, command, agent="claude", query="?mode=enforce", session="s1", event=None, **members):
        tool = {"gemini": "run_shell_command", "cursor": "Shell"}.get(agent, "Bash")
        return self.hook(self.event(agent, event or BEFORE.get(agent, "PreToolUse"), session, tool_name=tool,
                                    tool_input={"command": command}, tool_use_id="c1", **members),
                         agent, query)

    def shown(self, session="s1"):
        return json.loads(self.command("session", "show", session, "--all", "--json"))

    def decisions(self, session="s1"):
        return [e["payload"] for e in self.shown(session)["entries"] if e["kind"] == "live.decision"]


def denied(answer, agent="claude"):
    """The reason, from the agent's own form of "no"."""
    check(answer.status == 200 and answer.type == "application/json", answer.status, answer.body)
    said = answer.json()
    if agent == "gemini":
        check(said["decision"] == "deny", said)
        return said["reason"]
    if agent == "cursor":
        check(said["permission"] == "deny" and said["user_message"] == said["agent_message"], said)
        return said["agent_message"]
    out = said["hookSpecificOutput"]
    check(out["permissionDecision"] == "deny" and out["hookEventName"] == "PreToolUse", said)
    return out["permissionDecisionReason"]


@test
def a_posted_hook_is_decided_recorded_and_answered_in_the_agents_form():
    with Live() as s:
        for agent in ("claude", "codex", "gemini", "cursor", "copilot"):
            answer = s.call("git status", agent)
            if agent == "cursor":
                check(answer.status == 200 and answer.json() == {"permission": "allow"}, answer.body)
            else:
                check(answer.status == 204 and answer.body == b"", agent, answer.status, answer.body)
            check("C07" in denied(s.call("rm -rf src", agent), agent), agent)
            answer = s.call("make all", agent)
            if agent == "claude":
                out = answer.json()["hookSpecificOutput"]
                check(answer.status == 200 and out["permissionDecision"] == "ask", answer.body)
            else:
                check("cortex session approve s1" in denied(answer, agent), answer.body)
        out = s.call("rm -rf src", event="PermissionRequest").json()["hookSpecificOutput"]
        check(out["decision"]["behavior"] == "deny" and out["hookEventName"] == "PermissionRequest", out)
        flat = s.hook({"sessionId": "flat", "cwd": str(s.repo), "toolName": "bash",
                       "toolArgs": {"command": "rm -rf x"}}, "copilot", "?mode=enforce")
        check(flat.json()["permissionDecision"] == "deny", flat.body)
        for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"):
            answer = s.hook(s.event("claude", event, prompt="x", tool_name="Bash",
                                    tool_input={"command": "ls"}, tool_response="a"))
            check(answer.status == 204, event, answer.status, answer.body)
        found = s.decisions("session:claude-code:s1")
        check([d["verdict"] for d in found] == ["allow", "deny", "ask", "deny"], found)
        check(all(d["via"] == "server" for d in found), found)


@test
def a_query_can_only_make_it_stricter():
    with Live() as s:
        check(s.call("rm -rf src", query="").status == 204)
        one = s.decisions()[0]
        check((one["verdict"], one["would"], one["mode"], one["fail_open"]) == ("allow", "deny", "observe", False),
              one)
        (s.repo / "policies").mkdir()
        (s.repo / "policies/live.json").write_text(json.dumps({"version": "v1", "mode": "enforce"}))
        s.git("add", "-A")
        s.git("commit", "-q", "-m", "policy")
        for query in ("", "?mode=observe", "?mode=ask", "?fail_open=1"):
            denied(s.call("rm -rf src", query=query, session="s2"))
        check([d["fail_open"] for d in s.decisions("s2")] == [False, False, False, True], s.decisions("s2"))
        s.command("session", "limit", "s2", "--no-network")
        check("L09" in denied(s.hook(s.event("claude", "PreToolUse", "s2", tool_name="WebFetch",
                                             tool_input={"url": "http://x.org/", "prompt": "y"}))))


@test
def without_a_decision_the_answer_is_no():
    with Live("--max-body", "1M") as s:
        good = s.event("claude", "PreToolUse", tool_name="Bash", tool_input={"command": "ls"})
        for body in (b"", b"{", b"[]", b"null", b"\xff", b'{"a":1,"a":2}', {}, {**good, "session_id": ""},
                     {**good, "session_id": "x" * 200}, {**good, "tool_name": ""}, {**good, "tool_input": 3}):
            reason = denied(s.hook(body))
            check(reason.startswith("cortex: no decision: ") and "\n" not in reason, reason)
        check("too long" in denied(s.hook({**good, "tool_input": {"command": "x" * (2 << 20)}})))
        denied(s.hook(good, query="?mode=lax"))
        denied(s.hook(good, query="?unknown=1"))
        denied(s.hook(good, agent="nosuch"))
        denied(s.hook(good, agent="mcp"))
        denied(s.ask("POST", "/hook/claude", body=good, token=s.hook_token, type="text/plain"))
        denied(s.hook(b"{", "cursor"), "cursor")
        denied(s.hook(b"{", "gemini"), "gemini")
        # The mode `observe` that was asked for, and fail_open, let it pass.
        for query in ("?mode=observe", "?fail_open=1"):
            check(s.hook({**good, "session_id": ""}, query=query).status == 204)
        check(s.hook({"hook_event_name": "preToolUse"}, "cursor", "?fail_open=1").json() == {"permission": "allow"})
        # What asks for no decision gets a plain problem: "no" to Stop would make the agent go on.
        for event in ("Stop", "PostToolUse", "SessionStart", "UserPromptSubmit"):
            answer = s.hook({"hook_event_name": event})
            check(answer.status == 422 and answer.type == "application/problem+json", event, answer.body)
        check(s.hook(good).status == 204)


@test
def only_the_scope_hook_opens_it_and_it_opens_nothing_else():
    with Live() as s:
        good = s.event("claude", "PreToolUse", tool_name="Bash", tool_input={"command": "ls"})
        s.problem(401, "unauthorized", "POST", "/hook/claude", body=good, token=None)
        s.problem(403, "forbidden", "POST", "/hook/claude", body=good)
        s.problem(403, "forbidden", "GET", "/api/v1/covenant/traces", token=s.hook_token)
        s.problem(403, "forbidden", "POST", "/api/v1/steps", body={}, token=s.hook_token)
        s.problem(405, "method", "GET", "/hook/claude", token=s.hook_token)
        check("no sessions" in s.command("session", "list"))


@test
def many_at_once_each_have_an_entry():
    with Live() as s:
        answers = []

        def send(session):
            for i in range(10):
                answers.append(s.call(f"git log -{i}", session=session).status)

        threads = [threading.Thread(target=send, args=(f"t{i % 4}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(answers.count(204) == 80, answers)
        check(sum(len(s.decisions(f"t{i}")) for i in range(4)) == 80)


if __name__ == "__main__":
    main()
