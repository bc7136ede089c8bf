#!/usr/bin/env python3
"""Long sessions of coding agents open in parts: what a part says is what the whole says of these lines.

    test_session_parts.py [PROGRAM] [WORD..]
"""
import contextlib
import datetime
import hashlib
import http.client
import json
import subprocess
import tarfile
import time
import urllib.parse

from kit import BIN, TESTS, Place, check, main, test

LINES = 9000
PART = 4096
BEGAN = 1_793_520_000
SUBAGENTS = {"a1": (100, 140), "a2": (4090, 4110), "a3": (8100, 8300)}


def moment(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def claude(i, began=BEGAN):
    """Four lines a turn: a person, a call, its answer, a text."""
    blocks = [f"please {i}",
              [{"type": "text", "text": f"step {i}"},
               {"type": "tool_use", "id": f"t{i}", "name": "Read", "input": {"file_path": f"/s/{i % 50}.c"}}],
              [{"type": "tool_result", "tool_use_id": f"t{i - 1}", "content": "text of it", "is_error": False}],
              [{"type": "text", "text": f"said {i}"}]]
    who = ["user", "assistant", "user", "assistant"][i % 4]
    return {"type": who, "uuid": f"u{i}", "parentUuid": f"u{i - 1}" if i else None, "sessionId": "s", "cwd": "/s",
            "timestamp": moment(began + i), "message": {"role": who, "content": blocks[i % 4]}}


def subagent(name, i, first):
    return {"type": "user" if first else "assistant", "isSidechain": True, "agentId": name, "uuid": f"{name}-{i}",
            "parentUuid": None if first else f"{name}-{i - 1}", "sessionId": "s", "timestamp": moment(BEGAN + i + 0.5),
            "message": {"role": "user" if first else "assistant", "content": f"{name} {i}"}}


def codex(i):
    if i == 0:
        return {"timestamp": moment(BEGAN), "type": "session_meta",
                "payload": {"id": "c1", "cwd": "/w", "cli_version": "1"}}
    kinds = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"word {i}"}]},
             {"type": "function_call", "call_id": f"t{i}", "name": "shell", "arguments": "{\"command\":[\"ls\"]}"},
             {"type": "function_call_output", "call_id": f"t{i - 1}", "output": "a.c"},
             {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"word {i}"}]}]
    return {"timestamp": moment(BEGAN + i), "type": "response_item", "payload": kinds[i % 4]}


def write(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as out:
        for value in values:
            out.write(json.dumps(value, separators=(",", ":")) + "\n")


def archive(p, name, values, subagents=()):
    """An archived session of that name."""
    root = p.folder / "projects"
    write(root / f"{name}.jsonl", values)
    for agent, (first, end) in dict(subagents).items():
        write(root / name / "subagents" / f"agent-{agent}.jsonl",
              [subagent(agent, i, i == first) for i in range(first, end)])
    p.ok("watch", "--once", root)


class Asked:
    """The view of a served data directory."""

    def __init__(self, p, url):
        self.token = (p.home / "token").read_text().strip()
        host, port = url.split("//")[1].rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=60)

    def __call__(self, path, code=200, **query):
        full = f"/api/v1/view/{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
        self.connection.request("GET", full, headers={"Authorization": f"Bearer {self.token}"})
        answer = self.connection.getresponse()
        body = answer.read()
        check(answer.status == code, full, answer.status, body[:400])
        return json.loads(body)

    def steps(self, name):
        """What was said and done, without what counts in the history that was opened."""
        found, at = [], 0
        while at is not None:
            page = self(f"{name}/steps", **{"from": at, "max": 200, "all": "true"})
            found += page["steps"]
            at = page["next"]
        own = {"n", "id", "col", "seq", "lane", "at"}
        return [{k: v for k, v in step.items() if k not in own} for step in found if step["agent"] != "importer"]


@contextlib.contextmanager
def served(p):
    server = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--otlp", "off", "--json"], env=p.env,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=p.folder)
    try:
        yield Asked(p, json.loads(server.stdout.readline())["url"])
    finally:
        server.terminate()
        server.communicate()


def in_order(steps):
    return sorted(json.dumps(step, sort_keys=True) for step in steps)


def window(whole, first, last):
    """The steps of those lines, and those of subagents that came between them."""
    return [s for s in whole if (first == 0 or s["t"] > BEGAN + first - 1) and
            (last == LINES - 1 or s["t"] <= BEGAN + last)]


@test
def parts_say_what_the_whole_says_of_their_lines():
    with Place() as p:
        archive(p, "long", (claude(i) for i in range(LINES)), SUBAGENTS)
        with served(p) as ask:
            extent = ask("session/long/extent")
            check(extent == {"entries": LINES, "entry": None, "part": PART, "parts": True}, extent)
            whole = ask.steps("session/long")
            check(len(whole) == LINES + sum(b - a for a, b in SUBAGENTS.values()), len(whole))
            for first in (0, 1, 2048, 4096, LINES - PART, LINES - 1):
                last = min(first + PART, LINES) - 1
                name = f"part/{first}/session/long"
                summary = ask(f"{name}/summary")
                check(summary["verified"] and summary["errors"] == 0, first, summary["findings"][:3])
                got, expected = ask.steps(name), window(whole, first, last)
                check(len(got) == len(expected), first, len(got), len(expected))
                check(in_order(got) == in_order(expected), first)


@test
def a_node_of_a_part_is_named_by_its_place_in_the_whole():
    with Place() as p:
        archive(p, "long", (claude(i) for i in range(LINES)), SUBAGENTS)
        with served(p) as ask:
            for name, entry in (("at:0:5000", 4999), ("src:u4999", 4999), ("src:u0", 0), (f"at:0:{LINES}", LINES - 1),
                                (f"at:0:{LINES + 1}", None), ("at:0:0", None), ("at:1:5", None), ("src:a1-100", None),
                                ("src:", None), ("at:0:x", None), ("f" * 64, None)):
                check(ask("session/long/extent", node=name)["entry"] == entry, name)
            for n in ("at:0:5000", "src:u4999"):
                part = ask("part/4096/session/long/node", node=n)
                whole = ask("session/long/node", node=n)
                check(part["place"] == whole["place"] == "at:0:5000", part["place"], whole["place"])
                check(part["line"] == whole["line"] == 5000, part["line"], whole["line"])
                events = [json.loads(node["event"]["text"]) for node in (part, whole)]
                for event in events:
                    del event["__seal"]
                check(events[0] == events[1], events)
            check(ask("part/4096/session/long/node", node="src:a2-4100")["place"] == "at:2:11")
            run = json.loads(ask("part/4096/session/long/node", node="#0")["event"]["text"])
            check(run["part"] == {"from": 4097, "to": 8192} and run["records"] == PART, run)


@test
def what_depends_on_the_whole_is_refused():
    with Place() as p:
        archive(p, "long", (claude(i) for i in range(200)))
        with served(p) as ask:
            for path, query in (("values", {"node": "#1"}), ("reach", {"node": "#1"}), ("heat", {"layer": "time"}),
                                ("said", {"node": "#1", "text": "x"})):
                ask(f"part/0/session/long/{path}", code=422, **query)
            hits = ask("part/100/session/long/grep", q="please")["hits"]
            check(len(hits) == 25, len(hits))
            ask("part/200/session/long/summary", code=404)
            ask("part/0/session/none/summary", code=404)
            check(ask("session/none/extent")["parts"] is False)


@test
def the_command_reads_a_part():
    with Place() as p:
        archive(p, "long", (claude(i) for i in range(5000)))
        drawn = p.json("lattice", "render", "@session/long", "--part", "4990")
        check(len(drawn["rows"]) == 11, drawn["rows"][:1])
        p.expect(0, "lattice", "grep", "@session/long", "please 4996", "--part", "last", err="only 904 to 4999 were read")
        p.expect(1, "lattice", "grep", "@session/long", "please 3600", "--part", "4000")
        p.expect(0, "lattice", "show", "@session/long", "at:0:4992", "--part", "4990", out="said 4991")
        p.expect(2, "lattice", "render", "@session/long", "--part", "5000", err="below 5000")
        p.expect(2, "lattice", "render", "@all", "--part", "0", err="@session/NAME or @run/RUN_ID")


@test
def rollouts_of_codex_have_parts():
    with Place() as p:
        archive(p, "rollout", (codex(i) for i in range(LINES)))
        with served(p) as ask:
            check(ask("session/rollout/extent")["entries"] == LINES)
            whole = ask.steps("session/rollout")
            for first in (0, 3000, LINES - PART):
                got = ask.steps(f"part/{first}/session/rollout")
                check(in_order(got) == in_order(window(whole, first, min(first + PART, LINES) - 1)), first)


def qwen(i):
    parts = [{"text": f"word {i}"}, {"functionCall": {"id": f"t{i}", "name": "ls", "args": {}}},
             {"functionResponse": {"id": f"t{i - 1}", "name": "ls", "response": {"output": "x"}}}, {"text": f"said {i}"}]
    return {"uuid": f"u{i}", "parentUuid": f"u{i - 1}" if i else None, "sessionId": "s", "timestamp": moment(BEGAN + i),
            "type": ["user", "assistant", "tool_result", "assistant"][i % 4],
            "message": {"role": "user", "parts": [parts[i % 4]]}}


def droid(i):
    if i == 0:
        return {"type": "session_start", "id": "s", "title": "t", "owner": "o", "cwd": "/w"}
    blocks = [{"type": "tool_result", "tool_use_id": f"t{i - 1}", "content": "x"}, {"type": "text", "text": f"word {i}"},
              {"type": "text", "text": f"said {i}"}, {"type": "tool_use", "id": f"t{i}", "name": "LS", "input": {}}]
    return {"type": "message", "id": f"u{i}", "timestamp": moment(BEGAN + i), "parentId": f"u{i - 1}" if i > 1 else None,
            "message": {"role": "user" if i % 4 < 2 else "assistant", "content": [blocks[i % 4]]}}


def copilot(i):
    told = [("user.message", {"content": f"word {i}"}),
            ("assistant.message", {"content": "I look", "toolRequests": [
                {"toolCallId": f"t{i}", "name": "bash", "arguments": {"command": "ls"}}]}),
            ("tool.execution_start", {"toolCallId": f"t{i - 1}", "toolName": "bash", "arguments": {"command": "ls"}}),
            ("tool.execution_complete", {"toolCallId": f"t{i - 2}", "success": True, "result": {"content": "x"}})]
    kind, data = told[i % 4] if i else ("session.start", {"sessionId": "s"})
    return {"type": kind, "id": f"u{i}", "parentId": f"u{i - 1}" if i else None, "timestamp": moment(BEGAN + i), "data": data}


def cursor(i):
    path = {"readToolCall": {"args": {"path": "/w/a.c"}}}
    told = [{"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": f"word {i}"}]}},
            {"type": "tool_call", "subtype": "started", "call_id": f"t{i}", "tool_call": path},
            {"type": "tool_call", "subtype": "completed", "call_id": f"t{i - 1}",
             "tool_call": {"readToolCall": {"args": {"path": "/w/a.c"}, "result": {"success": {"content": "x"}}}}},
            {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": f"said {i}"}]}}]
    return {**told[i % 4], "session_id": "s", "timestamp_ms": (BEGAN + i) * 1000}


@test
def other_formats_of_lines_have_parts():
    count, first = 1700, 1000
    for name, line, node in (("qwen", qwen, "src:u1500"), ("droid", droid, "src:u1500"), ("copilot", copilot, "src:u1500"),
                             ("cursor", cursor, "at:0:1501")):
        with Place() as p:
            archive(p, name, (line(i) for i in range(count)))
            with served(p) as ask:
                check(ask(f"session/{name}/extent", node=node) ==
                      {"entries": count, "entry": 1500, "part": PART, "parts": True}, name)
                expected = [s for s in ask.steps(f"session/{name}") if s["t"] >= BEGAN + first]
                got = ask.steps(f"part/{first}/session/{name}")
                check(len(got) == count - first and in_order(got) == in_order(expected), name, len(got), len(expected))


def openhands(i):
    call = {"tool_call_metadata": {"tool_call_id": f"t{i - i % 4}", "function_name": "execute_bash"}}
    told = [{"source": "agent", "action": "run", "args": {"command": f"ls {i}"}, **call},
            {"source": "agent", "observation": "run", "content": "a.c", "cause": i - 1, "extras": {"command": "ls"}, **call},
            {"source": "user", "action": "message", "args": {"content": f"word {i}"}},
            {"source": "agent", "action": "message", "args": {"content": f"said {i}"}}]
    long = {"note": "x" * 500_000} if 20 <= i < 30 else {}
    return {"id": i, "timestamp": moment(BEGAN + i)[:-1], **told[i % 4], **long}


def put_events(root, numbers):
    folder = root / "openhands" / "sessions" / "s" / "events"
    folder.mkdir(parents=True, exist_ok=True)
    for i in numbers:
        (folder / f"{i}.json").write_text(json.dumps(openhands(i), indent=1))


def put_messages(root, count):
    storage = root / "opencode" / "storage"
    for i in range(count):
        name = f"msg_{i:06d}"
        parts = [{"type": "text", "text": f"word {i}"},
                 {"type": "tool", "callID": f"t{i}", "tool": "bash",
                  "state": {"status": "completed", "input": {"command": "ls"}, "output": "a.c"}}]
        message = {"id": name, "sessionID": "s", "role": ["user", "assistant"][i % 2], "time": {"created": (BEGAN + i) * 1000}}
        for path, value in [(storage / "message" / "s" / f"{name}.json", message)] + [
                (storage / "part" / name / f"prt_{k}.json", {"id": f"prt_{k}", "messageID": name, "sessionID": "s", **part})
                for k, part in enumerate(parts[:1 + i % 2])]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))


def check_documents(ask, count, first, node):
    extent = ask("session/s/extent", node=node)
    check(extent == {"entries": count, "entry": first + 20, "part": PART, "parts": True}, extent)
    expected = [s for s in ask.steps("session/s") if s["t"] >= BEGAN + first]
    got = ask.steps(f"part/{first}/session/s")
    check(len(got) == count - first and in_order(got) == in_order(expected), len(got), len(expected))
    summary = ask(f"part/{first}/session/s/summary")
    check(summary["verified"] and summary["errors"] == 0, summary["findings"][:3])


@test
def documents_that_are_one_session_have_parts():
    count, first = 60, 30  # seven before it are read, and the first 16
    with Place() as p:
        put_events(p.folder / "w", range(count))
        p.ok("watch", "--once", p.folder / "w")
        with served(p) as ask:
            check_documents(ask, count, first, f"src:{first + 20}")
            check_documents(ask, count, first, f"at:0:{first + 21}")
            check(ask("session/s/extent", node=f"src:{count}")["entry"] is None)
        p.expect(2, "lattice", "render", "@session/s", "--part", count, err=f"below {count}")
    with Place() as p:
        put_messages(p.folder / "w", count)
        p.ok("watch", "--once", p.folder / "w")
        with served(p) as ask:
            check_documents(ask, count, first, "src:msg_000050")


@test
def one_document_is_a_line():
    with Place() as p:
        put_events(p.folder / "w", [0])
        p.ok("watch", "--once", p.folder / "w")
        with served(p) as ask:
            check(ask("session/s/extent")["entries"] == 1 and len(ask.steps("part/0/session/s")) == 1)


@test
def documents_keep_their_numbers_when_one_is_erased():
    with Place() as p:
        put_events(p.folder / "w", range(40))
        told = [json.loads(line) for line in p.ok("watch", "--once", "--json", p.folder / "w").splitlines()]
        seq = next(line["seq"] for line in told if line.get("file", "").endswith("/10.json"))
        p.ok("erase", seq, "--actor", "sessions", "--reason", "it held a secret")
        with served(p) as ask:
            check(ask("session/s/extent")["entries"] == 40)
            for name in ("session/s", "part/0/session/s", "part/5/session/s", "part/10/session/s", "part/20/session/s"):
                event = json.loads(ask(f"{name}/node", node="at:0:31")["event"]["text"])
                check(event["src_id"] == "30", name, event)
                ask(f"{name}/node", code=404, node="at:0:11")


@test
def lines_keep_their_numbers_when_a_piece_is_erased():
    with Place() as p:
        root = p.folder / "projects"
        seqs = []
        for end in (100, 200, 300):
            write(root / "s.jsonl", (claude(i) for i in range(end)))
            told = [json.loads(line) for line in p.ok("watch", "--once", "--json", root).splitlines()]
            seqs += [line["seq"] for line in told if "seq" in line]
        p.ok("erase", seqs[1], "--actor", "sessions", "--reason", "it held a secret")
        with served(p) as ask:
            check(ask("session/s/extent")["entries"] == 300)
            for first in (0, 150, 250):
                said = {json.loads(ask(f"part/{first}/session/s/node", node=f"at:0:{line}")["event"]["text"])["src_id"]
                        for line in (201, 300) if line > first}
                check(said == {f"u{line - 1}" for line in (201, 300) if line > first}, said)
                ask(f"part/{first}/session/s/node", code=404, node="at:0:180")
            check(ask("session/s/extent", node="src:u250")["entry"] == 250)
            check(ask("session/s/extent", node="src:u150")["entry"] is None)


@test
def a_line_longer_than_a_piece_is_one_line():
    with Place() as p:
        values = [claude(i) for i in range(12)]
        values[7]["message"]["content"] = [{"type": "text", "text": "x" * 3_000_000}]
        archive(p, "s", values)
        with served(p) as ask:
            check(ask("session/s/extent")["entries"] == 12)
            for first in range(12):
                steps = ask.steps(f"part/{first}/session/s")
                check(len(steps) == 12 - first, first, len(steps))


@test
def a_session_that_grows_has_more_entries():
    with Place() as p:
        archive(p, "s", (claude(i) for i in range(50)))
        with served(p) as ask:
            check(ask("session/s/extent")["entries"] == 50)
            archive(p, "s", (claude(i) for i in range(60)))
            check(ask("session/s/extent")["entries"] == 60)
            check(ask("part/55/session/s/summary")["nodes"] == 6)


def aider(i):
    """A turn as Aider writes it: three records, with a heading, a quotation and code in the answer; of each 41 turns one
    leaves its fence open. A conversation has 500 turns."""
    began = "" if i % 500 else f"""
# aider chat started at 2026-11-{1 + i // 500 % 28:02} 09:{i // 14000 % 60:02}:00

> Aider v0.86.2  
> Main model: some/model with diff edit format  

"""
    code = "".join(f"    call_{k}({i});\n" for k in range(3 + i % 29))
    fence = "" if i % 41 == 7 else ">>>>>>> REPLACE\n```\n\nDone."
    return f"""{began}#### change {i}  
#### and its tests  

## What I found in {i}

#### A step

> a quotation

```c
<<<<<<< SEARCH
{code}{fence}

> Tokens: 2.{i % 10}k sent, {100 + i % 900} received. Cost: $0.01 message, $1.20 session.  
> Applied edit to src/a{i % 40}.c  

"""


def chat(p, text):
    """The archived history of a project; what watch told, a line a time that it archived."""
    path = p.folder / "w" / "project" / ".aider.chat.history.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as out:
        out.write(text)
    told = p.ok("watch", "--once", "--json", path.parent)
    return [line for line in map(json.loads, told.splitlines()) if "seq" in line]


@test
def a_history_of_aider_has_parts():
    turns, name = 3000, "session/project"
    with Place() as p:
        chat(p, "".join(map(aider, range(turns))))
        with served(p) as ask:
            entries = ask(f"{name}/extent")["entries"]
            whole = ask.steps(name)
            check(entries == len(whole) > 2 * PART, entries, len(whole))
            for n, entry in ((0, 0), (5000, 5000), (entries - 1, entries - 1), (entries, None)):
                extent = ask(f"{name}/extent", node=f"at:0:{n}")
                check(extent == {"entries": entries, "entry": entry, "part": PART, "parts": True}, extent)
            for first in (0, 1, 2048, entries - PART, entries - 1):
                last = min(first + PART, entries) - 1
                part = f"part/{first}/{name}"
                summary = ask(f"{part}/summary")
                check(summary["verified"] and summary["errors"] == 0, first, summary["findings"][:3])
                check(summary["nodes"] == last - first + 2, summary["nodes"])
                expected = in_order(whole[first:last + 1])
                check(in_order(ask.steps(part)) == expected, first)
                for at in (first, (first + last) // 2, last):
                    told = [ask(f"{x}/node", node=f"at:0:{at}") for x in (part, name)]
                    events = [json.loads(node["event"]["text"]) for node in told]
                    for event in events:
                        del event["__seal"]
                    check(events[0] == events[1] and told[0]["place"] == f"at:0:{at}", events)
                ask(f"{part}/node", code=404, node=f"at:0:{last + 1}")
            run = json.loads(ask(f"part/2048/{name}/node", node="#0")["event"]["text"])
            check(run["part"] == {"from": 2048, "to": 2048 + PART - 1} and run["records"] == PART, run)
            check(len(ask(f"part/100/{name}/grep", q="2999")["hits"]) == 0)


@test
def a_history_of_aider_goes_on_where_it_was_archived():
    with Place() as p:
        text = "".join(map(aider, range(500, 580)))
        lines = text.splitlines(keepends=True)
        with served(p) as ask:
            for at in range(0, len(lines), 150):  # also in the middle of a fence
                chat(p, "".join(lines[at:at + 150]))
            entries = ask("session/project/extent")["entries"]
            whole = ask.steps("session/project")
            check(entries == len(whole), entries, len(whole))
            for first in range(0, entries, 13):
                got, expected = in_order(ask.steps(f"part/{first}/session/project")), in_order(whole[first:])
                check(got == expected, first, [(a, b) for a, b in zip(got, expected) if a != b][:2])


@test
def records_of_aider_keep_their_numbers_when_a_piece_is_erased():
    with Place() as p:
        told = []
        for at in range(20):
            told += chat(p, aider(2000 + at))
        with served(p) as ask:
            entries = ask("session/project/extent")["entries"]
            before = {n: ask("session/project/node", node=f"at:0:{n}") for n in range(entries)}
        for k in (15, 16):  # the second leaves its fence open
            p.ok("erase", told[k]["seq"], "--actor", "sessions", "--reason", "it held a secret")
        with served(p) as ask:
            check(ask("session/project/extent")["entries"] == entries)
            there = [n for n in range(entries) if n not in range(47, 52)]
            for name in ("session/project", "part/0/session/project", "part/48/session/project", "part/55/session/project"):
                for n in there:
                    if name.startswith("part") and n < int(name.split("/")[1]):
                        continue
                    event, was = (json.loads(node["event"]["text"]) for node in
                                  (ask(f"{name}/node", node=f"at:0:{n}"), before[n]))
                    for one in (event, was):
                        del one["__seal"]
                    check(event == was, name, n, event, was)
                ask(f"{name}/node", code=404, node="at:0:50")


@test
def a_hit_in_a_history_of_aider_opens_at_its_record():
    turn = "#### ask{0}  \n\nalpha{0}\n\n```\n> quote{0}  \n{1}omega{0}\n```\n\n> Applied edit to a{0}.c  \n\n"
    with Place() as p:
        chat(p, "# aider chat started at 2026-11-01 09:00:00\n\n" + turn.format(0, "").partition("omega0")[0])
        for i in range(1, 6):  # each piece ends in a fence
            before, _, after = turn.format(i, "").partition(f"omega{i}")
            chat(p, f"omega{i - 1}\n```\n\n> Applied edit to a{i - 1}.c  \n\n" + before)
        rows = p.json("histories")["histories"]
        check(len(rows) == 1 and rows[0]["source"] == "aider" and rows[0]["title"] == "ask0", rows)
        where = "@" + rows[0]["name"]
        for i in range(5):
            for word, kind in (("ask", "user"), ("alpha", "said"), ("quote", "said"), ("omega", "said")):
                hits = p.json("search", f"{word}{i}", "--in", where)["hits"]
                check(len(hits) == 1, word, i, hits)
                shown = p.json("lattice", "show", "@session/project", hits[0]["ref"])
                raw = shown["node"]["event"]["raw"]
                check(raw["kind"] == kind and f"{word}{i}" in raw["text"], hits, raw)
                p.expect(0, "lattice", "show", "@session/project", hits[0]["ref"], "--part", "0", out=f"{word}{i}")
        with served(p) as ask:
            ref = p.json("search", "omega3", "--in", where)["hits"][0]["ref"]
            check("~" in ref and ask("session/project/extent", node=ref)["entry"] == 3 * 3 + 2, ref)
            check(ask("session/project/extent", node="at:0:~1")["entry"] is None)


@test
def prompts_of_aider_are_opened_as_a_whole():
    with Place() as p:
        chat(p, "\n# 2026-05-03 09:00:00.5\n+go on\n+please\n")
        with served(p) as ask:
            check(ask("session/project/extent")["parts"] is False)
            check(len(ask.steps("session/project")) == 1)
        p.expect(2, "lattice", "render", "@session/project", "--part", "0", err="whole")


@test
def hooks_are_shown_in_the_part_of_their_time():
    with Place() as p:
        repo = p.folder / "repo"
        repo.mkdir()
        began = time.time() - 3000
        payload = {"session_id": "s1", "hook_event_name": "PreToolUse", "cwd": str(repo), "tool_name": "Bash",
                   "tool_input": {"command": "ls"}, "tool_use_id": "t2997"}
        p.expect(0, "hook", "claude", input=json.dumps(payload).encode())
        archive(p, "s1", (claude(i, began) for i in range(9000)))
        with served(p) as ask:
            whole = ask("session/s1/summary")["lanes"]
            check(any(lane["agent"] == "hook" for lane in whole), whole)
            for first, there in ((0, True), (2000, True), (4096, False)):
                lanes = ask(f"part/{first}/session/s1/summary")["lanes"]
                check(any(lane["agent"] == "hook" for lane in lanes) == there, first, lanes)
            hook = ask("part/0/session/s1/node", node="@hook")
            call = ask("part/0/session/s1/node", node="at:0:2998")
            check(call["n"] in [parent["n"] for parent in hook["parents"]], hook["parents"])


@test
def a_session_of_hooks_alone_has_parts():
    with Place() as p:
        repo = p.folder / "repo"
        repo.mkdir()
        for i in range(6):
            payload = {"session_id": "s1", "hook_event_name": "PreToolUse", "cwd": str(repo), "tool_name": "Bash",
                       "tool_input": {"command": f"echo {i}"}, "tool_use_id": f"t{i}"}
            p.expect(0, "hook", "claude", input=json.dumps(payload).encode())
        with served(p) as ask:
            entries = ask("session/s1/extent")["entries"]
            check(entries >= 6 and ask("session/s1/extent")["parts"], entries)
            check(ask("part/0/session/s1/summary")["nodes"] == ask("session/s1/summary")["nodes"])
            some = ask(f"part/{entries - 2}/session/s1/summary")
            check(some["nodes"] == 2 and some["verified"], some)


@test
def a_session_of_an_earlier_version_has_parts():
    with Place(init=False) as p:
        with tarfile.open(TESTS / "vectors/homes/0.2.tar.xz") as old:
            old.extractall(p.folder, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
        p.expect(0, "lattice", "render", "@session/s1", "--part", "0", out="total   7 nodes", err="0 to 5 were read")
        p.expect(0, "lattice", "render", "@session/s1", "--part", "4", out="total   3 nodes", err="4 to 5 were read")
        p.expect(2, "lattice", "render", "@session/s1", "--part", "6", err="below 6")


def gemini(i):
    """A message of Gemini CLI: a person, a thought with a call and its answer, what the program says, a text."""
    told = [{"type": "user", "content": [{"text": f"please {i}"}]},
            {"type": "gemini", "content": f"I look [{i}], \"so\"", "model": "gemini-3-pro",
             "thoughts": [{"subject": "Look", "description": f"thought {i}", "timestamp": moment(BEGAN + i)}],
             "tokens": {"input": 10 + i, "output": 3, "cached": 0, "thoughts": 1, "tool": 0, "total": 14 + i},
             "toolCalls": [{"id": f"read_file-{i}", "name": "read_file", "args": {"file_path": f"/w/{i % 50}.c"},
                            "status": "error" if i % 40 == 1 else "success", "timestamp": moment(BEGAN + i),
                            "result": [{"functionResponse": {"id": f"read_file-{i}", "name": "read_file",
                                                             "response": {"output": f"text {i}\n{{[\\"}}}]}]},
            {"type": ["info", "error"][i // 4 % 2], "content": f"note {i}"},
            {"type": "gemini", "content": f"said {i}", "thoughts": []}]
    return {"id": f"m{i}", "timestamp": moment(BEGAN + i), **told[i % 4]}


def cline(i):
    """What Cline shows, as it writes it: texts may be JSON."""
    told = [("say", "text", f"step {i}"), ("ask", "tool", json.dumps({"tool": "readFile", "path": f"{i}.c", "content": "]"})),
            ("say", "api_req_started", json.dumps({"request": "x", "tokensIn": i, "tokensOut": 2, "cost": 0.01})),
            ("say", "command", f"ls {i}"), ("say", "command_output", "a.c"), ("say", "error", f"no {i}"),
            ("say", "user_feedback", f"please {i}")]
    kind, what, text = told[i % 7]
    return {"ts": (BEGAN + i) * 1000, "type": kind, kind: what, "text": text, "partial": False}


def put_gemini(folder, values, name="session-1"):
    (folder / "chats").mkdir(parents=True, exist_ok=True)
    (folder / "chats" / f"{name}.json").write_text(json.dumps({
        "sessionId": "g1", "projectHash": "p", "startTime": moment(BEGAN), "lastUpdated": moment(BEGAN),
        "messages": list(values), "kind": "main"}, indent=2))


def put_cline(folder, values, name="task-1"):
    (folder / "tasks" / name).mkdir(parents=True, exist_ok=True)
    (folder / "tasks" / name / "ui_messages.json").write_text(json.dumps(list(values), separators=(",", ":")))


# What a session is called, how it is written, one of its records, and a name of the record 6000.
DOCUMENTS = [("session-1", put_gemini, gemini, "src:m6000"), ("task-1", put_cline, cline, "at:0:6000")]


def check_document(ask, name, count, starts):
    whole = ask.steps(f"session/{name}")
    check(len(whole) == count, name, len(whole))
    for first in starts:
        until = min(first + PART, count)
        summary = ask(f"part/{first}/session/{name}/summary")
        check(summary["verified"] and summary["errors"] == 0, name, first, summary["findings"][:3])
        got = ask.steps(f"part/{first}/session/{name}")
        expected = [s for s in whole if BEGAN + first <= s["t"] < BEGAN + until]
        check(len(got) == until - first and in_order(got) == in_order(expected), name, first, len(got), len(expected))
        for line in (first, until - 1):  # all of the event, but for the seal
            a, b = (json.loads(ask(f"{of}session/{name}/node", node=f"at:0:{line}")["event"]["text"])
                    for of in ("", f"part/{first}/"))
            check({**a, "__seal": 0} == {**b, "__seal": 0}, name, first, line, a, b)
    return whole


@test
def documents_with_a_list_of_records_have_parts():
    for name, put, value, node in DOCUMENTS:
        with Place() as p:
            put(p.folder / "w", (value(i) for i in range(LINES)))
            p.ok("watch", "--once", p.folder / "w")
            with served(p) as ask:
                extent = ask(f"session/{name}/extent", node=node)
                check(extent == {"entries": LINES, "entry": 6000, "part": PART, "parts": True}, extent)
                check(ask(f"session/{name}/extent", node="src:none")["entry"] is None)
                check(ask(f"session/{name}/extent", node=f"at:0:{LINES}")["entry"] is None)
                check_document(ask, name, LINES, (0, 1, 15, 2048, 4096, LINES - PART, LINES - 1))
                run = json.loads(ask(f"part/4096/session/{name}/node", node="#0")["event"]["text"])
                check(run["part"] == {"from": 4096, "to": 8191} and run["records"] == PART, run)
                check(("raw_top" in run) == (name == "session-1"), run.keys())
                ask(f"part/{LINES}/session/{name}/summary", code=404)
            p.expect(0, "lattice", "show", f"@session/{name}", "at:0:8990", "--part", "8980")
            p.expect(2, "lattice", "render", f"@session/{name}", "--part", LINES, err=f"below {LINES}")


def places(p):
    folder = p.home / "places"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def part_of(p, name, first):
    return p.ok("lattice", "render", f"@session/{name}", "--part", first, "--json")


@test
def places_in_a_document_are_made_again_when_they_are_missing_or_wrong():
    for name, put, value, _ in DOCUMENTS:
        with Place() as p:
            put(p.folder / "w", (value(i) for i in range(LINES)))
            p.ok("watch", "--once", p.folder / "w")
            put(p.folder / "v", (value(i) for i in range(LINES + 9)), name="other")
            p.ok("watch", "--once", p.folder / "v")
            expected = part_of(p, name, 4096)
            other = part_of(p, "other", 4096)
            files = places(p)
            check(len(files) == 2 and all(f.stat().st_mode & 0o77 == 0 for f in files), files)
            texts = [f.read_bytes() for f in files]
            own = next(i for i, text in enumerate(texts) if json.loads(text.split(b"\n", 1)[1])["items"] == LINES)

            def opens_as_before(text, why):
                files[own].write_bytes(text)
                check(part_of(p, name, 4096) == expected, name, why)
                check(files[own].read_bytes() == texts[own], name, why, "not made again")

            for at in (0, 70, len(texts[own]) // 2, len(texts[own]) - 2):
                opens_as_before(texts[own][:at] + bytes([texts[own][at] ^ 1]) + texts[own][at + 1:], at)
            opens_as_before(b"", "empty")
            opens_as_before(texts[own][:-40], "short")
            opens_as_before(texts[1 - own], "of another session")
            for change in ({"items": LINES - 16}, {"items": LINES + 1}, {"begin": 0}, {"bytes": 5}, {"seq": 0}, {"stride": 8},
                           {"end": 10 ** 12}, {"rows": []}, {"rows": None}, {"format": "cortex-session-places-2"}):
                opens_as_before(told_to_be(texts[own], change), change)
            value_of = json.loads(texts[own].split(b"\n", 1)[1])
            for rows in (value_of["rows"][1:] + [value_of["rows"][-1] + 8], [r + 1 for r in value_of["rows"]],
                         value_of["rows"][:258] + [value_of["rows"][258] + 2] + value_of["rows"][259:]):
                opens_as_before(told_to_be(texts[own], {"rows": rows}), rows[:3])
            chunks = list(reversed(value_of["chunks"]))
            opens_as_before(told_to_be(texts[own], {"chunks": chunks}), "chunks")
            files[own].unlink()
            check(part_of(p, name, 4096) == expected and files[own].read_bytes() == texts[own])
            check(part_of(p, "other", 4096) == other)


def told_to_be(text, change):
    """A file of places that says something else, with the checksum of that."""
    value = json.dumps({**json.loads(text.split(b"\n", 1)[1]), **change}, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(value).hexdigest().encode() + b"\n" + value


@test
def parts_open_without_places_on_the_disk_and_through_a_server():
    with Place() as p:
        put_gemini(p.folder / "w", (gemini(i) for i in range(LINES)))
        write(p.folder / "w" / "chats" / "session-2.jsonl", (gemini_line(i) for i in range(6000)))
        (p.home / "places").write_text("no folder")
        p.ok("watch", "--once", p.folder / "w")
        names = ("session-1", "session-2")
        expected = [part_of(p, name, 2000) for name in names]
        check((p.home / "places").read_text() == "no folder")
        with served(p):  # the command asks the server's process for what the files say
            check([part_of(p, name, 2000) for name in names] == expected)
        (p.home / "places").unlink()
        with served(p):
            check([part_of(p, name, 2000) for name in names] == expected and len(places(p)) == 3, places(p))
        check([part_of(p, name, 2000) for name in names] == expected)


@test
def a_document_that_was_replaced_is_opened_at_its_newest_version():
    for name, put, value, _ in DOCUMENTS:
        with Place() as p:
            for count in (5000, 5100):
                put(p.folder / "w", (value(i) for i in range(count)))
                told = [json.loads(line) for line in p.ok("watch", "--once", "--json", p.folder / "w").splitlines()]
                check(len(places(p)) == 1, places(p))  # that of the newest
                session = next(line["session"] for line in told if "session" in line)
                check(places(p)[0].name == session, places(p), session)
            with served(p) as ask:
                check(ask(f"session/{name}/extent")["entries"] == 5100)
                check_document(ask, name, 5100, (1004, 5099))


@test
def a_document_in_pieces_keeps_its_numbers_when_one_is_erased():
    for name, put, value, _ in DOCUMENTS[1:]:
        with Place() as p:
            long = {"data": "x" * 120_000}
            put(p.folder / "w", ({**value(i), **long} for i in range(300)))  # 36 MB: pieces of 1 MiB
            p.ok("watch", "--once", p.folder / "w")
            log = p.ok("log", "--actor", "sessions", "--last", "200", "--json").splitlines()
            seqs = [e["seq"] for e in map(json.loads, log) if e["kind"].startswith("session.")]
            check(len(seqs) > 30 and len(places(p)) == 1, len(seqs))
            with served(p) as ask:
                check_document(ask, name, 300, (0, 17, 299))
            p.ok("erase", seqs[len(seqs) // 2], "--actor", "sessions", "--reason", "it held a secret")
            with served(p) as ask:
                check(ask(f"session/{name}/extent")["entries"] == 300)
                shown = {}
                for first in (0, 100, 200):
                    steps = ask.steps(f"part/{first}/session/{name}")
                    shown[first] = {int(s["t"]) - BEGAN for s in steps}
                    check(all(i >= first for i in shown[first]), first)
                gone = set(range(300)) - shown[0]
                check(8 <= len(gone) <= 40 and max(gone) - min(gone) == len(gone) - 1, sorted(gone))
                check(shown[200] == {i for i in shown[0] if i >= 200} and shown[100] == {i for i in shown[0] if i >= 100})
                ask(f"part/0/session/{name}/node", code=404, node=f"at:0:{min(gone)}")
                ask(f"part/0/session/{name}/node", node=f"at:0:{max(gone) + 1}")


@test
def an_erased_document_has_no_parts():
    for name, put, value, _ in DOCUMENTS:
        with Place() as p:
            put(p.folder / "w", (value(i) for i in range(5000)))
            told = [json.loads(line) for line in p.ok("watch", "--once", "--json", p.folder / "w").splitlines()]
            check(len(places(p)) == 1)
            seq = next(line["seq"] for line in told if "session" in line)
            p.ok("erase", seq, "--actor", "sessions", "--reason", "it held a secret")
            p.expect(2, "lattice", "render", f"@session/{name}", "--part", "0", err="cannot be opened in parts")
            check(not places(p), "what leads to erased bytes is there", places(p))


def gemini_line(i):
    """A line of the log that newer Gemini CLI writes: messages that are repeated when more of them is known, `$set`
    with messages of which most were told, perhaps long ago, and `$rewindTo`."""
    def message(name, kind, content, call=None, result=None):
        told = {"id": name, "timestamp": moment(BEGAN + i), "type": kind, "content": content}
        if call is not None:
            told["toolCalls"] = [{"id": call, "name": "ls", "args": {"path": call}, "status": "success" if result else "executing",
                                  **({"result": [{"functionResponse": {"response": {"output": result}}}]} if result else {})}]
        return told

    if i == 0:
        return {"sessionId": "g1", "projectHash": "p", "startTime": moment(BEGAN), "lastUpdated": moment(BEGAN), "kind": "main"}
    if i % 900 == 892:
        return {"$rewindTo": "m103"}
    if i % 900 == 893:
        return message("m104", "gemini", "", "ls-104", f"long after {i}")
    if i % 900 == 898:
        return {"$set": {"lastUpdated": moment(BEGAN + i), "messages": [
            message("m103", "user", "told long ago"), message(f"new{i}", "user", f"new {i}"), message(f"m{i - 3}", "user", "told"),
            message(f"new{i}", "user", "twice"), message(f"more{i}", "gemini", "", "ls-104"),
            message(f"most{i}", "gemini", "", f"set-{i}"), {"id": "m104"}, "text"]}}
    return [message(f"m{i}", "info", f"note {i}"), message(f"m{i}", "user", [{"text": f"please {i}"}]),
            message(f"m{i}", "gemini", "", f"ls-{i}"), message(f"m{i - 1}", "gemini", "I looked", f"ls-{i - 1}", f"{i}.c"),
            {"$set": {"lastUpdated": moment(BEGAN + i)}}, message(f"m{i}", "gemini", f"said {i}")][i % 6]


def check_log(ask, count, starts):
    whole = ask.steps("session/session-2")
    for first in starts:
        until = min(first + PART, count)
        summary = ask(f"part/{first}/session/session-2/summary")
        check(summary["verified"] and summary["errors"] == 0, first, summary["findings"][:3])
        got = ask.steps(f"part/{first}/session/session-2")
        expected = [s for s in whole if BEGAN + first <= s["t"] < BEGAN + until]
        check(len(got) == len(expected) and in_order(got) == in_order(expected), first, len(got), len(expected))
    return whole


@test
def a_log_that_tells_things_again_has_parts():
    with Place() as p:
        chats = p.folder / "w" / "chats"
        write(chats / "session-2.jsonl", (gemini_line(i) for i in range(5000)))
        p.ok("watch", "--once", p.folder / "w")
        session = places(p)[0].name
        check([f.name for f in places(p)] == [session, f"{session}.ids"], places(p))
        before = [f.read_bytes() for f in places(p)]
        write(chats / "session-2.jsonl", (gemini_line(i) for i in range(LINES)))
        p.ok("watch", "--once", p.folder / "w")
        grown = [f.read_bytes() for f in places(p)]
        check(len(grown) == 2 and all(len(b) < len(g) for b, g in zip(before, grown)), "places did not go on")
        with served(p) as ask:
            check(ask("session/session-2/extent", node="src:m6001") == {"entries": LINES, "entry": 6001, "part": PART, "parts": True})
            # Lines with `$set` say no time: none is at the ends of these.
            whole = check_log(ask, LINES, (1, 5, 17, 893, 2697, 4097, LINES - PART, 8093, 8999))
            check(len(whole) == LINES + 3 * 10, len(whole))  # of each list three messages are new
            for line in (8093, 8098):
                names = [json.loads(ask(f"{of}session/session-2/node", node=f"at:0:{line + 1}")["event"]["text"])
                         for of in ("", "part/8000/")]
                check({**names[0], "__seal": 0} == {**names[1], "__seal": 0}, line)
        # What the files say is what was told, whether they went on or are made at once.
        for file in places(p):
            file.unlink()
        expected = p.ok("lattice", "render", "@session/session-2", "--part", "8000", "--json")
        check([f.read_bytes() for f in places(p)] == grown, "made at once they are others")
        own = places(p)[0]
        for change in (lambda b: b"", lambda b: b[:-1], lambda b: b[:90] + bytes([b[90] ^ 1]) + b[91:], lambda b: grown[1],
                       lambda b: with_digest(b[65:].replace(b'"lines":9000', b'"lines":9001')),
                       lambda b: with_digest(b[65:].replace(b'"seq":0', b'"seq":9')), lambda b: with_digest(b[65:] + b"\xff"),
                       lambda b: with_digest(b[65:].replace(session.encode(), session[::-1].encode()))):
            text = change(grown[0])
            check(text != grown[0])
            own.write_bytes(text)
            check(p.ok("lattice", "render", "@session/session-2", "--part", "8000", "--json") == expected)
            check(own.read_bytes() == grown[0], text[:200])
        # Ids that are missing or damaged where the session has grown: all is read again.
        for ids in (None, grown[1][:-1], with_digest(grown[1][65:].replace(b"9000", b"8999", 1))):
            own.write_bytes(before[0])
            places(p)[-1].write_bytes(ids or b"")
            check(p.ok("lattice", "render", "@session/session-2", "--part", "8000", "--json") == expected)
            check([f.read_bytes() for f in places(p)] == grown)


def with_digest(text):
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


@test
def a_log_keeps_its_numbers_when_a_piece_is_erased():
    with Place() as p:
        file, seqs = p.folder / "w" / "chats" / "session-2.jsonl", []
        for end in (3000, 3600, 5400):
            write(file, (gemini_line(i) for i in range(end)))
            told = [json.loads(line) for line in p.ok("watch", "--once", "--json", p.folder / "w").splitlines()]
            seqs += [line["seq"] for line in told if "seq" in line]
        p.ok("erase", seqs[1], "--actor", "sessions", "--reason", "it held a secret")
        for made in (True, False):  # the places are those from before, and are made without what was erased
            with served(p) as ask:
                check(ask("session/session-2/extent")["entries"] == 5400)
                for first in (2999, 3300, 3601, 5000):
                    event = json.loads(ask(f"part/{first}/session/session-2/node", node="at:0:5346")["event"]["text"])
                    check(event["src_id"] == "m5345", first, event)
                    ask(f"part/{first}/session/session-2/node", code=404, node="at:0:3302")
            if made:
                for name in places(p):
                    name.unlink()


@test
def a_log_of_one_line_has_no_parts_yet():
    with Place() as p:
        file = p.folder / "w" / "chats" / "session-2.jsonl"
        for count, parts in ((1, False), (2, True)):
            write(file, (gemini_line(i) for i in range(count)))
            p.ok("watch", "--once", p.folder / "w")
            with served(p) as ask:
                extent = ask("session/session-2/extent")
                check(extent["parts"] is parts and extent["entries"] == (2 if parts else 0), extent)


@test
def what_is_no_list_of_records_has_no_parts():
    with Place() as p:
        chats = p.folder / "projects" / "chats"
        chats.mkdir(parents=True)
        (chats / "session-1.json").write_text(json.dumps({
            "sessionId": "g1", "projectHash": "p", "startTime": moment(BEGAN), "lastUpdated": moment(BEGAN),
            "messages": {"id": "1", "timestamp": moment(BEGAN), "type": "user", "content": "hello"}}))
        p.ok("watch", "--once", p.folder / "projects")
        with served(p) as ask:
            check(ask("session/session-1/extent")["parts"] is False)
            ask("part/0/session/session-1/summary", code=501)


main()
