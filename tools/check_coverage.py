#!/usr/bin/env python3
"""check_coverage.py CORTEX            docs/coverage.md is whole, and what it names is there
check_coverage.py --update CORTEX   writes its summary as well

The page has a row for each demand of the four specifications.  Refused are

    a section of a specification without a heading or a row, and a heading that is no section
    a name of a row that occurs twice, or is not that of its section
    a state that is none of STATES; one other than `there` without a reason
    a row without anything that shows it, but for `not there`
    a test, command, option, route, file or link that does not exist
    a summary that does not count what the rows say

What stands in backquotes in the column "shown by" is a test (a function of a script or unit below tests/, a row
FILE:ROW of tests/attack/, a script below tests/diff/, a test of CTest), a file, `cortex WORDS`, `cortex-verify
OPTIONS`, `./SCRIPT`, or a route of docs/openapi.json.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_docs  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs/coverage.md'
STATES = ['there', 'partly', 'different', 'not there']
FIRST, LAST = '<!-- summary: tools/check_coverage.py --update writes it -->\n', '<!-- end -->\n'
LEAST_REASON = 20  # letters of a reason that is no link

# Sections that demand something.  Left out, because they demand nothing: the introduction of F; 9 of T, which names
# other pages; 9 to 17 of P, which name volumes that the text does not contain.
SECTIONS = {
    'F': '1 1.1 1.2 2 3 3.1 3.2 3.3 4.1 4.2 4.3 5',
    'S': '1 2 3 4 5 6 7 8 9 10 11',
    'T': '1 2 3 3.1 3.2 4.1 4.2 4.3 4.4 4.5 4.6 5.1 5.2 6 7 8.1 8.2',
    'P': '0.1 0.2 0.3 0.4 1 2.1 2.2 3 4.1 4.2 5.1 5.2 5.3 6.1 6.1.1 6.1.2 6.1.3 6.1.4 6.2 6.2.1 6.2.2 7 8',
}


class Facts:
    """What a row may name."""

    def __init__(self, root, commands, verify_options):
        self.root = root
        self.tests = check_docs.test_names() | ctest_names(root)
        self.commands = commands
        self.verify_options = verify_options
        document = json.loads((root / 'docs/openapi.json').read_text())
        self.routes = {f'{method.upper()} {path}' for path, methods in document['paths'].items() for method in methods}


def ctest_names(root):
    """Tests that are no functions: those that CMake names, and the scripts of tests/diff/."""
    text = ''.join((root / 'tests' / name).read_text() for name in ('CMakeLists.txt', 'extra.cmake'))
    names = set(re.findall(r'\badd_test\(NAME (\w+)\s', text)) | set(re.findall(r'\bcx_(?:script|check)\((\w+) ', text))
    return names | {path.stem for path in (root / 'tests/diff').glob('*_diff.py')}


def commands_of(program):
    """{words of a command: its options}"""
    text = subprocess.run([program, 'help', '--json'], capture_output=True, check=True).stdout
    return {command['name']: {option['name'] for option in command['options']}
            for command in json.loads(text)['commands']}


def options_of_verify(program):
    verify = pathlib.Path(program).resolve().parent / 'cortex-verify'
    text = subprocess.run([verify, '--help'], capture_output=True, check=True, text=True).stdout
    return set(re.findall(r'(?<![\w-])--([a-z][a-z-]*)', text))


def unknown_command(words, commands):
    """What is wrong with `cortex WORDS`, or None."""
    for count in range(min(len(words), 3), 0, -1):
        name = ' '.join(words[:count])
        if name in commands:
            wrong = [w for w in words[count:] if w.startswith('--') and w[2:].split('=')[0] not in commands[name]]
            return f'{name} has no option {wrong[0]}' if wrong else None
    return 'there is no such command'


def unknown(word, facts):
    """What is wrong with a word of the column "shown by", or None."""
    if word.startswith('cortex '):
        return unknown_command(word.split()[1:], facts.commands)
    if word.startswith('cortex-verify'):
        wrong = [w for w in word.split()[1:] if w.startswith('--') and w[2:] not in facts.verify_options]
        return f'it has no option {wrong[0]}' if wrong else None
    if re.match(r'(GET|POST|DELETE) /', word):
        return None if word in facts.routes else 'there is no such route'
    if '/' in word:
        path = facts.root / word
        if word.startswith('/') or '..' in word or not path.exists():
            return 'there is no such file'
        return 'it is no program' if word.startswith('./') and not path.stat().st_mode & 0o100 else None
    return None if word in facts.tests else 'there is no such test'


def anchors(text):
    """The names under which GitHub finds the headings of a page."""
    return {re.sub(r'[^\w\- ]', '', re.sub(r'`', '', line.lstrip('#').strip()).lower()).replace(' ', '-')
            for line in text.split('\n') if line.startswith('#')}


def broken_links(text, page):
    for target in re.findall(r'\]\(([^)\s]+)\)', text):
        name, _, anchor = target.partition('#')
        path = (page.parent / name).resolve() if name else page
        if re.match(r'[a-z]+:', target):
            continue
        if not path.is_file():
            yield f'there is no page {name}'
        elif anchor and anchor not in anchors(path.read_text()):
            yield f'{name or "the page"} has no heading #{anchor}'


def rows_of(text):
    """(line number, section that it is in, cells) of each row below a heading of a section."""
    section = None
    for number, line in enumerate(text.split('\n'), 1):
        heading = re.match(r'#+ (.*)', line)
        if heading:
            found = re.match(r'### ([A-Z][\d.]+) ', line)
            section = found.group(1) if found else None
        elif section and line.startswith('| ') and not line.startswith('| row '):
            yield number, section, [cell.strip() for cell in line.strip().strip('|').split('|')]


def faults_of_row(section, cells, facts):
    if len(cells) != 5:
        yield f'{len(cells)} columns, not 5'
        return
    name, asked, state, shown, reason = cells
    if not re.fullmatch(re.escape(section) + r'-[1-9]\d*', name):
        yield f'the row {name} is not of section {section}'
    if not asked:
        yield f'{name}: it does not say what is asked'
    if state not in STATES:
        yield f'{name}: the state is "{state}", not one of {", ".join(STATES)}'
    words = re.findall(r'`([^`]+)`', shown)
    if re.sub(r'`[^`]+`|[, ]', '', shown):
        yield f'{name}: what shows it is not in backquotes'
    if not words and state != 'not there':
        yield f'{name}: nothing shows it'
    for word in words:
        wrong = unknown(word, facts)
        if wrong:
            yield f'{name}: {word}: {wrong}'
    if state in STATES[1:] and '](' not in reason and not (len(reason) >= LEAST_REASON and reason.endswith('.')):
        yield f'{name}: {state}, without a reason'


def summary(rows):
    """The summary as text: how many rows of each text have each state, and which are not `there`."""
    lines = ['', '| text | ' + ' | '.join(STATES) + ' | rows |', '|---|' + '---|' * (len(STATES) + 1)]
    for letter in list(SECTIONS) + ['all']:
        states = [cells[2] for _, section, cells in rows if letter in ('all', section[0]) and len(cells) == 5]
        lines.append(f'| {letter} | ' + ' | '.join(str(states.count(s)) for s in STATES) + f' | {len(states)} |')
    lines += ['', '| state | rows |', '|---|---|']
    for state in STATES[1:]:
        lines.append(f'| {state} | ' + ' '.join(cells[0] for _, _, cells in rows
                                                if len(cells) == 5 and cells[2] == state) + ' |')
    return '\n'.join(lines + ['', ''])


def with_summary(text):
    start, end = text.index(FIRST) + len(FIRST), text.index(LAST)
    return text[:start] + summary(list(rows_of(text))) + text[end:]


def faults(text, facts, page=PAGE, sections=None):
    """Everything that is wrong with the page, a line each."""
    wanted = [letter + number for letter, numbers in (sections or SECTIONS).items() for number in numbers.split()]
    headings = re.findall(r'^### ([A-Z][\d.]+) ', text, re.M)
    rows = list(rows_of(text))
    wrong = [f'no section {name}' for name in wanted if name not in headings]
    wrong += [f'{name} is no section of a text, or is there twice' for name in headings
              if name not in wanted or headings.count(name) > 1]
    wrong += [f'section {name} has no row' for name in headings if name not in {section for _, section, _ in rows}]
    names = [cells[0] for _, _, cells in rows]
    for number, section, cells in rows:
        wrong += [f'line {number}: {fault}' for fault in faults_of_row(section, cells, facts)]
        if names.count(cells[0]) > 1:
            wrong.append(f'line {number}: the name {cells[0]} is there twice')
    wrong += broken_links(text, page)
    if FIRST not in text or LAST not in text:
        wrong.append('the lines around the summary are missing')
    elif with_summary(text) != text:
        wrong.append('the summary is out of date; run tools/check_coverage.py --update CORTEX')
    return wrong


def main():
    words = [word for word in sys.argv[1:] if word != '--update']
    if len(words) != 1:
        print(__doc__.split('\n\n')[0], file=sys.stderr)
        sys.exit(2)
    text = PAGE.read_text()
    if '--update' in sys.argv:
        PAGE.write_text(with_summary(text))
        text = PAGE.read_text()
    wrong = faults(text, Facts(ROOT, commands_of(words[0]), options_of_verify(words[0])))
    print('\n'.join('docs/coverage.md: ' + fault for fault in wrong) if wrong
          else f'{len(list(rows_of(text)))} rows, everything they name is there')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
