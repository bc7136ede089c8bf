#!/usr/bin/env python3
"""Tests use packages that are installed in the main checkout: node_modules and .venv.

Closes with `N passed, N failed, N skipped`.
"""
import pathlib
import shutil

from kit import Folder, check, main, skip
from run_kit import GOOD_OPS, contract, refused, reply, sandboxed, script, with_policies

PYTHON = "#!/bin/sh\nset -e\npython3 -m installed_dep\n! touch .venv/x 2>/dev/null\n"
NODE = "#!/bin/sh\nset -e\nnode -e 'if (require(\"dep\") !== 42) process.exit(1)'\n"


def prepared(folder, test, *dependencies, ignored=".venv\nnode_modules\n"):
    repo, _ = with_policies(folder, test_dependencies=list(dependencies))
    repo.write("scripts/test.sh", test, True)
    repo.write(".gitignore", ".runtime-cache/\n" + ignored)
    repo.commit("tests need packages")
    return repo


def venv(repo):
    repo.write(".venv/pyvenv.cfg", "home = /usr/bin\n")
    repo.write(".venv/lib/python3.11/site-packages/installed_dep.py", "print('found')\n")


def played(repo, ops=GOOD_OPS):
    return repo.run(contract(), script((ops, reply())))


@sandboxed
def a_virtual_environment_is_found_by_tests_only():
    with Folder() as folder:
        repo = prepared(folder, PYTHON, ".venv")
        venv(repo)
        done, answer = played(repo)
        check(done.returncode == 0, answer, done.stderr)
        log = (pathlib.Path(answer["bundle"]) / "tests/stdout.log").read_text()
        check(log == "found\n", log)
        check(not (repo.path / ".venv/x").exists(), "tests could write")
        check(repo.verify(answer).returncode == 0)
        again = repo.cortex("run", "replay", answer["run_id"], "--reexec")
        check(again.returncode == 0, again)
        done, answer = played(repo, [["write", ".venv/lib/evil.py", "x\n"]])
        check(answer["failed_gate"] == "diff", answer)


@sandboxed
def without_the_setting_it_is_not_there():
    with Folder() as folder:
        repo = prepared(folder, PYTHON)
        venv(repo)
        done, answer = played(repo)
        refused(repo, done, answer, "tests")
        check("installed_dep" in answer["failed_tests"][0]["stderr"]["text"], answer)


@sandboxed
def node_modules_are_found():
    if shutil.which("node", path="/usr/local/bin:/usr/bin:/bin") is None:
        skip("no node in the trusted folders")
    with Folder() as folder:
        repo = prepared(folder, NODE, "node_modules")
        repo.write("node_modules/dep/index.js", "module.exports = 42;\n")
        done, answer = played(repo)
        check(done.returncode == 0, answer, done.stderr)


@sandboxed
def what_is_missing_outside_or_tracked_ends_the_tests():
    with Folder() as folder:
        repo = prepared(folder, PYTHON, ".venv")
        _, answer = played(repo)
        check(answer["failed_gate"] == "tests" and ".venv is not a folder" in answer["hint"], answer)
        (repo.base / "elsewhere").mkdir()
        (repo.path / ".venv").symlink_to(repo.base / "elsewhere")
        _, answer = played(repo)
        check(answer["failed_gate"] == "tests" and "reached by a link" in answer["hint"], answer)
        (repo.path / ".venv").unlink()
        (repo.path / ".venv").symlink_to(".git")  # inside of the repository, and not for agents
        _, answer = played(repo)
        check(answer["failed_gate"] == "tests" and "reached by a link" in answer["hint"], answer)
    with Folder() as folder:
        repo = prepared(folder, PYTHON, "src")
        _, answer = played(repo)
        check(answer["failed_gate"] == "tests" and "the commit has src" in answer["hint"], answer)


@sandboxed
def paths_of_the_configuration_are_checked():
    with Folder() as folder:
        repo = prepared(folder, PYTHON, "../x")
        done, answer = played(repo)
        check(done.returncode != 0 and "test_dependencies" in str(answer) + str(done.stderr), answer)


if __name__ == "__main__":
    main()
