"""Podman with a storage of its own, for tests that really run an image of scripts/image.sh.

They are skipped where podman or the image is not, or where containers cannot be started.
"""
import json
import os
import pathlib
import re
import shutil
import time

from kit import BIN, TESTS, check, run, skip

VERSION = re.search(rb"cortex ([0-9.]+)", run(BIN, "version").stdout)[1].decode()
# Where images were made before.
MADE = pathlib.Path(os.environ.get("CORTEX_IMAGES", TESTS.parent / "build/dist"))
# Limits that any machine allows; the one of Debian 12 asks for more than a virtual machine may have.
ALLOWED = ["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1000:1000"]
RUNTIME = ["--runtime", "runc"] if shutil.which("runc") else []


class Podman:
    """An image in a storage of its own; volumes and containers go with it."""

    def __init__(self, folder, name, arch=None, qemu=None):
        """With `arch` the image is that of another machine, and `qemu` runs its programs."""
        if shutil.which("podman") is None:
            skip("podman is not here")
        image = MADE / name
        if not image.exists():
            skip(f"there is no {name} in {MADE}: scripts/image.sh makes it")
        self.base = ["podman", "--root", folder / "root", "--runroot", folder / "run", "--storage-driver", "vfs",
                     "--cgroup-manager", "cgroupfs", *RUNTIME]
        self.program = [*(["/qemu"] if qemu else []), "/usr/bin/cortex"]
        self.emulated = ["-v", f"{qemu}:/qemu:ro", "--entrypoint", json.dumps(self.program)] if qemu else []
        pull = ["pull", "--quiet", *(["--arch", arch] if arch else []), f"oci-archive:{image}"]
        done = run(*self.base, *pull)
        check(done.returncode == 0, done.stderr)
        self.image = done.stdout.decode().split()[-1]
        probe = self.run("version")
        if probe.returncode != 0 and re.search(rb"cgroup|setrlimit|namespace|mount", probe.stderr):
            skip(f"containers cannot be started here: {probe.stderr.decode(errors='replace')[-200:]}")
        check(probe.returncode == 0 and probe.stdout.startswith(b"cortex " + VERSION.encode()), probe.stdout, probe.stderr)

    def options(self, volume):
        return [*ALLOWED, "--network=host", "--read-only", "--read-only-tmpfs=false", "--cap-drop=all",
                "--security-opt=no-new-privileges", "-v", f"{volume}:/var/lib/cortex"]

    def run(self, *words, volume="v", more=(), code=None):
        done = run(*self.base, "run", "--rm", *self.options(volume), *self.emulated, *more, self.image, *words)
        check(code is None or done.returncode == code, words, done.returncode, done.stdout, done.stderr)
        return done

    def start(self, *words, volume="v", more=()):
        done = run(*self.base, "run", "-d", *self.options(volume), *self.emulated, *more, self.image, *words)
        check(done.returncode == 0, done.stderr)
        return done.stdout.decode().strip()

    def end(self):
        run(*self.base, "rm", "-f", "-t", "5", "--all")
        run(*self.base, "volume", "rm", "--all", "--force")
        if os.geteuid() != 0:  # files of the user's other numbers: only in their name space can they be removed
            run("podman", "unshare", "rm", "-rf", self.base[2], self.base[4])

    def inside(self, container, *words):
        return run(*self.base, "exec", container, *self.program, *words)

    def wait_ready(self, container):
        """The URL of the server in a container, when `cortex ready` says that it is."""
        for _ in range(200):
            done = self.inside(container, "ready", "--json")
            if done.returncode == 0:
                return json.loads(done.stdout)["url"]
            time.sleep(0.1)
        raise AssertionError(run(*self.base, "logs", container).stderr)
