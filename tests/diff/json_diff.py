#!/usr/bin/python3
"""Differential test: our JSON reader and canonical writers against Python's json module.

    json_diff.py PROGRAM [DOCUMENTS [SEED]]

Random documents, good and damaged, go to PROGRAM (json_diff.c) and to json.loads made strict
(UTF-8 only, no duplicate names, no NaN or Infinity).  Both must refuse the same inputs and write
the same bytes, with and without separators.  The last line is `N passed, N failed, N skipped`.
"""
import json
import pathlib
import random
import struct
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "cli")]
sys.dont_write_bytecode = True
from kit import BIN, arguments, finish_comparison  # noqa: E402

DEPTH = 1024

STRINGS = [
    "", "a", "key", "node_id", "agent_id", "timestamp", "confidence", "confidence_level",
    "a" * 7, "a" * 8, "a" * 9, "a" * 15, "a" * 16, "a" * 17, "a" * 33, "\x00", "\x1f", "\x7f",
    "\x80", "\u00e9", "e\u0301", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\uff5e",
    "\U00010000", "\U0001f600", "\U0010ffff", "\ud800", "\udbff", "\udc00", "\udfff",
    "\ud83dx", "\udc00\ud800", "\"", "\\", "/", "</script>", "\b\f\n\r\t", "line one\nline two\n",
    "\u2028\u2029", "0", "10", "2", "B", "_", "a\x00", "a\x00b", "caf\u00e9 \u4e2d\u6587",
]
NUMBERS = [
    "0", "-0", "1", "-1", "10", "9007199254740993", "-9223372036854775808",
    "18446744073709551616", "1" + "0" * 400, "0.0", "-0.0", "1.0", "1e15", "1e16", "1E+2", "100.0",
    "9999999999999998.0", "99999999999999990.0", "0.0001", "0.00001", "1e-7", "1e23", "1e-400",
    "5e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "9007199254740993.0",
    "3.14159265358979323846", "0.1", "0.30000000000000004", "123456789012345.6", "1e0", "0e0",
    "-1.5E-3", "1.10", "1e400", "-1e999", "1.7976931348623159e308", "1e00000000000000000000001",
    "0.000000000000000000000000000000001e40", "1" * 320 + ".5", "1" * 300 + "e-300",
]
BROKEN = [
    b"01", b"-01", b"+1", b".5", b"1.", b"1.e1", b"1e", b"1e+", b"-", b"--1", b"0x1", b"NaN", b"-NaN",
    b"Infinity", b"-Infinity", b"nul", b"nulll", b"True", b"tru", b"'a'", b"\"\\x\"", b"\"\\u12\"",
    b"\"\\u12g4\"", b"\"\\ud800\\u12\"", b"\"\t\"", b"\"\n\"", b"\"\x00\"", b"\"\xff\"", b"\"\xc0\x80\"",
    b"\"\xc3\"", b"\"\xed\xa0\x80\"", b"\"\xf4\x90\x80\x80\"", b"\"\xe2\x82\"", b"[1,]", b"[,1]", b"[1 2]",
    b"{\"a\"}", b"{\"a\":}", b"{\"a\":1,}", b"{,}", b"{a:1}", b"{\"a\":1,\"a\":2}",
    b"{\"a\":1,\"b\":2,\"\\u0061\":3}", b"[1}", b"{]", b"]", b"}", b"", b" ", b"1 2", b"[] []",
    b"\xef\xbb\xbf[]", b"[1]\x00", b"[\x0b1]", b"[1]\xa0", b"\"", b"\"a", b"\"\\", b"//", b"/**/1",
]


class Refused(Exception):
    pass


def strict_pairs(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Refused("duplicate")
    return members


def refuse(word):
    raise Refused(word)


def depth_of(data):
    """Deepest nesting of brackets outside of strings."""
    deepest = depth = 0
    inside = escaped = False
    for byte in data:
        if inside:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def has_infinity(value):
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, float) and item in (float("inf"), float("-inf")):
            return True
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return False


def python_answer(data):
    """What the program must answer; b"-" for refused, whatever the reason."""
    try:
        text = data.decode("utf-8")
        if text.startswith("\ufeff"):
            raise Refused("mark")
        value = json.loads(text, object_pairs_hook=strict_pairs, parse_constant=refuse)
    except (ValueError, Refused):
        return b"-"
    if depth_of(data) > DEPTH:
        return b"-"
    if has_infinity(value):
        return b"!"
    compact = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return ("+" + compact + "\t" + json.dumps(value, sort_keys=True)).encode("ascii")


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def space(self):
        if self.random.random() < 0.8:
            return ""
        return "".join(self.random.choice(" \t\n\r") for _ in range(self.random.randrange(1, 20)))

    def string(self):
        pick = self.random.random()
        if pick < 0.4:
            text = self.random.choice(STRINGS)
        elif pick < 0.7:
            text = "".join(self.random.choice(STRINGS) for _ in range(self.random.randrange(1, 9)))
        elif pick < 0.9:
            text = "".join(chr(self.random.randrange(0x20, 0x7F))
                           for _ in range(self.random.randrange(0, 80)))
        else:
            text = "".join(chr(self.random.randrange(0, 0x11000 if self.random.random() < .5 else 0x300))
                           for _ in range(self.random.randrange(0, 40)))
        return self.spell(text)

    def spell(self, text):
        """One of the many ways to write a string."""
        out = ['"']
        short = {8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 92: "\\\\", 47: "\\/"}
        eager = self.random.choice([0.0, 0.0, 0.02, 0.5])
        for char in text:
            code = ord(char)
            must = code < 0x20 or code in (34, 92) or 0xD800 <= code < 0xE000
            if code in short and (must or self.random.random() < eager) and self.random.random() < .8:
                out.append(short[code])
            elif must or self.random.random() < eager:
                units = [code]
                if code > 0xFFFF:
                    units = [0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code - 0x10000 & 0x3FF)]
                for unit in units:
                    form = "\\u%04x" if self.random.random() < .5 else "\\u%04X"
                    out.append(form % unit)
            else:
                out.append(char)
        out.append('"')
        return "".join(out)

    def number(self):
        pick = self.random.random()
        if pick < 0.3:
            return self.random.choice(NUMBERS[:-7] if self.random.random() < .95 else NUMBERS)
        if pick < 0.6:
            return str(self.random.randrange(-10 ** self.random.randrange(1, 25),
                                             10 ** self.random.randrange(1, 25)))
        if pick < 0.75:
            return repr(struct.unpack(">d", struct.pack(
                ">Q", self.random.randrange(0, 0x7FE << 52)))[0])
        literal = str(self.random.randrange(-10 ** 9, 10 ** 9))
        if self.random.random() < .8:
            literal += "." + "".join(self.random.choice("0123456789")
                                     for _ in range(self.random.randrange(1, 20)))
        if self.random.random() < .3:
            literal += (self.random.choice("eE") + self.random.choice(["", "+", "-"]) +
                        str(self.random.randrange(0, 300)))
        return literal

    def value(self, depth):
        pick = self.random.random()
        if depth <= 0 or pick < 0.5:
            kind = self.random.random()
            if kind < 0.45:
                return self.string()
            if kind < 0.85:
                return self.number()
            return self.random.choice(["null", "true", "false", "[]", "{}", "[ ]", "{\n}"])
        count = self.random.choice([0, 1, 2, 3, 5, 8, 13, 40 if self.random.random() < .2 else 4])
        if pick < 0.7:
            return "[" + ",".join(self.space() + self.value(depth - 1) + self.space()
                                  for _ in range(count)) + "]"
        members = {}
        for _ in range(count):
            name = self.string()
            members.setdefault(json.loads(name), name)
        names = list(members.values())
        if self.random.random() < 0.01 and names:
            names.append(self.spell(json.loads(names[0])))
        return "{" + ",".join(self.space() + name + self.space() + ":" + self.space() +
                              self.value(depth - 1) + self.space() for name in names) + "}"

    def deep(self):
        depth = self.random.choice([DEPTH - 1, DEPTH, DEPTH + 1, 300])
        opening = "".join(self.random.choice(["[", '{"a":']) for _ in range(depth - 1)) + "["
        closing = "".join("]" if char == "[" else "}" for char in reversed(opening) if char in "[{")
        return opening + closing

    def damage(self, data):
        """Cuts, doubles, flips or inserts something."""
        pick = self.random.random()
        at = self.random.randrange(0, len(data) + 1)
        if pick < 0.3:
            return data[:at]
        if pick < 0.5:
            return data[:at] + self.random.choice(BROKEN) + data[at:]
        if pick < 0.7:
            return data[:at] + bytes([self.random.randrange(256)]) + data[at:]
        if pick < 0.85:
            return data[:at] + data[at + 1:]
        return data[:at] + bytes([self.random.randrange(256)]) + data[at + 1:]

    def document(self):
        pick = self.random.random()
        if pick < 0.02:
            return self.random.choice(BROKEN)
        if pick < 0.025:
            return self.deep().encode()
        if pick < 0.027:
            digits = self.random.choice([4299, 4300, 4301])
            return b"[" + self.random.choice([b"", b"-"]) + b"7" * digits + b"]"
        text = self.space() + self.value(self.random.randrange(0, 5)) + self.space()
        data = text.encode("utf-8", "strict")
        return self.damage(data) if self.random.random() < 0.3 else data


def main():
    wanted, seed = [int(word) for word in arguments + ["5000", "8259"][len(arguments):]]
    sys.setrecursionlimit(20000)
    maker = Maker(seed)
    passed = failed = refused = 0
    while passed + failed < wanted:
        batch = [maker.document() for _ in range(min(1000, wanted - passed - failed))]
        frames = b"".join(struct.pack(">I", len(data)) + data for data in batch)
        child = subprocess.run([BIN], input=frames, stdout=subprocess.PIPE, check=False)
        answers = child.stdout.split(b"\n")[:-1]
        if child.returncode != 0 or len(answers) != len(batch):
            print("the program ended early, %d" % child.returncode, file=sys.stderr)
            failed += len(batch)
            continue
        for data, got in zip(batch, answers):
            expected = python_answer(data)
            refused += expected == b"-"
            if got == expected or (expected == b"-" and got.startswith(b"-U_")):
                passed += 1
                continue
            failed += 1
            if failed <= 10:
                print("FAIL %r\n  expected %r\n  got      %r" % (data[:300], expected[:300], got[:300]),
                      file=sys.stderr)
    print("seed %d: %d of %d documents agree, %d of them refused by both"
          % (seed, passed, wanted, refused), file=sys.stderr)
    finish_comparison(failed == 0 and passed != 0)


if __name__ == "__main__":
    main()
