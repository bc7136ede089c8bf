/*
 * test_log_crash.c - power goes off at a random call, and of what was not synced the disk keeps
 * random pieces.  After each crash every acknowledged commit is there whole, the one that was being
 * written is there whole or not at all, and nothing else is.
 */
#include "log/log.h"

#include <stdlib.h>

#include "tests/support/disk.h"
#include "tests/support/log_model.h"
#include "tests/test.h"

typedef struct world {
    disk d;
    log_model m;
    cx_log_options options;
    uint64_t seed;
    bool created; /* cx_log_create said so */
} world;

static uint64_t pick(world *w, uint64_t below)
{
    return cx_test_random(&w->seed) % below;
}

static size_t pick_size(world *w)
{
    uint64_t kind = pick(w, 40);
    return (size_t)(kind == 0   ? 60000 + pick(w, 60000) /* a segment of its own */
                    : kind < 4  ? 5000 + pick(w, 20000)
                    : kind < 20 ? 1 + pick(w, 100)
                                : 1 + pick(w, 3000));
}

static void check_zeros_after(world *w, const cx_log_opened *opened)
{
    char path[40];
    uint64_t end = 4096; /* log.md §2.1 */
    (void)snprintf(path, sizeof path, "log/%06u.seg", (unsigned)opened->segment_count - 1);
    const cx_buf *file = disk_file(&w->d, path);
    REQUIRE(file != NULL);
    for (size_t i = 0; i < w->m.frames.count; i++) {
        const cx_log_place *p = &w->m.frames.items[i].place;
        if (p->segment == opened->segment_count - 1)
            end = p->offset + p->size_bytes + 32;
    }
    for (size_t i = (size_t)end; i < file->size; i++)
        if (file->data[i] != 0) {
            cx_test_fail(__FILE__, __LINE__, "byte %zu behind the end %llu is not zero", i,
                         (unsigned long long)end);
            return;
        }
}

/* A reader sees what the next writer will find, and changes nothing. */
static bool look_first(world *w, uint64_t *out_count)
{
    const cx_log_options reading = {.io = &w->d.io, .read_only = true};
    cx_log *log = NULL;
    cx_log_opened opened;
    cx_err err;
    *out_count = UINT64_MAX;
    cx_status status = cx_log_open("log", &reading, &log, &opened, &err);
    if (status.code == CX_E_NOT_FOUND && !w->created)
        return true;
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "does not open for reading: %s", err.message);
        return false;
    }
    *out_count = opened.commit_count;
    log_model_lose(&w->m, opened.commit_count);
    bool good = log_model_check(&w->m, log, opened.commit_count, false);
    cx_log_close(log);
    return good;
}

/* Opens what the crash left, and compares.  NULL when it differs. */
static cx_log *reopen(world *w)
{
    uint64_t seen = UINT64_MAX;
    if (pick(w, 2) == 0 && !look_first(w, &seen))
        return NULL;
    cx_log *log = NULL;
    cx_log_opened opened;
    cx_err err;
    cx_status status = cx_log_open("log", &w->options, &log, &opened, &err);
    if (status.code == CX_E_NOT_FOUND && !w->created) {
        status = cx_log_create("log", &w->options, &err);
        if (!cx_failed(status))
            status = cx_log_open("log", &w->options, &log, &opened, &err);
    }
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "does not open: %s", err.message);
        return NULL;
    }
    w->created = true;
    if (opened.commit_count < w->m.acked || opened.commit_count > w->m.acked + 1)
        cx_test_fail(__FILE__, __LINE__, "%llu commits, %llu acknowledged",
                     (unsigned long long)opened.commit_count, (unsigned long long)w->m.acked);
    if (seen != UINT64_MAX)
        CHECK_INT(opened.commit_count, seen);
    log_model_lose(&w->m, opened.commit_count);
    if (opened.commit_count > w->m.acked)
        log_model_ack(&w->m, opened.commit_count - 1);
    check_zeros_after(w, &opened);
    if (!log_model_check(&w->m, log, opened.commit_count, pick(w, 4) == 0)) {
        cx_log_close(log);
        return NULL;
    }
    return log;
}

static bool erase_one(world *w, cx_log *log, cx_err *err)
{
    if (w->m.acked_frames == 0)
        return true;
    model_frame *f = &w->m.frames.items[pick(w, w->m.acked_frames)];
    if (f->erasure == MODEL_LIVE)
        f->erasure = MODEL_TRIED;
    if (cx_failed(cx_log_erase(log, f->place, err)))
        return false;
    f->erasure = MODEL_ERASED;
    return true;
}

/* Random calls until one fails; at most `calls`. */
static void work(world *w, cx_log *log, int calls)
{
    cx_err err;
    bool good = true;
    for (int i = 0; i < calls && good; i++) {
        size_t sizes[4][2], count = 1 + (size_t)pick(w, 4);
        uint64_t commit;
        for (size_t k = 0; k < count; k++) {
            sizes[k][0] = pick_size(w);
            sizes[k][1] = pick(w, 3) == 0 ? pick_size(w) : 0;
        }
        good = !cx_failed(
            log_model_submit(&w->m, log, (const size_t(*)[2])sizes, count, &commit, &err));
        if (good && pick(w, 2) == 0)
            cx_log_start(log);
        if (good && pick(w, 3) != 0) {
            good = !cx_failed(cx_log_wait(log, commit, &err));
            if (good)
                log_model_ack(&w->m, commit);
        }
        /* A full segment makes the log wait by itself. */
        uint64_t durable = cx_log_durable(log);
        if (durable > w->m.acked)
            log_model_ack(&w->m, durable - 1);
        if (good && pick(w, 8) == 0)
            good = erase_one(w, log, &err);
    }
    if (!good && err.code != CX_E_IO)
        cx_test_fail(__FILE__, __LINE__, "%s", err.message);
}

static void live(uint64_t seed, int lives)
{
    world w = {.seed = seed};
    disk_init(&w.d, seed);
    log_model_init(&w.m);
    w.options.io = &w.d.io;
    w.options.segment_bytes = CX_LOG_SEGMENT_MIN;
    w.options.trail_bytes = 4000;
    cx_err err;
    if (pick(&w, 2) == 0)
        w.d.off_at = 1 + pick(&w, 12);
    w.created = !cx_failed(cx_log_create("log", &w.options, &err));
    for (int life = 0; life < lives; life++) {
        /* Sometimes only the program ends, and memory stays as it is. */
        if (pick(&w, 5) != 0)
            disk_crash(&w.d, pick(&w, 2) == 0 ? 512 : 4096);
        w.d.off_at = 0;
        cx_log *log = reopen(&w);
        if (log == NULL) {
            fprintf(stderr, "seed %llu, life %d\n", (unsigned long long)seed, life);
            break;
        }
        w.d.off_at = w.d.calls + 1 + pick(&w, pick(&w, 2) == 0 ? 8 : 80);
        work(&w, log, 60);
        cx_log_close(log);
        /* Opening can be cut short as well. */
        if (pick(&w, 3) == 0) {
            disk_crash(&w.d, 512);
            w.d.off_at = w.d.calls + 1 + pick(&w, 6);
            if (!cx_failed(cx_log_open("log", &w.options, &log, NULL, &err)))
                cx_log_close(log);
        }
    }
    log_model_done(&w.m);
    disk_done(&w.d);
}

CX_TEST(log_survives_crashes_that_keep_pieces)
{
    const char *given = getenv("CORTEX_CRASH_SEEDS");
    uint64_t count = given != NULL ? strtoull(given, NULL, 10) : 60;
    for (uint64_t i = 0; i < count; i++)
        live(cx_test_seed() + i * 1000003, 8);
}

/*
 * After a failed sync the bytes are in memory and not on the disk, and a later sync says nothing.
 * What opening counts must be on the disk all the same.
 */
CX_TEST(log_writes_again_what_a_failed_sync_left_in_memory)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        world w = {.seed = seed, .created = true};
        cx_err err;
        cx_log *log;
        uint64_t commit;
        static const size_t sizes[1][2] = {{1000, 50}};
        disk_init(&w.d, seed);
        log_model_init(&w.m);
        w.options = (cx_log_options){
            .io = &w.d.io, .segment_bytes = CX_LOG_SEGMENT_MIN, .trail_bytes = 4000};
        CHECK_STATUS(cx_log_create("log", &w.options, &err), &err);
        REQUIRE((log = reopen(&w)) != NULL);
        for (int i = 0; i < 3; i++) {
            CHECK_STATUS(log_model_submit(&w.m, log, sizes, 1, &commit, &err), &err);
            CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
            log_model_ack(&w.m, commit);
        }
        CHECK_STATUS(log_model_submit(&w.m, log, sizes, 1, &commit, &err), &err);
        w.d.sync_fails = true;
        CHECK_INT(cx_log_wait(log, commit, &err).code, CX_E_IO);
        CHECK_STR(cx_str_z(err.tag), "Poisoned");
        w.d.sync_fails = false;
        CHECK_INT(cx_log_wait(log, commit, &err).code, CX_E_IO);
        CHECK_INT(cx_log_submit(log, NULL, 0, NULL, &commit, &err).code, CX_E_USAGE);
        cx_log_frame frame = {cx_bytes_from("x", 1), {NULL, 0}};
        CHECK_INT(cx_log_submit(log, &frame, 1, NULL, &commit, &err).code, CX_E_IO);
        CHECK_STR(cx_str_z(err.tag), "Poisoned");
        CHECK_INT(cx_log_durable(log), 3);
        cx_log_close(log);
        /* The group is still to be read: it counts, and so it must be made durable. */
        REQUIRE((log = reopen(&w)) != NULL);
        CHECK_INT(w.m.acked, 4);
        cx_log_close(log);
        disk_crash(&w.d, 512);
        REQUIRE((log = reopen(&w)) != NULL);
        cx_log_close(log);
        log_model_done(&w.m);
        disk_done(&w.d);
    }
}
