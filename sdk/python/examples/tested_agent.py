#!/usr/bin/env python3
"""How to test a program that records: with the in-memory double, without a server.

    python3 tested_agent.py
"""
import unittest
from typing import Dict

import cortex_recorder as cortex
from cortex_recorder.testing import Memory


def triage(cx: cortex.Recorder, order: Dict[str, int]) -> bool:
    with cx.step("triage") as s:
        s.saw(order)
        small = order["amount"] <= 500
        s.set("memory/approved", small, because="small amounts need no approval" if small else "too large")
    return small


class Triage(unittest.TestCase):
    def test_says_why(self) -> None:
        cx = Memory()
        self.assertFalse(triage(cx, {"amount": 900}))
        self.assertEqual(cx.why("memory/approved")[0].because, ["too large"])
        self.assertEqual(cx.state()["memory"]["approved"], False)


if __name__ == "__main__":
    unittest.main()
