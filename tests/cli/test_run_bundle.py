#!/usr/bin/env python3
"""Bundles from outside: verify, export, the views, locks, and clearing up after died processes."""
import hashlib
import json
import os
import shutil
import subprocess
import sys

from kit import BIN, Folder, check, main, run, test
from run_kit import GOLDEN, Repo, clean_env, golden

RUN = golden("success", "bundle/manifest.json")["run_id"]


def place(folder, scenario="success"):
    """A copy of a golden bundle in a folder named after its run."""
    run_id = golden(scenario, "bundle/manifest.json")["run_id"]
    path = folder / run_id
    shutil.copytree(GOLDEN / scenario / "bundle", path)
    return path


def cortex(*args, cwd=None, **env):
    return run(BIN, *args, env=clean_env(CORTEX_HOME="/nonexistent/home", **env), cwd=cwd)


def answer(done):
    return json.loads(done.stdout)


def tree(folder):
    return {str(p.relative_to(folder)): (p.lstat().st_mode, p.lstat().st_mtime_ns,
                                         p.read_bytes() if p.is_file() else None)
            for p in sorted(folder.rglob("*"))}


@test
def the_seal_decides():
    with Folder() as folder:
        path = place(folder)
        seal = GOLDEN / "success" / "seal.json"
        before = tree(path)
        first = cortex("run", "verify", path, "--seal", seal, "--json")
        check(first.returncode == 0 and answer(first)["verdict"] == "holds", first)
        check(cortex("run", "verify", path, "--seal", seal, "--json").stdout == first.stdout)
        loose = cortex("run", "verify", path, "--json")
        check(loose.returncode == 3 and answer(loose)["verdict"] == "indeterminate", loose)
        check(answer(loose)["reason"] == "unsealed", loose)
        other = cortex("run", "verify", path, "--seal", GOLDEN / "fix_loop" / "seal.json", "--json")
        check(other.returncode == 1 and answer(other)["codes"] == ["seal_mismatch"], other)
        check(tree(path) == before, "verifying wrote something")


@test
def a_bundle_that_cannot_be_checked_exits_with_3():
    with Folder() as folder:
        path = place(folder)
        for args in ([folder / "nothing"], [path, "--seal", folder / "nothing"], ["run_unknown"],
                     [path / "manifest.json"]):
            done = cortex("run", "verify", *args, "--json", cwd=folder)
            check(done.returncode == 3, args, done)
            check("error" in answer(done), args, done)
            check(done.stderr.startswith(b"cortex: "), args, done)
        check(cortex("run", "verify").returncode == 2)
        check(cortex("run", "verify", path, "--no-such").returncode == 2)


@test
def a_changed_bundle_is_broken_and_says_where():
    with Folder() as folder:
        path = place(folder)
        (path / "patch.diff").write_bytes((path / "patch.diff").read_bytes() + b"\n")
        done = cortex("run", "verify", path, "--json")
        check(done.returncode == 1, done)
        check("file_hash_mismatch" in answer(done)["codes"], done)
        check("patch.diff" in [d["path"] for d in answer(done)["details"]], done)
        text = cortex("run", "verify", path)
        check(text.returncode == 1 and b"patch.diff" in text.stdout, text)


@test
def an_archive_is_the_bundle():
    with Folder() as folder:
        path = place(folder)
        seal = GOLDEN / "success" / "seal.json"
        files = [folder / "a.tar.zst", folder / "b.tar.zst"]
        check(cortex("run", "export", path, "--output", files[0]).returncode == 0)
        for name in path.rglob("*"):  # neither times nor modes count
            os.utime(name, (1, 1))
        done = cortex("run", "export", path, "--output", files[1], "--json")
        check(done.returncode == 0 and answer(done)["files"] == 33, done)
        check(files[0].read_bytes() == files[1].read_bytes(), "two archives of one bundle differ")
        check(cortex("run", "verify", files[0], "--seal", seal).returncode == 0)
        check(cortex("run", "verify", files[0]).returncode == 3)
        damaged = bytearray(files[0].read_bytes())
        damaged[len(damaged) // 2] ^= 1
        files[1].write_bytes(damaged)
        check(cortex("run", "verify", files[1], "--seal", seal).returncode in (1, 3))
        check(cortex("run", "export", path).returncode == 2)
        if shutil.which("tar") and shutil.which("zstd"):
            out = folder / "out"
            out.mkdir()
            unpacked = run("tar", "--zstd", "-xf", files[0], "-C", out)
            check(unpacked.returncode == 0, unpacked)
            for name in path.rglob("*"):
                if name.is_file():
                    other = out / RUN / name.relative_to(path)
                    check(other.read_bytes() == name.read_bytes(), name)


@test
def folders_that_are_not_bundles_are_not_shown():
    with Folder() as folder:
        empty = folder / "empty"
        empty.mkdir()
        for words in (["show"], ["reports"], ["events"], ["diff"], ["export", "--output", folder / "x"]):
            for more in ([], ["--json"]):
                done = cortex("run", words[0], empty, *words[1:], *more)
                check(done.returncode == 3 and b"not the bundle of a run" in done.stderr, words, done)
        check(not (folder / "x").exists(), "an archive of nothing")
        # A damaged one is shown, and exported for others to look at.
        (empty / "contract.json").write_text("{}")
        check(cortex("run", "show", empty, "--json").returncode == 0)
        check(cortex("run", "export", empty, "--output", folder / "x").returncode == 0)


@test
def a_bundle_with_a_link_is_not_exported():
    with Folder() as folder:
        path = place(folder)
        (path / "artifacts" / "link").symlink_to("/etc/passwd")
        done = cortex("run", "export", path, "--output", folder / "x")
        check(done.returncode == 3 and not (folder / "x").exists(), done)
        check("bundle_special_file" in answer(cortex("run", "verify", path, "--json"))["codes"])


@test
def views_show_the_recorded_events_and_reports():
    with Folder() as folder:
        repo = Repo(folder, bare_home=True)
        for name in ("runs", "locks", "worktrees", "approvals", "active/runs"):
            (repo.root / name).mkdir(parents=True)
        for scenario in ("success", "out_of_scope"):
            place(repo.root / "runs", scenario)
        listed = answer(cortex("run", "list", "--json", cwd=repo.path))["items"]
        check(len(listed) == 2 and {i["status"] for i in listed} == {"SUCCESS", "FAILURE"}, listed)
        failed = answer(cortex("run", "list", "--status", "FAILURE", "--json", cwd=repo.path))
        check([i["task_id"] for i in failed["items"]] == ["golden_out_of_scope"], failed)
        shown = answer(cortex("run", "show", RUN, "--json", cwd=repo.path))
        check(shown["state"] == "S6" and shown["run_id"] == RUN, shown)
        lines = cortex("run", "events", RUN, "--json", cwd=repo.path).stdout
        check(lines == (GOLDEN / "success/bundle/events.jsonl").read_bytes())
        some = cortex("run", "events", RUN, "--from", "3", "-n", "2", "--json", cwd=repo.path)
        check(some.stdout.splitlines() == lines.splitlines()[2:4], some)
        patch = cortex("run", "diff", RUN, cwd=repo.path).stdout
        check(patch == (GOLDEN / "success/bundle/patch.diff").read_bytes())
        names = answer(cortex("run", "diff", RUN, "--name-only", "--json", cwd=repo.path))
        check(names["names"] == ["src/app/helper.c", "src/app/main.c"], names)
        digest = hashlib.sha256(patch).hexdigest()
        check(answer(cortex("run", "diff", RUN, "--json", cwd=repo.path))["sha256"] == digest)
        report = cortex("run", "reports", RUN, "test_report", cwd=repo.path).stdout
        check(report == (GOLDEN / "success/bundle/reports/test_report.json").read_bytes())
        check(cortex("run", "reports", RUN, "../contract", cwd=repo.path).returncode == 3)
        check(cortex("run", "show", "run_unknown", cwd=repo.path).returncode == 3)
        check(cortex("run", "list", cwd=repo.path, CORTEXPILOT_RUNTIME_ROOT="a/b").returncode == 2)


@test
def show_names_the_violations_of_a_refused_run():
    with Folder() as folder:
        shown = {s: cortex("run", "show", place(folder, s)).stdout.decode().splitlines()
                 for s in ("success", "out_of_scope", "tool_gate", "wide_path", "tests_fail")}
        told = {s: [line for line in lines if line.startswith("violation")]
                for s, lines in shown.items()}
        check(told == {
            "success": [],
            "out_of_scope": ["violation   D07 README.md: a path outside allowed_paths was changed"],
            "tool_gate": ["violation   C14 scripts/test.sh"],
            "wide_path": ["violation   wide_path src/"],
            "tests_fail": []}, told)
        lines = shown["out_of_scope"]
        where = lines.index("failed at  diff: outside_allowed_paths")
        check(lines[where + 1] == told["out_of_scope"][0], lines)


@test
def a_contract_named_like_a_command_is_given_with_its_folder():
    with Folder() as folder:
        (folder / "list").write_text("no contract")
        named = cortex("run", "./list", cwd=folder)
        check(named.returncode != 0 and b"run list" not in named.stderr, named)


# --- locks, and what died -------------------------------------------------------------------------

def owner_of(pid):
    """What a lock file says of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        start = int(file.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
        boot = file.read().strip()
    with open("/proc/sys/kernel/hostname", encoding="utf-8") as file:
        host = file.read().strip()
    return {"pid": pid, "start_time": start, "boot_id": boot, "host": host}


def lock(repo, path, owner, run_id="run_somebody", renewed="2026-01-01T00:00:00.000000Z"):
    key = hashlib.sha256(path.encode()).hexdigest()
    (repo.root / "locks" / f"{key}.lock").write_text(json.dumps({
        "run_id": run_id, "task_id": "task", "path": path, "acquired_at": renewed,
        "renewed_at": renewed, "ttl_sec": 900, **owner}))


def locked_repo(folder):
    repo = Repo(folder, bare_home=True)
    for name in ("runs", "locks", "worktrees", "approvals", "active/runs"):
        (repo.root / name).mkdir(parents=True)
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"],
                             stdin=subprocess.PIPE)
    dead = owner_of(child.pid)
    child.stdin.close()
    child.wait()
    return repo, dead


@test
def stale_locks_are_reported_and_released():
    with Folder() as folder:
        repo, dead = locked_repo(folder)
        lock(repo, "src/dead", dead)
        lock(repo, "src/alive", owner_of(os.getpid()))
        lock(repo, "src/elsewhere", {**dead, "host": "another-host"})
        items = {i["path"]: i for i in
                 answer(cortex("locks", "list", "--json", cwd=repo.path))["items"]}
        check([items[p]["reason"] for p in ("src/dead", "src/alive", "src/elsewhere")]
              == ["owner_dead", "overdue", "lease_expired"], items)
        check([items[p]["stale"] for p in ("src/dead", "src/alive", "src/elsewhere")]
              == [True, False, True], items)
        held = cortex("locks", "release", "src/alive", cwd=repo.path)
        check(held.returncode in (3, 4), held)  # nobody approved, and there is no such run
        done = answer(cortex("locks", "release", "src/dead/", "--json", cwd=repo.path))
        check([i["path"] for i in done["released"]] == ["src/dead"], done)
        done = answer(cortex("locks", "release", "--stale", "--json", cwd=repo.path))
        check([i["path"] for i in done["released"]] == ["src/elsewhere"], done)
        check(len(list((repo.root / "locks").glob("*.lock"))) == 1)
        check(cortex("locks", "release", "nowhere", cwd=repo.path).returncode == 3)
        check(cortex("locks", "release", "../x", cwd=repo.path).returncode == 2)
        check(cortex("locks", "release", cwd=repo.path).returncode == 2)


@test
def cleanup_changes_nothing_without_apply():
    with Folder() as folder:
        repo, dead = locked_repo(folder)
        run_id = "run_20260101_000000_00000000000000000000000000000000"
        bundle = repo.root / "runs" / run_id
        active = repo.root / "active" / "runs" / run_id
        bundle.mkdir()
        active.mkdir()
        (bundle / "events.jsonl").write_text("")
        (bundle / "events.hashchain.jsonl").write_text("")
        (active / "owner.json").write_text(json.dumps({**dead, "run_id": run_id, "task_id": "t"}))
        lock(repo, "src", dead, run_id)
        before = tree(repo.root)
        said = answer(cortex("run", "cleanup", "--json", cwd=repo.path))
        check({(i["kind"], i["done"]) for i in said["items"]}
              == {("run", False), ("lock", False)}, said)
        check(tree(repo.root) == before, "a dry cleanup changed something")
        home = folder / "home"
        check(run(BIN, "init", "--home", home, env=clean_env(), cwd=folder).returncode == 0)
        young = cortex("run", "cleanup", "--apply", "--older-than", "1h", "--home", home, "--json",
                       cwd=repo.path)
        check(not bundle.joinpath("manifest.json").exists(), young)
        done = cortex("run", "cleanup", "--apply", "--home", home, "--json", cwd=repo.path)
        check(done.returncode == 0 and all(i["done"] for i in answer(done)["items"]), done)
        manifest = json.loads((bundle / "manifest.json").read_text())
        check(manifest["status"] == "FAILURE" and manifest["failure_reason"] == "crashed", manifest)
        check(list((repo.root / "locks").glob("*.lock")) == [])
        verdict = cortex("run", "verify", run_id, "--home", home, "--json", cwd=repo.path)
        check(verdict.returncode == 0, verdict)
        again = cortex("run", "cleanup", "--apply", "--home", home, "--json", cwd=repo.path)
        check(answer(again)["items"] == [], again)
        check(cortex("run", "cleanup", "--older-than", "soon", cwd=repo.path).returncode == 2)


@test
def cleanup_does_not_touch_live_runs():
    with Folder() as folder:
        repo, _ = locked_repo(folder)
        run_id = "run_20260101_000000_00000000000000000000000000000001"
        (repo.root / "runs" / run_id).mkdir()
        (repo.root / "runs" / run_id / "events.jsonl").write_text("")
        active = repo.root / "active" / "runs" / run_id
        active.mkdir()
        (active / "owner.json").write_text(json.dumps(
            {**owner_of(os.getpid()), "run_id": run_id, "task_id": "t"}))
        lock(repo, "src", owner_of(os.getpid()), run_id)
        said = answer(cortex("run", "cleanup", "--json", cwd=repo.path))
        check(said["items"] == [], said)


@test
def cleanup_ends_branches_without_a_work_tree():
    """A run that died between its work tree and its branch, and one half way through its git directory."""
    with Folder() as folder:
        repo, _ = locked_repo(folder)
        head = repo.head()
        dead, living = ("run_20260101_000000_" + digit * 32 for digit in "23")
        active = repo.root / "active" / "runs" / living
        active.mkdir(parents=True)
        (active / "owner.json").write_text(json.dumps(
            {**owner_of(os.getpid()), "run_id": living, "task_id": "t"}))
        (repo.root / "runs" / living).mkdir(parents=True)
        for name in (f"cortex/{dead}/t", f"cortex/{living}/t", "cortex/mine", "cortex/feature/mine"):
            repo.git("branch", name, head)
        half = repo.path / ".git/worktrees" / ("cortex-" + "0" * 32)
        half.mkdir(parents=True)
        (half / "HEAD").write_text(head + "\n")

        def strays(*words):
            done = cortex("run", "cleanup", "--json", *words, cwd=repo.path)
            check(done.returncode == 0, done.stdout, done.stderr)
            return [(item["kind"], item["name"], item["done"]) for item in answer(done)["items"]
                    if item["kind"] in ("branch", "worktree")]
        found = [("worktree", "worktrees/" + half.name), ("branch", f"refs/heads/cortex/{dead}/t")]
        check(strays() == [(*item, False) for item in found], strays())
        check(half.exists() and repo.head(f"cortex/{dead}/t") == head, "a dry cleanup changed something")
        said = strays("--apply")
        check(said == [(*item, True) for item in found], said)
        check(not half.exists(), "the git directory is there")
        names = repo.git("for-each-ref", "--format=%(refname)").split()
        check(f"refs/heads/cortex/{dead}/t" not in names, names)
        for name in (f"refs/heads/cortex/{living}/t", "refs/heads/cortex/mine", "refs/heads/cortex/feature/mine",
                     f"refs/cortex/runs/{dead}/t"):
            check(name in names, name, names)
        check(strays() == [], strays())


main()
