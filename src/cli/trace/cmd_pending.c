/*
 * cmd_pending.c - `cortex key pending`, `approve`, `reject`: keys that registered themselves with a
 * server that takes signed traces without a token (trace.md §4.6).
 */
#include "cli/trace/trace.h"

/* --- list ------------------------------------------------------------------------------------- */

static void print_pending(cx_buf *out, const cx_json *value)
{
    const cx_json *keys = CX_JSON_GET(value, "keys");
    if (keys == NULL || keys->count == 0)
        cx_buf_add_z(out, "no key waits for a decision\n");
    for (uint32_t i = 0; keys != NULL && i < keys->count; i++) {
        const cx_json *key = &keys->items[i];
        cx_cli_add_member(out, key, "key_id");
        cx_buf_add_byte(out, '\n');
        cx_cli_add_line(out, "public key", key, "public_key");
        cx_cli_add_line(out, "from", key, "address");
        cx_cli_add_line(out, "at", key, "registered_at");
        cx_cli_add_line(out, "description", key, "description");
        cx_buf_add_z(out, "  waiting      ");
        cx_cli_add_member(out, key, "events");
        cx_buf_add_z(out, " events, ");
        cx_cli_add_member(out, key, "bytes");
        cx_buf_add_z(out, " bytes\n");
    }
}

static cx_status list_pending_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_buf answer;
    (void)state;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status = cx_recorder_answer_pending(t->recorder, &answer, err);
    if (cx_failed(status)) {
        cx_buf_done(&answer);
        return status;
    }
    return cx_cli_print_answer(t->l, &answer, print_pending, err);
}

static int run_key_pending(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {.access = CX_CLI_READ, .work = list_pending_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_option pending_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                                CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_key_pending = {
    .name = "key pending",
    .purpose = "list keys that registered themselves and wait for a decision",
    .about = "Lists the keys that agents registered with 'cortex serve --open-signed', and how "
             "much of what they signed waits. Compare the public key with the one that the agent "
             "itself shows: anybody can register a key under any id. Then 'cortex key approve' or "
             "'cortex key reject'.",
    .options = pending_options,
    .option_count = CX_COUNT_OF(pending_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex key pending",
    .run = run_key_pending,
};

/* --- decide ----------------------------------------------------------------------------------- */

static cx_status print_decided(cx_cli_traces *t, const char *decision, const cx_key_decided *sums,
                               cx_err *err)
{
    cx_cli_ledger *l = t->l;
    cx_str id = cx_str_z(l->args->operands[0]);
    if (!l->json) {
        cx_buf_printf(&l->out, "%s ", decision);
        cx_shown_add(&l->out, id);
        cx_buf_printf(&l->out, ": %llu events waited", (unsigned long long)sums->events);
        if (sums->events != 0)
            cx_buf_printf(&l->out, ", %llu recorded, %llu %s", (unsigned long long)sums->accepted,
                          (unsigned long long)sums->rejected,
                          decision[0] == 'a' ? "rejected" : "discarded");
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "key_id", id);
    cx_json_put_str(&json, "status", cx_str_z(decision));
    cx_json_list_put(&json, CX_STR("events"), cx_json_make_uint(l->arena, sums->events));
    cx_json_list_put(&json, CX_STR("accepted"), cx_json_make_uint(l->arena, sums->accepted));
    cx_json_list_put(&json, CX_STR("rejected"), cx_json_make_uint(l->arena, sums->rejected));
    return cx_cli_end_json(&json, &l->out, err);
}

static cx_status approve_key_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_approval_of_key approval = {.key_id = cx_str_z(t->l->args->operands[0]), .by = t->l->actor};
    cx_key_decided sums;
    (void)state;
    CX_TRY(cx_cli_all_values(t->l->cli, t->l->args, "agent", &approval.agents,
                             &approval.agent_count, err));
    CX_TRY(cx_recorder_key_approve(t->recorder, &approval, &sums, err));
    return print_decided(t, "approved", &sums, err);
}

static int run_key_approve(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_WRITE, .feeds_index = true, .work = approve_key_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_operand decide_operands[] = {{"ID", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option approve_options[] = {
    CX_CLI_OPT_MANY("agent", 0, CX_CLI_TEXT, "HASH",
                    "The agent_id_hash it may sign for; may be repeated; default any agent."),
    CX_CLI_OPTION_BY, CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_key_approve = {
    .name = "key approve",
    .purpose = "trust a key that registered itself, and record what it signed",
    .about = "Adds the key to the trust store, as 'cortex key add' does. Then what it signed and "
             "what has waited is judged and recorded, in the order of arrival. After a failure the "
             "command can be repeated: nothing is recorded twice, nothing is lost.",
    .operands = decide_operands,
    .operand_count = CX_COUNT_OF(decide_operands),
    .options = approve_options,
    .option_count = CX_COUNT_OF(approve_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex key approve agent-976dbe504763",
    .run = run_key_approve,
};

static cx_status prepare_reject(cx_cli_ledger *l, void *state, cx_err *err)
{
    const char *reason = cx_cli_value(l->args, "reason");
    (void)state;
    if (reason == NULL || reason[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "expected --reason TEXT: the reason is recorded permanently");
    return CX_SUCCESS;
}

static cx_status reject_key_job(cx_cli_traces *t, void *state, cx_err *err)
{
    cx_key_decided sums;
    (void)state;
    CX_TRY(cx_recorder_key_reject(t->recorder, cx_str_z(t->l->args->operands[0]), t->l->actor,
                                  cx_str_z(cx_cli_value(t->l->args, "reason")), &sums, err));
    return print_decided(t, "rejected", &sums, err);
}

static int run_key_reject(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_WRITE, .prepare = prepare_reject, .work = reject_key_job};
    return cx_cli_run_traces(cli, args, &job, NULL);
}

static const cx_cli_option reject_options[] = {
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; needed, and recorded for good."),
    CX_CLI_OPTION_BY, CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_key_reject = {
    .name = "key reject",
    .purpose = "reject a key that registered itself, and discard what it signed",
    .about = "Discards the key and everything that has waited with it. The ledger records the "
             "decision and how much was discarded. The same key cannot register itself again; "
             "another key under the same id can, and 'cortex key add' still admits this one.",
    .operands = decide_operands,
    .operand_count = CX_COUNT_OF(decide_operands),
    .options = reject_options,
    .option_count = CX_COUNT_OF(reject_options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex key reject agent-976dbe504763 --reason 'not one of ours'",
    .run = run_key_reject,
};
