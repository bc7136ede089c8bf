/*
 * merge.h - bringing a candidate to the main branch (run.md §15).
 *
 *     CX_TRY(cx_run_merge_plan(&options, arena, &plan, err));
 *     plan.kind == CX_MERGE_REAL: judge plan.tree again (diff gate main..commit, tests), then
 *     CX_TRY(cx_run_merge_apply(&options, &plan, arena, err));
 *     CX_TRY(cx_run_note_add(git, &plan.commit, text, time_s, err));     when the manifest is
 * sealed
 *
 * Nothing but objects is written before apply; apply moves one reference by compare and swap.
 */
#ifndef CX_CANDIDATE_MERGE_H
#define CX_CANDIDATE_MERGE_H

#include "git/api.h"

typedef struct cx_merge_options {
    const cx_git *git;          /* of the main checkout */
    const char *runtime_root;   /* work trees below it are never a checkout that follows */
    cx_str main_ref;            /* "refs/heads/main" */
    const cx_git *own_checkout; /* of main_ref: a work tree of this run that no agent can write, and
                                   that goes when the run dies; NULL: one of the user's is found */
    cx_oid baseline;
    cx_oid candidate;
    cx_str run_id, task_id, contract_sha256; /* trailers of a merge commit */
    int64_t time_s;
} cx_merge_options;

typedef enum cx_merge_kind { CX_MERGE_REFUSED, CX_MERGE_FAST_FORWARD, CX_MERGE_REAL } cx_merge_kind;

typedef struct cx_merge_plan {
    cx_merge_kind kind;
    cx_str reason; /* when refused: "main_missing", "baseline_not_in_main", "checked_out_dirty",
                      "conflict", "moved"; static storage */
    cx_str detail; /* one sentence; of an applied one: why the checkout did not follow, or empty */
    cx_oid old;    /* main as it was found: the compare of the swap */
    cx_oid commit; /* what main becomes */
    cx_oid tree;   /* of that commit */
    const char *checkout; /* the work tree that has main checked out, clean; NULL when none has */
    const char *checkout_git_dir;
} cx_merge_plan;

CX_RESULT cx_run_merge_plan(const cx_merge_options *options, cx_arena *arena, cx_merge_plan *out,
                            cx_err *err);
/* Moves main, then brings the clean checkout of it, if there is one, to the new commit.  When
 * another process was faster plan->kind becomes CX_MERGE_REFUSED, reason "moved": no error. */
CX_RESULT cx_run_merge_apply(const cx_merge_options *options, cx_merge_plan *plan, cx_arena *arena,
                             cx_err *err);

/* Adds a note to a commit in refs/notes/cortex ("Cortex-Manifest-SHA256: ..."), replacing one. */
CX_RESULT cx_run_note_add(const cx_git *git, const cx_oid *commit, cx_str text, int64_t time_s,
                          cx_err *err);

#endif
