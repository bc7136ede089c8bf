#!/usr/bin/env python3
"""tests/vectors/sdk/steps.json: the same bytes, digests and signatures as the library's."""
import json
import sys

from sdk_kit import ROOT, check, cortex, main, skip, test
from cortex_recorder import _values

VECTORS = json.loads((ROOT / "tests/vectors/sdk/steps.json").read_text())


@test
def bytes_and_digests_are_the_librarys():
    check(len(VECTORS["cases"]) >= 18)
    for case in VECTORS["cases"]:
        step = json.loads(case["step"])
        check(_values.to_sign(step) == case["signed"].encode(), case["name"], _values.to_sign(step))
        check(_values.content_digest(step) == case["content_sha256"], case["name"])
        signed = dict(step, signature={"key_id": "k", "signature": "x"})
        check(_values.to_sign(signed) == case["signed"].encode(), case["name"])
        check(_values.content_digest(dict(signed, key="other")) == case["content_sha256"], case["name"])


@test
def signatures_are_the_same():
    try:
        key = cortex.SigningKey(bytes.fromhex(VECTORS["seed"]), "refunds", VECTORS["key_id"])
    except cortex.MissingExtra:
        skip("needs cryptography")
    check(key.public.hex() == VECTORS["public_key"])
    for case in VECTORS["cases"]:
        made = key.signature_of(case["signed"].encode())
        check(made == {"key_id": VECTORS["key_id"], "signature": case["signature"]}, case["name"])


@test
def a_recorder_signs_these_bytes():
    from cortex_recorder.testing import Memory
    try:
        key = cortex.SigningKey(bytes.fromhex(VECTORS["seed"]), "refunds", VECTORS["key_id"])
    except cortex.MissingExtra:
        skip("needs cryptography")
    cx = Memory("refunds", key=key)
    for case in VECTORS["cases"]:
        step = json.loads(case["step"])
        if step["agent"] != "refunds" or "timestamp" not in step:
            continue
        cx.clear()
        cx.record(step.get("event"), state_delta=step.get("state_delta"), timestamp=step["timestamp"],
                  _key=(cx._generation, step["key"]))
        check(cx.steps[0]["signature"]["signature"] == case["signature"], case["name"], cx.steps)
    cx.record({}, agent="clerk")  # the key is of another agent
    check("signature" not in cx.steps[-1])


if __name__ == "__main__":
    sys.exit(main())
