#!/usr/bin/env python3
"""judge.py - whether a fleet's tables hold what its nodes acknowledged.  Reads tables and the nodes' logs, and
shares no code with the program.

    J1  each acknowledged key is in log/x of its part, at the offset that was acknowledged
    J2  no key is there twice, acknowledged or not
    J3  one chain a part: from its base on numbers without a gap, each head recomputed, the last one that of the
        part; the base and the commits before it are those that a commit of the chain states; and the digest of
        each commit whose nonce is there, from its extents
    J4  epochs never go back, and no epoch is used by two owners
    J5  a lease was taken only after the one before had ended
    J6  extents belong to a file and a commit, which was not pruned unless the file is derived, stay in their chunk, and do not overlap; log/x has no holes
    J7  a page of the derived file is what was written last, or newer
    J8  what is lost was noticed: the part has an event "stopped"
    J9  names are those of the last acknowledged change, or of one that was tried and not acknowledged

Refused writes of nodes that had lost their part ("Fenced") are counted.
"""
import collections
import hashlib
import struct

CHUNK = 65536


def digest(*parts):
    h = hashlib.sha256()
    for part in parts:
        h.update(part)
    return h.digest()


def u64(*numbers):
    return struct.pack(f">{len(numbers)}Q", *numbers)


class Report:
    def __init__(self):
        self.findings = []
        self.acknowledged = self.found = self.commits = self.recomputed = self.overwritten = self.extents = 0
        self.refused = self.stopped = self.takes = self.pages = self.names = self.pruned = 0
        self.longest_take_ms = 0.0
        self.errors = collections.Counter()

    def find(self, rule, text):
        self.findings.append((rule, text))

    def rules(self):
        return sorted({rule for rule, _ in self.findings})

    def line(self):
        return (f"{self.acknowledged} acknowledged, {self.found} found in {self.commits} commits "
                f"({self.recomputed} digests recomputed, {self.overwritten} overwritten, {self.pruned} pruned), {self.extents} extents, "
                f"{self.pages} pages, {self.names} names, {self.refused} refused, {self.takes} takes, longest take "
                f"{self.longest_take_ms:.0f} ms after the lease, {len(self.findings)} findings")


class Said:
    """What nodes tried and were told."""

    def __init__(self):
        self.keys = {}  # key: (part, num, offset)
        self.owners = collections.defaultdict(set)  # (part, epoch): owners
        self.epochs = {}  # (part, num): epoch
        self.pages = {}  # (part, page): (num, sum)
        self.names = {}  # (part, name): (num, file)
        self.tried = collections.defaultdict(set)  # (part, name): files


def rows(server, sql):
    text = server.sql(sql, timeout=300)
    return [line.split("\t") for line in text.split("\n")] if text else []


def read_line(words, said, report):
    verb = words[0]
    if verb == "ack" and len(words) == 7:
        part, num, epoch, offset = int(words[2]), int(words[3]), int(words[4]), int(words[6])
        said.keys[words[1]] = (part, num, offset)
        said.owners[part, epoch].add(words[5])
    elif verb == "ackpage" and len(words) == 5:
        part, num, page, value = map(int, words[1:])
        if num >= said.pages.get((part, page), (-1, 0))[0]:
            said.pages[part, page] = (num, value)
    elif verb == "tryname" and len(words) == 4:
        said.tried[int(words[1]), words[2]].add(int(words[3]))
    elif verb == "ackname" and len(words) == 5:
        place, num, file = (int(words[1]), words[3]), int(words[2]), int(words[4])
        if num >= said.names.get(place, (-1, 0))[0]:
            said.names[place] = (num, file)
    elif not verb.startswith(("try", "ack")):
        report.errors[verb] += 1


def read_logs(paths, report):
    said, acknowledged = Said(), collections.Counter()
    tried = collections.Counter()
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if not words:
                    continue
                read_line(words, said, report)
                if words[0] == "tryname":
                    tried[int(words[1]), words[2], int(words[3])] += 1
                elif words[0] == "ackname" and len(words) == 5:
                    acknowledged[int(words[1]), words[3], int(words[4])] += 1
    # What was tried once more than it was acknowledged may or may not be there.
    said.tried = collections.defaultdict(set)
    for (part, name, file), count in tried.items():
        if count > acknowledged[part, name, file]:
            said.tried[part, name].add(file)
    report.refused = report.errors["Fenced"]
    return said


class Part:
    """All rows of a part."""

    def __init__(self, server, row):
        self.number = int(row[0])
        self.id, self.next, self.head, self.epoch = bytes.fromhex(row[1]), int(row[2]), bytes.fromhex(row[3]), int(row[4])
        self.base, self.base_head, self.base_num = int(row[5]), bytes.fromhex(row[6]), int(row[7])
        where = f"WHERE part = {self.number}"
        self.commits = [(int(num), int(epoch), *map(bytes.fromhex, rest)) for num, epoch, *rest in rows(
            server, "SELECT num, epoch, encode(prev, 'hex'), encode(head, 'hex'), encode(digest, 'hex'), "
            f"coalesce(encode(nonce, 'hex'), '') FROM cortex_fleet.cx_commit {where} ORDER BY num")]
        self.files = {int(file): (name, derived == "t", int(size)) for file, name, derived, size in rows(
            server, f"SELECT file, name, derived, size FROM cortex_fleet.cx_file {where}")}
        self.extents = [(int(file), int(chunk), int(start), int(num), bytes.fromhex(data))
                        for file, chunk, start, num, data in rows(
                            server, "SELECT file, chunk, start, num, encode(bytes, 'hex') FROM cortex_fleet.cx_extent "
                            f"{where} ORDER BY file, chunk, start")]

    def number_of(self, name):
        return next((file for file, (other, _, _) in self.files.items() if other == name), None)


def judge_base(part, report):
    """The head before the first commit of the chain."""
    if part.base == 0:
        return digest(b"cortex.fleet.part.v1", part.id, u64(part.number))
    kept = [c for c in part.commits if c[0] < part.base]
    report.pruned += part.base - len(kept)
    rows_of = digest(b"cortex.fleet.kept.v1", *(
        piece for num, epoch, prev, stored, own, _ in kept for piece in (u64(num, epoch), prev, stored, own)))
    stated = next((c[4] for c in part.commits if c[0] == part.base_num >= part.base), None)
    if stated != digest(b"cortex.fleet.base.v1", u64(part.base), part.base_head, u64(len(kept)), rows_of):
        report.find("J3", f"part {part.number}: commit {part.base_num} does not state the base {part.base}")
    return part.base_head


def judge_chain(part, report):
    head, last_epoch = judge_base(part, report), 0
    if [c[0] for c in part.commits if c[0] >= part.base] != list(range(part.base, part.next)):
        report.find("J3", f"part {part.number}: {len(part.commits)} commits are not numbered {part.base} to {part.next - 1}")
    written = collections.defaultdict(list)
    for file, chunk, start, num, data in part.extents:
        if file in part.files and not part.files[file][1]:
            written[num].append((file, chunk, start, data))
    for num, epoch, prev, stored, own, nonce in part.commits:
        if num < part.base:
            if stored != digest(b"cortex.fleet.commit.v1", prev, u64(part.number, epoch, num), own):
                report.find("J3", f"part {part.number}, commit {num}, before the base: its hash is another one")
        elif prev != head or stored != digest(b"cortex.fleet.commit.v1", head, u64(part.number, epoch, num), own):
            report.find("J3", f"part {part.number}, commit {num}: does not follow the one before it")
        if epoch < last_epoch:
            report.find("J4", f"part {part.number}, commit {num}: epoch {epoch} after {last_epoch}")
        head, last_epoch = (stored if num >= part.base else head), max(last_epoch, epoch)
        if not nonce:
            report.overwritten += num in written
            continue
        report.recomputed += 1
        if own != digest(b"cortex.fleet.change.v1", nonce, *(
                piece for f, c, s, data in sorted(written[num]) for piece in (u64(f, c, s, len(data)), data))):
            report.find("J3", f"part {part.number}, commit {num}: its bytes are not those that were written")
    if head != part.head:
        report.find("J3", f"part {part.number}: its head is not that of its last commit")
    if last_epoch > part.epoch:
        report.find("J4", f"part {part.number}: a commit of epoch {last_epoch}, and the part is at {part.epoch}")


def judge_extents(part, report):
    last, there = None, {c[0] for c in part.commits}
    for file, chunk, start, num, data in part.extents:
        where = f"part {part.number}, file {file}, chunk {chunk} + {start}"
        if file not in part.files:
            report.find("J6", f"{where}: of no file")
        elif part.files[file][0].startswith("log/s") and 0 < part.files[file][2] <= chunk * CHUNK:
            report.find("J6", f"{where}: the file was cut at {part.files[file][2]}")
        if not 0 <= num < part.next:
            report.find("J6", f"{where}: of commit {num}, and the part has {part.next}")
        elif num not in there and not (num < part.base and file in part.files and part.files[file][1]):
            report.find("J6", f"{where}: of commit {num}, which is not there")
        if not data or start < 0 or chunk < 0 or start + len(data) > CHUNK:
            report.find("J6", f"{where}: {len(data)} bytes do not fit in the chunk")
        if last is not None and last[:2] == (file, chunk) and start < last[2]:
            report.find("J6", f"{where}: overlaps with the extent before it")
        last = (file, chunk, start + len(data))


def text_of(part, report):
    """log/x, which has no holes."""
    file, out = part.number_of("log/x"), []
    end = 0
    for own, chunk, start, _, data in part.extents:
        if own != file:
            continue
        if chunk * CHUNK + start != end:
            report.find("J6", f"part {part.number}: log/x has a hole at {end}")
            out.append(b"\0" * max(chunk * CHUNK + start - end, 0))
        out.append(data)
        end = chunk * CHUNK + start + len(data)
    return b"".join(out)


def judge_pages(part, said, report):
    file = part.number_of("x.db")
    there = {chunk * 4 + start // 4096: (num, data) for own, chunk, start, num, data in part.extents if own == file}
    for (number, page), (num, value) in said.pages.items():
        if number != part.number:
            continue
        report.pages += 1
        found, data = there.get(page, (-1, b""))
        if found < num or (found == num and int.from_bytes(digest(data)[:3], "big") != value):
            report.find("J7", f"part {number}: page {page} of commit {num} is not there")


def judge_names(part, said, report):
    names = {name: file for file, (name, _, _) in part.files.items()}
    for (number, name), (num, file) in said.names.items():
        if number != part.number:
            continue
        report.names += 1
        found = names.get(name, 0)
        if found != file and found not in said.tried[number, name]:
            report.find("J9", f"part {number}: {name} is file {found}, and commit {num} made it {file}")


def judge_events(server, report):
    for part, epoch, late_ms, early in rows(
            server, "SELECT part, epoch, coalesce(extract(epoch FROM at - prior_until) * 1000, 0), prior_until >= at FROM "
            "cortex_fleet.cx_event WHERE kind = 'take' ORDER BY id"):
        report.takes += 1
        report.longest_take_ms = max(report.longest_take_ms, float(late_ms))
        if early == "t":
            report.find("J5", f"part {part}: epoch {epoch} was taken {-float(late_ms):.0f} ms before the lease ended")
    stopped = {int(part) for (part,) in rows(
        server, "SELECT DISTINCT part FROM cortex_fleet.cx_event WHERE kind = 'stopped'")}
    report.stopped = len(stopped)
    return stopped


def judge_keys(said, places, epochs, bases, stopped, report):
    for key, found in places.items():
        if len(found) > 1:
            report.find("J2", f"key {key} is there {len(found)} times: {found}")
    for key, (part, num, offset) in said.keys.items():
        report.acknowledged += 1
        found = places.get(key, [])
        if not found or ((part, num) not in epochs and num >= bases.get(part, 0)):
            noticed = part in stopped
            report.find("lost, noticed" if noticed else "J1",
                        f"key {key}, acknowledged in part {part}, commit {num} at {offset}, is not there")
            if not noticed:
                report.find("J8", f"part {part}: lost keys, and no node stopped it")
        elif (part, offset) not in found:
            report.find("J1", f"key {key}, acknowledged in part {part} at {offset}, is at {found}")
        else:
            report.found += 1


def judge(server, logs):
    """Judges the fleet of a server by its tables and the logs of its nodes."""
    report = Report()
    said = read_logs(logs, report)
    places, epochs, bases = collections.defaultdict(list), {}, {}
    for (part, epoch), who in said.owners.items():
        if len(who) > 1:
            report.find("J4", f"part {part}: epoch {epoch} was used by {sorted(who)}")
    stopped = judge_events(server, report)
    for row in rows(server, "SELECT part, encode(id, 'hex'), next, encode(head, 'hex'), epoch, base, "
                    "coalesce(encode(base_head, 'hex'), ''), coalesce(base_num, 0) FROM cortex_fleet.cx_part ORDER BY part"):
        part = Part(server, row)
        bases[part.number] = part.base
        report.commits += len(part.commits)
        report.extents += len(part.extents)
        judge_chain(part, report)
        judge_extents(part, report)
        if part.number not in stopped:
            judge_pages(part, said, report)
            judge_names(part, said, report)
        epochs.update({(part.number, commit[0]): commit[1] for commit in part.commits})
        at = 0
        for line in text_of(part, report).split(b"\n"):
            if line.startswith(b"key "):
                places[line[4:].decode(errors="replace")].append((part.number, at))
            at += len(line) + 1
    judge_keys(said, places, epochs, bases, stopped, report)
    return report
