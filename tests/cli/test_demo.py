#!/usr/bin/env python3
"""test_demo.py - `cortex demo` plays the whole story, leaves its folder, and touches nobody else's."""
import ctypes
import errno
import os
import re
import shutil
import struct
import subprocess

from kit import BIN, TESTS, TIMEOUT_S, Folder, sibling, check, main, run, skip, test
from run_kit import clean_env


def demo(folder, *args, code=None, env=None):
    done = run(BIN, "demo", "--color", "never", *args, cwd=folder,
               env=clean_env(TMPDIR=str(folder), **(env or {})))
    check(code is None or done.returncode == code, done.returncode, done.stdout[-2000:], done.stderr)
    return done


@test
def the_demo_prints_the_expected_text_and_keeps_a_usable_folder():
    with Folder() as folder:
        done = demo(folder, "--dir", "play")
        text = done.stdout.decode()
        check(done.returncode in (0, 3), done.returncode, text[-3000:], done.stderr)
        check("UNEXPECTED" not in text, text[-3000:])
        play = folder / "play"
        for word in ("stored", "holds", "broken", "signature_invalid", "PageMismatch",
                     "TableMismatch", "LogDamaged", "RootMismatch"):
            check(word in text, word)
        for name in ("home", "shop", "agents/planner.key", "evidence.cxe", "fact.proof", "demo.log",
                     "auditor.pub", "tampered/home"):
            check((play / name).exists(), name)
        env = clean_env(CORTEX_HOME=str(play / "home"))
        key = (play / "auditor.pub").read_text()
        again = run(sibling("cortex-verify"), "--key", key, "--require", "signed",
                    play / "evidence.cxe", env=env)
        check(again.returncode == 0, again.stdout)
        if done.returncode == 3:
            check("no sandbox" in text and "bubblewrap" in text, text)
            return
        for word in ("MERGE_APPLIED", "decided_by: trace", "Ticket 4821", "file_hash_mismatch"):
            check(word in text, word)
        run_id = re.search(r"SUCCESS  (run_\w+)", text).group(1)
        for args in (["why", "src/refund.py:2"], ["run", "verify", run_id], ["show", run_id]):
            again = run(BIN, *args, cwd=play / "shop", env=env)
            check(again.returncode == 0, args, again.stdout, again.stderr)
        # What lies in a folder is never touched.
        before = sorted(os.listdir(play))
        refused = demo(folder, "--dir", "play", code=2)
        check(b"not empty" in refused.stderr, refused.stderr)
        check(sorted(os.listdir(play)) == before)


@test
def without_a_sandbox_the_demo_runs_and_reports_the_missing_part():
    bwrap = shutil.which("bwrap")
    inside = [bwrap, "--dev-bind", "/", "/", "--unshare-user", "--disable-userns"]
    if bwrap is None or run(*inside, "true").returncode != 0:
        skip("nothing here can take the user namespaces away")
    with Folder() as folder:
        done = run(*inside, BIN, "demo", "--dir", "play", cwd=folder, env=clean_env())
        text = done.stdout.decode()
        check(done.returncode == 3, done.returncode, text[-2000:], done.stderr)
        check("UNEXPECTED" not in text and "apt install bubblewrap" in text, text[-2000:])
        check("PageMismatch" in text and "Ticket 4821" in text, text[-2000:])


def forbid_filters():
    """As on a kernel without CONFIG_SECCOMP_FILTER: prctl(PR_SET_SECCOMP, ..) fails with EINVAL."""
    number = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
    code = b"".join(struct.pack("=HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 3, number),  # the call's number
        (0x20, 0, 0, 16), (0x15, 0, 1, 22),     # its first argument: PR_SET_SECCOMP
        (0x06, 0, 0, 0x00050000 | errno.EINVAL), (0x06, 0, 0, 0x7FFF0000)))
    held = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(held)))
    call = ctypes.CDLL(None, use_errno=True).prctl
    if call(38, 1, 0, 0, 0) != 0 or call(22, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter can be set here")


@test
def a_kernel_without_filters_gives_no_sandbox():
    if os.uname().machine not in ("x86_64", "aarch64"):
        skip("the number of prctl is not known here")
    with Folder() as folder:
        try:
            done = subprocess.run([BIN, "demo", "--dir", "play"], cwd=folder, env=clean_env(), capture_output=True,
                                  preexec_fn=forbid_filters, timeout=TIMEOUT_S)
        except subprocess.SubprocessError:
            skip("this kernel filters no system calls")
        text = done.stdout.decode()
        check(done.returncode == 3, done.returncode, text[-2000:], done.stderr)
        check("UNEXPECTED" not in text and "this machine has no sandbox" in text, text[-2000:])
        check((folder / "play/evidence.cxe").exists(), text[-2000:])


@test
def a_folder_that_cannot_be_made_is_refused():
    with Folder() as folder:
        (folder / "file").write_text("x")
        check(demo(folder, "--dir", "file").returncode in (2, 3))
        check((folder / "file").read_text() == "x")
        check(demo(folder, "--dir", "file/below").returncode in (2, 3))


@test
def the_forensic_part_leaves_nothing():
    with Folder() as folder:
        demo(folder, "--forensic", code=0)
        check(os.listdir(folder) == [])


@test
def the_program_alone_has_what_the_demo_shows():
    """As npm, pip and install.sh put it somewhere: without any file beside it."""
    with Folder() as folder:
        (folder / "alone").mkdir()
        shutil.copy(BIN, folder / "alone/cortex")
        done = run(folder / "alone/cortex", "demo", "--forensic", cwd=folder, env=clean_env())
        check(done.returncode == 0 and b"All of it was as expected" in done.stdout, done)
        check(done.stdout == run(BIN, "demo", "--forensic", cwd=folder, env=clean_env()).stdout)


main()
