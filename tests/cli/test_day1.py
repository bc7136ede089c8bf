#!/usr/bin/env python3
"""A first day with governed runs: from a new contract to evidence that somebody else can check.

Closes with `N passed, N failed, N skipped`.
"""
import json

from kit import Folder, check, main
from run_kit import (part, payloads, plan_script, reply, sandboxed, script, sha256, turns, types, whole,
                     with_policies)


@sandboxed
def a_contract_leads_to_a_run_with_evidence():
    with Folder() as folder:
        repo, key = with_policies(folder)

        def says(*args, code=0):
            done = repo.cortex(*args)
            check(done.returncode == code, args, done.returncode, done.stdout, done.stderr)
            return done.stdout.decode()

        path = repo.base / "contract.json"
        says("contract", "new", "add a line", "-p", "src/app/main.c", "-t", "scripts/test.sh",
             "--id", "first_day_1", "--retries", "1", "-o", path)
        says("contract", "lint", path)
        bad = [["write", "src/app/main.c", "int main(void)\n{\n\treturn 1;\n}\n"]]
        good = [["write", "src/app/main.c", "int main(void)\n{\n\treturn 0;\n}\n/* new */\n"]]
        turns = script((bad, reply("first_day_1")), (good, reply("first_day_1.fix1")))
        answer = json.loads(says("run", path, "--json", "--script", repo.keep("s.json", turns)))
        check(answer["attempts"] == 2 and answer["merged"], answer)
        check([p["status"] for p in payloads(repo.events(answer), "TEST_RESULT")] == ["FAIL", "PASS"])
        check("/* new */" in repo.git("show", "main:src/app/main.c"))
        run_id = answer["run_id"]
        says("run", "verify", run_id)
        archive, envelope = repo.base / "run.tar.zst", repo.base / "attestation.json"
        says("run", "export", run_id, "--output", archive)
        says("run", "verify", archive)
        says("run", "replay", run_id)
        says("run", "replay", run_id, "--reexec")
        says("run", "attest", run_id, "--key", key, "-o", envelope)
        says("run", "attest", run_id, "--check", envelope, code=3)  # signed, but by whom?
        listed = json.loads((repo.path / "policies/approvers.json").read_text())["approvers"]
        says("run", "attest", run_id, "--check", envelope, "--trusted", listed[0]["public_key"])
        told = says("lattice", "why", f"@run/{run_id}", f"@run/{run_id}/first_day_1", "gate.tests")
        check("passed" in told, told)
        repo.clean()


@sandboxed
def a_request_leads_to_a_merged_commit():
    """A planner makes the contract, a tech lead splits it, two workers work side by side, a test of one
    of them fails once and is fixed, the parts are joined and merged; and all of it can be checked."""
    request = "Say in both folders who has been here."
    bad = [["write", "src/app/main.c", "int main(void)\n{\n\treturn 1;\n}\n"]]
    good = [["write", "src/app/main.c", "int main(void)\n{\n\treturn 0;\n}\n/* app */\n"]]
    lib = [["write", "src/lib/b.c", "int b;\n"]]
    parts = [part("part_app", "src/app/", timeout_retry__max_retries=1),
             part("part_lib", "src/lib/", "git grep -q int -- src")]
    work = {"part_app": [(bad, reply("part_app")), (good, reply("part_app.fix1"))],
            "part_lib": [(lib, reply("part_lib"))]}
    agents = plan_script(parts, work)
    agents["tasks"]["intent_" + sha256(request.encode())[:12]] = turns(([], whole()), thread="pm")
    with Folder() as folder:
        repo, _ = with_policies(folder)
        before = repo.head("main")
        done = repo.cortex("run", "--intent", request, "--json", "--script",
                           repo.keep("agents.json", agents))
        answer = json.loads(done.stdout.decode().splitlines()[-1])
        check(done.returncode == 0 and answer["merged"] == "fast_forward", answer, done.stderr)
        check(repo.head("main") == answer["final_commit"] != before, answer)
        check("/* app */" in repo.git("show", "main:src/app/main.c"))
        check(repo.git("show", "main:src/lib/b.c") == "int b;")
        events = repo.events(answer)
        check("FIX_LOOP_TRIGGERED" in types(events), types(events))
        check("plan_split" in [p["reason"] for p in payloads(events, "STATE_TRANSITION")])
        run_id, archive = answer["run_id"], repo.base / "run.tar.zst"
        for args in (("run", "verify", run_id), ("run", "export", run_id, "--output", archive),
                     ("run", "verify", archive), ("run", "replay", run_id),
                     ("run", "replay", run_id, "--reexec")):
            told = repo.cortex(*args)
            check(told.returncode == 0, args, told.returncode, told.stdout, told.stderr)
        manifest = json.loads(repo.cortex("run", "show", run_id, "--json").stdout)
        check(request in json.dumps(manifest), manifest)
        repo.clean()


if __name__ == "__main__":
    main()
