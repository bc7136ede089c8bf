#!/usr/bin/env python3
"""Settings folders of agents: CORTEXPILOT_CODEX_BASE_HOME from outside.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib

from kit import Folder, check, main
from run_kit import (contract, exec_config, payloads, refused, reply, sandboxed, with_policies)

SECRET = "very-private-login-0123456789"
CONFIG = """model = "one"
[model_providers.own]
bearer_token = "another-private-token"
[mcp_servers.github]
command = "npx"
[mcp_servers.github.env]
GITHUB_TOKEN = "not for agents"
[profiles.fast]
model = "two"
"""

# What an agent sees goes into its reply, the base's own secret among it.
AGENT = """#!/bin/sh
cat > /dev/null
mode=$(stat -c %a "$CODEX_HOME")
names=$(cd "$CODEX_HOME" && find . -type f | sort | tr '\\n' ' ')
grep -q mcp_servers "$CODEX_HOME/config.toml" && servers=some || servers=none
grep -q profiles.fast "$CODEX_HOME/config.toml" && profile=kept || profile=gone
touch "$CODEX_HOME/mine" && wrote=yes || wrote=no
ls "BASE" > /dev/null 2>&1 && base=seen || base=hidden
secret=$(cut -d'"' -f4 "$CODEX_HOME/auth.json")
MORE
echo '/* by a program */' >> src/app/main.c
summary="$(basename "$CODEX_HOME") $mode $names$servers $profile $wrote $base $secret"
echo "{\\"task_id\\":\\"unit_task_1\\",\\"status\\":\\"SUCCESS\\",\\"summary\\":\\"$summary\\",\\"evidence_refs\\":{},\\"failure\\":null}"
"""

REVIEWER = """#!/bin/sh
cat > /dev/null
test -f "$CORTEX_EVIDENCE/patch.diff" || exit 8
test ! -e "$CODEX_HOME/mine" || exit 9
test -f "$CODEX_HOME/config.toml" && touch "$CODEX_HOME/theirs" || exit 10
echo "{\\"run_id\\":\\"$CORTEX_RUN_ID\\",\\"reviewer\\":{\\"role\\":\\"REVIEWER\\",\\"agent_id\\":\\"r\\"},\\"reviewed_at\\":\\"2026-01-01T00:00:00Z\\",\\"verdict\\":\\"PASS\\",\\"summary\\":\\"$(basename "$CODEX_HOME")\\",\\"scope_check\\":{\\"passed\\":true,\\"violations\\":[]},\\"evidence\\":[],\\"produced_diff\\":false}"
"""


def base_home(folder, config=CONFIG):
    base = pathlib.Path(folder) / "codex-base"
    (base / "sessions").mkdir(parents=True)
    (base / "config.toml").write_text(config)
    (base / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": SECRET}))
    (base / "sessions" / "old.jsonl").write_text("private\n")
    return base


def agents(folder, base, more=":"):
    """A repository with a worker and a reviewer that are programs."""
    settings = exec_config("scripts/agent.sh", roles={"REVIEWER": "reviewer"})
    settings["runners"]["reviewer"] = {"kind": "exec", "argv": ["sh", "scripts/review.sh"]}
    repo, _ = with_policies(folder, **settings)
    repo.write("scripts/agent.sh", AGENT.replace("BASE", str(base)).replace("MORE", more), True)
    repo.write("scripts/review.sh", REVIEWER, True)
    repo.commit("agents")
    return repo


def report(answer, name):
    return json.loads((pathlib.Path(answer["bundle"]) / "reports" / name).read_text())


@sandboxed
def each_agent_has_a_copy_without_servers():
    with Folder() as folder:
        base = base_home(folder)
        repo = agents(folder, base)
        done, answer = repo.run(contract(), env={"CORTEXPILOT_CODEX_BASE_HOME": str(base)})
        check(done.returncode == 0, answer, done.stderr)
        check(report(answer, "task_result.json")["summary"] ==
              "cortex-worker 700 ./auth.json ./config.toml none kept yes hidden [masked]",
              report(answer, "task_result.json")["summary"])
        check(report(answer, "review_report.json")["summary"] == "cortex-reviewer", answer)
        worker, reviewer = payloads(repo.events(answer), "RUNNER_SELECTED")
        check(worker["codex_home"]["name"] == "cortex-worker", worker)
        check(worker["codex_home"]["files"] == ["auth.json", "config.toml"], worker)
        check(worker["codex_home"]["left_out"] == ["sessions"], worker)
        check(worker["codex_home"]["mcp_servers_removed"] == ["github"], worker)
        check(reviewer["role"] == "REVIEWER", reviewer)
        check(reviewer["codex_home"]["name"] == "cortex-reviewer", reviewer)
        check(reviewer["codex_home"]["listing_sha256"] == worker["codex_home"]["listing_sha256"])
        check(sorted(p.name for p in base.iterdir()) == ["auth.json", "config.toml", "sessions"],
              "the base was changed")
        check((base / "config.toml").read_text() == CONFIG)
        nothing_left(repo, answer)


def nothing_left(repo, answer):
    """Of the base home, neither in the bundle (but the agent's own session) nor beside it."""
    for path in repo.root.rglob("*"):
        if path.is_file() and "codex" not in path.relative_to(repo.root).parts:
            data = path.read_bytes()
            check(SECRET.encode() not in data and b"another-private-token" not in data
                  and b"model_providers" not in data, path)
    check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
    repo.clean()


@sandboxed
def an_agent_cannot_change_the_codex_home_of_the_reviewer():
    with Folder() as folder:
        base = base_home(folder)
        trap = pathlib.Path(folder) / "trap"
        (trap / "work").mkdir(parents=True)
        scratch = '$(dirname "$GIT_OBJECT_DIRECTORY")'
        repo = agents(folder, base, f'for n in review codex aside; do ln -s {trap} "{scratch}/$n"; done')
        done, answer = repo.run(contract(), env={"CORTEXPILOT_CODEX_BASE_HOME": str(base)})
        check(done.returncode == 0, answer, done.stderr)
        check(sorted(p.name for p in trap.rglob("*")) == ["work"], list(trap.rglob("*")))
        nothing_left(repo, answer)


@sandboxed
def an_unreadable_base_folder_stops_the_run():
    with Folder() as folder:
        base = base_home(folder, "[mcp_servers.x\n")
        repo = agents(folder, base)
        for value, why in ((base, "config.toml: line 1:"), (base / "none", "names no folder"),
                           ("codex-base", "absolute path")):
            done, answer = repo.run(contract(), env={"CORTEXPILOT_CODEX_BASE_HOME": str(value)})
            refused(repo, done, answer, "runner")
            check(why in json.dumps(answer), answer)


@sandboxed
def without_a_base_folder_agents_have_no_codex_home():
    with Folder() as folder:
        repo, _ = with_policies(folder, **exec_config("scripts/agent.sh"))
        repo.write("scripts/agent.sh", "#!/bin/sh\ncat > /dev/null\n"
                   "echo '/* x */' >> src/app/main.c\n"
                   "test -z \"${CODEX_HOME+x}\" && echo '%s'\n" % json.dumps(reply()), True)
        repo.commit("agent")
        done, answer = repo.run(contract(), env={"CORTEXPILOT_CODEX_BASE_HOME": ""})
        check(done.returncode == 0, answer, done.stderr)
        selected = payloads(repo.events(answer), "RUNNER_SELECTED")
        check(all("codex_home" not in one for one in selected), selected)


if __name__ == "__main__":
    main()
