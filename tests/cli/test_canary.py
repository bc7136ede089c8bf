#!/usr/bin/env python3
"""test_canary.py - no program of a repository is started by a command that only reads, nor by a GET
of the server.

The repository's configuration, attributes and hooks name one program for everything that git can be
told to start; the program leaves a trace.  The commands are those of the program's own table.
"""
import http.client
import json
import shutil
import subprocess
import time

from kit import BIN, Folder, check, main, run  # noqa: E402
from run_kit import clean_env, contract, sandboxed  # noqa: E402
from story_kit import Story  # noqa: E402

COMMANDS = {command["name"] for command in json.loads(run(BIN, "help", "--json").stdout)["commands"]}
SOURCE = "src/app/main.c"

# What changes something, is asked for a run or a program, or serves until it is stopped.
CHANGES = set("""
demo; init; memory write; memory update; memory tombstone; memory link; memory unlink; memory attest;
memory compact; memory embed; append; apply; snapshot make; snapshot seal; snapshot drop; key new;
key add; key revoke; scope make; erase; tables rebuild; tables repair; backup; restore; log archive; log restore; record;
alert ack; alert resolve; import;
view; lattice view; lattice selftest; runner add; hooks install; hooks remove; locks release; approve; run;
run chain; serve; up; watch; mcp; mcp-gateway; mcp-gateway pin;
mcp-gateway wrap; mcp-gateway unwrap; token add; token revoke; export tiles
""".replace("\n", " ").strip().split("; "))

HOOKS = ("pre-commit", "pre-push", "post-checkout", "post-index-change", "reference-transaction",
         "fsmonitor-watchman", "post-rewrite", "update", "pre-auto-gc", "commit-msg", "prepare-commit-msg")


def reads(story, keep):
    """(command words, exit codes) of every command that reads and can meet the repository."""
    run_id, commit, file = story.run, story.commit, keep
    yes = (0, 1, 3)
    names = (f"{SOURCE}:1", f"{SOURCE}:2", "scripts/test.sh:1", commit, commit[:10], run_id, run_id + "/3",
             story.trace, story.read, "cortex://run/" + run_id)
    table = {
        "show": [[name] for name in names], "why": [[name] for name in names],
        "evidence": [[name, "-o", keep.parent / f"{n}.cxe"] for n, name in enumerate((commit, run_id))],
        "runner list": [[]], "contract lint": [[file]], "contract explain": [[file]],
        "contract resolve": [[file]], "contract hash": [[file]], "gate policy": [[file]],
        "gate diff": [["--contract", file], ["--contract", file, "--baseline", "HEAD~1", "--head", "HEAD"],
                      ["--baseline", "HEAD", "--head", "HEAD", "--contract-in", "task.json"]],
        "gate command": [["--contract", file, "git status"]],
        "hooks status": [[]], "hook status": [[]], "hook pre-commit": [[]], "worktrees list": [[]], "locks list": [[]],
        "exec": [["--", "true"], ["--contract", file, "--", "true"]],
        "approvals list": [[]], "run list": [[]], "run show": [[run_id]], "run events": [[run_id]],
        "run diff": [[run_id]], "run reports": [[run_id]], "run verify": [[run_id]],
        "run export": [[run_id, "--output", keep.parent / "exported"]], "run cleanup": [[]],
        "run replay": [[run_id]], "status": [[]], "doctor": [[]],
    }
    for name, calls in table.items():
        for words in calls:
            yield name, words, yes + ((4,) if name.startswith(("gate", "hook", "contract", "exec")) else ())


def poison(repo, canary):
    """Whatever git may be told to start, it is told to start the canary."""
    config = repo.path / ".git/config"
    lines = [config.read_text()]
    for section, names in (
            ("core", ("fsmonitor", "pager", "editor", "sshCommand", "gitProxy", "askPass", "attributesFile",
                      "alternateRefsCommand")),
            ("diff", ("external",)), ('diff "x"', ("textconv", "command")),
            ('filter "x"', ("clean", "smudge")), ('filter "y"', ("process",)), ('merge "x"', ("driver",)),
            ("credential", ("helper",)), ("gpg", ("program",)), ("sequence", ("editor",)),
            ("interactive", ("diffFilter",)), ("uploadpack", ("packObjectsHook",)),
            ("pager", ("blame", "show", "log", "diff", "status", "notes", "cat-file")),
            ("man", ("viewer",)), ("web", ("browser",)), ("trailer \"t\"", ("command", "cmd")),
            ("alias", ("blame", "cat-file", "notes", "rev-parse", "show")), ("notes", ("displayRef",)),
            ("help", ("browser",)), ("instaweb", ("httpd",)), ("sendemail", ("smtpServer",))):
        lines.append(f"[{section}]\n")
        for name in names:
            value = "!" + str(canary) if section in ("alias", "credential") else str(canary)
            lines.append(f"\t{name} = {value}\n")
    lines.append('[filter "x"]\n\trequired = true\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = true\n'
                 f'[remote "origin"]\n\turl = ext::{canary}\n\tpromisor = true\n'
                 f'\tuploadpack = {canary}\n[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n'
                 "[core]\n\thooksPath = .hooks\n\tuntrackedCache = true\n")
    config.write_text("".join(lines))
    attributes = "* filter=x diff=x merge=x\n*.sh filter=y diff=x\n"
    (repo.path / ".gitattributes").write_text(attributes)
    (repo.path / ".git/info").mkdir(exist_ok=True)
    (repo.path / ".git/info/attributes").write_text(attributes)
    for folder in (".git/hooks", ".hooks"):
        (repo.path / folder).mkdir(exist_ok=True)
        for name in HOOKS:
            shutil.copy(canary, repo.path / folder / name)
    # Different from the index, by contents and by time.
    for name in (SOURCE, "scripts/test.sh"):
        path = repo.path / name
        path.write_text("/* first */\n" + path.read_text())


class Canary:
    def __init__(self, folder):
        self.trace = folder / "started"
        self.program = folder / "canary"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.trace}\ncat\n')
        self.program.chmod(0o755)

    def alive(self, *what):
        check(not self.trace.exists(), *what, "started a program of the repository:",
              self.trace.read_text() if self.trace.exists() else "")


def poisoned(folder):
    story = Story(folder)
    canary = Canary(folder)
    poison(story.repo, canary.program)
    # The canary sings when git is asked as people ask it.
    for words in (("blame", "-L1,1", SOURCE), ("diff", SOURCE), ("status",), ("add", SOURCE)):
        subprocess.run(["git", *words], cwd=story.repo.path, env=clean_env(), stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=60, check=False)
        if words[0] in ("blame", "diff"):
            check(canary.trace.exists(), "git does not start it by", *words)
            canary.trace.unlink()
    canary.trace.unlink(missing_ok=True)
    subprocess.run(["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "read-tree", "HEAD"],
                   cwd=story.repo.path, env=clean_env(), check=True, timeout=60)
    canary.trace.unlink(missing_ok=True)
    return story, canary


def every_command(story, canary):
    keep = story.repo.keep("asked.json", contract())
    seen = set()
    for name, words, codes in reads(story, keep):
        seen.add(name)
        done = story.repo.cortex(*name.split(), *words)
        check(done.returncode in codes, name, words, done.returncode, done.stdout, done.stderr)
        canary.alive(name, *words)
    for dry in (["run", "--dry-run", keep], ["run", "attest", "--check", "nothing"]):
        story.repo.cortex(*dry)
        canary.alive(*dry)
    # The rest has nothing to do with the repository; asked in it with names of its files nevertheless.
    for name in sorted(COMMANDS - seen - CHANGES):
        for words in ([], ["--json"], [SOURCE], [f"{SOURCE}:1"], [story.commit]):
            run(BIN, *name.split(), *words, cwd=story.repo.path,
                env=clean_env(CORTEX_HOME=str(story.repo.home), CORTEX_ACTOR="desk"))
            canary.alive(name, *words)
    check(not CHANGES - COMMANDS, "no such command:", CHANGES - COMMANDS)
    check(seen <= COMMANDS, seen - COMMANDS)


def lines_are_found(story):
    """As the files are now, though nothing of the repository's has run."""
    repo = story.repo
    for line, verdict in ((1, "indeterminate"), (2, "holds")):
        done = repo.cortex("show", f"{SOURCE}:{line}", "--json")
        got = json.loads(done.stdout)
        found = got.get("thing", got)
        check(found["verdict"] == verdict, line, got)
    text = (repo.path / SOURCE).read_text().splitlines()
    done = repo.cortex("why", f"{SOURCE}:{text.index('/* more */') + 1}", "--json")
    steps = json.loads(done.stdout)["steps"]
    check([step["id"] for step in steps if step["kind"] == "commit"] == [story.commit], steps)


@sandboxed
def commands_that_read_start_nothing_of_the_repository():
    with Folder() as folder:
        story, canary = poisoned(folder)
        lines_are_found(story)
        canary.alive("lines")
        every_command(story, canary)


def get(port, token, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Authorization": "Bearer " + token})
    response = connection.getresponse()
    if response.headers.get("Content-Type") == "text/event-stream":
        response.read(1)
        body = b""
    else:
        body = response.read()
    connection.close()
    return response.status, body


def every_route(story, canary):
    repo = story.repo
    with subprocess.Popen([BIN, "serve", "--home", repo.home, "--listen", "127.0.0.1:0", "--json", "--repo",
                           repo.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=clean_env()) as server:
        try:
            port = int(json.loads(server.stdout.readline())["url"].rsplit(":", 1)[1])
            token = (repo.home / "token").read_text().strip()
            paths = json.loads(get(port, token, "/openapi.json")[1])["paths"]
            values = {"run_id": story.run, "trace_id": story.trace, "id": f"{SOURCE}:2"}
            asked = good = 0
            for path, methods in sorted(paths.items()):
                if "get" not in methods or "feed" in path or "stream" in path or "tail" in path:
                    continue
                for value in (f"{SOURCE}:2", story.commit, story.run, story.trace):
                    where = path
                    for name in values:
                        where = where.replace("{%s}" % name, values[name] if name != "id" else value)
                    where = where.replace("{branch...}", "@run/" + story.run)
                    query = "&".join(f"{p['name']}={value.replace('/', '%2F')}"
                                     for p in methods["get"].get("parameters", [])
                                     if p["in"] == "query" and p.get("required"))
                    status, _ = get(port, token, where + ("?" + query if query else ""))
                    asked += 1
                    good += status == 200
                    canary.alive("GET", where, query)
            check(asked > 80 and good > 30, asked, good)
            status, body = get(port, token, f"/api/v1/why?id={SOURCE.replace('/', '%2F')}:2")
            check(status == 200 and b"git blame" in body, status, body[:900])
        finally:
            server.terminate()
            server.wait(timeout=60)


@sandboxed
def requests_that_read_start_nothing_of_the_repository():
    with Folder() as folder:
        story, canary = poisoned(folder)
        every_route(story, canary)
        time.sleep(0.2)
        canary.alive("serve")


main()
