/*
 * cmd_version.c - `cortex version`.
 */
#include "cli/cli.h"
#include "crypto/api.h"

static int run_version(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("json", 0, "One line of canonical JSON instead of text."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_version_command = {
    .name = "version",
    .purpose = "print the version and the SHA-256 kernel in use",
    .about = "Prints the program's version, the lattice schema it writes, and which SHA-256 "
             "kernel was chosen for this machine; with --json the CRC-32C kernel, too.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 printed\n2 usage error\n3 the output could not be written",
    .example = "cortex version",
    .run = run_version,
};

static int run_version(cx_cli *cli, const cx_cli_args *args)
{
    const char *kernel = cx_digest_kernel_name(cx_digest_chosen());
    const char *crc32c = cx_crc32c_kernel_name(cx_crc32c_chosen());
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_cli_has(args, "json"))
        cx_buf_printf(
            &out,
            "{\"crc32c\":\"%s\",\"lattice\":\"2.0.0\",\"sha256\":\"%s\",\"version\":\"%s\"}\n",
            crc32c, kernel, cx_version());
    else
        cx_buf_printf(&out, "cortex %s (lattice 2.0.0, sha-256 %s)\n", cx_version(), kernel);
    int code = cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}
