#!/usr/bin/env python3
"""Spans of runs, sent: to a real receiver, and to ones that refuse, wait or are not there.

    test_spans_sent.py [PROGRAM]     PROGRAM defaults to $CORTEX_BIN

Closes with `N passed, N failed, N skipped`.
"""
import http.server
import json
import pathlib
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, Folder, check, main, run, test  # noqa: E402
from receiver import Receiver  # noqa: E402
from run_kit import GOLDEN, GOOD_OPS, Repo, clean_env, contract, reply, sandboxed, script  # noqa: E402

BUNDLE = GOLDEN / "success" / "bundle"
TRACE = (BUNDLE / "trace/trace_id.txt").read_text().strip()


class Stub:
    """Answers each POST with the next of `answers`: (status, headers)."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []
        stub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                stub.asked.append((self.path, dict(self.headers), json.loads(body)))
                status, headers = stub.answers[min(len(stub.asked), len(stub.answers)) - 1]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def closed_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def send(to, *options, **env):
    return run(BIN, "run", "spans", BUNDLE, "--to", to, *options, env={**clean_env(), **env}, cwd="/")


@test
def a_real_receiver_stores_the_run_once():
    with Receiver() as r:
        done = send(f"http://127.0.0.1:{r.port}", "--json")
        check(done.returncode == 0, done.stderr)
        said = json.loads(done.stdout)
        check(said["accepted"] is True and said["status"] == 200 and said["attempts"] == 1, said)
        again = send(f"http://127.0.0.1:{r.port}/v1/traces/")
        check(again.returncode == 0 and again.stdout == b"%d spans sent\n" % said["spans"], again)
        listed = r.command("otel", "traces")
        check(f"{said['spans']} spans  {TRACE}" in listed, listed, said)


@test
def a_receiver_that_wants_a_token_gets_it():
    with Receiver("--otlp-tokens") as r, Folder() as folder:
        url = f"http://127.0.0.1:{r.port}"
        token = r.command("token", "add", "--scope", "trace:write").split()[0]
        none = send(url)
        check(none.returncode == 3 and b"it answered 401" in none.stderr, none.stderr)
        check(b"(1 of 3 attempts)" in none.stderr and b"OTEL_EXPORTER_OTLP_HEADERS" in none.stderr)
        secret = pathlib.Path(folder) / "header"
        secret.write_text(f"Authorization: Bearer {token}\n")
        check(send(url, "--header", f"@{secret}").returncode == 0)
        check(send(url, OTEL_EXPORTER_OTLP_HEADERS=f"Authorization=Bearer%20{token}").returncode == 0)
        bad = send(url, "--header", "Authorization: Bearer no", OTEL_EXPORTER_OTLP_HEADERS="x-a=1, x-b=2")
        check(bad.returncode == 3 and b"Bearer" not in bad.stderr, bad.stderr)


@test
def a_busy_receiver_is_asked_again_and_not_for_ever():
    with Stub((503, {}), (429, {"Retry-After": "1"}), (200, {})) as stub:
        done = send(stub.url, "--json", OTEL_EXPORTER_OTLP_HEADERS="x-key=a%3Db, x-two = 2 ")
        check(done.returncode == 0 and json.loads(done.stdout)["attempts"] == 3, done)
        path, headers, body = stub.asked[0]
        check(path == "/v1/traces" and headers["Content-Type"] == "application/json", path, headers)
        check(headers["x-key"] == "a=b" and headers["x-two"] == "2", headers)
        check(body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] == TRACE)
        check(stub.asked[0][2] == stub.asked[2][2], "another body the second time")
    with Stub((503, {})) as stub:
        done = send(stub.url)
        check(done.returncode == 3 and len(stub.asked) == 3, len(stub.asked), done.stderr)
        check(b"it answered 503" in done.stderr and b"3 of 3" in done.stderr, done.stderr)
    with Stub((503, {"Retry-After": "600"})) as stub:
        check(send(stub.url).returncode == 3 and len(stub.asked) == 1, stub.asked)
    for status in (400, 404, 413, 415, 302):
        with Stub((status, {"Location": "/elsewhere"})) as stub:
            done = send(stub.url)
            check(done.returncode == 3 and len(stub.asked) == 1, status, len(stub.asked))
            check(b"it answered %d" % status in done.stderr, done.stderr)


@test
def wrong_addresses_and_headers_are_usage_errors():
    for to, said in (("ftp://x", b"http"), ("http://", b"host"), ("http://u:p@x", b"password"),
                     ("http://127.0.0.1:4318?x=1", b"/v1/traces")):
        done = send(to)
        check(done.returncode == 2 and said in done.stderr, to, done.stderr)
    for header in ("no colon", ": x", "a b: c", "X: a\nY: b", "X" * 5000 + ": y"):
        done = send("http://127.0.0.1:1", "--header", header)
        check(done.returncode == 2 and b"Name: value" in done.stderr, header[:20], done.stderr)
    many = [word for i in range(17) for word in ("--header", f"X-{i}: y")]
    check(send("http://127.0.0.1:1", *many).returncode == 2)
    check(send("http://127.0.0.1:1", "-o", "/dev/null").returncode == 2)
    check(run(BIN, "run", "spans", BUNDLE, "--header", "X: y", env=clean_env(), cwd="/").returncode == 2)
    nobody = send(f"http://127.0.0.1:{closed_port()}")
    check(nobody.returncode == 3 and b"3 of 3 attempts" in nobody.stderr, nobody.stderr)


@sandboxed
def a_run_sends_its_spans_when_it_has_ended():
    with Folder() as folder, Receiver() as r:
        repo = Repo(folder)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())), "--otlp-endpoint",
                                f"http://127.0.0.1:{r.port}")
        check(done.returncode == 0 and answer["status"] == "SUCCESS", answer, done.stderr)
        check(answer["telemetry"]["accepted"] is True and answer["telemetry"]["attempts"] == 1, answer)
        trace = (pathlib.Path(answer["bundle"]) / "trace/trace_id.txt").read_text().strip()
        check(trace in r.command("otel", "traces"))
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)
        log = repo.cortex("log").stdout.decode()
        check("run.telemetry" in log, log)


@sandboxed
def a_failed_sending_changes_no_outcome():
    with Folder() as folder, Stub((401, {})) as stub:
        repo = Repo(folder)
        header = "Authorization=Bearer%20s3cret"
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())),
                                env={"OTEL_EXPORTER_OTLP_ENDPOINT": stub.url + "/?key=s3cret",
                                     "OTEL_EXPORTER_OTLP_HEADERS": header})
        check(done.returncode == 0 and b"name the whole path" in done.stderr, done.stderr)
        check(b"will not be sent" in done.stderr and answer["telemetry"] is None, done.stderr, answer)
        done, answer = repo.run(contract("unit_task_2"), script((GOOD_OPS, reply("unit_task_2"))),
                                env={"OTEL_EXPORTER_OTLP_ENDPOINT": stub.url,
                                     "OTEL_EXPORTER_OTLP_HEADERS": header})
        check(done.returncode == 0 and answer["merged"], answer, done.stderr)
        check(answer["telemetry"]["accepted"] is False and answer["telemetry"]["status"] == 401, answer)
        check(b"note: the spans of" in done.stderr and b"The run is not affected" in done.stderr)
        check(b"s3cret" not in done.stderr and "s3cret" not in json.dumps(answer), done.stderr)
        check(stub.asked[0][1]["Authorization"] == "Bearer s3cret", stub.asked[0][1])
        check(repo.verify(answer).returncode == 0)
        log = repo.cortex("log").stdout.decode()
        check("run.telemetry" in log and "s3cret" not in log, log)
        count = len(stub.asked)
        off = {"OTEL_EXPORTER_OTLP_ENDPOINT": stub.url, "OTEL_SDK_DISABLED": "True"}
        done, answer = repo.run(contract("unit_task_3"), script((GOOD_OPS, reply("unit_task_3"))),
                                env=off)
        check(answer["telemetry"] is None and len(stub.asked) == count, answer)
        bad = repo.cortex("run", repo.keep("c.json", contract()), "--otlp-endpoint", "x")
        check(bad.returncode == 2 and b"http" in bad.stderr, bad.stderr)
        runs = json.loads(repo.cortex("run", "list", "--json").stdout)["items"]
        check(len(runs) == 3, "a run was started with a wrong endpoint")


if __name__ == "__main__":
    main()
