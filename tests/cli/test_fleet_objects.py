#!/usr/bin/env python3
"""test_fleet_objects.py - bundles of runs of a fleet in an object store: put there when a run is sealed, and read by every
machine and node (docs/fleet.md, decision 0060).

    test_fleet_objects.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Over a PostgreSQL primary with a synchronous standby on loopback, and s3rver of npm; skipped where there is no server of the
first kind, and partly where there is none of the second.  tests/cli/test_object_store.py has the ways in which a store fails.
"""
import json
import pathlib

import kit
from kit import check, main, test
from bundle_kit import check_kept_by_hold_then_gone, entries, fetch, payload, ran, Setting, Stranger, strangers
from fleet_kit import Database, SERVERS
import object_kit
from object_kit import Answers, credentials, settings
import run_kit
from run_kit import GOOD_OPS, contract, reply, script

BY_ENVIRONMENT = {"CORTEX_BUNDLES_BUCKET": object_kit.BUCKET, **credentials()}


def holds_everywhere(s, run_id, endpoint):
    here = s.first.cortex("run", "verify", run_id, "--json")
    check(here.returncode == 0, here)
    by_part, by_node = strangers(s.fleet, s.node, s.away)
    by_node.env.update(BY_ENVIRONMENT, CORTEX_BUNDLES_ENDPOINT=endpoint, CORTEX_BUNDLES_PREFIX="team/b")
    said = payload(entries(s.second, "run.bundle_object")[0])
    for who in (s.second, by_part, by_node):
        done = who.cortex("run", "verify", run_id, "--json")
        check(done.returncode == 0 and json.loads(done.stdout) == json.loads(here.stdout), done, here)
        out = pathlib.Path(s.away) / "run.tar.zst"
        done = who.cortex("run", "export", run_id, "-o", out)
        check(done.returncode == 0 and run_kit.sha256(out.read_bytes()) == said["sha256"], done)
        out.unlink()
    return said


@test
def a_sealed_bundle_is_in_the_store_and_every_machine_and_node_reads_it(database):
    run_kit.need_sandbox()
    why = object_kit.why_not()
    if why:
        kit.skip(why)
    with object_kit.Server() as store, Setting(database, config=settings(store.endpoint, prefix="team/b"),
                                               **credentials()) as s:
        s.fleet.token = json.loads(s.fleet.ok("token", "add", "--name", "reads", "--scope", "run:read", "--json",
                                              home=s.fleet.url))["token"]
        run_id = ran(s.first)
        check(entries(s.first, "run.bundle") == [] and len(entries(s.first, "run.bundle_part")) == 1, "in the database")
        said = holds_everywhere(s, run_id, store.endpoint)
        check(said["object"]["name"] == "team/b/sha256/" + said["object"]["sha256"], said)
        check(len(store.files()) == 1 and run_kit.sha256(store.files()[0].read_bytes()) == said["object"]["sha256"])
        status, verdict = s.node.ask("GET", f"/api/v1/runs/{run_id}/verify")
        check(status == 200 and verdict["verdict"] == "holds", verdict)
        check(run_kit.sha256(fetch(s.node, f"/api/v1/runs/{run_id}/bundle", s.fleet.token)) == said["sha256"])
        # Settings with which no command on the part would work are refused before.
        for wrong in (settings("http://10.0.0.1"), settings(store.endpoint, bucket="../x"), settings(store.endpoint, store="gcs")):
            path = pathlib.Path(s.away) / "wrong.toml"
            path.write_text(wrong)
            done = kit.run(kit.BIN, "fleet", "config", s.fleet.part, "--set", path, env=s.fleet.env, cwd=s.away)
            check(done.returncode == 2 and b"[bundles]" in done.stderr, wrong, done)
        # A machine that knows the node alone is told what it lacks.
        alone = Stranger(s.fleet, s.away, CORTEX_URL=s.node.about["url"], CORTEX_TOKEN=s.fleet.writer)
        verdict = alone.verdict(run_id, 3)
        check(verdict["codes"] == ["stored_unreachable"] and "[bundles]" in verdict["details"][0]["message"], verdict)
        # A copy of the part has no objects, and does not choose where they are asked for.
        copy = pathlib.Path(s.away) / "copy"
        s.fleet.ok("fleet", "export", str(copy), "--part", s.fleet.part)
        at_copy = Stranger(s.fleet, s.away, CORTEX_HOME=str(copy))
        verdict = at_copy.verdict(run_id, 3)
        check(verdict["codes"] == ["stored_unreachable"] and "[bundles]" in verdict["details"][0]["message"], verdict)
        at_copy.env.update(BY_ENVIRONMENT, CORTEX_BUNDLES_ENDPOINT=store.endpoint, CORTEX_BUNDLES_PREFIX="team/b")
        check(at_copy.verdict(run_id, 0)["verdict"] == "holds")
        # Another bucket has no such object, which is not its end.
        done = s.second.cortex("erase", "--run", run_id, "--reason", "asked for", env={"CORTEX_BUNDLES_BUCKET": "another"})
        check(done.returncode == 3 and b"nothing was erased" in done.stderr and store.files() != [], done)
        done = s.second.cortex("erase", "--run", run_id, "--reason", "asked for", "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["objects_removed"] == 1, done)
        check(store.files() == [])
        status, verdict = s.node.ask("GET", f"/api/v1/runs/{run_id}/verify")
        check(status == 200 and verdict["codes"] == ["stored_erased"], verdict)
        check(s.second.cortex("run", "verify", run_id).returncode == 3)
        # The copy has the key, and no object any more.
        check(at_copy.verdict(run_id, 3)["codes"] == ["stored_missing"])
        # A hold keeps the key; a rule destroys it and leaves an object that no one can read.
        other = ran(s.first, contract("unit_task_2"))
        objects = store.files()
        check_kept_by_hold_then_gone(s, other, lambda: check(store.files() == objects != []))
        check(store.files() == objects)
        status, verdict = s.node.ask("GET", f"/api/v1/runs/{other}/verify")
        check(status == 200 and verdict["codes"] == ["stored_erased"], verdict)


@test
def a_backup_of_the_database_lacks_bundles_and_status_and_doctor_say_so(database):
    with Setting(database, config=settings("http://127.0.0.1:1")) as s:
        def asked(*words):
            return s.fleet.ok("fleet", *words)
        count = json.loads(asked("status", "--json"))["parts_with_objects"]
        check(count >= 1 and "object store" in asked("status"), count)
        doctor = json.loads(asked("doctor", "--json"))
        said = [c["detail"] for c in doctor["checks"] if c["name"] == "bundles"]
        check(len(said) == count and any(f"part {s.fleet.part}:" in one and object_kit.BUCKET in one for one in said), doctor)
        asked("config", s.fleet.part, "--none")
        check(json.loads(asked("status", "--json"))["parts_with_objects"] == count - 1)


@test
def a_store_that_is_away_stops_no_run(database):
    run_kit.need_sandbox()
    state = {"away": True}

    def rule(handler, method, path, objects, body):
        if state["away"]:
            handler.error(503, "ServiceUnavailable")
        return state["away"]

    with Answers(rule) as store, Setting(database, config=settings(store.endpoint), **credentials()) as s:
        value = contract()
        done, answer = s.first.run(value, script((GOOD_OPS, reply(value["task_id"]))))
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        check(b"503 ServiceUnavailable" in done.stderr and b"run store" in done.stderr, done.stderr)
        run_id = answer["run_id"]
        by_part, _ = strangers(s.fleet, s.node, s.away)
        check(by_part.verdict(run_id, 3)["codes"] == ["stored_missing"])
        state["away"] = False
        done = s.first.cortex("run", "store", run_id, "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["object"], done)
        check(by_part.verdict(run_id, 0)["verdict"] == "holds" and store.bad == [], store.bad)
        # A node asks twice, not for ever, and says that it is not known.
        state["away"] = True
        s.fleet.token = json.loads(s.fleet.ok("token", "add", "--name", "reads", "--scope", "run:read", "--json",
                                              home=s.fleet.url))["token"]
        asked = len(store.asked)
        status, verdict = s.node.ask("GET", f"/api/v1/runs/{run_id}/verify")
        check(status == 200 and verdict["codes"] == ["stored_unreachable"], status, verdict)
        check(len(store.asked) - asked == 2, store.asked[asked:])
        status, problem = s.node.ask("GET", f"/api/v1/runs/{run_id}")
        check(status == 503 and "503 ServiceUnavailable" in problem["detail"], status, problem)


if SERVERS is None:
    kit.skip_all("no PostgreSQL server is installed", count=len(kit.collected))
main(Database)
