/*
 * rows.c - the rows of trees: statements, pages read from them, changes written to them.
 *
 *     leaf(tree, key : value, born)                   value: 32 bytes; in matrix-1 followed by the
 *                                                     leaf's hash where it parts from its
 *                                                     neighbours
 *     page(tree, level, prefix : depth, hash, born)   level 0 = pages of leaves; depth 255: none
 *     any
 *                                                     more
 *     leaf_was(tree, key, until : value)              what snapshots up to `until` saw of a row
 *     page_was(tree, level, prefix, until : depth, hash)
 *     page_cut(tree, level, prefix, depth : until, names)  what a page had when it was cut: keys of
 *                                                     32 bytes, or prefixes of 8
 *
 * A prefix is stored as a signed number in the order of its bits: minus 2^63.
 *
 *   S1  Before a row that the newest retained snapshot S sees is changed, its content goes to *_was
 *       with until = S, unless one with until >= S is there.
 *   S2  Snapshot T sees of a row: nothing when born > T; else the first *_was with until >= T; else
 *       the row.
 *   S3  It sees of a page the rows of its range, when the page still is one, else those that
 *       page_cut names; each as in S2.
 */
#include "pages/internal.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS leaf(tree INTEGER NOT NULL, key BLOB NOT NULL,"
    " value BLOB NOT NULL, born INTEGER NOT NULL, PRIMARY KEY(tree, key)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS page(tree INTEGER NOT NULL, level INTEGER NOT NULL,"
    " prefix INTEGER NOT NULL, depth INTEGER NOT NULL, hash BLOB NOT NULL, born INTEGER NOT NULL,"
    " PRIMARY KEY(tree, level, prefix)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS leaf_was(tree INTEGER NOT NULL, key BLOB NOT NULL,"
    " until INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY(tree, key, until)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS page_was(tree INTEGER NOT NULL, level INTEGER NOT NULL,"
    " prefix INTEGER NOT NULL, until INTEGER NOT NULL, depth INTEGER NOT NULL,"
    " hash BLOB NOT NULL, PRIMARY KEY(tree, level, prefix, until)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS page_cut(tree INTEGER NOT NULL, level INTEGER NOT NULL,"
    " prefix INTEGER NOT NULL, depth INTEGER NOT NULL, until INTEGER NOT NULL,"
    " names BLOB NOT NULL, PRIMARY KEY(tree, level, prefix, depth)) WITHOUT ROWID;";

#define THIS_PAGE "tree=?1 AND level=?2 AND prefix=?3"

static const char *const texts[SQL_COUNT] = {
    [SQL_LEAVES] = "SELECT key, value FROM leaf WHERE tree=?1 AND key>=?2 AND key<=?3 AND born<=?4"
                   " ORDER BY key",
    [SQL_LEAF] = "SELECT value FROM leaf WHERE tree=?1 AND key=?2 AND born<=?3",
    [SQL_PUT_LEAF] = "INSERT INTO leaf VALUES(?1,?2,?3,?4) ON CONFLICT(tree, key) DO UPDATE SET"
                     " value=excluded.value, born=excluded.born",
    [SQL_SET_LEAF] = "UPDATE leaf SET value=?3 WHERE tree=?1 AND key=?2",
    [SQL_KEEP_LEAF] = "INSERT INTO leaf_was SELECT tree, key, ?3, value FROM leaf WHERE tree=?1 AND"
                      " key=?2 AND born<=?3 AND NOT EXISTS(SELECT 1 FROM leaf_was WHERE tree=?1 AND"
                      " key=?2 AND until>=?3)",
    [SQL_PAGES] = "SELECT prefix, depth, hash FROM page WHERE tree=?1 AND level=?2 AND prefix>=?3"
                  " AND prefix<=?4 AND born<=?5 ORDER BY prefix",
    [SQL_PAGE] = "SELECT depth, hash FROM page WHERE " THIS_PAGE " AND born<=?4",
    [SQL_PUT_PAGE] = "INSERT INTO page VALUES(?1,?2,?3,?4,?5,?6) ON CONFLICT(tree, level, prefix)"
                     " DO UPDATE SET depth=excluded.depth, hash=excluded.hash",
    [SQL_SET_PAGE] = "UPDATE page SET depth=?4, hash=?5 WHERE " THIS_PAGE,
    [SQL_KEEP_PAGE] = "INSERT INTO page_was SELECT tree, level, prefix, ?4, depth, hash FROM page"
                      " WHERE " THIS_PAGE " AND born<=?4 AND NOT EXISTS(SELECT 1 FROM page_was"
                      " WHERE " THIS_PAGE " AND until>=?4)",
    [SQL_DELETE_PAGE] = "DELETE FROM page WHERE " THIS_PAGE " AND born>=?4",
    [SQL_PREFIXES] = "SELECT prefix FROM page WHERE tree=?1 AND level=?2 AND prefix>=?3 AND"
                     " prefix<=?4 ORDER BY prefix",
    [SQL_KEEP_CUT] = "INSERT OR IGNORE INTO page_cut SELECT ?1,?2,?3,?4,?5,?6 WHERE ?7 OR"
                     " EXISTS(SELECT 1 FROM page WHERE " THIS_PAGE " AND born<=?5)",
    [SQL_LEAF_THEN] = "SELECT value FROM leaf_was WHERE tree=?1 AND key=?2 AND until>=?3"
                      " ORDER BY until LIMIT 1",
    [SQL_PAGE_THEN] = "SELECT depth, hash FROM page_was WHERE " THIS_PAGE " AND until>=?4"
                      " ORDER BY until LIMIT 1",
    [SQL_LEAVES_THEN] = "SELECT until, key, value FROM leaf_was WHERE tree=?1 AND key>=?2 AND"
                        " key<=?3 ORDER BY key, until LIMIT ?4",
    [SQL_PAGES_THEN] = "SELECT until, prefix, depth, hash FROM page_was WHERE tree=?1 AND level=?2"
                       " AND prefix>=?3 AND prefix<=?4 ORDER BY prefix, until LIMIT ?5",
    [SQL_CUT] = "SELECT names FROM page_cut WHERE " THIS_PAGE " AND depth=?4",
    [SQL_SWEEP_LEAVES] = "SELECT until, key FROM leaf_was WHERE tree=?1 AND (key, until)>(?2, ?3)"
                         " ORDER BY key, until LIMIT ?4",
    [SQL_SWEEP_PAGES] = "SELECT until, level, prefix FROM page_was WHERE tree=?1 AND"
                        " (level, prefix, until)>(?2, ?3, ?4) ORDER BY level, prefix, until"
                        " LIMIT ?5",
    [SQL_SWEEP_CUTS] =
        "SELECT until, level, prefix, depth FROM page_cut WHERE tree=?1 AND"
        " (level, prefix, depth)>(?2, ?3, ?4) ORDER BY level, prefix, depth LIMIT ?5",
    [SQL_DROP_LEAF_WAS] = "DELETE FROM leaf_was WHERE tree=?1 AND key=?2 AND until=?3",
    [SQL_DROP_PAGE_WAS] = "DELETE FROM page_was WHERE " THIS_PAGE " AND until=?4",
    [SQL_DROP_CUT] = "DELETE FROM page_cut WHERE " THIS_PAGE " AND depth=?4",
    [SQL_DELETE_LEAF] = "DELETE FROM leaf WHERE tree=?1 AND key=?2",
    [SQL_REMOVE_PAGE] = "DELETE FROM page WHERE " THIS_PAGE " AND depth<>255",
    [SQL_LEAVES_AFTER] = "SELECT key, value FROM leaf WHERE tree=?1 AND key>?2 AND key<=?3"
                         " ORDER BY key LIMIT ?4",
    [SQL_REPAIR_LEAF] = "INSERT INTO leaf VALUES(?1,?2,?3,?4) ON CONFLICT(tree, key) DO UPDATE SET"
                        " value=excluded.value",
    [SQL_DELETE_NO_KEYS] = "DELETE FROM leaf WHERE tree=?1 AND key>=?2 AND key<=?3 AND"
                           " length(key)<>32",
};

CX_RESULT cx_pages_create_tables(cx_db *db, cx_err *err)
{
    return cx_db_run(db, schema, err);
}

CX_RESULT cx_pages_statement(cx_pages *pages, unsigned which, cx_db_statement **out, cx_err *err)
{
    if (pages->statements[which] == NULL)
        CX_TRY(cx_db_prepare(pages->db, texts[which], &pages->statements[which], err));
    *out = pages->statements[which];
    return CX_SUCCESS;
}

void cx_pages_bind_prefix(cx_db_statement *statement, int index, uint64_t prefix)
{
    uint64_t shifted = prefix ^ UINT64_C(1) << 63;
    int64_t value;
    memcpy(&value, &shifted, sizeof value);
    cx_db_bind_int(statement, index, value);
}

uint64_t cx_pages_prefix(const cx_db_statement *statement, int column)
{
    int64_t value = cx_db_int(statement, column);
    uint64_t shifted;
    memcpy(&shifted, &value, sizeof shifted);
    return shifted ^ UINT64_C(1) << 63;
}

/* ?1 tree, ?2 level, ?3 prefix. */
static void bind_page(cx_db_statement *s, uint64_t tree, unsigned level, uint64_t prefix)
{
    cx_db_bind_int(s, 1, (int64_t)tree);
    cx_db_bind_int(s, 2, level);
    cx_pages_bind_prefix(s, 3, prefix);
}

static void bind_leaf(cx_db_statement *s, uint64_t tree, const cx_digest *key)
{
    cx_db_bind_int(s, 1, (int64_t)tree);
    cx_db_bind_bytes(s, 2, cx_bytes_from(key->bytes, sizeof key->bytes));
}

/* --- damage ---------------------------------------------------------------------------------- */

CX_RESULT cx_pages_fail_damage(cx_pages *pages, const cx_pages_anchor *anchor, unsigned level,
                               uint64_t prefix, unsigned depth, bool past, const char *what,
                               cx_err *err)
{
    pages->damaged = true;
    pages->damage = (cx_pages_damage){.tree = anchor->tree,
                                      .level = (uint8_t)level,
                                      .depth = (uint8_t)depth,
                                      .prefix = prefix,
                                      .past = past};
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "tables: tree %llu, level %u, prefix %016llx/%u%s: %s;"
                      " %s'cortex tables rebuild --replace' rebuilds the tables",
                      (unsigned long long)anchor->tree, level, (unsigned long long)prefix, depth,
                      past ? ", in the past" : "", what,
                      past ? "" : "'cortex tables repair' repairs it, ");
}

/* --- reading --------------------------------------------------------------------------------- */

/* A page being read. */
typedef struct reading {
    cx_pages *pages;
    const cx_pages_anchor *anchor;
    unsigned level;
    uint64_t prefix;
    unsigned depth;
    bool past;
    uint64_t snapshot;
} reading;

static cx_status fail_reading(const reading *r, const char *what, cx_err *err)
{
    return cx_pages_fail_damage(r->pages, r->anchor, r->level, r->prefix, r->depth, r->past, what,
                                err);
}

static int64_t born_max(const reading *r)
{
    return r->past && r->snapshot < INT64_MAX ? (int64_t)r->snapshot : INT64_MAX;
}

static cx_status read_digest(const reading *r, cx_bytes bytes, cx_digest *out, cx_err *err)
{
    if (bytes.size != sizeof out->bytes)
        return fail_reading(r, "a row has a key or hash that is not 32 bytes long", err);
    memcpy(out->bytes, bytes.data, sizeof out->bytes);
    return CX_SUCCESS;
}

/* The value of a leaf, and in matrix-1 its hash. */
static cx_status read_value(const reading *r, cx_bytes bytes, cx_page_item *item, cx_err *err)
{
    bool matrix = r->anchor->scheme == CX_SCHEME_MATRIX_1;
    size_t size = sizeof item->value.bytes;
    if (bytes.size != (matrix ? 2 * size : size))
        return fail_reading(r, "a leaf has a value of another length", err);
    memcpy(item->value.bytes, bytes.data, size);
    if (matrix)
        memcpy(item->hash.bytes, bytes.data + size, size);
    item->stale = !matrix;
    return CX_SUCCESS;
}

/* A new item; NULL with a failure in *out_status. */
static cx_page_item *add_item(const reading *r, cx_status *out_status, cx_err *err)
{
    cx_page_item *items = r->pages->items.items;
    size_t count = r->pages->items.count;
    bool full = !r->past && count > PAGE_ITEMS_MAX &&
                page_item_prefix(&items[0]) != page_item_prefix(&items[count - 1]);
    if (full || count > PAGE_ITEMS_LIMIT) {
        *out_status = fail_reading(r, "it has more rows than a page has", err);
        return NULL;
    }
    cx_page_item *item = cx_vec_push(&r->pages->items, r->pages->alloc);
    if (item == NULL)
        *out_status = cx_fail_nomem(err);
    else
        *item = (cx_page_item){.change = PAGE_SAME, .old = UINT32_MAX};
    return item;
}

/* Rows of one statement that is reset in the end. */
#define FOR_ROWS(statement, status, row, err)          \
    for (bool row = true; row && !cx_failed(status) && \
                          !cx_failed((status) = cx_db_step((statement), &row, err)) && row;)

/* The first and the last key that a page may have. */
static void bound_range(const reading *r, cx_digest *from, cx_digest *to)
{
    *from = *to = page_prefix_key(r->prefix);
    for (unsigned i = r->depth; i < SMT_DEPTH; i++)
        to->bytes[i / 8] |= (uint8_t)(0x80u >> i % 8);
}

static cx_status read_leaves(const reading *r, cx_err *err)
{
    cx_db_statement *s;
    CX_TRY(cx_pages_statement(r->pages, SQL_LEAVES, &s, err));
    cx_digest from, to;
    bound_range(r, &from, &to);
    bind_leaf(s, r->anchor->tree, &from);
    cx_db_bind_bytes(s, 3, cx_bytes_from(to.bytes, sizeof to.bytes));
    cx_db_bind_int(s, 4, born_max(r));
    cx_status status = CX_SUCCESS;
    FOR_ROWS(s, status, row, err)
    {
        cx_page_item *item = add_item(r, &status, err);
        if (item != NULL)
            status = read_digest(r, cx_db_bytes(s, 0), &item->key, err);
        if (item != NULL && !cx_failed(status))
            status = read_value(r, cx_db_bytes(s, 1), item, err);
    }
    cx_db_reset(s);
    return status;
}

/* depth and hash of a page below, from columns `column` on. */
static cx_status read_page_row(const reading *r, const cx_db_statement *s, int column,
                               cx_page_item *item, cx_err *err)
{
    int64_t depth = cx_db_int(s, column);
    if (depth < 0 || depth > PAGE_DEPTH_NONE)
        return fail_reading(r, "a row has a depth that is none", err);
    item->depth = (uint16_t)depth;
    return read_digest(r, cx_db_bytes(s, column + 1), &item->hash, err);
}

static cx_status read_pages(const reading *r, cx_err *err)
{
    cx_db_statement *s;
    CX_TRY(cx_pages_statement(r->pages, SQL_PAGES, &s, err));
    bind_page(s, r->anchor->tree, r->level - 1, r->prefix);
    cx_pages_bind_prefix(s, 4, r->prefix | ~page_mask(UINT64_MAX, r->depth));
    cx_db_bind_int(s, 5, born_max(r));
    cx_status status = CX_SUCCESS;
    FOR_ROWS(s, status, row, err)
    {
        if (!r->past && cx_db_int(s, 1) == PAGE_DEPTH_NONE)
            continue;
        cx_page_item *item = add_item(r, &status, err);
        if (item == NULL)
            continue;
        item->key = page_prefix_key(cx_pages_prefix(s, 0));
        status = read_page_row(r, s, 1, item, err);
    }
    cx_db_reset(s);
    return status;
}

CX_RESULT cx_pages_read_items(cx_pages *pages, const cx_pages_anchor *anchor, unsigned level,
                              uint64_t prefix, unsigned depth, cx_err *err)
{
    const reading r = {pages, anchor, level, prefix, depth, false, 0};
    pages->items.count = 0;
    return level == 0 ? read_leaves(&r, err) : read_pages(&r, err);
}

/* --- reading the past ------------------------------------------------------------------------ */

/* What the snapshot saw of a row that it sees, where that is not the row itself. */
static cx_status read_item_then(const reading *r, cx_page_item *item, cx_err *err)
{
    cx_db_statement *s;
    bool row;
    CX_TRY(cx_pages_statement(r->pages, r->level == 0 ? SQL_LEAF_THEN : SQL_PAGE_THEN, &s, err));
    if (r->level == 0)
        bind_leaf(s, r->anchor->tree, &item->key);
    else
        bind_page(s, r->anchor->tree, r->level - 1, page_item_prefix(item));
    cx_db_bind_int(s, r->level == 0 ? 3 : 4, born_max(r));
    CX_TRY(cx_db_step(s, &row, err));
    cx_status status = CX_SUCCESS;
    if (row && r->level == 0)
        status = read_value(r, cx_db_bytes(s, 0), item, err);
    else if (row)
        status = read_page_row(r, s, 0, item, err);
    cx_db_reset(s);
    return status;
}

enum { THEN_ROWS = 256 };

/* The key, or prefix, of a row of the past; false for one that no item can have. */
static bool row_key(const reading *r, const cx_db_statement *s, cx_digest *out)
{
    if (r->level != 0) {
        *out = page_prefix_key(cx_pages_prefix(s, 1));
        return true;
    }
    cx_bytes key = cx_db_bytes(s, 1);
    if (key.size != sizeof out->bytes)
        return false;
    memcpy(out->bytes, key.data, key.size);
    return true;
}

/* The same for all items, out of the first rows of the range; *out_next is the first item that is
 * to be looked for by itself. */
static cx_status read_range_then(const reading *r, size_t *out_next, cx_err *err)
{
    cx_db_statement *s;
    cx_page_item *items = r->pages->items.items;
    size_t count = r->pages->items.count, at = 0, rows = 0, done = SIZE_MAX;
    cx_digest from, to, key;
    CX_TRY(cx_pages_statement(r->pages, r->level == 0 ? SQL_LEAVES_THEN : SQL_PAGES_THEN, &s, err));
    bound_range(r, &from, &to);
    if (r->level == 0) {
        bind_leaf(s, r->anchor->tree, &from);
        cx_db_bind_bytes(s, 3, cx_bytes_from(to.bytes, sizeof to.bytes));
    } else {
        bind_page(s, r->anchor->tree, r->level - 1, r->prefix);
        cx_pages_bind_prefix(s, 4, smt_word(&to, 0));
    }
    cx_db_bind_int(s, r->level == 0 ? 4 : 5, THEN_ROWS);
    cx_status status = CX_SUCCESS;
    FOR_ROWS(s, status, row, err)
    {
        rows++;
        if (!row_key(r, s, &key))
            continue;
        while (at < count && memcmp(items[at].key.bytes, key.bytes, sizeof key.bytes) < 0)
            at++;
        if (at == count || at == done || !cx_digest_eq(&items[at].key, &key) ||
            cx_db_int(s, 0) < born_max(r))
            continue;
        done = at;
        status = r->level == 0 ? read_value(r, cx_db_bytes(s, 2), &items[at], err)
                               : read_page_row(r, s, 2, &items[at], err);
    }
    cx_db_reset(s);
    *out_next = rows < THEN_ROWS ? count : at == done ? at + 1 : at;
    return status;
}

/* An item that page_cut names, as its row is now; without one when the snapshot does not see it. */
static cx_status read_named(const reading *r, const uint8_t *name, cx_err *err)
{
    cx_db_statement *s;
    bool row;
    cx_page_item named = {.change = PAGE_SAME, .old = UINT32_MAX};
    memcpy(named.key.bytes, name, r->level == 0 ? 32 : 8);
    CX_TRY(cx_pages_statement(r->pages, r->level == 0 ? SQL_LEAF : SQL_PAGE, &s, err));
    if (r->level == 0)
        bind_leaf(s, r->anchor->tree, &named.key);
    else
        bind_page(s, r->anchor->tree, r->level - 1, page_item_prefix(&named));
    cx_db_bind_int(s, r->level == 0 ? 3 : 4, born_max(r));
    CX_TRY(cx_db_step(s, &row, err));
    cx_status status = CX_SUCCESS;
    if (row && r->level == 0)
        status = read_value(r, cx_db_bytes(s, 0), &named, err);
    else if (row)
        status = read_page_row(r, s, 0, &named, err);
    cx_db_reset(s);
    if (!row || cx_failed(status))
        return status;
    cx_page_item *item = add_item(r, &status, err);
    if (item != NULL)
        *item = named;
    return status;
}

static cx_status read_cut(const reading *r, cx_err *err)
{
    cx_db_statement *s;
    bool row;
    size_t size = r->level == 0 ? 32 : 8;
    CX_TRY(cx_pages_statement(r->pages, SQL_CUT, &s, err));
    bind_page(s, r->anchor->tree, r->level, r->prefix);
    cx_db_bind_int(s, 4, r->depth);
    CX_TRY(cx_db_step(s, &row, err));
    if (!row)
        return fail_reading(r, "what it had before it was cut is missing", err);
    cx_bytes names = cx_db_bytes(s, 0);
    cx_status status = CX_SUCCESS;
    if (names.size % size != 0)
        status = fail_reading(r, "names of what it had are cut off", err);
    for (size_t at = 0; at < names.size && !cx_failed(status); at += size) {
        if (at > 0 && memcmp(names.data + at - size, names.data + at, size) >= 0)
            status = fail_reading(r, "names of what it had do not ascend", err);
        else
            status = read_named(r, names.data + at, err);
    }
    cx_db_reset(s);
    return status;
}

/* Whether the page that a snapshot saw is one in the tables now. */
static cx_status is_still_page(const reading *r, const cx_page_source *source, bool *out,
                               cx_err *err)
{
    cx_db_statement *s;
    bool row;
    if (r->level == source->anchor.height) {
        *out = source->height_now == source->anchor.height;
        return CX_SUCCESS;
    }
    CX_TRY(cx_pages_statement(r->pages, SQL_PAGE, &s, err));
    bind_page(s, r->anchor->tree, r->level, r->prefix);
    cx_db_bind_int(s, 4, INT64_MAX);
    CX_TRY(cx_db_step(s, &row, err));
    *out = row && cx_db_int(s, 0) == r->depth;
    cx_db_reset(s);
    return CX_SUCCESS;
}

static cx_status read_past(const reading *r, const cx_page_source *source, cx_err *err)
{
    bool still;
    size_t kept = 0, next;
    const cx_digest empty = cx_scheme_smt_empty(source->anchor.scheme, 0);
    r->pages->items.count = 0;
    if (r->depth == 0 && cx_digest_eq(&source->anchor.root, &empty))
        return CX_SUCCESS; /* built at once since then: nothing was cut */
    CX_TRY(is_still_page(r, source, &still, err));
    if (!still)
        CX_TRY(read_cut(r, err));
    else
        CX_TRY(r->level == 0 ? read_leaves(r, err) : read_pages(r, err));
    CX_TRY(read_range_then(r, &next, err));
    for (size_t i = 0; i < r->pages->items.count; i++) {
        cx_page_item *item = &r->pages->items.items[i];
        if (i >= next)
            CX_TRY(read_item_then(r, item, err));
        if (r->level == 0 || item->depth != PAGE_DEPTH_NONE)
            r->pages->items.items[kept++] = *item;
    }
    r->pages->items.count = kept;
    return CX_SUCCESS;
}

/* --- pages ----------------------------------------------------------------------------------- */

enum { FETCH_GROUP = 64 };

/* Pages that were read and not checked yet, and which of the wanted ones they are. */
typedef struct fetching {
    cx_pages *pages;
    const cx_page_source *source;
    unsigned level;
    const cx_page_want *wants;
    cx_page **out;
    cx_page *list[FETCH_GROUP];
    size_t which[FETCH_GROUP];
    size_t count;
} fetching;

static cx_status fail_fetching(const fetching *f, size_t which, const char *what, cx_err *err)
{
    const cx_page_want *want = &f->wants[which];
    return cx_pages_fail_damage(f->pages, &f->source->anchor, f->level, want->prefix, want->depth,
                                f->source->past, what, err);
}

static cx_status read_one(fetching *f, size_t which, cx_err *err)
{
    cx_pages *pages = f->pages;
    const cx_page_want *want = &f->wants[which];
    const cx_pages_anchor *anchor = &f->source->anchor;
    const reading r = {pages,       anchor,          f->level,           want->prefix,
                       want->depth, f->source->past, f->source->snapshot};
    if (f->source->past)
        CX_TRY(read_past(&r, f->source, err));
    else
        CX_TRY(cx_pages_read_items(pages, anchor, f->level, want->prefix, want->depth, err));
    cx_page *page = cx_page_make(pages->alloc, anchor, f->level, want->prefix, want->depth,
                                 pages->items.items, pages->items.count, NULL);
    if (page == NULL)
        return cx_fail_nomem(err);
    f->list[f->count] = page;
    f->which[f->count++] = which;
    pages->stats.pages_read++;
    return cx_page_is_sound(page) ? CX_SUCCESS
                                  : fail_fetching(f, which, "its rows do not fit together", err);
}

/* P4: what folds as it should is kept, the rest is freed. */
static cx_status check_group(fetching *f, cx_err *err)
{
    cx_status status = cx_page_hash(f->pages, f->source->anchor.scheme, f->list, f->count, err);
    for (size_t i = 0; i < f->count; i++) {
        cx_page *page = f->list[i];
        if (!cx_failed(status) && !cx_digest_eq(&page->hash, &f->wants[f->which[i]].hash))
            status = fail_fetching(f, f->which[i], "its rows do not fold to the hash above", err);
        if (cx_failed(status)) {
            cx_page_free(f->pages->alloc, page);
        } else if (!cx_page_keep(&f->pages->cache, page)) {
            status = cx_fail_nomem(err);
        } else {
            f->out[f->which[i]] = page;
        }
    }
    f->count = 0;
    return status;
}

CX_RESULT cx_pages_fetch(cx_pages *pages, const cx_page_source *source, unsigned level,
                         const cx_page_want *wants, size_t count, cx_page **out, cx_err *err)
{
    fetching f = {pages, source, level, wants, out, {NULL}, {0}, 0};
    uint64_t tree = source->anchor.tree;
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < count && !cx_failed(status); i++) {
        const cx_page_want *want = &wants[i];
        out[i] = source->own == NULL ? NULL
                                     : cx_pages_find_page(source->own, tree, level, want->prefix,
                                                          want->depth, &want->hash);
        if (out[i] == NULL)
            out[i] = cx_pages_find_page(&pages->cache, tree, level, want->prefix, want->depth,
                                        &want->hash);
        if (out[i] != NULL) {
            pages->stats.pages_cached++;
            continue;
        }
        status = read_one(&f, i, err);
        if (!cx_failed(status) && f.count == FETCH_GROUP)
            status = check_group(&f, err);
    }
    if (!cx_failed(status))
        return check_group(&f, err);
    for (size_t i = 0; i < f.count; i++)
        cx_page_free(pages->alloc, f.list[i]);
    return status;
}

CX_RESULT cx_pages_fetch_root(cx_pages *pages, const cx_page_source *source, cx_page **out,
                              cx_err *err)
{
    const cx_page_want want = {.prefix = 0, .depth = 0, .hash = source->anchor.root};
    return cx_pages_fetch(pages, source, source->anchor.height, &want, 1, out, err);
}

/* --- writing --------------------------------------------------------------------------------- */

static cx_status keep_leaf(cx_pages *pages, uint64_t tree, const cx_digest *key,
                           const cx_pages_moment *moment, cx_err *err)
{
    cx_db_statement *s;
    if (!moment->has_newest)
        return CX_SUCCESS;
    CX_TRY(cx_pages_statement(pages, SQL_KEEP_LEAF, &s, err));
    bind_leaf(s, tree, key);
    cx_db_bind_int(s, 3, (int64_t)moment->newest);
    return cx_db_execute(s, err);
}

static cx_status write_leaf(cx_pages *pages, const cx_pages_anchor *anchor,
                            const cx_page_item *item, const cx_pages_moment *moment, cx_err *err)
{
    cx_db_statement *s;
    bool is_new = item->change == PAGE_NEW;
    cx_digest value[2] = {item->value, item->hash};
    const size_t size = cx_page_leaf_size(anchor->scheme);
    if (!is_new)
        CX_TRY(keep_leaf(pages, anchor->tree, &item->key, moment, err));
    unsigned insert = pages->repairing ? SQL_REPAIR_LEAF : SQL_PUT_LEAF;
    CX_TRY(cx_pages_statement(pages, is_new ? insert : SQL_SET_LEAF, &s, err));
    bind_leaf(s, anchor->tree, &item->key);
    cx_db_bind_bytes(s, 3, cx_bytes_from(value, size));
    if (is_new)
        cx_db_bind_int(s, 4, (int64_t)moment->next_snapshot);
    pages->stats.rows_written++;
    pages->stats.row_bytes_written += sizeof item->key + size;
    return cx_db_execute(s, err);
}

static cx_status keep_page(cx_pages *pages, uint64_t tree, unsigned level, uint64_t prefix,
                           const cx_pages_moment *moment, cx_err *err)
{
    cx_db_statement *s;
    if (!moment->has_newest)
        return CX_SUCCESS;
    CX_TRY(cx_pages_statement(pages, SQL_KEEP_PAGE, &s, err));
    bind_page(s, tree, level, prefix);
    cx_db_bind_int(s, 4, (int64_t)moment->newest);
    return cx_db_execute(s, err);
}

/* A new row may be one that was none any more, so its past is kept, too. */
static cx_status write_page(cx_pages *pages, uint64_t tree, unsigned level,
                            const cx_page_item *item, const cx_pages_moment *moment, cx_err *err)
{
    cx_db_statement *s;
    uint64_t prefix = page_item_prefix(item);
    bool is_new = item->change == PAGE_NEW;
    CX_TRY(keep_page(pages, tree, level, prefix, moment, err));
    CX_TRY(cx_pages_statement(pages, is_new ? SQL_PUT_PAGE : SQL_SET_PAGE, &s, err));
    bind_page(s, tree, level, prefix);
    cx_db_bind_int(s, 4, item->depth);
    cx_db_bind_bytes(s, 5, cx_bytes_from(item->hash.bytes, sizeof item->hash.bytes));
    if (is_new)
        cx_db_bind_int(s, 6, (int64_t)moment->next_snapshot);
    pages->stats.rows_written++;
    pages->stats.row_bytes_written += 8 + 1 + sizeof item->hash;
    return cx_db_execute(s, err);
}

CX_RESULT cx_pages_write_items(cx_pages *pages, const cx_pages_anchor *anchor, const cx_page *page,
                               const cx_pages_moment *moment, cx_err *err)
{
    uint64_t before = pages->stats.rows_written;
    for (uint32_t i = 0; i < page->item_count; i++) {
        const cx_page_item *item = &page->items[i];
        if (item->change == PAGE_SAME)
            continue;
        if (page->level == 0)
            CX_TRY(write_leaf(pages, anchor, item, moment, err));
        else
            CX_TRY(write_page(pages, anchor->tree, page->level - 1u, item, moment, err));
    }
    pages->stats.pages_written += pages->stats.rows_written != before;
    return CX_SUCCESS;
}

/* One that came after all snapshots is deleted: whether it was there between two batches must not
 * be seen in the rows later. */
CX_RESULT cx_pages_write_gone(cx_pages *pages, uint64_t tree, unsigned level, uint64_t prefix,
                              const cx_pages_moment *moment, cx_err *err)
{
    static const cx_digest none = {{0}};
    cx_db_statement *s;
    CX_TRY(keep_page(pages, tree, level, prefix, moment, err));
    CX_TRY(cx_pages_statement(pages, SQL_DELETE_PAGE, &s, err));
    bind_page(s, tree, level, prefix);
    cx_db_bind_int(s, 4, (int64_t)moment->next_snapshot);
    CX_TRY(cx_db_execute(s, err));
    CX_TRY(cx_pages_statement(pages, SQL_SET_PAGE, &s, err));
    bind_page(s, tree, level, prefix);
    cx_db_bind_int(s, 4, PAGE_DEPTH_NONE);
    cx_db_bind_bytes(s, 5, cx_bytes_from(none.bytes, sizeof none.bytes));
    pages->stats.rows_written++;
    return cx_db_execute(s, err);
}

static cx_status add_name(cx_pages *pages, const uint8_t *name, size_t size, cx_err *err)
{
    if (!cx_vec_reserve(&pages->names, pages->names.count + size, pages->alloc))
        return cx_fail_nomem(err);
    memcpy(pages->names.items + pages->names.count, name, size);
    pages->names.count += size;
    return CX_SUCCESS;
}

/* Rows that are none any more are named too: a snapshot may have seen them. */
static cx_status list_prefixes(cx_pages *pages, const cx_page *page, cx_err *err)
{
    cx_db_statement *s;
    CX_TRY(cx_pages_statement(pages, SQL_PREFIXES, &s, err));
    bind_page(s, page->tree, page->level - 1u, page->prefix);
    cx_pages_bind_prefix(s, 4, page->prefix | ~page_mask(UINT64_MAX, page->depth));
    cx_status status = CX_SUCCESS;
    FOR_ROWS(s, status, row, err)
    {
        cx_digest key = page_prefix_key(cx_pages_prefix(s, 0));
        status = add_name(pages, key.bytes, 8, err);
    }
    cx_db_reset(s);
    return status;
}

CX_RESULT cx_pages_write_cut(cx_pages *pages, const cx_page *page, bool is_root,
                             const cx_pages_moment *moment, cx_err *err)
{
    cx_db_statement *s;
    if (!moment->has_newest)
        return CX_SUCCESS;
    pages->names.count = 0;
    if (page->level != 0)
        CX_TRY(list_prefixes(pages, page, err));
    for (uint32_t i = 0; i < page->item_count && page->level == 0; i++)
        CX_TRY(add_name(pages, page->items[i].key.bytes, sizeof page->items[i].key, err));
    CX_TRY(cx_pages_statement(pages, SQL_KEEP_CUT, &s, err));
    bind_page(s, page->tree, page->level, page->prefix);
    cx_db_bind_int(s, 4, page->depth);
    cx_db_bind_int(s, 5, (int64_t)moment->newest);
    cx_db_bind_bytes(s, 6, cx_bytes_from(pages->names.items, pages->names.count));
    cx_db_bind_int(s, 7, is_root);
    pages->stats.rows_written++;
    pages->stats.row_bytes_written += pages->names.count;
    return cx_db_execute(s, err);
}
