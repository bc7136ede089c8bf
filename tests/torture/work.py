"""Clients that write, prove, erase, read and check, each as a process of its own: every operation is
logged before it is attempted, and again with its answer."""
import json
import random
import re
import threading
import time

REFUSED = {  # what may be answered with 1 or 2, because of what others or kills have done
    "VersionConflict", "Tombstoned", "AlreadyRedacted", "AlreadySealed", "SnapshotNotFound", "NotFound",
    "DanglingEdge", "StaleVersion", "NotMember", "NotAbsent", "ManifestRootMismatch", "NoActor", "Erased",
    "Redacted", "DanglingReference"}
# What may be answered with 3 while the world is as it should be: another process is at it.
BUSY = {"Locked", "HolderGone", "HolderEnds", "AnswerLost"}
KINDS = ("note.a", "note.b.c", "torture.entry")
EDGES = ("references", "caused_by")


def ulid(uri):
    return re.search(r"[0-9A-HJKMNP-TV-Z]{26}", uri).group()


class Client(threading.Thread):
    """A thread that runs one operation after the other, until the world ends."""

    def __init__(self, world, server, name, seed):
        super().__init__(name=name, daemon=True)
        self.world, self.server, self.oplog = world, server, world.oplog
        self.rng = random.Random(f"{seed}-{world.generation}-{name}")
        self.pause = world.options.pause

    def run(self):
        try:
            while not self.world.stopping.is_set():
                with self.world.gate:
                    operation = self.choose()
                    operation()
                    self.world.count(operation.__name__.strip("_"))
                time.sleep(self.rng.uniform(0, 2 * self.pause))
        except Exception as why:  # whatever it is, it ends the torture with a failure
            if not self.world.defects:
                self.world.defects.append(f"{self.name}: {why!r}")
                import traceback
                traceback.print_exc()
            self.world.stopping.set()

    def choose(self):
        names, weights = zip(*self.operations())
        return self.rng.choices(names, weights)[0]

    def text(self, number):
        """Unique, so that what is found can be told from everything else."""
        return f"g{self.world.generation}-{number}-{self.rng.getrandbits(64):016x}"

    def cortex(self, *args, killable=True, **more):
        """Runs the program as this client's actor; sometimes it is killed."""
        kill = None
        if killable and self.rng.random() < self.world.options.kill_rate:
            kill = self.rng.choice((0.002, 0.008, 0.015, 0.03)) * self.rng.uniform(0.3, 3)
        more.setdefault("actor", self.actor)
        if kill is None:
            return self.world.run(*args, **more)
        with self.world.fault("killed"):
            return self.world.run(*args, kill_after=kill, **more)

    def settle(self, number, done, refusals=(), accepted=(0,)):
        """Logs how it ended; the answer, when it was done."""
        if done.killed:
            self.oplog.note(n=number, killed=True)
        elif done.code in accepted:
            return True
        elif done.code == 3:
            tag = done.tag()
            self.world.error(done.argv[1], tag)
            if tag == "Poisoned":
                self.server.failed = True
            if tag not in BUSY and not self.world.poisoned(tag) and \
                    not self.world.excused(done.began, done.ended):
                self.world.defect("an error while no fault is injected: " + done.said())
            nothing = b"nothing was done" in done.out + done.err
            self.oplog.note(n=number, failed=tag, nothing=nothing)
        elif done.code in (1, 2) and done.tag() in REFUSED.union(refusals):
            self.oplog.note(n=number, refused=done.tag())
        else:
            self.world.defect("not to be expected: " + done.said())
        return False


class Writer(Client):
    """Journal, memories, snapshots, proofs, checkpoints, erasures of one actor."""

    def __init__(self, world, server, name, seed, actor):
        super().__init__(world, server, name, seed)
        self.actor = actor
        self.uris, self.links, self.committed, self.snapshots, self.checkpoints = [], [], [], [], []

    def operations(self):
        some = len(self.uris) > 2
        yield self.append, 10
        yield self.write, 10
        yield self.apply, 3
        if some:
            yield self.update, 6
            yield self.link, 4
            yield self.tombstone, 1
            yield self.snapshot, 2
            yield self.prove_fresh, 2
            yield self.prove_entry, 2
            yield self.checkpoint, 3
            yield self.attest, 1
            yield self.embed, 1
            yield self.read_back, 4
            yield self.erase_memory, 0.7
            yield self.late, 1
        if self.committed:
            yield self.erase_entry, 1
        if self.links:
            yield self.unlink, 1
        if self.snapshots:
            yield self.drop, 0.7
            yield self.seal, 0.7

    def some(self, things):
        return self.rng.choice(things[-60:])

    # --- journal -------------------------------------------------------------------------------

    def append(self):
        committed = self.rng.random() < 0.4
        kind = self.rng.choice(KINDS)
        size = self.rng.choice((0, 0, 0, 100, 5000, 300000))
        number = self.oplog.attempt("append", actor=self.actor)
        payload = self.text(number) + "x" * size
        self.oplog.note(n=number, kind=kind, text=payload[:60], size=len(payload), committed=committed)
        done = self.cortex("append", kind, "-", "--json", *(["--committed"] if committed else []),
                           stdin=payload.encode())
        if self.settle(number, done):
            seq = done.json()["seq"]
            self.oplog.note(n=number, done=True, seq=seq)
            if committed:
                self.committed.append(seq)

    def apply(self):
        number = self.oplog.attempt("apply", actor=self.actor)
        texts = [self.text(number) for _ in range(self.rng.choice((2, 5, 40, 150)))]
        self.oplog.note(n=number, texts=texts)
        steps = "".join(json.dumps({"op": "raw", "kind": "torture.step", "payload": t.encode().hex()}) + "\n"
                        for t in texts)
        done = self.cortex("apply", "-", "--json", stdin=steps.encode())
        lines = [json.loads(line) for line in done.out.decode().splitlines() if line.endswith("}")]
        lines = [line for line in lines if "seq" in line]
        for line, text in zip(lines, texts):
            self.oplog.note(n=number, step=text, seq=line["seq"])
        if lines:
            self.remember(lines[-1])
        if self.settle(number, done):
            if len(lines) != len(texts):
                self.world.defect(f"{len(texts)} steps, {len(lines)} answers: " + done.said())
            self.oplog.note(n=number, done=True)

    def remember(self, root):
        self.oplog.note(root=root["journal_root"], size=root["journal_size"], actor=self.actor)

    # --- memories ------------------------------------------------------------------------------

    def data(self, number):
        return {"statement": self.text(number), "subject": self.rng.choice("abc"), "predicate": "is"}

    def write(self):
        number = self.oplog.attempt("write", actor=self.actor)
        data, tags = self.data(number), [self.rng.choice(("red", "green", "blue"))]
        self.oplog.note(n=number, data=data, tags=tags)
        more = ["--blind"] if self.rng.random() < 0.3 else []
        if self.uris and self.rng.random() < 0.3:
            more += ["--derived-from", self.some(self.uris)[0]]
        done = self.cortex("memory", "write", "Fact", json.dumps(data), "--tag", tags[0], "--json", *more)
        if self.settle(number, done):
            uri = done.json()["uri"]
            self.oplog.note(n=number, done=True, uri=uri)
            self.uris.append([uri, data])

    def update(self):
        known = self.some(self.uris)
        number = self.oplog.attempt("update", actor=self.actor, of=known[0])
        data = self.data(number)
        self.oplog.note(n=number, data=data)
        done = self.cortex("memory", "update", known[0], json.dumps(data), "--json")
        if self.settle(number, done):
            uri = done.json()["uri"]
            self.oplog.note(n=number, done=True, uri=uri)
            known[0], known[1] = uri, data
        elif done.killed or done.code == 3 or done.tag() == "VersionConflict":
            self.uris.remove(known)  # which version is current is not known any more

    def tombstone(self):
        known = self.some(self.uris)
        number = self.oplog.attempt("tombstone", actor=self.actor, of=known[0])
        done = self.cortex("memory", "tombstone", known[0], "--reason", "tortured", "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)
        self.uris.remove(known)

    def link(self):
        src, dst = self.some(self.uris)[0], self.some(self.uris)[0]
        if ulid(src) == ulid(dst):
            return
        kind = self.rng.choice(EDGES)
        number = self.oplog.attempt("link", actor=self.actor, src=ulid(src), kind=kind, dst=ulid(dst))
        done = self.cortex("memory", "link", ulid(src), kind, ulid(dst), "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True, uri=done.json()["uri"])
            self.links.append((ulid(src), kind, ulid(dst)))

    def unlink(self):
        edge = self.links.pop(self.rng.randrange(len(self.links)))
        number = self.oplog.attempt("unlink", actor=self.actor, src=edge[0], kind=edge[1], dst=edge[2])
        done = self.cortex("memory", "unlink", *edge, "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)

    def attest(self):
        number = self.oplog.attempt("attest", actor=self.actor)
        done = self.cortex("memory", "attest", self.text(number), self.rng.choice(("success", "failure")),
                           self.some(self.uris)[0], "--json", *[])
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)

    def embed(self):
        known = self.some(self.uris)
        number = self.oplog.attempt("embed", actor=self.actor)
        done = self.cortex("memory", "embed", known[0], json.dumps([self.rng.random() for _ in range(8)]),
                           "--model", "m", "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)

    def late(self):
        number = self.oplog.attempt("late", actor=self.actor)
        done = self.cortex("memory", "find", "--tag", "red", "--limit", "3", "--late", "which are red", "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)

    def read_back(self):
        """What was answered with 0 is there for the next process."""
        uri, data = self.some(self.uris)
        done = self.cortex("memory", "get", uri, "--json", killable=False)
        if done.code == 0:
            if done.json()["data"] != data:
                self.world.defect(f"another content of {uri}: {data}\n" + done.said())
        elif done.code != 3 or not self.world.excused(done.began, done.ended):
            self.world.defect("acknowledged and not there: " + done.said())

    # --- snapshots and what leaves the home -------------------------------------------------------

    def snapshot(self):
        number = self.oplog.attempt("snapshot", actor=self.actor)
        done = self.cortex("snapshot", "make", "--reason", "tortured", "--json")
        if self.settle(number, done):
            manifest = done.json()
            self.oplog.note(n=number, done=True, manifest=manifest)
            self.remember(manifest)
            self.snapshots.append(manifest["snapshot"])

    def drop(self):
        which = self.snapshots.pop(self.rng.randrange(len(self.snapshots)))
        number = self.oplog.attempt("drop", actor=self.actor, snapshot=which)
        done = self.cortex("snapshot", "drop", which, "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)

    def seal(self):
        which = self.some(self.snapshots)
        number = self.oplog.attempt("seal", actor=self.actor, snapshot=which)
        done = self.cortex("snapshot", "seal", which, "--sign", self.world.key(self.actor)[0], "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)

    def kept(self, number, what):
        return self.world.out / f"{number}.{what}"

    def prove_fresh(self):
        uri = self.some(self.uris)[0]
        number = self.oplog.attempt("prove", actor=self.actor, uri=uri)
        file = self.kept(number, "proof")
        done = self.cortex("prove", "--fresh", ulid(uri), "-o", file, "--json")
        if self.settle(number, done):
            answer = done.json()
            self.oplog.note(n=number, done=True, file=file.name, root=None, overall=answer["overall_root"])

    def prove_entry(self):
        number = self.oplog.attempt("prove_entry", actor=self.actor)
        file = self.kept(number, "entry")
        done = self.cortex("prove", "--entry", 0, "-o", file, "--json")
        if self.settle(number, done, refusals=("OutOfRange",)):
            answer = done.json()
            self.remember(answer)
            self.oplog.note(n=number, done=True, file=file.name, journal_root=answer["journal_root"],
                           journal_size=answer["journal_size"])

    def checkpoint(self):
        number = self.oplog.attempt("checkpoint", actor=self.actor)
        file, proof = self.kept(number, "checkpoint"), self.kept(number, "consistency")
        old = self.rng.choice(self.checkpoints) if self.checkpoints else None
        more = ["--consistency-from", old, "--proof", proof] if old else []
        done = self.cortex("checkpoint", "--sign", self.world.key(self.actor)[0], "-o", file, "--json", *more)
        if self.settle(number, done):
            answer = done.json()
            self.oplog.note(n=number, done=True, file=file.name, root=answer["root"], size=answer["size"])
            self.oplog.note(root=answer["root"], size=answer["size"], actor=self.actor)
            self.checkpoints.append(file)
            if old:
                self.world.check_proof("--key", self.world.key(self.actor)[1], "--from-checkpoint", old,
                                       "--checkpoint", file, proof)

    # --- destroying ----------------------------------------------------------------------------

    def erase_entry(self):
        seq = self.committed.pop(self.rng.randrange(len(self.committed)))
        number = self.oplog.attempt("erase_entry", actor=self.actor, seq=seq)
        with self.world.erasing():
            done = self.cortex("erase", seq, "--reason", "tortured", "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)

    def erase_memory(self):
        known = self.some(self.uris)
        self.uris.remove(known)
        number = self.oplog.attempt("erase_memory", actor=self.actor, of=known[0])
        with self.world.erasing():
            done = self.cortex("erase", known[0], "--reason", "tortured", "--json")
        if self.settle(number, done):
            self.oplog.note(n=number, done=True)


class Reader(Client):
    """Looks at a home that others write to: what it sees may never be taken back."""

    actor = "nobody"

    def operations(self):
        return [(self.roots, 6), (self.verify, 3), (self.log, 3), (self.status, 1), (self.backup, 1),
                (self.rebuild, 1), (self.lattice, 2), (self.query, 2), (self.contexts, 1), (self.tiles, 1)]

    def good(self, done, accepted=(0,), refusals=()):
        """Whether a reading command answered; an error needs an excuse."""
        if done.code in accepted:
            return True
        if done.killed:
            return False
        if done.code == 3:
            self.world.error(done.argv[1], done.tag())
            if done.tag() in BUSY or self.world.poisoned(done.tag()) or \
                    self.world.excused(done.began, done.ended):
                return False
        elif done.tag() in REFUSED.union(refusals):
            return False
        self.world.defect("a reader: " + done.said())
        return False

    def roots(self):
        done = self.cortex("roots", "--json")
        if self.good(done):
            for row in done.json()["actors"]:
                self.oplog.note(root=row["journal_root"], size=row["journal_size"], actor=row["actor"])

    def verify(self):
        """LIMITS: what is erased at that moment may be reported; then it is asked again."""
        for _ in range(5):
            began = time.monotonic()
            done = self.cortex("verify", "--home", self.world.home, "--json", killable=False)
            if done.code == 1 and self.world.erased_since(began):
                continue
            self.good(done)
            return

    def log(self):
        actor = self.rng.choice(self.world.actors)
        done = self.cortex("log", "--json", "-n", self.rng.choice((1, 20, 200)), actor=actor)
        if self.good(done):
            for line in done.out.splitlines():
                entry = json.loads(line)
                self.oplog.note(actor=actor, seen=entry["seq"], leaf=entry["leaf_hash"])

    def status(self):
        self.good(self.cortex("tables", "status", "--json"))

    def backup(self):
        """Holds by itself, and has all that was acknowledged before it was begun."""
        before = self.world.acknowledged()
        number = self.oplog.attempt("backup")
        copy = self.world.folder / f"backup-{number}"
        done = self.cortex("backup", copy, "--json")
        if self.good(done):
            found = self.world.must("roots", "--json", "--home", copy).json()["actors"]
            sizes = {row["actor"]: row["journal_size"] for row in found}
            for actor, size in before.items():
                if sizes.get(actor, 0) < size:
                    self.world.defect(f"{copy} has {sizes.get(actor, 0)} entries of {actor}, not {size}")
            verified = self.world.run("verify", "--home", copy, "--json", bad=False)
            if verified.code != 0 and not self.world.erased_since(done.began):
                self.world.defect("a backup: " + verified.said())
        self.world.remove(copy)

    def rebuild(self):
        words = self.rng.choice((["--verify-only"], []))
        began = time.monotonic()
        done = self.cortex("tables", "rebuild", "--json", *words, killable=not words)
        if done.code == 1 and self.world.erased_since(began):
            return
        self.good(done)

    def lattice(self):
        agent = self.rng.choice(self.world.agents)
        done = self.cortex("lattice", "verify", "@agent/" + agent, "--json")
        self.good(done, refusals=("NoBranch",))

    def query(self):
        done = self.cortex("trace", "query", "--json", "--limit", "50")
        self.good(done)

    def contexts(self):
        self.good(self.cortex("memory", "context", "--json", actor=self.rng.choice(self.world.actors)))

    def tiles(self):
        actor = self.rng.choice(self.world.actors)
        number = self.oplog.attempt("tiles")
        folder = self.world.folder / f"tiles-{number}"
        done = self.cortex("export", "tiles", folder, "--sign", self.world.key(actor)[0], "--json", actor=actor)
        if self.good(done):
            self.world.check_proof("--key", self.world.key(actor)[1], folder / "checkpoint")
        self.world.remove(folder)


class Archiver(Client):
    """Old segments of the log are compressed, or put elsewhere, and come back, while all others go on: through the
    server, through other commands' process, or by itself."""

    actor = "nobody"

    def __init__(self, world, server, name, seed):
        super().__init__(world, server, name, seed)
        self.to = world.disk / "archives"

    def operations(self):
        return [(self.archive, 5), (self.restore, 2), (self.space, 3)]

    def forms(self, *words):
        number = self.oplog.attempt("log " + words[0])
        done = self.cortex("log", *words, "--json")
        if self.settle(number, done, refusals=("ArchivesItself",)):
            self.oplog.note(n=number, done=True)
            self.world.archived += done.json()["changed"] if words[0] == "archive" else 0

    def archive(self):
        more = ["--to", self.to] if self.world.archives_elsewhere else []
        self.forms("archive", "--keep", self.rng.choice((1, 1, 2, 4)), *more)

    def restore(self):
        self.forms("restore")

    def space(self):
        """What the forms take adds up, and nothing that is not a form is left but what is being made."""
        done = self.cortex("status", "--json", killable=False)
        if done.code != 0:
            if not self.world.excused(done.began, done.ended) and done.tag() not in BUSY:
                self.world.defect("status: " + done.said())
            return
        ledger = done.json()["ledger"]
        if "error" in ledger:
            return
        took = ledger["archive"]
        if took["bytes_plain"] + took["bytes_compressed"] + took["bytes_elsewhere"] != ledger["log_bytes"]:
            self.world.defect("the forms of segments do not add up: " + done.said())
        if took["error"]:
            self.world.error("archiving", "noted")
