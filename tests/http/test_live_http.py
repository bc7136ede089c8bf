#!/usr/bin/env python3
"""Live sessions over HTTP: hooks that are posted, sessions that are shown, answered and narrowed."""
import json
import pathlib
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import BIN, check, main, test  # noqa: E402
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

    def call(self, command, agent="claude", query="?mode=enforce", session="s1", event=None, tool_use_id="c1"):
        tool = {"gemini": "run_shell_command", "cursor": "Shell"}.get(agent, "Bash")
        return self.hook(self.event(agent, event or BEFORE.get(agent, "PreToolUse"), session, tool_name=tool,
                                    tool_input={"command": command}, tool_use_id=tool_use_id), agent, query)

    def reading(self):
        return self.ask("GET", "/api/v1/sessions").json()

    def session(self, name="session:claude-code:s1", query=""):
        answer = self.get(f"/api/v1/sessions/{urllib.parse.quote(name, safe='')}{query}")
        check(answer.status == 200, answer.status, answer.body)
        return answer.json()

    def person(self, what, body, name="session:claude-code:s1", status=200):
        if not hasattr(self, "person_token"):
            self.person_token = self.add_token("session:approve", name="ann")
        answer = self.ask("POST", f"/api/v1/sessions/{urllib.parse.quote(name, safe='')}/{what}", body=body,
                          token=self.person_token)
        check(answer.status == status, what, body, answer.status, answer.body)
        return answer.json()

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
            check(reason.startswith("cortex: no decision: ") and "\n" not in reason and "log" not in reason, reason)
        check("too long" in denied(s.hook({**good, "tool_input": {"command": "x" * (3 << 19)}})))
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


@test
def sessions_are_listed_newest_first_in_pages():
    with Live() as s:
        check(s.reading() == {"next_cursor": None, "sessions": [], "total": 0}, s.reading())
        for i in range(7):
            s.call("ls", session=f"p{i}")
        s.call("rm -rf src", session="p2")
        s.call("make all", session="p2")
        s.hook(s.event("claude", "SessionEnd", "p3", reason="other"))
        listed = s.reading()
        names = [one["session"] for one in listed["sessions"]]
        check(names == ["p3", "p2", "p6", "p5", "p4", "p1", "p0"] and listed["total"] == 7, names)
        one = listed["sessions"][1]
        check((one["calls"], one["denied"], one["asked"], one["waiting"], one["mode"], one["cwd"], one["ended"])
              == (3, 1, 1, 1, "enforce", str(s.repo), False), one)
        found, cursor = [], ""
        while cursor is not None:
            page = s.get("/api/v1/sessions?limit=3" + (cursor and "&cursor=" + urllib.parse.quote(cursor))).json()
            found += [one["session"] for one in page["sessions"]]
            cursor = page["next_cursor"]
        check(found == names, found)
        running = s.get("/api/v1/sessions?running=1").json()["sessions"]
        check([one["session"] for one in running] == [n for n in names if n != "p3"], running)
        # Another process, through the writer's socket, and a server that starts again.
        subprocess.run([BIN, "hook", "claude", "--home", s.home], env=ENV, check=True, input=json.dumps(
            s.event("claude", "PreToolUse", "p0", tool_name="Bash", tool_input={"command": "ls"})).encode())
        check(s.reading()["sessions"][0]["session"] == "p0")
        s.stop()
        s.start()
        check([one["session"] for one in s.reading()["sessions"]] == ["p0", "p3", "p2", "p6", "p5", "p4", "p1"])
        for cursor in ("x", "12", "12:", "12:agent", "1" * 30 + ":session:claude-code:p0"):
            s.problem(422, "invalid-parameter", "GET", "/api/v1/sessions?cursor=" + cursor)
        s.problem(404, "not-found", "GET", "/api/v1/sessions/nosuch")
        s.problem(404, "not-found", "GET", "/api/v1/sessions/session%3Aclaude-code%3Anosuch")
        s.problem(404, "not-found", "GET", "/api/v1/sessions/first")
        check(s.session("p4")["session"]["actor"] == "session:claude-code:p4")


@test
def a_session_is_shown_with_its_decisions_and_their_results():
    with Live() as s:
        for i in range(3):
            more = {"tool_name": "Bash", "tool_input": {"command": f"git log -{i}"}, "tool_use_id": f"c{i}"}
            s.hook(s.event("claude", "PreToolUse", **more, agent_id="a1", agent_type="Explore"))
            s.hook(s.event("claude", "PostToolUse" if i else "PostToolUseFailure", **more, tool_response="out"))
        s.hook(s.event("claude", "PreToolUse", tool_name="Write", tool_use_id="big", tool_input={
            "file_path": str(s.repo / "src/b.c"), "content": "x" * 9000}), query="?mode=enforce")
        s.call("rm -rf src")
        shown = s.session()
        decisions = [e for e in shown["entries"] if e["kind"] == "decision"]
        check([e["payload"]["rule"] for e in decisions] == ["C07", "L00", "L00", "L00", "L00"], decisions)
        check([e["result"] and e["result"]["outcome"] for e in decisions] == [None, None, "done", "done", "failed"],
              decisions)
        check(any(e["why"] for e in decisions[0]["payload"]["effects"] if e["verdict"] == "forbidden") and
              decisions[0]["payload"]["reason"], decisions[0])
        check(decisions[1]["payload"]["call"]["input"] is None and
              decisions[1]["payload"]["call"]["input_bytes"] > 9000, decisions[1])
        check(decisions[2]["payload"]["subagent"] == {"id": "a1", "type": "Explore"}, decisions[2])
        check(shown["policy"]["from"] == "built_in" and shown["policy"]["root"] == str(s.repo), shown["policy"])
        check([e["seq"] for e in shown["entries"]] == list(range(8, -1, -1)) and shown["next"] is None)
        # In pages: a result that is on a newer page still belongs to its decision.
        found, query = [], "?limit=2"
        while True:
            page = s.session(query=query)
            found += page["entries"]
            if page["next"] is None:
                break
            query = f"?limit=2&before={page['next']}"
        check(found == shown["entries"], "pages differ")
        check(s.session(query="?before=0")["entries"] == [])
        s.problem(422, "invalid-parameter", "GET", "/api/v1/sessions/s1?limit=501")
        full = s.add_token("trace:read", level="generic")
        s.problem(403, "forbidden", "GET", "/api/v1/sessions", token=full)


@test
def a_person_answers_what_waits_and_only_that():
    with Live() as s:
        s.call("make all")
        s.call("make check")
        waiting = s.session()["waiting"]
        check([(w["tool"], w["text"], w["rule"], w["dangerous"], w["input"]) for w in waiting] ==
              [("Bash", "make all", "C09", False, {"command": "make all"}),
               ("Bash", "make check", "C09", False, {"command": "make check"})], waiting)
        first, second = (w["input_sha256"] for w in waiting)
        for body in ({}, {"input_sha256": first[:12]}, {"input_sha256": first.upper()}, {"input_sha256": 3},
                     {"input_sha256": first, "by": "root"}, {"input_sha256": first, "whole_session": "yes"},
                     {"input_sha256": first, "reason": "x" * 1001}, []):
            s.person("approve", body, status=422)
        s.person("approve", {"input_sha256": "0" * 64}, status=409)
        s.person("approve", {"input_sha256": first}, "session:claude-code:other", status=404)
        said = s.person("approve", {"input_sha256": first, "reason": "ok"})
        check(said["allow"] and not said["whole_session"] and said["actor"] == "session:claude-code:s1", said)
        s.person("approve", {"input_sha256": first}, status=409)
        check([w["text"] for w in s.session()["waiting"]] == ["make check"])
        check(s.call("make all").status == 204)
        check(s.call("make all").json()["hookSpecificOutput"]["permissionDecision"] == "ask", "it counts once")
        s.person("deny", {"input_sha256": second})
        check("L04" in denied(s.call("make check")))
        s.person("approve", {"input_sha256": first, "whole_session": True})
        check([s.call("make all").status for _ in range(3)] == [204] * 3)
        shown = s.session()
        check(shown["waiting"] == [] and shown["session"]["waiting"] == 0, shown)
        by = [e["approved_by"] for e in shown["entries"] if e["kind"] == "decision"]
        check(by[:4] == ["token:ann", "token:ann", "token:ann", "token:ann"], by)
        # The agent's own prompt was answered: the call ran, and waits no more.
        s.call("make it", tool_use_id="c7")
        check(len(s.session()["waiting"]) == 1)
        s.call("make it", event="PostToolUse", tool_use_id="c7")
        check(s.session()["waiting"] == [])
        # In mode `ask` a person may allow what is forbidden: it says so.
        s.call("rm -rf src", query="?mode=ask", session="s2")
        check([w["dangerous"] for w in s.session("s2")["waiting"]] == [True])


@test
def a_person_narrows_a_session_and_cannot_widen_it():
    with Live() as s:
        s.call("ls")
        for body in ({}, {"mode": "lax"}, {"network": "none"}, {"paths": [3]}, {"paths": [""]}, {"paths": "src/"},
                     {"paths": ["x"] * 101}, {"unknown": 1}, {"contract": {}}, {"contract": {"a": 1}, "mode": "ask"},
                     {"paths": ["../x"]}):
            s.person("limit", body, status=422)
        said = s.person("limit", {"paths": ["src/"], "network": "deny", "mode": "enforce", "tools_deny": ["Task"]})
        check(said["policy"]["network"] == "deny" and said["policy"]["write"][-1] == ["src/"] and
              said["policy"]["mode"] == "enforce" and "Task" in said["policy"]["tools_deny"], said)

        def write(path):
            return s.hook(s.event("claude", "PreToolUse", tool_name="Write", tool_use_id="w", tool_input={
                "file_path": str(s.repo / path), "content": "x"}))

        check(write("src/new.c").status == 204)
        check("L14" in denied(write("README.md")))
        s.person("limit", {"mode": "observe"}, status=422)
        s.person("limit", {"network": "allow"}, status=422)
        entry = [e for e in s.session()["entries"] if e["kind"] == "limit"][0]
        check(entry["payload"]["by"] == "token:ann" and entry["payload"]["paths"] == ["src/"], entry)


@test
def the_feed_says_that_a_session_moved():
    with Live() as s:
        feed = s.connect(timeout=30)
        feed.request("GET", "/api/v1/feed?hints=true", headers={"Authorization": "Bearer " + s.token})
        stream = feed.getresponse()
        s.call("ls")
        lines = []
        while "data: {\"kind\":\"live.decision\"}" not in lines:
            lines.append(stream.readline().decode().rstrip("\n"))
        check("event: session" in lines and not [line for line in lines if str(s.repo) in line], lines)
        feed.close()


@test
def the_inbox_and_the_debugger_have_it():
    with Live() as s:
        s.call("git status", session="in1")
        s.call("rm -rf src", session="in1", tool_use_id="c2")
        s.call("make all", session="in1", tool_use_id="c3")
        items = s.get("/api/v1/inbox?kind=history&source=live").json()["items"]
        check([(i["id"], i["kind"], i["value"]["denied"], i["value"]["waiting"]) for i in items] ==
              [("session:claude-code:in1", "history", 1, 1)], items)
        check(len(s.get("/api/v1/inbox?q=in1").json()["items"]) == 1)
        check(s.get("/api/v1/inbox?q=otherword").json()["items"] == [])
        low = s.add_token("trace:read", level="generic")
        check(s.get("/api/v1/inbox", token=low).json()["items"] == [])
        summary = s.get("/api/v1/view/session/in1/summary").json()
        check(summary["nodes"] == 4, summary)
        verified = s.get("/api/v1/lattice/session/in1/verify").json()
        check(verified["ok"] and verified["nodes"] == 4, verified)
        found = s.get("/api/v1/view/session/in1/grep?q=C07").json()
        check("C07" in json.dumps(found), found)
        why = s.get("/api/v1/lattice/session/in1/why?node=@main&key=decision.c2").json()
        check("C07" in json.dumps(why), why)
        s.problem(404, "not-found", "GET", "/api/v1/view/session/none-such/summary")


@test
def a_hook_that_waits_answers_when_the_page_does():
    for allow in (True, False):
        with Live() as s:
            body = s.event("cursor", "preToolUse", tool_name="Shell", tool_input={"command": "make all"},
                           tool_use_id="c1")
            hook = subprocess.Popen([BIN, "hook", "cursor", "--home", s.home, "--mode", "enforce", "--wait", "100"],
                                    env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            hook.stdin.write(json.dumps(body).encode())
            hook.stdin.close()
            name = "session:cursor:s1"
            waiting = s.wait_for(lambda: s.reading()["sessions"] and s.session(name)["waiting"])
            s.person("approve" if allow else "deny", {"input_sha256": waiting[0]["input_sha256"]}, name)
            out, said, code = hook.stdout.read(), hook.stderr.read(), hook.wait(timeout=60)
            if allow:
                check((code, out, said) == (0, b'{"permission":"allow"}\n', b""), code, out, said)
            else:
                check(code == 2 and out == b"" and b"L04" in said, code, out, said)


@test
def an_answer_that_counts_once_ends_the_wait_of_one_hook():
    with Live() as s:
        body = json.dumps(s.event("codex", "PreToolUse", tool_name="Bash", tool_input={"command": "make all"},
                                  tool_use_id="c1")).encode()
        hooks = []
        for _ in range(2):
            hooks.append(subprocess.Popen([BIN, "hook", "codex", "--home", s.home, "--mode", "enforce", "--wait",
                                           "100"], env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE))
            hooks[-1].stdin.write(body)
            hooks[-1].stdin.close()
        name = "session:codex:s1"
        s.wait_for(lambda: s.reading()["sessions"] and s.reading()["sessions"][0]["asked"] == 2)
        waiting = s.session(name)["waiting"]
        check(len(waiting) == 1, waiting)
        answer = {"input_sha256": waiting[0]["input_sha256"]}
        s.person("approve", answer, name)
        s.wait_for(lambda: [h.poll() for h in hooks].count(0) == 1)
        s.wait_for(lambda: s.session(name)["waiting"])
        check([h.poll() for h in hooks].count(None) == 1, "the other one waits")
        s.person("approve", answer, name)
        check([h.wait(timeout=60) for h in hooks] == [0, 0])
        verdicts = [e["payload"]["verdict"] for e in s.session(name)["entries"] if e["kind"] == "decision"]
        check(verdicts == ["allow", "ask", "allow", "ask", "ask"], verdicts)


if __name__ == "__main__":
    main()
