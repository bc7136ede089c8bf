/*
 * index_age.c - drops rows that are too old, or the oldest of too many, and updates the hourly
 * summaries (trace.md §10).
 */
#include "base/api.h"
#include "index/index_internal.h"
#include "index/steps.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)
#define DAY_NS (24 * HOUR_NS)

typedef struct trace_name {
    cx_str agent, trace_id;
} trace_name;

typedef struct name_list {
    cx_arena *arena;
    CX_VEC(trace_name) names;
} name_list;

static cx_status collect_name(void *arg, const cx_cell *cells, cx_err *err)
{
    name_list *list = arg;
    trace_name *name = cx_vec_push(&list->names, cx_alloc_default());
    if (name == NULL)
        return cx_fail_nomem(err);
    name->agent = cx_arena_copy_str(list->arena, cells[0].text);
    name->trace_id = cx_arena_copy_str(list->arena, cells[1].text);
    return name->agent.data == NULL || name->trace_id.data == NULL ? cx_fail_nomem(err)
                                                                   : CX_SUCCESS;
}

/* Traces of which one row is dropped and another stays: their primary row may change (I3). */
static cx_status find_split(cx_index *index, int64_t before_ns, name_list *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT};
    cx_sql_value before = cx_sql_time(before_ns);
    cx_question question = {
        "SELECT DISTINCT k.agent_id_hash, k.trace_id FROM cirislens.covenant_trace_keys k"
        " JOIN cirislens.covenant_trace_keys o ON o.agent_id_hash = k.agent_id_hash"
        " AND o.trace_id = k.trace_id WHERE k.timestamp < $1 AND o.timestamp >= $1",
        &before,
        1,
        types,
        CX_COUNT_OF(types),
        collect_name,
        out};
    return cx_index_ask(index, &question, err);
}

static cx_status retain_inside(cx_index *index, int64_t before_ns, name_list *split, uint64_t *out,
                               cx_err *err)
{
    cx_feed_line line;
    CX_TRY(find_split(index, before_ns, split, err));
    CX_TRY(index->engine->retain(index, &before_ns, out, err));
    cx_sql_value before = cx_sql_time(before_ns);
    CX_TRY(cx_index_do(index, "DELETE FROM cirislens.covenant_trace_keys WHERE timestamp < $1",
                       &before, 1, err));
    for (size_t i = 0; i < split->names.count; i++)
        CX_TRY(cx_index_set_primary(index, split->names.items[i].agent,
                                    split->names.items[i].trace_id, err));
    CX_TRY(cx_index_retain_steps(index, before_ns, err));
    CX_TRY(cx_index_read_feed(index, &line, err));
    if (!line.there)
        return CX_SUCCESS;
    index->commits++;
    if (index->retained_ns == CX_TIME_NONE || index->retained_ns < before_ns)
        index->retained_ns = before_ns;
    return cx_index_write_feed(index, line.home_id, line.position, err);
}

static cx_status drop_before(cx_index *index, int64_t before_ns, uint64_t *out_dropped, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    name_list split = {.arena = &arena};
    uint64_t dropped = 0;
    cx_status status = cx_index_begin(index, err);
    if (!cx_failed(status)) {
        status = retain_inside(index, before_ns, &split, &dropped, err);
        if (!cx_failed(status))
            status = index->engine->commit(index, err);
        if (cx_failed(status))
            cx_index_rollback(index);
        index->in_transaction = false;
        cx_index_forget_agents(index);
    }
    cx_vec_done(&split.names, cx_alloc_default());
    cx_arena_done(&arena);
    if (!cx_failed(status))
        *out_dropped = dropped;
    return status;
}

cx_status cx_index_retain(cx_index *index, int64_t older_than_ns, uint64_t *out_dropped,
                          cx_err *err)
{
    /* Whole days are dropped, on both engines alike; times before 1970 do not occur. */
    return drop_before(index, older_than_ns < 0 ? 0 : older_than_ns - older_than_ns % DAY_NS,
                       out_dropped, err);
}

cx_status cx_index_retained(cx_index *index, int64_t *out_ns, cx_err *err)
{
    cx_feed_line line;
    CX_TRY(cx_index_read_feed(index, &line, err));
    *out_ns = line.retained_ns;
    return CX_SUCCESS;
}

/* --- size ------------------------------------------------------------------------------------- */

cx_status cx_index_bytes(cx_index *index, uint64_t *out_used, uint64_t *out_file, cx_err *err)
{
    int64_t pages, unused, size;
    *out_used = *out_file = 0;
    if (strcmp(cx_index_engine(index), "sqlite") != 0)
        return CX_SUCCESS;
    CX_TRY(cx_index_number(index, "PRAGMA cirislens.page_count", NULL, 0, 0, &pages, err));
    CX_TRY(cx_index_number(index, "PRAGMA cirislens.freelist_count", NULL, 0, 0, &unused, err));
    CX_TRY(cx_index_number(index, "PRAGMA cirislens.page_size", NULL, 0, 0, &size, err));
    *out_file = (uint64_t)pages * (uint64_t)size;
    *out_used = (uint64_t)(pages - unused) * (uint64_t)size;
    return CX_SUCCESS;
}

typedef struct time_span {
    int64_t first_ns, last_ns; /* CX_TIME_NONE: there are no rows */
} time_span;

static cx_status take_span(void *arg, const cx_cell *cells, cx_err *err)
{
    time_span *span = arg;
    (void)err;
    for (int i = 0; i < 2; i++) {
        if (cells[2 * i].null)
            continue;
        if (span->first_ns == CX_TIME_NONE || cells[2 * i].i < span->first_ns)
            span->first_ns = cells[2 * i].i;
        if (span->last_ns == CX_TIME_NONE || cells[2 * i + 1].i > span->last_ns)
            span->last_ns = cells[2 * i + 1].i;
    }
    return CX_SUCCESS;
}

/* Of the rows that retention drops: a memory holds however old it is. */
static cx_status find_span(cx_index *index, time_span *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TIME, CX_CELL_TIME, CX_CELL_TIME, CX_CELL_TIME};
    *out = (time_span){CX_TIME_NONE, CX_TIME_NONE};
    cx_question question = {
        "SELECT (SELECT min(timestamp) FROM cirislens.covenant_traces),"
        " (SELECT max(timestamp) FROM cirislens.covenant_traces),"
        " (SELECT min(happened_at) FROM cirislens.cortex_steps WHERE history_id NOT IN"
        " (SELECT id FROM cirislens.cortex_histories WHERE source = '" CX_SOURCE_MEMORY "')),"
        " (SELECT max(happened_at) FROM cirislens.cortex_steps WHERE history_id NOT IN"
        " (SELECT id FROM cirislens.cortex_histories WHERE source = '" CX_SOURCE_MEMORY "'))",
        NULL,
        0,
        types,
        CX_COUNT_OF(types),
        take_span,
        out};
    return index->engine->ask(index, &question, err);
}

/* The end of the oldest day, or of the oldest hour when all rows are of one day; CX_TIME_NONE: of
 * one hour. */
static int64_t oldest_part(const time_span *span)
{
    int64_t day = span->first_ns / DAY_NS, hour = span->first_ns / HOUR_NS;
    if (span->first_ns == CX_TIME_NONE || span->first_ns < 0)
        return CX_TIME_NONE;
    if (day < span->last_ns / DAY_NS)
        return (day + 1) * DAY_NS;
    return hour < span->last_ns / HOUR_NS ? (hour + 1) * HOUR_NS : CX_TIME_NONE;
}

cx_status cx_index_bound(cx_index *index, uint64_t max_bytes, uint64_t *out_dropped, cx_err *err)
{
    uint64_t used, file;
    *out_dropped = 0;
    if (strcmp(cx_index_engine(index), "sqlite") != 0)
        return cx_fail(err, CX_E_UNSUPPORTED,
                       "only an index in a file can be bounded by its size; one in PostgreSQL by "
                       "the age of its rows (--index-days)");
    CX_TRY(cx_index_bytes(index, &used, &file, err));
    uint64_t enough = used > max_bytes ? max_bytes - max_bytes / 10 : max_bytes;
    while (used > enough) {
        time_span span;
        uint64_t dropped = 0;
        CX_TRY(find_span(index, &span, err));
        int64_t before_ns = oldest_part(&span);
        if (before_ns == CX_TIME_NONE)
            break;
        CX_TRY(drop_before(index, before_ns, &dropped, err));
        *out_dropped += dropped;
        CX_TRY(cx_index_bytes(index, &used, &file, err));
    }
    return CX_SUCCESS;
}

cx_status cx_index_refresh(cx_index *index, uint64_t *out_hours, cx_err *err)
{
    uint64_t hours = 0;
    CX_TRY(cx_index_begin(index, err));
    cx_status status = index->engine->refresh(index, &hours, err);
    if (!cx_failed(status))
        status = index->engine->commit(index, err);
    if (cx_failed(status)) {
        cx_index_rollback(index);
        return status;
    }
    index->in_transaction = false;
    *out_hours = hours;
    return CX_SUCCESS;
}
