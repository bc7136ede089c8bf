/*
 * rebuild.c - rebuilding the tables from the log (ledger.md §10.2).
 *
 * B1  The new database is filled next to the old one, under its own name, and replaces it with one
 *     rename; until then the old one is unchanged.
 * B2  An interrupted rebuild leaves a file with its position, and runs (store_runs.c); the next one
 *     continues from there.
 * B3  Manifests in the log must lead to the roots they name, and the old tables must be equal:
 *     differences are reported before anything is replaced.
 */
#include <stdio.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/verify.h"

#define NEW_NAME "/cortex.db.new"
#define COMMITS_SHOWN 64 /* progress is told once in so many */

typedef struct rebuild {
    cx_home *home;
    cx_arena arena;
    cx_rebuild_result result;
    cx_check_sink sink;
    char first[CX_ERR_MESSAGE_SIZE]; /* the first difference */
    uint64_t differences;
    uint64_t entries; /* of this run */
} rebuild;

static cx_status note_finding(void *arg, const char *check, const char *reason, cx_str actor,
                              const char *where, const char *message, cx_err *err)
{
    rebuild *work = arg;
    (void)check;
    (void)err;
    if (work->differences++ == 0)
        (void)snprintf(work->first, sizeof work->first, "%s at %s of \"%.*s\": %.180s", reason,
                       where, (int)(actor.size < 40 ? actor.size : 40),
                       actor.data != NULL ? actor.data : "", message);
    return CX_SUCCESS;
}

static cx_status note_row_difference(void *arg, const char *table, int64_t actor, cx_bytes key,
                                     const char *how, cx_err *err)
{
    rebuild *work = arg;
    (void)key;
    (void)err;
    if (work->differences++ == 0)
        (void)snprintf(work->first, sizeof work->first,
                       "a row of table %s of actor %lld in the old tables is %s", table,
                       (long long)actor, how);
    return CX_SUCCESS;
}

static void show_progress(const rebuild *work, const char *what, uint64_t done, uint64_t total,
                          uint64_t count)
{
    const cx_home_options *options = &work->home->options;
    if (options->counted != NULL)
        options->counted(options->progress_arg, count);
    if (options->progress != NULL)
        options->progress(options->progress_arg, what, done, total);
}

static void show_compared(void *arg, uint64_t rows)
{
    const rebuild *work = arg;
    show_progress(work, "compared rows", rows, cx_store_rows_about(&work->home->store), rows);
}

static cx_status derive_commit(rebuild *work, const cx_log_commit *commit, uint64_t skip,
                               cx_err *err)
{
    cx_home *home = work->home;
    for (size_t i = (size_t)(skip < commit->count ? skip : commit->count); i < commit->count; i++) {
        const cx_log_item *item = &commit->items[i];
        cx_arena_mark mark = cx_arena_mark_now(&work->arena);
        cx_ledger_frame frame;
        CX_TRY(cx_frame_decode(&item->frame, cx_frame_erased(item), &work->arena, &frame, err));
        const cx_applied at = {.place = item->place, .commit = commit->number};
        CX_TRY(cx_home_apply(home, &frame, &at, &work->arena, err));
        home->applied = (cx_position){commit->number, i + 1};
        work->entries += frame.entry.size != 0 ? 1 : 0;
        CX_TRY(cx_home_check_manifests(home, &frame, &work->arena, &work->sink, err));
        cx_arena_reset(&work->arena, mark);
    }
    if (work->result.commits++ % COMMITS_SHOWN == 0)
        show_progress(work, "tables", commit->bytes_done, commit->bytes_total, work->entries);
    return cx_home_is_flush_due(home) ? cx_home_flush_aside(home, err) : CX_SUCCESS;
}

static cx_status derive_all(rebuild *work, cx_err *err)
{
    cx_home *home = work->home;
    uint64_t skip = home->applied.frames;
    cx_log_scan *scan;
    CX_TRY(cx_log_scan_begin(home->log, home->applied.commit, &scan, err));
    cx_status status = CX_SUCCESS;
    for (;;) {
        cx_log_commit commit;
        bool end = false;
        CX_TRY_GOTO(status, cx_log_scan_next(scan, &commit, &end, err));
        if (end)
            break;
        CX_TRY_GOTO(status, derive_commit(work, &commit, skip, err));
        skip = 0;
    }
    CX_TRY_GOTO(status, cx_home_finish_derived(home, err));
    status = cx_home_check_built(home, &work->sink, err);
done:
    cx_log_scan_end(scan);
    return status;
}

/* Unreadable old tables are an error unless the caller replaces them anyway. */
static cx_status compare_with_old(rebuild *work, cx_rebuild_mode mode, cx_err *err)
{
    cx_store old;
    bool there = false, stale = false;
    cx_err reason = {0};
    cx_status status = cx_home_open_tables_to_check(work->home, &old, &there, &stale, &reason);
    work->result.changed = !there;
    if (!there)
        return CX_SUCCESS;
    work->result.changed = work->result.changed || cx_failed(status);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) && status.code != CX_E_FORMAT && mode != CX_REBUILD_REPLACE)
        return cx_fail(err, status.code, "the existing tables cannot be read: %s", reason.message);
    if (cx_failed(status))
        return note_finding(work, "table", "DatabaseDamaged", (cx_str){NULL, 0}, "cortex.db",
                            reason.message, err);
    work->result.changed = stale || old.flushed.commit != work->home->store.flushed.commit ||
                           old.flushed.frames != work->home->store.flushed.frames;
    if (!work->result.changed) {
        uint64_t before = work->differences;
        const cx_store_comparison how = {
            .max = 1000, .differ = note_row_difference, .compared = show_compared, .arg = work};
        status = cx_store_compare(&work->home->store, &old, &how, &reason);
        bool damaged = status.code == CX_E_FORMAT;
        if (cx_failed(status) && !damaged)
            status = cx_fail(err, status.code, "%s", reason.message);
        if (damaged)
            status = note_finding(work, "table", "DatabaseDamaged", (cx_str){NULL, 0}, "cortex.db",
                                  reason.message, err);
        work->result.changed = work->differences != before;
    }
    cx_store_close(&old);
    return status;
}

static void count_rows(rebuild *work)
{
    const cx_store_counters *rows = &work->home->store.counters;
    work->result.entries = rows->entries;
    work->result.records = rows->records;
}

/* Removes a database and its side files, if they exist. */
static void remove_database(const cx_io *io, const char *path)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal", CX_RUNS_ENDING};
    char name[4096];
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (snprintf(name, sizeof name, "%s%s", path, endings[i]) < (int)sizeof name)
            (void)io->unlink(io, name);
}

void cx_home_remove_new_tables(const cx_io *io, const char *path)
{
    char new_path[4096 - 8];
    if (snprintf(new_path, sizeof new_path, "%s" NEW_NAME, path) < (int)sizeof new_path)
        remove_database(io, new_path);
}

/* Closing checkpoints the write-ahead log into the file; if that failed, the file alone is
 * incomplete. */
static cx_status check_alone(const cx_io *io, const char *new_path, cx_err *err)
{
    char side[4096 + 8];
    cx_file file;
    uint64_t size = 0;
    bool regular;
    (void)snprintf(side, sizeof side, "%s-wal", new_path);
    if (io->open(io, side, CX_IO_READ, &file) != 0)
        return CX_SUCCESS;
    int failed = io->size(io, file, &size, &regular);
    (void)io->close(io, file);
    if (failed == 0 && size == 0)
        return CX_SUCCESS;
    return cx_fail(err, CX_E_IO,
                   "the new tables could not be finished: %s is left; the old ones"
                   " stay",
                   side);
}

/* What was merged into the new tables is no longer needed; left there, it would stay for good. */
static void remove_runs(const cx_io *io, const char *new_path)
{
    char side[4096 + 8];
    (void)snprintf(side, sizeof side, "%s" CX_RUNS_ENDING, new_path);
    (void)io->unlink(io, side);
}

/* Checkpoints the old database, so that it does not need its write-ahead log if we crash while
 * replacing it. */
static void checkpoint_old_database(const char *old_path)
{
    cx_db *old;
    if (!cx_failed(cx_db_open(old_path, CX_DB_WRITE, &old, NULL)))
        cx_db_close(old); /* a database too damaged to be opened needs no checkpoint */
}

static cx_status replace_database(const cx_io *io, const char *path, const char *new_path,
                                  cx_err *err)
{
    char old_path[4096];
    if (snprintf(old_path, sizeof old_path, "%s/cortex.db", path) >= (int)sizeof old_path)
        return cx_fail(err, CX_E_LIMIT, "the path of the data directory is too long");
    /* The old database's write-ahead log must not be applied to the new one. */
    char side[4096 + 8];
    checkpoint_old_database(old_path);
    (void)snprintf(side, sizeof side, "%s-wal", old_path);
    (void)io->unlink(io, side);
    (void)snprintf(side, sizeof side, "%s-shm", old_path);
    (void)io->unlink(io, side);
    CX_TRY(check_alone(io, new_path, err));
    remove_runs(io, new_path);
    int failed = io->rename(io, new_path, old_path);
    if (failed != 0)
        return cx_fail_os(err, -failed, "renaming %s to %s", new_path, old_path);
    return cx_io_sync_folder(io, path, err);
}

static cx_status run_rebuild(rebuild *work, cx_rebuild_mode mode, cx_err *err)
{
    CX_TRY(derive_all(work, err));
    if (mode != CX_REBUILD_VERIFY_ONLY)
        CX_TRY(cx_store_finish_derived(&work->home->store, err));
    count_rows(work);
    CX_TRY(compare_with_old(work, mode, err));
    if (work->differences == 0 || mode == CX_REBUILD_REPLACE)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_CONFLICT, "RootMismatch", CX_NO_OFFSET,
                      "the log gives other tables than the stored ones (%s); the old ones stay;"
                      " --replace takes the log's",
                      work->first);
}

cx_status cx_home_rebuild(const char *path, const cx_home_options *options, cx_rebuild_mode mode,
                          cx_rebuild_result *out, cx_err *err)
{
    CX_ASSERT(path != NULL);
    const cx_io *io = options->io != NULL ? options->io : cx_io_system();
    bool writes = mode != CX_REBUILD_VERIFY_ONLY;
    char new_path[4096];
    if (snprintf(new_path, sizeof new_path, "%s" NEW_NAME, path) >= (int)sizeof new_path)
        return cx_fail(err, CX_E_LIMIT, "the path of the data directory is too long");
    rebuild work = {.sink = {note_finding, &work}};
    CX_TRY(cx_home_open_derived(path, writes ? new_path : NULL, writes, options, &work.home, err));
    work.result.resumed = work.home->applied.commit != 0;
    cx_arena_init(&work.arena, work.home->alloc, 0);
    cx_status status = run_rebuild(&work, mode, err);
    cx_arena_done(&work.arena);
    /* The lock is held until the new database has its final name. */
    cx_home_close_derived_tables(work.home);
    if (!cx_failed(status) && writes)
        status = replace_database(io, path, new_path, err);
    else if (writes &&
             (status.code == CX_E_CONFLICT || (status.code == CX_E_FORMAT && work.result.resumed)))
        remove_database(io, new_path); /* the next run starts over */
    cx_home_close_derived(work.home);
    if (!cx_failed(status))
        *out = work.result;
    return status;
}
