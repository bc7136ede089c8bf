/*
 * contract_read.c - decodes bytes into a cx_contract (K01).
 *
 * The schema checks the shape; decoding runs after it and does not check again.  Nothing is
 * normalised and no missing member is filled in, except as §4 says of absent members: the least
 * right, and the role's pack (contract.h I1, I2).
 */
#include "crypto/api.h"
#include "egress/api.h"
#include "json/api.h"
#include "contract/contract_parts.h"
#include "rules/api.h"

static bool read_flag(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

uint32_t cx_contract_integer(const cx_json *value)
{
    double number;
    if (value == NULL || !cx_json_is_number(value))
        return 0;
    if (!cx_number_parse(cx_json_text(value), &number))
        return UINT32_MAX;
    if (number <= 0)
        return 0;
    return number >= (double)UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static uint32_t read_integer(const cx_json *object, const char *name)
{
    return cx_contract_integer(cx_json_get(object, cx_str_z(name)));
}

/* The strings of an array; the schema has excluded other items. */
static bool read_text_list(const cx_json *object, const char *name, cx_arena *arena,
                           cx_str_list *out)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    uint32_t count = value != NULL && value->type == CX_JSON_ARRAY ? value->count : 0;
    cx_str *items = CX_ARENA_ARRAY(arena, cx_str, count + 1);
    if (items == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++)
        items[i] = cx_json_text(&value->items[i]);
    *out = (cx_str_list){items, count};
    return true;
}

/* An array of objects; NULL and 0 when absent. */
static const cx_json *read_objects(const cx_json *object, const char *name, size_t *out_count)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    *out_count = value != NULL && value->type == CX_JSON_ARRAY ? value->count : 0;
    return *out_count == 0 ? NULL : value->items;
}

static void decode_agent(const cx_json *root, const char *name, cx_contract_agent *out)
{
    const cx_json *agent = cx_json_get(root, cx_str_z(name));
    out->role_name = cx_contract_text(agent, "role");
    out->agent_id = cx_contract_text(agent, "agent_id");
    out->codex_thread_id = cx_contract_text(agent, "codex_thread_id");
    (void)cx_run_role_parse(out->role_name, &out->role);
}

static cx_tests_requirement decode_report_demand(const cx_json *test)
{
    const cx_json *report = cx_json_get(test, CX_STR("report"));
    if (report == NULL)
        return (cx_tests_requirement){0};
    return (cx_tests_requirement){
        .format = cx_tests_format_parse(cx_contract_text(report, "format")),
        .path = cx_contract_text(report, "path"),
        .min_tests = read_integer(report, "min_tests"),
        .same_as_baseline = read_flag(report, "same_as_baseline"),
    };
}

static bool decode_lists(const cx_json *root, cx_arena *arena, cx_contract *out)
{
    const cx_json *inputs = cx_json_get(root, CX_STR("inputs"));
    const cx_json *from = read_objects(inputs, "artifacts", &out->artifact_count);
    cx_contract_artifact *artifacts =
        CX_ARENA_ARRAY(arena, cx_contract_artifact, out->artifact_count + 1);
    for (size_t i = 0; artifacts != NULL && i < out->artifact_count; i++)
        artifacts[i] = (cx_contract_artifact){cx_contract_text(&from[i], "name"),
                                              cx_contract_text(&from[i], "uri"),
                                              cx_contract_text(&from[i], "sha256")};
    from = read_objects(root, "required_outputs", &out->output_count);
    cx_contract_output *outputs = CX_ARENA_ARRAY(arena, cx_contract_output, out->output_count + 1);
    for (size_t i = 0; outputs != NULL && i < out->output_count; i++)
        outputs[i] = (cx_contract_output){cx_contract_text(&from[i], "name"),
                                          cx_contract_text(&from[i], "type"),
                                          cx_contract_text(&from[i], "acceptance")};
    from = read_objects(root, "acceptance_tests", &out->test_count);
    cx_contract_test *tests = CX_ARENA_ARRAY(arena, cx_contract_test, out->test_count + 1);
    for (size_t i = 0; tests != NULL && i < out->test_count; i++)
        tests[i] = (cx_contract_test){
            cx_contract_text(&from[i], "name"), cx_contract_text(&from[i], "cmd"),
            read_flag(&from[i], "must_pass"), decode_report_demand(&from[i])};
    out->spec = cx_contract_text(inputs, "spec");
    out->artifacts = artifacts;
    out->outputs = outputs;
    out->tests = tests;
    return artifacts != NULL && outputs != NULL && tests != NULL &&
           read_text_list(root, "allowed_paths", arena, &out->allowed_paths) &&
           read_text_list(root, "locks", arena, &out->locks) &&
           read_text_list(root, "forbidden_actions", arena, &out->forbidden_actions) &&
           read_text_list(root, "mcp_tool_set", arena, &out->mcp_tool_set) &&
           read_text_list(root, "evidence_links", arena, &out->evidence_links);
}

static bool decode_rights(const cx_json *root, cx_arena *arena, cx_contract *out)
{
    const cx_json *asked = cx_json_get(root, CX_STR("tool_permissions"));
    cx_run_permissions *permissions = &out->permissions;
    permissions->filesystem = cx_contract_text(asked, "filesystem");
    permissions->shell = cx_contract_text(asked, "shell");
    permissions->network = cx_contract_text(asked, "network");
    out->audit_only = read_flag(root, "audit_only");
    out->filesystem = out->audit_only ? CX_FS_READ_ONLY /* §3 */
                                      : cx_run_filesystem_parse(permissions->filesystem);
    out->shell = cx_run_shell_parse(permissions->shell);
    out->network = cx_run_network_parse(permissions->network);
    if (!cx_run_pack_parse(cx_contract_text(root, "policy_pack"), &out->pack))
        out->pack = cx_run_role_pack(out->assigned.role);
    return read_text_list(asked, "mcp_tools", arena, &permissions->mcp_tools) &&
           read_text_list(asked, "network_hosts", arena, &out->network_hosts);
}

static bool decode_options(const cx_json *root, cx_arena *arena, cx_contract *out)
{
    static const char *const types[] = {"PLAN", "IMPLEMENT", "REVIEW", "TEST", "SEARCH"};
    const cx_json *retry = cx_json_get(root, CX_STR("timeout_retry"));
    const cx_json *rollback = cx_json_get(root, CX_STR("rollback"));
    const cx_json *chain = cx_json_get(root, CX_STR("handoff_chain"));
    const cx_json *runtime = cx_json_get(root, CX_STR("runtime_options"));
    cx_str type = cx_contract_text(root, "task_type");
    cx_str strategy = cx_contract_text(rollback, "strategy");
    for (size_t i = 0; i < CX_COUNT_OF(types); i++)
        if (cx_str_is(type, types[i]))
            out->task_type = (cx_contract_type)(CX_TASK_PLAN + i);
    out->timeout_sec = read_integer(retry, "timeout_sec");
    out->max_retries = read_integer(retry, "max_retries");
    out->retry_backoff_sec = read_integer(retry, "retry_backoff_sec");
    out->rollback = cx_str_eq(strategy, CX_STR("worktree_drop"))       ? CX_ROLLBACK_WORKTREE_DROP
                    : cx_str_eq(strategy, CX_STR("git_revert_commit")) ? CX_ROLLBACK_REVERT_COMMIT
                                                                       : CX_ROLLBACK_RESET_HARD;
    out->baseline_ref = cx_contract_text(rollback, "baseline_ref");
    out->target_ref = cx_contract_text(rollback, "target_ref");
    out->has_handoff = chain != NULL;
    out->handoff_enabled = read_flag(chain, "enabled");
    out->max_handoffs = read_integer(chain, "max_handoffs");
    out->runner = cx_contract_text(runtime, "runner");
    out->provider = cx_contract_text(runtime, "provider");
    out->mcp_first = read_flag(cx_json_get(runtime, CX_STR("execution")), "mcp_first");
    out->strict_acceptance = read_flag(runtime, "strict_acceptance");
    out->role_contract = cx_json_get(root, CX_STR("role_contract"));
    return read_text_list(chain, "roles", arena, &out->handoff_roles);
}

static cx_status decode_contract(const cx_json *root, cx_arena *arena, cx_contract *out,
                                 cx_err *err)
{
    out->parent_task_id = cx_contract_text(root, "parent_task_id");
    decode_agent(root, "owner_agent", &out->owner);
    decode_agent(root, "assigned_agent", &out->assigned);
    if (!decode_lists(root, arena, out) || !decode_rights(root, arena, out) ||
        !decode_options(root, arena, out))
        return cx_fail_nomem(err);
    return CX_SUCCESS;
}

static void check_hosts(const cx_contract *contract, cx_run_findings *findings)
{
    cx_egress_pattern pattern;
    for (size_t i = 0; i < contract->network_hosts.count; i++) {
        cx_str text = contract->network_hosts.items[i];
        const char *why = cx_egress_pattern_parse(text, &pattern);
        if (why != NULL)
            cx_run_findings_reject(findings, "K01", CX_STR("/tool_permissions/network_hosts"),
                                   CX_STR(""),
                                   "'%.*s' is no host: %s; write HOST or *.HOST, with "
                                   ":PORT or without",
                                   (int)text.size, text.data, why);
    }
}

cx_status cx_run_contract_read(cx_str bytes, cx_arena *arena, cx_run_findings *findings,
                               cx_contract *out, cx_err *err)
{
    CX_ASSERT(findings != NULL && out != NULL);
    cx_err own = {0};
    cx_json *root = CX_ARENA_NEW(arena, cx_json);
    size_t before = findings->refusing;
    memset(out, 0, sizeof *out);
    if (root == NULL)
        return cx_fail_nomem(err);
    out->bytes = bytes;
    out->sha256 = cx_digest_of(cx_str_bytes(bytes));
    cx_status status = cx_run_json_read(bytes, CX_RUN_CONTRACT_BYTES_MAX, arena, root, &own);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status)) {
        cx_run_findings_reject(findings, "K01", CX_STR(""), CX_STR(""),
                               "this is not a contract: %s", own.message);
        return cx_run_findings_check(findings, err);
    }
    out->task_id = cx_contract_text(root, "task_id");
    if ((root->flags & (CX_JSON_OVERFLOW | CX_JSON_SURROGATE)) != 0)
        cx_run_findings_reject(
            findings, "K01", CX_STR(""), CX_STR(""),
            "a number is out of range, or text has an unpaired surrogate; write it in "
            "another form");
    CX_TRY(cx_run_schema_check("task_contract.v1.json", root, "K01", findings, err));
    if (findings->refusing != before)
        return cx_run_findings_check(findings, err);
    out->json = *root;
    CX_TRY(decode_contract(root, arena, out, err));
    check_hosts(out, findings);
    return cx_run_findings_check(findings, err);
}
