/*
 * home_root.h - the home root: one root over all actors of a data directory, recorded in a journal
 * of its own (ledger.md §15).
 *
 *   R1  A home root is computed inside a transaction: all its leaves are of one moment.
 *   R2  The journal home:root contains nothing but home.root entries, and only this file writes
 *       them.  Its scheme is cortex-1, whatever that of the data directory.
 *   R3  The records leaf/<position> in that journal are the leaves under the last entry, so that a
 *       proof needs no tree of any actor, and a difference can be traced to an actor.
 */
#ifndef CX_LEDGER_HOME_ROOT_H
#define CX_LEDGER_HOME_ROOT_H

#include "ledger/home.h"
#include "proof/api.h"

typedef struct cx_home_root_entry {
    cx_home_root root;
    uint64_t seq; /* in the journal home:root */
    int64_t created_ns;
} cx_home_root_entry;

/* The home root of what is recorded now; CX_E_BUSY "Remote" of a remote data directory. */
CX_RESULT cx_home_root_now(cx_home *home, cx_home_root *out, cx_err *err);
/* The one recorded last; *out_found: there is one. */
CX_RESULT cx_home_root_last(cx_home *home, cx_home_root_entry *out, bool *out_found, cx_err *err);
/* What metrics show of it, without a lock and without reading anything: zeros before the first one.
 * Only of a data directory that this process has open for writing. */
typedef struct cx_home_root_status {
    uint64_t roots;           /* recorded */
    uint64_t entries;         /* covered by the last one */
    uint64_t created_seconds; /* of the last one, since 1970 */
} cx_home_root_status;
void cx_home_root_get_status(const cx_home *home, cx_home_root_status *out);

/* Records the home root of this moment, unless the last entry already records the same one; *out is
 * the last entry in either case.  CX_E_NOT_FOUND "NoActor" while nothing is recorded. */
CX_RESULT cx_home_root_record(cx_home *home, int64_t now_ns, cx_home_root_entry *out, cx_err *err);
/*
 * That the actor's leaf is in the home root recorded last, in the journal home:root of `size`
 * entries (0 = all of them); without a checkpoint.  *out_root is the root of that journal.  Memory
 * from the arena.  CX_E_NOT_FOUND "NoHomeRoot", or "NoActor" for one that is not in it;
 * CX_E_CONFLICT "NotCovered" when that journal ends before the home root.
 */
CX_RESULT cx_home_root_prove(cx_home *home, cx_str actor, uint64_t size, cx_arena *arena,
                             cx_home_proof *out, cx_digest *out_root, cx_err *err);

#endif
