#!/usr/bin/env python3
"""test_demo.py - `cortex demo` plays the whole story, leaves its folder, and touches nobody else's."""
import os
import re
import shutil

from kit import BIN, TESTS, Folder, sibling, check, main, run, skip, test
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
