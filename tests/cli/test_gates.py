#!/usr/bin/env python3
"""`cortex gate command`, `approve`, `approvals list` and `run attest` from outside: exit codes, forms of
an answer, and approvals from the key to the gate that takes them.

    test_gates.py [PROGRAM] [WORDS..]     PROGRAM defaults to $CORTEX_BIN
"""
import base64
import hashlib
import json
import os
import shutil
import subprocess
import xml.dom.minidom

from kit import BIN, TESTS, Folder, check, main, run, skip, test
from run_kit import GOOD_OPS, approve, contract, reply, script, with_policies

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
       "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
GOLDEN = TESTS / "vectors/run/golden"


def cortex(*words, code=0, cwd=None, stdin=None):
    done = run(BIN, *words, env=ENV, cwd=cwd, stdin=stdin)
    check(done.returncode == code, words, "exit", done.returncode, "expected", code,
          done.stdout.decode(errors="replace")[:1500], done.stderr.decode(errors="replace")[:1500])
    return done.stdout.decode()


def git(repo, *words):
    subprocess.run(["git", "-C", repo, *words], check=True, env=ENV, capture_output=True)


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def make_repo(folder, approver=None):
    """A repository with a script and, when asked, policies that name an approver."""
    repo = folder / "repo"
    write(repo / "scripts/test.sh", "#!/bin/sh\nexit 0\n", 0o755)
    write(repo / "src/main.c", "int main(void) { return 0; }\n")
    if approver is not None:
        source = TESTS.parent / "policies"
        shutil.copytree(source, repo / "policies")
        named = json.dumps({"version": "v1", "approvers": [
            {"name": "alice", "public_key": approver}]}, indent=2) + "\n"
        write(repo / "policies/approvers.json", named)
        config = json.loads((repo / "policies/cortex.json").read_text())
        config["approvers"]["sha256"] = hashlib.sha256(named.encode()).hexdigest()
        write(repo / "policies/cortex.json", json.dumps(config, indent=2) + "\n")
    git(folder, "init", "-q", "-b", "main", "repo")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "start")
    return repo


def make_key(folder, name):
    """(key file, public key in hex)"""
    path = folder / f"{name}.key"
    made = json.loads(cortex("key", "new", path, "--name", name, "--json",
                             "--home", folder / "no-home"))
    return path, made["public_key"]


@test
def a_command_is_allowed_or_rejected_in_four_forms():
    with Folder() as folder:
        repo = make_repo(folder)
        text = cortex("gate", "command", "git status", cwd=repo)
        check("allowed" in text, text)
        answer = json.loads(cortex("gate", "command", "git status", "--json", cwd=repo))
        check(answer["allow"] is True and answer["rule"] == "C16", answer)
        check(answer["argv"] == ["git", "status"] and answer["violations"] == [], answer)
        check(answer["executable"]["path"].endswith("git"), answer)
        check(len(answer["executable"]["sha256"]) == 64, answer)
        bad = json.loads(cortex("gate", "command", "git push", "--json", code=4, cwd=repo))
        check(not bad["allow"] and bad["rule"] == "C12", bad)
        check([v["rule"] for v in bad["violations"]] == ["C12"], bad)
        sarif = json.loads(cortex("gate", "command", "git <push>", "--format", "sarif", code=4,
                                  cwd=repo))
        result = sarif["runs"][0]["results"][0]
        check(sarif["version"] == "2.1.0" and result["ruleId"] == "C02", sarif)
        check(sarif["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "C02", sarif)
        out = folder / "junit.xml"
        cortex("gate", "command", "pytest '--x=\"/y\"&<'", "--forbid", "no\"<&>", "--format", "junit",
               "-o", out, code=4, cwd=repo)
        suites = xml.dom.minidom.parse(str(out)).documentElement
        check(suites.getAttribute("failures") == "1", out.read_text())
        fine = xml.dom.minidom.parseString(cortex("gate", "command", "git log", "--format", "junit",
                                                  cwd=repo)).documentElement
        check(fine.getAttribute("failures") == "0" and fine.getAttribute("tests") == "1")


@test
def options_change_the_command_gate():
    with Folder() as folder:
        repo = make_repo(folder)
        cortex("gate", "command", "echo a://b", code=4, cwd=repo)
        cortex("gate", "command", "echo a://b", "--network", "allow", cwd=repo)
        cortex("gate", "command", "echo a://b", "--network", "on-request", code=4, cwd=repo)
        bad = json.loads(cortex("gate", "command", "echo x", "--network", "ALLOW", "--json", code=4,
                                cwd=repo))
        check(bad["rule"] == "C05", bad)
        bad = json.loads(cortex("gate", "command", "echo deploy now", "--forbid", "deploy", "--json",
                                code=4, cwd=repo))
        check(bad["rule"] == "C07", bad)
        cortex("gate", "command", "bash scripts/test.sh", cwd=repo)
        bad = json.loads(cortex("gate", "command", "bash scripts/test.sh", "--pack", "low", "--json",
                                code=4, cwd=repo))
        check(bad["rule"] == "C13", bad)
        cortex("gate", "command", "bash scripts/test.sh", "--pack", "medium", cwd=repo)
        cortex("gate", "command", "x", "--pack", "huge", code=2, cwd=repo)
        cortex("gate", "command", "git status", "--baseline", "nowhere", code=2, cwd=repo)
        cortex("gate", "command", "git status", code=3, cwd=folder)
        cortex("gate", "command", code=2, cwd=repo)
        # What the work tree has is compared with the baseline, not believed.
        write(repo / "scripts/test.sh", "#!/bin/sh\nexit 1\n", 0o755)
        bad = json.loads(cortex("gate", "command", "scripts/test.sh", "--json", code=4, cwd=repo))
        check(bad["rule"] == "C14", bad)
        write(repo / "scripts/new.sh", "#!/bin/sh\n", 0o755)
        bad = json.loads(cortex("gate", "command", "bash scripts/new.sh", "--json", code=4, cwd=repo))
        check(bad["rule"] == "C14", bad)


def schema_digest():
    return hashlib.sha256((TESTS.parent / "schemas/agent_task_result.v1.json").read_bytes()
                          ).hexdigest()


def make_contract(repo, **changes):
    contract = json.loads((GOLDEN / "success/contract.input.json").read_text())
    shutil.copytree(TESTS.parent / "schemas", repo / "schemas", dirs_exist_ok=True)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", "schemas")
    contract["inputs"]["artifacts"][0]["sha256"] = schema_digest()
    contract.update(changes)
    path = repo.parent / "task.json"
    path.write_text(json.dumps(contract, indent=2))
    return path


@test
def an_approval_is_signed_listed_and_taken_by_the_gate():
    with Folder() as folder:
        key, public = make_key(folder, "alice")
        other, _ = make_key(folder, "mallory")
        repo = make_repo(folder, public)
        contract = make_contract(repo)
        write(repo / "scripts/test.sh", "#!/bin/sh\nexit 1\n", 0o755)
        gate = ("gate", "command", "scripts/test.sh", "--contract", contract, "--json")
        check(json.loads(cortex(*gate, code=4, cwd=repo))["rule"] == "C14")
        approve = ("approve", "--contract", contract, "--reason", "we know", "--json")
        # Who may not, cannot.
        cortex(*approve, "--scope", "script:scripts/test.sh", "--key", other, code=4, cwd=repo)
        cortex(*approve, "--scope", "everything", "--key", key, code=2, cwd=repo)
        cortex(*approve, "--key", key, code=2, cwd=repo)
        cortex(*approve, "--scope", "network", "--key", key, "--expires", "0h", code=2, cwd=repo)
        cortex(*approve, "--scope", "network", "--key", key, "--expires", "2001-01-01T00:00:00Z",
               code=2, cwd=repo)
        cortex(*approve, "--scope", "network", code=2, cwd=repo)
        made = json.loads(cortex(*approve, "--scope", "script:scripts/test.sh", "--scope", "network",
                                 "--key", key, "--expires", "2h", cwd=repo))
        check(made["approver"] == "alice" and made["scopes"][1] == "network", made)
        check(made["contract_sha256"] == hashlib.sha256(contract.read_bytes()).hexdigest(), made)
        check(os.path.isfile(made["path"]), made)
        envelope = json.loads(open(made["path"], encoding="utf-8").read())
        check(envelope["payloadType"] == "application/vnd.cortex.approval+json", envelope)
        check(json.loads(cortex(*gate, cwd=repo))["rule"] == "C16")
        # The gate has only looked.
        listed = json.loads(cortex("approvals", "list", "--json", cwd=repo))["items"]
        check(len(listed) == 1 and listed[0]["state"] == "usable", listed)
        check("nonce" not in json.dumps(listed), listed)
        check("usable" in cortex("approvals", "list", cwd=repo))
        # Another contract is another matter.
        changed = json.loads(contract.read_text())
        changed["task_id"] = "another_task"
        contract.write_text(json.dumps(changed))
        check(json.loads(cortex(*gate, code=4, cwd=repo))["rule"] == "C14")
        # A changed file is refused and said to be.
        text = open(made["path"], encoding="utf-8").read()
        with open(made["path"], "w", encoding="utf-8") as file:
            file.write(text.replace('"sig": "', '"sig": "A', 1))
        listed = json.loads(cortex("approvals", "list", "--json", cwd=repo))["items"]
        check(listed[0]["state"] == "refused", listed)


@test
def an_approval_from_a_descriptor_to_a_file():
    with Folder() as folder:
        key, public = make_key(folder, "alice")
        repo = make_repo(folder, public)
        contract = make_contract(repo)
        out = folder / "approval.json"
        cortex("approve", "--contract", contract, "--scope", "network", "--reason", "x", "--key", "-",
               "-o", out, cwd=repo, stdin=key.read_bytes())
        check(json.loads(cortex("approvals", "list", "--json", cwd=repo))["items"] == [])
        check(out.stat().st_mode & 0o077 == 0, oct(out.stat().st_mode))


@test
def without_approvers_nobody_approves():
    with Folder() as folder:
        key, _ = make_key(folder, "alice")
        repo = make_repo(folder)
        contract = make_contract(repo)
        done = run(BIN, "approve", "--contract", contract, "--scope", "network", "--reason", "x",
                   "--key", key, env=ENV, cwd=repo)
        check(done.returncode == 4 and b"approvers.json" in done.stderr, done)


@test
def attestations_of_the_golden_runs_hold():
    public = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
    with Folder() as folder:
        for scenario in ("success", "out_of_scope", "tests_fail", "fix_loop", "tool_gate",
                         "wide_path"):
            run_id = json.loads((GOLDEN / scenario / "seal.json").read_text())["run_id"]
            bundle = folder / run_id
            shutil.copytree(GOLDEN / scenario / "bundle", bundle)
            envelope = GOLDEN / scenario / "attestation.dsse.json"
            answer = json.loads(cortex("run", "attest", bundle, "--check", envelope, "--trusted",
                                       public, "--json"))
            check(answer["verdict"] == "holds", answer)
            answer = json.loads(cortex("run", "attest", bundle, "--check", envelope, "--json", code=3))
            check(answer["verdict"] == "indeterminate", answer)
        # Of another run it says nothing that is true.
        answer = json.loads(cortex("run", "attest", bundle, "--check",
                                   GOLDEN / "success/attestation.dsse.json", "--trusted", public,
                                   "--json", code=1))
        check(answer["verdict"] == "broken" and answer["reason"] == "field_mismatch", answer)


@test
def a_run_is_attested_and_checked():
    with Folder() as folder:
        key, public = make_key(folder, "ci")
        run_id = json.loads((GOLDEN / "success/seal.json").read_text())["run_id"]
        bundle = folder / run_id
        shutil.copytree(GOLDEN / "success/bundle", bundle)
        out = folder / "run.dsse.json"
        made = json.loads(cortex("run", "attest", bundle, "--key", key, "-o", out, "--json"))
        check(made["keyid"] == hashlib.sha256(bytes.fromhex(public)).hexdigest(), made)
        cortex("run", "attest", bundle, "--check", out, "--trusted", public)
        cortex("run", "attest", bundle, "--key", key)
        cortex("run", "attest", bundle, code=2)
        cortex("run", "attest", folder / "nowhere", "--key", key, code=3)
        # Others sign, too, in forms of their own; what cannot be used is listed.
        envelope = json.loads(out.read_text())
        own = envelope["signatures"]
        strange = [{"sig": own[0]["sig"][:-4]}, {"keyid": "SHA256:x", "sig": "AA==", "cert": "c"}]
        both = folder / "both.dsse.json"
        both.write_text(json.dumps({**envelope, "signatures": strange[:1] + own + strange[1:]}))
        answer = json.loads(cortex("run", "attest", bundle, "--check", both, "--trusted", public,
                                   "--json"))
        check(answer["verdict"] == "holds", answer)
        check([item["state"] for item in answer["signatures"]] == ["unusable", "valid", "unusable"]
              and answer["signatures"][2]["keyid"] == "SHA256:x", answer)
        text = cortex("run", "attest", bundle, "--check", both, "--trusted", public)
        check("SHA256:x: cannot be used" in text, text)
        both.write_text(json.dumps({**envelope, "signatures": strange}))
        answer = json.loads(cortex("run", "attest", bundle, "--check", both, "--trusted", public,
                                   "--json", code=3))
        check(answer["reason"] == "key_unknown", answer)
        # An envelope that is none says why.
        both.write_text(json.dumps({**envelope, "payload": "?"}))
        answer = json.loads(cortex("run", "attest", bundle, "--check", both, "--trusted", public,
                                   "--json", code=1))
        check(answer["reason"] == "envelope_invalid" and "payload" in answer["message"], answer)
        text = cortex("run", "attest", bundle, "--check", both, "--trusted", public, code=1)
        check("envelope_invalid: envelope: 'payload' is not base64" in text, text)
        # A patch that changed: the statement is not of it, and no new one is made.
        os.chmod(bundle, 0o755)
        os.chmod(bundle / "patch.diff", 0o644)
        with open(bundle / "patch.diff", "a", encoding="utf-8") as file:
            file.write("\n")
        cortex("run", "attest", bundle, "--check", out, "--trusted", public, code=1)
        cortex("run", "attest", bundle, "--key", key, code=1)


@test
def an_attestation_names_the_approvals_that_were_used():
    with Folder() as folder:
        repo, key = with_policies(folder)
        wide = contract(allowed_paths=["src/"])
        signed = approve(repo, key, wide, "wide_path:src/")
        done, answer = repo.run(wide, script((GOOD_OPS, reply())))
        if answer["failed_gate"] == "sandbox":
            skip("no sandbox on this machine: " + ", ".join(answer["violations"]))
        check(done.returncode == 0, answer, done.stderr)
        out = folder / "run.dsse.json"
        made = repo.cortex("run", "attest", answer["run_id"], "--key", key, "-o", out)
        check(made.returncode == 0, made.stderr)
        envelope = json.loads(out.read_text())
        predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
        check([a["approval_id"] for a in predicate["approvals"]] == [signed["approval_id"]], predicate)
        check(predicate["approvals"][0]["scopes"] == ["wide_path:src/"], predicate)
        ledger = predicate["ledger"]
        check(ledger["index"] == answer["seal"]["index"] < ledger["size"], ledger)
        check(len(ledger["root"]) == 64 and ledger["origin"].startswith("home/run:"), ledger)
        check(predicate["sandbox"] == "full" and predicate["status"] == "SUCCESS", predicate)
        public = run(BIN, "key", "show", key, env=ENV, cwd=folder).stdout.decode().strip()
        checked = repo.cortex("run", "attest", answer["run_id"], "--check", out, "--trusted", public)
        check(checked.returncode == 0, checked.stdout, checked.stderr)
        listed = json.loads(repo.cortex("approvals", "list", "--json").stdout)["items"]
        check([item["state"] for item in listed] == ["used"], listed)
        # It was for one run.
        again, answer = repo.run(wide, script((GOOD_OPS, reply())))
        check(again.returncode == 4 and answer["failed_gate"] == "policy", answer)


main()
