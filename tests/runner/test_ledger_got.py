#!/usr/bin/env python3
"""test_ledger_got.py CORTEX-VECTORS - is every value of the ledger's vectors answered, and by rule?

The lines of --got are compared with the values at their places; places that must be answered are
listed below.  What is answered is then garbled in a copy: the lines must stay the same, byte for
byte.  Last, inputs are altered and the answers compared with a model written here from
docs/formats/ledger.md alone.
"""
import hashlib
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
from kit import BIN as program, count as check, finish_counted  # noqa: E402

original = pathlib.Path(__file__).resolve().parent.parent / 'vectors' / 'ledger'

# Places, with * for an index, and how the file spells what is expected there: a member of the
# object, or None for the value itself.
REQUIRED = [
    ('cortex-1/entries.json#/seal', 'entry_cbor leaf_hash'),
    ('cortex-1/entries.json#/committed_entry/pay_record', None),
    ('cortex-1/export.json#/cose_inclusion/*', 'index size cbor'),
    ('cortex-1/scenario.json#/manifest', 'cbor overall_root digest signing_body'),
    ('cortex-1/scenario.json#/multiproof', 'root proofs cbor'),
    ('cortex-1/scenario.json#/edges_multiproof', 'root proofs cbor'),
    ('cortex-1/scenario.json#/erased_leaf_multiproof', 'root proofs cbor'),
    ('cortex-1/scenario.json#/after_step_20/proof_against_manifest_by_default', None),
    ('cortex-1/scenario.json#/after_step_20/historical_proof_at_snapshot_0', None),
    ('cortex-1/scenario.json#/journal_proofs/*', 'entry path cbor'),
    ('cortex-1/scenario.json#/consistency/*', 'cbor'),
    ('cortex-1/scenario.json#/steps/*', 'overall_root next_seq'),
    ('cortex-1/smt.json#/steps/*', 'root value_hash keys branch_nodes'),
    ('cortex-1/smt.json#/empty_root', None),
    ('cortex-1/smt.json#/proofs/*', 'root'),
    ('cortex-1/scope.json#/cases/*/signature', None),
    ('matrix-1/codec.json#/overall_root/*', 'overall'),
    ('matrix-1/codec.json#/forms_truncation', 'short_hex medium_hex'),
    ('matrix-1/codec.json#/vector', 'model_8 vec8_f32be vec8_hash meta_cbor vec768_hash model_768'),
    ('matrix-1/codec.json#/salience/scores/*', 'cbor cached_f32'),
    ('matrix-1/codec.json#/salience/weights/*', 'cbor'),
    ('matrix-1/codec.json#/heads/*', 'cbor'),
    ('matrix-1/codec.json#/versions/*', 'version_hash type_code'),
    ('matrix-1/codec.json#/data/*', 'form_full form_medium form_short type cbor'),
    ('matrix-1/journal.json#/cases/*', 'cbor leaf_hash'),
    ('matrix-1/journal_proofs.json#/inclusion/*', 'path cbor'),
    ('matrix-1/journal_proofs.json#/consistency/*', 'old_root cbor'),
    ('matrix-1/journal_proofs.json#/root', None),
    ('matrix-1/keys_uri.json#/keys/*', 'hex'),
    ('matrix-1/mmr.json#/nodes_n16/*', 'hash key'),
    ('matrix-1/mmr.json#/first_leaves/*', None),
    ('matrix-1/mmr.json#/empty_root', None),
    ('matrix-1/mmr.json#/leafcount_key', None),
    ('matrix-1/scenario.json#/manifest', 'cbor counters created_at journal_seq overall_root seq'),
    ('matrix-1/scenario.json#/multiproof', 'cbor cbor_len namespace proofs root'),
    ('matrix-1/scenario.json#/edges_multiproof_cbor', None),
    ('matrix-1/scenario.json#/find_by_root_seq', None),
    ('matrix-1/scenario.json#/uris/*', None),
    ('matrix-1/scenario.json#/rebuild', 'edges leaves memories pre post salience_bumps'),
    ('matrix-1/scenario.json#/steps/*', 'overall_root next_seq clock_ns_after'),
    ('matrix-1/scenario_embed.json#/journal/*', 'cbor kind leaf seq'),
    ('matrix-1/scenario_embed.json#/steps/*', 'journal_root memories_root next_seq overall'),
    ('matrix-1/scenario_embed.json#/manifest_cbor', None),
    ('matrix-1/scenario_embed.json#/model', None),
    ('matrix-1/scenario_large_first60.json#/ops/*', 'overall journaled'),
    ('matrix-1/scope.json#/cases/*/unsigned_sha256', None),
    ('matrix-1/scope.json#/cases/*/unsigned_len', None),
    ('matrix-1/scope.json#/cases/*/signature', None),
    ('matrix-1/scope.json#/cases/*', None),
    ('matrix-1/smt.json#/steps/*', 'root value_hash stored_nodes nodes_digest'),
    ('matrix-1/smt.json#/proofs/*', 'root value_hash non_default_siblings'),
    ('matrix-1/smt.json#/edge_tree_roots/*', 'root stored_nodes first_key_hash'),
    ('matrix-1/smt.json#/root_after_deleting_all', None),
    ('matrix-1/smt.json#/nodes_after_deleting_all', None),
]
# Of these the value is also what is read: it cannot be garbled.
READ = {'cbor', 'cbor_final', 'entry', 'meta_cbor', 'pos', 'edges_multiproof_cbor', 'size', 'index',
        'clock_ns_after', 'entry_cbor'}
DERIVED_CBOR = ('scenario', 'journal_proofs', 'journal.json', 'salience/scores', 'embed')


def got_of(folder):
    result = subprocess.run([program, 'ledger', folder, '--got'], capture_output=True, text=True)
    check('answered', result.returncode == 0, result.stderr[-500:])
    return result.stdout


def lines_of(text):
    return {line['id']: line['got'] for line in map(json.loads, text.splitlines())}


def files_of(folder):
    return {str(path.relative_to(folder)): json.loads(path.read_text())
            for path in folder.rglob('*.json')}


def walk(value, steps):
    for step in steps:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def places(files, pattern):
    """The places of a pattern, as (id, steps)."""
    name, _, pointer = pattern.partition('#')
    found = [()]
    for step in pointer.split('/')[1:]:
        grown = []
        for steps in found:
            value = walk(files[name], steps)
            if step == '*':
                grown += [(*steps, str(i)) for i in range(len(value))]
            elif step in value:
                grown.append((*steps, step))
        found = grown
    return [(f'{name}#/' + '/'.join(steps), name, steps) for steps in found]


def compare_places(files, lines):
    for pattern, members in REQUIRED:
        found = places(files, pattern)
        check(f'{pattern} is somewhere', found)
        for where, name, steps in found:
            value, got = walk(files[name], steps), lines.get(where)
            check(f'{where} has a line', where in lines)
            if members is None:
                if not isinstance(value, dict):
                    check(where, got == value, (got, value))
                elif 'cortex_expects' in value:
                    check(where, got == value['cortex_expects'], got)
                continue
            for member in members.split():
                if member in value and isinstance(got, dict) and got.get('cbor') != 'refused':
                    check(f'{where} {member}', got.get(member) == value[member],
                          (got.get(member), value[member]))


def garbled(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[::-1] + '0' if re.fullmatch('[0-9a-f]*', value) else value + '?'
    if isinstance(value, list):
        return [garbled(item) for item in value]
    if isinstance(value, dict):
        return {name: garbled(item) for name, item in value.items()}
    return value


def garble(folder, files):
    """Every answer that is not also a question is replaced by something else."""
    for pattern, members in REQUIRED:
        for where, name, steps in places(files, pattern):
            value = walk(files[name], steps)
            names = [steps[-1]] if members is None else members.split()
            parent = walk(files[name], steps[:-1]) if members is None else value
            for member in names:
                derived = (member in ('cbor', 'entry')
                           and any(word in where for word in DERIVED_CBOR))
                if isinstance(value, dict) and members is None or 'uris' in steps:
                    continue
                if member in READ and not derived:
                    continue
                if member == 'signature' and 'cbor' not in parent:
                    continue
                if isinstance(parent, list):
                    parent[int(member)] = garbled(parent[int(member)])
                elif member in parent:
                    parent[member] = garbled(parent[member])
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))


# --- a model -------------------------------------------------------------------------------------


def sha(*parts):
    return hashlib.sha256(b''.join(parts)).digest()


STATE = b'matrix.cortex.snapshot.smt.'


def empties():
    row = [sha(STATE + b'empty.v1')]
    while len(row) < 257:
        row.append(sha(STATE + b'node.v1', row[-1], row[-1]))
    return row


EMPTY = empties()


def tree(pairs, depth=0, path=0, nodes=None):
    """Root of a matrix-1 tree over {key: value hash}; nodes gets every stored node."""
    if not pairs:
        return EMPTY[256 - depth]
    if depth == 256:
        (key, value), = pairs.items()
        made = sha(STATE + b'leaf.v1', key.to_bytes(32, 'big'), value)
    else:
        bit = 1 << (255 - depth)
        left = tree({k: v for k, v in pairs.items() if not k & bit}, depth + 1, path, nodes)
        right = tree({k: v for k, v in pairs.items() if k & bit}, depth + 1, path | bit, nodes)
        made = sha(STATE + b'node.v1', left, right)
    nodes[struct.pack('>H', depth) + path.to_bytes(32, 'big')] = made
    return made


def alter_smt(root):
    """Other values, one key less: what follows is told by the model."""
    steps = root['steps'] = root['steps'][:6]
    expected, pairs = [], {}
    for i, step in enumerate(steps):
        step['value'] = (b'altered %d' % i).hex()
        value = sha(STATE + b'value.v1', bytes.fromhex(step['value']))
        pairs[int(step['key_hash'], 16)] = value
        nodes = {}
        top = tree(pairs, nodes=nodes)
        digest = sha(*(b'idx/smt/memories/n/' + key + nodes[key] for key in sorted(nodes)))
        expected.append({'root': top.hex(), 'value_hash': value.hex(), 'stored_nodes': len(nodes),
                         'nodes_digest': digest.hex()})
    root['proofs'] = []
    return {f'matrix-1/smt.json#/steps/{i}': answer for i, answer in enumerate(expected)}


def alter_codec(root):
    expected = {}
    for i, case in enumerate(root['overall_root']):
        case['journal_root'] = sha(b'journal %d' % i).hex()
        case['state_roots'] = [{'ns': name, 'root': sha(name.encode()).hex()}
                               for name in ('zeta', 'alpha', 'edges', 'a')[i % 3:]]
        rows = sorted((row['ns'].encode(), bytes.fromhex(row['root']))
                      for row in case['state_roots'])
        made = sha(b'matrix.cortex.snapshot.overall.v1\x01', bytes.fromhex(case['journal_root']),
                   struct.pack('>H', len(rows)),
                   *(bytes([len(name)]) + name + value for name, value in rows))
        expected[f'matrix-1/codec.json#/overall_root/{i}'] = {'overall': made.hex()}
    root['vector']['text'] = 'another text'
    block, values = sha(b'hash-stub.v1', b'another text'), []
    for number in struct.unpack('>8I', block):
        values.append(struct.unpack('f', struct.pack('f', number / 2 ** 31 - 1))[0])
    scale = struct.unpack('f', struct.pack('f', sum(v * v for v in values) ** -0.5))[0]
    packed = struct.pack('>8f', *(v * scale for v in values))
    expected['matrix-1/codec.json#/vector'] = {
        'vec8_f32be': packed.hex(), 'vec8_hash': sha(b'matrix.cortex.vector.v1', packed).hex()}
    cut = root['forms_truncation']
    cut.update(topic='x' * 500, rationale='', short_tokens=7, medium_tokens=9, strength=0.5)
    text = ('prefers ' + 'x' * 500).encode()
    expected['matrix-1/codec.json#/forms_truncation'] = {
        'short_hex': (text[:25] + '…'.encode()).hex(),
        'medium_hex': (text[:33] + '…'.encode()).hex()}
    return expected


def alter_keys(root):
    root['id1'], root['id2'] = 'aa' * 16, 'bb' * 16
    one, two, be = b'\xaa' * 16, b'\xbb' * 16, lambda n: struct.pack('>Q', n)
    pairs = [('m/<id>', b'm/' + one), ('mv/<id>/v/<n=77>', b'mv/' + one + b'/v/' + be(77)),
             ('e/from src=id2 t=9 dst=id1', b'e/from/' + two + b'\x09' + one),
             ('e/to dst=id1 t=9 src=id2', b'e/to/' + one + b'\x09' + two),
             ('idx/type t=5 created=12345', b'idx/type/\x05' + be(12345) + one),
             ("idx/tag tag='other'", b'idx/tag/' + sha(b'other')[:8] + be(12345) + one),
             ("idx/frame verb=7 kind=3 ref='r'", b'idx/frame/\x07\x03' + sha(b'r')[:16] + one),
             ("idx/actor_obj verb=7 ref='r'",
              b'idx/actor_obj/\x07' + sha(b'r')[:16] + be(12345) + one),
             ('idx/smt/memories depth 258 path 0f..',
              b'idx/smt/memories/n/\x01\x02' + b'\x0f' * 32),
             ('chk/<lp in>/<lp s>', b'chk/\x02in/\x01s'), ('snap/<9>', b'snap/' + be(9)),
             ('accum/mmr/n/<300>', b'accum/mmr/n/' + be(300)), ('tomb/<id>', b'tomb/' + one)]
    root['keys'] = [{'key': label, 'hex': ''} for label, _ in pairs]
    return {f'matrix-1/keys_uri.json#/keys/{i}': {'hex': key.hex()}
            for i, (_, key) in enumerate(pairs)}


def alter_mmr(root):
    """Nodes asked in another order, and beyond sixteen leaves."""
    nodes, heights, stack = [], [], []
    for leaf in range(40):
        nodes.append(sha(b'matrix-mmr-leaf-%d' % leaf))
        stack.append((0, nodes[-1]))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            height, right = stack.pop()
            _, left = stack.pop()
            nodes.append(sha(b'matrix.cortex.snapshot.mmr.node.v1', left, right))
            stack.append((height + 1, nodes[-1]))
    asked = [70, 3, 31, 1, 64]
    root['nodes_n16'] = [{'pos': pos, 'key': '', 'hash': ''} for pos in asked]
    return {f'matrix-1/mmr.json#/nodes_n16/{i}': {
        'hash': nodes[pos - 1].hex(), 'key': (b'accum/mmr/n/' + struct.pack('>Q', pos)).hex()}
        for i, pos in enumerate(asked)}


def alter_entries(root):
    root['salt'], root['payload'] = '11' * 32, b'else'.hex()
    made = sha(b'cortex.payload.v1', b'\x11' * 32, struct.pack('>Q', 4), b'else').hex()
    return {'cortex-1/entries.json': made,
            'cortex-1/entries.json#/committed_entry/pay_record': '11' * 32 + b'else'.hex()}


def alter_story(root):
    """Without two of its steps, which nothing depends on, the others mean the same as before."""
    steps = root['steps']
    del steps[18], steps[17]  # raw, compact
    for step in steps[17:]:
        step['clock_ns_after'] -= 1500000000
    del root['keyspace_dump_before_rebuild_excluding_smt']


def compare_model(folder):
    expected = {}
    for name, alter in (('matrix-1/smt.json', alter_smt), ('matrix-1/codec.json', alter_codec),
                        ('matrix-1/keys_uri.json', alter_keys), ('matrix-1/mmr.json', alter_mmr),
                        ('cortex-1/entries.json', alter_entries)):
        root = json.loads((folder / name).read_text())
        expected.update(alter(root))
        (folder / name).write_text(json.dumps(root))
    lines = lines_of(got_of(folder))
    for where, answer in expected.items():
        got = lines.get(where)
        if isinstance(answer, dict):
            got = {name: (got or {}).get(name) for name in answer}
        check(f'model: {where}', got == answer, (got, answer))


def compare_shorter_story(folder):
    """A story without its compaction and its raw entry: the roots before are those of the whole."""
    name = 'matrix-1/scenario.json'
    whole = json.loads((folder / name).read_text())
    shorter = json.loads(json.dumps(whole))
    alter_story(shorter)
    (folder / name).write_text(json.dumps(shorter))
    for other in ('cortex-1/scenario.json', 'matrix-1/journal_proofs.json'):
        (folder / other).unlink()
    lines = lines_of(got_of(folder))
    for i, step in enumerate(shorter['steps']):
        got = lines[f'{name}#/steps/{i}']
        # Heads and edges do not know what was left out, but for the last one's time.
        check(f'edges of step {i}', got['edges_root'] == step['edges_root'])
        if i < len(shorter['steps']) - 1:
            check(f'memories of step {i}', got['memories_root'] == step['memories_root'])
        if i < 17:
            check(f'all of step {i}', got['overall_root'] == step['overall_root'])
        else:
            check(f'two entries less at step {i}', got['next_seq'] == step['next_seq'] - 2)
            check(f'another journal at step {i}', got['journal_root'] != step['journal_root'])


def main():
    files = files_of(original)
    text = got_of(original)
    compare_places(files, lines_of(text))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / 'garbled'
        shutil.copytree(original, folder)
        garble(folder, files_of(folder))
        again = got_of(folder)
        ours, theirs = text.splitlines(), again.splitlines()
        differ = [a[:200] + ' | ' + b[:200] for a, b in zip(ours, theirs) if a != b]
        check('garbled answers change nothing', ours == theirs, '\n'.join(differ[:5]))
        folder = pathlib.Path(name) / 'altered'
        shutil.copytree(original, folder)
        compare_model(folder)
        folder = pathlib.Path(name) / 'shorter'
        shutil.copytree(original, folder)
        compare_shorter_story(folder)


main()

# --- headers and removals -------------------------------------------------------------------------
# A file of another maker has names of its own in its rules, and an empty value removes its key.

sys.path.insert(0, str(original.parent.parent / 'diff'))
import memory_model as model  # noqa: E402

for scheme in ('cortex-1', 'matrix-1'):
    with tempfile.TemporaryDirectory() as place:
        own, states = model.Scheme(scheme), {}
        folder = pathlib.Path(place) / scheme
        folder.mkdir()
        rule = "leaf_hash i = SHA256('others-' || decimal i)"
        (folder / 'journal_tree.json').write_text(json.dumps(
            {'scheme': scheme, 'leaf_rule': rule, 'roots': [{'n': n} for n in range(6)]}))
        steps = []
        for number, (name, value) in enumerate(
                [('a', b'1'), ('b', b'2'), ('a', b''), ('c', b'3'), ('b', b''), ('c', b''),
                 ('c', b''), ('a', b'4')], 1):
            key = hashlib.sha256(name.encode()).digest()
            states.pop(key, None)
            if value:
                states[key] = own.value(value)
            steps.append({'step': number, 'key_hash': key.hex(), 'value': value.hex(),
                          'want': own.smt(list(states.items())).hex()})
        (folder / 'smt.json').write_text(json.dumps({'steps': steps}))
        done = subprocess.run([program, 'ledger', str(folder), '--got'], capture_output=True,
                              text=True, check=False)
        lines = {line['id']: line['got'] for line in map(json.loads, done.stdout.splitlines())}
        for n in range(6):
            want = own.journal([hashlib.sha256(f'others-{i}'.encode()).digest() for i in range(n)])
            found = next((got for name, got in lines.items()
                          if name.endswith(f'journal_tree.json#/roots/{n}')), {})
            check(f'{scheme}: leaf_rule, {n} leaves', found.get('root') == want.hex(), found)
        for i, step in enumerate(steps):
            found = next((got for name, got in lines.items()
                          if name.endswith(f'smt.json#/steps/{i}')), {})
            check(f'{scheme}: removals, step {i + 1}', found.get('root') == step['want'], found)

# --- refused updates, ids of another time, numbers below zero --------------------------------------


def with_folder(scheme, files, *words):
    """The program's output over a folder that has these files alone."""
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / scheme
        folder.mkdir()
        for name, value in files.items():
            (folder / name).write_text(json.dumps(value))
        return subprocess.run([program, 'ledger', str(folder), *words], capture_output=True, text=True,
                              check=False).stdout


large = json.loads((original / 'matrix-1/scenario_large_first60.json').read_text())
dead = next(row['id'] for row in large['ops'] if row['op'] == 'tombstone')
refused = {'i': len(large['ops']), 'op': 'update', 'id': dead, 'statement': 'too late', 'journaled': 0,
           'err': 'memory: memory is tombstoned', 'overall': large['ops'][-1]['overall']}
for change, good in (({}, True), ({'overall': '00' * 32}, False), ({'err': None}, False)):
    row = {name: value for name, value in {**refused, **change}.items() if value is not None}
    text = with_folder('matrix-1', {'scenario_large_first60.json':
                                    {**large, 'ops': large['ops'] + [row]}})
    check(f'a refused update {change}', (', 0 failed' in text) == good and 'passed' in text, text[-400:])

main_file = json.loads((original / 'matrix-1/scenario.json').read_text())
early = {'actor': main_file['actor'], 'steps': main_file['steps'][:2],
         'id_rule': main_file['id_rule'].replace('1700000000000', '42')}
got = [json.loads(line)['got'] for line in
       with_folder('matrix-1', {'scenario.json': early}, '--got').splitlines()]
check('id_rule of a scenario', any(isinstance(one, dict) and one.get('uri', '').startswith(
    'matrix://cortex/' + early['steps'][1]['args']['type'] + '/000000001A') for one in got), got)

scope = json.loads((original / 'matrix-1/scope.json').read_text())
codec = json.loads((original / 'matrix-1/codec.json').read_text())
for case in scope['cases']:
    case['now_ns'] = -1
codec['truncate_to_tokens'] = [{'in_hex': '6162', 'max_tokens': -1, 'out_hex': ''}]
smt = json.loads((original / 'matrix-1/smt.json').read_text())
for step in smt['steps']:
    step['step'] -= 100
for proof in smt['proofs']:
    if 'after_step' in proof:
        proof['after_step'] -= 100
lines = [json.loads(line) for line in with_folder(
    'matrix-1', {'scope.json': scope, 'codec.json': codec, 'smt.json': smt}, '--got').splitlines()]
failed = [line for line in lines if isinstance(line['got'], dict) and 'failed' in line['got']]
check('numbers below zero are answered', failed == [], failed[:5])
check('a scope long before its end', any(line['got'] == 'holds' for line in lines
                                         if 'scope.json' in line['id']))
check('fewer than no tokens', [line['got'] for line in lines if 'truncate_to_tokens/0' in line['id']]
      == [{'out_hex': ''}])
check('steps numbered below zero', [line['got'].get('root') for line in lines
                                    if 'smt.json#/steps/' in line['id']]
      == [step['root'] for step in smt['steps']])

finish_counted()
