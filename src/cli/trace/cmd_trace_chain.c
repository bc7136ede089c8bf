/*
 * cmd_trace_chain.c - `cortex trace chain`: checks an agent's audit chain (trace.md §5).
 */
#include <string.h>

#include "cli/trace/trace.h"
#include "crypto/api.h"

typedef struct chain_state {
    cx_chain_options options;
    cx_digest genesis;
} chain_state;

static cx_status read_options(const cx_cli_args *args, chain_state *s, cx_err *err)
{
    const char *genesis = cx_cli_value(args, "genesis");
    s->options = (cx_chain_options){.profile = cx_cli_profile_option(args, "profile")};
    if (genesis == NULL)
        return CX_SUCCESS;
    s->options.genesis = &s->genesis;
    return cx_cli_parse_digest("option --genesis", genesis, &s->genesis, err);
}

static cx_status write_report(cx_cli *cli, const cx_cli_args *args, cx_str agent,
                              const cx_chain_report *report, cx_buf *out, cx_err *err)
{
    if (cx_cli_has(args, "json"))
        return cx_chain_json(out, agent, report, err);
    (void)cli;
    return cx_chain_text(out, agent, report,
                         cx_cli_colour(&args->cli->out, cx_cli_value(args, "color")), err);
}

/* --- of a file -------------------------------------------------------------------------------- */

static cx_status bad_entry(uint32_t index, const char *what, cx_err *err)
{
    return cx_fail_at(err, CX_E_FORMAT, "BadEntry", CX_NO_OFFSET, "entry %lu of the chain: %s",
                      (unsigned long)index, what);
}

static cx_status read_entry(const cx_json *item, uint32_t index, cx_chain_entry *out, cx_err *err)
{
    const cx_json *success = CX_JSON_GET(item, "success"), *seq = CX_JSON_GET(item, "seq");
    bool naive;
    *out = (cx_chain_entry){.action = CX_JSON_GET_STR(item, "action"),
                            .timestamp = CX_JSON_GET_STR(item, "timestamp"),
                            .trace_id = CX_JSON_GET_STR(item, "trace_id"),
                            .arrival = index};
    if (seq == NULL || !cx_json_int64(seq, &out->seq))
        return bad_entry(index, "expected an integer \"seq\"", err);
    if (out->timestamp.data == NULL ||
        !cx_trace_time_parse(out->timestamp, &out->timestamp_ns, &naive))
        return bad_entry(index, "expected a \"timestamp\"", err);
    if (out->trace_id.data == NULL)
        out->trace_id = CX_STR("");
    out->has_hash = cx_digest_parse(CX_JSON_GET_STR(item, "hash"), &out->hash);
    out->has_success =
        success != NULL && (success->type == CX_JSON_TRUE || success->type == CX_JSON_FALSE);
    out->success = out->has_success && success->type == CX_JSON_TRUE;
    return CX_SUCCESS;
}

/* Other members of the file are used where no option is given. */
static cx_status read_file_options(const cx_json *root, const cx_cli_args *args, chain_state *s,
                                   cx_err *err)
{
    cx_str profile = CX_JSON_GET_STR(root, "profile"), hex = CX_JSON_GET_STR(root, "genesis");
    if (profile.data != NULL && !cx_cli_has(args, "profile") &&
        !cx_chain_profile_parse(profile, &s->options.profile))
        return cx_fail_at(err, CX_E_FORMAT, "BadChain", CX_NO_OFFSET, "an unknown \"profile\"");
    if (hex.data == NULL || cx_cli_has(args, "genesis"))
        return CX_SUCCESS;
    s->options.genesis = &s->genesis;
    return cx_digest_parse(hex, &s->genesis)
               ? CX_SUCCESS
               : cx_fail_at(err, CX_E_FORMAT, "BadChain", CX_NO_OFFSET,
                            "\"genesis\": expected a hash of 64 hex digits");
}

static cx_status check_file(cx_cli *cli, const cx_cli_args *args, const char *path,
                            cx_str *out_agent, cx_chain_report *out, cx_err *err)
{
    cx_bytes text;
    cx_json root;
    chain_state s;
    CX_TRY(read_options(args, &s, err));
    CX_TRY(cx_cli_read_file(cli, path, &text, err));
    CX_TRY(cx_json_parse_text(cx_bytes_str(text), &cli->arena, &root, err));
    const cx_json *list = root.type == CX_JSON_ARRAY
                              ? &root
                              : cx_json_get_typed(&root, CX_STR("entries"), CX_JSON_ARRAY);
    if (list == NULL)
        return cx_fail_at(err, CX_E_FORMAT, "BadChain", CX_NO_OFFSET,
                          "found %s, expected an array of entries, or an object with \"entries\"",
                          cx_json_type_name(&root));
    CX_TRY(read_file_options(&root, args, &s, err));
    cx_chain_entry *entries = CX_ARENA_ARRAY(&cli->arena, cx_chain_entry, (size_t)list->count + 1);
    if (entries == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++)
        CX_TRY(read_entry(&list->items[i], i, &entries[i], err));
    *out_agent = CX_JSON_GET_STR(&root, "agent");
    if (out_agent->data == NULL)
        *out_agent = cx_str_z(path);
    return cx_chain_check(entries, list->count, &s.options, &cli->arena, out, err);
}

static int chain_file(cx_cli *cli, const cx_cli_args *args, const char *path)
{
    cx_err err = {0};
    cx_buf out;
    cx_str agent;
    cx_chain_report report;
    cx_buf_init(&out, cli->alloc);
    cx_status status = check_file(cli, args, path, &agent, &report, &err);
    if (!cx_failed(status))
        status = write_report(cli, args, agent, &report, &out, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &out, cx_cli_verdict_exit(report.verdict));
    cx_buf_done(&out);
    return code;
}

/* --- recorded ones ---------------------------------------------------------------------------- */

static cx_status prepare_chain(cx_cli_ledger *l, void *state, cx_err *err)
{
    return read_options(l->args, state, err);
}

/* For text: checked again under the profile that the answer names. */
static cx_status print_chain(cx_cli_traces *t, cx_str agent, const chain_state *s,
                             const cx_buf *answer, cx_err *err)
{
    cx_json value;
    cx_chain_options options = s->options;
    options.infer_actions = true; /* as the answer's check */
    const cx_chain_entry *entries;
    size_t count;
    cx_chain_report report;
    CX_TRY(cx_json_parse_text(cx_buf_str(answer), t->l->arena, &value, err));
    (void)cx_chain_profile_parse(CX_JSON_GET_STR(&value, "profile"), &options.profile);
    CX_TRY(cx_index_chain(t->index, agent, t->l->arena, &entries, &count, err));
    CX_TRY(cx_chain_check(entries, count, &options, t->l->arena, &report, err));
    return write_report(t->l->cli, t->l->args, agent, &report, &t->l->out, err);
}

static cx_status chain_job(cx_cli_traces *t, void *state, cx_err *err)
{
    const chain_state *s = state;
    cx_str agent = cx_str_z(t->l->args->operands[0]);
    cx_verdict verdict = CX_INDETERMINATE;
    cx_buf answer;
    cx_buf_init(&answer, t->l->cli->alloc);
    cx_status status =
        cx_recorder_answer_chain(t->recorder, t->index, agent, &s->options, &answer, &verdict, err);
    if (!cx_failed(status) && t->l->json)
        cx_buf_add_str(&t->l->out, cx_buf_str(&answer));
    else if (!cx_failed(status))
        status = print_chain(t, agent, s, &answer, err);
    cx_buf_done(&answer);
    t->l->exit_code = cx_cli_verdict_exit(verdict);
    return status;
}

static int run_trace_chain(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .wants_index = true, .prepare = prepare_chain, .work = chain_job};
    const char *file = cx_cli_value(args, "file");
    chain_state s;
    if ((file == NULL) == (args->operand_count == 0))
        return cx_cli_misuse(args, "expected either AGENT or --file FILE");
    return file != NULL ? chain_file(cli, args, file) : cx_cli_run_traces(cli, args, &job, &s);
}

static const cx_cli_operand operands[] = {{"AGENT", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("profile", 0, CX_CLI_CHOICE, CX_CLI_PROFILES,
               "spec-1.0: every hash is recomputed and linked. agent: only the sequence numbers, "
               "for agents whose entries hash more than a trace contains. auto (the default): the "
               "profile of the agent's key, else spec-1.0 if at least one link recomputes."),
    CX_CLI_OPT("genesis", 0, CX_CLI_TEXT, "HEX",
               "The hash before the first entry; default none. The first entry is then always "
               "checked."),
    CX_CLI_OPT(
        "file", 0, CX_CLI_FILE, "FILE",
        "Check the entries in FILE in place of recorded ones: a JSON array of {\"seq\", "
        "\"hash\", \"action\", \"success\", \"timestamp\", \"trace_id\"} in any order, or an "
        "object with them under \"entries\"."),
    CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_chain = {
    .name = "trace chain",
    .purpose = "check the audit chain of an agent",
    .about = "Checks the audit entries of the agent's stored, verified traces in the order of "
             "their numbers, whatever the order of arrival. Each finding names both records: a "
             "gap, a number used twice (duplicate or fork), time that runs backwards, a hash that "
             "differs from the recomputed one. If nothing can be recomputed, the verdict is "
             "indeterminate, and gaps are not findings.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 the chain holds\n1 it is broken\n2 usage error\n3 indeterminate, or could not be "
             "checked",
    .example = "cortex trace chain 976dbe5047633d39 --profile spec-1.0",
    .run = run_trace_chain,
};
