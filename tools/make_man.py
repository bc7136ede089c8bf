#!/usr/bin/env python3
"""make_man.py CORTEX FOLDER   writes all manual pages that are made from something else
make_man.py --update CORTEX    brings docs/man/cortex.1 and docs/commands.md up to date
make_man.py --check CORTEX     fails when --update would change one of them

  section 1  cortex-WORD.1 for each first word of a command, as the program prints them
  section 3  cortex_NAME.3 from the comments of include/cortex/NAME.h, and a link for each function
  section 5  cortex-NAME.5 from docs/formats/NAME.md
  section 8  cortex-serve.8 from docs/operating.md

The rest of docs/man is written by hand.  --update replaces the section COMMANDS of cortex(1).  In
docs/commands.md it adds a row for each command that has none, and removes rows of commands that no
longer exist; other rows keep their text, which may say more than the program does.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# One line about a format, where the title of its page is not one.
FORMATS = {
    'contract': 'what an agent may do in a governed run, and how it is judged',
    'evidence': 'self-contained evidence files',
    'home': 'the files of a data directory',
    'imports': 'how traces of other tools become lattices',
    'lattice': 'histories of agents, linked by hash',
    'ledger': 'entries, trees, snapshots, proofs and memory records',
    'log': 'the files of the append-only log',
    'proof': 'containers of proofs',
    'run': 'contracts, gates, events and bundles of governed runs',
    'run-archive': 'a bundle of a governed run in one file',
    'run-config': 'configuration and policies of governed runs',
    'run-lattice': 'a governed run as a lattice',
    'schema': 'supported JSON Schema features',
    'socket': 'the protocol between the writer process and its clients',
    'trace': 'traces that agents sign',
}


API_MANUAL = 'Cortex Programmer\\(aqs Manual'

# `code`, **bold**, *italic*, [link](where)
INLINE = re.compile(r'`([^`]+)`|\*\*(.+?)\*\*|(?<![\w*])\*([^*\s][^*]*)\*'
                    r'|\[([^\]]+)\]\(([^)]+)\)')


def bold(text):
    return '\\fB' + text.replace('\\fR', '\\fB') + '\\fR'


def escape(text, line_start=True):
    """Text for man(7): hyphens stay hyphens, and no line begins with a macro."""
    text = text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq')
    text = text.replace('~', '\\(ti').replace('^', '\\(ha').replace('`', '\\(ga')
    text = re.sub(r'[^\x00-\x7f]', lambda found: f'\\[u{ord(found.group(0)):04X}]', text)
    if line_start and text[:1] == '.':
        text = '\\&' + text
    return text


def breakable(text):
    """Long words of code may be broken behind a comma or a bar."""
    return ' '.join(re.sub(r'([,|])(?=.)', r'\1\\:', word) if len(word) > 40 else word
                    for word in text.split(' '))


def inline(text):
    """Emphasis, code and links of one paragraph."""
    out = []
    at = 0
    for found in INLINE.finditer(text):
        out.append(escape(text[at:found.start()], False))
        code, strong, italic, link, where = found.groups()
        if code is not None:
            out.append('\\fB' + breakable(escape(code, False)) + '\\fR')
        elif strong is not None:
            out.append(bold(inline(strong)))
        elif italic is not None:
            out.append('\\fI' + escape(italic, False) + '\\fR')
        else:
            out.append(inline(link))
            if where.startswith('http'):
                out.append(' <' + escape(where, False) + '>')
        at = found.end()
    out.append(escape(text[at:], False))
    return ''.join(out)


def paragraph(text):
    """One input line a sentence or so, so that differences of pages stay readable."""
    lines = [inline(text.strip())]
    return ['\\&' + line if line[:1] in ('.', "'") else line for line in lines]


def cells(line):
    line = line.strip()[1:].rstrip('|')
    return [cell.replace('\\|', '|').strip() for cell in re.split(r'(?<!\\)\|', line)]


def table(lines):
    """Rows as tagged paragraphs: the first column is the tag, further ones carry their heading."""
    head, out = cells(lines[0]), []
    for line in lines[2:]:
        row = cells(line)
        out += ['.TP', bold(inline(row[0])) if row[0] else '\\(bu']
        rest = row[1:]
        if len(rest) == 1:
            out += paragraph(rest[0]) if rest[0] else ['\\&']
            continue
        shown = [f'{head[i + 1]}: {cell}' if i + 1 < len(head) and head[i + 1] else cell
                 for i, cell in enumerate(rest) if cell]
        for i, cell in enumerate(shown):
            out += ['.br'] if i else []
            out += paragraph(cell)
        if not shown:
            out.append('\\&')
    return out + ['.PP']


def code(lines):
    out = ['.PP', '.nf', '.RS']
    out += [escape(line) or '\\&' for line in lines]
    return out + ['.RE', '.fi', '.PP']


def markdown(text):
    """The body of a page: the part of Markdown that docs/ uses."""
    out, lines, at, open_paragraph = [], text.split('\n'), 0, []

    def flush():
        if open_paragraph:
            out.extend(paragraph(' '.join(part.strip() for part in open_paragraph)))
            open_paragraph.clear()

    while at < len(lines):
        line = lines[at]
        if line.startswith('```') or (line.startswith('    ') and not open_paragraph):
            flush()
            fenced, block = line.startswith('```'), []
            at += fenced
            while at < len(lines) and (not lines[at].startswith('```') if fenced else
                                       lines[at].startswith('    ') or not lines[at].strip()):
                block.append(lines[at] if fenced else lines[at][4:])
                at += 1
            at += fenced
            while block and not block[-1].strip():
                block.pop()
            out.extend(code(block))
            continue
        if line.startswith('#'):
            flush()
            level = len(line) - len(line.lstrip('#'))
            title = inline(line.lstrip('# ')).replace('"', '\\(dq')
            out.append(f'{".SH" if level <= 2 else ".SS"} "{title}"')
        elif line.lstrip().startswith('|'):
            flush()
            block = []
            while at < len(lines) and lines[at].lstrip().startswith('|'):
                block.append(lines[at])
                at += 1
            out.extend(table(block))
            continue
        elif re.match(r'\s*([-*]|\d+\.) ', line):
            flush()
            mark, rest = re.match(r'\s*([-*]|\d+\.) +(.*)', line).groups()
            tag = '\\(bu' if mark in '-*' else mark
            out.append(f'.IP "{tag}" 4')
            open_paragraph.append(rest)
        elif not line.strip():
            flush()
            if out and not out[-1].startswith(('.PP', '.S')):
                out.append('.PP')
        else:
            open_paragraph.append(line)
        at += 1
    flush()
    return tidy(out)


def tidy(lines):
    """No empty paragraphs: man(7) readers warn about them."""
    out = []
    for line in lines:
        if line == '.PP' and (not out or out[-1].startswith(('.PP', '.SH', '.SS', '.TH'))):
            continue
        if line.startswith(('.SH', '.SS', '.TP', '.IP')) and out and out[-1] == '.PP':
            out.pop()
        out.append(line)
    while out and out[-1] == '.PP':
        out.pop()
    return out


def page(name, section, version, manual, purpose, body):
    title = escape(name.upper(), False)
    head = [f'.TH "{title}" {section} "" "cortex {version}" "{manual}"', '.nh', '.ad l', '.SH NAME',
            f'{escape(name, False)} \\- {escape(purpose, False)}']
    return '\n'.join(head + body) + '\n'


def from_markdown(path):
    """The text below the title; what stands before the first heading is the description."""
    text = path.read_text().split('\n', 1)[1].strip()
    return markdown(text if text.startswith('## ') else '## DESCRIPTION\n' + text)


def see_also(names):
    lines = [f'.BR {escape(name, False)} ({section}),' for name, section in names]
    return ['.SH "SEE ALSO"'] + lines[:-1] + [lines[-1].rstrip(',')]


# --- section 3 ---------------------------------------------------------------------------------


def comment_text(comment):
    """The words of one /* */ without its frame; paragraphs and drawings stay apart."""
    lines = [re.sub(r'^\s*\* ?', '', line) for line in comment[2:-2].split('\n')]
    return '\n'.join(lines).strip('\n ')


def prose(text):
    """Comment text: indented lines are code, empty lines part paragraphs."""
    out, lines, words = [], text.split('\n'), []

    def flush():
        if words:
            out.extend(paragraph_plain(' '.join(words)))
            words.clear()

    at = 0
    while at < len(lines):
        if lines[at].startswith('  '):
            flush()
            block = []
            while at < len(lines) and (lines[at].startswith('  ') or not lines[at].strip()):
                block.append(lines[at].strip('\n'))
                at += 1
            while block and not block[-1].strip():
                block.pop()
            out.extend(code(block))
            continue
        if not lines[at].strip():
            flush()
            out.append('.PP')
        else:
            words.append(lines[at].strip())
        at += 1
    flush()
    return out


def paragraph_plain(text):
    return [escape(re.sub(r'  +', ' ', text))]


def header_body(text):
    """Sections, then each declaration with what is said about it."""
    text = re.sub(r'#ifdef __cplusplus.*?#endif\n', '', text, flags=re.S)
    text = re.sub(r'^#(ifndef|define|include)\b(?=.*(_H\b|<cortex/|<std|<string)).*\n', '', text,
                  flags=re.M)
    text = re.sub(r'^#endif\s*\Z', '', text.rstrip(), flags=re.M)
    out, said = [], None
    pieces = re.split(r'(^/\*.*?\*/[ \t]*$)', text, flags=re.S | re.M)
    for piece in pieces:
        title = re.match(r'/\* --- (.*?) -*\s*\*/\s*$', piece, flags=re.S)
        if title:
            out.append(f'.SH "{escape(title.group(1), False)}"')
            said = None
        elif piece.startswith('/*'):
            if said:
                out += prose(said)
            said = comment_text(piece.strip())
        else:
            for part in re.split(r'\n\s*\n', piece.strip('\n')):
                if not part.strip():
                    continue
                if not out:
                    out.append('.SH "DECLARATIONS"')
                out += ['.PP', '.nf'] + [escape(line) for line in part.split('\n')] + ['.fi']
                if said:
                    out += ['.RS'] + tidy(prose(said)) + ['.RE']
                said = None
    return tidy(out)


def api_pages(version, write, link):
    names = sorted(path.stem for path in (ROOT / 'include/cortex').glob('*.h'))
    for name in names:
        text = (ROOT / f'include/cortex/{name}.h').read_text()
        top = re.match(r'/\*.*?\*/', text, flags=re.S).group(0)
        said = comment_text(top)
        purpose, _, rest = said.partition('\n\n')
        purpose = re.sub(r'\s+', ' ', purpose.split(' - ', 1)[1]).strip().rstrip('.')
        if not rest.strip():
            rest = purpose
        functions = re.findall(r'CX_API [^;(#]*?(cx_\w+)\s*\(', text[len(top):])
        page_name = f'cortex_{name}'
        body = ['.SH SYNOPSIS', '.nf', f'.B #include <cortex/{name}.h>', '.PP',
                '.B cc ... $(pkg\\-config \\-\\-cflags \\-\\-libs cortex)', '.fi', '.SH DESCRIPTION']
        body += tidy(prose(rest)) + header_body(text[len(top):])
        others = [('libcortex', 3)] + [(f'cortex_{other}', 3) for other in names if other != name]
        write(f'{page_name}.3', page(page_name, 3, version, API_MANUAL, purpose,
                                     body + see_also(others)))
        for function in functions:
            link(f'{function}.3', f'{page_name}.3')


# --- all of it ---------------------------------------------------------------------------------


def ask(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def make(program, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob('*.[1358]'):
        old.unlink()
    version = ask(program, '--version').split()[1]

    def write(name, text):
        (folder / name).write_text(text)

    commands = json.loads(ask(program, 'help', '--json'))['commands']
    for word in sorted({command['name'].split()[0] for command in commands}):
        if (ROOT / f'docs/man/cortex-{word}.1').exists():
            continue  # a program of that name has a page; cortex(1) has the command
        write(f'cortex-{word}.1', ask(program, 'help', '--man', word))
    api_pages(version, write, lambda name, to: (folder / name).symlink_to(to))
    for path in sorted((ROOT / 'docs/formats').glob('*.md')):
        name = f'cortex-{path.stem}'
        title = path.read_text().split('\n', 1)[0].lstrip('# ')
        write(f'{name}.5', page(name, 5, version, 'File Formats', FORMATS.get(path.stem, title),
                                from_markdown(path) + see_also([('cortex', 1)])))
    others = see_also([('cortex', 1), ('cortex-serve', 1), ('cortex-ledger', 5)])
    write('cortex-serve.8', page('cortex-serve', 8, version, 'System Administration',
                                 'running Cortex for a fleet of agents',
                                 from_markdown(ROOT / 'docs/operating.md') + others))


# Where docs/commands.md lists the commands of a job when no row has the same first word.
SECTIONS = {
    'Start': 'Operate and configure',
    'Record and prove': 'Record and prove',
    'Receive signed traces': 'Receive signed traces',
    'Debug a history': 'Debug a session',
    'Govern an agent': 'Govern a coding agent',
    'Serve and archive': 'Operate and configure',
}


def manual(program):
    text = (ROOT / 'docs/man/cortex.1').read_text()
    start = text.index('.SH COMMANDS\n')
    end = text.index('\n.SH ', start + 1) + 1
    return text[:start] + ask(program, 'help', '--man') + text[end:]


def commands_of(line, names):
    """The commands that a line of docs/commands.md names, and whether it names one that does not exist."""
    found, unknown = [], False
    for text in re.findall(r'`cortex ([^`]+)`', line):
        words = text.split()
        name = next((name for name in (' '.join(words[:2]), words[0]) if name in names), None)
        found += [name] if name else []
        unknown = unknown or name is None
    return found, unknown


def row_of(command):
    operands = ' '.join(('[{}]' if operand['optional'] else '{}').format(
        operand['name'] + ('…' if operand['many'] else '')) for operand in command['operands'])
    purpose = command['purpose']
    return f"| `cortex {' '.join((command['name'], operands)).strip()}` | {purpose[0].upper()}{purpose[1:]} |"


def place_of(command, lines, names):
    """After the last row with the same first word, else at the end of the last table of the job's section."""
    word, place, inside, end = command['name'].split()[0], None, False, None
    for number, line in enumerate(lines):
        if line.startswith('## '):
            inside = line == '## ' + SECTIONS.get(command['job'], '')
        if line.startswith('|'):
            if any(name.split()[0] == word for name in commands_of(line, names)[0]):
                place = number + 1
            if inside:
                end = number + 1
    return place or end


def reference(program):
    commands = json.loads(ask(program, 'help', '--json'))['commands']
    names = {command['name'] for command in commands}
    text = (ROOT / 'docs/commands.md').read_text()
    lines = [line for line in text.split('\n') if not (line.startswith('|') and commands_of(line, names)[1])]
    have = {name for line in lines for name in commands_of(line, names)[0]}
    for command in commands:
        if command['name'] not in have:
            place = place_of(command, lines, names)
            if place is None:
                sys.exit(f"docs/commands.md has no section for the job of `{command['name']}`; see jobs in "
                         'src/cli/describe.c and SECTIONS in tools/make_man.py')
            lines.insert(place, row_of(command))
    return '\n'.join(lines)


def update(program, check):
    stale = False
    for name, wanted in (('docs/man/cortex.1', manual(program)), ('docs/commands.md', reference(program))):
        if (ROOT / name).read_text() == wanted:
            continue
        stale = True
        if check:
            print(f'{name} is stale; tools/make_man.py --update {program} rewrites it')
        else:
            (ROOT / name).write_text(wanted)
    return 1 if check and stale else 0


def main():
    words = sys.argv[1:]
    if len(words) == 2 and words[0] in ('--update', '--check'):
        sys.exit(update(words[1], words[0] == '--check'))
    elif len(words) == 2 and not words[0].startswith('-'):
        make(words[0], pathlib.Path(words[1]))
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
