/*
 * diff.h - the diff gate: everything that changed since the baseline, in four views, judged by the
 * rules D01..D15 (run.md §9).
 *
 *     CX_TRY(cx_snapshot_read(git, NULL, &before, err));        right after checkout
 *     ... the agent ...
 *     options.snapshot = before; ..
 *     CX_TRY(cx_diff_gate_run(&options, &arena, &report, err));    report.passed, report.findings
 *     CX_TRY(cx_run_candidate_patch(git, &report, &patch, &names, err));   candidate.h, also when
 *                                                               refused: it is the evidence
 *
 * Findings: rule = "D07", where = the path (or reference, or file of the repository), detail = the
 * view: "commit <id>", "head", "index", "disk", "repository".  An error means that the gate could
 * not be evaluated: the run is to be rejected all the same (R1).
 */
#ifndef CX_CANDIDATE_DIFF_H
#define CX_CANDIDATE_DIFF_H

#include "rules/api.h"
#include "git/api.h"

#define CX_DIFF_PATHS_MAX 10000
#define CX_DIFF_BYTES_MAX (UINT64_C(64) << 20)

typedef enum cx_diff_phase { CX_DIFF_AGENT, CX_DIFF_REVIEW, CX_DIFF_TESTS } cx_diff_phase;

typedef struct cx_diff_options {
    const cx_git *git;           /* of the work tree that is judged */
    const cx_snapshot *snapshot; /* from before the agent; NULL: the baseline stands for it, and the
                                    repository itself (D02, D03) cannot be judged */
    cx_str baseline;             /* a commit id; other references are resolved now (D01) */
    const cx_str *allowed_paths;
    size_t allowed_count;
    const cx_str *binary_ok; /* paths that may be binary (D12) */
    size_t binary_ok_count;
    const cx_run_path_context *ground; /* where the runtime root lies; NULL = outside */
    const char *skip;                  /* see cx_snapshot_options */
    uint64_t max_paths;                /* D15; 0 = CX_DIFF_PATHS_MAX */
    uint64_t max_bytes;                /* D15; 0 = CX_DIFF_BYTES_MAX */
    cx_diff_phase phase;
    const cx_oid
        *expected_tree;     /* a re-check: another candidate tree is a violation ("D00"); NULL */
    const char *index_file; /* another index than the work tree's (a hook's); NULL */
    const cx_agent_git
        *agent;           /* what the agent has in place of the work tree's own; NULL: nothing */
    bool index_only;      /* hook pre-commit: index and HEAD alone */
    cx_str contract_path; /* the contract's own file, which is protected (D06), too; empty: none */
    /* cx_diff_gate_run_commits: `from` and all before it is trusted. A merge of it is compared with
     * its parents from there only, which shows everything that the merge itself brings. */
    bool baseline_merges;
    /* The common git directory was read-only for the agent: references that moved and work trees
     * that came or went since the snapshot are other people's doing (two runs, the user), which
     * informs and does not refuse. */
    bool shared;
    /* The agent could move no reference at all (§11, tasks of a split): those next to the task's
     * are another owner's, too. */
    bool has_siblings;
} cx_diff_options;

#define CX_DIFF_OPTIONS_INIT ((cx_diff_options){.git = NULL})

/* One path of the candidate that differs from the baseline. */
typedef struct cx_diff_change {
    cx_str path;
    uint32_t old_mode, new_mode; /* as git has them; 0 = absent */
    cx_oid old_oid, new_oid;
    bool ignored; /* judged, not committed */
} cx_diff_change;

typedef struct cx_diff_report {
    bool passed;
    cx_run_findings findings; /* call cx_diff_report_done */
    cx_diff_phase phase;
    cx_oid baseline;               /* size 0 when D01 */
    cx_oid head;                   /* where the work tree's HEAD is now; size 0: at no commit */
    cx_oid tree;                   /* of the candidate, computed here; size 0 when there is none */
    const cx_diff_change *changes; /* disk against baseline, sorted by path */
    size_t change_count;
    const cx_str *paths; /* every path changed in any view, sorted, each once */
    size_t path_count;
    uint64_t new_bytes;
    unsigned commits; /* judged: B..HEAD */
} cx_diff_report;

/* Everything of the report but the list of findings lives in the arena. */
CX_RESULT cx_diff_gate_run(const cx_diff_options *options, cx_arena *arena, cx_diff_report *out,
                           cx_err *err);
void cx_diff_report_done(cx_diff_report *report);

/* The commits `from`..`to` each against its parents, without a work tree: hook pre-push, pull
 * requests. `from` is an ancestor of `to`; size 0 is not possible. */
CX_RESULT cx_diff_gate_run_commits(const cx_diff_options *options, const cx_oid *from,
                                   const cx_oid *to, cx_arena *arena, cx_diff_report *out,
                                   cx_err *err);

/* {"allow","rules"[],"violations"[{rule,path,view,message}],"baseline","tree","changed"[],"phase"}:
 * `gate diff --json` and the DIFF_GATE_RESULT event. */
CX_RESULT cx_diff_report_json(const cx_diff_report *report, cx_arena *arena, cx_json *out,
                              cx_err *err);

/* "D07": one sentence for people; NULL for no rule. */
const char *cx_diff_rule_text(const char *rule);

/* --- what git prints -------------------------------------------------------------------------- */

typedef struct cx_raw_change {
    uint32_t old_mode, new_mode;
    cx_oid old_oid, new_oid;
    char status;     /* A C D M R T U X */
    uint8_t score;   /* of R and C */
    cx_str path;     /* new side */
    cx_str from;     /* old side of R and C; else empty */
    uint32_t commit; /* index into the commits of the output; 0 when it names none */
} cx_raw_change;

typedef struct cx_raw_diff {
    cx_raw_change *changes;
    size_t count;
    cx_oid *commits; /* in the order printed, one a parent */
    size_t commit_count;
} cx_raw_diff;

/* `diff-tree -z --raw --no-abbrev` and its like (§9); with `commits` lines of commit ids are
 * between (diff-tree --stdin).  Results live in the arena and borrow nothing. */
CX_RESULT cx_raw_parse(cx_str text, size_t oid_size, bool commits, cx_arena *arena,
                       cx_raw_diff *out, cx_err *err);

/* Quotes a path as git does with core.quotePath=false, and reads such a line back. */
void cx_run_path_quote(cx_buf *out, cx_str path);
CX_RESULT cx_run_path_unquote(cx_str line, cx_arena *arena, cx_str *out, cx_err *err);

#endif
