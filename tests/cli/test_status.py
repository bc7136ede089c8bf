#!/usr/bin/env python3
"""`cortex status`: what it shows of homes that are well, held, broken, or not there.

    test_status.py [PROGRAM] [WORD..]
"""
import json
import os
import signal
import subprocess

from kit import BIN, TESTS, Folder, check, main, run, test

ENV = {k: v for k, v in os.environ.items()
       if k not in ("CORTEX_HOME", "CORTEX_ACTOR", "XDG_DATA_HOME", "CORTEXPILOT_RUNTIME_ROOT")}
FACT = '{"statement":"x","subject":"s","predicate":"is"}'


class Place:
    def __enter__(self):
        self.outer = Folder()
        self.folder = self.outer.__enter__()
        self.home = self.folder / "home"
        self.env = {**ENV, "CORTEX_HOME": str(self.home), "CORTEX_ACTOR": "ann", "HOME": str(self.folder)}
        self.cortex("init", "--no-repo", "--segment-size", "1M")
        return self

    def __exit__(self, *problem):
        self.outer.__exit__(*problem)

    def cortex(self, *words, code=0, cwd=None):
        done = run(BIN, *words, env=self.env, cwd=cwd or self.folder)
        check(done.returncode == code, words, done.returncode, done.stderr)
        return done.stdout.decode()

    def status(self, *words, code=0, cwd=None):
        return json.loads(self.cortex("status", "--json", *words, code=code, cwd=cwd))


@test
def status_shows_the_state_of_the_data_directory():
    with Place() as place:
        empty = place.status()
        check(empty["ledger"]["entries"] == 0 and empty["ledger"]["actors"] == [], empty)
        check(empty["repository"] is None and empty["owner"] is None, empty)
        place.cortex("memory", "write", "Fact", FACT)
        place.cortex("memory", "write", "Fact", FACT, "--actor", "bob")
        place.cortex("snapshot", "make", "--reason", "x")
        place.cortex("key", "new", "a.key", "--name", "example.com/log")
        place.cortex("checkpoint", "--sign", "a.key")
        place.cortex("key", "add", TESTS.parent / "examples" / "traces" / "trust.json")
        place.cortex("record", TESTS.parent / "examples" / "traces" / "beta.json")
        got = place.status()
        ledger = got["ledger"]
        roots = {one["actor"]: one for one in json.loads(place.cortex("roots", "--json"))["actors"]}
        check({one["actor"] for one in ledger["actors"]} == set(roots), ledger)
        for one in ledger["actors"]:
            for name in ("edges_root", "journal_root", "memories_root", "overall_root"):
                check(one[name] == roots[one["actor"]][name], one)
            check((one["snapshot"] is not None) == (one["actor"] == "ann"), one)
        check(ledger["entries"] == sum(one["entries"] for one in ledger["actors"]), ledger)
        check(ledger["checkpoints"][0]["origin"] == "example.com/log" and
              ledger["checkpoints"][0]["size"] == 1, ledger)
        check(ledger["segments"] == 1 and ledger["log_bytes"] > 0, ledger)
        check(ledger["commits"] == ledger["table_commits"] and ledger["index"]["lag"] == 0, ledger)
        check(got["home"]["private"] and got["disk"]["free_bytes"] <= got["disk"]["total_bytes"], got)
        text = place.cortex("status")
        for word in ("home ", "ledger ", "tables ", "index ", "actor   ann", "signed  example.com/log",
                     "owner   none", "disk "):
            check(word in text, word, text)


@test
def status_names_the_writer_process_and_works_while_it_runs():
    with Place() as place:
        server = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--json"], env=place.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=place.folder)
        try:
            check(server.stdout.readline())
            got = place.status()
            check(got["owner"]["pid"] == server.pid and got["owner"]["serves_socket"], got)
            check(got["owner"]["command"].endswith(" serve"), got)
            check(got["home"]["tokens"] == 1, got)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
        check(place.status()["owner"] is None)


@test
def a_repository_is_counted():
    with Place() as place:
        repo = place.folder / "repo"
        repo.mkdir()
        for words in (("init", "-q"), ("-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit",
                                       "-q", "--allow-empty", "-m", "x")):
            check(run("git", *words, cwd=repo, env=place.env).returncode == 0)
        got = place.status(cwd=repo)["repository"]
        check(got["runs"] == [] and got["locks"] == 0 and got["path"] == str(repo), got)
        # A run whose process is gone.
        active = repo / ".runtime-cache" / "cortexpilot" / "active" / "runs" / "run_x"
        place.cortex("init", cwd=repo)
        active.mkdir(parents=True)
        got = place.status("--repo", repo)["repository"]
        check(got["runs"] == [] and got["left_behind"] in (0, 1), got)


@test
def status_reports_problems():
    with Place() as place:
        os.chmod(place.home, 0o755)
        check(place.status()["home"]["private"] is False)
        check("chmod 700" in place.cortex("status"))
        none = place.status("--home", place.folder / "none", code=3)
        check("cortex init" in none["ledger"]["error"] and none["home"]["exists"] is False, none)
        check("cortex init" in place.cortex("status", "--home", place.folder / "none", code=3))
        segment = next((place.home / "log").glob("*.seg"))
        segment.write_bytes(b"x" * 100)
        check(place.status(code=3)["ledger"]["error"])
        place.cortex("status", "nonsense", code=2)
        place.cortex("status", "--home", "", code=2)


main()
