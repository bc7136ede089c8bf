/*
 * config.h - `policies/cortex.json`: how runs of a repository are executed.
 *
 * Read from the baseline commit, never from a work tree; a repository without policies uses the
 * built-in ones.  docs/formats/run-config.md describes each member.  Everything is borrowed from
 * the arena it was loaded into.
 *
 *   I1  A configuration is read completely or not used: an unknown or malformed member is an error.
 *   I2  default_runner and every role_runners entry name one of `runners`.
 */
#ifndef CX_CONTRACT_CONFIG_H
#define CX_CONTRACT_CONFIG_H

#include "contract/role.h"

typedef struct cx_str_list {
    const cx_str *items;
    size_t count;
} cx_str_list;

bool cx_str_list_has(cx_str_list words, cx_str word); /* byte-exact */

typedef enum cx_run_runner_kind { CX_RUNNER_MCP, CX_RUNNER_EXEC } cx_run_runner_kind;

/* One member of `runners`. */
typedef struct cx_run_runner_config {
    cx_str name;
    cx_run_runner_kind kind;
    cx_str_list
        argv;        /* of the server, or the template for exec: {cwd} {schema} {thread} {output} */
    cx_str_list env; /* names passed on in addition to those of R4 */
    cx_str model;    /* empty: not sent */
    bool needs_network;   /* the agent talks to a service (§13 network) */
    cx_str_list provides; /* MCP tools that the runner includes and that need no other server */
    const cx_json *sent;  /* mcp: `config` of the codex tool; NULL when absent */
    uint32_t connect_sec; /* default 20 */
    uint32_t close_sec;   /* default 5 */
} cx_run_runner_config;

/* One member of `integrations`: a tool and the program that implements it (§13 integrated). */
typedef struct cx_run_integration {
    cx_str tool;
    cx_str_list argv;
    cx_str sha256;  /* of the executable, lower-case hex; may be empty when version is not */
    cx_str version; /* what `argv[0] --version` prints on its first line */
} cx_run_integration;

typedef struct cx_run_config_limits {
    uint64_t changed_paths; /* D15: 10,000 */
    uint64_t changed_bytes; /* D15: 64 MiB */
    uint64_t output_bytes;  /* of one stream of one process: 64 MiB */
    uint64_t file_bytes;    /* RLIMIT_FSIZE in a sandbox: 1 GiB */
    uint64_t
        memory_bytes; /* of one process, and of a whole sandbox where control groups are delegated: 4 GiB; UINT64_MAX (null): none */
    uint32_t processes;         /* of a sandbox: 256 */
    uint32_t open_files;        /* of a process: 1024 */
    uint32_t command_sec;       /* the maximum for one command: 3600 */
    uint32_t approval_wait_sec; /* 0: not waiting */
    uint32_t lock_ttl_sec;      /* 900; 0: no lease */
} cx_run_config_limits;

typedef struct cx_run_config {
    bool mcp_only;         /* runner.mcp_only, true when absent */
    cx_str default_runner; /* runner.default: a name of `runners`, "mcp" when absent */
    const cx_run_runner_config *runners;
    size_t runner_count;
    cx_str role_runners[CX_ROLE_COUNT]; /* roles.PM = "planner"; empty: the default runner */
    const cx_run_integration *integrations;
    size_t integration_count;
    cx_str_list trusted_dirs; /* absolute; /usr/local/bin /usr/bin /bin */
    bool has_trusted_uid;     /* besides root */
    uint32_t trusted_uid;
    cx_str_list env;               /* R4: names passed to every process */
    cx_str_list read_only;         /* absolute paths that sandboxes also see, read-only */
    cx_str_list test_dependencies; /* folders of the main checkout that tests see, read-only */
    cx_str approvers_path;         /* relative to the repository */
    cx_str approvers_sha256;       /* lower-case hex; empty: no approvals are possible */
    cx_str main_branch;            /* "main" */
    cx_str mcp_concurrency;        /* data NULL: absent */
    cx_run_config_limits limits;
} cx_run_config;

/* The configuration without a file. */
void cx_run_config_default(cx_run_config *out);

/* `text` is the file.  CX_E_FORMAT, CX_E_SYNTAX, .. with a message that names the member (I1). */
CX_RESULT cx_run_config_read(cx_str text, cx_arena *arena, cx_run_config *out, cx_err *err);

/* NULL when there is none of that name. "app_server" is a synonym of "app-server". */
const cx_run_runner_config *cx_run_config_runner(const cx_run_config *config, cx_str name);
const cx_run_integration *cx_run_config_integration(const cx_run_config *config, cx_str tool);

#endif
