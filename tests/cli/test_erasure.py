#!/usr/bin/env python3
"""Erasing many records at once, legal holds and retention: receipts, proofs that still hold, kills.

    test_erasure.py [PROGRAM] [WORD..]

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib
import signal
import subprocess
import time

import kit
from kit import BIN, main, sibling, test

VERIFY = sibling("cortex-verify")
ANN, JOANN = "ann@example.com", "joann@example.com"


class Place(kit.Place):
    def fact(self, subject, actor="andrew"):
        data = json.dumps({"statement": f"of {subject}", "subject": subject, "predicate": "is"})
        return self.ok("memory", "write", "Fact", data, "--actor", actor)

    def note(self, text, actor="andrew", kind="note.text"):
        return int(self.ok("append", kind, "-", "--committed", "--actor", actor, input=text.encode()))

    def key(self, name="org.example/erasure"):
        path = self.folder / f"{name.replace('/', '-')}.key"
        return path, self.ok("key", "new", path, "--name", name).split("\n")[-1]

    def payload(self, actor, seq):
        return [entry for entry in self.entries(actor) if entry["seq"] == int(seq)][0]

    def verifier(self, code, *args):
        done = self.run("--json", *args, program=VERIFY)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def bytes_left(self, text):
        """Files of the data directory that have this text."""
        return [path for path in pathlib.Path(self.home).rglob("*")
                if path.is_file() and text.encode() in path.read_bytes()]

    def kinds(self, actor):
        return [entry["kind"] for entry in self.entries(actor)]

    def entries(self, actor):
        return [json.loads(line) for line in self.ok("log", "--all", "--actor", actor, "--json").splitlines()]


def counts(answer):
    return {kind["kind"]: kind["count"] for kind in answer["kinds"]}


# --- erasing by subject, agent and time ---------------------------------------------------------------


@test
def a_dry_run_shows_and_changes_nothing():
    with Place() as p:
        p.fact(ANN)
        p.fact(JOANN)
        p.note(f'{{"who":"{ANN}"}}')
        before = p.ok("roots", "--json")
        shown = p.json("erase", "--subject", ANN, "--dry-run")
        assert shown["dry_run"] and counts(shown) == {"memory": 1, "note.text": 1}, shown
        assert shown["kinds"][0]["oldest"] <= shown["kinds"][0]["newest"]
        assert "would destroy 1 entries and 1 memories" in p.ok("erase", "--subject", ANN, "--dry-run")
        assert p.ok("roots", "--json") == before
        assert p.bytes_left(ANN)


@test
def a_subject_is_found_in_all_forms_of_content():
    with Place() as p:
        named = [p.note(text) for text in (
            f'{{"who":"{ANN}"}}', '{"who":"ann\\u0040example.com"}', f"plain {ANN}, and more",
            f'{{"text":"mail: <{ANN}>"}}')]
        other = [p.note(text) for text in (f'{{"who":"{JOANN}"}}', '{"who":"ann"}',
                                           f'{{"who":"{ANN}m"}}', f"x_{ANN}")]
        binary = p.note("\x00\x01" + ANN + "\x02")
        done = p.json("erase", "--subject", ANN, "--reason", "asked for")
        assert counts(done) == {"note.text": len(named) + 1}, done
        for seq in named + [binary]:
            assert p.payload("andrew", seq)["erased"], seq
        for seq in other:
            assert not p.payload("andrew", seq)["erased"], seq


@test
def a_receipt_accounts_for_all_and_is_verified_without_the_home():
    with Place() as p:
        key, vkey = p.key()
        uri = p.fact(ANN)
        seq = p.note(f'{{"who":"{ANN}"}}', actor="bot 1")
        kept = p.note("of nobody", actor="bot 1")
        done = p.json("erase", "--subject", ANN, "--reason", "asked for", "--sign", key, "-o", "receipt")
        assert (done["entries"], done["memories"], done["held"], done["left"]) == (1, 1, 0, 0), done
        text = (p.folder / "receipt").read_text()
        lines = text.splitlines()
        listed = [line for line in lines if line.startswith(f"entry {seq} note.text ")]
        assert len(listed) == 1 and listed[0].endswith(" bot 1"), text
        p.ok("export", "entry", seq, "--actor", "bot 1", "-o", "bytes")
        assert bytes.fromhex(listed[0].split()[4]) in (p.folder / "bytes").read_bytes(), "its commitment"
        ulid = uri.split("/")[-1].split("#")[0]
        assert any(line.startswith(f"memory {ulid} 1 ") for line in lines), text
        assert ANN not in text and not p.bytes_left(ANN), "the receipt does not name the person"
        assert not p.payload("bot 1", kept)["erased"]
        shown = p.verifier(0, "--key", vkey, "receipt")
        assert shown["kind"] == "erasure" and shown["signed"], shown
        assert (shown["erasure"]["entries"], shown["erasure"]["memories"]) == (1, 1), shown
        p.ok("verify", "receipt", "--key", vkey)
        assert p.verifier(3, "receipt")["reason"] == "NotAnchored"
        # Nothing of it can be changed, left out or added.
        for old, new, reason in ((" bot 1\n", " bot 2\n", "ListMismatch"), ("asked", "asker", "SignatureInvalid"),
                                 ("entries 1\n", "entries 2\n", "ListMismatch"),
                                 ("\nheld 0\n", "\n", "BadErasure"), ("left 0", "left 00", "BadErasure"),
                                 ("\n\n", "\n", "BadErasure")):
            (p.folder / "forged").write_text(text.replace(old, new))
            assert old in text and p.verifier(1, "--key", vkey, "forged")["reason"] == reason, old
        # It is made again from the ledger, byte for byte, whatever happens later.
        p.note("later", actor="bot 1")
        p.ok("erase", "--agent", "bot 1", "--reason", "all")
        p.ok("erase", "--receipt", done["request"], "--sign", key, "-o", "again")
        assert (p.folder / "again").read_text() == text
        p.expect(2, "erase", "--receipt", 99, err="NoReceipt")


@test
def proofs_and_checkpoints_of_before_still_hold():
    with Place() as p:
        key, vkey = p.key()
        for i in range(5):
            p.note(f"secret {i}", actor="bot")
        p.fact(ANN, actor="bot")
        leaf = p.payload("bot", 2)["leaf_hash"]
        p.ok("checkpoint", "--actor", "bot", "--sign", key, "-o", "before")
        p.ok("export", "tlog-proof", 2, "--actor", "bot", "--checkpoint", "before", "-o", "proof")
        home_key, home_vkey = p.key("org.example/home")
        p.ok("checkpoint", "--all", "--sign", home_key, "-o", "homenote")
        p.ok("erase", "--agent", "bot", "--reason", "closed")
        assert not p.bytes_left("secret 2")
        assert p.verifier(0, "--key", vkey, "--leaf", leaf, "proof")["verdict"] == "holds"
        p.ok("verify", "--home", p.home, "--all", "--checkpoint", "homenote", "--key", home_vkey)
        p.ok("verify", "--home", p.home, "--actor", "bot", "--checkpoint", "before", "--key", vkey)
        p.ok("checkpoint", "--actor", "bot", "--consistency-from", "before")
        p.ok("export", "tlog-proof", 2, "--actor", "bot", "--checkpoint", "before", "-o", "proof2")
        assert p.verifier(0, "--key", vkey, "--leaf", leaf, "proof2")["verdict"] == "holds"
        p.ok("tables", "rebuild")
        p.ok("verify", "--home", p.home)


@test
def time_and_agent_are_both_true():
    with Place() as p:
        p.note("one", actor="bot")
        p.note("two", actor="other")
        shown = p.json("erase", "--agent", "bot", "--before", "2000-01-01", "--dry-run")
        assert shown["entries"] == 0, shown
        shown = p.json("erase", "--agent", "bot", "--before", "2100-01-01T00:00:00Z", "--dry-run")
        assert shown["entries"] == 1, shown
        assert p.json("erase", "--before", "2100-01-01", "--reason", "old")["entries"] == 2
        again = p.json("erase", "--before", "2100-01-01", "--reason", "old")
        assert again["entries"] == 0 and "receipt" not in again, "nothing is recorded for nothing"
        assert p.kinds("erasures") == ["erasure.request", "erasure.receipt"]


@test
def wrong_uses_say_what_is_right():
    with Place() as p:
        p.note("one", actor="bot")
        p.expect(2, "erase", err="expected either SEQ or URI")
        p.expect(2, "erase", 0, "--agent", "bot", "--reason", "x", err="expected either")
        p.expect(2, "erase", 0, "--dry-run", "--reason", "x", err="--dry-run")
        p.expect(2, "erase", "--agent", "bot", err="--reason TEXT")
        p.expect(2, "erase", "--agent", "bott", "--reason", "x", err="NoActor")
        p.expect(2, "erase", "--subject", "ab", "--reason", "x", err="at least 3 bytes")
        p.expect(2, "erase", "--before", "yesterday", "--dry-run", err="an age such as 30d")
        p.expect(3, "erase", "--agent", "bot", "--reason", "x", "--sign", "nokey", err="nokey")
        assert p.json("erase", "--agent", "bot", "--dry-run")["entries"] == 1


# --- kills --------------------------------------------------------------------------------------------


def state_of(p):
    kinds = p.kinds("erasures") if "erasures" in p.ok("roots") else []
    return len(kinds), bool(kinds) and kinds[-1] == "erasure.request"


@test
def an_erasure_that_was_killed_is_completed_by_the_next_one():
    total, caught, whole = 600, 0, 0.1
    with Place() as p:
        key, vkey = p.key()
        # Killed at growing parts of the time that one takes until at least one kill left a request without a receipt.
        for part in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.55, 0.65, 0.75, 0.85, 0.95):
            delay = part * whole
            steps = "".join(json.dumps({"op": "raw", "kind": "note.text", "committed": True,
                                        "payload": f"secret {i} of {ANN}".encode().hex()}) + "\n"
                            for i in range(total))
            p.ok("apply", "-", "--actor", "bot", input=steps.encode())
            before = state_of(p)[0]
            child = subprocess.Popen([BIN, "erase", "--subject", ANN, "--reason", "asked for"],
                                     env=p.env, cwd=p.folder, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
            child.wait()
            count, opened = state_of(p)
            caught += opened
            began = time.monotonic()
            done = p.expect(0, "erase", "--subject", ANN, "--reason", "asked for again")
            whole = max(whole / 2, time.monotonic() - began)
            assert opened == (b"had been interrupted" in done.stderr), done.stderr
            assert not p.bytes_left(ANN), "request and content are gone"
            requests = [i for i, kind in enumerate(p.kinds("erasures")) if kind == "erasure.request"]
            p.ok("erase", "--receipt", requests[-1], "--sign", key, "-o", "receipt")
            if count > before or opened: # one erasure, interrupted or not, accounts for all of them
                shown = p.verifier(0, "--key", vkey, "receipt")
                assert shown["erasure"]["entries"] == total, (delay, shown)
            p.ok("verify", "--home", p.home)
            if caught:
                break
        assert caught, "no kill came between request and receipt"


# --- holds --------------------------------------------------------------------------------------------


@test
def a_hold_wins_over_every_erasure_until_it_is_released():
    with Place() as p:
        uri = p.fact(ANN)
        seq = p.note("evidence of run-77 here")
        free = p.note("nothing special")
        assert p.json("hold", "add", "--subject", ANN, "--reason", "case 1")["hold"] == 0
        assert p.json("hold", "add", "--run", "run-77", "--reason", "case 2", "--by", "judge")["hold"] == 1
        p.expect(4, "erase", uri, "--reason", "x", err="OnHold: legal hold 0 keeps it (case 1)")
        p.expect(4, "erase", seq, "--reason", "x", err="legal hold 1 keeps it (case 2)")
        done = p.json("erase", "--before", "2100-01-01", "--reason", "old", code=4)
        assert (done["entries"], done["memories"], done["held"]) == (1, 0, 2), done
        assert [(h["hold"], h["reason"], h["count"]) for h in done["holds"]] == \
            [(0, "case 1", 1), (1, "case 2", 1)], done
        assert p.payload("andrew", free)["erased"] and not p.payload("andrew", seq)["erased"]
        assert "held 2" in p.ok("erase", "--receipt", done["request"]).splitlines()
        assert "by judge" in p.ok("hold", "list")
        p.expect(2, "hold", "release", 7, "--reason", "x", err="there is no hold 7")
        p.expect(2, "hold", "release", 1, err="--reason TEXT")
        p.ok("hold", "release", 1, "--reason", "closed")
        p.expect(1, "hold", "release", 1, "--reason", "closed", err="was released before")
        assert [h["hold"] for h in p.json("hold", "list")["holds"]] == [0]
        assert [h["release_reason"] for h in p.json("hold", "list", "--all")["holds"]] == [None, "closed"]
        p.ok("erase", seq, "--reason", "x")
        p.expect(4, "erase", 0, "--actor", "holds", "--reason", "x", err="legal hold 0")
        p.ok("hold", "release", 0, "--reason", "closed")
        p.ok("erase", uri, "--reason", "x")
        p.ok("erase", 0, "--actor", "holds", "--reason", "it names a person")
        assert not p.bytes_left(ANN)
        assert "its terms were erased" in p.ok("hold", "list", "--all")
        p.ok("verify", "--home", p.home)


@test
def holds_of_agents_and_times():
    with Place() as p:
        mine, other = p.note("a", actor="bot"), p.note("a", actor="other")
        p.ok("hold", "add", "--agent", "bot", "--from", "2000-01-01", "--to", "2100-01-01", "--reason", "r")
        p.ok("hold", "add", "--to", "2000-01-01", "--reason", "long ago")
        p.expect(4, "erase", mine, "--actor", "bot", "--reason", "x", err="hold 0")
        p.ok("erase", other, "--actor", "other", "--reason", "x")
        shown = p.json("erase", "--agent", "bot", "--dry-run", code=4)
        assert shown["entries"] == 0 and shown["held"] == 1, shown
        p.expect(2, "hold", "add", "--reason", "r", err="expected what to hold")
        p.expect(2, "hold", "add", "--agent", "bot", err="--reason TEXT")
        p.expect(2, "hold", "add", "--from", "2100-01-01", "--to", "2000-01-01", "--reason", "r",
                 err="ends before it begins")
        p.expect(0, "hold", "add", "--agent", "bott", "--reason", "r", err="nothing is recorded of an agent")


# --- retention ----------------------------------------------------------------------------------------


def old_records(p, days=400):
    """A text, a chat and a memory that were recorded so many days ago; and a text of now."""
    then = time.time_ns() - days * 86400 * 10**9
    fact = {"type": "Fact", "data": {"statement": "old", "subject": ANN, "predicate": "is"}}
    steps = [{"op": "raw", "kind": "note.text", "committed": True, "payload": b"an old text".hex()},
             {"op": "raw", "kind": "chat.text", "committed": True, "payload": b"an old chat".hex()},
             {"op": "write", **fact}]
    lines = "".join(json.dumps({**step, "now_ns": then + i}) + "\n" for i, step in enumerate(steps))
    p.ok("apply", "-", "--actor", "bot", input=lines.encode())
    p.note("a new text", actor="bot")


@test
def retention_goes_by_kind_and_age():
    with Place() as p:
        old_records(p)
        p.expect(2, "retention", "apply", err="retention = [")
        p.expect(2, "retention", "apply", "--retention", "note.text", err="it has no age")
        p.expect(2, "retention", "apply", "--retention", "note.text/all 3d", err="its level is none of")
        p.expect(2, "retention", "apply", "--retention", "note.text 3 days", err="its age is neither")
        (p.home / "config.toml").write_text('retention = ["*.text 1d"]\n')
        p.expect(2, "retention", "apply", err="its kind is no kind")
        done = p.json("retention", "apply", "--retention", "note.* 401d", "--retention", "chat.text 2y")
        assert (done["entries"], done["memories"]) == (0, 0), "nothing is that old"
        (p.home / "config.toml").write_text('retention = ["chat.text never", "*  1y", "memory 1m"]\n')
        p.expect(2, "retention", "apply", err="retention '*  1y'")
        (p.home / "config.toml").write_text('retention = ["chat.text never", "* 1y"]\n')
        shown = p.json("retention", "apply", "--dry-run")
        assert counts(shown) == {"memory": 1, "note.text": 1}, shown
        p.ok("hold", "add", "--subject", ANN, "--reason", "case 1")
        key, vkey = p.key()
        done = p.json("retention", "apply", "--sign", key, "-o", "receipt", code=4)
        assert counts(done) == {"note.text": 1} and done["holds"][0]["reason"] == "case 1", done
        shown = p.verifier(0, "--key", vkey, "receipt")["erasure"]
        assert shown["selected"] == "retention chat.text never, * 1y" and shown["held"] == 1, shown
        assert not p.bytes_left("an old text") and p.bytes_left("an old chat") and p.bytes_left("a new text")
        p.expect(4, "retention", "apply", err="")
        p.ok("hold", "release", 0, "--reason", "closed")
        assert p.json("retention", "apply")["memories"] == 1
        assert p.json("erase", "--subject", ANN, "--dry-run")["memories"] == 0
        p.ok("verify", "--home", p.home)


@test
def a_server_applies_retention_on_a_schedule():
    with Place() as p:
        old_records(p)
        p.expect(2, "serve", "--retention-every", 1, "--listen", "127.0.0.1:0", err="there are no rules")
        p.expect(2, "serve", "--retention", "note.text", "--listen", "127.0.0.1:0", err="it has no age")
        (p.home / "config.toml").write_text('retention = ["note.text 1y"]\n[serve]\nretention-every = 1\n')
        with subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--otlp", "off"], env=p.env,
                              cwd=p.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
            try:
                end = time.monotonic() + 60
                while p.bytes_left("an old text") and time.monotonic() < end:
                    time.sleep(0.1)
                # An erasure by another process goes through the server.
                done = p.json("erase", "--agent", "bot", "--before", "30d", "--reason", "asked for")
                # Nor does what is searched keep it, while the server runs.
                while p.bytes_left("an old chat") and time.monotonic() < end:
                    time.sleep(0.1)
                left_while_it_runs = p.bytes_left("an old chat")
            finally:
                server.send_signal(signal.SIGTERM)
            said = server.stderr.read().decode()
        assert counts(done) == {"memory": 1, "chat.text": 1}, done
        assert "retention destroyed 1 entries and 0 memories" in said, said
        assert not left_while_it_runs, left_while_it_runs
        assert not p.bytes_left("an old chat") and p.bytes_left("a new text")
        assert p.kinds("erasures") == ["erasure.request", "erasure.receipt"] * 2
        p.ok("verify", "--home", p.home)


main()
