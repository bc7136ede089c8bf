#!/usr/bin/env python3
"""`cortex contract lint|explain|resolve|hash`, `cortex gate policy` and `cortex init` in a repository
from outside: answers, exit codes, messages, and contracts that mean harm.

    test_contract.py [PROGRAM] [WORDS..]     PROGRAM defaults to $CORTEX_BIN
"""
import copy
import hashlib
import json
import os
import pathlib
import pty
import subprocess
import xml.dom.minidom

from kit import BIN, TESTS, Folder, check, main, run, test
from run_kit import Repo, clean_env, golden

BASE = golden("success", "contract.input.json")


def changed(**members):
    value = copy.deepcopy(BASE)
    value.update(members)
    return value


def ask(repo, code, *words, env=None):
    done = repo.cortex(*words, env=env)
    check(done.returncode == code, words, "exit", done.returncode, "expected", code,
          done.stdout.decode()[:1500], done.stderr.decode()[:1500])
    return done.stdout.decode()


def lint(repo, contract, code=4):
    text = contract if isinstance(contract, str) else json.dumps(contract)
    return json.loads(ask(repo, code, "contract", "lint", repo.keep("c.json", text), "--json"))


def rules(answer):
    return {error["rule"] for error in answer["errors"]}


# --- lint ---------------------------------------------------------------------------------------------


@test
def a_contract_that_holds():
    with Folder() as folder:
        repo = Repo(folder)
        check(lint(repo, BASE, 0) == {"valid": True, "errors": []})
        check("allowed" in ask(repo, 0, "contract", "lint", repo.base / "c.json"))
        # From a folder below, and from elsewhere with --repo.
        done = run(BIN, "contract", "lint", repo.base / "c.json", env=clean_env(),
                   cwd=repo.path / "src")
        check(done.returncode == 0, done.stderr)
        done = run(BIN, "contract", "lint", repo.base / "c.json", "--repo", repo.path,
                   env=clean_env(), cwd="/")
        check(done.returncode == 0, done.stderr)


@test
def every_example_holds():
    with Folder() as folder:
        repo = Repo(folder)
        examples = sorted((TESTS.parent / "contracts/examples").glob("*.json"))
        check(len(examples) >= 3)
        for path in examples:
            ask(repo, 0, "contract", "lint", path)
            ask(repo, 0, "gate", "policy", path)


@test
def findings_name_rule_place_and_remedy():
    with Folder() as folder:
        repo = Repo(folder)
        answer = lint(repo, changed(allowed_paths=["src/app/", "src/*"], task_id=".hidden_x"))
        check(rules(answer) == {"K02", "K14"}, answer)
        found = {error["rule"]: error for error in answer["errors"]}
        check(found["K02"]["path"] == "/allowed_paths/1", found)
        check("wildcard" in found["K02"]["message"], found)
        text = ask(repo, 4, "contract", "lint", repo.base / "c.json")
        check("K02" in text and "/allowed_paths/1" in text, text)


@test
def answers_as_sarif_and_junit():
    with Folder() as folder:
        repo = Repo(folder)
        path = repo.keep("c.json", json.dumps(changed(allowed_paths=["*"])))
        sarif = json.loads(ask(repo, 4, "contract", "lint", path, "--format", "sarif"))
        check(sarif["version"] == "2.1.0")
        found = [r["ruleId"] for r in sarif["runs"][0]["results"]]
        check(any("K02" in rule for rule in found), found)
        ask(repo, 4, "contract", "lint", path, "--format", "junit", "--output", repo.base / "out.xml")
        tree = xml.dom.minidom.parse(str(repo.base / "out.xml"))
        check(tree.getElementsByTagName("failure"))


@test
def an_unreadable_contract_exits_with_3_or_2():
    with Folder() as folder:
        repo = Repo(folder)
        ask(repo, 3, "contract", "lint", repo.base / "absent.json")
        ask(repo, 3, "contract", "lint", repo.path)
        ask(repo, 2, "contract", "lint")
        ask(repo, 2, "contract", "lint", "a", "b")
        ask(repo, 2, "contract", "lint", repo.base / "absent.json", "--format", "yaml")
        ask(repo, 2, "contract", "lint", "--odd", "a")
        path = repo.keep("c.json", json.dumps(BASE))
        outside = run(BIN, "contract", "lint", path, "--json", env=clean_env(), cwd="/")
        check(outside.returncode == 3, outside)
        check("error" in json.loads(outside.stdout), outside.stdout)
        ask(repo, 2, "contract", "lint", path,
            env={"CORTEXPILOT_RUNTIME_ROOT": "relative/root"})


@test
def a_contract_longer_than_a_mebibyte_is_refused_or_unread():
    with Folder() as folder:
        repo = Repo(folder)
        path = repo.keep("c.json", json.dumps(BASE) + " " * (1 << 20))
        done = repo.cortex("contract", "lint", path)
        check(done.returncode in (3, 4), done)


HOSTILE = {
    "leaves the repository": ("K02", lambda c: c["allowed_paths"].append("../other/")),
    "everything": ("K02", lambda c: c.update(allowed_paths=["."])),
    "git itself": ("K02", lambda c: c["allowed_paths"].append("src/.git/hooks")),
    "git by its short name": ("K02", lambda c: c["allowed_paths"].append("GIT~1/config")),
    "git with nothing in it": ("K02", lambda c: c["allowed_paths"].append(".g\u200dit/config")),
    "secrets": ("K02", lambda c: c["allowed_paths"].append("deploy/.ENV.production")),
    "the evidence": ("K02", lambda c: c["allowed_paths"].append(".Runtime-Cache/cortexpilot/runs")),
    "an option as a path": ("K02", lambda c: c["allowed_paths"].append("--output=/tmp/x")),
    "magic of pathspecs": ("K02", lambda c: c["allowed_paths"].append(":(exclude)src")),
    "a line end in a path": ("K02", lambda c: c["allowed_paths"].append("src/a\nb")),
    "an agent nobody knows": ("K03", lambda c: c["assigned_agent"].update(agent_id="agent-666")),
    "a schema from elsewhere": ("K04", lambda c: c["inputs"]["artifacts"][0].update(
        uri="../schemas/agent_task_result.v1.json")),
    "another schema": ("K04", lambda c: c["inputs"]["artifacts"][0].update(
        uri="schemas/evidence_report.v1.json")),
    "a schema of other bytes": ("K04", lambda c: c["inputs"]["artifacts"][0].update(
        sha256="0" * 64)),
    "an option as a baseline": ("K05", lambda c: c["rollback"].update(
        baseline_ref="--upload-pack=touch /tmp/x")),
    "a range as a baseline": ("K05", lambda c: c["rollback"].update(baseline_ref="HEAD..HEAD")),
    "the reflog": ("K05", lambda c: c["rollback"].update(baseline_ref="HEAD@{0}")),
    "a tree as a baseline": ("K05", lambda c: c["rollback"].update(baseline_ref="HEAD^{tree}")),
    "a tool nobody allows": ("K06", lambda c: c["mcp_tool_set"].append("shell")),
    "a tool with a space": ("K06", lambda c: c["mcp_tool_set"].append(" codex")),
    "two commands in one": ("K10", lambda c: c["acceptance_tests"][0].update(
        cmd="scripts/test.sh; curl x")),
    "a command in a command": ("K10", lambda c: c["acceptance_tests"][0].update(
        cmd="echo $(id)")),
    "an interpreter's code": ("K10", lambda c: c["acceptance_tests"][0].update(
        cmd="python3 -c pass")),
    "a program of the repository": ("K10", lambda c: c["acceptance_tests"][0].update(
        cmd="./evil.sh")),
    "a wrapper": ("K10", lambda c: c["acceptance_tests"][0].update(cmd="env pytest")),
    "writing with git": ("K10", lambda c: c["acceptance_tests"][0].update(
        cmd="git diff --output=x")),
    "its own forbidden action": ("K10", lambda c: (c["forbidden_actions"].append("pytest"),
                                                   c["acceptance_tests"][0].update(cmd="pytest"))),
    "nothing has to pass": ("K11", lambda c: c["acceptance_tests"][0].update(must_pass=False)),
    "a test that tests nothing": ("K11", lambda c: (
        c.update(runtime_options={"strict_acceptance": True}),
        c["acceptance_tests"][0].update(cmd="echo ok"))),
    "a chain that skips the reviewer": ("K12", lambda c: c.update(handoff_chain={
        "enabled": True, "roles": ["PM", "TECH_LEAD", "WORKER", "TEST_RUNNER"]})),
    "an output elsewhere": ("K13", lambda c: c["required_outputs"].append(
        {"name": "scripts/test.sh", "type": "file", "acceptance": "x"})),
    "a folder as a task": ("K14", lambda c: c.update(task_id="../../etc/cron")),
    "an artifact by a link": ("K15", lambda c: c["inputs"]["artifacts"].append(
        {"name": "n", "uri": "link", "sha256": hashlib.sha256(b"demo\n").hexdigest()})),
    "an artifact from the web": ("K15", lambda c: c["inputs"]["artifacts"].append(
        {"name": "n", "uri": "https://example.invalid/x", "sha256": "0" * 64})),
    "a file of the machine": ("K15", lambda c: c["inputs"]["artifacts"].append(
        {"name": "n", "uri": "/etc/hostname", "sha256": "0" * 64})),
    "a member nobody knows": ("K01", lambda c: c.update(sudo=True)),
    "more rights than there are": ("K01", lambda c: c["tool_permissions"].update(shell="root")),
}


@test
def hostile_contracts_are_refused():
    with Folder() as folder:
        repo = Repo(folder)
        os.symlink("README.md", repo.path / "link")
        repo.commit("a link")
        before = repo.git("status", "--porcelain")
        for name, (rule, harm) in HOSTILE.items():
            contract = copy.deepcopy(BASE)
            contract["rollback"]["baseline_ref"] = "HEAD"
            harm(contract)
            found = rules(lint(repo, contract))
            check(rule in found, name, found)
            # What is refused in the lint is refused in a run, before anything is made.
        check(repo.git("status", "--porcelain") == before)
        check(not (repo.path / ".runtime-cache").exists(), "a lint has made something")


@test
def files_that_are_not_contracts_are_refused():
    with Folder() as folder:
        repo = Repo(folder)
        whole = json.dumps(BASE)
        for text in ("", "{", whole[:-1], whole + "{}", "\ufeff" + whole, "[" * 200 + "]" * 200,
                     whole.replace('"task_id"', '"task_id":"other_task","task_id"', 1),
                     whole.replace(": 60,", ": NaN,"), whole.replace(": 60,", ": 1e999,"), whole.replace("add a helper", "\\ud800")):
            check(rules(lint(repo, text)) == {"K01"}, text[:60])


# --- explain, resolve, hash ---------------------------------------------------------------------------


@test
def resolve_fixes_the_baseline_and_the_role():
    with Folder() as folder:
        repo = Repo(folder)
        path = repo.keep("c.json", json.dumps(BASE))
        resolved = json.loads(ask(repo, 0, "contract", "resolve", path))
        check(resolved["rollback"]["baseline_ref"] == repo.head())
        check(resolved["role_contract"]["identity"] == {"role": "WORKER", "agent_id": "agent-1"})
        check({k: v for k, v in resolved.items() if k not in ("role_contract", "rollback")} ==
              {k: v for k, v in BASE.items() if k != "rollback"})
        again = repo.keep("c2.json", json.dumps(resolved))
        check(json.loads(ask(repo, 0, "contract", "resolve", again)) == resolved)
        # Later commits do not move it.
        repo.write("later.txt", "x")
        repo.commit("later")
        check(json.loads(ask(repo, 0, "contract", "resolve", again))["rollback"] ==
              resolved["rollback"])
        bad = repo.keep("c3.json", json.dumps(changed(allowed_paths=["*"])))
        answer = json.loads(ask(repo, 4, "contract", "resolve", bad, "--json"))
        check(rules(answer) == {"K02"})


@test
def hash_is_of_the_bytes():
    with Folder() as folder:
        repo = Repo(folder)
        text = json.dumps(BASE, indent=3)
        path = repo.keep("c.json", text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        check(ask(repo, 0, "contract", "hash", path) == digest + "\n")
        check(json.loads(ask(repo, 0, "contract", "hash", path, "--json")) == {"sha256": digest})
        legacy = hashlib.sha256(json.dumps(BASE, sort_keys=True, ensure_ascii=False).encode())
        check(ask(repo, 0, "contract", "hash", "--legacy", path) == legacy.hexdigest() + "\n")
        # Needs no repository.
        done = run(BIN, "contract", "hash", path, env=clean_env(), cwd="/")
        check(done.returncode == 0, done.stderr)


@test
def explain_shows_the_effective_limits():
    with Folder() as folder:
        repo = Repo(folder)
        path = repo.keep("c.json", json.dumps(changed(allowed_paths=["src/"])))
        answer = json.loads(ask(repo, 0, "contract", "explain", path, "--json"))
        check(answer["valid"] and not answer["policy_allows"], answer)
        check(answer["allowed_paths"] == [
            {"files": 2, "path": "src/", "valid": True, "wide": True}], answer)
        check(answer["role_contract_summary"]["execution_authority"] == "task_contract")
        check(answer["baseline_commit"] == repo.head())
        text = ask(repo, 0, "contract", "explain", path)
        check("wide" in text and "scripts/test.sh" in text, text)
        ask(repo, 3, "contract", "explain", repo.keep("c.json", "{}"))
        online = changed()
        online["tool_permissions"].update(network="allow", network_hosts=["*.example.org:443"])
        path = repo.keep("c.json", json.dumps(online))
        check(json.loads(ask(repo, 0, "contract", "explain", path, "--json"))["network_hosts"] == ["*.example.org:443"])
        check("may reach    *.example.org:443, through the proxy" in ask(repo, 0, "contract", "explain", path))


# --- gate policy --------------------------------------------------------------------------------------


@test
def the_policy_gate_names_the_scopes_that_would_lift_it():
    with Folder() as folder:
        repo = Repo(folder)
        def gate(contract, code):
            path = repo.keep("c.json", json.dumps(contract))
            return json.loads(ask(repo, code, "gate", "policy", path, "--json"))
        check(gate(BASE, 0)["allow"])
        wide = gate(changed(allowed_paths=["src/", "docs"]), 4)
        check(wide["rules"] == ["wide_path"], wide)
        check(wide["violations"] == ["wide_path src/", "wide_path docs"], wide)
        check(wide["scopes"] == ["wide_path:src/", "wide_path:docs"], wide)
        more = changed()
        more["tool_permissions"].update(network="allow", shell="on-request")
        check(gate(more, 4)["scopes"] == ["permission:shell=on-request",
                                          "permission:network=allow"])
        more["tool_permissions"].update(filesystem="danger-full-access")  # no contract may say it
        check(gate(more, 4)["rules"] == ["K01"] and gate(more, 4)["scopes"] == [])
        never = changed(allowed_paths=["src/", ".env"])
        check(gate(never, 4)["scopes"] == [])
        check(gate(changed(task_id="x"), 4)["rules"] == ["K01"])


@test
def policies_are_those_of_the_baseline():
    with Folder() as folder:
        repo = Repo(folder)
        repo.cortex("init", "--json")
        repo.commit("policies")
        registry = repo.path / "policies/agent_registry.json"
        value = json.loads(registry.read_text())
        value["agents"] = [a for a in value["agents"] if a["role"] != "WORKER"]
        registry.write_text(json.dumps(value))
        contract = changed()
        contract["rollback"]["baseline_ref"] = "HEAD"
        contract["inputs"]["artifacts"][0]["sha256"] = hashlib.sha256(
            (repo.path / "schemas/agent_task_result.v1.json").read_bytes()).hexdigest()
        lint(repo, contract, 0)  # an edit nobody committed
        old = repo.head()
        repo.commit("no workers")
        check(rules(lint(repo, contract)) == {"K03"})
        contract["rollback"]["baseline_ref"] = old
        lint(repo, contract, 0)
        (repo.path / "policies/packs/high.json").unlink()
        repo.commit("half of the policies")
        contract["rollback"]["baseline_ref"] = "HEAD"
        answer = lint(repo, contract)
        check(rules(answer) == {"POLICY"} and answer["errors"][0]["path"] ==
              "policies/packs/high.json", answer)


# --- init ---------------------------------------------------------------------------------------------


def init(repo, code=0, *words, env=None, cwd=None):
    done = run(BIN, "init", "--json", *words, cwd=cwd or repo.path,
               env=clean_env(CORTEX_HOME=str(repo.home), **(env or {})))
    check(done.returncode == code, done)
    return json.loads(done.stdout)


@test
def init_prepares_a_repository_once():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        first = init(repo)
        check(first["home_made"] and first["gitignore"] == "ok", first)
        check(first["runtime_root"] == str(repo.root), first)
        check(repo.root.stat().st_mode & 0o777 == 0o700)
        check({p.name for p in repo.root.iterdir()} >=
              {"runs", "worktrees", "locks", "approvals", "active"})
        for name in first["policies"] + first["schemas"]:
            check((repo.path / name).read_bytes() == (TESTS.parent / name).read_bytes(), name)
        check(set(first["policies"] + first["schemas"]) < set(first["created"]))
        (repo.path / "policies/mcp_allowlist.json").write_text("mine\n")
        again = init(repo)
        check(again["created"] == [] and not again["home_made"], again)
        check((repo.path / "policies/mcp_allowlist.json").read_text() == "mine\n")
        (repo.path / "schemas/work_report.v1.json").unlink()
        check(init(repo)["created"] == ["schemas/work_report.v1.json"])


@test
def init_appends_to_gitignore_without_touching_the_rest():
    for before in (None, "", "*.o", "*.o\n"):
        with Folder() as folder:
            repo = Repo(folder, bare_home=True)
            path = repo.path / ".gitignore"
            path.unlink()
            if before is not None:
                path.write_text(before)
            check(init(repo)["gitignore"] == "added")
            text = path.read_text()
            check(text.startswith(before or "") and text.endswith(".runtime-cache/\n"), text)
            check(".runtime-cache" not in repo.git("status", "--porcelain"))
            check(init(repo)["gitignore"] == "ok" and path.read_text() == text)


@test
def init_follows_no_link():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        outside = repo.base / "outside"
        outside.mkdir()
        (outside / "ignore").write_text("theirs\n")
        (repo.path / ".gitignore").unlink()
        os.symlink(outside / "ignore", repo.path / ".gitignore")
        check(init(repo)["gitignore"] == "refused")
        check((outside / "ignore").read_text() == "theirs\n")
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        (repo.base / "outside").mkdir()
        os.symlink(repo.base / "outside", repo.path / "policies")
        init(repo, 3)
        check(list((repo.base / "outside").iterdir()) == [])


@test
def init_changes_the_repository_only_when_asked():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        answer = init(repo, 0, "--no-repo")
        check(set(answer) == {"home", "scheme"}, answer)
        check(repo.git("status", "--porcelain") == "")
        # Below a folder that git ignores.
        build = repo.path / ".runtime-cache/build"
        build.mkdir(parents=True)
        other = repo.base / "other-home"
        answer = init(repo, 0, "--home", other, cwd=build)
        check(set(answer) == {"home", "scheme"}, answer)
        # Nothing to do at all is said as before.
        init(repo, 1, "--no-repo")


def init_on_terminal(repo, reply, *words):
    """With standard input and error on a terminal, where a person types `reply`."""
    parent, child = pty.openpty()
    process = subprocess.Popen([BIN, "init", *words], stdin=child, stderr=child, cwd=repo.path,
                               stdout=subprocess.PIPE, env=clean_env(CORTEX_HOME=str(repo.home)))
    os.close(child)
    os.write(parent, reply)
    made = process.stdout.read()
    code = process.wait(timeout=60)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    return code, shown, made


@test
def init_shows_the_files_and_asks_on_a_terminal():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        clean = repo.git("status", "--porcelain")
        planned = init(repo, 0, "--dry-run")
        check(planned["dry_run"] and planned["home_made"], planned)
        for reply in (b"n\n", b"\n", b"yes, but\n", b"\x04"):
            code, shown, made = init_on_terminal(repo, reply)
            check(code == 1 and made == b"", reply, code, made)
            check(b"Write this? [y/N]" in shown and b"nothing was written" in shown, shown)
            check(not repo.home.exists() and not repo.root.exists(), "it wrote")
            check(repo.git("status", "--porcelain") == clean)
        for name in planned["created"]:
            check(name.encode() in shown, name, shown)
        check(str(repo.home).encode() in shown, shown)
        code, shown, made = init_on_terminal(repo, b"y\n")
        check(code == 0 and repo.home.exists(), code, shown)
        # A plan names exactly what is then made.
        check(sorted(line[5:] for line in made.decode().splitlines()[1:] if line.startswith("made "))
              == sorted(planned["created"]), made)
        # Where there is nothing to write, there is nothing to ask.
        code, shown, made = init_on_terminal(repo, b"")
        check(code == 0 and b"[y/N]" not in shown, shown)
        check(init(repo, 0, "--dry-run")["created"] == [])
        (repo.path / "policies/cortex.json").unlink()
        code, shown, made = init_on_terminal(repo, b"", "--yes")
        check(code == 0 and b"[y/N]" not in shown and b"made policies/cortex.json" in made, shown)


@test
def init_takes_another_runtime_root():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        away = repo.base / "away"
        answer = init(repo, env={"CORTEXPILOT_RUNTIME_ROOT": str(away)})
        check(answer["runtime_root"] == str(away) and (away / "runs").is_dir(), answer)
        inside = repo.path / "build/runs"
        answer = init(repo, env={"CORTEXPILOT_RUNTIME_ROOT": str(inside)})
        check(answer["gitignore"] == "added", answer)
        check("build" not in repo.git("status", "--porcelain"))
        contract = repo.keep("c.json", json.dumps(changed(allowed_paths=["build/runs/x"],
                                                          required_outputs=[])))
        done = repo.cortex("contract", "lint", contract, "--json",
                           env={"CORTEXPILOT_RUNTIME_ROOT": str(inside)})
        check(rules(json.loads(done.stdout)) == {"K02"}, done.stdout)
        init(repo, 2, env={"CORTEXPILOT_RUNTIME_ROOT": "relative"})


@test
def the_manual_knows_these_commands():
    with Folder() as folder:
        for words in (["contract", "lint"], ["contract", "explain"], ["contract", "resolve"],
                      ["contract", "hash"], ["gate", "policy"], ["init"]):
            done = run(BIN, *words, "--help", env=clean_env(), cwd=folder)
            check(done.returncode == 0 and " ".join(["cortex", *words]) in done.stdout.decode(),
                  words, done)


if __name__ == "__main__":
    main()
