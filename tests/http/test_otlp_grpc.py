#!/usr/bin/env python3
"""OTLP over gRPC from outside: with Debian's gRPC, with node's HTTP/2, and frame by frame.

    test_otlp_grpc.py [PROGRAM] [WORDS]     PROGRAM defaults to $CORTEX_BIN
"""
import base64
import gzip
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE)]
from kit import BIN, check, main, skip, test  # noqa: E402
from receiver import ENV, Receiver  # noqa: E402
from otlp_wire import Log, Span, proto, read_message  # noqa: E402

COLLECTOR = "/opentelemetry.proto.collector."
TRACES, LOGS, METRICS = (COLLECTOR + name + "/Export" for name in
                         ("trace.v1.TraceService", "logs.v1.LogsService",
                          "metrics.v1.MetricsService"))
NODE = shutil.which("node")


def python_with_grpc():
    for program in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(program) and subprocess.run(
                [program, "-c", "import grpc"], capture_output=True, check=False).returncode == 0:
            return program
    return None


PYTHON = python_with_grpc()


def ask(program, script, question):
    done = subprocess.run([program, str(HERE / script)], input=json.dumps(question), timeout=120,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stdout, done.stderr)
    return json.loads(done.stdout)


def grpc(r, *calls):
    """(code, text, body) of calls by Debian's gRPC."""
    if PYTHON is None:
        skip("python3-grpcio is not installed")
    return ask(PYTHON, "grpc_client.py", {"port": r.grpc_port, "calls": list(calls)})


def one(r, body, path=TRACES, **more):
    return grpc(r, {"path": path, "body": body.hex(), **more})[0]


def framed(body, flag=0, length=None):
    return struct.pack(">BI", flag, len(body) if length is None else length) + body


def node(r, *calls, **more):
    """Answers of calls that are open at once on one connection of node."""
    if NODE is None:
        skip("node is not installed")
    listed = [{"path": TRACES, **call, "parts": [part.hex() for part in call.get("parts", [])]}
              for call in calls]
    return ask(NODE, "grpc_calls.mjs", {"port": r.grpc_port, "calls": listed, **more})


def status_of(answer):
    """(code, text) of an answer, whether it came in trailers or alone."""
    found = {**answer["headers"], **answer["trailers"]}
    return int(found.get("grpc-status", -1)), found.get("grpc-message", "")


# --- frames ----------------------------------------------------------------------------------------

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 9
CALM = 0xB  # ENHANCE_YOUR_CALM


def frame(type, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((type, flags)) + \
        struct.pack(">I", stream) + payload


def packed(*fields):
    """Header fields as HPACK writes them without a table and without Huffman."""
    return b"".join(b"\x00" + bytes((len(name),)) + name.encode() + bytes((len(value),)) +
                    value.encode() for name, value in fields)


CALL = packed((":method", "POST"), (":scheme", "http"), (":path", TRACES), (":authority", "x"),
              ("content-type", "application/grpc"), ("te", "trailers"))


class Raw:
    def __init__(self, r, hello=True):
        self.socket = socket.create_connection(("127.0.0.1", r.grpc_port), timeout=30)
        self.got = b""
        if hello:
            self.send(PREFACE, frame(SETTINGS))

    def send(self, *frames):
        """False when the other side has closed."""
        try:
            self.socket.sendall(b"".join(frames))
            return True
        except OSError:
            return False

    def frames(self, until=None):
        """What comes, until a frame of that type or the end."""
        while True:
            while len(self.got) >= 9:
                size = int.from_bytes(self.got[:3], "big")
                if len(self.got) < 9 + size:
                    break
                found = (self.got[3], self.got[4], int.from_bytes(self.got[5:9], "big"),
                         self.got[9:9 + size])
                self.got = self.got[9 + size:]
                yield found
                if found[0] == until:
                    return
            try:
                part = self.socket.recv(65536)
            except ConnectionError:
                return
            if not part:
                return
            self.got += part

    def goaway(self):
        """Its error code; None when the connection ended without one."""
        for type, _, _, payload in self.frames(GOAWAY):
            if type == GOAWAY:
                return int.from_bytes(payload[4:8], "big")
        return None

    def close(self):
        self.socket.close()


# --- exports ---------------------------------------------------------------------------------------

@test
def a_grpc_client_sends_spans_and_logs():
    with Receiver() as r:
        answers = grpc(r, {"path": TRACES, "body": proto(Span(1), Span(2, 1)).hex()},
                       {"path": TRACES, "body": proto(Span(3, 2)).hex(), "gzip": True},
                       {"path": LOGS, "body": proto(Log("I will look", 1)).hex(), "gzip": True},
                       {"path": TRACES, "body": ""})
        check(all((a["code"], a["body"]) == ("OK", "") for a in answers), answers)
        check(r.nodes() == {"planner": 4}, r.nodes())
        entries = r.entries()
        check([e["kind"] for e in entries] ==
              ["otlp.traces.protobuf", "otlp.traces.protobuf", "otlp.logs.protobuf"], entries)
        check(entries[1]["payload"] == {"hex": proto(Span(3, 2)).hex()}, entries[1])
        r.command("lattice", "verify", "@otel/" + Span(1).trace, "--content-ids", "--require-seals")
        check(r.value('cortex_grpc_calls_total{code="OK"}') == 4)
        r.command("verify")


@test
def a_span_by_grpc_and_by_http_is_one():
    with Receiver() as r:
        check(one(r, proto(Span(1)))["code"] == "OK")
        r.taken(proto(Span(1)))
        r.taken(proto(Span(2)))
        check(one(r, proto(Span(2)), gzip=True)["code"] == "OK")
        check((r.metric("traces", "stored"), r.metric("traces", "duplicate")) == (2, 2))
        check(len(r.entries()) == 2, r.entries())


@test
def partial_success_is_told():
    with Receiver() as r:
        bad = Span(2)
        bad.id = "0" * 16
        answer = one(r, proto(Span(1), bad))
        check(answer["code"] == "OK", answer)
        part = read_message(read_message(bytes.fromhex(answer["body"]))[1][0])
        check(part[1][0] == 1 and part[2][0], part)
        again = one(r, proto(Span(1, name="other")))
        part = read_message(read_message(bytes.fromhex(again["body"]))[1][0])
        check(1 not in part and b"different content" in part[2][0], part)


@test
def what_cannot_be_accepted_has_a_code_and_a_reason():
    with Receiver() as r:
        for body, path, code, word in (
                (b"\xff", TRACES, "INVALID_ARGUMENT", "protobuf"),
                (b"", METRICS, "UNIMPLEMENTED", "OTEL_METRICS_EXPORTER=none"),
                (b"", "/grpc.health.v1.Health/Check", "UNIMPLEMENTED", "TraceService"),
                (b"", TRACES.replace("Export", "Import"), "UNIMPLEMENTED", "TraceService"),
                (bytes(9 << 20), TRACES, "RESOURCE_EXHAUSTED", "8388608")):
            answer = one(r, body, path)
            check(answer["code"] == code and word in answer["text"], answer)
        bomb = one(r, bytes(8 << 20), gzip=True)
        check(bomb["code"] == "INVALID_ARGUMENT", bomb)
        check(r.command("log", "--actor", "otel", expect=2) == "", "something was kept")


@test
def many_calls_share_one_connection():
    with Receiver() as r:
        for at in range(3):
            calls = [{"parts": [framed(proto(Span(100 * at + i + 1)))]} for i in range(100)]
            answers = node(r, *calls)["answers"]
            check(all(status_of(a) == (0, "") and a["body"] == "0000000000" for a in answers),
                  [a for a in answers if status_of(a)[0] != 0][:1])
        check(r.metric("traces", "stored") == 300)
        big = proto(*(Span(i, name="x" * 1000) for i in range(1000, 3000)))
        answers = node(r, *[{"parts": [framed(big)]} for _ in range(2)])["answers"]
        check([status_of(a) for a in answers] == [(0, "")] * 2, answers)
        check(r.metric("traces", "stored") == 2300)


@test
def what_breaks_the_protocol_is_answered():
    good = proto(Span(1))
    half = framed(good)[:-3]
    cases = [  # HTTP status, grpc-status, a word of the message, call
        (415, 3, "4318", {"headers": {"content-type": "application/x-protobuf"}}),
        (415, 3, "application/grpc", {"headers": {"content-type": "application/grpcx"}}),
        (405, 12, "POST", {"method": "PUT"}),
        (200, 12, "gzip", {"headers": {"grpc-encoding": "zstd"}, "parts": [framed(good, 1)]}),
        (200, 13, "grpc-encoding", {"parts": [framed(gzip.compress(good), 1)]}),
        (200, 3, "flag", {"parts": [framed(good, 2)]}),
        (200, 8, "8388608", {"parts": [framed(b"", 0, 0xFFFFFFFF)], "end": False}),
        (200, 8, "16777216", {"headers": {"grpc-encoding": "gzip"},
                              "parts": [framed(gzip.compress(bytes(64 << 20)), 1)]}),
        (200, 3, "compressed", {"headers": {"grpc-encoding": "gzip"},
                                "parts": [framed(b"plain", 1)]}),
        (200, 3, "shorter", {"parts": [half]}),
        (200, 3, "shorter", {"parts": [b"\0\0"]}),
        (200, 12, "after it", {"parts": [framed(good) + framed(good)]}),
        (200, 12, "found none", {}),
        (200, 3, "grpc-timeout", {"headers": {"grpc-timeout": "5"}}),
        (200, 3, "grpc-timeout", {"headers": {"grpc-timeout": "123456789S"}}),
        (200, 8, "metadata", {"headers": {"x-long": "x" * 20000}}),
        (200, 4, "timeout", {"headers": {"grpc-timeout": "100m"}, "parts": [half], "end": False}),
        (200, 16, "token", {"headers": {"authorization": "Bearer " + "x" * 600}}),
        (200, 7, "web page", {"headers": {"origin": "http://evil.example"}}),
    ]
    with Receiver() as r:
        answers = node(r, *(call for _, _, _, call in cases))["answers"]
        for (http, code, word, call), answer in zip(cases, answers):
            found, text = status_of(answer)
            check((answer["headers"].get(":status"), found) == (http, code) and word in text,
                  (http, code, word), answer)
        fine = {"headers": {"grpc-encoding": "gzip", "grpc-timeout": "20S",
                            "content-type": "application/grpc+proto"}}
        parts = [framed(good, 0)[i:i + 1] for i in range(len(framed(good)))]
        check(r.command("log", "--actor", "otel", expect=2) == "", "something was kept")
        check(status_of(node(r, {**fine, "parts": parts})["answers"][0]) == (0, ""))
        check(len(r.entries()) == 1, r.entries())


@test
def tokens_are_those_of_http():
    with Receiver("--otlp-tokens") as r:
        writer = r.command("token", "add", "--name", "shop", "--scope", "trace:write").split()[-1]
        reader = r.command("token", "add", "--name", "look", "--scope", "trace:read").split()[-1]
        body = proto(Span(1))
        for token, code in ((None, "UNAUTHENTICATED"), ("cortex_" + "x" * 43, "UNAUTHENTICATED"),
                            (reader, "PERMISSION_DENIED"), (writer, "OK")):
            metadata = [] if token is None else [("authorization", "Bearer " + token)]
            answer = one(r, body, metadata=metadata)
            check(answer["code"] == code, token, answer)
        entry = r.entries()[0]
        check("token:shop" in json.dumps(entry), entry)
    with Receiver() as r:
        answer = one(r, proto(Span(1)), metadata=[("authorization", "Bearer wrong")])
        check(answer["code"] == "UNAUTHENTICATED", answer)


@test
def what_may_be_sent_again_says_when():
    with Receiver("--body-memory", "20000") as r:
        big = proto(*(Span(i) for i in range(1, 400)))
        answer = node(r, {"parts": [framed(big)]})["answers"][0]
        check(status_of(answer)[0] == 14, answer)
        detail = base64.b64decode(answer["headers"]["grpc-status-details-bin"] + "==")
        status = read_message(detail)
        check(status[1][0] == 14 and b"in progress" in status[2][0], status)
        any_ = read_message(status[3][0])
        check(any_[1][0] == b"type.googleapis.com/google.rpc.RetryInfo", any_)
        check(read_message(read_message(any_[2][0])[1][0])[1][0] == 1, any_)
        check(one(r, proto(Span(1)))["code"] == "OK", "the memory did not come back")


# --- connections -----------------------------------------------------------------------------------

@test
def pings_are_answered_and_the_end_is_announced():
    with Receiver() as r:
        raw, idle = Raw(r), Raw(r)
        raw.send(frame(PING, payload=b"12345678"))
        acks = [f for f in raw.frames(PING) if f[0] == PING]
        check(acks == [(PING, 1, 0, b"12345678")], acks)
        began = time.time()
        r.process.send_signal(signal.SIGTERM)
        check((raw.goaway(), idle.goaway()) == (0, 0), "no GOAWAY")
        check(r.process.wait(30) == 0 and time.time() - began < 10, "it did not end")
        raw.close()
        idle.close()


@test
def a_call_in_progress_is_finished_at_the_end():
    with Receiver() as r:
        whole = framed(proto(Span(1)))
        found = node(r, {"parts": [whole[:20], whole[20:]]}, stop=r.process.pid)
        check(found["events"] == ["goaway 0"], found)
        check(status_of(found["answers"][0]) == (0, ""), found)
        check(r.process.wait(30) == 0)
        check(len(r.entries()) == 1)


@test
def floods_end_their_connection_only():
    with Receiver() as r:
        floods = {
            "settings": lambda i: frame(SETTINGS),
            "pings": lambda i: frame(PING, payload=b"12345678"),
            "priorities": lambda i: frame(PRIORITY, 0, 1, b"\0\0\0\0\x01"),
            "empty data": lambda i: (frame(HEADERS, 4, 1, CALL) if i == 0 else b"") +
            frame(DATA, 0, 1),
            "resets": lambda i: frame(HEADERS, 4, 2 * i + 1, CALL) +
            frame(RESET, 0, 2 * i + 1, b"\0\0\0\x08"),
            "continuations": lambda i: frame(HEADERS, 0, 1, CALL) if i == 0 else
            frame(CONTINUATION, 0, 1),
        }
        for name, make in floods.items():
            before = r.value("cortex_grpc_closed_flood_total")
            raw = Raw(r)
            for start in range(0, 20000, 100):
                if not raw.send(*(make(i) for i in range(start, start + 100))):
                    break
            raw.socket.settimeout(10)
            try:
                # The end of a connection may overtake what was said before it.
                check(raw.goaway() in (CALM, None) or name == "continuations", name)
            except TimeoutError:
                check(False, name, "was not stopped")
            raw.close()
            # libnghttp2 has a limit of its own for these.
            check(r.value("cortex_grpc_closed_flood_total") == before + 1 or
                  name == "continuations", name)
        answer = node(r, {"parts": [framed(proto(Span(1)))]})["answers"][0]
        check(status_of(answer) == (0, ""), answer)


@test
def resets_by_a_client_leave_nothing():
    with Receiver() as r:
        calls = [{"parts": [framed(proto(Span(i + 1)))], "reset": True} for i in range(50)]
        node(r, *calls)
        for _ in range(200):
            left = [r.value("cortex_http_body_memory_bytes"), r.value("cortex_http_in_flight")]
            if left == [0, 1]:  # one: the question for it
                break
            time.sleep(0.05)
        check(left == [0, 1], left)
        check(status_of(node(r, {"parts": [framed(proto(Span(99)))]})["answers"][0]) == (0, ""))


@test
def slow_clients_are_cut_off():
    options = ("--header-timeout", "1", "--body-timeout", "1", "--answer-timeout", "1")
    with Receiver(*options) as r:
        silent, half, body = Raw(r, hello=False), Raw(r), Raw(r)
        half.send(frame(HEADERS, 0, 1, CALL[:20]))
        body.send(frame(HEADERS, 4, 1, CALL), frame(DATA, 0, 1, framed(proto(Span(1)))[:9]))
        check(silent.socket.recv(1) == b"", "a silent connection stays")
        check(half.goaway() == CALM, "half a header stays")
        answered = [f for f in body.frames(HEADERS) if f[0] == HEADERS]
        check(answered and answered[0][1] & 1, answered)
        for raw in (silent, half, body):
            raw.close()
        answer = node(r, {"parts": [framed(proto(Span(1)))[:9]], "end": False})["answers"][0]
        check(status_of(answer)[0] == 4 and "too long" in status_of(answer)[1], answer)


@test
def other_protocols_are_told_apart():
    with Receiver() as r:
        for text in (b"POST /v1/traces HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"):
            raw = Raw(r, hello=False)
            raw.send(text)
            answer = b"".join(iter(lambda: raw.socket.recv(4096), b""))
            head, _, said = answer.partition(b"\r\n\r\n")
            check(head.startswith(b"HTTP/1.1 400 ") and b"4318" in said, answer)
            check(b"Content-Length: %d" % len(said) in head, answer)
            raw.close()
        for _ in range(2):
            raw = Raw(r, hello=False)
            raw.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40))
            check(raw.socket.recv(1) == b"", "TLS was answered")
            raw.close()
        r.log.seek(0)
        said = r.log.read().decode()
        check(said.count("OTEL_EXPORTER_OTLP_INSECURE") == 1, said)


@test
def random_frames_do_no_harm():
    source = random.Random(20)
    with Receiver() as r:
        for _ in range(150):
            raw = Raw(r, hello=source.random() < 0.9)
            good = frame(HEADERS, 4, 1, CALL) + frame(DATA, 1, 1, framed(proto(Span(1))))
            parts = []
            for _ in range(source.randrange(1, 12)):
                if source.random() < 0.5:
                    at = bytearray(good)
                    at[source.randrange(len(at))] = source.randrange(256)
                    parts.append(bytes(at))
                else:
                    parts.append(frame(source.randrange(12), source.randrange(64),
                                       source.randrange(6), source.randbytes(source.randrange(40))))
            raw.send(*parts)
            raw.close()
        check(r.process.poll() is None, "it ended")
        check(status_of(node(r, {"parts": [framed(proto(Span(7)))]})["answers"][0]) == (0, ""))
        r.stop()
        check(r.process.returncode == 0, r.process.returncode)


# --- the option ------------------------------------------------------------------------------------

@test
def the_listener_can_be_elsewhere_or_off():
    for options in (("--otlp-grpc", "off"), ("--otlp", "off")):
        with Receiver(*options) as r:
            check(r.info["otlp_grpc_url"] is None, r.info)
    with Receiver("--otlp", "off", "--otlp-grpc", "127.0.0.1:0") as r:
        check(r.port is None and r.grpc_port, r.info)
    with Receiver("--otlp-grpc", "[::1]:0") as r:
        check(r.info["otlp_grpc_url"].startswith("http://[::1]:"), r.info)


def refused(home, *options):
    return subprocess.run([BIN, "serve", "--home", home, "--listen", "127.0.0.1:0", "--otlp", "off",
                           *options], env=ENV, capture_output=True, text=True, timeout=60,
                          check=False)


@test
def an_address_that_others_reach_needs_permission():
    with tempfile.TemporaryDirectory(prefix="cortex-grpc-") as folder:
        home = folder + "/home"
        subprocess.run([BIN, "init", "--no-repo", "--home", home], env=ENV, check=True,
                       capture_output=True)
        done = refused(home, "--otlp-grpc", "0.0.0.0:0")
        check(done.returncode == 2 and "--insecure" in done.stderr, done)
        done = refused(home, "--otlp-grpc", "somewhere")
        check(done.returncode == 2 and "127.0.0.1" in done.stderr, done)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = refused(home, "--otlp-grpc", f"127.0.0.1:{port}")
            check(done.returncode == 3 and str(port) in done.stderr, done)
    with Receiver("--otlp-grpc", "0.0.0.0:0", "--insecure") as r:
        check(one(r, proto(Span(1)))["code"] == "UNAUTHENTICATED")
        answer = one(r, proto(Span(1)), metadata=[("authorization", "Bearer " + r.token)])
        check(answer["code"] == "OK", answer)


if __name__ == "__main__":
    main()
