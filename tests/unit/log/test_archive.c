/*
 * test_archive.c - archived segments read, erase and come back as if they had stayed.
 */
#include "log/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

static const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
static const cx_log_options reading = {.read_only = true};

static cx_log *fresh(char folder[FOLDER_PATH_SIZE], const cx_log_options *options)
{
    cx_log *log = NULL;
    cx_err err;
    folder_fresh(folder, "archive");
    CHECK_STATUS(cx_log_create(folder, options, &err), &err);
    CHECK_STATUS(cx_log_open(folder, options, &log, NULL, &err), &err);
    return log;
}

static void write_commits(log_model *m, cx_log *log, int count)
{
    const size_t sizes[2][2] = {{700, 90}, {2000, 3000}};
    for (int i = 0; i < count; i++) {
        cx_err err;
        uint64_t commit = 0;
        CHECK_STATUS(log_model_submit(m, log, sizes, 2, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(m, commit);
    }
}

static void erase_frame(log_model *m, cx_log *log, size_t frame)
{
    cx_err err;
    CHECK_STATUS(cx_log_erase(log, m->frames.items[frame].place, &err), &err);
    m->frames.items[frame].erasure = MODEL_ERASED;
}

typedef struct seen_names {
    unsigned plain, archives;
} seen_names;

static bool see_name(void *arg, const char *name)
{
    seen_names *seen = arg;
    seen->plain += cx_str_ends(cx_str_z(name), CX_STR(".seg")) ? 1 : 0;
    seen->archives += cx_str_ends(cx_str_z(name), CX_STR(".seg.zst")) ? 1 : 0;
    return true;
}

static seen_names look(const char *folder)
{
    seen_names seen = {0, 0};
    CHECK_INT(cx_io_system()->list(cx_io_system(), folder, see_name, &seen), 0);
    return seen;
}

CX_TEST(archive_is_read_and_erased_in_like_the_segment)
{
    char folder[FOLDER_PATH_SIZE];
    cx_log *log = fresh(folder, &small), *before, *after;
    log_model m;
    cx_err err;
    cx_log_archived done;
    cx_log_space space;
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 100);
    erase_frame(&m, log, 1);
    REQUIRE(!cx_failed(cx_log_open(folder, &reading, &before, NULL, &err)));
    CHECK(log_model_check(&m, before, 100, true)); /* has files of segments open from here on */
    seen_names all = look(folder);
    CHECK(all.plain > 8 && all.archives == 0);
    const cx_log_archive_options keep = {.keep = 3};
    CHECK_STATUS(cx_log_archive(log, &keep, &done, &err), &err);
    CHECK_INT(done.segments, all.plain - 3);
    CHECK(done.bytes_packed < done.bytes_unpacked);
    CHECK_INT(look(folder).plain, 3);
    CHECK_INT(look(folder).archives, all.plain - 3);
    CHECK_STATUS(cx_log_space_of(log, &space, &err), &err);
    CHECK(space.segments == all.plain && space.archived == all.plain - 3);
    CHECK(space.bytes - space.bytes_stored == done.bytes_unpacked - done.bytes_packed);
    CHECK(log_model_check(&m, log, 100, true));
    CHECK(log_model_check(&m, before, 100, true));
    /* Erased in an archive: all see it, those too that had it open. */
    erase_frame(&m, log, 3);
    erase_frame(&m, log, 5);
    CHECK(log_model_check(&m, log, 100, true));
    CHECK(log_model_check(&m, before, 100, true));
    write_commits(&m, log, 20);
    REQUIRE(!cx_failed(cx_log_open(folder, &reading, &after, NULL, &err)));
    CHECK(log_model_check(&m, after, 120, true));
    cx_log_close(log);
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
    CHECK(log_model_check(&m, log, 120, true));
    CHECK_INT(cx_log_archive(after, &keep, &done, &err).code, CX_E_DENIED);
    const cx_log_archive_options plain = {0};
    CHECK_STATUS(cx_log_unarchive(log, &plain, &done, &err), &err);
    CHECK_INT(done.segments, all.plain - 3);
    CHECK_INT(look(folder).archives, 0);
    CHECK(log_model_check(&m, log, 120, true));
    CHECK(log_model_check(&m, after, 120, true));
    CHECK(log_model_check(&m, before, 120, true));
    cx_log_close(before);
    cx_log_close(after);
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

/* Whether any file of the folder has these bytes; archives are looked at unpacked by the log. */
static bool file_has(const char *path, cx_bytes text)
{
    cx_buf all;
    bool found = false;
    cx_err err;
    cx_buf_init(&all, cx_alloc_default());
    CHECK_STATUS(cx_io_read_file(cx_io_system(), path, 16 << 20, &all, &err), &err);
    for (size_t i = 0; !found && i + text.size <= all.size; i++)
        found = memcmp(all.data + i, text.data, text.size) == 0;
    cx_buf_done(&all);
    return found;
}

CX_TEST(archive_of_an_erased_part_holds_nothing_of_it)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    cx_log_archived done;
    cx_log_place place;
    uint64_t commit;
    uint8_t secret[64];
    REQUIRE(log != NULL);
    log_model_init(&m);
    /* Bytes that do not compress are in the archive as they are. */
    CHECK_INT(cx_io_system()->random(cx_io_system(), secret, sizeof secret), 0);
    cx_log_frame frame = {cx_bytes_from("g", 1), {secret, sizeof secret}};
    CHECK_STATUS(cx_log_submit(log, &frame, 1, &place, &commit, &err), &err);
    CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    log_model_init(&m);
    const size_t filler[1][2] = {{30000, 0}};
    for (int i = 0; i < 6; i++) {
        CHECK_STATUS(log_model_submit(&m, log, filler, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
    }
    const cx_log_archive_options all = {0};
    CHECK_STATUS(cx_log_archive(log, &all, &done, &err), &err);
    (void)snprintf(path, sizeof path, "%s/000000.seg.zst", folder);
    CHECK(file_has(path, (cx_bytes){secret, 16}));
    CHECK_STATUS(cx_log_erase(log, place, &err), &err);
    CHECK(!file_has(path, (cx_bytes){secret, 16}));
    /* What an interrupted call left is not written to, and does not stay. */
    const cx_log_archive_options none = {0};
    CHECK_STATUS(cx_log_unarchive(log, &none, &done, &err), &err);
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

CX_TEST(archive_elsewhere_can_be_missing_and_moved)
{
    char folder[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE], third[FOLDER_PATH_SIZE];
    char note[FOLDER_PATH_SIZE + 32];
    cx_log *log = fresh(folder, &small), *reader;
    log_model m;
    cx_err err;
    cx_log_archived done;
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 60);
    folder_fresh(other, "archive-other");
    folder_fresh(third, "archive-third");
    CHECK_INT(cx_io_system()->mkdir(cx_io_system(), other), 0);
    REQUIRE(!cx_failed(cx_log_open(folder, &reading, &reader, NULL, &err)));
    const cx_log_archive_options there = {.folder = other};
    CHECK_STATUS(cx_log_archive(log, &there, &done, &err), &err);
    CHECK(done.segments > 3 && look(folder).archives == 0);
    CHECK_INT(look(other).archives, done.segments);
    CHECK(log_model_check(&m, log, 60, true));
    CHECK(log_model_check(&m, reader, 60, true)); /* was open before there was another folder */
    cx_log_close(reader);
    const cx_log_archive_options elsewhere = {.folder = third};
    CHECK_INT(cx_log_archive(log, &elsewhere, &done, &err).code, CX_E_USAGE);
    cx_log_close(log);
    CHECK_INT(rename(other, third), 0);
    CHECK_INT(cx_log_open(folder, &reading, &log, NULL, &err).code, CX_E_IO);
    CHECK_STR(cx_str_z(err.tag), "ArchiveMissing");
    char line[FOLDER_PATH_SIZE + 2];
    int size = snprintf(line, sizeof line, "%s\n", third);
    (void)snprintf(note, sizeof note, "%s/archive", folder);
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), note, cx_bytes_from(line, (size_t)size), &err),
                 &err);
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
    CHECK(log_model_check(&m, log, 60, true));
    erase_frame(&m, log, 3);
    CHECK(log_model_check(&m, log, 60, true));
    const cx_log_archive_options none = {0};
    CHECK_STATUS(cx_log_unarchive(log, &none, &done, &err), &err);
    CHECK_INT(look(third).archives, 0);
    const cx_log_archive_options own = {.folder = ""};
    CHECK_STATUS(cx_log_archive(log, &own, &done, &err), &err);
    CHECK(look(folder).archives == done.segments && done.segments > 3);
    CHECK(log_model_check(&m, log, 60, true));
    cx_log_close(log);
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), note, cx_bytes_from("relative\n", 9), &err),
                 &err);
    CHECK_INT(cx_log_open(folder, &reading, &log, NULL, &err).code, CX_E_FORMAT);
    log_model_done(&m);
    folder_remove(folder);
    folder_remove(third);
}

/* Reads all of a log: commits that are whole, and whether damage was told. */
static void count_commits(const char *folder, uint64_t *out, bool *out_damaged)
{
    cx_log *log;
    cx_log_scan *scan;
    cx_err err;
    *out = 0;
    *out_damaged = false;
    REQUIRE(!cx_failed(cx_log_open(folder, &reading, &log, NULL, &err)));
    REQUIRE(!cx_failed(cx_log_scan_begin(log, 0, &scan, &err)));
    for (;;) {
        cx_log_commit commit;
        bool end = false;
        cx_status status = cx_log_scan_next(scan, &commit, &end, &err);
        if (cx_failed(status) && status.code != CX_E_FORMAT)
            CHECK_STATUS(status, &err);
        *out_damaged = *out_damaged || cx_failed(status);
        if (!cx_failed(status) && end)
            break;
        if (!cx_failed(status)) {
            ++*out;
            for (size_t i = 0; i < commit.count; i++)
                *out_damaged = *out_damaged ||
                               (commit.items[i].erasable_damaged && !commit.items[i].half_erased);
        }
    }
    cx_log_scan_end(scan);
    cx_log_close(log);
}

/* Bytes of checksums and of headers that decompressors do not need are the only ones without
 * effect. */
CX_TEST(archive_tells_changed_bytes)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    cx_log_archived done;
    bool damaged;
    uint64_t commits;
    unsigned told = 0, tried = 0;
    cx_buf bytes;
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 30);
    const cx_log_archive_options all = {0};
    CHECK_STATUS(cx_log_archive(log, &all, &done, &err), &err);
    cx_log_close(log);
    (void)snprintf(path, sizeof path, "%s/000001.seg.zst", folder);
    cx_buf_init(&bytes, cx_alloc_default());
    REQUIRE(!cx_failed(cx_io_read_file(cx_io_system(), path, 1 << 20, &bytes, &err)));
    count_commits(folder, &commits, &damaged);
    CHECK(commits == 30 && !damaged);
    const size_t step = (size_t)97 * cx_test_step(3),
                 end = bytes.size - 64; /* from there each one */
    for (size_t i = 0; i < bytes.size; i = i >= end ? i + 1 : i + step < end ? i + step : end) {
        bytes.data[i] ^= 0x20;
        REQUIRE(!cx_failed(cx_io_replace_file(cx_io_system(), path, cx_buf_bytes(&bytes), &err)));
        count_commits(folder, &commits, &damaged);
        CHECK(damaged || commits == 30);
        told += damaged ? 1 : 0;
        tried++;
        bytes.data[i] ^= 0x20;
    }
    CHECK(told + 3 >= tried);
    for (size_t size = 0; size < bytes.size; size += 1 + bytes.size / 23) {
        REQUIRE(!cx_failed(
            cx_io_replace_file(cx_io_system(), path, cx_bytes_from(bytes.data, size), &err)));
        count_commits(folder, &commits, &damaged);
        CHECK(damaged);
    }
    cx_buf_done(&bytes);
    log_model_done(&m);
    folder_remove(folder);
}

static cx_status change_form(cx_log *log, bool bring_back, cx_err *err)
{
    const cx_log_archive_options all = {0};
    cx_log_archived done;
    return bring_back ? cx_log_unarchive(log, &all, &done, err)
                      : cx_log_archive(log, &all, &done, err);
}

static void form_by_system(const char *folder, bool bring_back)
{
    cx_log *log;
    cx_err err;
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
    CHECK_STATUS(change_form(log, bring_back, &err), &err);
    cx_log_close(log);
}

/* Each call of the operating system fails once: nothing is lost, and the next try succeeds. */
static void archive_with_a_failure(bool bring_back, unsigned *out_failures)
{
    char folder[FOLDER_PATH_SIZE];
    log_model m;
    cx_err err;
    cx_log *log = fresh(folder, &small);
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 30);
    cx_log_close(log);
    bool fired = true;
    *out_failures = 0;
    for (uint64_t at = 1; fired && at < 100000; at += 1 + at / 9) {
        fault_io files;
        form_by_system(folder, !bring_back);
        fault_io_init(&files, cx_io_system(), FAULT_ANY, FAULT_NEVER, false);
        files.torn = true;
        const cx_log_options options = {.io = &files.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
        REQUIRE(!cx_failed(cx_log_open(folder, &options, &log, NULL, &err)));
        uint64_t calls = atomic_load(&files.calls);
        files.fail_at = calls + at;
        cx_status status = change_form(log, bring_back, &err);
        fired = atomic_load(&files.calls) >= files.fail_at;
        CHECK(fired || !cx_failed(status));
        *out_failures += cx_failed(status) ? 1 : 0;
        cx_log_close(log);
        CHECK_INT(atomic_load(&files.open_files), 0);
        REQUIRE(!cx_failed(cx_log_open(folder, &reading, &log, NULL, &err)));
        CHECK(log_model_check(&m, log, 30, true));
        cx_log_close(log);
        form_by_system(folder, bring_back);
    }
    CHECK(!fired);
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
    erase_frame(&m, log, 3);
    CHECK(log_model_check(&m, log, 30, true));
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

CX_TEST(archive_survives_every_failing_call)
{
    unsigned failures;
    archive_with_a_failure(false, &failures);
    CHECK(failures > 10);
    archive_with_a_failure(true, &failures);
    CHECK(failures > 10);
}

/* Both forms are there when a call is interrupted between naming the one and removing the other. */
CX_TEST(archive_does_not_count_while_its_segment_is_there)
{
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    cx_log_archived done;
    cx_buf kept;
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 30);
    const cx_log_archive_options all = {0};
    CHECK_STATUS(cx_log_archive(log, &all, &done, &err), &err);
    (void)snprintf(path, sizeof path, "%s/000000.seg.zst", folder);
    cx_buf_init(&kept, cx_alloc_default());
    REQUIRE(!cx_failed(cx_io_read_file(cx_io_system(), path, 1 << 20, &kept, &err)));
    CHECK_STATUS(cx_log_unarchive(log, &all, &done, &err), &err);
    REQUIRE(!cx_failed(cx_io_replace_file(cx_io_system(), path, cx_buf_bytes(&kept), &err)));
    cx_log_close(log);
    REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
    CHECK(log_model_check(&m, log, 30, true));
    CHECK_INT(look(folder).archives, 1);
    erase_frame(&m, log, 1); /* nothing of it may stay in the archive */
    CHECK_INT(look(folder).archives, 0);
    CHECK(log_model_check(&m, log, 30, true));
    cx_buf_done(&kept);
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

/* --- while others read, write and erase ----------------------------------------------------- */

typedef struct crowd {
    cx_log *log;
    const char *folder;
    log_model *model;
    size_t frames; /* of the model that are written and stay */
    atomic_bool stop;
    atomic_uint reads, changes;
} crowd;

/* Through a log of its own, as another process does. */
static void read_as_another(void *arg)
{
    crowd *c = arg;
    cx_log *log;
    cx_err err;
    cx_buf buf;
    REQUIRE(!cx_failed(cx_log_open(c->folder, &reading, &log, NULL, &err)));
    cx_buf_init(&buf, cx_alloc_default());
    for (size_t at = 0; !atomic_load(&c->stop); at = (at + 7) % c->frames) {
        cx_log_frame frame;
        bool erased;
        CHECK_STATUS(
            cx_log_read(log, c->model->frames.items[at].place, &buf, &frame, &erased, &err), &err);
        atomic_fetch_add(&c->reads, 1);
    }
    cx_buf_done(&buf);
    cx_log_close(log);
}

static void scan_as_another(void *arg)
{
    crowd *c = arg;
    while (!atomic_load(&c->stop)) {
        uint64_t commits;
        bool damaged;
        count_commits(c->folder, &commits, &damaged);
        CHECK(commits >= 60 && !damaged);
        atomic_fetch_add(&c->reads, 1);
    }
}

static void change_forms_always(void *arg)
{
    crowd *c = arg;
    for (bool back = false; !atomic_load(&c->stop); back = !back) {
        cx_err err;
        CHECK_STATUS(change_form(c->log, back, &err), &err);
        atomic_fetch_add(&c->changes, 1);
    }
}

CX_TEST(archive_changes_while_others_read_write_and_erase)
{
    char folder[FOLDER_PATH_SIZE];
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_thread threads[3];
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 60);
    crowd c = {.log = log, .folder = folder, .model = &m, .frames = m.frames.count};
    void (*const work[])(void *) = {read_as_another, scan_as_another, change_forms_always};
    for (size_t i = 0; i < CX_COUNT_OF(threads); i++)
        REQUIRE(cx_thread_start(&threads[i], work[i], &c));
    for (size_t frame = 0; frame < 120; frame += 3)
        erase_frame(&m, log, frame);
    while (atomic_load(&c.changes) < 6 || atomic_load(&c.reads) < 100)
        cx_thread_sleep_ms(1);
    atomic_store(&c.stop, true);
    for (size_t i = 0; i < CX_COUNT_OF(threads); i++)
        cx_thread_join(&threads[i]);
    write_commits(&m, log, 20);
    CHECK(log_model_check(&m, log, 80, true));
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

CX_TEST(archiver_takes_what_is_due_and_nothing_else)
{
    char folder[FOLDER_PATH_SIZE], other[FOLDER_PATH_SIZE];
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    cx_log_space space;
    cx_log_archiving_state state;
    REQUIRE(log != NULL);
    folder_fresh(other, "archive-other");
    REQUIRE(cx_io_system()->mkdir(cx_io_system(), other) == 0);
    log_model_init(&m);
    write_commits(&m, log, 60);
    unsigned all = look(folder).plain;
    const cx_log_archiving wanted = {.keep = 3, .folder = other};
    CHECK_STATUS(cx_log_archiver_begin(log, &wanted, &err), &err);
    do {
        cx_thread_sleep_ms(5);
        cx_log_archiver_state(log, &state);
    } while (state.segments < all - 3 && state.failures == 0);
    CHECK(state.on && state.segments == all - 3 && state.failures == 0);
    CHECK(look(other).archives == all - 3 && look(folder).plain == 3);
    CHECK(log_model_check(&m, log, 60, true));
    CHECK_STATUS(cx_log_space_of(log, &space, &err), &err);
    CHECK(space.archived == all - 3 && space.bytes_archived == 0 && space.bytes_elsewhere != 0);
    CHECK(space.bytes_plain == 3 * CX_LOG_SEGMENT_MIN && space.failed_ns == 0);
    CHECK(space.bytes_plain + space.bytes_elsewhere == space.bytes_stored);
    erase_frame(&m, log, 1);
    write_commits(&m, log, 40); /* more segments become due */
    while (look(folder).plain > 3)
        cx_thread_sleep_ms(5);
    CHECK(log_model_check(&m, log, 100, true));
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
    folder_remove(other);
}

/* Each call of the operating system fails once while the thread archives. */
CX_TEST(archiver_survives_every_failing_call)
{
    char folder[FOLDER_PATH_SIZE], noted[FOLDER_PATH_SIZE + 32];
    log_model m;
    cx_err err;
    unsigned failures = 0;
    cx_log *log = fresh(folder, &small);
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 30);
    cx_log_close(log);
    unsigned all = look(folder).plain;
    bool fired = true;
    for (uint64_t at = 1; fired && at < 100000; at += 1 + at / 9) {
        const cx_log_archiving wanted = {.keep = 1};
        cx_log_archiving_state state;
        cx_log_space space;
        fault_io files;
        fault_io_init(&files, cx_io_system(), FAULT_ANY, FAULT_NEVER, false);
        files.torn = true;
        const cx_log_options options = {.io = &files.io, .segment_bytes = CX_LOG_SEGMENT_MIN};
        REQUIRE(!cx_failed(cx_log_open(folder, &options, &log, NULL, &err)));
        files.fail_at = atomic_load(&files.calls) + at;
        CHECK_STATUS(cx_log_archiver_begin(log, &wanted, &err), &err);
        do {
            cx_thread_sleep_ms(1);
            cx_log_archiver_state(log, &state);
        } while (state.failures == 0 && state.segments < all - 1);
        cx_log_close(log);
        fired = atomic_load(&files.calls) >= files.fail_at;
        CHECK_INT(atomic_load(&files.open_files), 0);
        REQUIRE(!cx_failed(cx_log_open(folder, &reading, &log, NULL, &err)));
        CHECK(log_model_check(&m, log, 30, true));
        CHECK_STATUS(cx_log_space_of(log, &space, &err), &err);
        CHECK(state.failures == 0 || space.failed_ns != 0);
        failures += state.failures != 0 ? 1 : 0;
        cx_log_close(log);
        form_by_system(folder, true);
        (void)snprintf(noted, sizeof noted, "%s/archive-failed", folder);
        (void)cx_io_system()->unlink(cx_io_system(), noted);
    }
    CHECK(!fired && failures > 10);
    log_model_done(&m);
    folder_remove(folder);
}

CX_TEST(archiver_leaves_what_is_young)
{
    char folder[FOLDER_PATH_SIZE];
    cx_log *log = fresh(folder, &small);
    log_model m;
    cx_err err;
    cx_log_archived done;
    REQUIRE(log != NULL);
    log_model_init(&m);
    write_commits(&m, log, 30);
    const cx_log_archive_options old = {.age_ns = INT64_C(3600000000000)};
    CHECK_STATUS(cx_log_archive(log, &old, &done, &err), &err);
    CHECK_INT(done.segments, 0);
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

/* A copy that a killed process left is overwritten before anything can be erased. */
CX_TEST(archive_overwrites_a_copy_that_was_left)
{
    static const char *const names[] = {"packing", "archiving"};
    char folder[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 32];
    cx_log *log = fresh(folder, &small);
    cx_err err;
    REQUIRE(log != NULL);
    cx_log_close(log);
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        cx_file file;
        uint8_t byte = 1;
        size_t got = 0;
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        REQUIRE(
            !cx_failed(cx_io_replace_file(cx_io_system(), path, cx_bytes_from("left", 4), &err)));
        REQUIRE(cx_io_system()->open(cx_io_system(), path, CX_IO_READ, &file) == 0);
        REQUIRE(!cx_failed(cx_log_open(folder, &reading, &log, NULL, &err)));
        cx_log_close(log);
        CHECK(access(path, F_OK) == 0); /* who reads changes nothing */
        REQUIRE(!cx_failed(cx_log_open(folder, &small, &log, NULL, &err)));
        cx_log_close(log);
        CHECK(access(path, F_OK) != 0);
        CHECK_STATUS(cx_io_read_at(cx_io_system(), file, path, &byte, 1, 0, &got, &err), &err);
        CHECK(got == 1 && byte == 0);
        (void)cx_io_system()->close(cx_io_system(), file);
    }
    folder_remove(folder);
}
