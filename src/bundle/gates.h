/*
 * gates.h - the gates of a run, one row each (run.md §13).
 *
 * A gate decides one question and refuses a task when the answer is no or cannot be found (R1). Its
 * name is `gate` of gate_failed and `failed_gate` of the outcome; its verdict may have an event.
 * tools/check_docs.py compares this table with the one of run.md §13, and with the reasons that the
 * governor gives.
 *
 *     X(NAME, name, event, member, good, where, question, reasons)
 *
 *     NAME      CX_GATE_NAME is the constant
 *     event     the type of the event that has its verdict; UNKNOWN: only gate_failed has it
 *     member    member of the payload that tells the verdict, and
 *     good      the text of it that passes; "" = the value true
 *     where     the state in which it runs, or "any"
 *     question  what it decides
 *     reasons   of refusals, besides could_not_evaluate, which each gate has; "K*" = begins with K
 *
 * To add a gate: a row here, its function and the step that calls it in src/governor, the row in
 * run.md, and a test.
 */
#ifndef CX_BUNDLE_GATES_H
#define CX_BUNDLE_GATES_H

#include "bundle/event_types.h"

#define CX_RUN_GATES(X)                                                                           \
    X(SCHEMA_REGISTRY, "schema_registry", UNKNOWN, "", "", "S0",                                  \
      "program and registry have the same schemas", "registry_mismatch")                          \
    X(CONTRACT, "contract", UNKNOWN, "", "", "S0",                                                \
      "the contract passes the lints of §3; input artifacts are unchanged",                       \
      "K* POLICY task_id_unusable artifact_changed fix_contract_invalid")                         \
    X(POLICY, "policy", POLICY_GATE_RESULT, "passed", "", "S0",                                   \
      "rights, paths and commands are within role and policy (§4 to §8)",                         \
      "agent_not_registered permission_exceeds_role protected_path invalid_path wide_path "       \
      "unknown_policy_pack override_file fix_contract_wider")                                     \
    X(PLAN, "plan", UNKNOWN, "", "", "S0, S1",                                                    \
      "work on the plan was asked for; its parts may run",                                        \
      "plan_only no_sandbox no_contracts too_many_contracts contract_invalid policy "             \
      "wider_than_parent nested_plan not_of_this_plan task_id_taken overlap")                     \
    X(SPLIT, "split", UNKNOWN, "", "", "S2", "all parts passed and could be joined",              \
      "part_refused join_refused")                                                                \
    X(WORKTREE, "worktree", UNKNOWN, "", "", "S2",                                                \
      "the worktree could be made, and removed (§11)", "not_given_back")                          \
    X(LOCK, "lock", UNKNOWN, "", "", "S2", "no other run has a lock on the paths (§11)",          \
      "invalid_path path_locked lease_lost not_given_back")                                       \
    X(INTEGRATED, "integrated", INTEGRATED_GATE_RESULT, "passed", "", "S2",                       \
      "programs that the contract needs are pinned and unchanged", "tool_not_integrated")         \
    X(CONCURRENCY, "concurrency", MCP_CONCURRENCY_CHECK, "passed", "", "S2",                      \
      "the mode of MCP concurrency is known", "unknown_mode")                                     \
    X(NETWORK, "network", NETWORK_GATE_RESULT, "passed", "", "S2",                                \
      "the contract allows the network that the task needs",                                      \
      "denied approval_missing invalid_policy")                                                   \
    X(MCP, "mcp", MCP_TOOL_GATE_RESULT, "passed", "", "S2",                                       \
      "the MCP tools are on the global allowlist", "tool_not_allowed")                            \
    X(SAMPLING, "sampling", MCP_SAMPLING_GATE_RESULT, "passed", "", "S2",                         \
      "sampling was approved where it is asked for", "approval_missing")                          \
    X(SANDBOX, "sandbox", UNKNOWN, "", "", "S2",                                                  \
      "each layer of the sandbox is on, or its absence was approved (§16)",                       \
      "sandbox_layer_missing")                                                                    \
    X(TOOL, "tool", TOOL_GATE_RESULT, "passed", "", "S2, S4",                                     \
      "a command may run: the runner's argv, then each test (§8)",                                \
      "runner_argv script_modified command_rejected")                                             \
    X(RUNNER, "runner", UNKNOWN, "", "", "S2", "the agent ran and ended by itself (§16)",         \
      "runner_not_configured mcp_only shell_denied failed timeout cancelled violation "           \
      "agent_gave_up")                                                                            \
    X(OUTPUT_SCHEMA, "output_schema", OUTPUT_SCHEMA_ENFORCED, "passed", "", "S2",                 \
      "the agent's reply matches the bound schema", "reply_not_valid evidence_incomplete")        \
    X(CANDIDATE, "candidate", UNKNOWN, "", "", "S2", "the candidate could be committed", "")      \
    X(DIFF, "diff", DIFF_GATE_RESULT, "passed", "", "S2, S3, S4, S6",                             \
      "what changed keeps to the rules D01 to D15 (§9)",                                          \
      "candidate_changed baseline_unresolved repository_changed refs_changed index_flags "        \
      "nested_repository protected_path outside_allowed_paths special_file symlink gitlink mode " \
      "binary copy_from_outside path_collision too_much violation")                               \
    X(ROLLBACK, "rollback", UNKNOWN, "", "", "S2, S3, S4",                                        \
      "after a refusal the worktree equals its snapshot (§15)", "not_verified")                   \
    X(ISOLATION, "isolation", REVIEWER_GATE_RESULT, "passed", "", "S3",                           \
      "the reviewer changed nothing (§10); refuses as review", "")                                \
    X(REVIEW, "review", REVIEW_RESULT, "verdict", "PASS", "S3", "the reviewer accepts (§10)",     \
      "review_failed reviewer_blocked reviewer_side_effect")                                      \
    X(TESTS, "tests", TEST_RESULT, "status", "PASS", "S2, S4",                                    \
      "the test programs may run, and each must-pass test passes (§12)",                          \
      "command_refused must_pass_failed tests_error")                                             \
    X(FIX_LOOP, "fix_loop", UNKNOWN, "", "", "S5", "a fix contract could be made (§15)", "")      \
    X(MERGE, "merge", UNKNOWN, "", "", "S6",                                                      \
      "all gates passed and the main branch could move (§15)",                                    \
      "gates_not_passed main_missing baseline_not_in_main checked_out_dirty conflict moved "      \
      "outside_allowed_paths tests_failed")                                                       \
    X(STATE, "state", UNKNOWN, "", "", "any", "the transition is in the table of §14",            \
      "illegal_transition")                                                                       \
    X(INTERRUPTED, "interrupted", UNKNOWN, "", "", "any", "no signal asked the run to stop",      \
      "signal")                                                                                   \
    X(RUN, "run", UNKNOWN, "", "", "any", "what no other gate covers could be done", "")

typedef enum cx_gate_id {
    CX_GATE_NONE,
#define CX_GATE_CONSTANT(name, text, event, member, good, where, question, reasons) CX_GATE_##name,
    CX_RUN_GATES(CX_GATE_CONSTANT)
#undef CX_GATE_CONSTANT
        CX_GATE_COUNT
} cx_gate_id;

typedef struct cx_gate_row {
    const char *name;
    cx_run_event_type event; /* CX_RUN_EVENT_UNKNOWN = its verdict has no event of its own */
    const char *member, *good;
    const char *where, *question, *reasons;
} cx_gate_row;

/* The row of a gate; that of CX_GATE_NONE has an empty name. */
const cx_gate_row *cx_gate_row_of(cx_gate_id gate);
const char *cx_gate_name(cx_gate_id gate);
/* The gate whose verdict is events of that type; CX_GATE_NONE when there is none. */
cx_gate_id cx_gate_of_event(cx_run_event_type type);
/* Whether the table has this reason for this gate. */
bool cx_gate_has_reason(cx_gate_id gate, const char *reason);

#endif
