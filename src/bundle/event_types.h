/*
 * event_types.h - the types of a run's events, one row each (run.md §17).
 *
 * This table is the only list: writers name a type by its constant, so that a typo does not
 * compile, and readers compare constants. tools/check_docs.py compares it with the table of run.md
 * §17.
 *
 *     X(NAME, text, levels, payload)
 *
 *     NAME     CX_RUN_EVENT_NAME is the constant
 *     text     `event_type` of the line
 *     levels   those that the governor writes: I info, W warn, E error
 *     payload  its members; "name?" may be absent
 *
 * A type is added here and in run.md, and never renamed: bundles that exist have it.
 */
#ifndef CX_BUNDLE_EVENT_TYPES_H
#define CX_BUNDLE_EVENT_TYPES_H

#include "base/api.h"

#define CX_RUN_EVENT_TYPES(X)                                                                   \
    X(RUN_CREATED, "RUN_CREATED", "IW",                                                         \
      "baseline_commit? contract_sha256? recovered? runtime_root?")                             \
    X(SCHEMA_REGISTRY_CHECK, "SCHEMA_REGISTRY_CHECK", "IE", "status violations?")               \
    X(CONTRACT_VALIDATED, "CONTRACT_VALIDATED", "I", "lints schema")                            \
    X(POLICY_PACK_SELECTED, "POLICY_PACK_SELECTED", "I", "policy_pack")                         \
    X(POLICY_GATE_RESULT, "POLICY_GATE_RESULT", "IE", "passed violations")                      \
    X(STATE_TRANSITION, "STATE_TRANSITION", "IE", "from reason to")                             \
    X(WORKTREE_CREATED, "WORKTREE_CREATED", "I", "baseline_commit mode path")                   \
    X(WORKTREE_REMOVED, "WORKTREE_REMOVED", "I", "path")                                        \
    X(LOCK_ACQUIRED, "LOCK_ACQUIRED", "I", "paths")                                             \
    X(LOCK_FAILED, "LOCK_FAILED", "E", "conflicts reason")                                      \
    X(LOCK_RECLAIMED, "LOCK_RECLAIMED", "W", "lock path? reason")                               \
    X(LOCK_RELEASED, "LOCK_RELEASED", "I", "paths")                                             \
    X(INTEGRATED_GATE_RESULT, "INTEGRATED_GATE_RESULT", "IE", "passed violations?")             \
    X(MCP_CONCURRENCY_CHECK, "MCP_CONCURRENCY_CHECK", "IE", "passed violations?")               \
    X(NETWORK_GATE_RESULT, "NETWORK_GATE_RESULT", "IE", "passed violations?")                   \
    X(MCP_TOOL_GATE_RESULT, "MCP_TOOL_GATE_RESULT", "IE", "passed violations?")                 \
    X(MCP_SAMPLING_GATE_RESULT, "MCP_SAMPLING_GATE_RESULT", "IE", "passed violations?")         \
    X(TOOL_GATE_RESULT, "TOOL_GATE_RESULT", "IE", "the verdict of the command gate: passed ..") \
    X(SANDBOX_APPLIED, "SANDBOX_APPLIED", "I", "the layers that are on")                        \
    X(SANDBOX_DEGRADED, "SANDBOX_DEGRADED", "W", "the layers that are on, and those missing")   \
    X(RUNNER_SELECTED, "RUNNER_SELECTED", "I", "codex_home? diagnostic? profile? role? runner") \
    X(RUNNER_STARTED, "RUNNER_STARTED", "I", "approval_policy? cwd sandbox thread_id")          \
    X(RUNNER_FINISHED, "RUNNER_FINISHED", "IE", "exit message? session?")                       \
    X(TOOL_INVOCATION, "TOOL_INVOCATION", "I", "tool, and what the runner says of the call")    \
    X(OUTPUT_SCHEMA_ENFORCED, "OUTPUT_SCHEMA_ENFORCED", "I", "passed schema")                   \
    X(TASK_RESULT_RECORDED, "TASK_RESULT_RECORDED", "I", "status")                              \
    X(DIFF_GATE_RESULT, "DIFF_GATE_RESULT", "IE", "changed_files passed phase? violations")     \
    X(CANDIDATE_COMMITTED, "CANDIDATE_COMMITTED", "I", "commit parent tree")                    \
    X(ROLLBACK_APPLIED, "ROLLBACK_APPLIED", "IE", "baseline_commit reason? strategy verified")  \
    X(REVIEWER_GATE_RESULT, "REVIEWER_GATE_RESULT", "IE", "changed passed")                     \
    X(REVIEW_RESULT, "REVIEW_RESULT", "IE", "verdict violations?")                              \
    X(TEST_COMMAND_RESULT, "TEST_COMMAND_RESULT", "IE", "exit_code name report?")               \
    X(TEST_RESULT, "TEST_RESULT", "I", "status")                                                \
    X(FIX_LOOP_TRIGGERED, "FIX_LOOP_TRIGGERED", "I", "contract contract_sha256 parent_task_id") \
    X(FIX_LOOP_EXHAUSTED, "FIX_LOOP_EXHAUSTED", "E", "attempts")                                \
    X(HUMAN_APPROVAL_REQUIRED, "HUMAN_APPROVAL_REQUIRED", "I", "contract_sha256 reason ..")     \
    X(HUMAN_APPROVAL_COMPLETED, "HUMAN_APPROVAL_COMPLETED", "I", "approvals scopes")            \
    X(HUMAN_APPROVAL_REJECTED, "HUMAN_APPROVAL_REJECTED", "E", "file reason")                   \
    X(HUMAN_APPROVAL_TIMEOUT, "HUMAN_APPROVAL_TIMEOUT", "W", "waited_sec")                      \
    X(MERGE_APPLIED, "MERGE_APPLIED", "I", "branch commit detail? kind")                        \
    X(MERGE_REFUSED, "MERGE_REFUSED", "E", "detail reason")                                     \
    X(LOG_RECOVERED, "LOG_RECOVERED", "W", "chain_completed events torn_bytes torn_tail?")      \
    X(RUN_FINISHED, "RUN_FINISHED", "IE", "exit_code status")                                   \
    X(GATE_FAILED, "gate_failed", "E", "gate reason violations?")                               \
    X(POLICY_VIOLATION, "policy_violation", "E", "gate reason violations")

typedef enum cx_run_event_type {
    CX_RUN_EVENT_UNKNOWN, /* read from a file: a type that this version does not know */
#define CX_RUN_EVENT_CONSTANT(name, text, levels, payload) CX_RUN_EVENT_##name,
    CX_RUN_EVENT_TYPES(CX_RUN_EVENT_CONSTANT)
#undef CX_RUN_EVENT_CONSTANT
        CX_RUN_EVENT_TYPE_COUNT
} cx_run_event_type;

typedef enum cx_run_level { CX_RUN_INFO, CX_RUN_WARN, CX_RUN_ERROR } cx_run_level;

/* `event_type` of the line; "" for CX_RUN_EVENT_UNKNOWN. */
const char *cx_run_event_type_name(cx_run_event_type type);
/* CX_RUN_EVENT_UNKNOWN when no row has that text. */
cx_run_event_type cx_run_event_type_find(cx_str text);
/* Whether the governor writes events of this type with this level. */
bool cx_run_event_type_has_level(cx_run_event_type type, cx_run_level level);

#endif
