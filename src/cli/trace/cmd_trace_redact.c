/*
 * cmd_trace_redact.c - `cortex trace redact`: a trace as it may be shown at a lower level (trace.md
 * §2).
 */
#include "cli/trace/trace.h"

/* When a store is given and the signature holds, the view names the form that verified. */
static cx_status choose_form(cx_cli *cli, const cx_cli_args *args, const cx_trace *trace,
                             cx_trace_redaction *how, cx_err *err)
{
    const char *path = cx_cli_value(args, "trust");
    cx_trust trust;
    cx_trace_verdict verdict;
    cx_buf scratch;
    if (path == NULL || trace->signature.data == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_cli_read_trust_store(cli, path, &trust, err));
    const cx_trace_check check = {.trust = &trust,
                                  .event_level = CX_LEVEL_ABSENT,
                                  .batch_level = how->from,
                                  .forms = CX_FORMS_ALL,
                                  .any_level = true};
    cx_trace_check now = check;
    CX_TRY(
        cx_cli_time_option(args, "at", (int64_t)cli->io->wall_ns(cli->io), &now.received_ns, err));
    cx_buf_init(&scratch, cli->alloc);
    cx_status status = cx_trace_verify(trace, &now, &scratch, &cli->arena, &verdict, err);
    cx_buf_done(&scratch);
    CX_TRY(status);
    if (verdict.verdict != CX_HOLDS)
        return cx_fail_at(err, CX_E_FORMAT, cx_trace_reason_name(verdict.problem.reason),
                          CX_NO_OFFSET,
                          "the trace does not verify; leave out --trust to redact it unverified");
    how->form = verdict.form;
    how->canonical = verdict.canonical;
    how->has_canonical = true;
    return CX_SUCCESS;
}

static cx_status answer_redact(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    static const cx_canon_style as_received = {.spaces = false};
    cx_bytes bytes;
    cx_trace trace;
    cx_trace_problem problem;
    cx_json view;
    const cx_str *removed;
    size_t removed_count;
    CX_TRY(cx_cli_read_file(cli, args->operands[0], &bytes, err));
    CX_TRY(cx_trace_read_stored(bytes, &cli->arena, &trace, &problem, err));
    if (problem.reason != CX_REASON_NONE)
        return cx_fail_at(err, CX_E_FORMAT, cx_trace_reason_name(problem.reason), CX_NO_OFFSET,
                          "%s is not a trace: %.*s", args->operands[0], (int)problem.detail.size,
                          problem.detail.data == NULL ? "" : problem.detail.data);
    cx_trace_redaction how = {
        .from = cx_trace_level_of(&trace, CX_LEVEL_ABSENT,
                                  cx_cli_level_option(args, "level", CX_LEVEL_ABSENT)),
        .to = cx_cli_level_option(args, "to", CX_LEVEL_GENERIC),
        .form = CX_FORM_NONE};
    CX_TRY(cx_trace_content_digest(&trace, &how.content, err));
    CX_TRY(choose_form(cli, args, &trace, &how, err));
    CX_TRY(cx_trace_redact(&trace, &how, &cli->arena, &view, &removed, &removed_count, err));
    CX_TRY(cx_trace_canon_value(&view, &as_received, out, err));
    cx_buf_add_byte(out, '\n');
    return CX_SUCCESS;
}

static int run_trace_redact(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_buf out;
    if (!cx_cli_has(args, "to"))
        return cx_cli_misuse(args, "expected --to LEVEL: generic, detailed or full_traces");
    cx_buf_init(&out, cli->alloc);
    int code = cx_failed(answer_redact(cli, args, &out, &err))
                   ? cx_cli_ledger_fail(cli, args, &err)
                   : cx_cli_answer_exact(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("to", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "The level wanted; needed, and not above that of the trace."),
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "The level of the batch it came in, for a trace that does not name its own; default "
               "generic."),
    CX_CLI_OPT("trust", 0, CX_CLI_FILE, "STORE",
               "Check the signature first, with these keys, so that the view can name the form "
               "and digest that verified."),
    CX_CLI_OPT("at", 0, CX_CLI_TEXT, "TIME",
               "With --trust: verify as if the trace had been received then; default now."),
    CX_CLI_OPT_FLAG("json", 0, "Errors as JSON, too; a view always is."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_redact = {
    .name = "trace redact",
    .purpose = "redact a trace to a lower level",
    .about = "Prints the trace in FILE (\"-\" is standard input) redacted to a lower level, as one "
             "line of JSON. Members that the level does not allow are removed. The signatures are "
             "removed too, because a redacted view is not what was signed. Its member \"derived\" "
             "names the source and what was removed. A redacted view can be redacted further.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 printed\n"
             "2 usage error, or the level is above that of the trace\n"
             "3 FILE cannot be read or is no trace, or does not verify with --trust",
    .example = "cortex trace redact --to generic trace.json",
    .run = run_trace_redact,
};
