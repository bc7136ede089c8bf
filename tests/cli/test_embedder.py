#!/usr/bin/env python3
"""Vectors from a model outside: `cortex memory embed` and `near` with --embedder, against a stub model
server on loopback.

    test_embedder.py [PROGRAM] [WORD..]
"""
import http.server
import json
import os
import sys
import threading

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

    def by(self, path):
        return ["--embedder", f"{self.client} {path}"]

    def write(self, text):
        return self.ok("memory", "write", "Fact", FACT % text)


@test
def a_model_server_embeds_memories_and_questions():
    with Place() as p:
        for path in ("/embedding", "/api/embed", "/v1/embeddings", "/array"):
            Model.asked.clear()
            uri = p.write("aaaa " + path)
            made = p.json("memory", "embed", uri, *p.by(path), "--embedder-model", "m-1")
            check(made["dim"] == 3 and made["model"] == "m-1" and made["uri"] == uri, made)
            check(len(Model.asked) == 1 and "aaaa " + path in Model.asked[0]["input"], Model.asked)
            check(Model.asked[0]["model"] == "m-1", Model.asked)
            check(p.json("memory", "get", uri)["embedding"]["model"] == "m-1", p.json("memory", "get", uri))
        other = p.write("cccccccccc")
        p.ok("memory", "embed", other, *p.by("/embedding"))
        near = p.json("memory", "near", "ccc", *p.by("/embedding"), "--limit", "1")["memories"]
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
        # A copied data directory does not choose what runs.
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
                (["--embedder", "/nonexistent/model"], "/nonexistent/model"),
                (["--embedder", "true"], "nothing"),
                (["--embedder", str(slow), "--embedder-timeout", "1"], "did not answer in 1 s")):
            done = p.run("memory", "embed", uri, *options)
            check(done.returncode in (2, 3) and said in done.stderr.decode(), options, done.returncode, done.stderr)
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


main()
