/*
 * history.c - names of rows of the past, and which of them are needed (history.h).
 */
#include "ledger/past/history.h"

#include "base/api.h"
#include "ledger/internal.h"
#include "ledger/store_internal.h"

cx_history_key cx_history_key_of(cx_bytes record, uint64_t snapshot)
{
    cx_history_key key;
    cx_writer writer = cx_writer_over(key.bytes, sizeof key.bytes);
    cx_writer_put(&writer, CX_HISTORY_PREFIX, CX_HISTORY_PREFIX_SIZE);
    cx_writer_put(&writer, record.data, record.size);
    cx_writer_put(&writer, "/", 1);
    cx_writer_uint(&writer, snapshot, 8);
    CX_ASSERT(cx_writer_ok(&writer));
    key.size = writer.offset;
    return key;
}

bool cx_history_is(cx_bytes key)
{
    return key.size > CX_HISTORY_PREFIX_SIZE + 1 + 8 && key.size <= CX_HISTORY_KEY_MAX &&
           memcmp(key.data, CX_HISTORY_PREFIX, CX_HISTORY_PREFIX_SIZE) == 0;
}

static uint64_t snapshot_of(cx_bytes key)
{
    uint64_t snapshot = 0;
    for (size_t i = key.size - 8; i < key.size; i++)
        snapshot = snapshot << 8 | key.data[i];
    return snapshot;
}

static bool is_same_record(cx_bytes a, cx_bytes b)
{
    return a.size == b.size && a.size > 8 && memcmp(a.data, b.data, a.size - 8) == 0;
}

/* --- which are needed (G2) -------------------------------------------------------------------- */

static cx_status read_retained(cx_history_filter *filter, cx_err *err)
{
    cx_store *store = filter->store;
    /* Within a flush its own connection knows what the flush changes. */
    cx_db_statement *scan =
        store->writing.scan_past != NULL ? store->writing.scan_past : store->reading.scan_past;
    cx_status status = CX_SUCCESS;
    filter->retained.count = 0;
    cx_db_bind_int(scan, 1, filter->actor);
    for (bool more = true; !cx_failed(status);) {
        status = cx_db_step(scan, &more, err);
        if (cx_failed(status) || !more)
            break;
        uint64_t *slot = cx_vec_push(&filter->retained, store->alloc);
        if (slot == NULL)
            status = cx_fail_nomem(err);
        else
            *slot = (uint64_t)cx_db_int(scan, 0);
    }
    cx_db_reset(scan);
    return status;
}

/* Whether a retained snapshot is in (after, until]; `after` NULL = in [0, until]. */
static bool is_seen(const cx_history_filter *filter, const uint64_t *after, uint64_t until)
{
    size_t low = 0, high = filter->retained.count;
    while (low < high && after != NULL) {
        const size_t middle = (low + high) / 2;
        if (filter->retained.items[middle] <= *after)
            low = middle + 1;
        else
            high = middle;
    }
    return low < filter->retained.count && filter->retained.items[low] <= until;
}

void cx_history_filter_done(cx_history_filter *filter)
{
    cx_vec_done(&filter->retained, filter->store->alloc);
}

static cx_status set_actor(cx_history_filter *filter, int64_t actor, cx_err *err)
{
    if (filter->has_actor && filter->actor == actor)
        return CX_SUCCESS;
    filter->has_actor = true;
    filter->actor = actor;
    filter->last.size = 0;
    return read_retained(filter, err);
}

cx_status cx_history_is_needed(cx_history_filter *filter, int64_t actor, cx_bytes key, bool *out,
                               cx_err *err)
{
    *out = true;
    if (!cx_history_is(key))
        return CX_SUCCESS;
    CX_TRY(set_actor(filter, actor, err));
    const cx_bytes last = cx_history_key_bytes(&filter->last);
    const uint64_t before = is_same_record(last, key) ? snapshot_of(last) : 0;
    *out = is_seen(filter, is_same_record(last, key) ? &before : NULL, snapshot_of(key));
    memcpy(filter->last.bytes, key.data, key.size);
    filter->last.size = key.size;
    return CX_SUCCESS;
}

/* The row of the past before this one, if it is of the same record. */
static cx_status find_before(cx_history_filter *filter, int64_t actor, cx_bytes key, cx_err *err)
{
    cx_db_statement *statement;
    bool row = false;
    CX_TRY(cx_db_prepare(filter->store->reading.db,
                         "SELECT key FROM record WHERE actor=? AND key<? ORDER BY key DESC LIMIT 1",
                         &statement, err));
    cx_db_bind_int(statement, 1, actor);
    cx_db_bind_bytes(statement, 2, key);
    cx_status status = cx_db_step(statement, &row, err);
    const cx_bytes before = row ? cx_db_bytes(statement, 0) : cx_bytes_from(NULL, 0);
    if (!cx_failed(status) && row && is_same_record(before, key)) {
        memcpy(filter->last.bytes, before.data, before.size);
        filter->last.size = before.size;
    }
    cx_db_finish(statement);
    return status;
}

cx_status cx_history_needs(cx_store *store, int64_t actor, cx_bytes key, bool *out, cx_err *err)
{
    cx_history_filter filter = {.store = store};
    *out = true;
    if (!cx_history_is(key))
        return CX_SUCCESS;
    cx_status status = set_actor(&filter, actor, err);
    if (!cx_failed(status))
        status = find_before(&filter, actor, key, err);
    if (!cx_failed(status))
        status = cx_history_is_needed(&filter, actor, key, out, err);
    cx_history_filter_done(&filter);
    return status;
}

/* --- how far a sweep is ----------------------------------------------------------------------- */

/* First the rows of records, then those of the two trees. */
typedef enum sweep_stage { STAGE_RECORDS, STAGE_TREES, STAGE_END = STAGE_TREES + 2 } sweep_stage;

typedef struct sweep {
    int64_t actor;
    unsigned stage;
    cx_pages_sweep_position pages;
    cx_history_key last; /* the row that was looked at last */
} sweep;

enum { POSITION_SIZE = 1 + 1 + 1 + 4 * 8 + 32 };

static cx_status save_sweep(cx_store *store, const sweep *s, cx_err *err)
{
    cx_db_statement *put = store->writing.put_sweep;
    uint8_t bytes[POSITION_SIZE + CX_HISTORY_KEY_MAX];
    cx_writer writer = cx_writer_over(bytes, sizeof bytes);
    cx_writer_uint(&writer, s->stage, 1);
    cx_writer_uint(&writer, s->pages.table, 1);
    cx_writer_uint(&writer, s->pages.inside ? 1 : 0, 1);
    cx_writer_uint(&writer, (uint64_t)s->pages.level, 8);
    cx_writer_uint(&writer, (uint64_t)s->pages.prefix, 8);
    cx_writer_uint(&writer, (uint64_t)s->pages.depth, 8);
    cx_writer_uint(&writer, s->pages.until, 8);
    cx_writer_put(&writer, s->pages.key.bytes, sizeof s->pages.key.bytes);
    cx_writer_put(&writer, s->last.bytes, s->last.size);
    CX_ASSERT(cx_writer_ok(&writer));
    cx_db_bind_int(put, 1, s->actor);
    cx_db_bind_bytes(put, 2, cx_bytes_from(bytes, writer.offset));
    return cx_db_execute(put, err);
}

/* What is no position is the beginning: a sweep may always begin again. */
static void read_position(cx_bytes bytes, sweep *out)
{
    cx_reader reader = cx_reader_over(bytes);
    sweep s = {.actor = out->actor, .stage = cx_reader_u8(&reader)};
    s.pages.table = cx_reader_u8(&reader);
    s.pages.inside = cx_reader_u8(&reader) != 0;
    s.pages.level = (int64_t)cx_reader_u64(&reader);
    s.pages.prefix = (int64_t)cx_reader_u64(&reader);
    s.pages.depth = (int64_t)cx_reader_u64(&reader);
    s.pages.until = cx_reader_u64(&reader);
    const cx_bytes key = cx_reader_bytes(&reader, sizeof s.pages.key.bytes);
    const cx_bytes last = cx_reader_bytes(&reader, cx_reader_left(&reader));
    if (!cx_reader_ok(&reader) || s.stage >= STAGE_END || s.pages.table > 2 ||
        last.size > sizeof s.last.bytes)
        return;
    memcpy(s.pages.key.bytes, key.data, key.size);
    if (last.size != 0)
        memcpy(s.last.bytes, last.data, last.size);
    s.last.size = last.size;
    *out = s;
}

static cx_status next_sweep(cx_store *store, sweep *out, bool *out_there, cx_err *err)
{
    cx_db_statement *get = store->writing.get_sweep;
    CX_TRY(cx_db_step(get, out_there, err));
    if (*out_there) {
        *out = (sweep){.actor = cx_db_int(get, 0)};
        read_position(cx_db_bytes(get, 1), out);
    }
    cx_db_reset(get);
    return CX_SUCCESS;
}

cx_status cx_history_want_sweep(cx_store *store, int64_t actor, cx_err *err)
{
    const sweep begin = {.actor = actor};
    return save_sweep(store, &begin, err);
}

static cx_status end_sweep(cx_store *store, int64_t actor, cx_err *err)
{
    cx_db_bind_int(store->writing.remove_sweep, 1, actor);
    return cx_db_execute(store->writing.remove_sweep, err);
}

cx_status cx_history_load(cx_store *store, cx_err *err)
{
    sweep unused;
    return store->writing.db == NULL ? CX_SUCCESS : next_sweep(store, &unused, &store->sweeps, err);
}

/* --- sweeping (G3) ---------------------------------------------------------------------------- */

typedef struct key_list {
    cx_arena arena;
    CX_VEC(cx_bytes) keys;
} key_list;

/* The rows after the last one that are not needed, of the next CX_SWEEP_ROWS. */
static cx_status list_unneeded(cx_store *store, sweep *s, cx_history_filter *filter, key_list *list,
                               size_t *out_rows, cx_err *err)
{
    cx_db_statement *scan = store->writing.scan_history;
    cx_status status = CX_SUCCESS;
    const cx_bytes after = s->last.size != 0 ? cx_history_key_bytes(&s->last)
                                             : cx_str_bytes(CX_STR(CX_HISTORY_PREFIX));
    *out_rows = 0;
    cx_db_bind_int(scan, 1, s->actor);
    cx_db_bind_bytes(scan, 2, after);
    cx_db_bind_int(scan, 3, CX_SWEEP_ROWS);
    for (bool more = true; !cx_failed(status);) {
        bool needed = true;
        status = cx_db_step(scan, &more, err);
        if (cx_failed(status) || !more)
            break;
        const cx_bytes key = cx_db_bytes(scan, 0);
        ++*out_rows;
        status = cx_history_is_needed(filter, s->actor, key, &needed, err);
        if (cx_failed(status) || needed)
            continue;
        cx_bytes *slot = cx_vec_push(&list->keys, store->alloc);
        const cx_str copy = cx_arena_copy_str(&list->arena, cx_bytes_str(key));
        if (slot == NULL || copy.data == NULL)
            status = cx_fail_nomem(err);
        else
            *slot = cx_str_bytes(copy);
    }
    cx_db_reset(scan);
    return status;
}

static cx_status sweep_records(cx_store *store, sweep *s, bool *out_done, cx_err *err)
{
    cx_history_filter filter = {.store = store};
    key_list list = {.keys = {0}};
    size_t rows = 0;
    cx_arena_init(&list.arena, store->alloc, 0);
    cx_status status = set_actor(&filter, s->actor, err);
    filter.last = s->last;
    if (!cx_failed(status))
        status = list_unneeded(store, s, &filter, &list, &rows, err);
    for (size_t i = 0; i < list.keys.count && !cx_failed(status); i++) {
        cx_db_bind_int(store->writing.remove, 1, s->actor);
        cx_db_bind_bytes(store->writing.remove, 2, list.keys.items[i]);
        status = cx_db_execute(store->writing.remove, err);
    }
    s->last = filter.last;
    *out_done = rows < CX_SWEEP_ROWS;
    cx_vec_done(&list.keys, store->alloc);
    cx_arena_done(&list.arena);
    cx_history_filter_done(&filter);
    return status;
}

static cx_status sweep_tree(cx_store *store, sweep *s, bool *out_done, cx_err *err)
{
    cx_history_filter filter = {.store = store};
    cx_status status = set_actor(&filter, s->actor, err);
    if (!cx_failed(status))
        status = cx_pages_sweep(store->writing.pages, cx_tree_of(s->actor, s->stage - STAGE_TREES),
                                filter.retained.items, filter.retained.count, CX_SWEEP_ROWS,
                                &s->pages, out_done, err);
    cx_history_filter_done(&filter);
    return status;
}

cx_status cx_history_continue_sweep(cx_store *store, cx_err *err)
{
    sweep s;
    bool done = false;
    CX_TRY(next_sweep(store, &s, &store->sweeps, err));
    if (!store->sweeps)
        return CX_SUCCESS;
    CX_TRY(s.stage == STAGE_RECORDS ? sweep_records(store, &s, &done, err)
                                    : sweep_tree(store, &s, &done, err));
    if (done)
        s = (sweep){.actor = s.actor, .stage = s.stage + 1};
    return s.stage == STAGE_END ? end_sweep(store, s.actor, err) : save_sweep(store, &s, err);
}
