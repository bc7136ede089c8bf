/*
 * token.h - bearer tokens: which caller may do what (trace.md §11).
 *
 * A token is "cortex_" and 32 random bytes as base64url.  It is shown once and stored as its
 * SHA-256 in tokens.json of the data directory (mode 0600, replaced in one step):
 *
 *     {"format":"cortex-tokens-1","tokens":[{"created_at","expires_at","id","level","name",
 *      "scopes":["trace:read","trace:write"],"sha256"}]}
 *
 * A server reloads the file before it answers, at most CX_TOKENS_FRESH_MS after the file was
 * changed: new tokens work and revoked ones are rejected without a restart.  When the file cannot
 * be read, no token is accepted.
 */
#ifndef CX_SERVER_TOKEN_H
#define CX_SERVER_TOKEN_H

#include "base/api.h"
#include "trace/api.h"

enum {
    CX_SCOPE_WRITE = 1,
    CX_SCOPE_READ = 2,
    CX_SCOPE_KEYS = 4,
    CX_SCOPE_RUN_READ = 8,
    CX_SCOPE_RUN_START = 16,
    CX_SCOPE_RUN_APPROVE = 32,
    CX_SCOPE_MEMORY_WRITE = 64,
    CX_SCOPE_MEMORY_SCOPED = 128, /* only what the scopes that it presents allow */
    CX_SCOPE_HOOK = 256, /* what agents' hooks send; nothing else, and nothing is read with it */
    CX_SCOPE_SESSION_APPROVE = 512, /* answers and narrows sessions of agents */
    /* Writes as a program of the data directory's user: any actor, erasure (GET /api/v1/writer). */
    CX_SCOPE_HOME_WRITE = 1024,
    CX_SCOPES_ALL = 2047
};
/* "trace:write", "trace:read", "key:admin", "run:read", "run:start", "run:approve",
 * "memory:write", "memory:scoped", "hook", "session:approve", "home:write"; data NULL for a bit
 * without a scope. */
cx_str cx_scope_name(unsigned scope);
/* 0 = none of them. */
unsigned cx_scope_parse(cx_str text);

#define CX_TOKENS_MAX 10000
#define CX_TOKEN_NAME_MAX 64
#define CX_TOKEN_ID_SIZE 12
#define CX_TOKEN_TEXT_SIZE 50 /* "cortex_", 43 characters */
#define CX_TOKENS_FRESH_MS 20

typedef struct cx_token {
    char id[CX_TOKEN_ID_SIZE + 1];
    char name[CX_TOKEN_NAME_MAX + 1]; /* may be empty */
    unsigned scopes;
    cx_trace_level level; /* highest that may be read; with CX_SCOPE_READ */
    int64_t created_ns;
    int64_t expires_ns; /* CX_TIME_NONE = never */
    cx_digest digest;
} cx_token;

typedef struct cx_tokens {
    cx_token *items;
    size_t count;
} cx_tokens;

/* All tokens of a data directory, in the order of creation; an empty list when there is no file. */
CX_RESULT cx_tokens_read(const cx_io *io, const char *home_path, cx_arena *arena, cx_tokens *out,
                         cx_err *err);
/*
 * Creates and stores a token with the name, scopes, level and expires_ns of `wanted`.  `out_text`
 * is the only place where it is ever written in full; CX_E_EXISTS when the name is in use.  When
 * this or cx_token_revoke returns, every server of the data directory has seen the change.
 */
CX_RESULT cx_token_add(const cx_io *io, const char *home_path, const cx_token *wanted,
                       char out_text[CX_TOKEN_TEXT_SIZE + 1], cx_token *out, cx_err *err);
/* By id or name; CX_E_NOT_FOUND "NoToken".  When it returns, every server of the data directory
 * has seen it. */
CX_RESULT cx_token_revoke(const cx_io *io, const char *home_path, cx_str which, cx_token *out,
                          cx_err *err);
/* One token as an object for answers; never its digest. */
CX_RESULT cx_token_json(const cx_token *token, cx_arena *arena, cx_json *out, cx_err *err);

/* --- checking a request's token --------------------------------------------------------------- */

typedef struct cx_token_guard {
    const cx_io *io;
    const cx_alloc *alloc;
    const char *home_path; /* borrowed */
    cx_lock lock;
    cx_arena arenas[2]; /* the tokens in use, and space for the next ones */
    unsigned using;
    cx_tokens tokens;
    cx_digest seen; /* of the file */
    bool known;     /* the file was read */
    uint64_t looked_ns;
    bool only; /* there is no file: `one` is all there is */
    cx_token one;
} cx_token_guard;

void cx_token_guard_init(cx_token_guard *guard, const cx_io *io, const cx_alloc *alloc,
                         const char *home_path);
void cx_token_guard_done(cx_token_guard *guard);
/*
 * The token with this text; false when there is none, or it has expired.  All tokens are compared,
 * each in constant time.  Errors: the file cannot be read.  Thread-safe.
 */
CX_RESULT cx_token_guard_check(cx_token_guard *guard, cx_str text, cx_token *out, bool *out_known,
                               cx_err *err);
/* The same by the SHA-256 of its text, which a session keeps. */
CX_RESULT cx_token_guard_check_digest(cx_token_guard *guard, const cx_digest *digest, cx_token *out,
                                      bool *out_known, cx_err *err);
/* Accepts one token that no file stores, instead of those of a data directory: for a server of
 * one file. */
void cx_token_guard_only(cx_token_guard *guard, const cx_token *token);

/* The text of a new token: for cx_token_guard_only. */
CX_RESULT cx_token_make_text(const cx_io *io, char out_text[CX_TOKEN_TEXT_SIZE + 1],
                             cx_digest *out_digest, cx_err *err);

#endif
