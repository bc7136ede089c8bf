/*
 * test_complete.c - completion offers every command, option and word of the tables.
 */
#include "tests/test.h"

#include "cli/complete.c" /* NOLINT: the program's files are no library */

static const cx_cli_operand shells[] = {{"SHELL", CX_CLI_CHOICE, "bash|zsh", false, false}};
static const cx_cli_operand files[] = {{"FILE", CX_CLI_FILE, NULL, false, false}};
static const cx_cli_option options[] = {
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "OUT", "Don't lose it."),
    CX_CLI_OPT("base", 0, CX_CLI_CHOICE, "lca|none", "Base."),
    CX_CLI_OPT_FLAG("plain-ids", 0, "Plain."), CX_CLI_OPTIONS_COMMON};

#define SAMPLE(words, operand_list)                                                \
    {                                                                              \
        .name = words, .purpose = "what " words " does", .operands = operand_list, \
        .operand_count = CX_COUNT_OF(operand_list), .options = options,            \
        .option_count = CX_COUNT_OF(options),                                      \
    }
static const cx_cli_command verify = SAMPLE("lattice verify", files);
static const cx_cli_command state = SAMPLE("lattice state", files);
static const cx_cli_command completion = SAMPLE("completion", shells);
static const cx_cli_command *const table[] = {&verify, &state, &completion};
static const cx_cli_commands commands = {table, CX_COUNT_OF(table)};

static bool has(const cx_buf *text, const char *part)
{
    return memmem(text->data, text->size, part, strlen(part)) != NULL;
}

CX_TEST(complete_bash_offers_everything)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_cli_write_bash(&out, commands);
    CHECK(has(&out, "commands=' lattice completion'"));
    CHECK(has(&out, "compgen -W ' verify state'"));
    CHECK(has(&out,
              "    'lattice verify')\n        options='--output -o --base --plain-ids --color "
              "--help -h'\n        files=yes\n"));
    CHECK(has(&out, "    'completion')\n"));
    CHECK(has(&out, "        words='bash zsh'\n"));
    CHECK(has(&out, "--output|-o) options= words='' files=yes ;;"));
    CHECK(has(&out, "--base) options= words='lca none' files= ;;"));
    cx_buf_done(&out);
}

CX_TEST(complete_zsh_has_the_bash_script)
{
    cx_buf bash, zsh;
    cx_buf_init(&bash, cx_alloc_default());
    cx_buf_init(&zsh, cx_alloc_default());
    cx_cli_write_bash(&bash, commands);
    cx_cli_write_zsh(&zsh, commands);
    CHECK(has(&zsh, "bashcompinit\n"));
    /* After a first line of its own, which is a comment, the bash script is in it as it is. */
    const uint8_t *script = memchr(bash.data, '\n', bash.size);
    size_t size = bash.size - (size_t)(script - bash.data);
    CHECK(memmem(zsh.data, zsh.size, script, size) != NULL);
    CHECK(cx_str_starts(cx_buf_str(&zsh), cx_str_z("#compdef cortex\n")));
    cx_buf_done(&bash);
    cx_buf_done(&zsh);
}

CX_TEST(complete_fish_offers_everything)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_cli_write_fish(&out, commands);
    CHECK(has(&out, "complete -c cortex -f -n '__cortex_at' -a lattice\n"));
    CHECK(has(&out, "-n '__cortex_at lattice' -a verify -d 'what lattice verify does'\n"));
    CHECK(has(&out, "-n '__cortex_at' -a completion -d"));
    CHECK(has(&out, "-n '__cortex_in lattice state' -l output -s o -r -F -d 'Don\\'t lose it.'\n"));
    CHECK(has(&out, "-n '__cortex_in lattice state' -l base -x -a 'lca none' -d 'Base.'\n"));
    CHECK(has(&out, "-n '__cortex_in completion' -a 'bash zsh'\n"));
    CHECK(has(&out, "-l plain-ids -d 'Plain.'\n"));
    cx_buf_done(&out);
}
