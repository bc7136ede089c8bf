#!/usr/bin/env python3
"""`cortex run spans`: a run as OTLP/JSON under its trace id.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib
import re

from kit import BIN, Folder, check, main, run, test
from run_kit import GOLDEN, GOOD_OPS, SCENARIOS, Repo, clean_env, contract, reply, sandboxed, script


def spans_of(bundle, *options):
    done = run(BIN, "run", "spans", bundle, *options, env=clean_env(), cwd="/")
    check(done.returncode == 0, done.stderr)
    return done.stdout


def attributes(span):
    return {one["key"]: one["value"]["stringValue"] for one in span["attributes"]}


def read(text):
    value = json.loads(text)
    (resource,) = value["resourceSpans"]
    check(resource["resource"]["attributes"][0]["value"] == {"stringValue": "cortex"}, resource)
    return resource["scopeSpans"][0]["spans"]


@test
def every_golden_run_is_one_trace():
    for name in SCENARIOS:
        bundle = GOLDEN / name / "bundle"
        text = spans_of(bundle)
        check(spans_of(bundle) == text, name, "ids change")
        spans = read(text)
        events = [json.loads(line) for line in (bundle / "events.jsonl").read_text().splitlines()]
        trace = (bundle / "trace/trace_id.txt").read_text().strip()
        check({span["traceId"] for span in spans} == {trace}, name)
        ids = [span["spanId"] for span in spans]
        check(len(set(ids)) == len(ids) and all(re.fullmatch("[0-9a-f]{16}", i) for i in ids), ids)
        root = spans[0]
        check("parentSpanId" not in root and root["name"] == "cortex.run", root)
        check(all(span["parentSpanId"] in ids for span in spans[1:]), name)
        manifest = json.loads((bundle / "manifest.json").read_text())
        failed = manifest["status"] != "SUCCESS"
        check(root["status"] == {"code": 2 if failed else 1}, root["status"])
        check(attributes(root).get("error.type") == manifest.get("failure_reason"), root)
        states = [s for s in spans if s["name"].startswith("cortex.state ")]
        moves = [e for e in events if e["event_type"] == "STATE_TRANSITION"]
        check(len(states) == len(moves) + 1, name, len(states), len(moves))
        check([attributes(s)["cortex.state"] for s in states[:-1]]
              == [e["payload"]["from"] for e in moves], name)
        for span in spans:
            check(int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
                  <= int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"]), span)
        tools = [s for s in spans if s["name"].startswith("execute_tool ")]
        check(len(tools) == sum(e["event_type"] == "TOOL_INVOCATION" for e in events), name)


@sandboxed
def tool_calls_belong_to_their_state():
    with Folder() as folder:
        repo = Repo(folder)
        calls = [{"tool": "shell", "call": "c-1"}, {"tool": "web \u202e"}]
        _, answer = repo.run(contract(), script((GOOD_OPS, reply(), calls)))
        out = pathlib.Path(folder) / "spans.json"
        check(spans_of(answer["bundle"], "--output", out) == b"", "also on standard output")
        spans = read(out.read_text())
        tools = [s for s in spans if s["name"].startswith("execute_tool ")]
        check([attributes(s)["gen_ai.tool.name"] for s in tools] == ["shell", "web \u202e"], tools)
        check(attributes(tools[0])["gen_ai.tool.call.id"] == "c-1", tools[0])
        by_id = {span["spanId"]: span for span in spans}
        check({by_id[s["parentSpanId"]]["name"] for s in tools} == {"cortex.state S2"}, tools)
        gates = {attributes(event)["cortex.gate"] for event in spans[0]["events"]}
        check({"policy", "diff", "tests"} <= gates, gates)


@test
def a_folder_without_events_is_an_error():
    with Folder() as folder:
        done = run(BIN, "run", "spans", str(folder), env=clean_env(), cwd="/")
        check(done.returncode == 3 and done.stdout == b"", done)


if __name__ == "__main__":
    main()
