#!/usr/bin/env python3
"""check_format.py [--fix] [FILE...] - the layout of the C files.

Three rules:

    code      as clang-format writes it (.clang-format)
    comments  at most 100 columns; clang-format leaves them alone, because it joins the lines of
              tables and numbered lists
    banners   `/* --- name ----- */` on one line of at most 100 columns, between empty lines

Without FILE, every C file below the folders of ours.  Prints the files that differ and exits 1;
--fix rewrites them.  Another version of clang-format than Debian 12's answers otherwise: without it
the check is skipped (exit 77).  CLANG_FORMAT names a program to use instead.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ['src', 'include', 'verify', 'bench', 'fuzz', 'tests', 'examples']
VERSION = '14'
COLUMNS = 100
NAME_MAX = COLUMNS - len('/* --- ') - len(' --- */')
SKIPPED = 77
BATCH = 24  # files per process

BANNER = re.compile(r'^/\* --- (?P<text>.*?)\*/[ \t]*\n', re.S | re.M)
# The lines of a comment that starts its line, without strings that look like one.
COMMENT = re.compile(r'^[ \t]*/\*.*?\*/', re.S | re.M)
# "- text", "2. text", "I3  text", "several words   text"; not two spaces after a sentence.
LIST_ITEM = re.compile(r'(?:[-*] |[0-9]+[.)] |[\w/,-]+(?: [\w/,-]+)*  +)')


def find_clang_format():
    """The program, or None when there is none of the right version."""
    for name in [os.environ.get('CLANG_FORMAT'), f'clang-format-{VERSION}', 'clang-format']:
        path = shutil.which(name) if name else None
        if path is None:
            continue
        answer = subprocess.run([path, '--version'], capture_output=True, text=True, check=False)
        if re.search(rf'version {VERSION}\.', answer.stdout):
            return path
    return None


def c_files():
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob('*.[ch]')
                  if 'node_modules' not in path.parts)


# --- banners ----------------------------------------------------------------------------------


def banner_line(name):
    start = f'/* --- {name} '
    return start + '-' * (COLUMNS - len(start) - 3) + ' */'


def one_banner(match):
    """A banner as it should be, with what follows it in the same comment as a comment of its own."""
    text = match['text']
    line = match.group().rstrip()
    if '\n' not in line and len(line) <= COLUMNS and line.endswith('- */'):
        return match.group()
    head, rule, rest = re.match(r'(.*?)(-{3,}|$)(.*)', text, re.S).groups()
    name = ' '.join(re.sub(r'\n[ \t]*\*[ \t]?', ' ', head).split())
    rest = rest.strip(' \t\n*-') if rule else ''
    if len(name) > NAME_MAX:  # what stands in brackets, or does not fit, goes below
        cut = name.rfind(' (', 0, NAME_MAX + 1)
        cut = name.rfind(' ', 0, NAME_MAX + 1) if cut < 0 else cut
        rest = f'{name[cut:].strip()} {rest}'.strip()
        name = name[:cut]
    out = banner_line(name) + '\n'
    if rest:
        out += '\n/*\n * ' + rest + '\n */\n'
    return out


def with_banners(text):
    text = BANNER.sub(one_banner, text)
    text = re.sub(r'(?<!\n)\n(/\* --- .*- \*/\n)', r'\n\n\1', text)
    return re.sub(r'^(/\* --- .*- \*/\n)(?!\n)', r'\1\n', text, flags=re.M)


# --- comments ---------------------------------------------------------------------------------


def hanging(line):
    """(prefix of a line, prefix of the lines that continue it)"""
    prefix = re.match(r'[ \t]*(?:/\*+|\*)? *', line).group()
    rest = line[len(prefix):]
    deeper = prefix.replace('/*', ' *', 1)
    item = LIST_ITEM.match(rest)
    if item:
        deeper += ' ' * len(item.group())
    return prefix, deeper


def continuation(line, following):
    """The words of `following` with its prefix when it continues `line`, which is too long."""
    match = re.match(r'[ \t]*\*(?!/) *', following)
    if match is None:
        return None
    prefix, deeper = hanging(line)
    rest = following[match.end():]
    if rest.strip() in ('', '*/') or LIST_ITEM.match(rest):
        return None
    column = match.end()
    if column == len(deeper) or (deeper != prefix and column > len(deeper)):
        return match.group(), rest
    return None


def narrow(comment):
    """A comment whose lines are too long, with their last words in the next line."""
    lines = comment.split('\n')
    number = 0
    while number < len(lines):
        line = lines[number]
        if len(line) > COLUMNS:
            prefix, deeper = hanging(line)
            cut = line.rfind(' ', len(prefix) + 1, COLUMNS + 1)
            if line[cut:].strip() == '*/':  # no line that only closes the comment
                cut = line.rfind(' ', len(prefix) + 1, cut)
            if cut > len(prefix):
                rest = line[cut:].strip()
                lines[number] = line[:cut].rstrip()
                following = lines[number + 1] if number + 1 < len(lines) else ''
                more = continuation(line, following)
                if more:
                    lines[number + 1] = f'{more[0]}{rest} {more[1]}'
                else:
                    lines.insert(number + 1, deeper + rest)
        number += 1
    return '\n'.join(lines)


def too_wide(comment):
    """A word that is too long by itself cannot be helped."""
    return comment != narrow(comment)


# --- files ------------------------------------------------------------------------------------


def by_hand(text):
    """`text` by the two rules that clang-format does not hold."""
    return COMMENT.sub(lambda match: narrow(match.group()), with_banners(text))


def says_warning(program, paths):
    """Those of `paths` that clang-format would change."""
    answer = subprocess.run([program, '--dry-run', '--style=file', *map(str, paths)],
                            capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    named = set(re.findall(r'^(.+?):\d+:\d+: warning: code should be clang-formatted',
                           answer.stderr, re.M))
    return {path for path in paths if str(path) in named}


def over_batches(function, paths):
    batches = [paths[at:at + BATCH] for at in range(0, len(paths), BATCH)]
    with concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        return list(pool.map(function, batches))


def fix(program, paths):
    def in_place(batch):
        subprocess.run([program, '-i', '--style=file', *map(str, batch)], check=True)

    before = {path: path.read_text(encoding='utf-8') for path in paths}
    for path in paths:
        wanted = by_hand(before[path])
        if wanted != before[path]:
            path.write_text(wanted, encoding='utf-8')
    over_batches(in_place, paths)
    changed = [path for path in paths if path.read_text(encoding='utf-8') != before[path]]
    print(f'{len(changed)} of {len(paths)} files rewritten')


def main():
    words = sys.argv[1:]
    fixing = '--fix' in words
    paths = [pathlib.Path(word).resolve() for word in words if word != '--fix'] or c_files()
    program = find_clang_format()
    if program is None:
        print(f'no clang-format {VERSION}: skipped')
        sys.exit(SKIPPED)
    if fixing:
        fix(program, paths)
    differ = set().union(*over_batches(lambda batch: says_warning(program, batch), paths))
    wrong = []
    for path in paths:
        text = path.read_text(encoding='utf-8')
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        why = [what for what, holds in (
            ('code', path in differ),
            ('banners', with_banners(text) != text),
            ('comments', any(too_wide(match.group()) for match in COMMENT.finditer(text)))) if holds]
        if why:
            wrong.append(f'{name}: {", ".join(why)}')
    if wrong:
        print('\n'.join(wrong))
        print(f'{len(wrong)} of {len(paths)} files; tools/check_format.py --fix rewrites them')
        sys.exit(1)
    print(f'{len(paths)} files')


if __name__ == '__main__':
    main()
