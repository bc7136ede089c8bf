#!/usr/bin/env python3
"""check_commits.py [RANGE] - the form of commit messages since the last release.

    module: what changes        at most 72 columns, no full stop
                                an empty line
    Why, in whole sentences.    not asked for when a commit changes few lines

RANGE is what git log takes; without it, the commits after the newest tag vX.Y.Z, or where there is no
tag, after the commit with which this rule began.  Merges are not looked at.  Exit 77 where there is no
repository, or not enough of its history.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST = '1f1caebea5cbb04aeeee879c6dab3dad5e1fb58e'
COLUMNS = 72
TRIVIAL_LINES = 10  # changed in all
SKIPPED = 77

MODULE = r'[a-z][a-z0-9_.-]*(?:/[a-z0-9_.-]+)*'
SUBJECT = re.compile(rf'{MODULE}(?:, {MODULE})*: \S.*')


def git(*words):
    return subprocess.run(['git', '-C', str(ROOT), *words], capture_output=True, text=True,
                          check=False)


def default_range():
    """None where it cannot be known."""
    tag = git('describe', '--tags', '--abbrev=0', '--match', 'v[0-9]*.[0-9]*.[0-9]*')
    if tag.returncode == 0:
        return tag.stdout.strip() + '..HEAD'
    if git('merge-base', '--is-ancestor', FIRST, 'HEAD').returncode == 0:
        return FIRST + '..HEAD'
    return None


def changed_lines(commit):
    """Lines added and removed; a binary file counts as many."""
    total = 0
    for line in git('show', '--numstat', '--format=', commit).stdout.split('\n'):
        if line:
            added, removed, _ = line.split('\t', 2)
            total += 1000 if added == '-' else int(added) + int(removed)
    return total


def faults(message, changed):
    """What is wrong with a message."""
    lines = message.rstrip('\n').split('\n')
    subject = lines[0]
    if not SUBJECT.fullmatch(subject):
        yield 'expected "module: what changes"'
    if len(subject) > COLUMNS:
        yield f'{len(subject)} columns, at most {COLUMNS}'
    if subject.endswith('.'):
        yield 'ends with a full stop'
    if len(lines) > 1 and lines[1]:
        yield 'no empty line below the subject'
    body = [line for line in lines[1:] if line and not re.match(r'[A-Z][A-Za-z-]+: ', line)]
    if not body and changed > TRIVIAL_LINES:
        yield f'changes {changed} lines and does not say why'


def main():
    if not (ROOT / '.git').exists():
        print('no repository: skipped')
        sys.exit(SKIPPED)
    wanted = sys.argv[1] if len(sys.argv) > 1 else default_range()
    if wanted is None:
        print('the history is too short: skipped')
        sys.exit(SKIPPED)
    listed = git('log', '--no-merges', '--format=%H', wanted)
    if listed.returncode != 0:
        print(listed.stderr.strip())
        sys.exit(2)
    commits = listed.stdout.split()
    wrong = 0
    for commit in commits:
        message = git('log', '-1', '--format=%B', commit).stdout
        for fault in faults(message, changed_lines(commit)):
            print(f'{commit[:7]} {message.split(chr(10))[0]}: {fault}')
            wrong += 1
    if wrong:
        print(f'{wrong} faults in {len(commits)} commits ({wanted})')
        sys.exit(1)
    print(f'{len(commits)} commits')


if __name__ == '__main__':
    main()
