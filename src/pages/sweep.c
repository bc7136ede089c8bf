/*
 * sweep.c - giving back what no retained snapshot sees, and dropping whole trees.
 *
 * A row of leaf_was or page_was is what snapshots in (until of the one before, until] see.  When a
 * row is deleted, the next one of the same name stands for its snapshots, too, of which none is
 * retained: so where a sweep goes on does not depend on what it deleted.
 */
#include "pages/internal.h"

/* A row that was looked at. */
typedef struct past_row {
    int64_t level, prefix, depth;
    uint64_t until;
    cx_digest key;
} past_row;

typedef CX_VEC(past_row) past_rows;

/* Whether one of the ascending numbers is in (after, until]; without `has_after` in [0, until]. */
static bool is_seen(const uint64_t *retained, size_t count, bool has_after, uint64_t after,
                    uint64_t until)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (has_after && retained[middle] <= after)
            low = middle + 1;
        else
            high = has_after ? middle : 0;
    }
    return low < count && retained[low] <= until;
}

static bool is_same_name(unsigned table, const past_row *a, const past_row *b)
{
    if (table == 0)
        return cx_digest_eq(&a->key, &b->key);
    return a->level == b->level && a->prefix == b->prefix && (table == 1 || a->depth == b->depth);
}

static void bind_position(cx_db_statement *s, uint64_t tree, unsigned table, const past_row *last,
                          bool inside, size_t rows_max)
{
    int64_t until = inside ? (int64_t)last->until : -1;
    cx_db_bind_int(s, 1, (int64_t)tree);
    if (table == 0) {
        cx_db_bind_bytes(s, 2, cx_bytes_from(last->key.bytes, inside ? sizeof last->key.bytes : 0));
        cx_db_bind_int(s, 3, until);
        cx_db_bind_int(s, 4, (int64_t)rows_max);
        return;
    }
    cx_db_bind_int(s, 2, inside ? last->level : -1);
    cx_db_bind_int(s, 3, inside ? last->prefix : INT64_MIN);
    cx_db_bind_int(s, 4, table == 1 ? until : inside ? last->depth : -1);
    cx_db_bind_int(s, 5, (int64_t)rows_max);
}

/* The next rows of a table, in order. */
static cx_status list_rows(cx_pages *pages, uint64_t tree, unsigned table, const past_row *last,
                           bool inside, size_t rows_max, past_rows *rows, cx_err *err)
{
    static const unsigned which[] = {SQL_SWEEP_LEAVES, SQL_SWEEP_PAGES, SQL_SWEEP_CUTS};
    cx_db_statement *s;
    bool more = true;
    CX_TRY(cx_pages_statement(pages, which[table], &s, err));
    bind_position(s, tree, table, last, inside, rows_max);
    while (more) {
        CX_TRY(cx_db_step(s, &more, err));
        if (!more)
            break;
        past_row *row = cx_vec_push(rows, pages->alloc);
        if (row == NULL) {
            cx_db_reset(s);
            return cx_fail_nomem(err);
        }
        *row = (past_row){.until = (uint64_t)cx_db_int(s, 0)};
        cx_bytes key = table == 0 ? cx_db_bytes(s, 1) : cx_bytes_from(NULL, 0);
        if (key.size == sizeof row->key.bytes)
            memcpy(row->key.bytes, key.data, key.size);
        row->level = table == 0 ? 0 : cx_db_int(s, 1);
        row->prefix = table == 0 ? 0 : cx_db_int(s, 2);
        row->depth = table == 2 ? cx_db_int(s, 3) : 0;
    }
    return CX_SUCCESS;
}

static cx_status drop_row(cx_pages *pages, uint64_t tree, unsigned table, const past_row *row,
                          cx_err *err)
{
    static const unsigned which[] = {SQL_DROP_LEAF_WAS, SQL_DROP_PAGE_WAS, SQL_DROP_CUT};
    cx_db_statement *s;
    CX_TRY(cx_pages_statement(pages, which[table], &s, err));
    cx_db_bind_int(s, 1, (int64_t)tree);
    if (table == 0) {
        cx_db_bind_bytes(s, 2, cx_bytes_from(row->key.bytes, sizeof row->key.bytes));
        cx_db_bind_int(s, 3, (int64_t)row->until);
    } else {
        cx_db_bind_int(s, 2, row->level);
        cx_db_bind_int(s, 3, row->prefix);
        cx_db_bind_int(s, 4, table == 1 ? (int64_t)row->until : row->depth);
    }
    return cx_db_execute(s, err);
}

static past_row position_row(const cx_pages_sweep_position *position)
{
    return (past_row){.level = position->level,
                      .prefix = position->prefix,
                      .depth = position->depth,
                      .until = position->until,
                      .key = position->key};
}

static cx_status sweep_table(cx_pages *pages, uint64_t tree, const uint64_t *retained, size_t count,
                             size_t rows_max, cx_pages_sweep_position *position, size_t *out_rows,
                             cx_err *err)
{
    past_rows rows = {0};
    past_row last = position_row(position);
    bool inside = position->inside;
    unsigned table = position->table;
    cx_status status;
    CX_TRY_GOTO(status, list_rows(pages, tree, table, &last, inside, rows_max, &rows, err));
    for (size_t i = 0; i < rows.count; i++) {
        const past_row *row = &rows.items[i];
        bool follows = table != 2 && inside && is_same_name(table, &last, row);
        if (!is_seen(retained, count, follows, last.until, row->until))
            CX_TRY_GOTO(status, drop_row(pages, tree, table, row, err));
        last = *row;
        inside = true;
    }
    *out_rows = rows.count;
    *position = (cx_pages_sweep_position){table,      inside,     last.level, last.prefix,
                                          last.depth, last.until, last.key};
done:
    cx_vec_done(&rows, pages->alloc);
    return status;
}

CX_RESULT cx_pages_sweep(cx_pages *pages, uint64_t tree, const uint64_t *retained, size_t count,
                         size_t rows_max, cx_pages_sweep_position *position, bool *out_done,
                         cx_err *err)
{
    size_t left = rows_max;
    while (position->table < 3 && left > 0) {
        size_t rows = 0;
        CX_TRY(sweep_table(pages, tree, retained, count, left, position, &rows, err));
        if (rows < left)
            *position = (cx_pages_sweep_position){.table = position->table + 1};
        left -= rows;
    }
    *out_done = position->table >= 3;
    if (*out_done)
        *position = (cx_pages_sweep_position){.table = 0};
    return CX_SUCCESS;
}

/* --- whole trees ----------------------------------------------------------------------------- */

CX_RESULT cx_pages_drop(cx_pages *pages, uint64_t tree, size_t rows_max, bool *out_done,
                        cx_err *err)
{
    static const char *const texts[] = {
        "DELETE FROM leaf WHERE (tree, key) IN"
        " (SELECT tree, key FROM leaf WHERE tree=?1 LIMIT ?2)",
        "DELETE FROM page WHERE (tree, level, prefix) IN"
        " (SELECT tree, level, prefix FROM page WHERE tree=?1 LIMIT ?2)",
        "DELETE FROM leaf_was WHERE (tree, key, until) IN"
        " (SELECT tree, key, until FROM leaf_was WHERE tree=?1 LIMIT ?2)",
        "DELETE FROM page_was WHERE (tree, level, prefix, until) IN"
        " (SELECT tree, level, prefix, until FROM page_was WHERE tree=?1 LIMIT ?2)",
        "DELETE FROM page_cut WHERE (tree, level, prefix, depth) IN"
        " (SELECT tree, level, prefix, depth FROM page_cut WHERE tree=?1 LIMIT ?2)",
    };
    int64_t left = rows_max > INT64_MAX ? INT64_MAX : (int64_t)rows_max;
    for (size_t t = 0; t < CX_COUNT_OF(texts) && left > 0; t++) {
        cx_db_statement *s;
        CX_TRY(cx_db_prepare(pages->db, texts[t], &s, err));
        cx_db_bind_int(s, 1, (int64_t)tree);
        cx_db_bind_int(s, 2, left);
        cx_status status = cx_db_execute(s, err);
        cx_db_finish(s);
        CX_TRY(status);
        left -= cx_db_changes(pages->db);
    }
    *out_done = left > 0;
    return CX_SUCCESS;
}
