/*
 * mcp.h - an MCP client over lines (run.md §16): JSON-RPC 2.0, one message a line.
 *
 *     CX_TRY(cx_mcp_open(&options, &client, err));
 *     CX_TRY(cx_mcp_connect(client, deadline_ns, &end, err));    initialize .. tools/list
 *     CX_TRY(cx_mcp_call(client, tool, arguments, deadline_ns, arena, &result, err));
 *     cx_mcp_close(client);
 *
 * One call at a time.  While it waits, the server may send notifications, which are passed to the
 * host, and requests, which the host answers or which are rejected (-32601); `ping` is answered
 * here. A violation of the protocol by the server - malformed JSON, an unexpected answer, a line or
 * a session that is too long - ends the session with a message (cx_mcp_end); the client never
 * guesses.
 *
 *   M1  Ids of requests are numbers counted from 1; one is open at a time.  An answer with another
 *       id ends the session.
 *   M2  A message is an object with "jsonrpc":"2.0" and either a method (with an id: a request,
 *       without: a notification) or an id with exactly one of result and error.  Batches are
 *       invalid.
 *   M3  Time and bytes are limited for a whole step, so that neither many small messages nor one
 *       large one block the governor.
 *   M4  The session begins with initialize, as servers up to 2025-11-25 need it.  One that does not
 *       know it, or no such revision, is asked for the stateless one (server/discover): then every
 *       request names the revision, and what the server asks for comes as the result of a call,
 *       which is made again with the host's answers.
 */
#ifndef CX_AGENT_MCP_H
#define CX_AGENT_MCP_H

#include "base/api.h"
#include "rules/api.h"

#define CX_MCP_PROTOCOL "2025-11-25"
#define CX_MCP_STATELESS "2026-07-28"
#define CX_MCP_ROUNDS_MAX 16 /* of one call that asks the host */
#define CX_MCP_INPUTS_MAX 64 /* requests of one round */
#define CX_MCP_LINE_BYTES_MAX ((size_t)16 << 20)
#define CX_MCP_SESSION_BYTES_MAX CX_RUN_OUTPUT_BYTES_MAX /* of everything the server sends */
#define CX_MCP_PAGES_MAX 64                              /* of tools/list */
#define CX_MCP_TOOLS_MAX 4096

/* JSON-RPC 2.0 §5.1. */
enum { CX_MCP_E_METHOD = -32601, CX_MCP_E_PARAMS = -32602, CX_MCP_E_INTERNAL = -32603 };
/* MCP 2026-07-28: the revision is not supported. */
enum { CX_MCP_E_VERSION = -32022 };

/* The transport of lines: a pipe of spawn.h, or a table in tests. */
typedef struct cx_mcp_line_io {
    void *arg;
    /* `line` ends in '\n'. */
    cx_status (*send)(void *arg, cx_bytes line, uint64_t timeout_ms, cx_err *err);
    /* The next line without '\n', borrowed until the next call; *out_end when there is none.
     * CX_E_TIMEOUT, CX_E_LIMIT (longer than limit_bytes), CX_E_BUSY (cancelled). */
    cx_status (*receive)(void *arg, size_t limit_bytes, uint64_t timeout_ms, cx_str *out_line,
                         bool *out_end, cx_err *err);
} cx_mcp_line_io;

/* The host's answer to a request of the server. */
typedef struct cx_mcp_answer {
    bool refused;   /* an error `code`, `message` instead of `result` */
    int code;       /* CX_MCP_E_METHOD, .. */
    cx_str message; /* */
    cx_json result; /* an object */
} cx_mcp_answer;

typedef struct cx_mcp_host {
    void *arg;
    /* Every line, in both directions, without '\n', unchanged. May be NULL. */
    cx_status (*raw)(void *arg, cx_bytes line, cx_err *err);
    /* A request other than ping; NULL = all are rejected. `arena` is for the answer. */
    cx_status (*request)(void *arg, cx_str method, const cx_json *params, cx_arena *arena,
                         cx_mcp_answer *out, cx_err *err);
    /* A notification. May be NULL. */
    cx_status (*notified)(void *arg, cx_str method, const cx_json *params, cx_err *err);
} cx_mcp_host;

/* How a step ended.  Anything but OK ends the session. */
typedef enum cx_mcp_end_kind {
    CX_MCP_OK,
    CX_MCP_BROKEN,    /* the server violated the protocol, or ended */
    CX_MCP_TIMED_OUT, /* */
    CX_MCP_CANCELLED, /* */
    CX_MCP_TOO_MUCH   /* a line, or the session, is over its limit */
} cx_mcp_end_kind;

typedef struct cx_mcp_end {
    cx_mcp_end_kind kind;
    char message[256]; /* one sentence; empty when OK */
} cx_mcp_end;

typedef struct cx_mcp_options {
    const cx_alloc *alloc;
    const cx_io *io; /* its clock */
    cx_mcp_line_io lines;
    cx_mcp_host host;
    const char *client_name, *client_version;
} cx_mcp_options;

typedef struct cx_mcp cx_mcp;

/* The options' callbacks must live as long as the client.  Nothing is sent yet. */
CX_RESULT cx_mcp_open(const cx_mcp_options *options, cx_mcp **out, cx_err *err);
void cx_mcp_close(cx_mcp *client); /* NULL is fine */

/*
 * initialize and notifications/initialized, or server/discover (M4); tools/list with all its pages.
 * An error is of the client or the host (memory, evidence that cannot be written); the server's
 * behaviour is in *out.
 */
CX_RESULT cx_mcp_connect(cx_mcp *client, uint64_t timeout_ms, cx_mcp_end *out, cx_err *err);
/* Whether tools/list has the tool. */
bool cx_mcp_has_tool(const cx_mcp *client, cx_str name);
/* Whether the tool exists and its input schema requires this argument. */
bool cx_mcp_tool_requires(const cx_mcp *client, cx_str name, cx_str argument);

typedef struct cx_mcp_result {
    bool refused;              /* the server answered with an error: code, message */
    int64_t code;              /* */
    cx_str message;            /* */
    cx_json value;             /* else: the result, an object; in the arena */
    bool is_error;             /* of the tool: result.isError */
    cx_str text;               /* text of its content, joined by line feeds; may be empty */
    const cx_json *structured; /* result.structuredContent, NULL when absent */
} cx_mcp_result;

/* tools/call; `arguments` is an object. */
CX_RESULT cx_mcp_call(cx_mcp *client, cx_str tool, const cx_json *arguments, uint64_t timeout_ms,
                      cx_arena *arena, cx_mcp_result *result, cx_mcp_end *out, cx_err *err);

#endif
