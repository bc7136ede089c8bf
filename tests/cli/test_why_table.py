#!/usr/bin/env python3
"""docs/why.md: "why is X so?" answered on one real file of each family, as the page says.

    test_why_table.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import os

from kit import BIN, TESTS, check, main, run, skip, test

SCRIPT = TESTS.parent / "scripts/why.py"


@test
def real_files_answer_as_the_page_says():
    if not os.environ.get("CORTEX_TESTDATA"):
        skip("CORTEX_TESTDATA names no folder")
    done = run(SCRIPT, "--check", BIN, timeout=600)
    check(done.returncode == 0, done.stdout.decode(), done.stderr.decode())


@test
def without_the_files_it_says_so():
    env = {k: v for k, v in os.environ.items() if k != "CORTEX_TESTDATA"}
    done = run(SCRIPT, "--check", BIN, env=env)
    check(done.returncode == 77 and b"CORTEX_TESTDATA" in done.stdout, done.returncode, done.stdout)


main()
