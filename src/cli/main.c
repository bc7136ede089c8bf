/*
 * main.c - the table of commands, and the way from a command line to one of them.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/config.h"
#include "cli/suggest.h"
#include "cli/fleet/part_home.h"
#include "agent/api.h"
#include "os/api.h"
#include "sandbox/api.h"

#define ADDRESS_OF_COMMAND(name) &cx_cli_##name,
static const cx_cli_command *const table[] = {CX_CLI_COMMANDS(ADDRESS_OF_COMMAND)};

/*
 * A descriptor 0, 1 or 2 that is closed would be given to the next file opened.  It gets one on
 * which reading (or writing) fails instead, so that lost output is noticed.
 */
static void reserve_standard_descriptors(const cx_io *io)
{
    for (int file = 0; file <= 2; file++) {
        int copy = dup(file);
        cx_file held;
        if (copy >= 0)
            (void)close(copy);
        else if (io->open(io, "/dev/null", file == 0 ? CX_IO_WRITE : CX_IO_READ, &held) != 0)
            _exit(CX_EXIT_UNCHECKED);
    }
}

static int report_unknown_command(cx_cli *cli, const char *const *words, size_t word_count)
{
    bool grouped = word_count > 1 && cx_cli_is_group(cli->commands, words[0]);
    cx_str typed = cx_arena_printf(&cli->arena, "%s%s%s", words[0], grouped ? " " : "",
                                   grouped ? words[1] : "");
    bool two = word_count > 1 && words[1][0] != '-';
    cx_str both =
        cx_arena_printf(&cli->arena, "%s%s%s", words[0], two ? " " : "", two ? words[1] : "");
    const char *text = typed.data == NULL ? words[0] : typed.data;
    const cx_cli_command *meant =
        cx_cli_suggest_command(cli->commands, both.data == NULL ? text : both.data);
    if (meant != NULL)
        cx_cli_complain("there is no command '%s'; did you mean '%s'?", text, meant->name);
    else
        cx_cli_complain("there is no command '%s'", text);
    cx_cli_remark("See 'cortex help%s%s'.", grouped ? " " : "", grouped ? words[0] : "");
    return CX_EXIT_USAGE;
}

static int run_words(cx_cli *cli, const char *const *words, size_t word_count);

/* `cortex help WORDS...` */
static int run_help(cx_cli *cli, const char *group)
{
    const char *words[] = {"help", group};
    return run_words(cli, words, group == NULL ? 1 : 2);
}

static bool is_any(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* A command line that cannot be parsed may still request an answer in JSON. */
static bool asks_for_json(const char *const *words, size_t word_count)
{
    for (size_t i = 0; i < word_count && strcmp(words[i], "--") != 0; i++)
        if (is_any(words[i], "--json", "--format=json") ||
            (i != 0 && strcmp(words[i - 1], "--format") == 0 && strcmp(words[i], "json") == 0))
            return true;
    return false;
}

/* Commands about the configuration or the program itself must work with a broken configuration. */
static bool reads_config(const cx_cli_command *command)
{
    static const char *const none[] = {"config", "help",       "version",
                                       "doctor", "completion", "lattice selftest"};
    for (size_t i = 0; i < CX_COUNT_OF(none); i++)
        if (strcmp(command->name, none[i]) == 0)
            return false;
    return strncmp(command->name, "config ", 7) != 0;
}

static int fail_config(cx_cli *cli, const cx_cli_command *command, const char *const *words,
                       size_t word_count, const cx_err *err)
{
    /* The database that has the data directory, and with it a file of settings, is away. */
    if (err->tag != NULL && strncmp(err->tag, "Database", 8) == 0)
        return cx_cli_fail(cli, command->name, err, asks_for_json(words, word_count));
    cx_cli_complain("%s", err->message);
    cx_cli_remark("See 'cortex config check' and 'cortex help config'.");
    if (asks_for_json(words, word_count))
        cx_cli_write_error_json(cli, err);
    return err->code == CX_E_USAGE ? CX_EXIT_USAGE : CX_EXIT_UNCHECKED;
}

static int run_command(cx_cli *cli, const cx_cli_command *command, const char *const *words,
                       size_t word_count)
{
    cx_cli_args args;
    cx_err err;
    cli->governed = cx_cli_is_governed(command);
    if (cx_failed(cx_cli_parse(command, words, word_count, &cli->arena, &args, &err))) {
        args = (cx_cli_args){.command = command};
        if (asks_for_json(words, word_count))
            cx_cli_write_error_json(cli, &err);
        return err.code == CX_E_USAGE ? cx_cli_misuse(&args, err.message)
                                      : cx_cli_fail(cli, command->name, &err, false);
    }
    args.cli = cli;
    if (!args.help && reads_config(command) && cx_failed(cx_config_apply(cli, &args, &err)))
        return fail_config(cli, command, words, word_count, &err);
    if (!args.help)
        return command->run(cli, &args);
    cx_buf out;
    cx_buf_init(&out, cli->alloc);
    cx_cli_write_help(&out, command);
    int code = cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static int run_words(cx_cli *cli, const char *const *words, size_t word_count)
{
    if (word_count == 0 || is_any(words[0], "--help", "-h"))
        return run_help(cli, NULL);
    if (is_any(words[0], "--version", "-V")) {
        static const char *const version[] = {"version"};
        return run_words(cli, version, 1);
    }
    size_t used = 0;
    const cx_cli_command *command = cx_cli_find_command(cli->commands, words, word_count, &used);
    if (command != NULL)
        return run_command(cli, command, words + used, word_count - used);
    /* `cortex snapshot` alone makes one. */
    if (strcmp(words[0], "snapshot") == 0 &&
        (word_count == 1 || (words[1][0] == '-' && !is_any(words[1], "--help", "-h"))))
        return run_command(cli, &cx_cli_snapshot_make, words + 1, word_count - 1);
    if (cx_cli_is_group(cli->commands, words[0]) &&
        (word_count == 1 || is_any(words[1], "--help", "-h")))
        return run_help(cli, words[0]);
    return report_unknown_command(cli, words, word_count);
}

int main(int argc, char **argv)
{
    cx_machine_begin(argc, argv);
    /* Internal commands: this program starts itself again for a sandbox, and inside it. */
    if (argc > 1 && strcmp(argv[1], CX_SANDBOX_LAUNCHER) == 0)
        return cx_sandbox_launcher_main(argc - 2, argv + 2);
    if (argc == 2 && strcmp(argv[1], CX_AGENT_OPS) == 0)
        return cx_agent_ops_main();
    reserve_standard_descriptors(cx_io_system());
    /* A reader that went away is an error of writing, not the end of the process. */
    (void)signal(SIGPIPE, SIG_IGN);
    cx_cli cli = {
        .files = *cx_io_system(),
        .alloc = cx_alloc_default(),
        .commands = {table, CX_COUNT_OF(table)},
    };
    cli.io = &cli.files;
    cx_arena_init(&cli.arena, cli.alloc, 0);
    cx_buf_init(&cli.recorded, cli.alloc);
    cx_buf_init(&cli.piped, cli.alloc);
    cx_cli_out_init(&cli.out, cli.io);
    int code =
        argc < 1 ? CX_EXIT_USAGE : run_words(&cli, (const char *const *)argv + 1, (size_t)argc - 1);
    cx_err err;
    cx_cli_part_close(&cli);
    if (cx_failed(cx_cli_out_end(&cli.out, &err))) {
        cx_cli_complain("%s", err.message);
        code = CX_EXIT_UNCHECKED;
    }
    cx_buf_done(&cli.recorded);
    cx_buf_done(&cli.piped);
    cx_arena_done(&cli.arena);
    return code;
}
