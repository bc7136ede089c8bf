#!/usr/bin/env python3
"""cortex-verify from outside: what it recognises, exit codes, streams, JSON, and that nothing is
written.

    test_verify.py [PROGRAM] [WORD..]     cortex-verify is next to PROGRAM, else to $CORTEX_BIN

Files are made from the vectors of tests/vectors/ledger; packs are written here by an encoder of its
own.  Closes with `N passed, N failed, N skipped`.
"""
import base64
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tempfile

import kit
from kit import sibling, expect, main, need_program, skip, test

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTORS = ROOT / "vectors/ledger"
BIN = sibling("cortex-verify")
MEMBERS = ["anchors", "checkpoint", "file", "index", "journal", "key", "keys", "kind", "limits",
           "manifest", "message", "namespace", "offset", "older", "reason", "scheme", "scope",
           "signed", "verdict"]


def run(*args, input=None, cwd=None, stdout=subprocess.PIPE, env=None):
    return subprocess.run([BIN, *map(str, args)], input=input, stdout=stdout,
                          stderr=subprocess.PIPE, cwd=cwd, timeout=60, env=env)


# That a file agrees with itself is enough.
SELF = "--self-consistent"


def answer(*args, code=0):
    """The one JSON object that --json gives."""
    lines = expect(run("--json", *args), code).stdout.decode().splitlines()
    assert len(lines) == 1, lines
    value = json.loads(lines[0])
    assert sorted(value) == MEMBERS, sorted(value)
    return value


def vector(name):
    return json.loads((VECTORS / name).read_text())


def cbor(value):
    """Deterministic CBOR of what a pack holds."""
    def head(major, number):
        if number < 24:
            return bytes([major << 5 | number])
        for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
            if number < 256 ** size:
                return bytes([major << 5 | extra]) + number.to_bytes(size, "big")
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(k) + cbor(value[k]) for k in sorted(value))


SCENARIO = vector("cortex-1/scenario.json")
EXPORT = vector("cortex-1/export.json")
SEAL = vector("cortex-1/entries.json")["seal"]
MATRIX = vector("matrix-1/scenario.json")
KEY = EXPORT["vkey"]
PROOF = bytes.fromhex(SCENARIO["multiproof"]["cbor"])
MANIFEST = bytes.fromhex(SCENARIO["manifest"]["cbor"])
SIGNED = bytes.fromhex(SEAL["manifest_signed_cbor"])
OVERALL = SCENARIO["manifest"]["overall_root"]
URIS = SCENARIO["multiproof"]["uris"]
ENTRY = bytes.fromhex(SCENARIO["journal_proofs"][0]["entry"])
JOURNAL = base64.b64decode(EXPORT["checkpoint"].split("\n")[2]).hex()


def root_at(size):
    return [s["journal_root"] for s in SCENARIO["steps"] if s["next_seq"] == size][0]


def pack(proof=PROOF, manifest=SIGNED, scheme="cortex-1", uris=URIS, claims=(1, 1, 1, 0), **more):
    value = {0: 1, 1: "cortex.proof", 2: scheme, 3: proof, 4: manifest,
             5: [{0: uri, 1: claim} for uri, claim in zip(uris, claims)]}
    value.update({int(k[1:]): v for k, v in more.items()})
    return cbor(value)


class Folder(kit.Folder):
    """A folder with one file of each kind."""

    def __enter__(self):
        super().__enter__()
        for name, contents in {
                "answer.proof": pack(),
                "unsigned.proof": pack(manifest=MANIFEST),
                "erased.proof": pack(bytes.fromhex(SCENARIO["erased_leaf_multiproof"]["cbor"]),
                                     uris=URIS[2:3], claims=[2]),
                "matrix.proof": pack(bytes.fromhex(MATRIX["multiproof"]["cbor"]),
                                     bytes.fromhex(MATRIX["manifest"]["cbor"]), "matrix-1"),
                "multi.cbor": PROOF,
                "edges.cbor": bytes.fromhex(SCENARIO["edges_multiproof"]["cbor"]),
                "manifest.cbor": MANIFEST,
                "signed.cbor": SIGNED,
                "inclusion.cbor": bytes.fromhex(SCENARIO["journal_proofs"][0]["cbor"]),
                "consistency.cbor": bytes.fromhex(SCENARIO["consistency"][1]["cbor"]),
                "checkpoint": EXPORT["checkpoint"].encode(),
                "entry0.tlog-proof": EXPORT["tlog_proofs"][0]["text"].encode(),
                "receipt.cose": bytes.fromhex(EXPORT["cose_inclusion"][0]["cbor"]),
                "consistency.cose": bytes.fromhex(EXPORT["cose_consistency"][0]["cbor"]),
                "entry0.cbor": ENTRY,
                "key.pub": (KEY + "\n").encode(),
                "key.hex": EXPORT["pub"].encode(),
                "key.raw": bytes.fromhex(EXPORT["pub"]),
        }.items():
            (self.path / name).write_bytes(contents)
        return self.path


# --- usage -----------------------------------------------------------------------------------------


@test
def help_and_version():
    expect(run("--help"), 0, "Usage: cortex-verify")
    expect(run("-h"), 0, "Usage: cortex-verify")
    expect(run("--version"), 0, "cortex-verify ")


@test
def usage_errors_say_what_was_expected():
    for args, said in [
            ((), "at least one FILE"),
            (("--nonsense", "x"), "no option '--nonsense'"),
            (("--root", "abc", "x"), "64 hex digits"),
            (("--root",), "needs a value"),
            (("--size", "3", "x"), "a size needs its root"),
            (("--root", JOURNAL, "--size", "-1", "x"), "expected a number"),
            (("--root", JOURNAL, "--size", "18446744073709551616", "x"), "expected a number"),
            (("--namespace", "vectors", "x"), "memories or edges"),
            (("--require", "trust", "x"), "anchored or signed"),
            (("--members", "--absent", "x"), "cannot both"),
            (("--key", "no such key", "x"), "neither a key nor a file"),
            (("--key", KEY[:-1] + "6", "x"), "neither a key nor a file"),
    ]:
        done = expect(run(*args), 2, err=said)
        assert done.stdout == b"", done.stdout
        assert b"See 'cortex-verify --help'." in done.stderr


@test
def a_second_journal_option_is_a_usage_error():
    with Folder() as f:
        expect(run("--root", JOURNAL, "--checkpoint", f / "checkpoint", f / "inclusion.cbor"), 2,
               err="by its root or by a checkpoint")


@test
def a_manifest_together_with_a_pack_is_a_usage_error():
    with Folder() as f:
        expect(run("--manifest", f / "manifest.cbor", f / "answer.proof"), 2, err="carries its")


# --- kinds -----------------------------------------------------------------------------------------


@test
def every_kind_holds_with_what_it_needs():
    with Folder() as f:
        older = ("--from-root", root_at(8), "--from-size", 8)
        newer = ("--root", JOURNAL, "--size", 19)
        for name, kind, args in [
                ("answer.proof", "pack", (SELF,)),
                ("answer.proof", "pack", ("--overall-root", OVERALL)),
                ("answer.proof", "pack", ("--key", KEY, "--require", "signed")),
                ("erased.proof", "pack", ("--members", SELF)),
                ("matrix.proof", "pack", (SELF,)),
                ("multi.cbor", "multiproof", ("--manifest", f / "manifest.cbor")),
                ("edges.cbor", "multiproof", ("--manifest", f / "signed.cbor", "--key", KEY)),
                ("manifest.cbor", "manifest", ("--overall-root", OVERALL)),
                ("signed.cbor", "manifest", ("--key", f / "key.pub")),
                ("inclusion.cbor", "inclusion", newer),
                ("inclusion.cbor", "inclusion", ("--root", JOURNAL)),
                ("inclusion.cbor", "inclusion", ("--checkpoint", f / "checkpoint", "--key", KEY)),
                ("consistency.cbor", "consistency", (*older, *newer)),
                ("consistency.cbor", "consistency", (*older, "--checkpoint", f / "checkpoint")),
                ("checkpoint", "checkpoint", ("--key", KEY)),
                ("entry0.tlog-proof", "tlog_proof", ("--key", KEY, "--entry", f / "entry0.cbor")),
                ("receipt.cose", "receipt", ("--key", KEY, "--entry", f / "entry0.cbor", *newer)),
                ("receipt.cose", "receipt", ("--key", f / "key.hex", "--entry", f / "entry0.cbor")),
                ("consistency.cose", "receipt", ("--key", KEY, *older, *newer)),
        ]:
            found = answer(*args, f / name)
            assert (found["kind"], found["verdict"], found["reason"]) == (kind, "holds", None), found
            assert found["file"] == str(f / name)
            expect(run(*args, f / name), 0, f"{f / name}: holds")


@test
def a_missing_input_makes_the_verdict_indeterminate():
    with Folder() as f:
        for name, reason, args in [
                ("multi.cbor", "NoManifest", ()),
                ("inclusion.cbor", "NoRoot", ()),
                ("consistency.cbor", "NoRoot", ("--root", JOURNAL)),
                ("checkpoint", "NoKey", ()),
                ("entry0.tlog-proof", "NoLeaf", ("--key", KEY)),
                ("entry0.tlog-proof", "NoKey", ("--entry", f / "entry0.cbor")),
                ("receipt.cose", "NoKey", ("--entry", f / "entry0.cbor")),
                ("receipt.cose", "NoLeaf", ("--key", KEY)),
                ("answer.proof", "NotAnchored", ()),
                ("answer.proof", "NotAnchored", ("--require", "anchored")),
                ("erased.proof", "NotAnchored", ("--members",)),
                ("matrix.proof", "NotAnchored", ()),
                ("manifest.cbor", "NotAnchored", ()),
                ("answer.proof", "NotSigned", ("--require", "signed")),
                ("unsigned.proof", "NotSigned", ("--key", KEY)),
                ("manifest.cbor", "NotSigned", ("--key", KEY)),
                ("entry0.cbor", "NotRecognised", ()),
                ("key.pub", "NotRecognised", ()),
        ]:
            found = answer(*args, f / name, code=3)
            assert (found["verdict"], found["reason"]) == ("indeterminate", reason), found
            expect(run(*args, f / name), 3, f"indeterminate: {reason}: ")


@test
def a_wrong_input_makes_the_verdict_broken():
    with Folder() as f:
        other = "00" + JOURNAL[2:]
        for name, reason, args in [
                ("answer.proof", "NotMember", ("--members",)),
                ("answer.proof", "NotAbsent", ("--absent",)),
                ("answer.proof", "NamespaceMismatch", ("--namespace", "edges")),
                ("answer.proof", "AnchorMismatch", ("--overall-root", other)),
                ("answer.proof", "SignatureInvalid", ("--key", "11" * 32)),
                ("edges.cbor", "NamespaceMismatch",
                 ("--namespace", "memories", "--manifest", f / "manifest.cbor")),
                ("inclusion.cbor", "RootMismatch", ("--root", other)),
                ("inclusion.cbor", "SizeMismatch", ("--root", JOURNAL, "--size", 20)),
                ("inclusion.cbor", "LeafMismatch", ("--root", JOURNAL, "--leaf", "00" * 32)),
                ("consistency.cbor", "RootMismatch",
                 ("--from-root", other, "--from-size", 8, "--root", JOURNAL)),
                ("checkpoint", "NotSigned", ("--key", "11" * 32)),
                ("checkpoint", "NotSigned", ("--key", KEY, "--cosigners", 1)),
        ]:
            found = answer(*args, f / name, code=1)
            assert (found["verdict"], found["reason"]) == ("broken", reason), found
            assert found["anchors"] == [] and found["keys"] == [] and not found["signed"], found
            expect(run(*args, f / name), 1, f"broken: {reason}")


@test
def the_verdict_vectors():
    with Folder() as f:
        for case in vector("cortex-1/proof_verdicts.json")["cases"]:
            (f / "proof").write_bytes(bytes.fromhex(case["proof"]))
            (f / "manifest").write_bytes(bytes.fromhex(case["manifest"]))
            expected = case["cortex_expects"]
            holds = expected.startswith("holds")
            found = answer("--manifest", f / "manifest", f / "proof", code=0 if holds else 1)
            assert found["reason"] == (None if holds else expected.split()[-1]), (case, found)


@test
def keys_are_named_and_counted():
    with Folder() as f:
        keys = answer(SELF, f / "answer.proof")["keys"]
        assert [k["result"] for k in keys] == ["member", "member", "member", "absent"]
        assert [k["uri"] for k in keys] == URIS
        assert answer(SELF, "--members", f / "erased.proof")["keys"][0]["result"] == \
            "withheld or erased"
        matrix = answer(SELF, f / "matrix.proof")
        assert not matrix["keys"][0]["shown"] and matrix["scheme"] == "matrix-1"
        expect(run(SELF, f / "matrix.proof"), 0, "(record not shown)")
        expect(run(SELF, f / "erased.proof"), 0, "withheld or erased  matrix://cortex/Fact/")
        found = answer("--key", KEY, f / "answer.proof")
        assert found["anchors"] == ["manifest_signature"] and found["signed"]
        assert found["manifest"]["overall_root"] == OVERALL


@test
def claims_that_are_not_proven_are_listed():
    with Folder() as f:
        said = expect(run(SELF, f / "answer.proof"), 0, "holds in itself only, resting on nothing given")
        assert b"not proven: where it comes from: anybody can" in said.stdout
        expect(run("--overall-root", OVERALL, f / "answer.proof"), 0,
               "not proven: its author is not proven")
        said = expect(run("--key", KEY, f / "answer.proof"), 0,
                      "answer.proof: holds, resting on a key given, which signed the manifest").stdout
        assert b"where it comes from" not in said
        expect(run("--root", JOURNAL, f / "inclusion.cbor"), 0, "not proven: the sizes are as")


# --- scopes ----------------------------------------------------------------------------------------


@test
def an_expired_scope_is_broken():
    """Signed by its grantor, and until 2023 only; test_ledger.py has scopes that hold."""
    cases = vector("cortex-1/scope.json")
    holding = [case for case in cases["cases"] if case["cortex_expects"] == "holds"]
    assert holding
    with Folder() as f:
        for case in holding:
            (f / "it.scope").write_bytes(bytes.fromhex(case["cbor"]))
            found = answer("--key", cases["pub"], f / "it.scope", code=1)
            assert (found["kind"], found["reason"]) == ("scope", "ScopeExpired"), found


# --- files -----------------------------------------------------------------------------------------


@test
def many_files_give_the_worst_code():
    with Folder() as f:
        (f / "bad.proof").write_bytes(pack()[:-1])
        expect(run(SELF, f / "answer.proof", f / "erased.proof"), 0)
        expect(run(f / "answer.proof", f / "erased.proof"), 3)
        expect(run(SELF, f / "answer.proof", f / "key.pub"), 3)
        done = expect(run(SELF, "--json", f / "key.pub", f / "bad.proof", f / "answer.proof"), 1)
        verdicts = [json.loads(line)["verdict"] for line in done.stdout.splitlines()]
        assert verdicts == ["indeterminate", "broken", "holds"]


@test
def an_unreadable_file_is_reported_and_the_others_are_checked():
    with Folder() as f:
        done = expect(run(SELF, f / "absent", f / "answer.proof"), 3, "holds", "absent")
        assert len(done.stderr.splitlines()) == 1
        lines = expect(run("--json", f / "absent", f / "answer.proof"), 3).stdout.splitlines()
        found = json.loads(lines[0])
        assert sorted(found) == MEMBERS and found["reason"] == "NotRead", found
        expect(run(f), 3)


@test
def standard_input_is_a_file():
    with Folder() as f:
        assert json.loads(expect(run(SELF, "--json", "-", input=pack()), 0).stdout)["file"] == "-"
        expect(run("--manifest", "-", f / "multi.cbor", input=MANIFEST), 0)
        expect(run("--manifest", "-", "-", input=MANIFEST), 2, err="only once")


@test
def names_like_options_and_names_that_act_on_a_terminal():
    with Folder() as f:
        (f / "--json").write_bytes(pack())
        expect(run(SELF, "--", "--json", cwd=f), 0, "--json: holds")
        (f / "a\x1b[2Jb").write_bytes(pack())
        assert b"\x1b" not in expect(run(SELF, "a\x1b[2Jb", cwd=f), 0).stdout
        hostile = os.fsencode(f) + b"/\xff"
        with open(hostile, "wb") as file:
            file.write(pack())
        done = subprocess.run([BIN, SELF, "--json", hostile], stdout=subprocess.PIPE, timeout=60)
        assert done.returncode == 0 and json.loads(done.stdout)["file"].endswith("/\\xff")


@test
def too_long_is_refused():
    with Folder() as f:
        with open(f / "long", "wb") as file:
            file.truncate((64 << 20) + 1)
        expect(run(f / "long"), 3, err="67108864")
        assert answer(f / "long", code=3)["verdict"] == "indeterminate"


@test
def every_byte_changed_is_seen():
    """One flip a byte of a signed pack; the library's tests flip every bit."""
    with Folder() as f:
        whole = pack()
        name = whole.index(b"\x09\x75cortex.example/andrew")  # signed_by, which nobody signs
        for start in range(0, len(whole), 64):
            paths = []
            for at in range(start, min(start + 64, len(whole))):
                if name <= at < name + 23:
                    continue
                changed = bytearray(whole)
                changed[at] ^= 1 << at % 8
                paths.append(f / f"{at}")
                paths[-1].write_bytes(changed)
            done = run("--json", "--key", EXPORT["pub"], *paths)
            for line in done.stdout.splitlines():
                found = json.loads(line)
                assert found["verdict"] != "holds", found
            for path in paths:
                path.unlink()


def told(found):
    """What an answer tells as covered: all but its limits, and a manifest's words where they are not."""
    manifest = dict(found["manifest"])
    if not manifest["covered"]:
        for name in ("actor", "journal_size", "signed_by", "snapshot"):
            manifest.pop(name)
    return {**found, "manifest": manifest, "file": "", "limits": []}


@test
def a_changed_byte_changes_only_what_is_not_covered():
    """With each kind of trust: what still holds says the same of all that it tells as covered."""
    with Folder() as f:
        whole = pack()
        for trust in (("--key", EXPORT["pub"]), ("--overall-root", OVERALL), (SELF,)):
            (f / "whole").write_bytes(whole)
            expected = told(answer(*trust, f / "whole"))
            others = []
            for start in range(0, len(whole), 64):
                paths = []
                for at in range(start, min(start + 64, len(whole))):
                    changed = bytearray(whole)
                    changed[at] ^= 1 << at % 8
                    paths.append(f / f"{at}")
                    paths[-1].write_bytes(changed)
                for line in run("--json", *trust, *paths).stdout.splitlines():
                    found = json.loads(line)
                    if found["verdict"] == "holds" and told(found) != expected:
                        others.append((found["file"], told(found)))
                for path in paths:
                    path.unlink()
            if trust != (SELF,):  # anybody can make another one that agrees with itself
                assert not others, (trust, expected, others)


@test
def cortex_verify_writes_no_file_and_needs_no_data_directory():
    with Folder() as f:
        before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in f.iterdir()}
        f.chmod(stat.S_IRUSR | stat.S_IXUSR)
        expect(run("--key", "key.pub", "answer.proof", "checkpoint", cwd=f, env={}), 0)
        f.chmod(stat.S_IRWXU)
        assert before == {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in f.iterdir()}


@test
def lost_output_is_not_success():
    if not os.path.exists("/dev/full"):
        skip("there is no /dev/full")
    with Folder() as f, open("/dev/full", "wb") as full:
        expect(run(SELF, f / "answer.proof", stdout=full), 3, err="standard output")


@test
def cortex_verify_is_small():
    program = pathlib.Path(BIN).read_bytes()
    if os.environ.get("CX_SANITIZED") or b"__asan" in program:
        skip("built with a sanitizer")
    if program[:4] != b"\x7fELF":
        skip("started through another program")
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "verify")
        if shutil.which("strip") is None:
            skip("there is no strip")
        if subprocess.run(["strip", "-o", stripped, BIN], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            shutil.copy(BIN, stripped)  # of another architecture, as it is given out
        needed = subprocess.run(["readelf", "-d", BIN], check=True, capture_output=True).stdout
        limit = 370_000 if b"(NEEDED)" in needed else 600_000  # of one file: with libsodium and the C library
        assert os.path.getsize(stripped) < limit, os.path.getsize(stripped)


need_program(BIN)
main()
