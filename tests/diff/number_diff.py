#!/usr/bin/env python3
"""Compares the number core with Python: reading with float(), writing with repr(), ordering with <.

    number_diff.py PROGRAM [COUNT [SEED]]

PROGRAM is built from number_diff.c.  The ECMAScript form is derived from repr's digits by the
steps of Number::toString.
"""
import decimal
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
from decimal import Decimal

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "cli")]
sys.dont_write_bytecode = True
from kit import BIN, arguments, finish_comparison  # noqa: E402

BATCH = 200000


def double_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def bits_of(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def digits_and_point(value):
    """|value| = 0.DIGITS * 10^point, from repr."""
    text = repr(abs(value))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    point = len(whole) + int(exponent or 0)
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    return stripped.rstrip("0"), point


def ecmascript(value):
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    digits, n = digits_and_point(value)
    k = len(digits)
    if k <= n <= 21:
        return sign + digits + "0" * (n - k)
    if 0 < n <= 21:
        return sign + digits[:n] + "." + digits[n:]
    if -6 < n <= 0:
        return sign + "0." + "0" * -n + digits
    exponent = f"e{n - 1:+d}"
    return sign + digits[0] + ("." + digits[1:] if k > 1 else "") + exponent


def random_double(rng):
    while True:
        value = double_of(rng.getrandbits(64))
        if math.isfinite(value):
            return value


def exact_text(value, rng):
    """A finite double's or a halfway point's exact decimal, as a literal."""
    text = format(value, "f") if rng.random() < 0.3 else format(value, "e")
    return text.replace("e+", rng.choice(["e+", "E", "e+0", "e"]))


def halfway(rng):
    """Exactly between two doubles, or a hair beside, thousands of digits away at times."""
    kind = rng.randrange(3)
    if kind == 0:
        low = rng.getrandbits(52)  # subnormal
    elif kind == 1:
        low = (rng.randrange(1, 0x7FE) << 52) + rng.getrandbits(52)
    else:
        low = (rng.randrange(1023 - 60, 1023 + 70) << 52) + rng.getrandbits(52)
    middle = (Decimal(double_of(low)) + Decimal(double_of(low + 1))) / 2
    text = format(middle, "f")
    if "." not in text:
        text += "."
    choice = rng.randrange(4)
    if choice == 1:
        text += "0" * rng.choice([1, 30, 800, 3000]) + "1"
    elif choice == 2:
        scale = Decimal(10) ** (middle.adjusted() - rng.choice([20, 25, 780, 1200]))
        text = format(middle - scale, "f")
    elif choice == 3 and "." in text:
        text = text[: rng.randrange(max(2, len(text) - 40), len(text) + 1)]
    if text.endswith("."):
        text += "0"
    return rng.choice(["", "-"]) + text


def short_decimal(rng):
    digits = rng.randrange(10 ** rng.randrange(1, 18))
    places = rng.randrange(0, 19)
    text = f"{digits:0{places + 1}d}"
    text = text[:-places] + "." + text[-places:] if places else text + ".0"
    return rng.choice(["", "-"]) + text


def literals(rng):
    """A literal and how many numbers it holds."""
    kind = rng.randrange(11)
    if kind <= 2:
        return repr(random_double(rng)), 1
    if kind == 3:  # near a power of ten or of two
        base = bits_of(float(f"1e{rng.randrange(-323, 309)}"))
        if rng.random() < 0.5:
            base = bits_of(math.ldexp(1.0, rng.randrange(-1074, 1024)))
        return repr(double_of(max(0, base + rng.randrange(-40, 41)))), 1
    if kind == 4:
        return halfway(rng), 1
    if kind <= 6:
        return short_decimal(rng), 1
    if kind == 7:  # any digits, any exponent
        digits = rng.getrandbits(rng.choice([8, 30, 53, 64, 70, 128]))
        text = str(digits)
        at = rng.randrange(1, len(text) + 1)
        if at < len(text):
            text = text[:at] + "." + text[at:]
        return f"{text}{rng.choice(['e', 'E'])}{rng.choice(['', '+', '-'])}{rng.randrange(360)}", 1
    if kind == 8:  # full precision written out: many digits
        return exact_text(Decimal(random_double(rng)), rng), 1
    if kind == 9:  # an integer read as a double
        return str(rng.getrandbits(rng.randrange(1, rng.choice([65, 130, 1030])))), 1
    return compared(rng), 2


def compared(rng):
    """Two literals, often close."""
    a = rng.choice([random_double(rng), math.ldexp(rng.random(), rng.randrange(0, 80)),
                    float(rng.getrandbits(rng.randrange(1, 70)))])
    if rng.random() < 0.3:
        a = math.floor(min(max(a, -1e300), 1e300))
    if rng.random() < 0.8:
        b = int(min(max(a, -1e308), 1e308)) + rng.choice([-1, 0, 0, 1, 10**20, -(10**400)])
    else:
        b = random_double(rng)
    pair = [str(a) if isinstance(a, int) else repr(a), str(b) if isinstance(b, int) else repr(b)]
    rng.shuffle(pair)
    return " ".join(pair)


def value_of(literal):
    return float(literal) if set(literal) & set(".eE") else int(literal)


def expected(literal, kind):
    if kind == 2:
        a, b = (value_of(text) for text in literal.split(" "))
        return str((a > b) - (a < b))
    value = float(literal)
    shown = (repr(value), ecmascript(value)) if math.isfinite(value) else ("inf", "inf")
    return "\t".join((*shown, f"{bits_of(value):016x}"))


def agrees(literal, kind, want, got):
    if kind == 2:
        return want == got
    rest, _, canonical = got.rpartition("\t")
    # The quick test may say no to anything, yes only to the canonical form; and it must be of use.
    if canonical == "1" and want.split("\t")[0] != literal:
        return False
    if canonical == "0" and "e" not in want and literal == want.split("\t")[0] and \
            len(literal.lstrip("-0.").replace(".", "")) < 15 and len(literal) < 19:
        return False
    return rest == want


def run_batch(batch):
    with tempfile.TemporaryFile("w+") as text:
        text.writelines(literal + "\n" for literal, _ in batch)
        text.seek(0)
        answers = subprocess.run([BIN], stdin=text, capture_output=True, check=True, text=True)
    lines = answers.stdout.split("\n")
    assert len(lines) == len(batch) + 1, (len(lines), len(batch))
    failed = 0
    for (literal, kind), got in zip(batch, lines):
        want = expected(literal, kind)
        if not agrees(literal, kind, want, got):
            failed += 1
            if failed <= 10:
                print(f"FAIL {literal[:300]}\n  expected {want}\n  got      {got}")
    return failed


def main():
    count, seed = [int(word) for word in arguments + ["20000", "20261121"][len(arguments):]]
    rng = random.Random(seed)
    sys.set_int_max_str_digits(0)
    context = decimal.getcontext()
    context.prec, context.Emin, context.Emax = 4000, -9999, 9999
    failed = done = 0
    while done < count:
        batch = [literals(rng) for _ in range(min(BATCH, count - done))]
        failed += run_batch(batch)
        done += len(batch)
    print(f"{count - failed} of {count} literals agree", file=sys.stderr)
    finish_comparison(not failed)


main()
