#!/usr/bin/env python3
"""What failed tests printed, next to the refusal: `cortex run`, `run show`, their JSON.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib

from kit import Folder, check, main
from run_kit import GOOD_OPS, Repo, contract, refused, reply, sandboxed, script

TOKEN = "ghp_" + "a1B2c3D4e5" * 4
NOISY = """#!/bin/sh
i=0
while [ $i -lt 3000 ]; do echo "line number $i"; i=$((i+1)); done
printf 'evil \\033[2J\\033]0;title\\007 \\342\\200\\256 \\377 end\\n'
echo "token %s" >&2
exit 3
""" % TOKEN


def noisy(folder, text=NOISY):
    repo = Repo(folder)
    repo.write("scripts/test.sh", text, True)
    repo.commit("noisy")
    return repo


@sandboxed
def the_end_of_the_output_is_in_the_answer():
    with Folder() as folder:
        repo = noisy(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        refused(repo, done, answer, "tests")
        check(len(answer["failed_tests"]) == 1, answer["failed_tests"])
        test = answer["failed_tests"][0]
        check(test["name"] == "unit" and test["exit_code"] == 3, test)
        check(test["task_id"] == "unit_task_1", test)
        out, err = test["stdout"], test["stderr"]
        log = (pathlib.Path(answer["bundle"]) / out["path"]).read_bytes()
        check(out["bytes"] == len(log) and out["cut"], out["bytes"], len(log))
        lines = out["text"].splitlines()
        check(len(lines) == 40 and lines[-2] == "line number 2999", lines[-3:])
        check(lines[-1].startswith("evil \x1b[2J") and "\ufffd" in lines[-1], lines[-1])
        check(err["text"] == "token [masked]\n" and not err["cut"], err)
        shown = json.loads(repo.cortex("run", "show", answer["run_id"], "--json").stdout)
        check(shown["failed_tests"] == answer["failed_tests"], shown["failed_tests"])


@sandboxed
def a_terminal_gets_it_escaped():
    with Folder() as folder:
        repo = noisy(folder)
        path = repo.keep("script.json", script((GOOD_OPS, reply())))
        ran = repo.cortex("run", repo.keep("contract.json", contract()), "--script", path)
        check(ran.returncode == 4, ran)
        name = next(word for word in ran.stdout.decode().split() if word.startswith("run_"))
        for text in (ran.stdout, repo.cortex("run", "show", name).stdout):
            check(b"\x1b" not in text and b"\x07" not in text, text[-400:])
            check(b"\xe2\x80\xae" not in text and TOKEN.encode() not in text, text[-400:])
            text = text.decode()
            check("failed    test unit of unit_task_1: exit code 3\n" in text, text)
            check("\n    line number 2999\n" in text and "line number 2900\n" not in text, text)
            check("\n    evil \\u001b[2J\\u001b]0;title\\u0007 \\u202e" in text, text)
            check("\n    token [masked]\n" in text, text)


@sandboxed
def one_long_line_is_cut_without_its_half_secret():
    with Folder() as folder:
        repo = noisy(folder, "#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' x\nexit 1\n")
        _, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        out = answer["failed_tests"][0]["stdout"]
        check(out["text"] == "" and out["cut"] and out["bytes"] == 200000, out)
        repo.write("scripts/test.sh", "#!/bin/sh\nhead -c 9000 /dev/zero | tr '\\0' y\nexit 1\n", True)
        repo.commit("shorter")
        _, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        out = answer["failed_tests"][0]["stdout"]
        check(out["text"] == "y" * 4096 and out["cut"], out)


@sandboxed
def a_run_whose_tests_pass_shows_none():
    with Folder() as folder:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(done.returncode == 0 and answer["failed_tests"] == [], answer)
        shown = json.loads(repo.cortex("run", "show", answer["run_id"], "--json").stdout)
        check(shown["failed_tests"] == [], shown["failed_tests"])


if __name__ == "__main__":
    main()
