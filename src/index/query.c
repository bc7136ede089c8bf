/*
 * query.c - queries of the index (trace.md §11, §12).  One text for both engines; every value is a
 * parameter.
 *
 * Pages are ordered by (timestamp, id) descending: rows after a given row stay after it, whatever
 * is inserted.
 */
#include "index/index_internal.h"

#include <math.h>

#define LIMIT_MAX 1000
#define WORDS_MAX 64

/* --- building a statement --------------------------------------------------------------------- */

typedef cx_sql_statement statement;

unsigned cx_sql_statement_value(cx_sql_statement *s, cx_sql_value value)
{
    CX_ASSERT(s->count < CX_COUNT_OF(s->values));
    s->values[s->count++] = value;
    return s->count;
}
#define add_value cx_sql_statement_value

void cx_sql_add_text(statement *s, const char *column, cx_str text)
{
    if (text.data != NULL)
        cx_buf_printf(&s->sql, " AND t.%s = $%u", column, add_value(s, cx_sql_text(text)));
}

/* A literal, not a parameter: otherwise a partial index cannot be used. */
static void add_tri(statement *s, const char *column, int8_t tri)
{
    if (tri != CX_NULL)
        cx_buf_printf(&s->sql, " AND t.%s = %s", column, tri == CX_TRUE ? "TRUE" : "FALSE");
}

void cx_sql_add_time(statement *s, const char *comparison, int64_t ns)
{
    if (ns != CX_TIME_NONE)
        cx_buf_printf(&s->sql, " AND t.timestamp %s $%u", comparison,
                      add_value(s, cx_sql_time(ns)));
}

static bool is_word_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (uint8_t)c >= 0x80;
}

/* The words of a text, separated by one space; characters that could be operators are removed. */
static cx_status split_words(cx_str text, bool quoted, cx_arena *arena, cx_str *out, cx_err *err)
{
    size_t room;
    if (!cx_size_mul(text.size, 3, &room) || !cx_size_add(room, 1, &room))
        return cx_fail_nomem(err);
    char *words = CX_ARENA_ARRAY(arena, char, room);
    if (words == NULL)
        return cx_fail_nomem(err);
    size_t size = 0, count = 0;
    for (size_t i = 0; i < text.size && count < WORDS_MAX;) {
        if (!is_word_byte(text.data[i])) {
            i++;
            continue;
        }
        if (count++ != 0)
            words[size++] = ' ';
        if (quoted)
            words[size++] = '"';
        while (i < text.size && is_word_byte(text.data[i]))
            words[size++] = text.data[i++];
        if (quoted)
            words[size++] = '"';
    }
    *out = (cx_str){words, size};
    return CX_SUCCESS;
}

static cx_status add_words(statement *s, const cx_index *index, cx_str text, cx_err *err)
{
    if (text.data == NULL)
        return CX_SUCCESS;
    cx_str words = {NULL, 0};
    CX_TRY(split_words(text, index->engine->quotes_words, s->arena, &words, err));
    if (words.size == 0) {
        cx_buf_add_z(&s->sql, " AND FALSE");
        return CX_SUCCESS;
    }
    cx_buf_add_z(&s->sql, " AND ");
    cx_buf_printf(&s->sql, index->engine->words_condition, add_value(s, cx_sql_text(words)));
    return CX_SUCCESS;
}

static void add_filters(statement *s, const cx_trace_query *query)
{
    cx_sql_add_text(s, "trace_type", query->trace_type);
    cx_sql_add_text(s, "agent_id_hash", query->agent);
    cx_sql_add_text(s, "task_id", query->task_id);
    cx_sql_add_text(s, "thought_id", query->thought_id);
    cx_sql_add_text(s, "selected_action", query->selected_action);
    cx_sql_add_text(s, "cognitive_state", query->cognitive_state);
    cx_sql_add_text(s, "dsdma_domain", query->domain);
    cx_sql_add_text(s, "trace_id", query->trace_id);
    cx_sql_add_time(s, ">=", query->from_ns);
    cx_sql_add_time(s, "<", query->to_ns);
    add_tri(s, "signature_verified", query->verified);
    add_tri(s, "conscience_passed", query->conscience_passed);
    add_tri(s, "action_was_overridden", query->overridden);
    add_tri(s, "idma_fragility_flag", query->fragility_flag);
    if (!isnan(query->min_plausibility))
        cx_buf_printf(&s->sql, " AND t.csdma_plausibility_score >= $%u",
                      add_value(s, cx_sql_double(query->min_plausibility)));
    if (!isnan(query->max_plausibility))
        cx_buf_printf(&s->sql, " AND t.csdma_plausibility_score <= $%u",
                      add_value(s, cx_sql_double(query->max_plausibility)));
}

/* Literals, not parameters: the expressions must match those of the index. */
static void add_classes(statement *s, const cx_trace_query *query)
{
    static const char *const gates[] = {
        " AND t.conscience_passed IS NULL AND t.action_was_overridden IS NOT TRUE",
        " AND t.conscience_passed = TRUE AND t.action_was_overridden IS NOT TRUE",
        " AND t.conscience_passed = FALSE AND t.action_was_overridden IS NOT TRUE",
        " AND t.action_was_overridden = TRUE"};
    static const char *const k_effs[] = {" AND t.idma_k_eff IS NULL", " AND t.idma_k_eff < 2",
                                         " AND t.idma_k_eff >= 2 AND t.idma_k_eff < 5",
                                         " AND t.idma_k_eff >= 5"};
    if (query->gate >= 0)
        cx_buf_add_z(&s->sql, gates[query->gate]);
    if (query->k_eff >= 0)
        cx_buf_add_z(&s->sql, k_effs[query->k_eff]);
    if (query->kept_at >= 0)
        cx_sql_add_text(s, "trace_level",
                        cx_str_z(cx_trace_level_name((cx_trace_level)query->kept_at)));
}

static bool is_selected(const cx_trace_query *query, unsigned column)
{
    return query->components || cx_trace_columns[column].type != CX_CELL_JSON;
}

cx_status cx_index_find_sql(cx_index *index, const cx_trace_query *query, cx_arena *arena,
                            cx_buf *sql, cx_sql_value *values, unsigned *out_count, cx_err *err)
{
    statement s = {.sql = *sql, .arena = arena};
    cx_buf_add_z(&s.sql, "SELECT t.id");
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        if (is_selected(query, i))
            cx_buf_printf(&s.sql, ", t.%s", cx_trace_columns[i].name);
    cx_buf_add_z(&s.sql, " FROM cirislens.covenant_traces t WHERE TRUE");
    add_filters(&s, query);
    add_classes(&s, query);
    cx_status status = add_words(&s, index, query->text, err);
    if (!cx_failed(status))
        status = cx_index_add_beginnings(index, &s, query, err);
    if (!query->every_level)
        cx_buf_add_z(&s.sql, " AND t.primary_row = TRUE");
    if (query->has_cursor) {
        /* The first half lets PostgreSQL skip partitions. */
        unsigned time = add_value(&s, cx_sql_time(query->cursor_ns));
        const char *sign = query->oldest_first ? ">" : "<";
        cx_buf_printf(&s.sql, " AND t.timestamp %s= $%u AND (t.timestamp, t.id) %s ($%u, $%u)",
                      sign, time, sign, time, add_value(&s, cx_sql_int(query->cursor_id)));
    }
    const char *order = query->oldest_first ? "ASC" : "DESC", *plus = s.sorts ? "+" : "";
    cx_buf_printf(&s.sql, " ORDER BY %st.timestamp %s, %st.id %s LIMIT $%u", plus, order, plus,
                  order, add_value(&s, cx_sql_int((int64_t)query->limit + 1)));
    *sql = s.sql;
    memcpy(values, s.values, s.count * sizeof *values);
    *out_count = s.count;
    return status;
}

/* --- traces ----------------------------------------------------------------------------------- */

static bool is_text(cx_cell_type type)
{
    return type == CX_CELL_TEXT || type == CX_CELL_JSON || type == CX_CELL_TEXTS ||
           type == CX_CELL_UUID;
}

typedef struct row_list {
    const cx_trace_query *query;
    cx_arena *arena;
    CX_VEC(cx_found_row) rows;
} row_list;

static cx_status collect_row(void *arg, const cx_cell *cells, cx_err *err)
{
    row_list *taker = arg;
    cx_found_row *row = cx_vec_push(&taker->rows, cx_alloc_default());
    cx_cell *copy = CX_ARENA_ARRAY(taker->arena, cx_cell, CX_COL_COUNT);
    if (row == NULL || copy == NULL)
        return cx_fail_nomem(err);
    const cx_cell *at = cells + 1;
    for (unsigned i = 0; i < CX_COL_COUNT; i++) {
        copy[i] = is_selected(taker->query, i) ? *at++ : CX_NULL_CELL;
        if (copy[i].null || !is_text(cx_trace_columns[i].type))
            continue;
        copy[i].text = cx_arena_copy_str(taker->arena, copy[i].text);
        if (copy[i].text.data == NULL)
            return cx_fail_nomem(err);
    }
    *row = (cx_found_row){cells[0].i, copy[CX_COL_timestamp].i, copy};
    return CX_SUCCESS;
}

static cx_status collect_rows(cx_index *index, statement *s, row_list *taker, cx_err *err)
{
    cx_cell_type types[CX_COL_COUNT + 1];
    size_t count = 0;
    CX_TRY(cx_index_find_sql(index, taker->query, s->arena, &s->sql, s->values, &s->count, err));
    const char *sql = cx_buf_z(&s->sql);
    if (sql == NULL)
        return cx_fail_nomem(err);
    types[count++] = CX_CELL_INT;
    for (unsigned i = 0; i < CX_COL_COUNT; i++)
        if (is_selected(taker->query, i))
            types[count++] = cx_trace_columns[i].type;
    cx_question question = {sql, s->values, s->count, types, count, collect_row, taker};
    return cx_index_ask(index, &question, err);
}

cx_status cx_index_give(const void *items, size_t count, size_t item_size, size_t align,
                        cx_arena *arena, void *out, cx_err *err)
{
    void *copy = cx_arena_push_array(arena, count == 0 ? 1 : count, item_size, align);
    if (copy == NULL)
        return cx_fail_nomem(err);
    if (count != 0)
        memcpy(copy, items, count * item_size);
    memcpy(out, &copy, sizeof copy);
    return CX_SUCCESS;
}

cx_status cx_index_find(cx_index *index, const cx_trace_query *query, cx_arena *arena,
                        const cx_found_row **out, size_t *out_count, bool *out_more, cx_err *err)
{
    CX_ASSERT(index != NULL && query != NULL);
    if (query->limit < 1 || query->limit > LIMIT_MAX || query->level > CX_LEVEL_FULL)
        return cx_fail_at(err, CX_E_USAGE, "BadQuery", CX_NO_OFFSET,
                          "a query has a level and a limit from 1 to %d", LIMIT_MAX);
    statement s = {.arena = arena};
    row_list taker = {.query = query, .arena = arena};
    cx_buf_init(&s.sql, cx_alloc_default());
    cx_status status = collect_rows(index, &s, &taker, err);
    bool more = taker.rows.count > query->limit;
    if (more)
        taker.rows.count = query->limit;
    if (!cx_failed(status))
        status = CX_INDEX_GIVE(taker.rows, arena, out, err);
    if (!cx_failed(status)) {
        *out_count = taker.rows.count;
        *out_more = more;
    }
    cx_vec_done(&taker.rows, cx_alloc_default());
    cx_buf_done(&s.sql);
    return status;
}

/* --- status ----------------------------------------------------------------------------------- */

static cx_status read_position(void *arg, const cx_cell *c, cx_err *err)
{
    (void)err;
    *(cx_feed_position *)arg = (cx_feed_position){(uint64_t)c[0].i, (uint64_t)c[1].i};
    return CX_SUCCESS;
}

static cx_status count_rows(cx_index *index, const char *sql, uint64_t *out, cx_err *err)
{
    int64_t count;
    CX_TRY(cx_index_number(index, sql, NULL, 0, 0, &count, err));
    *out = (uint64_t)count;
    return CX_SUCCESS;
}

cx_status cx_index_get_status(cx_index *index, cx_index_status *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_INT, CX_CELL_INT};
    cx_index_status status = {.engine = cx_index_engine(index), .schema_version = index->version};
    cx_question question = {"SELECT log_commit, log_frames FROM cirislens.cortex_index_feed",
                            NULL,
                            0,
                            types,
                            CX_COUNT_OF(types),
                            read_position,
                            &status.position};
    CX_TRY(cx_index_ask(index, &question, err));
    CX_TRY(count_rows(index, "SELECT count(*) FROM cirislens.covenant_traces", &status.trace_rows,
                      err));
    CX_TRY(count_rows(index,
                      "SELECT count(*) FROM cirislens.covenant_traces"
                      " WHERE signature_verified = FALSE",
                      &status.unverified_rows, err));
    CX_TRY(count_rows(index, "SELECT count(*) FROM cirislens.coherence_ratchet_alerts",
                      &status.alert_rows, err));
    CX_TRY(cx_index_retained(index, &status.retained_ns, err));
    CX_TRY(cx_index_bytes(index, &status.bytes_used, &status.bytes_file, err));
    *out = status;
    return CX_SUCCESS;
}

/* --- batches ---------------------------------------------------------------------------------- */

typedef struct batch_reader {
    cx_arena *arena;
    cx_batch_found *out;
    bool found;
} batch_reader;

static cx_status read_batch(void *arg, const cx_cell *cells, cx_err *err)
{
    batch_reader *taker = arg;
    taker->found = true;
    *taker->out = (cx_batch_found){.received = (uint64_t)cells[1].i,
                                   .accepted = (uint64_t)cells[2].i,
                                   .rejected = (uint64_t)cells[3].i};
    if (cells[0].null)
        return CX_SUCCESS;
    taker->out->correlation_metadata = cx_arena_copy_str(taker->arena, cells[0].text);
    return taker->out->correlation_metadata.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_index_batch(cx_index *index, cx_str batch_id, cx_arena *arena, cx_batch_found *out,
                         cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_JSON, CX_CELL_INT, CX_CELL_INT, CX_CELL_INT};
    cx_sql_value values[] = {cx_sql_text(batch_id)};
    batch_reader taker = {arena, out, false};
    cx_question question = {"SELECT correlation_metadata, received_count, accepted_count,"
                            " rejected_count FROM cirislens.covenant_trace_batches"
                            " WHERE batch_id = $1",
                            values,
                            CX_COUNT_OF(values),
                            types,
                            CX_COUNT_OF(types),
                            read_batch,
                            &taker};
    CX_TRY(cx_index_ask(index, &question, err));
    if (!taker.found)
        return cx_fail_at(err, CX_E_NOT_FOUND, "NoBatch", CX_NO_OFFSET, "no batch has this id");
    return CX_SUCCESS;
}
