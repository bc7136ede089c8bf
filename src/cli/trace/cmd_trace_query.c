/*
 * cmd_trace_query.c - `cortex trace query` and `cortex trace show`: finding recorded traces, and
 * one of them with its verdict and proof (trace.md §11).
 */
#include <string.h>

#include "cli/trace/trace.h"

/* --- query ------------------------------------------------------------------------------------ */

static cx_str text_option(const cx_cli_args *args, const char *name)
{
    const char *text = cx_cli_value(args, name);
    return text == NULL ? (cx_str){NULL, 0} : cx_str_z(text);
}

static int8_t tri_option(const cx_cli_args *args, const char *name, int8_t fallback)
{
    const char *text = cx_cli_value(args, name);
    if (text == NULL)
        return fallback;
    if (strcmp(text, "any") == 0)
        return CX_NULL;
    return strcmp(text, "true") == 0 ? CX_TRUE : CX_FALSE;
}

static cx_status number_option(cx_cli *cli, const cx_cli_args *args, const char *name, double *out,
                               cx_err *err)
{
    cx_json number;
    const char *text = cx_cli_value(args, name);
    if (text == NULL)
        return CX_SUCCESS;
    if (!cx_failed(cx_json_parse_text(cx_str_z(text), &cli->arena, &number, NULL)) &&
        cx_json_double(&number, out))
        return CX_SUCCESS;
    return cx_fail(err, CX_E_USAGE, "option --%s: found '%s', expected a number such as 0.5", name,
                   text);
}

/* As the index stores it (§10): the part after the last dot, in upper case. */
static cx_status action_option(cx_cli *cli, const cx_cli_args *args, cx_str *out, cx_err *err)
{
    const char *text = cx_cli_value(args, "selected-action");
    if (text == NULL)
        return CX_SUCCESS;
    const char *dot = strrchr(text, '.');
    cx_str copy = cx_arena_printf(&cli->arena, "%s", dot == NULL ? text : dot + 1);
    char *upper = CX_ARENA_ARRAY(&cli->arena, char, copy.size + 1);
    if (copy.data == NULL || upper == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < copy.size; i++)
        upper[i] =
            copy.data[i] >= 'a' && copy.data[i] <= 'z' ? (char)(copy.data[i] - 32) : copy.data[i];
    *out = cx_str_from(upper, copy.size);
    return CX_SUCCESS;
}

static cx_status prepare_query(cx_cli_ledger *l, void *state, cx_err *err)
{
    const cx_cli_args *args = l->args;
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    uint64_t limit = cx_cli_number(args, "limit", query.limit);
    if (limit < 1 || limit > 1000)
        return cx_fail(err, CX_E_USAGE, "option --limit: expected 1 to 1000");
    query.limit = (uint32_t)limit;
    query.trace_type = text_option(args, "trace-type");
    query.agent = text_option(args, "agent");
    query.task_id = text_option(args, "task-id");
    query.thought_id = text_option(args, "thought-id");
    query.cognitive_state = text_option(args, "cognitive-state");
    query.domain = text_option(args, "domain");
    query.text = text_option(args, "text");
    query.level = cx_cli_level_option(args, "level", CX_LEVEL_GENERIC);
    query.verified = tri_option(args, "verified", CX_TRUE);
    query.conscience_passed = tri_option(args, "conscience-passed", CX_NULL);
    query.overridden = tri_option(args, "overridden", CX_NULL);
    query.fragility_flag = tri_option(args, "fragility-flag", CX_NULL);
    CX_TRY(action_option(l->cli, args, &query.selected_action, err));
    CX_TRY(cx_cli_time_option(args, "from", CX_TIME_NONE, &query.from_ns, err));
    CX_TRY(cx_cli_time_option(args, "to", CX_TIME_NONE, &query.to_ns, err));
    CX_TRY(number_option(l->cli, args, "min-plausibility", &query.min_plausibility, err));
    CX_TRY(number_option(l->cli, args, "max-plausibility", &query.max_plausibility, err));
    *(cx_trace_query *)state = query;
    return CX_SUCCESS;
}

static void print_row(cx_buf *out, const cx_json *row)
{
    const cx_json *scores = CX_JSON_GET(row, "scores"),
                  *conscience = CX_JSON_GET(row, "conscience");
    const cx_json *verified = CX_JSON_GET(row, "signature_verified");
    const cx_json *overridden = CX_JSON_GET(conscience, "overridden");
    cx_cli_add_column(out, row, "timestamp", 32);
    cx_cli_add_column(out, row, "agent_id_hash", 18);
    cx_cli_add_column(out, row, "selected_action", 15);
    cx_cli_add_score(out, CX_JSON_GET(scores, "csdma"), 7);
    cx_cli_add_score(out, CX_JSON_GET(scores, "dsdma"), 7);
    cx_cli_add_score(out, CX_JSON_GET(scores, "k_eff"), 8);
    cx_cli_add_member(out, row, "trace_id");
    if (verified == NULL || verified->type != CX_JSON_TRUE)
        cx_buf_add_z(out, "  UNVERIFIED");
    if (overridden != NULL && overridden->type == CX_JSON_TRUE)
        cx_buf_add_z(out, "  overridden");
    cx_buf_add_byte(out, '\n');
}

static void print_query(cx_buf *out, const cx_json *value)
{
    const cx_json *rows = CX_JSON_GET(value, "traces");
    cx_str cursor = CX_JSON_GET_STR(value, "next_cursor");
    if (rows == NULL || rows->count == 0) {
        cx_buf_add_z(out, "no such traces\n");
        return;
    }
    cx_buf_printf(out, "%-32s%-18s%-15s%-7s%-7s%-8s%s\n", "time", "agent", "action", "csdma",
                  "dsdma", "k_eff", "trace");
    for (uint32_t i = 0; i < rows->count; i++)
        print_row(out, &rows->items[i]);
    if (cursor.data != NULL) {
        cx_buf_add_z(out, "there are more: --cursor ");
        cx_shown_add(out, cursor);
        cx_buf_add_byte(out, '\n');
    }
}

static cx_status query_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_trace_query *query = state;
    const char *cursor = cx_cli_value(t->l->args, "cursor");
    cx_buf answer;
    if (cursor != NULL &&
        cx_failed(cx_recorder_cursor_parse(t->recorder, cx_str_z(cursor), query, err)))
        return cx_fail_at(err, CX_E_USAGE, "BadCursor", CX_NO_OFFSET,
                          "option --cursor: found a cursor that is not from this data directory; "
                          "expected `next` of an earlier answer");
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_traces(t->recorder, t->index, query, &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    return cx_cli_print_answer(t->l, &answer, print_query, err);
}

static int run_trace_query(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .prepare = prepare_query, .work = query_job};
    cx_trace_query query;
    return cx_cli_run_traces(cli, args, &job, &query);
}

#define OPTION_BOOLEAN(name, text) CX_CLI_OPT(name, 0, CX_CLI_CHOICE, "true|false", text)

static const cx_cli_option query_options[] = {
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "HASH", "Of this agent_id_hash."),
    CX_CLI_OPT("trace-type", 0, CX_CLI_TEXT, "TYPE", "Of this wakeup type."),
    CX_CLI_OPT("task-id", 0, CX_CLI_TEXT, "ID", "Of this task."),
    CX_CLI_OPT("thought-id", 0, CX_CLI_TEXT, "ID", "Of this thought."),
    CX_CLI_OPT("selected-action", 0, CX_CLI_TEXT, "ACTION", "That chose this action."),
    CX_CLI_OPT("cognitive-state", 0, CX_CLI_TEXT, "STATE", "In this cognitive state."),
    CX_CLI_OPT("domain", 0, CX_CLI_TEXT, "DOMAIN", "Of this domain."),
    CX_CLI_OPT("text", 0, CX_CLI_TEXT, "WORDS", "With all of these words in the action rationale."),
    CX_CLI_OPT("from", 0, CX_CLI_TEXT, "TIME", "At or after this time."),
    CX_CLI_OPT("to", 0, CX_CLI_TEXT, "TIME", "Before this time."),
    CX_CLI_OPT("verified", 0, CX_CLI_CHOICE, "true|false|any",
               "With a verified signature (true, the default), without one, or both."),
    OPTION_BOOLEAN("conscience-passed", "Only traces whose conscience check has this result."),
    OPTION_BOOLEAN("overridden", "Where the conscience overrode the action, or did not."),
    OPTION_BOOLEAN("fragility-flag", "Where the agent called its reasoning fragile, or did not."),
    CX_CLI_OPT("min-plausibility", 0, CX_CLI_TEXT, "NUMBER",
               "With a csdma score of at least that."),
    CX_CLI_OPT("max-plausibility", 0, CX_CLI_TEXT, "NUMBER", "With a csdma score of at most that."),
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "Show no more than this level allows; default generic."),
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N, 1 to 1000; default 100."),
    CX_CLI_OPT("cursor", 0, CX_CLI_TEXT, "CURSOR", "Continue after an earlier answer."),
    CX_CLI_OPTIONS_TRACES,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_query = {
    .name = "trace query",
    .purpose = "search recorded traces",
    .about = "Lists recorded traces, newest first, with their scores. A trace must match all "
             "filters; unverified traces are omitted unless --verified says otherwise. With --json "
             "the answer is that of 'GET /traces'. The same rows can be queried in SQL: table "
             "covenant_traces of the index.",
    .options = query_options,
    .option_count = CX_COUNT_OF(query_options),
    .exits = "0 answered\n" CX_CLI_EXITS_INDEX,
    .example = "cortex trace query --agent 976dbe5047633d39 --fragility-flag true --limit 20",
    .run = run_trace_query,
};

/* --- show ------------------------------------------------------------------------------------- */

static cx_status print_trace(cx_buf *out, const cx_json *value, cx_err *err)
{
    const cx_json *verdict = CX_JSON_GET(value, "verdict"), *entry = CX_JSON_GET(value, "entry");
    const cx_json *conflicts = CX_JSON_GET(value, "conflicts"),
                  *proof = CX_JSON_GET(value, "proof");
    cx_buf_add_z(out, "trace ");
    cx_cli_add_member(out, verdict, "trace_id");
    cx_buf_add_z(out, ": ");
    cx_cli_add_member(out, verdict, "verdict");
    cx_buf_add_byte(out, '\n');
    cx_cli_add_line(out, "reason", verdict, "reason");
    cx_cli_add_line(out, "detail", verdict, "detail");
    cx_cli_add_line(out, "agent", verdict, "agent_id_hash");
    cx_cli_add_line(out, "key", verdict, "key_id");
    cx_cli_add_line(out, "wakeup", verdict, "trace_type");
    cx_cli_add_line(out, "form", verdict, "form");
    cx_cli_add_line(out, "signed", verdict, "signed");
    cx_cli_add_line(out, "shown at", value, "level");
    cx_cli_add_line(out, "recorded by", entry, "actor");
    cx_cli_add_line(out, "entry", entry, "seq");
    cx_cli_add_line(out, "received", entry, "received_at");
    cx_cli_add_line(out, "capture", entry, "capture");
    cx_cli_add_line(out, "content", entry, "content_sha256");
    cx_cli_add_line(out, "journal", proof, "journal_root");
    if (conflicts != NULL && conflicts->count != 0)
        cx_buf_printf(out, "  %-12s %lu other trace(s) came under this id\n", "conflicts",
                      (unsigned long)conflicts->count);
    cx_buf_printf(out, "  %-12s ", "trace");
    CX_TRY(cx_json_write_pretty(out, CX_JSON_GET(value, "trace"), 1, err));
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

static cx_status answer_trace_show(cx_cli_traces *t, const cx_trace_wanted *wanted, cx_buf *answer,
                                   cx_err *err)
{
    cx_json value;
    if (cx_cli_has(t->l->args, "raw"))
        return cx_recorder_raw_trace(t->recorder, t->index, wanted, &t->l->out, err);
    if (t->l->json)
        return cx_recorder_answer_trace(t->recorder, t->index, wanted, &t->l->out, err);
    CX_TRY(cx_recorder_answer_trace(t->recorder, t->index, wanted, answer, err));
    CX_TRY(cx_json_parse_text(cx_buf_str(answer), t->l->arena, &value, err));
    return print_trace(&t->l->out, &value, err);
}

static cx_status trace_show_job(cx_cli_traces *t, void *state, cx_err *err)
{
    const cx_cli_args *args = t->l->args;
    const cx_trace_wanted wanted = {.trace_id = cx_str_z(args->operands[0]),
                                    .agent = text_option(args, "agent"),
                                    .level = cx_cli_level_option(args, "level", CX_LEVEL_FULL)};
    cx_buf answer;
    (void)state;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = answer_trace_show(t, &wanted, &answer, err);
    cx_buf_done(&answer);
    return status;
}

static int run_trace_show(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .work = trace_show_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_operand show_operands[] = {{"TRACE_ID", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option show_options[] = {
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "HASH",
               "Of this agent_id_hash; needed when several agents use the id."),
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "Show no more than this level allows; default the stored level."),
    CX_CLI_OPT_FLAG("raw", 0, "The received bytes, exactly, and nothing else."),
    CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_show = {
    .name = "trace show",
    .purpose = "show a recorded trace with its verdict and proof",
    .about = "Shows the trace, its verdict with the present keys, its place in the ledger with an "
             "inclusion proof, and later traces with the same id. Below the stored level it shows "
             "a redacted view, as 'cortex trace redact' does. --raw prints the received bytes, "
             "which verify anywhere: 'cortex trace show ID --raw | cortex trace verify - --level "
             "LEVEL', with the level that this command shows.",
    .operands = show_operands,
    .operand_count = CX_COUNT_OF(show_operands),
    .options = show_options,
    .option_count = CX_COUNT_OF(show_options),
    .exits = "0 shown\n"
             "1 several agents have such a trace, or its bytes are of a higher "
             "level\n" CX_CLI_EXITS_INDEX,
    .example = "cortex trace show trace-th_std_e8b4cb43-297-20260101042000 --level generic",
    .run = run_trace_show,
};
