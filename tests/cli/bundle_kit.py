"""bundle_kit.py - runs of a part of a fleet, and machines that verify their stored bundles."""
import json
import pathlib
import struct
import urllib.request

import kit
from kit import check
from fleet_kit import Machine, policies, Writing
from run_kit import GOOD_OPS, contract, reply, script

HOST_FREE = ("CORTEX_HOME", "CORTEX_URL", "CORTEX_TOKEN")


def ran(machine, value=None):
    """The id of a run that was merged."""
    value = value or contract()
    done, answer = machine.run(value, script((GOOD_OPS, reply(value["task_id"]))))
    check(answer["status"] == "SUCCESS", done.stderr, answer)
    check(b"note:" not in done.stderr, done.stderr)
    return answer["run_id"]


def entries(machine, kind):
    done = machine.cortex("log", "--actor", machine.actor(), "--json", "--last", "100000")
    check(done.returncode == 0, done)
    found = [json.loads(line) for line in done.stdout.decode().splitlines()]
    return [entry for entry in found if entry.get("kind") == kind]


def payload(entry):
    value = entry["payload"]
    return json.loads(value) if isinstance(value, str) else value


class Stranger:
    """A machine without a clone, that knows the part by its address, or only a node of it."""

    def __init__(self, fleet, folder, **env):
        self.folder = pathlib.Path(folder)
        self.env = {name: value for name, value in {**fleet.env, **env}.items() if name not in HOST_FREE or name in env}

    def cortex(self, *words):
        return kit.run(kit.BIN, *map(str, words), env=self.env, cwd=self.folder)

    def verdict(self, run_id, code):
        done = self.cortex("run", "verify", run_id, "--json")
        check(done.returncode == code, done)
        return json.loads(done.stdout)


def fetch(node, path, token):
    with urllib.request.urlopen(urllib.request.Request(node.about["url"] + path,
                                                       headers={"Authorization": "Bearer " + token})) as answer:
        return answer.read()


def strangers(fleet, node, folder):
    by_part = Stranger(fleet, folder, CORTEX_HOME=fleet.url)
    by_node = Stranger(fleet, folder, CORTEX_URL=node.about["url"], CORTEX_TOKEN=fleet.writer)
    return by_part, by_node


class Setting:
    """A part with two nodes, a repository with two clones, and an empty folder."""

    def __init__(self, database, ttl_s=600, slow_s=None, config=None, **env):
        self.writing, self.policies = Writing(database), {"ttl_s": ttl_s, "slow_s": slow_s}
        self.config, self.env = config, env

    def __enter__(self):
        self.fleet = self.writing.__enter__()
        self.fleet.env.update(self.env)
        if self.config is not None:
            path = pathlib.Path(self.fleet.folder) / "part.toml"
            path.write_text(self.config)
            path.chmod(0o600)
            self.fleet.ok("fleet", "config", self.fleet.part, "--set", str(path))
        self.folders = [kit.make_folder("cortex-bundles-") for _ in range(4)]
        repo, self.key = policies(self.folders[0], **self.policies)
        self.node, other = self.fleet.pair()
        self.first = Machine(repo, self.folders[1], self.fleet, self.node)
        self.second = Machine(repo, self.folders[2], self.fleet, other)
        self.away = self.folders[3]
        return self

    def __exit__(self, *what):
        self.writing.__exit__(*what)
        for folder in self.folders:
            kit.remove(folder)

def a_month_later(folder):
    """What a command has in its environment for which it is 31 days later."""
    path = pathlib.Path(folder) / "clock"
    path.write_bytes(struct.pack("qqQ", 31 * 86400 * 10**9, -1, 0))
    return {"LD_PRELOAD": kit.sibling("fault_injector.so"), "CORTEX_FAULTS": str(path), "CORTEX_FAULTS_UNDER": "/nonexistent"}



def check_kept_by_hold_then_gone(s, run_id, check_holds):
    """A hold of the run keeps its stored bundle, from `erase --run` and from a rule; without it, the rule takes it."""
    now = s.fleet.env_of(s.node)
    later = {**now, **a_month_later(s.away)}
    apply = ("retention", "apply", "--retention", "run.bundle_part 30d", "--json")

    def run(code, env, *words):
        done = kit.run(kit.BIN, *words, env=env, cwd=s.away)
        check(done.returncode == code, words, done)
        return json.loads(done.stdout)
    hold = run(0, later, "hold", "add", "--run", run_id, "--reason", "a case", "--json")["hold"]
    check(run(4, later, *apply)["held"] == 1)
    done = s.second.cortex("erase", "--run", run_id, "--reason", "asked for", "--json")
    check(done.returncode == 4 and json.loads(done.stdout)["held"] == 1, done)
    check_holds()
    run(0, later, "hold", "release", str(hold), "--reason", "closed", "--json")
    check(run(0, now, *apply)["entries"] == 0, "before its time")
    check(run(0, later, *apply)["entries"] == 1)
