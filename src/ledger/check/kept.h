/*
 * kept.h - what a verification keeps, so that the next one reads only what came after.
 *
 * The file is a database of the verifying user, outside of the data directory: the tables that the
 * verification derived from the log, and the point up to which that was done.
 *
 *   K1  Rows and point become durable in one transaction, at the end of a commit of the log, after
 *       all checks of what came before; never when there was a finding.  A run that is interrupted
 *       goes on from the last point.
 *   K2  Before a point is used, the log's commit at it is read again and must be the one that was
 *       verified; the data directory must be the same one.
 *   K3  A verification that came to its end without a finding is a *base*.  From then on the file
 *       also has the names of all rows that change, so that the next one looks at these alone.
 *   K4  Nothing in the file can be checked against the log without reading the log.  So a verdict
 *       that rests on it says so, and the file must not lie where others write.
 */
#ifndef CX_LEDGER_CHECK_KEPT_H
#define CX_LEDGER_CHECK_KEPT_H

#include "ledger/root/home_root.h"
#include "ledger/store.h"

typedef struct cx_kept_point {
    cx_position at;       /* whole commits */
    cx_digest commit;     /* cx_kept_commit_digest of the last one */
    uint64_t commits;     /* up to it */
    uint64_t entries;     /* of all actors, up to it */
    bool based;           /* K3 */
    uint64_t base_hashes; /* rows of hashes that the base had */
    int64_t reached_ns;   /* when it was written */
    bool has_home_root;
    cx_home_root_entry home_root; /* the last one up to it */
} cx_kept_point;

typedef struct cx_kept cx_kept;

/* Makes the file, for its owner alone, or looks whether it is one of these, so that no other
 * database is changed.  CX_E_FORMAT "NotAState". */
CX_RESULT cx_kept_make_file(const cx_io *io, const char *path, cx_err *err);
/*
 * Over a store that derives, which it makes hold its transaction (K1).  *out_found: it has a point.
 * The store's tables are `stale` when they are of another version: there is no point then.
 * CX_E_FORMAT "OtherHome": the file is of another data directory; CX_E_FORMAT "StateDamaged".
 */
CX_RESULT cx_kept_open(cx_store *store, bool stale, const uint8_t home_id[16], cx_kept **out,
                       cx_kept_point *out_point, bool *out_found, cx_err *err);
void cx_kept_close(cx_kept *kept); /* before the store; NULL is fine */
/* After a flush: what is in the tables up to `point` stays (K1).  `is_base`: the names of changed
 * rows are removed (K3). */
CX_RESULT cx_kept_save(cx_kept *kept, const cx_kept_point *point, bool is_base, cx_err *err);

/* Of the guarded parts of a commit, and where they stand; what is erased later is not in it. */
cx_digest cx_kept_commit_digest(const cx_log_commit *commit);

/* The records that were written since the base, by actor and key; rows may be gone again. */
CX_RESULT cx_kept_each_record(cx_kept *kept,
                              cx_status (*record)(void *arg, int64_t actor, cx_bytes key,
                                                  cx_err *err),
                              void *arg, cx_err *err);
/* The actors with entries since the base, and the first of these. */
CX_RESULT cx_kept_each_journal(cx_kept *kept,
                               cx_status (*journal)(void *arg, int64_t actor, uint64_t first,
                                                    cx_err *err),
                               void *arg, cx_err *err);

#endif
