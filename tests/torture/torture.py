#!/usr/bin/env python3
"""torture.py - everything at once over homes that lose their server, their commands, their disk and their
clock, for a given time; then everything that was acknowledged has to be there.

    torture.py [PROGRAM] [--seconds N] [--seed S] [--clients N] [--pause S] [--keep FOLDER] [--small]
    torture.py [PROGRAM] --judge FOLDER        judges a kept folder again

The seed chooses the operations of each client; how they meet is up to the machine, so a seed that found
something finds it again often, not always.  On failure the folder is kept: operations.jsonl says what was tried
and answered, disk/home is the home, server.log what the server said.  docs/reliability.md tells more.

Closes with `N passed, N failed, N skipped`; a generation of a home counts as one test.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
sys.dont_write_bytecode = True
import kit  # noqa: E402
import world as base  # noqa: E402
from judge import Judge  # noqa: E402
from traffic import Asker, Follower, Recorder  # noqa: E402
from work import Archiver, Reader, Writer  # noqa: E402

DAY = 86400 * 10**9


class World(base.World):
    """The world of this torture: its actors, keys, agents, files to import."""

    def __init__(self, folder, options, generation, fresh=True):
        super().__init__(folder, options, generation)
        self.actors = [f"actor-{i}" for i in range(options.clients)]
        self.erasures, self.erasing_now = [], 0
        self.archived, self.archives_elsewhere = 0, generation % 2 == 0
        self.keys = {}
        self.imports, self.repo = [], self.folder / "repo"
        self.repo.mkdir(exist_ok=True)
        self.agents = []
        if fresh:
            self.files_to_import()
            for words in (["init", "-q", "."], ["-c", "user.name=T", "-c", "user.email=t@example.invalid",
                                                "commit", "-q", "--allow-empty", "-m", "base"]):
                self.must(*words, program=options.git, cwd=self.repo)
            self.must("init", "--no-repo", "--segment-size", options.segment)
            names = ["00000000000000a1", "00000000000000b2"]
            store = self.run("trust", *names, program=options.agents, bad=False)
            (self.folder / "trust.json").write_bytes(store.out)
            self.must("key", "add", self.folder / "trust.json")
            self.agents = [json.loads(self.traces(n, 0, 1))["events"][0]["trace"]["agent_id_hash"] for n in names]
            self.names = dict(zip(self.agents, names))

    def files_to_import(self):
        """The seeds of the fuzz target; their first byte says the format."""
        for name in ("claude-code", "codex", "langfuse", "otlp", "otel-sdk", "swe-agent", "tau-bench", "who-when"):
            file = self.folder / f"to-import-{name}"
            file.write_bytes((HERE.parent.parent / "fuzz/corpus/import" / name).read_bytes()[1:])
            self.imports.append((name, file))

    def key(self, actor):
        """(key file, public key), made when first asked for."""
        with self.lock:
            if actor not in self.keys:
                path = self.folder / f"{actor.replace(':', '-')}.key"
                if not path.exists():
                    self.must("key", "new", path, "--name", f"example.com/{actor}")
                self.keys[actor] = (path, self.must("key", "show", path).out.decode().strip())
            return self.keys[actor]

    def traces(self, agent, first, count):
        name = getattr(self, "names", {}).get(agent, agent)
        return self.run("batch", f"first={first}", name, count, program=self.options.agents, bad=False).out

    @contextlib.contextmanager
    def erasing(self):
        with self.lock:
            self.erasing_now += 1
        try:
            yield
        finally:
            with self.lock:
                self.erasing_now -= 1
                self.erasures.append(time.monotonic())

    def erased_since(self, began):
        with self.lock:
            return self.erasing_now > 0 or any(t >= began for t in self.erasures)

    def acknowledged(self):
        """How many entries each actor's journal has at least."""
        sizes = {}
        for line in list(self.oplog.lines):
            if "root" in line and "actor" in line and "size" in line and line.get("n") is None:
                sizes[line["actor"]] = max(sizes.get(line["actor"], 0), line["size"])
        return sizes

    def check_proof(self, *args):
        done = self.run(*args, program=self.options.verify, bad=False)
        if done.code != 0:
            self.defect("a proof does not hold: " + done.said())

    @staticmethod
    def remove(folder):
        shutil.rmtree(folder, ignore_errors=True)


class Storms(threading.Thread):
    """Now and then the disk is full for a while, or the clock jumps."""

    def __init__(self, world, server, seed):
        super().__init__(name="storms", daemon=True)
        self.world, self.server = world, server
        self.rng = random.Random(f"{seed}-{world.generation}-storms")
        self.full = self.jumps = 0

    def run(self):
        while not self.world.stopping.wait(self.rng.uniform(0.5, self.world.options.storm_s)):
            if self.rng.random() < 0.5:
                self.world.injector.clock(self.rng.choice((0, 1, -1, 3600 * 10**9, -DAY, DAY, -400 * DAY, 400 * DAY)) *
                                         self.rng.randint(1, 3))
                self.jumps += 1
                continue
            with self.world.fault("full"):
                self.world.injector.disk(self.rng.choice((0, 100, 5000, 70000, 400000)))
                self.world.stopping.wait(self.rng.uniform(0.1, 2.0))
                self.world.injector.stop()
                self.full += 1
                if self.rng.random() < 0.7:
                    self.server.failed = True  # started again soon; otherwise the next 503 says so


class Generation:
    """One home from its first byte to its judgement."""

    def __init__(self, folder, options, number):
        self.world = World(folder, options, number)
        seed = options.seed
        self.server = base.Server(self.world, f"{seed}-{number}")
        self.storms = Storms(self.world, self.server, seed)
        self.clients = [Writer(self.world, self.server, f"writer-{i}", seed, actor)
                        for i, actor in enumerate(self.world.actors)]
        self.clients += [Recorder(self.world, self.server, f"recorder-{i}", seed, agent)
                         for i, agent in enumerate(self.world.agents)]
        self.clients += [Reader(self.world, self.server, "reader", seed), Asker(self.world, self.server, "asker", seed),
                         Archiver(self.world, self.server, "archiver", seed)]
        self.follower = Follower(self.world, self.server, "follower", seed)
        self.governor = None
        if options.runs:
            from runs import Governor
            self.governor = Governor(self.world, self.server, "governor", seed)
            self.clients.append(self.governor)

    def torture(self, seconds):
        end = time.monotonic() + seconds
        for client in [*self.clients, self.follower, self.storms]:
            client.start()
        lives = threading.Thread(target=self.guarded, args=(self.server.live,), daemon=True)
        lives.start()
        calm = time.monotonic() + self.world.options.calm_s
        while time.monotonic() < end and not self.world.stopping.wait(0.2):
            if time.monotonic() > calm:
                self.guarded(self.calm)
                calm = time.monotonic() + self.world.options.calm_s
        self.world.stopping.set()
        for client in [*self.clients, self.follower, self.storms, lives]:
            client.join(timeout=2 * base.COMMAND_LIMIT_S)
        self.world.injector.stop()
        self.world.injector.clock(0)

    def guarded(self, what):
        try:
            what()
        except Exception as why:
            if not self.world.defects:
                self.world.defects.append(repr(why))
            self.world.stopping.set()

    def calm(self):
        """Nobody moves: the home holds, and its tables are those of the log."""
        with self.world.gate.shut(), self.server_away():
            self.world.injector.stop()
            self.world.must("verify", "--home", self.world.home)
            roots = self.world.must("roots", "--json").json()
            drop = self.storms.rng.choice((None, "cortex.db", "cirislens.db"))
            if drop:
                for file in self.world.home.glob(drop + "*"):
                    file.unlink()
            rebuilt = self.world.must("tables", "rebuild", "--json").json()
            if drop is None and rebuilt["changed"]:
                self.world.error("tables rebuild", "changed")
            if self.world.must("roots", "--json").json() != roots:
                self.world.defect(f"other roots after the tables were made anew; before {roots}")
            self.world.must("verify", "--home", self.world.home)
            left = [x for x in ("packing", "archiving") if (self.world.home / "log" / x).exists()]
            if left:  # the rebuild opened it for writing
                self.world.defect(f"copies of segments are left: {left}")
            self.world.count("calm")

    @contextlib.contextmanager
    def server_away(self):
        self.server.end(signal.SIGTERM if self.storms.rng.random() < 0.5 else signal.SIGKILL)
        yield

    def judge(self):
        """All of it; a table of what was looked at."""
        if self.world.defects:
            raise base.Defect(self.world.defects[0])
        self.server.end(signal.SIGTERM)
        self.world.must("verify", "--home", self.world.home)
        self.feed()
        self.world.must("tables", "rebuild")
        found = Judge(self.world, base.OperationLog.read(self.world.folder / "operations.jsonl"),
                      random.Random(self.world.options.seed)).all()
        if self.governor:
            found.update(self.governor.judge())
        self.world.must("verify", "--home", self.world.home)
        return found

    def feed(self):
        """The feed, read to its end once more, told everything that was acknowledged, once."""
        if not self.server.start():
            self.world.defect("the server does not start at the end\n" + self.server.log_tail())
        sent = {t[0] for line in self.world.oplog.lines for t in line.get("traces") or () if line.get("done")}
        self.world.stopping.clear()
        reader = threading.Thread(target=self.follower.run, daemon=True)
        reader.start()
        end = time.monotonic() + base.COMMAND_LIMIT_S
        while time.monotonic() < end and not sent <= {k[0] for k in list(self.follower.seen)}:
            time.sleep(0.2)
        self.world.stopping.set()
        reader.join()
        missing = sent - {k[0] for k in self.follower.seen}
        twice = [k for k, count in self.follower.seen.items() if count > 1]
        if missing or twice:
            self.world.defect(f"the feed left out {sorted(missing)[:10]}, told twice {twice[:10]}")
        self.server.end(signal.SIGTERM)

    def summary(self, found):
        world = self.world
        operations = sum(world.counts.values())
        print(f"generation {world.generation}: {operations} operations, {self.server.starts} servers "
              f"({self.server.kills} killed), {sum(1 for x in world.oplog.lines if x.get('killed'))} commands killed, "
              f"{self.storms.full} full disks ({world.injector.refusals()} refusals), {self.storms.jumps} clock jumps")
        print(f"  {world.archived} segments archived on demand")
        print("  operations:", ", ".join(f"{k} {v}" for k, v in sorted(world.counts.items())))
        print("  errors answered:", ", ".join(f"{k} {v}" for k, v in sorted(world.errors.items())) or "none")
        print("  held:", ", ".join(f"{k} {v}" for k, v in found.items()), flush=True)


def judge_again(options):
    """A folder that was kept; its repository and the feed are not looked at again."""
    if not os.path.exists(os.path.join(options.judge, "operations.jsonl")):
        print(f"torture.py: {options.judge} is not a folder that was kept: it has no operations.jsonl", file=sys.stderr)
        return 2
    world = World(os.path.abspath(options.judge), options, 0, fresh=False)
    lines = base.OperationLog.read(world.folder / "operations.jsonl")
    world.agents = sorted({line["agent"] for line in lines if line.get("op") == "traces"})
    try:
        world.must("verify", "--home", world.home)
        world.must("tables", "rebuild")
        found = Judge(world, lines, random.Random(options.seed)).all()
    except base.Defect:
        kit.finish_comparison(False)
    print("held:", ", ".join(f"{k} {v}" for k, v in found.items()))
    kit.finish_comparison(True)


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--clients", type=int, default=3, help="writers; there are six other clients as well")
    parser.add_argument("--pause", type=float, default=0.05, help="between a client's operations, on average")
    parser.add_argument("--keep", help="work in this new folder, and keep it")
    parser.add_argument("--judge", help="judge a folder that was kept")
    parser.add_argument("--injector", help="fault_injector.so; default: next to the program")
    parser.add_argument("--generation", type=int, default=300, help="seconds that a home lives")
    parser.add_argument("--go-on", action="store_true", help="after a failure, with a new home")
    parser.add_argument("--small", action="store_true",
                        help="a page cache of 64 KiB and segments of 64 KiB: homes do not fit into memory")
    parser.add_argument("--no-runs", dest="runs", action="store_false")
    options = parser.parse_args(kit.arguments)
    options.verify, options.agents = kit.sibling("cortex-verify"), kit.sibling("cortex-agents")
    options.git = shutil.which("git")
    options.injector = os.path.abspath(options.injector or kit.sibling("fault_injector.so"))
    options.kill_rate, options.run_kill_rate, options.segment = 0.08, 0.35, "256K"
    if options.small:
        options.segment = "64K"
    options.server_s, options.storm_s, options.calm_s = 12.0, 5.0, 30.0
    return options


def main():
    options = arguments()
    for needed in (options.verify, options.agents, options.injector):
        kit.need_program(needed)
    if options.judge:
        judge_again(options)
    print(f"seed {options.seed}, {options.seconds} s; to repeat: torture.py --seed {options.seed} "
          f"--seconds {options.seconds}", flush=True)
    folder = pathlib.Path(options.keep).resolve() if options.keep else kit.make_folder("cortex-torture-")
    began = time.monotonic()
    end, number, passed, failed = began + options.seconds, 0, 0, 0
    while (not failed or options.go_on) and (number == 0 or end - time.monotonic() > 20):
        number += 1
        place = folder / f"generation-{number}"
        place.mkdir(parents=True)
        generation = Generation(place, options, number)
        try:
            left = end - time.monotonic()
            generation.torture(left if left < 1.5 * options.generation else options.generation)
            generation.summary(generation.judge())
            passed += 1
        except base.Defect as why:
            failed += 1
            print(f"FAILED in generation {number}: {why}")
            print(f"kept: {place}; seed {options.seed}", flush=True)
        finally:
            generation.world.stopping.set()
            if generation.server.process:
                generation.server.process.kill()
                generation.server.process.wait()
        if place.exists() and not options.keep and not generation.world.defects:
            kit.remove(place)
    if not failed and not options.keep:
        kit.remove(folder)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(u.ru_utime + u.ru_stime for u in used)
    print(f"{number} homes; {cpu / (time.monotonic() - began):.2f} cores used on average")
    kit.finish(passed, failed)


if __name__ == "__main__":
    main()
