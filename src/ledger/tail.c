/*
 * tail.c - reads the log frame by frame from a stored position.
 *
 * A tail reads only the log, so it sees durable frames only; an index that stores its position can
 * be continued by any process at any time.
 */
#include "base/api.h"
#include "ledger/internal.h"

struct cx_tail {
    cx_home *home;
    cx_log_scan *scan;
    cx_arena arena; /* of one frame */
    cx_arena_mark empty;
    cx_log_commit commit;
    bool has_commit;
    size_t next;   /* next frame of the commit */
    uint64_t skip; /* frames of the first commit that are before the start position */
};

void cx_home_id(const cx_home *home, uint8_t out[16])
{
    if (home->remote != NULL)
        cx_remote_home_id(home, out);
    else
        cx_log_home_id(home->log, out);
}

uint64_t cx_home_durable(cx_home *home)
{
    cx_tables_status writer = {0};
    if (home->remote != NULL)
        return cx_failed(cx_remote_tables_status(home, &writer, NULL)) ? 0 : writer.log_commits;
    return cx_log_durable(home->log);
}

cx_status cx_tail_begin(cx_home *home, cx_position from, cx_tail **out, cx_err *err)
{
    CX_ASSERT(home != NULL && out != NULL);
    if (home->remote != NULL)
        return cx_remote_unsupported(home, "following the log", err);
    uint64_t durable = cx_log_durable(home->log);
    if (from.commit > durable)
        return cx_fail_at(err, CX_E_FORMAT, "LogCut", CX_NO_OFFSET,
                          "the position is commit %llu, the log has %llu: the log was truncated or"
                          " replaced",
                          (unsigned long long)from.commit, (unsigned long long)durable);
    cx_tail *tail = cx_alloc_zeroed(home->alloc, 1, sizeof *tail);
    if (tail == NULL)
        return cx_fail_nomem(err);
    tail->home = home;
    tail->skip = from.frames;
    cx_arena_init(&tail->arena, home->alloc, 0);
    tail->empty = cx_arena_mark_now(&tail->arena);
    cx_status status = cx_log_scan_begin(home->log, from.commit, &tail->scan, err);
    if (cx_failed(status)) {
        cx_tail_end(tail);
        return status;
    }
    *out = tail;
    return CX_SUCCESS;
}

void cx_tail_end(cx_tail *tail)
{
    if (tail == NULL)
        return;
    if (tail->scan != NULL)
        cx_log_scan_end(tail->scan);
    cx_arena_done(&tail->arena);
    cx_alloc_free(tail->home->alloc, tail, sizeof *tail);
}

/* Loads a commit that has frames which were not returned yet. */
static cx_status load_next_commit(cx_tail *tail, bool *out_end, cx_err *err)
{
    *out_end = false;
    while (!tail->has_commit || tail->next >= tail->commit.count) {
        tail->has_commit = false;
        CX_TRY(cx_log_scan_next(tail->scan, &tail->commit, out_end, err));
        if (*out_end)
            return CX_SUCCESS;
        tail->has_commit = true;
        tail->next = (size_t)tail->skip;
        tail->skip = 0;
    }
    return CX_SUCCESS;
}

cx_status cx_tail_next(cx_tail *tail, cx_tail_item *out, bool *out_end, cx_err *err)
{
    CX_ASSERT(tail != NULL && out_end != NULL);
    CX_TRY(load_next_commit(tail, out_end, err));
    if (*out_end)
        return CX_SUCCESS;
    const cx_log_item *item = &tail->commit.items[tail->next];
    cx_arena_reset(&tail->arena, tail->empty);
    cx_ledger_frame frame;
    CX_TRY(cx_frame_decode(&item->frame, cx_frame_erased(item), &tail->arena, &frame, err));
    cx_tail_item found = {.actor = frame.actor,
                          .changes = frame.changes,
                          .change_count = frame.change_count,
                          .has_subject = frame.has_subject,
                          .subject = frame.subject};
    if (frame.entry.size != 0) {
        CX_TRY(cx_entry_decode(frame.entry, &found.entry, err));
        found.has_entry = true;
        found.payload = found.entry.committed ? frame.payload : found.entry.payload;
        found.erased = found.entry.committed && frame.erased;
    }
    tail->next++;
    found.position_after = (cx_position){tail->commit.number, tail->next};
    if (tail->next == tail->commit.count)
        found.position_after = (cx_position){tail->commit.number + 1, 0};
    *out = found;
    return CX_SUCCESS;
}
