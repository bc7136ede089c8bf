/*
 * cmd_search.c - `cortex search` and `cortex histories`: steps by their words, and what is
 * recorded.
 */
#include <string.h>

#include "cli/trace/trace.h"

static cx_str text_option(const cx_cli_args *args, const char *name)
{
    const char *text = cx_cli_value(args, name);
    return text == NULL ? (cx_str){NULL, 0} : cx_str_z(text);
}

/* The words of all operands. */
static cx_status words_of(cx_cli *cli, const cx_cli_args *args, cx_str *out, cx_err *err)
{
    *out = (cx_str){NULL, 0};
    for (size_t i = 0; i < args->operand_count; i++) {
        *out = i == 0 ? cx_str_z(args->operands[0])
                      : cx_arena_printf(&cli->arena, "%s %s", out->data, args->operands[i]);
        if (out->data == NULL)
            return cx_fail_nomem(err);
    }
    return CX_SUCCESS;
}

static cx_status limit_option(const cx_cli_args *args, uint64_t most, uint32_t *out, cx_err *err)
{
    uint64_t limit = cx_cli_number(args, "limit", *out);
    if (limit < 1 || limit > most)
        return cx_fail(err, CX_E_USAGE, "option --limit: expected 1 to %llu",
                       (unsigned long long)most);
    *out = (uint32_t)limit;
    return CX_SUCCESS;
}

/* What was asked for cannot be: words without letters, too many, a cursor of something else. */
static cx_status as_usage(cx_status status, cx_err *err)
{
    bool usage = err->tag != NULL &&
                 (strcmp(err->tag, "NoWords") == 0 || strcmp(err->tag, "TooManyWords") == 0 ||
                  strcmp(err->tag, "BadCursor") == 0);
    if (!cx_failed(status) || !usage)
        return status;
    err->code = CX_E_USAGE;
    status.code = CX_E_USAGE;
    return status;
}

static void print_more(cx_buf *out, const cx_json *value)
{
    cx_str cursor = CX_JSON_GET_STR(value, "next_cursor");
    if (cursor.data == NULL)
        return;
    cx_buf_add_z(out, "there are more: --cursor ");
    cx_shown_add(out, cursor);
    cx_buf_add_byte(out, '\n');
}

static void print_text(cx_buf *out, const cx_json *object, const char *name, size_t limit)
{
    cx_str text = cx_json_get_str(object, cx_str_z(name));
    size_t size = text.size;
    while (size > limit || (size < text.size && ((unsigned char)text.data[size] & 0xC0) == 0x80))
        size--;
    cx_shown_add(out, cx_str_from(text.data, size));
}

/* --- search ----------------------------------------------------------------------------------- */

/* The snippet in one line. */
static void print_snippet(cx_buf *out, const cx_json *hit)
{
    cx_str text = CX_JSON_GET_STR(hit, "snippet");
    const cx_json *before = CX_JSON_GET(hit, "cut_before"), *after = CX_JSON_GET(hit, "cut_after");
    cx_buf_add_z(out, "    ");
    if (before != NULL && before->type == CX_JSON_TRUE)
        cx_buf_add_z(out, "...");
    for (size_t i = 0; i < text.size;) {
        size_t end = i;
        while (end < text.size && text.data[end] != '\n' && text.data[end] != '\r' &&
               text.data[end] != '\t')
            end++;
        cx_shown_add(out, cx_str_from(text.data + i, end - i));
        if (end < text.size)
            cx_buf_add_byte(out, ' ');
        i = end + 1;
    }
    cx_buf_add_z(out, after != NULL && after->type == CX_JSON_TRUE ? "...\n" : "\n");
}

static void print_hits(cx_buf *out, const cx_json *value)
{
    const cx_json *hits = CX_JSON_GET(value, "hits");
    if (hits == NULL || hits->count == 0) {
        cx_buf_add_z(out, "no step and no memory has all of these words\n");
        return;
    }
    for (uint32_t i = 0; i < hits->count; i++) {
        const cx_json *hit = &hits->items[i];
        cx_cli_add_member(out, hit, "at");
        cx_buf_add_z(out, cx_str_is(CX_JSON_GET_STR(hit, "source"), "memory") ? "  " : "  @");
        cx_cli_add_member(out, hit, "history");
        cx_buf_add_byte(out, ' ');
        cx_cli_add_member(out, hit, "ref");
        cx_buf_add_z(out, "  ");
        cx_cli_add_member(out, hit, "agent");
        cx_buf_add_byte(out, ' ');
        cx_cli_add_member(out, hit, "kind");
        if (CX_JSON_GET_STR(hit, "tool").size != 0) {
            cx_buf_add_byte(out, ' ');
            cx_cli_add_member(out, hit, "tool");
        }
        cx_buf_add_byte(out, '\n');
        print_snippet(out, hit);
    }
    print_more(out, value);
}

static cx_status prepare_search(cx_cli_ledger *l, void *state, cx_err *err)
{
    cx_step_query query = {.limit = 20};
    CX_TRY(words_of(l->cli, l->args, &query.words, err));
    CX_TRY(limit_option(l->args, 500, &query.limit, err));
    query.history = text_option(l->args, "in");
    if (query.history.size != 0 && query.history.data[0] == '@')
        query.history = cx_str_from(query.history.data + 1, query.history.size - 1);
    query.kind = text_option(l->args, "kind");
    query.agent = text_option(l->args, "agent");
    query.tool = text_option(l->args, "tool");
    if (cx_cli_has(l->args, "cursor"))
        CX_TRY(as_usage(cx_recorder_step_cursor(text_option(l->args, "cursor"), &query, err), err));
    *(cx_step_query *)state = query;
    return CX_SUCCESS;
}

static cx_status search_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_buf answer;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_search(t->recorder, t->index, state, &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return as_usage(status, err);
    }
    return cx_cli_print_answer(t->l, &answer, print_hits, err);
}

static int run_search(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .prepare = prepare_search, .work = search_job};
    cx_step_query query;
    return cx_cli_run_traces(cli, args, &job, &query);
}

static const cx_cli_operand search_operands[] = {{"WORDS", CX_CLI_TEXT, NULL, false, true}};

static const cx_cli_option search_options[] = {
    CX_CLI_OPT("in", 0, CX_CLI_TEXT, "HISTORY", "Only in this history, as @session/ID."),
    CX_CLI_OPT("kind", 0, CX_CLI_TEXT, "KIND",
               "Only steps of this kind: message, tool_call, tool_result, error, ..."),
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "NAME", "Only steps of this agent."),
    CX_CLI_OPT("tool", 0, CX_CLI_TEXT, "NAME", "Only calls and results of this tool."),
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N, 1 to 500; default 20."),
    CX_CLI_OPT("cursor", 0, CX_CLI_TEXT, "CURSOR", "Continue after an earlier answer."),
    CX_CLI_OPTIONS_TRACES,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_search = {
    .name = "search",
    .purpose = "find words in everything that agents said, did and remember",
    .about = "Finds steps of sessions, OpenTelemetry traces and native histories, components of "
             "signed traces, and memories that have all of the words: in messages, prompts, "
             "reasoning, tool arguments and results, errors. Traces of the level generic hold no "
             "text. The last word may be a beginning; upper and lower case are alike. Newest "
             "first. The second column and the third name the step: 'cortex lattice show @HISTORY "
             "REF'; of a memory the third is its URI: 'cortex memory get URI --actor ACTOR'.",
    .operands = search_operands,
    .operand_count = CX_COUNT_OF(search_operands),
    .options = search_options,
    .option_count = CX_COUNT_OF(search_options),
    .exits = "0 answered\n" CX_CLI_EXITS_INDEX,
    .example = "cortex search refund limit --kind tool_call",
    .run = run_search,
};

/* --- histories -------------------------------------------------------------------------------- */

static void print_history(cx_buf *out, const cx_json *item)
{
    cx_cli_add_column(out, item, "last", 32);
    cx_cli_add_column(out, item, "source", 13);
    cx_cli_add_column(out, item, "steps", 7);
    cx_cli_add_column(out, item, "errors", 8);
    cx_buf_add_byte(out, '@');
    cx_cli_add_member(out, item, "name");
    cx_buf_add_z(out, "  ");
    print_text(out, item, "title", 72);
    cx_buf_add_byte(out, '\n');
}

static void print_histories(cx_buf *out, const cx_json *value)
{
    const cx_json *list = CX_JSON_GET(value, "histories");
    if (list == NULL || list->count == 0) {
        cx_buf_add_z(out, "no histories: 'cortex watch' archives the sessions of coding agents, "
                          "'cortex serve' receives spans and steps\n");
        return;
    }
    cx_buf_printf(out, "%-32s%-13s%-7s%-8s%s\n", "last", "source", "steps", "errors",
                  "history and title");
    for (uint32_t i = 0; i < list->count; i++)
        print_history(out, &list->items[i]);
    print_more(out, value);
}

static cx_status prepare_histories(cx_cli_ledger *l, void *state, cx_err *err)
{
    cx_history_query query = CX_HISTORY_QUERY_INIT;
    query.limit = 50;
    CX_TRY(words_of(l->cli, l->args, &query.words, err));
    CX_TRY(limit_option(l->args, 1000, &query.limit, err));
    query.source = text_option(l->args, "source");
    query.agent = text_option(l->args, "agent");
    if (cx_cli_has(l->args, "cursor"))
        CX_TRY(
            as_usage(cx_recorder_history_cursor(text_option(l->args, "cursor"), &query, err), err));
    *(cx_history_query *)state = query;
    return CX_SUCCESS;
}

static cx_status histories_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_buf answer;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_histories(t->recorder, t->index, state, &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return as_usage(status, err);
    }
    return cx_cli_print_answer(t->l, &answer, print_histories, err);
}

static int run_histories(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {.access = CX_CLI_READ,
                                         .wants_index = true,
                                         .prepare = prepare_histories,
                                         .work = histories_job};
    cx_history_query query;
    return cx_cli_run_traces(cli, args, &job, &query);
}

static const cx_cli_operand histories_operands[] = {{"WORDS", CX_CLI_TEXT, NULL, true, true}};

static const cx_cli_option histories_options[] = {
    CX_CLI_OPT("source", 0, CX_CLI_TEXT, "SOURCE",
               "Only those that came from claude-code, codex, otel, steps, ..."),
    CX_CLI_OPT("agent", 0, CX_CLI_TEXT, "NAME", "Only those of this agent."),
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most N, 1 to 1000; default 50."),
    CX_CLI_OPT("cursor", 0, CX_CLI_TEXT, "CURSOR", "Continue after an earlier answer."),
    CX_CLI_OPTIONS_TRACES,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_histories = {
    .name = "histories",
    .purpose = "list recorded sessions, traces of spans and histories of agents",
    .about = "Lists what is recorded, one line each, newest first, with a title (what was asked, "
             "where that is known). With words, only those that have all of them in a step, or in "
             "their title, agent or path. --json adds times, tokens, cost and model.",
    .operands = histories_operands,
    .operand_count = CX_COUNT_OF(histories_operands),
    .options = histories_options,
    .option_count = CX_COUNT_OF(histories_options),
    .exits = "0 answered\n" CX_CLI_EXITS_INDEX,
    .example = "cortex histories refund",
    .run = run_histories,
};
