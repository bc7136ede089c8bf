/*
 * live.h - one call of a tool, as a coding agent's hook describes it: what it would do, whether it
 * may, and the answer in the agent's own form (docs/formats/live.md).
 *
 *     cx_live_call_read      the hook's JSON becomes a call
 *     cx_live_decide         what the call would do, each effect against the policy
 *     cx_live_take           all of it: state, decision, entry on the disk, answer
 *
 *   L1  What cannot be read, recognised or checked is not allowed; only mode `observe` lets it
 *       pass, and its entry says so.
 *   L2  The entry of a decision is on the disk before the answer exists.
 *   L3  A session's policy is read once, from a commit, and recorded; afterwards limits only narrow
 *       it.
 *   L4  An effect that is forbidden outweighs one that needs an approval, which outweighs one that
 *       is allowed.
 *   L5  Nothing of a call is run or followed to find out what it does.
 */
#ifndef CX_LIVE_LIVE_H
#define CX_LIVE_LIVE_H

#include "json/api.h"
#include "ledger/api.h"

#define CX_LIVE_INPUT_MAX ((size_t)16 << 20) /* of a hook's JSON */
#define CX_LIVE_KEPT_MAX ((size_t)64 << 10)  /* of a tool's input in an entry */
#define CX_LIVE_SESSION_BYTES_MAX 128        /* of an agent's session id */
#define CX_LIVE_REASON_BYTES_MAX 2000
#define CX_LIVE_EFFECTS_MAX 64

typedef enum cx_live_agent {
    CX_LIVE_CLAUDE,
    CX_LIVE_CODEX,
    CX_LIVE_GEMINI,
    CX_LIVE_CURSOR,
    CX_LIVE_COPILOT,
    CX_LIVE_MCP, /* the gateway: no hook of an agent, but its calls are decided alike */
    CX_LIVE_AGENT_COUNT
} cx_live_agent;
/* "claude-code", "codex", "gemini", "cursor", "copilot", "mcp": in entries and actors. */
const char *cx_live_agent_name(cx_live_agent agent);
/* The word on the command line, too ("claude"); CX_LIVE_AGENT_COUNT when it is none. */
cx_live_agent cx_live_agent_parse(cx_str word);

typedef enum cx_live_mode { CX_LIVE_OBSERVE, CX_LIVE_ASK, CX_LIVE_ENFORCE } cx_live_mode;
const char *cx_live_mode_name(cx_live_mode mode);
bool cx_live_mode_parse(cx_str word, cx_live_mode *out);

typedef enum cx_live_event {
    CX_LIVE_OTHER,
    CX_LIVE_START,
    CX_LIVE_END,
    CX_LIVE_PROMPT,
    CX_LIVE_BEFORE,     /* a tool is about to be called: the answer counts */
    CX_LIVE_PERMISSION, /* the agent is about to ask its person */
    CX_LIVE_AFTER,
    CX_LIVE_FAILED,
    CX_LIVE_CONFIG, /* the agent's configuration changed */
    CX_LIVE_SUBAGENT
} cx_live_event;

/* Texts and values are borrowed from the JSON and its arena; absent ones have no data. */
typedef struct cx_live_call {
    cx_live_agent agent;
    cx_live_event event;
    cx_str event_name; /* as the agent writes it */
    cx_str session, cwd, transcript;
    cx_str id; /* of the call; Gemini and Copilot send none */
    cx_str tool;
    const cx_json *input; /* an object; NULL when there is none */
    cx_digest input_sha256;
    uint64_t input_bytes; /* of its canonical text */
    const cx_json *output;
    cx_str subagent, subagent_type;
    cx_str permission_mode;
    cx_str source, reason; /* of a start, of an end */
    cx_str mcp_server;     /* of a tool of an MCP server, where the agent says it */
    cx_str path;           /* of a configuration */
    cx_str prompt;
    bool flat; /* Copilot's camelCase form: it is answered alike */
} cx_live_call;

/*
 * Reads a hook's JSON (a byte-order mark before it is skipped).  CX_E_SYNTAX, CX_E_FORMAT,
 * CX_E_LIMIT with what was found, where, and what was expected.
 */
CX_RESULT cx_live_call_read(cx_live_agent agent, cx_str text, cx_arena *arena, cx_live_call *out,
                            cx_err *err);
/* Its agent, event and event_name alone: also of a body with other faults. */
CX_RESULT cx_live_call_event(cx_live_agent agent, cx_str text, cx_arena *arena, cx_live_call *out,
                             cx_err *err);
/* SHA-256 and size of the canonical text (CX_JSON_PY_COMPACT) of a tool's input; NULL is {}. */
CX_RESULT cx_live_input_digest(const cx_json *input, cx_digest *out, uint64_t *out_bytes,
                               cx_err *err);

/* --- what a call would do --------------------------------------------------------------------- */

typedef enum cx_live_effect_kind {
    CX_LIVE_NOTHING, /* it reaches nothing outside of the conversation */
    CX_LIVE_COMMAND,
    CX_LIVE_READ,
    CX_LIVE_WRITE,
    CX_LIVE_HOST,
    CX_LIVE_TOOL, /* of an MCP server */
    CX_LIVE_AGENT_START,
    CX_LIVE_UNKNOWN /* a tool that is not known, or a command that cannot be taken apart */
} cx_live_effect_kind;
const char *cx_live_effect_name(cx_live_effect_kind kind);

/* In the order of weight (L4). */
typedef enum cx_live_verdict {
    CX_LIVE_ALLOW,
    CX_LIVE_UNLISTED, /* nothing allows it, nothing forbids it */
    CX_LIVE_FORBIDDEN
} cx_live_verdict;

typedef struct cx_live_effect {
    cx_live_effect_kind kind;
    cx_live_verdict verdict;
    cx_str text;      /* the command, the path, the host, the tool */
    const char *rule; /* of live.md §4 or a row of the command gate; static storage */
    cx_str why;       /* one sentence; empty when allowed */
} cx_live_effect;

typedef struct cx_live_decision {
    cx_live_verdict verdict;
    const char *rule; /* of the first effect with that verdict; "L00" when all are allowed */
    cx_str why;
    const cx_live_effect *effects;
    size_t effect_count;
    cx_str rewrite; /* a command to run in its place; data NULL = none */
} cx_live_decision;

typedef struct cx_live_policy cx_live_policy;

/* Decides by the policy alone; nothing is recorded.  A verdict is not an error. */
CX_RESULT cx_live_decide(const cx_live_policy *policy, const cx_live_call *call, cx_arena *arena,
                         cx_live_decision *out, cx_err *err);

/* --- all of it -------------------------------------------------------------------------------- */

/* What was answered. */
typedef enum cx_live_answer_kind {
    CX_LIVE_PASS, /* no objection */
    CX_LIVE_DENY,
    CX_LIVE_ASKED,    /* the agent asks its person */
    CX_LIVE_REWRITTEN /* another input runs */
} cx_live_answer_kind;
const char *cx_live_answer_name(cx_live_answer_kind kind);

typedef struct cx_live_options {
    cx_live_agent agent;
    cx_live_mode mode;     /* the least; the policy and limits may ask for more */
    bool fail_open;        /* recorded with each decision */
    const char *via;       /* "process", "server", "mcp-gateway"; static storage */
    const char *home;      /* the data directory: never to be written by a call */
    const char *user_home; /* HOME; NULL = unknown */
    const char *program;   /* absolute path of this program, for rewrites into its sandbox */
    uint64_t wait_ms;      /* for an approval by others, where the agent cannot ask its person */
    bool over_http;        /* the answer is JSON, or nothing: no exit code, no standard error */
    /* What the caller has found out about the call; it counts like the effects of the policy. */
    const cx_live_effect *found;
    size_t found_count;
} cx_live_options;

typedef struct cx_live_outcome {
    cx_live_answer_kind answer;
    cx_str session; /* of the call */
    cx_str actor;   /* whose journal has it */
    uint64_t seq;   /* of the entry */
    cx_live_event event;
    cx_digest input_sha256;    /* of a call */
    cx_live_decision decision; /* likewise */
    /* What the agent gets: to standard output, one line to standard error, and the exit code.  Over
     * HTTP: `out` is the body, empty for no objection; the others are empty and 0. */
    cx_str out, complaint;
    int exit_code;
} cx_live_outcome;

/*
 * Reads, decides, records and answers one event of a hook.  Errors are the ledger's and of input
 * that cannot be read: the caller answers with cx_live_answer_failure.
 */
CX_RESULT cx_live_take(cx_home *home, const cx_live_options *options, cx_str text, cx_arena *arena,
                       cx_live_outcome *out, cx_err *err);

/* The same for a call that did not come as a hook's JSON; its digest is set. */
CX_RESULT cx_live_take_call(cx_home *home, const cx_live_options *options, const cx_live_call *call,
                            cx_arena *arena, cx_live_outcome *out, cx_err *err);

/* One line that says why, for the model, with the command that approves what is asked; data NULL
 * when memory ran out. */
cx_str cx_live_reason(const cx_live_call *call, const cx_live_outcome *out, cx_arena *arena);

/* The answer when there is no decision: "no", or no objection with `fail_open`. */
void cx_live_answer_failure(cx_live_agent agent, bool fail_open, const cx_err *why, cx_arena *arena,
                            cx_live_outcome *out);
/*
 * The same over HTTP: "no" in JSON, for what the hook's body says that it is about.  `*out_decided`
 * false: the event asks for no decision, and `out` has no answer.  A body that cannot be read is
 * taken for a call of a tool.
 */
CX_RESULT cx_live_answer_failure_http(cx_live_agent agent, cx_str body, bool fail_open,
                                      cx_str reason, cx_arena *arena, bool *out_decided,
                                      cx_live_outcome *out, cx_err *err);

#endif
