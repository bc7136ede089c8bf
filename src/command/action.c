/*
 * action.c - row C07 of the command gate: does a command do what an action names? (run.md §8)
 *
 * An action is lexed like a command.  Its tokens must occur in that order with anything in between;
 * a token matches a whole token of the command or what follows its last '/', ignoring case.
 * Options are looked for anywhere after the first token, letters of a short cluster one by one.  A
 * path-like token (begins with '.', or has a '/') also matches parts of tokens, which are split at
 * '/', ':', '=' and ','.
 */
#include "command/command.h"
#include "rules/api.h"

static bool is_path_like(cx_str token)
{
    return token.size != 0 && (token.data[0] == '.' || memchr(token.data, '/', token.size) != NULL);
}

/* The next part of a token; *at moves past its separator. */
static bool next_part(cx_str token, const char *separators, size_t *at, cx_str *out)
{
    if (*at > token.size)
        return false;
    size_t end = *at;
    while (end < token.size && strchr(separators, token.data[end]) == NULL)
        end++;
    *out = cx_run_token_trim(cx_str_from(token.data + *at, end - *at));
    *at = end + 1;
    return true;
}

/* The same without empty parts and '.'. */
static bool next_named_part(cx_str token, const char *separators, size_t *at, cx_str *out)
{
    while (next_part(token, separators, at, out)) {
        if (out->size != 0 && !cx_str_is(*out, "."))
            return true;
    }
    return false;
}

static bool part_matches(cx_str action_token, cx_str part)
{
    if (cx_run_token_same(action_token, part))
        return true;
    /* .env also matches its variants, which hold secrets as well; .env.example is public by
     * convention. */
    return cx_run_token_same(action_token, CX_STR(".env")) && part.size > 5 &&
           cx_run_token_same(cx_str_from(part.data, 5), CX_STR(".env.")) &&
           !cx_run_token_same(part, CX_STR(".env.example"));
}

/* Whether the parts of `action_token` are consecutive parts of `token`. */
static bool parts_match(cx_str action_token, cx_str token)
{
    static const char separators[] = "/:=,";
    for (size_t start = 0; start <= token.size;) {
        size_t at = start, wanted_at = 0;
        cx_str want, part;
        bool any = false, good = true;
        while (good && next_named_part(action_token, "/", &wanted_at, &want)) {
            any = true;
            good = next_named_part(token, separators, &at, &part) && part_matches(want, part);
        }
        if (any && good)
            return true;
        if (!next_part(token, separators, &start, &part))
            break;
    }
    return false;
}

static bool token_matches(cx_str action_token, cx_str token)
{
    token = cx_run_token_trim(token);
    return cx_run_token_same(action_token, token) ||
           cx_run_token_same(action_token, cx_run_token_base(token)) ||
           (is_path_like(action_token) && parts_match(action_token, token));
}

/* A long option: "--hard" also matches "--hard=x". */
static bool has_long_option(const cx_run_argv *argv, size_t from, cx_str action_token)
{
    for (size_t i = from; i < argv->count; i++) {
        cx_str token = cx_run_token_trim(argv->items[i]);
        const char *equals = token.size == 0 ? NULL : memchr(token.data, '=', token.size);
        if (cx_run_token_same(action_token, token) ||
            (equals != NULL && cx_str_starts(token, CX_STR("--")) &&
             cx_run_token_same(action_token,
                               cx_str_from(token.data, (size_t)(equals - token.data)))))
            return true;
    }
    return false;
}

static bool has_short_option(const cx_run_argv *argv, size_t from, char letter)
{
    for (size_t i = from; i < argv->count; i++) {
        cx_str token = cx_run_token_trim(argv->items[i]);
        if (!cx_run_token_is_option(token) || token.data[1] == '-')
            continue;
        for (size_t k = 1; k < token.size; k++) {
            if (cx_run_token_same(cx_str_from(&letter, 1), cx_str_from(token.data + k, 1)))
                return true;
        }
    }
    return false;
}

static bool has_option(const cx_run_argv *argv, size_t from, cx_str action_token)
{
    if (action_token.data[1] == '-')
        return has_long_option(argv, from, action_token);
    for (size_t i = 1; i < action_token.size; i++) {
        if (!has_short_option(argv, from, action_token.data[i]))
            return false;
    }
    return true;
}

static bool action_matches_argv(const cx_run_argv *action, const cx_run_argv *argv)
{
    size_t next = 0, after_first = 0;
    bool first = true;
    for (size_t i = 0; i < action->count; i++) {
        cx_str action_token = cx_run_token_trim(action->items[i]);
        if (action_token.size == 0)
            continue;
        if (cx_run_token_is_option(action_token)) {
            if (!has_option(argv, after_first, action_token))
                return false;
        } else {
            /* Greedy: the earliest match leaves the most tokens for the rest, so no backtracking is
             * needed. */
            while (next < argv->count && !token_matches(action_token, argv->items[next]))
                next++;
            if (next++ == argv->count)
                return false;
            if (first)
                after_first = next;
        }
        first = false;
    }
    return !first; /* an action with only empty tokens matches nothing */
}

cx_status cx_run_action_matches(cx_str action, const cx_run_argv *argv, cx_arena *arena, bool *out,
                                cx_err *err)
{
    CX_ASSERT(argv->count == 0 || argv->items != NULL);
    cx_run_lexed lexed;
    if (cx_run_token_trim(action).size == 0) {
        *out = false;
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_lex(action, arena, &lexed, err));
    /* An action that cannot be lexed cannot be ruled out, so it matches (R1). */
    *out = lexed.rule != NULL || action_matches_argv(&lexed.argv, argv);
    return CX_SUCCESS;
}
