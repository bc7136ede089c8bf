#!/usr/bin/env python3
"""The examples run: those of docs/sdk-python.md, and the programs of examples/."""
import os
import re
import shlex
import sys

from sdk_kit import PACKAGE, ROOT, Folder, Place, Server, check, main, run, sibling, test

PAGE = (ROOT / "docs/sdk-python.md").read_text()


def environment(place, server):
    return {**os.environ, "CORTEX_URL": server.url, "CORTEX_TOKEN": server.token, "CORTEX_SPOOL":
            str(place.folder / "spool"), "XDG_CONFIG_HOME": str(place.folder), "PYTHONWARNINGS": "error"}


@test
def the_page_runs_from_top_to_bottom():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    check(len(blocks) >= 5, len(blocks))
    with Place() as p, Server(p) as s:
        program = p.folder / "page.py"
        program.write_text("\n".join(blocks))
        done = run(sys.executable, program, env=environment(p, s), cwd=p.folder)
        said = done.stdout.decode()
        check(done.returncode == 0 and not done.stderr, said, done.stderr.decode())
        check("None -> 500 because ['Refunds are limited to 500.']" in said, said)
        command = shlex.split(said.strip().split("\n")[-1])
        check(command[0] == "cortex-verify", said)
        checked = run(sibling("cortex-verify"), *command[1:], cwd=p.folder)
        check(checked.returncode == 0, checked)
        check(s.count("refunds") == 4 and s.count("desk") == 1 and s.count("clerk") == 1)


@test
def the_short_example_of_the_package_is_that_of_the_page():
    for text in ((PACKAGE / "README.md").read_text(), (PACKAGE / "src/cortex_recorder/__init__.py").read_text()):
        for line in ('cx = cortex.init(agent="refunds")', 'with cx.step("triage") as s:',
                     's.set("memory/limit", 500, because=document)'):
            check(line in text and line in PAGE, line)


@test
def the_programs_run():
    expected = {"refunds.py": "gate 'refund' refused the call: more than 500",
                "two_agents.py": "{'A-1': 'valid', 'A-2': 'valid', 'A-3': 'valid'}",
                "serverless.py": "{'ok': True, 'waiting': 0}", "tested_agent.py": ""}
    programs = sorted((PACKAGE / "examples").glob("*.py"))
    check({p.name for p in programs} == set(expected))
    with Place() as p, Server(p) as s:
        for program in programs:
            done = run(sys.executable, program, env=environment(p, s), cwd=p.folder)
            check(done.returncode == 0 and expected[program.name] in done.stdout.decode(), program, done)
        check(s.count("refunds") == 7 and s.count("clerk") == 3 and s.count("function") == 3)


@test
def a_few_kills_lose_nothing():
    with Folder() as folder:
        done = run(sys.executable, PACKAGE / "bench/kills.py", "--kills", "25", "--seed", "7", cwd=folder)
        check(done.returncode == 0 and b" 0 lost, 0 twice" in done.stdout, done)
        done = run(sys.executable, PACKAGE / "bench/overhead.py", "--steps", "100", cwd=folder)
        check(done.returncode == 0 and b"median" in done.stdout, done)


@test
def every_setting_is_on_the_page():
    import inspect
    from sdk_kit import cortex
    for name in inspect.signature(cortex.init).parameters:
        check(f"`{name}`" in PAGE or name in ("key_id", "register"), name)
    for name in cortex.__all__:
        if name.startswith(("instrument_", "watch_")) or name.endswith(("_handler", "_processor")):
            check(f"cortex.{name}(" in PAGE, name)


if __name__ == "__main__":
    main()
