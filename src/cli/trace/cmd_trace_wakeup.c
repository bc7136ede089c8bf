/*
 * cmd_trace_wakeup.c - `cortex trace wakeup`: are the five steps of each wakeup there? (trace.md
 * §8)
 */
#include "cli/trace/trace.h"

static void print_wakeup(cx_buf *out, const cx_json *wakeup)
{
    const cx_json *types = CX_JSON_GET(wakeup, "types");
    const cx_json *complete = CX_JSON_GET(wakeup, "complete");
    cx_buf_add_z(out, "wakeup of ");
    cx_cli_add_member(out, wakeup, "began_at");
    cx_buf_printf(out, ": %s\n",
                  complete != NULL && complete->type == CX_JSON_TRUE ? "complete" : "incomplete");
    for (uint32_t i = 0; types != NULL && i < types->count; i++) {
        const cx_json *type = &types->members[i].value;
        cx_buf_add_z(out, "  ");
        cx_cli_add_column(out, type, "state", 11);
        cx_shown_add(out, cx_json_text(&types->members[i].name));
        if (CX_JSON_GET_STR(type, "trace_id").data != NULL) {
            cx_buf_add_z(out, "  ");
            cx_cli_add_member(out, type, "trace_id");
        }
        cx_buf_add_byte(out, '\n');
    }
}

static void print_wakeups(cx_buf *out, const cx_json *value)
{
    const cx_json *wakeups = CX_JSON_GET(value, "wakeups");
    if (wakeups == NULL || wakeups->count == 0) {
        cx_buf_add_z(out, "no trace of a wakeup of ");
        cx_cli_add_member(out, value, "agent");
        cx_buf_add_byte(out, '\n');
        return;
    }
    for (uint32_t i = 0; i < wakeups->count; i++)
        print_wakeup(out, &wakeups->items[i]);
}

static cx_status wakeup_job(cx_cli_traces *t, void *state, cx_err *err)
{
    bool complete = false;
    cx_buf answer;
    (void)state;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_wakeup(
        t->recorder, t->index, cx_str_z(t->l->args->operands[0]), &answer, &complete, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    t->l->exit_code = complete ? CX_EXIT_HOLDS : CX_EXIT_BROKEN;
    return cx_cli_print_answer(t->l, &answer, print_wakeups, err);
}

static int run_trace_wakeup(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .work = wakeup_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_operand operands[] = {{"AGENT", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option options[] = {CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_wakeup = {
    .name = "trace wakeup",
    .purpose = "check an agent's wakeup sequence",
    .about =
        "Shows, for each wakeup of AGENT, which of VERIFY_IDENTITY, VALIDATE_INTEGRITY, "
        "EVALUATE_RESILIENCE, ACCEPT_INCOMPLETENESS and EXPRESS_GRATITUDE are present, missing, "
        "unverified, or failed. The type of a trace comes from its task_id, never from text.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 every wakeup is complete\n"
             "1 one is not, or there is none\n" CX_CLI_EXITS_INDEX,
    .example = "cortex trace wakeup 976dbe5047633d39",
    .run = run_trace_wakeup,
};
