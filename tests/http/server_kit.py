"""A server over a data directory of its own, for tests of what it answers."""
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

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
from agent import batch  # noqa: E402
from kit import BIN  # noqa: E402

ENV = {k: v for k, v in os.environ.items()
       if k not in ("CORTEX_HOME", "CORTEX_ACTOR", "XDG_DATA_HOME")}
API = "/api/v1/covenant"
JSON = "application/json"


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body
        self.type = response.headers.get("Content-Type")

    def json(self):
        return json.loads(self.body)


class Server:
    """A home served by the program, with tokens for every purpose."""

    def __init__(self, *options, home=None, listen="127.0.0.1:0", tls=None):
        self.folder = None
        if home is None:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cortex-http-"))
            home = self.folder / "home"
            self.command("init", "--no-repo", "--segment-size", "1M", home=home)
        self.home, self.options, self.listen, self.tls = pathlib.Path(home), options, listen, tls
        self.start()
        self.token = (self.home / "token").read_text().strip()

    def start(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", str(self.home), "--listen", self.listen, "--json",
             *self.options], stdout=subprocess.PIPE, stderr=self.log, env=ENV)
        line = self.process.stdout.readline()
        assert line, "it did not start:\n" + self.said()
        said = json.loads(line)
        self.url = said["url"]
        self.otlp_port = int(said["otlp_url"].rsplit(":", 1)[1]) if said.get("otlp_url") else None
        self.host, port = self.url.split("//")[1].rsplit(":", 1)
        self.port = int(port)

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def command(self, *args, home=None, expect=0):
        done = subprocess.run([BIN, *map(str, args), "--home", str(home or self.home)],
                              capture_output=True, env=ENV, timeout=120)
        assert done.returncode == expect, (args, done.returncode, done.stderr)
        return done.stdout.decode().strip()

    def add_token(self, *scopes, **more):
        options = [part for scope in scopes for part in ("--scope", scope)]
        options += [part for name, value in more.items() for part in ("--" + name, value)]
        return self.command("token", "add", *options)

    def connect(self, timeout=30):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout,
                                               context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, token="", headers=None, type=JSON, connection=None):
        headers = dict(headers or {})
        token = self.token if token == "" else token
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None and type is not None:
            headers["Content-Type"] = type
        c = connection or self.connect()
        c.request(method, path, body=body, headers=headers)
        response = c.getresponse()
        answer = Answer(response, response.read())
        if connection is None:
            c.close()
        return answer

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def problem(self, status, kind, method, path, **more):
        """Asks, and checks that the answer is this problem in the form of trace.md §11."""
        answer = self.ask(method, path, **more)
        assert answer.status == status, (method, path[:100], answer.status, answer.body[:300])
        assert answer.type == "application/problem+json", answer.type
        if method == "HEAD":
            return answer
        found = answer.json()
        assert found["type"] == "urn:cortex:problem:" + kind, found
        assert found["status"] == status and found["title"] and found["detail"], found
        assert isinstance(found["errors"], list) and "instance" in found, found
        if status in (429, 503):
            assert answer.headers["Retry-After"], "no Retry-After"
        if status == 401:
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        return answer

    def post(self, *traces, expect=200, **more):
        answer = self.ask("POST", API + "/events", body=batch(*traces), **more)
        assert answer.status == expect, (answer.status, answer.body[:500])
        return answer.json()

    def register(self, agent, **more):
        answer = self.ask("POST", API + "/public-keys", body=agent.registration(**more),
                          token=self.admin())
        assert answer.status in (200, 201), (answer.status, answer.body)

    def admin(self):
        if not hasattr(self, "admin_token"):
            self.admin_token = self.add_token("key:admin", name="admin")
        return self.admin_token

    def wait_for(self, check, seconds=30):
        end = time.time() + seconds
        while True:
            found = check()
            if found or time.time() > end:
                assert found, "it did not come"
                return found
            time.sleep(0.05)

    def traces(self, query=""):
        answer = self.get(API + "/traces" + query)
        if answer.status == 503:
            return []
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json()["traces"]

    def metric(self, name):
        for line in self.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " ") or line.startswith(name + "{"):
                return float(line.rsplit(" ", 1)[1])
        raise KeyError(name)

    def stop(self, sig=signal.SIGTERM, expect=0):
        self.process.send_signal(sig)
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        said = self.said()
        self.log.close()
        assert code == expect, f"exit {code}\n{said[-3000:]}"
        return said

    def __enter__(self):
        return self

    def __exit__(self, failed=None, *_):
        if failed and not self.log.closed and self.said():
            print("the server said:\n" + self.said()[-4000:])
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if not self.process.stdout.closed:
            self.process.stdout.close()
        if not self.log.closed:
            self.log.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
