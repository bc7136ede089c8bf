/*
 * replay_reexec.h - what the files of a re-execution share (replay.h).  Not for other files.
 */
#ifndef CX_AUDIT_REPLAY_REEXEC_H
#define CX_AUDIT_REPLAY_REEXEC_H

#include "candidate/api.h"
#include "contract/api.h"
#include "audit/replay.h"
#include "sandbox/api.h"
#include "git/api.h"

typedef struct cx_reexec {
    const cx_run_reexec_options *options;
    cx_run_bundle *bundle;
    cx_arena *arena;
    /* What was recorded. */
    cx_run_projection projection;
    const cx_run_projection_task *task; /* the one that is re-executed; NULL = none got that far */
    cx_json manifest, contract_json, result, tests;
    cx_contract contract;
    cx_run_policy policy;
    bool has_policy;
    cx_str run_id, baseline_text;
    cx_str *scopes; /* that approvals lifted, as HUMAN_APPROVAL_COMPLETED says */
    size_t scope_count;
    /* Where it is re-executed. */
    cx_git *git;
    cx_run_git_repo git_repo;
    cx_run_repo repo;
    cx_run_path_context ground;
    cx_oid baseline;
    char new_id[CX_RUN_ID_SIZE]; /* names the new work tree */
    cx_sandbox *box;             /* NULL = not needed so far */
    /* What was found. */
    CX_VEC(cx_run_difference) hard;
    CX_VEC(cx_run_difference) soft;
    CX_VEC(cx_str) errors;
    bool failed; /* memory */
} cx_reexec;

/* Differences and errors; `format` for the key. */
void cx_reexec_hard(cx_reexec *x, cx_json expected, cx_json actual, const char *format, ...)
    CX_PRINTF(4, 5);
void cx_reexec_soft(cx_reexec *x, cx_json expected, cx_json actual, const char *format, ...)
    CX_PRINTF(4, 5);
void cx_reexec_error(cx_reexec *x, const char *format, ...) CX_PRINTF(2, 3);
/* A text of the arena as JSON. */
cx_json cx_reexec_text(cx_reexec *x, cx_str text);
/* The sandbox, opened when it is first needed; false: an error was noted. */
bool cx_reexec_sandbox(cx_reexec *x);
/* cx_run_scope_is_approved of the recorded approvals; `arg` is the cx_reexec. */
bool cx_reexec_granted(void *arg, cx_str scope);

/* Judges what is in a work tree against the baseline, as the diff gate does. */
CX_RESULT cx_reexec_run_diff_gate(cx_reexec *x, const cx_worktree *tree, const cx_snapshot *before,
                                  cx_diff_report *out, cx_err *err);
/* Acceptance tests of the candidate, held against the recorded ones (§12). */
CX_RESULT cx_reexec_tests(cx_reexec *x, const cx_oid *candidate, cx_err *err);
/* The agent again, from the script: its patch must be the recorded one. */
CX_RESULT cx_reexec_agent(cx_reexec *x, cx_bytes patch, cx_err *err);
/* CX_SUCCESS for what is a finding about this run (noted as an error), else the status itself. */
cx_status cx_reexec_note(cx_reexec *x, cx_status status, const cx_err *what, const char *doing,
                         cx_err *err);

#endif
