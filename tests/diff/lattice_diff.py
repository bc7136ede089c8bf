#!/usr/bin/python3
"""Differential test: lattices against lattice_model.py, which was written from the rules alone.

    lattice_diff.py CORTEX [LATTICES [SEED]]

Small lattices of a few agents, with forks and merges, most of them damaged in one to three ways
and read in any of the three forms.  Verdict, evidence, anchor, states, changes, comparison and
heat must be what the model says.  The last line is `N passed, N failed, N skipped`.
"""
import copy
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, arguments, count, finish_counted  # noqa: E402

from lattice_model import (SECTIONS, STRATEGIES, Lattice, NoForm, Real, canonical, compare,
                           hash_of, markers, read, seal_of, states_of, verify, why)

ROUNDS = int(arguments[0]) if arguments else 60
RANDOM = random.Random(int(arguments[1]) if len(arguments) > 1 else 20)
AGENTS = ["a", "b", "syst\u00e8me", "7up", "a,b", "x\ny", "q'uote", "\U0001f600", "\uff5e", "zz"]
KEYS = ["x", "y", "d", "\u00e9", "a/b", "~t"]
NUMBERS = [0, 1, -1, 2**53, 2**53 + 1, 10**25, Real("1.0"), Real("-0.0"), Real("1e-7"),
           Real("1E+2"), Real("1e16"), Real("1e23"), Real("0.1"), Real("5e-324"), Real("1e-400")]
TEXTS = ["s", "\u00e9\ud800", "\x7f\x00", "/", "\U0001f600"]
WRONG = (TypeError, AttributeError, KeyError, ValueError, NoForm)
OPTIONS = ["--content-ids", "--require-seals", "--strict-time", "--strict"]
FOLDER = tempfile.TemporaryDirectory()
FILE = pathlib.Path(FOLDER.name) / "lattice"
ANCHOR = pathlib.Path(FOLDER.name) / "anchor"


def pick(*items):
    return RANDOM.choice(items)


def value(depth=0):
    kind = RANDOM.random()
    if depth > 2 or kind < .45:
        return pick(pick(*NUMBERS), pick(*TEXTS), True, False, None)
    if kind < .55:
        return [value(depth + 1) for _ in range(RANDOM.randrange(3))]
    if kind < .65:
        return {"value": value(depth + 1),
                "confidence": pick(Real("0.5"), Real("0.7"), 1, 0, True, "x", 10**400, None)}
    if kind < .7:
        return {"__conflict": pick(True, True, False, 1), "values": pick([1, 2], [], "no")}
    return {pick(*KEYS): value(depth + 1) for _ in range(RANDOM.randrange(4))}


def delta():
    found = {name: {pick(*KEYS[:3]): value() for _ in range(pick(0, 1, 2, 3))} if kind is dict
             else [value(1) for _ in range(RANDOM.randrange(3))]
             for name, kind in SECTIONS.items() if RANDOM.random() < (.6 if kind is dict else .2)}
    return dict(found, other=value()) if RANDOM.random() < .1 else found


def rehash(record, default):
    record["hash"] = hash_of(record, default)


def make(default):
    """Records that hold."""
    records, last, agents = [], {}, RANDOM.sample(AGENTS, RANDOM.randrange(1, 5))
    content, sealed = RANDOM.random() < .3, RANDOM.choice([0, .5, 1, 1])
    time = pick(1000, 0, 2**53, 17 * 10**17)
    for k in range(RANDOM.randrange(1, 14)):
        agent = RANDOM.choice(agents)
        before = last.get(agent)
        time += pick(0, 1, 1, 2)
        parents = [before] if before else []
        parents += [r for r in RANDOM.sample(records, min(len(records), pick(0, 1, 1, 2, 3)))
                    if r is not before]
        record = {"node_id": pick(f"n{k}", f"n{k}", f"\u00e9{k}", f"i'{k}"), "agent_id": agent,
                  "seq": before["seq"] + 1 if before else pick(0, 0, 5, 2**63 - 30),
                  "timestamp": pick(time, Real(f"{time}.0")),
                  "event": {pick("act", "n", "\u00e9"): value() for _ in range(pick(0, 1, 2))},
                  "state_delta": delta(),
                  "prev_hash": (parents[0]["hash"] if parents
                                else pick("0" * 64, "0" * 64, "", "GENESIS"))}
        if default[0] != "1" or len(parents) > 1 or (parents and not before) or pick(0, 1):
            RANDOM.shuffle(parents)
            record["parents"] = [pick(p["node_id"], p["node_id"], p["hash"]) for p in parents]
        if RANDOM.random() < .2:
            record["event"]["merge_strategy"] = pick(*STRATEGIES, "odd", 3)
        if RANDOM.random() < .2:
            record["fork_type"] = pick(None, "natural", "observation", "injection")
        if RANDOM.random() < .05:
            record["schema_version"] = pick("2.0", "v2.0.0", "1.1", "v1.0.0")
        if RANDOM.random() < sealed:
            record["event"]["__seal"] = seal_of(record)
        rehash(record, default)
        if content:
            record["node_id"] = record["hash"]
        records.append(record)
        last[agent] = record
    return records


def put(name, *values):
    """Damage that sets a member, and half of the time hashes the record again."""
    def damage(records, record, default):
        record[name] = copy.deepcopy(RANDOM.choice(values))
        if pick(True, False):
            try:
                rehash(record, default)
            except WRONG:
                pass  # nothing that could be hashed
    return damage


def link(records, record, default):
    """Other parents: any, several times, itself, by hash, none that exists."""
    names = record.get("parents") or []
    other = RANDOM.choice(records)
    record["parents"] = pick(names + [other["node_id"]], names + [other["hash"]], names + names[:1],
                             [other["node_id"]], names + ["none"], ["none", "none"], [], None)
    rehash(record, default)


def swap_events(records, record, default):
    other = RANDOM.choice(records)
    record["event"], other["event"] = other["event"], record["event"]


def repeat(records, record, default):
    twin = copy.deepcopy(record)
    if pick(True, False):
        twin["node_id"] += pick("x", "")
        twin["fork_type"] = pick(None, "natural")
        twin["event"]["twin"] = True
        rehash(twin, default)
    records.insert(RANDOM.randrange(len(records) + 1), twin)


def borrow(records, record, default):
    name = pick("hash", "prev_hash", "timestamp", "node_id")
    record[name] = RANDOM.choice(records)[pick("hash", name) if name != "timestamp" else name]


def lose(records, record, default):
    record.pop(pick("node_id", "agent_id", "seq", "timestamp", "event", "state_delta", "hash"))


DAMAGE = [
    lambda records, record, default: records.remove(record) if len(records) > 1 else None,
    lambda records, record, default: RANDOM.shuffle(records),
    lambda records, record, default: record["event"].__setitem__("more", 1),
    lambda records, record, default: record["event"].__setitem__("__seal", pick(5, None, "0" * 64)),
    link, link, swap_events, repeat, borrow, lose,
    put("seq", Real("1.0"), True, 2**63, 2**63 - 1, -1, 0, "1", None),
    put("timestamp", 0, -5, Real("-1e300"), Real("9.9e299"), Real("1e400"), 10**300 - 1, "5", None),
    put("agent_id", *AGENTS, 5, "\ud800"), put("hash", "", "A" * 64),
    put("prev_hash", "", "GENESIS", "0" * 64, "\udc00"), put("node_id", "a,c", 5, None),
    put("fork_type", "sideways", "", 5, "Natural", "injection"),
    put("schema_version", "9", "V2.0", "", None, "1.1", "v1.0.0"), put("event", [], None, {}),
    put("state_delta", {}, [], {"memory": []}, {"goals": {}}, {"x": Real("1e400")}),
    put("parents", 5, [1], "x", None),
]


def spelled(item):
    """JSON text with the spelling of its doubles."""
    if isinstance(item, Real):
        return item.text
    if isinstance(item, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {spelled(v)}" for k, v in item.items()) + "}"
    if isinstance(item, list):
        return "[" + ",".join(map(spelled, item)) + "]"
    return json.dumps(item)


def write(records, default):
    lines, version = [spelled(record) for record in records], json.dumps(default)
    header = [f'{{"schema_version":{version}}}']
    FILE.write_text(pick("\n".join(header + lines) + "\n", "\r\n \r\n".join(header + lines),
                         "[" + ",\n".join(header + lines) + "]",
                         f'{{"nodes":[{",".join(lines)}],"schema_version":{version}}}'))


def ask(*words):
    done = subprocess.run([BIN, "lattice", *map(str, words)], capture_output=True)
    return done.returncode, done.stdout.decode()


def check(what, found, expected):
    holds = found == expected
    count(what, holds, "" if holds else
          f"of\n{FILE.read_text()}\n  found    {found}\n  expected {expected}")


def check_verdict(records, default):
    options = [option for option in OPTIONS if RANDOM.random() < .1]
    anchor = None
    if RANDOM.random() < .3:
        anchor = Lattice(records, default).anchor()
        if pick(True, False) and anchor["heads"]:
            anchor["heads"][pick("ghost", *anchor["heads"])] = "1" * 64
        anchor["nodes"] += pick(0, 0, 1)
        ANCHOR.write_text(json.dumps(anchor))
    expected = verify(records, default, options, anchor)
    code, out = ask("verify", FILE, "--json", *options, *([f"--head=@{ANCHOR}"] if anchor else []))
    found = json.loads(out)
    for name in ("errors", "warnings"):
        found[name] = [(item["code"], item["node"], item["agent"]) for item in found[name]]
    check(f"verdict {options}", (code, found), (0 if expected["ok"] else 1, expected))


def check_answers(records, default):
    lattice = Lattice(records, default)
    holds = verify(records, default, [], None)["ok"]
    answer = [0 if holds else 1]
    counts = [(len(lattice.children[n]), n.id) for n in lattice.nodes]
    heat = [{"D": d, "node": n} for d, n in sorted(counts, key=lambda c: (-c[0], c[1])) if d > 1]
    check("heat", ask("heatmap", FILE, "--json"),
          (*answer, canonical({"nodes": heat, "verified": holds}) + "\n"))
    check("anchor", ask("anchor", FILE), (*answer, canonical(lattice.anchor()) + "\n"))
    if lattice.unplaced or not lattice.nodes:
        return
    merges = [node for node in lattice.nodes if len(node.parents) > 1]
    node = RANDOM.choice(pick(merges, lattice.nodes) or lattice.nodes)
    strategy, base, inherited = pick(*STRATEGIES), pick("lca", "lca", "none"), pick(False, True)
    priority = {n.agent: pick(0, 1, -1, 2) for n in lattice.nodes}
    words = [word for agent, p in priority.items() for word in ("--priority", f"{agent}={p}")]
    state = states_of(lattice, strategy, base, priority)[node][inherited]
    check(f"state of {node.id}, {strategy}, {base}, {words}, inherited {inherited}",
          ask("state", FILE, node.id, "--json", "--strategy", strategy, "--base", base, *words,
              *(["--inherited"] if inherited else [])),
          (*answer, canonical({"base": base, "conflicts": markers(state), "node": node.id,
                               "state": state, "strategy": strategy, "verified": holds}) + "\n"))
    states, key = states_of(lattice), pick(*KEYS[:3])
    changes = why(lattice, states, node, key, ["memory", "beliefs"])
    found = ask("why", FILE, node.id, key, "--json")
    if changes:
        check(f"why {node.id} {key}", found,
              (*answer, canonical({"changes": changes, "key": key, "node": node.id,
                                   "verified": holds}) + "\n"))
    else:
        check(f"why {node.id} {key}, which never was there",
              (found[0], json.loads(found[1])["error"]["code"]), (2, "NoKey"))
    pair = [RANDOM.choice(lattice.nodes).agent for _ in range(2)]
    check(f"comparison of {pair}", ask("compare", FILE, *pair, "--json"),
          (*answer, canonical(dict(compare(lattice, states, *pair), verified=holds)) + "\n"))


def play():
    default = pick("2.0.0", "2.0.0", "2.0.0", "v2.0", "1.1", "1.0.0")
    records = make(default)
    for _ in range(pick(0, 1, 1, 2, 3)):
        try:
            RANDOM.choice(DAMAGE)(records, RANDOM.choice(records), default)
        except WRONG:
            pass  # damaged too much already for this
    write(records, default)
    records = [read(spelled(record)) for record in records]
    check_verdict(records, default)
    check_answers(records, default)


for _ in range(ROUNDS):
    play()
FOLDER.cleanup()
finish_counted()
