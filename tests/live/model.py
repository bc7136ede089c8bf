"""A model's endpoint on loopback for three agents: the Messages API (Claude Code), the Responses API
(Codex) and the Gemini API.  It says what the test wrote down and costs nothing.

    with Model({"": [[Call("Bash", command="touch ran")], "done"]}) as model:
        ... model.url ...
        model.results        # what the agent said its tools gave, in order, as text
        model.tools          # names of the tools that the agent offered

The keys are marks: a conversation whose user's text contains the mark goes through these steps, the
longest mark first; "" is everything else.  So a sub-agent gets steps of its own.  A step is a list of
calls, or the last word.  Conversations without tools (titles, routing) get a word that says nothing.
"""
import http.server
import json
import threading

BODY_MAX = 64 << 20
IDLE = '{"title":"played","model_choice":"flash","reasoning":"x","complexity_score":1,"complexity_reasoning":"x"}'


class Call:
    """One call of a tool; `_namespace` is Codex's, `_text` is the input of a tool that takes free text.
    An argument that is a function is called with the text of the last result."""

    def __init__(self, name, _namespace=None, _text=None, /, **arguments):
        self.name, self.namespace, self.text, self.arguments = name, _namespace, _text, arguments

    def given(self, results):
        last = results[-1][1] if results else ""
        return {name: value(last) if callable(value) else value for name, value in self.arguments.items()}


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text") or "") for part in content or [] if isinstance(part, dict))


class Model:
    def __init__(self, conversations):
        self.conversations = conversations
        self.results, self.tools, self.requests, self.unknown = [], [], [], []
        self.lock = threading.Lock()
        self.number = 0

    # --- what to say ---

    def step(self, users, at):
        """The step `at` of the conversation with this user's text."""
        marks = [mark for mark in self.conversations if mark and mark in users]
        steps = self.conversations[max(marks, key=len) if marks else ""]
        return steps[min(at, len(steps) - 1)]

    def saw(self, tools, results):
        for name in tools:
            if name not in self.tools:
                self.tools.append(name)
        for key, text in results:
            if key not in [k for k, _ in self.results]:
                self.results.append((key, text))

    def said(self):
        return "\n".join(text for _, text in self.results)

    # --- Messages ---

    def messages(self, body):
        history = body.get("messages", [])
        users = "\n".join(text_of(m["content"]) for m in history if m["role"] == "user")
        results = [(b["tool_use_id"], text_of(b.get("content")) or str(b.get("content")))
                   for m in history if m["role"] == "user" and isinstance(m["content"], list)
                   for b in m["content"] if b.get("type") == "tool_result"]
        self.saw([t.get("name") for t in body.get("tools") or []], results)
        at = sum(m["role"] == "assistant" for m in history)
        step = self.step(users, at) if body.get("tools") else IDLE
        blocks = [{"type": "text", "text": step}] if isinstance(step, str) else [
            {"type": "tool_use", "id": f"toolu_{self.number}x{n}", "name": call.name, "input": call.given(results)}
            for n, call in enumerate(step)]
        usage = {"input_tokens": 3, "output_tokens": 2, "cache_creation_input_tokens": 0,
                 "cache_read_input_tokens": 0}
        stop = "end_turn" if isinstance(step, str) else "tool_use"
        whole = {"id": f"msg_{self.number}", "type": "message", "role": "assistant", "model": body.get("model"),
                 "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}
        if not body.get("stream"):
            return "application/json", json.dumps(whole)
        events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
        for n, block in enumerate(blocks):
            is_text = block["type"] == "text"
            empty = {"type": "text", "text": ""} if is_text else {**block, "input": {}}
            delta = {"type": "text_delta", "text": block["text"]} if is_text else \
                {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [{"type": "content_block_start", "index": n, "content_block": empty},
                       {"type": "content_block_delta", "index": n, "delta": delta},
                       {"type": "content_block_stop", "index": n}]
        events += [{"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                    "usage": {"output_tokens": 2}}, {"type": "message_stop"}]
        return stream(events, True)

    # --- Responses ---

    def responses(self, body):
        history = [i for i in body.get("input", []) if isinstance(i, dict)]
        users = "\n".join(text_of(i.get("content")) for i in history if i.get("role") == "user")
        results = [(i.get("call_id"), text_of(i.get("output")) if not isinstance(i.get("output"), dict)
                    else str(i["output"].get("content")))
                   for i in history if str(i.get("type")).endswith("_call_output")]
        self.saw([t.get("name", t.get("type")) for t in body.get("tools") or []]
                 + [f"{t['name']}.{u.get('name')}" for t in body.get("tools") or [] for u in t.get("tools") or []],
                 results)
        steps = [int(i["call_id"].split("x")[1]) for i in history
                 if str(i.get("type")).endswith("_call") and str(i.get("call_id")).startswith("call_")]
        step = self.step(users, max(steps) + 1 if steps else 0)
        at = max(steps) + 1 if steps else 0
        items = []
        for n, call in enumerate([] if isinstance(step, str) else step):
            item = {"call_id": f"call_{self.number}x{at}x{n}", "id": f"fc_{self.number}x{n}", "name": call.name,
                    "status": "completed"}
            if call.namespace:
                item["namespace"] = call.namespace
            items.append({**item, "type": "custom_tool_call", "input": call.text} if call.text is not None else
                         {**item, "type": "function_call",
                          "arguments": json.dumps(call.given(results))})
        if isinstance(step, str):
            items = [{"type": "message", "role": "assistant", "id": f"msg_{self.number}", "status": "completed",
                      "content": [{"type": "output_text", "text": step, "annotations": []}]}]
        usage = {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 5}
        answer = {"id": f"resp_{self.number}", "object": "response", "model": body.get("model")}
        return stream([{"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}}]
                      + [{"type": "response.output_item.done", "output_index": n, "item": item}
                         for n, item in enumerate(items)]
                      + [{"type": "response.completed",
                          "response": {**answer, "status": "completed", "output": items, "usage": usage}}], True)

    # --- Gemini ---

    def gemini(self, body, streamed):
        history = body.get("contents", [])
        users = "\n".join(text_of(c.get("parts")) for c in history if c.get("role") == "user")
        found = [p["functionResponse"] for c in history for p in c.get("parts") or [] if "functionResponse" in p]
        results = [((text_of(history[0].get("parts")) if history else "", n), json.dumps(p.get("response"), ensure_ascii=False))
                   for n, p in enumerate(found)]
        names = [f["name"] for t in body.get("tools") or [] for f in t.get("functionDeclarations") or []]
        self.saw(names, results)
        at = sum(c.get("role") == "model" for c in history)
        step = self.step(users, at) if names else IDLE
        parts = [{"text": step}] if isinstance(step, str) else [
            {"functionCall": {"name": call.name, "args": call.given(results)}} for call in step]
        answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
                  "modelVersion": "played", "responseId": f"r{self.number}"}
        return stream([answer], False) if streamed else ("application/json", json.dumps(answer))

    # --- the server ---

    def answer(self, path, body):
        with self.lock:
            self.number += 1
            self.requests.append((path, body))
            if path.endswith("/messages"):
                return self.messages(body)
            if path.endswith("/responses"):
                return self.responses(body)
            if path.endswith("enerateContent"):
                return self.gemini(body, "stream" in path)
            if path.endswith("count_tokens"):
                return "application/json", '{"input_tokens":3}'
            if path.endswith("countTokens"):
                return "application/json", '{"totalTokens":3}'
            self.unknown.append(path)
            return None

    def __enter__(self):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def say(self, code, kind, text):
                data = text.encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                if self.headers.get("Upgrade"):
                    self.close_connection = True
                    self.say(426, "text/plain", "")
                else:
                    self.say(404, "application/json", "{}")

            do_HEAD = do_GET

            def do_POST(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(min(size, BODY_MAX))
                try:
                    given = model.answer(self.path.split("?")[0], json.loads(body or b"{}"))
                except ValueError:
                    given = None
                self.say(*((200, *given) if given else (404, "application/json", "{}")))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def stream(events, named):
    return "text/event-stream", "".join(
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events)
