/*
 * lease.h - which runs of a repository go on, on which machines, and what they have locked: the
 * table that the runs of a fleet share (docs/formats/run.md §11).
 *
 * The table is one record in the journal of the repository's runs.  It is read, decided on and
 * written in one transaction, so all machines see the same order of changes.  This file only knows
 * the table; who calls it has the transaction.
 *
 *   E1  A run is in the table from its first event to its seal.  Its token is the number of the
 *       journal's entry that put it there: a later owner of a lock has a larger one.
 *   E2  A run that is not in the table with its token may record nothing more.
 *   E3  Times decide when a run may be ended by others, and nothing else: were a clock wrong, a run
 *       that goes on would be ended, and refused by E2.
 *   E4  A request is granted completely or not at all (as L2).
 */
#ifndef CX_APPROVAL_LEASE_H
#define CX_APPROVAL_LEASE_H

#include "approval/lock.h"

#define CX_RUN_LEASES_MAX 1024                      /* runs that go on at once, of a repository */
#define CX_RUN_LEASES_BYTES_MAX (UINT32_C(1) << 20) /* of the table */
#define CX_RUN_LEASES_KEY "lease/runs"
#define CX_RUN_LEASE_ENDED_KEY "lease/ended/" /* and the run id: by whom and why it was ended */

typedef struct cx_run_lease_lock {
    cx_str path, task_id; /* the path is normalised */
    cx_str acquired_at;
} cx_run_lease_lock;

typedef struct cx_run_lease {
    cx_str run_id;
    uint64_t token; /* E1 */
    cx_run_owner owner;
    cx_str opened_at, renewed_at;
    uint64_t ttl_sec; /* 0: never ends by time */
    cx_run_lease_lock *locks;
    size_t lock_count;
    cx_str contract_sha256; /* hex, once it has locks; empty = not known */
    /* The merge that the run has announced last, before it was made; empty = none. */
    cx_str merge_ref, merge_commit;
} cx_run_lease;

typedef struct cx_run_leases {
    cx_arena *arena; /* of all text */
    cx_run_lease *list;
    size_t count, capacity;
} cx_run_leases;

/* Of a record's bytes; no bytes are an empty table.  CX_E_FORMAT. */
CX_RESULT cx_run_leases_read(cx_bytes bytes, cx_arena *arena, cx_run_leases *out, cx_err *err);
/* CX_E_LIMIT when it would be too large. */
CX_RESULT cx_run_leases_write(const cx_run_leases *leases, cx_buf *out, cx_err *err);

/* NULL: not in the table (E2). */
cx_run_lease *cx_run_leases_find(const cx_run_leases *leases, cx_str run_id, uint64_t token);
/* CX_E_EXISTS when the run is there; CX_E_LIMIT. */
CX_RESULT cx_run_leases_add(cx_run_leases *leases, const cx_run_lease *lease, cx_err *err);
void cx_run_leases_remove(cx_run_leases *leases, cx_run_lease *lease);

/* CX_RUN_LOCK_VALID, _OWNER_DEAD (a process of this start of this machine, gone) or
 * _LEASE_EXPIRED. */
cx_run_lock_reason cx_run_lease_classify(const cx_run_lease *lease, int64_t now_ns);

/*
 * What `lease` asks for.  Of other runs that have a lock on the way, those that may be ended are in
 * `out_stale` (indexes into the list, ascending; the caller removes them and says so), the others
 * are conflicts.  The locks are in the lease when out->ok; nothing changes otherwise (E4).  Paths
 * that fail the lint are as in cx_run_lock_acquire.
 */
CX_RESULT cx_run_leases_acquire(cx_run_leases *leases, cx_run_lease *lease,
                                const cx_run_lock_request *request, int64_t now_ns,
                                cx_run_lock_result *out, size_t **out_stale,
                                size_t *out_stale_count, cx_err *err);
/* Removes the locks of a task (empty = of all); whether there were any. */
bool cx_run_lease_release(cx_run_lease *lease, cx_str task_id);
/* A lock as lock.h has them. */
CX_RESULT cx_run_lease_lock_view(const cx_run_lease *lease, size_t index, cx_arena *arena,
                                 cx_run_lock *out, cx_err *err);

#endif
