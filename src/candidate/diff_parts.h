/*
 * diff_parts.h - shared by the files of the diff gate: diff.c runs it, diff_views.c finds what
 * changed, diff_blobs.c reads contents, diff_rules.c applies the rules, diff_tree.c computes the
 * candidate's tree.
 */
#ifndef CX_CANDIDATE_DIFF_PARTS_H
#define CX_CANDIDATE_DIFF_PARTS_H

#include "base/api.h"
#include "candidate/diff.h"

#define CX_MODE_KIND 0170000u
#define CX_MODE_FILE 0100000u
#define CX_MODE_LINK 0120000u
#define CX_MODE_GITLINK 0160000u

#define CX_DIFF_BLOB_MIN 64 /* D13: shorter blobs are alike by chance */

static inline bool cx_mode_is_file(uint32_t mode)
{
    return (mode & CX_MODE_KIND) == CX_MODE_FILE;
}

typedef struct cx_diff_view {
    cx_str name; /* "commit <id>", "head", "index", "disk" */
    const cx_diff_change *changes;
    size_t count;
} cx_diff_view;

/* What is known of a blob that changed. */
typedef struct cx_diff_blob {
    uint64_t size_bytes;
    bool binary;
    bool missing; /* the repository does not have it */
} cx_diff_blob;

typedef struct cx_diff_job {
    const cx_diff_options *options;
    const cx_git *git;
    cx_arena *arena;
    const cx_snapshot *before; /* may be NULL */
    const cx_snapshot *after;
    cx_git_tree base;
    cx_oid baseline;
    CX_VEC(cx_diff_view) views;
    cx_run_findings *findings;
    cx_map blobs; /* oid -> index + 1 of known */
    CX_VEC(cx_diff_blob) known;
    /* The candidate: unchanged entries of the baseline and what is on disk, sorted. */
    cx_git_entry *candidate;
    size_t candidate_count;
    const cx_diff_change *disk;
    size_t disk_count;
    uint64_t new_bytes;
} cx_diff_job;

/* --- diff_views.c ----------------------------------------------------------------------------- */

/* Adds the views to the job; what a view alone can tell (D05, D08, D11 on disk) is found here. */
CX_RESULT cx_diff_view_disk(cx_diff_job *job, cx_err *err);
CX_RESULT cx_diff_view_index(cx_diff_job *job, cx_err *err);
/* HEAD's tree and every commit of from..to. */
CX_RESULT cx_diff_view_commits(cx_diff_job *job, const cx_oid *from, const cx_oid *to,
                               unsigned *out_commits, cx_err *err);
CX_RESULT cx_diff_view_head(cx_diff_job *job, const cx_oid *from, const cx_oid *to, cx_err *err);
/* D05 where only trees are judged: a bare repository among the candidate's files that the baseline
 * does not have. */
CX_RESULT cx_diff_check_bare_repositories(cx_diff_job *job, cx_err *err);
/* Marks those of `changes` that git ignores. */
CX_RESULT cx_diff_mark_ignored(cx_diff_job *job, cx_diff_change *changes, size_t count,
                               cx_err *err);

/* --- candidate.c ------------------------------------------------------------------------------ */

/* What git finds two trees to differ in, sorted by path, without renames. */
CX_RESULT cx_diff_changes_between(const cx_git *git, const cx_oid *from, const cx_oid *to,
                                  cx_arena *arena, cx_raw_diff *out, cx_err *err);

/* --- diff_blobs.c ----------------------------------------------------------------------------- */

/* Learns size and binary of every blob in the views; those on disk are known by the snapshots. */
CX_RESULT cx_diff_blobs_load(cx_diff_job *job, cx_err *err);
/* NULL when it was not learnt. */
const cx_diff_blob *cx_diff_blob_find(const cx_diff_job *job, const cx_oid *oid);
CX_RESULT cx_diff_blob_add(cx_diff_job *job, const cx_oid *oid, const cx_diff_blob *blob,
                           cx_err *err);

/* --- diff_rules.c ----------------------------------------------------------------------------- */

/* D06, D07, D09..D12, D14 for every change of every view; D15. */
CX_RESULT cx_diff_check_paths(cx_diff_job *job, cx_err *err);
/* D13. */
CX_RESULT cx_diff_check_copies(cx_diff_job *job, cx_err *err);
/* D02, D03, D04. */
CX_RESULT cx_diff_check_repository(cx_diff_job *job, cx_err *err);
/* Whether a name is `.git` as some file system sees it. */
bool cx_diff_is_git_name(cx_str name);

/* --- diff_tree.c ------------------------------------------------------------------------------ */

/* The name of the tree that these entries make, all sorted; CX_E_CONFLICT when one is a file and a
 * folder at once. */
CX_RESULT cx_diff_tree_oid(const cx_git_entry *entries, size_t count, size_t oid_size, cx_oid *out,
                           cx_err *err);
/* Writes the trees of these entries, all sorted, whose contents are there already. */
CX_RESULT cx_diff_tree_store(const cx_git *git, const cx_git_entry *entries, size_t count,
                             cx_oid *out, cx_err *err);
/* Writes the blobs of the changes (sorted) and the tree; CX_E_CONFLICT when it is not `tree`. */
CX_RESULT cx_diff_tree_write(const cx_git *git, const cx_oid *baseline,
                             const cx_diff_change *changes, size_t count, const cx_oid *tree,
                             cx_err *err);

#endif
