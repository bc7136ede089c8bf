#!/usr/bin/env python3
"""What an agent calls, over the in-memory double: steps, tools, gates, values, redaction, gaps."""
import asyncio
import dataclasses
import datetime
import enum
import json
import pathlib
import sys
import threading

from sdk_kit import Said, check, cortex, main, test
from cortex_recorder import _recorder, _values
from cortex_recorder.testing import Memory


def fails(error, call):
    try:
        call()
    except error as found:
        return found
    raise AssertionError("it did not fail")


@test
def a_step_says_what_it_saw_changed_and_why():
    cx = Memory("refunds")
    doc = {"title": "policy", "text": "the limit is 500", "metadata": {"source": "policy.md"}}
    with cx.step("triage", model="m-1") as s:
        s.saw(doc)
        s.set("memory/limit", 500, because=doc)
        s.set("order/id", 7, because="the customer said so")
        s.believe("fraud", False, 0.9)
        s.goals(["refund"])
    step, = cx.steps
    check(step["agent"] == "refunds" and step["key"] == s.key)
    check(step["state_delta"] == {"memory": {"limit": 500, "order": {"id": 7}}, "goals": ["refund"],
                                  "beliefs": {"fraud": {"value": False, "confidence": 0.9}}}, step)
    event = step["event"]
    check(event["kind"] == "decision" and event["name"] == event["text"] == "triage", event)
    check(event["model"] == "m-1" and event["duration_ns"] > 0)
    seen, = event["saw"]
    check(seen["name"] == "policy.md" and seen["text"] == "the limit is 500", seen)
    check(event["because"] == "the limit is 500; the customer said so", event)
    check(event["reasons"][0] == {"key": "memory.limit", **seen}, event["reasons"])
    check(event["reasons"][1] == {"key": "memory.order.id", "text": "the customer said so"})
    change, = cx.why("memory/limit")
    check(change.new == 500 and change.because == ["the limit is 500"], change)
    check(cx.why("order/id")[0].because == ["the customer said so"])
    check(cx.state()["memory"] == {"limit": 500, "order": {"id": 7}})


@test
def an_exception_is_recorded_and_goes_on():
    cx = Memory()

    def work():
        with cx.step("triage"):
            raise KeyError("order")
    fails(KeyError, work)
    check(cx.events()[0]["error"] == "'order'" and cx.events()[0]["error_type"] == "KeyError", cx.events())
    for error, text in ((ValueError(), "ValueError"), ({"message": "m", "type": "T"}, "m"), ("text", "text"),
                        ({"code": 7}, '{"code":7}'), (7, "7")):
        cx.end_call("x", "c", error=error)
        check(cx.events()[-1]["error"] == text and cx.events()[-1]["status"] == "error", cx.events()[-1])


@test
def wrong_calls_say_what_was_expected():
    cx = Memory()
    s = cx.step("x")
    for call, word in ((lambda: s.set("", 1), "memory/NAME"), (lambda: s.set("memory", 1), "memory/NAME"),
                       (lambda: s.set("a//b", 1), "NAME/NAME"), (lambda: s.add(kind="thought"), "tool_call"),
                       (lambda: s.add(__seal=1), "__"), (lambda: Memory(""), "200 bytes"),
                       (lambda: Memory("run:1"), "own"), (lambda: Memory("a\nb"), "control"),
                       (lambda: cortex.init("a", url="ftp://x"), "http://"),
                       (lambda: cortex.init("a", url="http://x", token="a b"), "printable"),
                       (lambda: cortex.init("a", url="http://x", token=5), "printable"),
                       (lambda: cortex.init("a", url="http://me:secret@x"), "password"),
                       (lambda: cortex.init("a", fsync="sometimes"), "interval"),
                       (lambda: cortex.init("a", spool_bytes=1), "65536"),
                       (lambda: cortex.init(), "CORTEX_AGENT"),
                       (lambda: cortex.init("a", key="/nonexistent"), "cannot read")):
        found = fails(cortex.UsageError, call)
        check(word in str(found), found)
    check(cx.steps == [])


@test
def steps_within_steps_name_the_outer_one():
    cx = Memory()
    with cx.step("outer") as outer:
        with cx.step("inner"):
            cx.note("deep")
        cx.note("shallow")
    deep, inner, shallow, top = cx.events()
    check(deep["within"] == cx.steps[1]["key"] and inner["within"] == outer.key == shallow["within"])
    check("within" not in top)


@test
def a_step_of_another_agent_becomes_a_parent():
    desk, clerk = Memory("desk"), Memory("clerk")
    ref = desk.handoff("clerk", "please check")
    with clerk.step("check") as s:
        s.saw(ref)
        s.set("memory/checked", True, because=ref)
    check(clerk.steps[0]["parents"] == [{"agent": "desk", "key": ref.key}], clerk.steps)
    check(clerk.events()[0]["reasons"] == [{"key": "memory.checked", "step": f"desk/{ref.key}"}])


@test
def a_tool_is_recorded_before_and_after():
    cx = Memory()
    order = []

    @cx.tool
    def look_up(order_id, *, deep=False):
        """Finds it."""
        order.append(len(cx.steps))
        return {"id": order_id}
    check(look_up(7, deep=True) == {"id": 7} and look_up.__doc__ == "Finds it." and order == [1])
    before, after = cx.events()
    check(before["kind"] == "tool_call" and before["arguments"] == {"order_id": 7, "deep": True}, before)
    check(after["kind"] == "tool_result" and after["result"] == {"id": 7} and after["duration_ns"] >= 0)
    check(before["call_id"] == after["call_id"] and before["tool"] == "look_up")
    last = cx.state()["memory"]["tool.look_up.last"]
    check(last["status"] == "ok" and json.loads(last["result"]) == {"id": 7}, last)
    check([c.new["status"] for c in cx.why("tool.look_up.last")] == ["ok", "open"])

    @cx.tool(name="boom")
    def fail():
        raise RuntimeError("no")
    fails(RuntimeError, fail)
    check(cx.events()[-1]["error"] == "no" and cx.events()[-1]["error_type"] == "RuntimeError")


@test
def a_gate_decides_and_fails_closed():
    cx = Memory()
    ran = []

    @cx.tool(gate="refund")
    def refund(order, amount):
        ran.append(amount)
        return "done"

    def reason(answer):
        cx.gate("refund", answer)
        return fails(cortex.Refused, lambda: refund(1, amount=900)).reason

    check("no gate 'refund' is registered" in str(fails(cortex.Refused, lambda: refund(1, 5))))
    check(reason(lambda call: False) == "not allowed")
    check(reason(lambda call: "too much") == "too much")
    check("NoneType" in reason(lambda call: None))
    check("int" in reason(lambda call: 1))
    check("ZeroDivisionError" in reason(lambda call: 1 / 0))

    async def later(call):
        return True
    check("asynchronous" in reason(later))
    check(ran == [])
    events = cx.events()
    check([e["kind"] for e in events] == ["tool_call", "decision", "tool_result"] * 7)
    check({e["verdict"] for e in events if e["kind"] == "decision"} == {"refused"})
    check(all(e["error_type"] == "Refused" for e in events if e["kind"] == "tool_result"))
    seen = []

    @cx.gate("refund")
    def decide(call):
        seen.append(call)
        return call.arguments["amount"] <= 100
    check(refund(1, 100) == "done" and ran == [100])
    check(seen[0].tool == "refund" and seen[0].arguments == {"order": 1, "amount": 100}, seen)
    check([e["kind"] for e in cx.events()[-3:]] == ["tool_call", "decision", "tool_result"])
    check(cx.events()[-2]["verdict"] == "allowed")


@test
def asyncio_tools_gates_and_steps():
    cx = Memory()

    @cx.gate("g")
    async def decide(call):
        await asyncio.sleep(0)
        return call.arguments["n"] < 3

    @cx.tool(gate="g")
    async def work(n):
        await asyncio.sleep(0)
        return n

    async def one(n):
        async with cx.step(f"job {n}") as s:
            s.set(f"job/{n}", n)
            return await work(n)

    async def everything():
        return await asyncio.gather(*(one(n) for n in range(5)), return_exceptions=True)
    found = asyncio.run(everything())
    check(found[:3] == [0, 1, 2] and all(isinstance(e, cortex.Refused) for e in found[3:]), found)
    names = {s["key"]: s["event"].get("name") for s in cx.steps}
    for event in cx.events("tool_call"):  # the tasks do not see each other's steps
        check(names[event["within"]] == f"job {event['arguments']['n']}", event)

    async def cancelled():
        task = asyncio.ensure_future(slow())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    @cx.tool
    async def slow():
        await asyncio.sleep(60)
    asyncio.run(cancelled())
    check(cx.events()[-1]["error_type"] == "CancelledError", cx.events()[-1])


@test
def redaction_comes_before_everything():
    def redact(content):
        if "drop" in content["event"].get("text", ""):
            return None
        if "bug" in content["event"].get("text", ""):
            raise ValueError("in the callback")
        text = json.dumps(content).replace("4111111111111111", "[card]")
        return json.loads(text)
    cx = Memory(redact=redact)
    with cx.step("pay") as s:
        s.saw("card 4111111111111111")
        s.set("memory/card", "4111111111111111", because="card 4111111111111111")
    check("4111" not in json.dumps(cx.steps) and "[card]" in json.dumps(cx.steps), cx.steps)
    cx.note("drop me")
    with Said() as said:
        cx.note("bug: 4111111111111111", secret="s3cret")
    check(len(cx.steps) == 2 and cx.stats.suppressed == 1)
    check("s3cret" not in json.dumps(cx.steps) and "failed" in cx.events()[1]["text"], cx.events())
    check(said.has("redact() failed"))


@test
def what_cannot_be_stored_is_counted_said_and_noted_later():
    cx = Memory(fail=True)
    with Said() as said:
        for _ in range(3):
            cx.note("lost")
        check(said.has("dropped") and len(said.texts) == 1, said.texts)  # once a minute
    cx.fail = False
    cx.note("kept")
    gap, kept = cx.events()
    check(gap["dropped"] == 3 and "3 steps were not recorded" in gap["text"] and gap["since"] > 0, gap)
    check(kept["text"] == "kept" and cx.stats.dropped == 3 and cx.stats.recorded == 1)


@test
def every_value_has_a_json_form():
    class Colour(enum.Enum):
        RED = "red"

    @dataclasses.dataclass
    class Order:
        id: int
        when: datetime.date

    class Model:
        def model_dump(self):
            return {"a": Order(1, datetime.date(2026, 1, 2))}

    class Bad:
        def __repr__(self):
            raise RuntimeError("no")
    circle = []
    circle.append(circle)
    for value, expected in (
            (Colour.RED, "red"), (Order(1, datetime.date(2026, 1, 2)), {"id": 1, "when": "2026-01-02"}),
            (Model(), {"a": {"id": 1, "when": "2026-01-02"}}), ((1, 2), [1, 2]), ({2, 1}, [1, 2]),
            (float("nan"), "nan"), (float("-inf"), "-inf"), (b"ab", {
                "bytes": 2, "sha256": _values.digest(b"ab")}), (pathlib.Path("/x"), "/x"),
            ({1: None, None: 2}, {"1": None, "None": 2}), (1 << 300, hex(1 << 300)),
            (ValueError("x"), {"type": "ValueError", "message": "x"}), (True, True), ("\ud800", "\ud800")):
        check(_values.plain(value) == expected, value, _values.plain(value))
        _values.canonical(_values.plain(value))
    check("no repr" in _values.plain(Bad()))
    check("deeper" in json.dumps(_values.plain(circle)))
    check(len(json.dumps(_values.plain(list(range(10)) * 5000))) < 300_000)
    many = _values.plain([{} for _ in range(30_000)])
    check(many[-1] == "[more than 20000 values]")
    text = _values.plain("x" * 100_000)
    check(text.endswith("cut: 100000 bytes, sha256 " + _values.digest(b"x" * 100_000) + "]"))


@test
def a_step_of_many_megabytes_is_shortened_and_says_so():
    cx = Memory()
    cx.note("big", blob=["y" * 60_000 for _ in range(100)])
    step, = cx.steps
    check(len(_values.canonical(step)) <= _recorder.MAX_STEP and step["event"]["too_long"] > 5_000_000)
    check("cut:" in step["event"]["blob"][0] and cx.stats.shortened == 1)
    cx.note("bigger", blob=[["y" * 60_000] * 10 for _ in range(200)])
    check(len(_values.canonical(cx.steps[1])) <= _recorder.MAX_STEP and cx.stats.failed == 0)
    check(cx.events()[1]["text"] == "bigger")


@test
def many_threads_record():
    cx = Memory()

    def work(who):
        for i in range(200):
            with cx.step(f"{who}") as s:
                s.set(f"count/{who}", i)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(len({s["key"] for s in cx.steps}) == 1600 == cx.stats.recorded)
    check(not any("within" in e for e in cx.events()))


@test
def the_double_answers_as_a_server_does():
    cx = Memory()
    with cx.step("a") as s:
        s.set("memory/a/b", 1)
    with cx.step("b") as s:
        s.set("memory/a/b", 2).set("memory/c", 1)
    with cx.step("c") as s:
        s.forget("memory/c")
    check([(c.old, c.new, c.seq) for c in cx.why("memory/a/b")] == [(1, 2, 1), (None, 1, 0)])
    check([(c.old, c.new) for c in cx.why("c")] == [(1, None), (None, 1)])
    check(fails(cortex.ServerError, lambda: cx.why("memory/never")).status == 404)
    check(cx.flush().root == cx.flush().root and cx.flush().proof is None)


if __name__ == "__main__":
    sys.exit(main())
