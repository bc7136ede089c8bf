/*
 * cmd_consent.c - `cortex consent revoke`: records that the consent to an agent's traces ended.
 */
#include "cli/trace/trace.h"

static cx_status prepare_revoke(cx_cli_ledger *l, void *arg, cx_err *err)
{
    cx_consent_revocation *revocation = arg;
    const char *reason = cx_cli_value(l->args, "reason"), *at = cx_cli_value(l->args, "at");
    if (reason == NULL || reason[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "expected --reason TEXT: the reason is recorded permanently");
    *revocation = (cx_consent_revocation){.agent = cx_str_z(l->args->operands[0]),
                                          .by = l->actor,
                                          .reason = cx_str_z(reason),
                                          .revoked_ns = (int64_t)l->cli->io->wall_ns(l->cli->io)};
    return at == NULL
               ? CX_SUCCESS
               : cx_cli_parse_moment(l->cli, "option --at", at, &revocation->revoked_ns, err);
}

static cx_status revoke_job(cx_cli_traces *t, void *arg, cx_err *err)
{
    const cx_consent_revocation *revocation = arg;
    cx_cli_ledger *l = t->l;
    char at[CX_TRACE_TIME_SIZE];
    CX_TRY(cx_recorder_consent_revoke(t->recorder, revocation, err));
    cx_trace_time_write(revocation->revoked_ns, at);
    if (!l->json) {
        cx_buf_add_z(&l->out, "revoked at ");
        cx_buf_add_z(&l->out, at);
        cx_buf_add_z(&l->out, ": senders whose consent is not newer are told so; 'cortex erase "
                              "--agent' destroys what was recorded\n");
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_str(&json, "agent", revocation->agent);
    cx_json_put_str(&json, "revoked_at", cx_str_z(at));
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_consent_revoke(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_WRITE, .prepare = prepare_revoke, .work = revoke_job};
    cx_consent_revocation revocation;
    return cx_cli_run_traces(cli, args, &job, &revocation);
}

static const cx_cli_operand operands[] = {{"AGENT", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("at", 0, CX_CLI_TEXT, "TIME", "When it was revoked; default now."),
    CX_CLI_OPT("reason", 0, CX_CLI_TEXT, "TEXT", "Why; needed, and recorded."),
    CX_CLI_OPTION_BY,
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_consent_revoke = {
    .name = "consent revoke",
    .purpose = "record that consent to an agent's traces was revoked",
    .about = "From now on, the answer to a batch of this agent names each trace with the warning "
             "consent_revoked, unless the batch's consent_timestamp is later than TIME. Traces are "
             "still recorded: a signed trace would be lost otherwise. What was recorded stays "
             "until 'cortex erase --agent AGENT'.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_WRITE,
    .example = "cortex consent revoke 976dbe504763 --reason 'asked for by the operator'",
    .run = run_consent_revoke,
};
