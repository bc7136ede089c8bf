/*
 * cmd_lattice_anchor.c - `cortex lattice anchor`: what to keep elsewhere (lattice.md §5.2).
 */
#include "cli/cli.h"
#include "lattice/api.h"

static int run_lattice_anchor(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("json", 0, "Accepted for uniformity: an anchor is always JSON."),
    CX_CLI_OPTIONS_READING, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_lattice_anchor = {
    .name = "lattice anchor",
    .purpose = "print an anchor that later reveals truncation or replacement",
    .about = "Prints one line of JSON: every agent's newest hash, the number of nodes, and a root "
             "over all of them. Keep it where the writer of the history cannot change it; 'cortex "
             "lattice verify FILE --head @ANCHOR' compares later.\n\nThe anchor describes the file "
             "as it is: a history that does not verify is anchored too, with exit code 1.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 printed, and the lattice holds\n"
             "1 printed, but the lattice does not hold\n"
             "2 usage error\n"
             "3 unreadable, or the output could not be written",
    .example = "cortex lattice anchor history.jsonl > /safe/place/anchor.json",
    .run = run_lattice_anchor,
};

static int run_lattice_anchor(cx_cli *cli, const cx_cli_args *args)
{
    int code;
    const char *path = args->operands[0];
    cx_lattice *lattice = cx_cli_open_lattice(cli, args, path, CX_CLI_KEEP_SEALS, &code);
    if (lattice == NULL)
        return code;
    cx_err err;
    cx_lattice_report *report = NULL;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_status status = cx_lattice_verify(lattice, NULL, &report, &err);
    if (!cx_failed(status))
        status = cx_lattice_anchor_json(&out, lattice, &err);
    if (cx_failed(status)) {
        code = cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"));
    } else {
        bool holds = cx_lattice_report_verdict(report) == CX_HOLDS;
        code = cx_cli_answer(cli, &out, holds ? CX_EXIT_HOLDS : CX_EXIT_BROKEN);
        if (!holds)
            cx_cli_complain("%s does not hold; 'cortex lattice verify' shows the findings", path);
    }
    cx_buf_done(&out);
    cx_lattice_report_close(report);
    cx_lattice_close(lattice);
    return code;
}
