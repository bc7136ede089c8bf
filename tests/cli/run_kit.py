"""What tests of governed runs share: a repository as the golden ones, contracts, scripts, a home.

Golden vectors: tests/vectors/run/golden.
"""
import copy
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess

import kit
from kit import BIN, TESTS, TIMEOUT_S, Folder, check, run, skip, test

GOLDEN = TESTS / "vectors" / "run" / "golden"
SCENARIOS = ["success", "out_of_scope", "tests_fail", "fix_loop", "tool_gate", "wide_path"]
GIT = shutil.which("git")


def clean_env(**more):
    """Also without the settings of git of the user who runs the tests."""
    return kit.clean_env(**{"HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null",
                            "GIT_CONFIG_NOSYSTEM": "1", "CORTEX_BIN": BIN, **more})


def golden(scenario, name):
    return json.loads((GOLDEN / scenario / name).read_text())


class Repo:
    """The repository of the golden runs, with a home and room for contracts beside it."""

    before = ()  # words of what starts the program

    def __init__(self, folder, files=None, bare_home=False):
        self.base = pathlib.Path(folder)
        self.path = self.base / "repo"
        self.home = self.base / "home"
        self.path.mkdir()
        spec = json.loads((GOLDEN / "repo.json").read_text())
        self.git("init", "-q", "-b", "main")
        for name, text in spec["files"].items():
            self.write(name, text, name in spec["executable"])
        self.commit("base", spec["date"])
        check(self.head() == spec["commit"], "the repository is not the golden one")
        for name, text in (files or {}).items():
            self.write(name, text)
        if files:
            self.commit("more", spec["date"])
        if not bare_home:
            done = run(BIN, "init", "--home", self.home, env=clean_env(), cwd=self.base)
            check(done.returncode == 0, done.stderr)

    def git(self, *args, ok=True):
        env = clean_env(GIT_AUTHOR_NAME="Cortex Test", GIT_AUTHOR_EMAIL="test@example.invalid",
                        GIT_COMMITTER_NAME="Cortex Test", GIT_COMMITTER_EMAIL="test@example.invalid")
        env.update(getattr(self, "dates", {}))
        done = subprocess.run([GIT, *args], cwd=self.path, env=env, capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        check(not ok or done.returncode == 0, "git", *args, done.stderr)
        return done.stdout.strip()

    def write(self, name, text, executable=False):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if executable else 0o644)

    def commit(self, message, date="2026-01-02T00:00:00Z"):
        self.dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        self.dates = {}
        return self.head()

    def head(self, ref="HEAD"):
        return self.git("rev-parse", ref)

    def actor(self):
        """Of this repository's runs, in the home (decision 0015)."""
        return "run:" + self.git("rev-list", "--max-parents=0", "HEAD").split()[0][:16]

    @property
    def root(self):
        return self.path / ".runtime-cache" / "cortexpilot"

    def keep(self, name, value):
        path = self.base / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def cortex(self, *args, env=None, popen=False):
        argv = [*self.before, BIN, *[str(a) for a in args]]
        full = clean_env(**{"CORTEX_HOME": str(self.home), **(env or {})})
        if popen:
            return subprocess.Popen(argv, cwd=self.path, env=full, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return run(*argv, env=full, cwd=self.path)

    def run(self, contract, script=None, *more, env=None):
        """(finished process, the answer of --json)"""
        args = ["run", self.keep("contract.json", contract), "--json", *more]
        if script is not None:
            args += ["--script", self.keep("script.json", script)]
        done = self.cortex(*args, env=env)
        lines = done.stdout.decode().splitlines()
        answer = json.loads(lines[-1]) if lines else None
        if os.environ.get("CX_TEST_SHOW"):
            print(done.returncode, answer, done.stderr.decode())
        return done, answer

    def events(self, answer):
        path = pathlib.Path(answer["bundle"]) / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def verify(self, answer):
        return self.cortex("run", "verify", answer["run_id"], "--json")

    def clean(self):
        """Nothing of a run is left in the repository but its bundle."""
        left = sorted(p.name for p in (self.root / "locks").glob("*.lock"))
        check(left == [], "locks", left)
        trees = sorted(p for p in (self.root / "worktrees").rglob("*") if p.name == ".git")
        check(trees == [], "worktrees", trees)
        check(self.git("worktree", "list").count("\n") == 0, self.git("worktree", "list"))
        active = self.root / "active" / "runs"
        check(not active.exists() or list(active.iterdir()) == [], "active")
        check(self.git("status", "--porcelain") == "", self.git("status", "--porcelain"))
        check(self.git("for-each-ref", "refs/heads").count("\n") == 0, "branches are left")
        self.no_machine_paths()

    def no_machine_paths(self):
        """A bundle names no folder of this machine, nor the machine.  What an agent or a test said
        (its session, its logs) is kept as it was."""
        names = {str(p) for p in (self.base, self.base.resolve())}
        names |= {pathlib.Path.home().as_posix(), os.environ.get("HOME", "/"), socket.gethostname()}
        names = [n.encode() for n in names if n.strip("/") and len(n) > 4]
        for path in (self.root / "runs").rglob("*"):
            raw = path.suffix == ".log" or (path.name == "events.jsonl" and "codex" in path.parts)
            if path.is_dir() or raw:
                continue
            found = [n for n in names if n in path.read_bytes()]
            check(found == [], path, found)


def with_policies(folder, **config):
    """A repository whose baseline has policies/ with an approver; (repo, key file).  Keyword
    arguments are members of cortex.json."""
    key = pathlib.Path(folder) / "alice.key"
    made = run(BIN, "key", "new", key, "--name", "alice", "--json", "--home",
               pathlib.Path(folder) / "no-home", env=clean_env(), cwd=folder)
    check(made.returncode == 0, made.stderr)
    files = {}
    source = TESTS.parent / "policies"
    for path in source.rglob("*.json"):
        files["policies/" + str(path.relative_to(source))] = path.read_text()
    files["policies/approvers.json"] = json.dumps({"version": "v1", "approvers": [
        {"name": "alice", "public_key": json.loads(made.stdout)["public_key"]}]})
    settings = json.loads(files["policies/cortex.json"])
    settings["approvers"]["sha256"] = sha256(files["policies/approvers.json"].encode())
    settings.update(config)
    files["policies/cortex.json"] = json.dumps(settings)
    return Repo(folder, files=files), key


def approve(repo, key, value, *scopes, out=None):
    """Signs an approval for exactly this contract."""
    args = ["approve", "--contract", repo.keep("contract.json", value), "--reason", "a test",
            "--key", key, "--json"]
    for scope in scopes:
        args += ["--scope", scope]
    if out is not None:
        args += ["-o", out]
    done = repo.cortex(*args)
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def types(events):
    return [event["event_type"] for event in events]


def payloads(events, event_type):
    return [event["payload"] for event in events if event["event_type"] == event_type]


def contract(task_id="unit_task_1", **changes):
    """A valid contract for the golden repository; keyword arguments replace members, dotted with
    two underscores: tool_permissions__shell="deny"."""
    value = copy.deepcopy(golden("success", "contract.input.json"))
    value["task_id"] = task_id
    for key, change in changes.items():
        at = value
        parts = key.split("__")
        for part in parts[:-1]:
            at = at[part]
        at[parts[-1]] = change
    return value


def reply(task_id="unit_task_1", **changes):
    return {"task_id": task_id, "status": "SUCCESS", "summary": "done", "evidence_refs": {},
            "failure": None, **changes}


def script(*turns, thread="thread-1"):
    """Each turn: (ops, output) or (ops, output, tool_calls)."""
    return {"format": "cortex.replay-script.v1", "thread_id": thread,
            "turns": [{"ops": turn[0], "output": turn[1],
                       **({"tool_calls": turn[2]} if len(turn) > 2 else {})} for turn in turns]}


GOOD_OPS = [["append", "src/app/main.c", "/* more */\n"]]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# --- programs as agents ---------------------------------------------------------------------------

AGENT = """#!/bin/sh
cat > "$TMPDIR/prompt"
grep -q "<<<CONTRACT>>>" "$TMPDIR/prompt" || exit 9
echo '/* by a program */' >> src/app/main.c
echo 'noise'
echo '%s'
"""


def exec_config(agent, **more):
    return {"runner": {"mcp_only": False, "default": "tool"},
            "runners": {"tool": {"kind": "exec", "argv": ["sh", agent],
                                 "provides": ["codex"]}},
            "integrations": {"tool": {"argv": ["sh"], "sha256": sha256(
                pathlib.Path("/bin/sh").resolve().read_bytes())}}, **more}


def exec_repo(folder, text, **more):
    """A repository whose agent is a script of the baseline."""
    repo, key = with_policies(folder, **exec_config("scripts/agent.sh", **more))
    repo.write("scripts/agent.sh", text, True)
    repo.commit("agent")
    return repo, key


# --- tests that need a sandbox ----------------------------------------------------------------------


def skip_with_old_git(said):
    """Runs are refused where git is too old, with these words (Ubuntu 22.04)."""
    found = re.search(r"git [0-9.]+ is too old: [0-9.]+ or newer is needed", said)
    if found:
        skip(found[0])


def need_sandbox():
    """Runs refuse to start without a sandbox; that is tested, too, but not with everything else."""
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        skip_with_old_git(f"{answer} {done.stderr}")
        if answer["failed_gate"] == "sandbox":
            skip("no sandbox on this machine: " + ", ".join(answer["violations"]))


sandbox_state = []


def sandboxed(function):
    def wrapped():
        if not sandbox_state:
            try:
                need_sandbox()
                sandbox_state.append(None)
            except Exception as why:  # skip() or a failure: each test says so again
                sandbox_state.append(why)
        if sandbox_state[0] is not None:
            raise sandbox_state[0]
        function()
    wrapped.__name__ = function.__name__
    return test(wrapped)


def fails_at(answer, gate, reason=None):
    check(answer["status"] == "FAILURE", answer)
    check(answer["failed_gate"] == gate, answer)
    check(reason is None or answer["reason"] == reason, answer)


def refused(repo, done, answer, gate, reason=None):
    """Exit 4, a sealed bundle that verifies, nothing left, main where it was."""
    check(done.returncode == 4, done.returncode, done.stderr)
    fails_at(answer, gate, reason)
    events = repo.events(answer)
    check(types(events)[0] == "RUN_CREATED" and types(events)[-1] == "RUN_FINISHED", types(events))
    check(types(events)[-2] == "STATE_TRANSITION", types(events))
    check(events[-2]["payload"]["to"] == "FAIL" and events[-2]["payload"]["reason"] == gate,
          events[-2])
    verdict = repo.verify(answer)
    check(verdict.returncode == 0, verdict.stdout)
    repo.clean()
    return events


# --- contracts that are split -----------------------------------------------------------------------

LEAD = {"role": "TECH_LEAD", "agent_id": "agent-1", "codex_thread_id": ""}


def whole(task_id="split_task", **changes):
    value = contract(task_id, assigned_agent=dict(LEAD), task_type="PLAN", allowed_paths=["src/app/", "src/lib/"],
                     tool_permissions__filesystem="read-only", tool_permissions__mcp_tools=[],
                     rollback__strategy="worktree_drop", **changes)
    value["inputs"]["artifacts"][0]["name"] = "output_schema.tech_lead"
    return value


def part(task_id, path, test_cmd="scripts/test.sh", **changes):
    return contract(task_id, allowed_paths=[path],
                    acceptance_tests=[{"name": "unit", "cmd": test_cmd, "must_pass": True}], **changes)


def turns(*given, thread="thread"):
    return {"thread_id": thread, "turns": [{"ops": ops, "output": output} for ops, output in given]}


def plan_script(parts, work, task_id="split_task", ops=()):
    """`work`: turns of each part by its id."""
    tasks = {task_id: turns((list(ops), reply(task_id, contracts=parts)), thread="thread-lead")}
    for name, given in work.items():
        tasks[name] = turns(*given, thread="thread-" + name)
    return {"format": "cortex.replay-script.v1", "tasks": tasks}


# --- an agent that plans and one that works, both shell scripts ------------------------------------

PLAIN_WORKER = """#!/bin/sh
cat > /dev/null
echo '/* by a program */' >> src/app/main.c
echo '%s'
"""


def planned(**changes):
    return contract(**{"task_id": "planned_task", **changes})


def exec_runner(agent, *words):
    return {"kind": "exec", "argv": ["sh", agent, *words], "provides": ["codex"]}


def with_planner(folder, planner, roles=True, **config):
    """A repository with a planner and a worker, both shell scripts of the baseline.  `planner` is what
    the planner does; {output} is its first argument."""
    pinned = {"argv": ["sh"], "sha256": sha256(pathlib.Path("/bin/sh").resolve().read_bytes())}
    repo, _ = with_policies(
        folder, runner={"mcp_only": False, "default": "worker"},
        runners={"worker": exec_runner("scripts/work.sh"),
                 "planner": exec_runner("scripts/plan.sh", "{output}")},
        integrations={"worker": pinned, "planner": pinned},
        **({"roles": {"PM": "planner"}} if roles else {}), **config)
    repo.write("scripts/work.sh", PLAIN_WORKER % json.dumps(reply("planned_task")), True)
    repo.write("scripts/plan.sh", "#!/bin/sh\n" + planner, True)
    repo.commit("agents")
    return repo


def says(value, before=""):
    """A planner that answers `value` behind `before`."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{before}cat > \"$TMPDIR/prompt\"\ncat > \"$1\" <<'REPLY'\n{text}\nREPLY\n"
