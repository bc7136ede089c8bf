#!/usr/bin/env python3
"""Search over what agents said and did, and the list of histories: sessions as they grow, spans, steps.

The command line and the server give the same answers; what was erased is not found.
"""
import http.client
import json
import pathlib
import sys
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import check, main, test  # noqa: E402
from server_kit import Server  # noqa: E402

TRACE = "0af7651916cd43dd8448eb211c80319c"


def line(number, role, content, **more):
    return json.dumps({"type": role, "uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None,
                       "sessionId": "s", "timestamp": f"2026-11-01T10:00:{number:02}Z",
                       "message": {"role": role, "content": content, **more}}) + "\n"


def attribute(key, value):
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def span(number, name, parent="", **attributes):
    return {"traceId": TRACE, "spanId": f"b7ad6b71692033{number:02}", "parentSpanId": parent, "name": name,
            "startTimeUnixNano": str(1793527200_000000000 + number * 10**9),
            "endTimeUnixNano": str(1793527200_500000000 + number * 10**9),
            "attributes": [attribute(key.replace("__", "."), value) for key, value in attributes.items()]}


class Place(Server):
    def __init__(self):
        super().__init__("--otlp", "127.0.0.1:0")
        self.sessions = self.folder / "sessions"
        self.sessions.mkdir()

    def archive(self):
        self.command("watch", "--once", self.sessions)

    def get(self, path, expect=200, **query):
        answer = self.ask("GET", path + "?" + urllib.parse.urlencode(query))
        check(answer.status == expect, path, query, answer.status, answer.body)
        return answer.json()

    def until(self, what, wanted):
        """The index follows the ledger."""
        for _ in range(200):
            value = what()
            if wanted(value):
                return value
            time.sleep(0.05)
        raise AssertionError(f"not in ten seconds: {value}")

    def search(self, words, count=None, **query):
        ask = lambda: self.get("/api/v1/search", q=words, **query)["hits"]  # noqa: E731
        return ask() if count is None else self.until(ask, lambda hits: len(hits) == count)

    def history(self, name, steps=None):
        ask = lambda: (self.get("/api/v1/histories", history=name)["histories"] + [None])[0]  # noqa: E731
        return ask() if steps is None else self.until(ask, lambda h: h and h["steps"] == steps)


@test
def a_session_is_found_as_it_grows():
    with Place() as place:
        path = place.sessions / "refunds.jsonl"
        first = line(0, "user", "Why was order 77 refunded twice?")
        answer = line(1, "assistant", [
            {"type": "text", "text": "I look into the ledger."},
            {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "grep zebra orders.csv"}}],
            model="m-1", id="msg1", usage={"input_tokens": 100, "output_tokens": 20})
        result = line(2, "user", [{"type": "tool_result", "tool_use_id": "c1", "is_error": True,
                                   "content": "grep: orders.csv: No such file"}])
        path.write_text(first + answer[:40])  # the second line has not ended
        place.archive()
        hits = place.search("refunded", 1)
        name = hits[0]["history"]
        check(name.startswith("session/") and hits[0]["ref"] == "src:u0" and hits[0]["role"] == "user", hits)
        with open(path, "a") as file:
            file.write(answer[40:] + result)
        place.archive()
        hits = place.search("zebra", 1)
        check(hits[0]["kind"] == "tool_call" and hits[0]["tool"] == "Bash" and
              "grep zebra" in hits[0]["snippet"], hits)
        history = place.history(name, 3)
        check(history["title"] == "Why was order 77 refunded twice?" and history["errors"] == 1 and
              history["calls"] == 1 and history["model"] == "m-1" and history["source"] == "claude-code" and
              history["tokens_input"] == 100 and history["path"].endswith("refunds.jsonl"), history)
        # What a hit names is there, in the page's view and on the command line.
        node = place.get(f"/api/v1/view/{name}/node", node=hits[0]["ref"])
        check("zebra" in node["event"]["text"], node)
        shown = place.command("lattice", "show", "@" + name, hits[0]["ref"])
        check("zebra" in shown, shown)
        # The same on the command line; words in a history's path count for the list.
        found = json.loads(place.command("search", "ZEBRA", "--json"))
        check(found["hits"] == hits, found, hits)
        listed = json.loads(place.command("histories", "refunds.jsonl", "--json"))["histories"]
        check([h["name"] for h in listed] == [name], listed)
        check("no step and no memory has" in place.command("search", "aardvark"))


@test
def a_line_of_several_pieces_is_one_step():
    with Place() as place:
        long = "word " * 300_000 + "needle"  # more than a piece, which is 1 MiB
        (place.sessions / "long.jsonl").write_text(line(0, "user", "short") + line(1, "user", long))
        place.archive()
        hits = place.search("short", 1)
        history = place.history(hits[0]["history"], 2)
        check(history["steps"] == 2, history)
        # Only the first 256 KiB are searched, which is said in the documentation.
        check(place.search("needle") == [] and len(place.search("word", 1)) == 1)


@test
def spans_are_one_history_a_trace():
    with Place() as place:
        batch = {"resourceSpans": [{"resource": {"attributes": [attribute("service.name", "shop")]},
                                    "scopeSpans": [{"spans": [
            span(1, "invoke_agent planner", gen_ai__operation__name="invoke_agent",
                 gen_ai__agent__name="planner"),
            span(2, "chat", "b7ad6b7169203301", gen_ai__operation__name="chat",
                 gen_ai__request__model="m-2", gen_ai__usage__input_tokens=11,
                 gen_ai__usage__output_tokens=5,
                 **{"gen_ai__input__messages": json.dumps([{"role": "user", "content": "plan my giraffe trip"}]),
                    "gen_ai__output__messages": json.dumps([{"role": "assistant", "content": "by boat"}])})]}]}]}
        answer = post_spans(place, batch)
        check(answer == 200, answer)
        check(post_spans(place, batch) == 200)
        hits = place.search("giraffe", 1)
        check(hits[0]["history"] == "otel/" + TRACE and hits[0]["agent"] == "planner", hits)
        history = place.history("otel/" + TRACE, 2)
        check(history["title"] == "plan my giraffe trip" and history["agent"] == "planner" and
              history["tokens_input"] == 11 and history["tokens_output"] == 5, history)
        node = place.get(f"/api/v1/view/otel/{TRACE}/node", node=hits[0]["ref"])
        check("giraffe" in node["event"]["text"], node)


def post_spans(place, batch):
    connection = http.client.HTTPConnection(place.host, place.otlp_port, timeout=30)
    connection.request("POST", "/v1/traces", json.dumps(batch), {"Content-Type": "application/json"})
    status = connection.getresponse().status
    connection.close()
    return status


@test
def native_steps_and_what_was_erased():
    with Place() as place:
        steps = [{"agent": "refunds", "event": {"kind": "message", "role": "user", "text": "is 5 ok?"}},
                 {"agent": "refunds", "event": {"kind": "decision", "because": "policy of october",
                                                "tokens": {"input": 3, "output": 2}, "cost_usd": 0.25}}]
        answer = place.ask("POST", "/api/v1/steps", {"steps": steps})
        check(answer.status == 200, answer.body)
        hits = place.search("october", 1)
        check(hits[0]["history"] == "agent/refunds" and hits[0]["kind"] == "decision", hits)
        history = place.history("agent/refunds", 2)
        check(history["cost_usd"] == 0.25 and history["tokens_input"] == 3 and history["title"] == "is 5 ok?",
              history)
        place.command("erase", "1", "--actor", "refunds", "--reason", "asked")
        check(place.search("october", 0) == [])
        check(place.history("agent/refunds")["cost_usd"] == 0, place.history("agent/refunds"))


@test
def the_inbox_lists_histories_with_what_they_are_about():
    with Place() as place:
        (place.sessions / "one.jsonl").write_text(
            line(0, "user", "Sort the mailbox") +
            line(1, "assistant", [{"type": "tool_use", "id": "c", "name": "Edit",
                                   "input": {"file_path": "a.py", "old_string": "x", "new_string": "y"}}]))
        place.archive()
        place.search("mailbox", 1)
        items = place.get("/api/v1/inbox")["items"]
        check([(i["kind"], i["value"]["title"], i["value"]["source"], i["value"]["steps"]) for i in items] ==
              [("history", "Sort the mailbox", "claude-code", 2)], items)
        check(place.get("/api/v1/inbox", q="a.py")["items"] == items)
        check(place.get("/api/v1/inbox", q="zebra")["items"] == [])
        check(place.get("/api/v1/inbox", q="!!")["items"] == [])
        check(place.get("/api/v1/inbox", source="codex")["items"] == [])
        facets = place.get("/api/v1/inbox/facets")["facets"]
        check(facets["source"]["values"] == [{"count": 1, "value": "claude-code"}], facets)
        token = place.add_token("trace:read", level="generic")
        check(place.ask("GET", "/api/v1/inbox", token=token).json()["items"] == [])


@test
def a_history_is_read_step_by_step():
    with Place() as place:
        lines = [line(i, "user" if i % 2 == 0 else "assistant", f"text {i}") for i in range(50)]
        lines.insert(10, json.dumps({"type": "progress", "uuid": "p", "sessionId": "s",
                                     "timestamp": "2026-11-01T10:00:09.5Z", "data": {}}) + "\n")
        (place.sessions / "long.jsonl").write_text("".join(lines))
        place.archive()
        name = place.until(lambda: place.search("text"), lambda hits: len(hits) == 50)[0]["history"]
        path = f"/api/v1/view/{name}/steps"
        texts, at = [], 0
        while at is not None:
            page = place.get(path, **{"from": at, "max": 7})
            check(len(page["steps"]) <= 7 and page["from"] == at, page)
            texts += [step["text"]["text"] for step in page["steps"]]
            at = page["next"]
        check(sorted(texts) == sorted(f"text {i}" for i in range(50)), texts)
        whole = place.get(path, max=200, all="true")
        check(len(whole["steps"]) == 52 == whole["total"] and whole["next"] is None, len(whole["steps"]))
        near = place.get(path, node="src:u40", max=30)
        check("text 40" in [step["text"]["text"] for step in near["steps"]] and near["from"] > 0, near["from"])
        place.get(path, 404, node="src:nobody")
        place.get(path, 422, max=0)


@test
def what_cannot_be_asked_is_said():
    with Place() as place:
        check(place.ask("GET", "/api/v1/search").status == 422)
        check(place.get("/api/v1/search", 422, q="!!")["detail"], "no words")
        check(place.get("/api/v1/search", 422, q="a b c d e f g")["detail"], "too many")
        check(place.get("/api/v1/search", 422, q="a", cursor="x")["detail"], "cursor")
        check(place.get("/api/v1/histories", 422, cursor="5")["detail"], "cursor")
        token = place.add_token("trace:read", level="generic")
        check(place.ask("GET", "/api/v1/search?q=a", token=token).status == 403)
        check(place.ask("GET", "/api/v1/histories", token=token).status == 403)
        place.command("search", "--limit", "0", "a", expect=2)
        place.command("search", expect=2)
        place.command("search", "!!", expect=2)
        place.command("histories", "--cursor", "x", expect=2)


if __name__ == "__main__":
    main()
