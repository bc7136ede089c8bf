/*
 * lex.h - a command's text into words, exactly (run.md §8): the same words are judged, executed and
 * recorded.  Nothing of a shell is left in them: what a shell would interpret is refused.
 */
#ifndef CX_RULES_LEX_H
#define CX_RULES_LEX_H

#include "rules/run.h"

#define CX_RUN_COMMAND_BYTES_MAX 8192
#define CX_RUN_COMMAND_WORDS_MAX 256

/* `words[count]` is NULL; items and words are the same text, terminated, without NUL inside. */
typedef struct cx_run_argv {
    const cx_str *items;
    const char *const *words;
    size_t count;
} cx_run_argv;

typedef struct cx_run_lexed {
    const char *rule; /* NULL = words were found; else "C01" or "C02", static storage */
    const char *why;  /* with a rule: what was found, static storage */
    size_t offset;    /* with a rule: the byte it was found at */
    cx_run_argv argv; /* without a rule; may be empty */
} cx_run_lexed;

/* Fails only when memory runs out; what is wrong with the text is in `out`. */
CX_RESULT cx_run_lex(cx_str text, cx_arena *arena, cx_run_lexed *out, cx_err *err);

/* Words that exist already (a runner's argv of the configuration) as a cx_run_argv, copied. */
CX_RESULT cx_run_argv_make(const cx_str *words, size_t count, cx_arena *arena, cx_run_argv *out,
                           cx_err *err);
/* ["pytest","-q"] */
CX_RESULT cx_run_argv_json(const cx_run_argv *argv, cx_arena *arena, cx_json *out, cx_err *err);

#endif
