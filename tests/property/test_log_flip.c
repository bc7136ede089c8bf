/*
 * test_log_flip.c - every byte of a small log flipped, one at a time: reading it reports damage, or
 * the byte is one that is never read.  Contents that were not written are never given out.
 */
#include "log/log.h"

#include <stdlib.h>

#include "tests/support/disk.h"
#include "tests/test.h"

enum { COMMITS = 7 };

typedef struct outcome {
    unsigned whole;    /* commits that were shown */
    unsigned damaged;  /* reports, those of opening among them */
    unsigned erasable; /* frames with a damaged erasable part */
    bool wrong;        /* something was shown that was not written */
    uint64_t torn_bytes;
} outcome;

enum { LARGE = 2, ERASED = 1, BYTES_MAX = 60000 };

/* Commit 2 is so large that the next one begins a segment. */
static cx_bytes expected(unsigned commit, unsigned which, bool erasable, uint8_t out[BYTES_MAX])
{
    size_t size = erasable ? (which == 1 ? 150 + commit : 0) : 50 * (commit + 1) + which;
    if (commit == LARGE && which == 0 && !erasable)
        size = 59000;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(commit * 41 + which * 7 + (erasable ? 3u : 0u) + (i * i >> 3) + i);
    return cx_bytes_from(out, size);
}

static bool differs(cx_bytes got, unsigned commit, unsigned which, bool erasable)
{
    static uint8_t bytes[BYTES_MAX];
    cx_bytes right = expected(commit, which, erasable, bytes);
    return !cx_str_eq(cx_bytes_str(got), cx_bytes_str(right));
}

static void look_at(const cx_log_commit *commit, outcome *out)
{
    out->whole++;
    unsigned number = (unsigned)commit->number;
    if (number >= COMMITS || commit->count != 2) {
        out->wrong = true;
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        const cx_log_item *item = &commit->items[i];
        bool was_erased = number == ERASED && i == 1;
        out->wrong |= differs(item->frame.guarded, number, i, false);
        out->wrong |= item->erased && !was_erased;
        if (!item->erased && !item->erasable_damaged)
            out->wrong |= was_erased || differs(item->frame.erasable, number, i, true);
        out->erasable += item->erasable_damaged;
    }
}

static void read_all(cx_log *log, outcome *out)
{
    cx_log_scan *scan;
    cx_err err;
    bool end = false;
    if (cx_failed(cx_log_scan_begin(log, 0, &scan, &err))) {
        out->damaged++;
        return;
    }
    while (!end && out->damaged < 20) {
        cx_log_commit commit;
        if (cx_failed(cx_log_scan_next(scan, &commit, &end, &err)))
            out->damaged += err.code == CX_E_FORMAT || err.code == CX_E_UNSUPPORTED ? 1 : 100;
        else if (!end)
            look_at(&commit, out);
    }
    cx_log_scan_end(scan);
}

static outcome try_log(const cx_io *io, bool read_only)
{
    const cx_log_options options = {
        .io = io, .segment_bytes = CX_LOG_SEGMENT_MIN, .read_only = read_only};
    cx_log_opened opened = {0};
    cx_log *log;
    cx_err err;
    outcome out = {0};
    if (cx_failed(cx_log_open("log", &options, &log, &opened, &err))) {
        out.damaged = err.code == CX_E_FORMAT || err.code == CX_E_UNSUPPORTED ? 1 : 100;
        return out;
    }
    out.torn_bytes = opened.torn_bytes;
    read_all(log, &out);
    cx_log_close(log);
    return out;
}

/* Where bytes are that must be read, and the like. */
typedef struct map {
    uint64_t ends[2]; /* after the last mark of each segment */
    cx_log_place large;
    uint64_t last_at; /* where the last commit begins */
} map;

/* Seven commits of two frames over two segments, one frame erased. */
static bool write_log(const cx_io *io, map *out)
{
    const cx_log_options options = {.io = io, .segment_bytes = CX_LOG_SEGMENT_MIN};
    static uint8_t bytes[4][BYTES_MAX];
    cx_log *log;
    cx_err err;
    CHECK_STATUS(cx_log_create("log", &options, &err), &err);
    if (cx_failed(cx_log_open("log", &options, &log, NULL, &err)))
        return false;
    for (unsigned i = 0; i < COMMITS; i++) {
        cx_log_frame frames[2];
        cx_log_place places[2];
        uint64_t commit;
        for (unsigned k = 0; k < 2; k++) {
            frames[k].guarded = expected(i, k, false, bytes[2 * k]);
            frames[k].erasable = expected(i, k, true, bytes[2 * k + 1]);
        }
        CHECK_STATUS(cx_log_submit(log, frames, 2, places, &commit, &err), &err);
        CHECK_STATUS(cx_log_wait(log, commit, &err), &err);
        if (i == ERASED)
            CHECK_STATUS(cx_log_erase(log, places[1], &err), &err);
        if (i == LARGE)
            out->large = places[0];
        out->last_at = places[0].offset;
        out->ends[places[0].segment] = places[1].offset + places[1].size_bytes + 32;
    }
    cx_log_close(log);
    return true;
}

enum { FLIPS_STEP = 5 };

/* How far the next byte to be flipped is: each one where frames, marks and headers are, some of the
 * contents of the large frame and of the zeros. */
static size_t step(const map *m, unsigned segment, size_t at)
{
    bool zeros = (at >= 96 && at < 4080) || at >= m->ends[segment] + 64;
    bool contents = segment == 0 && at > m->large.offset + 64 &&
                    at < m->large.offset + m->large.size_bytes - 64;
    return zeros || contents ? 61 : cx_test_step(FLIPS_STEP);
}

static void check_outcome(const map *m, unsigned segment, size_t at, const outcome *seen)
{
    bool read = at < m->ends[segment];
    bool noticed = seen->damaged != 0 || seen->erasable != 0 || seen->torn_bytes != 0;
    if (seen->wrong || seen->damaged >= 100 || (read && !noticed) ||
        (!read && (seen->whole != COMMITS || seen->damaged + seen->erasable != 0)) ||
        (!noticed && seen->whole != COMMITS))
        cx_test_fail(__FILE__, __LINE__, "segment %u byte %zu: %u whole, %u damaged, %u erasable%s",
                     segment, at, seen->whole, seen->damaged, seen->erasable,
                     seen->wrong ? ", wrong contents" : "");
}

static void flip_all(disk *d, const map *m, bool vouched)
{
    static uint8_t saved[2][CX_LOG_SEGMENT_MIN];
    static const char *const names[2] = {"log/000000.seg", "log/000001.seg"};
    cx_buf *files[2] = {disk_file(d, names[0]), disk_file(d, names[1])};
    cx_buf *lock = disk_file(d, "log/lock");
    uint8_t count[12];
    REQUIRE(files[0] != NULL && files[1] != NULL && lock != NULL && lock->size == 36);
    memcpy(count, lock->data + 24, sizeof count);
    for (unsigned s = 0; s < 2; s++)
        memcpy(saved[s], files[s]->data, CX_LOG_SEGMENT_MIN);
    unsigned tries = 0;
    for (unsigned s = 0; s < 2; s++)
        for (size_t at = 0; at < CX_LOG_SEGMENT_MIN; at += step(m, s, at), tries++) {
            uint8_t bit = (uint8_t)(1u << (at * 5 + s) % 8);
            if (!vouched)
                memset(lock->data + 24, 0, 12);
            files[s]->data[at] ^= bit;
            outcome seen = try_log(&d->io, true);
            check_outcome(m, s, at, &seen);
            /* Opening for writing repairs, so it is not done each time. */
            if (tries % 5 == 0) {
                seen = try_log(&d->io, false);
                check_outcome(m, s, at, &seen);
                memcpy(lock->data + 24, count, sizeof count);
                memcpy(files[0]->data, saved[0], CX_LOG_SEGMENT_MIN);
                memcpy(files[1]->data, saved[1], CX_LOG_SEGMENT_MIN);
            } else {
                files[s]->data[at] ^= bit;
            }
        }
    CHECK(tries * cx_test_step(FLIPS_STEP) > 3000);
    memcpy(lock->data + 24, count, sizeof count);
}

CX_TEST(log_flip_of_every_byte_is_seen)
{
    disk d;
    map m = {0};
    disk_init(&d, cx_test_seed());
    REQUIRE(write_log(&d.io, &m));
    outcome seen = try_log(&d.io, true);
    CHECK(seen.whole == COMMITS && !seen.wrong && seen.damaged + seen.erasable == 0);
    flip_all(&d, &m, true);
    flip_all(&d, &m, false);
    seen = try_log(&d.io, false);
    CHECK(seen.whole == COMMITS && !seen.wrong && seen.damaged + seen.erasable == 0);
    disk_done(&d);
}
