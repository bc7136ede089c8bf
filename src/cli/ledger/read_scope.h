/*
 * read_scope.h - reading under a scope: `--scope FILE` and the keys that it is checked with.
 */
#ifndef CX_CLI_READ_SCOPE_H
#define CX_CLI_READ_SCOPE_H

#include "cli/ledger/ledger.h"

#define CX_CLI_OPTION_SCOPE_KEY                                                             \
    CX_CLI_OPT_MANY("key", 0, CX_CLI_TEXT, "AGENT=KEY",                                     \
                    "The public key of an agent: a verifier key, 64 hex digits or a file. " \
                    "May be repeated.")
#define CX_CLI_OPTIONS_SCOPE                                                                   \
    CX_CLI_OPT("scope", 0, CX_CLI_FILE, "FILE",                                                \
               "Read as the agent that this scope was granted to ('cortex scope make'): only " \
               "what it allows, as of its snapshot."),                                         \
        CX_CLI_OPTION_SCOPE_KEY

typedef struct cx_cli_keys {
    const cx_str *agents;
    const cx_pubkey *keys;
    size_t count;
} cx_cli_keys;

typedef struct cx_cli_scope {
    bool given;
    cx_bytes bytes;
    cx_cli_keys keys;
    cx_scope_use granted; /* set by cx_cli_scope_open */
} cx_cli_scope;

/* All --key AGENT=KEY. */
CX_RESULT cx_cli_read_keys(cx_cli *cli, const cx_cli_args *args, cx_cli_keys *out, cx_err *err);
/* Reads --scope and --key, before anything is open. */
CX_RESULT cx_cli_read_scope(cx_cli *cli, const cx_cli_args *args, cx_cli_scope *out, cx_err *err);
/* Checks a scope against the actor's snapshots and the keys; `presenter` empty = not checked. */
CX_RESULT cx_cli_check_scope(cx_cli_ledger *l, cx_bytes scope, const cx_cli_keys *keys,
                             cx_str presenter, cx_scope_use *out, cx_finding *out_finding,
                             cx_err *err);
/* The scope to read under, NULL when none was given; CX_E_DENIED with the reason as its tag when it
 * does not hold. */
CX_RESULT cx_cli_scope_open(cx_cli_ledger *l, cx_cli_scope *scope, const cx_scope_use **out,
                            cx_err *err);

#endif
