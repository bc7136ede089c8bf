"""Governed runs in a repository of their own, killed at any moment: main is moved by a whole run or not at
all, and whatever is left can be cleared and verified."""
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import run_kit  # noqa: E402
from work import Client  # noqa: E402
from world import COMMAND_LIMIT_S  # noqa: E402


class Governor(Client):
    """One run after the other; each adds one line to two files, or is refused."""

    def __init__(self, world, server, name, seed):
        super().__init__(world, server, name, seed)
        self.base = world.disk / name
        self.base.mkdir()
        self.repo = run_kit.Repo(self.base, bare_home=True)
        self.repo.home = world.home
        self.actor = self.repo.actor()
        self.pause = world.options.pause * 4

    def operations(self):
        return [(self.good_run, 6), (self.refused_run, 2), (self.look, 2)]

    def contract(self, number):
        return run_kit.contract(f"torture_{number}", allowed_paths=["src/app/", "src/lib/"])

    def govern(self, number, ops):
        task = f"torture_{number}"
        contract, script = self.base / f"{task}.json", self.base / f"{task}.script.json"
        contract.write_text(json.dumps(self.contract(number)))
        script.write_text(json.dumps(run_kit.script((ops, run_kit.reply(task)))))
        args = ["run", contract, "--script", script, "--json"]
        kill = self.rng.uniform(0.01, 1.2) if self.rng.random() < self.world.options.run_kill_rate else None
        more = {"cwd": self.repo.path, "env": self.git_env()}
        if kill is None:
            done = self.world.run(*args, **more)
        else:
            with self.world.fault("killed"):
                done = self.world.run(*args, kill_after=kill, **more)
        contract.unlink()
        script.unlink()
        return done

    def git_env(self):
        env = run_kit.clean_env()
        return {k: env[k] for k in ("HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")}

    def good_run(self):
        number = self.oplog.attempt("run", repo=self.name)
        line = f"/* run {number} */\n"
        self.begin(number, [["append", "src/app/main.c", line], ["append", "src/lib/a.c", line]], True)

    def refused_run(self):
        number = self.oplog.attempt("run", repo=self.name)
        line = f"/* run {number} */\n"
        self.begin(number, [["append", "src/app/main.c", line], ["append", "README.md", line]], False)

    def begin(self, number, ops, good):
        done = self.govern(number, ops)
        answer = {}
        if not done.killed and done.out.strip():
            answer = json.loads(done.out.splitlines()[-1])
        if done.code == 0:
            if not good:
                self.world.defect("a run outside of its paths was merged: " + done.said())
            self.oplog.note(n=number, done=True, commit=answer["final_commit"], run=answer["run_id"])
        elif done.code in (3, 4):
            reason = f"{answer.get('failed_gate') or done.tag()}/{answer.get('reason')}"
            self.world.error("run", reason)
            if good and not self.world.poisoned(done.tag()) and \
                    not self.world.excused(done.began, done.ended):
                self.world.defect("a good run was refused: " + done.said())
            self.oplog.note(n=number, failed=reason, run=answer.get("run_id"), code=done.code)
        elif done.killed:
            self.oplog.note(n=number, killed=True)
        else:
            self.world.defect("a run: " + done.said())
        if done.code != 0:
            self.clear()
        self.whole()

    def clear(self):
        """What a dead run left is cleared; later while faults are injected."""
        self.nobody_left()
        end = time.monotonic() + COMMAND_LIMIT_S
        while time.monotonic() < end:
            done = self.world.run("run", "cleanup", "--apply", "--json", cwd=self.repo.path, env=self.git_env())
            if done.code == 0:
                return
            self.world.error("run cleanup", done.tag())
            # What a server whose disk was full could not take is said item by item.  It is ended here: who
            # starts it again may wait for the gate, which is shut for a calm until this has come through.
            if b"an earlier write failed" in done.out:
                self.server.end(signal.SIGTERM)
            elif not self.world.poisoned(done.tag()) and not self.world.excused(done.began, done.ended):
                self.world.defect("cleanup while no fault is injected: " + done.said())
            time.sleep(0.5)
        self.world.defect("cleanup never came through: " + done.said())

    def nobody_left(self):
        """The processes of a killed run go by themselves."""
        end = time.monotonic() + COMMAND_LIMIT_S
        while time.monotonic() < end:
            if not any(str(self.repo.path) in self.ties_of(p) for p in pathlib.Path("/proc").iterdir()
                       if p.name.isdigit()):
                return
            time.sleep(0.05)
        self.world.defect(f"processes of a killed run live on in {self.repo.path}")

    @staticmethod
    def ties_of(process):
        """Where it works, and its words."""
        try:
            return str((process / "cwd").readlink()) + " " + (process / "cmdline").read_text(errors="replace")
        except OSError:
            return ""

    def whole(self):
        """Main has for each run both lines or none, and nothing of a refused one."""
        if self.repo.git("symbolic-ref", "HEAD") != "refs/heads/main":
            self.world.defect(f"HEAD of {self.repo.path} is elsewhere")
        app, lib = (set(self.repo.git("show", "main:" + f).splitlines()) for f in ("src/app/main.c", "src/lib/a.c"))
        lines = [{x for x in f if x.startswith("/* run ")} for f in (app, lib)]
        if lines[0] != lines[1]:
            self.world.defect(f"half merged: {lines[0] ^ lines[1]} in {self.repo.path}")
        if "/* run" in self.repo.git("show", "main:README.md"):
            self.world.defect(f"outside of the allowed paths: README.md in {self.repo.path}")
        dirty = self.repo.git("status", "--porcelain")
        if dirty:
            self.world.defect(f"the work tree of {self.repo.path} is not as main: {dirty}")
        return lines[0]

    def look(self):
        if not self.repo.root.exists():
            return
        done = self.cortex("run", "list", "--json", killable=False, cwd=self.repo.path, env=self.git_env())
        if done.code != 0 and not self.world.excused(done.began, done.ended):
            self.world.defect("run list: " + done.said())

    def judge(self):
        """At the end: what was acknowledged is in main, and every sealed bundle holds."""
        merged = self.whole()
        runs, killed = {}, set()
        for line in self.oplog.lines:
            if line.get("op") == "run" and line["repo"] == self.name:
                runs[line["n"]] = {}
            elif line.get("n") in runs:
                runs[line["n"]].update(line)
        for number, run in runs.items():
            there = f"/* run {number} */" in merged
            if run.get("done") and not there:
                self.world.defect(f"run {number} was a success and is not in main of {self.repo.path}")
            if run.get("code") == 4 and there:
                self.world.defect(f"run {number} was refused and is in main: {run}")
            if run.get("done"):
                self.repo.git("merge-base", "--is-ancestor", run["commit"], "main")
        self.repo.git("fsck", "--strict")
        held = 0
        for bundle in sorted((self.repo.root / "runs").glob("*")):
            if not (bundle / "manifest.json").exists():
                self.world.defect(f"a bundle without an end: {bundle}")
            done = self.world.run("run", "verify", bundle.name, "--json", bad=False, cwd=self.repo.path,
                                  env=self.git_env())
            acknowledged = any(r.get("run") == bundle.name and r.get("done") for r in runs.values())
            if done.code == 0:
                held += 1
            elif done.code != 3 or acknowledged:
                self.world.defect("a bundle: " + done.said())
            else:
                killed.add(bundle.name)  # it ended where no ledger was
        if shutil.which("git") is None or subprocess.run(
                ["git", "worktree", "list"], cwd=self.repo.path, capture_output=True, check=False,
                text=True).stdout.count("\n") != 1:
            self.world.defect(f"work trees are left in {self.repo.path}")
        return {"runs": len(runs), "merged": len(merged), "bundles that hold": held,
                "bundles without a seal in the ledger": len(killed)}
