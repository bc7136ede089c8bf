#!/usr/bin/env python3
"""older.py [BENCH_LEDGER [FOLDER [TURNS [SECONDS]]]] - durable append now / in an older version (row S4).

Runs bench_ledger of this build and of an older one in turn, TURNS times each (5), on the file system of FOLDER (.),
SECONDS a row and turn (1), the order changing each time, and compares what both append a second.  The older build is
that of CORTEX_OLDER, a folder of a release build; without one the rows are skipped.  The last version with trees in
memory is the first that was released, 0.2.0:

    git worktree add /tmp/older 938d3d86 && cd /tmp/older && cmake --preset release &&
        cmake --build --preset release --target bench_ledger
    CORTEX_OLDER=/tmp/older/build/release bench/older.py build/release/bin/bench_ledger

Next to it, for information: the same ratio of what each reached of the bare disk in its own turn.
"""
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = 0.9
WHAT = 'durable append with trees on the disk / in memory, 0.2.0'
ROW = re.compile(r'^G1@(\d+) .*?: ours (\S+), reference (\S+), ratio')


def skip(why):
    for count in (1, 16, 256):
        print(f'S4@{count} {WHAT}: ours -, reference -, ratio - (target {TARGET}): skipped ({why})')
    sys.exit(0)


def rates(program, folder, seconds):
    """Records a second of each row, and of the bare disk.  The program is ended when it has printed these."""
    found = {}
    with subprocess.Popen(['stdbuf', '-oL', program, folder, seconds], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            row = ROW.match(line)
            if row:
                found[int(row[1])] = (float(row[2]), float(row[3]))
            if len(found) == 3:
                break
        process.terminate()
    shutil.rmtree(pathlib.Path(folder) / f'cortex-bench-ledger.{process.pid}', ignore_errors=True)
    if len(found) != 3:
        sys.exit(f'{program} did not run to its end')
    return found


def main():
    if len(sys.argv) > 5:
        sys.exit(__doc__)
    new = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / 'build/release/bin/bench_ledger')
    folder = sys.argv[2] if len(sys.argv) > 2 else '.'
    turns = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    seconds = sys.argv[4] if len(sys.argv) > 4 else '1'
    if not os.environ.get('CORTEX_OLDER'):
        skip('no older build in CORTEX_OLDER')
    old = pathlib.Path(os.environ['CORTEX_OLDER']) / 'bin/bench_ledger'
    if not old.is_file():
        skip(f'no {old}')
    pairs = []
    for turn in range(turns):
        first, second = (new, old) if turn % 2 == 0 else (old, new)
        one, other = rates(first, folder, seconds), rates(second, folder, seconds)
        pairs.append((one, other) if turn % 2 == 0 else (other, one))
    for count in sorted(pairs[0][0]):
        ratios = sorted(now[count][0] / then[count][0] for now, then in pairs)
        disk = statistics.median(now[count][0] / now[count][1] / (then[count][0] / then[count][1]) for now, then in pairs)
        ratio = statistics.median(ratios)
        print(f'S4@{count} {WHAT}: ours {statistics.median(now[count][0] for now, _ in pairs):.4g}, '
              f'reference {statistics.median(then[count][0] for _, then in pairs):.4g}, '
              f'ratio {ratio:.2f} [{ratios[0]:.2f}..{ratios[-1]:.2f}] (target {TARGET}): '
              f"{'ok' if ratio >= TARGET else 'below'}")
        print(f'     of the bare disk in its own turn: {disk:.2f}', flush=True)


main()
