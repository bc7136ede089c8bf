#!/usr/bin/env python3
"""The OTLP receiver and the exporters of the OpenTelemetry SDK for JavaScript, from npm.

Needs node 18 or newer and npm.  What package-lock.json names is brought to node_modules beside this
file by `npm ci`, once; without network and without it the tests are skipped, and say so.
CORTEX_SKIP_DEPS=1: nothing is fetched.
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE.parent / "http"))
from kit import check, main, skip, test  # noqa: E402
from receiver import Receiver  # noqa: E402

NODE, NPM = shutil.which("node"), shutil.which("npm")
STAMP = HERE / "node_modules" / ".cortex-stamp"


def why_not():
    """Why the exporters are not there, after trying to fetch them; None when they are."""
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    if NODE is None:
        return "node is not installed"
    version = subprocess.run([NODE, "-v"], capture_output=True, text=True, check=True).stdout
    if int(version[1:].split(".")[0]) < 18:
        return f"node {version.strip()} is older than 18"
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return None
    if NPM is None:
        return "npm is not installed"
    if os.environ.get("CORTEX_SKIP_DEPS"):
        return "the packages are not there, and CORTEX_SKIP_DEPS forbids to fetch them"
    try:
        done = subprocess.run([NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund",
                               "--no-progress", "--fetch-timeout=20000"], cwd=HERE, timeout=150,
                              capture_output=True, text=True, check=False)
    except (OSError, subprocess.TimeoutExpired) as why:
        return f"npm ci did not succeed: {why}"
    if done.returncode != 0:
        return "npm ci did not succeed: " + done.stderr.strip().splitlines()[-1]
    STAMP.write_text(wanted)
    return None


MISSING = why_not()


def export(receiver, encoding, compression="none", headers=None, again=False):
    config = {"url": receiver.info["otlp_url"], "encoding": encoding, "compression": compression,
              "headers": headers or {}, "again": again}
    done = subprocess.run([NODE, str(HERE / "exporters.mjs"), json.dumps(config)], timeout=120,
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stdout, done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def need():
    if MISSING is not None:
        skip(MISSING)


def everything_arrived(encoding, compression):
    need()
    with Receiver() as r:
        told = export(r, encoding, compression)
        check(told["results"] == ["ok"] * 4 and not told["said"], told)
        branch = "@otel/" + told["trace"]
        r.command("lattice", "verify", branch, "--content-ids", "--require-seals")
        # chat and tool belong to the planner, who called them; a log to the span it came with.
        check(r.nodes(branch) == {"planner": 4, "helper": 2}, r.nodes(branch))
        check(r.nodes("@otel") == {"planner": 4, "helper": 2, "weather-agent": 1}, r.nodes("@otel"))
        document = "".join(entry["payload"] if isinstance(entry["payload"], str)
                           else bytes.fromhex(entry["payload"]["hex"]).decode(errors="replace")
                           for entry in r.entries())
        for text in ("custom.unknown.flag", "ü\U0001f600", "Köln", "no such city", "1.2.3"):
            check(text in document or json.dumps(text)[1:-1] in document, "not kept:", text)
        check((r.metric("traces", "stored"), r.metric("traces", "duplicate")) == (5, 2))
        check((r.metric("logs", "stored"), r.metric("logs", "duplicate")) == (2, 2))
        state = json.loads(r.command("lattice", "state", branch, "@planner", "--json"))
        text = json.dumps(state)
        check("call_1" in text and "weather" in text, state)
        r.command("verify")


@test
def json_exporters():
    everything_arrived("http", "none")


@test
def json_exporters_packed():
    everything_arrived("http", "gzip")


@test
def protobuf_exporters():
    everything_arrived("proto", "none")


@test
def protobuf_exporters_packed():
    everything_arrived("proto", "gzip")


@test
def the_sdk_understands_a_partial_success():
    need()
    for encoding in ("http", "proto"):
        with Receiver() as r:
            told = export(r, encoding, again=True)
            check(told["results"] == ["ok"] * 5, told)
            check(r.metric("traces", "conflict") == 1, "conflicts")
            check(any("different content" in text or "artial" in text for text in told["said"]), told)


@test
def the_sdk_understands_a_refusal():
    need()
    with Receiver("--otlp-tokens") as r:
        told = export(r, "proto")
        check(all("401" in text for text in told["results"]), told)
        told = export(r, "proto", headers={"Authorization": "Bearer " + r.token})
        check(told["results"] == ["ok"] * 4, told)
        check({entry["created_by"] for entry in r.entries()} == {"token:first"}, r.entries())


if __name__ == "__main__":
    main()
