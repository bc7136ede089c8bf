/*
 * lex.h - splits a command's text into tokens, exactly (run.md §8): the same tokens are checked,
 * executed and recorded.  No shell runs them: text that a shell would interpret is rejected.
 */
#ifndef CX_RULES_LEX_H
#define CX_RULES_LEX_H

#include "rules/run.h"

#define CX_RUN_COMMAND_BYTES_MAX 8192
#define CX_RUN_COMMAND_TOKENS_MAX 256

/* `words[count]` is NULL; items and words are the same texts, terminated, without NUL inside. */
typedef struct cx_run_argv {
    const cx_str *items;
    const char *const *words;
    size_t count;
} cx_run_argv;

typedef struct cx_run_lexed {
    const char *rule; /* NULL = lexed; else "C01" or "C02", static storage */
    const char *why;  /* with a rule: what was found, static storage */
    size_t offset;    /* with a rule: the byte it was found at */
    cx_run_argv argv; /* without a rule; may be empty */
} cx_run_lexed;

/* Fails only for lack of memory; an error in the text is in `out`. */
CX_RESULT cx_run_lex(cx_str text, cx_arena *arena, cx_run_lexed *out, cx_err *err);

/* Copies a list of tokens (a runner's argv in the configuration) to a cx_run_argv. */
CX_RESULT cx_run_argv_make(const cx_str *words, size_t count, cx_arena *arena, cx_run_argv *out,
                           cx_err *err);
/* ["pytest","-q"] */
CX_RESULT cx_run_argv_json(const cx_run_argv *argv, cx_arena *arena, cx_json *out, cx_err *err);

#endif
