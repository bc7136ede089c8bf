/*
 * role.h - the fifteen roles, the permissions of each, and chains of roles (run.md §4, §5, K12).
 *
 *   I1  Enumerators are in the order that comparisons rely on: roles in the order of a chain (K12),
 *       permissions from least to most.
 *   I2  Each enumerator has exactly one name, in one table of role.c; parsing is exact.
 */
#ifndef CX_CONTRACT_ROLE_H
#define CX_CONTRACT_ROLE_H

#include "rules/api.h"

/* In the order in which a chain hands over (K12). */
typedef enum cx_run_role {
    CX_ROLE_PM,
    CX_ROLE_TECH_LEAD,
    CX_ROLE_SEARCHER,
    CX_ROLE_RESEARCHER,
    CX_ROLE_UI_UX,
    CX_ROLE_FRONTEND,
    CX_ROLE_BACKEND,
    CX_ROLE_AI,
    CX_ROLE_SECURITY,
    CX_ROLE_INFRA,
    CX_ROLE_OPS,
    CX_ROLE_WORKER,
    CX_ROLE_REVIEWER,
    CX_ROLE_TEST,
    CX_ROLE_TEST_RUNNER,
    CX_ROLE_COUNT
} cx_run_role;

/* Exact, as contracts spell it; false for any other text. */
bool cx_run_role_parse(cx_str text, cx_run_role *out);
const char *cx_run_role_name(cx_run_role role);

typedef enum cx_run_pack {
    CX_PACK_NONE, /* ad-hoc `gate command` */
    CX_PACK_LOW,
    CX_PACK_MEDIUM,
    CX_PACK_HIGH,
    CX_PACK_COUNT
} cx_run_pack;

/* Exactly low, medium or high. */
bool cx_run_pack_parse(cx_str text, cx_run_pack *out);
const char *cx_run_pack_name(cx_run_pack pack); /* "" for none */
/* The pack of a contract that names none. */
cx_run_pack cx_run_role_pack(cx_run_role role);

/* Each from least to most permission; UNKNOWN is any other text. */
typedef enum cx_run_filesystem {
    CX_FS_READ_ONLY,
    CX_FS_WORKSPACE_WRITE,
    CX_FS_DANGER,
    CX_FS_UNKNOWN
} cx_run_filesystem;
typedef enum cx_run_shell {
    CX_SHELL_DENY,
    CX_SHELL_NEVER,
    CX_SHELL_UNTRUSTED,
    CX_SHELL_ON_REQUEST,
    CX_SHELL_UNKNOWN
} cx_run_shell;
typedef enum cx_run_network {
    CX_NETWORK_DENY,
    CX_NETWORK_ON_REQUEST,
    CX_NETWORK_ALLOW,
    CX_NETWORK_UNKNOWN
} cx_run_network;

/* Exact spelling, no trimming; a text without data (an absent member) is the least permission. */
cx_run_filesystem cx_run_filesystem_parse(cx_str text);
cx_run_shell cx_run_shell_parse(cx_str text);
cx_run_network cx_run_network_parse(cx_str text);
const char *cx_run_filesystem_name(cx_run_filesystem value); /* "?" for unknown ones */
const char *cx_run_shell_name(cx_run_shell value);
const char *cx_run_network_name(cx_run_network value);

/* The runner's settings for the shell (§5). */
typedef struct cx_run_shell_map {
    const char *error;           /* "invalid_shell", "invalid_network", or NULL */
    const char *approval_policy; /* NULL: the field is not sent */
    bool shell_tool;
    cx_run_network network; /* DENY false, ALLOW true, ON_REQUEST: after a signed approval */
} cx_run_shell_map;

cx_run_shell_map cx_run_shell_mapping(cx_str shell, cx_str network);

/* K12. NULL when the chain is valid, else one clause that says why not (static storage). */
const char *cx_run_handoff_fault(bool enabled, const cx_str *roles, size_t role_count, cx_str owner,
                                 cx_str assigned);

#endif
