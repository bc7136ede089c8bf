#!/usr/bin/env python3
"""check_layers.py [--root DIR] | --selftest - holds every #include to the layers of modules.

Prints each violation as FILE:LINE: why, and exits 1 when there is one.  Comments are not read;
includes in every branch of an #if are.  --selftest tries each rule on a made-up tree.

The rules are the tables below; a new module or a new dependency is a change to them.
"""
import pathlib
import re
import sys
import tempfile

# A module includes itself and, of modules in lower layers, their api.h: never up, never sideways.
LAYERS = [
    ['base'],
    ['cbor', 'json', 'os'],
    ['crypto', 'db', 'schema', 'sensitive'],
    ['lattice', 'log', 'rules', 'trace', 'tree'],
    ['analysis', 'bundle', 'command', 'egress', 'git', 'import', 'pages', 'proof', 'sandbox', 'view'],
    ['agent', 'contract', 'evidence', 'ledger'],
    ['approval', 'candidate', 'fleet', 'index', 'memory', 'socket'],
    ['audit', 'erasure', 'live', 'recorder'],
    ['gateway', 'governor', 'stores'],
    ['live_audit', 'provenance'],
    ['server'],
    ['cli'],
]
# cortex-verify is built of these, so that it stays small enough to audit.
VERIFY_MODULES = ['base', 'os', 'json', 'cbor', 'crypto', 'tree', 'proof', 'evidence']
# A header besides api.h that one other module may include, and why.
FRIENDS = {
    ('evidence', 'proof/proof_internal.h'): 'evidence files hold proofs in parts',
    ('schema', 'json/internal.h'): 'walking values',
    ('pages', 'tree/smt_internal.h'): 'bits of keys, and climbing one-sided branches',
    ('socket', 'ledger/internal.h'): 'calls are made on the state of a ledger',
    ('view', 'lattice/ancestors.h'): 'ancestors as bit sets',
    ('view', 'lattice/answer.h'): 'answers as they are drawn',
    ('view', 'lattice/internal.h'): 'pictures need the graph itself',
    ('view', 'lattice/state.h'): 'states at nodes',
}
# Of .c and .h files in one folder of src/.
FOLDER_FILES_MAX = 45

# <cortex/NAME.h> belongs to the module NAME.  These belong to other modules, or (None)
# are above all of them.
PUBLIC_HEADER_MODULES = {'cortex': None, 'journal': 'ledger', 'proof': 'ledger'}

C_STANDARD = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp
    stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath time
    uchar wchar wctype""".split()

# Headers from outside, first match wins: what they are, the pattern, and who may include them.
# A place is a module or a single file of one, without its ending.
OUTSIDE = [
    ('the C standard library', '(' + '|'.join(C_STANDARD) + r')\.h',
     'everyone'),
    ('a terminal or signal header', r'(unistd|termios|signal|sys/ioctl)\.h',
     ['base', 'os', 'cli', 'server']),
    # crypto starts its libraries once, and keeps one context a thread.
    ('a thread header', r'(pthread|threads)\.h',
     ['base', 'os', 'crypto']),
    ('an operating system header',
     r'(sys|linux|asm|net|netinet|arpa)/.*'
     r'|mach-o/.*|(crt_externs|libproc)\.h'
     r'|(dirent|dlfcn|fcntl|fnmatch|ftw|getopt|glob|grp|langinfo|netdb|poll|pwd|sched'
     r'|ifaddrs|semaphore|spawn|strings|syscall|syslog|ucontext|utime|malloc|execinfo)\.h',
     ['base', 'os']),
    ('a crypto library', r'openssl/.*|sodium\.h|sodium/.*',
     ['crypto', 'cli/signer', 'os/forward/forward_tls']),
    ('the HTTP library header', r'microhttpd\.h',
     ['server/http_mhd']),
    ('the HTTP/2 library header', r'nghttp2/.*',
     ['server/grpc_session']),
    ('the zlib header', r'zlib\.h',
     ['os/gzip']),
    ('the PCRE2 header', r'pcre2\.h',
     ['schema/pattern']),
    ('the SQLite header', r'sqlite3\.h',
     ['db']),
    ('the PostgreSQL header', r'postgresql/libpq-fe\.h',
     ['db']),
    ('the Unicode library header', r'utf8proc\.h',
     ['rules/unicode']),
    ('a compiler intrinsics header', r'(.*intrin|arm_neon|arm_acle|cpuid)\.h',
     ['base', 'json', 'cbor', 'crypto']),
    ('a sanitizer header', r'sanitizer/.*',
     ['base']),
]

MODULE_LAYER = {module: layer for layer, modules in enumerate(LAYERS) for module in modules}
TOP = len(LAYERS) - 1

# A comment becomes blank; a string or character constant is kept, as it may look like a comment.
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.S)
SPACE = r'(?:[ \t]|\\\n)*'
INCLUDE = re.compile(f'^{SPACE}#{SPACE}include{SPACE}'
                     r'(?:"([^"\n]*)"|<([^>\n]*)>|([^\n]*))', re.M)

PUBLIC_ONLY = 'a public header includes only <cortex/...> and the C standard library'


def includes(text):
    """(line number, quoted name or None, angle name or None) of each #include."""
    text = COMMENT.sub(lambda m: m.group(1) or re.sub(r'[^\n]', ' ', m.group()), text)
    for found in INCLUDE.finditer(text):
        yield text.count('\n', 0, found.start()) + 1, found.group(1), found.group(2)


class Place:
    """Where an including file is: its module, or one of the two places that are none."""

    def __init__(self, path):
        parts = path.parts
        self.public = parts[0] == 'include'
        self.verify = parts[0] == 'verify'
        self.name = str(pathlib.PurePath(*parts[1:]).with_suffix(''))
        if self.public:
            self.module = PUBLIC_HEADER_MODULES.get(path.stem, path.stem)
        else:
            self.module = None if self.verify else parts[1]

    def refuses_module(self, module):
        """Why a file here may not include something of `module`, or None when it may."""
        if module not in MODULE_LAYER:
            return f'"{module}" is not a module'
        if self.verify:
            return None if module in VERIFY_MODULES else f'verify/ does without {module}/'
        if self.module is None or self.module == module:
            return None
        here, there = MODULE_LAYER[self.module], MODULE_LAYER[module]
        if there > here:
            return f'up: {self.module}/ is on layer {here}, {module}/ on layer {there}'
        if there == here:
            return f'sideways: {self.module}/ and {module}/ are both on layer {here}'
        return None

    def refuses_quoted(self, name):
        if self.public:
            return PUBLIC_ONLY
        if '/' not in name:
            return f'write "module/{name}"'
        if '..' in name.split('/'):
            return 'no way around the modules'
        module, file = name.split('/', 1)
        reason = self.refuses_module(module)
        if reason is None and self.module != module and file != 'api.h' \
                and (self.module, name) not in FRIENDS:
            reason = f'of {module}/ other modules include only {module}/api.h'
        return reason

    def refuses_public_header(self, name):
        stem = name.removeprefix('cortex/').removesuffix('.h')
        module = PUBLIC_HEADER_MODULES.get(stem, stem)
        if module is not None:
            return self.refuses_module(module)
        on_top = self.module is None or MODULE_LAYER[self.module] == TOP
        return None if on_top else f'up: <{name}> is above all modules'

    def refuses_angle(self, name):
        if name.startswith('cortex/'):
            return self.refuses_public_header(name)
        for what, pattern, allowed in OUTSIDE:
            if not re.fullmatch(pattern, name):
                continue
            if allowed == 'everyone':
                return None
            if self.public:
                return PUBLIC_ONLY
            if self.module in allowed or self.name in allowed:
                return None
            return f'{what} is included only in {", ".join(allowed)}'
        return f'no rule of check_layers.py knows <{name}>'


def check_file(root, path):
    """(line, what is included, why it may not be) of each violation in one file."""
    place = Place(path)
    if place.module is not None and place.module not in MODULE_LAYER:
        yield 1, str(path), f'"{place.module}" is in no layer'
        return
    for line, quoted, angle in includes((root / path).read_text(encoding='utf-8')):
        if quoted is not None:
            reason = place.refuses_quoted(quoted)
        elif angle is not None:
            reason = place.refuses_angle(angle)
        else:
            reason = 'the name of a header is written out'
        if reason is not None:
            yield line, quoted or angle or '#include', reason


def check_folders(root):
    """What is wrong with folders of src/: too many files, a module without its api.h."""
    for folder in sorted(path for path in root.glob('src/**/') if path.is_dir()):
        name = folder.relative_to(root)
        count = len(list(folder.glob('*.[ch]')))
        if count > FOLDER_FILES_MAX:
            yield f'{name}: {count} files, more than {FOLDER_FILES_MAX}'
        if len(name.parts) == 2 and name.parts[1] in MODULE_LAYER and MODULE_LAYER[name.parts[1]] < TOP:
            api = folder / 'api.h'
            if not api.exists():
                yield f'{name}: no api.h, which other modules include'
            elif not api.read_text(encoding='utf-8').startswith(f'/*\n * {name.parts[1]} - '):
                yield f'{name}/api.h: begins with "{name.parts[1]} - " and what the module is for'


def check_tree(root):
    """(files read, violations as text)."""
    violations = []
    files = sorted(path.relative_to(root)
                   for pattern in ('src/*/**/*.[ch]', 'verify/**/*.[ch]', 'include/**/*.h')
                   for path in root.glob(pattern))
    for path in files:
        for line, included, reason in check_file(root, path):
            violations.append(f'{path}:{line}: {included}: {reason}')
    if files and (root / 'tools').exists():
        violations += check_folders(root)
    return len(files), violations


# File, its text, and a part of the reason expected; None when it must pass.
SELFTEST = [
    ('src/os/a.c', '#include "base/api.h"\n#include <sys/mman.h>\n#include <pthread.h>', None),
    ('src/json/a.c', '#include "base/api.h"\n#include <cortex/base.h>\n#include <string.h>', None),
    ('src/json/b.c', '#include "json/internal.h"\n#include <emmintrin.h>', None),
    ('src/ledger/a.c', '#include "crypto/api.h"\n#include "proof/api.h"', None),
    ('src/crypto/a.c', '#include <openssl/evp.h>\n#include <sodium.h>', None),
    ('src/cli/a.c', '#include "import/api.h"\n#include <unistd.h>\n#include <termios.h>', None),
    ('src/cli/b.c', '#include <sys/ioctl.h>\n#include <cortex/cortex.h>', None),
    ('src/cli/signer.c', '#include <sodium.h>', None),
    ('src/cli/run/a.c', '#include "cli/run/b.h"\n#include "cli/cli.h"', None),
    ('src/server/a.c', '#include <unistd.h>', None),
    ('verify/main.c', '#include "proof/api.h"\n#include <stdio.h>', None),
    ('src/view/a.c', '#include "lattice/internal.h"', None),
    ('include/cortex/lattice.h', '#include <cortex/base.h>\n#include <stdint.h>', None),
    ('include/cortex/cortex.h', '#include <cortex/lattice.h>', None),
    ('src/base/c.c', '/* #include "git/api.h"\n#include "git/b.h" */\n// #include "git/c.h"', None),
    ('src/base/d.c', 'char *s = "/*";\n#include "git/api.h"', 'up: base/'),
    ('src/json/c.c', '#include "ledger/api.h"', 'up: json/'),
    ('src/json/d.h', '#  include "lattice/api.h"', 'up'),
    ('src/json/e.c', '#include <cortex/lattice.h>', 'up'),
    ('src/json/f.c', '#include <cortex/cortex.h>', 'is above all modules'),
    ('src/json/g.c', '#include "cbor/api.h"', 'sideways: json/ and cbor/'),
    ('src/crypto/b.c', '#include "db/api.h"', 'sideways'),
    ('src/lattice/b.c', '#include "trace/api.h"', 'sideways: lattice/ and trace/'),
    ('src/lattice/c.c', '#include "view/api.h"', 'up'),
    ('src/sandbox/a.c', '#include "governor/api.h"', 'up'),
    ('src/git/a.c', '#include "contract/api.h"', 'up'),
    ('src/proof/a.c', '#include "ledger/api.h"', 'up'),
    ('src/cli/c.c', '#include "server/api.h"', None),
    ('src/server/b.c', '#include "cli/cli.h"', 'up'),
    ('src/server/http_mhd.c', '#include <microhttpd.h>', None),
    ('src/server/c.c', '#include <microhttpd.h>', 'the HTTP library header'),
    ('src/server/grpc_session.c', '#include <nghttp2/nghttp2.h>', None),
    ('src/server/grpc_wire.c', '#include <nghttp2/nghttp2.h>', 'the HTTP/2 library header'),
    ('src/lattice/d.c', '#include "json/internal.h"', 'other modules include only json/api.h'),
    ('src/import/d.c', '#include "lattice/internal.h"', 'other modules include only lattice/api.h'),
    ('src/lattice/e.c', '#include "json/json.h"', 'other modules include only json/api.h'),
    ('verify/a.c', '#include "proof/check.h"', 'other modules include only proof/api.h'),
    ('verify/b.c', '#include "log/api.h"', 'verify/ does without log/'),
    ('verify/c.c', '#include <sodium.h>', 'a crypto library'),
    ('verify/d.c', '#include <unistd.h>', 'a terminal or signal header'),
    ('src/lattice/f.c', '#include <openssl/sha.h>', 'a crypto library'),
    ('src/base/e.c', '#include <sodium.h>', 'a crypto library'),
    ('src/cli/d.c', '#include <sodium.h>', 'a crypto library'),
    ('src/lattice/g.c', '#include <fcntl.h>', 'an operating system header'),
    ('src/lattice/h.c', '#include <unistd.h>', 'a terminal or signal header'),
    ('src/lattice/i.c', '#include <pthread.h>', 'a thread header'),
    ('src/cli/e.c', '#include <pthread.h>', 'a thread header'),
    ('src/cli/f.c', '#include <sys/stat.h>', 'an operating system header'),
    ('src/lattice/j.c', '#include <immintrin.h>', 'a compiler intrinsics header'),
    ('src/json/m.c', '#include <sanitizer/asan_interface.h>', 'a sanitizer header'),
    ('src/db/a.c', '#include <leveldb/c.h>', 'no rule'),
    ('src/db/b.c', '#include <postgresql/libpq-fe.h>\n#include <sqlite3.h>', None),
    ('src/trace/a.c', '#include <postgresql/libpq-fe.h>', 'the PostgreSQL header'),
    ('src/json/h.c', '#include "json.h"', 'write "module/json.h"'),
    ('src/json/i.c', '#include "json/../git/a.h"', 'no way around'),
    ('src/json/j.c', '#include "attic/a.h"', '"attic" is not a module'),
    ('src/json/k.c', '#define H "git/a.h"\n#include H', 'written out'),
    ('src/json/l.c', '#if 0\n#include \\\n  "git/api.h"\n#endif', 'up'),
    ('src/attic/a.c', '', 'in no layer'),
    ('src/json/deep/a.c', '#include "git/api.h"', 'up'),
    ('include/cortex/trace.h', '#include "trace/trace.h"', 'a public header includes only'),
    ('include/cortex/journal.h', '#include <unistd.h>', 'a public header includes only'),
    ('include/cortex/memory.h', '#include <sodium.h>', 'a public header includes only'),
    ('include/cortex/json.h', '#include <cortex/lattice.h>', 'up'),
]


def selftest():
    failed = 0
    for file, text, expected in SELFTEST:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / file
            path.parent.mkdir(parents=True)
            path.write_text(text + '\n', encoding='utf-8')
            violations = check_tree(pathlib.Path(folder))[1]
        if expected is None:
            good = not violations
        else:
            good = len(violations) == 1 and expected in violations[0]
        if not good:
            failed += 1
            print(f'FAIL {file}: expected {expected or "no violation"}, got {violations}')
    print(f'{len(SELFTEST) - failed} passed, {failed} failed, 0 skipped')
    return failed != 0


def main(arguments):
    if arguments == ['--selftest']:
        return selftest()
    root = pathlib.Path(__file__).resolve().parent.parent
    if len(arguments) == 2 and arguments[0] == '--root':
        root = pathlib.Path(arguments[1])
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    count, violations = check_tree(root)
    for violation in violations:
        print(violation)
    if count == 0:
        print(f'{root}: nothing to check')
        return 1
    if not violations:
        print(f'{count} files, every include points down, to api.h')
    return bool(violations)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
