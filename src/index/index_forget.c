/*
 * index_forget.c - removes from the index what was erased from the ledger (decision 0023), and
 * recomputes the phases of the agent's other traces.
 */
#include "base/api.h"
#include "index/index_internal.h"
#include "index/steps.h"

#include <math.h>

/* --- phases (§6) ------------------------------------------------------------------------------ */

typedef struct phase_row {
    cx_str trace_id, level;
    int64_t timestamp_ns;
    const char *phase;
} phase_row;

typedef struct phases {
    cx_arena arena;
    cx_map verified; /* ids of verified traces so far */
    bool established;
    CX_VEC(phase_row) changed;
} phases;

enum { TRACE_ID, LEVEL, TIMESTAMP, K_EFF, VERIFIED, PHASE, COLUMN_COUNT };

static cx_status learn_source(phases *p, const cx_cell *cells, cx_err *err)
{
    uint64_t *slot;
    bool is_new;
    if (p->established || !cells[VERIFIED].b)
        return CX_SUCCESS;
    cx_str id = cx_arena_copy_str(&p->arena, cells[TRACE_ID].text);
    if (id.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_map_put(&p->verified, id, &slot, &is_new, err));
    p->established = (!cells[K_EFF].null && cells[K_EFF].f >= 2.0) ||
                     p->verified.used >= CX_IDMA_ESTABLISHED_AFTER;
    return CX_SUCCESS;
}

/* In order of arrival. */
static cx_status collect_phase(void *arg, const cx_cell *cells, cx_err *err)
{
    phases *p = arg;
    const cx_idma_input input = {
        .has_k_eff = !cells[K_EFF].null, .k_eff = cells[K_EFF].f, .established = p->established};
    cx_idma_result result;
    cx_idma_judge(&input, &result);
    if (input.has_k_eff &&
        (cells[PHASE].null || !cx_str_is(cells[PHASE].text, cx_idma_phase_name(result.phase)))) {
        phase_row *row = cx_vec_push(&p->changed, cx_alloc_default());
        if (row == NULL)
            return cx_fail_nomem(err);
        *row = (phase_row){cx_arena_copy_str(&p->arena, cells[TRACE_ID].text),
                           cx_arena_copy_str(&p->arena, cells[LEVEL].text), cells[TIMESTAMP].i,
                           cx_idma_phase_name(result.phase)};
        if (row->trace_id.data == NULL || row->level.data == NULL)
            return cx_fail_nomem(err);
    }
    return learn_source(p, cells, err);
}

static cx_status find_phases(cx_index *index, cx_str agent, phases *p, cx_err *err)
{
    static const cx_cell_type types[COLUMN_COUNT] = {CX_CELL_TEXT,  CX_CELL_TEXT, CX_CELL_TIME,
                                                     CX_CELL_FLOAT, CX_CELL_BOOL, CX_CELL_TEXT};
    cx_sql_value value = cx_sql_text(agent);
    cx_question question = {"SELECT trace_id, trace_level, timestamp, idma_k_eff,"
                            " signature_verified, idma_phase_computed"
                            " FROM cirislens.covenant_traces WHERE agent_id_hash = $1"
                            " ORDER BY ledger_seq",
                            &value,
                            1,
                            types,
                            COLUMN_COUNT,
                            collect_phase,
                            p};
    return cx_index_ask(index, &question, err);
}

static cx_status write_phases(cx_index *index, cx_str agent, const phases *p, cx_err *err)
{
    for (size_t i = 0; i < p->changed.count; i++) {
        const phase_row *row = &p->changed.items[i];
        cx_sql_value values[] = {cx_sql_text(agent), cx_sql_text(row->trace_id),
                                 cx_sql_text(row->level), cx_sql_time(row->timestamp_ns),
                                 cx_sql_text(cx_str_z(row->phase))};
        CX_TRY(cx_index_do(index,
                           "UPDATE cirislens.covenant_traces SET idma_phase_computed = $5"
                           " WHERE agent_id_hash = $1 AND trace_id = $2 AND trace_level = $3"
                           " AND timestamp = $4",
                           values, CX_COUNT_OF(values), err));
    }
    return CX_SUCCESS;
}

cx_status cx_index_update_phases(cx_index *index, cx_str agent, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    /* If old rows of an agent were dropped, whether they had established it is unknown. */
    if (index->retained_ns != CX_TIME_NONE)
        return CX_SUCCESS;
    phases p = {.established = false};
    cx_arena_init(&p.arena, cx_alloc_default(), 0);
    cx_map_init(&p.verified, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_status status = find_phases(index, agent, &p, err);
    if (!cx_failed(status))
        status = write_phases(index, agent, &p, err);
    cx_vec_done(&p.changed, cx_alloc_default());
    cx_map_done(&p.verified);
    cx_arena_done(&p.arena);
    return status;
}

/* --- what was erased -------------------------------------------------------------------------- */

typedef struct lost_row {
    char trace_id[CX_TRACE_ID_BYTES_MAX * 3]; /* lone surrogates are shown as U+FFFD */
    size_t trace_id_size;
    cx_trace_level level;
    bool found;
} lost_row;

static cx_status read_lost_row(void *arg, const cx_cell *cells, cx_err *err)
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

/* An agent's rows belong to its own actor, so the index by agent finds them. */
static cx_status find_lost(cx_index *index, const cx_sql_value values[2], lost_row *out,
                           cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT};
    cx_question question = {"SELECT trace_id, trace_level FROM cirislens.covenant_traces"
                            " WHERE agent_id_hash = $1 AND ledger_seq = $2",
                            values,
                            2,
                            types,
                            CX_COUNT_OF(types),
                            read_lost_row,
                            out};
    return cx_index_ask(index, &question, err);
}

cx_status cx_index_forget(cx_index *index, cx_str actor, uint64_t seq, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    lost_row lost = {.found = false};
    cx_sql_value values[] = {cx_sql_text(actor), cx_sql_int((int64_t)seq)};
    CX_TRY(find_lost(index, values, &lost, err));
    CX_TRY(cx_index_do(index,
                       "DELETE FROM cirislens.covenant_trace_conflicts WHERE ledger_actor = $1"
                       " AND ledger_seq = $2",
                       values, CX_COUNT_OF(values), err));
    if (cx_str_is(actor, "batches"))
        CX_TRY(cx_index_do(index,
                           "DELETE FROM cirislens.covenant_trace_batches WHERE ledger_seq = $1",
                           &values[1], 1, err));
    CX_TRY(cx_index_forget_steps(index, actor, seq, err));
    if (!lost.found)
        return CX_SUCCESS;
    CX_TRY(cx_index_remove(index, actor, cx_str_from(lost.trace_id, lost.trace_id_size), lost.level,
                           err));
    return cx_index_update_phases(index, actor, err);
}
