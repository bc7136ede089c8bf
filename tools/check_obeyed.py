#!/usr/bin/env python3
"""check_obeyed.py - names that other programs obey are the same for hooks and for `cortex exec`.

src/live/guarded.c lists settings by path, src/cli/exec/exec_places.c the names in a working folder that stay
read-only.  Each path of the former that can lie in a working folder must begin with a name of the latter, and each
name of the latter must begin a path of the former, but for those below.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LISTS = ('agent_settings', 'agent_texts', 'repository_settings')
# Below /etc or a user's home: never in a working folder that `exec` makes writable without being told.
ELSEWHERE = {'managed-settings.json', 'managed-settings.d', 'managed_config.toml', '.config'}
# Known to hooks by other means: what is in them, not what they are called.
OTHERWISE = {'.git', 'policies'}


def names_of(text, name):
    found = re.search(rf'\b{name}\[\] = \{{(.*?)\}};', text, re.S)
    if found is None:
        sys.exit(f'no list {name}')
    return [path.split('/')[0] for path in re.findall(r'"([^"]+)"', found[1])]


def differences(guarded, places):
    hooks = {name for which in LISTS for name in names_of(guarded, which)} - ELSEWHERE
    kept = set(names_of(places, 'protected_names')) - OTHERWISE
    yield from (f'src/cli/exec/exec_places.c: protected_names lacks {name}' for name in sorted(hooks - kept))
    yield from (f'src/live/guarded.c: no list has {name}' for name in sorted(kept - hooks))


def selftest():
    guarded = ''.join(f'x {name}[] = {{"{path}"}};' for name, path in zip(LISTS, ('.a/b', '.c/', '.d')))
    places = 'x protected_names[] = {%s};'
    assert not list(differences(guarded, places % '".a", ".c", ".d", ".git"'))
    assert len(list(differences(guarded, places % '".a", ".c", ".e"'))) == 2


def main():
    selftest()
    found = list(differences((ROOT / 'src/live/guarded.c').read_text(), (ROOT / 'src/cli/exec/exec_places.c').read_text()))
    print('\n'.join(found) or 'the lists agree')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
