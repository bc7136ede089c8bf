/*
 * state_internal.h - what the files of the governor share: a run, its tasks, and what each state
 * does.
 *
 * A cx_governor is one run. A cx_governor_task is one contract in it, from its worktree to its
 * merge. Each state has a function (cx_state_work, ..) that does its work, writes its events, and
 * says with cx_task_go which transition it asks for, or with cx_task_refuse which gate refused.
 * Only governor.c moves a task from state to state, by the table of run.md §14.
 *
 * Invariants, cited by the code that relies on them and by tests/unit/governor:
 *
 *   I1  A state function that returns an error has not passed: governor.c makes a refusal of it
 *       (R1).
 *   I2  Nothing is released before the evidence of why is written, except by the end of the run.
 *   I3  Facts in reports come from what was observed here; an agent's words are only its summary.
 *   I4  `state` changes only with a STATE_TRANSITION event, and only along the table; a reason is
 *       used once.
 *   I5  FAIL is final. A task that is refused goes there, after its workspace is released.
 *   I6  While parts run side by side (`shared`), the governor and all its tasks are read and
 *       written only between cx_governor_enter and cx_governor_leave, by one thread at a time.
 *   I7  After an event could not be written (`log_failed`), no other event is.
 */
#ifndef CX_GOVERNOR_STATE_INTERNAL_H
#define CX_GOVERNOR_STATE_INTERNAL_H

#include "base/api.h"
#include "approval/api.h"
#include "bundle/api.h"
#include "contract/api.h"
#include "candidate/api.h"
#include "command/api.h"
#include "governor/governor.h"
#include "agent/api.h"
#include "sandbox/api.h"
#include "git/api.h"

typedef enum cx_governor_state {
    CX_S0_CONTRACT,
    CX_S1_PLAN,
    CX_S2_WORK,
    CX_S3_REVIEW,
    CX_S4_TESTS,
    CX_S5_FIX,
    CX_S6_DONE,
    CX_S_FAIL,
    CX_S_COUNT
} cx_governor_state;

/* The reasons of transitions (§14), as data of the table in governor.c. */
#define CX_WHY_ACCEPTED "contract_accepted"
#define CX_WHY_SINGLE "plan_single"
#define CX_WHY_SPLIT "plan_split"
#define CX_WHY_AUDIT "audit_only"
#define CX_WHY_DIFF_PASSED "diff_gate_passed"
#define CX_WHY_REVIEW_PASSED "review_passed"
#define CX_WHY_REVIEW_BLOCKING "review_blocking"
#define CX_WHY_TESTS_PASSED "tests_passed"
#define CX_WHY_TESTS_FAILED "tests_failed"
#define CX_WHY_FIX "fix_contract"

#define CX_RUN_PARTS_MAX 16 /* that one contract is split into */

/* Texts that are collected, in an arena. */
typedef struct cx_texts {
    const cx_str *items;
    size_t count;
} cx_texts;

typedef struct cx_governor cx_governor;

/* An event that waits until RUN_CREATED is written. */
typedef struct cx_deferred_event {
    cx_run_event event;
    struct cx_deferred_event *next;
} cx_deferred_event;

/* The sandbox, tried out in a thread while S0 and S1 run. */
typedef struct cx_governor_trial {
    cx_thread thread;
    bool running;
    cx_sandbox_options options;
    cx_sandbox *sandbox;
    cx_status status;
    cx_err err;
} cx_governor_trial;

/* Why a task is refused. Written by cx_task_refuse and cx_task_gate_failed; the outcome, the
 * reports and the manifest read it. */
typedef struct cx_task_refusal {
    cx_gate_id gate; /* that refused */
    cx_str reason;
    cx_str hint;         /* one sentence for a person; may be empty */
    bool aborted;        /* by a signal */
    bool blocked;        /* before the agent started */
    cx_texts violations; /* also of a gate that failed without ending the task */
} cx_task_refusal;

/* What has to be released. Made before the first turn (state_enter.c), released by
 * state_leave.c. */
typedef struct cx_task_workspace {
    bool has_worktree;
    bool has_locks;
    size_t lock_count; /* of the locks; "src" and "src/" are one */
    cx_worktree worktree;
    cx_worktree_options options;
    cx_str ref;            /* the worktree, relative to the runtime root; empty: none was made */
    cx_snapshot *snapshot; /* from before the agent */
    const char *scratch;   /* folder that the agent may write: {output}, schema, new git objects */
    const char *private_folder; /* that no agent sees, except for what is bound into its sandbox */
} cx_task_workspace;

/* The agent, what it may do, and what it replied. Opened by state_enter.c; written by state_work.c
 * and state_runner.c in S2 (state_split.c in S1). */
typedef struct cx_task_agent {
    cx_runner *runner;
    bool started;
    const char *program; /* of the runner's argv[0], as the tool gate found it; NULL: none */
    cx_str thread_id;
    const char *schema_path;
    cx_str schema; /* the text of the bound schema */
    cx_sandbox_spec spec;
    cx_sandbox_git spec_git;
    cx_sandbox_bind spec_binds[2];
    const char *spec_env[2];  /* CODEX_HOME, or nothing */
    cx_agent_git git;         /* its private copies; git_dir NULL: it has none */
    cx_agent_objects objects; /* imported from it */
    cx_json codex_home;       /* what is in it, as evidence; when spec_env has it */
    cx_str summary;           /* its own words (I3) */
    bool has_reply;
    cx_json reply;
    const cx_json *evidence; /* of the reply, when it is complete (state_evidence.c) */
    cx_str evidence_note;    /* why it was left out */
    cx_buf transcript;
    bool transcript_listed; /* its last line is one of a list, not of a block */
    bool transcript_cut;
    cx_buf session; /* codex/<task>/events.jsonl */
    uint32_t turns;
    bool network_on;
    struct cx_task_egress *egress; /* NULL = none (state_egress.c) */
} cx_task_agent;

/* What the agent made. Written by state_diff.c and state_work.c in S2, or by state_join.c from the
 * parts; `merged` by state_merge.c in S6. */
typedef struct cx_task_candidate {
    cx_diff_report diff;
    bool has_diff;
    cx_oid commit; /* size 0: none was made */
    cx_str commit_text, tree_text;
    cx_oid merged; /* the commit that main points to; size 0: not merged */
    cx_str merged_kind;
    cx_texts changed; /* paths */
} cx_task_candidate;

/* Verdicts as reports have them; each is written by the file of its gate, last attempt last. */
typedef struct cx_task_verdicts {
    cx_run_gate policy, diff, review, tests;
} cx_task_verdicts;

typedef struct cx_task_reports {
    cx_run_review_facts review; /* S3 */
    cx_run_test_facts tests;    /* S4 */
    CX_VEC(cx_str) artifacts;   /* paths of files in artifacts/ that reports name */
} cx_task_reports;

typedef struct cx_governor_task {
    cx_governor *governor;
    cx_arena arena;
    cx_str id; /* of the original contract; folders, branch and events are named after it */
    cx_str started_at;

    /* S0 writes these; the fix loop (S5) replaces them by those of its contract. */
    cx_contract contract;
    cx_str contract_text; /* the resolved bytes */

    /* Written by governor.c (I4), except `why`, by cx_task_go, and `attempt`, by S5. */
    cx_governor_state state;
    const char *why; /* the transition that is asked for; NULL: none */
    uint32_t attempt;
    bool refused; /* set by cx_task_refuse; never reset */

    cx_gate_id gate; /* that is being evaluated: an error belongs to it (I1) */

    /* §14: a contract of a tech lead is split, and what it is split into are parts of it. */
    bool plans; /* has no agent but the one that plans; its candidate is what the parts join to */
    bool part;
    cx_runner_settings settings;               /* of its runner */
    const cx_run_runner_config *runner_config; /* NULL: replay-script */

    cx_task_refusal refusal;
    cx_task_workspace workspace;
    cx_task_agent agent;
    cx_task_candidate candidate;
    cx_task_verdicts verdicts;
    cx_task_reports reports;
} cx_governor_task;

struct cx_governor {
    const cx_run_options *options;
    const cx_alloc *alloc;
    const cx_io *io;
    cx_arena *arena;

    cx_git *git;
    const char *repo_root;
    bool dry; /* nothing may be written */
    cx_run_store store;
    cx_run_path_context ground;
    cx_run_repo repo;
    cx_run_policy policy;
    cx_run_findings findings; /* of the contract */
    bool contract_ok;
    cx_contract contract; /* the run's */
    cx_str contract_text; /* contract.json */
    cx_digest contract_sha256;
    cx_str baseline; /* commit id; empty when it does not resolve */
    cx_oid baseline_oid;
    cx_run_tree tree;
    cx_str created_at;

    cx_run *run;
    cx_run_mask mask; /* R7 */
    bool masking;
    uint64_t events;
    bool log_failed; /* I7 */

    /* approvals */
    cx_run_approval_context approval_context;
    cx_run_approvals approvals;
    bool approvals_open;
    size_t refusals_written; /* of approvals.refused, as events */
    cx_texts granted_scopes; /* of approvals that were used */

    /* the runner and its sandbox */
    cx_runner_settings runner_settings;
    const cx_run_runner_config *runner_config; /* NULL: replay-script */
    cx_str runner_name;
    bool merge;          /* still meant to merge */
    cx_sandbox *sandbox; /* NULL until the sandbox gate */
    cx_governor_trial trial;
    bool degraded;
    bool unconfined; /* danger-full-access, by approval */
    cx_str notes;

    cx_run_lock_renewer keeper;
    bool locks_renewed; /* the keeper renews the leases */

    /* I6. The lock is left for the turns of agents and for tests. */
    cx_lock lock;
    bool shared; /* parts run side by side */
    bool inside; /* a thread is between enter and leave */

    cx_governor_task *tasks; /* the run's own first, then its parts in their order */
    size_t task_count;

    /* --intent */
    cx_bytes contract_bytes;   /* the contract as it came: the caller's, or the planner's */
    cx_governor_task *planner; /* NULL: a contract was given.  Is tasks[0] when it was refused */
    cx_str planner_commit;     /* that it has seen */
    bool planner_diagnostic;   /* exec although runner.mcp_only */
    bool deferring;            /* events wait until RUN_CREATED is written */
    cx_deferred_event *deferred, *deferred_last;
};

/* --- governor.c ------------------------------------------------------------------------------- */

/* I6: enter before the run's state is used, leave before something that takes long. Both do nothing
 * while no parts run. Not recursive: a second enter of the same thread never returns. */
void cx_governor_enter(cx_governor *g);
void cx_governor_leave(cx_governor *g);
/* Leaves, waits for cx_governor_wake of another thread, enters again. */
void cx_governor_wait(cx_governor *g);
void cx_governor_wake(cx_governor *g);
/* From state to state until the end; a part waits in S4 when its tests have passed. */
CX_RESULT cx_task_run(cx_governor_task *t, cx_err *err);
/* Takes the transition that was asked for. */
CX_RESULT cx_task_advance(cx_governor_task *t, cx_err *err);

/* --- state_split.c -------------------------------------------------------------------------- */

/* S1 of a tech lead: one turn that changes nothing, whose reply has the contracts of the parts. */
CX_RESULT cx_task_plan(cx_governor_task *t, cx_err *err);
/* state_join.c: S2 of it: the parts side by side, then what they made, joined. */
CX_RESULT cx_task_work_parts(cx_governor_task *t, cx_err *err);
/* Where in the bundle a file of the task lies: `path` itself for the run's own task, for a part a
 * path of its own (run.md §17).  Data is NULL when out of memory. */
cx_str cx_task_file(cx_governor_task *t, const char *path);

/* --- state_event.c -------------------------------------------------------------------------- */

cx_str cx_digest_text(const cx_digest *digest, cx_arena *arena);

/* Counts an event; tests of crashes end the process here. */
void cx_governor_fault(cx_governor *g);
/* An event of the run itself, and of a task; the list is ended.  NULL is {}. */
CX_RESULT cx_governor_event(cx_governor *g, cx_run_level level, cx_run_event_type type,
                            cx_json_list *payload, cx_err *err);
CX_RESULT cx_task_event(cx_governor_task *t, cx_run_level level, cx_run_event_type type,
                        cx_json_list *payload, cx_err *err);
CX_RESULT cx_task_event_json(cx_governor_task *t, cx_run_level level, cx_run_event_type type,
                             const cx_json *payload, cx_err *err);
/* {"passed": true} .. or with violations. */
CX_RESULT cx_task_gate_event(cx_governor_task *t, cx_run_event_type type, bool passed,
                             const cx_texts *violations, cx_err *err);

/* Events wait from now on; the second call writes them, in their order. */
void cx_governor_defer_events(cx_governor *g);
CX_RESULT cx_governor_record_events(cx_governor *g, cx_err *err);

/* --- going on, or not ------------------------------------------------------------------------- */

/* The state has done its work and asks for this transition. */
void cx_task_go(cx_governor_task *t, const char *why);
/* Writes policy_violation when the contract was broken (`violates`), then gate_failed, and keeps
 * the violations for reports and the outcome; texts are copied.  The task goes on. */
CX_RESULT cx_task_gate_failed(cx_governor_task *t, cx_gate_id gate, const char *reason,
                              bool violates, const cx_texts *violations, cx_err *err);
/* The same, and the task ends. */
CX_RESULT cx_task_refuse(cx_governor_task *t, cx_gate_id gate, const char *reason, bool violates,
                         const cx_texts *violations, cx_err *err);
/* The same for what could not be evaluated, from an error. */
CX_RESULT cx_task_refuse_error(cx_governor_task *t, const cx_err *why, cx_err *err);
/* An error's message as evidence has it: RUNTIME_ROOT, LEDGER_HOME and REPOSITORY stand for folders
 * of this computer.  Data is NULL when out of memory. */
cx_str cx_governor_message(const cx_governor *g, const cx_err *why, cx_arena *arena);
bool cx_task_cancelled(const cx_governor_task *t);
/* The paths of a diff_name_only.txt; all text in the arena. */
CX_RESULT cx_names_of(cx_str text, cx_arena *arena, cx_texts *out, cx_err *err);
/* The refusing findings as "rule where" texts. */
CX_RESULT cx_findings_texts(const cx_run_findings *findings, cx_arena *arena, cx_texts *out,
                            cx_err *err);

/* --- states ----------------------------------------------------------------------------------- */

typedef cx_status cx_governor_step(cx_governor_task *t, cx_err *err);

/* state_start.c: repository, contract, policies, the bundle; then RUN_CREATED. */
CX_RESULT cx_governor_open(cx_governor *g, cx_err *err);
CX_RESULT cx_governor_begin(cx_governor *g, cx_err *err);
void cx_governor_close(cx_governor *g);
/* Folder, owner and empty log, before there is anything to say. */
CX_RESULT cx_governor_begin_bundle(cx_governor *g, cx_str task_id, cx_err *err);

/* state_intent.c: S0 by an agent, between opening the repository and reading the contract; then,
 * with the evidence of it, after RUN_CREATED. */
CX_RESULT cx_governor_plan_intent(cx_governor *g, cx_err *err);
void cx_governor_check_intent(cx_governor *g);
CX_RESULT cx_governor_record_intent(cx_governor *g, cx_err *err);

void cx_governor_task_init(cx_governor_task *t, cx_governor *g, cx_str id);
/* RFC 3339, now; data NULL when out of memory. */
cx_str cx_governor_now(cx_governor *g, cx_arena *arena);

/* state_ahead.c: what stops a run before its agent starts, and can be known without a work
 * tree. */
typedef struct cx_ahead {
    const cx_governor *governor;
    const cx_contract *contract;
    const cx_run_runner_config *runner; /* NULL = the configuration has none of that name */
    const cx_runner_settings *settings;
    const char *worktree; /* where no program may lie either; NULL = none yet */
    cx_arena *arena;
} cx_ahead;

/* Where programs of a run may come from (C16): not from the repository, runtime root or work
 * tree. */
CX_RESULT cx_ahead_trust(const cx_ahead *ahead, cx_run_trust *out, cx_err *err);
/* Each lists "WHAT: why" for what is refused; an empty list passes. */
CX_RESULT cx_ahead_runner(const cx_ahead *ahead, const char **out_reason, cx_texts *out,
                          cx_err *err);
CX_RESULT cx_ahead_integrated(const cx_ahead *ahead, cx_texts *out, cx_err *err);
CX_RESULT cx_ahead_runner_argv(const cx_ahead *ahead, cx_texts *out, cx_err *err);
CX_RESULT cx_ahead_tests(const cx_ahead *ahead, cx_texts *out, cx_err *err);
cx_ahead cx_task_ahead(cx_governor_task *t);

/* state_runner.c */
CX_RESULT cx_governor_choose_runner(cx_governor *g, cx_err *err);
/* Of a part: what the command line says, else what its contract or its role has. */
void cx_task_choose_runner(cx_governor_task *t);
void cx_governor_settings_from(const cx_governor *g, const cx_run_runner_config *config,
                               cx_runner_settings *out);
bool cx_governor_is_diagnostic(const cx_governor *g);
cx_runner_host cx_task_host(cx_governor_task *t);
/* state_evidence.c: after the reply has passed its schema. */
CX_RESULT cx_task_check_evidence(cx_governor_task *t, cx_err *err);
/* state_transcript.c: one item of the conversation, for transcript.md; `task` is a
 * cx_governor_task. */
cx_status cx_task_add_transcript(void *task, const cx_session_item *item, cx_err *err);
void cx_task_stop_runner(cx_governor_task *t);

cx_governor_step cx_state_contract; /* S0: state_prepare.c */
cx_governor_step cx_state_plan;     /* S1: state_prepare.c */
cx_governor_step cx_state_work;     /* S2: state_work.c */
cx_governor_step cx_state_review;   /* S3: state_review.c */
cx_governor_step cx_state_tests;    /* S4: state_test.c */
cx_governor_step cx_state_fix;      /* S5: state_fix.c */
cx_governor_step cx_state_done;     /* S6: state_merge.c */

/* state_work.c: the agent's turn, the output gate and the diff gate. */
cx_governor_step cx_task_turn;
/* The commit is the candidate from now on. */
CX_RESULT cx_task_set_candidate(cx_governor_task *t, const cx_oid *commit, cx_err *err);

/* state_fix.c: all lints of a contract over the policies that the run already has, then the
 * policy gate; `faults` empty when it holds.  *out_text: as it is run. */
CX_RESULT cx_task_validate(cx_governor_task *t, cx_str given, cx_contract *out, cx_str *out_text,
                           cx_texts *faults, cx_err *err);
CX_RESULT cx_task_check_policy(cx_governor_task *t, const cx_contract *contract, cx_texts *faults,
                               cx_err *err);

/* state_merge.c: a merge with a branch that moved, judged again: paths, then tests. */
struct cx_merge_plan;
CX_RESULT cx_task_check_merge(cx_governor_task *t, const struct cx_merge_plan *plan, cx_err *err);
CX_RESULT cx_task_refuse_merge(cx_governor_task *t, cx_str reason, cx_str detail, cx_err *err);

/* state_enter.c: worktree, locks, gates of §13, sandbox, runner; before the first turn. */
cx_governor_step cx_task_enter;

/* state_codex.c: what an agent finds under CODEX_HOME, a new folder of t->workspace.private_folder
 * that has to be bound; *out_env is NULL when no base home is set.  Secrets of the base home are
 * masked from then on. */
CX_RESULT cx_task_codex_home(cx_governor_task *t, const cx_run_agent *row, cx_str agent_id,
                             const char **out_env, cx_json *out_evidence, cx_err *err);
/* The folder of such a variable. */
const char *cx_codex_home_of(const char *env);
cx_governor_step cx_task_worker_codex_home;

/* state_gates.c: the gates of S2 in their order (run.md §13), declared and run from these lists:
 * those before the sandbox of the agent is described, and those of the commands that will run in
 * it. */
#define CX_ENTRY_GATES(X)        \
    X(cx_gate_integrated)        \
    X(cx_gate_concurrency_check) \
    X(cx_gate_network_check)     \
    X(cx_gate_mcp_check)         \
    X(cx_gate_sampling_check)    \
    X(cx_gate_sandbox)
#define CX_COMMAND_GATES(X) \
    X(cx_gate_runner_argv)  \
    X(cx_gate_test_programs)
#define CX_DECLARE_STEP(name) cx_governor_step name;
CX_ENTRY_GATES(CX_DECLARE_STEP)
CX_COMMAND_GATES(CX_DECLARE_STEP)
#undef CX_DECLARE_STEP
CX_RESULT cx_task_check_argv(cx_governor_task *t, const cx_runner *runner, bool network,
                             cx_run_command_verdict *out, cx_err *err);
CX_RESULT cx_governor_open_box(cx_governor *g, cx_arena *arena, cx_err *err);
/* Begins with it, in a thread; cx_governor_open_box takes what comes of it.  That it could not be
 * begun is no error. */
void cx_governor_begin_trial(cx_governor *g);
void cx_governor_end_trial(cx_governor *g);
/* C14: a script of the worktree against the baseline's blob; `plain` is a relative path. */
CX_RESULT cx_task_compare_script(cx_governor_task *t, cx_str plain, cx_run_script *out,
                                 cx_err *err);

/* state_approve.c: asks for approval of all scopes ("wide_path:src/"); *out_granted. */
CX_RESULT cx_task_ask_approval(cx_governor_task *t, const cx_texts *scopes, bool *out_granted,
                               cx_err *err);
bool cx_governor_scope_granted(void *governor, cx_str scope);
/* Whether approvers have signed, or may still sign, all of them. */
bool cx_governor_may_be_approved(cx_governor *g, const cx_texts *scopes);
cx_run_grants cx_governor_grants(cx_governor *g);

/* state_diff.c: judges the worktree; `phase` empty, "after_review", "after_tests".  A refusal
 * rolls back. */
CX_RESULT cx_task_run_diff_gate(cx_governor_task *t, const char *phase, cx_err *err);
CX_RESULT cx_task_write_patch(cx_governor_task *t, cx_err *err);
CX_RESULT cx_task_write_patch_bytes(cx_governor_task *t, cx_bytes patch, cx_bytes names,
                                    cx_err *err);
/* state_enter.c: what the agent has in place of the work tree's git directory; NULL: nothing. */
const cx_agent_git *cx_task_agent_git(const cx_governor_task *t);

/* state_test.c: the tests again, on a merge of the candidate with a branch that moved. */
CX_RESULT cx_task_test_merge(cx_governor_task *t, const cx_oid *commit, bool *out_passed,
                             cx_err *err);

/* Names a file of artifacts/ in the reports, once. */
CX_RESULT cx_task_add_artifact(cx_governor_task *t, cx_str path, cx_err *err);

/* state_leave.c: worktree and locks released, with their events; and, when events can no longer
 * be written, without them. */
CX_RESULT cx_task_leave(cx_governor_task *t, cx_err *err);
/* state_egress.c: after the sandbox's spec was made, which it changes; closing is fine without. */
CX_RESULT cx_task_open_egress(cx_governor_task *t, cx_err *err);
void cx_task_close_egress(cx_governor_task *t);
void cx_task_release_silently(cx_governor_task *t);
/* state_end.c: codex/<task>/. */
CX_RESULT cx_task_write_session(cx_governor_task *t, cx_err *err);
CX_RESULT cx_governor_end(cx_governor *g, cx_run_outcome *out, cx_arena *arena, cx_err *err);

#endif
