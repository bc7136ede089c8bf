/*
 * files.c - programs whose arguments are files that they change: each file as what the program does
 * with it (docs/formats/live.md §4.2).
 */
#include <string.h>

#include "live/decide_parts.h"

typedef struct writer {
    const char *name;
    bool last_only; /* the others are read */
    unsigned skip;  /* arguments before the files */
} writer;

static const writer writers[] = {{"mkdir", false, 0},   {"rmdir", false, 0}, {"touch", false, 0},
                                 {"rm", false, 0},      {"mv", false, 0},    {"cp", true, 0},
                                 {"tee", false, 0},     {"ln", false, 0},    {"chmod", false, 1},
                                 {"truncate", false, 0}};

static const writer *writer_of(cx_str program)
{
    for (size_t i = 0; i < CX_COUNT_OF(writers); i++)
        if (cx_str_is(program, writers[i].name))
            return &writers[i];
    return NULL;
}

/* --- words ------------------------------------------------------------------------------------ */

typedef struct operands {
    const cx_shell_command *command;
    size_t at;
    bool ended; /* after "--" */
    unsigned skip;
} operands;

static operands operands_of(const cx_shell_command *command, const writer *kind)
{
    return (operands){.command = command, .at = 1, .skip = kind->skip};
}

static bool is_option(cx_str word)
{
    return word.size > 1 && word.data[0] == '-';
}

/* The index of the next word that is a file; the count of words after the last. */
static size_t next_operand(operands *o)
{
    while (o->at < o->command->count) {
        size_t at = o->at++;
        cx_str word = o->command->words[at].text;
        if (!o->ended && cx_str_is(word, "--"))
            o->ended = true;
        else if (!o->ended && is_option(word))
            continue;
        else if (o->skip != 0)
            o->skip--;
        else
            return at;
    }
    return o->command->count;
}

/* Options that name a file elsewhere. */
static bool names_a_target(cx_str word)
{
    return cx_str_starts(word, CX_STR("--target")) || cx_str_starts(word, CX_STR("--reference")) ||
           cx_str_starts(word, CX_STR("--suffix")) || cx_str_starts(word, CX_STR("--size")) ||
           (word.size >= 2 && word.data[0] == '-' && word.data[1] != '-' &&
            (memchr(word.data, 't', word.size) != NULL ||
             memchr(word.data, 'S', word.size) != NULL));
}

static bool has_target_option(const cx_shell_command *command)
{
    for (size_t i = 1; i < command->count && !cx_str_is(command->words[i].text, "--"); i++)
        if (is_option(command->words[i].text) && names_a_target(command->words[i].text))
            return true;
    return false;
}

/* What a relative link means depends on where it stands, and not on where it was made. */
static bool links_from_elsewhere(const cx_shell_command *command)
{
    bool symbolic = false, upwards = false, elsewhere = false, absolute = false;
    size_t files = 0;
    for (size_t i = 1; i < command->count; i++) {
        cx_str word = command->words[i].text;
        if (is_option(word)) {
            symbolic = symbolic || word.data[1] == '-' || memchr(word.data, 's', word.size) != NULL;
            continue;
        }
        if (files++ == 0) {
            absolute = word.size != 0 && word.data[0] == '/';
            upwards = cx_live_has_parent(word);
        } else {
            elsewhere = elsewhere || (word.size != 0 && memchr(word.data, '/', word.size) != NULL);
        }
    }
    return symbolic && !(absolute && files == 2) && (upwards || elsewhere || files != 2);
}

/* --- the files -------------------------------------------------------------------------------- */

static void copy_from(cx_deciding *d, cx_str path)
{
    if (cx_deciding_holds_secrets(d, path))
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_FORBIDDEN, "L15", path,
                        "below it is what the policy keeps from being read");
    else
        cx_deciding_read(d, path);
}

static size_t last_operand(const cx_shell_command *command, const writer *kind)
{
    operands all = operands_of(command, kind);
    size_t last = command->count;
    for (size_t at = next_operand(&all); at < command->count; at = next_operand(&all))
        last = at;
    return last;
}

static void take_operands(cx_live_command *c, const writer *kind)
{
    const cx_shell_command *command = c->command;
    operands files = operands_of(command, kind);
    size_t last = last_operand(command, kind);
    for (size_t at = next_operand(&files); at < command->count; at = next_operand(&files)) {
        const cx_shell_word *word = &command->words[at];
        if (word->glob || word->opaque) {
            cx_live_command_add(c, CX_LIVE_UNLISTED, "L08",
                                "only the shell knows which files these are");
            return;
        }
        if (kind->last_only && at != last)
            copy_from(c->d, word->text);
        else
            cx_deciding_write(c->d, word->text);
    }
}

bool cx_live_take_files(cx_live_command *c)
{
    const writer *kind = writer_of(c->program);
    if (kind == NULL)
        return false;
    if (cx_str_is(c->program, "ln") && links_from_elsewhere(c->command))
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08",
                            "a relative link leads elsewhere from where it stands");
    else if (has_target_option(c->command))
        cx_live_command_add(c, CX_LIVE_UNLISTED, "L08", "an option names another file");
    else
        take_operands(c, kind);
    return true;
}
