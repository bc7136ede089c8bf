/*
 * opt.h - one table for each command: its operands and options, its purpose, its exit codes.
 *
 * The table is the only place that defines an option.  Parsing (opt.c), help and the
 * manual (describe.c) and completion for three shells (complete.c) all read it, so they cannot
 * disagree.
 */
#ifndef CX_CLI_OPT_H
#define CX_CLI_OPT_H

#include "base/api.h"

struct cx_cli;
typedef struct cx_cli_args cx_cli_args;

typedef enum cx_cli_kind {
    CX_CLI_FLAG,   /* has no value */
    CX_CLI_TEXT,   /* UTF-8 */
    CX_CLI_FILE,   /* a path; shells complete it */
    CX_CLI_COUNT,  /* decimal, fits 64 bits */
    CX_CLI_SIZE,   /* a count of bytes, with K M G as powers of 1024 */
    CX_CLI_CHOICE, /* one of the words of `value`, which reads "one|two|three" */
    CX_CLI_COMMAND /* the words of a command; only as an operand */
} cx_cli_kind;

typedef struct cx_cli_option {
    const char *name; /* without dashes */
    char letter;      /* 0 = none */
    cx_cli_kind kind;
    const char *value; /* how help calls its value or values: "N", "A B", "lww|policy" */
    const char *help;  /* one sentence, or a few */
    uint8_t value_count;
    bool repeatable;
} cx_cli_option;

#define CX_CLI_OPT_FLAG(name, letter, help)                   \
    {                                                         \
        (name), (letter), CX_CLI_FLAG, NULL, (help), 0, false \
    }
#define CX_CLI_OPT(name, letter, kind, value, help)         \
    {                                                       \
        (name), (letter), (kind), (value), (help), 1, false \
    }
#define CX_CLI_OPT_MANY(name, letter, kind, value, help)   \
    {                                                      \
        (name), (letter), (kind), (value), (help), 1, true \
    }

typedef struct cx_cli_operand {
    const char *name; /* "FILE" */
    cx_cli_kind kind;
    const char *choices; /* of CX_CLI_CHOICE, else NULL; help names them, commands check them */
    bool optional;
    bool many; /* one or more (optional: none or more); the last operand only */
} cx_cli_operand;

typedef struct cx_cli_command {
    const char *name;    /* "version", "lattice verify" */
    const char *purpose; /* one line, no full stop */
    const char *about;   /* paragraphs separated by one empty line */
    const cx_cli_operand *operands;
    size_t operand_count;
    const cx_cli_option *options;
    size_t option_count;
    const char *exits;   /* lines "0 meaning" */
    const char *example; /* lines as typed, without a prompt */
    int (*run)(struct cx_cli *cli, const cx_cli_args *args);
} cx_cli_command;

/* Every command has these at the end of its table. */
#define CX_CLI_OPTIONS_COMMON                                                                  \
    CX_CLI_OPT("color", 0, CX_CLI_CHOICE, "auto|always|never",                                 \
               "Colours in text: auto uses them on a terminal unless NO_COLOR is set or TERM " \
               "is dumb."),                                                                    \
        CX_CLI_OPT_FLAG("help", 'h', "Show this help and do nothing else.")

typedef struct cx_cli_given {
    size_t option;         /* index in the command's table */
    const char *values[2]; /* NULL where it has none */
} cx_cli_given;

struct cx_cli_args {
    const cx_cli_command *command;
    const char **operands;
    size_t operand_count;
    cx_cli_given *given; /* in the order they were given */
    size_t given_count;
    bool help;          /* --help was among them: operands were not counted */
    struct cx_cli *cli; /* where misuse is answered in JSON; NULL = nowhere */
};

typedef struct cx_cli_commands {
    const cx_cli_command *const *items; /* in the order of help */
    size_t count;
} cx_cli_commands;

/*
 * Finds the command that `words` begin with.  NULL when there is none; *out_used is the number
 * of words of its name.
 */
const cx_cli_command *cx_cli_find_command(cx_cli_commands commands, const char *const *words,
                                          size_t word_count, size_t *out_used);
/* True when some command's name begins with this word and has another after it. */
bool cx_cli_is_group(cx_cli_commands commands, const char *word);

/*
 * Reads what follows a command's name.  Options may stand anywhere, `--` ends them, `-` alone is an
 * operand.  CX_E_USAGE with a message that names what was expected and the closest valid word.
 */
CX_RESULT cx_cli_parse(const cx_cli_command *command, const char *const *words, size_t word_count,
                       cx_arena *arena, cx_cli_args *out, cx_err *err);

/* A number of bytes such as 4096 or 64M; false when it is none. */
bool cx_cli_parse_size(const char *text, uint64_t *out);
/* Checks `value` for the option; CX_E_USAGE names what was expected. */
CX_RESULT cx_cli_check_value(const cx_cli_option *option, const char *value, cx_err *err);
/* Which of `names` was meant by what was typed; NULL when none is close. */
const char *cx_cli_suggest(const char *const *names, size_t count, const char *typed);
/* Adds an option after those that were given; its memory is in the arena. */
CX_RESULT cx_cli_add_option(cx_cli_args *args, size_t option, const char *value, cx_arena *arena,
                            cx_err *err);

/* Whether `name` is in the command's table. */
bool cx_cli_takes(const cx_cli_args *args, const char *name);
/* `name` must be in the command's table: asking for another is a bug. */
bool cx_cli_has(const cx_cli_args *args, const char *name);
/* The value given last, or NULL. */
const char *cx_cli_value(const cx_cli_args *args, const char *name);
/* Of CX_CLI_COUNT and CX_CLI_SIZE; `fallback` when not given. */
uint64_t cx_cli_number(const cx_cli_args *args, const char *name, uint64_t fallback);
/* The use of `name` after `previous` (NULL = the first), or NULL. */
const cx_cli_given *cx_cli_next(const cx_cli_args *args, const char *name,
                                const cx_cli_given *previous);

/* describe.c */

/* "cortex lattice why [OPTIONS] FILE NODE KEY" */
void cx_cli_write_synopsis(cx_buf *out, const cx_cli_command *command);
/* What `cortex help COMMAND` shows. */
void cx_cli_write_help(cx_buf *out, const cx_cli_command *command);
/* What `cortex help` shows; with a group's word, what `cortex help GROUP` shows. */
void cx_cli_write_overview(cx_buf *out, cx_cli_commands commands, const char *group);
/* All commands, grouped by job. */
void cx_cli_write_all(cx_buf *out, cx_cli_commands commands);
/* Whether the command is about governed runs: its errors carry a "message" (run.md §20). */
bool cx_cli_is_governed(const cx_cli_command *command);
/* The tables as one line of JSON, for programs. */
void cx_cli_write_json(cx_buf *out, cx_cli_commands commands);

/* manual.c, in man(7) macros */

/* The COMMANDS section of cortex(1). */
void cx_cli_write_man(cx_buf *out, cx_cli_commands commands);
/* The page cortex-WORD(1) of the commands whose first word this is; false: there are none. */
bool cx_cli_write_page(cx_buf *out, cx_cli_commands commands, const char *word);

/* complete.c */

void cx_cli_write_bash(cx_buf *out, cx_cli_commands commands);
void cx_cli_write_zsh(cx_buf *out, cx_cli_commands commands);
void cx_cli_write_fish(cx_buf *out, cx_cli_commands commands);

#endif
