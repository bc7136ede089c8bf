/*
 * mcpd.h - the ledger for agents and editors: a server of the Model Context Protocol, without its
 * transport (spec revisions 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28).
 *
 *     cx_mcpd_answer   one message in, at most one out
 *     cx_mcpd_inspect     what a message requests, for the caller that decides which thread answers
 *                         it
 *
 * `cortex mcp` carries messages as lines of the standard streams, POST /mcp over HTTP.  A tool is a
 * view of GET routes (mcpd_tools.c): its arguments, their schema, its rights and its answer are
 * those of the route, so that the command line, HTTP and MCP cannot disagree.
 *
 * Since 2026-07-28 there is no handshake: a request says its revision in `_meta`, and
 * `server/discover` what the server can do.  Both kinds of client are answered, also over one
 * connection.
 *
 *   M1  Without `writes` only routes of method GET are called; with it also those of
 *       mcpd_write.c, which write memories.
 *   M2  Each answer is bounded (CX_MCPD_SHOWN_MAX); a truncated one says so and how to continue.
 *   M3  A failed request is a result of the tool, with isError; errors of the protocol are for
 *       messages that violate it.
 */
#ifndef CX_SERVER_MCPD_H
#define CX_SERVER_MCPD_H

#include "server/service.h"

#define CX_MCPD_MESSAGE_MAX ((size_t)1 << 20) /* bytes of one message, or of one batch */
#define CX_MCPD_DEPTH_MAX 64
#define CX_MCPD_BATCH_MAX 64        /* messages in one batch */
#define CX_MCPD_SHOWN_DEFAULT 40000 /* bytes of one answer when max_bytes is absent */
#define CX_MCPD_SHOWN_MIN 1000
#define CX_MCPD_SHOWN_MAX 1000000

/* In the order they were published. */
typedef enum cx_mcpd_version {
    CX_MCPD_2024_11_05,
    CX_MCPD_2025_03_26,
    CX_MCPD_2025_06_18,
    CX_MCPD_2025_11_25, /* the last that begins with initialize */
    CX_MCPD_2026_07_28  /* stateless */
} cx_mcpd_version;
/* False for any other text. */
bool cx_mcpd_version_parse(cx_str text, cx_mcpd_version *out);

/* The answer of a route. */
typedef struct cx_mcpd_reply {
    unsigned status; /* of HTTP */
    cx_str body;
    cx_str log; /* what was written to the log meanwhile and may be shown; data NULL = nothing */
} cx_mcpd_reply;

typedef struct cx_mcpd_host {
    void *arg;
    /* Answers GET `target`; texts live in the arena.  An error means that the request could not
     * be made. */
    cx_status (*ask)(void *arg, cx_str target, cx_arena *arena, cx_mcpd_reply *out, cx_err *err);
    /* What the caller's token may do (CX_SCOPE_..): tools that need something else are not listed.
     * The routes check it again. */
    unsigned scopes;
    bool writes; /* offer tools that write */
    /* The same for POST, with a JSON body; NULL when `scopes` is 0. */
    cx_status (*post)(void *arg, cx_str target, cx_str body, cx_arena *arena, cx_mcpd_reply *out,
                      cx_err *err);
} cx_mcpd_host;

typedef struct cx_mcpd_session {
    cx_mcpd_version version;
    bool
        begun; /* initialize was answered; true from the start over HTTP, where each message is independent */
    /* Over HTTP the headers of a stateless request repeat what is in it; data NULL = absent. */
    bool is_http;
    cx_str http_version, http_method, http_name;
} cx_mcpd_session;
#define CX_MCPD_SESSION_INIT          \
    {                                 \
        .version = CX_MCPD_2025_03_26 \
    }

/*
 * Appends the answer to `message` as one line without its line end; nothing when no answer is due.
 * Whatever the message is, only lack of memory is an error.
 */
CX_RESULT cx_mcpd_answer(const cx_mcpd_host *host, cx_mcpd_session *session, cx_str message,
                         const cx_alloc *alloc, cx_buf *out, cx_err *err);
/* The answer to what is no message at all: JSON-RPC's codes, such as CX_MCPD_PARSE; id null. */
void cx_mcpd_error(cx_buf *out, int code, const char *why);
enum { CX_MCPD_PARSE = -32700, CX_MCPD_INVALID = -32600, CX_MCPD_BUSY = -32000 };

typedef enum cx_mcpd_kind {
    CX_MCPD_QUICK,    /* answered at once, from constants of the program */
    CX_MCPD_SLOW,     /* may read the ledger */
    CX_MCPD_CANCELLED /* the request `id` is not wanted any more */
} cx_mcpd_kind;
typedef struct cx_mcpd_inspected {
    cx_mcpd_kind kind;
    cx_str
        id; /* of a slow request, or of what is cancelled: its JSON, in the arena; empty = none */
} cx_mcpd_inspected;
/* Anything that cannot be read is quick. */
CX_RESULT cx_mcpd_inspect(cx_str message, cx_arena *arena, cx_mcpd_inspected *out, cx_err *err);

/* Implements `ask` of a host over a service: with the state of `worker` and the rights of
 * `token`. */
CX_RESULT cx_mcpd_get(cx_worker *worker, const cx_token *token, cx_str target, cx_arena *arena,
                      cx_mcpd_reply *out, cx_err *err);
/* .. and `post`. */
CX_RESULT cx_mcpd_post(cx_worker *worker, const cx_token *token, cx_str target, cx_str body,
                       cx_arena *arena, cx_mcpd_reply *out, cx_err *err);

#endif
