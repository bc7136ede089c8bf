/*
 * policy.h - what a session may do: from the repository's commit, from contracts, narrowed by
 * limits (docs/formats/live.md §3).
 *
 *   P1  A policy is read completely or not used: unknown and malformed members are errors.
 *   P2  A limit never allows what was not allowed before: modes rise, lists of paths shrink, lists
 *       of what is forbidden grow.
 */
#ifndef CX_LIVE_POLICY_H
#define CX_LIVE_POLICY_H

#include "contract/api.h"
#include "live/live.h"

#define CX_LIVE_POLICY_FILE "policies/live.json"
#define CX_LIVE_POLICY_BYTES_MAX ((size_t)1 << 20)

/* What happens with what nothing allows and nothing forbids. */
typedef enum cx_live_unlisted {
    CX_LIVE_UNLISTED_ASK,
    CX_LIVE_UNLISTED_SANDBOX, /* commands run by `cortex exec`, without network; others are asked */
    CX_LIVE_UNLISTED_DENY
} cx_live_unlisted;

typedef struct cx_live_rewrite {
    cx_str_list from, to; /* words at the beginning of a command */
} cx_live_rewrite;

/* At most so many calls a minute. */
typedef struct cx_live_rate {
    cx_str name; /* a server, or SERVER/TOOL */
    uint32_t per_minute;
} cx_live_rate;
#define CX_LIVE_RATE_MAX 6000

/* Paths to write: relative ones are of the repository.  `narrow` has every list that holds; a path
 * must be covered by one entry of each. */
typedef struct cx_live_paths {
    cx_str_list items;
} cx_live_paths;

struct cx_live_policy {
    cx_str from;      /* "built_in", "commit" */
    cx_str commit;    /* full id; empty = none */
    cx_digest sha256; /* of the policy file's bytes */
    cx_str root;      /* the work tree, absolute; else the folder the session began in */
    cx_live_mode mode;
    cx_live_unlisted unlisted;
    cx_str network; /* "deny", "on-request", "allow" */
    cx_str_list hosts;
    const cx_live_paths *write; /* each narrows; none = the whole work tree */
    size_t write_count;
    cx_str_list read_deny;
    cx_str_list tools_allow, tools_deny;
    cx_str_list tools_hide;    /* of MCP servers: the gateway does not show them */
    const cx_live_rate *rates; /* calls of MCP tools */
    size_t rate_count;
    const cx_str_list *allow; /* prefixes of commands */
    size_t allow_count;
    cx_str_list forbidden; /* actions */
    cx_str_list trusted_dirs;
    const cx_live_rewrite *rewrites;
    size_t rewrite_count;
    cx_str contract_task; /* empty = no contract */
    cx_digest contract_sha256;
    /* Not stored: what the caller knows. */
    cx_str data_directory, user_home, program;
};

/* Whether a list names an MCP server's tool: by the whole name that agents use, by its server, or
 * as SERVER/TOOL. */
bool cx_live_list_names_tool(cx_str_list list, cx_str whole, cx_str server, cx_str tool);

/* policies/live.json; `name` is for messages.  Lists of the batch policies are added by the loader.
 */
CX_RESULT cx_live_policy_read(cx_str text, const char *name, cx_arena *arena, cx_live_policy *out,
                              cx_err *err);
/* The policy of a folder: its repository's HEAD, or the built-in one outside of a repository. */
CX_RESULT cx_live_policy_load(cx_str folder, cx_arena *arena, cx_live_policy *out, cx_err *err);

/* As stored with the session, and back. */
CX_RESULT cx_live_policy_write(const cx_live_policy *policy, cx_arena *arena, cx_buf *out,
                               cx_err *err);
CX_RESULT cx_live_policy_stored(cx_str text, cx_arena *arena, cx_live_policy *out, cx_err *err);

/* A limit; members without data, or empty, limit nothing. */
typedef struct cx_live_limit {
    bool has_mode;
    cx_live_mode mode;
    cx_str network;
    cx_str_list paths;
    bool has_paths;
    cx_str_list tools_deny, forbidden;
    bool deny_unlisted;
    cx_str contract_task;   /* of a contract whose limits these are */
    cx_str_list hosts;      /* of its network_hosts; empty = it names none */
    cx_str_list tools_only; /* with a contract: allowed tools are those of both lists */
    cx_digest contract_sha256;
} cx_live_limit;

/* Narrows (P2).  CX_E_USAGE when a path is not well formed, or `mode` is lower than the present
 * one, or the network word is wider. */
CX_RESULT cx_live_policy_narrow(cx_live_policy *policy, const cx_live_limit *limit, cx_arena *arena,
                                cx_err *err);
/* The limit that a contract's file means. */
CX_RESULT cx_live_limit_of_contract(cx_str text, cx_arena *arena, cx_live_limit *out, cx_err *err);

#endif
