/*
 * verify.c - checks a whole data directory (ledger.md §11).
 *
 * V1  The log is read from its first byte; everything else is derived from it again, in a private
 *     database, and then compared with the stored tables.
 * V2  What could not be read is reported; nothing that was not checked is called verified.
 * V3  Nothing is written: files are opened for reading, no lock is taken.
 *
 * Truncating whole commits from the end leaves a shorter log that is valid in itself.  Only an
 * external anchor can show it: a checkpoint or a manifest that was stored elsewhere.
 */
#include "ledger/verify.h"

#include "base/api.h"
#include "ledger/check/since.h"
#include "ledger/check/verifier.h"

#define FINDINGS_MAX 1000

/* --- the whole -------------------------------------------------------------------------------- */

static cx_status store_roots(cx_verifier *check, cx_actor *actor, cx_err *err)
{
    cx_home_report *report = check->report;
    if (check->options->actor_max != 0 && report->actors.count >= check->options->actor_max)
        return CX_SUCCESS;
    cx_actor_info *info = cx_vec_push(&report->actors, report->alloc);
    cx_roots *roots = cx_vec_push(&report->roots, report->alloc);
    if (info == NULL || roots == NULL)
        return cx_fail_nomem(err);
    *info = actor->info;
    info->name = cx_arena_copy_str(&report->arena, actor->info.name);
    if (info->name.data == NULL)
        return cx_fail_nomem(err);
    return cx_actor_roots(check->home, actor, roots, err);
}

static cx_status count_home_root(cx_verifier *check, cx_err *err)
{
    cx_home_totals *totals = &check->report->totals;
    cx_actor *actor;
    totals->has_home_root = cx_home_root_check_last(check->home_roots, &totals->home_root);
    for (uint64_t i = 1; i < check->home->actors.count; i++) {
        CX_TRY(cx_home_actor_numbered(check->home, (int64_t)i, &actor, err));
        if (!cx_home_root_reserved(actor->info.name))
            totals->recorded += actor->info.entry_count;
        check->records +=
            actor->info.live_memories + actor->info.tombstoned + actor->info.edge_count;
    }
    return CX_SUCCESS;
}

static bool is_wanted(const cx_verifier *check, cx_str actor)
{
    return check->options->actor.size == 0 || cx_str_eq(check->options->actor, actor);
}

static cx_status list_journal(void *arg, int64_t actor, uint64_t first, cx_err *err)
{
    cx_verifier *check = arg;
    cx_actor *found;
    (void)first;
    CX_TRY(cx_home_actor_numbered(check->home, actor, &found, err));
    if (!is_wanted(check, found->info.name))
        return CX_SUCCESS;
    check->report->totals.actors++;
    return store_roots(check, found, err);
}

static cx_status check_changed_actors(cx_verifier *check, cx_err *err)
{
    CX_TRY(cx_kept_each_record(check->kept, cx_verify_record, check, err));
    return cx_kept_each_journal(check->kept, list_journal, check, err);
}

static cx_status check_actors(cx_verifier *check, cx_err *err)
{
    cx_str only = check->options->actor;
    if (check->from.based)
        return check_changed_actors(check, err);
    for (uint64_t i = 1; i < check->home->actors.count; i++) {
        cx_actor *actor;
        CX_TRY(cx_home_actor_numbered(check->home, (int64_t)i, &actor, err));
        if (!is_wanted(check, actor->info.name))
            continue;
        check->report->totals.actors++;
        cx_actor_hold(actor);
        cx_status status = cx_verify_state(check, actor, err);
        if (!cx_failed(status))
            status = store_roots(check, actor, err);
        cx_actor_release(actor);
        CX_TRY(status);
    }
    if (only.size != 0 && check->report->totals.actors == 0 && check->options->anchor_count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoActor", CX_NO_OFFSET,
                          "the data directory has no actor \"%.*s\"",
                          (int)(only.size < 80 ? only.size : 80), only.data);
    return CX_SUCCESS;
}

static cx_status verify_all(cx_verifier *check, cx_err *err)
{
    check->report->totals.torn_bytes = check->home->torn_bytes;
    CX_TRY(cx_verify_log(check, err));
    CX_TRY(cx_home_finish_derived(check->home, err));
    CX_TRY(cx_home_check_built(check->home, &check->sink, err));
    cx_verify_tables_begin(check);
    CX_TRY(cx_erased_each(check->erased, cx_verify_unexplained, check, err));
    CX_TRY(count_home_root(check, err));
    CX_TRY(check_actors(check, err));
    CX_TRY(cx_verify_tables(check, err));
    cx_verify_tables_end(check);
    CX_TRY(cx_verify_anchors(check, err));
    if (check->kept != NULL && cx_store_memtable_rows(&check->home->store) != 0)
        CX_TRY(cx_home_flush_now(check->home, err));
    /* K3: everything was looked at. */
    return cx_verify_keep(
        check, check->report->totals.tables_checked && check->options->actor.size == 0, err);
}

static void decide_verdict(const cx_verifier *check)
{
    cx_home_report *report = check->report;
    if (report->totals.findings != 0)
        report->verdict = CX_BROKEN;
    else if (check->options->require_anchored && !report->totals.anchored)
        report->verdict = CX_INDETERMINATE;
    else
        report->verdict = CX_HOLDS;
}

static cx_status open_kept(cx_verifier *check, const char *path, cx_err *err)
{
    const cx_home_options *options = &check->options->home;
    const char *state = check->options->state;
    const cx_io *io = options->io != NULL ? options->io : cx_io_system();
    cx_home_totals *totals = &check->report->totals;
    uint8_t id[16];
    bool stale = false;
    CX_TRY(cx_kept_make_file(io, state, err));
    CX_TRY(cx_home_open_kept(path, state, options, &check->home, &stale, err));
    cx_log_home_id(check->home->log, id);
    CX_TRY(cx_kept_open(&check->home->store, stale, id, &check->kept, &check->from, &check->resumed,
                        err));
    if (check->resumed) {
        check->entries_read = check->from.entries;
        check->last_commit = check->from.commit;
        totals->since = true;
        totals->since_commit = check->from.at.commit + 1;
        totals->since_entries = check->from.entries;
        totals->since_ns = check->from.reached_ns;
    }
    return cx_home_begin_kept(check->home, !check->resumed, err);
}

static cx_status open_parts(cx_verifier *check, const char *path, cx_err *err)
{
    const cx_alloc *alloc = check->report->alloc;
    CX_TRY(check->options->state != NULL
               ? open_kept(check, path, err)
               : cx_home_open_derived(path, NULL, false, &check->options->home, &check->home, err));
    CX_TRY(cx_home_root_check_open(check->home, &check->sink, &check->home_roots, err));
    if (check->resumed)
        CX_TRY(cx_home_root_check_resume(
            check->home_roots, check->from.has_home_root ? &check->from.home_root : NULL, err));
    return cx_erased_open(check->home->store.writing.db, !check->resumed, alloc, &check->erased,
                          err);
}

static cx_status verify_since(cx_verifier *check, const char *path, cx_err *err)
{
    cx_home_options options = check->options->home;
    CX_ASSERT(check->options->actor.size != 0 && check->options->state == NULL);
    options.read_only = true;
    CX_TRY(cx_home_open(path, &options, &check->home, err));
    return cx_home_check_since(check->home, check->options, &check->sink, &check->report->totals,
                               err);
}

cx_status cx_home_verify(const char *path, const cx_home_verify_options *options,
                         cx_home_report **out, cx_err *err)
{
    CX_ASSERT(path != NULL);
    const cx_alloc *alloc = options->home.alloc != NULL ? options->home.alloc : cx_alloc_default();
    for (size_t i = 0; i < options->anchor_count; i++)
        if (options->anchors[i].actor.size == 0 && options->actor.size == 0)
            return cx_fail(err, CX_E_USAGE,
                           "an anchor is about one actor's journal: name the actor");
    cx_home_report *report = cx_alloc_zeroed(alloc, 1, sizeof *report);
    if (report == NULL)
        return cx_fail_nomem(err);
    report->alloc = alloc;
    report->finding_max = options->finding_max != 0 ? options->finding_max : FINDINGS_MAX;
    cx_arena_init(&report->arena, alloc, 0);
    cx_verifier check = {.report = report, .options = options, .sink = {cx_report_add, report}};
    cx_arena_init(&check.arena, alloc, 0);
    cx_status status =
        options->since != NULL ? verify_since(&check, path, err) : open_parts(&check, path, err);
    if (!cx_failed(status) && options->since == NULL)
        status = verify_all(&check, err);
    if (!cx_failed(status))
        decide_verdict(&check);
    cx_verify_tables_end(&check);
    cx_erased_close(check.erased);
    cx_kept_close(check.kept);
    cx_home_root_check_close(check.home_roots);
    cx_home_close_derived(check.home);
    cx_arena_done(&check.arena);
    if (cx_failed(status))
        cx_home_report_close(report);
    else
        *out = report;
    return status;
}
