#!/usr/bin/env python3
"""Writes tests/vectors/crypto/ed25519_edges.json: Ed25519 signatures on which libraries disagree.

Usage: make_ed25519_vectors.py > tests/vectors/crypto/ed25519_edges.json

The curve arithmetic is written out from RFC 8032 §5.1 and uses no library, so the expected answers
do not come from the code under test.  Each case is judged here by the rule of
tests/vectors/crypto/README.md ("good"), and by two other readings of the RFC for information:
"lenient" decodes points modulo p and allows small order, with the equation as it stands;
"cofactored" is the same with both sides multiplied by 8.  Output is the same on every run.
"""
import hashlib
import json

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def recover_x(y, sign, lenient):
    """RFC 8032 §5.1.3; lenient ignores that x = 0 has no negative."""
    xx = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P != 0:
        x = x * SQRT_M1 % P
    if (x * x - xx) % P != 0:
        return None
    if x == 0 and sign == 1 and not lenient:
        return None
    return P - x if x % 2 != sign and x != 0 else x


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    k = D * x1 * x2 * y1 * y2 % P
    x3 = (x1 * y2 + x2 * y1) * pow(1 + k, -1, P) % P
    y3 = (y1 * y2 + x1 * x2) * pow(1 - k, -1, P) % P
    return x3, y3


ZERO = (0, 1)


def times(n, point):
    result = ZERO
    while n > 0:
        if n & 1:
            result = add(result, point)
        point = add(point, point)
        n >>= 1
    return result


def negative(point):
    return -point[0] % P, point[1]


def encode(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def decode(data, lenient=True):
    number = int.from_bytes(data, "little")
    y, sign = number & (1 << 255) - 1, number >> 255
    if y >= P and not lenient:
        return None
    x = recover_x(y % P, sign, lenient)
    return None if x is None else (x, y % P)


B_Y = 4 * pow(5, -1, P) % P
B = (recover_x(B_Y, 0, False), B_Y)


def hash_to_int(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def small_order_points():
    """T, 2T, ... 8T = identity for a T of order 8."""
    y = 2
    while True:
        x = recover_x(y, 0, False)
        if x is not None:
            torsion = times(L, (x, y))
            if times(4, torsion) != ZERO:
                return [times(i, torsion) for i in range(1, 9)]
        y += 1


TORSION = small_order_points()


def judge(key, message, signature):
    """(good, lenient, cofactored)"""
    r_bytes, s = signature[:32], int.from_bytes(signature[32:], "little")
    a, r = decode(key), decode(r_bytes)
    if a is None or r is None or s >= L:
        return False, False, False
    h = hash_to_int(r_bytes, key, message) % L
    left, right = times(s, B), add(r, times(h, a))
    lenient = left == right
    cofactored = times(8, left) == times(8, right)
    strict = decode(key, False) == a and decode(r_bytes, False) == r
    small = times(8, a) == ZERO or times(8, r) == ZERO
    return lenient and strict and not small, lenient, cofactored


SECRET = hash_to_int(b"cortex edge key") % L
A = times(SECRET, B)
cases = []


def case(comment, key, message, signature):
    good, lenient, cofactored = judge(key, message, signature)
    cases.append({"comment": comment, "key": key.hex(), "message": message.hex(),
                  "signature": signature.hex(), "good": good, "lenient": lenient,
                  "cofactored": cofactored})


def sign_with(r_bytes, key, message, nonce, secret):
    """S = nonce + H(R, A, M) * secret, whatever the encodings of R and A are."""
    s = (nonce + hash_to_int(r_bytes, key, message) * secret) % L
    return r_bytes + s.to_bytes(32, "little")


def sign(message, nonce=None, torsion_r=ZERO, torsion_a=ZERO):
    """A signature whose A and R carry the given parts of small order."""
    nonce = hash_to_int(b"nonce", message) % L if nonce is None else nonce
    key = encode(add(A, torsion_a))
    r_bytes = encode(add(times(nonce, B), torsion_r))
    return key, sign_with(r_bytes, key, message, nonce, SECRET)


def search(wanted, make):
    """The first message for which make(message) satisfies wanted(h)."""
    for counter in range(1000):
        message = b"try %d" % counter
        key, signature = make(message)
        if wanted(hash_to_int(signature[:32], key, message) % L):
            return key, message, signature
    raise AssertionError("no message found")


def ordinary_cases():
    for message in (b"", b"evidence", bytes(range(256))):
        key, signature = sign(message)
        case("ordinary, %d bytes" % len(message), key, message, signature)
    key, signature = sign(b"evidence")
    case("other message", key, b"Evidence", signature)
    case("other key", encode(times(SECRET + 1, B)), b"evidence", signature)
    case("A with the other sign", key[:31] + bytes([key[31] ^ 128]), b"evidence", signature)
    case("R with the other sign", key, b"evidence",
         signature[:31] + bytes([signature[31] ^ 128]) + signature[32:])
    case("all zero signature", key, b"evidence", bytes(64))
    case("all zero key and signature", bytes(32), b"evidence", bytes(64))
    off_curve = next(y for y in range(2, 100) if recover_x(y, 0, False) is None)
    off_curve = off_curve.to_bytes(32, "little")
    case("A is no point", off_curve, b"evidence", signature)
    case("R is no point", key, b"evidence", off_curve + signature[32:])


def scalar_cases():
    message = b"scalar"
    key, signature = sign(message)
    s = int.from_bytes(signature[32:], "little")
    for k in range(1, 16):
        if s + k * L < 1 << 256:
            case("S + %d L" % k, key, message,
                 signature[:32] + (s + k * L).to_bytes(32, "little"))
    for bit in (253, 254, 255):
        case("S with bit %d set" % bit, key, message,
             signature[:32] + (s | 1 << bit).to_bytes(32, "little"))
    for name, value in (("0", 0), ("L - 1", L - 1), ("L", L), ("L + 1", L + 1),
                        ("2^252", 1 << 252), ("2^256 - 1", (1 << 256) - 1)):
        case("S = " + name, key, message, signature[:32] + value.to_bytes(32, "little"))
    # S = 0 and S = L where the equation wants 0: R = -h A needs h before R, so A is the identity.
    identity = encode(ZERO)
    case("S = 0, A and R the identity", identity, message, identity + bytes(32))
    case("S = L, A and R the identity", identity, message, identity + L.to_bytes(32, "little"))


def encodings_of_small_order():
    """Every 32 bytes that decode, leniently, to a point of small order."""
    found = []
    for point in TORSION:
        for y in (point[1], point[1] + P):
            for sign_bit in (0, 1):
                if y < 1 << 255:
                    data = (y | sign_bit << 255).to_bytes(32, "little")
                    if decode(data) == point and data not in found:
                        found.append(data)
    return sorted(found)


def name_encoding(data):
    return "canonical" if decode(data, False) is not None else "non-canonical"


def small_order_cases():
    nonce = hash_to_int(b"small order") % L
    r_bytes = encode(times(nonce, B))
    for data in encodings_of_small_order():
        point = decode(data)

        def make_a(message):
            return data, sign_with(r_bytes, data, message, nonce, 0)

        # h A = identity makes the equation hold as it stands.
        key, message, signature = search(lambda h: times(h, point) == ZERO, make_a)
        case("A of small order, %s, equation holds" % name_encoding(data), key, message, signature)

        key = encode(A)
        signature = sign_with(data, key, b"small R", 0, SECRET)
        case("R of small order, %s" % name_encoding(data), key, b"small R", signature)


def mixed_order_cases():
    for index in (1, 2, 4):
        torsion = TORSION[index - 1]

        def make_a(message):
            return sign(message, torsion_a=torsion)

        def make_both(message):
            return sign(message, torsion_a=torsion, torsion_r=negative(torsion))

        key, message, signature = search(lambda h: times(h, torsion) == ZERO, make_a)
        case("A of mixed order, equation holds", key, message, signature)
        key, message, signature = search(lambda h: times(h, torsion) != ZERO, make_a)
        case("A of mixed order, holds only times 8", key, message, signature)
        key, message, signature = search(lambda h: times(h, torsion) == torsion, make_both)
        case("A and R of mixed order, equation holds", key, message, signature)
        key, signature = sign(b"mixed R", torsion_r=torsion)
        case("R of mixed order, holds only times 8", key, b"mixed R", signature)


assert times(L, B) == ZERO and len(set(TORSION)) == 8
ordinary_cases()
scalar_cases()
small_order_cases()
mixed_order_cases()
print("[")
print(",\n".join(json.dumps(c) for c in cases))
print("]")
