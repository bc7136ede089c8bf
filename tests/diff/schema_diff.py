#!/usr/bin/env python3
"""Differential test: JSON Schema verdicts compared with ajv's.

    schema_diff.py PROGRAM [SCHEMAS [SEED]]

Random schemas of both drafts with random instances go to PROGRAM (schema_diff.c) and to ajv
(ajv_peer.mjs); every verdict must be the same.  Skipped without $CORTEX_PEERS (scripts/
fetch-peers.sh).  Not compared, because ajv 8.17 gets it wrong: numbers that binary64 cannot hold; an
empty name that is required; `contains` together with a list of items, on an empty array;
`unevaluatedItems`; `unevaluatedProperties` inside of itself and together with `if`, `anyOf` and
`oneOf`.  Failures of ajv's own generated code are counted.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli")]
sys.dont_write_bytecode = True
from kit import BIN, arguments, finish, skip_all  # noqa: E402

NAMES = ["a", "b", "ab", "c", "xa", ""]
PATTERNS = ["^a", "b$", "^[a-c]+$", "x|c", "^.$", "^(a|b)?$", "^\\w*$", "a{1,2}", "^(?!a)", "\\d"]
STRINGS = NAMES + ["abc", "cab", "1", "\u00e9", "\U0001f432"]
NUMBERS = [0, 1, 2, 3, -1, 0.5, 1.5, 1.0, 4, 10]
# What its own code says when it breaks, as against a schema it refuses.
STUMBLES = ["is not defined", "of undefined"]
TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"]


class Maker:
    def __init__(self, seed, draft):
        self.random = random.Random(seed)
        self.draft = draft
        self.defs = []
        self.unevaluated = draft != "07" and self.random.random() < 0.4

    def value(self, depth):
        rng = self.random
        kind = rng.randrange(7 if depth > 0 else 5)
        if kind == 0:
            return rng.choice([None, True, False])
        if kind in (1, 2):
            return rng.choice(NUMBERS)
        if kind in (3, 4):
            return rng.choice(STRINGS)
        if kind == 5:
            return [self.value(depth - 1) for _ in range(rng.randrange(4))]
        return {rng.choice(NAMES): self.value(depth - 1) for _ in range(rng.randrange(4))}

    def different(self):
        """A few values, none twice."""
        values = [self.value(2) for _ in range(self.random.randrange(1, 5))]
        return list({json.dumps(v).replace(".0", ""): v for v in values}.values())

    def names(self):
        return self.random.sample(NAMES[:-1], self.random.randrange(3))

    def schema(self, depth):
        rng = self.random
        if depth == 0 or rng.random() < 0.08:
            return rng.choice([True, True, {}, False, {"type": rng.choice(TYPES)}])
        out = {}
        for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
            name, make = rng.choice(self.keywords())
            out[name] = make(depth - 1)
        if "prefixItems" in out or isinstance(out.get("items"), list):
            out.pop("contains", None)
        if rng.random() < 0.12 and self.defs:
            reference = {"$ref": rng.choice(self.defs)}
            out = reference if self.draft == "07" else {**out, **reference}
        return out

    def keywords(self):
        rng = self.random
        one = self.schema
        some = lambda d: [one(d) for _ in range(rng.randrange(1, 4))]
        named = lambda d: {rng.choice(NAMES): one(d) for _ in range(rng.randrange(3))}
        count = lambda d: rng.randrange(4)
        number = lambda d: rng.choice(NUMBERS)
        words = [
            ("type", lambda d: rng.choice(TYPES) if rng.random() < 0.6
             else rng.sample(TYPES, rng.randrange(1, 5))),
            ("enum", lambda d: self.different()),
            ("const", lambda d: self.value(2)),
            ("minimum", number), ("maximum", number), ("exclusiveMinimum", number),
            ("exclusiveMaximum", number),
            ("multipleOf", lambda d: rng.choice([1, 2, 0.5, 3])),
            ("minLength", count), ("maxLength", count), ("minItems", count), ("maxItems", count),
            ("minProperties", count), ("maxProperties", count),
            ("pattern", lambda d: rng.choice(PATTERNS)),
            ("uniqueItems", lambda d: rng.random() < 0.8),
            ("required", lambda d: self.names()),
            ("properties", named), ("properties", named),
            ("patternProperties", lambda d: {rng.choice(PATTERNS): one(d)
                                             for _ in range(rng.randrange(3))}),
            ("additionalProperties", one), ("propertyNames", one),
            ("items", one), ("contains", one),
            ("allOf", some), ("not", one),
        ]
        if not self.unevaluated:
            words += [("anyOf", some), ("oneOf", some), ("if", one), ("if", one), ("then", one),
                      ("else", one)]
        if self.draft == "07":
            return words + [
                ("items", some), ("additionalItems", one),
                ("dependencies", lambda d: {rng.choice(NAMES): self.names() if rng.random() < 0.5
                                            else one(d) for _ in range(rng.randrange(3))}),
            ]
        return words + [
            ("prefixItems", some), ("minContains", count), ("maxContains", count),
            ("dependentRequired", lambda d: {rng.choice(NAMES): self.names()
                                             for _ in range(rng.randrange(3))}),
            ("dependentSchemas", named),
        ]

    def document(self):
        where = "definitions" if self.draft == "07" else "$defs"
        defs = {name: self.schema(2) for name in ("p", "q")}
        self.defs = [f"#/{where}/{name}" for name in defs]
        root = self.schema(3)
        if isinstance(root, bool) or "$ref" in root:
            root = {"allOf": [root]}
        if self.unevaluated:
            root["unevaluatedProperties"] = self.random.choice(
                [False, {"type": self.random.choice(TYPES)}])
        return {**root, where: defs}


def questions(count, seed):
    rng = random.Random(seed)
    for number in range(count):
        maker = Maker(rng.random(), rng.choice(["07", "2020-12", "2020-12"]))
        yield {"draft": maker.draft, "schema": maker.document(),
               "instances": [maker.value(3) for _ in range(12)]}


def ask(argv, lines):
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{argv[0]}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    count, seed = [int(word) for word in arguments + ["2000", "20261122"][len(arguments):]]
    peers = os.environ.get("CORTEX_PEERS", "")
    if not os.path.isdir(os.path.join(peers, "node_modules", "ajv")) or not shutil.which("node"):
        skip_all("no ajv in CORTEX_PEERS")
    asked = list(questions(count, seed))
    lines = "".join(json.dumps(question) + "\n" for question in asked)
    ours = ask([BIN], lines)
    theirs = ask(["node", str(HERE / "ajv_peer.mjs"), "check"], lines)
    passed = failed = valid = refused = stumbled = 0
    for question, our, their in zip(asked, ours, theirs, strict=True):
        if "error" in our and "error" in their:
            refused += 1
            continue
        if any(sign in their.get("error", "") for sign in STUMBLES):
            stumbled += 1
            continue
        if our == their:
            passed += len(our["valid"])
            valid += sum(our["valid"])
            continue
        failed += 1
        if failed <= 5:
            print("differs:", json.dumps(question["schema"]))
            if "valid" in our and "valid" in their:
                for instance, a, b in zip(question["instances"], our["valid"], their["valid"]):
                    if a != b:
                        print("   ", json.dumps(instance), "ours", a, "ajv", b)
            else:
                print("    ours", our, "ajv", their)
    print(f"seed {seed}: {valid} of {passed} verdicts are valid; {refused} schemas refused by "
          f"both, {stumbled} too much for ajv")
    if failed == 0 and not passed / 20 < valid < passed * 19 / 20:
        sys.exit("nearly all verdicts are the same: this says nothing")
    finish(passed, failed)


if __name__ == "__main__":
    main()
