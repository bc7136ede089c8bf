#!/usr/bin/env python3
"""overhead.py [--steps N] - microseconds that recording one step costs the program.

Measured in the calling thread, around each call, with a server on loopback that takes the steps at the
same time.
"""
import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from sdk_kit import Place, Server, cortex  # noqa: E402


def measure(count, call):
    times = []
    for number in range(count):
        before = time.perf_counter_ns()
        call(number)
        times.append((time.perf_counter_ns() - before) / 1000)
    return times


def step_of(cx):
    def call(number):
        with cx.step("triage") as s:
            s.saw("the limit is 500")
            s.set("memory/limit", number, because="the limit is 500")
    return call


def note_of(cx):
    return lambda number: cx.note("hello")


def tool_of(cx):
    return cx.tool(name="refund")(lambda number: number)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=5000)
    args = parser.parse_args()
    print(f"{'µs a call':<34}{'min':>9}{'median':>9}{'p99':>9}{'max':>10}")
    with Place() as p, Server(p) as s:
        for fsync in ("interval", "never", "always"):
            for name, make, key in (("note", note_of, False), ("step: saw, set, because", step_of, False),
                                    ("tool: two steps", tool_of, False), ("note, signed", note_of, True)):
                if fsync != "interval" and (make is not note_of or key):
                    continue
                try:
                    signing = cortex.SigningKey(b"\x01" * 32, "refunds") if key else False
                except cortex.MissingExtra:
                    continue
                if key:
                    p.run("key", "add", "--id", signing.key_id, "--public-key",
                          cortex._client.base64_of(signing.public))
                with s.client(key=signing, fsync=fsync) as cx:
                    count = args.steps if fsync != "always" else args.steps // 10
                    times = sorted(measure(count, make(cx)))
                    cx.flush(300)
                    assert cx.stats.dropped == cx.stats.rejected == 0, cx.stats
                print(f"{name + ', fsync=' + fsync:<34}{times[0]:9.1f}{statistics.median(times):9.1f}"
                      f"{times[len(times) * 99 // 100]:9.1f}{times[-1]:10.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
