#!/usr/bin/env python3
"""What docs/metrics.md, docs/alerts.yml and docs/dashboard.json name is what a running server says.

    test_metrics.py [PROGRAM]     PROGRAM defaults to $CORTEX_BIN
"""
import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, TESTS, Folder, check, main, run, skip, test  # noqa: E402

DOCS = TESTS.parent / "docs"
NAME = r"\b(?:cortex|process)_[a-z][a-z0-9_]+\b"
SERIES = ("_bucket", "_sum", "_count")  # of a histogram


def scrape():
    """The text of /metrics, after some answers of both pools."""
    with Folder() as path:
        home = pathlib.Path(path) / "home"
        check(run(BIN, "init", "--no-repo", "--segment-size", "1M", home).returncode == 0)
        with tempfile.TemporaryFile() as log:
            server = subprocess.Popen([BIN, "serve", "--home", home, "--listen", "127.0.0.1:0", "--json"],
                                      stdout=subprocess.PIPE, stderr=log)
            try:
                url = json.loads(server.stdout.readline())["url"]
                token = (home / "token").read_text().strip()

                def ask(name):
                    request = urllib.request.Request(url + name, headers={"Authorization": f"Bearer {token}"})
                    with urllib.request.urlopen(request, timeout=30) as answer:
                        return answer.read().decode()

                ask("/healthz")
                # An answer is counted after it was sent.
                text = ask("/metrics")
                for _ in range(600):
                    if "\ncortex_http_requests_total{" in text:
                        break
                    time.sleep(0.05)
                    text = ask("/metrics")
                return text
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(60)
                server.stdout.close()


TEXT = scrape()
KINDS = dict(re.findall(r"^# TYPE (\S+) (\S+)$", TEXT, flags=re.M))


def family(name):
    """Series of a histogram belong to its family."""
    for end in SERIES:
        if name.endswith(end) and KINDS.get(name[: -len(end)]) == "histogram":
            return name[: -len(end)]
    return name


def all_rows():
    """Name -> what the table of docs/metrics.md says about kind and labels."""
    page = (DOCS / "metrics.md").read_text()
    return dict(re.findall(rf"^\| `({NAME})` \| ([^|]*) \|", page, flags=re.M))


def rows():
    """Without those of a node of a fleet, which tests/cli/test_fleet_serve.py compares."""
    return {name: said for name, said in all_rows().items() if not name.startswith("cortex_fleet_")}


@test
def every_metric_has_a_row_and_every_row_is_there():
    check(len(KINDS) > 10, "the server said too little:", TEXT)
    described = rows()
    check(not set(KINDS) - set(described), "not in docs/metrics.md:", set(KINDS) - set(described))
    check(not set(described) - set(KINDS), "docs/metrics.md invents", set(described) - set(KINDS))


@test
def kinds_and_labels_are_as_described():
    for name, said in rows().items():
        check(said.split(";")[0].strip() == KINDS[name], name, "is a", KINDS[name], "not", said)
        series = [line for line in TEXT.splitlines() if family(re.split(r"[{ ]", line)[0]) == name]
        found = {label for line in series for label in re.findall(r'(\w+)="', line.partition(" ")[0])}
        check(series, name, "has no line")
        for label in found - {"le"}:
            check(f"`{label}`" in said, name, "has a label", label)


@test
def every_metric_is_explained_by_the_server():
    for name in KINDS:
        check(re.search(rf"^# HELP {name} \S.*\.$", TEXT, flags=re.M), name, "has no help")
    for name in {family(re.split(r"[{ ]", line)[0]) for line in TEXT.splitlines() if line[:1] != "#"}:
        check(name in KINDS, name, "has no type")


@test
def rules_and_dashboard_use_existing_metrics():
    for path in ("alerts.yml", "dashboard.json"):
        named = {family(name) for name in re.findall(NAME, (DOCS / path).read_text())}
        check(len(named) > 5, path, "names too little")
        check(not named - set(all_rows()), path, "asks for", named - set(all_rows()))
    board = json.loads((DOCS / "dashboard.json").read_text())
    shown = {family(name) for name in re.findall(NAME, json.dumps(board["panels"]))}
    check(not set(all_rows()) - shown, "no panel shows", set(all_rows()) - shown)
    check(len({panel["id"] for panel in board["panels"]}) == len(board["panels"]), "ids twice")


@test
def prometheus_can_read_it():
    promtool = shutil.which("promtool")
    if promtool is None:
        skip("promtool is not installed")
    done = run(promtool, "check", "rules", DOCS / "alerts.yml")
    check(done.returncode == 0, done.stdout, done.stderr)
    done = run(promtool, "check", "metrics", stdin=TEXT.encode())
    # Its advice on names goes to standard error too; only text that cannot be parsed ends with 1.
    check(done.returncode != 1, done.stdout, done.stderr)


main()
