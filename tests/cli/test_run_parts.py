#!/usr/bin/env python3
"""Long runs open in parts: the nodes of a part are those of the whole run, with the same hashes.

    test_run_parts.py [PROGRAM] [WORD..]
"""
import http.client
import json
import subprocess
import urllib.parse

from kit import BIN, Place, check, main, test

RUN = "run_20260101_000000_00000000000000000000000000000001"
EVENTS = 9000


def event(i):
    """One in fifty is the governor's, the others are of tasks that take turns."""
    ends = i in (0, EVENTS - 1) or i % 50 == 0
    return {"ts": f"2026-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}.000000Z", "level": "INFO",
            "event_type": "RUN_CREATED" if i == 0 else "RUN_FINISHED" if i == EVENTS - 1 else "NOTE", "run_id": RUN,
            "task_id": None if ends else f"task_{i // 1000}_{i % 2}", "attempt": None, "trace_id": "0" * 32,
            "payload": {"number": i}}


class Repo:
    """A data directory, and a repository with one long run."""

    def __init__(self, p, events=EVENTS):
        self.p, self.repo = p, p.folder / "repo"
        self.root = self.repo / ".runtime-cache" / "cortexpilot"
        self.file = self.root / "runs" / RUN / "events.jsonl"
        self.file.parent.mkdir(parents=True)
        (self.repo / ".gitignore").write_text(".runtime-cache/\n")
        subprocess.run(["git", "init", "-q", "-b", "main", self.repo], check=True)
        subprocess.run(["git", "-C", self.repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
                        "--allow-empty", "-m", "base"], check=True)
        self.write(events)

    def write(self, events):
        self.file.write_text("".join(json.dumps(event(i), separators=(",", ":")) + "\n" for i in range(events)))

    def expect(self, code, *args, **more):
        return self.p.expect(code, *args, cwd=self.repo, **more)

    def json(self, *args):
        return self.p.json(*args, cwd=self.repo)


@test
def a_part_has_the_nodes_of_the_whole():
    with Place() as p:
        repo = Repo(p)
        of = f"@run/{RUN}"
        for first, number in ((0, 0), (2048, 2048), (3000, 7095), (EVENTS - 1, EVENTS - 1)):
            whole = repo.json("lattice", "show", of, f"#{number}")
            part = repo.json("lattice", "show", of, f"#{number - first}", "--part", str(first))
            check(part["node"] == whole["node"], first, number, part, whole)
            check(whole["node"]["state_delta"]["memory"].popitem()[1]["number"] == number, whole)
        repo.expect(0, "lattice", "render", of, "--part", "last", err="of events 0 to 8999 only 4904 to 8999 were read")
        repo.expect(0, "lattice", "render", of, "--part", "0", out="holds: 0 errors, 0 warnings")
        check((repo.root / "places" / RUN).stat().st_size < 4000)


@test
def what_cannot_be_opened_is_named():
    with Place() as p:
        repo = Repo(p, 5000)
        of = f"@run/{RUN}"
        repo.expect(2, "lattice", "render", of, "--part", "5000", err="expected one below 5000")
        repo.expect(2, "lattice", "render", of, "--part", "x", err="the number of an entry, or last")
        repo.expect(2, "lattice", "render", f"{of}/task_0_1", "--part", "0", err="name the run alone")
        repo.expect(2, "lattice", "render", "@run/none", "--part", "0", err="there is no run none")
        lines = repo.file.read_text().splitlines(keepends=True)
        repo.file.write_text("".join(lines[:3000] + ["{}\n"] + lines[3001:]))
        repo.expect(3, "lattice", "render", of, err="event 3001 has no text 'ts'")
        repo.expect(3, "lattice", "render", of, "--part", "last", err="event 3001 has no text 'ts'")


@test
def events_that_changed_are_the_nodes_of_the_part():
    with Place() as p:
        repo = Repo(p)
        of = f"@run/{RUN}"
        repo.expect(0, "lattice", "render", of, "--part", "last")
        text = repo.file.read_text()
        repo.file.write_text(text.replace('"number":5001}', '"number":5901}'))
        whole = repo.json("lattice", "show", of, "#6000")
        part = repo.json("lattice", "show", of, "#1904", "--part", "4096")
        check(part["node"] == whole["node"], part, whole)


@test
def the_server_answers_of_parts_to_those_who_may_read_runs():
    with Place() as p:
        repo = Repo(p)
        may = {name: json.loads(p.ok("token", "add", "--name", name, "--level", "full_traces", "--json",
                                     *(w for scope in scopes for w in ("--scope", scope))))["token"]
               for name, scopes in (("all", ("trace:read", "run:read")), ("traces", ("trace:read",)))}
        server = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--otlp", "off", "--json", "--repo",
                                   repo.repo], env=p.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            host, port = json.loads(server.stdout.readline())["url"].split("//")[1].rsplit(":", 1)
            connection = http.client.HTTPConnection(host, int(port), timeout=60)

            def ask(path, token="all", code=200, **query):
                full = f"/api/v1/view/{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
                connection.request("GET", full, headers={"Authorization": f"Bearer {may[token]}"})
                answer = connection.getresponse()
                body = answer.read()
                check(answer.status == code, full, token, answer.status, body[:300])
                return json.loads(body)

            check(ask(f"run/{RUN}/extent") == {"entries": EVENTS, "entry": None, "part": 4096, "parts": True})
            check(ask(f"run/{RUN}/governor/extent")["parts"] is False)
            for first, number in ((0, 4000), (2048, 2048), (4904, 8999)):
                part = ask(f"part/{first}/run/{RUN}/node", node=f"#{number - first}")
                whole = ask(f"run/{RUN}/node", node=f"#{number}")
                for member in ("hash", "prev_hash", "seq", "agent", "t"):
                    check(part[member] == whole[member], first, number, member)
                check(ask(f"part/{first}/run/{RUN}/summary")["verified"])
            ask(f"part/0/run/{RUN}/values", code=422, node="#1")
            ask(f"part/{EVENTS}/run/{RUN}/summary", code=404)
            ask(f"part/0/run/{RUN}/governor/summary", code=501)
            for path in (f"part/0/run/{RUN}/summary", f"run/{RUN}/extent", f"run/{RUN}/summary"):
                ask(path, token="traces", code=403)
        finally:
            server.terminate()
            server.communicate()


main()
