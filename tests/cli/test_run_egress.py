#!/usr/bin/env python3
"""Governed runs whose contract names the hosts of its network: through the proxy, and recorded in the
run's journal (docs/formats/egress.md)."""
import contextlib
import http.server
import json
import threading

from kit import Folder, check, main
from run_kit import approve, contract, exec_config, exec_repo, payloads, reply, sandboxed

HOST = "127.0.0.2"

AGENT = """#!/bin/sh
cat > /dev/null
for url in %s; do
  code=$(curl -s -m 20 -o /dev/null -w '%%{http_code}' "$url")
  echo "/* $code */" >> src/app/main.c
done
echo '%s'
"""

REVIEWER = """#!/bin/sh
cat > /dev/null
if [ -z "$CORTEX_EVIDENCE" ]; then
echo '/* by a program */' >> src/app/main.c
echo '%s'
exit
fi
code=$(curl -s -m 20 -o /dev/null -w '%%{http_code}' %s)
echo "{\\"run_id\\":\\"$CORTEX_RUN_ID\\",\\"reviewer\\":{\\"role\\":\\"REVIEWER\\",\\"agent_id\\":\\"r\\"},\\"reviewed_at\\":\\"2026-01-01T00:00:00Z\\",\\"verdict\\":\\"PASS\\",\\"summary\\":\\"saw $code\\",\\"scope_check\\":{\\"passed\\":true,\\"violations\\":[]},\\"evidence\\":[],\\"produced_diff\\":false}"
"""


@contextlib.contextmanager
def serving():
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.server.seen.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], server.seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def policy(repo, *hosts, **more):
    repo.write("policies/egress.json", json.dumps({"version": "v1", "private_hosts": list(hosts), **more}))
    repo.commit("egress")


def networked(**more):
    config = exec_config("scripts/agent.sh")
    config["runners"]["tool"]["network"] = True
    return {"runners": config["runners"], **more}


def asked(repo, key, *hosts):
    value = contract(tool_permissions__network="on-request", tool_permissions__network_hosts=list(hosts))
    approve(repo, key, value, "permission:network=on-request", "network")
    return value


def connections(repo):
    done = repo.cortex("log", "--actor", repo.actor(), "--all", "--json", "--kind", "egress.connection")
    check(done.returncode == 0, done.stderr)
    return [json.loads(json.loads(line)["payload"]) for line in done.stdout.splitlines()]


@sandboxed
def an_agent_reaches_the_hosts_of_its_contract():
    with Folder() as folder, serving() as (port, seen), serving() as (other, unseen):
        urls = f"http://{HOST}:{port}/a http://{HOST}:{other}/b http://evil.example/"
        repo, key = exec_repo(folder, AGENT % (urls, json.dumps(reply())), **networked())
        policy(repo, f"{HOST}:{port}", f"{HOST}:{other}")
        value = asked(repo, key, f"{HOST}:{port}")
        done, answer = repo.run(value, None, "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        lines = repo.git("show", f"{answer['final_commit']}:src/app/main.c").splitlines()[-3:]
        check(lines == ["/* 200 */", "/* 403 */", "/* 403 */"], lines)
        check(seen == ["/a"] and unseen == [], seen, unseen)
        box = payloads(repo.events(answer), "SANDBOX_APPLIED")[0]
        check(box["network"] == "proxy" and "net" in box["layers"], box)
        got = connections(repo)
        check([(c["verdict"], c["rule"]) for c in got] == [("allow", "E00"), ("refuse", "E01"), ("refuse", "E01")], got)
        check(all(c["run"] == answer["run_id"] and c["task"] == "unit_task_1" for c in got), got)
        check(repo.verify(answer).returncode == 0, repo.verify(answer).stdout)


@sandboxed
def policies_of_the_baseline_narrow_the_contract():
    with Folder() as folder, serving() as (port, seen):
        repo, key = exec_repo(folder, AGENT % (f"http://{HOST}:{port}/a", json.dumps(reply())), **networked())
        policy(repo, f"{HOST}:{port}", hosts=["other.example"])
        done, answer = repo.run(asked(repo, key, f"{HOST}:{port}"), None, "--no-merge")
        check(done.returncode == 0, answer, done.stderr)
        check(seen == [] and [c["rule"] for c in connections(repo)] == ["E01"], seen)


@sandboxed
def hosts_that_are_none_are_a_fault_of_the_contract():
    with Folder() as folder:
        repo, _ = exec_repo(folder, AGENT % ("", json.dumps(reply())), **networked())
        for host in ("*", "https://a.b", "*.org", "a.b:0"):
            value = contract(tool_permissions__network="allow", tool_permissions__network_hosts=[host])
            done = repo.cortex("contract", "lint", repo.keep("c.json", value))
            check(done.returncode == 4 and b"K01" in done.stdout + done.stderr, host, done.stdout, done.stderr)


@sandboxed
def a_reviewer_reaches_them_when_its_runner_needs_the_network():
    for needs, summary in ((True, "saw 200"), (False, "saw 000")):
        with Folder() as folder, serving() as (port, seen):
            config = networked(roles={"REVIEWER": "tool"})
            config["runners"]["tool"]["network"] = True
            config["runners"]["quiet"] = {**config["runners"]["tool"], "network": False}
            if not needs:
                config["roles"] = {"REVIEWER": "quiet"}
            text = REVIEWER % (json.dumps(reply()), f"http://{HOST}:{port}/r")
            repo, key = exec_repo(folder, text, **config)
            policy(repo, f"{HOST}:{port}")
            done, answer = repo.run(asked(repo, key, f"{HOST}:{port}"), None, "--no-merge")
            check(done.returncode == 0, needs, answer, done.stderr)
            report = json.loads((repo.root / "runs" / answer["run_id"] / "reports/review_report.json").read_text())
            check(report["summary"] == summary, needs, report)
            check(len(seen) == needs, needs, seen)


main()
