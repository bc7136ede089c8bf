/*
 * repair.c - the rows below one page made again, from the true pairs or from the leaves.
 *
 * The pages are built as in build.c; the result must fold to the hash in the row above, which the
 * pages above it lead to (P4).  Rows that do not belong there are deleted.  Rows that do keep when
 * they came, so that snapshots see them as before.
 */
#include "pages/internal.h"

enum { REPAIR_ROWS = 256 };

typedef struct repairing {
    cx_pages *pages;
    const cx_pages_anchor *anchor;
    unsigned level;
    cx_page_want want;
    cx_digest first, last; /* keys of the range */
    cx_page_builder *builder;
    /* Rows that are there, a few at a time. */
    cx_smt_pair rows[REPAIR_ROWS];
    size_t row_count, row_at;
    bool rows_end;
    bool has_after; /* the rows after this key are still to be read */
    cx_digest after;
} repairing;

static cx_status fail_repair(const repairing *r, const char *what, cx_err *err)
{
    return cx_pages_fail_damage(r->pages, r->anchor, r->level, r->want.prefix, r->want.depth, false,
                                what, err);
}

/* What the row above says of the page. */
static cx_status find_want(repairing *r, uint64_t prefix, cx_err *err)
{
    const cx_page_source source = {.anchor = *r->anchor};
    const cx_digest key = page_prefix_key(prefix);
    r->want = (cx_page_want){.prefix = 0, .depth = 0, .hash = r->anchor->root};
    for (unsigned l = r->anchor->height; l > r->level; l--) {
        cx_page *page;
        CX_TRY(cx_pages_fetch(r->pages, &source, l, &r->want, 1, &page, err));
        size_t at = cx_page_cover(page, &key);
        if (at == page->item_count)
            return cx_fail(err, CX_E_NOT_FOUND, "the tree has no page of that prefix");
        const cx_page_item *item = &page->items[at];
        r->want = (cx_page_want){page_item_prefix(item), (uint8_t)item->depth, item->hash};
    }
    if (r->want.prefix != prefix)
        return cx_fail(err, CX_E_NOT_FOUND, "the tree has no page of that prefix");
    r->first = r->last = page_prefix_key(prefix);
    for (unsigned i = r->want.depth; i < SMT_DEPTH; i++)
        r->last.bytes[i / 8] |= (uint8_t)(0x80u >> i % 8);
    return CX_SUCCESS;
}

/* --- leaves ---------------------------------------------------------------------------------- */

/* The next rows.  Without its last byte, which is zero, the first key is before all of the
 * range. */
static cx_status load_rows(repairing *r, cx_err *err)
{
    cx_db_statement *s;
    bool row = true;
    CX_TRY(cx_pages_statement(r->pages, SQL_LEAVES_AFTER, &s, err));
    cx_db_bind_int(s, 1, (int64_t)r->anchor->tree);
    cx_db_bind_bytes(s, 2,
                     r->has_after ? cx_bytes_from(r->after.bytes, sizeof r->after.bytes)
                                  : cx_bytes_from(r->first.bytes, sizeof r->first.bytes - 1));
    cx_db_bind_bytes(s, 3, cx_bytes_from(r->last.bytes, sizeof r->last.bytes));
    cx_db_bind_int(s, 4, REPAIR_ROWS);
    for (r->row_count = r->row_at = 0; row; r->row_count += row) {
        CX_TRY(cx_db_step(s, &row, err));
        if (!row)
            break;
        cx_bytes key = cx_db_bytes(s, 0), value = cx_db_bytes(s, 1);
        cx_smt_pair *pair = &r->rows[r->row_count];
        memset(pair, 0, sizeof *pair);
        if (key.size != sizeof pair->key.bytes) {
            cx_db_reset(s);
            return fail_repair(r, "a row has a key that is not 32 bytes long", err);
        }
        memcpy(pair->key.bytes, key.data, key.size);
        if (value.size != 0)
            memcpy(pair->value.bytes, value.data, value.size < 32 ? value.size : 32);
    }
    r->rows_end = r->row_count < REPAIR_ROWS;
    if (r->row_count > 0) {
        r->after = r->rows[r->row_count - 1].key;
        r->has_after = true;
    }
    return CX_SUCCESS;
}

/* The next row that is there, or NULL. */
static cx_status peek_row(repairing *r, const cx_smt_pair **out, cx_err *err)
{
    if (r->row_at == r->row_count && !r->rows_end)
        CX_TRY(load_rows(r, err));
    *out = r->row_at < r->row_count ? &r->rows[r->row_at] : NULL;
    return CX_SUCCESS;
}

static cx_status delete_leaf(repairing *r, const cx_digest *key, cx_err *err)
{
    cx_db_statement *s;
    CX_TRY(cx_pages_statement(r->pages, SQL_DELETE_LEAF, &s, err));
    cx_db_bind_int(s, 1, (int64_t)r->anchor->tree);
    cx_db_bind_bytes(s, 2, cx_bytes_from(key->bytes, sizeof key->bytes));
    return cx_db_execute(s, err);
}

/* Keys of another length are none. */
static cx_status delete_no_keys(repairing *r, cx_err *err)
{
    cx_db_statement *s;
    CX_TRY(cx_pages_statement(r->pages, SQL_DELETE_NO_KEYS, &s, err));
    cx_db_bind_int(s, 1, (int64_t)r->anchor->tree);
    cx_db_bind_bytes(s, 2, cx_bytes_from(r->first.bytes, sizeof r->first.bytes));
    cx_db_bind_bytes(s, 3, cx_bytes_from(r->last.bytes, sizeof r->last.bytes));
    return cx_db_execute(s, err);
}

/* Deletes rows before `key`, or all that are left, and passes the one of that key. */
static cx_status delete_before(repairing *r, const cx_digest *key, cx_err *err)
{
    for (;;) {
        const cx_smt_pair *row;
        CX_TRY(peek_row(r, &row, err));
        int order = row == NULL   ? 1
                    : key == NULL ? -1
                                  : memcmp(row->key.bytes, key->bytes, sizeof key->bytes);
        if (order > 0)
            return CX_SUCCESS;
        if (order < 0)
            CX_TRY(delete_leaf(r, &row->key, err));
        r->row_at++;
        if (order == 0)
            return CX_SUCCESS;
    }
}

/* Rows that the builder has written must not be read as old ones: it is past them. */
static void pass_key(repairing *r, const cx_digest *key)
{
    if (!r->has_after || memcmp(r->after.bytes, key->bytes, sizeof key->bytes) < 0)
        r->after = *key;
    r->has_after = true;
}

static cx_status add_true_pairs(repairing *r, cx_pages_next *next, void *arg, cx_err *err)
{
    static const cx_digest absent = {{0}};
    cx_smt_pair pair, before;
    bool more, has_before = false;
    for (;;) {
        CX_TRY(next(arg, &pair, &more, err));
        if (!more)
            return delete_before(r, NULL, err);
        if (memcmp(pair.key.bytes, r->first.bytes, 32) < 0 ||
            memcmp(pair.key.bytes, r->last.bytes, 32) > 0 ||
            (has_before && memcmp(before.key.bytes, pair.key.bytes, 32) >= 0) ||
            cx_digest_eq(&pair.value, &absent))
            return cx_fail(err, CX_E_USAGE, "pairs must ascend below the prefix, none be absent");
        CX_TRY(delete_before(r, &pair.key, err));
        pass_key(r, &pair.key);
        CX_TRY(cx_page_builder_add(r->builder, &pair, err));
        before = pair;
        has_before = true;
    }
}

static cx_status add_rows(repairing *r, cx_err *err)
{
    for (;;) {
        const cx_smt_pair *row;
        CX_TRY(peek_row(r, &row, err));
        if (row == NULL)
            return CX_SUCCESS;
        CX_TRY(cx_page_builder_add(r->builder, row, err));
        r->row_at++;
    }
}

/* --- pages ----------------------------------------------------------------------------------- */

/* Deletes the rows of pages that were not made now. */
static cx_status delete_other_pages(repairing *r, unsigned level, const uint64_t *made,
                                    size_t count, cx_err *err)
{
    CX_VEC(uint64_t) found = {0};
    cx_db_statement *s;
    bool row = true;
    size_t at = 0;
    cx_status status;
    CX_TRY_GOTO(status, cx_pages_statement(r->pages, SQL_PREFIXES, &s, err));
    cx_db_bind_int(s, 1, (int64_t)r->anchor->tree);
    cx_db_bind_int(s, 2, level);
    cx_pages_bind_prefix(s, 3, r->want.prefix);
    cx_pages_bind_prefix(s, 4, r->want.prefix | ~page_mask(UINT64_MAX, r->want.depth));
    while (row) {
        CX_TRY_GOTO(status, cx_db_step(s, &row, err));
        uint64_t *prefix = row ? cx_vec_push(&found, r->pages->alloc) : NULL;
        if (prefix != NULL)
            *prefix = cx_pages_prefix(s, 0);
        else if (row) {
            cx_db_reset(s);
            status = cx_fail_nomem(err);
            goto done;
        }
    }
    CX_TRY_GOTO(status, cx_pages_statement(r->pages, SQL_REMOVE_PAGE, &s, err));
    for (size_t i = 0; i < found.count; i++) {
        while (at < count && made[at] < found.items[i])
            at++;
        if (at < count && made[at] == found.items[i])
            continue;
        cx_db_bind_int(s, 1, (int64_t)r->anchor->tree);
        cx_db_bind_int(s, 2, level);
        cx_pages_bind_prefix(s, 3, found.items[i]);
        CX_TRY_GOTO(status, cx_db_execute(s, err));
    }
done:
    cx_vec_done(&found, r->pages->alloc);
    return status;
}

static cx_status repair_range(repairing *r, cx_pages_next *next, void *arg, cx_page_made *made,
                              cx_err *err)
{
    const cx_page_item *items;
    size_t count;
    unsigned level;
    CX_TRY(delete_no_keys(r, err));
    if (next != NULL)
        CX_TRY(add_true_pairs(r, next, arg, err));
    else
        CX_TRY(add_rows(r, err));
    CX_TRY(cx_page_builder_end(r->builder, &items, &count, &level, err));
    if (count != 1 || items->depth != r->want.depth || !cx_digest_eq(&items->hash, &r->want.hash))
        return fail_repair(r,
                           next == NULL ? "its leaves do not fold to the hash above it"
                                        : "what it should have does not fold to the hash above it",
                           err);
    for (unsigned l = 0; l < r->level; l++)
        CX_TRY(delete_other_pages(r, l, made->levels[l].items, made->levels[l].count, err));
    return CX_SUCCESS;
}

CX_RESULT cx_pages_repair(cx_pages *pages, const cx_pages_anchor *anchor, uint8_t level,
                          uint64_t prefix, cx_pages_next *next, void *arg, uint64_t born,
                          cx_err *err)
{
    const cx_pages_moment moment = {.next_snapshot = born};
    cx_page_made *made = NULL;
    if (level > anchor->height || anchor->height > PAGE_HEIGHT_MAX)
        return cx_fail(err, CX_E_NOT_FOUND, "the tree has no level %u", level);
    repairing *r = cx_alloc_zeroed(pages->alloc, 1, sizeof *r);
    if (r == NULL)
        return cx_fail_nomem(err);
    *r = (repairing){.pages = pages, .anchor = anchor, .level = level};
    cx_status status;
    CX_TRY_GOTO(status, find_want(r, prefix, err));
    made = cx_alloc_zeroed(pages->alloc, 1, sizeof *made);
    if (made == NULL) {
        status = cx_fail_nomem(err);
        goto done;
    }
    const cx_page_sink sink = {.pages = pages, .moment = &moment, .made = made};
    CX_TRY_GOTO(status,
                cx_page_builder_open(&sink, anchor, r->want.depth, level, &r->builder, err));
    pages->repairing = true;
    status = repair_range(r, next, arg, made, err);
    pages->repairing = false;
done:
    cx_page_builder_close(r->builder);
    for (size_t l = 0; made != NULL && l < CX_COUNT_OF(made->levels); l++)
        cx_vec_done(&made->levels[l], pages->alloc);
    cx_alloc_free(pages->alloc, made, sizeof *made);
    cx_alloc_free(pages->alloc, r, sizeof *r);
    return status;
}
