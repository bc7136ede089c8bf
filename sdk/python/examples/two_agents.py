#!/usr/bin/env python3
"""Two agents in asyncio: one hands work over, the other's step follows it.

    CORTEX_URL=http://127.0.0.1:8420 CORTEX_TOKEN=... python3 two_agents.py
"""
import asyncio

import cortex_recorder as cortex


async def check_order(clerk: cortex.Client, order: str, ref: cortex.Ref) -> None:
    async with clerk.step(f"check {order}") as s:
        s.saw(ref)
        await asyncio.sleep(0)  # ask a model
        s.set(f"orders/{order}", "valid", because=ref)


async def main() -> None:
    front, clerk = cortex.init("front"), cortex.init("clerk")
    orders = ["A-1", "A-2", "A-3"]
    refs = [front.handoff("clerk", f"please check {order}") for order in orders]
    await asyncio.gather(*(check_order(clerk, o, r) for o, r in zip(orders, refs)))
    await front.aflush()
    print((await clerk.aflush()).delivered, "steps of clerk")
    print(clerk.state()["memory"]["orders"])


if __name__ == "__main__":
    asyncio.run(main())
