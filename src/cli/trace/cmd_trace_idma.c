/*
 * cmd_trace_idma.c - `cortex trace idma`: the number of independent sources of decisions,
 * claimed and recomputed (trace.md §6).
 */
#include "cli/trace/trace.h"
#include "analysis/api.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 1000

/* --- rows ------------------------------------------------------------------------------------- */

static const cx_cell *find_cell(const cx_cell *cells, const char *column)
{
    int at = cx_trace_column(column);
    CX_ASSERT(at >= 0);
    return &cells[at];
}

static void write_cell_json(cx_json_list *list, const char *name, const cx_cell *cells,
                            const char *column)
{
    const cx_cell *from = find_cell(cells, column);
    int at = cx_trace_column(column);
    cx_json value = cx_json_make_null();
    if (!from->null && cx_trace_columns[at].type == CX_CELL_FLOAT)
        value = cx_json_make_double(list->arena, from->f);
    else if (!from->null && cx_trace_columns[at].type == CX_CELL_BOOL)
        value = cx_json_make_bool(from->b);
    else if (!from->null)
        value = cx_json_make_str(from->text);
    cx_json_list_put(list, cx_str_z(name), value);
}

/* Whether the agent's own flag matches its k_eff. */
static const char *flag_check(const cx_cell *cells)
{
    const cx_cell *k = find_cell(cells, "idma_k_eff"),
                  *flag = find_cell(cells, "idma_fragility_flag");
    cx_idma_input input = {.has_k_eff = !k->null, .has_flag = !flag->null};
    cx_idma_result result;
    if (input.has_k_eff)
        input.k_eff = k->f;
    if (input.has_flag)
        input.fragility_flag = flag->b;
    cx_idma_judge(&input, &result);
    return cx_idma_flag_name(result.flag);
}

static cx_status write_time_json(cx_json_list *list, const cx_cell *cells, cx_err *err)
{
    char text[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(find_cell(cells, "timestamp")->i, text);
    cx_str copy = cx_arena_copy_str(list->arena, cx_str_z(text));
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    cx_json_put_str(list, "timestamp", copy);
    return CX_SUCCESS;
}

static cx_status row_json(const cx_cell *cells, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    write_cell_json(&list, "trace_id", cells, "trace_id");
    CX_TRY(write_time_json(&list, cells, err));
    write_cell_json(&list, "k_eff", cells, "idma_k_eff");
    write_cell_json(&list, "correlation_risk", cells, "idma_correlation_risk");
    write_cell_json(&list, "computed", cells, "idma_k_eff_computed");
    write_cell_json(&list, "check", cells, "idma_check");
    write_cell_json(&list, "phase", cells, "idma_phase");
    write_cell_json(&list, "phase_computed", cells, "idma_phase_computed");
    write_cell_json(&list, "fragility_flag", cells, "idma_fragility_flag");
    cx_json_put_str(&list, "flag", cx_str_z(flag_check(cells)));
    return cx_json_list_end_object(&list, out, err);
}

/* --- telling ---------------------------------------------------------------------------------- */

static void print_row(cx_buf *out, const cx_json *row)
{
    cx_cli_add_column(out, row, "timestamp", 32);
    cx_cli_add_score(out, CX_JSON_GET(row, "k_eff"), 8);
    cx_cli_add_score(out, CX_JSON_GET(row, "computed"), 10);
    cx_cli_add_column(out, row, "check", 20);
    cx_cli_add_column(out, row, "phase_computed", 10);
    cx_cli_add_column(out, row, "flag", 20);
    cx_cli_add_member(out, row, "trace_id");
    cx_buf_add_byte(out, '\n');
}

static void print_idma(cx_buf *out, const cx_json *value)
{
    const cx_json *rows = CX_JSON_GET(value, "traces");
    if (rows == NULL || rows->count == 0) {
        cx_buf_add_z(out, "no verified traces of ");
        cx_cli_add_member(out, value, "agent");
        cx_buf_add_byte(out, '\n');
        return;
    }
    cx_buf_printf(out, "%-32s%-8s%-10s%-20s%-10s%-20s%s\n", "time", "k_eff", "computed", "check",
                  "phase", "fragility flag", "trace");
    for (uint32_t i = 0; i < rows->count; i++)
        print_row(out, &rows->items[i]);
}

static cx_status finish_idma(cx_arena *arena, cx_str agent, cx_json_list *rows, cx_buf *out,
                             cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json_put_maybe(&list, "agent", agent);
    cx_json_put_uint(&list, "count", rows->count);
    cx_json_put_array(&list, "traces", rows);
    return cx_cli_end_json(&list, out, err);
}

/* --- recorded ones ---------------------------------------------------------------------------- */

static cx_status list_rows(cx_cli_traces *t, cx_buf *out, cx_err *err)
{
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    const cx_found_row *rows;
    size_t count = 0;
    bool more = false;
    cx_arena *arena = t->l->arena;
    query.agent = cx_str_z(t->l->args->operands[0]);
    query.level = CX_LEVEL_FULL;
    query.limit = (uint32_t)cx_cli_number(t->l->args, "limit", LIMIT_DEFAULT);
    CX_TRY(cx_index_find(t->index, &query, arena, &rows, &count, &more, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++) {
        cx_json row;
        CX_TRY(row_json(rows[i].cells, arena, &row, err));
        cx_json_list_add(&list, row);
    }
    if (more && !t->l->json)
        cx_cli_complain("note: there are more than %lu; see --limit", (unsigned long)query.limit);
    return finish_idma(arena, query.agent, &list, out, err);
}

static cx_status idma_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_buf answer;
    (void)state;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = list_rows(t, &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    return cx_cli_print_answer(t->l, &answer, print_idma, err);
}

/* --- of a file -------------------------------------------------------------------------------- */

static cx_status check_trace_file(cx_cli *cli, const cx_cli_args *args, const char *path,
                                  cx_buf *out, cx_err *err)
{
    cx_bytes bytes;
    cx_trace trace;
    cx_trace_problem problem;
    cx_trace_row row;
    cx_json item;
    CX_TRY(cx_cli_read_file(cli, path, &bytes, err));
    CX_TRY(cx_trace_read_stored(bytes, &cli->arena, &trace, &problem, err));
    if (problem.reason != CX_REASON_NONE)
        return cx_fail_at(err, CX_E_FORMAT, cx_trace_reason_name(problem.reason), CX_NO_OFFSET,
                          "%s is not a trace: %.*s", path, (int)problem.detail.size,
                          problem.detail.data == NULL ? "" : problem.detail.data);
    const cx_trace_facts facts = {.level =
                                      cx_trace_level_of(&trace, CX_LEVEL_ABSENT, CX_LEVEL_ABSENT),
                                  .consent_ns = CX_TIME_NONE,
                                  .form = CX_FORM_NONE,
                                  .established = cx_cli_has(args, "established"),
                                  .actor = CX_STR("file"),
                                  .key_id = trace.key_id.data == NULL ? CX_STR("") : trace.key_id};
    CX_TRY(cx_trace_row_make(&trace, &facts, &cli->arena, &row, err));
    CX_TRY(row_json(row.cells, &cli->arena, &item, err));
    cx_json_list list = cx_json_list_begin(&cli->arena);
    cx_json_list_add(&list, item);
    return finish_idma(&cli->arena, trace.agent_id_hash, &list, out, err);
}

static cx_status answer_trace_file(cx_cli *cli, const cx_cli_args *args, const char *path,
                                   cx_buf *out, cx_err *err)
{
    cx_json value;
    cx_buf answer;
    cx_buf_init(&answer, cli->alloc);
    cx_status status = check_trace_file(cli, args, path, &answer, err);
    if (!cx_failed(status) && cx_cli_has(args, "json")) {
        cx_buf_add_str(out, cx_buf_str(&answer));
    } else if (!cx_failed(status)) {
        status = cx_json_parse_text(cx_buf_str(&answer), &cli->arena, &value, err);
        if (!cx_failed(status))
            print_idma(out, &value);
    }
    cx_buf_done(&answer);
    return status;
}

static int idma_file(cx_cli *cli, const cx_cli_args *args, const char *path)
{
    cx_err err = {0};
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    int code = cx_failed(answer_trace_file(cli, args, path, &out, &err))
                   ? cx_cli_ledger_fail(cli, args, &err)
                   : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

/* --- the command ------------------------------------------------------------------------------ */

static int run_trace_idma(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .work = idma_job};
    const char *file = cx_cli_value(args, "file");
    uint64_t limit = cx_cli_number(args, "limit", LIMIT_DEFAULT);
    if ((file == NULL) == (args->operand_count == 0))
        return cx_cli_misuse(args, "expected either AGENT or --file TRACE");
    if (limit < 1 || limit > LIMIT_MAX)
        return cx_cli_misuse(args, "option --limit: expected 1 to 1000");
    return file != NULL ? idma_file(cli, args, file) : cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_operand operands[] = {{"AGENT", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N traces, newest first; default 100."),
    CX_CLI_OPT("file", 0, CX_CLI_FILE, "TRACE",
               "Check the trace in this file in place of recorded ones."),
    CX_CLI_OPT_FLAG("established", 0,
                    "With --file: the agent had a k_eff of 2.0 or 30 verified traces before."),
    CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_idma = {
    .name = "trace idma",
    .purpose = "recompute how many independent sources decisions had",
    .about =
        "Recomputes k_eff = k / (1 + rho (k - 1)) from the sources a verified trace of AGENT lists "
        "and its correlation risk, and compares it with the k_eff it claims: consistent, mismatch, "
        "input_out_of_range, or indeterminate where an input is missing (as at level generic). The "
        "phase (healthy, fragile, emerging, nascent) follows from the claimed k_eff and the "
        "agent's earlier phases. These are findings, never reasons to reject a trace.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 answered\n" CX_CLI_EXITS_INDEX,
    .example = "cortex trace idma 976dbe5047633d39 --limit 20",
    .run = run_trace_idma,
};
