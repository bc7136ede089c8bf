#!/usr/bin/env python3
"""cortex backup, backup --verify and restore from outside: complete, broken, hostile and interrupted copies.

Closes with `N passed, N failed, N skipped`.
"""
import io
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import tarfile
import time

import kit
from kit import BIN, Place, check, main, sibling, skip, test

FACT = '{"statement":"sky is blue","subject":"sky","predicate":"is"}'
KEY_FILE = "keys/checkpoint-" + "0" * 32


def filled(p, entries=5):
    """A data directory with entries, memories, an erasure, and a signed checkpoint of all of it."""
    for number in range(entries):
        p.ok("append", "note.x", f"entry {number}")
    p.ok("memory", "write", "Fact", FACT)
    p.ok("append", "note.secret", "gone", "--committed")
    p.ok("erase", entries + 1, "--reason", "a test")
    key = p.folder / "log.key"
    public = p.folder / "log.pub"
    public.write_text(p.ok("key", "new", key, "--name", "example.com/log") + "\n")
    note = p.folder / "first.note"
    p.ok("checkpoint", "--all", "--sign", key, "-o", note)
    return key, public, note


def backed_up(p, name="copy"):
    copy = p.folder / name
    p.ok("backup", copy)
    return copy


def record(copy, **changes):
    """Changes members of the record."""
    path = copy / "backup.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def is_no_home(p, folder):
    """Nothing there can be taken for a data directory."""
    check(not (folder / "log").exists(), "there is a log")
    done = p.run("roots", "--home", folder)
    check(done.returncode == 3 and b"NoHome" in done.stderr, done)


def broken(p, copy, reason, code=1):
    """The check says so, in words and in JSON, and a restore leaves nothing."""
    done = p.run("backup", "--verify", copy)
    check(done.returncode == code and reason.encode() in done.stdout + done.stderr, reason, done)
    said = json.loads(p.run("backup", "--verify", copy, "--json").stdout)
    check(reason in (said.get("reason"), said.get("error", {}).get("code"),
                     *(one["reason"] for one in said.get("findings", []))), reason, said)
    to = p.folder / "restored"
    done = p.run("restore", copy, "--to", to)
    check(done.returncode == code, reason, done)
    check(not to.exists(), reason, "left something")


# --- whole --------------------------------------------------------------------------------------------

@test
def a_backup_is_verified_and_restored():
    with Place() as p:
        key, public, note = filled(p)
        roots = p.json("roots")
        copy = backed_up(p)
        said = p.json("backup", "--verify", copy)
        check(said["verdict"] == "holds" and said["backup"]["commits"] == said["backup"]["recorded_commits"], said)
        check(sorted(path.name for path in copy.iterdir()) == ["backup.json", "format", "keys", "log"])
        to = p.folder / "a" / "b"
        p.expect(3, "restore", copy, "--to", to)  # the folder above does not exist
        to = p.folder / "restored"
        done = p.expect(0, "restore", copy, "--to", to, "--checkpoint", note, "--all", "--key", public)
        check(b"restored to" in done.stderr and b"newest" not in done.stderr, done)
        check(sorted(path.name for path in to.iterdir()) == ["format", "keys", "log"])
        check(p.json("roots", "--home", to) == roots)
        check(p.json("memory", "list", "--home", to) == p.json("memory", "list"))
        p.ok("append", "note.x", "goes on", "--home", to)
        p.ok("verify", "--home", to, "--checkpoint", note, "--all", "--key", public)
        p.ok("checkpoint", "--all", "--sign", key, "--home", to)
        # The copy itself can be used as a data directory, and is then more than it was.
        p.ok("append", "note.x", "there, too", "--home", copy)
        said = p.expect(0, "backup", "--verify", copy).stdout.decode()
        check("1 written to it since" in said, said)


@test
def only_the_owner_can_read_a_backup_and_what_is_restored():
    with Place() as p:
        filled(p)
        copy, to = backed_up(p), p.folder / "restored"
        p.ok("restore", copy, "--to", to)
        for top in (copy, to):
            for path in [top, *top.rglob("*")]:
                mode = stat.S_IMODE(path.stat().st_mode)
                check(mode == (0o700 if path.is_dir() else 0o600), path, oct(mode))


@test
def secrets_of_one_machine_are_not_in_a_backup():
    with Place() as p:
        filled(p)
        p.ok("token", "add", "--name", "x", "--scope", "trace:write")
        (p.home / "config.toml").write_text('actor = "andrew"\n')
        (p.home / "token").write_text("a token\n")
        copy = backed_up(p)
        names = {path.name for path in copy.rglob("*")}
        check(not names & {"tokens.json", "tokens.lock", "token", "server.json", "socket", "cortex.db", "signing"}, names)
        check((copy / "config.toml").read_text() == 'actor = "andrew"\n')
        check(any(name.startswith("checkpoint-") for name in names), names)
        # Settings can name programs: they come back only when asked for.
        p.ok("restore", copy, "--to", p.folder / "without")
        check(not (p.folder / "without/config.toml").exists())
        p.ok("restore", copy, "--to", p.folder / "with", "--with-config")
        check((p.folder / "with/config.toml").read_text() == 'actor = "andrew"\n')


@test
def a_backup_beside_a_writer_is_consistent():
    with Place() as p:
        filled(p)
        writer = subprocess.Popen(
            ["sh", "-c", 'n=0; while [ $n -lt 400 ]; do "$0" append note.x "$n" >/dev/null || exit 1; n=$((n+1)); done', BIN],
            env=p.env, cwd=p.folder, stderr=subprocess.PIPE, start_new_session=True)
        try:
            for number in range(3):
                copy = backed_up(p, f"copy{number}")
                check(p.json("backup", "--verify", copy)["verdict"] == "holds")
                to = p.folder / f"restored{number}"
                p.ok("restore", copy, "--to", to)
                size = p.json("roots", "--home", to)["actors"][0]["journal_size"]
                texts = [json.loads(line)["seq"] for line in p.ok("log", "--all", "--json", "--home", to).splitlines()]
                check(texts == list(range(size)), texts)
        finally:
            os.killpg(writer.pid, signal.SIGKILL)
            writer.communicate()  # until the command that the shell had started is gone, too
        p.ok("verify", "--home", p.home)


@test
def a_backup_beside_a_server_is_consistent():
    with Place() as p:
        filled(p)
        server = subprocess.Popen([BIN, "serve", "--listen", "127.0.0.1:0", "--otlp", "off", "--otlp-grpc", "off"],
                                  env=p.env, cwd=p.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            until = time.monotonic() + 60
            while not (p.home / "server.json").exists():
                if server.poll() is not None:
                    skip("no server here: " + server.stderr.read().decode()[-200:])
                check(time.monotonic() < until, "the server does not come up")
                time.sleep(0.05)
            p.ok("append", "note.x", "through the server")
            copy = backed_up(p)
            check(p.json("backup", "--verify", copy)["verdict"] == "holds")
            p.ok("restore", copy, "--to", p.folder / "restored")
            check(p.json("roots", "--home", p.folder / "restored")["actors"][0]["journal_size"] ==
                  p.json("roots")["actors"][0]["journal_size"])
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(timeout=60)
            server.stderr.close()


# --- broken -------------------------------------------------------------------------------------------

@test
def an_incomplete_backup_is_broken():
    with Place() as p:
        filled(p)
        whole = backed_up(p)
        cases = (
            ("NoLog", lambda copy: shutil.rmtree(copy / "log")),
            ("NoLog", lambda copy: (copy / "log/000000.seg").unlink()),
            ("FileMissing", lambda copy: next((copy / "keys").iterdir()).unlink()),
            ("FileChanged", lambda copy: next((copy / "keys").iterdir()).write_text("other")),
            ("Incomplete", lambda copy: record(copy, commits=10**6)),
            ("EndChanged", lambda copy: record(copy, end="0" * 64)),
            ("OtherHome", lambda copy: record(copy, home_id="0" * 32)),
            ("BadBackupRecord", lambda copy: (copy / "backup.json").write_text("{")),
            ("BadBackupRecord", lambda copy: (copy / "backup.json").write_text("[1]" * 10)),
            ("BadBackupRecord", lambda copy: record(copy, record=0)),
            ("BadBackupRecord", lambda copy: record(copy, made_at="yesterday")),
            ("BadBackupRecord", lambda copy: record(copy, cortex="\x1b[2J")),
            ("BadBackupRecord", lambda copy: record(copy, files=[{"name": "../x", "size": 1, "sha256": "0" * 64}])),
            ("BadBackupRecord", lambda copy: record(copy, files=[{"name": "token", "size": 1, "sha256": "0" * 64}])),
            ("BadBackupRecord", lambda copy: record(copy, files=[{"name": KEY_FILE + "/..", "size": 1, "sha256": "0" * 64}])),
            ("BadBackupRecord", lambda copy: record(copy, files=[{"name": KEY_FILE, "size": 1 << 40, "sha256": "0" * 64}])),
        )
        for number, (reason, spoil) in enumerate(cases):
            copy = p.folder / f"case{number}"
            shutil.copytree(whole, copy)
            spoil(copy)
            broken(p, copy, reason)
        broken_code = p.run("backup", "--verify", p.folder / "none")
        check(broken_code.returncode == 3, broken_code)


@test
def a_truncated_or_changed_log_is_broken():
    with Place() as p:
        filled(p, entries=80)
        whole = backed_up(p)
        for number, offset in enumerate((4200, 5000, 9000)):
            copy = p.folder / f"flip{number}"
            shutil.copytree(whole, copy)
            path = copy / "log/000000.seg"
            data = bytearray(path.read_bytes())
            data[offset] ^= 1
            path.write_bytes(data)
            done = p.run("backup", "--verify", copy)
            check(done.returncode in (1, 3), offset, done)
            done = p.run("restore", copy, "--to", p.folder / "restored")
            check(done.returncode in (1, 3) and not (p.folder / "restored").exists(), offset, done)
        copy = p.folder / "short"
        shutil.copytree(whole, copy)
        os.truncate(copy / "log/000000.seg", 8192)
        check(p.run("restore", copy, "--to", p.folder / "restored").returncode in (1, 3))
        check(not (p.folder / "restored").exists())


@test
def a_backup_without_a_record_needs_a_word():
    """What 0.1 and 0.2 made, and what was copied by hand."""
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        (copy / "backup.json").unlink()
        broken(p, copy, "NoBackupRecord", code=3)
        to = p.folder / "restored"
        p.ok("restore", copy, "--to", to, "--unrecorded")
        check(p.json("roots", "--home", to) == p.json("roots"))


@test
def an_older_backup_is_known_by_a_later_checkpoint():
    with Place() as p:
        key, public, first = filled(p)
        copy = backed_up(p)
        p.ok("append", "note.x", "after the backup")
        second = p.folder / "second.note"
        p.ok("checkpoint", "--all", "--sign", key, "-o", second)
        p.ok("backup", "--verify", copy, "--checkpoint", first, "--all", "--key", public)
        done = p.expect(1, "backup", "--verify", copy, "--checkpoint", second, "--all", "--key", public)
        check(b"Truncated" in done.stdout, done)
        to = p.folder / "restored"
        done = p.expect(1, "restore", copy, "--to", to, "--checkpoint", second, "--all", "--key", public)
        check(b"nothing was restored" in done.stderr and not to.exists(), done)
        p.expect(3, "restore", copy, "--to", to, "--require", "anchored")
        check(not to.exists())
        done = p.expect(0, "restore", copy, "--to", to)
        check(b"nothing from outside shows that this backup is the newest" in done.stderr, done)
        # What goes on from there is another history, which the later checkpoint shows.
        p.ok("append", "note.x", "other")
        for number in range(3):
            p.ok("append", "note.x", f"other {number}", "--home", to)
        p.ok("checkpoint", "--all", "--home", to)
        done = p.expect(1, "verify", "--home", to, "--checkpoint", second, "--all", "--key", public)
        check(b"Forked" in done.stdout, done)


@test
def a_backup_of_a_later_version_is_refused():
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        for changes in ({"record": 2, "cortex": "0.9.1"}, {"format": 2, "cortex": "0.9.1"}):
            other = p.folder / "other"
            shutil.copytree(copy, other)
            record(other, **changes)
            for words in (["backup", "--verify", other], ["restore", other, "--to", p.folder / "restored"]):
                done = p.expect(3, *words)
                check(b"NewerFormat" in done.stderr and b"0.9.1" in done.stderr, done)
            check(not (p.folder / "restored").exists())
            shutil.rmtree(other)


@test
def what_is_erased_in_a_backup_does_not_come_back():
    with Place() as p:
        filled(p)
        p.ok("append", "note.secret", "an-erased-secret", "--committed")
        copy = backed_up(p)
        seq = json.loads(p.ok("log", "--last", 1, "--json", "--home", copy).splitlines()[-1])["seq"]
        p.ok("erase", seq, "--reason", "a test", "--home", copy)
        p.ok("backup", "--verify", copy)
        p.ok("restore", copy, "--to", p.folder / "restored")
        for folder in (copy, p.folder / "restored"):
            check([path for path in folder.rglob("*") if path.is_file() and b"an-erased-secret" in path.read_bytes()] == [])


# --- targets ------------------------------------------------------------------------------------------

@test
def a_restore_takes_only_a_new_or_empty_folder():
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        full, empty = p.folder / "full", p.folder / "empty"
        full.mkdir(), empty.mkdir()
        (full / "x").write_text("kept")
        p.expect(1, "restore", copy, "--to", full, err="not empty")
        check([path.name for path in full.iterdir()] == ["x"] and (full / "x").read_text() == "kept")
        (p.folder / "file").write_text("kept")
        p.expect(3, "restore", copy, "--to", p.folder / "file")
        p.expect(1, "restore", copy, "--to", p.home, err="not empty")
        p.expect(2, "restore", copy, "--to", p.home / "inside", err="InsideHome")
        p.expect(2, "restore", copy, "--to", copy / "inside", err="InsideHome")
        p.expect(2, "restore", copy)
        p.expect(2, "restore", copy, "--to", "")
        (full / "x").unlink()
        (full / ".restoring").mkdir()
        p.expect(1, "restore", copy, "--to", full, err="interrupted restore")
        p.ok("restore", copy, "--to", empty)
        p.expect(2, "backup", copy, "--checkpoint", "x", err="--verify")
        p.expect(2, "backup", "--verify", copy, "--home", p.home, err="either")


@test
def a_failed_restore_leaves_an_empty_folder_empty():
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        data = bytearray((copy / "log/000000.seg").read_bytes())
        data[4120] ^= 1
        (copy / "log/000000.seg").write_bytes(data)
        empty = p.folder / "empty"
        empty.mkdir()
        done = p.run("restore", copy, "--to", empty)
        check(done.returncode in (1, 3), done)
        check(list(empty.iterdir()) == [])


# --- hostile backups ----------------------------------------------------------------------------------

@test
def links_and_special_files_are_refused():
    with Place() as p:
        filled(p)
        whole = backed_up(p)
        secret = p.folder / "secret"
        secret.write_text("secret")

        def linked(name):
            def spoil(copy):
                (copy / name).unlink(missing_ok=True)
                (copy / name).symlink_to(secret)
            return spoil

        def log_is_a_link(copy):
            shutil.move(copy / "log", p.folder / "elsewhere")
            (copy / "log").symlink_to(p.folder / "elsewhere")

        def in_place_of(name):
            def spoil(copy):
                (copy / name).unlink()
                os.mkfifo(copy / name)
            return spoil

        spoils = [linked("log/000000.seg"), linked("log/000001.seg"), linked("log/lock"), linked("backup.json"),
                  linked("format"), linked(KEY_FILE), linked("config.toml"), linked("other"), log_is_a_link,
                  in_place_of("log/000000.seg"), in_place_of("backup.json"), in_place_of("format"),
                  lambda copy: os.mkfifo(copy / "keys/pipe")]
        for number, spoil in enumerate(spoils):
            copy = p.folder / f"case{number}"
            shutil.copytree(whole, copy)
            spoil(copy)
            broken(p, copy, "UnsafeFile")
        check(secret.read_text() == "secret")


@test
def names_that_act_on_a_terminal_are_shown_escaped():
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        (copy / "keys" / "\x1b[2J").symlink_to("/")
        done = p.run("backup", "--verify", copy)
        check(done.returncode == 1 and b"\x1b" not in done.stdout + done.stderr, done)
        check(b"\\u001b" in done.stdout, done)


@test
def files_that_are_too_large_are_refused_before_they_are_copied():
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        with open(copy / "log/000001.seg", "wb") as file:
            file.truncate(1 << 43)  # sparse
        done = p.run("restore", copy, "--to", p.folder / "restored")
        check(done.returncode == 1 and b"UnsafeFile" in done.stdout, done)
        check(not (p.folder / "restored").exists())
        os.truncate(copy / "log/000001.seg", 3 << 30)  # allowed, but it is no segment
        done = p.run("restore", copy, "--to", p.folder / "restored")
        check(done.returncode == 1 and b"LogDamaged" in done.stdout, done)
        (copy / "log/000001.seg").unlink()
        with open(copy / "backup.json", "ab") as file:
            file.truncate(1 << 40)
        broken(p, copy, "BadBackupRecord")


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@test
def what_does_not_fit_is_refused_before_it_is_copied():
    """Sparse segments, and a last one that looks well: only the free space stops a restore."""
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        count = shutil.disk_usage(p.folder).free // (6 << 30) + 2
        if count > 5000:
            skip("so much space is free here")
        for number in range(1, count):
            with open(copy / f"log/{number:06}.seg", "wb") as file:
                file.truncate(6 << 30)
        header = bytearray((copy / "log/000000.seg").read_bytes()[:4096])
        commits = json.loads((copy / "backup.json").read_text())["commits"] + 1
        header[12:16] = struct.pack(">I", count)
        header[32:48] = struct.pack(">QQ", commits, 65536)
        header[4092:] = struct.pack(">I", crc32c(header[:4092]))
        (copy / f"log/{count:06}.seg").write_bytes(header.ljust(65536, b"\0"))
        done = p.run("restore", copy, "--to", p.folder / "restored")
        check(done.returncode == 3 and b"NoSpace" in done.stderr, done)
        check(not (p.folder / "restored").exists())


@test
def unknown_files_are_left_out_and_counted():
    with Place() as p:
        filled(p)
        copy = backed_up(p)
        (copy / "token").write_text("planted")
        (copy / "tokens.json").write_text("{}")
        (copy / "keys/other").write_text("planted")
        (copy / KEY_FILE).write_text("planted, and not in the record")
        (copy / "config.toml").write_text('embedder = "planted"\n')
        said = p.json("backup", "--verify", copy)
        check(said["verdict"] == "holds" and said["backup"]["other_files"] == 3, said)
        to = p.folder / "restored"
        p.ok("restore", copy, "--to", to, "--with-config")
        check(sorted(path.name for path in to.iterdir()) == ["format", "keys", "log"])
        check([path for path in to.rglob("*") if path.is_file() and b"planted" in path.read_bytes()] == [])


# --- archives -----------------------------------------------------------------------------------------

def packed(p, copy, name="copy.tar", form=tarfile.USTAR_FORMAT, top="."):
    path = p.folder / name
    with tarfile.open(path, "w", format=form) as archive:
        archive.add(copy, arcname=top)
    return path


def no_traces(p):
    """Nothing is left in the folder for temporary files."""
    left = [path.name for path in (p.folder / "tmp").iterdir()]
    check(left == [], left)


@test
def an_archive_is_verified_and_restored():
    with Place() as p:
        _, public, note = filled(p)
        (p.folder / "tmp").mkdir()
        p.env["TMPDIR"] = str(p.folder / "tmp")
        copy = backed_up(p)
        for number, (form, top) in enumerate((form, top) for top in (".", "copy", "./a-name")
                                             for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
            path = packed(p, copy, form=form, top=top)
            said = p.json("backup", "--verify", path)
            check(said["verdict"] == "holds" and said["home"] == str(path), said)
            no_traces(p)
            to = p.folder / f"restored{number}"
            p.ok("restore", path, "--to", to, "--checkpoint", note, "--all", "--key", public)
            check(p.json("roots", "--home", to) == p.json("roots"))
            no_traces(p)
        p.ok("restore", "-", "--to", p.folder / "piped", input=path.read_bytes())
        check(p.json("roots", "--home", p.folder / "piped") == p.json("roots"))
        p.ok("backup", "--verify", "-", input=path.read_bytes())
        no_traces(p)


def member(name, kind=tarfile.REGTYPE, size=0, target=""):
    made = tarfile.TarInfo(name)
    made.type, made.size, made.linkname = kind, size, target
    return made


@test
def hostile_archives_are_refused():
    with Place() as p:
        filled(p)
        (p.folder / "tmp").mkdir()
        p.env["TMPDIR"] = str(p.folder / "tmp")
        copy = backed_up(p)
        secret = p.folder / "secret"
        secret.write_text("secret")
        first = (copy / "log/000000.seg").read_bytes()

        def hostile(name, *members):
            path = p.folder / name
            with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
                for one in members:
                    archive.addfile(one, io.BytesIO(b"x" * one.size) if one.size else None)
                archive.add(copy, arcname=".")
            return path

        cases = [
            hostile("up.tar", member("../escaped", size=1)),
            hostile("deep.tar", member("log/../../escaped", size=1)),
            hostile("absolute.tar", member(str(p.folder / "escaped"), size=1)),
            hostile("symlink.tar", member("log/000000.seg", tarfile.SYMTYPE, target=str(secret))),
            hostile("folder-link.tar", member("keys", tarfile.SYMTYPE, target=str(p.folder))),
            hostile("hardlink.tar", member("log/000001.seg", tarfile.LNKTYPE, target=str(secret))),
            hostile("device.tar", member("log/000000.seg", tarfile.CHRTYPE)),
            hostile("fifo.tar", member("log/000000.seg", tarfile.FIFOTYPE)),
            hostile("twice.tar", member("backup.json", size=3)),
            hostile("sparse.tar", member("log/000001.seg", tarfile.GNUTYPE_SPARSE)),
            hostile("unknown-kind.tar", member("log/000001.seg", b"Z")),
        ]
        huge = member("log/000001.seg")
        huge.size = 7 << 30
        (p.folder / "huge.tar").write_bytes(huge.tobuf(tarfile.USTAR_FORMAT) + b"\0" * 4096)
        cases.append(p.folder / "huge.tar")
        for path in cases:
            broken(p, path, "UnsafeFile")
            no_traces(p)
        check(not (p.folder / "escaped").exists() and secret.read_text() == "secret")
        check((copy / "log/000000.seg").read_bytes() == first)


@test
def damaged_archives_are_refused():
    with Place() as p:
        filled(p)
        (p.folder / "tmp").mkdir()
        p.env["TMPDIR"] = str(p.folder / "tmp")
        whole = packed(p, backed_up(p)).read_bytes()
        path = p.folder / "cut.tar"
        end = len(whole.rstrip(b"\0"))
        for size in (0, 1, 511, 512, 1000, 5000, end // 512 * 512):
            path.write_bytes(whole[:size])
            broken(p, path, "ArchiveDamaged")
            no_traces(p)
        path.write_bytes(b"\x28\xb5\x2f\xfd" + whole)  # compressed, or anything else
        broken(p, path, "ArchiveDamaged")
        path.write_bytes(b"\0" * 1024)  # an archive of nothing
        broken(p, path, "NoLog")


# --- interruptions ------------------------------------------------------------------------------------

def kill_each(p, under, *words):
    """Runs the command again and again, killed before each of its changes below `under`; yields after each
    kill, and at last when it was not killed."""
    if not os.path.exists(sibling("fault_injector.so")):
        skip("there is no fault_injector.so")
    number = 0
    while True:
        number += 1 if number < 30 else max(1, number // 10)
        done = p.run(*words, env={"LD_PRELOAD": sibling("fault_injector.so"), "CORTEX_KILL_AT": str(number),
                                  "CORTEX_FAULTS_UNDER": str(under)})
        check(done.returncode in (0, -9), words, number, done)
        yield done.returncode == -9
        if done.returncode == 0:
            return
        if under.exists():
            shutil.rmtree(under)


@test
def an_interrupted_restore_is_no_data_directory():
    with Place() as p:
        filled(p)
        copy, to = backed_up(p), p.folder / "restored"
        kills = finished = 0
        for was_killed in kill_each(p, to, "restore", copy, "--to", to):
            if was_killed and (to / "log").exists():
                finished += 1  # the last step was done: it was verified before
                check(p.json("roots", "--home", to) == p.json("roots"))
            elif was_killed:
                kills += 1
                if to.exists():
                    is_no_home(p, to)
                    if list(to.iterdir()):
                        p.expect(1, "restore", copy, "--to", to)
        check(kills >= 10, kills)
        check(p.json("roots", "--home", to) == p.json("roots"))


@test
def an_interrupted_backup_is_not_taken_for_a_whole_one():
    with Place() as p:
        filled(p)
        copy, kills = p.folder / "copy", 0
        for was_killed in kill_each(p, copy, "backup", copy):
            if was_killed and copy.exists():
                kills += 1
                done = p.run("backup", "--verify", copy)
                whole = (copy / "backup.json").exists()
                check(done.returncode == 0 if whole else done.returncode in (1, 3), done)
        check(kills >= 8, kills)
        p.ok("backup", "--verify", copy)


main()
