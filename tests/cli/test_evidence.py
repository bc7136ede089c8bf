#!/usr/bin/env python3
"""test_evidence.py - `cortex evidence` and its checking: one file for a recipient who has nothing else."""
import base64
import hashlib
import html.parser
import json
import pathlib
import random
import re

import kit
from kit import BIN, Folder, sibling, check, main, run, test
from run_kit import Repo, clean_env, sandboxed
from story_kit import Story, fact

VERIFY = sibling("cortex-verify")


def verify(path, *args, code=0, program=None):
    argv = [program or VERIFY, *args, path] if program is None else [program, "verify", path, *args]
    done = run(*argv, "--json", env=clean_env())
    check(done.returncode == code, argv, done.returncode, done.stdout[-1500:], done.stderr)
    return json.loads(done.stdout)


def both(path, *args, code=0):
    """The small verifier and the large one say the same, but that the large one reads traces."""
    small, large = verify(path, *args, code=code), verify(path, *args, code=code, program=BIN)
    rest = [text for text in small["limits"] if "canonical form" not in text]
    check({**small, "limits": rest} == large, small, large)
    return small


def make(repo, name, *args, code=0):
    path = repo.base / "out.cxe"
    done = repo.cortex("evidence", name, "-o", path, *args)
    check(done.returncode == code, name, done.returncode, done.stdout, done.stderr)
    return path


def new_key(repo, name="auditor"):
    path = repo.base / (name + ".key")
    done = repo.cortex("key", "new", path, "--name", name, "--json")
    check(done.returncode == 0, done.stderr)
    return path, json.loads(done.stdout)["public_key"]


class Reader(html.parser.HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.names, self.words = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.words.append(data)


def page_of(path):
    reader = Reader(path.read_text())
    check(reader.elements.count("script") == 1, "one inert block")
    allowed = set("html head meta title style body h1 h2 h3 p dl dt dd div pre code table tr th td "
                  "br b details summary script".split())
    check(set(reader.elements) <= allowed, set(reader.elements) - allowed)
    check(reader.names <= {"lang", "data-cortex-evidence", "charset", "http-equiv", "content",
                           "name", "class", "type", "id"}, reader.names)
    return "".join(reader.words)


@sandboxed
def evidence_of_runs_commits_decisions_and_memories_verifies():
    with Folder() as folder:
        story = Story(folder)
        repo = story.repo
        key, public = new_key(repo)
        check(repo.cortex("snapshot", "--actor", "desk").returncode == 0)
        for name, kind in ((story.run, "run"), (story.commit[:12], "commit"),
                           (story.trace, "trace"), (story.kept, "memory")):
            path = make(repo, name, "--sign", key)
            loose = both(path, "--self-consistent")
            check(both(path, code=3)["reason"] == "NotAnchored")
            check(loose["verdict"] == "holds" and loose["about"]["kind"] == kind, loose)
            check(any("is not attested" in text for text in loose["limits"]), loose["limits"])
            found = both(path, "--key", public, "--require", "signed")
            check(found["journals_signed"] == len(found["journals"]) > 0, found)
            text = page_of(path)
            check(story.trace in text or kind in ("run", "commit"), kind)
            check("it stands here" not in text)
        for name in (story.run, story.commit):
            path = make(repo, name, "--sign", key)
            found = both(path, "--key", public)
            check(found["traces"] == 1 and found["bundle_files"] == found["bundle_files_listed"] + 1,
                  found)
            text = page_of(path)
            for word in ("MERGE_APPLIED", "/* more */", "action_rationale", "the limit is 500"):
                check(word in text, word)
        # Whose key signed the decision can be given, too.
        agent = json.loads((repo.base / "trust.json").read_text())["keys"][0]["public_key"]
        raw = base64.urlsafe_b64decode(agent + "=" * (-len(agent) % 4)).hex()
        found = both(make(repo, story.trace, "--sign", key), "--key", public, "--key", raw)
        check(found["traces_signed"] == 1, found)
        _, other = new_key(repo, "other")
        check(both(path, "--key", other, code=3)["reason"] == "NotSigned")
        check(both(make(repo, story.run), "--require", "signed", code=3)["reason"] == "NotSigned")
        check(both(path, "--require", "anchored", code=3)["reason"] == "NotAnchored")
        refusals(story, key)
        tampering(path, public)


def refusals(story, key):
    repo = story.repo
    check(repo.cortex("evidence", story.run + "/3", "-o", repo.base / "x").returncode == 2)
    check(repo.cortex("evidence", "nobody-at-all", "-o", repo.base / "x").returncode == 2)
    base = repo.git("rev-list", "--max-parents=0", "HEAD")
    done = repo.cortex("evidence", base, "-o", repo.base / "x")
    check(done.returncode == 2 and b"no governed run" in done.stderr, done.stderr)
    bundle = repo.root / "runs" / story.run
    patch = bundle / "patch.diff"
    before = patch.read_bytes()
    bundle.chmod(0o755)
    patch.chmod(0o644)
    patch.write_bytes(before.replace(b"more", b"less"))
    done = repo.cortex("evidence", story.run, "-o", repo.base / "x", "--sign", key)
    check(done.returncode == 1 and b"does not match its seal" in done.stderr, done.stderr)
    check(not (repo.base / "x").exists())
    patch.write_bytes(before)


def tampering(path, public):
    """A bit anywhere: in the page, in the block, at either end.  Never `holds`."""
    data = path.read_bytes()
    rnd = random.Random(20261122)
    places = [0, 60, len(data) - 1, data.index(b"<style"), data.index(b"MERGE_APPLIED"),
              data.index(b'id="evidence"'), data.index(b"</script>") - 3]
    places += [rnd.randrange(len(data)) for _ in range(40)]
    target = path.with_suffix(".bad")
    for at in places:
        changed = bytearray(data)
        changed[at] ^= 1 << rnd.randrange(8)
        target.write_bytes(changed)
        done = run(VERIFY, target, "--key", public, env=clean_env())
        check(done.returncode in (1, 3), at, done.returncode, done.stdout)
    for changed in (data[:-1], data + b"\n", data[:len(data) // 2], data.replace(b"holds", b"h0lds")
                    + b" ", data.replace(b"</body>", b"<script>alert(1)</script></body>"),
                    b"<p>hello</p>" + data):
        target.write_bytes(changed)
        done = run(VERIFY, target, "--key", public, env=clean_env())
        check(done.returncode in (1, 3), done.returncode, done.stdout)
    target.write_bytes(data.replace(b"action_rationale", b"action_rationalE", 1))
    check(both(target, code=1)["reason"] == "PageMismatch")


@test
def a_name_that_no_origin_can_hold_is_its_whole_hash():
    """Decision 0014; and no checkpoint is signed under such a name by hand."""
    with Folder() as folder:
        repo = Repo(folder)
        key, public = new_key(repo)
        done = repo.cortex("memory", "write", "Fact", json.dumps(
            {"statement": "a", "subject": "b", "predicate": "is"}), "--actor", "two words")
        check(done.returncode == 0, done.stderr)
        path = make(repo, done.stdout.decode().strip(), "--sign", key)
        check(both(path, "--key", public, "--require", "signed")["verdict"] == "holds")
        whole = "actor-sha256:" + hashlib.sha256(b"two words").hexdigest()
        block = re.search(r'<script type="application/vnd.cortex.evidence[^>]*>([^<]*)<', path.read_text())
        check(whole.encode() in base64.b64decode(block.group(1)), "its origin")
        done = repo.cortex("checkpoint", "--origin", whole)
        check(done.returncode == 2 and b"actor-sha256:" in done.stderr, done)


@test
def hostile_text_is_inert():
    words = ["<script>alert(1)</script>", "</pre><img src=x onerror=alert(2)>", "a\u202edcba\u2066x",
             "\x1b[31mred", "&lt;b&gt;", "\u200bzero", '" onmouseover="x', "]]>--><!--"]
    with Folder() as folder:
        repo = Repo(folder)
        done = repo.cortex("memory", "write", "Fact", json.dumps(
            {"statement": " ".join(words), "subject": "<h1>x</h1>", "predicate": "is"}),
            "--actor", "de<b>sk", "--derived-from", "https://example.invalid/<script>")
        check(done.returncode == 0, done.stderr)
        path = make(repo, done.stdout.decode().strip())
        check(both(path, "--self-consistent")["verdict"] == "holds")
        text = path.read_text()
        shown = text[:text.index('<script type="application/vnd.cortex.evidence"')]
        for bad in ("<script", "<img", "<h1>x", "onerror=alert(2)>", "\u202e", "\u2066", "\u200b",
                    "\x1b", "<!--", "de<b>sk"):
            check(bad not in shown, repr(bad))
        check("&lt;script&gt;alert(1)&lt;/script&gt;" in shown and "<b>U+202E</b>" in shown)
        page_of(path)


@test
def erased_content_is_missing_and_reported():
    with Folder() as folder:
        repo = Repo(folder)
        memory = fact(repo)
        check(repo.cortex("erase", memory, "--reason", "asked for", "--actor", "desk").returncode == 0)
        path = make(repo, memory)
        found = both(path, code=3)
        check(found["verdict"] == "indeterminate" and found["reason"] == "BodyMissing", found)
        check(found["bodies_missing"] >= 1, found)
        check("the limit is 500" not in path.read_text())


@test
def the_evidence_page_has_no_scripts_and_a_strict_policy():
    with Folder() as folder:
        repo = Repo(folder)
        path = make(repo, fact(repo))
        text = path.read_text()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
        check("default-src 'none'" in policy and "script-src" not in policy, policy)
        check("unsafe" not in policy, policy)
        check("A browser checks nothing" in text)
        style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        check(f"'sha256-{digest}'" in policy, policy)
        check(re.search(r"https?:", text[:text.index("<h2>")]) is None)


@test
def files_that_are_not_evidence_are_refused():
    with Folder() as folder:
        head = '<!DOCTYPE html>\n<html lang="en" data-cortex-evidence="1">\n'
        block = '<script type="application/vnd.cortex.evidence" id="evidence">\n'
        end = "</script>\n</body>\n</html>\n"
        for text in (head, head + block + end, head + block + "AAAA\n" + end,
                     head + block + "oA==\n" + end, head + block + "!!\n" + end,
                     head + end, head + block + base64.b64encode(b"\xbf" * 300).decode() + end):
            path = folder / "x.cxe"
            path.write_text(text)
            found = both(path, code=1)
            check(found["reason"] in ("BadEvidence", "NonCanonical", "PageMismatch"), found)
        (folder / "x.html").write_text("<!DOCTYPE html>\n<html></html>\n")
        check(run(VERIFY, folder / "x.html", env=clean_env()).returncode == 3)


class Home(kit.Place):
    """A memory of ann, and a checkpoint of all actors."""

    def __enter__(self):
        super().__enter__()
        self.memory = self.remember("sky")
        self.key, self.public = self.new_key("home")
        return self

    def new_key(self, name):
        path = self.folder / f"{name}.key"
        return path, self.json("key", "new", path, "--name", "log.example/" + name)["public_key"]

    def remember(self, what):
        value = json.dumps({"statement": f"{what} is blue", "subject": what, "predicate": "is"})
        return self.ok("memory", "write", "Fact", value, "--actor", "ann").strip()

    def checkpoint(self):
        self.ok("checkpoint", "--all", "--sign", self.key, "-o", "note")
        return self.folder / "note"

    def evidence(self, homes):
        path = self.folder / "out.cxe"
        made = self.json("evidence", self.memory, "-o", path)
        check(made["homes"] == homes, made)
        return path


@test
def a_signed_home_root_stands_for_the_journals_under_it():
    with Home() as p:
        check(both(p.evidence(0), code=3)["homes"] == 0)
        note = p.checkpoint()
        path = p.evidence(1)
        found = both(path, "--key", p.public)
        check((found["homes"], found["homes_signed"], found["journals_signed"]) == (1, 1, 1), found)
        check(not any("its owner" in text for text in found["limits"]), found["limits"])
        check(both(path, "--checkpoint", note)["journals_anchored"] == 1)
        check(both(path, code=3)["reason"] == "NotAnchored")
        check("log.example/home" in page_of(path))
        check(both(path, "--key", p.new_key("other")[1], code=3)["reason"] == "NotSigned")
        # The journal goes on: what the home root covers is still the beginning of it.
        p.ok("append", "note.more", "x", "--actor", "ann")
        later = p.evidence(1)
        check(both(later, "--key", p.public)["homes_signed"] == 1)
        no_byte_of_it_can_be_changed(p, later)
        # The state of then is not stored.
        p.remember("sea")
        p.evidence(0)


class Watched(Home):
    """A session of an agent: three calls, one denied, one asked and approved."""

    def __enter__(self):
        super().__enter__()
        self.hook("SessionStart", source="startup")
        self.call("git status", "c1")
        self.hook("PostToolUse", tool_name="Bash", tool_use_id="c1", tool_input={"command": "git status"},
                  tool_response="clean")
        self.call("rm -rf '<b>src</b>'", "c2", code=2)
        self.call("make all", "c3")
        return self

    def hook(self, event, code=0, **more):
        body = {"hook_event_name": event, "session_id": "s1", "cwd": str(self.folder), **more}
        done = run(BIN, "hook", "claude", "--home", self.home, "--mode", "enforce", stdin=json.dumps(body).encode(),
                   env=self.env)
        check(done.returncode == code, done.returncode, done.stderr)

    def call(self, command, call_id, code=0):
        self.hook("PreToolUse", code, tool_name="Bash", tool_use_id=call_id, tool_input={"command": command})

    def session(self, *words, name="s1"):
        path = self.folder / "session.cxe"
        return path, self.json("evidence", name, "-o", path, *words)


SESSION = "session:claude-code:s1"
WHOLE = "nothing was left out is not proven"
PART = "not every entry of the session's journal is in the file"


@test
def evidence_of_a_session_has_every_decision():
    with Watched() as p:
        path, made = p.session("--sign", p.key)
        check((made["kind"], made["id"], made["entries"], made["journals"]) == ("session", SESSION, 5, 1), made)
        found = both(path, "--key", p.public)
        check(found["about"] == {"id": SESSION, "kind": "session"} and found["journals_signed"] == 1, found)
        check(not any(WHOLE in text or PART in text for text in found["limits"]), found["limits"])
        check("a call that an agent made without its hook has no entry" in found["limits"], found["limits"])
        words = page_of(path)
        for text in ("rm -rf '<b>src</b>'", "C07", "deny", "git status", "allow L00", "ask C09", "result done"):
            check(text in words, text)
        check(p.session(name=SESSION)[1]["entries"] == 5)
        check(both(path, code=3)["reason"] == "NotAnchored")
        p.expect(2, "evidence", "s1-none", "-o", path)
        p.expect(2, "evidence", "ann", "-o", path)


@test
def a_session_that_lost_entries_says_so():
    with Watched() as p:
        p.ok("erase", "3", "--actor", SESSION, "--reason", "asked")
        path, _ = p.session()
        found = both(path, "--self-consistent", code=3)
        check(found["reason"] == "BodyMissing" and "rm -rf" not in page_of(path), found)
        check(not any(PART in text for text in found["limits"]), "the entry is there, its content is not")


@test
def a_long_session_shows_its_first_and_newest_entries():
    with Watched() as p:
        big = "x" * 60_000
        for i in range(145):
            p.hook("PreToolUse", tool_name="Write", tool_use_id=f"w{i}", tool_input={
                "file_path": str(p.folder / "f"), "content": big})
        path, made = p.session()
        check(100 < made["entries"] < 145, made)
        found = both(path, "--self-consistent")
        check(any(PART in text for text in found["limits"]) and any(WHOLE in text for text in found["limits"]),
              found["limits"])
        words = page_of(path)
        check("SessionStart" in words, "the first entry says what policy held")


@test
def no_other_journal_passes_for_a_session():
    with Watched() as p:
        path, _ = p.session()
        text = path.read_text()
        block = text.index('id="evidence">\n') + 15
        data = data_of(text, block)
        check(data.count(SESSION.encode()) == 2, "as the subject, and as the journal")
        at = data.index(SESSION.encode())
        forged = data[:at] + SESSION.replace("s1", "s2").encode() + data[at + len(SESSION):]
        lines = base64.b64encode(forged).decode()
        lines = "\n".join(lines[i:i + 76] for i in range(0, len(lines), 76))
        end = text.index("</script>", block)
        path.write_text(text[:block] + lines + text[end - 1:])
        check(verify(path, code=1)["verdict"] == "broken")


def data_of(text, block):
    return base64.b64decode(text[block:text.index("</script>", block)].replace("\n", ""))


def no_byte_of_it_can_be_changed(p, path):
    """But the nanoseconds of field 4, a claim that nothing binds."""
    text = path.read_text()
    block = text.index('id="evidence">\n') + 15
    data = data_of(text, block)
    time = data.index(b"\x04\x1b") + 2
    changed = p.folder / "changed"
    changed.mkdir()
    for at in range(block, text.index("</script>", block)):
        if text[at] not in "\n=":
            other = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1:]
            (changed / str(at)).write_text(other)
    done = run(VERIFY, "--json", "--key", p.public, *changed.iterdir(), env=clean_env())
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    check(len(verdicts) > 1000 and done.returncode == 1, len(verdicts))
    for one in verdicts:
        if one["verdict"] != "broken":
            other = data_of((changed / pathlib.Path(one["file"]).name).read_text(), block)
            places = [i for i, byte in enumerate(other) if byte != data[i]]
            check(all(time <= i < time + 8 for i in places), one, places)


main()
