/*
 * hash_rows.c - rows that lead from hashes to what has to do with them (hash_rows.h).
 */
#include "ledger/find/hash_rows.h"

#include <stdlib.h>

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

const char cx_hash_schema[] =
    "CREATE TABLE IF NOT EXISTS hash_new(head INTEGER NOT NULL, actor INTEGER NOT NULL,"
    " number INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY(head, actor, number))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS hash_block(id INTEGER PRIMARY KEY, items BLOB NOT NULL);";
const char cx_hash_clear[] = " DELETE FROM hash_new; DELETE FROM hash_block;";

/* --- statements ------------------------------------------------------------------------------- */

void cx_hash_finish(cx_tables *tables)
{
    cx_db_finish(tables->put_hash);
    cx_db_finish(tables->scan_hashes);
    cx_db_finish(tables->put_hash_block);
    cx_db_finish(tables->get_hash_block);
    cx_db_finish(tables->count_hashes);
}

cx_status cx_hash_prepare(cx_store *store, cx_err *err)
{
    cx_tables *reading = &store->reading, *writing = &store->writing;
    CX_TRY(cx_db_prepare(reading->db,
                         "SELECT head, actor, number, sum FROM hash_new WHERE head>=? AND head<=?"
                         " ORDER BY head, actor, number",
                         &reading->scan_hashes, err));
    CX_TRY(cx_db_prepare(reading->db, "SELECT items FROM hash_block WHERE id=?",
                         &reading->get_hash_block, err));
    CX_TRY(cx_db_prepare(reading->db,
                         "SELECT (SELECT value FROM meta WHERE name='hashes'),"
                         " (SELECT count(*) FROM hash_new)",
                         &reading->count_hashes, err));
    if (writing->db == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_db_prepare(writing->db, "INSERT OR IGNORE INTO hash_new VALUES(?,?,?,?)",
                         &writing->put_hash, err));
    if (!store->shared)
        CX_TRY(cx_db_prepare(writing->db,
                             "SELECT head, actor, number, sum FROM hash_new WHERE head>=? AND"
                             " head<=? ORDER BY head, actor, number",
                             &writing->scan_hashes, err));
    return cx_db_prepare(writing->db, "INSERT OR REPLACE INTO hash_block VALUES(?,?)",
                         &writing->put_hash_block, err);
}

/* --- rows as bytes ---------------------------------------------------------------------------- */

/* Signed numbers in the order of unsigned ones. */
static int64_t head_column(uint64_t head)
{
    return (int64_t)(head ^ UINT64_C(1) << 63);
}

static uint32_t sum_row(const cx_hash_row *row)
{
    uint8_t key[16], sum[CX_ROW_SUM_SIZE];
    cx_writer writer = cx_writer_over(key, sizeof key);
    cx_writer_uint(&writer, row->head, 8);
    cx_writer_uint(&writer, row->number, 8);
    cx_store_sum_row(row->actor, cx_bytes_from(key, sizeof key), (cx_bytes){NULL, 0}, sum);
    return (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 | sum[3];
}

static void sum_items(uint64_t id, cx_bytes items, uint8_t out[CX_ROW_SUM_SIZE])
{
    uint8_t key[8];
    cx_writer writer = cx_writer_over(key, sizeof key);
    cx_writer_uint(&writer, id, 8);
    cx_store_sum_row(CX_ACTOR_HOME, cx_bytes_from(key, sizeof key), items, out);
}

static void add_varint(cx_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        cx_buf_add_byte(out, (uint8_t)(value | 0x80));
    cx_buf_add_byte(out, (uint8_t)value);
}

static uint64_t read_varint(cx_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = cx_reader_u8(reader);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            break;
    }
    return value;
}

static void add_item(cx_buf *out, const cx_hash_row *row)
{
    for (int shift = 48; shift >= 0; shift -= 8)
        cx_buf_add_byte(out, (uint8_t)(row->head >> shift));
    add_varint(out, (uint64_t)row->actor);
    add_varint(out, row->number);
}

static cx_hash_row read_item(cx_reader *reader, uint64_t first_byte)
{
    cx_hash_row row = {.head = first_byte << 56};
    row.head |= cx_reader_uint(reader, 7);
    row.actor = (int64_t)read_varint(reader);
    row.number = read_varint(reader);
    return row;
}

/* --- writing ---------------------------------------------------------------------------------- */

cx_status cx_store_put_hash(cx_store *store, const cx_hash_row *row, cx_err *err)
{
    cx_hash_row *slot = cx_vec_push(&store->memtable->hashes, store->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *row;
    return CX_SUCCESS;
}

static cx_status write_hash(cx_store *store, const cx_hash_row *row, uint64_t *count, cx_err *err)
{
    cx_db_statement *statement = store->writing.put_hash;
    cx_db_bind_int(statement, 1, head_column(row->head));
    cx_db_bind_int(statement, 2, row->actor);
    cx_db_bind_int(statement, 3, (int64_t)row->number);
    cx_db_bind_int(statement, 4, sum_row(row));
    CX_TRY(cx_db_execute(statement, err));
    *count += cx_db_changes(store->writing.db) > 0 ? 1 : 0;
    return CX_SUCCESS;
}

static cx_status write_block_row(cx_store *store, uint64_t id, cx_buf *items, cx_err *err)
{
    cx_db_statement *statement = store->writing.put_hash_block;
    uint8_t sum[CX_ROW_SUM_SIZE];
    sum_items(id, cx_buf_bytes(items), sum);
    cx_buf_add(items, sum, sizeof sum);
    CX_TRY(cx_buf_check(items, err));
    cx_db_bind_int(statement, 1, (int64_t)id);
    cx_db_bind_bytes(statement, 2, cx_buf_bytes(items));
    CX_TRY(cx_db_execute(statement, err));
    cx_buf_clear(items);
    return CX_SUCCESS;
}

/* The next row of a statement that scans hash_new, checked. */
static cx_status next_new(cx_db_statement *scan, cx_hash_row *out, bool *out_more, cx_err *err)
{
    CX_TRY(cx_db_step(scan, out_more, err));
    if (!*out_more)
        return CX_SUCCESS;
    *out = (cx_hash_row){.head = (uint64_t)cx_db_int(scan, 0) ^ UINT64_C(1) << 63,
                         .actor = cx_db_int(scan, 1),
                         .number = (uint64_t)cx_db_int(scan, 2)};
    return cx_db_int(scan, 3) == (int64_t)sum_row(out)
               ? CX_SUCCESS
               : cx_store_damaged("a row of the index of hashes is damaged", err);
}

static cx_db_statement *scan_new(cx_db_statement *scan, uint64_t low, uint64_t high)
{
    cx_db_bind_int(scan, 1, head_column(low));
    cx_db_bind_int(scan, 2, head_column(high));
    return scan;
}

static int compare_hashes(const void *a, const void *b)
{
    const cx_hash_row *x = a, *y = b;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    if (x->actor != y->actor)
        return x->actor < y->actor ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static cx_status write_block_rows(cx_store *store, const cx_hash_row *rows, size_t count,
                                  uint64_t block, cx_buf *items, cx_err *err)
{
    size_t at = 0;
    for (uint64_t part = 0; part < CX_HASH_BLOCK_ROWS; part++) {
        for (; at < count && rows[at].head >> 56 == part; at++)
            add_item(items, &rows[at]);
        CX_TRY(write_block_row(store, CX_HASH_BLOCK_ROWS * block + part, items, err));
    }
    return CX_SUCCESS;
}

/* H1: the rows, sorted, become block number `block`, and hash_new is empty. */
static cx_status make_block(cx_store *store, const cx_hash_row *rows, size_t count, uint64_t block,
                            cx_err *err)
{
    cx_buf items;
    cx_buf_init(&items, store->alloc);
    cx_status status = write_block_rows(store, rows, count, block, &items, err);
    cx_buf_done(&items);
    return cx_failed(status) ? status : cx_db_run(store->writing.db, "DELETE FROM hash_new;", err);
}

/* All of hash_new, sorted; no more than `max`. */
static cx_status read_all_new(cx_store *store, cx_hash_row *out, size_t max, size_t *out_count,
                              cx_err *err)
{
    cx_db_statement *scan = store->shared ? store->reading.scan_hashes : store->writing.scan_hashes;
    cx_status status = CX_SUCCESS;
    *out_count = 0;
    (void)scan_new(scan, 0, UINT64_MAX);
    for (bool more = true; !cx_failed(status);) {
        cx_hash_row row;
        status = next_new(scan, &row, &more, err);
        if (cx_failed(status) || !more)
            break;
        if (*out_count == max)
            status = cx_store_damaged("the index of hashes has too many rows", err);
        else
            out[(*out_count)++] = row;
    }
    cx_db_reset(scan);
    return status;
}

/*
 * Where the rows and those of hash_new are a whole block, it is written without putting them there
 * first; *out_made is false when some of them are the same.
 */
static cx_status make_block_at_once(cx_store *store, const cx_hash_row *rows, size_t size,
                                    cx_hash_row *all, uint64_t block, bool *out_made, cx_err *err)
{
    size_t before = 0;
    *out_made = false;
    CX_TRY(read_all_new(store, all, CX_HASH_BLOCK, &before, err));
    if (before + size != CX_HASH_BLOCK)
        return CX_SUCCESS;
    memcpy(all + before, rows, size * sizeof *rows);
    qsort(all, CX_HASH_BLOCK, sizeof *all, compare_hashes);
    for (size_t i = 1; i < CX_HASH_BLOCK; i++)
        if (compare_hashes(&all[i - 1], &all[i]) == 0)
            return CX_SUCCESS;
    *out_made = true;
    return make_block(store, all, CX_HASH_BLOCK, block, err);
}

/* Sorted, so that neighbours in the table are written one after the other. */
static cx_status write_sorted(cx_store *store, cx_hash_row *rows, size_t size, uint64_t *count,
                              cx_err *err)
{
    qsort(rows, size, sizeof *rows, compare_hashes);
    for (size_t i = 0; i < size; i++)
        CX_TRY(write_hash(store, &rows[i], count, err));
    return CX_SUCCESS;
}

/* At most as many rows as the block has room for; `all` has room for a block. */
static cx_status write_some(cx_store *store, cx_hash_row *rows, size_t size, cx_hash_row *all,
                            uint64_t *count, cx_err *err)
{
    const uint64_t before = *count, block = before / CX_HASH_BLOCK;
    size_t read = 0;
    if (before % CX_HASH_BLOCK + size == CX_HASH_BLOCK) {
        bool made = false;
        CX_TRY(make_block_at_once(store, rows, size, all, block, &made, err));
        *count += made ? size : 0;
        if (made)
            return CX_SUCCESS;
    }
    CX_TRY(write_sorted(store, rows, size, count, err));
    if (*count == before || *count % CX_HASH_BLOCK != 0)
        return CX_SUCCESS;
    CX_TRY(read_all_new(store, all, CX_HASH_BLOCK, &read, err));
    return make_block(store, all, read, block, err);
}

cx_status cx_store_write_hashes(cx_store *store, const cx_memtable *memtable, uint64_t *count,
                                cx_err *err)
{
    const size_t all = memtable->hashes.count;
    const size_t most = all < CX_HASH_BLOCK ? all : CX_HASH_BLOCK;
    const size_t block_size = CX_HASH_BLOCK * sizeof(cx_hash_row);
    if (all == 0)
        return CX_SUCCESS;
    cx_hash_row *rows = cx_alloc_new(store->alloc, most * sizeof *rows);
    /* Only where a block becomes whole. */
    const bool ends_block = *count % CX_HASH_BLOCK + all >= CX_HASH_BLOCK;
    cx_hash_row *block = ends_block ? cx_alloc_new(store->alloc, block_size) : NULL;
    cx_status status = CX_SUCCESS;
    if (rows == NULL || (ends_block && block == NULL))
        status = cx_fail_nomem(err);
    for (size_t at = 0; at < all && !cx_failed(status);) {
        /* No more than the block has room for: so its rows do not depend on the order (H1). */
        const size_t room = (size_t)(CX_HASH_BLOCK - *count % CX_HASH_BLOCK);
        const size_t size = all - at < room ? all - at : room;
        memcpy(rows, memtable->hashes.items + at, size * sizeof *rows);
        status = write_some(store, rows, size, block, count, err);
        at += size;
    }
    cx_alloc_free(store->alloc, rows, most * sizeof *rows);
    cx_alloc_free(store->alloc, block, ends_block ? block_size : 0);
    return status;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct question {
    cx_store *store;
    uint64_t low, high;
    cx_status (*row)(void *arg, const cx_hash_row *row, bool *stop, cx_err *err);
    void *arg;
    bool stop;
    uint64_t rows; /* read */
} question;

static cx_status show_row(question *q, const cx_hash_row *row, cx_err *err)
{
    q->rows++;
    if (row->head < q->low || row->head > q->high || q->row == NULL)
        return CX_SUCCESS;
    return q->row(q->arg, row, &q->stop, err);
}

static cx_status show_items(question *q, uint64_t id, cx_bytes stored, cx_err *err)
{
    uint8_t sum[CX_ROW_SUM_SIZE];
    static const char damage[] = "a block of the index of hashes is damaged";
    if (stored.size < CX_ROW_SUM_SIZE)
        return cx_store_damaged(damage, err);
    const cx_bytes items = cx_bytes_from(stored.data, stored.size - CX_ROW_SUM_SIZE);
    sum_items(id, items, sum);
    if (memcmp(sum, stored.data + items.size, sizeof sum) != 0)
        return cx_store_damaged(damage, err);
    cx_reader reader = cx_reader_over(items);
    while (cx_reader_left(&reader) != 0 && !q->stop) {
        const cx_hash_row row = read_item(&reader, id % CX_HASH_BLOCK_ROWS);
        if (!cx_reader_ok(&reader))
            return cx_store_damaged(damage, err);
        CX_TRY(show_row(q, &row, err));
    }
    return CX_SUCCESS;
}

static cx_status read_block_row(question *q, uint64_t id, cx_err *err)
{
    cx_db_statement *get = q->store->reading.get_hash_block;
    bool there = false;
    cx_db_bind_int(get, 1, (int64_t)id);
    CX_TRY(cx_db_step(get, &there, err));
    cx_status status = there ? show_items(q, id, cx_db_bytes(get, 0), err)
                             : cx_store_damaged("a block of the index of hashes is missing", err);
    cx_db_reset(get);
    return status;
}

static cx_status read_new(question *q, cx_err *err)
{
    cx_db_statement *scan = scan_new(q->store->reading.scan_hashes, q->low, q->high);
    cx_hash_row row;
    cx_status status = CX_SUCCESS;
    for (bool more = true; !q->stop && !cx_failed(status);) {
        status = next_new(scan, &row, &more, err);
        if (cx_failed(status) || !more)
            break;
        status = show_row(q, &row, err);
    }
    cx_db_reset(scan);
    return status;
}

/* H3 */
static cx_status count_hashes(const cx_store *store, uint64_t *out, cx_err *err)
{
    cx_db_statement *count = store->reading.count_hashes;
    bool there = false;
    uint64_t rows = 0;
    CX_TRY(cx_db_step(count, &there, err));
    *out = there ? (uint64_t)cx_db_int(count, 0) : 0;
    rows = there ? (uint64_t)cx_db_int(count, 1) : 1;
    cx_db_reset(count);
    return rows == *out % CX_HASH_BLOCK
               ? CX_SUCCESS
               : cx_store_damaged("rows of the index of hashes are missing", err);
}

/* `first` and `last` byte of the hashes that are asked for. */
static cx_status answer(question *q, uint64_t first, uint64_t last, cx_err *err)
{
    uint64_t count = 0;
    CX_TRY(count_hashes(q->store, &count, err));
    for (uint64_t block = 0; block < count / CX_HASH_BLOCK && !q->stop; block++)
        for (uint64_t part = first; part <= last && !q->stop; part++)
            CX_TRY(read_block_row(q, CX_HASH_BLOCK_ROWS * block + part, err));
    return q->stop ? CX_SUCCESS : read_new(q, err);
}

static cx_status answer_in_view(question *q, uint64_t first, uint64_t last, cx_err *err)
{
    cx_store *store = q->store;
    const bool ends = store->view == CX_VIEW_NONE;
    if (ends)
        cx_store_view_begin(store);
    cx_status status = cx_store_need_view(store, err);
    if (!cx_failed(status))
        status = answer(q, first, last, err);
    if (ends)
        cx_store_view_end(store);
    return status;
}

cx_status cx_store_find_hashes(cx_store *store, uint64_t low, uint64_t high,
                               cx_status (*row)(void *, const cx_hash_row *, bool *, cx_err *),
                               void *arg, cx_err *err)
{
    question q = {.store = store, .low = low, .high = high, .row = row, .arg = arg};
    CX_ASSERT(low >> 56 == high >> 56);
    return answer_in_view(&q, low >> 56, high >> 56, err);
}

cx_status cx_store_check_hashes(cx_store *store, uint64_t *count, cx_err *err)
{
    question q = {.store = store, .low = 0, .high = UINT64_MAX};
    CX_TRY(answer_in_view(&q, 0, CX_HASH_BLOCK_ROWS - 1, err));
    *count += q.rows;
    return CX_SUCCESS;
}
