/*
 * cmd_verify.c - `cortex verify`: what is this file, and does it hold?
 *
 * Recognises a lattice and hands it to `cortex lattice verify`; a foreign trace cannot be checked
 * as it is, and the message says which import turns it into something that can.
 */
#include <string.h>

#include "cli/cli.h"
#include "import/import.h"

enum { HEAD_SIZE = 1 << 16 };

static int run(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {CX_CLI_OPTIONS_VERIFY, CX_CLI_OPTIONS_READING,
                                        CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_verify = {
    .name = "verify",
    .purpose = "find out what a file is and whether it holds",
    .about = "Looks at the first bytes of FILE (\"-\" is standard input). A lattice is verified as "
             "by 'cortex lattice verify', with the same options. A trace of another tool has no "
             "hashes to check: it is named, together with the import that makes it a lattice.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 it holds\n"
             "1 it does not hold\n"
             "2 usage error\n"
             "3 it could not be checked: unreadable, or not a kind of file that can be",
    .example = "cortex verify history.jsonl",
    .run = run,
};

/* Keys every lattice node has and no foreign trace does; a quoted copy has backslashes. */
static bool looks_like_lattice(cx_bytes head)
{
    static const char id[] = "\"node_id\"", prev[] = "\"prev_hash\"";
    return head.size != 0 && (memmem(head.data, head.size, id, sizeof id - 1) != NULL ||
                              memmem(head.data, head.size, prev, sizeof prev - 1) != NULL);
}

/* Reads the first bytes; a file that cannot be opened is left to the room that will say so. */
static size_t read_head(const cx_io *io, const char *path, uint8_t *head)
{
    cx_file file;
    size_t size = 0;
    if (io->open(io, path, CX_IO_READ, &file) != 0)
        return 0;
    if (cx_failed(cx_io_read_some(io, file, path, head, HEAD_SIZE, &size, NULL)))
        size = 0;
    (void)io->close(io, file);
    return size;
}

static int refuse_foreign(cx_cli *cli, const cx_cli_args *args, const char *format)
{
    cx_err err;
    const char *path = args->operands[0];
    (void)cx_fail_at(&err, CX_E_UNSUPPORTED, "U_FOREIGN", 0,
                     "found a %s trace, expected a lattice; make one with: cortex import %s %s "
                     "-o history.jsonl",
                     format, format, path);
    return cx_cli_fail(cli, path, &err, cx_cli_has(args, "json"));
}

static int verify_standard_input(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err;
    cx_buf text;
    int code;
    cx_buf_init(&text, cli->alloc);
    uint64_t limit = cx_cli_number(args, "max-bytes", 0);
    if (cx_failed(cx_io_read_file(cli->io, "-", limit == 0 || limit > SIZE_MAX ? SIZE_MAX : limit,
                                  &text, &err))) {
        code = cx_cli_fail(cli, "-", &err, cx_cli_has(args, "json"));
    } else {
        cx_bytes head = {text.data, text.size < HEAD_SIZE ? text.size : HEAD_SIZE};
        const char *format = looks_like_lattice(head) ? NULL : cx_import_detect(head);
        cli->standard_input = &text;
        code = format != NULL ? refuse_foreign(cli, args, format)
                              : cx_cli_run_lattice_verify(cli, args);
        cli->standard_input = NULL;
    }
    cx_buf_done(&text);
    return code;
}

static int run(cx_cli *cli, const cx_cli_args *args)
{
    static uint8_t head[HEAD_SIZE];
    const char *path = args->operands[0];
    if (strcmp(path, "-") == 0)
        return verify_standard_input(cli, args);
    cx_bytes seen = {head, read_head(cli->io, path, head)};
    const char *format = looks_like_lattice(seen) ? NULL : cx_import_detect(seen);
    return format != NULL ? refuse_foreign(cli, args, format)
                          : cx_cli_run_lattice_verify(cli, args);
}
