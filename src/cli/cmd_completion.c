/*
 * cmd_completion.c - `cortex completion`: scripts that let shells complete commands and options.
 */
#include <string.h>

#include "cli/cli.h"

static int run_completion(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_operand operands[] = {{"SHELL", CX_CLI_CHOICE, "bash|zsh|fish", false, false}};

static const cx_cli_option options[] = {CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_completion = {
    .name = "completion",
    .purpose = "print a completion script for a shell",
    .about = "Prints a script for bash, zsh or fish that completes commands, options and their "
             "words.\n\n"
             "bash, zsh: source <(cortex completion bash) in the shell's startup file, with the "
             "shell's own name. fish: cortex completion fish | source.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 printed\n2 usage error\n3 the output could not be written",
    .example = "cortex completion bash",
    .run = run_completion,
};

static int run_completion(cx_cli *cli, const cx_cli_args *args)
{
    static const struct {
        const char *shell;
        void (*write)(cx_buf *out, cx_cli_commands commands);
    } writers[] = {
        {"bash", cx_cli_write_bash}, {"zsh", cx_cli_write_zsh}, {"fish", cx_cli_write_fish}};
    const char *shells[CX_COUNT_OF(writers)];
    for (size_t i = 0; i < CX_COUNT_OF(writers); i++) {
        shells[i] = writers[i].shell;
        if (strcmp(writers[i].shell, args->operands[0]) != 0)
            continue;
        cx_buf out;
        cx_buf_init(&out, cli->alloc);
        writers[i].write(&out, cli->commands);
        int code = cx_cli_answer_exact(cli, &out, CX_EXIT_HOLDS);
        cx_buf_done(&out);
        return code;
    }
    const char *meant = cx_cli_suggest(shells, CX_COUNT_OF(shells), args->operands[0]);
    cx_str message = cx_arena_printf(&cli->arena, "SHELL: expected one of bash, zsh and fish%s%s%s",
                                     meant == NULL ? "" : "; did you mean '",
                                     meant == NULL ? "" : meant, meant == NULL ? "" : "'?");
    return cx_cli_misuse(args, message.data == NULL ? "SHELL: expected one of bash, zsh and fish"
                                                    : message.data);
}
