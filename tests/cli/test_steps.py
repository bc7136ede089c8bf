#!/usr/bin/env python3
"""Steps of agents: `cortex lattice append` and `cortex lattice import --seal`.

    test_steps.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN; cortex-writer lies sibling it
"""
import hashlib
import json
import os
import signal
import subprocess
import time

from kit import BIN, Place, TESTS, sibling, check, main, test

EXAMPLES = TESTS.parent / "examples"


def lines(*steps):
    return b"".join(json.dumps(step).encode() + b"\n" for step in steps)


def results(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def verified(p, branch):
    return p.json("lattice", "verify", branch, "--strict")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def old_hash(node):
    """The hash that a sealed node had (docs/formats/steps.md §7)."""
    source = node["event"]["__source"]
    event = {k: v for k, v in node["event"].items() if k not in ("__seal", "__source")}
    event.update({name: source[old] for name, old in (("__seal", "seal"), ("__source", "source"))
                  if old in source})
    text = source["prev_hash"] + canonical(event) + str(node["seq"]) + node["agent_id"] + \
        source["schema_version"] + ",".join(sorted(source.get("parents") or []))
    return hashlib.sha256(text.encode()).hexdigest()


# --- one step -------------------------------------------------------------------------------------

@test
def a_step_can_be_asked_about_at_once():
    with Place() as p:
        first = p.json("lattice", "append", "--agent", "desk", "--event", '{"kind":"decision"}',
                       "--set", "limit=500", "--set", "name=Anna")
        check(first["seq"] == 0 and first["node_id"] == first["hash"], first)
        said = p.ok("lattice", "append", "--agent", "desk", "--set", "limit=900")
        check(said.endswith("desk#1") and len(said.split()[0]) == 64, said)
        check(verified(p, "@agent/desk")["nodes"] == 2)
        state = p.json("lattice", "state", "@agent/desk", "@desk")["state"]
        check(state["memory"] == {"limit": 900, "name": "Anna"}, state)
        why = p.json("lattice", "why", "@agent/desk", "@desk", "limit")["changes"]
        check([change["new"] for change in why] == [900, 500], why)
        check(p.json("lattice", "heads", "@")["heads"][0]["agent"] == "desk")
        p.ok("lattice", "render", "@agent/desk")
        short = p.expect(0, "show", first["hash"][:12], out="cortex lattice show @agent/desk")
        whole = p.expect(0, "show", first["hash"], out="cortex lattice show @agent/desk")
        check(short.stdout == whole.stdout, short, whole)
        upper = p.expect(0, "show", first["hash"].upper())
        check(upper.stdout == whole.stdout, upper)
        p.ok("verify", "--home", p.home)


@test
def a_part_is_read_without_the_rest():
    with Place() as p:
        p.expect(0, "lattice", "append", "-", input=lines(
            *({"agent": "desk", "event": {"text": f"word{i}"}} for i in range(6)),
            {"agent": "other"}, {"agent": "desk", "parents": ["@desk", "@other"]}))
        for part, first in (("4", 4), ("0", 0), ("last", 0)):
            drawn = p.json("lattice", "render", "@agent/desk", "--part", part)
            whole = p.json("lattice", "render", "@agent/desk")
            lanes = [lane["agent"] for lane in drawn["lanes"]]
            seqs = sorted(row["seq"] for row in drawn["rows"] if lanes[row["lane"]] == "desk")
            check(seqs == list(range(first, 7)), part, seqs)
            if first == 0:
                check(drawn == whole, drawn, whole)
        done = p.expect(0, "lattice", "grep", "@agent/desk", "word5", "--part", "4", err="only 4 to 6 were read")
        check(b"desk#5" in done.stdout, done)
        p.expect(1, "lattice", "grep", "@agent/desk", "word1", "--part", "4")
        p.expect(0, "lattice", "show", "@agent/desk", "@desk", "--part", "6", out="desk")
        for wrong in ("x", "", "-1", "99999999999999999999"):
            p.expect(2, "lattice", "render", "@agent/desk", "--part", wrong, err="number of an entry")
        p.expect(2, "lattice", "render", "@agent/desk", "--part", "7", err="below 7")
        p.expect(2, "lattice", "show", "@", "@desk", "--part", "0", err="@agent/NAME")
        p.expect(2, "lattice", "render", "@agent/desk", "--part", "0", "--html", err="states")
        p.expect(2, "lattice", "state", "@agent/desk", "@desk", "--part", "0")


@test
def what_cannot_be_used_is_a_usage_error():
    with Place() as p:
        p.expect(2, "lattice", "append", err="--agent")
        p.expect(2, "lattice", "append", "--agent", "a", "--set", "x", err="KEY=VALUE")
        p.expect(2, "lattice", "append", "--agent", "a", "--set", "x=1", "--delta", "{}", err="mixed")
        p.expect(2, "lattice", "append", "--agent", "a", "--event", "[]", err="an object")
        p.expect(2, "lattice", "append", "--agent", "trust", "--fork", err="parents")
        for name in ("trust", "alerts", "run:0123456789abcdef", "key:abc", "home:x"):
            p.expect(1, "lattice", "append", "--agent", name, out="Cortex's own")
        p.expect(1, "lattice", "append", "--agent", "a", "--parent", "@nobody", out="no such agent")
        p.expect(2, "lattice", "append", "--agent", "a", "-", err="one step")
        p.expect(3, "lattice", "append", "missing.jsonl", err="cannot open")
        p.expect(3, "lattice", "append", "--agent", "a", "--home", p.folder / "nowhere")
        p.expect(2, "lattice", "verify", "@agent/a")


@test
def forks_and_conflicts():
    with Place() as p:
        zero = p.json("lattice", "append", "--agent", "a", "--head", "none")
        one = p.json("lattice", "append", "--agent", "a", "--head", zero["hash"])
        refused = p.json("lattice", "append", "--agent", "a", "--head", zero["hash"], code=1)
        check(refused["status"] == "conflict" and refused["reason"] == "HeadMoved", refused)
        check(refused["head"] == {"hash": one["hash"], "seq": 1}, refused)
        p.expect(1, "lattice", "append", "--agent", "a", "--parent", "#0", out="ask for a fork")
        fork = p.json("lattice", "append", "--agent", "a", "--parent", "a#0", "--fork",
                      "--fork-type", "observation")
        check(fork["seq"] == 1)
        p.ok("lattice", "append", "--agent", "a", "--fork", "--parent", one["hash"][:10],
             "--parent", fork["hash"][:10])
        check(verified(p, "@agent/a")["nodes"] == 4)
        heat = p.json("lattice", "heatmap", "@agent/a")["nodes"]
        check(heat == [{"D": 2, "node": zero["hash"]}], heat)


# --- lines ----------------------------------------------------------------------------------------

@test
def lines_are_stored_in_order_and_once():
    with Place() as p:
        steps = [{"agent": "ab"[i % 2], "key": f"k{i}", "event": {"n": i},
                  "state_delta": {"memory": {"n": i}}} for i in range(5000)]
        (p.folder / "steps.jsonl").write_bytes(lines(*steps))
        done = results(p.expect(0, "lattice", "append", "steps.jsonl", "--json"))
        check([r["seq"] for r in done] == [i // 2 for i in range(5000)])
        again = results(p.expect(0, "lattice", "append", "--json", "-", input=lines(*steps)))
        check({r["status"] for r in again} == {"duplicate"})
        check([r["hash"] for r in again] == [r["hash"] for r in done])
        check(verified(p, "@")["nodes"] == 5000)


@test
def a_bad_line_is_named_and_nothing_behind_it_is_linked_past_it():
    with Place() as p:
        done = p.expect(1, "lattice", "append", "-", "--json", err="line 4", input=lines(
            {"agent": "a"}, {"agent": "b", "state_delta": {"memroy": {}}}, {"agent": "b"},
            {"agent": "a"}))
        found = results(done)
        check([r["status"] for r in found] == ["stored", "rejected", "skipped", "stored"], found)
        check(found[1]["line"] == 2 and "memroy" in found[1]["detail"], found[1])
        p.expect(1, "lattice", "append", "-", out="line 1", input=b'{"agent":"a",')
        p.expect(1, "lattice", "append", "-", out="line 2", input=b'{"agent":"a"}\n{"a":1,"a":2}\n')


@test
def a_pipe_is_stored_as_it_comes():
    with Place() as p:
        with subprocess.Popen([BIN, "lattice", "append", "-", "--json"], env=p.env,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            for i in range(3):
                process.stdin.write(lines({"agent": "live"}))
                process.stdin.flush()
                check(json.loads(process.stdout.readline())["seq"] == i)
                check(verified(p, "@agent/live")["nodes"] == i + 1)
            process.stdin.close()
            check(process.wait(60) == 0)


# --- several writers ------------------------------------------------------------------------------

@test
def several_processes_write_one_agent_without_a_fork():
    with Place() as p:
        holder = subprocess.Popen([sibling("cortex-writer"), str(p.home)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        try:
            check(holder.stdout.readline() == "ready\n")
            steps = [lines(*({"agent": "shared", "key": f"{who}-{i}"} for i in range(60)))
                     for who in range(4)]
            writers = []
            for text in steps:
                writer = subprocess.Popen([BIN, "lattice", "append", "-", "--json"], env=p.env,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                writer.stdin.write(text)
                writer.stdin.close()
                writers.append(writer)
            found = [json.loads(line) for w in writers for line in w.stdout.read().splitlines()]
            check(all(w.wait(60) == 0 for w in writers))
            for w in writers:
                w.stdout.close()
            check(sorted(r["seq"] for r in found) == list(range(240)))
            # Of those who expect the same head, one is first.
            head = p.json("lattice", "heads", "@agent/shared")["heads"][0]["hash"]
            racers = [subprocess.Popen([BIN, "lattice", "append", "--agent", "shared", "--head", head],
                                       env=p.env, stdout=subprocess.PIPE) for _ in range(6)]
            codes = []
            for racer in racers:
                said = racer.communicate(timeout=60)[0].decode()
                codes.append(racer.returncode)
                check(racer.returncode == 0 or "expected head" in said, said)
            check(sorted(codes) == [0, 1, 1, 1, 1, 1], codes)
        finally:
            holder.stdin.close()
            holder.wait(60)
            holder.stdout.close()
        report = verified(p, "@agent/shared")
        check(report["nodes"] == 241 and report["ok"], report)
        check(p.json("lattice", "heatmap", "@agent/shared")["nodes"] == [])


@test
def what_was_said_to_be_stored_survives_a_kill():
    with Place() as p:
        for round_ in range(4):
            said = []
            process = subprocess.Popen([BIN, "lattice", "append", "-", "--json"], env=p.env,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            text = lines(*({"agent": "k", "key": f"{round_}-{i}"} for i in range(3000)))
            reader = os.fork()
            if reader == 0:
                try:
                    process.stdin.write(text)
                    process.stdin.flush()
                finally:
                    os._exit(0)
            process.stdin.close()
            said.append(process.stdout.readline())
            time.sleep(0.01 * round_)
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().split(b"\n")
            said += rest[:-1]  # the last may be half a line
            process.wait()
            process.stdout.close()
            os.waitpid(reader, 0)
            stored = [json.loads(line) for line in said if line.strip()]
            again = results(p.expect(0, "lattice", "append", "-", "--json", input=text))
            by_seq = {r["seq"]: r for r in again}
            for r in stored:
                check(by_seq[r["seq"]]["hash"] == r["hash"], r)
                check(by_seq[r["seq"]]["status"] == "duplicate", r)
        report = verified(p, "@agent/k")
        check(report["nodes"] == 4 * 3000 and report["ok"])
        p.ok("verify", "--home", p.home)


# --- names and keys --------------------------------------------------------------------------------

@test
def every_question_takes_what_render_prints():
    merge = EXAMPLES / "merge.jsonl"
    with Place() as p:
        p.ok("lattice", "import", "--seal", merge)
        head = p.json("lattice", "heads", "@agent/agent_a")["heads"]
        head = [h for h in head if h["agent"] == "agent_a"][0]
        shown = p.ok("lattice", "render", "@agent/agent_a")
        check(head["hash"][:10] in shown and "agent_a#2" in shown, shown)
        for name in (head["hash"][:10], "agent_a#2", "@agent/agent_a", "@agent_a"):
            check(p.json("lattice", "state", "@agent/agent_a", name)["node"] == head["node"], name)
            check(p.json("lattice", "show", "@agent/agent_a", name)["node"]["hash"] == head["hash"])
            check(p.json("lattice", "bisect", "@agent/agent_a", name, "/memory/x=3")["holds_at_end"])
            p.json("lattice", "why", "@agent/agent_a", name, "x")
        check(p.json("lattice", "show", merge, "#1")["node"]["node_id"] == "n1_a")
        both = p.json("lattice", "compare", merge, "n1_a", "@agent_b")
        check(both["agents"] == ["agent_a", "agent_b"], both)
        check(both["heads"] == ["n1_a", "n1_b"] and both["lca"] == "n0", both)
        check(p.json("lattice", "compare", merge, "agent_a", "agent_b")["heads"] == ["n2", "n1_b"])
        p.expect(2, "lattice", "compare", merge, "agent_a", "agent_c", err="no agent and no node")
        p.expect(2, "lattice", "state", merge, "agent_a#9", err="AGENT#SEQ")


@test
def why_takes_nested_keys_and_says_when_there_was_none():
    merge = EXAMPLES / "merge.jsonl"
    with Place() as p:
        by_name = p.json("lattice", "why", merge, "@agent_a", "beliefs.safe.confidence")["changes"]
        by_pointer = p.json("lattice", "why", merge, "@agent_a", "/beliefs/safe/confidence")["changes"]
        check(by_name == by_pointer and by_name[-1]["new"] == 0.5, by_name)
        p.expect(2, "lattice", "why", merge, "@agent_a", "safe.confidense", err="nearest: safe.confidence")
        p.expect(2, "lattice", "why", merge, "@agent_a", "tsk", err="nearest: ")
        p.expect(2, "lattice", "why", merge, "@agent_a", "zzzzzzzz", err="never there")


@test
def policy_merges_take_roles():
    with Place() as p:
        for agent, role, value in (("a", "lead", 1), ("b", "helper", 2)):
            p.ok("lattice", "append", "--agent", agent, "--set", f"x={value}", "--event",
                 json.dumps({"agent_role": role}))
        p.ok("lattice", "append", "--agent", "c", "--parent", "@a", "--parent", "@b",
             "--event", '{"merge_strategy":"policy"}')

        def x(*options):
            state = p.json("lattice", "state", "@agent/c", "@c", *options)
            return state["state"]["memory"]["x"]

        check(x("--priority", "role:lead=5", "--priority", "role:helper=1") == 1)
        check(x("--priority", "role:lead=1", "--priority", "role:helper=5") == 2)
        check(x("--priority", "role:lead=1", "--priority", "role:helper=5", "--priority", "a=9") == 1)
        check(x("--priority", "role:boss=9", "--role", "a=boss") == 1)
        p.expect(2, "lattice", "state", "@agent/c", "@c", "--role", "a", err="AGENT=ROLE")


# --- lattices of others ---------------------------------------------------------------------------

@test
def a_lattice_is_sealed_and_says_what_it_was():
    with Place() as p:
        merge = EXAMPLES / "merge.jsonl"
        p.expect(2, "lattice", "import", merge, err="--seal")
        dry = p.json("lattice", "import", "--seal", "--dry-run", merge)
        check(dry == {"agents": 3, "duplicates": 0, "stored": 0}, dry)
        p.expect(2, "lattice", "verify", "@agent/agent_a")
        check(p.json("lattice", "import", "--seal", merge)["stored"] == 4)
        check(p.json("lattice", "import", "--seal", merge)["duplicates"] == 4)
        check(verified(p, "@agent/agent_a")["ok"])
        for agent in ("system", "agent_a", "agent_b"):
            here = p.json("lattice", "state", "@", "@" + agent)["state"]
            there = p.json("lattice", "state", merge, "@" + agent)["state"]
            check(here == there, agent)
        before = {node["node_id"]: node for node in map(json.loads, merge.read_text().splitlines())}
        for entry in map(json.loads, p.ok("log", "--actor", "agent_a", "--all", "--json").splitlines()):
            check(entry["kind"] == "lattice.node", entry)
        for head in p.json("lattice", "heads", "@")["heads"]:
            node = p.json("lattice", "show", "@", head["node"])["node"]
            source = node["event"]["__source"]
            check(source["hash"] == before[source["node_id"]]["hash"] == old_hash(node), node)
        # Work goes on; then the file is no longer all that there is.
        p.ok("lattice", "append", "--agent", "agent_a")
        p.expect(1, "lattice", "import", "--seal", merge, err="AgentExists")


@test
def every_vector_that_holds_is_sealed_and_no_other():
    taken = refused = 0
    for path in sorted((TESTS / "vectors" / "lattice").rglob("*.jsonl")):
        with Place() as p:
            valid = p.run("lattice", "verify", path)
            if valid.returncode > 1:
                continue
            done = p.run("lattice", "import", "--seal", path)
            check(done.returncode == valid.returncode, path, done.stdout[-300:], done.stderr[-300:])
            if valid.returncode == 1:
                refused += 1
                check(b"nothing of it was stored" in done.stderr, path, done.stderr)
                continue
            taken += 1
            for head in p.json("lattice", "heads", path)["heads"]:
                there = p.json("lattice", "state", path, head["node"])["state"]
                here = p.json("lattice", "state", "@", "@" + head["agent"])["state"]
                check(here == there, path, head)
        if taken + refused >= 40:
            break
    check(taken > 0 and refused > 0, taken, refused)


if __name__ == "__main__":
    main()
