#!/usr/bin/env python3
"""test_object_store.py - bundles of runs in an object store (decision 0060): what is put there, what is believed of its
answers, and what a hostile, slow or broken store does to a reader and to an erasure.

    test_object_store.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Stores are on loopback: s3rver of npm where it is there, and one in this process that checks signatures and answers what a
test tells it to.  CORTEX_TEST_S3="ENDPOINT ACCESS SECRET BUCKET" names another one in place of s3rver.
"""
import contextlib
import json
import os
import pathlib
import shutil
import threading

import kit
from kit import check, main, test
import object_kit
from object_kit import Answers, credentials, cut, endless, hang
import run_kit
from run_kit import GOOD_OPS, Repo, contract, reply, script

SECRET = "hunter2hunter2"


class Made:
    """A repository with a sealed run and a data directory, of which each test has a copy."""

    def __enter__(self):
        run_kit.need_sandbox()
        self.folder = kit.make_folder("cortex-objects-")
        value = contract()
        done, answer = Repo(self.folder).run(value, script((GOOD_OPS, reply(value["task_id"]))))
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        self.run_id = answer["run_id"]
        return self

    def __exit__(self, *_):
        kit.remove(self.folder)


def clone_in(base, home):
    repo = Repo.__new__(Repo)
    repo.base, repo.path, repo.home = pathlib.Path(base), pathlib.Path(base) / "repo", home
    return repo


class Setting:
    """A clone with a sealed run, a data directory, and a second clone without the bundle."""

    def __init__(self, made):
        self.made, self.run_id = made, made.run_id

    def __enter__(self):
        self.folder = pathlib.Path(kit.make_folder("cortex-objects-"))
        shutil.copytree(self.made.folder, self.folder / "one", symlinks=True)
        shutil.copytree(pathlib.Path(self.made.folder) / "repo", self.folder / "two" / "repo", symlinks=True,
                        ignore=lambda _, names: [name for name in names if name == ".runtime-cache"])
        self.first = clone_in(self.folder / "one", self.folder / "one" / "home")
        self.second = clone_in(self.folder / "two", self.first.home)
        return self

    def __exit__(self, *_):
        kit.remove(self.folder)

    def env(self, endpoint, **more):
        values = {"CORTEX_BUNDLES_STORE": "s3", "CORTEX_BUNDLES_ENDPOINT": endpoint, "CORTEX_BUNDLES_BUCKET": "bundles",
                  "CORTEX_BUNDLES_STORE_TIMEOUT": "20", **credentials(), **more}
        return {name: value for name, value in values.items() if value is not None}

    def store(self, endpoint, code=0, **more):
        done = self.first.cortex("run", "store", self.run_id, "--json", env=self.env(endpoint, **more))
        check(done.returncode == code, done)
        return done, json.loads(done.stdout) if code == 0 else None

    def verdict(self, endpoint, code, **more):
        done = self.second.cortex("run", "verify", self.run_id, "--json", env=self.env(endpoint, **more))
        check(done.returncode == code, done)
        return json.loads(done.stdout)

    def erase(self, endpoint, code=0, **more):
        done = self.second.cortex("erase", "--run", self.run_id, "--reason", "asked for", "--json",
                                  env=self.env(endpoint, **more))
        check(done.returncode == code, done)
        return done, json.loads(done.stdout) if code == 0 else None

    def kinds(self):
        done = self.first.cortex("log", "--actor", self.first.actor(), "--json", "--last", "1000")
        return [json.loads(line).get("kind") for line in done.stdout.decode().splitlines()]


@contextlib.contextmanager
def real_store():
    """(endpoint, credentials, the names of files of its objects or None)"""
    named = os.environ.get("CORTEX_TEST_S3")
    if named:
        endpoint, access, secret, bucket = named.split()
        yield endpoint, {**credentials(access, secret), "CORTEX_BUNDLES_BUCKET": bucket}, None
        return
    why = object_kit.why_not()
    if why:
        kit.skip(why)
    with object_kit.Server() as server:
        yield server.endpoint, credentials(), server.files


@test
def a_bundle_goes_to_a_real_store_and_back_and_is_erased(made):
    with Setting(made) as s, real_store() as (endpoint, keys, files):
        _, said = s.store(endpoint, **keys)
        check(not said["was_there"] and said["parts"] == 0 and said["object"]["endpoint"] == endpoint, said)
        check(said["object"]["name"] == "sha256/" + said["object"]["sha256"], said)
        check(s.kinds().count("run.bundle_object") == 1 and "run.bundle" not in s.kinds(), s.kinds())
        if files:
            data = files()[0].read_bytes()
            check(len(files()) == 1 and run_kit.sha256(data) == said["object"]["sha256"], files())
            check(len(data) == said["object"]["size_bytes"] and data[:4] != b"\x28\xb5\x2f\xfd", "it is not sealed")
        check(s.store(endpoint, **keys)[1]["was_there"])
        local = s.first.cortex("run", "verify", s.run_id, "--json")
        check(s.verdict(endpoint, 0, **keys) == json.loads(local.stdout))
        out = pathlib.Path(s.folder) / "run.tar.zst"
        done = s.second.cortex("run", "export", s.run_id, "-o", out, env=s.env(endpoint, **keys))
        check(done.returncode == 0 and run_kit.sha256(out.read_bytes()) == said["sha256"], done)
        shown = s.second.cortex("run", "events", s.run_id, "--json", env=s.env(endpoint, **keys))
        check(shown.returncode == 0 and b"RUN_FINISHED" in shown.stdout, shown)
        if files is None:  # s3rver does not look at signatures of this version
            wrong = s.verdict(endpoint, 3, **{**keys, "CORTEX_S3_SECRET_ACCESS_KEY": SECRET})
            check(wrong["codes"] == ["stored_unreachable"] and "403" in wrong["details"][0]["message"], wrong)
        _, erased = s.erase(endpoint, **keys)
        check((erased["parts"], erased["held"], erased["objects_removed"]) == (1, 0, 1), erased)
        if files is None:
            print("  old versions are kept:", erased["versions_kept"])
        check(not files or files() == [], "the object is still there")
        check(s.verdict(endpoint, 3, **keys)["codes"] == ["stored_erased"])
        check(s.erase(endpoint, **keys)[1]["objects_removed"] == 1, "again")
        check(s.first.cortex("run", "verify", s.run_id).returncode == 0, "the copy of its machine")


@test
def an_object_that_is_there_is_read_back_before_it_is_believed(made):
    with Setting(made) as s, Answers() as store:
        _, said = s.store(store.endpoint)
        name = "/bundles/" + said["object"]["name"]
        check(list(store.objects) == [name] and store.bad == [], store.objects.keys(), store.bad)
        methods = [method for method, path in store.asked if path == name]
        check(methods == ["PUT", "GET"], methods)
        # Someone else's bytes under that name: the store refuses to replace them, and they are not believed.
        whole = store.objects[name]
        for other in (whole[:-1], whole + b"x", whole[:-1] + bytes([whole[-1] ^ 1]), b"", b"x" * len(whole)):
            store.objects[name] = other
            verdict = s.verdict(store.endpoint, 1)
            check(verdict["verdict"] == "broken" and verdict["codes"] == ["stored_changed"], verdict)
        store.objects.clear()
        verdict = s.verdict(store.endpoint, 3)
        check(verdict["verdict"] == "indeterminate" and verdict["codes"] == ["stored_missing"], verdict)


@test
def a_store_that_was_interrupted_is_continued_with_the_same_object(made):
    """What is put, and not recorded, is found again: the key is in the journal before, and gives the same bytes."""
    state = {"breaks": True}

    def rule(handler, method, path, objects, body):
        if method == "GET" and state["breaks"]:
            handler.close_connection = True  # it is there, and cannot be seen to be
            return True
        return False

    with Setting(made) as s, Answers(rule) as store:
        done, _ = s.store(store.endpoint, 3)
        check(b"did not answer" in done.stderr, done.stderr)
        check("run.bundle_object" not in s.kinds() and s.kinds().count("run.bundle_part") == 1, s.kinds())
        check(s.verdict(store.endpoint, 3)["codes"] == ["stored_missing"], "nothing was recorded")
        first = list(store.objects)
        state["breaks"] = False
        _, said = s.store(store.endpoint)
        check(list(store.objects) == first == ["/bundles/" + said["object"]["name"]], store.objects.keys())
        check(s.kinds().count("run.bundle_part") == 1, s.kinds())
        # The second PUT was answered 412, and what is there was read.
        check(s.verdict(store.endpoint, 0)["verdict"] == "holds")


def refused(s, store, word, **more):
    done, _ = s.store(store.endpoint, 3, **more)
    check(word.encode() in done.stderr, word, done.stderr)
    check("run.bundle_object" not in s.kinds(), s.kinds())


@test
def a_put_that_is_not_known_to_be_done_is_not_recorded(made):
    ends = threading.Event()
    state = {"way": None, "count": 0}

    def rule(handler, method, path, objects, body):
        if method != "PUT":
            return False
        state["count"] += 1
        way = state["way"]
        if way == "lies":  # 200, and nothing was kept
            handler.answer(200)
        elif way == "others":  # 412: other bytes have the name
            objects[path] = b"other"
            handler.error(412, "PreconditionFailed")
        elif way in ("same size", "same size, 200"):
            objects[path] = body[:-1] + bytes([body[-1] ^ 1])
            handler.answer(200 if "200" in way else 412)
        elif way == "empty 412":
            handler.error(412, "PreconditionFailed")
        elif way == "redirect":
            handler.answer(307, b"", Location=f"http://127.0.0.1:1{path}")
        elif way == "denied":
            handler.error(403, "AccessDenied")
        elif way == "busy":
            handler.error(503, "SlowDown")
        elif way == "hang":
            hang(handler, ends)
        elif way == "loud":  # an error that goes on and on, with what is no code in it
            handler.answer(400, b"<Error><Code>\x1b[31mEvil</Code>" + b"x" * (1 << 20))
        else:
            return False
        return True

    with Setting(made) as s, Answers(rule) as store:
        for way, word in (("lies", "does not have the object"), ("others", "other bytes"), ("same size", "other bytes"),
                          ("same size, 200", "other bytes"), ("empty 412", "412"),
                          ("redirect", "redirects are not followed"), ("denied", "403 AccessDenied"), ("busy", "503 SlowDown"),
                          ("loud", "400"), ("hang", "did not answer")):
            store.objects.clear()
            state.update(way=way, count=0)
            refused(s, store, word, **({"CORTEX_BUNDLES_STORE_TIMEOUT": "1"} if way == "hang" else {}))
            check(state["count"] == (4 if way in ("busy", "empty 412", "hang") else 1), way, state)
        ends.set()
        store.objects.clear()
        state["way"] = None
        s.store(store.endpoint)
        check(s.verdict(store.endpoint, 0)["verdict"] == "holds")


@test
def what_is_there_after_a_lost_answer_is_not_sent_again(made):
    state = {"way": "lost", "puts": 0}

    def rule(handler, method, path, objects, body):
        if method != "PUT":
            return False
        state["puts"] += 1
        if state["way"] == "lost":
            objects[path] = body
            handler.close_connection = True
        elif state["way"] == "once" and state["puts"] == 1:
            handler.error(500, "InternalError")
        elif state["way"] == "no conditions" and handler.headers.get("If-None-Match"):
            handler.error(501, "NotImplemented")
        elif state["way"] == "ignores":  # If-None-Match: the same bytes in place of the same bytes
            objects[path] = body
            handler.answer(200)
        else:
            return False
        return True

    for way, puts in (("lost", 1), ("once", 2), ("no conditions", 2), ("ignores", 1)):
        with Setting(made) as s, Answers(rule) as store:
            state.update(way=way, puts=0)
            s.store(store.endpoint)
            check(state["puts"] == puts, way, state)
            check(s.verdict(store.endpoint, 0)["verdict"] == "holds")


@test
def a_hostile_answer_to_a_reader_is_bounded_and_is_no_verdict(made):
    ends = threading.Event()
    state = {"way": None, "taken": 0, "count": 0}

    def rule(handler, method, path, objects, body):
        if method != "GET" or state["way"] is None:
            return False
        state["count"] += 1
        way = state["way"]
        if way == "cut":
            cut(handler, method, path, objects)
        elif way == "endless":
            state["taken"] = endless(handler)
        elif way == "busy":
            handler.error(503, "SlowDown")
        elif way == "redirect":
            handler.answer(301, b"", Location=f"http://127.0.0.1:1{path}")
        elif way == "hang":
            hang(handler, ends)
        elif way == "headers":  # for ever
            handler.send_response(200)
            for i in range(3000):
                handler.send_header(f"x-amz-meta-{i}", "x" * 60)
            handler.end_headers()
            handler.close_connection = True
        elif way == "no bucket":
            handler.error(404, "NoSuchBucket")
        elif way == "partial":
            handler.answer(206, next(iter(objects.values())))
        return True

    with Setting(made) as s, Answers(rule) as store:
        _, said = s.store(store.endpoint)
        for way, code, codes, word in (
                ("cut", 3, "stored_unreachable", "did not answer"), ("endless", 1, "stored_changed", "other bytes"),
                ("busy", 3, "stored_unreachable", "503"), ("redirect", 3, "stored_unreachable", "redirects"),
                ("hang", 3, "stored_unreachable", "did not answer"), ("headers", 3, "stored_unreachable", "did not answer"),
                ("no bucket", 3, "stored_unreachable", "NoSuchBucket"), ("partial", 3, "stored_unreachable", "206")):
            state.update(way=way, count=0)
            more = {"CORTEX_BUNDLES_STORE_TIMEOUT": "1"} if way == "hang" else {}
            verdict = s.verdict(store.endpoint, code, **more)
            check(verdict["codes"] == [codes] and word in verdict["details"][0]["message"], way, verdict)
            check(state["count"] == (4 if way in ("cut", "busy", "hang", "headers") else 1), way, state)
            out = pathlib.Path(s.folder) / "no.tar.zst"
            done = s.second.cortex("run", "export", s.run_id, "-o", out, env=s.env(store.endpoint, **more))
            check(done.returncode == 3 and not out.exists(), way, done)
        ends.set()
        check(said["object"]["size_bytes"] < state["taken"] < 16 << 20, "bytes were read beyond the object", state["taken"])
        state["way"] = None
        check(s.verdict(store.endpoint, 0)["verdict"] == "holds")


@test
def what_is_missing_to_reach_the_store_is_said(made):
    with Setting(made) as s, Answers() as store:
        s.store(store.endpoint)
        asked = len(store.asked)
        for more, word in (({"CORTEX_S3_SECRET_ACCESS_KEY": None}, "CORTEX_S3_ACCESS_KEY_ID"),
                           ({"CORTEX_S3_ACCESS_KEY_ID": None}, "needs credentials"),
                           ({"CORTEX_S3_SECRET_ACCESS_KEY": SECRET + "\r\nx-amz-acl:public-read"}, "another form"),
                           ({"CORTEX_BUNDLES_ENDPOINT": None, "CORTEX_BUNDLES_BUCKET": None, "CORTEX_BUNDLES_STORE": None},
                            "set [bundles]")):
            verdict = s.verdict(store.endpoint, 3, **more)
            check(verdict["codes"] == ["stored_unreachable"] and verdict["reason"] == "unreachable", verdict)
            message = verdict["details"][0]["message"]
            check(word in message and SECRET not in message, message)
        check(len(store.asked) == asked, "it was asked without credentials")
        verdict = s.verdict(store.endpoint, 3, CORTEX_S3_SECRET_ACCESS_KEY=SECRET)
        check(verdict["codes"] == ["stored_unreachable"] and "403 SignatureDoesNotMatch" in str(verdict), verdict)
        verdict = s.verdict("http://127.0.0.1:1", 3)
        check(verdict["codes"] == ["stored_unreachable"] and "127.0.0.1:1" in verdict["details"][0]["message"], verdict)
        # The variables of AWS tools do, too; a pair is never mixed.
        aws = {"CORTEX_S3_ACCESS_KEY_ID": None, "CORTEX_S3_SECRET_ACCESS_KEY": None, "AWS_ACCESS_KEY_ID": object_kit.ACCESS,
               "AWS_SECRET_ACCESS_KEY": object_kit.SECRET, "AWS_SESSION_TOKEN": "a+token/of=="}
        store.token = "a+token/of=="
        check(s.verdict(store.endpoint, 0, **aws)["verdict"] == "holds")
        check(s.verdict(store.endpoint, 3, **{**aws, "CORTEX_S3_ACCESS_KEY_ID": "other"})["codes"] == ["stored_unreachable"])


@test
def a_store_is_reached_over_tls_and_its_certificate_is_checked(made):
    if shutil.which("openssl") is None:
        kit.skip("no openssl")
    with Setting(made) as s:
        cert, key = s.folder / "cert.pem", s.folder / "key.pem"
        kit.expect(kit.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                           "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                           cert), 0)
        with Answers(tls=(cert, key)) as store:
            done, _ = s.store(store.endpoint, 3)
            check(b"did not answer" in done.stderr and b"certificate" in done.stderr and store.asked == [], done.stderr)
            s.store(store.endpoint, SSL_CERT_FILE=str(cert))
            check(s.verdict(store.endpoint, 0, SSL_CERT_FILE=str(cert))["verdict"] == "holds" and store.bad == [])
            check(s.verdict(store.endpoint, 3)["codes"] == ["stored_unreachable"])


@test
def settings_that_are_wrong_stop_every_command(made):
    with Setting(made) as s:
        for more, word in (({"CORTEX_BUNDLES_STORE": "gcs"}, "expected \"database\" or \"s3\""),
                           ({"CORTEX_BUNDLES_ENDPOINT": "http://10.0.0.1"}, "plain-http"),
                           ({"CORTEX_BUNDLES_ENDPOINT": None}, "endpoint is missing"),
                           ({"CORTEX_BUNDLES_BUCKET": "../x"}, "bucket"), ({"CORTEX_BUNDLES_PREFIX": "a/../b"}, "prefix"),
                           ({"CORTEX_BUNDLES_STORE_TIMEOUT": "0"}, "store-timeout"),
                           ({"CORTEX_BUNDLES_PLAIN_HTTP": "yes"}, "true or false")):
            for words in (("run", "verify", s.run_id), ("run", "store", s.run_id), ("log", "--actor", s.first.actor())):
                done = s.first.cortex(*words, env=s.env("https://s3.example", **more))
                check(done.returncode == 2 and word.encode() in done.stderr, words, more, done)
        # A folder's own file does not count, and what would be stored by it is refused.
        config = pathlib.Path(s.first.home) / "config.toml"
        config.write_text(object_kit.settings("http://127.0.0.1:1"))
        config.chmod(0o600)
        done = s.first.cortex("run", "store", s.run_id)
        check(done.returncode == 2 and b"counts in a part of a fleet" in done.stderr, done)
        check(s.first.cortex("run", "verify", s.run_id).returncode == 0)
        config.write_text("[bundles]\nbucked = \"x\"\n")
        done = s.first.cortex("run", "verify", s.run_id)
        check(done.returncode == 2 and b"did you mean 'bucket'" in done.stderr, done)


@test
def an_erasure_is_claimed_only_when_the_object_is_gone(made):
    state = {"way": None}

    def rule(handler, method, path, objects, body):
        way = state["way"]
        if method == "DELETE" and way == "locked":
            handler.error(403, "AccessDenied")
        elif method == "DELETE" and way == "lies":
            handler.answer(204)
        elif method == "DELETE" and way == "busy":
            handler.error(503, "SlowDown")
        elif method == "GET" and way == "blind" and "versioning" not in path:
            handler.error(403, "AccessDenied")
        elif method == "GET" and way == "no versioning" and "versioning" in path:
            handler.error(501, "NotImplemented")
        elif method == "DELETE" and way == "marker":
            objects.pop(path, None)
            handler.answer(204, b"", x_amz_delete_marker="true")
        else:
            return False
        return True

    with Setting(made) as s, Answers(rule) as store:
        s.store(store.endpoint)
        # Nothing is destroyed when the store cannot be asked at all.
        done, _ = s.erase(store.endpoint, 3, CORTEX_S3_SECRET_ACCESS_KEY=None)
        check(b"needs credentials" in done.stderr, done)
        check(s.verdict(store.endpoint, 0)["verdict"] == "holds")
        for way, word in (("locked", "AccessDenied"), ("lies", "still in the bucket"), ("busy", "still in the bucket"),
                          ("blind", "403")):
            state["way"] = way
            done, _ = s.erase(store.endpoint, 3)
            check(word.encode() in done.stderr and b"repeat the command" in done.stderr, way, done.stderr)
            check(b"erased the stored" not in done.stdout and (len(store.objects) == 1 or way == "blind"), way, done)
            check(s.verdict(store.endpoint, 3)["codes"] == ["stored_erased"], "its key is destroyed")
        state["way"] = "no versioning"
        check(s.erase(store.endpoint)[1]["versions_kept"] is None and store.objects == {})
        state["way"] = "marker"
        check(s.erase(store.endpoint)[1]["versions_kept"] is True)
        state["way"], store.versioning = None, "Suspended"
        check(s.erase(store.endpoint)[1]["versions_kept"] is True)
        done = s.second.cortex("erase", "--run", s.run_id, "--reason", "again", env=s.env(store.endpoint))
        check(b"keeps old versions" in done.stdout, done)
        store.versioning = ""
        check(s.erase(store.endpoint)[1]["versions_kept"] is False)
        check(store.bad == [], store.bad)


@test
def the_key_is_erased_by_every_way_of_erasing_and_a_hold_keeps_it(made):
    with Setting(made) as s, Answers() as store:
        s.store(store.endpoint)
        done = s.first.cortex("hold", "add", "--agent", s.first.actor(), "--reason", "a case", "--json")
        check(done.returncode == 0, done)
        hold = json.loads(done.stdout)
        done, _ = s.erase(store.endpoint, 4)
        said = json.loads(done.stdout)
        check((said["held"], said["objects_removed"]) == (1, 0) and len(store.objects) == 1, said)
        check(s.verdict(store.endpoint, 0)["verdict"] == "holds", "a hold keeps it")
        number = next(hold[name] for name in ("hold", "entry", "id", "added") if name in hold)
        done = s.first.cortex("hold", "release", number, "--reason", "closed")
        check(done.returncode == 0, done)
        asked = len(store.asked)
        done = s.first.cortex("erase", "--agent", s.first.actor(), "--reason", "all", "--json")
        check(done.returncode == 0, done)
        check(s.verdict(store.endpoint, 3)["codes"] == ["stored_erased"])
        check(len(store.asked) == asked and len(store.objects) == 1, "the object is sealed with a key that is gone")
        check(s.erase(store.endpoint)[1]["objects_removed"] == 1 and store.objects == {})
        check(s.first.cortex("verify", "--home", s.first.home).returncode == 0)


@test
def one_run_takes_nothing_from_another(made):
    with Setting(made) as s, Answers() as store:
        _, first = s.store(store.endpoint)
        value = contract("unit_task_2")
        done, answer = s.first.run(value, script((GOOD_OPS, reply(value["task_id"]))))
        check(answer["status"] == "SUCCESS", done.stderr, answer)
        other = answer["run_id"]
        done = s.first.cortex("run", "store", other, "--json", env=s.env(store.endpoint))
        check(done.returncode == 0 and json.loads(done.stdout)["object"]["sha256"] != first["object"]["sha256"], done)
        s.erase(store.endpoint)
        check(len(store.objects) == 1)
        done = s.second.cortex("run", "verify", other, env=s.env(store.endpoint))
        check(done.returncode == 0, done)


@test
def agents_do_not_see_the_credentials(made):
    with Setting(made) as s, Answers() as store:
        aws = {"AWS_ACCESS_KEY_ID": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SECRET}
        done = s.first.cortex("exec", "--", "sh", "-c",
                              "env; for f in /proc/[0-9]*/environ; do cat $f 2>/dev/null; done; true",
                              env={**s.env(store.endpoint), **aws, "CORTEX_S3_SECRET_ACCESS_KEY": SECRET})
        check(done.returncode == 0 and b"PATH=" in done.stdout, done)
        check(SECRET.encode() not in done.stdout + done.stderr and b"CORTEX_S3" not in done.stdout, done)


main(Made)
