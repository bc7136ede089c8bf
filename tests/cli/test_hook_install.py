#!/usr/bin/env python3
"""cortex hook install, uninstall, status: agents' own configurations, changed and undone.

The agents are programs of the test's own on PATH.  Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pty
import select
import time

import kit
from kit import BIN, check, clean_env, main, run, skip, test

USER_FILE = {"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json",
             "cursor": ".cursor/hooks.json", "copilot": ".copilot/hooks/cortex.json"}
PROJECT_FILE = {**USER_FILE, "copilot": ".github/hooks/cortex.json"}
COMMAND = {"copilot": "bash"}
THEIRS = '''{
    "model" : "x",
  "hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    "PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "check.sh"}]}
    ]
  },
  "env": {"A": "\\u00e9 caf\u00e9"}   }
'''
# Answers hooks/list as Codex does; trusts a hook whose hash is in config.toml.
CODEX = r'''#!/usr/bin/env python3
import hashlib, json, os, sys
if "--version" in sys.argv:
    print("codex-cli 0.171.0"); sys.exit()
home = os.environ.get("CODEX_HOME", os.environ["HOME"] + "/.codex")
config = home + "/config.toml"
text = open(config).read() if os.path.exists(config) else ""
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "hooks/list":
        hooks, path = [], home + "/hooks.json"
        for event, groups in json.load(open(path))["hooks"].items():
            for g, group in enumerate(groups):
                for n, entry in enumerate(group["hooks"]):
                    key = f"{path}:{event}:{g}:{n}"
                    digest = "sha256:" + hashlib.sha256(json.dumps(entry).encode()).hexdigest()
                    good = f'[hooks.state."{key}"]\ntrusted_hash = "{digest}"' in text and not os.path.exists(home + "/deaf")
                    hooks.append({"key": key, "command": entry["command"], "sourcePath": path, "currentHash": digest,
                                  "trustStatus": "trusted" if good else "untrusted"})
        result = {"data": [{"cwd": message["params"]["cwds"][0], "hooks": hooks}]}
    print(json.dumps({"method": "noise"}))
    print(json.dumps({"id": message["id"], "result": result}), flush=True)
'''

# Asks the model as Claude Code does, starts the hooks of its settings, reads files itself.
CLAUDE = r'''#!/usr/bin/env python3
import json, os, subprocess, sys, urllib.request
if "--version" in sys.argv:
    print("2.1.330 (Claude Code)"); sys.exit()
base = json.loads(sys.argv[sys.argv.index("--settings") + 1])["env"]["ANTHROPIC_BASE_URL"]
assert os.environ["ANTHROPIC_BASE_URL"] == base and "ANTHROPIC_AUTH_TOKEN" not in os.environ
try:
    urllib.request.build_opener(urllib.request.ProxyHandler({"http": base})).open("http://example.org/")
    sys.exit("another host was reached")
except urllib.error.HTTPError as refused:
    assert refused.code == 403, refused
mode = open(os.environ["HOME"] + "/mode").read()
hooks = json.load(open(os.environ["HOME"] + "/.claude/settings.json"))["hooks"]

def hook(event, **members):
    text = json.dumps({"session_id": "p1", "cwd": os.getcwd(), "hook_event_name": event, **members}).encode()
    for group in hooks[event] if mode != "deaf" else []:
        for entry in group["hooks"]:
            if subprocess.run(["sh", "-c", entry["command"]], input=text, capture_output=True).returncode == 2:
                return "refused"
    return None

def ask(messages, stream):
    tools = [{"name": "Read"}] + ([{"name": "Agent"}] if mode != "alone" else [])
    body = json.dumps({"model": "m", "stream": stream, "tools": tools, "messages": messages}, separators=(",", ":"))
    request = urllib.request.Request(base + "/v1/messages?beta=true", body.encode(), {"Content-Type": "application/json"})
    text = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read().decode()
    if not stream:
        return json.loads(text)["content"][0]
    block = None
    for line in text.splitlines():
        event = json.loads(line[6:]) if line.startswith("data: ") else {}
        if event.get("type") == "content_block_start":
            block = event["content_block"]
        elif event.get("type") == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            block["input"] = json.loads(event["delta"]["partial_json"])
    return block

def talk(prompt, agent):
    messages = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    while (block := ask(messages, agent is None))["type"] == "tool_use":
        more = {"agent_id": agent, "agent_type": "general-purpose"} if agent else {}
        result = None
        if not (agent and mode == "sub is deaf"):
            result = hook("PreToolUse", tool_name=block["name"], tool_input=block["input"], tool_use_id=block["id"], **more)
        if result is None and block["name"] == "Read":
            result = open(block["input"]["file_path"]).read()
        elif result is None:
            talk(block["input"]["prompt"], "a1")
        messages += [{"role": "assistant", "content": [block]},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": block["id"], "content": result}]}]

if mode == "hangs":
    import time; time.sleep(600)
if mode != "dies":
    talk(sys.argv[sys.argv.index("-p") + 1], None)
sys.exit("no account" if mode == "dies" else 0)
'''


class Place(kit.Folder):
    """A user's folder, a project, agents that say their version; `cortex` with spaces in its path."""

    def __enter__(self):
        self.folder = super().__enter__()
        self.user, self.project, self.bin = (self.folder / name for name in ("user", "pro ject", "bin"))
        for folder in (self.user, self.project / ".git", self.project / "deep", self.bin):
            folder.mkdir(parents=True)
        self.program("claude", "#!/bin/sh\necho '2.1.330 (Claude Code)'\n")
        self.program("gemini", "#!/bin/sh\necho 0.61.0\n")
        self.program("codex", CODEX)
        self.env = clean_env(HOME=self.user, USER="ann", LOGNAME="ann", PATH=f"{self.bin}:/usr/bin:/bin")
        for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "CLAUDE_CODE_SIMPLE"):
            self.env.pop(name, None)
        return self

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def cortex(self, *words, code=0, cwd=None, env=None):
        done = run(BIN, "hook", *words, env={**self.env, **(env or {})}, cwd=cwd or self.project)
        check(done.returncode == code, words, done.returncode, done.stdout.decode(), done.stderr.decode())
        return done

    def install(self, agent, *words, code=0, **more):
        return self.cortex("install", "--yes", agent, *words, code=code, **more)

    def undo(self, agent, *words, code=0, **more):
        return self.cortex("uninstall", "--yes", agent, *words, code=code, **more)

    def file(self, agent):
        return self.user / USER_FILE[agent]

    def status(self, agent, code, **more):
        answer = json.loads(self.cortex("status", agent, "--json", code=code, **more).stdout)
        return answer["agents"][0]

    def tree(self):
        return {str(path.relative_to(self.user)): path.read_bytes() for path in sorted(self.user.rglob("*"))
                if path.is_file() and ".local" not in path.parts}


def entries(text, agent):
    for event, elements in json.loads(text)["hooks"].items():
        for element in elements:
            for entry in element["hooks"] if agent in ("claude", "codex", "gemini") else [element]:
                yield event, element, entry


def ours(text, agent):
    word = COMMAND.get(agent, "command")
    return [(event, element, entry) for event, element, entry in entries(text, agent) if " hook " + agent in entry[word]]


@test
def installing_and_undoing_leaves_nothing():
    for agent in USER_FILE:
        for before in (None, "", "{}", '{"a":1}', '{\n  "version": 1,\n  "hooks": {}\n}\n'):
            with Place() as p:
                path = p.file(agent)
                if before is not None:
                    path.parent.mkdir(parents=True)
                    path.write_text(before)
                    path.chmod(0o640)
                tree = p.tree()
                p.install(agent, "--mode", "enforce")
                once = path.read_bytes()
                check(os.stat(path).st_mode & 0o777 == (0o600 if before is None else 0o640))
                check(len(ours(once, agent)) >= 5)
                done = p.install(agent, "--mode", "enforce")
                check(path.read_bytes() == once and b"already installed" in done.stdout, done.stdout)
                p.install(agent, "--mode", "ask")
                check(path.read_bytes() != once and len(ours(path.read_bytes(), agent)) == len(ours(once, agent)))
                done = p.undo(agent)
                check(b"as it was before" in done.stdout, done.stdout)
                check(p.tree() == tree, agent, before, p.tree(), tree)
                check(b"nothing was changed" in p.undo(agent).stdout)


@test
def what_others_wrote_stays():
    with Place() as p:
        path = p.file("claude")
        path.parent.mkdir()
        path.write_text(THEIRS)
        p.install("claude", "--mode", "enforce")
        text = path.read_text()
        for line in THEIRS.splitlines():
            check(line.rstrip("]},") in text, line)
        check(json.loads(text)["env"] == {"A": "é café"})
        # Somebody else writes into the file: our entries go, theirs stay.
        path.write_text(text.replace('"model" : "x"', '"model" : "y"'))
        done = p.undo("claude")
        check(b"the rest was left" in done.stdout, done.stdout)
        check(path.read_text() == THEIRS.replace('"model" : "x"', '"model" : "y"'), path.read_text())
        # Installed again over a change of theirs: the undo leaves that change.
        p.install("claude")
        path.write_text(path.read_text().replace('"model" : "y"', '"model" : "z"'))
        p.install("claude", "--mode", "ask")
        p.undo("claude")
        check(path.read_text() == THEIRS.replace('"model" : "x"', '"model" : "z"'), path.read_text())


@test
def the_data_directory_that_was_named_has_what_was_before():
    with Place() as p:
        path = p.file("claude")
        path.parent.mkdir()
        path.write_text('{ "a":1}')
        p.install("claude", "--home", p.folder / "elsewhere")
        check(f"--home {p.folder}/elsewhere" in path.read_text() and not (p.user / ".local").exists())
        p.undo("claude")
        check(path.read_text() == '{ "a":1}' and list((p.folder / "elsewhere/hooks").iterdir()) == [])
        # Without that data directory our entries are taken out all the same.
        p.install("claude", "--home", p.folder / "elsewhere")
        (p.folder / "elsewhere").rename(p.folder / "gone")
        p.undo("claude")
        check(json.loads(path.read_text()) == {"a": 1}, path.read_text())


@test
def each_agent_gets_its_own_form():
    with Place() as p:
        (p.folder / "da ta").mkdir()
        for agent in USER_FILE:
            p.install(agent, "--mode", "enforce", "--home", str(p.folder / f"da ta/{agent}'s"))
            text = p.file(agent).read_bytes()
            for event, element, entry in ours(text, agent):
                command = entry[COMMAND.get(agent, "command")]
                check(command.startswith("/") or command.startswith("'/"), command)
                # The line is one that a shell runs as it is meant.
                args = run("sh", "-c", "cortex() { :; }; set -- " + command.split(" || ")[0] + '; printf "%s\\n" "$@"')
                words = args.stdout.decode().splitlines()
                check(words == [os.path.realpath(BIN), "hook", agent, "--mode", "enforce", "--home",
                                str(p.folder / f"da ta/{agent}'s")], words)
                timeout = entry.get("timeout", entry.get("timeoutSec"))
                check(timeout == (60000 if agent == "gemini" else 60), entry)
                check(entry.get("onFailure") == ("block" if agent == "claude" else None), entry)
                check(entry.get("failClosed") == (True if agent == "cursor" else None), entry)
                if agent in ("codex", "gemini") and "Tool" in event:
                    check(element["matcher"] in ("*", ".*"), element)
            check(json.loads(text).get("version") == (1 if agent in ("cursor", "copilot") else None))
        events = {event for event, _, _ in ours(p.file("claude").read_bytes(), "claude")}
        check({"PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop", "ConfigChange"} <= events, events)


@test
def a_program_that_is_gone_blocks_unless_it_only_observes():
    for mode, expected in (("observe", 127), ("ask", 2), ("enforce", 2)):
        with Place() as p:
            p.install("codex", "--mode", mode, "--no-trust")
            command = ours(p.file("codex").read_bytes(), "codex")[0][2]["command"]
            gone = command.replace(os.path.realpath(BIN), "/nowhere/cortex")
            done = run("sh", "-c", gone, env=p.env, stdin=b"{}")
            check(done.returncode == expected and done.stdout == b"", done)
            check(mode == "observe" or done.stderr.rstrip().endswith(b"cortex: its hook gave no answer (exit 127)"), done)
            # Its own "no" is passed on as it is.
            done = run("sh", "-c", command, env=p.env, stdin=b"{")
            check(done.returncode == (0 if mode == "observe" else 2) and done.stderr.count(b"\n") == 1, done)
            program = p.folder / "killed/cortex"
            program.parent.mkdir()
            program.write_text("#!/bin/sh\nkill -9 $$\n")
            program.chmod(0o755)
            done = run("sh", "-c", command.replace(os.path.realpath(BIN), str(program)), env=p.env, stdin=b"{}")
            check(done.returncode == (137 if mode == "observe" else 2), done)


@test
def what_is_not_safe_to_change_is_refused():
    cases = {
        "comment": (b'{\n  "a": 1, // mine\n}', b"line 2, column 11: found a comment"),
        "doubled": (b'{"hooks": {}, "hooks": {}}', b"line 1, column 15"),
        "cut": (b'{"hooks": {', b"line 1, column 12"),
        "list": (b"[1]", b"expected object"),
        "hooks": (b'{"hooks": 7}', b"line 1, column 11"),
        "event": (b'{"hooks": {"PreToolUse": {"a": 1}}}', b"line 1, column 26"),
        "bytes": (b'{"a": "\xff"}', b"line 1, column 8"),
        "long": (b'{"a": "' + b"x" * (1 << 20) + b'"}', b"longer"),
        "deep": (b'{"a": ' + b"[" * 5000, b"line 1"),
    }
    for name, (text, why) in cases.items():
        with Place() as p:
            path = p.file("claude")
            path.parent.mkdir()
            path.write_bytes(text)
            for words in (("install", "--yes"), ("uninstall", "--yes"), ("install", "--dry-run")):
                done = run(BIN, "hook", *words, "claude", env=p.env, cwd=p.project)
                check(done.returncode in (1, 3) and str(path).encode() in done.stderr, name, done)
                check(why in done.stderr, name, done.stderr)
                check(path.read_bytes() == text, name)
            check(not (p.user / ".local").exists(), name)


@test
def files_of_others_and_links_are_refused():
    def refused(p, why, agent="claude"):
        tree = p.tree()
        done = run(BIN, "hook", "install", "--yes", agent, env=p.env, cwd=p.project)
        check(done.returncode != 0 and why in done.stderr, why, done)
        check(p.tree() == tree)

    with Place() as p:
        (p.user / "real").mkdir()
        (p.user / "real/settings.json").write_text("{}")
        (p.user / ".claude").symlink_to("real")
        refused(p, b"symbolic link")
    with Place() as p:
        path = p.file("claude")
        path.parent.mkdir()
        path.symlink_to("/nowhere/at/all")
        refused(p, b"symbolic link")
        path.unlink()
        os.mkfifo(path)
        refused(p, b"pipe")
        path.unlink()
        path.mkdir()
        refused(p, b"is a folder")
        path.rmdir()
        path.write_text("{}")
        path.chmod(0o666)
        refused(p, b"every user")
        path.chmod(0o600)
        os.link(path, path.with_name("second"))
        refused(p, b"2 names")
        path.with_name("second").unlink()
        path.parent.chmod(0o777)
        refused(p, b"every user")
        path.parent.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(path, 12345, 12345)
            refused(p, b"another user")
            os.chown(path, 0, 0)
        p.install("claude")
    with Place() as p:
        (p.project / ".claude").symlink_to(p.user)
        done = p.install("claude", "--project", code=1)
        check(b"symbolic link" in done.stderr and p.tree() == {}, done)


@test
def a_person_agrees_on_a_terminal():
    def answer(p, text):
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(p.project)
            os.execvpe(BIN, [BIN, "hook", "install", "claude"], p.env)
        shown, end = b"", time.monotonic() + 60
        while time.monotonic() < end and b'Write "yes"' not in shown:
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 65536)
        os.write(terminal, text)
        try:
            while more := os.read(terminal, 65536):
                shown += more
        except OSError:
            pass
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown

    with Place() as p:
        # Without a terminal, and without --yes, nothing happens.
        done = run("setsid", BIN, "hook", "install", "claude", env=p.env, cwd=p.project, stdin=b"yes\n")
        check(done.returncode == 1 and b"--yes" in done.stderr and p.tree() == {}, done)
        code, shown = answer(p, b"no\n")
        check(code == 1 and p.tree() == {} and not (p.user / ".local").exists(), shown)
        check(b"+    \"PreToolUse\"" in shown and b"makes the data directory" in shown, shown)
        code, shown = answer(p, b"yes\n")
        check(code == 0 and len(ours(p.file("claude").read_bytes(), "claude")) == 10, shown)
        check((p.user / ".local/share/cortex/log").is_dir())


@test
def a_dry_run_writes_nothing():
    with Place() as p:
        done = p.cortex("install", "--dry-run", "--mode", "enforce", "claude")
        check(b"+    \"PreToolUse\"" in done.stdout and b"nothing was written" in done.stdout)
        check(p.tree() == {} and not (p.user / ".local").exists())
        p.install("claude")
        tree = p.tree()
        done = p.cortex("uninstall", "--dry-run", "claude")
        check(b"-    \"PreToolUse\"" in done.stdout and p.tree() == tree)


@test
def scopes_are_places():
    with Place() as p:
        for agent in USER_FILE:
            p.install(agent, "--project", cwd=p.project / "deep")
            check(ours((p.project / PROJECT_FILE[agent]).read_bytes(), agent))
        p.install("claude", "--local")
        check(ours((p.project / ".claude/settings.local.json").read_bytes(), "claude"))
        check(p.tree() == {})
        p.install("codex", "--local", code=2)
        p.install("codex", "--managed", code=2)
        p.install("claude", "--user", "--project", code=2)
        p.install("claude", "--managed-only", code=2)
        p.install("clod", code=2)
        p.cortex("install", code=2)
        p.install("claude", "--mode", "strict", code=2)
        p.install("claude", env={"CLAUDE_CONFIG_DIR": str(p.user / "else")})
        check(ours((p.user / "else/settings.json").read_bytes(), "claude"))
        p.install("claude", env={"CLAUDE_CONFIG_DIR": "else"}, code=2)
        p.install("codex", "--no-trust", env={"CODEX_HOME": str(p.user / "cx")})
        check(ours((p.user / "cx/hooks.json").read_bytes(), "codex"))


@test
def status_says_what_holds():
    with Place() as p:
        state = p.status("claude", 1)
        check(not state["installed"] and state["version"] == "2.1.330")
        check(json.loads(p.cortex("status", "--json").stdout)["holds"])
        p.install("claude", "--mode", "enforce")
        state = p.status("claude", 0)
        user = state["places"][0]
        check(state["holds"] and user["in_force"] and user["mode"] == "enforce", state)
        check(user["program"] == os.path.realpath(BIN) and state["latest_session"] is None, state)
        event = {"session_id": "s1", "cwd": str(p.project), "hook_event_name": "SessionStart", "source": "startup"}
        command = ours(p.file("claude").read_bytes(), "claude")[0][2]["command"]
        check(run("sh", "-c", command, env=p.env, stdin=json.dumps(event).encode()).returncode == 0)
        check(p.status("claude", 0)["latest_session"] == "s1")

        def broken(why, **more):
            state = p.status("claude", 1, **more)
            problems = " ".join(place["problem"] or "" for place in state["places"])
            check(not state["holds"] and why in problems, why, state)

        settings = p.project / ".claude/settings.json"
        settings.parent.mkdir()
        settings.write_text('{"disableAllHooks": true}')
        broken("switched off in " + str(settings))
        settings.write_text('{"disableAllHooks": tru}')
        broken("line 1, column 24")
        settings.unlink()
        good = p.file("claude").read_text()
        p.file("claude").write_text(good.replace('"SubagentStart"', '"SubagentStartx"'))
        broken("SubagentStart")
        p.file("claude").write_text(good.replace(os.path.realpath(BIN), "/nowhere/cortex"))
        broken("/nowhere/cortex")
        p.file("claude").write_text(good.replace('"timeout": 60', '"timeout": 1', 1))
        broken("PreToolUse")
        p.file("claude").write_text(good.replace("--mode enforce", "--mode observe", 1))
        broken("different things")
        p.file("claude").write_text(good)
        p.program("claude", "#!/bin/sh\necho 2.1.200\n")
        check("2.1.295" in p.status("claude", 0)["note"])
        check("SIMPLE" in p.status("claude", 0, env={"CLAUDE_CODE_SIMPLE": "1", "PATH": "/usr/bin:/bin"})["note"])
        p.program("claude", "#!/bin/sh\necho; exit 3\n")
        check(p.status("claude", 0)["version"] is None)
        p.install("gemini")
        other = p.project / ".gemini/settings.json"
        other.parent.mkdir()
        other.write_text('{"hooksConfig": {"disabled": ["cortex"]}}')
        check(not p.status("gemini", 1)["holds"])
        other.write_text('{"hooksConfig": {"disabled": ["else"]}}')
        check(p.status("gemini", 0)["holds"])
        p.install("copilot")
        (p.user / ".copilot/settings.json").write_text('{"disableAllHooks": true}')
        check(not p.status("copilot", 1)["holds"])


@test
def codex_trusts_what_was_installed():
    with Place() as p:
        config = p.user / ".codex/config.toml"
        config.parent.mkdir()
        config.write_text('model = "x"\n')
        config.chmod(0o640)
        done = p.install("codex", "--mode", "enforce")
        check(b"Codex trusts these hooks" in done.stdout, done)
        check(config.read_text().startswith('model = "x"\n\n[hooks.state."') and os.stat(config).st_mode & 0o777 == 0o640)
        check(p.status("codex", 0)["trust"] == "trusted")
        once = config.read_bytes()
        p.install("codex", "--mode", "enforce")
        check(config.read_bytes() == once)
        # A changed line of ours has another hash: it is not trusted, and installing again repairs it.
        path = p.file("codex")
        good = path.read_bytes()
        path.write_bytes(good.replace(b"--mode enforce", b"--mode observe"))
        state = p.status("codex", 1)
        check("0 of 8" in state["trust"] and not state["places"][0]["in_force"], state)
        path.write_bytes(good)
        p.install("codex", "--mode", "ask")
        check(p.status("codex", 0)["trust"] == "trusted")
        # Codex has written, too: its part stays.
        with open(config, "a", encoding="utf-8") as out:
            out.write('\n[projects."/x"]\ntrust_level = "trusted"\n')
        p.undo("codex")
        check(config.read_text() == 'model = "x"\n\n[projects."/x"]\ntrust_level = "trusted"\n', config.read_text())
        # Codex that does not take the hashes: the file is as it was, and it is said.
        (p.user / ".codex/deaf").touch()
        before = config.read_bytes()
        done = p.install("codex")
        check(b"NOT trusted" in done.stdout and config.read_bytes() == before, done.stdout)
        p.undo("codex")
        # One that answers nonsense, and none at all.
        for text in ("#!/bin/sh\necho hello\nexit 1\n", None):
            if text is None:
                (p.bin / "codex").unlink()
            else:
                p.program("codex", text)
            done = p.install("codex")
            check(config.read_bytes() == before and ours(path.read_bytes(), "codex"), done)
            check("unknown" in p.status("codex", 0)["trust"])
            p.undo("codex")


@test
def a_change_meanwhile_is_not_overwritten():
    with Place() as p:
        path = p.file("claude")
        path.parent.mkdir()
        path.write_text("{}")
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(p.project)
            os.execvpe(BIN, [BIN, "hook", "install", "claude"], p.env)
        shown = b""
        while b'Write "yes"' not in shown:
            shown += os.read(terminal, 65536)
        path.write_text('{"theirs": 1}')
        os.write(terminal, b"yes\n")
        try:
            while more := os.read(terminal, 65536):
                shown += more
        except OSError:
            pass
        os.close(terminal)
        check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1 and b"changed while" in shown, shown)
        check(path.read_text() == '{"theirs": 1}' and [f.name for f in path.parent.iterdir()] == ["settings.json"])


@test
def the_administrators_file():
    if os.geteuid() != 0 or run("unshare", "-m", "true").returncode != 0:
        skip("needs root and mount namespaces")
    with Place() as p:
        script = """set -e
mount -t tmpfs none /etc
cd "$2"
"$1" hook install --managed --managed-only --mode enforce --yes claude
"$1" hook install --managed --yes gemini
"$1" hook install --yes claude
cat /etc/claude-code/managed-settings.json
stat -c %a /etc/claude-code /etc/claude-code/managed-settings.json
"$1" hook status claude --json
mkdir -p .gemini && echo '{"hooksConfig": {"enabled": false}}' > .gemini/settings.json
"$1" hook status gemini --json
"$1" hook uninstall --managed --yes claude
"$1" hook uninstall --managed --yes gemini
find /etc -type f
"""
        done = run("unshare", "-m", "sh", "-c", script, "x", BIN, p.project, env=p.env)
        lines = done.stdout.decode().splitlines()
        check(done.returncode == 0 and "755" in lines and "644" in lines, done)
        claude, gemini = (json.loads(line)["agents"][0] for line in lines if line.startswith('{"agents"'))
        places = {place["scope"]: place for place in claude["places"]}
        check(places["managed"]["in_force"] and places["managed"]["home"] is None, claude)
        check("managed hooks only" in places["user"]["problem"], claude)
        check(gemini["holds"], gemini)
        check('  "allowManagedHooksOnly": true,' in lines and not any(line.startswith("/etc") for line in lines[-2:]), lines)


@test
def a_plugin_is_written_where_nothing_else_is():
    with Place() as p:
        folder = p.folder / "plug in"
        p.cortex("plugin", "claude", folder, "--mode", "enforce")
        about = json.loads((folder / ".claude-plugin/plugin.json").read_text())
        check(about["name"] == "cortex" and about["version"] and about["description"], about)
        text = (folder / "hooks/hooks.json").read_text()
        check(len(ours(text, "claude")) == 10 and "--home" not in text and '"onFailure": "block"' in text, text)
        p.cortex("plugin", "claude", folder, "--mode", "observe", "--home", p.user)
        text = (folder / "hooks/hooks.json").read_text()
        check(len(ours(text, "claude")) == 10 and "--mode observe" in text and "onFailure" not in text
              and f"--home {p.user}" in text, text)
        other = p.folder / "other"
        (other / ".claude-plugin").mkdir(parents=True)
        (other / ".claude-plugin/plugin.json").write_text('{"name": "theirs"}')
        done = run(BIN, "hook", "plugin", "claude", other, env=p.env)
        check(done.returncode == 1 and b"not ours" in done.stderr and not (other / "hooks").exists(), done)
        p.cortex("plugin", "codex", p.folder / "x", code=2)
        (p.folder / "link").symlink_to(other)
        p.cortex("plugin", "claude", p.folder / "link", code=1)


@test
def doctor_has_a_line_for_each_agent():
    with Place() as p:
        def line(name):
            answer = json.loads(run(BIN, "doctor", "--json", env=p.env, cwd=p.project).stdout)
            return next((c["status"] + " " + c["detail"] for c in answer["checks"] if c["name"] == name), None)

        check(line("cursor") is None and "no hooks of ours" in line("claude"))
        p.install("claude", "--mode", "ask")
        check(line("claude").startswith("ok 2.1.330; hooks in force by the user configuration, mode ask"), line("claude"))
        p.install("codex")
        check("trusted" in line("codex") and line("codex").startswith("ok"), line("codex"))
        p.file("claude").write_text(p.file("claude").read_text().replace('"SessionStart"', '"x"'))
        check(line("claude").startswith("fail") and "SessionStart" in line("claude"), line("claude"))


@test
def a_probe_says_whether_hooks_fire():
    rows = [("", 0, "fires", True, True), ("alone", 0, "fires", True, False), ("deaf", 1, "silent", False, False),
            ("sub is deaf", 1, "silent", True, False), ("dies", 3, "unknown", False, False),
            ("hangs", 3, "unknown", False, False)]
    with Place() as p:
        p.program("claude", CLAUDE)
        p.cortex("probe", "claude", code=1)
        p.install("claude", "--mode", "enforce")
        before = set(os.listdir("/tmp"))
        for mode, code, verdict, main_decided, sub_decided in rows:
            (p.user / "mode").write_text(mode)
            words = ("--deadline", "2") if mode == "hangs" else ()
            done = p.cortex("probe", "claude", "--json", *words, code=code,
                            env={"ANTHROPIC_AUTH_TOKEN": "secret", "ANTHROPIC_BASE_URL": "http://192.0.2.1/"})
            answer = json.loads(done.stdout)
            check(answer["verdict"] == verdict and answer["main"]["decided"] == main_decided
                  and answer["sub"]["decided"] == sub_decided, mode, answer)
            check(answer["main"]["ran"] == (mode not in ("dies", "hangs")), mode, answer)
            check(answer["refused"] == 1 and answer["timed_out"] == (mode == "hangs"), mode, answer)
        left = [name for name in set(os.listdir("/tmp")) - before if os.path.exists(f"/tmp/{name}/main-agent.txt")]
        check(not left, left)
        (p.user / "mode").write_text("")
        shown = p.cortex("probe", "claude").stdout.decode()
        check("the hooks fire" in shown and "sub-agent  decided: Read, allow by L00" in shown and "not tried: " in shown, shown)
        doctor = json.loads(run(BIN, "doctor", "--json", env=p.env, cwd=p.project).stdout)
        check(any(c["name"] == "claude" and "with 2.1.330: fires" in c["detail"] for c in doctor["checks"]), doctor)
        p.cortex("probe", "cursor", code=2)
        p.cortex("probe", "claude", "--deadline", "0", code=2)
        (p.bin / "claude").unlink()
        p.cortex("probe", "claude", code=2)


if __name__ == "__main__":
    main()
