"""object_kit.py - object stores on loopback: s3rver, as npm has it (scripts/npm-ci.sh objects), and one that answers what
a test tells it to (Answers)."""
import hashlib
import hmac
import http.server
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time

import kit
from kit import check

FOLDER = kit.TESTS / "objects"
S3RVER = FOLDER / "node_modules" / "s3rver" / "bin" / "s3rver.js"
ACCESS, SECRET, BUCKET = "S3RVER", "S3RVER", "bundles"  # the credentials that s3rver knows
NODE = shutil.which("node")
# The names by which a store is told to a command; another test's, or the user's, are not for it.
NAMES = ("STORE", "ENDPOINT", "BUCKET", "REGION", "PREFIX", "STORE_TIMEOUT", "PLAIN_HTTP")


def why_not():
    """Why there is no s3rver here, or None."""
    if NODE is None:
        return "node is not there (scripts/install-deps.sh build)"
    return None if S3RVER.exists() else "s3rver is not there (scripts/npm-ci.sh objects)"


def settings(endpoint, **more):
    """config.toml of a part."""
    named = {"store": "s3", "endpoint": endpoint, "bucket": BUCKET, **more}
    lines = [f"{name.replace('_', '-')} = " + (str(value).lower() if isinstance(value, (bool, int)) else f'"{value}"')
             for name, value in named.items() if value is not None]
    return "[bundles]\n" + "\n".join(lines) + "\n"


def credentials(access=ACCESS, secret=SECRET):
    return {"CORTEX_S3_ACCESS_KEY_ID": access, "CORTEX_S3_SECRET_ACCESS_KEY": secret}


class Server:
    """s3rver with one bucket, in memory of a folder."""

    def __init__(self):
        self.folder = kit.make_folder("cortex-objects-")
        self.process = subprocess.Popen([NODE, S3RVER, "-d", self.folder, "-a", "127.0.0.1", "-p", "0", "--no-vhost-buckets",
                                         "--configure-bucket", BUCKET], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, text=True, cwd=self.folder)
        said = []
        for line in self.process.stdout:
            said.append(line)
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
            if found:
                break
        else:
            raise AssertionError(("s3rver did not start:", said))
        self.endpoint = f"http://127.0.0.1:{found.group(1)}"
        threading.Thread(target=self.process.stdout.read, daemon=True).start()  # its log, unread

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        kit.remove(self.folder)

    def files(self):
        """The files with the bytes of objects."""
        return sorted(path for path in pathlib.Path(self.folder).rglob("*._S3rver_object"))


def signature(secret, region, method, path, query, headers, names, payload):
    """Signature Version 4, from its description."""
    time_text = headers["x-amz-date"]
    canonical = "\n".join([method, path, query, *(f"{name}:{headers[name]}" for name in names), "", ";".join(names), payload])
    scope = f"{time_text[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time_text, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for word in (time_text[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Answers:
    """A store that has objects in memory, keeps If-None-Match, checks every signature, and answers what `rule` says:
    rule(handler, method, path, objects) is True when it has answered."""

    def __init__(self, rule=None, access=ACCESS, secret=SECRET, region="us-east-1", tls=None):
        self.objects, self.rule, self.asked, self.bad = {}, rule, [], []
        self.access, self.secret, self.region = access, secret, region
        self.versioning, self.token = "", None  # .. of a session, which requests must have then
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def error(self, status, code):
                self.answer(status, f"<Error><Code>{code}</Code></Error>".encode())

            def do(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.handle(self, body)

            do_GET = do_PUT = do_DELETE = do_HEAD = do_POST = do

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                """A client that has enough of an answer goes."""

        self.server = Quiet(("127.0.0.1", 0), Handler)
        if tls is not None:  # (certificate, key)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.endpoint = f"http{'' if tls is None else 's'}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def signed(self, handler, body):
        headers = {name.lower(): value for name, value in handler.headers.items()}
        found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]*)/\d{8}/([^/]*)/s3/aws4_request, SignedHeaders=([^,]*), "
                             r"Signature=([0-9a-f]{64})", headers.get("authorization", ""))
        if not found or found.group(1) != self.access or found.group(2) != self.region:
            return False
        names = found.group(3).split(";")
        path, _, query = handler.path.partition("?")
        payload = hashlib.sha256(body).hexdigest()
        must = {"host", *(name for name in headers if name.startswith("x-amz-") or name == "if-none-match")}
        return (must <= set(names) and headers.get("x-amz-security-token") == self.token and payload == headers["x-amz-content-sha256"] and found.group(4) == signature(
            self.secret, self.region, handler.command, path, query, headers, names, payload))

    def handle(self, handler, body):
        method, path = handler.command, handler.path
        self.asked.append((method, path))
        if not self.signed(handler, body):
            self.bad.append((method, path, dict(handler.headers)))
            return handler.error(403, "SignatureDoesNotMatch")
        if self.rule is not None and self.rule(handler, method, path, self.objects, body):
            return None
        return self.plain(handler, method, path, body)

    def plain(self, handler, method, path, body):
        if method == "GET" and path.endswith("?versioning="):
            status = f"<Status>{self.versioning}</Status>" if self.versioning else ""
            return handler.answer(200, f"<VersioningConfiguration>{status}</VersioningConfiguration>".encode())
        if method == "PUT":
            if path in self.objects and handler.headers.get("If-None-Match") == "*":
                return handler.error(412, "PreconditionFailed")
            self.objects[path] = body
            return handler.answer(200)
        if method == "DELETE":
            self.objects.pop(path, None)
            return handler.answer(204)
        if path in self.objects:
            return handler.answer(200, self.objects[path])
        return handler.error(404, "NoSuchKey")


def cut(handler, _method, _path, objects):
    """The beginning of an object, and the end of the connection."""
    whole = next(iter(objects.values()))
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(whole)))
    handler.end_headers()
    handler.wfile.write(whole[:-1])
    handler.close_connection = True


def endless(handler):
    """Bytes for as long as the client takes them; how many it took."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    taken = 0
    handler.close_connection = True
    try:
        while taken < 1 << 30:
            handler.wfile.write(b"10000\r\n" + bytes(65536) + b"\r\n")
            taken += 65536
    except OSError:
        pass
    return taken


def hang(handler, ends):
    """No answer until the client goes, or the test ends."""
    handler.close_connection = True
    handler.connection.settimeout(0.2)
    while not ends.is_set():
        try:
            if not handler.connection.recv(1, socket.MSG_PEEK):
                return
        except TimeoutError:
            pass
        except OSError:
            return
