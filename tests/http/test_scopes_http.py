#!/usr/bin/env python3
"""A scope that travels: made by one agent, checked by another, enforced by the server.

    test_scopes_http.py [PROGRAM] [WORD..]
"""
import base64
import hashlib
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import BIN, check, main, sibling, test  # noqa: E402
from server_kit import ENV, Server  # noqa: E402

SCOPES = "/api/v1/scopes/"
FACT = {"statement": "the limit is 500", "subject": "policy", "predicate": "is"}
FAR = ("--expires", "2999-01-01T00:00:00Z")


class World(Server):
    """ann's memories, one tagged public and one private; ann's key is registered; a token for bob."""

    def __init__(self, *options):
        super().__init__(*options)
        self.public = self.ann("memory", "write", "Fact", json.dumps(FACT), "--tag", "public").split()[-1]
        self.private = self.ann("memory", "write", "Fact", json.dumps(FACT), "--tag", "private").split()[-1]
        self.ann("snapshot", "make", "--reason", "for-scope")
        self.key = self.home.parent / "ann.key"
        self.vkey = self.command("key", "new", self.key, "--name", "ann")
        raw = base64.b64decode(self.vkey.split("+", 2)[2])[1:]
        self.register("ann", raw)
        self.bob = self.add_token("memory:scoped", name="bob")

    def register(self, name, raw):
        self.command("key", "add", "--id", name, "--public-key", base64.b64encode(raw).decode())

    def ann(self, *args, **more):
        return self.command(*args, "--actor", "ann", **more)

    def make(self, *options, to="bob", key=None):
        path = self.home.parent / "scope"
        self.ann("scope", "make", "--sign", key or self.key, "--to", to, *options, "-o", path)
        return path.read_bytes()

    def present(self, what, scope, token=None, **members):
        return self.ask("POST", SCOPES + what, token=token or self.bob,
                        body={"scope": base64.b64encode(scope).decode(), **members})

    def denied(self, reason, what, scope, **more):
        answer = self.present(what, scope, **more)
        check(answer.status == 403 and reason in answer.json()["detail"], answer.status, answer.body)

    def entries(self):
        return [json.loads(line) for line in self.ann("log", "--json", "-n", "100").splitlines()]


@test
def a_grantee_reads_what_the_scope_allows():
    with World() as s:
        scope = s.make("--tag", "public", *FAR)
        done = subprocess.run([sibling("cortex-verify"), "--key", s.vkey, s.home.parent / "scope"],
                              capture_output=True, env=ENV)
        check(done.returncode == 0, done.stdout, done.stderr)
        told = s.present("check", scope).json()
        check((told["verdict"], told["granted_to"], told["actor"], told["writable"]) ==
              ("holds", "bob", "ann", False), told)
        got = s.present("read", scope, uri=s.public)
        check(got.status == 200 and got.json()["data"] == FACT, got.body)
        found = s.present("find", scope, types=["Fact"]).json()
        check([m["uri"] for m in found["memories"]] == [s.public], found)
        # As of the snapshot, whatever came later.
        s.ann("memory", "tombstone", s.public)
        check(s.present("read", scope, uri=s.public).status == 200)
        before = len(s.entries())
        s.denied("does not include", "read", scope, uri=s.private)
        entries = s.entries()
        last = entries[-1] if entries[-1]["seq"] > entries[0]["seq"] else entries[0]
        check(len(entries) == before + 1 and last["kind"] == "scope_violation", entries)
        check(last["payload"]["granted_to"] == "bob", last)


@test
def a_scope_that_does_not_hold_opens_nothing():
    with World() as s:
        scope = s.make("--tag", "public", *FAR)
        other = s.home.parent / "other.key"
        s.command("key", "new", other, "--name", "ann")
        late = s.make("--tag", "public", "--expires", "2020-01-01T00:00:00Z")
        eve = s.add_token("memory:scoped", name="eve")
        forged = s.make("--tag", "public", *FAR, key=other)
        for reason, bytes_, token in (
                ("NotGrantee", scope, eve), ("ScopeExpired", late, None), ("SignatureInvalid", forged, None),
                ("NonCanonical", scope[:-1], None), ("NonCanonical", b"x", None)):
            check(s.present("check", bytes_, token=token).json()["reason"] == reason, reason)
            for what, members in (("read", {"uri": s.public}), ("find", {"types": ["Fact"]}),
                                  ("write", {"type": "Fact", "data": FACT, "tags": ["public"]}),
                                  ("update", {"uri": s.public, "data": FACT}),
                                  ("labels", {"uri": s.public, "tags": ["x"]})):
                s.denied(reason, what, bytes_, token=token, **members)
        s.command("key", "revoke", "ann", "--reason", "lost")
        s.denied("UnknownAgent", "read", scope, uri=s.public)
        for body, pointer in (({}, "/scope"), ({"scope": "!"}, "/scope"), ({"scope": 7}, "/scope")):
            answer = s.problem(422, "invalid-request", "POST", SCOPES + "read", body=body, token=s.bob)
            check(answer.json()["errors"][0]["pointer"] == pointer, answer.body)
        s.problem(403, "forbidden", "POST", SCOPES + "read", body={}, token=s.token)
        s.problem(403, "forbidden", "GET", "/api/v1/memories?actor=ann", token=s.bob)


@test
def a_writable_scope_changes_labels_and_the_entry_names_it():
    with World() as s:
        scope = s.make("--tag", "public", *FAR)
        s.denied("allows reading only", "labels", scope, uri=s.public, tags=["public", "seen"])
        check(s.entries()[0]["kind"] == "scope_violation" or s.entries()[-1]["kind"] == "scope_violation")
        wide = s.make("--tag", "public", "--writable", *FAR)
        check(s.present("check", wide).json()["writable"] is True)
        made = s.present("labels", wide, uri=s.public, tags=["public", "seen"], key="k")
        check(made.status == 200 and made.json()["duplicate"] is False, made.body)
        again = s.present("labels", wide, uri=s.public, tags=["public", "seen"], key="k")
        check(again.json() == {**made.json(), "duplicate": True}, again.body)
        check(json.loads(s.ann("memory", "get", s.public, "--json"))["tags"] == ["public", "seen"])
        by = {e["seq"]: e for e in s.entries()}
        entry = by[made.json()["entry"]]
        check(entry["kind"] == "update_head" and entry["created_by"] == "bob", entry)
        request = by[made.json()["entry"] + 1]
        check(request["kind"] == "memory.request" and request["created_by"] == "token:bob", request)
        payload = json.dumps(request)
        check(hashlib.sha256(wide).hexdigest() in payload, payload)
        s.denied("does not include", "labels", wide, uri=s.private, tags=["x"])
        check(s.present("labels", wide, uri=s.public, data={}).status == 422)
        check(s.present("labels", wide, uri=s.public, tags=["x"], by="ann").status == 422)
        check(len(s.entries()) == len(by) + 1, "the violation alone")
        s.ann("verify")


@test
def a_writable_scope_writes_what_it_allows_and_each_entry_names_it():
    with World() as s:
        wide = s.make("--tag", "public", "--not-tag", "secret", "--writable", *FAR)
        new = {"type": "Fact", "data": FACT, "tags": ["public"], "key": "n1"}
        made = s.present("write", wide, **new)
        check(made.status == 201 and made.json()["duplicate"] is False, made.body)
        again = s.present("write", wide, **new)
        check(again.status == 200 and again.json() == {**made.json(), "duplicate": True}, again.body)
        uri = made.json()["uri"]
        changed = {**FACT, "statement": "the limit is 600"}
        updated = s.present("update", wide, uri=uri, data=changed)
        check(updated.status == 200 and updated.json()["uri"] == uri[:-1] + "2", updated.body)
        check(s.present("update", wide, uri=uri, data=changed).status == 409, "an old version")
        check(s.present("update", wide, uri=s.public, data=changed).status == 200)
        shown = json.loads(s.ann("memory", "get", uri.split("#")[0] + "#2", "--json"))
        check((shown["data"], shown["created_by"], shown["tags"]) == (changed, "bob", ["public"]), shown)
        by = {e["seq"]: e for e in s.entries()}
        for answer in (made, updated):
            entry, request = (by[answer.json()["entry"] + i] for i in (0, 1))
            check(entry["created_by"] == "bob" and request["created_by"] == "token:bob", entry, request)
            check(json.loads(request["payload"])["grant"] == hashlib.sha256(wide).hexdigest(), request)
        before = len(by)
        for members in ({"tags": ["private"]}, {}, {"tags": ["public", "secret"]}):
            s.denied("does not include", "write", wide, type="Fact", data=FACT, **members)
        s.denied("does not include", "update", wide, uri=s.private, data=changed)
        entries = s.entries()
        kinds = [e["kind"] for e in entries if e["seq"] not in by]
        check(kinds == 4 * ["scope_violation"] and len(entries) == before + 4, kinds)
        for members in ({"id": "01HF7YAT000000000000000003"}, {"actor_scope": "eve"}, {"pinned": True}):
            answer = s.present("write", wide, type="Fact", data=FACT, tags=["public"], **members)
            check(answer.status == 422 and "under a scope" in answer.json()["detail"], answer.body)
        check(s.present("write", wide, type="Fact", data={}, tags=["public"]).status == 422)
        check(s.present("write", wide, type="Fact", data=FACT, tags=["public"], created_by="ann").status == 422)
        narrow = s.make("--tag", "public", *FAR)
        s.denied("allows reading only", "write", narrow, type="Fact", data=FACT, tags=["public"])
        s.denied("allows reading only", "update", narrow, uri=uri, data=changed)
        check(len(s.entries()) == before + 6, "violations alone")
        s.ann("verify")


# --- sending ------------------------------------------------------------------------------------------

def b64(data):
    return base64.b64encode(data).decode()


@test
def a_scope_is_made_signed_sent_and_received():
    with World() as s:
        owner = s.add_token("trace:read", "memory:write", name="owner", level="full_traces")
        signed = s.make("--tag", "public", "--id", s.public, "--not-type", "Goal", "--budget", "500", "--writable", *FAR)
        wanted = {"actor": "ann", "granted_to": "bob", "tags": ["public"], "ids": [s.public], "not_types": ["Goal"],
                  "budget": 500, "writable": True, "expires_at": FAR[1]}
        draft = s.ask("POST", "/api/v1/scopes/make", token=owner, body=wanted)
        check(draft.status == 200, draft.body)
        # What is to be signed: the same bytes with null in place of the signature.
        unsigned = base64.b64decode(draft.json()["scope"])
        check(unsigned == signed[:-66] + b"\xf6", unsigned.hex(), signed.hex())
        before = len(s.entries())
        for body in ({"scope": b64(unsigned)}, {"scope": b64(unsigned), "signature": b64(bytes(64))},
                     {"scope": b64(signed[:-1] + bytes([signed[-1] ^ 1]))}, {"scope": b64(signed[:-1])}):
            answer = s.ask("POST", "/api/v1/scopes", token=owner, body=body)
            check(answer.status == 403, body, answer.status, answer.body)
        for body, pointer in (({"scope": b64(unsigned), "signature": "AA=="}, "/signature"), ({}, "/scope"),
                              ({"scope": b64(signed), "signature": b64(signed[-64:])}, "/signature"),
                              ({"scope": 64 * "0"}, "/scope")):
            answer = s.problem(422, "invalid-request", "POST", "/api/v1/scopes", token=owner, body=body)
            check(answer.json()["errors"][0]["pointer"] == pointer, answer.body)
        check(len(s.entries()) == before, "nothing was taken")
        body = {"scope": b64(unsigned), "signature": b64(signed[-64:])}
        sent = s.ask("POST", "/api/v1/scopes", token=owner, body=body)
        check(sent.status == 201 and sent.json()["duplicate"] is False, sent.body)
        told, name = sent.json(), hashlib.sha256(signed).hexdigest()
        check((told["id"], told["granted_to"], told["actor"]) == (name, "bob", "ann"), told)
        again = s.ask("POST", "/api/v1/scopes", token=owner, body={"scope": b64(signed)})
        check(again.status == 200 and again.json() == {**told, "duplicate": True}, again.body)
        entry = [e for e in s.entries() if e["seq"] == told["entry"]][0]
        check((entry["kind"], entry["created_by"]) == ("scope.sent", "token:owner"), entry)
        # Its grantee receives it, and checks it without the server; others learn nothing.
        listed = s.ask("GET", "/api/v1/scopes", token=s.bob).json()
        check([x["id"] for x in listed["scopes"]] == [name] and not listed["truncated"], listed)
        got = s.ask("GET", "/api/v1/scopes/" + name, token=s.bob).json()
        check(base64.b64decode(got["scope"]) == signed and got["writable"] and got["budget"] == 500, got)
        path = s.home.parent / "received"
        path.write_bytes(base64.b64decode(got["scope"]))
        done = subprocess.run([sibling("cortex-verify"), "--key", s.vkey, path], capture_output=True, env=ENV)
        check(done.returncode == 0, done.stdout, done.stderr)
        eve = s.add_token("memory:scoped", name="eve")
        check(s.ask("GET", "/api/v1/scopes", token=eve).json()["scopes"] == [])
        for token, what in ((eve, name), (s.bob, 64 * "0"), (s.bob, "x")):
            s.problem(404, "not-found", "GET", "/api/v1/scopes/" + what, token=token)
        # The id stands for the bytes.
        read = s.ask("POST", SCOPES + "read", token=s.bob, body={"scope": name, "uri": s.public})
        check(read.status == 200 and read.json()["data"] == FACT, read.body)
        answer = s.ask("POST", SCOPES + "read", token=eve, body={"scope": name, "uri": s.public})
        check(answer.status == 403 and "NotGrantee" in answer.json()["detail"], answer.body)
        wrote = s.ask("POST", SCOPES + "write", token=s.bob,
                      body={"scope": name, "type": "Fact", "data": FACT, "tags": ["public"]})
        check(wrote.status == 201, wrote.body)
        request = [e for e in s.entries() if e["seq"] == wrote.json()["entry"] + 1][0]
        check(json.loads(request["payload"])["grant"] == name, request)
        # Tables that are rebuilt have it, too.
        s.stop()
        s.command("tables", "rebuild")
        s.ann("verify")
        s.start()
        check(s.ask("GET", "/api/v1/scopes/" + name, token=s.bob).status == 200)


@test
def what_a_scope_is_made_of_is_checked():
    with World() as s:
        owner = s.add_token("trace:read", name="owner", level="full_traces")
        good = {"actor": "ann", "granted_to": "bob", "tags": ["public"]}
        for change, pointer in (({"actor": None}, "/actor"), ({"granted_to": ""}, "/granted_to"),
                                ({"tags": "x"}, "/tags"), ({"tags": []}, ""), ({"types": ["Nothing"]}, "/types"),
                                ({"ids": ["x"]}, "/ids"), ({"not_ids": [7]}, "/not_ids"), ({"budget": -1}, "/budget"),
                                ({"expires_at": "tomorrow"}, "/expires_at"), ({"writable": 1}, "/writable"),
                                ({"snapshot": "x"}, "/snapshot"), ({"frame": {"verb": "acquire"}}, "/frame"),
                                ({"frame": {"verb": "x", "ref": "gpu"}}, "/frame"), ({"more": 1}, "")):
            answer = s.problem(422, "invalid-request", "POST", SCOPES + "make", token=owner, body={**good, **change})
            check(answer.json()["errors"][0]["pointer"] == pointer, change, answer.body)
        for change in ({"actor": "nobody"}, {"snapshot": 9}, {"ids": ["01HF7YAT000000000000000003"]}):
            s.problem(404, "not-found", "POST", SCOPES + "make", token=owner, body={**good, **change})
        made = s.ask("POST", SCOPES + "make", token=owner,
                     body={**good, "granted_by": "boss", "frame": {"verb": "acquire", "ref": "gpu"}, "snapshot": 0})
        check(made.status == 200 and made.json()["granted_by"] == "boss" and made.json()["snapshot"] == 0, made.body)


@test
def a_journal_of_the_program_is_no_place_for_a_grantee():
    with World() as s:
        s.register("trust", base64.b64decode(s.vkey.split("+", 2)[2])[1:])
        s.command("snapshot", "make", "--actor", "trust", "--reason", "for-scope")
        path = s.home.parent / "scope"
        s.command("scope", "make", "--actor", "trust", "--sign", s.key, "--to", "bob", "--type", "Fact", "--writable",
                  "-o", path)
        scope = path.read_bytes()
        check(s.present("check", scope).json()["verdict"] == "holds")
        s.denied("written by this program itself", "write", scope, type="Fact", data=FACT)
        owner = s.add_token("memory:write", name="owner")
        answer = s.ask("POST", "/api/v1/scopes", token=owner, body={"scope": b64(scope)})
        check(answer.status == 422 and "written by this program" in answer.json()["detail"], answer.body)


@test
def scopes_are_sent_and_received_by_the_command_line():
    with World() as s:
        folder = s.home.parent
        url = f"http://127.0.0.1:{s.port}"
        tokens = {}
        for name, scope in (("owner", "memory:write"), ("eve", "memory:scoped"), ("bob", None)):
            tokens[name] = folder / (name + ".token")
            tokens[name].write_text((s.add_token(scope, name=name) if scope else s.bob) + "\n")

        def go(*args, code=0, err=""):
            done = subprocess.run([BIN, *map(str, args)], env=ENV, capture_output=True, cwd=folder)
            check(done.returncode == code and err in done.stderr.decode(), args, done.returncode, done.stderr)
            return done.stdout.decode()

        def at(name):
            return "--url", url, "--token-file", tokens[name]

        signed = s.make("--tag", "public", *FAR)
        name = hashlib.sha256(signed).hexdigest()
        check("no scope was sent" in go("scope", "list", "--home", s.home))
        check(go("scope", "send", "scope", *at("owner")) == f"{name}  sent to bob\n")
        check("was sent before to bob" in go("scope", "send", "scope", *at("owner")))
        check(json.loads(go("scope", "send", "scope", "--home", s.home, "--json"))["duplicate"] is True)
        here = go("scope", "list", "--home", s.home, "--to", "bob")
        check(here.startswith(name + "  ann lets bob read memories of ann until 2999"), here)
        check(go("scope", "list", *at("bob")) == here)
        check(go("scope", "list", "--home", s.home, "--json") == go("scope", "list", *at("bob"), "--json"))
        check("no scope was sent" in go("scope", "list", *at("eve")) + go("scope", "list", "--home", s.home, "--to", "x"))
        go("scope", "receive", name, *at("bob"), "-o", "got")
        check((folder / "got").read_bytes() == signed)
        told = json.loads(go("scope", "receive", name, "--home", s.home, "-o", "got2", "--json"))
        check(told == json.loads(go("scope", "receive", name, *at("bob"), "-o", "got", "--json")), told)
        check(told["id"] == name and told["granted_to"] == "bob", told)
        go("scope", "receive", name, "--home", s.home, "--json", code=2, err="--output")
        check((folder / "got2").read_bytes() == signed)
        done = subprocess.run([sibling("cortex-verify"), "--key", s.vkey, folder / "got"], capture_output=True, env=ENV)
        check(done.returncode == 0, done.stderr)
        # Without a server the registered key is asked for, or one that is given.
        s.stop()
        s.make("--tag", "public", "--writable", *FAR)
        check(" sent to bob" in go("scope", "send", "scope", "--home", s.home))
        other = folder / "other.key"
        s.command("key", "new", other, "--name", "boss")
        s.make("--tag", "public", "--granted-by", "boss", *FAR, key=other)
        go("scope", "send", "scope", "--home", s.home, code=1, err="no current key of boss is registered")
        go("scope", "send", "scope", "--home", s.home, "--key", "boss=" + s.vkey, code=1, err="SignatureInvalid")
        (folder / "junk").write_bytes(b"junk")
        for args, code, err in (
                (("send", "junk", "--home", s.home), 2, "is no scope"), (("send", "absent", "--home", s.home), 3, "absent"),
                (("send", "junk", *at("owner")), 2, "is no scope"), (("send", "scope", "--url", url), 2, "--token-file"),
                (("send", "scope", *at("owner")), 3, "nothing listens"), (("list", "--url", "https://x"), 2, "TLS"),
                (("list", *at("bob"), "--to", "bob"), 2, "--to"), (("receive", "x", "--home", s.home), 2, "ID"),
                (("receive", 64 * "0", "--home", s.home), 2, "no scope with that id"),
                (("list", "--url", url, "--token-file", "junk2"), 3, "junk2"),
                (("list", "--url", "http://192.0.2.1", "--token-file", tokens["bob"]), 2, "unencrypted")):
            go("scope", *args, code=code, err=err)
        s.start()
        url = f"http://127.0.0.1:{s.port}"
        s.make("--tag", "public", "--granted-by", "boss", *FAR, key=other)
        go("scope", "send", "scope", *at("owner"), code=1, err="HTTP 403: the scope does not hold: UnknownAgent")
        go("scope", "send", "scope", *at("bob"), code=1, err="memory:write")
        go("scope", "receive", name, *at("eve"), code=2, err="no scope with that id was sent to eve")


# --- MCP ----------------------------------------------------------------------------------------------

READS = {"scopes", "scope_check", "scope_read", "scope_find"}
WRITES = {"scope_write", "scope_update", "scope_labels"}


@test
def scopes_are_used_over_mcp():
    for options in ((), ("--mcp-writes",)):
        with World(*options) as s:
            owner = s.add_token("trace:read", "memory:write", name="owner", level="full_traces")
            agent = s.add_token("trace:read", "memory:scoped", name="bot", level="generic")

            def rpc(token, method, **params):
                return s.ask("POST", "/mcp", token=token,
                             body={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).json()

            def tools(token):
                return {t["name"] for t in rpc(token, "tools/list")["result"]["tools"] if "scope" in t["name"]}

            def call(token, name, **arguments):
                result = rpc(token, "tools/call", name=name, arguments=arguments)["result"]
                text = result["content"][0]["text"]
                return text if result["isError"] else json.loads(text)

            check(tools(s.token) == set(), tools(s.token))
            check(tools(agent) == READS | (WRITES if options else set()), tools(agent))
            check(tools(owner) == ({"scope_make", "scope_send"} if options else set()), tools(owner))
            signed = s.make("--tag", "public", "--writable", *FAR, to="bot")
            if not options:
                check(rpc(owner, "tools/call", name="scope_send", arguments={})["error"]["code"] == -32602)
                check(call(agent, "scope_check", scope=b64(signed))["verdict"] == "holds")
                continue
            draft = call(owner, "scope_make", actor="ann", granted_to="bot", tags=["public"], writable=True,
                         expires_at=FAR[1])
            check(base64.b64decode(draft["scope"]) == signed[:-66] + b"\xf6", draft)
            sent = call(owner, "scope_send", scope=draft["scope"], signature=b64(signed[-64:]))
            name = hashlib.sha256(signed).hexdigest()
            check(sent["id"] == name, sent)
            check([x["id"] for x in call(agent, "scopes")["scopes"]] == [name])
            check(base64.b64decode(call(agent, "scopes", scope_id=name)["scope"]) == signed)
            check(call(agent, "scope_check", scope=name)["verdict"] == "holds")
            check(call(agent, "scope_read", scope=name, uri=s.public)["data"] == FACT)
            check([m["uri"] for m in call(agent, "scope_find", scope=name, types=["Fact"])["memories"]] == [s.public])
            made = call(agent, "scope_write", scope=name, type="Fact", data=FACT, tags=["public"], key="k")
            next_ = call(agent, "scope_update", scope=name, uri=made["uri"], data={**FACT, "statement": "x"})
            check(next_["uri"].endswith("#2"), next_)
            check(call(agent, "scope_labels", scope=name, uri=next_["uri"], importance=3)["entry"], next_)
            check("does not include" in call(agent, "scope_write", scope=name, type="Fact", data=FACT), "no tag")
            check("required" in call(agent, "scope_write", scope=name, type="Fact"), "no data")


@test
def scopes_are_used_over_standard_streams():
    with World() as s:
        signed = s.make("--tag", "public", "--writable", *FAR)
        name = hashlib.sha256(signed).hexdigest()
        calls = [("scope_check", {"scope": b64(signed)}), ("scope_read", {"scope": b64(signed), "uri": s.public}),
                 ("scope_write", {"scope": b64(signed), "type": "Fact", "data": FACT, "tags": ["public"]}),
                 ("scope_read", {"scope": b64(signed), "uri": s.private})]

        def talk(*options):
            lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize",
                      "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}},
                     {"jsonrpc": "2.0", "method": "notifications/initialized"}]
            lines += [{"jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": {"name": n, "arguments": a}}
                      for i, (n, a) in enumerate(calls)]
            done = subprocess.run([BIN, "mcp", "--home", s.home, *options], env=ENV, capture_output=True,
                                  input="".join(json.dumps(x) + "\n" for x in lines).encode())
            check(done.returncode == 0, done.stderr)
            found = {m["id"]: m for m in map(json.loads, done.stdout.splitlines())}
            return [found[i + 1] for i in range(len(calls))]

        check(all(a["error"]["code"] == -32602 for a in talk()), "without --agent nothing is offered")
        check("NotGrantee" in talk("--agent", "eve")[1]["result"]["content"][0]["text"])
        for running in (True, False):  # through the server that owns the data directory, and without it
            if not running:
                s.stop()
            check_, read, write, denied = talk("--agent", "bob", "--memory-writes")
            for answer in (check_, read, write):
                check(answer["result"]["isError"] is False, running, answer)
            check("does not include" in denied["result"]["content"][0]["text"], denied)
            entries = s.entries()
            made = json.loads(write["result"]["content"][0]["text"])["entry"]
            request = [e for e in entries if e["seq"] == made + 1][0]
            check(json.loads(request["payload"])["grant"] == name and request["created_by"] == "token:bob", request)
        done = subprocess.run([BIN, "mcp", "--home", s.home, "--agent", ""], env=ENV, capture_output=True, input=b"")
        check(done.returncode == 2 and b"--agent" in done.stderr, done.stderr)
        s.start()


main()
