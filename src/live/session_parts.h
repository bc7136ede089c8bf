/*
 * session_parts.h - records and entries of a session, for session.c and take.c.
 */
#ifndef CX_LIVE_SESSION_PARTS_H
#define CX_LIVE_SESSION_PARTS_H

#include "crypto/api.h"
#include "live/session.h"

#define CX_LIVE_POLICY_KEY CX_STR("live/policy")
#define CX_LIVE_ASKED_PREFIX "live/asked/"
#define CX_LIVE_APPROVED_PREFIX "live/approved/"

typedef struct cx_live_key {
    uint8_t bytes[56];
    size_t size;
} cx_live_key;

cx_live_key cx_live_key_of(const char *prefix, const cx_digest *digest);
static inline cx_bytes cx_live_key_bytes(const cx_live_key *key)
{
    return cx_bytes_from(key->bytes, key->size);
}

CX_RESULT cx_live_session_encode(const cx_live_session *session, cx_arena *arena, cx_buf *out,
                                 cx_err *err);
CX_RESULT cx_live_put_text(cx_txn *txn, cx_bytes key, const cx_buf *text, cx_err *err);
CX_RESULT cx_live_put_session(cx_txn *txn, const cx_live_session *session, cx_err *err);
CX_RESULT cx_live_put_policy(cx_txn *txn, const cx_live_policy *policy, cx_err *err);

#endif
