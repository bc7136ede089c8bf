#!/usr/bin/env python3
"""An agent with a gate: it reads a policy, refunds within its limit, and shows why it may.

    CORTEX_URL=http://127.0.0.1:8420 CORTEX_TOKEN=... python3 refunds.py
"""
import cortex_recorder as cortex

POLICY = {"text": "Refunds up to 500 need no approval.", "metadata": {"source": "policy.md"}}


def main() -> None:
    with cortex.init(agent="refunds") as cx:
        with cx.step("read the policy") as s:
            s.saw(POLICY)
            s.set("memory/limit", 500, because=POLICY)

        @cx.gate("refund")
        def within_limit(call: cortex.Call) -> object:
            limit = 500
            return call.arguments["amount"] <= limit or f"more than {limit}"

        @cx.tool(gate="refund")
        def refund(order: str, amount: int) -> str:
            return f"refunded {amount} for {order}"

        print(refund("A-7", 120))
        try:
            refund("A-8", 900)
        except cortex.Refused as refused:
            print(refused)
        receipt = cx.flush()
        print(f"{receipt.delivered} steps, journal root {receipt.root}")
        for change in cx.why("memory/limit"):
            print(f"limit: {change.old} -> {change.new} because {', '.join(change.because)}")


if __name__ == "__main__":
    main()
