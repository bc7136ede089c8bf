#!/usr/bin/env python3
"""cortex watch over the folders where each agent keeps its sessions: found, archived, searched, replaced.

    test_watch_agents.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import json
import os
import pathlib
import signal
import subprocess

from kit import BIN, Folder, TESTS, check, main, run, test

SHAPES = TESTS / "vectors/imports"
VARIABLES = ("CORTEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME")
CLINE = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks/1760000000001"
ROO = ".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline/tasks/1760000000002"
# Where a session lies, the form it is made of, its name, and its format.
PLACES = [
    (".gemini/tmp/ab12/chats/session-2026-11-01T10-00-aa.json", "gemini-cli.json",
     "session-2026-11-01T10-00-aa", "gemini-cli"),
    (".gemini/tmp/ab12/chats/session-2026-11-02T10-00-bb.jsonl", "gemini-cli.jsonl",
     "session-2026-11-02T10-00-bb", "gemini-cli"),
    (".qwen/projects/-home-a/chats/q1.jsonl", "qwen-code.jsonl", "q1", "qwen-code"),
    (".cursor/projects/home-a/agent-transcripts/c1/c1.jsonl", "cursor+transcript.jsonl", "c1", "cursor"),
    (".copilot/session-state/p1/events.jsonl", "copilot-cli.jsonl", "p1", "copilot-cli"),
    (".factory/sessions/-home-a/d1.jsonl", "droid.jsonl", "d1", "droid"),
    (CLINE + "/ui_messages.json", "cline+shown.json", "1760000000001", "cline"),
    (ROO + "/ui_messages.json", "cline+shown.json", "1760000000002", "cline"),
]


class Place:
    """with Place() as p: a data directory, a home of agents, and a project."""

    def __enter__(self):
        self.folder = Folder("cortex-agents-")
        root = self.folder.__enter__()
        self.data, self.root, self.project = root / "data", root / "user", root / "user/project"
        self.project.mkdir(parents=True)
        self.env = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        self.env["HOME"] = str(self.root)
        self.command("init", "--no-repo")
        return self

    def __exit__(self, *_):
        self.folder.__exit__()

    def command(self, *args, expect=0):
        done = run(BIN, *args, "--home", self.data, env=self.env, cwd=self.project)
        check(done.returncode == expect, args, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout.decode()

    def json(self, *args):
        return json.loads(self.command(*args, "--json"))

    def put(self, path, contents):
        """Replaces a file as programs do: a new one under the old name."""
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(".new")
        new.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        new.rename(path)
        return path

    def once(self):
        return json.loads(self.command("watch", "--once", "--json").splitlines()[-1])

    def sessions(self):
        return [json.loads(line) for line in self.command("watch", "--list", "--json").splitlines()]

    def hits(self, words):
        return self.json("search", words, "--limit", 500)["hits"]


def failed_calls():
    """A session of Gemini CLI: of three calls in one message two failed; then an error."""
    def call(number, status):
        return {"id": f"c{number}", "name": "run_shell_command", "args": {"command": "false"}, "status": status,
                "result": [{"functionResponse": {"response": {"output": status}}}]}
    message = {"id": "2", "timestamp": "2026-11-03T10:00:02.000Z", "type": "gemini", "content": "",
               "toolCalls": [call(1, "error"), call(2, "success"), call(3, "cancelled")]}
    error = {"id": "3", "timestamp": "2026-11-03T10:00:03.000Z", "type": "error", "content": "no quota"}
    return json.dumps({"sessionId": "cc", "projectHash": "ab12", "startTime": "2026-11-03T10:00:00.000Z",
                       "lastUpdated": "2026-11-03T10:00:03.000Z", "messages": [message, error]})


@test
def lists_count_the_errors_that_the_history_shows():
    with Place() as p:
        for path, shape, _, _ in PLACES:
            p.put(path, (SHAPES / shape).read_bytes())
        p.put(".gemini/tmp/ab12/chats/session-2026-11-03T10-00-cc.json", failed_calls())
        asked = {"type": "text", "text": "<open>a.py</open>\n<user_query>\nwhy is it red?\n</user_query>"}
        p.put(".cursor/projects/home-a/agent-transcripts/c1/c1.jsonl",
              json.dumps({"role": "user", "message": {"content": [asked]}}) + "\n")
        unreadable = '{"type":"user","uuid":"u1","sessionId":"s","message":{"content":"x"}}\nno JSON\n'
        p.put(".claude/projects/-home-a/s.jsonl", unreadable)
        p.once()
        rows = p.json("histories")["histories"]
        for row in rows:
            picture = json.loads(p.command("lattice", "render", "@" + row["name"], "--layout-json"))
            shown = sum("failed" in node["marks"] for node in picture["rows"])
            if row["path"].endswith("-bb.jsonl"):
                continue  # it says a message again, which is one step in lists
            check(row["errors"] == shown, row["name"], row["path"], row["errors"], shown)
        titles = {row["source"]: row["title"] for row in rows}
        check(titles["cursor"] == "why is it red?", titles)
        by_path = {pathlib.Path(row["path"]).name: row["errors"] for row in rows}
        check(by_path["session-2026-11-03T10-00-cc.json"] == 2 and by_path["s.jsonl"] == 1, by_path)


@test
def sessions_of_every_agent_are_found_where_it_keeps_them():
    with Place() as p:
        for path, shape, _, _ in PLACES:
            p.put(path, (SHAPES / shape).read_bytes())
        p.put("project/.aider.chat.history.md", (SHAPES / "aider+history.md").read_bytes())
        # none of these is a session
        p.put(".gemini/tmp/ab12/logs.json", "[]")
        p.put(".cursor/projects/home-a/terminals/x.jsonl", "{}\n")
        p.put("project/other.jsonl", '{"role":"user","content":"x"}\n')
        done = p.once()
        check(done["failed"] == 0 and done["unknown"] == 0 and done["waiting_bytes"] == 0, done)
        found = {s["file"]: s for s in p.sessions()}
        wanted = [(p.root / path, name, kind) for path, _, name, kind in PLACES]
        wanted.append((p.project / ".aider.chat.history.md", "project", "aider"))
        check(set(found) == {str(path.resolve()) for path, _, _ in wanted}, sorted(found))
        listed = {h["name"]: h for h in p.json("histories")["histories"]}
        for path, name, kind in wanted:
            session = found[str(path.resolve())]
            check(session["format"] == kind and session["bytes"] == path.stat().st_size, session)
            heads = p.json("lattice", "heads", "@session/" + name)["heads"]
            check(heads, name)
            row = listed["session/" + session["session"]]
            check(row["source"] == kind and row["steps"] > 0, row)
        again = p.once()
        check(again["pieces"] == 0, again)


@test
def a_hit_in_every_session_opens_at_its_step():
    with Place() as p:
        for path, shape, _, _ in PLACES:
            p.put(path, (SHAPES / shape).read_bytes())
        p.once()
        listed = p.json("histories")["histories"]
        check(len(listed) == len(PLACES), listed)
        for row in listed:
            word = "".join(c if c.isalnum() else " " for c in row["title"]).split()[0]
            hits = p.json("search", word, "--in", "@" + row["name"])["hits"]
            check(hits, row, word)
            for hit in hits:
                p.command("lattice", "show", "@" + row["name"], hit["ref"])


@test
def a_document_that_is_replaced_is_a_new_version_and_one_history():
    path, shape, name, _ = PLACES[0]
    whole = json.loads((SHAPES / shape).read_text())
    first = {**whole, "messages": whole["messages"][:1]}
    first["messages"][0] = {**first["messages"][0], "content": "the gardener waits"}
    with Place() as p:
        p.put(path, json.dumps(first))
        p.once()
        before = [h["name"] for h in p.json("histories")["histories"]]
        check(len(p.hits("gardener")) == 1)
        p.put(path, json.dumps(whole, indent=2))
        check(p.once()["pieces"] == 1)
        check(p.hits("gardener") == [], "words of the old version are found")
        rows = p.json("histories")["histories"]
        check(len(rows) == 1 and [rows[0]["name"]] != before, rows)
        check([s["generation"] for s in sorted(p.sessions(), key=lambda s: s["generation"])] == [0, 1])
        check(p.json("lattice", "verify", "@session/" + name)["nodes"] > 1)
        # the old version is there under its id
        check("gardener" in p.command("lattice", "grep", "@" + before[0], "gardener"))
        # the same bytes again, and a longer time: nothing new
        os.utime(p.root / path)
        check(p.once()["pieces"] == 0)
        # one byte within, with the same size
        text = (p.root / path).read_bytes()
        p.put(path, text.replace(b'"sessionId"', b'"sessionID"', 1))
        check(p.once()["pieces"] == 1)


@test
def an_erased_version_leaves_no_word_in_the_index():
    path, shape, _, _ = PLACES[0]
    whole = json.loads((SHAPES / shape).read_text())
    with Place() as p:
        for text in ("the verysecretword waits", "nothing"):
            whole["messages"][0]["content"] = text
            p.put(path, json.dumps(whole))
            p.once()
            p.hits(text.split()[-1])
        p.command("erase", "0", "--actor", "sessions", "--reason", "asked for")
        check(p.hits("verysecretword") == [])
        for file in p.data.glob("cirislens.db*"):
            check(b"verysecretword" not in file.read_bytes(), file)


@test
def a_document_that_is_being_written_waits():
    path, shape, name, _ = PLACES[0]
    whole = (SHAPES / shape).read_bytes().rstrip()
    with Place() as p:
        for part in (whole[:-1], whole[:40], b"", b'"', whole + b"{"):
            p.put(path, part)
            done = p.once()
            check(done["pieces"] == 0 and done["waiting_bytes"] == len(part), part, done)
        p.put(path, whole)
        check(p.once()["pieces"] == 1)
        check(p.sessions()[0]["bytes"] == len(whole))


@test
def openhands_events_are_one_session():
    lines = (SHAPES / "openhands+events.jsonl").read_text().splitlines()
    with Place() as p:
        for i, line in enumerate(lines):
            p.put(f".openhands/sessions/conv-1/events/{i}.json", json.dumps(json.loads(line), indent=1))
        p.put(".openhands/sessions/conv-1/metadata.json", "{}")
        p.once()
        heads = p.json("lattice", "heads", "@session/conv-1")
        alone = run(BIN, "import", "auto", SHAPES / "openhands+events.jsonl", env=p.env)
        file = p.root / "alone.jsonl"
        file.write_bytes(alone.stdout)
        check([h["hash"] for h in heads["heads"]] ==
              [h["hash"] for h in p.json("lattice", "heads", file)["heads"]], "other nodes than of the lines")
        rows = p.json("histories")["histories"]
        check(len(rows) == 1 and rows[0]["source"] == "openhands", rows)
        p.json("lattice", "heads", "@" + rows[0]["name"])
        more = json.loads(lines[1].replace('"List"', '"and the gardener"').replace('"id":"b"', '"id":"z"'))
        p.put(f".openhands/sessions/conv-1/events/{len(lines)}.json", json.dumps(more))
        p.once()
        check(len(p.json("histories")["histories"]) == 1)
        check([h["history"] for h in p.hits("gardener")] == [rows[0]["name"]])


def opencode(p, tool_output):
    storage = ".local/share/opencode/storage"
    user = {"id": "msg_1", "sessionID": "ses_1", "role": "user", "time": {"created": 1760000000000}}
    agent = {"id": "msg_2", "sessionID": "ses_1", "role": "assistant", "modelID": "m1", "agent": "build",
             "time": {"created": 1760000001000, "completed": 1760000002000}}
    state = {"status": "running", "input": {"filePath": "a.txt"}} if tool_output is None else \
        {"status": "completed", "input": {"filePath": "a.txt"}, "output": tool_output}
    parts = {"msg_1": [{"id": "prt_1", "type": "text", "text": "Please\nread a.txt"}],
             "msg_2": [{"id": "prt_2", "type": "text", "text": "I read it."},
                       {"id": "prt_3", "type": "tool", "tool": "read", "callID": "call_1", "state": state}]}
    for message in (user, agent):
        p.put(f"{storage}/message/ses_1/{message['id']}.json", json.dumps(message, indent=2))
        for part in parts[message["id"]]:
            p.put(f"{storage}/part/{message['id']}/{part['id']}.json",
                  json.dumps({**part, "sessionID": "ses_1", "messageID": message["id"]}, indent=2))


@test
def opencode_messages_and_their_parts_are_one_session():
    with Place() as p:
        opencode(p, None)
        p.once()
        rows = p.json("histories")["histories"]
        check(len(rows) == 1 and rows[0]["source"] == "opencode", rows)
        check(p.hits("gardener") == [])
        opencode(p, "what the gardener wrote")
        check(p.once()["pieces"] == 1, "only the part that changed")
        hits = p.hits("gardener")
        check(len(hits) == 1 and hits[0]["history"] == rows[0]["name"], hits)
        shown = p.json("lattice", "show", "@" + hits[0]["history"], hits[0]["ref"])["node"]["event"]
        check("gardener" in json.dumps(shown), shown)
        by_name = p.json("lattice", "heads", "@session/ses_1")
        check(by_name["heads"] == p.json("lattice", "heads", "@" + rows[0]["name"])["heads"], by_name)
        steps = json.loads(p.command("lattice", "grep", "@session/ses_1", "read", "--json"))
        check(steps["hits"], steps)
        rows = p.json("histories")["histories"]
        check(len(rows) == 1 and rows[0]["steps"] == 5, rows)  # two messages, three parts


@test
def masked_documents_are_known_again():
    path, shape, name, _ = PLACES[0]
    whole = json.loads((SHAPES / shape).read_text())
    whole["messages"][0]["content"] = "key AKIAIOSFODNN7EXAMPLE"
    with Place() as p:
        p.put(path, json.dumps(whole))
        p.command("watch", "--once", "--sensitive", "mask")
        check("AKIAIOSFODNN7EXAMPLE" not in p.command("log", "--actor", "sessions", "--json"))
        check(p.hits("AKIAIOSFODNN7EXAMPLE") == [])
        done = json.loads(p.command("watch", "--once", "--sensitive", "mask", "--json").splitlines()[-1])
        check(done["pieces"] == 0, done)


@test
def a_running_watch_takes_documents_when_they_rest():
    path, shape, name, _ = PLACES[0]
    with Place() as p:
        (p.root / path).parent.mkdir(parents=True)
        process = subprocess.Popen([BIN, "watch", "--home", p.data, "--json", "--rescan", "1"], env=p.env,
                                   cwd=p.project, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            p.put(path, (SHAPES / shape).read_bytes())
            line = process.stdout.readline()
            check(json.loads(line)["file"].endswith(pathlib.Path(path).name), line)
        finally:
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
        check(process.returncode == 0, out, err)
        check(p.sessions()[0]["format"] == "gemini-cli")


main()
