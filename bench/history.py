#!/usr/bin/env python3
"""history.py PROGRAM [STEPS] [session|whole-session|run|whole-run] - how long a long history takes to open, against a short one.

Two data directories with one agent each, of STEPS (100,000) and of 1,000 steps; with `session`, one archived session of
Claude Code each; with `run`, one governed run in progress each; with `whole-..` it is opened as a whole.  A fresh server opens
the history as the page does: how long it is, then of the newest part (of a short one: of all) the
summary, the first window, the first steps.  Both take turns, in the
order short, long; the row has the ratio of the seconds, short to long.  CX_BENCH_CLOCK=cpu counts the
CPU seconds of the server instead, its start and end included.  Next to the row stand the CPU seconds and the
greatest resident memory of the server.
"""
import http.client
import json
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TURNS = 5
WHOLE_MOST = 8192  # as in web/src/screens/debugger/part.tsx
ASKED = ("extent", "summary", "overview?from=0&to=2000&bins=400", "window?from=0&to=200", "steps?max=200")
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("CORTEX", "XDG_"))}


def session(path, count):
    """Lines of one speaker, with text and a call now and then."""
    with open(path, "w") as out:
        for i in range(count):
            second = i // 10
            content = [{"type": "text", "text": f"step {i}: " + "the ledger of the refund " * 8}]
            if i % 4 == 0:
                content.append({"type": "tool_use", "id": f"t{i}", "name": "Read", "input": {"file_path": f"/s/{i % 50}.c"}})
            out.write(json.dumps({
                "type": "assistant", "uuid": f"u{i}", "parentUuid": f"u{i - 1}" if i else None, "sessionId": "s",
                "timestamp": f"2026-11-{1 + second // 86400:02}T{second // 3600 % 24:02}:{second // 60 % 60:02}:"
                             f"{second % 60:02}.{i % 10}00Z",
                "message": {"role": "assistant", "content": content}}) + "\n")


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, env=ENV)
    if done.returncode != 0:
        sys.exit(f"{words}: exit {done.returncode}: {done.stderr.decode()[-500:]}")
    return done.stdout


def archive(program, folder, count):
    """The home, and the name of the history."""
    root, home = folder / f"projects{count}", folder / f"home{count}"
    root.mkdir()
    session(root / "long.jsonl", count)
    run(program, "init", "--no-repo", "--home", home)
    run(program, "watch", "--once", root, "--home", home)
    (root / "long.jsonl").unlink()
    settle(program, home, count)
    return home, "session/long"


def make(program, folder, count):
    lines, lattice, home = folder / f"{count}.jsonl", folder / f"{count}.lattice", folder / f"home{count}"
    session(lines, count)
    lattice.write_bytes(run(program, "import", "claude-code", lines))
    run(program, "init", "--no-repo", "--home", home)
    run(program, "lattice", "import", "--seal", lattice, "--home", home)
    lines.unlink()
    lattice.unlink()
    return home, "agent/main"


def govern(program, folder, count):
    """A repository with one run of so many events, as the governor and eight tasks write them."""
    repo, run_id = folder / f"repo{count}", f"run_20260101_000000_{count:032x}"
    bundle, home = repo / ".runtime-cache/cortexpilot/runs" / run_id, folder / f"home{count}"
    bundle.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "-b", "main", repo], check=True)
    with open(bundle / "events.jsonl", "w") as out:
        for i in range(count):
            second = i // 10
            out.write(json.dumps({
                "ts": f"2026-11-{1 + second // 86400:02}T{second // 3600 % 24:02}:{second // 60 % 60:02}:"
                      f"{second % 60:02}.{i % 10}00000Z",
                "level": "INFO", "event_type": "TOOL_INVOCATION", "run_id": run_id,
                "task_id": None if i % 50 == 0 else f"task_{i // 1000}_{i % 8}", "attempt": None, "trace_id": "0" * 32,
                "payload": {"argv": ["ls", "-l", f"/tmp/{i}"], "text": "the ledger of the refund " * 8}},
                separators=(",", ":")) + "\n")
    run(program, "init", "--no-repo", "--home", home)
    return home, f"run/{run_id}"


def part(extent, name):
    """The name of what the page opens."""
    half = extent["part"] // 2
    if not extent["parts"] or extent["entries"] <= WHOLE_MOST:
        return name
    return f"part/{max(0, (extent['entries'] - 1) // half * half - half)}/{name}"


def peak(server):
    """The greatest resident memory of the process, in MB."""
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def serve(program, home):
    """The server, and a function that asks it; None while there is no index."""
    repo = home.parent / home.name.replace("home", "repo")
    more = ["--repo", repo] if repo.is_dir() else []
    server = subprocess.Popen([program, "serve", "--home", home, "--listen", "127.0.0.1:0", "--otlp", "off", "--json", *more],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    host, port = json.loads(server.stdout.readline())["url"].split("//")[1].rsplit(":", 1)
    token = (home / "token").read_text().strip()
    connection = http.client.HTTPConnection(host, int(port), timeout=600)

    def ask(path):
        connection.request("GET", f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status not in (200, 503):
            sys.exit(f"{path}: {answer.status} {body[:300]}")
        return body if answer.status == 200 else None

    return server, ask


def end(server):
    server.send_signal(signal.SIGTERM)
    server.wait(timeout=600)
    server.stdout.close()


def settle(program, home, count):
    """Until the index has the steps, so that it is not made while something is measured."""
    server, ask = serve(program, home)
    try:
        while sum(h["steps"] for h in json.loads(ask("histories") or '{"histories":[]}')["histories"]) < count:
            time.sleep(1)
    finally:
        end(server)


def opened(program, home, name, whole):
    """Seconds of each question, the server's CPU seconds, its memory, and the bytes that came."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    server, ask = serve(program, home)
    try:
        took, size = [], 0
        for path in ASKED:
            before = time.monotonic()
            body = ask(f"view/{name}/{path}")
            took.append(time.monotonic() - before)
            size += len(body)
            if path == "extent" and not whole:
                name = part(json.loads(body), name)
        memory = peak(server)
    finally:
        end(server)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime, memory, size


def main():
    kind = sys.argv.pop() if sys.argv[-1] in ("session", "whole-session", "run", "whole-run") else "agent"
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 100000
    row = {"agent": "W1 opening a history", "session": "W2 opening a session",
           "whole-session": "opening a whole session", "run": "opening a run", "whole-run": "opening a whole run"}[kind]
    made = make if kind == "agent" else govern if kind.endswith("run") else archive
    with tempfile.TemporaryDirectory() as name:
        homes = {n: made(program, pathlib.Path(name), n) for n in (1000, count)}
        taken, cpu, memory, sizes = ({n: [] for n in homes} for _ in range(4))
        for _ in range(TURNS):
            for n, (home, history) in homes.items():
                took, used, most, sizes[n] = opened(program, home, history, kind.startswith("whole-"))
                taken[n].append(took)
                cpu[n].append(used)
                memory[n].append(most)
        for n in homes:
            each = [statistics.median(turn[i] for turn in taken[n]) for i in range(len(ASKED))]
            print(f"  {n} steps: {sizes[n]} bytes; " + ", ".join(
                f"{path.split('?')[0]} {1000 * seconds:.0f} ms" for path, seconds in zip(ASKED, each)) +
                f"; {statistics.median(cpu[n]):.2f} CPU seconds and {max(memory[n])} MB of the server")
        by_cpu = os.environ.get("CX_BENCH_CLOCK") == "cpu"
        long, short = (cpu[n] if by_cpu else [sum(turn) for turn in taken[n]] for n in (count, 1000))
        ratios = sorted(a / b for a, b in zip(short, long))
        print(f"{row} of 1,000 steps / of {count}: ours {statistics.median(long):.3f}, reference "
              f"{statistics.median(short):.3f}, ratio {statistics.median(ratios):.2f} [{ratios[0]:.2f}..{ratios[-1]:.2f}]")


main()
