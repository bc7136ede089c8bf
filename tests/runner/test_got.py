#!/usr/bin/env python3
"""test_got.py CORTEX-VECTORS - are the lines of --got what the files expect, in every module?

cortex-vectors compares by itself; here somebody else does, who knows only the lines it prints and
the rule by which a case is called: its id or name, else its file, else FILE#/json/pointer.
"""
import json
import math
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cli'))
from kit import BIN as program, count as check, finish_counted  # noqa: E402

vectors = pathlib.Path(__file__).resolve().parent.parent / 'vectors'


def lines_of(room, folder):
    """What is told of each id; names may repeat."""
    result = subprocess.run([program, room, folder, '--got'], capture_output=True, text=True)
    check(f'{room} answered', result.returncode == 0, result.stderr[-400:])
    told = {}
    for line in map(json.loads, result.stdout.splitlines()):
        told.setdefault(line['id'], []).append(line['got'])
    return told


def has(expected, got):
    """Every member that is expected is there; numbers that agree to 1e-9 are equal."""
    if isinstance(expected, dict):
        return isinstance(got, dict) and all(
            name in got and has(value, got[name]) for name, value in expected.items())
    if isinstance(expected, list):
        return isinstance(got, list) and len(expected) == len(got) and all(
            map(has, expected, got))
    numbers = (int, float)
    if isinstance(expected, float) and isinstance(got, numbers) and not isinstance(got, bool):
        return math.isclose(expected, got, rel_tol=1e-9)
    return type(expected) is type(got) and expected == got


def compare_trace():
    told = lines_of('trace', vectors / 'trace')
    for case in json.loads((vectors / 'trace/index.json').read_text())['cases']:
        expected = case['expect'] if 'expect' in case else [s['expect'] for s in case['steps']]
        check(f'trace {case["id"]}', any(has(expected, got) for got in told.get(case['id'], [])),
              (expected, told.get(case['id'])))


def run_agrees(name, expected, got):
    """Where several answers are right: see tests/vectors/README.md."""
    if name == 'tamper.json':
        return all(got[kind]['exit'] == wanted['exit']
                   and set(wanted['codes']) <= set(got[kind]['codes'])
                   for kind, wanted in expected.items())
    return has(expected, got)


def compare_run(folder):
    # The attack corpus has the same shape; it takes longer, and cortex-vectors compares it.
    told = lines_of('run', folder)
    for path in sorted(folder.glob('*.json')):
        cases = json.loads(path.read_text()).get('cases', [])
        for i, case in enumerate(cases):
            where = case.get('id') or case.get('name') or f'{path.name}#/cases/{i}'
            got = told.get(where)
            check(f'{path.name} {where} has a line', got is not None)
            if 'expected' in case and got is not None:
                check(f'{path.name} {where}',
                      any(run_agrees(path.name, case['expected'], one) for one in got),
                      (case['expected'], got))


def in_order(findings):
    return sorted((one['code'], one.get('node') or '', one.get('agent') or '') for one in findings)


def verify_agrees(case, got):
    if got['exit'] != case['exit']:
        return False
    expected = case.get('expect')
    if expected is None:
        return True
    result = got.get('result')
    return isinstance(result, dict) and all(
        in_order(result[name]) == in_order(value) if name in ('errors', 'warnings')
        else result.get(name) == value for name, value in expected.items())


def compare_lattice():
    folder = vectors / 'lattice'
    told = lines_of('lattice', folder)
    index = json.loads((folder / 'index.json').read_text())
    for case in index['trace_cases']:
        check(f'lattice {case["name"]}', any('stdout' not in got and verify_agrees(case, got)
                                             for got in told[case['name']]), case['name'])
    for case in index['text_cases']:
        text = (folder / case['stdout']).read_text()
        check(f'printout {case["name"]}', any(
            got.get('stdout') == text and got['exit'] == case['exit']
            for got in told[case['name']]), case['name'])
    for case in index['unreadable_cases']:
        check(f'refused {case["file"]}', {'code': case['code'], 'exit': case['exit']}
              in told[case['file']], told.get(case['file']))
    for i, case in enumerate(json.loads((folder / 'patch.json').read_text())):
        where = case.get('name') or f'patch.json#/{i}'
        check(where, case['new'] in told[where], told[where])
    for name in 'dicts', 'states':
        for i, case in enumerate(json.loads((folder / 'merge.json').read_text())[name]):
            where = case.get('name') or f'merge.json#/{name}/{i}'
            check(where, case['expect'] in told[where], told[where])
    for i, case in enumerate(json.loads((folder / 'canonical.json').read_text())['texts']):
        expected = {name: case[name] for name in ('canonical', 'sha256', 'error') if name in case}
        check(f'canonical.json#/texts/{i}', expected in told[f'canonical.json#/texts/{i}'])


compare_trace()
compare_run(vectors / 'run')
compare_lattice()
finish_counted()
