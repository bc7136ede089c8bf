#!/usr/bin/env python3
"""tools/make_image.py and scripts/image.sh: the image is a valid OCI layout, runs without root, and is the same twice.
Where podman and an image are, it is run as docs/container.md says.

Closes with `N passed, N failed, N skipped`.
"""
import gzip
import hashlib
import io
import json
import re
import shutil
import sys
import tarfile
import urllib.request

from image_kit import MADE, VERSION, Podman
from kit import TESTS, Folder, check, main, run, skip, test

ROOT = TESTS.parent
MAKE = ROOT / "tools/make_image.py"
HEAD = run("git", "-C", ROOT, "rev-parse", "HEAD").stdout.decode().strip()


def static_elf(machine):
    """The smallest file that is a program for that machine and names no library."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    rest = (2).to_bytes(2, "little") + machine.to_bytes(2, "little") + (1).to_bytes(4, "little") + bytes(24)
    return head + rest + bytes(4) + (64).to_bytes(2, "little") + (56).to_bytes(2, "little") + bytes(2) + (64).to_bytes(2, "little") + bytes(4)


def make(folder, *more, machines=(("amd64", 62), ("arm64", 183)), code=0):
    if shutil.which("readelf") is None or not HEAD:
        skip("readelf or the repository is not here")
    platforms = []
    for arch, machine in machines:
        (folder / arch / "bin").mkdir(parents=True, exist_ok=True)
        for name in ("cortex", "cortex-verify"):
            (folder / arch / "bin" / name).write_bytes(static_elf(machine))
        platforms.append(f"{arch}={folder / arch}")
    out = folder / "i.oci.tar"
    done = run(sys.executable, MAKE, out, "--version", VERSION, "--commit", HEAD, *more, *platforms)
    if b"is not installed" in done.stderr or b"No such file or directory: '/usr/share/doc" in done.stderr:
        skip("the libraries that static programs are linked with are not here")
    check(done.returncode == code, done.stdout, done.stderr)
    return out if code == 0 else done


class Image:
    """What a reader of the OCI's specification finds; every digest and size on the way is checked."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.names = tar.getnames()
            self.files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}
        check(json.loads(self.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"})
        self.top = json.loads(self.files["index.json"])
        check(self.top["schemaVersion"] == 2 and len(self.top["manifests"]) == 1, self.top)
        self.index = json.loads(self.blob(self.top["manifests"][0]))
        self.reached = {self.top["manifests"][0]["digest"]}
        self.platforms = {}
        for descriptor in self.index["manifests"]:
            check(descriptor["mediaType"] == "application/vnd.oci.image.manifest.v1+json", descriptor)
            manifest = json.loads(self.blob(descriptor))
            config = json.loads(self.blob(manifest["config"]))
            layers = [gzip.decompress(self.blob(layer)) for layer in manifest["layers"]]
            check(["sha256:" + hashlib.sha256(data).hexdigest() for data in layers] == config["rootfs"]["diff_ids"])
            check(descriptor["platform"]["architecture"] == config["architecture"] and config["os"] == "linux")
            check(len(config["history"]) == len(layers))
            self.reached |= {d["digest"] for d in (descriptor, manifest["config"], *manifest["layers"])}
            self.platforms[config["architecture"]] = (config, layers)

    def blob(self, descriptor):
        kind, name = descriptor["digest"].split(":")
        data = self.files[f"blobs/{kind}/{name}"]
        check(len(data) == descriptor["size"] and hashlib.sha256(data).hexdigest() == name, descriptor)
        return data

    def members(self, arch):
        found = {}
        for layer in self.platforms[arch][1]:
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                for member in tar:
                    found[member.name] = member
        return found


@test
def the_layout_is_that_of_the_specification():
    with Folder() as folder:
        image = Image(make(folder))
        check(set(image.platforms) == {"amd64", "arm64"}, image.platforms.keys())
        blobs = {f"sha256:{name.rpartition('/')[2]}" for name in image.files if name.startswith("blobs/")}
        check(blobs == image.reached, blobs ^ image.reached)
        check(image.top["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"] == f"localhost/cortex:{VERSION}")


@test
def it_runs_as_a_user_without_rights_and_writes_one_folder():
    with Folder() as folder:
        image = Image(make(folder))
        for arch in image.platforms:
            config = image.platforms[arch][0]["config"]
            check(re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", config["User"]), config["User"])
            check(list(config["Volumes"]) == ["/var/lib/cortex"] and "CORTEX_HOME=/var/lib/cortex" in config["Env"])
            check(config["Entrypoint"] == ["/usr/bin/cortex"] and config["Cmd"] == ["serve"], config)
            check(config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/cortex", "ready"])
            check(config["Labels"]["org.opencontainers.image.revision"] == HEAD)
            members = image.members(arch)
            uid = int(config["User"].split(":")[0])
            owned = [name for name, member in members.items() if member.uid == uid]
            check(owned == ["var/lib/cortex"] and members["var/lib/cortex"].mode == 0o700, owned)
            open_to_all = [name for name, m in members.items() if not m.issym() and m.mode & 0o022]
            check(open_to_all == ["tmp"], open_to_all)
            check(not [name for name, m in members.items() if m.mode & 0o6000], "a program with a borrowed owner")


@test
def two_runs_give_the_same_bytes_and_other_programs_do_not():
    with Folder() as one, Folder() as two:
        first, second = make(one), make(two)
        check(first.read_bytes() == second.read_bytes())
        said = [(folder / "i.spdx.json").read_bytes() for folder in (one, two)]
        check(said[0] == said[1])
        listed = json.loads(said[0])["files"][0]["checksums"][1]["checksumValue"]
        check(listed == hashlib.sha256(first.read_bytes()).hexdigest())
        check(make(two, machines=(("amd64", 62),)).read_bytes() != first.read_bytes())


@test
def a_program_that_asks_for_libraries_is_refused_without_them():
    with Folder() as folder:
        make(folder)
        program = next((p for p in ("/bin/true", "/usr/bin/env") if b"(NEEDED)" in run("readelf", "-d", p).stdout), None)
        if program is None:
            skip("no program here asks for libraries")
        shutil.copy(program, folder / "amd64/bin/cortex")
        done = run(sys.executable, MAKE, folder / "i.oci.tar", "--version", VERSION, "--commit", HEAD, f"amd64={folder / 'amd64'}")
        check(done.returncode == 1 and b"asks for libraries" in done.stderr, done.stderr)
        done = run(sys.executable, MAKE, folder / "i.oci.tar", "--version", VERSION, "--commit", HEAD, "--libraries",
                   f"amd64={folder / 'amd64'}")
        check(done.returncode == 1 and b"has no packages" in done.stderr, done.stderr)
        done = run(sys.executable, MAKE, folder / "i.oci.tar", "--version", VERSION, "--commit", HEAD, "riscv64=x")
        check(done.returncode == 2 and b"expected amd64=FOLDER" in done.stderr, done.stderr)


# --- really run, where podman and an image are ----------------------------------------------------------------------

@test
def podman_runs_it_read_only_as_a_user_and_the_volume_keeps_the_data():
    with Folder() as folder:
        podman = Podman(folder, f"cortex-{VERSION}-image.oci.tar")
        try:
            done = podman.run("serve", code=3)
            check(b"NoHome" in done.stderr, "a server must not make a ledger of its own", done.stderr)
            podman.run("init", code=0)
            container = podman.start("serve", "--listen", "127.0.0.1:0", "--otlp", "off")
            url = podman.wait_ready(container)
            with urllib.request.urlopen(url + "/readyz", timeout=10) as answer:
                check(json.load(answer)["status"] == "ready")
            top = run(*podman.base, "top", container, "user", "pid").stdout.split()
            check(b"root" not in top and b"1" in top, top)
            done = podman.inside(container, "append", "note.deploy", "{}", "--actor", "a",
                       "--committed")
            check(done.returncode == 0, done.stderr)
            check(run(*podman.base, "stop", "-t", "20", container).returncode == 0)
            state = json.loads(run(*podman.base, "inspect", container).stdout)[0]["State"]
            check(state["ExitCode"] == 0, state)
            done = podman.run("log", "--actor", "a", "--json", code=0)
            check(len(done.stdout.splitlines()) == 1, done.stdout)
            podman.run("verify", "--home", "/var/lib/cortex", code=0)
            # Nothing but the volume can be written.
            done = podman.run("memory", "list", "--home", "/elsewhere")
            check(done.returncode == 3, done.stderr)
            done = podman.run("init", "/elsewhere")
            check(done.returncode == 3 and b"Read-only file system" in done.stderr, done.stderr)
        finally:
            podman.end()


def runs_under_qemu(name, selftest):
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    path = MADE / name
    if qemu is None or not path.exists():
        skip(f"qemu-aarch64-static or {name} is not here")
    if "arm64" not in Image(path).platforms:
        skip("the image is not for arm64")
    with Folder() as folder:
        podman = Podman(folder, name, "arm64", qemu)
        try:
            machine = json.loads(run(*podman.base, "image", "inspect", podman.image).stdout)[0]["Architecture"]
            check(machine == "arm64", machine)
            if selftest:
                podman.run("lattice", "selftest", code=0)
            podman.run("init", code=0)
            container = podman.start("serve", "--listen", "127.0.0.1:0", "--otlp", "off")
            with urllib.request.urlopen(podman.wait_ready(container) + "/readyz", timeout=10) as answer:
                check(json.load(answer)["status"] == "ready")
        finally:
            podman.end()


@test
def the_image_for_arm64_runs_under_qemu():
    runs_under_qemu(f"cortex-{VERSION}-image.oci.tar", selftest=True)


@test
def the_larger_image_for_arm64_finds_its_libraries():
    runs_under_qemu(f"cortex-{VERSION}-image-full.oci.tar", selftest=False)


if __name__ == "__main__":
    main()
