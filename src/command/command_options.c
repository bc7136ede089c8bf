/*
 * command_options.c - options that are refused for programs of the allowlist (row C12 of the
 * command gate).
 *
 * Option parsers accept abbreviations of long names, so every prefix of a refused name is refused,
 * from one letter on: which prefixes are ambiguous depends on the version of the program, and an
 * ambiguous one fails anyway.  A prefix that is itself the name of another option is that option,
 * and is listed in EXACT.
 */
#include <string.h>

#include "command/command.h"

static const cx_run_refused_option REFUSED[] = {
    /* git: writes files, starts programs, or leaves the repository. */
    {"git", NULL, "output"},
    {"git", NULL, "output-directory"},
    {"git", NULL, "ext-diff"},
    {"git", NULL, "textconv"},
    {"git", NULL, "filters"},
    {"git", NULL, "no-index"},
    {"git", NULL, "open-files-in-pager"},
    {"git", NULL, "upload-pack"},
    {"git", NULL, "exec"},
    {"git", NULL, "exec-path"},
    {"git", NULL, "show-signature"},
    {"git", NULL, "git-dir"},
    {"git", NULL, "work-tree"},
    {"git", NULL, "remerge-diff"}, /* runs merge drivers */
    {"git", "rev-parse", "parseopt"},
    /* npm: runs the script of another package, or with another shell (nopt abbreviates). */
    {"npm", NULL, "script-shell"},
    {"npm", NULL, "shell"},
    {"npm", NULL, "node-options"},
    {"npm", NULL, "prefix"},
    {"npm", NULL, "userconfig"},
    {"npm", NULL, "globalconfig"},
    /* getopt_long: starts programs, or writes to any path. */
    {"sort", NULL, "compress-program"},
    {"sort", NULL, "output"},
    {"split", NULL, "filter"},
    {"tar", NULL, "checkpoint-action"},
    {"tar", NULL, "info-script"},
    {"tar", NULL, "new-volume-script"},
    {"tar", NULL, "rmt-command"},
    {"tar", NULL, "rsh-command"},
    {"tar", NULL, "to-command"},
    {"tar", NULL, "use-compress-program"},
};

/* Allowed names that are prefixes of refused ones. */
static const cx_run_refused_option EXACT[] = {
    {"git", "diff", "text"},
    {"git", "grep", "text"},
    {"git", "log", "text"},
    {"git", "show", "text"},
};

const cx_run_refused_option *cx_run_refused_options(size_t *out_count)
{
    *out_count = CX_COUNT_OF(REFUSED);
    return REFUSED;
}

static bool option_applies(const cx_run_refused_option *option, cx_str program, cx_str sub)
{
    return cx_str_is(program, option->program) &&
           (option->sub == NULL || cx_str_is(sub, option->sub));
}

static bool is_exact_option(cx_str program, cx_str sub, cx_str name)
{
    for (size_t i = 0; i < CX_COUNT_OF(EXACT); i++) {
        if (option_applies(&EXACT[i], program, sub) && cx_str_is(name, EXACT[i].name))
            return true;
    }
    return false;
}

/* "%G.." in a pretty format starts gpg. */
static bool asks_for_signatures(cx_str program, cx_str sub, cx_str token)
{
    if (!cx_str_is(program, "git") || cx_str_is(sub, "grep"))
        return false;
    for (size_t i = 0; i + 1 < token.size; i++) {
        if (token.data[i] == '%' && token.data[i + 1] == 'G')
            return true;
    }
    return false;
}

bool cx_run_option_refused(cx_str program, cx_str sub, cx_str token)
{
    CX_ASSERT(token.size == 0 || token.data != NULL);
    if (asks_for_signatures(program, sub, token))
        return true;
    if (token.size < 3 || memcmp(token.data, "--", 2) != 0)
        return false;
    cx_str name = cx_str_from(token.data + 2, token.size - 2);
    const char *equals = memchr(name.data, '=', name.size);
    if (equals != NULL)
        name.size = (size_t)(equals - name.data);
    if (name.size == 0 || is_exact_option(program, sub, name))
        return false;
    for (size_t i = 0; i < CX_COUNT_OF(REFUSED); i++) {
        if (option_applies(&REFUSED[i], program, sub) &&
            cx_str_starts(cx_str_z(REFUSED[i].name), name))
            return true;
    }
    return false;
}
