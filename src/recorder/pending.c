/*
 * pending.c - the queue of keys that wait for a decision; see pending.h.
 */
#include "recorder/pending.h"

#include "db/api.h"

struct cx_pending {
    const cx_alloc *alloc;
    cx_arena arena; /* of the path */
    const char *path;
    cx_lock lock; /* of the connection */
    cx_db *db;    /* NULL = not opened yet */
    bool writes;
};

static const char schema[] =
    /* The write-ahead log reaches the disk with every commit (P4). */
    "PRAGMA synchronous=FULL;"
    "CREATE TABLE IF NOT EXISTS pending_keys(key_id TEXT NOT NULL, public_key BLOB NOT NULL,"
    " state TEXT NOT NULL, description TEXT, address TEXT, at_ns INTEGER NOT NULL,"
    " PRIMARY KEY(key_id, public_key));"
    "CREATE UNIQUE INDEX IF NOT EXISTS pending_one_key ON pending_keys(key_id)"
    " WHERE state = 'pending';" /* P1 */
    "CREATE TABLE IF NOT EXISTS pending_batches(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " batch_timestamp TEXT NOT NULL, consent_timestamp TEXT NOT NULL, level INTEGER NOT NULL,"
    " metadata TEXT, at_ns INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS pending_events(id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " batch INTEGER NOT NULL, key_id TEXT NOT NULL, content BLOB NOT NULL, level INTEGER NOT NULL,"
    " connectivity INTEGER NOT NULL, trace BLOB NOT NULL, UNIQUE(key_id, content))";

/* --- opening ---------------------------------------------------------------------------------- */

cx_status cx_pending_new(const cx_alloc *alloc, const char *home_path, cx_pending **out,
                         cx_err *err)
{
    cx_pending *pending = cx_alloc_zeroed(alloc, 1, sizeof *pending);
    if (pending == NULL)
        return cx_fail_nomem(err);
    pending->alloc = alloc;
    cx_arena_init(&pending->arena, alloc, 0);
    cx_lock_init(&pending->lock);
    pending->path = cx_arena_printf(&pending->arena, "%s/pending.db", home_path).data;
    if (pending->path == NULL) {
        cx_pending_free(pending);
        return cx_fail_nomem(err);
    }
    *out = pending;
    return CX_SUCCESS;
}

void cx_pending_free(cx_pending *pending)
{
    if (pending == NULL)
        return;
    cx_db_close(pending->db);
    cx_lock_done(&pending->lock);
    cx_arena_done(&pending->arena);
    cx_alloc_free(pending->alloc, pending, sizeof *pending);
}

/* With the lock held. */
static cx_status open_to_write(cx_pending *pending, cx_err *err)
{
    if (pending->db != NULL && pending->writes)
        return CX_SUCCESS;
    cx_db_close(pending->db);
    pending->db = NULL;
    CX_TRY(cx_db_open(pending->path, CX_DB_WRITE, &pending->db, err));
    pending->writes = true;
    cx_status status = cx_db_run(pending->db, schema, err);
    if (cx_failed(status)) {
        cx_db_close(pending->db);
        pending->db = NULL;
    }
    return status;
}

/* With the lock held; `*out_there` false: no key has ever registered itself here. */
static cx_status open_to_read(cx_pending *pending, bool *out_there, cx_err *err)
{
    cx_err failure = {0};
    *out_there = true;
    if (pending->db != NULL)
        return CX_SUCCESS;
    cx_status status = cx_db_open(pending->path, CX_DB_READ, &pending->db, &failure);
    if (!cx_failed(status)) {
        pending->writes = false;
        return CX_SUCCESS;
    }
    if (status.code == CX_E_NOT_FOUND) {
        *out_there = false;
        return CX_SUCCESS;
    }
    *err = failure;
    return status;
}

/* --- sums ------------------------------------------------------------------------------------- */

/* The integers of one row; `text` is bound to the first parameter unless its data is NULL. */
static cx_status read_integers(cx_db *db, const char *sql, cx_str text, int64_t *out, int count,
                               cx_err *err)
{
    cx_db_statement *statement;
    bool there = false;
    for (int i = 0; i < count; i++)
        out[i] = 0;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    if (text.data != NULL)
        cx_db_bind_text(statement, 1, text);
    cx_status status = cx_db_step(statement, &there, err);
    for (int i = 0; i < count && there && !cx_failed(status); i++)
        out[i] = cx_db_int(statement, i);
    cx_db_finish(statement);
    return status;
}

static cx_status sums_of_key(cx_db *db, cx_str key_id, int64_t out[2], cx_err *err)
{
    return read_integers(db,
                         "SELECT COUNT(*), COALESCE(SUM(LENGTH(trace)), 0) FROM pending_events "
                         "WHERE key_id = ?1",
                         key_id, out, 2, err);
}

cx_status cx_pending_counts(cx_pending *pending, cx_pending_sums *out, cx_err *err)
{
    int64_t found[3] = {0, 0, 0};
    bool there;
    cx_lock_enter(&pending->lock);
    cx_status status = open_to_read(pending, &there, err);
    if (!cx_failed(status) && there)
        status = read_integers(
            pending->db,
            "SELECT (SELECT COUNT(*) FROM pending_keys WHERE state = 'pending'), COUNT(*), "
            "COALESCE(SUM(LENGTH(trace)), 0) FROM pending_events",
            (cx_str){NULL, 0}, found, 3, err);
    cx_lock_leave(&pending->lock);
    *out = (cx_pending_sums){(uint64_t)found[0], (uint64_t)found[1], (uint64_t)found[2]};
    return status;
}

cx_status cx_pending_key_counts(cx_pending *pending, cx_str key_id, cx_pending_sums *out,
                                cx_err *err)
{
    int64_t found[2] = {0, 0};
    bool there;
    cx_lock_enter(&pending->lock);
    cx_status status = open_to_read(pending, &there, err);
    if (!cx_failed(status) && there)
        status = sums_of_key(pending->db, key_id, found, err);
    cx_lock_leave(&pending->lock);
    *out = (cx_pending_sums){.keys = 1, (uint64_t)found[0], (uint64_t)found[1]};
    return status;
}

/* --- keys ------------------------------------------------------------------------------------- */

#define MIB ((uint64_t)1 << 20)

/* `limit` with the words for what it counts. */
static cx_status fail_full(cx_err *err, uint64_t limit, const char *what)
{
    return cx_fail_at(err, CX_E_LIMIT, "PendingFull", CX_NO_OFFSET,
                      "more than %llu %s would wait for a decision; nothing of this request was "
                      "stored: send it again after 'cortex key approve' or 'cortex key reject'",
                      (unsigned long long)limit, what);
}

/* What is known of this id: 0 nothing, 1 this key is pending, 2 another one is, 3 this key was
 * rejected. */
static cx_status find_key(cx_db *db, const cx_trust_key *key, int *out, cx_err *err)
{
    cx_db_statement *statement;
    bool there = false;
    *out = 0;
    CX_TRY(cx_db_prepare(db,
                         "SELECT public_key, state = 'pending' FROM pending_keys WHERE key_id = ?1",
                         &statement, err));
    cx_db_bind_text(statement, 1, key->key_id);
    cx_status status;
    while (!cx_failed(status = cx_db_step(statement, &there, err)) && there) {
        cx_bytes found = cx_db_bytes(statement, 0);
        bool same = found.size == sizeof key->key.bytes &&
                    memcmp(found.data, key->key.bytes, found.size) == 0;
        bool waits = cx_db_int(statement, 1) != 0;
        if (same)
            *out = waits ? 1 : 3;
        else if (waits && *out == 0)
            *out = 2;
    }
    cx_db_finish(statement);
    return status;
}

static cx_status check_key_limits(cx_db *db, cx_str address, bool loopback, cx_err *err)
{
    int64_t found[2];
    CX_TRY(read_integers(db,
                         "SELECT COUNT(*), COALESCE(SUM(address = ?1), 0) FROM pending_keys "
                         "WHERE state = 'pending'",
                         address, found, 2, err));
    if (found[0] >= CX_PENDING_KEYS_MAX)
        return fail_full(err, CX_PENDING_KEYS_MAX, "keys");
    if (!loopback && found[1] >= CX_PENDING_KEYS_PER_ADDRESS_MAX)
        return fail_full(err, CX_PENDING_KEYS_PER_ADDRESS_MAX, "keys from this address");
    return CX_SUCCESS;
}

static cx_status insert_key(cx_db *db, const cx_trust_key *key, cx_str address, int64_t now_ns,
                            cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db,
                         "INSERT INTO pending_keys(key_id, public_key, state, description, "
                         "address, at_ns) VALUES(?1, ?2, 'pending', ?3, ?4, ?5)",
                         &statement, err));
    cx_db_bind_text(statement, 1, key->key_id);
    cx_db_bind_bytes(statement, 2, cx_bytes_from(key->key.bytes, sizeof key->key.bytes));
    if (key->description.data != NULL)
        cx_db_bind_text(statement, 3, key->description);
    else
        cx_db_bind_null(statement, 3);
    cx_db_bind_text(statement, 4, address);
    cx_db_bind_int(statement, 5, now_ns);
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

static cx_status add_key(cx_db *db, const cx_trust_key *key, cx_str address, bool loopback,
                         int64_t now_ns, bool *out_new, cx_err *err)
{
    int known;
    CX_TRY(find_key(db, key, &known, err));
    *out_new = known == 0;
    switch (known) {
    case 1: return CX_SUCCESS;
    case 2:
        return cx_fail_at(err, CX_E_CONFLICT, "KeyConflict", CX_NO_OFFSET,
                          "another key waits under the id %.*s; register under another id, or "
                          "after 'cortex key reject'",
                          (int)key->key_id.size, key->key_id.data);
    case 3:
        return cx_fail_at(err, CX_E_DENIED, "KeyRejected", CX_NO_OFFSET,
                          "the key %.*s was rejected here; 'cortex key add' admits it all the same",
                          (int)key->key_id.size, key->key_id.data);
    default: break;
    }
    CX_TRY(check_key_limits(db, address, loopback, err));
    return insert_key(db, key, address, now_ns, err);
}

/* Takes the lock, also when it fails: end_change gives it back. */
static cx_status begin_change(cx_pending *pending, cx_err *err)
{
    cx_lock_enter(&pending->lock);
    CX_TRY(open_to_write(pending, err));
    return cx_db_begin_write(pending->db, err);
}

/* `begun` is what begin_change returned, `status` the outcome of the change. */
static cx_status end_change(cx_pending *pending, cx_status begun, cx_status status, cx_err *err)
{
    if (!cx_failed(status))
        status = cx_db_commit(pending->db, err);
    if (!cx_failed(status)) /* it is in no log */
        status = cx_db_publish(pending->db, err);
    if (cx_failed(status) && !cx_failed(begun))
        cx_db_rollback(pending->db);
    cx_lock_leave(&pending->lock);
    return status;
}

cx_status cx_pending_add_key(cx_pending *pending, const cx_trust_key *key, cx_str address,
                             bool loopback, int64_t now_ns, bool *out_new, cx_err *err)
{
    const cx_status begun = begin_change(pending, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = add_key(pending->db, key, address, loopback, now_ns, out_new, err);
    return end_change(pending, begun, status, err);
}

static cx_status copy_key(const cx_db_statement *row, cx_arena *arena, cx_trust_key *out,
                          cx_err *err)
{
    cx_bytes bytes = cx_db_bytes(row, 1);
    *out = (cx_trust_key){.not_before = CX_TIME_NONE,
                          .not_after = CX_TIME_NONE,
                          .revoked_at = CX_TIME_NONE,
                          .compromised_since = CX_TIME_NONE,
                          .added_at = CX_TIME_NONE};
    if (bytes.size != sizeof out->key.bytes)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "pending.db has a key that is not 32 bytes long");
    memcpy(out->key.bytes, bytes.data, bytes.size);
    out->key_id = cx_arena_copy_str(arena, cx_db_text(row, 0));
    if (!cx_db_is_null(row, 2))
        out->description = cx_arena_copy_str(arena, cx_db_text(row, 2));
    bool failed =
        out->key_id.data == NULL || (!cx_db_is_null(row, 2) && out->description.data == NULL);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

#define SELECT_KEYS                                                                     \
    "SELECT key_id, public_key, description FROM pending_keys WHERE state = 'pending' " \
    "AND (?1 IS NULL OR key_id = ?1) ORDER BY key_id"

/* Those with the id, or all of them when its data is NULL. */
static cx_status read_keys(cx_db *db, cx_str key_id, cx_arena *arena, cx_trust *out, cx_err *err)
{
    cx_trust_key *keys = CX_ARENA_ARRAY(arena, cx_trust_key, CX_PENDING_KEYS_MAX);
    cx_db_statement *statement;
    size_t count = 0;
    bool there = false;
    if (keys == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_db_prepare(db, SELECT_KEYS, &statement, err));
    if (key_id.data != NULL)
        cx_db_bind_text(statement, 1, key_id);
    else
        cx_db_bind_null(statement, 1);
    cx_status status;
    while (!cx_failed(status = cx_db_step(statement, &there, err)) && there &&
           count < CX_PENDING_KEYS_MAX) {
        status = copy_key(statement, arena, &keys[count], err);
        if (cx_failed(status))
            break;
        count++;
    }
    cx_db_finish(statement);
    *out = (cx_trust){keys, count};
    return status;
}

static cx_status find_keys(cx_pending *pending, cx_str key_id, cx_arena *arena, cx_trust *out,
                           cx_err *err)
{
    bool there;
    *out = (cx_trust){NULL, 0};
    cx_lock_enter(&pending->lock);
    cx_status status = open_to_read(pending, &there, err);
    if (!cx_failed(status) && there)
        status = read_keys(pending->db, key_id, arena, out, err);
    cx_lock_leave(&pending->lock);
    return status;
}

cx_status cx_pending_trust(cx_pending *pending, cx_arena *arena, cx_trust *out, cx_err *err)
{
    return find_keys(pending, (cx_str){NULL, 0}, arena, out, err);
}

cx_status cx_pending_key(cx_pending *pending, cx_str key_id, cx_arena *arena, cx_trust_key *out,
                         cx_err *err)
{
    cx_trust found;
    CX_TRY(find_keys(pending, key_id, arena, &found, err));
    if (found.count == 0)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoPendingKey", CX_NO_OFFSET,
                          "no key %.*s waits for a decision; 'cortex key pending' lists those that "
                          "do",
                          (int)key_id.size, key_id.data);
    *out = found.keys[0];
    return CX_SUCCESS;
}

/* --- events ----------------------------------------------------------------------------------- */

#define DROP_EMPTY_BATCHES \
    "DELETE FROM pending_batches WHERE id NOT IN (SELECT batch FROM pending_events)"

static cx_status insert_batch(cx_db *db, const cx_batch *batch, int64_t now_ns, int64_t *out_id,
                              cx_err *err)
{
    cx_db_statement *statement;
    cx_buf metadata;
    CX_TRY(cx_db_prepare(db,
                         "INSERT INTO pending_batches(batch_timestamp, consent_timestamp, level, "
                         "metadata, at_ns) VALUES(?1, ?2, ?3, ?4, ?5)",
                         &statement, err));
    cx_buf_init(&metadata, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    cx_db_bind_text(statement, 1, batch->batch_timestamp);
    cx_db_bind_text(statement, 2, batch->consent_timestamp);
    cx_db_bind_int(statement, 3, batch->level);
    cx_db_bind_null(statement, 4);
    if (batch->correlation_metadata != NULL) {
        status = cx_json_write(&metadata, batch->correlation_metadata, CX_JSON_PY_COMPACT, err);
        cx_db_bind_text(statement, 4, cx_buf_str(&metadata));
    }
    cx_db_bind_int(statement, 5, now_ns);
    if (!cx_failed(status))
        status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    cx_buf_done(&metadata);
    if (!cx_failed(status))
        status = read_integers(db, "SELECT last_insert_rowid()", (cx_str){NULL, 0}, out_id, 1, err);
    return status;
}

static cx_status insert_event(cx_db *db, const cx_pending_event *event, int64_t batch, cx_err *err)
{
    cx_db_statement *statement;
    /* Sent again, it waits already. */
    CX_TRY(cx_db_prepare(db,
                         "INSERT OR IGNORE INTO pending_events(batch, key_id, content, level, "
                         "connectivity, trace) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                         &statement, err));
    cx_db_bind_int(statement, 1, batch);
    cx_db_bind_text(statement, 2, event->key_id);
    cx_db_bind_bytes(statement, 3,
                     cx_bytes_from(event->content.bytes, sizeof event->content.bytes));
    cx_db_bind_int(statement, 4, event->level);
    cx_db_bind_int(statement, 5, event->connectivity);
    cx_db_bind_bytes(statement, 6, event->trace);
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

/* P3, after the events were added: a transaction that exceeds a limit is rolled back. */
static cx_status check_event_limits(cx_db *db, const cx_pending_event *event, cx_err *err)
{
    int64_t of_key[2], waits;
    CX_TRY(read_integers(
        db, "SELECT COUNT(*) FROM pending_keys WHERE key_id = ?1 AND state = 'pending'",
        event->key_id, &waits, 1, err));
    if (waits == 0) /* P2 */
        return cx_fail_at(err, CX_E_BUSY, "KeyDecided", CX_NO_OFFSET,
                          "the key %.*s was decided about meanwhile", (int)event->key_id.size,
                          event->key_id.data);
    CX_TRY(sums_of_key(db, event->key_id, of_key, err));
    if (of_key[0] > CX_PENDING_EVENTS_PER_KEY_MAX)
        return fail_full(err, CX_PENDING_EVENTS_PER_KEY_MAX, "events of one key");
    if (of_key[1] > CX_PENDING_BYTES_PER_KEY_MAX)
        return fail_full(err, CX_PENDING_BYTES_PER_KEY_MAX / MIB, "MiB of one key");
    return CX_SUCCESS;
}

static cx_status add_events(cx_db *db, const cx_batch *batch, const cx_pending_event *events,
                            size_t count, int64_t now_ns, cx_err *err)
{
    int64_t id, bytes;
    CX_TRY(insert_batch(db, batch, now_ns, &id, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(insert_event(db, &events[i], id, err));
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !cx_str_eq(events[i].key_id, events[i - 1].key_id))
            CX_TRY(check_event_limits(db, &events[i], err));
    CX_TRY(cx_db_run(db, DROP_EMPTY_BATCHES, err)); /* when all of it waits already */
    CX_TRY(read_integers(db, "SELECT COALESCE(SUM(LENGTH(trace)), 0) FROM pending_events",
                         (cx_str){NULL, 0}, &bytes, 1, err));
    if (bytes > CX_PENDING_BYTES_MAX)
        return fail_full(err, CX_PENDING_BYTES_MAX / MIB, "MiB");
    return CX_SUCCESS;
}

cx_status cx_pending_add_events(cx_pending *pending, const cx_batch *batch,
                                const cx_pending_event *events, size_t count, int64_t now_ns,
                                cx_err *err)
{
    const cx_status begun = begin_change(pending, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = add_events(pending->db, batch, events, count, now_ns, err);
    return end_change(pending, begun, status, err);
}

/* --- deciding --------------------------------------------------------------------------------- */

static cx_status read_batch_row(cx_db *db, int64_t id, cx_arena *arena, cx_batch *out, cx_err *err)
{
    cx_db_statement *statement;
    bool there = false, naive;
    cx_json *metadata = CX_ARENA_NEW(arena, cx_json);
    if (metadata == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_db_prepare(db,
                         "SELECT batch_timestamp, consent_timestamp, level, metadata, at_ns "
                         "FROM pending_batches WHERE id = ?1",
                         &statement, err));
    cx_db_bind_int(statement, 1, id);
    cx_status status = cx_db_step(statement, &there, err);
    if (!cx_failed(status) && there) {
        out->batch_timestamp = cx_arena_copy_str(arena, cx_db_text(statement, 0));
        out->consent_timestamp = cx_arena_copy_str(arena, cx_db_text(statement, 1));
        out->level = (cx_trace_level)cx_db_int(statement, 2);
        out->received_ns = cx_db_int(statement, 4);
        cx_str text = cx_db_is_null(statement, 3)
                          ? (cx_str){NULL, 0}
                          : cx_arena_copy_str(arena, cx_db_text(statement, 3));
        there = out->level <= CX_LEVEL_ABSENT &&
                cx_trace_time_parse(out->batch_timestamp, &out->batch_ns, &naive) &&
                cx_trace_time_parse(out->consent_timestamp, &out->consent_ns, &naive);
        if (text.data != NULL) {
            status = cx_json_parse_text(text, arena, metadata, err);
            out->correlation_metadata = metadata;
        }
    }
    cx_db_finish(statement);
    if (!cx_failed(status) && !there)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "pending.db has events of a batch that is not there");
    return status;
}

static cx_status read_event_rows(cx_db *db, cx_str key_id, int64_t id, cx_arena *arena,
                                 cx_batch *out, cx_err *err)
{
    cx_event *events = CX_ARENA_ARRAY(arena, cx_event, CX_BATCH_EVENTS_MAX);
    cx_db_statement *statement;
    bool there = false;
    if (events == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_db_prepare(db,
                         "SELECT level, connectivity, trace FROM pending_events "
                         "WHERE key_id = ?1 AND batch = ?2 ORDER BY id",
                         &statement, err));
    cx_db_bind_text(statement, 1, key_id);
    cx_db_bind_int(statement, 2, id);
    cx_status status;
    while (!cx_failed(status = cx_db_step(statement, &there, err)) && there &&
           out->event_count < CX_BATCH_EVENTS_MAX) {
        cx_str trace = cx_arena_copy_str(arena, cx_bytes_str(cx_db_bytes(statement, 2)));
        if (trace.data == NULL) {
            status = cx_fail_nomem(err);
            break;
        }
        events[out->event_count++] = (cx_event){.trace = cx_str_bytes(trace),
                                                .level = (cx_trace_level)cx_db_int(statement, 0),
                                                .connectivity = cx_db_int(statement, 1) != 0};
    }
    cx_db_finish(statement);
    out->events = events;
    return status;
}

static cx_status next_batch(cx_db *db, cx_str key_id, cx_arena *arena, cx_batch *out,
                            int64_t *out_id, cx_err *err)
{
    CX_TRY(read_integers(db,
                         "SELECT batch FROM pending_events WHERE key_id = ?1 ORDER BY id LIMIT 1",
                         key_id, out_id, 1, err));
    if (*out_id == 0) /* rows are numbered from 1 */
        return CX_SUCCESS;
    CX_TRY(read_batch_row(db, *out_id, arena, out, err));
    return read_event_rows(db, key_id, *out_id, arena, out, err);
}

cx_status cx_pending_next(cx_pending *pending, cx_str key_id, cx_arena *arena, cx_batch *batch,
                          int64_t *out_batch_id, cx_err *err)
{
    *batch = (cx_batch){.level = CX_LEVEL_ABSENT, .consent_ns = CX_TIME_NONE};
    cx_lock_enter(&pending->lock);
    cx_status status = open_to_write(pending, err);
    if (!cx_failed(status))
        status = next_batch(pending->db, key_id, arena, batch, out_batch_id, err);
    cx_lock_leave(&pending->lock);
    return status;
}

/* A statement with the key's id and a number. */
static cx_status change_rows(cx_db *db, const char *sql, cx_str key_id, int64_t number, cx_err *err)
{
    cx_db_statement *statement;
    CX_TRY(cx_db_prepare(db, sql, &statement, err));
    cx_db_bind_text(statement, 1, key_id);
    cx_db_bind_int(statement, 2, number);
    cx_status status = cx_db_execute(statement, err);
    cx_db_finish(statement);
    return status;
}

cx_status cx_pending_done(cx_pending *pending, cx_str key_id, int64_t batch_id, cx_err *err)
{
    const cx_status begun = begin_change(pending, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status =
            change_rows(pending->db, "DELETE FROM pending_events WHERE key_id = ?1 AND batch = ?2",
                        key_id, batch_id, err);
    if (!cx_failed(status))
        status = cx_db_run(pending->db, DROP_EMPTY_BATCHES, err);
    return end_change(pending, begun, status, err);
}

static cx_status end_waiting(cx_db *db, cx_str key_id, bool *out_ended, cx_err *err)
{
    int64_t found[2];
    CX_TRY(sums_of_key(db, key_id, found, err));
    *out_ended = found[0] == 0;
    if (!*out_ended)
        return CX_SUCCESS;
    return change_rows(db, "DELETE FROM pending_keys WHERE key_id = ?1 AND ?2 = ?2", key_id, 0,
                       err);
}

cx_status cx_pending_end(cx_pending *pending, cx_str key_id, bool *out_ended, cx_err *err)
{
    const cx_status begun = begin_change(pending, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = end_waiting(pending->db, key_id, out_ended, err);
    return end_change(pending, begun, status, err);
}

static cx_status reject_key(cx_db *db, cx_str key_id, int64_t now_ns, cx_err *err)
{
    CX_TRY(change_rows(db, "DELETE FROM pending_events WHERE key_id = ?1 AND ?2 = ?2", key_id, 0,
                       err));
    CX_TRY(cx_db_run(db, DROP_EMPTY_BATCHES, err));
    CX_TRY(change_rows(db,
                       "UPDATE pending_keys SET state = 'rejected', at_ns = ?2 "
                       "WHERE key_id = ?1 AND state = 'pending'",
                       key_id, now_ns, err));
    /* The oldest are forgotten (P3). */
    return change_rows(db,
                       "DELETE FROM pending_keys WHERE ?1 = ?1 AND state = 'rejected' AND rowid "
                       "NOT IN (SELECT rowid FROM pending_keys WHERE state = 'rejected' "
                       "ORDER BY at_ns DESC LIMIT ?2)",
                       key_id, CX_PENDING_REJECTED_MAX, err);
}

cx_status cx_pending_reject(cx_pending *pending, cx_str key_id, int64_t now_ns, cx_err *err)
{
    const cx_status begun = begin_change(pending, err);
    cx_status status = begun;
    if (!cx_failed(status))
        status = reject_key(pending->db, key_id, now_ns, err);
    return end_change(pending, begun, status, err);
}

/* --- showing ---------------------------------------------------------------------------------- */

#define SELECT_SHOWN                                                                            \
    "SELECT key_id, public_key, description, address, at_ns, "                                  \
    "(SELECT COUNT(*) FROM pending_events e WHERE e.key_id = k.key_id), "                       \
    "(SELECT COALESCE(SUM(LENGTH(trace)), 0) FROM pending_events e WHERE e.key_id = k.key_id) " \
    "FROM pending_keys k WHERE state = 'pending' ORDER BY at_ns, key_id"

static cx_status shown_key(const cx_db_statement *row, cx_arena *arena, cx_json *out, cx_err *err)
{
    char time[CX_TRACE_TIME_SIZE];
    cx_buf encoded;
    cx_json_list list = cx_json_list_begin(arena);
    cx_buf_init(&encoded, arena->alloc);
    cx_base64_add(&encoded, cx_db_bytes(row, 1), CX_BASE64_URL);
    cx_trace_time_write(cx_db_int(row, 4), time);
    cx_str texts[] = {cx_db_text(row, 3), cx_db_text(row, 0), cx_buf_str(&encoded), cx_str_z(time),
                      cx_db_is_null(row, 2) ? CX_STR("") : cx_db_text(row, 2)};
    static const cx_str names[] = {CX_STR("address"), CX_STR("key_id"), CX_STR("public_key"),
                                   CX_STR("registered_at"), CX_STR("description")};
    for (size_t i = 0; i < CX_COUNT_OF(texts); i++) {
        cx_str copy = cx_arena_copy_str(arena, texts[i]);
        list.failed |= copy.data == NULL && texts[i].size != 0;
        cx_json_list_put(&list, names[i], cx_json_make_str(copy.data == NULL ? CX_STR("") : copy));
    }
    cx_json_list_put(&list, CX_STR("events"), cx_json_make_int(arena, cx_db_int(row, 5)));
    cx_json_list_put(&list, CX_STR("bytes"), cx_json_make_int(arena, cx_db_int(row, 6)));
    list.failed |= encoded.failed;
    cx_buf_done(&encoded);
    return cx_json_list_end_object(&list, out, err);
}

static cx_status shown_keys(cx_db *db, cx_arena *arena, cx_json_list *list, cx_err *err)
{
    cx_db_statement *statement;
    cx_json key;
    bool there = false;
    CX_TRY(cx_db_prepare(db, SELECT_SHOWN, &statement, err));
    cx_status status;
    while (!cx_failed(status = cx_db_step(statement, &there, err)) && there) {
        status = shown_key(statement, arena, &key, err);
        if (cx_failed(status))
            break;
        cx_json_list_add(list, key);
    }
    cx_db_finish(statement);
    return status;
}

static cx_status write_shown(cx_pending *pending, cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json_list keys = cx_json_list_begin(arena), list = cx_json_list_begin(arena);
    cx_json value;
    bool there;
    CX_TRY(open_to_read(pending, &there, err));
    if (there)
        CX_TRY(shown_keys(pending->db, arena, &keys, err));
    CX_TRY(cx_json_list_end_array(&keys, &value, err));
    cx_json_list_put(&list, CX_STR("format"), cx_json_make_str(CX_STR("cortex-pending-1")));
    cx_json_list_put(&list, CX_STR("keys"), value);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    CX_TRY(cx_json_write(out, &value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(out, '\n');
    return cx_buf_check(out, err);
}

cx_status cx_pending_json(cx_pending *pending, cx_buf *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, pending->alloc, 0);
    cx_lock_enter(&pending->lock);
    cx_status status = write_shown(pending, &arena, out, err);
    cx_lock_leave(&pending->lock);
    cx_arena_done(&arena);
    return status;
}
