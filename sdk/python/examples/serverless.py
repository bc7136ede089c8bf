#!/usr/bin/env python3
"""A function of a serverless platform: the recorder is made once an instance, and each call ends with a
flush that is bounded. What could not be delivered is delivered by a later call.

    CORTEX_URL=http://127.0.0.1:8420 CORTEX_TOKEN=... python3 serverless.py
"""
from typing import Any, Dict

import cortex_recorder as cortex

cx = cortex.init(agent="function")


def handler(event: Dict[str, Any]) -> Dict[str, Any]:
    with cx.step("handle", request=event["id"]) as s:
        s.set(f"requests/{event['id']}", "done")
    try:
        cx.flush(timeout=3.0)
    except cortex.NotDelivered as error:
        return {"ok": True, "waiting": error.pending}
    return {"ok": True, "waiting": 0}


if __name__ == "__main__":
    for number in range(3):
        print(handler({"id": f"r{number}"}))
