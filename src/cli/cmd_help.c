/*
 * cmd_help.c - `cortex help`: every command explains itself from its table.
 */
#include <string.h>

#include "cli/suggest.h"
#include "cli/cli.h"

static int run_help(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"COMMAND", CX_CLI_COMMAND, NULL, true, true}};

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("man", 0,
                    "Print the COMMANDS section of cortex(1) as man(7) source; with the first word "
                    "of a command, its own page, such as cortex-run(1)."),
    CX_CLI_OPT_FLAG("json", 0, "All commands and their options as one line of JSON."),
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_help = {
    .name = "help",
    .purpose = "explain a command, or list all commands",
    .about = "Without COMMAND, lists the commands to start with. With \"all\", lists all commands "
             "by job. "
             "With a command (\"lattice verify\"), shows its purpose, options, exit codes and an "
             "example; 'cortex COMMAND --help' is the same.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 shown\n2 there is no such command\n3 the output could not be written",
    .example = "cortex help lattice verify",
    .run = run_help,
};

/* All words as one text, for looking up what was meant. */
static const char *join_words(cx_cli *cli, const cx_cli_args *args)
{
    cx_str text = cx_arena_printf(&cli->arena, "%s", args->operands[0]);
    for (size_t i = 1; i < args->operand_count && text.data != NULL; i++)
        text = cx_arena_printf(&cli->arena, "%s %s", text.data, args->operands[i]);
    return text.data == NULL ? "" : text.data;
}

static int explain_command(cx_cli *cli, const cx_cli_args *args, cx_buf *out)
{
    size_t used = 0;
    if (args->operand_count == 1 && strcmp(args->operands[0], "all") == 0) {
        cx_cli_write_all(out, cli->commands);
        return CX_EXIT_HOLDS;
    }
    const cx_cli_command *command =
        cx_cli_find_command(cli->commands, args->operands, args->operand_count, &used);
    if (command != NULL && used == args->operand_count) {
        cx_cli_write_help(out, command);
        return CX_EXIT_HOLDS;
    }
    if (args->operand_count == 1 && cx_cli_is_group(cli->commands, args->operands[0])) {
        cx_cli_write_overview(out, cli->commands, args->operands[0]);
        return CX_EXIT_HOLDS;
    }
    const char *typed = join_words(cli, args);
    const cx_cli_command *meant = cx_cli_suggest_command(cli->commands, typed);
    if (meant != NULL)
        cx_cli_complain("help: there is no command '%s'; did you mean '%s'?", typed, meant->name);
    else
        cx_cli_complain("help: there is no command '%s'; 'cortex help' lists them", typed);
    return CX_EXIT_USAGE;
}

static int write_manual(cx_cli *cli, const cx_cli_args *args, cx_buf *out)
{
    if (args->operand_count == 0)
        cx_cli_write_man(out, cli->commands);
    else if (args->operand_count != 1 || !cx_cli_write_page(out, cli->commands, args->operands[0]))
        return cx_cli_misuse(args, "--man: expected the first word of a command, such as run");
    return CX_EXIT_HOLDS;
}

static int run_help(cx_cli *cli, const cx_cli_args *args)
{
    int code = CX_EXIT_HOLDS;
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    if (cx_cli_has(args, "man"))
        code = write_manual(cli, args, &out);
    else if (cx_cli_has(args, "json"))
        cx_cli_write_json(&out, cli->commands);
    else if (args->operand_count == 0)
        cx_cli_write_overview(&out, cli->commands, NULL);
    else
        code = explain_command(cli, args, &out);
    code = cx_cli_answer(cli, &out, code);
    cx_buf_done(&out);
    return code;
}
