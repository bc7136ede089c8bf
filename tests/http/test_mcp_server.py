#!/usr/bin/env python3
"""The MCP server, `cortex mcp` and POST /mcp: what a client sees, what a hostile one does.

    test_mcp_server.py [PROGRAM] [WORD..]
"""
import base64
import hashlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import BIN, TESTS, Folder, check, main, run, test  # noqa: E402
from run_kit import GOLDEN, Repo, golden  # noqa: E402

ENV = {k: v for k, v in os.environ.items()
       if k not in ("CORTEX_HOME", "CORTEX_ACTOR", "XDG_DATA_HOME", "CORTEXPILOT_RUNTIME_ROOT")}
TRACES = TESTS.parent / "examples" / "traces"
WAIT_S = 120
TOOLS = {"verify", "why", "state", "diff", "search", "prove", "show", "bisect", "heads", "runs",
         "events", "roots", "seed"}
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"


def cortex(home, *words):
    done = run(BIN, *words, env={**ENV, "CORTEX_HOME": str(home), "CORTEX_ACTOR": "ann"}, cwd=home.parent)
    check(done.returncode == 0, words, done.stderr)
    return done.stdout.decode()


def make_home(folder):
    home = folder / "home"
    cortex_init = run(BIN, "init", "--no-repo", "--segment-size", "1M", home, env=ENV, cwd=folder)
    check(cortex_init.returncode == 0, cortex_init.stderr)
    cortex(home, "memory", "write", "Fact",
           '{"statement":"the refund limit is 500","subject":"policy","predicate":"is"}', "--tag", "money")
    cortex(home, "key", "add", TRACES / "trust.json")
    cortex(home, "record", TRACES / "beta.json")
    return home


def digest(folder):
    """Every file of a home: its name, its bytes; without what SQLite notes about readers of the index."""
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*"))
            if p.is_file() and p.name not in ("cirislens.db-shm", "cirislens.db-wal")}


class Client:
    """Speaks to `cortex mcp` by lines; answers are matched by id."""

    def __init__(self, home, *options, version="2025-06-18", begin=True):
        self.process = subprocess.Popen([BIN, "mcp", "--home", str(home), *options],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=ENV, cwd=home.parent)
        self.number, self.kept = 0, {}
        if begin:
            self.info = self.ask("initialize", protocolVersion=version, capabilities={},
                                 clientInfo={"name": "test", "version": "0"})["result"]
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def receive(self):
        line = self.process.stdout.readline()
        check(line.endswith(b"\n"), "no answer", line, self.process.poll())
        return json.loads(line)

    def ask(self, method, **params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method}
        if params:
            message["params"] = params
        self.send(message)
        while self.number not in self.kept:
            got = self.receive()
            self.kept[got["id"]] = got
        return self.kept.pop(self.number)

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def answer(self, tool, **arguments):
        result = self.call(tool, **arguments)
        check(result["isError"] is False, tool, result)
        return result["structuredContent"]["answer"]

    def refused(self, tool, **arguments):
        result = self.call(tool, **arguments)
        check(result["isError"] is True and "structuredContent" not in result, tool, result)
        return result["content"][0]["text"]

    def end(self):
        out, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, out, err


@test
def every_protocol_revision_gets_its_own_fields():
    with Folder() as folder:
        home = make_home(folder)
        for version in VERSIONS:
            with Client(home, version=version) as client:
                check(client.info["protocolVersion"] == version, client.info)
                check(set(client.info["capabilities"]) == {"tools", "resources", "prompts"})
                tools = client.ask("tools/list")["result"]["tools"]
                check({tool["name"] for tool in tools} == TOOLS, tools)
                for tool in tools:
                    schema = tool["inputSchema"]
                    check(schema["type"] == "object" and not schema["additionalProperties"], tool)
                    check(set(schema["required"]) <= set(schema["properties"]), tool)
                    check(all("type" in p and p["description"] for p in schema["properties"].values()), tool)
                    check(("annotations" in tool) == (version != "2024-11-05"), tool)
                    check(("outputSchema" in tool) == (version >= "2025-06-18"), tool)
                    if "annotations" in tool:
                        check(tool["annotations"]["readOnlyHint"] is True, tool)
                result = client.call("roots")
                check(("structuredContent" in result) == (version >= "2025-06-18"), result)
                check(json.loads(result["content"][0]["text"])["actors"], result)
        for version in ("2099-01-01", STATELESS):
            with Client(home, version=version) as client:
                check(client.info["protocolVersion"] == "2025-11-25", client.info)


def stateless(**params):
    return {**params, "_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS,
                                "io.modelcontextprotocol/clientCapabilities": {}}}


@test
def stateless_requests_need_no_beginning():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home, begin=False) as client:
            found = client.ask("server/discover", **stateless())["result"]
            check(found["supportedVersions"] == [STATELESS] and found["resultType"] == "complete"
                  and found["ttlMs"] > 0 and found["cacheScope"] == "public", found)
            check(set(found["capabilities"]) == {"tools", "resources", "prompts"}, found)
            check(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "cortex", found)
            check(client.ask("server/discover")["result"]["supportedVersions"] == [STATELESS])
            for name in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
                got = client.ask(name, **stateless())["result"]
                check(got["resultType"] == "complete" and got["ttlMs"] > 0, name, got)
            got = client.ask("tools/call", **stateless(name="roots", arguments={}))["result"]
            check(got["resultType"] == "complete" and got["structuredContent"], got)
            got = client.ask("resources/read", **stateless(uri="cortex://roots"))["result"]
            check(got["ttlMs"] == 0 and got["cacheScope"] == "private", got)
            check(client.ask("ping", **stateless())["error"]["code"] == -32601)
            check(client.ask("initialize", **stateless())["error"]["code"] == -32601)
            check(client.ask("tools/list")["error"]["code"] == -32600, "no revision, no initialize")
            wrong = client.ask("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2030-01-01"})
            check(wrong["error"]["code"] == -32022 and
                  wrong["error"]["data"]["supported"] == [STATELESS], wrong)
            # An earlier client over the same connection.
            check(client.ask("initialize", protocolVersion="2025-11-25")["result"])
            check("resultType" not in client.ask("tools/list")["result"])


@test
def stateless_headers_repeat_the_request():
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": stateless(name="roots", arguments={})}
    right = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": "tools/call", "Mcp_Name": "roots"}
    with Folder() as folder:
        home = make_home(folder)
        with Http(home) as server:
            status, got = server.post(call, **right)
            check(status == 200 and got["result"]["resultType"] == "complete", status, got)
            check(server.post(call, **{**right, "Mcp_Name": "=?base64?cm9vdHM=?="})[0] == 200)
            for name, value in (("MCP_Protocol_Version", "2025-11-25"), ("Mcp_Method", "tools/list"),
                                ("Mcp_Name", "runs"), ("Mcp_Name", "=?base64?AA==?=")):
                status, got = server.post(call, **{**right, name: value})
                check(status == 400 and got["error"]["code"] == -32020, name, status, got)
            bare = {**call, "params": {"name": "roots", "arguments": {}}}
            status, got = server.post(bare, **right)
            check(status == 400 and got["error"]["code"] == -32020, status, got)
            check(server.post(bare, MCP_Protocol_Version="2025-11-25")[0] == 200)


@test
def tools_give_the_answers_of_the_commands():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home) as client:
            check(client.answer("roots") == json.loads(cortex(home, "roots", "--json")) or
                  client.answer("roots")["actors"], "roots")
            heads = client.answer("heads")["heads"]
            check(len(heads) == 1 and heads[0]["agent"].startswith("agent/"), heads)
            branch, node = heads[0]["agent"], "@" + heads[0]["agent"]
            check(client.answer("verify")["ok"] is True)
            check(client.answer("verify", branch=branch, strict=True)["ok"] is True)
            check(client.answer("verify", agent_id_hash=branch[6:])["verdict"] in ("holds", "broken"))
            shown = json.loads(cortex(home, "lattice", "state", "@" + branch, node, "--json"))
            check(client.answer("state", branch=branch, node=node) == shown, shown)
            key = next(iter(shown["memory"] if "memory" in shown else shown["state"]["memory"]))
            told = json.loads(cortex(home, "lattice", "why", "@" + branch, node, key, "--json"))
            check(client.answer("why", branch=branch, node=node, key=key) == told, told)
            check(client.answer("show", branch=branch, node=node), "node")
            traces = client.answer("search", limit=2)
            check(traces["count"] == 2 and traces["next_cursor"], traces)
            more = client.answer("search", limit=2, cursor=traces["next_cursor"])
            check(more["traces"] and more["traces"][0] != traces["traces"][0], more)
            one = client.answer("show", trace_id=traces["traces"][0]["trace_id"])
            check(one["verdict"], one)
            found = client.answer("search", actor="ann", text="REFUND LIMIT")
            check(found["count"] == 1 and found["next"] is None, found)
            check(client.answer("search", actor="ann", text="nothing of it")["count"] == 0)
            check(client.answer("search", actor="ann", tag=["money"], type="Fact")["count"] == 1)
            check(client.answer("search", actor="ann", tag=["money", "other"])["count"] == 0)
            uri = found["memories"][0]["uri"]
            check(client.answer("show", actor="ann", memory=uri)["edges_to"] == [], uri)
            check(client.answer("show", actor="ann", memory=found["memories"][0]["id"])["uri"] == uri)
            for name in (uri, "ann/0", traces["traces"][0]["trace_id"]):
                shown = json.loads(cortex(home, "show", name, "--json"))
                check(client.answer("show", id=name) == shown, name, shown)
                check(client.answer("why", id=name)["steps"], name)
            check(client.answer("prove", actor="ann", seq=0)["proof"], "entry")
            check(client.answer("prove", actor="ann", **{"from": 0, "to": 1})["proof"], "consistency")
            check("snapshot" in client.refused("prove", actor="ann", uri=[uri]))
            uris = [uri] + [cortex(home, "memory", "write", "Fact",
                                   json.dumps({"statement": f"number {i}", "subject": "it", "predicate": "is"})).strip() for i in range(30)]
            cortex(home, "snapshot", "make", "--reason", "x")
            check(client.answer("prove", actor="ann", uri=[uri])["overall_root"], "memory")
            plain = client.answer("prove", actor="ann", uri=uris)
            compact = client.answer("prove", actor="ann", uri=uris, compact=True)
            check(compact["bytes"] < plain["bytes"] * 0.9, plain["bytes"], compact["bytes"])
            check([c["uri"] for c in plain["claims"]] == uris, plain["claims"])
            # In the order of their keys.
            check(sorted(c["uri"] for c in compact["claims"]) == sorted(uris), compact["claims"])
            check(compact["overall_root"] == plain["overall_root"], compact["overall_root"])
            file = os.path.join(folder, "compact.proof")
            with open(file, "wb") as out:
                out.write(base64.b64decode(compact["proof"]))
            told = json.loads(cortex(home, "verify", "--overall-root", compact["overall_root"],
                                     file, "--json"))
            check(told["verdict"] == "holds", told)


@test
def invalid_tool_calls_are_reported():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home) as client:
            for tool, arguments, words in (
                    ("why", {"node": "@x"}, "node and key"), ("why", {"id": "nothing-here"}, ""),
                    ("why", {"id": "../../etc/passwd:1"}, ""), ("show", {"id": "x" * 2000}, "id"),
                    ("why", {"id": "x", "node": "@x", "key": "k"}, "cannot be combined"),
                    ("why", {"node": "@x", "key": "k"}, "found no node"),
                    ("state", {"node": 7, "branch": ""}, "branch"),
                    ("state", {"node": {"a": 1}}, "node: found object"),
                    ("state", {"node": "@x", "branch": "agent/none"}, "branch"),
                    ("verify", {"nonsense": 1}, "nonsense"),
                    ("verify", {"run_id": "r", "strict": True}, "cannot be combined"),
                    ("show", {}, "trace_id"),
                    ("show", {"run_id": "../../etc/passwd"}, "repo"),
                    ("search", {"limit": 0}, "limit"),
                    ("search", {"limit": "many"}, "limit"),
                    ("search", {"cursor": "x"}, "cursor"),
                    ("search", {"actor": "nobody"}, "nobody"),
                    ("search", {"actor": "ann", "after": "x"}, "after"),
                    ("search", {"task_id": "x" * 2000}, "task_id"),
                    ("search", {"actor": "ann", "tag": ["x" * 900] * 30}, "longer"),
                    ("prove", {"actor": "ann", "seq": 99}, ""),
                    ("runs", {}, "repo"),
                    ("roots", {"max_bytes": 1}, "max_bytes"),
                    ("roots", {"from_byte": 10 ** 9}, "from_byte"),
                    ("roots", {"actor": "a\u0000b"}, ""),
                    ("bisect", {"node": "@x", "predicate": "nonsense"}, "")):
                text = client.refused(tool, **arguments)
                check(words in text and text, tool, arguments, text)
        nowhere = subprocess.run([BIN, "mcp", "--home", str(folder / "nowhere")], env=ENV,
                                 stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S)
        check(nowhere.returncode == 2 and b"cortex init" in nowhere.stderr, nowhere)
        with Client(home) as client:
            check("prompts" in client.ask("prompts/list")["result"])
        with Client(home, "--level", "generic") as client:
            check("full_traces" in client.refused("state", node="@x"))
            check(client.answer("search", limit=1)["count"] == 1)


@test
def long_answers_are_paged():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home) as client:
            whole = client.call("search", limit=20, max_bytes=1000000)["content"][0]["text"]
            check(len(whole) > 3000, len(whole))
            parts, at = [], 0
            while at is not None:
                result = client.call("search", limit=20, max_bytes=1000, from_byte=at)
                told = result["structuredContent"]
                check(told["truncated"] is True and told["total_bytes"] == len(whole), told)
                check("answer" not in told and len(told["part"]) <= 1000, told)
                check("truncated: bytes" in result["content"][1]["text"], result)
                parts.append(told["part"])
                at = told.get("next_byte")
            check("".join(parts) == whole)


@test
def resources_and_the_prompt():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home) as client:
            listed = client.ask("resources/list")["result"]["resources"]
            for one in listed:
                read = client.ask("resources/read", uri=one["uri"])["result"]["contents"][0]
                check(read["uri"] == one["uri"] and read["mimeType"] == one["mimeType"] and read["text"])
            templates = client.ask("resources/templates/list")["result"]["resourceTemplates"]
            check({t["name"] for t in templates} == {"run", "trace"}, templates)
            trace = client.answer("search", limit=1)["traces"][0]["trace_id"]
            check(client.ask("resources/read", uri="cortex://trace/" + trace)["result"])
            for uri, code in (("cortex://trace/none", -32002), ("cortex://other", -32002),
                              ("file:///etc/passwd", -32002), ("", -32002),
                              ("cortex://trace/../../runs", -32002)):
                check(client.ask("resources/read", uri=uri)["error"]["code"] == code, uri)
            check(client.ask("resources/read")["error"]["code"] == -32602)
            got = client.ask("prompts/get", name="explain", arguments={"question": "why 50000?"})
            check("why 50000?" in got["result"]["messages"][0]["content"]["text"], got)
            check(client.ask("prompts/get", name="explain")["error"]["code"] == -32602)
            check(client.ask("prompts/get", name="other")["error"]["code"] == -32602)


@test
def invalid_messages_are_refused():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home, begin=False) as client:
            check(client.ask("ping")["result"] == {})
            check(client.ask("tools/list")["error"]["code"] == -32600)  # before initialize
            for params in ({}, {"protocolVersion": 7}):
                check(client.ask("initialize", **params)["error"]["code"] == -32602, params)
            check(client.ask("initialize", protocolVersion="2025-06-18")["result"])
            for line, code in ((b"{", -32700), (b"nonsense", -32700), (b"{}", -32600), (b"7", -32600),
                               (b'"x"', -32600), (b"null", -32600), (b"\xff\xfe", -32700),
                               (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
                               (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                               (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
                               (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
                               (b'{"jsonrpc":"2.0","id":1}', -32600),
                               (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
                               (b"[" * 100000, -32700),
                               (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
                               (b"[]", -32600)):
                client.raw(line + b"\n")
                got = client.receive()
                check(got["error"]["code"] == code, line[:60], got)
            for method, params, code in (("nonsense", {}, -32601), ("logging/setLevel", {}, -32601),
                                         ("tools/call", {}, -32602),
                                         ("tools/call", {"name": "write"}, -32602),
                                         ("tools/call", {"name": 7}, -32602),
                                         ("tools/call", {"name": "roots", "arguments": []}, -32602),
                                         ("tools/list", {"cursor": "x"}, -32602)):
                check(client.ask(method, **params)["error"]["code"] == code, method, params)
            client.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}\n')
            check(client.receive()["error"]["code"] == -32602)
            # Longer than a message may be, with and without its end; then it goes on.
            client.raw(b'{"x":"' + b"y" * (3 << 20) + b'"}\n')
            check("1 MiB" in client.receive()["error"]["message"])
            # Nothing is due for notifications and answers.
            client.raw(b'{"jsonrpc":"2.0","method":"nonsense"}\n\r\n\n'
                       b'{"jsonrpc":"2.0","id":1,"result":{}}\n{"jsonrpc":"2.0","id":2,"error":{}}\n')
            check(client.ask("ping")["result"] == {})
            client.raw(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')  # without an end of line
            code, out, err = client.end()
            check(code == 0 and json.loads(out)["id"] == "last", code, out, err.decode())


@test
def batches_are_accepted_only_by_older_revisions():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home, version="2025-03-26") as client:
            batch = [{"jsonrpc": "2.0", "id": "a", "method": "ping"},
                     {"jsonrpc": "2.0", "method": "notifications/initialized"},
                     {"jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": {"name": "roots"}},
                     {"jsonrpc": "2.0", "id": "c", "method": "initialize", "params": {}}, 7]
            client.send(batch)
            got = client.receive()
            check([one["id"] for one in got] == ["a", "b", "c", None], got)
            check(got[2]["error"]["code"] == -32600 and got[3]["error"]["code"] == -32600, got)
            client.send([{"jsonrpc": "2.0", "method": "x"}] * 3)  # nothing to say
            client.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 65)
            check(client.receive()["error"]["code"] == -32600)


@test
def a_cancelled_request_is_not_answered():
    with Folder() as folder:
        home = make_home(folder)
        with Client(home) as client:
            for i in range(20):
                client.send({"jsonrpc": "2.0", "id": f"r{i}", "method": "tools/call",
                             "params": {"name": "verify"}})
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                         "params": {"requestId": "r19"}})
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
            client.send({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            code, out, _ = client.end()
            ids = [json.loads(line)["id"] for line in out.splitlines()]
            check(code == 0 and sorted(ids) == sorted([f"r{i}" for i in range(19)] + ["p"]), ids)


@test
def mcp_writes_nothing_and_works_next_to_a_writer_process():
    with Folder() as folder:
        home = make_home(folder)
        before = digest(home)
        with Client(home) as client:
            for tool, arguments in (("roots", {}), ("heads", {}), ("search", {"limit": 5}), ("verify", {}),
                                    ("prove", {"actor": "ann", "seq": 0}), ("search", {"actor": "ann"})):
                client.answer(tool, **arguments)
            client.end()
        after = digest(home)
        check(after == before, {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)})
        server = subprocess.Popen([BIN, "serve", "--home", str(home), "--listen", "127.0.0.1:0", "--json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
        try:
            check(server.stdout.readline())
            with Client(home) as client:
                check(client.answer("search", actor="ann")["count"] == 1)
                cortex(home, "memory", "write", "Fact",
                       '{"statement":"new","subject":"s","predicate":"is"}')
                check(client.answer("search", actor="ann")["count"] == 2)  # S1: what others wrote since
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=WAIT_S)


@test
def governed_runs_can_be_queried():
    run_id = golden("success", "bundle/manifest.json")["run_id"]
    with Folder() as folder:
        repo = Repo(folder)
        target = repo.root / "runs" / run_id
        target.parent.mkdir(parents=True)
        shutil.copytree(GOLDEN / "success" / "bundle", target)
        with Client(repo.home, "--repo", str(repo.path)) as client:
            check([one["run_id"] for one in client.answer("runs")["items"]] == [run_id])
            check(client.answer("show", run_id=run_id)["run_id"] == run_id)
            check(client.answer("show", id=run_id)["kind"] == "run")
            check(client.answer("show", run_id=run_id, report="task_result.json")["gates"])
            check(client.answer("verify", run_id=run_id)["verdict"] == "indeterminate")  # not sealed here
            check(len(client.answer("events", run_id=run_id, limit=3)["items"]) == 3)
            patch = client.call("diff", run_id=run_id)["structuredContent"]["part"]
            check(patch == (target / "patch.diff").read_text().rstrip("\n"), patch)
            check(client.answer("heads", branch="run/" + run_id)["heads"])
            check(client.answer("why", id="README.md:1")["steps"][0]["kind"] == "line")
            read = client.ask("resources/read", uri="cortex://run/" + run_id)["result"]["contents"][0]
            check(json.loads(read["text"])["run_id"] == run_id)
            for arguments in ({"run_id": "../" + run_id}, {"run_id": run_id, "report": "../manifest.json"},
                              {"run_id": "run_x"}):
                client.refused("show", **arguments)
        # Whoever may not read runs is not shown them by another name either.
        with Client(repo.home, "--level", "generic", "--repo", str(repo.path)) as client:
            client.refused("show", id=run_id)


class Http:
    def __init__(self, home):
        self.server = subprocess.Popen(
            [BIN, "serve", "--home", str(home), "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV)
        self.port = int(json.loads(self.server.stdout.readline())["url"].rsplit(":", 1)[1])
        self.token = (home / "token").read_text().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.send_signal(signal.SIGTERM)
        self.server.communicate(timeout=WAIT_S)

    def post(self, message, method="POST", token=None, **headers):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        wanted = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
                  "Authorization": f"Bearer {token or self.token}"}
        wanted.update({name.replace("_", "-"): value for name, value in headers.items()})
        link.request(method, "/mcp", body, wanted)
        answer = link.getresponse()
        data = answer.read()
        link.close()
        return answer.status, json.loads(data) if data else None


@test
def mcp_over_http_answers_the_same():
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with Folder() as folder:
        home = make_home(folder)
        with Http(home) as server:
            start = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
                     "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}}
            status, got = server.post(start)
            check(status == 200 and got["result"]["protocolVersion"] == "2025-06-18", status, got)
            check(server.post({"jsonrpc": "2.0", "method": "notifications/initialized"}) == (202, None))
            status, got = server.post({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                                       "params": {"name": "heads"}}, MCP_Protocol_Version="2025-06-18")
            check(status == 200 and got["result"]["structuredContent"]["answer"]["heads"], got)
            check(server.post([ping], MCP_Protocol_Version="2025-03-26")[1][0]["result"] == {})
            check(server.post([ping], MCP_Protocol_Version="2025-06-18")[0] == 400)
            check(server.post(ping, MCP_Protocol_Version="1999-01-01")[0] == 400)
            check(server.post(b"{")[0] == 400 and server.post(b"{")[1]["error"]["code"] == -32700)
            check(server.post(b'{"x":"' + b"y" * (2 << 20) + b'"}')[0] == 413)
            check(server.post(ping, Content_Type="text/plain")[0] == 415)
            check(server.post(ping, token="cortex_x")[0] == 401)
            check(server.post(b"", method="GET")[0] == 405 and server.post(b"", method="DELETE")[0] == 405)
            # H1
            for host, origin, status in (
                    (None, "http://evil.example.com", 403), (None, "null", 403),
                    ("evil.example.com", "http://evil.example.com", 403),
                    ("evil.example.com", None, 200),  # no browser asks without an Origin
                    (None, f"http://localhost:{server.port}", 200), (None, "http://[::1]:9", 200),
                    (None, "http://127.0.0.1.evil.example.com", 403),
                    ("localhost", "http://127.0.0.1:1@evil.example.com", 403),
                    ("audit.example.com", "https://audit.example.com", 403)):
                headers = {"Host": host or f"127.0.0.1:{server.port}"}
                if origin is not None:
                    headers["Origin"] = origin
                check(server.post(ping, **headers)[0] == status, host, origin, server.post(ping, **headers))
            # H2: the rights are those of the token.
            for options, tool, words in ((("--scope", "run:read"), "heads", "scope"),
                                         (("--scope", "trace:read", "--level", "generic"), "heads",
                                          "full_traces")):
                made = json.loads(cortex(home, "token", "add", "--name", tool + words, *options, "--json"))
                status, got = server.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                                           "params": {"name": tool}}, token=made["token"])
                check(status == 200 and got["result"]["isError"], got)
                check(words in got["result"]["content"][0]["text"], got)
            made = json.loads(cortex(home, "token", "add", "--name", "w", "--scope", "trace:write", "--json"))
            check(server.post(ping, token=made["token"])[0] == 403)


main()
