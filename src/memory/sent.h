/*
 * sent.h - scopes that were sent (ledger.md §10.3): the grantor, or a program for it, hands in the
 * signed bytes, and the grantee takes them by their id.  The bytes are an entry of the journal of
 * the actor whose memories the scope opens, so an auditor finds there the scope that the entries of
 * a grantee name.
 *
 * Nothing here checks signatures: who sends checks, who receives checks, and each use is checked.
 */
#ifndef CX_MEMORY_SENT_H
#define CX_MEMORY_SENT_H

#include "memory/memory.h"

/* What a scope that is sent may have; a larger one is handed over as a file. */
#define CX_SENT_SCOPE_SIZE_MAX CX_ENTRY_PAYLOAD_MAX
#define CX_SENT_SCOPES_MAX 1000 /* listed at once */

typedef struct cx_sent_scope {
    cx_digest id;   /* SHA-256 of the bytes */
    cx_bytes bytes; /* as they were sent */
    cx_scope scope; /* borrows from the bytes */
    uint64_t seq;   /* of the entry scope.sent */
} cx_sent_scope;

/*
 * Journals the bytes of a signed scope of this actor's memories; `by` says who sent it.  Sent again
 * it writes nothing, and *out_seq is the first entry's.  NonCanonical, ActorMismatch, InvalidActor,
 * NotSigned, and CX_E_LIMIT when it is too large.
 */
CX_RESULT cx_memory_send_scope(cx_memory *memory, cx_bytes scope, cx_str by, uint64_t *out_seq,
                               bool *out_duplicate, cx_err *err);
/* Memory from the arena. */
CX_RESULT cx_memory_sent_scope(cx_memory *memory, const cx_digest *id, cx_arena *arena,
                               cx_sent_scope *out, bool *out_found, cx_err *err);
/* Those granted to an agent (empty: to anyone), in the order of their ids; at most `limit`. */
CX_RESULT cx_memory_sent_scopes(cx_memory *memory, cx_str granted_to, size_t limit, cx_arena *arena,
                                const cx_sent_scope **out, size_t *out_count, cx_err *err);

/* The same over the whole data directory, whose journals are looked through one by one; those that
 * this program writes itself have none. */
CX_RESULT cx_sent_scope_find(cx_home *home, const cx_digest *id, cx_arena *arena,
                             cx_sent_scope *out, bool *out_found, cx_err *err);
CX_RESULT cx_sent_scopes_of(cx_home *home, cx_str granted_to, size_t limit, cx_arena *arena,
                            const cx_sent_scope **out, size_t *out_count, cx_err *err);

#endif
