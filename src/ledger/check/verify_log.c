/*
 * verify_log.c - the log from its first byte, or from where a kept verification ended: each frame
 * is checked, and its rows are derived.
 */
#include "ledger/check/verifier.h"

#include <stdio.h>

#include "base/api.h"

#define COMMITS_SHOWN 64 /* progress is told once in so many */

/* --- erasures -------------------------------------------------------------------------------- */

static cx_status mark_erased(cx_verifier *check, const cx_ledger_frame *frame,
                             const cx_entry *entry, bool half, cx_err *err)
{
    const cx_erased_mark mark = {frame->actor, entry->seq,
                                 !frame->committed && frame->has_subject ? &frame->subject : NULL};
    check->report->totals.erased++;
    check->report->totals.half_erased += half ? 1 : 0;
    return cx_erased_add(check->erased, &mark, err);
}

static cx_status explain_erased(cx_verifier *check, const cx_ledger_frame *frame,
                                const cx_entry *entry, cx_arena *arena, cx_err *err)
{
    cx_payload payload;
    bool redact = cx_str_is(entry->kind, "redact");
    if (!redact && !cx_str_is(entry->kind, "redact_memory"))
        return CX_SUCCESS;
    cx_status status =
        cx_payload_decode(cx_entry_kind_of(entry->kind), entry->payload, arena, &payload, NULL);
    if (cx_failed(status)) /* already reported, unless memory ran out */
        return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
    const cx_erased_mark target = {frame->actor, redact ? payload.as.redact.target_seq : 0,
                                   redact ? NULL : &payload.as.redact_memory.id};
    return cx_erased_explain(check->erased, &target, err);
}

cx_status cx_verify_unexplained(void *arg, cx_str actor, uint64_t seq, cx_err *err)
{
    char where[64];
    (void)snprintf(where, sizeof where, "seq %llu", (unsigned long long)seq);
    return cx_verify_report(arg, "payload", "PayloadMissing", actor, where,
                            "its content was overwritten, but no entry says who erased it and why",
                            err);
}

/* --- the log ---------------------------------------------------------------------------------- */

static cx_status check_item(cx_verifier *check, const cx_log_item *item, uint64_t commit,
                            cx_err *err)
{
    cx_home *home = check->home;
    cx_arena *arena = &check->arena;
    cx_err reason = {0};
    cx_ledger_frame frame;
    char where[64];
    (void)snprintf(where, sizeof where, "segment %lu offset %llu",
                   (unsigned long)item->place.segment, (unsigned long long)item->place.offset);
    /* A crash can leave a payload half erased; an entry must explain it like any other erasure. */
    if (item->erasable_damaged && !item->half_erased) {
        check->damaged = true;
        return cx_verify_report(check, "log", "LogDamaged", (cx_str){NULL, 0}, where,
                                "the erasable part is neither what was written nor erased", err);
    }
    cx_status decoded =
        cx_frame_decode(&item->frame, cx_frame_erased(item), arena, &frame, &reason);
    if (decoded.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(decoded)) {
        check->damaged = true;
        return cx_verify_report(check, "log", "LogDamaged", (cx_str){NULL, 0}, where,
                                reason.message, err);
    }
    cx_actor *actor = NULL;
    CX_TRY(cx_home_find_actor(home, frame.actor, &actor, err));
    cx_scheme scheme = actor != NULL ? actor->info.scheme : home->scheme;
    uint64_t before = check->report->totals.findings;
    CX_TRY(cx_home_check_frame(&frame, scheme, arena, &check->sink, err));
    cx_entry entry;
    if (frame.entry.size != 0 && !cx_failed(cx_entry_decode(frame.entry, &entry, NULL))) {
        check->report->totals.entries++;
        check->entries_read++;
        check->report->totals.payloads += frame.committed && !frame.erased ? 1 : 0;
        CX_TRY(explain_erased(check, &frame, &entry, arena, err));
        if (cx_frame_erased(item))
            CX_TRY(mark_erased(check, &frame, &entry, item->half_erased, err));
    }
    const cx_applied at = {.place = item->place, .commit = commit};
    cx_status status = cx_home_apply(home, &frame, &at, arena, &reason);
    if (status.code == CX_E_NOMEM || status.code == CX_E_IO)
        return cx_failed(status) ? cx_fail(err, status.code, "%s", reason.message) : status;
    if (cx_failed(status)) {
        check->damaged = true;
        return check->report->totals.findings != before
                   ? CX_SUCCESS
                   : cx_verify_report(check, "log", reason.tag != NULL ? reason.tag : "LogDamaged",
                                      frame.actor, where, reason.message, err);
    }
    return CX_SUCCESS;
}

/* What was read so far without a finding stays, also when the program is killed (K1). */
cx_status cx_verify_keep(cx_verifier *check, bool is_base, cx_err *err)
{
    const cx_home *home = check->home;
    cx_kept_point point = {.at = home->applied,
                           .commit = check->last_commit,
                           .commits = home->applied.commit + 1,
                           .entries = check->entries_read,
                           .based = check->from.based,
                           .base_hashes = check->from.base_hashes,
                           .reached_ns = (int64_t)home->io->wall_ns(home->io)};
    if (check->kept == NULL || check->report->totals.findings != 0)
        return CX_SUCCESS;
    point.has_home_root = cx_home_root_check_last(check->home_roots, &point.home_root);
    return cx_kept_save(check->kept, &point, is_base, err);
}

static cx_status stop_here(cx_verifier *check, cx_err *err)
{
    CX_TRY(cx_home_flush_now(check->home, err));
    CX_TRY(cx_verify_keep(check, false, err));
    const bool kept = check->kept != NULL && check->report->totals.findings == 0;
    return cx_fail_at(err, CX_E_BUSY, "Interrupted", CX_NO_OFFSET,
                      kept ? "interrupted after %llu commits, which are kept; the same command "
                             "continues there"
                           : "interrupted after %llu commits, of which nothing is kept",
                      (unsigned long long)(check->home->applied.commit + 1));
}

static bool is_stopped(const cx_verifier *check)
{
    const cx_home_verify_options *options = check->options;
    return options->go_on != NULL && !options->go_on(options->go_on_arg);
}

/* A point is of rows that are written, so a run that keeps them waits for each flush. */
static cx_status flush_in_between(cx_verifier *check, cx_err *err)
{
    if (check->kept == NULL)
        return cx_home_flush_aside(check->home, err);
    CX_TRY(cx_home_flush_now(check->home, err));
    return cx_verify_keep(check, false, err);
}

static cx_status check_commit(cx_verifier *check, const cx_log_commit *commit, cx_err *err)
{
    cx_home *home = check->home;
    if (check->kept != NULL)
        check->last_commit = cx_kept_commit_digest(commit);
    for (size_t i = 0; i < commit->count && !check->damaged; i++) {
        cx_arena_mark mark = cx_arena_mark_now(&check->arena);
        CX_TRY(check_item(check, &commit->items[i], commit->number, err));
        home->applied = (cx_position){commit->number, i + 1};
        cx_ledger_frame frame;
        if (!check->damaged) {
            CX_TRY(cx_frame_decode(&commit->items[i].frame, cx_frame_erased(&commit->items[i]),
                                   &check->arena, &frame, err));
            CX_TRY(cx_home_check_manifests(home, &frame, &check->arena, &check->sink, err));
            CX_TRY(cx_home_root_check_frame(check->home_roots, &frame, &check->arena, err));
        }
        cx_arena_reset(&check->arena, mark);
    }
    cx_home_totals *totals = &check->report->totals;
    totals->log_bytes = commit->bytes_done - check->bytes_before;
    if (totals->commits++ % COMMITS_SHOWN == 0)
        cx_verify_progress(check, "log", commit->bytes_done, commit->bytes_total, totals->entries);
    if (cx_home_is_flush_due(home))
        CX_TRY(flush_in_between(check, err));
    return !check->damaged && is_stopped(check) ? stop_here(check, err) : CX_SUCCESS;
}

/* K2: the commit at the point is the one that was verified. */
static cx_status check_point(cx_verifier *check, const cx_log_commit *commit, cx_err *err)
{
    const cx_digest digest = cx_kept_commit_digest(commit);
    char where[64];
    check->bytes_before = commit->bytes_done;
    if (commit->number == check->from.at.commit && commit->count == check->from.at.frames &&
        cx_digest_eq(&digest, &check->from.commit))
        return CX_SUCCESS;
    check->damaged = true;
    (void)snprintf(where, sizeof where, "commit %llu", (unsigned long long)check->from.at.commit);
    return cx_verify_report(
        check, "state", "Forked", (cx_str){NULL, 0}, where,
        "the commit is another one than the kept state was made at: the log was "
        "rewritten since, or the state is false; without a state everything is "
        "read",
        err);
}

/* The first commit of a run that continues. */
static cx_status take_commit(cx_verifier *check, const cx_log_commit *commit, cx_err *err)
{
    if (check->resumed && commit->number <= check->from.at.commit)
        return check_point(check, commit, err);
    return check_commit(check, commit, err);
}

static cx_status report_cut_before_state(cx_verifier *check, cx_err *err)
{
    char message[CX_ERR_MESSAGE_SIZE];
    check->damaged = true;
    (void)snprintf(message, sizeof message,
                   "the kept state was made at %llu commits, the log has %llu: it was cut, or the "
                   "state is false",
                   (unsigned long long)(check->from.at.commit + 1),
                   (unsigned long long)cx_log_durable(check->home->log));
    return cx_verify_report(check, "state", "Truncated", (cx_str){NULL, 0}, "log", message, err);
}

cx_status cx_verify_log(cx_verifier *check, cx_err *err)
{
    cx_log_scan *scan;
    if (check->resumed && check->from.at.commit >= cx_log_durable(check->home->log))
        return report_cut_before_state(check, err);
    CX_TRY(cx_log_scan_begin(check->home->log, check->from.at.commit, &scan, err));
    cx_status status = CX_SUCCESS;
    for (;;) {
        cx_log_commit commit;
        bool end = false;
        cx_err reason = {0};
        cx_status step = cx_log_scan_next(scan, &commit, &end, &reason);
        if (step.code == CX_E_FORMAT) {
            check->damaged = true;
            CX_TRY_GOTO(status, cx_verify_report(check, "log", "LogDamaged", (cx_str){NULL, 0},
                                                 "log", reason.message, err));
            continue;
        }
        if (cx_failed(step)) {
            if (err != NULL)
                *err = reason;
            status = step;
            break;
        }
        if (end)
            break;
        if (!check->damaged)
            CX_TRY_GOTO(status, take_commit(check, &commit, err));
    }
done:
    cx_log_scan_end(scan);
    return status;
}
