#!/usr/bin/env python3
"""What commands print with --json is what schemas/answers/ says: each answer is checked with `gate schema`.

    test_answers.py [PROGRAM] [WORD..]
"""
import copy
import json
import os
import subprocess

from kit import BIN, TESTS, Folder, sibling, check, main, run, skip, test

ANSWERS = TESTS.parent / "schemas" / "answers"
BATCHES = TESTS / "vectors" / "trace" / "batches"
TRUST = TESTS / "vectors" / "trace" / "trust.json"
ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("GIT_", "CORTEX_", "CORTEXPILOT_", "XDG_")) or k == "CORTEX_BIN"}
FACT = '{"statement":"x","subject":"s","predicate":"is"}'
KINDS = {"type", "required", "additionalProperties", "enum", "const", "pattern", "oneOf"}
tried = set()


class Place:
    def __enter__(self):
        self.outer = Folder()
        self.folder = self.outer.__enter__()
        self.home = self.folder / "home"
        self.env = {**ENV, "CORTEX_HOME": str(self.home), "CORTEX_ACTOR": "ann", "HOME": str(self.folder),
                    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        return self

    def __exit__(self, *problem):
        self.outer.__exit__(*problem)

    def cortex(self, *words, codes=(0,), program=BIN, cwd=None):
        done = run(program, *words, env=self.env, cwd=cwd or self.folder)
        check(done.returncode in codes, words, done.returncode, done.stderr)
        return done.stdout

    def home_with_something(self):
        self.cortex("init", "--no-repo", "--segment-size", "1M")
        self.uri = self.cortex("memory", "write", "Fact", FACT).decode().split()[0]
        self.cortex("snapshot", "make", "--reason", "x")

    def gate(self, name, answer):
        path = self.folder / "answer.json"
        path.write_bytes(answer if isinstance(answer, bytes) else json.dumps(answer).encode())
        done = run(BIN, "gate", "schema", name + ".v1", path, "--json", env=self.env, cwd=self.folder)
        return done.returncode, json.loads(done.stdout)

    def fits(self, name, answer):
        """The answer has its schema, and loses it when its first level loses, gains or changes anything."""
        tried.add(name)
        code, said = self.gate(name, answer)
        check(code == 0 and said["allow"], name, said, answer[:2000])
        value = json.loads(answer)
        for wrong in [{**value, "surprise": 1}] + [without(value, key) for key in value]:
            code, said = self.gate(name, wrong)
            check(code == 4 and {v["rule"] for v in said["violations"]} & KINDS, name, "takes", wrong)
        return value


def without(value, key):
    less = copy.deepcopy(value)
    del less[key]
    return less


@test
def status_answers_match_their_schema_for_each_data_directory():
    with Place() as place:
        check(place.fits("status", place.cortex("status", "--json", codes=(0, 3)))["home"]["exists"] is False)
        place.home_with_something()
        place.cortex("key", "new", "a.key", "--name", "example.com/log")
        place.cortex("checkpoint", "--sign", "a.key")
        place.fits("status", place.cortex("status", "--json"))
        place.fits("status", place.cortex("status", "--json", "--roots"))
        server = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--json"], env=place.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place.folder)
        try:
            check(server.stdout.readline())
            got = place.fits("status", place.cortex("status", "--json"))
            check(got["owner"]["pid"] == server.pid, got)
        finally:
            server.terminate()
            server.communicate()
        log = next((place.home / "log").glob("*"))
        log.write_bytes(b"no log")
        place.fits("status", place.cortex("status", "--json", codes=(0, 1, 3)))


@test
def config_roots_and_doctor_answers_match_their_schemas():
    with Place() as place:
        place.home_with_something()
        (place.home / "config.toml").write_text('actor = "bob"\n[serve]\nqueue = 16\n')
        got = place.fits("config", place.cortex("config", "--json"))
        check({v["source"] for v in got["values"]} >= {"environment", "home", "default"}, got)
        check(len(place.fits("roots", place.cortex("roots", "--json"))["actors"]) == 1)
        place.fits("doctor", place.cortex("doctor", "--json", codes=(0, 1, 3)))


@test
def show_answers_match_their_schema():
    with Place() as place:
        place.home_with_something()
        memory = place.fits("show", place.cortex("show", place.uri, "--json"))
        check(memory["kind"] == "memory" and memory["here"] is True, memory)
        place.fits("show", place.cortex("show", "ann", "--json"))
        place.fits("show", place.cortex("show", "ann/0", "--json"))
        place.fits("why", place.cortex("why", place.uri, "--json"))
        file = place.folder / "a.bin"
        file.write_bytes(b"\0")
        check(place.fits("show", place.cortex("show", str(file), "--json"))["kind"] == "file")


@test
def errors_match_their_schema():
    with Place() as place:
        place.home_with_something()
        for words in (("show", "nothing-of-that-name"), ("log", "--actor", "nobody"), ("memory", "find"),
                      ("why", "matrix://cortex/Fact/01HF7YAT000000000000000003#1"), ("run", "list", "--bad")):
            place.fits("error", place.cortex(*words, "--json", codes=(2, 3)))


@test
def alerts():
    with Place() as place:
        place.cortex("init", "--no-repo", "--segment-size", "1M")
        check(place.fits("alerts", place.cortex("alert", "list", "--json"))["count"] == 0)
        place.cortex("key", "add", TRUST)
        for path in sorted(BATCHES.glob("ingest-conflict-a-*.json")):
            place.cortex("record", path, codes=(0, 1))
        got = place.fits("alerts", place.cortex("alert", "list", "--json"))
        check(got["count"] == len(got["alerts"]) > 0, got)


@test
def answers_about_a_run_match_their_schemas():
    with Place() as place:
        done = run(BIN, "demo", "--dir", "story", env=place.env, cwd=place.folder)
        check(done.returncode == 0 or (done.returncode == 3 and b"this machine has no sandbox" in done.stdout),
              done.returncode, done.stdout[-2000:], done.stderr)
        story, place.env["CORTEX_HOME"] = place.folder / "story", str(place.folder / "story" / "home")
        check((story / "shop" / "schemas").exists() and not (story / "shop" / "schemas" / "answers").exists())
        got = place.fits("evidence_verdict", place.cortex(
            "--key", story / "auditor.pub", story / "evidence.cxe", "--json",
            program=sibling("cortex-verify")))
        check(got["verdict"] == "holds", got)
        spoilt = bytearray((story / "evidence.cxe").read_bytes())
        spoilt[len(spoilt) // 2] ^= 1
        (place.folder / "spoilt.cxe").write_bytes(spoilt)
        got = place.fits("evidence_verdict", place.cortex(
            "spoilt.cxe", "--json", program=sibling("cortex-verify"), codes=(1,)))
        check(got["findings"], got)
        runs = place.fits("runs", place.cortex("run", "list", "--json", cwd=story / "shop"))
        if done.returncode == 0:
            check(len(runs["items"]) == 1, runs)
            why = place.fits("why", place.cortex("why", "src/refund.py:2", "--json", cwd=story / "shop"))
            kinds = {step["kind"]: step["id"] for step in why["steps"] if step["id"]}
            check({"line", "commit", "run", "trace", "memory"} <= set(kinds), kinds)
            for kind, name in kinds.items():
                if kind not in ("contract", "gates", "component"):
                    place.fits("show", place.cortex("show", name, "--json", cwd=story / "shop"))


@test
def audits_of_sessions_match_their_schema():
    with Place() as place:
        place.cortex("init", "--no-repo", "--segment-size", "1M")
        payload = json.dumps({"session_id": "s1", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                              "tool_input": {"command": "rm -rf x"}, "tool_use_id": "t1"}).encode()
        check(run(BIN, "hook", "claude", "--mode", "enforce", stdin=payload, env=place.env).returncode == 2)
        block = {"type": "tool_result", "tool_use_id": "t1", "content": "gone"}
        told = place.folder / "told.jsonl"
        told.write_text("".join(json.dumps({"type": kind, "sessionId": "s1", "uuid": kind, "parentUuid": None, "message": {
            "role": kind, "content": [content]}}) + "\n" for kind, content in (
                ("assistant", {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm -rf x"}}),
                ("user", block))))
        got = place.fits("hook_audit", place.cortex("hook", "audit", "--transcript", told, "--json", codes=(1,)))
        check(got["sessions"][0]["findings"][0]["id"] == "denied_call_ran", got)
        place.fits("hook_audit", place.cortex("hook", "audit", "--json", codes=(3,)))
        place.fits("hook_audit", place.cortex("hook", "audit", "--all", "--json", codes=(3,)))


@test
def every_schema_was_used():
    if not tried:
        skip("asked for alone")
    names = {path.name.split(".")[0] for path in ANSWERS.glob("*.json")}
    # Those of a fleet need PostgreSQL: test_fleet.py, test_fleet_checkpoint.py.
    check(tried >= {name for name in names if not name.startswith("fleet_")}, tried)


main()
