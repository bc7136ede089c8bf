#!/usr/bin/env python3
"""Writes src/json/number_tables.h, and proves what number.c takes for granted about it.

    tools/make_number_tables.py            write the header to standard output
    tools/make_number_tables.py --check    compare the checked-in header and run the proofs

The table holds, for k = FIRST..LAST, the 128 leading bits of 10^k, truncated.
"""
import pathlib
import sys

FIRST, LAST = -342, 324
EXACT_LAST = 55  # 5^55 is the last power of five below 2^128
HEADER = pathlib.Path(__file__).resolve().parent.parent / "src" / "json" / "number_tables.h"


def floor_log2_pow10(k):
    return (10**k).bit_length() - 1 if k >= 0 else -((10**-k - 1).bit_length())


def leading_bits(k):
    shift = 127 - floor_log2_pow10(k)
    if k >= 0:
        return 10**k << shift if shift >= 0 else 10**k >> -shift
    return (1 << shift) // 10**-k


def header_text():
    lines = [
        "/*",
        " * number_tables.h - powers of ten for number.c.  Made by tools/make_number_tables.py.",
        " */",
        "#ifndef CX_JSON_NUMBER_TABLES_H",
        "#define CX_JSON_NUMBER_TABLES_H",
        "",
        "#include <stdint.h>",
        "",
        f"#define POWER_FIRST ({FIRST})",
        f"#define POWER_LAST {LAST}",
        f"#define POWER_EXACT_LAST {EXACT_LAST} /* entries 0..this are the power itself */",
        "",
        "/* The 128 leading bits of 10^k, truncated; the upper 64 first. */",
        f"static const uint64_t power_table[{LAST - FIRST + 1}][2] = {{",
    ]
    for k in range(FIRST, LAST + 1):
        bits = leading_bits(k)
        high, low = bits >> 64, bits & (2**64 - 1)
        lines.append(f"    {{UINT64_C(0x{high:016x}), UINT64_C(0x{low:016x})}}, /* 1e{k} */")
    return "\n".join(lines + ["};", "", "#endif", ""])


def check_logarithms():
    """The three multiply-and-shift logarithms of number.c, over every argument they can get."""
    for k in range(-400, 401):
        assert k * 1741647 >> 19 == floor_log2_pow10(k), k
    for q in range(-1100, 1101):
        for numerator, offset in ((4, 0), (3, 524031)):
            k = q * 1262611 - offset >> 22
            # 10^k <= numerator/4 * 2^q < 10^(k+1), all made integers
            scale = 4 * 10**400 * 2**1200
            value = numerator * 10**400 * 2 ** (1200 + q)
            assert scale * 10**k <= value if k >= 0 else scale <= value * 10**-k, q
            k += 1
            assert scale * 10**k > value if k >= 0 else scale > value * 10**-k, q


def smallest_residue(factor, modulus, limit):
    """The smallest non-zero (factor * x) % modulus for 1 <= x <= limit.

    Walks the records of the sequence from below (low) and from above (high) as the Euclidean
    algorithm does, jumping over all steps of one kind at once.
    """
    low, low_x = factor % modulus, 1  # smallest residue so far
    high, high_x = modulus - low, 1  # smallest distance to the modulus so far, and where
    best = low if low else modulus
    if low == 0:
        return modulus
    while True:
        # Subtract the upper gap from low as often as possible: new minima.
        steps = min((low - 1) // high, (limit - low_x) // high_x)
        low -= steps * high
        low_x += steps * high_x
        best = min(best, low)
        if low_x + high_x > limit:
            return best
        steps = min((high - 1) // low, (limit - high_x) // low_x)
        if steps == 0 and (low - 1) // high == 0:
            # low == high: their sum is a multiple of the modulus, and the pattern repeats.
            return best
        high -= steps * low
        high_x += steps * low_x
        if low_x + high_x > limit:
            return best


def check_residues():
    """smallest_residue against brute force."""
    for modulus in range(2, 60):
        for factor in range(1, modulus):
            for limit in (1, 2, 5, 17, 70):
                every = [factor * x % modulus for x in range(1, limit + 1)]
                expected = min([residue for residue in every if residue] or [modulus])
                assert smallest_residue(factor, modulus, limit) == expected, (factor, modulus)


def check_margin():
    """
    Shortest output compares x * 2^q * 10^-k with integers, x being 4c, 4c - 2, 4c + 2 (and 4c - 1
    for a power of two).  It sees the product through a 128-bit power rounded up, hence too large by
    less than 2^-68, and calls it integral when the fraction it sees is below 2^-68.  That is right
    when no product lies closer than 2^-67 to an integer without being one.
    """
    check_residues()
    closest = 1
    for q in range(-1074, 972):
        for offset in (0, 524031):
            k = q * 1262611 - offset >> 22
            numerator = 2 ** max(q, 0) * 10 ** max(-k, 0)
            modulus = 2 ** max(-q, 0) * 10 ** max(k, 0)
            if modulus == 1:
                continue
            if offset == 0:
                factors = (2 * numerator % modulus, -2 * numerator % modulus)
                residues = [smallest_residue(f, modulus, 2**54) for f in factors if f]
            else:
                products = [x * numerator % modulus for x in (2**54, 2**54 - 1, 2**54 + 2)]
                residues = [r for p in products if p for r in (p, modulus - p)]
            closest = max([closest] + [modulus // residue for residue in residues])
    print(f"closest product that is not integral: 2^-{closest.bit_length()} from an integer")
    assert closest < 2**67


def main():
    if sys.argv[1:] == ["--check"]:
        assert HEADER.read_text() == header_text(), "the checked-in table differs"
        assert all(leading_bits(k) * 2 ** max(floor_log2_pow10(k) - 127, 0)
                   == 10**k << max(127 - floor_log2_pow10(k), 0) for k in range(EXACT_LAST + 1))
        check_logarithms()
        check_margin()
        print("number tables hold")
    else:
        sys.stdout.write(header_text())


main()
