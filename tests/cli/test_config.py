#!/usr/bin/env python3
"""The configuration: where values come from, what is refused and where, and that commands heed it.

    test_config.py [PROGRAM] [WORD..]
"""
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

from kit import BIN, Folder, check, main, run, test

BARE = {k: v for k, v in os.environ.items() if not k.startswith(("CORTEX", "XDG_"))}
FACT = '{"statement":"x","subject":"s","predicate":"is"}'


class Place:
    def __enter__(self):
        self.outer = Folder()
        self.folder = self.outer.__enter__()
        self.home = self.folder / "home"
        self.env = {**BARE, "HOME": str(self.folder)}
        self.user = self.folder / ".config" / "cortex" / "config.toml"
        self.user.parent.mkdir(parents=True)
        self.cortex("init", "--no-repo", "--segment-size", "1M", self.home)
        return self

    def __exit__(self, *problem):
        self.outer.__exit__(*problem)

    def write(self, text, path=None):
        path = path or self.user
        path.write_text(text)
        path.chmod(0o600)
        return path

    def run(self, *words, **env):
        return run(BIN, *words, env={**self.env, **env}, cwd=self.folder)

    def cortex(self, *words, code=0, **env):
        done = self.run(*words, **env)
        check(done.returncode == code, words, done.returncode, done.stderr)
        return done.stdout.decode()

    def refused(self, text, *words, path=None):
        self.write(text, path)
        done = self.run("config", "check")
        check(done.returncode == 2, text[:80], done.returncode, done.stdout)
        for word in words:
            check(word in done.stderr.decode(), text, word, done.stderr)
        return done.stderr.decode()

    def values(self, **env):
        answer = json.loads(self.cortex("config", "--json", **env))
        return {one["name"]: one for one in answer["values"]}


@test
def the_nearest_configuration_file_takes_precedence():
    with Place() as place:
        named = place.write(f'actor = "named"\nhome = "{place.home}"\n', place.folder / "named.toml")

        def actor(*words, **env):
            place.cortex("memory", "write", "Fact", FACT, *words, **env)
            last = json.loads(place.cortex("log", "--json", "--home", str(place.home), "--actor", seen[0],
                                           **env).splitlines()[-1])
            return last

        seen = ["user"]
        place.write(f'home = "{place.home}"\nactor = "user"\n')
        check(place.values()["actor"]["value"] == '"user"')
        check(place.values()["actor"]["place"].endswith("config.toml:2"))
        actor()
        place.write('actor = "of home"\n', place.home / "config.toml")
        check(place.values()["actor"]["source"] == "home", place.values()["actor"])
        seen = ["of home"]
        actor()
        check(place.values(CORTEX_ACTOR="env")["actor"]["place"] == "CORTEX_ACTOR")
        seen = ["env"]
        actor(CORTEX_ACTOR="env")
        seen = ["flag"]
        actor("--actor", "flag", CORTEX_ACTOR="env")
        os.remove(place.home / "config.toml")
        seen = ["named"]
        actor(CORTEX_CONFIG=str(named))
        names = {one["actor"] for one in json.loads(place.cortex("roots", "--json"))["actors"]}
        check(names == {"user", "of home", "env", "flag", "named"}, names)
        # Who names nothing has no home.
        check(place.run("roots", CORTEX_CONFIG="/dev/null").returncode == 3)
        check(place.run("roots", CORTEX_CONFIG="/dev/null", CORTEX_HOME=str(place.home)).returncode == 0)


@test
def commands_use_the_configuration():
    with Place() as place:
        place.write(f'home = "{place.home}"\n[serve]\nlisten = "127.0.0.1:0"\nmax-body = "1K"\n'
                    'queue = 7\nunknown-key = "keep"\notlp = "off"\n')
        server = subprocess.Popen([BIN, "serve", "--json"], env=place.env, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, cwd=place.folder)
        try:
            url = json.loads(server.stdout.readline())["url"]
            check(not url.endswith(":8420"), url)
            token = (place.home / "token").read_text().strip()
            wanted = urllib.request.Request(url + "/api/v1/covenant/events", b"x" * 2000,
                                            {"Authorization": "Bearer " + token,
                                             "Content-Type": "application/json"})
            try:
                urllib.request.urlopen(wanted, timeout=60)
                check(False, "a long body was taken")
            except urllib.error.HTTPError as error:
                check(error.code == 413, error.code)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
        # A flag is true or false, in the environment too; limits reach every command.
        check(place.run("serve", CORTEX_SERVE_LISTEN="nonsense").returncode == 2)
        check(place.run("serve", CORTEX_SERVE_INSECURE="maybe").returncode == 2)
        place.write('[limits]\nmax-bytes = 10\n')
        nodes = place.folder / "x.jsonl"
        nodes.write_text('{"a":1}' * 10)
        done = place.run("lattice", "verify", nodes)
        check(done.returncode == 3 and b"U_LIMIT" in done.stderr + done.stdout, done)
        check(b"U_LIMIT" not in place.run("lattice", "verify", nodes, "--max-bytes", "1M").stderr)
        # --actor is a filter there, and --home what is to be verified: the settings are neither.
        place.write(f'actor = "nobody"\nhome = "{place.home}"\n')
        check(place.run("roots").returncode == 0)
        check(place.run("verify", "--home", place.home).returncode == 0)
        check(place.run("verify", nodes).returncode == 3)
        place.cortex("init", "--no-repo", "--segment-size", "1M", place.folder / "other")
        check((place.folder / "other" / "log").is_dir())


@test
def a_store_that_a_folder_names_is_shown_as_ignored():
    with Place() as place:
        own = place.home / "config.toml"
        own.write_text('[bundles]\nstore = "s3"\nbucket = "abc"\n')
        own.chmod(0o600)
        answer = json.loads(place.cortex("config", "--json", "--home", place.home))
        ignored = {one["name"]: one["place"] for one in answer["ignored"]}
        check(ignored == {"bundles.store": f"{own}:2", "bundles.bucket": f"{own}:3"}, ignored)
        values = {one["name"]: one for one in answer["values"]}
        check(values["bundles.store"]["source"] == "default" and values["bundles.bucket"]["value"] is None, values)
        check(f"# ignored: bundles.store of {own}:2" in place.cortex("config", "--home", place.home))
        check(f"# ignored: bundles.bucket of {own}:3" in place.cortex("config", "check", "--home", place.home))
        place.write('[bundles]\nstore = "s3"\n')
        answer = json.loads(place.cortex("config", "--json"))
        check(answer["ignored"] == [], answer["ignored"])


@test
def configuration_errors_name_file_and_line():
    with Place() as place:
        place.refused('[serve]\n\n  listn = "x"\n', "line 3, column 3", "did you mean 'listen'")
        place.refused('[srve]\nlisten = "x"\n', "did you mean [serve]")
        place.refused('listen = "x"\n', "line 1, column 1", "it belongs into [serve]")
        place.refused('[serve]\nhome = "x"\n', "before the first section")
        place.refused('zzzzzzzzzzzzzz = 1\n', "config default")
        place.refused('[serve]\nworkers = "8"\n', "line 2", "a whole number")
        place.refused('[serve]\nlisten = 8420\n', "a text in quotes")
        place.refused('[serve]\ninsecure = "true"\n', "true or false")
        place.refused('[serve]\nunknown-key = "maybe"\n', "reject|keep")
        place.refused('[serve]\nmax-body = "8Q"\n', "number of bytes")
        place.refused('color = "pink"\n', "auto|always|never")
        place.refused('[serve]\nlisten = "a"\nlisten = "b"\n', "line 3", "twice")
        place.refused('[serve]\n[serve]\n', "line 2", "twice")
        place.refused('home = "x\n', "closing")
        place.refused('home "x"\n', "expected '='")
        place.refused('home = "x" y\n', "the end of the line")
        place.refused('home = x\n', "a text in quotes")
        place.refused('a.b = 1\n', "'='")
        place.refused('home = "\\q"\n', "escape")
        place.refused('home = "\\u0000"\n', "no character")
        place.refused('[serve\n', "']'")
        place.refused('help = true\n', "help")
        place.refused("# " + "x" * 70000, "config.toml")
        place.user.write_bytes(b'home = "\xff"\n')
        check(b"UTF-8" in place.run("config", "check").stderr)
        place.write("")
        place.write(f'home = "{place.home}"\n')
        place.write('home = "y"\n', place.home / "config.toml")
        done = place.run("config", "check")
        check(done.returncode == 2 and b"cannot name another" in done.stderr, done.stderr)


@test
def an_invalid_configuration_stops_commands_that_use_it():
    with Place() as place:
        place.write('[serve]\nlisten = "127.0.0.1:0"\nqeue = 1\n')
        for words in (["roots"], ["serve"], ["memory", "list"], ["run", "list"], ["init", "x"]):
            done = place.run(*words)
            check(done.returncode == 2 and b"did you mean 'queue'" in done.stderr, words, done.stderr)
        check(not (place.folder / "x").exists())
        done = place.run("roots", "--json")
        check(json.loads(done.stdout)["error"], done.stdout)
        for words in (["help"], ["version"], ["help", "serve"], ["roots", "--help"], ["config", "default"],
                      ["completion", "bash"]):
            check(place.run(*words).returncode == 0, words)
        # G3
        place.write('actor = "a"\n')
        place.user.chmod(0o666)
        done = place.run("roots")
        check(done.returncode == 2 and b"other users can change it" in done.stderr, done.stderr)
        place.user.unlink()
        place.user.mkdir()
        check(place.run("roots").returncode == 2)
        check(place.run("roots", CORTEX_CONFIG=str(place.folder / "none")).returncode == 2)
        check(place.run("config", "check", place.folder / "none").returncode == 3)


@test
def the_default_configuration_is_valid_and_sets_nothing():
    with Place() as place:
        text = place.cortex("config", "default")
        check(all(not line or line[0] in "#[" for line in text.splitlines()), text)
        check(max(map(len, text.splitlines())) <= 120)
        place.write(text)
        check("ok, 0 settings" in place.cortex("config", "check"))
        used = re.sub(r"(?m)^#(?! )", "", text)
        place.write(used)
        count = len(re.findall(r"(?m)^[a-z-]+ = ", used))
        check(count > 30 and f"ok, {count} settings" in place.cortex("config", "check"), count)
        # What is said to be the default is what the help says.
        values = {name: one["value"] for name, one in place.values(CORTEX_CONFIG="/dev/null").items()}
        for name, value in values.items():
            section, _, option = name.rpartition(".")
            if value is None or value == "false" or section in ("", "limits"):
                continue
            command = "run store" if section == "bundles" else section
            told = re.sub(r"\s+", " ", place.cortex("help", *command.split()))
            told = told[told.index("Options:"):]
            about = told[told.index("--" + option):][:400]
            check(value.strip('"') in about, name, value, about)


main()
