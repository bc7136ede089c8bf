/*
 * gates.h - the gates that need no process: network, MCP tools, integrated, sampling, concurrency
 * (run.md §13), and the policy gate over a whole contract (§4).
 *
 * Each passes or names its reasons; the caller decides whether an approval was given (approval.h).
 *
 *   I1  Without an approval callback nothing is approved.
 *   I2  A finding's `detail` is the scope of the approval that would lift it, or empty when no
 *       approval can; invalid and protected paths have none.
 */
#ifndef CX_CONTRACT_GATES_H
#define CX_CONTRACT_GATES_H

#include "contract/contract.h"
#include "contract/policy.h"

/* Whether an approval for this run has `scope` ("network", "wide_path:src/"). */
typedef bool cx_run_scope_is_approved(void *arg, cx_str scope);

typedef struct cx_run_grants {
    cx_run_scope_is_approved *granted; /* NULL: nothing is approved */
    void *arg;
} cx_run_grants;

bool cx_run_scope_approved_by(const cx_run_grants *grants, cx_str scope); /* grants may be NULL */

/* --- network ---------------------------------------------------------------------------------- */

/* NULL when it passes, else "denied", "approval_missing" or "invalid_policy". A policy without data
 * is an absent member: deny. */
const char *cx_run_gate_network(cx_str policy, bool needs_network, bool approved);
/* Whether a task needs the network, by its runner (may be NULL), its tools or its type. */
bool cx_run_task_needs_network(const cx_contract *contract, const cx_run_runner_config *runner);

/* --- lists of tools --------------------------------------------------------------------------- */

typedef struct cx_run_tool_verdict {
    bool ok;
    cx_str_list missing; /* required, but not allowed (or without an integration) */
    cx_str_list unknown; /* requested, but not in the global list, or denied there */
} cx_run_tool_verdict;

/* Lists live in the arena; CX_E_NOMEM only. */
CX_RESULT cx_run_gate_mcp(cx_str_list global_allow, cx_str_list global_deny, cx_str_list allowed,
                          cx_str_list required, cx_arena *arena, cx_run_tool_verdict *out,
                          cx_err *err);
CX_RESULT cx_run_gate_integrated(cx_str_list required, cx_str_list integrated, cx_arena *arena,
                                 cx_run_tool_verdict *out, cx_err *err);

/* The tools that need an integration for this run: the runner itself, and each MCP tool that it
 * does not provide. None for replay-script (`runner` NULL), which starts no server. */
CX_RESULT cx_run_required_tools(const cx_contract *contract, const cx_run_runner_config *runner,
                                cx_arena *arena, cx_str_list *out, cx_err *err);
/* Names of the config's integrations. */
CX_RESULT cx_run_integrated_tools(const cx_run_config *config, cx_arena *arena, cx_str_list *out,
                                  cx_err *err);

/* Whether `sampling` or `mcp.sampling` is among them (trimmed, any case). */
bool cx_run_sampling_requested(cx_str_list mcp_tools);
/* Absent (no data) or exactly "single". */
bool cx_run_gate_concurrency(cx_str mode);

/* --- the policy gate -------------------------------------------------------------------------- */

/*
 * The rule of a finding is the reason: agent_not_registered, permission_exceeds_role (where = the
 * field), protected_path, invalid_path, wide_path (where = the path), unknown_policy_pack. `detail`
 * is the scope of an approval that would lift it ("wide_path:src/", "permission:network=allow"),
 * see I2. What `grants` approves is no finding. `tree` NULL: wide by name only.
 */
CX_RESULT cx_run_gate_policy(const cx_run_policy *policy, const cx_contract *contract,
                             const cx_run_tree *tree, const cx_run_path_context *ground,
                             const cx_run_grants *grants, cx_run_findings *findings, cx_err *err);

/* The findings as "rule where" strings: `violations` of reports and events. */
CX_RESULT cx_run_gate_violations(const cx_run_findings *findings, cx_arena *arena, cx_json *out,
                                 cx_err *err);

#endif
