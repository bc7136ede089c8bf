#!/usr/bin/env python3
"""test_fleet_bundles.py - bundles of runs that are recorded in a part of a fleet: stored for all machines, fetched and
verified by any of them, erased, and what a missing or changed one is called (docs/fleet.md, decision 0056).

    test_fleet_bundles.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Over a PostgreSQL primary with a synchronous standby on loopback; skipped where no server is installed.  Two "machines"
are two clones with a runtime root of their own; a third has no clone at all.
"""
import base64
import hashlib
import json
import os
import pathlib
import signal
import time

import kit
from kit import check, main, test
from bundle_kit import check_kept_by_hold_then_gone, entries, fetch, payload, ran, Setting, Stranger, strangers
from fleet_kit import children_of, Database, Going, SERVERS, wait
import run_kit
from run_kit import GOOD_OPS, contract, reply, script


def again_until(ask):
    """A node hears of another quota within its lease."""
    end = time.monotonic() + 20
    while (done := ask()).returncode != 0:
        check(time.monotonic() < end, done)
        time.sleep(0.2)
    return done


@test
def a_bundle_is_verified_and_exported_on_every_machine(database):
    run_kit.need_sandbox()
    with Setting(database) as s:
        run_id = ran(s.first)
        stored = entries(s.first, "run.bundle")
        check(len(stored) == 1, stored)
        said = payload(stored[0])
        check(said["run_id"] == run_id and len(said["parts"]) == 1, said)
        parts = entries(s.first, "run.bundle_part")
        check([entry["seq"] for entry in parts] == [part["entry"] for part in said["parts"]], parts, said)
        here = s.first.cortex("run", "verify", run_id, "--json")
        check(here.returncode == 0, here)
        for who in (s.second, *strangers(s.fleet, s.node, s.away)):
            done = who.cortex("run", "verify", run_id, "--json")
            check(done.returncode == 0 and json.loads(done.stdout) == json.loads(here.stdout), done, here)
            out = pathlib.Path(s.away) / "run.tar.zst"
            done = who.cortex("run", "export", run_id, "-o", out, "--json")
            check(done.returncode == 0, done)
            data = out.read_bytes()
            check(run_kit.sha256(data) == said["sha256"] and len(data) == said["size_bytes"], said)
            shown = who.cortex("run", "events", run_id, "--json")
            check(shown.returncode == 0 and b"RUN_FINISHED" in shown.stdout, shown)
            out.unlink()
        # Storing again changes nothing.
        again = s.first.cortex("run", "store", run_id, "--json")
        check(again.returncode == 0 and json.loads(again.stdout)["was_there"], again)
        check(len(entries(s.first, "run.bundle")) == len(entries(s.first, "run.bundle_part")) == 1)
        # What no one knows is not found.
        by_part, by_node = strangers(s.fleet, s.node, s.away)
        other = "run_20260101_000000_" + "0" * 32
        for who in (by_part, by_node):
            done = who.cortex("run", "verify", other)
            check(done.returncode == 3, done)
        # A node that is not there, or refuses the token, is said.
        nowhere = Stranger(s.fleet, s.away, CORTEX_URL="http://127.0.0.1:1", CORTEX_TOKEN=s.fleet.writer)
        done = nowhere.cortex("run", "verify", run_id)
        check(done.returncode == 3 and b"CORTEX_URL" in done.stderr, done)
        refused = Stranger(s.fleet, s.away, CORTEX_URL=s.node.about["url"], CORTEX_TOKEN=s.fleet.token)
        done = refused.cortex("run", "verify", run_id)
        check(done.returncode == 3 and b"home:write" in done.stderr, done)


@test
def the_page_of_a_node_shows_what_is_stored(database):
    run_kit.need_sandbox()
    with Setting(database) as s:
        s.fleet.token = json.loads(s.fleet.ok("token", "add", "--name", "reads", "--scope", "run:read", "--json",
                                              home=s.fleet.url))["token"]
        first, second = ran(s.first), ran(s.second, contract("unit_task_2"))
        status, listed = s.node.ask("GET", "/api/v1/runs")
        check(status == 200 and [run["run_id"] for run in listed["items"]] == sorted((first, second), reverse=True), listed)
        check(all(run["sealed"] and run["status"] == "SUCCESS" and run["created_at"] for run in listed["items"]), listed)
        check(listed["next"] is None, listed)
        status, page = s.node.ask("GET", "/api/v1/runs?limit=1")
        status, rest = s.node.ask("GET", f"/api/v1/runs?limit=1&cursor={page['next']}")
        check(page["items"] + rest["items"] == listed["items"] and rest["next"] is None, page, rest)
        check(s.node.ask("GET", "/api/v1/runs?status=FAILURE")[1]["items"] == [])
        local = json.loads(s.first.cortex("run", "show", first, "--json").stdout)
        status, shown = s.node.ask("GET", f"/api/v1/runs/{first}")
        check(status == 200 and shown["verdict"] == "holds" and shown == local, shown, local)
        for path, word in (("events", "items"), ("gates", None), ("timeline", None), ("reports", "items"),
                           ("artifacts", "items")):
            status, answer = s.node.ask("GET", f"/api/v1/runs/{first}/{path}")
            check(status == 200 and answer and (word is None or answer[word]), path, status, answer)
        status, verdict = s.node.ask("GET", f"/api/v1/runs/{first}/verify")
        check(status == 200 and verdict["verdict"] == "holds", verdict)
        status, replay = s.node.ask("POST", f"/api/v1/runs/{first}/replay", {"against": second})
        check(status == 200, replay)
        said = payload(entries(s.first, "run.bundle")[0])
        data = fetch(s.node, f"/api/v1/runs/{first}/bundle", s.fleet.token)
        check(run_kit.sha256(data) == said["sha256"], said, len(data))
        check(s.node.ask("GET", "/api/v1/runs/run_20260101_000000_" + "0" * 32)[0] == 404)
        check(s.node.ask("GET", "/api/v1/runs/%2e%2e")[0] == 404)
        done = s.second.cortex("erase", "--run", first, "--reason", "asked for")
        check(done.returncode == 0, done)
        status, problem = s.node.ask("GET", f"/api/v1/runs/{first}")
        check(status == 404 and "erased" in problem["detail"], problem)
        status, verdict = s.node.ask("GET", f"/api/v1/runs/{first}/verify")
        check(status == 200 and verdict["verdict"] == "indeterminate", verdict)


@test
def an_erased_bundle_is_indeterminate_and_a_local_one_is_not_touched(database):
    run_kit.need_sandbox()
    with Setting(database) as s:
        run_id, other = ran(s.first), ran(s.first, contract("unit_task_2"))
        by_part, by_node = strangers(s.fleet, s.node, s.away)
        check(by_node.verdict(run_id, 0)["verdict"] == "holds")
        done = s.second.cortex("erase", "--run", run_id)
        check(done.returncode == 2 and b"--reason" in done.stderr, done)
        done = s.second.cortex("erase", "--run", run_id, "--reason", "asked for", "--json")
        check(done.returncode == 0 and json.loads(done.stdout)["parts"] == 1, done)
        for who in (by_part, by_node, s.second):
            done = who.cortex("run", "verify", run_id, "--json")
            said = json.loads(done.stdout)
            check(done.returncode == 3 and said["verdict"] == "indeterminate", done)
            check(said["reason"] == "erased" and said["codes"] == ["stored_erased"], said)
            out = pathlib.Path(s.away) / "no.tar.zst"
            done = who.cortex("run", "export", run_id, "-o", out)
            check(done.returncode == 3 and b"erased" in done.stderr and not out.exists(), done)
        # The bytes are gone from the part; its log holds; the other run's are there.
        check(by_node.verdict(other, 0)["verdict"] == "holds")
        check(s.first.cortex("run", "verify", run_id).returncode == 0)
        # What was erased is not stored again by chance.
        again = s.first.cortex("run", "store", run_id, "--json")
        check(again.returncode == 0 and json.loads(again.stdout)["was_there"], again)
        check(by_node.verdict(run_id, 3)["codes"] == ["stored_erased"])
        done = kit.run(kit.BIN, "verify", "--home", s.fleet.url, env=s.fleet.env)
        check(done.returncode == 0, done)
        # A rule of retention reaches the others, and a hold keeps one.
        check_kept_by_hold_then_gone(s, other, lambda: by_node.verdict(other, 0))
        check(by_node.verdict(other, 3)["codes"] == ["stored_erased"])


@test
def a_full_quota_leaves_the_bundle_here_and_it_is_stored_later(database):
    run_kit.need_sandbox()
    with Setting(database) as s:
        run_id = ran(s.first)
        used = json.loads(s.fleet.ok("fleet", "quota", s.fleet.part, "--bytes", "1G", "--json"))["stored_bytes"]
        # A run whose log fits, and its bundle does not.
        big = "".join(f"// {base64.b64encode(hashlib.sha512(b'%d' % i).digest()).decode()}\n" for i in range(25000))
        value = contract("unit_task_big")
        s.fleet.ok("fleet", "quota", s.fleet.part, "--bytes", str(used + 1_400_000))
        done, answer = s.first.run(value, script(([["append", "src/app/main.c", big]], reply(value["task_id"]))))
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        check(b"run store" in done.stderr and b"quota" in done.stderr, done.stderr)
        late = answer["run_id"]
        by_part, by_node = strangers(s.fleet, s.node, s.away)
        done = by_node.cortex("run", "verify", late)
        check(done.returncode == 3, done)
        done = s.first.cortex("run", "store", late)
        check(done.returncode == 3 and b"quota" in done.stderr, done)
        s.fleet.ok("fleet", "quota", s.fleet.part, "--none")
        done = again_until(lambda: s.first.cortex("run", "store", late, "--json"))
        said = json.loads(done.stdout)
        check(not said["was_there"] and 0 < said["sent"] < said["parts"], said)
        check(by_node.verdict(late, 0)["verdict"] == "holds")
        check(by_part.verdict(run_id, 0)["verdict"] == "holds")


def cleaned(machine, *words, code=0):
    done = machine.cortex("run", "cleanup", "--json", *words)
    check(done.returncode == code, done)
    return [(item["kind"], item["name"], item["reason"], item["done"]) for item in json.loads(done.stdout)["items"]]


@test
def a_run_whose_machine_died_has_an_end_that_says_what_is_missing(database):
    run_kit.need_sandbox()
    with Setting(database, ttl_s=600, slow_s=2) as s:
        with Going(s.first, contract()) as dead:
            dead.until("LOCK_ACQUIRED").freeze()
            dead.process.kill()
            dead.process.wait()
            run_id, events = dead.id(), len(dead.events)
        by_part, by_node = strangers(s.fleet, s.node, s.away)
        check(("lease", run_id, "owner_dead", True) in cleaned(s.second, "--apply"))
        check(cleaned(s.second, "--apply") == [], "twice")
        ends = entries(s.second, "run.end")
        check(len(ends) == 1, ends)
        said = payload(ends[0])
        recorded = [payload(entry) for entry in entries(s.second, "run.event")]
        check(said["run_id"] == run_id and said["events_count"] == len(recorded) >= events, said)
        check(said["chain_head"] == recorded[-1]["hash"] and said["reason"] == "owner_dead", said)
        check("events.jsonl" in said["missing"] and said["host"] and said["by"]["host"], said)
        for who in (by_part, by_node, s.second):
            done = who.cortex("run", "verify", run_id, "--json")
            verdict = json.loads(done.stdout)
            check(done.returncode == 3 and verdict["verdict"] == "indeterminate", done)
            check(verdict["codes"] == ["ended_by_another"] and f"{len(recorded)} events" in verdict["details"][0]["message"],
                  verdict)
        s.fleet.token = json.loads(s.fleet.ok("token", "add", "--name", "reads", "--scope", "run:read", "--json",
                                              home=s.fleet.url))["token"]
        check([run["status"] for run in s.node.ask("GET", "/api/v1/runs")[1]["items"]] == ["FAILURE"])
        # The machine comes back: what it has is sealed as a failure, stored, and verified everywhere.
        check(("run", run_id, "owner_dead", True) in cleaned(s.first, "--apply"))
        check(by_node.verdict(run_id, 0)["verdict"] == by_part.verdict(run_id, 0)["verdict"] == "holds")
        check(payload(entries(s.first, "run.seal")[0])["status"] == "FAILURE")
        check(cleaned(s.second, "--apply") == cleaned(s.first, "--apply") == [], "something is left")


def named(name):
    """What starts a program on a machine of that name."""
    return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name]


@test
def machines_with_names_of_their_own_end_and_fetch(database):
    run_kit.need_sandbox()
    if kit.run(*named("probe"), "true").returncode != 0:
        kit.skip("this user may not name a machine (unshare --uts)")
    with Setting(database, ttl_s=2, slow_s=2) as s:
        s.first.before, s.second.before = named("machine-one"), named("machine-two")
        whole = ran(s.first, contract("unit_task_0"))
        check(s.second.cortex("run", "verify", whole).returncode == 0)
        with Going(s.first, contract()) as dead:
            dead.until("LOCK_ACQUIRED").freeze()
            dead.process.kill()
            dead.process.wait()
            run_id = dead.id()
        # On the other machine its process cannot be seen: time has to tell.
        check(cleaned(s.second, "--apply") == [], "a process of another machine")
        time.sleep(3)
        check(("lease", run_id, "lease_expired", True) in cleaned(s.second, "--apply"))
        said = payload(entries(s.second, "run.end")[0])
        check((said["host"], said["by"]["host"]) == ("machine-one", "machine-two"), said)
        verdict = json.loads(s.second.cortex("run", "verify", run_id, "--json").stdout)
        check("machine-one" in verdict["details"][0]["message"], verdict)
        check(("run", run_id, "owner_dead", True) in cleaned(s.first, "--apply"))
        check(s.second.cortex("run", "verify", run_id).returncode == 0)
        # On its own machine one that died is seen at once.
        with Going(s.first, contract("unit_task_3")) as dead:
            dead.until("LOCK_ACQUIRED").freeze()
            dead.process.kill()
            dead.process.wait()
            check(("run", dead.id(), "owner_dead", True) in cleaned(s.first, "--apply"))


def frozen_before_its_seal(s, value):
    """A run that stands still with its manifest written and no seal; None when it was quicker than this."""
    nodes = [worker for node in s.fleet.nodes for worker in children_of(node.process.pid)]
    going = Going(s.first, value)
    going.until("RUN_FINISHED")
    for worker in nodes:
        os.kill(worker, signal.SIGSTOP)
    manifest = s.first.root / "runs" / going.id() / "manifest.json"
    try:
        wait(manifest.exists, "a manifest")
        going.freeze()
    finally:
        for worker in nodes:
            os.kill(worker, signal.SIGCONT)
    time.sleep(0.3)  # what it had sent is answered
    if not any(payload(entry)["run_id"] == going.id() for entry in entries(s.second, "run.seal")):
        return going
    going.end()
    return None


@test
def a_run_that_was_ended_between_manifest_and_seal_is_sealed_when_it_wakes(database):
    run_kit.need_sandbox()
    with Setting(database, ttl_s=2) as s:
        for _ in range(8):
            going = frozen_before_its_seal(s, contract())
            if going is not None:
                break
        check(going is not None, "every run was quicker")
        with going:
            run_id = going.id()
            time.sleep(3)
            check(("lease", run_id, "lease_expired", True) in cleaned(s.second, "--apply"))
            check(len(entries(s.second, "run.end")) == 1)
            by_part, by_node = strangers(s.fleet, s.node, s.away)
            check(by_node.verdict(run_id, 3)["codes"] == ["ended_by_another"])
            code, _, err = going.end()
            check(code == 3 and "was ended by" in err, code, err)
            check(s.first.cortex("run", "verify", run_id).returncode == 1, "a bundle without its seal")
            check(("run", run_id, "seal_missing", True) in cleaned(s.first, "--apply"))
            seal = next(payload(entry) for entry in entries(s.first, "run.seal") if payload(entry)["run_id"] == run_id)
            check(seal["status"] == "SUCCESS", seal)
            check(cleaned(s.first, "--apply") == [], "twice")
            for who in (by_part, by_node):
                check(who.verdict(run_id, 0)["verdict"] == "holds")


if SERVERS is None:
    kit.skip_all("no PostgreSQL server is installed", count=len(kit.collected))
main(Database)
