/*
 * replay.h - analysing a recorded run (run.md §18): rebuild it from its events, compare it with
 * another run, re-execute it.
 *
 * Bundles are opened for reading only; nothing is ever written into one. Rehydrating the same
 * bundle twice gives the same bytes.
 */
#ifndef CX_AUDIT_REPLAY_H
#define CX_AUDIT_REPLAY_H

#include "bundle/api.h"
#include "audit/verify.h"

#define CX_RUN_EXIT_DIVERGED 5

/* --- rehydrate ------------------------------------------------------------------------------- */

typedef struct cx_run_rehydration {
    /* {run_id, baseline_run_id, status, verdict, codes[], events_count, states[], gates{},
     * timeline{}, reports{}, evidence_hashes{}, mismatches[], params_equal, first_divergence} */
    cx_json document;
    int exit_code; /* 0, 1 broken or not what manifest and reports say, 3 unsealed, 5 diverged */
} cx_run_rehydration;

/* No agent, no git.  `against` NULL = nothing to compare with.  The document borrows from `bundle`,
 * not from `against`. */
CX_RESULT cx_run_rehydrate(cx_run_bundle *bundle, const cx_run_witness *witness,
                           cx_run_bundle *against, cx_arena *arena, cx_run_rehydration *out,
                           cx_err *err);

/* --- comparing two runs ---------------------------------------------------------------------- */

typedef struct cx_run_divergence {
    bool found;
    uint64_t index; /* of the event, from 1; 0 = it is not about an event */
    cx_str field;   /* "event_type", "payload/passed", "patch.diff", .. */
    cx_json expected, actual;
} cx_run_divergence;

/*
 * The first place where `actual` went another way than `expected`.  What differs from run to run by
 * nature is passed over: ids, times, durations, commits (their messages name the run), hashes of
 * logs, places on the disk.  Trees, patches, names, verdicts, arguments are not.
 */
CX_RESULT cx_run_compare(cx_run_bundle *expected, const cx_run_projection *expected_projection,
                         cx_run_bundle *actual, const cx_run_projection *actual_projection,
                         cx_arena *arena, cx_run_divergence *out, cx_err *err);

/* --- re-execute ------------------------------------------------------------------------------ */

typedef struct cx_run_reexec_options {
    const cx_io *io;
    const cx_alloc *alloc;
    const char *repo;    /* the repository's main checkout, where the baseline commit is */
    const char *root;    /* runtime root: the new worktree is made below it and removed again */
    const char *script;  /* of replay-script: the agent is run again as well; NULL = not */
    const char *program; /* this program's file, for children of the sandbox */
    bool allow_degraded_sandbox;
} cx_run_reexec_options;

/*
 * Re-executes: a new worktree at the recorded baseline, the stored patch applied (it must apply
 * cleanly), patch, names and tree rebuilt (§9), the diff gate and the acceptance tests run again
 * in the sandbox (§12).  `*out_exit`: 0 pass, 5 hard difference, 3 could not run.  `*out` is a
 * reexec_report in every case.
 */
CX_RESULT cx_run_reexecute(cx_run_bundle *bundle, const cx_run_reexec_options *options,
                           cx_arena *arena, cx_json *out, int *out_exit, cx_err *err);

#endif
