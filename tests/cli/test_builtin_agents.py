#!/usr/bin/env python3
"""The agents that are built in: claude, codex, gemini.

Their programs are stubs that check how they were started and print recorded shapes.
Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib

from agent_records import claude, codex, gemini
from kit import Folder, check, main, test
from run_kit import Repo, approve, contract, fails_at, payloads, reply, sandboxed, with_policies

WORK = "echo '/* by %s */' >> src/app/main.c\n"
STUBS = {
    "claude": (claude, ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode",
                        "bypassPermissions", "--strict-mcp-config"], "ANTHROPIC_API_KEY"),
    "codex": (codex, ["exec", "--json"], "CODEX_API_KEY"),
    "gemini": (gemini, ["--output-format", "stream-json", "--approval-mode", "yolo",
                        "--skip-trust"], "GEMINI_API_KEY"),
}


def stub(name):
    """Fails with what was wrong unless it is started as the real one has to be."""
    records, argv, key = STUBS[name]
    lines = "\n".join(json.dumps(record) for record in records(reply()))
    test = " ".join(argv)
    more = ""
    if name == "codex":
        more = ("while [ $# -gt 0 ]; do [ \"$1\" = --output-last-message ] && out=$2; "
                "[ \"$1\" = --output-schema ] && test -s \"$2\" || true; shift; done\n"
                "printf '%%s' '%s' > \"$out\"\n" % json.dumps(reply()))
    return ("#!/bin/sh\nfor word in %s; do [ \"$1\" = \"$word\" ] || { echo \"got $1, not $word\" >&2;"
            " exit 9; }; shift; done\n[ \"$%s\" = the-login ] || { echo no login >&2; exit 8; }\n"
            "[ -z \"$OTHER_SECRET\" ] || exit 7\ngrep -q '<<<CONTRACT>>>' || exit 6\n%s%s"
            "cat <<'END'\n%s\nEND\n" % (test, key, more, WORK % name, lines))


def prepared(folder, *names, full=True):
    """(repository, key) with stubs in a trusted folder, which `runner add` pins."""
    programs = pathlib.Path(folder) / "programs"
    programs.mkdir(mode=0o755)
    for name in names:
        (programs / name).write_text(stub(name))
        (programs / name).chmod(0o755)
    more = {"trusted_uid": os.getuid()} if os.getuid() else {}
    repo, key = with_policies(folder, read_only=[str(programs.resolve())],
                              trusted_dirs=[str(programs.resolve()), "/usr/bin", "/bin"], **more)
    for name in names:
        done = repo.cortex("runner", "add", name, *(["--full"] if full else []))
        check(done.returncode == 0, done.stderr)
        check(STUBS[name][2] in done.stdout.decode() or name == "codex", done.stdout)
    if names:
        repo.commit("agents")
    return repo, key


@sandboxed
def a_built_in_agent_works_by_its_name():
    for name, (_, _, key_name) in STUBS.items():
        with Folder() as folder:
            repo, key = prepared(folder, name)
            value = contract(tool_permissions__network="allow")
            approve(repo, key, value, "permission:network=allow")
            done, answer = repo.run(value, None, "--agent", name,
                                    env={key_name: "the-login", "OTHER_SECRET": "x"})
            check(done.returncode == 0, name, answer, done.stderr)
            check("by " + name in repo.git("show", "HEAD:src/app/main.c"), name)
            events = repo.events(answer)
            check(payloads(events, "RUNNER_FINISHED")[0]["session"]["format"] == name, name)
            check(payloads(events, "TOOL_INVOCATION"), name)
            manifest = json.loads((pathlib.Path(answer["bundle"]) / "manifest.json").read_text())
            check(manifest["runner"] == {"name": "exec", "profile": name, "mcp_only": False},
                  manifest["runner"])
            check(repo.verify(answer).returncode == 0)


@sandboxed
def the_weaker_plane_is_said():
    with Folder() as folder:
        repo, key = prepared(folder, "claude")
        value = contract(tool_permissions__network="allow")
        approve(repo, key, value, "permission:network=allow")
        done = repo.cortex("run", repo.keep("contract.json", value), "--agent", "claude",
                           env={"ANTHROPIC_API_KEY": "the-login"})
        check(done.returncode == 0 and b"plane     exec (claude), no MCP" in done.stdout, done)


@test
def init_says_that_mcp_is_the_default():
    with Folder() as folder:
        repo = Repo(folder)
        done = repo.cortex("init")
        check(done.returncode == 0 and b"runner.mcp_only is true" in done.stdout, done)


@sandboxed
def without_a_login_the_agent_says_so():
    with Folder() as folder:
        repo, key = prepared(folder, "claude")
        value = contract(tool_permissions__network="allow")
        approve(repo, key, value, "permission:network=allow")
        done, answer = repo.run(value, None, "--agent", "claude")
        check(done.returncode == 4, done)
        fails_at(answer, "runner", "failed")
        check("no login" in answer["hint"], answer)


@sandboxed
def a_program_that_changed_is_rejected():
    with Folder() as folder:
        repo, _ = prepared(folder, "claude")
        with open(pathlib.Path(folder) / "programs/claude", "a", encoding="utf-8") as out:
            out.write("# another\n")
        done, answer = repo.run(contract(), None, "--agent", "claude")
        check(done.returncode == 4 and answer["failed_gate"] == "integrated", answer)


@sandboxed
def mcp_only_keeps_it_from_full_runs():
    with Folder() as folder:
        repo, key = prepared(folder, "claude", full=False)
        value = contract(tool_permissions__network="allow")
        approve(repo, key, value, "permission:network=allow")
        done, answer = repo.run(value, None, "--agent", "claude", env={"ANTHROPIC_API_KEY": "x"})
        check(done.returncode != 0 and "diagnostic" in json.dumps(answer) + str(done.stderr), answer)
        done, answer = repo.run(value, None, "--agent", "claude", "--diagnostic",
                                env={"ANTHROPIC_API_KEY": "the-login"})
        manifest = json.loads((pathlib.Path(answer["bundle"]) / "manifest.json").read_text())
        check(manifest["diagnostic"] is True and manifest["runner"]["mcp_only"] is True, manifest)
        check("by claude" not in repo.git("show", "HEAD:src/app/main.c"))


@sandboxed
def an_agent_that_is_not_pinned_is_a_usage_error():
    with Folder() as folder:
        repo, _ = with_policies(folder)
        for words, part in ((["--agent", "claude"], "cortex runner add claude"),
                            (["--agent", "cluade"], "not in policies"),
                            (["--agent", "claude", "--runner", "mcp"], "leave out --runner")):
            done = repo.cortex("run", repo.keep("c.json", contract()), *words)
            check(done.returncode == 2 and part in done.stderr.decode(), words, done)
        for words, part in ((["nobody"], "expected PROGRAM"), (["claude", "--kind", "mcp"], "as exec"),
                            (["gemini"], "cortex doctor")):
            done = repo.cortex("runner", "add", *words)
            check(done.returncode == 2 and part in done.stderr.decode(), words, done)


def examined(repo, path, **env):
    done = repo.cortex("doctor", "--json", env={"PATH": path, **env})
    return {one["name"]: one for one in json.loads(done.stdout)["checks"]
            if one["name"].startswith("agent-")}


@sandboxed
def doctor_answers_environment_trust_and_login():
    with Folder() as folder:
        repo, _ = prepared(folder, "claude", "codex")
        path = os.environ["PATH"]
        found = examined(repo, path)
        check(set(found) >= {"agent-claude", "agent-codex"}, found)
        check(found["agent-claude"]["status"] == "warn", found)
        check("no login" in found["agent-claude"]["detail"], found)
        check("ANTHROPIC_API_KEY" in found["agent-claude"]["fix"], found)
        check("CORTEXPILOT_CODEX_BASE_HOME" in found["agent-codex"]["fix"], found)
        (repo.base / "me/.claude").mkdir(parents=True)
        (repo.base / "me/.claude/.credentials.json").write_text("{}")
        found = examined(repo, path, HOME=str(repo.base / "me"))
        check("not visible in a sandbox" in found["agent-claude"]["detail"], found)
        found = examined(repo, path, ANTHROPIC_API_KEY="k", CORTEXPILOT_CODEX_BASE_HOME="/x")
        check([found[n]["status"] for n in ("agent-claude", "agent-codex")] == ["ok", "ok"], found)
        other = repo.base / "other"
        other.mkdir()
        (other / "gemini").write_text("#!/bin/sh\n")
        (other / "gemini").chmod(0o755)
        found = examined(repo, f"{other}:{path}")
        check(found["agent-gemini"]["status"] == "warn", found)
        check("trusted_dirs" in found["agent-gemini"]["fix"], found)


if __name__ == "__main__":
    main()
