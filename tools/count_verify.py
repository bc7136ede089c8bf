#!/usr/bin/env python3
"""count_verify.py CORTEX-VERIFY [--files] - what an auditor of cortex-verify has to read.

Lists the modules whose files the program contains, with files and lines: the translation units that
its debug information names, and the headers that these include.  Exits 1 when one of them is in a
module that tools/check_layers.py does not grant to verify/.
"""
import pathlib
import re
import subprocess
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent


def units(program):
    """Paths from the top of the tree of the translation units linked into a program."""
    done = subprocess.run(['readelf', '--debug-dump=info', '--dwarf-depth=1', program],
                          capture_output=True, text=True, check=True)
    found = set()
    for name in re.findall(r'DW_AT_name\s*:.*?([^\s:]+\.c)$', done.stdout, re.M):
        for folder in ('src/', 'verify/'):
            at = name.rfind('/' + folder) + 1 if not name.startswith(folder) else 0
            if name.startswith(folder) or at > 0:
                found.add(name[at:])
    return {name for name in found if (ROOT / name).exists()}


def with_headers(names):
    seen, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for _, quoted, angle in check_layers.includes((ROOT / name).read_text(encoding='utf-8')):
            for path in ((f'src/{quoted}',) if quoted else (f'include/{angle}',)):
                if (ROOT / path).exists():
                    todo.append(path)
    return seen


def main(arguments):
    files = '--files' in arguments
    arguments = [word for word in arguments if word != '--files']
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    linked = units(arguments[0])
    if not linked:
        print(f'{arguments[0]} has no debug information: nothing to count')
        return 77
    count = {}
    for name in sorted(with_headers(linked)):
        parts = name.split('/')
        module = parts[1] if parts[0] == 'src' else parts[0]
        lines = (ROOT / name).read_text(encoding='utf-8').count('\n')
        sums = count.setdefault(module, [0, 0])
        sums[0] += 1
        sums[1] += lines
        if files:
            print(f'{lines:6} {name}')
    wrong = sorted(set(count) - set(check_layers.VERIFY_MODULES) - {'verify', 'include'})
    for module, (number, lines) in sorted(count.items(), key=lambda item: -item[1][1]):
        print(f'{module:10} {number:4} files {lines:6} lines')
    print(f'{"all":10} {sum(c[0] for c in count.values()):4} files {sum(c[1] for c in count.values()):6} lines')
    for module in wrong:
        print(f'{module} is not among VERIFY_MODULES of check_layers.py')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
