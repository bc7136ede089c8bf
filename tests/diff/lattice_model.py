"""The lattice (docs/formats/lattice.md) written a second time, for comparing: plain, slow, and
recursive where that reads better.  Nothing here is taken from the C code.
"""
import hashlib
import json
import math
import re
from fractions import Fraction

GENERATION_1 = {"1.0", "1.0.0", "1.1", "1.1.0"}
GENERATION_2 = {"2.0", "2.0.0"}
FORKS = {"natural", "observation", "injection"}
GENESIS = {"", "GENESIS", "0" * 64}
STRATEGIES = ("lww", "confidence", "policy", "manual")
SECTIONS = {"memory": dict, "beliefs": dict, "goals": list, "context_stack": list}
EMPTY = {"memory": {}, "beliefs": {}, "goals": [], "context_stack": []}
STRUCTURE = {"E_SCHEMA", "E_VERSION", "E_FORK_TYPE", "E_DUP_ID", "E_MISSING_PARENT", "E_CYCLE"}
ABSENT = object()


class Real:
    """A literal with a point or an exponent: a double that is no integer."""

    def __init__(self, text):
        self.text, self.value = text, float(text)


class NoForm(Exception):
    """There is no canonical form."""


def read(text):
    return json.loads(text, parse_float=Real)


def canonical(value):
    if isinstance(value, Real):
        if math.isinf(value.value):
            raise NoForm()
        return repr(value.value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{canonical(value[key])}"
                              for key in sorted(value)) + "}"
    return json.dumps(value)


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def same(a, b):
    return a is b if a is ABSENT or b is ABSENT else canonical(a) == canonical(b)


def is_text(value):
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def is_number(value):
    return isinstance(value, Real) or (isinstance(value, int) and not isinstance(value, bool))


def seal_of(record):
    return digest(canonical({"fork_type": record.get("fork_type"),
                             "state_delta": record["state_delta"],
                             "timestamp": record["timestamp"]}))


def hash_of(record, default):
    return digest(record["prev_hash"] + canonical(record["event"]) + str(record["seq"])
                  + record["agent_id"] + record.get("schema_version", default)
                  + ",".join(sorted(record.get("parents") or [])))


class Node:
    def __init__(self, record, default):
        self.record, self.id, self.agent = record, record["node_id"], record["agent_id"]
        self.seq, self.hash, self.prev = record["seq"], record["hash"], record["prev_hash"]
        time = record["timestamp"]
        self.time = Fraction(time.value if isinstance(time, Real) else time)
        self.names, self.fork = record.get("parents") or [], record.get("fork_type")
        self.version = record.get("schema_version", default)
        self.first_generation = self.version.removeprefix("v") in GENERATION_1
        self.parents = []  # in merge order
        self.sealed = "__seal" in record["event"]

    def key(self):
        return self.time, self.id

    def lineage(self):
        for parent in self.parents:
            if parent.hash == self.prev:
                return parent
        return self.parents[0] if self.parents else None


def is_usable(record, default):
    """Whether the record can be a node of the graph at all."""
    seq, time, delta = record.get("seq"), record.get("timestamp"), record.get("state_delta")
    parents, fork = record.get("parents"), record.get("fork_type")
    if not all(is_text(record.get(name)) for name in ("node_id", "agent_id", "prev_hash", "hash")):
        return False
    if isinstance(seq, bool) or not isinstance(seq, int) or seq >= 2**63 or not is_number(time):
        return False
    try:
        for value in (record.get("event"), delta):
            if not isinstance(value, dict):
                return False
            canonical(value)
        canonical(time)
    except NoForm:
        return False
    if abs(Fraction(time.value if isinstance(time, Real) else time)) >= 10**300:
        return False
    if any(name in delta and not isinstance(delta[name], kind) for name, kind in SECTIONS.items()):
        return False
    if parents is not None and not (isinstance(parents, list) and all(map(is_text, parents))):
        return False
    return (fork is None or is_text(fork)) and is_text(record.get("schema_version", default))


class Lattice:
    """The graph of a file's records, and what was wrong with them: (code, node, agent)."""

    def __init__(self, records, default="2.0.0"):
        self.records, self.errors, self.doubted = records, [], set()
        self.ids, self.hashes, self.nodes = {}, {}, []
        self.unsealed = False  # a record that was left out has no seal that was checked
        for k, record in enumerate(records):
            self._add(k, record, default)
        for node in self.nodes:
            other = self.hashes.get(node.hash)
            if other is None or node.id < other.id:
                self.hashes[node.hash] = node
        for node in self.nodes:
            self._resolve(node)
        self._sort()

    def find(self, code, node):
        self.errors.append((code, node.id, node.agent))

    def _add(self, k, record, default):
        label = record["node_id"] if is_text(record.get("node_id")) else f"#{k}"
        agent = record["agent_id"] if is_text(record.get("agent_id")) else "?"
        if not is_usable(record, default) or record["node_id"] in self.ids:
            self.unsealed |= not is_usable(record, default) or "__seal" not in record["event"]
            code = "E_DUP_ID" if is_usable(record, default) else "E_SCHEMA"
            self.errors.append((code, label, agent))
            self.doubted.add(label)
            return
        node = Node(record, default)
        self.ids[node.id] = node
        self.nodes.append(node)
        if node.version.removeprefix("v") not in GENERATION_1 | GENERATION_2:
            self.find("E_VERSION", node)
        if node.fork is not None and node.fork not in FORKS:
            self.find("E_FORK_TYPE", node)
        if hash_of(record, default) != node.hash:
            self.find("E_HASH", node)
        if node.sealed and record["event"]["__seal"] != seal_of(record):
            self.find("E_SEAL", node)

    def _resolve(self, node):
        wrong = node.seq < 0 or "," in node.id or len(set(node.names)) != len(node.names)
        for name in node.names:
            parent = self.ids.get(name) or self.hashes.get(name)
            if parent is None:
                self.find("E_MISSING_PARENT", node)
            elif parent in node.parents:
                wrong = True
            else:
                node.parents.append(parent)
        if node.first_generation and not node.names and node.prev in self.hashes:
            node.parents.append(self.hashes[node.prev])
        node.parents.sort(key=Node.key)
        if wrong:
            self.find("E_SCHEMA", node)

    def _sort(self):
        """Topological order; what has no place in it; what of that lies on or between cycles."""
        self.children = {node: [] for node in self.nodes}
        for node in self.nodes:
            for parent in node.parents:
                self.children[parent].append(node)
        self.order, done, waiting = [], set(), sorted(self.nodes, key=Node.key)
        while True:
            node = next((n for n in waiting if done.issuperset(n.parents)), None)
            if node is None:
                break
            waiting.remove(node)
            done.add(node)
            self.order.append(node)
        self.unplaced = set(waiting)
        cyclic = set(waiting)
        while True:
            ends = {n for n in cyclic if cyclic.isdisjoint(self.children[n])}
            if not ends:
                break
            cyclic -= ends
        for node in cyclic:
            self.find("E_CYCLE", node)

    def branch(self, agent):
        return [node for node in self.nodes if node.agent == agent]

    def head(self, agent):
        return max(self.branch(agent), key=lambda n: (n.seq, *n.key()), default=None)

    def anchor(self):
        lines = sorted(canonical([n.id, n.hash, n.agent, n.seq, seal_of(n.record)])
                       for n in self.nodes)
        return {"cortex_anchor": 1, "nodes": len(self.records), "root": digest("\n".join(lines)),
                "heads": {n.agent: self.head(n.agent).hash for n in self.nodes}}


# --- verification (§4) ---------------------------------------------------------------------------

def judge_branch(lattice, branch):
    first = min(node.seq for node in branch)
    by_seq = {}
    for node in sorted(branch, key=Node.key):
        if node.seq in by_seq and node.fork is None:
            lattice.find("E_SEQ_DUP", node)
        by_seq.setdefault(node.seq, []).append(node)
    for node in branch:
        if node.seq == first:
            fits = (any(p.hash == node.prev for p in node.parents) if node.parents
                    else bool(node.names) or node.prev in GENESIS)
            if not fits:
                lattice.find("E_LINEAGE", node)
            continue
        before = by_seq.get(node.seq - 1)
        if before is None:
            lattice.find("E_SEQ_GAP", node)
            continue
        linked = [p for p in before if p.hash == node.prev]
        if not linked:
            lattice.find("E_LINEAGE", node)
        asked = not node.first_generation or node.record.get("parents") is not None
        if asked and not any(p in node.parents for p in linked or before):
            lattice.find("E_CONTAIN", node)


def judge_options(lattice, options):
    """What options ask for; the warnings."""
    strict, warnings = "--strict" in options, []
    for node in lattice.nodes:
        if (strict or "--require-seals" in options) and not node.sealed:
            lattice.find("E_SEAL_MISSING", node)
        if (strict or "--content-ids" in options) and node.id != node.hash:
            lattice.find("E_ID", node)
        if strict and (re.match("[0-9]", node.agent) or node.version != "2.0.0"
                       or not re.fullmatch("[0-9a-f]{64}", node.prev)):
            lattice.find("E_AMBIGUOUS", node)
        for parent in node.parents:
            if node.time < parent.time:
                if strict or "--strict-time" in options:
                    lattice.find("E_TIME", node)
                else:
                    warnings.append(("W_TIME", node.id, node.agent))
    return warnings


def judge_anchor(lattice, anchor):
    """The word for the anchor."""
    if anchor is None:
        return "none"
    count, actual = len(lattice.errors), lattice.anchor()
    for agent in set(anchor["heads"]) | set(actual["heads"]):
        if anchor["heads"].get(agent) != actual["heads"].get(agent):
            head = lattice.head(agent)
            lattice.errors.append(("E_HEAD", head.id if head else "*", agent))
    if (anchor["nodes"], anchor["root"]) != (actual["nodes"], actual["root"]):
        lattice.errors.append(("E_ROOT", "*", "*"))
    return "root" if len(lattice.errors) == count else "bad"


def tainted(lattice, branches):
    wrong = {(label, agent) for _, label, agent in lattice.errors}
    suspect = {n for n in lattice.nodes if (n.id, n.agent) in wrong or n.id in lattice.doubted}
    for node in lattice.order:
        if not suspect.isdisjoint(node.parents):
            suspect.add(node)
    return sorted({n.agent for n in suspect | lattice.unplaced if branches[n.agent] == "VALID"})


def verify(records, default, options, anchor):
    lattice = Lattice(records, default)
    for agent in {node.agent for node in lattice.nodes}:
        judge_branch(lattice, lattice.branch(agent))
    warnings = judge_options(lattice, options)
    anchored = judge_anchor(lattice, anchor)
    codes = {code for code, _, _ in lattice.errors}
    invalid = {agent for code, _, agent in lattice.errors if code != "E_ROOT"}
    branches = {agent: "INVALID" if agent in invalid else "VALID"
                for agent in invalid | {node.agent for node in lattice.nodes}}
    sealed = [node.sealed for node in lattice.nodes]
    late = bool(warnings) or "E_TIME" in codes
    return {
        "branches": branches, "errors": sorted(lattice.errors), "nodes": len(records),
        "ok": not lattice.errors, "tainted": tainted(lattice, branches),
        "warnings": sorted(warnings), "evidence": {
            "hash": "E_HASH" not in codes, "lineage": "E_LINEAGE" not in codes,
            "monotonic": codes.isdisjoint({"E_SEQ_GAP", "E_SEQ_DUP"}),
            "containment": "E_CONTAIN" not in codes, "structure": codes.isdisjoint(STRUCTURE),
            "seals": ("bad" if "E_SEAL" in codes else "none" if not any(sealed)
                      else "all" if all(sealed) and not lattice.unsealed else "some"),
            "ids": "content" if sealed and all(n.id == n.hash for n in lattice.nodes) else "labels",
            "time": "regressed" if late else "ordered", "anchor": anchored}}


# --- states and merges (§6, §7) ------------------------------------------------------------------

def patched(old, patch):
    value = dict(old) if isinstance(old, dict) and "__conflict" not in old else {}
    return apply(value, patch)


def apply(value, patch):
    for key, item in patch.items():
        if item is None:
            value.pop(key, None)
        else:
            value[key] = patched(value.get(key), item) if isinstance(item, dict) else item
    return value


def after(state, delta):
    state = dict(state)
    for name, kind in SECTIONS.items():
        if name in delta:
            state[name] = apply(dict(state[name]), delta[name]) if kind is dict else delta[name]
    return state


def is_atomic(value):
    return not isinstance(value, dict) or "confidence" in value or "__conflict" in value


def is_marker(value):
    return (isinstance(value, dict) and value.get("__conflict") is True
            and isinstance(value.get("values"), list))


def confidence(value):
    number = value.get("confidence") if isinstance(value, dict) else None
    if not is_number(number):
        return 0.0
    try:
        number = number.value if isinstance(number, Real) else float(number)
    except OverflowError:
        return 0.0
    return 0.0 if math.isinf(number) else number


def merged(values, agents, bases, strategy, priority):
    competing = [(v, a) for v, a in zip(values, agents) if all(not same(v, b) for b in bases)]
    competing = competing or list(zip(values, agents))
    last = competing[-1][0]
    if all(same(value, last) for value, _ in competing):
        return last
    if (not any(is_atomic(value) for value, _ in competing)
            and not any(isinstance(base, dict) and is_atomic(base) for base in bases)):
        objects = [base if isinstance(base, dict) else {} for base in bases]
        found = {key: merged([value.get(key, ABSENT) for value, _ in competing],
                             [agent for _, agent in competing],
                             [base.get(key, ABSENT) for base in objects], strategy, priority)
                 for key in {key for value, _ in competing for key in value}}
        return {key: value for key, value in found.items() if value is not ABSENT}
    if strategy in ("confidence", "policy"):
        ranks = [confidence(value) if strategy == "confidence" else priority.get(agent, 0)
                 for value, agent in competing]
        return next(v for (v, _), rank in reversed(list(zip(competing, ranks)))
                    if rank == max(ranks))
    if strategy == "lww":
        return last
    kept = []
    for value, _ in competing:
        for item in value["values"] if is_marker(value) else [None if value is ABSENT else value]:
            if not any(same(item, other) for other in kept):
                kept.append(item)
    return {"__conflict": True, "values": kept}


def merged_states(states, agents, bases, strategy, priority):
    found = {}
    for name, kind in SECTIONS.items():
        parts, roots = [s[name] for s in states], [b[name] for b in bases]
        if kind is list:
            found[name] = merged(parts, agents, roots, strategy, priority)
            continue
        section = {key: merged([part.get(key, ABSENT) for part in parts], agents,
                               [root.get(key, ABSENT) for root in roots], strategy, priority)
                   for key in {key for part in parts + roots for key in part}}
        found[name] = {key: value for key, value in section.items() if value is not ABSENT}
    return found


def ancestors(node):
    found, waiting = set(), [node]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.parents
    return found


def best_common(nodes):
    common = set.intersection(*map(ancestors, nodes))
    return [n for n in common if not any(n is not m and n in ancestors(m) for m in common)]


def states_of(lattice, strategy="lww", base="lca", priority=None):
    """(state, inherited state) of each node."""
    found = {}
    for node in lattice.order:
        inherited = EMPTY
        if len(node.parents) == 1:
            inherited = found[node.parents[0]][0]
        elif node.parents:
            own = node.record["event"].get("merge_strategy")
            bases = [] if base == "none" else [found[n][0] for n in best_common(node.parents)]
            inherited = merged_states([found[p][0] for p in node.parents],
                                      [p.agent for p in node.parents], bases or [EMPTY],
                                      own if own in STRATEGIES else strategy, priority or {})
        found[node] = after(inherited, node.record["state_delta"]), inherited
    return found


# --- questions (§8) ------------------------------------------------------------------------------

def markers(value, place=""):
    found = [place] if is_marker(value) else []
    items = (value.items() if isinstance(value, dict)
             else enumerate(value) if isinstance(value, list) else ())
    for key, item in items:
        found += markers(item, f"{place}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return sorted(found)


def why(lattice, states, node, key, sections):
    changes, known = [], ancestors(node)
    for step in reversed([n for n in lattice.order if n in known]):
        before = states[step.lineage()][0] if step.parents else EMPTY
        for section in sections:
            old = before[section].get(key, ABSENT)
            new = states[step][0][section].get(key, ABSENT)
            if same(old, new):
                continue
            delta = step.record["state_delta"].get(section, {})
            change = {"agent": step.agent, "node": step.id, "section": section, "seq": step.seq,
                      "via": "delta" if key in delta else "merge", "old": old, "new": new}
            changes.append({k: v for k, v in change.items() if v is not ABSENT})
    return changes


def path(node):
    return path(node.lineage()) + [node] if node is not None else []


def compare(lattice, states, a, b):
    heads = [lattice.head(a), lattice.head(b)]
    paths = [path(head) for head in heads]
    shared = 0
    while shared < min(map(len, paths)) and paths[0][shared] is paths[1][shared]:
        shared += 1
    left, right = (states[head][0] for head in heads)
    pairs = [(section, key, left[section].get(key, ABSENT), right[section].get(key, ABSENT))
             for section in ("memory", "beliefs")
             for key in sorted(set(left[section]) | set(right[section]))]
    pairs += [(section, None, left[section], right[section])
              for section in ("goals", "context_stack")]
    diff = [{k: v for k, v in {"section": s, "key": key, "a": x, "b": y}.items() if v is not ABSENT}
            for s, key, x, y in pairs if not same(x, y)]
    latest = sorted(best_common(heads), key=lattice.order.index, reverse=True)
    return {"agents": [a, b], "causal_lca": [n.id for n in latest], "diff": diff,
            "heads": [head.id for head in heads],
            "lca": paths[0][shared - 1].id if shared else None,
            "paths": [[n.id for n in steps[shared:]] for steps in paths]}
