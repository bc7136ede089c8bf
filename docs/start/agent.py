"""An agent that records what it does, with nothing but Python's own library."""
import json
import os
import urllib.request


def record(*steps):
    sent = urllib.request.Request(
        os.environ["CORTEX_URL"] + "/api/v1/steps", json.dumps({"steps": steps}).encode(),
        {"Authorization": "Bearer " + os.environ["CORTEX_TOKEN"],
         "Content-Type": "application/json"})
    with urllib.request.urlopen(sent) as answer:
        return json.load(answer)


taken = record(
    {"agent": "refunds", "event": {"kind": "observation", "text": "The policy says: at most 500"},
     "state_delta": {"memory": {"limit": 500}}},
    {"agent": "refunds", "event": {"kind": "decision", "text": "A VIP may get more",
                                   "because": "the manager's mail"},
     "state_delta": {"memory": {"limit": 900}}})
print(taken["accepted"], "steps recorded")
