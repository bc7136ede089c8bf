/*
 * log_model.c - frames made up from seeds, and a log compared with them.
 */
#include "tests/support/log_model.h"

#include "tests/test.h"

void log_model_init(log_model *m)
{
    *m = (log_model){0};
    cx_buf_init(&m->scratch, cx_alloc_default());
}

void log_model_done(log_model *m)
{
    cx_vec_done(&m->frames, cx_alloc_default());
    cx_buf_done(&m->scratch);
}

/* The bytes of a frame, guarded and erasable, after what scratch holds. */
static void make_bytes(cx_buf *scratch, const model_frame *f)
{
    uint64_t state = f->seed;
    size_t size = f->guarded_size + f->erasable_size;
    uint8_t *room = cx_buf_reserve(scratch, size + 8);
    CX_ASSERT(room != NULL);
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = cx_test_random(&state);
        memcpy(room + i, &word, sizeof word);
    }
    cx_buf_advance(scratch, size);
}

cx_status log_model_submit(log_model *m, cx_log *log, const size_t (*sizes)[2], size_t count,
                           uint64_t *out_commit, cx_err *err)
{
    enum { COUNT_MAX = 16 };
    static uint64_t seed = 1;
    cx_log_frame frames[COUNT_MAX] = {0};
    cx_log_place places[COUNT_MAX];
    size_t before = m->frames.count;
    CX_ASSERT(count <= COUNT_MAX);
    cx_buf_clear(&m->scratch);
    for (size_t i = 0; i < count; i++) {
        model_frame *f = cx_vec_push(&m->frames, cx_alloc_default());
        CX_ASSERT(f != NULL);
        *f = (model_frame){
            .seed = seed++ << 20, .guarded_size = sizes[i][0], .erasable_size = sizes[i][1]};
        make_bytes(&m->scratch, f);
    }
    const uint8_t *at = m->scratch.data;
    for (size_t i = 0; i < count; i++) {
        frames[i].guarded = cx_bytes_from(at, sizes[i][0]);
        frames[i].erasable = cx_bytes_from(at + sizes[i][0], sizes[i][1]);
        at += sizes[i][0] + sizes[i][1];
    }
    cx_status status = cx_log_submit(log, frames, count, places, out_commit, err);
    if (cx_failed(status))
        m->frames.count = before;
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        m->frames.items[before + i].commit = *out_commit;
        m->frames.items[before + i].place = places[i];
    }
    return status;
}

void log_model_ack(log_model *m, uint64_t commit)
{
    if (commit < m->acked)
        return;
    m->acked = commit + 1;
    while (m->acked_frames < m->frames.count && m->frames.items[m->acked_frames].commit <= commit)
        m->acked_frames++;
}

void log_model_lose(log_model *m, uint64_t commit_count)
{
    while (m->frames.count > m->acked_frames &&
           m->frames.items[m->frames.count - 1].commit >= commit_count)
        m->frames.count--;
}

/* --- comparing ----------------------------------------------------------------------------- */

static bool differs(const model_frame *f, const char *what)
{
    cx_test_fail(__FILE__, __LINE__, "commit %llu, segment %u byte %llu: %s",
                 (unsigned long long)f->commit, (unsigned)f->place.segment,
                 (unsigned long long)f->place.offset, what);
    return false;
}

static bool same(cx_bytes got, const uint8_t *expected, size_t size)
{
    return got.size == size && (size == 0 || memcmp(got.data, expected, size) == 0);
}

static bool check_frame(log_model *m, const model_frame *f, const cx_log_frame *got, bool erased,
                        bool spoilt)
{
    cx_buf_clear(&m->scratch);
    make_bytes(&m->scratch, f);
    if (!same(got->guarded, m->scratch.data, f->guarded_size))
        return differs(f, "other guarded bytes");
    if (f->erasure == MODEL_ERASED && f->erasable_size != 0 && !erased)
        return differs(f, "not erased");
    if (f->erasure == MODEL_LIVE && (erased || spoilt))
        return differs(f, erased ? "erased" : "the erasable part is damaged");
    if (!erased && !spoilt &&
        !same(got->erasable, m->scratch.data + f->guarded_size, f->erasable_size))
        return differs(f, "other erasable bytes");
    return true;
}

static bool check_commit(log_model *m, const cx_log_commit *c, size_t *at)
{
    for (size_t i = 0; i < c->count; i++, ++*at) {
        const cx_log_item *item = &c->items[i];
        if (*at >= m->frames.count) {
            cx_test_fail(__FILE__, __LINE__, "commit %llu has a frame that was never written",
                         (unsigned long long)c->number);
            return false;
        }
        const model_frame *f = &m->frames.items[*at];
        if (f->commit != c->number || f->place.offset != item->place.offset ||
            f->place.segment != item->place.segment ||
            f->place.size_bytes != item->place.size_bytes)
            return differs(f, "stands elsewhere");
        if (!check_frame(m, f, &item->frame, item->erased, item->erasable_damaged))
            return false;
    }
    return true;
}

static bool check_single(log_model *m, cx_log *log)
{
    cx_buf buf;
    bool good = true;
    cx_buf_init(&buf, cx_alloc_default());
    for (size_t i = 0; i < m->frames.count && good; i++) {
        const model_frame *f = &m->frames.items[i];
        cx_log_place place = f->place;
        cx_log_frame got;
        cx_err err;
        bool erased = false;
        if (i % 2 == 0)
            place.size_bytes = 0;
        cx_status status = cx_log_read(log, place, &buf, &got, &erased, &err);
        if (status.code == CX_E_FORMAT && f->erasure == MODEL_TRIED)
            continue;
        good = cx_failed(status) ? differs(f, err.message) : check_frame(m, f, &got, erased, false);
    }
    cx_buf_done(&buf);
    return good;
}

bool log_model_check(log_model *m, cx_log *log, uint64_t commit_count, bool single)
{
    cx_log_scan *scan;
    cx_log_commit commit;
    cx_err err;
    bool end = false, good = true;
    size_t at = 0;
    uint64_t number = 0;
    cx_status status = cx_log_scan_begin(log, 0, &scan, &err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "scan: %s", err.message);
        return false;
    }
    while (good) {
        status = cx_log_scan_next(scan, &commit, &end, &err);
        if (cx_failed(status))
            cx_test_fail(__FILE__, __LINE__, "after %llu commits: %s", (unsigned long long)number,
                         err.message);
        if (cx_failed(status) || end)
            break;
        good = commit.number == number++ && check_commit(m, &commit, &at) &&
               commit.bytes_done <= commit.bytes_total;
    }
    cx_log_scan_end(scan);
    if (good && !cx_failed(status) && (number != commit_count || at != m->frames.count)) {
        cx_test_fail(__FILE__, __LINE__, "%llu commits and %zu frames, expected %llu and %zu",
                     (unsigned long long)number, at, (unsigned long long)commit_count,
                     m->frames.count);
        good = false;
    }
    return good && !cx_failed(status) && (!single || check_single(m, log));
}
