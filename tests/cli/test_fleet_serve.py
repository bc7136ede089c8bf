#!/usr/bin/env python3
"""test_fleet_serve.py - nodes of a fleet (`cortex serve --fleet`): who serves, what is handed on, what is
held, and what is there after each way to lose a node.

Over a PostgreSQL primary with a synchronous standby on loopback (tests/fleet/cluster.py); skipped where no
server is installed.  CORTEX_FLEET_TIMES=1 prints how long take-overs took; CORTEX_FLEET_SECONDS=30 also tries
what takes long.
"""
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fleet"))
ARGUMENTS, sys.argv = sys.argv[1:], sys.argv[:1] + [a for a in sys.argv[1:] if os.path.isfile(a)]
import kit  # noqa: E402
import cluster as clusters  # noqa: E402
from fleet_kit import FACT, PATIENCE_S, Database, Fleet, Node, Writer, children_of, freeze, wait  # noqa: E402
from kit import BIN, check, main, test  # noqa: E402

kit.arguments[:] = [a for a in ARGUMENTS if not os.path.isfile(a)]
LONG = int(os.environ.get("CORTEX_FLEET_SECONDS", "0"))
LONG = LONG if LONG >= 30 else 0
times = []


def took(what, begun):
    times.append((what, time.monotonic() - begun))


def check_written(node, writers):
    """Acknowledged entries are there, and a key that is sent again is the entry it was."""
    for writer in writers:
        check(writer.entries, "nothing was written")
        seen = {}
        for key, entry in writer.entries.items():
            check(entry not in seen, "two keys in one entry", key, seen.get(entry))
            seen[entry] = key
        for key in list(writer.entries)[-40:]:
            status, again = node.write(key)
            check(status == 200 and again["duplicate"] and again["entry"] == writer.entries[key], key, status, again,
                  writer.entries[key])


@test
def both_nodes_answer_and_one_has_the_part(database):
    with Fleet(database) as f:
        one, two = f.pair()
        status, made = two.write("first")
        check(status == 201 and not made["duplicate"], status, made)
        status, again = one.write("first")
        check(status == 200 and again["duplicate"] and again["entry"] == made["entry"], again)
        check(one.serves() and not two.serves(), one.said(), two.said())
        for node in (one, two):
            check(node.ask("GET", "/readyz")[0] == 200)
            done = kit.run(BIN, "ready", "--url", node.about["url"], env=f.env)
            check(done.returncode == 0, done)
        done = kit.run(BIN, "ready", "--home", f.url, env=f.env)
        check(done.returncode == 2 and b"name one with --url" in done.stderr, done)
        done = kit.run(BIN, "append", "note.x", "text", "--home", f.url, env=f.env)
        check(done.returncode == 3 and b"owned by the node one" in done.stderr, done)
        # Only nodes connect to the inner socket.
        raw = http.client.HTTPConnection("127.0.0.1", two.inner, timeout=PATIENCE_S)
        try:
            raw.request("GET", "/readyz")
            raw.getresponse()
            check(False, "the inner socket answered")
        except (OSError, http.client.HTTPException):
            pass
        finally:
            raw.close()
        listed = f.listed()
        check(sorted((n["node"], n["state"], n["part"]) for n in listed) == [("one", "up", f.part), ("two", "up", f.part)],
              listed)
        check({n["address"] for n in listed} == {n.about["url"].removeprefix("http://") for n in (one, two)}, listed)
        check(one.stop() == 0 and two.stop() == 0)
        check(f.listed() == [])


def scraped(node):
    """/metrics -> name -> labels -> value."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {node.fleet.token}"})
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    found = {}
    for name, labels, value in re.findall(r"^(cortex_fleet_\w+)(?:\{(.*)\})? (\d+)$", text, flags=re.M):
        found.setdefault(name, {})[tuple(sorted(re.findall(r'(\w+)="([^"]*)"', labels)))] = int(value)
    kinds = dict(re.findall(r"^# TYPE (cortex_fleet_\S+) (\S+)$", text, flags=re.M))
    return found, kinds


def signed_in(node):
    """The cookie of a new session of the page."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE_S)
    try:
        connection.request("POST", "/api/v1/session",
                           headers={"Authorization": f"Bearer {node.fleet.token}", "X-Cortex-Page": "1"})
        answer = connection.getresponse()
        check(answer.status == 200 and json.loads(answer.read())["fleet"] is True, answer.status)
        return answer.getheader("Set-Cookie").split(";")[0]
    finally:
        connection.close()


def by_session(node, cookie, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE_S)
    try:
        connection.request(method, "/api/v1/session", headers={
            "Cookie": cookie, "X-Cortex-Page": "1", "Sec-Fetch-Site": "same-origin", "Origin": f"http://127.0.0.1:{node.port}"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return 0  # it was under way
    finally:
        connection.close()


@test
def parts_and_nodes_are_shown_and_no_tenant_sees_another(database):
    with Fleet(database) as f:
        one, two = f.pair()
        check(one.write("a key")[0] == 201)
        wait(lambda: len(two.ask("GET", "/api/v1/nodes")[1]["nodes"]) == 2, "two nodes")
        status, got = two.ask("GET", "/api/v1/nodes")
        check(status == 200 and got["part"] == f.part and got["node"] == "one" and not got["away"] and got["strict"], got)
        # main, and the parts of other tests, are there and not told of.
        check(len(json.loads(f.ok("fleet", "parts", "--json"))["parts"]) > 1)
        listed = {p["name"]: p for p in json.loads(f.ok("fleet", "parts", "--json"))["parts"]}
        check([p["name"] for p in got["parts"]] == [f.part], got)
        part = got["parts"][0]
        check(part["node"] == "one" and part["served"] and 0 < part["lease_left_ms"] <= 4000, part)
        check(part["id"] == listed[f.part]["id"] and part["epoch"] == listed[f.part]["epoch"] and part["commits"] > 0, part)
        check(sorted((n["node"], n["state"], n["role"]) for n in got["nodes"]) ==
              [("one", "up", "serves"), ("two", "up", "waits")], got)
        check(part["address"] == f"127.0.0.1:{one.port}" and part["fences"] == 0, part)
        check(got["connections"]["own"] + got["connections"]["other"] >= 0 and got["connections"]["refused"] == 0, got)
        lag = got["lag"]
        check(lag["log_commits"] >= max(1, lag["table_commits"], lag["index_commits"]) and not lag["index_away"], lag)
        # What became of this part, the newest first, and of no other one.
        newest = got["events"][0]
        check((newest["kind"], newest["node"], newest["epoch"], newest["ended_lease"]) ==
              ("take", "one", part["epoch"], False), got["events"])
        check({e["part"] for e in got["events"]} == {f.part}, got["events"])
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", newest["at"]) and newest["ago_ms"] >= 0, newest)

        found, kinds = scraped(two)
        table = dict(re.findall(r"^\| `(cortex_fleet_\w+)` \| (gauge|counter)", (HERE.parents[1] / "docs/metrics.md").read_text(),
                                flags=re.M))
        late = {"cortex_fleet_tables_age_seconds"}
        check(set(kinds) - late == set(table) - late and all(table[name] == kind for name, kind in kinds.items()),
              set(table) ^ set(kinds))
        key = (("part", f.part),)
        check(found["cortex_fleet_part_served"] == {key: 1} and found["cortex_fleet_part_stopped"] == {key: 0}, found)
        check(found["cortex_fleet_part_epoch"] == {key: part["epoch"]}, found)
        check(found["cortex_fleet_part_info"] == {(("id", part["id"]), ("node", "one"), key[0]): 1}, found)
        check(found["cortex_fleet_away"] == {(): 0}, found)
        check(found["cortex_fleet_node_alive"] == {(("node", n), key[0]): 1 for n in ("one", "two")}, found)
        # What the parent of the node that serves has accepted.
        accepted = found["cortex_fleet_connections_total"][()]
        for n in range(5):
            one.ask("GET", "/healthz")
        wait(lambda: scraped(one)[0]["cortex_fleet_connections_total"][()] >= accepted + 5, "connections are counted")
        check(scraped(one)[0]["cortex_fleet_connections"][(("to", "own"),)] >= 0)

        # .. and those of a node that hands them on.
        held = http.client.HTTPConnection("127.0.0.1", two.port, timeout=PATIENCE_S)
        held.request("GET", "/healthz")
        check(held.getresponse().read())
        of_two = tuple(sorted({"node": "two", "part": f.part, "to": "other"}.items()))
        wait(lambda: scraped(one)[0]["cortex_fleet_node_connections"].get(of_two, 0) >= 1, "a connection that two hands on")
        wait(lambda: next(n for n in f.listed() if n["node"] == "two")["connections"]["other"] >= 1, "the same in the list of nodes")
        told = next(n for n in one.ask("GET", "/api/v1/nodes")[1]["nodes"] if n["node"] == "two")
        check(told["connections"]["accepted"] >= 1 and told["connections"]["own"] == 0, told)
        held.close()

        f.ok("fleet", "drain", "two")
        wait(lambda: scraped(one)[0]["cortex_fleet_node_draining"].get((("node", "two"), key[0])) == 1, "two drains")
        f.ok("fleet", "drain", "two", "--undo")
        two.kill()
        wait(lambda: scraped(one)[0]["cortex_fleet_node_alive"].get((("node", "two"), key[0])) == 0, "two is silent")
        check([n["state"] for n in one.ask("GET", "/api/v1/nodes")[1]["nodes"] if n["node"] == "two"] == ["silent"])
        # Who is signed in stays so when a worker is replaced, and is told why it was.
        cookie = signed_in(one)
        check(cookie.startswith(f"cortex_{part['id'][:16]}="), cookie)
        gone = signed_in(one)
        check(by_session(one, gone, "DELETE") == 200)
        os.kill(one.worker(), signal.SIGKILL)
        wait(lambda: by_session(one, cookie) == 200, "the session")
        check(by_session(one, gone) == 401, "a session that was ended came back")
        wait(lambda: "released" in [e["kind"] for e in one.ask("GET", "/api/v1/nodes")[1]["events"]], "the released lease")
        stored = str(f.sql(f"SELECT convert_from(s.bytes, 'UTF8') FROM cortex_fleet.cx_small s JOIN cortex_fleet.cx_part p USING "
                       f"(part) WHERE p.name = '{f.part}' AND s.name = 'sessions.json'"))
        check("cortex-sessions-1" in stored and cookie.split("=")[1] not in stored, stored)
    # A node of main is the operator's.
    with Fleet(database) as f:
        f.url, f.part = f"{f.database}#main", "main"
        f.token = json.loads(f.ok("token", "add", "--name", "all", "--scope", "trace:read", "--json", home=f.url))["token"]
        node = f.node("three")
        node.wait_said("and serves it")
        wait(lambda: len(node.ask("GET", "/api/v1/nodes")[1]["parts"]) > 2, "all parts")
        events = node.ask("GET", "/api/v1/nodes")[1]["events"]
        check(len({e["part"] for e in events}) > 1 and len(events) <= 50, events)
        check(len(scraped(node)[0]["cortex_fleet_part_epoch"]) > 2)


@test
def links_are_among_the_files_of_the_part(database):
    with Fleet(database) as f:
        def links(node, name):
            status, told = node.ask("GET", "/api/v1/objects?id=" + urllib.parse.quote(name, safe=""))
            check(status == 200, status, told)
            return [(link["relation"], link["id"]) for link in told["links"]]

        def memory(node, key, *derived):
            status, made = node.ask("POST", "/api/v1/actors/ann/memories", {
                **FACT, "key": key, "provenance": {"derived_from": list(derived)}})
            check(status == 201, status, made)
            return made["uri"]

        added = f.ok("token", "add", "--name", "full", "--scope", "memory:write", "--scope", "trace:read", "--level", "full_traces", "--json",
                     home=f.url)
        f.token = json.loads(added)["token"]
        one, two = f.pair()
        first = memory(two, "a")
        second = memory(one, "b", first)
        check(links(two, first) == [("remembered_as", second)] and links(one, second) == [("derived_from", first)])
        stored = f"SELECT count(*) FROM cortex_fleet.cx_file WHERE part = (SELECT part FROM cortex_fleet.cx_part WHERE name = '{f.part}') "
        stored += "AND name LIKE '%links.db'"
        check(f.sql(stored) == "1", f.sql("SELECT part, name FROM cortex_fleet.cx_file"))
        # The next node reads on; a command that does not have the part reads the log by itself.
        shown = json.loads(f.ok("show", first, "--json", home=f.url))
        check([link["id"] for link in shown["links"]] == [second], shown)
        one.kill()
        two.wait_said("and serves it")
        third = memory(two, "c", first)
        check(links(two, first) == [("remembered_as", second), ("remembered_as", third)], links(two, first))
        # A database that says something else is not believed.
        check(two.stop() == 0)
        f.ok("erase", second, "--reason", "asked for", home=f.url)
        three = f.node("three")
        three.wait_said("and serves it")
        check(links(three, first) == [("remembered_as", third)], links(three, first))


@test
def a_killed_worker_and_a_killed_node_are_replaced(database):
    with Fleet(database) as f:
        one, two = f.pair()
        writers = [Writer([one, two]), Writer([two, one])]
        wait(lambda: all(len(w.entries) > 5 for w in writers), "some entries")
        os.kill(one.worker(), signal.SIGKILL)
        begun = time.monotonic()
        wait(lambda: "ended by signal 9" in one.said(), "the end of the worker")
        status, _ = two.write("after the worker")
        took("worker killed", begun)
        check(status == 201)
        wait(lambda: one.serves() != two.serves(), "one owner")
        owner, other = (one, two) if one.serves() else (two, one)
        n = [len(w.entries) for w in writers]
        wait(lambda: all(len(w.entries) > n[i] + 5 for i, w in enumerate(writers)), "more entries")
        owner.kill()
        begun = time.monotonic()
        status, _ = other.write("after the node")
        took("node killed", begun)
        check(status == 201)
        for w in writers:
            w.end()
        check(other.serves(), other.said())
        check_written(other, writers)


@test
def a_node_that_waits_keeps_no_transaction_open(database):
    with Fleet(database) as f:
        f.pair()
        time.sleep(1.5)
        for _ in range(5):
            open_for = database.cluster.primary.sql(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'cortex' AND pid <> pg_backend_pid() AND "
                "xact_start < now() - interval '1 second'")
            check(open_for == "0", database.cluster.primary.sql("SELECT state, query FROM pg_stat_activity"))
            time.sleep(0.1)


@test
def a_frozen_parent_does_not_keep_the_part(database):
    if not LONG:
        kit.skip("it takes 12 seconds; CORTEX_FLEET_SECONDS=30 runs it")
    with Fleet(database) as f:
        one, two = f.pair()
        check(one.write("before")[0] == 201)
        one.signal(signal.SIGSTOP)
        begun = time.monotonic()
        status, again = two.write("before")
        took("parent frozen", begun)
        check(status == 200 and again["duplicate"], again)
        check(two.serves(), two.said())
        one.signal(signal.SIGCONT)
        status, again = one.write("before")
        check(status == 200 and again["duplicate"], again)


@test
def draining_and_restarting_fails_no_request(database):
    with Fleet(database) as f:
        one, two = f.pair()
        writers = [Writer([two], retries=False) for _ in range(3)]
        wait(lambda: all(len(w.entries) > 5 for w in writers), "some entries")
        begun = time.monotonic()
        f.ok("fleet", "drain", "one")
        wait(two.serves, "the other node")
        took("drained", begun)
        check(not one.serves(), one.said())
        listed = f.listed()
        check({n["node"]: n["state"] for n in listed} == {"one": "drains", "two": "up"}, listed)
        through = Writer([one], retries=False)
        wait(lambda: len(through.entries) > 5, "entries through the node that drains")
        f.ok("fleet", "drain", "one", "--undo")
        one.wait_said("has ended the draining")
        through.end()
        # Each in turn, as an upgrade does it; clients use the one that stays.
        begun = time.monotonic()
        for w in writers:
            w.nodes = [one]
        time.sleep(0.2)
        check(two.stop() == 0, two.said())
        wait(one.serves, "the first node again")
        took("stopped", begun)
        three = f.node("two")
        n = len(writers[0].entries)
        for w in writers:
            w.nodes = [three]
        wait(lambda: len(writers[0].entries) > n + 5, "more entries")
        check(one.stop() == 0, one.said())
        wait(three.serves, "the new node")
        n = len(writers[0].entries)
        wait(lambda: len(writers[0].entries) > n + 5, "more entries")
        for w in [through, *[w.end() for w in writers]]:
            check(w.failures == [], w.failures, one.said(), two.said(), three.said())
        took("slowest request meanwhile", time.monotonic() - max(w.slowest for w in writers))
        check_written(three, writers)
        done = kit.run(BIN, "fleet", "drain", "nobody", env=f.env)
        check(done.returncode == 2 and b"no node 'nobody'" in done.stderr, done)


@test
def a_frozen_owner_does_not_answer_when_it_wakes(database):
    with Fleet(database) as f:
        one, two = f.pair("--lease", 2, "--worker-timeout", 60)
        check(one.write("before")[0] == 201)
        worker = one.worker()
        status, ready = one.ask("GET", "/readyz")
        freeze(worker)
        begun = time.monotonic()
        # The request is in the socket of the frozen worker.
        answers = []

        def ask_frozen():
            try:
                answers.append(one.ask("GET", "/api/v1/memories?actor=ann"))
            except (OSError, http.client.HTTPException) as problem:
                answers.append(problem)
        asking = threading.Thread(target=ask_frozen)
        asking.start()
        wait(two.serves, "the other node")
        check(two.write("meanwhile")[0] == 201)
        took("owner frozen", begun)
        os.kill(worker, signal.SIGCONT)
        asking.join(PATIENCE_S)
        check(len(answers) == 1 and isinstance(answers[0], Exception), "it answered:", answers)
        one.wait_said("the part is lost, and this worker ends")
        wait(lambda: worker not in children_of(one.process.pid), "its end")
        status, again = one.write("meanwhile")
        check(status == 200 and again["duplicate"], again)


@test
def a_promoted_standby_is_found(database):
    with Fleet(database) as f:
        one, two = f.pair()
        writers = [Writer([one, two]), Writer([two])]
        wait(lambda: all(len(w.entries) > 5 for w in writers), "some entries")
        begun = time.monotonic()
        f.cluster.primary.kill()
        time.sleep(1.5)  # requests meet a database that is away
        f.cluster.failover()
        n = [len(w.entries) for w in writers]
        wait(lambda: all(len(w.entries) > n[i] + 5 for i, w in enumerate(writers)), "more entries")
        took("standby promoted", begun)
        for w in writers:
            w.end()
        wait(lambda: one.serves() or two.serves(), "an owner")
        check_written(one, writers)
        for node in (one, two):  # told once, and not each second
            check(node.said().count("the database cannot be asked") <= 3, node.said())
            check(node.said().count("tokens.json") <= 3, node.said())


@test
def tls_is_between_the_client_and_the_worker(database):
    if shutil.which("openssl") is None:
        kit.skip("no openssl")
    with Fleet(database) as f:
        cert, key = f.folder / "cert.pem", f.folder / "key.pem"
        made = kit.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                       "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                       "subjectAltName=IP:127.0.0.1")
        check(made.returncode == 0, made)
        options = ("--tls-cert", cert, "--tls-key", key, "--hold", 2, "--listen", "0.0.0.0:0")
        one = f.node("one", *options)
        one.wait_said("and serves it")
        two = f.node("two", *options)
        check(one.about["url"].startswith("https://"), one.about)
        f.tls = ssl.create_default_context(cafile=cert)
        status, made = two.write("first")
        check(status == 201, status, made)
        status, again = one.write("first")
        check(status == 200 and again["duplicate"], again)
        for node in ("one", "two"):
            f.ok("fleet", "drain", node)
        one.wait_said("does not serve")
        wait(lambda: not two.serves(), "no owner")
        try:
            check(False, "answered:", one.write("second"))
        except (OSError, http.client.HTTPException):
            pass  # no words of HTTP in a connection with TLS
        for node in ("one", "two"):
            f.ok("fleet", "drain", node, "--undo")


def make_certificates(folder):
    """Files of a CA, of another one, and of nodes: a function (name, **what) -> (cert, key)."""
    def openssl(*words):
        done = kit.run("openssl", *words, cwd=folder)
        check(done.returncode == 0, words, done)

    def ca(name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key",
                "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")

    def make(name, by="ca", names="IP:127.0.0.1", days="2", usage="serverAuth,clientAuth"):
        (folder / f"{name}.ext").write_text(f"subjectAltName={names}\nextendedKeyUsage={usage}\n", encoding="utf-8")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
                f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial", "-days",
                days, "-out", f"{name}.pem", "-extfile", f"{name}.ext")
        return name

    ca("ca")
    ca("other-ca")
    return make


def tls_options(f, name, ca="ca"):
    return ("--node-tls-cert", f.folder / f"{name}.pem", "--node-tls-key", f.folder / f"{name}.key", "--node-tls-ca",
            f.folder / f"{ca}.pem")


def knock(port, context, data):
    """What the node port sends an outsider."""
    got = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            link = context.wrap_socket(raw, server_hostname="127.0.0.1") if context else raw
            link.settimeout(10)
            link.sendall(data)
            while True:
                block = link.recv(4096)
                if not block:
                    return got
                got += block
    except OSError:
        return got


def outsider(f, name=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if name:
        context.load_cert_chain(f.folder / f"{name}.pem", f.folder / f"{name}.key")
    return context


@test
def nodes_show_each_other_certificates(database):
    if shutil.which("openssl") is None:
        kit.skip("no openssl")
    with Fleet(database) as f:
        make = make_certificates(f.folder)
        for name in ("one", "two"):
            make(name)
        make("named", names="DNS:node.example")
        make("foreign", by="other-ca")
        make("elsewhere", names="IP:10.9.9.9")
        make("server", usage="serverAuth")
        one = f.node("one", *tls_options(f, "one"), "--hold", 2)
        one.wait_said("and serves it")
        two = f.node("two", *tls_options(f, "two"), "--hold", 20)
        status, made = two.write("first")
        check(status == 201, status, made)
        status, again = one.write("first")
        check(status == 200 and again["duplicate"] and again["entry"] == made["entry"], again)
        # Both directions, and more than a block.
        large = {**FACT, "key": "large", "data": {**FACT["data"], "statement": "x" * 300_000}}
        status, made = two.ask("POST", "/api/v1/actors/ann/memories", large)
        check(status in (201, 413, 422), status, made)
        status, listed = two.ask("GET", "/openapi.json")
        check(status == 200 and len(json.dumps(listed)) > 100_000)
        writer = Writer([two], retries=False)
        wait(lambda: len(writer.entries) > 20, "entries over TLS")
        check(writer.end().failures == [], writer.failures)
        # An outsider: without TLS, without a certificate, with those that do not count.
        greeting = b"CXR1\0\0\0\0GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
        check(knock(one.inner, None, greeting) == b"")
        one.wait_said("does not speak TLS as a node does")
        check(knock(one.inner, outsider(f), greeting) == b"")
        one.wait_said("it has shown no certificate")
        for name, words in (("foreign", "is not of the CA"), ("elsewhere", "does not name the address 127.0.0.1"),
                            ("server", "not for this side of TLS"), ("named", "does not name the address 127.0.0.1")):
            check(knock(one.inner, outsider(f, name), greeting) == b"", name)
            one.wait_said(words)
        check(b"200 OK" in knock(one.inner, outsider(f, "two"), greeting), "a node is let in")
        check(one.stop() == 0 and two.stop() == 0, one.said(), two.said())


@test
def a_node_that_is_not_trusted_gets_nothing(database):
    if shutil.which("openssl") is None:
        kit.skip("no openssl")
    with Fleet(database) as f:
        make = make_certificates(f.folder)
        make("one")
        make("foreign", by="other-ca")
        make("elsewhere", names="IP:10.9.9.9")
        make("named", names="DNS:node.example")
        one = f.node("one", *tls_options(f, "one"))
        one.wait_said("and serves it")

        def is_held(name, *options, said):
            node = f.node(name, "--hold", 2, *options)
            end = time.monotonic() + PATIENCE_S
            while said not in node.said():  # at first it may not know yet where the part is
                check(time.monotonic() < end, name, "did not say", said, ":", node.said())
                status, why = node.ask("GET", "/readyz")
                check(status == 503 and why["type"] == "urn:cortex:problem:unavailable", name, status, why)
            check(node.stop() == 0)
        # It trusts no other CA, is not trusted with a name that is not its own, and speaks nothing but TLS.
        is_held("a", *tls_options(f, "foreign", "other-ca"), said="its certificate is not of the CA of this node")
        is_held("b", *tls_options(f, "elsewhere"), said="it refuses this node")
        plain = f.node("plain", "--hold", 2)
        check(plain.ask("GET", "/readyz")[0] == 503)
        check(plain.stop() == 0)
        check(one.ask("GET", "/readyz")[0] == 200)
        check(one.stop() == 0, one.said())
        # And the owner without TLS, or with another's certificate, is not one that others hand to.
        one = f.node("one")
        one.wait_said("and serves it")
        is_held("c", *tls_options(f, "one"), said="TLS between nodes: the node at 127.0.0.1")
        check(one.stop() == 0)
        one = f.node("one", *tls_options(f, "elsewhere"))
        one.wait_said("and serves it")
        is_held("d", *tls_options(f, "one"), said="its certificate does not name the address 127.0.0.1")
        check(one.stop() == 0)
        # A name that all have, in place of addresses.
        by_name = (*tls_options(f, "named"), "--node-tls-name", "node.example")
        one = f.node("one", *by_name)
        one.wait_said("and serves it")
        two = f.node("two", *by_name)
        check(two.ask("GET", "/readyz")[0] == 200)
        is_held("e", *tls_options(f, "one"), "--node-tls-name", "node.example", said="it refuses this node")
        check(one.stop() == 0 and two.stop() == 0)


@test
def certificates_of_nodes_that_cannot_work_are_told(database):
    if shutil.which("openssl") is None:
        kit.skip("no openssl")
    with Fleet(database) as f:
        make = make_certificates(f.folder)
        make("one")
        make("two")
        make("old", days="-1")

        def fails(code, text, *words):
            done = kit.run(BIN, "serve", "--fleet", f.url, "--listen", "127.0.0.1:0", *words, env=f.env, cwd=f.folder)
            check(done.returncode == code and text in done.stderr.decode(), words, done)
        fails(2, "must be given together", *tls_options(f, "one")[:4])
        fails(2, "must be given together", "--node-tls-name", "x")
        fails(2, "old.pem: the certificate has expired", *tls_options(f, "old"))
        fails(2, "two.key: expected the key of the certificate", *tls_options(f, "one")[:3], f.folder / "two.key",
              *tls_options(f, "one")[4:])
        fails(2, "one.ext: expected the certificate of a CA", *tls_options(f, "one")[:5], f.folder / "one.ext")
        fails(2, "nothere.pem: expected a certificate", "--node-tls-cert", f.folder / "nothere.pem",
              *tls_options(f, "one")[2:])
        # That of a node that runs expires: the others refuse it from then on.
        one = f.node("one", *tls_options(f, "one"))
        one.wait_said("and serves it")
        context = outsider(f, "old")
        check(knock(one.inner, context, b"CXR1\0\0\0\0GET /readyz HTTP/1.1\r\n\r\n") == b"")
        one.wait_said("its certificate has expired")
        check(one.stop() == 0)


@test
def one_of_three_nodes_takes_over(database):
    with Fleet(database) as f:
        one, two = f.pair("--lease", 2)
        three = f.node("three", "--lease", 2)
        check(three.write("before")[0] == 201)
        one.kill()
        for node in (two, three):
            status, again = node.write("before")
            check(status == 200 and again["duplicate"], again)
        check(two.serves() != three.serves(), two.said(), three.said())
        for node in (two, three):
            check("ended with exit code" not in node.said(), node.said())


def three_nodes(f, *options):
    one, two = f.pair(*options)
    return one, two, f.node("three", *options)


def part_moves(f, nodes, break_worker, what, seconds):
    """A worker is broken under writers; its part moves long before its lease ends, and nothing is lost."""
    writers = [Writer(nodes), Writer(nodes[1:]), Writer(nodes[:1])]
    wait(lambda: all(len(w.entries) > 3 for w in writers), "some entries")
    worker = nodes[0].worker()
    epoch = int(f.sql(f"SELECT epoch FROM cortex_fleet.cx_part WHERE name = '{f.part}'"))
    break_worker(worker)
    begun = time.monotonic()
    n = [len(w.entries) for w in writers]
    wait(lambda: all(len(w.entries) > n[i] + 3 for i, w in enumerate(writers)), "more entries")
    passed = time.monotonic() - begun
    took(what, begun)
    check(passed < seconds, what, "the part moved after", passed)
    nodes[0].wait_said("the lease of the worker that is gone was ended")
    check(worker not in children_of(nodes[0].process.pid), "it is there")
    owners = [node for node in nodes if node.serves()]
    check(len(owners) == 1, [node.said() for node in nodes])
    # The end of the lease is an epoch, and the take another one.
    check(int(f.sql(f"SELECT epoch FROM cortex_fleet.cx_part WHERE name = '{f.part}'")) >= epoch + 2)
    for w in writers:
        w.end()
        check(w.lost == [], w.lost)
    check_written(nodes[1], writers)
    seen = [entry for w in writers for entry in w.entries.values()]
    check(len(seen) == len(set(seen)), "two keys in one entry")
    f.ok("verify", "--home", f.url)


@test
def a_stopped_worker_is_replaced_before_its_lease_ends(database):
    with Fleet(database) as f:
        nodes = three_nodes(f, "--lease", 120, "--worker-timeout", 2)
        part_moves(f, nodes, freeze, "worker stopped, 2 s", 20)
        nodes[0].wait_said("the worker has not answered for 2 s, and is killed")


@test
def a_killed_worker_gives_its_part_back_before_its_lease_ends(database):
    with Fleet(database) as f:
        nodes = three_nodes(f, "--lease", 120)
        part_moves(f, nodes, lambda pid: os.kill(pid, signal.SIGKILL), "worker killed", 15)


@test
def a_stopped_worker_that_waits_is_replaced(database):
    with Fleet(database) as f:
        _, two = f.pair("--worker-timeout", 2)
        worker = two.worker()
        time.sleep(0.5)  # it is its program by now
        freeze(worker)
        wait(lambda: worker not in children_of(two.process.pid), "its end")
        wait(lambda: len(children_of(two.process.pid)) == 1, "another")


class Faults:
    """What happens to three nodes; each is there again afterwards."""

    def __init__(self, fleet, seed):
        self.fleet, self.random = fleet, random.Random(seed)
        self.nodes = [fleet.node(name) for name in ("one", "two", "three")]
        self.done = []

    def restart(self, i):
        self.nodes[i] = self.fleet.node(self.nodes[i].name)

    def worker_killed(self, i):
        for pid in children_of(self.nodes[i].process.pid):
            os.kill(pid, signal.SIGKILL)

    def worker_stopped(self, i):
        """Until its parent notices."""
        for pid in children_of(self.nodes[i].process.pid):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(self.random.uniform(5, 9))

    def worker_frozen(self, i):
        for pid in children_of(self.nodes[i].process.pid):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.random.uniform(1, 8))
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass  # its parent was faster

    def node_frozen(self, i):
        self.nodes[i].signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.5, 4))
        self.nodes[i].signal(signal.SIGCONT)

    def node_killed(self, i):
        self.nodes[i].kill()
        self.restart(i)

    def node_stopped(self, i):
        check(self.nodes[i].stop() == 0, self.nodes[i].said())
        self.restart(i)

    def node_drained(self, i):
        self.fleet.ok("fleet", "drain", self.nodes[i].name)
        time.sleep(self.random.uniform(0.5, 4))
        self.fleet.ok("fleet", "drain", self.nodes[i].name, "--undo")

    def primary_lost(self, _):
        self.fleet.cluster.failover()

    def one(self):
        kinds = [self.worker_killed, self.worker_frozen, self.worker_stopped, self.node_frozen, self.node_killed, self.node_stopped,
                 self.node_drained] * 2 + [self.primary_lost]
        fault = self.random.choice(kinds)
        owners = [i for i, node in enumerate(self.nodes) if node.serves()]
        i = self.random.choice(owners) if owners and self.random.random() < 0.8 else self.random.randrange(3)
        fault(i)
        self.done.append(fault.__name__)


@test
def random_faults_lose_nothing(database):
    if not LONG:
        kit.skip("CORTEX_FLEET_SECONDS=30 and more runs it so long")
    seed = int(os.environ.get("CORTEX_FLEET_SEED", time.time_ns() % 100000))
    with Fleet(database) as f:
        faults = Faults(f, seed)
        faults.nodes[0].write("first")
        writers = [Writer(faults.nodes) for _ in range(4)]
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            faults.one()
            time.sleep(faults.random.uniform(0.2, 6))
        for w in writers:
            w.end()
        wait(lambda: faults.nodes[0].write("last")[0] in (200, 201), "an owner")
        counts = {kind: faults.done.count(kind) for kind in sorted(set(faults.done))}
        print(f"  seed {seed}: {counts}, {sum(len(w.entries) for w in writers)} entries, "
              f"{sum(len(w.failures) for w in writers)} requests without an answer, slowest "
              f"{max(w.slowest for w in writers):.1f} s")
        seen = set()
        for w in writers:
            check(w.lost == [], "no answer in time:", w.lost)
            for key, entry in w.entries.items():
                check(entry not in seen, "two keys in one entry", key, entry)
                seen.add(entry)
                status, again = faults.nodes[0].write(key)
                check(status == 200 and again["duplicate"] and again["entry"] == entry, key, entry, status, again)
        for node in faults.nodes:
            check(node.stop() == 0, node.said())
        f.ok("verify", "--home", f.url)


@test
def what_is_asked_while_no_node_serves_is_given_up_in_time(database):
    with Fleet(database) as f:
        one = f.node("one", "--hold", 1)
        one.wait_said("and serves it")
        f.ok("fleet", "drain", "one")
        one.wait_said("does not serve")
        status, why = one.ask("GET", "/readyz")
        check(status == 503 and why["type"] == "urn:cortex:problem:unavailable" and why["status"] == 503, status, why)
        check(one.stop() == 0)
        # A new process of a node that drains takes nothing either.
        one = f.node("one", "--hold", 1)
        status, why = one.ask("GET", "/readyz")
        check(status == 503 and not one.serves(), status, why)
        f.ok("fleet", "drain", "one", "--undo")
        one.wait_said("and serves it")
        check(one.ask("GET", "/readyz")[0] == 200)


@test
def wrong_questions_have_clear_answers(database):
    with Fleet(database) as f:
        def fails(code, text, *words):
            done = kit.run(BIN, "serve", "--listen", "127.0.0.1:0", *words, env=f.env, cwd=f.folder)
            check(done.returncode == code and text in done.stderr.decode(), words, done)
        fails(2, "expected postgresql://", "--fleet", "http://127.0.0.1")
        fails(2, "option --home", "--fleet", f.url, "--home", str(f.folder / "x"))
        fails(2, "option --otlp:", "--fleet", f.url, "--otlp", "127.0.0.1:4318")
        fails(2, "option --hold", "--fleet", f.url, "--hold", 0)
        fails(2, "option --lease", "--fleet", f.url, "--lease", 601)
        fails(2, "option --worker-timeout: expected 1 to 600", "--fleet", f.url, "--worker-timeout", 0)
        fails(2, "option --node:", "--fleet", f.url, "--node", "two words")
        fails(2, "reachable by other machines", "--fleet", f.url, "--node-listen", "0.0.0.0:0")
        fails(2, "--node-address", "--fleet", f.url, "--node-listen", "0.0.0.0:0", "--insecure")
        fails(2, "nothere", "--fleet", f.database + "#nothere")
        done = kit.run(BIN, "serve", "--listen", "0.0.0.0:0", "--fleet", f.url, env=f.env)
        check(done.returncode == 2 and b"reachable by other machines" in done.stderr, done)
        # What only the worker finds out ends the node, too.
        done = kit.run(BIN, "serve", "--listen", "127.0.0.1:0", "--fleet", f.url, "--max-body", "9M", env=f.env,
                       cwd=f.folder)
        check(done.returncode == 2 and b"option --max-body" in done.stderr, done)


@kit.afterwards
def times_are_printed(_):
    if os.environ.get("CORTEX_FLEET_TIMES"):
        for what, seconds in times:
            print(f"  {what}: {seconds:.2f} s")


if clusters.BIN is None:
    kit.skip_all("no PostgreSQL server is installed", count=len(kit.collected))
main(Database)
