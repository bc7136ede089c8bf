#!/usr/bin/env python3
"""`cortex exec`: a command in a sandbox, with its network through the recording proxy; programs that
people use, and attacks from inside (docs/exec.md, docs/formats/egress.md)."""
import contextlib
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import tarfile
import threading

from kit import BIN, Place, check, expect, main, skip, test

HOST = "127.0.0.2"  # of this machine, and not in no_proxy
RAW = """
import socket, sys
s = socket.create_connection(('127.0.0.1', 3128), timeout=30)
s.sendall(bytes.fromhex(sys.argv[1]))
got = b''
while True:
    try:
        data = s.recv(65536)
    except OSError:
        break
    if not data:
        break
    got += data
sys.stdout.buffer.write(got)
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.seen.append((self.path, dict(self.headers)))
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", "http://" + self.path[4:])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/echo":
            self.answer(json.dumps(dict(self.headers)).encode())
        elif self.path in self.server.answers:
            self.answer(self.server.answers[self.path])
        else:
            super().do_GET()

    def do_POST(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers)))
        self.answer(body[::-1])

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "text/html" if body.startswith(b"<html") else "application/octet-stream")
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def serving(folder, context=None, answers=None, serve=None):
    """An HTTP server on the host's loopback; gives its port and what it saw."""
    class Here(Handler):
        protocol_version = "HTTP/1.1"

        def __init__(self, *args, **more):
            super().__init__(*args, directory=str(folder), **more)

        if serve is not None:
            do_GET = do_POST = lambda self: serve(self)

    server = http.server.ThreadingHTTPServer((HOST if context is None else "127.0.0.1", 0), Here)
    server.seen, server.answers, server.daemon_threads = [], answers or {}, True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], server.seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Work(Place):
    def __enter__(self):
        super().__enter__()
        self.env = {k: v for k, v in self.env.items()
                    if k.lower() not in ("http_proxy", "https_proxy", "all_proxy", "no_proxy")}
        self.work = self.folder / "work"
        self.work.mkdir()
        return self

    def exec(self, *args, **more):
        return self.run("exec", *args, cwd=more.pop("cwd", self.work), **more)

    def entries(self, kind=None, actor="exec:local"):
        lines = self.ok("log", "--actor", actor, "--all", "--json").splitlines()
        got = [(e["kind"], json.loads(e["payload"])) for e in map(json.loads, lines)]
        return got if kind is None else [payload for k, payload in got if k == kind]

    def connections(self):
        return self.entries("egress.connection")


probe = []


def sandboxed(function):
    """Skips where this machine has no whole sandbox."""
    def inner():
        if not probe:
            with Work() as other:
                probe.append(other.exec("--", "true"))
        with Work() as p:
            if probe[0].returncode == 4:
                skip(probe[0].stderr.decode())
            expect(probe[0], 0)
            function(p)
    inner.__name__ = function.__name__
    return test(inner)


def raw(p, data, *options):
    done = p.exec(*options, "--", "/usr/bin/python3", "-c", RAW, data.hex())
    expect(done, 0)
    return done.stdout


# --- the command ------------------------------------------------------------------------------------


@sandboxed
def the_commands_own_exit_code_and_streams(p):
    done = p.exec("--network", "deny", "--", "/bin/sh", "-c", "cat; echo problem >&2; exit 7", input=b"in\n")
    expect(done, 7, out="in", err="problem")
    expect(p.exec("--", "sh", "-c", "kill -9 $$"), 137)
    expect(p.exec("--", "/usr/bin/nothing-here"), 127)
    expect(p.exec("--timeout", "1", "--", "sleep", "60"), 124)
    start, end = p.entries()[:2]
    check(start[0] == "exec.start" and start[1]["argv"][-1].startswith("cat;"), start)
    check(start[1]["network"] == "deny" and start[1]["sandbox"]["mode"] == "full", start)
    check(end[0] == "exec.end" and end[1]["exit_code"] == 7 and end[1]["exec"] == start[1]["exec"], end)


@sandboxed
def usage_errors_start_nothing(p):
    expect(p.exec(), 2)
    expect(p.exec("--", "no-such-program-here"), 2, err="no program 'no-such-program-here'")
    for words in (["--allow", "*"], ["--allow", "https://a.b"], ["--allow-private", "a.b"], ["--allow", "*.org"],
                  ["--network", "on-request"], ["--timeout", "999999"], ["--write", "/nonexistent"],
                  ["--policy", "/nonexistent"], ["--write", ".", "--read-only"]):
        done = p.exec(*words, "--", "true")
        check(done.returncode in (2, 3), words, done)
        check(done.stderr.startswith(b"cortex: exec:"), words, done.stderr)
    check(all(kind != "exec.start" or payload["argv"] != ["true"] for kind, payload in p.entries()), p.entries())


@sandboxed
def without_a_data_directory_nothing_starts(p):
    done = p.exec("--home", p.folder / "nowhere", "--", "touch", "made")
    expect(done, 3, err="cortex init")
    check(not (p.work / "made").exists())


@sandboxed
def what_may_be_written(p):
    (p.work / ".git").mkdir()
    (p.work / ".claude").mkdir()
    other = p.folder / "other"
    other.mkdir()
    script = ("touch here; touch .git/config 2>/dev/null && echo GIT; touch .claude/x 2>/dev/null && echo CLAUDE; "
              f"touch {other}/x 2>/dev/null && echo OTHER; touch /usr/x 2>/dev/null && echo USR; "
              f"ls {p.home} 2>/dev/null && echo HOME; echo '{{}}' > .mcp.json; true")
    done = expect(p.exec("--", "sh", "-c", script), 0, err="the command made")
    check(done.stdout == b"", done.stdout)
    check((p.work / "here").exists())
    check(p.entries("exec.end")[-1]["made"] == [str(p.work / ".mcp.json")], p.entries("exec.end")[-1])
    (p.work / ".vscode").symlink_to("/nowhere")
    expect(p.exec("--", "true"), 0)
    check(p.entries("exec.end")[-1]["made"] == [], p.entries("exec.end")[-1])
    expect(p.exec("--", "sh", "-c", "rm .vscode && mkdir .vscode"), 0, err=".vscode, which other programs obey")
    expect(p.exec("--read-only", "--", "sh", "-c", "touch there"), 1)
    expect(p.exec("--write", other, "--", "sh", "-c", f"touch {other}/y && ! touch there"), 0)
    expect(p.exec("--", "true", cwd=p.folder), 2, err="--write")
    expect(p.exec("--write", p.home, "--", "true"), 2, err="data directory")


@sandboxed
def a_link_does_not_open_a_protected_name(p):
    (p.work / "conf/claude").mkdir(parents=True)
    (p.work / ".claude").symlink_to("conf/claude")
    for script in ("echo x > .claude/settings.json", "echo x > conf/claude/settings.json", "mv conf other",
                   "rm -rf conf/claude"):
        check(p.exec("--", "sh", "-c", script).returncode != 0, script)
        check(p.entries("exec.end")[-1]["made"] == [], script)
    check(list((p.work / "conf/claude").iterdir()) == [], "written through a link")
    (p.work / ".codex").symlink_to("later")  # leads to nothing yet
    expect(p.exec("--", "sh", "-c", "mkdir later; echo x > .codex/config.toml"), 0, err=".codex, which other programs")
    check(p.entries("exec.end")[-1]["made"] == [str(p.work / ".codex")], p.entries("exec.end")[-1])


@sandboxed
def directories_of_git_are_never_writable(p):
    p.ok("exec", "--", "git", "init", "-q", "--bare", p.work / "bare.git", cwd=p.work)
    for words in (["init", "-q", "repo"], ["-C", "repo", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
                                           "--allow-empty", "-m", "x"], ["-C", "repo", "worktree", "add", "-q", "../tree"]):
        check(subprocess.run(["git", *words], cwd=p.work, check=False).returncode == 0, words)
    for folder in ("bare.git", "bare.git/hooks", "repo/.git", "repo/.git/hooks", "repo/.git/worktrees/tree"):
        for done in (p.exec("--", "touch", "x", cwd=p.work / folder),
                     p.exec("--write", p.work / folder, "--", "touch", p.work / folder / "x")):
            expect(done, 2, err="is a directory of git")
        check(not (p.work / folder / "x").exists(), folder)
        expect(p.exec("--read-only", "--", "true", cwd=p.work / folder), 0)
    expect(p.exec("--", "touch", "x", cwd=p.work / "tree"), 0)
    # Not named, and of other programs.
    (p.work / "repo/.claude/hooks").mkdir(parents=True)
    expect(p.exec("--", "touch", "x", cwd=p.work / "repo/.claude/hooks"), 2, err="--write PATH")
    expect(p.exec("--write", ".", "--", "touch", "x", cwd=p.work / "repo/.claude/hooks"), 0)


@sandboxed
def the_lock_of_the_work_trees_is_not_held(p):
    check(subprocess.run(["git", "init", "-q", p.work / "repo"], check=False).returncode == 0)
    (p.work / "repo/.git/cortex-worktrees.lock").touch()
    hold = "(exec 9<.git/cortex-worktrees.lock; flock -n 9) && echo held; git status >/dev/null && echo read"
    for options in ([], ["--read-only"]):
        done = expect(p.exec(*options, "--", "sh", "-c", hold, cwd=p.work / "repo"), 0)
        check(done.stdout == b"read\n", done.stdout, done.stderr)


@sandboxed
def a_planted_bare_repository_is_told(p):
    expect(p.exec("--", "git", "init", "-q", "--bare", "."), 0, err="HEAD, which other programs obey")
    check(p.entries("exec.end")[-1]["made"] == [str(p.work / "HEAD")], p.entries("exec.end")[-1])


@sandboxed
def folders_above_what_is_hidden_stay_where_they_are(p):
    home = p.work / "a/b/home"
    home.parent.mkdir(parents=True)
    p.ok("init", "--home", home)
    script = ("touch a/here a/b/here; ls a/b/home && ! mv a c && ! mv a/b a/c && ! mv -T a/b/home a/b/c && "
              "! rm -rf a && mkdir a/d && mv a/d a/e")
    expect(p.exec("--home", home, "--", "sh", "-c", script), 0)
    check((home / "config.json").exists() or any(home.iterdir()), "the data directory was replaced")
    check((p.work / "a/e").exists(), list(p.work.rglob("*")))


@sandboxed
def what_was_shown_and_given_is_recorded(p):
    other = p.folder / "other"
    other.mkdir()
    words = ["sh", "-c", "true", "x" * 70000, "after what is kept"]
    expect(p.exec("--read", other, "--env", "WANTED", "--env", "UNSET", "--", *words, env={"WANTED": "s3cret"}), 0)
    start = p.entries("exec.start")[-1]
    check(start["read"] == [str(other)] and start["env"] == ["WANTED"], start)
    check("s3cret" not in json.dumps(start), start)
    whole = b"".join(word.encode() + b"\0" for word in words)
    check(len("".join(start["argv"])) == 64 << 10 and start["argv_bytes"] == len(whole), start["argv_bytes"])
    check(start["argv_sha256"] == hashlib.sha256(whole).hexdigest(), start["argv_sha256"])


@sandboxed
def variables_are_not_passed_on(p):
    done = p.exec("--env", "WANTED", "--", "env", env={"SECRET_TOKEN": "s3cret", "WANTED": "yes"})
    check(b"s3cret" not in done.stdout and b"WANTED=yes" in done.stdout, done.stdout)
    check(b"_proxy" not in done.stdout.lower(), done.stdout)


# What reaches a data directory in another's name (docs/fleet.md).
REACH = {"CORTEX_URL": "https://r3ach.example:8420", "CORTEX_TOKEN": "cortex_r3ach" + "x" * 38,
         "CORTEX_HOME": "postgresql://ann:r3ach@db.example/cortex", "CORTEX_FLEET": "postgresql://ann:r3ach@db/x",
         "PGPASSWORD": "r3ach"}
LOOK = "env; cat /proc/*/environ /proc/*/cmdline /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n'; "


@sandboxed
def what_reaches_a_data_directory_is_not_passed_on(p):
    (p.home / "token").write_text("cortex_r3ach\n")
    done = p.exec("--home", p.home, "--", "sh", "-c", f"{LOOK} cat '{p.home}'/token '{p.home}'/cortex.db", env=REACH)
    check(b"PWD=" in done.stdout and b"r3ach" not in done.stdout + done.stderr, done)
    names = {line.split(b"=")[0] for line in done.stdout.splitlines() if line.startswith(b"CORTEX_")}
    check(names <= {b"CORTEX_RUN_ID"}, names)
    check(done.stderr.count(b"No such file or directory") == 2, done.stderr)
    # Passed on because the person names it, and only that one.
    done = p.exec("--home", p.home, "--env", "CORTEX_URL", "--", "env", env=REACH)
    check(b"CORTEX_URL=https://r3ach.example:8420" in done.stdout and done.stdout.count(b"r3ach") == 1, done.stdout)


# --- hosts ------------------------------------------------------------------------------------------


@sandboxed
def a_listed_host_is_reached_and_recorded(p):
    (p.folder / "www").mkdir()
    (p.folder / "www/file").write_text("content\n")
    with serving(p.folder / "www") as (port, seen):
        url = f"http://{HOST}:{port}"
        expect(p.exec("--allow-private", f"{HOST}:{port}", "--", "curl", "-sS", url + "/file"), 0, out="content")
        expect(p.exec("--allow-private", f"{HOST}:{port}", "--", "curl", "-sS", "-d", "abc", url + "/x"), 0, out="cba")
        expect(p.exec("--allow-private", f"{HOST}:{port}", "--", "curl", "-sS", "-H", "Transfer-Encoding: chunked",
                      "-d", "abc", url + "/x"), 0, out="cba")
        body = p.work / "body"
        body.write_bytes(bytes(range(256)) * 4096)
        done = p.exec("--allow-private", f"{HOST}:{port}", "--", "curl", "-sS", "-T", "body", "-X", "POST", url + "/x")
        check(done.stdout == body.read_bytes()[::-1], len(done.stdout), done.stderr)
    kinds = [kind for kind, _ in p.entries()]
    check(kinds[:4] == ["exec.start", "egress.open", "egress.connection", "exec.end"], kinds)
    one = p.connections()[0]
    check(one["host"] == HOST and one["port"] == port and one["verdict"] == "allow" and one["rule"] == "E00", one)
    check(one["way"] == "http" and one["method"] == "GET" and one["address"] == HOST, one)
    check(one["address_class"] == "loopback" and one["bytes_in"] > 8 and one["bytes_out"] == 0, one)
    check(one["started_ns"] <= one["ended_ns"] and one["error"] is None, one)
    check(p.connections()[3]["bytes_out"] == len(body.read_bytes()), p.connections()[3])
    check(p.entries("exec.end")[0]["allowed"] == 1, p.entries("exec.end")[0])


@sandboxed
def a_command_that_fails_without_network_is_told_so(p):
    told = b"had no network; if it needed it, --allow HOST"
    done = p.exec("--", "curl", "-sS", "http://docs.example/")
    check(done.returncode == 6 and told in done.stderr, done)
    for args in (("--", "true"), ("--network", "deny", "--", "false"), ("--allow", "a.example", "--", "false")):
        check(told not in p.exec(*args).stderr, args)


@sandboxed
def what_no_list_names_is_refused(p):
    with serving(p.folder) as (port, seen):
        rows = [(f"http://{HOST}:{port}/", "E01"), ("http://other.example/", "E01"),
                ("http://listed.example:81/", "E01"), ("http://127.0.0.3/", "E01")]
        for url, rule in rows:
            done = p.exec("--allow", "listed.example", "--", "curl", "-sS", url)
            expect(done, 0, out=rule, err=f"({rule})")
        check(not seen, seen)
    check([c["rule"] for c in p.connections()] == [rule for _, rule in rows], p.connections())


@sandboxed
def private_addresses_are_refused_although_listed(p):
    hosts = ["127.0.0.2", "10.0.0.1", "192.168.0.1", "169.254.169.254", "100.100.100.200", "0.0.0.0",
             "[::ffff:127.0.0.2]", "[::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00:ec2::254]", "localhost"]
    allow = [word for host in hosts for word in ("--allow", host)]
    urls = [f"http://{host}/" for host in hosts]
    with serving(p.folder):
        done = p.exec(*allow, "--", "env", "-u", "no_proxy", "-u", "NO_PROXY", "curl", "-g", "-sS", *urls)
    check(done.stdout.count(b"E04") == len(hosts), done.stdout, done.stderr)
    check(all(c["verdict"] == "refuse" for c in p.connections()), p.connections())
    done = p.exec("--allow-private", "169.254.169.254:80", "--", "curl", "-sS", "http://169.254.169.254/latest/")
    expect(done, 0, out="E04: 169.254.169.254: link_local")


@sandboxed
def other_forms_of_addresses_are_refused(p):
    for form in ("2130706434", "0x7f000002", "0177.0.0.2", "127.2", "0x7f.0.0.2", "127.0.2"):
        got = raw(p, f"CONNECT {form}:443 HTTP/1.1\r\n\r\n".encode(), "--allow-private", f"{HOST}:443")
        check(b" 403 " in got and b"E03" in got, form, got)


@sandboxed
def a_redirect_is_a_connection_of_its_own(p):
    with serving(p.folder) as (port, seen), serving(p.folder) as (other, unseen):
        done = p.exec("--allow-private", f"{HOST}:{port}", "--allow", f"{HOST}:{other}", "--", "curl", "-sSL",
                      f"http://{HOST}:{port}/to/{HOST}:{other}/")
        expect(done, 0, out="E04")
        check(len(seen) == 1 and not unseen, seen, unseen)
    # Recorded as they end, and either may end first.
    asked = sorted(p.connections(), key=lambda one: one["number"])
    check([c["verdict"] for c in asked] == ["allow", "refuse"], asked)


@sandboxed
def policies_of_the_commit_and_contracts_narrow(p):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=p.work, check=True,
                       capture_output=True, env=p.env)

    with serving(p.folder) as (port, _), serving(p.folder) as (other, _):
        git("init", "-q")
        (p.work / "policies").mkdir()
        policy = {"version": "v1", "private_hosts": [f"{HOST}:{port}", f"{HOST}:{other}"],
                  "hosts": [f"{HOST}:{port}", f"{HOST}:{other}"]}
        (p.work / "policies/egress.json").write_text(json.dumps(policy))
        first = f"http://{HOST}:{port}/echo"
        expect(p.exec("--", "curl", "-sS", "-m", "5", first), 7)  # not committed: no policy, no network
        git("add", "-A")
        git("commit", "-qm", "policy")
        expect(p.exec("--", "curl", "-sS", first), 0, out="User-Agent")
        policy["hosts"] = []
        (p.work / "policies/egress.json").write_text(json.dumps(policy))  # the work tree counts for nothing
        expect(p.exec("--", "curl", "-sS", first), 0, out="User-Agent")
        expect(p.exec("--network", "deny", "--", "curl", "-sS", first), 7)
        example = sorted(pathlib.Path(__file__).resolve().parents[2].glob("contracts/examples/*.json"))[0]
        contract = json.loads(example.read_text())
        file = p.folder / "contract.json"
        for network, hosts, code, out in (("deny", [], 7, None), ("on-request", [], 7, None),
                                          ("on-request", [f"{HOST}:{other}"], 0, "E01"),
                                          ("allow", [f"{HOST}:{port}"], 0, "User-Agent")):
            contract["tool_permissions"]["network"] = network
            contract["tool_permissions"]["network_hosts"] = hosts
            file.write_text(json.dumps(contract))
            expect(p.exec("--contract", file, "--", "curl", "-sS", first), code, out=out)
        file.write_text("{}")
        expect(p.exec("--contract", file, "--", "true"), 4, err="K01")


# --- TLS --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def tls(p, serve=None):
    """A TLS server on localhost with a certificate for it; gives port, requests seen, certificate."""
    if shutil.which("openssl") is None:
        skip("no openssl")
    key, cert = p.folder / "key.pem", p.work / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                    "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with serving(p.folder, context, serve=serve) as (port, seen):
        yield port, seen, cert


BARE = ("env", "-u", "no_proxy", "-u", "NO_PROXY")  # localhost through the proxy, too


@sandboxed
def a_client_that_leaves_after_its_answer_is_no_error(p):
    """Hosts that keep their connections open: the sandbox's end finds each of them still there."""
    over = threading.Event()

    def hold(handler):
        if handler.path != "/silent":
            handler.send_response(200)
            handler.send_header("Content-Length", "4")
            handler.end_headers()
            handler.wfile.write(b"this")
            handler.wfile.flush()
        over.wait(60)

    with serving(p.folder, serve=hold) as (port, _), tls(p, serve=hold) as (secret, _, _):
        url, allowed = f"http://{HOST}:{port}", ("--allow-private", f"{HOST}:{port}", "--")
        expect(p.exec(*allowed, "curl", "-sS", url), 0, out="this")
        expect(p.exec("--allow-private", f"localhost:{secret}", "--", *BARE, "curl", "-sS", "--cacert", "cert.pem",
                      f"https://localhost:{secret}/"), 0, out="this")
        expect(p.exec(*allowed, "sh", "-c", f"curl -sS {url}/silent & sleep 1"), 0)
        expect(p.exec(*allowed, "timeout", "1", "curl", "-sS", url + "/silent"), 124)
        over.set()
    found = [(c["way"], c["bytes_in"] > 0, c["error"]) for c in p.connections()]
    check(found == [("http", True, None), ("connect", True, None), ("http", False, "the sandbox ended"),
                    ("http", False, "the sandbox ended")], found)


@sandboxed
def a_tunnel_with_the_right_name(p):
    with tls(p) as (port, seen, _):
        done = p.exec("--allow-private", f"localhost:{port}", "--", *BARE, "curl", "-sS", "--cacert", "cert.pem",
                      f"https://localhost:{port}/echo")
        expect(done, 0, out="User-Agent")
        check(len(seen) == 1, seen)
    one = p.connections()[0]
    check(one["sni"] == "localhost" and one["way"] == "connect" and one["rule"] == "E00", one)
    check(one["bytes_out"] > 200 and one["bytes_in"] > 500, one)


@sandboxed
def tunnels_with_another_name_or_none(p):
    client = "openssl s_client -proxy 127.0.0.1:3128 -connect localhost:%d %s </dev/null"
    with tls(p) as (port, seen, _):
        for words in ("-servername evil.example", "-noservername"):
            done = p.exec("--allow-private", f"localhost:{port}", "--", "sh", "-c", client % (port, words))
            check(b"BEGIN CERTIFICATE" not in done.stdout, done.stdout)
        expect(p.exec("--allow-private", f"localhost:{port}", "--", "sh", "-c", client % (port, "-servername localhost")),
               0, out="BEGIN CERTIFICATE")
        check(not seen, seen)
    check([c["rule"] for c in p.connections()] == ["E07", "E08", "E00"], p.connections())
    check(p.connections()[0]["sni"] == "evil.example" and p.connections()[0]["bytes_out"] == 0, p.connections())


@sandboxed
def a_tunnel_without_tls(p):
    with serving(p.folder) as (port, seen):
        got = raw(p, f"CONNECT {HOST}:{port} HTTP/1.1\r\n\r\nGET /echo HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
                  "--allow-private", f"{HOST}:{port}")
        check(b"User-Agent" not in got and not seen, got, seen)
    check([c["rule"] for c in p.connections()] == ["E08"], p.connections())


# --- attacks from inside ----------------------------------------------------------------------------


ESCAPES = """
import os, socket, sys
found = []
def attempt(what, function):
    try:
        function()
        found.append(what)
    except OSError:
        pass
port, name = int(sys.argv[1]), sys.argv[2]
attempt('direct', lambda: socket.create_connection(('127.0.0.2', port), timeout=3))
attempt('outside', lambda: socket.create_connection(('192.0.2.1', 80), timeout=3))
attempt('dns', lambda: socket.getaddrinfo('example.org', 80))
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    s.sendto(b'x', ('192.0.2.53', 53))
attempt('udp', udp)
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt('packet', lambda: socket.socket(17, socket.SOCK_RAW, 0))
attempt('netlink', lambda: socket.socket(16, socket.SOCK_RAW, 0))
attempt('vsock', lambda: socket.socket(40, socket.SOCK_STREAM, 0))
def abstract():
    s = socket.socket(socket.AF_UNIX)
    s.connect('\\0' + name)
attempt('abstract', abstract)
attempt('descriptors', lambda: [os.fstat(n) for n in range(3, 64)])
extra = []
for n in range(3, 256):
    try:
        os.fstat(n)
        extra.append(n)
    except OSError:
        pass
print('found', found, extra)
"""


@sandboxed
def there_is_no_other_way_out(p):
    name = f"cortex-test-{os.getpid()}"
    with serving(p.folder) as (port, seen), socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        for options in (["--network", "deny"], ["--allow", "example.org"], ["--network", "allow"]):
            done = p.exec(*options, "--", "/usr/bin/python3", "-c", ESCAPES, port, name)
            check(done.stdout == b"found [] []\n", options, done.stdout, done.stderr)
        check(not seen, seen)
    check(not p.connections(), p.connections())


@sandboxed
def smuggled_requests(p):
    with serving(p.folder) as (port, seen):
        def ask(text):
            return raw(p, text.replace("@", f"{HOST}:{port}").encode(), "--allow-private", f"{HOST}:{port}")

        head = "POST http://@/x HTTP/1.1\r\nHost: @\r\n"
        for text in (head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /echo HTTP/1.1\r\n\r\n",
                     head + "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\nabc",
                     head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                     head + "Content-Length: 1\nX: y\r\n\r\nabc",
                     head + "Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
                     "GET http://@/x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                     "GET http://@@evil.example/ HTTP/1.1\r\nHost: @\r\n\r\n",
                     "GET /echo HTTP/1.1\r\nHost: @\r\n\r\n"):
            got = ask(text)
            check(got.startswith(b"HTTP/1.1 400 "), text, got)
        check(not seen, seen)
        got = ask("GET http://@/echo HTTP/1.1\r\nHost: @\r\n\r\nGET http://@/second HTTP/1.1\r\nHost: @\r\n\r\n")
        check([path for path, _ in seen] == ["/echo"], seen)
        got = ask(head + "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n")
        check(got.startswith(b"HTTP/1.1 502 "), got)
        got = ask(head + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nTrailer: x\r\n\r\nGET /second HTTP/1.1\r\n\r\n")
        check(got.endswith(b"cba"), got)
        check([path for path, _ in seen if path == "/second"] == [], seen)


@sandboxed
def heads_that_are_too_large_or_too_slow(p):
    policy = p.folder / "policy.json"
    policy.write_text(json.dumps({"version": "v1", "hosts": ["a.example"], "limits": {"seconds_head": 1}}))
    got = raw(p, b"GET http://a.example/ HTTP/1.1\r\nX: " + b"y" * 40000, "--policy", policy)
    check(got.startswith(b"HTTP/1.1 431 "), got)
    got = raw(p, b"GET http://a.example/ HTTP/1.1\r\n", "--policy", policy)
    check(got.startswith(b"HTTP/1.1 408 "), got)
    check([c["rule"] for c in p.connections()] == ["E02", "E10"], p.connections())


FLOOD = """
import socket, sys
held = [socket.create_connection(('127.0.0.1', 3128), timeout=60) for _ in range(20)]
rules = {}
for _ in range(int(sys.argv[1])):
    s = socket.create_connection(('127.0.0.1', 3128), timeout=60)
    s.sendall(b'CONNECT evil.example:443 HTTP/1.1\\r\\n\\r\\n')
    got = b''
    while data := s.recv(65536):
        got += data
    s.close()
    rules[got.split(b' ')[1]] = rules.get(got.split(b' ')[1], 0) + 1
print(rules)
"""


@sandboxed
def thousands_of_connections(p):
    policy = p.folder / "policy.json"
    policy.write_text(json.dumps({"version": "v1", "hosts": ["a.example"],
                                  "limits": {"connections": 32, "connections_total": 50}}))
    done = p.exec("--policy", policy, "--", "/usr/bin/python3", "-c", FLOOD, 2000)
    expect(done, 0, out="{b'403': 50, b'429': 1950}")
    end = p.entries("exec.end")[0]
    check(end["connections"] == 2000 and end["refused"] == 2000 and end["unrecorded"] == 950, end)
    check(len(p.connections()) == 1050, len(p.connections()))


@sandboxed
def the_proxy_asked_for_itself(p):
    got = raw(p, b"CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n", "--allow", "127.0.0.1:3128")
    check(b" 403 " in got and b"E04" in got, got)


@sandboxed
def what_was_started_ends_with_the_program(p):
    with serving(p.folder):
        child = subprocess.Popen([BIN, "exec", "--allow", "a.example", "--", "sh", "-c", "echo on; sleep 600"],
                                 cwd=p.work, env=p.env, stdout=subprocess.PIPE)
        check(child.stdout.readline() == b"on\n")
        child.kill()
        check(child.stdout.read() == b"")  # its end: nothing inside has it open any more
        child.wait()
        child.stdout.close()
    expect(p.exec("--", "true"), 0)


@sandboxed
def a_program_that_is_killed_or_asked_to_end(p):
    with socket.socket() as silent:
        silent.bind((HOST, 0))
        silent.listen()
        port = silent.getsockname()[1]
        words = ["--allow-private", f"{HOST}:{port}", "--", "curl", "-s", f"http://{HOST}:{port}/"]
        for end in (subprocess.Popen.kill, subprocess.Popen.terminate):
            child = subprocess.Popen([BIN, "exec", *words], cwd=p.work, env=p.env, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            accepted = silent.accept()[0]
            check(accepted.recv(10).startswith(b"GET"))  # so its record is on the disk
            end(child)
            child.communicate(timeout=120)
            check(accepted.recv(100000) is not None)
            accepted.close()
            check(child.returncode in (-9, 143), child.returncode)
    kinds = [kind for kind, _ in p.entries()]
    check(kinds == ["exec.start", "egress.open", "exec.start", "egress.open", "egress.connection", "exec.end"], kinds)
    last = p.connections()[0]
    check(last["verdict"] == "allow" and last["error"], last)
    check(p.entries("exec.end")[0]["exit_code"] == 143, p.entries("exec.end"))
    expect(p.run("verify", "--home", p.home), 0)


@sandboxed
def many_at_once_and_beside_a_server(p):
    def starts(count):
        return [subprocess.Popen([BIN, "exec", "--allow", "a.example", "--", "curl", "-s", f"http://b{n}.example/"],
                                 cwd=p.work, env=p.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for n in range(count)]

    def finish(children):
        for child in children:
            out = child.communicate(timeout=120)[0]
            check(child.returncode == 0 and b"E01" in out and b"recorded:" not in out, child.returncode, out)

    finish(starts(6))
    server = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0"], cwd=p.work, env=p.env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        check(server.stdout.readline())
        finish(starts(3))
    finally:
        server.terminate()
        server.communicate(timeout=60)
    hosts = sorted(c["host"] for c in p.connections())
    check(hosts == sorted([f"b{n}.example" for n in range(6)] + [f"b{n}.example" for n in range(3)]), hosts)
    ends = p.entries("exec.end")
    check(len(ends) == 9 and all(e["refused"] == 1 for e in ends), ends)


@sandboxed
def what_a_live_session_rewrites_to(p):
    command = f"'{BIN}' exec --network deny -- /bin/sh -c 'echo \"$0\" in; touch made; curl -s http://a.example/; echo $?'"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=p.work, env=p.env, capture_output=True, check=False)
    expect(done, 0, out="/bin/sh in")
    check(done.stdout.decode().splitlines()[-1] in ("5", "6", "7"), done.stdout)
    check((p.work / "made").exists())


# --- programs ---------------------------------------------------------------------------------------


@sandboxed
def git_clones_over_http(p):
    if shutil.which("git") is None:
        skip("no git")
    repo = p.folder / "www/repo.git"
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    source = p.folder / "source"
    for words in (["init", "-q", source], ["-C", source, "commit", "-q", "--allow-empty", "-m", "first"],
                  ["clone", "-q", "--bare", source, repo], ["-C", repo, "update-server-info"]):
        subprocess.run([*run, *map(str, words)], check=True, env=p.env, capture_output=True)
    with serving(p.folder / "www") as (port, _):
        url = f"http://{HOST}:{port}/repo.git"
        expect(p.exec("--allow-private", f"{HOST}:{port}", "--", "git", "clone", "-q", url, "clone"), 0)
        check((p.work / "clone/.git/HEAD").exists())
        expect(p.exec("--allow", "other.example", "--", "git", "clone", "-q", url, "again"), 128, err="403")


def backend(folder, handler):
    """One request to `git http-backend`, which answers as a CGI program."""
    path, _, query = handler.path.partition("?")
    if "chunked" in handler.headers.get("Transfer-Encoding", ""):
        body = b""
        while size := int(handler.rfile.readline(), 16):
            body += handler.rfile.read(size)
            handler.rfile.readline()
        handler.rfile.readline()
    else:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
    env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(folder), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
           "QUERY_STRING": query, "REQUEST_METHOD": handler.command, "REMOTE_USER": "tester",
           "CONTENT_TYPE": handler.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
           "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
           "GIT_PROTOCOL": handler.headers.get("Git-Protocol", "")}
    done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=env, check=False)
    head, _, answer = done.stdout.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
    handler.send_response(next((int(value.split()[0]) for name, value in lines if name == "Status"), 200))
    for name, value in lines:
        if name != "Status":
            handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(answer)))
    handler.end_headers()
    handler.wfile.write(answer)


@sandboxed
def git_clones_and_pushes_by_its_own_protocol(p):
    if shutil.which("git") is None:
        skip("no git")
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    source, bare = p.folder / "source", p.folder / "www/repo.git"
    for words in (["init", "-q", source], ["-C", source, "commit", "-q", "--allow-empty", "-m", "first"],
                  ["clone", "-q", "--bare", source, bare], ["-C", bare, "config", "http.receivepack", "true"]):
        subprocess.run([*run, *map(str, words)], check=True, env=p.env, capture_output=True)
    with tls(p, lambda handler: backend(p.folder / "www", handler)) as (port, seen, _):
        url = f"https://localhost:{port}/repo.git"
        script = (f"export GIT_SSL_CAINFO=$PWD/cert.pem; git clone -q {url} /tmp/c && cd /tmp/c && "
                  "head -c 3000000 /dev/urandom > big && git add big && "
                  "git -c user.name=a -c user.email=a@b commit -qm second && "
                  "git -c http.postBuffer=65536 push -q origin HEAD:main")
        expect(p.exec("--allow-private", f"localhost:{port}", "--", *BARE, "sh", "-c", script), 0)
    log = subprocess.run([*run, "-C", str(bare), "log", "--format=%s", "main"], capture_output=True, check=True, env=p.env)
    check(log.stdout == b"second\nfirst\n", log.stdout)
    check(max(c["bytes_out"] for c in p.connections()) > 3000000, p.connections())
    check(all(c["sni"] == "localhost" for c in p.connections()), p.connections())


@sandboxed
def wget_and_python(p):
    with serving(p.folder, answers={"/x": b"content"}) as (port, _):
        url = f"http://{HOST}:{port}/x"
        python = f"import urllib.request as u; print(u.urlopen('{url}').read())"
        programs = [["/usr/bin/python3", "-c", python]] + ([["wget", "-qO-", url]] if shutil.which("wget") else [])
        for words in programs:
            expect(p.exec("--allow-private", f"{HOST}:{port}", "--", *words), 0, out="content")
    check(len(p.connections()) == len(programs), p.connections())


@sandboxed
def pip_downloads(p):
    if subprocess.run(["/usr/bin/python3", "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        skip("no pip")
    index = b'<html><body><a href="/files/thing-1.0.tar.gz">thing-1.0.tar.gz</a></body></html>'
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        text = b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"
        info = tarfile.TarInfo("thing-1.0/PKG-INFO")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    with serving(p.folder, answers={"/simple/thing/": index, "/files/thing-1.0.tar.gz": data.getvalue()}) as (port, seen):
        p.exec("--allow-private", f"{HOST}:{port}", "--", "/usr/bin/python3", "-m", "pip", "download", "--no-deps",
               "--no-build-isolation", "--retries", "0", "--trusted-host", HOST, "-i", f"http://{HOST}:{port}/simple",
               "thing==1.0")
        paths = [path for path, _ in seen]
        check(paths[:2] == ["/simple/thing/", "/files/thing-1.0.tar.gz"], paths)
    check(all(c["verdict"] == "allow" for c in p.connections()[:2]), p.connections())


@sandboxed
def npm_reads_a_registry(p):
    if shutil.which("npm") is None or not os.path.realpath(shutil.which("npm")).startswith("/usr/"):
        skip("no npm in the system's folders")
    with serving(p.folder) as (port, seen):
        about = {"name": "thing", "dist-tags": {"latest": "1.0.0"},
                 "versions": {"1.0.0": {"name": "thing", "version": "1.0.0",
                                        "dist": {"tarball": f"http://{HOST}:{port}/t.tgz"}}}}
        (p.folder / "thing").write_text(json.dumps(about))
        done = p.exec("--allow-private", f"{HOST}:{port}", "--", "npm", "view", "thing", "version", "--registry",
                      f"http://{HOST}:{port}/")
        expect(done, 0, out="1.0.0")
        check(any(path == "/thing" for path, _ in seen), seen)
        with tarfile.open(p.folder / "t.tgz", "w:gz") as archive:
            text = json.dumps({"name": "thing", "version": "1.0.0"}).encode()
            info = tarfile.TarInfo("package/package.json")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        expect(p.exec("--allow-private", f"{HOST}:{port}", "--", "npm", "install", "thing", "--no-audit", "--no-fund",
                      "--registry", f"http://{HOST}:{port}/"), 0)
        check((p.work / "node_modules/thing/package.json").exists(), "not installed")


@sandboxed
def node_fetches(p):
    node = shutil.which("node")
    if node is None or not os.path.realpath(node).startswith("/usr/"):
        skip("no node in the system's folders")
    if int(subprocess.run([node, "--version"], capture_output=True, check=True).stdout[1:].split(b".")[0]) < 24:
        skip("node before 24 does not read the proxy of its environment")
    with serving(p.folder, answers={"/x": b"content"}) as (port, _):
        script = f"fetch('http://{HOST}:{port}/x').then(r => r.text()).then(console.log)"
        expect(p.exec("--allow-private", f"{HOST}:{port}", "--", "node", "-e", script), 0, out="content")


# --- credentials ------------------------------------------------------------------------------------


@sandboxed
def a_credential_is_added_outside(p):
    store = p.folder / "credentials.json"
    env = {"CORTEX_CREDENTIALS": str(store)}
    with tls(p) as (port, seen, cert):
        one = {"host": f"localhost:{port}", "header": "Authorization", "value": "Bearer s3cret-value"}
        store.write_text(json.dumps({"credentials": {"mine": one}}))
        words = ["--allow-private", f"localhost:{port}", "--credential", "mine", "--", *BARE]
        curl = ["curl", "-sS", "-H", "authorization: Bearer forged", "-H", "X: y", "http://localhost/echo"]
        store.chmod(0o644)
        expect(p.exec(*words, *curl, env=env), 4, err="chmod 600")
        store.chmod(0o600)
        inside = p.work / "credentials.json"
        inside.write_bytes(store.read_bytes())
        inside.chmod(0o600)
        expect(p.exec(*words, *curl, env={"CORTEX_CREDENTIALS": str(inside)}), 4, err="would see")
        inside.unlink()
        expect(p.exec(*words, *curl, env=env), 0, out="cortex egress")
        check(not seen, seen)  # the certificate is of no authority that this machine knows
        env["SSL_CERT_FILE"] = str(cert)
        done = expect(p.exec(*words, "sh", "-c", 'env; exec "$@"', "sh", *curl, env=env), 0, out="Bearer s3cret-value")
        check(len(seen) == 1 and seen[0][0] == "/echo", seen)
        check(seen[0][1]["Authorization"] == "Bearer s3cret-value" and seen[0][1]["X"] == "y", seen)
        check(seen[0][1]["Host"] == f"localhost:{port}", seen)
        check(done.stdout.count(b"s3cret") == 1, "in the echo of the host only")
        one["command"] = ["printf", "Bearer from-command"]
        del one["value"]
        store.write_text(json.dumps({"credentials": {"mine": one}}))
        expect(p.exec(*words, *curl, env=env), 0, out="from-command")
        one["command"] = ["false"]
        store.write_text(json.dumps({"credentials": {"mine": one}}))
        expect(p.exec(*words, *curl, env=env), 3, err="ended with 1")
        expect(p.exec("--allow-private", f"localhost:{port}", "--credential", "other", "--", "true", env=env), 3,
               err="no credential 'other'")
    last = p.connections()[-1]
    check(last["way"] == "inject" and last["credential"] == "mine" and last["port"] == port, last)
    check("s3cret" not in json.dumps(p.entries()), "a value in an entry")


main()
