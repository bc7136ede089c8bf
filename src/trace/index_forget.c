/*
 * index_forget.c - what was erased from the ledger leaves the index (DECISIONS 13).
 */
#include "trace/index_internal.h"

typedef struct lost_row {
    char trace_id[CX_TRACE_ID_BYTES_MAX * 3]; /* lone surrogates are shown as U+FFFD */
    size_t trace_id_size;
    cx_trace_level level;
    bool found;
} lost_row;

static cx_status take_lost(void *arg, const cx_cell *cells, cx_err *err)
{
    lost_row *lost = arg;
    (void)err;
    if (cells[0].text.size > sizeof lost->trace_id)
        return CX_SUCCESS;
    memcpy(lost->trace_id, cells[0].text.data, cells[0].text.size);
    lost->trace_id_size = cells[0].text.size;
    lost->found = cx_trace_level_parse(cells[1].text, &lost->level);
    return CX_SUCCESS;
}

/* An agent's rows are of its own actor, so the agent's index finds them. */
cx_status cx_index_forget(cx_index *index, cx_str actor, uint64_t seq, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT};
    CX_ASSERT(index->in_transaction);
    lost_row lost = {.found = false};
    cx_sql_value values[] = {cx_sql_text(actor), cx_sql_int((int64_t)seq)};
    cx_question question = {"SELECT trace_id, trace_level FROM cirislens.covenant_traces"
                            " WHERE agent_id_hash = $1 AND ledger_seq = $2",
                            values,
                            CX_COUNT_OF(values),
                            types,
                            CX_COUNT_OF(types),
                            take_lost,
                            &lost};
    CX_TRY(index->engine->flush(index, err));
    CX_TRY(index->engine->ask(index, &question, err));
    CX_TRY(cx_index_do(index,
                       "DELETE FROM cirislens.covenant_trace_conflicts WHERE ledger_actor = $1"
                       " AND ledger_seq = $2",
                       values, CX_COUNT_OF(values), err));
    if (!lost.found)
        return CX_SUCCESS;
    return cx_index_remove(index, actor, cx_str_from(lost.trace_id, lost.trace_id_size), lost.level,
                           err);
}
