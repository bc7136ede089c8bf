/*
 * programs.c - what builtins and programs that only read can do all the same, by their words
 * (docs/formats/live.md §4.2).
 */
#include <string.h>

#include "live/decide_parts.h"

static bool has_any(cx_str text, const char *bytes)
{
    for (size_t i = 0; i < text.size; i++)
        if (strchr(bytes, text.data[i]) != NULL)
            return true;
    return false;
}

static bool has_text(cx_str text, const char *part)
{
    return text.size != 0 && memmem(text.data, text.size, part, strlen(part)) != NULL;
}

static bool is_number(cx_str text)
{
    size_t digits = 0;
    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    return text.size != 0 && digits == text.size;
}

static bool is_option(cx_str word)
{
    return word.size > 1 && word.data[0] == '-';
}

/* "-x", "-ax" with the letter, before one that takes the rest of the word as its value. */
static bool has_letter(cx_str word, char letter, const char *with_value)
{
    for (size_t i = 1; is_option(word) && word.data[1] != '-' && i < word.size; i++) {
        if (word.data[i] == letter)
            return true;
        if (strchr(with_value, word.data[i]) != NULL)
            return false;
    }
    return false;
}

/* --- builtins --------------------------------------------------------------------------------- */

const char *cx_live_builtin_danger(const cx_shell_command *command)
{
    cx_str name = command->words[0].text;
    for (size_t i = 1; i < command->count; i++) {
        cx_str word = command->words[i].text;
        /* test -v 'a[$(..)]', printf -v, zsh's arithmetic: the shell expands the index. */
        if (has_any(word, "[") && has_any(word, "$`"))
            return "an index of an array is worked out by the shell, with what it runs";
        if (cx_str_is(name, "printf") && cx_str_starts(word, CX_STR("-v")))
            return "it sets a variable";
        if (cx_str_is(name, "wait") && !is_number(word) && !cx_str_is(word, "-n") &&
            !cx_str_starts(word, CX_STR("%")))
            return "it sets a variable";
    }
    return NULL;
}

/* --- programs that read ----------------------------------------------------------------------- */

/* The second file of `uniq` and `xxd` is written. */
static void take_second_file(cx_deciding *d, const cx_shell_command *command,
                             const char *const *with_value, size_t count)
{
    bool options = true, seen = false;
    for (size_t i = 1; i < command->count; i++) {
        cx_str word = command->words[i].text;
        if (options && cx_str_is(word, "--")) {
            options = false;
            continue;
        }
        if (options && is_option(word)) {
            for (size_t k = 0; k < count; k++)
                if (cx_str_is(word, with_value[k]) && i + 1 < command->count &&
                    !command->words[i + 1].opaque && !command->words[i + 1].glob) {
                    i++;
                    break;
                }
            continue;
        }
        if (seen)
            cx_deciding_write(d, word);
        seen = true;
    }
}

/* The value of -o of `sort`, in its own word or in the next one. */
static void take_sorted(cx_deciding *d, const cx_shell_command *command)
{
    for (size_t i = 1; i < command->count; i++) {
        cx_str word = command->words[i].text;
        if (!is_option(word) || word.data[1] == '-')
            continue;
        for (size_t at = 1; at < word.size; at++) {
            if (word.data[at] == 'o') {
                if (at + 1 < word.size)
                    cx_deciding_write(d, cx_str_from(word.data + at + 1, word.size - at - 1));
                else if (i + 1 < command->count)
                    cx_deciding_write(d, command->words[i + 1].text);
                break;
            }
            if (strchr("kStT", word.data[at]) != NULL)
                break;
        }
    }
}

static const char *find_danger(const cx_shell_command *command, bool (*is_danger)(cx_str word),
                               const char *why)
{
    for (size_t i = 1; i < command->count; i++)
        if (is_danger(command->words[i].text))
            return why;
    return NULL;
}

static bool compiles(cx_str word)
{
    return has_letter(word, 'C', "fFmPe") || cx_str_starts(word, CX_STR("--c"));
}

static bool sets_clock(cx_str word)
{
    return has_letter(word, 's', "dfr") || cx_str_starts(word, CX_STR("--s")) ||
           (!is_option(word) && is_number(word));
}

static bool shows_environments(cx_str word)
{
    if (is_option(word))
        return has_letter(word, 'E', "") || has_text(word, "env");
    return has_any(word, "eE");
}

/* jq: `env` and `$ENV`, and not the member `.env`. */
static bool shows_variables(cx_str word)
{
    for (size_t at = 0; at + 3 <= word.size; at++) {
        char before = at == 0 ? ' ' : word.data[at - 1];
        char after = at + 3 < word.size ? word.data[at + 3] : ' ';
        bool begins = before != '.' && before != '_' && !(before >= 'a' && before <= 'z') &&
                      !(before >= 'A' && before <= 'Z');
        bool ends = after != '_' && !(after >= 'a' && after <= 'z');
        if (memcmp(word.data + at, "ENV", 3) == 0 && before == '$')
            return true;
        if (memcmp(word.data + at, "env", 3) == 0 && begins && ends)
            return true;
    }
    return false;
}

static bool includes_files(cx_str word)
{
    return (has_text(word, "import") || has_text(word, "include")) && has_text(word, "search");
}

const char *cx_live_reader_danger(cx_deciding *d, cx_str program, const cx_shell_command *command)
{
    static const char *const uniq[] = {"-f", "-s", "-w"};
    static const char *const xxd[] = {"-c", "-cols", "-g",    "-groupsize", "-l",    "-len",
                                      "-o", "-s",    "-seek", "-n",         "-name", "-R"};
    if (cx_str_is(program, "uniq"))
        take_second_file(d, command, uniq, CX_COUNT_OF(uniq));
    else if (cx_str_is(program, "xxd"))
        take_second_file(d, command, xxd, CX_COUNT_OF(xxd));
    else if (cx_str_is(program, "sort"))
        take_sorted(d, command);
    else if (cx_str_is(program, "file"))
        return find_danger(command, compiles, "it writes a compiled magic file");
    else if (cx_str_is(program, "date"))
        return find_danger(command, sets_clock, "it sets the clock");
    else if (cx_str_is(program, "ps"))
        return find_danger(command, shows_environments, "it shows environments of processes");
    else if (cx_str_is(program, "jq") && find_danger(command, shows_variables, "") != NULL)
        return "its filter shows variables of the environment";
    else if (cx_str_is(program, "jq"))
        return find_danger(command, includes_files, "its filter reads other files");
    return NULL;
}

/* --- what is read ----------------------------------------------------------------------------- */

/* Of a folder these tell names only. */
static bool tells_names_only(cx_str program)
{
    static const char *const names[] = {"ls",       "tree",     "du",       "df",     "stat",
                                        "realpath", "readlink", "basename", "dirname"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++)
        if (cx_str_is(program, names[i]))
            return true;
    return false;
}

static bool forbid_reading(cx_deciding *d, cx_str path, const char *why)
{
    cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_FORBIDDEN, "L15", path, "%s", why);
    return false;
}

static bool may_read_word(cx_deciding *d, cx_str text, const cx_shell_word *word)
{
    if (text.size == 0)
        return true;
    if (word->glob)
        return cx_deciding_may_read_pattern(d, text) ||
               forbid_reading(d, text,
                              "the pattern can become what the policy keeps from being read");
    cx_str real = cx_deciding_resolve(d, text);
    return real.data == NULL || cx_deciding_may_read(d, text) ||
           forbid_reading(d, real, "the policy keeps this from being read");
}

/* "--name=VALUE", "-xVALUE" and "-axVALUE": where the value begins is not known of every
 * program. */
static bool may_read_values(cx_deciding *d, const cx_shell_word *word)
{
    cx_str text = word->text;
    const char *equals = memchr(text.data, '=', text.size);
    if (equals != NULL) {
        size_t skip = (size_t)(equals - text.data) + 1;
        if (!may_read_word(d, cx_str_from(text.data + skip, text.size - skip), word))
            return false;
    }
    for (size_t at = 2; at < text.size && text.data[1] != '-' && at < 16; at++) {
        if (!may_read_word(d, cx_str_from(text.data + at, text.size - at), word))
            return false;
        char c = text.data[at];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
            break;
    }
    return true;
}

/* How a program reads a folder that it is given. */
typedef struct folder_reading {
    bool searches; /* the working folder, when no file is named */
    bool deep;     /* all that is below it */
    bool follows;  /* links below it, too */
    bool hidden;   /* names that begin with a dot, too */
} folder_reading;

static bool has_long(cx_str word, const char *part)
{
    return cx_str_starts(word, CX_STR("--")) && has_text(word, part);
}

static folder_reading reading_of(cx_str program, const cx_shell_command *command)
{
    bool rg = cx_str_is(program, "rg"), diff = cx_str_is(program, "diff");
    folder_reading how = {.searches = rg || cx_str_ends(program, CX_STR("grep")), .deep = rg};
    how.hidden = !rg;
    for (size_t i = 1; i < command->count; i++) {
        cx_str word = command->words[i].text;
        bool recursive = !rg && (has_letter(word, 'r', "ABCDdefm") || has_long(word, "recurs"));
        bool dereferences =
            !rg && !diff && (has_letter(word, 'R', "ABCDdefm") || has_long(word, "dereference-r"));
        how.deep = how.deep || recursive || dereferences || (!rg && has_text(word, "recurse"));
        how.follows = how.follows || dereferences || (diff && recursive) ||
                      (rg && (has_letter(word, 'L', "ABCEMTdefgmrt") || has_long(word, "follow")));
        how.hidden = how.hidden || has_letter(word, 'u', "ABCEMTdefgmrt") ||
                     has_letter(word, '.', "ABCEMTdefgmrt") ||
                     has_letter(word, 'g', "ABCEMTdefmrt") || has_long(word, "hidden") ||
                     has_long(word, "glob") || has_long(word, "unrestricted");
    }
    return how;
}

static bool may_read_folder(cx_deciding *d, const folder_reading *how, cx_str folder)
{
    static const char why[] = "below it is what the policy keeps from being read; name the folders "
                              "that are meant";
    cx_live_below below =
        !how->hidden && !how->follows
            ? (cx_deciding_holds_secrets(d, folder) ? CX_LIVE_BELOW_DENIED : CX_LIVE_BELOW_FINE)
            : cx_live_look_below(d, folder, how->follows);
    if (below == CX_LIVE_BELOW_DENIED)
        return forbid_reading(d, folder, why);
    if (below == CX_LIVE_BELOW_UNKNOWN && how->follows)
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_UNLISTED, "L08", folder,
                        "it has more entries than are looked at (20000)");
    return true;
}

/* One that is no option. */
static bool may_read_operand(cx_deciding *d, const cx_shell_word *word, const folder_reading *how,
                             bool reader, bool contents)
{
    cx_str text = word->text;
    if (!may_read_word(d, text, word))
        return false;
    if (reader && !word->glob && cx_deciding_resolve(d, text).data == NULL)
        cx_deciding_add(d, CX_LIVE_READ, CX_LIVE_UNLISTED, "L08", text,
                        "where this path leads cannot be told");
    if (reader && how->deep && !word->glob)
        return may_read_folder(d, how, text);
    return !contents || word->glob || !cx_deciding_holds_secrets(d, text) ||
           forbid_reading(d, text,
                          "below it is what the policy keeps from being read; name the folders "
                          "that are meant");
}

bool cx_live_words_may_be_read(cx_deciding *d, cx_str program, const cx_shell_command *command,
                               bool reader)
{
    const folder_reading how = reading_of(program, command);
    size_t operands = 0;
    bool contents = reader && !tells_names_only(program);
    for (size_t i = 1; i < command->count; i++) {
        const cx_shell_word *word = &command->words[i];
        if (word->text.size == 0 || word->opaque)
            continue;
        if (is_option(word->text)) {
            if (!may_read_values(d, word))
                return false;
            continue;
        }
        operands++;
        if (!may_read_operand(d, word, &how, reader, contents))
            return false;
    }
    return !how.searches || !how.deep || operands >= 2 || may_read_folder(d, &how, CX_STR("."));
}
