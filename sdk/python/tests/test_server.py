#!/usr/bin/env python3
"""The client with a real server on loopback: delivered exactly once, whatever ends when; receipts that
cortex-verify accepts; keys; questions."""
import asyncio
import http.server
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from sdk_kit import (PACKAGE, Place, Said, Server, check, cortex, left_in, main, need_program, run, sibling,
                     skip, test, wait_for)
from cortex_recorder import _client

VERIFY = sibling("cortex-verify")
need_program(VERIFY)


def can_sign():
    try:
        import cryptography  # noqa: F401
    except ImportError:
        skip("needs cryptography")


def texts(server, agent="refunds"):
    return [event.get("text") for event in server.events(agent)]


@test
def what_is_recorded_is_delivered_and_can_be_asked():
    with Place() as p, Server(p) as s, s.client() as cx:
        doc = {"title": "policy", "text": "the limit is 500"}
        with cx.step("triage") as step:
            step.saw(doc)
            step.set("memory/limit", 500, because=doc)
        with cx.step("raise") as step:
            step.set("memory/limit", 900, because="the manager agreed")
            step.set("tags/a~b", 1)
        receipt = cx.flush()
        check(receipt.delivered == 2 and receipt.seq == 1 and receipt.dropped == receipt.rejected == 0)
        found = cx.why("memory/limit")
        check([(c.old, c.new) for c in found] == [(500, 900), (None, 500)], found)
        check([c.because for c in found] == [["the manager agreed"], ["the limit is 500"]], found)
        check(cx.why("memory/tags/a~b")[0].new == 1 and cx.why("limit")[0].new == 900)
        check(cx.state()["memory"]["limit"] == 900)
        try:
            cx.why("memory/never")
        except cortex.ServerError as error:
            check(error.status == 404, error)
        check(cx.stats.pending == 0 and cx.stats.delivered == 2, cx.stats)


@test
def cortex_verify_accepts_the_receipt_and_no_other():
    with Place() as p, Server(p) as s, s.client() as cx:
        for n in range(5):
            cx.note(f"n{n}")
        receipt = cx.flush()
        command = receipt.save(p.folder / "receipt").split()
        check(command[0] == "cortex-verify" and receipt.checkpoint is None)
        done = run(VERIFY, *command[1:])
        check(done.returncode == 0 and b"holds" in done.stdout, done)
        wrong = [word.replace(receipt.root, "0" * 64) for word in command[1:]]
        check(run(VERIFY, *wrong).returncode == 1)
        other = [word.replace(receipt.leaf, "1" * 64) for word in command[1:]]
        check(run(VERIFY, *other).returncode == 1)
        check(run(VERIFY, p.folder / "receipt").returncode == 3)  # nothing given: indeterminate
        # With a signed checkpoint that covers the step, the receipt rests on its key.
        public = p.ok("key", "new", "--name", "log/refunds", p.folder / "log.key")
        p.ok("checkpoint", "--actor", "refunds", "--sign", p.folder / "log.key")
        receipt = cx.flush()
        check(receipt.checkpoint is not None and receipt.size == 5, receipt)
        command = receipt.save(p.folder / "signed").replace("KEY", public).split()
        done = run(VERIFY, *command[1:])
        check(done.returncode == 0 and b"holds" in done.stdout, command, done)


@test
def nothing_waits_for_a_server_that_is_not_there():
    with Place() as p, Server(p) as s:
        s.end()
        cx = s.client(exit_timeout=0.1)
        started = time.monotonic()
        for n in range(1200):
            cx.record({"kind": "note"}, state_delta={"memory": {f"n{n}": n}})
        check(time.monotonic() - started < 5, "it waited")
        try:
            cx.flush(0.3)
            check(False, "delivered to nobody")
        except cortex.NotDelivered as error:
            check(error.pending == 1200 and "spool" in str(error), error)
        s.start()
        receipt = cx.flush()
        check(receipt.delivered == 1200, receipt)
        check(s.count() == 1200 and s.marks() == {f"n{n}" for n in range(1200)})
        cx.close()
        check(left_in(p.folder / "spool") == [], left_in(p.folder / "spool"))


@test
def a_server_that_is_killed_costs_nothing_and_repeats_nothing():
    with Place() as p, Server(p) as s, s.client() as cx:
        stop = threading.Event()
        count = [0]

        def work():
            while not stop.is_set():
                cx.note(f"n{count[0]}")
                count[0] += 1
                time.sleep(0.001)
        worker = threading.Thread(target=work)
        worker.start()
        for _ in range(3):
            time.sleep(0.3)
            s.end(signal.SIGKILL)
            s.start()
        stop.set()
        worker.join()
        cx.flush(60)
        check(s.count() == count[0] == cx.stats.delivered, s.count(), count)


CHILD = """
import sys
import cortex_recorder as cortex
cx = cortex.init("refunds", url=sys.argv[1], token=sys.argv[2], spool=sys.argv[3], key=False,
                 exit_timeout=float(sys.argv[6]))
for n in range(int(sys.argv[5])):
    cx.record({"kind": "note"}, state_delta={"memory": {f"{sys.argv[4]}-{n}": n}})
    sys.stdout.write(f"{sys.argv[4]}-{n}\\n")
    sys.stdout.flush()
"""


def child(p, s, name, count, exit_timeout=10.0):
    return subprocess.Popen([sys.executable, "-c", CHILD, s.url, s.token, p.folder / "spool", name,
                             str(count), str(exit_timeout)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


@test
def what_a_killed_process_recorded_is_delivered_by_the_next():
    with Place() as p, Server(p) as s:
        said = []
        for number in range(3):
            process = child(p, s, f"p{number}", 100_000)
            for _ in range(50 * (number + 1)):
                said.append(process.stdout.readline().strip())
            process.kill()
            said += [line for line in process.stdout.read().split("\n")[:-1] if line]
            process.wait()
            process.stdout.close()
            process.stderr.close()
        with s.client() as cx:
            wait_for(lambda: all(part.empty for part in cx._spool.parts()))
            check(cx.stats.rejected == 0 and cx.stats.damaged == 0, cx.stats)
        found = s.marks()
        check(set(said) <= found and s.count() == len(found), len(said), len(found), s.count())
        check(left_in(p.folder / "spool") == [])


@test
def damaged_lines_and_torn_tails_are_counted_and_said():
    with Place() as p, Server(p) as s:
        s.end()
        child(p, s, "p", 3, 0.0).communicate()
        path, = (p.folder / "spool").rglob("*.seg")
        first, second, third = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(first + second.replace(b"p-1", b"p-9") + third + first[:20])
        s.start()
        with Said() as said, s.client() as cx:
            wait_for(lambda: all(part.empty for part in cx._spool.parts()))
            wait_for(lambda: not cx._spool.adopted)
            check(cx.stats.damaged == 1 and cx.stats.torn == 1 and said.has("damaged"), cx.stats, said.texts)
        check(s.marks() == {"p-0", "p-2"} and s.count() == 2)


@test
def a_signal_handler_may_record():
    with Place() as p, Server(p) as s, s.client() as cx:
        count = [0]

        def handle(*_):
            cx.note("in the handler")
            count[0] += 1
        before = signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        try:
            for _ in range(2000):
                cx.note("outside")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        cx.flush()
        check(count[0] > 3 and s.count() == 2000 + count[0], s.count(), count)


@test
def a_program_that_ends_delivers_first():
    with Place() as p, Server(p) as s:
        done = child(p, s, "p", 300)
        check(done.communicate()[1] == "" and done.returncode == 0)
        check(s.marks() == {f"p-{n}" for n in range(300)} and s.count() == 300)
        s.end()
        done = child(p, s, "q", 10, 0.3)  # no server: it ends soon, and says where they are
        check("next start" in done.communicate(timeout=60)[1])
        check(left_in(p.folder / "spool") != [])
        s.start()
        tool = [sys.executable, "-m", "cortex_recorder"]
        env = {**os.environ, "CORTEX_TOKEN": s.token, "CORTEX_SPOOL": str(p.folder / "spool")}
        status = run(*tool, "status", env=env)
        check(status.returncode == 0 and b"bytes in segments, 0 rejected" in status.stdout, status)
        done = run(*tool, "deliver", "refunds", "--url", s.url, env=env)
        check(done.returncode == 0, done)
        check(s.count() == len(s.marks()) == 310 and left_in(p.folder / "spool") == [])


@test
def parents_and_children_of_a_fork_record_once():
    with Place() as p, Server(p) as s, s.client() as cx:
        cx.note("before")
        cx.flush()  # whose steps come first is decided by their arrival
        with cx.step("around"):
            pids = []
            for n in range(4):
                pid = os.fork()
                if pid == 0:
                    try:
                        for i in range(20):
                            cx.note(f"child {n}.{i}")
                        cx.flush(30)
                    finally:
                        os._exit(0 if cx.stats.delivered == 20 else 1)
                pids.append(pid)
            check(all(os.waitpid(pid, 0)[1] == 0 for pid in pids), "a child did not deliver")
        cx.note("after")
        cx.flush()
        found = texts(s)
        check(len(found) == 83 == len(set(found)), len(found), len(set(found)))
        check(found[0] == "before" and found[-1] == "after")


@test
def forks_while_threads_record_neither_hang_nor_lose():
    with Place() as p, Server(p) as s, s.client() as cx:
        stop, counts = threading.Event(), [0] * 3

        def work(who):
            while not stop.is_set():
                cx.note("parent")
                counts[who] += 1
                time.sleep(0.0005)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        children = []
        for _ in range(30):
            pid = os.fork()
            if pid == 0:
                try:
                    for _ in range(5):
                        cx.note("child")  # its parts are adopted: it ends without delivering
                finally:
                    os._exit(0)
            children.append(pid)
        end = time.monotonic() + 30
        while children and time.monotonic() < end:
            children = [pid for pid in children if os.waitpid(pid, os.WNOHANG)[0] == 0]
            time.sleep(0.01)
        stop.set()
        for thread in threads:
            thread.join()
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        check(not children, "a child hung")
        cx._next_adopt = 0.0
        cx.flush()
        wait_for(lambda: cx._send_once() is None)
        check(s.count() == sum(counts) + 150, s.count(), sum(counts))
        check(cx.stats.damaged == cx.stats.rejected == 0, cx.stats)


def in_process(url, token, spool, name):
    # What init() of the parent made is inherited; its own spool begins with the first step.
    cortex.current().note(name)


@test
def multiprocessing_children_deliver_at_their_end():
    with Place() as p, Server(p) as s, s.client() as cx:
        cx.note("parent")
        fork = multiprocessing.get_context("fork")
        children = [fork.Process(target=in_process, args=(s.url, s.token, str(p.folder / "spool"),
                                                          f"child {n}")) for n in range(3)]
        for one in children:
            one.start()
        for one in children:
            one.join(30)
            check(one.exitcode == 0, one.exitcode)
        cx.flush()
        check(sorted(texts(s)) == ["child 0", "child 1", "child 2", "parent"], texts(s))


@test
def threads_and_tasks_share_one_client():
    with Place() as p, Server(p) as s, s.client() as cx:
        async def task(n):
            async with cx.step(f"t{n}"):
                await asyncio.sleep(0)

        async def everything():
            await asyncio.gather(*(task(n) for n in range(50)))
            return await cx.aflush()
        check(asyncio.run(everything()).delivered == 50)
        threads = [threading.Thread(target=lambda n=n: [cx.note(f"{n}.{i}") for i in range(100)])
                   for n in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(cx.flush().delivered == 550)
        check(s.count() == 550)


@test
def a_wrong_token_keeps_the_steps_until_there_is_a_right_one():
    with Place() as p, Server(p) as s:
        with Said() as said:
            cx = s.client(token="wrong", exit_timeout=0.0)
            cx.note("kept")
            wait_for(lambda: said.has("CORTEX_TOKEN"))
            check(cx.stats.pending == 1 and cx.stats.rejected == 0)
            cx.close()
            check(said.has("next start"))
        with s.client() as cx:
            wait_for(lambda: all(part.empty for part in cx._spool.parts()))
        check(texts(s) == ["kept"])
        writer = p.ok("token", "add", "--scope", "trace:write", "--name", "writer")
        with s.client(token=writer) as cx:
            cx.note("written")
            receipt = cx.flush()
            check(receipt.hash and receipt.root is None and "trace:read" in receipt.unproven, receipt)


@test
def a_server_with_tls_is_checked():
    with Place() as p:
        cert, key = p.folder / "cert.pem", p.folder / "key.pem"
        made = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                   "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-days",
                   "2", "-keyout", key, "-out", cert)
        check(made.returncode == 0, made)
        with Server(p, "--tls-cert", str(cert), "--tls-key", str(key)) as s:
            check(s.url.startswith("https://"), s.url)
            with s.client(ca=str(cert)) as cx:
                cx.note("secret")
                receipt = cx.flush()
                check(receipt.delivered == 1 and receipt.proof, receipt)
            with Said() as said:
                cx = s.client("other", exit_timeout=0.0)  # nobody vouches for this certificate
                cx.note("kept")
                wait_for(lambda: said.has("certificate"))
                check(cx.stats.pending == 1)
                cx.close()
            for wrong in (key, p.folder / "nowhere"):
                try:
                    s.client(ca=str(wrong))
                    check(False, "no certificates")
                except cortex.UsageError as error:
                    check("ca:" in str(error), error)


@test
def what_is_no_cortex_server_takes_nothing_away():
    class Other(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked[0] += 1
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status[0])
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"what")

        def log_message(self, *_):
            pass
    status, asked = [404], [0]
    with Place() as p:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            cx = cortex.init("a", url=f"http://127.0.0.1:{server.server_port}", token="t", key=False,
                             spool=p.folder / "spool", exit_timeout=0.0)
            cx.note("kept")
            for status[0] in (404, 400, 413, 422, 500, 503, 302, 200):
                before = asked[0]
                while asked[0] == before:
                    try:
                        cx.flush(0.3)
                        check(False, status)
                    except cortex.NotDelivered:
                        pass
                    check(cx.stats.rejected == 0 and cx.stats.pending == 1, status, cx.stats)
            cx.close()
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


@test
def a_step_that_the_server_does_not_take_is_kept_apart():
    with Place() as p, Server(p) as s, s.client() as cx:
        with Said() as said:
            cx.note("one")
            cx.record({"kind": "note", "text": "bad"}, parents=[7])
            cx.record({"kind": "note", "text": "bad"}, timestamp=1e30)
            for n in range(20):
                cx.note(f"n{n}")
            receipt = cx.flush()
            check(said.has("rejected.jsonl"), said.texts)
        check(receipt.rejected == 2 and receipt.delivered == 21, receipt)
        check(texts(s) == ["one"] + [f"n{n}" for n in range(20)])
        path, = (p.folder / "spool").rglob("rejected.jsonl")
        kept = [json.loads(line) for line in path.read_text().splitlines()]
        check([k["step"]["event"]["text"] for k in kept] == ["bad", "bad"], kept)
        check("parents" in kept[0]["why"]["detail"], kept[0])


@test
def agents_follow_each_other():
    before = _client.PARENT_WAIT_S
    try:
        with Place() as p, Server(p) as s, s.client("desk") as desk, s.client("clerk") as clerk:
            ref = desk.handoff("clerk", "please check")
            with clerk.step("check") as step:  # perhaps before the other one is delivered
                step.saw(ref)
            desk.flush()
            clerk.flush()
            node, = s.nodes("clerk")
            check(node["parents"] == [s.nodes("desk")[0]["node_id"]], node)
            # A parent that never comes does not hold the agent up, and is named.
            _client.PARENT_WAIT_S = 1.0
            with Said() as said, clerk.step("lost") as step:
                step.saw(cortex.Ref("desk", "never"))
                step.set("memory/x", 1)
            with said:
                clerk.note("next")
                clerk.flush()
                check(said.has("without its parents"))
            lost, following = s.events("clerk")[1:]
            check(lost["unresolved_parents"] == [{"agent": "desk", "key": "never"}], lost)
            check(following["text"] == "next" and clerk.stats.rejected == 0)
            clerk.record({"kind": "note", "text": "old"}, parents=["#0"])
            clerk.flush()
            check(s.events("clerk")[-1]["unresolved_parents"] == ["#0"], s.events("clerk")[-1])
    finally:
        _client.PARENT_WAIT_S = before


@test
def a_step_that_waits_holds_up_only_its_own_part():
    with Place() as p, Server(p) as s:
        held = child(p, s, "old", 1)
        held.communicate()
        s.end()
        code = ("import sys, os, cortex_recorder as cortex\n"
                "cx = cortex.init('refunds', url=sys.argv[1], token='t', spool=sys.argv[2], key=False)\n"
                "cx.record({}, parents=[{'agent': 'other', 'key': 'later'}])\nos._exit(0)\n")
        check(run(sys.executable, "-c", code, s.url, p.folder / "spool").returncode == 0)
        s.start()
        with s.client() as cx:
            wait_for(lambda: cx._held)  # the step of the process that ended waits for its parent
            started = time.monotonic()
            cx.note("new")
            wait_for(lambda: cx.stats.delivered == 1)
            check(time.monotonic() - started < 5, "it waited for the other part")
            with s.client("other") as other:
                other.record({}, _key=(other._generation, "later"))
                other.flush()
            wait_for(lambda: all(part.empty for part in cx._spool.parts()))
        check(s.count() == 3 and "unresolved_parents" not in s.events()[-1])


@test
def a_step_that_was_sent_without_its_parents_is_not_sent_again():
    # The answer got lost, and the next process has only the line with the parents.
    with Place() as p, Server(p) as s, s.client() as cx:
        cx.record({"kind": "note"}, _key=(cx._generation, "k"), timestamp=5)
        cx.flush()
        cx.record({"kind": "note"}, parents=["#7"], _key=(cx._generation, "k"), timestamp=5)
        cx.note("next")
        receipt = cx.flush()
        check(receipt.rejected == 0 and s.count() == 2, receipt, s.count())


@test
def a_full_spool_is_counted_and_noted_in_the_history():
    with Place() as p, Server(p) as s:
        s.end()
        with Said() as said:
            cx = s.client(spool_bytes=65536)
            for n in range(1000):
                cx.note(f"n{n}", padding="x" * 200)
            check(said.has("the spool is full") and cx.stats.dropped > 0)
        dropped = cx.stats.dropped
        s.start()
        cx.flush()
        cx.note("later")
        cx.flush()
        events = s.events()
        check(len(events) == 1000 - dropped + 2 and cx.stats.pending == 0, len(events), dropped)
        check(events[-2]["dropped"] == dropped and "spool is full" in events[-2]["text"], events[-2])
        cx.close()


@test
def where_no_folder_can_be_written_it_says_so():
    with Place() as p, Server(p) as s:
        with s.client(spool=False) as cx:
            cx.note("in memory")
            check(cx.flush().delivered == 1)
        (p.folder / "file").write_text("")
        os.environ["XDG_STATE_HOME"] = str(p.folder / "file")
        try:
            with Said() as said, s.client(agent=f"other-{os.getpid()}", spool=None) as cx:
                check(said.has("cannot write"), said.texts)
                cx.note("in the folder of temporary files")
                folder = cx._spool.folder
                check(cx.flush().delivered == 1 and "cortex-spool" in str(folder))
            folder.rmdir()
            try:
                s.client(spool=str(p.folder / "file"))
                check(False, "a file was taken as a folder")
            except cortex.UsageError as error:
                check("cannot write" in str(error), error)
        finally:
            del os.environ["XDG_STATE_HOME"]


# --- keys ---

@test
def a_key_made_here_is_the_programs_too():
    can_sign()
    with Place() as p:
        path = p.folder / "keys" / "refunds.key"
        done = run(sys.executable, "-m", "cortex_recorder", "keygen", "refunds", "--file", path)
        check(done.returncode == 0 and path.stat().st_mode & 0o777 == 0o600, done)
        key = cortex.load_key(path, "refunds")
        shown = p.ok("key", "show", path)
        check(_client.base64_of(b"\x01" + key.public) in shown, shown)
        check(key.key_id in done.stdout.decode())
        again = run(sys.executable, "-m", "cortex_recorder", "keygen", "refunds", "--file", path)
        check(again.returncode == 2 and b"never overwritten" in again.stderr, again)
        p.ok("key", "new", "--name", "refunds", p.folder / "other.key")
        check(cortex.load_key(p.folder / "other.key", "refunds").public != key.public)
        from cryptography.hazmat.primitives import serialization
        pem = key._key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                     serialization.NoEncryption())
        (p.folder / "pem").write_bytes(pem)
        check(cortex.load_key(p.folder / "pem", "refunds").public == key.public)
        (p.folder / "bad").write_text("PRIVATE+KEY+a+b+c")
        try:
            cortex.load_key(p.folder / "bad", "refunds")
            check(False, "not a key")
        except cortex.UsageError as error:
            check("Ed25519" in str(error), error)


@test
def a_token_that_may_registers_the_key():
    can_sign()
    with Place() as p, Server(p) as s:
        key = cortex.new_key(p.folder / "k", "refunds")
        token = p.ok("token", "add", "--scope", "trace:write", "--scope", "trace:read", "--scope",
                     "key:admin", "--level", "full_traces", "--name", "all")
        with s.client(key=key, token=token) as cx:
            cx.note("signed")
            check(cx.flush().delivered == 1)
        node, = s.nodes()
        check(node["event"]["__signature"]["key_id"] == key.key_id, node)
        listed, = s.get("/api/v1/covenant/public-keys")["keys"]
        check(listed["agents"] == ["refunds"], listed)


@test
def a_key_waits_for_approval_and_so_do_the_steps():
    can_sign()
    with Place() as p, Server(p, "--open-signed") as s:
        key = cortex.new_key(p.folder / "k", "refunds")
        with Said() as said:
            cx = s.client(key=str(p.folder / "k"))
            cx.note("first")
            cx.note("second")
            wait_for(lambda: said.has(f"cortex key approve {key.key_id}"))
            waiting = json.loads(p.ok("key", "pending", "--json"))["keys"]
            check([k["key_id"] for k in waiting] == [key.key_id], waiting)
            check(cx.stats.pending == 2 and cx.stats.rejected == 0)
        p.ok("key", "approve", key.key_id)
        check(cx.flush().delivered == 2)
        check(all("__signature" in event for event in s.events()))
        cx.close()


@test
def without_cryptography_the_error_says_what_to_install():
    hide = ("import sys\nsys.modules['cryptography'] = None\n"
            "import cortex_recorder as cortex\n"
            "try:\n    cortex.new_key('/nonexistent/k', 'a')\n"
            "except cortex.MissingExtra as e:\n    print(e)\n")
    done = run(sys.executable, "-c", hide)
    check(b"python3-cryptography" in done.stdout and done.returncode == 0, done)


@test
def it_runs_without_any_other_package():
    listed = run(sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE / 'src')!r})\n"
                 "import cortex_recorder, cortex_recorder.testing; print('ok')")
    check(listed.stdout == b"ok\n", listed)
    check((pathlib.Path(cortex.__file__).parent / "py.typed").exists())


if __name__ == "__main__":
    main()
