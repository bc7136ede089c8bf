/*
 * gates.h - the gates that need no process: network, MCP tools, integrated, sampling, concurrency
 * (run.md §13), and the policy gate over a whole contract (§4).
 *
 * Each passes or names its reasons; whether an approval was given is the caller's to find out
 * (approval.h).
 */
#ifndef CX_CONTRACT_GATES_H
#define CX_CONTRACT_GATES_H

#include "contract/contract.h"
#include "contract/policy.h"

/* Whether an approval for this run has `scope` ("network", "wide_path:src/"). */
typedef bool cx_run_granted(void *arg, cx_str scope);

typedef struct cx_run_grants {
    cx_run_granted *granted; /* NULL: nothing is granted */
    void *arg;
} cx_run_grants;

bool cx_run_is_granted(const cx_run_grants *grants, cx_str scope); /* grants may be NULL */

/* --- network ---------------------------------------------------------------------------------- */

/* NULL when it passes, else "denied", "approval_missing" or "invalid_policy".  A policy without
 * data is an absent one: deny. */
const char *cx_run_gate_network(cx_str policy, bool needs_network, bool approved);
/* Whether a task needs the network: its runner (may be NULL), its tools or its type say so. */
bool cx_run_task_needs_network(const cx_contract *contract, const cx_run_runner_config *runner);

/* --- lists of tools --------------------------------------------------------------------------- */

typedef struct cx_run_tool_verdict {
    bool ok;
    cx_run_words missing; /* required, but not allowed (or without an integration) */
    cx_run_words unknown; /* asked for, but not in the global list, or denied there */
} cx_run_tool_verdict;

/* Lists live in the arena; CX_E_NOMEM only. */
CX_RESULT cx_run_gate_mcp(cx_run_words global_allow, cx_run_words global_deny, cx_run_words allowed,
                          cx_run_words required, cx_arena *arena, cx_run_tool_verdict *out,
                          cx_err *err);
CX_RESULT cx_run_gate_integrated(cx_run_words required, cx_run_words integrated, cx_arena *arena,
                                 cx_run_tool_verdict *out, cx_err *err);

/* What must have an integration for this run: the runner itself, and each MCP tool that it does not
 * provide.  Nothing for replay-script (`runner` NULL), which starts no server. */
CX_RESULT cx_run_required_tools(const cx_contract *contract, const cx_run_runner_config *runner,
                                cx_arena *arena, cx_run_words *out, cx_err *err);
/* Names of the config's integrations. */
CX_RESULT cx_run_integrated_tools(const cx_run_config *config, cx_arena *arena, cx_run_words *out,
                                  cx_err *err);

/* Whether `sampling` or `mcp.sampling` is among them (trimmed, any case). */
bool cx_run_sampling_requested(cx_run_words mcp_tools);
/* Absent (no data) or exactly "single". */
bool cx_run_gate_concurrency(cx_str mode);

/* --- the policy gate -------------------------------------------------------------------------- */

/*
 * Findings have the reason as rule: agent_not_registered, permission_exceeds_role (where = the
 * field), protected_path, invalid_path, wide_path
 * (where = the path), unknown_policy_pack.  `detail` is the scope
 * of an approval that would lift it ("wide_path:src/", "permission:network=allow"), empty when
 * nothing does.  What `grants` grants is not found.  `tree` NULL: wide by name only.
 */
CX_RESULT cx_run_gate_policy(const cx_run_policy *policy, const cx_contract *contract,
                             const cx_run_tree *tree, const cx_run_ground *ground,
                             const cx_run_grants *grants, cx_run_findings *findings, cx_err *err);

/* The findings as "rule where" strings: `violations` of reports and events. */
CX_RESULT cx_run_gate_violations(const cx_run_findings *findings, cx_arena *arena, cx_json *out,
                                 cx_err *err);

#endif
