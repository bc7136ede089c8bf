/*
 * token.h - questions about one word of a command, for the rows of the command gate.
 */
#ifndef CX_RULES_TOKEN_H
#define CX_RULES_TOKEN_H

#include "rules/run.h"

/* Without white space around it, Unicode's included; borrowed. */
cx_str cx_run_token_trim(cx_str token);
/* What stands behind the last '/', slashes at the end not counted; borrowed. */
cx_str cx_run_token_base(cx_str token);
/* Equal whatever the case; words that are not ASCII are compared as paths fold (path.h). */
bool cx_run_token_same(cx_str a, cx_str b);
static inline bool cx_run_token_is_option(cx_str token)
{
    return token.size > 1 && token.data[0] == '-';
}

/* A path's components after dropping empty ones and '.', and taking back what '..' takes back. */
typedef struct cx_run_token_path {
    cx_str plain;  /* joined again by '/'; empty when nothing is left */
    bool absolute; /* it began with '/' */
    bool escapes;  /* a '..' led above where it began; `plain` is then of no use */
    bool dots;     /* it had a '..' at all */
} cx_run_token_path;

/* Data of `plain` comes from the arena; CX_E_NOMEM only. */
CX_RESULT cx_run_token_as_path(cx_str token, cx_arena *arena, cx_run_token_path *out, cx_err *err);

#endif
