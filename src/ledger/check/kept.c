/*
 * kept.c - the file that a verification keeps.
 *
 *     kept(name, value)     the point: numbers and digests by name
 *     touched(actor, key)   records that changed since the base
 *     began(actor, seq)     the first entry of an actor since the base
 */
#include "ledger/check/kept.h"

#include <errno.h>

#include "crypto/api.h"

struct cx_kept {
    const cx_alloc *alloc;
    cx_store *store;
    cx_db_statement *get, *put, *records, *journals;
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS kept(name TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS touched(actor INTEGER NOT NULL, key BLOB NOT NULL,"
    " PRIMARY KEY(actor, key)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS began(actor INTEGER PRIMARY KEY, seq INTEGER NOT NULL);";

/* --- single values ---------------------------------------------------------------------------- */

static cx_status put_int(cx_kept *kept, const char *name, uint64_t value, cx_err *err)
{
    cx_db_bind_text(kept->put, 1, cx_str_z(name));
    cx_db_bind_int(kept->put, 2, (int64_t)value);
    return cx_db_execute(kept->put, err);
}

static cx_status put_bytes(cx_kept *kept, const char *name, cx_bytes value, cx_err *err)
{
    cx_db_bind_text(kept->put, 1, cx_str_z(name));
    cx_db_bind_bytes(kept->put, 2, value);
    return cx_db_execute(kept->put, err);
}

static cx_status damaged(const char *name, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "StateDamaged", CX_NO_OFFSET,
                      "the kept state of the verification is damaged (%s); delete the file, and "
                      "the next verification reads everything",
                      name);
}

static cx_status get_int(cx_kept *kept, const char *name, uint64_t *out, cx_err *err)
{
    bool row = false;
    cx_db_bind_text(kept->get, 1, cx_str_z(name));
    CX_TRY(cx_db_step(kept->get, &row, err));
    if (row)
        *out = (uint64_t)cx_db_int(kept->get, 0);
    cx_db_reset(kept->get);
    return row ? CX_SUCCESS : damaged(name, err);
}

/* *out_found is false, and nothing else wrong, when it was never written. */
static cx_status get_bytes(cx_kept *kept, const char *name, uint8_t *out, size_t size,
                           bool *out_found, cx_err *err)
{
    bool good = true;
    cx_db_bind_text(kept->get, 1, cx_str_z(name));
    CX_TRY(cx_db_step(kept->get, out_found, err));
    if (*out_found) {
        const cx_bytes bytes = cx_db_bytes(kept->get, 0);
        good = bytes.size == size;
        if (good)
            memcpy(out, bytes.data, size);
    }
    cx_db_reset(kept->get);
    return good ? CX_SUCCESS : damaged(name, err);
}

/* --- the point -------------------------------------------------------------------------------- */

static cx_status get_digest(cx_kept *kept, const char *name, cx_digest *out, cx_err *err)
{
    bool found = false;
    CX_TRY(get_bytes(kept, name, out->bytes, sizeof out->bytes, &found, err));
    return found ? CX_SUCCESS : damaged(name, err);
}

static cx_status read_home_root(cx_kept *kept, cx_kept_point *out, cx_err *err)
{
    uint64_t there = 0, created = 0;
    cx_home_root_entry *last = &out->home_root;
    CX_TRY(get_int(kept, "home_root", &there, err));
    out->has_home_root = there != 0;
    if (!out->has_home_root)
        return CX_SUCCESS;
    CX_TRY(get_int(kept, "home_root_seq", &last->seq, err));
    CX_TRY(get_int(kept, "home_root_created", &created, err));
    CX_TRY(get_int(kept, "home_root_actors", &last->root.actors, err));
    CX_TRY(get_int(kept, "home_root_entries", &last->root.entries, err));
    last->created_ns = (int64_t)created;
    return get_digest(kept, "home_root_root", &last->root.root, err);
}

static cx_status read_point(cx_kept *kept, cx_kept_point *out, cx_err *err)
{
    uint64_t based = 0, reached = 0;
    CX_TRY(get_int(kept, "commit", &out->at.commit, err));
    CX_TRY(get_int(kept, "frames", &out->at.frames, err));
    CX_TRY(get_int(kept, "commits", &out->commits, err));
    CX_TRY(get_int(kept, "entries", &out->entries, err));
    CX_TRY(get_int(kept, "base_hashes", &out->base_hashes, err));
    CX_TRY(get_int(kept, "based", &based, err));
    CX_TRY(get_int(kept, "reached", &reached, err));
    CX_TRY(get_digest(kept, "digest", &out->commit, err));
    out->based = based != 0;
    out->reached_ns = (int64_t)reached;
    CX_TRY(read_home_root(kept, out, err));
    const cx_position tables = kept->store->flushed;
    return out->at.commit == tables.commit && out->at.frames == tables.frames
               ? CX_SUCCESS
               : damaged("its tables are of another point", err);
}

static cx_status write_home_root(cx_kept *kept, const cx_kept_point *point, cx_err *err)
{
    const cx_home_root_entry *last = &point->home_root;
    CX_TRY(put_int(kept, "home_root", point->has_home_root ? 1 : 0, err));
    if (!point->has_home_root)
        return CX_SUCCESS;
    CX_TRY(put_int(kept, "home_root_seq", last->seq, err));
    CX_TRY(put_int(kept, "home_root_created", (uint64_t)last->created_ns, err));
    CX_TRY(put_int(kept, "home_root_actors", last->root.actors, err));
    CX_TRY(put_int(kept, "home_root_entries", last->root.entries, err));
    return put_bytes(kept, "home_root_root",
                     cx_bytes_from(last->root.root.bytes, sizeof last->root.root.bytes), err);
}

cx_status cx_kept_save(cx_kept *kept, const cx_kept_point *point, bool is_base, cx_err *err)
{
    CX_TRY(put_int(kept, "commit", point->at.commit, err));
    CX_TRY(put_int(kept, "frames", point->at.frames, err));
    CX_TRY(put_int(kept, "commits", point->commits, err));
    CX_TRY(put_int(kept, "entries", point->entries, err));
    CX_TRY(put_int(kept, "base_hashes", is_base ? kept->store->counters.hashes : point->base_hashes,
                   err));
    CX_TRY(put_int(kept, "based", is_base || point->based ? 1 : 0, err));
    CX_TRY(put_int(kept, "reached", (uint64_t)point->reached_ns, err));
    CX_TRY(put_bytes(kept, "digest", cx_bytes_from(point->commit.bytes, sizeof point->commit.bytes),
                     err));
    CX_TRY(write_home_root(kept, point, err));
    if (is_base)
        CX_TRY(cx_db_run(kept->store->writing.db, "DELETE FROM touched; DELETE FROM began;", err));
    return cx_store_keep(kept->store, err);
}

cx_digest cx_kept_commit_digest(const cx_log_commit *commit)
{
    cx_sha256 state;
    cx_sha256_init(&state);
    uint8_t head[8 + 8];
    for (unsigned i = 0; i < 8; i++)
        head[i] = (uint8_t)(commit->number >> (56 - 8 * i));
    for (unsigned i = 0; i < 8; i++)
        head[8 + i] = (uint8_t)((uint64_t)commit->count >> (56 - 8 * i));
    cx_sha256_add(&state, head, sizeof head);
    for (size_t i = 0; i < commit->count; i++) {
        const cx_log_item *item = &commit->items[i];
        const uint64_t numbers[] = {item->place.segment, item->place.offset,
                                    item->frame.guarded.size, item->erasable_size};
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            for (unsigned b = 0; b < 8; b++)
                head[b] = (uint8_t)(numbers[n] >> (56 - 8 * b));
            cx_sha256_add(&state, head, 8);
        }
        cx_sha256_add(&state, item->frame.guarded.data, item->frame.guarded.size);
    }
    return cx_sha256_end(&state);
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_status check_home(cx_kept *kept, const uint8_t home_id[16], bool *out_new, cx_err *err)
{
    uint8_t id[16] = {0};
    bool found = false;
    CX_TRY(get_bytes(kept, "home", id, sizeof id, &found, err));
    *out_new = !found;
    if (!found)
        return put_bytes(kept, "home", cx_bytes_from(home_id, 16), err);
    if (memcmp(id, home_id, sizeof id) == 0)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "OtherHome", CX_NO_OFFSET,
                      "the kept state is of another data directory: this one was replaced, or the "
                      "file is the wrong one; to verify this one from its first byte, name another "
                      "file");
}

/* Whether the database at `path` has tables, and among them one of these files. */
static cx_status inspect_as(const char *path, cx_db_mode mode, bool *out_empty, bool *out_ours,
                            cx_err *err)
{
    cx_db *db;
    cx_db_statement *statement = NULL;
    bool row = false;
    CX_TRY(cx_db_open(path, mode, &db, err));
    cx_status status =
        cx_db_prepare(db, "SELECT count(*), sum(name='kept') FROM sqlite_master", &statement, err);
    if (!cx_failed(status))
        status = cx_db_step(statement, &row, err);
    if (!cx_failed(status)) {
        *out_empty = row && cx_db_int(statement, 0) == 0;
        *out_ours = row && cx_db_int(statement, 1) == 1;
    }
    cx_db_finish(statement);
    cx_db_close(db);
    return status;
}

/* A run that was killed may have left a journal that only a writer can roll back: then the file is
 * looked at as it is. */
static cx_status inspect(const char *path, bool *out_empty, bool *out_ours, cx_err *err)
{
    cx_status status = inspect_as(path, CX_DB_READ, out_empty, out_ours, err);
    return status.code == CX_E_DENIED ? inspect_as(path, CX_DB_IMMUTABLE, out_empty, out_ours, err)
                                      : status;
}

static cx_status check_file(const cx_io *io, const char *path, cx_err *err)
{
    cx_file file;
    uint64_t size = 0;
    bool regular = false, empty = true, ours = false;
    int failed = io->open(io, path, CX_IO_READ, &file);
    if (failed == 0) {
        failed = io->size(io, file, &size, &regular);
        (void)io->close(io, file);
    }
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    cx_err reason = {0};
    if (regular && size != 0 && cx_failed(inspect(path, &empty, &ours, &reason)))
        empty = ours = false;
    if (regular && (empty || ours))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "NotAState", CX_NO_OFFSET,
                      "%s is not the kept state of a verification (%s); name another file", path,
                      reason.message[0] != 0 ? reason.message : "another kind of file");
}

cx_status cx_kept_make_file(const cx_io *io, const char *path, cx_err *err)
{
    cx_file file;
    cx_db *db;
    int failed = io->open(io, path, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file);
    if (failed == 0)
        (void)io->close(io, file);
    else if (failed != -EEXIST)
        return cx_fail_os(err, -failed, "cannot make %s", path);
    else
        CX_TRY(check_file(io, path, err));
    CX_TRY(cx_db_open(path, CX_DB_WRITE, &db, err));
    cx_status status = cx_db_run(db, schema, err);
    cx_db_close(db);
    return status;
}

static cx_status open_parts(cx_kept *kept, bool stale, const uint8_t home_id[16],
                            cx_kept_point *out_point, bool *out_found, cx_err *err)
{
    cx_db *db = kept->store->writing.db;
    bool is_new = true;
    CX_TRY(cx_db_prepare(db, "SELECT value FROM kept WHERE name=?", &kept->get, err));
    CX_TRY(cx_db_prepare(db, "INSERT OR REPLACE INTO kept VALUES(?,?)", &kept->put, err));
    CX_TRY(cx_db_prepare(db, "SELECT actor, key FROM touched ORDER BY actor, key", &kept->records,
                         err));
    CX_TRY(cx_db_prepare(db, "SELECT actor, seq FROM began ORDER BY actor", &kept->journals, err));
    CX_TRY(check_home(kept, home_id, &is_new, err));
    *out_found =
        !stale && !is_new && kept->store->flushed.commit + kept->store->flushed.frames != 0;
    if (*out_found)
        CX_TRY(read_point(kept, out_point, err));
    kept->store->holds_transaction = true;
    if (!*out_found || !out_point->based)
        return cx_db_run(db, "DELETE FROM touched; DELETE FROM began;", err);
    return cx_store_note_changes(kept->store, err);
}

cx_status cx_kept_open(cx_store *store, bool stale, const uint8_t home_id[16], cx_kept **out,
                       cx_kept_point *out_point, bool *out_found, cx_err *err)
{
    const cx_alloc *alloc = store->alloc;
    cx_kept *kept = cx_alloc_zeroed(alloc, 1, sizeof *kept);
    if (kept == NULL)
        return cx_fail_nomem(err);
    *kept = (cx_kept){.alloc = alloc, .store = store};
    *out_point = (cx_kept_point){.at = {0, 0}};
    cx_status status = open_parts(kept, stale, home_id, out_point, out_found, err);
    if (cx_failed(status))
        cx_kept_close(kept);
    else
        *out = kept;
    return status;
}

void cx_kept_close(cx_kept *kept)
{
    if (kept == NULL)
        return;
    cx_db_finish(kept->get);
    cx_db_finish(kept->put);
    cx_db_finish(kept->records);
    cx_db_finish(kept->journals);
    cx_alloc_free(kept->alloc, kept, sizeof *kept);
}

/* --- what changed since the base -------------------------------------------------------------- */

cx_status cx_kept_each_record(cx_kept *kept,
                              cx_status (*record)(void *arg, int64_t actor, cx_bytes key,
                                                  cx_err *err),
                              void *arg, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    for (bool row = true; !cx_failed(status);) {
        status = cx_db_step(kept->records, &row, err);
        if (cx_failed(status) || !row)
            break;
        status = record(arg, cx_db_int(kept->records, 0), cx_db_bytes(kept->records, 1), err);
    }
    cx_db_reset(kept->records);
    return status;
}

cx_status cx_kept_each_journal(cx_kept *kept,
                               cx_status (*journal)(void *arg, int64_t actor, uint64_t first,
                                                    cx_err *err),
                               void *arg, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    for (bool row = true; !cx_failed(status);) {
        status = cx_db_step(kept->journals, &row, err);
        if (cx_failed(status) || !row)
            break;
        status =
            journal(arg, cx_db_int(kept->journals, 0), (uint64_t)cx_db_int(kept->journals, 1), err);
    }
    cx_db_reset(kept->journals);
    return status;
}
