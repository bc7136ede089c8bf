/*
 * store_compare.c - finds the differences between the tables of two stores, row by row in key
 * order.
 */
#include "ledger/find/hash_rows.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"
#include "ledger/store_internal.h"

#define ROWS_SHOWN 4096 /* progress is told once in so many */

typedef struct compared_table {
    const char *name;
    const char *sql;
    int column_count;
    int number_count; /* the order is that of these columns, or of a number and of bytes: 0 */
    bool of_trees;    /* the first column is the number of a tree, not of an actor */
    bool has_past;    /* rows of records: those of the past that nothing needs are left out */
} compared_table;

/* Rows of planned erasures are not derived from the log, so they are not compared. */
static const compared_table compared[] = {
    {"actors", "SELECT " CX_ACTOR_COLUMNS " FROM actors ORDER BY id, name", 12, 0, false, false},
    {"changed", "SELECT actor, roots FROM changed ORDER BY actor, roots", 2, 2, false, false},
    {"entry", "SELECT " CX_ENTRY_COLUMNS " FROM entry ORDER BY actor, seq", 10, 2, false, false},
    {"fold", "SELECT actor, level, number, hash FROM fold ORDER BY actor, level, number", 4, 3,
     false, false},
    {"hash_block", "SELECT 0, id, items FROM hash_block ORDER BY id", 3, 2, false, false},
    {"hash_new", "SELECT 0, head, actor, number, sum FROM hash_new ORDER BY head, actor, number", 5,
     4, false, false},
    {"leaf", "SELECT tree, key, value, born FROM leaf ORDER BY tree, key", 4, 0, true, false},
    {"page", "SELECT tree, level, prefix, depth, hash, born FROM page ORDER BY tree, level, prefix",
     6, 3, true, false},
    {"past",
     "SELECT actor, snapshot, memory_height, edge_height FROM past ORDER BY actor, snapshot", 4, 2,
     false, false},
    {"record",
     "SELECT actor, key, value FROM record WHERE NOT (key >= CAST('erase/' AS BLOB)"
     " AND key < CAST('erase0' AS BLOB)) ORDER BY actor, key",
     3, 0, false, true},
};

static int compare_names(const cx_db_statement *left, const cx_db_statement *right)
{
    int64_t a = cx_db_int(left, 0), b = cx_db_int(right, 0);
    if (a != b)
        return a < b ? -1 : 1;
    return cx_str_cmp(cx_bytes_str(cx_db_bytes(left, 1)), cx_bytes_str(cx_db_bytes(right, 1)));
}

/* The keys of numbered rows compare by value, not as text. */
static int compare_rows(const compared_table *table, const cx_db_statement *left,
                        const cx_db_statement *right)
{
    if (table->number_count == 0)
        return compare_names(left, right);
    for (int i = 0; i < table->number_count; i++) {
        int64_t a = cx_db_int(left, i), b = cx_db_int(right, i);
        if (a != b)
            return a < b ? -1 : 1;
    }
    return 0;
}

static bool rows_equal(const compared_table *table, const cx_db_statement *left,
                       const cx_db_statement *right)
{
    for (int i = 0; i < table->column_count; i++)
        if (!cx_db_equal(left, right, i))
            return false;
    return true;
}

typedef struct comparison {
    const compared_table *table;
    cx_db_statement *left, *right;
    cx_history_filter left_past, right_past;
    size_t left_calls; /* remaining calls of `differ` */
    uint64_t rows;     /* compared */
    const cx_store_comparison *with;
} comparison;

static cx_status report_difference(comparison *state, const cx_db_statement *row, const char *how,
                                   cx_err *err)
{
    if (state->left_calls == 0)
        return CX_SUCCESS;
    state->left_calls--;
    const int64_t first = cx_db_int(row, 0);
    return state->with->differ(state->with->arg, state->table->name,
                               state->table->of_trees ? first / 2 : first, cx_db_bytes(row, 1), how,
                               err);
}

/* The next row that is a function of the log (past/history.h G4). */
static cx_status next_row(const comparison *state, cx_db_statement *rows, cx_history_filter *past,
                          bool *out_more, cx_err *err)
{
    bool needed = false;
    while (!needed) {
        CX_TRY(cx_db_step(rows, out_more, err));
        if (!*out_more || !state->table->has_past)
            return CX_SUCCESS;
        CX_TRY(cx_history_is_needed(past, cx_db_int(rows, 0), cx_db_bytes(rows, 1), &needed, err));
    }
    return CX_SUCCESS;
}

static cx_status next_left(comparison *state, bool *out_more, cx_err *err)
{
    return next_row(state, state->left, &state->left_past, out_more, err);
}

static cx_status next_right(comparison *state, bool *out_more, cx_err *err)
{
    return next_row(state, state->right, &state->right_past, out_more, err);
}

static cx_status compare_table(comparison *state, cx_err *err)
{
    bool left = false, right = false;
    CX_TRY(next_left(state, &left, err));
    CX_TRY(next_right(state, &right, err));
    while (left || right) {
        int order = !left ? 1 : !right ? -1 : compare_rows(state->table, state->left, state->right);
        if (order < 0)
            CX_TRY(report_difference(state, state->left, "missing", err));
        else if (order > 0)
            CX_TRY(report_difference(state, state->right, "not in the log", err));
        else if (!rows_equal(state->table, state->left, state->right))
            CX_TRY(report_difference(state, state->left, "different", err));
        if (++state->rows % ROWS_SHOWN == 0 && state->with->compared != NULL)
            state->with->compared(state->with->arg, state->rows);
        if (order <= 0)
            CX_TRY(next_left(state, &left, err));
        if (order >= 0)
            CX_TRY(next_right(state, &right, err));
    }
    return CX_SUCCESS;
}

/* What the tables say about the number of their rows. */
static cx_status compare_counters(comparison *state, const cx_store *left, const cx_store *right,
                                  cx_err *err)
{
    const cx_store_counters *a = &left->counters, *b = &right->counters;
    if (state->left_calls == 0 || (a->actors == b->actors && a->entries == b->entries &&
                                   a->records == b->records && a->hashes == b->hashes))
        return CX_SUCCESS;
    state->left_calls--;
    return state->with->differ(state->with->arg, "meta", CX_ACTOR_HOME,
                               cx_str_bytes(CX_STR("rows")), "different", err);
}

static cx_status open_sides(comparison *state, cx_store *left, cx_store *right, cx_err *err)
{
    state->left = state->right = NULL;
    state->left_past = (cx_history_filter){.store = left};
    state->right_past = (cx_history_filter){.store = right};
    CX_TRY(cx_db_prepare(left->reading.db, state->table->sql, &state->left, err));
    return cx_db_prepare(right->reading.db, state->table->sql, &state->right, err);
}

static void close_sides(comparison *state)
{
    cx_db_finish(state->left);
    cx_db_finish(state->right);
    cx_history_filter_done(&state->left_past);
    cx_history_filter_done(&state->right_past);
}

cx_status cx_store_compare(cx_store *left, cx_store *right, const cx_store_comparison *how,
                           cx_err *err)
{
    comparison state = {.left_calls = how->max, .with = how};
    for (size_t i = 0; i < sizeof compared / sizeof *compared; i++) {
        state.table = &compared[i];
        cx_status status = open_sides(&state, left, right, err);
        if (!cx_failed(status))
            status = compare_table(&state, err);
        close_sides(&state);
        CX_TRY(status);
    }
    return compare_counters(&state, left, right, err);
}

/* --- some rows -------------------------------------------------------------------------------- */

static const compared_table one_record = {
    "record", "SELECT actor, key, value FROM record WHERE actor=?1 AND key=?2", 3, 0, false, false};
static const compared_table one_actor = {
    "actors", "SELECT " CX_ACTOR_COLUMNS " FROM actors WHERE id=?1", 12, 0, false, false};
static const compared_table one_journal = {
    "entry", "SELECT " CX_ENTRY_COLUMNS " FROM entry WHERE actor=?1 AND seq>=?2 ORDER BY seq",
    10,      2,
    false,   false};

cx_status cx_store_compare_record(cx_store *left, cx_store *right, int64_t actor, cx_bytes key,
                                  const cx_store_comparison *how, cx_err *err)
{
    comparison state = {.left_calls = how->max, .with = how, .table = &one_record};
    bool needed = true;
    CX_TRY(cx_history_needs(left, actor, key, &needed, err));
    if (!needed)
        return CX_SUCCESS;
    cx_status status = open_sides(&state, left, right, err);
    if (!cx_failed(status)) {
        cx_db_bind_int(state.left, 1, actor);
        cx_db_bind_bytes(state.left, 2, key);
        cx_db_bind_int(state.right, 1, actor);
        cx_db_bind_bytes(state.right, 2, key);
        status = compare_table(&state, err);
    }
    close_sides(&state);
    return status;
}

static const compared_table new_blocks = {
    "hash_block", "SELECT 0, id, items FROM hash_block WHERE id>=?1 ORDER BY id", 3, 2, false,
    false};
static const compared_table new_hashes = {
    "hash_new", "SELECT 0, head, actor, number, sum FROM hash_new ORDER BY head, actor, number",
    5,          4,
    false,      false};

cx_status cx_store_compare_hashes(cx_store *left, cx_store *right, uint64_t before,
                                  const cx_store_comparison *how, cx_err *err)
{
    comparison state = {.left_calls = how->max, .with = how, .table = &new_blocks};
    const int64_t first = (int64_t)(before / CX_HASH_BLOCK * CX_HASH_BLOCK_ROWS);
    cx_status status = open_sides(&state, left, right, err);
    if (!cx_failed(status)) {
        cx_db_bind_int(state.left, 1, first);
        cx_db_bind_int(state.right, 1, first);
        status = compare_table(&state, err);
    }
    close_sides(&state);
    CX_TRY(status);
    state.table = &new_hashes;
    status = open_sides(&state, left, right, err);
    if (!cx_failed(status))
        status = compare_table(&state, err);
    close_sides(&state);
    return status;
}

static cx_status compare_numbered(comparison *state, cx_store *left, cx_store *right, int64_t actor,
                                  const uint64_t *first, cx_err *err)
{
    cx_status status = open_sides(state, left, right, err);
    if (!cx_failed(status)) {
        cx_db_bind_int(state->left, 1, actor);
        cx_db_bind_int(state->right, 1, actor);
        if (first != NULL) {
            cx_db_bind_int(state->left, 2, (int64_t)*first);
            cx_db_bind_int(state->right, 2, (int64_t)*first);
        }
        status = compare_table(state, err);
    }
    close_sides(state);
    return status;
}

cx_status cx_store_compare_journal(cx_store *left, cx_store *right, int64_t actor, uint64_t first,
                                   const cx_store_comparison *how, cx_err *err)
{
    comparison state = {.left_calls = how->max, .with = how, .table = &one_actor};
    CX_TRY(compare_numbered(&state, left, right, actor, NULL, err));
    state.table = &one_journal;
    return compare_numbered(&state, left, right, actor, &first, err);
}

cx_status cx_store_compare_totals(cx_store *left, cx_store *right, const cx_store_comparison *how,
                                  cx_err *err)
{
    comparison state = {.left_calls = how->max, .with = how};
    return compare_counters(&state, left, right, err);
}
