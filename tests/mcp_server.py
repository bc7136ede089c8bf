#!/usr/bin/env python3
"""mcp_server.py SCRIPT.json - an MCP server on standard input and output that does what a script says:
a coding agent, or the worst of servers.

    {"protocol": "2025-11-25",          answered to initialize; absent: what the client asked for;
                                        "2026-07-28": stateless, so that there is no initialize
     "tools": [["codex"], ["codex-reply"]],   pages of tools/list
     "required": {"codex-reply": ["prompt"]}, what the input schema of a tool requires
     "hello": [ACTION..],               before initialize is answered
     "turns": [{"actions": [ACTION..], "writes": {PATH: TEXT}, "thread": ID, "output": VALUE,
                "inputs": {NAME: [METHOD, PARAMS]},   what a stateless call asks first
                "result": RESULT}]}      one a call; "result" replaces the whole result

Writes are relative to the call's cwd (kept for codex-reply).  An output that is no text is sent as JSON.
Actions, in order:

    {"notify": [METHOD, PARAMS], "times": N}    a notification, N times
    {"ask": [METHOD, PARAMS]}                   a request; the answer is awaited and kept
    {"say": TEXT}                               a line of any text
    {"huge": N}                                 a message of N bytes
    {"flood": N}                                N bytes without an end of line
    {"wrong_id": true}                          an answer to nothing
    {"complain": TEXT}                          on standard error
    {"remove": PATH}                            below cwd
    {"close": true}                             closes standard output and waits
    {"hang": true}                              answers nothing any more, and ignores the end of input
    {"exit": CODE}

"output": "$ANSWERS" gives back what the asks were answered, "$ARGUMENTS" what the call was given.
"""
import json
import os
import sys
import threading

STATELESS = "2026-07-28"
META = "io.modelcontextprotocol/"


def send(message):
    sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Server:
    def __init__(self, script):
        self.script = script
        self.turn = 0
        self.cwd = "."
        self.asked = 0
        self.answers = []

    def receive(self):
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def ask(self, method, params):
        self.asked += 1
        name = f"ask-{self.asked}"
        send({"jsonrpc": "2.0", "id": name, "method": method, "params": params})
        while True:
            message = self.receive()
            if message is None:
                sys.exit(0)
            if message.get("id") == name and "method" not in message:
                answer = dict(message)
                del answer["jsonrpc"], answer["id"]
                self.answers.append(answer)
                return

    def act(self, action):
        if "notify" in action:
            method, params = action["notify"]
            for _ in range(action.get("times", 1)):
                send({"jsonrpc": "2.0", "method": method, "params": params})
        elif "ask" in action:
            self.ask(*action["ask"])
        elif "say" in action:
            sys.stdout.write(action["say"] + "\n")
            sys.stdout.flush()
        elif "huge" in action:
            send({"jsonrpc": "2.0", "method": "x", "params": {"text": "x" * action["huge"]}})
        elif "flood" in action:
            sys.stdout.write("x" * action["flood"])
            sys.stdout.flush()
        elif "wrong_id" in action:
            send({"jsonrpc": "2.0", "id": 4711, "result": {}})
        elif "complain" in action:
            sys.stderr.write(action["complain"] + "\n")
            sys.stderr.flush()
        elif "remove" in action:
            os.unlink(os.path.join(self.cwd, action["remove"]))
        elif "close" in action:
            sys.stdout.flush()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            threading.Event().wait()
        elif "hang" in action:
            threading.Event().wait()
        elif "exit" in action:
            sys.stdout.flush()
            os._exit(action["exit"])

    def initialize(self, params):
        for action in self.script.get("hello", []):
            self.act(action)
        return {"protocolVersion": self.script.get("protocol", params.get("protocolVersion")),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"}}

    def list_tools(self, params):
        pages = self.script.get("tools", [["codex", "codex-reply"]])
        required = self.script.get("required", {})
        page = int(params.get("cursor", "0"))
        result = {"tools": [{"name": name, "description": f"the tool {name}",
                             "inputSchema": {"type": "object", "required": required.get(name, [])}}
                            for name in pages[page]]}
        if page + 1 < len(pages):
            result["nextCursor"] = str(page + 1)
        return result

    def call(self, params):
        arguments = params.get("arguments", {})
        if self.turn >= len(self.script.get("turns", [])):
            return {"content": [{"type": "text", "text": "no turn left"}], "isError": True}
        turn = self.script["turns"][self.turn]
        if turn.get("inputs") and "inputResponses" not in params:
            return {"resultType": "input_required", "requestState": f"turn {self.turn}",
                    "inputRequests": {name: {"method": method, "params": given}
                                      for name, (method, given) in turn["inputs"].items()}}
        if turn.get("inputs") and params.get("requestState") != f"turn {self.turn}":
            return {"content": [{"type": "text", "text": "another state"}], "isError": True}
        self.turn += 1
        self.cwd = arguments.get("cwd", self.cwd)
        self.answers = [params["inputResponses"]] if "inputResponses" in params else []
        for action in turn.get("actions", []):
            self.act(action)
        for path, text in turn.get("writes", {}).items():
            path = os.path.join(self.cwd, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        if "result" in turn:
            return turn["result"]
        output = turn.get("output", "")
        if output == "$ANSWERS":
            output = self.answers
        elif output == "$ARGUMENTS":
            output = {"tool": params["name"], **arguments}
        if not isinstance(output, str):
            output = json.dumps(output)
        return {"content": [{"type": "text", "text": output}],
                "structuredContent": {"threadId": turn.get("thread", "thread-1"), "content": output}}

    def discover(self, params):
        return {"supportedVersions": [STATELESS], "capabilities": {"tools": {}}, "resultType": "complete",
                "_meta": {META + "serverInfo": {"name": "scripted", "version": "1"}}}

    def refusal(self, params):
        """Why a stateless server takes no request: each says the revision and what the client can."""
        meta = params.get("_meta", {})
        if meta.get(META + "protocolVersion") != STATELESS:
            return {"code": -32022, "message": "no such revision", "data": {"supported": [STATELESS]}}
        if META + "clientCapabilities" not in meta:
            return {"code": -32602, "message": "no capabilities"}
        return None

    def run(self):
        methods = {"initialize": self.initialize, "tools/list": self.list_tools,
                   "tools/call": self.call, "ping": lambda params: {}}
        stateless = self.script.get("protocol") == STATELESS
        if stateless:
            methods = {"server/discover": self.discover, "tools/list": self.list_tools, "tools/call": self.call}
        while True:
            message = self.receive()
            if message is None:
                return
            if "id" not in message or "method" not in message:
                continue
            known = methods.get(message["method"])
            refusal = self.refusal(message.get("params", {})) if stateless and known else None
            if refusal is not None:
                send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
            elif known is None:
                send({"jsonrpc": "2.0", "id": message["id"],
                      "error": {"code": -32601, "message": "no such method"}})
            else:
                send({"jsonrpc": "2.0", "id": message["id"],
                      "result": known(message.get("params", {}))})


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as script_file:
        Server(json.load(script_file)).run()
