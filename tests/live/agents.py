"""The three agents as the test starts them: where each has its hooks, how it is pointed at the model that
is played, and what one session of it came to.

CORTEX_AGENTS names a folder in which `live/` holds the packages (scripts/test-live.sh --install).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import kit
from kit import BIN, check, clean_env, run

LIMIT_S = 120  # of one session


def folder():
    """Where the packages are, or None."""
    root = os.environ.get("CORTEX_AGENTS")
    return pathlib.Path(root) / "live/node_modules" if root else None


class Session:
    """What one session came to."""

    def __init__(self, place, done, seconds, model):
        self.place, self.seconds, self.model = place, seconds, model
        self.code = done.returncode
        self.stdout = (done.stdout or b"").decode(errors="replace")
        self.stderr = (done.stderr or b"").decode(errors="replace")
        self.told = model.said()  # what the model was told about its calls

    def ran(self, name="ran"):
        """The side effect of the tool that the case is about."""
        return (self.place.repo / name).exists()

    def sessions(self):
        done = run(BIN, "session", "list", "--json", "--home", self.place.home, env=self.place.env)
        return json.loads(done.stdout)["sessions"] if done.returncode == 0 else []

    def entries(self, kind=None):
        found = []
        for one in self.sessions():
            done = run(BIN, "session", "show", one["session"], "--all", "--json", "--home", self.place.home,
                       env=self.place.env)
            if done.returncode == 0:
                found += json.loads(done.stdout)["entries"]
        return [e["payload"] for e in found if kind is None or e["kind"] == "live." + kind]

    def decisions(self, tool=None):
        return [e for e in self.entries("decision") if tool is None or e["call"]["tool"] == tool]

    def verdicts(self):
        return [(e["call"]["tool"], e["verdict"], e["rule"]) for e in self.decisions()]


class Agent:
    """One agent; `name` is the word of `cortex hook`."""

    name = title = shell = before = ""
    events = ()

    def command(self, place, *words):
        """The line that the agent's configuration has for a hook."""
        return " ".join([str(BIN), "hook", self.name, "--home", str(place.home), *words])

    def wrapped(self, line):
        """The line in a shell that turns every end but an answer into no."""
        return f"sh -c '{line} || {{ c=$?; [ $c = 2 ] || echo \"cortex: no answer\" >&2; exit 2; }}'"

    def version(self):
        done = run(*self.argv(), "--version", timeout=LIMIT_S)
        return done.stdout.decode().strip()

    def number(self):
        return re.search(r"[0-9]+(\.[0-9]+)+", self.version()).group()

    def call(self, line):
        raise NotImplementedError

    def run(self, place, conversations, hook, prompt="go", limit=LIMIT_S, words=(), env=None, during=None):
        """One session whose hooks run `hook` (None: without hooks); `during` is called beside it."""
        from model import Model
        with Model(conversations) as model:
            words = self.prepare(place, model, hook) + list(words)
            began = time.monotonic()
            process = subprocess.Popen(
                [*map(str, self.argv()), *map(str, words), *self.prompt(prompt)], cwd=place.repo,
                env={**place.env, **self.env(place, model), **(env or {})}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
            if during:
                during(process, model)
            try:
                out, err = process.communicate(timeout=limit)
                code = process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                out, err = process.communicate()
                code = "hung"
            done = subprocess.CompletedProcess([], code, out, err)
            return Session(place, done, time.monotonic() - began, model)

    def prompt(self, text):
        return [text]


class Claude(Agent):
    name, title, shell, before = "claude", "Claude Code", "Bash", "PreToolUse"
    events = ("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure",
              "PermissionRequest", "SubagentStart", "SubagentStop", "ConfigChange")
    closes = True  # has a switch that makes a failing hook a block

    def argv(self):
        return [folder() / ".bin/claude"]

    def call(self, line):
        from model import Call
        return Call("Bash", command=line, description="a test")

    def write(self, path, text):
        from model import Call
        return Call("Write", file_path=str(path), content=text)

    def prepare(self, place, model, hook, extra=None):
        settings = dict(extra or {})
        if hook:
            entry = {"type": "command", "command": hook, "timeout": place.timeout, **place.entry}
            settings["hooks"] = {event: [{"hooks": [entry]}] for event in self.events}
        path = place.user / ".claude/settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings))
        return ["--output-format", "stream-json", "--verbose", "--allowedTools",
                "Bash,Write,Edit,Read,Agent,Task,WebFetch,Monitor"]

    def prompt(self, text):
        return ["-p", text]

    def env(self, place, model):
        return {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "not-a-key", "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1"}


class Codex(Agent):
    name, title, shell, before = "codex", "Codex", "Bash", "PreToolUse"
    events = ("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest",
              "SubagentStart", "SubagentStop")
    closes = False

    def argv(self):
        return [folder() / ".bin/codex"]

    def call(self, line):
        from model import Call
        return Call("exec_command", cmd=line)

    def write(self, path, text):
        return self.call("apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: %s\n%s\n*** End Patch\nEOF" % (
            path, "\n".join("+" + line for line in text.splitlines())))

    def prepare(self, place, model, hook):
        home = place.user / ".codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f'model = "{place.model}"\nmodel_provider = "played"\n{place.config}\n[model_providers.played]\nname = "played"\n'
            f'base_url = "{model.url}/v1"\nenv_key = "PLAYED_KEY"\nwire_api = "responses"\n'
            f'request_max_retries = 0\nstream_max_retries = 0\n'
            f'[projects."{place.repo}"]\ntrust_level = "trusted"\n{place.tables}\n')
        hooks = home / "hooks.json"
        if hook:
            entry = {"type": "command", "command": hook, "timeout": place.timeout}
            hooks.write_text(json.dumps({"hooks": {event: [{"hooks": [entry]}] for event in self.events}}))
        elif hooks.exists():
            hooks.unlink()
        return ["exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access",
                *(["--dangerously-bypass-hook-trust"] if place.trusted else [])]

    def env(self, place, model):
        return {"CODEX_HOME": str(place.user / ".codex"), "PLAYED_KEY": "not-a-key", "RUST_LOG": "error"}


class Gemini(Agent):
    name, title, shell, before = "gemini", "Gemini CLI", "run_shell_command", "BeforeTool"
    events = ("SessionStart", "SessionEnd", "BeforeAgent", "BeforeTool", "AfterTool")
    closes = False

    def argv(self):
        return ["node", folder() / "@google/gemini-cli/bundle/gemini.js"]

    def call(self, line):
        from model import Call
        return Call("run_shell_command", command=line, description="a test")

    def write(self, path, text):
        from model import Call
        return Call("write_file", file_path=str(path), content=text)

    def prepare(self, place, model, hook):
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, **place.entry}
        if hook:
            entry = {"type": "command", "command": hook, "name": "cortex", "timeout": place.timeout * 1000}
            settings["hooks"] = {event: [{"hooks": [entry]}] for event in self.events}
        path = place.user / ".gemini/settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings))
        (path.parent / "trustedFolders.json").write_text(json.dumps({str(place.repo): "TRUST_FOLDER"}))
        return ["--yolo"]

    def prompt(self, text):
        return ["-p", text]

    def env(self, place, model):
        return {"GEMINI_API_KEY": "not-a-key", "GOOGLE_GEMINI_BASE_URL": model.url, "NO_COLOR": "1", "CI": "1",
                "GEMINI_TELEMETRY_ENABLED": "false"}


AGENTS = {"claude": Claude(), "codex": Codex(), "gemini": Gemini()}


def installed(agent):
    here = folder()
    return here is not None and pathlib.Path(str(agent.argv()[-1])).exists()


class Place(kit.Folder):
    """A repository with one commit, a data directory, a user's folder without anything."""

    def __init__(self, **policy):
        super().__init__("cortex-live-")
        self.members = policy
        self.timeout = 30           # of a hook, as the agent is told, in seconds
        self.entry = {}             # more members of the agent's configuration
        self.config = self.tables = ""  # more lines of Codex's, before and after its tables
        self.model = "played"       # what Codex is told its model is
        self.trusted = True         # Codex: hooks are trusted

    def __enter__(self):
        self.folder = super().__enter__()
        self.repo, self.home, self.user = self.folder / "repo", self.folder / "home", self.folder / "user"
        self.user.mkdir()
        (self.repo / "src").mkdir(parents=True)
        (self.repo / "src/a.c").write_text("int a;\n")
        self.env = clean_env(HOME=self.user, USER="ann", LOGNAME="ann")
        for name in list(self.env):
            if name.startswith(("CLAUDE", "ANTHROPIC", "CODEX", "OPENAI", "GEMINI", "GOOGLE")):
                del self.env[name]
        self.git("init", "-q")
        if self.members:
            self.policy(**self.members)
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
        shutil.copytree(kit.TESTS.parent / "policies", self.repo / "policies", dirs_exist_ok=True)
        (self.repo / "policies/live.json").write_text(json.dumps({"version": "v1", **members}))
