#!/usr/bin/env python3
"""older.py [BENCH_LEDGER [FOLDER [TURNS [SECONDS]]]] - durable append now / in an older version (row S4).
older.py memories COUNT [BENCH_MEMORIES [FOLDER [TURNS]]] - changes of COUNT memories, the same (row D6).

Runs bench_ledger of this build and of an older one in turn, TURNS times each (5), on the file system of FOLDER (.),
SECONDS a row and turn (1), the order changing each time, and compares what both append a second.  The older build is
that of CORTEX_OLDER, a folder of a release build; without one the rows are skipped.  The last version with trees in
memory is the first that was released, 0.2.0:

    git worktree add /tmp/older 938d3d86 && cd /tmp/older && cmake --preset release &&
        cmake --build --preset release --target bench_ledger
    CORTEX_OLDER=/tmp/older/build/release bench/older.py build/release/bin/bench_ledger

Next to it, for information: the same ratio of what each reached of the bare disk in its own turn.

With memories, bench_memories of both makes a data directory FOLDER/memories-COUNT-now or -then with COUNT memories
where it is missing, which stays, and their turns alternate; a folder of the older build has a program of the same
source (bench/bench_memories.c, and its line of CMakeLists.txt without DEFINES).
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


def turn_of(process):
    """Memories a second of each row, of one turn."""
    process.stdin.write('go\n')
    process.stdin.flush()
    found = {}
    for line in process.stdout:
        if line == 'done\n':
            return found
        row = re.match(r'(D6r?@\d+) ours (\d+)$', line)
        if row:
            found[row[1]] = float(row[2])
    sys.exit('bench_memories ended')


def memories(count, new=str(ROOT / 'build/release/bin/bench_memories'), folder='.', turns='7'):
    if not os.environ.get('CORTEX_OLDER'):
        skip('no older build in CORTEX_OLDER')
    programs = [new, str(pathlib.Path(os.environ['CORTEX_OLDER']) / 'bin/bench_memories')]
    homes = [pathlib.Path(folder) / f'memories-{count}-{which}' for which in ('now', 'then')]
    both = []
    try:
        for program, home in zip(programs, homes):
            both.append(subprocess.Popen([program, home, count], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            if both[-1].stdout.readline() != 'ready\n':
                sys.exit(f'{program} did not make {home}')
        pairs = []
        for turn in range(int(turns)):
            order = (0, 1) if turn % 2 == 0 else (1, 0)
            rates_of = {i: turn_of(both[i]) for i in order}
            pairs.append((rates_of[0], rates_of[1]))
    finally:
        for process in both:
            process.kill()
            process.wait()
    for row in pairs[0][0]:
        ratios = sorted(now[row] / max(then[row], 1) for now, then in pairs)
        what = f"a change of {count} memories{' and roots' if 'r' in row else ''}, trees on the disk / in memory, 0.2.0"
        ratio = statistics.median(ratios)
        print(f'{row} {what}: ours {statistics.median(now[row] for now, _ in pairs):.4g}, '
              f'reference {statistics.median(then[row] for _, then in pairs):.4g}, '
              f'ratio {ratio:.2f} [{ratios[0]:.2f}..{ratios[-1]:.2f}] (target {TARGET}): '
              f"{'ok' if ratio >= TARGET else 'below'}", flush=True)


def main():
    if len(sys.argv) > 2 and sys.argv[1] == 'memories':
        return memories(*sys.argv[2:])
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
