#!/usr/bin/env python3
"""Vectors from a model outside: `cortex memory embed` and `near` with --embedder-url and --embedder,
against a stub model server on loopback, and against servers that answer wrongly.

    test_embedder.py [PROGRAM] [WORD..]
"""
import http.server
import json
import os
import socket
import sys
import threading
import time

import kit
from kit import check, main, test

FACT = '{"statement":"%s","subject":"s","predicate":"p"}'
CLIENT = """#!{python}
import sys, urllib.request
request = urllib.request.Request("http://127.0.0.1:{port}" + sys.argv[1], sys.stdin.buffer.read())
try:
    sys.stdout.buffer.write(urllib.request.urlopen(request, timeout=20).read())
except Exception as e:
    sys.exit("the model server: " + str(e))
"""


def vector_of(text):
    """Three numbers: how often a, b and c occur, so that near texts have near vectors."""
    return [text.count(letter) + 0.125 for letter in "abc"]


class Model(http.server.BaseHTTPRequestHandler):
    asked = []

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Model.asked.append(question)
        vector, name = vector_of(question["input"]), question.get("model", "stub")
        answers = {"/array": vector, "/embedding": {"embedding": vector, "model": name},
                   "/api/embed": {"model": name, "embeddings": [vector]},
                   "/v1/embeddings": {"object": "list", "model": name, "data": [{"embedding": vector}]},
                   "/none": {"error": "no"}, "/empty": [], "/words": ["a"], "/huge": [1e300]}
        if self.path not in answers and self.path != "/text":
            self.send_error(404)
            return
        body = b"hello" if self.path == "/text" else json.dumps(answers[self.path]).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Place(kit.Place):
    def __enter__(self):
        super().__enter__()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = self.folder / "client"
        self.client.write_text(CLIENT.format(python=sys.executable, port=self.server.server_address[1]))
        self.client.chmod(0o700)
        return self

    def __exit__(self, *given):
        self.server.shutdown()
        self.server.server_close()
        return super().__exit__(*given)

    def at(self, path):
        return ["--embedder-url", f"http://127.0.0.1:{self.server.server_address[1]}{path}"]

    def by(self, path):
        return ["--embedder", f"{self.client} {path}"]

    def write(self, text):
        return self.ok("memory", "write", "Fact", FACT % text)


@test
def a_model_server_embeds_memories_and_questions():
    with Place() as p:
        for path in ("/embedding", "/api/embed", "/v1/embeddings", "/array"):
            for options in (p.by(path), p.at(path)):
                Model.asked.clear()
                uri = p.write("aaaa " + path)
                made = p.json("memory", "embed", uri, *options, "--embedder-model", "m-1")
                check(made["dim"] == 3 and made["model"] == "m-1" and made["uri"] == uri, made)
                check(len(Model.asked) == 1 and "aaaa " + path in Model.asked[0]["input"], Model.asked)
                check(Model.asked[0]["model"] == "m-1", Model.asked)
                check(p.json("memory", "get", uri)["embedding"]["model"] == "m-1", p.json("memory", "get", uri))
        other = p.write("cccccccccc")
        p.ok("memory", "embed", other, *p.by("/embedding"))
        near = p.json("memory", "near", "ccc", *p.by("/embedding"), "--limit", "1")["memories"]
        check(near[0]["uri"] == other, near)
        near = p.json("memory", "near", "ccc", *p.at("/embedding"), "--limit", "1")["memories"]
        check(near[0]["uri"] == other, near)
        near = p.json("memory", "near", "aaaa", *p.by("/api/embed"), "--limit", "4")["memories"]
        check(other not in [m["uri"] for m in near], near)
        # A vector that is given needs no program.
        check(p.json("memory", "near", "[0,0,1]", "--embedder", "/nonexistent", "--limit", "1")["memories"])


@test
def the_embedder_is_a_setting():
    with Place() as p:
        (p.folder / "config.toml").write_text(
            f'[memory]\nembedder = "{p.client} /embedding"\nembedder-model = "m-2"\n')
        os.chmod(p.folder / "config.toml", 0o600)
        env = {"CORTEX_CONFIG": str(p.folder / "config.toml")}
        uri = p.write("bbbb")
        done = p.run("memory", "embed", uri, "--json", env=env)
        check(done.returncode == 0 and json.loads(done.stdout)["model"] == "m-2", done.stdout, done.stderr)
        done = p.run("memory", "near", "b", "--json", env=env)
        check(json.loads(done.stdout)["memories"][0]["uri"] == uri, done.stdout, done.stderr)
        # Two of them are one too many; an empty option takes a setting back.
        done = p.run("memory", "near", "b", *p.at("/embedding"), env=env)
        check(done.returncode == 2 and b"found both" in done.stderr, done.stderr)
        done = p.run("memory", "near", "b", *p.at("/embedding"), "--embedder", "", "--json", env=env)
        check(json.loads(done.stdout)["memories"][0]["uri"] == uri, done.stdout, done.stderr)
        (p.folder / "config.toml").write_text(f'[memory]\nembedder-url = "{p.at("/embedding")[1]}"\n')
        done = p.run("memory", "near", "b", "--json", env=env)
        check(json.loads(done.stdout)["memories"][0]["uri"] == uri, done.stdout, done.stderr)
        # A copied data directory does not choose what runs, or where texts go.
        (p.home / "config.toml").write_text(f'[memory]\nembedder-url = "{p.at("/embedding")[1]}"\n')
        os.chmod(p.home / "config.toml", 0o600)
        done = p.run("memory", "near", "b")
        check(done.returncode == 2 and b"must not choose where data is sent" in done.stderr, done.stderr)
        (p.home / "config.toml").write_text('[memory]\nembedder = "touch stolen"\n')
        os.chmod(p.home / "config.toml", 0o600)
        done = p.run("memory", "near", "b")
        check(done.returncode == 2 and b"must not choose what runs" in done.stderr, done.stderr)
        check(not (p.folder / "stolen").exists())


@test
def what_goes_wrong_is_said_and_changes_nothing():
    with Place() as p:
        uri = p.write("a")
        log = p.ok("log", "--json")
        slow = p.folder / "slow"
        slow.write_text("#!/bin/sh\nsleep 30\n")
        slow.chmod(0o700)
        for options, said in (
                (p.by("/none"), "no vector"), (p.by("/empty"), "empty vector"), (p.by("/text"), "not JSON"),
                (p.by("/words"), "no finite number"), (p.by("/huge"), "no finite number"),
                (p.by("/absent"), "the model server: HTTP Error 404"),
                (p.at("/none"), "no vector"), (p.at("/empty"), "empty vector"), (p.at("/text"), "not JSON"),
                (p.at("/huge"), "no finite number"), (p.at("/absent"), "answered HTTP 404"),
                (["--embedder-url", "http://127.0.0.1:1/x"], "nothing listens on 127.0.0.1 port 1"),
                (["--embedder-url", "http://no..host/"], "cannot find the host no..host"),
                *[(["--embedder-url", url], "expected http://HOST[:PORT]/PATH") for url in (
                    "https://127.0.0.1/", "127.0.0.1:80", "http://", "http://a b/", "http://u:p@h/", "http://h:0/",
                    "http://h:65536/", "http://h:80x/", "http://[::1/", "http://h/#x", "http://h/a b",
                    "http://h/\r\nX: y", "http://" + 300 * "h" + "/", "http://h/" + 2100 * "p")],
                (["--embedder", "/nonexistent/model"], "/nonexistent/model"),
                (["--embedder", "true"], "nothing"),
                (["--embedder", str(slow), "--embedder-timeout", "1"], "did not answer in 1 s")):
            done = p.run("memory", "embed", uri, *options)
            check(done.returncode in (2, 3) and said in done.stderr.decode(), options, done.returncode, done.stderr)
            if "expected http" in said:
                continue
            done = p.run("memory", "near", "words", *options)
            check(done.returncode in (2, 3) and said in done.stderr.decode(), options, done.returncode, done.stderr)
        p.expect(2, "memory", "embed", uri, err="--embedder")
        p.expect(2, "memory", "embed", uri, "[1]", err="--model")
        p.expect(2, "memory", "embed", uri, *p.by("/array"), err="--embedder-model")
        p.expect(2, "memory", "embed", uri, "--embedder", " ", err="--embedder")
        p.expect(2, "memory", "embed", uri, *p.by("/array"), "--embedder-timeout", "0", err="--embedder-timeout")
        p.expect(2, "memory", "embed", uri, "--embedder", "x " * 80, err="64 words")
        check(p.ok("log", "--json") == log)
        p.ok("memory", "update", uri, FACT % "b")
        done = p.run("memory", "embed", uri, *p.by("/embedding"))
        check(done.returncode != 0 and b"StaleVersion" in done.stderr, done.stderr)


# --- servers that answer wrongly ----------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\n"


class Raw(threading.Thread):
    """A server that reads a request, sends `pieces`, one after the other, and keeps the connection or closes it."""

    def __init__(self, *pieces, close=True, read=True):
        super().__init__(daemon=True)
        self.pieces, self.close, self.read, self.got = pieces, close, read, b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"
        self.done = threading.Event()
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        with connection:
            while self.read and not self.got.endswith(b"}\n"):
                self.got += connection.recv(65536)
            for piece in self.pieces:
                try:
                    connection.sendall(piece)
                except OSError:
                    return
                time.sleep(0.05 if len(self.pieces) > 1 else 0)
            if not self.close:
                self.done.wait(10)

    def end(self):
        self.done.set()
        self.join(10)
        self.listener.close()


@test
def answers_are_read_as_http_has_them():
    with Place() as p:
        uri = p.write("a")
        for pieces, close in (
                ((OK + b"\r\n[1,2]",), True), ((OK + b"Content-Length: 5\r\n\r\n[1,2]",), False),
                ((OK + b"content-LENGTH:5\r\n\r\n[1,", b"2]"), False), ((b"HTTP/1.0 200\x20\r\n\r\n[1,2]",), True),
                ((OK + b"Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n[1\r\n", b"3\r\n,2]\r\n0\r\n\r\n"), False),
                ((b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\n\n[1,2]",), False),
                (tuple(bytes([b]) for b in OK + b"\r\n[1,2]"), True)):
            server = Raw(*pieces, close=close)
            made = p.json("memory", "embed", uri, "--embedder-url", server.url, "--embedder-model", "m",
                          "--embedder-timeout", "20")
            server.end()
            check(made["dim"] == 2, pieces, made)
            head = server.got.split(b"\r\n\r\n")[0].split(b"\r\n")
            check(head[0] == b"POST /v1 HTTP/1.1" and b"Host: " + server.url[7:-3].encode() in head, head)


@test
def answers_that_are_wrong_are_refused():
    with Place() as p:
        uri = p.write("a")
        log = p.ok("log", "--json")
        chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n"
        for answer, said in (
                (b"", "answered nothing"), (b"hello\r\n\r\n", "not HTTP"), (b"HTTP/2 200\r\n\r\n", "not HTTP"),
                (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"), (OK, "ends early"),
                (OK + b"Content-Length: 9\r\n\r\n[1,2]", "ends early"), (OK + b"no colon\r\n\r\n[1]", "no name"),
                (OK + b"Content-Length: x\r\n\r\n[1]", "a length that is none"),
                (OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n[1] ", "or with two"),
                (OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n[1]", "a length and chunks"),
                (OK + b"Transfer-Encoding: gzip\r\n\r\n[1]", "transfer coding"),
                (OK + b"Content-Encoding: gzip\r\n\r\n[1]", "not asked for"),
                (chunked + b"x\r\n[1]\r\n", "no size"), (chunked + b"3\r\n[1]", "ends early"),
                (chunked + b"2\r\n[1]\r\n0\r\n\r\n", "longer than its size"),
                (chunked + b"ffffffffffffffffff\r\n", "no size"),
                (OK + b"Content-Length: 16777217\r\n\r\n", "more than 16777216 bytes"),
                (OK + b"\r\n" + (16 << 20) * b" " + b"x", "more than 16777216 bytes"),
                (chunked + b"1000001\r\n" + (16 << 20) * b" " + b"x\r\n", "more than 16777216 bytes"),
                (OK + 70000 * b"a", "too long"), (OK + 2000 * (b"a: " + 60 * b"b" + b"\r\n") + b"\r\n[1]", "64 KiB"),
                (1500 * b"HTTP/1.1 102 x\r\nA: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n\r\n", "64 KiB"),
                (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n", "answered HTTP 302"),
                (b"HTTP/1.1 500 x\r\n\r\n\x1b[31mred", "answered HTTP 500")):
            server = Raw(answer)
            done = p.run("memory", "embed", uri, "--embedder-url", server.url)
            server.end()
            check(done.returncode == 3 and said in done.stderr.decode() and b"\x1b" not in done.stderr,
                  answer[:80], done.returncode, done.stderr)
        for server in (Raw(OK, close=False), Raw(read=False, close=False), Raw(*(20 * [b"H"]), close=False)):
            before = time.monotonic()
            done = p.run("memory", "near", "a", "--embedder-url", server.url, "--embedder-timeout", "1")
            check(done.returncode == 3 and b"did not answer within 1000 ms" in done.stderr, done.stderr)
            check(time.monotonic() - before < 8)
            server.end()
        check(p.ok("log", "--json") == log)


main()
