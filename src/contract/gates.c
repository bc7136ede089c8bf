/*
 * gates.c - the gates of run.md §13 that compare lists, and the policy gate of §4 over a contract.
 */
#include "contract/gates.h"

bool cx_run_scope_approved_by(const cx_run_grants *grants, cx_str scope)
{
    return grants != NULL && grants->granted != NULL && grants->granted(grants->arg, scope);
}

/* --- network ---------------------------------------------------------------------------------- */

const char *cx_run_gate_network(cx_str policy, bool needs_network, bool approved)
{
    switch (cx_run_network_parse(policy)) {
    case CX_NETWORK_DENY: return needs_network ? "denied" : NULL;
    case CX_NETWORK_ON_REQUEST: return needs_network && !approved ? "approval_missing" : NULL;
    case CX_NETWORK_ALLOW: return NULL;
    case CX_NETWORK_UNKNOWN: break;
    }
    return "invalid_policy";
}

bool cx_run_task_needs_network(const cx_contract *contract, const cx_run_runner_config *runner)
{
    cx_str_list tools = contract->permissions.mcp_tools;
    return (runner != NULL && runner->needs_network) || contract->task_type == CX_TASK_SEARCH ||
           cx_str_list_has(tools, CX_STR("search")) || cx_str_list_has(tools, CX_STR("browser"));
}

/* --- lists of tools --------------------------------------------------------------------------- */

/* The items of `words` that are (or are not) in `list`, each once. */
static cx_status select_tools(cx_str_list words, bool selected, cx_str_list list,
                              cx_str_list but_not, cx_arena *arena, cx_str_list *out, cx_err *err)
{
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, words.count + 1);
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < words.count; i++) {
        cx_str tool = words.items[i];
        bool in = cx_str_list_has(list, tool) && !cx_str_list_has(but_not, tool);
        if (in == selected && !cx_str_list_has((cx_str_list){items, count}, tool))
            items[count++] = tool;
    }
    *out = (cx_str_list){items, count};
    return CX_SUCCESS;
}

cx_status cx_run_gate_mcp(cx_str_list global_allow, cx_str_list global_deny, cx_str_list allowed,
                          cx_str_list required, cx_arena *arena, cx_run_tool_verdict *out,
                          cx_err *err)
{
    cx_str_list usable;
    CX_TRY(select_tools(allowed, false, global_allow, global_deny, arena, &out->unknown, err));
    CX_TRY(select_tools(allowed, true, global_allow, global_deny, arena, &usable, err));
    CX_TRY(
        select_tools(required, false, usable, (cx_str_list){NULL, 0}, arena, &out->missing, err));
    out->ok = out->unknown.count == 0 && out->missing.count == 0;
    return CX_SUCCESS;
}

cx_status cx_run_gate_integrated(cx_str_list required, cx_str_list integrated, cx_arena *arena,
                                 cx_run_tool_verdict *out, cx_err *err)
{
    out->unknown = (cx_str_list){NULL, 0};
    CX_TRY(select_tools(required, false, integrated, out->unknown, arena, &out->missing, err));
    out->ok = out->missing.count == 0;
    return CX_SUCCESS;
}

cx_status cx_run_required_tools(const cx_contract *contract, const cx_run_runner_config *runner,
                                cx_arena *arena, cx_str_list *out, cx_err *err)
{
    cx_str_list tools = contract->permissions.mcp_tools;
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, tools.count + 1);
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    if (runner != NULL)
        items[count++] = runner->name;
    for (size_t i = 0; runner != NULL && i < tools.count; i++)
        if (!cx_str_list_has(runner->provides, tools.items[i]))
            items[count++] = tools.items[i];
    *out = (cx_str_list){items, count};
    return CX_SUCCESS;
}

cx_status cx_run_integrated_tools(const cx_run_config *config, cx_arena *arena, cx_str_list *out,
                                  cx_err *err)
{
    CX_ASSERT(config->integration_count == 0 || config->integrations != NULL);
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, config->integration_count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < config->integration_count; i++)
        items[i] = config->integrations[i].tool;
    *out = (cx_str_list){items, config->integration_count};
    return CX_SUCCESS;
}

/* Removes ASCII white space at both ends. */
static cx_str trim_ascii(cx_str text)
{
    while (text.size != 0 && memchr(" \t\r\n\v\f", text.data[0], 6) != NULL)
        text = cx_str_from(text.data + 1, text.size - 1);
    while (text.size != 0 && memchr(" \t\r\n\v\f", text.data[text.size - 1], 6) != NULL)
        text.size--;
    return text;
}

static bool equal_ignoring_case(cx_str text, cx_str lower)
{
    if (text.size != lower.size)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte >= 'A' && byte <= 'Z')
            byte = (char)(byte + ('a' - 'A'));
        if (byte != lower.data[i])
            return false;
    }
    return true;
}

bool cx_run_sampling_requested(cx_str_list mcp_tools)
{
    for (size_t i = 0; i < mcp_tools.count; i++) {
        cx_str tool = trim_ascii(mcp_tools.items[i]);
        if (equal_ignoring_case(tool, CX_STR("sampling")) ||
            equal_ignoring_case(tool, CX_STR("mcp.sampling")))
            return true;
    }
    return false;
}

bool cx_run_gate_concurrency(cx_str mode)
{
    return mode.data == NULL || cx_str_eq(mode, CX_STR("single"));
}

/* --- the policy gate -------------------------------------------------------------------------- */

typedef struct policy_gate {
    const cx_run_policy *policy;
    const cx_contract *contract;
    const cx_run_grants *grants;
    cx_run_findings *findings;
    cx_err *err;
} policy_gate;

/* "permission:network=allow" */
static cx_status permission_scope(policy_gate *gate, const char *field, cx_str value, cx_str *out)
{
    *out = cx_arena_printf(gate->findings->arena, "permission:%s=%.*s", field, (int)value.size,
                           value.data == NULL ? "" : value.data);
    return out->data == NULL ? cx_fail_nomem(gate->err) : CX_SUCCESS;
}

static cx_status check_permission_field(policy_gate *gate, const char *field, cx_str value,
                                        bool known, const char *allowed)
{
    cx_str scope;
    CX_TRY(permission_scope(gate, field, value, &scope));
    if (known && cx_run_scope_approved_by(gate->grants, scope))
        return CX_SUCCESS;
    cx_run_findings_reject(
        gate->findings, "permission_exceeds_role", cx_str_z(field), known ? scope : CX_STR(""),
        "asks for %s '%.*s', but the registry gives this agent '%s'; ask for less, or get "
        "an approval for this run",
        field, (int)(value.size < 64 ? value.size : 64), value.data == NULL ? "" : value.data,
        allowed);
    return CX_SUCCESS;
}

static cx_status check_tools(policy_gate *gate, const cx_run_agent *row)
{
    cx_str_list tools = gate->contract->permissions.mcp_tools;
    for (size_t i = 0; i < tools.count; i++) {
        cx_str scope, tool = tools.items[i];
        if (cx_str_list_has(row->mcp_tools, tool))
            continue;
        CX_TRY(permission_scope(gate, "mcp_tools", tool, &scope));
        if (!cx_run_scope_approved_by(gate->grants, scope))
            cx_run_findings_reject(gate->findings, "permission_exceeds_role", CX_STR("mcp_tools"),
                                   scope,
                                   "asks for the tool '%.*s', which is not among this agent's "
                                   "capabilities.mcp_tools",
                                   (int)(tool.size < 64 ? tool.size : 64), tool.data);
    }
    return CX_SUCCESS;
}

static cx_status check_permissions(policy_gate *gate)
{
    const cx_contract *contract = gate->contract;
    const cx_run_permissions *asked = &contract->permissions;
    unsigned exceeds;
    const cx_run_agent *row = cx_run_policy_agent(gate->policy, contract->assigned.role_name,
                                                  contract->assigned.agent_id);
    if (row == NULL) {
        cx_run_findings_reject(gate->findings, "agent_not_registered", contract->assigned.agent_id,
                               CX_STR(""), "the registry has no %s with this agent_id",
                               cx_run_role_name(contract->assigned.role));
        return CX_SUCCESS;
    }
    (void)cx_run_policy_compare(gate->policy, contract->assigned.role_name,
                                contract->assigned.agent_id, asked, &exceeds);
    if ((exceeds & CX_EXCEEDS_FILESYSTEM) != 0)
        CX_TRY(check_permission_field(gate, "filesystem", asked->filesystem,
                                      cx_run_filesystem_parse(asked->filesystem) != CX_FS_UNKNOWN,
                                      cx_run_filesystem_name(row->filesystem)));
    if ((exceeds & CX_EXCEEDS_SHELL) != 0)
        CX_TRY(check_permission_field(gate, "shell", asked->shell,
                                      cx_run_shell_parse(asked->shell) != CX_SHELL_UNKNOWN,
                                      cx_run_shell_name(row->shell)));
    if ((exceeds & CX_EXCEEDS_NETWORK) != 0)
        CX_TRY(check_permission_field(gate, "network", asked->network,
                                      cx_run_network_parse(asked->network) != CX_NETWORK_UNKNOWN,
                                      cx_run_network_name(row->network)));
    return check_tools(gate, row);
}

static cx_status check_allowed_path(policy_gate *gate, cx_str path, const cx_run_tree *tree,
                                    const cx_run_path_context *ground)
{
    const char *rule = cx_run_path_lint(path, ground);
    if (rule != NULL) {
        bool is_protected = strcmp(rule, "P08") == 0;
        cx_run_findings_reject(gate->findings, is_protected ? "protected_path" : "invalid_path",
                               path, CX_STR(""), "this entry of allowed_paths %s (%s)",
                               cx_run_path_rule_text(rule), rule);
        return CX_SUCCESS;
    }
    cx_str scope =
        cx_arena_printf(gate->findings->arena, "wide_path:%.*s", (int)path.size, path.data);
    if (scope.data == NULL)
        return cx_fail_nomem(gate->err);
    if (cx_run_path_wide(path, tree) && !cx_run_scope_approved_by(gate->grants, scope))
        cx_run_findings_reject(
            gate->findings, "wide_path", path, scope,
            "this entry of allowed_paths is a whole top folder or more than half of the "
            "files; name what is needed, or get an approval for this run");
    return CX_SUCCESS;
}

cx_status cx_run_gate_policy(const cx_run_policy *policy, const cx_contract *contract,
                             const cx_run_tree *tree, const cx_run_path_context *ground,
                             const cx_run_grants *grants, cx_run_findings *findings, cx_err *err)
{
    CX_ASSERT((size_t)contract->assigned.role < CX_ROLE_COUNT);
    policy_gate gate = {policy, contract, grants, findings, err};
    CX_TRY(check_permissions(&gate));
    if (contract->pack == CX_PACK_NONE || contract->pack >= CX_PACK_COUNT)
        cx_run_findings_reject(findings, "unknown_policy_pack", CX_STR("policy_pack"), CX_STR(""),
                               "expected low, medium or high");
    for (size_t i = 0; i < contract->allowed_paths.count; i++)
        CX_TRY(check_allowed_path(&gate, contract->allowed_paths.items[i], tree, ground));
    return cx_run_findings_check(findings, err);
}

cx_status cx_run_gate_violations(const cx_run_findings *findings, cx_arena *arena, cx_json *out,
                                 cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    CX_TRY(cx_run_findings_check(findings, err));
    for (size_t i = 0; i < findings->list.count; i++) {
        const cx_run_finding *finding = &findings->list.items[i];
        if (finding->informs)
            continue;
        cx_str text =
            cx_arena_printf(arena, "%s%s%.*s", finding->rule, finding->where.size == 0 ? "" : " ",
                            (int)finding->where.size, finding->where.data);
        if (text.data == NULL)
            return cx_fail_nomem(err);
        cx_json_list_add(&list, cx_json_make_str(text));
    }
    return cx_json_list_end_array(&list, out, err);
}
