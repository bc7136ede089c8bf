#!/usr/bin/env python3
"""A plain reading of docs/formats/lattice.md in Python: the peer of benchmark L1.

lattice_model.py FILE     loads and verifies JSONL, prints nodes, errors and nodes per second

It does the work the program does (strict JSON with duplicate names refused, fields, hashes, seals, parents, the
three invariants, topological order, cycles, times) and counts findings instead of wording them.
"""
import hashlib
import heapq
import json
import os
import sys
import time

GENESIS = {"", "GENESIS", "0" * 64}
FORKS = {None, "natural", "observation", "injection"}
SECTIONS = {"memory": dict, "beliefs": dict, "goals": list, "context_stack": list}


def strict(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name")
    return found


def refuse(literal):
    raise ValueError(literal)


def encodable(*texts):
    for text in texts:
        if not isinstance(text, str):
            return False
        text.encode()
    return True


def usable(node):
    delta = node["state_delta"]
    return (encodable(node["node_id"], node["agent_id"], node["prev_hash"], node["hash"],
                      *(node.get("parents") or ()))
            and type(node["seq"]) is int and 0 <= node["seq"] < 2 ** 63
            and type(node["timestamp"]) in (int, float) and -1e300 < node["timestamp"] < 1e300
            and isinstance(node["event"], dict) and isinstance(delta, dict)
            and all(isinstance(delta[name], kind) for name, kind in SECTIONS.items() if name in delta)
            and "," not in node["node_id"] and node["node_id"] and node["agent_id"]
            and node.get("fork_type") in FORKS)


def load(path):
    nodes, errors = {}, 0
    with open(path, "rb") as lines:
        for line in lines:
            node = json.loads(line.decode("utf-8"), object_pairs_hook=strict, parse_constant=refuse)
            if not usable(node) or node["node_id"] in nodes:
                errors += 1
                continue
            nodes[node["node_id"]] = node
    return nodes, errors


def node_hash(node):
    text = "".join((node["prev_hash"],
                    json.dumps(node["event"], sort_keys=True, separators=(",", ":")),
                    str(node["seq"]), node["agent_id"], node.get("schema_version", "2.0.0"),
                    ",".join(sorted(node.get("parents") or ()))))
    return hashlib.sha256(text.encode()).hexdigest()


def seal(node):
    text = json.dumps({"fork_type": node.get("fork_type"), "state_delta": node["state_delta"],
                       "timestamp": node["timestamp"]}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_branch(steps, nodes):
    errors = 0
    first = min(steps)
    for seq, step in steps.items():
        step.sort(key=lambda node: (node["timestamp"], node["node_id"]))
        errors += sum(not node.get("fork_type") for node in step[1:])
        for node in step:
            parents = [nodes[p] for p in node.get("parents") or () if p in nodes]
            if seq == first:
                good = (any(p["hash"] == node["prev_hash"] for p in parents) if parents
                        else node["prev_hash"] in GENESIS)
            else:
                good = any(p["hash"] == node["prev_hash"] and p in parents
                           for p in steps.get(seq - 1, ()))
            errors += not good
            errors += sum(node["timestamp"] < p["timestamp"] for p in parents)
    return errors


def topological(nodes):
    waiting, children = {}, {}
    for node_id, node in nodes.items():
        parents = node.get("parents") or ()
        waiting[node_id] = sum(p in nodes for p in parents)
        for parent in parents:
            children.setdefault(parent, []).append(node_id)
    ready = [(nodes[n]["timestamp"], n) for n, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, node_id = heapq.heappop(ready)
        order.append(node_id)
        for child in children.get(node_id, ()):
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, (nodes[child]["timestamp"], child))
    return order


def verify(nodes):
    errors = 0
    branches = {}
    for node in nodes.values():
        errors += node_hash(node) != node["hash"]
        if "__seal" in node["event"]:
            errors += seal(node) != node["event"]["__seal"]
        branches.setdefault(node["agent_id"], {}).setdefault(node["seq"], []).append(node)
        parents = node.get("parents") or ()
        errors += sum(parent not in nodes for parent in parents)
        errors += len(set(parents)) != len(parents)
    errors += sum(check_branch(steps, nodes) for steps in branches.values())
    return errors + (len(topological(nodes)) != len(nodes))


def main(path):
    clock = time.process_time if os.environ.get("CX_BENCH_CLOCK") == "cpu" else time.perf_counter
    start = clock()
    nodes, errors = load(path)
    errors += verify(nodes)
    seconds = clock() - start
    print(f"{len(nodes)} nodes, {errors} errors, {len(nodes) / seconds:.0f} nodes/s")


main(sys.argv[1])
