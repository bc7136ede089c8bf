#!/usr/bin/env python3
"""cortex_ci.py - what the GitHub Action and the GitLab template do, in one program over `cortex`.

    cortex_ci.py gate   [--contract PATH] [--base REF] [--head REF] [--fetch] [--comment]
                        [--sarif FILE] [--junit FILE] [--upload-sarif]
    cortex_ci.py verify [--key KEY].. [--seal JSON] [--comment] FILE..
    cortex_ci.py upload FILE                     a SARIF file, to code scanning
    cortex_ci.py install --from WHERE --release-key KEY --version V --prefix FOLDER

Each option is also read from the environment: --upload-sarif from CORTEX_CI_UPLOAD_SARIF. The token of the API is
in CORTEX_CI_TOKEN alone. Exit codes are those of the program: 0 allowed or holds, 1 broken, 2 usage, 3 could not
check, 4 rejected. What the API answers changes none of them.

Who wrote a pull request is who is judged by it. So:

  - the contract and the policies come from the base branch, commits are read as objects and no file is checked out,
    no hook, filter or program of the repository is started;
  - the programs that are started do not get the token, and the token goes to the one API and follows no redirect;
  - keys and seals are values of the job, never files, which the pull request could bring along;
  - text from outside is escaped before it is written into a comment, a summary or the log, and cut;
  - only a comment that this program wrote under its own name is changed.

Needs Python 3.8, and git 2.38.
"""
import argparse
import base64
import gzip
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unicodedata
import urllib.error
import urllib.parse
import urllib.request

HOLDS, BROKEN, USAGE, UNCHECKED, REJECTED = 0, 1, 2, 3, 4

EVENT_BYTES_MAX = 32 << 20      # GitHub sends at most 25 MB
ANSWER_BYTES_MAX = 8 << 20      # of the API
OUTPUT_BYTES_MAX = 64 << 20     # of cortex
SARIF_BYTES_MAX = 10 << 20      # compressed: the limit of code scanning
COMMENT_CHARS_MAX = 60000       # GitHub takes 65536
ROWS_MAX = 50                   # findings that a comment shows
TEXT_CHARS_MAX = 200            # of one text from outside
PAGES_MAX = 30                  # of comments, 100 each
TRIES = 4                       # of a request
WAIT_S_MAX = 60.0               # before one of them
REQUEST_S = 30
PROGRAM_S = 1800
FETCH_S = 900
FILES_MAX = 64

SHA = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}\Z")
BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[^\x00-\x20\x7f~^:?*\[\\]{1,240}\Z")
KEY = re.compile(r"(?:[0-9a-f]{64}|[^\s+/]{1,256}\+[0-9a-f]{8}\+[A-Za-z0-9+/=]{40,2800})\Z")
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}\Z")
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PRIVATE")
ZERO = re.compile(r"0+\Z")


class Unusable(Exception):
    """Wrong options or environment: exit 2."""


class Unchecked(Exception):
    """No answer: exit 3."""


class Refused(Exception):
    """The API said no, and will say it again."""


# --- text from outside -----------------------------------------------------------------------------

def plain(text, limit=TEXT_CHARS_MAX):
    """One line without anything that acts: controls, marks of direction, what shows nothing; and without secrets."""
    out = []
    text = hide(str(text))
    for char in text[:limit]:
        if char != " " and unicodedata.category(char)[0] in "CZ" or unicodedata.category(char) == "Mn":
            out.append("\\u%04x" % ord(char) if ord(char) < 0x10000 else "\\U%08x" % ord(char))
        else:
            out.append(char)
    return "".join(out) + ("…" if len(text) > limit else "")


def marked(text, limit=TEXT_CHARS_MAX):
    """The same for Markdown. All but letters, digits and spaces becomes a character reference, which is no markup,
    no link and no end of a cell; in <code> no @name, #number or address means anything, either."""
    escaped = "".join(c if c.isalnum() or c == " " else "&#%d;" % ord(c) for c in plain(text, limit))
    return f"<code>{escaped}</code>" if escaped.strip() else ""


def say(text):
    """A line of the job's log. The runner acts on lines that begin with '::' and on '##['."""
    print("cortex-ci:", plain(text, 2000).replace("##[", "# #["), flush=True)


def annotate(kind, text):
    """Our own words only."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print(f"::{kind} title=Cortex::" + text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"),
              flush=True)


def token():
    return os.environ.get("CORTEX_CI_TOKEN", "").strip()


def hide(text):
    """Without what the environment names as secret, and without what stands before the host of an address."""
    for name, value in os.environ.items():
        if SECRET.search(name) and len(value.strip()) >= 8:
            text = text.replace(value.strip(), "***")
    return re.sub(r"(://)[^/\s@]+@", r"\1***@", text)


# --- the event -------------------------------------------------------------------------------------

class Event:
    """What is to be judged and where the answer goes. base and head are commits or references; None: not known."""

    def __init__(self):
        self.system = "none"
        self.base = self.head = self.base_branch = self.head_ref = None
        self.api = self.project = self.number = None
        self.fork = False


def need(condition, what):
    if not condition:
        raise Unchecked(what)


def member(value, path):
    """A member of a JSON document, or None."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def sha(value, path):
    found = member(value, path)
    need(isinstance(found, str) and SHA.match(found), f"the event's {path} is not the name of a commit")
    return found


def branch(value, where):
    need(isinstance(value, str) and BRANCH.match(value), f"{where} is not the name of a branch")
    return value


def number_of(value, where):
    need(isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 53, f"{where} is not a number")
    return value


def api_url(value):
    parts = urllib.parse.urlsplit(value)
    local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    if not (parts.scheme == "https" or local) or not parts.hostname or parts.username or parts.query:
        raise Unusable(f"the address of the API must be https://, found '{plain(value)}'")
    return value.rstrip("/")


def read_event_file():
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    need(path, "GITHUB_EVENT_PATH is not set")
    try:
        with open(path, "rb") as file:
            data = file.read(EVENT_BYTES_MAX + 1)
        need(len(data) <= EVENT_BYTES_MAX, "the event is larger than 32 MiB")
        value = json.loads(data)
    except OSError as why:
        raise Unchecked(f"the event cannot be read: {why.strerror}") from None
    except (ValueError, RecursionError):
        raise Unchecked("the event is not JSON") from None
    need(isinstance(value, dict), "the event is not a JSON object")
    return value


def github_event():
    out = Event()
    out.system = "github"
    name = os.environ.get("GITHUB_EVENT_NAME", "")
    out.api = api_url(os.environ.get("GITHUB_API_URL") or "https://api.github.com")
    out.project = os.environ.get("GITHUB_REPOSITORY", "")
    need(REPOSITORY.match(out.project), "GITHUB_REPOSITORY is not owner/name")
    if name in ("pull_request", "pull_request_target"):
        event = read_event_file()
        out.number = number_of(member(event, "pull_request.number"), "the event's pull_request.number")
        out.base, out.head = sha(event, "pull_request.base.sha"), sha(event, "pull_request.head.sha")
        out.base_branch = branch(member(event, "pull_request.base.ref"), "the event's pull_request.base.ref")
        out.head_ref = f"refs/pull/{out.number}/head"
        out.fork = member(event, "pull_request.head.repo.full_name") != out.project
    elif name == "merge_group":
        event = read_event_file()
        out.base, out.head = sha(event, "merge_group.base_sha"), sha(event, "merge_group.head_sha")
        out.head_ref = os.environ.get("GITHUB_REF")
    elif name == "push":
        event = read_event_file()
        out.base, out.head = sha(event, "before"), sha(event, "after")
        need(not ZERO.match(out.head), "the push deletes a branch: there is nothing to check")
        if ZERO.match(out.base):
            out.base = None
            out.base_branch = branch(member(event, "repository.default_branch"), "the event's default branch")
            need(os.environ.get("GITHUB_REF") != "refs/heads/" + out.base_branch,
                 "the first push of the default branch has no base")
        out.head_ref = os.environ.get("GITHUB_REF")
    return out


def gitlab_event():
    out = Event()
    env = os.environ
    out.system = "gitlab"
    out.api = api_url(env.get("CI_API_V4_URL") or "https://gitlab.com/api/v4")
    out.project = env.get("CI_MERGE_REQUEST_PROJECT_ID") or env.get("CI_PROJECT_ID", "")
    need(re.match(r"[0-9]{1,15}\Z", out.project), "CI_PROJECT_ID is not a number")
    iid = env.get("CI_MERGE_REQUEST_IID", "")
    commit = env.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or env.get("CI_COMMIT_SHA", "")
    need(SHA.match(commit), "CI_COMMIT_SHA is not the name of a commit")
    out.head = commit
    if iid:
        need(re.match(r"[0-9]{1,15}\Z", iid), "CI_MERGE_REQUEST_IID is not a number")
        out.number = int(iid)
        # The merge base (CI_MERGE_REQUEST_DIFF_BASE_SHA) is chosen by who makes the branch: the contract is that of
        # the target branch as it is now.
        out.base_branch = branch(env.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"), "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
        out.head_ref = f"refs/merge-requests/{iid}/head"
        out.fork = env.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", out.project) != out.project
    else:
        before = env.get("CI_COMMIT_BEFORE_SHA", "")
        if SHA.match(before) and not ZERO.match(before):
            out.base = before
        else:
            out.base_branch = branch(env.get("CI_DEFAULT_BRANCH"), "CI_DEFAULT_BRANCH")
            need(env.get("CI_COMMIT_BRANCH") != out.base_branch,
                 "this pipeline is of the default branch, and names no commit before it")
    return out


def current_event():
    if os.environ.get("GITHUB_ACTIONS") == "true":
        return github_event()
    if os.environ.get("GITLAB_CI") == "true":
        return gitlab_event()
    return Event()


# --- programs --------------------------------------------------------------------------------------

def child_env():
    """Without tokens, and without what would change which repository or which git is meant."""
    other = re.compile(r"\A(GIT_|ACTIONS_|CORTEX_CI_|CORTEX_HOME)")
    env = {name: value for name, value in os.environ.items() if not SECRET.search(name) and not other.search(name)}
    return {**env, "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}


def start(words, limit_s, cwd=None):
    """(exit code, output, errors), both as text; the output is a file's, so that no size of it stops the program."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=child_env(), cwd=cwd,
                                  timeout=limit_s, check=False).returncode
        except OSError as why:
            raise Unchecked(f"cannot start {words[0]}: {why.strerror}") from None
        except subprocess.TimeoutExpired:
            raise Unchecked(f"{os.path.basename(words[0])} did not end within {limit_s} s") from None
        out.seek(0)
        err.seek(0)
        data, why = out.read(OUTPUT_BYTES_MAX + 1), err.read(1 << 16)
    need(len(data) <= OUTPUT_BYTES_MAX, f"{os.path.basename(words[0])} printed more than 64 MiB")
    return code, data.decode("utf-8", "replace"), why.decode("utf-8", "replace").strip()


def cortex(options, *words):
    return start([options.program, *words], PROGRAM_S)


def git(options, *words, limit_s=60):
    """git, which starts nothing: no hook, no monitor, no clean-up, no other transport, no submodule."""
    safe = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false",
            "fetch.recurseSubmodules=false", "submodule.recurse=false", "protocol.ext.allow=never",
            "core.pager=cat", "core.attributesFile=/dev/null", "fetch.writeCommitGraph=false", "safe.directory=*")
    flags = [word for setting in safe for word in ("-c", setting)]
    return start(["git", *flags, "-C", options.repo, *words], limit_s)


# --- which commits ---------------------------------------------------------------------------------

def has_commit(options, ref):
    return git(options, "cat-file", "-e", "--end-of-options", ref + "^{commit}")[0] == 0


def fetch(options, event):
    """Base and head, with their whole history."""
    wanted = []
    if event.base_branch is not None:
        wanted.append(f"+refs/heads/{event.base_branch}:refs/cortex-ci/base")
    elif event.base is not None:
        wanted.append(event.base)
    if event.head_ref is not None and BRANCH.match(event.head_ref):
        wanted.append(f"+{event.head_ref}:refs/cortex-ci/head")
    elif event.head is not None:
        wanted.append(event.head)
    shallow = git(options, "rev-parse", "--is-shallow-repository")[1].strip() == "true"
    code, _, why = git(options, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance",
                       *(["--unshallow"] if shallow else []), "--end-of-options", "origin", *wanted, limit_s=FETCH_S)
    need(code == 0, "git fetch failed: " + why.replace("\n", " | "))


def find_base(options, event):
    """The tip of the base branch when it is known, else the event's commit: that one may be as old as the pull
    request, and its contract with it."""
    if options.base:
        return options.base
    if event.base_branch is not None:
        places = ["refs/remotes/origin/" + event.base_branch]
        if options.fetch:
            places = ["refs/cortex-ci/base"]
        for place in places:
            if has_commit(options, place):
                return place
    need(event.base is not None,
         "the tip of the base branch is not in this clone; fetch it (--fetch, or a checkout of the whole history)"
         if event.base_branch else "this event names no base: give --base REF")
    return event.base


def find_range(options, event):
    if options.fetch and not (options.base and options.head):
        fetch(options, event)
    base, head = find_base(options, event), options.head or event.head
    need(head, "this event names no commit to check: give --head REF")
    for what, ref in (("base", base), ("head", head)):
        need(has_commit(options, ref),
             f"the {what} {plain(ref)} is not in this clone. Fetch the whole history: actions/checkout with "
             "fetch-depth: 0, GIT_DEPTH: \"0\" on GitLab, or --fetch here")
    need(git(options, "rev-parse", "--is-shallow-repository")[1].strip() == "false",
         "this is a shallow clone: what its missing commits changed cannot be checked. Fetch the whole history: "
         "actions/checkout with fetch-depth: 0, GIT_DEPTH: \"0\" on GitLab, or --fetch here")
    return base, head


def commit_id(options, ref):
    found = git(options, "rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}")[1].strip()
    need(SHA.match(found), f"{plain(ref)} is not one commit")
    return found


def own_repository(options, commit=None):
    """A repository of ours over the objects of the clone: without its configuration, and without its owner, who in
    a container is often another user, for whom git works in no repository."""
    made = os.path.join(options.work, "repository")
    form = git(options, "rev-parse", "--show-object-format")[1].strip() if commit else "sha1"
    code, _, why = start(["git", "init", "-q", "--template=", "--object-format=" + form, made], 60)
    need(code == 0, why or "git init failed")
    if commit is None:
        return made
    _, objects, _ = git(options, "rev-parse", "--git-path", "objects")
    with open(os.path.join(made, ".git", "objects", "info", "alternates"), "w", encoding="utf-8") as file:
        file.write(os.path.abspath(os.path.join(options.repo, objects.rstrip("\n"))) + "\n")
    with open(os.path.join(made, ".git", "HEAD"), "w", encoding="utf-8") as file:
        file.write(commit + "\n")
    return made


def put_file(options, path, text):
    """The checkout can have a link of that name: it is replaced, and a link on the way to it is refused."""
    top, target = os.path.realpath(options.repo), os.path.abspath(path)
    folder = os.path.dirname(target)
    own = os.path.join(os.path.realpath(os.getcwd()), os.path.relpath(folder, os.getcwd()))
    if os.path.normpath(own) != os.path.realpath(folder) and (os.path.normpath(own) + "/").startswith(top + "/"):
        raise Unchecked(f"'{plain(path)}' leads through a link of the work tree")
    try:
        made, temporary = tempfile.mkstemp(prefix=".cortex-ci-", dir=folder)
        with open(made, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        try:
            os.replace(temporary, target)
        except OSError:
            os.unlink(temporary)
            raise
    except OSError as why:
        raise Unchecked(f"'{plain(path)}' cannot be written: {why.strerror}") from None


# --- gate and verify -------------------------------------------------------------------------------

class Result:
    """One answer: title and lines are our own words, rows are texts from outside."""

    def __init__(self, code, title):
        self.code, self.title = code, title
        self.lines, self.columns, self.rows = [], [], []


def read_json(text, what):
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise Unchecked(f"{what} answered something that is not JSON") from None
    need(isinstance(value, dict), f"{what} answered something that is not a JSON object")
    return value


def run_gate(options, event):
    base, head = (commit_id(options, ref) for ref in find_range(options, event))
    words = ["gate", "diff", "--repo", own_repository(options, base), "--baseline", base, "--head", head, "--contract-in",
             options.contract]
    code, text, why = cortex(options, *words, "--format", "json")
    if code not in (HOLDS, REJECTED):
        raise (Unusable if code == USAGE else Unchecked)(why or f"cortex ended with {code}")
    answer = read_json(text, "cortex gate diff")
    need(answer.get("allow") is (code == HOLDS), "cortex gate diff contradicts its exit code")
    for form, path in (("sarif", options.sarif), ("junit", options.junit)):
        if path:
            again, made, why = cortex(options, *words, "--format", form)
            need(again == code, why or f"cortex gave no {form}")
            put_file(options, path, made)
    found = [row for row in answer.get("violations", []) if isinstance(row, dict)]
    result = Result(code, "Cortex gate: allowed" if code == HOLDS else "Cortex gate: rejected")
    changed = answer.get("changed", [])
    result.lines = [f"Head {marked(head[:12])}: {len(changed)} changed "
                    f"path{'s' * (len(changed) != 1)}, judged by the contract {marked(options.contract)} of "
                    f"{marked(base[:12])}."]
    if code == REJECTED:
        result.lines.append("Each finding names its rule; `cortex gate diff` repeats the check in a clone.")
    result.columns = ["rule", "path", "view", "message"]
    result.rows = [[row.get(name) or "" for name in ("rule", "path", "view", "message")] for row in found]
    return result


def check_file(options, name):
    """A regular file inside the work tree, reached without a link."""
    top = pathlib.Path(options.repo).resolve()
    path = pathlib.Path(os.path.abspath(os.path.join(options.repo, name)))
    if path.resolve() != path or top not in path.parents or not path.is_file():
        raise Unchecked(f"'{plain(name)}' is not a regular file inside the work tree, reached without a link")
    return str(path)


def is_bundle(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x28\xb5\x2f\xfd"  # zstd: what `run export` writes


def verify_file(options, name):
    """(code, verdict, why)"""
    path = check_file(options, name)
    if is_bundle(path):
        need(options.seal, f"'{plain(name)}' is the bundle of a run, which only its seal can confirm: give --seal JSON "
             "(`cortex log --actor run:… --json` prints it where the run was recorded)")
        words = ["run", "verify", path, "--repo", options.own_repo, "--json", "--home", os.path.join(options.work, "none"),
                 "--seal", options.seal_file]
    else:
        words = ["verify", path, "--json"]
        for key in options.key:
            words += ["--key", key]
    code, text, why = cortex(options, *words)
    if code not in (HOLDS, BROKEN, UNCHECKED):
        raise (Unusable if code == USAGE else Unchecked)(why or f"cortex ended with {code}")
    try:
        answer = json.loads(text)
        verdict = answer.get("verdict") if isinstance(answer, dict) else None
    except (ValueError, RecursionError):
        verdict = None
    fallback = {HOLDS: "holds", BROKEN: "broken", UNCHECKED: "indeterminate"}[code]
    return code, verdict if isinstance(verdict, str) else fallback, why.split("\n")[0]


def run_verify(options, _):
    if not options.files or len(options.files) > FILES_MAX:
        raise Unusable(f"expected 1 to {FILES_MAX} files to verify")
    for key in options.key:
        if not KEY.match(key):
            raise Unusable("--key: expected 64 hexadecimal digits or a verifier key. A file of the work tree is as "
                           "trustworthy as who wrote it, so none is taken")
    if options.seal:
        options.seal_file = os.path.join(options.work, "seal.json")
        with open(options.seal_file, "w", encoding="utf-8") as file:
            file.write(options.seal)
        options.own_repo = own_repository(options)
    worst, rows = HOLDS, []
    for name in options.files:
        code, verdict, why = verify_file(options, name)
        rows.append([verdict, name, why])
        # Broken is worse than not checked, which is worse than holding.
        worst = max(worst, code, key=[HOLDS, UNCHECKED, BROKEN].index)
    words = {HOLDS: "holds", BROKEN: "broken", UNCHECKED: "indeterminate"}
    result = Result(worst, f"Cortex verify: {words[worst]}")
    result.lines = [f"{len(rows)} file{'s' * (len(rows) != 1)} checked."]
    if worst == UNCHECKED:
        result.lines.append("What no key or seal of yours confirms is indeterminate, however consistent it is.")
    result.columns, result.rows = ["verdict", "file", "why"], rows
    return result


# --- what people read ------------------------------------------------------------------------------

def marker(options):
    return f"<!-- cortex-ci:{options.name} -->"


def as_markdown(options, result):
    """At most COMMENT_CHARS_MAX characters: rows are left out, and counted, before a line is cut."""
    head = [marker(options), f"### {result.title}", "", *result.lines, ""]
    table = ["| " + " | ".join(result.columns) + " |", "|" + " --- |" * len(result.columns)]
    size, shown = sum(map(len, head + table)) + 400, 0
    for row in result.rows[:ROWS_MAX]:
        line = "| " + " | ".join(marked(cell) for cell in row) + " |"
        size += len(line) + 1
        if size > COMMENT_CHARS_MAX:
            break
        table.append(line)
        shown += 1
    out = head + (table if result.rows else [])
    if shown < len(result.rows):
        out += ["", f"{len(result.rows) - shown} more are in the job's log and in the SARIF file."]
    return "\n".join(out) + "\n"


def write_summary(text):
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        try:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as why:
            say(f"the job summary cannot be written: {why.strerror}")


def write_output(result, options):
    path = os.environ.get("GITHUB_OUTPUT")
    verdicts = {HOLDS: "holds", BROKEN: "broken", USAGE: "usage", UNCHECKED: "unchecked", REJECTED: "rejected"}
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"verdict={verdicts[result.code]}\nexit-code={result.code}\n")
            if getattr(options, "sarif", None) and os.path.isfile(options.sarif) and "\n" not in options.sarif:
                file.write(f"sarif={options.sarif}\n")


def print_result(result):
    say(result.title)
    for row in result.rows:
        say("  " + "  ".join(plain(cell) for cell in row if cell))


# --- the API ---------------------------------------------------------------------------------------

class NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for the one API, not for where it points."""

    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


class Busy(Exception):
    """To be tried again, in so many seconds."""

    def __init__(self, why, wait_s=None):
        super().__init__(why)
        self.wait_s = wait_s


def wait_of(headers):
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return None


def is_limited(status, headers):
    return status == 429 or (status == 403 and (headers.get("X-RateLimit-Remaining") == "0" or
                                                headers.get("Retry-After") is not None))


def message_of(data):
    try:
        return plain(json.loads(data).get("message", ""))
    except (ValueError, AttributeError, RecursionError):
        return ""


def request_once(event, method, path, value=None):
    if event.system == "gitlab":
        headers = {"PRIVATE-TOKEN": token()}
    else:
        headers = {"Authorization": "Bearer " + token(), "Accept": "application/vnd.github+json",
                   "X-GitHub-Api-Version": "2022-11-28"}
    body = None if value is None else json.dumps(value).encode()
    asked = urllib.request.Request(event.api + path, data=body, method=method, headers={
        **headers, "User-Agent": "cortex-ci", **({} if body is None else {"Content-Type": "application/json"})})
    what = f"{method} {path.split('?')[0]}"
    try:
        with OPENER.open(asked, timeout=REQUEST_S) as answer:
            data = answer.read(ANSWER_BYTES_MAX + 1)
    except urllib.error.HTTPError as why:
        try:
            data = why.read(1 << 16)
        except (OSError, http.client.HTTPException):
            data = b""
        text = f"{what} answered {why.code} {message_of(data)}".rstrip()
        if why.code >= 500 or is_limited(why.code, why.headers):
            raise Busy(text, wait_of(why.headers)) from None
        raise Refused(text) from None
    except (OSError, ValueError, http.client.HTTPException) as why:  # URLError is an OSError
        raise Busy(f"{what} failed: {type(why).__name__}") from None
    if len(data) > ANSWER_BYTES_MAX:
        raise Refused(f"{what} answered more than 8 MiB")
    try:
        return json.loads(data) if data.strip() else None
    except (ValueError, RecursionError):
        raise Busy(f"{what} answered something that is not JSON") from None


def with_tries(options, action):
    """What is busy is tried again, so often; the last failure is the answer."""
    for attempt in range(TRIES):
        try:
            return action()
        except Busy as why:
            if attempt == TRIES - 1:
                raise Refused(f"{why} ({TRIES} tries)") from None
            wait_s = why.wait_s if why.wait_s is not None else options.retry_wait * 2 ** attempt
            if wait_s > WAIT_S_MAX:
                raise Refused(f"{why}, to be tried again in {wait_s:.0f} s, which is too long for a job") from None
            time.sleep(wait_s)
    raise AssertionError("not reached")


def comments_path(event):
    if event.system == "gitlab":
        return f"/projects/{event.project}/merge_requests/{event.number}/notes"
    return f"/repos/{event.project}/issues/{event.number}/comments"


def is_ours(event, comment, author, mark):
    """Anybody may write a comment that begins like ours."""
    if not isinstance(comment, dict) or not str(comment.get("body", "")).startswith(mark):
        return False
    if event.system == "gitlab":
        return member(comment, "author.id") == author and author is not None
    login = member(comment, "user.login")
    bot = isinstance(login, str) and login.endswith("[bot]")
    return login == author and (not bot or member(comment, "user.type") == "Bot")


def find_comment(options, event, mark):
    author = options.comment_author
    if event.system == "gitlab":
        author = member(request_once(event, "GET", "/user"), "id")
    for page in range(1, PAGES_MAX + 1):
        listed = request_once(event, "GET", f"{comments_path(event)}?per_page=100&page={page}")
        if not isinstance(listed, list):
            raise Refused("the API's list of comments is not a list")
        for comment in listed:
            if is_ours(event, comment, author, mark) and isinstance(comment.get("id"), int):
                return comment
        if len(listed) < 100:
            return None
    return None


def put_comment(options, event, text):
    """Creates the comment, or changes it when it says something else. After a failure it is looked for again, so
    that an answer that was lost does not leave two."""
    old = find_comment(options, event, marker(options))
    if old is None:
        request_once(event, "POST", comments_path(event), {"body": text})
        return "created"
    if str(old["body"]).rstrip() == text.rstrip():
        return "left as it is"
    if event.system == "gitlab":
        request_once(event, "PUT", f"{comments_path(event)}/{old['id']}", {"body": text})
    else:
        request_once(event, "PATCH", f"/repos/{event.project}/issues/comments/{old['id']}", {"body": text})
    return "updated"


def comment(options, event, text):
    if event.number is None:
        say("there is no pull request to comment on")
        return
    if not token():
        say("no comment: CORTEX_CI_TOKEN is not set" + (", as for a pull request from a fork" if event.fork else ""))
        return
    try:
        say("the comment was " + with_tries(options, lambda: put_comment(options, event, text)))
    except Refused as why:
        reason = " The token of a pull request from a fork may only read; that is as it should be." if event.fork \
            else " The job needs permission to write comments (pull-requests: write)."
        say(f"no comment: {why}.{reason} The result is in the job summary and in the log")
        annotate("warning", "The result could not be written as a comment; it is in the job summary.")


def sarif_body(path):
    try:
        with open(path, "rb") as file:
            data = file.read(OUTPUT_BYTES_MAX + 1)
    except OSError as why:
        raise Unchecked(f"'{plain(path)}' cannot be read: {why.strerror}") from None
    need(len(data) <= OUTPUT_BYTES_MAX, "the SARIF file is larger than 64 MiB")
    value = read_json(data.decode("utf-8", "replace"), f"'{plain(path)}'")
    need(value.get("version") == "2.1.0" and isinstance(value.get("runs"), list), "expected a SARIF 2.1.0 file")
    packed = gzip.compress(data, mtime=0)
    need(len(packed) <= SARIF_BYTES_MAX, "the SARIF file is larger than 10 MiB when compressed")
    return base64.b64encode(packed).decode()


def upload(options, event, path):
    """True when code scanning has taken it."""
    packed = sarif_body(path)
    if event.system != "github":
        say("no upload: code scanning is GitHub's; keep the SARIF file as an artefact")
        return False
    if not token():
        say("no upload: CORTEX_CI_TOKEN is not set")
        return False
    ref = f"refs/pull/{event.number}/head" if event.number else os.environ.get("GITHUB_REF", "")
    commit = event.head or os.environ.get("GITHUB_SHA", "")
    need(SHA.match(commit) and ref.startswith("refs/") and BRANCH.match(ref), "there is no commit to upload for")
    value = {"commit_sha": commit, "ref": ref, "sarif": packed, "tool_name": "cortex"}
    try:
        with_tries(options, lambda: request_once(event, "POST", f"/repos/{event.project}/code-scanning/sarifs", value))
        say("code scanning has taken the SARIF file")
        return True
    except Refused as why:
        say(f"no upload: {why}. It needs code scanning, and permission to write to it (security-events: write), "
            "which pull requests from forks do not have")
        annotate("warning", "The SARIF file could not be uploaded.")
        return False


# --- installing ------------------------------------------------------------------------------------

def run_install(options, _):
    """install.sh checks the signature; what it needs for that is not optional here."""
    for name in ("source", "release_key", "version", "prefix"):
        if not getattr(options, name):
            raise Unusable("install: expected --from, --release-key, --version and --prefix")
    if not re.match(r"[0-9]{1,4}(\.[0-9]{1,6}){1,3}\Z", options.version):
        raise Unusable("--version: expected one version, such as 0.3.0")
    if not re.match(r"ssh-ed25519 [A-Za-z0-9+/=]{68}\Z", " ".join(options.release_key.split()[:2])):
        raise Unusable("--release-key: expected 'ssh-ed25519 ...', the key of the project's releases")
    script = pathlib.Path(__file__).resolve().parent.parent.parent / "scripts" / "install.sh"
    code, text, why = start(["sh", str(script), "--from", options.source, "--key",
                             " ".join(options.release_key.split()[:2]), "--version", options.version, "--prefix",
                             os.path.abspath(options.prefix), "--yes"], PROGRAM_S)
    for line in (text + "\n" + why).split("\n"):
        if line.strip():
            say(line)
    if code != 0:
        raise (Unusable if code == USAGE else Unchecked)("nothing was installed")
    return Result(HOLDS, "Cortex install: done")


# --- the program -----------------------------------------------------------------------------------

def is_true(text):
    if str(text).lower() not in ("", "true", "false"):
        raise Unusable(f"expected true or false, found '{plain(text)}'")
    return str(text).lower() == "true"


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Unusable(f"{message}; --help explains")


def parse(words):
    env = os.environ

    def given(name, fallback=""):
        return env.get("CORTEX_CI_" + name) or fallback

    parser = Parser(prog="cortex_ci.py", allow_abbrev=False, description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["gate", "verify", "upload", "install"])
    parser.add_argument("files", nargs="*", metavar="FILE")
    for name, fallback in (("program", "cortex"), ("repo", "."), ("contract", ".cortex/contract.json"), ("base", ""),
                           ("head", ""), ("sarif", ""), ("junit", ""), ("seal", ""), ("name", ""), ("prefix", ""),
                           ("comment-author", "github-actions[bot]"), ("release-key", ""), ("version", "")):
        parser.add_argument("--" + name, default=given(name.upper().replace("-", "_"), fallback))
    parser.add_argument("--from", dest="source", default=given("FROM"))
    parser.add_argument("--key", action="append", default=given("KEY").split())
    parser.add_argument("--unchecked", choices=["fail", "pass"], default=given("UNCHECKED", "fail"))
    parser.add_argument("--retry-wait", type=float, default=2.0)
    for name in ("fetch", "comment", "upload-sarif"):
        parser.add_argument("--" + name, action="store_true", default=is_true(given(name.upper().replace("-", "_"))))
    options = parser.parse_intermixed_args(words)
    options.name = options.name or options.mode
    if not options.files and options.mode in ("verify", "upload"):
        options.files = [line.strip() for line in given("FILES").split("\n") if line.strip()]
    if not NAME.match(options.name):
        raise Unusable("--name: expected lower-case letters, digits and '-', at most 40")
    if options.unchecked not in ("fail", "pass") or not 0 <= options.retry_wait <= WAIT_S_MAX:
        raise Unusable("--unchecked: expected fail or pass; --retry-wait: 0 to 60")
    if options.upload_sarif and options.mode == "gate" and not options.sarif:
        options.sarif = "cortex.sarif"
    return options


def answer(options, event, result):
    print_result(result)
    text = as_markdown(options, result)
    if options.mode != "install":
        write_summary(text)
        if options.comment:
            comment(options, event, text)
        write_output(result, options)


def unchecked(options, event, why):
    """No verdict is told as one, too: an old "allowed" must not stay."""
    result = Result(UNCHECKED, f"Cortex {options.mode}: could not be checked")
    result.columns, result.rows = ["why"], [[why]]
    answer(options, event, result)
    if options.unchecked == "pass":
        annotate("warning", "The check could not be done; the job passes because unchecked is 'pass'.")
        return HOLDS
    annotate("error", "The check could not be done.")
    return UNCHECKED


def run(options):
    event = Event()
    try:
        event = current_event()
        if options.mode == "upload":
            if len(options.files) != 1:
                raise Unusable("expected one SARIF file")
            taken = upload(options, event, check_file(options, options.files[0]))
            return HOLDS if taken or options.unchecked == "pass" else UNCHECKED
        result = {"gate": run_gate, "verify": run_verify, "install": run_install}[options.mode](options, event)
        answer(options, event, result)
        if options.mode == "gate" and options.upload_sarif:
            upload(options, event, options.sarif)
    except Unchecked as why:
        return unchecked(options, event, str(why))
    if result.code == REJECTED:
        annotate("error", f"The gate rejected this change: {len(result.rows)} findings.")
    elif result.code == BROKEN:
        annotate("error", "A file does not hold.")
    elif result.code == UNCHECKED and options.unchecked == "pass":
        annotate("warning", "A file is indeterminate; the job passes because unchecked is 'pass'.")
        return HOLDS
    return result.code


def main(words):
    try:
        options = parse(words)
        with tempfile.TemporaryDirectory(prefix="cortex-ci-") as work:
            options.work = work
            return run(options)
    except Unusable as why:
        say(str(why))
        annotate("error", "The check is not set up correctly; see the log.")
        return USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
