#!/usr/bin/env python3
"""Conversations in the database of Cursor's editor, read by `cortex import`; the file may be hostile.

    test_cursor_store.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN
"""
import hashlib
import json
import os
import random
import sqlite3

from kit import BIN, Folder, check, main, run, test

TABLE = "CREATE TABLE {} (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
MS = 1760000000000


def bubble(number, kind, text="", **more):
    return {"_v": 3, "type": kind, "bubbleId": f"b{number}", "text": text, **more}


def tool(name, args, status="completed", **more):
    return {"toolFormerData": {"tool": 5, "toolCallId": f"call_{name}", "name": name, "status": status,
                               "rawArgs": json.dumps(args), **more}}


BUBBLES = [
    bubble(1, 1, "Raise the refund limit", createdAt="2025-10-09T08:53:20.000Z"),
    bubble(2, 2, "", createdAt="2025-10-09T08:53:21.000Z", thinking={"text": "The file has it."}),
    bubble(3, 2, "", createdAt="2025-10-09T08:53:22.000Z", modelInfo={"modelName": "model-1"},
           tokenCount={"inputTokens": 120, "outputTokens": 7},
           **tool("read_file", {"target_file": "limits.json"}, result=json.dumps({"contents": "limit: 500"}))),
    bubble(4, 2, "", timingInfo={"clientStartTime": MS + 3000},
           **tool("edit_file", {"target_file": "limits.json"}, status="error", result=json.dumps({"error": "denied"}))),
    bubble(5, 2, "It is 900 now.", createdAt="2025-10-09T08:53:24.000Z", tokenCount={"inputTokens": 0, "outputTokens": 0}),
]


class Store:
    """with Store() as s: an empty database with Cursor's tables."""

    def __enter__(self):
        self.folder = Folder("cortex-cursor-")
        self.root = self.folder.__enter__()
        self.path = self.root / "state.vscdb"
        self.db = sqlite3.connect(self.path)
        return self

    def __exit__(self, *_):
        self.db.close()
        self.folder.__exit__()

    def tables(self):
        for name in ("ItemTable", "cursorDiskKV"):
            self.db.execute(TABLE.format(name))

    def put(self, key, value, table="cursorDiskKV"):
        value = value if isinstance(value, (str, bytes)) or value is None else json.dumps(value)
        self.db.execute(f"INSERT INTO {table} VALUES (?, ?)", (key, value))

    def conversation(self, name, bubbles, title, **more):
        self.put(f"composerData:{name}", {
            "_v": 10, "composerId": name, "name": title, "createdAt": MS, "modelConfig": {"modelName": "m"},
            "fullConversationHeadersOnly": [{"bubbleId": b["bubbleId"], "type": b["type"]} for b in bubbles], **more})
        for b in bubbles:
            self.put(f"bubbleId:{name}:{b['bubbleId']}", b)

    def run(self, code=0, *options):
        self.db.commit()
        done = run(BIN, "import", "auto", self.path, *options, env=dict(os.environ))
        check(done.returncode == code, done.returncode, done.stderr[-1000:], done.stdout[-500:])
        return done

    def nodes(self, code=0):
        lines = [json.loads(line) for line in self.run(code).stdout.splitlines()]
        check(lines[0]["agent_id"] == "importer" and lines[0]["event"]["records"] == len(lines) - 1)
        return lines[1:]


def events(nodes):
    return [node["event"] for node in nodes]


@test
def conversations_are_read_in_their_order():
    with Store() as s:
        s.tables()
        s.put("composer.composerData", {"allComposers": []}, "ItemTable")
        s.conversation("aa", BUBBLES, "Limits")
        s.conversation("bb", [bubble(9, 1, "Another one")], "Other", createdAt=MS + 60000)
        nodes = s.nodes()
        got = events(nodes)
        check([e["kind"] for e in got] ==
              ["state", "input", "reason", "act", "act", "reason", "state", "input"], [e["kind"] for e in got])
        check(got[0]["name"] == "Limits" and got[0]["session"] == "aa" and got[0]["model"] == "m")
        check(got[1]["text"] == "Raise the refund limit" and got[1]["src_id"] == "b1" and nodes[1]["agent_id"] == "user")
        check(got[2]["thinking"] == "The file has it.")
        check(got[3]["tool"] == "read_file" and got[3]["arguments"] == {"target_file": "limits.json"}, got[3])
        check(json.loads(got[3]["result"]) == {"contents": "limit: 500"} and got[3]["model"] == "model-1")
        check(got[3]["tokens"] == {"input": 120, "output": 7}, got[3]["tokens"])
        check(got[4]["status"] == "error" and got[4]["t_ns"] == (MS + 3000) * 1000000, got[4])
        check("usage" not in got[5] and got[5]["text"] == "It is 900 now.")
        check(nodes[5]["agent_id"] == "cursor" and nodes[7]["agent_id"] == "user#2", nodes[7]["agent_id"])
        file = nodes[3]["state_delta"]["memory"]
        check(file["call"]["call_read_file"]["status"] == "ok", file)
        again = s.run().stdout
        check(again == s.run().stdout)
        lattice = s.root / "out.jsonl"
        lattice.write_bytes(again)
        check(run(BIN, "lattice", "verify", lattice, "--strict").returncode == 0)


@test
def nothing_is_left_out_in_silence():
    with Store() as s:
        s.tables()
        named = [bubble(1, 1, "there"), bubble(2, 2, "gone"), bubble(3, 2, "broken"), bubble(4, 2, "empty"),
                 bubble(5, 2, "long"), bubble(6, 2, "text")]
        s.conversation("aa", named, "Holes")
        s.db.execute("DELETE FROM cursorDiskKV WHERE key = 'bubbleId:aa:b2'")
        s.put("bubbleId:aa:b3", '{"type":2,"text":"x"},"composerId":"bb"')
        s.put("bubbleId:aa:b4", None)
        s.db.execute("INSERT INTO cursorDiskKV VALUES ('bubbleId:aa:b5', zeroblob(67108865))")
        s.put("bubbleId:aa:b6", '{"type":2,\n"text":"in\\nlines"\r\n}')
        s.put("bubbleId:aa:b7", bubble(7, 2, "said, but in no list"))
        s.put("bubbleId:aaa:b8", bubble(8, 2, "of a conversation that is not there"))
        got = events(s.nodes())
        texts = [e.get("text") for e in got]
        check(texts == ["Holes", "there", "a message is missing: it is not there", "a message is missing: it is no JSON",
                        "a message is missing: it is empty", "a message is missing: it has 67108865 bytes",
                        "in\nlines", "said, but in no list"], texts)
        check([e["src_id"] for e in got[1:]] == [f"b{i}" for i in range(1, 8)])


@test
def old_forms_are_read():
    with Store() as s:
        s.tables()
        s.put("workbench.panel.aichat.view.aichat.chatdata", {"tabs": [
            {"tabId": "t1", "chatTitle": "A chat", "bubbles": [{"type": "user", "text": "hello"},
                                                               {"type": "ai", "rawText": "good day"}]},
            {"chatTitle": "Nameless", "bubbles": [{"type": "ai", "text": "x"}]}, 7]}, "ItemTable")
        s.put("composerData:old", {"composerId": "old", "createdAt": MS, "conversation": [
            bubble(1, 1, "inside"), bubble(2, 2, "answer"), bubble(1, 1, "again")]})
        nodes = s.nodes()
        said = [(node["agent_id"].split("#")[0], node["event"].get("text")) for node in nodes
                if node["event"]["kind"] in ("input", "reason")]
        check(said == [("user", "inside"), ("cursor", "answer"), ("user", "hello"), ("cursor", "good day"),
                       ("cursor", "x")], said)


@test
def the_file_is_not_changed_and_its_log_is_not_touched():
    with Store() as s:
        s.db.execute("PRAGMA journal_mode=WAL")
        s.tables()
        s.conversation("aa", BUBBLES, "Limits")
        s.db.commit()
        s.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        s.put("bubbleId:aa:b9", bubble(9, 2, "only in the log"))
        s.db.commit()
        before = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in s.root.iterdir()}
        got = events(s.nodes())
        check("only in the log" not in [e.get("text") for e in got])
        after = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in s.root.iterdir()}
        check(before == after, before, after)


@test
def other_databases_are_refused():
    with Store() as s:
        s.db.execute("CREATE TABLE message (id TEXT, data TEXT)")
        check(b"without conversations of Cursor" in s.run(3).stderr)
    with Store() as s:
        s.tables()
        check(b"without conversations of Cursor" in s.run(3).stderr)


@test
def a_hostile_schema_is_not_run():
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT 'composerData:' || n, '{}' FROM c"
    for sql in (f"CREATE VIEW cursorDiskKV(key, value) AS {endless}",
                "CREATE VIRTUAL TABLE cursorDiskKV USING fts5(key, value)",
                "CREATE TABLE cursorDiskKV (key TEXT, raw TEXT, value GENERATED ALWAYS AS (raw || raw) VIRTUAL)",
                "CREATE TABLE cursorDiskKV (other TEXT)",
                "CREATE TABLE cursorDiskKV (key TEXT, value BLOB) STRICT",
                "CREATE TABLE cursordiskkv (key, value)"):
        with Store() as s:
            s.db.execute(sql)
            done = s.run(3)
            check(b"state.vscdb" in done.stderr and b"internal" not in done.stderr, done.stderr)


@test
def a_table_without_an_index_still_answers():
    with Store() as s:
        s.db.execute("CREATE TABLE cursorDiskKV (key TEXT, value BLOB)")
        s.conversation("aa", BUBBLES, "Limits")
        check(len(s.nodes()) == 6)


@test
def damaged_files_are_refused_or_read():
    with Store() as s:
        s.tables()
        for i in range(40):
            s.conversation(f"c{i}", BUBBLES, "Limits")
        s.db.commit()
        whole = s.path.read_bytes()
        dice = random.Random(20)
        for size in (16, 99, 100, 512, 4096, len(whole) // 2):
            s.path.write_bytes(whole[:size])
            done = run(BIN, "import", "auto", s.path)
            check(done.returncode in (0, 1, 3), size, done.returncode, done.stderr)
        for _ in range(60):
            broken = bytearray(whole)
            for _ in range(dice.choice((1, 20, 400))):
                broken[dice.randrange(16, len(broken))] = dice.randrange(256)
            s.path.write_bytes(broken)
            done = run(BIN, "import", "auto", s.path)
            check(done.returncode in (0, 1, 3), done.returncode, done.stderr)
            check(done.returncode != 3 or b"state.vscdb" in done.stderr, done.stderr)
            check(b"tables rebuild" not in done.stderr, done.stderr)


@test
def limits_and_streams_are_said():
    with Store() as s:
        s.tables()
        s.conversation("aa", [bubble(i, 2, "x" * 1000) for i in range(50)], "Long")
        check(b"more bytes than can be read" in s.run(3, "--max-bytes", "20000").stderr)
        with open(s.path, "rb") as stream:
            done = run(BIN, "import", "auto", "-", stdin=stream.read())
        check(done.returncode == 3 and b"name the file" in done.stderr, done.stderr)


main()
