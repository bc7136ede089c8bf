#!/usr/bin/env python3
"""The program from outside: exit codes, what goes to which stream, errors, files, help, completion.

    test_cli.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN

Answers themselves are judged elsewhere against the vectors; here it is the command line that is
tried.  Closes with `N passed, N failed, N skipped`.
"""
import gzip
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

from kit import BIN, Folder, expect, main, skip, test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
INCIDENT = str(ROOT / "examples/incident.jsonl")
MERGE = str(ROOT / "examples/merge.jsonl")
ENV = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
# A place where there is one: a file that is not there, or is no history at all, has none.
ERROR_LINE = re.compile(r"^cortex: (.+?)(?::(\d+):(\d+))?: (U_[A-Z0-9]+): .+$", re.M)


def run(*args, input=None, env=None, stdout=subprocess.PIPE, cwd=None, **more):
    return subprocess.run([BIN, *args], input=input, stdout=stdout, stderr=subprocess.PIPE,
                          env={**ENV, **(env or {})}, cwd=cwd, timeout=60, **more)


def expect_refused(done, code_name):
    """Exit 3, one error line of the right form, nothing else."""
    expect(done, 3)
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 1 and ERROR_LINE.match(lines[0]), lines
    assert ERROR_LINE.match(lines[0]).group(4) == code_name, lines
    return ERROR_LINE.match(lines[0])


def commands():
    return json.loads(expect(run("help", "--json"), 0).stdout)["commands"]


# --- usage ------------------------------------------------------------------------------------------


@test
def help_all_has_each_command_once_and_the_start_has_ten():
    names = [command["name"] for command in commands()]
    listed = [re.split("  +", line.strip())[0] for line in
              expect(run("help", "all"), 0).stdout.decode().splitlines() if re.match("  [a-z]", line)]
    assert sorted(listed) == sorted(names), set(names) ^ set(listed)
    first = [re.split("  +", line.strip())[0] for line in
             expect(run(), 0).stdout.decode().splitlines() if re.match("  [a-z]", line)]
    assert len(first) == 10 and set(first) <= set(names), first


@test
def without_arguments_commands_are_listed():
    plain = expect(run(), 0, "evidence")
    assert plain.stdout == run("help").stdout == run("--help").stdout == run("-h").stdout
    assert plain.stderr == b""


@test
def group_and_command_help_work_in_every_spelling():
    group = expect(run("lattice"), 0, "lattice verify")
    assert b"doctor" not in group.stdout
    assert group.stdout == run("lattice", "--help").stdout == run("help", "lattice").stdout
    one = expect(run("help", "lattice", "verify"), 0, "Usage: cortex lattice verify")
    assert one.stdout == run("lattice", "verify", "--help").stdout
    assert one.stdout == run("lattice", "verify", "-h", "--json").stdout


@test
def every_command_explains_itself():
    for command in commands():
        words = command["name"].split()
        text = expect(run("help", *words), 0).stdout.decode()
        for part in ("Usage: cortex " + command["name"], "Options:", "Exit status:", "Example:"):
            assert part in text, (command["name"], part)
        for option in command["options"]:
            assert f"--{option['name']}" in text
        assert max(map(len, text.splitlines())) <= 100


@test
def unknown_commands_and_options_are_usage_errors_with_suggestions():
    expect(run("vesrion"), 2, err="did you mean 'version'?")
    expect(run("heatmap", "x"), 2, err="did you mean 'lattice heatmap'?")
    expect(run("lattice", "verfy", "x"), 2, err="did you mean 'lattice verify'?")
    expect(run("xyzzyplugh"), 2, err="there is no command 'xyzzyplugh'")
    expect(run("help", "lattice", "verfy"), 2, err="did you mean 'lattice verify'?")
    done = expect(run("lattice", "verify", MERGE, "--stict"), 2, err="did you mean '--strict'?")
    assert b"See 'cortex help lattice verify'." in done.stderr and done.stdout == b""


@test
def wrong_values_are_answered_with_the_nearest_one():
    expect(run("gate", "schema", "a", "b", "--draft", "2020"), 2, err="expected one of 2020-12|07")
    expect(run("lattice", "state", MERGE, "n2", "--strategy", "polcy"), 2, err="did you mean 'policy'?")
    expect(run("completion", "bsh"), 2, err="did you mean 'bash'?")
    meant = {"find": "search", "find x": "search", "live limits": "session limit", "live": "session list",
             "limits": "session limit", "sessions": "session list", "sessions shw": "session show",
             "memories": "memory list", "snapshots": "snapshot list", "token new": "token add",
             "trace list": "trace query", "memory search": "memory find", "delete": "erase", "servr": "serve"}
    for typed, name in meant.items():
        expect(run(*typed.split()), 2, err=f"did you mean '{name}'?")
    for typed in ("agents", "graph", "token zzzz", "qq"):  # nothing is better than something else
        done = run(*typed.split())
        assert done.returncode == 2 and b"did you mean" not in done.stderr, done.stderr
    expect(run("memory", "write", "Fct", "{}", cwd="/", env={"CORTEX_HOME": "/nonexistent"}), 2, err="did you mean 'Fact'?")


@test
def former_names_are_accepted_quietly():
    table = (ROOT / "src/cli/former_names.h").read_text()
    renamed = re.findall(r'\b(COMMAND|OPTION)\("([^"]+)", "([^"]+)"\)', table)
    assert len(renamed) == table.count('("') and renamed
    everything = b"".join(run(*words).stdout for words in (
        ("help", "all"), ("help", "--json"), ("help", "--man"), ("completion", "bash")))
    by_name = {command["name"]: command for command in commands()}
    for kind, old, now in renamed:
        if kind == "COMMAND":
            assert now in by_name and old not in by_name and old.encode() not in everything, old
            done = expect(run(*old.split(), "--help"), 0)
            assert done.stdout == run(*now.split(), "--help").stdout and done.stderr == b"", old
            continue
        having = [(name, option) for name, command in by_name.items()
                  for option in command["options"] if option["name"] == now]
        assert having, now
        for name, option in having:
            assert all(other["name"] != old for other in by_name[name]["options"]), (name, old)
            value = [] if option["value"] is None else ["1"]
            done = expect(run(*name.split(), f"--{old}", *value, "--help"), 0)
            assert done.stdout == run("help", *name.split()).stdout and done.stderr == b"", (name, old)


@test
def missing_operands_name_what_was_expected():
    expect(run("lattice", "verify"), 2, err="expected FILE, for example: cortex lattice verify")
    expect(run("lattice", "why", MERGE, "n2"), 2, err="expected KEY, for example:")
    expect(run("lattice", "bisect", MERGE, "n2"), 2, err="expected PREDICATE")
    expect(run("import"), 2, err="expected FORMAT and FILE")
    expect(run("import", "otlp"), 2, err="expected FORMAT and FILE")
    expect(run("import", "no-such-format", MERGE), 2, err="no-such-format")
    expect(run("lattice", "verify", MERGE, "extra"), 2, err="one operand too many")
    expect(run("completion", "tcsh"), 2, err="bash")


@test
def options_may_stand_anywhere():
    plain = run("lattice", "verify", MERGE, "--json").stdout
    assert plain == run("lattice", "verify", "--json", MERGE).stdout
    assert plain == run("lattice", "verify", "--json", "--", MERGE).stdout
    with Folder() as folder:
        shutil.copy(MERGE, folder / "--json")
        expect(run("lattice", "verify", "--", "--json", cwd=folder), 0, "Loaded 4 trace nodes")


@test
def control_characters_in_names_do_not_reach_the_terminal():
    done = expect(run("lattice", "verify", "no\x1b[31m\nfile"), 3)
    assert b"\x1b" not in done.stderr and done.stderr.count(b"\n") == 1


# --- verify -----------------------------------------------------------------------------------------


@test
def verify_exits_with_0_1_or_3():
    expect(run("lattice", "verify", INCIDENT, "--strict"), 0, "seals=all ids=content")
    expect(run("lattice", "verify", MERGE, "--strict"), 1, "E_SEAL_MISSING")
    expect_refused(run("lattice", "verify", "/nonexistent/file"), "U_IO")
    expect_refused(run("lattice", "verify", str(ROOT)), "U_IO")


@test
def verify_prints_exactly_the_seed_text():
    done = expect(run("lattice", "verify", MERGE, "--compare", "agent_a", "agent_b"), 0)
    assert done.stdout.decode() == (
        "=== CORTEX FORENSIC DEBUGGER (CFD) v2.0.0 ===\n"
        "Loaded 4 trace nodes from DATG.\n"
        "Branch 'system': VALID\nBranch 'agent_a': VALID\nBranch 'agent_b': VALID\n"
        "[SUCCESS] All branches verified successfully.\n"
        "--- COMPARING AGENTS: agent_a vs agent_b ---\n"
        "Lowest Common Ancestor (LCA): n0\n"
        "Agent agent_a sub-path extensions: ['n1_a', 'n2']\n"
        "Agent agent_b sub-path extensions: ['n1_b']\n"
        "[SUCCESS] Multi-Agent CFD Verification Complete. 100% congruent.\n"
        "Evidence: hash=held monotonic=held lineage=held containment=held structure=held "
        "seals=none ids=labels time=ordered anchor=none\n")
    assert done.stderr == b""
    expect(run("lattice", "verify", MERGE, "--compare", "agent_a", "nobody"), 2, err="'nobody'")


@test
def verify_reads_standard_input():
    text = pathlib.Path(MERGE).read_bytes()
    for words in (["lattice", "verify"], ["verify"]):
        for form in ([], ["--json"]):
            assert expect(run(*words, "-", *form, input=text), 0).stdout == \
                run("lattice", "verify", MERGE, *form).stdout
        expect_refused(run(*words, "-", input=b""), "U_EMPTY")


@test
def refusals_have_line_and_byte_in_text_and_json():
    with Folder() as folder:
        for name, text, code in (
                ("cut", b'{"node_id":"a"', "U_SYNTAX"), ("nan", b'{"a":NaN}', "U_NUMBER"),
                ("twice", b'{"a":1}\n{"b":1,"b":2}\n', "U_DUPKEY"), ("bom", b"\xef\xbb\xbf{}", "U_BOM"),
                ("utf8", b'{"a":"\xff"}', "U_UTF8"), ("shape", b"[1]", "U_SHAPE"),
                ("empty", b"", "U_EMPTY"), ("deep", b"[" * 1025 + b"]" * 1025, "U_DEPTH")):
            path = folder / name
            path.write_bytes(text)
            for words in (["lattice", "verify"], ["lattice", "heatmap"], ["lattice", "anchor"]):
                plain = run(*words, str(path))
                line = expect_refused(plain, code)
                assert plain.stdout == b""
                done = run(*words, str(path), "--json")
                expect_refused(done, code)
                error = json.loads(done.stdout)["error"]
                assert sorted(error) == ["byte", "code", "detail", "line"]
                assert error["code"] == code and error["line"] == int(line.group(2) or 0)
                assert error["byte"] == int(line.group(3) or 0)
                assert ":0:0:" not in line.group(0) and (name == "empty") == (line.group(2) is None), line.group(0)
        assert int(expect_refused(run("lattice", "verify", str(folder / "twice")),
                                  "U_DUPKEY").group(2)) == 2


@test
def limits_are_refused_with_their_codes():
    expect_refused(run("lattice", "verify", INCIDENT, "--max-bytes", "1K"), "U_LIMIT")
    expect(run("lattice", "verify", INCIDENT, "--max-bytes", "1M"), 0)
    expect_refused(run("lattice", "verify", INCIDENT, "--max-depth", "2"), "U_DEPTH")
    expect(run("lattice", "verify", INCIDENT, "--max-depth", "9", "--threads", "1"), 0)


@test
def heads_and_anchors():
    with Folder() as folder:
        anchor = folder / "anchor.json"
        done = expect(run("lattice", "anchor", INCIDENT), 0, '{"cortex_anchor":1,"heads":{')
        anchor.write_bytes(done.stdout)
        expect(run("lattice", "verify", INCIDENT, f"--head=@{anchor}"), 0, "anchor=root")
        heads = json.loads(done.stdout)["heads"]
        expect(run("lattice", "verify", INCIDENT, "--head", f"coder={heads['coder']}"), 0,
               "anchor=some_heads")
        every = [word for agent, hash in heads.items() for word in ("--head", f"{agent}={hash}")]
        expect(run("lattice", "verify", INCIDENT, *every), 0, "anchor=heads")
        expect(run("lattice", "verify", INCIDENT, "--head", "coder=" + "0" * 64), 1, "E_HEAD")
        for mixed in ([f"--head=@{anchor}", "--head", "a=b"], [f"--head=@{anchor}"] * 2,
                      ["--head", "nothing"], ["--head", "=x"]):
            expect(run("lattice", "verify", INCIDENT, *mixed), 2, err="--head")
        cut = folder / "cut.jsonl"
        cut.write_bytes(b"".join(pathlib.Path(INCIDENT).read_bytes().splitlines(True)[:-1]))
        expect(run("lattice", "verify", str(cut)), 0)
        expect(run("lattice", "verify", str(cut), f"--head=@{anchor}"), 1,
               "Anchor: INVALID")
        expect_refused(run("lattice", "verify", INCIDENT, "--head=@/nonexistent"), "U_IO")
        broken = folder / "broken.json"
        broken.write_text("{")
        expect(run("lattice", "verify", INCIDENT, f"--head=@{broken}"), 3)


@test
def verify_names_foreign_traces():
    trace = {"trace": {"id": "t", "name": "n"}, "observations": [
        {"id": "o", "traceId": "t", "type": "SPAN", "startTime": "2025-01-01T00:00:00.000Z"}]}
    with Folder() as folder:
        path = folder / "trace.json"
        path.write_text(json.dumps(trace))
        done = run("verify", str(path))
        expect_refused(done, "U_FOREIGN")
        assert f"cortex import langfuse {path}".encode() in done.stderr
        done = run("verify", "-", "--json", input=path.read_bytes())
        assert json.loads(expect(done, 3).stdout)["error"]["code"] == "U_FOREIGN"
    for example in (INCIDENT, MERGE):
        assert expect(run("verify", example), 0).stdout == run("lattice", "verify", example).stdout


@test
def seals_are_not_all_beside_an_unusable_node():
    trace = {"trace": {"id": "t", "name": "n"}, "observations": [
        {"id": "o", "traceId": "t", "type": "SPAN", "startTime": "2025-01-01T00:00:00.000Z"}]}
    with Folder() as folder:
        path, lattice = folder / "trace.json", folder / "lattice.jsonl"
        path.write_text(json.dumps(trace))
        expect(run("import", "langfuse", str(path), "-o", str(lattice)), 0)
        expect(run("lattice", "verify", str(lattice)), 0, "seals=all")
        with lattice.open("ab") as file:
            file.write(b'{"node_id":"bad","agent_id":"b","event":{}}\n')
        expect(run("lattice", "verify", str(lattice)), 1, "seals=some")


FOREIGN = {
    "qwen.jsonl": (b'{"uuid":"a","parentUuid":null,"sessionId":"s","timestamp":'
                   b'"2026-01-01T00:00:00Z","type":"user","cwd":"/","version":"0.5",'
                   b'"message":{"role":"user","parts":[{"text":"hi"}]}}\n'
                   b'{"uuid":"b","parentUuid":"a","sessionId":"s","type":"system",'
                   b'"subtype":"ui_telemetry","systemPayload":{}}\n', b"qwen-code"),
    "droid.jsonl": (b'{"type":"session_start","id":"s","title":"t","owner":"o","version":2,'
                    b'"cwd":"/"}\n{"type":"message","id":"m","timestamp":"2026-01-01T00:00:00Z",'
                    b'"message":{"role":"user","content":[{"type":"text","text":"hi"}]}}\n',
                    b"droid"),
    "droid-cut.jsonl": (b'{"type":"message","id":"m","parentId":"l","timestamp":'
                        b'"2026-01-01T00:00:00Z","message":{"role":"assistant","content":[]}}\n',
                        b"droid"),
    "part.json": (b'{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"reasoning",'
                  b'"text":"hm","time":{"start":1,"end":2}}', b"opencode"),
    "phoenix.json": (json.dumps({"data": [{"id": "1", "name": "chat", "context": {
        "trace_id": "a" * 32, "span_id": "b" * 16}, "span_kind": "LLM", "parent_id": None}],
        "next_cursor": None}).encode(), b"phoenix"),
    "phoenix.jsonl": (b'{"name":"chat","span_kind":"LLM","context.span_id":"b","context.trace_id":'
                      b'"a"}\n', b"phoenix"),
}

UNKNOWN = {
    "log.jsonl": (b'{"level":"info","msg":"started","trace_id":"1","timestamp":"now"}\n', b"nearest"),
    "events.json": (b'{"name":"x"}', b"no known format"),
}


@test
def files_of_other_programs_are_taken_for_what_they_are():
    with Folder() as folder:
        for name, (content, kind) in FOREIGN.items():
            path = folder / name
            path.write_bytes(content)
            expect_refused(run("verify", str(path)), "U_FOREIGN")
            assert kind + b" trace" in run("verify", str(path)).stderr
            assert expect(run("import", "auto", str(path)), 0).stderr.startswith(kind + b": ")
            for question in ("verify", "heads"):
                done = expect(run("lattice", question, str(path)), 0)
                assert kind + b" trace, imported for this answer" in done.stderr, done.stderr


@test
def a_byte_order_mark_before_a_session_is_no_part_of_it():
    with Folder() as folder:
        for name, (content, kind) in FOREIGN.items():
            (folder / name).write_bytes(content)
            (folder / "marked").write_bytes(b"\xef\xbb\xbf" + content)
            plain = expect(run("import", "auto", str(folder / name)), 0)
            marked = expect(run("import", "auto", str(folder / "marked")), 0)
            assert plain.stderr == marked.stderr, (name, marked.stderr)
            assert kind + b" trace, imported" in expect(run("lattice", "heads", str(folder / "marked")), 0).stderr


@test
def what_no_importer_reads_is_named_with_what_to_do():
    line = b'{"role":"user","content":"hi"}\n'
    with Folder() as folder:
        for content, found, advice in ((gzip.compress(line), b"gzip data", b"gunzip -c"),
                                       (line.decode().encode("utf-16"), b"UTF-16 text", b"iconv"),
                                       (b"PK\x03\x04....", b"a zip archive", b"unpack"),
                                       (b"\x28\xb5\x2f\xfd..", b"zstd data", b"zstd -dc")):
            (folder / "file").write_bytes(content)
            for args in (["import", "auto"], ["lattice", "heads"], ["view", "--no-browser"]):
                done = expect(run(*args, str(folder / "file")), 3)
                assert found in done.stderr and advice in done.stderr, (args, done.stderr)
        (folder / "file").write_bytes(b"# Title\n\ntext\n")
        for args in (["import", "auto"], ["lattice", "heads"], ["view", "--no-browser"]):
            done = expect(run(*args, str(folder / "file")), 3)
            assert b"text that is no JSON" in done.stderr and b"import --list" in done.stderr, done.stderr
        for args in (["import", "auto"], ["view", "--no-browser"]):
            assert b"found a folder, expected a file" in expect(run(*args, str(folder)), 3).stderr, args
        assert b"curl -sS" in expect(run("view", "https://a.example/s.jsonl"), 3).stderr
        (folder / "file").write_bytes(line + b'{"role":"user","content":"hi"')
        done = expect(run("import", "messages", str(folder / "file"), "-o", str(folder / "out")), 1)
        assert b"bad records: 1, in line 2: U_SYNTAX, no complete JSON\n" in done.stderr, done.stderr
        (folder / "file").write_bytes(b"\n\n")
        assert b"an empty file" in expect(run("import", "auto", str(folder / "file")), 3).stderr
        (folder / "file").write_bytes(line)
        assert b"cortex import auto " in expect(run("import", str(folder / "file")), 2).stderr
        done = expect(run("import", "claude", str(folder / "file")), 2)
        assert b"did you mean 'claude-code'?" in done.stderr, done.stderr


@test
def one_line_of_another_program_does_not_decide_the_format():
    turns = [{"type": "user", "uuid": str(n), "parentUuid": str(n - 1), "sessionId": "s", "message": {"content": "x"}}
             for n in range(1, 8)]
    stray = {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "c"}}
    item = {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": {"type": "message", "role": "user"}}
    with Folder() as folder:
        path = folder / "session.jsonl"
        for lines, format_name in ((turns, "claude-code"), ([stray, *turns], "claude-code"),
                                   ([*turns[:3], stray, *turns[3:]], "claude-code"),
                                   ([stray, item, item, turns[0], item], "codex"), ([turns[0], stray, item], "codex")):
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            summary = json.loads(expect(run("import", "auto", str(path), "-o", str(folder / "o"), "--json"), 0).stdout)
            assert summary["format"] == format_name, (format_name, summary["format"])


@test
def an_array_a_markdown_chat_and_bytes_are_named_with_a_way_on():
    turn = {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s", "message": {"content": "x"}}
    chat = "# Title\n_Exported on 1/2/2026 at 10:00:00 GMT from Cursor (1.2)_\n\n---\n\n**User**\n\nhi\n"
    with Folder() as folder:
        for name, content, words in (
                ("array.json", json.dumps([turn, turn], indent=2), ["one JSON array", "jq -c '.[]' FILE > FILE.jsonl"]),
                ("one.json", json.dumps([turn]), ["one JSON array"]),
                ("chat.md", chat, ["Cursor exported as Markdown", "state.vscdb"]),
                ("notes.md", "# Notes\n", ["no JSON", "~/.claude/projects"]),
                ("bytes", "\x7fELF\0\0", ["bytes that are no text", "import --list"]),
                ("empty", "", ["an empty file", "first answer"])):
            path = folder / name
            path.write_text(content)
            for args in (["import", "auto", str(path)], ["verify", str(path)], ["lattice", "heads", str(path)]):
                done = expect(run(*args), 3, err=words[0])
                text = done.stderr.decode()
                assert all(word in text for word in words), (args, text)
                assert ":0:0:" not in text and text.count(str(path)) == 1, text
            shown = expect(run("show", str(path)), 0).stdout.decode()
            assert words[0] in shown or name == "notes.md", shown
        (folder / "turns.jsonl").write_text(json.dumps(turn) + "\n")
        shown = expect(run("show", str(folder / "turns.jsonl")), 0).stdout.decode()
        assert "a claude-code session" in shown and "cortex view" in shown, shown
        expect(run("import", "claud-code", str(folder / "turns.jsonl")), 2, err="did you mean 'claude-code'?")
        fixed = folder / "fixed.jsonl"  # what the message says
        done = subprocess.run(["jq", "-c", ".[]", str(folder / "array.json")], stdout=subprocess.PIPE, check=False) \
            if shutil.which("jq") else None
        if done is not None:
            fixed.write_bytes(done.stdout)
            expect(run("import", "auto", str(fixed), "-o", str(folder / "o")), 0)


@test
def what_an_import_found_is_explained():
    with Folder() as folder:
        path = folder / "s.jsonl"
        path.write_text(json.dumps({"type": "never-seen", "uuid": "1", "parentUuid": "gone", "sessionId": "s"}) + "\n")
        done = expect(run("import", "claude-code", str(path), "-o", str(folder / "o")), 0)
        for words in ("unknown_type: 1  records of a kind that this version does not know",
                      "dangling_parent: 1  records whose parent is in none of the files", "no_time: 1  records without"):
            assert words in done.stderr.decode(), done.stderr


@test
def files_of_no_known_program_are_not_called_broken():
    with Folder() as folder:
        for name, (content, words) in UNKNOWN.items():
            path = folder / name
            path.write_bytes(content)
            for args in (["verify", path], ["lattice", "verify", path], ["lattice", "heads", path],
                         ["import", "auto", path]):
                done = run(*map(str, args))
                if args[0] != "import":
                    expect_refused(done, "U_FOREIGN")
                else:
                    expect(done, 3)
                wanted = b"no trace of" if (args[0], words) == ("import", b"no known format") else words
                assert wanted in done.stderr, (args, done.stderr)
                for word in (b"INVALID", b"E_", b"roken"):
                    assert word not in done.stdout, (args, done.stdout)
            done = run("lattice", "verify", "-", input=content)
            expect_refused(done, "U_FOREIGN")


@test
def lattice_commands_import_foreign_traces_by_themselves():
    trace = {"trace": {"id": "t", "name": "n"}, "observations": [
        {"id": "o", "traceId": "t", "type": "SPAN", "startTime": "2025-01-01T00:00:00.000Z"}]}
    with Folder() as folder:
        path = folder / "trace.json"
        path.write_text(json.dumps(trace, indent=1))
        lattice = folder / "lattice.jsonl"
        expect(run("import", "langfuse", str(path), "-o", str(lattice)), 0)
        for question in (["verify"], ["heads", "--json"]):
            wanted = expect(run("lattice", question[0], str(lattice), *question[1:]), 0).stdout
            done = expect(run("lattice", question[0], str(path), *question[1:]), 0)
            assert done.stdout == wanted, (question, done.stdout)
            assert b"imported for this answer" in done.stderr, done.stderr
            piped = run("lattice", question[0], "-", *question[1:], input=path.read_bytes())
            assert expect(piped, 0).stdout == wanted
        # `view` opens its lattice first; without the page it says so afterwards.
        viewer = subprocess.Popen([BIN, "lattice", "view", str(path), "--json"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            first = json.loads(viewer.stdout.readline())
        finally:
            viewer.terminate()
            _, errors = viewer.communicate(timeout=30)
        assert "url" in first or "built without the page" in first["error"]["detail"], first
        assert b"imported for this answer" in errors, errors


@test
def folders_are_named_and_file_names_can_be_copied():
    with Folder() as root:
        folder = root / "it's a folder"
        folder.mkdir()
        session = folder / "a b.jsonl"
        session.write_text('{"type":"user","uuid":"u","sessionId":"s","message":{"content":"x"}}\n')
        home = {"CORTEX_HOME": str(folder / "home")}
        quoted = "'" + str(session).replace("'", "'\\''") + "'"
        expect(run("init", "--no-repo", env=home), 0)
        shown = expect(run("show", str(session), env=home), 0).stdout.decode()
        assert shown.endswith(f"cortex view {quoted}\n"), shown
        done = expect(run("lattice", "heads", str(session)), 0)
        assert f"cortex import claude-code {quoted} -o FILE" in done.stderr.decode(), done.stderr
        expect(run("verify", str(session)), 3, err=f"cortex import claude-code {quoted} -o")
        (folder / "run").mkdir()
        (folder / "run/events.jsonl").write_text("")
        for word in ("show", "why", "evidence"):
            expect(run(word, str(folder), env=home), 2, err="found a folder")
            expect(run(word, str(folder / "home"), env=home), 2, err="cortex status --home")
            expect(run(word, str(folder / "run"), env=home), 2, err="cortex run verify")
        expect(run("show", "nothing-of-that-name", env=home), 2, err="no object is called")


# --- questions --------------------------------------------------------------------------------------


QUESTIONS = (["state", "@coder"], ["why", "@coder", "refund_limit"], ["heatmap"], ["heads"],
             ["compare", "coder", "reviewer"], ["show", "@coder"],
             ["bisect", "@researcher", "/memory/refund_limit>=50000"])


def ask(question, path, *options, **more):
    return run("lattice", question[0], path, *question[1:], *options, **more)


@test
def questions_answer_in_text_and_json():
    for question in QUESTIONS:
        text = expect(ask(question, INCIDENT), 0)
        assert text.stdout.endswith(b"\n") and text.stderr == b"", question
        done = expect(ask(question, INCIDENT, "--json"), 0)
        assert done.stdout.count(b"\n") == 1, question
        assert json.loads(done.stdout)["verified"] is True, question
        assert expect(ask(question, "-", "--json", input=pathlib.Path(INCIDENT).read_bytes()),
                      0).stdout == done.stdout, question


@test
def questions_on_a_broken_history_answer_with_1():
    with Folder() as folder:
        path = folder / "forged.jsonl"
        path.write_text(pathlib.Path(INCIDENT).read_text().replace('"amount":4800.0', '"amount":1800.0', 1))
        for question in QUESTIONS:
            done = expect(ask(question, str(path), "--json"), 1)
            assert json.loads(done.stdout)["verified"] is False, question
            expect(ask(question, str(path)), 1, err="does not hold")


@test
def questions_about_missing_nodes_are_refused():
    for question in (["state", "nobody"], ["state", "@nobody"], ["why", "x", "y"], ["show", "x"],
                     ["compare", "coder", "nobody"], ["bisect", "x", "/memory"],
                     ["bisect", "@coder", "no pointer"], ["state", "@coder", "--priority", "coder"],
                     ["state", "@coder", "--strategy", "best"], ["state", "@coder", "--base", "x"],
                     ["why", "@coder", "x", "--section", "goals"]):
        expect(ask(question, INCIDENT), 2)
        assert ask(question, INCIDENT).stderr.startswith(b"cortex: ")
    for question in QUESTIONS:
        expect_refused(ask(question, "/nonexistent"), "U_IO")


@test
def a_cycle_prevents_only_states():
    nodes = []
    for line in pathlib.Path(MERGE).read_text().splitlines():
        node = json.loads(line)
        node["parents"] = ["n2"] if node["node_id"] == "n0" else node["parents"]
        nodes.append(json.dumps(node))
    text = "\n".join(nodes).encode()
    expect(run("lattice", "verify", "-", input=text), 1, "E_CYCLE")
    expect(run("lattice", "heatmap", "-", input=text), 1)
    for question in (["state", "n2"], ["why", "n2", "x"], ["compare", "agent_a", "agent_b"],
                     ["bisect", "n2", "/memory/x"]):
        expect(ask(question, "-", input=text), 3)


@test
def state_options_change_the_state():
    assert json.loads(run("lattice", "state", MERGE, "n2", "--json").stdout)["state"]["memory"] == {
        "done": True, "note": {"k": [1, 2]}, "plan": "A", "task": "audit", "x": 3}
    before = json.loads(run("lattice", "state", MERGE, "n2", "--json", "--inherited").stdout)
    assert "done" not in before["state"]["memory"]
    forms = [["--base", "none"], ["--strategy", "policy", "--priority", "agent_a=2"],
             ["--strategy", "manual"]]
    for form in forms:
        done = json.loads(expect(run("lattice", "state", INCIDENT, "@researcher", "--json", *form),
                                 0).stdout)
        assert done["node"]
    done = json.loads(run("lattice", "why", MERGE, "n2", "x", "--json").stdout)
    assert [(c["node"], c["via"]) for c in done["changes"]] == [
        ("n2", "merge"), ("n1_b", "delta"), ("n1_a", "delta"), ("n0", "delta")]


# --- pictures, imports, files -----------------------------------------------------------------------


@test
def render_has_four_forms():
    expect(run("lattice", "render", INCIDENT), 0, "researcher")
    ascii = expect(run("lattice", "render", INCIDENT, "--ascii", "--max", "5"), 0)
    assert all(byte < 0x7f for byte in ascii.stdout)
    expect(run("lattice", "render", INCIDENT, "--svg"), 0, "<svg")
    expect(run("lattice", "render", INCIDENT, "--dot"), 0, "digraph")
    json.loads(expect(run("lattice", "render", INCIDENT, "--layout-json"), 0).stdout)
    expect(run("lattice", "render", INCIDENT, "--svg", "--dot"), 2, err="expected one of")


@test
def output_files_are_written_atomically():
    with Folder() as folder:
        out = folder / "out.svg"
        out.write_text("old")
        done = expect(run("lattice", "render", INCIDENT, "--svg", "-o", str(out)), 0)
        assert done.stdout == b"" and out.read_text().startswith("<")
        assert [p.name for p in folder.iterdir()] == ["out.svg"]
        link = folder / "link.svg"
        link.symlink_to(out)
        expect(run("lattice", "render", INCIDENT, "--dot", f"-o{link}"), 0)
        assert link.is_symlink() and "digraph" in out.read_text()
        expect(run("lattice", "render", INCIDENT, "--svg", "-o", str(folder / "no/where")), 3,
               err="U_IO")
        expect(run("lattice", "render", INCIDENT, "--svg", "-o", "/dev/full"), 3)
        assert pathlib.Path("/dev/full").is_char_device()
        assert expect(run("lattice", "render", INCIDENT, "--svg", "-o", "-"), 0).stdout != b""


OTLP = {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": [
    {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1", "name": "a",
     "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000"}]}]}]}


@test
def import_lists_its_formats():
    names = [f["name"] for f in json.loads(expect(run("import", "--list", "--json"), 0).stdout)["formats"]]
    text = expect(run("import", "--list"), 0).stdout.decode()
    offered = next(c for c in commands() if c["name"] == "import")
    assert [o["name"] for o in offered["operands"]] == ["FORMAT", "FILE"]
    completion = run("completion", "bash").stdout.decode()
    for name in names:
        assert name in text
        assert re.search(rf"words='[^']*\b{re.escape(name)}\b", completion), name
    assert set(names) >= {"otlp", "otel-sdk", "langfuse", "claude-code", "codex", "swe-agent",
                          "tau-bench", "who-when"}


@test
def import_writes_a_lattice_and_counts():
    with Folder() as folder:
        source, out = folder / "spans.json", folder / "out.jsonl"
        source.write_text(json.dumps(OTLP))
        done = expect(run("import", "otlp", str(source)), 0)
        assert done.stdout.count(b"\n") >= 2 and done.stderr != b""
        assert expect(run("lattice", "verify", "-", "--strict", input=done.stdout), 0)
        to_file = expect(run("import", "otlp", str(source), "-o", str(out), "--json"), 0)
        assert out.read_bytes() == done.stdout and json.loads(to_file.stdout)
        assert sorted(p.name for p in folder.iterdir()) == ["out.jsonl", "spans.json"]
        plain = expect(run("import", "otlp", str(source), "--plain-ids"), 0)
        assert b'"node_id":"s0"' in plain.stdout
        source.write_text("{")
        expect(run("import", "otlp", str(source), "-o", str(out)), 3)
        assert out.read_bytes() == done.stdout, "a failed import must leave the old file"
        assert sorted(p.name for p in folder.iterdir()) == ["out.jsonl", "spans.json"]
        expect(run("import", "otlp", "/nonexistent"), 3, err="U_IO")


@test
def import_with_bad_records_is_complete_and_1():
    line = {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "s",
            "timestamp": "2025-01-01T00:00:00.000Z", "message": {"role": "user", "content": "hi"}}
    text = json.dumps(line) + "\n{cut\n"
    done = expect(run("import", "claude-code", "-", input=text.encode()), 1)
    assert done.stdout.count(b"\n") >= 3
    expect(run("lattice", "verify", "-", input=done.stdout), 0)


# --- streams ----------------------------------------------------------------------------------------


WRITERS = (["help"], ["lattice", "verify", MERGE], ["lattice", "heatmap", INCIDENT],
           ["lattice", "anchor", MERGE], ["lattice", "selftest"], ["version"], ["doctor"], ["demo", "--forensic"],
           ["completion", "bash"], ["lattice", "render", INCIDENT, "--svg"], ["import", "--list"])


@test
def a_full_disk_is_exit_3():
    with open("/dev/full", "wb") as full:
        for words in WRITERS:
            expect(run(*words, stdout=full), 3, err="cannot write standard output")
        expect(run("lattice", "verify", "/nonexistent", "--json", stdout=full), 3)


@test
def a_closed_pipe_is_exit_3():
    for words in WRITERS:
        reader, writer = os.pipe()
        os.close(reader)
        done = run(*words, stdout=writer)
        os.close(writer)
        expect(done, 3, err="Broken pipe")


@test
def closed_descriptors_are_noticed():
    for words in WRITERS[:4]:
        shell = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', BIN, *words],
                               stderr=subprocess.PIPE, env=ENV, timeout=60)
        assert shell.returncode == 3, (words, shell)
    shell = subprocess.run(["sh", "-c", 'exec "$0" lattice verify - <&-', BIN], capture_output=True,
                           env=ENV, timeout=60)
    assert shell.returncode == 3 and b"U_IO" in shell.stderr, shell


def on_terminal(*args, env):
    """Runs with standard output and error on a terminal; (exit code, what it showed)."""
    parent, child = pty.openpty()
    process = subprocess.Popen([BIN, *args], stdout=child, stderr=child, stdin=subprocess.DEVNULL,
                               env={**ENV, **env})
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    return process.wait(timeout=60), shown


@test
def colours_are_for_terminals():
    words = ["lattice", "verify", MERGE]
    doctor = ["doctor"]
    for command in (words, doctor):
        assert b"\x1b" not in run(*command).stdout
        assert b"\x1b" not in run(*command, env={"TERM": "xterm"}).stdout
        assert b"\x1b[" in run(*command, "--color=always", env={"NO_COLOR": "1"}).stdout
        assert b"\x1b[" in on_terminal(*command, env={"TERM": "xterm"})[1]
        assert b"\x1b[" in on_terminal(*command, env={"TERM": "xterm", "NO_COLOR": ""})[1]
        for env in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}, {}):
            assert b"\x1b" not in on_terminal(*command, env=env)[1], (command, env)
        assert b"\x1b" not in on_terminal(*command, "--color", "never", env={"TERM": "xterm"})[1]
    assert b"\x1b" not in on_terminal(*words, "--json", env={"TERM": "xterm"})[1]


@test
def standard_error_of_a_full_disk_does_not_matter():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([BIN, "lattice", "verify", "/nonexistent"], stdout=subprocess.PIPE,
                              stderr=full, env=ENV, timeout=60)
    assert done.returncode == 3


# --- the rest ---------------------------------------------------------------------------------------


@test
def selftest_version_doctor():
    assert expect(run("lattice", "selftest"), 0).stdout.decode().endswith("--- ALL TESTS PASSED ---\n")
    assert json.loads(run("lattice", "selftest", "--json").stdout) == {"failed": 0, "ok": True}
    version = json.loads(expect(run("version", "--json"), 0).stdout)
    assert run("version").stdout.decode().startswith(f"cortex {version['version']} ")
    assert run("--version").stdout == run("version").stdout
    done = expect(run("doctor", "--json"), 0)
    checks = json.loads(done.stdout)["checks"]
    assert len(checks) >= 8 and not [c for c in checks if c["status"] == "fail"]
    detail = {c["name"]: c["detail"] for c in checks}
    assert detail["sha-256"].startswith(f"{version['sha256']} chosen of portable")
    assert detail["crc-32c"].startswith(f"{version['crc32c']} chosen of portable")
    poor = json.loads(expect(run("doctor", "--json", env={"TMPDIR": "/nonexistent"}), 0).stdout)
    assert [c["status"] for c in poor["checks"] if c["name"] == "temporary"] == ["warn"]


@test
def the_forensic_demo_is_as_expected_and_leaves_nothing():
    with Folder() as folder:
        done = expect(run("demo", "--forensic", cwd=folder, env={"TMPDIR": str(folder), "HOME": str(folder)}), 0)
        assert list(folder.iterdir()) == []
    text = done.stdout.decode()
    assert "UNEXPECTED" not in text and "E_HASH" in text and done.stderr == b""
    coloured = expect(run("demo", "--forensic", "--color=always"), 0).stdout.decode()
    assert "\x1b[" in coloured and "UNEXPECTED" not in coloured


@test
def the_demo_commands_print_what_the_demo_shows():
    """Every command line in the demo's output can be typed, and shows the same."""
    parts = re.split(r"^\$ cortex (.+)$", run("demo", "--forensic").stdout.decode(), flags=re.M)
    shown = dict(zip(parts[1::2], parts[2::2]))
    assert len(shown) >= 8
    for line, output in shown.items():
        if "copy.jsonl" in line:
            continue
        done = subprocess.run(f"'{BIN}' {line}", shell=True, cwd=ROOT, stdout=subprocess.PIPE,
                              env=ENV, timeout=60)
        output = re.split(r"\n# ", output[1:])[0].rstrip("\n")
        assert done.stdout.decode().rstrip("\n") == output, (line, done.stdout.decode(), output)


@test
def the_examples_are_as_generated():
    done = subprocess.run([sys.executable, str(ROOT / "tools/make_example.py"), "--check"],
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout


@test
def the_manual_lists_every_command():
    generated = expect(run("help", "--man"), 0).stdout.decode()
    page = (ROOT / "docs/man/cortex.1").read_text()
    assert generated in page, "docs/man/cortex.1 lacks the output of `cortex help --man`"
    groff = shutil.which("groff")
    if groff:
        done = subprocess.run([groff, "-man", "-ww", "-Tutf8", "-z", str(ROOT / "docs/man/cortex.1")],
                              capture_output=True, timeout=60)
        assert done.returncode == 0 and done.stderr == b"", done.stderr


@test
def completion_has_every_option_and_parses():
    for shell in ("bash", "zsh", "fish"):
        script = expect(run("completion", shell), 0).stdout.decode()
        for command in commands():
            assert command["name"] in script
            for option in command["options"]:
                sign = f"-l {option['name']}" if shell == "fish" else f"--{option['name']}"
                assert sign in script, (shell, command["name"], sign)
        program = shutil.which(shell)
        if program:
            done = subprocess.run([program, "-n"], input=script.encode(), capture_output=True,
                                  timeout=60)
            assert done.returncode == 0 and done.stderr == b"", (shell, done.stderr)


@test
def bash_completes():
    bash = shutil.which("bash")
    if not bash:
        skip("bash is not installed")
    script = run("completion", "bash").stdout.decode()

    def complete(*words):
        line = " ".join(f"'{w}'" for w in ("cortex", *words))
        ask = (f"{script}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n_cortex_words\n"
               'printf "%s\\n" "${COMPREPLY[@]}"\n')
        done = subprocess.run([bash, "--norc"], input=ask.encode(), capture_output=True, cwd=ROOT,
                              timeout=60)
        assert done.stderr == b"", done.stderr
        return done.stdout.decode().split()

    assert "lattice" in complete("") and "doctor" in complete("d")
    assert complete("lattice", "ve") == ["verify"]
    assert complete("lattice", "state", "--str") == ["--strategy"]
    assert complete("lattice", "state", "--strategy", "") == ["lww", "confidence", "policy", "manual"]
    assert "examples/incident.jsonl" in complete("lattice", "verify", "examples/inc")
    assert complete("completion", "f") == ["fish"]
    assert "claude-code" in complete("import", "cl")
    assert "lattice" in complete("help", "lat")


main()
