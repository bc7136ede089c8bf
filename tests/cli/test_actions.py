#!/usr/bin/env python3
"""Proofs that a run or an archived session never called, read, wrote or asked something.

Closes with `N passed, N failed, N skipped`.
"""
import json
import pathlib

import kit
from agent_records import agent, claude, codex
from kit import Folder, check, main, sibling, test
from run_kit import GOOD_OPS, contract, exec_repo, reply, sandboxed, script

VERIFY = sibling("cortex-verify")
ACTOR = "sessions"


def use(number, name, **arguments):
    return {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}


def line(number, *blocks, **more):
    return json.dumps({"type": "assistant", "uuid": f"u{number}", "sessionId": "s1",
                       "parentUuid": f"u{number - 1}" if number else None, "cwd": "/home/u/repo",
                       "timestamp": f"2026-11-01T10:00:{number:02}.000Z", **more,
                       "message": {"role": "assistant", "content": list(blocks)}}) + "\n"


SESSION = [line(0, use(0, "Read", file_path="/home/u/repo/src/A.c")),
           line(1, use(1, "Edit", file_path="lib/b.c", old_string="https://in.text/", new_string="")),
           line(2, use(2, "WebFetch", url="https://me@Docs.Example.com:443/x", prompt="?"),
                use(3, "Write", file_path="/tmp/out.txt", content="x"))]
SHELL = line(3, use(4, "Bash", command="curl http://api.test/v1 && cat .env"))


class Place(kit.Place):
    def __enter__(self):
        super().__enter__()
        self.sessions = self.folder / "projects"
        self.sessions.mkdir()
        self.proof = self.folder / "never.proof"
        return self

    def archive(self, *lines, name="abc"):
        path = self.sessions / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.writelines(lines)
        self.ok("watch", "--once", self.sessions)

    def never(self, name, *args, subject="@session/abc", code=0):
        self.proof.unlink(missing_ok=True)
        done = self.json("prove", "--never", name, "--in", subject, "-o", self.proof, *args,
                         code=code)
        check(self.proof.exists() == (code == 0), name, done)
        return done

    def verify(self, *args, code=0, file=None):
        done = self.run("--json", *args, file or self.proof, program=VERIFY)
        check(done.returncode == code, args, done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def checkpoint(self, name="log.example/sessions", actor=ACTOR, out="note"):
        key = self.folder / f"{name.replace('/', '-')}.key"
        vkey = None if key.exists() else self.ok("key", "new", key, "--name", name)
        self.ok("checkpoint", "--actor", actor, "--sign", key, "-o", out)
        return self.folder / out, vkey


@test
def a_session_proves_what_it_never_did():
    with Place() as p:
        p.archive(*SESSION)
        note, key = p.checkpoint()
        for name in ("tool:bash", "host:example.com", "host:in.text", "file:.env", "write:a.c",
                     "read:out.txt", "file:/etc/passwd", "file:c", "file:src"):
            made = p.never(name, "--checkpoint", note)
            check((made["calls"], made["opaque"], made["unread"]) == (4, 0, 0), made)
            done = p.verify("--key", key, "--never", name, "--in", "session:" + made["subject"][8:])
            check(done["verdict"] == "holds" and done["anchors"] == ["checkpoint"], done)
            check(done["never"]["name"] == name and done["never"]["upto"] == 1, done)
        check(p.json("verify", p.proof, "--key", key)["never"]["actor"] == ACTOR)
        p.ok("verify", "--home", p.home)


@test
def what_it_did_is_an_answer_and_no_proof():
    with Place() as p:
        p.archive(*SESSION)
        for name, item, places in (
                ("tool:READ", "tool:read", ["1"]), ("file:a.C", "read:/home/u/repo/src/a.c", ["1"]),
                ("file:/home/u/repo/src/a.c", "read:/home/u/repo/src/a.c", ["1"]),
                ("write:lib/b.c", "write:/home/u/repo/lib/b.c", ["2"]),
                ("file:repo//lib/../lib/b.c", "read:/home/u/repo/lib/b.c", ["2"]),
                ("host:docs.example.com.", "host:docs.example.com", ["3"])):
            done = p.never(name, code=1)
            check(done["result"] == "recorded", done)
            check(done["found"][0] == {"count": 1, "name": item, "places": places}, done)
        p.expect(1, "prove", "--never", "tool:write", "--in", "session:abc", "-o", p.proof,
                 out="not so: session/")


@test
def calls_that_name_less_than_they_do_are_counted():
    with Place() as p:
        p.archive(*SESSION, SHELL)
        check(p.never("host:api.test", code=1)["found"][0]["places"] == ["4"])
        made = p.never("file:.env")
        check(made["opaque"] == 1, made)
        done = p.verify("--self-consistent")
        check(any("shell" in limit for limit in done["limits"]), done["limits"])
        p.never("tool:grep")
        check(not any("shell" in limit for limit in p.verify("--self-consistent")["limits"]))
        # A path of an unknown folder.
        p.archive(line(0, use(0, "Read", file_path="x/y"), cwd=""), name="other")
        made = p.never("file:/x/y", subject="@session/other")
        done = p.verify("--self-consistent")
        check(done["never"]["relative"] == 1, done)
        check(any("unknown folder" in limit for limit in done["limits"]), done["limits"])
        check(p.never("file:x/y", subject="@session/other", code=1)["found"])


@test
def what_could_not_be_read_leaves_it_open():
    with Place() as p:
        p.archive(*SESSION, "{broken\n")
        check(p.never("tool:bash")["unread"] == 1)
        done = p.verify("--self-consistent", code=3)
        check(done["reason"] == "CallsUnread", done)


@test
def a_session_that_goes_on_gets_a_newer_set():
    with Place() as p:
        p.archive(*SESSION)
        first, key = p.checkpoint(out="first")
        p.never("tool:bash", "--checkpoint", first)
        old = p.proof.rename(p.folder / "old.proof")
        p.archive(SHELL)
        p.never("tool:bash", code=1)
        done = p.verify("--key", key, file=old)
        check(done["never"]["upto"] == 1, "it says up to where it counts")
        entries = p.ok("log", "--actor", ACTOR).count("action.set")
        p.ok("watch", "--once", p.sessions)
        p.never("tool:grep", "--fresh")
        check(p.ok("log", "--actor", ACTOR).count("action.set") == entries, "nothing has changed")
        done = p.run("prove", "--never", "tool:grep", "--in", "session:abc", "-o", p.proof,
                     "--checkpoint", first)
        check(done.returncode == 1 and b"NotCovered" in done.stderr, done.stderr)


@test
def the_calls_of_subagents_are_the_sessions():
    with Place() as p:
        p.archive(*SESSION)
        p.never("tool:bash")
        p.archive(SHELL, name="abc/agent-1")
        check(p.never("tool:bash", code=1)["found"][0]["places"] == ["agent-1:1"])


@test
def an_erased_list_leaves_a_root_and_nothing_to_prove():
    with Place() as p:
        p.archive(*SESSION)
        p.ok("erase", "1", "--actor", ACTOR, "--reason", "test")
        p.expect(1, "prove", "--never", "tool:bash", "--in", "session:abc", "-o", p.proof,
                 err="ListErased")
        p.ok("verify", "--home", p.home)
        p.never("tool:bash", "--fresh")


@test
def wrong_questions_are_refused():
    with Place() as p:
        p.archive(*SESSION)
        for args, error in (
                (["--never", "bash", "--in", "session:abc"], "tool:NAME"),
                (["--never", "tool:bash"], "--in run:ID"),
                (["--in", "session:abc"], "--never NAME"),
                (["--never", "tool:bash", "--in", "abc"], "run:ID or @session/ID"),
                (["--never", "tool:bash", "--in", "session:nope"], "watch --list"),
                (["--never", "tool:bash", "--in", "run:nope"], "NoActionSet"),
                (["--never", "tool:bash", "--in", "run:nope", "--fresh"], "work tree of a git repository"),
                (["--never", "host:http://x/", "--in", "session:abc"], "without scheme"),
                (["--never", "tool:bash", "--in", "session:abc", "--actor", "x"], "--actor"),
                (["--never", "tool:bash", "--in", "session:abc", "--absent"], "--absent"),
                (["--never", "tool:bash", "--in", "session:abc", "x"], "expected no URI")):
            p.expect(2, "prove", *args, "-o", p.proof, err=error)
        note, _ = p.checkpoint("log.example/other")
        p.expect(1, "prove", "--never", "tool:bash", "--in", "session:abc", "-o", p.proof,
                 "--checkpoint", note, err="ActorMismatch")
        done = p.run("--never", "bash", p.proof, program=VERIFY)
        check(done.returncode == 2 and b"tool:NAME" in done.stderr, done.stderr)
        done = p.run("--in", "x", p.proof, program=VERIFY)
        check(done.returncode == 2 and b"run:ID" in done.stderr, done.stderr)


@test
def no_changed_byte_of_a_file_is_a_proof():
    with Place() as p:
        p.archive(*SESSION)
        note, key = p.checkpoint()
        p.never("tool:bash", "--checkpoint", note)
        whole = bytearray(p.proof.read_bytes())
        names = []
        for i in range(len(whole)):
            path = p.folder / f"changed-{i}"
            whole[i] ^= 0x41
            path.write_bytes(whole)
            whole[i] ^= 0x41
            names.append(path)
        done = p.run("--json", "--key", key, "--never", "tool:bash", *names, program=VERIFY)
        verdicts = [json.loads(text)["verdict"] for text in done.stdout.splitlines()]
        check(len(verdicts) == len(names) and "holds" not in verdicts,
              verdicts.index("holds") if "holds" in verdicts else len(verdicts))


# --- runs -----------------------------------------------------------------------------------------


def prove(repo, answer, name, code, *more):
    path = repo.base / "never.proof"
    path.unlink(missing_ok=True)
    done = repo.cortex("prove", "--never", name, "--in", "run:" + answer["run_id"], "-o", path,
                       "--json", *more)
    check(done.returncode == code and path.exists() == (code == 0), name, done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[-1]), path


def check_file(path, code, *more):
    done = kit.run(VERIFY, "--json", "--self-consistent", *more, path)
    check(done.returncode == code, done.stdout, done.stderr)
    return json.loads(done.stdout)


@sandboxed
def a_run_proves_what_it_never_did():
    with Folder() as folder:
        repo, _ = exec_repo(folder, agent(codex(reply())))
        done, answer = repo.run(contract())
        check(done.returncode == 0, answer, done.stderr)
        made, path = prove(repo, answer, "host:example.com", 0)
        check(made["actor"] == repo.actor() and made["calls"] == 3, made)
        check(made["opaque"] == 2 and made["unread"] == 0, made)
        shown = check_file(path, 0, "--in", "run:" + answer["run_id"], "--never", "host:example.com")
        check(shown["never"]["subject"] == "run/" + answer["run_id"], shown)
        prove(repo, answer, "file:src/app/other.c", 0)
        found, _ = prove(repo, answer, "tool:shell", 1)
        check(len(found["found"]) == 1 and found["found"][0]["count"] == 1, found)
        found, _ = prove(repo, answer, "write:main.c", 1)
        places = found["found"][0]["places"]
        check("diff_name_only.txt" in places and places[0].isdigit(), found)
        check(repo.verify(answer).returncode == 0)
        # It is recorded with the seal, and --fresh finds it unchanged.
        again, _ = prove(repo, answer, "host:example.com", 0, "--fresh")
        check(again["seq"] == made["seq"], again)
        # A bundle that was changed gives no set.
        bundle = pathlib.Path(answer["bundle"])
        bundle.chmod(0o755)
        (bundle / "events.jsonl").chmod(0o644)
        with open(bundle / "events.jsonl", "a", encoding="utf-8") as file:
            file.write("{}\n")
        done = repo.cortex("prove", "--never", "tool:x", "--in", "run:" + answer["run_id"], "--fresh",
                           "-o", repo.base / "x")
        check(done.returncode == 1 and b"BundleInvalid" in done.stderr, done.stderr)


@sandboxed
def an_agent_whose_calls_are_not_seen_proves_nothing():
    with Folder() as folder:
        repo, _ = exec_repo(folder, agent(claude(reply())))
        done, answer = repo.run(contract())
        check(done.returncode == 0, answer, done.stderr)
        made, path = prove(repo, answer, "tool:grep", 0)
        check(made["unread"] == 1, made, "a record of an unknown type")
        check(check_file(path, 3)["reason"] == "CallsUnread")
        found, _ = prove(repo, answer, "read:src/app/main.c", 1)
        check(found["found"], "also of arguments that were cut")
    with Folder() as folder:
        repo, _ = exec_repo(folder, agent([json.dumps(reply())]))
        done, answer = repo.run(contract())
        check(done.returncode == 0, answer, done.stderr)
        made, path = prove(repo, answer, "tool:bash", 0)
        check(made["unread"] == 1 and made["calls"] == 0, made)
        check_file(path, 3)


@sandboxed
def the_set_of_a_script_is_what_it_says():
    with Folder() as folder:
        repo, _ = exec_repo(folder, "")
        calls = [{"tool": "fetch", "input": '{"url":"https://docs.test/a"}'}]
        done, answer = repo.run(contract(), script((GOOD_OPS, reply(), calls)))
        check(done.returncode == 0, answer, done.stderr)
        prove(repo, answer, "host:docs.test", 1)
        made, path = prove(repo, answer, "tool:bash", 0)
        check(made["calls"] == 1 and made["unread"] == 0, made)
        check_file(path, 0)


if __name__ == "__main__":
    main()
