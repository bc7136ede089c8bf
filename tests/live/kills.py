#!/usr/bin/env python3
"""kills.py [PROGRAM] [--seed N] [--agents N] - hooks, a server and agents over one data directory, each of
them killed (SIGKILL) at random instants.  Afterwards every answer that was given, and every result that was
acknowledged, has its entry, with the same verdict; and the data directory verifies.

CORTEX_LIVE_KILLS is how many are killed: 60 by default, 1000 by hand.
Closes with `N passed, N failed, N skipped`.

An agent here is a process that asks `cortex hook` of each call, notes the answer, does what is allowed, and
tells the hook the result.  What it notes is all that counts as answered: a hook that is killed before its
answer may leave an entry (undelivered), never the other way round.
"""
import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

WORDS = {"claude": ("PreToolUse", "PostToolUse", "Bash"), "codex": ("PreToolUse", "PostToolUse", "Bash"),
         "cursor": ("preToolUse", "postToolUse", "Shell")}
NAMES = sorted(WORDS)


# --- the agent ------------------------------------------------------------------------------------------

def ask(program, home, name, payload):
    """(exit code, standard output, standard error) of one hook; code None when it was killed."""
    done = subprocess.run([program, "hook", name, "--home", home, "--mode", "enforce", "--deadline", "60"],
                          input=json.dumps(payload).encode(), capture_output=True, check=False)
    return (None if done.returncode < 0 else done.returncode), done.stdout, done.stderr


def verdict_of(name, code, out, err):
    """What this answer means; None when it is none."""
    if code == 2 and err.startswith(b"cortex: not allowed") and not out:
        return "deny"
    if code == 0 and not err and (out == b'{"permission":"allow"}\n' if name == "cursor" else not out):
        return "allow"
    return None


def be_agent(program, home, name, session, notes, cwd):
    """Calls without an end; every line of `notes` is one write."""
    before, after, tool = WORDS[name]
    key = "conversation_id" if name == "cursor" else "session_id"
    with open(notes, "ab", buffering=0) as file:
        for n in range(1_000_000):
            line = "rm -rf x" if n % 3 == 2 else f"echo {n}"
            call = {key: session, "cwd": cwd, "tool_name": tool, "tool_input": {"command": line},
                    "tool_use_id": f"c{n}"}
            answer = verdict_of(name, *ask(program, home, name, {**call, "hook_event_name": before}))
            if answer is None:
                continue
            file.write(f"{answer} c{n}\n".encode())
            if answer == "allow":
                code, _, err = ask(program, home, name, {**call, "hook_event_name": after, "tool_response": "x"})
                if code == 0 and not err:
                    file.write(f"done c{n}\n".encode())


# --- the world --------------------------------------------------------------------------------------------

class World:
    def __init__(self, program, folder, agents, env):
        self.program, self.folder, self.env = program, folder, env
        self.home, self.repo = folder / "home", folder / "repo"
        self.running, self.count = [], 0
        self.repo.mkdir()
        subprocess.run([program, "init", "--home", self.home, "--segment-size", "256K"], env=env, check=True,
                       capture_output=True)
        self.server = None
        self.start_server()
        self.wanted = agents

    def start_server(self):
        self.server = subprocess.Popen(
            [self.program, "serve", "--home", self.home, "--listen", "127.0.0.1:0", "--otlp", "off"], env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def fill(self):
        """As many agents as there should be, and a server."""
        if self.server.poll() is not None:
            self.start_server()
        self.running = [process for process in self.running if process.poll() is None]
        while len(self.running) < self.wanted:
            name, session = NAMES[self.count % len(NAMES)], f"s{self.count}"
            self.running.append(subprocess.Popen(
                [sys.executable, __file__, "--agent", self.program, self.home, name, session,
                 self.folder / f"notes-{name}-{session}", self.repo], env=self.env, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))
            self.count += 1

    @staticmethod
    def child_of(process):
        """The hook that an agent has running, or None."""
        try:
            children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            return int(children[0]) if children else None
        except (OSError, ValueError):
            return None

    def kill_one(self, chance):
        """What was killed, or None when there was nothing to kill."""
        what = chance.choices(("hook", "agent", "server"), (80, 12, 8))[0]
        victim = chance.choice(self.running)
        pid = {"hook": self.child_of(victim), "agent": victim.pid, "server": self.server.pid}[what]
        if pid is None:
            return None
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return None
        if what == "server":
            self.server.wait()
        return what

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()
        self.server.terminate()
        if self.server.wait(timeout=60) not in (0, 3):
            print("  the server ended with", self.server.returncode)
        end = time.monotonic() + 120  # hooks whose agent is gone finish
        while time.monotonic() < end and any(self.hooks()):
            time.sleep(0.1)

    def hooks(self):
        wanted = os.fsencode(str(self.home))
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"hook" in words[1:2] and wanted in words:
                yield words


def judge(world, run):
    """Problems; and how many answers, results and undelivered decisions there were."""
    problems, counts = [], {"answers": 0, "results": 0, "undelivered": 0, "sessions": 0}
    for notes in sorted(world.folder.glob("notes-*")):
        session = notes.name.rsplit("-", 1)[1]
        lines = notes.read_text().splitlines()
        shown = run(world.program, "session", "show", session, "--all", "--json", "--home", world.home, env=world.env)
        if shown.returncode != 0:
            if lines:
                problems.append(f"{session}: {len(lines)} answers, and no session: {shown.stderr!r}")
            continue
        counts["sessions"] += 1
        decided, done = {}, set()
        for entry in json.loads(shown.stdout)["entries"]:
            payload = entry["payload"]
            if entry["kind"] == "live.decision":
                if payload["call"]["id"] in decided:
                    problems.append(f"{session}: {payload['call']['id']} was decided twice")
                decided[payload["call"]["id"]] = payload["verdict"]
            elif entry["kind"] == "live.result":
                done.add(payload["call"]["id"])
        for line in lines:
            what, call = line.split()
            counts["results" if what == "done" else "answers"] += 1
            if what == "done" and call not in done:
                problems.append(f"{session}: the result of {call} was acknowledged and is not there")
            if what != "done" and decided.get(call) != what:
                problems.append(f"{session}: {call} was answered {what}, its entry says {decided.get(call)}")
        answered = {line.split()[1] for line in lines if not line.startswith("done")}
        counts["undelivered"] += len(decided.keys() - answered)
    return problems, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("rest", nargs="*")
    options = parser.parse_args([word for word in sys.argv[1:] if word != sys.argv[0]])
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
    import kit
    wanted, chance, killed = int(os.environ.get("CORTEX_LIVE_KILLS", "60")), random.Random(options.seed), {}
    with kit.Folder("cortex-kills-") as folder:
        world = World(kit.BIN, folder, options.agents, kit.clean_env(HOME=folder, USER="ann", LOGNAME="ann"))
        began = time.monotonic()
        try:
            world.fill()
            while sum(killed.values()) < wanted and time.monotonic() - began < 3600:
                time.sleep(chance.random() * 0.05)
                what = world.kill_one(chance)
                if what:
                    killed[what] = killed.get(what, 0) + 1
                world.fill()
        finally:
            world.end()
        problems, counts = judge(world, kit.run)
        verified = kit.run(kit.BIN, "verify", "--home", world.home, env=world.env)
        if verified.returncode != 0:
            problems.append(f"verify: exit {verified.returncode} {verified.stdout!r} {verified.stderr!r}")
        print(f"seed {options.seed}: killed {killed} in {time.monotonic() - began:.0f} s; {counts}")
        if counts["answers"] < sum(killed.values()) // 20:
            problems.append(f"only {counts['answers']} answers: nothing was tested")
        for problem in problems[:20]:
            print("FAIL", problem)
    kit.finish(int(not problems), int(bool(problems)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--agent"]:
        be_agent(*sys.argv[2:])
    main()
