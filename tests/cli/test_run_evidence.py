#!/usr/bin/env python3
"""evidence_bundle.json: the sources and claims of an agent's reply.

Closes with `N passed, N failed, N skipped`.
"""
import copy
import json
import pathlib

from kit import Folder, check, main
from run_kit import GOOD_OPS, Repo, contract, refused, reply, sandboxed, script

SOURCE = {"source_id": "s1", "kind": "webpage", "title": "Refunds", "url": "https://example.org/r",
          "retrieved_at": "2026-01-02T03:04:05Z", "content_sha256": "ab" * 32}
CLAIM = {"claim_id": "c1", "text": "the limit is 500", "status": "VERIFIED", "confidence": 0.9,
         "supporting_source_ids": ["s1"]}
DEMANDS = {"name": "reports/evidence_bundle.json", "type": "report", "acceptance": "has claims"}


def played(folder, refs, demanded):
    repo = Repo(folder)
    value = contract()
    if demanded:
        value["required_outputs"].append(DEMANDS)
    done, answer = repo.run(value, script((GOOD_OPS, reply(evidence_refs=refs))))
    return repo, done, answer


def evidence(answer):
    return json.loads((pathlib.Path(answer["bundle"]) / "reports/evidence_bundle.json").read_text())


@sandboxed
def sources_and_claims_are_in_the_bundle():
    for demanded in (True, False):
        with Folder() as folder:
            repo, done, answer = played(folder, {"sources": [SOURCE], "claims": [CLAIM]}, demanded)
            check(done.returncode == 0, answer, done.stderr)
            made = evidence(answer)
            check([s["source_id"] for s in made["sources"]] == ["src-0", "s1"], made)
            check(made["sources"][1] == SOURCE, made["sources"][1])
            check(made["claims"] == [{**CLAIM, "status": "UNVERIFIED"}], made["claims"])
            check("as the agent reported" in made["limitations"][0], made)
            check(repo.verify(answer).returncode == 0)


def broken():
    """(refs, what is said)"""
    def with_change(where, **changes):
        refs = copy.deepcopy({"sources": [SOURCE], "claims": [CLAIM]})
        for key, value in changes.items():
            if value is None:
                del refs[where][0][key]
            else:
                refs[where][0][key] = value
        return refs
    return [
        ({}, "no claims"),
        ({"sources": [SOURCE]}, "no claims"),
        (with_change("claims", supporting_source_ids=[]), "claim 0: it has no source"),
        (with_change("claims", supporting_source_ids=None), "claim 0: it has no source"),
        (with_change("claims", supporting_source_ids=["s2"]), "not given"),
        (with_change("claims", supporting_source_ids=[7]), "not given"),
        (with_change("claims", text=""), "claim 0: it has no text"),
        (with_change("claims", confidence=2), "/claims/0/confidence"),
        (with_change("claims", status="SURE"), "/claims/0/status"),
        (with_change("sources", url=None), "source 0: it has no url"),
        (with_change("sources", content_sha256="zz"), "content_sha256"),
        (with_change("sources", retrieved_at="yesterday"), "/sources/1/retrieved_at"),
        (with_change("sources", retrieved_at=None), "/sources/1"),
        ({"sources": [SOURCE, SOURCE], "claims": [CLAIM]}, "used twice"),
        ({"sources": [{**SOURCE, "source_id": "src-0"}], "claims": [CLAIM]}, "used twice"),
        ({"sources": [SOURCE] * 1001, "claims": [CLAIM]}, "more than 1000"),
    ]


@sandboxed
def a_claim_without_a_source_is_refused_where_evidence_is_demanded():
    for refs, said in broken()[:3] + broken()[4:5] + broken()[7:8] + broken()[9:12] + broken()[-1:]:
        with Folder() as folder:
            repo, done, answer = played(folder, refs, True)
            refused(repo, done, answer, "output_schema", "evidence_incomplete")
            check(said in json.dumps(answer["violations"]), said, answer["violations"])
            check(len(evidence(answer)["sources"]) == 1, answer)


@sandboxed
def elsewhere_it_is_left_out_and_said():
    for refs, said in broken()[3:4] + broken()[5:7] + broken()[8:9] + broken()[12:15]:
        with Folder() as folder:
            repo, done, answer = played(folder, refs, False)
            check(done.returncode == 0, answer, done.stderr)
            made = evidence(answer)
            check(len(made["sources"]) == 1 and made["claims"] == [], made)
            check(said in made["limitations"][0], said, made["limitations"])
            check(repo.verify(answer).returncode == 0)


if __name__ == "__main__":
    main()
