/*
 * store.c - the memtables and writing them to the tables.  Reading is in store_read.c.
 *
 * S1  A memtable is flushed whole, with its end position, in one transaction.
 * S2  A row that is in no memtable is in the database, if it exists.
 * S3  Every row has a checksum: a damaged row is reported and never used.  Folds and trees have
 *     none: what is read of them must lead to the actor's row.
 * S4  A store that derives keeps a transaction open: its rows become durable with a later flush, or
 *     not at all.  A filter, if there is one, has every key in the database.
 * S5  A read view ends with the flush of a memtable: until then the rows that the view lacks are in
 *     that memtable.
 *
 *     meta(name, value)       identity of the tables; position = commit, frames; numbers of rows
 *     actors(id, name, ...)   an actor's counters, right edge of its journal, roots of its trees
 *
 *     entry(actor, seq, ...)  each entry's place in the log, and its leaf hash
 *
 *     fold(actor, level, ..)  nodes of the journals' trees, one in 256 (tree/mmr.h)
 *
 *     leaf, page, page_cut, leaf_was, page_was  the trees of states (pages/pages.h)
 *
 *     past(actor, snapshot, ..)  heights of these trees when a snapshot was made
 *
 *     sweep(actor, position)  past/history.h
 *
 *     changed(roots, actor)   the actors that have changed since so many home roots (home_tree.h)
 *
 *     hash_new, hash_block    what has to do with a hash (find/hash_rows.h)
 *
 *     record(actor, key, value)  records and derived rows by logical key (ledger.md §5); after the
 *                             value its checksum, 4 bytes
 */
#include "base/api.h"
#include "ledger/find/hash_rows.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"
#include "ledger/store_internal.h"

#define ARENA_LIMIT 0

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS entry(actor INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " kind TEXT NOT NULL, created_ns INTEGER NOT NULL, subject BLOB, segment INTEGER NOT NULL,"
    " offset INTEGER NOT NULL, size INTEGER NOT NULL, leaf BLOB NOT NULL, sum INTEGER NOT NULL,"
    " PRIMARY KEY(actor, seq)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS record(actor INTEGER NOT NULL, key BLOB NOT NULL,"
    " value BLOB NOT NULL, PRIMARY KEY(actor, key)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS fold(actor INTEGER NOT NULL, level INTEGER NOT NULL,"
    " number INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(actor, level, number))"
    " WITHOUT ROWID;"
    /* Not `actor`: programs of earlier versions make and empty a table of that name. */
    "CREATE TABLE IF NOT EXISTS actors(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " scheme TEXT NOT NULL, entries INTEGER NOT NULL, snapshots INTEGER NOT NULL,"
    " live INTEGER NOT NULL, dead INTEGER NOT NULL, edges INTEGER NOT NULL,"
    " peaks BLOB NOT NULL, memory_tree BLOB NOT NULL, edge_tree BLOB NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS past(actor INTEGER NOT NULL, snapshot INTEGER NOT NULL,"
    " memory_height INTEGER NOT NULL, edge_height INTEGER NOT NULL, PRIMARY KEY(actor, snapshot))"
    " WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS sweep(actor INTEGER PRIMARY KEY, position BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS changed(roots INTEGER NOT NULL, actor INTEGER NOT NULL,"
    " PRIMARY KEY(roots, actor)) WITHOUT ROWID;";

/* Creating it once over all rows is cheaper than maintaining it row by row. */
const char cx_store_subject_index[] =
    "CREATE INDEX IF NOT EXISTS entry_subject ON entry(actor, subject, seq)"
    " WHERE subject IS NOT NULL;";

/* --- statements ------------------------------------------------------------------------------ */

static void finish_statements(cx_tables *tables)
{
    cx_db_finish(tables->get);
    cx_db_finish(tables->put);
    cx_db_finish(tables->replace);
    cx_db_finish(tables->remove);
    cx_db_finish(tables->put_entry);
    cx_db_finish(tables->get_entry);
    cx_db_finish(tables->put_actor);
    cx_db_finish(tables->put_meta);
    cx_db_finish(tables->scan_actors);
    cx_db_finish(tables->find_actor);
    cx_db_finish(tables->put_fold);
    cx_db_finish(tables->scan_leaves);
    cx_db_finish(tables->scan_folds);
    cx_db_finish(tables->scan_up);
    cx_db_finish(tables->get_position);
    cx_db_finish(tables->get_past);
    cx_db_finish(tables->put_past);
    cx_db_finish(tables->remove_past);
    cx_db_finish(tables->scan_past);
    cx_db_finish(tables->put_changed);
    cx_db_finish(tables->forget_changed);
    cx_db_finish(tables->scan_changed);
    cx_db_finish(tables->scan_history);
    cx_db_finish(tables->get_sweep);
    cx_db_finish(tables->put_sweep);
    cx_db_finish(tables->remove_sweep);
    cx_hash_finish(tables);
    cx_pages_close(tables->pages);
    cx_db_finish(tables->begin);
    cx_db_finish(tables->end);
    *tables = (cx_tables){.db = tables->db};
}

static cx_status prepare_reading(cx_tables *tables, cx_err *err)
{
    CX_TRY(cx_db_prepare(tables->db, "SELECT value FROM record WHERE actor=? AND key=?",
                         &tables->get, err));
    CX_TRY(cx_db_prepare(tables->db, "BEGIN", &tables->begin, err));
    CX_TRY(cx_db_prepare(tables->db, "COMMIT", &tables->end, err));
    return cx_db_prepare(tables->db,
                         "SELECT " CX_ENTRY_COLUMNS " FROM entry WHERE actor=? AND seq=?",
                         &tables->get_entry, err);
}

static cx_status prepare_writing(cx_tables *tables, cx_err *err)
{
    cx_db *db = tables->db;
    /* A row that is there is replaced by a second statement: so each is counted. */
    CX_TRY(cx_db_prepare(db, "INSERT OR IGNORE INTO record VALUES(?,?,?)", &tables->put, err));
    CX_TRY(cx_db_prepare(db, "UPDATE record SET value=?3 WHERE actor=?1 AND key=?2",
                         &tables->replace, err));
    CX_TRY(cx_db_prepare(db, "DELETE FROM record WHERE actor=? AND key=?", &tables->remove, err));
    CX_TRY(cx_db_prepare(db, "INSERT OR REPLACE INTO entry VALUES(?,?,?,?,?,?,?,?,?,?)",
                         &tables->put_entry, err));
    CX_TRY(
        cx_db_prepare(db, "INSERT OR REPLACE INTO fold VALUES(?,?,?,?)", &tables->put_fold, err));
    return cx_db_prepare(db, "INSERT OR REPLACE INTO meta VALUES(?,?)", &tables->put_meta, err);
}

/* Bytes of pages that each connection keeps; of a writer, whose changes come back to the same pages
 * between flushes: all pages of 150,000 keys. */
#define PAGE_CACHE ((size_t)8 << 20)
#define PAGE_CACHE_WRITER ((size_t)32 << 20)

static cx_status open_pages(const cx_store *store, cx_tables *tables, cx_err *err)
{
    const bool writer = store->writing.db != NULL && !store->shared;
    const cx_pages_options options = {.alloc = store->alloc,
                                      .cache_bytes = writer ? PAGE_CACHE_WRITER : PAGE_CACHE};
    return cx_pages_open(tables->db, &options, &tables->pages, err);
}

/* Statements that need columns which only current tables have. */
static cx_status prepare_actors(cx_store *store, cx_err *err)
{
    static const char past[] = "SELECT snapshot FROM past WHERE actor=? ORDER BY snapshot";
    cx_tables *reading = &store->reading, *writing = &store->writing;
    if (reading->scan_actors != NULL)
        return CX_SUCCESS;
    CX_TRY(cx_db_prepare(reading->db,
                         "SELECT " CX_ACTOR_COLUMNS " FROM actors WHERE id>=? AND id<? ORDER BY id",
                         &reading->scan_actors, err));
    CX_TRY(cx_db_prepare(reading->db, "SELECT id FROM actors WHERE name=?", &reading->find_actor,
                         err));
    CX_TRY(cx_db_prepare(reading->db,
                         "SELECT seq, leaf FROM entry WHERE actor=?1 AND seq>=?2 AND seq<?3"
                         " ORDER BY seq",
                         &reading->scan_leaves, err));
    CX_TRY(cx_db_prepare(reading->db,
                         "SELECT number, hash FROM fold WHERE actor=?1 AND number>=?2 AND"
                         " number<?3 AND level=?4 ORDER BY number",
                         &reading->scan_folds, err));
    CX_TRY(cx_db_prepare(reading->db,
                         "SELECT (SELECT value FROM meta WHERE name='commit'),"
                         " (SELECT value FROM meta WHERE name='frames')",
                         &reading->get_position, err));
    CX_TRY(cx_db_prepare(reading->db,
                         "SELECT memory_height, edge_height FROM past WHERE actor=? AND snapshot=?",
                         &reading->get_past, err));
    CX_TRY(cx_db_prepare(reading->db, "SELECT actor FROM changed WHERE roots=? ORDER BY actor",
                         &reading->scan_changed, err));
    CX_TRY(cx_hash_prepare(store, err));
    if (!store->shared)
        CX_TRY(cx_db_prepare(reading->db, past, &reading->scan_past, err));
    CX_TRY(open_pages(store, reading, err));
    if (writing->db == NULL)
        return CX_SUCCESS;
    CX_TRY(open_pages(store, writing, err));
    CX_TRY(cx_db_prepare(writing->db, "INSERT OR REPLACE INTO past VALUES(?,?,?,?)",
                         &writing->put_past, err));
    CX_TRY(cx_db_prepare(writing->db, "DELETE FROM past WHERE actor=? AND snapshot=?",
                         &writing->remove_past, err));
    CX_TRY(cx_db_prepare(writing->db, past, &writing->scan_past, err));
    CX_TRY(cx_db_prepare(writing->db, "INSERT OR IGNORE INTO changed VALUES(?,?)",
                         &writing->put_changed, err));
    CX_TRY(cx_db_prepare(writing->db, "DELETE FROM changed WHERE roots<?", &writing->forget_changed,
                         err));
    CX_TRY(cx_db_prepare(writing->db,
                         "SELECT key FROM record WHERE actor=?1 AND key>?2 AND"
                         " key<CAST('hist0' AS BLOB) ORDER BY key LIMIT ?3",
                         &writing->scan_history, err));
    CX_TRY(cx_db_prepare(writing->db, "SELECT actor, position FROM sweep ORDER BY actor LIMIT 1",
                         &writing->get_sweep, err));
    CX_TRY(cx_db_prepare(writing->db, "INSERT OR REPLACE INTO sweep VALUES(?,?)",
                         &writing->put_sweep, err));
    CX_TRY(
        cx_db_prepare(writing->db, "DELETE FROM sweep WHERE actor=?", &writing->remove_sweep, err));
    return cx_db_prepare(writing->db,
                         "INSERT OR REPLACE INTO actors VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
                         &writing->put_actor, err);
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

static cx_status put_position(cx_store *store, cx_str identity, cx_position position,
                              const cx_store_counters *counters, cx_err *err)
{
    cx_tables *tables = &store->writing;
    CX_TRY(put_meta_int(tables, "commit", position.commit, err));
    CX_TRY(put_meta_int(tables, "frames", position.frames, err));
    CX_TRY(put_meta_int(tables, "actors", counters->actors, err));
    CX_TRY(put_meta_int(tables, "entries", counters->entries, err));
    CX_TRY(put_meta_int(tables, "records", counters->records, err));
    CX_TRY(put_meta_int(tables, "hashes", counters->hashes, err));
    CX_TRY(put_meta_int(tables, "rows_sum", cx_store_sum_meta(identity, position, counters), err));
    return put_meta_int(tables, "sum", cx_store_sum_meta(identity, position, NULL), err);
}

/* --- generations ----------------------------------------------------------------------------- */

static void generation_close(const cx_alloc *alloc, cx_memtable *generation)
{
    if (generation == NULL)
        return;
    cx_vec_done(&generation->rows, alloc);
    cx_vec_done(&generation->entries, alloc);
    cx_vec_done(&generation->folds, alloc);
    cx_vec_done(&generation->states, alloc);
    cx_vec_done(&generation->snapshots, alloc);
    cx_vec_done(&generation->hashes, alloc);
    cx_vec_done(&generation->actors, alloc);
    cx_map_done(&generation->index);
    cx_arena_done(&generation->arena);
    cx_alloc_free(alloc, generation, sizeof *generation);
}

static cx_memtable *generation_open(const cx_store *store)
{
    cx_memtable *generation = cx_alloc_zeroed(store->alloc, 1, sizeof *generation);
    if (generation == NULL)
        return NULL;
    cx_arena_init(&generation->arena, store->alloc, ARENA_LIMIT);
    cx_map_init(&generation->index, store->alloc, store->seed);
    return generation;
}

/* --- keys that were put, while deriving from nothing ------------------------------------------ */

/*
 * A Bloom filter: nearly every record of a log is new, and a lookup of a key whose two bits are not
 * both set does not need the database (S4).  With ten million keys seven of a hundred lookups of
 * absent keys still reach it.
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

/* Without a filter any key may exist. */
bool cx_store_may_have(const uint64_t *filter, uint64_t hash)
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

cx_str cx_store_name_row(int64_t actor, cx_bytes key, cx_row_name *name)
{
    CX_ASSERT(key.size <= CX_KEY_SIZE_MAX);
    memcpy(name->bytes, &actor, sizeof actor);
    memcpy(name->bytes + sizeof actor, key.data, key.size);
    return cx_str_from(name->bytes, sizeof actor + key.size);
}

const cx_row *cx_store_find_row(const cx_memtable *generation, cx_str name, uint64_t hash)
{
    if (generation == NULL)
        return NULL;
    const uint64_t *at = cx_map_find_hashed(&generation->index, name, hash);
    return at == NULL ? NULL : &generation->rows.items[*at];
}

cx_status cx_store_put(cx_store *store, const cx_row *row, cx_err *err)
{
    cx_memtable *generation = store->memtable;
    cx_row_name name;
    cx_str text = cx_store_name_row(row->actor, row->key, &name);
    /* As it will be in the database, followed by its checksum. */
    uint8_t *value = cx_arena_push(&generation->arena, row->value.size + CX_ROW_SUM_SIZE, 1);
    if (value == NULL)
        return cx_fail_nomem(err);
    if (row->value.size != 0)
        memcpy(value, row->value.data, row->value.size);
    cx_store_sum_row(row->actor, row->key, row->value, value + row->value.size);
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
    cx_memtable *generation = store->memtable;
    cx_str name = cx_arena_copy_str(&generation->arena, row->name);
    cx_str peaks = cx_arena_copy_str(&generation->arena, cx_bytes_str(row->peaks));
    if (name.data == NULL || peaks.data == NULL)
        return cx_fail_nomem(err);
    cx_actor_row *copy = cx_vec_push(&generation->actors, store->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    *copy = *row;
    copy->name = name;
    copy->peaks = cx_str_bytes(peaks);
    return CX_SUCCESS;
}

cx_status cx_store_put_fold(cx_store *store, const cx_fold_row *row, cx_err *err)
{
    cx_fold_row *copy = cx_vec_push(&store->memtable->folds, store->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    *copy = *row;
    return CX_SUCCESS;
}

cx_status cx_store_put_state(cx_store *store, const cx_state_row *row, cx_err *err)
{
    cx_state_row *copy = cx_vec_push(&store->memtable->states, store->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    *copy = *row;
    return CX_SUCCESS;
}

cx_status cx_store_put_snapshot(cx_store *store, const cx_snapshot_row *row, cx_err *err)
{
    cx_snapshot_row *copy = cx_vec_push(&store->memtable->snapshots, store->alloc);
    if (copy == NULL)
        return cx_fail_nomem(err);
    *copy = *row;
    return CX_SUCCESS;
}

size_t cx_store_memtable_rows(const cx_store *store)
{
    const cx_memtable *memtable = store->memtable;
    return memtable->rows.count + memtable->entries.count + memtable->actors.count;
}

static size_t bytes_of(const cx_memtable *memtable)
{
    return memtable->arena.total_bytes + memtable->rows.capacity * sizeof *memtable->rows.items +
           memtable->entries.capacity * sizeof *memtable->entries.items +
           memtable->states.capacity * sizeof *memtable->states.items +
           memtable->hashes.capacity * sizeof *memtable->hashes.items +
           memtable->index.slot_count * sizeof *memtable->index.slots;
}

size_t cx_store_memtable_bytes(const cx_store *store)
{
    return bytes_of(store->memtable);
}

cx_status cx_store_start_flush(cx_store *store, cx_position end, cx_err *err)
{
    CX_ASSERT(store->flushing == NULL);
    cx_memtable *next = generation_open(store);
    if (next == NULL)
        return cx_fail_nomem(err);
    store->flushing = store->memtable;
    store->flushing->end = end;
    next->first_state = store->flushing->first_state + store->flushing->states.count;
    store->memtable = next;
    return CX_SUCCESS;
}

void cx_store_flushed(cx_store *store)
{
    if (store->view == CX_VIEW_OPEN) { /* S5 */
        cx_store_view_end(store);
        cx_store_view_begin(store);
    }
    store->flushed = store->flushing->end;
    store->counters = store->flushing_counters;
    generation_close(store->alloc, store->flushing);
    store->flushing = NULL;
    store->aside.runs = false;
    cx_store_runs_flushed(store);
}

/* --- writing to the database ----------------------------------------------------------------- */

static cx_status note_record(const cx_store *store, const cx_row *row, cx_err *err)
{
    if (store->note_record == NULL)
        return CX_SUCCESS;
    cx_db_bind_int(store->note_record, 1, row->actor);
    cx_db_bind_bytes(store->note_record, 2, row->key);
    return cx_db_execute(store->note_record, err);
}

static cx_status note_journal(const cx_store *store, const cx_entry_row *row, cx_err *err)
{
    if (store->note_journal == NULL)
        return CX_SUCCESS;
    cx_db_bind_int(store->note_journal, 1, row->actor);
    cx_db_bind_int(store->note_journal, 2, (int64_t)row->seq);
    return cx_db_execute(store->note_journal, err);
}

static cx_status run_row(cx_db_statement *statement, const cx_row *row, cx_err *err)
{
    cx_db_bind_int(statement, 1, row->actor);
    cx_db_bind_bytes(statement, 2, row->key);
    if (!row->removed)
        cx_db_bind_bytes(statement, 3,
                         cx_bytes_from(row->value.data, row->value.size + CX_ROW_SUM_SIZE));
    return cx_db_execute(statement, err);
}

/* Plans of erasures come and go without the log, so they are not counted. */
bool cx_store_is_counted(const cx_row *row)
{
    if (cx_history_is(row->key)) /* past/history.h G4 */
        return false;
    return row->actor != CX_ACTOR_HOME ||
           !cx_str_starts(cx_bytes_str(row->key), CX_STR(CX_ERASE_PREFIX));
}

cx_status cx_store_write_row(cx_tables *tables, const cx_row *row, uint64_t *records, cx_err *err)
{
    CX_TRY(run_row(row->removed ? tables->remove : tables->put, row, err));
    const bool changed = cx_db_changes(tables->db) > 0;
    if (changed && cx_store_is_counted(row))
        *records = row->removed ? *records - 1 : *records + 1;
    return row->removed || changed ? CX_SUCCESS : run_row(tables->replace, row, err);
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
    cx_db_bind_int(statement, 10, cx_store_sum_entry(row));
    return cx_db_execute(statement, err);
}

cx_status cx_store_put_entry(cx_store *store, const cx_entry_row *row, cx_err *err)
{
    cx_memtable *generation = store->memtable;
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

static cx_status write_fold(cx_store *store, const cx_fold_row *row, cx_err *err)
{
    cx_db_statement *statement = store->writing.put_fold;
    cx_db_bind_int(statement, 1, row->actor);
    cx_db_bind_int(statement, 2, row->fold.level);
    cx_db_bind_int(statement, 3, (int64_t)row->fold.number);
    cx_db_bind_bytes(statement, 4, cx_bytes_from(row->fold.hash.bytes, 32));
    return cx_db_execute(statement, err);
}

cx_status cx_store_repair_folds(cx_store *store, const cx_fold_row *rows, size_t count, cx_err *err)
{
    cx_db *db = store->writing.db;
    CX_TRY(cx_db_begin_write(db, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = write_fold(store, &rows[i], err);
    if (!cx_failed(status))
        status = cx_db_commit(db, err);
    if (cx_failed(status))
        cx_db_rollback(db);
    return status;
}

cx_status cx_store_write_actor(cx_store *store, const cx_actor_row *row, cx_err *err)
{
    cx_db_statement *statement = store->writing.put_actor;
    cx_db_bind_int(statement, 1, row->id);
    cx_db_bind_text(statement, 2, row->name);
    cx_db_bind_text(statement, 3, cx_scheme_name(row->scheme));
    const uint64_t numbers[] = {row->entries, row->snapshots, row->live, row->dead, row->edges};
    for (int i = 0; i < 5; i++)
        cx_db_bind_int(statement, 4 + i, (int64_t)numbers[i]);
    cx_db_bind_bytes(statement, 9, row->peaks);
    uint8_t trees[2][CX_PAGES_ANCHOR_SIZE];
    for (int i = 0; i < 2; i++) {
        cx_pages_anchor_encode(&row->trees[i], trees[i]);
        cx_db_bind_bytes(statement, 10 + i, cx_bytes_from(trees[i], sizeof trees[i]));
    }
    cx_db_bind_int(statement, 12, cx_store_sum_actor(row));
    return cx_db_execute(statement, err);
}

static cx_status write_changed(cx_store *store, const cx_actor_row *row, cx_err *err)
{
    cx_db_statement *statement = store->writing.put_changed;
    cx_db_bind_int(statement, 1, (int64_t)row->home_roots);
    cx_db_bind_int(statement, 2, row->id);
    return cx_db_execute(statement, err);
}

/* What a home root that was recorded since covers is forgotten. */
static cx_status forget_covered(cx_store *store, const cx_memtable *generation, cx_err *err)
{
    cx_db_statement *statement = store->writing.forget_changed;
    cx_db_bind_int(statement, 1, (int64_t)generation->home_roots);
    return cx_db_execute(statement, err);
}

static uint64_t head_of_key(cx_bytes key)
{
    uint64_t head = 0;
    for (size_t i = 0; i < sizeof head; i++)
        head = head << 8 | (i < key.size ? key.data[i] : 0);
    return head;
}

static int compare_rows(const void *a, const void *b)
{
    const cx_sorted_row *x = a, *y = b;
    if (x->actor != y->actor)
        return x->actor < y->actor ? -1 : 1;
    if (x->head != y->head)
        return x->head < y->head ? -1 : 1;
    return cx_str_cmp(cx_bytes_str(x->row->key), cx_bytes_str(y->row->key));
}

static cx_status write_into_table(cx_store *store, const cx_sorted_row *sorted, size_t count,
                                  uint64_t *records, cx_err *err)
{
    CX_TRY(cx_store_merge_runs(store, records, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(cx_store_write_row(&store->writing, sorted[i].row, records, err));
    return CX_SUCCESS;
}

/* Sorted by key, so that neighbours in the table are written one after the other. */
static cx_status write_sorted(cx_store *store, const cx_memtable *generation, uint64_t *records,
                              cx_err *err)
{
    size_t count = generation->rows.count, size = (count + 1) * sizeof(cx_sorted_row);
    cx_sorted_row *sorted = cx_alloc_new(store->alloc, size);
    if (sorted == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const cx_row *row = &generation->rows.items[i];
        sorted[i] = (cx_sorted_row){row->actor, head_of_key(row->key), row};
    }
    qsort(sorted, count, sizeof *sorted, compare_rows);
    cx_status status = cx_store_takes_run(store, count)
                           ? cx_store_write_run(store, sorted, count, err)
                           : write_into_table(store, sorted, count, records, err);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        status = note_record(store, sorted[i].row, err);
    cx_alloc_free(store->alloc, sorted, size);
    return status;
}

typedef struct entry_list {
    const cx_memtable *memtable;
    size_t next;
} entry_list;

/* cx_db_next_row */
static cx_status next_entry(void *arg, cx_db_value *columns, bool *out_more, cx_err *err)
{
    entry_list *list = arg;
    (void)err;
    *out_more = list->next < list->memtable->entries.count;
    if (!*out_more)
        return CX_SUCCESS;
    const cx_entry_row *row = &list->memtable->entries.items[list->next++];
    const cx_bytes subject = cx_bytes_from(row->subject.bytes, sizeof row->subject.bytes);
    const cx_db_value values[] = {
        {.type = CX_DB_INT, .number = row->actor},
        {.type = CX_DB_INT, .number = (int64_t)row->seq},
        {.type = CX_DB_TEXT, .bytes = cx_str_bytes(row->kind)},
        {.type = CX_DB_INT, .number = row->created_ns},
        {.type = row->has_subject ? CX_DB_BYTES : CX_DB_NULL, .bytes = subject},
        {.type = CX_DB_INT, .number = row->place.segment},
        {.type = CX_DB_INT, .number = (int64_t)row->place.offset},
        {.type = CX_DB_INT, .number = row->place.size_bytes},
        {.type = CX_DB_BYTES, .bytes = cx_bytes_from(row->leaf.bytes, sizeof row->leaf.bytes)},
        {.type = CX_DB_INT, .number = cx_store_sum_entry(row)},
    };
    memcpy(columns, values, sizeof values);
    return CX_SUCCESS;
}

/* Where tables are derived from the first commit on, no entry is there already. */
static cx_status write_entries(cx_store *store, const cx_memtable *generation, cx_err *err)
{
    entry_list list = {.memtable = generation};
    if (store->shared && store->note_journal == NULL)
        return cx_db_insert_rows(store->writing.db, "entry", 10, next_entry, &list, err);
    for (size_t i = 0; i < generation->entries.count; i++) {
        CX_TRY(note_journal(store, &generation->entries.items[i], err));
        CX_TRY(write_entry(&store->writing, &generation->entries.items[i], err));
    }
    return CX_SUCCESS;
}

static cx_status write_rows(cx_store *store, const cx_memtable *generation, cx_err *err)
{
    cx_store_counters counters = store->counters;
    CX_TRY(write_sorted(store, generation, &counters.records, err));
    CX_TRY(store->later.on ? cx_store_write_later(store, generation, err)
                           : cx_store_write_states(store, generation, err));
    CX_TRY(cx_store_write_hashes(store, generation, &counters.hashes, err));
    CX_TRY(write_entries(store, generation, err));
    for (size_t i = 0; i < generation->folds.count; i++)
        CX_TRY(write_fold(store, &generation->folds.items[i], err));
    counters.entries += generation->entries.count;
    for (size_t i = 0; i < generation->actors.count; i++) {
        const uint64_t number = (uint64_t)generation->actors.items[i].id;
        cx_actor_row actor = generation->actors.items[i];
        memcpy(actor.trees, actor.trees_after, sizeof actor.trees);
        CX_TRY(cx_store_write_actor(store, &actor, err));
        CX_TRY(write_changed(store, &actor, err));
        counters.actors = number < counters.actors ? counters.actors : number + 1;
    }
    CX_TRY(forget_covered(store, generation, err));
    if (cx_store_deferred_is_due(store))
        CX_TRY(cx_store_build_deferred(store, err));
    store->flushing_counters = counters;
    return put_position(store, store->identity, generation->end, &counters, err);
}

/* Of a store that derives (S4). */
static cx_status commit_derived(cx_store *store, cx_err *err)
{
    CX_TRY(cx_store_sync_runs(store, err));
    CX_TRY(cx_db_commit(store->writing.db, err));
    store->uncommitted = 0;
    return cx_db_begin_write(store->writing.db, err);
}

/* A commit of a file that is filled is some syncs: small flushes share one. */
static bool stays_open(cx_store *store, const cx_memtable *generation)
{
    store->uncommitted += bytes_of(generation);
    return store->holds_transaction || (store->runs != NULL && !cx_store_runs_merged(store) &&
                                        store->uncommitted < store->commit_bytes);
}

cx_status cx_store_flush_memtable(cx_store *store, const cx_memtable *generation, cx_err *err)
{
    cx_tables *tables = &store->writing;
    if (!store->derives)
        CX_TRY(cx_db_begin_write(tables->db, err));
    cx_status status = write_rows(store, generation, err);
    if (!cx_failed(status) && stays_open(store, generation))
        return status;
    if (!cx_failed(status))
        status = store->derives ? commit_derived(store, err) : cx_db_commit(tables->db, err);
    if (cx_failed(status))
        cx_db_rollback(tables->db);
    return status;
}

static void flush_flushing(void *arg)
{
    cx_store *store = arg;
    cx_db_borrow(store->writing.db);
    store->aside.status = cx_store_flush_memtable(store, store->flushing, &store->aside.err);
    cx_db_give_back(store->writing.db);
}

void cx_store_flush_aside(cx_store *store, bool by_thread)
{
    cx_store_aside *aside = &store->aside;
    CX_ASSERT(store->flushing != NULL && !aside->runs);
    aside->status = CX_SUCCESS;
    aside->err = (cx_err){0};
    aside->runs = true;
    cx_db_lend(store->writing.db);
    if (!by_thread || !cx_thread_start(&aside->thread, flush_flushing, store))
        flush_flushing(store);
}

cx_status cx_store_flush_end(cx_store *store, cx_err *err)
{
    cx_store_aside *aside = &store->aside;
    cx_thread_join(&aside->thread);
    if (cx_failed(aside->status) && err != NULL)
        *err = aside->err;
    return aside->status;
}

cx_status cx_store_keep(cx_store *store, cx_err *err)
{
    CX_ASSERT(store->derives && store->holds_transaction);
    return commit_derived(store, err);
}

cx_status cx_store_note_changes(cx_store *store, cx_err *err)
{
    cx_db *db = store->writing.db;
    CX_ASSERT(store->derives && store->note_record == NULL);
    CX_TRY(
        cx_db_prepare(db, "INSERT OR IGNORE INTO touched VALUES(?,?)", &store->note_record, err));
    return cx_db_prepare(db, "INSERT OR IGNORE INTO began VALUES(?,?)", &store->note_journal, err);
}

cx_status cx_store_finish_derived(cx_store *store, cx_err *err)
{
    CX_ASSERT(store->derives);
    CX_TRY(cx_store_merge_waiting(store, err));
    CX_TRY(cx_store_forget_roots(store, err));
    CX_TRY(cx_db_run(store->writing.db, cx_store_subject_index, err));
    CX_TRY(cx_store_sync_runs(store, err));
    CX_TRY(cx_db_commit(store->writing.db, err));
    CX_TRY(cx_db_filled(store->writing.db, err));
    return cx_db_begin_write(store->writing.db, err);
}

cx_status cx_store_merge_waiting(cx_store *store, cx_err *err)
{
    cx_store_counters counters = store->counters;
    CX_ASSERT(store->runs == NULL || store->flushing == NULL);
    CX_TRY(cx_store_merge_runs(store, &counters.records, err));
    if (!cx_store_runs_merged(store))
        return CX_SUCCESS;
    CX_TRY(put_position(store, store->identity, store->flushed, &counters, err));
    CX_TRY(commit_derived(store, err));
    store->counters = counters;
    cx_store_runs_flushed(store);
    return CX_SUCCESS;
}

/* --- opening --------------------------------------------------------------------------------- */

/* Reads the text or number of a name in meta; *out_found is false when it does not exist. */
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

/* --- what was erased -------------------------------------------------------------------------- */

/* In meta: every page was written so that nothing erased stays on it (db/wipe.h), since the file
 * was made or was last rewritten.  A program that does not write so empties meta first. */
#define CLEAN_NAME "clean"

static cx_status put_clean(cx_store *store, cx_err *err)
{
    return put_meta_int(&store->writing, CLEAN_NAME, 1, err);
}

cx_status cx_store_scrub(cx_store *store, cx_err *err)
{
    CX_ASSERT(store->flushing == NULL);
    if (store->shared)
        return CX_SUCCESS;
    bool clean = false;
    uint64_t ignored = 0;
    CX_TRY(read_meta(store->writing.db, CLEAN_NAME, NULL, &ignored, &clean, err));
    CX_TRY(cx_db_forget_deleted(store->writing.db, clean, err));
    return clean ? CX_SUCCESS : put_clean(store, err);
}

typedef struct meta_number {
    const char *name;
    uint64_t *out;
} meta_number;

/* *out_there: how many of them there are. */
static cx_status read_numbers(cx_db *db, const meta_number *numbers, size_t count,
                              size_t *out_there, cx_err *err)
{
    *out_there = 0;
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        CX_TRY(read_meta(db, numbers[i].name, NULL, numbers[i].out, &found, err));
        *out_there += found ? 1 : 0;
    }
    return CX_SUCCESS;
}

static cx_status read_state(cx_store *store, cx_str identity, bool *out_stale, cx_err *err)
{
    uint64_t sum = 0, rows_sum = 0;
    cx_store_counters *counters = &store->counters;
    const meta_number position[] = {
        {"commit", &store->flushed.commit}, {"frames", &store->flushed.frames}, {"sum", &sum}};
    const meta_number rows[] = {{"actors", &counters->actors},
                                {"entries", &counters->entries},
                                {"records", &counters->records},
                                {"hashes", &counters->hashes},
                                {"rows_sum", &rows_sum}};
    cx_db *db = store->reading.db;
    cx_buf text;
    cx_buf_init(&text, store->alloc);
    bool found = false, good = true;
    size_t there = 0, counted = 0;
    cx_status status = CX_SUCCESS;
    CX_TRY_GOTO(status, read_meta(db, "identity", &text, NULL, &found, err));
    CX_TRY_GOTO(status, read_numbers(db, position, 3, &there, err));
    CX_TRY_GOTO(status, read_numbers(db, rows, 5, &counted, err));
    *out_stale = !cx_str_eq(cx_buf_str(&text), identity);
    if (!found && there == 0)
        goto done;
    good = found && there == 3 && sum == cx_store_sum_meta(cx_buf_str(&text), store->flushed, NULL);
    if (good && !*out_stale)
        good = counted == 5 &&
               rows_sum == cx_store_sum_meta(cx_buf_str(&text), store->flushed, counters);
    if (!good)
        status = cx_store_damaged("what the tables say about themselves is damaged", err);
done:
    cx_buf_done(&text);
    return status;
}

cx_status cx_store_clear(cx_store *store, cx_str identity, cx_err *err)
{
    cx_db *db = store->writing.db;
    const cx_store_counters none = {0};
    if (!store->derives)
        CX_TRY(cx_db_begin_write(db, err));
    cx_status status = cx_db_run(db,
                                 "DELETE FROM meta WHERE name<>'" CLEAN_NAME
                                 "'; DELETE FROM entry; DELETE FROM record; DELETE FROM fold;"
                                 " DELETE FROM past; DELETE FROM sweep; DELETE FROM changed; "
                                 "DELETE FROM leaf; DELETE FROM page;"
                                 " DELETE FROM leaf_was; DELETE FROM page_was;"
                                 " DELETE FROM page_cut; DELETE FROM actors;"
                                 " DROP TABLE IF EXISTS actor;",
                                 err);
    if (!cx_failed(status))
        status = cx_db_run(db, cx_hash_clear, err);
    if (!cx_failed(status))
        status = put_meta_text(&store->writing, "identity", identity, err);
    if (!cx_failed(status))
        status = put_position(store, identity, (cx_position){0, 0}, &none, err);
    if (!cx_failed(status))
        status = cx_db_commit(db, err);
    if (!cx_failed(status) && store->derives)
        status = cx_db_begin_write(db, err);
    if (cx_failed(status)) {
        cx_db_rollback(db);
        return status;
    }
    store->flushed = (cx_position){0, 0};
    store->counters = none;
    store->sweeps = false;
    cx_store_forget_runs(store);
    CX_TRY(prepare_actors(store, err));
    /* If there is no memory for the filter, every lookup goes to the database. */
    if (store->shared && store->filter == NULL)
        store->filter = cx_alloc_zeroed(store->alloc, 1, FILTER_SIZE);
    return CX_SUCCESS;
}

/* 0 = the file is new. */
static cx_status count_tables(cx_db *db, uint64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_TRY(cx_db_prepare(db, "SELECT count(*) FROM sqlite_master", &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status))
        *out = row ? (uint64_t)cx_db_int(statement, 0) : 1;
    cx_db_finish(statement);
    return status;
}

static cx_status open_writing(cx_store *store, const char *path, cx_db_mode mode, cx_err *err)
{
    uint64_t tables = 0;
    CX_TRY(cx_db_open(path, mode, &store->writing.db, err));
    CX_TRY(cx_db_begin_write(store->writing.db, err));
    CX_TRY(count_tables(store->writing.db, &tables, err));
    CX_TRY(cx_db_run(store->writing.db, schema, err));
    CX_TRY(cx_db_run(store->writing.db, cx_hash_schema, err));
    CX_TRY(cx_pages_create_tables(store->writing.db, err));
    if (!store->shared)
        CX_TRY(cx_db_run(store->writing.db, cx_store_subject_index, err));
    if (tables == 0)
        CX_TRY(cx_db_run(store->writing.db,
                         "INSERT OR REPLACE INTO meta VALUES('" CLEAN_NAME "', 1)", err));
    CX_TRY(cx_db_commit(store->writing.db, err));
    return prepare_writing(&store->writing, err);
}

/* The process that created the file may have been killed before its first transaction. */
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
    store->derives = mode == CX_STORE_DERIVE || mode == CX_STORE_FILL;
    store->shared = mode == CX_STORE_SCRATCH || store->derives;
    const bool writes = mode == CX_STORE_WRITE || store->shared;
    if (writes)
        CX_TRY(open_writing(store, path,
                            mode == CX_STORE_SCRATCH ? CX_DB_SCRATCH
                            : mode == CX_STORE_FILL  ? CX_DB_FILL
                                                     : CX_DB_WRITE,
                            err));
    if (store->derives) {
        cx_db_write_in_bulk(store->writing.db);
        CX_TRY(cx_db_begin_write(store->writing.db, err));
    }
    if (store->shared)
        store->reading.db = store->writing.db;
    else
        CX_TRY(cx_db_open(path,
                          mode == CX_STORE_IMMUTABLE ? CX_DB_IMMUTABLE
                          : mode == CX_STORE_ALONE   ? CX_DB_ALONE
                                                     : CX_DB_READ,
                          &store->reading.db, err));
    /* One read view for as long as a reader is open, so that its counters and rows agree. */
    if (!writes) {
        CX_TRY(cx_db_begin(store->reading.db, err));
        CX_TRY(check_made(store->reading.db, err));
    }
    CX_TRY(prepare_reading(&store->reading, err));
    store->memtable = generation_open(store);
    return store->memtable == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_store_open(const char *path, cx_store_mode mode, const cx_alloc *alloc, uint64_t seed,
                        cx_str identity, cx_store *out, bool *out_stale, cx_err *err)
{
    *out = (cx_store){.alloc = alloc, .seed = seed, .identity = identity};
    cx_status status = open_parts(out, path, mode, err);
    if (!cx_failed(status))
        status = read_state(out, identity, out_stale, err);
    if (!cx_failed(status) && !*out_stale)
        status = prepare_actors(out, err);
    if (!cx_failed(status) && !*out_stale)
        status = cx_history_load(out, err);
    if (cx_failed(status))
        cx_store_close(out);
    return status;
}

void cx_store_close(cx_store *store)
{
    cx_thread_join(&store->aside.thread);
    generation_close(store->alloc, store->memtable);
    generation_close(store->alloc, store->flushing);
    cx_alloc_free(store->alloc, store->filter, FILTER_SIZE);
    if (store->reading.db != NULL) {
        finish_statements(&store->reading);
        if (!store->shared) {
            cx_db_rollback(store->reading.db);
            cx_db_close(store->reading.db);
        }
    }
    cx_store_end_deferred(store);
    cx_store_end_runs(store);
    cx_db_finish(store->note_record);
    cx_db_finish(store->note_journal);
    if (store->writing.db != NULL) {
        finish_statements(&store->writing);
        cx_db_rollback(store->writing.db);
        cx_db_close(store->writing.db);
    }
    *store = (cx_store){0};
}
