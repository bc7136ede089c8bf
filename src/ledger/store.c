/*
 * store.c - tables and what is on its way to them.
 *
 * S1  A generation is written whole, with its end position, in one transaction.
 * S2  A row that is in no generation is in the database (if it exists).
 * S3  Every row carries a checksum over itself: one that was damaged is told, and never used.
 * S4  A store that derives keeps a transaction open: what it writes is there with the next
 *     generation, or not at all.  Its filter, if any, knows every key in the database.
 *
 *     meta(name, value)       identity of the tables; position = commit, frames
 *     actor(id, name, ...)    one row an actor, with its counters
 *     entry(actor, seq, ...)  where each entry stands in the log, and its leaf hash
 *     record(actor, key, value)  records and derived rows by logical key (ledger.md §5); behind the
 *                             value its checksum, 4 bytes
 */
#include "ledger/store.h"

#include "base/alloc.h"
#include "crypto/crc32c.h"
#include "ledger/internal.h"

#define ARENA_LIMIT 0

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS actor(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " scheme TEXT NOT NULL, entries INTEGER NOT NULL, snapshots INTEGER NOT NULL,"
    " live INTEGER NOT NULL, dead INTEGER NOT NULL, edges INTEGER NOT NULL,"
    " entry_sum INTEGER NOT NULL, state_sum INTEGER NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS entry(actor INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " kind TEXT NOT NULL, created_ns INTEGER NOT NULL, subject BLOB, segment INTEGER NOT NULL,"
    " offset INTEGER NOT NULL, size INTEGER NOT NULL, leaf BLOB NOT NULL, sum INTEGER NOT NULL,"
    " PRIMARY KEY(actor, seq)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS record(actor INTEGER NOT NULL, key BLOB NOT NULL,"
    " value BLOB NOT NULL, PRIMARY KEY(actor, key)) WITHOUT ROWID;";

/* Cheaper to make over the rows of a whole log at once, in order, than row by row. */
static const char subject_index[] =
    "CREATE INDEX IF NOT EXISTS entry_subject ON entry(actor, subject, seq)"
    " WHERE subject IS NOT NULL;";

/* --- checksums (S3) -------------------------------------------------------------------------- */

enum { ROW_SUM_SIZE = 4 };

static void put_u64(uint8_t out[8], uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * (7 - i)));
}

static uint32_t sum_u64(uint32_t sum, uint64_t value)
{
    uint8_t bytes[8];
    put_u64(bytes, value);
    return cx_crc32c_add(sum, bytes, sizeof bytes);
}

static uint32_t sum_bytes(uint32_t sum, cx_bytes bytes)
{
    return cx_crc32c_add(sum_u64(sum, bytes.size), bytes.data, bytes.size);
}

static void sum_row(int64_t actor, cx_bytes key, cx_bytes value, uint8_t out[ROW_SUM_SIZE])
{
    uint32_t sum = sum_bytes(sum_bytes(sum_u64(0, (uint64_t)actor), key), value);
    for (unsigned i = 0; i < ROW_SUM_SIZE; i++)
        out[i] = (uint8_t)(sum >> (8 * (3 - i)));
}

static uint32_t sum_entry(const cx_entry_row *row)
{
    const uint64_t numbers[] = {(uint64_t)row->actor,      row->seq,
                                (uint64_t)row->created_ns, row->place.segment,
                                row->place.offset,         row->place.size_bytes,
                                row->has_subject ? 1u : 0u};
    uint32_t sum = sum_bytes(0, cx_str_bytes(row->kind));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sum = sum_u64(sum, numbers[i]);
    if (row->has_subject)
        sum = cx_crc32c_add(sum, row->subject.bytes, sizeof row->subject.bytes);
    return cx_crc32c_add(sum, row->leaf.bytes, sizeof row->leaf.bytes);
}

static uint32_t sum_actor(const cx_actor_row *row)
{
    const uint64_t numbers[] = {(uint64_t)row->id, (uint64_t)row->scheme,
                                row->entries,      row->snapshots,
                                row->live,         row->dead,
                                row->edges,        row->entry_sum,
                                row->state_sum};
    uint32_t sum = sum_bytes(0, cx_str_bytes(row->name));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sum = sum_u64(sum, numbers[i]);
    return sum;
}

static uint32_t sum_meta(cx_str identity, cx_position position)
{
    return sum_u64(sum_u64(sum_bytes(0, cx_str_bytes(identity)), position.commit), position.frames);
}

static cx_status fail_table(const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "%s; run 'cortex tables rebuild' (the log is the truth, nothing is lost)",
                      what);
}

/* The value without its checksum, which must be right. */
static cx_status check_row(int64_t actor, cx_bytes key, cx_bytes stored, cx_bytes *out, cx_err *err)
{
    uint8_t sum[ROW_SUM_SIZE];
    if (stored.size < ROW_SUM_SIZE)
        return fail_table("a record's row is damaged", err);
    cx_bytes value = cx_bytes_from(stored.data, stored.size - ROW_SUM_SIZE);
    sum_row(actor, key, value, sum);
    if (memcmp(sum, stored.data + value.size, ROW_SUM_SIZE) != 0)
        return fail_table("a record's row is damaged", err);
    *out = value;
    return CX_SUCCESS;
}

/* --- statements ------------------------------------------------------------------------------ */

static void finish_statements(cx_tables *tables)
{
    cx_db_finish(tables->get);
    cx_db_finish(tables->put);
    cx_db_finish(tables->remove);
    cx_db_finish(tables->put_entry);
    cx_db_finish(tables->get_entry);
    cx_db_finish(tables->put_actor);
    cx_db_finish(tables->put_meta);
    *tables = (cx_tables){.db = tables->db};
}

#define ENTRY_COLUMNS "actor, seq, kind, created_ns, subject, segment, offset, size, leaf, sum"
#define ACTOR_COLUMNS \
    "id, name, scheme, entries, snapshots, live, dead, edges, entry_sum, state_sum, sum"

static cx_status prepare_reading(cx_tables *tables, cx_err *err)
{
    CX_TRY(cx_db_prepare(tables->db, "SELECT value FROM record WHERE actor=? AND key=?",
                         &tables->get, err));
    return cx_db_prepare(tables->db, "SELECT " ENTRY_COLUMNS " FROM entry WHERE actor=? AND seq=?",
                         &tables->get_entry, err);
}

static cx_status prepare_writing(cx_tables *tables, cx_err *err)
{
    cx_db *db = tables->db;
    CX_TRY(cx_db_prepare(db, "INSERT OR REPLACE INTO record VALUES(?,?,?)", &tables->put, err));
    CX_TRY(cx_db_prepare(db, "DELETE FROM record WHERE actor=? AND key=?", &tables->remove, err));
    CX_TRY(cx_db_prepare(db, "INSERT OR REPLACE INTO entry VALUES(?,?,?,?,?,?,?,?,?,?)",
                         &tables->put_entry, err));
    CX_TRY(cx_db_prepare(db, "INSERT OR REPLACE INTO actor VALUES(?,?,?,?,?,?,?,?,?,?,?)",
                         &tables->put_actor, err));
    return cx_db_prepare(db, "INSERT OR REPLACE INTO meta VALUES(?,?)", &tables->put_meta, err);
}

static cx_status put_meta_text(cx_tables *tables, const char *name, cx_str value, cx_err *err)
{
    cx_db_bind_text(tables->put_meta, 1, cx_str_z(name));
    cx_db_bind_text(tables->put_meta, 2, value);
    return cx_db_execute(tables->put_meta, err);
}

static cx_status put_meta_int(cx_tables *tables, const char *name, uint64_t value, cx_err *err)
{
    cx_db_bind_text(tables->put_meta, 1, cx_str_z(name));
    cx_db_bind_int(tables->put_meta, 2, (int64_t)value);
    return cx_db_execute(tables->put_meta, err);
}

static cx_status put_position(cx_store *store, cx_position position, cx_err *err)
{
    cx_tables *tables = &store->writing;
    CX_TRY(put_meta_int(tables, "commit", position.commit, err));
    CX_TRY(put_meta_int(tables, "frames", position.frames, err));
    return put_meta_int(tables, "sum", sum_meta(store->identity, position), err);
}

/* --- generations ----------------------------------------------------------------------------- */

static void generation_close(const cx_alloc *alloc, cx_generation *generation)
{
    if (generation == NULL)
        return;
    cx_vec_done(&generation->rows, alloc);
    cx_vec_done(&generation->entries, alloc);
    cx_vec_done(&generation->actors, alloc);
    cx_map_done(&generation->index);
    cx_arena_done(&generation->arena);
    cx_alloc_free(alloc, generation, sizeof *generation);
}

static cx_generation *generation_open(const cx_store *store)
{
    cx_generation *generation = cx_alloc_zeroed(store->alloc, 1, sizeof *generation);
    if (generation == NULL)
        return NULL;
    cx_arena_init(&generation->arena, store->alloc, ARENA_LIMIT);
    cx_map_init(&generation->index, store->alloc, store->seed);
    return generation;
}

/* --- keys that were put, while deriving from nothing ------------------------------------------ */

/*
 * Nearly every record that a log brings is new.  A question for one that cannot be in the database
 * is answered without it: of a key that was put, both bits are set (S4).  With ten million keys
 * seven of a hundred questions for others still reach the database.
 */
#define FILTER_BITS (UINT64_C(1) << 26)
#define FILTER_SIZE (FILTER_BITS / 8)

static void filter_bit(uint64_t hash, unsigned which, size_t *word, uint64_t *bit)
{
    uint64_t at = (which == 0 ? hash : hash >> 32) % FILTER_BITS;
    *word = (size_t)(at / 64);
    *bit = UINT64_C(1) << at % 64;
}

static void filter_add(uint64_t *filter, uint64_t hash)
{
    size_t word;
    uint64_t bit;
    for (unsigned i = 0; i < 2 && filter != NULL; i++) {
        filter_bit(hash, i, &word, &bit);
        filter[word] |= bit;
    }
}

/* Without a filter everything may be there. */
static bool filter_may_have(const uint64_t *filter, uint64_t hash)
{
    size_t word;
    uint64_t bit;
    bool may = true;
    for (unsigned i = 0; i < 2 && filter != NULL; i++) {
        filter_bit(hash, i, &word, &bit);
        may = may && (filter[word] & bit) != 0;
    }
    return may;
}

/* --- rows of a generation -------------------------------------------------------------------- */

/* The name of a row in a generation's index. */
typedef struct row_name {
    char bytes[8 + CX_KEY_SIZE_MAX];
    size_t size;
} row_name;

static cx_str name_row(int64_t actor, cx_bytes key, row_name *name)
{
    CX_ASSERT(key.size <= CX_KEY_SIZE_MAX);
    memcpy(name->bytes, &actor, sizeof actor);
    memcpy(name->bytes + sizeof actor, key.data, key.size);
    return cx_str_from(name->bytes, sizeof actor + key.size);
}

static const cx_row *find_row(const cx_generation *generation, cx_str name, uint64_t hash)
{
    if (generation == NULL)
        return NULL;
    const uint64_t *at = cx_map_find_hashed(&generation->index, name, hash);
    return at == NULL ? NULL : &generation->rows.items[*at];
}

cx_status cx_store_put(cx_store *store, const cx_row *row, cx_err *err)
{
    cx_generation *generation = store->filling;
    row_name name;
    cx_str text = name_row(row->actor, row->key, &name);
    /* As it will stand in the database, with its checksum behind it. */
    uint8_t *value = cx_arena_push(&generation->arena, row->value.size + ROW_SUM_SIZE, 1);
    if (value == NULL)
        return cx_fail_nomem(err);
    if (row->value.size != 0)
        memcpy(value, row->value.data, row->value.size);
    sum_row(row->actor, row->key, row->value, value + row->value.size);
    uint64_t hash = cx_map_hash(&generation->index, text);
    filter_add(store->filter, hash);
    uint64_t *at = cx_map_find_hashed(&generation->index, text, hash);
    if (at == NULL) {
        if (!cx_vec_reserve(&generation->rows, generation->rows.count + 1, store->alloc))
            return cx_fail_nomem(err);
        text = cx_arena_copy_str(&generation->arena, text);
        if (text.data == NULL)
            return cx_fail_nomem(err);
        bool is_new;
        CX_TRY(cx_map_put_hashed(&generation->index, text, hash, &at, &is_new, err));
        *at = generation->rows.count++;
    } else {
        text = cx_bytes_str(generation->rows.items[*at].key);
        text = cx_str_from(text.data - sizeof(int64_t), text.size + sizeof(int64_t));
    }
    generation->rows.items[*at] = (cx_row){
        .actor = row->actor,
        .key = cx_bytes_from(text.data + sizeof(int64_t), text.size - sizeof(int64_t)),
        .value = cx_bytes_from(value, row->value.size),
        .removed = row->removed,
        .commit = row->commit,
    };
    return CX_SUCCESS;
}

cx_status cx_store_put_actor(cx_store *store, const cx_actor_row *row, cx_err *err)
{
    cx_generation *generation = store->filling;
    cx_str name = cx_arena_copy_str(&generation->arena, row->name);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    cx_actor_row *copy = cx_vec_push(&generation->actors, store->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    *copy = *row;
    copy->name = name;
    return CX_SUCCESS;
}

size_t cx_store_filling_rows(const cx_store *store)
{
    const cx_generation *filling = store->filling;
    return filling->rows.count + filling->entries.count + filling->entries_written +
           filling->actors.count;
}

cx_status cx_store_turn_over(cx_store *store, cx_position end, cx_err *err)
{
    CX_ASSERT(store->flushing == NULL);
    cx_generation *next = generation_open(store);
    if (next == NULL)
        return cx_fail_nomem(err);
    store->flushing = store->filling;
    store->flushing->end = end;
    store->filling = next;
    return CX_SUCCESS;
}

void cx_store_flushed(cx_store *store)
{
    store->flushed = store->flushing->end;
    generation_close(store->alloc, store->flushing);
    store->flushing = NULL;
}

/* --- writing to the database ----------------------------------------------------------------- */

static cx_status write_row(cx_tables *tables, const cx_row *row, cx_err *err)
{
    cx_db_statement *statement = row->removed ? tables->remove : tables->put;
    cx_db_bind_int(statement, 1, row->actor);
    cx_db_bind_bytes(statement, 2, row->key);
    if (!row->removed)
        cx_db_bind_bytes(statement, 3,
                         cx_bytes_from(row->value.data, row->value.size + ROW_SUM_SIZE));
    return cx_db_execute(statement, err);
}

static cx_status write_entry(cx_tables *tables, const cx_entry_row *row, cx_err *err)
{
    cx_db_statement *statement = tables->put_entry;
    cx_db_bind_int(statement, 1, row->actor);
    cx_db_bind_int(statement, 2, (int64_t)row->seq);
    cx_db_bind_text(statement, 3, row->kind);
    cx_db_bind_int(statement, 4, row->created_ns);
    if (row->has_subject)
        cx_db_bind_bytes(statement, 5, cx_bytes_from(row->subject.bytes, 16));
    else
        cx_db_bind_null(statement, 5);
    cx_db_bind_int(statement, 6, row->place.segment);
    cx_db_bind_int(statement, 7, (int64_t)row->place.offset);
    cx_db_bind_int(statement, 8, row->place.size_bytes);
    cx_db_bind_bytes(statement, 9, cx_bytes_from(row->leaf.bytes, 32));
    cx_db_bind_int(statement, 10, sum_entry(row));
    return cx_db_execute(statement, err);
}

cx_status cx_store_put_entry(cx_store *store, const cx_entry_row *row, cx_err *err)
{
    cx_generation *generation = store->filling;
    /* Entries come in the order of their table, and their transaction is open (S4). */
    if (store->derives) {
        generation->entries_written++;
        return write_entry(&store->writing, row, err);
    }
    cx_str kind = cx_arena_copy_str(&generation->arena, row->kind);
    if (kind.data == NULL)
        return cx_fail_nomem(err);
    cx_entry_row *copy = cx_vec_push(&generation->entries, store->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    *copy = *row;
    copy->kind = kind;
    return CX_SUCCESS;
}

static cx_status write_actor(cx_tables *tables, const cx_actor_row *row, cx_err *err)
{
    cx_db_statement *statement = tables->put_actor;
    cx_db_bind_int(statement, 1, row->id);
    cx_db_bind_text(statement, 2, row->name);
    cx_db_bind_text(statement, 3, cx_scheme_name(row->scheme));
    const uint64_t numbers[] = {row->entries, row->snapshots, row->live,     row->dead,
                                row->edges,   row->entry_sum, row->state_sum};
    for (int i = 0; i < 7; i++)
        cx_db_bind_int(statement, 4 + i, (int64_t)numbers[i]);
    cx_db_bind_int(statement, 11, sum_actor(row));
    return cx_db_execute(statement, err);
}

static int compare_keys(const void *a, const void *b)
{
    const cx_row *x = a, *y = b;
    if (x->actor != y->actor)
        return x->actor < y->actor ? -1 : 1;
    return cx_str_cmp(cx_bytes_str(x->key), cx_bytes_str(y->key));
}

/* In the order of their keys: neighbours in the table are written one after the other. */
static cx_status write_sorted(cx_store *store, const cx_generation *generation, cx_err *err)
{
    size_t count = generation->rows.count, size = (count + 1) * sizeof(cx_row);
    cx_row *sorted = cx_alloc_new(store->alloc, size);
    if (sorted == NULL)
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(sorted, generation->rows.items, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_keys);
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = write_row(&store->writing, &sorted[i], err);
    cx_alloc_free(store->alloc, sorted, size);
    return status;
}

static cx_status write_rows(cx_store *store, const cx_generation *generation, cx_err *err)
{
    cx_tables *tables = &store->writing;
    CX_TRY(write_sorted(store, generation, err));
    for (size_t i = 0; i < generation->entries.count; i++)
        CX_TRY(write_entry(tables, &generation->entries.items[i], err));
    for (size_t i = 0; i < generation->actors.count; i++)
        CX_TRY(write_actor(tables, &generation->actors.items[i], err));
    return put_position(store, generation->end, err);
}

cx_status cx_store_write_generation(cx_store *store, const cx_generation *generation, cx_err *err)
{
    cx_tables *tables = &store->writing;
    if (!store->derives)
        CX_TRY(cx_db_begin_write(tables->db, err));
    cx_status status = write_rows(store, generation, err);
    if (!cx_failed(status))
        status = cx_db_commit(tables->db, err);
    if (!cx_failed(status) && store->derives)
        status = cx_db_begin_write(tables->db, err);
    if (cx_failed(status))
        cx_db_rollback(tables->db);
    return status;
}

cx_status cx_store_finish_derived(cx_store *store, cx_err *err)
{
    CX_ASSERT(store->derives);
    CX_TRY(cx_db_run(store->writing.db, subject_index, err));
    CX_TRY(cx_db_commit(store->writing.db, err));
    return cx_db_begin_write(store->writing.db, err);
}

cx_status cx_store_scrub(cx_store *store, cx_err *err)
{
    CX_ASSERT(store->flushing == NULL);
    if (store->shared)
        return CX_SUCCESS;
    /* secure_delete overwrites rows where they are deleted, but not copies that rows left behind
     * when they moved to another page: only writing all pages anew does. */
    CX_TRY(cx_db_run(store->writing.db, "VACUUM", err));
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->writing.db, "PRAGMA wal_checkpoint(TRUNCATE)", &statement, err));
    bool row = false;
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status) && row && cx_db_int(statement, 0) != 0)
        status = cx_fail(err, CX_E_BUSY,
                         "somebody reads the tables as they were before; the rest is done when this"
                         " is asked again, or the home is opened again");
    cx_db_finish(statement);
    return status;
}

/* --- opening --------------------------------------------------------------------------------- */

/* The text or number under a name in meta; *out_found false when there is none. */
static cx_status read_meta(cx_db *db, const char *name, cx_buf *out_text, uint64_t *out_number,
                           bool *out_found, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, "SELECT value FROM meta WHERE name=?", &statement, err));
    cx_db_bind_text(statement, 1, cx_str_z(name));
    cx_status status = cx_db_step(statement, out_found, err);
    if (!cx_failed(status) && *out_found) {
        if (out_text != NULL) {
            cx_buf_add_str(out_text, cx_db_text(statement, 0));
            status = cx_buf_check(out_text, err);
        } else {
            *out_number = (uint64_t)cx_db_int(statement, 0);
        }
    }
    cx_db_finish(statement);
    return status;
}

static cx_status read_state(cx_store *store, cx_str identity, bool *out_stale, cx_err *err)
{
    cx_db *db = store->reading.db;
    cx_buf text;
    cx_buf_init(&text, store->alloc);
    bool found = false, has_commit = false, has_frames = false, has_sum = false;
    uint64_t sum = 0;
    cx_status status = CX_SUCCESS;
    CX_GO(status, read_meta(db, "identity", &text, NULL, &found, err));
    CX_GO(status, read_meta(db, "commit", NULL, &store->flushed.commit, &has_commit, err));
    CX_GO(status, read_meta(db, "frames", NULL, &store->flushed.frames, &has_frames, err));
    CX_GO(status, read_meta(db, "sum", NULL, &sum, &has_sum, err));
    bool none = !found && !has_commit && !has_frames && !has_sum;
    if (!none && (!found || !has_commit || !has_frames || !has_sum ||
                  sum != sum_meta(cx_buf_str(&text), store->flushed)))
        status = fail_table("what the tables say about themselves is damaged", err);
    *out_stale = none || !cx_str_eq(cx_buf_str(&text), identity);
done:
    cx_buf_done(&text);
    return status;
}

cx_status cx_store_clear(cx_store *store, cx_str identity, cx_err *err)
{
    cx_db *db = store->writing.db;
    if (!store->derives)
        CX_TRY(cx_db_begin_write(db, err));
    cx_status status = cx_db_run(
        db, "DELETE FROM meta; DELETE FROM actor; DELETE FROM entry; DELETE FROM record;", err);
    if (!cx_failed(status))
        status = put_meta_text(&store->writing, "identity", identity, err);
    if (!cx_failed(status))
        status = put_position(store, (cx_position){0, 0}, err);
    if (!cx_failed(status))
        status = cx_db_commit(db, err);
    if (!cx_failed(status) && store->derives)
        status = cx_db_begin_write(db, err);
    if (cx_failed(status)) {
        cx_db_rollback(db);
        return status;
    }
    store->flushed = (cx_position){0, 0};
    /* Without memory for the filter the database is asked. */
    if (store->derives && store->filter == NULL)
        store->filter = cx_alloc_zeroed(store->alloc, 1, FILTER_SIZE);
    return CX_SUCCESS;
}

static cx_status open_writing(cx_store *store, const char *path, cx_db_mode mode, cx_err *err)
{
    CX_TRY(cx_db_open(path, mode, &store->writing.db, err));
    CX_TRY(cx_db_begin_write(store->writing.db, err));
    CX_TRY(cx_db_run(store->writing.db, schema, err));
    if (!store->shared)
        CX_TRY(cx_db_run(store->writing.db, subject_index, err));
    CX_TRY(cx_db_commit(store->writing.db, err));
    return prepare_writing(&store->writing, err);
}

/* Whoever made the file may have been killed before its first transaction. */
static cx_status check_made(cx_db *db, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, "PRAGMA page_count", &statement, err));
    bool row = false;
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status) && row && cx_db_int(statement, 0) <= 1)
        status = cx_fail(err, CX_E_NOT_FOUND, "the database is empty");
    cx_db_finish(statement);
    return status;
}

static cx_status open_parts(cx_store *store, const char *path, cx_store_mode mode, cx_err *err)
{
    bool writes = mode == CX_STORE_WRITE || mode == CX_STORE_SCRATCH || mode == CX_STORE_DERIVE;
    store->derives = mode == CX_STORE_DERIVE;
    store->shared = mode == CX_STORE_SCRATCH || store->derives;
    if (writes)
        CX_TRY(
            open_writing(store, path, mode == CX_STORE_SCRATCH ? CX_DB_SCRATCH : CX_DB_WRITE, err));
    if (store->derives)
        CX_TRY(cx_db_begin_write(store->writing.db, err));
    if (store->shared)
        store->reading.db = store->writing.db;
    else
        CX_TRY(cx_db_open(path,
                          mode == CX_STORE_IMMUTABLE ? CX_DB_IMMUTABLE
                          : mode == CX_STORE_ALONE   ? CX_DB_ALONE
                                                     : CX_DB_READ,
                          &store->reading.db, err));
    /* One view for as long as a reader is open: its counters and rows belong together. */
    if (!writes) {
        CX_TRY(cx_db_begin(store->reading.db, err));
        CX_TRY(check_made(store->reading.db, err));
    }
    CX_TRY(prepare_reading(&store->reading, err));
    store->filling = generation_open(store);
    return store->filling == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_store_open(const char *path, cx_store_mode mode, const cx_alloc *alloc, uint64_t seed,
                        cx_str identity, cx_store *out, bool *out_stale, cx_err *err)
{
    *out = (cx_store){.alloc = alloc, .seed = seed, .identity = identity};
    cx_status status = open_parts(out, path, mode, err);
    if (!cx_failed(status))
        status = read_state(out, identity, out_stale, err);
    if (cx_failed(status))
        cx_store_close(out);
    return status;
}

void cx_store_close(cx_store *store)
{
    generation_close(store->alloc, store->filling);
    generation_close(store->alloc, store->flushing);
    cx_alloc_free(store->alloc, store->filter, FILTER_SIZE);
    if (store->reading.db != NULL) {
        finish_statements(&store->reading);
        if (!store->shared) {
            cx_db_rollback(store->reading.db);
            cx_db_close(store->reading.db);
        }
    }
    if (store->writing.db != NULL) {
        finish_statements(&store->writing);
        cx_db_rollback(store->writing.db);
        cx_db_close(store->writing.db);
    }
    *store = (cx_store){0};
}

/* --- reading --------------------------------------------------------------------------------- */

static cx_status read_row(cx_tables *tables, int64_t actor, cx_bytes key, cx_arena *arena,
                          cx_bytes *out_value, bool *out_found, cx_err *err)
{
    cx_db_bind_int(tables->get, 1, actor);
    cx_db_bind_bytes(tables->get, 2, key);
    bool found = false;
    CX_TRY(cx_db_step(tables->get, &found, err));
    if (found) {
        cx_bytes value = {NULL, 0};
        cx_str copy = {NULL, 0};
        cx_status status = check_row(actor, key, cx_db_bytes(tables->get, 0), &value, err);
        if (!cx_failed(status))
            copy = cx_arena_copy_str(arena, cx_bytes_str(value));
        cx_db_reset(tables->get);
        CX_TRY(status);
        if (copy.data == NULL)
            return cx_fail_nomem(err);
        *out_value = cx_str_bytes(copy);
    }
    *out_found = found;
    return CX_SUCCESS;
}

cx_status cx_store_get(cx_store *store, int64_t actor, cx_bytes key, cx_arena *arena,
                       cx_bytes *out_value, bool *out_found, uint64_t *out_commit, cx_err *err)
{
    if (key.size > CX_KEY_SIZE_MAX) {
        *out_found = false;
        return CX_SUCCESS;
    }
    row_name name;
    cx_str text = name_row(actor, key, &name);
    uint64_t hash = cx_map_hash(&store->filling->index, text);
    const cx_row *row = find_row(store->filling, text, hash);
    if (row == NULL)
        row = find_row(store->flushing, text, hash);
    if (row == NULL && !filter_may_have(store->filter, hash)) {
        *out_found = false;
        return CX_SUCCESS;
    }
    if (row == NULL)
        return read_row(&store->reading, actor, key, arena, out_value, out_found, err);
    if (out_commit != NULL && row->commit > *out_commit)
        *out_commit = row->commit;
    if (!row->removed) {
        cx_str copy = cx_arena_copy_str(arena, cx_bytes_str(row->value));
        if (copy.data == NULL)
            return cx_fail_nomem(err);
        *out_value = cx_str_bytes(copy);
    }
    *out_found = !row->removed;
    return CX_SUCCESS;
}

static bool take_entry(cx_db_statement *statement, cx_entry_row *out)
{
    cx_bytes leaf = cx_db_bytes(statement, 8);
    *out = (cx_entry_row){
        .actor = cx_db_int(statement, 0),
        .seq = (uint64_t)cx_db_int(statement, 1),
        .kind = cx_db_text(statement, 2),
        .created_ns = cx_db_int(statement, 3),
        .place = {.segment = (uint32_t)cx_db_int(statement, 5),
                  .size_bytes = (uint32_t)cx_db_int(statement, 7),
                  .offset = (uint64_t)cx_db_int(statement, 6)},
    };
    if (leaf.size != sizeof out->leaf.bytes)
        return false;
    memcpy(out->leaf.bytes, leaf.data, leaf.size);
    cx_bytes subject = cx_db_bytes(statement, 4);
    out->has_subject = subject.size == sizeof out->subject.bytes;
    if (out->has_subject)
        memcpy(out->subject.bytes, subject.data, subject.size);
    return cx_db_int(statement, 9) == (int64_t)sum_entry(out);
}

static const cx_entry_row *find_entry(const cx_generation *generation, int64_t actor, uint64_t seq)
{
    /* Newest first: what has just been written is asked for most. */
    for (size_t i = generation == NULL ? 0 : generation->entries.count; i-- > 0;)
        if (generation->entries.items[i].actor == actor && generation->entries.items[i].seq == seq)
            return &generation->entries.items[i];
    return NULL;
}

cx_status cx_store_get_entry(cx_store *store, int64_t actor, uint64_t seq, cx_entry_row *out,
                             cx_err *err)
{
    const cx_entry_row *row = find_entry(store->filling, actor, seq);
    if (row == NULL)
        row = find_entry(store->flushing, actor, seq);
    if (row != NULL) {
        *out = *row;
        return CX_SUCCESS;
    }
    cx_db_statement *statement = store->reading.get_entry;
    cx_db_bind_int(statement, 1, actor);
    cx_db_bind_int(statement, 2, (int64_t)seq);
    bool found = false;
    CX_TRY(cx_db_step(statement, &found, err));
    if (!found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoEntry", CX_NO_OFFSET,
                          "there is no entry %llu in this journal", (unsigned long long)seq);
    bool good = take_entry(statement, out);
    out->kind = (cx_str){NULL, 0}; /* borrowed from the statement */
    cx_db_reset(statement);
    return good ? CX_SUCCESS : fail_table("an entry's row is damaged", err);
}

/* The first key behind all that begin with `prefix`; false when there is none. */
static bool prefix_end(cx_bytes prefix, uint8_t *out, size_t *out_size)
{
    memcpy(out, prefix.data, prefix.size);
    size_t size = prefix.size;
    while (size > 0 && out[size - 1] == 0xff)
        size--;
    if (size == 0)
        return false;
    out[size - 1]++;
    *out_size = size;
    return true;
}

cx_status
cx_store_scan(cx_store *store, int64_t actor, cx_bytes prefix, cx_bytes from, bool backwards,
              cx_status (*row)(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err),
              void *arg, cx_err *err)
{
    uint8_t end[CX_KEY_SIZE_MAX];
    size_t end_size = 0;
    if (prefix.size == 0 || prefix.size > sizeof end || !prefix_end(prefix, end, &end_size))
        return cx_fail(err, CX_E_USAGE, "a scan needs a prefix");
    cx_bytes low = prefix, high = cx_bytes_from(end, end_size);
    const char *sql = "SELECT key, value FROM record WHERE actor=?1 AND key>=?2 AND key<?3"
                      " ORDER BY key";
    if (!backwards && from.size != 0 && cx_str_cmp(cx_bytes_str(from), cx_bytes_str(low)) > 0)
        low = from;
    if (backwards) {
        sql = from.size == 0 ? "SELECT key, value FROM record WHERE actor=?1 AND key>=?2"
                               " AND key<?3 ORDER BY key DESC"
                             : "SELECT key, value FROM record WHERE actor=?1 AND key>=?2"
                               " AND key<=?3 ORDER BY key DESC";
        if (from.size != 0)
            high = from;
    }
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->reading.db, sql, &statement, err));
    cx_db_bind_int(statement, 1, actor);
    cx_db_bind_bytes(statement, 2, low);
    cx_db_bind_bytes(statement, 3, high);
    cx_status status = CX_SUCCESS;
    bool more = true, stop = false;
    while (!stop) {
        CX_GO(status, cx_db_step(statement, &more, err));
        if (!more)
            break;
        const cx_bytes key = cx_db_bytes(statement, 0);
        cx_bytes value;
        CX_GO(status, check_row(actor, key, cx_db_bytes(statement, 1), &value, err));
        CX_GO(status, row(arg, key, value, &stop, err));
    }
done:
    cx_db_finish(statement);
    return status;
}

cx_status cx_store_scan_entries(cx_store *store, int64_t actor, const cx_id *subject,
                                cx_status (*row)(void *arg, const cx_entry_row *entry, bool *stop,
                                                 cx_err *err),
                                void *arg, cx_err *err)
{
    const char *sql = subject == NULL ? "SELECT " ENTRY_COLUMNS
                                        " FROM entry WHERE actor=?1 ORDER BY seq"
                                      : "SELECT " ENTRY_COLUMNS
                                        " FROM entry WHERE actor=?1 AND subject=?2 ORDER BY seq";
    cx_db_statement *statement;
    /* What is being derived has the index from the first such question on. */
    if (subject != NULL && store->shared)
        CX_TRY(cx_db_run(store->writing.db, subject_index, err));
    CX_TRY(cx_db_prepare(store->reading.db, sql, &statement, err));
    cx_db_bind_int(statement, 1, actor);
    if (subject != NULL)
        cx_db_bind_bytes(statement, 2, cx_bytes_from(subject->bytes, sizeof subject->bytes));
    cx_status status = CX_SUCCESS;
    bool more = true, stop = false;
    while (!stop) {
        CX_GO(status, cx_db_step(statement, &more, err));
        if (!more)
            break;
        cx_entry_row entry;
        if (!take_entry(statement, &entry)) {
            status = fail_table("an entry's row is damaged", err);
            break;
        }
        CX_GO(status, row(arg, &entry, &stop, err));
    }
done:
    cx_db_finish(statement);
    return status;
}

cx_status cx_store_load_actors(cx_store *store,
                               cx_status (*row)(void *arg, const cx_actor_row *actor, cx_err *err),
                               void *arg, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->reading.db, "SELECT " ACTOR_COLUMNS " FROM actor ORDER BY id",
                         &statement, err));
    cx_status status = CX_SUCCESS;
    for (;;) {
        bool more = false;
        CX_GO(status, cx_db_step(statement, &more, err));
        if (!more)
            break;
        cx_actor_row actor = {.id = cx_db_int(statement, 0)};
        if (!cx_scheme_parse(cx_db_text(statement, 2), &actor.scheme)) {
            status = fail_table("an actor's row names no known scheme", err);
            break;
        }
        actor.name = cx_db_text(statement, 1);
        uint64_t *numbers[] = {&actor.entries, &actor.snapshots, &actor.live,     &actor.dead,
                               &actor.edges,   &actor.entry_sum, &actor.state_sum};
        for (int i = 0; i < 7; i++)
            *numbers[i] = (uint64_t)cx_db_int(statement, 3 + i);
        if (cx_db_int(statement, 10) != (int64_t)sum_actor(&actor)) {
            status = fail_table("an actor's row is damaged", err);
            break;
        }
        CX_GO(status, row(arg, &actor, err));
    }
done:
    cx_db_finish(statement);
    return status;
}

cx_status cx_store_counts(cx_store *store, uint64_t *out_entries, uint64_t *out_records,
                          cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->reading.db,
                         "SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM record)",
                         &statement, err));
    bool row = false;
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status) && row) {
        *out_entries = (uint64_t)cx_db_int(statement, 0);
        *out_records = (uint64_t)cx_db_int(statement, 1);
    }
    cx_db_finish(statement);
    return status;
}

/* --- comparing ------------------------------------------------------------------------------- */

typedef struct compared_table {
    const char *name;
    const char *sql; /* actor first, key second, then what must be equal */
    int column_count;
} compared_table;

/* Rows of planned erasures come and go without the log: they are not compared. */
static const compared_table compared[] = {
    {"actor", "SELECT " ACTOR_COLUMNS " FROM actor ORDER BY id, name", 11},
    {"entry", "SELECT " ENTRY_COLUMNS " FROM entry ORDER BY actor, seq", 10},
    {"record",
     "SELECT actor, key, value FROM record WHERE NOT (key >= CAST('erase/' AS BLOB)"
     " AND key < CAST('erase0' AS BLOB)) ORDER BY actor, key",
     3},
};

static int compare_names(const cx_db_statement *left, const cx_db_statement *right)
{
    int64_t a = cx_db_int(left, 0), b = cx_db_int(right, 0);
    if (a != b)
        return a < b ? -1 : 1;
    return cx_str_cmp(cx_bytes_str(cx_db_bytes(left, 1)), cx_bytes_str(cx_db_bytes(right, 1)));
}

/* Numbers are numbered rows: their order is that of their value, not of their text. */
static int compare_rows(const compared_table *table, const cx_db_statement *left,
                        const cx_db_statement *right)
{
    if (strcmp(table->name, "entry") != 0)
        return compare_names(left, right);
    for (int i = 0; i < 2; i++) {
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
    size_t left_calls; /* how often `differ` may still be called */
    cx_status (*differ)(void *arg, const char *table, int64_t actor, cx_bytes key, const char *how,
                        cx_err *err);
    void *arg;
} comparison;

static cx_status tell(comparison *state, const cx_db_statement *row, const char *how, cx_err *err)
{
    if (state->left_calls == 0)
        return CX_SUCCESS;
    state->left_calls--;
    return state->differ(state->arg, state->table->name, cx_db_int(row, 0), cx_db_bytes(row, 1),
                         how, err);
}

static cx_status compare_table(comparison *state, cx_err *err)
{
    bool left = false, right = false;
    CX_TRY(cx_db_step(state->left, &left, err));
    CX_TRY(cx_db_step(state->right, &right, err));
    while (left || right) {
        int order = !left ? 1 : !right ? -1 : compare_rows(state->table, state->left, state->right);
        if (order < 0)
            CX_TRY(tell(state, state->left, "missing", err));
        else if (order > 0)
            CX_TRY(tell(state, state->right, "not in the log", err));
        else if (!rows_equal(state->table, state->left, state->right))
            CX_TRY(tell(state, state->left, "different", err));
        if (order <= 0)
            CX_TRY(cx_db_step(state->left, &left, err));
        if (order >= 0)
            CX_TRY(cx_db_step(state->right, &right, err));
    }
    return CX_SUCCESS;
}

cx_status cx_store_compare(cx_store *left, cx_store *right, size_t max,
                           cx_status (*differ)(void *arg, const char *table, int64_t actor,
                                               cx_bytes key, const char *how, cx_err *err),
                           void *arg, cx_err *err)
{
    comparison state = {.left_calls = max, .differ = differ, .arg = arg};
    for (size_t i = 0; i < sizeof compared / sizeof *compared; i++) {
        state.table = &compared[i];
        state.left = state.right = NULL;
        cx_status status = cx_db_prepare(left->reading.db, compared[i].sql, &state.left, err);
        if (!cx_failed(status))
            status = cx_db_prepare(right->reading.db, compared[i].sql, &state.right, err);
        if (!cx_failed(status))
            status = compare_table(&state, err);
        cx_db_finish(state.left);
        cx_db_finish(state.right);
        CX_TRY(status);
    }
    return CX_SUCCESS;
}
