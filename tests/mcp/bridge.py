#!/usr/bin/env python3
"""bridge.py connect URL | bridge.py serve PROGRAM WORDS.. - MCP between lines and HTTP, for tests.

connect: a server on standard input and output that hands each message to the one at URL.
serve:   an HTTP server in front of a program that speaks lines; prints its URL and runs until standard
         input ends.  One session, one answer a request, no streams: what the transport needs at least.
"""
import http.server
import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request


def events(body):
    """The messages of an event stream."""
    for part in body.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip() for line in part.split("\n") if line.startswith("data:"))
        if data:
            yield json.loads(data)


def connect(url):
    session = None
    for line in sys.stdin:
        headers = {"Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if session is not None:
            headers["Mcp-Session-Id"] = session
        request = urllib.request.Request(url, data=line.encode(), headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                session = answer.headers.get("Mcp-Session-Id", session)
                kind = answer.headers.get("Content-Type", "")
                body = answer.read().decode()
        except urllib.error.HTTPError as error:
            sys.stderr.write(f"{error.code}: {error.read().decode(errors='replace')}\n")
            sys.exit(1)
        if "id" not in json.loads(line):
            continue  # whatever was answered to a notification is no message
        for message in events(body) if "event-stream" in kind else [json.loads(body)]:
            sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
            sys.stdout.flush()


class Handler(http.server.BaseHTTPRequestHandler):
    child = None
    lock = threading.Lock()

    def do_GET(self):
        self.send_response(405)
        self.end_headers()

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Handler.lock:
            Handler.child.stdin.write(json.dumps(message) + "\n")
            Handler.child.stdin.flush()
            answer = None
            while "id" in message and "method" in message:
                answer = json.loads(Handler.child.stdout.readline())
                if answer.get("id") == message["id"] and "method" not in answer:
                    break
        body = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(202 if answer is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(argv):
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        Handler.child = child
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
        sys.stdin.read()
        server.shutdown()
        child.stdin.close()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "connect":
        connect(sys.argv[2])
    elif len(sys.argv) > 2 and sys.argv[1] == "serve":
        serve(sys.argv[2:])
    else:
        sys.exit(__doc__)
