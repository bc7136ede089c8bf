#!/usr/bin/env python3
"""Signed traces from outside: recording files, verifying, finding, chains, keys, branches.

    test_traces.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

The answers themselves are judged by cortex-vectors; here it is the commands that are tried, over the
same vectors.  Closes with `N passed, N failed, N skipped`.
"""
import base64
import datetime
import hashlib
import json
import os
import pathlib
import sqlite3
import subprocess

import kit
from kit import BIN, check, main, skip, test

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTORS = ROOT / "vectors/trace"
ENV = {k: v for k, v in os.environ.items()
       if k not in ("CORTEX_HOME", "CORTEX_ACTOR", "XDG_DATA_HOME", "LOGNAME", "USER")}
CASES = json.loads((VECTORS / "index.json").read_text())["cases"]
TRUST = VECTORS / "trust.json"
ALPHA, ALPHA_KEY = "976dbe5047633d39", "agent-976dbe504763"
BRANCH = f"@agent/{ALPHA}"
TWO = VECTORS / "batches/ingest-two-a-0.json"


def cases(op):
    return [c for c in CASES if c["op"] == op]


class Place(kit.Place):
    """One that knows the vectors' keys."""

    def __init__(self, init=True, keys=True):
        super().__init__(init)
        self.keys = keys

    def __enter__(self):
        super().__enter__()
        if self.init and self.keys:
            self.ok("key", "add", TRUST)
        return self

    def file(self, name, contents):
        path = self.folder / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    def sql(self, query):
        db = sqlite3.connect(f"file:{self.home}/cirislens.db?mode=ro", uri=True)
        rows = db.execute(query).fetchall()
        db.close()
        return rows


def traces_of_two():
    """The two traces of a batch as lines, and their level, which is the batch's."""
    batch = json.loads(TWO.read_text())
    return [json.dumps(e["trace"], ensure_ascii=False) for e in batch["events"]], \
        batch.get("trace_level") or batch["events"][0].get("trace_level")


# --- signing traces of our own (RFC 8032) -------------------------------------------------------------

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def point_add(a, b):
    x = (a[1] - a[0]) * (b[1] - b[0]) % P
    y = (a[1] + a[0]) * (b[1] + b[0]) % P
    t, z = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = y - x, z - t, z + t, y + x
    return e * f % P, g * h % P, f * g % P, e * h % P


def base_point():
    y = 4 * pow(5, P - 2, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    x = P - x if x & 1 else x
    return x, y, 1, x * y % P


def times_base(number):
    total, step = (0, 1, 1, 0), base_point()
    while number:
        total = point_add(total, step) if number & 1 else total
        step, number = point_add(step, step), number >> 1
    inverse = pow(total[2], P - 2, P)
    x, y = total[0] * inverse % P, total[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


class Signer:
    """A test key, as tests/vectors/trace/README.md derives them."""

    def __init__(self, name):
        digest = hashlib.sha512(hashlib.sha256(f"cortex test key {name}".encode()).digest()).digest()
        self.scalar = int.from_bytes(digest[:32], "little") & (1 << 254) - 8 | 1 << 254
        self.prefix, self.public = digest[32:], times_base(self.scalar)
        fingerprint = hashlib.sha256(self.public).hexdigest()
        self.key_id, self.agent = "agent-" + fingerprint[:12], fingerprint[:16]

    def sign(self, message):
        def number(*parts):
            return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % Q

        r = number(self.prefix, message)
        point = times_base(r)
        s = (r + number(point, self.public, message) * self.scalar) % Q
        return base64.urlsafe_b64encode(point + s.to_bytes(32, "little")).decode()

    def trace(self, trace_id, at, csdma=0.9, seq=None, hash=None, k_eff=2.0):
        """A detailed one in form B."""
        stamp = at.isoformat()
        parts = [("observation", "THOUGHT_START", {"thought_depth": 1}),
                 ("context", "SNAPSHOT_AND_CONTEXT", {"cognitive_state": "WORK"}),
                 ("rationale", "DMA_RESULTS",
                  {"csdma": {"plausibility_score": csdma},
                   "dsdma": {"domain_alignment": 0.8, "domain": "support"},
                   "idma": {"k_eff": k_eff, "correlation_risk": 0.0, "fragility_flag": k_eff < 2,
                            "sources_identified": ["a", "b"]}}),
                 ("rationale", "ASPDMA_RESULT", {"selected_action": "speak"}),
                 ("conscience", "CONSCIENCE_RESULT",
                  {"conscience_passed": True, "action_was_overridden": False,
                   "epistemic_data": {"entropy_level": 0.1, "coherence_level": 0.9}}),
                 ("action", "ACTION_RESULT",
                  {"execution_success": True, "action_executed": "speak",
                   "audit_sequence_number": seq, "audit_entry_hash": hash})]
        components = [{"component_type": a, "event_type": b, "timestamp": stamp, "data": d}
                      for a, b, d in parts]
        return json.dumps({"trace_id": trace_id, "agent_id_hash": self.agent, "components": components,
                           "trace_level": "detailed", "completed_at": stamp,
                           "signature_key_id": self.key_id,
                           "signature": self.sign(json.dumps(components, sort_keys=True).encode())})


def chain_of(signer, start, count, seconds=60):
    """Traces with a chain of spec 1.0 from number 1."""
    lines, before = [], ""
    for i in range(count):
        at = start + datetime.timedelta(seconds=i * seconds)
        before = hashlib.sha256(f"{before}speaktrue{at.isoformat()}".encode()).hexdigest()
        lines.append(signer.trace(f"t{i + 1}", at, 0.9 - 0.001 * (i % 7), i + 1, before))
    return lines


def days_ago(days):
    now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=1000)
    return now - datetime.timedelta(days=days)


def same(expected, got):
    """Every member of `expected` is in `got`; floats within 1e-9 relative."""
    if isinstance(expected, dict):
        return all(k in got and same(v, got[k]) for k, v in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(got) and all(map(same, expected, got))
    if isinstance(expected, float):
        return abs(expected - got) <= 1e-9 * max(abs(expected), 1)
    return expected == got


# --- verify, canon, lower ----------------------------------------------------------------------------


@test
def verify_answers_the_vectors():
    exits = {"holds": 0, "broken": 1, "indeterminate": 3}
    with Place(init=False) as p:
        for case in cases("verify"):
            words = ["trace", "verify", "--trust", VECTORS / case["trust"], "--at",
                     case["received_at"]]
            if case.get("batch_level"):
                words += ["--level", case["batch_level"]]
            if case.get("forms"):
                words += ["--forms", ",".join(case["forms"])]
            got = p.json(*words, VECTORS / case["file"], code=exits[case["expect"]["verdict"]])
            assert same(case["expect"], got), (case["id"], case["expect"], got)


@test
def verify_says_why_in_text():
    with Place() as p:
        case = next(c for c in cases("verify") if c["id"] == "agent-not-bound")
        path = VECTORS / case["file"]
        words = ["--trust", TRUST, "--at", case["received_at"], "--level", case["batch_level"]]
        p.expect(1, "trace", "verify", path, *words, out="key_agent_mismatch")
        # The keys of the home are the same ones.
        p.expect(1, "trace", "verify", path, "--level", case["batch_level"],
                 out="key_agent_mismatch")
        p.expect(1, "trace", "verify", "-", "--level", case["batch_level"],
                 input=path.read_bytes(), out="broken")
        p.file("none.json", '{"format":"cortex-trust-1","keys":[]}')
        p.expect(3, "trace", "verify", path, "--trust", "none.json", out="key_unknown")
        p.expect(1, "trace", "verify", "-", input=b"nonsense", out="malformed_json")


@test
def verify_reports_usage_errors():
    with Place(init=False) as p:
        path = VECTORS / "traces/form-A-detailed1.json"
        p.expect(2, "trace", "verify", path, "--trust", TRUST, "--forms", "Z", err="--forms")
        p.expect(2, "trace", "verify", path, "--trust", TRUST, "--at", "noon", err="--at")
        p.expect(2, "trace", "verify", path, "--trust", TRUST, "--level", "all")
        p.expect(2, "trace", "verify")
        p.expect(3, "trace", "verify", path, "--trust", "absent", err="absent")
        p.expect(3, "trace", "verify", "absent", "--trust", TRUST, err="absent")
        p.expect(3, "trace", "verify", path, "--trust", p.file("t", "{}"), err="BadTrust")
        p.expect(3, "trace", "verify", path, err="NoHome")


@test
def canon_writes_what_was_signed():
    with Place(init=False) as p:
        seen = set()
        for case in cases("verify"):
            expected = case["expect"]
            if expected["verdict"] != "holds":
                continue
            words = ["trace", "canon", VECTORS / case["file"], "--form", expected["form"],
                     "--level", case.get("batch_level") or "generic"]
            if expected["numbers"] == "python":
                words += ["--numbers", "python"]
            digests = {hashlib.sha256(p.run(*words).stdout).hexdigest()}
            if expected["form"] == "E":
                words[words.index("E")] = "E1"
                digests.add(hashlib.sha256(p.run(*words).stdout).hexdigest())
            assert expected["canonical_sha256"] in digests, case["id"]
            seen.add(expected["form"])
        assert seen == set("ABCDEFGH"), seen


@test
def canon_of_the_worked_example():
    trace = ('{"trace_id":"t","agent_id_hash":"h","task_id":"k","trace_level":"generic",'
             '"trace_schema_version":"2.7.9","signature":"x","signature_key_id":"y","components":'
             '[{"component_type":"action","event_type":"ACTION_RESULT",'
             '"timestamp":"2026-01-01T00:00:00Z","data":{"x":0.50,"y":null}}]}')
    digests = {"A": "211ebdc0841cbd585008991a0f50b9836e1d4c836ae2f559c80cd654237bbcf8  64",
               "B": "e54c4916e67bc706cc1ef97a17c240f1508b7a13d1edae58886e181f20d19eb1  130",
               "E": "2f9c628420f59e0f8f3876896e1a8ed781ad3990af1f14ab00b56c4733c5ec58  149",
               "H": "0f017d5ac8f65542828e2544056e4d2c67b1fd50ee55f1ad59e87d01dad3e47b  310"}
    with Place(init=False) as p:
        for form, line in digests.items():
            said = p.ok("trace", "canon", "-", "--form", form, "--sha256", input=trace.encode())
            assert said.split()[0] == line.split()[0], (form, said)
            length = len(p.run("trace", "canon", "-", "--form", form, input=trace.encode()).stdout)
            assert int(said.split()[1]) == length
        python = p.run("trace", "canon", "-", "--numbers", "python", input=trace.encode()).stdout
        assert b'{"x": 0.5, "y": null}' in python
        p.expect(2, "trace", "canon", "-", "--form", "H", "--numbers", "python",
                 input=trace.encode(), err="--numbers")
        done = p.expect(3, "trace", "canon", "-", input=b"{}", err="missing_field")
        assert done.stdout == b""


@test
def lower_answers_the_vectors():
    with Place(init=False) as p:
        for case in cases("lower"):
            words = ["trace", "lower", VECTORS / case["file"], "--level", case["batch_level"]]
            view = json.loads(p.ok(*words, "--to", case["to"]))
            assert sorted(view["derived"]["removed"]) == sorted(case["expect"]["removed"])
            assert view["trace_level"] == case["to"] and "signature" not in view
            assert view["derived"]["from_level"] == case["batch_level"]
            p.file("view", json.dumps({**view, "signature": "", "signature_key_id": ""}))
            # In two steps the same is left; and nothing can be raised again.
            half = p.file("half", p.ok(*words, "--to", "detailed"))
            if case["to"] == "generic":
                assert json.loads(p.ok("trace", "lower", half, "--to", "generic")) == view
            p.expect(2, "trace", "lower", half, "--to", "full_traces", err="Raising")
        p.expect(2, "trace", "lower", VECTORS / case["file"], err="--to LEVEL")


@test
def lower_names_the_form_that_verified():
    with Place(init=False) as p:
        case = next(c for c in cases("verify") if c["id"] == "form-H-detailed1")
        words = ["trace", "lower", VECTORS / case["file"], "--level", case["batch_level"], "--to",
                 "generic"]
        assert json.loads(p.ok(*words))["derived"]["canonical_form"] is None
        derived = json.loads(p.ok(*words, "--trust", TRUST, "--at", case["received_at"]))["derived"]
        assert derived["canonical_form"] == "H"
        assert derived["canonical_sha256"] == case["expect"]["canonical_sha256"]
        p.expect(3, *words, "--trust", p.file("t", '{"format":"cortex-trust-1","keys":[]}'),
                 err="key_unknown")


# --- record ------------------------------------------------------------------------------------------


@test
def record_answers_the_vectors():
    for case in cases("ingest"):
        if any("make" in s for s in case["steps"]):
            continue
        with Place() as p:
            policy = case.get("policy") or {}
            words = ["record"]
            if policy.get("unknown_key") == "keep_unverified":
                words += ["--unknown-key", "keep"]
            for step in case["steps"]:
                expected = step["expect"]
                if expected["http"] != 200:
                    p.expect(1, *words, VECTORS / step["body"], out="rejected")
                    continue
                code = 0 if expected["rejected"] == 0 else 1
                got = p.json(*words, VECTORS / step["body"], code=code)
                del expected["http"]
                for result in got["results"]:
                    result.setdefault("reason", None)
                assert same(expected, got), (case["id"], expected, got)


@test
def record_detects_the_format_of_a_file():
    lines, level = traces_of_two()
    pretty = json.dumps(json.loads(lines[0]), indent=2, ensure_ascii=False)
    batch = TWO.read_text()
    one_line = json.dumps(json.loads(batch), ensure_ascii=False)
    kinds = {"a batch": [batch, json.dumps(json.loads(batch), indent=1), one_line + "\n"],
             "one trace": [lines[0], lines[0] + "\n", "\n  " + pretty + "\n"],
             "JSON Lines": ["\n".join(lines), "\n\n".join(lines) + "\n", one_line + "\n" + lines[0],
                            "broken {\n" + lines[0]],
             "nothing in it": ["", " \n\n"]}
    for kind, texts in kinds.items():
        for text in texts:
            with Place() as p:
                done = p.run("record", p.file("f", text), "--level", level)
                said = done.stdout.decode().splitlines()
                assert said[0].endswith(f"f: {kind}"), (kind, text[:40], said)
                stored = sum(line.startswith("  stored") for line in said)
                expected = {"a batch": 2, "one trace": 1, "nothing in it": 0}.get(kind)
                assert expected is None or stored == expected, (kind, said)
                assert done.returncode == (1 if "broken" in text else 0), (said, done.stderr)
                # From a pipe the same.
                again = p.run("record", "-", "--level", level, input=text.encode())
                assert again.returncode == done.returncode
                assert b"stored" not in again.stdout.splitlines()[-1]


@test
def one_malformed_line_does_not_reject_the_others():
    lines, level = traces_of_two()
    nan = lines[0].replace('"round_number": 1', '"round_number": NaN')
    assert nan != lines[0]
    text = "\n".join([lines[0], "{\"trace_id\": \"cut off", nan, "[]", "\udcff", lines[1]])
    with Place() as p:
        path = p.file("f", text.encode(errors="surrogateescape"))
        answer = p.json("record", path, "--level", level, code=1)
        assert [r["status"] for r in answer["results"]] == ["stored"] + ["rejected"] * 4 + ["stored"]
        assert [r.get("reason") for r in answer["results"]][1:4] == [
            "malformed_json", "number_not_finite", "field_type"]
        assert [r["index"] for r in answer["results"]] == list(range(6))
        assert (answer["received"], answer["accepted"], answer["status"]) == (6, 2, "partial")
        said = p.expect(1, "record", path, "--level", level).stdout.decode()
        assert said.splitlines()[-1] == "6 traces: 2 duplicate, 4 rejected"
        # Also where the first line is the spoilt one.
        p.file("g", "{\"trace_id\": \"cut off\n" + lines[0])
        assert p.json("record", "g", "--level", level, code=1)["accepted"] == 1


@test
def record_takes_many_lines_and_files():
    lines, level = traces_of_two()
    with Place() as p:
        many = p.file("many", "\n".join(lines * 400))
        said = p.ok("record", many, TWO, "--level", level).splitlines()
        assert said[-1] == "802 traces: 2 stored, 800 duplicate", said[-1]
        done = p.expect(0, "record", many, TWO, "--level", level, "--json")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [a["received"] for a in answers] == [800, 2]
        assert all(r["status"] == "duplicate" for a in answers for r in a["results"])
        assert p.sql("SELECT count(*) FROM covenant_traces") == [(2,)]


@test
def a_file_too_long_is_refused_and_the_next_one_taken():
    lines, level = traces_of_two()
    empty = json.dumps({"events": [], "batch_timestamp": "2026-01-12T00:00:00Z",
                        "consent_timestamp": "2026-01-11T00:00:00Z"})
    with Place() as p:
        p.file("limit", empty + " " * (8388608 - len(empty)))
        p.file("over", empty[:-1] + ',"correlation_metadata":{"x":"' + "x" * 8388609 + '"}}')
        p.ok("record", "limit")
        p.expect(1, "record", "over", out="limit_exceeded")
        long_line = '{"trace_id":"' + "x" * (9 << 20) + '"}'
        p.file("long", lines[0] + "\n" + long_line + "\n" + lines[1] + "\n")
        answer = p.json("record", "long", "--level", level, code=1)
        assert [r["status"] for r in answer["results"]] == ["stored", "rejected", "stored"]
        assert answer["results"][1]["reason"] == "limit_exceeded"
        done = p.expect(3, "record", "absent", TWO, err="absent")
        assert "2 duplicate" in done.stdout.decode()


@test
def a_pipe_is_recorded_as_it_comes():
    lines, level = traces_of_two()
    with Place() as p:
        feeder = subprocess.Popen([BIN, "record", "-", "--level", level], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, env=p.env, cwd=p.folder)
        feeder.stdin.write(lines[0].encode() + b"\n")
        feeder.stdin.flush()
        assert feeder.stdout.readline().endswith(b": JSON Lines\n")
        assert feeder.stdout.readline().startswith(b"  stored ")
        feeder.stdin.write(lines[1].encode())
        feeder.stdin.close()
        assert feeder.stdout.read().splitlines()[-1] == b"2 traces: 2 stored"
        assert feeder.wait(timeout=60) == 0


@test
def policies_keep_and_strip():
    lines, level = traces_of_two()
    with Place(keys=False) as p:
        path = p.file("f", lines[0])
        p.expect(1, "record", path, "--level", level, out="key_unknown")
        p.expect(0, "record", path, "--level", level, "--unknown-key", "keep", out="unverified")
        assert p.json("trace", "query")["count"] == 0
        assert p.json("trace", "query", "--verified", "false")["count"] == 1
        assert p.json("tables", "status")["index"]["unverified"] == 1
        # Judged again when its key is registered.
        p.ok("key", "add", TRUST)
        assert p.json("trace", "query")["count"] == 1
        assert p.json("tables", "status")["index"]["unverified"] == 0
    with Place() as p:
        path = p.file("f", lines[0])
        p.expect(1, "record", path, "--level", "generic", out="level_violation")
        p.expect(0, "record", path, "--level", "generic", "--level-policy", "strip",
                 out="fields left out")
        shown = p.json("trace", "show", json.loads(lines[0])["trace_id"])
        assert "signature" not in shown["trace"] and shown["level"] == "generic"


# --- finding -----------------------------------------------------------------------------------------


@test
def query_filters_and_pages():
    with Place() as p:
        p.ok("record", TWO)
        everything = p.json("trace", "query")
        assert everything["count"] == 2 and everything["next_cursor"] is None
        newest = everything["traces"][0]
        for words, count in ((["--agent", ALPHA], 2), (["--agent", "nobody"], 0),
                             (["--task-id", newest["task_id"]], 1),
                             (["--selected-action", "action.task_complete"], 2),
                             (["--from", newest["timestamp"]], 1), (["--to", newest["timestamp"]], 1),
                             (["--verified", "false"], 0), (["--verified", "any"], 2),
                             (["--overridden", "false"], 2), (["--overridden", "true"], 0),
                             (["--min-plausibility", "0.95"], 0), (["--max-plausibility", "0.9"], 2),
                             (["--fragility-flag", "true"], 2), (["--cognitive-state", "WORK"], 2),
                             (["--trace-type", "VERIFY_IDENTITY"], 0)):
            assert p.json("trace", "query", *words)["count"] == count, words
        first = p.json("trace", "query", "--limit", "1")
        second = p.json("trace", "query", "--limit", "1", "--cursor", first["next_cursor"])
        assert first["traces"] + second["traces"] == everything["traces"]
        assert second["next_cursor"] is None
        p.ok("trace", "query", "--limit", "1")
        assert first["next_cursor"] in p.ok("trace", "query", "--limit", "1")
        p.expect(2, "trace", "query", "--cursor", "AAAA", err="--cursor")
        p.expect(2, "trace", "query", "--limit", "0", err="--limit")
        p.expect(2, "trace", "query", "--min-plausibility", "high", err="--min-plausibility")
        p.expect(2, "trace", "query", "--from", "yesterday", err="--from")


@test
def query_finds_words():
    trace = json.loads(traces_of_two()[0][0])
    with Place() as p:
        p.ok("record", TWO)
        rationale = next(c["data"]["action_rationale"] for c in trace["components"]
                         if c["event_type"] == "ASPDMA_RESULT")
        word = max(rationale.replace(".", " ").replace(",", " ").split(), key=len)
        found = p.json("trace", "query", "--text", word)
        assert trace["trace_id"] in [t["trace_id"] for t in found["traces"]], word
        assert p.json("trace", "query", "--text", "xyzzyplugh")["count"] == 0


@test
def show_gives_bytes_views_and_proof():
    lines, level = traces_of_two()
    trace_id = json.loads(lines[0])["trace_id"]
    with Place() as p:
        odd = json.dumps(json.loads(lines[0]), indent=3, sort_keys=True)
        p.ok("record", p.file("f", odd), "--level", level)
        raw = p.run("trace", "show", trace_id, "--raw").stdout
        assert raw == odd.encode()
        p.expect(0, "trace", "verify", "-", "--level", level, input=raw, out="holds")
        shown = p.json("trace", "show", trace_id)
        assert shown["verdict"]["verdict"] == "holds" and shown["entry"]["actor"] == ALPHA
        assert shown["trace"] == json.loads(lines[0]) and shown["conflicts"] == []
        low = p.json("trace", "show", trace_id, "--level", "generic")
        assert "signature" not in low["trace"] and low["trace"]["derived"]["from_level"] == level
        p.expect(1, "trace", "show", trace_id, "--level", "generic", "--raw", err="LevelTooLow")
        text = p.ok("trace", "show", trace_id)
        assert f"trace {trace_id}: holds" in text and "journal" in text
        p.expect(2, "trace", "show", "absent", err="NoTrace")
        p.expect(2, "trace", "show", trace_id, "--agent", "nobody", err="NoTrace")
        # Proven by what the ledger's own commands say.
        roots = p.json("roots", "--actor", ALPHA)
        assert p.json("trace", "show", trace_id)["proof"]["journal_root"] == \
            roots["actors"][0]["journal_root"]


@test
def the_same_id_of_two_agents_needs_a_name():
    with Place() as p:
        p.ok("record", VECTORS / "batches/ingest-same-id-other-agent-b-0.json")
        rows = p.json("trace", "query")["traces"]
        ids = [r["trace_id"] for r in rows]
        twice = next(i for i in ids if ids.count(i) == 2)
        p.expect(1, "trace", "show", twice, err="Ambiguous")
        for row in rows:
            shown = p.json("trace", "show", twice, "--agent", row["agent_id_hash"])
            assert shown["verdict"]["agent_id_hash"] == row["agent_id_hash"]


# --- chains, sources, wakeups ------------------------------------------------------------------------


@test
def chain_answers_the_vectors():
    exits = {"holds": 0, "broken": 1, "indeterminate": 3}
    with Place(init=False) as p:
        for case in cases("chain"):
            expected = case["expect"]
            path = p.file("chain", json.dumps({k: v for k, v in case.items() if k != "expect"}))
            code = exits[expected["verdict"]]
            got = p.json("trace", "chain", "--file", path, code=code)
            assert same(expected, got), (case["id"], expected, got)
            p.expect(code, "trace", "chain", "--file", path, out=expected["verdict"])
            # A bare array, with options in place of members.
            p.file("bare", json.dumps(case["entries"]))
            words = ["--profile", case["profile"]]
            if case.get("genesis"):
                words += ["--genesis", case["genesis"]]
            assert same(expected, p.json("trace", "chain", "--file", "bare", *words, code=code))


@test
def chain_of_a_home():
    with Place() as p:
        p.ok("record", TWO)
        got = p.json("trace", "chain", ALPHA, code=3)
        assert got["agent"] == ALPHA and got["entries"] == 2 and got["verdict"] == "indeterminate"
        p.expect(3, "trace", "chain", ALPHA, out="indeterminate")
        spec = p.json("trace", "chain", ALPHA, "--profile", "spec-1.0", code=1)
        assert spec["profile"] == "spec-1.0" and spec["findings"]
        p.expect(1, "trace", "chain", ALPHA, "--profile", "spec-1.0", out="mismatch")
        p.expect(3, "trace", "chain", "nobody", out="indeterminate")
        p.expect(2, "trace", "chain", err="--file")
        p.expect(2, "trace", "chain", ALPHA, "--file", "x", err="--file")
        p.expect(2, "trace", "chain", ALPHA, "--genesis", "x", err="--genesis")
        p.expect(3, "trace", "chain", "--file", p.file("f", '{"entries":[{"seq":"1"}]}'),
                 err="entry 0")
        p.expect(3, "trace", "chain", "--file", p.file("g", "17"), err="expected an array")


@test
def idma_of_a_home_and_of_a_file():
    lines, level = traces_of_two()
    with Place() as p:
        p.ok("record", TWO)
        got = p.json("trace", "idma", ALPHA)
        assert got["count"] == 2
        for row in got["traces"]:
            assert row["check"] == "consistent" and row["flag"] == "consistent"
            assert abs(row["k_eff"] - row["computed"]) <= 0.01
        p.expect(0, "trace", "idma", ALPHA, out="consistent")
        one = p.json("trace", "idma", "--file", p.file("f", lines[0]))
        assert one["traces"][0]["phase_computed"] == "emerging"
        said = p.json("trace", "idma", "--file", "f", "--established")
        assert said["traces"][0]["phase_computed"] == "fragile"
        trace = json.loads(lines[0])
        for component in trace["components"]:
            if component["event_type"] == "DMA_RESULTS":
                component["data"]["idma"].update(k_eff=2.0, correlation_risk=0.2,
                                                 fragility_flag=True)
        wrong = p.json("trace", "idma", "--file", p.file("g", json.dumps(trace)))["traces"][0]
        assert wrong["check"] == "mismatch" and wrong["flag"] == "mismatch", wrong
        p.expect(0, "trace", "idma", "nobody", out="no verified traces")
        p.expect(2, "trace", "idma")
        p.expect(2, "trace", "idma", ALPHA, "--limit", "5000", err="--limit")
        p.expect(3, "trace", "idma", "--file", p.file("h", "{}"), err="missing_field")


@test
def wakeups_are_reported_as_complete_or_incomplete():
    with Place() as p:
        done = p.expect(1, "trace", "wakeup", ALPHA, out="no trace of a wakeup")
        stages = {}
        for case in cases("verify"):
            if case["file"].startswith("traces/stage-"):
                stages[case["expect"]["trace_type"]] = case
        assert len(stages) == 5
        for count, (name, case) in enumerate(sorted(stages.items())):
            if count:
                p.expect(1, "trace", "wakeup", ALPHA, out=f"missing    {name}")
            p.ok("record", VECTORS / case["file"], "--level", case["batch_level"])
            got = p.json("trace", "wakeup", ALPHA, code=0 if count == 4 else 1)
            assert got["complete"] == (count == 4) and len(got["wakeups"]) == 1
            states = got["wakeups"][0]["types"]
            assert states[name]["state"] == "there" and states[name]["trace_id"]
            assert sum(v["state"] == "missing" for v in states.values()) == 4 - count
        p.expect(0, "trace", "wakeup", ALPHA, out=": complete")
        p.expect(1, "trace", "wakeup", "nobody", out="no trace of a wakeup")


# --- keys --------------------------------------------------------------------------------------------


@test
def keys_are_added_listed_revoked():
    public = next(k["public_key"] for k in json.loads(TRUST.read_text())["keys"]
                  if k["key_id"] == ALPHA_KEY)
    other = base64.b64encode(bytes(range(32))).decode()
    with Place(keys=False) as p:
        p.expect(0, "key", "list", out="no keys")
        add = ["key", "add", "--id", ALPHA_KEY, "--public-key"]
        assert p.json(*add, public, "--agent", ALPHA, "--not-before", "2025-12-01T00:00:00Z",
                      "--description", "first") == {"keys": [{"key_id": ALPHA_KEY, "status": "added"}]}
        assert p.ok(*add, public).startswith("there")
        padded = public.replace("-", "+").replace("_", "/") + "="
        assert p.ok(*add, padded).startswith("there")
        p.expect(1, *add, other, out="conflict", err="cannot be reused")
        key = p.json("key", "show", ALPHA_KEY)
        assert key["agents"] == [ALPHA] and key["added_by"] == "andrew" and key["revoked_at"] is None
        assert key["description"] == "first" and key["added_at"]
        # What is listed can be given to verify, and added elsewhere.
        p.file("keys.json", p.ok("key", "list", "--json"))
        case = next(c for c in cases("verify") if c["expect"]["verdict"] == "holds" and ALPHA_KEY
                    in (VECTORS / c["file"]).read_text(errors="replace"))
        p.expect(0, "trace", "verify", VECTORS / case["file"], "--trust", "keys.json", "--level",
                 case["batch_level"])
        p.expect(2, "key", "revoke", ALPHA_KEY, err="--reason")
        p.expect(2, "key", "revoke", "nobody", "--reason", "x", err="NoKey")
        p.ok("key", "revoke", ALPHA_KEY, "--reason", "stolen")
        shown = p.json("key", "show", ALPHA_KEY)
        assert shown["revoked_at"] and shown["revoked_reason"] == "stolen"
        p.expect(0, "key", "list", out="revoked")
        p.expect(1, "record", TWO, out="key_revoked")


@test
def key_options_are_checked():
    with Place() as p:
        add = ["key", "add", "--id", "k", "--public-key"]
        p.expect(2, *add, "AAAA", err="KeyLength")
        p.expect(2, *add, "!", err="key add")
        p.expect(2, "key", "add", err="--public-key")
        p.expect(2, "key", "add", TRUST, "--id", "k", err="either FILE or --id")
        p.expect(3, "key", "add", p.file("t", "[]"), err="BadTrust")
        p.expect(3, "key", "add", "absent", err="absent")
        p.expect(2, "key", "show", "nobody", err="NoKey")
        p.expect(3, "key", "show", "./nobody", err="nobody")
        p.expect(2, *add, base64.b64encode(bytes(32)).decode(), "--chain-profile", "auto")


@test
def a_conflict_in_a_file_leaves_the_others():
    store = json.loads(TRUST.read_text())
    with Place(keys=False) as p:
        p.ok("key", "add", "--id", store["keys"][1]["key_id"], "--public-key",
             store["keys"][0]["public_key"])
        done = p.json("key", "add", TRUST, code=1)
        states = {k["key_id"]: k["status"] for k in done["keys"]}
        assert states[store["keys"][1]["key_id"]] == "conflict"
        assert sorted(set(states.values())) == ["added", "conflict"]


@test
def a_compromised_key_breaks_what_it_signed():
    lines, level = traces_of_two()
    trace_id = json.loads(lines[0])["trace_id"]
    with Place() as p:
        p.ok("record", TWO)
        p.ok("key", "revoke", ALPHA_KEY, "--reason", "lost")
        assert p.json("trace", "query")["count"] == 2
        assert p.json("trace", "show", trace_id)["verdict"]["verdict"] == "holds"
        p.ok("key", "revoke", ALPHA_KEY, "--reason", "lost", "--compromised-since",
             "2025-12-31T00:00:00Z")
        assert p.json("trace", "query")["count"] == 0
        verdict = p.json("trace", "show", trace_id)["verdict"]
        assert (verdict["verdict"], verdict["reason"]) == ("broken", "key_revoked")
        p.expect(0, "key", "list", out="compromised")


# --- alerts ------------------------------------------------------------------------------------------


@test
def a_conflict_raises_an_alert_that_can_be_closed():
    batches = sorted((VECTORS / "batches").glob("ingest-conflict-a-*.json"))
    with Place() as p:
        p.expect(0, "alert", "list", out="no alerts")
        for path in batches:
            p.run("record", path)
        alerts = p.json("alert", "list")["alerts"]
        assert alerts and all(a["detection_mechanism"] == "trace_id_conflict" for a in alerts)
        alert = alerts[0]["alert_id"]
        p.expect(0, "alert", "list", out=alert)
        assert p.json("alert", "ack", alert) == {"alert_id": alert, "status": "acknowledged"}
        assert alert in p.ok("alert", "list")
        p.expect(2, "alert", "resolve", alert, err="--notes")
        p.ok("alert", "resolve", alert, "--notes", "a test")
        assert alert not in p.ok("alert", "list")
        assert alert in p.ok("alert", "list", "--all")
        p.expect(2, "alert", "ack", "0" * 32, err="NoAlert")
        shown = p.json("trace", "show", alerts[0]["evidence_traces"][0])
        assert len(shown["conflicts"]) >= 1


@test
def capacity_counts_recent_traces():
    alpha = Signer("alpha")
    assert alpha.agent == ALPHA and alpha.key_id == ALPHA_KEY
    with Place() as p:
        p.ok("record", p.file("old", alpha.trace("old", days_ago(40), 0.9, 0)))
        got = p.json("capacity", ALPHA)
        assert got["agent"] == ALPHA and got["n"] == 0 and got["confidence"] == "insufficient", got
        lines = chain_of(alpha, days_ago(3), 30)
        p.ok("record", p.file("f", "\n".join(lines)))
        got = p.json("capacity", ALPHA)
        assert got["n"] == 30 and got["confidence"] == "medium" and 0 < got["score"] <= 1, got
        assert got["n_eff"]["rows"] == 30
        said = p.ok("capacity", ALPHA)
        assert f"capacity of {ALPHA}: {got['score']:.3f}" in said and "I_int" in said, said
        p.expect(2, "capacity", "nobody", err="no trace of agent 'nobody'")


@test
def a_bounded_index_says_what_it_does_not_search():
    alpha = Signer("alpha")
    with Place() as p:
        lines = [alpha.trace(f"t{day}-{i}", days_ago(9 - day) + datetime.timedelta(seconds=i))
                 for day in range(9) for i in range(60)]
        p.ok("record", p.file("f", "\n".join(lines)))
        all_of_them = p.json("trace", "query", "--limit", "1000")
        check(all_of_them["count"] == 540 and all_of_them["not_searched_before"] is None, all_of_them["count"])
        check(p.json("status")["ledger"]["index"]["not_searched_before"] is None)
        check(p.run("trace", "query").stderr == b"")
        took = p.json("status")["ledger"]["index"]["bytes_used"]
        check(took > 1 << 20, took)
        for value in ("0", "1000", "x"):
            p.expect(2, "status", env={"CORTEX_DERIVED_MAX_INDEX": value}, err="max-index")
        (p.home / "config.toml").write_text('[derived]\nmax-index = "1M"\n')
        (p.home / "config.toml").chmod(0o600)
        p.ok("record", p.file("g", alpha.trace("last", days_ago(0))))
        found = p.json("trace", "query", "--limit", "1000")
        before = found["not_searched_before"]
        check(0 < found["count"] < 540 and before, found["count"], before)
        check(all(row["timestamp"] >= before for row in found["traces"]))
        index = p.json("status")["ledger"]["index"]
        check(index["max_bytes"] == 1 << 20 and index["bytes_used"] <= 1 << 20, index)
        check(index["not_searched_before"][:19] == before[:19], index, before)
        # What is not there is not silently nothing.
        gone = p.expect(0, "trace", "query", "--to", before, out="no such traces")
        check(b"dropped from the index" in gone.stderr and b"tables rebuild" in gone.stderr, gone.stderr)
        for words in (["search", "zzz"], ["histories"]):
            check(p.json(*words)["not_searched_before"] == before, words)
            check(b"dropped from the index" in p.run(*words).stderr, words)
        said = p.ok("status")
        check("is searched" in said and "tables rebuild" in said and "at most" in said, said)
        check("is searched" in p.ok("tables", "status"))
        # The ledger has all of it, and proofs do not ask the index.
        p.expect(0, "verify", "--home", p.home)
        # A rebuild keeps the bound; without one everything is back.
        p.ok("tables", "rebuild")
        again = p.json("trace", "query", "--limit", "1000")
        check(again["not_searched_before"] and again["count"] < 540, again["count"])
        (p.home / "config.toml").unlink()
        p.ok("tables", "rebuild")
        again = p.json("trace", "query", "--limit", "1000")
        check(again["count"] == 541 and again["not_searched_before"] is None, again["count"])


@test
def a_changed_trace_breaks_its_chain():
    alpha = Signer("alpha")
    with Place() as p:
        lines = chain_of(alpha, days_ago(2), 8)
        p.ok("record", p.file("f", "\n".join(reversed(lines))))
        assert p.json("trace", "chain", ALPHA)["findings"] == []
        p.expect(0, "trace", "chain", ALPHA, out="holds")
        p.expect(0, "detect", out="no alerts")
        p.ok("record", p.file("g", alpha.trace("t9", days_ago(1), 0.9, 9, "0" * 64)))
        broken = p.json("trace", "chain", ALPHA, code=1)
        assert [(f["kind"], f["seq"]) for f in broken["findings"]] == [("mismatch", 9)]
        p.expect(1, "trace", "chain", ALPHA, out="mismatch")
        before = p.json("roots")
        seen = p.json("detect", "--no-record", code=1)
        assert seen["new"] == 0 and p.json("roots") == before
        found = p.json("detect", code=1)
        assert [a["detection_mechanism"] for a in found["alerts"]] == ["hash_chain"]
        assert found["new"] == 1 and found["alerts"][0]["agent_id_hash"] == ALPHA
        # Once a day, however often it is looked for.
        assert p.json("detect", code=1)["new"] == 0
        p.expect(1, "detect", out="critical: hash_chain")
        assert p.json("alert", "list")["count"] == 1
        p.ok("alert", "resolve", found["alerts"][0]["alert_id"], "--notes", "seen")
        assert p.json("alert", "list")["count"] == 0
        assert p.json("tables", "rebuild")["index"]["alerts"] == 1
        assert p.json("alert", "list", "--all")["alerts"][0]["resolved"] is True


# --- as a lattice ------------------------------------------------------------------------------------


@test
def recorded_traces_are_a_lattice():
    with Place() as p:
        p.ok("record", TWO)
        verified = p.json("lattice", "verify", BRANCH)
        assert verified["ok"] and verified["nodes"] == 12, verified
        p.expect(0, "lattice", "verify", "@", "--content-ids", "--require-seals", out="VALID")
        agent = BRANCH[1:]
        node = f"@{agent}"
        heads = p.ok("lattice", "heads", "@")
        assert f"{agent}#11" in heads
        state = p.json("lattice", "state", BRANCH, node)
        assert "ACTION_RESULT" in state["state"]["memory"]
        why = p.json("lattice", "why", BRANCH, node, "ACTION_RESULT")
        assert len(why["changes"]) == 2
        p.expect(0, "lattice", "show", BRANCH, node, out=agent)
        p.expect(0, "lattice", "bisect", "@", node, "/memory/ACTION_RESULT", out="true from")
        p.expect(0, "lattice", "compare", "@", agent, agent, out="none")
        p.expect(0, "lattice", "heatmap", "@")
        assert "ACTION_RESULT" in p.ok("lattice", "render", "@", "--ascii")
        anchor = p.file("anchor", p.ok("lattice", "anchor", "@"))
        p.expect(0, "lattice", "verify", "@", "--head", f"@{anchor}", "--home", p.home)
        p.expect(2, "lattice", "verify", "@agent/nobody", err="NoBranch")
        p.expect(3, "lattice", "verify", "@", "--home", "absent", err="NoHome")
    with Place() as p:
        p.expect(2, "lattice", "heads", "@", err="NoBranch")


# --- the index ---------------------------------------------------------------------------------------


@test
def the_index_catches_up_and_can_be_rebuilt():
    columns = "trace_id, agent_id_hash, trace_level, signature_verified, primary_row, ledger_seq, id"
    with Place() as p:
        assert p.json("tables", "status")["index"]["traces"] == 0
        p.ok("record", TWO)
        status = p.json("tables", "status")
        assert status["index"]["engine"] == "sqlite" and status["index"]["lag"] == 0
        assert status["index"]["traces"] == 2
        rows = p.sql(f"SELECT {columns} FROM covenant_traces ORDER BY id")
        for name in ("cirislens.db", "cirislens.db-wal", "cirislens.db-shm"):
            (p.home / name).unlink(missing_ok=True)
        assert p.json("tables", "status")["index"] is None
        p.expect(0, "tables", "status", out="index   none")
        done = p.json("tables", "rebuild")
        assert done["index"] == {"alerts": 0, "engine": "sqlite", "traces": 2, "unverified": 0}
        assert p.sql(f"SELECT {columns} FROM covenant_traces ORDER BY id") == rows
        # What is asked makes the index, too.
        (p.home / "cirislens.db").unlink()
        assert p.json("trace", "query")["count"] == 2
        assert p.sql(f"SELECT {columns} FROM covenant_traces ORDER BY id") == rows
        assert p.json("tables", "rebuild", "--verify-only")["index"] is None


@test
def two_processes_do_not_index_a_trace_twice():
    alpha = Signer("alpha")
    columns = "id, trace_id, idma_phase_computed, primary_row, ledger_seq"
    rows = f"SELECT {columns} FROM covenant_traces ORDER BY id"
    with Place() as p:
        # The phase depends on how many traces came before: fed again, the first would change.
        start = days_ago(2)
        lines = [alpha.trace(f"t{i}", start + datetime.timedelta(seconds=i), k_eff=1.5)
                 for i in range(40)]
        p.ok("record", p.file("f", "\n".join(lines)))
        wanted = p.sql(rows)
        assert [r[2] for r in wanted] == ["emerging"] * 30 + ["fragile"] * 10
        for _ in range(3):
            for path in p.home.glob("cirislens.db*"):
                path.unlink()
            askers = [subprocess.Popen([BIN, "trace", "query", "--json"], env=p.env,
                                       stdout=subprocess.PIPE) for _ in range(4)]
            for asker in askers:
                said = asker.communicate(timeout=60)[0]
                assert asker.returncode == 0 and json.loads(said)["count"] == 40
            assert p.sql(rows) == wanted


@test
def the_index_can_be_chosen():
    with Place() as p:
        p.ok("record", TWO)
        other = p.folder / "other.db"
        p.expect(2, "tables", "status", "--db", other, err="other.db")
        assert p.json("trace", "query", "--db", other)["count"] == 2
        assert p.json("tables", "status", "--db", other)["index"]["traces"] == 2
        assert p.json("tables", "rebuild", "--db", other)["index"]["traces"] == 2
        p.expect(2, "trace", "query", "--db", p.folder / "no/such/folder.db", err="folder.db")
        # That of another home is not taken over by the way.
        assert p.json("tables", "status", "--db", other)["index"]["ours"] is True
        p.ok("init", "second", "--segment-size", "256K")
        for words in (["trace", "query"], ["trace", "wakeup", "x"]):
            p.expect(3, *words, "--home", "second", "--db", other, err="OtherHome")
        p.expect(0, "key", "add", TRUST, "--home", "second", "--db", other, err="another data directory")
        status = p.json("tables", "status", "--home", "second", "--db", other)["index"]
        assert status["ours"] is False and status["traces"] == 2 and status["lag"] > 0
        assert p.json("trace", "query", "--db", other)["count"] == 2
        p.ok("tables", "rebuild", "--home", "second", "--db", other)
        assert p.json("trace", "query", "--home", "second", "--db", other)["count"] == 0
        p.expect(2, "trace", "query", "--db", "", err="--db")


@test
def an_index_that_cannot_be_written_is_read():
    with Place() as p:
        p.ok("record", TWO)
        p.ok("append", "note.x", "text")
        for path in [p.folder, p.home, *p.home.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        stranger = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

        def ask(*words):
            return subprocess.run([BIN, *words], capture_output=True, cwd="/", timeout=60,
                                  env={**p.env, "ASAN_OPTIONS": "detect_leaks=0"}, **stranger)

        try:
            done = ask("trace", "query", "--json")
        except PermissionError:
            skip("others cannot run the program")
        finally:
            for path in [p.folder, p.home, *p.home.rglob("*")]:
                path.chmod(0o755 if path.is_dir() else 0o644)
        assert done.returncode == 0 and json.loads(done.stdout)["count"] == 2, done
        assert b"lags by 1 commits" in done.stderr, done


@test
def erased_traces_are_forgotten():
    lines, level = traces_of_two()
    first, second = (json.loads(line)["trace_id"] for line in lines)
    with Place() as p:
        p.ok("record", TWO)
        seq = p.json("trace", "show", first)["entry"]["seq"]
        p.ok("erase", seq, "--actor", ALPHA, "--reason", "asked for")
        assert [t["trace_id"] for t in p.json("trace", "query", "--verified", "any")["traces"]] \
            == [second]
        p.expect(2, "trace", "show", first)
        assert p.json("tables", "rebuild")["index"]["traces"] == 1
        p.ok("verify", "--home", p.home)
        assert p.json("lattice", "verify", BRANCH)["nodes"] == 6


@test
def all_commands_work_while_a_server_has_the_data_directory():
    lines, level = traces_of_two()
    with Place() as p:
        server = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0"], env=p.env,
                                  cwd=p.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            if b"listens" not in server.stdout.readline():
                skip("no server here: " + server.communicate(timeout=60)[1].decode().strip())
            p.ok("record", p.file("f", lines[0]), "--level", level)
            assert p.json("trace", "query")["count"] == 1
            p.expect(1, "record", "-", "--level", level, input=b"{}", out="rejected")
            p.ok("record", TWO)
            assert p.json("trace", "query")["count"] == 2
            p.expect(3, "trace", "chain", ALPHA, out="indeterminate")
            p.ok("key", "revoke", ALPHA_KEY, "--reason", "x")
            assert p.json("key", "show", ALPHA_KEY)["revoked_reason"] == "x"
            p.expect(0, "detect", out="no alerts")
            p.expect(2, "alert", "ack", "0" * 32, err="NoAlert")
            assert p.json("lattice", "verify", BRANCH)["nodes"] == 12
            assert p.json("tables", "status")["index"]["traces"] == 2
            p.expect(3, "tables", "rebuild", err="Locked")
        finally:
            server.terminate()
            server.communicate(timeout=60)
        assert server.returncode == 0
        p.ok("verify", "--home", p.home)


# --- all of them -------------------------------------------------------------------------------------


@test
def without_a_data_directory_no_file_is_created():
    with Place(init=False) as p:
        for words in (["record", TWO], ["trace", "query"], ["trace", "show", "x"],
                      ["trace", "chain", "x"], ["trace", "idma", "x"], ["trace", "wakeup", "x"],
                      ["key", "list"], ["key", "add", TRUST], ["detect"], ["capacity", "x"],
                      ["alert", "list"], ["alert", "ack", "x"], ["key", "show", "x"],
                      ["lattice", "heads", "@"]):
            done = p.expect(3, *words, err="NoHome")
            assert done.stdout == b""
            error = json.loads(p.run(*words, "--json").stdout)["error"]
            assert error["code"] == "NoHome", (words, error)
        assert not p.home.exists()


@test
def control_characters_of_traces_do_not_reach_the_terminal():
    evil = "\u001b[31mred\u202e"
    lines, level = traces_of_two()
    trace = {**json.loads(lines[0]), "trace_id": evil, "task_id": evil}
    with Place() as p:
        path = p.file("f", json.dumps(trace))
        p.ok("record", path, "--level", level)
        for words in (["record", path, "--level", level], ["trace", "query"], ["trace", "show", evil],
                      ["trace", "idma", ALPHA], ["trace", "verify", path, "--level", level],
                      ["trace", "chain", ALPHA], ["alert", "list"]):
            shown = p.run(*words).stdout
            assert b"\x1b" not in shown and "\u202e".encode() not in shown, words


@test
def what_traces_and_memories_say_is_found_where_it_is_said():
    with Place() as p:
        p.expect(1, "record", VECTORS / "batches/ingest-replay-b-0.json")  # one of two is stored
        hits = p.json("search", "caf\u00e9 ends", "--limit", 500)["hits"]
        assert hits and all(hit["source"] == "traces" for hit in hits), hits
        assert len({(hit["history"], hit["ref"]) for hit in hits}) == len(hits)
        for hit in hits:
            node = p.json("lattice", "show", "@" + hit["history"], hit["ref"])
            data = json.dumps(node["node"]["state_delta"]["memory"][hit["role"]], ensure_ascii=False)
            assert "caf\u00e9" in data and "caf\u00e9" in hit["snippet"], (hit, node)
        assert {hit["role"] for hit in hits} >= {"DMA_RESULTS", "ASPDMA_RESULT"}, hits
        assert p.json("histories")["histories"] == []  # the list of traces shows them
        p.expect(2, "lattice", "show", "@" + hits[0]["history"], "entry:99999.0", err="entry:99999.0")

        fact = {"subject": "refunds", "predicate": "have",
                "statement": "the caf\u00e9 limit ends at 500 EUR"}
        uri = p.ok("memory", "write", "Fact", json.dumps(fact), "--actor", "ann").split()[0]
        found = p.json("search", "caf\u00e9 limit ends")["hits"]
        assert [(hit["history"], hit["ref"], hit["kind"], hit["role"]) for hit in found] == \
            [("memory/ann", uri, "memory", "Fact")], found
        assert "500 EUR" in p.ok("memory", "get", uri, "--actor", "ann")
        shown = p.ok("search", "caf\u00e9 limit ends")
        assert f"  memory/ann {uri}" in shown and "@memory" not in shown, shown

        agent = hits[0]["history"][len("agent/"):]
        gone = {hit["ref"].split(":")[1].split(".")[0] for hit in hits if hit["history"] == f"agent/{agent}"}
        for seq in gone:
            p.ok("erase", seq, "--actor", agent, "--reason", "asked for")
        p.ok("erase", uri, "--actor", "ann", "--reason", "asked for")
        left = p.json("search", "caf\u00e9 ends", "--limit", 500)["hits"]
        assert [hit for hit in left if hit["history"] in (f"agent/{agent}", "memory/ann")] == [], left


@test
def a_full_disk_on_standard_output_is_3():
    with Place() as p:
        p.ok("record", TWO)
        with open("/dev/full", "wb") as full:
            for words in (["record", TWO], ["trace", "query"], ["trace", "chain", ALPHA],
                          ["key", "list"], ["trace", "canon", VECTORS / "traces/S-plus-L.json"],
                          ["lattice", "heads", "@"], ["tables", "status"]):
                done = subprocess.run([BIN, *map(str, words)], stdout=full, stderr=subprocess.PIPE,
                                      env=p.env, timeout=60)
                assert done.returncode == 3, (words, done)


main()
