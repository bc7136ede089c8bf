/*
 * cmd_trace_canon.c - `cortex trace canon`: the very bytes that a signature is made over (trace.md
 * §3).
 */
#include <string.h>

#include "cli/trace/trace.h"
#include "crypto/api.h"

static cx_trace_bytes wanted_form(const cx_cli_args *args)
{
    const char *form = cx_cli_value(args, "form"), *numbers = cx_cli_value(args, "numbers");
    cx_trace_bytes which = {.form = CX_FORM_B,
                            .python_numbers = numbers != NULL && strcmp(numbers, "python") == 0,
                            .strip_data_only = form != NULL && strcmp(form, "E1") == 0,
                            .batch_level = cx_cli_level_option(args, "level", CX_LEVEL_ABSENT)};
    if (form != NULL)
        which.form = (cx_trace_form)(form[0] - 'A' + CX_FORM_A); /* one of the choices */
    return which;
}

/* A trace that lacks some of the six components has canonical bytes all the same. */
static cx_status read_trace(cx_cli *cli, const char *path, cx_trace *out, cx_err *err)
{
    cx_bytes bytes;
    cx_trace_problem problem;
    CX_TRY(cx_cli_read_file(cli, path, &bytes, err));
    CX_TRY(cx_trace_read(bytes, &cli->arena, out, &problem, err));
    if (problem.reason == CX_REASON_NONE || problem.reason == CX_REASON_COMPONENTS_MISSING)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_FORMAT, cx_trace_reason_name(problem.reason), CX_NO_OFFSET,
                      "%s is not a trace: %.*s%s%.*s", path, (int)problem.path.size,
                      problem.path.data == NULL ? "" : problem.path.data,
                      problem.path.size == 0 ? "" : ": ", (int)problem.detail.size,
                      problem.detail.data == NULL ? "" : problem.detail.data);
}

static cx_status answer_canon(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    cx_trace trace;
    const cx_trace_bytes which = wanted_form(args);
    CX_TRY(read_trace(cli, args->operands[0], &trace, err));
    CX_TRY(cx_trace_canonical(&trace, &which, out, err));
    CX_TRY(cx_buf_check(out, err));
    if (!cx_cli_has(args, "sha256"))
        return CX_SUCCESS;
    cx_digest digest = cx_digest_of(cx_buf_bytes(out));
    unsigned long long size = out->size;
    cx_buf_clear(out);
    cx_cli_add_digest(out, &digest);
    cx_buf_printf(out, "  %llu\n", size);
    return CX_SUCCESS;
}

static int run_trace_canon(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_buf out;
    const cx_trace_bytes which = wanted_form(args);
    if (which.form == CX_FORM_H && cx_cli_has(args, "numbers"))
        return cx_cli_misuse(args,
                             "option --numbers: not with form H, which has its own number format");
    cx_buf_init(&out, cli->alloc);
    int code = cx_failed(answer_canon(cli, args, &out, &err))
                   ? cx_cli_ledger_fail(cli, args, &err)
                   : cx_cli_answer_exact(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("form", 0, CX_CLI_CHOICE, "A|B|C|D|E|E1|F|G|H",
               "Which form; default B, the one of spec 1.0. E1 is E where only data is stripped."),
    CX_CLI_OPT("numbers", 0, CX_CLI_CHOICE, "received|python",
               "Numbers as they are spelled in FILE (the default), or as Python spells them."),
    CX_CLI_OPT("level", 0, CX_CLI_CHOICE, CX_CLI_LEVELS,
               "Form E: the level of the batch, for a trace that does not name its own."),
    CX_CLI_OPT_FLAG("sha256", 0,
                    "Print the SHA-256 of the bytes and how many they are, not the bytes."),
    CX_CLI_OPT_FLAG("json", 0, "Errors as JSON; the bytes are what they are."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_trace_canon = {
    .name = "trace canon",
    .purpose = "write the bytes that a signature covers",
    .about = "Writes the canonical bytes of the trace in FILE (\"-\" is standard input) to "
             "standard output, exactly: no newline, nothing else. Use it to compare with the bytes "
             "that a sender signs. Incomplete traces are accepted too.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 written\n"
             "2 usage error\n"
             "3 FILE cannot be read or is no trace, or the trace has no such form",
    .example = "cortex trace canon --form E --level detailed trace.json | sha256sum",
    .run = run_trace_canon,
};
