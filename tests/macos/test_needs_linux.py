#!/usr/bin/env python3
"""What a build without sandboxes (CORTEX_PLATFORM is not linux) answers where one is needed: exit
code 3 and "needs Linux", before anything is recorded.  Everything else works as on Linux; the other
tests of the programs show that.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))

from kit import Folder, Place, check, expect, main, test
from run_kit import GOOD_OPS, Repo, contract, reply, script

WORDS = "needs Linux: agents and tests are run in a sandbox"


@test
def exec_starts_nothing():
    with Place() as p:
        before = p.run("log", "--json")
        marker = p.folder / "made"
        p.expect(3, "exec", "--", "touch", marker, err=WORDS)
        check(not marker.exists(), "it was run")
        after = p.run("log", "--json")
        check((after.returncode, after.stdout) == (before.returncode, before.stdout), after)


@test
def a_run_is_refused_before_it_has_a_bundle():
    with Folder() as folder:
        repo = Repo(folder)
        path = repo.keep("script.json", script((GOOD_OPS, reply())))
        task = repo.keep("contract.json", contract())
        expect(repo.cortex("run", task, "--script", path), 3, err=WORDS)
        said = expect(repo.cortex("run", task, "--script", path, "--json"), 3)
        check(WORDS in said.stdout.decode() + said.stderr.decode(), said)
        check(list(pathlib.Path(folder).rglob("events.jsonl")) == [], "a bundle was made")
        check(repo.git("status", "--porcelain") == "", "files were changed")


@test
def a_contract_is_judged_without_one():
    with Folder() as folder:
        repo = Repo(folder)
        task = repo.keep("contract.json", contract())
        expect(repo.cortex("contract", "lint", task), 0)
        expect(repo.cortex("run", "list"), 0)


@test
def doctor_says_so_and_does_not_fail():
    with Place() as p:
        done = p.run("doctor", "--json")
        checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
        check(WORDS in json.dumps(checks["sandbox"]), checks["sandbox"])
        check(checks["sandbox"]["status"] == "warn", checks["sandbox"])


@test
def the_demo_leaves_the_governed_run_out():
    with Place(init=False) as p:
        done = p.expect(3, "demo", "--dir", p.folder / "demo", out="The governed run is skipped")
        check(b"surprise" not in done.stdout, done.stdout[-900:])


@test
def the_launcher_refuses():
    with Place(init=False) as p:
        p.expect(126, "sandbox-stage", err=WORDS)


main()
