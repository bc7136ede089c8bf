"""A home that takes OTLP, for tests: started, asked, killed, looked into."""
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, check  # noqa: E402
from otlp_wire import TRACE, read_message  # noqa: E402

ENV = {k: v for k, v in os.environ.items() if k not in ("CORTEX_HOME", "XDG_DATA_HOME")}
PROTO, JSON = "application/x-protobuf", "application/json"


class Receiver:
    """with Receiver() as r: a home that takes OTLP."""

    def __init__(self, *options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cortex-otlp-"))
        self.home = self.folder / "home"
        self.command("init", "--no-repo")
        self.start()

    def start(self):
        options = self.options
        if "--otlp" not in options:
            options = ("--otlp", "127.0.0.1:0", *options)
            if "--otlp-grpc" not in options:
                options = ("--otlp-grpc", "127.0.0.1:0", *options)
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", str(self.home), "--listen", "127.0.0.1:0", "--json", *options],
            stdout=subprocess.PIPE, stderr=self.log, env=ENV)
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise AssertionError("it did not start: " + self.log.read().decode())
        self.info = json.loads(line)
        self.port = int(self.info["otlp_url"].rsplit(":", 1)[1]) if self.info["otlp_url"] else None
        grpc = self.info["otlp_grpc_url"]
        self.grpc_port = int(grpc.rsplit(":", 1)[1]) if grpc else None
        self.token = (self.home / "token").read_text().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(60)
        self.process.stdout.close()

    def command(self, *args, expect=0):
        done = subprocess.run([BIN, *map(str, args), "--home", str(self.home)], env=ENV,
                              capture_output=True, timeout=300)
        check(done.returncode == expect, args, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    def post(self, body, kind="traces", type=PROTO, connection=None, method="POST", path=None,
             **headers):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        c.request(method, path or "/v1/" + kind, body, {"Content-Type": type, **names})
        r = c.getresponse()
        answer = (r.status, r.headers, r.read())
        if connection is None:
            c.close()
        return answer

    def taken(self, body, kind="traces", type=PROTO, **headers):
        """Everything was taken, without a word."""
        status, got, answer = self.post(body, kind, type, **headers)
        check(status == 200 and got["Content-Type"] == type, status, answer)
        check(answer == (b"{}" if type == JSON else b""), answer)

    def refused(self, status, code, body, type=PROTO, **more):
        """A google.rpc.Status in the encoding of the request; its message."""
        found, headers, answer = self.post(body, type=type, **more)
        check(found == status, found, answer)
        if type == PROTO:
            check(headers["Content-Type"] == PROTO, headers["Content-Type"])
            message = read_message(answer)
            got, text = message[1][0], message[2][0].decode()
        else:
            check(headers["Content-Type"] == JSON, headers["Content-Type"])
            got, text = json.loads(answer)["code"], json.loads(answer)["message"]
        check(got == code and text, got, text)
        return text

    def entries(self):
        return [json.loads(line) for line in
                self.command("log", "--all", "--actor", "otel", "--json").splitlines()]

    def nodes(self, branch="@otel/" + TRACE):
        """node count by agent, without the importer's."""
        heads = json.loads(self.command("lattice", "heads", branch, "--json"))
        return {head["agent"]: head["seq"] + 1 for head in heads["heads"]
                if head["agent"] != "importer"}

    def metric(self, signal, result):
        return self.value(f'cortex_otlp_records_total{{signal="{signal}",result="{result}"}}')

    def value(self, name):
        """Of a metric with its labels."""
        c = http.client.HTTPConnection("127.0.0.1", int(self.info["url"].rsplit(":", 1)[1]))
        c.request("GET", "/metrics", headers={"Authorization": "Bearer " + self.token})
        text = c.getresponse().read().decode()
        c.close()
        name += " "
        return int([line for line in text.splitlines() if line.startswith(name)][0][len(name):])
