#!/usr/bin/env python3
"""Governed runs from outside: what a signed approval lifts, for whom, and how often.

Closes with `N passed, N failed, N skipped`.
"""
import base64
import json
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import time

from kit import BIN, TIMEOUT_S, Folder, check, main, run, skip
from run_kit import (GOOD_OPS, approve, clean_env, contract, exec_config, exec_repo, fails_at, payloads,
                     refused, reply, sandboxed, script, types, with_policies)

DANGER = "permission:filesystem=danger-full-access"


def manifest(answer):
    return json.loads((pathlib.Path(answer["bundle"]) / "manifest.json").read_text())


def attested(repo, key, answer):
    """The predicate of a run's attestation."""
    done = repo.cortex("run", "attest", answer["run_id"], "--key", key)
    check(done.returncode == 0, done.stderr)
    return json.loads(base64.b64decode(json.loads(done.stdout)["payload"]))["predicate"]


def folder_of(repo):
    return repo.root / "approvals"


# --- danger-full-access (run.md §4, decision 0019) --------------------------------------------------

# Says in the worktree whether it could leave a mark outside of it.
MARKING = """#!/bin/sh
cat > /dev/null
if (echo here > %s) 2>/dev/null
then echo '/* free */' >> src/app/main.c
else echo '/* held */' >> src/app/main.c
fi
echo '%s'
"""


def marking(folder):
    mark = pathlib.Path(folder) / "mark"
    repo, key = exec_repo(folder, MARKING % (shlex.quote(str(mark)), json.dumps(reply())))
    return repo, key, mark


@sandboxed
def no_contract_may_ask_for_full_access():
    with Folder() as folder:
        repo, key, mark = marking(folder)
        value = contract(tool_permissions__filesystem="danger-full-access")
        done, answer = repo.run(value)
        refused(repo, done, answer, "contract")
        # Not even with the approval: it lifts the sandbox of a run, not a rule for contracts.
        out = repo.base / "approval.json"
        approve(repo, key, value, DANGER, out=out)
        done, answer = repo.run(value, None, "--approval", out)
        refused(repo, done, answer, "contract")
        check(not mark.exists())


@sandboxed
def full_access_by_approval_for_one_run():
    with Folder() as folder:
        repo, key, mark = marking(folder)
        done, answer = repo.run(contract(), None, "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        check(not mark.exists() and manifest(answer).get("notes", "") == "", "not held")
        check(attested(repo, key, answer)["sandbox"] == "full")

        made = approve(repo, key, contract(), DANGER)
        done, answer = repo.run(contract(), None, "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        check(mark.read_text() == "here\n", "the agent was held back")
        mark.unlink()
        events = repo.events(answer)
        check("SANDBOX_APPLIED" not in types(events), types(events))
        box = payloads(events, "SANDBOX_DEGRADED")[0]
        check(box["mode"] == "none" and box["network"] == "on" and box["layers"] == [], box)
        check({"user", "net", "files", "seccomp"} <= {one["layer"] for one in box["missing"]}, box)
        used = payloads(events, "HUMAN_APPROVAL_COMPLETED")
        check([one["scopes"] for one in used] == [[DANGER]], used)
        check("danger-full-access" in manifest(answer)["notes"], manifest(answer))
        kept = pathlib.Path(answer["bundle"]) / "artifacts" / f"approval_{made['approval_id']}.json"
        check(kept.read_bytes() == (folder_of(repo) / f"{made['approval_id']}.json").read_bytes())
        predicate = attested(repo, key, answer)
        check(predicate["sandbox"] == "degraded", predicate)
        check([one["scopes"] for one in predicate["approvals"]] == [[DANGER]], predicate)
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)

        done, answer = repo.run(contract(), None, "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        check(not mark.exists() and "SANDBOX_APPLIED" in types(repo.events(answer)), "used twice")
        repo.clean()


@sandboxed
def full_access_does_not_widen_paths():
    with Folder() as folder:
        repo, key = exec_repo(folder, "#!/bin/sh\ncat > /dev/null\necho x > secret.txt\n"
                              f"echo '{json.dumps(reply())}'\n")
        approve(repo, key, contract(), DANGER)
        done, answer = repo.run(contract())
        refused(repo, done, answer, "diff", "outside_allowed_paths")


# --- network ----------------------------------------------------------------------------------------

CALLING = """#!/bin/sh
cat > /dev/null
if bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d' 2>/dev/null
then echo '/* reached */' >> src/app/main.c
else echo '/* cut off */' >> src/app/main.c
fi
echo '%s'
"""


class Listener:
    """A server of this machine: who can connect has the network."""

    def __enter__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(8)
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        return self

    def __exit__(self, *_):
        self.socket.close()

    def called(self):
        count = 0
        while True:
            try:
                self.socket.accept()[0].close()
                count += 1
            except BlockingIOError:
                return count


def calling(folder, port, needs):
    config = exec_config("scripts/agent.sh")
    config["runners"]["tool"]["network"] = needs
    return exec_repo(folder, CALLING % (port, json.dumps(reply())), runners=config["runners"])


def said(repo, answer):
    return repo.git("show", f"{answer['final_commit']}:src/app/main.c").splitlines()[-1]


@sandboxed
def without_network_no_host_is_reached():
    if not os.path.exists("/bin/bash"):
        skip("the agent of this test calls with bash")
    with Folder() as folder, Listener() as server:
        repo, _ = calling(folder, server.port, False)
        done, answer = repo.run(contract(), None, "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        check(said(repo, answer) == "/* cut off */" and server.called() == 0, said(repo, answer))


@sandboxed
def network_on_request_is_granted_once():
    if not os.path.exists("/bin/bash"):
        skip("the agent of this test calls with bash")
    with Folder() as folder, Listener() as server:
        repo, key = calling(folder, server.port, True)
        row = "permission:network=on-request"
        done, answer = repo.run(contract(tool_permissions__network="deny"))
        refused(repo, done, answer, "network")
        value = contract(tool_permissions__network="on-request")
        done, answer = repo.run(value)
        refused(repo, done, answer, "policy")  # more than the row of a WORKER
        approve(repo, key, value, row)
        done, answer = repo.run(value)
        events = refused(repo, done, answer, "network")
        check("HUMAN_APPROVAL_TIMEOUT" in types(events), types(events))
        check([p["passed"] for p in payloads(events, "NETWORK_GATE_RESULT")] == [False])
        check(server.called() == 0, "called before anybody allowed it")

        approve(repo, key, value, row, "network")
        done, answer = repo.run(value, None, "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        check(said(repo, answer) == "/* reached */" and server.called() == 1, said(repo, answer))
        events = repo.events(answer)
        check([p["passed"] for p in payloads(events, "NETWORK_GATE_RESULT")] == [True])
        box = payloads(events, "SANDBOX_APPLIED")[0]
        check(box["network"] == "on" and "net" not in box["layers"], box)
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)

        done, answer = repo.run(value)
        events = refused(repo, done, answer, "policy")
        check(server.called() == 0, "used twice")


# --- sampling ---------------------------------------------------------------------------------------


@sandboxed
def sampling_needs_an_approval():
    with Folder() as folder:
        repo, key = with_policies(folder)
        value = contract(tool_permissions__mcp_tools=["codex", "sampling"])
        done, answer = repo.run(value, script((GOOD_OPS, reply())))
        events = refused(repo, done, answer, "sampling", "approval_missing")
        check(payloads(events, "HUMAN_APPROVAL_REQUIRED")[0]["scopes"] == ["sampling"])
        approve(repo, key, value, "sampling")
        done, answer = repo.run(value, script((GOOD_OPS, reply())), "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        events = repo.events(answer)
        check([p["passed"] for p in payloads(events, "MCP_SAMPLING_GATE_RESULT")] == [True])
        done, answer = repo.run(value, script((GOOD_OPS, reply())))
        refused(repo, done, answer, "sampling", "approval_missing")


# --- a sandbox that lacks a layer -------------------------------------------------------------------


def without_bwrap(*argv):
    """The command where there is no bubblewrap: it sees the machine through one that hides itself."""
    hidden = [path for path in ("/usr/bin/bwrap", "/usr/local/bin/bwrap") if os.path.exists(path)]
    words = [shutil.which("bwrap"), "--dev-bind", "/", "/"]
    for path in hidden:
        words += ["--ro-bind", "/dev/null", path]
    return [*words, "--", *[str(word) for word in argv]]


@sandboxed
def a_degraded_sandbox_needs_the_option_and_an_approval():
    if shutil.which("bwrap") is None:
        skip("there is no bubblewrap to hide")
    owner = run(*without_bwrap("stat", "-L", "-c", "%u", "/usr/bin/git"))
    if owner.returncode != 0:
        skip("bubblewrap cannot show the machine: " + owner.stderr.decode())
    with Folder() as folder:
        repo, key = with_policies(folder, trusted_uid=int(owner.stdout))
        value = repo.keep("contract.json", contract())
        turns = repo.keep("script.json", script((GOOD_OPS, reply())))

        def one(*more):
            argv = without_bwrap(BIN, "run", value, "--json", "--no-merge", "--script", turns, *more)
            done = run(*argv, env=clean_env(CORTEX_HOME=str(repo.home)), cwd=repo.path)
            check(done.stdout, done.stderr)
            return done, json.loads(done.stdout)

        done, answer = one()
        refused(repo, done, answer, "sandbox", "sandbox_layer_missing")
        check(any(text.startswith("files: there is no ") for text in answer["violations"]), answer)
        done, answer = one("--allow-degraded-sandbox")
        refused(repo, done, answer, "sandbox", "sandbox_layer_missing")
        approve(repo, key, contract(), DANGER)  # another scope, which is about the agent alone
        done, answer = one("--allow-degraded-sandbox")
        refused(repo, done, answer, "sandbox", "sandbox_layer_missing")
        approve(repo, key, contract(), "sandbox_degraded")
        done, answer = one()
        refused(repo, done, answer, "sandbox", "sandbox_layer_missing")

        done, answer = one("--allow-degraded-sandbox")
        check(done.returncode == 0, answer, done.stderr)
        events = repo.events(answer)
        box = payloads(events, "SANDBOX_DEGRADED")[0]
        check(box["mode"] == "degraded" and "SANDBOX_APPLIED" not in types(events), box)
        check({"user", "pid", "net", "files"} <= {one["layer"] for one in box["missing"]}, box)
        check(manifest(answer)["notes"] == "sandbox degraded", manifest(answer))
        check(attested(repo, key, answer)["sandbox"] == "degraded")
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)

        done, answer = one("--allow-degraded-sandbox")
        refused(repo, done, answer, "sandbox", "sandbox_layer_missing")


# --- approvals that are none ------------------------------------------------------------------------

WIDE = "wide_path:src/"


def tries(repo, approval, why):
    """The run is refused, and says why the approval was of no use."""
    value = contract(allowed_paths=["src/"])
    done, answer = repo.run(value, script((GOOD_OPS, reply())), "--approval", approval,
                            "--approval-wait", "1")
    events = refused(repo, done, answer, "policy", "wide_path")
    reasons = [p["reason"] for p in payloads(events, "HUMAN_APPROVAL_REJECTED")]
    check(any(why in reason for reason in reasons), why, reasons)
    check("HUMAN_APPROVAL_TIMEOUT" in types(events), types(events))
    check("HUMAN_APPROVAL_COMPLETED" not in types(events), types(events))


@sandboxed
def forged_approvals_and_those_of_other_runs_are_refused():
    with Folder() as folder, Folder() as elsewhere:
        repo, key = with_policies(folder)
        value = contract(allowed_paths=["src/"])
        good = repo.base / "good.json"
        approve(repo, key, value, WIDE, out=good)
        envelope = json.loads(good.read_text())

        forged = json.loads(good.read_text())
        raw = bytearray(base64.b64decode(forged["signatures"][0]["sig"]))
        raw[5] ^= 1
        forged["signatures"][0]["sig"] = base64.b64encode(raw).decode()
        tries(repo, repo.keep("forged.json", forged), "signature")

        widened = json.loads(good.read_text())
        text = base64.b64decode(envelope["payload"]).replace(WIDE.encode(), b"wide_path:lib/")
        widened["payload"] = base64.b64encode(text).decode()
        tries(repo, repo.keep("widened.json", widened), "signature")

        other, others_key = with_policies(elsewhere)  # an approver there, unknown here
        foreign = other.base / "foreign.json"
        approve(other, others_key, value, WIDE, out=foreign)
        tries(repo, foreign, "key")

        elses = repo.base / "elses.json"
        approve(repo, key, contract("other_task_9", allowed_paths=["src/"]), WIDE, out=elses)
        tries(repo, elses, "another contract")

        tries(repo, repo.keep("line.json", {"event_type": "HUMAN_APPROVAL_COMPLETED",
                                            "payload": {"scopes": [WIDE]}}), "not an envelope")
        done, answer = repo.run(value, script((GOOD_OPS, reply())), "--approval", good)
        check(done.returncode == 0, answer, done.stderr)


@sandboxed
def an_expired_approval_is_refused():
    with Folder() as folder:
        repo, key = with_policies(folder)
        path = repo.base / "short.json"
        args = ["approve", "--contract", repo.keep("contract.json", contract(allowed_paths=["src/"])),
                "--reason", "a test", "--key", key, "--scope", WIDE, "--expires", "1s", "-o", path]
        done = repo.cortex(*args)
        check(done.returncode == 0, done.stderr)
        payload = json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))
        folder_of(repo).mkdir(parents=True, exist_ok=True)
        (folder_of(repo) / "short.json").write_bytes(path.read_bytes())
        end = time.monotonic() + TIMEOUT_S
        while b"expired" not in (listed := repo.cortex("approvals", "list", "--json")).stdout:
            check(time.monotonic() < end, listed.stdout, listed.stderr, payload["expires_at"])
            time.sleep(0.05)
        (folder_of(repo) / "short.json").unlink()
        tries(repo, path, "expired")


@sandboxed
def a_failed_run_uses_its_nonce():
    with Folder() as folder:
        repo, key = with_policies(folder)
        value = contract(allowed_paths=["src/"])
        path = repo.base / "approval.json"
        approve(repo, key, value, WIDE, out=path)
        ops = [["write", "outside.txt", "x\n"]]
        done, answer = repo.run(value, script((ops, reply())), "--approval", path)
        events = refused(repo, done, answer, "diff", "outside_allowed_paths")
        check("HUMAN_APPROVAL_COMPLETED" in types(events), types(events))
        tries(repo, path, "used before")
        # The journal knew of the nonce before it was used.
        done = repo.cortex("log", "--all", "--json", "--actor", repo.actor(), "--kind", "run.approval")
        check(done.returncode == 0, done.stderr)
        entries = [json.loads(line) for line in done.stdout.decode().splitlines()]
        check(len(entries) == 1 and answer["run_id"] in entries[0]["payload"], entries)


@sandboxed
def an_approval_does_not_count_again_after_its_folder_was_restored():
    """The ledger knows each nonce that was used, whatever became of the files beside it."""
    with Folder() as folder:
        repo, key = with_policies(folder)
        value = contract(allowed_paths=["src/"])
        path = repo.base / "approval.json"
        approve(repo, key, value, WIDE, out=path)
        args = ("--no-merge", "--approval", path)
        done, answer = repo.run(value, script((GOOD_OPS, reply())), *args)
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        shutil.rmtree(folder_of(repo) / "used")
        tries(repo, path, "used before")
        # Nor with a runtime root of its own, where nothing was ever used.
        elsewhere = {"CORTEXPILOT_RUNTIME_ROOT": str(repo.base / "elsewhere")}
        done, answer = repo.run(value, script((GOOD_OPS, reply())), *args, "--approval-wait", "1",
                                env=elsewhere)
        fails_at(answer, "policy", "wide_path")
        check("used before" in (pathlib.Path(answer["bundle"]) / "events.jsonl").read_text())


@sandboxed
def one_approval_serves_one_of_two_runs():
    """Whoever records the nonce first has it."""
    with Folder() as folder:
        repo, key = with_policies(folder)
        value = contract(allowed_paths=["src/"])
        approve(repo, key, value, WIDE)
        path = repo.keep("contract.json", value)
        turns = repo.keep("script.json", script((GOOD_OPS, reply())))
        both = [repo.cortex("run", path, "--json", "--no-merge", "--script", turns, popen=True)
                for _ in range(2)]
        answers = []
        for process in both:
            out, said_why = process.communicate(timeout=TIMEOUT_S)
            check(out, said_why)
            answers.append(json.loads(out))
        good = [one for one in answers if one["status"] == "SUCCESS"]
        check(len(good) == 1, answers)
        fails_at(next(one for one in answers if one is not good[0]), "policy", "wide_path")
        repo.clean()


if __name__ == "__main__":
    main()
