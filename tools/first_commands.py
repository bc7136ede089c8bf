#!/usr/bin/env python3
"""first_commands.py FOLDER [--times N] [--only WORD] [--user-lands DIR] - a newcomer's first command on each artefact
of a release, timed.

FOLDER is what scripts/release.sh made.  Each artefact is installed into an empty place as docs/installing.md says,
and opens docs/start/session.jsonl: until the page answers, or for a verifier until its verdict.  A table in Markdown
is printed: the size, the start time of the program (smallest, median, largest of N, default 20), and the seconds
from nothing to the first answer.  What this machine cannot run has "not tried" and why.  Programs for another
processor run under qemu's user mode.  With --user-lands also what needs another system than this one is tried, in
systems of Debian 12 that are unpacked in DIR and kept (root, mmdebstrap): the Debian packages, and install.sh, npm and
pip on the other processor.  Unpacking is not timed.  Exits 1 when an artefact gave no or a wrong answer.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
SESSION = ROOT / "docs/start/session.jsonl"
EVIDENCE = ROOT / "tests/vectors/evidence/memory.cxe"
VERSION = re.search(r"project\(cortex VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
HERE = platform.machine()
PATIENCE_S = 300
EMULATED_S = 1800
UNPACKING_S = 3600


class NotTried(Exception):
    """Why this machine cannot run it."""


def need(program):
    found = shutil.which(program)
    if found is None:
        raise NotTried(f"no {program}")
    return found


def run(*words, patience_s=PATIENCE_S, **more):
    """What it prints.  With it goes all that it started, also when the time is up."""
    with subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True, **more) as started:
        try:
            said, errors = started.communicate(timeout=patience_s)
        except BaseException:
            os.killpg(started.pid, signal.SIGKILL)
            raise
    if started.returncode != 0:
        raise RuntimeError(f"{words[0]} ended with {started.returncode}: {errors.decode(errors='replace')[-400:]}")
    return said.decode(errors="replace")


def clean(home):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CORTEX", "XDG_", "npm_"))}
    return {**env, "HOME": str(home), "LC_ALL": "C.UTF-8"}


def opens_the_session(home, *program, session=SESSION):
    """`view` of a session of a coding agent, until its page answers."""
    with subprocess.Popen([str(word) for word in program] + ["view", str(session), "--json"], env=clean(home),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as started:
        late = threading.Timer(PATIENCE_S, os.killpg, (started.pid, signal.SIGKILL))
        late.start()
        try:
            line = started.stdout.readline()
            url = json.loads(line or b"{}").get("url")
            if url is None:
                raise RuntimeError(f"{program[0]} gave no address: {line!r} {started.stderr.read()[-300:]!r}")
            with urllib.request.urlopen(url.split("#")[0], timeout=60) as answer:
                if b"<html" not in answer.read().lower():
                    raise RuntimeError("what was served is no page")
        finally:
            late.cancel()
            os.killpg(started.pid, signal.SIGINT)
            started.wait(60)


def holds(home, *program):
    if "holds" not in run(*program, EVIDENCE, "--self-consistent", env=clean(home)):
        raise RuntimeError(f"{program[0]} does not say that the file holds")


def emulated(machine):
    return [] if machine == HERE else [need(f"qemu-{machine}-static")]


# --- systems of Debian 12 -----------------------------------------------------------------------------------

# The shell stays as the first process: the kernel lets no signal of its own end that one, and a program that kills
# itself after a fault would wait forever.
ENTER = ('mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" && cd "$1" && '
         'env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$2" LC_ALL=C.UTF-8 chroot "$1" "${@:3}"; exit "$?"')
ARM_PACKAGES = ("base-files,base-passwd,libc-bin,bash,coreutils,dash,sed,grep,mawk,findutils,tar,gzip,openssh-client,"
                "nodejs,npm,python3,python3-pip,python3-venv,ca-certificates")


class System:
    """An unpacked system, in which programs are started as in a machine of its own."""

    lands = None  # where systems are unpacked; without it none is
    unpacking_s = 0.0  # the last one's, which is not a newcomer's time

    def __init__(self, machine, home):
        System.unpacking_s = 0.0
        if System.lands is None:
            raise NotTried("needs a system of its own: --user-lands")
        if os.geteuid() != 0:
            raise NotTried("needs root")
        began = time.monotonic()
        self.root = home / "root"
        self.emulator = [] if machine == HERE else [ROOT / "scripts/emulated.sh", machine]
        kept = System.lands / machine
        if not (kept / ".complete").exists():
            self.unpack(kept, machine)
        run("cp", "-a", kept, self.root)
        (self.root / "given").mkdir()
        self.give(SESSION)
        System.unpacking_s = time.monotonic() - began

    @staticmethod
    def unpack(kept, machine):
        """What is for another processor is not configured; then the one place of programs is missing too."""
        shutil.rmtree(kept, ignore_errors=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        sources = next(path for path in ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
                       if os.path.exists(path) and os.path.getsize(path))
        if machine == HERE:
            run(need("mmdebstrap"), "--quiet", "--variant=minbase", "bookworm", kept, sources, patience_s=UNPACKING_S)
        else:
            run(need("mmdebstrap"), "--quiet", "--variant=extract", "--arch=arm64", f"--include={ARM_PACKAGES}", "bookworm",
                kept, sources, patience_s=UNPACKING_S)
            for name in ("passwd", "group"):
                shutil.copy(kept / f"usr/share/base-passwd/{name}.master", kept / "etc" / name)
        for folder in ("bin", "sbin", "lib"):
            if not (kept / folder).is_symlink():
                run("cp", "-a", f"{kept / folder}/.", kept / "usr" / folder)
                shutil.rmtree(kept / folder)
                (kept / folder).symlink_to(f"usr/{folder}")
        shutil.copy("/etc/resolv.conf", kept / "etc/resolv.conf")
        (kept / ".complete").touch()

    def give(self, path):
        """PATH as it is called inside."""
        shutil.copy(path, self.root / "given" / path.name)
        return f"/given/{path.name}"

    def words(self, *command):
        return [*self.emulator, "unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", ENTER, "sh", self.root,
                "/root", *command]

    def run(self, *command):
        return run(*self.words(*command), patience_s=EMULATED_S if self.emulator else PATIENCE_S)

    def opens_the_session(self, home, *program):
        opens_the_session(home, *self.words(*program), session=f"/given/{SESSION.name}")


# --- artefacts: each gives the start command, and does what a newcomer does ---------------------------------


def one_file(made, machine, home):
    path = made / f"cortex-{VERSION}-linux-{machine}"
    program = [*emulated(machine), path]
    opens_the_session(home, *program)
    return [path], [*program, "version"]


def verifier(made, machine, home):
    path = made / f"cortex-verify-{VERSION}-linux-{machine}"
    program = [*emulated(machine), path]
    holds(home, *program)
    return [path], [*program, "--version"]


def installer(made, machine, home):
    if machine != HERE:
        return foreign_installer(made, machine, home)
    run("sh", made / "install.sh", "--from", made, "--prefix", home / "local", "--yes", env=clean(home))
    opens_the_session(home, home / "local/bin/cortex")
    return [made / "install.sh"], [home / "local/bin/cortex", "version"]


def npm(made, machine, home):
    files = [made / f"cortex-cli-linux-{ {'x86_64': 'x64', 'aarch64': 'arm64'}[machine] }-{VERSION}.tgz",
             made / f"cortex-cli-{VERSION}.tgz"]
    if machine != HERE:
        return foreign_npm(files, machine, home)
    run(need("npm"), "install", "--offline", "--no-audit", "--no-fund", "--prefix", home, *files, env=clean(home))
    program = [need("npx"), "--prefix", home, "cortex"]
    opens_the_session(home, *program)
    return files, [home / "node_modules/.bin/cortex", "version"]


def wheel(made, machine, home):
    path = next(made.glob(f"cortex_recorder-{VERSION}-*_{machine}.whl"))
    if machine != HERE:
        return foreign_wheel(path, machine, home)
    run(sys.executable, "-m", "venv", home / "venv")
    run(home / "venv/bin/pip", "install", "--no-index", "--quiet", path, env=clean(home))
    opens_the_session(home, home / "venv/bin/cortex")
    return [path], [home / "venv/bin/cortex", "version"]


def foreign_installer(made, machine, home):
    system = System(machine, home)
    for name in ("install.sh", "SHA256SUMS", "SHA256SUMS.sig", f"cortex-{VERSION}-linux-{machine}",
                 f"cortex-verify-{VERSION}-linux-{machine}"):
        system.give(made / name)
    system.run("sh", "/given/install.sh", "--from", "/given", "--prefix", "/root/local", "--yes")
    system.opens_the_session(home, "/root/local/bin/cortex")
    return [made / "install.sh"], system.words("/root/local/bin/cortex", "version")


def foreign_npm(files, machine, home):
    system = System(machine, home)
    system.run("npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", "/root",
               *(system.give(path) for path in files))
    system.opens_the_session(home, "npx", "--prefix", "/root", "cortex")
    return files, system.words("/root/node_modules/.bin/cortex", "version")


def foreign_wheel(path, machine, home):
    system = System(machine, home)
    system.run("python3", "-m", "venv", "/root/venv")
    system.run("/root/venv/bin/pip", "install", "--no-index", "--quiet", system.give(path))
    system.opens_the_session(home, "/root/venv/bin/cortex")
    return [path], system.words("/root/venv/bin/cortex", "version")


def debian(made, machine, home):
    """`apt install`, with what is recommended, from the machine's own sources."""
    packages = [path for name in ("cortex", "cortex-verify") for path in made.glob(f"{name}_{VERSION}*_amd64.deb")]
    if len(packages) != 2:
        raise NotTried("there are no packages of Debian")
    system = System(machine, home)
    began = time.monotonic()
    system.run("apt-get", "update", "-qq")
    System.unpacking_s += time.monotonic() - began
    system.run("apt-get", "install", "-y", "-qq", *(system.give(path) for path in packages))
    system.opens_the_session(home, "cortex")
    return packages, system.words("cortex", "version")


def wasm(made, _, home):
    path = made / f"cortex-verify-{VERSION}.wasm"
    shutil.copy(EVIDENCE, home / "file.cxe")
    words = [need("node"), "--no-warnings", ROOT / "tests/support/wasi_run.mjs", path, home]
    done = subprocess.run([str(word) for word in words], input=b'["file.cxe","--self-consistent"]\n',
                          capture_output=True, timeout=PATIENCE_S, check=False)
    if json.loads(done.stdout)["exit"] != 0:
        raise RuntimeError(f"{path.name}: {done.stdout[:300]!r}")
    return [path], words


def page(made, _, home):
    path = made / f"cortex-verifier-{VERSION}.html"
    words = [need("chromium"), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}/profile",
             "--dump-dom", f"file://{path.resolve()}"]
    if "<main" not in run(*words, env=clean(home)):
        raise RuntimeError("the page is empty")
    return [path], words


def image(made, machine, home, name="image"):
    """Podman with a storage of its own; the answer is the program's version."""
    path = made / f"cortex-{VERSION}-{name}.oci.tar"
    if not path.exists():
        raise NotTried(f"there is no {path.name}")
    podman = [need("podman"), "--root", home / "root", "--runroot", home / "run", "--storage-driver", "vfs",
              "--cgroup-manager", "cgroupfs", *(["--runtime", "runc"] if shutil.which("runc") else [])]
    qemu = emulated(machine)
    pulled = run(*podman, "pull", "--quiet", "--arch", {"x86_64": "amd64", "aarch64": "arm64"}[machine],
                 f"oci-archive:{path}").split()[-1]
    through = ["-v", f"{qemu[0]}:/qemu:ro", "--entrypoint", '["/qemu","/usr/bin/cortex"]'] if qemu else []
    start = [*podman, "run", "--rm", "--network=host", "--read-only", "--read-only-tmpfs=false", "--cap-drop=all",
             "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1000:1000", *through, pulled]
    if f"cortex {VERSION}" not in run(*start, "version"):
        raise RuntimeError(f"{path.name} says another version")
    return [path], [*start, "version"]


def larger_image(made, machine, home):
    return image(made, machine, home, "image-full")


ARTEFACTS = [("`cortex`, one file", one_file, ("x86_64", "aarch64")),
             ("`cortex-verify`, one file", verifier, ("x86_64", "aarch64")),
             ("`install.sh`", installer, ("x86_64", "aarch64")),
             ("npm packages", npm, ("x86_64", "aarch64")),
             ("wheel", wheel, ("x86_64", "aarch64")),
             ("Debian packages", debian, ("x86_64",)),
             ("image (both architectures)", image, ("x86_64", "aarch64")),
             ("larger image (both architectures)", larger_image, ("x86_64", "aarch64")),
             ("`cortex-verify` for WASI", wasm, ("node",)),
             ("offline verifier", page, ("Chromium",))]


def start_times(words, times):
    taken = []
    for _ in range(times):
        began = time.monotonic()
        subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                       timeout=PATIENCE_S)
        taken.append(time.monotonic() - began)
    return " / ".join(shown(value) for value in (min(taken), statistics.median(taken), max(taken)))


def shown(seconds):
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def measure(made, artefact, machine, times):
    """(size, start times, first answer), and whether it went well."""
    with tempfile.TemporaryDirectory(prefix="cortex-first-") as home:
        System.unpacking_s = 0.0
        began = time.monotonic()
        try:
            files, start = artefact(made, machine, pathlib.Path(home))
        except NotTried as why:
            return ("", "", f"not tried: {why}"), True
        except (OSError, ValueError, RuntimeError, StopIteration, subprocess.SubprocessError) as why:
            return ("", "", f"**failed**: {why}"), False
        first = shown(time.monotonic() - began - System.unpacking_s)
        size = sum(path.stat().st_size for path in files)
        size = f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
        return (size, start_times(start, times), first), True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(" - ")[1].split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--user-lands", type=pathlib.Path)
    given = parser.parse_args()
    if given.user_lands is not None:
        System.lands = given.user_lands.resolve()
    if given.times < 1 or not given.folder.is_dir():
        parser.error("expected a folder that scripts/release.sh made, and at least one time")
    well = True
    print("| artefact | platform | size | start: min / median / max | first answer, from nothing |\n|---|---|---|---|---|")
    for name, artefact, machines in ARTEFACTS:
        for machine in machines if given.only in name else ():
            cells, good = measure(given.folder.resolve(), artefact, machine, given.times)
            where = machine + (", qemu" if machine == "aarch64" and machine != HERE else "")
            print(f"| {name} | {where} | {' | '.join(cells)} |", flush=True)
            well &= good
    sys.exit(0 if well else 1)


main()
