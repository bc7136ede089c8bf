#!/usr/bin/env python3
"""A CIRIS agent that nobody has changed delivers: no token, its own key, connectivity events.

The requests are those of the agent's adapter, in its order.  Closes with
`N passed, N failed, N skipped`.
"""
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
from agent import Agent, batch, url64  # noqa: E402
from kit import BIN, main, test  # noqa: E402
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json

ENV = {k: v for k, v in os.environ.items()
       if k not in ("CORTEX_HOME", "CORTEX_ACTOR", "XDG_DATA_HOME")}
API = "/api/v1/covenant"


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)


class Server:
    """A data directory of its own, served with these options."""

    def __init__(self, *options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cortex-open-"))
        self.home = self.folder / "home"
        self.command("init", "--no-repo", "--segment-size", "1M")
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", self.home, "--listen", "127.0.0.1:0", "--otlp", "off", "--json",
             *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
        self.host = json.loads(self.process.stdout.readline())["url"].split("//")[1]
        self.token = (self.home / "token").read_text().strip()
        self.admin = self.command("token", "add", "--scope", "key:admin", "--name", "admin")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self, sig=signal.SIGTERM, expect=0):
        self.process.send_signal(sig)
        assert self.process.wait(timeout=60) == expect, self.process.returncode

    def command(self, *args, expect=0):
        done = subprocess.run([BIN, *args, "--home", self.home], capture_output=True, env=ENV,
                              timeout=120)
        assert done.returncode == expect, (args, done.returncode, done.stderr)
        return done.stdout.decode().strip()

    def ask(self, method, path, body=None, token="", headers=None):
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = "Bearer " + (token or self.token)
        if body is not None:
            body, headers["Content-Type"] = json.dumps(body), "application/json"
        connection = http.client.HTTPConnection(self.host, timeout=30)
        connection.request(method, path, body=body, headers=headers)
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def get(self, path):
        return self.ask("GET", path)

    def problem(self, status, kind, method, path, **more):
        answer = self.ask(method, path, **more)
        assert answer.status == status, (answer.status, answer.body[:300])
        assert answer.json()["type"] == "urn:cortex:problem:" + kind, answer.body
        assert answer.headers["Retry-After"], "no Retry-After"
        return answer

    def post(self, *traces):
        answer = self.ask("POST", API + "/events", body=batch(*traces))
        assert answer.status == 200, answer.body
        return answer.json()

    def register(self, agent):
        answer = self.ask("POST", API + "/public-keys", body=agent.registration(),
                          token=self.admin)
        assert answer.status == 201, answer.body

    def traces(self, query=""):
        answer = self.get(API + "/traces" + query)
        return answer.json()["traces"] if answer.status == 200 else []

    def wait_for(self, check):
        end = time.time() + 30
        while not check():
            assert time.time() < end, "it did not come"
            time.sleep(0.05)

    def metric(self, name):
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split(" ")[1])
        raise KeyError(name)


class Adapter:
    """What the adapter of a CIRIS agent sends, and nothing else."""

    def __init__(self, server, name):
        self.server, self.agent, self.count = server, Agent(name), 0

    def register(self, key=None):
        body = {"key_id": self.agent.key_id, "algorithm": "ed25519",
                "public_key_base64": url64((key or self.agent).key.public),
                "description": "Agent key (datum)", "created_by": "unified signing key"}
        return self.server.ask("POST", API + "/public-keys", body=body, token=None)

    def events(self, body, **more):
        return self.server.ask("POST", API + "/events", body=body, token=None, **more)

    def connectivity(self, what, padding=0):
        at = "2026-01-01T04:20:0%d+00:00" % self.count
        self.count += 1
        components = [{"component_type": "connectivity", "event_type": what, "timestamp": at,
                       "data": {"version": "1.8.5", "trace_level": "generic",
                                "correlation_metadata": {"agent_template": "datum" + "x" * padding}}}]
        trace = {"trace_id": f"connectivity-{what}-{at}", "thought_id": "connectivity-" + what,
                 "task_id": None, "agent_id_hash": self.agent.name, "started_at": at,
                 "completed_at": at, "components": components,
                 "signature": url64(self.agent.key.sign(
                     json.dumps(components, sort_keys=True).encode())),
                 "signature_key_id": self.agent.key_id}
        return self.events({"events": [{"event_type": "connectivity_" + what, "trace": trace}],
                            "batch_timestamp": at, "consent_timestamp": "2025-12-15T13:00:00Z",
                            "trace_level": "generic",
                            "correlation_metadata": {"agent_template": "datum"}})

    def traces(self, *names, **more):
        # Forms B to E do not sign the id: what is signed has to differ.
        made = [self.agent.trace(name, second=zlib.crc32(name.encode()) % 3000) for name in names]
        return self.events(batch(*made, trace_level="generic",
                                 correlation_metadata={"agent_role": "support"}, **more))


def open_server(*options):
    return Server("--open-signed", *options)


def journal(server, actor):
    """The kinds of an actor's entries; none when there is no such journal."""
    listed = json.loads(server.command("roots", "--json"))
    if actor not in json.dumps(listed):
        return []
    lines = server.command("log", "--all", "--actor", actor, "--json").splitlines()
    return [json.loads(line)["kind"] for line in lines]


def pending(server):
    return json.loads(server.command("key", "pending", "--json"))["keys"]


@test
def an_unchanged_agent_delivers():
    with open_server() as s:
        adapter = Adapter(s, "datum-1")
        answer = adapter.register()
        assert answer.status == 200 and answer.json()["status"] == "pending", answer.body
        assert adapter.register().json()["status"] == "pending"
        for answer in (adapter.connectivity("startup"), adapter.traces("t1", "t2", "t3"),
                       adapter.connectivity("shutdown")):
            found = answer.json()
            assert answer.status == 200 and found["status"] == "ok", answer.body
            assert {r["status"] for r in found["results"]} == {"pending"}, found
            assert found["pending"] == found["accepted"] == found["received"], found
        # It waits apart: no journal, no row, no batch, no measure.
        assert journal(s, "datum-1") == [] and journal(s, "batches") == []
        assert s.traces("?verified=any") == []
        capacity = s.get(API + "/capacity/datum-1").json()
        assert capacity["score"] is None and capacity["n"] == 0, capacity
        waits, = pending(s)
        assert (waits["key_id"], waits["events"]) == (adapter.agent.key_id, 5), waits
        assert waits["address"] == "127.0.0.1" and waits["description"] == "Agent key (datum)"
        assert waits["public_key"] == url64(adapter.agent.key.public), waits
        assert s.metric("cortex_pending_keys") == 1 and s.metric("cortex_pending_events") == 5
        # Approved, it is judged in the order of arrival.
        done = json.loads(s.command("key", "approve", adapter.agent.key_id, "--json"))
        assert (done["events"], done["accepted"], done["rejected"]) == (5, 5, 0), done
        assert pending(s) == []
        assert journal(s, "datum-1") == ["trace.connectivity"] + 3 * ["trace.received"] + \
            ["trace.connectivity"], journal(s, "datum-1")
        assert journal(s, "batches") == 3 * ["trace.batch"]
        s.wait_for(lambda: len(s.traces()) == 3)
        assert all(t["signature_verified"] for t in s.traces())
        entry = s.get("/api/v1/proofs/entry?actor=batches&seq=1")
        assert entry.status == 200, entry.body
        # From now on nothing waits.
        found = adapter.traces("t4").json()
        assert [r["status"] for r in found["results"]] == ["stored"] and "pending" not in found
        found = adapter.connectivity("reconnect").json()
        assert [r["status"] for r in found["results"]] == ["stored"], found
        assert adapter.register().json()["status"] == "exists"
        s.wait_for(lambda: len(s.traces()) == 4)
        s.stop()


@test
def the_example_of_the_specification_is_accepted():
    """It has text, and neither batch, event nor trace states a level."""
    with open_server() as s:
        adapter = Adapter(s, "datum-2")
        s.register(adapter.agent)
        trace = adapter.agent.trace("example", level="full_traces")
        del trace["trace_level"]
        body = {"events": [{"event_type": "complete_trace", "trace": trace}],
                "batch_timestamp": "2026-01-01T04:20:20Z",
                "consent_timestamp": "2026-01-01T00:00:00Z"}
        found = adapter.events(body).json()
        assert found["results"][0]["status"] == "stored", found
        s.wait_for(lambda: s.traces("?level=full_traces"))
        assert s.traces("?level=full_traces")[0]["trace_level"] == "full_traces"
        reader = s.command("token", "add", "--scope", "trace:read", "--level", "generic")
        low = s.ask("GET", API + "/traces/example", token=reader)
        assert low.status == 200 and b"because" not in low.body, low.body
        # A level that is stated is kept to.
        again = adapter.agent.trace("stated", level="full_traces", second=1)
        del again["trace_level"]
        found = adapter.events(batch(again, trace_level="generic")).json()
        assert found["results"][0]["reason"] == "level_violation", found
        # With a token nothing changes: generic is meant.
        found = s.post(again)
        assert found["results"][0]["reason"] == "level_violation", found
        s.stop()


def chained(agent, count):
    """Traces of the level generic whose audit entries form a chain of spec 1.0."""
    actions = ["speak", "ponder", "tool", "task_complete"]
    made, previous = [], ""
    for i in range(count):
        trace = agent.trace("link-%d" % (i + 1), second=i)
        action = trace["components"][5]
        text = previous + actions[i % 4] + "true" + action["timestamp"]
        previous = hashlib.sha256(text.encode()).hexdigest()
        action["data"]["audit_entry_hash"] = previous
        trace["signature"] = url64(agent.key.sign(
            json.dumps(trace["components"], sort_keys=True).encode()))
        made.append(trace)
    return made


@test
def a_missing_entry_is_found_at_the_lowest_level():
    """No trace states its action, and no option is given."""
    with open_server() as s:
        adapter = Adapter(s, "datum-10")
        s.register(adapter.agent)
        traces = chained(adapter.agent, 8)
        left_out = traces.pop(4)
        assert adapter.events(batch(*traces)).json()["accepted"] == 7
        s.wait_for(lambda: len(s.traces()) == 7)
        chain = s.get(API + "/chain/datum-10").json()
        assert (chain["verdict"], chain["profile"]) == ("broken", "spec-1.0"), chain
        assert [f["kind"] for f in chain["findings"]] == ["gap", "unchecked"], chain
        assert chain["findings"][0]["seq"] == 4 and chain["findings"][0]["missing"] == 1, chain
        shown = s.command("trace", "chain", "datum-10", expect=1)
        assert "1 missing before 6" in shown, shown
        found = json.loads(s.command("detect", "--json", expect=1))
        assert "hash_chain" in json.dumps(found), found
        # The entry was only late: with it the chain is whole.
        assert adapter.events(batch(left_out)).json()["accepted"] == 1
        s.wait_for(lambda: len(s.traces()) == 8)
        chain = s.get(API + "/chain/datum-10").json()
        assert (chain["verdict"], chain["findings"]) == ("holds", []), chain
        s.stop()


@test
def without_the_option_a_token_is_needed():
    with Server() as s:
        adapter = Adapter(s, "datum-3")
        assert adapter.register().status == 401
        assert adapter.connectivity("startup").status == 401
        assert adapter.traces("t1").status == 401
        s.stop()


@test
def nothing_else_is_open():
    with open_server() as s:
        for method, path in [("GET", "/traces"), ("GET", "/public-keys"), ("GET", "/alerts"),
                             ("POST", "/check"), ("POST", "/public-keys/k/revoke")]:
            body = {} if method == "POST" else None
            assert s.ask(method, API + path, token=None, body=body).status == 401, path
        adapter = Adapter(s, "datum-4")
        body = batch(adapter.agent.trace("t"))
        page = adapter.events(body, headers={"Origin": "https://evil.example"})
        assert page.status == 403, page.body
        wrong = s.ask("POST", API + "/events", body=body, token="cortex_wrong")
        assert wrong.status == 401, "a token that is shown must be valid"
        s.stop()


@test
def only_what_a_pending_key_signed_waits():
    with open_server() as s:
        adapter, thief = Adapter(s, "datum-5"), Agent("thief")
        before = s.command("roots", "--json")
        found = adapter.traces("early").json()
        assert found["results"][0]["reason"] == "key_unknown", found
        assert adapter.register().status == 200
        assert adapter.register(key=thief).status == 409, "an id has one key"
        forged = adapter.agent.trace("forged")
        forged["components"][2]["data"]["csdma"]["plausibility_score"] = 0.1
        found = adapter.events(batch(forged)).json()
        assert found["results"][0]["reason"] == "signature_invalid", found
        text = adapter.agent.trace("text", level="full_traces")
        text["trace_level"] = "generic"
        found = adapter.events(batch(text)).json()
        assert found["results"][0]["reason"] == "level_violation", found
        long = adapter.connectivity("startup", padding=20000).json()
        assert long["results"][0]["reason"] == "limit_exceeded", long
        assert pending(s)[0]["events"] == 0
        assert s.command("roots", "--json") == before, "strangers made the ledger grow"
        s.stop()


@test
def a_rejected_key_is_discarded_and_does_not_come_back():
    with open_server() as s:
        adapter = Adapter(s, "datum-6")
        adapter.register()
        adapter.traces("t1", "t2")
        s.command("key", "reject", adapter.agent.key_id, expect=2)
        done = json.loads(s.command("key", "reject", adapter.agent.key_id, "--reason", "not ours",
                                    "--json"))
        assert done["status"] == "rejected" and done["rejected"] == 2, done
        assert pending(s) == [] and journal(s, "trust") == ["trace.key_rejected"]
        assert adapter.register().status == 403
        assert adapter.traces("t3").json()["results"][0]["reason"] == "key_unknown"
        s.command("key", "approve", adapter.agent.key_id, expect=2)
        # An administrator may still admit it.
        s.register(adapter.agent)
        assert adapter.traces("t4").json()["results"][0]["status"] == "stored"
        s.stop()


@test
def what_was_accepted_survives_a_kill():
    with open_server() as s:
        adapter = Adapter(s, "datum-7")
        adapter.register()
        assert adapter.traces("t1", "t2").json()["pending"] == 2
        assert adapter.traces("t1", "t2").json()["pending"] == 2, "sent again"
        s.stop(signal.SIGKILL, expect=-signal.SIGKILL)
        assert pending(s)[0]["events"] == 2
        done = s.command("key", "approve", adapter.agent.key_id, "--agent", "datum-7")
        assert "2 events waited, 2 recorded, 0 rejected" in done, done
        assert journal(s, "datum-7") == 2 * ["trace.received"]
        keys = json.loads(s.command("key", "list", "--json"))["keys"]
        assert keys[0]["agents"] == ["datum-7"], keys


@test
def floods_of_unknown_keys_stay_within_the_bounds():
    with open_server() as s:
        first = Adapter(s, "datum-8")
        first.register()
        assert first.traces("kept").json()["pending"] == 1
        for i in range(99):
            body = {"key_id": "flood-%d" % i, "public_key_base64": url64(bytes([i + 1]) * 32)}
            answer = s.ask("POST", API + "/public-keys", body=body, token=None)
            assert answer.status == 200, (i, answer.body)
        late = Adapter(s, "datum-late")
        problem = s.problem(429, "pending-full", "POST", API + "/public-keys", token=None,
                            body=late.agent.registration()).json()
        assert "cortex key approve" in problem["detail"], problem
        assert first.register().status == 200, "who waits already is not refused"
        # The share of one key: 8 MiB.
        big = [first.agent.trace("big-%d" % i, level="full_traces", second=i, padding=900000)
               for i in range(10)]
        assert first.events(batch(*big[:5])).json()["pending"] == 5
        small = first.agent.trace("small", second=20)
        s.problem(429, "pending-full", "POST", API + "/events", token=None,
                  body=batch(small, *big[5:]))
        assert [k["events"] for k in pending(s) if k["key_id"] == first.agent.key_id] == [6], \
            "a refused batch is refused whole"
        done = json.loads(s.command("key", "approve", first.agent.key_id, "--json"))
        assert (done["events"], done["accepted"]) == (6, 6), done
        assert late.register().status == 200, "there is a place again"
        s.stop()


@test
def keys_and_addresses_have_a_rate():
    with open_server("--open-events", "1", "--open-requests", "8") as s:
        adapter = Adapter(s, "datum-9")
        s.register(adapter.agent)
        body = batch(*[adapter.agent.trace("r%d" % i, second=i) for i in range(400)])
        assert adapter.events(body).json()["accepted"] == 400
        assert adapter.events(body).json()["accepted"] == 400
        answer = s.problem(429, "rate", "POST", API + "/events", token=None, body=body)
        assert "nothing of this batch was stored" in answer.json()["detail"]
        # Junk in another's name does not use up that key's rate.
        junk = adapter.agent.trace("junk")
        junk["signature"] = url64(bytes(64))
        assert adapter.events(batch(*[junk] * 300)).json()["rejected"] == 300
        assert adapter.events(batch(adapter.agent.trace("r1", second=1))).json()["accepted"] == 1
        statuses = [adapter.traces().status for _ in range(5)]
        assert statuses[:2] == [200, 200] and statuses[-1] == 429, statuses
        s.problem(429, "rate", "POST", API + "/events", token=None, body=batch())
        assert s.post(adapter.agent.trace("with-token", second=500))["accepted"] == 1
        s.stop()


main()
