#!/usr/bin/env python3
"""Agents that attack: every row of tests/attack is carried out by a governed run, and has to come to
what the row says.  tests/attack/README.md has the format.

    test_attack.py [PROGRAM] [WORD..]     WORDs choose rows by their names

Skipped where this machine cannot give a full sandbox: a run would be refused.  With sanitizers only
some of the rows are carried out.
"""
import base64
import copy
import hashlib
import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import kit
from kit import BIN, TESTS, Folder, check, run

WORKERS = 4
DEADLINE_S = 60
SAMPLE = 4  # with sanitizers one row of so many
ATTACKS = TESTS / "attack"
SECRET = "s3cret-of-the-user"
MAIN_C = "int main(void)\n{\n\treturn 0;\n}\n"
FILES = {
    "README.md": "demo\n",
    "docs/allowed.md": "text\n",
    "docs/other.md": "text\n",
    "src/app/main.c": MAIN_C,
    "src/app/util.c": "int util(void)\n{\n\treturn 1;\n}\n",
    "src/lib/a.c": "int a(void)\n{\n\treturn 1;\n}\n",
    "src/lib/big.c": "".join(f"int big_{i}(void)\n{{\n\treturn {i};\n}}\n" for i in range(20)),
    ".gitignore": ".runtime-cache/\nbuild/\n",
    "scripts/test.sh": "#!/bin/sh\n"
                       "grep -q 'return 0' src/app/main.c || exit 1\n"
                       "test ! -e src/app/check.sh || exec sh src/app/check.sh\n",
    # The agent does what the contract's text says, as one that was taken over would.
    "scripts/agent.sh": "#!/bin/sh\n"
                        "tr -d '\\n' | sed -n 's/.*ATTACK<\\([A-Za-z0-9+/=]*\\)>.*/\\1/p' |\n"
                        "    base64 -d > $TMPDIR/attack.sh\n"
                        "echo more >> docs/allowed.md\n"
                        "sh $TMPDIR/attack.sh 3>&1 >/dev/null\n"
                        "printf '{\"task_id\":\"%s\",\"status\":\"SUCCESS\",\"summary\":\"done\",'"
                        " $CORTEX_TASK_ID\n"
                        "echo '\"evidence_refs\":{},\"failure\":null}'\n",
}
SCRIPTS = ("scripts/test.sh", "scripts/agent.sh")
SCHEMA = "schemas/agent_task_result.v1.json"
ENV = {"PATH": os.environ["PATH"], "AGENT_SECRET": SECRET, "HOME": "/nonexistent",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}


def git(repo, *words):
    done = run("git", "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c",
               "commit.gpgSign=false", *words, cwd=repo, env=ENV)
    check(done.returncode == 0, words, done.stderr.decode())
    return done.stdout.decode()


def make_template(repo):
    repo.mkdir()
    for name, text in FILES.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    for name in SCRIPTS:
        (repo / name).chmod(0o755)
    git(repo, "init", "-q", "-b", "main")
    done = run(BIN, "init", "--segment-size", "64K", "--json", repo.parent / "home", cwd=repo,
               env=ENV)
    check(done.returncode == 0, done.stderr.decode())
    config = json.loads((repo / "policies/cortex.json").read_text())
    config["runner"]["mcp_only"] = False
    config["runners"]["attacker"] = {"kind": "exec", "argv": ["sh", "scripts/agent.sh"]}
    shell = hashlib.sha256(pathlib.Path("/usr/bin/sh").read_bytes()).hexdigest()
    for name in ("attacker", "codex"):
        config["integrations"][name] = {"argv": ["sh"], "sha256": shell}
    (repo / "policies/cortex.json").write_text(json.dumps(config, indent=2) + "\n")
    shutil.rmtree(repo / ".runtime-cache")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "base")


def base_contract(repo):
    return {
        "task_id": "attack_on_the_run",
        "task_type": "IMPLEMENT",
        "owner_agent": {"role": "TECH_LEAD", "agent_id": "agent-1", "codex_thread_id": ""},
        "assigned_agent": {"role": "WORKER", "agent_id": "agent-1", "codex_thread_id": ""},
        "inputs": {"spec": "change src/app",
                   "artifacts": [{"name": "output_schema.worker", "uri": SCHEMA, "sha256":
                                  hashlib.sha256((repo / SCHEMA).read_bytes()).hexdigest()}]},
        "required_outputs": [{"name": "patch.diff", "type": "patch", "acceptance": "in scope"}],
        "allowed_paths": ["src/app/", "docs/allowed.md"],
        "forbidden_actions": ["rm -rf"],
        "acceptance_tests": [{"name": "unit", "cmd": "scripts/test.sh", "must_pass": True}],
        "tool_permissions": {"filesystem": "workspace-write", "shell": "never", "network": "deny",
                             "mcp_tools": ["codex"]},
        "mcp_tool_set": ["codex"],
        "policy_pack": "medium",
        "timeout_retry": {"timeout_sec": 120, "max_retries": 0, "retry_backoff_sec": 0},
        "rollback": {"strategy": "worktree_drop", "baseline_ref": "HEAD"},
        "evidence_links": [],
        "log_refs": {"run_id": "", "paths": {}},
    }


# --- what must not change ---------------------------------------------------------------------------

def facts(path):
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        return "link", os.readlink(path)
    if stat.S_ISDIR(info.st_mode):
        return "folder", info.st_mode
    return info.st_mode, hashlib.sha256(path.read_bytes()).hexdigest()


def snapshot(repo):
    """The user's files and references, without objects and the references that keep evidence."""
    found = {}
    for top, folders, files in os.walk(repo):
        here = pathlib.Path(top)
        inside = here.relative_to(repo)
        if inside == pathlib.Path("."):
            folders[:] = [name for name in folders if name != ".runtime-cache"]
        if inside == pathlib.Path(".git"):
            # Folders that git makes when it first needs them, and our lock, are no change.
            folders[:] = [name for name in folders if name not in ("objects", "worktrees", "logs")]
            files = [name for name in files if name not in ("cortex-worktrees.lock", "packed-refs")]
        if inside == pathlib.Path(".git/refs"):
            folders[:] = [name for name in folders if name != "cortex"]
        if str(inside).startswith(".git/refs/heads/cortex"):
            folders[:] = []
            check(not files, "a branch was left behind:", inside, files)
            continue
        for name in files + [one for one in folders if not str(inside).startswith(".git")]:
            found[str(inside / name)] = facts(here / name)
    for name in ("hooks", "info"):
        found[name] = sorted(os.listdir(repo / ".git" / name)) if (repo / ".git" / name).exists() \
            else []
    found["refs"] = [line for line in git(repo, "for-each-ref").splitlines()
                     if "refs/cortex/" not in line]
    found["worktrees"] = git(repo, "worktree", "list").count("\n")
    return found


def compare(before, after):
    changed = sorted(name for name in before.keys() | after.keys()
                     if before.get(name) != after.get(name))
    check(not changed, "the user's repository changed:", changed)


def everything(folder):
    for top, _, files in os.walk(folder):
        for name in files:
            yield os.path.join(top, name)


def gone(marker):
    """Whether no process has `marker` in its command line, soon."""
    for _ in range(600):
        found = False
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                found = found or marker.encode() in path.read_bytes()
            except OSError:
                pass
        if not found:
            return True
        time.sleep(0.05)
    return False


# --- one row ----------------------------------------------------------------------------------------

class Place:
    """A repository of its own, files outside of it, and a port on which a server listens."""

    def __init__(self, folder, template, port, number):
        self.folder = folder
        self.repo = folder / "repo"
        self.port = port
        self.mark = f"1{os.getpid()}.{number}25"
        self.env = {**ENV, "CORTEX_HOME": str(folder / "home")}
        shutil.copytree(template, self.repo, symlinks=True)
        shutil.copytree(template.parent / "home", folder / "home")
        (folder / "secret").write_text(SECRET)

    def fill(self, text):
        for name, value in (("$MARK", self.mark), ("$PORT", str(self.port)),
                            ("$CANARY", f"touch {self.folder}/started"),
                            ("$OUTSIDE", str(self.folder)), ("$REPO", str(self.repo))):
            text = text.replace(name, value)
        return text


def reply(row, task_id):
    output = row.get("output", {"task_id": "$TASK", "status": "SUCCESS", "summary": "done",
                                "evidence_refs": {}, "failure": None})
    return json.loads(json.dumps(output).replace("$TASK", task_id))


def prepare_script(row, place, contract):
    del place
    script = {"format": "cortex.replay-script.v1", "thread_id": "thread-attack",
              "turns": [{"ops": row["ops"], "output": reply(row, contract["task_id"])}]}
    return script, []


def prepare_tested(row, place, contract):
    ops = [["write", "src/app/check.sh", place.fill(row["script"]) + "\n"]]
    return prepare_script({"ops": ops}, place, contract)


def prepare_program(row, place, contract):
    text = base64.b64encode(place.fill(row["script"]).encode()).decode()
    contract["inputs"]["spec"] = f"ATTACK<{text}>"
    return None, ["--runner", "attacker"]


def prepare_git(row, place, contract):
    for words in row.get("setup", []):
        git(place.repo, *words)
    return prepare_program(row, place, contract)


def prepare_contract(row, place, contract):
    for pointer, value in row.get("set", {}).items():
        *path, last = pointer.split("/")[1:]
        at = contract
        for name in path:
            at = at[int(name)] if isinstance(at, list) else at[name]
        at[int(last) if isinstance(at, list) else last] = value
    return prepare_script({"ops": [["append", "src/app/main.c", "/* x */\n"]]}, place, contract)


def expect_rules(row, outcome):
    said = [v if isinstance(v, str) else json.dumps(v) for v in outcome["violations"]]
    for rule in row["expect"].get("rules", []):
        check(any(one == rule or one.startswith((rule + " ", rule + ":")) for one in said),
              "expected", rule, "among", said)
    for words in row["expect"].get("said", []):
        check(any(words in one for one in said), "expected", words, "in one of", said)


def expect_findings(row, place, outcome):
    if "findings" not in row:
        return
    commit = outcome["final_commit"]
    done = run("git", "cat-file", "blob", f"{commit}:src/app/findings.txt", cwd=place.repo, env=ENV)
    found = done.stdout.decode() if done.returncode == 0 else ""
    check(found == row["findings"], "found", repr(found), "expected", repr(row["findings"]))


def expect_evidence(row, place, outcome):
    bundle = pathlib.Path(outcome["bundle"])
    done = run(BIN, "run", "verify", bundle, "--json", cwd=place.repo, env=place.env)
    verdict = json.loads(done.stdout)
    check(done.returncode == 0 and verdict["verdict"] == "holds", done.stdout)
    status = json.loads((bundle / "manifest.json").read_text())["status"]
    check(status == ("FAILURE" if outcome["failed_gate"] else "SUCCESS"), status)
    for word in filter(None, (row.get("never"), SECRET)):
        for path in everything(bundle):
            with open(path, "rb") as file:
                check(word.encode() not in file.read(), word, "is in", path)


def expect_tidy(place):
    root = place.repo / ".runtime-cache/cortexpilot"
    for name in ("worktrees", "active/runs"):
        left = os.listdir(root / name) if (root / name).exists() else []
        check(not left, name, "holds", left)
    locks = [name for name in os.listdir(root / "locks") if name.endswith(".lock")] \
        if (root / "locks").exists() else []
    check(not locks, "locks left:", locks)


def expect_patch(row, outcome):
    if "patch" in row:
        patch = (pathlib.Path(outcome["bundle"]) / "patch.diff").read_text()
        check(row["patch"] in patch.splitlines(), patch)


def an_honest_run_succeeds(place, path):
    """In the same repository, with the same data directory, merged."""
    contract = base_contract(place.repo)
    contract["task_id"] = "honest_run"
    contract["allowed_paths"] = [path]
    script = {"format": "cortex.replay-script.v1", "thread_id": "thread-honest",
              "turns": [{"ops": [["append", path, "/* honest */\n"]],
                         "output": reply({}, contract["task_id"])}]}
    (place.folder / "honest.json").write_text(json.dumps(contract))
    (place.folder / "honest-script.json").write_text(json.dumps(script))
    done = run(BIN, "run", place.folder / "honest.json", "--json", "--script",
               place.folder / "honest-script.json", cwd=place.repo, env=place.env)
    check(done.returncode == 0, "an honest run:", done.stdout, done.stderr)
    check("/* honest */" in (place.repo / path).read_text(), "it was not merged")


def nothing_is_left_to_clean(place):
    done = run(BIN, "run", "cleanup", "--json", cwd=place.repo, env=place.env)
    check(done.returncode == 0, "cleanup:", done.stdout, done.stderr)
    git(place.repo, "status", "--porcelain")


def carry_out(row, place, words):
    argv = [BIN, "run", place.folder / "contract.json", "--no-merge", "--json", *words]
    if "during" not in row:
        return run(*argv, cwd=place.repo, env=place.env)
    with subprocess.Popen(argv, cwd=place.repo, env=place.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        trees = place.repo / ".runtime-cache/cortexpilot/worktrees"
        while process.poll() is None and not list(trees.rglob(row["during"])):
            time.sleep(0.02)
        try:
            check(process.poll() is None, "it ended before the honest run began")
            an_honest_run_succeeds(place, "docs/other.md")
        finally:
            out, err = process.communicate(timeout=kit.TIMEOUT_S)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def attack(kind, row, place):
    contract = base_contract(place.repo)
    contract["timeout_retry"]["timeout_sec"] = row.get("timeout_sec", 120)
    script, words = globals()["prepare_" + kind](copy.deepcopy(row), place, contract)
    (place.folder / "contract.json").write_text(json.dumps(contract))
    if script is not None:
        (place.folder / "script.json").write_text(json.dumps(script))
        words = ["--script", place.folder / "script.json"]
    for name, value in row.get("config", {}).items():
        git(place.repo, "config", name, value)
    before = snapshot(place.repo)
    before_s = time.monotonic()
    done = carry_out(row, place, words)
    check(time.monotonic() - before_s < DEADLINE_S, "it took longer than", DEADLINE_S, "s")
    check(done.stdout, done.returncode, done.stderr.decode())
    outcome = json.loads(done.stdout)
    check(not (place.folder / "canary").exists(), "a program of the agent's ran outside of the sandbox")
    if "during" not in row:
        compare(before, snapshot(place.repo))
    git(place.repo, "fsck", "--connectivity-only")
    check("$MARK" not in row.get("script", "") or gone(place.mark), "a process outlived the run")
    expected = row["expect"]
    check("failed_gate" in outcome, outcome)
    gates = expected["gate"] if isinstance(expected["gate"], list) else [expected["gate"]]
    check(outcome["failed_gate"] in gates, "gate", outcome["failed_gate"], "expected",
          expected["gate"], outcome["reason"], outcome["violations"])
    check(done.returncode == (4 if outcome["failed_gate"] else 0), done.returncode)
    expect_rules(row, outcome)
    expect_findings(row, place, outcome)
    if outcome.get("bundle"):
        expect_evidence(row, place, outcome)
    check(not os.path.exists("/tmp/evil"), "/tmp/evil was written")
    check((place.folder / "secret").read_text() == SECRET, "the user's file was written")
    check(not (place.folder / "started").exists(), "a program of the agent ran outside of the sandbox")
    expect_tidy(place)
    expect_patch(row, outcome)
    if row.get("then"):
        an_honest_run_succeeds(place, "src/app/main.c")
        nothing_is_left_to_clean(place)


# --- all of them --------------------------------------------------------------------------------------

def rows():
    for path in sorted(ATTACKS.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if "prepare_" + path.stem in globals():
            for row in data["rows"]:
                yield path.stem, row


def has_sandbox():
    done = run(kit.sibling("cortex-box"), BIN)
    answer = json.loads(done.stdout)["box"]
    return answer["mode"] == "full", answer.get("missing")


def main():
    chosen = [(kind, row) for kind, row in rows()
              if not kit.arguments or any(word in f"{kind}:{row['name']}" for word in kit.arguments)]
    if os.environ.get("CX_SANITIZE") and not kit.arguments:
        chosen = chosen[::SAMPLE]  # slow, and what it looks for is in every row
    full, missing = has_sandbox()
    if not full:
        kit.skip_all(f"this machine has no full sandbox: {missing}", len(chosen))
    failed = 0
    with Folder("cortex-attack-") as folder, \
            socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(WORKERS) as pool:
        make_template(folder / "template")
        port = server.getsockname()[1]

        def one(job):
            number, (kind, row) = job
            try:
                (folder / str(number)).mkdir()
                attack(kind, row, Place(folder / str(number), folder / "template", port, number))
                return None
            except (AssertionError, OSError, ValueError, KeyError,
                    subprocess.SubprocessError) as problem:
                return f"FAIL {kind}:{row['name']}: {type(problem).__name__} {problem}"
            finally:
                kit.remove(folder / str(number))

        for problem in pool.map(one, enumerate(chosen)):
            if problem is not None:
                print(problem)
                sys.stdout.flush()
                failed += 1
    kit.finish(len(chosen) - failed, failed)


if __name__ == "__main__":
    main()
