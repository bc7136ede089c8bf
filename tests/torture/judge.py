"""What must be true of a home, by what is in the log of operations: nothing here asks the clients' memory, so a kept
folder can be judged again (`torture.py --judge FOLDER`).

The journal's tree is made anew from the leaves, by RFC 6962, and compared with every root that anybody was
ever shown.
"""
import collections
import hashlib
import json

from work import ulid

SAMPLE = 60  # of what needs a command each


def journal_roots(leaves):
    """The root of the tree over the first n leaves, for each n; RFC 6962 §2.1."""
    peaks, roots = [], [None]  # peaks: (size, hash), largest first
    for leaf in leaves:
        node, size = hashlib.sha256(b"\0" + bytes.fromhex(leaf)).digest(), 1
        while peaks and peaks[-1][0] == size:
            node = hashlib.sha256(b"\1" + peaks.pop()[1] + node).digest()
            size *= 2
        peaks.append((size, node))
        root = peaks[-1][1]
        for _, left in reversed(peaks[:-1]):
            root = hashlib.sha256(b"\1" + left + root).digest()
        roots.append(root.hex())
    return roots


class Judge:
    def __init__(self, world, lines, rng):
        self.world, self.rng = world, rng
        self.found = collections.Counter()
        self.attempts, self.sights = {}, []
        for line in lines:
            if "n" in line and "op" in line:
                self.attempts[line["n"]] = dict(line)
            elif "n" in line and "step" in line:
                self.attempts[line["n"]].setdefault("steps", []).append((line["step"], line["seq"]))
            elif "n" in line:
                self.attempts[line["n"]].update(line)
            else:
                self.sights.append(line)
        self.journals = {}

    def wrong(self, what, *more):
        self.world.defect(what + "".join("\n  " + json.dumps(m)[:1500] for m in more))

    def of(self, *ops, done=None):
        return [a for a in self.attempts.values() if a["op"] in ops and (done is None or bool(a.get("done")) == done)]

    def sample(self, things):
        things = list(things)
        return things if len(things) <= SAMPLE else self.rng.sample(things, SAMPLE)

    def ask(self, *args, actor=None):
        return self.world.must(*args, "--json", actor=actor)

    # --- the journal ---------------------------------------------------------------------------

    def journal(self, actor):
        if actor not in self.journals:
            lines = self.ask("log", "--all", actor=actor).out.splitlines()
            entries = [json.loads(line) for line in lines]
            if [e["seq"] for e in entries] != list(range(len(entries))):
                self.wrong(f"the journal of {actor} has gaps")
            self.journals[actor] = (entries, journal_roots(e["leaf_hash"] for e in entries))
        return self.journals[actor]

    def roots(self):
        """Each root that was ever shown is the root of that many of the entries there are."""
        rows = {r["actor"]: r for r in self.ask("roots").json()["actors"]}
        for actor, row in rows.items():
            entries, roots = self.journal(actor)
            if len(entries) != row["journal_size"] or roots[-1] != row["journal_root"]:
                self.wrong(f"the root of {actor} is not that of its entries", row, roots[-1])
            self.found["entries"] += len(entries)
        for sight in self.sights:
            if "seen" in sight:
                entry = self.journal(sight["actor"])[0][sight["seen"]:sight["seen"] + 1]
                if not entry or entry[0]["leaf_hash"] != sight["leaf"]:
                    self.wrong("an entry that was shown is gone or another", sight, entry)
                self.found["entries that readers saw"] += 1
            elif "root" in sight and sight["size"] > 0:
                roots = self.journal(sight["actor"])[1]
                if sight["size"] >= len(roots) or roots[sight["size"]] != sight["root"]:
                    self.wrong("a root that was shown is of no prefix", sight)
                self.found["roots that were shown"] += 1

    def entries(self):
        """Appended: there, unchanged, once; refused: not there."""
        erased = {(a["actor"], a["seq"]): bool(a.get("done")) for a in self.of("erase_entry")}
        texts = collections.Counter()
        for actor in {a["actor"] for a in self.of("append", "apply")}:
            for entry in self.journal(actor)[0]:
                payload = entry["payload"]
                if isinstance(payload, str):
                    texts[payload[:60]] += 1
                elif isinstance(payload, dict) and "hex" in payload:
                    texts[bytes.fromhex(payload["hex"]).decode(errors="replace")[:60]] += 1
        for a in self.of("append"):
            if a.get("done"):
                self.one_entry(a, a["seq"], a["text"], a["size"], erased)
            elif (a.get("refused") or a.get("nothing")) and texts[a["text"]]:
                self.wrong("refused, or nothing was done, and yet it is there", a)
            if texts[a["text"]] > 1:
                self.wrong("it is there twice", a)
        for a in self.of("apply"):
            for text, seq in a.get("steps", ()):
                self.one_entry(a, seq, text, len(text), erased)
            for text in a["texts"]:
                if texts[text] > 1:
                    self.wrong("a step was done twice", a)

    def one_entry(self, attempt, seq, text, size, erased):
        entries = self.journal(attempt["actor"])[0]
        if seq >= len(entries):
            return self.wrong("acknowledged and not there", attempt)
        entry, gone = entries[seq], erased.get((attempt["actor"], seq))
        self.found["entries as acknowledged"] += 1
        if entry["erased"]:
            if gone is None:
                self.wrong("erased, and nobody asked for it", attempt, entry)
        elif gone:
            self.wrong("it was to be erased, and is there", attempt, entry)
        else:
            payload = entry["payload"]
            if isinstance(payload, dict):
                payload = bytes.fromhex(payload["hex"]).decode()
            if not payload.startswith(text) or entry["payload_size"] < size:
                self.wrong("another entry than was acknowledged", attempt, entry)
        return None

    # --- memories ------------------------------------------------------------------------------

    def memories(self):
        listed, statements = {}, collections.Counter()
        for actor in {a["actor"] for a in self.of("write")}:
            after = []
            while True:
                page = self.ask("memory", "list", "--all", "--limit", 1000, *after, actor=actor).json()
                for memory in page["memories"]:
                    listed[memory["id"]] = memory
                    if memory["data"]:
                        statements[memory["data"]["statement"]] += 1
                if page["next_after"] is None:
                    break
                after = ["--after", page["next_after"]]
        versions = collections.defaultdict(dict)  # id -> version -> attempt
        for a in self.of("write", "update", done=True):
            versions[ulid(a["uri"])][int(a["uri"].split("#")[1])] = a
        dead = {ulid(a["of"]): bool(a.get("done")) for a in self.of("tombstone")}
        gone = {ulid(a["of"]): bool(a.get("done")) for a in self.of("erase_memory")}
        for name, known in versions.items():
            self.one_memory(name, known, listed.get(name), dead.get(name), gone.get(name))
        for a in self.of("write"):
            if statements[a["data"]["statement"]] > 1:
                self.wrong("one write, two memories", a)
            if a.get("refused") and statements[a["data"]["statement"]]:
                self.wrong("refused and yet there", a)
        for a in self.sample(self.of("write", "update", done=True)):
            got = self.ask("memory", "get", a["uri"], actor=a["actor"]).json()
            if not got["erased"] and got["data"] != a["data"]:
                self.wrong("another version than was acknowledged", a, got)

    def one_memory(self, name, known, memory, dead, gone):
        newest = known[max(known)]
        if memory is None:
            return self.wrong("a memory that was acknowledged is not there", newest)
        self.found["memories as acknowledged"] += 1
        if memory["erased"] and gone is None:
            self.wrong("erased, and nobody asked for it", newest, memory)
        if not memory["erased"] and gone:
            self.wrong("it was to be erased, and is there", newest, memory)
        if memory["version"] < max(known):
            self.wrong("a version that was acknowledged is not there", newest, memory)
        if not memory["erased"] and memory["version"] in known and \
                memory["data"] != known[memory["version"]]["data"]:
            self.wrong("another content than was acknowledged", known[memory["version"]], memory)
        if dead and memory["tombstone"] is None:
            self.wrong("its tombstone is gone", newest, memory)
        return None

    def edges(self):
        removed = {(a["src"], a["kind"], a["dst"]) for a in self.of("unlink")}
        for a in self.sample(self.of("link", done=True)):
            got = self.ask("memory", "get", a["src"], "--edges", actor=a["actor"]).json()
            found = [e for e in got["edges_from"] if e["uri"] == a["uri"]]
            if len(found) != 1 or found[0]["removed"] and (a["src"], a["kind"], a["dst"]) not in removed:
                self.wrong("an edge that was acknowledged is not there", a, found)
            self.found["edges as acknowledged"] += 1

    # --- what left the home --------------------------------------------------------------------

    def snapshots(self):
        dropped = {(a["actor"], a["snapshot"]): bool(a.get("done")) for a in self.of("drop")}
        for actor in {a["actor"] for a in self.of("snapshot", done=True)}:
            there = {s["snapshot"]: s for s in self.ask("snapshot", "list", actor=actor).json()["snapshots"]}
            for a in self.of("snapshot", done=True):
                if a["actor"] != actor:
                    continue
                was, now = a["manifest"], there.get(a["manifest"]["snapshot"])
                drop = dropped.get((actor, was["snapshot"]))
                if now is None and drop is None or now is not None and drop:
                    self.wrong("a snapshot is gone, or was dropped and is there", a, now)
                if now is not None and {**now, "sealed": 0, "signed_by": 0} != {**was, "sealed": 0, "signed_by": 0}:
                    self.wrong("a snapshot is another", a, now)
                self.found["snapshots as acknowledged"] += 1

    def proofs(self):
        """What was proven holds for the program that checks, against what was said with it."""
        for a in self.sample(self.of("prove", done=True)):
            self.world.check_proof("--overall-root", a["overall"], self.world.out / a["file"])
        for a in self.sample(self.of("prove_entry", done=True)):
            self.world.check_proof("--root", a["journal_root"], "--size", a["journal_size"], self.world.out / a["file"])
        self.found["proofs checked"] += min(SAMPLE, len(self.of("prove", done=True))) + \
            min(SAMPLE, len(self.of("prove_entry", done=True)))
        newest = {}
        for a in self.of("checkpoint", done=True):
            newest.setdefault(a["actor"], []).append(a)
        for actor, kept in newest.items():
            kept.sort(key=lambda a: a["size"])
            last = self.world.out / kept[-1]["file"]
            self.world.must("verify", "--home", self.world.home, "--checkpoint", last, "--key",
                            self.world.key(actor)[1], "--require", "signed", "--actor", actor)
            for a in self.sample(kept):
                proof = self.world.out / "again.consistency"
                self.world.must("checkpoint", "--consistency-from", self.world.out / a["file"], "--proof", proof,
                                "--origin", f"example.com/{actor}", "-o", self.world.out / "again.checkpoint",
                                actor=actor)
                self.world.check_proof("--key", self.world.key(actor)[1], "--from-checkpoint",
                                       self.world.out / a["file"], "--root", self.journal(actor)[1][-1], "--size",
                                       len(self.journal(actor)[0]), proof)
                proof.unlink()
                self.found["consistency proofs"] += 1

    # --- traces --------------------------------------------------------------------------------

    def traces(self):
        """Stored exactly once, in the journal where it was said, and in the index."""
        sent = {}
        for a in self.of("traces", done=True):
            for trace_id, actor, seq, digest in a["traces"]:
                sent[trace_id] = (actor, seq, digest)
        index, cursor = collections.Counter(), []
        while True:
            page = self.ask("trace", "query", "--verified", "any", "--limit", 1000, "--level", "generic", *cursor).json()
            index.update(t["trace_id"] for t in page["traces"])
            if not page["traces"] or page["next_cursor"] is None:
                break
            cursor = ["--cursor", page["next_cursor"]]
        twice = [t for t, count in index.items() if count > 1]
        missing = [t for t in sent if t not in index]
        if twice or missing:
            self.wrong("the index has traces twice, or not", twice[:20], missing[:20])
        for trace_id, (actor, seq, _) in sent.items():
            entries = self.journal(actor)[0]
            if seq >= len(entries) or not entries[seq]["kind"].startswith("trace"):
                self.wrong("a trace that was acknowledged is not in the journal", [trace_id, actor, seq])
            self.found["traces as acknowledged"] += 1
        for trace_id in self.sample(sent):
            shown = self.ask("trace", "show", trace_id).json()
            if shown["verdict"]["verdict"] != "holds":
                self.wrong("a trace does not hold any more", shown["verdict"])
        for agent in self.world.agents:
            if any(actor == agent for actor, _, _ in sent.values()):
                self.ask("lattice", "verify", "@agent/" + agent)

    def all(self):
        for part in (self.roots, self.entries, self.memories, self.edges, self.snapshots, self.proofs, self.traces):
            part()
        return self.found
