#!/usr/bin/env python3
"""scripts/install.sh: nothing is installed before a signature was checked, and it undoes itself.

Closes with `N passed, N failed, N skipped`.
"""
import hashlib
import platform
import shutil

from kit import BIN, TESTS, Folder, check, clean_env, main, run, sibling, skip, test

INSTALL = TESTS.parent / "scripts/install.sh"
ARCH = platform.machine()


class Release(Folder):
    """A signed folder as scripts/release.sh makes it, with the programs that are tested."""

    def __enter__(self):
        folder = super().__enter__()
        if shutil.which("ssh-keygen") is None:
            skip("ssh-keygen is not here")
        self.made, self.prefix = folder / "release", folder / "prefix"
        self.made.mkdir()
        self.key = folder / "key"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.key)
        self.public = self.key.with_suffix(".pub").read_text().strip()
        self.names = [f"{program}-9.8.7-linux-{ARCH}" for program in ("cortex", "cortex-verify")]
        shutil.copy(BIN, self.made / self.names[0])
        shutil.copy(sibling("cortex-verify"), self.made / self.names[1])
        self.sign()
        return self

    def sign(self):
        sums = "".join(f"{hashlib.sha256((self.made / name).read_bytes()).hexdigest()}  {name}\n" for name in self.names)
        (self.made / "SHA256SUMS").write_text(sums)
        (self.made / "SHA256SUMS.sig").unlink(missing_ok=True)
        done = run("ssh-keygen", "-q", "-Y", "sign", "-f", self.key, "-n", "cortex-release", self.made / "SHA256SUMS")
        check(done.returncode == 0, done.stderr)

    def install(self, *words, key=None, code=0):
        done = run("sh", INSTALL, "--from", self.made, "--prefix", self.prefix, "--key", key or self.public, "--yes", *words,
                   env=clean_env(HOME=str(self.prefix)))
        check(done.returncode == code, done.returncode, done.stdout, done.stderr)
        return done

    def nothing(self):
        check(not (self.prefix / "bin").exists(), "something was installed")


@test
def installs_runs_and_undoes_itself():
    with Release() as release:
        release.install()
        program = release.prefix / "bin/cortex"
        check(run(program, "--version").stdout.startswith(b"cortex "))
        release.install()  # again: what is there is ours
        done = run("sh", INSTALL, "--uninstall", "--prefix", release.prefix)
        check(done.returncode == 0, done.stderr)
        check([p for p in release.prefix.rglob("*") if p.is_file()] == [], list(release.prefix.rglob("*")))


@test
def a_program_that_was_changed_is_refused():
    with Release() as release:
        path = release.made / release.names[1]
        path.write_bytes(path.read_bytes() + b"x")
        done = release.install(code=3)
        check(b"nothing was installed" in done.stderr, done.stderr)
        release.nothing()


@test
def a_list_that_was_changed_is_refused():
    with Release() as release:
        path = release.made / release.names[1]
        path.write_bytes(path.read_bytes() + b"x")
        old = (release.made / "SHA256SUMS.sig").read_bytes()
        release.sign()
        (release.made / "SHA256SUMS.sig").write_bytes(old)
        done = release.install(code=3)
        check(b"not that of the release key" in done.stderr, done.stderr)
        release.nothing()


@test
def another_key_is_refused_and_no_key_too():
    with Release() as release, Release() as other:
        release.install(key=other.public, code=3)
        done = run("sh", INSTALL, "--from", release.made, "--prefix", release.prefix)
        check(done.returncode == 3 and b"no release key" in done.stderr, done.stderr)
        release.nothing()


@test
def another_version_than_asked_for_is_refused():
    with Release() as release:
        done = release.install("--version", "9.9.9", code=3)
        check(b"the signed list has no cortex-9.9.9" in done.stderr, done.stderr)
        release.nothing()


@test
def what_is_not_ours_stays():
    with Release() as release:
        (release.prefix / "bin").mkdir(parents=True)
        (release.prefix / "bin/cortex").write_text("mine\n")
        done = release.install(code=3)
        check(b"was not installed by install.sh" in done.stderr, done.stderr)
        check((release.prefix / "bin/cortex").read_text() == "mine\n")
        (release.prefix / "bin/cortex").unlink()
        release.install()
        (release.prefix / "bin/cortex").write_text("changed\n")
        done = run("sh", INSTALL, "--uninstall", "--prefix", release.prefix)
        check(b"kept" in done.stderr and (release.prefix / "bin/cortex").exists(), done.stderr)


@test
def plain_http_from_elsewhere_is_refused():
    with Release() as release:
        done = run("sh", INSTALL, "--from", "http://example.org/x", "--prefix", release.prefix, "--key", release.public)
        check(done.returncode == 3 and b"expected https://" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
