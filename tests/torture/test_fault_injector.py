#!/usr/bin/env python3
"""What fault_injector.so does to programs, and what they do then: the clock has jumped, the disk is full.

Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, Folder, check, clean_env, main, run, sibling, skip, test  # noqa: E402

YEAR = 365 * 86400 * 10**9


def under(folder, clock_ns=0, bytes_left=-1):
    """The environment of a program under those faults; only what lies in folder/disk is on the disk."""
    injector = sibling("fault_injector.so")
    if not os.path.exists(injector):
        skip("there is no fault_injector.so")
    (folder / "faults").write_bytes(struct.pack("=qqQ", clock_ns, bytes_left, 0))
    return {**clean_env(), "LD_PRELOAD": injector, "CORTEX_FAULTS": str(folder / "faults"), "CORTEX_ACTOR": "a",
            "CORTEX_FAULTS_UNDER": str(folder / "disk"), "CORTEX_HOME": str(folder / "disk" / "home")}


def refusals(folder):
    return struct.unpack("=qqQ", (folder / "faults").read_bytes())[2]


def made(folder):
    """A home on the disk, with one entry."""
    (folder / "disk").mkdir()
    done = run(BIN, "init", "--no-repo", "--segment-size", "64K", env=under(folder))
    check(done.returncode == 0, done.stderr)
    return appended(folder, under(folder))


def appended(folder, env, text="hello"):
    done = run(BIN, "append", "note.x", "-", "--json", env=env, cwd=folder, stdin=text.encode())
    return done.returncode, (json.loads(done.stdout) if done.stdout else None), done.stderr


@test
def unreadable_tables_are_not_reported_as_damaged():
    """Beside a living writer SQLite needs a file of its own to read, which it cannot make here."""
    holder = sibling("cortex-writer")
    if not os.path.exists(holder):
        skip("there is no cortex-writer")
    with Folder() as folder:
        made(folder)
        with subprocess.Popen([holder, str(folder / "disk/home")], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=under(folder)) as process:
            check(process.stdout.readline() == b"ready\n")
            (folder / "disk/home/cortex.db-shm").unlink()
            done = run(BIN, "tables", "rebuild", "--verify-only", env=under(folder, bytes_left=0))
            check(refusals(folder) > 0, "the disk was not full")
            check(done.returncode == 3 and b"RootMismatch" not in done.stderr, done)
            process.stdin.close()
        done = run(BIN, "tables", "rebuild", env=under(folder))
        check(done.returncode == 0, done)


@test
def a_clock_jump_makes_no_wait_longer():
    program = sibling("test_base")
    if not os.path.exists(program):
        skip("there is no test_base")
    with Folder() as folder:
        for jump in (YEAR, -YEAR):
            done = run(program, "thread_a_wait_ends_in_its_time", env=under(folder, jump))
            check(done.returncode == 0 and b"1 passed" in done.stdout, done)


@test
def entries_have_the_time_of_the_wall_clock():
    with Folder() as folder:
        made(folder)
        for jump, word in ((-30 * YEAR, "199"), (30 * YEAR, "205")):
            check(appended(folder, under(folder, jump))[0] == 0)
            done = run(BIN, "log", "--json", "-n", "1", env=under(folder))
            check(json.loads(done.stdout)["created_at"].startswith(word), done.stdout)
        check(run(BIN, "verify", "--home", folder / "disk/home", env=under(folder)).returncode == 0)


@test
def a_full_disk_is_reported_and_loses_no_data():
    with Folder() as folder:
        made(folder)
        stored, refused = 1, 0
        for room in (0, 1, 100, 4096, 70000, 140000):
            code, answer, said = appended(folder, under(folder, bytes_left=room), "x" * 100000)
            if code == 0:
                stored += 1
                check(answer["seq"] == stored - 1, answer)
            else:
                refused += 1
                check(code == 3 and (b"No space" in said or b"full" in said or b"I/O" in said), code, said)
                check(refusals(folder) > 0, "the disk was not full")
            check(appended(folder, under(folder))[0] == 0, "after there was room again")
            stored += 1
        check(refused >= 3, refused)
        check(run(BIN, "verify", "--home", folder / "disk/home", env=under(folder)).returncode == 0)
        done = run(BIN, "log", "--json", "--all", env=under(folder))
        check(len(done.stdout.splitlines()) == stored, stored, done.stdout[:300])


main()
