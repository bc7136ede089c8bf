#!/usr/bin/env python3
"""Finished runs told again, compared, done again, and shown as lattices.

Closes with `N passed, N failed, N skipped`.
"""
import hashlib
import json
import pathlib
import shutil

from kit import Folder, check, main, skip, test
from run_kit import GOLDEN, SCENARIOS, Repo, golden, sha256


def place(repo, scenario, name=None):
    """A copy of a golden bundle; its folder is named after the run."""
    run_id = golden(scenario, "bundle/manifest.json")["run_id"]
    target = repo.base / (name or "bundles") / run_id
    shutil.copytree(GOLDEN / scenario / "bundle", target)
    return target


def seal(scenario):
    return str(GOLDEN / scenario / "seal.json")


def edit(bundle, name, change):
    """Edits a JSON file of a bundle, with its mirrors."""
    value = json.loads((bundle / name).read_text())
    task = json.loads((bundle / "manifest.json").read_text())["task_id"]
    change(value)
    mirrors = {"reports/test_report.json": [f"ci/{task}/report.json"],
               "reports/task_result.json": [f"results/{task}/result.json"]}
    for path in [name, *mirrors.get(name, [])]:
        (bundle / path).write_text(json.dumps(value, indent=2) + "\n")


def rehash(bundle):
    """Makes the manifest agree with the files, as somebody would who rewrites a bundle."""
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    files = sorted(str(p.relative_to(bundle)) for p in bundle.rglob("*")
                   if p.is_file() and p != path)
    facts = {name: (sha256((bundle / name).read_bytes()), (bundle / name).stat().st_size)
             for name in files}
    manifest["evidence_hashes"] = {name: facts[name][0] for name in files}
    refs = manifest["artifacts"] + [ref for task in manifest["tasks"] for ref in task.values()
                                    if isinstance(ref, dict)]
    for ref in refs:
        ref["sha256"], ref["size_bytes"] = facts[ref["path"]]
    manifest["integrity"]["contract_sha256"] = facts["contract.json"][0]
    path.write_text(json.dumps(manifest, indent=2) + "\n")


def replay(repo, bundle, *more):
    done = repo.cortex("run", "replay", bundle, "--json", *more)
    return done, json.loads(done.stdout) if done.stdout.startswith(b"{") else None


def contents(folder):
    return {str(p.relative_to(folder)): (p.read_bytes() if p.is_file() else None, p.stat().st_mode)
            for p in sorted(pathlib.Path(folder).rglob("*"))}


# --- rehydrate ----------------------------------------------------------------------------------------

@test
def golden_runs_replay_as_recorded():
    with Folder() as folder:
        repo = Repo(folder)
        for scenario in SCENARIOS:
            bundle = place(repo, scenario)
            before = contents(bundle)
            done, told = replay(repo, bundle, "--seal", seal(scenario))
            check(done.returncode == 0, scenario, done.returncode, done.stderr)
            check(told["status"] == "ok" and told["verdict"] == "holds", scenario, told)
            check(told["mismatches"] == [] and told["codes"] == [], scenario, told)
            check(told["first_divergence"] is None and told["baseline_run_id"] is None, told)
            expected = golden(scenario, "expected.json")
            types = [item["event_type"] for item in told["timeline"]]
            check(types == expected["event_types"], scenario, types)
            check(told["events_count"] == len(types), told["events_count"])
            gates = golden(scenario, "bundle/reports/task_result.json")["gates"]
            for name, gate in gates.items():
                check(told["gates"][name]["passed"] == gate["passed"], scenario, name)
            check(all(report["ok"] for report in told["reports"].values()), told["reports"])
            check(len(told["reports"]) == 6, told["reports"])
            again, _ = replay(repo, bundle, "--seal", seal(scenario))
            check(again.stdout == done.stdout, scenario, "twice is not the same")
            check(contents(bundle) == before, scenario, "the bundle was changed")


@test
def replay_of_an_unsealed_run_exits_with_3():
    with Folder() as folder:
        repo = Repo(folder)
        done, told = replay(repo, place(repo, "success"))
        check(done.returncode == 3, done.returncode)
        check(told["verdict"] == "indeterminate" and told["status"] == "ok", told)


@test
def a_changed_bundle_fails():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        path = bundle / "reports/task_result.json"
        path.write_text(path.read_text().replace("helper added", "better"))
        done, told = replay(repo, bundle, "--seal", seal("success"))
        check(done.returncode == 1 and told["status"] == "fail", done.returncode, told)
        check("reports/task_result.json" in told["evidence_hashes"]["mismatched"], told)
        (bundle / "artifacts" / "new").write_text("x")
        (bundle / "reports/work_report.json").unlink()
        done, told = replay(repo, bundle, "--seal", seal("success"))
        check(told["evidence_hashes"]["extra"] == ["artifacts/new"], told["evidence_hashes"])
        check(told["evidence_hashes"]["missing"] == ["reports/work_report.json"], told)
        check(told["reports"]["reports/work_report.json"]["ok"] is False, told["reports"])


@test
def reports_must_agree_with_the_events():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "out_of_scope")

        def pass_all(value):
            value["gates"]["diff_gate"] = {"passed": True, "violations": []}
        edit(bundle, "reports/task_result.json", pass_all)
        rehash(bundle)
        done, told = replay(repo, bundle)
        check(done.returncode == 1 and told["status"] == "fail", done.returncode, told)
        check({"field": "reports/task_result.json/gates/diff_gate/passed", "expected": "not passed",
               "actual": "passed"} in told["mismatches"], told["mismatches"])


@test
def unreadable_events_are_a_finding():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        (bundle / "events.jsonl").write_text("nothing\n")
        done, told = replay(repo, bundle)
        check(done.returncode == 1 and told["status"] == "fail", done.returncode, told)
        (bundle / "manifest.json").unlink()
        done, told = replay(repo, bundle)
        check(done.returncode == 1 and "manifest_missing" in told["codes"], told)


@test
def missing_runs_are_reported():
    with Folder() as folder:
        repo = Repo(folder)
        for name in ("run_20260101_000000_00000000000000000000000000000000", "nothing/here"):
            done = repo.cortex("run", "replay", name, "--json")
            check(done.returncode in (2, 3) and done.stderr, name, done.returncode)
        check(repo.cortex("run", "replay").returncode == 2, "no operand")
        bundle = place(repo, "success")
        check(repo.cortex("run", "replay", bundle, "--reexec", "--against",
                          bundle).returncode == 2, "both at once")


# --- comparing ----------------------------------------------------------------------------------------

@test
def two_runs_are_compared():
    with Folder() as folder:
        repo = Repo(folder)
        bundle, other = place(repo, "success"), place(repo, "success", "other")
        done, told = replay(repo, bundle, "--seal", seal("success"), "--against", other)
        check(done.returncode == 0 and told["first_divergence"] is None, told["first_divergence"])
        check(told["params_equal"] is True, told["params_equal"])
        # Ids, times and commits of another run are no difference.
        run_id = told["run_id"]
        text = (other / "events.jsonl").read_text()
        text = text.replace(run_id, "run_20270101_000000_" + "0" * 32)
        text = text.replace("2026-01-01", "2027-01-01")
        text = text.replace("29c8763eed1dfc639a893e6fbf3c913c12081689", "0" * 40)
        (other / "events.jsonl").write_text(text)
        done, told = replay(repo, bundle, "--seal", seal("success"), "--against", other)
        check(done.returncode == 0 and told["first_divergence"] is None, told["first_divergence"])
        # A verdict is.
        lines = text.splitlines(keepends=True)
        lines[21] = lines[21].replace('"passed":true', '"passed":false')
        (other / "events.jsonl").write_text("".join(lines))
        done, told = replay(repo, bundle, "--seal", seal("success"), "--baseline", other)
        check(done.returncode == 5 and told["status"] == "fail", done.returncode)
        check(told["first_divergence"] == {"index": 22, "field": "payload/passed",
                                           "expected": False, "actual": True},
              told["first_divergence"])


@test
def a_run_that_ends_early_differs_where_it_ends():
    with Folder() as folder:
        repo = Repo(folder)
        bundle, other = place(repo, "success"), place(repo, "success", "other")
        lines = (other / "events.jsonl").read_text().splitlines(keepends=True)
        (other / "events.jsonl").write_text("".join(lines[:10]))
        done, told = replay(repo, bundle, "--against", other)
        check(done.returncode == 5, done.returncode)
        check(told["first_divergence"] == {"index": 11, "field": "event_type", "expected": None,
                                           "actual": "MCP_CONCURRENCY_CHECK"},
              told["first_divergence"])


@test
def patches_are_compared_too():
    with Folder() as folder:
        repo = Repo(folder)
        bundle, other = place(repo, "success"), place(repo, "success", "other")
        with (other / "patch.diff").open("a") as out:
            out.write("x\n")
        done, told = replay(repo, bundle, "--against", other)
        check(done.returncode == 5, done.returncode)
        check(told["first_divergence"]["field"] == "patch.diff", told["first_divergence"])
        check(told["first_divergence"]["index"] is None, told["first_divergence"])


# --- --output --------------------------------------------------------------------------------------------

@test
def nothing_is_written_into_a_bundle():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        before = contents(bundle)
        link = repo.base / "link"
        link.symlink_to(bundle / "reports")
        for out in (bundle / "report.json", bundle / "reports/new.json", link / "new.json",
                    bundle / "manifest.json"):
            done = repo.cortex("run", "replay", bundle, "--output", out, "--json")
            check(done.returncode == 2, out, done.returncode, done.stderr)
            check(b"inside a bundle" in done.stderr, done.stderr)
        check(contents(bundle) == before, "the bundle was changed")
        out = repo.base / "report.json"
        done, told = replay(repo, bundle, "--output", out)
        check(json.loads(out.read_text()) == told, "another document")


# --- doing it again -----------------------------------------------------------------------------------

def reexec(repo, bundle, *more):
    done, report = replay(repo, bundle, "--reexec", *more)
    if report is not None and any("no sandbox" in error for error in report["errors"]):
        check(done.returncode == 3, done.returncode)
        skip("no sandbox on this machine")
    return done, report


def keys(report):
    return {one["key"] for one in report["hard_diffs"]}


@test
def golden_runs_reexecute_as_recorded():
    with Folder() as folder:
        repo = Repo(folder)
        for scenario in SCENARIOS:
            bundle = place(repo, scenario)
            before = contents(bundle)
            done, report = reexec(repo, bundle, "--script", GOLDEN / scenario / "script.json")
            check(done.returncode == 0, scenario, done.returncode, report)
            check(report["status"] == "pass" and report["hard_diffs"] == [], scenario, report)
            check(report["errors"] == [], scenario, report)
            check(contents(bundle) == before, scenario, "the bundle was changed")
        check(repo.git("status", "--porcelain") == "", repo.git("status", "--porcelain"))
        check(repo.git("worktree", "list").count("\n") == 0, repo.git("worktree", "list"))
        check(repo.git("for-each-ref", "--format=%(refname)") == "refs/heads/main", "references")
        check(list((repo.root / "worktrees").iterdir()) == [], "work trees are left")


@test
def a_patch_that_does_not_apply_is_a_hard_difference():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        patch = (bundle / "patch.diff").read_text().replace(" \treturn 0;", " \treturn 9;")
        (bundle / "patch.diff").write_text(patch)
        done, report = reexec(repo, bundle)
        check(done.returncode == 5 and report["status"] == "fail", done.returncode, report)
        check("patch.diff/apply" in keys(report), report)


@test
def a_run_with_changes_never_passes_without_its_patch():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        (bundle / "patch.diff").write_text("")
        done, report = reexec(repo, bundle)
        check(done.returncode == 5 and report["hard_equal_pass"] is False, done.returncode, report)
        check("diff_name_only.txt" in keys(report) and "candidate_tree" in keys(report), report)


@test
def a_changed_patch_gives_another_tree():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        patch = (bundle / "patch.diff").read_text().replace("+\treturn 2;", "+\treturn 3;")
        (bundle / "patch.diff").write_text(patch)
        done, report = reexec(repo, bundle)
        check(done.returncode == 5, done.returncode, report)
        check({"patch.diff", "candidate_tree"} <= keys(report), report)  # its blob ids are wrong


@test
def names_of_changed_files_are_derived_again():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        (bundle / "diff_name_only.txt").write_text("src/app/main.c\n")
        done, report = reexec(repo, bundle)
        check(done.returncode == 5 and keys(report) == {"diff_name_only.txt"}, report)


@test
def exit_classes_and_status_of_tests_are_hard():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")

        def fails(value):
            value["status"] = "FAIL"
            value["commands"][0]["exit_code"] = 1
        edit(bundle, "reports/test_report.json", fails)
        done, report = reexec(repo, bundle)
        check(done.returncode == 5, done.returncode)
        check(keys(report) == {"tests/status", "tests/unit/exit_class"}, report["hard_diffs"])

        def other_log(value):
            value["status"] = "PASS"
            value["commands"][0]["exit_code"] = 0
            value["commands"][0]["stdout"]["sha256"] = hashlib.sha256(b"other").hexdigest()
        edit(bundle, "reports/test_report.json", other_log)
        done, report = reexec(repo, bundle)
        check(done.returncode == 0 and report["soft_equal_pass"] is False, done.returncode, report)
        check("tests/unit/stdout_sha256" in {one["key"] for one in report["soft_diffs"]}, report)


@test
def a_missing_baseline_exits_with_3():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        (bundle / "git/baseline_commit.txt").write_text("0" * 40 + "\n")
        done, report = replay(repo, bundle, "--reexec")
        check(done.returncode == 3 and report["status"] == "fail", done.returncode, report)
        check(report["hard_diffs"] == [] and "baseline" in report["errors"][0], report)


@test
def a_changed_agent_is_a_difference():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "success")
        script = golden("success", "script.json")
        script["turns"][0]["ops"][1][2] = "/* another */\n"
        done, report = reexec(repo, bundle, "--script", repo.keep("other.json", script))
        check(done.returncode == 5 and "agent/patch.diff" in keys(report), report)
        done, report = reexec(repo, bundle, "--script", repo.keep("bad.json", {"format": "x"}))
        check(done.returncode == 3 and report["errors"], report)


@test
def the_report_is_written_outside_only():
    with Folder() as folder:
        repo = Repo(folder)
        bundle = place(repo, "wide_path")
        out = repo.base / "reexec.json"
        done, report = replay(repo, bundle, "--reexec", "--output", out)
        check(done.returncode == 0, done.returncode, report)
        check(json.loads(out.read_text()) == report, "another report")
        done = repo.cortex("run", "replay", bundle, "--reexec", "--output", bundle / "r.json")
        check(done.returncode == 2, done.returncode)


# --- as a lattice -------------------------------------------------------------------------------------

@test
def runs_are_lattices():
    with Folder() as folder:
        repo = Repo(folder)
        run_id = golden("success", "bundle/manifest.json")["run_id"]
        target = repo.root / "runs" / run_id
        target.parent.mkdir(parents=True)
        shutil.copytree(GOLDEN / "success" / "bundle", target)
        for name in (f"@run/{run_id}", f"@run/{run_id}/golden_success", f"@run/{run_id}/governor",
                     str(target)):
            done = repo.cortex("lattice", "verify", name, "--json", "--content-ids",
                               "--require-seals")
            check(done.returncode == 0, name, done.stderr)
            check(json.loads(done.stdout)["ok"] is True, name)
        agent = f"run/{run_id}/golden_success"
        done = repo.cortex("lattice", "state", f"@run/{run_id}", "@" + agent, "--json")
        check(done.returncode == 0, done.stderr)
        memory = json.loads(done.stdout)["state"]["memory"]
        check(memory["state"] == "S6" and memory["gate.diff"] == {"passed": True}, memory)
        done = repo.cortex("lattice", "why", f"@run/{run_id}", "@" + agent, "gate.tests", "--json")
        check(done.returncode == 0 and b"gate.tests" in done.stdout, done.stderr)
        done = repo.cortex("lattice", "compare", f"@run/{run_id}", agent, f"run/{run_id}/governor")
        check(done.returncode == 0, done.stderr)
        done = repo.cortex("lattice", "render", f"@run/{run_id}")
        check(done.returncode == 0, done.stderr)
        for wrong in ("@run/nothing", f"@run/{run_id}/nobody", "@run/../x"):
            done = repo.cortex("lattice", "verify", wrong)
            check(done.returncode in (2, 3) and done.stderr, wrong, done.returncode)
        done = repo.cortex("lattice", "verify", f"@run/{run_id}",
                           env={"CORTEXPILOT_RUNTIME_ROOT": str(repo.root)})
        check(done.returncode == 0, done.stderr)


main()
