#!/usr/bin/env python3
"""make.py CORTEX - hybrid.json: the trace form-H-generic2 with an ML-DSA-65 signature as well.

Needs the Python package cryptography from 48 on.  The key's seed is SHA-256 of "cortex test key
ml-dsa"; signing is randomised, so each run writes another valid signature.
"""
import base64
import hashlib
import json
import pathlib
import subprocess
import sys

from cryptography.hazmat.primitives.asymmetric import mldsa

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent / "trace/traces/form-H-generic2.json"

trace = json.loads(SOURCE.read_bytes())
canonical = subprocess.run([sys.argv[1], "trace", "canon", SOURCE, "--form", "H"],
                           check=True, capture_output=True).stdout
key = mldsa.MLDSA65PrivateKey.from_seed_bytes(hashlib.sha256(b"cortex test key ml-dsa").digest())
padded = trace["signature"] + "=" * (-len(trace["signature"]) % 4)
message = canonical + base64.urlsafe_b64decode(padded)
trace["pqc_key_id"] = "test-ml-dsa"
trace["pubkey_ml_dsa_65"] = base64.b64encode(key.public_key().public_bytes_raw()).decode()
trace["signature_ml_dsa_65"] = base64.b64encode(key.sign(message)).decode()
(HERE / "hybrid.json").write_text(json.dumps(trace) + "\n")
