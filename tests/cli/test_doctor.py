#!/usr/bin/env python3
"""What `cortex doctor` says about a repository that runs are to be governed in (run.md §20).

    test_doctor.py [PROGRAM] [WORD..]
"""
import json
import os
import shutil

from kit import BIN, TESTS, Folder, check, main, run, skip, test

ENV = {k: v for k, v in os.environ.items()
       if not k.startswith(("CORTEX_", "XDG_")) and k != "CORTEXPILOT_RUNTIME_ROOT"}
GIT = ["git", "-c", "user.name=T", "-c", "user.email=t@example.invalid", "-c",
       "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"]


class Repository:
    """A repository after `cortex init` and one commit."""

    def __enter__(self):
        self.outer = Folder()
        self.folder = self.outer.__enter__()
        self.path = self.folder / "repo"
        self.path.mkdir()
        self.env = {**ENV, "CORTEX_HOME": str(self.folder / "home"), "HOME": str(self.folder)}
        self.git("init", "-q", "-b", "main")
        done = run(BIN, "init", cwd=self.path, env=self.env)
        check(done.returncode == 0, done.stderr)
        self.commit()
        return self

    def __exit__(self, *problem):
        self.outer.__exit__(*problem)

    def git(self, *words):
        done = run(*GIT, *words, cwd=self.path, env=self.env)
        check(done.returncode == 0, words, done.stderr)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "x")

    def doctor(self, **env):
        """(exit code, {name: check})"""
        done = run(BIN, "doctor", "--json", cwd=self.path, env={**self.env, **env})
        answer = json.loads(done.stdout)
        check(answer["ok"] == (done.returncode == 0), done.returncode, answer)
        for one in answer["checks"]:
            check(set(one) == {"name", "status", "detail", "fix"}, one)
        return done.returncode, {one["name"]: one for one in answer["checks"]}


@test
def doctor_passes_for_a_prepared_repository():
    with Repository() as repository:
        _, checks = repository.doctor()
        for name in ("git", "runtime-root", "fsync", "policies", "schemas", "trusted-dirs",
                     "ledger"):
            check(checks[name]["status"] == "ok", checks[name])
        for name in ("userns", "bwrap", "seccomp", "landlock", "cgroup", "runner", "hooks"):
            check(name in checks, name)
        check(os.listdir(repository.path / ".runtime-cache/cortexpilot") != [".doctor"])


@test
def a_runtime_root_that_git_sees_fails():
    with Repository() as repository:
        (repository.path / ".gitignore").write_text("")
        code, checks = repository.doctor()
        check(code == 3 and checks["runtime-root"]["status"] == "fail", checks["runtime-root"])
        check("init" in checks["runtime-root"]["fix"])


@test
def an_absolute_runtime_root_passes_and_a_relative_one_fails():
    with Repository() as repository:
        outside = repository.folder / "root"
        outside.mkdir()
        _, checks = repository.doctor(CORTEXPILOT_RUNTIME_ROOT=str(outside))
        check(checks["runtime-root"]["status"] == "ok", checks["runtime-root"])
        check(os.listdir(outside) == [], os.listdir(outside))
        code, checks = repository.doctor(CORTEXPILOT_RUNTIME_ROOT="relative")
        check(code == 3 and checks["runtime-root"]["status"] == "fail", checks["runtime-root"])


@test
def a_policy_that_cannot_be_read_fails():
    with Repository() as repository:
        (repository.path / "policies/packs/low.json").write_text("{")
        repository.commit()
        code, checks = repository.doctor()
        check(code == 3 and checks["policies"]["status"] == "fail", checks["policies"])
        check("policies/packs/low.json" in checks["policies"]["detail"], checks["policies"])


@test
def a_schema_that_was_changed_fails():
    with Repository() as repository:
        with open(repository.path / "schemas/task_contract.v1.json", "a", encoding="utf-8") as file:
            file.write(" ")
        code, checks = repository.doctor()
        check(code == 3 and checks["schemas"]["status"] == "fail", checks["schemas"])


@test
def trusted_folders_that_others_can_write_fail():
    with Repository() as repository:
        loose = repository.folder / "bin"
        loose.mkdir()
        loose.chmod(0o777)
        path = repository.path / "policies/cortex.json"
        config = json.loads(path.read_text())
        config["trusted_dirs"] = [str(loose)]
        path.write_text(json.dumps(config))
        repository.commit()
        code, checks = repository.doctor()
        check(checks["policies"]["status"] == "ok", checks["policies"])
        check(code == 3 and checks["trusted-dirs"]["status"] == "fail", checks["trusted-dirs"])


def with_server(repository, **server):
    """The repository's runner is the scripted server of tests/mcp_server.py."""
    (repository.path / "scripts").mkdir()
    shutil.copy(TESTS / "mcp_server.py", repository.path / "scripts/mcp_server.py")
    (repository.path / "scripts/agent.json").write_text(json.dumps({"turns": [], **server}))
    path = repository.path / "policies/cortex.json"
    config = json.loads(path.read_text())
    config["runners"] = {"mcp": {"kind": "mcp", "connect_sec": 120, "close_sec": 60, "argv":
                                 ["python3", "scripts/mcp_server.py", "scripts/agent.json"]}}
    path.write_text(json.dumps(config))
    repository.commit()
    return repository.doctor()


@test
def a_runner_that_answers_passes():
    with Repository() as repository:
        _, checks = with_server(repository)
        check(checks["policies"]["status"] == "ok", checks["policies"])
        if checks["runner"]["status"] != "ok":
            skip("no trusted python3: " + checks["runner"]["detail"])
        if "handshake" not in checks:
            skip("no full sandbox on this machine")
        check(checks["handshake"]["status"] == "ok", checks["handshake"])


@test
def a_runner_that_lacks_its_tool_or_exits_fails():
    for server in ({"tools": [["other"]]}, {"hello": [{"exit": 3}]}):
        with Repository() as repository:
            code, checks = with_server(repository, **server)
            if "handshake" not in checks:
                skip("no full sandbox, or no trusted python3")
            check(code == 3 and checks["handshake"]["status"] == "fail", checks["handshake"])


@test
def doctor_warns_that_runs_are_not_sealed_without_a_data_directory():
    with Repository() as repository:
        _, checks = repository.doctor(CORTEX_HOME=str(repository.folder / "none"))
        check(checks["ledger"]["status"] == "warn", checks["ledger"])


@test
def outside_a_repository_doctor_skips_the_repository_checks():
    with Folder() as folder:
        done = run(BIN, "doctor", "--json", cwd=folder, env={**ENV, "HOME": str(folder)})
        names = {one["name"] for one in json.loads(done.stdout)["checks"]}
        check(done.returncode == 0, done.stdout)
        check("git" in names and "runtime-root" not in names and "hooks" not in names, names)


class Home:
    """A home with an entry, a signed checkpoint and tokens, outside of a repository."""

    def __enter__(self):
        self.outer = Folder()
        self.folder = self.outer.__enter__()
        self.path = self.folder / "home"
        self.env = {**ENV, "CORTEX_HOME": str(self.path), "CORTEX_ACTOR": "ann", "HOME": str(self.folder)}
        for words in (("init", "--no-repo", "--segment-size", "1M"),
                      ("memory", "write", "Fact", '{"statement":"x","subject":"s","predicate":"is"}'),
                      ("key", "new", "a.key", "--name", "example.com/log"),
                      ("checkpoint", "--sign", "a.key"), ("token", "add", "--scope", "trace:read"),
                      ("key", "add", TESTS.parent / "examples" / "traces" / "trust.json"),
                      ("record", TESTS.parent / "examples" / "traces" / "beta.json")):
            done = run(BIN, *words, cwd=self.folder, env=self.env)
            check(done.returncode == 0, words, done.stderr)
        return self

    def __exit__(self, *problem):
        self.outer.__exit__(*problem)

    def doctor(self, *words):
        done = run(BIN, "doctor", "--json", *words, cwd=self.folder, env=self.env)
        answer = json.loads(done.stdout)
        check(answer["ok"] == (done.returncode == 0), done.returncode, answer)
        return done.returncode, {one["name"]: one for one in answer["checks"]}

    def fails(self, name, *words):
        code, checks = self.doctor()
        check(code == 3 and checks[name]["status"] == "fail", name, checks[name])
        check(checks[name]["fix"], checks[name])
        for word in words:
            check(word in checks[name]["detail"], word, checks[name])


@test
def doctor_passes_for_a_healthy_data_directory():
    with Home() as home:
        code, checks = home.doctor()
        check(code == 0, checks)
        for name in ("config", "home", "log", "tables", "index", "keys", "checkpoints", "tokens", "owner",
                     "clock", "mcp", "ledger"):
            check(checks[name]["status"] == "ok", checks[name])
        for name in ("disk", "http", "postgresql", "listen", "otlp"):
            check(name in checks, name)
        text = run(BIN, "doctor", cwd=home.folder, env=home.env).stdout.decode()
        check("checkpoints   1 origins" in text, text)


@test
def doctor_reports_a_damaged_data_directory():
    with Home() as home:
        home.path.chmod(0o755)
        _, checks = home.doctor()
        check(checks["home"]["status"] == "warn" and "chmod 700" in checks["home"]["fix"], checks["home"])
        home.path.chmod(0o700)
        (home.path / "tokens.json").chmod(0o644)
        home.fails("tokens", "other users can read")
        (home.path / "tokens.json").write_text("{")
        (home.path / "tokens.json").chmod(0o600)
        home.fails("tokens", "all requests are rejected")
        (home.path / "tokens.json").unlink()
        signed = next(home.path.glob("keys/checkpoint-*"))
        kept = signed.read_bytes()
        signed.write_text("nonsense")
        home.fails("checkpoints", signed.name)
        signed.write_bytes(kept)
        (home.path / "cirislens.db").write_text("nonsense" * 1000)
        home.fails("index")
        (home.path / "cirislens.db").unlink()
        check(home.doctor()[1]["index"]["status"] == "ok")
        next(home.path.glob("log/*.seg")).write_bytes(b"x" * 100)
        home.fails("log")


@test
def a_configuration_that_cannot_be_used():
    with Home() as home:
        config = home.path / "config.toml"
        config.write_text("[serve]\nlistn = 1\n")
        config.chmod(0o600)
        home.fails("config", "line 2", "listen")
        config.write_text('[serve]\nlisten = "127.0.0.1:1"\notlp = "off"\n')
        _, checks = home.doctor()
        check(checks["otlp"]["detail"] == "switched off", checks["otlp"])
        config.write_text('db = "postgresql://127.0.0.1:1/none"\n')
        home.fails("index")
        _, checks = home.doctor()
        check("PostgreSQL" in checks["index"]["detail"], checks["index"])
        check("--db" in checks["index"]["fix"], checks["index"])


main()
