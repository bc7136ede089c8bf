#!/usr/bin/env python3
"""check_prose.py [--fix|--update] [FILE...] - the words and the width of Markdown.

Two rules for every Markdown file of the tree:

    width  prose wraps at 100 columns.  Tables, code blocks, headings and lines that cannot be broken
           (a long link, one long word) are exempt.
    words  prose does not use a word of tools/retired-words.txt.  Code and link targets are exempt, and
           files that the list itself exempts.

tools/prose-known.txt has what breaks them today: `file <TAB> rule or word <TAB> count`.  A count that
grows fails, a file that is not named there may have none.  --update lowers the counts to what is left;
it never raises one (where the list is missing, it starts it).  --fix wraps the paragraphs that are too
wide.
"""
import collections
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = ROOT / 'tools' / 'retired-words.txt'
KNOWN = ROOT / 'tools' / 'prose-known.txt'
COLUMNS = 100
WIDE = 'wider than 100'
SKIPPED_FOLDERS = {'node_modules', 'build', '.git', 'golden'}  # golden: recorded by agents

CODE_SPAN = re.compile(r'(`+)(?:(?!\1).)+\1', re.S)
TARGET = re.compile(r'\]\([^)\s]*\)|<https?:[^>\s]*>|https?:\S+|^\[[^\]]+\]: .*$', re.M)
ITEM = re.compile(r'[ ]*(?:[-*+]|[0-9]+[.)])[ ]+')
# What must not come to stand at the beginning of a line, where it would mean something.
MARK = re.compile(r'(?:[-*+]|#{1,6}|=+|-+|[0-9]+[.)])$|[>|]|~~~|```')


class Block:
    """Lines that belong together: first line number (from 1), lines, whether they are prose."""

    def __init__(self, number, prose):
        self.number = number
        self.lines = []
        self.prose = prose


def blocks_of(text):
    """Every line of `text` in one block; a paragraph or an item of a list is a block of prose."""
    blocks = []
    fence = None
    front = False  # within a comment <!-- -->
    for number, line in enumerate(text.split('\n'), 1):
        bare = line.strip()
        opens = re.match(r' *(`{3,}|~{3,})', line)
        if fence or opens or front:
            prose = False
            if fence and bare.startswith(fence) and not bare.strip(fence[0]):
                fence = None
            elif opens and not fence:
                fence = opens.group(1)
        else:
            indented = line.startswith('    ') and not (blocks and blocks[-1].prose
                                                        and blocks[-1].lines[-1].strip())
            prose = bool(bare) and not indented and not bare.startswith(('|', '#', '<', '[!'))
        if not fence and bare.startswith('<!--'):
            front = True
        if front and '-->' in bare:
            front = False
        new = not (blocks and blocks[-1].prose and prose) or ITEM.match(line) \
            or bare.startswith('>') != blocks[-1].lines[-1].strip().startswith('>')
        if new:
            blocks.append(Block(number, prose))
        blocks[-1].lines.append(line)
    return blocks


def tokens_of(text):
    """Words that must not be broken: a code span and a link stay whole when they are short."""
    def hold(match):
        span = match.group()
        return span.replace(' ', '\0') if len(span) <= 60 else span

    text = CODE_SPAN.sub(hold, ' '.join(text.split()))
    text = re.sub(r'\[[^\]]*\]\([^)\s]*\)', hold, text)
    return [token.replace('\0', ' ') for token in text.split(' ')]


def wrapped(block):
    """The lines of a block of prose, none wider than COLUMNS where that can be helped."""
    first = block.lines[0]
    item = ITEM.match(first)
    quote = re.match(r' *> ?', first)
    start = (item or quote or re.match(r' *', first)).group()
    more = quote.group() if quote and not item else ' ' * len(start)
    if not item and len(block.lines) > 1 and not quote:
        more = re.match(r' *', block.lines[1]).group()
    if any(line.endswith(('  ', '\\')) for line in block.lines):
        return block.lines  # a line break that is meant
    if quote and not item:
        words = [re.sub(r'^ *> ?', '', line) for line in block.lines]
    else:
        words = [first[len(start):]] + block.lines[1:]
    lines = [start]
    empty = True
    for token in tokens_of('\n'.join(words)):
        line = lines[-1]
        if empty:
            lines[-1] += token
        elif len(line) + 1 + len(token) > COLUMNS and not MARK.match(token):
            lines.append(more + token)
        else:
            lines[-1] += ' ' + token
        empty = False
    return lines


def is_wide(line):
    """Too wide, and can be broken before the last column."""
    if len(line) <= COLUMNS:
        return False
    start = ITEM.match(line)
    words = tokens_of(line[start.end():] if start else line)
    return len(words) > 1


def prose_only(block):
    text = '\n'.join(block.lines)
    return TARGET.sub('](', CODE_SPAN.sub('``', text))


def retired():
    """[(name, pattern, better, exempt file or '')]"""
    out = []
    for line in WORDS.read_text(encoding='utf-8').split('\n'):
        if line and not line.startswith('#'):
            pattern, better, exempt = (line.split('\t') + [''])[:3]
            name = re.sub(r'\(\?!.*\)', '', pattern.split('|')[0])
            pattern = pattern.replace(' ', r'\s+')
            out.append((name, re.compile(rf'\b(?:{pattern})\b', re.I), better, exempt.split(':')[0]))
    return out


def findings(path, words):
    """[(rule or word, line number, what to do)]"""
    found = []
    for block in blocks_of(path.read_text(encoding='utf-8')):
        if not block.prose and not block.lines[0].lstrip().startswith(('|', '#')):
            continue
        if block.prose:
            found += [(WIDE, block.number + at, 'wrap it') for at, line in enumerate(block.lines)
                      if is_wide(line)]
        text = prose_only(block)
        for name, pattern, better, exempt in words:
            if exempt and path == ROOT / exempt:
                continue
            for match in pattern.finditer(text):
                found.append((name, block.number + text.count('\n', 0, match.start()), better))
    return found


def fix(path):
    text = path.read_text(encoding='utf-8')
    lines = []
    for block in blocks_of(text):
        wide = block.prose and any(is_wide(line) for line in block.lines)
        lines += wrapped(block) if wide else block.lines
    if '\n'.join(lines) != text:
        path.write_text('\n'.join(lines), encoding='utf-8')
        print(f'wrapped {path}')


def markdown_files():
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for name in sorted(names):
            if name.endswith('.md'):
                yield pathlib.Path(folder) / name


def read_known():
    known = {}
    if KNOWN.exists():
        for line in KNOWN.read_text(encoding='utf-8').split('\n'):
            if line and not line.startswith('#'):
                name, what, count = line.split('\t')
                known[name, what] = int(count)
    return known


def write_known(counts):
    head = ('# What tools/check_prose.py knows of and does not refuse: file, rule or word, count.\n'
            '# Counts only shrink (tools/check_prose.py --update).\n')
    KNOWN.write_text(head + ''.join(f'{name}\t{what}\t{count}\n'
                                    for (name, what), count in sorted(counts.items()) if count),
                     encoding='utf-8')


def main():
    words = [word for word in sys.argv[1:] if not word.startswith('--')]
    paths = [pathlib.Path(word).resolve() for word in words] or list(markdown_files())
    if '--fix' in sys.argv:
        for path in paths:
            fix(path)
    starting = not KNOWN.exists()
    known = read_known()
    counts = collections.Counter()
    grown = []
    for path in paths:
        name = str(path.relative_to(ROOT))
        by_what = collections.defaultdict(list)
        for what, number, better in findings(path, retired()):
            by_what[what].append((number, better))
        for what, places in by_what.items():
            counts[name, what] = len(places)
            allowed = known.get((name, what), 0)
            if len(places) > allowed:
                grown.append(f'{name}: "{what}" {len(places)} times, {allowed} allowed '
                             f'(better: {places[0][1]}); lines '
                             + ', '.join(str(number) for number, _ in places))
    checked = {str(path.relative_to(ROOT)) for path in paths}
    kept = {key: count for key, count in known.items() if key[0] not in checked}
    if '--update' in sys.argv:
        write_known(kept | (counts if starting else
                            {key: min(count, known.get(key, 0)) for key, count in counts.items()}))
    if grown and not (starting and '--update' in sys.argv):
        print('\n'.join(grown))
        sys.exit(1)
    spare = sum(known.values()) - sum(kept.values()) - sum(counts.values())
    print(f'{len(paths)} files' + (f'; {spare} findings fewer than known: run '
                                   'tools/check_prose.py --update' if spare > 0 else ''))


if __name__ == '__main__':
    main()
