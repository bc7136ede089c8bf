#!/usr/bin/env python3
"""tools/make_packages.py: what npm and pip install starts the program; the same programs, the same bytes.

Closes with `N passed, N failed, N skipped`.
"""
import base64
import hashlib
import http.server
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import urllib.parse

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


class Registry(http.server.BaseHTTPRequestHandler):
    """What npm asks of a registry: what is known of a package, and its file."""

    def do_GET(self):
        path = urllib.parse.unquote(self.path).strip("/")
        body = self.server.files.get(path) or self.server.packages.get(path)
        self.send_response(200 if body else 404)
        self.end_headers()
        self.wfile.write(body or b"{}")

    def log_message(self, *_):
        pass


def registry(made):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.files = {name: path.read_bytes() for name, path in made.items() if name.endswith(".tgz")}
    server.packages = {}
    for name, data in server.files.items():
        with tarfile.open(made[name]) as tar:
            about = json.load(tar.extractfile("package/package.json"))
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        about["dist"] = {"tarball": f"http://127.0.0.1:{server.server_port}/{name}", "integrity": f"sha512-{digest}"}
        server.packages[about["name"]] = json.dumps(
            {"name": about["name"], "dist-tags": {"latest": VERSION}, "versions": {VERSION: about}}).encode()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@test
def npx_with_the_name_of_the_package_starts_the_program():
    if shutil.which("npx") is None:
        skip("npx is not here")
    with Folder() as folder:
        (folder / "made").mkdir()
        (folder / "empty").mkdir()
        server = registry(make(folder / "made"))
        try:
            (folder / ".npmrc").write_text(f"registry=http://127.0.0.1:{server.server_port}/\naudit=false\n")
            session = TESTS / "vectors/imports/qwen-code.jsonl"
            for asked in (["version"], ["import", "auto", session], ["no-such-command"]):
                said = run("npx", "--yes", "@cortex/cli", *asked, cwd=folder / "empty",
                           env=clean_env(HOME=str(folder)))
                direct = run(BIN, *asked, env=clean_env(HOME=str(folder)))
                check((said.returncode, said.stdout) == (direct.returncode, direct.stdout), asked, said.stderr)
            with subprocess.Popen(["npx", "--yes", "@cortex/cli", "view", session, "--json"], cwd=folder / "empty",
                                  env=clean_env(HOME=str(folder)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  start_new_session=True) as viewing:
                said = json.loads(viewing.stdout.readline())
                os.killpg(viewing.pid, signal.SIGINT)  # what a terminal sends
                viewing.wait(60)
            check(said.get("url", "").startswith("http://127.0.0.1:") or "without the page" in str(said), said)
            check(list((folder / "empty").iterdir()) == [], "npx writes nothing where it is started")
        finally:
            server.shutdown()
            server.server_close()


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
