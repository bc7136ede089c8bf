#!/usr/bin/env python3
"""make_image.py OUT --version V --commit C [--libraries] ARCH=FOLDER… - writes a container image, as an OCI layout in
a tar file, and what is in it as OUT without .oci.tar, with .spdx.json.

ARCH is amd64 or arm64.  FOLDER has the programs bin/cortex and bin/cortex-verify, and copyright/PACKAGE of what they
carry that is not installed here.  With --libraries they are those of
the usual build, and FOLDER has Debian's packages debs/*.deb: what the programs load goes into the image, and nothing
else of them but their copyright files, and the certificates of ca-certificates.  Nothing in a package is run, and no
rights are needed.  All times are that of the commit; the same inputs give the same bytes.

The configuration of an image of the OCI has no health check; Docker's has, under a name that others ignore, so it is
there.  docs/container.md says who honours it.
"""
import argparse
import gzip
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time

from make_sbom import LINKED, Document

ROOT = pathlib.Path(__file__).resolve().parent.parent
USER = 65532
HOME = "var/lib/cortex"
TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LOADERS = {"amd64": "usr/lib64/ld-linux-x86-64.so.2", "arm64": "usr/lib/ld-linux-aarch64.so.1"}
# What the program loads when it is first needed (src/os/library.h).
LOADED = ("libcrypto.so.3", "libcurl-gnutls.so.4", "libmicrohttpd.so.12", "libnghttp2.so.14", "libpcre2-8.so.0",
          "libpq.so.5", "libseccomp.so.2", "libssl.so.3", "libutf8proc.so.2", "libz.so.1", "libzstd.so.1")
CERTIFICATES = "usr/share/ca-certificates/mozilla/"
LICENCES = pathlib.Path("/usr/share/common-licenses")
OCI = "application/vnd.oci.image."


def fail(text):
    sys.exit(f"make_image.py: {text}")


class Layer:
    """Files of one layer by their path; tar() gives its bytes, sorted, with one time."""

    def __init__(self, when):
        self.when, self.members = when, {}

    def put(self, path, data=b"", mode=0o644, kind=tarfile.REGTYPE, target="", owner=0):
        for parent in reversed(pathlib.PurePosixPath(path).parents):
            if str(parent) != "." and str(parent) not in self.members:
                self.member(str(parent), b"", 0o755, tarfile.DIRTYPE, "", 0)
        self.member(path, data, mode, kind, target, owner)

    def member(self, path, data, mode, kind, target, owner):
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.mtime, info.size, info.linkname = kind, mode, self.when, len(data), target
        info.uid = info.gid = owner
        self.members[path] = (info, data)

    def folder(self, path, mode=0o755, owner=0):
        self.put(path, mode=mode, kind=tarfile.DIRTYPE, owner=owner)

    def link(self, path, target):
        self.put(path, mode=0o777, kind=tarfile.SYMTYPE, target=target)

    def tar(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(self.members):
                info, data = self.members[path]
                tar.addfile(info, io.BytesIO(data))
        return out.getvalue()


class Packages:
    """The files in Debian's packages, by their path under /usr."""

    def __init__(self, folder):
        self.found, self.versions = {}, {}
        debs = sorted(folder.glob("*.deb"))
        if not debs:
            fail(f"{folder} has no packages (*.deb)")
        for deb in debs:
            fields = subprocess.run(["dpkg-deb", "-f", deb, "Package", "Version"], capture_output=True, text=True, check=True)
            name, version = (line.split(": ", 1)[1] for line in fields.stdout.splitlines())
            self.versions[name] = version
            data = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                for member in tar:
                    if member.isfile() or member.issym() or member.islnk():
                        content = tar.extractfile(member).read() if not member.issym() else None
                        self.found[usr(member.name)] = (name, content, member.linkname)

    def read(self, path):
        """(package, real path, bytes) of a file, through symbolic links; None when no package has it."""
        for _ in range(8):
            if path not in self.found:
                return None
            name, content, target = self.found[path]
            if content is not None:
                return name, path, content
            path = usr(str(pathlib.PurePosixPath(path).parent / target) if not target.startswith("/") else target)
        return None


def usr(path):
    """/lib and /lib64 are links to what is in /usr."""
    parts = []
    for part in pathlib.PurePosixPath("/" + path.lstrip("./")).parts[1:]:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    if parts and parts[0] in ("lib", "lib64", "bin", "sbin"):
        parts.insert(0, "usr")
    return "/".join(parts)


def needed(data):
    """The libraries that a program or library names (DT_NEEDED)."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        said = subprocess.run(["readelf", "-d", file.name], capture_output=True, text=True, check=True, env={"LC_ALL": "C"})
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said.stdout)


def add_libraries(layer, packages, arch, programs):
    """The programs' libraries and theirs; returns the packages that they are of."""
    used, waiting, seen = set(), list(LOADED), set()
    for program in programs:
        waiting += needed(program)
    loader = packages.read(LOADERS[arch])
    if loader is None:
        fail(f"no package has {LOADERS[arch]}")
    layer.put(LOADERS[arch], loader[2], 0o755)
    used.add(loader[0])
    while waiting:
        name = waiting.pop()
        if name in seen or LOADERS[arch].endswith("/" + name):
            continue
        seen.add(name)
        file = packages.read(f"usr/lib/{TRIPLES[arch]}/{name}")
        if file is None:
            fail(f"no package for {arch} has {name}")
        layer.put(f"usr/lib/{TRIPLES[arch]}/{name}", file[2])
        used.add(file[0])
        waiting += needed(file[2])
    return used


def add_certificates(layer, packages):
    paths = sorted(path for path in packages.found if path.startswith(CERTIFICATES) and path.endswith(".crt"))
    if len(paths) < 50:
        fail("ca-certificates is not among the packages, or has fewer than 50 certificates")
    bundle = b"".join(packages.read(path)[2].rstrip(b"\n") + b"\n" for path in paths)
    layer.put("etc/ssl/certs/ca-certificates.crt", bundle)
    return {"ca-certificates"}


def add_licences(layer):
    """The texts that copyright files of Debian refer to."""
    if not (LICENCES / "LGPL-2.1").exists():
        fail(f"{LICENCES} has no LGPL-2.1: copyright files refer to it (package base-files)")
    for path in sorted(LICENCES.iterdir()):
        inside = f"usr/share/common-licenses/{path.name}"
        if path.is_symlink():
            layer.link(inside, path.readlink().name)
        else:
            layer.put(inside, path.read_bytes())


def add_system(layer):
    """What a system must have for a program that is not root."""
    for name in ("lib", "lib64"):
        layer.link(name, "usr/" + name)
        layer.folder("usr/" + name)
    layer.put("etc/passwd", f"root:x:0:0:root:/:/usr/sbin/nologin\n"
                            f"cortex:x:{USER}:{USER}:Cortex:/{HOME}:/usr/sbin/nologin\n".encode())
    layer.put("etc/group", f"root:x:0:\ncortex:x:{USER}:\n".encode())
    layer.put("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n")
    layer.folder("tmp", 0o1777)
    layer.folder(HOME, 0o700, USER)


def layers_of(arch, folder, args, document):
    """The layers of one platform: libraries, which seldom change, below the programs."""
    programs = {name: (folder / "bin" / name).read_bytes() for name in ("cortex", "cortex-verify")}
    base, top = Layer(args.when), Layer(args.when)
    add_system(base)
    add_licences(base)
    if args.libraries:
        packages = Packages(folder / "debs")
        used = add_libraries(base, packages, arch, programs.values()) | add_certificates(base, packages)
        for name in sorted(used):
            copyright_file = packages.read(f"usr/share/doc/{name}/copyright")
            if copyright_file is None:
                fail(f"the package {name} has no copyright file")
            base.put(f"usr/share/doc/{name}/copyright", copyright_file[2])
            document.add(f"debian-{arch}", name, packages.versions[name], "NOASSERTION", "DEPENDS_ON")
    else:
        for name, data in programs.items():
            if needed(data):
                fail(f"{arch}: {name} asks for libraries: {' '.join(needed(data))}; without --libraries it must not")
        for name in sorted(LINKED):
            base.put(f"usr/share/doc/{name}/copyright", pathlib.Path(f"/usr/share/doc/{name}/copyright").read_bytes())
        for path in sorted((folder / "copyright").glob("*")):
            base.put(f"usr/share/doc/{path.name}/copyright", path.read_bytes())
    for name, data in programs.items():
        top.put(f"usr/bin/{name}", data, 0o755)
    top.put("usr/share/doc/cortex/copyright", (ROOT / "debian/copyright").read_bytes())
    top.put("usr/share/doc/cortex/LICENSE", (ROOT / "LICENSE").read_bytes())
    return [("libraries, licences and users", base), ("programs", top)]


def configuration(args, arch, diffs, history):
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(args.when))
    env = ["PATH=/usr/bin", f"CORTEX_HOME=/{HOME}", f"HOME=/{HOME}"]
    if args.libraries:
        env.append("SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt")
    second = 10 ** 9
    return {"created": created, "architecture": arch, **({"variant": "v8"} if arch == "arm64" else {}), "os": "linux",
            "config": {"User": f"{USER}:{USER}", "ExposedPorts": {"8420/tcp": {}}, "Env": env,
                       "Entrypoint": ["/usr/bin/cortex"], "Cmd": ["serve"], "Volumes": {f"/{HOME}": {}},
                       "WorkingDir": f"/{HOME}", "StopSignal": "SIGTERM", "Labels": labels(args, created),
                       "Healthcheck": {"Test": ["CMD", "/usr/bin/cortex", "ready"], "Interval": 30 * second,
                                       "Timeout": 5 * second, "StartPeriod": 10 * second, "Retries": 3}},
            "rootfs": {"type": "layers", "diff_ids": diffs},
            "history": [{"created": created, "created_by": f"make_image.py: {text}"} for text in history]}


def labels(args, created):
    return {f"org.opencontainers.image.{name}": value for name, value in (
        ("title", "cortex"), ("description", "flight recorder, run governor and forensic debugger for AI agents"),
        ("version", args.version), ("revision", args.commit), ("created", created), ("licenses", "Apache-2.0"))}


class Layout:
    """Blobs of an OCI image layout."""

    def __init__(self):
        self.blobs = {}

    def add(self, data, kind, **more):
        name = hashlib.sha256(data).hexdigest()
        self.blobs[name] = data
        return {"mediaType": OCI + kind, "digest": f"sha256:{name}", "size": len(data), **more}

    def add_json(self, value, kind, **more):
        return self.add(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), kind, **more)

    def write(self, path, index, when):
        layer = Layer(when)
        layer.put("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        layer.put("index.json", json.dumps(index, sort_keys=True, separators=(",", ":")).encode())
        for name, data in self.blobs.items():
            layer.put(f"blobs/sha256/{name}", data)
        path.write_bytes(layer.tar())


def add_platform(layout, arch, folder, args, document):
    descriptors, diffs, history = [], [], []
    for text, layer in layers_of(arch, folder, args, document):
        data = layer.tar()
        diffs.append("sha256:" + hashlib.sha256(data).hexdigest())
        history.append(text)
        descriptors.append(layout.add(gzip.compress(data, 9, mtime=0), "layer.v1.tar+gzip"))
    config = layout.add_json(configuration(args, arch, diffs, history), "config.v1+json")
    manifest = {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": descriptors}
    platform = {"architecture": arch, "os": "linux", **({"variant": "v8"} if arch == "arm64" else {})}
    return layout.add_json(manifest, "manifest.v1+json", platform=platform)


def read_arguments():
    parser = argparse.ArgumentParser(prog="make_image.py")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("platforms", nargs="+", metavar="ARCH=FOLDER")
    parser.add_argument("--version", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--time", dest="when", type=int, help="seconds since 1970; default: those of the commit")
    parser.add_argument("--libraries", action="store_true")
    args = parser.parse_args()
    args.platforms = dict(item.partition("=")[::2] for item in args.platforms)
    unknown = set(args.platforms) - set(TRIPLES)
    if unknown or not args.out.name.endswith(".oci.tar"):
        parser.error(f"expected amd64=FOLDER or arm64=FOLDER, not {' '.join(unknown)}" if unknown else
                     f"expected a file that ends in .oci.tar, not {args.out}")
    if args.when is None:
        args.when = int(subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct", args.commit], capture_output=True,
                                       text=True, check=True).stdout)
    return args


def main():
    args = read_arguments()
    layout = Layout()
    name = args.out.name.removesuffix(".oci.tar")
    document = Document(name, name, args.version, args.commit)
    if not args.libraries:
        document.add_linked()
    document.add_page()
    manifests = [add_platform(layout, arch, pathlib.Path(folder), args, document)
                 for arch, folder in sorted(args.platforms.items())]
    index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": manifests}
    inner = layout.add_json(index, "index.v1+json", annotations={"org.opencontainers.image.ref.name":
                                                                 f"localhost/cortex:{args.version}{'-full' if args.libraries else ''}"})
    layout.write(args.out, {**index, "manifests": [inner]}, args.when)
    document.add_file(args.out)
    args.out.with_name(name + ".spdx.json").write_text(document.text() + "\n")
    print(f"{args.out}: {args.out.stat().st_size} bytes, {inner['digest']}")


if __name__ == "__main__":
    main()
