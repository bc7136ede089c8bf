#!/usr/bin/env python3
"""test_runner.py CORTEX-VECTORS - does the runner notice what it is there to notice?

Works on a copy of vectors/lattice.  Breaks one expectation of each kind: exactly that case must
fail, and what --got prints must not change by a byte.  Then breaks the folder itself.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
from kit import BIN as program, count as check, finish_counted  # noqa: E402

original = pathlib.Path(__file__).resolve().parent.parent / 'vectors' / 'lattice'


def run(*words, **more):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, **more)


def counts(result):
    """(passed, failed, skipped) of the closing line."""
    return tuple(int(part.split()[0]) for part in result.stdout.splitlines()[-1].split(', '))


def put(folder, name, change):
    value = json.loads((folder / name).read_text())
    change(value)
    (folder / name).write_text(json.dumps(value))


# Each wrong expectation: the file, the words that must be in the failure, the change.
def wrong(path, value):
    def change(root):
        for step in path[:-1]:
            root = root[step]
        root[path[-1]] = value
    return change


GRAPH = 'graph/spec_merge.expected.json'
WRONG = [
    ('index.json', 'valid_spec_merge', wrong(['trace_cases', 0, 'exit'], 1)),
    ('index.json', 'valid_spec_merge', wrong(['trace_cases', 0, 'expect', 'evidence', 'ids'], '')),
    ('index.json', 'valid_spec_merge', wrong(['trace_cases', 0, 'expect', 'errors'],
                                             [{'agent': 'a', 'code': 'E_HASH', 'node': 'n'}])),
    ('index.json', 'valid_linear', wrong(['text_cases', 2, 'exit'], 1)),
    ('index.json', 'unreadable/bom.jsonl', wrong(['unreadable_cases', 0, 'code'], 'U_UTF8')),
    ('index.json', 'unreadable/bom.jsonl', wrong(['unreadable_cases', 0, 'exit'], 1)),
    (GRAPH, '/verify/ok', wrong(['verify', 'ok'], False)),
    (GRAPH, '/topological_order_sha256', wrong(['topological_order_sha256'], '00')),
    (GRAPH, '/heatmap/0/D', wrong(['heatmap', 0, 'D'], 3)),
    (GRAPH, '/merge_bases/n2/0', wrong(['merge_bases', 'n2', 0], 'n1_a')),
    (GRAPH, '/compare/0/lca', wrong(['compare', 0, 'lca'], 'n2')),
    (GRAPH, '/compare/0/diff/0/a', wrong(['compare', 0, 'diff', 0, 'a'], 1)),
    (GRAPH, '/backtrack/0/expect/3/new', wrong(['backtrack', 0, 'expect', 3, 'new'], 1.0)),
    (GRAPH, '/head_states_lww/agent_a/memory/x',
     wrong(['head_states_lww', 'agent_a', 'memory', 'x'], 4)),
    (GRAPH, '/states_policy_none/digest_all', wrong(['states_policy_none', 'digest_all'], '00')),
    (GRAPH, '/states_manual_lca/heads/system',
     wrong(['states_manual_lca', 'heads', 'system'], '00')),
    ('canonical.json', 'canonical.json#/texts/2 at /canonical',
     wrong(['texts', 2, 'canonical'], '1')),
    ('canonical.json', 'canonical.json#/floats_hex_repr/7',
     wrong(['floats_hex_repr', 7, 1], '1.0')),
    ('chain.json', 'chain.json#/2 at /head_hash', wrong([2, 'head_hash'], '00')),
    ('hashes.json', 'genesis', wrong([0, 'preimage_hex'], '00')),
    ('merge.json', '(merge.json#/dicts/0)', wrong(['dicts', 0, 'expect', 'a'], 2)),
    ('merge.json', 'merge.json#/states/0', wrong(['states', 0, 'expect', 'goals'], [])),
    ('patch.json', 'patch.json#/1', wrong([1, 'new'], {})),
    ('seals.json', 'seals.json#/0', wrong([0, 'seal'], '00')),
]


def try_wrong_expectations(folder, total, got):
    for name, words, change in WRONG:
        kept = (folder / name).read_bytes()
        put(folder, name, change)
        result = run('lattice', folder)
        check(f'{name} {words}', result.returncode == 1 and counts(result) == (total - 1, 1, 0)
              and words in result.stdout, result.stdout)
        check(f'--got looks at {words}', run('lattice', folder, '--got').stdout == got)
        (folder / name).write_bytes(kept)
    text = folder / 'text' / 'valid_linear.txt'
    kept = text.read_bytes()
    text.write_bytes(kept + b'\n')
    check('printout', counts(run('lattice', folder)) == (total - 1, 1, 0))
    text.write_bytes(kept)


def try_broken_folders(folder, total):
    def tried(name, change, expected, words):
        kept = (folder / name).read_bytes()
        change()
        result = run('lattice', folder)
        check(words, result.returncode == (1 if expected[1] else 0)
              and counts(result) == expected and words in result.stdout, result.stdout)
        (folder / name).write_bytes(kept)

    index = folder / 'index.json'
    first = folder / 'traces' / 'valid_array.json'
    tried('traces/valid_array.json', first.unlink, (total - 1, 1, 0), 'FAIL valid_array')
    tried('index.json', lambda: put(folder, 'index.json',
                                    lambda root: root['trace_cases'][0].pop('file')),
          (total - 1, 1, 0), "has no 'file'")
    tried('index.json', lambda: put(folder, 'index.json', wrong(['trace_cases', 0, 'options'],
                                                                ['--strict', '--nothing'])),
          (total - 1, 1, 0), 'unknown option --nothing')
    tried('index.json', lambda: put(folder, 'index.json', wrong(['trace_cases', 0], 7)),
          (total - 1, 1, 0), 'FAIL index.json#/trace_cases/0')
    tried('patch.json', (folder / 'patch.json').unlink, (total - 14, 1, 0), 'FAIL patch.json')
    tried('index.json', lambda: put(folder, 'index.json', wrong(['tables', 'more'], 'x.json')),
          (total, 0, 1), 'SKIP more: unknown table')
    tried('index.json', lambda: put(folder, 'index.json', wrong(['more_cases'], [1])),
          (total, 0, 1), 'SKIP more_cases: unknown list of cases')
    tried('index.json', lambda: put(folder, 'index.json', wrong(['origin'], 'there')),
          (total, 0, 0), '')
    kept = index.read_bytes()
    index.write_text('{}')
    result = run('lattice', folder)
    check('nothing ran', result.returncode == 1 and counts(result) == (0, 0, 0))
    index.write_bytes(kept)
    tried('index.json', lambda: index.write_text('{'), (0, 1, 0), 'FAIL index.json')


def at_pointer(folder, place):
    name, _, pointer = place.partition('#')
    value = json.loads((folder / name).read_text())
    for step in pointer.split('/')[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def try_places(folder):
    """A case without a name is called by its place: each place exists, and is told once."""
    got = run('ledger', folder, '--got')
    places = [line for line in map(json.loads, got.stdout.splitlines()) if '.json' in line['id']]
    check('places are told once', len({line['id'] for line in places}) == len(places))
    for line in places:
        try:
            at_pointer(folder, line['id'])
        except (KeyError, IndexError, ValueError, OSError) as error:
            check(f'place {line["id"]}', False, error)
    steps = [line['got'] for line in places if line['id'].startswith('cortex-1/scenario.json#/s')]
    check('a step of a scenario is told as its file tells it', steps and all(
        step['overall_root'] == at_pointer(folder, f'cortex-1/scenario.json#/steps/{i}')
        ['overall_root'] for i, step in enumerate(steps)))


def try_other_lengths(original, folder):
    """The large scenario is found whatever its name says about its length."""
    shutil.copytree(original, folder)
    total = counts(run('ledger', folder))
    for scheme, part in ('matrix-1', 'ops'), ('cortex-1', 'roots'):
        old = folder / scheme / 'scenario_large_first60.json'
        put(folder / scheme, old.name, lambda root, part=part: root[part].__delitem__(slice(7, 60)))
        old.rename(old.with_name('scenario_large_first7.json'))
    result = run('ledger', folder)
    check('another length', counts(result) == (total[0] - 2 * 53, 0, total[2]), result.stdout[-300:])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / 'lattice'
        shutil.copytree(original, folder)
        put(folder, 'chain.json', lambda chains: chains.pop())  # the longest: it takes its time
        result, got = run('lattice', folder), run('lattice', folder, '--got')
        total = counts(result)[0]
        check('unchanged', result.returncode == 0 and counts(result)[1:] == (0, 0))
        check('a line a case', got.returncode == 0 and len(got.stdout.splitlines()) == total)
        check('canonical lines', all(
            json.dumps(json.loads(line), sort_keys=True, separators=(',', ':')) == line
            and sorted(json.loads(line)) == ['got', 'id'] for line in got.stdout.splitlines()))
        try_wrong_expectations(folder, total, got.stdout)
        try_broken_folders(folder, total)
        with open('/dev/full', 'w') as full:
            check('lost output', subprocess.run([program, 'lattice', folder, '--got'], stdout=full,
                                                stderr=subprocess.DEVNULL).returncode == 3)
        ledger = original.parent / 'ledger'
        try_places(ledger)
        try_other_lengths(ledger, pathlib.Path(name) / 'ledger')
    for words in (['nowhere', original], ['lattice'], [], ['lattice', original, '--gut']):
        result = run(*words)
        check(f'misuse {words}', result.returncode == 2 and 'lattice' in result.stderr)


main()
finish_counted()
