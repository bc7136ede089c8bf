/*
 * action.c - row C07 of the command gate: does a command do what an action names? (run.md §8)
 *
 * An action is lexed like a command.  Its words must occur in that order with anything in between;
 * a word matches a whole word of the command or what stands behind its last '/', whatever the case.
 * Options are looked for anywhere behind the first word, letters of a short cluster one by one.  A
 * word that is like a path (begins with '.', or has a '/') also matches parts of words, which are
 * cut at '/', ':', '=' and ','.
 */
#include "command/command.h"
#include "rules/api.h"

static bool is_path_like(cx_str word)
{
    return word.size != 0 && (word.data[0] == '.' || memchr(word.data, '/', word.size) != NULL);
}

/* The next part of a word; *at moves behind its separator. */
static bool next_part(cx_str word, const char *separators, size_t *at, cx_str *out)
{
    if (*at > word.size)
        return false;
    size_t end = *at;
    while (end < word.size && strchr(separators, word.data[end]) == NULL)
        end++;
    *out = cx_run_word_trim(cx_str_from(word.data + *at, end - *at));
    *at = end + 1;
    return true;
}

/* The same without empty parts and '.'. */
static bool next_named_part(cx_str word, const char *separators, size_t *at, cx_str *out)
{
    while (next_part(word, separators, at, out)) {
        if (out->size != 0 && !cx_str_is(*out, "."))
            return true;
    }
    return false;
}

static bool part_matches(cx_str wanted, cx_str part)
{
    if (cx_run_word_same(wanted, part))
        return true;
    /* .env stands for its variants, which hold secrets just the same; .env.example is made to be
     * shown. */
    return cx_run_word_same(wanted, CX_STR(".env")) && part.size > 5 &&
           cx_run_word_same(cx_str_from(part.data, 5), CX_STR(".env.")) &&
           !cx_run_word_same(part, CX_STR(".env.example"));
}

/* Whether the parts of `wanted` follow one another somewhere in the parts of `word`. */
static bool parts_match(cx_str wanted, cx_str word)
{
    static const char separators[] = "/:=,";
    for (size_t start = 0; start <= word.size;) {
        size_t at = start, wanted_at = 0;
        cx_str want, part;
        bool any = false, good = true;
        while (good && next_named_part(wanted, "/", &wanted_at, &want)) {
            any = true;
            good = next_named_part(word, separators, &at, &part) && part_matches(want, part);
        }
        if (any && good)
            return true;
        if (!next_part(word, separators, &start, &part))
            break;
    }
    return false;
}

static bool word_matches(cx_str wanted, cx_str word)
{
    word = cx_run_word_trim(word);
    return cx_run_word_same(wanted, word) || cx_run_word_same(wanted, cx_run_word_base(word)) ||
           (is_path_like(wanted) && parts_match(wanted, word));
}

/* One that follows two dashes: "--hard" is also in "--hard=x". */
static bool has_long_option(const cx_run_argv *argv, size_t from, cx_str wanted)
{
    for (size_t i = from; i < argv->count; i++) {
        cx_str word = cx_run_word_trim(argv->items[i]);
        const char *equals = word.size == 0 ? NULL : memchr(word.data, '=', word.size);
        if (cx_run_word_same(wanted, word) ||
            (equals != NULL && cx_str_starts(word, CX_STR("--")) &&
             cx_run_word_same(wanted, cx_str_from(word.data, (size_t)(equals - word.data)))))
            return true;
    }
    return false;
}

static bool has_letter(const cx_run_argv *argv, size_t from, char letter)
{
    for (size_t i = from; i < argv->count; i++) {
        cx_str word = cx_run_word_trim(argv->items[i]);
        if (!cx_run_word_is_option(word) || word.data[1] == '-')
            continue;
        for (size_t k = 1; k < word.size; k++) {
            if (cx_run_word_same(cx_str_from(&letter, 1), cx_str_from(word.data + k, 1)))
                return true;
        }
    }
    return false;
}

static bool has_option(const cx_run_argv *argv, size_t from, cx_str wanted)
{
    if (wanted.data[1] == '-')
        return has_long_option(argv, from, wanted);
    for (size_t i = 1; i < wanted.size; i++) {
        if (!has_letter(argv, from, wanted.data[i]))
            return false;
    }
    return true;
}

static bool argv_matches(const cx_run_argv *action, const cx_run_argv *argv)
{
    size_t next = 0, behind_first = 0;
    bool first = true;
    for (size_t i = 0; i < action->count; i++) {
        cx_str wanted = cx_run_word_trim(action->items[i]);
        if (wanted.size == 0)
            continue;
        if (cx_run_word_is_option(wanted)) {
            if (!has_option(argv, behind_first, wanted))
                return false;
        } else {
            /* The earliest one leaves the most for the rest, so nothing is tried twice. */
            while (next < argv->count && !word_matches(wanted, argv->items[next]))
                next++;
            if (next++ == argv->count)
                return false;
            if (first)
                behind_first = next;
        }
        first = false;
    }
    return !first; /* an action of nothing but empty words names nothing */
}

cx_status cx_run_action_matches(cx_str action, const cx_run_argv *argv, cx_arena *arena, bool *out,
                                cx_err *err)
{
    cx_run_lexed lexed;
    if (cx_run_word_trim(action).size == 0) {
        *out = false;
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_lex(action, arena, &lexed, err));
    /* What cannot be read cannot be ruled out (R1). */
    *out = lexed.rule != NULL || argv_matches(&lexed.argv, argv);
    return CX_SUCCESS;
}
