/*
 * facets.c - counts the traces for each combination of the inbox' facets.
 *
 * A single statement, so that all counts are of one moment, whatever is written meanwhile.
 */
#include "index/index_internal.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)

typedef struct cell_receiver {
    cx_status (*take)(void *arg, const cx_facet_cell *cell, cx_err *err);
    void *arg;
    uint64_t rows; /* rows received */
} cell_receiver;

static cx_status pass_cell(cell_receiver *receiver, const cx_cell *c, int64_t hour, uint64_t traces,
                           cx_err *err)
{
    cx_facet_cell cell = {.agent = c[0].text,
                          .verified = c[2].b,
                          .k_eff = (cx_k_eff_class)c[3].i,
                          .gate = (cx_gate_class)c[4].i,
                          .hour = hour,
                          .traces = traces};
    if (!cx_trace_level_parse(c[1].text, &cell.level) || c[3].i < 0 ||
        c[3].i > CX_K_EFF_5_AND_MORE || c[4].i < 0 || c[4].i > CX_GATE_OVERRIDDEN)
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the index has an impossible count; run 'cortex tables rebuild'");
    return receiver->take(receiver->arg, &cell, err);
}

static cx_status pass_counted_row(void *arg, const cx_cell *c, cx_err *err)
{
    return pass_cell(arg, c, c[5].i, (uint64_t)c[6].i, err);
}

static cx_status pass_trace_row(void *arg, const cx_cell *c, cx_err *err)
{
    cell_receiver *receiver = arg;
    if (++receiver->rows > CX_FACET_ROWS_MAX)
        return CX_SUCCESS;
    return pass_cell(receiver, c, c[5].i / HOUR_NS, 1, err);
}

static cx_status count_all(cx_index *index, cell_receiver *receiver, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_BOOL, CX_CELL_INT,
                                         CX_CELL_INT,  CX_CELL_INT,  CX_CELL_INT};
    const cx_question question = {.sql = index->engine->facets_sql,
                                  .types = types,
                                  .column_count = CX_COUNT_OF(types),
                                  .row = pass_counted_row,
                                  .arg = receiver};
    return cx_index_ask(index, &question, err);
}

static cx_status count_matching(cx_index *index, const cx_trace_query *query, cx_sql_statement *s,
                                cell_receiver *receiver, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_BOOL,
                                         CX_CELL_INT,  CX_CELL_INT,  CX_CELL_TIME};
    cx_buf_add_z(
        &s->sql,
        "SELECT t.agent_id_hash, t.trace_level, t.signature_verified,"
        " CAST(" CX_SQL_K_EFF_CLASS(
            "t.") " AS bigint),"
                  " CAST(" CX_SQL_GATE_CLASS(
                      "t.") " AS bigint), t.timestamp"
                            " FROM cirislens.covenant_traces t WHERE t.primary_row = TRUE");
    CX_TRY(cx_index_add_beginnings(index, s, query, err));
    const char *plus = s->sorts ? "+" : "";
    cx_buf_printf(&s->sql, " ORDER BY %st.timestamp DESC, %st.id DESC LIMIT %d", plus, plus,
                  CX_FACET_ROWS_MAX + 1);
    const char *sql = cx_buf_z(&s->sql);
    if (sql == NULL)
        return cx_fail_nomem(err);
    const cx_question question = {.sql = sql,
                                  .values = s->values,
                                  .value_count = s->count,
                                  .types = types,
                                  .column_count = CX_COUNT_OF(types),
                                  .row = pass_trace_row,
                                  .arg = receiver};
    return cx_index_ask(index, &question, err);
}

cx_status cx_index_facets(cx_index *index, const cx_trace_query *query,
                          cx_status (*take)(void *arg, const cx_facet_cell *cell, cx_err *err),
                          void *arg, bool *out_complete, cx_err *err)
{
    cell_receiver receiver = {.take = take, .arg = arg};
    if (query->words.data == NULL) {
        *out_complete = true;
        return count_all(index, &receiver, err);
    }
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_sql_statement s = {.arena = &arena};
    cx_buf_init(&s.sql, cx_alloc_default());
    cx_status status = count_matching(index, query, &s, &receiver, err);
    *out_complete = receiver.rows <= CX_FACET_ROWS_MAX;
    cx_buf_done(&s.sql);
    cx_arena_done(&arena);
    return status;
}
