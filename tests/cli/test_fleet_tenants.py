#!/usr/bin/env python3
"""test_fleet_tenants.py - a part is a tenant: with a token of one part every route of the server of another part
refuses, and tells nothing of what is there.

    test_fleet_tenants.py [PROGRAM] [WORD..]

The routes are those of docs/openapi.json.  Starts a PostgreSQL of its own; skipped where none is installed.
"""
import http.client
import json
import pathlib
import re
import subprocess
import sys

import kit
from kit import BIN, afterwards, check, main, skip_all, test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "fleet"))
import cluster  # noqa: E402

CLUSTER = None
PATIENCE_S = 60
SCOPES = ("trace:write", "trace:read", "key:admin", "run:read", "run:start", "run:approve", "memory:write",
          "memory:scoped", "hook", "session:approve")
SECRET = "walrus-4711"  # in everything that the tenant has
ROUTES = [(method.upper(), path, bool(about.get("security")), about)
          for path, methods in json.loads((ROOT / "docs/openapi.json").read_text(encoding="utf-8"))["paths"].items()
          for method, about in methods.items()]


def url(part=None):
    return f"postgresql://cortex@127.0.0.1:{CLUSTER.primary.port}/cortex" + (f"#{part}" if part else "")


class Tenants:
    """Two parts with tokens of every scope, and the server of the second."""

    def __enter__(self):
        self.folder = kit.make_folder("cortex-tenants-")
        self.env = kit.clean_env(HOME=str(self.folder), CORTEX_FLEET=url())
        self.server = None
        try:
            self.fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.server is not None:
            self.server.terminate()
            self.server.wait(PATIENCE_S)
            self.server.stdout.close()
        kit.remove(self.folder)

    def ok(self, *words, part=None):
        env = {**self.env, **({"CORTEX_HOME": url(part)} if part else {})}
        return kit.expect(kit.run(BIN, *words, env=env, cwd=self.folder), 0).stdout.decode()

    def token(self, part, *scopes):
        words = [word for scope in scopes for word in ("--scope", scope)]
        level = ["--level", "full_traces"] if "trace:read" in scopes else []
        name = scopes[0] if len(scopes) == 1 else "all"
        return json.loads(self.ok("token", "add", "--name", name, "--json", *words, *level, part=part))["token"]

    def fill(self):
        CLUSTER.primary.sql("DROP SCHEMA IF EXISTS cortex_fleet CASCADE")
        self.ok("fleet", "init", "--no-standby")
        for part in ("ours", "theirs"):
            self.ok("fleet", "add", part)
        self.foreign = self.token("ours", *SCOPES)
        self.own = self.token("theirs", *SCOPES)
        fact = json.dumps({"statement": f"the word is {SECRET}", "subject": "word", "predicate": "is"})
        self.ok("append", "note.x", SECRET, "--actor", "bob", part="theirs")
        written = json.loads(self.ok("memory", "write", "Fact", fact, "--actor", "bob", "--json", part="theirs"))
        self.memory = written["uri"] if "uri" in written else written["id"]
        self.server = subprocess.Popen([BIN, "serve", "--fleet", url("theirs"), "--listen", "127.0.0.1:0", "--json",
                                        "--node", "theirs"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                       env=self.env, cwd=self.folder, text=True)
        self.port = int(json.loads(self.server.stdout.readline())["url"].rsplit(":", 1)[1])

    def ask(self, method, path, token, body=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            given = {"Content-Type": "application/json", **dict(headers)}
            if token is not None:
                given["Authorization"] = f"Bearer {token}"
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            if answer.headers.get_content_type() == "text/event-stream":
                return answer.status, answer.headers, b""
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def path(self, path, about):
        """With values of things that the tenant has."""
        values = {"actor": "bob", "branch": "%40agent%2Fbob", "id": self.memory.rsplit("/", 1)[-1], "key_id": "k", "seq": 0}
        filled = re.sub(r"\{(\w+)\}", lambda m: str(values.get(m[1], "1")), path)
        query = {p["name"]: {"actor": "bob", "id": "bob", "uri": self.memory, "q": SECRET.split("-", maxsplit=1)[0]}
                 .get(p["name"], "0") for p in about.get("parameters", []) if p["in"] == "query" and p.get("required")}
        if path == "/api/v1/memories/{id}":
            query["actor"] = "bob"
        return filled + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else "")

    def log(self):
        """Number and head of what the part has: any write changes them."""
        return CLUSTER.primary.sql("SELECT next || encode(head, 'hex') FROM cortex_fleet.cx_part WHERE name = 'theirs'")


def tells(body, asked=""):
    """Whether an answer has something of the tenant's that was not in the question, which problems repeat."""
    return SECRET.encode() in body or (b"bob" in body and "bob" not in asked)


@afterwards
def stop_the_server():
    if CLUSTER is not None:
        CLUSTER.close()


@test
def every_route_refuses_the_token_of_another_part():
    with Tenants() as t:
        for where in ("/api/v1/memories?actor=bob", "/api/v1/search?q=walrus"):
            status, _, body = t.ask("GET", where, t.own)
            check(status == 200 and tells(body), "what is to be kept is there for who may see it", where, status, body)
        check(len(ROUTES) > 100, ROUTES)
        before, walked, open_routes = t.log(), 0, set()
        for method, path, protected, about in ROUTES:
            if not protected:
                open_routes.add(path)
            for token in (t.foreign, None, "ctx_" + "0" * 40, t.own[:-1] + ("0" if t.own[-1] != "0" else "1")):
                for body in ((None,) if method in ("GET", "DELETE") else (b"{}", b"not json")):
                    asked = t.path(path, about)
                    status, headers, answer = t.ask(method, asked, token, body)
                    walked += 1
                    if protected:
                        check(status == 401, method, asked, "answered", status, answer)
                        check(headers.get("WWW-Authenticate") is not None, method, asked, headers)
                    check(not tells(answer, asked), method, asked, "tells", answer)
                    check("Set-Cookie" not in headers, method, asked, headers)
        check(open_routes == {"/", "/assets/{file}", "/healthz", "/readyz"}, open_routes)
        check(t.log() == before, "something was written")
        print(f"  {len(ROUTES)} routes, {walked} requests")


@test
def what_is_no_route_tells_nothing_either():
    with Tenants() as t:
        for path in ("/api/v1/nothing", "/api/v1/memories/../memories?actor=bob", "//api/v1/memories?actor=bob",
                     "/api/v1/memories%3Factor=bob", "/API/V1/memories?actor=bob", "/assets/..%2f..%2fapi%2fv1%2froots",
                     f"/api/v1/roots?token={t.foreign}", f"/api/v1/roots?access_token={t.own}",
                     "/v1/traces", "/v1/logs", "/mcp?actor=bob"):
            for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"):
                status, _, answer = t.ask(method, path, t.foreign, b"{}" if method in ("POST", "PUT", "PATCH") else None)
                check(status in (204, 301, 308, 400, 401, 404, 405, 415, 421, 501), method, path, status, answer)
                check(not tells(answer, path), method, path, answer)


@test
def a_part_is_not_named_by_a_request():
    """Headers that name a part, an actor or a database select nothing."""
    with Tenants() as t:
        for name in ("X-Cortex-Part", "X-Forwarded-Host", "X-Actor", "X-Original-URL", "Cookie"):
            status, _, answer = t.ask("GET", "/api/v1/memories?actor=bob", t.foreign, headers=[(name, "theirs")])
            check(status == 401 and not tells(answer), name, status, answer)
        status, _, answer = t.ask("GET", "/api/v1/roots?part=theirs", t.foreign)
        check(status == 401 and not tells(answer), status, answer)


@test
def a_token_without_the_scope_to_read_traces_sees_no_contents():
    """In one part: no other scope alone, memory:scoped without a space among them, reads what actors have."""
    with Tenants() as t:
        for scope in SCOPES:
            if scope == "trace:read":
                continue
            token = t.token("theirs", scope)
            for method, path, protected, about in ROUTES:
                if not protected or method != "GET" or path == "/api/v1/session":
                    continue
                asked = t.path(path, about)
                status, _, answer = t.ask(method, asked, token)
                check(SECRET.encode() not in answer, scope, asked, status, answer)


if __name__ == "__main__":
    if cluster.BIN is None:
        skip_all("no PostgreSQL server is installed", 4)
    CLUSTER = cluster.Cluster(standby=False)
    main()
