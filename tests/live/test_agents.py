#!/usr/bin/env python3
"""Real coding agents under `cortex hook`: the command lines of Claude Code, Codex and Gemini CLI, their tool
calls played by a model on loopback (model.py).  What a tool did is seen by its side effect, what was decided
by the session's entries.

CORTEX_AGENTS names the folder of the packages (scripts/test-live.sh --install); without it all is skipped.
CORTEX_LIVE_ALL=1 runs every case, otherwise those that say `quick`.  CORTEX_LIVE_TABLE names a file for the
table of results.  Words on the command line choose cases by name or agent.
Closes with `N passed, N failed, N skipped`.

An agent that runs a tool although its hook failed does not fail a case that says so: that is what the
table is for.  A case fails when an agent does something else than it is known to do.
"""
import datetime
import fcntl
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parent.parent / "cli")]

import kit  # noqa: E402
from agents import AGENTS, Place, installed  # noqa: E402
from kit import BIN, check, run, skip  # noqa: E402
from model import Call  # noqa: E402

ALL = os.environ.get("CORTEX_LIVE_ALL") == "1"
CASES = []    # (name, what, function, quick, agents)
RESULTS = {}  # (name, agent) -> text
ENFORCE = ("--mode", "enforce")


def case(what, quick=False, agents=("claude", "codex", "gemini")):
    def keep(function):
        CASES.append((function.__name__, what, function, quick, agents))
        return function
    return keep


def steps(agent, line="touch ran"):
    return {"": [[agent.call(line)], "done"]}


def shown(session, tool=None):
    """What the entries say of the calls, shortly."""
    texts = []
    for entry in session.decisions(tool):
        text = entry["verdict"] if entry["verdict"] == "allow" else f'{entry["verdict"]} {entry["rule"]}'
        if text not in texts:
            texts.append(text)
    decided = {(e["call"]["id"], e["call"]["input_sha256"]) for e in session.decisions()}
    if any((e["call"]["id"], e["call"]["input_sha256"]) not in decided for e in session.entries("result")):
        texts.append("a result without a decision")
    return ", ".join(texts) or ("no decision" if session.entries() else "no session")


def outcome(session, name="ran"):
    return f'{"ran" if session.ran(name) else "blocked"}; {shown(session)}'


# --- what a hook decides ---------------------------------------------------------------------------

@case("a call that is allowed", quick=True)
def allowed(agent):
    with Place() as p:
        s = agent.run(p, steps(agent), agent.command(p, *ENFORCE))
        check(s.code == 0 and s.ran(), s.code, s.stderr, s.told)
        check(s.verdicts() == [(agent.shell, "allow", "L00")], s.verdicts())
        check([e["outcome"] for e in s.entries("result")] == ["done"], s.entries("result"))
        check(s.entries("start")[0]["source"] == "startup" and s.sessions()[0]["ended"], s.sessions())
        check(run(BIN, "verify", "--home", p.home, env=p.env).returncode == 0)
        return outcome(s)


@case("a call that is denied", quick=True)
def denied(agent):
    with Place() as p:
        s = agent.run(p, steps(agent, "rm -rf src && touch ran"), agent.command(p, *ENFORCE))
        check((p.repo / "src/a.c").exists() and not s.ran(), s.told)
        check("cortex: not allowed (C07)" in s.told, s.told)
        check(s.verdicts() == [(agent.shell, "deny", "C07")], s.verdicts())
        return outcome(s)


@case("in mode observe nothing is blocked, what would have been is shown")
def observed(agent):
    with Place() as p:
        s = agent.run(p, steps(agent, "rm -r src/a.c && curl -s file:///dev/null; touch ran"), agent.command(p))
        entry = s.decisions()[0]
        check(s.ran() and entry["verdict"] == "allow" and entry["would"] != "allow", entry, s.told)
        return f'ran; would {entry["would"]} {entry["rule"]}'


@case("a call that is asked, and no one there", quick=True)
def asked(agent):
    with Place() as p:
        (p.repo / "Makefile").write_text("all:\n\ttouch ran\n")
        s = agent.run(p, steps(agent, "make"), agent.command(p, *ENFORCE))
        check(not s.ran() and [v for _, v, _ in s.verdicts()] == ["ask"], s.verdicts(), s.told)
        return outcome(s)


def approve(place, answer=b"yes\n"):
    """`cortex session approve` of the one call that waits, by a person with a terminal; false when none came."""
    for _ in range(600):
        done = run(BIN, "session", "list", "--json", "--home", place.home, env=place.env)
        for one in json.loads(done.stdout)["sessions"] if done.returncode == 0 else []:
            shown_now = run(BIN, "session", "show", one["session"], "--json", "--home", place.home, env=place.env)
            waiting = json.loads(shown_now.stdout)["waiting"]
            if waiting:
                return on_terminal(place, ["session", "approve", one["session"],
                                           waiting[0]["input_sha256"][:12]], answer)
        time.sleep(0.05)
    return False


def on_terminal(place, words, answer):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(BIN, [BIN, *words, "--home", str(place.home)], place.env)
    said = b""
    try:
        while b'Write "yes"' not in said:
            said += os.read(terminal, 4096) or os.abort()
        os.write(terminal, answer)
        while os.read(terminal, 4096):
            pass
    except OSError:
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@case("a call that is asked, approved from outside while the hook waits", agents=("codex", "gemini"))
def approved_while_waiting(agent):
    with Place() as p:
        (p.repo / "Makefile").write_text("all:\n\ttouch ran\n")
        p.timeout = 100
        done = []
        s = agent.run(p, steps(agent, "make"), agent.command(p, *ENFORCE, "--wait", "60"),
                      during=lambda process, model: done.append(approve(p)))
        check(done == [True] and s.ran(), done, s.told, s.verdicts())
        check([v for _, v, _ in s.verdicts()] == ["ask", "allow"], s.verdicts())
        check(s.decisions()[1]["approval"] is not None)
        return outcome(s)


@case("a call that is asked, approved from outside, tried again")
def approved_for_the_next_try(agent):
    with Place() as p:
        (p.repo / "Makefile").write_text("all:\n\ttouch ran\n")
        again = {"": [[agent.call("make")], [agent.call("sleep 3")], [agent.call("make")], "done"]}
        done = []
        s = agent.run(p, again, agent.command(p, *ENFORCE),
                      during=lambda process, model: done.append(approve(p)))
        verdicts = [v for _, v, _ in s.verdicts()]
        check(done == [True] and s.ran() and verdicts == ["ask", "allow", "allow"], done, verdicts, s.told)
        return outcome(s)


@case("a call that is rewritten", quick=True)
def rewritten(agent):
    with Place(mode="enforce", allow=[["install", "-d", "ran"]],
               rewrite=[{"from": ["install", "-d", "bad"], "to": ["install", "-d", "ran"]}]) as p:
        s = agent.run(p, steps(agent, "install -d bad"), agent.command(p))
        entry = s.decisions()[0]
        check(entry["verdict"] == "rewrite" and entry["rewrite"] == "install -d ran", s.decisions())
        check(s.ran() and not s.ran("bad"), s.told)
        return "the other command ran; rewrite"


@case("three calls at once, one of them denied")
def three_at_once(agent):
    with Place() as p:
        s = agent.run(p, {"": [[agent.call("touch ran"), agent.call("rm -rf src"), agent.call("touch ran2")], "done"]},
                      agent.command(p, *ENFORCE))
        check(s.ran() and s.ran("ran2") and (p.repo / "src").exists(), s.told)
        check(sorted(v for _, v, _ in s.verdicts()) == ["allow", "allow", "deny"], s.verdicts())
        return outcome(s)


def of_sub_agent(agent, calls):
    main = {"claude": [[Call("Agent", description="d", prompt="SUBWORK", subagent_type="general-purpose",
                             run_in_background=False)], "done"],
            "codex": [[Call("spawn_agent", "multi_agent_v1", message="SUBWORK")],
                      [Call("wait_agent", "multi_agent_v1", timeout_ms=60000,
                            targets=lambda told: [json.loads(told)["agent_id"]])], "done"],
            "gemini": [[Call("invoke_agent", agent_name="generalist", prompt="SUBWORK")], "done"]}[agent.name]
    last = [[Call("complete_task", result="done")], "done"] if agent.name == "gemini" else ["done"]
    return {"": main, "SUBWORK": [[call] for call in calls] + last}


@case("in a sub-agent: one call allowed, one denied", quick=True)
def sub_agent(agent):
    with Place() as p:
        s = agent.run(p, of_sub_agent(agent, [agent.call("touch ran"), agent.call("rm -rf src")]),
                      agent.command(p, *ENFORCE))
        check(s.ran() and (p.repo / "src").exists(), s.told)
        inner = [e for e in s.decisions(agent.shell)]
        check([e["verdict"] for e in inner] == ["allow", "deny"], s.verdicts(), s.told)
        named = all(e["subagent"] for e in inner)
        check(named == (agent.name != "gemini"), inner)
        check(not any(v == "deny" for t, v, _ in s.verdicts() if t != agent.shell), s.verdicts())
        return outcome(s) + ("" if named else "; the sub-agent is not named")


@case("the start of a sub-agent is denied by a limit")
def sub_agent_denied(agent):
    tool = {"claude": "Task", "codex": "spawn_agent", "gemini": "invoke_agent"}[agent.name]
    with Place(mode="enforce", tools={"deny": [tool]}) as p:
        s = agent.run(p, of_sub_agent(agent, [agent.call("touch ran")]), agent.command(p), limit=60)
        check(not s.ran() and ("deny", "L05") in [v[1:] for v in s.verdicts()], s.verdicts(), s.told)
        return outcome(s)


@case("writing the agent's own settings, and a skill or command")
def own_settings(agent):
    folder = {"claude": ".claude", "codex": ".codex", "gemini": ".gemini"}[agent.name]
    name = {"claude": "settings.json", "codex": "hooks.json", "gemini": "settings.json"}[agent.name]
    with Place() as p:
        s = agent.run(p, {"": [[agent.write(p.repo / folder / name, "{}")],
                               [agent.write(p.repo / folder / "skills/x/SKILL.md", "x")],
                               [agent.call(f"echo '{{}}' > {folder}/{name}")], "done"]},
                      agent.command(p, *ENFORCE))
        check(not (p.repo / folder / name).exists() and not (p.repo / folder / "skills/x/SKILL.md").exists(), s.told)
        verdicts = [(e["verdict"], e["rule"]) for e in s.decisions() if e["event"] == agent.before]
        check(verdicts == [("deny", "L10"), ("ask", "L10"), ("deny", "L10")], s.verdicts())
        return outcome(s)


@case("a skill whose text has a command", agents=("claude",))
def skill_with_a_command(agent):
    with Place() as p:
        path = p.repo / ".claude/skills/x/SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: x\ndescription: x\n---\n!`touch {p.repo}/ran`\n")
        s = agent.run(p, {"": [[Call("Skill", skill="x")], "done"]}, agent.command(p))
        check(s.ran() and s.decisions()[0]["would"] == "ask", s.verdicts(), s.told)  # it runs, and no hook is asked
        (p.repo / "ran").unlink()
        s = agent.run(p, {"": [[Call("Skill", skill="x")], "done"]}, agent.command(p, *ENFORCE))
        check(not s.ran() and ("Skill", "ask", "L07") in s.verdicts(), s.verdicts(), s.told)
        return "blocked; ask L07 (in mode observe its command ran, no hook saw it)"


@case("members that the tool does not know", agents=("gemini",))
def foreign_members(agent):
    with Place() as p:
        s = agent.run(p, {"": [[Call("write_file", file_path=".gemini/settings.json", content="{}", command="view")],
                               "done"]}, agent.command(p, *ENFORCE))
        check(not (p.repo / ".gemini/settings.json").exists(), s.told)
        check(s.verdicts() == [("write_file", "deny", "L10")], s.verdicts())
        return "blocked; deny L10"


@case("Monitor: a command, a socket", agents=("claude",))
def monitor(agent):
    with Place() as p:
        find = Call("ToolSearch", query="select:Monitor", max_results=5)
        s = agent.run(p, {"": [[find], [Call("Monitor", command="rm -rf src", description="d", timeout_ms=1000)],
                               [Call("Monitor", ws={"url": "ws://127.0.0.1:1/"}, description="d", timeout_ms=1000)],
                               "done"]}, agent.command(p, *ENFORCE))
        check((p.repo / "src").exists(), s.told)
        check([v for v in s.verdicts() if v[0] != "ToolSearch"] == [("Monitor", "deny", "C07"), ("Monitor", "ask", "L09")],
              s.verdicts())
        return outcome(s)


@case("a tool that does not exist, and an input that does not fit")
def malformed_calls(agent):
    with Place() as p:
        shell = {"claude": "Bash", "codex": "exec_command", "gemini": "run_shell_command"}[agent.name]
        s = agent.run(p, {"": [[Call("no_such_tool", a=1)], [Call(shell, nothing="touch ran")], "done"]},
                      agent.command(p, *ENFORCE))
        check(not s.ran() and len(s.model.results) == 2, s.told)
        return f"refused by the agent itself; {shown(s)}"


@case("a patch as the tool's own text", agents=("codex",))
def patch(agent):
    with Place() as p:
        p.model = "gpt-5.5"  # the models that Codex offers apply_patch
        text = "*** Begin Patch\n*** Add File: %s\n+x\n*** End Patch\n"
        s = agent.run(p, {"": [[Call("apply_patch", None, text % "ran")],
                               [Call("apply_patch", None, text % ".codex/hooks.json")], "done"]},
                      agent.command(p, *ENFORCE))
        check(s.ran() and not s.ran(".codex/hooks.json"), s.told)
        check(s.verdicts() == [("apply_patch", "allow", "L00"), ("apply_patch", "deny", "L10")], s.verdicts())
        return outcome(s)


@case("bytes typed into a running program (write_stdin)", agents=("codex",))
def typed(agent):
    def session(told):
        return int(told.split("session ID ")[1].split()[0])
    with Place() as p:
        typing = [[Call("write_stdin", session_id=session, chars="touch ran\n", yield_time_ms=1000)], "done"]
        s = agent.run(p, {"": [[Call("exec_command", cmd="bash -i", tty=True, yield_time_ms=500)], *typing]},
                      agent.command(p))
        check(s.ran() and len(s.decisions()) == 1 and s.decisions()[0]["would"] != "allow", s.verdicts(), s.told)
    with Place() as p:
        s = agent.run(p, {"": [[Call("exec_command", cmd="bash -i", tty=True, yield_time_ms=500)], "done"]},
                      agent.command(p, *ENFORCE))
        check(s.verdicts() == [("Bash", "ask", "C11")], s.verdicts())
        return "the shell is blocked: ask C11; what is typed is shown to no hook"


@case("a tool of an MCP server that no list names")
def mcp_tool(agent):
    with Place() as p:
        script = p.folder / "mcp.json"
        script.write_text(json.dumps({"tools": [["codex"]], "turns": [{"writes": {"ran": "x"}, "output": "done"}] * 4}))
        server = {"command": sys.executable, "args": [str(kit.TESTS / "mcp_server.py"), str(script)]}
        words, name = [], {"claude": "mcp__one__codex", "codex": "codex", "gemini": "mcp_one_codex"}[agent.name]
        if agent.name == "claude":
            (p.folder / "servers.json").write_text(json.dumps({"mcpServers": {"one": {"type": "stdio", **server}}}))
            words = ["--mcp-config", str(p.folder / "servers.json")]
        elif agent.name == "codex":
            p.tables = f'[mcp_servers.one]\ncommand = "{server["command"]}"\nargs = {json.dumps(server["args"])}\n'
        else:
            p.entry = {"mcpServers": {"one": {**server, "trust": True}}}
        call = Call(name, *(["mcp__one"] if agent.name == "codex" else []), prompt="x", cwd=str(p.repo))
        s = agent.run(p, {"": [[call], "done"]}, agent.command(p, *ENFORCE), words=words)
        check(not s.ran() and [v[1:] for v in s.verdicts()] == [("ask", "L06")], s.verdicts(), s.told, s.model.tools)
        return outcome(s)


@case("two sessions at once, one data directory")
def two_sessions(agent):
    with Place() as p:
        second = []

        def other(_process, _model):
            with Place() as q:
                q.home = p.home
                s = agent.run(q, steps(agent, "touch ran"), agent.command(p, *ENFORCE))
                second.append(s.ran())
        s = agent.run(p, steps(agent), agent.command(p, *ENFORCE), during=other)
        check(s.ran() and second == [True] and len(s.sessions()) == 2, second, s.sessions())
        check(len(s.decisions()) == 2, s.verdicts())
        return "both ran; each its own journal"


# --- a hook that fails ------------------------------------------------------------------------------

FAILURES = {
    "missing": ("the hook's program is not there", None),
    "killed": ("the hook is killed (SIGKILL)", "kill -9 $$"),
    "crashes": ("the hook crashes (SIGSEGV)", "kill -SEGV $$"),
    "exits_1": ("the hook ends with 1", "exit 1"),
    "garbage": ("the hook writes garbage and ends with 0", "echo '{\"hookSpecificOutput\": tru'; exit 0"),
    "hangs": ("the hook hangs longer than its time", "exec sleep 60"),
}
# Where the agent runs the tool all the same: by the hook itself, and in our wrapper (agents.py).
OPEN = {
    ("claude", "plain"): {"missing", "killed", "crashes", "exits_1", "garbage", "hangs"},
    ("claude", "wrapped"): {"garbage", "hangs"},
    ("claude", "closed"): {"garbage"},
    ("codex", "plain"): {"missing", "killed", "crashes", "exits_1", "garbage", "hangs"},
    ("codex", "wrapped"): {"garbage", "hangs"},
    ("gemini", "plain"): {"killed", "crashes", "exits_1", "garbage", "hangs"},
    ("gemini", "wrapped"): {"garbage", "hangs"},
}


def failing(agent, place, body):
    """A program that fails so for the decided event, and is `cortex hook` for the others."""
    if body is None:
        return str(place.folder / "no-such-program")
    path = place.folder / "hook.sh"
    path.write_text(f"#!/bin/sh\ninput=$(cat)\ncase $input in *'\"{agent.before}\"'*) {body};; esac\n"
                    f"printf '%s' \"$input\" | {agent.command(place, *ENFORCE)}\n")
    path.chmod(0o755)
    return str(path)


def failure_case(name):
    what, body = FAILURES[name]

    def test(agent):
        texts = []
        for how in ("plain", "wrapped", "closed"):
            if (agent.name, how) not in OPEN:
                continue
            with Place() as p:
                p.timeout = 2 if name == "hangs" else 30
                line = failing(agent, p, body)
                if how == "wrapped":
                    line = agent.wrapped(line)
                if how == "closed":
                    p.entry = {"onFailure": "block"}
                s = agent.run(p, steps(agent), line)
                opens = name in OPEN[agent.name, how]
                check(s.ran() == opens, agent.name, name, how, "ran" if s.ran() else "blocked", s.told, s.stderr)
                if name != "missing" and s.ran():
                    check("a result without a decision" in shown(s), shown(s), s.entries())
                texts.append(f"{how}: {outcome(s)}")
        return "<br>".join(texts)
    test.__name__ = "hook_" + name
    case(what)(test)


for failure in FAILURES:
    failure_case(failure)


@case("the hook is killed while the agent waits for it, between entry and answer and before")
def killed_from_outside(agent):
    """The hook itself is `cortex`; what kills it is somebody else."""
    with Place() as p:
        lock = p.home / "log/lock"

        def kill_it(process, _model):
            end = time.monotonic() + 60
            with open(lock, "r+b") as held:
                fcntl.lockf(held, fcntl.LOCK_EX)
                while time.monotonic() < end and process.poll() is None:
                    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                        try:
                            words = entry.read_bytes().split(b"\0")
                        except OSError:
                            continue
                        if words[:2] == [os.fsencode(BIN), b"hook"] and os.fsencode(str(p.home)) in words:
                            os.kill(int(entry.parent.name), signal.SIGKILL)
                    time.sleep(0.02)
        s = agent.run(p, steps(agent), agent.command(p, *ENFORCE), during=kill_it)
        return outcome(s)


# --- a data directory that fails --------------------------------------------------------------------

def refusing(agent, spoil, line=None):
    """A hook for the decided event alone: for others the answer would be no before a tool is called."""
    with Place() as p:
        spoil(p)
        path = p.folder / "before.sh"
        path.write_text(f"#!/bin/sh\ninput=$(cat)\ncase $input in *'\"{agent.before}\"'*) printf '%s' \"$input\" | "
                        f"{(line or (lambda a, q: a.command(q, *ENFORCE)))(agent, p)};; esac\n")
        path.chmod(0o755)
        s = agent.run(p, steps(agent), str(path))
        check(not s.ran() and "cortex: no decision" in s.told, s.told, s.stderr)
        return "blocked; " + s.told.split("cortex: no decision: ")[1].split("\n")[0].replace(str(p.home), "DIR").split(". Command")[0].strip('"}')


@case("the data directory is not there", quick=True)
def home_missing(agent):
    return refusing(agent, lambda p: shutil.rmtree(p.home))


@case("the data directory is a file")
def home_is_a_file(agent):
    def spoil(p):
        shutil.rmtree(p.home)
        p.home.write_text("x")
    return refusing(agent, spoil)


@case("the disk is full")
def disk_full(agent):
    return refusing(agent, lambda p: None,
                    lambda a, p: f"sh -c 'ulimit -f 0; exec {a.command(p, *ENFORCE)}'")


@case("the ledger is damaged")
def ledger_damaged(agent):
    def spoil(p):
        agent.run(p, steps(agent, "true"), agent.command(p, *ENFORCE))
        segment = p.home / "log/000000.seg"
        data = bytearray(segment.read_bytes())
        for at in range(64, min(4096, len(data)), 16):
            data[at] ^= 0xff
        segment.write_bytes(bytes(data))
    return refusing(agent, spoil)


@case("another process holds the data directory for longer than the hook's deadline")
def home_held(agent):
    with Place() as p:
        with open(p.home / "log/lock", "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            fcntl.lockf(held, fcntl.LOCK_EX)
            s = agent.run(p, steps(agent), agent.command(p, *ENFORCE, "--deadline", "2"))
        check(not s.ran(), s.told)
        return "blocked"


@case("with a server on the same data directory, which is killed in between")
def beside_a_server(agent):
    with Place() as p:
        server = subprocess.Popen([BIN, "serve", "--home", p.home, "--listen", "127.0.0.1:0", "--otlp", "off"],
                                  env=p.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        try:
            line = b""
            while b"listening" not in line and b"http://" not in line:
                line = server.stdout.readline()
                check(line, "the server ended")

            def kill_it(_process, _model):
                time.sleep(1)
                server.kill()
            s = agent.run(p, {"": [[agent.call("touch ran")], [agent.call("sleep 2")], [agent.call("rm -rf src")],
                                   [agent.call("touch ran2")], "done"]},
                          agent.command(p, *ENFORCE), during=kill_it)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
        check(s.ran() and s.ran("ran2") and (p.repo / "src").exists(), s.told)
        check([v for _, v, _ in s.verdicts()] == ["allow", "allow", "deny", "allow"], s.verdicts())
        check(run(BIN, "verify", "--home", p.home, env=p.env).returncode == 0)
        return outcome(s)


@case("the agent is killed in the middle of a session")
def agent_killed(agent):
    with Place() as p:
        def kill_it(process, _model):
            end = time.monotonic() + 60
            while not (p.repo / "ran").exists() and time.monotonic() < end:
                time.sleep(0.02)
            os.killpg(process.pid, signal.SIGKILL)
        s = agent.run(p, {"": [[agent.call("touch ran")], [agent.call("sleep 20")], "done"]},
                      agent.command(p, *ENFORCE), during=kill_it)
        check(s.ran() and ("allow" in [v for _, v, _ in s.verdicts()]), s.verdicts())
        check(not s.sessions()[0]["ended"], s.sessions())
        check(run(BIN, "verify", "--home", p.home, env=p.env).returncode == 0)
        return "the session has no end; " + shown(s)


# --- hooks that are switched off -----------------------------------------------------------------------

@case("the hook is not trusted", agents=("codex",))
def untrusted(agent):
    with Place() as p:
        p.trusted = False
        s = agent.run(p, steps(agent), agent.command(p, *ENFORCE))
        check(s.ran() and s.entries() == [], s.entries())
        return "ran, without a word; no session"


@case("a file of the project switches hooks off", agents=("claude", "gemini"))
def switched_off(agent):
    with Place() as p:
        path = p.repo / {"claude": ".claude", "gemini": ".gemini"}[agent.name] / "settings.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"disableAllHooks": True} if agent.name == "claude"
                                   else {"hooksConfig": {"enabled": False}}))
        s = agent.run(p, steps(agent), agent.command(p, *ENFORCE))
        check(s.ran() and s.entries() == [], s.entries())
        return "ran; no session"


@case("switched off on the command line", agents=("claude", "codex"))
def switched_off_by_an_option(agent):
    with Place() as p:
        words = {"claude": ["--settings", '{"disableAllHooks":true}'], "codex": ["--disable", "hooks"]}[agent.name]
        s = agent.run(p, steps(agent), agent.command(p, *ENFORCE), words=words)
        check(s.ran() and s.entries() == [], s.entries())
        return "ran; no session"


@case("in mode observe, a program rewrites the settings in mid session", agents=("claude",))
def settings_rewritten(agent):
    """In mode observe, where nothing stops it; the agent says that its configuration changed."""
    with Place() as p:
        code = ("import json,os;p=os.path.expanduser('~/.claude/settings.json');d=json.load(open(p));"
                "d['hooks']={};json.dump(d,open(p,'w'))")
        (p.repo / "x.py").write_text(code)
        s = agent.run(p, {"": [[agent.call("python3 x.py")], [agent.call("sleep 3")], [agent.call("touch ran")],
                               "done"]}, agent.command(p))
        changes = [e for e in s.entries("event") if e["event"] == "ConfigChange"]
        seen = any(e["call"]["input"]["command"] == "touch ran" for e in s.decisions())
        check(s.ran() and s.decisions()[0]["would"] != "allow" and (seen or changes), s.entries())
        return ("later calls were decided" if seen else "later calls ran without a hook") + \
            f"; {len(changes)} ConfigChange entries"


# --- all of them ------------------------------------------------------------------------------------------

def table():
    """Results as Markdown; versions and the date in front."""
    here = [agent for agent in AGENTS.values() if installed(agent)]
    lines = [f"Of {datetime.date.today().isoformat()}.", "",
             "| case | " + " | ".join(f"{agent.title} {agent.number()}" for agent in here) + " |",
             "|---" * (len(here) + 1) + "|"]
    for name, what, *_ in CASES:
        lines.append(f"| {what} | " + " | ".join(RESULTS.get((name, agent.name), "") for agent in here) + " |")
    return "\n".join(lines) + "\n"


def main():
    here = [agent for agent in AGENTS.values() if installed(agent)]
    if not here:
        kit.skip_all("CORTEX_AGENTS names no folder with the agents (scripts/test-live.sh --install)")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, _, function, quick, names in CASES:
        for agent in here:
            words = [word for word in kit.arguments if word not in AGENTS]
            if agent.name not in names or (words and not any(word in name for word in words)) or \
                    (kit.arguments and any(w in AGENTS for w in kit.arguments) and agent.name not in kit.arguments):
                continue
            if not (ALL or quick or words):
                continue

            def once(agent=agent, name=name, function=function):
                RESULTS[name, agent.name] = function(agent)
            once.__name__ = f"{name}/{agent.name}"
            came = kit.call(once)
            counts[came] += 1
            if came == "failed":
                RESULTS[name, agent.name] = "**failed**"
            print(f"{came} {once.__name__}: {RESULTS.get((name, agent.name), '')}", flush=True)
    if os.environ.get("CORTEX_LIVE_TABLE"):
        pathlib.Path(os.environ["CORTEX_LIVE_TABLE"]).write_text(table())
    kit.finish(**counts)


if __name__ == "__main__":
    main()
