#!/usr/bin/env python3
"""Alerts go out: to a webhook, to Alertmanager and to a command, until they arrive; and the detectors
run on a schedule.

Closes with `N passed, N failed, N skipped`.
"""
import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
from agent import Agent, url64  # noqa: E402
from kit import BIN, main, skip, test  # noqa: E402
from server_kit import API, ENV, Server  # noqa: E402
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json

for name in [n for n in ENV if n.lower().endswith("_proxy")]:
    del ENV[name]  # the receivers are on this machine
NEVER = ("--detect-every", "0", "--otlp", "off")


class Receiver:
    """Takes POST requests on loopback, and answers as told: a list of codes, the last one for ever."""

    def __init__(self, *codes, port=0, headers=(), tls=None):
        self.codes, self.headers, self.got = list(codes or [200]), list(headers), []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = receiver.codes[0] if len(receiver.codes) == 1 else receiver.codes.pop(0)
                receiver.got.append((code, self.path, dict(self.headers), body))
                self.send_response(code)
                for name, value in receiver.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http{'' if tls is None else 's'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()

    def taken(self):
        return [json.loads(body) for code, _, _, body in self.got if code // 100 == 2]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def raise_alert(s, name="one"):
    """A conflict: two traces under one id."""
    if not hasattr(s, "agent"):
        s.agent, s.second = Agent("andrew"), 0
        s.register(s.agent)
    s.second += 2
    assert s.post(s.agent.trace(name, second=s.second))["accepted"] == 1
    assert s.post(s.agent.trace(name, second=s.second + 1))["results"][0]["status"] == "conflict"


def alerts(s, *options):
    return json.loads(s.command("alert", "list", "--json", *options))["alerts"]


def check_signature(secret, headers, body):
    headers = {name.lower(): value for name, value in headers.items()}
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f'{headers["webhook-id"]}.{headers["webhook-timestamp"]}.'.encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return headers["webhook-signature"] == "v1," + expected


def unused_port():
    with Receiver() as r:
        return r.port


def counted(s, destination, result):
    line = f'cortex_alert_attempts_total{{destination="{destination}",result="{result}"}} '
    text = s.get("/metrics").body.decode()
    return int(text.partition(line)[2].partition("\n")[0])


@test
def a_webhook_gets_what_happens_to_an_alert_signed():
    with Receiver() as r, Server(*NEVER, "--alert-webhook", r.url + "/hook?x=1") as s:
        secret_file = s.home / "alert-secret"
        secret = secret_file.read_text().strip()
        assert secret.startswith("whsec_") and secret_file.stat().st_mode & 0o077 == 0
        raise_alert(s)
        s.wait_for(lambda: len(r.got) == 1)
        _, path, headers, body = r.got[0]
        message = json.loads(body)
        assert path == "/hook?x=1" and headers["Content-Type"] == "application/json"
        assert check_signature(secret, headers, body), (headers, body)
        assert not check_signature(secret, headers, body + b" ")
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60, headers
        assert message["type"] == "alert.raised" and message["id"] == headers["webhook-id"]
        alert = message["data"]["alert"]
        assert alert["detection_mechanism"] == "trace_id_conflict" and message["data"]["mark"] is None
        assert message["id"] == message["home_id"] + "-0" and len(message["home_id"]) == 32
        # What a person does with it follows, in order.
        s.wait_for(lambda: alerts(s))
        s.command("alert", "ack", alert["alert_id"], "--notes", "looking")
        s.command("alert", "resolve", alert["alert_id"], "--notes", "a test")
        s.wait_for(lambda: len(r.got) == 3)
        acked, resolved = r.taken()[1:]
        assert (acked["type"], resolved["type"]) == ("alert.acknowledged", "alert.resolved")
        assert acked["data"]["alert"] == alert and acked["data"]["mark"]["notes"] == "looking"
        assert resolved["data"]["mark"]["state"] == "resolved"
        shown = s.wait_for(lambda: [a for a in alerts(s, "--all") if a["resolved"]
                                    and [d["state"] for d in a["deliveries"]] == ["delivered"] * 3])[0]
        assert [d["id"] for d in shown["deliveries"]] == [m["id"] for m in r.taken()], shown
        assert "sent         raised to webhook: delivered, attempt 1 at" in s.command("alert", "list", "--all")
        assert counted(s, "webhook", "delivered") == 3
        over_http = s.get(API + "/alerts").json()["alerts"]
        assert over_http == [] or over_http[0]["deliveries"], over_http
        said = s.stop()
        assert f"alert {alert['alert_id']} raised: delivered to webhook, attempt 1" in said, said
        assert secret not in said


@test
def what_is_older_than_the_destination_is_not_sent():
    with Server(*NEVER) as s:
        raise_alert(s, "before")
        s.wait_for(lambda: alerts(s))
        s.stop()
        with Receiver() as r:
            s.options = (*NEVER, "--alert-webhook", r.url)
            s.start()
            raise_alert(s, "after")
            s.wait_for(lambda: r.got)
            time.sleep(0.7)
            assert [m["data"]["alert"]["evidence_traces"] for m in r.taken()] == [["after"]]
            s.stop()


@test
def a_receiver_that_is_down_gets_it_later_and_a_restart_loses_nothing():
    port = unused_port()
    with Server(*NEVER, "--alert-webhook", f"http://127.0.0.1:{port}/") as s:
        raise_alert(s, "one")
        waiting = s.wait_for(lambda: [d for a in alerts(s) for d in a["deliveries"]
                                      if d["attempts"] > 0])[0]
        assert waiting["state"] == "waiting" and waiting["error"] and waiting["next_at"], waiting
        assert counted(s, "webhook", "again") >= 1
        text = s.get("/metrics").body.decode()
        assert 'cortex_alert_waiting{destination="webhook"} 1\n' in text
        assert 'cortex_alert_waiting{destination="command"} 0\n' in text
        raise_alert(s, "two")
        said = s.stop()
        assert "raised: webhook, attempt 1 failed, tried again later: " in said, said
        # What is raised while the server is down waits, too.
        key = alerts(s)[0]["alert_id"]
        s.command("alert", "ack", key)
        s.start()
        with Receiver(port=port) as r:
            s.wait_for(lambda: len(r.got) == 3)
            time.sleep(0.7)
            ids = [m["id"] for m in r.taken()]
            assert len(ids) == len(set(ids)) == 3, ids
            assert [int(i.rsplit("-", 1)[1]) for i in ids] == [0, 1, 2]
            assert waiting["id"] == ids[0]
            s.stop(sig=9, expect=-9)
            s.start()
            time.sleep(0.7)
            assert len(r.got) == 3, "what was delivered is not sent again"
            s.stop()


@test
def errors_are_retried_with_the_same_message():
    with Receiver(500, 503, 200) as r, Server(*NEVER, "--alert-webhook", r.url) as s:
        raise_alert(s)
        s.wait_for(lambda: len(r.got) == 3)
        assert [code for code, *_ in r.got] == [500, 503, 200]
        bodies = {body for *_, body in r.got}
        ids = {headers["webhook-id"] for _, _, headers, _ in r.got}
        assert len(bodies) == len(ids) == 1, "the same message each time"
        secret = (s.home / "alert-secret").read_text().strip()
        assert all(check_signature(secret, headers, body) for _, _, headers, body in r.got)
        s.wait_for(lambda: counted(s, "webhook", "delivered") == 1)
        assert counted(s, "webhook", "again") == 2
        said = s.stop()
        assert "the receiver answered 500" in said and "attempt 3" in said, said


@test
def a_receiver_may_ask_for_more_time_and_redirects_are_not_followed():
    with Receiver(429, 200, headers=[("Retry-After", "2")]) as r, \
            Server(*NEVER, "--alert-webhook", r.url) as s:
        raise_alert(s)
        s.wait_for(lambda: len(r.got) == 1)
        first = time.monotonic()
        s.wait_for(lambda: len(r.got) == 2)
        assert time.monotonic() - first > 1.5, "it was sent again too soon"
        s.stop()
    with Receiver() as other, Receiver(302, headers=[("Location", other.url)]) as r, \
            Server(*NEVER, "--alert-webhook", r.url) as s:
        raise_alert(s)
        s.wait_for(lambda: len(r.got) >= 2)
        assert not other.got
        assert "answered 302, and redirects are not followed" in s.stop()


@test
def certificates_are_verified():
    if shutil.which("openssl") is None:
        skip("openssl is not installed")
    with tempfile.TemporaryDirectory() as folder:
        cert, key = pathlib.Path(folder, "cert.pem"), pathlib.Path(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=receiver",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cert, key)
        with Receiver(tls=tls) as r, Server(*NEVER, "--alert-webhook", r.url) as s:
            raise_alert(s)
            waiting = s.wait_for(lambda: [d for a in alerts(s) for d in a["deliveries"] if d["error"]])[0]
            assert "certificate" in waiting["error"] and not r.got, waiting
            s.stop()
            ENV["SSL_CERT_FILE"] = str(cert)
            try:
                s.start()
                s.wait_for(lambda: r.got)
                s.stop()
            finally:
                del ENV["SSL_CERT_FILE"]


@test
def alertmanager_gets_its_own_form():
    with Receiver() as r, Server(*NEVER, "--alertmanager", r.url + "/prefix/") as s:
        raise_alert(s)
        s.wait_for(lambda: len(r.got) == 1)
        _, path, headers, body = r.got[0]
        assert path == "/prefix/api/v2/alerts" and headers["Content-Type"] == "application/json"
        assert "webhook-id" not in headers
        fired, = json.loads(body)
        labels, notes = fired["labels"], fired["annotations"]
        assert labels["alertname"] == "CortexTraceIdConflict" and labels["agent"] == "andrew", labels
        assert labels["severity"] == "critical" and labels["mechanism"] == "trace_id_conflict"
        assert all(isinstance(v, str) and v for v in [*labels.values(), *notes.values()]), fired
        assert notes["summary"] and notes["action"] and notes["evidence"] == "one", notes
        assert fired["startsAt"] < fired["endsAt"] and fired["endsAt"].endswith("Z")
        s.wait_for(lambda: alerts(s))
        s.command("alert", "ack", labels["alert_id"])
        s.command("alert", "resolve", labels["alert_id"], "--notes", "a test")
        s.wait_for(lambda: len(r.got) == 2)
        ended, = r.taken()[1]
        assert ended["labels"] == labels, "it ends the alert with these labels"
        assert "startsAt" not in ended and ended["endsAt"] < fired["endsAt"]
        time.sleep(0.7)
        assert len(r.got) == 2, "acknowledging is nothing that it knows"
        s.stop()


@test
def a_command_gets_it_on_standard_input():
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        program = pathlib.Path(folder, "program")
        program.write_text('#!/bin/sh\ncat >>"$1"; echo >>"$1"\n'
                           '[ -e "$1.ok" ] || { echo "no room" >&2; echo more >&2; exit 75; }\n')
        program.chmod(0o755)
        with Server(*NEVER, "--alert-command", f"{program}  {out}") as s:
            raise_alert(s)
            failed = s.wait_for(lambda: [d for a in alerts(s) for d in a["deliveries"]
                                         if d["attempts"] > 0])[0]
            assert failed["destination"] == "command", failed
            assert failed["error"].endswith("program ended with exit code 75: no room"), failed
            pathlib.Path(f"{out}.ok").write_text("")
            s.wait_for(lambda: counted(s, "command", "delivered") == 1)
            lines = out.read_text().splitlines()
            assert len(lines) >= 2 and len(set(lines)) == 1, lines
            assert json.loads(lines[0])["type"] == "alert.raised"
            s.stop()


def chained(agent, count, leave_out=()):
    """Traces whose audit entries form a chain of spec 1.0."""
    made, previous = [], ""
    for i in range(count):
        trace = agent.trace("link-%d" % (i + 1), second=i)
        action = trace["components"][5]
        action["data"]["action_executed"] = "speak"
        previous = hashlib.sha256((previous + "speaktrue" + action["timestamp"]).encode()).hexdigest()
        action["data"]["audit_entry_hash"] = previous
        trace["trace_level"] = "detailed"
        trace["signature"] = url64(agent.key.sign(json.dumps(trace["components"], sort_keys=True).encode()))
        made.append(trace)
    return [t for i, t in enumerate(made) if i not in leave_out]


def rounds(s):
    return s.metric("cortex_detect_rounds_total")


def wait_rounds(s, count):
    end = rounds(s) + count
    s.wait_for(lambda: rounds(s) >= end)


@test
def the_detectors_run_on_a_schedule_over_what_is_new():
    with Receiver() as r, Server("--otlp", "off", "--detect-every", "1", "--alert-webhook", r.url) as s:
        agent = Agent("chained")
        s.register(agent)
        wait_rounds(s, 2)  # a new key, and the first round, look at whole chains
        links = chained(agent, 30)
        # A link that arrives a little late is no gap.
        s.post(*links[:5], *links[6:8])
        s.post(links[5])
        wait_rounds(s, 2)
        assert not r.got and alerts(s) == [], r.got
        # One that is left out is, once.
        s.post(*links[8:15], *links[16:20])
        s.wait_for(lambda: r.got)
        message = r.taken()[0]["data"]["alert"]
        assert message["detection_mechanism"] == "hash_chain", message
        assert message["agent_id_hash"] == "chained" and message["severity"] == "critical"
        assert s.metric("cortex_detect_raised_total") == 1
        s.command("alert", "resolve", message["alert_id"], "--notes", "seen")
        s.post(*links[20:25])
        wait_rounds(s, 2)
        # Neither the old gap nor a restart raises it again.
        s.stop()
        s.start()
        s.post(*links[25:])
        wait_rounds(s, 2)
        assert len(r.taken()) == 2 and r.taken()[1]["type"] == "alert.resolved", r.taken()
        assert s.metric("cortex_detect_time_seconds") > 0
        s.stop()


@test
def the_detectors_can_be_turned_off():
    with Server(*NEVER) as s:
        agent = Agent("chained")
        s.register(agent)
        s.post(*chained(agent, 8, leave_out=(4,)))
        time.sleep(1.5)
        assert rounds(s) == 0 and alerts(s) == []
        s.stop()


@test
def wrong_options_are_found_at_the_start():
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder, "home")
        subprocess.run([BIN, "init", "--no-repo", "--home", home], check=True, capture_output=True, env=ENV)
        secret = pathlib.Path(folder, "secret")
        good = "whsec_" + base64.b64encode(bytes(32)).decode()

        def refused(word, *options, code=2, env=ENV):
            done = subprocess.run([BIN, "serve", "--home", home, "--listen", "127.0.0.1:0", "--otlp", "off",
                                   *options], capture_output=True, env=env, timeout=60)
            assert done.returncode == code and word in done.stderr, (options, done)

        for url, word in [("ftp://x/", b"http://"), ("example.com", b"http://"), ("http://", b"names no host"),
                          ("http:///x", b"names no host"), ("http://a b/", b"escaped"),
                          ("http://h:0/", b"port"), ("http://h:x/", b"port"), ("http://h:65536/", b"port"),
                          ("http://h:/", b"port"), ("http://me:pw@h/", b"password"),
                          ("http://[::1/", b"']'"), ("http://h/#f", b"fragment"), ("", b"http://"),
                          ("http://h/" + "x" * 2000, b"2000"), ("http://h/\u00e9", b"escaped")]:
            refused(word, "--alert-webhook", url)
            refused(word, "--alertmanager", url)
        refused(b"no query", "--alertmanager", "http://h/?x")
        refused(b"detect-every", "--detect-every", "86401")
        refused(b"no-such-program", "--alert-command", "no-such-program")
        refused(b"/nowhere/program", "--alert-command", "/nowhere/program x")
        refused(b"expected a program", "--alert-command", " ")
        refused(b"--alert-webhook", "--alert-secret", secret)
        to = ("--alert-webhook", "http://127.0.0.1:1/", "--alert-secret", secret)
        refused(b"there is no file", *to)
        for text, mode, word in [("x", 0o600, b"whsec_"), ("whsec_!", 0o600, b"base64"), ("", 0o600, b"whsec_"),
                                 ("whsec_AAAA", 0o600, b"too short"), (good, 0o644, b"chmod 600"),
                                 ("whsec_" + base64.b64encode(bytes(65)).decode(), 0o600, b"too long")]:
            secret.write_text(text)
            secret.chmod(mode)
            refused(word, *to)
        # A data directory may not choose what runs.
        config = home / "config.toml"
        config.write_text('[serve]\nalert-command = "cat"\n')
        refused(b"cannot name a program")
        config.unlink()
        refused(b"names no host", env={**ENV, "CORTEX_SERVE_ALERT_WEBHOOK": "http://"})


def tell(s, session, *blocks):
    """A transcript of Claude Code in the server's folder."""
    path = s.home / (session + ".jsonl")
    path.write_text("".join(json.dumps({
        "type": kind, "sessionId": session, "uuid": f"{kind}-{n}", "parentUuid": None,
        "message": {"role": kind, "content": [block]}}) + "\n" for n, (kind, block) in enumerate(blocks)))
    return path


@test
def audits_of_sessions_alert_once():
    with Receiver() as r, Server(*NEVER) as s:
        s.stop()
        told = [(kind, block) for name in ("t1", "t2") for kind, block in (
            ("assistant", {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "ls"}}),
            ("user", {"type": "tool_result", "tool_use_id": name, "content": "a"}))]
        payload = {"session_id": "s1", "cwd": "/", "transcript_path": str(tell(s, "s1", *told)),
                   "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"},
                   "tool_use_id": "t1"}
        done = subprocess.run([BIN, "hook", "claude", "--home", str(s.home)], input=json.dumps(payload).encode(),
                              env=ENV, capture_output=True, timeout=60)
        assert done.returncode == 0, done
        s.options = ("--detect-every", "1", "--otlp", "off", "--alert-webhook", r.url)
        s.start()
        s.wait_for(lambda: len(r.got) == 1)
        alert = json.loads(r.got[0][3])["data"]["alert"]
        assert alert["detection_mechanism"] == "enforcement_gap" and alert["severity"] == "critical", alert
        assert alert["agent_id_hash"] == "session:claude-code:s1" and alert["value"] == 1, alert
        assert alert["inputs"]["findings"] == "undecided_call" and alert["inputs"]["session"] == "s1", alert
        wait_rounds(s, 3)
        assert len(r.got) == 1
        text = s.get("/metrics").body.decode()
        assert 'cortex_live_audits_total{verdict="broken"} 1' in text, text
        assert any(a["detection_mechanism"] == "enforcement_gap" for a in s.get(API + "/alerts").json()["alerts"])


main()
