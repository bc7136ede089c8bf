#!/usr/bin/env python3
"""sum_results.py RESULTS.xml [AGAIN.xml] - prints `PASSED FAILED SKIPPED` of one ctest run.

Reads what `ctest --output-junit` wrote.  AGAIN, where it is there, holds the tests that failed and ran a
second time, alone.  One that passed then is flaky: it is named on standard error and counts as failed,
unless tests/quarantine.txt lists it.

A test whose output has a closing line `N passed, N failed, N skipped` counts what the last such line
says; any other test counts as one.
A test that ctest calls failed counts at least one failure, whatever its closing line says: it may
have crashed or leaked after printing it.
"""
import os
import re
import sys
import xml.etree.ElementTree as xml

import quarantine

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


def with_second(first, second, known):
    """(the counts after a second run, [what there is to say of it]); `known`: {name: reason}"""
    counts, remarks = dict(first), []
    for name, again in second.items():
        if again[1] != 0 or name not in first:
            counts[name] = again
        elif name in known:
            counts[name] = again
            remarks.append(f'{name}: flaky, in quarantine: {known[name]}')
        else:
            remarks.append(f'FLAKY: {name} failed, and passed when it ran alone; it counts as failed')
    return counts, remarks


def main():
    try:
        counts = cases_of(sys.argv[1])
        if len(sys.argv) > 2 and os.path.exists(sys.argv[2]):
            counts, remarks = with_second(counts, cases_of(sys.argv[2]), quarantine.read()[0])
            print(*remarks, sep='\n', end='\n' if remarks else '', file=sys.stderr)
    except (OSError, xml.ParseError) as problem:
        print(f'{sys.argv[0]}: {problem}', file=sys.stderr)
        print('0 1 0')
        return
    print(*(sum(column) for column in zip((0, 0, 0), *counts.values())))


if __name__ == '__main__':
    main()
