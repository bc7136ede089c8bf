/*
 * index_agents.c - which agents are established (trace.md §6): cached while a transaction writes,
 * otherwise read again from the rows.
 */
#include "base/api.h"
#include "index/index_internal.h"

void cx_index_forget_agents(cx_index *index)
{
    cx_map_done(&index->agents);
    cx_arena_done(&index->agents_memory);
    index->agent_states.count = 0;
    cx_map_init(&index->agents, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_arena_init(&index->agents_memory, cx_alloc_default(), 0);
}

typedef struct state_reader {
    cx_index *index;
    cx_agent_state *state;
} state_reader;

static bool knows_trace(const cx_agent_state *state, cx_str trace_id)
{
    for (unsigned i = 0; i < state->count; i++)
        if (cx_str_eq(state->ids[i], trace_id))
            return true;
    return false;
}

cx_status cx_index_learn_trace(cx_index *index, cx_agent_state *state, cx_str trace_id,
                               const cx_cell *k_eff, cx_err *err)
{
    if (!k_eff->null && k_eff->f >= 2.0)
        state->established = true;
    if (state->established || knows_trace(state, trace_id))
        return CX_SUCCESS;
    cx_str copy = cx_arena_copy_str(&index->agents_memory, trace_id);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    state->ids[state->count++] = copy;
    if (state->count == CX_IDMA_ESTABLISHED_AFTER)
        state->established = true;
    return CX_SUCCESS;
}

static cx_status learn_trace_row(void *arg, const cx_cell *cells, cx_err *err)
{
    state_reader *reader = arg;
    return cx_index_learn_trace(reader->index, reader->state, cells[0].text, &cells[1], err);
}

/* A trace has at most three rows, so this many rows are either all of them or cover thirty traces.
 */
static cx_status load_agent(cx_index *index, cx_str agent, cx_agent_state *state, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_FLOAT};
    cx_sql_value values[] = {cx_sql_text(agent), cx_sql_int(3 * CX_IDMA_ESTABLISHED_AFTER)};
    state_reader reader = {index, state};
    cx_question question = {"SELECT trace_id, idma_k_eff FROM cirislens.covenant_traces"
                            " WHERE agent_id_hash = $1 AND signature_verified = TRUE"
                            " ORDER BY timestamp DESC, id DESC LIMIT $2",
                            values,
                            CX_COUNT_OF(values),
                            types,
                            CX_COUNT_OF(types),
                            learn_trace_row,
                            &reader};
    return cx_index_ask(index, &question, err);
}

static cx_status find_agent(cx_index *index, cx_str agent, cx_agent_state **out, cx_err *err)
{
    const uint64_t *known = cx_map_find(&index->agents, agent);
    if (known != NULL) {
        *out = index->agent_states.items[*known];
        return CX_SUCCESS;
    }
    cx_str copy = cx_arena_copy_str(&index->agents_memory, agent);
    cx_agent_state *state = CX_ARENA_NEW(&index->agents_memory, cx_agent_state);
    if (copy.data == NULL || state == NULL ||
        !cx_vec_reserve(&index->agent_states, index->agent_states.count + 1, cx_alloc_default()))
        return cx_fail_nomem(err);
    *state = (cx_agent_state){0};
    CX_TRY(load_agent(index, agent, state, err));
    uint64_t *number;
    bool is_new;
    CX_TRY(cx_map_put(&index->agents, copy, &number, &is_new, err));
    *number = index->agent_states.count;
    index->agent_states.items[index->agent_states.count++] = state;
    *out = state;
    return CX_SUCCESS;
}

cx_status cx_index_established(cx_index *index, cx_str agent, bool *out, cx_err *err)
{
    if (!index->in_transaction)
        cx_index_forget_agents(index); /* another process may have written since */
    cx_agent_state *state = NULL;
    CX_TRY(find_agent(index, agent, &state, err));
    *out = state->established;
    return CX_SUCCESS;
}
