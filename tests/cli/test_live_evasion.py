#!/usr/bin/env python3
"""An agent that tries to get around its hooks: stopped by a rule, or named by `cortex hook audit`.

Each way of the table in docs/threat-model.md twice: what the hook says to it, and what the audit says when the hook
was not asked or not heard.  Closes with `N passed, N failed, N skipped`.
"""
import json
import os
import shutil
import signal
import subprocess
import time

from audit_kit import Told, ids, one
from kit import BIN, check, main, run, test


def refused(s, tool, tool_input, rule):
    """Neither allowed nor rewritten; a person may allow what is only asked about."""
    done = s.decide("toolu_evil", tool, tool_input)
    entry = json.loads(s.cortex("session", "show", s.session, "--json"))["entries"][-1]["payload"]
    asks = entry["verdict"] == "ask" and b'"ask"' in done.stdout and done.returncode == 0
    denies = entry["verdict"] == "deny" and done.returncode == 2 and done.stdout == b""
    check((asks or denies) and entry["rule"] == rule, tool, tool_input, entry["verdict"], entry["rule"], done)
    return denies


# Not on every machine; a program that is not there is refused for that alone.
OPTIONAL = {name for name in ("xxd", "file", "ps") if shutil.which(name) is None}


def can_be_tried(line):
    return line.split()[0] not in OPTIONAL


def commands(s, *rows):
    for command, rule in rows:
        if can_be_tried(command):
            refused(s, "Bash", {"command": command}, rule)


# --- lines of a shell --------------------------------------------------------------------------------


def allowed(s, *lines):
    for line in filter(can_be_tried, lines):
        done = s.decide("toolu_fine", "Bash", {"command": line})
        check(done.returncode == 0 and done.stdout == b"", line, done)


@test
def a_cd_does_not_hide_where_files_are_written():
    with Told() as s:
        s.start()
        (s.repo / ".claude").mkdir()
        commands(s, ("(cd .claude; echo x > settings.json)", "L10"), ("ls $(cd .claude; touch settings.json)", "L10"),
                 ("cd src/nothing; touch ../../x", "L13"), ("cd nothing; touch policies/live.json", "L12"),
                 ("cd src | true && touch ../x", "L13"), ("! cd src && touch ../x", "L13"),
                 ("{ cd src && (ls) } | cat && touch ../x", "L13"), ("cd src && (ls)\ntouch ../x", "L13"),
                 ("true || cd src; touch ../x", "L13"), ("cat | cd src && touch ../x", "L13"),
                 ("for i in 1 2; do touch a; cd ..; done", "C01"), (f"CDPATH={s.user} cd src; touch a", "C04"),
                 ("cd src; cd ../..; touch x", "L13"), ("cd src && cd - ; touch x", "L08"))
        allowed(s, "cd src && touch ../x", "cd src && touch a && cd .. && touch b", "(cd src && touch ../x); touch y",
                "cd src; touch a", "for i in a b; do (cd src; touch c); done", "cd src &&\ntouch ../x",
                "cd src && ls 2>&1 | tail -n 3 > ../log", "if [ -d src ]; then cd src && touch ../x; fi")


@test
def links_lead_where_the_kernel_walks():
    with Told() as s:
        s.start()
        (s.user / ".ssh/deep").mkdir(parents=True)
        (s.user / ".ssh/id").write_text("key\n")
        (s.repo / "src/link").symlink_to(s.user / ".ssh/deep")
        commands(s, ("cat src/link/../id", "L15"), ("cp src/a.c src/link/../authorized_keys", "L11"),
                 ("cd src/link && cat ../id", "L15"), ("cd src/link && cd .. && touch x", "L08"),
                 ("cd src; ln -s ../outside ../x", "L08"), ("cd src; ln -s policies ../x", "L08"))
        check(refused(s, "Read", {"file_path": str(s.repo / "src/link/../id")}, "L15"))
        allowed(s, "ln -s a.c b.c", "cat src/../src/a.c")


@test
def continued_lines_are_read_as_shells_read_them():
    with Told() as s:
        s.start()
        commands(s, ("ls \"$\\\n(id)\"", "C01"), ("touch $\\\nHOME/x", "C01"), ("cat <<E\n$\\\n(id)\nE\n", "C01"),
                 ("cat <<EO\nE\\\nO\nid\nEO\n", "C01"), ("ls >&1/../../x", "L13"))
        allowed(s, "cat <<'E'\na\\\nb\nE\n", "ls >&2", "ls 2>&1")


@test
def builtins_and_readers_do_not_run_or_write():
    with Told() as s:
        s.start()
        commands(s, ("test -v 'a[$(id)]'", "C02"), ("[ -v 'a[`id`]' ]", "C02"), ("printf -v 'a[$(id)]' x", "C02"),
                 ("wait -n -p 'a[0]'", "C02"), ("set -k; git diff GIT_EXTERNAL_DIFF=./x", "C13"),
                 ("set -o keyword; ls A=b", "C13"), ("uniq src/a.c .claude/settings.json", "L10"),
                 ("uniq -c src/a.c ../x", "L13"), ("xxd -r src/a.c .git/config", "L12"),
                 ("sort -ro .claude/settings.json src/a.c", "L10"), ("sort src/a.c -o.git/config", "L12"),
                 ("file -C -m src/a.c", "L08"), ("date -s 12:00", "L08"), ("ps auxe", "L08"), ("ps e", "L08"),
                 ("cp -bS.json src/a.c .mcp", "L08"), ("cat < /dev/tcp/example.org/80", "L09"),
                 ("cat </dev/udp/secret.example.org/53", "L09"))
        allowed(s, "uniq -f 1 src/a.c", "xxd -l 16 src/a.c", "sort -k2 src/a.c -o src/b.c", "set -euo pipefail; ls",
                "printf '[%s]' x", "ps aux", "date +%s", "test 'a[0]' = b")


@test
def what_is_kept_from_being_read_is_not_read_otherwise():
    with Told() as s:
        s.start()
        (s.user / ".ssh").mkdir()
        (s.user / ".ssh/id").write_text("key\n")
        commands(s, ("cat ~/.ss*/id", "L15"), ("cat ~/.[s]sh/id", "L15"), (f"cat {s.home.parent}/ho?e/token", "L15"),
                 ("cat /proc/*/environ", "L15"), (f"file -f{s.user}/.ssh/id", "L15"), (f"grep -vf{s.user}/.ssh/id x", "L15"),
                 (f"date -f{s.user}/.ssh/id", "L15"), (f"git blame -S{s.user}/.ssh/id src/a.c", "L15"),
                 ("grep -r key ~", "L15"), ("diff -r src ~", "L15"), ("cp -r ~ x", "L15"), ("cd ~ && grep -r key", "L15"),
                 ("cat ~+/../user/.ssh/id", "L08"), ("cd \"$X\"; cat id", "L08"),
                 ("jq -n 'import \"k\" as $d {search:\"/x\"}; $d'", "L08"))
        allowed(s, "cat src/*.c", "grep -rn int src", "grep -rn int .", "ls ~", "cat ~/x", "cat a* || cat ./*")


@test
def what_the_shell_works_out_for_itself_needs_a_person():
    with Told() as s:
        s.start()
        commands(s, ("for PATH in x; do ls; done", "C04"), ("for HOME in x; do git log; done", "C04"),
                 ("for PS4 in '$(touch ../y)'; do set -x; ls; done", "C04"), ("for path in x; do ls; done", "C04"),
                 ("for https_proxy in x; do ls; done", "C04"), ("for x do touch ../y; done", "C01"),
                 ("sleep ${CDPATH:=/etc}; cd src && touch y", "C01"),
                 ("true <<< ${CDPATH:=/etc}; cd src && touch y", "C01"),
                 ("true <<E\n${CDPATH:=/etc}\nE\ncd src && touch y", "C02"),
                 ("for x in 'a[$(touch ../y)]'; do sleep ${b[x]}; done", "C01"),
                 ("for x in 'a[$(touch ../y)]'; do for i in ${b:x}; do ls; done; done", "C01"),
                 ("for x in '$(touch ../y)'; do exit ${x@P}; done", "C01"), ("ls ${!x}", "C01"), ("ls ${(e)x}", "C01"),
                 ("sleep $b[x]", "C01"), ("cat <<E\n${b[x]}\nE\n", "C02"), ("cat <<E\n$b[x]\nE\n", "C02"),
                 ("cat <<< $SECRET", "C02"), ('cat <<< "$SECRET"', "C02"), ("cat <<E\n$SECRET\nE\n", "C02"),
                 ("cat <<E > y\na ${SECRET} b\nE\n", "C02"), ("sleep 1$x", "C02"))
        allowed(s, "for f in a b; do ls; done", "for F in a b; do touch x; done", "for i in 1 2; do sleep $i; done",
                "sleep ${i}; ls", "cat <<'E'\n$x ${b[x]}\nE\n", "cat <<E\n\\$x costs 5$ {a[b]}\nE\n", "cat <<< 'a $x'",
                "for i in ${x:-a} ${#x} ${x%.c} ${x/a/b} ${x[0]} ${x[@]} ${x:1:2}; do ls; done")
        patch = "*** Begin Patch\n*** Add File: %s\n+a\n*** End Patch"
        inner = patch % ".claude/settings.json"
        check(refused(s, "Bash", {"command": f"cat <<'E'; apply_patch '{inner}'\n{patch % 'y'}\nE\n"}, "L10"))
        check(refused(s, "Bash", {"command": f"apply_patch '{inner}' <<'E'\n{patch % 'y'}\nE\n"}, "L10"))
        check(refused(s, "Bash", {"command": f"ls\napply_patch <<'E' && ls\n{inner}\nE\n"}, "L10"))
        allowed(s, f"apply_patch <<'E'\n{patch % 'y'}\nE\n", f"apply_patch <<'E' &&\n{patch % 'y'}\nE\nls")


class Trusted(Told):
    """With a folder of programs that a policy trusts, so that those are there that a machine lacks."""

    NAMES = "pytest python3 npm cargo go ctest tsc eslint ruff mypy rg tree jq sort sha256sum wc git".split()

    def __enter__(self):
        super().__enter__()
        place = self.folder / "trusted"
        place.mkdir()
        for name in self.NAMES:
            (place / name).write_text("#!/bin/sh\n")
            (place / name).chmod(0o755)
        (self.repo / "policies").mkdir()
        (self.repo / "policies/cortex.json").write_text(
            json.dumps({"version": "v1", "trusted_dirs": [str(place), "/usr/bin", "/bin"]}))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "policy")
        self.start()
        return self


@test
def reports_and_outputs_are_writes():
    with Trusted() as s:
        (s.repo / ".claude").mkdir()
        (s.repo / ".claude/settings.json").write_text("{}")
        (s.repo / "resp").write_text("--junitxml=.claude/settings.json")
        (s.repo / ".claude/hooks").mkdir()
        settings, hooks = ".claude/settings.json", ".claude/hooks"
        denied = (f"pytest --junitxml={settings}", f"pytest --junit-xml {settings}", "pytest --basetemp=.git",
                  f"pytest --basetemp {hooks}", "pytest --basetemp=.", "pytest --log-file=.mcp.json", f"pytest --cov-report=xml:{settings}",
                  f"pytest --cov-report html:{hooks}", f"pytest -o cache_dir={hooks}", f"pytest -olog_file={settings}",
                  f"python3 -m pytest --junitxml={settings}", f"npm test --logs-dir={hooks}", f"cargo build --target-dir {hooks}",
                  f"go build -o {settings}", "go build -o=.git/hooks/pre-commit", "go test -coverprofile=.mcp.json",
                  f"ctest -O {settings}", f"ctest --output-junit {settings}", f"tsc --outFile {settings}", "eslint -o .mcp.json",
                  "eslint -o.mcp.json", "ruff check --output-file=.mcp.json", f"mypy --html-report {hooks} src",
                  f"tree -o {settings}", f"tree -o{settings}", f"tree -L 1 -no {settings}")
        for line in denied:
            check(refused(s, "Bash", {"command": line}, "L12" if ".git" in line else "L10"), line)
        commands(s, ("ruff format .claude/hooks/guard.py", "L10"), ("pytest --junitxml=../../x.xml", "L13"),
                 ("pytest @resp", "L08"), ("mypy @resp", "L08"), ("tsc @resp", "L08"))
        allowed(s, *([] if os.getuid() else ["pytest --junitxml=build/x.xml tests", "pytest --ignore=.git -q", "ruff check src",
                "eslint --ignore-pattern .claude/ src", "go build -o build/x", "tree -L 2 src", "pytest -k 'a or b' src/a.c::x",
                "git diff -- .gitignore policies/live.json", "git show HEAD:.gitattributes"]))
        s.cortex("session", "limit", s.session, "--path", "src/", "--contract", "x", codes=(2, 3))
        s.cortex("session", "limit", s.session, "--path", "src/")
        commands(s, ("pytest --junitxml=build/x.xml", "L14"), ("go build -o x", "L14"), ("tree -o x", "L14"))


@test
def programs_that_read_start_nothing_and_show_no_variables():
    with Trusted() as s:
        (s.user / ".ssh").mkdir()
        (s.user / ".ssh/id").write_text("key")
        (s.repo / "names").write_text(str(s.user / ".ssh/id") + "\0")
        commands(s, ("rg --pre ./x int", "L08"), ("rg --pre=./x int", "L08"), ("rg --hostname-bin ./x int", "L08"),
                 ("sort --files0-from=names", "L08"), ("sort --files0-f names", "L08"), ("wc --files0-from=names", "L08"),
                 ("du --files0-from=names", "L08"), ("sha256sum -c names", "L08"), ("sha256sum --check names", "L08"),
                 ("md5sum --c names", "L08"), ("tree --fromfile names", "L08"), ("jq -n env", "L08"), ("jq -n '$ENV.X'", "L08"),
                 ("jq -r 'env|keys' x", "L08"), ("file -f names", "L08"), ("go build -toolexec ./x", "L08"),
                 ("go vet -vettool=./x", "L08"), ("go test -exec ./x", "L08"), ("mypy --install-types x", "L08"),
                 ("mypy --python-e ./x y", "L08"), ("pytest --pastebin=all", "L08"), ("npm test -C x", "L08"),
                 ("cargo build --config 'build.rustc-wrapper=\"x\"'", "L08"), ("git log --diff-merges=r", "L08"),
                 ("git show --diff-merges remerge", "L08"), ("ctest -S x.cmake", "L08"), ("ctest --build-and-test a b", "L08"))
        allowed(s, "sort -k2 src/a.c", "wc -l src/a.c", "git log --diff-merges=first-parent",
                *([] if os.getuid() else ["rg --pretty int", "jq '.a.env' src/a.c", "go test ./...", "mypy src",
                                          "rg -c int src"]))


@test
def folders_are_written_as_what_ends_up_in_them():
    with Told() as s:
        s.start()
        for name in (".claude/hooks/guard.sh", ".claude/settings.json", "policies/live.json", "x/settings.json", "x/evil",
                     "x/policies/live.json", "sub/.codex/hooks.json", "build/bin/f", "tree/l/f"):
            (s.repo / name).parent.mkdir(parents=True, exist_ok=True)
            (s.repo / name).write_text("{}")
        (s.user / ".bashrc").write_text("x")
        (s.repo / "build/bin/f").unlink()
        (s.repo / "build/bin/f").symlink_to(s.user / ".bashrc")
        (s.repo / "src/bin").mkdir()
        (s.repo / "src/bin/f").write_text("evil")
        commands(s, ("cp x/evil .claude/hooks/", "L10"), ("cp x/evil .claude/hooks", "L10"), ("mv x/evil .claude/hooks", "L10"),
                 ("mv .claude/hooks x/h", "L10"), ("ln -s .claude/hooks h && cp x/evil h/guard.sh", "L10"),
                 ("cd .claude && ln ../x/settings.json", "L10"), ("cd .claude && cp ../x/settings.json .", "L10"),
                 ("cd .claude && mv ../x/settings.json .", "L10"), ("cp -t .claude x/settings.json", "L08"),
                 ("cp -r x/policies .", "L12"), ("mv x/policies .", "L12"), ("mv policies p2", "L12"),
                 ("ln -s policies p && echo > p/live.json", "L12"), ("cd policies && ln ../x/policies/live.json", "L12"),
                 ("mv sub s2", "L10"), ("rm -r sub", "L10"), (f"mv {s.repo} {s.repo}/x/y", "L10"), ("mv .git g", "L12"),
                 ("chmod -x .claude/settings.json", "L10"), ("chmod -w .git/config", "L12"), ("chmod 0 sub", "L10"),
                 ("chmod -- -r .claude/settings.json", "L10"), ("cp -r src/bin build", "L11"), ("cp -R src/. build", "L11"),
                 ("cp -aT src/bin build/bin", "L11"))
        (s.repo / "src/l.c").symlink_to("a.c")
        allowed(s, "cp x/evil src", "cp x/evil src/", "mv x/evil src", "cp -r x build", "mkdir -p src/b", "chmod +x src/a.c",
                "chmod -x src/a.c", "cp -r src tree", "mv tree/l .", "ln -s a.c k.c", "touch .", "cp x/evil .")


@test
def what_later_programs_obey_is_not_written():
    with Told() as s:
        s.start()
        for path, rule in ((".vscode/mcp.json", "L10"), ("opencode.jsonc", "L10"), (".opencode/plugin/x.ts", "L10"),
                           (".cursor/cli.json", "L10"), (".claude/statusline.sh", "L10"), (".claude/ſettings.json", "L10"),
                           (".g\u200cit/config", "L12"), (".claude/hooks", "L10"),
                           (".envrc", "L11"), ("sub/.vscode/tasks.json", "L11"), (".exrc", "L11"), (".husky/pre-commit", "L11"),
                           (".npmrc", "L11"), ("a.code-workspace", "L11"), (".cargo/config.toml", "L11"),
                           (".idea/workspace.xml", "L11")):
            refused(s, "Write", {"file_path": str(s.repo / path), "content": "x"}, rule)
        for path in (".vimrc", ".config/nvim/init.lua", ".bash_aliases", ".cargo/config.toml"):
            check(refused(s, "Write", {"file_path": str(s.user / path), "content": "x"}, "L11"), path)
        for path in ("src/é.c", "vscode/settings.json", ".github/workflows/x.yml", "CLAUDE.md", ".claude/notes.md"):
            check(s.decide("toolu_fine", "Write", {"file_path": str(s.repo / path)}).returncode == 0, path)


@test
def what_settings_start_is_not_written_without_a_person():
    with Told() as s:
        s.start()
        settings = {"statusLine": {"type": "command", "command": "tools/status.sh --short"}, "apiKeyHelper": "~/keys/get",
                    "permissions": {"allow": ["Edit(src/a.c)", "Bash(./tools/free.sh:*)"]},
                    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": '"$CLAUDE_PROJECT_DIR"/tools/stop.py'}]}]}}
        texts = {".claude/settings.local.json": json.dumps(settings),
                 ".mcp.json": json.dumps({"mcpServers": {"a": {"command": "python3", "args": ["./server/main.py"]}}}),
                 ".codex/config.toml": "[mcp_servers.b]\ncommand = 'server/b'\n"}
        user = {".claude.json": json.dumps({"mcpServers": {"c": {"command": str(s.repo / "server/c")}},
                                            "projects": {"/x": {"history": [{"display": "look at src/a.c please"}]}}})}
        for folder, files in ((s.repo, texts), (s.user, user)):
            for name, text in files.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
        s.git("config", "core.hooksPath", "tools/hooks")
        s.git("config", "filter.x.clean", "tools/clean.sh %f")
        for path in ("tools/status.sh", "tools/stop.py", "server/main.py", "server/b", "server/c", "tools/hooks/pre-push",
                     "tools/clean.sh"):
            refused(s, "Write", {"file_path": str(s.repo / path), "content": "x"}, "L10")
            commands(s, (f"echo x > {path}", "L10"), (f"cd src && cp a.c ../{path}", "L10"))
        for path in ("src/a.c", "tools/free.sh", "other/main.py", "tools/hooks.txt", "main.py", "src/tools/clean.sh.bak"):
            done = s.decide("toolu_fine", "Write", {"file_path": str(s.repo / path), "content": "x"})
            check(done.returncode == 0 and done.stdout == b"", path, done)


@test
def a_hard_link_is_not_written_without_a_person():
    with Told() as s:
        s.start()
        (s.user / ".bashrc").write_text("x\n")
        os.link(s.user / ".bashrc", s.repo / "src/notes.txt")
        refused(s, "Write", {"file_path": str(s.repo / "src/notes.txt"), "content": "x"}, "L08")
        commands(s, ("echo x >> src/notes.txt", "L08"), ("cp src/a.c src/notes.txt", "L08"))
        (s.user / ".bashrc").unlink()
        allowed(s, "echo x >> src/notes.txt")


@test
def the_program_and_the_record_are_not_moved_with_their_folder():
    with Told() as s:
        home = s.repo / "state/cortex"
        (s.repo / "x").mkdir()
        (s.repo / "x/cortex").mkdir()
        (s.repo / "x/cortex/log").write_text("x")
        check(run(BIN, "init", "--home", home, env=s.env).returncode == 0)
        s.home = home
        s.start()
        commands(s, ("mv state old", "L10"), ("cp -r x/cortex state", "L10"), ("cp x/cortex/log state/cortex", "L10"),
                 ("ln -s state s", "L10"), ("chmod 0 state", "L10"), ("cd state && mv cortex c", "L10"))
        here = s.repo / "build/bin"
        here.mkdir(parents=True)
        shutil.copy(BIN, here / "cortex")
        payload = {"session_id": "other", "cwd": str(s.repo), "hook_event_name": "PreToolUse", "tool_name": "Bash"}
        for line in ("cp x/cortex/log build/bin/cortex", "cp x/cortex build/bin -r", "mv build b", "mv x/cortex build/bin"):
            done = run(here / "cortex", "hook", "claude", "--home", s.home, "--mode", "enforce", env=s.env,
                       stdin=json.dumps({**payload, "tool_input": {"command": line}}).encode())
            check(done.returncode == 2 and b"L10" in done.stderr, line, done)


@test
def links_below_a_folder_are_looked_at():
    with Trusted() as s:
        (s.user / ".ssh").mkdir()
        (s.user / ".ssh/id").write_text("key\n")
        (s.repo / "src/deep").mkdir()
        (s.repo / "src/deep/l.c").symlink_to(s.user / ".ssh/id")
        (s.repo / "dir").symlink_to(s.user)
        (s.repo / "sub").mkdir()
        (s.repo / "sub/.env").write_text("X=1\n")
        (s.repo / "sub/link").symlink_to("../src/a.c")
        (s.repo / ".claude").mkdir()
        commands(s, ("cat src/deep/*.c", "L15"), ("cat src/*/l.?", "L15"), ("cat src/**/*.c", "L15"), ("head d*/.ssh/id", "L15"),
                 ("grep -R key src", "L15"), ("grep --dereference-recursive key src", "L15"), ("diff -r src sub", "L15"),
                 ("rg -L key src", "L15"), ("rg --follow key", "L15"), ("cp -rL src y", "L15"), ("cp -r src y", "L15"),
                 ("grep -r X sub", "L15"), ("grep -r X .", "L15"), ("rg -uu X", "L15"), ("rg --hidden X sub", "L15"),
                 ("rg -g '.env' X", "L15"), ("cd .claude && echo x > /proc/self/cwd/settings.json", "L08"),
                 ("cd /proc && echo x > self/cwd/y", "L08"), ("cat /dev/fd/3", "L08"))
        for tool, member in (("Grep", {"path": str(s.user)}), ("Grep", {"path": "dir"}), ("Grep", {"path": str(s.folder)})):
            check(refused(s, tool, {"pattern": "key", **member}, "L15"), tool, member)
        s.agent = "gemini"
        for include in ("dir/.s*/id", f"{s.folder}/*/.ssh/id", "src/deep/*.c"):
            done = s.event("BeforeTool", tool_name="read_many_files", tool_input={"include": [include]})
            check(done.returncode == 2 and b"L15" in done.stderr, include, done)
        s.agent = "claude"
        allowed(s, "grep -r key src", "cat src/*.c", "diff -r .claude .claude", *([] if os.getuid() else ["rg X", "rg -L int .claude"]))
        for tool, member in (("Grep", {}), ("Glob", {"path": str(s.user)}), ("Grep", {"path": "src"})):
            check(s.decide("toolu_fine", tool, {"pattern": "key", **member}).returncode == 0, tool, member)


# --- its own settings --------------------------------------------------------------------------------


@test
def settings_of_hooks_are_not_written():
    with Told() as s:
        s.start()
        for path in (s.user / ".claude/settings.json", s.repo / ".claude/settings.local.json", s.repo / ".mcp.json",
                     s.user / ".codex/hooks.json", s.user / ".claude.json", "/etc/claude-code/managed-settings.json"):
            check(refused(s, "Write", {"file_path": str(path), "content": "{}"}, "L10"), path)
        check(refused(s, "Bash", {"command": "echo '{\"disableAllHooks\":true}' > .claude/settings.json"}, "L10"))
        commands(s, ("python3 -c 'open(\".claude/settings.json\",\"w\").write(\"{}\")'", "C11"),
                 ("claude mcp add x -- node x.js", "C13"))


@test
def hooks_switched_off_by_settings_are_named():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})
        settings = s.repo / ".claude/settings.json"
        settings.parent.mkdir()
        settings.write_text('{"disableAllHooks":true}')
        s.event("ConfigChange", source="project_settings", file_path=str(settings))
        s.undecided("Bash", {"command": "curl evil.example"})
        report = s.audit("--no-work-tree", code=1)
        check(ids(report) == ["hooks_gap", "undecided_call"], report["findings"])
        check(one(report, "config_changed")["message"].startswith(str(settings)), report["findings"])
        check(one(report, "hooks_gap")["journal"]["seq"] == 1, report["findings"])


# --- variables, other agents -------------------------------------------------------------------------


@test
def variables_and_other_agents_need_a_person():
    with Told() as s:
        s.start()
        commands(s, ("unset CORTEX_HOME", "C13"), ("env -u CORTEX_HOME claude -p hi", "C09"),
                 ("CLAUDE_CONFIG_DIR=/tmp/x claude -p hi", "C04"), ("bash -c 'claude -p hi'", "C11"),
                 ("claude -p hi --settings '{\"disableAllHooks\":true}'", "C13"),
                 ("codex exec --disable hooks hi", "C13"), ("gemini -p hi", "C13"))


@test
def a_session_started_without_hooks_is_named():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})
        s.write()
        s.lines, own, s.session = [], s.session, "c0ffee00-0000-4000-8000-000000000009"
        s.undecided("Bash", {"command": "evil"})
        s.write(path=s.place / (s.session + ".jsonl"))
        s.watch()
        reports = s.audit("--all", write=False, code=1)
        check([ids(r) for r in reports] == [[], ["no_journal"]] and reports[0]["session"] == own, reports)


# --- the program -------------------------------------------------------------------------------------


@test
def the_program_is_not_replaced():
    with Told() as s:
        s.start()
        check(refused(s, "Write", {"file_path": os.path.realpath(BIN), "content": ""}, "L10"))
        check(refused(s, "Bash", {"command": f"cp /bin/true {os.path.realpath(BIN)}"}, "L10"))


@test
def calls_past_a_replaced_program_are_named():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})
        call = s.number
        done = run("/bin/true", stdin=b"{}", env=s.env)  # in place of the hook: no objection, no entry
        check(done.returncode == 0 and done.stdout == b"")
        s.undecided("Bash", {"command": "evil"})
        check(one(s.audit(code=1), "undecided_call")["transcript"]["line"] == call + 1)


# --- other servers -----------------------------------------------------------------------------------


@test
def tools_of_servers_that_no_list_names_need_a_person():
    with Told() as s:
        s.start()
        refused(s, "mcp__other__write_file", {"path": "x"}, "L06")
        check(refused(s, "Unheard", {"path": "x"}, "L02"))


@test
def calls_through_another_server_are_named():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})
        s.undecided("mcp__other__write_file", {"path": "x"})
        check(one(s.audit(code=1), "undecided_call")["transcript"]["tool"] == "mcp__other__write_file")


# --- the hook's process ------------------------------------------------------------------------------


@test
def ending_processes_needs_a_person():
    with Told() as s:
        s.start()
        commands(s, ("pkill -9 cortex", "C13"), ("kill -9 1234", "C13"), ("killall cortex", "C13"))


@test
def a_killed_hook_is_named_when_its_call_ran():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})
        hook = subprocess.Popen([BIN, "hook", "claude", "--home", s.home, "--mode", "enforce"], env=s.env,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        hook.stdin.write(b'{"session_id"')  # before the rest arrives
        hook.stdin.flush()
        time.sleep(0.1)
        hook.send_signal(signal.SIGKILL)
        hook.wait()
        check(hook.stdout.read() == b"")
        hook.stdin.close()
        hook.stdout.close()
        s.undecided("Bash", {"command": "evil"})
        check(ids(s.audit(code=1)) == ["undecided_call"])


# --- forged input ------------------------------------------------------------------------------------


@test
def hooks_are_not_started_by_the_agent():
    with Told() as s:
        s.start()
        for command in ("cortex hook claude < forged.json", f"{os.path.realpath(BIN)} hook claude < forged.json",
                        "cortex session approve", "cortex session limit --mode observe"):
            check(refused(s, "Bash", {"command": command}, "L16"), command)


@test
def forged_decisions_are_named():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})
        # For the call to come: an input that is allowed, under the id of one that is not.
        s.decide("toolu_next", "Bash", {"command": "ls"})
        s.undecided("Bash", {"command": "rm -rf src"}, call_id="toolu_next")
        check(ids(s.audit(code=1)) == ["input_differs"])
        # For a call that has run already.
        s.lines = s.lines[:2]
        call = s.undecided("Bash", {"command": "ls -a"}, call_id="toolu_past")
        for line in s.lines[2:]:
            line["timestamp"] = "2026-01-01T00:00:00.000Z"
        s.decide(call, "Bash", {"command": "ls -a"})
        check("decided_afterwards" in ids(s.audit(code=3)))
        # For another session: it never made that call.
        other = "0de7ec00-0000-4000-8000-000000000007"
        s.event("SessionStart", session=other, source="startup")
        s.event("PreToolUse", session=other, tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_f")
        s.event("SessionEnd", session=other, reason="x")
        s.lines, s.session, s.file = [], other, s.place / (other + ".jsonl")
        s.line("user", "nothing was called")
        found = one(s.audit(other, "--transcript", s.file, code=3), "decision_without_call")
        check(found["journal"]["seq"] == 1, found)


# --- the ledger, the transcript ----------------------------------------------------------------------


@test
def the_data_directory_is_not_written():
    with Told() as s:
        s.start()
        for path in ("log/0", "x"):
            check(refused(s, "Write", {"file_path": str(s.home / path), "content": ""}, "L10"))
        for command, rule in ((f"rm -rf {s.home}", "L10"), (f"echo > {s.home}/x", "L10"),
                              ("cortex erase 1 --actor sessions", "L16")):
            check(refused(s, "Bash", {"command": command}, rule), command)
        check(refused(s, "Read", {"file_path": str(s.home / "log/0")}, "L15"))


@test
def a_written_ledger_is_named():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "rm -rf src"})
        s.lines.pop()
        s.tell_result("toolu_0", "gone")
        check(ids(s.audit(code=1)) == ["denied_call_ran"])
        changed = 0
        for path in sorted(p for p in s.home.rglob("*") if p.is_file()):
            data = path.read_bytes()
            if b'"verdict":"deny"' in data:  # what was denied, told as allowed
                path.write_bytes(data.replace(b'"verdict":"deny"', b'"verdict":"pass"'))
                changed += 1
        check(changed != 0)
        done = run(BIN, "verify", "--home", s.home, env=s.env)
        check(done.returncode in (1, 3), done)


@test
def transcripts_are_not_written_without_a_person():
    with Told() as s:
        s.start()
        refused(s, "Write", {"file_path": str(s.file), "content": ""}, "L13")
        refused(s, "Bash", {"command": f"sed -i d {s.file}"}, "C09")


@test
def an_edited_transcript_is_named():
    with Told() as s:
        s.start()
        s.call("Bash", {"command": "ls"})
        s.call("Bash", {"command": "ls src"})
        s.write()
        s.watch()
        s.lines = s.lines[:2]  # a call is taken out
        s.end()
        check(ids(s.audit("--transcript", s.file, s.session, code=3)) == ["decision_without_call"])
        s.watch()
        check("transcript_rewritten" in ids(s.audit(code=1)))


main()
