/*
 * contract_role.c - the role_contract: derived (§6), compared with the top level (K08), and written
 * out with the contract that is run (§17).
 */
#include "contract/contract_parts.h"

static void put_str(cx_json_list *object, const char *name, cx_str text)
{
    cx_json_list_put(object, cx_str_z(name),
                     text.data == NULL ? cx_json_make_null() : cx_json_make_str(text));
}

static cx_status put_object(cx_json_list *object, const char *name, cx_json_list *child,
                            cx_err *err)
{
    cx_json value;
    CX_TRY(cx_json_list_end_object(child, &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

static cx_status put_words(cx_json_list *object, const char *name, cx_str_list words, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(object->arena);
    cx_json value;
    for (size_t i = 0; i < words.count; i++)
        cx_json_list_add(&list, cx_json_make_str(words.items[i]));
    CX_TRY(cx_json_list_end_array(&list, &value, err));
    cx_json_list_put(object, cx_str_z(name), value);
    return CX_SUCCESS;
}

static cx_str ref_or_null(cx_str ref, bool holds)
{
    return holds ? ref : cx_str_from(NULL, 0);
}

static cx_status put_registry_facts(const cx_contract *contract, const cx_run_role_row *row,
                                    cx_json_list *object, cx_err *err)
{
    cx_arena *arena = object->arena;
    cx_json_list identity = cx_json_list_begin(arena), binding = cx_json_list_begin(arena),
                 rights = cx_json_list_begin(arena);
    put_str(&identity, "role", contract->assigned.role_name);
    put_str(&identity, "agent_id", contract->assigned.agent_id);
    CX_TRY(put_object(object, "identity", &identity, err));
    put_str(object, "purpose", row->purpose);
    put_str(object, "system_prompt_ref",
            ref_or_null(row->system_prompt_ref, contract->prompt_ref_holds));
    put_str(object, "skills_bundle_ref",
            ref_or_null(row->skills_bundle_ref, contract->skills_ref_holds));
    put_str(object, "mcp_bundle_ref", ref_or_null(row->mcp_bundle_ref, contract->mcp_ref_holds));
    put_str(&binding, "runner", contract->runner);
    put_str(&binding, "provider", contract->provider);
    put_str(&binding, "model", cx_str_from(NULL, 0));
    CX_TRY(put_object(object, "runtime_binding", &binding, err));
    put_str(&rights, "filesystem", contract->permissions.filesystem);
    put_str(&rights, "shell", contract->permissions.shell);
    put_str(&rights, "network", contract->permissions.network);
    return put_object(object, "tool_permissions", &rights, err);
}

cx_status cx_run_role_contract(const cx_contract *contract, const cx_run_policy *policy,
                               cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT((size_t)contract->assigned.role < CX_ROLE_COUNT);
    const cx_run_role_row *row = &policy->roles[contract->assigned.role];
    cx_json_list object = cx_json_list_begin(arena), handoff = cx_json_list_begin(arena);
    if (!row->present)
        return cx_fail(err, CX_E_NOT_FOUND, "the agent registry has no role_contracts.%s",
                       cx_run_role_name(contract->assigned.role));
    CX_TRY(put_registry_facts(contract, row, &object, err));
    CX_TRY(put_words(&object, "resolved_mcp_tool_set", contract->mcp_tool_set, err));
    cx_json_list_put(&handoff, CX_STR("eligible"), cx_json_make_bool(row->handoff_eligible));
    CX_TRY(put_words(&handoff, "required_downstream_roles", row->required_downstream_roles, err));
    CX_TRY(put_words(&handoff, "chain_roles", contract->handoff_roles, err));
    cx_json_list_put(&handoff, CX_STR("max_handoffs"),
                     contract->max_handoffs == 0
                         ? cx_json_make_null()
                         : cx_json_make_uint(arena, contract->max_handoffs));
    CX_TRY(put_object(&object, "handoff", &handoff, err));
    CX_TRY(put_words(&object, "fail_closed_conditions", row->fail_closed_conditions, err));
    return cx_json_list_end_object(&object, out, err);
}

cx_status cx_run_role_summary(const cx_contract *contract, const cx_run_policy *policy,
                              cx_arena *arena, cx_json *out, cx_err *err)
{
    CX_ASSERT((size_t)contract->assigned.role < CX_ROLE_COUNT);
    const cx_run_role_row *row = &policy->roles[contract->assigned.role];
    const cx_json *given = contract->role_contract;
    cx_json_list object = cx_json_list_begin(arena), handoff = cx_json_list_begin(arena);
    const cx_json *conditions =
        given == NULL ? NULL : cx_json_get(given, CX_STR("fail_closed_conditions"));
    put_str(&object, "role", contract->assigned.role_name);
    put_str(&object, "agent_id", contract->assigned.agent_id);
    put_str(&object, "purpose", given == NULL ? row->purpose : cx_contract_text(given, "purpose"));
    put_str(&object, "filesystem", cx_str_z(cx_run_filesystem_name(contract->filesystem)));
    put_str(&object, "shell", cx_str_z(cx_run_shell_name(contract->shell)));
    put_str(&object, "network", cx_str_z(cx_run_network_name(contract->network)));
    CX_TRY(put_words(&object, "mcp_tool_set", contract->mcp_tool_set, err));
    put_str(&object, "runner", contract->runner);
    put_str(&object, "provider", contract->provider);
    cx_json_list_put(&handoff, CX_STR("eligible"), cx_json_make_bool(row->handoff_eligible));
    CX_TRY(put_words(&handoff, "chain_roles", contract->handoff_roles, err));
    CX_TRY(put_object(&object, "handoff", &handoff, err));
    if (conditions != NULL)
        cx_json_list_put(&object, CX_STR("fail_closed_conditions"), *conditions);
    else
        CX_TRY(put_words(&object, "fail_closed_conditions", row->fail_closed_conditions, err));
    put_str(&object, "source",
            given != NULL ? CX_STR("contract") : cx_str_z(row->present ? "registry" : "none"));
    put_str(&object, "execution_authority", CX_STR("task_contract"));
    return cx_json_list_end_object(&object, out, err);
}

/* --- K08 -------------------------------------------------------------------------------------- */

static void refuse_drift(contract_lint *lint, const char *where, const char *top)
{
    cx_run_findings_reject(lint->findings, "K08",
                           cx_arena_printf(lint->arena, "/role_contract/%s", where), CX_STR(""),
                           "differs from %s, which is what holds; make them equal", top);
}

/* A member that is text or null against text that may be absent. */
static void compare_role_text(contract_lint *lint, const char *object, const char *name,
                              cx_str expected, const char *top)
{
    char where[64];
    cx_str found =
        cx_contract_text(cx_json_get(lint->contract->role_contract, cx_str_z(object)), name);
    if ((found.data == NULL) == (expected.data == NULL) && cx_str_eq(found, expected))
        return;
    (void)snprintf(where, sizeof where, "%s/%s", object, name);
    refuse_drift(lint, where, top);
}

/* Whether the array has the same texts in the same order. */
static bool same_text_list(const cx_json *array, cx_str_list words)
{
    if (array == NULL || array->type != CX_JSON_ARRAY || array->count != words.count)
        return false;
    for (uint32_t i = 0; i < array->count; i++)
        if (!cx_str_eq(cx_json_text(&array->items[i]), words.items[i]))
            return false;
    return true;
}

void cx_contract_lint_drift(contract_lint *lint)
{
    const cx_contract *contract = lint->contract;
    const cx_json *role = contract->role_contract;
    if (role == NULL)
        return;
    compare_role_text(lint, "identity", "role", contract->assigned.role_name,
                      "assigned_agent.role");
    compare_role_text(lint, "identity", "agent_id", contract->assigned.agent_id,
                      "assigned_agent.agent_id");
    compare_role_text(lint, "tool_permissions", "filesystem", contract->permissions.filesystem,
                      "tool_permissions.filesystem");
    compare_role_text(lint, "tool_permissions", "shell", contract->permissions.shell,
                      "tool_permissions.shell");
    compare_role_text(lint, "tool_permissions", "network", contract->permissions.network,
                      "tool_permissions.network");
    compare_role_text(lint, "runtime_binding", "runner", contract->runner,
                      "runtime_options.runner");
    compare_role_text(lint, "runtime_binding", "provider", contract->provider,
                      "runtime_options.provider");
    if (!same_text_list(cx_json_get(role, CX_STR("resolved_mcp_tool_set")), contract->mcp_tool_set))
        refuse_drift(lint, "resolved_mcp_tool_set", "mcp_tool_set");
    const cx_json *handoff = cx_json_get(role, CX_STR("handoff"));
    if (!same_text_list(cx_json_get(handoff, CX_STR("chain_roles")), contract->handoff_roles))
        refuse_drift(lint, "handoff/chain_roles", "handoff_chain.roles");
    const cx_json *given = cx_json_get(handoff, CX_STR("max_handoffs"));
    if (cx_contract_integer(given) != contract->max_handoffs)
        refuse_drift(lint, "handoff/max_handoffs", "handoff_chain.max_handoffs");
}

/* --- resolving -------------------------------------------------------------------------------- */

/* Names of members in the order of the schema; a name of several objects is listed once, at a
 * position that fits all of them. */
static const char *const schema_order[] = {"task_id",
                                           "task_type",
                                           "parent_task_id",
                                           "owner_agent",
                                           "assigned_agent",
                                           "inputs",
                                           "spec",
                                           "artifacts",
                                           "required_outputs",
                                           "allowed_paths",
                                           "locks",
                                           "forbidden_actions",
                                           "acceptance_tests",
                                           "identity",
                                           "purpose",
                                           "system_prompt_ref",
                                           "skills_bundle_ref",
                                           "mcp_bundle_ref",
                                           "runtime_binding",
                                           "role",
                                           "agent_id",
                                           "codex_thread_id",
                                           "name",
                                           "type",
                                           "acceptance",
                                           "cmd",
                                           "must_pass",
                                           "report",
                                           "format",
                                           "path",
                                           "min_tests",
                                           "same_as_baseline",
                                           "uri",
                                           "sha256",
                                           "tool_permissions",
                                           "filesystem",
                                           "shell",
                                           "network",
                                           "mcp_tools",
                                           "resolved_mcp_tool_set",
                                           "handoff",
                                           "eligible",
                                           "required_downstream_roles",
                                           "chain_roles",
                                           "mcp_tool_set",
                                           "policy_pack",
                                           "timeout_retry",
                                           "timeout_sec",
                                           "max_retries",
                                           "retry_backoff_sec",
                                           "rollback",
                                           "strategy",
                                           "baseline_ref",
                                           "target_ref",
                                           "evidence_links",
                                           "log_refs",
                                           "run_id",
                                           "paths",
                                           "codex_jsonl",
                                           "codex_transcript",
                                           "git_diff",
                                           "tests_log",
                                           "trace_id",
                                           "handoff_chain",
                                           "enabled",
                                           "roles",
                                           "max_handoffs",
                                           "fail_closed_conditions",
                                           "audit_only",
                                           "browser_policy",
                                           "profile_mode",
                                           "profile_ref",
                                           "profile_dir",
                                           "profile_name",
                                           "cookie_ref",
                                           "cookie_path",
                                           "stealth_mode",
                                           "human_behavior",
                                           "level",
                                           "runtime_options",
                                           "runner",
                                           "provider",
                                           "model",
                                           "execution",
                                           "mcp_first",
                                           "strict_acceptance",
                                           "role_contract"};

static size_t schema_rank(cx_str name)
{
    size_t rank = 0;
    while (rank < CX_COUNT_OF(schema_order) && !cx_str_is(name, schema_order[rank]))
        rank++;
    return rank;
}

static cx_status sort_members(const cx_json *value, cx_arena *arena, cx_json *out, cx_err *err);

static cx_status sort_array_items(const cx_json *value, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json *items = CX_ARENA_ARRAY(arena, cx_json, value->count);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < value->count; i++)
        CX_TRY(sort_members(&value->items[i], arena, &items[i], err));
    *out = *value;
    out->items = items;
    return CX_SUCCESS;
}

/* Insertion sort by rank: at most a few dozen members. The schema limits the depth. */
static cx_status sort_members(const cx_json *value, cx_arena *arena, cx_json *out, cx_err *err)
{
    *out = *value;
    if (value->type == CX_JSON_ARRAY && value->count != 0)
        return sort_array_items(value, arena, out, err);
    if (value->type != CX_JSON_OBJECT || value->count == 0)
        return CX_SUCCESS;
    cx_json_member *members = CX_ARENA_ARRAY(arena, cx_json_member, value->count);
    if (members == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < value->count; i++) {
        cx_json_member member = {value->members[i].name, value->members[i].value};
        size_t rank = schema_rank(cx_json_text(&member.name));
        uint32_t at = i;
        CX_TRY(sort_members(&value->members[i].value, arena, &member.value, err));
        for (; at > 0 && schema_rank(cx_json_text(&members[at - 1].name)) > rank; at--)
            members[at] = members[at - 1];
        members[at] = member;
    }
    out->members = members;
    return CX_SUCCESS;
}

/* The object with one member added or replaced. */
static cx_status replace_member(const cx_json *object, const char *name, cx_json value,
                                cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    for (uint32_t i = 0; i < object->count; i++)
        if (!cx_str_is(cx_json_text(&object->members[i].name), name))
            cx_json_list_put(&list, cx_json_text(&object->members[i].name),
                             object->members[i].value);
    cx_json_list_put(&list, cx_str_z(name), value);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_run_contract_resolve(const cx_contract *contract, const cx_run_policy *policy,
                                  cx_arena *arena, cx_buf *out, cx_err *err)
{
    cx_json root = contract->json, rollback, role, ordered;
    const cx_json *given = cx_json_get(&root, CX_STR("rollback"));
    CX_ASSERT(given != NULL);
    if (contract->baseline_commit.size != 0) {
        CX_TRY(replace_member(given, "baseline_ref", cx_json_make_str(contract->baseline_commit),
                              arena, &rollback, err));
        CX_TRY(replace_member(&root, "rollback", rollback, arena, &root, err));
    }
    /* A given role_contract has passed K07 and K08: it is resolved already. */
    if (contract->role_contract == NULL && policy->roles[contract->assigned.role].present) {
        CX_TRY(cx_run_role_contract(contract, policy, arena, &role, err));
        CX_TRY(replace_member(&root, "role_contract", role, arena, &root, err));
    }
    CX_TRY(sort_members(&root, arena, &ordered, err));
    return cx_run_json_write(out, &ordered, err);
}
