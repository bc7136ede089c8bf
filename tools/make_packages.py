#!/usr/bin/env python3
"""make_packages.py FOLDER - npm packages and wheels that carry the static programs.

FOLDER has cortex-VERSION-linux-ARCH and cortex-verify-VERSION-linux-ARCH (scripts/static.sh); the packages go
there, too.  Nothing in them runs when they are installed.  The same programs give the same bytes: members are
sorted, and their times are the epoch's.
"""
import base64
import gzip
import hashlib
import io
import json
import pathlib
import re
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# uname's name of an architecture: npm's, Python's.
ARCHES = {"x86_64": ("x64", "x86_64"), "aarch64": ("arm64", "aarch64")}
ABOUT = "The flight recorder, run governor and forensic debugger for AI agents"


def tarball(path, files):
    """files: {name: (bytes, executable)}; npm's layout has everything below package/."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (data, executable) in sorted(files.items()):
            member = tarfile.TarInfo("package/" + name)
            member.size, member.mode = len(data), 0o755 if executable else 0o644
            tar.addfile(member, io.BytesIO(data))
    with open(path, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(made.getvalue())


def manifest(**members):
    members = {"version": VERSION, "license": "Apache-2.0", **members}
    return (json.dumps(members, indent=2) + "\n").encode()


def npm(folder, programs):
    licence = ((ROOT / "LICENSE").read_bytes(), False)
    optional = {}
    for arch, both in programs.items():
        name = f"@cortex/cli-linux-{ARCHES[arch][0]}"
        optional[name] = VERSION
        files = {f"bin/{program}": (data, True) for program, data in both.items()}
        files["package.json"] = (manifest(name=name, description=f"{ABOUT}: programs for Linux on {arch}",
                                          os=["linux"], cpu=[ARCHES[arch][0]], preferUnplugged=True), False)
        files["LICENSE"] = licence
        tarball(folder / f"cortex-cli-linux-{ARCHES[arch][0]}-{VERSION}.tgz", files)
    start = (ROOT / "packaging/npm/cortex.js").read_bytes()
    tarball(folder / f"cortex-cli-{VERSION}.tgz", {
        "package.json": (manifest(name="@cortex/cli", description=ABOUT, engines={"node": ">=18"},
                                  # npx of a package with two commands starts the first, when both are one file.
                                  bin={"cortex": "bin/cortex.js", "cortex-verify": "bin/cortex.js"},
                                  optionalDependencies=optional), False),
        "bin/cortex.js": (start, True), "LICENSE": licence,
        "README.md": ((ROOT / "README.md").read_bytes(), False)})


def wheel(folder, arch, both):
    """The SDK with the programs beside it: pip puts them where its own commands are."""
    package = ROOT / "sdk/python/src/cortex_recorder"
    files = {f"cortex_recorder/{p.relative_to(package).as_posix()}": (p.read_bytes(), False)
             for p in package.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    stem = f"cortex_recorder-{VERSION}"
    for program, data in both.items():
        files[f"{stem}.data/scripts/{program}"] = (data, True)
    tag = f"py3-none-manylinux2014_{ARCHES[arch][1]}"
    files[f"{stem}.dist-info/METADATA"] = (
        f"Metadata-Version: 2.1\nName: cortex-recorder\nVersion: {VERSION}\nSummary: {ABOUT}, with its SDK\n"
        "License: Apache-2.0\nRequires-Python: >=3.9\nProvides-Extra: otel\n"
        "Requires-Dist: opentelemetry-api>=1.20; extra == 'otel'\n"
        "Requires-Dist: opentelemetry-sdk>=1.20; extra == 'otel'\nProvides-Extra: signing\n"
        "Requires-Dist: cryptography>=38; extra == 'signing'\n".encode(), False)
    files[f"{stem}.dist-info/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: make_packages\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False)
    files[f"{stem}.dist-info/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), False)
    rows = []
    for name, (data, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    record = f"{stem}.dist-info/RECORD"
    files[record] = ("\n".join([*rows, f"{record},,"]) + "\n").encode(), False
    with zipfile.ZipFile(folder / f"{stem}-{tag}.whl", "w", zipfile.ZIP_DEFLATED) as made:
        for name, (data, executable) in sorted(files.items()):
            member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            member.compress_type, member.create_system = zipfile.ZIP_DEFLATED, 3
            member.external_attr = (0o100755 if executable else 0o100644) << 16
            made.writestr(member, data)


if len(sys.argv) != 2:
    sys.exit(__doc__)
FOLDER = pathlib.Path(sys.argv[1])
VERSION = re.search(r"project\(cortex VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
found = {}
for one in ARCHES:
    paths = {program: FOLDER / f"{program}-{VERSION}-linux-{one}" for program in ("cortex", "cortex-verify")}
    if all(path.exists() for path in paths.values()):
        found[one] = {program: path.read_bytes() for program, path in paths.items()}
if not found:
    sys.exit(f"make_packages.py: {FOLDER} has no programs of version {VERSION}: run scripts/static.sh")
npm(FOLDER, found)
for one, programs in found.items():
    wheel(FOLDER, one, programs)
