/*
 * test_trail.c - where reading of the last segment begins when a log is opened: near its end, and
 * at its beginning whenever the note about that is not true.
 */
#include "log/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "crypto/api.h"
#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

enum {
    TRAIL = 16 << 10,
    SEGMENT = 1 << 20,
    FRAME = 2000,
    POINT_AT = 36, /* docs/formats/log.md §1.1 */
    POINT_SIZE = 48,
};

/* Counts what is read of the segment up to `data_end`; zeros after it are always looked at. */
static uint64_t read_below, data_end;

static int64_t counting_pread(const cx_io *io, cx_file file, void *data, size_t size,
                              uint64_t offset)
{
    int64_t got = cx_io_system()->pread(io, file, data, size, offset);
    if (got > 0 && offset < data_end)
        read_below += (uint64_t)got < data_end - offset ? (uint64_t)got : data_end - offset;
    return got;
}

typedef struct place {
    char folder[FOLDER_PATH_SIZE];
    log_model m;
    cx_io io;
    cx_log_options writing, reading;
} place;

static cx_log *open_log(place *p, const cx_log_options *options, cx_log_opened *opened)
{
    cx_log *log = NULL;
    cx_err err;
    read_below = 0;
    CHECK_STATUS(cx_log_open(p->folder, options, &log, opened, &err), &err);
    return log;
}

static void add(place *p, cx_log *log, int commits)
{
    static const size_t sizes[2][2] = {{FRAME, 0}, {FRAME, 100}};
    cx_err err;
    uint64_t commit = 0;
    for (int i = 0; i < commits; i++) {
        CHECK_STATUS(log_model_submit(&p->m, log, sizes, 2, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&p->m, commit);
    }
    const cx_log_place *last = &p->m.frames.items[p->m.frames.count - 1].place;
    data_end = last->offset + last->size_bytes;
}

/* A log with so many commits in one segment, or more. */
static void make(place *p, int commits)
{
    cx_err err;
    p->io = *cx_io_system();
    p->io.pread = counting_pread;
    p->writing = (cx_log_options){.io = &p->io, .segment_bytes = SEGMENT, .trail_bytes = TRAIL};
    p->reading = (cx_log_options){.io = &p->io, .read_only = true, .trail_bytes = TRAIL};
    folder_fresh(p->folder, "trail");
    log_model_init(&p->m);
    CHECK_STATUS(cx_log_create(p->folder, &p->writing, &err), &err);
    cx_log *log = open_log(p, &p->writing, NULL);
    add(p, log, commits);
    cx_log_close(log);
}

static void drop(place *p)
{
    folder_remove(p->folder);
    log_model_done(&p->m);
}

static int file_of(const place *p, const char *name)
{
    char path[FOLDER_PATH_SIZE + 20];
    (void)snprintf(path, sizeof path, "%s/%s", p->folder, name);
    int file = open(path, O_RDWR);
    CHECK(file >= 0);
    return file;
}

static void get(const place *p, const char *name, off_t at, void *data, size_t size)
{
    int file = file_of(p, name);
    CHECK(pread(file, data, size, at) == (ssize_t)size);
    (void)close(file);
}

static void put(const place *p, const char *name, off_t at, const void *data, size_t size)
{
    int file = file_of(p, name);
    CHECK(pwrite(file, data, size, at) == (ssize_t)size);
    (void)close(file);
}

/* Opens as `options` say; everything is there, and at most or at least so much was read. */
static void check_open(place *p, const cx_log_options *options, uint64_t most, uint64_t least)
{
    cx_log_opened opened;
    cx_log *log = open_log(p, options, &opened);
    if (log == NULL)
        return;
    CHECK_INT(opened.commit_count, p->m.acked);
    CHECK_INT(opened.torn_bytes, 0);
    if (read_below > most || read_below < least)
        cx_test_fail(__FILE__, __LINE__, "%llu of %llu bytes were read",
                     (unsigned long long)read_below, (unsigned long long)data_end);
    CHECK(log_model_check(&p->m, log, p->m.acked, false));
    cx_log_close(log);
}

/* Two steps, the group at their end, and pieces of 256 KiB that it is read in. */
enum { NEAR = 2 * TRAIL + 3 * FRAME };

CX_TEST(trail_opening_reads_the_end_alone)
{
    place p;
    make(&p, 200);
    CHECK(data_end > 800000);
    check_open(&p, &p.writing, NEAR, 1);
    check_open(&p, &p.reading, NEAR, 1);
    for (int i = 0; i < 9; i++) { /* the note moves on, and with the next segment there is none */
        cx_log_opened opened;
        cx_log *log = open_log(&p, &p.writing, &opened);
        REQUIRE(log != NULL);
        CHECK_INT(opened.commit_count, p.m.acked);
        CHECK(read_below <= NEAR);
        add(&p, log, 13);
        cx_log_close(log);
    }
    CHECK_INT(p.m.frames.items[p.m.frames.count - 1].place.segment, 1);
    check_open(&p, &p.reading, NEAR, 1);
    drop(&p);
}

CX_TEST(trail_a_segment_that_has_just_begun_is_read_whole)
{
    place p;
    make(&p, 263);
    REQUIRE(p.m.frames.items[p.m.frames.count - 1].place.segment == 1);
    check_open(&p, &p.reading, NEAR, 1);
    check_open(&p, &p.writing, NEAR, 1);
    drop(&p);
}

/* Whatever is wrong with the note, the segment is read from its beginning, and nothing is lost. */
CX_TEST(trail_a_note_that_is_not_true_is_not_believed)
{
    place p;
    uint8_t right[POINT_SIZE], wrong[POINT_SIZE], id[16];
    make(&p, 100);
    get(&p, "lock", POINT_AT, right, sizeof right);
    get(&p, "000000.seg", 16, id, sizeof id);
    for (size_t i = 0; i < sizeof right; i++) {
        memcpy(wrong, right, sizeof wrong);
        wrong[i] ^= 0x20;
        put(&p, "lock", POINT_AT, wrong, sizeof wrong);
        check_open(&p, &p.reading, UINT64_MAX, data_end / 2);
        /* The same with a checksum that fits. */
        uint32_t crc = cx_crc32c_add(cx_crc32c_add(0, id, sizeof id), wrong, POINT_SIZE - 4);
        for (unsigned k = 0; k < 4; k++)
            wrong[POINT_SIZE - 4 + k] = (uint8_t)(crc >> (24 - 8 * k));
        if (memcmp(wrong, right, sizeof wrong) == 0)
            continue; /* it was in the checksum */
        put(&p, "lock", POINT_AT, wrong, sizeof wrong);
        check_open(&p, &p.reading, UINT64_MAX, data_end / 2);
    }
    /* A writer leaves a true one again. */
    check_open(&p, &p.writing, UINT64_MAX, data_end / 2);
    check_open(&p, &p.writing, NEAR, 1);
    drop(&p);
}

/* As a program of before leaves it, or a copy of the directory. */
CX_TEST(trail_without_a_note_everything_is_read_once)
{
    place p;
    make(&p, 100);
    int file = file_of(&p, "lock");
    CHECK(ftruncate(file, POINT_AT) == 0);
    (void)close(file);
    check_open(&p, &p.reading, UINT64_MAX, data_end);
    check_open(&p, &p.reading, UINT64_MAX, data_end); /* a reader writes nothing */
    check_open(&p, &p.writing, UINT64_MAX, data_end);
    check_open(&p, &p.reading, NEAR, 1);
    drop(&p);
}

static void cut_to(const place *p, uint64_t offset)
{
    static const uint8_t zeros[SEGMENT];
    put(p, "000000.seg", (off_t)offset, zeros, (size_t)(SEGMENT - offset));
}

/* Commits that were acknowledged and are gone: with the note's own among them, or not. */
CX_TEST(trail_what_was_cut_off_is_missed)
{
    static const size_t kept[] = {60, 98, 99};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        place p;
        cx_log *log = NULL;
        cx_err err;
        make(&p, 100);
        cut_to(&p, p.m.frames.items[kept[i] * 2].place.offset);
        CHECK_INT(cx_log_open(p.folder, &p.writing, &log, NULL, &err).code, CX_E_FORMAT);
        CHECK_STR(cx_str_z(err.tag), "LogDamaged");
        CHECK(strstr(err.message, "were acknowledged and are not there") != NULL);
        drop(&p);
    }
}

static bool scan_names_damage(place *p, uint64_t from)
{
    cx_log *log = open_log(p, &p->reading, NULL);
    cx_log_scan *scan = NULL;
    cx_log_commit commit;
    cx_err err;
    bool end = false, named = false;
    CHECK_STATUS(cx_log_scan_begin(log, from, &scan, &err), &err);
    while (!end && !named)
        named = cx_failed(cx_log_scan_next(scan, &commit, &end, &err));
    cx_log_scan_end(scan);
    cx_log_close(log);
    return named;
}

/* Before the note nothing is looked at when the log is opened, as in segments before the last. */
CX_TEST(trail_damage_before_the_end_is_named_where_it_is_read)
{
    place p;
    uint8_t byte;
    cx_log *log;
    cx_log_opened opened;
    cx_err err;
    make(&p, 200);
    off_t at = (off_t)p.m.frames.items[40].place.offset + 500;
    get(&p, "000000.seg", at, &byte, 1);
    byte ^= 1;
    put(&p, "000000.seg", at, &byte, 1);
    log = open_log(&p, &p.writing, &opened);
    REQUIRE(log != NULL);
    CHECK_INT(opened.commit_count, 200);
    add(&p, log, 1);
    cx_log_close(log);
    CHECK(scan_names_damage(&p, 0));
    CHECK(scan_names_damage(&p, 10));
    CHECK(!scan_names_damage(&p, 198));
    /* Of the end it is refused. */
    at = (off_t)p.m.frames.items[396].place.offset + 500;
    get(&p, "000000.seg", at, &byte, 1);
    byte ^= 1;
    put(&p, "000000.seg", at, &byte, 1);
    CHECK_INT(cx_log_open(p.folder, &p.writing, &log, NULL, &err).code, CX_E_FORMAT);
    CHECK_STR(cx_str_z(err.tag), "LogDamaged");
    drop(&p);
}

/* Reading from a commit on begins at the note, if that commit is not before it. */
CX_TEST(trail_scans_begin_there_too)
{
    place p;
    cx_log_scan *scan = NULL;
    cx_log_commit commit;
    cx_err err;
    bool end = false;
    make(&p, 200);
    cx_log *log = open_log(&p, &p.writing, NULL);
    REQUIRE(log != NULL);
    for (uint64_t from = 0; from <= 200; from++) {
        read_below = 0;
        CHECK_STATUS(cx_log_scan_begin(log, from, &scan, &err), &err);
        CHECK_STATUS(cx_log_scan_next(scan, &commit, &end, &err), &err);
        CHECK_INT(end, from == 200);
        if (!end)
            CHECK_INT(commit.number, from);
        if (from >= 197)
            CHECK(read_below <= NEAR);
        cx_log_scan_end(scan);
    }
    cx_log_close(log);
    drop(&p);
}

/* --- a mark in a record ----------------------------------------------------------------------- */

/* What a note names: the place after a mark. */
static void make_note(const uint8_t id[16], uint64_t offset, const uint8_t mark[CX_LOG_MARK_SIZE],
                      uint8_t out[POINT_SIZE])
{
    cx_log_put_u32(out, 0);
    cx_log_put_u64(out + 4, offset);
    memcpy(out + 12, mark, CX_LOG_MARK_SIZE);
    cx_log_put_u32(out + POINT_SIZE - 4,
                   cx_crc32c_add(cx_crc32c_add(0, id, 16), out, POINT_SIZE - 4));
}

/* A record that has, where it comes to lie, a mark as if of commit `commit`, and as many whole
 * groups after it; the note names that mark. */
static void add_forged(place *p, cx_log *log, uint64_t commit, int groups)
{
    enum { BEFORE = 4000 };
    uint8_t id[16], note[POINT_SIZE], bytes[3 * BEFORE] = {0};
    uint64_t done = 0, body = data_end + CX_LOG_MARK_SIZE + CX_LOG_FRAME_HEAD_SIZE, at = BEFORE;
    cx_err err;
    cx_log_home_id(log, id);
    uint32_t seed = cx_log_seed(id, 0);
    cx_log_mark mark = {.frame_count = 1, .commit = commit, .group_bytes = 100};
    cx_log_mark_encode(&mark, seed, body + at, bytes + at);
    at += CX_LOG_MARK_SIZE;
    make_note(id, body + at, bytes + at - CX_LOG_MARK_SIZE, note);
    for (int i = 0; i < groups; i++) {
        const cx_log_frame frame = {.guarded = cx_str_bytes(CX_STR("forged"))};
        cx_log_frame_encode(&frame, seed, body + at, bytes + at);
        mark.commit++;
        mark.group_bytes = cx_log_frame_bytes(frame.guarded.size, 0);
        mark.heads_crc = cx_crc32c_add(0, bytes + at, CX_LOG_FRAME_HEAD_SIZE);
        at += mark.group_bytes;
        cx_log_mark_encode(&mark, seed, body + at, bytes + at);
        at += CX_LOG_MARK_SIZE;
    }
    const cx_log_frame record = {.guarded = {bytes, sizeof bytes}};
    CHECK_STATUS(cx_log_submit(log, &record, 1, NULL, &done, &err), &err);
    CHECK_STATUS(cx_log_wait(log, done, &err), &err);
    CHECK_INT(done, p->m.acked);
    put(p, "lock", POINT_AT, note, sizeof note);
}

static void check_count(place *p, const cx_log_options *options, uint64_t commits)
{
    cx_log_opened opened = {0};
    cx_log *log = open_log(p, options, &opened);
    CHECK_INT(opened.commit_count, commits);
    CHECK_INT(opened.torn_bytes, 0);
    cx_log_close(log);
}

/* Only a note that was forged as well leads there.  What follows it is the end of a log by itself,
 * and taken for that it would be overwritten. */
CX_TEST(trail_a_mark_in_a_record_is_no_place_to_begin)
{
    static const struct {
        uint64_t commit;
        int groups;
    } forged[] = {{5000, 0}, {5000, 3}, {30, 0}, {30, 2}, {29, 0}, {29, 4}, {0, 0}};
    for (size_t i = 0; i < CX_COUNT_OF(forged); i++) {
        place p;
        make(&p, 30);
        cx_log *log = open_log(&p, &p.writing, NULL);
        REQUIRE(log != NULL);
        add_forged(&p, log, forged[i].commit, forged[i].groups);
        cx_log_close(log);
        check_count(&p, &p.reading, 31);
        check_count(&p, &p.writing, 31);
        check_count(&p, &p.reading, 31); /* nothing was overwritten */
        drop(&p);
    }
}

/* --- where it can be told where a write began ------------------------------------------------- */

static uint64_t asked_at;
static int told;
static bool told_began;

static int telling_write_began(const cx_io *io, cx_file file, uint64_t offset, bool *out_began)
{
    CHECK(io != NULL && file >= 0);
    asked_at = offset;
    *out_began = told_began;
    return told;
}

CX_TEST(trail_a_place_where_no_write_began_is_not_believed)
{
    place p;
    uint8_t note[POINT_SIZE];
    make(&p, 200);
    get(&p, "lock", POINT_AT, note, sizeof note);
    p.io.write_began = telling_write_began;
    told_began = true;
    check_open(&p, &p.reading, NEAR, 1);
    CHECK_INT(asked_at, cx_log_get_u64(note + 4));
    told_began = false;
    check_open(&p, &p.reading, UINT64_MAX, data_end);
    told_began = true;
    told = -EIO;
    check_open(&p, &p.reading, UINT64_MAX, data_end);
    told = -ENOTSUP; /* it cannot tell */
    told_began = false;
    check_open(&p, &p.reading, NEAR, 1);
    check_open(&p, &p.writing, NEAR, 1);
    told = 0;
    drop(&p);
}
