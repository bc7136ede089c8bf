/*
 * pending.h - keys that registered themselves, and what they signed, until a person decides
 * (trace.md §4.6).
 *
 * They wait in HOME/pending.db, apart from the ledger and the index: nothing in it is in any
 * journal, root, score or query.  An approved key moves to the trust store, and what waited is
 * judged and recorded like every other batch, in the order of arrival.  A rejected key is
 * remembered, so that it does not ask again at each start of its agent.
 *
 *   P1  A key id has at most one pending public key.
 *   P2  An event waits only under a pending key, whose signature it has, so that no one can fill
 *       the share of another's key.
 *   P3  The limits hold after every transaction; what exceeds them is refused as a whole, before
 *       anything of the request is stored.
 *   P4  A call that returns without an error is durable.
 *
 * Thread-safe, and safe between processes.
 */
#ifndef CX_RECORDER_PENDING_H
#define CX_RECORDER_PENDING_H

#include "base/api.h"
#include "recorder/internal.h"

/* Limits (P3). */
#define CX_PENDING_KEYS_MAX 100
#define CX_PENDING_KEYS_PER_ADDRESS_MAX 10
#define CX_PENDING_REJECTED_MAX 1000
#define CX_PENDING_EVENTS_PER_KEY_MAX 1000
#define CX_PENDING_BYTES_PER_KEY_MAX (INT64_C(8) << 20)
#define CX_PENDING_BYTES_MAX (INT64_C(64) << 20)

typedef struct cx_pending cx_pending;

/* `path` is that of the data directory; nothing is opened before it is needed. */
CX_RESULT cx_pending_new(const cx_alloc *alloc, const char *home_path, cx_pending **out,
                         cx_err *err);
void cx_pending_free(cx_pending *pending); /* NULL is fine */

/* Registers a key; `*out_new` false: it was pending already.  CX_E_CONFLICT "KeyConflict": the id
 * has another pending key; CX_E_DENIED "KeyRejected"; CX_E_LIMIT "PendingFull". */
CX_RESULT cx_pending_add_key(cx_pending *pending, const cx_trust_key *key, cx_str address,
                             bool loopback, int64_t now_ns, bool *out_new, cx_err *err);
/* The pending keys as a trust store, sorted by id. */
CX_RESULT cx_pending_trust(cx_pending *pending, cx_arena *arena, cx_trust *out, cx_err *err);

/* One event that waits. */
typedef struct cx_pending_event {
    cx_str key_id;
    cx_digest content;
    cx_trace_level level; /* of the event in the batch; CX_LEVEL_ABSENT */
    bool connectivity;
    cx_bytes trace;
} cx_pending_event;
/* All of them or none.  CX_E_LIMIT "PendingFull"; CX_E_BUSY "KeyDecided": a key of them was
 * approved or rejected meanwhile. */
CX_RESULT cx_pending_add_events(cx_pending *pending, const cx_batch *batch,
                                const cx_pending_event *events, size_t count, int64_t now_ns,
                                cx_err *err);

/* The key that is pending under this id, in the arena; CX_E_NOT_FOUND "NoPendingKey". */
CX_RESULT cx_pending_key(cx_pending *pending, cx_str key_id, cx_arena *arena, cx_trust_key *out,
                         cx_err *err);

/* The oldest batch that has events of this key; `batch->event_count` 0: nothing waits. */
CX_RESULT cx_pending_next(cx_pending *pending, cx_str key_id, cx_arena *arena, cx_batch *batch,
                          int64_t *out_batch_id, cx_err *err);
/* Removes those events of that batch. */
CX_RESULT cx_pending_done(cx_pending *pending, cx_str key_id, int64_t batch_id, cx_err *err);
/* Ends the waiting of an approved key; `*out_ended` false: more has arrived. */
CX_RESULT cx_pending_end(cx_pending *pending, cx_str key_id, bool *out_ended, cx_err *err);
/* Removes the key and all that waits under it, and remembers that it was rejected. */
CX_RESULT cx_pending_reject(cx_pending *pending, cx_str key_id, int64_t now_ns, cx_err *err);

CX_RESULT cx_pending_counts(cx_pending *pending, cx_pending_sums *out, cx_err *err);
CX_RESULT cx_pending_key_counts(cx_pending *pending, cx_str key_id, cx_pending_sums *out,
                                cx_err *err);
/* {"format":"cortex-pending-1","keys":[{"address","bytes","description","events","key_id",
 * "public_key","registered_at"},..]} */
CX_RESULT cx_pending_json(cx_pending *pending, cx_buf *out, cx_err *err);

#endif
