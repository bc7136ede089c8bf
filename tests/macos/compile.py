#!/usr/bin/env python3
"""compile.py BUILD TARGET - compiles the files of a configured macOS build against include/.

BUILD has compile_commands.json and include/ (scripts/macos_stub.sh makes both); TARGET is a triple of
clang.  Prints what clang says, and `N passed, N failed, N skipped` at the end; exits 1 when a file
failed, or none was found.  Files that the build generates are skipped: they are tables of bytes.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# As cmake/flags.cmake has them; what the compiler knows better than the headers is left to it.
WARNINGS = ['-Wall', '-Wextra', '-Wconversion', '-Wshadow', '-Wstrict-prototypes',
            '-Wmissing-prototypes', '-Wvla', '-Wpointer-arith', '-Wwrite-strings', '-Wformat=2',
            '-Wno-format-nonliteral', '-Wno-unused-command-line-argument', '-Werror']


def kept_flags(command):
    """-D, -I and -include of a compile command; -isystem folders are replaced by ours."""
    words, kept = command.split(), []
    for i, word in enumerate(words):
        if word.startswith(('-D', '-I')):
            kept.append(word.replace('\\', ''))
        elif word == '-include':
            kept += [word, words[i + 1]]
    return kept


def compile_one(entry, build, target):
    command = ['clang', f'--target={target}', '-nostdlibinc', '-fsyntax-only', '-std=c17', '-O2',
               '-isystem', str(HERE / 'include'), '-isystem', str(build / 'include'),
               *WARNINGS, *kept_flags(entry['command']), entry['file']]
    done = subprocess.run(command, capture_output=True, text=True, cwd=entry['directory'])
    return done.returncode == 0, done.stderr


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    build, target = pathlib.Path(arguments[0]).resolve(), arguments[1]
    entries = json.loads((build / 'compile_commands.json').read_text())
    ours = [e for e in entries if pathlib.Path(e['file']).is_relative_to(ROOT)
            and not pathlib.Path(e['file']).is_relative_to(build)]
    names = {e['file'] for e in ours}
    skipped = len({e['file'] for e in entries} - names)
    unique = {e['file']: e for e in ours}.values()
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for good, said in pool.map(lambda e: compile_one(e, build, target), unique):
            passed += good
            failed += not good
            if not good:
                print(said.rstrip())
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
