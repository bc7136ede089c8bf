/*
 * compare.c - all rows of a tree in two databases, side by side.
 *
 * leaf and page are functions of the log, whatever the batches were.  The past is not: what it has
 * depends on when snapshots were dropped and swept.
 */
#include "pages/internal.h"

typedef struct side {
    cx_db_statement *rows;
    bool has_row;
} side;

static cx_status next_row(side *s, cx_err *err)
{
    return cx_db_step(s->rows, &s->has_row, err);
}

/* Order of two rows by their names, which are in the first `columns` columns: <0, 0, >0. */
static int order_of(const side *left, const side *right, bool leaves)
{
    if (!left->has_row || !right->has_row)
        return left->has_row ? -1 : right->has_row ? 1 : 0;
    if (leaves)
        return cx_str_cmp(cx_bytes_str(cx_db_bytes(left->rows, 0)),
                          cx_bytes_str(cx_db_bytes(right->rows, 0)));
    for (int column = 0; column < 2; column++) {
        int64_t a = cx_db_int(left->rows, column), b = cx_db_int(right->rows, column);
        if (a != b)
            return a < b ? -1 : 1;
    }
    return 0;
}

static bool is_row_equal(const side *left, const side *right, int columns)
{
    bool equal = true;
    for (int column = 0; column < columns; column++)
        equal = equal && cx_db_equal(left->rows, right->rows, column);
    return equal;
}

static cx_pages_difference difference_at(const side *left, const side *right, bool leaves,
                                         int order)
{
    const cx_db_statement *rows = order <= 0 ? left->rows : right->rows;
    cx_pages_difference d = {
        .table = leaves ? "leaf" : "page", .missing_left = order > 0, .missing_right = order < 0};
    cx_digest key = {{0}};
    if (leaves) {
        cx_bytes bytes = cx_db_bytes(rows, 0);
        if (bytes.size != 0)
            memcpy(key.bytes, bytes.data, bytes.size < 8 ? bytes.size : 8);
        d.prefix = smt_word(&key, 0);
    } else {
        d.level = (uint8_t)cx_db_int(rows, 0);
        d.prefix = cx_pages_prefix(rows, 1);
    }
    return d;
}

static cx_status compare_rows(side *left, side *right, bool leaves, bool *out_same,
                              cx_pages_difference *out, cx_err *err)
{
    *out_same = true;
    CX_TRY(next_row(left, err));
    CX_TRY(next_row(right, err));
    while (*out_same && (left->has_row || right->has_row)) {
        int order = order_of(left, right, leaves);
        *out_same = order == 0 && is_row_equal(left, right, leaves ? 3 : 5);
        if (!*out_same) {
            *out = difference_at(left, right, leaves, order);
            break;
        }
        CX_TRY(next_row(left, err));
        CX_TRY(next_row(right, err));
    }
    return CX_SUCCESS;
}

static cx_status compare_table(cx_db *left, cx_db *right, uint64_t tree, bool leaves,
                               bool *out_same, cx_pages_difference *out, cx_err *err)
{
    const char *sql = leaves ? "SELECT key, value, born FROM leaf WHERE tree=? ORDER BY key"
                             : "SELECT level, prefix, depth, hash, born FROM page WHERE tree=?"
                               " ORDER BY level, prefix";
    side a = {NULL, false}, b = {NULL, false};
    cx_status status;
    CX_TRY_GOTO(status, cx_db_prepare(left, sql, &a.rows, err));
    CX_TRY_GOTO(status, cx_db_prepare(right, sql, &b.rows, err));
    cx_db_bind_int(a.rows, 1, (int64_t)tree);
    cx_db_bind_int(b.rows, 1, (int64_t)tree);
    status = compare_rows(&a, &b, leaves, out_same, out, err);
done:
    cx_db_finish(a.rows);
    cx_db_finish(b.rows);
    return status;
}

CX_RESULT cx_pages_compare(cx_db *left, cx_db *right, uint64_t tree, bool *out_same,
                           cx_pages_difference *out, cx_err *err)
{
    CX_TRY(compare_table(left, right, tree, true, out_same, out, err));
    if (!*out_same)
        return CX_SUCCESS;
    return compare_table(left, right, tree, false, out_same, out, err);
}
