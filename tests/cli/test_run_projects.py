#!/usr/bin/env python3
"""Governed runs in projects of three languages: their own test commands decide, in the sandbox.

Closes with `N passed, N failed, N skipped`.
"""
import json
import shutil

from kit import Folder, check, main, skip, test
from run_kit import contract, reply, script, with_policies

C_TEST = """#!/bin/sh
set -e
out=$(mktemp -d)
cc -Wall -Wextra -Werror -o "$out/test" src/add.c tests/test_add.c
"$out/test"
"""

PROJECTS = {
    "c": {
        "needs": "cc",
        "files": {
            "src/add.c": "int add(int a, int b);\nint add(int a, int b)\n{\n    return a - b;\n}\n",
            "tests/test_add.c": "#include <stdio.h>\nint add(int a, int b);\nint main(void)\n{\n"
                                "    int sum = add(2, 2);\n    printf(\"%d\\n\", sum);\n"
                                "    return sum != 4;\n}\n",
            "scripts/test.sh": C_TEST},
        "allow": ["scripts/test.sh"], "command": "scripts/test.sh", "source": "src/add.c",
        "good": "int add(int a, int b);\nint add(int a, int b)\n{\n    return a + b;\n}\n",
        "bad": "int add(int a, int b)\n{\n    return a + ;\n}\n"},
    "python": {
        "needs": "python3",
        "files": {
            "src/calc.py": "def add(a, b):\n    return a - b\n",
            "tests/__init__.py": "",
            "tests/test_calc.py": "import sys\nimport unittest\nsys.path.insert(0, 'src')\n"
                                  "from calc import add\n\n\nclass Add(unittest.TestCase):\n"
                                  "    def test_add(self):\n        self.assertEqual(add(2, 2), 4)\n"},
        "allow": ["python3", "-m", "unittest"], "command": "python3 -m unittest tests.test_calc",
        "source": "src/calc.py", "good": "def add(a, b):\n    return a + b\n",
        "bad": "def add(a, b):\n    return a * b + 1\n"},
    "node": {
        "needs": "node",
        "files": {
            "src/add.js": "exports.add = (a, b) => a - b;\n",
            "tools/test.js": "const assert = require('assert');\n"
                             "const { add } = require('../src/add.js');\n"
                             "assert.strictEqual(add(2, 2), 4);\nconsole.log('ok');\n"},
        "allow": ["node", "tools/"], "command": "node tools/test.js", "source": "src/add.js",
        "good": "exports.add = (a, b) => a + b;\n", "bad": "exports.add = (a, b) => {\n"},
}


def project_repo(folder, project):
    repo, _ = with_policies(folder)
    for name, text in project["files"].items():
        repo.write(name, text, name.endswith(".sh"))
    for name in ("policies/command_allowlist.json", "policies/packs/low.json",
                 "policies/packs/medium.json"):
        policy = json.loads((repo.path / name).read_text())
        policy["allow"].append(project["allow"])
        repo.write(name, json.dumps(policy))
    repo.commit("project")
    return repo


def run_project(name, source):
    """(exit code, answer, test report) of an agent that writes the source file so."""
    project = PROJECTS[name]
    if shutil.which(project["needs"], path="/usr/local/bin:/usr/bin:/bin") is None:
        skip(f"no {project['needs']} in the trusted folders")
    with Folder() as folder:
        repo = project_repo(folder, project)
        before = repo.head("main")
        task = contract(allowed_paths=[project["source"]], timeout_retry__max_retries=0,
                        acceptance_tests=[{"name": "unit", "cmd": project["command"],
                                           "must_pass": True}],
                        rollback__baseline_ref="HEAD")
        done, answer = repo.run(task, script(([["write", project["source"], project[source]]],
                                              reply())))
        if answer["failed_gate"] == "sandbox":
            skip("no sandbox on this machine")
        done_with = repo.cortex("run", "reports", answer["run_id"], "test_report", "--json")
        report = json.loads(done_with.stdout)
        repo.clean()
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        moved = repo.head("main") != before
        return done.returncode, answer, report, moved


def make(name):
    def passes():
        code, answer, report, moved = run_project(name, "good")
        check(code == 0 and answer["merged"] == "fast_forward" and moved, answer, report)
        check(report["status"] == "PASS" and report["commands"][0]["exit_code"] == 0, report)

    def fails():
        code, answer, report, moved = run_project(name, "bad")
        check(code == 4 and answer["failed_gate"] == "tests" and not moved, answer, report)
        check(report["status"] == "FAIL" and report["commands"][0]["exit_code"] != 0, report)

    passes.__name__ = f"{name}_tests_that_pass_let_it_merge"
    fails.__name__ = f"{name}_tests_that_fail_do_not"
    test(passes)
    test(fails)


for language in PROJECTS:
    make(language)

main()
