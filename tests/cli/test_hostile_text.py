#!/usr/bin/env python3
"""test_hostile_text.py - nothing that came from outside acts on a terminal, in any command.

Every command of the program's own table meets names, values, files, records and bundles that hold
what a terminal or a reader takes for an order: ESC and other controls, C1, separators of lines,
marks that turn text around, bytes that are no UTF-8.  Output is looked at from a pipe and from a
terminal.  A command without a row here fails the test.

    test_hostile_text.py [PROGRAM] [WORDS..]     PROGRAM defaults to $CORTEX_BIN
"""
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tty

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kit import BIN, TESTS, Folder, sibling, check, main, run, test  # noqa: E402
from run_kit import GOLDEN, Repo, clean_env, contract  # noqa: E402

ROOT = TESTS.parent
VERIFY = sibling("cortex-verify")
COMMANDS = {c["name"]: c for c in json.loads(run(BIN, "help", "--json").stdout)["commands"]}
SERVES = 1.5  # seconds that a command which serves is given
SERVING = ("serve", "mcp", "watch", "up")

# The colour is one that no command sets.  What begins a line must stay inside of one.
LINE = "\x1b[35;1m\x1b]0;t\x07\x1b[2J\x9b31m\x85\u2028\u2029\u202e\u200f\u061c\u2066\ufeff\x7f"
TEXT = "evil" + LINE + "\r\nFORGED\tend"  # in JSON and in options, which are UTF-8
NAME = "evil" + LINE + "end"              # .. in one line
SOFT = "evil\x9b31m\x85\u2028\u202e\u2066end"  # where C0 is refused
RAW = (NAME + "\n").encode() + b"FORGED\xff\x9b\xe2\x80"  # names of files
ACTOR = "evil\u202e\u2066end"  # .. and C1, too
MARK = re.compile(rb"\\(u009b|u202e)")  # how they are shown

ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
OWN = re.compile(r"\x1b\[[0-9;]*m|\r(?:\x1b\[K)?"  # colours and progress
                 r"|\x1b\]8;;(?:file://[A-Za-z0-9._~/%#-]*)?\x1b\\")  # links to files


# --- looking ---------------------------------------------------------------------------------------


def on_terminal(words, env, cwd, patience):
    """What a program shows on a terminal of its own, both streams."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # what is written comes out as it is
    started = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=cwd,
                               env={**env, "TERM": "xterm"})
    os.close(theirs)
    seen, end = b"", time.monotonic() + patience
    while True:
        ready, _, _ = select.select([ours], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            started.send_signal(signal.SIGTERM)
            end = time.monotonic() + 20
            continue
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(ours)
    started.wait(60)
    return seen


def through_pipes(words, env, cwd, patience):
    started = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, cwd=cwd, env=env)
    try:
        return started.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        started.send_signal(signal.SIGTERM)
        return started.communicate(timeout=60)


def harmless(seen, terminal, *what, lines=True):
    """The text, after it was looked at.  A file shown line by line has lines of its own."""
    try:
        text = seen.decode()
    except UnicodeDecodeError as why:
        raise AssertionError(f"{what}: no UTF-8: {why}: {seen[:2000]!r}") from None
    left = text
    if terminal:
        check("\x1b[35" not in text, *what, "a colour from outside:", repr(text[:2000]))
        left = OWN.sub("", text)
    found = ACTS.search(left)
    check(found is None, *what, "acts on a terminal:", found and repr(left[max(0, found.start() - 80):][:200]))
    forged = [line for line in re.split("[\n]", text) if line.startswith("FORGED")]
    check(not (lines and forged), *what, "a forged line:", repr(text[:2000]))
    return text


class Eye:
    def __init__(self, env, cwd):
        self.env, self.cwd = env, cwd
        self.looks = 0

    def look(self, words, exact=False, patience=60, shows=False, pipe=True, terminal=True):
        """Both ways.  What is exact is so in a pipe only."""
        words = [os.fsencode(word) for word in words]
        self.looks += 1
        if pipe:
            self.look_at_pipes(words, exact, patience, shows)
        if terminal:
            seen = on_terminal(words, self.env, self.cwd, patience)
            harmless(seen, True, words, "terminal", lines=not exact)
            check(not shows or MARK.search(seen), words, "does not show what it was given:", seen[:3000])

    def look_at_pipes(self, words, exact, patience, shows):
        out, err = through_pipes(words, self.env, self.cwd, patience)
        harmless(err, False, words, "standard error")
        if not exact:
            text = harmless(out, b"always" in words, words)
            if b"--json" in words and text.startswith("{"):
                for line in text.splitlines():
                    json.loads(line)
        check(not shows or exact or MARK.search(out + err), words, "does not show what it was given:", out[:3000],
              err[:3000])


# --- a world in which everything is hostile ----------------------------------------------------------


def hostile_lattice(path, holds):
    """examples/merge.jsonl with names, keys, values and labels changed; its hashes are made anew."""
    labels, hashes, lines = {}, {}, []
    for line in (ROOT / "examples/merge.jsonl").read_text().splitlines():
        node = json.loads(line)
        if "node_id" not in node:
            version = node["schema_version"]
            node["title"] = TEXT
            lines.append(node)
            continue
        version = node.get("schema_version", "2.0.0")
        old = node["node_id"]
        labels[old] = node["node_id"] = old + NAME
        node["agent_id"] += NAME
        node["parents"] = [labels[p] for p in node["parents"] or []]
        node["prev_hash"] = hashes.get(node["prev_hash"], node["prev_hash"])
        node["event"].pop("__seal", None)
        node["event"]["reasoning"] = TEXT
        node["event"]["action"] = NAME
        node["state_delta"].setdefault("memory", {})[NAME] = TEXT
        body = node["prev_hash"] + json.dumps(node["event"], sort_keys=True, separators=(",", ":"))
        body += f"{node['seq']}{node['agent_id']}{version}" + ",".join(sorted(node["parents"]))
        before = node["hash"]
        hashes[before] = node["hash"] = hashlib.sha256(body.encode()).hexdigest()
        lines.append(node)
    if not holds:
        lines[-1]["event"]["reasoning"] += "!"
        lines[-1]["parents"].append("nobody" + NAME)
    path.write_text("\n".join(json.dumps(node) for node in lines) + "\n")


def hostile_bundle(folder, scenario="success"):
    """A golden bundle in which an agent wrote what it could, and somebody else the rest."""
    manifest = json.loads((GOLDEN / scenario / "bundle/manifest.json").read_text())
    bundle = folder / manifest["run_id"]
    shutil.copytree(GOLDEN / scenario / "bundle", bundle)
    (bundle / "patch.diff").write_bytes((bundle / "patch.diff").read_bytes().replace(b"return 2;", b"return " + RAW))
    (bundle / "diff_name_only.txt").write_bytes(b"src/app/" + RAW.replace(b"\n", b"") + b"\n")
    events = []
    for number, line in enumerate((bundle / "events.jsonl").read_text().splitlines()):
        event = json.loads(line)
        if number == 3:
            event["event_type"], event["level"] = TEXT, TEXT
        if event["event_type"] == "STATE_TRANSITION":
            event["payload"].update({"from": TEXT, "reason": TEXT})
        events.append(json.dumps(event, ensure_ascii=False))
    (bundle / "events.jsonl").write_text("\n".join(events) + "\n")
    manifest.update(user_request=TEXT, task_id=TEXT, status=manifest["status"])
    manifest["evidence_hashes"]["reports/" + NAME] = "0" * 64
    (bundle / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False))
    for path in (bundle / "reports").glob("*.json"):
        report = json.loads(path.read_text())
        report["summary"] = TEXT
        path.write_text(json.dumps(report, ensure_ascii=False))
    (bundle / "reports" / ("a" + NAME + ".json")).write_text(json.dumps({"a": TEXT}, ensure_ascii=False))
    return bundle


def replaying_bundle(folder):
    """One that can be told again: only what an agent may write is changed."""
    name = json.loads((GOLDEN / "tests_fail/bundle/manifest.json").read_text())["run_id"]
    bundle = folder / name
    shutil.copytree(GOLDEN / "tests_fail/bundle", bundle)
    lines = []
    for line in (bundle / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["event_type"] == "STATE_TRANSITION":
            event["payload"]["reason"] = TEXT
        lines.append(json.dumps(event, ensure_ascii=False))
    (bundle / "events.jsonl").write_text("\n".join(lines) + "\n")
    return bundle


# What a hostile agent calls, as its hook gets it.
HOOKED = tuple({"hook_event_name": "PreToolUse", "tool_use_id": TEXT, "agent_id": TEXT, "agent_type": SOFT, **call}
               for call in ({"tool_name": "Bash", "tool_input": {"command": f"make '{TEXT}'"}},
                            {"tool_name": "Bash", "tool_input": {"command": f"rm -rf {SOFT}", "description": TEXT}},
                            {"tool_name": "Write", "tool_input": {"file_path": f"/etc/{TEXT}", "content": TEXT}},
                            {"tool_name": TEXT, "tool_input": {TEXT: TEXT}},
                            {"tool_name": "mcp__a__b", "mcp_server": {"name": TEXT}, "tool_input": {"x": TEXT}},
                            {"tool_name": "WebFetch", "tool_input": {"url": f"http://{TEXT}/"}}))


class World:
    def __init__(self, folder):
        self.folder = folder
        self.repo = Repo(folder)
        self.env = clean_env(CORTEX_HOME=str(self.repo.home), CORTEX_ACTOR=ACTOR, NO_COLOR="",
                             XDG_CONFIG_HOME=str(folder / "config"))
        self.names = {"T": TEXT, "N": NAME, "S": SOFT, "A": ACTOR, "R": RAW, "none": b"/dev/null/" + RAW, "place": os.fsencode(folder) + b"/place-" + RAW.replace(b"\n", b""),
                      "bin": BIN, "home": str(self.repo.home), "repo": str(self.repo.path), "zero": "0" * 64}
        self.memory()
        self.proofs()
        self.traces()
        self.repository()
        self.files()
        self.live()

    def __getitem__(self, name):
        return self.names[name]

    def path(self, name, contents=None):
        """A file whose own name is hostile, too."""
        path = os.fsencode(self.folder) + b"/" + name.encode() + b"-" + RAW
        self.names[name] = path
        if contents is not None:
            with open(path, "wb") as file:
                file.write(contents if isinstance(contents, bytes) else contents.encode())
        return path

    def do(self, *words, codes=(0,), stdin=None):
        done = run(BIN, *[os.fsdecode(w) if isinstance(w, bytes) else w for w in words], env=self.env,
                   cwd=self.repo.path, stdin=stdin)
        check(done.returncode in codes, done.returncode, done.stdout[-1000:], done.stderr[-1000:], words)
        return done.stdout.decode(errors="replace")

    def live(self):
        """A session of a hostile agent: its names, what it calls, and what waits for a person."""
        self.names["live"] = "s" + SOFT
        for words in ({"hook_event_name": "SessionStart", "source": SOFT}, *HOOKED):
            self.do("hook", "claude", "--mode", "enforce", codes=(0, 2),
                    stdin=json.dumps({"session_id": "s" + SOFT, "cwd": str(self.repo.path), "transcript_path": TEXT, **words}).encode())

    def memory(self):
        fact = json.dumps({"statement": TEXT, "subject": TEXT, "predicate": TEXT})
        write = ["memory", "write", "Fact", fact, "--tag", SOFT, "--source", "observed", "--attestation", TEXT,
                 "--short", TEXT, "--medium", TEXT, "--by", SOFT, "--json"]
        one, two = (json.loads(self.do(*write))["uri"] for _ in range(2))
        self.names.update(uri=one, other=two)
        self.do("memory", "link", one, "corroborates", two, "--by", SOFT)
        self.do("append", "belief_change", json.dumps({"why": TEXT}), "--by", SOFT, codes=(0, 2))
        third = json.loads(self.do(*write))["uri"]
        self.do("memory", "tombstone", third, "--reason", TEXT, "--by", SOFT)
        self.names["dead"] = third
        self.do("snapshot", "make", "--reason", TEXT)
        self.do("token", "add", "--name", SOFT, codes=(0, 2))

    def proofs(self):
        key, pack, note, entry = self.path("key"), self.path("pack"), self.path("note"), self.path("entry")
        public = self.do("key", "new", key, "--name", "log.example").strip()
        self.do("prove", "--fresh", self["uri"], "-o", pack)
        self.do("checkpoint", "--sign", key, "-o", note)
        self.do("export", "entry", "0", "-o", entry)
        self.do("prove", "--entry", "0", "-o", self.path("inclusion"))
        self.do("export", "tlog-proof", "0", "--sign", key, "-o", self.path("tlog"))
        self.do("export", "receipt", "0", "--sign", key, "-o", self.path("receipt"))
        self.do("scope", "make", "--to", SOFT, "--granted-by", SOFT, "--type", "Fact", "--sign", key, "-o", self.path("scope"))
        self.do("scope", "send", self.path("scope"), "--key", SOFT + "=" + public)
        self.do("evidence", self["uri"], "-o", self.path("evidence"))
        whole = pathlib.Path(os.fsdecode(pack)).read_bytes()
        self.path("cut", whole[:-3])
        self.path("flipped", whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
        self.path("badnote", f"{NAME}\n5\nAAAA\n\n\u2014 {NAME} AAAA\n")

    def traces(self):
        agents = sibling("cortex-agents")
        trust = run(agents, "trust", "coder").stdout
        self.path("trust", trust)
        self.do("key", "add", self["trust"], "--description", TEXT, codes=(0, 2))
        made = run(agents, "batch", "level=full_traces", "rationale=" + SOFT, "coder", "3").stdout
        self.path("batch", made)
        self.do("record", self["batch"], "--unknown-key", "keep", codes=(0, 1))
        found = json.loads(self.do("trace", "query", "--json", "--verified", "any"))
        rows = found.get("traces") or found.get("items") or []
        self.names["recorded"] = rows[0]["trace_id"] if rows else "none"
        batch = json.loads(made)
        self.names["trace"] = batch["events"][0]["trace"]["trace_id"]
        self.names["agent"] = batch["events"][0]["trace"].get("agent_id_hash", "coder")
        for event in batch["events"]:
            event["trace"].update(trace_id=TEXT + event["trace"]["trace_id"], agent_id_hash=TEXT, task_id=TEXT)
        self.path("forged", json.dumps(batch))
        self.path("one", json.dumps(batch["events"][0]["trace"]))
        self.path("unread", '{"events": "' + SOFT)
        self.path("badtrust", json.dumps({"keys": [{"key_id": TEXT, "public_key": TEXT}]}))

    def repository(self):
        repo = self.repo
        (repo.path / "src/app").mkdir(parents=True, exist_ok=True)
        with open(os.fsencode(repo.path / "src/app") + b"/f-" + RAW, "wb") as file:
            file.write(RAW)
        repo.commit("hostile " + TEXT)
        repo.git("clone", "-q", ".", os.fsdecode(self["place"]))  # one in a place of such a name
        repo.git("branch", SOFT.replace("\x85", ""))
        repo.git("worktree", "add", "-q", "--detach", os.fsdecode(os.fsencode(self.folder) + b"/wt-" + RAW.replace(b"\n", b"")))
        with open(os.fsencode(repo.path) + b"/new-" + RAW, "wb") as file:
            file.write(b"new\n")
        runs = repo.path / ".runtime-cache/cortexpilot/runs"
        runs.mkdir(parents=True, exist_ok=True)
        self.names["bundle"] = str(hostile_bundle(runs))
        self.names["run"] = pathlib.Path(self["bundle"]).name
        self.names["story"] = str(replaying_bundle(runs))
        elsewhere = os.fsdecode(os.fsencode(self.folder) + b"/b-" + RAW)
        os.mkdir(elsewhere)
        shutil.copytree(self["bundle"], elsewhere + "/" + self["run"])
        self.names["elsewhere"] = os.fsencode(elsewhere) + b"/" + self["run"].encode()
        locks = repo.path / ".runtime-cache/cortexpilot/locks"
        locks.mkdir(parents=True, exist_ok=True)
        (locks / ("0" * 64 + ".lock")).write_text(json.dumps({"path": TEXT, "run_id": TEXT, "pid": 1}))
        approvals = repo.path / ".runtime-cache/cortexpilot/approvals"
        approvals.mkdir(parents=True, exist_ok=True)
        (approvals / f"a{SOFT}.json").write_text(json.dumps({"approval_id": TEXT, "approver": TEXT}))

    def files(self):
        asked = contract("hostile_task", allowed_paths=["src/app/" + SOFT])
        self.path("contract", json.dumps(asked))
        asked["acceptance_tests"] = [{"name": TEXT, "cmd": "sh -c " + TEXT, "must_pass": True}]
        asked["assigned_agent"]["agent_id"] = TEXT
        asked["a" + TEXT] = 1
        self.path("bad", json.dumps(asked))
        self.path("broken", '{"a' + SOFT)
        self.path("good", json.dumps(contract("hostile_task")))
        self.path("hostile_mcp", json.dumps({"mcpServers": {TEXT: {"command": TEXT}, "a": {"command": TEXT, "args": [TEXT]}, "b": {
            "command": "x", "args": ["mcp-gateway", "--name", TEXT, "--", TEXT, TEXT]}}}))
        self.path("schema", json.dumps({"$id": "urn:a", "properties": {NAME: {"const": TEXT}},
                                        "required": [TEXT], "additionalProperties": False}))
        self.path("value", json.dumps({NAME: "x" + TEXT, "b" + TEXT: 2}))
        self.path("chain", json.dumps({"version": "v1", "chain_id": TEXT, "steps": [
            {"name": TEXT, "contract": asked, "depends_on": [TEXT]}]}))
        self.path("script", json.dumps({"format": TEXT}))
        self.path("steps", json.dumps({"op": TEXT, "data": TEXT}) + "\n")
        self.path("config", f'home = "{SOFT}"\n[{SOFT}]\nx{SOFT} = "a"\n')
        hostile_lattice(pathlib.Path(os.fsdecode(self.path("lattice"))), True)
        hostile_lattice(pathlib.Path(os.fsdecode(self.path("false"))), False)
        self.path("syntax", '{"node_id":"' + SOFT + '\n{"x')
        self.names.update(node="n2" + NAME, a="agent_a" + NAME, b="agent_b" + NAME)
        sessions = os.fsdecode(os.fsencode(self.folder) + b"/sessions-" + RAW)
        os.mkdir(sessions)
        self.names["sessions"] = os.fsencode(sessions)
        line = json.dumps({"type": "user", "uuid": TEXT, "parentUuid": None, "sessionId": TEXT,
                           "timestamp": "2026-11-01T10:00:00.000Z",
                           "message": {"role": "user", "content": TEXT}})
        pathlib.Path(sessions, os.fsdecode(RAW) + ".jsonl").write_text(line + "\n")
        self.names["session"] = os.fsencode(sessions) + b"/" + RAW + b".jsonl"


# --- the rows ------------------------------------------------------------------------------------------

# {x} is a name of the world; "!" in front: what is hostile has to be seen, shown; "=": the answer is
# a file, exact in a pipe; "~": it serves until it is stopped.
ROWS = {
    "demo": ["--dir /dev/null/{S}"],
    "init": ["{none}", "{none} --no-repo", "! x --home {home}/{S} --segment-size {S}"],
    "show": ["{uri}", "! {pack}", "! {pack} --json", "{trace}", "{run}", "! {S}", "src/app/f-{S}:1", "HEAD"],
    "why": ["{uri}", "{trace}", "{run}", "! {S}", "! {lattice} {node} {N}"],
    "evidence": ["{uri} -o {none}", "! {S} -o /dev/null"],
    "memory write": ["! Fact {{}} --actor {S} --tag {T}", "Fact {T}"],
    "memory update": ["{uri} {T}", "! {uri} @{none}"],
    "memory tombstone": ["{other} --reason {T} --by {S}", "! {S}"],
    "memory link": ["{uri} {S} {other}", "{uri} contradicts {other} --data {T}"],
    "memory unlink": ["{uri} corroborates {other} --reason {T}", "{uri} {S} {other}"],
    "memory get": ["! {uri} --edges", "! {uri} --json", "! {dead}", "{uri} --actor {T}"],
    "memory list": ["!", "! --json", "! --all", "--actor x{S}"],
    "memory find": ["! --tag {S}", "! --tag {S} --json", "! --type Fact --where statement~evil", "! --where {S}"],
    "memory near": ["{T}", "! {none}"],
    "memory walk": ["! {uri}", "! {uri} --json", "! {S}"],
    "memory context": ["! --budget 100000", "! --budget 100000 --json"],
    "memory attest": ["{T} success {uri} --reason {T}", "{T} success {S}", "! {T} {S} {uri}"],
    "memory compact": ["{T} {T} {uri}", "! {T} 1 {S}"],
    "memory embed": ["{uri} [1,2] --model {S}", "! {uri} @{none}"],
    "append": ["! {S} 1", "note @{none}", "a.b {T}"],
    "apply": ["{steps}", "! {none}"],
    "log": ["!", "! --json", "! --actor x{S}", "--kind {S}"],
    "roots": ["! --actor {S}", "! --json", "!"],
    "seed": ["", "--json", "! --actor x{S}"],
    "snapshot make": ["--reason {T}", "! --actor x/{S}"],
    "snapshot list": ["! --json", "! --actor x{S}", ""],
    "snapshot show": ["0", "! {S}", "0 --json"],
    "snapshot seal": ["0 --sign {key} --signed-by {S}", "! {S} --to-sign", "! 0 --sign {none}"],
    "snapshot drop": ["! {S}"],
    "prove": ["! {uri} -o {none}", "! {uri} --fresh -o {pack}", "! {S} -o x", "={uri} -o -"],
    "verify": ["! {pack} --self-consistent --details", "! {pack} --self-consistent --json", "! {cut}", "! {flipped} --details",
               "! {badnote}", "! {none}", "! {inclusion} --entry {entry}", "! {tlog} --details", "! {receipt}",
               "! {evidence} --details", "! {evidence} --json", "! {lattice} --details", "! --home {home}",
               "! --home {home} --json", "! {note} --key {S}", "! {pack} --manifest {none}"],
    "checkpoint": ["=--sign {key}", "! --origin {N}", "! --consistency-from {badnote}", "! --sign {none}"],
    "key new": ["! {none}", "x --name {N}"],
    "key show": ["! {none}", "! {S}", "{key}"],
    "key add": ["{badtrust}", "--id {S} --public-key {T}", "! {none}"],
    "key list": ["", "--json"],
    "key pending": ["", "--json"],
    "key approve": ["! {S}", "! {S} --agent {T}"],
    "key reject": ["! {S} --reason {T}"],
    "key revoke": ["! {S} --reason {T}"],
    "export entry": ["=0", "! 0 -o {none}", "! {S}"],
    "export receipt": ["=0 --sign {key}", "! 0 --sign {none}"],
    "export tlog-proof": ["=0 --sign {key}", "! 0 --checkpoint {badnote}"],
    "export tiles": ["! /dev/null/{R}", "! tiles-{S} --origin {N}", "! tiles-{S}"],
    "scope make": ["! --to {S} --type {S}", "! --to {T} --tag {T} --sign {none}"],
    "scope check": ["! {scope}", "! {scope} --json", "! {pack}", "! {scope} --presenter {S}", "! {none}"],
    "scope send": ["! {scope}", "! {scope} --json", "! {pack}", "! {none}", "! {scope} --key {S}",
                   "! {scope} --url {S}", "! {scope} --url http://127.0.0.1:1 --token-file {none}"],
    "scope list": ["!", "! --json", "--to {S}", "! --url {S}"],
    "scope receive": ["! {S}", "! {S} --url http://127.0.0.1:1 --token-file {none}"],
    "erase": ["! {S} --reason {T}"],
    "hold add": ["--agent {S} --reason {T}", "! --agent {N} --reason x --from {S}"],
    "hold list": ["!", "--json"],
    "hold release": ["! {S} --reason x"],
    "retention apply": ["! --retention {S}", "--dry-run --retention 'session.* 1y'"],
    "sensitive": ["", "{S}", "! --class {S}"],
    "consent revoke": ["{S} --reason {T}", "{N} --reason {T}"],
    "witness": ["! --dir {none} --log {S} --key {key}", "! {none}"],
    "fleet init": ["--database {S}", "--database postgresql://127.0.0.1:1/{S}"],
    "fleet status": ["--database {S}", "--database postgresql://127.0.0.1:1/{S}"],
    "fleet parts": ["--database {S}", "--database postgresql://{S}@127.0.0.1:1/x"],
    "fleet nodes": ["--database {S}", "--database postgresql://{S}@127.0.0.1:1/x"],
    "fleet drain": ["{S} --database postgresql://127.0.0.1:1/x", "{S} --undo --database {S}"],
    "fleet balance": ["--database {S}", "--off --after {S} --database postgresql://{S}@127.0.0.1:1/x"],
    "fleet doctor": ["--database {S}", "--accept {S}"],
    "fleet checkpoint": ["--part {S} --database {S}", "--check {S} --database postgresql://127.0.0.1:1/x",
                         "--check {badnote} --database postgresql://127.0.0.1:1/{S}",
                         "--sign {S} --origin {S} -o {S} --database postgresql://127.0.0.1:1/x"],
    "fleet add": ["{S} --database {S}", "{S} --database postgresql://127.0.0.1:1/x"],
    "fleet move": ["{S} --to {S} --database postgresql://127.0.0.1:1/x", "main --to postgresql://{S} --database {S}"],
    "fleet config": ["{S} --database postgresql://127.0.0.1:1/x", "main --set {S} --database postgresql://127.0.0.1:1/{S}"],
    "fleet quota": ["{S} --database postgresql://127.0.0.1:1/x", "main --bytes {S} --database {S}"],
    "fleet prune": ["{S} --database postgresql://127.0.0.1:1/x", "main --keep {S} --database {S}"],
    "fleet import": ["{S} --database {S}", "{S} --database postgresql://127.0.0.1:1/x"],
    "fleet export": ["{S} --database {S}", "{S} --part {S} --database postgresql://127.0.0.1:1/x"],
    "tables status": ["--home {home}", "! --home {none}"],
    "tables check": ["--home {home}", "! --home {none}"],
    "tables repair": ["--home {home}", "! --home {none}"],
    "log archive": ["! --home {none}", "! --to /dev/null/{R}"],
    "log restore": ["! --home {none}", "! {S}"],
    "tables rebuild": ["--verify-only", "! --home {none}"],
    "backup": ["! /dev/null/{R}", "! {pack}", "! --verify {none}", "! --verify {S}"],
    "restore": ["! {none} --to {S}", "! {S} --to {none} --json", "{home} --to {S}"],
    "record": ["! {forged}", "! {forged} --json", "! {unread}", "! {none}"],
    "trace verify": ["{forged} --trust {trust}", "! {one} --trust {trust}", "! {one} --trust {trust} --json",
                     "{one} --trust {badtrust}", "! {none} --trust {trust}"],
    "search": ["evil", "--json evil", "--limit 500 end", "{S}", "{T}", "--in {S} a",
               "--agent {S} --tool {S} --kind {S} a", "--cursor {S} a"],
    "histories": ["", "--json", "{S}", "--source {S} --agent {S}", "--cursor {S}"],
    "trace query": ["--json --verified any", "--agent {T}", "--cursor {S}", "--text {S}"],
    "trace show": ["{recorded}", "! {recorded} --json", "{S}", "{recorded} --agent {S}"],
    "trace chain": ["{agent}", "{S}", "! --file {none}", "--file {forged}"],
    "trace idma": ["{agent} --json", "{S}", "! --file {none}", "! --file {one}"],
    "trace wakeup": ["{agent}", "! {S}"],
    "trace canon": ["={one}", "! {none}", "={one} --form B", "! {unread}"],
    "trace redact": ["={one} --to generic --trust {trust}", "! {none} --to generic --trust {trust}",
                    "{one} --to generic --trust {badtrust}"],
    "detect": ["--no-record", "! --home {none}"],
    "capacity": ["{agent}", "{S}", "! x --home {none}"],
    "alert list": ["--all", "! --home {none}"],
    "alert ack": ["{S} --notes {T}", "! {S} --home {none}"],
    "alert resolve": ["{S} --notes {T}", "! {S} --notes x --home {none}"],
    "import": ["=claude-code {session}", "claude-code {session} -o /dev/null --json", "! {S} {session}",
               "! claude-code {none}", "! claude-code {broken}", "! claude-code {session} -o /dev/null/{R}"],
    "lattice verify": ["! {lattice} --details", "! {lattice} --details --color always --compare {a} {b}",
                       "! {false} --details", "! {false} --json", "! {false}", "! {syntax}", "! {none}",
                       "! {lattice} --head {a}={zero}", "! {lattice} --compare {S} {T}", "! @{S}", "@run/{S}"],
    "lattice state": ["! {lattice} {node}", "! {lattice} {node} --json", "! {false} {node}", "! {lattice} {S}"],
    "lattice append": ["--agent {S}", "--agent {S} --event {S}", "--agent a --set {S}=1", "--agent {S} --json", "{none}"],
    "lattice import": ["--seal {lattice}", "! --seal {false}", "{S}"],
    "lattice why": ["! {lattice} {node} {N}", "! {lattice} {node} {N} --json", "{lattice} {node} --text {N}", "{lattice} {node} {S}", "! {lattice} {S} x"],
    "lattice reach": ["{lattice} {node}", "! {lattice} {node} --json", "! {lattice} {S}"],
    "lattice grep": ["! {lattice} {N}", "! {lattice} {N} --json", "{lattice} {S}"],
    "lattice bisect": ["! {lattice} {node} /memory/{N}", "! {lattice} {node} {S}", "! {lattice} {node} /memory/{N} --json"],
    "lattice compare": ["! {lattice} {a} {b}", "! {lattice} {a} {b} --json", "! {lattice} {a} {S}"],
    "lattice heatmap": ["! {lattice}", "! {lattice} --json", "! {none}"],
    "lattice heads": ["! {lattice}", "! {lattice} --json", "! {syntax}"],
    "lattice show": ["! {lattice} {node}", "! {lattice} {node} --json", "! {lattice} {S}"],
    "lattice render": ["! {lattice}", "! {lattice} --ascii", "! {lattice} --fold", "! {lattice} --svg",
                       "! {lattice} --dot", "! {lattice} --json", "! {lattice} --layout-json", "! {none}",
                       "! {lattice} --color always", "! {lattice} -o {none}"],
    "view": ["! {none}", "~{lattice} --no-browser"],
    "lattice view": ["! {none}", "~{lattice} --no-browser"],
    "lattice anchor": ["! {lattice}", "! {false}"],
    "lattice selftest": ["! {S}", ""],
    "runner add": ["! {S} sh", "! ok {R}", "ok sh --repo {place}"],
    "runner list": ["", "--repo {place}"],
    "contract new": ["{T} -p {S} -t {T}", "! x -p {S} -t true -o /dev/null/{R}", "! {T} -p a -t b --role {S}"],
    "contract lint": ["! {contract}", "! {contract} --json", "! {bad}", "! {bad} --format json", "! {bad} --format sarif", "! {bad} --format junit",
                      "{broken}", "! {none}", "! {contract} --output {none}", "{contract} --repo {place}"],
    "contract explain": ["! {contract}", "! {contract} --json", "! {bad}"],
    "contract resolve": ["{good}", "! {contract}", "! {bad}", "! {none}"],
    "contract hash": ["{bad}", "{bad} --legacy --json", "! {none}", "! {broken} --legacy"],
    "gate policy": ["! {contract}", "! {contract} --json", "! {bad}"],
    "gate schema": ["! {schema} {value}", "! {schema} {value} --format json", "! {schema} {value} --format sarif",
                    "! {schema} {value} --format junit", "! {broken} {value}", "! {schema} {none}"],
    "gate command": ["{T}", "{T} --format json", "! git\\ status --contract {none}", "! {S} --format junit", "sh\\ {S}"],
    "gate diff": ["! --allow src/", "! --allow src/ --format json", "--allow {S} --format sarif", "! --allow src/ --format junit",
                  "! --contract {none}", "! --allow src/ --baseline {S}",
                  "! --baseline HEAD --head {S} --allow src/", "! --baseline HEAD --head HEAD --contract-in {S}",
                  "! --baseline {S} --contract-in {T}"],
    "hooks install": ["! --repo {place}"],
    "hooks remove": ["! --repo {place}"],
    "hooks status": ["", "! --repo {place}"],
    "up": ["--no-open --no-watch --home {none}", "! --no-open --listen {S}"],
    "hook pre-commit": ["", "--repo {place}"],
    "hook install": ["! {S} --yes", "! claude --mode {S} --yes", "claude --project --yes --dry-run --home {place}/{S}",
                     "codex --project --yes --dry-run --json --home {place}/{T}"],
    "hook uninstall": ["! {S} --yes", "claude --project --yes --dry-run", "cursor --project --yes --dry-run --json --home {none}"],
    "hook probe": ["! {S}", "cursor", "! claude --deadline {S}", "claude --home {none}"],
    "hook plugin": ["! {S} {none}", "! claude {none} --mode {S}", "claude {none}/{T}"],
    "hook status": ["! {S}", "", "--json --home {none}"],
    "hook pre-push": ["", "--repo {place}"],
    "hook audit": ["! {S}", "! --all", "! --all --json", "! --all --sarif", "! --transcript {session}", "! --transcript {none}"],
    "exec": ["-- true {T}", "! --policy {none} -- true", "! --allow {S} -- true", "! --write {none} -- true",
             "! --contract {broken} -- true", "-- {S}"],
    "hook claude": ["", "--mode enforce", "! --home {none}", "! --mode {S}"],
    "hook codex": ["", "! --home {none} --mode enforce"],
    "hook gemini": ["", "! --home {none} --mode enforce"],
    "hook cursor": ["", "! --home {none} --mode enforce"],
    "hook copilot": ["", "! --home {none} --mode enforce"],
    "session list": ["!", "! --json"],
    "session show": ["! {live}", "! {live} --all", "! {live} --all --json", "! {S}{S}"],
    "session limit": ["! {live} --path {T}", "! {S}{S} --no-network", "{live} --deny-tool {T}", "! {live} --contract {none}"],
    "session approve": ["{live}", "! {live} {S}", "! {S}{S}"],
    "session deny": ["{live} --reason {T}", "! {S}{S} --reason {T}"],
    "mcp-gateway": ["! --name {S} -- x", "! --home {none} -- {S}", "! -- {none}/{R}"],
    "mcp-gateway wrap": ["! {S}", "! claude --file {none}", "! claude {S} --file {hostile_mcp} --dry-run", "! claude --file {hostile_mcp} --dry-run", "codex --file {broken}"],
    "mcp-gateway unwrap": ["! {S}", "! claude --file {none}", "! claude --file {hostile_mcp} --dry-run"],
    "mcp-gateway pin": ["! {S}", "! {S} --json", "a {T} --accept"],
    "worktrees list": ["!", "! --json", "! --repo {place}"],
    "locks list": ["", "--json", "--repo {place}"],
    "locks release": ["! {S}", "--stale --repo {place}", "src --approval {none}"],
    "approve": ["! --contract {none} --scope merge --reason {T} --key {key}", "! --contract {good} --scope {T} --reason {T} --key {key}", "! --contract {good} --scope wide_path:src --reason {T} --key {none}"],
    "approvals list": ["!", "--json", "--repo {place}"],
    "run list": ["!", "! --json", "--cursor {T}", "--repo {place}"],
    "run show": ["! {run}", "! {run} --json", "! {elsewhere}", "! {S}", "! {none}"],
    "run events": ["! {run}", "={run} --json", "={elsewhere} --json", "! {S}"],
    "run diff": ["={run}", "={run} --name-only", "{run} --json", "{run} --name-only --json", "! {S}"],
    "run reports": ["! {run}", "! {run} --json", "={run} task_result", "={run} a{N}", "! {run} {S}"],
    "run verify": ["! {run}", "! {run} --json", "! {elsewhere}", "! {none}"],
    "run store": ["! {none}", "! {elsewhere} --json", "../x"],
    "run export": ["! {none} --output x", "! {elsewhere} --output {none}", "{run} --output x.tar"],
    "run cleanup": ["", "--json", "! --older-than {S}", "--repo {place}"],
    "run spans": ["={run}", "! {S}"],
    "attest": ["! {S} --type {S} --predicate {bad} --key {key}", "{contract} --check {broken} --trusted {key}",
               "! {none} --check {none}"],
    "run attest": ["! {S} --key {key}", "{run} --check {broken}", "! {run} --check {none}"],
    "run replay": ["! {story}", "! {story} --json", "! {story} --against {run}", "! {run}", "! {elsewhere}",
                   "{run} --reexec --script {script}", "! {story} --reexec --script {none}", "! {S}"],
    "run chain": ["! {chain}", "! {chain} --json", "! {none}", "{broken}"],
    "run": ["! {bad}", "! {bad} --json", "! {none}", "! --intent @{none}", "! {contract} --dry-run",
            "! {good} --runner {S}", "{good} --script {script}", "! {good} --script {none}"],
    "serve": ["! --listen {S}", "! --home {none}", "! --listen 127.0.0.1:0 --tls-cert {none} --tls-key {none}",
              "~--listen 127.0.0.1:0 --otlp off --name {S}"],
    "ready": ["! --home {S}", "! --url {S}", "--home {none} --json"],
    "watch": ["--once {sessions}", "--once --json {sessions}", "! --list", "! --list --json", "--once {none}"],
    "otel traces": ["--after {S}", "! --home {none}"],
    "mcp": ["! --level {S}", "--home {none}", "~"],
    "token add": ["--name {T}", "! --scope {S}", "! --scope trace:read --expires {S}"],
    "token list": ["", "--json"],
    "token revoke": ["{S}", "! {S} --home {none}"],
    "status": ["!", "! --json", "--repo {place}", "--home {none}", "! --roots"],
    "config check": ["! {config}", "! {none}"],
    "config default": ["", "! {S}"],
    "config": ["! --home {none} --all", "--json", "! {S}"],
    "doctor": ["--home {none}", "--home {none} --json --repo {place}"],
    "completion": ["{S}", "! bash {S}"],
    "version": ["! {S}", ""],
    "help": ["! {S}", "! run {S}", "--man {S}"],
}


def words_of(world, row):
    """shlex, with names put in behind: what they hold is one word, whatever it is."""
    made = []
    for word in shlex.split(row):
        parts = re.split(r"(\{\{\}\}|\{\w+\})", word)
        whole = b""
        for part in parts:
            named = re.fullmatch(r"\{(\w+)\}", part)
            value = "{}" if part == "{{}}" else world[named.group(1)] if named else part
            whole += value if isinstance(value, bytes) else os.fsencode(value)
        made.append(whole)
    return made


def only(name):
    wanted = os.environ.get("CX_HOSTILE_ONLY")
    return wanted is None or name.startswith(wanted)


def takes_text(command):
    """Whether an operand or an option has a value other than a choice of words."""
    return bool(command["operands"]) or any(option["value"] and "|" not in option["value"]
                                            for option in command["options"])


@test
def every_command_has_a_row():
    """Or takes no text: then the call without arguments, below, is all there is to try."""
    missing = {name for name, command in COMMANDS.items() if name not in ROWS and takes_text(command)}
    check(not missing and set(ROWS) <= set(COMMANDS), "without a row:", missing, "no command:",
          set(ROWS) - set(COMMANDS))
    check(all(ROWS.values()), "a row without a call")


@test
def the_detector_finds_active_text():
    """It would find each of them."""
    for one in [*LINE.replace("[35;1m", "").replace("]0;t", "").replace("[2J", "").replace("31m", "")]:
        for terminal in (False, True):
            try:
                harmless(f"a{one}b".encode(), terminal, "x")
            except AssertionError:
                continue
            raise AssertionError(f"U+{ord(one):04X} was not seen")
    for bad in (b"\xff", b"\x1b[35m", b"a\nFORGED"):
        for terminal in (False, True):
            try:
                harmless(bad, terminal, "x")
            except AssertionError:
                continue
            raise AssertionError(f"{bad!r} was not seen")
    harmless(b"\x1b[31mred\x1b[0m\n", True)


@test
def hostile_data_is_escaped_by_every_command():
    """With sanitizers, which are slow, one row is looked at in a pipe and the next one on a terminal: what is
    written does not depend on them."""
    sanitized = bool(os.environ.get("CX_SANITIZE"))
    with Folder() as folder:
        world = World(folder)
        eye = Eye(world.env, world.repo.path)
        failed = []
        for name in COMMANDS:
            for row in ROWS.get(name, [""]) if only(name) else []:
                kinds = re.match("[!=~]*", row).group()
                words = [BIN, *name.split(), *words_of(world, row[len(kinds):])]
                try:
                    even = eye.looks % 2 == 0
                    eye.look(words, exact="=" in kinds, shows="!" in kinds, pipe=even or not sanitized,
                             terminal=not (even and sanitized), patience=SERVES if "~" in kinds else 60)
                except AssertionError as why:
                    failed.append(f"{name} | {row}: {str(why)[:1500]}")
        check(not failed, "\n" + "\n".join(failed))
        print(f"{eye.looks} calls, {'one in a pipe, one' if sanitized else 'each in a pipe and'} on a terminal")


@test
def hooks_escape_what_agents_send():
    with Folder() as folder:
        world = World(folder)
        for agent in ("claude", "codex", "gemini", "cursor", "copilot"):
            for words in (*HOOKED, {"hook_event_name": TEXT}, {"tool_input": TEXT, "hook_event_name": "PreToolUse"}):
                for session in (SOFT, ""):
                    payload = {"session_id": session, "conversation_id": session, "cwd": TEXT, **words}
                    done = run(BIN, "hook", agent, "--mode", "enforce", env=world.env, cwd=world.repo.path,
                               stdin=json.dumps(payload).encode())
                    harmless(done.stderr, False, agent, words)
                    harmless(done.stdout, False, agent, words)
                    check(done.stderr.count(b"\n") <= 1 and done.stdout.count(b"\n") <= 1, done)


@test
def hostile_arguments_are_escaped_by_every_command():
    """Each option and each operand of the table, and one that there is not.

    What is written does not depend on a sanitizer: there a terminal is not looked at, and values that are no
    UTF-8 are refused once for each kind of value, by the one function that reads them.
    """
    sanitized = bool(os.environ.get("CX_SANITIZE"))
    kinds = set()
    with Folder() as folder:
        (folder / "place").mkdir()
        env = clean_env(CORTEX_HOME=str(folder / "no-home"), NO_COLOR="")
        eye = Eye(env, folder / "place")
        for name, command in COMMANDS.items():
            if not only(name):
                continue
            calls = [[b"--no-" + RAW], [b"--no" + RAW + b"=x"], [RAW] * 9]
            for option in command["options"]:
                if option["value"] is not None and (name, option["name"]) not in (("demo", "dir"), ("up", "home")):
                    if not sanitized or option["value"] not in kinds:
                        calls.append([b"--" + option["name"].encode(), RAW])
                    kinds.add(option["value"])
                    if name not in SERVING:
                        calls.append([b"--" + option["name"].encode(), NAME.encode(), *[RAW] * len(command["operands"])])
            for number, words in enumerate(calls):
                eye.look([BIN, *name.split(), *words], terminal=number < 3 and not sanitized,
                         patience=SERVES if name in SERVING else 60)
            eye.look([BIN, *name.split(), b"--no-" + RAW, "--json"], shows=True)
        eye.look([BIN, RAW], shows=True)
        eye.look([BIN, "run" + NAME], shows=True)
        print(f"{eye.looks} calls in a pipe, those without options on a terminal, too")


@test
def hostile_text_is_escaped_by_cortex_verify():
    with Folder() as folder:
        world = World(folder)
        eye = Eye(world.env, world.repo.path)
        for row in ("! {pack} --self-consistent --details", "! {pack} --self-consistent --json", "! {cut}", "! {flipped} --json",
                    "! {badnote}", "! {none}", "! {inclusion} --entry {entry}", "! {tlog} --details",
                    "! {receipt} --json", "! {evidence} --details", "! {evidence} --json", "! {broken}",
                    "! --no-{R}", "! {pack} --key {none}", "! {pack} --root {S}", "! {pack} --namespace {T}",
                    "! {pack} --size {S} --root {zero}", "! {note} --key {note}", "! {scope} --details"):
            eye.look([VERIFY, *words_of(world, row[1:])], shows=True)


@test
def a_patch_is_exact_in_a_pipe_and_shown_on_a_terminal():
    with Folder() as folder:
        world = World(folder)
        words = [BIN, "run", "diff", world["run"]]
        patch = (pathlib.Path(world["bundle"]) / "patch.diff").read_bytes()
        out, _ = through_pipes(words, world.env, world.repo.path, 60)
        check(out == patch, out)
        seen = on_terminal(words, world.env, world.repo.path, 60)
        check(MARK.search(seen) and b"\\xff" in seen and seen.count(b"\n") == patch.count(b"\n"), seen)
        events = (pathlib.Path(world["bundle"]) / "events.jsonl").read_bytes()
        out, _ = through_pipes([BIN, "run", "events", world["run"], "--json"], world.env, world.repo.path, 60)
        check(out == events, out)


@test
def all_output_goes_through_one_escaping_function():
    """Output is written in src/cli/out.c and verify/main.c alone."""
    writes = re.compile(r"\b(v?f?printf|fputs|puts|fputc|putc|putchar|fwrite|perror|dprintf|psignal)\s*\("
                        r"|\bstd(err|out)\b|\bSTD(OUT|ERR)_FILENO\b")
    # Comments and texts are not code; a child of a run writes to what is recorded.
    plain = re.compile(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"', re.S)
    # The answer of a hook is exact, and one that did not arrive is "no", exit code 2.
    may = {"cli/out.c", "base/diag.c", "sandbox/sandbox_launcher.c", "sandbox/sandbox_posix.c",
           "agent/agent_ops.c", "cli/live/cmd_hook.c", "cli/exec/cmd_exec.c"}
    # An agent gets what it reads as a program, not on a terminal; its server has its standard error.
    speaking = {"cli/gateway/gateway_stdio.c", "cli/gateway/gateway_http.c"}
    looking = {"cli/provenance/cmd_evidence.c", "cli/ledger/cmd_prove.c", "cli/ledger/prove_never.c"}  # whether standard output is a terminal
    found = []
    for path in sorted((ROOT / "src").rglob("*.c")):
        name = str(path.relative_to(ROOT / "src"))
        code = plain.sub("", path.read_text())
        for hit in writes.finditer(code):
            if name in may or name in speaking or (name in looking and hit.group() == "STDOUT_FILENO"):
                continue
            found.append(f"{name}: {hit.group()}")
    check(not found, "writes to a stream:", found)
    code = plain.sub("", (ROOT / "verify/main.c").read_text())
    check(len(writes.findall(code)) == 4, "verify/main.c writes elsewhere:", writes.findall(code))


main()
