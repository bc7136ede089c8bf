/*
 * session.h - browser sessions: after a token was presented once, a cookie identifies the browser.
 *
 * A page must not store a bearer token where a script could read it, so POST /api/v1/session turns
 * one into a session: 32 random bytes, sent to the browser as an HttpOnly cookie, stored here as
 * their SHA-256 together with the digest of the token.  A session never has more rights than its
 * token at that moment: revocation and expiry of the token end its sessions too.
 *
 * Sessions live in memory and end with the process.  Those of a part of a fleet are stored in it as
 * well, so that a browser goes on when another node takes the part: sessions.json (mode 0600) has
 * digests alone, and nothing of it is accepted as a cookie.
 *
 *     {"format":"cortex-sessions-1","sessions":[{"ends_at","id","token"}]}
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
    const char *path;  /* of the file; NULL = they are in memory only */
    cx_lock file_lock; /* of writers of the file; taken before `lock` */
    cx_lock lock;
    cx_session items[CX_SESSIONS_MAX];
    size_t count;
} cx_sessions;

void cx_sessions_init(cx_sessions *sessions, const cx_io *io);
void cx_sessions_done(cx_sessions *sessions);
/* Reads the sessions of the file, and stores all in it from now on; before any other call.  Without
 * a file there are none.  After a failure there are none either, and they are stored.  `path` lives
 * as long. */
CX_RESULT cx_sessions_keep(cx_sessions *sessions, const char *path, cx_err *err);
/* Thread-safe, as the next two.  The text is written nowhere else.  A session that cannot be stored
 * is none. */
CX_RESULT cx_sessions_begin(cx_sessions *sessions, const cx_digest *token,
                            char out_text[CX_SESSION_TEXT_SIZE + 1], cx_err *err);
/* The digest of its token; false when there is no such session, or its time is over. */
bool cx_sessions_find(cx_sessions *sessions, cx_str text, cx_digest *out_token);
/* After a failure it has ended here, and may come back with the file. */
CX_RESULT cx_sessions_end(cx_sessions *sessions, cx_str text, cx_err *err);

/* The value of a cookie in a Cookie header (RFC 6265 §5.4); data NULL = it is not there. */
cx_str cx_session_cookie(cx_str header, const char *name);

#endif
