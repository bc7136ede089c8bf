/*
 * lock.h - which run may change which paths (run.md §11): hierarchical locks, all or none.
 *
 * A lock is the file locks/<sha256 of the normalised path>.lock.
 *
 *   L1  Locks are acquired and released under locks/.mutex, so two processes cannot lock a path and
 *       its parent.
 *   L2  A request is granted completely or not at all.
 *   L3  A lock file is complete before it gets its name, so no reader sees a partial one.
 */
#ifndef CX_APPROVAL_LOCK_H
#define CX_APPROVAL_LOCK_H

#include "base/api.h"
#include "bundle/api.h"

#define CX_RUN_LOCK_TTL_SEC 900
#define CX_RUN_LOCKS_MAX 4096 /* of one request, and in the folder */

/* One lock file. */
typedef struct cx_run_lock {
    cx_str run_id, task_id, path; /* normalised */
    cx_run_owner owner;
    cx_str acquired_at, renewed_at;
    uint64_t ttl_sec;
    cx_digest key;
    cx_json content; /* the file's content */
} cx_run_lock;

/* CX_E_FORMAT when the path fails the lint of §7. */
CX_RESULT cx_run_lock_name(cx_str path, cx_arena *arena, cx_str *out_normalized, cx_digest *out_key,
                           cx_err *err);

/* --- stale ------------------------------------------------------------------------------------ */

typedef enum cx_run_lock_reason {
    CX_RUN_LOCK_VALID,        /* not stale */
    CX_RUN_LOCK_OVERDUE,      /* not stale, worth reporting */
    CX_RUN_LOCK_RUN_FINISHED, /* the rest is stale */
    CX_RUN_LOCK_OWNER_DEAD,
    CX_RUN_LOCK_LEASE_EXPIRED
} cx_run_lock_reason;

/* Classifies a lock by the table of §11. `finished`: the run's status is SUCCESS or FAILURE. */
cx_run_lock_reason cx_run_lock_classify(bool finished, cx_run_owner_state owner, uint64_t age_sec,
                                        uint64_t ttl_sec);
bool cx_run_lock_stale(cx_run_lock_reason reason);
/* "", "overdue", "run_finished", "owner_dead", "lease_expired". */
const char *cx_run_lock_reason_name(cx_run_lock_reason reason);

/* --- acquiring, renewing, releasing ----------------------------------------------------------- */

typedef struct cx_run_lock_request {
    cx_str run_id, task_id;
    const cx_str *paths;
    size_t path_count;
    uint64_t ttl_sec;                 /* CX_RUN_LOCK_TTL_SEC is usual; 0 = no lease */
    const cx_digest *contract_sha256; /* of the run, for its lease; NULL = not said */
    /* Locks of other tasks of this run are no conflict: the caller keeps those tasks apart.  One on
     * the same path passes to this task. */
    bool shares_in_run;
} cx_run_lock_request;

typedef struct cx_run_lock_result {
    bool ok;
    const cx_str *taken; /* normalised, sorted */
    size_t taken_count;
    size_t passed_count;   /* of them: were another task's of this run */
    const cx_str *invalid; /* paths that fail the lint; then nothing else was checked */
    size_t invalid_count;
    const cx_run_lock *conflicts; /* conflicting locks of other owners, sorted by path */
    size_t conflict_count;
    const cx_run_lock *reclaimed; /* stale ones that were removed, for LOCK_RECLAIMED */
    const cx_run_lock_reason *reclaimed_why;
    size_t reclaimed_count;
} cx_run_lock_result;

/* A rejection is a result (ok false), not an error. The owner is this process. Text lives in the
 * arena. */
CX_RESULT cx_run_lock_acquire(const cx_run_store *store, const cx_run_lock_request *request,
                              cx_arena *arena, cx_run_lock_result *out, cx_err *err);
/* Removes the locks of this run and task (task empty = all of the run) and no others. */
CX_RESULT cx_run_lock_release(const cx_run_store *store, cx_str run_id, cx_str task_id,
                              cx_arena *arena, cx_str **out_paths, size_t *out_count, cx_err *err);
/* Updates renewed_at of the locks that this process owns for the run; CX_E_CONFLICT when there are
 * fewer than `expected`. */
CX_RESULT cx_run_lock_renew(const cx_run_store *store, cx_str run_id, size_t expected, cx_err *err);

/*
 * Renews the locks of a run every ttl/3 in its own thread, from start to stop. When renewing fails
 * `lost` is set: the run must end.
 */
typedef struct cx_run_lock_renewer {
    cx_run_store store;
    char run_id[CX_RUN_ID_BYTES_MAX + 1];
    size_t expected;
    uint64_t ttl_sec;
    cx_thread thread;
    cx_lock lock;
    bool stopping, lost, started;
} cx_run_lock_renewer;

CX_RESULT cx_run_lock_renewer_start(cx_run_lock_renewer *keeper, const cx_run_store *store,
                                    cx_str run_id, size_t expected, uint64_t ttl_sec, cx_err *err);
/* Change the number of expected locks: call _more after acquiring locks, and _fewer before
 * releasing some. */
void cx_run_lock_renewer_expect_more(cx_run_lock_renewer *keeper, size_t count);
void cx_run_lock_renewer_expect_fewer(cx_run_lock_renewer *keeper, size_t count);
/* Whether all renewals so far worked. */
bool cx_run_lock_renewer_ok(cx_run_lock_renewer *keeper);
/* Ends the thread; a keeper that was zeroed and never started is fine. */
void cx_run_lock_renewer_stop(cx_run_lock_renewer *keeper);

/* --- locks of several machines ---------------------------------------------------------------- */

/*
 * Runs of a fleet have their locks twice: as files, for what else works in this clone, and in the
 * table that all machines share (lease.h).  Each call returns when its entry is durable, and is
 * CX_E_CONFLICT "RunEnded" when the run has been ended by another machine.  Thread-safe.
 */
typedef struct cx_run_shared_locks {
    void *ctx;
    /* As cx_run_lock_acquire; text lives in the arena. */
    cx_status (*acquire)(void *ctx, const cx_run_lock_request *request, cx_arena *arena,
                         cx_run_lock_result *out, cx_err *err);
    /* The locks of a task; task_id empty = of the whole run. */
    cx_status (*release)(void *ctx, cx_str run_id, cx_str task_id, cx_err *err);
    /* Announces that `ref` becomes `commit` now. */
    cx_status (*merge)(void *ctx, cx_str run_id, cx_str ref, cx_str commit, cx_err *err);
} cx_run_shared_locks;

#define CX_RUN_ENDED_TAG "RunEnded"

/* --- listing, and removing by force ----------------------------------------------------------- */

/* All locks, sorted by path, with the classification of each; a file that is not a valid lock
 * blocks only requests of exactly its path and is listed with an empty run id. */
CX_RESULT cx_run_lock_list(const cx_run_store *store, cx_arena *arena, cx_run_lock **out,
                           cx_run_lock_reason **out_reasons, size_t *out_count, cx_err *err);
/* Removes every stale lock; the caller reports them. */
CX_RESULT cx_run_lock_reclaim(const cx_run_store *store, cx_arena *arena, cx_run_lock **out,
                              cx_run_lock_reason **out_reasons, size_t *out_count, cx_err *err);
/* Removes the lock of exactly this path from any owner; the caller has the approval (§13
 * `unlock:<p>`). CX_E_NOT_FOUND. */
CX_RESULT cx_run_lock_force(const cx_run_store *store, cx_str path, cx_arena *arena,
                            cx_run_lock *out, cx_err *err);

#endif
