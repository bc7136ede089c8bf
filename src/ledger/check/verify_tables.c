/*
 * verify_tables.c - the tables of the data directory against those that were derived from its log.
 */
#include "ledger/check/verifier.h"

#include <stdio.h>

#include "base/api.h"

/* --- the home's tables ------------------------------------------------------------------------ */

typedef struct table_check {
    cx_verifier *check;
} table_check;

static cx_status table_differs(void *arg, const char *table, int64_t actor, cx_bytes key,
                               const char *how, cx_err *err)
{
    table_check *state = arg;
    char message[CX_ERR_MESSAGE_SIZE], hex[97];
    size_t shown = key.size < 48 ? key.size : 48;
    cx_hex_encode(cx_bytes_from(key.data, shown), hex);
    hex[2 * shown] = 0;
    (void)snprintf(message, sizeof message,
                   "a row of the tables is %s (key %s); the log is the truth: 'cortex tables"
                   " rebuild --replace' makes them anew",
                   how, hex);
    cx_home *home = state->check->home;
    cx_actor *of = NULL;
    if (actor >= 0 && (uint64_t)actor < home->actors.count)
        CX_TRY(cx_home_actor_numbered(home, actor, &of, err));
    return cx_verify_report(state->check, "table", "TableMismatch",
                            of != NULL ? of->info.name : (cx_str){NULL, 0}, table, message, err);
}

static void show_compared(void *arg, uint64_t rows)
{
    const cx_verifier *check = ((const table_check *)arg)->check;
    cx_verify_progress(check, "compared rows", rows, cx_store_rows_about(&check->home->store),
                       rows);
}

typedef struct changes_check {
    cx_verifier *check;
    cx_store *tables;
    cx_store_comparison how;
} changes_check;

static cx_status compare_changed_record(void *arg, int64_t actor, cx_bytes key, cx_err *err)
{
    const changes_check *changes = arg;
    if (actor == CX_ACTOR_HOME &&
        cx_str_starts(cx_bytes_str(key), CX_STR(CX_ERASE_PREFIX))) /* not of the log */
        return CX_SUCCESS;
    return cx_store_compare_record(&changes->check->home->store, changes->tables, actor, key,
                                   &changes->how, err);
}

static cx_status compare_changed_journal(void *arg, int64_t actor, uint64_t first, cx_err *err)
{
    const changes_check *changes = arg;
    return cx_store_compare_journal(&changes->check->home->store, changes->tables, actor, first,
                                    &changes->how, err);
}

static cx_status compare_changes(cx_verifier *check, cx_store *tables,
                                 const cx_store_comparison *how, cx_err *err)
{
    changes_check changes = {check, tables, *how};
    CX_TRY(cx_kept_each_record(check->kept, compare_changed_record, &changes, err));
    CX_TRY(cx_kept_each_journal(check->kept, compare_changed_journal, &changes, err));
    CX_TRY(cx_store_compare_hashes(&check->home->store, tables, check->from.base_hashes, how, err));
    return cx_store_compare_totals(&check->home->store, tables, how, err);
}

static cx_status note_tables(cx_verifier *check, const char *note, cx_err *err)
{
    check->report->totals.tables_note = cx_arena_copy_str(&check->report->arena, cx_str_z(note));
    return check->report->totals.tables_note.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status compare_tables(cx_verifier *check, cx_store *tables, cx_err *err)
{
    table_check state = {check};
    cx_err reason = {0};
    const cx_store_comparison how = {.max = check->report->finding_max,
                                     .differ = table_differs,
                                     .compared = show_compared,
                                     .arg = &state};
    cx_status status = check->from.based
                           ? compare_changes(check, tables, &how, &reason)
                           : cx_store_compare(&check->home->store, tables, &how, &reason);
    check->report->totals.tables_checked = true;
    if (!cx_failed(status))
        return CX_SUCCESS;
    if (status.code != CX_E_FORMAT)
        return cx_fail(err, status.code, "%s", reason.message);
    return cx_verify_report(check, "table", "DatabaseDamaged", (cx_str){NULL, 0}, "cortex.db",
                            reason.message, err);
}

/* Whether the log has reached `at`: a writer may append and flush while we verify. */
static bool log_has_reached(const cx_home *home, cx_position at)
{
    const cx_log_options options = {.alloc = home->alloc, .io = home->io, .read_only = true};
    cx_log_opened opened;
    cx_log *log;
    if (cx_failed(cx_log_open(home->log_path, &options, &log, &opened, NULL)))
        return false;
    uint64_t durable = cx_log_durable(log);
    cx_log_close(log);
    return at.commit + (at.frames != 0 ? 1 : 0) <= durable;
}

static void check_pages(void *arg)
{
    cx_verified_tables *stored = arg;
    cx_db *db = stored->store.reading.db;
    cx_db_borrow(db);
    stored->pages = cx_db_check(db, &stored->damage);
    cx_db_give_back(db);
}

void cx_verify_tables_begin(cx_verifier *check)
{
    cx_verified_tables *stored = &check->stored;
    stored->opened = cx_home_open_tables_to_check(check->home, &stored->store, &stored->there,
                                                  &stored->stale, &stored->why);
    /* With a base only rows are looked at that have changed since. */
    if (!stored->there || cx_failed(stored->opened) || check->from.based)
        return;
    cx_db_lend(stored->store.reading.db);
    if (cx_home_derive_threads(check->home) == 1 ||
        !cx_thread_start(&stored->thread, check_pages, stored))
        check_pages(stored);
}

void cx_verify_tables_end(cx_verifier *check)
{
    cx_verified_tables *stored = &check->stored;
    cx_thread_join(&stored->thread);
    if (stored->there && !cx_failed(stored->opened))
        cx_store_close(&stored->store);
    stored->there = false;
}

cx_status cx_verify_tables(cx_verifier *check, cx_err *err)
{
    cx_home *home = check->home;
    cx_verified_tables *stored = &check->stored;
    if (!stored->there)
        return note_tables(check, "there are no tables; they come back from the log", err);
    if (cx_failed(stored->opened)) {
        if (stored->opened.code == CX_E_FORMAT)
            return cx_verify_report(check, "table", "DatabaseDamaged", (cx_str){NULL, 0},
                                    "cortex.db", stored->why.message, err);
        return note_tables(check, stored->why.message, err);
    }
    cx_thread_join(&stored->thread);
    const cx_position at = stored->store.flushed, end = home->applied;
    cx_status status = stored->pages;
    if (status.code == CX_E_FORMAT)
        status = cx_verify_report(check, "table", "DatabaseDamaged", (cx_str){NULL, 0}, "cortex.db",
                                  stored->damage.message, err);
    else if (cx_failed(status))
        status = cx_fail(err, status.code, "%s", stored->damage.message);
    else if (stored->stale)
        status = note_tables(check,
                             "the tables were made by another version or for other derived"
                             " rows; they are rebuilt when the data directory is opened",
                             err);
    else if (cx_position_before(end, at) && log_has_reached(home, at))
        status = note_tables(check, "the tables were not compared: a writer changed them meanwhile",
                             err);
    else if (cx_position_before(end, at) && !check->damaged)
        status = cx_verify_report(
            check, "log", "LogCut", (cx_str){NULL, 0}, "cortex.db",
            "the tables know commits that the log does not have: the log was cut", err);
    else if (at.commit != end.commit || at.frames != end.frames)
        status = note_tables(check, "the tables lag the log and were not compared", err);
    else
        status = compare_tables(check, &stored->store, err);
    return status;
}
