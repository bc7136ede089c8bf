#!/usr/bin/env python3
"""check_layers.py [--root DIR] | --selftest - holds every #include to the floors of the house.

Prints each violation as FILE:LINE: why, and exits 1 when there is one.  Comments are not read;
includes in every branch of an #if are.  --selftest tries each rule on a made-up tree.

The rules are the tables below; a new room or a new dependency is a change to them.
"""
import pathlib
import re
import sys
import tempfile

# A room includes itself and the rooms on lower floors: never up, never sideways.
FLOORS = [
    ['base'],
    ['json', 'cbor', 'crypto'],
    ['log', 'db'],
    ['ledger'],
    ['evidence', 'lattice', 'memory', 'trace', 'run'],
    ['recorder', 'import'],
    ['server'],
    ['cli'],
]
# cortex-verify stays small enough to audit.
VERIFY_ROOMS = ['base', 'json', 'cbor', 'crypto', 'ledger', 'evidence']

# <cortex/NAME.h> belongs to the room NAME.  These belong to other rooms, or (None) to whoever
# stands above all of them.
PUBLIC_HEADER_ROOMS = {'cortex': None, 'journal': 'ledger', 'proof': 'ledger'}

C_STANDARD = """assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp
    stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath time
    uchar wchar wctype""".split()

# Headers from outside, first match wins: what they are, the pattern, and who may include them.
# A place is a room or a single file of one, without its ending.
OUTSIDE = [
    ('the C standard library', '(' + '|'.join(C_STANDARD) + r')\.h',
     'everyone'),
    ('a terminal or signal header', r'(unistd|termios|signal|sys/ioctl)\.h',
     ['base', 'cli', 'server']),
    # crypto starts its libraries once, and keeps one context a thread.
    ('a thread header', r'(pthread|threads)\.h',
     ['base', 'crypto']),
    ('an operating system header',
     r'(sys|linux|asm|net|netinet|arpa)/.*'
     r'|(dirent|dlfcn|fcntl|fnmatch|ftw|getopt|glob|grp|langinfo|netdb|poll|pwd|sched'
     r'|semaphore|spawn|strings|syscall|syslog|ucontext|utime|malloc|execinfo)\.h',
     ['base']),
    ('a crypto library', r'openssl/.*|sodium\.h|sodium/.*',
     ['crypto', 'cli/signer']),
    ('the HTTP library header', r'microhttpd\.h',
     ['server/http_mhd']),
    ('the zlib header', r'zlib\.h',
     ['base/gzip']),
    ('the PCRE2 header', r'pcre2\.h',
     ['json/pattern']),
    ('the SQLite header', r'sqlite3\.h',
     ['db']),
    ('the PostgreSQL header', r'postgresql/libpq-fe\.h',
     ['db']),
    ('the Unicode library header', r'utf8proc\.h',
     ['run/unicode']),
    ('a compiler intrinsics header', r'(.*intrin|arm_neon|cpuid)\.h',
     ['base', 'json', 'cbor', 'crypto']),
    ('a sanitizer header', r'sanitizer/.*',
     ['base']),
]

ROOM_FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
TOP = len(FLOORS) - 1

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
    """Where an including file stands: its room, or one of the two places that are not rooms."""

    def __init__(self, path):
        parts = path.parts
        self.public = parts[0] == 'include'
        self.verify = parts[0] == 'verify'
        self.name = str(pathlib.PurePath(*parts[1:]).with_suffix(''))
        if self.public:
            self.room = PUBLIC_HEADER_ROOMS.get(path.stem, path.stem)
        else:
            self.room = None if self.verify else parts[1]

    def refuses_room(self, room):
        """Why a file here may not include something of `room`, or None when it may."""
        if room not in ROOM_FLOOR:
            return f'"{room}" is not a room'
        if self.verify:
            return None if room in VERIFY_ROOMS else f'verify/ does without {room}/'
        if self.room is None or self.room == room:
            return None
        here, there = ROOM_FLOOR[self.room], ROOM_FLOOR[room]
        if there > here:
            return f'up: {self.room}/ is on floor {here}, {room}/ on floor {there}'
        if there == here:
            return f'sideways: {self.room}/ and {room}/ are both on floor {here}'
        return None

    def refuses_quoted(self, name):
        if self.public:
            return PUBLIC_ONLY
        if '/' not in name:
            return f'write "room/{name}"'
        if '..' in name.split('/'):
            return 'no way around the rooms'
        room, file = name.split('/', 1)
        reason = self.refuses_room(room)
        if reason is None and file == 'internal.h' and self.room != room:
            reason = f'{room}/internal.h is opened only inside {room}/'
        return reason

    def refuses_public_header(self, name):
        stem = name.removeprefix('cortex/').removesuffix('.h')
        room = PUBLIC_HEADER_ROOMS.get(stem, stem)
        if room is not None:
            return self.refuses_room(room)
        on_top = self.room is None or ROOM_FLOOR[self.room] == TOP
        return None if on_top else f'up: <{name}> stands above all rooms'

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
            if self.room in allowed or self.name in allowed:
                return None
            return f'{what} is included only in {", ".join(allowed)}'
        return f'no rule of check_layers.py knows <{name}>'


def check_file(root, path):
    """(line, what is included, why it may not be) of each violation in one file."""
    place = Place(path)
    if place.room is not None and place.room not in ROOM_FLOOR:
        yield 1, str(path), f'"{place.room}" is on no floor'
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


def check_tree(root):
    """(files read, violations as text)."""
    violations = []
    files = sorted(path.relative_to(root)
                   for pattern in ('src/*/**/*.[ch]', 'verify/**/*.[ch]', 'include/**/*.h')
                   for path in root.glob(pattern))
    for path in files:
        for line, included, reason in check_file(root, path):
            violations.append(f'{path}:{line}: {included}: {reason}')
    return len(files), violations


# File, its text, and a part of the reason expected; None when it must pass.
SELFTEST = [
    ('src/base/a.c', '#include "base/a.h"\n#include <sys/mman.h>\n#include <pthread.h>', None),
    ('src/json/a.c', '#include "base/a.h"\n#include <cortex/base.h>\n#include <string.h>', None),
    ('src/json/b.c', '#include "json/internal.h"\n#include <emmintrin.h>', None),
    ('src/lattice/a.c', '#include "crypto/digest.h"\n#include "ledger/entry.h"', None),
    ('src/crypto/a.c', '#include <openssl/evp.h>\n#include <sodium.h>', None),
    ('src/cli/a.c', '#include "import/a.h"\n#include <unistd.h>\n#include <termios.h>', None),
    ('src/cli/b.c', '#include <sys/ioctl.h>\n#include <cortex/cortex.h>', None),
    ('src/cli/signer.c', '#include <sodium.h>', None),
    ('src/server/a.c', '#include <unistd.h>', None),
    ('verify/main.c', '#include "ledger/proof.h"\n#include <stdio.h>', None),
    ('include/cortex/lattice.h', '#include <cortex/base.h>\n#include <stdint.h>', None),
    ('include/cortex/cortex.h', '#include <cortex/lattice.h>', None),
    ('src/base/c.c', '/* #include "run/a.h"\n#include "run/b.h" */\n// #include "run/c.h"', None),
    ('src/base/d.c', 'char *s = "/*";\n#include "run/a.h"', 'up: base/ is on floor 0, run/'),
    ('src/json/c.c', '#include "ledger/entry.h"', 'up: json/ is on floor 1, ledger/ on floor 3'),
    ('src/json/d.h', '#  include "lattice/node.h"', 'up'),
    ('src/json/e.c', '#include <cortex/lattice.h>', 'up'),
    ('src/json/f.c', '#include <cortex/cortex.h>', 'stands above all rooms'),
    ('src/json/g.c', '#include "crypto/digest.h"', 'sideways: json/ and crypto/'),
    ('src/log/a.c', '#include "db/db.h"', 'sideways'),
    ('src/lattice/b.c', '#include "trace/model.h"', 'sideways: lattice/ and trace/'),
    ('src/recorder/a.c', '#include "import/a.h"', 'sideways'),
    ('src/cli/c.c', '#include "server/server.h"', None),
    ('src/server/b.c', '#include "cli/cli.h"', 'up'),
    ('src/server/http_mhd.c', '#include <microhttpd.h>', None),
    ('src/server/c.c', '#include <microhttpd.h>', 'the HTTP library header'),
    ('src/lattice/c.c', '#include "json/internal.h"', 'opened only inside json/'),
    ('verify/a.c', '#include "ledger/internal.h"', 'opened only inside ledger/'),
    ('verify/b.c', '#include "log/segment.h"', 'verify/ does without log/'),
    ('verify/c.c', '#include <sodium.h>', 'a crypto library'),
    ('verify/d.c', '#include <unistd.h>', 'a terminal or signal header'),
    ('src/lattice/d.c', '#include <openssl/sha.h>', 'a crypto library'),
    ('src/base/e.c', '#include <sodium.h>', 'a crypto library'),
    ('src/cli/d.c', '#include <sodium.h>', 'a crypto library'),
    ('src/lattice/e.c', '#include <fcntl.h>', 'an operating system header'),
    ('src/lattice/f.c', '#include <unistd.h>', 'a terminal or signal header'),
    ('src/lattice/g.c', '#include <pthread.h>', 'a thread header'),
    ('src/cli/e.c', '#include <pthread.h>', 'a thread header'),
    ('src/cli/f.c', '#include <sys/stat.h>', 'an operating system header'),
    ('src/lattice/h.c', '#include <immintrin.h>', 'a compiler intrinsics header'),
    ('src/json/m.c', '#include <sanitizer/asan_interface.h>', 'a sanitizer header'),
    ('src/db/a.c', '#include <leveldb/c.h>', 'no rule'),
    ('src/db/b.c', '#include <postgresql/libpq-fe.h>\n#include <sqlite3.h>', None),
    ('src/trace/a.c', '#include <postgresql/libpq-fe.h>', 'the PostgreSQL header'),
    ('src/json/h.c', '#include "json.h"', 'write "room/json.h"'),
    ('src/json/i.c', '#include "json/../run/a.h"', 'no way around'),
    ('src/json/j.c', '#include "attic/a.h"', '"attic" is not a room'),
    ('src/json/k.c', '#define H "run/a.h"\n#include H', 'written out'),
    ('src/json/l.c', '#if 0\n#include \\\n  "run/a.h"\n#endif', 'up'),
    ('src/attic/a.c', '', 'on no floor'),
    ('src/json/deep/a.c', '#include "run/a.h"', 'up'),
    ('include/cortex/trace.h', '#include "trace/model.h"', 'a public header includes only'),
    ('include/cortex/run.h', '#include <unistd.h>', 'a public header includes only'),
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
        print(f'{count} files, every include points down')
    return bool(violations)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
