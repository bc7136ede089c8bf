/*
 * query_lists.c - the queries of analysis (trace.md §10, §12): scores of a window, traces of a key,
 * the audit chain, agents, wake-ups, conflicts.  Each list has a fixed order.
 */
#include "index/index_internal.h"

#include <math.h>

typedef cx_sql_statement statement;
#define add_value cx_sql_statement_value

/* --- scores ----------------------------------------------------------------------------------- */

/* Columns of a cx_score_row, in its order. */
static const unsigned score_columns[] = {
    CX_COL_trace_id,
    CX_COL_agent_id_hash,
    CX_COL_agent_name,
    CX_COL_trace_type,
    CX_COL_dsdma_domain,
    CX_COL_selected_action,
    CX_COL_timestamp,
    CX_COL_csdma_plausibility_score,
    CX_COL_dsdma_domain_alignment,
    CX_COL_coherence_level,
    CX_COL_entropy_level,
    CX_COL_idma_k_eff,
    CX_COL_idma_correlation_risk,
    CX_COL_entropy_score,
    CX_COL_coherence_score,
    CX_COL_optimization_veto_entropy_ratio,
    CX_COL_epistemic_humility_certainty,
    CX_COL_idma_fragility_flag,
    CX_COL_entropy_passed,
    CX_COL_coherence_passed,
    CX_COL_optimization_veto_passed,
    CX_COL_epistemic_humility_passed,
    CX_COL_conscience_passed,
    CX_COL_action_was_overridden,
    CX_COL_action_success,
    CX_COL_has_positive_moment,
    CX_COL_audit_sequence_number,
};

static double number_of(const cx_cell *cell)
{
    return cell->null ? (double)NAN : cell->f;
}

static int8_t tri_of(const cx_cell *cell)
{
    return (int8_t)(cell->null ? CX_NULL : cell->b ? CX_TRUE : CX_FALSE);
}

typedef struct score_list {
    cx_arena *arena;
    cx_map texts; /* agents, domains and actions repeat: one copy of each */
    CX_VEC(cx_score_row) rows;
} score_list;

static cx_status copy_score_text(score_list *taker, const cx_cell *cell, cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    if (cell->null)
        return CX_SUCCESS;
    const uint64_t *known = cx_map_find(&taker->texts, cell->text);
    if (known != NULL) {
        *out = (cx_str){(const char *)(uintptr_t)*known, cell->text.size};
        return CX_SUCCESS;
    }
    *out = cx_arena_copy_str(taker->arena, cell->text);
    if (out->data == NULL)
        return cx_fail_nomem(err);
    uint64_t *value;
    bool is_new;
    CX_TRY(cx_map_put(&taker->texts, *out, &value, &is_new, err));
    *value = (uint64_t)(uintptr_t)out->data;
    return CX_SUCCESS;
}

static cx_status collect_score(void *arg, const cx_cell *c, cx_err *err)
{
    score_list *taker = arg;
    cx_score_row *row = cx_vec_push(&taker->rows, cx_alloc_default());
    if (row == NULL)
        return cx_fail_nomem(err);
    *row = (cx_score_row){
        .timestamp_ns = c[6].i,
        .csdma = number_of(&c[7]),
        .dsdma = number_of(&c[8]),
        .coherence = number_of(&c[9]),
        .entropy = number_of(&c[10]),
        .k_eff = number_of(&c[11]),
        .rho = number_of(&c[12]),
        .entropy_score = number_of(&c[13]),
        .coherence_score = number_of(&c[14]),
        .veto_ratio = number_of(&c[15]),
        .humility_certainty = number_of(&c[16]),
        .fragility_flag = tri_of(&c[17]),
        .entropy_passed = tri_of(&c[18]),
        .coherence_passed = tri_of(&c[19]),
        .veto_passed = tri_of(&c[20]),
        .humility_passed = tri_of(&c[21]),
        .conscience_passed = tri_of(&c[22]),
        .overridden = tri_of(&c[23]),
        .action_success = tri_of(&c[24]),
        .has_positive_moment = tri_of(&c[25]),
        .has_audit_seq = !c[26].null,
    };
    row->trace_id = cx_arena_copy_str(taker->arena, c[0].text);
    if (row->trace_id.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(copy_score_text(taker, &c[1], &row->agent, err));
    CX_TRY(copy_score_text(taker, &c[2], &row->agent_name, err));
    CX_TRY(copy_score_text(taker, &c[3], &row->trace_type, err));
    CX_TRY(copy_score_text(taker, &c[4], &row->domain, err));
    return copy_score_text(taker, &c[5], &row->selected_action, err);
}

static cx_status collect_scores(cx_index *index, cx_str agent, int64_t from_ns, int64_t to_ns,
                                statement *s, score_list *taker, cx_err *err)
{
    cx_cell_type types[CX_COUNT_OF(score_columns)];
    for (size_t i = 0; i < CX_COUNT_OF(score_columns); i++) {
        const cx_column *column = &cx_trace_columns[score_columns[i]];
        types[i] = column->type;
        cx_buf_printf(&s->sql, "%st.%s", i == 0 ? "SELECT " : ", ", column->name);
    }
    cx_buf_add_z(&s->sql, " FROM cirislens.covenant_traces t WHERE t.signature_verified = TRUE"
                          " AND t.primary_row = TRUE");
    cx_sql_add_text(s, "agent_id_hash", agent);
    cx_sql_add_time(s, ">=", from_ns);
    cx_sql_add_time(s, "<", to_ns);
    cx_buf_add_z(&s->sql, " ORDER BY t.timestamp, t.id");
    const char *sql = cx_buf_z(&s->sql);
    if (sql == NULL)
        return cx_fail_nomem(err);
    cx_question question = {sql,           s->values, s->count, types, CX_COUNT_OF(types),
                            collect_score, taker};
    return cx_index_ask(index, &question, err);
}

cx_status cx_index_scores(cx_index *index, cx_str agent, int64_t from_ns, int64_t to_ns,
                          cx_arena *arena, const cx_score_row **out, size_t *out_count, cx_err *err)
{
    statement s = {.arena = arena};
    score_list taker = {.arena = arena};
    cx_buf_init(&s.sql, cx_alloc_default());
    cx_map_init(&taker.texts, cx_alloc_default(), index->agents.seed);
    cx_status status = collect_scores(index, agent, from_ns, to_ns, &s, &taker, err);
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(taker.rows, arena, out, err);
    if (!cx_failed(status))
        *out_count = taker.rows.count;
    cx_vec_done(&taker.rows, cx_alloc_default());
    cx_map_done(&taker.texts);
    cx_buf_done(&s.sql);
    return status;
}

cx_status cx_index_received_count(cx_index *index, cx_str agent, int64_t from_ns, int64_t to_ns,
                                  uint64_t *out, cx_err *err)
{
    int64_t count = 0;
    statement s = {0};
    cx_buf_init(&s.sql, cx_alloc_default());
    cx_buf_add_z(&s.sql, "SELECT count(*) FROM cirislens.covenant_traces t"
                         " WHERE t.primary_row = TRUE");
    cx_sql_add_text(&s, "agent_id_hash", agent);
    cx_sql_add_time(&s, ">=", from_ns);
    cx_sql_add_time(&s, "<", to_ns);
    const char *sql = cx_buf_z(&s.sql);
    cx_status status = sql == NULL ? cx_fail_nomem(err)
                                   : cx_index_number(index, sql, s.values, s.count, 0, &count, err);
    cx_buf_done(&s.sql);
    if (!cx_failed(status))
        *out = (uint64_t)count;
    return status;
}

/* --- lists ------------------------------------------------------------------------------------ */

/* The rows collected by the functions below; each vector is used by one of them. */
typedef struct row_lists {
    cx_arena *arena;
    CX_VEC(cx_keyed_row) keyed;
    CX_VEC(cx_chain_entry) entries;
    CX_VEC(cx_str) agents;
    CX_VEC(cx_wakeup_row) wakeups;
    CX_VEC(cx_conflict_row) conflicts;
} row_lists;

static void list_done(row_lists *taker)
{
    cx_vec_done(&taker->keyed, cx_alloc_default());
    cx_vec_done(&taker->entries, cx_alloc_default());
    cx_vec_done(&taker->agents, cx_alloc_default());
    cx_vec_done(&taker->wakeups, cx_alloc_default());
    cx_vec_done(&taker->conflicts, cx_alloc_default());
}

/* NULL data for NULL. */
static cx_status copy_text(row_lists *taker, const cx_cell *cell, cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    if (cell->null)
        return CX_SUCCESS;
    *out = cx_arena_copy_str(taker->arena, cell->text);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status level_of(const cx_cell *cell, cx_trace_level *out, cx_err *err)
{
    if (cx_trace_level_parse(cell->text, out))
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                      "the index has an unknown level; run 'cortex tables rebuild'");
}

static bool digest_of(const cx_cell *cell, cx_digest *out)
{
    if (cell->null || cell->text.size != 64)
        return false;
    for (size_t i = 0; i < 64; i++) {
        char c = cell->text.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 16;
        if (digit == 16)
            return false;
        out->bytes[i / 2] = (uint8_t)((i & 1) == 0 ? digit << 4 : out->bytes[i / 2] | digit);
    }
    return true;
}

static cx_status collect_keyed(void *arg, const cx_cell *c, cx_err *err)
{
    row_lists *taker = arg;
    cx_keyed_row *row = cx_vec_push(&taker->keyed, cx_alloc_default());
    if (row == NULL)
        return cx_fail_nomem(err);
    *row = (cx_keyed_row){.seq = (uint64_t)c[1].i, .verified = c[5].b};
    CX_TRY(level_of(&c[4], &row->level, err));
    CX_TRY(copy_text(taker, &c[0], &row->actor, err));
    CX_TRY(copy_text(taker, &c[2], &row->agent, err));
    return copy_text(taker, &c[3], &row->trace_id, err);
}

cx_status cx_index_rows_of_key(cx_index *index, cx_str key_id, cx_arena *arena,
                               const cx_keyed_row **out, size_t *out_count, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_INT,  CX_CELL_TEXT,
                                         CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_BOOL};
    cx_sql_value value = cx_sql_text(key_id);
    row_lists taker = {.arena = arena};
    cx_question question = {"SELECT t.ledger_actor, t.ledger_seq, t.agent_id_hash, t.trace_id,"
                            " t.trace_level, t.signature_verified"
                            " FROM cirislens.covenant_trace_keys k"
                            " JOIN cirislens.covenant_traces t"
                            " ON t.agent_id_hash = k.agent_id_hash AND t.trace_id = k.trace_id"
                            " AND t.trace_level = k.trace_level AND t.timestamp = k.timestamp"
                            " WHERE k.signer_key_id = $1 ORDER BY k.id",
                            &value,
                            1,
                            types,
                            CX_COUNT_OF(types),
                            collect_keyed,
                            &taker};
    cx_status status = cx_index_ask(index, &question, err);
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(taker.keyed, arena, out, err);
    if (!cx_failed(status))
        *out_count = taker.keyed.count;
    list_done(&taker);
    return status;
}

static cx_status collect_entry(void *arg, const cx_cell *c, cx_err *err)
{
    row_lists *taker = arg;
    bool naive;
    cx_chain_entry *entry = cx_vec_push(&taker->entries, cx_alloc_default());
    if (entry == NULL)
        return cx_fail_nomem(err);
    *entry = (cx_chain_entry){
        .seq = c[0].i,
        .has_success = !c[3].null,
        .success = !c[3].null && c[3].b,
        .timestamp_ns = c[5].i,
        .arrival = (uint64_t)c[7].i,
    };
    entry->has_hash = digest_of(&c[1], &entry->hash);
    CX_TRY(copy_text(taker, &c[2], &entry->action, err));
    CX_TRY(copy_text(taker, &c[4], &entry->timestamp, err));
    CX_TRY(copy_text(taker, &c[6], &entry->trace_id, err));
    if (entry->timestamp.data != NULL)
        (void)cx_trace_time_parse(entry->timestamp, &entry->timestamp_ns, &naive);
    return CX_SUCCESS;
}

#define WHERE_AUDITED                                             \
    " WHERE t.agent_id_hash = $1 AND t.signature_verified = TRUE" \
    " AND t.primary_row = TRUE AND t.audit_sequence_number IS NOT NULL"
#define SELECT_ENTRIES                                                       \
    "SELECT t.audit_sequence_number, t.audit_entry_hash, k.action_executed," \
    " t.action_success, k.action_timestamp, t.timestamp, t.trace_id, t.id"   \
    " FROM cirislens.covenant_traces t"                                      \
    " JOIN cirislens.covenant_trace_keys k"                                  \
    " ON k.agent_id_hash = t.agent_id_hash AND k.trace_id = t.trace_id"      \
    " AND k.trace_level = t.trace_level" WHERE_AUDITED

static cx_status find_entries(cx_index *index, const char *sql, const cx_sql_value *values,
                              size_t value_count, cx_arena *arena, const cx_chain_entry **out,
                              size_t *out_count, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_INT,  CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_BOOL,
                                         CX_CELL_TEXT, CX_CELL_TIME, CX_CELL_TEXT, CX_CELL_INT};
    row_lists taker = {.arena = arena};
    cx_question question = {sql,           values, value_count, types, CX_COUNT_OF(types),
                            collect_entry, &taker};
    cx_status status = cx_index_ask(index, &question, err);
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(taker.entries, arena, out, err);
    if (!cx_failed(status))
        *out_count = taker.entries.count;
    list_done(&taker);
    return status;
}

cx_status cx_index_chain(cx_index *index, cx_str agent, cx_arena *arena, const cx_chain_entry **out,
                         size_t *out_count, cx_err *err)
{
    cx_sql_value value = cx_sql_text(agent);
    return find_entries(index, SELECT_ENTRIES " ORDER BY t.id", &value, 1, arena, out, out_count,
                        err);
}

typedef struct found_number {
    int64_t number;
    bool found;
} found_number;

static cx_status collect_number(void *arg, const cx_cell *c, cx_err *err)
{
    found_number *last = arg;
    (void)err;
    *last = (found_number){c[0].i, true};
    return CX_SUCCESS;
}

/* The last of the rows; unchanged when there is none. */
static cx_status find_number(cx_index *index, const char *sql, const cx_sql_value *values,
                             size_t value_count, found_number *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_INT};
    cx_question question = {sql, values, value_count, types, CX_COUNT_OF(types), collect_number,
                            out};
    return cx_index_ask(index, &question, err);
}

cx_status cx_index_chain_near(cx_index *index, cx_str agent, int64_t first, int64_t last,
                              unsigned context, cx_arena *arena, const cx_chain_entry **out,
                              size_t *out_count, cx_err *err)
{
    cx_sql_value values[] = {cx_sql_text(agent), cx_sql_int(first), cx_sql_int(context)};
    found_number from = {first, true}, to = {last, true};
#define SELECT_NUMBER \
    "SELECT t.audit_sequence_number FROM cirislens.covenant_traces t" WHERE_AUDITED
    CX_TRY(find_number(index,
                       SELECT_NUMBER " AND t.audit_sequence_number < $2"
                                     " ORDER BY t.audit_sequence_number DESC LIMIT $3",
                       values, CX_COUNT_OF(values), &from, err));
    values[1] = cx_sql_int(last);
    CX_TRY(find_number(index,
                       SELECT_NUMBER " AND t.audit_sequence_number > $2"
                                     " ORDER BY t.audit_sequence_number LIMIT $3",
                       values, CX_COUNT_OF(values), &to, err));
    values[1] = cx_sql_int(from.number);
    values[2] = cx_sql_int(to.number);
    return find_entries(index,
                        SELECT_ENTRIES " AND t.audit_sequence_number >= $2"
                                       " AND t.audit_sequence_number <= $3 ORDER BY t.id",
                        values, CX_COUNT_OF(values), arena, out, out_count, err);
}

cx_status cx_index_audit_number(cx_index *index, cx_str agent, cx_str trace_id, int64_t *out,
                                bool *out_found, cx_err *err)
{
    const cx_sql_value values[] = {cx_sql_text(agent), cx_sql_text(trace_id)};
    found_number found = {0, false};
    CX_TRY(find_number(index, SELECT_NUMBER " AND t.trace_id = $2", values, CX_COUNT_OF(values),
                       &found, err));
    *out = found.number;
    *out_found = found.found;
    return CX_SUCCESS;
}

static cx_status collect_agent(void *arg, const cx_cell *c, cx_err *err)
{
    row_lists *taker = arg;
    cx_str *agent = cx_vec_push(&taker->agents, cx_alloc_default());
    return agent == NULL ? cx_fail_nomem(err) : copy_text(taker, &c[0], agent, err);
}

/* Skips from agent to agent through the table's key, because there are far more rows than agents.
 */
cx_status cx_index_agents(cx_index *index, cx_arena *arena, const cx_str **out, size_t *out_count,
                          cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT};
    row_lists taker = {.arena = arena};
    cx_question question = {"WITH RECURSIVE a (name) AS ("
                            "SELECT min(agent_id_hash) FROM cirislens.covenant_trace_keys"
                            " UNION ALL SELECT (SELECT min(k.agent_id_hash)"
                            " FROM cirislens.covenant_trace_keys k WHERE k.agent_id_hash > a.name)"
                            " FROM a WHERE a.name IS NOT NULL)"
                            " SELECT name FROM a WHERE name IS NOT NULL AND EXISTS (SELECT 1"
                            " FROM cirislens.covenant_trace_keys k"
                            " WHERE k.agent_id_hash = a.name AND k.verified = TRUE)"
                            " ORDER BY name",
                            NULL,
                            0,
                            types,
                            CX_COUNT_OF(types),
                            collect_agent,
                            &taker};
    cx_status status = cx_index_ask(index, &question, err);
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(taker.agents, arena, out, err);
    if (!cx_failed(status))
        *out_count = taker.agents.count;
    list_done(&taker);
    return status;
}

static cx_status collect_wakeup(void *arg, const cx_cell *c, cx_err *err)
{
    row_lists *taker = arg;
    cx_wakeup_row *row = cx_vec_push(&taker->wakeups, cx_alloc_default());
    if (row == NULL)
        return cx_fail_nomem(err);
    *row = (cx_wakeup_row){
        .timestamp_ns = c[3].i,
        .verified = c[4].b,
        .conscience_passed = tri_of(&c[5]),
        .action_success = tri_of(&c[6]),
    };
    CX_TRY(copy_text(taker, &c[0], &row->trace_id, err));
    CX_TRY(copy_text(taker, &c[1], &row->task_id, err));
    return copy_text(taker, &c[2], &row->trace_type, err);
}

cx_status cx_index_wakeups(cx_index *index, cx_str agent, cx_arena *arena,
                           const cx_wakeup_row **out, size_t *out_count, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TIME,
                                         CX_CELL_BOOL, CX_CELL_BOOL, CX_CELL_BOOL};
    cx_sql_value value = cx_sql_text(agent);
    row_lists taker = {.arena = arena};
    cx_question question = {"SELECT trace_id, task_id, trace_type, timestamp, signature_verified,"
                            " conscience_passed, action_success FROM cirislens.covenant_traces"
                            " WHERE agent_id_hash = $1 AND trace_type IS NOT NULL"
                            " ORDER BY timestamp, id",
                            &value,
                            1,
                            types,
                            CX_COUNT_OF(types),
                            collect_wakeup,
                            &taker};
    cx_status status = cx_index_ask(index, &question, err);
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(taker.wakeups, arena, out, err);
    if (!cx_failed(status))
        *out_count = taker.wakeups.count;
    list_done(&taker);
    return status;
}

static cx_status collect_conflict(void *arg, const cx_cell *c, cx_err *err)
{
    row_lists *taker = arg;
    cx_conflict_row *row = cx_vec_push(&taker->conflicts, cx_alloc_default());
    if (row == NULL)
        return cx_fail_nomem(err);
    *row = (cx_conflict_row){
        .received_ns = c[4].null ? CX_TIME_NONE : c[4].i,
        .seq = (uint64_t)c[6].i,
    };
    if (!digest_of(&c[3], &row->content))
        return cx_fail_at(err, CX_E_FORMAT, "DatabaseDamaged", CX_NO_OFFSET,
                          "the index has an invalid digest; run 'cortex tables rebuild'");
    CX_TRY(level_of(&c[2], &row->level, err));
    CX_TRY(copy_text(taker, &c[0], &row->agent, err));
    CX_TRY(copy_text(taker, &c[1], &row->trace_id, err));
    return copy_text(taker, &c[5], &row->actor, err);
}

cx_status cx_index_conflicts(cx_index *index, cx_str agent, cx_str trace_id, cx_arena *arena,
                             const cx_conflict_row **out, size_t *out_count, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT, CX_CELL_TEXT,
                                         CX_CELL_TIME, CX_CELL_TEXT, CX_CELL_INT};
    cx_sql_value values[] = {cx_sql_text(agent), cx_sql_text(trace_id)};
    row_lists taker = {.arena = arena};
    cx_question question = {"SELECT agent_id_hash, trace_id, trace_level, content_sha256,"
                            " received_at, ledger_actor, ledger_seq"
                            " FROM cirislens.covenant_trace_conflicts"
                            " WHERE agent_id_hash = $1 AND trace_id = $2"
                            " ORDER BY ledger_actor, ledger_seq",
                            values,
                            CX_COUNT_OF(values),
                            types,
                            CX_COUNT_OF(types),
                            collect_conflict,
                            &taker};
    cx_status status = cx_index_ask(index, &question, err);
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(taker.conflicts, arena, out, err);
    if (!cx_failed(status))
        *out_count = taker.conflicts.count;
    list_done(&taker);
    return status;
}
