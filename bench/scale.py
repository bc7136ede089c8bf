#!/usr/bin/env python3
"""scale.py PROGRAM FILL FOLDER [--in-place] [--json FILE] [KIND=COUNT,..] - what commands cost by what was recorded.

FILL is bench/fill_home.  KIND is memories or entries (of one agent, "bench"), agents (of ten entries each), or runs (of
100 events each).
Default: memories=10000,100000 entries=10000,100000 agents=1000,100000.  Data directories FOLDER/KIND-COUNT are
made where they are missing, and kept: commands run on a copy, with --in-place on themselves.

Every command runs three times, one that reads everything once.  A row has, for each data directory, the least CPU seconds and of that run the
resident megabytes.  FILE gets all that was measured, for bench/scale_figure.py: also wall seconds (of the least
run; they depend on what else runs), page faults that read, megabytes read and written.  What of the resident
memory is the page cache's is not in it: the database is read with read(), not mapped.
How a history of steps opens is in bench/history.py.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TIMES = 3
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("CORTEX", "XDG_"))}
DEFAULT = {"memories": [10000, 100000], "entries": [10000, 100000], "agents": [1000, 100000]}
SCRATCH = pathlib.Path(tempfile.mkdtemp(prefix="cortex-scale-"))
KEY, ERRORS = SCRATCH / "key", SCRATCH / "errors"


def run(words):
    """What one command used, and its output."""
    read, write = os.pipe()
    before = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.dup2(write, 1)
        os.dup2(os.open(ERRORS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.close(read)
        os.execvpe(words[0], words, ENV)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        out = pipe.read().decode()
    _, status, used = os.wait4(pid, 0)
    if status != 0 and words[1:3] != ["run", "verify"]:  # what it says of a bundle is no matter here
        sys.exit(f"{' '.join(map(str, words))}: status {status}\n{ERRORS.read_text()}")
    return {"cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss / 1024, "wall": time.monotonic() - before,
            "faults": used.ru_majflt, "read": used.ru_inblock * 512 / 1e6, "written": used.ru_oublock * 512 / 1e6}, out


class Home:
    def __init__(self, program, folder, kind, count, fill, in_place):
        self.program, self.kind, self.count = program, kind, count
        self.actor = {"agents": "agent-0000007", "runs": "run:0000000000000007"}.get(kind, "bench")
        self.path = folder / f"{kind}-{count}"
        if not self.path.exists():
            words = {"agents": ["actors", str(count), "10"], "runs": ["runs", str(count), "100"]}.get(
                kind, [kind, str(count)])
            subprocess.run([fill, str(self.path), *words], check=True)
        if not in_place:
            copy = folder / f"{kind}-{count}.copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.path, copy)
            self.path = copy
        self.uris = []
        # A run that the data directory knows: its bundle is broken, but what is known of it is read.
        self.bundle = folder / "run_20260101_000000_00000000000000000000000000000007"
        if kind == "runs":
            self.bundle.mkdir(exist_ok=True)
            (self.bundle / "events.jsonl").write_text("")

    def ask(self, *words):
        return run([self.program, *map(str, words), "--home", str(self.path)])

    def prepare(self):
        """A former checkpoint, and memories to ask about."""
        note = self.ask("checkpoint", "--sign", KEY, "--actor", self.actor)[1]
        self.note = SCRATCH / f"{self.kind}-{self.count}.note"
        self.note.write_text(note)
        self.size = int(note.splitlines()[1])
        if self.kind == "memories":
            listed = self.ask("memory", "list", "--limit", "100", "--actor", self.actor)[1]
            self.uris = re.findall(r"matrix://cortex/\S+", listed)
            self.snapshot = json.loads(self.ask("snapshot", "--json", "--actor", self.actor)[1])["snapshot"]

    def next_uri(self):
        return self.uris.pop()


FACT = '{"statement":"the disk is full","subject":"matrix://s","predicate":"is"}'
ANY = [
    ("open, one entry read", lambda h: ["log", "--last", "1"]),
    ("`log --last 20`", lambda h: ["log", "--last", "20"]),
    ("one entry written", lambda h: ["append", "raw", "hello"]),
    ("`roots` of one agent", lambda h: ["roots"]),
    ("`checkpoint`, signed", lambda h: ["checkpoint", "--sign", KEY]),
    ("`checkpoint`, consistent with an earlier one",
     lambda h: ["checkpoint", "--sign", KEY, "--consistency-from", h.note, "--proof", "/dev/null"]),
    ("`prove --entry`", lambda h: ["prove", "--entry", 5, "--out", "/dev/null"]),
    ("`prove --entry`, in a former size", lambda h: ["prove", "--entry", 5, "--size", h.size // 2, "--out", "/dev/null"]),
    ("`export receipt`", lambda h: ["export", "receipt", 5, "--sign", KEY, "--output", "/dev/null"]),
    ("`export receipt --consistency-from`",
     lambda h: ["export", "receipt", "--consistency-from", h.size // 2, "--sign", KEY, "--output", "/dev/null"]),
    ("`snapshot`", lambda h: ["snapshot"]),
]
HOME = [  # of the whole data directory
    ("`tables status`", lambda h: ["tables", "status"]),
    ("`status`", lambda h: ["status"]),
    ("`log` of all journals", lambda h: ["log", "--last", "20"]),
    ("`session list`, none there", lambda h: ["session", "list"]),
]
RUNS = [
    ("`run verify`", lambda h: ["run", "verify", h.bundle]),
]
READ_ALL = [  # once each
    ("`show` of an entry", lambda h: ["show", f"{h.actor}/5"]),
]
MEMORIES = [
    ("`memory get`", lambda h: ["memory", "get", h.uris[0]]),
    ("`memory list --limit 20`", lambda h: ["memory", "list", "--limit", 20]),
    ("`memory write`", lambda h: ["memory", "write", "Fact", FACT]),
    ("`prove --fresh`", lambda h: ["prove", h.uris[0], "--fresh", "--out", "/dev/null"]),
    ("`prove --at` a snapshot", lambda h: ["prove", h.uris[0], "--at", h.snapshot, "--out", "/dev/null"]),
    ("`prove --absent`",
     lambda h: ["prove", "--absent", "matrix://cortex/Fact/01ARZ3NDEKTSV4RRFFQ69G5FAV#1", "--at", h.snapshot, "--out", "/dev/null"]),
    ("`prove --compact` of 50", lambda h: ["prove", "--compact", *h.uris[:50], "--at", h.snapshot, "--out", "/dev/null"]),
    ("one memory erased", lambda h: ["erase", h.next_uri(), "--reason", "bench"]),
]


def status_of(pid, name):
    return int(re.search(rf"^{name}:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1)) / 1024


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(home):
    """A server: until it answers, after it was idle, and when it was asked for inbox, sessions, histories and roots."""
    before = time.monotonic()
    server = subprocess.Popen([home.program, "serve", "--home", home.path, "--listen", "127.0.0.1:0", "--otlp", "off",
                               "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
    found = {}

    def note(what):
        found[what] = {"cpu": cpu_of(server.pid), "rss": status_of(server.pid, "VmHWM"),
                       "wall": time.monotonic() - before, "faults": 0, "read": 0, "written": 0}
    try:
        host, port = json.loads(server.stdout.readline())["url"].split("//")[1].rsplit(":", 1)
        note("server, until it answers")
        time.sleep(3)
        note("server, after 3 s without a request")
        token = (home.path / "token").read_text().strip()
        connection = http.client.HTTPConnection(host, int(port), timeout=300)

        for path in ("inbox", "sessions", "histories", f"roots?actor={home.actor}"):
            connection.request("GET", f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                sys.exit(f"{path}: {answer.status} {body[:300]}")
        note("the same, with what the first page asks")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)
        server.stdout.close()
    return found


def least(home, words, of_agent, times=TIMES):
    best = None
    for _ in range(times):
        asked = [*words(home), *(["--actor", home.actor] if of_agent else [])]
        found = home.ask(*asked)[0]
        best = found if best is None or found["cpu"] < best["cpu"] else best
    return best


def table(kind, homes, results, save):
    """Measures row by row, so that the machine's load is the same for all of a row; prints as it goes."""
    questions = [(w, f, True) for w, f in ANY + (MEMORIES if kind == "memories" else [])]
    questions += [(w, f, False) for w, f in HOME + (RUNS if kind == "runs" else [])]
    print(f"\n{kind}: " + ", ".join(f"{h.count:,}" for h in homes) + " (CPU, resident)")

    def row(what, cells):
        results[what] = cells
        print(f"| {what} | " + " | ".join(f"{c['cpu']:.2f} s, {c['rss']:.0f} MB" for c in cells.values()) + " |", flush=True)
        save()
    for what, words, of_agent in questions:
        row(what, {h.count: least(h, words, of_agent) for h in homes})
    served = [serve(h) for h in homes]
    for what in served[0]:
        row(what, {h.count: s[what] for h, s in zip(homes, served)})
    for what, words in READ_ALL:
        row(what, {h.count: least(h, words, False, 1) for h in homes})


def main():
    words, wanted, file = sys.argv[1:], {}, None
    in_place = "--in-place" in words
    words = [w for w in words if w != "--in-place"]
    if "--json" in words:
        at = words.index("--json")
        file = pathlib.Path(words[at + 1])
        del words[at:at + 2]
    if len(words) < 3:
        sys.exit(__doc__)
    program, fill, folder = words[0], words[1], pathlib.Path(words[2])
    for word in words[3:]:
        kind, counts = word.split("=")
        wanted[kind] = [int(n) for n in counts.split(",")]
    folder.mkdir(exist_ok=True)
    all_results = {}

    def save():
        if file is not None:
            file.write_text(json.dumps(all_results, indent=1) + "\n")
    try:
        run([program, "key", "new", str(KEY), "--name", "example.com/scale"])
        for kind, counts in (wanted or DEFAULT).items():
            homes = [Home(program, folder, kind, n, fill, in_place) for n in counts]
            for home in homes:
                home.prepare()
            all_results[kind] = {}
            table(kind, homes, all_results[kind], save)
    finally:
        shutil.rmtree(SCRATCH)


if __name__ == "__main__":
    main()
