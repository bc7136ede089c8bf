/*
 * trust.h - the trust store: which keys may sign, for whom, and when (trace.md §4).
 *
 * A store is immutable: to change it, make a new one.  With an empty one every trace's key is
 * unknown.  Thread-safe.
 */
#ifndef CX_TRACE_TRUST_H
#define CX_TRACE_TRUST_H

#include "base/api.h"
#include "json/api.h"

#define CX_TRUST_KEYS_MAX 100000
#define CX_TRUST_KEY_ID_BYTES_MAX 256
#define CX_TRUST_AGENTS_MAX 10000

#define CX_TIME_NONE INT64_MIN

/* Absent texts have NULL data, absent times are CX_TIME_NONE; times are ns since 1970. */
typedef struct cx_trust_key {
    cx_str key_id;
    cx_pubkey key;
    const cx_str *agents; /* none = may sign for any agent */
    size_t agent_count;
    int64_t not_before, not_after; /* valid when not_before <= t < not_after */
    int64_t revoked_at;            /* by time of receipt */
    int64_t compromised_since;     /* by signing time */
    cx_str revoked_reason;
    cx_str replaces;
    cx_str chain_profile; /* "spec-1.0", "agent", or NULL data */
    cx_str description;
    cx_str added_by;
    int64_t added_at;
} cx_trust_key;

typedef struct cx_trust {
    const cx_trust_key *keys; /* by key_id, distinct */
    size_t count;
} cx_trust;

/* A file of format cortex-trust-1.  CX_E_FORMAT "BadTrust" names the pointer. */
CX_RESULT cx_trust_parse(cx_str text, cx_arena *arena, cx_trust *out, cx_err *err);
/* One key object, as in that file and in `trace.key` entries; `pointer` is named in errors.
 * Accepts both base64 alphabets; a wrong length is its own error ("KeyLength"). */
CX_RESULT cx_trust_key_parse(const cx_json *value, cx_str pointer, cx_arena *arena,
                             cx_trust_key *out, cx_err *err);
/* As a value, for writing; members that are absent are left out, except not_before, not_after,
 * revoked_at, replaces, which are null. */
CX_RESULT cx_trust_key_json(const cx_trust_key *key, cx_arena *arena, cx_json *out, cx_err *err);
/* NULL = unknown. */
const cx_trust_key *cx_trust_find(const cx_trust *trust, cx_str key_id);
/* A deep copy that borrows from nothing but the arena. */
CX_RESULT cx_trust_copy(const cx_trust *trust, cx_arena *arena, cx_trust *out, cx_err *err);
bool cx_trust_key_may_sign_for(const cx_trust_key *key, cx_str agent);
/* Not revoked, and within its time of validity: for what is presented now. */
bool cx_trust_key_is_current(const cx_trust_key *key, int64_t now_ns);
/* The current key with which an agent signs scopes: the one of that id, else one that is bound to
 * the agent by name. */
bool cx_trust_key_of_agent(const cx_trust *trust, cx_str agent, int64_t now_ns, cx_pubkey *out);

#endif
