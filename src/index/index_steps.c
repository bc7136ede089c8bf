/*
 * index_steps.c - writes the rows of steps and histories (steps.h).
 *
 * A history's line is updated with each step of it, so that the inbox reads lines and never counts
 * steps.
 */
#include "index/steps.h"

#include "base/api.h"
#include "index/index_internal.h"

typedef struct history_line {
    bool there;
    int64_t id, title_rank, last_input, last_output;
    char last_message[128];
    size_t last_message_size;
} history_line;

static cx_status read_line(void *arg, const cx_cell *cells, cx_err *err)
{
    history_line *line = arg;
    (void)err;
    line->there = true;
    line->id = cells[0].i;
    line->title_rank = cells[1].i;
    line->last_input = cells[2].i;
    line->last_output = cells[3].i;
    line->last_message_size = 0;
    if (!cells[4].null && cells[4].text.size <= sizeof line->last_message) {
        memcpy(line->last_message, cells[4].text.data, cells[4].text.size);
        line->last_message_size = cells[4].text.size;
    }
    return CX_SUCCESS;
}

static cx_status find_line(cx_index *index, cx_str name, history_line *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_INT, CX_CELL_INT, CX_CELL_INT, CX_CELL_INT,
                                         CX_CELL_TEXT};
    cx_sql_value value = cx_sql_text(name);
    cx_question question = {"SELECT id, title_rank, last_input, last_output, last_message"
                            " FROM cirislens.cortex_histories WHERE name = $1",
                            &value,
                            1,
                            types,
                            CX_COUNT_OF(types),
                            read_line,
                            out};
    *out = (history_line){0};
    return cx_index_ask_as_is(index, &question, err);
}

static cx_status add_line(cx_index *index, cx_str name, cx_str source, history_line *out,
                          cx_err *err)
{
    cx_sql_value values[] = {cx_sql_text(name), cx_sql_text(source)};
    CX_TRY(cx_index_do(
        index,
        "INSERT INTO cirislens.cortex_histories (id, name, source, title_rank, steps, calls,"
        " errors, tokens_input, tokens_output, cost_usd, lines, last_input, last_output)"
        " VALUES ((SELECT coalesce(max(id), 0) + 1 FROM cirislens.cortex_histories), $1, $2, 0, 0,"
        " 0, 0, 0, 0, 0, 0, 0, 0)",
        values, CX_COUNT_OF(values), err));
    return find_line(index, name, out, err);
}

static cx_status get_line(cx_index *index, cx_str name, cx_str source, history_line *out,
                          cx_err *err)
{
    CX_TRY(find_line(index, name, out, err));
    return out->there ? CX_SUCCESS : add_line(index, name, source, out, err);
}

/* At most `size` bytes, cut between characters. */
static cx_str cut_text(cx_str text, size_t size)
{
    if (text.size <= size)
        return text;
    while (size > 0 && ((unsigned char)text.data[size] & 0xC0) == 0x80)
        size--;
    return cx_str_from(text.data, size);
}

/* Tokens that this row adds: an answer that is repeated counts once, with its last usage. */
static int64_t added(int64_t value, int64_t last, bool repeats)
{
    return repeats ? value - last : value;
}

static cx_status insert_step(cx_index *index, const cx_step_row *row, int64_t history,
                             int64_t input, int64_t output, bool *out_new, cx_err *err)
{
    const cx_sql_value values[] = {
        cx_sql_int(history),
        cx_sql_text(row->ref),
        cx_sql_time(row->at_ns),
        cx_sql_text(row->kind),
        cx_sql_text(row->agent),
        cx_sql_text(row->role),
        cx_sql_text(row->tool),
        cx_sql_bool(row->failed),
        cx_sql_int(input),
        cx_sql_int(output),
        cx_sql_double(row->cost_usd),
        cx_sql_text(cut_text(row->text, CX_STEP_TEXT_MAX)),
        cx_sql_text(row->actor),
        cx_sql_int((int64_t)row->seq),
    };
    int64_t before = 0, after = 0;
    CX_TRY(cx_index_number(index, "SELECT max(id) FROM cirislens.cortex_steps", NULL, 0, 0, &before,
                           err));
    CX_TRY(cx_index_do(index,
                       "INSERT INTO cirislens.cortex_steps (id, history_id, ref, happened_at, kind,"
                       " agent, role, tool, failed, tokens_input, tokens_output, cost_usd, text,"
                       " ledger_actor, ledger_seq)"
                       " VALUES ((SELECT coalesce(max(id), 0) + 1 FROM cirislens.cortex_steps),"
                       " $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
                       " ON CONFLICT (history_id, ref) DO NOTHING",
                       values, CX_COUNT_OF(values), err));
    CX_TRY(cx_index_number(index, "SELECT max(id) FROM cirislens.cortex_steps", NULL, 0, 0, &after,
                           err));
    *out_new = after > before;
    return CX_SUCCESS;
}

static cx_status count_step(cx_index *index, const cx_step_row *row, const history_line *line,
                            int64_t input, int64_t output, cx_err *err)
{
    bool titled = row->title_rank > line->title_rank;
    bool speaks = cx_str_is(row->kind, "message") || cx_str_is(row->kind, "decision") ||
                  cx_str_is(row->kind, "tool_call");
    cx_str none = {NULL, 0};
    cx_str agent = speaks && !cx_str_is(row->role, "user") && !cx_str_is(row->role, "system")
                       ? row->agent
                       : none;
    bool has_message = row->message_id.size != 0 && row->message_id.size < 128;
    int64_t last_ns = row->end_ns != CX_TIME_NONE ? row->end_ns : row->at_ns;
    const cx_sql_value values[] = {
        cx_sql_int(line->id),
        cx_sql_time(row->at_ns),
        cx_sql_time(last_ns),
        cx_sql_int(cx_str_is(row->kind, "tool_call")),
        cx_sql_int(row->failed),
        cx_sql_int(input),
        cx_sql_int(output),
        cx_sql_double(row->cost_usd),
        cx_sql_text(titled ? cut_text(row->title, CX_HISTORY_TITLE_MAX) : none),
        cx_sql_int(titled ? row->title_rank : line->title_rank),
        cx_sql_int((int64_t)row->seq),
        cx_sql_text(agent.size == 0 ? none : agent),
        cx_sql_text(row->model.size == 0 ? none : row->model),
        cx_sql_text(has_message ? row->message_id : none),
        cx_sql_int(row->tokens_input),
        cx_sql_int(row->tokens_output),
        cx_sql_text(row->source),
    };
    return cx_index_do(
        index,
        "UPDATE cirislens.cortex_histories SET steps = steps + 1, calls = calls + $4,"
        " errors = errors + $5, tokens_input = tokens_input + $6,"
        " tokens_output = tokens_output + $7, cost_usd = cost_usd + $8,"
        " first_at = CASE WHEN first_at IS NULL OR first_at > $2 THEN coalesce($2, first_at)"
        " ELSE first_at END,"
        " last_at = CASE WHEN last_at IS NULL OR last_at < $3 THEN coalesce($3, last_at)"
        " ELSE last_at END,"
        " title_seq = CASE WHEN $10 > title_rank THEN $11 ELSE title_seq END,"
        " title = coalesce($9, title), title_rank = $10,"
        " agent = coalesce(agent, $12), model = coalesce($13, model),"
        " last_message = $14, last_input = $15, last_output = $16,"
        /* An agent that signs traces may take steps, too: then its history is listed. */
        " source = CASE WHEN source = '" CX_SOURCE_TRACES "' THEN $17 ELSE source END"
        " WHERE id = $1",
        values, CX_COUNT_OF(values), err);
}

cx_status cx_index_put_step(cx_index *index, const cx_step_row *row, cx_err *err)
{
    history_line line;
    bool is_new = false;
    CX_ASSERT(index->in_transaction);
    CX_TRY(get_line(index, row->history, row->source, &line, err));
    bool repeats =
        row->message_id.size != 0 &&
        cx_str_eq(row->message_id, cx_str_from(line.last_message, line.last_message_size));
    int64_t input = added(row->tokens_input, line.last_input, repeats);
    int64_t output = added(row->tokens_output, line.last_output, repeats);
    CX_TRY(insert_step(index, row, line.id, input, output, &is_new, err));
    return is_new ? count_step(index, row, &line, input, output, err) : CX_SUCCESS;
}

/* --- growing files ---------------------------------------------------------------------------- */

typedef struct progress_reader {
    cx_arena *arena;
    cx_history_progress *out;
} progress_reader;

static cx_status read_progress(void *arg, const cx_cell *cells, cx_err *err)
{
    const progress_reader *reader = arg;
    reader->out->lines = (uint64_t)cells[0].i;
    if (cells[1].null || cells[1].text.size == 0)
        return CX_SUCCESS;
    reader->out->pending = cx_arena_copy_str(reader->arena, cells[1].text);
    return reader->out->pending.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_index_history_progress(cx_index *index, cx_str history, cx_arena *arena,
                                    cx_history_progress *out, cx_err *err)
{
    static const cx_cell_type types[] = {CX_CELL_INT, CX_CELL_TEXT};
    progress_reader reader = {arena, out};
    cx_sql_value value = cx_sql_text(history);
    cx_question question = {"SELECT lines, pending FROM cirislens.cortex_histories WHERE name = $1",
                            &value,
                            1,
                            types,
                            CX_COUNT_OF(types),
                            read_progress,
                            &reader};
    *out = (cx_history_progress){0};
    return cx_index_ask_as_is(index, &question, err);
}

cx_status cx_index_set_history_progress(cx_index *index, cx_str history, cx_str source,
                                        const cx_history_progress *progress, cx_err *err)
{
    history_line line;
    CX_ASSERT(index->in_transaction);
    CX_TRY(get_line(index, history, source, &line, err));
    const cx_sql_value values[] = {cx_sql_int(line.id), cx_sql_int((int64_t)progress->lines),
                                   cx_sql_text(progress->pending), cx_sql_text(progress->path),
                                   cx_sql_text(source)};
    return cx_index_do(index,
                       "UPDATE cirislens.cortex_histories SET lines = $2, pending = $3,"
                       " path = coalesce($4, path), source = $5 WHERE id = $1",
                       values, CX_COUNT_OF(values), err);
}

/* --- what goes -------------------------------------------------------------------------------- */

/* Sums of what is left; a title that came from what went is gone. */
#define COUNT_AGAIN(which)                                                                     \
    "UPDATE cirislens.cortex_histories SET"                                                    \
    " steps = (SELECT count(*) FROM cirislens.cortex_steps s WHERE s.history_id ="             \
    " cortex_histories.id),"                                                                   \
    " calls = (SELECT count(*) FROM cirislens.cortex_steps s WHERE s.history_id ="             \
    " cortex_histories.id AND s.kind = 'tool_call'),"                                          \
    " errors = (SELECT count(*) FROM cirislens.cortex_steps s WHERE s.history_id ="            \
    " cortex_histories.id AND s.failed = TRUE),"                                               \
    " tokens_input = (SELECT coalesce(sum(s.tokens_input), 0) FROM cirislens.cortex_steps s"   \
    " WHERE s.history_id = cortex_histories.id),"                                              \
    " tokens_output = (SELECT coalesce(sum(s.tokens_output), 0) FROM cirislens.cortex_steps s" \
    " WHERE s.history_id = cortex_histories.id),"                                              \
    " cost_usd = (SELECT coalesce(sum(s.cost_usd), 0) FROM cirislens.cortex_steps s"           \
    " WHERE s.history_id = cortex_histories.id),"                                              \
    " title = CASE WHEN title_seq = $2 THEN NULL ELSE title END,"                              \
    " title_rank = CASE WHEN title_seq = $2 THEN 0 ELSE title_rank END, pending = NULL"        \
    " WHERE " which

/* A row of what was erased stays, without anything that it said. */
#define BLANK_STEPS                                                               \
    "UPDATE cirislens.cortex_steps SET text = '', tool = NULL, tokens_input = 0," \
    " tokens_output = 0, cost_usd = 0, failed = FALSE, kind = 'erased' WHERE "

cx_status cx_index_forget_steps(cx_index *index, cx_str actor, uint64_t seq, cx_err *err)
{
    int64_t count = 0;
    CX_ASSERT(index->in_transaction);
    const cx_sql_value values[] = {cx_sql_text(actor), cx_sql_int((int64_t)seq)};
    CX_TRY(cx_index_number(index,
                           "SELECT count(*) FROM cirislens.cortex_steps WHERE ledger_actor = $1"
                           " AND ledger_seq = $2",
                           values, CX_COUNT_OF(values), 0, &count, err));
    /* Words of an older version of a document are in no row, but may be in the full-text index. */
    index->must_scrub |= count != 0 || cx_str_is(actor, "sessions");
    if (count == 0)
        return CX_SUCCESS;
    /* Their texts go first, so that the histories are still known by their rows. */
    CX_TRY(cx_index_do(index, BLANK_STEPS "ledger_actor = $1 AND ledger_seq = $2", values,
                       CX_COUNT_OF(values), err));
    return cx_index_do(index,
                       COUNT_AGAIN("id IN (SELECT history_id FROM cirislens.cortex_steps WHERE"
                                   " ledger_actor = $1 AND ledger_seq = $2)"),
                       values, CX_COUNT_OF(values), err);
}

cx_status cx_index_forget_refs(cx_index *index, cx_str history, cx_str beginning, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    const cx_sql_value values[] = {cx_sql_text(history), cx_sql_text(beginning),
                                   cx_sql_int((int64_t)beginning.size)};
    const cx_sql_value again[] = {cx_sql_text(history), cx_sql_int(-1)};
    CX_TRY(cx_index_do(index,
                       BLANK_STEPS "history_id IN (SELECT id FROM cirislens.cortex_histories"
                                   " WHERE name = $1) AND substr(ref, 1, CAST($3 AS integer)) = $2",
                       values, CX_COUNT_OF(values), err));
    index->must_scrub = true;
    return cx_index_do(index, COUNT_AGAIN("name = $1"), again, CX_COUNT_OF(again), err);
}

cx_status cx_index_renew_history(cx_index *index, cx_str before, cx_str name, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    const cx_sql_value values[] = {cx_sql_text(before), cx_sql_text(name)};
    CX_TRY(cx_index_do(index,
                       "DELETE FROM cirislens.cortex_steps WHERE history_id IN"
                       " (SELECT id FROM cirislens.cortex_histories WHERE name = $1)",
                       values, 1, err));
    return cx_index_do(index,
                       "UPDATE cirislens.cortex_histories SET name = $2, steps = 0, calls = 0,"
                       " errors = 0, tokens_input = 0, tokens_output = 0, cost_usd = 0,"
                       " title = NULL, title_rank = 0, title_seq = NULL, lines = 0, pending = NULL,"
                       " first_at = NULL, last_at = NULL, agent = NULL, model = NULL,"
                       " last_message = NULL, last_input = 0, last_output = 0 WHERE name = $1",
                       values, CX_COUNT_OF(values), err);
}

cx_status cx_index_drop_step(cx_index *index, cx_str history, cx_str ref, cx_err *err)
{
    CX_ASSERT(index->in_transaction);
    const cx_sql_value values[] = {cx_sql_text(history), cx_sql_text(ref)};
    const cx_sql_value again[] = {cx_sql_text(history), cx_sql_int(-1)};
    CX_TRY(cx_index_do(index,
                       "DELETE FROM cirislens.cortex_steps WHERE history_id IN"
                       " (SELECT id FROM cirislens.cortex_histories WHERE name = $1)"
                       " AND ref = $2",
                       values, CX_COUNT_OF(values), err));
    return cx_index_do(index, COUNT_AGAIN("name = $1"), again, CX_COUNT_OF(again), err);
}

cx_status cx_index_retain_steps(cx_index *index, int64_t before_ns, cx_err *err)
{
    const cx_sql_value before = cx_sql_time(before_ns);
    /* A memory holds until it is ended or erased, however old it is. */
    CX_TRY(cx_index_do(index,
                       "DELETE FROM cirislens.cortex_steps WHERE happened_at < $1 AND history_id"
                       " NOT IN (SELECT id FROM cirislens.cortex_histories WHERE source ="
                       " '" CX_SOURCE_MEMORY "')",
                       &before, 1, err));
    return cx_index_do(index,
                       "DELETE FROM cirislens.cortex_histories WHERE last_at < $1 AND source <>"
                       " '" CX_SOURCE_MEMORY "'",
                       &before, 1, err);
}
