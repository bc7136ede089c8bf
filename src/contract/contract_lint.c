/*
 * contract_lint.c - the lints that need only the contract and the policies (K02, K03, K06, K10 ..
 * K14), and the order of all lints.
 */
#include "base/api.h"
#include "contract/contract_parts.h"

enum { TASK_ID_BYTES_MAX = 128 };

cx_str cx_contract_where(contract_lint *lint, const char *list, size_t index, const char *name)
{
    CX_ASSERT(list[0] == '/');
    cx_str where = cx_arena_printf(lint->arena, "%s/%zu%s%s", list, index, name == NULL ? "" : "/",
                                   name == NULL ? "" : name);
    if (where.data == NULL)
        lint->findings->failed = true;
    return where.data == NULL ? CX_STR("") : where;
}

/* --- K02, K13 --------------------------------------------------------------------------------- */

bool cx_run_contract_covers(const cx_str_list *entries, cx_str entry)
{
    char path[CX_RUN_PATH_BYTES_MAX + 2];
    size_t size = entry.size;
    if (size == 0 || size > CX_RUN_PATH_BYTES_MAX)
        return false;
    memcpy(path, entry.data, size);
    if (entry.data[size - 1] == '/')
        path[size++] = 'x'; /* a folder's is asked for a file in it */
    return cx_run_path_covered(entries->items, entries->count, cx_str_from(path, size));
}

/* A lock on what the contract may not change would keep others out of it. */
static void lint_locks(contract_lint *lint)
{
    const cx_contract *contract = lint->contract;
    for (size_t i = 0; i < contract->locks.count; i++) {
        cx_str path = contract->locks.items[i];
        const char *rule = cx_run_path_lint(path, lint->ground);
        if (rule != NULL)
            cx_run_findings_reject(
                lint->findings, "K02", cx_contract_where(lint, "/locks", i, NULL), cx_str_z(rule),
                "the lock '%.*s' %s", CX_CONTRACT_SHOW(path, 100), cx_run_path_rule_text(rule));
        else if (!cx_run_contract_covers(&contract->allowed_paths, path))
            cx_run_findings_reject(lint->findings, "K02",
                                   cx_contract_where(lint, "/locks", i, NULL), CX_STR(""),
                                   "the lock '%.*s' is outside allowed_paths; lock only what the "
                                   "contract may change",
                                   CX_CONTRACT_SHOW(path, 100));
    }
}

static void lint_paths(contract_lint *lint)
{
    const cx_contract *contract = lint->contract;
    for (size_t i = 0; i < contract->allowed_paths.count; i++) {
        cx_str path = contract->allowed_paths.items[i];
        const char *rule = cx_run_path_lint(path, lint->ground);
        if (rule != NULL)
            cx_run_findings_reject(lint->findings, "K02",
                                   cx_contract_where(lint, "/allowed_paths", i, NULL),
                                   cx_str_z(rule), "the path '%.*s' %s",
                                   CX_CONTRACT_SHOW(path, 100), cx_run_path_rule_text(rule));
    }
    lint_locks(lint);
    for (size_t i = 0; i < contract->output_count; i++) {
        const cx_contract_output *output = &contract->outputs[i];
        const char *rule = cx_run_path_lint(output->name, lint->ground);
        if (!cx_str_eq(output->type, CX_STR("file")))
            continue;
        if (rule != NULL)
            cx_run_findings_reject(
                lint->findings, "K13", cx_contract_where(lint, "/required_outputs", i, "name"),
                cx_str_z(rule), "the file '%.*s' %s", CX_CONTRACT_SHOW(output->name, 100),
                cx_run_path_rule_text(rule));
        else if (!cx_run_path_covered(contract->allowed_paths.items, contract->allowed_paths.count,
                                      output->name))
            cx_run_findings_reject(
                lint->findings, "K13", cx_contract_where(lint, "/required_outputs", i, "name"),
                CX_STR(""), "the file '%.*s' is outside allowed_paths, so it could not be made",
                CX_CONTRACT_SHOW(output->name, 100));
    }
}

/* --- K03 -------------------------------------------------------------------------------------- */

static void lint_agent(contract_lint *lint, const cx_contract_agent *agent, const char *where)
{
    if (cx_run_policy_agent(lint->policy, agent->role_name, agent->agent_id) == NULL)
        cx_run_findings_reject(lint->findings, "K03", cx_str_z(where), CX_STR(""),
                               "policies/agent_registry.json has no %.*s with the agent_id '%.*s'",
                               CX_CONTRACT_SHOW(agent->role_name, 20),
                               CX_CONTRACT_SHOW(agent->agent_id, 80));
}

/* --- K06 -------------------------------------------------------------------------------------- */

static bool is_white_space(cx_str text, size_t at)
{
    size_t step;
    const uint8_t *here = (const uint8_t *)text.data + at;
    if (*here < 0x80)
        return *here <= ' ' || *here == 0x7F;
    uint32_t code = cx_utf8_decode(here, &step);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

static bool is_untrimmed(cx_str text)
{
    size_t last = text.size;
    if (text.size == 0)
        return true;
    do
        last--;
    while (last != 0 && ((uint8_t)text.data[last] & 0xC0) == 0x80);
    return is_white_space(text, 0) || is_white_space(text, last);
}

static void lint_tools(contract_lint *lint, cx_str_list tools, const char *where)
{
    const cx_run_policy *policy = lint->policy;
    for (size_t i = 0; i < tools.count; i++) {
        cx_str tool = tools.items[i];
        const char *fault = NULL;
        if (is_untrimmed(tool))
            fault = "is blank or has white space at an end";
        else if (cx_str_list_has(policy->mcp_deny, tool))
            fault = "is denied in policies/mcp_allowlist.json";
        else if (!cx_str_list_has(policy->mcp_allow, tool))
            fault = "is not among those of policies/mcp_allowlist.json";
        if (fault != NULL)
            cx_run_findings_reject(lint->findings, "K06", cx_contract_where(lint, where, i, NULL),
                                   CX_STR(""), "the tool '%.*s' %s", CX_CONTRACT_SHOW(tool, 80),
                                   fault);
    }
}

/* --- K10, K11 --------------------------------------------------------------------------------- */

/* A report is a file that one test writes in its checkout, or its standard output. */
static void lint_report(contract_lint *lint, size_t index)
{
    const cx_contract *contract = lint->contract;
    cx_str path = contract->tests[index].report.path;
    cx_str where = cx_contract_where(lint, "/acceptance_tests", index, "report/path");
    if (path.data == NULL)
        return;
    const char *rule = cx_run_path_lint(path, lint->ground);
    if (rule != NULL)
        cx_run_findings_reject(lint->findings, "K11", where, cx_str_z(rule),
                               "the report's path '%.*s' %s", CX_CONTRACT_SHOW(path, 80),
                               cx_run_path_rule_text(rule));
    else if (path.data[path.size - 1] == '/')
        cx_run_findings_reject(lint->findings, "K11", where, CX_STR(""),
                               "the report's path '%.*s' is a folder; name the file",
                               CX_CONTRACT_SHOW(path, 80));
    for (size_t i = 0; i < index; i++)
        if (cx_str_eq(contract->tests[i].report.path, path)) {
            cx_run_findings_reject(lint->findings, "K11", where, CX_STR(""),
                                   "the test '%.*s' has its report at '%.*s' too",
                                   CX_CONTRACT_SHOW(contract->tests[i].name, 80),
                                   CX_CONTRACT_SHOW(path, 80));
            break;
        }
}

static cx_status lint_test(contract_lint *lint, size_t index)
{
    const cx_contract *contract = lint->contract;
    const cx_contract_test *test = &contract->tests[index];
    const char *row = NULL;
    cx_str reason = {NULL, 0};
    bool trivial = false;
    CX_TRY(lint->checks->command(lint->policy, contract, test->cmd, lint->arena, &row, &reason,
                                 lint->err));
    if (row != NULL)
        cx_run_findings_reject(lint->findings, "K10",
                               cx_contract_where(lint, "/acceptance_tests", index, "cmd"),
                               cx_str_z(row), "the command gate refuses '%.*s': %.*s",
                               CX_CONTRACT_SHOW(test->cmd, 100), CX_CONTRACT_SHOW(reason, 200));
    for (size_t i = 0; i < index; i++)
        if (cx_str_eq(contract->tests[i].name, test->name)) {
            cx_run_findings_reject(
                lint->findings, "K11", cx_contract_where(lint, "/acceptance_tests", index, "name"),
                CX_STR(""), "there is another test named '%.*s'", CX_CONTRACT_SHOW(test->name, 80));
            break;
        }
    lint_report(lint, index);
    if (contract->strict_acceptance)
        CX_TRY(lint->checks->trivial(test->cmd, lint->arena, &trivial, lint->err));
    if (trivial)
        cx_run_findings_reject(
            lint->findings, "K11", cx_contract_where(lint, "/acceptance_tests", index, "cmd"),
            CX_STR(""), "'%.*s' tests nothing, and strict_acceptance is asked for",
            CX_CONTRACT_SHOW(test->cmd, 80));
    return CX_SUCCESS;
}

static cx_status lint_tests(contract_lint *lint)
{
    const cx_contract *contract = lint->contract;
    bool must_pass = false;
    for (size_t i = 0; i < contract->test_count; i++) {
        must_pass = must_pass || contract->tests[i].must_pass;
        CX_TRY(lint_test(lint, i));
    }
    if (!must_pass)
        cx_run_findings_reject(lint->findings, "K11", CX_STR("/acceptance_tests"), CX_STR(""),
                               "no test has must_pass true, so nothing would have to hold");
    return CX_SUCCESS;
}

/* --- K12, K14 --------------------------------------------------------------------------------- */

static void lint_chain(contract_lint *lint)
{
    const cx_contract *contract = lint->contract;
    if (!contract->has_handoff)
        return;
    const char *fault = cx_run_handoff_fault(
        contract->handoff_enabled, contract->handoff_roles.items, contract->handoff_roles.count,
        contract->owner.role_name, contract->assigned.role_name);
    if (fault != NULL)
        cx_run_findings_reject(lint->findings, "K12", CX_STR("/handoff_chain"), CX_STR(""),
                               "the chain %s", fault);
}

bool cx_run_task_id_ok(cx_str task_id)
{
    if (task_id.size == 0 || task_id.size > TASK_ID_BYTES_MAX || task_id.data[0] == '.' ||
        task_id.data[0] == '-' || !cx_utf8_valid(task_id) || !cx_run_text_is_nfc(task_id))
        return false;
    for (size_t at = 0; at < task_id.size;) {
        size_t step;
        uint32_t code = cx_utf8_decode((const uint8_t *)task_id.data + at, &step);
        if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == '/' || code == '\\')
            return false;
        at += step;
    }
    return true;
}

static void lint_task_id(contract_lint *lint, cx_str task_id, const char *where)
{
    if (!cx_run_task_id_ok(task_id))
        cx_run_findings_reject(
            lint->findings, "K14", cx_str_z(where), CX_STR(""),
            "'%.*s' cannot name files: no '/', '\\' or control characters, no '.' or '-' "
            "at the start, at most 128 bytes in normal form C",
            CX_CONTRACT_SHOW(task_id, 140));
}

/* --- all -------------------------------------------------------------------------------------- */

cx_status cx_run_contract_lint(cx_contract *contract, const cx_run_policy *policy,
                               const cx_run_repo *repo, const cx_run_path_context *ground,
                               const cx_contract_checks *checks, cx_arena *arena,
                               cx_run_findings *findings, cx_err *err)
{
    CX_ASSERT(contract->json.type == CX_JSON_OBJECT); /* I1 */
    CX_ASSERT((size_t)contract->assigned.role < CX_ROLE_COUNT);
    CX_ASSERT(!contract->audit_only || contract->filesystem == CX_FS_READ_ONLY); /* I2 */
    CX_ASSERT(checks != NULL && checks->command != NULL && checks->trivial != NULL);
    contract_lint lint = {contract, policy, repo, ground, checks, arena, findings, err};
    lint_paths(&lint);
    lint_agent(&lint, &contract->owner, "/owner_agent");
    lint_agent(&lint, &contract->assigned, "/assigned_agent");
    CX_TRY(cx_contract_lint_schema(&lint));
    CX_TRY(cx_contract_lint_target(&lint));
    lint_tools(&lint, contract->mcp_tool_set, "/mcp_tool_set");
    lint_tools(&lint, contract->permissions.mcp_tools, "/tool_permissions/mcp_tools");
    CX_TRY(cx_contract_lint_refs(&lint));
    cx_contract_lint_drift(&lint);
    CX_TRY(lint_tests(&lint));
    lint_chain(&lint);
    lint_task_id(&lint, contract->task_id, "/task_id");
    CX_TRY(cx_contract_lint_artifacts(&lint));
    return cx_run_findings_check(findings, err);
}
