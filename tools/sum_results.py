#!/usr/bin/env python3
"""sum_results.py RESULTS.xml - prints `PASSED FAILED SKIPPED` of one ctest run.

Reads what `ctest --output-junit` wrote.  A test whose output has a closing line
`N passed, N failed, N skipped` counts what the last such line says; any other test counts as one.
A test that ctest calls failed counts at least one failure, whatever its closing line says: it may
have crashed or leaked after printing it.
"""
import re
import sys
import xml.etree.ElementTree as xml

CLOSING = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped\s*$', re.M)


def outcome(case):
    """'passed', 'failed' or 'skipped', as ctest saw it."""
    status = case.get('status')
    if status == 'run':
        return 'passed'
    if status == 'disabled':
        return 'skipped'
    reason = case.find('skipped')
    # Any other reason not to run, such as a program that was not built, is a failure.
    if status == 'notrun' and reason is not None and reason.get('message', '').startswith('SKIP_'):
        return 'skipped'
    return 'failed'


def count(case):
    """(passed, failed, skipped) of one test."""
    seen = outcome(case)
    lines = CLOSING.findall(case.findtext('system-out') or '')
    if not lines:
        return seen == 'passed', seen == 'failed', seen == 'skipped'
    passed, failed, skipped = map(int, lines[-1])
    if seen == 'failed' and failed == 0:
        failed = 1
    return passed, failed, skipped


def main():
    try:
        cases = xml.parse(sys.argv[1]).getroot().iter('testcase')
    except (OSError, xml.ParseError) as problem:
        print(f'{sys.argv[0]}: {problem}', file=sys.stderr)
        print('0 1 0')
        return
    print(*(sum(column) for column in zip((0, 0, 0), *map(count, cases))))


main()
