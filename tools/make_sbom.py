#!/usr/bin/env python3
"""make_sbom.py FOLDER VERSION COMMIT - what the artefacts of a release were made from, as SPDX 2.3 in JSON.

Files are those in FOLDER with their hashes; what the static programs carry is asked of the package manager of
this machine, with versions.  The same inputs give the same bytes.
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Debian's package of each library that is linked into the static programs.
LINKED = {"libc6-dev": "LGPL-2.1-or-later", "libsodium-dev": "ISC", "libsqlite3-dev": "blessing",
          "libmicrohttpd-dev": "LGPL-2.1-or-later", "libnghttp2-dev": "MIT", "zlib1g-dev": "Zlib",
          "libzstd-dev": "BSD-3-Clause", "libpcre2-dev": "BSD-3-Clause", "libseccomp-dev": "LGPL-2.1-only",
          "libutf8proc-dev": "MIT"}
# In cortex-verify for WebAssembly, with libsodium.
WASM = {"wasi-libc": "Apache-2.0 WITH LLVM-exception", "libclang-rt-14-dev-wasm32": "Apache-2.0 WITH LLVM-exception"}
# The same, unpacked by scripts/musl.sh from where apt gets its packages; it need not be installed.
UNPACKED = {"musl-dev": "MIT"}
# What other tools here say about the artefacts: neither parts of them, nor artefacts.
SAID = (".spdx.json", ".intoto.jsonl", ".pub")


def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", package], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"make_sbom.py: the package {package} is not installed")
    return done.stdout.split()[0]


def unpacked_version_of(package):
    done = subprocess.run(["apt-cache", "show", "--no-all-versions", package], capture_output=True, text=True, check=False)
    found = re.search(r"^Version: (\S+)$", done.stdout, re.M)
    return found[1] if found else "NOASSERTION"


def page_packages():
    lock = json.loads((ROOT / "web/package-lock.json").read_text())["packages"]
    for path, entry in sorted(lock.items()):
        if path and not entry.get("dev"):
            yield re.sub(r"^.*node_modules/", "", path), entry["version"], entry.get("license", "NOASSERTION")


class Document:
    """Collects packages and files; text() is the document."""

    def __init__(self, name, space, version, commit):
        self.name, self.space, self.commit = name, space, commit
        self.packages = [{"SPDXID": "SPDXRef-cortex", "name": "cortex", "versionInfo": version,
                          "downloadLocation": "NOASSERTION", "sourceInfo": f"git commit {commit}",
                          "licenseDeclared": "Apache-2.0", "filesAnalyzed": False}]
        self.files = []
        self.relations = []
        self.relate("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-cortex")

    def relate(self, one, kind, other):
        self.relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    def add(self, kind, name, number, licence, relation):
        spdx_id = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}")
        self.packages.append({"SPDXID": spdx_id, "name": name, "versionInfo": number, "downloadLocation": "NOASSERTION",
                              "licenseDeclared": licence, "filesAnalyzed": False})
        self.relate("SPDXRef-cortex", relation, spdx_id)

    def add_linked(self, more=()):
        for library, licence in sorted({**LINKED, **dict(more)}.items()):
            self.add("debian", library, version_of(library), licence, "STATIC_LINK")
        for library, licence in sorted(UNPACKED.items()):
            self.add("debian", library, unpacked_version_of(library), licence, "STATIC_LINK")

    def add_page(self):
        for name, number, licence in page_packages():
            self.add("npm", name, number, licence, "CONTAINS")

    def add_file(self, path):
        data = path.read_bytes()
        spdx_id = f"SPDXRef-file-{len(self.files)}"
        self.files.append({"SPDXID": spdx_id, "fileName": "./" + path.name,
                           "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                                         {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}]})
        self.relate(spdx_id, "GENERATED_FROM", "SPDXRef-cortex")

    def text(self):
        created = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
                                  self.commit], capture_output=True, text=True, check=True,
                                 env={"TZ": "UTC", "PATH": "/usr/bin:/bin"}).stdout.strip()
        return json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
                           "name": self.name,
                           "documentNamespace": f"urn:cortex:spdx:{self.space}:{self.commit}",
                           "creationInfo": {"created": created, "creators": ["Tool: make_sbom.py"]},
                           "packages": self.packages, "files": self.files, "relationships": self.relations}, indent=1)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    folder, version, commit = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    document = Document(f"cortex-{version}", version, version, commit)
    document.add_linked(WASM if any(folder.glob("*.wasm")) else ())
    document.add_page()
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(SAID) and not path.name.startswith("SHA256SUMS"):
            document.add_file(path)
    print(document.text())


if __name__ == "__main__":
    main()
