#!/usr/bin/env python3
"""check_names.py [--update] [--list] - retired names and words in C.

tools/retired-names.txt has the patterns: parts of identifiers, and words of comments.  Strings are not
looked at, because formats have names of their own.

tools/names-known.txt has what is left: `folder <TAB> where <TAB> word <TAB> count`, for each top folder,
so that moving a file changes nothing.  A count that grows fails.  --update lowers the counts to what is
left and never raises one (where the list is missing, it starts it).  --list prints every finding.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = ROOT / 'tools' / 'retired-names.txt'
KNOWN = ROOT / 'tools' / 'names-known.txt'
FOLDERS = ('src', 'include', 'verify', 'tests', 'bench', 'fuzz')

# A comment, a string, a character, or an identifier; whatever is in none of them is not looked at.
TOKEN = re.compile(r'/\*(?P<block>.*?)\*/|//(?P<line>[^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
                   r'|(?P<name>[A-Za-z_]\w*)', re.S)


class Rule:
    """One line of the list for one of name and comment."""

    def __init__(self, where, pattern, better):
        self.where = where
        self.word = re.sub(r'\(\?<?!.*?\)|\w\?', '', pattern.split('|')[0])
        self.better = better
        spaced = pattern.replace(' ', r'[\s*]+')
        self.pattern = re.compile(rf'(?<![a-z0-9])(?:{pattern})(?![a-z0-9])' if where == 'name'
                                  else rf'\b(?:{spaced})\b', re.I)


def rules():
    out = []
    for line in WORDS.read_text(encoding='utf-8').split('\n'):
        if line and not line.startswith('#'):
            where, pattern, better = line.split('\t')
            out += [Rule(one, pattern, better) for one in
                    (('name', 'comment') if where == 'both' else (where,))]
    return out


def findings(text, all_rules):
    """[(rule, line number, what was found)]"""
    found = []
    by_name = collections.defaultdict(list)
    for token in TOKEN.finditer(text):
        if token.group('name'):
            by_name[token.group('name')].append(token.start())
            continue
        comment = token.group('block') or token.group('line')
        for rule in all_rules if comment else []:
            if rule.where == 'comment':
                found += [(rule, text.count('\n', 0, token.start() + 2 + match.start()) + 1,
                           match.group()) for match in rule.pattern.finditer(comment)]
    for name, places in by_name.items():
        for rule in all_rules:
            if rule.where == 'name' and rule.pattern.search(name):
                found += [(rule, text.count('\n', 0, at) + 1, name) for at in places]
    return found


def sources():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob('*.[ch]')):
            yield folder, path


def read_known():
    known = {}
    if KNOWN.exists():
        for line in KNOWN.read_text(encoding='utf-8').split('\n'):
            if line and not line.startswith('#'):
                folder, where, word, count = line.split('\t')
                known[folder, where, word] = int(count)
    return known


def write_known(counts):
    head = ('# What tools/check_names.py knows of and does not refuse: folder, where, word, count.\n'
            '# Counts only shrink (tools/check_names.py --update).\n')
    KNOWN.write_text(head + ''.join('\t'.join(key) + f'\t{count}\n'
                                    for key, count in sorted(counts.items()) if count),
                     encoding='utf-8')


def main():
    all_rules = rules()
    places = collections.defaultdict(list)
    better = {(rule.where, rule.word): rule.better for rule in all_rules}
    files = 0
    for folder, path in sources():
        files += 1
        for rule, number, what in findings(path.read_text(encoding='utf-8'), all_rules):
            places[folder, rule.where, rule.word].append(f'{path.relative_to(ROOT)}:{number}: {what}')
    if '--list' in sys.argv:
        for key, found in sorted(places.items()):
            print('\n'.join(f'{place} (better: {better[key[1:]]})' for place in found))
    starting = not KNOWN.exists()
    known = read_known()
    counts = {key: len(found) for key, found in places.items()}
    if '--update' in sys.argv:
        write_known(counts if starting else
                    {key: min(count, counts.get(key, 0)) for key, count in known.items()})
        if starting:
            known = counts
    grown = [f'{folder}: "{word}" {count} times in {where}s, {known.get((folder, where, word), 0)} '
             f'allowed (better: {better[where, word]}); check_names.py --list shows where'
             for (folder, where, word), count in sorted(counts.items())
             if count > known.get((folder, where, word), 0)]
    if grown:
        print('\n'.join(grown))
        sys.exit(1)
    spare = sum(known.values()) - sum(counts.values())
    print(f'{files} files, {sum(counts.values())} findings left' +
          (f'; {spare} fewer than known: run tools/check_names.py --update' if spare > 0 else ''))


if __name__ == '__main__':
    main()
