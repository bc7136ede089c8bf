#!/usr/bin/env python3
"""POST /api/v1/steps: what agents did, recorded over HTTP and asked about at once."""
import http.client
import json
import pathlib
import signal
import subprocess
import sys
import threading
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import BIN, Place, check, main, test  # noqa: E402


class Server:
    def __init__(self, place):
        self.place = place
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", str(self.place.home), "--listen", "127.0.0.1:0", "--json"],
            env=self.place.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.url = urllib.parse.urlsplit(json.loads(self.process.stdout.readline())["url"])
        self.token = (self.place.home / "token").read_text().strip()

    def ask(self, method, path, body=None, token=None):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body=body, headers={
            "Authorization": "Bearer " + (token or self.token), "Content-Type": "application/json"})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        return status, json.loads(text) if text[:1] in b"{[" else text

    def steps(self, *steps, expect=200, **more):
        status, answer = self.ask("POST", "/api/v1/steps", {"steps": list(steps), **more})
        check(status == expect, status, answer)
        return answer

    def get(self, path, **query):
        status, answer = self.ask("GET", path + "?" + urllib.parse.urlencode(query))
        check(status == 200, path, status, answer)
        return answer

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()


@test
def steps_are_stored_and_answer_questions():
    with Place() as p, Server(p) as s:
        done = s.steps({"agent": "desk", "event": {"kind": "decision"},
                        "state_delta": {"memory": {"limit": 500}}},
                       {"agent": "desk", "state_delta": {"memory": {"limit": 900}}},
                       {"agent": "clerk", "parents": ["@desk"]})
        check(done["status"] == "ok" and done["accepted"] == 3, done)
        check([r["seq"] for r in done["results"]] == [0, 1, 0], done)
        state = s.get("/api/v1/lattice/agent/clerk/state", node="@clerk")
        check(state["verified"] and state["state"]["memory"] == {"limit": 900}, state)
        why = s.get("/api/v1/lattice/agent/desk/why", node="@desk", key="limit")
        check([c["new"] for c in why["changes"]] == [900, 500], why)
        said = s.get("/api/v1/lattice/agent/desk/why", node="@desk", text="decision")
        check([(p["node"], p["how"]) for p in said["places"]] == [(done["results"][0]["node_id"], "event")],
              said)
        for query, status in (("text=no+step+says+this", 404), ("text=x&key=limit", 422), ("", 422)):
            check(s.ask("GET", "/api/v1/lattice/agent/desk/why?node=@desk&" + query)[0] == status, query)
        check(s.get("/api/v1/lattice/agent/desk/verify", strict="true")["ok"])
        check(s.get("/api/v1/view/agent/desk/summary")["nodes"] == 2)
        names = [h["name"] for h in s.get("/api/v1/view")["histories"]]
        check(names == ["agent/desk", "agent/clerk"], names)
        for _ in range(300):  # the index follows the log
            rows = s.get("/api/v1/inbox")["items"]
            found = {json.dumps(r)[json.dumps(r).find("agent/"):].split('"')[0] for r in rows}
            if {"agent/desk", "agent/clerk"} <= found:
                break
            threading.Event().wait(0.1)
        check({"agent/desk", "agent/clerk"} <= found, rows)
        # The page sees what comes later, and the command line writes through the server.
        p.ok("lattice", "append", "--agent", "desk", "--set", "limit=1")
        for _ in range(100):
            if s.get("/api/v1/view/agent/desk/summary")["nodes"] == 3:
                break
            threading.Event().wait(0.1)
        check(s.get("/api/v1/view/agent/desk/summary")["nodes"] == 3)


@test
def the_feed_tells_of_steps():
    with Place() as p, Server(p) as s:
        connection = http.client.HTTPConnection(s.url.hostname, s.url.port, timeout=30)
        connection.request("GET", "/api/v1/feed?hints=true",
                           headers={"Authorization": "Bearer " + s.token})
        stream = connection.getresponse()
        s.steps({"agent": "desk"})
        seen = b""
        while b"event: step" not in seen:
            line = stream.readline()
            check(line, seen)
            seen += line
        connection.close()


@test
def a_key_makes_it_exactly_once():
    with Place() as p, Server(p) as s:
        batch = [{"agent": "a", "event": {"n": 1}}, {"agent": "b", "key": "own"}]
        first = s.steps(*batch, key="batch-1")
        again = s.steps(*batch, key="batch-1")
        check(again["duplicates"] == 2 and again["accepted"] == 2, again)
        check([r["hash"] for r in first["results"]] == [r["hash"] for r in again["results"]])
        s.end(signal.SIGKILL)
        s.start()
        check(s.steps(*batch, key="batch-1")["duplicates"] == 2)
        other = s.steps({"agent": "a", "event": {"n": 2}}, key="batch-1", expect=409)
        check(other["type"].endswith(":key-conflict"), other)


@test
def conflicts_name_the_head():
    with Place() as p, Server(p) as s:
        zero = s.steps({"agent": "a", "head": None})["results"][0]["hash"]
        problem = s.steps({"agent": "a", "head": None}, expect=409)
        check(problem["type"].endswith(":conflict") and zero in problem["detail"], problem)
        check(problem["errors"][0]["pointer"] == "/steps/0", problem)
        some = s.steps({"agent": "b"}, {"agent": "a", "head": None}, {"agent": "a"})
        check([r["status"] for r in some["results"]] == ["stored", "conflict", "skipped"], some)
        check(some["results"][1]["head"] == {"hash": zero, "seq": 0} and some["status"] == "partial")


@test
def many_writers_of_one_agent():
    with Place() as p, Server(p) as s:
        found, failed = [], []

        def write(who):
            try:
                for i in range(25):
                    found.extend(s.steps({"agent": "one", "key": f"{who}-{i}"})["results"])
            except Exception as error:  # shown below
                failed.append(error)

        writers = [threading.Thread(target=write, args=(who,)) for who in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        check(not failed, failed)
        check(sorted(r["seq"] for r in found) == list(range(200)))
        report = s.get("/api/v1/lattice/agent/one/verify", strict="true")
        check(report["ok"] and report["nodes"] == 200, report)


@test
def what_is_refused_is_a_problem():
    with Place() as p, Server(p) as s:
        def problem(status, kind, body):
            got, answer = s.ask("POST", "/api/v1/steps", body)
            check(got == status, got, answer)
            check(answer["type"] == "urn:cortex:problem:" + kind, answer)
            return answer

        problem(400, "malformed-json", b'{"steps":[')
        problem(400, "duplicate-key", b'{"steps":[],"steps":[]}')
        problem(422, "invalid-request", [])
        problem(422, "invalid-request", {"steps": []})
        problem(422, "invalid-request", {"steps": [{"agent": "a"}], "x": 1})
        problem(422, "invalid-request", {"steps": [{"agent": "a"}] * 1001})
        problem(422, "invalid-request", {"steps": [{"agent": "a"}], "key": ""})
        found = problem(422, "invalid-request", {"steps": [{"agent": "a", "state_delta": {"x": 1}}]})
        check("state_delta" in found["detail"], found)
        problem(422, "invalid-request", {"steps": [{"agent": "a", "parents": ["@b"]}]})
        problem(403, "forbidden", {"steps": [{"agent": "a", "signature": {
            "key_id": "k", "signature": "A" * 86}}]})
        reader = p.ok("token", "add", "--scope", "trace:read", "--name", "reader")
        status, answer = s.ask("POST", "/api/v1/steps", {"steps": [{"agent": "a"}]}, token=reader)
        check(status == 403, status, answer)


if __name__ == "__main__":
    main()
