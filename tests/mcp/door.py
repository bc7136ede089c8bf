#!/usr/bin/env python3
"""door.py URL TOKEN - passes requests on to URL with a token, and answers back, until its input ends.

For clients that cannot send one.  Its own address is the first line of its output.
"""
import http.client
import http.server
import sys
import threading
import urllib.parse

TARGET = urllib.parse.urlsplit(sys.argv[1])
WAIT_S = 120


class Door(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        link = http.client.HTTPConnection(TARGET.hostname, TARGET.port, timeout=WAIT_S)
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("content-length", "connection")}
        headers["Authorization"] = "Bearer " + sys.argv[2]
        link.request(self.command, self.path, body, headers)
        answer = link.getresponse()
        data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in ("content-length", "connection", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        link.close()

    do_GET = do_POST = do_DELETE = pass_on

    def log_message(self, *_):
        pass


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Clients hang up as they like."""


server = Quiet(("127.0.0.1", 0), Door)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
sys.stdin.read()
server.shutdown()
