#!/usr/bin/env python3
"""judge.py - whether a fleet's tables hold what its nodes acknowledged.  Reads tables and the nodes' logs, and
shares no code with the program.

    J1  each acknowledged key is in exactly one frame, at the place that was acknowledged
    J2  no key is there twice, acknowledged or not
    J3  one chain a part: numbers without a gap, each head recomputed, the last one that of the part
    J4  epochs never go back, and no epoch is used by two owners
    J5  a lease was taken only after the one before had ended
    J6  cx_seen names the place of each key
    J7  erasable parts belong to frames that have one
    J8  what is lost was noticed: the part has an event "stopped"

Refused writes of nodes that had lost their part ("Fenced") are counted.
"""
import collections
import hashlib
import struct


def digest(*parts):
    h = hashlib.sha256()
    for part in parts:
        h.update(part)
    return h.digest()


class Report:
    def __init__(self):
        self.findings = []
        self.acknowledged = self.found = self.groups = self.refused = self.stopped = self.takes = 0
        self.longest_take_ms = 0.0
        self.errors = collections.Counter()

    def find(self, rule, text):
        self.findings.append((rule, text))

    def rules(self):
        return sorted({rule for rule, _ in self.findings})

    def line(self):
        return (f"{self.acknowledged} acknowledged, {self.found} found in {self.groups} groups, {self.refused} refused, "
                f"{self.takes} takes, longest take {self.longest_take_ms:.0f} ms after the lease, "
                f"{len(self.findings)} findings")


def rows(server, sql):
    text = server.sql(sql, timeout=300)
    return [line.split("\t") for line in text.split("\n")] if text else []


def frames_of(data):
    """The guarded parts of a group's frames and the sizes of their erasable parts; None when it is not one."""
    out, at = [], 0
    while data[at:at + 4] == b"Frm\xf1":
        guarded, erasable = struct.unpack(">II", data[at + 4:at + 12])
        out.append((data[at + 16:at + 16 + guarded], erasable))
        at += (16 + guarded + 7) // 8 * 8
    if data[at:at + 4] != b"End\xd1" or len(data) != at + 32:
        return None
    count, _number = struct.unpack(">IQ", data[at + 4:at + 16])
    return out if count == len(out) else None


def read_logs(paths, report):
    """Acknowledged keys with their places, and owners of epochs."""
    acks, owners = {}, collections.defaultdict(set)
    for path in paths:
        with open(path, encoding="utf-8") as f:
            for line in f:
                words = line.split()
                if words[:1] == ["ack"] and len(words) == 7:
                    key, part, num, frame, epoch = words[1], *map(int, words[2:6])
                    acks[key] = (part, num, frame)
                    if epoch:
                        owners[part, epoch].add(words[6])
                elif words[:1] != ["try"] and words:
                    report.errors[words[0]] += 1
    report.refused = report.errors["Fenced"]
    return acks, owners


def judge_chain(part, row, groups, report, places):
    home_id, next_num, head_now = bytes.fromhex(row[1]), int(row[2]), bytes.fromhex(row[3])
    head, last_epoch = digest(b"cortex.fleet.part.v1", home_id, bytes([part])), 0
    if [g[0] for g in groups] != list(range(len(groups))) or len(groups) != next_num:
        report.find("J3", f"part {part}: {len(groups)} groups are not numbered 0 to {next_num - 1}")
    for num, epoch, prev, stored, count, data in groups:
        head_new = digest(b"cortex.fleet.group.v1", head, bytes([part]), struct.pack(">QQ", epoch, num),
                          digest(data))
        if prev != head or stored != head_new:
            report.find("J3", f"part {part}, group {num}: does not follow the one before it")
        if epoch < last_epoch:
            report.find("J4", f"part {part}, group {num}: epoch {epoch} after {last_epoch}")
        head, last_epoch = stored, max(last_epoch, epoch)
        frames = frames_of(data)
        if frames is None or len(frames) != count:
            report.find("J3", f"part {part}, group {num}: its bytes are not those of a group")
            continue
        for index, (guarded, erasable) in enumerate(frames):
            if guarded.startswith(b"key "):
                places[guarded[4:].strip().decode()].append((part, num, index, erasable))
    if head != head_now:
        report.find("J3", f"part {part}: its head is not that of its last group")
    if last_epoch > int(row[4]):
        report.find("J4", f"part {part}: a group of epoch {last_epoch}, and the part is at {row[4]}")


def read_groups(server, part):
    out = []
    for num, epoch, prev, head, count, data in rows(
            server, "SELECT num, epoch, encode(prev, 'hex'), encode(head, 'hex'), frames, encode(coalesce(bytes, (SELECT "
            "string_agg(p.bytes, '' ORDER BY piece) FROM cortex_fleet.cx_piece p WHERE p.part = g.part AND p.num = "
            f"g.num)), 'hex') FROM cortex_fleet.cx_group g WHERE part = {part} ORDER BY num"):
        out.append((int(num), int(epoch), bytes.fromhex(prev), bytes.fromhex(head), int(count), bytes.fromhex(data)))
    return out


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


def judge_keys(server, acks, places, stopped, report):
    for key, found in places.items():
        if len(found) > 1:
            report.find("J2", f"key {key} is there {len(found)} times: {found}")
    for key, place in acks.items():
        report.acknowledged += 1
        found = places.get(key, [])
        if not found:
            noticed = place[0] in stopped
            report.find("lost, noticed" if noticed else "J1", f"key {key}, acknowledged at {place}, is not there")
            if not noticed:
                report.find("J8", f"part {place[0]}: lost keys, and no node stopped it")
        elif place not in [f[:3] for f in found]:
            report.find("J1", f"key {key}, acknowledged at {place}, is at {found}")
        else:
            report.found += 1
    seen = {(int(part), int(num), int(frame)): bytes.fromhex(key).decode() for part, key, num, frame in rows(
        server, "SELECT part, encode(key, 'hex'), num, frame FROM cortex_fleet.cx_seen")}
    there = {f[:3]: key for key, found in places.items() for f in found}
    for place in set(seen) ^ set(there):
        report.find("J6", f"{place}: key {seen.get(place)} in cx_seen, {there.get(place)} in the group")
    report.find("J6", "a key has two places") if len(set(seen.values())) != len(seen) else None


def judge(server, logs):
    """Judges the fleet of a server by its tables and the logs of its nodes."""
    report = Report()
    acks, owners = read_logs(logs, report)
    places = collections.defaultdict(list)
    for (part, epoch), who in owners.items():
        if len(who) > 1:
            report.find("J4", f"part {part}: epoch {epoch} was used by {sorted(who)}")
    for row in rows(server, "SELECT part, encode(home_id, 'hex'), next, encode(head, 'hex'), epoch FROM "
                    "cortex_fleet.cx_part WHERE next > 0 OR epoch > 0 ORDER BY part"):
        groups = read_groups(server, int(row[0]))
        report.groups += len(groups)
        judge_chain(int(row[0]), row, groups, report, places)
    live = {tuple(map(int, row)) for row in rows(
        server, "SELECT part, num, frame, length(bytes) - 8 FROM cortex_fleet.cx_live")}
    expected = {f[:3]: f[3] for found in places.values() for f in found if f[3]}
    for part, num, frame, size in live:
        erasable = expected.get((part, num, frame))
        if erasable is None or size != (erasable + 7) // 8 * 8:
            report.find("J7", f"part {part}, group {num}, frame {frame}: an erasable part that no frame has")
    if len(live) != len(expected):
        report.find("J7", f"{len(expected) - len(live)} erasable parts are not there, and nothing was erased")
    stopped = judge_events(server, report)
    judge_keys(server, acks, places, stopped, report)
    return report
