#!/usr/bin/env python3
"""What the page asks about a history: the same as the commands say, in windows that fit together,
for damaged histories too."""
import base64
import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import shapes  # noqa: E402,F401  JSON answers are checked against docs/openapi.json
from kit import BIN, TESTS, check, main, skip, test  # noqa: E402

EXAMPLES = TESTS.parent / "examples"


class View:
    """`cortex lattice view` over a file."""

    def __init__(self, path):
        self.path = str(path)
        self.process = subprocess.Popen([BIN, "lattice", "view", self.path, "--json"],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line or "error" in json.loads(line):
            error = self.process.stderr.read().decode()
            self.close()
            if "built without the page" in error:
                skip("the program was built without the page")
            raise AssertionError(error)
        url = urllib.parse.urlsplit(json.loads(line)["url"])
        self.token = url.fragment.removeprefix("token=")
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.terminate()
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        assert code == 0 or code == 3, code

    def raw(self, path, token=None):
        self.connection.request("GET", path, headers={
            "Authorization": "Bearer " + (self.token if token is None else token)})
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def ask(self, what, expected=200, **query):
        path = f"/api/v1/view/file/{what}?" + urllib.parse.urlencode(query)
        status, body = self.raw(path)
        assert status == expected, (self.path, path, status, body[:300])
        return json.loads(body)


def command(*arguments):
    done = subprocess.run([BIN, "lattice", *arguments, "--json"], capture_output=True, timeout=120)
    assert done.returncode in (0, 1), (arguments, done)
    return json.loads(done.stdout)


def text_of(value):
    assert value is None or not value["cut"], value
    return None if value is None else json.loads(value["text"])


def state_of(view, node, pointer=""):
    """The whole state, level by level."""
    where = {"pointer": pointer} if pointer else {}
    level = view.ask("values", node=node, **where)
    if "value" in level:
        return text_of(level["value"])
    found, entries = {}, level["entries"]
    while level["more"]:
        level = view.ask("values", node=node, **where, after=entries[-1]["key"])
        entries += level["entries"]
    for entry in entries:
        key = entry["key"].replace("~", "~0").replace("/", "~1")
        if entry["kind"] == "object":
            found[entry["key"]] = state_of(view, node, pointer + "/" + key)
        elif entry["value"]["cut"]:
            found[entry["key"]] = state_of(view, node, pointer + "/" + key)
        else:
            found[entry["key"]] = text_of(entry["value"])
    return found


@test
def the_view_answers_as_the_commands_do():
    path = str(EXAMPLES / "incident.jsonl")
    with View(path) as view:
        summary = view.ask("summary")
        assert summary["verified"] is True and summary["nodes"] == 40 and summary["errors"] == 0
        for lane in summary["lanes"]:
            head = "@" + lane["agent"]
            state = command("state", path, head)["state"]
            assert state_of(view, head) == state, head
            for key in state["memory"]:
                told = command("why", path, head, key, "--section", "memory")["changes"]
                writes = view.ask("writes", node=head, section="memory", key=key)
                assert [(w["id"], w["via"], text_of(w["new"]), text_of(w["old"]))
                        for w in writes["changes"]] == \
                       [(w["node"], w["via"], w.get("new"), w.get("old")) for w in told], key


@test
def the_next_write_of_a_key_is_found():
    with View(EXAMPLES / "incident.jsonl") as view:
        for n in range(40):
            node = view.ask("node", node=f"#{n}")
            for change in node["changes"]:
                if change["section"] not in ("memory", "beliefs"):
                    continue
                asked = dict(section=change["section"], key=change["key"])
                writes = view.ask("writes", node=f"#{n}", **asked)
                # What a node changed is the newest write seen from it ..
                assert writes["changes"][0]["n"] == n, (n, change)
                assert text_of(writes["changes"][0]["new"]) == text_of(change["new"])
                # .. and the one before it, seen from behind the next one.
                if writes["next"] is not None:
                    later = view.ask("writes", node=f"#{writes['next']['n']}", **asked)
                    assert n in [w["n"] for w in later["changes"]], (n, change)


def windows_fit(view, fold):
    """All of the picture once, whatever the windows are."""
    summary = view.ask("summary", fold=fold)
    columns, nodes, edges = summary["columns"], [], set()
    step = max(1, columns // 7)
    for first in range(0, columns, step):
        window = view.ask("window", fold=fold, to=min(columns, first + step), labels=1,
                          **{"from": first})
        assert not window["cut"], view.path
        lists = window["nodes"]
        assert len({len(lists[name]) for name in lists}) == 1
        assert all(first <= col < first + step for col in lists["col"])
        nodes += lists["n"]
        flat = window["edges"]
        assert len(flat) % 8 == 0
        edges |= {tuple(flat[i:i + 8]) for i in range(0, len(flat), 8)}
    whole = view.ask("window", fold=fold)
    assert sorted(nodes) == sorted(whole["nodes"]["n"]) and len(set(nodes)) == len(nodes)
    flat = whole["edges"]
    assert edges == {tuple(flat[i:i + 8]) for i in range(0, len(flat), 8)}, view.path
    counted = sum(n if n else 1 for n in whole["nodes"]["fold"])
    assert counted == summary["nodes"] == sum(lane["nodes"] for lane in summary["lanes"])
    cells = view.ask("overview", fold=fold, bins=5)["cells"]
    assert sum(cells[2::4]) == summary["nodes"], view.path
    return summary


def histories():
    found = sorted((TESTS / "vectors" / "lattice").rglob("*.jsonl"))
    return found + [EXAMPLES / "incident.jsonl", EXAMPLES / "merge.jsonl"]


@test
def windows_of_any_history_fit_together():
    looked = 0
    for path in histories():
        if subprocess.run([BIN, "lattice", "heads", str(path)], capture_output=True).returncode > 1:
            continue
        with View(path) as view:
            for fold in (0, 1):
                summary = windows_fit(view, fold)
            for n in range(0, summary["nodes"], max(1, summary["nodes"] // 25)):
                node = view.ask("node", node=f"#{n}")
                assert node["n"] == n and json.loads(node["event"]["text"]) is not None
        looked += 1
    assert looked >= 5, looked


@test
def a_damaged_history_is_shown_with_its_damage():
    lines = (EXAMPLES / "incident.jsonl").read_text().splitlines()
    nodes = [json.loads(line) for line in lines[1:]]
    damages = {
        "changed": lambda n: n[5]["event"].update(reasoning="something else"),
        "repeated": lambda n: n[7].update(node_id=n[3]["node_id"]),
        "lost parent": lambda n: n[9].update(parents=["nobody"]),
        "no fields": lambda n: n.insert(4, {"agent_id": "x"}),
        "cycle": lambda n: n[0].update(parents=[n[-1]["node_id"]]),
        "odd": lambda n: n[6].update(hash=7, seq="1", agent_id=""),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, damage in damages.items():
            made = json.loads(json.dumps(nodes))
            damage(made)
            path = pathlib.Path(folder, "damaged.jsonl")
            path.write_text("\n".join(map(json.dumps, made)) + "\n")
            with View(path) as view:
                summary = windows_fit(view, 0)
                assert summary["verified"] is False and summary["errors"] > 0, name
                assert summary["findings"] and summary["findings"][0]["code"], name
                for n in range(summary["nodes"]):
                    status, body = view.raw(f"/api/v1/view/file/node?node=%23{n}")
                    assert status == 200, (name, n, body)
                    for what in ("values", "writes?section=memory&key=phase"):
                        mark = "&" if "?" in what else "?"
                        status, body = view.raw(f"/api/v1/view/file/{what}{mark}node=%23{n}")
                        # Where there is no place in time there is no state, and that is said.
                        assert status in (200, 404), (name, n, what, status, body)
                        assert status == 200 or b"no topological place" in body, body


@test
def a_large_value_costs_what_is_shown_of_it():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "large.jsonl")
        keys = {f"k{i:05}": "x" * 40 for i in range(10000)}
        path.write_text("".join(json.dumps(
            {"node_id": f"n{i}", "agent_id": "a", "seq": i, "timestamp": i, "event": {},
             "state_delta": {"memory": {"large": delta, "small": {"a": i}}}, "prev_hash": "",
             "hash": f"{i:064x}", "fork_type": None, "parents": ["n0"] if i else []}) + "\n"
            for i, delta in enumerate([keys, {"k00001": "y"}])))
        with View(path) as view:
            changes = {one["key"]: one for one in view.ask("node", node="#0")["changes"]}
            large = changes["large"]["new"]
            assert large["least"] and large["cut"] and 256 << 10 < large["size"] < 300 << 10, large["size"]
            assert len(large["text"]) == 2048 and large["text"].startswith('{"k00000":"xx'), large
            assert changes["small"]["new"] == {"cut": False, "size": 7, "text": '{"a":0}'}, changes
            # What it contains is still asked for level by level.
            level = view.ask("values", node="#0", pointer="/memory/large", after="k09998")
            assert [one["key"] for one in level["entries"]] == ["k09999"], level


PICTURES = {
    "png": b"\x89PNG\r\n\x1a\n" + bytes(range(40)), "jpeg": b"\xff\xd8\xff\xe0" + bytes(range(40)),
    "gif": b"GIF89a" + bytes(range(40)), "webp": b"RIFF\x40\0\0\0WEBP" + bytes(range(40)),
}
SCRIPT = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


def image_event(*places):
    """Images where agents have them, deep in what was recorded."""
    return {"role": "user", "raw": {"deep": [{"message": {"content": list(places)}}]}}


def base64_of(data):
    return base64.b64encode(data).decode()


@test
def images_are_what_their_bytes_say():
    url = lambda data, kind="image/png": f"data:{kind};base64,{base64_of(data)}"
    image = lambda data: {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                                      "data": base64_of(data)}}
    events = [
        image_event(image(PICTURES["png"])),
        image_event({"type": "image", "data": base64_of(PICTURES["jpeg"]), "mimeType": "image/jpeg"}),
        image_event({"type": "image_url", "image_url": {"url": url(PICTURES["gif"])}},
                    {"type": "input_image", "image_url": url(PICTURES["webp"])}),
        image_event({"inlineData": {"mimeType": "image/png", "data": base64_of(PICTURES["png"])}},
                    {"inline_data": {"data": base64_of(PICTURES["gif"])}},
                    {"type": "file", "mime": "image/jpeg", "url": url(PICTURES["jpeg"])}),
        # A script is no picture, whatever is said of it; and what is told twice is there once.
        image_event(image(SCRIPT), image(PICTURES["png"]), image(PICTURES["png"])),
        image_event({"type": "image", "source": {"data": "no base64 at all!"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                    {"type": "image", "source": "x"}, {"image_url": None}),
        {"text": "none"},
    ]
    wanted = [["png"], ["jpeg"], ["gif", "webp"], ["png", "gif", "jpeg"], ["other", "png"], ["other"], []]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "images.jsonl")
        # The hashes are none: damaged evidence has its images, too.
        path.write_text("".join(json.dumps(
            {"node_id": f"n{i}", "agent_id": "a", "seq": i, "timestamp": i, "event": event,
             "state_delta": {}, "prev_hash": "", "hash": f"{i:064x}", "fork_type": None,
             "parents": [f"n{i - 1}"] if i else []}) + "\n" for i, event in enumerate(events)))
        with View(path) as view:
            steps = view.ask("steps", all="true")["steps"]
            assert [[one["type"] for one in step.get("pictures", [])] for step in steps] == wanted, steps
            for n, types in enumerate(wanted):
                for index, kind in enumerate(types):
                    view.connection.request("GET", f"/api/v1/view/file/image?node=%23{n}&index={index}",
                                            headers={"Authorization": f"Bearer {view.token}"})
                    answer = view.connection.getresponse()
                    body = answer.read()
                    if n == 5:
                        assert answer.status == 404 and b"base64" in body, body
                        continue
                    assert answer.status == 200, body
                    headers = {name.lower(): value for name, value in answer.getheaders()}
                    assert headers["content-security-policy"] == "default-src 'none'; sandbox", headers
                    assert headers["x-content-type-options"] == "nosniff", headers
                    if kind == "other":
                        assert body == SCRIPT and headers["content-type"] == "application/octet-stream"
                        assert headers["content-disposition"].startswith("attachment;"), headers
                    else:
                        assert body == PICTURES[kind] and headers["content-type"] == f"image/{kind}"
                        assert headers["content-disposition"].startswith("inline;"), headers
            view.ask("image", node="#0", index=1, expected=404)
            view.ask("image", node="#6", expected=404)
            view.ask("image", node="#0", index=64, expected=422)
            view.ask("image", expected=422)
            assert view.raw("/api/v1/view/file/image?node=%230", token="cortex_wrong")[0] == 401


@test
def invalid_questions_are_answered_with_400():
    with View(EXAMPLES / "incident.jsonl") as view:
        assert view.raw("/api/v1/view/file/summary", token="cortex_wrong")[0] == 401
        assert view.raw("/api/v1/view/other/summary")[0] == 404
        assert view.raw("/api/v1/covenant/traces")[0] == 404
        assert view.raw("/api/v1/view/file/nothing")[0] == 404
        for node in ["#", "#99", "#-1", "@nobody", "x" * 2000, "#00000000000001"]:
            view.ask("node", node=node, expected=422 if len(node) > 1024 else 404)
        view.ask("values", node="#3", pointer="memory", expected=422)
        view.ask("values", node="#3", pointer="/memory/~2", expected=422)
        view.ask("values", node="#3", pointer="/nothing", expected=404)
        view.ask("writes", node="#3", section="goals", key="x", expected=422)
        assert view.ask("writes", node="#3", section="memory", key="nobody")["changes"] == []
        view.ask("overview", bins=0, expected=422)
        view.ask("window", max=100000, expected=422)
        far = view.ask("window", **{"from": 4000000000, "to": 4294967295})
        assert far["nodes"]["n"] == [] and far["edges"] == []
        assert view.ask("window", **{"from": 9, "to": 3})["nodes"]["n"] == []
        assert view.ask("overview", **{"from": 26})["cells"] == []
        status, body = view.raw("/api/v1/view")
        assert json.loads(body)["histories"] == [{"entries": 40, "name": "file"}], body


@test
def a_file_that_is_not_a_history_is_refused():
    for arguments, code in [(["/nonexistent"], 3), ([], 2), (["--port", "70000", "x"], None)]:
        done = subprocess.run([BIN, "lattice", "view", "--no-browser", *arguments],
                              capture_output=True, timeout=60)
        assert code is None and done.returncode in (2, 3) or done.returncode == code, done


@test
def a_change_has_its_reason():
    with View(EXAMPLES / "incident.jsonl") as view:
        changes = view.ask("writes", node="@coder", section="memory", key="refund_limit")["changes"]
        made = [change for change in changes if change["via"] == "delta"]
        check(made[-1]["because"] == "Handbook, version 7: up to 500 without approval.", made)
        check(all("because" not in change for change in changes if change["via"] == "merge"), changes)


@test
def a_step_reaches_what_follows_and_what_carries_it():
    nodes = [json.loads(line) for line in (EXAMPLES / "incident.jsonl").read_text().splitlines()[1:]]
    first = nodes[0]["node_id"]
    with View(EXAMPLES / "incident.jsonl") as view:
        reach = view.ask("reach", node=first)
        check(reach["node"]["id"] == first and reach["follows_total"] == len(reach["follows"]), reach)
        after, grew = {first}, True
        while grew:
            more = {n["node_id"] for n in nodes if after & set(n["parents"])} - after
            grew, after = bool(more), after | more
        check(len(reach["follows"]) == len(after) - 1, len(after))
        check({one["n"] for one in reach["carries"]} <= set(reach["follows"]), reach)
        view.ask("reach", 404, node="@nobody")
        view.ask("reach", 422)


@test
def words_are_found_in_a_history():
    with View(EXAMPLES / "incident.jsonl") as view:
        found = view.ask("grep", q=" HANDBOOK  approval")
        check(found["total"] == len(found["hits"]) > 0, found)
        check(all("andbook" in hit["text"] or "approval" in hit["text"] for hit in found["hits"]), found)
        nodes = {n["node_id"]: json.dumps(n) for n in map(json.loads, (
            EXAMPLES / "incident.jsonl").read_text().splitlines()[1:])}
        check({hit["node"] for hit in found["hits"]}
              == {name for name, text in nodes.items() if "andbook" in text and "approval" in text}, found)
        check(view.ask("grep", q="no-step-has-this-word")["hits"] == [])
        view.ask("grep", 422, q="  ")
        view.ask("grep", 422, q=" ".join("abcdefgh"[i % 8] for i in range(65)))
        view.ask("grep", 422)


@test
def a_text_has_its_first_step():
    with View(EXAMPLES / "incident.jsonl") as view:
        said = view.ask("said", node="@coder", text=" Ticket  4821: please refund")
        check(said["places"][0]["agent"] == "user" and said["places"][0]["first"], said)
        check(said["said"] == "Ticket 4821: please refund" and said["verified"], said)
        view.ask("said", 404, node="@coder", text="no step has said this")
        view.ask("said", 404, node="@nobody", text="Ticket")
        view.ask("said", 422, node="@coder")
        view.ask("said", 422, node="@coder", text="x" * 5000)


main()
