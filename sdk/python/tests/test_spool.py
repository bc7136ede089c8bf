#!/usr/bin/env python3
"""The spool alone: what a process recorded is there after it ended in any way, once, and bounded."""
import os
import shutil
import sys
import threading
import zlib

from sdk_kit import Folder, check, main, test
from cortex_recorder import _spool
from cortex_recorder._spool import Queue, Spool


def open_spool(folder, limit=64 << 20, fsync="never"):
    return Spool(folder / "s", limit, fsync)


def read_all(part):
    found = []
    while not part.empty:
        for line in part.read(100, 1 << 16):
            found.append(line.data)
            part.ack(line.place)
    return found


def in_child(work):
    """Runs it in a process that ends at once, as one that is killed does."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    check(os.waitpid(child, 0)[1] == 0, "the child failed")


@test
def lines_come_back_in_order_over_many_segments():
    with Folder() as folder:
        before, _spool.SEGMENT_BYTES = _spool.SEGMENT_BYTES, 4096
        try:
            spool = open_spool(folder)
            lines = [b'{"n":%d,"x":"%s"}' % (i, b"x" * (i % 700)) for i in range(300)]
            check(all(spool.append(line) for line in lines))
            check(len(list((folder / "s").glob("*.seg"))) > 10)
            check(read_all(spool.part) == lines)
            check(len(list((folder / "s").glob("*.seg"))) == 1)  # S3
            check(spool.pending_bytes() == 0, spool.pending_bytes())
            spool.close()
            check(list((folder / "s").iterdir()) == [])
        finally:
            _spool.SEGMENT_BYTES = before


@test
def a_step_within_an_append_is_written_after_it():
    """As a signal handler does it: at the worst places, where a part or a segment is begun."""
    with Folder() as folder:
        spool = open_spool(folder)
        start, roll = spool._start, spool._roll

        def interrupted(call, line):
            def run(*given):
                check(spool.append(line))
                return call(*given)
            return run
        spool._start = interrupted(start, b'"in start"')
        spool._roll = interrupted(roll, b'"in roll"')
        check(spool.append(b'"first"'))
        spool._start, spool._roll = start, roll
        check(len(list((folder / "s").glob("*.lock"))) == 1 and spool.appended == 3, spool.appended)
        check(read_all(spool.part) == [b'"first"', b'"in start"', b'"in roll"'])

        def failing(*given):
            spool.append(b'"in an append that fails"')
            raise KeyboardInterrupt
        spool._append = failing
        try:
            spool.append(b'"never"')
            check(False, "nothing was raised")
        except KeyboardInterrupt:
            del spool._append
        spool.settle()
        check(read_all(spool.part) == [b'"in an append that fails"'] and spool.lost == 0)
        spool.close()


@test
def a_step_within_an_append_that_cannot_be_written_is_counted():
    with Folder() as folder:
        spool = open_spool(folder, limit=100)
        start = spool._start

        def interrupted():
            check(spool.append(b'"' + b"x" * 200 + b'"'))
            return start()
        spool._start = interrupted
        check(spool.append(b'"short"') and spool.lost == 1 and "full" in spool.why_not, spool.lost)
        spool.close()


@test
def what_a_dead_process_left_is_adopted_once():
    with Folder() as folder:
        def leave():
            spool = open_spool(folder)
            for i in range(10):
                spool.append(b'{"n":%d}' % i)
            part = spool.part
            for line in part.read(4, 1 << 20):
                part.ack(line.place)
        in_child(leave)
        first, second = open_spool(folder), open_spool(folder)
        check(first.adopt() == 1 and second.adopt() == 0 and first.adopt() == 0)
        check(read_all(first.adopted[0]) == [b'{"n":%d}' % i for i in range(4, 10)])
        first.drop_delivered()
        check(list((folder / "s").iterdir()) == [])
        first.close()
        second.close()


@test
def a_living_process_keeps_its_part():
    with Folder() as folder:
        own = open_spool(folder)
        own.append(b"{}")
        other = open_spool(folder)
        check(other.adopt() == 0)
        # Nor is it given up by a child that was forked, whatever the child does.
        in_child(own.forget)
        check(other.adopt() == 0)
        own.close()  # not delivered: it is left
        check(other.adopt() == 1 and read_all(other.adopted[0]) == [b"{}"])
        other.close()


@test
def a_torn_tail_is_left_out_and_a_damaged_line_is_counted():
    with Folder() as folder:
        def leave():
            spool = open_spool(folder)
            for i in range(3):
                spool.append(b'{"n":%d}' % i)
        in_child(leave)
        path, = (folder / "s").glob("*.seg")
        data = bytearray(path.read_bytes())
        for cut in range(len(data)):
            path.write_bytes(data[:cut])
            spool = open_spool(folder)
            spool.adopt()
            parts = spool.adopted
            whole = bytes(data[:cut]).count(b"\n")
            found = read_all(parts[0]) if parts else []
            check(found == [b'{"n":%d}' % i for i in range(whole)], cut, found)
            torn = cut > 0 and data[cut - 1:cut] != b"\n"
            check(not parts or parts[0].torn == (1 if torn else 0), cut)
            check(len(parts) == (cut > 0), cut)
            spool.drop_delivered()
            spool.close()
            in_child(leave)  # another name; the old files are gone
            path, = (folder / "s").glob("*.seg")
        path.write_bytes(data)
        for at in range(len(data)):
            flipped = bytearray(data)
            flipped[at] ^= 1
            if data[at:at + 1] == b"\n":
                continue  # two lines become one, which the next test of its CRC refuses
            path.write_bytes(flipped)
            spool = open_spool(folder)
            spool.adopt()
            found = read_all(spool.adopted[0])
            check(len(found) == 2 and spool.adopted[0].damaged >= 1, at, found)
            check(set(found) < {b'{"n":0}', b'{"n":1}', b'{"n":2}'}, at, found)
            for file in (folder / "s").glob("*"):
                if file.suffix in (".ack", ".lock"):
                    file.unlink()
            spool.close()
            in_child(leave)
            for file in (folder / "s").glob("*.seg"):
                path = file


@test
def a_full_spool_refuses_and_goes_on_when_there_is_space():
    with Folder() as folder:
        spool = open_spool(folder, limit=4000)
        line = b'{"x":"%s"}' % (b"x" * 500)
        taken = 0
        while spool.append(line):
            taken += 1
        check(taken == 7 and "full" in spool.why_not, taken, spool.why_not)
        first, = spool.part.read(1, 1)
        spool.part.ack(first.place)
        check(spool.append(line) and not spool.append(line))
        spool.close()


@test
def a_disk_that_takes_half_a_line_gets_it_back():
    with Folder() as folder:
        spool = open_spool(folder)
        spool.append(b'{"n":0}')
        real = os.write
        os.write = lambda file, data: real(file, data[:5])
        try:
            check(not spool.append(b'{"n":1}') and "space" in spool.why_not, spool.why_not)
        finally:
            os.write = real
        check(spool.append(b'{"n":2}'))
        check(read_all(spool.part) == [b'{"n":0}', b'{"n":2}'])
        spool.close()


@test
def every_policy_of_fsync_syncs_as_it_says():
    calls = []
    real, _spool._sync_file = _spool._sync_file, calls.append
    try:
        for fsync, after_append, after_sync in (("always", 1, 1), ("interval", 0, 1), ("never", 0, 0)):
            with Folder() as folder:
                spool = open_spool(folder, fsync=fsync)
                calls.clear()
                spool.append(b"{}")
                check(len(calls) == after_append, fsync, calls)
                spool.sync()
                check(len(calls) == after_sync, fsync, calls)
                spool.sync()
                check(len(calls) == after_sync, fsync, calls)
                spool.close()
    finally:
        _spool._sync_file = real


@test
def many_threads_write_whole_lines():
    with Folder() as folder:
        spool = open_spool(folder)

        def write(who):
            for i in range(500):
                spool.append(b'{"n":"%d-%d","x":"%s"}' % (who, i, b"y" * (i % 90)))
        threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        found = []
        while any(t.is_alive() for t in threads) or not spool.part.empty:
            if spool.part is not None:
                for line in spool.part.read(50, 1 << 14):
                    found.append(line.data)
                    spool.part.ack(line.place)
        check(len(found) == 3000 == len(set(found)) == spool.appended, len(found))
        check(spool.part.damaged == spool.part.torn == 0)
        spool.close()


@test
def a_folder_of_another_user_or_a_link_is_refused():
    with Folder() as folder:
        (folder / "real").mkdir()
        (folder / "s").symlink_to(folder / "real")
        try:
            open_spool(folder)
        except OSError as error:
            check("folder" in str(error), error)
        else:
            check(False, "a link was taken")


@test
def a_segment_that_was_read_to_its_end_before_the_next_is_no_damage():
    with Folder() as folder:
        before, _spool.SEGMENT_BYTES = _spool.SEGMENT_BYTES, 100
        try:
            spool = open_spool(folder)
            for n in range(20):
                line = b'{"n":"%s"}' % (b"%d" % n * 30)
                spool.append(line)
                check(read_all(spool.part) == [line])
            check(spool.part.damaged == 0)
            spool.close()
        finally:
            _spool.SEGMENT_BYTES = before


@test
def a_folder_that_is_removed_is_counted_and_made_again():
    with Folder() as folder:
        spool = open_spool(folder)
        spool.append(b'{"n":0}')
        shutil.rmtree(folder / "s")
        check(spool.part.read(10, 1 << 16) == [] and spool.part.damaged == 1 and spool.part.empty)
        check(spool.append(b'{"n":1}'), spool.why_not)
        check(read_all(spool.part) == [b'{"n":1}'])
        spool.close()


@test
def a_step_recorded_within_the_recording_of_another_waits_for_nothing():
    # As a signal handler or a finalizer does, in the same thread.
    with Folder() as folder:
        spool = open_spool(folder)
        real, inner = os.write, [b'{"n":"inner"}']

        def write(file, data):
            written = real(file, data)
            if inner:
                spool.append(inner.pop())
            return written
        os.write = write
        try:
            check(spool.append(b'{"n":"outer"}'))
        finally:
            os.write = real
        check(read_all(spool.part) == [b'{"n":"outer"}', b'{"n":"inner"}'] and spool.part.empty)
        spool.close()


@test
def what_dead_processes_left_counts_for_the_bound():
    with Folder() as folder:
        line = b'{"x":"%s"}' % (b"x" * 500)

        def leave():
            spool = open_spool(folder, limit=4000)
            while spool.append(line):
                pass
        in_child(leave)
        spool = open_spool(folder, limit=4000)
        spool.adopt()
        check(not spool.append(line) and "full" in spool.why_not)
        read_all(spool.adopted[0])
        spool.drop_delivered()
        check(spool.append(line))
        spool.close()


@test
def the_queue_in_memory_is_bounded_and_ordered():
    queue = Queue(1000)
    taken = 0
    while queue.append(b"x" * 100):
        taken += 1
    check(taken == 10 and "full" in queue.why_not)
    lines = queue.part.read(3, 1 << 20)
    check([line.place.start for line in lines] == [0, 1, 2])
    queue.part.ack(lines[1].place)
    check(queue.pending_bytes() == 800 and queue.append(b"y"))
    check(queue.part.read(1, 1)[0].place.start == 2)


if __name__ == "__main__":
    check(zlib.crc32(b"123456789") == 0xCBF43926)
    sys.exit(main())
