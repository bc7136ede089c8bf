#!/usr/bin/env python3
"""check_docs.py - ARCHITECTURE.md and CONTRIBUTING.md speak of things that are there.

Every word in backquotes that looks like a name of the code or the tree is looked up:

    cx_...               must occur in src/, include/ or verify/
    folder/file, file.c  must exist (from the top, under src/, or anywhere under src/ for a bare name)

every file that ARCHITECTURE.md names in the paragraph of a module must be in that module, every test that
docs/threat-model.md names in a column "test", or in a sentence as `some_test_name`, must exist, and every module of
src/ must have its paragraph in ARCHITECTURE.md.  What one table of the code says, its page must say too: detectors
(src/analysis/detect.h), kinds of entries (src/ledger/kinds.h), events and gates of runs (src/bundle), kinds of
objects, members of the records of the ledger, tools of the MCP server, import formats; and the governor gives no reason that its gate does not have.  A
placeholder has a capital word in it
(cmd_NAME.c) and a pattern a star; a pattern must match something.

Three lists of docs/formats/ are compared with the tables that the program uses: roles, scopes of approvals, and rows
of the command gate.
"""
import fnmatch
import json
import pathlib
import re
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ['ARCHITECTURE.md', 'CONTRIBUTING.md']
SOURCES = ['src', 'include', 'verify', 'tests', 'fuzz', 'bench', 'tools', 'scripts', 'docs', 'cmake', 'examples']
# A function that one of the harness's decorators collects; others are helpers.
TEST = re.compile(r'^@(?:test|sandboxed|shared|prepared)\b.*\n(?:@.*\n)*def (\w+)\(', re.M)
FILE = re.compile(r'^(?:[\w.*{}-]+/)*[\w.*-]+\.(?:c|h|md|py|sh|cmake|txt|1|3|5|8|ts|tsx|mjs|json|svg)$')


def tree():
    files = [p.name for p in ROOT.iterdir() if p.is_file()]
    for folder in SOURCES + ['schemas', 'policies', 'contracts', 'web', 'debian', 'packaging']:
        if (ROOT / folder).is_dir():
            files += [str(p.relative_to(ROOT)) for p in (ROOT / folder).rglob('*')
                      if p.is_file() and 'node_modules' not in p.parts]
    return files


def exists(word, files):
    if re.search(r'(?<![A-Za-z])(NAME|MODULE|JOB)(?![A-Za-z])', word.replace('_', ' ')):
        return True
    return any(fnmatch.fnmatch(f, word) or fnmatch.fnmatch(f, '*/' + word) for f in files)


def test_names():
    """Functions of scripts and units below tests/, and rows of tests/attack as FILE:ROW."""
    names = set()
    for path in (ROOT / 'tests').rglob('*'):
        if path.suffix == '.py':
            names.update(TEST.findall(path.read_text()))
        elif path.suffix == '.c':
            names.update(re.findall(r'(?:CX_TEST|BOTH)\((\w+)\)', path.read_text(errors='replace')))
    for path in (ROOT / 'tests/attack').glob('*.json'):
        names.update(f"{path.stem}:{row['name']}" for row in json.loads(path.read_text()).get('rows', []))
    return names


def unknown_tests(page):
    """Names of tests in a page that no test has; a star stands for any ending or beginning."""
    names = test_names()
    wanted = set()
    for line in (ROOT / page).read_text().split('\n'):
        words = re.findall(r'`([^`]+)`', line.split('|')[-2] if line.startswith('| ') else line)
        wanted.update(word for word in words
                      if re.fullmatch(r'[a-z]+:[\w*]+', word) and word[-2:] != ':x' or
                      re.fullmatch(r'[a-z0-9]+(?:_[a-z0-9*]+){2,}', word))
    return sorted(word for word in wanted if not fnmatch.filter(names, word)), len(wanted)


def table(file, name):
    """The first string of each entry of a table in a C file."""
    text = (ROOT / file).read_text()
    start = re.search(r'\b%s\[\w*\] = \{' % name, text)
    body = text[start.end():text.index('};', start.end())]
    rows = re.findall(r'\{"(\w+)"', body)
    return rows or re.findall(r'"(\w+)"', body)


def stale_lists():
    """Differences between lists in docs/formats/ and the tables of the code."""
    contract = (ROOT / 'docs/formats/contract.md').read_text()
    run = (ROOT / 'docs/formats/run.md').read_text()
    listed = {
        'docs/formats/contract.md: roles': re.search(r'roles are `([A-Z_ ]+)`', contract).group(1).split(),
        'docs/formats/run.md: scopes': [word.split(':')[0] for word in
                                        re.search(r'Scopes: `([^`]+)`', run).group(1).split()],
        'docs/formats/run.md: rows': [rule for row in re.findall(r'^\| ((?:C\d\d ?)+)\|', run, re.M)
                                      for rule in row.split()],
    }
    used = {
        'docs/formats/contract.md: roles': table('src/contract/role.c', 'role_names'),
        'docs/formats/run.md: scopes': table('src/approval/approval_text.c', 'scopes'),
        'docs/formats/run.md: rows': ['C01', 'C02'] + table('src/command/command.c', 'rows'),
    }
    return [f'{name}: {", ".join(sorted(set(listed[name]) ^ set(used[name])))} is only in the page or only in the code'
            for name in listed if set(listed[name]) != set(used[name]) or len(used[name]) < 5]


def detectors_apart():
    """The detectors of CX_DETECTORS against docs/formats/trace.md and the page's MECHANISMS."""
    table = (ROOT / 'src/analysis/detect.h').read_text().replace('\\\n', ' ')
    rows = re.findall(r'X\(CX_DETECT_\w+,\s*"(\w+)",\s*"([^"]+)",\s*(\d+),', table)
    page = (ROOT / 'docs/formats/trace.md').read_text().split('\n## 12.')[1].split('\n## 13.')[0]
    model = (ROOT / 'web/src/screens/fleet/model.ts').read_text()
    documented = dict(re.findall(r'^\| ([a-z_]+_[a-z_]+) \|.*?\| (?:(\d+) d|whole chain)[^|]*\| [^|]*\|$', page, re.M))
    wrong = [] if len(rows) >= 5 else ['src/analysis/detect.h: cannot read CX_DETECTORS']
    for name, title, days in rows:
        if documented.get(name) != ('' if days == '0' else days):
            wrong.append(f'docs/formats/trace.md: section 12 needs a row {name} with a window of {days} d')
        if f"{name}: '{title}'" not in model:
            wrong.append(f"web/src/screens/fleet/model.ts: MECHANISMS needs {name}: '{title}'")
    wrong += [f'docs/formats/trace.md: CX_DETECTORS has no {name}'
              for name in documented if name not in [row[0] for row in rows]]
    return wrong


def findings_apart():
    """The findings of CX_LIVE_AUDIT_FINDINGS and their severities against docs/formats/live.md."""
    table = (ROOT / 'src/live_audit/live_audit.h').read_text().replace('\\\n', ' ')
    rows = {name: severity.lower() for name, severity in re.findall(r'X\([A-Z_]+,\s*"(\w+)",\s*([A-Z]+),', table)}
    page = (ROOT / 'docs/formats/live.md').read_text().split('### 10.4')[1]
    documented = dict(re.findall(r'^\| `([a-z_]+)` \| (\w+) \|', page, re.M))
    wrong = [] if len(rows) >= 10 else ['src/live_audit/live_audit.h: cannot read CX_LIVE_AUDIT_FINDINGS']
    return wrong + [f'docs/formats/live.md: section 10.4 and CX_LIVE_AUDIT_FINDINGS differ in {name}'
                    for name in sorted(set(rows) | set(documented)) if rows.get(name) != documented.get(name)]


def kinds_apart():
    """Every kind of CX_KINDS is described in docs/formats/."""
    names = re.findall(r'X\(CX_KIND_\w+, "([a-z_.]+)"', (ROOT / 'src/ledger/kinds.h').read_text())
    pages = '\n'.join(p.read_text() for p in (ROOT / 'docs/formats').glob('*.md'))
    wrong = [] if len(names) >= 10 else ['src/ledger/kinds.h: cannot read CX_KINDS']
    return wrong + [f'docs/formats: no page describes the kind {name}' for name in names
                    if not re.search(re.escape(name) + r'\b', pages)]


def unknown_files_of_modules(text):
    """(module, word) for words like `state_*` in a module's paragraph that name no file of it."""
    for module, words in re.findall(r'^\*\*(\w+)\*\* (.*?)(?=\n\n|\n\*\*)', text, re.M | re.S):
        folder = ROOT / 'src' / module
        if folder.is_dir():
            stems = {path.stem for path in folder.rglob('*.[ch]')}
            for word in re.findall(r'`([a-z][a-z_0-9*]*)`', words):
                if not word.startswith('cx_') and not fnmatch.filter(stems, word):
                    yield module, word


def macro_rows(path, macro):
    """Rows X(NAME, ..) of a table of the code, as lists of texts; adjacent strings are one."""
    text = (ROOT / path).read_text()
    body = text[text.index('#define ' + macro):].split('\n\n')[0].replace('\\\n', '')
    rows = []
    for found in re.finditer(r'X\(((?:"[^"]*"|[^")(])*)\)', body.split(')', 1)[1]):
        items = re.findall(r'(?:"[^"]*"\s*)+|\w+', found[1])
        rows.append([''.join(re.findall(r'"([^"]*)"', item)) if '"' in item else item for item in items])
    return rows


def event_and_gate_tables():
    """The tables of run.md, of src/bundle, and the reasons in src/governor."""
    page = (ROOT / 'docs/formats/run.md').read_text()
    levels = {'I': 'INFO', 'W': 'WARN', 'E': 'ERROR'}
    types = macro_rows('src/bundle/event_types.h', 'CX_RUN_EVENT_TYPES(X)')
    gates = macro_rows('src/bundle/gates.h', 'CX_RUN_GATES(X)')
    texts = {name: text for name, text, _, _ in types}
    wanted = [f"| `{text}` | {' '.join(levels[c] for c in letters)} | {payload} |" for _, text, letters, payload in types]
    for _, name, event, _, _, where, question, reasons in gates:
        event = f'`{texts[event]}`' if event in texts else ''
        listed = ' '.join(f'`{reason}`' for reason in reasons.split())
        wanted.append(f'| `{name}` | {where} | {question} | {event} | {listed} |')
    wrong = [f'docs/formats/run.md: no row {row}' for row in wanted if row not in page]
    found = re.findall(r'^\| `\w+` \| (?:(?:INFO|WARN|ERROR)[ |]|(?:S\d|any)[, |]).*$', page, re.M)
    wrong += [f'docs/formats/run.md: a row that src/bundle does not have: {row}' for row in found if row not in wanted]
    if len(types) < 40 or len(gates) < 20:
        wrong.append(f'src/bundle: only {len(types)} types of events and {len(gates)} gates were found')
    reasons = {name: row[-1].split() for name, *row in gates}
    for path in sorted((ROOT / 'src/governor').glob('*.c')):
        for gate, reason in re.findall(r'CX_GATE_(\w+),\s+"(\w+)"', path.read_text()):
            if reason not in reasons[gate] + ['part_refused', 'could_not_evaluate']:
                wrong.append(f'{path.relative_to(ROOT)}: gate {gate} has no reason {reason} in src/bundle/gates.h')
    return wrong


def first_cells(page, heading):
    """Names in the first column of the table behind a heading."""
    text = (ROOT / page).read_text().split(f'\n{heading}\n', 1)[1].split('\n#', 1)[0]
    return [name for line in text.split('\n') if line.startswith('| `')
            for name in re.findall(r'`([^`]+)`', line.split('|')[1])]


def table_rows(source, pattern):
    return re.findall(pattern, (ROOT / source).read_text())


def tables():
    """What a table of the code and its page name differently."""
    kinds = [k for k in table_rows('src/recorder/links/names.c', r'\[CX_PROV_\w+\] = \{\s*\.name = "(\w+)"') if k != 'none']
    rows = table_rows('src/server/mcp/mcpd_tools.c', r'(?s)cx_mcpd_tool tools\[\] = \{(.*?)\n\};')
    tools = re.findall(r'\n    \{"(\w+)",', rows[0] if rows else '')
    rows = table_rows('src/server/mcp/mcpd_write.c', r'(?s)cx_mcpd_write_tool write_tools\[\] = \{(.*?)\n\};')
    tools += re.findall(r'\n    \{"(\w+)",', rows[0] if rows else '')
    formats = [name for path in sorted((ROOT / 'src/import').glob('**/*.c'))
               for name in re.findall(r'\.info = \{"([\w-]+)"', path.read_text())]
    listed = re.findall(r'\n    X\(\w+, "([\w-]+)"\)', (ROOT / 'src/import/import.h').read_text())
    page = (ROOT / 'docs/formats/imports.md').read_text()
    for what, code, where, names in [
            ('kind of objects', kinds, 'docs/formats/provenance.md', first_cells('docs/formats/provenance.md', '## Names of objects')),
            ('MCP tool', tools, 'docs/mcp.md', first_cells('docs/mcp.md', '## Tools')),
            ('import format', formats, 'docs/formats/imports.md', re.findall(r'\n### 2\.\d+ `([\w-]+)`', page)),
            ('import format', formats, 'src/import/import.h', listed)]:
        if len(code) < 5:
            yield f'{what}: the table in the code is not found'
        # An edge has no name of its own: it is shown with its memories.
        for name in sorted((set(code) ^ set(names)) - {'edge'}):
            yield f'{where}: the {what} {name} is ' + ('missing' if name in code else 'not in the code')


# Records of the ledger: the paragraph of docs/formats/ledger.md §4, and the function that reads a member by its number.
RECORDS = {'Head': 'read_head_member', 'Version': 'read_version_member', 'Edge': 'read_edge_member',
           'Vector': 'cx_vector_decode', 'Checkpoint record': 'cx_checkpoint_record_decode'}


def record_members(page, name):
    """{number: name} of a paragraph such as "**Head** `m/..`: 1 id b16 · 2 type"; nested maps are left out."""
    text = re.search(r'^\*\*%s\*\* .*?:(.*?)(?=\n\n)' % re.escape(name), page, re.M | re.S).group(1)
    while re.search(r'[{(\[][^{}()\[\]]*[})\]]', text):
        text = re.sub(r'[{(\[][^{}()\[\]]*[})\]]', ' ', text)
    text = re.sub(r'`[^`]*`', ' ', text)
    return {int(number): word for number, word in re.findall(r'(?:^|[·,])\s*(\d+)\s+([A-Za-z_]*)', text)}


def records_apart():
    """The numbers of members in ledger.md against those that the decoders of src/proof accept, and their names."""
    page = (ROOT / 'docs/formats/ledger.md').read_text()
    code = '\n'.join(path.read_text() for path in sorted((ROOT / 'src/proof').glob('record*.c')))
    wrong = []
    for name, function in RECORDS.items():
        body = re.search(r'^(?:static void|cx_status) %s\(.*?^}' % function, code, re.M | re.S)
        if not body:
            wrong.append(f'src/proof: no function {function} reads the record {name}')
            continue
        read = dict(re.findall(r'case (\d+):(.*)', body.group()))
        members = record_members(page, name)
        if sorted(map(int, read)) != sorted(members) or len(members) < 5:
            wrong.append(f'docs/formats/ledger.md: {name} has members {sorted(members)}, src/proof reads '
                         f'{sorted(map(int, read))}')
        for number, line in read.items():
            found = re.search(r'(?:->|\b(?:vector|record)\.)(\w+)(?: =|\))', line)
            documented = members.get(int(number), '')
            if found and documented and found.group(1) not in (documented, documented + '_ns'):
                wrong.append(f'docs/formats/ledger.md: {name}.{number} is {documented}, src/proof reads {found.group(1)}')
    return wrong


def doubled_sections():
    """Numbers of sections in docs/formats: each once, and in order."""
    wrong = []
    for path in sorted((ROOT / 'docs/formats').glob('*.md')):
        numbers = [int(n) for n in re.findall(r'^## (\d+)\. ', path.read_text(), re.M)]
        if any(b <= a for a, b in zip(numbers, numbers[1:])):
            wrong.append(f'docs/formats/{path.name}: sections are numbered {numbers}')
    return wrong


def modules_apart(text):
    """The table of layers is that of check_layers.py; each module has one part, which names a file once."""
    wrong = []
    rows = dict((int(number), re.findall(r'`(\w+)`', names))
                for number, names in re.findall(r'^\| (\d+) \| (.*) \|$', text, re.M))
    for number, modules in enumerate(check_layers.LAYERS):
        if rows.get(number) != modules:
            wrong.append(f'ARCHITECTURE.md: layer {number} has {rows.get(number)}, tools/check_layers.py {modules}')
    for module in sorted(p.name for p in (ROOT / 'src').iterdir() if p.is_dir()):
        parts = re.findall(rf'^\*\*{module}\*\* .*?(?=\n\n|\Z)', text, re.M | re.S)
        if len(parts) != 1:
            wrong.append(f'ARCHITECTURE.md: {len(parts)} parts about the module {module}')
        for part in parts:
            named = re.findall(r'`([a-z0-9_]+(?:\.h)?)`(?= \()', part)
            wrong += [f'ARCHITECTURE.md: {module} explains {word} twice'
                      for word in sorted(set(named)) if named.count(word) > 1]
    return wrong


def main():
    files = tree()
    code = '\n'.join((ROOT / f).read_text(errors='replace') for f in files
                     if f.split('/')[0] in ('src', 'include', 'verify') and f.endswith(('.c', '.h')))
    names = set(re.findall(r'\bcx_\w+', code))
    wrong = []
    for page in PAGES:
        for number, line in enumerate((ROOT / page).read_text().split('\n'), 1):
            for word in re.findall(r'`([^`]+)`', line):
                if re.fullmatch(r'cx_[a-z0-9_]+', word) and not word.endswith('_') and word not in names:
                    wrong.append(f'{page}:{number}: {word} is nowhere in the code')
                elif FILE.match(word) and not exists(word, files):
                    wrong.append(f'{page}:{number}: there is no file {word}')
    unknown, count = unknown_tests('docs/threat-model.md')
    wrong += [f'docs/threat-model.md: there is no test {word}' for word in unknown]
    if count < 50:
        wrong.append(f'docs/threat-model.md: only {count} tests are named')
    wrong += stale_lists() + records_apart() + detectors_apart() + findings_apart() + kinds_apart()
    wrong += event_and_gate_tables() + doubled_sections()
    text = (ROOT / 'ARCHITECTURE.md').read_text()
    wrong += [f'ARCHITECTURE.md: {module} has no file {word}'
              for module, word in unknown_files_of_modules(text)]
    wrong += modules_apart(text)
    wrong += tables()
    print('\n'.join(wrong) if wrong else f'{len(PAGES)} pages, everything they name is there')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
