#!/usr/bin/env python3
"""make_provenance.py VERSION COMMIT [--tag TAG] - how the artefacts of a release were built, as the predicate of
SLSA provenance v1 (https://slsa.dev/provenance/v1), in JSON.

It names the source, the packages of Debian that were on this machine and went into the programs, and the packages
of the page with their hashes.  No times and no name of a machine are in it: the same inputs give the same bytes.
Whoever signs it vouches for it; nothing here proves that the artefacts were built so.
"""
import argparse
import base64
import json
import subprocess

from make_sbom import LINKED, ROOT, UNPACKED, unpacked_version_of, version_of

BUILD_TYPE = "urn:cortex:build:release.sh:v1"
BUILDER = "urn:cortex:builder:maintainer"
# What compiles and links, which decides the bytes as much as the libraries do.
TOOLS = ("gcc", "binutils", "cmake", "ninja-build", "libc6-dev", "nodejs")


def debian_packages():
    for name in sorted({*LINKED, *TOOLS}):
        done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status}", name], capture_output=True, text=True, check=False)
        if name in LINKED or done.stdout.startswith("installed"):
            yield {"uri": f"pkg:deb/debian/{name}@{version_of(name)}"}
    for name in sorted(UNPACKED):
        yield {"uri": f"pkg:deb/debian/{name}@{unpacked_version_of(name)}"}


def page_packages():
    lock = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    for path, entry in sorted(lock.items()):
        kind, _, value = entry.get("integrity", "").partition("-")
        if path and not entry.get("dev") and kind == "sha512":
            name = path.rpartition("node_modules/")[2].replace("@", "%40")
            yield {"uri": f"pkg:npm/{name}@{entry['version']}", "digest": {"sha512": base64.b64decode(value).hex()}}


def predicate(version, commit, tag):
    epoch = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct", commit], capture_output=True, text=True, check=True)
    source = {"uri": "urn:cortex:source" + (f"@refs/tags/{tag}" if tag else ""), "digest": {"gitCommit": commit}}
    return {"buildDefinition": {"buildType": BUILD_TYPE,
                                "externalParameters": {"script": "scripts/release.sh", "source": source, "version": version},
                                "internalParameters": {"SOURCE_DATE_EPOCH": int(epoch.stdout)},
                                "resolvedDependencies": [source, *debian_packages(), *page_packages()]},
            "runDetails": {"builder": {"id": BUILDER}}}


def main():
    parser = argparse.ArgumentParser(prog="make_provenance.py")
    parser.add_argument("version")
    parser.add_argument("commit")
    parser.add_argument("--tag", default="")
    args = parser.parse_args()
    print(json.dumps(predicate(args.version, args.commit, args.tag), indent=1))


if __name__ == "__main__":
    main()
