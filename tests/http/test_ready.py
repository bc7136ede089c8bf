#!/usr/bin/env python3
"""`cortex ready`: what a health check learns of a server, from its data directory or by its address.

Closes with `N passed, N failed, N skipped`.
"""
import http.server
import json
import pathlib
import shutil
import signal
import ssl
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, Folder, check, main, run, skip, test  # noqa: E402
from server_kit import ENV, Server  # noqa: E402


def ready(*words, code=0):
    done = run(BIN, "ready", *words, env=ENV)
    check(done.returncode == code, words, done.returncode, done.stdout, done.stderr)
    return done


@test
def a_server_is_found_by_its_data_directory():
    with Server("--otlp", "off") as server:
        said = json.loads(ready("--home", server.home, "--json").stdout)
        check(said.pop("index") in ("current", "behind") and said == {"checked": "readyz", "url": server.url}, said)
        check(ready("--home", server.home).stdout.startswith(b"ready: " + server.url.encode()))
        ready("--url", server.url)
        server.stop()
        check(b"NoServer" in ready("--home", server.home, code=3).stderr)
        check(ready("--url", server.url, code=3).stdout == b"")


@test
def a_description_that_a_killed_server_left_is_not_believed():
    with Server("--otlp", "off") as server:
        server.stop(signal.SIGKILL, expect=-signal.SIGKILL)
        check((server.home / "server.json").exists())
        check(b"NoServer" in ready("--home", server.home, code=3).stderr)


@test
def an_address_that_is_reached_from_everywhere_is_asked_here():
    with Server("--otlp", "off", "--insecure", listen="0.0.0.0:0") as server:
        ready("--home", server.home)


@test
def of_a_server_with_tls_its_socket_is_asked():
    if shutil.which("openssl") is None:
        skip("openssl is not here")
    with Folder() as folder:
        made = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                   "-subj", "/CN=cortex.example", "-keyout", folder / "key", "-out", folder / "cert")
        check(made.returncode == 0, made.stderr)
        context = ssl.create_default_context(cafile=folder / "cert")
        with Server("--otlp", "off", "--tls-cert", folder / "cert", "--tls-key", folder / "key", tls=context) as server:
            check(json.loads(ready("--home", server.home, "--json").stdout)["checked"] == "socket")
            server.stop()
            ready("--home", server.home, code=3)


@test
def another_program_at_the_address_is_not_ready():
    class Other(http.server.BaseHTTPRequestHandler):
        bodies = [(200, b"hello"), (200, b'{"status":"well"}'), (503, b'{"detail":"it stops","status":503}')]

        def do_GET(self):
            code, body = self.bodies[self.server.asked % len(self.bodies)]
            self.server.asked += 1
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as server:
        server.asked = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for said in (b"without a JSON object", b"is not ready", b"it stops"):
            check(said in ready("--url", url, code=3).stderr, said)
        server.shutdown()


@test
def wrong_words_are_usage_errors():
    ready("--url", "ftp://127.0.0.1", code=2)
    ready("--url", "https://127.0.0.1", code=2)
    ready("surplus", code=2)
    with Folder() as folder:
        ready("--home", folder / "none", code=3)


if __name__ == "__main__":
    main()
