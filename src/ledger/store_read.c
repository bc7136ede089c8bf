/*
 * store_read.c - point reads through both memtables to the database, and range reads of the
 * database.
 */
#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/past/history.h"
#include "ledger/store_internal.h"

/* --- views (S5) ------------------------------------------------------------------------------ */

void cx_store_view_begin(cx_store *store)
{
    CX_ASSERT(store->view == CX_VIEW_NONE);
    /* A store whose connection also writes, or that is read-only, already has an open
     * transaction. */
    if (!store->shared && store->writing.db != NULL)
        store->view = CX_VIEW_WANTED; /* opened by the first read that reaches the database */
}

cx_status cx_store_need_view(cx_store *store, cx_err *err)
{
    if (store->view != CX_VIEW_WANTED)
        return CX_SUCCESS;
    CX_TRY(cx_db_execute(store->reading.begin, err));
    store->view = CX_VIEW_OPEN;
    return CX_SUCCESS;
}

void cx_store_view_end(cx_store *store)
{
    if (store->view == CX_VIEW_OPEN && cx_failed(cx_db_execute(store->reading.end, NULL)))
        cx_db_rollback(store->reading.db);
    store->view = CX_VIEW_NONE;
}

/* --- points ---------------------------------------------------------------------------------- */

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
        cx_status status = cx_store_check_row(actor, key, cx_db_bytes(tables->get, 0), &value, err);
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

cx_status cx_store_shown_position(cx_store *store, cx_position *out, cx_err *err)
{
    cx_db_statement *statement = store->reading.get_position;
    bool there = false;
    CX_TRY(cx_store_need_view(store, err));
    CX_TRY(cx_db_step(statement, &there, err));
    if (there)
        *out = (cx_position){(uint64_t)cx_db_int(statement, 0), (uint64_t)cx_db_int(statement, 1)};
    cx_db_reset(statement);
    return CX_SUCCESS;
}

cx_status cx_store_get(cx_store *store, int64_t actor, cx_bytes key, cx_arena *arena,
                       cx_bytes *out_value, bool *out_found, uint64_t *out_commit, cx_err *err)
{
    if (key.size > CX_KEY_SIZE_MAX) {
        *out_found = false;
        return CX_SUCCESS;
    }
    cx_row_name name;
    cx_str text = cx_store_name_row(actor, key, &name);
    uint64_t hash = cx_map_hash(&store->memtable->index, text);
    if (!cx_store_may_have(store->filter, hash)) {
        *out_found = false;
        return CX_SUCCESS;
    }
    const cx_row *row = cx_store_find_row(store->memtable, text, hash);
    if (row == NULL)
        row = cx_store_find_row(store->flushing, text, hash);
    cx_row waiting;
    if (row == NULL) {
        bool there = false;
        CX_TRY(cx_store_find_in_runs(store, actor, key, &waiting, &there, err));
        row = there ? &waiting : NULL;
    }
    if (row == NULL) {
        CX_TRY(cx_store_need_view(store, err));
        return read_row(&store->reading, actor, key, arena, out_value, out_found, err);
    }
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

static bool read_entry_row(cx_db_statement *statement, cx_entry_row *out)
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
    return cx_db_int(statement, 9) == (int64_t)cx_store_sum_entry(out);
}

static const cx_entry_row *find_entry(const cx_memtable *generation, int64_t actor, uint64_t seq)
{
    /* Newest first: recently written rows are read most. */
    for (size_t i = generation == NULL ? 0 : generation->entries.count; i-- > 0;)
        if (generation->entries.items[i].actor == actor && generation->entries.items[i].seq == seq)
            return &generation->entries.items[i];
    return NULL;
}

cx_status cx_store_get_entry(cx_store *store, int64_t actor, uint64_t seq, cx_entry_row *out,
                             cx_err *err)
{
    const cx_entry_row *row = find_entry(store->memtable, actor, seq);
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
    bool good = read_entry_row(statement, out);
    out->kind = (cx_str){NULL, 0}; /* borrowed from the statement */
    cx_db_reset(statement);
    return good ? CX_SUCCESS : cx_store_damaged("an entry's row is damaged", err);
}

/* The first key after all keys with `prefix`; false when there is none. */
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

static const char scan_up[] = "SELECT key, value FROM record WHERE actor=?1 AND key>=?2 AND key<?3"
                              " ORDER BY key";

/* The last one that was used, but for a scan within another one. */
static cx_status take_scan(cx_tables *tables, const char *sql, cx_db_statement **out, cx_err *err)
{
    if (sql != scan_up || tables->scan_up == NULL)
        return cx_db_prepare(tables->db, sql, out, err);
    *out = tables->scan_up;
    tables->scan_up = NULL;
    return CX_SUCCESS;
}

static void give_scan_back(cx_tables *tables, const char *sql, cx_db_statement *statement)
{
    if (sql != scan_up || tables->scan_up != NULL) {
        cx_db_finish(statement);
        return;
    }
    cx_db_reset(statement);
    tables->scan_up = statement;
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
    const char *sql = scan_up;
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
    CX_TRY(take_scan(&store->reading, sql, &statement, err));
    cx_db_bind_int(statement, 1, actor);
    cx_db_bind_bytes(statement, 2, low);
    cx_db_bind_bytes(statement, 3, high);
    cx_status status = CX_SUCCESS;
    bool more = true, stop = false;
    while (!stop) {
        CX_TRY_GOTO(status, cx_db_step(statement, &more, err));
        if (!more)
            break;
        const cx_bytes key = cx_db_bytes(statement, 0);
        cx_bytes value = cx_db_bytes(statement, 1);
        CX_TRY_GOTO(status, cx_store_check_row(actor, key, value, &value, err));
        CX_TRY_GOTO(status, row(arg, key, value, &stop, err));
    }
done:
    give_scan_back(&store->reading, sql, statement);
    return status;
}

cx_status cx_store_check_records(cx_store *store, int64_t actor, uint64_t *count, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->reading.db, "SELECT key, value FROM record WHERE actor=?",
                         &statement, err));
    cx_db_bind_int(statement, 1, actor);
    cx_status status = CX_SUCCESS;
    for (bool more = true;;) {
        cx_bytes ignored;
        status = cx_db_step(statement, &more, err);
        if (cx_failed(status) || !more)
            break;
        status = cx_store_check_row(actor, cx_db_bytes(statement, 0), cx_db_bytes(statement, 1),
                                    &ignored, err);
        if (cx_failed(status))
            break;
        ++*count;
    }
    cx_db_finish(statement);
    return status;
}

/* The numbers come from the index alone.  Asked for all columns at once, SQLite reads every entry
 * of the actor instead, in the order that is wanted. */
const char cx_store_about_sql[] =
    "SELECT " CX_ENTRY_COLUMNS " FROM (SELECT actor AS a, seq AS s FROM entry WHERE actor=?1 AND"
    " subject=?2) CROSS JOIN entry ON actor=a AND seq=s ORDER BY s";

cx_status cx_store_scan_entries(cx_store *store, int64_t actor, const cx_id *subject,
                                cx_status (*row)(void *arg, const cx_entry_row *entry, bool *stop,
                                                 cx_err *err),
                                void *arg, cx_err *err)
{
    const char *sql = subject == NULL ? "SELECT " CX_ENTRY_COLUMNS
                                        " FROM entry WHERE actor=?1 ORDER BY seq"
                                      : cx_store_about_sql;
    cx_db_statement *statement;
    /* A store that derives creates the index at the first such query. */
    if (subject != NULL && store->shared)
        CX_TRY(cx_db_run(store->writing.db, cx_store_subject_index, err));
    CX_TRY(cx_db_prepare(store->reading.db, sql, &statement, err));
    cx_db_bind_int(statement, 1, actor);
    if (subject != NULL)
        cx_db_bind_bytes(statement, 2, cx_bytes_from(subject->bytes, sizeof subject->bytes));
    cx_status status = CX_SUCCESS;
    bool more = true, stop = false;
    while (!stop) {
        CX_TRY_GOTO(status, cx_db_step(statement, &more, err));
        if (!more)
            break;
        cx_entry_row entry;
        if (!read_entry_row(statement, &entry)) {
            status = cx_store_damaged("an entry's row is damaged", err);
            break;
        }
        CX_TRY_GOTO(status, row(arg, &entry, &stop, err));
    }
done:
    cx_db_finish(statement);
    return status;
}

/* --- journals --------------------------------------------------------------------------------- */

/* Hashes that were asked for, and which of them are there. */
typedef struct wanted {
    int64_t actor;
    unsigned level;
    uint64_t first;
    size_t count, found;
    cx_digest *out;
    bool there[256];
} wanted;

static void give(wanted *w, uint64_t number, const uint8_t *hash)
{
    if (number < w->first || number - w->first >= w->count)
        return;
    const size_t at = (size_t)(number - w->first);
    memcpy(w->out[at].bytes, hash, sizeof w->out[at].bytes);
    w->found += w->there[at] ? 0 : 1;
    w->there[at] = true;
}

static void give_from_memtable(wanted *w, const cx_memtable *memtable)
{
    if (memtable == NULL)
        return;
    for (size_t i = 0; w->level == 0 && i < memtable->entries.count; i++) {
        const cx_entry_row *row = &memtable->entries.items[i];
        if (row->actor == w->actor)
            give(w, row->seq, row->leaf.bytes);
    }
    for (size_t i = 0; w->level != 0 && i < memtable->folds.count; i++) {
        const cx_fold_row *row = &memtable->folds.items[i];
        if (row->actor == w->actor && row->fold.level == w->level)
            give(w, row->fold.number, row->fold.hash.bytes);
    }
}

static cx_status give_from_tables(wanted *w, cx_tables *tables, cx_err *err)
{
    cx_db_statement *statement = w->level == 0 ? tables->scan_leaves : tables->scan_folds;
    cx_db_bind_int(statement, 1, w->actor);
    cx_db_bind_int(statement, 2, (int64_t)w->first);
    cx_db_bind_int(statement, 3, (int64_t)(w->first + w->count));
    if (w->level != 0)
        cx_db_bind_int(statement, 4, w->level);
    cx_status status = CX_SUCCESS;
    for (bool more = true;;) {
        CX_TRY_GOTO(status, cx_db_step(statement, &more, err));
        if (!more)
            break;
        const cx_bytes hash = cx_db_bytes(statement, 1);
        if (hash.size == sizeof w->out->bytes)
            give(w, (uint64_t)cx_db_int(statement, 0), hash.data);
    }
done:
    cx_db_reset(statement);
    return status;
}

cx_status cx_store_read_journal(cx_store *store, int64_t actor, unsigned level, uint64_t first,
                                size_t count, cx_digest *out, cx_err *err)
{
    wanted w = {.actor = actor, .level = level, .first = first, .count = count, .out = out};
    CX_ASSERT(count <= sizeof w.there / sizeof *w.there);
    give_from_memtable(&w, store->memtable);
    give_from_memtable(&w, store->flushing);
    if (w.found < count)
        CX_TRY(give_from_tables(&w, &store->reading, err));
    return w.found == count ? CX_SUCCESS
                            : cx_store_damaged("a row of a journal's hashes is missing", err);
}

/* --- actors ----------------------------------------------------------------------------------- */

static cx_status read_actor_row(const cx_db_statement *statement, cx_actor_row *out, cx_err *err)
{
    *out = (cx_actor_row){.id = cx_db_int(statement, 0), .name = cx_db_text(statement, 1)};
    if (!cx_scheme_parse(cx_db_text(statement, 2), &out->scheme))
        return cx_store_damaged("an actor's row names no known scheme", err);
    uint64_t *numbers[] = {&out->entries, &out->snapshots, &out->live, &out->dead, &out->edges};
    for (int i = 0; i < 5; i++)
        *numbers[i] = (uint64_t)cx_db_int(statement, 3 + i);
    out->peaks = cx_db_bytes(statement, 8);
    for (int i = 0; i < 2; i++)
        if (!cx_pages_anchor_decode(cx_db_bytes(statement, 9 + i), &out->trees[i]) ||
            out->trees[i].scheme != out->scheme ||
            out->trees[i].tree != cx_tree_of(out->id, (unsigned)i))
            return cx_store_damaged("an actor's row is damaged", err);
    memcpy(out->trees_after, out->trees, sizeof out->trees);
    if (cx_db_int(statement, 11) != (int64_t)cx_store_sum_actor(out))
        return cx_store_damaged("an actor's row is damaged", err);
    return CX_SUCCESS;
}

cx_status cx_store_count_actors(cx_store *store, uint64_t *out, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    int64_t last = -1;
    CX_TRY(cx_db_prepare(store->reading.db, "SELECT max(id) FROM actors", &statement, err));
    cx_status status = cx_db_step(statement, &row, err);
    if (!cx_failed(status) && row && !cx_db_is_null(statement, 0))
        last = cx_db_int(statement, 0);
    cx_db_finish(statement);
    CX_TRY(status);
    *out = (uint64_t)(last + 1);
    if (last < -1 || *out != store->counters.actors)
        return cx_store_damaged("the last actor's row is missing", err);
    return CX_SUCCESS;
}

cx_status cx_store_scan_actors(cx_store *store, int64_t from, int64_t to,
                               cx_status (*row)(void *arg, const cx_actor_row *actor, cx_err *err),
                               void *arg, cx_err *err)
{
    cx_db_statement *statement = store->reading.scan_actors;
    cx_db_bind_int(statement, 1, from);
    cx_db_bind_int(statement, 2, to);
    cx_status status = CX_SUCCESS;
    for (int64_t expected = from; expected < to; expected++) {
        bool more = false;
        cx_actor_row actor;
        CX_TRY_GOTO(status, cx_db_step(statement, &more, err));
        if (!more || cx_db_int(statement, 0) != expected) {
            status = cx_store_damaged("an actor's row is missing", err);
            break;
        }
        CX_TRY_GOTO(status, read_actor_row(statement, &actor, err));
        CX_TRY_GOTO(status, row(arg, &actor, err));
    }
done:
    cx_db_reset(statement);
    return status;
}

cx_status cx_store_scan_changed(cx_store *store, uint64_t home_roots,
                                cx_status (*number)(void *arg, int64_t actor, cx_err *err),
                                void *arg, cx_err *err)
{
    cx_db_statement *statement = store->reading.scan_changed;
    cx_db_bind_int(statement, 1, (int64_t)home_roots);
    cx_status status = CX_SUCCESS;
    for (bool more = true;;) {
        CX_TRY_GOTO(status, cx_db_step(statement, &more, err));
        if (!more)
            break;
        CX_TRY_GOTO(status, number(arg, cx_db_int(statement, 0), err));
    }
done:
    cx_db_reset(statement);
    return status;
}

/* actor/<name> */
typedef struct name_key {
    uint8_t bytes[sizeof CX_ACTOR_PREFIX - 1 + CX_ACTOR_SIZE_MAX];
} name_key;

static cx_bytes key_of_name(cx_str name, name_key *key)
{
    const size_t prefix = sizeof CX_ACTOR_PREFIX - 1;
    CX_ASSERT(name.size <= CX_ACTOR_SIZE_MAX);
    memcpy(key->bytes, CX_ACTOR_PREFIX, prefix);
    memcpy(key->bytes + prefix, name.data, name.size);
    return cx_bytes_from(key->bytes, prefix + name.size);
}

typedef struct id_value {
    uint8_t bytes[8];
} id_value;

static cx_bytes value_of_id(int64_t id, id_value *value)
{
    for (unsigned i = 0; i < 8; i++)
        value->bytes[i] = (uint8_t)((uint64_t)id >> (8 * (7 - i)));
    return cx_bytes_from(value->bytes, sizeof value->bytes);
}

cx_status cx_store_put_actor_name(cx_store *store, int64_t id, cx_str name, uint64_t commit,
                                  cx_err *err)
{
    name_key key;
    id_value value;
    const cx_row row = {.actor = CX_ACTOR_HOME,
                        .key = key_of_name(name, &key),
                        .value = value_of_id(id, &value),
                        .commit = commit};
    return cx_store_put(store, &row, err);
}

static cx_status find_in_rows(cx_store *store, cx_str name, cx_arena *arena, int64_t *out_id,
                              bool *out_found, cx_err *err)
{
    name_key key;
    cx_bytes value = {NULL, 0};
    uint64_t id = 0;
    CX_TRY(cx_store_get(store, CX_ACTOR_HOME, key_of_name(name, &key), arena, &value, out_found,
                        NULL, err));
    if (*out_found && value.size != 8)
        return cx_store_damaged("an actor's name has a damaged row", err);
    for (size_t i = 0; *out_found && i < 8; i++)
        id = id << 8 | value.data[i];
    *out_id = (int64_t)id;
    return CX_SUCCESS;
}

static cx_status find_by_statement(cx_db_statement *statement, cx_str name, int64_t *out_id,
                                   bool *out_found, cx_err *err)
{
    cx_db_bind_text(statement, 1, name);
    cx_status status = cx_db_step(statement, out_found, err);
    if (!cx_failed(status) && *out_found)
        *out_id = cx_db_int(statement, 0);
    cx_db_reset(statement);
    return status;
}

/* Both indexes were filled with the rows of the filter (S4). */
static bool is_new_name(const cx_store *store, cx_str name)
{
    name_key key;
    cx_row_name row;
    const cx_str text = cx_store_name_row(CX_ACTOR_HOME, key_of_name(name, &key), &row);
    return !cx_store_may_have(store->filter, cx_map_hash(&store->memtable->index, text));
}

cx_status cx_store_find_actor(cx_store *store, cx_str name, cx_arena *arena, int64_t *out_id,
                              bool *out_found, cx_err *err)
{
    int64_t indexed = 0;
    bool there = false;
    if (is_new_name(store, name)) {
        *out_found = false;
        return CX_SUCCESS;
    }
    CX_TRY(find_by_statement(store->reading.find_actor, name, &indexed, &there, err));
    CX_TRY(find_in_rows(store, name, arena, out_id, out_found, err));
    if (there != *out_found || (there && indexed != *out_id))
        return cx_store_damaged("an actor's name is in one of its two indexes only", err);
    return CX_SUCCESS;
}

/* --- counting --------------------------------------------------------------------------------- */

cx_status cx_store_count_rows(cx_store *store, uint64_t *out_entries, uint64_t *out_records,
                              cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(store->reading.db,
                         "SELECT (SELECT count(*) FROM entry), (SELECT count(*) FROM record WHERE"
                         " NOT " CX_HISTORY_ROWS ")"
                         " - (SELECT count(*) FROM record WHERE actor=0"
                         " AND key >= CAST('erase/' AS BLOB) AND key < CAST('erase0' AS BLOB))",
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
