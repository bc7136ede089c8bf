#!/usr/bin/env python3
"""kills.py [--kills N] [--seed N] - kills recording processes at random moments and counts lost steps.

Each process records steps as fast as it can, and writes the name of a step to a pipe after the call that
recorded it has returned. It is killed (SIGKILL) after 0 to 60 ms, also while the next process adopts and
delivers what the former ones left. One kill in 50 is the server's. In the end everything is delivered
and the server is asked: a step that was told and is not there is lost; more nodes than names means that
one is there twice. Exit code 1 when there is either.
"""
import argparse
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from sdk_kit import Place, Server, cortex  # noqa: E402


def record_until_killed(server, number, pipe):
    cx = server.client()
    count = 0
    while True:
        name = f"{number}-{count}"
        cx.record({"kind": "note", "text": name, "padding": "x" * (count * 37 % 900)},
                  state_delta={"memory": {name: 1}})
        os.write(pipe, name.encode() + b"\n")
        count += 1
        time.sleep(0.0005)  # so that the spool does not grow faster than it is delivered


def kill_one(server, number, seconds):
    """What the process said that it recorded."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read_end)
            record_until_killed(server, number, write_end)
        finally:
            os._exit(1)
    os.close(write_end)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    data = b""
    while True:
        more = os.read(read_end, 1 << 16)
        if not more:
            break
        data += more
    os.close(read_end)
    os.waitpid(child, 0)
    return data.decode().split("\n")[:-1]


def deliver(server, minutes=5):
    with server.client() as cx:
        end = time.monotonic() + 60 * minutes
        while any(not part.empty for part in cx._spool.parts()):
            if time.monotonic() > end:
                sys.exit(f"not everything was delivered in {minutes} minutes: {cx._last_problem}")
            time.sleep(0.02)
        return cx.stats


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    args = parser.parse_args()
    chance = random.Random(args.seed)
    told, server_kills, started = [], 0, time.monotonic()
    torn = damaged = rejected = 0
    with Place() as p, Server(p) as s:
        for number in range(args.kills):
            told += kill_one(s, number, chance.uniform(0, 0.06))
            if chance.random() < 0.02:
                s.end(signal.SIGKILL)
                s.start()
                server_kills += 1
        stats = deliver(s)
        torn, damaged, rejected = stats.torn, stats.damaged, stats.rejected
        names, nodes = s.marks(), s.count()
    lost, twice = len(set(told) - names), nodes - len(names)
    print(f"seed {args.seed}: {args.kills} kills of the recorder, {server_kills} of the server, "
          f"{time.monotonic() - started:.0f} s")
    print(f"{len(told)} steps were recorded, {nodes} are on the server: {lost} lost, {twice} twice, "
          f"{rejected} rejected, {damaged} damaged, {torn} torn tails")
    return 1 if lost or twice or rejected or damaged or not told else 0


if __name__ == "__main__":
    sys.exit(main())
