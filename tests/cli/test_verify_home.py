#!/usr/bin/env python3
"""`cortex verify --home` of data directories: what it shows while it works, and what its answer has.

    test_verify_home.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import re

from kit import Place, check, main, test


@test
def progress_is_shown_when_it_is_asked_for():
    with Place() as p:
        p.ok("memory", "write", "Fact", '{"statement":"a","subject":"b","predicate":"c"}')
        for words in (["verify", "--home", p.home], ["tables", "rebuild"]):
            quiet = p.expect(0, *words)
            check(quiet.stderr == b"", quiet.stderr)
            shown = p.expect(0, *words, "--progress").stderr.decode()
            check(re.search(r"^(log|tables) 100 %, \d+ entries/s, \d+\.\d MB/s$", shown, re.M), shown)
            check("\r" not in shown and "\033" not in shown, shown)


@test
def an_answer_has_the_totals():
    with Place() as p:
        p.ok("append", "note.x", "text")
        p.ok("append", "note.x", "text", "--actor", "other")
        done = p.json("verify", "--home", p.home)
        totals = done["totals"]
        check(totals["actors"] == 2 and totals["entries"] == 2 and totals["findings"] == 0, totals)
        check(0 < totals["log_bytes"] <= (p.home / "log/000000.seg").stat().st_size, totals)
        check(done["actors_left_out"] == 0 and len(done["actors"]) == 2, done)


main()
