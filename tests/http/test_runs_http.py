#!/usr/bin/env python3
"""Governed runs over HTTP: every read endpoint, live tails, starting, approving, replay.

    test_runs_http.py [PROGRAM]     PROGRAM defaults to $CORTEX_BIN

Closes with `N passed, N failed, N skipped`.
"""
import hashlib
import http.client
import json
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import BIN, Folder, check, main, test  # noqa: E402
from run_kit import GOLDEN, SCENARIOS, Repo, approve, clean_env, contract, golden  # noqa: E402
from run_kit import planned, sandboxed, says, with_planner, with_policies  # noqa: E402
from runs_kit import Server  # noqa: E402

SUCCESS = golden("success", "bundle/manifest.json")["run_id"]


def bundle(repo, scenario="success"):
    """A golden bundle among the repository's runs."""
    run_id = golden(scenario, "bundle/manifest.json")["run_id"]
    target = repo.root / "runs" / run_id
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(GOLDEN / scenario / "bundle", target)
    return run_id


def served(folder):
    repo = Repo(folder)
    for scenario in SCENARIOS:
        bundle(repo, scenario)
    return Server(repo)


def events_of(response, count):
    """(id, event, data) of so many events; comments are passed over."""
    found, one = [], {}
    while len(found) < count:
        line = response.readline()
        check(line, "the stream ended after", len(found))
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line == "":
            if one:
                found.append((int(one["id"]), one["event"], one["data"]))
            one = {}
        else:
            name, _, value = line.partition(": ")
            one[name] = value
    return found


# --- reading ------------------------------------------------------------------------------------------

@test
def runs_are_listed_page_by_page():
    with Folder() as folder, served(folder) as server:
        whole = server.get("/runs")
        check(len(whole["items"]) == 6 and whole["next"] is None, whole)
        ids = [item["run_id"] for item in whole["items"]]
        check(ids == sorted(ids, reverse=True), ids)
        first = whole["items"][0]
        check(set(first) == {"run_id", "task_id", "status", "created_at", "finished_at",
                             "failed_gate", "sealed"}, first)
        seen, cursor = [], ""
        for _ in range(10):
            page = server.get("/runs?limit=2" + cursor)
            seen += [item["run_id"] for item in page["items"]]
            if page["next"] is None:
                break
            cursor = "&cursor=" + page["next"]
        check(seen == ids, seen)
        failed = server.get("/runs?status=FAILURE")["items"]
        check({item["status"] for item in failed} == {"FAILURE"} and len(failed) == 4, failed)
        check({item["failed_gate"] for item in failed} == {"diff", "tests", "tool", "policy"}, failed)
        server.problem(422, "invalid-parameter", "GET", "/runs?status=maybe")
        server.problem(422, "invalid-parameter", "GET", "/runs?cursor=..%2F..")
        check(server.ask("GET", "/api/runs").json() == whole, "the short path is another")


@test
def a_run_is_its_manifest_and_where_it_stands():
    with Folder() as folder, served(folder) as server:
        shown = server.get("/runs/" + SUCCESS)
        manifest = golden("success", "bundle/manifest.json")
        for name, value in manifest.items():
            check(shown[name] == value, name)
        check(shown["sealed"] is False and shown["verdict"] == "indeterminate", shown["verdict"])
        check(shown["state"] == "S6", shown["state"])
        check(shown["role_binding_read_model"]["execution_authority"] == "task_contract", shown)
        check(shown["workflow_case_read_model"]["execution_authority"] == "task_contract", shown)


@test
def a_failed_test_is_shown_with_the_end_of_its_output():
    with Folder() as folder, served(folder) as server:
        name = golden("tests_fail", "bundle/manifest.json")["run_id"]
        tests = server.get("/runs/" + name)["failed_tests"]
        check([(t["name"], t["exit_code"]) for t in tests] == [("unit", 1)], tests)
        log = (GOLDEN / "tests_fail/bundle" / tests[0]["stdout"]["path"]).read_text()
        check(tests[0]["stdout"]["text"] == log and tests[0]["stdout"]["cut"] is False, tests)
        check(server.get("/runs/" + SUCCESS)["failed_tests"] == [])


@test
def invalid_run_ids_are_not_found():
    with Folder() as folder, served(folder) as server:
        (server.repo.root / "runs" / "link").symlink_to(server.repo.root / "runs" / SUCCESS)
        for name in ("nothing", "..", "%2e%2e", "..%2f..%2factive", "link", "a" * 200, "%2fetc", ".x"):
            for behind in ("", "/diff", "/verify", "/events/stream"):
                server.problem(404, "not-found", "GET", "/runs/" + name + behind)


@test
def events_are_served_as_values_or_byte_exact():
    with Folder() as folder, served(folder) as server:
        lines = (GOLDEN / "success/bundle/events.jsonl").read_text().splitlines()
        page = server.get(f"/runs/{SUCCESS}/events?from=3&limit=4")
        check([item["index"] for item in page["items"]] == [3, 4, 5, 6] and page["next"] == 7, page)
        check(page["items"][0]["event_type"] == "CONTRACT_VALIDATED", page)
        raw, at = [], 1
        while at is not None:
            page = server.get(f"/runs/{SUCCESS}/events?raw=1&limit=10&from={at}")
            raw += [item["raw"] for item in page["items"]]
            at = page["next"]
        check(raw == lines, "lines differ")
        server.problem(422, "invalid-parameter", "GET", f"/runs/{SUCCESS}/events?from=0")


@test
def files_are_answered_as_they_are_stored():
    with Folder() as folder, served(folder) as server:
        base = GOLDEN / "success/bundle"
        for path, stored in {"/diff": "patch.diff", "/diff/names": "diff_name_only.txt",
                             "/reports/task_result": "reports/task_result.json",
                             "/reports/test_report.json": "reports/test_report.json",
                             "/artifacts/runner_result.json": "artifacts/runner_result.json",
                             "/artifacts/tests/stdout.log": "tests/stdout.log",
                             "/artifacts/manifest.json": "manifest.json"}.items():
            answer = server.ask("GET", f"/api/v1/runs/{SUCCESS}{path}")
            data = (base / stored).read_bytes()
            check(answer.status == 200 and answer.body == data, path, answer.status)
            tag = '"' + hashlib.sha256(data).hexdigest() + '"'
            check(answer.headers["ETag"] == tag, path)
            again = server.ask("GET", f"/api/v1/runs/{SUCCESS}{path}", headers={"If-None-Match": tag})
            check(again.status == 304 and again.body == b"", path, again.status)
            other = server.ask("GET", f"/api/v1/runs/{SUCCESS}{path}",
                               headers={"If-None-Match": '"0"'})
            check(other.status == 200, path)
        names = {item["name"] for item in server.get(f"/runs/{SUCCESS}/reports")["items"]}
        check(names == {p.name for p in (base / "reports").iterdir()}, names)
        files = {item["path"]: item for item in server.get(f"/runs/{SUCCESS}/artifacts")["items"]}
        check(set(files) == {str(p.relative_to(base)) for p in base.rglob("*") if p.is_file()}, files)
        check(files["patch.diff"]["sha256"] == golden("success", "expected.json")["patch_sha256"],
              files["patch.diff"])


@test
def files_outside_a_bundle_are_not_found():
    with Folder() as folder, served(folder) as server:
        secret = pathlib.Path(folder) / "secret"
        secret.write_text("secret")
        inside = server.repo.root / "runs" / SUCCESS
        (inside / "artifacts" / "link").symlink_to(secret)
        (inside / "reports" / "link.json").symlink_to(secret)
        for path in ("/artifacts/link", "/artifacts/artifacts/link", "/reports/link",
                     "/artifacts/..%2F..%2F..%2Fsecret", "/artifacts/%2e%2e/%2e%2e/secret",
                     "/reports/..%2F..%2Fmanifest", "/artifacts/nothing"):
            answer = server.ask("GET", f"/api/v1/runs/{SUCCESS}{path}")
            check(answer.status in (404, 500), path, answer.status, answer.body[:200])
            check(b"secret" not in answer.body.replace(b"secret\",\"status", b""), answer.body)
        verdict = server.get(f"/runs/{SUCCESS}/verify")
        check("bundle_special_file" in verdict["codes"], verdict)


@test
def gates_timeline_and_verify():
    with Folder() as folder, served(folder) as server:
        run_id = golden("out_of_scope", "bundle/manifest.json")["run_id"]
        gates = server.get(f"/runs/{run_id}/gates")
        check(gates["gates"]["diff_gate"] == {"passed": False, "reached": True}, gates)
        check(gates["gates"]["tests_gate"] == {"passed": False, "reached": False}, gates)
        diff = [one for one in gates["verdicts"] if one["gate"] == "diff"]
        check(diff[0]["violations"] == ["D07 README.md"], diff)
        timeline = server.get(f"/runs/{run_id}/timeline")
        types = [item["event_type"] for item in timeline["items"]]
        check(types == golden("out_of_scope", "expected.json")["event_types"], types)
        check([(s["from"], s["to"]) for s in timeline["states"]] ==
              [("S0", "S1"), ("S1", "S2"), ("S2", "FAIL")], timeline["states"])
        verdict = server.get(f"/runs/{run_id}/verify")
        check(verdict["verdict"] == "indeterminate" and verdict["codes"] == [], verdict)
        patch = server.repo.root / "runs" / run_id / "patch.diff"
        patch.chmod(0o644)
        patch.write_text("x")
        verdict = server.get(f"/runs/{run_id}/verify")
        check(verdict["verdict"] == "broken" and "file_hash_mismatch" in verdict["codes"], verdict)


@test
def locks_worktrees_and_runners_of_the_repository_are_listed():
    with Folder() as folder, served(folder) as server:
        contracts = server.get("/contracts")
        check({"golden_success", "golden_fix_loop.fix1"} <=
              {item["task_id"] for item in contracts["items"]}, contracts)
        one = server.get("/contracts/golden_fix_loop.fix1")
        check(one["contract"] == json.loads(
            (GOLDEN / "fix_loop/bundle/tasks/golden_fix_loop.fix1.json").read_text()), one)
        server.problem(404, "not-found", "GET", "/contracts/nothing")
        server.problem(404, "not-found", "GET", "/contracts/..%2f..%2fx")
        for path in ("/locks", "/worktrees", "/approvals"):
            check(server.get(path)["items"] == [], path)
        policies = server.get("/policies")
        check(policies["problems"] == [] and policies["items"], policies)
        agents = server.get("/agents")
        check({"WORKER", "REVIEWER"} <= {item["role"] for item in agents["items"]}, agents)
        for path in ("/contracts", "/locks", "/worktrees", "/policies", "/agents", "/approvals"):
            check(server.get(path)["execution_authority"] == "task_contract", path)


@test
def tokens_have_scopes_for_runs():
    with Folder() as folder, served(folder) as server:
        traces = server.add_token("trace:read")
        reader = server.add_token("run:read")
        server.problem(403, "forbidden", "GET", "/runs", token=traces)
        server.problem(403, "forbidden", "GET", f"/lattice/run/{SUCCESS}/heads", token=traces)
        server.problem(401, "unauthorized", "GET", "/runs", token=None)
        check(server.get("/runs", token=reader)["items"], "a reader reads")
        server.problem(403, "forbidden", "POST", "/runs", token=reader, body={})
        server.problem(403, "forbidden", "POST", "/approvals", token=reader, body={})
        check(server.get(f"/lattice/run/{SUCCESS}/heads")["verified"] is True, "a lattice")


@test
def the_folder_of_the_repository_is_told_to_readers_of_runs():
    with Folder() as folder, served(folder) as server:
        check(server.get("/session")["folder"] == str(server.repo.path), server.get("/session"))
        other = server.get("/session", token=server.add_token("trace:read"))
        check(other["folder"] is None and other["repo"] is True, other)


@test
def without_a_repository_no_runs_are_served():
    with Folder() as folder:
        repo = Repo(folder)
        with Server(repo) as server:
            check(server.get("/runs")["items"] == [], "no runs yet")
            server.problem(404, "not-found", "GET", "/runs/" + SUCCESS)
        bare = subprocess.Popen([BIN, "serve", "--home", str(repo.home), "--listen", "127.0.0.1:0",
                                 "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env=clean_env())
        url = json.loads(bare.stdout.readline())["url"]
        connection = http.client.HTTPConnection(url.split("//")[1], timeout=60)
        connection.request("GET", "/api/v1/runs", headers={
            "Authorization": "Bearer " + (repo.home / "token").read_text().strip()})
        check(connection.getresponse().status == 501, "expected not-supported")
        connection.close()
        bare.terminate()
        bare.wait(timeout=60)
        bare.stdout.close()


# --- live ---------------------------------------------------------------------------------------------

@test
def a_live_tail_follows_resumes_and_ends():
    with Folder() as folder:
        repo = Repo(folder)
        lines = (GOLDEN / "success/bundle/events.jsonl").read_text().splitlines(keepends=True)
        live = repo.root / "runs" / SUCCESS
        live.mkdir(parents=True)
        log = live / "events.jsonl"
        log.write_text("".join(lines[:5]))
        with Server(repo) as server:
            connection, response = server.stream(f"/runs/{SUCCESS}/events/stream")
            found = events_of(response, 5)
            with log.open("a") as out:
                out.write(lines[5] + lines[6][:40])
            found += events_of(response, 1)
            with log.open("a") as out:
                out.write(lines[6][40:] + "".join(lines[7:]))
            found += events_of(response, len(lines) - 6)
            check(response.read() in (b"", b":\n\n"), "it goes on behind RUN_FINISHED")
            connection.close()
            check([one[0] for one in found] == list(range(1, len(lines) + 1)), found)
            check([one[2] + "\n" for one in found] == lines, "lines differ")
            check([one[1] for one in found] == golden("success", "expected.json")["event_types"],
                  found)
            connection, response = server.stream(f"/runs/{SUCCESS}/events/stream", after=30)
            check([one[0] for one in events_of(response, 6)] == [31, 32, 33, 34, 35, 36], "resumed")
            connection.close()
            server.problem(422, "invalid-parameter", "GET",
                           f"/runs/{SUCCESS}/events/stream?after=1.2")


@test
def shutdown_ends_live_tails():
    with Folder() as folder:
        repo = Repo(folder)
        live = repo.root / "runs" / SUCCESS
        live.mkdir(parents=True)
        first = (GOLDEN / "success/bundle/events.jsonl").read_text().splitlines(keepends=True)[0]
        (live / "events.jsonl").write_text(first)
        with Server(repo, "--grace", "60") as server:
            connection, response = server.stream(f"/runs/{SUCCESS}/events/stream")
            check(events_of(response, 1)[0][1] == "RUN_CREATED", "first event")
            server.told = True
            server.process.terminate()
            rest = response.read()
            check(all(line.startswith(b":") or not line for line in rest.split(b"\n")), rest)
            connection.close()


# --- changing -----------------------------------------------------------------------------------------

@test
def replay_answers_as_the_command_does():
    with Folder() as folder, served(folder) as server:
        other = golden("fix_loop", "bundle/manifest.json")["run_id"]
        answer = server.ask("POST", f"/api/v1/runs/{SUCCESS}/replay")
        check(answer.status == 200, answer.status, answer.body)
        check(answer.json()["status"] == "ok" and answer.json()["events_count"] == 36, answer.body)
        again = server.ask("POST", f"/api/v1/runs/{SUCCESS}/replay", body={})
        check(again.body == answer.body, "twice is not the same")
        compared = server.ask("POST", f"/api/v1/runs/{SUCCESS}/replay", body={"against": other}).json()
        check(compared["status"] == "fail" and compared["baseline_run_id"] == other, compared)
        check(compared["first_divergence"]["index"] == 3, compared["first_divergence"])
        server.problem(404, "not-found", "POST", f"/runs/{SUCCESS}/replay", body={"against": "x"})
        server.problem(422, "invalid-request", "POST", f"/runs/{SUCCESS}/replay", body={"reexec": 1})


def wait_sealed(server, run_id):
    """The last thing that a run does."""
    end = time.time() + 240
    while not server.get("/runs/" + run_id)["sealed"]:
        check(time.time() < end, "the run does not end")
        time.sleep(0.1)
    return server.get("/runs/" + run_id)


@test
def a_run_is_started_and_sealed():
    with Folder() as folder:
        repo = Repo(folder)
        with Server(repo) as server:
            starter = server.add_token("run:start")
            # Refused by the policy gate: no agent is needed.
            value = contract("started_over_http", allowed_paths=["src/"])
            answer = server.ask("POST", "/api/v1/runs", body={"contract": value}, token=starter)
            check(answer.status == 202, answer.status, answer.body)
            run_id = answer.json()["run_id"]
            check(answer.headers["Location"] == "/api/v1/runs/" + run_id, answer.headers)
            shown = wait_sealed(server, run_id)
            check(shown["status"] == "FAILURE" and shown["failure_reason"] == "policy", shown)
            check(shown["sealed"] and shown["verdict"] == "holds", shown["verdict"], shown["codes"])
            listed = {item["run_id"]: item for item in server.get("/runs")["items"]}
            check(listed[run_id]["sealed"] is True, listed)
            check(server.ask("POST", f"/api/v1/runs/{run_id}/replay").json()["verdict"] == "holds",
                  "replay of a sealed run")
            for body in ({}, {"contract": []}, {"contract": value, "script": "/etc/passwd"},
                         {"contract": value, "runner": "../x"},
                         {"contract": value, "runner": "replay-script"},
                         {"contract": value, "no_merge": "yes"}):
                server.problem(422, "invalid-request", "POST", "/runs", body=body, token=starter)
        check(list((repo.root / "incoming").iterdir()) == [], "contracts are left behind")


@sandboxed
def a_run_is_started_from_a_request():
    with Folder() as folder:
        repo = with_planner(folder, says(planned()))
        with Server(repo) as server:
            starter = server.add_token("run:start")
            answer = server.ask("POST", "/api/v1/runs", body={"intent": "Add a helper to src/app."},
                                token=starter)
            check(answer.status == 202, answer.status, answer.body)
            run_id = answer.json()["run_id"]
            shown = wait_sealed(server, run_id)
            check(shown["status"] == "SUCCESS" and shown["verdict"] == "holds", shown)
            for body, where in (({"intent": ""}, "/intent"), ({"intent": 1}, "/intent"),
                                ({"intent": "x" * 65537}, "/intent"),
                                ({"intent": "x", "contract": planned()}, "/intent")):
                refusal = server.ask("POST", "/api/v1/runs", body=body, token=starter)
                check(refusal.status == 422 and f'"{where}"'.encode() in refusal.body, refusal.body)
            check(server.ask("POST", "/api/v1/runs", body={"intent": "x"},
                             token=server.add_token("run:read")).status == 403)
        check(list((repo.root / "incoming").iterdir()) == [], "requests are left behind")


@test
def approvals_need_a_good_signature():
    with Folder() as folder:
        repo, key = with_policies(folder)
        with Server(repo) as server:
            token = server.add_token("run:approve")
            empty = {"payloadType": "x", "payload": "", "signatures": []}
            server.problem(422, "invalid-request", "POST", "/approvals", body=empty, token=token)
            (repo.root / "approvals").mkdir(parents=True, exist_ok=True)
            out = pathlib.Path(folder) / "approval.json"
            made = approve(repo, key, contract(), "wide_path:src/", out=out)
            envelope = json.loads(out.read_text())
            forged = json.loads(out.read_text())
            forged["signatures"][0]["sig"] = "A" * 86 + "=="
            server.problem(422, "invalid-request", "POST", "/approvals", body=forged, token=token)
            server.problem(400, "malformed-json", "POST", "/approvals", body=b"{", token=token)
            check(server.get("/approvals")["items"] == [], "a bad one was kept")
            answer = server.ask("POST", "/api/v1/approvals", body=envelope, token=token)
            check(answer.status == 201, answer.status, answer.body)
            check(answer.json()["approval_id"] == made["approval_id"], answer.body)
            listed = server.get("/approvals")["items"]
            check(len(listed) == 1 and listed[0]["scopes"] == ["wide_path:src/"], listed)
            check("nonce" not in listed[0], "the nonce is shown")


main()
