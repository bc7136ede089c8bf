#!/usr/bin/env python3
"""sum_results.py RESULTS.xml [AGAIN.xml] - prints `PASSED FAILED SKIPPED` of one ctest run.

Reads what `ctest --output-junit` wrote.  AGAIN, where it is there, holds the tests that ran a second
time: their second outcome counts, and those it changed are named on standard error.

A test whose output has a closing line `N passed, N failed, N skipped` counts what the last such line
says; any other test counts as one.
A test that ctest calls failed counts at least one failure, whatever its closing line says: it may
have crashed or leaked after printing it.
"""
import os
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


def cases_of(path):
    """{name: (passed, failed, skipped)}"""
    return {case.get('name'): count(case) for case in xml.parse(path).getroot().iter('testcase')}


def main():
    try:
        counts = cases_of(sys.argv[1])
        if len(sys.argv) > 2 and os.path.exists(sys.argv[2]):
            for name, again in cases_of(sys.argv[2]).items():
                if again[1] == 0:
                    print(f'{name}: failed beside other tests, passed alone', file=sys.stderr)
                counts[name] = again
    except (OSError, xml.ParseError) as problem:
        print(f'{sys.argv[0]}: {problem}', file=sys.stderr)
        print('0 1 0')
        return
    print(*(sum(column) for column in zip((0, 0, 0), *counts.values())))


main()
