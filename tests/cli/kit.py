"""What black-box tests of the program share: collecting, running and counting tests, and places to
work in.

    from kit import BIN, check, main, skip, test

    @test
    def it_says_its_version(): ...

    main()        # at the end of the file

A test fails by an exception, is skipped by skip("why"), and is chosen by words on the command line.
The program is $CORTEX_BIN, or the first argument when that is a file.  A script that counts by itself
ends with finish(), or calls count() for each of its checks and ends with finish_counted(); one that
compares two answers many times is one test and ends with finish_comparison().
"""
import contextlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback

arguments = sys.argv[1:]
if arguments and os.path.isfile(arguments[0]):
    BIN = os.path.abspath(arguments.pop(0))
elif os.environ.get("CORTEX_BIN"):
    BIN = os.path.abspath(os.environ["CORTEX_BIN"])
else:
    print(f"{sys.argv[0]}: name the program as first argument or in CORTEX_BIN", file=sys.stderr)
    sys.exit(2)
TESTS = pathlib.Path(os.environ.get("CX_TEST_ROOT", pathlib.Path(__file__).resolve().parent.parent))
TIMEOUT_S = 300  # of one command: only there so that a test that hangs ends
SLOW_S = 5       # a test that takes longer is printed with its time
SHOWN = 3000     # characters of what count() shows
SKIPPED = 77     # exit code of a script that could not test anything

collected = []
at_end = []
counted = {True: 0, False: 0}


class Skipped(Exception):
    pass


def test(function):
    collected.append(function)
    return function


def afterwards(function):
    """Runs after the tests, whatever came of them; it is no test, but can fail like one."""
    at_end.append(function)
    return function


def skip(why):
    raise Skipped(why)


def need_program(path):
    """Skips the whole script where the build did not make this program."""
    if not os.path.exists(path):
        skip_all(f"there is no {path}")


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in what) or "not true")


def sibling(name):
    """A test program that the build puts next to the program."""
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


def make_folder(prefix="cortex-test-"):
    """A temporary folder, without links in its path; the caller removes it, or keeps it as evidence."""
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix)).resolve()


def clean_env(**more):
    """The environment without what sets Cortex or git, or says where users keep data."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("CORTEX", "GIT_", "XDG_", "AWS_"))}
    return {**env, "LC_ALL": "C.UTF-8", **{name: str(value) for name, value in more.items()}}


class Folder:
    """with Folder() as path: a temporary folder, without links in its path."""

    def __init__(self, prefix="cortex-test-"):
        self.prefix = prefix

    def __enter__(self):
        self.path = make_folder(self.prefix)
        return self.path

    def __exit__(self, *_):
        remove(self.path)


class Place:
    """with Place() as p: a folder with a data directory in it, and the program run over it as the actor
    andrew, without the settings of the user who runs the tests."""

    OTHERS = ("CORTEX_HOME", "CORTEX_ACTOR", "XDG_DATA_HOME", "LOGNAME", "USER")

    def __init__(self, init=True, scheme="cortex-1"):
        self.init, self.scheme = init, scheme

    def __enter__(self):
        self.folder = make_folder("cortex-place-")
        self.home = self.folder / "home"
        self.env = {**{k: v for k, v in os.environ.items() if k not in self.OTHERS},
                    "CORTEX_HOME": str(self.home), "CORTEX_ACTOR": "andrew", "HOME": str(self.folder)}
        if self.init:
            self.ok("init", "--segment-size", "256K", "--scheme", self.scheme)
        return self

    def __exit__(self, *_):
        remove(self.folder)

    def run(self, *args, input=b"", env=None, program=BIN, cwd=None):
        return subprocess.run([program, *map(str, args)], input=input, capture_output=True,
                              env={**self.env, **(env or {})}, cwd=cwd or self.folder,
                              timeout=TIMEOUT_S, check=False)

    def expect(self, code, *args, out=None, err=None, **more):
        """The finished process, whose exit code is `code` and whose streams have these texts."""
        return expect(self.run(*args, **more), code, out, err)

    def ok(self, *args, **more):
        return self.expect(0, *args, **more).stdout.decode().rstrip("\n")

    def json(self, *args, code=0, **more):
        """The one line that --json prints."""
        done = self.expect(code, *args, "--json", **more)
        assert done.stdout.count(b"\n") == 1, (args, done.stdout)
        return json.loads(done.stdout)


def expect(done, code, out=None, err=None):
    """`done`, whose exit code is `code` and whose streams have these texts."""
    said, problems = (done.stdout or b"").decode(errors="replace"), done.stderr.decode(errors="replace")
    assert done.returncode == code, \
        f"{done.args[1:]}: exit {done.returncode}, expected {code}\n{said[:900]}\n{problems[:900]}"
    if out is not None:
        assert out in said, f"{done.args[1:]}: no {out!r} in\n{said[:900]}"
    if err is not None:
        assert err in problems, f"{done.args[1:]}: no {err!r} in {problems!r}"
    return done


def count(what, holds, shown=""):
    """One test of a script that goes on when it fails; finish_counted() is its end."""
    counted[bool(holds)] += 1
    if not holds:
        print("FAIL", what, str(shown)[:SHOWN])


def finish_counted():
    finish(counted[True], counted[False])


def finish_comparison(holds):
    """However many inputs were compared, it was one test."""
    finish(int(bool(holds)), int(not holds))


def skip_all(why, count=1):
    """The end of a script that cannot test anything here."""
    print(f"skip: {why}")
    finish(0, 0, count, code=SKIPPED)


def finish(passed, failed, skipped=0, code=None):
    """The closing line of a script, and its end."""
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.stdout.flush()
    sys.exit(code if code is not None else failed != 0 or passed + skipped == 0)


def call(function, *given):
    """'passed', 'failed' or 'skipped'."""
    began = time.monotonic()
    try:
        function(*given)
        outcome = "passed"
    except Skipped as why:
        print(f"skip {function.__name__}: {why}")
        outcome = "skipped"
    except Exception:  # a test may fail in any way
        print(f"FAIL {function.__name__}")
        traceback.print_exc(file=sys.stdout)
        outcome = "failed"
    if time.monotonic() - began > SLOW_S:
        print(f"  {function.__name__}: {time.monotonic() - began:.1f} s")
    sys.stdout.flush()
    return outcome


def main(shared=None):
    """`shared` makes a context manager; what it gives is the argument of every test."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with contextlib.ExitStack() as stack:
        given = [stack.enter_context(shared())] if shared else []
        for function in collected:
            if not arguments or any(word in function.__name__ for word in arguments):
                counts[call(function, *given)] += 1
        for function in at_end:
            counts["failed"] += call(function, *given) == "failed"
    finish(**counts)
