#!/usr/bin/env python3
"""tools/make_packages.py: what npm and pip install starts the program; the same programs, the same bytes.

Closes with `N passed, N failed, N skipped`.
"""
import hashlib
import platform
import re
import shutil
import sys

from kit import BIN, TESTS, Folder, check, clean_env, main, run, sibling, skip, test

MAKE = TESTS.parent / "tools/make_packages.py"
VERSION = re.search(rb"cortex ([0-9.]+)", run(BIN, "version").stdout)[1].decode()
ARCH = platform.machine()


def make(folder):
    if ARCH not in ("x86_64", "aarch64"):
        skip(f"there are no packages for {ARCH}")
    shutil.copy(BIN, folder / f"cortex-{VERSION}-linux-{ARCH}")
    shutil.copy(sibling("cortex-verify"), folder / f"cortex-verify-{VERSION}-linux-{ARCH}")
    done = run(sys.executable, MAKE, folder)
    check(done.returncode == 0, done.stderr)
    return {path.name: path for path in folder.iterdir()}


@test
def npm_starts_the_program_without_an_install_script():
    if shutil.which("npm") is None:
        skip("npm is not here")
    with Folder() as folder:
        (folder / "made").mkdir()
        (folder / "user").mkdir()
        made = make(folder / "made")
        npm_arch = {"x86_64": "x64", "aarch64": "arm64"}[ARCH]
        (folder / "user/package.json").write_text('{"name":"u","version":"1.0.0"}')
        done = run("npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund",
                   made[f"cortex-cli-linux-{npm_arch}-{VERSION}.tgz"], made[f"cortex-cli-{VERSION}.tgz"],
                   cwd=folder / "user", env=clean_env(HOME=str(folder)))
        check(done.returncode == 0, done.stdout, done.stderr)
        start = folder / "user/node_modules/.bin/cortex"
        check(run(start, "version").stdout == run(BIN, "version").stdout)
        check(run(folder / "user/node_modules/.bin/cortex-verify", "--version").stdout.startswith(b"cortex-verify"))
        check(run(start, "no-such-command").returncode == 2)
        shutil.rmtree(folder / f"user/node_modules/@cortex/cli-linux-{npm_arch}")
        done = run(start, "version")
        check(done.returncode == 3 and b"--omit=optional" in done.stderr, done.stderr)


@test
def pip_installs_the_sdk_and_the_program():
    with Folder() as folder:
        made = make(folder)
        place = folder / "venv"
        if run(sys.executable, "-m", "venv", place).returncode != 0:
            skip("venv is not here")
        wheel = next(path for name, path in made.items() if name.endswith(".whl"))
        done = run(place / "bin/pip", "install", "--no-index", "--quiet", wheel, env=clean_env(HOME=str(folder)))
        check(done.returncode == 0, done.stderr)
        check(run(place / "bin/cortex", "version").stdout == run(BIN, "version").stdout)
        check(run(place / "bin/python", "-c", "import cortex_recorder as c; print(c.__version__)").stdout.decode().strip()
              == VERSION)


@test
def the_same_programs_give_the_same_bytes():
    with Folder() as one, Folder() as two:
        hashes = [{name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in make(folder).items()}
                  for folder in (one, two)]
        check(hashes[0] == hashes[1] and len(hashes[0]) >= 5, hashes)


if __name__ == "__main__":
    main()
