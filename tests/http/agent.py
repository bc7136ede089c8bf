"""An agent for tests: Ed25519 (RFC 8032 §5.1) in a few lines, traces of spec 1.0, batches."""
import base64
import hashlib
import json

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE_Y = 4 * pow(5, P - 2, P) % P


def _x_of(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if x % 2 != sign else x


BASE = (_x_of(BASE_Y, 0), BASE_Y, 1, _x_of(BASE_Y, 0) * BASE_Y % P)


def _add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(scalar, point):
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = _add(total, point)
        point = _add(point, point)
        scalar >>= 1
    return total


def _encode(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % L


class Key:
    def __init__(self, seed):
        digest = hashlib.sha512(seed).digest()
        self.prefix = digest[32:]
        self.scalar = int.from_bytes(digest[:32], "little") & ~7 & ~(1 << 255) | 1 << 254
        self.public = _encode(_times(self.scalar, BASE))

    def sign(self, message):
        r = _number(self.prefix, message)
        point = _encode(_times(r, BASE))
        s = (r + _number(point, self.public, message) * self.scalar) % L
        return point + s.to_bytes(32, "little")


def url64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


EVENTS = [("observation", "THOUGHT_START"), ("context", "SNAPSHOT_AND_CONTEXT"),
          ("rationale", "DMA_RESULTS"), ("rationale", "ASPDMA_RESULT"),
          ("conscience", "CONSCIENCE_RESULT"), ("action", "ACTION_RESULT")]


class Agent:
    """Signs traces under form B with a key of its own."""

    def __init__(self, name):
        self.name = name
        self.key = Key(hashlib.sha256(name.encode()).digest())
        self.key_id = "key-" + name

    def registration(self, **more):
        return {"key_id": self.key_id, "public_key_base64": url64(self.key.public), **more}

    def trace(self, trace_id, level="generic", second=0, padding=0, **envelope):
        data = {
            "THOUGHT_START": {"round_number": 1, "thought_depth": 0},
            "SNAPSHOT_AND_CONTEXT": {"cognitive_state": "WORK"},
            "DMA_RESULTS": {"csdma": {"plausibility_score": 0.9},
                            "dsdma": {"domain_alignment": 0.0}},
            "ASPDMA_RESULT": {"selected_action": "SPEAK", "selection_confidence": 0.5},
            "CONSCIENCE_RESULT": {"conscience_passed": True, "action_was_overridden": False},
            "ACTION_RESULT": {"execution_success": True, "audit_sequence_number": second + 1},
        }
        if level == "full_traces":
            data["ASPDMA_RESULT"]["action_rationale"] = "because " + trace_id
        if padding:
            data["DMA_RESULTS"]["combined_analysis"] = "x" * padding
        components = [{"component_type": kind, "event_type": event, "data": data[event],
                       "timestamp": "2026-01-%02dT05:%02d:%02d+00:00" %
                                    (1 + second // 3600 % 28, second // 60 % 60, second % 60)}
                      for kind, event in EVENTS]
        signature = self.key.sign(json.dumps(components, sort_keys=True).encode())
        return {"trace_id": trace_id, "thought_id": "th-" + trace_id, "task_id": "task-1",
                "agent_id_hash": self.name, "trace_level": level, "components": components,
                "signature": url64(signature), "signature_key_id": self.key_id, **envelope}


def batch(*traces, **more):
    return {"events": [{"event_type": "complete_trace", "trace": t} for t in traces],
            "batch_timestamp": "2026-01-01T06:00:00Z",
            "consent_timestamp": "2026-01-01T00:00:00Z", **more}
