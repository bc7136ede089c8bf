#!/usr/bin/env python3
"""test_fleet_locks.py - runs of several machines that record in one part: locks, leases and their tokens, runs that are
ended by another machine, and what such a run may still do (docs/fleet.md, decision 0039).

    test_fleet_locks.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Over a PostgreSQL primary with a synchronous standby on loopback; skipped where no server is installed.  Two "machines"
are two clones with a runtime root of their own.  Their processes see each other, so one that died is known to be dead;
what only time tells is tried with processes that are stopped (SIGSTOP).
"""
import json
import os
import pathlib
import signal
import socket
import time

import kit
from kit import check, main, test
from fleet_kit import Database, FACT, Going, Machine, policies, SERVERS, Writing
import run_kit
from run_kit import GOOD_OPS, contract, exec_config, fails_at, payloads, reply, script, types, with_policies

TTL_S = 3


def leases(machine):
    """What was recorded of leases, oldest first, each with its entry's number."""
    done = machine.cortex("log", "--actor", machine.actor(), "--json", "--last", "100000")
    check(done.returncode == 0, done)
    found = []
    for line in done.stdout.decode().splitlines():
        entry = json.loads(line)
        if entry.get("kind") == "run.lease":
            value = entry["payload"]
            found.append({"entry": entry["seq"], **(json.loads(value) if isinstance(value, str) else value)})
    return found


def locks(machine):
    done = machine.cortex("locks", "list", "--json")
    check(done.returncode == 0, done)
    return json.loads(done.stdout)["items"]


def cleaned(machine, *words, code=0):
    done = machine.cortex("run", "cleanup", "--json", *words)
    check(done.returncode == code, done)
    return json.loads(done.stdout)["items"]


def two_machines(repo, here, there, fleet):
    one, two = fleet.pair()
    return Machine(repo, here, fleet, one), Machine(repo, there, fleet, two)


@test
def a_lock_is_held_on_all_machines_and_renewed(database):
    run_kit.need_sandbox()
    with Writing(database) as f, kit.Folder() as folder, kit.Folder() as here, kit.Folder() as there:
        repo, _ = policies(folder, 1, slow_s=6)
        first, second = two_machines(repo, here, there, f)
        with Going(first, contract()) as going:
            going.until("LOCK_ACQUIRED")
            time.sleep(1.6)  # longer than its lease: it is renewed
            seen = [lock for lock in locks(second) if "token" in lock]
            check([lock["run_id"] for lock in seen] == [going.id()] * len(seen) and seen, seen)
            check(not any(lock["stale"] for lock in seen), seen)
            done, answer = second.run(contract(), script((GOOD_OPS, reply())))
            check(done.returncode == 4, done)
            fails_at(answer, "lock", "path_locked")
            check(any(going.id() in text for text in answer["violations"]), answer)
            second.clean()
            check(second.verify(answer).returncode == 0, answer)
            # Another path is free, and cleanup touches nothing that goes on.
            check(cleaned(second, "--apply") == [], "something of a run that goes on")
            released = second.cortex("locks", "release", seen[0]["path"])
            check(released.returncode == 4 and going.id() in released.stderr.decode(), released)
            code, out, err = going.end()
            check(code == 0 and '"MERGE_APPLIED"' in out, code, err)
        check([lock for lock in locks(second) if "token" in lock] == [], locks(second))
        done, answer = second.run(contract(), script((GOOD_OPS, reply())))
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        told = leases(second)
        of = {run: [entry["change"] for entry in told if entry["run_id"] == run] for run in {e["run_id"] for e in told}}
        check("renew" in of[going.id()], of)
        for changes in of.values():
            check(changes[0] == "open" and changes[-1] == "close", of)
        opened = [entry for entry in told if entry["change"] == "open"]
        check(all(entry["token"] == entry["entry"] for entry in opened), opened)
        tokens = [entry["token"] for entry in opened]
        check(tokens == sorted(set(tokens)) and len(tokens) == 3, tokens)


@test
def a_frozen_holder_records_and_merges_nothing_when_it_wakes(database):
    run_kit.need_sandbox()
    with Writing(database) as f, kit.Folder() as folder, kit.Folder() as here, kit.Folder() as there:
        repo, _ = policies(folder, TTL_S, slow_s=1)
        first, second = two_machines(repo, here, there, f)
        base = first.head("main")
        with Going(first, contract()) as going:
            going.until("LOCK_ACQUIRED").freeze()
            time.sleep(TTL_S + 1.5)
            done, answer = second.run(contract(), script((GOOD_OPS, reply())))
            check(answer["status"] == "SUCCESS" and answer["merged"], done.stderr, answer)
            reclaimed = payloads(second.events(answer), "LOCK_RECLAIMED")
            check(reclaimed and all(one["reason"] == "lease_expired" for one in reclaimed), reclaimed)
            check({one["lock"]["run_id"] for one in reclaimed} == {going.id()}, reclaimed)
            check(second.verify(answer).returncode == 0, answer)
            told = leases(second)
            ended = [entry for entry in told if entry["change"] == "end"]
            check([entry["run_id"] for entry in ended] == [going.id()], ended)
            check(ended[0]["reason"] == "lease_expired" and ended[0]["by"]["run_id"] == answer["run_id"], ended)
            check(ended[0]["pid"] == going.process.pid and ended[0]["paths"], ended)
            taken = next(entry for entry in told if entry["change"] == "acquire" and entry["run_id"] == answer["run_id"])
            check(taken["token"] > ended[0]["token"], taken, ended)
            code, out, err = going.end()
        check(code == 3 and "was ended by" in err and "lease_expired" in err, code, err)
        check('"MERGE_APPLIED"' not in out and first.head("main") == base, out)
        after = second.cortex("log", "--actor", second.actor(), "--json", "--last", "100000").stdout.decode()
        late = [line for line in after.splitlines() if going.id() in line and json.loads(line)["seq"] > ended[0]["entry"]]
        check(late == [], late)
        # Its own machine seals it, and not as a success.
        done = first.cortex("run", "verify", going.id())
        check(done.returncode != 0, done)
        check(any(item["kind"] == "run" and item["name"] == going.id() for item in cleaned(first, "--apply")), "not ended")
        check(first.cortex("run", "verify", going.id()).returncode == 0, first.cortex("run", "verify", going.id()))
        seals = [line for line in first.cortex("log", "--actor", first.actor(), "--json", "--last", "100000").stdout.decode()
                 .splitlines() if going.id() in line and '"run.seal"' in line]
        check(len(seals) == 1 and "FAILURE" in seals[0], seals)
        check(cleaned(second, "--apply") == [], "something is left")


@test
def a_merge_of_a_run_that_was_ended_meanwhile_is_taken_back(database):
    """Stopped by a filter of the checkout's own: main has moved, and the merge is not recorded yet."""
    run_kit.need_sandbox()
    with Writing(database) as f, kit.Folder() as folder, kit.Folder() as here, kit.Folder() as there:
        repo, _ = policies(folder, TTL_S, slow_s=1)
        first, second = two_machines(repo, here, there, f)
        base, armed = first.head("main"), first.base / "armed"
        before = (first.path / "src/app/main.c").read_text()
        stop = first.base / "stop.sh"
        stop.write_text(f"#!/bin/sh\n[ -f {armed} ] && kill -STOP $(cat {armed}) && rm {armed}\ncat\n")
        stop.chmod(0o755)
        first.git("config", "filter.stop.smudge", str(stop))
        (first.path / ".git/info").mkdir(exist_ok=True)
        (first.path / ".git/info/attributes").write_text("src/app/main.c filter=stop\n")
        with Going(first, contract()) as going:
            going.until("TEST_RESULT")
            armed.write_text(str(going.process.pid))
            end = time.monotonic() + kit.TIMEOUT_S
            while armed.exists():
                check(time.monotonic() < end and going.process.poll() is None, "the filter was not asked")
                time.sleep(0.02)
            check(first.head("main") != base, "main has not moved")
            time.sleep(TTL_S + 1.5)
            check([item["name"] for item in cleaned(second, "--apply")] == [going.id()], "not ended")
            last = leases(second)[-1]
            check(last["merge"] == {"ref": "refs/heads/main", "commit": first.head("main")}, last)
            code, out, err = going.end()
        check(code == 3 and "was ended by" in err and "not put back" not in err, code, err)
        check('"MERGE_APPLIED"' not in out and first.head("main") == base, out)
        check((first.path / "src/app/main.c").read_text() == before, "the checkout was not put back")
        check(first.git("status", "--porcelain") == "", first.git("status", "--porcelain"))


@test
def a_run_whose_machine_died_is_ended_by_another(database):
    run_kit.need_sandbox()
    with Writing(database) as f, kit.Folder() as folder, kit.Folder() as here, kit.Folder() as there:
        repo, _ = policies(folder, TTL_S, slow_s=1)
        first, second = two_machines(repo, here, there, f)
        with Going(first, contract()) as frozen:
            frozen.until("LOCK_ACQUIRED").freeze()
            # Live ones stay; a second machine that has never run anything sees what there is.
            check(cleaned(second) == [] or time.sleep(0), "a lease that has not ended")
            time.sleep(TTL_S + 1.5)
            seen = cleaned(second)
            check([(item["kind"], item["name"], item["done"]) for item in seen] == [("lease", frozen.id(), False)], seen)
            check(cleaned(second, "--apply", "--older-than", "1h") == [], "older than an hour")
            check(leases(second)[-1]["change"] != "end", leases(second))
            ended = cleaned(second, "--apply")
            check([(item["name"], item["reason"], item["done"]) for item in ended] ==
                  [(frozen.id(), "lease_expired", True)], ended)
            last = leases(second)[-1]
            check(last["change"] == "end" and last["by"]["pid"] != last["pid"] and last["by"]["host"], last)
            check([lock for lock in locks(second) if "token" in lock] == [], locks(second))
            code, _, err = frozen.end()
            check(code == 3 and "was ended by" in err, code, err)
        # The process of a run is gone: no lease has to end.  Before its first lock, too.
        for event in ("RUN_CREATED", "LOCK_ACQUIRED"):
            with Going(first, contract(f"dead_{event.lower()}")) as dead:
                dead.until(event).freeze()
                dead.process.kill()
                dead.process.wait()
                ended = cleaned(second, "--apply")
                check([(item["name"], item["reason"]) for item in ended] == [(dead.id(), "owner_dead")], ended)
        check(cleaned(second, "--apply") == [], "twice")


@test
def an_approval_releases_a_lock_on_any_machine_and_ends_its_run(database):
    run_kit.need_sandbox()
    with Writing(database) as f, kit.Folder() as folder, kit.Folder() as here, kit.Folder() as there:
        repo, key = policies(folder, 600, slow_s=2)
        first, second = two_machines(repo, here, there, f)
        for who in (first, second):  # in the clone of the run, and in another one
            with Going(first, contract()) as going:
                going.until("LOCK_ACQUIRED").freeze()
                path = next(lock["path"] for lock in locks(first) if "token" not in lock)
                refused = who.cortex("locks", "release", path)
                check(refused.returncode == 4 and f"unlock:{path}" in refused.stderr.decode(), refused)
                signing = ("approve", "--contract", first.root / "runs" / going.id() / "contract.json", "--reason",
                           "a test", "--key", key, "--scope")
                other = first.cortex(*signing, "unlock:docs", "-o", who.base / "other.json")
                signed = first.cortex(*signing, f"unlock:{path}", "-o", who.base / "unlock.json")
                check(other.returncode == signed.returncode == 0, other, signed)
                refused = who.cortex("locks", "release", path, "--approval", who.base / "other.json")
                check(refused.returncode == 4, refused)
                done = who.cortex("locks", "release", path, "--approval", who.base / "unlock.json")
                check(done.returncode == 0, done)
                last = leases(second)[-1]
                check((last["change"], last["reason"], last["run_id"]) == ("end", "approved", going.id()), last)
                code, out, err = going.end()
                check(code == 3 and "was ended by" in err and "MERGE_APPLIED" not in out, code, err)
            cleaned(first, "--apply")


HOSTILE = """#!/bin/sh
{
env | grep -E '^(CORTEX_(HOME|URL|TOKEN)|PG)' || echo no-address
for root in "$PWD/../../.." %(root)s; do
  rm -f "$root"/locks/*.lock ; touch "$root"/locks/x.lock && echo LOCK
  rm -rf "$root"/active/runs/* && echo ACTIVE
done
for port in %(ports)s; do
  python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 5)" && echo REACHED
done
%(bin)s run cleanup --apply && echo CLEANED
%(bin)s locks release src --home '%(home)s' && echo RELEASED
} > "$TMPDIR/tried" 2>/dev/null
echo "/* $(grep -cE 'LOCK|ACTIVE|REACHED|CLEANED|RELEASED' "$TMPDIR/tried") $(grep -c no-address "$TMPDIR/tried") */" >> src/app/main.c
sleep 1
echo '%(reply)s'
"""


@test
def an_agent_can_neither_take_nor_release_a_lock(database):
    run_kit.need_sandbox()
    with Writing(database) as f, kit.Folder() as folder, kit.Folder() as here, kit.Folder() as there:
        one, two = f.pair()
        text = HOSTILE % {"root": str(pathlib.Path(here) / "repo/.runtime-cache/cortexpilot"), "bin": kit.BIN,
                          "ports": f"{one.port} {two.port} {one.inner}", "home": f.url, "reply": json.dumps(reply())}
        repo, _ = policies(folder, 600, **exec_config("scripts/agent.sh"))
        repo.write("scripts/agent.sh", text, True)
        repo.commit("agent")
        first = Machine(repo, here, f, one)
        done, answer = first.run(contract(), None)
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        # Its tries are not of a kind that never works.
        with socket.create_connection(("127.0.0.1", one.port), 5):
            pass
        # The agent has said in what it changed how many of its tries worked, and that it knew no address.
        tried = first.git("show", f"{answer['final_commit']}:src/app/main.c").splitlines()[-1]
        check(tried == "/* 0 1 */", tried)
        # Nor does the token of an agent that remembers write to the journal of runs.
        for journal in (first.actor(), "run:0000000000000000"):
            status, problem = one.ask("POST", f"/api/v1/actors/{journal}/memories", {**FACT, "key": "k"})
            check(status in (400, 403, 422), status, problem)
        told = [entry["change"] for entry in leases(first)]
        check([change for change in told if change != "renew"] == ["open", "acquire", "merge", "release", "close"], told)


@test
def a_directory_has_no_leases(database):
    run_kit.need_sandbox()
    with kit.Folder() as folder:
        repo, _ = policies(folder, 600)
        done, answer = repo.run(contract(), script((GOOD_OPS, reply())))
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        check(leases(repo) == [] and locks(repo) == [], leases(repo))
    check(database is not None and os.name == "posix")


if SERVERS is None:
    kit.skip_all("no PostgreSQL server is installed", count=len(kit.collected))
main(Database)
