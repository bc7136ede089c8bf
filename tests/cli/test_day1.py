#!/usr/bin/env python3
"""A first day with governed runs: from a new contract to evidence that somebody else can check.

Closes with `N passed, N failed, N skipped`.
"""
import json

from kit import Folder, check, main
from run_kit import payloads, reply, sandboxed, script, with_policies


@sandboxed
def from_a_contract_to_its_evidence():
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
        says("run", "export", run_id, "--out", archive)
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


if __name__ == "__main__":
    main()
