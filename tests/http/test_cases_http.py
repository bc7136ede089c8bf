#!/usr/bin/env python3
"""Requests over HTTP: queued, planned, previewed, started; and the cases that they become.

    test_cases_http.py [PROGRAM]     PROGRAM defaults to $CORTEX_BIN

Closes with `N passed, N failed, N skipped`.
"""
import hashlib
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import Folder, check, main, test  # noqa: E402
from run_kit import Repo, contract, planned, sandboxed, says, with_planner  # noqa: E402
from runs_kit import Server  # noqa: E402

REQUEST = "Add a helper to src/app."
NOBODY = "/cases/case_20260101_000000_" + "0" * 32


class Queue(Server):
    """A server, a token that may start runs, and calls of the queue."""

    def __init__(self, repo, *options):
        super().__init__(repo, *options)
        self.starter = self.add_token("run:start", "run:read")

    def queue(self, body, status=201):
        answer = self.ask("POST", "/api/v1/intents", body=body, token=self.starter)
        check(answer.status == status, answer.status, answer.body[:500])
        return answer.json()

    def act(self, case, verb, body=None, status=202):
        answer = self.ask("POST", f"/api/v1/cases/{case['case_id']}/{verb}", body=body, token=self.starter)
        check(answer.status == status, answer.status, answer.body[:500])
        return answer.json()

    def case(self, case):
        return self.get("/cases/" + case["case_id"])

    def reaches(self, case, *states):
        end = time.monotonic() + 90
        while time.monotonic() < end:
            now = self.case(case)
            if now["state"] in states:
                return now
            time.sleep(0.05)
        check(False, "it stayed", now["state"], now["note"], self.said()[-2000:])


def stored(repo):
    """The repository with a runtime root, as `cortex init` makes one."""
    repo.root.mkdir(parents=True, exist_ok=True)
    return repo


@sandboxed
def a_request_becomes_a_plan_then_a_run():
    with Folder() as folder:
        repo = stored(with_planner(folder, says(planned())))
        before = repo.head("main")
        with Queue(repo) as server:
            case = server.queue({"intent": REQUEST, "key": "ticket-17"})
            check(case["state"] in ("QUEUED", "PLANNING") and case["intent"] == REQUEST, case)
            again = server.queue({"intent": REQUEST, "key": "ticket-17"}, status=200)
            check(again["case_id"] == case["case_id"], again)
            other = server.problem(409, "conflict", "POST", "/intents", token=server.starter,
                                   body={"intent": "Another.", "key": "ticket-17"})
            check(case["case_id"] in other["detail"], other)
            case = server.reaches(case, "PLANNED", "REFUSED")
            check(case["state"] == "PLANNED" and case["refusals"] == [], case)
            check(repo.head("main") == before, "a plan changed main")
            check(case["contract"] == planned(), case["contract"])
            text = (json.dumps(planned()) + "\n").encode()
            check(case["contract_sha256"] == hashlib.sha256(text).hexdigest(), case)
            check(case["preview"]["allow"] is True and case["preview"]["valid"] is True, case["preview"])
            check(case["preview"]["role_contract_summary"], case["preview"])
            check(case["execution_authority"] == "task_contract" and case["runs"] == [], case)
            check(case["workflow_case_read_model"] is None, case)
            plan = server.get("/runs/" + case["plan_run_id"])
            check(plan["failure_reason"] == "plan" and plan["verdict"] == "holds", plan)
            check(server.get("/intents")["items"] == [])
            check([c["state"] for c in server.get("/cases")["items"]] == ["PLANNED"])
            wrong = {"contract_sha256": "0" * 64}
            path = f"/cases/{case['case_id']}/start"
            seen = {"contract_sha256": case["contract_sha256"]}
            server.problem(409, "conflict", "POST", path, body=wrong, token=server.starter)
            server.problem(403, "forbidden", "POST", path, body=seen)
            started = server.act(case, "start", seen)
            done = server.reaches(case, "DONE", "FAILED")
            check(done["state"] == "DONE" and done["run_id"] == started["run_id"], done)
            check([run["status"] for run in done["runs"]] == ["SUCCESS"], done["runs"])
            check(done["workflow_case_read_model"]["run_id"] == started["run_id"], done)
            check(done["workflow_case_read_model"]["execution_authority"] == "task_contract", done)
            check(repo.head("main") != before, "nothing was merged")
            twice = server.problem(409, "conflict", "POST", path, body=seen, token=server.starter)
            check("DONE" in twice["detail"], twice)
            server.problem(409, "conflict", "POST", f"/cases/{case['case_id']}/cancel",
                           token=server.starter)
            check([c["case_id"] for c in server.get("/cases?state=DONE")["items"]] == [case["case_id"]])
            check(server.get("/cases?state=PLANNED")["items"] == [])


@sandboxed
def what_would_be_refused_is_said_before_the_work():
    with Folder() as folder:
        bad = planned(allowed_paths=["**"])
        repo = stored(with_planner(folder, says(bad)))
        with Queue(repo) as server:
            case = server.reaches(server.queue({"intent": REQUEST}), "PLANNED", "REFUSED")
            check(case["state"] == "REFUSED" and case["preview"]["allow"] is False, case)
            check(case["refusals"] and case["refusals"][0]["source"] == "preview", case["refusals"])
            check(any("**" in r["text"] or "allowed_paths" in r["text"] for r in case["refusals"]), case)
            answer = server.problem(409, "conflict", "POST", f"/cases/{case['case_id']}/start",
                                    token=server.starter,
                                    body={"contract_sha256": case["contract_sha256"]})
            check("would be refused" in answer["detail"], answer)
            preview = server.ask("POST", "/api/v1/contracts/preview", body={"contract": bad}).json()
            check(preview["allow"] is False and preview["errors"] == case["preview"]["errors"], preview)
            good = server.ask("POST", "/api/v1/contracts/preview", body={"contract": planned()}).json()
            check(good["allow"] is True and good["gates"]["policy"]["passed"], good)
            check(len(list((repo.root / "runs").iterdir())) == 1, "a preview made a run")


@sandboxed
def a_planner_without_a_contract_is_a_refusal():
    with Folder() as folder:
        repo = stored(with_planner(folder, says("no contract at all")))
        with Queue(repo) as server:
            case = server.reaches(server.queue({"intent": REQUEST}), "PLANNED", "REFUSED")
            check(case["state"] == "REFUSED" and case["contract"] is None, case)
            check(case["refusals"][0]["gate"] == "output_schema", case["refusals"])
            check(case["refusals"][0]["source"] == "planner" and case["preview"] is None, case)
            gone = server.act(case, "cancel", status=200)
            check(gone["state"] == "CANCELLED", gone)
            check(server.act(case, "cancel", status=200)["state"] == "CANCELLED")


@sandboxed
def the_queue_outlives_its_server():
    with Folder() as folder:
        wait = 'while [ ! -e "$TMPDIR/never" ]; do sleep 0.1; done\n'
        repo = stored(with_planner(folder, says(planned(), before=wait)))
        with Queue(repo) as server:
            first = server.queue({"intent": "One."})
            server.reaches(first, "PLANNING")
            second = server.queue({"intent": "Two.", "no_merge": True})
            third = server.queue({"intent": "Three."})
            order = [item["case_id"] for item in server.get("/intents")["items"]]
            check(order == [one["case_id"] for one in (first, second, third)], order)
            check(server.act(third, "cancel", status=200)["state"] == "CANCELLED")
        repo.write("scripts/plan.sh", "#!/bin/sh\n" + says(planned()), True)
        repo.commit("a planner that answers")
        with Queue(repo) as server:
            for one in (first, second):
                now = server.reaches(one, "PLANNED", "REFUSED")
                check(now["state"] == "PLANNED", now)
            check(server.case(second)["no_merge"] is True)
            check(server.case(third)["state"] == "CANCELLED")


@test
def without_a_planner_the_case_says_what_to_configure():
    with Folder() as folder:
        repo = stored(with_planner(folder, "exit 1\n", roles=False))
        with Queue(repo) as server:
            case = server.reaches(server.queue({"intent": REQUEST}), "PLANNED", "REFUSED")
            check(case["state"] == "REFUSED" and case["plan_run_id"] is None, case)
            check("runner add" in case["note"], case["note"])


@test
def wrong_requests_are_told_what_was_expected():
    with Folder() as folder:
        repo = Repo(folder)
        with Queue(repo) as server:
            early = server.problem(422, "invalid-request", "POST", "/intents", token=server.starter,
                                   body={"intent": "x"})
            check("cortex init" in early["detail"], early)
            check(server.get("/cases") == {"execution_authority": "task_contract", "items": [],
                                           "next": None})
            check(server.get("/intents")["items"] == [])
            server.problem(404, "not-found", "GET", NOBODY)
            stored(repo)
            for body, pointer in (
                    ({}, "/intent"), ({"intent": 7}, "/intent"), ({"intent": " \n"}, "/intent"),
                    ({"intent": "x" * 65537}, "/intent"), ({"intent": "x", "key": ""}, "/key"),
                    ({"intent": "x", "key": "a b"}, "/key"), ({"intent": "x", "key": "k" * 129}, "/key"),
                    ({"intent": "x", "runner": "../sh"}, "/runner"),
                    ({"intent": "x", "runner": "replay-script"}, "/runner"),
                    ({"intent": "x", "no_merge": 1}, "/no_merge"), ({"intent": "x", "more": 1}, ""),
                    ([], "")):
                got = server.problem(422, "invalid-request", "POST", "/intents", token=server.starter,
                                     body=body)
                check([e["pointer"] for e in got.get("errors", [got])][0] == pointer, body, got)
            server.problem(403, "forbidden", "POST", "/intents", body={"intent": "x"})
            server.problem(401, "unauthorized", "POST", "/intents", body={"intent": "x"}, token=None)
            for path in (NOBODY, "/cases/x", "/cases/case_..%2f..%2fx"):
                server.problem(404, "not-found", "GET", path)
            server.problem(404, "not-found", "POST", NOBODY + "/cancel", token=server.starter)
            server.problem(404, "not-found", "POST", NOBODY + "/start", token=server.starter,
                           body={"contract_sha256": "0" * 64})
            server.problem(422, "invalid-request", "POST", NOBODY + "/start", token=server.starter,
                           body={"contract_sha256": "0"})
            server.problem(422, "invalid-parameter", "GET", "/cases?state=SOON")
            server.problem(422, "invalid-parameter", "GET", "/cases?cursor=x")
            server.problem(422, "invalid-request", "POST", "/contracts/preview", body={"contract": 1})
            server.problem(422, "invalid-request", "POST", "/contracts/preview",
                           body={"contract": contract(), "runner": "a/b"})


@test
def the_queue_is_bounded_and_paged():
    with Folder() as folder:
        repo = stored(Repo(folder))
        cases = repo.root / "cases"
        cases.mkdir()
        for i in range(64):
            case_id = f"case_20200101_0000{i:02}_{i:032x}"
            (cases / f"{case_id}.json").write_text(json.dumps({
                "version": "v1", "case_id": case_id, "intent": f"Request {i}", "state": "CANCELLED",
                "created_at": f"2020-01-01T00:00:{i % 60:02}.000000Z",
                "updated_at": "2020-01-01T00:00:00.000000Z"}))
        (cases / f"case_20200101_000000_{'f' * 32}.json").write_text("{")
        planner = cases / ".planner"
        with open(planner, "w") as held:
            import fcntl
            fcntl.flock(held, fcntl.LOCK_EX)  # another server plans
            with Queue(repo) as server:
                page = server.get("/cases?limit=40")
                rest = server.get("/cases?limit=40&cursor=" + page["next"])
                ids = [c["case_id"] for c in page["items"] + rest["items"]]
                check(len(ids) == 64 and ids == sorted(ids, reverse=True) and rest["next"] is None, ids)
                for i in range(64):
                    server.queue({"intent": f"Request {i}"})
                full = server.problem(429, "pending-full", "POST", "/intents", token=server.starter,
                                      body={"intent": "One more"})
                check("64 requests wait" in full["detail"], full)
                waiting = server.get("/intents")["items"]
                check([c["intent"] for c in waiting] == [f"Request {i}" for i in range(64)], waiting)


if __name__ == "__main__":
    main()
