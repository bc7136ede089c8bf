#!/usr/bin/env python3
"""Commands that write while another process holds the home: through its socket, with the same
answers as without it.

    test_holder.py [PROGRAM] [WORD..]     PROGRAM defaults to $CORTEX_BIN; cortex-writer lies beside it

Closes with `N passed, N failed, N skipped`.
"""
import json
import re
import signal
import stat
import subprocess
import threading
import time

import kit
from kit import BIN, sibling, main, need_program, test

HOLDER = sibling("cortex-writer")
FACT = '{"statement":"sky is blue","subject":"sky","predicate":"is"}'
GREY = '{"statement":"sky is grey","subject":"sky","predicate":"is"}'


class Holder:
    """cortex-writer over a home; gone at the end of the with block, if not before."""

    def __init__(self, home, turn_ms=None):
        more = [] if turn_ms is None else [str(turn_ms)]
        self.process = subprocess.Popen([HOLDER, str(home), *more], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", line

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        return code

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            code = self.end()
            assert code == 0, f"the holder ended with {code}"


class Place(kit.Place):
    def size(self, actor="andrew"):
        """Entries of an actor's journal."""
        return self.json("roots", "--actor", actor)["actors"][0]["journal_size"]

    def entries(self):
        return [json.loads(line) for line in self.ok("log", "--all", "--json").splitlines()]


ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


class Scrubbed:
    """What a command said, without what is another each time: ids, times, hashes, folders."""

    def __init__(self, place):
        self.place, self.names = place, {}

    def name(self, found):
        return self.names.setdefault(found.group(), f"<{len(self.names)}>")

    def __call__(self, done):
        text = done.stdout.decode() + "\n" + done.stderr.decode()
        text = text.replace(str(self.place.folder), "FOLDER")
        text = ULID.sub(self.name, text)
        text = re.sub(r"\b[0-9a-f]{64,}\b", "HASH", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME", text)
        text = re.sub(r"[A-Za-z0-9+/]{43,}=*", "BASE64", text)
        text = re.sub(r'"(created_at|created_at_ns|created_ns|last_\w+|sum\w*)":"?-?\d+"?', "TIME", text)
        return done.returncode, text


def every_command(place):
    """Each command that writes, once or more; what each of them said."""
    said, scrub = [], Scrubbed(place)
    key = place.folder / "signing.key"
    verifier = place.ok("key", "new", key, "--name", "example.com/log")

    def run(*args, **more):
        done = place.run(*args, **more)
        code, text = scrub(done)
        said.append((" ".join(map(str, args[:2 if args[0] == "memory" else 1])), code, text))
        return done.stdout.decode().strip()

    first = run("memory", "write", "Fact", FACT, "--tag", "sky")
    second = run("memory", "write", "Fact", FACT)
    third = run("memory", "write", "Fact", GREY)
    run("memory", "write", "Fact", "{}")
    updated = run("memory", "update", first, GREY)
    run("memory", "update", first, GREY)  # a stale version
    run("memory", "link", second, "references", updated)
    run("memory", "link", second, "references", updated)  # it is so already
    run("memory", "unlink", second, "references", updated, "--reason", "no more")
    run("memory", "embed", updated, "[0.5,0.25,1]", "--model", "m")
    run("memory", "attest", "get home", "success", updated)
    run("memory", "attest", "get home", "success")
    run("memory", "compact", "intent", "step", updated)
    run("memory", "find", "--tag", "sky", "--limit", "5", "--late", "late predicate")
    run("snapshot")
    place.ok("scope", "make", "--sign", key, "--to", "bob", "--tag", "sky", "-o",
             place.folder / "bob.scope")
    scope = ("--scope", place.folder / "bob.scope", "--key", f"andrew={verifier}")
    run("memory", "tombstone", third, "--reason", "done")
    run("memory", "tombstone", third, "--reason", "done")
    run("append", "note.made", "some text")
    secret = run("append", "note.secret", "a secret to be erased", "--committed")
    run("append", "Not A Kind", "some text")
    run("append", "note.file", "-", input=b"x" * (1 << 21))
    run("snapshot")
    run("snapshot", "make", "--reason", "again")
    run("snapshot", "seal", "0", "--sign", key)
    run("snapshot", "seal", "0", "--sign", key)  # sealed already
    run("snapshot", "drop", "1")
    run("snapshot", "drop", "1")  # gone
    run("erase", second, "--reason", "asked for")
    run("erase", "9999", "--reason", "not there")
    run("erase", "0", "--reason", "not committed")
    run("erase", secret, "--reason", "asked for")
    run("memory", "get", updated, *scope)
    run("memory", "get", third, *scope)  # journals the violation
    run("prove", updated, "--fresh", "-o", place.folder / "proof.cxp")
    run("checkpoint", "--sign", key)
    run("export", "receipt", "0", "--sign", key, "-o", place.folder / "receipt")
    run("export", "tlog-proof", "0", "--sign", key, "-o", place.folder / "tlog-proof")
    run("memory", "write", "Fact", FACT, "--actor", "someone else")
    run("memory", "update", first, FACT, "--actor", "nobody")
    steps = b'{"op":"raw","kind":"raw","payload":"abcd"}\n{"op":"tombstone"}\n'
    run("apply", "-", input=steps)
    run("roots", "--json")
    run("log")
    return said


@test
def every_writing_command_answers_the_same_through_the_writer_process():
    with Place() as alone, Place() as held:
        expected = every_command(alone)
        with Holder(held.home):
            found = every_command(held)
            assert stat.S_ISSOCK((held.home / "socket").stat().st_mode)
        assert len(expected) == len(found)
        for left, right in zip(expected, found):
            assert left == right, f"alone:\n{left}\nheld:\n{right}"
        worked = [command for command, code, _ in found if code == 0]
        assert len(worked) >= 24, worked  # most of them did something
        assert not (held.home / "socket").exists()
        for place in (alone, held):
            place.expect(0, "verify", "--home", place.home)


@test
def writes_through_the_writer_process_are_visible_to_all():
    with Place() as place:
        with Holder(place.home) as holder:
            uri = place.ok("memory", "write", "Fact", FACT)
            assert "sky is blue" in place.ok("memory", "get", uri)
            holder.order("append local")
            assert place.size("holder") == 1
            place.ok("append", "note.made", "x")
            before = place.ok("roots", "--json")
        assert place.ok("roots", "--json") == before
        assert [entry["kind"] for entry in place.entries()] == ["write", "note.made"]
        place.expect(0, "verify", "--home", place.home)


@test
def many_commands_write_at_once_through_the_writer_process():
    with Place() as place, Holder(place.home) as holder:
        codes = []

        def write(index):
            for turn in range(3):
                codes.append(place.run("append", "note.made", f"{index} {turn}").returncode)

        threads = [threading.Thread(target=write, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        for turn in range(10):
            holder.order(f"append {turn}")
        for thread in threads:
            thread.join()
        assert codes == [0] * 24, codes
        assert place.size() == 24
        assert place.size("holder") == 10


@test
def a_command_waits_for_the_transaction_of_the_writer_process():
    with Place() as place, Holder(place.home) as holder:
        holder.order("turn")
        command = subprocess.Popen([BIN, "append", "note.made", "x"], env=place.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        assert command.poll() is None
        holder.order("give")
        command.communicate(timeout=60)
        assert command.returncode == 0


@test
def a_killed_or_stopped_command_blocks_no_other():
    with Place() as place, Holder(place.home, 1500) as holder:
        for how in (signal.SIGKILL, signal.SIGSTOP) * 3:
            command = subprocess.Popen([BIN, "apply", "-"], env=place.env, stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            lines = b'{"op":"raw","kind":"raw","payload":"abcd"}\n' * 2000
            feeder = threading.Thread(target=feed, args=(command, lines))
            feeder.start()
            time.sleep(0.3)
            command.send_signal(how)
            started = time.monotonic()
            holder.order("append here")
            place.ok("append", "note.made", "there")
            assert time.monotonic() - started < 20
            command.kill()
            feeder.join()
            command.wait()
        assert place.size("holder") == 6


def feed(command, lines):
    try:
        command.stdin.write(lines)
        command.stdin.close()
    except OSError:
        pass


@test
def after_the_writer_process_is_killed_the_data_directory_opens():
    with Place() as place:
        holder = Holder(place.home)
        place.ok("append", "note.made", "through it")
        holder.kill()
        assert (place.home / "socket").exists()  # stale
        place.ok("append", "note.made", "alone")
        with Holder(place.home):
            place.ok("append", "note.made", "through the next")
        assert len(place.entries()) == 3
        place.expect(0, "verify", "--home", place.home)


@test
def a_command_reports_the_death_of_the_writer_process():
    with Place() as place:
        holder = Holder(place.home)
        holder.order("turn")
        command = subprocess.Popen([BIN, "append", "note.made", "x"], env=place.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        holder.kill()
        out, err = command.communicate(timeout=60)
        assert command.returncode == 3, (command.returncode, out, err)
        assert b"HolderGone" in err and str(holder.pid).encode() in err, err
        assert b"nothing was done" in err, err
        place.ok("append", "note.made", "x")
        assert len(place.entries()) == 1


@test
def a_command_waits_for_a_writer_process_without_a_socket():
    with Place() as place, Holder(place.home) as holder:
        holder.order("stop")
        assert not (place.home / "socket").exists()
        started = time.monotonic()
        done = place.expect(3, "append", "note.made", "x")
        assert b"Locked" in done.stderr and str(holder.pid).encode() in done.stderr
        assert time.monotonic() - started > 3
        command = subprocess.Popen([BIN, "append", "note.made", "x"], env=place.env,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        holder.order("serve")
        command.communicate(timeout=60)
        assert command.returncode == 0


@test
def rebuild_names_the_process_that_has_the_data_directory():
    with Place() as place, Holder(place.home) as holder:
        done = place.expect(3, "tables", "rebuild")
        assert b"Locked" in done.stderr and str(holder.pid).encode() in done.stderr
        place.ok("append", "note.made", "x")
        copy = place.folder / "copy"
        place.ok("backup", copy)
        place.expect(0, "verify", "--home", copy)


@test
def two_processes_do_not_sign_at_once():
    with Place() as place, Holder(place.home):
        key = place.folder / "signing.key"
        place.ok("key", "new", key, "--name", "example.com/log")
        for index in range(3):
            place.ok("append", "note.made", str(index))
        commands = [subprocess.Popen([BIN, "checkpoint", "--sign", str(key)], env=place.env,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    for _ in range(4)]
        notes = [command.communicate(timeout=60)[0] for command in commands]
        assert all(command.returncode == 0 for command in commands)
        assert len(set(notes)) == 1  # Ed25519 of the same text


need_program(HOLDER)
@test
def the_home_root_is_recorded_by_the_owner():
    """checkpoint --all while another process owns the data directory: the owner records, once."""
    with Place() as p:
        p.ok("memory", "write", "Fact", FACT, "--actor", "ann")
        with Holder(p.home):
            p.ok("memory", "write", "Fact", FACT, "--actor", "bob")
            made = p.json("checkpoint", "--all", "-o", "note")
            assert made["size"] == 1 and made["home_root"]["entries"] == 2, made
            assert p.json("checkpoint", "--all")["size"] == 1
            p.ok("memory", "write", "Fact", GREY, "--actor", "ann")
            assert p.json("checkpoint", "--all")["home_root"]["seq"] == 1
            p.expect(2, "memory", "write", "Fact", FACT, "--actor", "home:root", err="reserved")
        done = p.json("verify", "--home", p.home, "--checkpoint", "note")
        assert done["verdict"] == "holds" and done["anchored"], done
        assert done["home_root"]["covered"] == 3, done


main()
