#!/usr/bin/env python3
"""make.py CORTEX - writes cases.json: files of every kind, and what cortex-verify says of them.

CORTEX is the program; cortex-verify lies beside it.  Files come from the vectors beside this folder
and, where these have none of a kind, from CORTEX in a temporary folder: those have other keys, ids and
times at each run.  tests/cli/test_verify_cases.py holds the program to what is recorded here, and every
other place that carries its checks (WebAssembly, the page for everyone) is held to the same.
"""
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LEDGER = HERE.parent / "ledger/cortex-1"
EVIDENCE = HERE.parent / "evidence"
FACT = '{"statement":"of ann@example.com","subject":"ann@example.com","predicate":"is"}'


def vector(name):
    return json.loads((LEDGER / name).read_text())


def cbor(value):
    """Deterministic CBOR of what a pack holds."""
    def head(major, number):
        if number < 24:
            return bytes([major << 5 | number])
        for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
            if number < 256 ** size:
                return bytes([major << 5 | extra]) + number.to_bytes(size, "big")
        raise ValueError(number)
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(k) + cbor(value[k]) for k in sorted(value))


SCENARIO = vector("scenario.json")
EXPORT = vector("export.json")
KEY = EXPORT["vkey"]
JOURNAL = base64.b64decode(EXPORT["checkpoint"].split("\n")[2]).hex()
OVERALL = SCENARIO["manifest"]["overall_root"]
URIS = SCENARIO["multiproof"]["uris"]
SCOPES = vector("scope.json")
ACTIONS = vector("actions.json")
OTHER_KEY = "11" * 32
OTHER_ROOT = "00" + JOURNAL[2:]


def root_at(size):
    return [s["journal_root"] for s in SCENARIO["steps"] if s["next_seq"] == size][0]


def pack(manifest, claims=(1, 1, 1, 0)):
    return cbor({0: 1, 1: "cortex.proof", 2: "cortex-1", 3: bytes.fromhex(SCENARIO["multiproof"]["cbor"]),
                 4: manifest, 5: [{0: uri, 1: claim} for uri, claim in zip(URIS, claims)]})


class Maker:
    def __init__(self, cortex, folder):
        self.cortex, self.folder, self.cases = cortex, folder, []
        self.files = {}

    def file(self, name, contents):
        self.files[name] = contents
        (self.folder / name).write_bytes(contents)

    def broken(self, name, at):
        """The file with one bit of one byte flipped."""
        contents = bytearray(self.files[name])
        contents[at] ^= 1
        self.file(f"{name}.flipped-{at}", bytes(contents))
        return f"{name}.flipped-{at}"

    def case(self, *args):
        args = [str(word) for word in args]
        verify = pathlib.Path(self.cortex).parent / "cortex-verify"
        done = {}
        for form in ("--json", "--details"):
            done[form] = subprocess.run([verify, form, *args], cwd=self.folder, capture_output=True, check=False)
        answers = [json.loads(line) for line in done["--json"].stdout.decode().splitlines()]
        self.cases.append({
            "args": args, "exit": done["--json"].returncode, "answers": answers,
            "text": done["--details"].stdout.decode(), "error": done["--details"].stderr.decode()})

    def run(self, *args, stdin=None, home=None):
        argv = [self.cortex, *map(str, args), "--home", str(home or self.folder / "home")]
        done = subprocess.run(argv, cwd=self.folder, input=stdin, capture_output=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{argv}: {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode().strip()


def from_vectors(m):
    signed = bytes.fromhex(vector("entries.json")["seal"]["manifest_signed_cbor"])
    for name, contents in {
            "answer.proof": pack(signed), "unsigned.proof": pack(bytes.fromhex(SCENARIO["manifest"]["cbor"])),
            "claims.proof": pack(signed, (1, 1, 1, 1)),
            "multi.cbor": bytes.fromhex(SCENARIO["multiproof"]["cbor"]),
            "edges.cbor": bytes.fromhex(SCENARIO["edges_multiproof"]["cbor"]),
            "manifest.cbor": bytes.fromhex(SCENARIO["manifest"]["cbor"]), "signed.cbor": signed,
            "inclusion.cbor": bytes.fromhex(SCENARIO["journal_proofs"][0]["cbor"]),
            "consistency.cbor": bytes.fromhex(SCENARIO["consistency"][1]["cbor"]),
            "checkpoint": EXPORT["checkpoint"].encode(),
            "entry0.tlog-proof": EXPORT["tlog_proofs"][0]["text"].encode(),
            "receipt.cose": bytes.fromhex(EXPORT["cose_inclusion"][0]["cbor"]),
            "consistency.cose": bytes.fromhex(EXPORT["cose_consistency"][0]["cbor"]),
            "entry0.cbor": bytes.fromhex(SCENARIO["journal_proofs"][0]["entry"]),
            "garbage": b"\xff\x00\x01 nothing of ours", "empty": b"", "prose.txt": b"Only text.\n",
    }.items():
        m.file(name, contents)
    older = ("--from-root", root_at(8), "--from-size", 8)
    newer = ("--root", JOURNAL, "--size", 19)
    key = ("--key", KEY)
    for args in [
            ("answer.proof",), ("--self-consistent", "answer.proof"), ("--overall-root", OVERALL, "answer.proof"),
            (*key, "answer.proof"), (*key, "--require", "signed", "answer.proof"),
            ("--overall-root", OTHER_ROOT, "answer.proof"), ("--key", OTHER_KEY, "answer.proof"),
            ("--members", *key, "answer.proof"), ("--absent", *key, "answer.proof"),
            ("--namespace", "edges", *key, "answer.proof"), ("--require", "signed", "answer.proof"),
            ("unsigned.proof",), (*key, "unsigned.proof"), (*key, "claims.proof"),
            ("multi.cbor",), ("--manifest", "manifest.cbor", "multi.cbor"),
            ("--manifest", "signed.cbor", *key, "multi.cbor"), ("--manifest", "signed.cbor", *key, "edges.cbor"),
            ("--namespace", "memories", "--manifest", "signed.cbor", "edges.cbor"),
            ("manifest.cbor",), ("--overall-root", OVERALL, "manifest.cbor"), (*key, "signed.cbor"),
            ("inclusion.cbor",), (*newer, "inclusion.cbor"), ("--root", OTHER_ROOT, "inclusion.cbor"),
            ("--root", JOURNAL, "--size", 20, "inclusion.cbor"), ("--checkpoint", "checkpoint", *key, "inclusion.cbor"),
            ("--root", JOURNAL, "--leaf", "00" * 32, "inclusion.cbor"),
            ("consistency.cbor",), (*older, *newer, "consistency.cbor"),
            (*older, "--checkpoint", "checkpoint", "consistency.cbor"),
            ("--from-root", OTHER_ROOT, "--from-size", 8, "--root", JOURNAL, "consistency.cbor"),
            ("checkpoint",), (*key, "checkpoint"), ("--key", OTHER_KEY, "checkpoint"),
            (*key, "--cosigners", 1, "checkpoint"),
            ("entry0.tlog-proof",), (*key, "entry0.tlog-proof"), (*key, "--entry", "entry0.cbor", "entry0.tlog-proof"),
            (*key, "--entry", "manifest.cbor", "entry0.tlog-proof"),
            ("receipt.cose",), (*key, "--entry", "entry0.cbor", *newer, "receipt.cose"),
            (*key, "--entry", "entry0.cbor", "receipt.cose"), (*key, *older, *newer, "consistency.cose"),
            ("garbage",), ("empty",), ("prose.txt",), ("entry0.cbor",), ("not-there",),
            ("--manifest", "manifest.cbor", "answer.proof"), ("--key", "no key", "answer.proof"),
            ("--root", "abc", "inclusion.cbor"), ("--manifest", "empty", "multi.cbor"),
            (*key, "answer.proof", "signed.cbor", "garbage"),
    ]:
        m.case(*args)
    for name, args in [("answer.proof", key), ("signed.cbor", key), ("checkpoint", key),
                       ("inclusion.cbor", newer), ("receipt.cose", (*key, "--entry", "entry0.cbor")),
                       ("entry0.tlog-proof", (*key, "--entry", "entry0.cbor"))]:
        size = len(m.files[name])
        for at in (0, size // 3, size // 2, size - 2):
            m.case(*args, m.broken(name, at))


def from_lists(m):
    """Cases that neighbours list with their verdicts."""
    for i, case in enumerate(vector("proof_verdicts.json")["cases"]):
        m.file(f"verdict-{i}.cbor", bytes.fromhex(case["proof"]))
        m.file(f"verdict-{i}.manifest", bytes.fromhex(case["manifest"]))
        m.case("--manifest", f"verdict-{i}.manifest", f"verdict-{i}.cbor")
    for i, case in enumerate(SCOPES["cases"]):
        if case.get("cbor"):
            m.file(f"scope-{i}.cbor", bytes.fromhex(case["cbor"]))
            m.case(f"scope-{i}.cbor")
            m.case("--key", SCOPES["pub"], f"scope-{i}.cbor")
    for i, case in enumerate(vector("compact_proofs.json")["broken"][:12]):
        m.file(f"compact-{i}.cbor", bytes.fromhex(case["cbor"]))
        m.case("--manifest", "manifest.cbor", f"compact-{i}.cbor")
    journal = ("--root", ACTIONS["journal"]["root"], "--size", ACTIONS["journal"]["size"])
    for i, case in enumerate(ACTIONS["verdicts"]):
        m.file(f"never-{i}.proof", bytes.fromhex(case["proof"]))
        m.case(f"never-{i}.proof")
        m.case(*journal, f"never-{i}.proof")
    m.case(*journal, "--never", "tool:rm", "never-0.proof")
    m.case(*journal, "--in", "run:other", "never-0.proof")


def from_evidence(m):
    key, home_key = ((EVIDENCE / name).read_text().strip() for name in ("key.txt", "home_key.txt"))
    for path in sorted(EVIDENCE.glob("*.cxe")):
        m.file(path.name, path.read_bytes())
        for args in ((), ("--key", key), ("--key", home_key), ("--key", OTHER_KEY), ("--self-consistent",),
                     ("--key", key, "--key", home_key, "--require", "signed")):
            m.case(*args, path.name)
    size = len(m.files["memory.cxe"])
    for at in (0, 100, size // 2, size - 10):
        m.case("--key", key, m.broken("memory.cxe", at))


def from_program(m):
    """Scopes that have not ended, proofs of a home root, a receipt of an erasure."""
    m.run("init")
    key = m.run("key", "new", "log.key", "--name", "log.example/ann").split("\n")[-1]
    m.run("memory", "write", "Fact", FACT, "--actor", "ann")
    m.run("memory", "write", "Fact", FACT.replace("ann", "bob"), "--actor", "bob")
    m.run("snapshot", "--reason", "for a scope", "--actor", "ann")
    m.run("snapshot", "show", "0", "-o", "scope.manifest", "--actor", "ann")
    make = ("scope", "make", "--sign", "log.key", "--to", "bob", "--actor", "ann", "--type", "Fact")
    m.run(*make, "--expires", "2999-01-01T00:00:00Z", "-o", "scope.open")
    m.run(*make, "--expires", "2020-01-01T00:00:00Z", "-o", "scope.late")
    m.run("append", "note.text", "-", "--committed", "--actor", "ann", stdin=b'{"who":"ann@example.com"}')
    m.run("checkpoint", "--all", "--sign", "log.key", "-o", "home.note")
    m.run("prove", "--in-home", "--actor", "ann", "--checkpoint", "home.note", "-o", "home.proof")
    m.run("erase", "--subject", "ann@example.com", "--reason", "asked for", "--sign", "log.key", "-o", "erasure.receipt")
    for name in ("home.note", "home.proof", "erasure.receipt", "scope.manifest", "scope.open", "scope.late"):
        m.files[name] = (m.folder / name).read_bytes()
    text = m.files["erasure.receipt"].decode()
    m.file("erasure.other-reason", text.replace("asked", "asker").encode())
    m.file("erasure.other-list", text.replace("entries 1\n", "entries 2\n").encode())
    for args in ((), ("--key", key), ("--key", OTHER_KEY), ("--key", key, "--require", "signed"), ("--self-consistent",)):
        for name in ("home.note", "home.proof", "erasure.receipt", "erasure.other-reason", "erasure.other-list",
                     "scope.open", "scope.late"):
            m.case(*args, name)
    m.case("--key", key, "--checkpoint", "home.note", "home.proof")
    m.case("--key", key, "--manifest", "scope.manifest", "scope.open")
    for name in ("home.proof", "scope.open"):
        for at in (1, len(m.files[name]) // 2, len(m.files[name]) - 2):
            m.case("--key", key, m.broken(name, at))


def main():
    cortex = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        m = Maker(cortex, pathlib.Path(folder))
        from_vectors(m)
        from_lists(m)
        from_evidence(m)
        from_program(m)
    # Evidence files are read where they are; all others are here.
    files = {name: {"at": f"../evidence/{name}"} if (EVIDENCE / name).exists() else
             {"base64": base64.b64encode(contents).decode()} for name, contents in sorted(m.files.items())}
    (HERE / "cases.json").write_text(json.dumps({"cases": m.cases, "files": files}, indent=0, sort_keys=True) + "\n")
    print(f"{len(m.cases)} cases over {len(files)} files")


main()
