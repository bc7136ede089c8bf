#!/usr/bin/env python3
"""scale.py PROGRAM FILL FOLDER [MEMORIES ..] - how the cost of one command grows with what was recorded.

FILL is bench/fill_home.  In FOLDER, data directories are made (and kept) with one agent of MEMORIES
memories each (10,000 and 100,000), with 1,000 and 100,000 agents of ten entries, and with 100 and 10,000
runs of 100 events.  Every command runs
three times on a copy (how a history of steps opens is in bench/history.py); a row has, for each data directory, the least CPU seconds, the resident megabytes
of that run, and the megabytes that it wrote.  Wall time is left out: it depends on what else runs.
"""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

TIMES = 3
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("CORTEX", "XDG_"))}


def run(words):
    """CPU seconds, resident MB, MB written, output."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.close(read)
        os.execvpe(words[0], words, ENV)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        out = pipe.read().decode()
    _, status, used = os.wait4(pid, 0)
    if status != 0 and words[1:3] != ["run", "verify"]:  # what it says of a bundle is no matter here
        sys.exit(f"{' '.join(words)}: status {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, used.ru_oublock * 512 / 1e6, out


def make(fill, folder, name, words):
    home = folder / name
    if not home.exists():
        subprocess.run([fill, str(home), *words], check=True)
    copy = folder / f"{name}.copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home, copy)
    return copy


def rows(program, homes, questions):
    for what, words in questions:
        line = [f"| {what:28}"]
        for actor, home in homes:
            best = None
            for _ in range(TIMES):
                asked = [w() if callable(w) else w.replace("ACTOR", actor) for w in words(program, home, actor)]
                found = run([program, *asked, "--home", str(home)])
                best = found if best is None or found[0] < best[0] else best
            line.append(f" {best[0]:.2f} s, {best[1]:.0f} MB, {best[2]:.2f} MB ")
        print("|".join(line) + "|", flush=True)


def some_uri(program, home, actor):
    out = run([program, "memory", "list", "--limit", "50", "--actor", actor, "--home", str(home)])[3]
    return re.findall(r"matrix://cortex/\S+", out)[0]


ANY = [
    ("open, one entry read", lambda p, h, a: ["log", "--last", "1", "--actor", a]),
    ("one entry written", lambda p, h, a: ["append", "raw", "hello", "--actor", a]),
    ("roots of one agent", lambda p, h, a: ["roots", "--actor", a]),
    ("proof of an entry", lambda p, h, a: ["prove", "--entry", "5", "--actor", a, "--out", "/dev/null"]),
    ("tables status", lambda p, h, a: ["tables", "status"]),
    ("status", lambda p, h, a: ["status"]),
    ("log of all journals", lambda p, h, a: ["log", "--last", "20"]),
    ("session list, none there", lambda p, h, a: ["session", "list"]),
]
MEMORIES = [
    ("one memory erased", lambda p, h, a: ["erase", some_uri(p, h, a), "--reason", "bench", "--actor", a]),
]
RUNS = [
    ("run verify", lambda p, h, a: ["run", "verify", a]),
]


def make_bundle(folder):
    """A run that the data directories know: its bundle is broken, but what is known of it is read."""
    bundle = folder / "run_20260101_000000_00000000000000000000000000000007"
    bundle.mkdir(exist_ok=True)
    (bundle / "events.jsonl").write_text("")
    return str(bundle)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, fill, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    sizes = [int(word) for word in sys.argv[4:]] or [10000, 100000]
    folder.mkdir(exist_ok=True)
    memories = [("bench", make(fill, folder, f"memories-{n}", ["memories", str(n)])) for n in sizes]
    print("memories of one agent:", ", ".join(f"{n:,}" for n in sizes), "(CPU, resident, written)")
    rows(program, memories, ANY + MEMORIES)
    counts = [1000, 100000]
    agents = [("agent-0000007", make(fill, folder, f"agents-{n}", ["actors", str(n), "10"])) for n in counts]
    print("agents of ten entries:", ", ".join(f"{n:,}" for n in counts), "(CPU, resident, written)")
    rows(program, agents, ANY)
    counts = [100, 10000]
    bundle = make_bundle(folder)
    runs = [(bundle, make(fill, folder, f"runs-{n}", ["runs", str(n), "100"])) for n in counts]
    print("runs of 100 events:", ", ".join(f"{n:,}" for n in counts), "(CPU, resident, written)")
    rows(program, runs, RUNS)


if __name__ == "__main__":
    main()
