/*
 * test_backup.c - copies made while others write and erase are logs of their own.
 */
#include "log/log.h"

#include <stdatomic.h>

#include "base/thread.h"
#include "tests/support/folder.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

static const cx_log_options small = {.segment_bytes = CX_LOG_SEGMENT_MIN};
static const cx_log_options reading = {.read_only = true};

static cx_log *fresh(char folder[FOLDER_PATH_SIZE], char copy[FOLDER_PATH_SIZE])
{
    cx_log *log = NULL;
    cx_err err;
    folder_fresh(folder, "backup");
    folder_fresh(copy, "backup-copy");
    CHECK_STATUS(cx_log_create(folder, &small, &err), &err);
    CHECK_STATUS(cx_log_open(folder, &small, &log, NULL, &err), &err);
    return log;
}

CX_TEST(backup_is_a_log_of_its_own)
{
    char folder[FOLDER_PATH_SIZE], copy[FOLDER_PATH_SIZE];
    const size_t sizes[2][2] = {{700, 90}, {2000, 0}};
    cx_log *log = fresh(folder, copy), *other, *reader;
    log_model m;
    cx_err err;
    cx_log_opened opened;
    uint64_t commit = 0;
    uint8_t id[16], again[16];
    REQUIRE(log != NULL);
    log_model_init(&m);
    for (int i = 0; i < 60; i++) {
        CHECK_STATUS(log_model_submit(&m, log, sizes, 2, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        log_model_ack(&m, commit);
    }
    CHECK_STATUS(cx_log_erase(log, m.frames.items[0].place, &err), &err);
    m.frames.items[0].erasure = MODEL_ERASED;
    REQUIRE(!cx_failed(cx_log_open(folder, &reading, &reader, NULL, &err)));
    for (int by_reader = 0; by_reader < 2; by_reader++) {
        CHECK_STATUS(cx_log_backup(by_reader ? reader : log, copy, &err), &err);
        CHECK_INT(cx_log_backup(log, copy, &err).code, CX_E_EXISTS);
        REQUIRE(!cx_failed(cx_log_open(copy, &small, &other, &opened, &err)));
        CHECK_INT(opened.commit_count, 60);
        CHECK_INT(opened.torn_bytes, 0);
        CHECK(log_model_check(&m, other, 60, true));
        cx_log_home_id(log, id);
        cx_log_home_id(other, again);
        CHECK(memcmp(id, again, sizeof id) == 0);
        /* It can be written to, and that touches nothing of the original. */
        size_t before = m.frames.count;
        CHECK_STATUS(log_model_submit(&m, other, sizes, 2, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(other, commit, &err), &err);
        CHECK(log_model_check(&m, other, 61, true));
        cx_log_close(other);
        m.frames.count = before;
        CHECK(log_model_check(&m, log, 60, true));
        folder_remove(copy);
    }
    cx_log_close(reader);
    cx_log_close(log);
    log_model_done(&m);
    folder_remove(folder);
}

typedef struct busy {
    cx_log *log;
    const char *copy;
    atomic_bool stop;
    atomic_uint failures;
} busy;

static void write_and_erase(busy *b)
{
    uint8_t bytes[5000];
    for (unsigned i = 0; !atomic_load(&b->stop); i++) {
        cx_err err;
        cx_log_place place;
        uint64_t commit;
        memset(bytes, (int)i, sizeof bytes);
        cx_log_frame frame = {cx_bytes_from(bytes, 1 + i % 900), cx_bytes_from(bytes, i % 5000)};
        if (cx_failed(cx_log_submit(b->log, &frame, 1, &place, &commit, &err)) ||
            cx_failed(cx_log_wait(b->log, commit, &err)) ||
            cx_failed(cx_log_erase(b->log, place, &err)))
            atomic_fetch_add(&b->failures, 1);
    }
}

/* Whole commits without gaps, every frame erased or as it was written. */
static void check_copy(const char *copy, uint64_t least)
{
    cx_log *log;
    cx_log_scan *scan;
    cx_err err;
    uint64_t next = 0;
    REQUIRE(!cx_failed(cx_log_open(copy, &reading, &log, NULL, &err)));
    REQUIRE(!cx_failed(cx_log_scan_begin(log, 0, &scan, &err)));
    for (;;) {
        cx_log_commit commit;
        bool end = true;
        CHECK_STATUS(cx_log_scan_next(scan, &commit, &end, &err), &err);
        if (end)
            break;
        CHECK_INT(commit.number, next++);
        for (size_t i = 0; i < commit.count; i++)
            CHECK(!commit.items[i].erasable_damaged);
    }
    CHECK(next >= least);
    cx_log_scan_end(scan);
    cx_log_close(log);
}

static void one_of_two(void *arg, unsigned index)
{
    busy *b = arg;
    if (index != 0) {
        write_and_erase(b);
        return;
    }
    for (int round = 0; round < 8; round++) {
        cx_err err;
        uint64_t least = cx_log_durable(b->log);
        CHECK_STATUS(cx_log_backup(b->log, b->copy, &err), &err);
        check_copy(b->copy, least);
        folder_remove(b->copy);
    }
    atomic_store(&b->stop, true);
}

CX_TEST(backup_while_others_write_and_erase)
{
    char folder[FOLDER_PATH_SIZE], copy[FOLDER_PATH_SIZE];
    busy b = {.log = fresh(folder, copy), .copy = copy};
    REQUIRE(b.log != NULL);
    cx_thread_team(4, one_of_two, &b);
    CHECK_INT(atomic_load(&b.failures), 0);
    cx_log_close(b.log);
    folder_remove(folder);
}
