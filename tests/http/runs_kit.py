"""A server over the runs of a repository, for tests of the API."""
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, check  # noqa: E402
from run_kit import clean_env  # noqa: E402

JSON = "application/json"


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body
        self.type = response.headers.get("Content-Type")

    def json(self):
        return json.loads(self.body)


class Server:
    """The home of a repository, served together with its runs."""

    def __init__(self, repo, *options):
        self.repo = repo
        self.log = tempfile.TemporaryFile()
        self.told = False  # to end: a second signal would end it at once
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", str(repo.home), "--listen", "127.0.0.1:0", "--json", "--repo",
             str(repo.path), *options], stdout=subprocess.PIPE, stderr=self.log, env=clean_env())
        line = self.process.stdout.readline()
        check(line, "it did not start:", self.said())
        self.host, port = json.loads(line)["url"].split("//")[1].rsplit(":", 1)
        self.port = int(port)
        self.token = (repo.home / "token").read_text().strip()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def add_token(self, *scopes):
        words = [word for scope in scopes for word in ("--scope", scope)]
        done = self.repo.cortex("token", "add", *words)
        check(done.returncode == 0, done.stderr)
        return done.stdout.decode().split()[0]

    def ask(self, method, path, body=None, token="", headers=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        headers = dict(headers or {})
        token = self.token if token == "" else token
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if body is not None:
            headers["Content-Type"] = JSON
            body = body if isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        answer = Answer(response, response.read())
        connection.close()
        return answer

    def get(self, path, status=200, **more):
        answer = self.ask("GET", "/api/v1" + path, **more)
        check(answer.status == status, path, answer.status, answer.body[:500])
        return answer.json() if answer.type == JSON else answer

    def problem(self, status, kind, method, path, **more):
        answer = self.ask(method, "/api/v1" + path, **more)
        check(answer.status == status, path, answer.status, answer.body[:500])
        check(answer.type == "application/problem+json", answer.type)
        check(answer.json()["type"] == "urn:cortex:problem:" + kind, answer.body)
        return answer.json()

    def stream(self, path, after=None):
        """A connection whose answer has begun."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        headers = {"Authorization": "Bearer " + self.token}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        connection.request("GET", "/api/v1" + path, headers=headers)
        response = connection.getresponse()
        check(response.status == 200, response.status)
        check(response.headers["Content-Type"] == "text/event-stream", response.headers)
        return connection, response

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        if not self.told:
            self.process.terminate()
        code = self.process.wait(timeout=120)
        self.process.stdout.close()
        said = self.said()
        self.log.close()
        check(failed or code == 0, f"exit {code}\n{said[-3000:]}")
        if failed:
            print("the server said:\n" + said[-3000:])
