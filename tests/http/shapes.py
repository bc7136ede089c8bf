"""Importing this checks every JSON answer that http.client reads against docs/openapi.json.

An answer must be of its type, and a member that the document does not name is an error too: the
document says what the server answers, not less.  Paths that the document does not have are passed
over.
"""
import http.client
import json
import pathlib
import re

DOCUMENT = json.loads(
    (pathlib.Path(__file__).resolve().parents[2] / "docs" / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]
KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool,
         "object": dict, "array": list, "null": type(None)}
REST = ("branch", "path")  # these stand for one segment or more


def pattern(path):
    def one(match):
        return "(?:.+)" if match[1] in REST else "[^/]+"
    return re.compile(re.sub(r"\{(\w+)\}", one, path) + r"\Z")


# The more is spelled out, the earlier: /runs/{id}/events is not /runs/{id}/{..}.
PATHS = [(pattern(path), item) for path, item in
         sorted(DOCUMENT["paths"].items(), key=lambda one: (one[0].count("{"), -len(one[0])))]


def is_kind(value, kind):
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, KINDS[kind])


def object_faults(value, schema, at):
    members = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{at}: {name} is missing"
    for name, one in value.items():
        if name in members:
            yield from faults(one, members[name], f"{at}/{name}")
        elif "additionalProperties" in schema:
            yield from faults(one, schema["additionalProperties"], f"{at}/{name}")
        else:
            yield f"{at}: {name} is not in the document"


def array_faults(value, schema, at):
    items = schema.get("prefixItems")
    if items is not None and len(value) != len(items):
        yield f"{at}: found {len(value)} items, expected {len(items)}"
        return
    for i, one in enumerate(value):
        yield from faults(one, items[i] if items is not None else schema["items"], f"{at}/{i}")


def faults(value, schema, at=""):
    """Why `value` is not of the type; nothing when it is."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rsplit("/", 1)[1]]
        yield from faults(value, schema, at)
    elif "anyOf" in schema:
        each = [list(faults(value, one, at)) for one in schema["anyOf"]]
        if all(each):
            yield from min(each, key=len)
    elif "const" in schema:
        if value != schema["const"]:
            yield f"{at}: found {value!r}, expected {schema['const']!r}"
    elif "type" in schema:
        if not is_kind(value, schema["type"]):
            yield f"{at}: found {json.dumps(value)[:80]}, expected {schema['type']}"
        elif schema["type"] == "object":
            yield from object_faults(value, schema, at)
        elif schema["type"] == "array":
            yield from array_faults(value, schema, at)


def schema_of(method, target, status, media):
    """The schema of such an answer; None when the document does not say."""
    path = re.sub(r"^/api/(?!v1/)", "/api/v1/", target.split("?")[0])
    for known, item in PATHS:
        operation = item.get(method.lower())
        if not known.match(path) or operation is None:
            continue
        content = (operation["responses"].get(str(status)) or
                   operation["responses"]["default"]).get("content", {})
        return content.get(media, {}).get("schema")
    return None


def answer_faults(method, target, status, media, text):
    schema = schema_of(method, target, status, (media or "").split(";")[0])
    return [] if schema is None else list(faults(json.loads(text), schema))


class Response(http.client.HTTPResponse):
    def __init__(self, sock, *more, **options):
        super().__init__(sock, *more, **options)
        self.asked = None

    def read(self, amt=None):
        text = super().read(amt)
        if self.asked is not None and amt is None and text:
            found = answer_faults(*self.asked, self.status, self.headers.get("Content-Type"), text)
            assert not found, (self.asked, found[:5], text[:1000])
        return text


class Asking:
    """Notes on the connection what is asked, and on the response what was."""
    put, get = http.client.HTTPConnection.putrequest, http.client.HTTPConnection.getresponse

    def putrequest(self, method, url, *more, **options):
        self.asked = (method, url)
        return Asking.put(self, method, url, *more, **options)

    def getresponse(self):
        response = Asking.get(self)
        response.asked = self.asked
        return response


http.client.HTTPConnection.response_class = Response
http.client.HTTPConnection.putrequest = Asking.putrequest
http.client.HTTPConnection.getresponse = Asking.getresponse
