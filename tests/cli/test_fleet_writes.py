#!/usr/bin/env python3
"""test_fleet_writes.py - commands and governed runs that write to a part while a node serves it, through that node
(CORTEX_URL, CORTEX_TOKEN).

    test_fleet_writes.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Over a PostgreSQL primary with a synchronous standby on loopback; skipped where no server is installed.
"""
import http.server
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

import kit
from kit import BIN, check, main, test
from fleet_kit import Database, Machine, SERVERS, Writing
import run_kit
from run_kit import GOOD_OPS, approve, contract, fails_at, reply, script, with_policies

FACT = '{"statement":"the limit is 500","subject":"policy","predicate":"is"}'
WIDE = "wide_path:src/"


@test
def commands_write_through_any_node(database):
    with Writing(database) as f:
        one, two = f.pair()
        for n, node in enumerate((one, two)):
            f.through(node, "append", "note.x", f"text {n}")
        f.through(two, "append", "note.secret", "what goes", "--committed")
        written = json.loads(f.through(two, "memory", "write", "Fact", FACT, "--json"))
        f.through(one, "erase", "2", "--reason", "a test")
        # Makes a snapshot through the node, and reads what the node wrote.
        f.through(two, "prove", "--fresh", written["uri"], "-o", str(f.folder / "first.cbor"))
        f.through(two, "snapshot")
        key = f.folder / "key"
        f.through(two, "key", "new", str(key), "--name", "fleet.test/ann")
        f.through(two, "checkpoint", "--sign", str(key))
        for n in range(2):  # of what the node recorded for it
            f.through(two, "append", "note.x", f"before the root {n}")
            made = json.loads(f.through(two, "checkpoint", "--all", "--json"))
            check(made["home_root"]["seq"] == n and made["size"] == n + 1, made)
        proof = f.folder / "proof.cbor"
        f.through(two, "prove", written["uri"], "-o", str(proof))
        said = f.through(one, "log", "--json")
        check("text 0" in said and "text 1" in said and "what goes" not in said, said)
        check(two.ask("GET", "/api/v1/roots?actor=ann")[0] in (200, 403))
        f.through(two, "verify", "--home", f.url)
        check(one.serves() and not two.serves())
        # A node that ends lets no command wait.
        check(one.stop() == 0 and two.stop() == 0)
        f.ok("verify", "--home", f.url)


@test
def who_may_not_is_told_what_to_do(database):
    with Writing(database) as f:
        one, two = f.pair()
        for env, words in (
                ({"CORTEX_URL": ""}, "set CORTEX_URL to the address of a node"),
                ({"CORTEX_TOKEN": ""}, "401"),
                ({"CORTEX_TOKEN": "cortex_" + "x" * 43}, "401"),
                ({"CORTEX_TOKEN": f.token}, "must be a token of the part with the scope home:write"),
                ({"CORTEX_URL": "http://127.0.0.1:1"}, "expected the address of a node that runs"),
                ({"CORTEX_URL": "http://192.0.2.1:8420"}, "cross the network unencrypted"),
                ({"CORTEX_URL": "ftp://127.0.0.1"}, "expected http://HOST"),
        ):
            code = 2 if "unencrypted" in words or "expected http:" in words else 3
            said = f.through(two, "append", "note.x", "text", code=code, **env)
            check(words in said, env, said)
        # A token of another part is none here.
        with Writing(database) as other:
            said = f.through(two, "append", "note.x", "text", code=3, CORTEX_TOKEN=other.writer)
            check("401" in said, said)
        # What is no node of a fleet: a directory's own server, and a stranger.
        home = f.folder / "home"
        f.ok("init", "--home", str(home))
        served = subprocess.Popen([BIN, "serve", "--home", str(home), "--listen", "127.0.0.1:0", "--otlp", "off", "--json"],
                                  stdout=subprocess.PIPE, env=f.env, stdin=subprocess.DEVNULL)
        try:
            url = json.loads(served.stdout.readline())["url"]
            done = kit.run(BIN, "token", "add", "--home", str(home), "--scope", "home:write", "--json", env=f.env)
            token = json.loads(done.stdout)["token"]
            said = f.through(two, "append", "note.x", "text", code=3, CORTEX_URL=url, CORTEX_TOKEN=token)
            check("501" in said and "node of this fleet" in said, said)
        finally:
            served.send_signal(signal.SIGTERM)
            served.wait(60)
            served.stdout.close()

        class Stranger(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(404)
                self.end_headers()

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
            threading.Thread(target=stranger.serve_forever, daemon=True).start()
            url = f"http://127.0.0.1:{stranger.server_port}"
            said = f.through(two, "append", "note.x", "text", code=3, CORTEX_URL=url)
            check("404" in said and "node of this fleet" in said, said)
            stranger.shutdown()
        status, problem = two.ask("GET", "/api/v1/writer")
        check(status == 403, status, problem)
        said = f.through(two, "log", code=2)
        check("nothing is recorded" in said, said)


@test
def a_checkpoint_over_all_parts_is_recorded_through_the_node(database):
    with Writing(database) as f:
        one, two = f.pair()
        f.through(two, "append", "note.x", "text")
        key, file = f.folder / "fleet.key", f.folder / "fleet.json"
        vkey = f.through(two, "key", "new", str(key), "--name", "fleet.test/parts").strip()
        for n in range(2):
            made = json.loads(f.through(two, "fleet", "checkpoint", "--part", f.part, "--sign", str(key), "-o", str(file), "--json"))
            check(made["seq"] == n and made["part"] == f.part, made)
        # The entry is in the part, and the node goes on.
        f.through(one, "append", "note.x", "more")
        said = json.loads(f.through(two, "fleet", "checkpoint", "--check", str(file), "--key", vkey, "--chains", "--json"))
        check(said["verdict"] == "holds" and said["signed"], said)
        log = f.through(two, "log", "--actor", "fleet:parts", "--json")
        check(log.count("fleet.checkpoint") == 2, log)
        check(one.serves() and not two.serves())
        # Without the way to the node, or with one to another part's: nothing is recorded.
        said = f.through(two, "fleet", "checkpoint", "--part", f.part, code=3, CORTEX_URL="")
        check("CORTEX_URL" in said and "--part" in said, said)
        said = f.through(two, "fleet", "checkpoint", "--part", f.part, code=3, CORTEX_TOKEN=f.token)
        check("home:write" in said, said)
        with Writing(database) as other:
            third = other.node("three")
            third.wait_said("and serves it")
            said = f.through(two, "fleet", "checkpoint", "--part", f.part, code=3, CORTEX_URL=third.about["url"],
                             CORTEX_TOKEN=other.writer)
            check("serves another part" in said, said)
            check(third.stop() == 0)
            done = kit.run(BIN, "log", "--home", other.url, env=other.env, cwd=other.folder)
            check(b"nothing is recorded" in done.stderr, "the other part was written:", done)
        check(f.through(two, "log", "--actor", "fleet:parts", "--json").count("fleet.checkpoint") == 2)


@test
def nothing_is_lost_or_doubled_while_nodes_end(database):
    with Writing(database) as f:
        one, two = f.pair("--lease", 2)
        ends, done = threading.Event(), []

        def write():
            n = 0
            while not ends.is_set():
                n += 1
                ran = kit.run(BIN, "append", "note.x", f"n{n}", "--json", env=f.env_of(two), cwd=f.folder)
                done.append((n, ran))

        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(1.5)
        one.kill()
        two.wait_said("and serves it")
        time.sleep(1.5)
        ends.set()
        writer.join()
        listed = [json.loads(line) for line in f.through(two, "log", "--json", "--last", "100000").splitlines()]
        text = json.dumps(listed)
        good = [n for n, ran in done if ran.returncode == 0]
        check(len(good) > 4, [ran for _, ran in done][:3])
        for n, ran in done:
            count = text.count(f'"n{n}"')
            check(count == 1 if ran.returncode == 0 else count <= 1, n, count, ran)
            # A failure says whether something may have been written.
            check(ran.returncode == 0 or count == 0 or b"unknown whether" in ran.stderr, n, count, ran)


@test
def tls_reaches_the_node_and_is_checked(database):
    if shutil.which("openssl") is None:
        kit.skip("no openssl")
    with Writing(database) as f:
        cert, key = f.folder / "cert.pem", f.folder / "key.pem"
        made = kit.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                       "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                       "subjectAltName=IP:127.0.0.1")
        check(made.returncode == 0, made)
        one, two = f.pair("--tls-cert", cert, "--tls-key", key)
        said = f.through(two, "append", "note.x", "text", code=3)
        check("certificate" in said.lower(), said)
        # Larger than what TLS carries at once, both ways.
        big = "x" * 3_000_000
        body = f.folder / "big"
        body.write_text(json.dumps(big))
        f.through(two, "append", "note.big", "@" + str(body), SSL_CERT_FILE=str(cert))
        f.through(two, "append", "note.x", "after", SSL_CERT_FILE=str(cert))
        check("after" in f.through(two, "log", "--json"))
        # A plain address of that port is no HTTP.
        said = f.through(two, "append", "note.x", "text", code=3,
                         CORTEX_URL=two.about["url"].replace("https", "http"))
        check("cortex:" in said, said)
        check(one.stop() == 0 and two.stop() == 0)


@test
def an_approval_counts_once_for_runs_of_all_machines(database):
    run_kit.need_sandbox()
    with Writing(database) as f, kit.Folder() as folder, kit.Folder() as here, kit.Folder() as there:
        one, two = f.pair()
        repo, key = with_policies(folder)
        first, second = Machine(repo, here, f, one), Machine(repo, there, f, two)
        value = contract(allowed_paths=["src/"])
        path = first.base / "approval.json"
        approve(first, key, value, WIDE, out=path)
        args = (value, script((GOOD_OPS, reply())), "--no-merge", "--approval", path)
        done, answer = first.run(*args)
        check(answer.get("status") == "SUCCESS", done.stderr, answer)
        # The other machine has a runtime root of its own, where the approval was never used.
        done, answer = second.run(*args, "--approval-wait", "1")
        fails_at(answer, "policy", "wide_path")
        check("used before" in (pathlib.Path(answer["bundle"]) / "events.jsonl").read_text(), answer)
        kinds = f.through(two, "log", "--actor", first.actor(), "--json")
        check(kinds.count('"run.approval"') == 1, kinds)
        for machine in (first, second):
            listed = machine.cortex("log", "--actor", machine.actor(), "--json").stdout.decode()
            check(listed == kinds, listed)
        # Without a node a run owns the part as long as it lasts.
        check(one.stop() == 0 and two.stop() == 0)
        done, answer = second.run(contract(), script((GOOD_OPS, reply())), "--no-merge")
        check(answer.get("status") == "SUCCESS", done.stderr, answer)
        done = second.cortex("run", "verify", answer["run_id"])
        check(done.returncode == 0, done)


if SERVERS is None:
    kit.skip_all("no PostgreSQL server is installed", count=len(kit.collected))
main(Database)
