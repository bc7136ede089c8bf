/*
 * governor.h - a governed run, from a contract to a sealed bundle (run.md §13, §14, §15).
 *
 *     cx_run_execute(&options, &arena, &outcome, err)
 *
 * A refusal is an outcome, not an error: when the contract's task_id can be used, a bundle is
 * written and sealed with status FAILURE, and the user's repository is what it was before. An error
 * means that no run could be started (no repository, runtime root not ignored, usage), or that its
 * evidence could not be written.
 *
 * cx_run_execute may be called from several threads, for the same repository too: locks and
 * worktrees keep runs apart.
 */
#ifndef CX_GOVERNOR_STATE_H
#define CX_GOVERNOR_STATE_H

#include <stdatomic.h>

#include "base/api.h"
#include "rules/api.h"

#define CX_RUN_INTENT_BYTES_MAX (UINT32_C(1) << 16)

typedef struct cx_run_ledger cx_run_ledger;             /* bundle/events.h */
typedef struct cx_run_shared_locks cx_run_shared_locks; /* approval/lock.h */

typedef struct cx_run_options {
    const cx_alloc *alloc;    /* NULL = default */
    const cx_io *io;          /* NULL = system */
    const char *repo;         /* a folder inside the repository's main checkout; NULL = here */
    const char *runtime_root; /* value of CORTEXPILOT_RUNTIME_ROOT; NULL = the usual place (R2) */
    const char *codex_base_home; /* value of CORTEXPILOT_CODEX_BASE_HOME; NULL or "" = none */
    const char *home;            /* the ledger's: never visible inside a sandbox; NULL = none */
    const char *credentials;     /* the user's store (egress.md §8); NULL = none */
    const char *program; /* the cortex program, for children of the sandbox; NULL = this one */
    cx_bytes contract;   /* the file's bytes, at most CX_RUN_CONTRACT_BYTES_MAX */
    cx_str intent; /* not empty: a request in place of a contract, which the runner of the role
                              PM makes of it (S0); UTF-8, at most CX_RUN_INTENT_BYTES_MAX */

    const char *runner; /* name of a configured runner; NULL = what contract or config say */
    const char *script; /* of replay-script, which it selects when `runner` is NULL */
    bool diagnostic;    /* exec although runner.mcp_only: recorded, never merges (decision 0018) */
    bool plan_only;     /* with `intent`: stop after S0, before anything is worked on */
    bool no_merge;      /* stop after S4 with SUCCESS, final_ref = candidate */
    bool allow_degraded_sandbox;  /* with an approval `sandbox_degraded` (§16) */
    const char *const *approvals; /* files of signed approvals, in addition to approvals/ (§13) */
    size_t approval_count;
    uint32_t approval_wait_s; /* at HUMAN_APPROVAL_REQUIRED; 0 = config's, whose default is 0 */

    const cx_run_ledger
        *ledger; /* takes each event and the seal; NULL: the bundle stays unsealed */

    /* Locks that other machines see, in addition to the files; NULL = none. */
    const cx_run_shared_locks *shared_locks;

    /* Each event when it is on the disk, as its line without '\n'; may be NULL. */
    void (*progress)(void *arg, cx_str event_type, cx_str line);
    void *progress_arg;
    const atomic_bool *cancel; /* turned true by a signal: the run ends as FAILURE; may be NULL */
    /* Tests only: abort() of the whole process after the event with that index; 0 = never. */
    uint64_t fault_event;
} cx_run_options;

/* All text in the arena of the call; empty when it does not apply. */
typedef struct cx_run_outcome {
    int exit_code; /* 0 or CX_RUN_EXIT_REJECTED; 3 when interrupted */
    cx_str run_id;
    cx_str task_id;
    cx_str status;      /* "SUCCESS", "FAILURE" */
    cx_str task_status; /* "SUCCESS", "FAILED", "BLOCKED" */
    cx_str failed_gate; /* "policy", "diff", "tool", "tests", "review", "runner", .. */
    cx_str reason;
    cx_str hint;        /* one sentence more, when there is one */
    cx_json violations; /* an array of text */
    uint32_t attempts;  /* turns that were taken */
    cx_str baseline_commit, final_commit;
    cx_str patch_sha256, manifest_sha256;
    bool sealed;
    uint64_t seal_index; /* of the journal */
    cx_str merged;       /* "fast_forward", "merge", or empty */
    cx_str bundle;       /* absolute path */
} cx_run_outcome;

CX_RESULT cx_run_execute(const cx_run_options *options, cx_arena *arena, cx_run_outcome *out,
                         cx_err *err);

/*
 * `cortex run --dry-run`: evaluates everything that can be before a worktree exists - registry,
 * contract, policy, network, MCP, sampling, integrated, runner argv - without writing anything.
 * `*out`: {valid, allow, errors[], gates{}, role_contract_summary, baseline_commit, runner,
 * lock_paths}.
 */
CX_RESULT cx_run_dry(const cx_run_options *options, cx_arena *arena, cx_json *out, bool *out_allow,
                     cx_err *err);

#endif
