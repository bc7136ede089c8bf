#!/usr/bin/env python3
"""make_compact.py - writes cortex-1/compact_proofs.json: MultiProofs of schema 3 (ledger.md §8.3), from a
small model of its own that knows nothing but the text of the format.

    make_compact.py             writes the file
    make_compact.py --check     says whether the file is what would be written

The state is a plain dictionary; its tree is the recursion of §7, and the proof is the walk of §8.3 taken
literally, node by node from the root.  So it shares neither code nor method with src/ledger, which goes
by the order of keys and the bits that they share.
"""
import hashlib
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
EMPTY = bytes(32)


def sha(data):
    return hashlib.sha256(data).digest()


def bit(key, i):
    return key[i // 8] >> (7 - i % 8) & 1


# --- CBOR, deterministic ------------------------------------------------------------------------------

def head(kind, n):
    if n < 24:
        return bytes([kind << 5 | n])
    size = next(size for size in (1, 2, 4, 8) if n < 1 << 8 * size)
    return bytes([kind << 5 | 23 + size.bit_length()]) + n.to_bytes(size, 'big')


def cbor(value):
    if value is None:
        return b'\xf6'
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b''.join(map(cbor, value))
    return head(5, len(value)) + b''.join(cbor(k) + cbor(v) for k, v in sorted(value.items()))


# --- the state tree -------------------------------------------------------------------------------------

def leaf(key, value):
    return sha(b'\x00' + key + value)


def root_of(pairs, depth=0):
    if not pairs:
        return EMPTY
    if len(pairs) == 1:
        return leaf(*next(iter(pairs.items())))
    sides = [{k: v for k, v in pairs.items() if bit(k, depth) == side} for side in (0, 1)]
    return sha(b'\x01' + root_of(sides[0], depth + 1) + root_of(sides[1], depth + 1))


def siblings_of(pairs, key):
    """All of one key, from the root down: what schema 2 tells."""
    found, depth = [], 0
    while len(pairs) > 1:
        side = bit(key, depth)
        found.append(root_of({k: v for k, v in pairs.items() if bit(k, depth) != side}, depth + 1))
        pairs = {k: v for k, v in pairs.items() if bit(k, depth) == side}
        depth += 1
    return found


class Compact:
    """The proof of some keys of a state; `leaves` are the records that are shown."""

    def __init__(self, pairs, asked, leaves=()):
        self.leaves = {key: record for key, record in leaves}
        self.items, self.hashes, self.bits = [], [], []
        self.root = root_of(pairs)
        self.walk(pairs, sorted(asked), 0)

    def walk(self, pairs, asked, depth):
        if len(pairs) <= 1:
            self.items += [self.item(pairs, key, depth) for key in asked]
            return
        for side in (0, 1):
            below = {k: v for k, v in pairs.items() if bit(k, depth) == side}
            keys = [k for k in asked if bit(k, depth) == side]
            if keys:
                self.walk_side(below, keys, depth, other_asked=len(keys) != len(asked),
                               other={k: v for k, v in pairs.items() if bit(k, depth) != side})

    def walk_side(self, below, keys, depth, other_asked, other):
        if not other_asked:
            hash_ = root_of(other, depth + 1)
            self.bits.append(int(hash_ != EMPTY))
            self.hashes += [hash_] if hash_ != EMPTY else []
        self.walk(below, keys, depth + 1)

    def item(self, pairs, key, depth):
        made = {0: key, 1: None, 2: depth}
        if key in pairs and key in self.leaves:
            made[1] = self.leaves[key]
        elif key in pairs:
            made[4] = pairs[key]
        elif pairs:
            made[3] = list(next(iter(pairs.items())))
        return made

    def presence(self):
        bits = self.bits + [0] * (-len(self.bits) % 8)
        return bytes(int(''.join(map(str, bits[i:i + 8])), 2) for i in range(0, len(bits), 8))

    def map(self):
        return {0: 3, 1: 'memories', 2: self.root, 3: self.items, 4: 'cortex-1', 5: b''.join(self.hashes),
                6: self.presence()}

    def changed(self, **fields):
        """Its bytes with fields set: f0=..f6=, i=(number, {field: value or None to drop})."""
        made = {k: (list(map(dict, v)) if k == 3 else v) for k, v in self.map().items()}
        for name, value in fields.items():
            if name == 'i':
                at, parts = value
                for field, part in parts.items():
                    if part is KEEP_OUT:
                        made[3][at].pop(field)
                    else:
                        made[3][at][field] = part
            elif value is KEEP_OUT:
                made.pop(int(name[1:]))
            else:
                made[int(name[1:])] = value
        return cbor(made)


KEEP_OUT = object()


# --- states ---------------------------------------------------------------------------------------------

def key_of(name):
    return sha(b'compact key ' + str(name).encode())


def value_of(key):
    return sha(b'compact value ' + key)


def state(keys):
    return {key: value_of(key) for key in keys}


def bits_key(text):
    """A key that begins with these bits; the rest is zero."""
    return (int(text, 2) << (256 - len(text))).to_bytes(32, 'big')


def records():
    """Heads of the scenario: their keys, their bytes."""
    scenario = json.loads((HERE / 'cortex-1' / 'scenario.json').read_text())
    return [(bytes.fromhex(p['key_hash']), bytes.fromhex(p['leaf'])) for p in scenario['multiproof']['proofs']
            if p['leaf']]


def whole_cases():
    heads = records()
    some = [key_of(n) for n in range(40)]
    low, high = bits_key('0' * 255 + '0'), bits_key('0' * 255 + '1')
    deep = state([low, high, bits_key('1')])
    few = state([bits_key('000'), bits_key('0010'), bits_key('1010'), bits_key('1011')])
    many = state([key_of(n) for n in range(100)])
    shown = {**state(some[:20]), **{key: sha(record) for key, record in heads}}
    yield 'nothing there, one key asked', {}, [some[0]], []
    yield 'nothing there, three keys asked', {}, some[:3], []
    yield 'one leaf, itself asked', state(some[:1]), some[:1], []
    yield 'one leaf, another key asked', state(some[:1]), [some[1]], []
    yield 'one leaf, itself and three others asked', state(some[:1]), some[:4], []
    yield 'two leaves, both asked: no sibling is needed', state(some[:2]), some[:2], []
    yield 'two leaves that part in the last bit', deep, [low], []
    yield 'the same, both asked', deep, [low, high], []
    yield 'the same, and a key beside them', deep, [low, high, bits_key('01')], []
    yield 'two absent keys in one empty place', few, [bits_key('0100'), bits_key('0111')], []
    yield 'absent keys in several empty places', few, [bits_key('0100'), bits_key('0110'), bits_key('100'),
                                                        bits_key('11')], []
    yield 'two absent keys at one other leaf', few, [bits_key('0001'), bits_key('00011')], []
    yield 'two absent keys at one other leaf, which is asked too', few, [bits_key('000'), bits_key('0001'),
                                                                        bits_key('00011')], []
    yield 'every leaf asked', few, list(few), []
    yield 'records that are shown', shown, [key for key, _ in heads], heads
    yield 'shown, erased and absent together', shown, [heads[0][0], heads[1][0], *some[15:25]], heads[:1]
    yield '40 of 100 and 20 absent', many, [key_of(n) for n in range(60, 120)], []
    yield 'all of 100', many, list(many), []


def broken_cases():
    heads = records()
    few = state([bits_key('000'), bits_key('0010'), bits_key('1010'), bits_key('1011')])
    good = Compact(few, [bits_key('000'), bits_key('0010'), bits_key('1010')])
    items = good.items
    yield 'schema 4', good.changed(f0=4), 'NonCanonical'
    yield 'no presence', good.changed(f6=KEEP_OUT), 'NonCanonical'
    yield 'a pool in place of siblings', good.changed(f5=[b'\x01' * 32]), 'NonCanonical'
    yield 'a list in place of a depth', good.changed(i=(0, {2: [1, 2]})), 'NonCanonical'
    yield 'bytes behind the end', cbor(good.map()) + b'\x00', 'NonCanonical'
    yield 'another scheme', good.changed(f4='matrix-1'), 'SchemeMismatch'
    yield 'a scheme that is not known', good.changed(f4='cortex-2'), 'SchemeMismatch'
    yield 'another namespace', good.changed(f1='vectors'), 'NamespaceMismatch'
    yield 'no key', good.changed(f3=[], f5=b'', f6=b''), 'EmptyProof'
    yield 'a key twice', good.changed(f3=[items[0], items[0], items[1]]), 'DuplicateKey'
    yield 'a key twice, not beside itself', good.changed(f3=[items[0], items[1], items[0]]), 'DuplicateKey'
    yield 'keys that descend', good.changed(f3=[items[1], items[0], items[2]]), 'ProofMalformed'
    yield 'a depth of 257', good.changed(i=(0, {2: 257})), 'ProofMalformed'
    yield 'a depth of 2^64-1', good.changed(i=(0, {2: (1 << 64) - 1})), 'ProofMalformed'
    yield 'a path that ends on the way of the next', good.changed(i=(0, {2: 2})), 'ProofMalformed'
    yield 'a path that ends on the way of the one before', good.changed(i=(1, {2: 2})), 'ProofMalformed'
    yield 'leaf and value', good.changed(i=(0, {1: heads[0][1]})), 'ProofMalformed'
    yield 'value and other', good.changed(i=(0, {3: [bits_key('0001'), EMPTY]})), 'ProofMalformed'
    yield 'other is the key itself', good.changed(i=(0, {4: KEEP_OUT, 3: [items[0][0], EMPTY]})), 'ProofMalformed'
    yield 'other is not on the path', good.changed(i=(0, {4: KEEP_OUT, 3: [bits_key('1'), EMPTY]})), 'ProofMalformed'
    yield 'one byte of presence more', good.changed(f6=good.presence() + b'\x00'), 'ProofMalformed'
    yield 'one byte of presence less', good.changed(f6=good.presence()[:-1]), 'ProofMalformed'
    padded = bytearray(good.presence())
    padded[-1] |= 1
    yield 'a bit behind the last place', good.changed(f6=bytes(padded)), 'ProofMalformed'
    hashes = b''.join(good.hashes)
    yield 'one hash more', good.changed(f5=hashes + b'\x05' * 32), 'ProofMalformed'
    yield 'one hash less', good.changed(f5=hashes[:-32]), 'ProofMalformed'
    yield 'half a hash', good.changed(f5=hashes[:-16]), 'ProofMalformed'
    yield 'no hash', good.changed(f5=b''), 'ProofMalformed'
    yield 'a hash of zeros', good.changed(f5=hashes[:-32] + EMPTY), 'ProofMalformed'
    turned = bytes([good.presence()[0] ^ 0x80])
    yield 'the first sibling said to be there or not, wrongly', good.changed(f6=turned), 'ProofMalformed'
    yield 'a hash of another', good.changed(f5=hashes[:-1] + bytes([hashes[-1] ^ 1])), 'RootMismatch'
    yield 'another root', good.changed(f2=sha(b'another')), 'RootMismatch'
    yield 'another value', good.changed(i=(2, {4: sha(b'another')})), 'RootMismatch'
    yield 'said to be absent', good.changed(i=(0, {4: KEEP_OUT})), 'RootMismatch'
    yield 'a record that is none', good.changed(i=(0, {4: KEEP_OUT, 1: b'no record'})), 'LeafMismatch'
    yield 'a record of another key', good.changed(i=(0, {4: KEEP_OUT, 1: heads[0][1]})), 'LeafMismatch'
    # Two keys that end in one place must say the same of it.
    place = Compact(few, [bits_key('0100'), bits_key('0111')])
    yield 'one place, empty and not', place.changed(i=(1, {3: [bits_key('011'), EMPTY]})), 'RootMismatch'
    other = Compact(few, [bits_key('000'), bits_key('0001'), bits_key('00011')])
    yield 'one place, two other leaves', other.changed(i=(2, {3: [bits_key('000'), EMPTY]})), 'RootMismatch'
    yield 'one place, two depths', other.changed(i=(2, {2: 4})), 'ProofMalformed'


def main():
    whole, broken = [], []
    for label, pairs, asked, leaves in whole_cases():
        made = Compact(pairs, asked, leaves)
        whole.append({
            'label': label, 'root': made.root.hex(), 'cbor': cbor(made.map()).hex(),
            'places': len(made.bits), 'siblings': len(made.hashes),
            'pairs': [[k.hex(), v.hex()] for k, v in sorted(pairs.items())],
            'keys': [{'key': item[0].hex(), 'leaf': item[1].hex() if item[1] else None,
                      'kind': 'member' if item[1] else 'erased' if 4 in item else 'absent',
                      'siblings_digest': sha(b''.join(siblings_of(pairs, item[0]))).hex(), 'depth': item[2]}
                     for item in made.items]})
        assert all(item[2] == len(siblings_of(pairs, item[0])) for item in made.items)
    for label, data, reason in broken_cases():
        broken.append({'label': label, 'cbor': data.hex(), 'reason': reason})
    out = HERE / 'cortex-1' / 'compact_proofs.json'
    text = json.dumps({'about': 'made by make_compact.py', 'whole': whole, 'broken': broken}, indent=1) + '\n'
    if sys.argv[1:] != ['--check']:
        out.write_text(text)
        return 0
    same = out.read_text() == text
    print(f'{int(same)} passed, {int(not same)} failed, 0 skipped')
    if not same:
        print(f'{out} is not what the model makes: make it anew, or mend the model', file=sys.stderr)
    return int(not same)


sys.exit(main())
