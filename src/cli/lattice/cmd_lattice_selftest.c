/*
 * cmd_lattice_selftest.c - `cortex lattice selftest` (lattice.md §4.2).
 */
#include "cli/cli.h"
#include "lattice/api.h"

static int run_lattice_selftest(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("json", 0, "One line, {\"failed\":N,\"ok\":BOOL}, instead of text."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_lattice_selftest = {
    .name = "lattice selftest",
    .purpose = "check this program against known good and bad histories",
    .about = "Verifies a built-in history and four corruptions of it (payload, sequence gap, "
             "swapped events, metadata), each under schema versions 1.0, 1.1 and 2.0.0. Reads no "
             "files.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 all tests passed\n"
             "1 a test failed: do not trust this program's verdicts\n"
             "2 usage error\n"
             "3 the tests could not be run, or the output could not be written",
    .example = "cortex lattice selftest",
    .run = run_lattice_selftest,
};

static int run_lattice_selftest(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err;
    unsigned failed = 0;
    bool json = cx_cli_has(args, "json");
    int code;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_failed(cx_lattice_selftest(&out, &failed, &err))) {
        code = cx_cli_fail(cli, "selftest", &err, json);
    } else {
        if (json) {
            cx_buf_clear(&out);
            cx_buf_printf(&out, "{\"failed\":%u,\"ok\":%s}\n", failed,
                          failed == 0 ? "true" : "false");
        }
        code = cx_cli_answer(cli, &out, failed == 0 ? CX_EXIT_HOLDS : CX_EXIT_BROKEN);
    }
    cx_buf_done(&out);
    return code;
}
