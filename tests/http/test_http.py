#!/usr/bin/env python3
"""The server from outside: every route, every code, limits, tokens, ends.

    test_http.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

CORTEX_HTTP_FULL=1 does it at full size (9,000 idle connections, 200 kills).  Closes with
`N passed, N failed, N skipped`.
"""
import base64
import concurrent.futures
import http.client
import json
import os
import re
import pathlib
import random
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
from agent import Agent, batch  # noqa: E402
from kit import BIN, afterwards, main, skip, test  # noqa: E402
from server_kit import API, ENV, JSON, Answer, Server  # noqa: E402,F401
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json

FULL = os.environ.get("CORTEX_HTTP_FULL") == "1"


def raw(server, data, seconds=20, then=None):
    """Sends bytes as they are; what came back until the peer closed or nothing came."""
    with socket.create_connection((server.host, server.port), timeout=seconds) as s:
        s.sendall(data)
        if then:
            then(s)
        got = b""
        try:
            while chunk := s.recv(65536):
                got += chunk
                head, _, rest = got.partition(b"\r\n\r\n")
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:") and \
                            len(rest) >= int(line.split(b":")[1]):
                        return got
        except (ConnectionResetError, socket.timeout):
            pass
        return got


def code_of(got):
    return int(got.split(b" ")[1]) if got.startswith(b"HTTP/1.") else None


def shared(function):
    """A test over the one server that is started for all of them."""
    def run():
        function(common())
    run.__name__ = function.__name__
    run.__doc__ = function.__doc__
    return test(run)


_common = []


def common():
    if not _common:
        server = Server()
        server.agent = Agent("a1b2c3d4e5f60718")
        server.register(server.agent)
        _common.append(server)
    return _common[0]


# --- what it is for ------------------------------------------------------------------------------


@shared
def a_trace_is_stored_found_and_read(s):
    agent = s.agent
    done = s.post(agent.trace("first", second=1))
    assert done["status"] == "ok" and done["accepted"] == 1 and done["received"] == 1, done
    result = done["results"][0]
    assert result["status"] == "stored" and result["form"] == "B", result
    assert result["entry"]["actor"] == agent.name and len(result["content_sha256"]) == 64, result
    found = s.wait_for(lambda: s.traces("?task_id=task-1&agent_id=" + agent.name))
    assert found[0]["trace_id"] == "first" and found[0]["signature_verified"] is True, found
    assert found[0]["scores"]["dsdma"] == 0, "a score of 0 is 0"
    one = s.get(API + "/traces/first").json()
    assert one["trace"]["trace_id"] == "first" and one["verdict"]["verdict"] == "holds", one
    assert s.get("/api/v1/accord/traces/first").json() == one


@shared
def a_trace_sent_again_is_a_duplicate(s):
    trace = s.agent.trace("twice", second=2)
    first, second = s.post(trace)["results"][0], s.post(trace)["results"][0]
    assert (first["status"], second["status"]) == ("stored", "duplicate"), (first, second)
    assert first["entry"] == second["entry"]
    s.wait_for(lambda: s.traces("?limit=1000"))
    time.sleep(0.3)
    assert [t["trace_id"] for t in s.traces("?limit=1000")].count("twice") == 1


@shared
def exactly_once_when_many_send_the_same(s):
    traces = [s.agent.trace("many-%d" % i, second=100 + i) for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: s.post(*traces), range(8)))
    entries = {(r["trace_id"], r["entry"]["seq"]) for a in answers for r in a["results"]}
    stored = [r for a in answers for r in a["results"] if r["status"] == "stored"]
    assert len(entries) == 8 and len(stored) == 8, (len(entries), len(stored))


@shared
def one_bad_event_does_not_reject_its_neighbours(s):
    good, bad = s.agent.trace("good", second=3), s.agent.trace("bad", second=4)
    bad["components"][2]["data"]["csdma"]["plausibility_score"] = 0.8
    done = s.post(good, bad)
    assert done["status"] == "partial" and done["rejected_traces"] == ["bad"], done
    assert done["errors"] == ["bad: Invalid signature"], done
    stranger = Agent("ffff0000ffff0000")
    done = s.post(stranger.trace("s1"))
    assert done["status"] == "rejected", done
    assert done["errors"] == ["s1: Unknown signer key: " + stranger.key_id], done
    nan = json.dumps(batch(good, bad)).replace("0.8", "NaN")
    done = s.ask("POST", API + "/events", body=nan).json()
    assert [r["status"] for r in done["results"]] == ["duplicate", "rejected"], done
    assert done["results"][1]["reason"] == "number_not_finite", done
    # A member that is given twice makes the trace unreadable, but not which one it is.
    named = '"trace_id": "bad"'
    text = json.dumps(batch(good, bad)).replace(named, named + ', "x": 1, "x": 2')
    done = s.ask("POST", API + "/events", body=text).json()
    assert done["results"][1]["reason"] == "duplicate_key", done
    assert done["results"][1]["trace_id"] == "bad" and done["rejected_traces"] == ["bad"], done
    assert done["errors"] == ["bad: duplicate_key"], done
    text = json.dumps(batch(good, bad)).replace(named, named + ', "trace_id": "b"')
    done = s.ask("POST", API + "/events", body=text).json()
    assert done["results"][1]["trace_id"] is None and done["rejected_traces"] == [], done
    assert done["errors"] == ["unknown: duplicate_key"], done


@shared
def an_empty_batch_is_ok(s):
    assert s.post()["status"] == "ok"


@shared
def read_routes_answer_as_documented(s):
    s.post(s.agent.trace("reading", second=5))
    s.wait_for(lambda: s.get(API + "/traces/reading").status == 200)
    name = s.agent.name
    for path in ["/chain/" + name, "/capacity/" + name, "/wakeup/" + name, "/alerts",
                 "/alerts?status=all&limit=5", "/public-keys"]:
        answer = s.get(API + path)
        assert answer.status == 200 and answer.type == JSON, (path, answer.status, answer.body)
        answer.json()
    keys = s.get(API + "/public-keys").json()
    assert s.agent.key_id in json.dumps(keys), keys


@shared
def histories_answer_as_the_command_does(s):
    s.post(s.agent.trace("lattice", second=6))
    branch = "/api/v1/lattice/agent/" + s.agent.name
    heads = s.get(branch + "/heads")
    assert heads.status == 200, (heads.status, heads.body)
    assert heads.json()["verified"] is True, heads.body
    node = "%40agent%2F" + s.agent.name
    state = s.get(branch + "/state?node=" + node)
    assert state.status == 200 and "THOUGHT_START" in json.dumps(state.json()), state.body[:300]
    why = s.get(branch + "/why?node=" + node + "&key=ASPDMA_RESULT")
    assert why.status == 200 and why.json(), why.body[:300]
    assert s.get(branch + "/heatmap").status == 200
    assert s.get(branch + "/show?node=" + node).status == 200
    assert s.get(branch + "/verify?strict=1").status == 200
    assert s.get(branch + "/bisect?node=" + node + "&predicate=/memory/THOUGHT_START").status == 200
    svg = s.get(branch + "/render?form=svg")
    assert svg.type == "image/svg+xml" and svg.body.lstrip().startswith(b"<"), svg.body[:80]
    agent = "agent%2F" + s.agent.name
    assert s.get(f"/api/v1/lattice/all/compare?a={agent}&b={agent}").status == 200
    s.problem(404, "not-found", "GET", branch + "/state?node=nobody")
    s.problem(404, "not-found", "GET", "/api/v1/lattice/agent/0000000000000000/heads")


@shared
def proofs_hold_for_the_program_that_checks_them(s):
    s.post(s.agent.trace("proof", second=7))
    verify = os.path.join(os.path.dirname(BIN), "cortex-verify")
    roots = s.get("/api/v1/roots?actor=" + s.agent.name).json()["actors"][0]
    answer = s.get(f"/api/v1/proofs/entry?actor={s.agent.name}&seq=0").json()
    assert answer["journal_size"] >= roots["journal_size"] > 0, (answer, roots)
    s.problem(404, "not-found", "GET", f"/api/v1/proofs/entry?actor={s.agent.name}&seq=999999")
    s.problem(404, "not-found", "GET", "/api/v1/proofs/entry?actor=nobody&seq=0")
    size = answer["journal_size"]
    grown = s.get(f"/api/v1/proofs/consistency?actor={s.agent.name}&from=1&to={size}")
    assert grown.status == 200 and grown.json()["proof"], grown.body
    bytes_ = s.get(f"/api/v1/proofs/entry?actor={s.agent.name}&seq=0&size={size}&raw=1")
    assert bytes_.type == "application/octet-stream"
    assert bytes_.body == base64.b64decode(answer["proof"]), "raw=1 gives the same proof"
    if not os.path.exists(verify):
        skip("no cortex-verify beside the program")
    with tempfile.NamedTemporaryFile(suffix=".proof") as file:
        file.write(bytes_.body)
        file.flush()
        done = subprocess.run([verify, file.name, "--root", answer["journal_root"], "--size",
                               str(size)], capture_output=True)
        assert done.returncode in (0, 2, 3), done.stdout


@shared
def an_evidence_file_can_be_downloaded(s):
    s.post(s.agent.trace("shown", second=9))
    answer = s.get("/api/v1/evidence?id=shown")
    assert answer.status == 200 and answer.type == "application/vnd.cortex.evidence", answer.body[:300]
    assert answer.headers["Content-Disposition"].startswith("attachment"), answer.headers
    assert answer.body.startswith(b"<!DOCTYPE html>"), answer.body[:80]
    s.problem(404, "not-found", "GET", "/api/v1/evidence?id=nothing-of-that-name")
    verify = os.path.join(os.path.dirname(BIN), "cortex-verify")
    if not os.path.exists(verify):
        skip("no cortex-verify beside the program")
    with tempfile.NamedTemporaryFile(suffix=".cxe") as file:
        file.write(answer.body)
        file.flush()
        done = subprocess.run([verify, file.name], capture_output=True)
        assert done.returncode == 3 and b"NotAnchored" in done.stdout, done.stdout
        done = subprocess.run([verify, "--self-consistent", file.name], capture_output=True)
        assert done.returncode == 0 and b"about   trace shown" in done.stdout, done.stdout


@shared
def memory_proofs_without_members_are_refused(s):
    uri = "matrix%3A%2F%2Fcortex%2FFact%2F01HF7YAT000000000000000003%231"
    s.problem(404, "not-found", "GET",
              f"/api/v1/proofs/memory?actor={s.agent.name}&uri={uri}")
    s.problem(422, "invalid-parameter", "GET",
              f"/api/v1/proofs/memory?actor={s.agent.name}&uri=nonsense")


@shared
def snapshots_and_checkpoints_are_listed(s):
    actor = "holder"
    for n in (1, 2):
        s.command("memory", "write", "Belief", json.dumps(
            {"subject": "s", "statement": f"b{n}", "stance": "believe"}), "--actor", actor)
        s.command("snapshot", "make", "--actor", actor)
    listed = s.get(f"/api/v1/snapshots?actor={actor}").json()
    assert [item["snapshot"] for item in listed["items"]] == [1, 0] and listed["count"] == 2, listed
    assert listed["items"][1]["journal_size"] == 1 and not listed["items"][0]["sealed"], listed
    roots = s.get(f"/api/v1/roots?actor={actor}").json()["actors"][0]
    assert listed["items"][0]["overall_root"] == roots["overall_root"], (listed, roots)
    assert len(s.get(f"/api/v1/snapshots?actor={actor}&limit=1").json()["items"]) == 1
    s.problem(404, "not-found", "GET", "/api/v1/snapshots?actor=nobody")
    s.problem(422, "invalid-parameter", "GET", "/api/v1/snapshots")
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "k")
        s.command("key", "new", "--name", "log.example/holder", key)
        s.command("checkpoint", "--sign", key, "--actor", actor)
    found = [item for item in s.get("/api/v1/checkpoints").json()["items"]
             if item["origin"] == "log.example/holder"]
    assert len(found) == 1 and found[0]["root"] == roots["journal_root"], (found, roots)
    assert found[0]["note"].startswith("log.example/holder\n2\n"), found


# --- problems ------------------------------------------------------------------------------------


@shared
def paths_and_methods(s):
    for path in ["/assets/nothing.js", "/nothing", "/api/v1/covenant", API + "/traces/", API + "//traces",
                 "/api/v1/covenant/traces/a/b/c", "/api/v1/covenant/../healthz",
                 "/api/v1/covenant/%2e%2e/%2e%2e/healthz", "/%2e%2e/%2e%2e/etc/passwd",
                 "/healthz%00", "/healthz/%00", API + "/traces/%ff%fe", API + "/traces/%zz",
                 "/api/v1/lattice/heads", "/" + "a/" * 200, "/%c0%ae%c0%ae/"]:
        s.problem(404, "not-found", "GET", path)
    # A segment is a name, whatever it looks like.
    for name in ["..", "%2e%2e", "%2F", "a%2Fb", "%22%3Cscript%3E", "a%20b"]:
        s.problem(404, "not-found", "GET", API + "/traces/" + name)
    allow = s.problem(405, "method", "DELETE", API + "/public-keys").headers["Allow"]
    assert set(allow.replace(" ", "").split(",")) == {"GET", "HEAD", "POST"}, allow
    assert s.problem(405, "method", "POST", "/healthz", body={}).headers["Allow"] == "GET, HEAD"
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]:
        s.problem(405, "method", method, API + "/events")
    assert s.ask("HEAD", "/healthz", token=None).status == 200
    s.problem(414, "too-large", "GET", "/" + "a" * 9000)
    s.problem(414, "too-large", "GET", API + "/traces?trace_type=" + "a" * 9000)


@shared
def the_absolute_form_is_understood(s):
    head = b"Host: x\r\nConnection: close\r\n\r\n"
    assert code_of(raw(s, b"GET http://x.example/healthz HTTP/1.1\r\n" + head)) == 200
    assert code_of(raw(s, b"GET http://x.example HTTP/1.1\r\n" + head)) == 421
    assert code_of(raw(s, b"GET healthz HTTP/1.1\r\n" + head)) == 404
    assert code_of(raw(s, b"GET * HTTP/1.1\r\n" + head)) == 404


@shared
def a_request_with_ambiguous_length_is_refused(s):
    """RFC 9112 6.3: 400, and nothing that follows on the connection is taken for a request."""
    hidden = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    size = str(len(hidden)).encode()
    doubtful = [
        [b"Content-Length: " + size, b"Transfer-Encoding: chunked"],
        [b"Transfer-Encoding: chunked", b"Content-Length: " + size],
        [b"Content-Length: 0", b"Content-Length: " + size],
        [b"Content-Length: " + size, b"content-length: 0"],
        [b"Content-Length: 3, 4"],
        [b"Content-Length: +3"],
        [b"Content-Length: -1"],
        [b"Content-Length: 0x3"],
        [b"Content-Length: "],
        [b"Transfer-Encoding: gzip"],
        [b"Transfer-Encoding: chunked, gzip"],
        [b"Transfer-Encoding: identity"],
        [b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"],
        [b"Host: y"],
    ]
    for headers in doubtful:
        for first in (b"GET /healthz HTTP/1.1", b"POST " + API.encode() + b"/events HTTP/1.1"):
            with socket.create_connection((s.host, s.port), timeout=20) as c:
                c.sendall(b"\r\n".join([first, b"Host: x", *headers, b"", b""]) + hidden)
                got = b""
                try:
                    while chunk := c.recv(65536):
                        got += chunk
                except ConnectionResetError:
                    pass
            assert code_of(got) == 400, (headers, got)
            assert b"HTTP/1.1 200" not in got, ("the hidden request was answered", headers, got)
    # The same length twice is one length.
    twice = b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"
    assert code_of(raw(s, twice)) == 200


@shared
def error_bodies_escape_what_was_sent(s):
    evil = "%3Cscript%3Ealert(1)%3C/script%3E%22%0d%0aX-Evil:%201"
    for path in [f"/{evil}", API + f"/traces?{evil}=1", API + f"/traces?level={evil}"]:
        answer = s.get(path)
        assert b"<script" not in answer.body and answer.headers.get("X-Evil") is None, answer.body
        json.loads(answer.body)
    answer = raw(s, b"GET /<script>\"\xff\x01 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert b"<script" not in answer, answer


@shared
def media_types(s):
    body = json.dumps(batch())
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                 "application/jsonx", "application/json5", "", None]:
        s.problem(415, "media-type", "POST", API + "/events", body=body, type=kind)
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=1"]:
        assert s.ask("POST", API + "/events", body=body, type=kind).status == 200, kind
    for coding in ["gzip", "br", "deflate", "zstd", "gzip, identity"]:
        s.problem(415, "media-type", "POST", API + "/events", body=body,
                  headers={"Content-Encoding": coding})
    assert s.ask("POST", API + "/events", body=body,
                 headers={"Content-Encoding": "identity"}).status == 200


@shared
def bodies_that_are_not_batches_are_refused(s):
    events = API + "/events"
    for body in ["", "{", "[1,", "nul", b"\xef\xbb\xbf{}", '{"a":1}x', "\0"]:
        s.problem(400, "malformed-json", "POST", events, body=body)
    s.problem(400, "duplicate-key", "POST", events, body='{"events":[],"events":[]}')
    s.problem(400, "invalid-utf8", "POST", events, body=b'{"events":"\xff"}')
    whole = batch()
    for body in [[], 1, "x", None, {}, {**whole, "events": {}}, {**whole, "batch_timestamp": 1},
                 {**whole, "consent_timestamp": "yesterday"}, {**whole, "trace_level": "everything"},
                 {k: v for k, v in whole.items() if k != "consent_timestamp"}]:
        s.problem(422, "invalid-batch", "POST", events, body=json.dumps(body))
    deep = '{"events":[{"event_type":"complete_trace","trace":' + "[" * 2000 + "]" * 2000 + \
        '}],"batch_timestamp":"2026-01-01T00:00:00Z","consent_timestamp":"2026-01-01T00:00:00Z"}'
    answer = s.ask("POST", events, body=deep)
    assert answer.status in (200, 400), (answer.status, answer.body[:300])


@shared
def query_parameters_are_checked(s):
    good = ["limit=1", "limit=1000", "verified=any", "verified=false", "from=2026-01-01T00:00:00Z",
            "from=2026-01-01T00:00:00%2B00:00", "from=2026-01-01T00:00:00+00:00",
            "min_plausibility=0.1&max_plausibility=1e0", "conscience_passed=1&overridden=false",
            "selected_action=HandlerActionType.speak", "level=full_traces", "&&limit=3&",
            "agent_id=x", "domain=%C3%A9", "fragility_flag=true"]
    for query in good:
        answer = s.get(API + "/traces?" + query)
        assert answer.status == 200, (query, answer.status, answer.body)
    bad = [("limit=0", "limit"), ("limit=1001", "limit"), ("limit=-1", "limit"),
           ("limit=", "limit"), ("limit=1&limit=2", "limit"), ("limit=99999999999999999999", "limit"),
           ("colour=red", "colour"), ("verified=maybe", "verified"), ("from=yesterday", "from"),
           ("to=2026-02-30T00:00:00Z", "to"), ("min_plausibility=NaN", "min_plausibility"),
           ("min_plausibility=.5", "min_plausibility"), ("max_plausibility=1e999",
                                                         "max_plausibility"),
           ("level=secret", "level"), ("cursor=abc", "cursor"), ("cursor=" + "A" * 80, "cursor"),
           ("agent_id=x&agent_id_hash=y", "agent_id_hash"), ("trace_type=", "trace_type"),
           ("domain=" + "x" * 2000, "domain"), ("Limit=1", "Limit")]
    for query, name in bad:
        answer = s.problem(422, "invalid-parameter", "GET", API + "/traces?" + query)
        assert answer.json()["errors"][0]["parameter"] == name, (query, answer.json())
    for query in ["limit=%", "limit=%4", "limit=%zz", "domain=%00", "domain=%ff",
                  "&".join("a%d=1" % i for i in range(200))]:
        s.problem(422, "invalid-parameter", "GET", API + "/traces?" + query)


@shared
def random_queries_never_crash_the_server(s):
    seed = int(os.environ.get("CX_TEST_SEED", "0")) or random.randrange(2**32)
    rng = random.Random(seed)
    letters = "abz=&%+?#/\\;.,0129-_:~ \"'<>{}[]|^`" + "".join(map(chr, range(128, 256)))
    names = ["limit", "from", "cursor", "level", "verified", "agent_id", "min_plausibility"]
    c = s.connect()
    for i in range(400):
        query = "&".join(rng.choice(names) + "=" + "".join(
            "%" + rng.choice(["00", "zz", "41", "c3%a9", "ff", "2B", "0a"]) if rng.random() < 0.2
            else rng.choice(letters) for _ in range(rng.randrange(20)))
            for _ in range(rng.randrange(4)))
        path = (API + "/traces?" + query).encode("latin-1").replace(b" ", b"%20")
        c.putrequest("GET", "/x", skip_accept_encoding=True)
        c._buffer[0] = b"GET " + path + b" HTTP/1.1"
        c.putheader("Authorization", "Bearer " + s.token)
        c.endheaders()
        response = c.getresponse()
        body = response.read()
        assert response.status in (200, 422), (seed, i, path, response.status, body)
        json.loads(body)


@shared
def cursors_are_stable_and_forged_ones_refused(s):
    ids = ["page-%02d" % i for i in range(25)]
    s.post(*[s.agent.trace(name, second=1000 + i, task_id="paging") for i, name in enumerate(ids)])
    s.wait_for(lambda: len(s.traces("?task_id=paging&limit=100")) == 25)
    seen, query = [], "?task_id=paging&limit=10"
    while query:
        page = s.get(API + "/traces" + query).json()
        assert page["count"] == len(page["traces"])
        seen += [t["trace_id"] for t in page["traces"]]
        if len(seen) == 10:
            s.post(s.agent.trace("page-new", second=5000, task_id="paging"))
            s.wait_for(lambda: len(s.traces("?task_id=paging&limit=100")) == 26)
        cursor = page["next_cursor"]
        query = cursor and f"?task_id=paging&limit=10&cursor={cursor}"
    assert seen == ids[::-1], seen
    first = s.get(API + "/traces?task_id=paging&limit=10").json()["next_cursor"]
    for at in range(0, len(first), 5):
        broken = first[:at] + ("A" if first[at] != "A" else "B") + first[at + 1:]
        answer = s.get(API + "/traces?limit=10&cursor=" + broken)
        assert answer.status in (200, 422), answer.body
        assert answer.status == 422 or broken == first or at == len(first) - 1, (at, answer.body)


# --- keys and alerts -----------------------------------------------------------------------------


@shared
def keys_are_added_once_and_revoked_at_once(s):
    agent, other = Agent("1111222233334444"), Agent("5555666677778888")
    keys, admin = API + "/public-keys", s.admin()
    trace = agent.trace("before")
    assert s.post(trace)["results"][0]["reason"] == "key_unknown"
    added = s.ask("POST", keys, body=agent.registration(description="x"), token=admin)
    assert added.status == 201 and added.json()["status"] == "registered", added.body
    again = s.ask("POST", keys, body=agent.registration(), token=admin)
    assert again.status == 200 and again.json()["status"] == "exists", again.body
    s.problem(409, "key-conflict", "POST", keys, token=admin,
              body={**other.registration(), "key_id": agent.key_id})
    assert s.post(trace)["results"][0]["status"] == "stored"
    revoke = f"{keys}/{agent.key_id}/revoke"
    s.problem(422, "invalid-request", "POST", revoke, body={}, token=admin)
    s.problem(422, "invalid-request", "POST", revoke, token=admin,
              body={"reason": "x", "compromised_since": "never"})
    done = s.ask("POST", revoke, body={"reason": "lost"}, token=admin)
    assert done.status == 200 and done.json()["status"] == "revoked", done.body
    assert s.post(agent.trace("after"))["results"][0]["reason"] == "key_revoked"
    s.problem(404, "not-found", "POST", f"{keys}/nobody/revoke", body={"reason": "x"}, token=admin)


@shared
def unusable_keys_are_refused(s):
    agent = Agent("9999aaaabbbbcccc")
    body = agent.registration()
    for change, word in [({"public_key_base64": "AAAA"}, "found 3 bytes"),
                         ({"public_key_base64": "!" * 43}, ""), ({"key_id": ""}, ""),
                         ({"key_id": 1}, ""), ({"agents": "x"}, ""), ({"not_before": "x"}, ""),
                         ({"extra": 1}, "extra"), ({"public_key_base64": None}, "")]:
        answer = s.problem(422, "invalid-request", "POST", API + "/public-keys",
                           body={**body, **change}, token=s.admin())
        assert word in answer.body.decode(), (change, answer.body)
        if "public_key_base64" in change:
            assert answer.json()["errors"][0]["pointer"] == "/public_key_base64", answer.body
    s.problem(422, "invalid-request", "POST", API + "/public-keys", body=[], token=s.admin())
    s.problem(400, "malformed-json", "POST", API + "/public-keys", body="{", token=s.admin())
    s.problem(400, "duplicate-key", "POST", API + "/public-keys", body='{"a":1,"a":2}',
              token=s.admin())


@shared
def both_base64_alphabets_are_keys(s):
    for i in range(200):
        agent = Agent("alphabet-%d" % i)
        standard = base64.b64encode(agent.key.public).decode()
        if "+" in standard and "/" in standard:
            break
    answer = s.ask("POST", API + "/public-keys", token=s.admin(),
                   body={**agent.registration(), "public_key_base64": standard})
    assert answer.status == 201, answer.body
    assert s.ask("POST", API + "/public-keys", body=agent.registration(),
                 token=s.admin()).status == 200


@shared
def a_conflict_raises_an_alert_that_can_be_resolved(s):
    first = s.agent.trace("conflicting", second=20)
    other = s.agent.trace("conflicting", second=21)
    s.post(first)
    assert s.post(other)["results"][0]["status"] == "conflict"
    assert s.post(other)["results"][0]["status"] == "conflict"
    for mark in ["acknowledge", "resolve"]:
        s.problem(404, "not-found", "POST", API + f"/alerts/nothing/{mark}", body={},
                  token=s.admin())
    alerts = s.wait_for(lambda: s.get(API + "/alerts").json()["alerts"])
    alert = alerts[0]["alert_id"]
    path = API + f"/alerts/{alert}/"
    s.problem(403, "forbidden", "POST", path + "resolve", body={})
    done = s.ask("POST", path + "acknowledge", token=s.admin())
    assert done.status == 200 and done.json()["by"] == "token:admin", done.body
    done = s.ask("POST", path + "resolve", body={"by": "ann", "notes": "seen"}, token=s.admin())
    assert done.status == 200 and done.json()["status"] == "resolved", done.body
    s.problem(422, "invalid-request", "POST", path + "resolve", body={"bye": 1}, token=s.admin())
    s.wait_for(lambda: alert not in s.get(API + "/alerts").body.decode())
    assert alert in s.get(API + "/alerts?status=all").body.decode()


# --- tokens --------------------------------------------------------------------------------------


ROUTES = [("POST", "/api/v1/steps", "trace:write"), ("POST", API + "/events", "trace:write"),
          ("GET", API + "/traces", "trace:read"),
          ("GET", API + "/traces/x", "trace:read"), ("GET", API + "/chain/x", "trace:read"),
          ("GET", API + "/wakeup/x", "trace:read"), ("GET", API + "/capacity/x", "trace:read"),
          ("POST", API + "/public-keys", "key:admin"),
          ("GET", API + "/public-keys", "trace:read key:admin"),
          ("POST", API + "/public-keys/x/revoke", "key:admin"),
          ("GET", API + "/alerts", "trace:read"),
          ("POST", API + "/alerts/x/acknowledge", "key:admin"),
          ("POST", API + "/alerts/x/resolve", "key:admin"),
          *[("GET", "/api/v1/lattice/agent/x/" + what, "full")
            for what in ["state?node=x", "why?node=x&key=y", "heatmap", "compare?a=x&b=y", "heads",
                         "show?node=x", "reach?node=x", "bisect?node=x&predicate=/a", "render", "verify"]],
          ("GET", "/api/v1/proofs/entry?actor=x&seq=0", "full"),
          ("GET", "/api/v1/proofs/consistency?actor=x&from=0&to=0", "trace:read"),
          ("GET", "/api/v1/proofs/memory?actor=x&uri=matrix%3A%2F%2Fcortex%2FFact%2F"
           "01HF7YAT000000000000000003%231", "full"),
          ("GET", "/api/v1/memories?actor=x", "full"), ("GET", "/api/v1/memories/x?actor=x", "full"),
          *[("POST", "/api/v1/actors/x/" + what, "memory:write")
            for what in ["memories", "memories/update", "memories/labels", "memories/tombstone", "edges",
                         "edges/remove", "attestations"]],
          *[("POST", "/api/v1/scopes/" + what, "memory:scoped")
            for what in ["check", "read", "find", "write", "update", "labels"]],
          ("POST", "/api/v1/scopes", "memory:write"), ("POST", "/api/v1/scopes/make", "full"),
          ("GET", "/api/v1/scopes", "memory:scoped"), ("GET", "/api/v1/scopes/x", "memory:scoped"),
          ("POST", "/mcp", "trace:read"), ("GET", "/api/v1/objects?id=x", "full"),
          ("GET", "/api/v1/why?id=x", "full"), ("GET", "/api/v1/evidence?id=x", "full"),
          ("GET", "/api/v1/snapshots?actor=x", "trace:read"),
          ("GET", "/api/v1/seed?actor=x&intent=x&mtx=x&model=x", "trace:read"), ("GET", "/api/v1/checkpoints", "trace:read"),
          ("GET", API + "/traces/x/around", "trace:read"), ("POST", API + "/check", "trace:read"),
          ("GET", "/api/v1/inbox", "trace:read run:read"), ("GET", "/api/v1/inbox/facets", "trace:read run:read"),
          ("GET", "/api/v1/search?q=x", "full"), ("GET", "/api/v1/histories", "full"),
          ("GET", API + "/fleet", "trace:read"), ("GET", "/api/v1/otel/traces", "full"),
          ("GET", "/api/v1/archived", "full"), ("POST", "/hook/x", "hook"), ("GET", "/api/v1/writer", "home:write"),
          ("GET", "/api/v1/sessions", "full"), ("GET", "/api/v1/sessions/x", "full"),
          *[("POST", "/api/v1/sessions/x/" + what, "session:approve") for what in ["approve", "deny", "limit"]],
          ("GET", "/api/v1/roots", "trace:read"), ("GET", "/api/v1/nodes", "trace:read"), ("GET", "/metrics", "any"),
          ("GET", "/openapi.json", "any"), ("GET", "/healthz", "open"), ("GET", "/readyz", "open")]


@shared
def every_route_requires_its_scope(s):
    tokens = {"trace:write": s.add_token("trace:write"), "trace:read": s.add_token("trace:read"),
              "key:admin": s.add_token("key:admin"), "memory:write": s.add_token("memory:write"),
              "memory:scoped": s.add_token("memory:scoped"), "hook": s.add_token("hook"),
              "session:approve": s.add_token("session:approve"), "home:write": s.add_token("home:write"),
              "full": s.add_token("trace:read", level="full_traces")}
    for method, path, wanted in ROUTES:
        body = {} if method == "POST" else None
        for headers in [{}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"},
                        {"Authorization": "Bearer "}, {"Authorization": "Bearer x"},
                        {"Authorization": "Bearer " + s.token[:-1]},
                        {"Authorization": "Bearer " + s.token + "a"},
                        {"Authorization": s.token}, {"X-Access-Level": "full"}]:
            answer = s.ask(method, path, body=body, token=None, headers=headers)
            assert (answer.status == 401) == (wanted != "open"), (path, headers, answer.status)
        for name, token in tokens.items():
            allowed = wanted in ("open", "any") or name in wanted.split() or \
                (wanted == "trace:read" and name == "full") or \
                ("trace:read" in wanted.split() and name == "full")
            answer = s.ask(method, path, body=body, token=token)
            assert (answer.status == 403) == (not allowed), (method, path, name, answer.status)
            assert answer.status != 401 and answer.status < 500, (path, name, answer.body)


@shared
def no_scope_comes_from_the_query(s):
    token = s.add_token("trace:read")
    for query in ["level=detailed", "level=full_traces"]:
        s.problem(403, "forbidden", "GET", API + "/traces?" + query, token=token)
        s.problem(403, "forbidden", "GET", API + "/traces/first?" + query, token=token)
    assert s.get(API + "/traces?level=generic", token=token).status == 200
    s.problem(422, "invalid-parameter", "GET", API + "/traces?access_level=admin", token=token)
    s.problem(422, "invalid-parameter", "GET", API + "/traces?token=" + s.token, token=token)
    s.problem(401, "unauthorized", "GET", API + "/traces?access_token=" + s.token, token=None)


@shared
def a_token_of_a_lower_level_gets_a_redacted_view(s):
    token = s.add_token("trace:read")
    s.post(s.agent.trace("private", level="full_traces", second=30))
    whole = s.wait_for(lambda: s.get(API + "/traces/private").status == 200 and
                       s.get(API + "/traces/private").json())
    assert whole["trace"]["components"][3]["data"]["action_rationale"] == "because private"
    low = s.get(API + "/traces/private", token=token)
    assert low.status == 200 and b"because private" not in low.body, low.body
    assert low.json()["trace"]["trace_level"] == "generic" and "derived" in low.json()["trace"]
    assert "signature" not in low.json()["trace"], "a view never claims to be signed"
    s.problem(403, "forbidden", "GET", API + "/traces/private?raw=1", token=token)
    s.problem(403, "forbidden", "GET", API + "/traces?text=private", token=token)
    assert b"private" in s.get(API + "/traces?text=private").body
    kept = s.get(API + "/traces/private?raw=1")
    assert json.loads(kept.body)["signature"] == whole["trace"]["signature"], kept.body[:200]
    for path in ["/traces?verified=any", "/chain/" + s.agent.name, "/capacity/" + s.agent.name]:
        assert b"because private" not in s.get(API + path, token=token).body, path


@shared
def tokens_can_be_added_and_revoked_while_the_server_runs(s):
    token = s.add_token("trace:read", name="guest")
    assert s.get(API + "/traces", token=token).status == 200
    listed = s.command("token", "list", "--json")
    assert "guest" in listed and token not in listed and "sha256" not in listed, listed
    assert token not in (s.home / "tokens.json").read_text()
    s.command("token", "revoke", "guest")
    s.problem(401, "unauthorized", "GET", API + "/traces", token=token)
    s.command("token", "revoke", "guest", expect=2)
    s.command("token", "add", "--scope", "trace:read", "--name", "n1")
    s.command("token", "add", "--scope", "trace:read", "--name", "n1", expect=1)
    s.command("token", "add", expect=2)
    s.command("token", "add", "--scope", "everything", expect=2)
    past = s.add_token("trace:read", expires="2020-01-01T00:00:00Z")
    s.problem(401, "unauthorized", "GET", API + "/traces", token=past)
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4))
    soon = s.add_token("trace:read", expires=end)
    assert s.get(API + "/traces", token=soon).status == 200
    time.sleep(4.2)
    s.problem(401, "unauthorized", "GET", API + "/traces", token=soon)
    for file in ["tokens.json", "token"]:
        assert (s.home / file).stat().st_mode & 0o777 == 0o600, file


@shared
def an_unreadable_token_file_authorises_no_request(s):
    path = s.home / "tokens.json"
    kept = path.read_bytes()
    try:
        for broken in [b"{", b'{"format":"x","tokens":[]}', kept.replace(b"trace:read", b"trace:rea")]:
            path.write_bytes(broken)
            time.sleep(0.05)
            s.problem(503, "unavailable", "GET", API + "/traces")
            assert s.get("/healthz", token=None).status == 200
    finally:
        path.write_bytes(kept)
    time.sleep(0.05)
    assert s.get(API + "/traces").status == 200


# --- the document, health, metrics ---------------------------------------------------------------


# What is asked about governed runs, and by the page, has tests of its own (test_runs_http.py,
# test_page.py).
RUNS = re.compile(r"/api/(v1/)?(runs|contracts|locks|worktrees|policies|agents|approvals|intents|cases)(/|$)"
                  r"|/$|/assets/|/api/v1/(session|view)(/|$)")


@shared
def a_data_directory_that_is_no_part_has_no_fleet(s):
    told = s.get("/api/v1/nodes").json()
    assert told == {"age_ms": None, "away": False, "connections": None, "events": [], "fleet": None, "lag": None,
                    "node": None, "nodes": [], "part": None, "parts": [], "strict": False}, told
    assert "cortex_fleet_" not in s.get("/metrics").body.decode()


@shared
def the_openapi_document_equals_the_route_table(s):
    document = s.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1"), document["openapi"]
    asked = {(m, p.split("?")[0].replace("/x", "/{}").replace("agent/{}", "{}"))
             for m, p, _ in ROUTES} | {("GET", "/api/v1/feed")}
    told = set()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert operation["summary"] and operation["responses"], path
            if not path.startswith("/api/v1/accord") and not RUNS.match(path):
                told.add((method.upper(), re.sub(r"\{[^}]*\}", "{}", path)))
            names = re.findall(r"\{([^}]*)\}", path)
            assert names == [p["name"] for p in operation["parameters"] if p["in"] == "path"], path
    assert asked == told, asked ^ told
    for path in [p for p in document["paths"] if p.startswith("/api/v1/covenant")]:
        assert path.replace("covenant", "accord") in document["paths"], path


@shared
def health_needs_no_token_and_metrics_does(s):
    assert s.get("/healthz", token=None).json() == {"status": "ok"}
    ready = s.get("/readyz", token=None)
    assert ready.status == 200 and ready.json()["status"] == "ready", ready.body
    text = s.get("/metrics").body.decode()
    for name in ["cortex_http_requests_total", "cortex_events_total", "cortex_index_commits",
                 "process_resident_memory_bytes", "cortex_http_request_seconds_bucket"]:
        assert name in text, name
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2, line
        if not line.startswith("#"):
            float(line.rsplit(" ", 1)[1])


@test
def an_index_that_cannot_be_reached_is_said_with_what_to_do():
    away = "postgresql://u:hunter2@127.0.0.1:1/x"
    with Server("--db", away, "--otlp", "off") as s:
        said = s.said()  # before it said that it listens
        assert "the index cannot be reached: " in said and "To do: " in said, said
        assert s.get("/readyz", token=None).json() == {"index": "away", "status": "ready"}
        for path in (API + "/traces", "/api/v1/inbox"):
            answer = s.problem(503, "index-unavailable", "GET", path).json()
            assert "start PostgreSQL, or correct --db" in answer["detail"], answer
        status = s.command("status", "--db", away)
        assert "to do: " in status, status
        assert "hunter2" not in s.said() + status, s.said()


# --- the feed ------------------------------------------------------------------------------------


class Feed:
    def __init__(self, server, query="", last=None, token=""):
        self.connection = server.connect(timeout=20)
        headers = {"Authorization": "Bearer " + (token or server.token)}
        if last:
            headers["Last-Event-ID"] = last
        self.connection.request("GET", "/api/v1/feed" + query, headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, (self.response.status, self.response.read())
        assert self.response.headers["Content-Type"] == "text/event-stream"

    def next(self):
        event = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if line.startswith(":"):
                continue
            if line == "":
                if event:
                    return event
                if self.response.isclosed():
                    return None
                continue
            name, _, value = line.partition(": ")
            event[name] = value

    def close(self):
        if self.connection.sock:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()


@shared
def the_feed_reports_new_entries_and_resumes(s):
    feed = Feed(s)
    only = Feed(s, "?agent_id_hash=nobody")
    time.sleep(0.3)
    s.post(s.agent.trace("feed-1", second=40), s.agent.trace("feed-2", second=41))
    first, second = feed.next(), feed.next()
    assert [json.loads(e["data"])["trace_id"] for e in (first, second)] == ["feed-1", "feed-2"]
    data = json.loads(first["data"])
    assert data["verified"] is True and data["entry"]["actor"] == s.agent.name, data
    assert first["event"] == "trace", first
    feed.close()
    s.post(s.agent.trace("feed-3", second=42))
    again = Feed(s, last=first["id"])
    assert [json.loads(again.next()["data"])["trace_id"] for _ in range(2)] == ["feed-2", "feed-3"]
    again.close()
    everything = Feed(s, "?after=0.0")
    ids = []
    while "feed-3" not in ids:
        ids.append(json.loads(everything.next()["data"])["trace_id"])
    assert len(ids) == len(set(ids)) or "conflicting" in ids, "each once"
    everything.close()
    only.close()
    s.problem(422, "invalid-parameter", "GET", "/api/v1/feed?after=x")
    s.problem(422, "invalid-request", "GET", "/api/v1/feed?after=999999999.0")
    s.problem(422, "invalid-parameter", "GET", "/api/v1/feed", headers={"Last-Event-ID": "1.2.3"})


@shared
def disconnected_feed_readers_are_released(s):
    before = s.metric("cortex_feed_readers")
    feeds = [Feed(s) for _ in range(20)]
    for feed in feeds:
        feed.close()
    second = iter(range(10_000, 20_000))

    def gone():
        at = next(second)
        s.post(s.agent.trace("gone-%d" % at, second=at))
        return s.metric("cortex_feed_readers") <= before
    s.wait_for(gone, 40)
    assert s.metric("cortex_http_in_flight") <= before + 1


# --- limits --------------------------------------------------------------------------------------


@shared
def probes_may_have_any_query(s):
    for path in ("/healthz?probe=1", "/healthz?%zz", "/readyz?x=1&x=2"):
        assert s.ask("GET", path).status == 200, path
    assert s.ask("GET", "/openapi.json?x=1").status == 422


@shared
def a_body_where_none_is_wanted_is_ignored(s):
    path = "/api/v1/session"
    for body in (b"{}", b"x" * 1024):
        assert s.ask("DELETE", path, body=body).status != 413, body
    answer = s.problem(413, "too-large", "DELETE", path, body=b"x" * 1025)
    assert answer.json()["max_bytes"] == 1024, answer.json()


@shared
def the_document_names_server_and_problems(s):
    document = s.ask("GET", "/openapi.json").json()
    assert document["servers"][0]["url"] == "/", document["servers"]
    for path, item in document["paths"].items():
        for method, operation in item.items():
            content = operation["responses"]["default"]["content"]
            assert set(content) == {"application/problem+json"}, (path, method)


@shared
def oversized_bodies_are_refused(s):
    path = API + "/events"
    for body in [b" " * (8 * 1024 * 1024 + 1), b"x" * (15 * 1024 * 1024)]:
        answer = s.problem(413, "too-large", "POST", path, body=body)
        assert answer.json()["max_bytes"] == 8 * 1024 * 1024
    # What is counted while it comes: no length is told.
    c = s.connect()
    chunk = b" " * 65536
    c.request("POST", path, body=(chunk for _ in range(140)), encode_chunked=True,
              headers={"Authorization": "Bearer " + s.token, "Content-Type": JSON,
                       "Transfer-Encoding": "chunked"})
    response = c.getresponse()
    assert response.status == 413, response.status
    assert json.loads(response.read())["max_bytes"] == 8 * 1024 * 1024
    # The connection goes on.
    c.request("GET", "/healthz")
    assert c.getresponse().status == 200
    c.close()
    # Whoever asks first is told before sending anything.
    head = (f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {s.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: 99999999\r\n"
            f"Expect: 100-continue\r\n\r\n").encode()
    got = raw(s, head)
    assert code_of(got) == 413, got[:200]
    assert s.metric("cortex_http_body_memory_bytes") == 0


@shared
def an_endless_chunked_body_is_refused(s):
    head = (f"POST {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {s.token}\r\n"
            f"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
    sent = 0
    with socket.create_connection((s.host, s.port), timeout=20) as c:
        c.sendall(head)
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        try:
            while sent < 64 * 1024 * 1024:
                c.sendall(chunk)
                sent += 65536
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < 64 * 1024 * 1024, "it took everything"


@shared
def oversized_headers_are_refused(s):
    for size in [20_000, 200_000]:
        got = raw(s, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * size +
                  b"\r\nConnection: close\r\n\r\n")
        assert code_of(got) in (413, 431, None), got[:100]
        assert code_of(got) is not None or size > 100_000, "it says so while it can"
    got = raw(s, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 3000 + b"\r\n")
    assert code_of(got) in (413, 431), got[:100]
    assert s.get("/healthz").status == 200


@shared
def bytes_that_are_not_http_are_refused(s):
    rng = random.Random(7)
    for data in [b"\0" * 100, b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
                 b"GET /health\0z HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
                 b"GET /healthz HTTP/1.1\r\n\r\n", b"GET /healthz HTTP/1.1\nHost: x\n\n",
                 b"POST /api/v1/covenant/events HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                 b"POST /api/v1/covenant/events HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
                 b"Content-Length: 6\r\n\r\nhello!",
                 b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
                 bytes(rng.randrange(256) for _ in range(2000))]:
        got = raw(s, data, seconds=1)
        assert not got or code_of(got) in (200, 400, 401, 404, 405, 411, 415, 505), (data, got[:80])
    assert s.get("/healthz").status == 200


@test
def slow_clients_are_cut():
    with Server("--header-timeout", "1", "--body-timeout", "1") as s:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        def drip(c, data):
            start = time.time()
            try:
                for byte in data:
                    c.sendall(bytes([byte]))
                    time.sleep(0.2)
                    if time.time() - start > 15:
                        return None
            except (BrokenPipeError, ConnectionResetError):
                return time.time() - start
            return None
        def header():
            with socket.create_connection((s.host, s.port)) as c:
                return drip(c, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100)
        def body():
            with socket.create_connection((s.host, s.port)) as c:
                c.sendall((f"POST {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                           f"{s.token}\r\nContent-Type: application/json\r\n"
                           f"Content-Length: 1000\r\n\r\n").encode())
                return drip(c, b" " * 100)
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            slow = [pool.submit(header) for _ in range(10)] + [pool.submit(body) for _ in range(10)]
            # Others do not notice.
            for i in range(20):
                assert s.post(agent.trace("fast-%d" % i, second=i))["accepted"] == 1
            for job in slow:
                took = job.result()
                assert took is not None and took < 10, took
        assert s.metric("cortex_http_cut_total") >= 20
        # A connection that only waits is closed too.
        with socket.create_connection((s.host, s.port), timeout=10) as c:
            assert c.recv(1) == b""
        s.stop()


def idle_connections(s, count):
    sockets = []
    try:
        for _ in range(count):
            c = socket.socket()
            sockets.append(c)
            c.connect((s.host, s.port))
            c.sendall(b"GET /healthz HTTP/1.1\r\nHo")
    except OSError as error:
        for c in sockets:
            c.close()
        raise AssertionError(f"after {len(sockets)}: {error}")
    return sockets


@test
def idle_connections_use_little_memory_and_block_no_request():
    count = 9000 if FULL else 1000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count + 500:
        skip("too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Server("--header-timeout", "600") as s:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        s.post(agent.trace("warm"))
        before = s.metric("process_resident_memory_bytes")
        sockets = idle_connections(s, count)
        s.wait_for(lambda: s.metric("cortex_http_connections") >= count, 60)
        start = time.time()
        for i in range(10):
            assert s.post(agent.trace("idle-%d" % i, second=i + 1))["accepted"] == 1
        assert time.time() - start < 10
        grown = s.metric("process_resident_memory_bytes") - before
        print(f"  {count} idle connections: {grown / count / 1024:.1f} KiB each")
        for c in sockets:
            c.close()
        s.wait_for(lambda: s.metric("cortex_http_connections") < 50, 60)
        s.stop()


@test
def connections_have_a_limit():
    with Server("--connections", "40", "--connections-per-address", "20") as s:
        held = []
        for _ in range(60):
            c = socket.socket()
            c.settimeout(5)
            c.connect((s.host, s.port))
            held.append(c)
        time.sleep(0.5)
        closed = 0
        for c in held:
            c.setblocking(False)
            try:
                closed += c.recv(1) == b""
            except BlockingIOError:
                pass
            except ConnectionResetError:
                closed += 1
            c.close()
        assert closed >= 38, closed

        def free():
            try:
                return s.get("/healthz").status == 200
            except (OSError, http.client.HTTPException):
                return False
        s.wait_for(free)
        s.stop()


@test
def memory_for_bodies_has_a_limit():
    with Server("--body-memory", "1M") as s:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        head = (f"POST {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {s.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n").encode()
        holder = socket.create_connection((s.host, s.port), timeout=20)
        holder.sendall(head + b" " * 900_000)
        s.wait_for(lambda: s.metric("cortex_http_body_memory_bytes") > 1_000_000)
        s.problem(503, "unavailable", "POST", API + "/events", body=b" " * 700_000)
        holder.close()
        s.wait_for(lambda: s.metric("cortex_http_body_memory_bytes") == 0)
        assert s.post(agent.trace("room"))["accepted"] == 1
        s.stop()


@test
def an_upload_that_its_client_ends_is_forgotten():
    # The end arrives together with the last bytes.
    with Server("--body-memory", "64M") as s:
        head = (f"POST {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {s.token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\n").encode()
        for size in [5_000, 900_000] * 40:
            with socket.create_connection((s.host, s.port), timeout=20) as ended:
                ended.sendall(head + b" " * size)
        s.wait_for(lambda: s.metric("cortex_http_body_memory_bytes") == 0)
        # One that has asked for all it wants may end its side before it is answered.
        with socket.create_connection((s.host, s.port), timeout=20) as half:
            half.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            half.shutdown(socket.SHUT_WR)
            assert b" 200 OK" in half.recv(65536)
        s.stop()


@test
def a_full_queue_answers_503_and_stores_nothing():
    with Server("--workers", "1", "--queue", "4") as s:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        others = [s.add_token("trace:write") for _ in range(3)]
        bodies = [json.dumps(batch(*[agent.trace(f"q-{i}-{j}", second=i * 40 + j, padding=0)
                                     for j in range(20)])) for i in range(40)]
        def send(i):
            token = ([s.token] + others)[i % 4]
            return i, s.ask("POST", API + "/events", body=bodies[i], token=token)
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(send, range(40)))
        codes = {a.status for _, a in answers}
        assert codes <= {200, 429, 503}, codes
        for i, answer in answers:
            if answer.status != 200:
                assert answer.headers["Retry-After"]
                assert answer.json()["type"].rsplit(":", 1)[1] in ("rate", "unavailable")
                # Nothing of it was stored.
                done = s.ask("POST", API + "/events", body=bodies[i]).json()
                assert {r["status"] for r in done["results"]} == {"stored"}, done
        print("  codes", sorted(a.status for _, a in answers))
        s.stop()


@test
def the_load_generator_gets_only_good_answers():
    if shutil.which("wrk") is None:
        skip("no wrk")
    with Server() as s, tempfile.TemporaryDirectory() as folder:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        body = json.dumps(batch(*[agent.trace("w-%d" % i, second=i) for i in range(16)]))
        script = pathlib.Path(folder, "post.lua")
        pathlib.Path(folder, "body").write_text(body)
        script.write_text(f'''wrk.method = "POST"
wrk.body = io.open("{folder}/body"):read("*a")
wrk.headers["Content-Type"] = "application/json"
done = function(summary, latency, requests)
  io.write(string.format("ERRORS %d %d %d %d %d\\n", summary.errors.connect,
    summary.errors.read, summary.errors.write, summary.errors.status, summary.requests))
end
''')
        for path, options in [("/healthz", []), (API + "/traces?limit=10", []),
                              (API + "/events", ["-s", str(script)])]:
            done = subprocess.run(["wrk", "-t2", "-c32", "-d2s", "-H",
                                   "Authorization: Bearer " + s.token, *options, s.url + path],
                                  capture_output=True, timeout=60)
            text = done.stdout.decode()
            assert "Non-2xx" not in text and "Socket errors" not in text, text
            rate = float(text.split("Requests/sec:")[1].split()[0])
            assert rate > 20, text
            print(f"  wrk {path}: {rate:.0f}/s")
        # The same batch again and again: once stored, else a duplicate.
        time.sleep(0.5)
        assert len(s.wait_for(lambda: len(s.traces("?limit=100")) == 16 and
                              s.traces("?limit=100"))) == 16
        s.stop()


# --- ends ----------------------------------------------------------------------------------------


def under_load(end):
    """Senders send while it is ended; what was acknowledged must be there afterwards, once."""
    with Server("--grace", "10") as s:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        acknowledged, lock = set(), threading.Lock()
        prepared = [[agent.trace(f"l-{i}-{j}", second=i * 60 + j) for j in range(60)]
                    for i in range(6)]

        def send(i):
            for trace in prepared[i]:
                try:
                    answer = s.ask("POST", API + "/events", body=batch(trace))
                except (OSError, http.client.HTTPException):
                    return
                if answer.status == 200:
                    assert answer.json()["results"][0]["status"] == "stored"
                    with lock:
                        acknowledged.add(trace["trace_id"])
        senders = [threading.Thread(target=send, args=(i,)) for i in range(6)]
        for sender in senders:
            sender.start()
        feed = Feed(s)
        while len(acknowledged) < 30:
            time.sleep(0.01)
        end(s)
        for sender in senders:
            sender.join()
        feed.close()
        assert acknowledged
        s.start()
        # What was stored and not acknowledged may be in the index before the last acknowledged is.
        found = s.wait_for(lambda: (lambda t: acknowledged <= set(t) and t)(
            [t["trace_id"] for t in s.traces("?limit=1000")]))
        assert acknowledged <= set(found), acknowledged - set(found)
        assert len(found) == len(set(found))
        # What was not acknowledged may be there too; sent again it is a duplicate then.
        for i in range(6):
            done = s.post(*prepared[i])
            assert done["status"] == "ok", done["errors"]
        s.stop()


@test
def a_server_terminated_under_load_loses_nothing():
    def end(s):
        said = s.stop(signal.SIGTERM)
        assert "AddressSanitizer" not in said and "runtime error" not in said, said
    under_load(end)


@test
def a_server_killed_under_load_loses_nothing():
    def end(s):
        s.process.kill()
        s.process.wait()
        s.process.stdout.close()
        s.log.close()
    for _ in range(200 if FULL else 3):
        under_load(end)


@test
def an_interrupt_ends_the_server_despite_idle_clients():
    with Server("--grace", "20") as s:
        feed = Feed(s)
        idle = socket.create_connection((s.host, s.port))
        kept = s.connect()
        assert s.get("/healthz", connection=kept).status == 200
        start = time.time()
        s.stop(signal.SIGINT)
        assert time.time() - start < 10, time.time() - start
        assert feed.response.read().strip(b":\n") == b"", "the feed ends in order"
        feed.close()
        idle.close()


@test
def a_pending_request_is_answered_before_shutdown():
    with Server("--grace", "100") as s:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        body = json.dumps(batch(agent.trace("slowly"))).encode()
        c = socket.create_connection((s.host, s.port), timeout=60)
        c.sendall((f"POST {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {s.token}\r\n"
                   f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                   ).encode() + body[:100])
        s.wait_for(lambda: s.metric("cortex_http_in_flight") >= 2)
        s.process.send_signal(signal.SIGTERM)

        def refused():
            try:
                socket.create_connection((s.host, s.port), timeout=2).close()
                return False
            except OSError:
                return True
        s.wait_for(refused)
        c.sendall(body[100:])
        got = b""
        while chunk := c.recv(65536):
            got += chunk
        assert code_of(got) == 200 and b'"stored"' in got, got
        assert b"Connection: close" in got, got
        assert s.process.wait(timeout=30) == 0, s.said()


@test
def requests_during_shutdown_are_refused():
    """Their bodies become whole one after the other: before, while and after the working threads end."""
    with Server("--grace", "1") as s:
        agent = Agent("a1b2c3d4e5f60718")
        s.register(agent)
        slow = []
        for i in range(32):
            body = json.dumps(batch(agent.trace(f"slowly-{i}"))).encode()
            c = socket.create_connection((s.host, s.port), timeout=60)
            c.sendall((f"POST {API}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {s.token}\r\n"
                       f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                       ).encode() + body[:100])
            slow.append((c, body))
        s.wait_for(lambda: s.metric("cortex_http_in_flight") >= len(slow))
        s.process.send_signal(signal.SIGTERM)
        for c, body in slow:
            time.sleep(0.08)
            try:
                c.sendall(body[100:])
            except OSError:
                pass  # it has ended
        for c, _ in slow:
            try:
                got = c.recv(65536)
            except OSError:
                got = b""
            c.close()
            assert got == b"" or code_of(got) in (200, 503), got
        assert s.process.wait(timeout=300) == 0, s.said()


@test
def a_second_server_on_a_data_directory_is_refused():
    with Server() as s:
        done = subprocess.run([BIN, "serve", "--home", str(s.home), "--listen", "127.0.0.1:0"],
                              capture_output=True, env=ENV, timeout=60)
        assert done.returncode == 3 and b"Locked" in done.stderr, done
        s.stop()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = subprocess.run(
                [BIN, "serve", "--home", str(s.home), "--listen",
                 "127.0.0.1:%d" % taken.getsockname()[1]], capture_output=True, env=ENV, timeout=60)
            assert done.returncode == 3 and b"AddressInUse" in done.stderr, done


@test
def other_commands_work_while_the_server_runs():
    with Server() as s:
        s.command("append", "note.x", "hello", "--actor", "andrew")
        assert s.get("/api/v1/roots?actor=andrew").json()["actors"][0]["journal_size"] == 1
        s.stop()


@test
def roots_of_all_actors_show_the_home_root():
    """It is recorded by the server when a command asks for it, and what was not recorded is seen."""
    with Server() as s:
        s.command("append", "note.x", "hello", "--actor", "andrew")
        now = s.get("/api/v1/roots").json()["home_root"]
        assert now["recorded"] is None and now["actors"] >= 1, now
        s.command("checkpoint", "--all")
        now = s.get("/api/v1/roots").json()["home_root"]
        assert now["recorded"]["root"] == now["root"] and now["recorded"]["seq"] == 0, now
        text = s.get("/metrics").body.decode()
        assert "cortex_home_roots 1\n" in text, text
        s.command("append", "note.x", "again", "--actor", "andrew")
        now = s.get("/api/v1/roots").json()["home_root"]
        assert now["recorded"]["entries"] == now["entries"] - 1, now
        assert "home_root" not in s.get("/api/v1/roots?actor=andrew").json()
        s.stop()


@test
def a_sender_is_told_what_is_unusual_about_consent():
    agent = Agent("consent-agent")
    with Server() as s:
        s.register(agent)
        def send(name, second, **more):
            answer = s.ask("POST", API + "/events", body=batch(agent.trace(name, second=second), **more))
            assert answer.status == 200 and answer.json()["accepted"] == 1, answer.body
            return answer.json()["results"][0]
        assert "warnings" not in send("c-1", 1)
        late = send("c-2", 2, consent_timestamp="2099-01-01T00:00:00Z")
        assert (late["status"], late["warnings"]) == \
            ("stored", ["consent_after_batch", "consent_in_future"]), late
        s.command("consent", "revoke", agent.name, "--reason", "asked for", "--at", "2026-01-01T03:00:00Z")
        revoked = send("c-3", 3)
        assert (revoked["status"], revoked["warnings"]) == ("stored", ["consent_revoked"]), revoked
        again = send("c-3", 3)
        assert (again["status"], again["warnings"]) == ("duplicate", ["consent_revoked"]), again
        renewed = send("c-4", 4, consent_timestamp="2026-01-01T04:00:00Z")
        assert "warnings" not in renewed, renewed
        log = [json.loads(line) for line in s.command("log", "--actor", "batches", "--json").splitlines()]
        found = [json.loads(entry["payload"])["findings"] for entry in log]
        assert found == [[], ["consent_after_batch", "consent_in_future"], ["consent_revoked"], []], found
        s.stop()


@test
def the_server_records_the_home_root_on_a_schedule():
    with Server("--home-root-every", "1") as s:
        s.command("append", "note.x", "hello", "--actor", "andrew")
        end = time.monotonic() + 30
        while (now := s.get("/api/v1/roots").json()["home_root"])["recorded"] is None:
            assert time.monotonic() < end, "no home root was recorded"
            time.sleep(0.1)
        assert now["recorded"]["root"] == now["root"], now
        s.stop()
        done = json.loads(s.command("verify", "--json"))
        assert done["home_root"]["covered"] == done["home_root"]["recorded"], done


@test
def usage_is_checked():
    with tempfile.TemporaryDirectory() as folder:
        home = folder + "/home"
        subprocess.run([BIN, "init", "--no-repo", "--home", home], check=True, capture_output=True, env=ENV)
        for options, code, word in [(["--listen", "0.0.0.0:0"], 2, b"NotLoopback"),
                                    (["--listen", "[::]:0"], 2, b"NotLoopback"),
                                    (["--listen", "nonsense"], 2, b"ADDRESS:PORT"),
                                    (["--listen", "example.com:80"], 2, b"ADDRESS:PORT"),
                                    (["--listen", "127.0.0.1:99999"], 2, b"ADDRESS:PORT"),
                                    (["--tls-cert", "x"], 2, b"key"),
                                    (["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], 3, b""),
                                    (["--workers", "0"], 2, b"workers"),
                                    (["--max-body", "9M"], 2, b"max-body"),
                                    (["--forms", "Z"], 2, b"forms")]:
            done = subprocess.run([BIN, "serve", "--home", home, *options], capture_output=True,
                                  env=ENV, timeout=60)
            assert done.returncode == code and word in done.stderr, (options, done)
        done = subprocess.run([BIN, "serve", "--home", folder + "/none"], capture_output=True,
                              env=ENV)
        assert done.returncode == 3, done


@test
def the_server_prints_its_address_and_token():
    with tempfile.TemporaryDirectory() as folder:
        home = folder + "/home"
        subprocess.run([BIN, "init", "--no-repo", "--home", home], check=True, capture_output=True, env=ENV)
        process = subprocess.Popen([BIN, "serve", "--home", home, "--listen", "127.0.0.1:0", "--otlp", "off"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
        lines = [process.stdout.readline().decode()]
        # A line about OTLP is among them when nobody else listens on its port.
        while lines[-1] and not lines[-1].startswith("try"):
            lines.append(process.stdout.readline().decode())
        try:
            assert lines[0].startswith("cortex ") and "http://127.0.0.1:" in lines[0], lines
            assert any(line.startswith("token ") and home + "/token" in line for line in lines), lines
            if shutil.which("curl") is None:
                skip("no curl")
            agent = Agent("a1b2c3d4e5f60718")
            pathlib.Path(folder, "batch.json").write_text(json.dumps(batch(agent.trace("t"))))
            command = lines[-1].removeprefix("try").strip()
            done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, env=ENV)
            assert json.loads(done.stdout)["results"][0]["reason"] == "key_unknown", done
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


@test
def tls():
    if shutil.which("openssl") is None:
        skip("no openssl")
    with tempfile.TemporaryDirectory() as folder:
        cert, key = folder + "/cert.pem", folder + "/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days",
                        "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        context = ssl.create_default_context(cafile=cert)
        with Server("--tls-cert", cert, "--tls-key", key, listen="0.0.0.0:0", tls=context) as s:
            s.host = "127.0.0.1"
            agent = Agent("a1b2c3d4e5f60718")
            s.register(agent)
            assert s.post(agent.trace("tls", padding=0))["accepted"] == 1
            warnings.simplefilter("ignore", DeprecationWarning)
            old = ssl.create_default_context(cafile=cert)
            old.maximum_version = ssl.TLSVersion.TLSv1_1
            old.minimum_version = ssl.TLSVersion.TLSv1
            try:
                s.tls = old
                s.get("/healthz")
                raise AssertionError("an old TLS was spoken")
            except ssl.SSLError:
                pass
            s.tls = None
            try:
                answer = s.get("/healthz")
                assert answer.status >= 400, answer.status
            except (OSError, http.client.HTTPException):
                pass
            s.tls = context
            assert s.get("/healthz").status == 200
            s.stop()
        pathlib.Path(cert).write_text("nonsense")
        home = folder + "/home"
        subprocess.run([BIN, "init", "--no-repo", "--home", home], check=True, capture_output=True, env=ENV)
        done = subprocess.run([BIN, "serve", "--home", home, "--listen", "127.0.0.1:0",
                               "--tls-cert", cert, "--tls-key", key], capture_output=True, env=ENV,
                              timeout=60)
        assert done.returncode == 3 and b"PEM" in done.stderr, done


@test
def policies():
    with Server("--unknown-key", "keep", "--level-policy", "strip", "--forms", "B,H") as s:
        agent = Agent("a1b2c3d4e5f60718")
        done = s.post(agent.trace("kept"))
        assert done["results"][0]["status"] == "unverified" and done["accepted"] == 1, done
        s.register(agent)
        done = s.post(agent.trace("stripped", level="generic", second=1, padding=100))
        assert done["results"][0]["status"] == "stored", done
        assert done["results"][0]["stripped"], done
        found = s.wait_for(lambda: s.traces("?verified=true"))
        one = s.get(API + "/traces/stripped")
        assert b"xxxxxx" not in one.body, one.body[:300]
        assert found
        s.stop()


@afterwards
def the_shared_server_exits_with_0():
    if _common:
        try:
            said = _common[0].stop()
            assert "AddressSanitizer" not in said and "runtime error" not in said, said
        finally:
            _common[0].__exit__()


main()
