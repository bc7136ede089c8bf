/*
 * token.h - questions about one token of a command, for the rows of the command gate.
 */
#ifndef CX_RULES_TOKEN_H
#define CX_RULES_TOKEN_H

#include "rules/run.h"

/* The token without white space at its ends, including Unicode's; borrowed. */
cx_str cx_run_token_trim(cx_str token);
/* The part after the last '/', ignoring slashes at the end; borrowed. */
cx_str cx_run_token_base(cx_str token);
/* Equal ignoring case; tokens that are not ASCII are folded as paths are (path.h). */
bool cx_run_token_same(cx_str a, cx_str b);
static inline bool cx_run_token_is_option(cx_str token)
{
    return token.size > 1 && token.data[0] == '-';
}

/* A path whose components are normalised: without empty ones and '.', with '..' resolved. */
typedef struct cx_run_token_path {
    cx_str plain;  /* joined by '/'; empty when no component is left */
    bool absolute; /* it starts with '/' */
    bool escapes;  /* a '..' leads above its start; `plain` is then meaningless */
    bool dots;     /* it contains a '..' */
} cx_run_token_path;

/* Data of `plain` comes from the arena; CX_E_NOMEM only. */
CX_RESULT cx_run_token_as_path(cx_str token, cx_arena *arena, cx_run_token_path *out, cx_err *err);

#endif
