#!/usr/bin/env python3
"""`cortex gate schema` from outside: verdicts, formats of the answer, exit codes."""
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

from kit import BIN, TESTS, Folder, check, main, run, skip, test

REPORT = {"status": "ok", "missing": []}


def gate(folder, schema, instance, *options):
    path = folder / "instance.json"
    path.write_text(instance if isinstance(instance, str) else json.dumps(instance))
    if not isinstance(schema, str):
        (folder / "own.schema.json").write_text(json.dumps(schema))
        schema = folder / "own.schema.json"
    return run(BIN, "gate", "schema", schema, path, *options)


@test
def a_document_of_a_run_is_allowed_or_rejected():
    with Folder() as folder:
        done = gate(folder, "evidence_report.v1", REPORT)
        check(done.returncode == 0, done)
        done = gate(folder, "evidence_report.v1.json", REPORT | {"extra": 1})
        check(done.returncode == 4 and b"/extra" in done.stdout, done)


@test
def the_answer_as_json_names_each_place():
    with Folder() as folder:
        done = gate(folder, "evidence_report.v1", {"status": "so-so", "missing": [1]}, "--json")
        check(done.returncode == 4, done)
        answer = json.loads(done.stdout)
        check(answer["allow"] is False and answer["schema"] == "evidence_report.v1", answer)
        places = {(v["rule"], v["path"], v["schema"]) for v in answer["violations"]}
        check(places == {("enum", "/status", "#/properties/status/enum"),
                         ("type", "/missing/0", "#/properties/missing/items/type")}, places)


@test
def the_answer_as_sarif_and_junit():
    with Folder() as folder:
        done = gate(folder, {"type": "null"}, 1, "--format", "sarif")
        sarif = json.loads(done.stdout)
        check(done.returncode == 4 and sarif["version"] == "2.1.0", done)
        check(sarif["runs"][0]["results"][0]["ruleId"] == "type", sarif)
        done = gate(folder, {"type": "null"}, 1, "--format", "junit", "--output", folder / "out.xml")
        check(done.returncode == 4 and done.stdout == b"", done)
        check(list(xml.parse(folder / "out.xml").getroot().iter("failure")), "no failure in JUnit")


@test
def unreadable_documents_and_schemas_are_reported():
    with Folder() as folder:
        for schema, instance in (({"tpye": "null"}, 1), ({"$ref": "http://x.test/"}, 1),
                                 ({"type": "null"}, "{"), ({"type": "null"}, '{"a":1,"a":2}'),
                                 ({"pattern": "^(a+)+(a+)+$"}, json.dumps("a" * 60 + "!"))):
            done = gate(folder, schema, instance)
            check(done.returncode == 3 and done.stderr.startswith(b"cortex: "), schema, done)
        done = run(BIN, "gate", "schema", "no_such.v1", folder / "instance.json", "--json")
        check(done.returncode == 3 and "error" in json.loads(done.stdout), done)
        check(run(BIN, "gate", "schema", "evidence_report.v1").returncode == 2)


@test
def options_change_how_a_schema_is_read():
    with Folder() as folder:
        note = {"x-note": 1, "type": "null"}
        check(gate(folder, note, None).returncode == 3)
        check(gate(folder, note, None, "--lenient").returncode == 0)
        old = {"items": [{"type": "null"}]}
        check(gate(folder, old, [1]).returncode == 3)
        check(gate(folder, old, [1], "--draft", "07").returncode == 4)
        time = {"format": "date-time"}
        check(gate(folder, time, '"now"').returncode == 4)
        check(gate(folder, time, '"now"', "--assert", "none").returncode == 0)
        address = {"format": "ipv4"}
        check(gate(folder, address, '"1.2.3"').returncode == 0)
        check(gate(folder, address, '"1.2.3"', "--assert", "all").returncode == 4)


@test
def the_registry_of_schemas_is_up_to_date():
    tool = TESTS.parent / "tools" / "schema_registry.py"
    if not os.path.exists(tool):
        skip("not in a source tree")
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, check=False)
    check(done.returncode == 0, done.stderr.decode())


main()
