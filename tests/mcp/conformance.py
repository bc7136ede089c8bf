#!/usr/bin/env python3
"""conformance.py CORTEX-MCP [CORTEX] - our client, the scripted server of our tests, and our server, under
the public MCP conformance suite (npm: @modelcontextprotocol/conformance).

$CORTEX_MCP_CONFORMANCE names the suite's dist/index.js.  Without it the suite is fetched into
tests/mcp/node_modules by the lock file beside it, once; without network and without it, or with
CORTEX_SKIP_DEPS=1 and nothing there, exit 77.  0.1.14 and later need Node 22.

The client speaks lines, the suite HTTP: bridge.py stands between.  Our server is asked at POST /mcp of
`cortex serve`, which wants a token that the suite cannot send: door.py adds it.  Of its server scenarios
those are run that hold for any server.  The others are about a reference server's own tools, resources
and prompts (test_simple_text, test://static-text, ..), or about what we do not offer and do not say we
do: logging, completion, subscriptions, sampling, elicitation, streams (SSE) and sessions.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import kit  # noqa: E402
from kit import count, finish_counted  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SUITE = os.environ.get("CORTEX_MCP_CONFORMANCE") or str(INSTALLED)
NODE = shutil.which("node")
TIMEOUT_S = 300


def suite(*words):
    return subprocess.run([NODE, SUITE, *words], capture_output=True, text=True, timeout=TIMEOUT_S,
                          check=False)


def judge(name, done):
    count(name, done.returncode == 0, f"\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")


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


def our_server(program, folder):
    """`cortex serve`, at /mcp, behind a door that adds the token."""
    home = folder / "home"
    env = {k: v for k, v in os.environ.items() if not k.startswith("CORTEX")}
    subprocess.run([program, "init", "--no-repo", "--segment-size", "1M", home], env=env, check=True,
                   capture_output=True, cwd=folder)
    served = subprocess.Popen([program, "serve", "--home", home, "--listen", "127.0.0.1:0", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    try:
        url = json.loads(served.stdout.readline())["url"]
        token = (home / "token").read_text().strip()
        with subprocess.Popen([sys.executable, HERE / "door.py", url, token], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as door:
            address = door.stdout.readline().strip() + "/mcp"
            for scenario in ("server-initialize", "ping", "tools-list", "resources-list", "prompts-list",
                             "dns-rebinding-protection"):
                judge(f"cortex {scenario}", suite("server", "--url", address, "--scenario", scenario))
            door.stdin.close()
            door.wait(timeout=TIMEOUT_S)
    finally:
        served.terminate()
        served.wait(timeout=TIMEOUT_S)


def missing():
    """Why the suite is not there, after trying to fetch it; None when it is."""
    npm = shutil.which("npm")
    if NODE is None:
        return "node is not installed"
    if int(subprocess.run([NODE, "-p", "process.versions.node"], capture_output=True, text=True,
                          check=True).stdout.split(".")[0]) < 20:
        return "the suite needs Node 20"
    if os.path.isfile(SUITE):
        return None
    if npm is None or os.environ.get("CORTEX_SKIP_DEPS") == "1":
        return "the suite is not there, and cannot or may not be fetched"
    try:
        done = subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress",
                               "--fetch-timeout=20000"], cwd=HERE, timeout=150, capture_output=True,
                              check=False)
    except subprocess.TimeoutExpired:
        return "npm ci took too long"
    return None if done.returncode == 0 and os.path.isfile(SUITE) else "npm ci did not succeed"


def main():
    why = missing()
    if why is not None:
        print("skip: " + why)
        sys.exit(kit.SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        client(os.path.abspath(sys.argv[1]), pathlib.Path(folder))
        server(pathlib.Path(folder))
        if len(sys.argv) > 2:
            our_server(os.path.abspath(sys.argv[2]), pathlib.Path(folder))
    finish_counted()


main()
