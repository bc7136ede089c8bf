/*
 * cleanup.h - what died runs left behind (run.md §11, §20, §23): runs are ended as failures, stale
 * locks and temporary files removed.  Finished bundles are never touched.
 *
 * Nothing here turns anything into a success: a run whose process died is FAILURE, whatever its
 * files say.
 */
#ifndef CX_RUN_CLEANUP_H
#define CX_RUN_CLEANUP_H

#include "run/bundle.h"
#include "run/lock.h"

/*
 * Ends one run whose owner is dead: its log is recovered, its locks given back, what is missing in
 * the bundle is filled with what the events say and nothing else, and it is sealed as FAILURE with
 * the reason "crashed".  CX_E_BUSY when the owner lives, CX_E_EXISTS when the run has a manifest,
 * CX_E_FORMAT when its events are not what a crash leaves: then nothing is changed.
 */
CX_RESULT cx_run_abandon(const cx_run_store *store, cx_str run_id, const cx_run_ledger *ledger,
                         cx_arena *arena, cx_run_sealed *out, cx_err *err);

typedef struct cx_run_cleanup_options {
    const cx_run_store *store;
    const cx_run_ledger *ledger; /* for the seals of runs that are ended; NULL = none */
    bool apply;                  /* false: only say what would be done */
    uint64_t older_sec;          /* leave alone what is younger */
} cx_run_cleanup_options;

typedef enum cx_run_leftover_kind {
    CX_RUN_LEFTOVER_RUN,    /* a run without an end whose owner is dead */
    CX_RUN_LEFTOVER_ACTIVE, /* an entry below active/runs whose run has ended or never began */
    CX_RUN_LEFTOVER_LOCK,   /* a stale lock */
    CX_RUN_LEFTOVER_FILE,   /* a temporary file */
    CX_RUN_LEFTOVER_FOLDER  /* a folder below worktrees/ whose run has ended */
} cx_run_leftover_kind;

typedef struct cx_run_leftover {
    cx_run_leftover_kind kind;
    cx_str name;   /* a run id, or a path below the runtime root, or the path a lock is on */
    cx_str reason; /* "owner_dead", "run_finished", .., or why it could not be done */
    bool done;     /* with `apply` */
} cx_run_leftover;

/* "run", "active", "lock", "file", "folder" */
const char *cx_run_leftover_name(cx_run_leftover_kind kind);

/*
 * In the order in which it is done: runs, entries, locks, files, folders.  What one of them refuses
 * is said in its reason and does not keep the others.  Folders of work trees are only listed: git
 * has to let go of them first (worktree.h).
 */
CX_RESULT cx_run_cleanup(const cx_run_cleanup_options *options, cx_arena *arena,
                         cx_run_leftover **out, size_t *out_count, cx_err *err);

#endif
