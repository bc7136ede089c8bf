/*
 * candidate.h - what an agent made, as a tree and a commit that the governor writes, as a patch,
 * and its rollback (run.md §9, §15).
 *
 * Blobs are written from the files on disk without filters and compared with what the diff gate
 * hashed: a file that changed in between is CX_E_CONFLICT.
 */
#ifndef CX_CANDIDATE_CANDIDATE_H
#define CX_CANDIDATE_CANDIDATE_H

#include "candidate/diff.h"

/*
 * Writes the candidate's blobs and tree into the repository and appends `patch.diff` and
 * `diff_name_only.txt` of it against the baseline.  Ignored files are left out.  Also for a refused
 * report; without a tree (D01, D15, special cases) both stay empty.
 */
CX_RESULT cx_run_candidate_patch(const cx_git *git, const cx_diff_report *report, cx_buf *patch,
                                 cx_buf *names, cx_err *err);
/* The same between two commits or trees that are there already (replay, merge). */
CX_RESULT cx_run_patch_between(const cx_git *git, const cx_oid *from, const cx_oid *to,
                               cx_buf *patch, cx_buf *names, cx_err *err);
/* `diff_name_only.txt` of a list of paths, sorted already. */
void cx_run_names_write(cx_buf *out, const cx_str *paths, size_t count);
/* And back; CX_E_FORMAT unless it is exactly what cx_run_names_write makes. */
CX_RESULT cx_run_names_read(cx_str text, cx_arena *arena, cx_str **out, size_t *out_count,
                            cx_err *err);

typedef struct cx_candidate_facts {
    cx_str run_id, task_id;
    cx_str contract_sha256; /* hex */
    uint32_t attempt;
    int64_t time_s; /* of author and committer, UTC */
    cx_str branch;  /* "refs/heads/cortex/..": set to the commit (from wherever the agent left it);
                       empty = no branch */
} cx_candidate_facts;

/* One commit, parent = baseline, of report->tree (which cx_run_candidate_patch has written), with
 * the trailers Cortex-Run, Cortex-Task, Cortex-Contract-SHA256.  Only of a report that passed. */
CX_RESULT cx_run_candidate_commit(const cx_git *git, const cx_diff_report *report,
                                  const cx_candidate_facts *facts, cx_oid *out, cx_err *err);

/* --- back ------------------------------------------------------------------------------------- */

typedef enum cx_rollback_strategy {
    CX_ROLL_RESET_HARD,    /* reset --hard B, everything new removed */
    CX_ROLL_REVERT_COMMIT, /* commits that revert B..HEAD on the task branch, then as above */
    CX_ROLL_WORKTREE_DROP  /* the work tree and its branch are removed */
} cx_rollback_strategy;

typedef struct cx_rollback_options {
    const cx_git *git;
    const cx_snapshot *snapshot; /* what the work tree must be equal to afterwards */
    cx_oid baseline;
    cx_oid target; /* revert: the newest commit to revert; size 0 = HEAD */
    cx_str branch; /* the task branch, "refs/heads/.." */
    cx_rollback_strategy strategy;
    int64_t time_s;
} cx_rollback_options;

typedef struct cx_rollback_report {
    bool verified;
    cx_str reason; /* why not; in the arena */
    cx_oid head;   /* where the task branch is now; size 0 when it is gone */
} cx_rollback_report;

/* Afterwards compares with the snapshot (or, dropped, that nothing is left): *out says.  An error
 * is an unverified rollback too. */
CX_RESULT cx_run_rollback(const cx_rollback_options *options, cx_arena *arena,
                          cx_rollback_report *out, cx_err *err);

#endif
