/*
 * policy.h - what a repository lets its agents do: registry, packs, forbidden actions, tools,
 * approvers (run.md §4), all from one commit.
 *
 * A baseline with a `policies/` folder must have every file of it, each readable: a missing or
 * malformed one rejects (§4).  A baseline without that folder uses the built-in policies.
 *
 *   P1  The seven policy files (registry, allowlist, forbidden actions, tools, three packs) have
 *       one source: all from the baseline, or, when it has none of them, all built in.
 *   P2  cortex.json, approvers.json and skills_bundle_registry.json may be absent from a baseline.
 *   P3  There are no approvers unless the config pins the bytes of the approvers' file.
 */
#ifndef CX_CONTRACT_POLICY_H
#define CX_CONTRACT_POLICY_H

#include "contract/config.h"
#include "git/api.h"

#define CX_RUN_POLICY_FILE_BYTES_MAX (UINT32_C(1) << 20)

/* One agent of agent_registry.json. */
typedef struct cx_run_agent {
    cx_str agent_id;
    cx_run_role role;
    cx_run_filesystem filesystem; /* defaults.sandbox */
    cx_run_shell shell;           /* defaults.approval_policy */
    cx_run_network network;
    cx_str_list mcp_tools; /* capabilities.mcp_tools, none when absent */
    cx_str codex_home;
} cx_run_agent;

/* One role of agent_registry.json, from which role_contract is derived (§6). */
typedef struct cx_run_role_row {
    bool present;
    cx_str purpose;
    cx_str system_prompt_ref, skills_bundle_ref, mcp_bundle_ref; /* data NULL: null */
    bool handoff_eligible;
    cx_str_list required_downstream_roles;
    cx_str_list fail_closed_conditions;
} cx_run_role_row;

typedef struct cx_run_pack_rules {
    const cx_str_list *allow; /* argv prefixes; a token that ends in '/' is a folder */
    size_t allow_count;
    cx_str_list forbidden_actions; /* in addition to the global ones */
} cx_run_pack_rules;

typedef struct cx_run_approver {
    cx_str name;
    uint8_t key[32]; /* Ed25519 */
    cx_str keyid;    /* lower-case hex of sha256 of the key */
} cx_run_approver;

typedef struct cx_run_policy_file {
    cx_str path; /* "policies/packs/low.json" */
    cx_str bytes;
    cx_digest sha256;
} cx_run_policy_file;

typedef struct cx_run_policy {
    bool built_in; /* the baseline has no policies/ */
    cx_run_config config;
    const cx_run_agent *agents;
    size_t agent_count;
    cx_run_role_row roles[CX_ROLE_COUNT];
    cx_run_pack_rules packs[CX_PACK_COUNT]; /* [CX_PACK_NONE]: command_allowlist.json */
    cx_str_list forbidden_actions;          /* global */
    cx_str_list mcp_allow, mcp_deny;
    const cx_run_approver *approvers; /* none unless the config has the digest of the file (P3) */
    size_t approver_count;
    cx_str approvers_fault; /* why there are none although the file has some; else empty */
    cx_json registry;       /* agent_registry.json, for selectors (K07) */
    cx_json skills;         /* skills_bundle_registry.json */
    const cx_run_policy_file *files;
    size_t file_count;
} cx_run_policy;

/*
 * Loads the policies of `commit`. `repo` NULL: the built-in ones. A missing or malformed file is a
 * finding of rule "POLICY" with its path, and then *out must not be used; an error means that the
 * repository could not be read.
 */
CX_RESULT cx_run_policy_load(const cx_run_repo *repo, cx_str commit, cx_arena *arena,
                             cx_run_findings *findings, cx_run_policy *out, cx_err *err);

/* The row of (role, agent), or NULL. */
const cx_run_agent *cx_run_policy_agent(const cx_run_policy *policy, cx_str role, cx_str agent_id);

/* --- the policy gate (§4) --------------------------------------------------------------------- */

/* Requested permissions; a text without data is an absent member. */
typedef struct cx_run_permissions {
    cx_str filesystem, shell, network;
    cx_str_list mcp_tools;
} cx_run_permissions;

enum {
    CX_EXCEEDS_FILESYSTEM = 1,
    CX_EXCEEDS_SHELL = 2,
    CX_EXCEEDS_NETWORK = 4,
    CX_EXCEEDS_MCP_TOOLS = 8
};

/* Compares a request with the agent's row. *out_exceeds: the fields that exceed it; returns NULL,
 * "agent_not_registered" or "permission_exceeds_role". */
const char *cx_run_policy_compare(const cx_run_policy *policy, cx_str role, cx_str agent_id,
                                  const cx_run_permissions *asked, unsigned *out_exceeds);

#endif
