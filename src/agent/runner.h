/*
 * runner.h - the interface of runners: an agent that speaks MCP, a program, or a replayed script
 * (run.md §16).  The governor uses all of them through this interface.
 *
 * A runner starts what it needs inside the sandbox it is given, passes the prompt, and returns the
 * reply as bytes.  Requests of the agent meanwhile (approvals) go to the host, which is the
 * governor.
 *
 *     cx_runner_open .. start .. turn, turn, .. stop
 *
 * One runner serves one task, from one thread at a time.
 *
 *   I1  A runner checks nothing that a gate checks: reply, files and reference are left to the
 *       gates, whichever runner produced them.
 *   I2  Instruction, contract and schema of a prompt stay apart, in this order; nothing of a
 *       contract becomes part of the instruction (§6).
 *   I3  A reply has a message exactly when its end is not OK.
 */
#ifndef CX_AGENT_RUNNER_H
#define CX_AGENT_RUNNER_H

#include <stdatomic.h>

#include "agent/session.h"
#include "base/api.h"
#include "rules/api.h"

typedef struct cx_sandbox cx_sandbox;           /* sandbox/sandbox.h */
typedef struct cx_sandbox_spec cx_sandbox_spec; /* */

#define CX_RUNNER_NAME_MCP "mcp"
#define CX_RUNNER_NAME_EXEC "exec"
#define CX_RUNNER_NAME_SCRIPT "replay-script"

/* How the repository's configuration (config.h) describes one runner; everything borrowed. */
typedef struct cx_runner_settings {
    cx_str name;           /* one of the three above */
    cx_str profile;        /* the configured name, such as "codex"; may be empty */
    const cx_str *argv;    /* mcp: of the server; exec: the template; replay-script: none */
    size_t argv_count;     /* */
    const cx_str *env;     /* names of variables handed on from the governor's environment (R4) */
    size_t env_count;      /* */
    cx_str model;          /* empty = not sent */
    cx_str provider;       /* empty = none */
    const cx_json *config; /* mcp: the `config` argument of the tool; NULL = not sent */
    bool network;          /* it requires network access (§13) */
    uint32_t connect_ms;   /* mcp: for the handshake */
    uint32_t close_ms;     /* mcp: for the server to exit after its input ends */
    const char *script;    /* replay-script: the file */
    cx_str task_id;        /* replay-script: selects the turns in a file of several tasks */
} cx_runner_settings;

/* A permission that an agent requests during a turn (§5). */
typedef struct cx_runner_request {
    cx_str kind;            /* "exec", "patch", "sampling", or the method's name */
    cx_str command;         /* as shown by the agent; may be empty */
    const cx_json *details; /* the request's params, NULL = none */
} cx_runner_request;

/* The governor's callbacks for a runner. They may be called from start and turn only. */
typedef struct cx_runner_host {
    void *arg;
    /* A tool was used: becomes a TOOL_INVOCATION at once.  `payload` is an object with "tool". */
    cx_status (*tool)(void *arg, const cx_json *payload, cx_err *err);
    /* Whether the agent may do that. *out_granted false is the ordinary answer (§5). An error
     * (CX_E_DENIED) means that the request is a violation: the turn must end with that error. */
    cx_status (*ask)(void *arg, const cx_runner_request *request, bool *out_granted, cx_err *err);
    /* One raw line of the session, in either direction, without '\n': codex/<task>/events.jsonl. */
    cx_status (*raw)(void *arg, cx_bytes line, cx_err *err);
    /* A message, call or result of the conversation, for transcript.md; may be NULL. */
    cx_status (*item)(void *arg, const cx_session_item *item, cx_err *err);
} cx_runner_host;

#define CX_RUNNER_TOOLS_MAX 10000 /* tool calls of one turn */

/*
 * One turn. The governor assembles the prompt from three parts, each under its own heading:
 * instruction, contract, schema (I2).
 */
typedef struct cx_runner_turn {
    uint32_t attempt; /* 0, 1, .. */
    cx_str task_id;   /* of the original task, which the bundle's folders are named after */
    cx_str run_id;
    cx_str instruction;      /* fixed text: answer in JSON only */
    cx_str contract;         /* JSON, as stored in tasks/ */
    cx_str schema;           /* JSON: the schema of the reply */
    const char *prompt;      /* the three together, terminated, as they are sent */
    size_t prompt_size;      /* */
    const char *schema_path; /* the same schema as a file, for --output-schema and {schema}; it is
                                visible inside the sandbox under this path */
    const char *worktree;    /* absolute; cwd of the agent, same path inside the sandbox */
    const char *
        scratch; /* absolute, private, writable for the governor and the agent, deleted after the run: {output} is below it */
    cx_str sandbox_mode;    /* "read-only" or "workspace-write": codex's sandbox setting */
    cx_str approval_policy; /* "never", "on-request", "untrusted"; empty = not sent (§5) */
    bool shell_tool;        /* false: shell tools are to be disabled */
    cx_str thread_id;       /* continue that thread; empty = a new one */
    uint64_t timeout_ms;    /* for the whole turn */
    const char *
        program; /* argv[0] as the command gate resolved it (C16): the spec's `path`; NULL without argv */
    const cx_sandbox *box;          /* where its processes run: cx_sandbox_run, cx_sandbox_start */
    const cx_sandbox_spec *sandbox; /* copy it, then set path, argv, input and outputs */
    const atomic_bool *cancel;      /* turned true: end soon, with CX_E_BUSY "Cancelled" */
    cx_arena *arena;                /* of the reply */
} cx_runner_turn;

typedef enum cx_runner_end {
    CX_RUNNER_OK,
    CX_RUNNER_FAILED,    /* it failed, or violated its protocol */
    CX_RUNNER_TIMED_OUT, /* it was killed at the timeout */
    CX_RUNNER_CANCELLED,
    CX_RUNNER_VIOLATED /* it requested what the contract forbids (§5 deny) */
} cx_runner_end;

typedef struct cx_runner_reply {
    cx_runner_end end;
    cx_str message; /* why, when not OK: one sentence */
    cx_bytes body;  /* the agent's final reply, unchanged: the output gate checks it (§6) */
    cx_str thread_id;
    cx_str summary;         /* one line for the transcript; may be empty */
    const cx_json *session; /* cx_session_counts_json; NULL: it printed no known records */
} cx_runner_reply;

typedef struct cx_runner cx_runner;
struct cx_runner {
    cx_str name;
    /* For the gates, before anything starts: tools that must be in mcp_tools and integrations
     * (§13), and the program that will be started (checked by the command gate; none for a script).
     * */
    const cx_str *tools;
    size_t tool_count;
    const cx_str *argv;
    size_t argv_count;
    bool network;
    cx_str thread_id; /* if known before the first turn (a script's); else empty */
    /* Starts processes, handshake, list of tools; `turn` is the first turn, which is passed to
     * `turn` afterwards. */
    cx_status (*start)(cx_runner *self, const cx_runner_host *host, const cx_runner_turn *turn,
                       cx_err *err);
    /* An error is of this program (memory, disk); the agent's behaviour is in `out->end`. */
    cx_status (*turn)(cx_runner *self, const cx_runner_host *host, const cx_runner_turn *turn,
                      cx_runner_reply *out, cx_err *err);
    /* Ends and frees everything; may be called before start. */
    void (*stop)(cx_runner *self);
};

/* By settings->name; CX_E_UNSUPPORTED for another name.  The runner borrows the settings. */
CX_RESULT cx_runner_open(const cx_runner_settings *settings, const cx_alloc *alloc, const cx_io *io,
                         cx_runner **out, cx_err *err);

/* The three runners, each in its own file. */
CX_RESULT cx_runner_script_open(const cx_runner_settings *settings, const cx_alloc *alloc,
                                const cx_io *io, cx_runner **out, cx_err *err);
CX_RESULT cx_runner_exec_open(const cx_runner_settings *settings, const cx_alloc *alloc,
                              const cx_io *io, cx_runner **out, cx_err *err);
CX_RESULT cx_runner_mcp_open(const cx_runner_settings *settings, const cx_alloc *alloc,
                             const cx_io *io, cx_runner **out, cx_err *err);

#endif
