/*
 * session.h - browser sessions: after a token was presented once, a cookie identifies the browser.
 *
 * A page must not store a bearer token where a script could read it, so POST /api/v1/session turns
 * one into a session: 32 random bytes, sent to the browser as an HttpOnly cookie, stored here as
 * their SHA-256 together with the digest of the token.  A session never has more rights than its
 * token at that moment: revocation and expiry of the token end its sessions too.  Sessions live in
 * memory and end with the process.
 */
#ifndef CX_SERVER_SESSION_H
#define CX_SERVER_SESSION_H

#include "base/api.h"
#include "crypto/api.h"

#define CX_SESSIONS_MAX 256      /* the least recently used one is evicted */
#define CX_SESSION_SECONDS 43200 /* from its beginning: half a day */
#define CX_SESSION_TEXT_SIZE 43  /* base64url of 32 bytes */

typedef struct cx_session {
    cx_digest id;    /* SHA-256 of its text */
    cx_digest token; /* digest of the token that it represents */
    uint64_t ends_ns, used_ns;
} cx_session;

typedef struct cx_sessions {
    const cx_io *io;
    cx_lock lock;
    cx_session items[CX_SESSIONS_MAX];
    size_t count;
} cx_sessions;

void cx_sessions_init(cx_sessions *sessions, const cx_io *io);
void cx_sessions_done(cx_sessions *sessions);
/* Thread-safe, as the next two.  The text is written nowhere else. */
CX_RESULT cx_sessions_begin(cx_sessions *sessions, const cx_digest *token,
                            char out_text[CX_SESSION_TEXT_SIZE + 1], cx_err *err);
/* The digest of its token; false when there is no such session, or its time is over. */
bool cx_sessions_find(cx_sessions *sessions, cx_str text, cx_digest *out_token);
void cx_sessions_end(cx_sessions *sessions, cx_str text);

/* The value of a cookie in a Cookie header (RFC 6265 §5.4); data NULL = it is not there. */
cx_str cx_session_cookie(cx_str header, const char *name);

#endif
