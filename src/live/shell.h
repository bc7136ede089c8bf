/*
 * shell.h - takes a shell's command line apart into simple commands, without running or expanding
 * anything (live.h L5).
 *
 *   S1  Every simple command of the line is in the result, those inside of substitutions too; what
 *       cannot be taken apart is said in `why`, and the caller allows nothing then.
 *   S2  A word whose value depends on the shell's state is `opaque`, and its text is as written.
 */
#ifndef CX_LIVE_SHELL_H
#define CX_LIVE_SHELL_H

#include "base/api.h"

#define CX_SHELL_BYTES_MAX ((size_t)64 << 10)
#define CX_SHELL_COMMANDS_MAX 64
#define CX_SHELL_WORDS_MAX 1024 /* of a line */
#define CX_SHELL_DEPTH_MAX 8

typedef struct cx_shell_word {
    cx_str text; /* without quotes */
    bool opaque; /* has an expansion */
    bool glob;   /* has an unquoted *, ? or [ */
} cx_shell_word;

typedef struct cx_shell_redirect {
    bool write;
    cx_shell_word to;
} cx_shell_redirect;

typedef struct cx_shell_command {
    const cx_shell_word *words;
    size_t count;
    const cx_shell_redirect *redirects;
    size_t redirect_count;
    bool assigns;       /* variables are set before it */
    cx_str here;        /* text of a here-document; data NULL = none */
    bool input_expands; /* a here-document or here-string has what the shell expands */
    /* The shell that runs it, 0 the line's own, and those around it: each "(..)" and each
     * substitution is one of its own.  A `cd` counts for what its own shell runs afterwards. */
    unsigned shells[CX_SHELL_DEPTH_MAX];
    /* Of each of them: commands of one shell and chain are joined by && and | alone. */
    unsigned chains[CX_SHELL_DEPTH_MAX];
    unsigned depth; /* index of its own */
    bool piped;     /* next to a "|": shells differ in whether they run it themselves */
    bool inverted;  /* after a "!": what follows by && runs when it fails */
} cx_shell_command;

typedef struct cx_shell_line {
    const cx_shell_command *commands;
    size_t count;
    const char *why; /* what cannot be taken apart; NULL = nothing; static storage */
    size_t offset;   /* of it */
} cx_shell_line;

/* CX_E_NOMEM only. */
CX_RESULT cx_shell_split(cx_str text, cx_arena *arena, cx_shell_line *out, cx_err *err);

/* Appends a word so that a shell reads it back as it is, after a space when `out` has something. */
void cx_shell_add_word(cx_buf *out, cx_str word);

#endif
