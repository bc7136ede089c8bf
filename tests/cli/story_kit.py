"""What tests of things and evidence share: a memory, a decision that read it, a run, and their
links."""
import json
import subprocess

from kit import sibling, check
from run_kit import GOOD_OPS, Repo, contract, reply, script

AGENT = "coder"


def ask(repo, command, *args, code=0, env=None):
    done = repo.cortex(command, *args, "--json", env=env)
    check(done.returncode == code, command, args, done.returncode, done.stdout[-2000:], done.stderr)
    return json.loads(done.stdout) if done.stdout else None


def agents(*args):
    return subprocess.run([sibling("cortex-agents"), *args], capture_output=True, check=True).stdout


def record(repo, batch, trust=True):
    if trust:
        keys = repo.keep("trust.json", agents("trust", AGENT).decode())
        check(repo.cortex("key", "add", keys).returncode == 0)
    path = repo.keep("batch.json", json.dumps(batch))
    done = repo.cortex("record", path, "--json")
    check(done.returncode == 0, done.stdout, done.stderr)
    return batch["events"][0]["trace"]["trace_id"]


def fact(repo, *args):
    done = repo.cortex("memory", "write", "Fact", json.dumps(
        {"statement": "the limit is 500", "subject": "policy", "predicate": "is"}),
        "--actor", "desk", *args)
    check(done.returncode == 0, done.stderr)
    return done.stdout.decode().strip()


class Story:
    """A memory that a decision read, a run, the decision that names the run, a memory of both."""

    def __init__(self, folder, signed=True):
        self.repo = Repo(folder)
        self.read = fact(self.repo)
        _, answer = self.repo.run(contract(), script((GOOD_OPS, reply())))
        check(answer["status"] == "SUCCESS", answer)
        self.run = answer["run_id"]
        self.commit = self.repo.head()
        why = "as " + self.read + " says"
        if signed:
            why += ", in cortex://run/" + self.run
        batch = json.loads(agents("batch", "level=full_traces", "rationale=" + why, AGENT, "1"))
        batch["correlation_metadata"] = {"run_id": self.run}
        self.trace = record(self.repo, batch)
        self.kept = fact(self.repo, "--derived-from", "cortex://trace/" + self.trace,
                         "--derived-from", "cortex://run/" + self.run)
