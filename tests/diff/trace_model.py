"""The analysis of traces (trace.md §5, §6, §12) written a second time, for comparing: plain, slow,
and exact where that decides something.  Means, deviations and thresholds are fractions, so a value
that lies on a threshold is on it; where doubles may fall on either side `Tie` is raised and the
case is not compared.  Nothing here is taken from the C code.
"""
import datetime
import hashlib
import json
import math
from fractions import Fraction

DAY = 86400 * 10**9
ROUNDING = Fraction(1, 10**12)
EVIDENCE = 5


class Tie(Exception):
    """Rounding decides."""


def above(value, threshold):
    value, threshold = Fraction(value), Fraction(threshold)
    if abs(value - threshold) < ROUNDING:
        raise Tie()
    return value > threshold


def numbers(rows, name):
    return [Fraction(row[name]) for row in rows if row[name] is not None]


def mean(values):
    return sum(values) / len(values)


def variance(values):
    middle = mean(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)


def root(value):
    """Square root, to some forty digits."""
    scale = 10**80
    return Fraction(math.isqrt(value.numerator * scale // value.denominator), 10**40)


def text_key(text):
    return (text is not None, (text or "").encode())


def groups(rows, *names):
    """Groups by texts in byte order, null first; each by time and id."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    for key in sorted(found, key=lambda key: [text_key(part) for part in key]):
        yield key, sorted(found[key], key=lambda row: (row["timestamp_ns"], row["trace_id"]))


def window(rows, now, days):
    return [row for row in rows if now - days * DAY <= row["timestamp_ns"] < now]


def time_text(ns):
    whole = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=ns // 10**9)
    return "%s.%09dZ" % (whole.isoformat(), ns % 10**9)


def furthest(rows, name, point):
    """Ids of the rows that lie furthest away; rows are in order, and sorting is stable."""
    there = [row for row in rows if row[name] is not None]
    far = sorted(there, key=lambda row: -abs(Fraction(row[name]) - point))
    # Which of two is kept may hang on rounding when the distances are not equal but close.
    distances = [abs(Fraction(row[name]) - point) for row in far]
    for near, next_one in zip(distances, distances[1:]):
        if 0 < near - next_one < ROUNDING:
            raise Tie()
    for i, one in enumerate(far):
        for other in far[i + 1:]:
            if one[name] != other[name] and abs(Fraction(one[name]) - point) == abs(
                    Fraction(other[name]) - point):
                raise Tie()  # as far on the other side: equal only without rounding
            break
    return [row["trace_id"] for row in far[:EVIDENCE]]


def alert(mechanism, critical, agent, domain, metric, value, baseline, deviation, evidence, end_ns,
          inputs):
    end = time_text(end_ns)
    names = json.dumps([mechanism, agent, domain, metric, end[:10]], separators=(",", ":"))
    return {
        "alert_id": hashlib.sha256(names.encode()).hexdigest()[:32],
        "severity": "critical" if critical else "warning",
        "detection_mechanism": mechanism,
        "agent_id_hash": agent,
        "domain": domain,
        "metric": metric,
        "value": float(value),
        "baseline": float(baseline),
        "deviation": None if deviation is None else float(deviation),
        "evidence_traces": evidence,
        "window_end": end,
        "inputs": {name: None if of is None else float(of) for name, of in inputs.items()},
    }


def in_order(alerts):
    return sorted(alerts, key=lambda one: (text_key(one["domain"]), text_key(one["agent_id_hash"]),
                                           text_key(one["metric"]), one["window_end"]))


# --- detectors -----------------------------------------------------------------------------------

def cross_agent(rows, now):
    found = []
    for (domain,), of_domain in groups(window(rows, now, 7), "domain"):
        for metric in ("csdma", "dsdma", "coherence"):
            agents = {}
            for (agent,), of_agent in groups(of_domain, "agent"):
                values = numbers(of_agent, metric)
                if len(values) >= 10:
                    agents[agent] = (mean(values), len(values), of_agent)
            if len(agents) < 4:
                continue
            for agent, (own, count, of_agent) in agents.items():
                others = [agents[other][0] for other in agents if other != agent]
                middle, spread = mean(others), root(variance(others))
                difference = abs(own - middle)
                flat = not above(spread, Fraction(1, 10**9))
                if flat:
                    if not above(difference, Fraction(1, 10)):
                        continue
                elif not above(difference / spread, 2):
                    continue
                z = None if flat else difference / spread
                found.append(alert(
                    "cross_agent_divergence", z is not None and above(z, 3), agent, domain, metric,
                    own, middle, z, furthest(of_agent, metric, middle), now,
                    {"agents": len(agents), "traces": count, "mean": own, "others_mean": middle,
                     "others_deviation": spread}))
    return in_order(found)


def intra_agent(rows, now):
    found = []
    for (agent, kind), group in groups(window(rows, now, 30), "agent", "trace_type"):
        values = numbers(group, "csdma")
        actions = {row["selected_action"] for row in group} - {None}
        if len(group) < 5 or len(values) < 2 or len(actions) <= 2:
            continue
        spread = root(variance(values))
        if not above(spread, Fraction(15, 100)):
            continue
        found.append(alert(
            "intra_agent_consistency", len(actions) > 3 and above(spread, Fraction(2, 10)), agent,
            None, "csdma:" + (kind or "other"), spread, 0.15, spread - Fraction(15, 100),
            furthest(group, "csdma", mean(values)), now,
            {"traces": len(group), "distinct_actions": len(actions), "csdma_mean": mean(values),
             "csdma_deviation": spread}))
    return in_order(found)


def drift(rows, now):
    found = []
    for (agent,), group in groups(window(rows, now, 30), "agent"):
        for metric in ("csdma", "coherence"):
            days = {}
            for row in group:
                days.setdefault(row["timestamp_ns"] // DAY, []).append(row)
            usable = [day for day in sorted(days) if len(numbers(days[day], metric)) >= 5]
            for previous, day in zip(usable, usable[1:]):
                before, values = numbers(days[previous], metric), numbers(days[day], metric)
                difference = abs(mean(values) - mean(before))
                if not above(difference, Fraction(15, 100)):
                    continue
                found.append(alert(
                    "temporal_drift", above(difference, Fraction(25, 100)), agent, None, metric,
                    mean(values), mean(before), difference,
                    furthest(days[day], metric, mean(before)), (day + 1) * DAY - 1,
                    {"values": len(values), "mean": mean(values), "previous_values": len(before),
                     "previous_mean": mean(before)}))
    return in_order(found)


def override(rows, now):
    found = []
    for (domain,), of_domain in groups(window(rows, now, 7), "domain"):
        for (agent,), group in groups(of_domain, "agent"):
            own = [row["overridden"] for row in group if row["overridden"] is not None]
            others = [row["overridden"] for row in of_domain
                      if row["agent"] != agent and row["overridden"] is not None]
            if len(own) < 20 or not others:
                continue
            rate, baseline = Fraction(sum(own), len(own)), Fraction(sum(others), len(others))
            if baseline == 0:
                warned, critical, times = rate > Fraction(1, 10), False, None
            else:
                times = rate / baseline
                warned, critical = times > 2, times > 3
            if not warned:
                continue
            newest = [row["trace_id"] for row in reversed(group) if row["overridden"]]
            found.append(alert(
                "conscience_override", critical, agent, domain, "override_rate", rate, baseline,
                times, newest[:EVIDENCE], now,
                {"traces": len(own), "overridden": sum(own), "others_traces": len(others),
                 "others_overridden": sum(others)}))
    return in_order(found)


def detect(rows, now):
    return cross_agent(rows, now) + intra_agent(rows, now) + drift(rows, now) + override(rows, now)


# --- capacity ------------------------------------------------------------------------------------

ACTIONS = ("SPEAK", "TOOL", "MEMORIZE", "FORGET")
FACULTIES = ("entropy_passed", "coherence_passed", "veto_passed", "humility_passed")


def unit(value):
    return min(1.0, max(0.0, value))


def share(part, of):
    return part / of if of else 0.0


def calibration_error(rows):
    pairs = [(Fraction(row["csdma"]), row["action_success"]) for row in rows
             if row["csdma"] is not None and row["action_success"] is not None]
    if not pairs:
        return None, 0
    buckets = {}
    for score, success in pairs:
        if abs(score * 10 - round(score * 10)) < ROUNDING and (score * 10).denominator != 1:
            raise Tie()
        buckets.setdefault(min(9, max(0, math.floor(score * 10))), []).append((score, success))
    error = sum(len(bucket) * abs(mean([score for score, _ in bucket])
                                  - Fraction(sum(success for _, success in bucket), len(bucket)))
                for bucket in buckets.values()) / len(pairs)
    return float(error), len(pairs)


def resilience(rows, baseline):
    now, before = numbers(rows, "csdma"), numbers(baseline, "csdma")
    told = {"known": bool(now and before), "baseline_traces": len(baseline),
            "csdma_mean": float(mean(now)) if now else None,
            "baseline_csdma_mean": float(mean(before)) if before else None, "difference": None}
    if not told["known"]:
        return 1.0, told
    difference = abs(mean(now) - mean(before))
    told["difference"] = float(difference)
    penalty = min(Fraction(1), max(Fraction(0), (difference - Fraction(5, 100)) * 10))
    weight = 0.5 if len(baseline) < 10 else 0.75 if len(baseline) < 20 else 1.0
    return 1 - float(penalty) * weight, told


def signalling(rows, now):
    weighted = weights = 0.0
    for row in rows:
        if row["coherence"] is not None:
            weight = math.exp(-0.05 * (now - row["timestamp_ns"]) / DAY)
            weighted += row["coherence"] * weight
            weights += weight
    base = weighted / weights if weights else 0.5
    positive = share(sum(row["has_positive_moment"] is True for row in rows), len(rows))
    faculties = share(sum(all(row[name] is True for name in FACULTIES) for row in rows), len(rows))
    return unit(base * (1 + 0.15 * positive) * (1 + 0.10 * faculties)), {
        "base": base, "base_known": weights > 0, "p_pos": positive, "p_fac": faculties}


def integrity(rows, counted, received, chain):
    columns = ("csdma", "dsdma", "selected_action", "conscience_passed", "action_success")
    there = sum(4 + sum(row[name] is not None for name in columns) + bool(row["has_audit_seq"])
                for row in counted)  # id, agent, time and signature are in every row
    received = max(received, len(rows))
    complete = share(there, 10 * len(counted))
    value = 0.0 if chain == "broken" else max(0.1, share(len(rows), received) * complete)
    return value, {"verified": len(rows), "received": received, "complete": complete,
                   "chain": chain}


def capacity(rows, baseline, received, chain, now):
    counted = [row for row in rows if row["selected_action"] in ACTIONS]
    before = [row for row in baseline if row["selected_action"] in ACTIONS]
    n = len(counted)
    names = {row["agent_name"] for row in counted} - {None}
    overridden = sum(row["overridden"] is True for row in counted)
    d, k = share(max(0, len(names) - 1), n), share(overridden, n)
    c = math.exp(-5 * d) * math.exp(-10 * k)
    i_int, i_int_told = integrity(rows, counted, received, chain)
    r, r_told = resilience(counted, before)
    error, calibrated = calibration_error(counted)
    uncertain = sum(row["entropy"] is not None and row["entropy"] > 0.5
                    and row["action_success"] is False for row in counted)
    u = share(uncertain, n)
    i_inc = unit(1 - (0.1 if error is None else error)) * (1 - u)
    s, s_told = signalling(counted, now)
    score = c * i_int * r * i_inc * s
    scored = n >= 10
    for edge in (0.3, 0.6, 0.85):
        if abs(score - edge) < 1e-9:
            raise Tie()
    category = ("high_fragility" if score < 0.3 else "moderate" if score < 0.6
                else "healthy" if score < 0.85 else "high_capacity")
    return {
        "n": n,
        "confidence": ("insufficient" if n < 10 else "low" if n < 30
                       else "medium" if n < 100 else "high"),
        "score": score if scored else None,
        "fragility": 1 / (0.001 + score) if scored else None,
        "category": category if scored else None,
        "factors": {"c": c, "i_int": i_int, "r": r if r_told["known"] else None, "i_inc": i_inc,
                    "s": s},
        "inputs": {
            "c": {"agent_names": len(names), "overridden": overridden, "d": d, "k": k, "value": c},
            "i_int": {**i_int_told, "value": i_int},
            "r": {**r_told, "value": r},
            "i_inc": {"calibrated_traces": calibrated, "ece": error,
                      "uncertain_failures": uncertain, "u": u, "value": i_inc},
            "s": {**s_told, "value": s},
        },
    }


# --- N_eff ---------------------------------------------------------------------------------------

COLUMNS = {
    "csdma": "csdma", "dsdma": "dsdma", "coherence_level": "coherence", "entropy_level": "entropy",
    "k_eff": "k_eff", "correlation_risk": "rho", "entropy_score": "entropy_score",
    "coherence_score": "coherence_score", "optimization_veto_entropy_ratio": "veto_ratio",
    "epistemic_humility_certainty": "humility_certainty", "fragility_flag": "fragility_flag",
    "entropy_passed": "entropy_passed", "coherence_passed": "coherence_passed",
    "optimization_veto_passed": "veto_passed", "epistemic_humility_passed": "humility_passed",
    "conscience_passed": "conscience_passed", "action_was_overridden": "overridden",
}


def tridiagonal(m):
    """Householder: the diagonal and what stands beside it."""
    size = len(m)
    m = [list(row) for row in m]
    for k in range(size - 2):
        x = [m[i][k] for i in range(k + 1, size)]
        alpha = -math.copysign(math.sqrt(sum(value * value for value in x)), x[0])
        v = [x[0] - alpha] + x[1:]
        norm = sum(value * value for value in v)
        if norm < 1e-300:
            continue
        full = [0.0] * (k + 1) + v
        # m = H m H with H = 1 - 2 v v' / v'v
        product = [2 * sum(m[i][j] * full[j] for j in range(size)) / norm for i in range(size)]
        scale = sum(full[i] * product[i] for i in range(size)) / norm
        w = [product[i] - scale * full[i] for i in range(size)]
        for i in range(size):
            for j in range(size):
                m[i][j] -= full[i] * w[j] + w[i] * full[j]
    return [m[i][i] for i in range(size)], [m[i + 1][i] for i in range(size - 1)]


def count_below(diagonal, beside, x):
    """How many eigenvalues are below x: the signs of the pivots (Sturm)."""
    count, pivot = 0, 1.0
    for i, value in enumerate(diagonal):
        before = beside[i - 1] ** 2 / pivot if i else 0.0
        pivot = value - x - before
        if pivot == 0:
            pivot = -1e-300
        count += pivot < 0
    return count


def eigenvalues(m):
    """Descending, by bisection."""
    diagonal, beside = tridiagonal(m)
    found = []
    for which in range(len(diagonal)):
        low, high = -1.0, float(len(diagonal)) + 1
        while high - low > 1e-15 * max(1.0, abs(low)):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            if count_below(diagonal, beside, middle) > which:
                high = middle
            else:
                low = middle
        found.append(max(0.0, (low + high) / 2))
    return found[::-1]


def n_eff(rows):
    rows = [row for row in rows if row["csdma"] is not None and row["k_eff"] is not None]
    none = {"enough": False, "rows": len(rows)}
    if len(rows) < 20:
        return none
    names, columns = [], []
    for name, member in COLUMNS.items():
        values = numbers(rows, member)
        if not values:
            continue
        middle = mean(values)
        filled = [middle if row[member] is None else Fraction(row[member]) for row in rows]
        spread = root(variance(filled))
        if not above(spread * 1000, Fraction(1, 10**6)):
            continue
        names.append(name)
        columns.append([float((value - middle) / spread) for value in filled])
    if not names:
        return none
    matrix = [[sum(x * y for x, y in zip(a, b)) / (len(rows) - 1) for b in columns]
              for a in columns]
    values = eigenvalues(matrix)
    total = sum(matrix[i][i] for i in range(len(matrix)))  # the sum of the eigenvalues
    squares = sum(value * value for row in matrix for value in row)  # and of their squares
    shares = [value / total for value in values]
    return {
        "enough": True, "rows": len(rows), "columns": names, "eigenvalues": values,
        "participation": total * total / squares,
        "entropy": math.exp(-sum(p * math.log(p) for p in shares if p > 0)),
    }


# --- chain ---------------------------------------------------------------------------------------

KINDS = ["gap", "duplicate", "fork", "reorder", "mismatch", "unchecked"]


def entry_hash(previous, entry):
    text = previous + entry["action"] + ("true" if entry["success"] else "false")
    return hashlib.sha256((text + entry["timestamp"]).encode()).hexdigest()


def can_be_checked(entry):
    return None not in (entry["hash"], entry["action"], entry["success"])


def link_findings(of_number, previous, first, genesis):
    """(finding or None, counts against the verdict, recomputed) for each entry of a number."""
    for entry in of_number:
        ids = [entry["trace_id"]]
        unchecked = {"kind": "unchecked", "seq": entry["seq"], "trace_ids": ids}
        if first:
            hashes = [genesis or ""] if entry["seq"] in (0, 1) or genesis else []
            counts = bool(hashes)
        else:
            hashes = [one["hash"] for one in previous or [] if one["hash"] is not None]
            counts = True
        if not hashes or not can_be_checked(entry):
            yield unchecked, counts, False
        elif entry["hash"] in [entry_hash(before, entry) for before in hashes]:
            yield None, False, True
        else:
            yield {"kind": "mismatch", "seq": entry["seq"], "trace_ids": ids}, True, False


def twin_findings(of_number):
    for i, entry in enumerate(of_number[1:], 1):
        same = [one for one in of_number[:i] if one["hash"] == entry["hash"]]
        beside = same[0] if same else of_number[0]
        if beside["trace_id"] == entry["trace_id"] and (
                same or None in (beside["hash"], entry["hash"])):
            continue
        yield {"kind": "duplicate" if same else "fork", "seq": entry["seq"],
               "trace_ids": [beside["trace_id"], entry["trace_id"]]}


def findings_of(entries, links, genesis):
    """Findings, whether one leaves the verdict open, and how many links were recomputed."""
    found, unsure, linked = [], False, 0
    numbers_there = sorted({entry["seq"] for entry in entries})
    by_number = {seq: [entry for entry in entries if entry["seq"] == seq] for seq in numbers_there}
    for i, seq in enumerate(numbers_there):
        of_number = by_number[seq]
        found += twin_findings(of_number)
        if i + 1 < len(numbers_there) and numbers_there[i + 1] != seq + 1:
            after = numbers_there[i + 1]
            found.append({"kind": "gap", "seq": seq, "next": after, "missing": after - seq - 1,
                          "trace_ids": [of_number[0]["trace_id"], by_number[after][0]["trace_id"]]})
        if i:
            before = by_number[numbers_there[i - 1]][0]
            if of_number[0]["timestamp_ns"] < before["timestamp_ns"]:
                found.append({"kind": "reorder", "seq": seq,
                              "trace_ids": [before["trace_id"], of_number[0]["trace_id"]]})
        if links:
            for finding, counts, recomputed in link_findings(of_number, by_number.get(seq - 1),
                                                             i == 0, genesis):
                linked += recomputed
                if finding:
                    found.append(finding)
                    unsure |= counts and finding["kind"] == "unchecked"
    found.sort(key=lambda one: (one["seq"], KINDS.index(one["kind"])))
    return found, unsure, linked


def chain(entries, profile, genesis):
    kept, seen = [], set()
    for entry in sorted(entries, key=lambda one: (one["timestamp_ns"], one["arrival"])):
        content = tuple(entry[name] for name in
                        ("seq", "hash", "action", "success", "timestamp", "timestamp_ns",
                         "trace_id"))
        if content not in seen:
            seen.add(content)
            kept.append(entry)
    if not kept:
        return {"verdict": "indeterminate", "entries": 0, "findings": [{"kind": "empty"}],
                "profile": "agent" if profile == "auto" else profile}
    found, unsure, linked = findings_of(kept, profile != "agent", genesis)
    if profile == "auto":
        profile = "spec-1.0" if linked else "agent"
        if not linked:
            found, unsure, linked = findings_of(kept, False, genesis)
    broken = any(one["kind"] != "unchecked" for one in found)
    verdict = ("indeterminate" if profile == "agent" else "broken" if broken
               else "indeterminate" if unsure else "holds")
    return {"verdict": verdict, "profile": profile, "entries": len(kept), "findings": found}


def chain_alerts(agent, report, now):
    if report["verdict"] != "broken":
        return []
    evidence = []
    for finding in report["findings"]:
        if finding["kind"] != "unchecked" and finding["trace_ids"][0] not in evidence:
            evidence.append(finding["trace_ids"][0])
    counts = {kind: sum(one["kind"] == kind for one in report["findings"]) for kind in KINDS[:-1]}
    return [alert("hash_chain", True, agent, None, "audit_chain", len(report["findings"]), 0, None,
                  evidence[:EVIDENCE], now, {"entries": report["entries"], **counts})]


# --- IDMA ----------------------------------------------------------------------------------------

def idma(k_eff, rho, sources, flag, established):
    computed, check, phase, said = None, "indeterminate", "", "indeterminate"
    if rho is not None and sources is not None:
        if not 0 <= rho <= 1:
            check = "input_out_of_range"
        else:
            r = Fraction(rho)
            computed = float(sources / (1 + r * (sources - 1))) if sources else 0.0
            if k_eff is not None:
                off = abs(Fraction(k_eff) - Fraction(computed))
                check = "mismatch" if above(off, Fraction(1, 100)) else "consistent"
    if k_eff is not None:
        fragile = k_eff < 2
        phase = ("healthy" if not fragile else "fragile" if established
                 else "emerging" if k_eff > 1.05 else "nascent")
        if flag is not None:
            said = "consistent" if flag == fragile else "mismatch"
    return {"computed": computed, "check": check, "phase": phase, "flag": said}
