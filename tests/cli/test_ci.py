#!/usr/bin/env python3
"""packaging/ci/cortex_ci.py, the Action and the template over it: recorded events, an API on loopback that answers as
it is told, and a pull request that tries to get out of it.

    test_ci.py [PROGRAM] [WORDS..]     PROGRAM defaults to $CORTEX_BIN
"""
import base64
import gzip
import hashlib
import html
import http.server
import json
import os
import pathlib
import platform
import re
import shutil
import sys
import threading

from kit import BIN, TESTS, Folder, check, clean_env, main, run, sibling, skip, test

ROOT = TESTS.parent
SCRIPT = ROOT / "packaging/ci/cortex_ci.py"
EVENTS = TESTS / "vectors/ci"
CONTRACT = json.loads((TESTS / "vectors/run/golden/success/contract.input.json").read_text())
INSIDE = ".cortex/contract.json"
TOKEN = "ghs_0123456789abcdefTOKENdoNotPrint"
BOT = {"login": "github-actions[bot]", "type": "Bot", "id": 41898282}
HOSTILE = "src/a|b<img src=x>`@octocat` #1 www.evil.example\n::error::forged\n/close ##[error]x \u202e\x1b[31m.c"
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
       "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}


def git(repo, *words):
    done = run("git", "-C", repo, *words, env=clean_env(HOME="/nonexistent", **GIT))
    check(done.returncode == 0, words, done.stderr)
    return done.stdout.decode().strip()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


# --- the API ---------------------------------------------------------------------------------------

class Api:
    """with Api() as api: what is asked is in api.seen; api.comments are those that there are. api.answers is a list
    of (status, headers, value) that are given first, whatever is asked for."""

    def __enter__(self):
        self.seen, self.comments, self.answers, self.forbidden = [], [], [], ()
        self.bodies, self.next_id, self.me = [], 100, dict(BOT)
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                status, headers, value = api.act(self.command, self.path, body, self.headers)
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = answer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def act(self, method, path, body, headers):
        self.seen.append(f"{method} {path}")
        self.bodies.append(body)
        given = headers.get("Authorization") or headers.get("PRIVATE-TOKEN") or ""
        if given not in ("Bearer " + TOKEN, TOKEN):
            return 401, {}, {"message": "Bad credentials"}
        if self.answers:
            status, more, value = self.answers.pop(0)
            if status is not None:
                return status, more, value
        if method in self.forbidden:
            return 403, {}, {"message": "Resource not accessible by integration " + TOKEN}
        if path == "/user":
            return 200, {}, self.me
        if path.endswith("/code-scanning/sarifs"):
            return 202, {}, {"id": "47177e22-5596-11eb-80a1-c1e54ef945c6", "url": "x"}
        if method == "GET":
            page = int(re.search(r"[?&]page=(\d+)", path).group(1))
            return 200, {}, self.comments[100 * (page - 1):100 * page]
        if method == "POST":
            self.next_id += 1
            self.comments.append({"id": self.next_id, "body": body["body"], "user": self.me, "author": self.me})
            return 201, {}, self.comments[-1]
        [found] = [c for c in self.comments if c["id"] == int(path.rsplit("/", 1)[1])]
        found["body"] = body["body"]
        return 200, {}, found


# --- a job -----------------------------------------------------------------------------------------

class Job(Folder):
    """A clone as the checkout step leaves it, with a base branch that has a contract, and a pull request."""

    def __enter__(self):
        self.folder = super().__enter__()
        self.origin = self.folder / "origin"
        write(self.origin / "src/app/main.c", "int main(void) { return 0; }\n")
        write(self.origin / "README.md", "readme\n")
        write(self.origin / INSIDE, json.dumps(CONTRACT))
        git(self.folder, "init", "-q", "-b", "main", "origin")
        git(self.origin, "config", "uploadpack.allowAnySHA1InWant", "true")
        git(self.origin, "add", "-A")
        git(self.origin, "commit", "-q", "-m", "base")
        self.base = git(self.origin, "rev-parse", "HEAD")
        git(self.origin, "checkout", "-q", "-b", "work")
        self.change("src/app/new.c")
        return self

    def change(self, path, text="int x;\n"):
        write(self.origin / path, text)
        git(self.origin, "add", "-A")
        git(self.origin, "commit", "-q", "-m", "change\n\n::error::forged")
        self.head = git(self.origin, "rev-parse", "HEAD")
        git(self.origin, "update-ref", "refs/pull/7/head", self.head)
        git(self.origin, "update-ref", "refs/merge-requests/7/head", self.head)

    def clone(self, *words, ref="work"):
        self.repo = self.folder / "clone"
        if self.repo.exists():
            shutil.rmtree(self.repo)
        git(self.folder, "clone", "-q", "-b", ref, *words, f"file://{self.origin}", "clone")

    def event(self, name):
        text = (EVENTS / name).read_text().replace("BASE_SHA", self.base).replace("HEAD_SHA", self.head)
        return text.replace("BEFORE_SHA", self.base)

    def github(self, api, name="pull_request.json", event=None, **more):
        path = self.folder / "event.json"
        path.write_text(self.event(name))
        self.summary, self.output = self.folder / "summary.md", self.folder / "output.txt"
        for file in (self.summary, self.output):
            file.unlink(missing_ok=True)
        kind = event or {"pull_request_fork.json": "pull_request"}.get(name, name[:-5])
        return {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": kind, "GITHUB_EVENT_PATH": str(path),
                "GITHUB_API_URL": api.url if api else "https://127.0.0.1:1", "GITHUB_REPOSITORY": "acme/shop",
                "GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output),
                "GITHUB_REF": "refs/pull/7/merge", "CORTEX_CI_TOKEN": TOKEN, **more}

    def gitlab(self, api, **more):
        values = json.loads(self.event("gitlab_merge_request.json"))
        return {**values, "CI_API_V4_URL": api.url, "CORTEX_CI_TOKEN": TOKEN, **more}

    def ci(self, env, *words, code=0):
        """The log of the job."""
        own = {name: value for name, value in env.items()}
        base = {name: value for name, value in clean_env(HOME=str(self.folder)).items()
                if not name.startswith(("GITHUB_", "CI_", "GITLAB_"))}
        done = run(sys.executable, SCRIPT, *words, "--program", BIN, "--retry-wait", "0", env={**base, **own},
                   cwd=self.repo)
        log = done.stdout.decode() + done.stderr.decode()
        check(done.returncode == code, words, "exit", done.returncode, "expected", code, log)
        check(TOKEN not in log, "the token is printed", log)
        for line in log.split("\n"):
            check(not line or line.startswith(("cortex-ci: ", "::error title=Cortex::", "::warning title=Cortex::")),
                  "a line that is not ours", line)
            check("##[" not in line and "\x1b" not in line and "\u202e" not in line, repr(line))
        return log


def inert(text):
    """No text from outside is anything but text in <code>: what is left without it is our own."""
    own = re.sub(r"<code>[^<]*</code>", "", text)
    for bad in ("@octocat", "<img", "www.evil", "forged", "/close", "##[", "octocat"):
        check(bad not in own, bad, own)
    check(TOKEN not in text, "the token is in it")
    for cell in re.findall(r"<code>([^<]*)</code>", text):
        check(re.fullmatch(r"(?:&#[0-9]+;|[^\W_]| )+", cell), cell)
    for line in text.split("\n"):
        check(line == "" or line[0] in "|<#1234567890EHW", "begins a line of its own", line)
    program = shutil.which("cmark-gfm")
    if program:
        page = run(program, "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough",
                   stdin=text.encode()).stdout.decode()
        tags = set(re.findall(r"<(/?[a-z0-9]+)", page))
        check(tags <= {"h3", "/h3", "p", "/p", "code", "/code", "table", "/table", "thead", "/thead", "tbody",
                       "/tbody", "tr", "/tr", "th", "/th", "td", "/td"}, tags, page)
    return text


# --- gate ------------------------------------------------------------------------------------------

@test
def a_comment_is_created_then_updated_then_left():
    with Job() as job, Api() as api:
        job.clone()
        env = job.github(api)
        log = job.ci(env, "gate", "--comment")
        check("Cortex gate: allowed" in log and "comment was created" in log, log)
        check(api.seen == ["GET /repos/acme/shop/issues/7/comments?per_page=100&page=1",
                           "POST /repos/acme/shop/issues/7/comments"], api.seen)
        check("allowed" in inert(api.comments[0]["body"]) and job.head[:12] in api.comments[0]["body"], api.comments)
        check(job.summary.read_text() == api.comments[0]["body"], job.summary.read_text())
        check(job.output.read_text() == "verdict=holds\nexit-code=0\n", job.output.read_text())
        job.ci(env, "gate", "--comment")
        check(len(api.comments) == 1 and api.seen[-1].startswith("GET"), api.seen)
        job.change("README.md", "changed\n")
        job.clone()
        env = job.github(api)
        log = job.ci(env, "gate", "--comment", code=4)
        check("comment was updated" in log and "D07" in log, log)
        check(api.seen[-1] == "PATCH /repos/acme/shop/issues/comments/101", api.seen)
        check(len(api.comments) == 1 and "rejected" in api.comments[0]["body"], api.comments)
        check(job.output.read_text().startswith("verdict=rejected\nexit-code=4\n"), job.output.read_text())


@test
def comments_of_others_are_not_taken_for_ours():
    with Job() as job, Api() as api:
        job.clone()
        mark = "<!-- cortex-ci:gate -->\n### Cortex gate: allowed"
        others = [{"login": "mallory", "type": "User"}, {"login": "github-actions[bot]", "type": "User"},
                  {"login": "evil[bot]", "type": "Bot"}, None]
        api.comments = [{"id": n, "body": mark, "user": user} for n, user in enumerate(others)]
        api.comments += [{"id": 9, "body": "see " + mark, "user": BOT}, {"id": "10", "body": mark, "user": BOT},
                         "no comment", {"id": 11, "body": None, "user": BOT}]
        api.comments += [{"id": 20 + n, "body": "many", "user": BOT} for n in range(100)]
        before = json.dumps(api.comments)
        job.ci(job.github(api), "gate", "--comment")
        check(json.dumps(api.comments[:-1]) == before, "a comment of another was changed")
        check(sum("GET" in line for line in api.seen) == 2 and api.comments[-1]["id"] == 101, api.seen)
        # Of several checks each has its own.
        job.ci(job.github(api), "gate", "--comment", "--name", "other")
        check(api.comments[-1]["body"].startswith("<!-- cortex-ci:other -->"), api.comments[-1])


@test
def a_fork_without_a_token_to_write_gets_its_result_in_the_summary():
    with Job() as job, Api() as api:
        job.change("README.md", "changed\n")
        job.clone()
        api.forbidden = ("POST",)
        log = job.ci(job.github(api, "pull_request_fork.json"), "gate", "--comment", "--upload-sarif", code=4)
        check("answered 403 Resource not accessible" in log and "from a fork may only read" in log, log)
        check("no upload" in log and "security-events: write" in log, log)
        check(sum(line.startswith("POST") for line in api.seen) == 2, "403 was tried again", api.seen)
        check("README" in inert(job.summary.read_text()), job.summary.read_text())
        env = job.github(api, "pull_request_fork.json", CORTEX_CI_TOKEN="")
        check("CORTEX_CI_TOKEN is not set" in job.ci(env, "gate", "--comment", code=4))
        # The repository of a fork can be gone.
        event = json.loads(job.event("pull_request_fork.json"))
        event["pull_request"]["head"]["repo"] = None
        env = job.github(api, "pull_request_fork.json")
        (job.folder / "event.json").write_text(json.dumps(event))
        job.ci(env, "gate", code=4)


@test
def a_busy_api_is_tried_again_but_not_for_ever():
    with Job() as job, Api() as api:
        job.clone()
        env = job.github(api)
        api.answers = [(502, {}, b"<html>bad gateway</html>"), (429, {"Retry-After": "0"}, {}),
                       (403, {"X-RateLimit-Remaining": "0"}, {"message": "rate limit"})]
        check("comment was created" in job.ci(env, "gate", "--comment"), api.seen)
        check(len(api.seen) == 5 and len(api.comments) == 1, api.seen)
        api.seen.clear()
        api.answers = [(503, {}, b"")] * 50
        log = job.ci(env, "gate", "--comment")
        check("503" in log and "(4 tries)" in log and len(api.seen) == 4, log, api.seen)
        api.seen.clear()
        api.answers = [(429, {"Retry-After": "86400"}, {})] * 2
        check("too long for a job" in job.ci(env, "gate", "--comment") and len(api.seen) == 1, api.seen)
        # An answer that was lost does not leave two comments.
        api.answers, api.comments = [], []
        real = api.act

        def lose(method, *rest):
            answer = real(method, *rest)
            return (500, {}, b"") if method == "POST" and len(api.comments) == 1 else answer

        api.act = lose
        job.ci(env, "gate", "--comment")
        check(len(api.comments) == 1, api.comments)
        # What is no list, no JSON, or a way to another place.
        api.act = real
        for status, headers, value in ((200, {}, {"a": 1}), (302, {"Location": "http://127.0.0.1:1/"}, {}),
                                       (200, {}, b"[" * 100000), (401, {}, {"message": TOKEN})):
            api.answers = [(status, headers, value)] * 4
            check("no comment: " in job.ci(env, "gate", "--comment"), status)
        api.answers = []
        job.ci({**env, "GITHUB_API_URL": "http://127.0.0.1:1"}, "gate", "--comment")
        for url in ("http://example.com", "file:///etc/passwd", "https://u@x/", "ftp://x"):
            check("must be https" in job.ci({**env, "GITHUB_API_URL": url}, "gate", code=2), url)


@test
def hostile_names_are_text_in_log_comment_and_summary():
    with Job() as job, Api() as api:
        (job.origin / "src").mkdir(exist_ok=True)
        for part in (HOSTILE, "evil\u2028[x](javascript:alert(1)).md", "$(touch started);`x`.md", "-n", "Ａ\u0301.md"):
            write(job.origin / part, "x\n")
        job.change("README.md", "changed\n")
        job.clone()
        log = job.ci(job.github(api), "gate", "--comment", code=4)
        body = inert(api.comments[0]["body"])
        shown = html.unescape(body)
        check("\\u001b[31m" in shown and "\\u202e" in shown and "\\u000a::error::forged" in shown, shown)
        check("# #[error]" in log, log)
        check(job.summary.read_text() == body)
        check("::error title=Cortex::The gate rejected this change" in log, log)


@test
def a_comment_has_a_limit():
    with Job() as job, Api() as api:
        for number in range(300):
            write(job.origin / f"{'~' * 190}{number:04d}.md", f"{number}\n")
        job.change("README.md", "changed\n")
        job.clone()
        job.ci(job.github(api), "gate", "--comment", code=4)
        body = inert(api.comments[0]["body"])
        check(len(body) < 65536 and re.search(r"^\d+ more are in the job's log", body, re.M), len(body), body[-300:])


@test
def the_contract_is_of_the_base_and_nothing_of_the_request_is_started():
    with Job() as job, Api() as api:
        mark = job.folder / "started"
        program = f"#!/bin/sh\necho run >>{mark}\n"
        wide = {**CONTRACT, "allowed_paths": ["src/", "README.md", ".cortex/", ".github/"]}
        write(job.origin / "sitecustomize.py", f"open({str(mark)!r}, 'w')\n")
        write(job.origin / "json.py", f"open({str(mark)!r}, 'w')\n")
        write(job.origin / "git", program)
        write(job.origin / ".gitattributes", "* filter=x diff=x\n")
        for name in ("git", "sitecustomize.py"):
            (job.origin / name).chmod(0o755)
        job.change(INSIDE, json.dumps(wide))
        job.clone()
        for name in ("diff.x.textconv", "diff.x.command", "diff.external", "filter.x.smudge", "core.fsmonitor",
                     "core.pager"):
            git(job.repo, "config", name, f"echo run >>{mark}")
        for name in ("post-checkout", "reference-transaction", "pre-auto-gc", "post-merge"):
            write(job.repo / ".git/hooks" / name, program)
            (job.repo / ".git/hooks" / name).chmod(0o755)
        log = job.ci(job.github(api), "gate", "--fetch", "--sarif", "out.sarif", "--junit", "out.xml", code=4)
        check("D06" in log and INSIDE in log, log)
        check(not mark.exists(), "something of the pull request was started")
        # An old event names an old base, whose contract may have been wider: the branch's tip decides.
        git(job.origin, "checkout", "-q", "-f", "main")
        write(job.origin / INSIDE, json.dumps({**CONTRACT, "allowed_paths": ["docs/"]}))
        git(job.origin, "commit", "-q", "-a", "-m", "narrower")
        git(job.origin, "checkout", "-q", "-B", "work", job.base)
        job.change("src/app/more.c")
        job.clone()
        check("D07" in job.ci(job.github(api), "gate", code=4))
        git(job.origin, "branch", "-q", "-D", "main")


@test
def a_clone_of_another_user_is_judged():
    if os.geteuid() != 0:
        skip("only root can give a folder away")
    with Job() as job, Api() as api:
        job.clone()
        for path in [job.repo, *job.repo.rglob("*")]:
            os.chown(path, 12345, 12345, follow_symlinks=False)
        env = job.github(api)
        refused = run("git", "-C", job.repo, "status", env=clean_env(HOME=str(job.folder)))
        check(b"dubious ownership" in refused.stderr, refused.stderr)
        check("allowed" in job.ci(env, "gate"))
        job.ci(env, "gate", "--fetch")


@test
def links_of_the_checkout_are_not_written_through():
    with Job() as job, Api() as api:
        outside = job.folder / "outside"
        write(outside / "file", "mine\n")
        (job.origin / "cortex.sarif").symlink_to(outside / "file")
        (job.origin / "cortex.xml").symlink_to(outside / "absent")
        (job.origin / "out").symlink_to(outside)
        job.change("src/app/more.c")
        job.clone()
        job.ci(job.github(api), "gate", "--sarif", "cortex.sarif", "--junit", "cortex.xml", code=4)
        check((outside / "file").read_text() == "mine\n" and not (outside / "absent").exists())
        check(not (job.repo / "cortex.sarif").is_symlink() and (job.repo / "cortex.xml").is_file())
        log = job.ci(job.github(api), "gate", "--sarif", "out/file", code=3)
        check("leads through a link" in log and (outside / "file").read_text() == "mine\n", log)
        check(sorted(p.name for p in outside.iterdir()) == ["file"], list(outside.iterdir()))
        check("cannot be written" in job.ci(job.github(api), "gate", "--sarif", "src", code=3))
        check("cannot be written" in job.ci(job.github(api), "gate", "--sarif", "no/where.sarif", code=3))
        job.ci(job.github(api), "gate", "--sarif", job.folder / "elsewhere.sarif", code=4)
        check((job.folder / "elsewhere.sarif").is_file())
        check([p.name for p in job.repo.iterdir() if p.name.startswith(".cortex-ci-")] == [])


@test
def events_say_what_is_compared():
    with Job() as job, Api() as api:
        job.clone()
        git(job.repo, "branch", "-q", "-r", "-d", "origin/HEAD")
        job.ci(job.github(api, "push.json"), "gate", "--comment")
        check(api.seen == [], "a push has no comments", api.seen)
        job.ci(job.github(api, "merge_group.json"), "gate")
        job.ci(job.github(api, event="pull_request_target"), "gate")
        check("give --head" in job.ci(job.github(api, event="schedule"), "gate", "--base", job.base, code=3))
        check("give --base" in job.ci(job.github(api, event="schedule"), "gate", "--head", job.head, code=3))
        job.ci(job.github(api, event="schedule"), "gate", "--base", job.base, "--head", job.head)
        job.ci({}, "gate", "--base", "origin/main", "--head", "HEAD")
        env = job.github(api, "push.json")
        event = json.loads(job.event("push.json"))
        (job.folder / "event.json").write_text(json.dumps({**event, "before": "0" * 40}))
        job.ci({**env, "GITHUB_REF": "refs/heads/work"}, "gate")
        check("has no base" in job.ci({**env, "GITHUB_REF": "refs/heads/main"}, "gate", code=3))
        (job.folder / "event.json").write_text(json.dumps({**event, "after": "0" * 40}))
        check("deletes a branch" in job.ci(env, "gate", code=3))
        # Members that are not what they should be.
        env = job.github(api)
        event = json.loads(job.event("pull_request.json"))
        for change in ({"number": "7"}, {"number": True}, {"number": -1}, {"number": 2 ** 60}, {"base": None},
                       {"base": {**event["pull_request"]["base"], "sha": "--upload-pack=touch x"}},
                       {"base": {**event["pull_request"]["base"], "ref": "--upload-pack=touch x"}},
                       {"base": {**event["pull_request"]["base"], "ref": "main:refs/heads/x"}},
                       {"head": {"sha": "HEAD"}}, {"head": [1]}):
            bad = {**event, "pull_request": {**event["pull_request"], **change}}
            (job.folder / "event.json").write_text(json.dumps(bad))
            check("is not" in job.ci(env, "gate", code=3), change)
        for text in (b"", b"[]", b"{", b"\xff", b"[" * 200000):
            (job.folder / "event.json").write_bytes(text)
            job.ci(env, "gate", code=3)
        (job.folder / "event.json").unlink()
        job.ci(env, "gate", code=3)
        job.ci({**env, "GITHUB_REPOSITORY": "acme/shop/../x"}, "gate", code=3)


@test
def what_is_missing_in_a_shallow_clone_is_named_and_can_be_fetched():
    with Job() as job, Api() as api:
        job.change("src/app/two.c")
        job.clone("--depth", "1")
        env = job.github(api)
        log = job.ci(env, "gate", "--comment", code=3)
        check("is not in this clone" in log and "fetch-depth: 0" in log, log)
        check("could not be checked" in inert(api.comments[0]["body"]), api.comments)
        check("verdict=unchecked" in job.output.read_text())
        check("passes because" in job.ci(env, "gate", "--unchecked", "pass"))
        job.clone("--depth", "1", "--no-single-branch")
        check("shallow clone" in job.ci(env, "gate", code=3))
        check("allowed" in job.ci(env, "gate", "--fetch", "--comment"))
        check("allowed" in api.comments[0]["body"] and len(api.comments) == 1, api.comments)
        # pull_request_target checks out the base.
        job.clone("--single-branch", ref="main")
        env = job.github(api, event="pull_request_target")
        check("the head" in job.ci(env, "gate", code=3))
        job.ci(env, "gate", "--fetch")
        git(job.repo, "remote", "set-url", "origin", f"file://{job.folder}/absent")
        check("git fetch failed" in job.ci(env, "gate", "--fetch", code=3))
        git(job.repo, "remote", "set-url", "origin", "http://ci:passphrase@127.0.0.1:1/x%" + TOKEN)
        log = job.ci({**env, "CI_JOB_TOKEN": "passphrase"}, "gate", "--fetch", "--comment", code=3)
        check("git fetch failed" in log and "passphrase" not in log, log)
        check("passphrase" not in api.comments[-1]["body"] and TOKEN not in html.unescape(api.comments[-1]["body"]))
        # A base without a contract.
        log = job.ci(env, "gate", "--base", "HEAD", "--head", job.head, "--contract", "no/contract.json", code=3)
        check("has no contract at no/contract.json" in log, log)


@test
def gitlab_has_notes():
    with Job() as job, Api() as api:
        api.me = {"id": 5, "username": "project_42_bot"}
        api.comments = [{"id": 1, "body": "<!-- cortex-ci:gate -->", "author": {"id": 6, "username": "project_42_bot"}}]
        job.change("README.md", "changed\n")
        job.clone("--depth", "1")
        env = job.gitlab(api)
        log = job.ci(env, "gate", "--fetch", "--comment", "--sarif", "cortex.sarif", "--junit", "cortex.xml",
                     "--upload-sarif", code=4)
        check("comment was created" in log and "code scanning is GitHub's" in log, log)
        check(api.seen == ["GET /user", "GET /projects/42/merge_requests/7/notes?per_page=100&page=1",
                           "POST /projects/42/merge_requests/7/notes"], api.seen)
        check(json.loads((job.repo / "cortex.sarif").read_text())["version"] == "2.1.0")
        check("<testsuites" in (job.repo / "cortex.xml").read_text())
        inert(api.comments[1]["body"])
        job.change("README.md", "readme\n")
        check("comment was updated" in job.ci(job.gitlab(api), "gate", "--fetch", "--comment", code=4), api.seen)
        check(api.seen[-1] == "PUT /projects/42/merge_requests/7/notes/101" and len(api.comments) == 2, api.seen)
        # The target branch's tip is the base, not the merge base that the variables name.
        for more in ({"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "--x"}, {"CI_PROJECT_ID": "x", "CI_MERGE_REQUEST_PROJECT_ID": ""},
                     {"CI_COMMIT_SHA": "HEAD"}, {"CI_MERGE_REQUEST_IID": "7/../8"},
                     {"CI_MERGE_REQUEST_IID": "", "CI_COMMIT_BRANCH": "main"}):
            job.ci(job.gitlab(api, **more), "gate", code=3)
        job.ci(job.gitlab(api, CI_MERGE_REQUEST_IID="", CI_COMMIT_BEFORE_SHA=job.base), "gate", code=4)


@test
def sarif_is_uploaded_packed():
    with Job() as job, Api() as api:
        job.change("README.md", "changed\n")
        job.clone()
        env = job.github(api)
        log = job.ci(env, "gate", "--upload-sarif", code=4)
        check("code scanning has taken" in log, log)
        check(api.seen == ["POST /repos/acme/shop/code-scanning/sarifs"], api.seen)
        body = api.bodies[0]
        check(body["commit_sha"] == job.head and body["ref"] == "refs/pull/7/head", body)
        sent = json.loads(gzip.decompress(base64.b64decode(body["sarif"])))
        check({r["ruleId"] for r in sent["runs"][0]["results"]} == {"D07"}, sent)
        write(job.repo / "audit.sarif", json.dumps({"version": "2.1.0", "runs": []}))
        job.ci(env, "upload", "audit.sarif")
        check(len(api.seen) == 2, api.seen)
        api.forbidden = ("POST",)
        job.ci(env, "upload", "audit.sarif", code=3)
        for text in ("{", "[]", '{"version": "2.0.0", "runs": []}', '{"version": "2.1.0"}'):
            write(job.repo / "bad.sarif", text)
            job.ci(env, "upload", "bad.sarif", code=3)
        (job.repo / "link.sarif").symlink_to(job.folder / "event.json")
        for name in ("link.sarif", "../event.json", "/etc/passwd", "absent.sarif", ".git"):
            check("not a regular file inside" in job.ci(env, "upload", name, code=3), name)
        job.ci(env, "upload", code=2)


# --- verify ----------------------------------------------------------------------------------------

@test
def evidence_is_verified_by_keys_of_the_job():
    key = (TESTS / "vectors/evidence/key.txt").read_text().strip()
    with Job() as job, Api() as api:
        job.clone()
        shutil.copy(TESTS / "vectors/evidence/commit.cxe", job.repo / "good.cxe")
        data = bytearray((job.repo / "good.cxe").read_bytes())
        data[len(data) // 2] ^= 1
        (job.repo / "bad.cxe").write_bytes(data)
        env = job.github(api)
        check("holds" in job.ci(env, "verify", "--comment", "--key", key, "good.cxe"))
        check("holds" in inert(api.comments[0]["body"]), api.comments)
        job.ci({**env, "CORTEX_CI_KEY": key, "CORTEX_CI_FILES": "good.cxe\n"}, "verify")
        check("indeterminate" in job.ci(env, "verify", "good.cxe", code=3))
        log = job.ci(env, "verify", "--comment", "--key", key, "good.cxe", "bad.cxe", code=1)
        check("broken" in log and "broken" in inert(api.comments[0]["body"]) and len(api.comments) == 1, log)
        write(job.repo / "key.txt", key)
        check("none is taken" in job.ci(env, "verify", "--key", "key.txt", "good.cxe", code=2))
        job.ci(env, "verify", code=2)
        (job.repo / "link.cxe").symlink_to(job.folder / "event.json")
        for name in ("link.cxe", "../event.json", "absent\x1b[31m.cxe", "--home"):
            job.ci(env, "verify", "--key", key, "--", name, code=3)


@test
def a_bundle_is_verified_by_the_seal_of_the_job():
    golden = TESTS / "vectors/run/golden/success"
    name = json.loads((golden / "bundle/manifest.json").read_text())["run_id"]
    seal = (golden / "seal.json").read_text()
    with Job() as job, Api() as api:
        job.clone()
        shutil.copytree(golden / "bundle", job.folder / name)
        done = run(BIN, "run", "export", job.folder / name, "--output", job.repo / "run.cxr", cwd=job.repo)
        check(done.returncode == 0, done.stderr)
        env = job.github(api)
        check("only its seal can confirm" in job.ci(env, "verify", "run.cxr", code=3))
        check("holds" in job.ci(env, "verify", "--seal", seal, "run.cxr"))
        other = json.dumps({**json.loads(seal), "chain_head": "0" * 64})
        job.ci(env, "verify", "--seal", other, "run.cxr", code=1)
        job.ci(env, "verify", "--seal", "{", "run.cxr", code=3)


# --- the Action and the template -------------------------------------------------------------------

def signed_release(folder):
    """(folder, key): a release as scripts/release.sh makes it, of the program that is tested."""
    if shutil.which("ssh-keygen") is None:
        skip("ssh-keygen is not here")
    made, key = folder / "release", folder / "key"
    made.mkdir()
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
    sums = ""
    for program, source in (("cortex", BIN), ("cortex-verify", sibling("cortex-verify"))):
        name = f"{program}-9.8.7-linux-{platform.machine()}"
        if not os.path.exists(source):
            skip("there is no cortex-verify")
        shutil.copy(source, made / name)
        sums += f"{hashlib.sha256((made / name).read_bytes()).hexdigest()}  {name}\n"
    (made / "SHA256SUMS").write_text(sums)
    done = run("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "cortex-release", made / "SHA256SUMS")
    check(done.returncode == 0, done.stderr)
    return made, key.with_suffix(".pub").read_text().strip()


@test
def only_a_signed_release_of_one_version_is_installed():
    with Job() as job:
        job.clone()
        made, key = signed_release(job.folder)
        where = job.folder / "prefix"
        words = ("install", "--from", made, "--prefix", where, "--version", "9.8.7", "--release-key", key)
        log = job.ci({}, *words)
        check("signature and both hashes are right" in log and (where / "bin/cortex").is_file(), log)
        for name in ("--from", "--version", "--release-key", "--prefix"):
            at = words.index(name)
            job.ci({}, *words[:at], *words[at + 2:], code=2)
        job.ci({}, *words, "--version", "latest", code=2)
        job.ci({}, *words, "--release-key", "key", code=2)
        shutil.rmtree(where)
        check("no cortex-9.8.8" in job.ci({}, *words, "--version", "9.8.8", code=3))
        with open(made / "SHA256SUMS", "a", encoding="utf-8") as file:
            file.write("\n")
        check("not that of the release key" in job.ci({}, *words, code=3))
        check(not (where / "bin").exists(), "something was installed")


def load_yaml(path):
    try:
        import yaml
    except ImportError:
        skip("there is no python3-yaml")
    return yaml.safe_load((ROOT / path).read_text())


@test
def the_action_hands_its_inputs_over_and_runs():
    action = load_yaml("packaging/github/action.yml")
    inputs, (install, step) = action["inputs"], action["runs"]["steps"]
    check(action["runs"]["using"] == "composite")
    passed = {}
    for part in (install, step):
        check(part["shell"] == "sh" and "${{" not in part["run"], "an expression in a command", part)
        for name, value in part["env"].items():
            found = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value)
            check(found and found.group(1) in inputs, name, value)
            passed[found.group(1)] = name
    check(set(passed) == set(inputs), set(inputs) ^ set(passed))
    for name in inputs:
        check("default" in inputs[name] and inputs[name]["description"], name)
    with Job() as job, Api() as api:
        job.change("README.md", "changed\n")
        job.clone()
        for program in (BIN, ""):
            runner = job.folder / "runner"
            env = {**clean_env(HOME=str(job.folder)), **job.github(api), "RUNNER_TEMP": str(runner),
                   "GITHUB_ACTION_PATH": str(ROOT / "packaging/github")}
            given = {name: value["default"] for name, value in inputs.items()}
            given.update({"program": program, "comment": "true", "token": TOKEN, "sarif": "a.sarif"})
            steps = [step]
            if not program:
                made, key = signed_release(job.folder)
                given.update({"release": str(made), "release-key": key, "version": "9.8.7"})
                steps = [install, step]
            for part, code in zip(steps, (0, 4)[-len(steps):]):
                more = {n: given[v[len("${{ inputs."):-len(" }}")]] for n, v in part["env"].items()}
                done = run("sh", "-e", "-c", part["run"], env={**env, **more}, cwd=job.repo)
                check(done.returncode == code, done.stdout.decode(), done.stderr.decode())
            check(job.output.read_text() == "verdict=rejected\nexit-code=4\nsarif=a.sarif\n", job.output.read_text())
        check(len(api.comments) == 1, api.comments)


@test
def the_gitlab_template_runs():
    template = load_yaml("packaging/gitlab/cortex.gitlab-ci.yml")
    base, gate = template[".cortex"], template["cortex-gate"]
    with Job() as job, Api() as api:
        job.change("README.md", "changed\n")
        job.clone("--depth", "1")
        tools = job.folder / "source"
        for name in ("packaging/ci/cortex_ci.py", "scripts/install.sh"):
            (tools / name).parent.mkdir(parents=True)
            shutil.copy(ROOT / name, tools / name)
        git(job.folder, "init", "-q", "-b", "main", "source")
        git(tools, "config", "uploadpack.allowAnySHA1InWant", "true")
        git(tools, "add", "-A")
        git(tools, "commit", "-q", "-m", "tools")
        env = {**clean_env(HOME=str(job.folder)), **job.gitlab(api), "CORTEX_SOURCE": f"file://{tools}",
               "CORTEX_COMMIT": git(tools, "rev-parse", "HEAD"), "CORTEX_TOOLS": str(job.folder / "tools"),
               "CORTEX_PROGRAM": BIN}
        lines = "\n".join(base["before_script"] + gate["script"])
        done = run("sh", "-e", "-c", lines, env=env, cwd=job.repo)
        check(done.returncode == 4, done.stdout.decode(), done.stderr.decode())
        check("rejected" in api.comments[0]["body"] and (job.repo / "cortex.xml").is_file(), api.comments)
        for name in gate["artifacts"]["paths"] + [gate["artifacts"]["reports"]["junit"]]:
            check((job.repo / name).is_file(), name)
        for commit in ("main", "", "HEAD", "v1"):
            done = run("sh", "-e", "-c", lines, env={**env, "CORTEX_COMMIT": commit}, cwd=job.repo)
            check(done.returncode == 2, commit, done.returncode)


# --- pre-commit ------------------------------------------------------------------------------------

@test
def the_hooks_of_pre_commit_run():
    program = shutil.which("pre-commit")
    if program is None:
        skip("pre-commit is not installed")
    with Folder() as folder:
        (folder / "bin").mkdir()
        (folder / "bin/cortex").symlink_to(BIN)
        env = clean_env(HOME=str(folder), PRE_COMMIT_HOME=str(folder / "cache"), **GIT)
        env["PATH"] = f"{folder}/bin:{env['PATH']}"
        hooks, repo = folder / "hooks", folder / "repo"
        hooks.mkdir()
        shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
        done = run(program, "validate-manifest", hooks / ".pre-commit-hooks.yaml", env=env)
        check(done.returncode == 0, done.stdout, done.stderr)
        git(folder, "init", "-q", "-b", "main", "hooks")
        git(hooks, "add", "-A")
        git(hooks, "commit", "-q", "-m", "hooks")
        write(repo / "src/app/main.c", "int main(void) { return 0; }\n")
        write(repo / "README.md", "readme\n")
        write(repo / INSIDE, json.dumps(CONTRACT))
        write(repo / ".pre-commit-config.yaml", f"repos:\n- repo: file://{hooks}\n  rev: "
              f"{git(hooks, 'rev-parse', 'HEAD')}\n  hooks: [{{id: cortex-gate}}, {{id: cortex-contract-lint}}]\n")
        git(folder, "init", "-q", "-b", "main", "repo")
        git(repo, "add", "-A")
        git(repo, "commit", "-q", "-m", "base")
        done = run(program, "install", env=env, cwd=repo)
        check(done.returncode == 0, done.stdout, done.stderr)

        def commit(*words, code=0, skipped=""):
            done = run("git", "commit", "-m", "x", *words, env={**env, "SKIP": skipped}, cwd=repo)
            check((done.returncode != 0) == (code != 0), words, done.stdout, done.stderr)
            return (done.stdout + done.stderr).decode()

        write(repo / "src/app/new.c", "int x;\n")
        git(repo, "add", "-A")
        commit()
        write(repo / "README.md", "changed\n")
        git(repo, "add", "-A")
        check("D07 README.md" in commit(code=1))
        # The index of this commit, not the one that has README.md in it; and the other way round.
        write(repo / "src/app/new.c", "int xy;\n")
        commit("src/app/new.c")
        git(repo, "reset", "-q")
        check("D07 README.md" in commit("README.md", code=1))
        check("D07 README.md" in commit("-a", code=1))
        # A contract that is wrong, in a commit that people make knowingly.
        git(repo, "checkout", "-q", "README.md")
        write(repo / INSIDE, json.dumps({**CONTRACT, "allowed_paths": ["*"]}))
        check("D06" in commit("-a", code=1))
        check("K02" in commit("-a", code=1, skipped="cortex-gate"))
        write(repo / INSIDE, json.dumps({**CONTRACT, "allowed_paths": ["src/app/", "README.md"]}))
        commit("-a", skipped="cortex-gate")


main()
