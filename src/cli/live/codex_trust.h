/*
 * codex_trust.h - Codex runs a hook that its user has reviewed: the hash of what was reviewed is in
 * its config.toml, and `codex app-server` says which hooks it has and whether it trusts them.
 *
 *   T1  The hash is Codex's own; it is never computed here.
 *   T2  A config.toml is changed line by line and asked about afterwards: when Codex does not then
 *       trust exactly our hooks, the old text is put back.
 */
#ifndef CX_CLI_LIVE_CODEX_TRUST_H
#define CX_CLI_LIVE_CODEX_TRUST_H

#include "cli/live/agent_file.h"

#define CX_CODEX_HOOKS_MAX 64

typedef struct cx_codex_hook {
    cx_str key;  /* "FILE:pre_tool_use:0:0" */
    cx_str hash; /* "sha256:.." */
    bool trusted;
} cx_codex_hook;

/* Ours, of the user's file; texts are in the arena. */
typedef struct cx_codex_hooks {
    cx_codex_hook items[CX_CODEX_HOOKS_MAX];
    size_t ours, trusted;
} cx_codex_hooks;

/* Asks `program`, for at most 30 s. */
CX_RESULT cx_codex_hooks_ask(cx_cli *cli, const char *program, cx_codex_hooks *out, cx_err *err);

/* Appends config.toml with the hashes of `hooks` set; `without` takes their sections out
 * instead. */
CX_RESULT cx_codex_trust_text(cx_str text, const cx_codex_hooks *hooks, bool without, cx_buf *out,
                              cx_err *err);

/* Whether all hooks of ours are trusted; when not, and with `home` (the data directory), their
 * hashes are written into config.toml and what was there is stored.  *out_message is a sentence. */
CX_RESULT cx_codex_trust_ours(cx_cli *cli, const char *program, const char *home,
                              cx_str *out_message, bool *out_trusted, cx_err *err);
/* Takes them out of config.toml again; nothing when they were not written by us. */
CX_RESULT cx_codex_trust_undo(cx_cli *cli, const char *home, cx_err *err);

#endif
