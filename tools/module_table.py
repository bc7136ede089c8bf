#!/usr/bin/env python3
"""module_table.py OLD [NEW] - modules at two commits, as a Markdown table; NEW defaults to HEAD.

A module is a folder of src/, or include or verify.  For each commit it shows

    files, lines     of .c, .h and .def files
    headers          headers of the module that files of other modules include, api.h files included
    functions        function bodies in .c files
    comments         lines that consist of a comment
    asserts          CX_ASSERT, CX_DEBUG_ASSERT, _Static_assert

and below the table the circles between modules: sets whose members include each other, directly or by
way of others.  Headers in include/ belong to no module and close no circle.
"""
import collections
import io
import pathlib
import re
import subprocess
import sys
import tarfile

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENDINGS = ('.c', '.h', '.def')
COLUMNS = ('files', 'lines', 'headers', 'functions', 'comments', 'asserts')
ASSERT = re.compile(r'(?<!define )\b(?:CX_ASSERT|CX_DEBUG_ASSERT|_Static_assert)\s*\(')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# The layout is checked, so a body begins with a brace in the first column after a closing parenthesis.
BODY = re.compile(r'\)\n\{', re.M)


def files_at(commit):
    """{path: text} of the C files of src/, include/ and verify/ at a commit."""
    done = subprocess.run(['git', 'archive', '--format=tar', commit, 'src', 'include', 'verify'],
                          cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f'module_table.py: {commit}: {done.stderr.decode().strip()}')
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        return {member.name: archive.extractfile(member).read().decode('utf-8', 'replace')
                for member in archive if member.isfile() and member.name.endswith(ENDINGS)}


def module_of(path):
    parts = path.split('/')
    return parts[1] if parts[0] == 'src' and len(parts) > 2 else parts[0]


def comment_lines(text):
    """Lines that have a comment and nothing else."""
    def blank(match):
        if match.group().startswith(('"', "'")):
            return 's'
        return '\0' + re.sub(r'[^\n]', '\0', match.group()[1:])
    return sum(1 for line in COMMENT.sub(blank, text).split('\n')
               if '\0' in line and not line.replace('\0', '').strip())


def circles(graph):
    """Sets of at least two modules that reach each other."""
    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for there in graph[todo.pop()]:
                if there not in seen:
                    seen.add(there)
                    todo.append(there)
        return seen
    reach = {module: reached(module) for module in list(graph)}
    found = {frozenset(there for there in reach[module] if module in reach.get(there, ())) | {module}
             for module in reach if module in reach[module]}
    return sorted(sorted(one) for one in found)


class Tree:
    """What the table says of one commit."""

    def __init__(self, commit):
        files = files_at(commit)
        self.rows = collections.defaultdict(collections.Counter)
        self.graph = collections.defaultdict(set)
        outside = collections.defaultdict(set)
        for path, text in files.items():
            module = module_of(path)
            row = self.rows[module]
            row['files'] += 1
            row['lines'] += text.count('\n')
            row['comments'] += comment_lines(text)
            row['asserts'] += len(ASSERT.findall(text))
            if path.endswith('.c'):
                row['functions'] += len(BODY.findall(text))
            for _, quoted, _ in check_layers.includes(text):
                target = f'src/{quoted}' if quoted else None
                if target in files and module_of(target) != module:
                    outside[module_of(target)].add(target)
                    self.graph[module].add(module_of(target))
        for module, headers in outside.items():
            self.rows[module]['headers'] = len(headers)
        self.graph = collections.defaultdict(set, {module: there for module, there in self.graph.items()})

    def total(self):
        return sum(self.rows.values(), collections.Counter())


def cell(counter):
    return ' | '.join(str(counter[column]) if counter else '' for column in COLUMNS)


def main():
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith('-'):
        print(f'usage: {sys.argv[0]} OLD [NEW]', file=sys.stderr)
        sys.exit(2)
    names = [sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else 'HEAD']
    trees = [Tree(name) for name in names]
    print(f'Columns: {", ".join(COLUMNS)}; first at {names[0]}, then at {names[1]}.\n')
    print('| module | ' + ' | '.join(COLUMNS) + ' | | ' + ' | '.join(COLUMNS) + ' |')
    print('|---' * (2 * len(COLUMNS) + 2) + '|')
    for module in sorted(set(trees[0].rows) | set(trees[1].rows)):
        old, new = (tree.rows.get(module) for tree in trees)
        print(f'| {module} | {cell(old)} | | {cell(new)} |')
    print(f'| **all** | {cell(trees[0].total())} | | {cell(trees[1].total())} |')
    for name, tree in zip(names, trees):
        found = circles(tree.graph)
        print(f'\nCircles between modules at {name}: '
              + ('; '.join(' + '.join(one) for one in found) if found else 'none'))


if __name__ == '__main__':
    main()
