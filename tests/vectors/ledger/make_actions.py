#!/usr/bin/env python3
"""make_actions.py - writes cortex-1/actions.json: names, sets and proofs of absence (actions.md), from a
small model of its own that knows nothing but the text of the format.

    make_actions.py             writes the file
    make_actions.py --check     says whether the file is what would be written
"""
import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
EMPTY = bytes(32)
RUN, OWNER = "run/run_20260101_000000_00000000000000000000000000000001", "run:00112233445566ff"


def sha(data):
    return hashlib.sha256(data).digest()


def bit(digest, i):
    return digest[i // 8] >> (7 - i % 8) & 1


def number(kind, n):
    for size, code in ((1, 24), (2, 25), (4, 26), (8, 27)):
        if n < 24:
            return bytes([kind << 5 | n])
        if n < 1 << 8 * size:
            return bytes([kind << 5 | code]) + n.to_bytes(size, "big")
    raise ValueError(n)


def cbor(value):
    """Deterministic CBOR of what is needed here."""
    if isinstance(value, int):
        return number(0, value)
    if isinstance(value, bytes):
        return number(2, len(value)) + value
    if isinstance(value, str):
        return number(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return number(4, len(value)) + b"".join(cbor(item) for item in value)
    return number(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in sorted(value.items()))


def root_of(pairs, depth=0):
    """Of a sparse Merkle tree (ledger.md §7, cortex-1)."""
    if not pairs:
        return EMPTY
    if len(pairs) == 1:
        return sha(b"\0" + pairs[0][0] + pairs[0][1])
    sides = [[pair for pair in pairs if bit(pair[0], depth) == side] for side in (0, 1)]
    return sha(b"\1" + root_of(sides[0], depth + 1) + root_of(sides[1], depth + 1))


# --- names (§2) ---------------------------------------------------------------------------------------

def lowered(text):
    return "".join(c.lower() if "A" <= c <= "Z" else c for c in text)


def normal(name):
    """The normal form, or None."""
    kind, colon, value = name.partition(":")
    if kind not in ("tool", "host", "file", "read", "write") or not colon or not value:
        return None
    if len(name.encode()) > 4096 or any(ord(c) < 32 or ord(c) == 127 for c in value):
        return None
    if kind == "tool":
        return kind + ":" + lowered(value)
    if kind == "host":
        if len(value) > 1 and value[0] == "[" and value[-1] == "]":
            value = value[1:-1]
        value = value.rstrip(".")
        good = value and all(c.isascii() and (c.isalnum() or c in "-._:") or ord(c) >= 128 for c in value)
        return kind + ":" + lowered(value) if good and value.count(":") != 1 else None
    value = value.removeprefix("file://").replace("\\", "/")
    parts = []
    for part in value.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
            if len(parts) > 64:
                return None
    if not parts:
        return None
    return kind + ":" + ("/" if value[0] == "/" else "") + lowered("/".join(parts))


def stands_for(item):
    """All names that an item of a list puts into the set."""
    kind, _, value = item.partition(":")
    if kind in ("tool", "host"):
        return {item}
    parts = value.lstrip("/").split("/")
    ends = {value} | {"/".join(parts[i:]) for i in range(len(parts))}
    return {k + ":" + end for end in ends for k in ("file", kind)}


def key(name):
    return sha(b"cortex.action.v1" + name.encode())


# --- sets and proofs (§3, §5) -------------------------------------------------------------------------

def tree_of(items):
    names = set().union(*[stands_for(name) for name, _, _ in items]) if items else set()
    return [(key(name), key(name)) for name in sorted(names)]


def list_bytes(items):
    return cbor({0: 1, 1: [{0: name, 1: count, **({2: places} if places else {})}
                           for name, count, places in items]})


def set_bytes(items, subject=RUN, actor=OWNER, upto=1, calls=0, opaque=0, relative=0, unread=0):
    pairs = tree_of(items)
    value = {0: 1, 1: subject, 2: actor, 3: upto, 4: len(pairs), 5: root_of(pairs)}
    for number, count in ((6, calls), (7, opaque), (8, relative), (9, unread)):
        if count:
            value[number] = count
    return cbor(value)


def path_of(pairs, wanted, depth=0):
    """(siblings from the root down, the other leaf's key or None)."""
    if len(pairs) < 2:
        return [], pairs[0][0] if pairs else None
    left = [pair for pair in pairs if not bit(pair[0], depth)]
    right = [pair for pair in pairs if bit(pair[0], depth)]
    mine, others = (right, left) if bit(wanted, depth) else (left, right)
    siblings, other = path_of(mine, wanted, depth + 1)
    return [root_of(others, depth + 1), *siblings], other


def entry_bytes(seq, kind, payload):
    return cbor({1: seq, 2: kind, 3: 1700000000000000000, 4: b"cortex", 5: payload})


def leaf_of(entry):
    return sha(b"\0" + sha(b"matrix.cortex.journal.v1" + entry))


def node(left, right):
    return sha(b"\1" + left + right)


def journal_of(payload, kind="action.set"):
    """Three entries; the last is the set.  (root, inclusion proof of it)."""
    entries = [entry_bytes(0, "run.seal", b"{}"), entry_bytes(1, "action.list", b"x"),
               entry_bytes(2, kind, payload)]
    below = node(leaf_of(entries[0]), leaf_of(entries[1]))
    inclusion = cbor({0: 1, 1: "cortex-1", 2: 3, 3: 2, 4: [below], 5: entries[2]})
    return node(below, leaf_of(entries[2])), inclusion


def proof_bytes(name, items, payload=None, siblings=None, other=False, kind="action.set"):
    path, neighbour = path_of(tree_of(items), key(name))
    siblings = path if siblings is None else siblings
    neighbour = neighbour if other is False else other
    value = {0: 1, 1: "cortex.never-proof", 2: name, 3: siblings,
             5: journal_of(payload or set_bytes(items), kind)[1]}
    if neighbour is not None:
        value[4] = neighbour
    return cbor(value)


ITEMS = [("host:docs.example.com", 1, ["5"]), ("read:/home/u/src/a.c", 2, ["3", "9"]),
         ("tool:read", 2, ["3", "9"]), ("tool:webfetch", 1, ["5"]), ("write:b.c", 1, [])]
NAMES = ["tool:Bash", "tool:mcp__db__Query", "tool: x", "tool:", "tool", "TOOL:x", "x:y", "tool:a\tb",
         "tool:\u00c4rger", "host:Example.COM", "host:example.com.", "host:[2001:DB8::1]", "host:2001:db8::1",
         "host:a:443", "host:http://a", "host:a/b", "host:", "host:.", "host:b\u00fccher.example",
         "file:a", "file:/A/b", "file:a//b/./c", "file:a/b/../c", "file:../../x", "file:/..", "file:/", "file:.",
         "file:C:\\Users\\x\\.ENV", "file:file:///etc/passwd", "file:a/", "file:~/.ssh/id_rsa", "read:A/B",
         "write:/x", "file:" + "/".join("a" * 64), "file:" + "/".join("a" * 65), "tool:" + "x" * 4091,
         "tool:" + "x" * 4092, "read:a\x7f"]
SUBJECTS = [("run:a", "run/a"), ("@run/a", "run/a"), ("run/a", "run/a"), ("session:x y", "session/x y"),
            ("@session/0a", "session/0a"), ("run:", None), ("runs:a", None), ("@", None), ("", None),
            ("session", None)]


def verdicts():
    good = "tool:bash"
    path, other = path_of(tree_of(ITEMS), key(good))
    present = path_of([p for p in tree_of(ITEMS) if p[0] != key("tool:read")], key("tool:read"))
    cases = [
        ("absent tool", proof_bytes(good, ITEMS), "holds"),
        ("absent file", proof_bytes("file:a.h", ITEMS), "holds"),
        ("read but not written", proof_bytes("write:a.c", ITEMS), "holds"),
        ("in an empty set", proof_bytes(good, []), "holds"),
        ("in a set of one", proof_bytes(good, [("tool:x", 1, [])]), "holds"),
        ("of a session", proof_bytes(good, ITEMS, set_bytes(ITEMS, "session/" + "0" * 32, "sessions")),
         "holds"),
        ("not in normal form", proof_bytes("tool:Bash", ITEMS), "broken NonCanonical"),
        ("present, its own leaf as the other", proof_bytes("tool:read", ITEMS), "broken ProofMalformed"),
        ("present, as if it were not", proof_bytes("tool:read", ITEMS, siblings=present[0],
                                                    other=present[1]), "broken ActionRootMismatch"),
        ("the path of another name", proof_bytes("tool:grep", ITEMS, siblings=path, other=other),
         "broken"),
        ("another set's root", proof_bytes(good, ITEMS, set_bytes(ITEMS[1:])),
         "broken ActionRootMismatch"),
        ("no siblings", proof_bytes(good, ITEMS, siblings=[], other=None), "broken ActionRootMismatch"),
        ("the other leaf elsewhere", proof_bytes(good, ITEMS, other=bytes(32)), "broken"),
        ("an entry of another kind", proof_bytes(good, ITEMS, kind="run.event"), "broken NotActionSet"),
        ("a run in the journal of an agent", proof_bytes(good, ITEMS, set_bytes(ITEMS, RUN, "mallory")),
         "broken NotActionSet"),
        ("a session in the journal of runs", proof_bytes(good, ITEMS, set_bytes(ITEMS, "session/a")),
         "broken NotActionSet"),
        ("of what is neither", proof_bytes(good, ITEMS, set_bytes(ITEMS, "trace/a")),
         "broken NotActionSet"),
        ("of entries to come", proof_bytes(good, ITEMS, set_bytes(ITEMS, upto=3)), "broken NotActionSet"),
        ("records that were not read", proof_bytes(good, ITEMS, set_bytes(ITEMS, unread=1)),
         "indeterminate CallsUnread"),
        ("a payload with an empty member", proof_bytes(good, ITEMS, set_bytes(ITEMS) + b"\0"),
         "broken NonCanonical"),
    ]
    return [{"name": name, "proof": data.hex(), "verdict": verdict} for name, data, verdict in cases]


def document():
    pairs = tree_of(ITEMS)
    full = set_bytes(ITEMS, upto=7, calls=3, opaque=1, relative=1, unread=2)
    return {
        "names": [{"given": name, "normal": normal(name)} for name in NAMES],
        "subjects": [{"given": given, "normal": expected} for given, expected in SUBJECTS],
        "keys": [{"name": name, "key": key(name).hex()} for name in ("tool:bash", "file:/etc/passwd")],
        "items": [{"name": name, "count": count, "places": places, "stands_for": sorted(stands_for(name))}
                  for name, count, places in ITEMS],
        "list": list_bytes(ITEMS).hex(), "root": root_of(pairs).hex(), "names_count": len(pairs),
        "empty_root": EMPTY.hex(), "set": full.hex(), "verdicts": verdicts(),
        "journal": {"size": 3, "root": journal_of(set_bytes(ITEMS))[0].hex()},
    }


def main(arguments):
    path = HERE / "cortex-1" / "actions.json"
    text = json.dumps(document(), indent=1, ensure_ascii=True) + "\n"
    if arguments == ["--check"]:
        same = path.read_text() == text
        print("1 passed, 0 failed, 0 skipped" if same else f"{path}: differs\n0 passed, 1 failed, 0 skipped")
        return not same
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
