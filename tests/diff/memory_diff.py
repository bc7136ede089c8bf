#!/usr/bin/env python3
"""Differential test: the calls of a ledger against memory_model.py, in both schemes.

    memory_diff.py CORTEX [ROUNDS [SEED]]     default 6 rounds; a longer run is `... 500 7`

First a fixed list that has every enumeration, every reason and every zero and empty value once; then
random histories.  Each step goes to `cortex apply`; refusal and all roots must be the model's, after
every step.  So that nothing passes by being quiet, every call and the named refusals must have come up.
"""
import collections
import json
import pathlib
import random
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "cli")]
sys.dont_write_bytecode = True
import memory_model as model  # noqa: E402  (next to this script)
from kit import BIN, Folder, arguments, clean_env, finish_comparison, run  # noqa: E402

START, ACTOR = 1_700_000_000 * 10**9, "andrew"
TEXTS = ["a", "b c", "é—", "x" * 90, "long " * 60, "ö" * 210, "😀" * 70]
REASONS = ["", "timeout", "factual_error", "wrong_assumption", "Factual_error", "other"]
MUST = {"EmptyInContext", "EmptyIntent", "EmptyStep", "BudgetUnreachable", "EmptyCitations",
        "TooManyCitations", "RateLimited", "AlreadyExists", "InvalidType", "EmptyData",
        "FieldMissing", "TooManyTags", "TagTooLong", "TooManyFrames", "InvalidSource",
        "FormTooLong", "DanglingReference", "InvalidArgument", "NotFound", "VersionConflict",
        "Tombstoned", "NoOp", "HeadConflict", "InvalidEdgeType", "SelfEdge", "DanglingEdge",
        "StaleVersion", "DimMismatch", "TypeMismatch", "SnapshotNotFound"}


def id_of(number):
    return "018bcfe568000000" + number.to_bytes(8, "big").hex()


class Maker:
    """Steps for one history; it looks into the model to choose what exists."""

    def __init__(self, seed, scheme):
        self.random = random.Random(seed)
        self.ledger = model.Ledger(scheme, ACTOR)
        self.now, self.ids, self.steps = START, 0, []

    def add(self, op, **members):
        self.now += members.pop("after", 1_500_000_000)
        step = {"op": op, "now_ns": self.now, **members}
        refused = self.ledger.call(step)
        self.steps.append((step, refused, self.ledger.roots()))
        return refused

    # values

    def text(self):
        return self.random.choice(TEXTS)

    def value_of(self, kind):
        rng = self.random
        if isinstance(kind, tuple):
            return rng.choice(kind)
        if isinstance(kind, list) and isinstance(kind[0], list):
            return [self.members(kind[0], 0.5) for _ in range(rng.randrange(3))]
        if isinstance(kind, list):
            return self.members(kind, 0.5)
        return {
            "text": lambda: rng.choice(["", self.text()]),
            "texts": lambda: [self.text() for _ in range(rng.randrange(3))],
            "bytes": lambda: rng.choice([b"", b"\x00", b"\xff\x01"]),
            "blobs": lambda: [rng.choice([b"", b"k"]) for _ in range(rng.randrange(3))],
            "time": lambda: rng.choice([0, -1, 1_700_000_000, 253402300799]),
            "duration": lambda: rng.choice([0, 1, -1, 1500, 10**6, 1_500_000_000, 90 * 10**9,
                                            3600 * 10**9, -3_661_500_000_000, 2**62]),
            "int": lambda: rng.choice([0, 1, -3, 2**40]),
            "f32": lambda: rng.choice([0.0, 0.5, 0.1, 0.9, 1.0]),
            "bool": lambda: rng.random() < 0.5,
        }[kind]()

    def members(self, members, some):
        """Needed members always, and not blank; of the others some."""
        made = {}
        for name, _, kind, rule in members:
            if rule == "n":
                made[name] = kind[0] if isinstance(kind, tuple) else self.text()
                if isinstance(kind, tuple) or name == "status":
                    made[name] = self.random.choice(
                        kind if isinstance(kind, tuple) else ["active", "done"])
            elif self.random.random() < some:
                made[name] = self.value_of(kind)
        return made

    def content(self, type_name):
        value = self.members(model.TYPES[type_name], self.random.choice([0.0, 0.4, 1.0]))
        return {"value": value}

    def new_id(self):
        self.ids += 1
        return id_of(self.ids)

    def write(self, type_name, value, **more):
        return self.add("write", type=type_name, id=self.new_id(), value=value, **more)

    def extras(self):
        rng = self.random
        made = {
            "tags": lambda: [self.text()[:20] for _ in range(rng.randrange(3))],
            "frames": lambda: [{"verb": rng.randrange(1, 11), "kind": rng.randrange(1, 9),
                                "ref": "r"} for _ in range(rng.randrange(3))],
            "importance": lambda: rng.randrange(11), "visibility": lambda: rng.randrange(1, 4),
            "confidence": lambda: rng.choice([0.0, 0.1, 0.5, 1.0]),
            "expires_at": lambda: rng.choice([0, -1, 1_800_000_000]),
            "created_by": lambda: rng.choice(["", "bob"]),
            "pinned": lambda: rng.random() < 0.5,
            "forms": lambda: {"short": rng.choice(["", "s"]), "medium": rng.choice(["", "m"])},
            "provenance": self.provenance,
        }
        return {name: make() for name, make in made.items() if rng.random() < 0.2}

    def provenance(self):
        rng = self.random
        made = {
            "source": lambda: rng.choice(["", "user_input", "derived", "observed", "imported"]),
            "derived_from": lambda: [self.uri() or "https://example.org"] * rng.randrange(2),
            "attestations": lambda: ["", "x"][:rng.randrange(3)],
            "signed_by": lambda: rng.choice(["", "00"]), "signed_at": lambda: rng.choice([0, 5]),
            "signature": lambda: rng.choice(["", "ff"]),
        }
        return {name: make() for name, make in made.items() if rng.random() < 0.5}

    def uri(self, current=True):
        if not self.ledger.heads:
            return None
        kept = self.random.choice(list(self.ledger.heads.values()))
        version = kept[3] if current else self.random.randrange(1, kept[3] + 2)
        return model.uri_text(model.NAMES[kept[2] - 1], kept[1], version)

    def uris(self, most):
        return [uri for uri in (self.uri(self.random.random() < 0.9)
                                for _ in range(self.random.randrange(most))) if uri]

    # one random step

    def random_step(self):
        rng = self.random
        uri, other = self.uri(rng.random() < 0.9), self.uri()
        op = rng.choice(["write"] * 4 + ["update", "update_head", "tombstone", "add_edge",
                                         "remove_edge", "embed", "compact", "attest", "attest",
                                         "raw", "redact_memory", "snapshot", "drop_snapshot"])
        after = rng.choice([0, 1, 999_999_999, 1_500_000_000, 86400 * 10**9 * 40])
        if op == "write" or uri is None:
            type_name = rng.choice(model.NAMES)
            self.add("write", type=type_name, id=self.new_id(), after=after,
                     **self.content(type_name), **self.extras())
            return
        id_ = model.uri_parts(uri)[1].hex()
        type_name = model.uri_parts(uri)[0]
        by = {"by": rng.choice(["", "bob"])} if rng.random() < 0.5 else {}
        why = {"reason": rng.choice(REASONS)} if rng.random() < 0.7 else {}
        made = {
            "update": lambda: {"uri": uri, **self.content(type_name), **{
                n: v for n, v in self.extras().items()
                if n not in ("tags", "frames", "importance", "visibility", "pinned")}},
            "update_head": lambda: {"uri": uri, **by, **{
                n: v for n, v in self.extras().items()
                if n in ("tags", "frames", "importance", "visibility")}},
            "tombstone": lambda: {"uri": uri, **by, **why},
            "redact_memory": lambda: {"uri": uri, **by, **why},
            "add_edge": lambda: {"src": id_, "type": rng.randrange(1, 16), **by,
                                 "dst": model.uri_parts(other)[1].hex(),
                                 "weight": rng.choice([0, -0.0, 0.5, 0.1, -2]),
                                 "data": rng.choice(["", "00"])},
            "remove_edge": self.removal(by, why),
            "embed": lambda: {"id": id_, "source_version": rng.choice([1, 1, 2]), "model": "m",
                              "vector": [rng.choice([0, 0.1, -1, 0.25]) for _ in range(3)]},
            "compact": lambda: {"in_context": self.uris(5), "load_bearing": self.uris(3),
                                "budget": rng.choice([0, 1, 50, 4000]), "intent": "i",
                                "step": rng.choice(["s", "t"])},
            "attest": lambda: {"intent": rng.choice("ij"), "cited": self.uris(4) + rng.choice(
                [[], [], ["nonsense"]]), "outcome": rng.choice(["success", "failure"]),
                **by, **why},
            "raw": lambda: {"payload": rng.choice(["", "00", "ff" * 40]),
                            "kind": rng.choice(["raw", "a.b"]), **by},
            "snapshot": lambda: {"trigger": rng.choice(["", "explicit"])},
            "drop_snapshot": lambda: {"seq": rng.randrange(4), **by},
        }[op]()
        self.add(op, after=after, **made)

    def removal(self, by, why):
        edges = list(self.ledger.edges)
        if not edges:
            key = bytes(16) + b"\x01" + bytes(16)
        else:
            key = self.random.choice(edges)
        return lambda: {"src": key[:16].hex(), "type": key[16], "dst": key[17:].hex(), **by, **why}


# --- the fixed list ------------------------------------------------------------------------------


def every_value(m):
    """Each type with all members empty or zero, with each member alone, and each word."""
    for type_name, members in model.TYPES.items():
        bare = m.members(members, 0.0)
        m.write(type_name, bare)
        for name, _, kind, rule in members:
            words = kind if isinstance(kind, tuple) else ()
            empty = {"text": "", "texts": [], "bytes": b"", "blobs": [], "time": 0, "duration": 0,
                     "int": 0, "f32": 0.0, "bool": False}
            if isinstance(kind, list):
                zero = [] if isinstance(kind[0], list) else {}
            else:
                zero = "" if words else empty[kind]
            m.write(type_name, {**bare, name: zero})
            for word in words:
                m.write(type_name, {**bare, name: word})
            if kind in ("text", "bytes", "blobs", "texts"):
                m.write(type_name, {**bare, name: {"text": "v", "bytes": b"v", "blobs": [b""],
                                                   "texts": [""]}[kind]})
            if isinstance(kind, list) and not isinstance(kind[0], list):
                for inner, _, inner_kind, _ in kind:
                    m.write(type_name, {**bare, name: {inner: empty[inner_kind]}})
    m.write("Fact", {"statement": " ", "subject": "s", "predicate": "p"})
    m.write("Belief", {"statement": "s", "stance": "think"})
    m.write("Pattern", {"statement": "s", "strength": 1.5})


FACT = {"statement": "s", "subject": "s", "predicate": "p"}


def every_refusal(m):
    m.write("Fact", FACT, importance=11)  # before the actor has an entry: the roots of nothing
    m.ids = 0
    m.write("Fact", FACT)
    first = m.uri()
    m.add("write", type="Fact", id=id_of(m.ids), value=FACT)
    m.add("write", type=10, id=m.new_id(), value=FACT)
    m.write("Fact", {}, empty_data=True)
    for more in ({"tags": ["t"] * 17}, {"tags": ["t" * 65]}, {"tags": [""]}, {"importance": 11},
                 {"visibility": 4}, {"confidence": 1.5}, {"confidence": -0.5},
                 {"frames": [{"verb": 1, "kind": 1, "ref": "r"}] * 17},
                 {"frames": [{"verb": 11, "kind": 1, "ref": "r"}]},
                 {"frames": [{"verb": 1, "kind": 1, "ref": ""}]},
                 {"forms": {"short": "x" * 201, "medium": ""}}, {"provenance": {"source": "x"}},
                 {"provenance": {"derived_from": [model.uri_text("Fact", b"\x01" * 16, 1)]}}):
        m.write("Fact", FACT, **more)
    m.add("update", uri=first[:-1] + "2", value=FACT)
    m.add("update", uri=first.replace("Fact", "Goal"), value={"statement": "s", "status": "s"})
    m.add("update_head", uri=first)
    m.add("update_head", uri=first[:-1] + "2", importance=0)
    m.add("update_head", uri=first, importance=0, if_head="00" * 32)
    m.add("embed", id=id_of(1), source_version=1, model="m", vector=[1])
    m.add("embed", id=id_of(1), source_version=2, model="m", vector=[1])
    m.add("embed", id=id_of(1), source_version=1, model="m", vector=[1, 1])
    m.add("add_edge", src=id_of(1), type=1, dst=id_of(1))
    m.add("add_edge", src=id_of(1), type=1, dst=id_of(9999))
    m.add("add_edge", src=id_of(1), type=15, dst=id_of(2))
    for more in ({"in_context": []}, {"intent": ""}, {"step": ""}, {"budget": 1}):
        m.add("compact", **{"in_context": [first], "intent": "i", "step": "s", **more})
    m.add("attest", intent="", cited=[first], outcome="success")
    m.add("attest", intent="i", cited=[], outcome="success")
    m.add("attest", intent="i", cited=[first] * 257, outcome="success")
    for _ in range(7):
        m.add("attest", intent="i", cited=[first], outcome="failure", after=0)


def every_outcome(m):
    m.write("Fact", FACT)
    a = m.uri()
    m.write("Fact", FACT, importance=10)
    dead = model.uri_text("Fact", bytes.fromhex(id_of(m.ids)), 1)
    for importance in (0, 10):
        m.add("update_head", uri=a, importance=importance)
        for outcome in ("success", "failure"):
            for reason in REASONS:
                for cited in ([a], [a, a, dead], ["nonsense"]):
                    m.add("attest", intent="i", cited=cited, outcome=outcome, reason=reason)
    m.add("tombstone", uri=dead)
    m.add("attest", intent="i", cited=[dead], outcome="failure", reason="timeout")
    for more in ({}, {"load_bearing": [a]}, {"in_context": [dead, dead]}, {"in_context": [dead, a]},
                 {"in_context": [a], "load_bearing": [dead]}):
        m.add("compact", **{"in_context": [dead], "intent": "i", "step": "s", **more})
    m.add("redact_memory", uri=a)
    m.add("attest", intent="i", cited=[a], outcome="success")


def every_edge(m):
    for _ in range(2):
        m.write("Fact", FACT)
    ends = {"src": id_of(1), "dst": id_of(2)}
    for type_ in range(1, 15):
        for weight in (0, -0.0, 0.5):
            m.add("add_edge", type=type_, weight=weight, **ends)
            m.add("remove_edge", type=type_, reason=["", "r"][type_ % 2], **ends)
            m.add("remove_edge", type=type_, **ends)


# --- comparison ----------------------------------------------------------------------------------


def base64_of(data):
    import base64
    return {"base64": base64.b64encode(data).decode()}


def as_json(value):
    if isinstance(value, bytes):
        return base64_of(value)
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    return value


def as_line(step, number, type_name):
    """What `cortex apply` reads: data as CBOR of the model, or as JSON, in turn."""
    step = dict(step)
    if "value" in step:
        value = step.pop("value")
        if step.pop("empty_data", False):
            step["data_cbor"] = "a0"
        elif number % 2 and type_name in model.TYPES:
            step["data"] = as_json(value)
        else:
            step["data_cbor"] = model.data_cbor(
                type_name if type_name in model.TYPES else "Fact", value).hex()
    return json.dumps(step)


def type_of(step):
    return step.get("type") or model.uri_parts(step["uri"])[0] if "value" in step else None


def compare(steps, scheme, label):
    """The first step that differs, as text; None when all agree."""
    with Folder() as folder:
        home = str(pathlib.Path(folder) / "home")
        file = pathlib.Path(folder) / "steps.jsonl"
        file.write_text("".join(as_line(step, i, type_of(step)) + "\n"
                                for i, (step, _, _) in enumerate(steps)))
        made = run(BIN, "init", "--home", home, "--scheme", scheme, "--no-repo",
                   env=clean_env())
        assert made.returncode == 0, made.stderr
        done = run(BIN, "apply", "--home", home, "--actor", ACTOR, "--json", str(file),
                   env=clean_env())
        lines = [json.loads(line) for line in done.stdout.splitlines()]
    for i, (step, refused, roots) in enumerate(steps):
        if i >= len(lines):
            return f"{label}, {scheme}, step {i}: no answer to {step}: {done.stderr[-500:]}"
        want = {"refused": refused, **roots}
        got = {name: lines[i].get(name) for name in want}
        if want != got:
            differ = {name: (want[name], got[name]) for name in want if want[name] != got[name]}
            return f"{label}, {scheme}, step {i}: {step}\n  expected, found: {differ}"
    return None


def main():
    rounds, seed = [int(word) for word in arguments + ["6", "20261128"][len(arguments):]]
    seen = collections.Counter()
    failed, compared = [], 0
    fixed = [every_value, every_refusal, every_outcome, every_edge]
    for number in range(len(fixed) + rounds):
        for scheme in ("cortex-1", "matrix-1"):
            m = Maker(seed + number, scheme)
            if number < len(fixed):
                label = fixed[number].__name__
                fixed[number](m)
            else:
                label = f"seed {seed + number}"
                for _ in range(60):
                    m.random_step()
            for step, refused, _ in m.steps:
                seen[step["op"]] += refused is None
                seen[refused] += 1
            compared += len(m.steps)
            why = compare(m.steps, scheme, label)
            if why:
                failed.append(why)
                print("FAIL " + why[:1500])
    calls = {name[3:] for name in dir(model.Ledger) if name.startswith("do_")}
    quiet = {name for name in calls | MUST if seen[name] == 0}
    if quiet:
        print(f"FAIL never came up: {sorted(quiet)}")
    print(f"{compared} steps, {sum(seen[n] for n in MUST)} of them refused", file=sys.stderr)
    finish_comparison(not failed and not quiet)


main()
