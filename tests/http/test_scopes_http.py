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
from kit import check, main, sibling, test  # noqa: E402
from server_kit import ENV, Server  # noqa: E402

SCOPES = "/api/v1/scopes/"
FACT = {"statement": "the limit is 500", "subject": "policy", "predicate": "is"}
FAR = ("--expires", "2999-01-01T00:00:00Z")


class World(Server):
    """ann's memories, one tagged public and one private; ann's key is registered; a token for bob."""

    def __init__(self):
        super().__init__()
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


main()
