#!/usr/bin/env python3
"""Makes a small but complete data directory with an old version of cortex, and keeps its answers.

    CORTEX_BIN=OLD/build/release/bin/cortex make_home.py OLD FOLDER

OLD is a checkout of that version, whose own test kit is used (tests/cli); the programs cortex-verify
and cortex-agents lie beside its cortex.  FOLDER is made, and gets

    home/          the data directory            backup/      a backup that the old program made
    repo/          a repository with three runs  outside/     proofs, notes, evidence and public keys
    answers.json   what the old program answered: [{"args", "code", "out"}], with BASE for FOLDER

scripts/old_home.sh builds the version, runs this, and packs the result.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

OLD, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.argv = [sys.argv[0]]
os.environ["CX_TEST_ROOT"] = str(OLD / "tests")
sys.path.insert(0, str(OLD / "tests" / "cli"))

import run_kit  # noqa: E402
import story_kit  # noqa: E402
from run_kit import GOOD_OPS, contract, reply  # noqa: E402

BIN = os.environ["CORTEX_BIN"]
VERIFY = os.path.join(os.path.dirname(BIN), "cortex-verify")
AGENT_SCRIPT = """#!/bin/sh
cat > /dev/null
echo '/* by a program */' >> src/app/main.c
echo '%s'
"""
USAGE = "the old program does not know these words"
BAD_SCRIPT = AGENT_SCRIPT.replace("src/app/main.c", "README.md")
original_run = run_kit.run


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(map(str, what)))


def run_small(*argv, **more):
    """Small segments, so that the log has several."""
    small = ["--segment-size", "64K"] if list(argv[1:2]) == ["init"] else []
    return original_run(*argv, *small, **more)


class Maker:
    def __init__(self):
        FOLDER.mkdir()
        run_kit.run = run_small
        self.repo, self.key = run_kit.exec_repo(FOLDER, AGENT_SCRIPT % json.dumps(reply()))
        self.out = FOLDER / "outside"
        self.out.mkdir()
        self.answers = []

    def do(self, *args, code=0, text=None):
        """The old program's standard output, without its last line feed."""
        done = subprocess.run([BIN, *map(str, args)], cwd=self.repo.path, capture_output=True,
                              input=text, check=False,
                              env=run_kit.clean_env(CORTEX_HOME=str(self.repo.home), CORTEX_ACTOR="desk"))
        if done.returncode == 2 and code != 2:
            print(done.stderr.decode(), file=sys.stderr)
            raise AssertionError(USAGE)
        check(done.returncode == code, args, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode().rstrip("\n")

    def can(self, *words):
        return subprocess.run([BIN, "help", *words], capture_output=True, check=False).returncode == 0

    def ask(self, *args, code=0):
        """A question whose answer is kept; one that this version does not know yet is left out."""
        try:
            out = self.do(*args, code=code)
        except AssertionError as why:
            if why.args[0] != USAGE:
                raise
            print("not known to this version:", *args)
            return
        words = [str(word).replace(str(FOLDER), "BASE") for word in args]
        self.answers.append({"args": words, "code": code, "out": out.replace(str(FOLDER), "BASE")})


def fact(m, statement, *more):
    return m.do("memory", "write", "Fact", json.dumps(
        {"statement": statement, "subject": "limits", "predicate": "is"}), *more)


def make_memories(m):
    """Returns URIs by what they are for."""
    uris = {"limit": fact(m, "the limit is 500", "--tag", "limits", "--importance", 7)}
    uris["other"] = fact(m, "the colour is grey", "--tag", "colour", "--blind")
    uris["goal"] = m.do("memory", "write", "Goal", json.dumps({"statement": "ship the release", "status": "active"}))
    uris["dead"] = fact(m, "this will be dead")
    uris["erased"] = fact(m, "a secret that is erased")
    for number in range(40):
        fact(m, f"reading number {number} of the sensor", "--tag", "reading")
    m.do("memory", "update", uris["limit"], json.dumps(
        {"statement": "the limit is 600", "subject": "limits", "predicate": "is"}))
    uris["limit2"] = uris["limit"].split("#")[0] + "#2"
    uris["edge"] = m.do("memory", "link", uris["limit2"], "references", uris["other"], "--weight", "0.5")
    m.do("memory", "link", uris["goal"], "references", uris["other"])
    m.do("memory", "unlink", uris["goal"], "references", uris["other"])
    m.do("memory", "embed", uris["limit2"], "[0.1,0.7,0.2]", "--model", "m")
    m.do("memory", "embed", uris["other"], "[0.9,0.1,0.0]", "--model", "m")
    m.do("snapshot", "make", "--reason", "first")
    m.do("memory", "attest", "deploy-42", "success", uris["limit2"])
    m.do("memory", "compact", "deploy-42", "step-1", uris["limit2"], uris["other"], "--budget", 50)
    m.do("memory", "tombstone", uris["dead"])
    m.do("erase", uris["erased"], "--reason", "asked for by the person")
    m.do("append", "note.plain", "a plain note")
    m.do("append", "note.secret", "a note that is destroyed", "--committed")
    secret = json.loads(m.do("log", "--last", 1, "--json").splitlines()[-1])["seq"]
    m.do("erase", secret, "--reason", "destroyed on purpose")
    m.do("snapshot", "make", "--reason", "second")
    m.do("snapshot", "make", "--reason", "third")
    m.do("snapshot", "drop", 1)
    return uris


def make_traces(m):
    keys = m.out / "trust.json"
    keys.write_bytes(story_kit.agents("trust", "coder"))
    m.do("key", "add", keys)
    batch = m.out / "batch.json"
    batch.write_bytes(story_kit.agents("batch", "level=full_traces", "rationale=the words of a decision", "coder",
                                       "3"))
    m.do("record", batch)
    return [row["trace_id"] for row in json.loads(m.do("trace", "query", "--json", "--verified", "any"))["traces"]]


def make_session(m):
    folder = m.out / "sessions" / "project"
    folder.mkdir(parents=True)
    lines = []
    for number in range(6):
        role = "user" if number % 2 == 0 else "assistant"
        lines.append(json.dumps({
            "type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
            "sessionId": "s1", "timestamp": f"2026-11-01T10:00:0{number}.000Z",
            "message": {"role": role, "content": f"line {number} about turnips"}}) + "\n")
    (folder / "s1.jsonl").write_text("".join(lines))
    if m.can("watch"):
        m.do("watch", "--once", m.out / "sessions")


def make_runs(m):
    """(run that merged, run by approval, run that was rejected)"""
    repo = m.repo
    value = contract()
    merged = json.loads(m.do("run", repo.keep("contract.json", value), "--json").splitlines()[-1])
    danger = contract()
    out = m.out / "approval.json"
    m.do("approve", "--contract", repo.keep("contract.json", danger), "--reason", "a fixture", "--key", m.key,
         "--scope", "permission:filesystem=danger-full-access", "-o", out)
    approved = json.loads(m.do("run", repo.keep("contract.json", danger), "--json", "--no-merge",
                               "--approval", out).splitlines()[-1])
    repo.write("scripts/agent.sh", BAD_SCRIPT % json.dumps(reply("unit_task_3")), True)
    repo.commit("another agent")
    rejected = json.loads(m.do("run", repo.keep("contract.json", contract("unit_task_3")), "--json",
                               code=4).splitlines()[-1])
    for answer in (merged, approved):
        check(answer["status"] == "SUCCESS", answer)
    m.do("run", "attest", merged["run_id"], "--key", m.key, "-o", m.out / "attestation.json")
    return merged["run_id"], approved["run_id"], rejected["run_id"]


def make_outside(m, uris, run):
    """Proofs and notes, and whether the old cortex-verify held them."""
    log_key = FOLDER / "log.key"
    (m.out / "log.pub").write_text(m.do("key", "new", log_key, "--name", "example.com/log") + "\n")
    m.do("snapshot", "seal", 2, "--sign", log_key)
    m.do("checkpoint", "--sign", log_key, "-o", m.out / "checkpoint.note")
    m.do("prove", uris["limit2"], uris["other"], "--fresh", "-o", m.out / "fresh.proof")
    m.do("prove", uris["other"], "--at", 0, "-o", m.out / "old.proof")
    m.do("prove", "--absent", re.sub("[0-9A-Z]{26}", "01HF7YAT000000000000000003", uris["other"]), "--at", 0,
         "-o", m.out / "absent.proof")
    m.do("prove", "--edges", uris["limit2"], "--at", 0, "-o", m.out / "edges.proof")
    m.do("prove", "--entry", 3, "-o", m.out / "entry.proof")
    m.do("export", "entry", 3, "-o", m.out / "entry.cbor")
    m.do("export", "receipt", 3, "--sign", log_key, "-o", m.out / "entry.receipt")
    m.do("export", "tlog-proof", 3, "--sign", log_key, "-o", m.out / "entry.tlog-proof")
    m.do("scope", "make", "--to", "helper", "--tag", "limits", "--sign", log_key, "-o", m.out / "helper.scope")
    m.do("evidence", run, "--sign", log_key, "-o", m.out / "run.cxe")
    m.do("evidence", uris["limit2"], "--sign", log_key, "-o", m.out / "memory.cxe")
    log_key.unlink()


def keep_verdicts(m):
    """What cortex-verify says about each file, with the key and without."""
    verdicts = []
    for name in sorted(path.name for path in m.out.iterdir() if path.is_file()):
        if name.endswith((".proof", ".note", ".receipt", ".tlog-proof", ".cxe", ".scope")):
            for more in ([], ["--key", "log.pub"], ["--self-consistent"]):
                entry = ["--entry", "entry.cbor"] if name.startswith("entry.") else []
                done = subprocess.run([VERIFY, *more, *entry, name], cwd=m.out, capture_output=True, check=False)
                verdicts.append({"args": [*more, *entry, name], "code": done.returncode})
    (FOLDER / "verdicts.json").write_text(json.dumps(verdicts, indent=0) + "\n")


def keep_answers(m, uris, traces, runs):
    for actor in ("desk", m.repo.actor()):
        m.ask("roots", "--json", "--actor", actor)
        m.ask("log", "--all", "--json", "--actor", actor)
    for name in ("limit", "limit2", "other", "goal", "dead", "erased"):
        m.ask("memory", "get", uris[name], "--json")
    m.ask("memory", "list", "--json")
    m.ask("memory", "find", "--tag", "reading", "--limit", 100, "--json")
    m.ask("memory", "find", "--type", "Fact", "--where", "statement~colour", "--json")
    m.ask("memory", "near", "[0.1,0.7,0.2]", "--json")
    m.ask("memory", "walk", uris["limit2"], "--json")
    m.ask("snapshot", "list", "--json")
    for number in (0, 2):
        m.ask("snapshot", "show", number, "--json")
    m.ask("key", "list", "--json")
    m.ask("trace", "query", "--json", "--verified", "any")
    m.ask("trace", "query", "--json", "--text", "words decision", "--level", "full_traces")
    for trace in traces:
        m.ask("trace", "show", trace, "--json")
    m.ask("alert", "list", "--json")
    m.ask("run", "list", "--json")
    for run in runs:
        m.ask("run", "verify", run, "--json")
        m.ask("run", "show", run, "--json")
        m.ask("run", "events", run)
    m.ask("approvals", "list", "--json")
    m.ask("why", "src/app/main.c:" + str(len((m.repo.path / "src/app/main.c").read_text().splitlines())), "--json")
    m.ask("show", traces[0], "--json")
    m.ask("show", uris["limit2"], "--json")
    for history in ("@session/s1", "@run/" + runs[0], "@agent/" + agent_name(m)):
        m.ask("lattice", "verify", history, "--json")
        m.ask("lattice", "heads", history, "--json")
    m.ask("verify", "--home", FOLDER / "home", "--json")
    m.ask("verify", "--home", FOLDER / "home", "--checkpoint", m.out / "checkpoint.note", "--key",
          m.out / "log.pub", "--actor", "desk", "--json")


def agent_name(m):
    rows = json.loads(m.do("trace", "query", "--json", "--verified", "any"))["traces"]
    return rows[0]["agent_id_hash"]


def main():
    m = Maker()
    uris = make_memories(m)
    traces = make_traces(m)
    make_session(m)
    runs = make_runs(m)
    make_outside(m, uris, runs[0])
    m.do("detect", "--json", code=0)
    m.do("tables", "status")
    keep_verdicts(m)
    keep_answers(m, uris, traces, runs)
    m.do("backup", FOLDER / "backup")
    (FOLDER / "answers.json").write_text(json.dumps(m.answers, indent=0) + "\n")
    (FOLDER / "names.json").write_text(json.dumps(
        {"uris": uris, "traces": traces, "runs": runs, "run_actor": m.repo.actor(),
         "version": m.do("version").split()[1]}) + "\n")
    m.key.unlink()
    shutil.rmtree(FOLDER / "no-home", ignore_errors=True)
    for path in FOLDER.rglob("*.sample"):
        path.unlink()


main()
