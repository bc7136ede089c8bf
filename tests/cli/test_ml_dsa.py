#!/usr/bin/env python3
"""ML-DSA-65 signatures of traces: with no library, with a liboqs that is a stub, with a real one.

Where the machine's libcrypto has ML-DSA-65 (OpenSSL 3.5), a real hybrid trace has to hold. The stub
only shows which bytes reach a library and what becomes of its answers.
"""
import base64
import ctypes
import json
import pathlib

from kit import BIN, TESTS, Place, check, main, skip, test

VECTORS = TESTS / "vectors"
TRUST = VECTORS / "trace/trust.json"
REAL = VECTORS / "ml_dsa/hybrid.json"
STUB = pathlib.Path(BIN).parent.parent / "stub"


def libcrypto_has_it():
    try:
        library = ctypes.CDLL("libcrypto.so.3")
    except OSError:
        return False
    library.EVP_SIGNATURE_fetch.restype = ctypes.c_void_p
    library.EVP_SIGNATURE_fetch.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    return library.EVP_SIGNATURE_fetch(None, b"ML-DSA-65", None) is not None


def decode(text):
    return base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_") +
                                    "=" * (-len(text) % 4))


def message_of(place, trace):
    path = place.folder / "canon.json"
    path.write_text(json.dumps(trace))
    return place.run("trace", "canon", path, "--form", "H").stdout + decode(trace["signature"])


def toy_signature(message, key):
    """As tests/stub/oqs_stub.c has it."""
    value = 0xCBF29CE484222325
    for byte in message + key:
        value = (value ^ byte) * 0x100000001B3 % 2 ** 64
    return (value.to_bytes(8, "little") * 414)[:3309]


def verdict(place, trace, expect, env=None):
    path = place.folder / "trace.json"
    path.write_text(json.dumps(trace))
    done = place.run("trace", "verify", "--trust", TRUST, path, "--json", env=env)
    check(done.returncode == expect, done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


def toy_trace(place):
    trace = json.loads(REAL.read_bytes())
    key = bytes(range(256)) * 7 + bytes(160)
    trace["pubkey_ml_dsa_65"] = base64.b64encode(key).decode()
    signature = toy_signature(message_of(place, trace), key)
    return {**trace, "signature_ml_dsa_65": base64.urlsafe_b64encode(signature).decode()}


def stub():
    if not (STUB / "liboqs.so.9").exists():
        skip("the stub is built with the tests only")
    if libcrypto_has_it():
        skip("libcrypto has ML-DSA-65, and is asked first")
    return {"LD_LIBRARY_PATH": str(STUB)}


@test
def a_real_hybrid_trace_on_this_machine():
    with Place(init=False) as p:
        trace = json.loads(REAL.read_bytes())
        got = verdict(p, trace, 0)
        check((got["verdict"], got["form"], got["pqc"]) ==
              ("holds", "H", "holds" if libcrypto_has_it() else "not_checked"), got)
        if not libcrypto_has_it():
            return
        for name in ("pubkey_ml_dsa_65", "signature_ml_dsa_65"):
            bytes_of = bytearray(decode(trace[name]))
            bytes_of[100] ^= 1
            got = verdict(p, {**trace, name: base64.b64encode(bytes_of).decode()}, 1)
            check((got["pqc"], got["path"]) == ("broken", "/signature_ml_dsa_65"), got)


@test
def the_signed_bytes_are_those_that_another_program_signed():
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import mldsa
    except ImportError:
        skip("no Python package cryptography with ML-DSA")
    with Place(init=False) as p:
        trace = json.loads(REAL.read_bytes())
        key = mldsa.MLDSA65PublicKey.from_public_bytes(decode(trace["pubkey_ml_dsa_65"]))
        signature, message = decode(trace["signature_ml_dsa_65"]), message_of(p, trace)
        key.verify(signature, message)
        try:
            key.verify(signature, message[:-1])
        except InvalidSignature:
            return
        check(False, "it verifies other bytes, too")


@test
def a_library_says_yes_or_no():
    env = stub()
    with Place(init=False) as p:
        trace = toy_trace(p)
        got = verdict(p, trace, 0, env)
        check((got["verdict"], got["pqc"], got["reason"]) == ("holds", "holds", None), got)
        check(verdict(p, trace, 0)["pqc"] == "not_checked")
        key, signature = decode(trace["pubkey_ml_dsa_65"]), decode(trace["signature_ml_dsa_65"])
        for change in ({"pubkey_ml_dsa_65": base64.b64encode(b"\1" + key[1:]).decode()},
                       {"pubkey_ml_dsa_65": base64.b64encode(key[1:]).decode()},
                       {"signature_ml_dsa_65": base64.b64encode(signature[:-1]).decode()},
                       {"signature_ml_dsa_65": base64.b64encode(b"\0" + signature[1:]).decode()},
                       {"signature_ml_dsa_65": "no base64!"}, {"signature_ml_dsa_65": ""}):
            got = verdict(p, {**trace, **change}, 1, env)
            check((got["verdict"], got["pqc"], got["reason"], got["path"]) ==
                  ("broken", "broken", "signature_invalid", "/signature_ml_dsa_65"), change, got)
        without = {name: value for name, value in trace.items() if name != "pubkey_ml_dsa_65"}
        check(verdict(p, without, 0, env)["pqc"] == "not_checked")
        without.pop("signature_ml_dsa_65")
        check(verdict(p, without, 0, env)["pqc"] is None)
        text = p.run("trace", "verify", "--trust", TRUST, p.folder / "trace.json", env=env).stdout
        check(b"pqc" not in text, text)


@test
def a_library_that_cannot_answer_is_none():
    env = stub()
    with Place(init=False) as p:
        trace = toy_trace(p)
        for more in ({"OQS_STUB_VERSION": "0.11.0"}, {"OQS_STUB_VERSION": "junk"},
                     {"OQS_STUB_EMPTY": "1"}):
            check(verdict(p, trace, 0, {**env, **more})["pqc"] == "not_checked", more)
        check(verdict(p, trace, 0, {**env, "OQS_STUB_VERSION": "1.0.0"})["pqc"] == "holds")


@test
def a_broken_one_is_rejected_at_intake():
    env = stub()
    with Place() as p:
        trace = toy_trace(p)
        p.ok("key", "add", TRUST)
        path = p.folder / "trace.json"
        path.write_text(json.dumps({**trace, "signature_ml_dsa_65": "AAAA"}))
        done = p.run("record", path, env=env)
        check(done.returncode == 1 and b"signature_invalid" in done.stdout, done.stdout, done.stderr)
        path.write_text(json.dumps(trace))
        done = p.run("record", path, env=env)
        check(done.returncode == 0, done.stdout, done.stderr)


main()
