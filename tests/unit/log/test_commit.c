/*
 * test_commit.c - submitting and waiting: order, groups shared by many threads, the change of
 * segments, a full disk, and what a failure leaves.
 */
#include "log/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

static cx_log *fresh(char folder[FOLDER_PATH_SIZE], const cx_log_options *options)
{
    cx_log *log = NULL;
    cx_err err;
    folder_fresh(folder, "commit");
    CHECK_STATUS(cx_log_create(folder, options, &err), &err);
    CHECK_STATUS(cx_log_open(folder, options, &log, NULL, &err), &err);
    return log;
}

CX_TEST(commit_is_one_group_for_all_who_submitted)
{
    char folder[FOLDER_PATH_SIZE];
    const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
    const size_t sizes[3][2] = {{1, 0}, {100, 7}, {1000, 0}};
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    uint64_t commit, other;
    REQUIRE(log != NULL);
    log_model_init(&m);
    CHECK_INT(cx_log_durable(log), 0);
    CHECK_INT(cx_log_wait(log, 0, &err).code, CX_E_USAGE); /* nothing was submitted */
    for (uint64_t round = 0; round < 3; round++) {
        CHECK_STATUS(log_model_submit(&m, log, sizes, 3, &commit, &err), &err);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &other, &err), &err);
        CHECK_INT(commit, round);
        CHECK_INT(other, round);
        CHECK_INT(cx_log_durable(log), round);
        CHECK_INT(cx_log_wait(log, round + 1, &err).code, CX_E_USAGE);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, other, &err), &err);
        CHECK_INT(cx_log_durable(log), round + 1);
        log_model_ack(&m, commit);
    }
    CHECK(log_model_check(&m, log, 3, true));
    /* What no call waited for is not on the disk, and may be lost. */
    CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
    cx_log_close(log);
    log_model_lose(&m, 3);
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
    CHECK(log_model_check(&m, log, 3, true));
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

/* What was started is a commit of its own; the first who waits finishes it, for whatever. */
CX_TEST(commit_that_was_started_is_finished_by_who_waits)
{
    char folder[FOLDER_PATH_SIZE];
    const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
    const size_t sizes[3][2] = {{1, 0}, {100, 7}, {20000, 0}};
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    uint64_t first, second, third;
    REQUIRE(log != NULL);
    log_model_init(&m);
    cx_log_start(log); /* nothing is there */
    CHECK_INT(cx_log_wait(log, 0, &err).code, CX_E_USAGE);
    for (uint64_t round = 0; round < 30; round++) { /* through some segments */
        CHECK_STATUS(log_model_submit(&m, log, sizes, 3, &first, &err), &err);
        cx_log_start(log);
        CHECK_INT(cx_log_durable(log), 2 * round);
        CHECK_INT(cx_log_wait(log, first + 1, &err).code, CX_E_USAGE);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 2, &second, &err), &err);
        cx_log_start(log); /* one is on its way */
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &third, &err), &err);
        CHECK_INT(first, 2 * round);
        CHECK_INT(second, first + 1);
        CHECK_INT(third, second);
        CHECK_STATUS(cx_log_wait(log, round % 2 == 0 ? second : first, &err), &err);
        CHECK_INT(cx_log_durable(log), first + 1 + (round % 2 == 0));
        CHECK_STATUS(cx_log_wait(log, second, &err), &err);
        log_model_ack(&m, second);
    }
    CHECK(log_model_check(&m, log, 60, true));
    /* Closed without waiting: it may be there. */
    CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &first, &err), &err);
    cx_log_start(log);
    cx_log_close(log);
    cx_log_opened opened;
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, &opened, &err)));
    CHECK_INT(opened.commit_count, 61);
    log_model_ack(&m, first);
    CHECK(log_model_check(&m, log, 61, true));
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

/* A group that cannot be written is told to who waits, and to who submits. */
CX_TEST(commit_that_cannot_be_started_is_told)
{
    char folder[FOLDER_PATH_SIZE];
    fault_io files;
    fault_io_init(&files, cx_io_system(), FAULT_WRITE, FAULT_NEVER, false);
    const cx_log_options options = {.io = &files.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
    const cx_log_frame frame = {cx_bytes_from("x", 1), {NULL, 0}};
    cx_log *log = fresh(folder, &options);
    cx_err err;
    uint64_t commit;
    REQUIRE(log != NULL);
    CHECK_STATUS(cx_log_submit(log, &frame, 1, NULL, &commit, &err), &err);
    files.fail_at = atomic_load(&files.calls) + 1;
    cx_log_start(log);
    CHECK_INT(cx_log_durable(log), 0);
    CHECK_INT(cx_log_wait(log, commit, &err).code, CX_E_IO);
    CHECK_STR(cx_str_z(err.tag), "Poisoned");
    CHECK_INT(cx_log_submit(log, &frame, 1, NULL, &commit, &err).code, CX_E_IO);
    cx_log_start(log);
    cx_log_close(log);
    folder_remove(folder);
}

/* Nothing is left of what was given up, be it started or not; what was on the disk stays. */
CX_TEST(commit_that_is_given_up_leaves_nothing)
{
    for (int started = 0; started < 2; started++) {
        char folder[FOLDER_PATH_SIZE];
        const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
        const size_t sizes[2][2] = {{100, 7}, {5000, 30}};
        cx_log *log = fresh(folder, &small);
        log_model m;
        cx_err err, cause;
        uint64_t commit, later;
        REQUIRE(log != NULL);
        log_model_init(&m);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 2, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&m, commit);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 2, &commit, &err), &err);
        if (started)
            cx_log_start(log);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &later, &err), &err);
        (void)cx_fail(&cause, CX_E_FORMAT, "no more");
        cx_log_discard_pending(log, &cause);
        CHECK_INT(cx_log_durable(log), 1);
        CHECK_INT(cx_log_wait(log, commit, &err).code, CX_E_IO);
        CHECK_STR(cx_str_z(err.tag), "Poisoned");
        CHECK(strstr(err.message, "no more") != NULL);
        CHECK_INT(cx_log_wait(log, later, &err).code, CX_E_IO);
        cx_log_start(log);
        cx_log_close(log);
        log_model_lose(&m, 1);
        cx_log_opened opened;
        REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, &opened, &err)));
        CHECK_INT(opened.commit_count, 1);
        CHECK_INT(opened.torn_bytes, 0);
        CHECK(log_model_check(&m, log, 1, true));
        cx_log_close(log);
        log_model_done(&m);
        folder_remove(folder);
    }
}

CX_TEST(commit_limits_are_checked_before_anything_is_taken)
{
    char folder[FOLDER_PATH_SIZE];
    const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
    cx_log *log = fresh(folder, &small);
    cx_err err;
    uint64_t commit = 77;
    REQUIRE(log != NULL);
    uint8_t *large = calloc(1, (size_t)CX_LOG_GUARDED_MAX + 1);
    REQUIRE(large != NULL);
    cx_log_frame frames[2] = {{cx_bytes_from("x", 1), {NULL, 0}}, {{NULL, 0}, {NULL, 0}}};
    CHECK_INT(cx_log_submit(log, frames, 0, NULL, &commit, &err).code, CX_E_USAGE);
    CHECK_INT(cx_log_submit(log, frames, 2, NULL, &commit, &err).code, CX_E_USAGE);
    frames[1].guarded = cx_bytes_from(large, (size_t)CX_LOG_GUARDED_MAX + 1);
    CHECK_INT(cx_log_submit(log, frames, 2, NULL, &commit, &err).code, CX_E_LIMIT);
    CHECK_INT(commit, 77);
    CHECK_INT(cx_log_wait(log, 0, &err).code, CX_E_USAGE);
    frames[1].guarded.size--; /* the largest frame there is */
    cx_log_place places[2];
    CHECK_STATUS(cx_log_submit(log, frames, 2, places, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    CHECK_INT(places[0].segment, 1);
    CHECK_INT(places[1].segment, 1);
    cx_buf buf;
    cx_log_frame got;
    bool erased;
    cx_buf_init(&buf, cx_alloc_default());
    CHECK_STATUS(cx_log_read(log, places[1], &buf, &got, &erased, &err), &err);
    CHECK_INT(got.guarded.size, CX_LOG_GUARDED_MAX);
    CHECK(memcmp(got.guarded.data, large, got.guarded.size) == 0);
    cx_buf_done(&buf);
    free(large);
    cx_log_close(log);
    folder_remove(folder);
}

/* A group fills a segment to its last byte, or is one word too long. */
CX_TEST(commit_fills_a_segment_to_the_end)
{
    static const size_t room = CX_LOG_SEGMENT_MIN - 4096 - 32 - 16;
    for (size_t extra = 0; extra < 2; extra++) {
        char folder[FOLDER_PATH_SIZE];
        const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
        const size_t sizes[1][2] = {{room + extra, 0}}, one[1][2] = {{1, 0}};
        cx_log *log = fresh(folder, &small);
        log_model m;
        cx_err err;
        uint64_t commit;
        REQUIRE(log != NULL);
        log_model_init(&m);
        for (int i = 0; i < 3; i++) {
            CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
            CHECK_STATUS(log_model_submit(&m, log, one, 1, &commit, &err), &err);
        }
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&m, commit);
        CHECK_INT(m.frames.items[0].place.segment, extra);
        cx_log_close(log);
        cx_log_opened opened;
        REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, &opened, &err)));
        CHECK_INT(opened.commit_count, commit + 1);
        CHECK(log_model_check(&m, log, commit + 1, true));
        cx_log_close(log);
        log_model_done(&m);
        folder_remove(folder);
    }
}

/* --- threads ------------------------------------------------------------------------------- */

enum { WRITERS = 8, EACH = 120 };

typedef struct crowd {
    cx_log *log;
    cx_log *reader; /* of the same folder, as another process has it */
    cx_log_place places[WRITERS][EACH];
    uint64_t commits[WRITERS][EACH];
    atomic_uint failures;
    atomic_uint reads[2];
} crowd;

static bool start(cx_log *log)
{
    cx_log_start(log);
    return false;
}

static void one_writer(crowd *all, unsigned index)
{
    uint8_t bytes[3000];
    cx_buf buf;
    cx_buf_init(&buf, cx_alloc_default());
    for (unsigned i = 0; i < EACH; i++) {
        cx_err err;
        cx_log_frame got;
        bool erased;
        size_t size = 8 + (index * 37 + i * 101) % 2900;
        memset(bytes, (int)(index * 16 + i), size);
        bytes[0] = (uint8_t)index;
        bytes[1] = (uint8_t)i;
        cx_log_frame frame = {cx_bytes_from(bytes, size), cx_bytes_from(bytes, i % 3)};
        if (cx_failed(cx_log_submit(all->log, &frame, 1, &all->places[index][i],
                                    &all->commits[index][i], &err)) ||
            (i % 2 == 0 && start(all->log)) ||
            cx_failed(cx_log_wait(all->log, all->commits[index][i], &err)) ||
            cx_log_durable(all->log) <= all->commits[index][i]) {
            atomic_fetch_add(&all->failures, 1);
            break;
        }
        unsigned back = i / 2;
        if (cx_failed(cx_log_read(all->log, all->places[index][back], &buf, &got, &erased, &err)) ||
            got.guarded.data[0] != index || got.guarded.data[1] != back)
            atomic_fetch_add(&all->failures, 1);
        if (i % 16 == 15 && cx_failed(cx_log_erase(all->log, all->places[index][back], &err)))
            atomic_fetch_add(&all->failures, 1);
    }
    cx_buf_done(&buf);
}

/* Follows the writers from the first commit on. */
static void one_reader(crowd *all, unsigned which)
{
    cx_log_scan *scan;
    cx_err err;
    cx_log *log = which == 0 ? all->log : all->reader;
    if (cx_failed(cx_log_scan_begin(log, 0, &scan, &err))) {
        atomic_fetch_add(&all->failures, 1);
        return;
    }
    unsigned frames = 0;
    uint64_t next = 0;
    while (frames < WRITERS * EACH && atomic_load(&all->failures) == 0) {
        cx_log_commit commit;
        bool end;
        cx_status status = cx_log_scan_next(scan, &commit, &end, &err);
        /* Readers are told of a commit on the disk a moment before the writer's own count. */
        if (!cx_failed(status) && !end && commit.number > cx_log_durable(all->log))
            status = cx_fail(&err, CX_E_CONFLICT, "shown before it was durable");
        if (cx_failed(status) || (!end && commit.number != next++)) {
            cx_test_fail(__FILE__, __LINE__, "reader: %s", err.message);
            atomic_fetch_add(&all->failures, 1);
        }
        frames += end || cx_failed(status) ? 0 : (unsigned)commit.count;
    }
    atomic_store(&all->reads[which], frames);
    cx_log_scan_end(scan);
}

static void one_of_the_crowd(void *arg, unsigned index)
{
    if (index >= WRITERS)
        one_reader(arg, index - WRITERS);
    else
        one_writer(arg, index);
}

static void check_crowd(const crowd *all, cx_log *log)
{
    cx_log_scan *scan;
    cx_err err;
    unsigned next[WRITERS] = {0};
    REQUIRE(!cx_failed(cx_log_scan_begin(log, 0, &scan, &err)));
    for (;;) {
        cx_log_commit commit;
        bool end = true;
        CHECK_STATUS(cx_log_scan_next(scan, &commit, &end, &err), &err);
        if (end)
            break;
        for (size_t i = 0; i < commit.count; i++) {
            const uint8_t *bytes = commit.items[i].frame.guarded.data;
            unsigned who = bytes[0], which = bytes[1];
            CHECK(who < WRITERS && which == next[who]++); /* each one's frames in order */
            if (who < WRITERS && which < EACH)
                CHECK(all->commits[who][which] == commit.number &&
                      all->places[who][which].offset == commit.items[i].place.offset &&
                      all->places[who][which].segment == commit.items[i].place.segment);
        }
    }
    for (unsigned i = 0; i < WRITERS; i++)
        CHECK_INT(next[i], EACH);
    cx_log_scan_end(scan);
}

CX_TEST(commit_by_many_threads_loses_nothing)
{
    static crowd all;
    char folder[FOLDER_PATH_SIZE];
    const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
    cx_err err;
    all = (crowd){.log = fresh(folder, &small)};
    REQUIRE(all.log != NULL);
    const cx_log_options reading = {.read_only = true};
    REQUIRE(!cx_failed(cx_log_open(folder, &reading, &all.reader, NULL, &err)));
    cx_thread_team(WRITERS + 2, one_of_the_crowd, &all);
    CHECK_INT(atomic_load(&all.failures), 0);
    CHECK_INT(atomic_load(&all.reads[0]), WRITERS * EACH);
    CHECK_INT(atomic_load(&all.reads[1]), WRITERS * EACH);
    cx_log_close(all.reader);
    check_crowd(&all, all.log);
    uint64_t durable = cx_log_durable(all.log);
    CHECK(durable < WRITERS * EACH); /* some shared a sync */
    cx_log_close(all.log);
    cx_log_opened opened;
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &all.log, &opened, &err)));
    CHECK_INT(opened.commit_count, durable);
    check_crowd(&all, all.log);
    cx_log_close(all.log);
    folder_remove(folder);
}

/* Segments large enough to be prepared by a thread while the one before fills. */
CX_TEST(commit_goes_on_in_segments_prepared_ahead)
{
    char folder[FOLDER_PATH_SIZE];
    const cx_log_options options = {.segment_bytes = 4 << 20};
    const size_t sizes[1][2] = {{100000, 0}};
    cx_log *log = fresh(folder, &options);
    log_model m;
    cx_err err;
    REQUIRE(log != NULL);
    log_model_init(&m);
    for (int i = 0; i < 100; i++) {
        uint64_t commit;
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&m, commit);
    }
    CHECK_INT(m.frames.items[99].place.segment, 2);
    CHECK(log_model_check(&m, log, 100, false));
    cx_log_close(log);
    char spare[FOLDER_PATH_SIZE + 10];
    (void)snprintf(spare, sizeof spare, "%s/spare", folder);
    cx_file file;
    CHECK_INT(cx_io_system()->open(cx_io_system(), spare, CX_IO_READ, &file), -ENOENT);
    log_model_done(&m);
    folder_remove(folder);
}

/* --- failures ------------------------------------------------------------------------------ */

/* The disk is full when the next segment is to be made: refused as a whole, and nothing is lost. */
CX_TEST(commit_finds_a_full_disk_before_anything_is_written)
{
    for (int kind = 0; kind < 2; kind++) {
        char folder[FOLDER_PATH_SIZE];
        fault_io files;
        const size_t sizes[1][2] = {{20000, 0}}, little[1][2] = {{10, 0}};
        fault_io_init(&files, cx_io_system(), FAULT_ALLOCATE, FAULT_NEVER, true);
        const cx_log_options options = {.io = &files.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
        cx_log *log = fresh(folder, &options);
        log_model m;
        cx_err err;
        uint64_t commit;
        REQUIRE(log != NULL);
        log_model_init(&m);
        for (int i = 0; i < 3; i++)
            CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        files.which = kind == 0 ? FAULT_ALLOCATE : FAULT_WRITE;
        files.code = ENOSPC;
        files.fail_at = atomic_load(&files.calls) + 1;
        for (int i = 0; i < 3; i++) {
            CHECK_INT(log_model_submit(&m, log, sizes, 1, &commit, &err).code, CX_E_IO);
            CHECK_INT(err.os_errno, ENOSPC);
        }
        files.fail_at = FAULT_NEVER;
        /* Not poisoned: what fits still goes, and with room everything does. */
        CHECK_STATUS(log_model_submit(&m, log, little, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        CHECK_INT(commit, 2);
        log_model_ack(&m, commit);
        CHECK(log_model_check(&m, log, 3, true));
        cx_log_close(log);
        CHECK_INT(atomic_load(&files.open_files), 0);
        log_model_done(&m);
        folder_remove(folder);
    }
}

CX_TEST(commit_is_refused_after_a_failed_write_or_sync)
{
    for (int kind = 0; kind < 2; kind++) {
        char folder[FOLDER_PATH_SIZE];
        fault_io files;
        const size_t sizes[1][2] = {{500, 10}};
        fault_io_init(&files, cx_io_system(), kind == 0 ? FAULT_SYNC : FAULT_WRITE, FAULT_NEVER,
                      false);
        files.torn = true;
        const cx_log_options options = {.io = &files.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
        cx_log *log = fresh(folder, &options);
        log_model m;
        cx_err err;
        uint64_t commit, later;
        REQUIRE(log != NULL);
        log_model_init(&m);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&m, commit);
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
        files.fail_at = atomic_load(&files.calls) + 1; /* this once */
        CHECK_INT(cx_log_wait(log, commit, &err).code, CX_E_IO);
        CHECK_STR(cx_str_z(err.tag), "Poisoned");
        CHECK_INT(err.os_errno, EIO);
        /* The disk works again, but what it holds is not known. */
        CHECK_INT(log_model_submit(&m, log, sizes, 1, &later, &err).code, CX_E_IO);
        CHECK_STR(cx_str_z(err.tag), "Poisoned");
        CHECK_INT(cx_log_wait(log, commit, &err).code, CX_E_IO);
        CHECK_STATUS(cx_log_wait(log, 0, &err), &err);
        CHECK_INT(cx_log_durable(log), 1);
        log_model_lose(&m, 1);
        CHECK(log_model_check(&m, log, 1, true)); /* what was durable can still be read */
        cx_log_close(log);
        CHECK_INT(atomic_load(&files.open_files), 0);
        cx_log_opened opened;
        REQUIRE(!cx_failed(cx_log_open(folder, &options, &log, &opened, &err)));
        CHECK(opened.commit_count == 1 || (opened.commit_count == 2 && kind == 0));
        cx_log_close(log);
        log_model_done(&m);
        folder_remove(folder);
    }
}

CX_TEST(commit_without_memory_takes_nothing)
{
    char folder[FOLDER_PATH_SIZE];
    fault_alloc memory;
    const size_t sizes[1][2] = {{30000, 0}};
    fault_alloc_init(&memory, FAULT_NEVER, true);
    const cx_log_options options = {.alloc = &memory.alloc, .segment_bytes = CX_LOG_SEGMENT_MIN};
    cx_log *log = fresh(folder, &options);
    log_model m;
    cx_err err;
    uint64_t commit;
    REQUIRE(log != NULL);
    log_model_init(&m);
    memory.fail_at = 1;
    for (int i = 0; i < 3; i++)
        CHECK_INT(log_model_submit(&m, log, sizes, 1, &commit, &err).code, CX_E_NOMEM);
    memory.fail_at = FAULT_NEVER;
    CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
    memory.fail_at = 1;
    CHECK_INT(log_model_submit(&m, log, sizes, 1, &commit, &err).code, CX_E_NOMEM);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err); /* writing needs none */
    memory.fail_at = FAULT_NEVER;
    log_model_ack(&m, commit);
    CHECK(log_model_check(&m, log, 1, true));
    cx_log_close(log);
    CHECK_INT(atomic_load(&memory.live_bytes), 0);
    CHECK(!atomic_load(&memory.wrong_size));
    log_model_done(&m);
    folder_remove(folder);
}

static _Atomic uint32_t forgotten; /* a bit for each segment */

static void note_forgotten(const cx_io *io, cx_file file)
{
    uint8_t header[16];
    if (io->pread(io, file, header, sizeof header, 0) == (int64_t)sizeof header && header[15] < 32)
        forgotten |= UINT32_C(1) << header[15]; /* the last byte of its number */
}

/* Of a log that grows fast only old segments are given up by the system's memory, each once. */
CX_TEST(commit_forgets_segments_that_are_long_full)
{
    char folder[FOLDER_PATH_SIZE];
    cx_io io = *cx_io_system();
    io.forget = note_forgotten;
    const cx_log_options options = {.io = &io, .segment_bytes = UINT64_C(4) << 20};
    const size_t sizes[1][2] = {{(size_t)3 << 20, 0}}; /* one has no room for two */
    cx_log *log = fresh(folder, &options);
    log_model m;
    cx_err err;
    uint64_t commit = 0;
    REQUIRE(log != NULL);
    forgotten = 0;
    log_model_init(&m);
    for (int i = 0; i < 7; i++) {
        CHECK_STATUS(log_model_submit(&m, log, sizes, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&m, commit);
    }
    CHECK_INT(m.frames.items[6].place.segment, 6);
    CHECK(log_model_check(&m, log, 7, true));
    cx_log_close(log);
    CHECK_INT(forgotten, 0x3); /* while 5 and 6 were being filled */
    log_model_done(&m);
    folder_remove(folder);
}
