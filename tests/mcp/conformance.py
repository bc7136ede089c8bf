#!/usr/bin/env python3
"""conformance.py CORTEX-MCP - our client, and the scripted server of our tests, under the public MCP
conformance suite (npm: @modelcontextprotocol/conformance).

Not part of CI: $CORTEX_MCP_CONFORMANCE names the suite's dist/index.js; without it, exit 77.  The suite
speaks HTTP, we speak lines: bridge.py stands between, so that what is tested is the messages.  Tried
with 0.1.13 on Node 20 (5 of 5); 0.1.14 and later need Node 22.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SUITE = os.environ.get("CORTEX_MCP_CONFORMANCE")
NODE = shutil.which("node")
TIMEOUT_S = 300

passed = failed = 0


def suite(*words):
    return subprocess.run([NODE, SUITE, *words], capture_output=True, text=True, timeout=TIMEOUT_S,
                          check=False)


def judge(name, done):
    global passed, failed
    if done.returncode == 0:
        passed += 1
        return
    failed += 1
    print(f"FAIL {name}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")


def client(program, folder):
    """Our client connects, and calls a tool, through a bridge to the suite's own servers."""
    for scenario, call in (("initialize", ""), ("tools_call", """--call add_numbers {"a":5,"b":3}""")):
        script = folder / f"{scenario}.sh"
        words = call.split(" ")
        quoted = " ".join(f"'{word}'" for word in words if word)
        script.write_text(f"#!/bin/sh\nexec '{program}' {quoted} -- '{sys.executable}' "
                          f"'{HERE / 'bridge.py'}' connect \"$1\"\n")
        script.chmod(0o755)
        judge(f"client {scenario}", suite("client", "--command", str(script), "--scenario", scenario))


def server(folder):
    """The scripted server, behind a bridge, under the suite's client."""
    script = folder / "script.json"
    script.write_text(json.dumps({"turns": []}))
    argv = [sys.executable, HERE / "bridge.py", "serve", sys.executable, HERE.parent / "mcp_server.py",
            script]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as bridge:
        url = bridge.stdout.readline().strip()
        for scenario in ("server-initialize", "ping", "tools-list"):
            judge(f"server {scenario}", suite("server", "--url", url, "--scenario", scenario))
        bridge.stdin.close()
        bridge.wait(timeout=TIMEOUT_S)


def main():
    if not SUITE or NODE is None:
        print("skip: $CORTEX_MCP_CONFORMANCE does not name the suite, or there is no node")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        client(os.path.abspath(sys.argv[1]), pathlib.Path(folder))
        server(pathlib.Path(folder))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


main()
