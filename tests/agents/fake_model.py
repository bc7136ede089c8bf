"""A model's endpoint on loopback that answers as it is told: enough of the Responses API (server-sent
events) for coding agents to take it for a real one.  It knows nothing and costs nothing.

    with FakeModel([Shell("make"), Say("done")]) as model:
        ... base_url = model.url ...
        model.requests      # bodies, as they came

Each conversation goes through the steps: a step is taken for each answer of a tool the conversation has.
What begins anew with another `user` message (a reply in the same thread) goes on behind them.
"""
import http.server
import json
import threading

BODY_MAX = 16 << 20


class Shell:
    """The agent is told to run this line, by whatever it calls its tool for that."""

    def __init__(self, line):
        self.line = line

    def item(self, tools, call):
        if "exec_command" in tools:
            name, arguments = "exec_command", {"cmd": self.line}
        elif "shell_command" in tools:
            name, arguments = "shell_command", {"command": self.line}
        else:
            name, arguments = "shell", {"command": ["sh", "-c", self.line]}
        return {"type": "function_call", "name": name, "arguments": json.dumps(arguments),
                "call_id": call}


class Say:
    """The agent's last word of a turn."""

    def __init__(self, value):
        self.text = value if isinstance(value, str) else json.dumps(value)

    def item(self, _tools, call):
        return {"type": "message", "role": "assistant", "id": call,
                "content": [{"type": "output_text", "text": self.text}]}


class FakeModel:
    def __init__(self, steps):
        self.steps, self.requests, self.unknown = steps, [], []

    def answer(self, body):
        self.requests.append(body)
        at = sum(1 for item in body.get("input", [])
                 if item.get("type") in ("function_call_output", "custom_tool_call_output")
                 or item.get("role") == "assistant")
        step = self.steps[min(at, len(self.steps) - 1)]
        tools = [tool.get("name", tool.get("type")) for tool in body.get("tools", [])]
        name = f"n{len(self.requests)}"
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1,
                 "output_tokens_details": None, "total_tokens": 2}
        events = [{"type": "response.created", "response": {"id": name}},
                  {"type": "response.output_item.done", "output_index": 0,
                   "item": step.item(tools, name)},
                  {"type": "response.completed", "response": {"id": name, "usage": usage}}]
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)

    def __enter__(self):
        fake = self

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
                fake.unknown.append(self.path)
                self.say(404, "application/json", "{}")

            def do_POST(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(min(size, BODY_MAX))
                if not self.path.endswith("/responses"):
                    fake.unknown.append(self.path)
                    self.say(404, "application/json", "{}")
                    return
                self.say(200, "text/event-stream", fake.answer(json.loads(body)))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
