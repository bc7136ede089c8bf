/*
 * cleanup.h - removes what dead runs left (run.md §11, §20, §23).
 *
 * Runs are ended as failures; stale locks and temporary files are removed. Finished bundles are not
 * changed, except that a bundle whose process died between manifest and seal gets its seal.
 *
 * Cleanup never makes a success: a run whose process died is FAILURE, whatever its files state.
 */
#ifndef CX_GOVERNOR_CLEANUP_H
#define CX_GOVERNOR_CLEANUP_H

#include "bundle/api.h"
#include "approval/api.h"
#include "audit/api.h"

/*
 * Ends one run whose owner is dead: its log is recovered, its locks released, what is missing in
 * the bundle is filled with what the events say and nothing else, and it is sealed as FAILURE with
 * the reason "crashed".  CX_E_BUSY when the owner lives, CX_E_EXISTS when the run has a manifest,
 * CX_E_FORMAT when its events are not what a crash leaves: then nothing is changed.
 */
CX_RESULT cx_run_recover(const cx_run_store *store, cx_str run_id, const cx_run_ledger *ledger,
                         cx_arena *arena, cx_run_sealed *out, cx_err *err);

/*
 * Seals a bundle that has its manifest but no seal, when it agrees with what the ledger knows of
 * the run in everything else (cx_run_verify); else *out_agrees is false and nothing is done.
 * `witness` has no seal.  The seal vouches for the files from now on: between manifest and seal
 * only the events were vouched for.
 */
CX_RESULT cx_run_seal_late(const cx_run_store *store, cx_str run_id, const cx_run_witness *witness,
                           const cx_run_ledger *ledger, cx_arena *arena, bool *out_agrees,
                           cx_run_sealed *out, cx_err *err);

/* Looks up what a ledger knows of a run. */
typedef struct cx_run_witnesses {
    void *ctx;
    cx_status (*find)(void *ctx, cx_str run_id, cx_arena *arena, cx_run_witness *out, cx_err *err);
} cx_run_witnesses;

typedef struct cx_run_cleanup_options {
    const cx_run_store *store;
    const cx_run_ledger *ledger;       /* for the seals of runs that are ended; NULL = none */
    const cx_run_witnesses *witnesses; /* of that ledger; NULL: no seal is made up for */
    bool apply;                        /* false: only say what would be done */
    uint64_t older_sec;                /* leave alone what is younger */
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
    cx_str name; /* a run id, or a path below the runtime root, or the path a lock is on */
    cx_str
        reason; /* "owner_dead", "run_finished", "seal_missing", .., or why it could not be done */
    bool done;  /* with `apply` */
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
