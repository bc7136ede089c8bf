/*
 * test_scan.c - reading in order: from any commit, while a writer appends, and across damage.
 */
#include "log/internal.h"

#include <fcntl.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

static const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
static const cx_log_options reading = {.read_only = true};

enum { COMMITS = 50 };

typedef struct place {
    char folder[FOLDER_PATH_SIZE];
    log_model m;
} place;

static void add(place *p, cx_log *log, int commits, size_t size)
{
    const size_t sizes[1][2] = {{size, 0}};
    for (int i = 0; i < commits; i++) {
        uint64_t commit;
        cx_err err;
        CHECK_STATUS(log_model_submit(&p->m, log, sizes, 1, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&p->m, commit);
    }
}

static cx_log *make(place *p)
{
    cx_log *log = NULL;
    cx_err err;
    folder_fresh(p->folder, "scan");
    log_model_init(&p->m);
    CHECK_STATUS(cx_log_create(p->folder, &small, &err), &err);
    CHECK_STATUS(cx_log_open(p->folder, &small, &log, NULL, &err), &err);
    return log;
}

static void drop(place *p)
{
    folder_remove(p->folder);
    log_model_done(&p->m);
}

static void flip(const place *p, uint32_t segment, uint64_t at)
{
    char path[FOLDER_PATH_SIZE + 20];
    uint8_t byte = 0;
    (void)snprintf(path, sizeof path, "%s/%06u.seg", p->folder, (unsigned)segment);
    int file = open(path, O_RDWR);
    CHECK(file >= 0 && pread(file, &byte, 1, (off_t)at) == 1);
    byte ^= 1;
    CHECK(pwrite(file, &byte, 1, (off_t)at) == 1);
    (void)close(file);
}

CX_TEST(scan_begins_at_any_commit)
{
    place p;
    cx_err err;
    cx_log *log = make(&p), *reader;
    REQUIRE(log != NULL);
    add(&p, log, COMMITS, 3000);
    REQUIRE(!cx_failed(cx_log_open(p.folder, &reading, &reader, NULL, &err)));
    for (uint64_t from = 0; from <= COMMITS; from++) {
        cx_log_scan *scan;
        uint64_t next = from;
        REQUIRE(!cx_failed(cx_log_scan_begin(from % 2 == 0 ? log : reader, from, &scan, &err)));
        for (;;) {
            cx_log_commit commit;
            bool end = true;
            CHECK_STATUS(cx_log_scan_next(scan, &commit, &end, &err), &err);
            if (end)
                break;
            CHECK_INT(commit.number, next++);
            CHECK(commit.bytes_done <= commit.bytes_total);
            if (commit.number == COMMITS - 1)
                CHECK_INT(commit.bytes_done, commit.bytes_total);
        }
        CHECK_INT(next, COMMITS);
        cx_log_scan_end(scan);
    }
    cx_log_scan *scan;
    CHECK_INT(cx_log_scan_begin(log, COMMITS + 1, &scan, &err).code, CX_E_USAGE);
    CHECK_INT(cx_log_scan_begin(reader, COMMITS + 1, &scan, &err).code, CX_E_USAGE);
    cx_log_close(reader);
    cx_log_close(log);
    drop(&p);
}

/* A scan that came to the end finds later commits, over many segments, and never one that is not
 * durable. */
CX_TEST(scan_follows_a_writer)
{
    place p;
    cx_err err;
    cx_log *log = make(&p), *reader;
    cx_log_scan *scans[2];
    REQUIRE(log != NULL);
    REQUIRE(!cx_failed(cx_log_open(p.folder, &reading, &reader, NULL, &err)));
    REQUIRE(!cx_failed(cx_log_scan_begin(log, 0, &scans[0], &err)));
    REQUIRE(!cx_failed(cx_log_scan_begin(reader, 0, &scans[1], &err)));
    uint64_t next = 0;
    for (int round = 0; round < 60; round++) {
        cx_log_commit commit;
        bool end;
        uint64_t pending;
        const size_t sizes[1][2] = {{50, 0}};
        for (int s = 0; s < 2; s++) {
            CHECK_STATUS(cx_log_scan_next(scans[s], &commit, &end, &err), &err);
            CHECK(end);
        }
        add(&p, log, round % 3 + 1, (size_t)(round * 100 + 1));
        CHECK_STATUS(log_model_submit(&p.m, log, sizes, 1, &pending, &err), &err);
        for (int s = 0; s < 2; s++) {
            for (int i = 0; i < round % 3 + 1; i++) {
                CHECK_STATUS(cx_log_scan_next(scans[s], &commit, &end, &err), &err);
                CHECK(!end && commit.number == next + (uint64_t)i);
            }
            CHECK_STATUS(cx_log_scan_next(scans[s], &commit, &end, &err), &err);
            CHECK(end);
        }
        CHECK_INT(cx_log_durable(reader), cx_log_durable(log));
        CHECK_STATUS(cx_log_wait(log, pending, &err), &err);
        log_model_ack(&p.m, pending);
        for (int s = 0; s < 2; s++) {
            CHECK_STATUS(cx_log_scan_next(scans[s], &commit, &end, &err), &err);
            CHECK(!end && commit.number == pending);
        }
        next = pending + 1;
    }
    cx_log_scan_end(scans[0]);
    cx_log_scan_end(scans[1]);
    CHECK(log_model_check(&p.m, reader, next, true));
    cx_log_close(log);
    CHECK(log_model_check(&p.m, reader, next, true));
    cx_log_close(reader);
    drop(&p);
}

/* Counts whole commits and reports of damage; every frame that is shown must be the model's. */
static void count(place *p, cx_log *log, unsigned *out_whole, unsigned *out_damage,
                  uint64_t *out_offset)
{
    cx_log_scan *scan;
    cx_err err;
    *out_whole = *out_damage = 0;
    cx_status status = cx_log_scan_begin(log, 0, &scan, &err);
    CHECK(!cx_failed(status));
    for (bool end = false; !cx_failed(status) && !end && *out_damage < 20;) {
        cx_log_commit commit;
        cx_status next = cx_log_scan_next(scan, &commit, &end, &err);
        if (cx_failed(next)) {
            CHECK_INT(next.code, CX_E_FORMAT);
            CHECK_STR(cx_str_z(err.tag), "LogDamaged");
            ++*out_damage;
            *out_offset = err.offset;
        } else if (!end) {
            ++*out_whole;
            CHECK_INT(p->m.frames.items[commit.number].place.offset, commit.items[0].place.offset);
        }
    }
    if (!cx_failed(status))
        cx_log_scan_end(scan);
}

CX_TEST(scan_reports_damage_and_goes_on_after_it)
{
    place p;
    cx_err err;
    unsigned whole, damage;
    uint64_t offset = 0;
    cx_log *log = make(&p), *reader;
    REQUIRE(log != NULL);
    add(&p, log, COMMITS, 3000);
    for (uint32_t i = 0; i < COMMITS; i++) {
        const cx_log_place *at = &p.m.frames.items[i].place;
        for (int where = 0; where < 3; where++) {
            /* A length, the contents, the mark. */
            uint64_t byte = where == 0 ? 6 : where == 1 ? 1000 : at->size_bytes + 9;
            flip(&p, at->segment, at->offset + byte);
            REQUIRE(!cx_failed(cx_log_open(p.folder, &reading, &reader, NULL, &err)));
            for (int by_reader = 0; by_reader < 2; by_reader++) {
                count(&p, by_reader ? reader : log, &whole, &damage, &offset);
                CHECK_INT(whole, COMMITS - 1);
                CHECK_INT(damage, 1);
                CHECK_INT(offset, at->offset);
            }
            cx_log_close(reader);
            flip(&p, at->segment, at->offset + byte);
        }
    }
    /* Two in one segment, one of them the first; a header. */
    flip(&p, 0, p.m.frames.items[0].place.offset + 50);
    flip(&p, 0, p.m.frames.items[3].place.offset + 50);
    count(&p, log, &whole, &damage, &offset);
    CHECK(whole == COMMITS - 2 && damage == 2);
    flip(&p, 0, p.m.frames.items[0].place.offset + 50);
    flip(&p, 0, p.m.frames.items[3].place.offset + 50);
    flip(&p, 1, 60);
    count(&p, log, &whole, &damage, &offset);
    unsigned in_first = 0;
    for (unsigned i = 0; i < COMMITS; i++)
        in_first += p.m.frames.items[i].place.segment == 1;
    CHECK_INT(whole, COMMITS - in_first);
    CHECK_INT(damage, 1);
    flip(&p, 1, 60);
    count(&p, log, &whole, &damage, &offset);
    CHECK(whole == COMMITS && damage == 0);
    cx_log_close(log);
    drop(&p);
}

/* A segment of the same home put back from an older copy: its end is not the one that the next
 * segment names. */
CX_TEST(scan_refuses_a_segment_from_an_older_copy)
{
    place p;
    cx_err err;
    unsigned whole, damage;
    uint64_t offset = 0;
    char old[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 20], copy[FOLDER_PATH_SIZE + 20];
    cx_buf bytes;
    cx_log *log = make(&p);
    REQUIRE(log != NULL);
    add(&p, log, 5, 3000);
    folder_fresh(old, "scan-old");
    CHECK_STATUS(cx_log_backup(log, old, &err), &err);
    add(&p, log, COMMITS - 5, 3000);
    cx_buf_init(&bytes, cx_alloc_default());
    (void)snprintf(path, sizeof path, "%s/000000.seg", p.folder);
    (void)snprintf(copy, sizeof copy, "%s/000000.seg", old);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), copy, SIZE_MAX, &bytes, &err), &err);
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), path, cx_buf_bytes(&bytes), &err), &err);
    count(&p, log, &whole, &damage, &offset);
    unsigned in_first = 0;
    for (unsigned i = 0; i < COMMITS; i++)
        in_first += p.m.frames.items[i].place.segment == 0;
    CHECK_INT(whole, COMMITS - in_first + 5);
    CHECK_INT(damage, 1);
    cx_log_close(log);
    cx_buf_done(&bytes);
    folder_remove(old);
    drop(&p);
}

/* Two copies of one home that went on by themselves: the commits are numbered alike, and a segment
 * of one does not pass in the other. */
CX_TEST(scan_refuses_a_segment_of_a_diverged_copy)
{
    place p;
    cx_err err;
    unsigned whole, damage;
    uint64_t offset = 0;
    char twin[FOLDER_PATH_SIZE], path[FOLDER_PATH_SIZE + 20], other[FOLDER_PATH_SIZE + 20];
    cx_buf bytes;
    cx_log *log = make(&p), *second;
    REQUIRE(log != NULL);
    add(&p, log, 1, 3000);
    folder_fresh(twin, "scan-twin");
    CHECK_STATUS(cx_log_backup(log, twin, &err), &err);
    REQUIRE(!cx_failed(cx_log_open(twin, &small, &second, NULL, &err)));
    add(&p, log, COMMITS - 1, 3000);
    p.m.acked = 1;
    add(&p, second, COMMITS - 1, 3000); /* as many and as long, with other contents */
    cx_log_close(second);
    count(&p, log, &whole, &damage, &offset);
    CHECK(whole == COMMITS && damage == 0);
    cx_buf_init(&bytes, cx_alloc_default());
    (void)snprintf(path, sizeof path, "%s/000000.seg", p.folder);
    (void)snprintf(other, sizeof other, "%s/000000.seg", twin);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), other, SIZE_MAX, &bytes, &err), &err);
    CHECK_STATUS(cx_io_replace_file(cx_io_system(), path, cx_buf_bytes(&bytes), &err), &err);
    count(&p, log, &whole, &damage, &offset);
    CHECK_INT(whole, COMMITS);
    CHECK_INT(damage, 1);
    cx_log_close(log);
    cx_buf_done(&bytes);
    folder_remove(twin);
    drop(&p);
}

/* A frame that is right in itself, at its place, and not the one that was committed. */
CX_TEST(scan_refuses_a_frame_that_the_mark_does_not_sum_up)
{
    place p;
    unsigned whole, damage;
    uint64_t offset = 0;
    uint8_t frame_bytes[CX_LOG_FRAME_HEAD_SIZE + 104], id[16];
    char path[FOLDER_PATH_SIZE + 20];
    cx_log *log = make(&p);
    REQUIRE(log != NULL);
    add(&p, log, 5, 100);
    cx_log_home_id(log, id);
    uint64_t at = p.m.frames.items[2].place.offset;
    memset(frame_bytes, 'x', sizeof frame_bytes);
    cx_log_frame frame = {cx_bytes_from(frame_bytes + 8, 100), {NULL, 0}};
    uint8_t encoded[sizeof frame_bytes];
    cx_log_frame_encode(&frame, cx_log_seed(id, 0), at, encoded);
    (void)snprintf(path, sizeof path, "%s/000000.seg", p.folder);
    int file = open(path, O_RDWR);
    REQUIRE(file >= 0);
    CHECK(pwrite(file, encoded, sizeof encoded, (off_t)at) == (ssize_t)sizeof encoded);
    (void)close(file);
    count(&p, log, &whole, &damage, &offset);
    CHECK_INT(whole, 4);
    CHECK_INT(damage, 1);
    CHECK_INT(offset, at);
    cx_log_close(log);
    drop(&p);
}
