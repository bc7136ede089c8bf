#!/usr/bin/env python3
"""`cortex attest`: statements about files hold for exactly those files; scripts/provenance.sh signs how they were built.

Closes with `N passed, N failed, N skipped`.
"""
import base64
import hashlib
import json
import shutil

from kit import BIN, TESTS, Folder, check, clean_env, main, run, skip, test

ROOT = TESTS.parent
TYPE = "https://slsa.dev/provenance/v1"


class Signed(Folder):
    """Two files, a key and a predicate."""

    def __enter__(self):
        folder = super().__enter__()
        self.key, self.public, self.predicate = folder / "key", folder / "public", folder / "predicate"
        check(run(BIN, "key", "new", "--name", "builder", self.key).returncode == 0)
        self.public.write_bytes(run(BIN, "key", "show", self.key).stdout)
        self.predicate.write_text('{"b": 1, "a": "x"}')
        (folder / "made").mkdir()
        self.files = [folder / "made" / name for name in ("one", "two")]
        for number, path in enumerate(self.files):
            path.write_bytes(bytes([number]) * 300000)
        self.envelope = folder / "envelope"
        self.folder = folder
        return self

    def sign(self, *files, code=0, words=()):
        done = run(BIN, "attest", "--type", TYPE, "--predicate", self.predicate, "--key", self.key, "-o", self.envelope,
                   *words, *(files or self.files))
        check(done.returncode == code, done.returncode, done.stdout, done.stderr)
        return done

    def verify(self, *files, code=0, reason=None, trusted=None, words=()):
        done = run(BIN, "attest", "--check", self.envelope, "--trusted", trusted or self.public, "--json", *words,
                   *(files or self.files))
        check(done.returncode == code, done.returncode, done.stdout, done.stderr)
        if code != 2:
            check(json.loads(done.stdout)["reason"] == reason, done.stdout)
        return done


def sign_payload(signed, payload, kind="application/vnd.in-toto+json"):
    """An envelope by another implementation, over any payload."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        skip("python3-cryptography is not here")
    seed = base64.b64decode(signed.key.read_text().strip().split("+", 4)[4])[1:]
    pae = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    signature = Ed25519PrivateKey.from_private_bytes(seed).sign(pae)
    signed.envelope.write_text(json.dumps({"payloadType": kind, "payload": base64.b64encode(payload).decode(),
                                           "signatures": [{"sig": base64.b64encode(signature).decode()}]}))


@test
def a_statement_holds_for_its_files_and_no_others():
    with Signed() as s:
        s.sign()
        s.verify()
        s.verify(s.files[1])
        s.verify(words=("--type", TYPE))
        s.verify(words=("--type", "https://example.org/other"), code=1, reason="predicate_type")
        s.verify(s.predicate, code=1, reason="subject_missing")
        s.files[1].write_bytes(s.files[1].read_bytes()[:-1])
        s.verify(s.files[0])
        done = s.verify(code=1, reason="subject_differs")
        check(json.loads(done.stdout)["path"] == "two", done.stdout)
        # The right bytes under the name of another file are not what was signed.
        s.files[1].write_bytes(s.files[0].read_bytes())
        s.verify(s.files[1], code=1, reason="subject_differs")


@test
def the_statement_is_what_other_tools_expect():
    with Signed() as s:
        s.sign()
        envelope = json.loads(s.envelope.read_text())
        payload = base64.b64decode(envelope["payload"])
        statement = json.loads(payload)
        check(envelope["payloadType"] == "application/vnd.in-toto+json")
        check(statement["_type"] == "https://in-toto.io/Statement/v1" and statement["predicateType"] == TYPE)
        check(statement["subject"] == [{"name": path.name, "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
                                       for path in s.files], statement)
        check(statement["predicate"] == {"a": "x", "b": 1})
        # Ed25519 signatures have one form: another implementation makes the same.
        sign_payload(s, payload)
        check(json.loads(s.envelope.read_text())["signatures"][0]["sig"] == envelope["signatures"][0]["sig"])
        s.verify()


@test
def another_key_no_key_and_a_changed_byte_do_not_hold():
    with Signed() as s, Signed() as other:
        s.sign()
        s.verify(trusted=other.public, code=3, reason="key_unknown")
        done = run(BIN, "attest", "--check", s.envelope, *s.files)
        check(done.returncode == 3 and b"key_unknown" in done.stdout, done.stdout)
        envelope = json.loads(s.envelope.read_text())
        payload = base64.b64decode(envelope["payload"]).replace(b'"a":"x"', b'"a":"y"')
        envelope["payload"] = base64.b64encode(payload).decode()
        s.envelope.write_text(json.dumps(envelope))
        s.verify(code=1, reason="signature")
        s.envelope.write_text("{}")
        s.verify(code=1, reason="envelope_invalid")


@test
def signed_nonsense_does_not_hold():
    with Signed() as s:
        digest = hashlib.sha256(s.files[0].read_bytes()).hexdigest()
        subject = {"name": "one", "digest": {"sha256": digest}}
        good = {"_type": "https://in-toto.io/Statement/v1", "predicateType": TYPE, "predicate": {}, "subject": [subject]}
        sign_payload(s, json.dumps(good, indent=3).encode())  # not in our form, and still signed
        s.verify(s.files[0])
        for change, reason in (
                ({"_type": "https://in-toto.io/Statement/v0.1"}, "statement_invalid"),
                ({"subject": []}, "statement_invalid"), ({"subject": {}}, "statement_invalid"),
                ({"predicateType": "no uri"}, "statement_invalid"), ({"predicateType": 7}, "statement_invalid"),
                ({"subject": [subject, subject]}, "subject_missing"), ({"subject": [1, [], "one"]}, "subject_missing"),
                ({"subject": [{"name": "one"}]}, "subject_differs"),
                ({"subject": [{"name": "one", "digest": {"sha1": digest}}]}, "subject_differs"),
                ({"subject": [{"name": "one", "digest": {"sha256": digest.upper()[:63]}}]}, "subject_differs"),
                ({"subject": [{"name": "../one", "digest": {"sha256": digest}}]}, "subject_missing")):
            sign_payload(s, json.dumps({**good, **change}).encode())
            s.verify(s.files[0], code=1, reason=reason)
        sign_payload(s, b"[]")
        s.verify(s.files[0], code=1, reason="statement_invalid")
        sign_payload(s, json.dumps(good).encode(), kind="text/plain")
        s.verify(s.files[0], code=1, reason="payload_type")
        sign_payload(s, b'{"subject":1,"subject":2}')
        s.verify(s.files[0], code=1, reason="envelope_invalid")


@test
def wrong_words_sign_nothing():
    with Signed() as s:
        s.sign(s.files[0], s.files[0], code=2)
        s.sign(s.folder / "none", code=3)
        s.sign(s.folder, code=3)
        s.predicate.write_text("[1]")
        s.sign(code=2)
        s.predicate.write_text('{"a":1,"a":2}')
        s.sign(code=3)
        s.predicate.write_text("{}")
        for words in ((), ("--type", TYPE), ("--predicate", s.predicate), ("--type", "none", "--predicate", s.predicate),
                      ("--type", "a b:c", "--predicate", s.predicate),
                      ("--check", s.predicate, "--predicate", s.predicate)):
            done = run(BIN, "attest", "--key", s.key, "-o", s.envelope, *words, *s.files)
            check(done.returncode == 2, words, done.returncode, done.stdout, done.stderr)
        check(not s.envelope.exists(), "something was signed")
        done = run(BIN, "attest", "--type", TYPE, "--predicate", s.predicate, "--key", s.key)
        check(done.returncode == 2 and b"FILE" in done.stderr, done.stderr)


# --- provenance of a release -----------------------------------------------------------------------------------------

@test
def provenance_names_every_artefact_and_is_verified():
    with Signed() as s:
        made = s.folder / "made"
        (made / "a name with spaces.deb").write_bytes(b"d")
        (made / "SHA256SUMS").write_bytes(b"made later")
        words = ("bash", ROOT / "scripts/provenance.sh", made, "--key", s.key, "--tag", "v9.8.7", "--version", "9.8.7")
        done = run(*words, env=clean_env(CORTEX_BIN=str(BIN), HOME=str(s.folder)))
        if b"not a git repository" in done.stderr:
            skip("provenance is of a commit, and this is a copy without its history")
        if b"is not installed" in done.stderr or shutil.which("dpkg-query") is None:
            skip("the libraries that static programs are linked with are not here")
        check(done.returncode == 0 and done.stdout == b"holds\n", done.stdout, done.stderr)
        s.envelope, s.public = made / "cortex-9.8.7.provenance.json", made / "cortex-9.8.7.provenance.pub"
        statement = json.loads(base64.b64decode(json.loads(s.envelope.read_text())["payload"]))
        check([one["name"] for one in statement["subject"]] == ["a name with spaces.deb", "one", "two"], statement["subject"])
        build = statement["predicate"]["buildDefinition"]
        head = run("git", "-C", ROOT, "rev-parse", "HEAD").stdout.decode().strip()
        check(build["externalParameters"]["source"] == {"uri": "urn:cortex:source@refs/tags/v9.8.7", "digest": {"gitCommit": head}})
        check(statement["predicate"]["runDetails"]["builder"]["id"].startswith("urn:cortex:builder:"))
        uris = [one["uri"] for one in build["resolvedDependencies"]]
        check(any(uri.startswith("pkg:deb/debian/libsodium-dev@") for uri in uris), uris)
        npm = [one for one in build["resolvedDependencies"] if one["uri"].startswith("pkg:npm/")]
        check(npm and all(len(one["digest"]["sha512"]) == 128 for one in npm), npm)
        s.verify(made / "one", words=("--type", TYPE))
        first = s.envelope.read_bytes()
        check(run(*words, env=clean_env(CORTEX_BIN=str(BIN), HOME=str(s.folder))).returncode == 0)
        check(s.envelope.read_bytes() == first, "the second time other bytes were signed")
        check(str(s.folder).encode() not in base64.b64decode(json.loads(first)["payload"]))


@test
def provenance_without_a_key_is_not_made():
    with Signed() as s:
        made = s.folder / "made"
        env = clean_env(CORTEX_BIN=str(BIN), HOME=str(s.folder))
        check(run("bash", ROOT / "scripts/provenance.sh", made, env=env).returncode == 2)
        check(run("bash", ROOT / "scripts/provenance.sh", made, "--key", s.predicate, env=env).returncode != 0)
        check(sorted(path.name for path in made.iterdir()) == ["one", "two"])


if __name__ == "__main__":
    main()
