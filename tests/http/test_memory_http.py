#!/usr/bin/env python3
"""Memories written over HTTP and by the tools of MCP: scopes of tokens, keys of senders, what is refused.

    test_memory_http.py [PROGRAM] [WORD..]
"""
import json
import pathlib
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import BIN, Folder, check, main, run, test  # noqa: E402
from server_kit import ENV, Server  # noqa: E402

FACT = {"type": "Fact", "data": {"statement": "the limit is 500", "subject": "policy", "predicate": "is"}}
ANN = "/api/v1/actors/ann/"


class World(Server):
    def __init__(self, *options):
        super().__init__(*options)
        self.writer = self.add_token("memory:write", name="writer")
        self.reader = self.add_token("trace:read", level="full_traces", name="reader")

    def write(self, what, body, expect=200, token=None, actor="ann"):
        answer = self.ask("POST", f"/api/v1/actors/{actor}/{what}", body=body, token=token or self.writer)
        check(answer.status == expect, what, answer.status, answer.body[:400])
        return answer.json()

    def memory(self, uri, actor="ann"):
        ulid = uri.split("/")[-1].split("#")[0].split("@")[0]
        answer = self.ask("GET", f"/api/v1/memories/{ulid}?actor={actor}", token=self.reader)
        check(answer.status == 200, uri, answer.body[:400])
        return answer.json()

    def entries(self, actor="ann"):
        lines = self.command("log", "--actor", actor, "--json", "-n", "1000").splitlines()
        return [json.loads(line) for line in lines]


@test
def memories_are_written_changed_and_ended():
    with World() as s:
        made = s.write("memories", {**FACT, "tags": ["money"], "importance": 2}, 201)
        check(made["duplicate"] is False and made["uri"] and isinstance(made["entry"], int), made)
        shown = s.memory(made["uri"])
        check(shown["data"] == FACT["data"] and shown["tags"] == ["money"], shown)
        check(shown["created_by"] == "token:writer", shown)
        data = {**FACT["data"], "statement": "the limit is 600"}
        second = s.write("memories/update", {"uri": made["uri"], "data": data})
        check(second["uri"] != made["uri"], second)
        check(s.memory(made["uri"])["data"] == data)
        s.problem(409, "conflict", "POST", ANN + "memories/update", token=s.writer,
                  body={"uri": made["uri"], "data": data})
        s.write("memories/labels", {"uri": second["uri"], "tags": ["a", "b"], "importance": 4})
        check(s.memory(made["uri"])["tags"] == ["a", "b"])
        other = s.write("memories", FACT, 201)
        edge = {"src": shown["id"], "type": "corroborates", "dst": s.memory(other["uri"])["id"]}
        check(s.write("edges", edge)["entry"] is not None)
        check(s.write("edges", edge)["entry"] is None, "the edge is there already")
        check(len(s.memory(made["uri"])["edges_from"]) == 1)
        check(s.write("edges/remove", {**edge, "reason": "wrong"})["entry"] is not None)
        done = s.write("attestations", {"intent": "i1", "outcome": "success", "cited": [other["uri"]]})
        check(done["used"] == 1 and done["uri"] is None, done)
        s.write("memories/tombstone", {"uri": second["uri"], "reason": "old"})
        listed = s.ask("GET", "/api/v1/memories?actor=ann", token=s.reader).json()["memories"]
        check([m["uri"] for m in listed] == [other["uri"]], listed)
        kinds = [entry["kind"] for entry in s.entries()]
        check(kinds.count("memory.request") == 0, kinds)
        check(all(entry["created_by"] == "token:writer" for entry in s.entries()), s.entries())
        s.command("verify", "--actor", "ann")


@test
def memories_are_found_by_their_words_at_their_version():
    with World() as s:
        made = s.write("memories", FACT, 201)
        data = {**FACT["data"], "statement": "the limit is 600"}
        second = s.write("memories/update", {"uri": made["uri"], "data": data})
        other = s.write("memories", {**FACT, "data": {**data, "statement": "no limit at all"}}, 201, actor="bob")
        end = time.monotonic() + 60  # the index follows the ledger
        hits = []
        while len(hits) < 3 and time.monotonic() < end:
            hits = s.ask("GET", "/api/v1/search?q=limit", token=s.reader).json()["hits"]
        check([(hit["history"], hit["ref"]) for hit in hits] ==
              [("memory/bob", other["uri"]), ("memory/ann", second["uri"]), ("memory/ann", made["uri"])], hits)
        check({(hit["kind"], hit["source"], hit["role"]) for hit in hits} == {("memory", "memory", "Fact")}, hits)
        # as the page asks for what a hit names
        old = s.ask("GET", f"/api/v1/memories/{urllib.parse.quote(made['uri'], safe='')}?actor=ann",
                    token=s.reader).json()
        check(old["data"] == FACT["data"], old)
        one = s.ask("GET", "/api/v1/search?q=limit&history=memory/bob", token=s.reader).json()["hits"]
        check([hit["ref"] for hit in one] == [other["uri"]], one)
        listed = s.ask("GET", "/api/v1/histories", token=s.reader).json()["histories"]
        check(listed == [], listed)
        inbox = s.ask("GET", "/api/v1/inbox?q=limit", token=s.reader).json()["items"]
        check(inbox == [], inbox)
        lower = s.add_token("trace:read", level="detailed", name="lower")
        check(s.ask("GET", "/api/v1/search?q=limit", token=lower).status == 403)


@test
def a_key_is_carried_out_once():
    with World() as s:
        body = {**FACT, "key": "order-7"}
        made = s.write("memories", body, 201)
        for _ in range(3):
            again = s.write("memories", body)
            check(again == {**made, "duplicate": True}, again)
        s.problem(409, "conflict", "POST", ANN + "memories", token=s.writer,
                  body={**body, "importance": 3})
        s.problem(409, "conflict", "POST", ANN + "memories/tombstone", token=s.writer,
                  body={"uri": made["uri"], "key": "order-7"})
        # Keys belong to a sender and an actor.
        second = s.add_token("memory:write", name="second")
        check(s.write("memories", body, 201, token=second)["uri"] != made["uri"])
        check(s.write("memories", body, 201, actor="bob")["uri"] != made["uri"])
        # A refused request can be sent again.
        broken = {"uri": made["uri"][:-1] + "9", "key": "u1", "data": FACT["data"]}
        for _ in range(2):
            check(s.ask("POST", ANN + "memories/update", body=broken, token=s.writer).status in (404, 409))
        update = {"uri": made["uri"], "key": "u1", "data": {**FACT["data"], "statement": "it is 700"}}
        first = s.write("memories/update", update)
        check(s.write("memories/update", update) == {**first, "duplicate": True})
        attest = {"intent": "i", "outcome": "success", "cited": [made["uri"]], "key": "a1"}
        first = s.write("attestations", attest)
        check(s.write("attestations", attest) == {**first, "duplicate": True} and first["used"] == 1)
        # What changed nothing is once, too: the edge that was removed since does not come back.
        other = s.write("memories", {**FACT, "key": "order-8"}, 201)
        edge = {"src": s.memory(made["uri"])["id"], "type": "corroborates", "dst": s.memory(other["uri"])["id"]}
        s.write("edges", edge)
        check(s.write("edges", {**edge, "key": "e1"})["entry"] is None)
        s.write("edges/remove", edge)
        check(s.write("edges", {**edge, "key": "e1"}) == {"duplicate": True, "entry": None, "uri": None, "used": 0})
        # After a restart, and after the tables were made again.
        count = len(s.entries())
        s.stop()
        s.command("tables", "rebuild")
        s.start()
        check(s.write("memories", body) == {**made, "duplicate": True})
        check(s.write("memories/update", update)["duplicate"] is True)
        check(len(s.entries()) == count)
        s.command("verify", "--actor", "ann")


@test
def one_of_many_at_once_writes():
    with World() as s:
        answers = []

        def send():
            answers.append(s.ask("POST", ANN + "memories", body={**FACT, "key": "k"}, token=s.writer))

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(sorted(a.status for a in answers) == [200] * 7 + [201], [a.status for a in answers])
        check(len({a.json()["uri"] for a in answers}) == 1)
        check([e["kind"] for e in s.entries()] == ["write", "memory.request"] or
              sorted(e["kind"] for e in s.entries()) == ["memory.request", "write"], s.entries())


@test
def what_is_wrong_is_refused_and_changes_nothing():
    with World() as s:
        for what, body, pointer in (
                ("memories", {**FACT, "created_by": "ann"}, "/created_by"),
                ("memories", {**FACT, "now_ns": 1}, "/now_ns"), ("memories", {**FACT, "op": "raw"}, "/op"),
                ("memories", {**FACT, "key": ""}, "/key"), ("memories", {**FACT, "key": "k" * 257}, "/key"),
                ("memories", {**FACT, "key": 7}, "/key"), ("memories", [], ""),
                ("memories/tombstone", {"uri": "x", "by": "eve"}, "/by")):
            answer = s.problem(422, "invalid-request", "POST", ANN + what, body=body, token=s.writer)
            check(answer.json()["errors"][0]["pointer"] == pointer, answer.body)
        for what, body in (("memories", {"type": "Fact"}), ("memories", {"type": "Nothing", "data": {}}),
                           ("memories", {**FACT, "more": 1}), ("memories", {**FACT, "tags": "x"}),
                           ("memories", {**FACT, "tags": ["x" * 5000]}),
                           ("memories/update", {"uri": "matrix://x", "data": {}}),
                           ("edges", {"src": "x", "type": "corroborates", "dst": "y"}),
                           ("attestations", {"intent": "i", "outcome": "maybe", "cited": ["x"]}),
                           ("attestations", {"intent": "i", "outcome": "success", "cited": []})):
            s.problem(422, "invalid-request", "POST", ANN + what, body=body, token=s.writer)
        for actor in ("trust", "alerts", "batches", "otel", "sessions", "run:0123456789abcdef", "key:agent",
                      "home:x"):
            s.problem(403, "forbidden", "POST", f"/api/v1/actors/{actor}/memories", body=FACT, token=s.writer)
        for token in (s.token, s.reader):
            s.problem(403, "forbidden", "POST", ANN + "memories", body=FACT, token=token)
        s.problem(401, "unauthorized", "POST", ANN + "memories", body=FACT, token=None)
        s.problem(400, "malformed-json", "POST", ANN + "memories", body="{", token=s.writer)
        s.problem(415, "media-type", "POST", ANN + "memories", body="{}", type="text/plain", token=s.writer)
        roots = s.ask("GET", "/api/v1/roots", token=s.reader).json()
        check("ann" not in json.dumps(roots), roots)


@test
def memories_are_found_by_words():
    with World() as s:
        made = s.write("memories", {**FACT, "tags": ["money"]}, 201)["uri"]
        s.write("memories", {"type": "Fact", "data": {**FACT["data"], "statement": "no such thing"}}, 201)

        def found(query):
            answer = s.ask("GET", "/api/v1/memories?actor=ann&" + query, token=s.reader)
            check(answer.status == 200, answer.status, answer.body)
            return [m["uri"] for m in answer.json()["memories"]]

        check(found("words=LIMIT") == [made] and found("words=lim*+500") == [made])
        check(found("words=lim") == [] and found("words=limit&tag=none") == [])
        check(found("words=limit&tag=money&type=Fact") == [made])
        got = rpc(s, s.reader, "tools/call", name="search", arguments={"actor": "ann", "words": "limit"})
        check(made in got["result"]["content"][0]["text"], got)
        for wrong in ("words=%3F", "words=limit&text=x", "words=limit&after=01HF7YAT000000000000000003"):
            s.problem(422, "invalid-request", "GET", "/api/v1/memories?actor=ann&" + wrong, token=s.reader)


@test
def a_seed_over_http_and_mcp_is_that_of_the_command():
    with World() as s:
        s.write("memories", FACT, 201)
        query = {"actor": "ann", "intent": "01HF7YAT000000000000000003", "mtx": "ab" * 32, "model": "m-7"}
        told = json.loads(s.command("seed", "--actor", "ann", "--intent", query["intent"], "--mtx", query["mtx"],
                                    "--model", "m-7", "--json"))
        path = "/api/v1/seed?" + "&".join(f"{name}={value}" for name, value in query.items())
        check(s.get(path).json() == told, told)
        got = rpc(s, s.reader, "tools/call", name="seed", arguments=query)["result"]
        check(json.loads(got["content"][0]["text"]) == told, got)
        s.problem(404, "not-found", "GET", path + "&at=9")
        s.problem(404, "not-found", "GET", path.replace("ann", "nobody"))
        s.problem(422, "invalid-request", "GET", path.replace("ab" * 32, "ab"))
        s.problem(422, "invalid-parameter", "GET", "/api/v1/seed?actor=ann")


# --- MCP ----------------------------------------------------------------------------------------------

WRITERS = {"memory_write", "memory_update", "memory_tombstone", "memory_edge", "memory_attest"}


def rpc(s, token, method, **params):
    answer = s.ask("POST", "/mcp", body={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                   token=token)
    check(answer.status == 200, answer.status, answer.body[:300])
    return answer.json()


def tool_names(s, token):
    return {tool["name"] for tool in rpc(s, token, "tools/list")["result"]["tools"]}


@test
def tools_that_write_need_the_setting_and_the_scope():
    for options, offered in (((), False), (("--mcp-writes",), True)):
        with World(*options) as s:
            both = s.add_token("memory:write", "trace:read", name="both", level="full_traces")
            check(bool(tool_names(s, both) & WRITERS) == offered, tool_names(s, both))
            check(not tool_names(s, s.reader) & WRITERS, "the reader's token lacks the scope")
            arguments = {"actor": "ann", **FACT, "key": "k"}
            got = rpc(s, both, "tools/call", name="memory_write", arguments=arguments)
            if not offered:
                check(got["error"]["code"] == -32602, got)
                continue
            made = json.loads(got["result"]["content"][0]["text"])
            check(not got["result"]["isError"] and made["uri"], got)
            check(s.memory(made["uri"])["created_by"] == "token:both")
            got = rpc(s, s.reader, "tools/call", name="memory_write", arguments=arguments)
            check(got["error"]["code"] == -32602, got)
            for wrong in ({}, {**arguments, "more": 1}, {**arguments, "actor": ""}, {**arguments, "actor": 7},
                          {**arguments, "actor": "trust"}, {**arguments, "type": "Nothing", "key": "z"}):
                check(rpc(s, both, "tools/call", name="memory_write", arguments=wrong)["result"]["isError"], wrong)


@test
def the_server_over_standard_streams_writes_when_it_is_told_to():
    with Folder() as folder:
        home = folder / "home"
        check(run(BIN, "init", "--no-repo", "--segment-size", "1M", home, env=ENV, cwd=folder).returncode == 0)

        def talk(*options, calls):
            lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize",
                      "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}},
                     {"jsonrpc": "2.0", "method": "notifications/initialized"}]
            lines += [{"jsonrpc": "2.0", "id": i + 1, "method": "tools/call",
                       "params": {"name": name, "arguments": arguments}}
                      for i, (name, arguments) in enumerate(calls)]
            done = run(BIN, "mcp", "--home", home, *options, env=ENV, cwd=folder,
                       stdin="".join(json.dumps(line) + "\n" for line in lines).encode())
            check(done.returncode == 0, done.stderr)
            found = {m["id"]: m for m in map(json.loads, done.stdout.splitlines())}
            return [found[i + 1] for i in range(len(calls))]

        write = ("memory_write", {"actor": "ann", **FACT, "key": "k"})
        check(talk(calls=[write])[0]["error"]["code"] == -32602)
        first, again, found = talk("--memory-writes", calls=[write, write, ("search", {"actor": "ann"})])
        made = first["result"]["structuredContent"]["answer"]
        check(made["duplicate"] is False and again["result"]["structuredContent"]["answer"] ==
              {**made, "duplicate": True}, first, again)
        check(found["result"]["structuredContent"]["answer"]["memories"][0]["uri"] == made["uri"], found)


main()
