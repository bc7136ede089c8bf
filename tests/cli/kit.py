"""What black-box tests of the program share: collecting, running and counting tests, and places to
work in.

    from kit import BIN, check, main, skip, test

    @test
    def it_says_its_version(): ...

    main()        # at the end of the file

A test fails by an exception, is skipped by skip("why"), and is chosen by words on the command line.
The program is $CORTEX_BIN, or the first argument when that is a file.
"""
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import traceback

arguments = sys.argv[1:]
if arguments and os.path.isfile(arguments[0]):
    BIN = os.path.abspath(arguments.pop(0))
else:
    BIN = os.path.abspath(os.environ["CORTEX_BIN"])
TESTS = pathlib.Path(os.environ.get("CX_TEST_ROOT", pathlib.Path(__file__).resolve().parent.parent))
TIMEOUT_S = 300  # of one command: only there so that a test that hangs ends

collected = []


class Skipped(Exception):
    pass


def test(function):
    collected.append(function)
    return function


def skip(why):
    raise Skipped(why)


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what) or "not true")


def beside(name):
    """A test program that the build puts beside the program."""
    return os.path.join(os.path.dirname(BIN), name)


def run(*argv, env=None, cwd=None, stdin=None, timeout=TIMEOUT_S):
    """The finished process; `stdin` is bytes or None."""
    return subprocess.run([str(word) for word in argv], input=stdin, capture_output=True, env=env,
                          cwd=cwd, timeout=timeout, stdin=None if stdin is not None
                          else subprocess.DEVNULL, check=False)


def remove(folder):
    """Also what a run has made read-only."""
    for path, folders, _ in os.walk(folder):
        os.chmod(path, stat.S_IRWXU)
        for name in folders:
            if not os.path.islink(os.path.join(path, name)):
                os.chmod(os.path.join(path, name), stat.S_IRWXU)
    shutil.rmtree(folder)


class Folder:
    """with Folder() as path: a temporary folder, without links in its path."""

    def __init__(self, prefix="cortex-test-"):
        self.prefix = prefix

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=self.prefix)).resolve()
        return self.path

    def __exit__(self, *_):
        remove(self.path)


def main():
    passed = failed = skipped = 0
    for function in collected:
        if arguments and not any(word in function.__name__ for word in arguments):
            continue
        try:
            function()
            passed += 1
        except Skipped as why:
            print(f"skip {function.__name__}: {why}")
            skipped += 1
        except Exception:  # a test may fail in any way
            print(f"FAIL {function.__name__}")
            traceback.print_exc(file=sys.stdout)
            failed += 1
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)
