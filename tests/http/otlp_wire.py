"""OTLP requests for tests, built byte by byte: protobuf and JSON of the same spans and logs."""
import json
import struct


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def fixed64(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def blob(field, value):
    if isinstance(value, str):
        value = value.encode()
    return varint(field << 3 | 2) + varint(len(value)) + value


def attribute(field, key, value):
    if isinstance(value, bool):
        inner = number(2, value)
    elif isinstance(value, int):
        inner = number(3, value)
    elif isinstance(value, float):
        inner = varint(4 << 3 | 1) + struct.pack("<d", value)
    else:
        inner = blob(1, value)
    return blob(field, blob(1, key) + blob(2, inner))


TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_700_000_000_000_000_000


class Span:
    def __init__(self, number, parent=0, trace=TRACE, name=None, agent="planner", extra=b"", **more):
        self.trace, self.id = trace, "%016x" % number
        self.parent = "%016x" % parent if parent else ""
        self.name = name or f"step {number}"
        self.start = START + number * 1000
        self.attributes = {"gen_ai.operation.name": "chat", "gen_ai.agent.name": agent, **more}
        self.extra = extra

    def proto(self):
        out = blob(1, bytes.fromhex(self.trace)) + blob(2, bytes.fromhex(self.id))
        if self.parent:
            out += blob(4, bytes.fromhex(self.parent))
        out += blob(5, self.name) + number(6, 1) + fixed64(7, self.start)
        out += fixed64(8, self.start + 500)
        for key, value in self.attributes.items():
            out += attribute(9, key, value)
        return out + self.extra

    def json(self):
        return {"traceId": self.trace, "spanId": self.id, "parentSpanId": self.parent,
                "name": self.name, "kind": 1, "startTimeUnixNano": str(self.start),
                "endTimeUnixNano": str(self.start + 500), "attributes": attributes(self.attributes)}


class Log:
    def __init__(self, text, span=0, trace=TRACE, at=0, event=""):
        self.text, self.span, self.trace, self.event = text, span, trace, event
        self.time = START + at

    def proto(self):
        out = fixed64(1, self.time) + number(2, 9) + blob(3, "INFO") + blob(5, blob(1, self.text))
        if self.span:
            out += blob(9, bytes.fromhex(self.trace)) + blob(10, bytes.fromhex("%016x" % self.span))
        return out + (blob(12, self.event) if self.event else b"")

    def json(self):
        out = {"timeUnixNano": str(self.time), "severityNumber": 9, "severityText": "INFO",
               "body": {"stringValue": self.text}}
        if self.span:
            out |= {"traceId": self.trace, "spanId": "%016x" % self.span}
        return out | ({"eventName": self.event} if self.event else {})


def attributes(values):
    def one(value):
        if isinstance(value, bool):
            return {"boolValue": value}
        if isinstance(value, int):
            return {"intValue": str(value)}
        if isinstance(value, float):
            return {"doubleValue": value}
        return {"stringValue": value}
    return [{"key": key, "value": one(value)} for key, value in values.items()]


def proto(*records, service="shop"):
    resource = blob(1, attribute(1, "service.name", service))
    inner = b"".join(blob(2, record.proto()) for record in records)
    return blob(1, resource + blob(2, blob(1, blob(1, "made by hand")) + inner))


def document(*records, service="shop", logs=False):
    names = ("resourceLogs", "scopeLogs", "logRecords") if logs else \
        ("resourceSpans", "scopeSpans", "spans")
    return json.dumps({names[0]: [{
        "resource": {"attributes": attributes({"service.name": service})},
        names[1]: [{"scope": {"name": "made by hand"},
                    names[2]: [record.json() for record in records]}]}]}).encode()


def read_message(data):
    """{field: [values]} of one protobuf message; numbers as int, the rest as bytes."""
    at, out = 0, {}

    def take():
        nonlocal at
        shift = value = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(data):
        tag = take()
        if tag & 7 == 0:
            value = take()
        else:
            assert tag & 7 == 2, tag
            size = take()
            value, at = data[at:at + size], at + size
            assert len(value) == size
        out.setdefault(tag >> 3, []).append(value)
    return out
