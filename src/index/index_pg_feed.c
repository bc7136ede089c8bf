/*
 * index_pg_feed.c - writes rows to PostgreSQL in bulk.
 *
 * Rows are encoded for COPY when they arrive, and wait; a flush looks their keys up in one query,
 * assigns ids and primary rows (§9) in memory, deletes replaced rows, and copies all waiting rows
 * directly into the partitions.  So a new row costs a COPY and a row of covenant_trace_keys;
 * nothing is inserted twice and there is no staging table.
 *
 * The encoded rows have `id` and `primary_row` at known offsets, which are filled in last.
 */
#ifdef CX_WITH_PG

#include "index/index_pg.h"

#include "base/api.h"

#define WAITING_ROWS_MAX 4096
#define WAITING_BYTES_MAX ((size_t)16 << 20)
#define HOUR_NS (INT64_C(3600) * 1000000000)

static cx_pg_index *pg_index_of(const cx_index *index)
{
    return index->connection;
}

void cx_index_pg_forget_rows(cx_pg_index *own_index)
{
    cx_buf_clear(&own_index->rows);
    own_index->pending.count = 0;
    uint64_t seed = own_index->traces.seed;
    cx_map_done(&own_index->traces);
    cx_map_init(&own_index->traces, cx_alloc_default(), seed);
    cx_arena_done(&own_index->texts);
    cx_arena_init(&own_index->texts, cx_alloc_default(), 0);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static cx_pg_value cell_value(const cx_cell *cell, cx_cell_type type)
{
    cx_pg_value value = {.type = (cx_pg_type)type, .null = cell->null};
    switch (type) {
    case CX_CELL_INT:
    case CX_CELL_TIME: value.i = cell->i; break;
    case CX_CELL_FLOAT: value.f = cell->f; break;
    case CX_CELL_BOOL: value.b = cell->b; break;
    default: value.text = cell->text; break;
    }
    return value;
}

static cx_pg_value text_value(cx_str text)
{
    return (cx_pg_value){.type = CX_PG_TEXT, .null = text.data == NULL, .text = text};
}

static cx_status encode_row(cx_pg_index *own_index, const cx_trace_row *row, cx_pg_pending *out,
                            cx_err *err)
{
    cx_pg_value id = {.type = CX_PG_INT, .i = 0};
    cx_pg_value primary = {.type = CX_PG_BOOL, .b = false};
    out->offset = own_index->rows.size;
    cx_pg_add_row(&own_index->rows, CX_COL_COUNT + 1);
    CX_TRY(cx_pg_add_value(&own_index->rows, &id, err));
    for (unsigned i = 0; i < CX_COL_COUNT; i++) {
        cx_pg_value value = cell_value(&row->cells[i], cx_trace_columns[i].type);
        if (i == CX_COL_primary_row)
            out->primary_at = own_index->rows.size + 4 - out->offset;
        CX_TRY(cx_pg_add_value(&own_index->rows, i == CX_COL_primary_row ? &primary : &value, err));
    }
    out->size = own_index->rows.size - out->offset;
    return cx_buf_check(&own_index->rows, err);
}

static cx_status copy_text(cx_pg_index *own_index, cx_str text, cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    if (text.data == NULL)
        return CX_SUCCESS;
    *out = cx_arena_copy_str(&own_index->texts, text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Agent and id with a zero between them; neither has one (row.c). */
static cx_status link_trace(cx_pg_index *own_index, cx_pg_pending *row, size_t number, cx_err *err)
{
    uint64_t *last;
    bool is_new;
    size_t size = row->agent.size + 1 + row->trace_id.size;
    char *name = CX_ARENA_ARRAY(&own_index->texts, char, size);
    if (name == NULL)
        return cx_fail_nomem(err);
    memcpy(name, row->agent.data, row->agent.size);
    name[row->agent.size] = 0;
    memcpy(name + row->agent.size + 1, row->trace_id.data, row->trace_id.size);
    row->name = cx_str_from(name, size);
    CX_TRY(cx_map_put(&own_index->traces, row->name, &last, &is_new, err));
    row->next = is_new ? -1 : (int64_t)*last;
    *last = number;
    return CX_SUCCESS;
}

cx_status cx_index_pg_put(cx_index *index, const cx_trace_row *row, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    if (own_index->pending.count >= WAITING_ROWS_MAX || own_index->rows.size >= WAITING_BYTES_MAX)
        CX_TRY(cx_index_pg_flush(index, err));
    const cx_cell *cells = row->cells;
    const cx_cell *received = &cells[CX_COL_received_at];
    cx_sql_value signer = cx_index_signer(row);
    cx_pg_pending waiting = {.key = cx_index_key_of(row, 0)};
    waiting.received_ns = received->null ? waiting.key.timestamp_ns : received->i;
    CX_TRY(copy_text(own_index, cells[CX_COL_agent_id_hash].text, &waiting.agent, err));
    CX_TRY(copy_text(own_index, cells[CX_COL_trace_id].text, &waiting.trace_id, err));
    CX_TRY(copy_text(own_index, signer.cell.text, &waiting.signer, err));
    CX_TRY(copy_text(own_index, row->action_executed, &waiting.action_executed, err));
    CX_TRY(copy_text(own_index, row->action_timestamp, &waiting.action_timestamp, err));
    if (!cx_vec_reserve(&own_index->pending, own_index->pending.count + 1, cx_alloc_default()))
        return cx_fail_nomem(err);
    CX_TRY(encode_row(own_index, row, &waiting, err));
    CX_TRY(link_trace(own_index, &waiting, own_index->pending.count, err));
    own_index->pending.items[own_index->pending.count++] = waiting;
    return CX_SUCCESS;
}

/* --- what is there already -------------------------------------------------------------------- */

typedef struct old_row {
    size_t trace; /* the first waiting row of that trace */
    cx_row_key key;
} old_row;

typedef struct old_rows {
    CX_VEC(old_row) items;
} old_rows;

static cx_status collect_old_row(void *arg, const cx_pg_value *columns, cx_err *err)
{
    old_rows *old = arg;
    old_row *row = cx_vec_push(&old->items, cx_alloc_default());
    if (row == NULL)
        return cx_fail_nomem(err);
    *row = (old_row){(size_t)columns[0].i - 1,
                     {CX_LEVEL_GENERIC, columns[2].i, columns[3].i, columns[4].b}};
    if (!cx_trace_level_parse(columns[1].text, &row->key.level))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the index has an unknown level; run 'cortex tables rebuild'");
    return CX_SUCCESS;
}

/* Existing rows of the waiting traces, each once, in the order of the waiting traces. */
static cx_status find_old(cx_pg_index *own_index, old_rows *out, cx_err *err)
{
    static const cx_pg_type types[] = {CX_PG_INT, CX_PG_TEXT, CX_PG_TIME, CX_PG_INT, CX_PG_BOOL};
    size_t count = own_index->pending.count;
    cx_str *agents = CX_ARENA_ARRAY(&own_index->texts, cx_str, count);
    cx_str *ids = CX_ARENA_ARRAY(&own_index->texts, cx_str, count);
    if (agents == NULL || ids == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        /* Rows that are not the first of their trace get an empty name: no agent has an empty
         * one. */
        bool first = own_index->pending.items[i].next < 0;
        agents[i] = first ? own_index->pending.items[i].agent : CX_STR("");
        ids[i] = first ? own_index->pending.items[i].trace_id : CX_STR("");
    }
    cx_pg_value values[] = {{.type = CX_PG_LIST, .items = agents, .count = count},
                            {.type = CX_PG_LIST, .items = ids, .count = count}};
    return cx_pg_query(own_index->pg,
                       "SELECT u.at, k.trace_level, k.timestamp, k.id, k.verified"
                       " FROM unnest($1, $2) WITH ORDINALITY AS u (agent, trace_id, at),"
                       " LATERAL (SELECT trace_level, timestamp, id, verified"
                       " FROM cirislens.covenant_trace_keys"
                       " WHERE agent_id_hash = u.agent AND trace_id = u.trace_id"
                       " OFFSET 0) k ORDER BY u.at, k.id",
                       values, 2, types, CX_COUNT_OF(types), collect_old_row, out, NULL, err);
}

/* --- pending changes -------------------------------------------------------------------------- */

static cx_status queue_delete(cx_pg_index *own_index, const cx_pg_pending *row,
                              const cx_row_key *key, cx_err *err)
{
    cx_pg_value values[] = {
        text_value(row->agent),
        text_value(row->trace_id),
        text_value(cx_str_z(cx_trace_level_name(key->level))),
        {.type = CX_PG_TIME, .i = key->timestamp_ns},
    };
    CX_TRY(cx_pg_queue(own_index->pg,
                       "DELETE FROM cirislens.covenant_traces WHERE agent_id_hash = $1"
                       " AND trace_id = $2 AND trace_level = $3 AND timestamp = $4",
                       values, 4, err));
    return cx_pg_queue(own_index->pg,
                       "DELETE FROM cirislens.covenant_trace_keys WHERE agent_id_hash = $1"
                       " AND trace_id = $2 AND trace_level = $3",
                       values, 3, err);
}

static cx_status queue_primary(cx_pg_index *own_index, const cx_pg_pending *row,
                               const cx_row_key *key, bool primary, cx_err *err)
{
    cx_pg_value values[] = {
        text_value(row->agent),
        text_value(row->trace_id),
        text_value(cx_str_z(cx_trace_level_name(key->level))),
        {.type = CX_PG_TIME, .i = key->timestamp_ns},
        {.type = CX_PG_BOOL, .b = primary},
    };
    return cx_pg_queue(own_index->pg,
                       "UPDATE cirislens.covenant_traces SET primary_row = $5"
                       " WHERE agent_id_hash = $1 AND trace_id = $2 AND trace_level = $3"
                       " AND timestamp = $4 AND primary_row <> $5",
                       values, CX_COUNT_OF(values), err);
}

/* The current and new rows of a trace: `waiting` is the number of the waiting row, or -1. */
typedef struct trace_rows {
    cx_row_key keys[3];
    int64_t waiting[3];
    size_t count;
} trace_rows;

static size_t find_level(const trace_rows *rows, cx_trace_level level)
{
    size_t at = 0;
    while (at < rows->count && rows->keys[at].level != level)
        at++;
    return at;
}

/* Adds a waiting row to the rows of its trace; the row that it replaces is deleted. */
static cx_status place_row(cx_pg_index *own_index, trace_rows *rows, size_t number, cx_err *err)
{
    cx_pg_pending *row = &own_index->pending.items[number];
    size_t at = find_level(rows, row->key.level);
    CX_ASSERT(at < 3);
    if (at < rows->count) {
        row->key.id = rows->keys[at].id;
        if (rows->waiting[at] >= 0)
            own_index->pending.items[rows->waiting[at]].replaced = true;
        else
            CX_TRY(queue_delete(own_index, row, &rows->keys[at], err));
    } else {
        rows->count++;
    }
    rows->keys[at] = row->key;
    rows->waiting[at] = (int64_t)number;
    return CX_SUCCESS;
}

static cx_status rank_trace_rows(cx_pg_index *own_index, trace_rows *rows, int64_t last,
                                 cx_err *err)
{
    /* Waiting rows are linked backwards from the last one; a trace has few. */
    size_t numbers[WAITING_ROWS_MAX], count = 0;
    for (int64_t at = last; at >= 0; at = own_index->pending.items[at].next)
        numbers[count++] = (size_t)at;
    const cx_pg_pending *any = &own_index->pending.items[last];
    while (count > 0)
        CX_TRY(place_row(own_index, rows, numbers[--count], err));
    size_t best = cx_index_primary_of(rows->keys, rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->waiting[i] >= 0)
            own_index->pending.items[rows->waiting[i]].primary = i == best;
        else
            CX_TRY(queue_primary(own_index, any, &rows->keys[i], i == best, err));
    }
    return CX_SUCCESS;
}

/* New traces with a single row need no ranking; that is nearly all of them. */
static cx_status rank_waiting_rows(cx_index *index, const old_rows *old, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    size_t next_old = 0;
    for (size_t i = 0; i < own_index->pending.count; i++) {
        const cx_pg_pending *row = &own_index->pending.items[i];
        if (row->next >= 0)
            continue;
        trace_rows rows = {.count = 0};
        for (; next_old < old->items.count && old->items.items[next_old].trace <= i; next_old++) {
            if (old->items.items[next_old].trace != i)
                continue;
            CX_ASSERT(rows.count < 3);
            rows.waiting[rows.count] = -1;
            rows.keys[rows.count++] = old->items.items[next_old].key;
        }
        const uint64_t *last = cx_map_find(&own_index->traces, row->name);
        CX_ASSERT(last != NULL);
        CX_TRY(rank_trace_rows(own_index, &rows, (int64_t)*last, err));
    }
    return cx_pg_drain(own_index->pg, err);
}

/* Ids follow the order of arrival; a row that replaces another keeps its id. */
static void number_rows(cx_index *index)
{
    cx_pg_index *own_index = pg_index_of(index);
    for (size_t i = 0; i < own_index->pending.count; i++) {
        cx_pg_pending *row = &own_index->pending.items[i];
        if (row->key.id == 0)
            row->key.id = ++index->last_id;
    }
}

/* --- copying ---------------------------------------------------------------------------------- */

static cx_status copy_traces(cx_pg_index *own_index, cx_err *err)
{
    CX_TRY(cx_pg_copy_begin(own_index->pg,
                            "COPY cirislens.covenant_traces FROM STDIN (FORMAT binary)", err));
    for (size_t i = 0; i < own_index->pending.count; i++) {
        const cx_pg_pending *row = &own_index->pending.items[i];
        uint8_t *bytes = own_index->rows.data + row->offset;
        for (unsigned byte = 0; byte < 8; byte++) /* after the column count and the id's length */
            bytes[6 + byte] = (uint8_t)((uint64_t)row->key.id >> (56 - 8 * byte));
        bytes[row->primary_at] = row->primary;
        if (!row->replaced)
            CX_TRY(cx_pg_copy_rows(own_index->pg, cx_bytes_from(bytes, row->size), err));
    }
    return cx_pg_copy_end(own_index->pg, err);
}

static cx_status add_key(cx_buf *out, const cx_pg_pending *row, cx_err *err)
{
    cx_pg_value values[] = {
        text_value(row->agent),
        text_value(row->trace_id),
        text_value(cx_str_z(cx_trace_level_name(row->key.level))),
        {.type = CX_PG_TIME, .i = row->key.timestamp_ns},
        {.type = CX_PG_INT, .i = row->key.id},
        {.type = CX_PG_BOOL, .b = row->key.verified},
        text_value(row->signer),
        text_value(row->action_executed),
        text_value(row->action_timestamp),
    };
    cx_pg_add_row(out, CX_COUNT_OF(values));
    for (size_t i = 0; i < CX_COUNT_OF(values); i++)
        CX_TRY(cx_pg_add_value(out, &values[i], err));
    return CX_SUCCESS;
}

static cx_status copy_keys(cx_pg_index *own_index, cx_err *err)
{
    cx_buf rows;
    cx_status status = CX_SUCCESS;
    cx_buf_init(&rows, cx_alloc_default());
    for (size_t i = 0; i < own_index->pending.count; i++)
        if (!own_index->pending.items[i].replaced)
            CX_TRY_GOTO(status, add_key(&rows, &own_index->pending.items[i], err));
    CX_TRY_GOTO(status, cx_buf_check(&rows, err));
    CX_TRY_GOTO(status,
                cx_pg_copy_begin(own_index->pg,
                                 "COPY cirislens.covenant_trace_keys (agent_id_hash, trace_id,"
                                 " trace_level, timestamp, id, verified, signer_key_id,"
                                 " action_executed, action_timestamp) FROM STDIN (FORMAT binary)",
                                 err));
    CX_TRY_GOTO(status, cx_pg_copy_rows(own_index->pg, cx_buf_bytes(&rows), err));
    status = cx_pg_copy_end(own_index->pg, err);
done:
    cx_buf_done(&rows);
    return status;
}

/* --- stale hours ------------------------------------------------------------------------------ */

static cx_status mark_hours_stale(cx_pg_index *own_index, const int64_t *hours, size_t count,
                                  cx_err *err)
{
    cx_pg_value value = {.type = CX_PG_TIMES, .times = hours, .count = count};
    if (count == 0)
        return CX_SUCCESS;
    return cx_pg_query(own_index->pg,
                       "INSERT INTO cirislens.covenant_agent_hours_stale (bucket)"
                       " SELECT unnest($1) ON CONFLICT DO NOTHING",
                       &value, 1, NULL, 0, NULL, NULL, NULL, err);
}

cx_status cx_index_pg_touch(cx_index *index, int64_t ns, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    int64_t hour = ns - ns % HOUR_NS;
    bool is_new;
    if (own_index->timescale)
        return CX_SUCCESS;
    CX_TRY(cx_index_pg_add_number(&own_index->stale_hours, hour, &is_new, err));
    return is_new ? mark_hours_stale(own_index, &hour, 1, err) : CX_SUCCESS;
}

static cx_status touch_hours(cx_index *index, const old_rows *old, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    size_t rows = own_index->pending.count, count = 0;
    if (own_index->timescale)
        return CX_SUCCESS;
    int64_t *hours = CX_ARENA_ARRAY(&own_index->texts, int64_t, rows + old->items.count);
    if (hours == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < rows + old->items.count; i++) {
        int64_t ns = i < rows ? own_index->pending.items[i].key.timestamp_ns
                              : old->items.items[i - rows].key.timestamp_ns;
        bool is_new;
        CX_TRY(cx_index_pg_add_number(&own_index->stale_hours, ns - ns % HOUR_NS, &is_new, err));
        if (is_new)
            hours[count++] = ns - ns % HOUR_NS;
    }
    return mark_hours_stale(own_index, hours, count, err);
}

static cx_status flush_rows(cx_index *index, old_rows *old, cx_err *err)
{
    cx_pg_index *own_index = pg_index_of(index);
    CX_TRY(find_old(own_index, old, err));
    CX_TRY(rank_waiting_rows(index, old, err));
    number_rows(index);
    CX_TRY(cx_index_pg_make_days(index, err));
    CX_TRY(copy_traces(own_index, err));
    CX_TRY(copy_keys(own_index, err));
    return touch_hours(index, old, err);
}

cx_status cx_index_pg_flush(cx_index *index, cx_err *err)
{
    if (pg_index_of(index)->pending.count == 0)
        return CX_SUCCESS;
    old_rows old = {.items = {0}};
    cx_status status = flush_rows(index, &old, err);
    cx_vec_done(&old.items, cx_alloc_default());
    cx_index_pg_forget_rows(pg_index_of(index));
    return status;
}

#endif
