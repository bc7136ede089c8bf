#!/usr/bin/env python3
"""make_calls.py - writes */calls.json: calls that once were answered differently, with all roots after each.

    make_calls.py             writes the files
    make_calls.py --check     says whether the files are what would be written

The answers are those of tests/diff/memory_model.py, which knows nothing but the text of the format;
memory_diff.py compares it with the program over far more calls.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "diff")]
sys.dont_write_bytecode = True
import memory_model as model  # noqa: E402

START, TICK = 1_700_000_000 * 10**9, 1_500_000_000
FACT = {"statement": "the build is green", "subject": "build", "predicate": "is"}


def id_of(number):
    return "018bcfe568000000" + number.to_bytes(8, "big").hex()


def uri(type_name, number):
    return model.uri_text(type_name, bytes.fromhex(id_of(number)), 1)


def attest(cited, **more):
    return {"op": "attest", "intent": "intent_a", "cited": [uri("Fact", n) for n in cited],
            "outcome": "failure", **more}


def write(type_name, number, value):
    return {"op": "write", "type": type_name, "id": id_of(number), "value": value}


def compact(in_context, **more):
    return {"op": "compact", "in_context": [uri(*name) for name in in_context], "intent": "intent_a",
            "step": "step_1", **more}


CALLS = [
    ("a memory", write("Fact", 1, FACT)),
    ("delta 0: the weights move towards the profile", attest([1], reason="timeout")),
    ("delta 0 without a reason", attest([1])),
    ("delta 0, nothing that can be used is cited: skipped", attest([9], reason="timeout")),
    ("delta -1", attest([1], reason="wrong_assumption")),
    ("a duration of zero", write("Event", 2, {"kind": "deploy", "outcome": "success",
                                              "duration": 0})),
    ("a budget without members", write("Goal", 3, {"statement": "ship", "status": "active",
                                                   "budget": {}})),
    ("a time of zero", write("Fact", 4, {**FACT, "as_of": 0})),
    ("a memory that dies", {"op": "tombstone", "uri": uri("Fact", 1), "reason": "superseded"}),
    ("all in the context are dead", compact([("Fact", 1), ("Fact", 1)])),
    ("the same, and one that bears load", compact([("Fact", 1)], load_bearing=[uri("Event", 2)])),
    ("one is alive", compact([("Fact", 1), ("Event", 2)])),
    ("only the dead are cited: skipped", attest([1], reason="timeout")),
]


def made(scheme):
    ledger, steps = model.Ledger(scheme, "andrew"), []
    for number, (label, call) in enumerate(CALLS):
        step = {**call, "now_ns": START + TICK * (number + 1)}
        refused = ledger.call(step)
        if "value" in step:
            step["data_cbor"] = model.data_cbor(step["type"], step.pop("value")).hex()
        steps.append({"label": label, "step": step, "refused": refused, **ledger.roots()})
    return json.dumps({"about": "made by make_calls.py", "actor": "andrew", "calls": steps},
                      indent=1) + "\n"


def main():
    texts = {HERE / scheme / "calls.json": made(scheme) for scheme in ("cortex-1", "matrix-1")}
    if sys.argv[1:] != ["--check"]:
        for path, text in texts.items():
            path.write_text(text)
        return 0
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    print(f"{len(texts) - len(stale)} passed, {len(stale)} failed, 0 skipped")
    for path in stale:
        print(f"{path} is not what the model makes: write it again, or correct the model",
              file=sys.stderr)
    return int(bool(stale))


sys.exit(main())
