/*
 * opt.c - reading a command line by a command's table.
 *
 * Nothing is guessed: an unknown option, a missing value or an operand too many is a usage error
 * (exit 2) whose message names what was expected and the closest valid word.
 */
#include "cli/former_names.h"
#include "cli/opt.h"
#include "cli/suggest.h"
#include "base/api.h"

#include <string.h>

/* --- suggestions --------------------------------------------------------------------------- */

static const char *suggest_option(const cx_cli_command *command, const char *typed)
{
    const char *best = NULL;
    unsigned best_edits = UINT32_MAX;
    for (size_t i = 0; i < command->option_count; i++) {
        const char *name = command->options[i].name;
        unsigned edits = cx_cli_edit_distance(typed, name);
        /* The beginning of a name is as good as one slip. */
        if (strlen(typed) >= 2 && strncmp(name, typed, strlen(typed)) == 0)
            edits = edits < 1 ? edits : 1;
        if (edits < best_edits) {
            best_edits = edits;
            best = name;
        }
    }
    return cx_cli_is_close(best_edits, typed) ? best : NULL;
}

const char *cx_cli_suggest(const char *const *names, size_t count, const char *typed)
{
    const char *best = NULL;
    unsigned best_edits = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        unsigned edits = cx_cli_edit_distance(typed, names[i]);
        if (edits < best_edits) {
            best_edits = edits;
            best = names[i];
        }
    }
    return cx_cli_is_close(best_edits, typed) ? best : NULL;
}

/* The closest word of "one|two|three", to `size`; NULL when none is close. */
static const char *suggest_choice(const char *choices, const char *typed, size_t *out_size)
{
    const char *best = NULL;
    unsigned best_edits = UINT32_MAX;
    for (const char *at = choices; *at != 0;) {
        char word[CX_CLI_SUGGEST_MAX + 1];
        size_t size = strcspn(at, "|");
        if (size < sizeof word) {
            memcpy(word, at, size);
            word[size] = 0;
            unsigned edits = cx_cli_edit_distance(typed, word);
            if (edits < best_edits) {
                best_edits = edits;
                best = at;
                *out_size = size;
            }
        }
        at += size + (at[size] == '|');
    }
    return cx_cli_is_close(best_edits, typed) ? best : NULL;
}

/* --- former names -------------------------------------------------------------------------- */

typedef struct former_name {
    const char *old, *now;
} former_name;

#define FORMER_NAME(old, now) {(old), (now)},
#define NO_NAME(old, now)

static const former_name former_commands[] = {CX_CLI_FORMER_NAMES(FORMER_NAME, NO_NAME)};
static const former_name former_options[] = {CX_CLI_FORMER_NAMES(NO_NAME, FORMER_NAME)};

/* --- commands ------------------------------------------------------------------------------ */

/* How many of the words spell `name`; 0 when they do not spell all of it. */
static size_t words_of_name(const char *name, const char *const *words, size_t word_count)
{
    size_t used = 0;
    while (*name != 0) {
        size_t size = strcspn(name, " ");
        if (used == word_count || strlen(words[used]) != size ||
            memcmp(words[used], name, size) != 0)
            return 0;
        used++;
        name += size + (name[size] == ' ');
    }
    return used;
}

const cx_cli_command *cx_cli_find_command(cx_cli_commands commands, const char *const *words,
                                          size_t word_count, size_t *out_used)
{
    for (size_t i = 0; i < commands.count; i++) {
        size_t used = words_of_name(commands.items[i]->name, words, word_count);
        if (used != 0) {
            *out_used = used;
            return commands.items[i];
        }
    }
    for (size_t i = 0; i < CX_COUNT_OF(former_commands); i++) {
        size_t used = words_of_name(former_commands[i].old, words, word_count);
        for (size_t j = 0; j < commands.count && used != 0; j++) {
            if (strcmp(commands.items[j]->name, former_commands[i].now) == 0) {
                *out_used = used;
                return commands.items[j];
            }
        }
    }
    return NULL;
}

bool cx_cli_is_group(cx_cli_commands commands, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i < commands.count; i++) {
        const char *name = commands.items[i]->name;
        if (size != 0 && strncmp(name, word, size) == 0 && name[size] == ' ')
            return true;
    }
    return false;
}

/* --- values -------------------------------------------------------------------------------- */

static bool is_choice(const char *choices, const char *text)
{
    size_t size = strlen(text);
    for (const char *at = choices; *at != 0;) {
        size_t length = strcspn(at, "|");
        if (length == size && memcmp(at, text, size) == 0)
            return true;
        at += length + (at[length] == '|');
    }
    return false;
}

/* Decimal digits, then nothing or (with units) one of K M G; false when it does not fit. */
static bool parse_number(const char *text, bool units, uint64_t *out)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (at == text)
        return false;
    static const char letters[] = "KMG";
    const char *unit = units && *at != 0 ? strchr(letters, *at) : NULL;
    unsigned shift = unit == NULL ? 0 : 10 * (unsigned)(unit - letters + 1);
    if (at[unit != NULL] != 0 || value > UINT64_MAX >> shift)
        return false;
    *out = value << shift;
    return true;
}

bool cx_cli_parse_size(const char *text, uint64_t *out)
{
    return parse_number(text, true, out);
}

cx_status cx_cli_check_value(const cx_cli_option *option, const char *value, cx_err *err)
{
    uint64_t number;
    const char *meant;
    size_t size = 0;
    switch (option->kind) {
    case CX_CLI_CHOICE:
        if (is_choice(option->value, value))
            break;
        meant = suggest_choice(option->value, value, &size);
        if (meant != NULL)
            return cx_fail(err, CX_E_USAGE,
                           "option --%s: found '%s', expected one of %s; did you mean '%.*s'?",
                           option->name, value, option->value, (int)size, meant);
        return cx_fail(err, CX_E_USAGE, "option --%s: found '%s', expected one of %s", option->name,
                       value, option->value);
    case CX_CLI_COUNT:
    case CX_CLI_SIZE:
        if (!parse_number(value, option->kind == CX_CLI_SIZE, &number))
            return cx_fail(err, CX_E_USAGE, "option --%s: found '%s', expected a number%s",
                           option->name, value,
                           option->kind == CX_CLI_SIZE ? " of bytes such as 4096 or 64M" : "");
        break;
    case CX_CLI_TEXT:
        if (!cx_utf8_valid(cx_str_z(value)))
            return cx_fail(err, CX_E_USAGE, "option --%s: found '%s', expected valid UTF-8",
                           option->name, value);
        break;
    case CX_CLI_FLAG:
    case CX_CLI_FILE:
    case CX_CLI_COMMAND: break;
    }
    return CX_SUCCESS;
}

/* --- parsing ------------------------------------------------------------------------------- */

typedef struct scan {
    const cx_cli_command *command;
    const char *const *words;
    size_t word_count;
    size_t next;
    cx_cli_args *args;
} scan;

static bool find_option(const cx_cli_command *command, const char *name, size_t size, size_t *out)
{
    for (size_t i = 0; i < command->option_count; i++) {
        const char *known = command->options[i].name;
        if (strlen(known) == size && memcmp(known, name, size) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static cx_status find_long(const cx_cli_command *command, const char *name, size_t size,
                           size_t *out, cx_err *err)
{
    if (find_option(command, name, size, out))
        return CX_SUCCESS;
    for (size_t i = 0; i < CX_COUNT_OF(former_options); i++) {
        const former_name *former = &former_options[i];
        if (strlen(former->old) == size && memcmp(former->old, name, size) == 0 &&
            find_option(command, former->now, strlen(former->now), out))
            return CX_SUCCESS;
    }
    char typed[CX_CLI_SUGGEST_MAX + 2];
    size_t length = size < sizeof typed - 1 ? size : sizeof typed - 1;
    memcpy(typed, name, length);
    typed[length] = 0;
    const char *meant = suggest_option(command, typed);
    if (meant != NULL)
        return cx_fail(err, CX_E_USAGE, "unknown option '--%.*s'; did you mean '--%s'?", (int)size,
                       name, meant);
    return cx_fail(err, CX_E_USAGE, "unknown option '--%.*s'", (int)size, name);
}

static cx_status find_short(const cx_cli_command *command, char letter, size_t *out, cx_err *err)
{
    for (size_t i = 0; i < command->option_count; i++) {
        if (command->options[i].letter == letter) {
            *out = i;
            return CX_SUCCESS;
        }
    }
    return cx_fail(err, CX_E_USAGE, "unknown option '-%c'", letter);
}

/* Reads the option's values: the attached one first, then the words after it. */
static cx_status read_values(scan *s, size_t index, const char *attached, cx_err *err)
{
    const cx_cli_option *option = &s->command->options[index];
    cx_cli_given given = {index, {NULL, NULL}};
    if (option->value_count == 0 && attached != NULL)
        return cx_fail(err, CX_E_USAGE, "option --%s takes no value", option->name);
    for (size_t i = 0; i < option->value_count; i++) {
        if (attached == NULL && s->next == s->word_count)
            return cx_fail(err, CX_E_USAGE, "option --%s is not complete: expected --%s %s",
                           option->name, option->name, option->value);
        given.values[i] = attached != NULL ? attached : s->words[s->next++];
        attached = NULL;
        CX_TRY(cx_cli_check_value(option, given.values[i], err));
    }
    if (!option->repeatable && option->value_count != 0 &&
        cx_cli_next(s->args, option->name, NULL) != NULL)
        return cx_fail(err, CX_E_USAGE, "option --%s is given twice", option->name);
    s->args->given[s->args->given_count++] = given;
    return CX_SUCCESS;
}

static cx_status parse_long(scan *s, const char *word, cx_err *err)
{
    size_t size = strcspn(word, "="), index = 0;
    CX_TRY(find_long(s->command, word, size, &index, err));
    return read_values(s, index, word[size] == '=' ? word + size + 1 : NULL, err);
}

/* "-o", "-oOUT" and flags in a row. */
static cx_status parse_short(scan *s, const char *letters, cx_err *err)
{
    for (const char *at = letters; *at != 0; at++) {
        size_t index = 0;
        CX_TRY(find_short(s->command, *at, &index, err));
        if (s->command->options[index].value_count != 0)
            return read_values(s, index, at[1] != 0 ? at + 1 : NULL, err);
        CX_TRY(read_values(s, index, NULL, err));
    }
    return CX_SUCCESS;
}

static cx_status check_operands(const cx_cli_args *args, cx_err *err)
{
    const cx_cli_command *command = args->command;
    size_t wanted = 0, most = command->operand_count;
    for (size_t i = 0; i < command->operand_count; i++)
        wanted += !command->operands[i].optional;
    if (most != 0 && command->operands[most - 1].many)
        most = SIZE_MAX;
    if (args->operand_count > most)
        return cx_fail(err, CX_E_USAGE, "'%s' is one operand too many", args->operands[most]);
    for (size_t i = 0; i < args->operand_count; i++) {
        size_t which = i < command->operand_count ? i : command->operand_count - 1;
        if (command->operands[which].kind == CX_CLI_TEXT &&
            !cx_utf8_valid(cx_str_z(args->operands[i])))
            return cx_fail(err, CX_E_USAGE, "%s: found '%s', expected valid UTF-8",
                           command->operands[which].name, args->operands[i]);
    }
    if (args->operand_count >= wanted)
        return CX_SUCCESS;
    /* Required operands come first in every table. */
    return cx_fail(err, CX_E_USAGE, "expected %s, for example: %.*s",
                   command->operands[args->operand_count].name,
                   (int)strcspn(command->example, "\n"), command->example);
}

cx_status cx_cli_parse(const cx_cli_command *command, const char *const *words, size_t word_count,
                       cx_arena *arena, cx_cli_args *out, cx_err *err)
{
    *out = (cx_cli_args){.command = command};
    out->operands = CX_ARENA_ARRAY(arena, const char *, word_count + 1);
    /* "-abc" is three options in one word. */
    size_t given_max = 1;
    for (size_t i = 0; i < word_count; i++)
        given_max += strlen(words[i]) + 1;
    out->given = CX_ARENA_ARRAY(arena, cx_cli_given, given_max);
    if (out->operands == NULL || out->given == NULL)
        return cx_fail_nomem(err);
    scan s = {command, words, word_count, 0, out};
    bool options_ended = false;
    while (s.next < word_count) {
        const char *word = words[s.next++];
        if (options_ended || word[0] != '-' || word[1] == 0) {
            out->operands[out->operand_count++] = word;
        } else if (word[1] != '-') {
            CX_TRY(parse_short(&s, word + 1, err));
        } else if (word[2] == 0) {
            options_ended = true;
        } else {
            CX_TRY(parse_long(&s, word + 2, err));
        }
    }
    out->help = cx_cli_has(out, "help");
    return out->help ? CX_SUCCESS : check_operands(out, err);
}

cx_status cx_cli_add_option(cx_cli_args *args, size_t option, const char *value, cx_arena *arena,
                            cx_err *err)
{
    cx_cli_given *room = CX_ARENA_ARRAY(arena, cx_cli_given, args->given_count + 1);
    if (room == NULL)
        return cx_fail_nomem(err);
    if (args->given_count != 0)
        memcpy(room, args->given, args->given_count * sizeof *room);
    room[args->given_count] = (cx_cli_given){option, {value, NULL}};
    args->given = room;
    args->given_count++;
    return CX_SUCCESS;
}

/* --- asking -------------------------------------------------------------------------------- */

static const cx_cli_option *known_option(const cx_cli_command *command, const char *name)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (strcmp(command->options[i].name, name) == 0)
            return &command->options[i];
    return NULL;
}

const cx_cli_given *cx_cli_next(const cx_cli_args *args, const char *name,
                                const cx_cli_given *previous)
{
    const cx_cli_option *option = known_option(args->command, name);
    CX_ASSERT(option != NULL);
    size_t index = (size_t)(option - args->command->options);
    size_t i = previous == NULL ? 0 : (size_t)(previous - args->given) + 1;
    for (; i < args->given_count; i++)
        if (args->given[i].option == index)
            return &args->given[i];
    return NULL;
}

bool cx_cli_takes(const cx_cli_args *args, const char *name)
{
    return known_option(args->command, name) != NULL;
}

bool cx_cli_has(const cx_cli_args *args, const char *name)
{
    return cx_cli_next(args, name, NULL) != NULL;
}

const char *cx_cli_value(const cx_cli_args *args, const char *name)
{
    const cx_cli_given *given = NULL, *last = NULL;
    while ((given = cx_cli_next(args, name, given)) != NULL)
        last = given;
    return last == NULL ? NULL : last->values[0];
}

uint64_t cx_cli_number(const cx_cli_args *args, const char *name, uint64_t fallback)
{
    const char *text = cx_cli_value(args, name);
    uint64_t value = fallback;
    if (text != NULL) {
        bool fits = parse_number(text, true, &value);
        CX_ASSERT(fits); /* cx_cli_check_value saw it first */
    }
    return value;
}
