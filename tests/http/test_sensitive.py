#!/usr/bin/env python3
"""Secrets and personal data at intake: session files, OTLP, steps and traces, marked and masked.

After masking, no byte of what was found is in any file of the data directory; with the policy off it
is, which shows that the search would find it.
"""
import base64
import gzip
import hashlib
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from agent import Agent, batch  # noqa: E402
from kit import Place, check, main, test  # noqa: E402
from otlp_wire import Log, Span, attribute, document, proto  # noqa: E402
from receiver import JSON, Receiver  # noqa: E402
from server_kit import API, Server  # noqa: E402

# In two parts, so that this file has no secret for programs that look for them.
SECRETS = {"token": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a", "email": "jane.doe@example.org",
           "phone": "+49 30 1234567", "card": "4111111111111111", "iban": "DE89370400440532013000",
           "password": "s3cr3t-pw", "custom": "acme_0123456789abcdef",
           "private-key": "MIIEpAIBAAKCAQEA1c7+9z5Pad7OejecsQ0bu3aumtr5l9nYkw1yRr0"}
TEXT = (f"use {SECRETS['token']}, write to {SECRETS['email']} or call {SECRETS['phone']}; pay with "
        f"{SECRETS['card']} or {SECRETS['iban']}; postgres://app:{SECRETS['password']}@db/x "
        f"{SECRETS['custom']}\n-----BEGIN RSA " + "PRIVATE KEY-----\n" + SECRETS["private-key"] +
        "\n-----END RSA " + "PRIVATE KEY-----\n")
MASK = ("--sensitive", "mask", "--sensitive-pattern", "acme_:hex:16")
MARK = ("--sensitive", "mark", "--sensitive-pattern", "acme_:hex:16")


def there(home):
    """The secrets that some file has, and the hash of one that could be guessed."""
    found = set()
    for path in pathlib.Path(home).rglob("*"):
        if not path.is_file():
            continue
        data = path.read_bytes()
        for name, secret in SECRETS.items():
            digest = hashlib.sha256(secret.encode())
            if any(form in data for form in (secret.encode(), digest.digest(),
                                             digest.hexdigest().encode())):
                found.add(name)
    return found


def marks(text):
    """{(actor, seq): {(class, action)}} of `cortex sensitive --json`."""
    answer = json.loads(text)
    check(not answer["more"], answer)
    for secret in SECRETS.values():
        check(secret not in text, "a mark names what was found", secret)
    return {(r["actor"], r["seq"]): {(f["class"], f["action"]) for f in r["findings"]}
            for r in answer["records"]}


def all_classes(action):
    return {(name, action) for name in SECRETS}


# --- steps -----------------------------------------------------------------------------------------

STEP = {"agent": "desk", "event": {"text": TEXT, "number": 4111111111111111,
                                   SECRETS["email"]: 1, "other@example.org": 2},
        "state_delta": {"memory": {"note": SECRETS["email"]}}}


@test
def steps_of_the_command_line():
    for options, stays, action in ((("--sensitive", "off"), set(SECRETS), None),
                                   (MARK, set(SECRETS), "marked"), (MASK, set(), "masked")):
        with Place() as p:
            done = p.run("lattice", "append", "-", *options, input=json.dumps(STEP).encode())
            check(done.returncode == 0, done.stderr)
            check(there(p.home) == stays, options, there(p.home))
            listed = marks(p.ok("sensitive", "--json"))
            check(listed == ({("desk", 0): all_classes(action)} if action else {}), listed)
            p.ok("lattice", "verify", "@agent/desk")
            p.ok("verify", "--home", p.home)


@test
def steps_over_http_are_masked_and_stored_once():
    with Server(*MASK) as s:
        for expect in ("stored", "duplicate"):
            answer = s.ask("POST", "/api/v1/steps", body={"steps": [{**STEP, "key": "k1"}]})
            check(answer.status == 200 and answer.json()["results"][0]["status"] == expect,
                  answer.status, answer.body)
        check(there(s.home) == set(), there(s.home))
        listed = json.loads(s.command("sensitive", "--json"))
        check([f["pointer"] for f in listed["records"][0]["findings"] if f.get("name")] ==
              ["/event/" + "*" * 20, "/event/" + "*" * 17], listed)
        s.stop()
        check(there(s.home) == set(), there(s.home))


@test
def a_signed_step_is_only_marked():
    agent = Agent("desk")
    with Server(*MASK) as s:
        s.register(agent)
        unsigned = {"agent": "desk", "event": {"text": TEXT}, "state_delta": {}}
        text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"))
        signature = agent.key.sign(b"cortex.step.v1\n" + text.encode())
        step = {**unsigned, "signature": {
            "key_id": agent.key_id, "signature": base64.b64encode(signature).decode()}}
        answer = s.ask("POST", "/api/v1/steps", body={"steps": [step]})
        check(answer.status == 200, answer.body)
        check(there(s.home) == set(SECRETS), there(s.home))
        listed = json.loads(s.command("sensitive", "--json"))["records"][0]
        check(listed["signed"] and listed["masked"] == 0 and listed["count"] == len(SECRETS), listed)


# --- OTLP ------------------------------------------------------------------------------------------

@test
def spans_and_logs_in_both_encodings():
    with Receiver(*MASK) as r:
        span = Span(1, prompt=TEXT, card=4111111111111111)
        for body, type, kind, more in (
                (proto(span), None, "traces", {}),
                (document(Span(2, name=SECRETS["email"], prompt=TEXT)), JSON, "traces", {}),
                (gzip.compress(proto(Log(TEXT))), None, "logs", {"Content_Encoding": "gzip"}),
                (document(Log(TEXT, at=5), logs=True).replace(b"@", b"\\u0040"), JSON, "logs", {})):
            status, _, answer = r.post(body, kind, **({"type": type} if type else {}), **more)
            check(status == 200, status, answer)
            check(there(r.home) == set(), there(r.home))
        listed = marks(r.command("sensitive", "otel", "--json"))
        check(listed == {("otel", i): all_classes("masked") for i in range(4)}, listed)
        # Again, and in the other encoding: the same span.
        again = Span(3, prompt="to " + SECRETS["email"])
        for body, type in ((proto(span), None), (proto(again), None), (document(again), JSON)):
            status, _, answer = r.post(body, **({"type": type} if type else {}))
            check(status == 200 and answer in (b"", b"{}"), status, answer)
        check(len(r.entries()) == 5, r.entries())
        pointers = json.loads(r.command("sensitive", "--json", "--class", "card"))["records"][0]
        check([f["pointer"] for f in pointers["findings"]] ==
              [f"/resourceSpans/0/scopeSpans/0/spans/0/attributes/{i}/value/{kind}Value"
               for i, kind in ((2, "string"), (3, "int"))], pointers)
        r.command("lattice", "verify", "@otel/0af7651916cd43dd8448eb211c80319c")
        r.command("verify")
        r.stop()
        check(there(r.home) == set(), there(r.home))


@test
def what_protobuf_does_not_know_is_only_marked():
    with Receiver(*MASK) as r:
        status, _, _ = r.post(proto(Span(1, extra=attribute(99, "x", SECRETS["email"]))))
        check(status == 200, status)
        check(there(r.home) == {"email"}, there(r.home))
        listed = marks(r.command("sensitive", "--json"))
        check(listed == {("otel", 0): {("email", "marked")}}, listed)


# --- sessions --------------------------------------------------------------------------------------

def line(number, text):
    return json.dumps({"type": "user", "uuid": f"u{number}", "sessionId": "s1",
                       "parentUuid": f"u{number - 1}" if number else None,
                       "timestamp": f"2026-11-01T10:00:{number:02}.000Z",
                       "message": {"role": "user", "content": text}}) + "\n"


@test
def session_files_and_files_of_no_known_format():
    for options, stays in ((("--sensitive", "off"), set(SECRETS)), (MASK, set())):
        with Place() as p:
            folder = p.folder / "projects"
            folder.mkdir()
            (folder / "a.jsonl").write_text(line(0, "first") + line(1, TEXT))
            (folder / "b.jsonl").write_text("notes\n" + TEXT + "end\n")
            done = p.run("watch", "--once", "--json", *options, folder)
            check(done.returncode == 0, done.stderr)
            check(there(p.home) == stays, there(p.home))
            # It goes on where it ended, with another policy, too.
            with open(folder / "a.jsonl", "a") as file:
                file.write(line(2, TEXT))
            p.ok("watch", "--once", *options, folder)
            with open(folder / "a.jsonl", "a") as file:
                file.write(line(3, "last"))
            p.ok("watch", "--once", folder)
            check(there(p.home) == stays, there(p.home))
            sessions = [json.loads(text) for text in
                        p.ok("watch", "--list", "--json").splitlines()]
            check({(s["file"], s["generation"], s["bytes"]) for s in sessions} ==
                  {(str(path), 0, path.stat().st_size) for path in folder.iterdir()}, sessions)
            p.ok("lattice", "verify", "@session/a")
            if stays:
                continue
            listed = json.loads(p.ok("sensitive", "sessions", "--json"))["records"]
            lines = sorted({f["line"] for r in listed for f in r["findings"]})
            check(len(listed) == 3 and lines == [1, 2, 3], listed)


@test
def a_line_longer_than_a_piece_is_masked_as_one():
    with Place() as p:
        folder = p.folder / "projects"
        folder.mkdir()
        filler = "x " * (600 << 10)
        (folder / "a.jsonl").write_text(line(0, filler + " " + TEXT * 40 + filler))
        p.ok("watch", "--once", *MASK, folder)
        check(there(p.home) == set(), there(p.home))


# --- traces ----------------------------------------------------------------------------------------

def trace_with(agent, text):
    """A signed trace with a text that only the level full_traces has, and one that all have."""
    made = agent.trace("t1", level="full_traces")
    for component in made["components"]:
        if component["event_type"] == "ASPDMA_RESULT":
            component["data"]["action_rationale"] = text
    signature = agent.key.sign(json.dumps(made["components"], sort_keys=True).encode())
    return {**made, "signature": base64.urlsafe_b64encode(signature).decode().rstrip("=")}


@test
def a_trace_is_marked_with_its_level_and_its_batch_is_masked():
    agent = Agent("0123456789abcdef")
    with Server(*MASK) as s:
        s.register(agent)
        body = batch(trace_with(agent, "call " + SECRETS["phone"]),
                     correlation_metadata={"user": SECRETS["email"], "run_id": "r1"})
        answer = s.ask("POST", API + "/events", body=body)
        check(answer.status == 200 and answer.json()["accepted"] == 1, answer.body)
        check(there(s.home) == {"phone"}, there(s.home))
        listed = json.loads(s.command("sensitive", "--json"))["records"]
        by_actor = {r["actor"]: r for r in listed}
        found = by_actor[agent.name]["findings"]
        check(len(listed) == 2 and by_actor[agent.name]["signed"], listed)
        check([(f["action"], f["class"], f["level"], f["pointer"].rsplit("/", 1)[1])
               for f in found] == [("marked", "phone", "detailed", "action_rationale")], found)
        check([(f["action"], f["pointer"]) for f in by_actor["batches"]["findings"]] ==
              [("masked", "/user")], listed)
        # What is masked in a batch is masked before it waits or is logged.
        s.command("verify")


@test
def recorded_files_are_marked():
    agent = Agent("0123456789abcdef")
    with Place() as p:
        p.ok("key", "add", "--id", agent.key_id, "--public-key",
             agent.registration()["public_key_base64"])
        path = p.folder / "trace.json"
        path.write_text(json.dumps(trace_with(agent, SECRETS["card"])))
        p.ok("record", *MASK, path)
        listed = marks(p.ok("sensitive", "--json"))
        check(list(listed.values()) == [{("card", "marked")}], listed)


# --- the configuration and wrong inputs ------------------------------------------------------------

@test
def the_configuration_is_for_all_of_them():
    with Place() as p:
        (p.home / "config.toml").write_text(
            '[intake]\nsensitive = ["mask", "email=off"]\n'
            'sensitive-pattern = ["acme_:hex:16"]\n')
        p.run("lattice", "append", "-", input=json.dumps(STEP).encode())
        check(there(p.home) == {"email"}, there(p.home))
        done = p.run("lattice", "append", "--agent", "other", "--event", '{"t":"a@example.org"}',
                     env={"CORTEX_INTAKE_SENSITIVE": "mark"})
        check(done.returncode == 0, done.stderr)
        listed = marks(p.ok("sensitive", "other", "--json"))
        check(listed == {("other", 0): {("email", "marked")}}, listed)


@test
def wrong_rules_and_questions():
    with Place() as p:
        for options, text in ((("--sensitive", "maks"), b"expected off, mark or mask"),
                              (("--sensitive", "mail=mask"), b"found 'mail=mask'"),
                              (("--sensitive-pattern", "acme_"), b"expected PREFIX:CHARSET:MIN")):
            for command in (("lattice", "append", "--agent", "a"), ("watch", "--once", p.folder),
                            ("record", "-"), ("serve", "--listen", "127.0.0.1:0")):
                done = p.run(*command, *options)
                check(done.returncode == 2 and text in done.stderr, command, done.stderr)
        check(b"nothing was found" in p.run("sensitive").stdout)
        for args in (("--limit", "0"), ("--limit", "1001"), ("--class", "mail"), ("nobody",)):
            check(p.run("sensitive", *args).returncode == 2, args)


main()
