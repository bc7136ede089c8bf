"""What the tests of the Python package share: the kit of tests/cli, a real server on loopback, and a
spool of their own."""
import http.client
import json
import logging
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
ROOT = PACKAGE.parent.parent
sys.path[:0] = [str(PACKAGE / "src"), str(ROOT / "tests" / "cli")]
# What the user who runs the tests has set does not reach them.
for name in [n for n in os.environ if n.startswith("CORTEX_") and n != "CORTEX_BIN" or n.startswith("XDG_")]:
    del os.environ[name]
os.environ["PYTHONPATH"] = str(PACKAGE / "src")
from kit import BIN, Folder, Place, check, main, need_program, run, sibling, skip, test  # noqa: E402,F401
import cortex_recorder as cortex  # noqa: E402

logging.getLogger("cortex_recorder").addHandler(logging.NullHandler())
logging.getLogger("cortex_recorder").propagate = False


class Said(logging.Handler):
    """with Said() as said: what the package logs, as texts."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())

    def __enter__(self):
        logging.getLogger("cortex_recorder").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("cortex_recorder").removeHandler(self)

    def has(self, text):
        return any(text in one for one in self.texts)


class Server:
    """A server of a Place; `start` again after `end` takes the same port."""

    def __init__(self, place, *options):
        self.place, self.options, self.listen = place, options, "127.0.0.1:0"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", str(self.place.home), "--listen", self.listen, "--otlp", "off",
             "--json", *self.options], env=self.place.env, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        check(line, "the server did not start")
        self.url = json.loads(line)["url"]
        self.listen = self.url.split("//")[1]
        self.token = (self.place.home / "token").read_text().strip()

    def client(self, agent="refunds", **more):
        more = {"spool": str(self.place.folder / "spool"), "key": False, "token": self.token, **more}
        return cortex.init(agent, url=self.url, **more)

    def get(self, path):
        connection = http.client.HTTPConnection(self.listen, timeout=60)
        connection.request("GET", path, headers={"Authorization": "Bearer " + self.token})
        answer = connection.getresponse()
        found = json.loads(answer.read())
        check(answer.status == 200, path, answer.status, found)
        connection.close()
        return found

    def nodes(self, agent="refunds"):
        """The agent's nodes in order; each of them verified."""
        return [self.get(f"/api/v1/lattice/agent/{agent}/show?node={agent}%23{i}")["node"]
                for i in range(self.count(agent))]

    def count(self, agent="refunds"):
        """How many nodes the agent has; its history verifies."""
        report = self.get(f"/api/v1/lattice/agent/{agent}/verify?strict=true")
        check(report["ok"], report)
        heads = self.get(f"/api/v1/lattice/agent/{agent}/heads")["heads"]
        return next(head["seq"] + 1 for head in heads if head["agent"] == agent)

    def marks(self, agent="refunds"):
        """The names that steps put into the agent's memory, one each."""
        return set(self.get(f"/api/v1/lattice/agent/{agent}/state?node=@{agent}")["state"]["memory"])

    def events(self, agent="refunds"):
        return [node["event"] for node in self.nodes(agent)]

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(60)
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()


def wait_for(what, seconds=30):
    end = time.monotonic() + seconds
    while not what():
        check(time.monotonic() < end, "it did not come")
        time.sleep(0.02)


def left_in(folder):
    """Files of a spool but the list of rejected steps."""
    return sorted(p.name for p in pathlib.Path(folder).rglob("*")
                  if p.is_file() and p.name != "rejected.jsonl")
