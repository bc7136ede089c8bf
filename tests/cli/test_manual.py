#!/usr/bin/env python3
"""Manual pages and completions: they name what the program has, and readers and shells take them.

Pages are made anew by tools/make_man.py; groff, mandoc, zsh and fish are asked where they are installed.
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from kit import BIN, TESTS, Folder, check, main, run, skip, test  # noqa: E402

ROOT = TESTS.parent
COMMANDS = json.loads(run(BIN, "help", "--json").stdout)["commands"]
PAGES = pathlib.Path(tempfile.mkdtemp(prefix="cortex-man-"))


def plain(text):
    """A page's words without its macros."""
    return re.sub(r"\\f[BIR]|\\&", "", text).replace("\\-", "-")


@test
def pages_are_made():
    done = run(sys.executable, ROOT / "tools/make_man.py", BIN, PAGES)
    check(done.returncode == 0, done.stderr)
    for word in ("cortex-run.1", "cortex_journal.3", "cortex-ledger.5", "cortex-serve.8"):
        check((PAGES / word).stat().st_size > 1000, word)


@test
def each_command_and_option_is_in_its_page():
    for command in COMMANDS:
        word = command["name"].split()[0]
        if word == "verify":
            continue  # cortex-verify(1) is about the program of that name
        page = plain((PAGES / f"cortex-{word}.1").read_text())
        check(f"cortex {command['name']} " in page, command["name"])
        for option in command["options"]:
            check("--" + option["name"] in page, command["name"], option["name"])


@test
def the_command_reference_names_each_command_and_option_that_is_there():
    commands = {command["name"]: command for command in COMMANDS}
    named = set()
    for text in re.findall(r"`cortex ([^`]+)`", (ROOT / "docs/commands.md").read_text()):
        words = text.split()
        name = next((name for name in (" ".join(words[:2]), words[0]) if name in commands), None)
        check(name is not None, "docs/commands.md invents", text)
        options = {option["name"] for option in commands[name]["options"]}
        for option in re.findall(r"--([a-z][a-z-]*)", text):
            check(option in options, "docs/commands.md invents", text)
        named.add(name)
    check(not set(commands) - named, "docs/commands.md lacks", set(commands) - named)


@test
def the_manual_and_the_command_reference_are_up_to_date():
    done = run(sys.executable, ROOT / "tools/make_man.py", "--check", BIN)
    check(done.returncode == 0, done.stdout.decode())


@test
def the_command_reference_gets_a_row_for_a_new_command_and_loses_that_of_an_old_one():
    with Folder() as folder:
        tree = pathlib.Path(folder) / "tree"
        for name in ("tools", "docs/man"):
            (tree / name).mkdir(parents=True)
        shutil.copy(ROOT / "tools/make_man.py", tree / "tools")
        shutil.copy(ROOT / "docs/man/cortex.1", tree / "docs/man")
        text = (ROOT / "docs/commands.md").read_text()
        lines = text.split("\n")
        row = next(line for line in lines if line.startswith("| `cortex key list`"))
        (tree / "docs/commands.md").write_text(
            text.replace(row, "| `cortex frobnicate FILE` | Frobnicate a file |"))
        tool = tree / "tools/make_man.py"
        done = run(sys.executable, tool, "--check", BIN)
        check(done.returncode == 1 and b"docs/commands.md is stale" in done.stdout, done)
        check(run(sys.executable, tool, "--update", BIN).returncode == 0)
        check(run(sys.executable, tool, "--check", BIN).returncode == 0)
        made = (tree / "docs/commands.md").read_text()
        check("frobnicate" not in made and "| `cortex key list` | List the keys" in made, "wrong rows")
        keys = [line for line in made.split("\n") if line.startswith("| `cortex key ")]
        check(keys == [line for line in made.split("\n") if "`cortex key " in line], keys)


@test
def usage_errors_are_reported_in_json():
    asked = 0
    for command in COMMANDS:
        if not any(option["name"] == "json" for option in command["options"]):
            continue
        asked += 1
        done = run(BIN, *command["name"].split(), "--json", "--no-such-option")
        check(done.returncode == 2 and done.stderr.startswith(b"cortex: "), command["name"], done)
        error = json.loads(done.stdout)["error"]
        check(error["code"] == "U_USAGE" and "--no-such-option" in error["detail"], done.stdout)
    check(asked > 50, asked)
    done = run(BIN, "lattice", "verify", "--json")
    check("FILE" in json.loads(done.stdout)["error"]["detail"], done.stdout)
    check(run(BIN, "lattice", "verify").stdout == b"", "nobody asked for JSON")


@test
def each_group_of_commands_has_a_summary():
    words = [command["name"].split()[0] for command in COMMANDS]
    for word in {command["name"].split()[0] for command in COMMANDS if " " in command["name"]}:
        page = (PAGES / f"cortex-{word}.1").read_text()
        about = page.split(".SH DESCRIPTION\n")[1].split(".SS")[0]
        check(about.strip(), f"src/cli/manual.c has no text about the group {word}")
    check(run(BIN, "help", "--man", "no-such-word").returncode == 2)
    check(run(BIN, "help", "--man", "run", "list").returncode == 2)
    check(len(words) > 50)


@test
def each_function_and_format_has_a_page():
    for name in (ROOT / "tools/symbols.txt").read_text().split():
        page = PAGES / f"{name}.3"
        check(page.is_symlink() and name in plain(page.read_text()), name)
    for path in (ROOT / "docs/formats").glob("*.md"):
        check((PAGES / f"cortex-{path.stem}.5").exists(), path.name)
    for name in os.listdir(ROOT / "include/cortex"):
        check(f"cortex_{name[:-2]} (3)" in (ROOT / "docs/man/libcortex.3").read_text(), name)


def all_pages():
    return sorted(PAGES.glob("*.[1358]")) + sorted((ROOT / "docs/man").glob("*.[1358]"))


@test
def the_manual_covers_every_contract_field_and_data_file():
    schema = json.loads((ROOT / "schemas/task_contract.v1.json").read_text())
    page = (ROOT / "docs/formats/contract.md").read_text()
    must, may = page.split("## What must be there")[1].split("## What may be there")
    for name in schema["properties"]:
        check(f"`{name}`" in (must if name in schema["required"] else may).split("\n## ")[0], name)
    page = (ROOT / "docs/formats/home.md").read_text()
    with Folder() as folder:
        env = {**os.environ, "CORTEX_HOME": str(folder / "home"), "CORTEX_ACTOR": "ann"}
        for words in (("init", "--no-repo", "--segment-size", "1M"), ("append", "note.x", "-"),
                      ("token", "add", "--scope", "trace:read", "--name", "x")):
            done = run(BIN, *words, env=env, cwd=folder, stdin=b"{}" if words[-1] == "-" else None)
            check(done.returncode == 0, words, done.stderr)
        for path in (folder / "home").rglob("*"):
            name = str(path.relative_to(folder / "home"))
            if path.is_file() and not name.startswith("keys/"):
                check(f"`{name}`" in page or name.endswith(("-wal", "-shm")), name, "is not described")


@test
def groff_reports_no_warning():
    groff = shutil.which("groff")
    if groff is None:
        skip("groff is not installed")
    for page in all_pages():
        if page.is_symlink():
            continue
        done = run(groff, "-man", "-ww", "-Tutf8", "-z", page)
        check(done.returncode == 0 and done.stderr == b"", page.name, done.stderr.decode())


@test
def mandoc_reports_no_warning():
    mandoc = shutil.which("mandoc")
    if mandoc is None:
        skip("mandoc is not installed")
    pages = [page for page in all_pages() if not page.is_symlink()]
    said = run(mandoc, "-Tlint", "-Wwarning", *pages).stdout.decode().splitlines()
    # Pages carry the version, no date: the same tree makes the same bytes.
    said = [line for line in said if "missing date" not in line]
    check(not said, "\n".join(said))


# --- completions --------------------------------------------------------------------------------


def read_until(terminal, wanted, seconds):
    said, end = b"", time.monotonic() + seconds
    while wanted not in said and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                said += os.read(terminal, 65536)
            except OSError:
                break
    return said


def zsh_completes(zsh, setup, typed, wanted):
    """What stands on the line after TAB, in an interactive zsh without anybody's settings."""
    child, terminal = pty.fork()
    if child == 0:
        os.execve(zsh, [zsh, "-f", "-i"], {"TERM": "dumb", "HOME": str(PAGES), "PATH": os.environ["PATH"]})
    try:
        os.write(terminal, f"PS1='%# ' PS2=; unsetopt zle_bracketed_paste; {setup}; echo re''ady\n".encode())
        check(b"ready" in read_until(terminal, b"\nready", 60), "zsh did not start")
        os.write(terminal, typed.encode() + b"\t")
        said = read_until(terminal, wanted.encode(), 60)
        check(wanted.encode() in said, typed, "became", said)
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


@test
def zsh_completes_from_fpath_and_when_sourced():
    zsh = shutil.which("zsh")
    if zsh is None:
        skip("zsh is not installed")
    with Folder() as path:
        script = pathlib.Path(path) / "_cortex"
        script.write_bytes(run(BIN, "completion", "zsh").stdout)
        loaded = f"fpath=({path} $fpath); autoload -Uz compinit; compinit -D -u"
        # The first one is answered while zsh loads the file, the others by what it left.
        zsh_completes(zsh, loaded, "cortex lattice heatm", "cortex lattice heatmap")
        zsh_completes(zsh, loaded + f"; source {script}", "cortex doct", "cortex doctor")
        zsh_completes(zsh, f"autoload -Uz compinit; compinit -D -u; source {script}",
                      "cortex lattice state --strat", "--strategy")


@test
def fish_completes():
    fish = shutil.which("fish")
    if fish is None:
        skip("fish is not installed")
    with Folder() as path:
        script = pathlib.Path(path) / "cortex.fish"
        script.write_bytes(run(BIN, "completion", "fish").stdout)
        environment = {"HOME": str(path), "PATH": os.environ["PATH"], "TERM": "dumb"}

        def complete(line):
            done = run(fish, "--no-config", "-c", f"source {script}; complete -C '{line}'",
                       env=environment)
            check(done.returncode == 0 and done.stderr == b"", done.stderr)
            return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]

        check("doctor" in complete("cortex do"), complete("cortex do"))
        check("verify" in complete("cortex lattice ve"), complete("cortex lattice ve"))
        check("--strategy" in complete("cortex lattice state --str"))
        check("claude-code" in complete("cortex import cl"), complete("cortex import cl"))
        check("verify" not in complete("cortex memory ve"))


try:
    main()
finally:
    shutil.rmtree(PAGES)
