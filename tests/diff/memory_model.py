"""memory_model.py - the calls of docs/formats/ledger.md §10 by themselves, from its text.

A model in the plainest form: records are Python values, trees are recursions over dictionaries, and
every root is computed anew.  It shares neither code nor method with src/memory and src/ledger.
`Ledger.call(step)` takes the steps of `cortex apply` and returns the name of the refusal, or None.
"""
import datetime
import hashlib
import math
import struct

FACTOR_AGE = 90.0 * 86400.0 * 1e9
BLAMES = ("factual_error", "wrong_assumption")
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Single(float):
    """A float that is written with 32 bits or less."""


# --- deterministic CBOR (§2) -------------------------------------------------------------------


def head(kind, number):
    if number < 24:
        return bytes([kind << 5 | number])
    size = next(size for size in (1, 2, 4, 8) if number < 1 << 8 * size)
    return bytes([kind << 5 | 23 + size.bit_length()]) + number.to_bytes(size, "big")


def single(value):
    try:
        half = struct.pack(">e", value)
        if struct.unpack(">e", half)[0] == value:
            return b"\xf9" + half
    except OverflowError:
        pass
    return b"\xfa" + struct.pack(">f", value)


def cbor(value):
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, Single):
        return single(value)
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    pairs = sorted((cbor(key), cbor(item)) for key, item in value.items())
    return head(5, len(pairs)) + b"".join(key + item for key, item in pairs)


def fields(required, **optional):
    """A map of numbered members; optional ones (f7=..) only when they are not empty."""
    made = dict(required)
    for name, value in optional.items():
        if value not in (None, "", b"", 0, False, [], {}):
            made[int(name[1:])] = value
    return made


# --- types (§4.1) ------------------------------------------------------------------------------

# name: [(member, number, kind, rule)]; rules: n needed and not blank, a always, o left out when
# empty, p left out when absent only (what the original keeps behind a pointer).
COST = [("asset", 1, "text", "a"), ("amount", 2, "text", "a")]
OBJECT = [("kind", 1, "text", "a"), ("ref", 2, "text", "a"), ("value", 3, "bytes", "o")]
RESTRICTION = [("type", 1, "text", "a"), ("hard", 2, "bool", "a"), ("statement", 3, "text", "a"),
               ("data", 4, "bytes", "o")]
BUDGET = [("daily_max", 1, "text", "o"), ("total_max", 2, "text", "o"),
          ("intents_per_day", 3, "int", "o"), ("concurrent", 4, "int", "o")]
TYPES = {
    "Identity": [("name", 1, "text", "n"), ("did", 2, "text", "o"), ("wallets", 3, "texts", "o"),
                 ("roles", 4, "texts", "o"), ("public_keys", 5, "blobs", "o")],
    "Fact": [("statement", 1, "text", "n"), ("subject", 2, "text", "n"),
             ("predicate", 3, "text", "n"), ("object", 4, "bytes", "o"), ("source", 5, "text", "o"),
             ("as_of", 6, "time", "p")],
    "Preference": [("topic", 1, "text", "n"), ("value", 2, "bytes", "a"),
                   ("polarity", 3, "text", "n"), ("strength", 4, "f32", "a"),
                   ("rationale", 5, "text", "o")],
    "Belief": [("statement", 1, "text", "n"), ("subject", 2, "text", "a"),
               ("stance", 3, ("believe", "doubt", "suspect"), "a"),
               ("evidence_for", 4, "texts", "o"), ("evidence_against", 5, "texts", "o")],
    "Event": [("kind", 1, "text", "n"), ("intent_ref", 2, "text", "o"),
              ("counterparty", 3, "text", "o"), ("outcome", 4, "text", "n"),
              ("cost", 5, COST, "p"), ("duration", 6, "duration", "p"),
              ("artifacts", 7, "texts", "o"), ("summary", 8, "text", "o")],
    "Goal": [("statement", 1, "text", "n"), ("horizon_end", 2, "time", "p"),
             ("success_criteria", 3, "texts", "o"), ("status", 4, "text", "n"),
             ("subgoals", 5, "texts", "o"), ("verb_hint", 6, "text", "o"),
             ("objects", 7, [OBJECT], "o"), ("constraints", 8, [RESTRICTION], "o"),
             ("budget", 9, BUDGET, "p"), ("persistent", 10, "bool", "o"),
             ("created_by", 11, "text", "o")],
    "Constraint": [("statement", 1, "text", "n"), ("polarity", 2, "text", "a"),
                   ("trigger", 3, "text", "o"), ("strength", 4, ("soft", "firm", "hard"), "n"),
                   ("source", 5, ("user_declared", "learned", "inferred"), "n")],
    "Capability": [("subject", 1, "text", "n"), ("capability", 2, "text", "n"),
                   ("parameters", 3, "bytes", "o"), ("verified", 4, "bool", "a"),
                   ("last_observed", 5, "time", "a")],
    "Pattern": [("statement", 1, "text", "n"), ("derived_from", 2, "texts", "o"),
                ("strength", 3, "f32", "a"), ("coverage", 4, "int", "a")],
}
NAMES = list(TYPES)
# What a member has that a caller leaves out, and that is written always.
UNSET = {"text": "", "bytes": None, "time": None, "f32": 0.0, "bool": False, "int": 0}


def member_map(members, value):
    made = {}
    for name, number, kind, rule in members:
        given = value.get(name)
        if isinstance(kind, tuple):
            kind = "text"
        if given is None and rule in "an":
            given = UNSET[kind]
        if rule == "p" and given is None or rule == "o" and given in (None, "", b"", 0, []):
            continue
        if isinstance(kind, list) and isinstance(kind[0], list):
            given = [member_map(kind[0], item) for item in given]
        elif isinstance(kind, list) and given is not None:
            given = member_map(kind, given)
        made[number] = Single(f32(given)) if kind == "f32" else given
    return made


def data_cbor(type_name, value):
    return cbor({0: 1, **member_map(TYPES[type_name], value)})


def check_members(members, value):
    """The first refusal of a value whose members have the right types."""
    for name, _, kind, rule in members:
        given = value.get(name)
        if rule == "n" and (given or "").strip() == "":
            return "FieldMissing"
        if isinstance(kind, tuple) and (given or "") != "" and given not in kind:
            return "InvalidArgument"
        if kind == "f32" and not 0 <= f32(given or 0.0) <= 1:
            return "InvalidArgument"
    return None


# --- forms (§4.2) ------------------------------------------------------------------------------


def show_time(seconds):
    if seconds is None:
        return "0001-01-01T00:00:00Z"
    epoch = datetime.datetime(1970, 1, 1)
    return (epoch + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def show_fraction(value, unit):
    whole, rest = divmod(value, unit)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0") if unit > 1 else ""
    return f"{whole}.{digits}" if digits else str(whole)


def show_duration(ns):
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    if ns == 0:
        return "0s"
    for unit, name in ((1, "ns"), (1000, "µs"), (10**6, "ms")):
        if ns < unit * 1000:
            return sign + show_fraction(ns, unit) + name
    minutes, rest = divmod(ns, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = show_fraction(rest, 10**9) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text


def cut(text, tokens):
    data = text.encode()
    if len(data) <= tokens * 4:
        return text
    kept = ""
    size = 0
    for char in text:
        size += len(char.encode())
        if size > tokens * 4 - 3:
            break
        kept += char
    return kept + "…"


def lines_of(type_name, v):
    """The short form, and the parts of the medium one."""
    get = lambda name: v.get(name) or ""  # noqa: E731
    size = lambda name: len(v.get(name) or [])  # noqa: E731
    counted = lambda label, name: [f"{label}={size(name)}"] if size(name) else []  # noqa: E731
    if type_name == "Identity":
        roles = v.get("roles") or []
        return (get("name") + (f" ({get('did')})" if get("did") else ""),
                counted("wallets", "wallets") + (["roles=" + ",".join(roles)] if roles else []) +
                counted("keys", "public_keys"))
    if type_name == "Fact":
        return (f"{get('predicate')}({get('subject')})={get('statement')}",
                (["as_of=" + show_time(v["as_of"])] if v.get("as_of") is not None else []) +
                (["source=" + get("source")] if get("source") else []))
    if type_name == "Preference":
        return (f"prefers {get('topic')} ({get('polarity')}, "
                f"strength={f32(v.get('strength') or 0.0):.2f})",
                [get("rationale")] if get("rationale") else [])
    if type_name == "Belief":
        return (f"{get('stance')} {get('statement')}",
                [f"{size('evidence_for')} for / {size('evidence_against')} against"])
    if type_name == "Event":
        cost = v.get("cost")
        return (f"{get('outcome')} {get('kind')}" +
                (f" with {get('counterparty')}" if get("counterparty") else "") +
                (f" cost={cost.get('amount') or ''}{cost.get('asset') or ''}"
                 if cost is not None else ""),
                (["duration=" + show_duration(v["duration"])]
                 if v.get("duration") is not None else []) + counted("artifacts", "artifacts") +
                (["intent=" + get("intent_ref")] if get("intent_ref") else []) +
                ([get("summary")] if get("summary") else []))
    if type_name == "Goal":
        return (f"[{get('status')}] {get('statement')}",
                (["by=" + show_time(v["horizon_end"])]
                 if v.get("horizon_end") is not None else []) +
                counted("criteria", "success_criteria") + counted("subgoals", "subgoals"))
    if type_name == "Constraint":
        return (f"[{get('strength')}] {get('polarity')} {get('statement')}",
                ["source=" + get("source")] +
                (["trigger=" + get("trigger")] if get("trigger") else []))
    if type_name == "Capability":
        return (f"{get('subject')} can {get('capability')} "
                f"({'' if v.get('verified') else 'un'}verified)",
                ["last_observed=" + show_time(v.get("last_observed"))])
    return (f"{get('statement')} (strength={f32(v.get('strength') or 0.0):.2f}, "
            f"coverage={v.get('coverage') or 0})",
            [f"derived from {size('derived_from')}"] if size("derived_from") else [])


def forms(type_name, value):
    short, parts = lines_of(type_name, value)
    medium = short + (" — " + ", ".join(parts) if parts else "")
    return {1: cut(short, 50), 2: cut(medium, 200)}


# --- schemes (§1.1) ----------------------------------------------------------------------------


class Scheme:
    def __init__(self, name):
        self.name = name
        self.old = name == "matrix-1"
        self.empty = [bytes(32)] * 257
        if self.old:
            self.empty[0] = sha(b"matrix.cortex.snapshot.smt.empty.v1")
            for i in range(256):
                self.empty[i + 1] = self.node(self.empty[i], self.empty[i])

    def node(self, left, right):
        return sha(b"matrix.cortex.snapshot.smt.node.v1" if self.old else b"\x01", left, right)

    def key(self, space, name):
        if self.old:
            return sha(f"matrix.cortex.snapshot.smt.key.{space}.v1".encode(), name)
        return sha(b"m/" if space == "memories" else b"", name)

    def value(self, record):
        return sha(b"matrix.cortex.snapshot.smt.value.v1" if self.old else b"", record)

    def leaf(self, key, value):
        return sha(b"matrix.cortex.snapshot.smt.leaf.v1" if self.old else b"\x00", key, value)

    def smt(self, pairs, depth=0):
        if not pairs:
            return self.empty[256 - depth]
        if len(pairs) == 1:
            key, value = pairs[0]
            hash_ = self.leaf(key, value)
            for at in range(255, depth - 1, -1) if self.old else ():
                other = self.empty[255 - at]
                bit = key[at // 8] >> (7 - at % 8) & 1
                hash_ = self.node(other, hash_) if bit else self.node(hash_, other)
            return hash_
        bit = lambda key: key[depth // 8] >> (7 - depth % 8) & 1  # noqa: E731
        return self.node(self.smt([p for p in pairs if not bit(p[0])], depth + 1),
                         self.smt([p for p in pairs if bit(p[0])], depth + 1))

    def journal(self, leaves):
        count = len(leaves)
        if not self.old:
            return self.tree([sha(b"\x00", leaf) for leaf in leaves]) if count else sha(b"")
        prefix = b"matrix.cortex.snapshot.mmr."
        bag = bytes(32)
        peaks, at = [], 0
        for height in reversed(range(count.bit_length())):
            if count >> height & 1:
                peaks.append(self.perfect(leaves[at:at + (1 << height)], prefix + b"node.v1"))
                at += 1 << height
        for i, peak in enumerate(reversed(peaks)):
            bag = peak if i == 0 else sha(prefix, b"bag.v1", peak, bag)
        return sha(prefix, b"root.v1", struct.pack(">Q", count), bag)

    def tree(self, hashes):
        """RFC 6962, by its own recursion."""
        if len(hashes) == 1:
            return hashes[0]
        split = 1 << (len(hashes) - 1).bit_length() - 1
        return sha(b"\x01", self.tree(hashes[:split]), self.tree(hashes[split:]))

    @staticmethod
    def perfect(hashes, domain):
        while len(hashes) > 1:
            hashes = [sha(domain, *hashes[i:i + 2]) for i in range(0, len(hashes), 2)]
        return hashes[0]

    def overall(self, journal, memories, edges):
        if not self.old:
            return sha(journal, memories, edges)
        return sha(b"matrix.cortex.snapshot.overall.v1\x01", journal, b"\x00\x02\x05edges", edges,
                   b"\x08memories", memories)


# --- salience and weights (§10.1) --------------------------------------------------------------


def clamp(value):
    return min(max(value, 0.0), 1.0)


def saturating(count):
    return clamp(f32(math.log(1.0 + count) / math.log(1001.0)))


def factors(s, now):
    age = max(0, now - s["used"])
    return [clamp(f32(math.exp(-(age / FACTOR_AGE)))), saturating(s["access"]),
            saturating(s["citations"]), clamp(f32(f32(s["importance"]) / 10.0))]


def total(values):
    sum_ = values[0]
    for value in values[1:]:
        sum_ = f32(sum_ + value)
    return sum_


def score(s, weights, now):
    whole = total(weights[:4])
    parts = [f32(w * f) for w, f in zip(weights, factors(s, now))]
    value = clamp(f32(total(parts) / whole) if whole > 0 else 0.0)
    return max(value, f32(0.7)) if s["pinned"] else value


def learn(weights, cited, decrement):
    """The new weights; None: skipped."""
    if not cited:
        return None
    means = [0.0] * 4
    for row in cited:
        means = [f32(a + b) for a, b in zip(means, row)]
    means = [f32(mean / len(cited)) for mean in means]
    whole = total(means)
    if not whole > 0:
        return None
    new = []
    for weight, mean in zip(weights, means):
        change = f32(f32(0.05) * f32(f32(mean / whole) - weight))
        new.append(max(0.0, f32(weight - change) if decrement else f32(weight + change)))
    new.append(weights[4])
    sum_ = total(new)
    return [f32(value / sum_) for value in new] if sum_ > 0 else None


# --- the calls (§10) ---------------------------------------------------------------------------


def uri_text(type_name, id_, version):
    number = int.from_bytes(id_, "big")
    ulid = "".join(CROCKFORD[number >> 5 * (25 - i) & 31] for i in range(26))
    return f"matrix://cortex/{type_name}/{ulid}#{version}"


def uri_parts(text):
    """Type, id, version; None when it is none."""
    if not text.startswith("matrix://cortex/") or "#" not in text:
        return None
    type_name, _, rest = text[16:].partition("/")
    ulid, _, version = rest.partition("#")
    if type_name not in TYPES or len(ulid) != 26 or not version.isdigit() or version[0] == "0":
        return None
    number = 0
    for char in ulid:
        if char not in CROCKFORD:
            return None
        number = number << 5 | CROCKFORD.index(char)
    return type_name, number.to_bytes(16, "big"), int(version)


class Refused(Exception):
    pass


class Ledger:
    def __init__(self, scheme, actor):
        self.scheme, self.actor = Scheme(scheme), actor
        self.leaves, self.heads, self.versions, self.edges = [], {}, {}, {}
        self.salience, self.dims, self.buckets, self.snapshots = {}, {}, {}, {}
        self.next_vertex, self.snapshot_count = 1, 0
        self.weights = [f32(w) for w in (0.25, 0.15, 0.30, 0.20, 0.10)]

    # roots

    def roots(self):
        memories = self.scheme.smt([(self.scheme.key("memories", id_), self.scheme.value(cbor(h)))
                                    for id_, h in self.heads.items()])
        edges = self.scheme.smt([(self.scheme.key("edges", key), self.scheme.value(cbor(e)))
                                 for key, e in self.edges.items()])
        journal = self.scheme.journal(self.leaves)
        return {"edges_root": edges.hex(), "journal_root": journal.hex(),
                "journal_size": len(self.leaves), "memories_root": memories.hex(),
                "overall_root": self.scheme.overall(journal, memories, edges).hex()}

    # one call

    def call(self, step):
        step = {name: value for name, value in step.items() if value is not None}
        try:
            getattr(self, "do_" + step["op"])(step, step["now_ns"])
        except Refused as why:
            return str(why)
        return None

    def entry(self, kind, now, by, payload):
        made = fields({1: len(self.leaves), 2: kind, 3: now}, f4=by.encode(), f5=payload)
        self.leaves.append(sha(b"matrix.cortex.journal.v1", cbor(made)))

    def by(self, step, name="by"):
        return step.get(name) or self.actor

    def find(self, text, need_version=True):
        type_name, id_, version = uri_parts(text)
        if id_ not in self.heads:
            raise Refused("NotFound")
        kept = self.heads[id_]
        if NAMES[kept[2] - 1] != type_name:
            raise Refused("TypeMismatch")
        if need_version and version > kept[3]:
            raise Refused("NotFound")
        return id_, kept, version

    # memories

    def check_provenance(self, given):
        if given.get("source", "user_input") not in ("", "user_input", "derived", "observed",
                                                     "imported"):
            raise Refused("InvalidSource")
        for text in given.get("derived_from") or []:
            parts = uri_parts(text)
            if parts and (parts[1] not in self.heads):
                raise Refused("DanglingReference")

    def content(self, step, type_name):
        """Data, confidence and forms, checked."""
        value = step["value"]
        if step.get("empty_data"):
            raise Refused("EmptyData")
        why = check_members(TYPES[type_name], value)
        if why:
            raise Refused(why)
        confidence = f32(step.get("confidence") or 0.0) or 1.0
        if not 0 <= confidence <= 1:
            raise Refused("InvalidArgument")
        self.check_provenance(step.get("provenance") or {})
        given = step.get("forms")
        if given is None:
            return confidence, forms(type_name, value)
        if len(given["short"].encode()) > 200 or len(given["medium"].encode()) > 800:
            raise Refused("FormTooLong")
        return confidence, {1: given["short"], 2: given["medium"]}

    def put_version(self, kind, id_, kept, step, confidence, now):
        p = step.get("provenance") or {}
        provenance = fields({1: p.get("source") or "user_input"},
                            f2=p.get("derived_from"), f3=p.get("attestations"),
                            f4=bytes.fromhex(p.get("signed_by") or ""),
                            f6=bytes.fromhex(p.get("signature") or ""))
        if p.get("signed_at") is not None:
            provenance[5] = p["signed_at"]
        by = self.by(step, "created_by")
        version = fields({1: id_, 2: kept[3], 3: kept[2],
                          4: data_cbor(NAMES[kept[2] - 1], step["value"]), 5: now // 10**9, 6: by,
                          8: Single(confidence), 9: provenance, 10: kept[11], 12: bytes(32)},
                         f11=step.get("forms") is not None)
        if step.get("expires_at") is not None:
            version[7] = step["expires_at"]
        hash_ = sha(b"matrix.cortex.memory.v1", bytes([kept[2]]), cbor(version))
        self.entry(kind, now, by, cbor({0: 1, 1: id_, 2: kept[3], 3: kept[2], 4: hash_}))
        self.versions[id_] = step["value"], kept[11]
        self.versions[id_, kept[3]] = self.versions[id_]
        kept[9] = now // 10**9

    def check_head(self, step):
        tags = step.get("tags") or []
        if len(tags) > 16:
            raise Refused("TooManyTags")
        for tag in tags:
            if len(tag.encode()) > 64:
                raise Refused("TagTooLong")
            if tag == "":
                raise Refused("InvalidArgument")
        frames = step.get("frames") or []
        if len(frames) > 16:
            raise Refused("TooManyFrames")
        if any(f["verb"] > 10 or f["kind"] > 8 or not 1 <= len(f["ref"].encode()) <= 256
               for f in frames):
            raise Refused("InvalidArgument")
        if step.get("importance", 0) > 10 or step.get("visibility", 1) > 3:
            raise Refused("InvalidArgument")

    @staticmethod
    def put_lists(kept, step):
        for name, number, make in (
                ("tags", 7, list),
                ("frames", 12, lambda l: [{1: f["verb"], 2: f["kind"], 3: f["ref"]} for f in l])):
            if name in step:
                kept.pop(number, None)
                if step[name]:
                    kept[number] = make(step[name])

    def do_write(self, step, now):
        self.check_head(step)
        code = step["type"] if isinstance(step["type"], int) else NAMES.index(step["type"]) + 1
        if not 1 <= code <= len(NAMES):
            raise Refused("InvalidType")
        confidence, made = self.content(step, NAMES[code - 1])
        id_ = bytes.fromhex(step["id"])
        if id_ in self.heads:
            raise Refused("AlreadyExists")
        kept = {1: id_, 2: code, 3: 1, 4: step.get("actor_scope") or self.actor,
                5: step.get("visibility", 1), 6: step.get("importance", 0), 11: made}
        self.put_lists(kept, step)
        self.put_version("write", id_, kept, step, confidence, now)
        self.heads[id_] = kept
        self.salience[id_] = {"used": now, "access": 0, "citations": 0, "importance": kept[6],
                              "pinned": bool(step.get("pinned"))}

    def do_update(self, step, now):
        id_, kept, version = self.find(step["uri"], need_version=False)
        if version != kept[3]:
            raise Refused("VersionConflict")
        if 8 in kept:
            raise Refused("Tombstoned")
        confidence, made = self.content(step, NAMES[kept[2] - 1])
        kept = {**kept, 3: kept[3] + 1, 11: made}
        self.put_version("update", id_, kept, step, confidence, now)
        self.heads[id_] = kept
        self.salience[id_].update(used=now, importance=kept[6])

    def do_update_head(self, step, now):
        if not set(step) & {"tags", "frames", "importance", "visibility"}:
            raise Refused("NoOp")
        self.check_head(step)
        id_, kept, _ = self.find(step["uri"])
        if 8 in kept:
            raise Refused("Tombstoned")
        if step.get("if_head", cbor_hash(kept)) != cbor_hash(kept):
            raise Refused("HeadConflict")
        kept = {**kept, 9: now // 10**9}
        self.put_lists(kept, step)
        for name, number in (("importance", 6), ("visibility", 5)):
            kept[number] = step.get(name, kept[number])
        self.entry("update_head", now, self.by(step),
                   cbor({0: 1, 1: id_, 2: kept[3], 3: sha(cbor(kept))}))
        self.heads[id_] = kept
        self.salience[id_].update(used=now, importance=kept[6])

    def do_tombstone(self, step, now):
        id_, kept, _ = self.find(step["uri"])
        if 8 in kept:
            return
        self.entry("tombstone", now, self.by(step), id_)
        kept[8] = {1: step.get("reason", ""), 2: now // 10**9, 3: self.by(step)}
        kept[9] = now // 10**9

    def do_redact_memory(self, step, now):
        id_, kept, _ = self.find(step["uri"])
        if self.versions[id_] is None:
            return
        kept = {n: v for n, v in kept.items() if n not in (7, 10, 12)}
        kept[11] = {1: "", 2: ""}
        if 8 not in kept:
            kept[8] = {1: step.get("reason", ""), 2: now // 10**9, 3: self.by(step)}
            kept[9] = now // 10**9
        self.heads[id_] = kept
        self.versions[id_] = None
        self.entry("redact_memory", now, self.by(step),
                   cbor(fields({0: 1, 1: id_, 2: kept[3], 3: sha(cbor(kept))},
                               f4=step.get("reason"))))

    # edges

    @staticmethod
    def edge_key(step):
        return bytes.fromhex(step["src"]), step["type"], bytes.fromhex(step["dst"])

    def do_add_edge(self, step, now):
        src, type_, dst = self.edge_key(step)
        if type_ > 14:
            raise Refused("InvalidEdgeType")
        if src == dst:
            raise Refused("SelfEdge")
        if src not in self.heads or dst not in self.heads:
            raise Refused("DanglingEdge")
        key = src + bytes([type_]) + dst
        if key in self.edges and 7 not in self.edges[key]:
            return
        weight = Single(f32(step.get("weight") or 0.0))
        self.edges[key] = fields({1: type_, 2: src, 3: dst, 4: now // 10**9}, f5=self.by(step),
                                 f6=weight, f11=bytes.fromhex(step.get("data") or ""))
        self.entry("add_edge", now, self.by(step),
                   cbor(fields({0: 1, 1: type_, 2: src, 3: dst}, f4=weight)))

    def do_remove_edge(self, step, now):
        src, type_, dst = self.edge_key(step)
        if type_ > 14:
            raise Refused("InvalidEdgeType")
        edge = self.edges.get(src + bytes([type_]) + dst)
        if edge is None or 7 in edge:
            return
        edge.update(fields({7: True, 8: now // 10**9, 10: self.by(step)}, f9=step.get("reason")))
        self.entry("remove_edge", now, self.by(step),
                   cbor(fields({0: 1, 1: type_, 2: src, 3: dst, 5: True, 7: self.by(step)},
                               f4=edge.get(6), f6=step.get("reason"))))

    # work

    def do_embed(self, step, now):
        id_ = bytes.fromhex(step["id"])
        vector = [Single(f32(value)) for value in step["vector"]]
        if step.get("model", "") == "" or not vector:
            raise Refused("InvalidArgument")
        if id_ not in self.heads:
            raise Refused("NotFound")
        kept = self.heads[id_]
        if 8 in kept:
            raise Refused("Tombstoned")
        if kept[3] != step.get("source_version", 0):
            raise Refused("StaleVersion")
        if self.dims.setdefault(step["model"], len(vector)) != len(vector):
            raise Refused("DimMismatch")
        vertex = kept[10][1] if 10 in kept else self.next_vertex
        self.next_vertex = max(self.next_vertex, vertex + 1)
        hash_ = sha(b"matrix.cortex.vector.v1", *(struct.pack(">f", value) for value in vector))
        self.entry("embed", now, "embedder",
                   cbor({0: 1, 1: id_, 2: vertex, 3: step["model"], 4: len(vector), 5: hash_,
                         6: kept[3]}))
        kept[10] = {1: vertex, 2: step["model"], 3: len(vector)}

    def is_needed(self, kept, version, id_):
        value = self.versions[id_, version][0]
        return (kept[2] == 1 or kept[2] == 7 and value.get("strength") == "hard" or
                kept[2] == 6 and value.get("status") == "active")

    def do_compact(self, step, now):
        if not step.get("in_context"):
            raise Refused("EmptyInContext")
        for name in ("intent", "step"):
            if not step.get(name):
                raise Refused("Empty" + name.capitalize())
        kept_uris, rest, seen, tokens = [], [], set(), 0
        bearing = {uri_parts(uri)[1] for uri in step.get("load_bearing") or []}
        for i, uri in enumerate(step["in_context"] + (step.get("load_bearing") or [])):
            if i == len(step["in_context"]) and not kept_uris + rest:
                raise Refused("EmptyInContext")
            if uri_parts(uri)[1] in seen:
                continue
            id_, kept, version = self.find(uri)
            seen.add(id_)
            if 8 in kept:
                continue
            made = self.versions[id_, version][1]
            if id_ in bearing or self.is_needed(kept, version, id_):
                kept_uris.append(uri)
                tokens += -(-len(made[2].encode()) // 4)
            else:
                tokens += -(-len(made[1].encode()) // 4)
                rest.append({0: uri, 1: made[1],
                             2: Single(score(self.salience[id_], self.weights, now))})
        if not kept_uris + rest:
            raise Refused("EmptyInContext")
        budget = step.get("budget") or 4000
        if tokens > budget:
            raise Refused("BudgetUnreachable")
        record = {0: 1, 1: step["intent"], 2: step["step"], 3: now, 4: budget,
                  5: kept_uris or None, 6: rest or None}
        self.entry("compact", now, "",
                   cbor({0: 1, 1: step["intent"], 2: step["step"], 3: budget, 4: len(kept_uris),
                         5: len(rest), 6: sha(cbor(record))}))

    def take_token(self, intent, now):
        """One each second and intent, five at once."""
        level, at = self.buckets.get(intent, (5 * 10**9, now))
        level = min(5 * 10**9, level + max(0, now - at))
        if level < 10**9:
            raise Refused("RateLimited")
        self.buckets[intent] = level - 10**9, max(at, now)

    def do_attest(self, step, now):
        if not step.get("intent"):
            raise Refused("EmptyIntent")
        if not step.get("cited"):
            raise Refused("EmptyCitations")
        if len(step["cited"]) > 256:
            raise Refused("TooManyCitations")
        self.take_token(step["intent"], now)
        failed = step.get("outcome") == "failure"
        reason = step.get("reason", "")
        delta = 1 if not failed else -1 if reason in BLAMES else 0
        cited, rows = [], []
        for text in step["cited"]:
            parts = uri_parts(text)
            kept = self.heads.get(parts[1]) if parts else None
            if (kept is None or parts[1] in cited or 8 in kept or parts[2] > kept[3] or
                    NAMES[kept[2] - 1] != parts[0]):
                continue
            s = self.salience[parts[1]]
            s["citations"] = max(0, s["citations"] + delta)
            s["access"] += delta > 0
            s["used"] = now
            cited.append(parts[1])
            rows.append(factors(s, now))
        seq = len(self.leaves)
        self.entry("attest", now, self.by(step),
                   cbor(fields({0: 1, 1: step["intent"], 2: int(failed)}, f3=reason, f4=cited)))
        new = learn(self.weights, rows, delta < 0)
        payload = fields({0: 1, 1: seq, 2: Single(f32(0.05))}, f3=delta < 0, f4=new is None)
        for i in range(5):
            payload[5 + i] = Single(self.weights[i])
            payload[10 + i] = Single((new or self.weights)[i])
        self.entry("learn_weights", now, self.by(step), cbor(payload))
        self.weights = new or self.weights

    def do_raw(self, step, now):
        self.entry(step.get("kind") or "raw", now, step.get("by", ""),
                   bytes.fromhex(step.get("payload") or ""))

    def do_snapshot(self, step, now):
        roots = self.roots()
        dead = sum(8 in kept for kept in self.heads.values())
        body = fields({0: 1 if self.scheme.old else 2, 1: self.actor, 2: self.snapshot_count,
                       3: len(self.leaves), 4: bytes.fromhex(roots["journal_root"]),
                       5: {name: bytes.fromhex(roots[name + "_root"])
                           for name in ("edges", "memories")},
                       6: bytes.fromhex(roots["overall_root"]), 7: now,
                       11: fields({1: len(self.heads) - dead, 2: len(self.edges)}, f3=dead)},
                      f8=step.get("trigger"), f12="" if self.scheme.old else self.scheme.name)
        self.snapshots[self.snapshot_count] = sha(b"cortex.manifest.v1", cbor(body))
        self.snapshot_count += 1

    def do_drop_snapshot(self, step, now):
        if step["seq"] not in self.snapshots:
            raise Refused("SnapshotNotFound")
        self.entry("drop_snapshot", now, self.by(step),
                   cbor({0: 1, 1: step["seq"], 2: self.snapshots.pop(step["seq"])}))


def cbor_hash(value):
    return sha(cbor(value)).hex()
