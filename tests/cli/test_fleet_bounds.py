#!/usr/bin/env python3
"""test_fleet_bounds.py - what bounds a part of a fleet: its quota, its retention, and how many commits stay.

    test_fleet_bounds.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Over a PostgreSQL primary with a synchronous standby on loopback; skipped where no server is installed.
"""
import http.client
import itertools
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "http"))
import kit  # noqa: E402
from agent import Agent, batch  # noqa: E402
from kit import BIN, check, main, test
from fleet_kit import Database, FACT, Fleet, Node, PATIENCE_S, SERVERS, node_role

SECRET = "walrus-4711"


class Bounded(Fleet):
    """A part with a token that may write as a command does."""

    def __enter__(self):
        super().__enter__()
        added = self.ok("token", "add", "--name", "writer", "--scope", "home:write", "--json", home=self.url)
        self.writer = json.loads(added)["token"]
        return self

    def run(self, *words, code=0, through=None):
        env = {**self.env, "CORTEX_HOME": self.url}
        if through is not None:
            env.update(CORTEX_URL=through.about["url"], CORTEX_TOKEN=self.writer)
        done = kit.run(BIN, *words, env=env, cwd=self.folder)
        check(done.returncode == code, words, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode() + done.stderr.decode()

    def json(self, *words):
        done = kit.run(BIN, *words, "--json", env={**self.env, "CORTEX_HOME": self.url}, cwd=self.folder)
        check(done.returncode == 0, words, done)
        return json.loads(done.stdout)

    def has_bytes(self, text, part):
        """Whether files of the part have them, but for tables and index."""
        return int(self.sql(
            "SELECT count(*) FROM cortex_fleet.cx_extent e JOIN cortex_fleet.cx_file f USING (part, file) JOIN "
            f"cortex_fleet.cx_part p USING (part) WHERE p.name = '{part}' AND NOT f.derived AND "
            f"position(convert_to('{text}', 'UTF8') IN e.bytes) > 0")) > 0

    def row(self):
        return next(row for row in self.json("fleet", "parts")["parts"] if row["name"] == self.part)


def wait(condition, *what):
    end = time.monotonic() + PATIENCE_S
    while not (got := condition()):
        check(time.monotonic() < end, *what)
        time.sleep(0.3)
    return got


def memory(node, key, size=10):
    data = {**FACT["data"], "statement": "x" * size}
    return node.ask("POST", "/api/v1/actors/ann/memories", {**FACT, "data": data, "key": key})


@test
def a_quota_refuses_what_is_new_and_nothing_else(database):
    with Bounded(database) as f:
        check(f.row()["quota_bytes"] is None and f.row()["stored_bytes"] is None)
        check("has no quota" in f.run("fleet", "quota", f.part))
        one, two = f.pair()
        status, written = memory(two, "first")
        check(status == 201, status, written)
        secret = json.loads(f.run("append", "note.secret", SECRET, "--committed", "--json", through=two))["seq"]
        for words in (["--bytes", "0"], ["--bytes", "1K", "--none"], ["--bytes", "x"]):
            f.run("fleet", "quota", f.part, *words, code=2)
        f.run("fleet", "quota", "none", "--bytes", "1K", code=2)
        stored = f.json("fleet", "quota", f.part, "--bytes", "1G")["stored_bytes"]
        check(0 < stored < 1 << 20, stored)
        # Just more than it has: the node hears of it with its next renewal, and refuses what is too much.
        f.run("fleet", "quota", f.part, "--bytes", str(stored + 2000))
        status, problem = wait(lambda: (got := memory(two, f"large-{time.monotonic()}", 3000))[0] != 201 and got, "no quota")
        check(status == 507 and problem["type"] == "urn:cortex:problem:quota" and f.part in problem["detail"], status, problem)
        check(memory(two, "small")[0] in (201, 507))
        f.run("fleet", "quota", f.part, "--bytes", "1K")
        status, problem = wait(lambda: "a quota of 1024 bytes" in str(got := memory(one, f"t-{time.monotonic()}")) and got,
                               "the new quota")
        check(status == 507, status, problem)
        # A sender that repeats what was recorded gets its answer.
        check(memory(one, "first")[0] in (200, 201), memory(one, "first"))
        said = f.run("append", "note.x", "more", code=2, through=one)
        check("QuotaExceeded" in said and f.part in said, said)
        row = f.row()
        check(row["quota_bytes"] == 1024 and row["stored_bytes"] > 1024, row)
        check("nothing new is recorded" in f.run("fleet", "quota", f.part))
        check("%" in next(line for line in f.run("fleet", "parts").split("\n") if line.startswith(f.part + " ")))
        about = wait(lambda: (p := one.ask("GET", "/api/v1/nodes")[1]["parts"]) and p[0]["quota_bytes"] == 1024 and p, "nodes")
        check(about[0]["stored_bytes"] > 1024, about)
        # Reading, holding, erasing, checkpoints go on.
        check("note.secret" in f.run("log", "--json"))
        f.run("verify", "--home", f.url)
        f.run("hold", "add", "--subject", "policy-9", "--reason", "a test", through=two)
        check(f.has_bytes(SECRET, f.part))
        f.run("erase", str(secret), "--reason", "a test", through=two)
        check(not f.has_bytes(SECRET, f.part), "it was not erased")
        f.run("checkpoint", "--all", through=two)
        f.run("verify", "--home", f.url)
        # Every node holds it, and a command that owns the part, too.
        one.kill()
        two.wait_said("and serves it")
        status, problem = memory(two, "after the takeover")
        check(status == 507, status, problem)
        check(two.stop() == 0)
        check("QuotaExceeded" in f.run("append", "note.x", "more", code=2))
        check(f.run("fleet", "quota", f.part, "--none") and f.row()["quota_bytes"] is None)
        f.run("append", "note.x", "more")
        # A node's role cannot change it.
        f.sql(node_role("bounded"))
        home = database.cluster.url().replace("cortex@", "bounded@")
        done = kit.run(BIN, "fleet", "quota", f.part, "--bytes", "1G", "--database", home, env=f.env)
        check(done.returncode == 3 and b"may not" in done.stderr, done)
        done = kit.run(BIN, "fleet", "prune", f.part, "--keep", "128", "--database", home, env=f.env)
        check(b"may not" in done.stderr or b"nothing to prune" in done.stdout, done)


def sent(node, token, path, body):
    """(status, answer) of a request with a token of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE_S)
    try:
        connection.request("POST", path, json.dumps(body), {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


def span(number):
    at = str(1767225600000000000 + number)
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "step " + "x" * 3000, "startTimeUnixNano": at,
        "endTimeUnixNano": at}]}]}]}


@test
def a_full_quota_refuses_traces_and_exporters(database):
    agent = Agent("ann")
    with Bounded(database) as f:
        token = json.loads(f.run("token", "add", "--name", "sender", "--scope", "trace:write", "--scope", "key:admin", "--json"))["token"]
        one, two = f.pair()
        status, said = sent(two, token, "/api/v1/covenant/public-keys", agent.registration())
        check(status in (200, 201), status, said)
        status, said = sent(two, token, "/api/v1/covenant/events", batch(agent.trace("t-1")))
        check(status == 200 and said["accepted"] == 1, status, said)
        status, said = sent(two, token, "/v1/traces", span(1))
        check(status == 200, status, said)
        f.run("fleet", "quota", f.part, "--bytes", "1K")
        numbers = itertools.count(2)
        wait(lambda: sent(two, token, "/v1/traces", span(next(numbers)))[0] == 507, "spans are recorded beyond the quota")
        status, said = sent(two, token, "/v1/traces", span(next(numbers)))
        check(status == 507 and f.part in said["message"] and "quota" in said["message"], status, said)
        status, said = sent(two, token, "/v1/logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "1", "body": {
            "stringValue": "a line"}}]}]}]})
        check(status == 507, status, said)
        before = one.ask("GET", "/api/v1/traces")[1]
        status, said = sent(one, token, "/api/v1/covenant/events", batch(agent.trace("t-2", second=1, padding=3000)))
        check(status == 507 and said["type"] == "urn:cortex:problem:quota", status, said)
        check(one.ask("GET", "/api/v1/traces")[1] == before, "a trace that was refused is there")
        # What is there is there once; and with room the same is recorded.
        status, said = sent(one, token, "/api/v1/covenant/events", batch(agent.trace("t-1")))
        check(status == 200 and said["results"][0]["status"] == "duplicate", status, said)
        f.run("fleet", "quota", f.part, "--none")
        wait(lambda: sent(two, token, "/api/v1/covenant/events", batch(agent.trace("t-2", second=1, padding=3000)))[0] == 200, "the quota stays")
        check(sent(two, token, "/v1/traces", span(next(numbers)))[0] == 200)


@test
def retention_is_a_parts_own(database):
    with Bounded(database) as f:
        # Its settings are a file of the part: they come with an import.
        home, part = f.folder / "home", f"{f.part}-r"
        f.ok("init", "--home", str(home))
        for days, text in ((400, SECRET), (0, "what stays")):
            step = {"op": "raw", "kind": "note.old", "committed": True, "payload": text.encode().hex(),
                    "now_ns": time.time_ns() - days * 86400 * 10**9}
            kit.expect(kit.run(BIN, "apply", "-", "--home", str(home), env=f.env, stdin=json.dumps(step).encode()), 0)
        (home / "config.toml").write_text('retention = ["note.old 1y"]\n[serve]\nretention-every = 1\n')
        f.ok("fleet", "import", str(home), "--part", part)
        url = f"{f.database}#{part}"
        check(f.has_bytes(SECRET, part) and f.has_bytes("what stays", part))
        f.run("append", "note.old", SECRET, "--committed")
        plan = json.loads(f.ok("retention", "apply", "--dry-run", "--json", "--home", url))
        check(plan["entries"] == 1, plan)
        check("retention = [" in f.run("retention", "apply", code=2), "the other part has no rules")
        # The node applies them by itself.
        node = Node(f, "keeper", url=url)
        node.wait_said("and serves it")
        wait(lambda: "erasure.receipt" in kit.run(BIN, "log", "--actor", "erasures", "--json", "--home", url, env=f.env).stdout.decode(),
             "retention was not applied:", node.said())
        check(node.stop() == 0, node.said())
        check(not f.has_bytes(SECRET, part), "it was not destroyed")
        check(f.has_bytes("what stays", part) and f.has_bytes(SECRET, f.part), "it destroyed more")
        f.ok("verify", "--home", url)
        # They are shown, taken away and set without an import; what could not be used is not stored.
        check("note.old 1y" in f.ok("fleet", "config", part))
        check("no settings of its own" in f.ok("fleet", "config", part, "--none"))
        check("retention = [" in kit.run(BIN, "retention", "apply", "--home", url, env=f.env).stderr.decode())
        (f.folder / "part.toml").write_text('retention = ["note.old 1y"]\n')
        said = json.loads(f.ok("fleet", "config", part, "--set", str(f.folder / "part.toml"), "--json"))
        check(said == {"part": part, "settings": 'retention = ["note.old 1y"]\n'}, said)
        kit.expect(kit.run(BIN, "retention", "apply", "--dry-run", "--home", url, env=f.env), 0)
        # A file that can be read only once is read once.
        piped = kit.run(BIN, "fleet", "config", part, "--set", "/dev/stdin", "--json", env=f.env, stdin=b'retention = ["note.old 1y"]\n')
        check(piped.returncode == 0 and json.loads(piped.stdout) == said, piped)
        for text, word in (('retention = ["x 1"', "part.toml: line 1"), ("nothing = 1\n", "nothing"), ("home = '/x'\n", "home")):
            (f.folder / "part.toml").write_text(text)
            done = kit.run(BIN, "fleet", "config", part, "--set", str(f.folder / "part.toml"), env=f.env)
            check(done.returncode == 2 and word in done.stderr.decode(), text, done)
        check("note.old 1y" in f.ok("fleet", "config", part))
        # Settings that cannot be used are no settings that do not count.
        f.sql(f"UPDATE cortex_fleet.cx_small s SET bytes = 'retention = [\"x 1\"' FROM cortex_fleet.cx_part p WHERE "
              f"p.part = s.part AND p.name = '{part}' AND s.name = 'config.toml'")
        done = kit.run(BIN, "append", "note.x", "text", "--home", url, env=f.env)
        check(done.returncode == 2 and b"config.toml" in done.stderr, done)


@test
def commits_are_pruned_and_what_is_broken_stays_broken(database):
    with Bounded(database) as f:
        key, old, new = f.folder / "key", f.folder / "old.json", f.folder / "new.json"
        vkey = f.ok("key", "new", str(key), "--name", "fleet.test/prune").strip()
        state = ["fleet", "checkpoint", "--part", f.part, "--sign", str(key), "-o"]
        f.run(*state, str(old))
        for n in range(4):
            f.run("append", "note.x", f"text {n}")
        check("nothing to prune" in f.run("fleet", "prune", f.part))
        f.run("fleet", "prune", f.part, "--keep", "10", code=2)
        number = f.row()["part"]
        steps = "".join(json.dumps({"op": "raw", "kind": "note.x", "payload": f"{n:02x}"}) + "\n" for n in range(140))
        kit.expect(kit.run(BIN, "apply", "-", "--home", f.url, env=f.env, stdin=steps.encode()), 0)
        # Not while a process has the part.
        for owner, lease, code in (("'n1/0123456789abcdef'", "now() + interval '1 hour'", 3), ("NULL", "NULL", None)):
            f.sql(f"UPDATE cortex_fleet.cx_part SET owner = {owner}, lease_until = {lease} WHERE part = {number}")
            check(code is None or "Locked" in f.run("fleet", "prune", f.part, "--keep", "128", code=code))
        before = f.row()
        got = f.json("fleet", "prune", f.part, "--keep", "128")
        after = f.row()
        check(got["removed"] > 0 and got["base"] == before["commits"] - 128 == after["base"], got, before, after)
        rows = int(f.sql(f"SELECT count(*) FROM cortex_fleet.cx_commit WHERE part = {number}"))
        check(rows == after["commits"] - got["removed"] and after["commits"] == before["commits"] + 1, rows, got, after)
        check("ok" in f.run("fleet", "doctor", "--chains"))
        f.run("verify", "--home", f.url)
        f.run("append", "note.x", "after it")
        # A checkpoint of before is not known to hold, one of now is.
        check_of = ["fleet", "checkpoint", "--key", vkey, "--check"]
        said = f.run(*check_of, str(old), code=3)
        check("indeterminate" in said and "Pruned" in said, said)
        f.run(*state, str(new))
        f.run("append", "note.x", "later")
        f.run(*check_of, str(new), "--chains")
        # Pruned or not: a database of before is broken.
        f.sql(f"UPDATE cortex_fleet.cx_part SET epoch = 1 WHERE part = {number}")
        check("RolledBack" in f.run(*check_of, str(new), code=1))


@test
def tables_of_an_earlier_version_are_told(database):
    with Bounded(database) as f:
        f.sql("CREATE TABLE cortex_fleet.kept AS SELECT * FROM cortex_fleet.cx_migration WHERE number > 1; "
              "DELETE FROM cortex_fleet.cx_migration WHERE number > 1; DROP TABLE cortex_fleet.cx_balance; "
              "ALTER TABLE cortex_fleet.cx_node DROP balances, DROP counts; DROP INDEX cortex_fleet.cx_node_part; "
              "DROP INDEX cortex_fleet.cx_event_kind; ALTER TABLE cortex_fleet.cx_part DROP quota_bytes, DROP base, DROP base_head, DROP base_num, DROP trail")
        for words in (["fleet", "parts"], ["append", "note.x", "text"]):
            said = f.run(*words, code=3)
            check("cortex fleet init" in said, said)
        check("ran 4 migrations" in f.run("fleet", "init"))
        f.run("append", "note.x", "text")
        f.run("fleet", "quota", f.part, "--bytes", "1G")


if SERVERS is None:
    kit.skip_all("no PostgreSQL server is installed", count=len(kit.collected))
main(Database)
