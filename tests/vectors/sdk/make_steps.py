#!/usr/bin/env python3
"""make_steps.py PROGRAM [--check] - writes steps.json: steps of SDKs, what is signed of them, and the signatures.

PROGRAM is build/PRESET/bin/cortex-step-bytes, which prints the bytes that the library verifies. The
signatures are made from them by the Ed25519 of tests/http/agent.py. With --check nothing is written; it
says whether the file is what would be written.
"""
import base64
import hashlib
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "http")]
sys.dont_write_bytecode = True
from agent import Key  # noqa: E402

SEED = hashlib.sha256(b"cortex sdk vectors").digest()
KEY_ID = "refunds-vectors"
# Name, step as JSON, whether a language whose numbers are all doubles can spell it again.
STEPS = [
    ("nothing but the agent", '{"agent":"refunds"}', True),
    ("a key and a time", '{"agent":"refunds","key":"k-1","timestamp":1700000000.25}', True),
    ("event and state", '{"agent":"refunds","event":{"kind":"decision","name":"triage","text":"triage"},'
     '"key":"k-2","state_delta":{"memory":{"limit":500}},"timestamp":1700000001.5}', True),
    ("a tool call", '{"agent":"refunds","event":{"arguments":{"amount":5,"order":"A-7"},"call_id":"c-1",'
     '"gate":"refund","kind":"tool_call","tool":"refund"},"key":"k-3","timestamp":1700000002.125}', True),
    ("members in another order, and spaces", ' { "timestamp" : 1700000003.75, "key":"k-4",\t"event":'
     '{"z":1, "a":{"d":null,"c":true}}, "agent":"refunds" }', True),
    ("empty event and state are as if left out", '{"agent":"refunds","event":{},"state_delta":{}}', True),
    ("text that is not ASCII", '{"agent":"r\\u00e9fund \\u2603","event":{"text":"caf\\u00e9 \\ud83d\\ude00 '
     '\\u007f \\u2028"}}', True),
    ("UTF-8 as it is", '{"agent":"réfund ☃","event":{"text":"café 😀"}}', True),
    ("escapes", '{"agent":"a","event":{"text":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f<>&\'"}}', True),
    ("half of a surrogate pair", '{"agent":"a","event":{"text":"\\ud800"}}', True),
    ("names are sorted by code point", '{"agent":"a","event":{"\\uffee":1,"\\ud83d\\ude00":2,"z":3,"Z":4,'
     '"a":5,"\\u00e9":6,"":7,"10":8,"9":9}}', True),
    ("parents", '{"agent":"clerk","parents":["@desk","desk#4","abcdef0123",{"agent":"desk","key":"k-1"},'
     '{"key":"own"}]}', True),
    ("head and fork", '{"agent":"a","head":null,"fork":true,"fork_type":"observation","parents":["#0"]}',
     True),
    ("nesting", '{"agent":"a","event":{"a":[[[{"b":[{},[],""]}]]]}}', True),
    ("small integers and fractions", '{"agent":"a","event":{"n":[0,1,-1,0.5,-0.25,1e-7,1.5e300,123456.789,'
     '9007199254740991]}}', True),
    ("whole doubles keep their point", '{"agent":"a","event":{"n":[1.0,-0.0,1e2,1E+2,100000.0]}}', False),
    ("great integers keep their digits", '{"agent":"a","event":{"n":[9007199254740993,'
     '123456789012345678901234567890]}}', False),
    ("doubles at the ends of the forms", '{"agent":"a","event":{"n":[1e16,9999999999999998.0,1e22,1e-4,'
     '0.0001,0.00001,5e-324,1.7976931348623157e308]}}', False),
]


def cases(program):
    lines = "".join(step.strip() + "\n" for _, step, _ in STEPS)
    done = subprocess.run([program], input=lines.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    key = Key(SEED)
    for (name, step, doubles), line in zip(STEPS, done.stdout.decode().splitlines()):
        signed, content = line.split()
        yield {"name": name, "step": step, "doubles": doubles,
               "signed": bytes.fromhex(signed).decode("ascii"), "content_sha256": content,
               "signature": base64.b64encode(key.sign(bytes.fromhex(signed))).decode()}


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) != 1:
        sys.exit(__doc__)
    made = json.dumps({
        "origin": "steps written by hand in make_steps.py; `signed` and `content_sha256` by the library "
                  "(cortex-step-bytes: cx_step_read, the same bytes as cx_step_to_sign); `signature` by "
                  "the Ed25519 of tests/http/agent.py with `seed`. `doubles`: the step has no number "
                  "that changes its spelling in a language that knows only doubles.",
        "key_id": KEY_ID, "seed": SEED.hex(), "public_key": Key(SEED).public.hex(),
        "cases": list(cases(words[0]))}, indent=1) + "\n"
    file = HERE / "steps.json"
    if "--check" not in sys.argv:
        file.write_text(made)
        return 0
    same = file.read_text() == made
    print("1 passed, 0 failed, 0 skipped" if same else
          f"{file} is not what make_steps.py writes\n0 passed, 1 failed, 0 skipped")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
