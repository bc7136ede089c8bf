/*
 * describe.c - help, written from the tables.
 */
#include <string.h>

#include "cli/opt.h"
#include "json/api.h"

enum { TEXT_WIDTH = 80, CHOICES_WIDTH = 98, OPTION_INDENT = 6 };

static void add_spaces(cx_buf *out, size_t count)
{
    while (count-- != 0)
        cx_buf_add_byte(out, ' ');
}

/* Words of one paragraph from column `indent` on; the first line's indent is already written. */
static void add_paragraph(cx_buf *out, const char *text, size_t size, size_t indent)
{
    size_t column = indent;
    for (size_t at = 0; at < size;) {
        size_t length = 0;
        while (at + length < size && text[at + length] != ' ' && text[at + length] != '\n')
            length++;
        if (column != indent && column + 1 + length > TEXT_WIDTH) {
            cx_buf_add_byte(out, '\n');
            add_spaces(out, indent);
            column = indent;
        } else if (column != indent) {
            cx_buf_add_byte(out, ' ');
            column++;
        }
        cx_buf_add(out, text + at, length);
        column += length;
        at += length + 1;
    }
    cx_buf_add_byte(out, '\n');
}

/* Paragraphs separated by an empty line. */
static void add_paragraphs(cx_buf *out, const char *text)
{
    while (*text != 0) {
        const char *end = strstr(text, "\n\n");
        size_t size = end == NULL ? strlen(text) : (size_t)(end - text);
        add_paragraph(out, text, size, 0);
        cx_buf_add_byte(out, '\n');
        text += size + (end == NULL ? 0 : 2);
    }
}

/* Each line after two spaces; longer ones are wrapped under their fourth column. */
static void add_lines(cx_buf *out, const char *text, bool wrap)
{
    while (*text != 0) {
        size_t size = strcspn(text, "\n");
        add_spaces(out, 2);
        if (wrap && size > 2) {
            cx_buf_add(out, text, 1);
            add_spaces(out, 2);
            add_paragraph(out, text + 2, size - 2, 5);
        } else {
            cx_buf_add(out, text, size);
            cx_buf_add_byte(out, '\n');
        }
        text += size + (text[size] == '\n');
    }
}

/* "one|two|three"; a list that is too long for a line goes on under its beginning. */
static void add_value(cx_buf *out, const char *value, size_t column)
{
    size_t indent = column;
    while (*value != 0) {
        size_t size = strcspn(value, "|");
        size += value[size] == '|';
        if (column != indent && column + size > CHOICES_WIDTH) {
            cx_buf_add_byte(out, '\n');
            add_spaces(out, indent);
            column = indent;
        }
        cx_buf_add(out, value, size);
        column += size;
        value += size;
    }
}

/* "-o, --output OUT" */
static void add_option_name(cx_buf *out, const cx_cli_option *option)
{
    size_t before = out->size;
    if (option->letter != 0)
        cx_buf_printf(out, "-%c, ", option->letter);
    cx_buf_printf(out, "--%s", option->name);
    if (option->value == NULL)
        return;
    cx_buf_add_byte(out, ' ');
    add_value(out, option->value, 2 + out->size - before);
}

static void add_operand_name(cx_buf *out, const cx_cli_operand *operand)
{
    cx_buf_printf(out, "%s%s%s%s", operand->optional ? "[" : "", operand->name,
                  operand->many ? "..." : "", operand->optional ? "]" : "");
}

void cx_cli_write_synopsis(cx_buf *out, const cx_cli_command *command)
{
    cx_buf_printf(out, "cortex %s [OPTIONS]", command->name);
    for (size_t i = 0; i < command->operand_count; i++) {
        cx_buf_add_byte(out, ' ');
        add_operand_name(out, &command->operands[i]);
    }
}

void cx_cli_write_help(cx_buf *out, const cx_cli_command *command)
{
    cx_buf_printf(out, "cortex %s - %s\n\nUsage: ", command->name, command->purpose);
    cx_cli_write_synopsis(out, command);
    cx_buf_add_z(out, "\n\n");
    add_paragraphs(out, command->about);
    cx_buf_add_z(out, "Options:\n");
    for (size_t i = 0; i < command->option_count; i++) {
        add_spaces(out, 2);
        add_option_name(out, &command->options[i]);
        cx_buf_add_byte(out, '\n');
        add_spaces(out, OPTION_INDENT);
        add_paragraph(out, command->options[i].help, strlen(command->options[i].help),
                      OPTION_INDENT);
    }
    cx_buf_add_z(out, "\nExit status:\n");
    add_lines(out, command->exits, true);
    cx_buf_add_z(out, "\nExample:\n");
    add_lines(out, command->example, false);
}

static bool is_in_group(const cx_cli_command *command, const char *group)
{
    size_t size = group == NULL ? 0 : strlen(group);
    return size == 0 || (strncmp(command->name, group, size) == 0 && command->name[size] == ' ');
}

static void add_command_line(cx_buf *out, const cx_cli_command *command, size_t width)
{
    cx_buf_printf(out, "  %s", command->name);
    add_spaces(out, width + 2 - strlen(command->name));
    cx_buf_printf(out, "%s\n", command->purpose);
}

static void add_command_list(cx_buf *out, cx_cli_commands commands, const char *group)
{
    size_t widest = 0;
    for (size_t i = 0; i < commands.count; i++) {
        size_t size = strlen(commands.items[i]->name);
        if (is_in_group(commands.items[i], group) && size > widest)
            widest = size;
    }
    for (size_t i = 0; i < commands.count; i++) {
        const cx_cli_command *command = commands.items[i];
        if (!is_in_group(command, group))
            continue;
        add_command_line(out, command, widest);
    }
}

/*
 * The jobs by which `cortex help all` groups commands: the first words of their names.  A command
 * whose first word is new is added here; test_cli.py finds one that is missing.
 */
typedef struct job {
    const char *title;
    const char *words; /* " WORD WORD " */
} job;

#define JOB_GOVERN "Govern an agent"

static const job jobs[] = {
    {"Start", " up demo init status doctor config completion version help "},
    {"Record and prove",
     " memory append apply log roots seed snapshot prove verify checkpoint key export "
     "scope sensitive erase hold retention tables backup restore evidence attest "},
    {"Receive signed traces", " record consent trace detect capacity alert "},
    {"Debug a history", " import view lattice show why search histories "},
    {JOB_GOVERN, " run contract runner gate approve approvals hooks hook mcp-gateway session "
                 "exec worktrees locks "},
    {"Serve and archive", " serve ready watch witness otel mcp token fleet "},
};

/* What a newcomer needs, in the order in which it is needed. */
static const char *const first_commands[] = {"up",    "demo", "init",     "import", "view",
                                             "serve", "run",  "evidence", "verify", "why"};

static bool is_job_of(const job *j, const char *name)
{
    size_t size = strcspn(name, " ");
    for (const char *at = j->words; (at = strchr(at, ' ')) != NULL && at[1] != '\0'; at++)
        if (strncmp(at + 1, name, size) == 0 && at[1 + size] == ' ')
            return true;
    return false;
}

static const char *job_title(const cx_cli_command *command)
{
    for (size_t i = 0; i < CX_COUNT_OF(jobs); i++)
        if (is_job_of(&jobs[i], command->name))
            return jobs[i].title;
    return NULL;
}

bool cx_cli_is_governed(const cx_cli_command *command)
{
    const char *title = job_title(command);
    return title != NULL && strcmp(title, JOB_GOVERN) == 0;
}

static void add_exit_status(cx_buf *out)
{
    cx_buf_add_z(out, "\nExit status:\n\n  0  holds, or done\n  1  checked, and broken\n  2  usage "
                      "error: unknown command or option, or something named does not exist\n  3  "
                      "could not be checked, or the output could not be written\n  4  rejected by "
                      "a gate\n  5  re-execution diverged\n");
}

static void add_usage(cx_buf *out, const char *group)
{
    if (group == NULL)
        cx_buf_add_z(out, "cortex - flight recorder, run governor and forensic debugger for AI "
                          "agents\n\nUsage: cortex COMMAND [OPTIONS] [OPERANDS]\n");
    else
        cx_buf_printf(out, "Usage: cortex %s COMMAND [OPTIONS] [OPERANDS]\n", group);
}

void cx_cli_write_overview(cx_buf *out, cx_cli_commands commands, const char *group)
{
    add_usage(out, group);
    if (group != NULL) {
        cx_buf_add_z(out, "\nCommands:\n");
        add_command_list(out, commands, group);
    } else {
        cx_buf_add_z(out, "\nCommands to start with:\n");
        for (size_t i = 0; i < CX_COUNT_OF(first_commands); i++)
            for (size_t j = 0; j < commands.count; j++)
                if (strcmp(commands.items[j]->name, first_commands[i]) == 0)
                    add_command_line(out, commands.items[j], strlen("evidence"));
        cx_buf_add_z(out, "\n'cortex help all' lists all commands by job.\n");
    }
    add_exit_status(out);
    cx_buf_add_z(out, "\n'cortex help COMMAND' explains one command; cortex(1) is the manual.\n");
}

void cx_cli_write_all(cx_buf *out, cx_cli_commands commands)
{
    size_t widest = 0;
    for (size_t i = 0; i < commands.count; i++)
        widest =
            strlen(commands.items[i]->name) > widest ? strlen(commands.items[i]->name) : widest;
    add_usage(out, NULL);
    for (size_t i = 0; i < CX_COUNT_OF(jobs); i++) {
        cx_buf_printf(out, "\n%s:\n", jobs[i].title);
        for (size_t j = 0; j < commands.count; j++)
            if (is_job_of(&jobs[i], commands.items[j]->name))
                add_command_line(out, commands.items[j], widest);
    }
    add_exit_status(out);
}

/* --- for programs -------------------------------------------------------------------------- */

static void add_json_text(cx_buf *out, const char *key, const char *text)
{
    cx_buf_printf(out, "\"%s\":", key);
    if (text == NULL)
        cx_buf_add_z(out, "null");
    else
        cx_json_write_str(out, cx_str_z(text), CX_JSON_PY_COMPACT);
}

void cx_cli_write_json(cx_buf *out, cx_cli_commands commands)
{
    cx_buf_add_z(out, "{\"commands\":[");
    for (size_t i = 0; i < commands.count; i++) {
        const cx_cli_command *command = commands.items[i];
        cx_buf_add_z(out, i == 0 ? "{" : ",{");
        add_json_text(out, "job", job_title(command));
        cx_buf_add_byte(out, ',');
        add_json_text(out, "name", command->name);
        cx_buf_add_z(out, ",\"operands\":[");
        for (size_t j = 0; j < command->operand_count; j++) {
            const cx_cli_operand *operand = &command->operands[j];
            cx_buf_printf(out, "%s{\"many\":%s,", j == 0 ? "" : ",",
                          operand->many ? "true" : "false");
            add_json_text(out, "name", operand->name);
            cx_buf_printf(out, ",\"optional\":%s}", operand->optional ? "true" : "false");
        }
        cx_buf_add_z(out, "],\"options\":[");
        for (size_t j = 0; j < command->option_count; j++) {
            const cx_cli_option *option = &command->options[j];
            char letter[2] = {option->letter, 0};
            cx_buf_add_z(out, j == 0 ? "{" : ",{");
            add_json_text(out, "letter", option->letter == 0 ? NULL : letter);
            cx_buf_add_z(out, ",");
            add_json_text(out, "name", option->name);
            cx_buf_printf(out, ",\"repeatable\":%s,", option->repeatable ? "true" : "false");
            add_json_text(out, "value", option->value);
            cx_buf_add_byte(out, '}');
        }
        cx_buf_add_z(out, "],");
        add_json_text(out, "purpose", command->purpose);
        cx_buf_add_byte(out, '}');
    }
    cx_buf_add_z(out, "]}\n");
}
