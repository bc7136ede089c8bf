/*
 * complete.c - completion for bash, zsh and fish, written from the tables.
 *
 * The bash script lists the words after each command and after each option. zsh loads the same
 * script through its bashcompinit, so there is one logic to maintain. fish has a declarative
 * language of its own.
 */
#include <string.h>

#include "cli/opt.h"

/* --- what may follow ----------------------------------------------------------------------- */

static void add_choices(cx_buf *out, const char *choices)
{
    for (const char *at = choices; *at != 0; at++)
        cx_buf_add_byte(out, (uint8_t)(*at == '|' ? ' ' : *at));
}

static void add_option_words(cx_buf *out, const cx_cli_command *command)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const cx_cli_option *option = &command->options[i];
        cx_buf_printf(out, "%s--%s", i == 0 ? "" : " ", option->name);
        if (option->letter != 0)
            cx_buf_printf(out, " -%c", option->letter);
    }
}

/* The first words of all commands, or the second ones of a group, each once. */
static void add_command_words(cx_buf *out, cx_cli_commands commands, const char *group)
{
    size_t skip = group == NULL ? 0 : strlen(group) + 1;
    const char *last = "";
    size_t last_size = 0;
    for (size_t i = 0; i < commands.count; i++) {
        const char *name = commands.items[i]->name;
        if (group != NULL && (strncmp(name, group, skip - 1) != 0 || name[skip - 1] != ' '))
            continue;
        const char *word = name + skip;
        size_t size = strcspn(word, " ");
        /* Commands of a group are adjacent in the table. */
        if (size == last_size && memcmp(word, last, size) == 0)
            continue;
        cx_buf_add_byte(out, ' ');
        cx_buf_add(out, word, size);
        last = word;
        last_size = size;
    }
}

/* --- bash ---------------------------------------------------------------------------------- */

/* One case a command: its options, its choices for operands, whether operands are files. */
static void add_bash_command(cx_buf *out, const cx_cli_command *command)
{
    cx_buf_printf(out, "    '%s')\n        options='", command->name);
    add_option_words(out, command);
    cx_buf_add_z(out, "'\n");
    for (size_t i = 0; i < command->operand_count; i++) {
        const cx_cli_operand *operand = &command->operands[i];
        if (operand->kind == CX_CLI_FILE)
            cx_buf_add_z(out, "        files=yes\n");
        if (operand->kind == CX_CLI_CHOICE) {
            cx_buf_add_z(out, "        words='");
            add_choices(out, operand->choices);
            cx_buf_add_z(out, "'\n");
        }
        if (operand->kind == CX_CLI_COMMAND)
            cx_buf_add_z(out, "        words=$commands\n");
    }
    cx_buf_add_z(out, "        case $previous in\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const cx_cli_option *option = &command->options[i];
        if (option->value_count == 0)
            continue;
        cx_buf_printf(out, "        --%s", option->name);
        if (option->letter != 0)
            cx_buf_printf(out, "|-%c", option->letter);
        cx_buf_add_z(out, ") options= words='");
        if (option->kind == CX_CLI_CHOICE)
            add_choices(out, option->value);
        cx_buf_printf(out, "' files=%s ;;\n", option->kind == CX_CLI_FILE ? "yes" : "");
    }
    cx_buf_add_z(out, "        esac ;;\n");
}

/* The function _cortex_words, from COMP_WORDS and COMP_CWORD to COMPREPLY. */
static void add_bash_function(cx_buf *out, cx_cli_commands commands)
{
    cx_buf_add_z(out,
                 "_cortex_words()\n{\n"
                 "    local current=${COMP_WORDS[COMP_CWORD]} previous= command= options= words= "
                 "files= commands\n"
                 "    [ \"$COMP_CWORD\" -gt 0 ] && previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
                 "    commands='");
    add_command_words(out, commands, NULL);
    cx_buf_add_z(out, "'\n    COMPREPLY=()\n"
                      "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                      "        COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
                      "        return\n    fi\n"
                      "    command=${COMP_WORDS[1]}\n    case $command in\n");
    for (size_t i = 0; i < commands.count; i++) {
        const char *name = commands.items[i]->name;
        size_t size = strcspn(name, " ");
        bool again = i != 0 && strncmp(commands.items[i - 1]->name, name, size + 1) == 0;
        if (name[size] == 0 || again)
            continue;
        char group[32];
        CX_ASSERT(size < sizeof group);
        memcpy(group, name, size);
        group[size] = 0;
        cx_buf_printf(out,
                      "    %s)\n        if [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                      "            COMPREPLY=($(compgen -W '",
                      group);
        add_command_words(out, commands, group);
        cx_buf_add_z(out, "' -- \"$current\"))\n            return\n        fi\n"
                          "        command=\"$command ${COMP_WORDS[2]}\" ;;\n");
    }
    cx_buf_add_z(out, "    esac\n    case $command in\n");
    for (size_t i = 0; i < commands.count; i++)
        add_bash_command(out, commands.items[i]);
    cx_buf_add_z(out, "    *) return ;;\n    esac\n"
                      "    case $current in\n"
                      "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
                      "    *)\n"
                      "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                      "        if [ -n \"$files\" ]; then\n"
                      "            local IFS=$'\\n'\n"
                      "            COMPREPLY+=($(compgen -f -- \"$current\"))\n"
                      "        fi ;;\n"
                      "    esac\n}\n");
}

#define COMPLETE "complete -o filenames -F _cortex_words cortex\n"

void cx_cli_write_bash(cx_buf *out, cx_cli_commands commands)
{
    cx_buf_add_z(out,
                 "# bash completion for cortex; load with: source <(cortex completion bash)\n");
    add_bash_function(out, commands);
    cx_buf_add_z(out, COMPLETE);
}

/*
 * Loaded by zsh itself, as the file _cortex in a folder of $fpath, this is the body of the function
 * _cortex, and the first request is still to be answered.
 */
void cx_cli_write_zsh(cx_buf *out, cx_cli_commands commands)
{
    cx_buf_add_z(out,
                 "#compdef cortex\n"
                 "# zsh completion for cortex: a file named _cortex in a folder of $fpath, or\n"
                 "# source <(cortex completion zsh)\n"
                 "autoload -Uz compinit bashcompinit\n"
                 "(( $+functions[compdef] )) || compinit\n"
                 "(( $+functions[complete] )) || bashcompinit\n");
    add_bash_function(out, commands);
    cx_buf_add_z(out, COMPLETE "[[ ${funcstack[1]} != _cortex ]] || "
                               "_bash_complete -o filenames -F _cortex_words\n");
}

/* --- fish ---------------------------------------------------------------------------------- */

/* In single quotes fish knows only \' and \\. */
static void add_fish_quoted(cx_buf *out, const char *text)
{
    cx_buf_add_byte(out, '\'');
    for (const char *at = text; *at != 0; at++) {
        if (*at == '\'' || *at == '\\')
            cx_buf_add_byte(out, '\\');
        cx_buf_add_byte(out, (uint8_t)*at);
    }
    cx_buf_add_byte(out, '\'');
}

static void add_fish_option(cx_buf *out, const cx_cli_command *command, const cx_cli_option *option)
{
    cx_buf_printf(out, "complete -c cortex -n '__cortex_in %s' -l %s", command->name, option->name);
    if (option->letter != 0)
        cx_buf_printf(out, " -s %c", option->letter);
    if (option->value_count != 0)
        cx_buf_add_z(out, option->kind == CX_CLI_FILE ? " -r -F" : " -x");
    if (option->kind == CX_CLI_CHOICE) {
        cx_buf_add_z(out, " -a '");
        add_choices(out, option->value);
        cx_buf_add_byte(out, '\'');
    }
    cx_buf_add_z(out, " -d ");
    add_fish_quoted(out, option->help);
    cx_buf_add_byte(out, '\n');
}

static void add_fish_command(cx_buf *out, const cx_cli_command *command)
{
    const char *space = strchr(command->name, ' ');
    if (space == NULL) {
        cx_buf_printf(out, "complete -c cortex -f -n '__cortex_at' -a %s -d ", command->name);
    } else {
        cx_buf_add_z(out, "complete -c cortex -f -n '__cortex_at ");
        cx_buf_add(out, command->name, (size_t)(space - command->name));
        cx_buf_printf(out, "' -a %s -d ", space + 1);
    }
    add_fish_quoted(out, command->purpose);
    cx_buf_add_byte(out, '\n');
    for (size_t i = 0; i < command->operand_count; i++) {
        if (command->operands[i].kind != CX_CLI_CHOICE)
            continue;
        cx_buf_printf(out, "complete -c cortex -n '__cortex_in %s' -a '", command->name);
        add_choices(out, command->operands[i].choices);
        cx_buf_add_z(out, "'\n");
    }
    for (size_t i = 0; i < command->option_count; i++)
        add_fish_option(out, command, &command->options[i]);
}

void cx_cli_write_fish(cx_buf *out, cx_cli_commands commands)
{
    cx_buf_add_z(out,
                 "# fish completion for cortex; load with: cortex completion fish | source\n"
                 "# The words so far without options: at = exactly these, in = begins with them.\n"
                 "function __cortex_words\n"
                 "    set -l words (commandline -opc | string match -v -- '-*')\n"
                 "    set -e words[1]\n"
                 "    string join -- ' ' $words\n"
                 "end\n"
                 "function __cortex_at\n"
                 "    test \"$(__cortex_words)\" = \"$argv\"\n"
                 "end\n"
                 "function __cortex_in\n"
                 "    string match -q -- \"$argv *\" \"$(__cortex_words) \"\n"
                 "end\n");
    for (size_t i = 0; i < commands.count; i++) {
        const char *name = commands.items[i]->name;
        const char *space = strchr(name, ' ');
        size_t size = space == NULL ? 0 : (size_t)(space - name);
        bool again =
            i != 0 && size != 0 && strncmp(commands.items[i - 1]->name, name, size + 1) == 0;
        if (size != 0 && !again) {
            cx_buf_add_z(out, "complete -c cortex -f -n '__cortex_at' -a ");
            cx_buf_add(out, name, size);
            cx_buf_add_byte(out, '\n');
        }
        add_fish_command(out, commands.items[i]);
    }
}
