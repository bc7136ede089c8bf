#!/usr/bin/env python3
"""cortex-verify, and the same program as WebAssembly, against tests/vectors/verify, answer by answer.

    test_verify_cases.py [PROGRAM] [WORD..]

cortex-verify is next to PROGRAM.  The WebAssembly program is $CORTEX_WASM, or what scripts/wasm.sh made;
without one, or without node, its tests are skipped.  Files are also changed bit by bit, and both programs
have to say the same of each.  Closes with `N passed, N failed, N skipped`.
"""
import base64
import json
import os
import pathlib
import random
import shutil
import subprocess

import kit
from kit import check, main, need_program, sibling, skip, test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VECTORS = kit.TESTS / "vectors/verify"
VERIFY = sibling("cortex-verify")
RUNNER = kit.TESTS / "support/wasi_run.mjs"
DATA = json.loads((VECTORS / "cases.json").read_text())
CASES = DATA["cases"]
SEED = 22
# Under a sanitizer a run of the program takes ten times as long.
CHANGES = 8 if os.environ.get("CX_SANITIZE") else 30


def contents(file):
    return (VECTORS / file["at"]).read_bytes() if "at" in file else base64.b64decode(file["base64"])


FILES = {name: contents(file) for name, file in DATA["files"].items()}


class Folder(kit.Folder):
    def __enter__(self):
        super().__enter__()
        for name, data in FILES.items():
            (self.path / name).write_bytes(data)
        return self.path


def native(folder, args):
    done = subprocess.run([VERIFY, *args], cwd=folder, capture_output=True, timeout=60, env=kit.clean_env(), check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def wasm_program():
    named = os.environ.get("CORTEX_WASM")
    made = [pathlib.Path(named)] if named else sorted((ROOT / "build/wasm").glob("cortex-verify-*.wasm"))
    if not made or not made[-1].exists():
        skip("no cortex-verify for WebAssembly: scripts/wasm.sh makes it")
    if shutil.which("node") is None:
        skip("node is not there")
    return made[-1]


def node():
    """Node 20 crashes in its own WASI when V8 calls it by the fast way, which other versions may not know."""
    safe = ["node", "--no-warnings", "--no-turbo-fast-api-calls"]
    return safe if subprocess.run([*safe, "-e", "0"], capture_output=True, check=False).returncode == 0 else safe[:2]


def wasm(folder, calls):
    """The answers to all calls, by one process."""
    lines = "".join(json.dumps(args) + "\n" for args in calls)
    done = subprocess.run([*node(), RUNNER, wasm_program(), folder], input=lines.encode(), capture_output=True,
                          timeout=600, check=False)
    check(done.returncode == 0, done.returncode, done.stderr.decode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    check(len(answers) == len(calls), len(answers), len(calls))
    for args, answer in zip(calls, answers):
        check("trap" not in answer, args, answer.get("trap"))
    return [(a["exit"], base64.b64decode(a["stdout"]).decode(), base64.b64decode(a["stderr"]).decode())
            for a in answers]



def hold(case, form, got):
    """What is recorded of a case, against an answer in that form."""
    code, out, err = got
    check(code == case["exit"], case["args"], code, out, err)
    if form == "--json":
        check([json.loads(line) for line in out.splitlines()] == case["answers"], case["args"], out)
    else:
        check(out == case["text"] and err == case["error"], case["args"], out, err)


@test
def the_program_says_what_is_recorded():
    check(len(CASES) > 200 and {case["exit"] for case in CASES} == {0, 1, 2, 3}, len(CASES))
    with Folder() as folder:
        for case in CASES:
            for form in ("--json", "--details"):
                hold(case, form, native(folder, [form, *case["args"]]))


@test
def every_kind_is_among_the_cases():
    kinds = {(answer["kind"], answer["verdict"]) for case in CASES for answer in case["answers"]}
    for kind in ("pack", "multiproof", "manifest", "inclusion", "consistency", "checkpoint", "tlog_proof", "receipt",
                 "scope", "home", "erasure", "never", "evidence"):
        check({(kind, "holds"), (kind, "broken")} <= kinds, kind, sorted(kinds))


@test
def webassembly_says_what_is_recorded():
    wasm_program()
    with Folder() as folder:
        calls = [(form, case) for case in CASES for form in ("--json", "--details")]
        for (form, case), got in zip(calls, wasm(folder, [[form, *case["args"]] for form, case in calls])):
            hold(case, form, got)


def changed(data, chance):
    """A copy with one to three bits flipped, a piece cut out, or a piece twice."""
    copy = bytearray(data)
    kind = chance.randrange(5)
    if kind < 3 or len(copy) < 4:
        for _ in range(chance.randint(1, 3)):
            if copy:
                copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
    else:
        start = chance.randrange(len(copy))
        end = min(len(copy), start + chance.randint(1, 40))
        copy[start:end] = b"" if kind == 3 else copy[start:end] * 2
    return bytes(copy)


@test
def webassembly_and_the_program_agree_about_changed_files():
    wasm_program()
    chance = random.Random(SEED)
    # What holds as it is tells most when it is changed: the last file of each such case.
    good = {case["args"][-1]: case["args"][:-1] for case in CASES if case["exit"] == 0}
    check(len(good) > 12, sorted(good))
    holds = 0
    with Folder() as folder:
        calls = []
        for name, options in sorted(good.items()):
            for i in range(CHANGES):
                path = folder / f"{name}.{i}"
                path.write_bytes(changed(FILES[name], chance))
                calls.append(["--json", *options, path.name])
        for args, got in zip(calls, wasm(folder, calls)):
            expected = native(folder, args)
            check(got == expected, args, got, expected)
            holds += got[0] == 0
    # A few changes touch only what no verdict rests on, such as a signature of an unknown key.
    check(holds < len(calls) // 10, holds, len(calls))


need_program(VERIFY)
main()
