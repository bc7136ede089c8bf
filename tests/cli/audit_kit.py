"""A live session told twice: by hooks into a data directory, and by a transcript.

    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})      # hook, call and result in the transcript, hook
        report = s.audit(code=0)
"""
import json
import os
import time

import kit
from kit import BIN, check, clean_env, run

REFUSAL = "Error: PreToolUse:%s hook error: cortex: not allowed"


def stamp(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + ".%03dZ" % (ns // 10**6 % 1000)


class Told(kit.Folder):
    """A repository, a data directory, a session of Claude Code."""

    mode = "enforce"

    def __init__(self, session="5e551011-0000-4000-8000-000000000001", agent="claude"):
        super().__init__()
        self.session, self.agent, self.number, self.lines = session, agent, 0, []

    def __enter__(self):
        self.folder = super().__enter__()
        self.repo, self.home, self.user = (self.folder / n for n in ("repo", "home", "user"))
        self.user.mkdir()
        (self.repo / "src").mkdir(parents=True)
        (self.repo / "src/a.c").write_text("int a;\n")
        self.env = clean_env(HOME=self.user, USER="ann", LOGNAME="ann")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x")
        self.place = self.user / ".claude/projects/p"
        self.place.mkdir(parents=True)
        self.file = self.place / (self.session + ".jsonl")
        check(run(BIN, "init", "--home", self.home, env=self.env).returncode == 0)
        return self

    def git(self, *words):
        done = run("git", "-c", "user.name=a", "-c", "user.email=a@b", *words, cwd=self.repo, env=self.env)
        check(done.returncode == 0, words, done.stderr)
        return done.stdout.decode().strip()

    # --- hooks -----------------------------------------------------------------------------------

    def event(self, name, *words, session=None, **members):
        payload = {"session_id": session or self.session, "transcript_path": str(self.file), "cwd": str(self.repo),
                   "hook_event_name": name, **members}
        return run(BIN, "hook", self.agent, "--home", self.home, "--mode", self.mode, *words,
                   stdin=json.dumps(payload).encode(), env=self.env)

    def start(self, source="startup"):
        check(self.event("SessionStart", source=source).returncode == 0)

    def end(self):
        check(self.event("SessionEnd", reason="other").returncode == 0)

    def decide(self, call_id, tool, tool_input, *words, event="PreToolUse", **members):
        return self.event(event, *words, tool_name=tool, tool_input=tool_input, tool_use_id=call_id, **members)

    def after(self, call_id, tool, tool_input, **members):
        return self.event("PostToolUse", tool_name=tool, tool_input=tool_input, tool_use_id=call_id,
                          tool_response={"stdout": ""}, **members)

    # --- the transcript --------------------------------------------------------------------------

    def line(self, kind, content, **members):
        self.number += 1
        line = {"parentUuid": None, "isSidechain": False, "cwd": str(self.repo), "sessionId": self.session,
                "version": "2.1.330", "type": kind, "uuid": f"u-{self.number}", "timestamp": stamp(time.time_ns()),
                "message": {"role": kind, "content": content}, **members}
        self.lines.append(line)
        return line

    def tell_call(self, call_id, tool, tool_input, **members):
        return self.line("assistant", [{"type": "tool_use", "id": call_id, "name": tool, "input": tool_input}],
                         **members)

    def tell_result(self, call_id, text="done", failed=False, **members):
        more = {"toolUseResult": text} if failed else {}
        return self.line("user", [{"type": "tool_result", "tool_use_id": call_id, "content": text,
                                   "is_error": failed}], **more, **members)

    def call(self, tool, tool_input, call_id=None, **members):
        """A call as it should be: decided, told, and run or refused."""
        call_id = call_id or f"toolu_{self.number}"
        told = {"agentId": members["agent_id"], "isSidechain": True} if "agent_id" in members else {}
        self.tell_call(call_id, tool, tool_input, **told)
        done = self.decide(call_id, tool, tool_input, **members)
        if done.returncode == 2:
            self.tell_result(call_id, REFUSAL % tool, failed=True, **told)
        else:
            check(done.returncode == 0, done)
            check(self.after(call_id, tool, tool_input, **members).returncode == 0)
            self.tell_result(call_id, **told)
        return call_id

    def undecided(self, tool, tool_input, call_id=None, **members):
        call_id = call_id or f"toolu_{self.number}"
        self.tell_call(call_id, tool, tool_input, **members)
        self.tell_result(call_id, **members)
        return call_id

    def write(self, lines=None, path=None):
        text = "".join(json.dumps(line) + "\n" for line in (self.lines if lines is None else lines))
        (path or self.file).parent.mkdir(parents=True, exist_ok=True)
        (path or self.file).write_text(text)

    # --- asking ----------------------------------------------------------------------------------

    def cortex(self, *words, codes=(0,)):
        done = run(BIN, *words, "--home", self.home, env=self.env)
        check(done.returncode in codes, words, done.returncode, done.stdout[-3000:], done.stderr)
        return done.stdout.decode()

    def watch(self):
        self.cortex("watch", "--once", self.user / ".claude/projects")

    def audit(self, *words, code=0, write=True):
        if write:
            self.write()
        said = json.loads(self.cortex("hook", "audit", *words, "--json", codes=(code,)))
        check(said["verdict"] == {0: "holds", 1: "broken", 3: "indeterminate"}[code], said["verdict"])
        return said["sessions"][0] if len(said["sessions"]) == 1 else said["sessions"]


def ids(report, *severities):
    """The findings' ids, notes left out unless they are asked for."""
    return sorted({f["id"] for f in report["findings"] if f["severity"] in (severities or ("error", "warning"))})


def one(report, name):
    """The only finding of that id."""
    found = [f for f in report["findings"] if f["id"] == name]
    check(len(found) == 1, name, report["findings"])
    return found[0]
