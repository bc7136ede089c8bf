#!/usr/bin/env python3
"""why.py [--update | --check] PROGRAM - "why is X so?", asked of one real file of each family.

Imports the files below $CORTEX_TESTDATA/data, asks, and prints the table of docs/why.md: which steps
the answer names, without a word of what they say.  --update writes the table into the page, --check
exits 1 when the page has another one.  Without CORTEX_TESTDATA it says so and exits 77.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/why.md"
BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"
# Family, file, the question, and what is asked: a key of the state, or None for the newest text.
QUESTIONS = [
    ("Claude Code", "claude_code/tool_heavy.jsonl", "Why does the agent know what is in that file?", "files", "read"),
    ("OpenTelemetry", "any_agent_otel/langchain.json", "Why was this file written so?", "tool", "write_file"),
    ("LangGraph in Langfuse", "langfuse/langgraph-2025-08-22.json", "Why are these the messages of the graph?",
     "graph", "messages"),
    ("SWE-agent", "swe_agent/function_calling_simple.traj.json", "Why was this line edited?", "tool", "edit"),
    ("tau-bench", "tau_bench/gpt-4o-airline-tasks-00-14.json", "Why was this flight changed?", "tool",
     "update_reservation_flights"),
    ("Who&When", "who_and_when/hand_crafted/06.json", "Who put this sentence into the context?", None, None),
]
STEPS = 4


def ask(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def newest_with(nodes, section, name):
    """The newest node that wrote such a key, and the key."""
    for node in reversed(nodes):
        found = node["state_delta"].get("memory", {}).get(section, {})
        if section == "files":
            paths = sorted(path for path, entry in found.items() if name in entry)
            if paths:
                return node, f"/memory/files/{paths[0].replace('~', '~0').replace('/', '~1')}/{name}"
        elif name in found:
            return node, f"/memory/{section}/{name}" + ("" if section == "graph" else "/last")
    sys.exit(f"no node writes {section} {name}")


def sentence(nodes):
    """The beginning of the last text that came from outside of the model, as one that asks would copy it."""
    for node in nodes:
        text = node["event"].get("text", "")
        if node["agent_id"] != "importer" and len(text) > 40:
            return " ".join(text.split())[:40]
    sys.exit("no node has a text")


def shown(step, events):
    event = events[step["node"]]
    what = [event.get("kind", ""), event.get("tool", "")]
    return f"`{step['agent']}#{step['seq']}` ({' '.join(word for word in what if word)})"


def answer(program, file, section, name):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "history.jsonl"
        path.write_bytes(ask(program, "import", "auto", file))
        nodes = [json.loads(line) for line in path.read_text().splitlines()]
        events = {node["hash"]: node["event"] for node in nodes}
        if section is None:
            last = [node for node in nodes if node["agent_id"] != "importer"][-1]["hash"]
            said = json.loads(ask(program, "lattice", "why", path, last, "--text", sentence(nodes), "--json"))
            steps = said["places"]
            asked = "`why --text`"
            how = [f"{shown(step, events)}: {step['how']}" for step in steps]
        else:
            node, key = newest_with(nodes, section, name)
            changes = json.loads(ask(program, "lattice", "why", path, node["hash"], key, "--json", "--reasons"))
            steps = [step for step in changes["changes"] if step["via"] == "delta"]
            asked = f"`why {section}.{'PATH.' if section == 'files' else ''}{name}" + \
                ("`" if section != "tool" else ".last`")
            how = []
            for step in steps:
                why = ", because it says so" if step.get("text") or step.get("because") else ""
                source = step.get("source")
                came = f", from {shown(source, events)}" if source and source.get("node") in events else ""
                how.append(shown(step, events) + why + came)
        more = f"; {len(how) - STEPS} more" if len(how) > STEPS else ""
        return len(nodes), asked, "; ".join(how[:STEPS]) + more


def table(program, data):
    rows = ["| family | nodes | question | asked | steps of the answer |\n", "|---|---|---|---|---|\n"]
    for family, file, question, section, name in QUESTIONS:
        count, asked, steps = answer(program, data / file, section, name)
        rows.append(f"| {family} | {count} | {question} | {asked} | {steps} |\n")
    return "".join(rows)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if len(words) != 1:
        sys.exit(__doc__)
    if not os.environ.get("CORTEX_TESTDATA"):
        print("CORTEX_TESTDATA names no folder with real files")
        sys.exit(77)
    made = table(words[0], pathlib.Path(os.environ["CORTEX_TESTDATA"]) / "data")
    if not any(word in ("--update", "--check") for word in sys.argv):
        print(made, end="")
        return
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    if "--update" in sys.argv:
        PAGE.write_text(page[:begin] + made + page[end:])
    elif page[begin:end] != made:
        sys.exit(f"docs/why.md has another table than:\n{made}")


main()
