/*
 * cmd_import.c - `cortex import`: converts traces of other tools to lattices (imports.md).
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "import/api.h"

static int run_import(cx_cli *cli, const cx_cli_args *args);

#define OR_FORMAT(name, text) "|" text
static const cx_cli_operand operands[] = {
    {"FORMAT", CX_CLI_CHOICE, "auto" CX_IMPORT_FORMATS(OR_FORMAT), true, false},
    {"FILE", CX_CLI_FILE, NULL, true, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("list", 0, "List the formats and do nothing else."),
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "OUT",
               "Write the lattice to OUT, atomically; default: standard output."),
    CX_CLI_OPT_FLAG("plain-ids", 0,
                    "Name nodes s0, s1, ... in place of their hashes (--strict then fails)."),
    CX_CLI_OPT("only", 0, CX_CLI_TEXT, "TASK.TRIAL", "tau-bench: import this one run."),
    CX_CLI_OPT("labels-out", 0, CX_CLI_FILE, "FILE",
               "who-when: write the labels to FILE; the lattice never contains them."),
    CX_CLI_OPT("max-bytes", 0, CX_CLI_SIZE, "SIZE",
               "Refuse a document, and count as bad a line, longer than SIZE."),
    CX_CLI_OPT_FLAG("json", 0,
                    "The summary as one line of JSON: on standard output with --output, else on "
                    "standard error."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_import = {
    .name = "import",
    .purpose = "convert another tool's trace into a lattice",
    .about = "Reads traces of FORMAT and writes a sealed lattice, one node for each source record "
             "and one for each file. Nothing is dropped: an unreadable record becomes a node that "
             "reports it. The same files in the same order give the same bytes. Counts go to "
             "standard error.\n\nFORMAT auto detects the format from the first FILE. Pass a "
             "session together with the files of its subagents.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 everything was imported\n"
             "1 the output is complete, but there were bad records in it\n"
             "2 usage error, or an unknown format\n"
             "3 a file cannot be read, or the output could not be written",
    .example = "cortex import claude-code session.jsonl -o history.jsonl",
    .run = run_import,
};

static int list_formats(cx_cli *cli, const cx_cli_args *args)
{
    const cx_import_format_info *format;
    bool json = cx_cli_has(args, "json");
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_buf_add_z(&out, json ? "{\"formats\":[" : "");
    for (size_t i = 0; (format = cx_import_format_at(i)) != NULL; i++) {
        if (json) {
            cx_buf_add_z(&out, i == 0 ? "{\"description\":" : ",{\"description\":");
            cx_json_write_str(&out, cx_str_z(format->description), CX_JSON_PY_COMPACT);
            cx_buf_printf(&out, ",\"name\":\"%s\"}", format->name);
        } else {
            cx_buf_printf(&out, "%-12s %s\n%-12s %s\n", format->name, format->description, "",
                          format->help);
        }
    }
    cx_buf_add_z(&out, json ? "]}\n" : "");
    int code = cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static cx_status write_stdout(void *arg, cx_bytes bytes, cx_err *err)
{
    cx_cli_out *out = arg;
    cx_cli_out_write_exact(out, bytes);
    if (!out->failed)
        return CX_SUCCESS;
    *err = out->err;
    return (cx_status){out->err.code};
}

/* Counts on standard error; with --json and --output, JSON on standard output. */
static cx_status print_summary(cx_cli *cli, const cx_import_summary *summary, bool json,
                               bool to_file, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cli->alloc);
    cx_status status = json ? cx_import_summary_json(&text, summary, err)
                            : cx_import_summary_text(&text, summary, err);
    if (!cx_failed(status) && json && to_file)
        cx_cli_out_write(&cli->out, cx_buf_str(&text));
    else if (!cx_failed(status))
        cx_cli_remark_lines(cx_buf_str(&text));
    cx_buf_done(&text);
    return status;
}

/* One import with its outputs; files appear only when everything went well. */
typedef struct job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_cli_file lattice; /* path NULL when the lattice goes to standard output */
    cx_cli_file labels;  /* path NULL when labels are not wanted */
    cx_import_summary summary;
} job;

static cx_status open_outputs(job *j, cx_err *err)
{
    const char *path = cx_cli_value(j->args, "output");
    const char *labels = cx_cli_value(j->args, "labels-out");
    if (path != NULL && strcmp(path, "-") != 0)
        CX_TRY(cx_cli_file_begin(&j->lattice, j->cli->io, path, err));
    if (labels != NULL)
        CX_TRY(cx_cli_file_begin(&j->labels, j->cli->io, labels, err));
    return CX_SUCCESS;
}

static cx_status import_files(job *j, cx_err *err)
{
    const char *only = cx_cli_value(j->args, "only");
    cx_cli_progress progress;
    cx_cli_progress_init(&progress, j->cli->io, "importing");
    for (size_t i = 1; i < j->args->operand_count; i++)
        CX_TRY(cx_cli_check_input(j->args->operands[i], err));
    CX_TRY(open_outputs(j, err));
    cx_import_options wanted = CX_IMPORT_OPTIONS_INIT;
    wanted.alloc = j->cli->alloc;
    wanted.plain_ids = cx_cli_has(j->args, "plain-ids");
    wanted.only = cx_str_z(only == NULL ? "" : only);
    wanted.max_bytes = (size_t)cx_cli_number(j->args, "max-bytes", 0);
    wanted.labels = j->labels.path == NULL ? NULL : cx_cli_file_write;
    wanted.labels_arg = &j->labels;
    wanted.progress = cx_cli_progress_step;
    wanted.progress_arg = &progress;
    bool to_file = j->lattice.path != NULL;
    cx_status status = cx_import_run(
        j->cli->io, j->args->operands[0], j->args->operands + 1, j->args->operand_count - 1,
        &wanted, to_file ? cx_cli_file_write : write_stdout,
        to_file ? (void *)&j->lattice : (void *)&j->cli->out, &j->summary, err);
    cx_cli_progress_end(&progress);
    if (cx_failed(status))
        return status;
    if (j->labels.path != NULL)
        CX_TRY(cx_cli_file_commit(&j->labels, err));
    if (to_file)
        CX_TRY(cx_cli_file_commit(&j->lattice, err));
    return print_summary(j->cli, &j->summary, cx_cli_has(j->args, "json"), to_file, err);
}

static bool is_format(const char *name)
{
    const cx_import_format_info *format;
    bool found = strcmp(name, "auto") == 0;
    for (size_t i = 0; !found && (format = cx_import_format_at(i)) != NULL; i++)
        found = strcmp(format->name, name) == 0;
    return found;
}

static int run_import(cx_cli *cli, const cx_cli_args *args)
{
    if (cx_cli_has(args, "list"))
        return list_formats(cli, args);
    if (args->operand_count == 1) {
        cx_str file = cx_cli_quoted(&cli->arena, is_format(args->operands[0]) ? "session.jsonl"
                                                                              : args->operands[0]);
        cx_str hint = cx_arena_printf(
            &cli->arena, "'%s' alone: expected FORMAT and FILE, for example: cortex import auto %s",
            args->operands[0], file.data == NULL ? "FILE" : file.data);
        if (hint.data != NULL)
            return cx_cli_misuse(args, hint.data);
    }
    if (args->operand_count < 2)
        return cx_cli_misuse(args, "expected FORMAT and FILE, for example: cortex import "
                                   "claude-code session.jsonl -o history.jsonl");
    cx_err err;
    job j = {.cli = cli, .args = args};
    int code;
    /* A failure of standard output is reported at the end of the program. */
    if (cx_failed(import_files(&j, &err)) && !cli->out.failed)
        code = cx_cli_fail(cli, args->operands[args->operand_count == 2], &err,
                           cx_cli_has(args, "json"));
    else
        code = j.summary.filled && j.summary.total.bad == 0 ? CX_EXIT_HOLDS : CX_EXIT_BROKEN;
    cx_cli_file_abort(&j.lattice);
    cx_cli_file_abort(&j.labels);
    cx_import_summary_done(&j.summary);
    return code;
}
