#!/usr/bin/env python3
"""The scripts of docs/start: each reaches a record and an answer in as many commands as the table of
its README says."""
import re

from kit import BIN, TESTS, check, clean_env, main, run, test

START = TESTS.parent / "docs" / "start"
PATIENCE_S = 120
ANSWERS = {"python": "memory.limit: 500 -> 900", "otel": "the answer was cut",
           "claude-code": "not with what was paid", "file": "not with what was paid"}


def counts():
    """{page: (commands to the first record, to the first answer)} of the table."""
    rows = re.findall(r"\| \[([\w-]+)\.md\]\([^)]*\) \| (\d+) \| (\d+) \|",
                      (START / "README.md").read_text())
    return {name: (int(record), int(answer)) for name, record, answer in rows}


def script_reaches_its_answer(name):
    done = run("bash", START / f"{name}.sh", env=clean_env(CORTEX=BIN), timeout=PATIENCE_S)
    said = done.stdout.decode()
    check(done.returncode == 0, name, done.returncode, said, done.stderr)
    reached = dict(re.findall(r"^# (first \w+): (\d+) commands, [\d.]+ s$", said, re.M))
    check((int(reached["first record"]), int(reached["first answer"])) == counts()[name],
          "the table says", counts()[name], "and the script", reached)
    check(ANSWERS[name] in said, name, said)


@test
def every_page_has_a_row_and_a_script():
    check(set(counts()) == set(ANSWERS), counts())
    pages = {path.stem for path in START.glob("*.md")} - {"README"}
    check(pages == set(ANSWERS), pages)


@test
def a_python_agent():
    script_reaches_its_answer("python")


@test
def a_program_with_opentelemetry():
    script_reaches_its_answer("otel")


@test
def a_user_of_claude_code():
    script_reaches_its_answer("claude-code")


@test
def someone_with_a_file():
    script_reaches_its_answer("file")


main()
