#!/usr/bin/env python3
"""quarantine.py - the list of tests that are known to be flaky, tests/quarantine.txt.

Fails for a line that is not `name <TAB> YYYY-MM-DD <TAB> reason`, for a test that is listed twice, for a
date that has not come yet, and for an entry older than 30 days: by then the test is repaired or gone.
"""
import datetime
import pathlib
import sys

LIST = pathlib.Path(__file__).resolve().parent.parent / 'tests' / 'quarantine.txt'
DAYS = 30


def read(path=LIST, today=None):
    """({name: reason} of what still counts, [what is wrong])"""
    today = today or datetime.date.today()
    good, wrong = {}, []
    for number, line in enumerate(path.read_text(encoding='utf-8').split('\n'), 1):
        if not line.strip() or line.startswith('#'):
            continue
        try:
            name, date, reason = line.split('\t')
            age = (today - datetime.date.fromisoformat(date)).days
        except ValueError:
            wrong.append(f'line {number}: expected name, YYYY-MM-DD and reason, separated by tabs')
            continue
        if not name.strip() or not reason.strip():
            wrong.append(f'line {number}: a name and a reason are needed')
        elif name in good:
            wrong.append(f'line {number}: {name} is listed twice')
        elif age < 0:
            wrong.append(f'line {number}: {name}: {date} is in the future')
        elif age > DAYS:
            wrong.append(f'line {number}: {name} is listed for {age} days, at most {DAYS}')
        else:
            good[name] = reason
    return good, wrong


def main():
    good, wrong = read()
    print('\n'.join(f'tests/quarantine.txt: {what}' for what in wrong) or f'{len(good)} entries')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
