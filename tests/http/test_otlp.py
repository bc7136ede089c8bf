#!/usr/bin/env python3
"""The OTLP receiver from outside: encodings, answers, exactly once, what a kill leaves, lattices.

    test_otlp.py [PROGRAM] [WORDS]     PROGRAM defaults to $CORTEX_BIN
"""
import gzip
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kit import BIN, check, main, test  # noqa: E402
from receiver import ENV, JSON, PROTO, Receiver  # noqa: E402
from otlp_wire import Log, Span, TRACE, blob, document, number, proto, read_message  # noqa: E402


def partial(answer, type):
    if type == JSON:
        found = json.loads(answer)["partialSuccess"]
        return int(found["rejectedSpans"]), found["errorMessage"]
    message = read_message(read_message(answer)[1][0])
    return message.get(1, [0])[0], message[2][0].decode()


# --- encodings -------------------------------------------------------------------------------------

@test
def protobuf_and_json_and_gzip_arrive():
    with Receiver() as r:
        r.taken(proto(Span(1), Span(2, 1)))
        r.taken(document(Span(3, 2)), type=JSON)
        r.taken(gzip.compress(proto(Span(4, 3))), Content_Encoding="gzip")
        r.taken(gzip.compress(document(Span(5, 4)), 1), type=JSON, Content_Encoding="gzip")
        halves = proto(Span(6, 5))
        r.taken(gzip.compress(halves[:40]) + gzip.compress(halves[40:]), Content_Encoding="gzip")
        r.taken(proto(Span(7, 6)), Content_Encoding="identity")
        r.taken(document(Span(8, 7)), type=JSON)
        check(r.nodes() == {"planner": 8}, r.nodes())
        r.command("lattice", "verify", "@otel/" + TRACE, "--content-ids", "--require-seals")
        kinds = [entry["kind"] for entry in r.entries()]
        check(kinds == ["otlp.traces.protobuf", "otlp.traces.json"] * 2 +
              ["otlp.traces.protobuf"] * 2 + ["otlp.traces.json"], kinds)
        r.command("verify")


@test
def a_charset_after_the_media_type_is_accepted():
    with Receiver() as r:
        status, _, answer = r.post(document(Span(1)), type="Application/JSON; charset=utf-8")
        check((status, answer) == (200, b"{}"), status, answer)


@test
def the_bytes_are_kept_as_they_came():
    with Receiver() as r:
        body = proto(Span(1, extra=blob(99, "from the future") + number(98, 7)))
        r.taken(gzip.compress(body), Content_Encoding="gzip")
        lines = r.command("lattice", "show", "@otel/" + TRACE, "@planner", "--json")
        check("_unknown" in lines and b"from the future".hex() in lines, lines)
        check(r.entries()[0]["payload"] == {"hex": body.hex()}, r.entries()[0])


@test
def an_empty_export_is_accepted():
    with Receiver() as r:
        for kind in ("traces", "logs"):
            r.taken(b"", kind)
            r.taken(b"{}", kind, type=JSON)
        r.taken(b'{"resourceSpans":null}', type=JSON)
        r.taken(b'{"resourceSpans":[{"scopeSpans":[{"spans":[]}]}]}', type=JSON)
        check(r.command("log", "--actor", "otel", expect=2) == "", "an entry of nothing")


@test
def logs_are_attached_to_their_spans():
    with Receiver() as r:
        r.taken(proto(Log("I will look", 1, event="gen_ai.choice"), Log("ready", at=5)), "logs")
        r.taken(document(Log("as json", 1), logs=True), "logs", type=JSON)
        r.taken(proto(Span(1)))
        check(r.nodes() == {"planner": 3}, r.nodes())
        check(r.nodes("@otel") == {"planner": 3, "shop": 1}, r.nodes("@otel"))
        check(r.nodes("@otel/service/shop") == {"planner": 3, "shop": 1})
        r.command("lattice", "verify", "@otel/" + TRACE)


# --- refusals --------------------------------------------------------------------------------------

@test
def a_malformed_body_is_answered_with_400():
    good = proto(Span(1))
    with Receiver() as r:
        for cut in range(1, len(good)):
            status, _, _ = r.post(good[:cut])
            check(status == 400, cut, status)
        r.refused(400, 3, b"\x0b")                        # a group: proto3 has none
        r.refused(400, 3, b"\xff" * 12)                   # a tag that does not end
        r.refused(400, 3, proto(Span(1, name="x")).replace(b"\x2a\x01x", b"\x2a\x01\xff"))
        deep = blob(1, "bottom")
        for _ in range(80):
            deep = blob(5, blob(1, deep))
        text = r.refused(400, 3, proto(Span(1, extra=blob(9, blob(1, "k") + blob(2, deep)))))
        check("64" in text, text)
        for bad in (b"", b"{", b"[]", b"1", b'{"resourceSpans":{}}', b'{"resourceSpans":[1]}',
                    b'{"resourceSpans":[],"resourceSpans":[]}', b"\xff{}", b"\xef\xbb\xbf{}",
                    b'{"a":1e999}', b'{"resourceSpans":[{"scopeSpans":[{"spans":{}}]}]}',
                    b"[" * 5000, b'{"a":' * 5000):
            r.refused(400, 3, bad, type=JSON)
        check(r.command("log", "--actor", "otel", expect=2) == "", "something was kept")


@test
def a_field_of_another_wire_type_is_kept_as_unknown():
    with Receiver() as r:
        r.taken(proto(Span(1, extra=number(5, 17) + blob(7, "when"))))
        shown = r.command("lattice", "show", "@otel/" + TRACE, "@planner", "--json")
        check('"wire":"varint"' in shown and b"when".hex() in shown, shown)


@test
def malformed_gzip_is_refused():
    with Receiver() as r:
        packed = gzip.compress(proto(Span(1)))
        for bad in (b"", b"plain", packed[:-1], packed[:15], packed + b"x",
                    packed[:-8] + b"\0\0\0\0" + packed[-4:]):
            r.refused(400, 3, bad, Content_Encoding="gzip")
        text = r.refused(413, 8, gzip.compress(b"\0" * (200 << 20)), Content_Encoding="gzip")
        check("16777216" in text, text)
        for encoding in ("deflate", "br", "zstd", "gzip, gzip"):
            r.refused(415, 3, packed, Content_Encoding=encoding)


@test
def other_types_paths_and_methods():
    with Receiver() as r:
        for type in ("text/plain", "application/x-www-form-urlencoded", "application/protobuf",
                     "application/jsonp"):
            status, headers, answer = r.post(proto(Span(1)), type=type)
            check(status == 415 and headers["Content-Type"] == JSON, type, status)
            check(json.loads(answer)["code"] == 3, answer)
        for type in (PROTO, JSON):
            said = r.refused(404, 12, b"", type=type, kind="metrics")
            check("metrics are not supported" in said and "OTEL_METRICS_EXPORTER=none" in said, said)
        check("/v1/traces" in r.refused(404, 12, b"", kind="profiles"), "it does not say what is taken")
        status, headers, _ = r.post(b"", method="OPTIONS", Origin="https://page.example",
                                    Access_Control_Request_Method="POST")
        check(status == 405 and not [h for h in headers if h.lower().startswith("access-control")], headers)
        r.refused(404, 12, b"", path="/api/v1/covenant/events")
        r.refused(404, 12, b"", path="/metrics")
        r.refused(405, 12, None, method="GET")
        c = http.client.HTTPConnection("127.0.0.1", int(r.info["url"].rsplit(":", 1)[1]))
        c.request("POST", "/v1/traces", proto(Span(1)), {"Content-Type": PROTO})
        check(c.getresponse().status == 404, "the other listener takes spans")
        c.close()


@test
def oversized_exports_are_refused():
    with Receiver("--max-body", "100K") as r:
        big = Span(1, text="x" * 200_000)
        r.refused(413, 8, proto(big))
        r.taken(gzip.compress(proto(big)), Content_Encoding="gzip")
    with Receiver() as r:
        many = [Span(i + 1) for i in range(20_001)]
        text = r.refused(413, 8, gzip.compress(proto(*many)), Content_Encoding="gzip")
        check("20000" in text, text)
        r.taken(gzip.compress(proto(*many[:20_000])), Content_Encoding="gzip")
        check(len(r.entries()) == 1, "too much was kept")


@test
def a_huge_attribute_arrives():
    with Receiver() as r:
        r.taken(proto(Span(1, text="ü" * 3_000_000)))
        r.taken(document(Span(2, 1, text="\x01" * 500_000)), type=JSON)
        check(r.nodes() == {"planner": 2}, r.nodes())


@test
def spans_without_ids_are_rejected_alone():
    bad = [Span(0), Span(1, trace="0" * 32)]
    for type, make in ((PROTO, proto), (JSON, document)):
        with Receiver() as r:
            status, _, answer = r.post(make(bad[0], Span(2), bad[1]), type=type)
            count, text = partial(answer, type)
            check(status == 200 and count == 2 and "spanId" in text, status, answer)
            check(r.nodes() == {"planner": 1}, r.nodes())
            _, _, answer = r.post(make(*bad), type=type)
            check(partial(answer, type)[0] == 2, answer)
            check(len(r.entries()) == 1, "a request of nothing good was kept")
            check(r.metric("traces", "rejected") == 4 and r.metric("traces", "stored") == 1)
    with Receiver() as r:
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [7, "x", None, {"traceId": "zz"}]}]}]}
        _, _, answer = r.post(json.dumps(body), type=JSON)
        check(partial(answer, JSON)[0] == 4, answer)


# --- exactly once ----------------------------------------------------------------------------------

@test
def retries_change_nothing():
    with Receiver() as r:
        for _ in range(3):
            r.taken(proto(Span(1), Span(2, 1)))
            r.taken(document(Span(3, 2)), type=JSON)
            r.taken(proto(Log("once", 1)), "logs")
        check(len(r.entries()) == 3, r.entries())
        check(r.nodes() == {"planner": 4}, r.nodes())
        check((r.metric("traces", "stored"), r.metric("traces", "duplicate")) == (3, 6))
        r.taken(proto(Span(2, 1), Span(4, 3), Span(1)))   # another batch, with old ones in it
        check(r.nodes() == {"planner": 5}, r.nodes())
        r.taken(proto(Span(4, 3), Span(2, 1)))
        check(len(r.entries()) == 4, "old spans in a new batch were kept again")
        r.taken(proto(Span(9), Span(9)))
        check(r.nodes() == {"planner": 6}, "a span that stands twice in its request counts twice")


@test
def one_span_in_both_encodings_is_one():
    with Receiver() as r:
        span = Span(1, count=7, ratio=1.0, fine=False, note="")
        r.taken(proto(span))
        r.taken(document(span), type=JSON)
        loose = json.loads(document(span))
        for one in loose["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            one.update(events=[], links=None, flags=0, kind=one.get("kind", 0))
            for attribute in one["attributes"]:
                if "intValue" in attribute["value"]:
                    attribute["value"]["intValue"] = int(attribute["value"]["intValue"])
        r.taken(json.dumps(loose).encode(), type=JSON)
        check(r.metric("traces", "stored") == 1 and r.metric("traces", "conflict") == 0)
        check(r.metric("traces", "duplicate") == 2 and len(r.entries()) == 1, r.entries())


@test
def changed_content_of_a_span_is_a_conflict():
    with Receiver() as r:
        r.taken(proto(Span(1)))
        for _ in range(2):
            _, _, answer = r.post(proto(Span(1, name="told anew"), Span(2, 1)))
        check(answer == b"", "the same conflict again is a duplicate", answer)
        check(r.metric("traces", "conflict") == 1, "conflicts")
        _, _, answer = r.post(proto(Span(1, name="and again")))
        count, text = partial(answer, PROTO)
        check(count == 0 and "different content" in text, answer)
        check(r.nodes() == {"planner": 4}, r.nodes())
        newest = r.command("lattice", "show", "@otel/" + TRACE, "@planner", "--json")
        check("planner" in newest, newest)
        r.command("verify")


@test
def order_and_batching_do_not_change_the_result():
    spans = [Span(i, i // 2, agent=("planner", "coder", "tester")[i % 3]) for i in range(1, 25)]
    logs = [Log(f"line {i}", i, at=i) for i in range(1, 9)]
    heads = []
    for seed in range(3):
        rng = random.Random(seed)
        rng.shuffle(spans)
        rng.shuffle(logs)
        with Receiver() as r:
            at = 0
            while at < len(spans):
                count = rng.randrange(1, 6)
                body = proto(*spans[at:at + count])
                for _ in range(rng.randrange(1, 3)):
                    r.taken(body)
                at += count
            for log in logs:
                r.taken(proto(log), "logs")
            heads.append(r.command("lattice", "heads", "@otel/" + TRACE, "--json"))
    check(len(set(heads)) == 1 and heads[0], "three arrivals, different lattices")


@test
def otlp_traces_are_kept_apart():
    other = "1" * 32
    with Receiver() as r:
        r.taken(proto(Span(1), Span(1, trace=other, agent="coder")))
        r.taken(proto(Span(2, trace=other, agent="coder"), service="else"))
        check(r.nodes() == {"planner": 1} and r.nodes("@otel/" + other) == {"coder": 2})
        check(r.nodes("@otel/service/else") == {"coder": 1})
        for wrong, code in (("@otel/" + "2" * 32, 2), ("@otel/service/none", 2), ("@otel/x", 2)):
            r.command("lattice", "heads", wrong, expect=code)
        c = http.client.HTTPConnection("127.0.0.1", int(r.info["url"].rsplit(":", 1)[1]))
        c.request("GET", "/api/v1/otel/traces?limit=1",
                  headers={"Authorization": "Bearer " + r.token})
        listed = json.loads(c.getresponse().read())
        check(listed["traces"] == [{"first_seq": 0, "spans": 1, "trace_id": TRACE}], listed)
        c.request("GET", "/api/v1/otel/traces?after=" + listed["next_after"],
                  headers={"Authorization": "Bearer " + r.token})
        listed = json.loads(c.getresponse().read())
        check([t["trace_id"] for t in listed["traces"]] == [other], listed)
        lines = r.command("otel", "traces", "--json").splitlines()
        check([json.loads(line)["spans"] for line in lines] == [1, 2], lines)
        for path, status in ((f"otel/{other}/heads", 200), ("otel/heads", 200),
                             ("otel/service/else/heads", 200), (f"otel/{'2' * 32}/heads", 404),
                             ("otel/x/heads", 422), (f"otel/{other}/state?node=@coder", 200)):
            c.request("GET", "/api/v1/lattice/" + path,
                      headers={"Authorization": "Bearer " + r.token})
            answer = c.getresponse()
            body = answer.read()
            check(answer.status == status, path, answer.status, body)
        c.close()


# --- tokens ----------------------------------------------------------------------------------------

@test
def tokens_are_required_where_configured():
    with Receiver() as r:
        r.taken(proto(Span(1)), Authorization="Bearer " + r.token)
        r.refused(401, 16, proto(Span(2)), Authorization="Bearer wrong")
        r.refused(403, 7, proto(Span(2)), Origin="http://127.0.0.1:%d" % r.port)
        check([entry["created_by"] for entry in r.entries()] == ["token:first"], r.entries())
    with Receiver("--otlp-tokens") as r:
        r.refused(401, 16, proto(Span(1)))
        r.taken(proto(Span(1)), Authorization="Bearer " + r.token)
        reader = r.command("token", "add", "--scope", "trace:read", "--name", "r").strip()
        r.refused(403, 7, proto(Span(2)), Authorization="Bearer " + reader)


@test
def plain_http_is_refused_on_other_interfaces():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cortex-otlp-"))
    subprocess.run([BIN, "init", "--no-repo", "--home", str(folder / "home")], env=ENV, check=True,
                   capture_output=True)
    done = subprocess.run([BIN, "serve", "--home", str(folder / "home"), "--listen", "127.0.0.1:0",
                           "--otlp", "0.0.0.0:0"], env=ENV, capture_output=True, timeout=60)
    check(done.returncode == 2 and b"insecure" in done.stderr, done)
    shutil.rmtree(folder)
    with Receiver("--otlp", "0.0.0.0:0", "--insecure") as r:
        r.refused(401, 16, proto(Span(1)))


@test
def otlp_can_be_switched_off_and_its_port_be_in_use():
    with Receiver("--otlp", "off") as r:
        check(r.info["otlp_url"] is None, r.info)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cortex-otlp-"))
        subprocess.run([BIN, "init", "--no-repo", "--home", str(folder / "home")], env=ENV,
                       check=True, capture_output=True)
        done = subprocess.run([BIN, "serve", "--home", str(folder / "home"), "--listen",
                               "127.0.0.1:0", "--otlp", "127.0.0.1:%d" % taken.getsockname()[1]],
                              env=ENV, capture_output=True, timeout=60)
        check(done.returncode == 3, done)
        shutil.rmtree(folder)


# --- lasting ---------------------------------------------------------------------------------------

@test
def what_was_acknowledged_survives_a_kill():
    acknowledged = set()
    lock = threading.Lock()
    with Receiver() as r:
        for round_number in range(3):
            ends = threading.Event()

            def export(which):
                at = 0
                c = http.client.HTTPConnection("127.0.0.1", r.port, timeout=120)
                while not ends.is_set():
                    ids = [1 + round_number * 10**6 + which * 10**5 + at + k for k in range(3)]
                    at += 3
                    try:
                        status, _, _ = r.post(proto(*map(Span, ids)), connection=c)
                    except (OSError, http.client.HTTPException):
                        return
                    if status == 200:
                        with lock:
                            acknowledged.update(ids)
            threads = [threading.Thread(target=export, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            while len(acknowledged) < 150 * (round_number + 1):
                check(any(thread.is_alive() for thread in threads), "exporters gave up")
                threads[0].join(0.01)
            r.stop(signal.SIGKILL)
            ends.set()
            for thread in threads:
                thread.join()
            r.start()
        again = sorted(acknowledged)
        stored = r.nodes()["planner"]
        check(stored >= len(again), stored, len(again))
        before = len(r.entries())
        for at in range(0, len(again), 500):
            r.taken(proto(*map(Span, again[at:at + 500])))
        check(len(r.entries()) == before, "something acknowledged was not there")
        r.command("verify")


@test
def many_exporters_at_once():
    with Receiver() as r:
        def export(which):
            c = http.client.HTTPConnection("127.0.0.1", r.port, timeout=120)
            for at in range(10):
                body = proto(*[Span(1 + at * 5 + k, agent=f"a{which % 4}",
                                    trace="%032x" % (which // 2 + 1)) for k in range(5)])
                status, _, answer = r.post(gzip.compress(body), connection=c,
                                           Content_Encoding="gzip")
                while status in (429, 503):
                    status, _, answer = r.post(gzip.compress(body), connection=c,
                                               Content_Encoding="gzip")
                check(status == 200, status, answer)
        failures = []

        def guarded(which):
            try:
                export(which)
            except Exception as why:  # told by the main thread
                failures.append(why)
        threads = [threading.Thread(target=guarded, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(not failures, failures)
        # Pairs of exporters shared a trace and differed in content: the first counts, both are kept.
        stored, conflicts = r.metric("traces", "stored"), r.metric("traces", "conflict")
        check((stored, conflicts) == (200, 200), stored, conflicts)
        check(sum(r.nodes("@otel").values()) == 400, r.nodes("@otel"))
        r.command("verify")


@test
def erased_spans_are_gone():
    secret = "the secret of the span"
    with Receiver() as r:
        r.taken(proto(Span(1, text=secret)))
        r.taken(proto(Span(2, 1)))
        r.command("erase", "0", "--actor", "otel", "--reason", "asked for")
        check(r.nodes() == {"planner": 1}, r.nodes())
        r.taken(proto(Span(1, text=secret)))
        check(r.nodes() == {"planner": 1}, "what was erased came back")
        r.stop()
        r.command("verify")
        found = [path for path in r.home.rglob("*") if path.is_file()
                 and secret.encode() in path.read_bytes()]
        check(not found, "still there:", found)


if __name__ == "__main__":
    main()
