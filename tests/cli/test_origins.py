#!/usr/bin/env python3
"""Where texts of real histories came from: `cortex lattice why --text`.

    test_origins.py [PROGRAM] [WORD..]     real files under $CORTEX_TESTDATA/data, else skipped
"""
import json
import os
import pathlib

from kit import BIN, TESTS, Folder, check, clean_env, main, run, skip, test

EXAMPLES = TESTS.parent / "examples"
DATA = pathlib.Path(os.environ.get("CORTEX_TESTDATA", "/nonexistent")) / "data"


def ask(code, *words):
    done = run(BIN, *words, env=clean_env())
    check(done.returncode == code, words, done.returncode, done.stdout[:500], done.stderr[:500])
    return done


def answer(*words, code=0):
    return json.loads(ask(code, *words, "--json").stdout)


def imported(folder, *parts):
    source = DATA.joinpath(*parts)
    if not source.is_file():
        skip(f"$CORTEX_TESTDATA/data/{'/'.join(parts)} is not there")
    path = folder / "history.jsonl"
    ask(0, "import", "--output", path, "auto", source)
    return path, [json.loads(line) for line in path.read_text().splitlines()]


def words_of(text, count=8):
    return " ".join(text.split()[:count])


@test
def a_sentence_of_a_claude_code_session_has_its_origin():
    with Folder() as folder:
        path, nodes = imported(folder, "claude_code", "tool_heavy.jsonl")
        said = next(n for n in nodes if n["event"].get("role") == "user" and n["event"].get("text"))
        places = answer("lattice", "why", path, "@main", "--text", said["event"]["text"])["places"]
        check(places[0]["node"] == said["node_id"] and places[0]["first"], places)
        check(places[0]["how"] == "message" and places[0]["role"] == "user", places)
        result = next(n for n in nodes if n["agent_id"] == "tools"
                      and len(n["event"].get("result") or "") > 40)
        asked = words_of(result["event"]["result"])
        places = answer("lattice", "why", path, result["node_id"], "--text", asked)["places"]
        check(places[0]["how"] == "result" and places[0]["node"] == result["node_id"], places)


@test
def a_fact_of_a_tau_bench_run_came_from_a_tool():
    with Folder() as folder:
        path, nodes = imported(folder, "tau_bench", "gpt-4o-airline-tasks-00-14.json")
        result = next(n for n in nodes if "reservation_id" in str(n["event"].get("result")))
        content = result["event"]["result"]
        reservation = (json.loads(content) if isinstance(content, str) else content)["reservation_id"]
        later = max((n for n in nodes if n["agent_id"] == result["agent_id"]), key=lambda n: n["seq"])
        places = answer("lattice", "why", path, later["node_id"], "--text", reservation)["places"]
        check(places[0]["first"] and places[0]["how"] in ("result", "message", "arguments"), places)
        check(result["node_id"] in [place["node"] for place in places], places)


@test
def what_a_model_answered_in_a_trace_has_its_origin():
    with Folder() as folder:
        path, nodes = imported(folder, "any_agent_otel", "langchain.json")
        tool = next(n for n in nodes if n["event"].get("kind") == "act" and n["event"].get("result"))
        places = answer("lattice", "why", path, tool["node_id"], "--text",
                        words_of(tool["event"]["result"], 4))["places"]
        check([(place["node"], place["how"]) for place in places] == [(tool["node_id"], "result")], places)
        asked = next(n for n in nodes if n["event"].get("input"))
        told = asked["event"]["input"][-1]
        places = answer("lattice", "why", path, asked["node_id"], "--text", told["text"])["places"]
        check(places[0]["how"] == "given" and places[0]["role"] == told["role"], places)


@test
def a_tool_result_of_a_session_reaches_later_steps():
    with Folder() as folder:
        path, nodes = imported(folder, "claude_code", "tool_heavy.jsonl")
        call = next(n for n in nodes if n["event"].get("kind") == "act" and n["event"].get("call_id"))
        reach = answer("lattice", "reach", path, call["node_id"])
        result = next(n for n in nodes if n["agent_id"] == "tools"
                      and n["event"].get("call_id") == call["event"]["call_id"])
        by_call = [one["node"] for one in reach["carries"] if "call" in one["by"]]
        check(result["node_id"] in by_call, reach)
        check(reach["follows"] >= reach["total"] > 0 and not reach["cut"], reach)
        hits = answer("lattice", "grep", path, words_of(result["event"]["result"], 3))["hits"]
        check(result["node_id"] in [hit["node"] for hit in hits], hits)
        ask(1, "lattice", "grep", path, "no step of it says this")
        ask(2, "lattice", "grep", path)


@test
def what_nobody_said_is_a_usage_error_with_the_nearest():
    history = EXAMPLES / "incident.jsonl"
    nodes = [json.loads(line) for line in history.read_text().splitlines()[1:]]
    text = next(v for n in nodes for v in n["event"].values() if isinstance(v, str) and len(v) > 20)
    done = ask(2, "lattice", "why", history, "@coder", "--text", text[:15] + "~~")
    check(b"nearest is" in done.stderr or b"nothing there" in done.stderr, done.stderr)
    check(b"expected KEY, for example" in ask(2, "lattice", "why", history, "@coder").stderr)
    check(b"two questions" in ask(2, "lattice", "why", history, "@coder", "k", "--text", "x").stderr)
    check(b"empty" in ask(2, "lattice", "why", history, "@coder", "--text", "  ").stderr)
    ask(2, "lattice", "why", history, "@coder", "--text", "x", "--section", "memory")


if __name__ == "__main__":
    main()
