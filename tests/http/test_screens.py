#!/usr/bin/env python3
"""What the page's screens ask: around a trace, a check, the fleet, two nodes, heat; from outside."""
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from kit import BIN, main, test  # noqa: E402
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "traces"
ALPHA, BETA = "976dbe5047633d39", "0f1710aec6e6a530"
class Server:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        home = self.folder.name + "/home"
        env = dict(os.environ, HOME=self.folder.name)
        for command in (["init", "--no-repo"], ["key", "add", str(EXAMPLES / "trust.json")],
                        ["record", str(EXAMPLES / "alpha.json"), str(EXAMPLES / "beta.json")]):
            subprocess.run([BIN, *command, "--home", home], check=True, capture_output=True, env=env)
        self.process = subprocess.Popen(
            [BIN, "serve", "--home", home, "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self.url = urllib.parse.urlsplit(json.loads(self.process.stdout.readline())["url"])
        self.token = pathlib.Path(home, "token").read_text().strip()
        for _ in range(600):
            if self.get("/readyz")["index"] == "current":
                break
            time.sleep(0.05)

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        connection.request(method, path, body, {"Authorization": "Bearer " + self.token,
                                                "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)

    def get(self, path, **query):
        status, answer = self.ask("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))
        assert status == 200, answer
        return answer

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()


def around(s, number, **query):
    return s.get(f"/api/v1/covenant/traces/trace-{ALPHA}-{number:06}/around", **query)


@test
def neighbours_are_traces_of_the_same_agent(s):
    middle = around(s, 3)
    assert middle["previous"]["trace_id"].endswith("-000002"), middle
    assert middle["next"]["trace_id"].endswith("-000004"), middle
    assert middle["row"]["trace_id"].endswith("-000003") and middle["nodes"] == []
    assert around(s, 0)["previous"] is None and around(s, 7)["next"] is None
    assert middle["batch"]["received"] == 8 and middle["batch"]["correlation_metadata"] is None


@test
def nodes_are_those_of_the_history(s):
    nodes = around(s, 3, nodes="true")["nodes"]
    assert len(nodes) == 6 and len(set(nodes)) == 6
    node = s.get(f"/api/v1/view/agent/{ALPHA}/node", node=nodes[3])
    assert f"trace-{ALPHA}-000003" in node["event"]["text"], node


@test
def a_missing_trace_has_no_neighbours(s):
    status, answer = s.ask("GET", "/api/v1/covenant/traces/nobody/around")
    assert status == 404, answer


@test
def a_check_verifies_and_records_nothing(s):
    before = s.get("/api/v1/roots")
    text = (EXAMPLES / "alpha.json").read_text()
    status, good = s.ask("POST", "/api/v1/covenant/check", text)
    assert status == 200 and [one["verdict"] for one in good["results"]] == ["holds"] * 8, good
    changed = text.replace('"plausibility_score": 0.9', '"plausibility_score": 0.99', 1)
    assert changed != text
    _, bad = s.ask("POST", "/api/v1/covenant/check", changed)
    assert bad["results"][0]["reason"] == "signature_invalid", bad
    assert [one["verdict"] for one in bad["results"]].count("holds") == 7
    alone = json.dumps(json.loads(text)["events"][2]["trace"])
    _, one = s.ask("POST", "/api/v1/covenant/check", alone)
    assert [result["verdict"] for result in one["results"]] == ["holds"] and one["left_out"] == 0
    assert s.get("/api/v1/roots") == before


@test
def a_check_answers_any_body_with_a_verdict(s):
    for body, reason in (('{"trace_id":', "malformed_json"), ("[]", "field_type"),
                         ('{"a":1,"a":2}', "duplicate_key"), ("{}", "missing_field")):
        status, answer = s.ask("POST", "/api/v1/covenant/check", body)
        assert status == 200 and answer["results"][0]["verdict"] == "broken", answer
        assert answer["results"][0]["reason"] == reason, (body, answer)


@test
def the_fleet_view_ends_at_its_newest_day(s):
    fleet = s.get("/api/v1/covenant/fleet", days=7)
    assert fleet["days"][-1] == "2026-01-01" and len(fleet["days"]) == 7, fleet
    found = {agent["agent"]: agent for agent in fleet["agents"]}
    assert set(found) == {ALPHA, BETA} and not fleet["more"]
    assert found[ALPHA]["traces"] == [0] * 6 + [8]
    assert found[ALPHA]["k_eff"][:6] == [None] * 6 and abs(found[ALPHA]["k_eff"][6] - 5 / 3) < 1e-9
    assert found[BETA]["chain"]["verdict"] == "broken" and found[BETA]["chain"]["mismatch"] == 1
    assert found[ALPHA]["capacity"][6] is None, "eight traces are too few for a score"
    later = s.get("/api/v1/covenant/fleet", days=3, to="2026-02-01T00:00:00Z")
    assert later["days"][-1] == "2026-02-01" and later["agents"][0]["traces"] == [0, 0, 0]
    assert s.ask("GET", "/api/v1/covenant/fleet?days=91")[0] == 422


@test
def two_nodes_stand_side_by_side(s):
    same = s.get("/api/v1/view/all/compare", a=f"@agent/{ALPHA}", b=f"@agent/{ALPHA}")
    assert same["counts"] == [0, 0] and same["first"] is None and same["diff"] == [], same
    assert same["common"]["id"] == same["a"]["id"]
    both = s.get("/api/v1/view/all/compare", a=f"@agent/{ALPHA}", b=f"@agent/{BETA}")
    assert both["common"] is None and both["counts"] == [48, 48], both["counts"]
    assert both["steps"][0]["same"] and not both["steps"][both["first"]]["same"]
    assert all(step["same"] for step in both["steps"][:both["first"]])
    assert {one["key"] for one in both["diff"]} >= {"ACTION_RESULT", "ASPDMA_RESULT"}
    part = s.get("/api/v1/view/all/compare", a=f"@agent/{ALPHA}", b=f"@agent/{BETA}", **{"from": 47, "max": 5})
    assert len(part["steps"]) == 1 and part["from"] == 47 and part["first"] == both["first"]
    behind = s.get("/api/v1/view/all/compare", a=f"@agent/{ALPHA}", b=f"@agent/{BETA}", **{"from": 900})
    assert behind["steps"] == []
    assert s.ask("GET", "/api/v1/view/all/compare?a=@nobody&b=@agent/" + ALPHA)[0] == 404
    assert s.ask("GET", "/api/v1/view/all/compare?a=@agent/" + ALPHA)[0] == 422


@test
def two_histories_stand_side_by_side(s):
    path = f"/api/v1/view/agent/{ALPHA}/compare"
    both = s.get(path, **{"with": f"agent/{BETA}"})
    assert both["common"] is None and both["counts"] == [48, 48] and both["aligned"], both
    matched = both["matched"]
    pairs = matched["same"] + matched["alike"]
    assert [pairs + one for one in matched["only"]] == [48, 48]
    assert both["rows"] == len(both["steps"]) == pairs + sum(matched["only"])
    alike = next(step for step in both["steps"] if step["how"] == "alike")
    assert 0 < len(alike["differs"]) <= alike["differ_count"]
    inside = s.get("/api/v1/view/all/compare", a=f"@agent/{ALPHA}", b=f"@agent/{BETA}")
    assert inside["steps"] == both["steps"] or inside["matched"] == matched
    # Of one history with itself everything has the same hash.
    same = s.get(path, **{"with": f"agent/{ALPHA}"})
    assert same["counts"] == [0, 0] and same["rows"] == 0 and same["common"]["id"] == same["b"]["id"]
    # The branch of all that is recorded begins as the branch does.
    within = s.get(path, **{"with": "all", "b": f"@agent/{ALPHA}"})
    assert within["counts"] == [0, 0] and within["first"] is None
    assert s.ask("GET", path + "?with=agent/nobody")[0] == 404
    assert s.ask("GET", path + "?with=run/x")[0] in (404, 501)


@test
def heatmap_totals_do_not_depend_on_the_buckets(s):
    texts = [(EXAMPLES / name).read_text() for name in ("alpha.json", "beta.json")]
    cents = sum(part["data"].get("cost_cents", 0) for text in texts
                for event in json.loads(text)["events"] for part in event["trace"]["components"])
    for axis in ("time", "order"):
        for bins in (1, 7, 400):
            heat = s.get("/api/v1/view/all/heat", layer="cost", axis=axis, bins=bins)
            cells = [heat["cells"][i:i + 5] for i in range(0, len(heat["cells"]), 5)]
            assert abs(heat["total"] - cents) < 1e-6 and heat["bins"] == bins, heat["total"]
            assert sum(cell[2] for cell in cells) == 96 and heat["lanes"] == 2
            assert abs(heat["max"] - max(cell[3] for cell in cells)) < 1e-9
    assert s.get("/api/v1/view/all/heat", layer="overrides")["total"] == 0
    assert s.get("/api/v1/view/all/heat", layer="divergence")["total"] == 0
    half = s.get("/api/v1/view/all/heat", axis="order", **{"from": 0, "to": 9})
    assert sum(half["cells"][2::5]) == 10, half
    assert s.ask("GET", "/api/v1/view/all/heat?layer=moods")[0] == 422


main(lambda: contextlib.closing(Server()))
