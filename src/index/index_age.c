/*
 * index_age.c - drops rows that are too old, whole days at a time, and updates the hourly summaries
 * (trace.md §10).
 */
#include "base/api.h"
#include "index/index_internal.h"
#include "index/steps.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

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

cx_status cx_index_retain(cx_index *index, int64_t older_than_ns, uint64_t *out_dropped,
                          cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    name_list split = {.arena = &arena};
    uint64_t dropped = 0;
    /* Whole days are dropped, on both engines alike; times before 1970 do not occur. */
    int64_t before_ns = older_than_ns < 0 ? 0 : older_than_ns - older_than_ns % DAY_NS;
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
