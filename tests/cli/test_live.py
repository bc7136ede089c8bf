#!/usr/bin/env python3
"""cortex hook, cortex session: what coding agents' hooks send is decided, recorded, answered.

Closes with `N passed, N failed, N skipped`.  CORTEX_LIVE_KILLS is how often a hook is killed.
"""
import hashlib
import json
import os
import pathlib
import pty
import random
import shutil
import signal
import subprocess
import time

import kit
from kit import BIN, check, clean_env, main, run, skip, test

KILLS = int(os.environ.get("CORTEX_LIVE_KILLS", "24"))
SANITIZED = b"__asan" in pathlib.Path(BIN).read_bytes()
ALLOW = b'{"permission":"allow"}\n'


class Place(kit.Folder):
    """A repository with one commit, a data directory, a user's folder."""

    def __enter__(self):
        self.folder = super().__enter__()
        self.repo = self.folder / "repo"
        self.home = self.folder / "home"
        self.user = self.folder / "user"
        self.user.mkdir()
        (self.repo / "src").mkdir(parents=True)
        (self.repo / "src/a.c").write_text("int a;\n")
        self.env = clean_env(HOME=self.user, USER="ann", LOGNAME="ann")
        self.git("init", "-q")
        self.commit()
        check(run(BIN, "init", "--home", self.home, env=self.env).returncode == 0)
        return self

    def git(self, *words):
        done = run("git", "-c", "user.name=a", "-c", "user.email=a@b", *words, cwd=self.repo, env=self.env)
        check(done.returncode == 0, words, done.stderr)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")

    def policy(self, **members):
        (self.repo / "policies").mkdir(exist_ok=True)
        for name in os.listdir(kit.TESTS.parent / "policies"):
            source = kit.TESTS.parent / "policies" / name
            if source.is_dir():
                shutil.copytree(source, self.repo / "policies" / name, dirs_exist_ok=True)
            else:
                shutil.copy(source, self.repo / "policies" / name)
        (self.repo / "policies/live.json").write_text(json.dumps({"version": "v1", **members}))

    def hook(self, agent, payload, *words, **options):
        text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return run(BIN, "hook", agent, "--home", self.home, *words, stdin=text, env=self.env, **options)

    def call(self, agent, tool, tool_input, *words, session="s1", call_id="c1", event=None, **more):
        event = event or {"gemini": "BeforeTool", "cursor": "preToolUse"}.get(agent, "PreToolUse")
        payload = {"hook_event_name": event, "cwd": str(self.repo), "tool_name": tool, "tool_input": tool_input,
                   "conversation_id" if agent == "cursor" else "session_id": session, **more}
        if agent in ("claude", "codex", "cursor"):
            payload["tool_use_id"] = call_id
        return self.hook(agent, payload, *words)

    def cortex(self, *words, code=0):
        done = run(BIN, *words, "--home", self.home, env=self.env)
        check(done.returncode == code, words, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    def shown(self, session="s1"):
        return json.loads(self.cortex("session", "show", session, "--all", "--json"))

    def last(self, session):
        """What the latest entry says, and where it is; None when the session has none."""
        done = run(BIN, "session", "show", session, "--all", "--json", "--home", self.home, env=self.env)
        entries = json.loads(done.stdout)["entries"] if done.returncode == 0 else []
        return {**entries[-1]["payload"], "seq": len(entries)} if entries else None

    def entries(self, kind, session="s1"):
        return [e["payload"] for e in self.shown(session)["entries"] if e["kind"] == "live." + kind]


def no(done, *words):
    """Exit 2, one line on standard error, nothing on standard output."""
    check(done.returncode == 2 and done.stdout == b"" and done.stderr.count(b"\n") == 1
          and done.stderr.startswith(b"cortex: "), done)
    for word in words:
        check(word.encode() in done.stderr, word, done.stderr)


def yes(done):
    check((done.returncode, done.stdout, done.stderr) == (0, b"", b""), done)


AGENTS = {"claude": ("Bash", "command"), "codex": ("Bash", "command"),
          "gemini": ("run_shell_command", "command"), "cursor": ("Shell", "command"),
          "copilot": ("Bash", "command")}


@test
def keys_stay_unread_unless_the_policy_says_otherwise():
    with Place() as p:
        key = {"file_path": str(p.user / ".ssh/id_rsa")}
        none = run(BIN, "session", "show", "--home", p.home, env=p.env)
        check(none.returncode == 2 and b"no session of a coding agent" in none.stderr and b"hook install" in none.stderr, none)
        for session, members, answer in (("a", {}, no), ("b", {"write": ["src/"]}, no), ("c", {"read_deny": []}, yes),
                                         ("d", {"read_deny": ["secrets/"]}, yes)):
            p.policy(mode="enforce", **members)
            p.commit()
            answer(p.call("claude", "Read", key, session=session))


@test
def each_agent_gets_its_answer():
    with Place() as p:
        for agent, (tool, member) in AGENTS.items():
            done = p.call(agent, tool, {member: "git status"}, "--mode", "enforce")
            if agent == "cursor":
                check((done.returncode, done.stdout, done.stderr) == (0, ALLOW, b""), done)
            else:
                yes(done)
            no(p.call(agent, tool, {member: "rm -rf src"}, "--mode", "enforce", call_id="c2"), "C07", "rm -rf src")
            done = p.call(agent, tool, {member: "make all"}, "--mode", "enforce", call_id="c3")
            if agent == "claude":
                out = json.loads(done.stdout)["hookSpecificOutput"]
                check(done.returncode == 0 and done.stderr == b"" and out["permissionDecision"] == "ask"
                      and "C09" in out["permissionDecisionReason"] and out["hookEventName"] == "PreToolUse", done)
            else:
                no(done, "cortex session approve s1")
        done = p.hook("copilot", {"sessionId": "flat", "timestamp": 1, "cwd": str(p.repo), "toolName": "bash",
                                  "toolArgs": {"command": "rm -rf x"}}, "--mode", "enforce")
        no(done, "C07")
        for event, members, answer in (
                ("beforeShellExecution", {"command": "rm -rf x", "cwd": str(p.repo)}, None),
                ("beforeShellExecution", {"command": "ls", "cwd": str(p.repo)}, ALLOW),
                ("beforeReadFile", {"file_path": str(p.user / ".ssh/id"), "content": "k"}, None),
                ("beforeMCPExecution", {"tool_name": "t", "tool_input": "{\"a\":1}", "url": "http://x"}, None),
                ("beforeSubmitPrompt", {"prompt": "hi"}, b'{"continue":true}\n'),
                ("stop", {}, b"")):
            done = p.hook("cursor", {"conversation_id": "flat", "hook_event_name": event,
                                     "workspace_roots": [str(p.repo)], **members}, "--mode", "enforce")
            if answer is None:
                no(done)
            else:
                check((done.returncode, done.stdout) == (0, answer), event, done)
        for agent in ("claude", "codex"):
            done = p.call(agent, "Bash", {"command": "rm -rf x"}, "--mode", "enforce", event="PermissionRequest")
            out = json.loads(done.stdout)["hookSpecificOutput"]
            check(out["decision"]["behavior"] == "deny" and done.returncode == 0, done)


@test
def what_happened_is_recorded():
    with Place() as p:
        base = {"session_id": "s1", "cwd": str(p.repo), "transcript_path": "/t/s1.jsonl"}
        yes(p.hook("claude", {**base, "hook_event_name": "SessionStart", "source": "startup"}))
        yes(p.hook("claude", {**base, "hook_event_name": "UserPromptSubmit", "prompt": "do it"}))
        big = "x" * 200_000
        yes(p.call("claude", "Write", {"file_path": str(p.repo / "src/b.c"), "content": big}, call_id="c9",
                   agent_id="sub", agent_type="Explore"))
        yes(p.call("claude", "Bash", {"command": "ls"}, event="PostToolUse", tool_response={"stdout": "a"}))
        yes(p.call("claude", "Bash", {"command": "ls"}, event="PostToolUseFailure", error="no"))
        yes(p.hook("claude", {**base, "hook_event_name": "ConfigChange", "source": "project_settings",
                              "file_path": "/x"}))
        yes(p.hook("claude", {**base, "hook_event_name": "SessionEnd", "reason": "other"}))
        shown = p.shown()
        check([e["kind"] for e in shown["entries"]] == ["live." + k for k in (
            "start", "event", "decision", "result", "result", "event", "end")], shown)
        start, prompt, decision, done, failed, config, _ = (e["payload"] for e in shown["entries"])
        check(start["source"] == "startup" and start["policy"]["from"] == "built_in"
              and len(start["policy"]["commit"]) == 40 and start["mode"] == "observe", start)
        check(prompt["detail"] == {"prompt_sha256": hashlib.sha256(b"do it").hexdigest(), "prompt_bytes": 5})
        text = json.dumps({"file_path": str(p.repo / "src/b.c"), "content": big}, sort_keys=True,
                          separators=(",", ":"))
        check(decision["call"]["input"] is None and decision["call"]["input_bytes"] == len(text)
              and decision["call"]["input_sha256"] == hashlib.sha256(text.encode()).hexdigest(), decision)
        check(decision["subagent"] == {"id": "sub", "type": "Explore"} and decision["verdict"] == "allow")
        check(done["outcome"] == "done" and failed["outcome"] == "failed")
        check(config["detail"] == {"path": "/x", "source": "project_settings"})
        check(shown["ended"] and shown["calls"] == 1, shown)
        done = run(BIN, "verify", "--home", p.home, env=p.env)
        check(done.returncode == 0, done.stderr)


@test
def modes_and_first_calls():
    with Place() as p:
        yes(p.call("codex", "Bash", {"command": "rm -rf src"}))
        entry = p.entries("decision")[0]
        check((entry["verdict"], entry["would"], entry["mode"]) == ("allow", "deny", "observe"), entry)
        check(p.entries("start")[0]["source"] == "first_call")
        done = p.call("claude", "Bash", {"command": "rm -rf src"}, "--mode", "ask", session="s2")
        check(b'"ask"' in done.stdout, done)
        no(p.call("claude", "Write", {"file_path": str(p.user / ".claude/settings.json")}, "--mode", "ask",
                  session="s2"), "L10")
        no(p.call("claude", "Unheard", {}, "--mode", "enforce", session="s3"), "L02")
        # Monitor's two events are two decisions of one id.
        for tool in ("Monitor", "Bash"):
            no(p.call("claude", tool, {"command": "rm -rf x"}, "--mode", "enforce", session="s3", call_id="m"))
        check([e["call"]["tool"] for e in p.entries("decision", "s3")] == ["Unheard", "Monitor", "Bash"])


@test
def the_policy_is_that_of_the_commit():
    with Place() as p:
        p.policy(mode="enforce", unlisted="deny", allow=[["ls"], ["npm", "ci"]],
                 rewrite=[{"from": ["npm", "install"], "to": ["npm", "ci"]}])
        p.commit()
        no(p.call("claude", "Bash", {"command": "tree-x"}), "C13")
        p.policy(mode="observe", allow=[["tree-x"]])  # only in the work tree
        no(p.call("claude", "Bash", {"command": "tree-x"}), "C13")
        no(p.call("claude", "Bash", {"command": "tree-x"}, session="s2"), "C13")
        check(p.entries("start", "s2")[0]["policy"]["from"] == "commit")
        p.policy(mode="nonsense")
        p.commit()
        no(p.call("claude", "Bash", {"command": "ls"}, "--mode", "enforce", session="s3"), "L03", "/mode")
        no(p.call("claude", "Bash", {"command": "tree-x"}), "C13")  # s1 keeps its own


@test
def commands_are_rewritten():
    with Place() as p:
        p.policy(mode="enforce", unlisted="sandbox", allow=[["npm", "ci"]],
                 rewrite=[{"from": ["npm", "install"], "to": ["npm", "ci"]}])
        p.commit()
        if not shutil.which("npm"):
            skip("there is no npm")
        for agent, (tool, member) in AGENTS.items():
            done = p.call(agent, tool, {member: "npm install", "other": 1}, session=agent)
            out = json.loads(done.stdout)
            hook = out.get("hookSpecificOutput", out)
            fresh = hook.get("updatedInput") or hook.get("tool_input") or hook.get("updated_input")
            check(fresh[member] == "npm ci" and (agent == "gemini") == ("other" not in fresh), done)
            check(("permissionDecision" in hook) == (agent == "codex"), done)
            done = p.call(agent, tool, {member: "make it's"}, session=agent, call_id="c2")
            hook = json.loads(done.stdout)
            hook = hook.get("hookSpecificOutput", hook)
            fresh = hook.get("updatedInput") or hook.get("tool_input") or hook.get("updated_input")
            check(fresh[member].endswith(" exec --network deny -- /bin/sh -c 'make it'\\''s'"), done)
        check(p.entries("decision", "claude")[0]["rewrite"] == "npm ci")


@test
def payloads_of_the_real_agents_are_understood():
    rows = json.loads((kit.TESTS / "vectors/live/payloads.json").read_text())
    with Place() as p:
        for row in rows:
            text = json.dumps(row["payload"]).replace("@REPO@", str(p.repo)).replace("@USER@", str(p.user))
            before = p.last(row["payload"]["session_id"])
            yes(p.hook(row["agent"], text.encode()))
            entry = p.last(row["payload"]["session_id"])
            check(entry != before, row)
            if row["expected"] is not None:
                check(f'{entry["would"]} {entry["rule"]}' == row["expected"], row, entry)
        check(len(rows) > 60 and {row["agent"] for row in rows} == {"claude", "codex", "gemini"}, len(rows))


def on_terminal(p, words, answer):
    """The program with a terminal of its own, which answers."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(BIN, [BIN, *map(str, words), "--home", str(p.home)], p.env)
    said = b""
    try:
        while b'Write "yes"' not in said:
            part = os.read(terminal, 4096)
            if not part:
                break
            said += part
        os.write(terminal, answer)
        while True:
            part = os.read(terminal, 4096)
            if not part:
                break
            said += part
    except OSError:
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


@test
def a_person_approves_once_or_for_the_session():
    with Place() as p:
        def ask(session="s1"):
            return p.call("codex", "Bash", {"command": "make all"}, "--mode", "enforce", session=session)
        no(ask(), "approve")
        waiting = p.shown()["waiting"]
        check(len(waiting) == 1 and waiting[0]["text"] == "make all", waiting)
        code = waiting[0]["input_sha256"][:12]
        done = subprocess.run([BIN, "session", "approve", "s1", "--home", p.home], env=p.env, input=b"yes\n",
                              capture_output=True, start_new_session=True, check=False)
        check(done.returncode != 0 and b"terminal" in done.stderr, done)
        said = on_terminal(p, ["session", "approve", "s1", code], b"no\n")
        check(said[0] != 0 and b"nothing was changed" in said[1], said)
        no(ask(), "approve")
        said = on_terminal(p, ["session", "approve", "s1", code], b"yes\n")
        check(said[0] == 0 and b"make all" in said[1], said)
        yes(ask())
        check(p.entries("decision")[-1]["approval"] is not None)
        no(ask(), "approve")
        check(on_terminal(p, ["session", "approve", "s1", code, "--whole-session"], b"yes\n")[0] == 0)
        yes(ask())
        yes(ask())
        no(ask("other"), "approve")
        p.cortex("session", "deny", "other", "--reason", "not today")
        no(ask("other"), "L04")
        p.cortex("session", "approve", "s1", "000", code=2)


@test
def limits_narrow_while_it_runs():
    with Place() as p:
        write = {"file_path": str(p.repo / "docs/x"), "content": ""}
        yes(p.call("claude", "Write", write, "--mode", "enforce"))
        p.cortex("session", "limit", "s1", "--path", "src/", "--no-network", "--deny-tool", "Task")
        no(p.call("claude", "Write", write, "--mode", "enforce"), "L14")
        no(p.call("claude", "Task", {"prompt": "x"}, "--mode", "enforce"), "L05")
        no(p.call("claude", "WebFetch", {"url": "https://a.org"}, "--mode", "enforce"), "L09")
        yes(p.call("claude", "Write", {"file_path": "src/b"}, "--mode", "enforce"))
        p.cortex("session", "limit", "s1", "--network", "allow", code=2)
        p.cortex("session", "limit", "s1", "--path", "../x", code=2)
        p.cortex("session", "limit", "s1", code=2)
        p.cortex("session", "limit", "s1", "--mode", "enforce")
        p.cortex("session", "limit", "s1", "--mode", "observe", code=2)
        no(p.call("claude", "Write", write), "L14")  # the hook's own mode is lower
        limit = p.entries("limit")[0]
        check(limit["paths"] == ["src/"] and limit["network"] == "deny" and limit["by"] == "ann", limit)


@test
def without_a_decision_the_answer_is_no():
    with Place() as p:
        enforce = ("--mode", "enforce")
        good = {"session_id": "s1", "cwd": str(p.repo), "hook_event_name": "PreToolUse", "tool_name": "Bash",
                "tool_input": {"command": "ls"}, "tool_use_id": "1"}
        text = json.dumps(good).encode()
        for payload in (b"", b"{", b"[]", b"null", text + b"x", text[:-1], text.replace(b'"ls"', b'"ls","command":"x"'),
                        b"\xff\xfe" + text, json.dumps({**good, "session_id": ""}).encode(),
                        json.dumps({**good, "session_id": "x" * 200}).encode(),
                        json.dumps({k: v for k, v in good.items() if k != "tool_name"}).encode(),
                        json.dumps({**good, "tool_input": 7}).encode(), b"[" * 10000,
                        json.dumps({**good, "tool_input": {"command": "x" * (16 << 20)}}).encode()):
            for agent in ("claude", "cursor", "gemini"):
                no(p.hook(agent, payload, *enforce), "no decision")
        done = p.hook("claude", b"{", "--fail-open", *enforce)
        check(done.returncode == 0 and done.stdout == b"" and b"no decision" in done.stderr, done)
        done = p.hook("cursor", b"{", "--fail-open", *enforce)
        check(done.returncode == 0 and done.stdout == ALLOW, done)
        yes(p.hook("claude", b"\xef\xbb\xbf" + text, *enforce))
        gone = run(BIN, "hook", "claude", "--home", p.folder / "none", *enforce, stdin=text, env=p.env)
        no(gone, "no decision")
        for words in (("--mode", "strict"), ("--deadline", "0"), ("--nonsense",)):
            check(p.hook("claude", text, *words).returncode == 2)
        # Standard input that does not end.
        started = time.monotonic()
        process = subprocess.Popen([BIN, "hook", "claude", "--home", p.home, "--deadline", "1", *enforce],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=p.env)
        process.stdin.write(text[:20])
        process.stdin.flush()
        code = process.wait(timeout=30)
        check(code == 2 and b"in time" in process.stderr.read() and time.monotonic() - started < 20, code)
        process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGXCPU,
                       *(() if SANITIZED else (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT))):
            process = subprocess.Popen([BIN, "hook", "claude", "--home", p.home, *enforce], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=p.env)
            time.sleep(0.3)
            process.send_signal(number)
            check(process.wait(timeout=30) == 2, number)
            process.stdin.close()
        # No file may grow.
        done = subprocess.run(["sh", "-c", f"ulimit -f 0; exec {BIN} hook claude --home {p.home} --mode enforce"],
                              input=text, env=p.env, capture_output=True, check=False)
        no(done, "no decision")
        # An answer that nobody can read is no allow.
        with open("/dev/full", "wb") as full:
            done = subprocess.run([BIN, "hook", "cursor", "--home", p.home, *enforce],
                                  input=json.dumps({**good, "conversation_id": "c"}).encode(), stdout=full,
                                  stderr=subprocess.PIPE, env=p.env, check=False)
        check(done.returncode == 2, done)


@test
def sixty_four_hooks_at_once_lose_nothing():
    with Place() as p:
        payloads = [json.dumps({"session_id": f"s{n % 2}", "cwd": str(p.repo), "hook_event_name": "PreToolUse",
                                "tool_name": "Bash", "tool_input": {"command": f"echo {n}"},
                                "tool_use_id": f"t{n // 2}"}).encode() for n in range(64)]
        processes = []
        for payload in payloads:
            process = subprocess.Popen([BIN, "hook", "claude", "--home", p.home, "--deadline", "120"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=p.env)
            process.stdin.write(payload)
            process.stdin.close()
            processes.append(process)
        for process in processes:
            check(process.wait() == 0, process.stderr.read())
            process.stdout.close()
            process.stderr.close()
        for session in ("s0", "s1"):
            texts = {e["call"]["input"]["command"] for e in p.entries("decision", session)}
            check(len(texts) == 32, session, len(texts))
            check(len(p.entries("start", session)) == 1)


@test
def a_killed_hook_never_answers_without_an_entry():
    with Place() as p:
        chance = random.Random(7)
        answered = set()
        for n in range(KILLS):
            process = subprocess.Popen([BIN, "hook", "cursor", "--home", p.home], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=p.env)
            process.stdin.write(json.dumps(
                {"conversation_id": "s1", "cwd": str(p.repo), "hook_event_name": "preToolUse", "tool_name": "Shell",
                 "tool_input": {"command": f"echo {n}"}, "tool_use_id": str(n)}).encode())
            process.stdin.close()
            time.sleep(chance.random() * 0.06)
            process.kill()
            if ALLOW in process.stdout.read():
                answered.add(f"echo {n}")
            process.wait()
            process.stdout.close()
        there = {e["call"]["input"]["command"] for e in p.entries("decision")} if KILLS and answered else set()
        check(answered <= there, answered - there)
        check(run(BIN, "verify", "--home", p.home, env=p.env).returncode == 0)


@test
def the_entry_is_on_the_disk_before_the_answer():
    if not shutil.which("strace"):
        skip("there is no strace")
    with Place() as p:
        text = json.dumps({"conversation_id": "s1", "cwd": str(p.repo), "hook_event_name": "preToolUse",
                           "tool_name": "Shell", "tool_input": {"command": "ls"}}).encode()
        log = p.folder / "calls"
        done = run("strace", "-f", "-o", log, "-e", "trace=fsync,fdatasync,write", BIN, "hook", "cursor", "--home",
                   p.home, stdin=text, env=p.env)
        if done.returncode != 0 or not log.exists():
            skip("strace cannot trace here")
        lines = log.read_text().splitlines()
        answer = next(i for i, line in enumerate(lines) if "permission" in line)
        check(any("sync(" in line for line in lines[:answer]), lines)



# --- as a history --------------------------------------------------------------------------------


def heads_of(p, name="s1"):
    """The newest node of each lane of @session/NAME, which verifies."""
    p.cortex("lattice", "verify", "@session/" + name)
    return dict(h.split()[:2] for h in p.cortex("lattice", "heads", "@session/" + name).splitlines())


def node_of(p, node, name="s1"):
    return json.loads(p.cortex("lattice", "show", "@session/" + name, node, "--json"))["node"]


@test
def a_session_without_a_transcript_is_a_history():
    with Place() as p:
        p.call("claude", "Bash", {"command": "git status"}, call_id="c1")
        p.call("claude", "Bash", {"command": "git status"}, event="PostToolUse", tool_response="x", call_id="c1")
        for sub in ("a1", "a2"):
            no(p.call("claude", "Bash", {"command": "rm -rf src"}, "--mode", "enforce", call_id="d" + sub,
                      agent_id=sub, agent_type="Explore"))
        check(sorted(heads_of(p)) == ["agent-a1#0", "agent-a2#0", "main#2"], heads_of(p))
        one = node_of(p, "@agent-a2")["event"]
        check(one["decision"]["rule"] == "C07" and one["decision"]["verdict"] == "deny" and one["kind"] == "act", one)
        check(one["tool_calls"] == [{"arguments": {"command": "rm -rf src"}, "call_id": "da2", "tool": "Bash"}], one)
        check(one["entry"] == {"actor": "session:claude-code:s1", "seq": 4}, one)
        check(node_of(p, "@main")["event"]["kind"] == "tool_result")
        why = p.cortex("lattice", "why", "@session/s1", "@agent-a1", "decision.da1")
        check("agent-a1#0" in why and "C07" in why, why)
        found = p.cortex("lattice", "grep", "@session/s1", "C07")
        check(found.count("agent-a1#0") == 1 and found.count("agent-a2#0") == 1, found)
        p.cortex("lattice", "verify", "@session/session:claude-code:s1")
        p.cortex("lattice", "verify", "@session/none-such", code=2)
        # Erased content is no node, and what is left still verifies.
        p.cortex("erase", "3", "--actor", "session:claude-code:s1", "--reason", "asked")
        check(sorted(heads_of(p)) == ["agent-a2#0", "main#2"], heads_of(p))


@test
def decisions_stand_next_to_the_transcript_and_change_no_node_of_it():
    with Place() as p:
        lines = [{"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": "go"}},
                 {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "message": {
                     "id": "m1", "role": "assistant", "content": [
                         {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make all"}}]}},
                 {"type": "user", "uuid": "u2", "parentUuid": "a1", "message": {"role": "user", "content": [
                     {"type": "tool_result", "tool_use_id": "c1", "content": "built"}]}}]
        folder = p.user / ".claude/projects/p"
        folder.mkdir(parents=True)
        (folder / "s1.jsonl").write_text("".join(json.dumps(
            {**line, "sessionId": "s1", "timestamp": f"2026-01-01T00:00:0{i}Z"}) + "\n"
            for i, line in enumerate(lines)))
        p.cortex("watch", p.user / ".claude", "--once")
        before = heads_of(p)
        check(not any(h.startswith("hook#") for h in before), before)
        p.call("claude", "Bash", {"command": "make all"}, "--mode", "enforce", call_id="c1")
        check(on_terminal(p, ["session", "approve", "s1"], b"yes\n")[0] == 0)
        p.call("claude", "Bash", {"command": "make all"}, "--mode", "enforce", call_id="c1")
        p.cortex("session", "limit", "s1", "--no-network")
        after = heads_of(p)
        check({k: after[k] for k in before} == before, "no node of the transcript changed")
        check(sorted(set(after) - set(before)) == ["hook#1", "person#1"], after)
        asked, allowed = node_of(p, "hook#0"), node_of(p, "hook#1")
        call = before["main#0"]
        check(asked["parents"] == [call], asked["parents"])
        answer = node_of(p, "person#0")
        check(answer["parents"] == [asked["node_id"]] and answer["event"]["by"] == "ann", answer)
        check(allowed["parents"] == [asked["node_id"], call, answer["node_id"]], allowed["parents"])
        check([one["event"]["decision"]["verdict"] for one in (asked, allowed)] == ["ask", "allow"])
        check(allowed["event"]["decision"]["answered_by"] == "ann", allowed["event"])
        check("hook#1" in p.cortex("lattice", "grep", "@session/s1", "answered"), "grep goes through it")
        check("hook#1" in p.cortex("lattice", "why", "@session/s1", "@hook", "decision.c1"))

main()
