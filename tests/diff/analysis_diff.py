#!/usr/bin/env python3
"""Differential test: detectors, capacity, N_eff, audit chains and IDMA against trace_model.py.

    analysis_diff.py PROGRAM [DOCUMENTS [SEED]]

Random fleets and chains, in random order, go to PROGRAM (analysis_diff.c) and to the model; both
must name the same things in the same order, numbers within 1e-9.  A case that rounding decides is
left out and counted; so that nothing passes by being quiet, every kind of finding must have come up.
"""
import collections
import json
import math
import pathlib
import random
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "cli")]
sys.dont_write_bytecode = True
import trace_model  # noqa: E402  (next to this script)
from kit import BIN, arguments, finish_comparison  # noqa: E402

DAY = trace_model.DAY
NOW = 1_767_000_000 * 10**9  # 2025-12-29, not at midnight
ACTIONS = ["SPEAK", "TOOL", "MEMORIZE", "FORGET", "PONDER", "DEFER", None]
TYPES = [None, None, "VERIFY_IDENTITY", "VALIDATE_INTEGRITY"]
SCORES = ["csdma", "dsdma", "coherence", "entropy", "k_eff", "rho", "entropy_score",
          "coherence_score", "veto_ratio", "humility_certainty"]
FLAGS = ["fragility_flag", "entropy_passed", "coherence_passed", "veto_passed", "humility_passed",
         "conscience_passed", "overridden", "action_success", "has_positive_moment"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, around, spread, coarse):
        value = self.random.gauss(around, spread)
        return round(value * 64) / 64 if coarse else value

    def row(self, number, agent, domain, style):
        rng = self.random
        row = {
            "trace_id": "t%05d" % number, "agent": agent, "agent_name": style["name"],
            "trace_type": rng.choice(TYPES), "domain": domain,
            "selected_action": rng.choice(style["actions"]),
            "timestamp_ns": NOW - int(rng.uniform(*style["days"]) * DAY),
            "has_audit_seq": rng.random() < 0.9,
        }
        row["timestamp_ns"] = rng.choice(
            [row["timestamp_ns"]] * 20 + [NOW, NOW - 1, NOW - 7 * DAY, NOW - 7 * DAY - 1,
                                          NOW - 30 * DAY, row["timestamp_ns"] // DAY * DAY])
        steady = row["timestamp_ns"] < style["changes_at"]
        for name in SCORES:
            around = style["around"] if steady else style["later"]
            row[name] = (None if rng.random() < style["absent"]
                         else around if style["flat"]
                         else self.number(around, style["spread"], style["coarse"]))
        if row["k_eff"] is not None:
            row["k_eff"] *= 3
        for name in FLAGS:
            row[name] = None if rng.random() < style["absent"] else rng.random() < style["passes"]
        if row["overridden"] is not None:
            row["overridden"] = rng.random() < style["overrides"]
        if rng.random() < 0.02:
            row["agent_name"] = rng.choice(["other", None])
        return row

    def style(self, base):
        rng = self.random
        style = dict(base, name="n%d" % rng.randrange(3), actions=rng.choice(
            [ACTIONS, ["SPEAK"], ["SPEAK", "TOOL"], ["SPEAK", "TOOL", "PONDER"]]))
        if rng.random() < 0.25:
            style["around"] += rng.choice([-0.3, 0.1, 0.3])
        style["later"] = style["around"] + rng.choice([0, 0, 0, 0.2, -0.3])
        style["changes_at"] = NOW - rng.randrange(1, 30) * DAY
        style["overrides"] = rng.choice([base["overrides"]] * 3 + [0.5])
        style["spread"] = rng.choice([base["spread"]] * 3 + [0.25])
        return style

    def rows(self, agents, most, base, domains):
        rng = self.random
        rows = []
        for i in range(agents):
            style = self.style(base)
            for _ in range(rng.choice([3, 9, 10, 11, 19, 20, most])):
                rows.append(self.row(len(rows), "agent%d" % i, rng.choice(domains), style))
        rng.shuffle(rows)
        return rows

    def base(self):
        rng = self.random
        return {
            "around": rng.choice([0.5, 0.625, 0.75]), "spread": rng.choice([0.03, 0.1]),
            "coarse": rng.random() < 0.3, "flat": rng.random() < 0.15,
            "absent": rng.choice([0, 0, 0.1, 0.5]), "passes": rng.choice([0.5, 0.9, 1.0]),
            "overrides": rng.choice([0, 0.02, 0.1]),
            "days": rng.choice([(0, 7), (0, 30), (0, 40), (0, 3)]),
        }

    def detect(self):
        domains = self.random.choice([["d"], ["d", None], ["d", "é", None], [None]])
        return {"op": "detect", "now_ns": NOW,
                "rows": self.rows(self.random.randrange(1, 9), 60, self.base(), domains)}

    def alike(self):
        """Agents with the same scores in another order, but for one: the others do not differ."""
        rng = self.random
        base = dict(self.base(), days=(0, 6), absent=0)
        scores = [rng.random() for _ in range(rng.choice([9, 10, 25]))]
        off = rng.choice([0, 0.0625, 0.3])
        rows = []
        for i in range(rng.choice([3, 4, 6])):
            rng.shuffle(scores)
            for score in scores:
                rows.append(self.row(len(rows), "agent%d" % i, "d", self.style(base)))
                rows[-1]["timestamp_ns"] = NOW - rng.randrange(1, 7 * DAY)
                for name in ("csdma", "dsdma", "coherence"):
                    rows[-1][name] = score - (off if i == 0 else 0)
        rng.shuffle(rows)
        return {"op": "detect", "now_ns": NOW, "rows": rows}

    def capacity(self):
        rng = self.random
        base = dict(self.base(), around=rng.choice([0.6, 0.9, 1.0]), days=(0, 30))
        if rng.random() < 0.2:  # else nobody comes near 1
            base.update(around=1.0, flat=True, passes=1.0, overrides=0, absent=0)
        most = rng.choice([12, 40, 150])
        rows = self.rows(1, most, base, [None])
        baseline = self.rows(rng.choice([0, 1]), rng.choice([5, 15, 40]), base, [None])
        return {"op": "capacity", "now_ns": NOW, "rows": rows, "baseline": baseline,
                "received": rng.choice([0, len(rows), len(rows) + 3, len(rows) * 20]),
                "chain": rng.choice(["holds", "holds", "indeterminate", "broken"])}

    def n_eff(self):
        return {"op": "n_eff", "rows": self.rows(self.random.randrange(1, 4), 80, self.base(),
                                                 [None])}

    def chain(self):
        rng = self.random
        genesis = rng.choice([None, None, "7f" * 32])
        start = rng.choice([0, 1, 1, 1, 5])
        entries, previous = [], genesis or ""
        if start == 5 and not genesis:
            previous = "ab" * 32
        for i in range(rng.randrange(0, 9)):
            entry = {"seq": start + i, "action": rng.choice(["speak", "défer", ""]),
                     "success": rng.random() < 0.7, "timestamp": "2026-01-01T05:%02d:00Z" % i,
                     "timestamp_ns": NOW + i * 60 * 10**9, "trace_id": "t%d" % i, "hash": ""}
            entry["hash"] = previous = trace_model.entry_hash(previous, entry)
            entries.append(entry)
        for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
            self.damage(entries)
        if rng.random() < 0.1:
            for entry in entries:
                entry["hash"] = "%064x" % rng.getrandbits(256)
        rng.shuffle(entries)
        for i, entry in enumerate(entries):
            entry["arrival"] = i
        return {"op": "chain", "now_ns": NOW, "entries": entries, "genesis": genesis,
                "profile": rng.choice(["auto", "auto", "spec-1.0", "agent"])}

    def damage(self, entries):
        rng = self.random
        if not entries:
            return
        at = rng.randrange(len(entries))
        entry, kind = entries[at], rng.randrange(9)
        if kind == 0:
            del entries[at]
        elif kind == 1:
            entries.append(dict(entry))
        elif kind == 2:
            entries.append(dict(entry, trace_id="copy%d" % at))
        elif kind == 3:
            entries.append(dict(entry, trace_id="twin%d" % at, success=not entry["success"],
                                hash="%064x" % rng.getrandbits(256)))
        elif kind == 4:
            entry["action"] = rng.choice(["tool_x", None])
        elif kind == 5:
            entry["hash"] = rng.choice(["0" * 64, None])
        elif kind == 6:
            entry["timestamp_ns"] -= rng.randrange(1, 5) * 60 * 10**9
        elif kind == 7:
            entry["success"] = rng.choice([None, not entry["success"]])
        else:
            entry["seq"] = rng.choice([entry["seq"] + 1, entry["seq"] + 3, 2**62])

    def idma(self):
        rng = self.random
        rho = rng.choice([None, 0.0, 1.0, 1.01, -0.1, 0.25, rng.random()])
        sources = rng.choice([None, 0, 1, 2, 3, 1000])
        k_eff = rng.choice([None, 0.0, 1.05, 2.0, 1.67, rng.uniform(0, 3)])
        if rng.random() < 0.3 and rho is not None and sources:
            k_eff = sources / (1 + abs(rho) * (sources - 1)) + rng.choice([0, 0.009, -0.011])
        return {"op": "idma", "k_eff": k_eff, "correlation_risk": rho, "sources": sources,
                "fragility_flag": rng.choice([None, True, False]),
                "established": rng.random() < 0.5}


def expected(question):
    op = question["op"]
    if op == "detect":
        return trace_model.detect(question["rows"], NOW)
    if op == "capacity":
        return trace_model.capacity(question["rows"], question["baseline"], question["received"],
                                    question["chain"], NOW)
    if op == "n_eff":
        return trace_model.n_eff(question["rows"])
    if op == "chain":
        report = trace_model.chain(question["entries"], question["profile"], question["genesis"])
        return {"report": report, "alerts": trace_model.chain_alerts("a", report, NOW)}
    return trace_model.idma(question["k_eff"], question["correlation_risk"], question["sources"],
                            question["fragility_flag"], question["established"])


def differences(want, got, path=""):
    """What of `want` is not in `got`; lists must be as long."""
    if isinstance(want, dict) and isinstance(got, dict):
        for name in want:
            yield from differences(want[name], got.get(name, "absent"), path + "/" + name)
    elif isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            yield "%s: %d items, expected %d" % (path, len(got), len(want))
        for i, (one, other) in enumerate(zip(want, got)):
            yield from differences(one, other, "%s/%d" % (path, i))
    elif isinstance(want, (int, float)) and not isinstance(want, bool):
        if isinstance(got, bool) or not isinstance(got, (int, float)) or not math.isclose(
                want, got, rel_tol=1e-9, abs_tol=1e-9):
            yield "%s: %r, expected %r" % (path, got, want)
    elif type(want) is not type(got) or want != got:
        yield "%s: %r, expected %r" % (path, got, want)


def note(seen, question, want):
    """What came up, so that a test that compares only silence is noticed."""
    op = question["op"]
    if op == "detect":
        for one in want:
            seen["%s %s" % (one["detection_mechanism"], one["severity"])] += 1
            if one["detection_mechanism"] in ("cross_agent_divergence", "conscience_override"):
                seen["%s from nothing" % one["detection_mechanism"]] += one["deviation"] is None
    elif op == "capacity":
        seen["confidence " + want["confidence"]] += 1
        seen["category %s" % want["category"]] += 1
        seen["r unknown"] += want["factors"]["r"] is None
    elif op == "n_eff":
        seen["n_eff %s" % want["enough"]] += 1
    elif op == "chain":
        seen["chain " + want["report"]["verdict"]] += 1
        for finding in want["report"]["findings"]:
            seen["finding " + finding["kind"]] += 1
    else:
        seen["idma " + want["check"]] += 1
        seen["phase " + want["phase"]] += 1


MUST_COME_UP = (
    ["%s %s" % (name, severity) for severity in ("warning", "critical")
     for name in ("cross_agent_divergence", "intra_agent_consistency", "temporal_drift",
                  "conscience_override")]
    + ["cross_agent_divergence from nothing", "conscience_override from nothing", "r unknown"]
    + ["confidence " + name for name in ("insufficient", "low", "medium", "high")]
    + ["category " + name for name in ("None", "high_fragility", "moderate", "healthy",
                                       "high_capacity")]
    + ["n_eff True", "n_eff False"]
    + ["chain " + name for name in ("holds", "broken", "indeterminate")]
    + ["finding " + name for name in trace_model.KINDS + ["empty"]]
    + ["idma " + name for name in ("consistent", "mismatch", "input_out_of_range",
                                   "indeterminate")]
    + ["phase " + name for name in ("", "healthy", "fragile", "emerging", "nascent")])


def main():
    count, seed = [int(word) for word in arguments + ["1000", "1"][len(arguments):]]
    maker = Maker(seed)
    makers = [maker.detect, maker.capacity, maker.chain, maker.chain, maker.idma, maker.alike,
              maker.capacity, maker.chain, maker.detect, maker.n_eff]
    questions = [makers[i % len(makers)]() for i in range(count)]
    text = "".join(json.dumps(question) + "\n" for question in questions)
    child = subprocess.run([BIN], input=text.encode(), stdout=subprocess.PIPE, check=False)
    answers = child.stdout.decode().split("\n")[:-1]
    compared = failed = ties = 0
    seen = collections.Counter()
    if child.returncode != 0 or len(answers) != len(questions):
        print("the program ended early, %d" % child.returncode, file=sys.stderr)
        failed = 1
    for i, (question, answer) in enumerate(zip(questions, answers)):
        try:
            want = expected(question)
        except trace_model.Tie:
            ties += 1
            continue
        compared += 1
        note(seen, question, want)
        found = list(differences(want, json.loads(answer)))
        if found:
            failed += 1
            if failed <= 10:
                print("FAIL %s, document %d\n  %s" % (question["op"], i, "\n  ".join(found[:6])),
                      file=sys.stderr)
    missing = [name for name in MUST_COME_UP if count >= 1000 and not seen[name]]
    if missing:
        print("never came up: " + ", ".join(missing), file=sys.stderr)
    print("seed %d: %d documents compared, %d differ, %d left to rounding"
          % (seed, compared, failed, ties), file=sys.stderr)
    finish_comparison(failed == 0 and not missing and ties * 10 < count)


if __name__ == "__main__":
    main()
