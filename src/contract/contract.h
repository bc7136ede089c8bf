/*
 * contract.h - task contracts: reading, the lints K01..K15, resolving (run.md §2, §3, §6).
 *
 *     cx_run_contract_read       bytes -> cx_contract; K01
 *     cx_run_contract_baseline   K05: the commit; policies are then loaded from it (policy.h)
 *     cx_run_contract_lint       K02..K15
 *     cx_run_contract_resolve    the contract as run: baseline_ref = commit id, role_contract set
 *
 * cx_run_contract_check does the first three in order.  Everything found is a finding (rule "K03",
 * where = a JSON pointer into the contract).  All lints are evaluated, none stops another; but a
 * contract that fails its schema is not checked further.
 *
 *   I1  A decoded contract matched task_contract.v1.json; without that, only `bytes`, `sha256` and
 *       perhaps task_id are set.
 *   I2  Rights are never widened: an absent permission is the least one, and audit_only makes the
 *       file system read-only.
 *   I3  Lints that need files use the baseline commit (baseline_commit), never the work tree.
 */
#ifndef CX_CONTRACT_CONTRACT_H
#define CX_CONTRACT_CONTRACT_H

#include "contract/policy.h"
#include "rules/api.h"

/* In the order of the schema; texts without data are absent members. */
typedef struct cx_contract_agent {
    cx_str role_name;
    cx_run_role role;
    cx_str agent_id;
    cx_str codex_thread_id;
} cx_contract_agent;

typedef struct cx_contract_artifact {
    cx_str name, uri, sha256;
} cx_contract_artifact;

typedef struct cx_contract_output {
    cx_str name, type, acceptance;
} cx_contract_output;

typedef struct cx_contract_test {
    cx_str name, cmd;
    bool must_pass;
    cx_tests_requirement report;
} cx_contract_test;

typedef enum cx_contract_rollback {
    CX_ROLLBACK_RESET_HARD,
    CX_ROLLBACK_REVERT_COMMIT,
    CX_ROLLBACK_WORKTREE_DROP
} cx_contract_rollback;

typedef enum cx_contract_type {
    CX_TASK_NONE, /* absent */
    CX_TASK_PLAN,
    CX_TASK_IMPLEMENT,
    CX_TASK_REVIEW,
    CX_TASK_TEST,
    CX_TASK_SEARCH
} cx_contract_type;

typedef struct cx_contract {
    cx_json json;     /* the whole contract; browser_policy and log_refs are read from here */
    cx_str bytes;     /* as given */
    cx_digest sha256; /* of `bytes` */
    cx_str task_id;
    cx_contract_type task_type;
    cx_str parent_task_id;
    cx_contract_agent owner, assigned;
    cx_str spec;
    const cx_contract_artifact *artifacts;
    size_t artifact_count;
    const cx_contract_output *outputs;
    size_t output_count;
    cx_str_list allowed_paths;
    cx_str_list locks; /* shared with other parts of a plan, one at a time (run.md §14) */
    cx_str_list forbidden_actions;
    const cx_contract_test *tests;
    size_t test_count;
    cx_run_permissions permissions; /* as requested, mcp_tools included */
    cx_run_filesystem filesystem;   /* decoded; read-only when audit_only */
    cx_run_shell shell;
    cx_run_network network;
    cx_str_list network_hosts; /* patterns of egress.md §2; checked by the lints */
    cx_str_list mcp_tool_set;
    cx_run_pack pack; /* the contract's, else that of the assigned role */
    uint32_t timeout_sec, max_retries, retry_backoff_sec;
    cx_contract_rollback rollback;
    cx_str baseline_ref; /* a commit id once resolved */
    cx_str target_ref;
    cx_str_list evidence_links;
    bool has_handoff, handoff_enabled;
    cx_str_list handoff_roles;
    uint32_t max_handoffs; /* 0: absent */
    bool audit_only;
    cx_str runner, provider; /* of runtime_options */
    bool mcp_first, strict_acceptance;
    const cx_json *role_contract; /* NULL: absent */
    /* Set by the lints. */
    cx_str baseline_commit;                    /* K05 */
    const cx_contract_artifact *output_schema; /* K04: the binding; NULL until found */
    cx_str output_schema_file;                 /* "agent_task_result.v1.json" */
    cx_bytes output_schema_bytes;              /* of that file, as bound (the built-in one for a
                                                  baseline without it) */
    /* Which registry references (§6) name an existing file of the baseline; the others resolve to
     * null. */
    bool prompt_ref_holds, skills_ref_holds, mcp_ref_holds;
} cx_contract;

/* Checks of commands that the lints call (contract_command.h has the implementation). */
typedef struct cx_contract_checks {
    /* K10: the row of the command gate that rejects `command` on its text alone (C01..C13, C15) and
     * why, or NULL.  Pack, forbidden actions and network come from `policy` and `contract`. */
    cx_status (*command)(const cx_run_policy *policy, const cx_contract *contract, cx_str command,
                         cx_arena *arena, const char **out_row, cx_str *out_reason, cx_err *err);
    /* K11: trivial (§12). */
    cx_status (*trivial)(cx_str command, cx_arena *arena, bool *out, cx_err *err);
} cx_contract_checks;

/* Whether all that `entry` covers is covered by one of `entries`. */
bool cx_run_contract_covers(const cx_str_list *entries, cx_str entry);

/* Reads and decodes; an error in the contract is a finding K01, and then *out has only `bytes` and
 * `sha256` (and task_id if it is readable text, to name a bundle by). `bytes` is borrowed. */
CX_RESULT cx_run_contract_read(cx_str bytes, cx_arena *arena, cx_run_findings *findings,
                               cx_contract *out, cx_err *err);

/* K05 for baseline_ref; fills baseline_commit.  With a NULL repo only the text is checked and
 * nothing is resolved. */
CX_RESULT cx_run_contract_baseline(cx_contract *contract, const cx_run_repo *repo,
                                   cx_run_findings *findings, cx_err *err);

/* K02..K15 without K05's baseline, which must be resolved already when there is a `repo`. With a
 * NULL repo only built-in files are found. */
CX_RESULT cx_run_contract_lint(cx_contract *contract, const cx_run_policy *policy,
                               const cx_run_repo *repo, const cx_run_path_context *ground,
                               const cx_contract_checks *checks, cx_arena *arena,
                               cx_run_findings *findings, cx_err *err);

/* Appends the contract as it is run (§17): baseline_ref the commit id, role_contract resolved,
 * members in the order of the schema, 2 spaces, final newline.  The contract must have passed. */
CX_RESULT cx_run_contract_resolve(const cx_contract *contract, const cx_run_policy *policy,
                                  cx_arena *arena, cx_buf *out, cx_err *err);

/* Reads and lints; the policies of the baseline are loaded into *out_policy. */
CX_RESULT cx_run_contract_check(cx_str bytes, const cx_run_repo *repo,
                                const cx_run_path_context *ground, const cx_contract_checks *checks,
                                cx_arena *arena, cx_run_findings *findings, cx_contract *out,
                                cx_run_policy *out_policy, cx_err *err);

/* The same, when the caller knows the baseline: `baseline` (a commit) takes the place of the
 * contract's baseline_ref, and target_ref is not looked at. Empty: the contract's own. */
CX_RESULT cx_run_contract_check_at(cx_str bytes, cx_str baseline, const cx_run_repo *repo,
                                   const cx_run_path_context *ground,
                                   const cx_contract_checks *checks, cx_arena *arena,
                                   cx_run_findings *findings, cx_contract *out,
                                   cx_run_policy *out_policy, cx_err *err);

/* K14 alone: whether a task id may name files and branches. */
bool cx_run_task_id_ok(cx_str task_id);
/* K15 for one artifact, also used when it is passed to the agent: its bytes, or a finding. `where`
 * is its pointer. */
CX_RESULT cx_run_contract_artifact(const cx_contract *contract,
                                   const cx_contract_artifact *artifact, cx_str where,
                                   const cx_run_repo *repo, cx_arena *arena,
                                   cx_run_findings *findings, cx_bytes *out, cx_err *err);
/* The derived role_contract (§6), members in the order of the schema. */
CX_RESULT cx_run_role_contract(const cx_contract *contract, const cx_run_policy *policy,
                               cx_arena *arena, cx_json *out, cx_err *err);
/* The role contract in previews (role_contract_summary): {role, agent_id, purpose, filesystem,
 * shell, network, mcp_tool_set[], runner, provider, handoff{eligible, chain_roles[]},
 * fail_closed_conditions[], source: "contract" | "registry" | "none", execution_authority:
 * "task_contract"}.  A view, never an authority. */
CX_RESULT cx_run_role_summary(const cx_contract *contract, const cx_run_policy *policy,
                              cx_arena *arena, cx_json *out, cx_err *err);
/* SHA-256 of the sorted-key form, by which external bundles identify a contract. */
CX_RESULT cx_run_contract_legacy_hash(const cx_json *contract, cx_digest *out, cx_err *err);

#endif
