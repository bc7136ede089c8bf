/*
 * since.c - what came after a checkpoint.
 */
#include "ledger/check/since.h"

#include <stdio.h>

#include "base/api.h"
#include "crypto/api.h"

#define COMMITS_SHOWN 64 /* progress is told once in so many */

typedef struct since_check {
    cx_home *home;
    const cx_home_verify_options *options;
    const cx_check_sink *sink;
    cx_home_totals *totals;
    cx_actor *actor; /* held */
    cx_mmr_edge edge;
    cx_arena arena;
    uint64_t bytes_before; /* of the log, that are not read */
    bool damaged;          /* what follows cannot be told */
} since_check;

static cx_status report(since_check *s, const char *check, const char *reason, const char *where,
                        const char *message, cx_err *err)
{
    s->damaged = true;
    return s->sink->found(s->sink->arg, check, reason, s->options->actor, where, message, err);
}

/* --- the edge at the checkpoint --------------------------------------------------------------- */

static cx_status read_edge(since_check *s, cx_err *err)
{
    const uint64_t size = s->options->since->size;
    cx_digest peaks[64];
    size_t count = 0;
    CX_TRY(cx_actor_journal_peaks(s->home, s->actor, size, peaks, &count, err));
    s->edge.size = size;
    if (!cx_vec_reserve(&s->edge.peaks, count + 1, s->home->alloc))
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(s->edge.peaks.items, peaks, count * sizeof *peaks);
    s->edge.peaks.count = count;
    return CX_SUCCESS;
}

static cx_status check_edge(since_check *s, cx_err *err)
{
    char where[64];
    cx_err reason = {0};
    (void)snprintf(where, sizeof where, "size %llu", (unsigned long long)s->options->since->size);
    if (s->actor->info.entry_count < s->options->since->size)
        return report(s, "anchor", "Truncated", where,
                      "the journal is shorter than the checkpoint: entries were cut off", err);
    cx_status status = read_edge(s, &reason);
    if (status.code == CX_E_FORMAT)
        return report(s, "table", "DatabaseDamaged", where, reason.message, err);
    if (cx_failed(status))
        return cx_fail(err, status.code, "%s", reason.message);
    const cx_digest root = cx_mmr_edge_root(&s->edge, s->actor->info.scheme);
    if (!cx_digest_eq(&root, &s->options->since->journal_root))
        return report(s, "anchor", "Forked", where,
                      "the journal's root at that size is another one than the checkpoint's: the "
                      "past was rewritten",
                      err);
    s->totals->anchored = true;
    return CX_SUCCESS;
}

/* --- the entries after it --------------------------------------------------------------------- */

static cx_status check_entry(since_check *s, const cx_log_item *item, const cx_ledger_frame *frame,
                             const cx_entry *entry, cx_err *err)
{
    char where[64];
    cx_mmr_fold folds[CX_MMR_FOLDS_MAX];
    size_t ignored = 0;
    const cx_digest leaf = cx_scheme_entry(frame->entry);
    (void)snprintf(where, sizeof where, "seq %llu", (unsigned long long)entry->seq);
    if (entry->seq != s->edge.size)
        return report(s, "journal", "LogDamaged", where,
                      "an entry's number does not follow its predecessor's", err);
    CX_TRY(cx_home_check_frame(frame, s->actor->info.scheme, &s->arena, s->sink, err));
    s->totals->entries++;
    s->totals->payloads += frame->committed && !frame->erased ? 1 : 0;
    s->totals->erased += cx_frame_erased(item) ? 1 : 0;
    return cx_mmr_edge_append(&s->edge, s->actor->info.scheme, s->home->alloc, &leaf, folds,
                              &ignored, err);
}

static cx_status check_item(since_check *s, const cx_log_item *item, cx_err *err)
{
    cx_ledger_frame frame;
    cx_entry entry;
    cx_err reason = {0};
    char where[64];
    (void)snprintf(where, sizeof where, "segment %lu offset %llu",
                   (unsigned long)item->place.segment, (unsigned long long)item->place.offset);
    cx_status status =
        cx_frame_decode(&item->frame, cx_frame_erased(item), &s->arena, &frame, &reason);
    if (!cx_failed(status) && !cx_str_eq(frame.actor, s->options->actor))
        return CX_SUCCESS;
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (!cx_failed(status) && frame.entry.size == 0)
        return CX_SUCCESS;
    if (!cx_failed(status))
        status = cx_entry_decode(frame.entry, &entry, &reason);
    if (cx_failed(status))
        return report(s, "log", "LogDamaged", where, reason.message, err);
    if (entry.seq < s->options->since->size)
        return CX_SUCCESS;
    if (item->erasable_damaged && !item->half_erased)
        return report(s, "log", "LogDamaged", where,
                      "the erasable part is neither what was written nor erased", err);
    return check_entry(s, item, &frame, &entry, err);
}

static cx_status check_commit(since_check *s, const cx_log_commit *commit, cx_err *err)
{
    const cx_home_options *options = &s->home->options;
    for (size_t i = 0; i < commit->count && !s->damaged; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&s->arena);
        CX_TRY(check_item(s, &commit->items[i], err));
        cx_arena_reset(&s->arena, mark);
    }
    if (s->totals->commits == 0)
        s->bytes_before = commit->bytes_done;
    s->totals->log_bytes = commit->bytes_done - s->bytes_before;
    if (s->totals->commits++ % COMMITS_SHOWN != 0)
        return CX_SUCCESS;
    if (options->counted != NULL)
        options->counted(options->progress_arg, s->totals->entries);
    if (options->progress != NULL)
        options->progress(options->progress_arg, "log", commit->bytes_done, commit->bytes_total);
    return CX_SUCCESS;
}

static cx_status read_commits(since_check *s, cx_log_scan *scan, cx_err *err)
{
    for (bool end = false; !s->damaged;) {
        cx_log_commit commit;
        cx_err reason = {0};
        cx_status status = cx_log_scan_next(scan, &commit, &end, &reason);
        if (status.code == CX_E_FORMAT)
            return report(s, "log", "LogDamaged", "log", reason.message, err);
        if (cx_failed(status))
            return cx_fail(err, status.code, "%s", reason.message);
        if (end || s->edge.size == s->actor->info.entry_count)
            break;
        CX_TRY(check_commit(s, &commit, err));
    }
    return CX_SUCCESS;
}

/* From the segment in which the tables say that the first one stands. */
static cx_status read_entries(since_check *s, cx_err *err)
{
    cx_entry_row first;
    cx_log_scan *scan;
    uint64_t commit = 0;
    if (s->edge.size == s->actor->info.entry_count)
        return CX_SUCCESS;
    CX_TRY(cx_store_get_entry(&s->home->store, s->actor->id, s->edge.size, &first, err));
    CX_TRY(cx_log_first_commit(s->home->log, first.place.segment, &commit, err));
    CX_TRY(cx_log_scan_begin(s->home->log, commit, &scan, err));
    cx_status status = read_commits(s, scan, err);
    cx_log_scan_end(scan);
    return status;
}

static cx_status compare_edges(since_check *s, cx_err *err)
{
    const cx_digest read = cx_mmr_edge_root(&s->edge, s->actor->info.scheme);
    const cx_digest now = cx_mmr_edge_root(&s->actor->edge, s->actor->info.scheme);
    char where[64];
    (void)snprintf(where, sizeof where, "size %llu", (unsigned long long)s->edge.size);
    if (s->edge.size == s->actor->info.entry_count && cx_digest_eq(&read, &now))
        return CX_SUCCESS;
    return report(
        s, "journal", "JournalMismatch", where,
        "the entries in the log after the checkpoint do not lead to the journal's root as "
        "the tables have it",
        err);
}

static cx_status check_journal(since_check *s, cx_err *err)
{
    CX_TRY(check_edge(s, err));
    if (!s->damaged)
        CX_TRY(read_entries(s, err));
    return s->damaged ? CX_SUCCESS : compare_edges(s, err);
}

cx_status cx_home_check_since(cx_home *home, const cx_home_verify_options *options,
                              const cx_check_sink *sink, cx_home_totals *totals, cx_err *err)
{
    since_check s = {.home = home, .options = options, .sink = sink, .totals = totals};
    if (home->store.shared)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoTables", CX_NO_OFFSET,
                          "there are no tables that are up to date, in which the way back to the "
                          "checkpoint could be seen; give --checkpoint in place of --since, which "
                          "reads everything");
    totals->since = true;
    totals->since_entries = options->since->size;
    cx_lock_enter(&home->lock);
    cx_status status = cx_home_need_actor(home, options->actor, &s.actor, err);
    if (!cx_failed(status)) {
        cx_arena_init(&s.arena, home->alloc, 0);
        cx_actor_hold(s.actor);
        totals->actors = 1;
        status = check_journal(&s, err);
        cx_actor_release(s.actor);
        cx_vec_done(&s.edge.peaks, home->alloc);
        cx_arena_done(&s.arena);
    }
    cx_lock_leave(&home->lock);
    return status;
}
