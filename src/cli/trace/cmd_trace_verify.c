/*
 * cmd_trace_verify.c - `cortex trace verify`: is this trace signed by a key that is trusted?
 * (trace.md §4)
 */
#include "cli/trace/trace.h"

typedef struct verify_state {
    cx_bytes bytes;
    cx_trust trust;
    int64_t at_ns;
    cx_trace_level level;
    unsigned forms;
} verify_state;

static cx_status read_arguments(cx_cli *cli, const cx_cli_args *args, verify_state *s, cx_err *err)
{
    const char *forms = cx_cli_value(args, "forms");
    s->forms = CX_FORMS_ALL;
    if (forms != NULL && !cx_trace_forms_parse(cx_str_z(forms), &s->forms))
        return cx_fail(err, CX_E_USAGE, "option --forms: found '%s', expected letters such as B,E",
                       forms);
    CX_TRY(cx_cli_time_option(args, "at", (int64_t)cli->io->wall_ns(cli->io), &s->at_ns, err));
    s->level = cx_cli_level_option(args, "level", CX_LEVEL_ABSENT);
    return cx_cli_read_file(cli, args->operands[0], &s->bytes, err);
}

static cx_status verify_trace(cx_arena *arena, const verify_state *s, cx_trace *out_trace,
                              cx_trace_verdict *out, cx_err *err)
{
    cx_buf scratch;
    cx_trace_problem problem;
    const cx_trace_check check = {.trust = &s->trust,
                                  .received_ns = s->at_ns,
                                  .event_level = CX_LEVEL_ABSENT,
                                  .batch_level = s->level,
                                  .forms = s->forms};
    *out = (cx_trace_verdict){.verdict = CX_BROKEN, .form = CX_FORM_NONE};
    CX_TRY(cx_trace_read(s->bytes, arena, out_trace, &problem, err));
    if (problem.reason != CX_REASON_NONE) {
        out->problem = problem;
        return CX_SUCCESS;
    }
    cx_buf_init(&scratch, arena->alloc);
    cx_status status = cx_trace_verify(out_trace, &check, &scratch, arena, out, err);
    cx_buf_done(&scratch);
    return status;
}

static cx_status answer_verify(cx_cli *cli, const cx_cli_args *args, const verify_state *s,
                               cx_buf *out, int *out_exit, cx_err *err)
{
    cx_trace trace;
    cx_trace_verdict verdict;
    CX_TRY(verify_trace(&cli->arena, s, &trace, &verdict, err));
    *out_exit = cx_cli_verdict_exit(verdict.verdict);
    if (cx_cli_has(args, "json"))
        return cx_trace_verdict_json(out, &trace, &verdict, err);
    return cx_trace_verdict_text(out, &trace, &verdict,
                                 cx_cli_colour(&args->cli->out, cx_cli_value(args, "color")), err);
}

/* --- with the trust store of a file ----------------------------------------------------------- */

static cx_status with_file(cx_cli *cli, const cx_cli_args *args, cx_buf *out, int *out_exit,
                           cx_err *err)
{
    verify_state s;
    CX_TRY(read_arguments(cli, args, &s, err));
    CX_TRY(cx_cli_read_trust_store(cli, cx_cli_value(args, "trust"), &s.trust, err));
    return answer_verify(cli, args, &s, out, out_exit, err);
}

static int verify_with_file(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_buf out;
    int code = CX_EXIT_UNCHECKED;
    cx_buf_init(&out, cli->alloc);
    code = cx_failed(with_file(cli, args, &out, &code, &err)) ? cx_cli_ledger_fail(cli, args, &err)
                                                              : cx_cli_answer(cli, &out, code);
    cx_buf_done(&out);
    return code;
}

/* --- with the recorded keys ------------------------------------------------------------------- */

static cx_status prepare_verify(cx_cli_ledger *l, void *state, cx_err *err)
{
    return read_arguments(l->cli, l->args, state, err);
}

static cx_status trace_verify_job(cx_cli_traces *t, void *state, cx_err *err)
{
    verify_state *s = state;
    CX_TRY(cx_recorder_trust(t->recorder, t->l->arena, &s->trust, err));
    return answer_verify(t->l->cli, t->l->args, s, &t->l->out, &t->l->exit_code, err);
}

static int run_trace_verify(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_trace_job job = {
        .access = CX_CLI_READ, .prepare = prepare_verify, .work = trace_verify_job};
    verify_state s;
    return cx_cli_value(args, "trust") != NULL ? verify_with_file(cli, args)
                                               : cx_cli_run_traces(cli, args, &job, &s);
}

/* --- the command ------------------------------------------------------------------------------ */

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT(
        "trust", 0, CX_CLI_FILE, "STORE",
        "The trusted keys, a file of format cortex-trust-1; default those of the data directory."),
    CX_CLI_OPT("at", 0, CX_CLI_TEXT, "TIME",
               "Verify as if the trace had been received then, which matters for revoked keys; "
               "default now."),
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "The level of the batch it came in, for a trace that does not name its own; default "
               "generic."),
    CX_CLI_OPT("forms", 0, CX_CLI_TEXT, "A,B..",
               "Accept these canonical forms only; default all, A to H."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_verify = {
    .name = "trace verify",
    .purpose = "verify one trace: form, signature, key, level",
    .about =
        "Reads the trace in FILE (\"-\" is standard input), finds the canonical form that its "
        "signature covers, and shows whether a trusted key made it, which key, what the signature "
        "covers, and whether the trace contains more than its level allows. Nothing is recorded. "
        "In forms B to E the ids and times of the envelope are not signed, which the answer "
        "notes.\n\nWith a key that is not in the store the verdict is indeterminate.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 holds\n1 broken; the reason and its place are named\n2 usage error\n3 "
             "indeterminate (the key is unknown), or could not be checked",
    .example = "cortex trace verify --trust keys.json --at 2026-01-12T00:00:00Z trace.json",
    .run = run_trace_verify,
};
