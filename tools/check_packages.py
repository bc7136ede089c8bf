#!/usr/bin/env python3
"""check_packages.py - debian/ names every library that is loaded at run time, every -dev package, and the manual
page of every command.

dpkg-shlibdeps sees what is linked; what src/ loads by name ("libpq.so.5") is read from the sources here.
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The Debian 12 package of each library that some file loads; several names are alternatives.
PACKAGES = {
    'libcrypto.so.3': 'libssl3',
    'libcurl-gnutls.so.4': 'libcurl3-gnutls',
    'libcurl.so.4': 'libcurl4',
    'libmicrohttpd.so.12': 'libmicrohttpd12',
    'libnghttp2.so.14': 'libnghttp2-14',
    'libpcre2-8.so.0': 'libpcre2-8-0',
    'libpq.so.5': 'libpq5',
    'libseccomp.so.2': 'libseccomp2',
    'libutf8proc.so.2': 'libutf8proc2',
    'libutf8proc.so.3': 'libutf8proc2',
    'libz.so.1': 'zlib1g',
    'libzstd.so.1': 'libzstd1',
}
# Loaded where a machine has them; Debian 12 has no package.
FOREIGN = {'liboqs.so.7', 'liboqs.so.8', 'liboqs.so.9'}
# The programs that are started, by their packages.
STARTED = ['git', 'bubblewrap']


def paragraphs():
    for text in (ROOT / 'debian/control').read_text().split('\n\n'):
        fields = {}
        for name, value in re.findall(r'^([A-Z][\w-]*):((?:.*\n?)(?:[ \t].*\n?)*)', text, flags=re.M):
            fields[name] = re.findall(r'[a-z0-9][a-z0-9.+-]+(?=\s*(?:[|,(]|$))', value, flags=re.M)
        yield fields


def pages_left_out():
    """Manual pages of commands that no package installs; that of `cortex verify` is the verifier's own."""
    patterns = (ROOT / 'debian/cortex.install').read_text().split()
    commands = set()
    for path in (ROOT / 'src/cli').rglob('cmd_*.c'):
        commands |= set(re.findall(r'^    \.name = "([a-z-]+)', path.read_text(), flags=re.M))
    pages = sorted(f'usr/share/man/man1/cortex-{name}.1' for name in commands - {'verify'})
    left = [page for page in pages if not any(fnmatch.fnmatch(page, pattern) for pattern in patterns)]
    if len(pages) < 30:
        left.append('fewer than 30 commands were found: is this check of use?')
    return left


def main():
    wrong = [f'debian/cortex.install: nothing matches {page}' for page in pages_left_out()]
    loaded = set()
    for path in sorted(ROOT.glob('src/*/*.c')):
        loaded |= set(re.findall(r'"(lib[\w+.-]+\.so\.\d+)"', path.read_text()))
    if not FOREIGN <= loaded:
        wrong.append('a library of FOREIGN is not loaded any more: take it out')
    loaded -= FOREIGN
    if not loaded:
        wrong.append('no file of src/ loads a library any more: is this check of use?')
    control = list(paragraphs())
    source = control[0].get('Build-Depends', [])
    named = {}
    for fields in control[1:]:
        name = fields['Package'][0]
        named[name] = [entry for field in ('Depends', 'Recommends', 'Suggests')
                       for entry in fields.get(field, [])]
    for library in sorted(loaded):
        package = PACKAGES.get(library)
        if package is None:
            wrong.append(f'{library} is loaded: add its package to tools/check_packages.py')
        elif package not in named['cortex']:
            wrong.append(f'debian/control: cortex names no {package}, which has {library}')
    for library in sorted(set(PACKAGES) - loaded):
        wrong.append(f'{library} is not loaded any more: take it out of tools/check_packages.py')
    for package in STARTED:
        if package not in named['cortex']:
            wrong.append(f'debian/control: cortex names no {package}')
    script = (ROOT / 'scripts/install-deps.sh').read_text()
    listed = re.search(r'^build_packages=\((.*?)\)', script, flags=re.M | re.S).group(1).split()
    for package in listed:
        if package.endswith('-dev') and package != 'libc6-dev' and package not in source:
            wrong.append(f'debian/control: Build-Depends lacks {package} (scripts/install-deps.sh has it)')
    for line in wrong:
        print(line)
    print(f'{len(loaded)} libraries are loaded at run time, {len(wrong)} findings')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
