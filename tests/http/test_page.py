#!/usr/bin/env python3
"""The page that `cortex serve` gives to a browser, and the sessions of browsers, from outside."""
import contextlib
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, main, skip, test  # noqa: E402
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json


class Server:
    def __init__(self, *arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.home = self.folder.name + "/home"
        env = dict(os.environ, HOME=self.folder.name)
        subprocess.run([BIN, "init", "--no-repo", "--home", self.home], check=True,
                       capture_output=True, env=env)
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", self.home, "--listen", "127.0.0.1:0", "--json", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self.url = urllib.parse.urlsplit(json.loads(self.process.stdout.readline())["url"])
        self.token = pathlib.Path(self.home, "token").read_text().strip()

    def ask(self, method, path, **headers):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=30)
        host = headers.pop("Host", self.url.netloc)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        if method == "POST":
            connection.putheader("Content-Length", "0")
        connection.endheaders()
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def sign_in(self):
        answer = self.ask("POST", "/api/v1/session", Authorization="Bearer " + self.token)
        assert answer.status == 200, answer.body
        return answer.headers["Set-Cookie"]

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()


def need_page(s):
    if s.ask("GET", "/").status == 404:
        skip("the program was built without the page")


@test
def the_page_has_its_security_headers(s):
    need_page(s)
    page = s.ask("GET", "/")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "unsafe" not in policy, policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert b"http://" not in page.body and b"https://" not in page.body
    # No script and no style stands in the page itself, so the policy needs no exception.
    assert not re.search(rb"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page.body)


@test
def assets_are_cached_by_their_hash(s):
    need_page(s)
    page = s.ask("GET", "/")
    names = re.findall(rb'(?:src|href)="(assets/[^"]+)"', page.body)
    assert len(names) == 2, page.body
    for name in names:
        path = "/" + name.decode()
        plain = s.ask("GET", path)
        assert plain.headers["ETag"] == '"%s"' % hashlib.sha256(plain.body).hexdigest()
        assert "immutable" in plain.headers["Cache-Control"]
        assert plain.headers.get("Content-Encoding") is None
        packed = s.ask("GET", path, Accept_Encoding="gzip, deflate")
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.body) == plain.body
        assert s.ask("GET", path, Accept_Encoding="gzip, br").headers["Content-Encoding"] == "br"
        refused = s.ask("GET", path, Accept_Encoding="br;q=0, gzip;q=0.0")
        assert refused.headers.get("Content-Encoding") is None
        again = s.ask("GET", path, If_None_Match='"x", W/' + plain.headers["ETag"])
        assert again.status == 304 and again.body == b""
        assert s.ask("GET", path, If_None_Match='"x"').status == 200
        assert s.ask("HEAD", path).status == 200
    assert s.ask("GET", "/").headers["Cache-Control"] == "no-cache"
    assert s.ask("GET", "/assets/page-0.js").status == 404


@test
def the_page_is_small(s):
    need_page(s)
    page = s.ask("GET", "/")
    names = re.findall(rb'(?:src|href)="(assets/[^"]+)"', page.body)
    size = sum(len(s.ask("GET", "/" + name.decode(), Accept_Encoding="gzip").body)
               for name in names)
    assert size < 150 * 1024, size


@test
def an_unexpected_host_header_is_refused(s):
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.x"]:
        assert s.ask("GET", "/", Host=host).status == 421, host
    for host in ["localhost:1", "127.0.0.1", "[::1]:80"]:
        assert s.ask("GET", "/", Host=host).status in (200, 404), host


@test
def a_token_becomes_a_session(s):
    assert s.ask("GET", "/api/v1/session").status == 401
    cookie = s.sign_in()
    name, _, rest = cookie.partition("=")
    assert name == "cortex_%d" % s.url.port, cookie
    flags = [part.strip() for part in rest.split(";")[1:]]
    assert "HttpOnly" in flags and "SameSite=Strict" in flags and "Path=/" in flags, cookie
    value = cookie.split(";")[0]
    who = s.ask("GET", "/api/v1/session", Cookie="other=1; " + value)
    told = json.loads(who.body)
    assert who.status == 200 and told["traces"] is True and "trace:read" in told["scopes"], told
    assert s.token.encode() not in who.body
    assert s.ask("GET", "/api/v1/roots", Cookie=value, Sec_Fetch_Site="same-origin").status == 200
    # A session is not made of a session, and a wrong one is none.
    again = s.ask("POST", "/api/v1/session", Cookie=value, Sec_Fetch_Site="same-origin",
                  X_Cortex_Page="1")
    assert again.status == 401, again.body
    assert s.ask("GET", "/api/v1/roots", Cookie=value[:-2] + "xx").status == 401
    assert s.ask("GET", "/api/v1/roots", Cookie=name + "=").status == 401


@test
def only_our_own_page_may_use_a_session(s):
    value = s.sign_in().split(";")[0]
    path = "/api/v1/roots"
    for site, status in [("same-origin", 200), ("none", 200), ("cross-site", 403),
                         ("same-site", 403)]:
        assert s.ask("GET", path, Cookie=value, Sec_Fetch_Site=site).status == status, site
    assert s.ask("GET", path, Cookie=value, Origin="http://127.0.0.1:1").status == 403
    assert s.ask("GET", path, Cookie=value, Origin="null").status == 403
    assert s.ask("GET", path, Cookie=value, Host="evil.example").status == 403
    own = "http://" + s.url.netloc
    for headers in [{}, {"X_Cortex_Page": "1"}, {"Origin": own}, {"Sec_Fetch_Site": "same-origin"},
                    {"Origin": "http://evil.example", "X_Cortex_Page": "1"},
                    {"Sec_Fetch_Site": "cross-site", "X_Cortex_Page": "1", "Origin": own},
                    {"Sec_Fetch_Site": "none", "X_Cortex_Page": "1"}]:
        answer = s.ask("DELETE", "/api/v1/session", Cookie=value, **headers)
        assert answer.status == 403, (headers, answer.body)
    assert s.ask("GET", path, Cookie=value).status == 200
    done = s.ask("DELETE", "/api/v1/session", Cookie=value, Origin=own, X_Cortex_Page="1")
    assert done.status == 200 and "Max-Age=0" in done.headers["Set-Cookie"]
    assert s.ask("GET", path, Cookie=value).status == 401


@test
def a_revoked_token_ends_its_sessions(s):
    made = subprocess.run([BIN, "token", "add", "--home", s.home, "--name", "short", "--scope",
                           "trace:read", "--json"], check=True, capture_output=True)
    token = json.loads(made.stdout)["token"]
    answer = s.ask("POST", "/api/v1/session", Authorization="Bearer " + token)
    value = answer.headers["Set-Cookie"].split(";")[0]
    assert s.ask("GET", "/api/v1/session", Cookie=value).status == 200
    # A session can no more than its token can.
    refused = s.ask("POST", "/api/v1/covenant/events", Cookie=value, X_Cortex_Page="1",
                    Sec_Fetch_Site="same-origin")
    assert refused.status == 403, refused.body
    subprocess.run([BIN, "token", "revoke", "--home", s.home, "short"], check=True,
                   capture_output=True)
    assert s.ask("GET", "/api/v1/session", Cookie=value).status == 401


main(lambda: contextlib.closing(Server()))
