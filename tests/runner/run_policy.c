/*
 * run_policy.c - policy_gate.json, default_policy_pack.json, shell_mapping.json,
 * handoff_chain.json, simple_gates.json (run.md §4, §5, K12, §13), by the policies that the program
 * carries.
 */
#include "contract/gates.h"
#include "tests/runner/run_answers.h"

/* Text, or a text without data when it is null or absent. */
static cx_str text_or_none(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_STRING ? cx_json_text(value)
                                                          : cx_str_from(NULL, 0);
}

static bool is_true(const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && value->type == CX_JSON_TRUE;
}

/* None when it is absent. */
static cx_status words_of(runner *r, const cx_json *object, const char *name, cx_str_list *out,
                          cx_err *err)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    cx_str *items = NULL;
    if (value != NULL)
        CX_TRY(runner_texts(r, value, &items, err));
    *out = (cx_str_list){items, value == NULL ? 0 : value->count};
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

cx_status run_policy_gate_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const struct {
        unsigned bit;
        const char *name;
    } fields[] = {{CX_EXCEEDS_FILESYSTEM, "filesystem"},
                  {CX_EXCEEDS_SHELL, "shell"},
                  {CX_EXCEEDS_NETWORK, "network"},
                  {CX_EXCEEDS_MCP_TOOLS, "mcp_tools"}};
    cx_run_policy policy;
    cx_run_permissions asked;
    cx_str names[CX_COUNT_OF(fields)];
    size_t count = 0;
    unsigned exceeds;
    const cx_json *agent, *rights;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_member(item, "assigned_agent", CX_JSON_OBJECT, &agent, err));
    CX_TRY(runner_member(item, "tool_permissions", CX_JSON_OBJECT, &rights, err));
    asked.filesystem = text_or_none(rights, "filesystem");
    asked.shell = text_or_none(rights, "shell");
    asked.network = text_or_none(rights, "network");
    CX_TRY(words_of(r, rights, "mcp_tools", &asked.mcp_tools, err));
    CX_TRY(run_case_policy(r, &policy, err));
    const char *reason = cx_run_policy_compare(&policy, text_or_none(agent, "role"),
                                               text_or_none(agent, "agent_id"), &asked, &exceeds);
    for (size_t i = 0; i < CX_COUNT_OF(fields); i++)
        if ((exceeds & fields[i].bit) != 0)
            names[count++] = cx_str_z(fields[i].name);
    cx_json_list_put(&object, CX_STR("verdict"),
                     cx_json_make_str(reason == NULL ? CX_STR("ok") : CX_STR("reject")));
    cx_json_list_put(&object, CX_STR("reason"),
                     cx_json_make_str(cx_str_z(reason == NULL ? "" : reason)));
    CX_TRY(put_words(&object, "exceeds", (cx_str_list){names, count}, err));
    return cx_json_list_end_object(&object, out, err);
}

cx_status run_pack_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str name;
    cx_run_role role;
    (void)r;
    CX_TRY(runner_text(item, "role", &name, err));
    *out = cx_run_role_parse(name, &role)
               ? run_text_or_null(cx_run_pack_name(cx_run_role_pack(role)))
               : cx_json_make_null();
    return CX_SUCCESS;
}

cx_status run_pack_expect(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *pack;
    (void)r;
    CX_TRY(runner_member(item, "policy_pack", CX_JSON_STRING, &pack, err));
    *out = *pack;
    return CX_SUCCESS;
}

cx_status run_shell_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_run_shell_map map =
        cx_run_shell_mapping(text_or_none(item, "shell"), text_or_none(item, "network"));
    cx_json_list object = cx_json_list_begin(&r->arena);
    if (map.error != NULL) {
        cx_json_list_put(&object, CX_STR("error"), run_text_or_null(map.error));
        return cx_json_list_end_object(&object, out, err);
    }
    cx_json_list_put(&object, CX_STR("approval_policy"), run_text_or_null(map.approval_policy));
    cx_json_list_put(&object, CX_STR("shell_tool"), cx_json_make_bool(map.shell_tool));
    cx_json_list_put(&object, CX_STR("network_access"),
                     map.network == CX_NETWORK_ON_REQUEST
                         ? cx_json_make_str(CX_STR("approved"))
                         : cx_json_make_bool(map.network == CX_NETWORK_ALLOW));
    return cx_json_list_end_object(&object, out, err);
}

cx_status run_handoff_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str_list roles;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(words_of(r, item, "roles", &roles, err));
    const char *fault =
        cx_run_handoff_fault(is_true(item, "enabled"), roles.items, roles.count,
                             text_or_none(item, "owner"), text_or_none(item, "assigned"));
    cx_json_list_put(&object, CX_STR("valid"), cx_json_make_bool(fault == NULL));
    return cx_json_list_end_object(&object, out, err);
}

/* --- simple_gates.json ------------------------------------------------------------------------ */

static cx_status network_got(runner *r, const cx_json *item, cx_json_list *object, cx_err *err)
{
    (void)r;
    (void)err;
    const char *reason = cx_run_gate_network(
        text_or_none(item, "policy"), is_true(item, "requires_network"), is_true(item, "approved"));
    cx_json_list_put(object, CX_STR("ok"), cx_json_make_bool(reason == NULL));
    cx_json_list_put(object, CX_STR("reason"),
                     cx_json_make_str(cx_str_z(reason == NULL ? "" : reason)));
    return CX_SUCCESS;
}

static cx_status mcp_got(runner *r, const cx_json *item, cx_json_list *object, cx_err *err)
{
    cx_run_policy policy;
    cx_str_list allowed, required;
    cx_run_tool_verdict verdict;
    CX_TRY(run_case_policy(r, &policy, err));
    CX_TRY(words_of(r, item, "allowed", &allowed, err));
    CX_TRY(words_of(r, item, "required", &required, err));
    CX_TRY(cx_run_gate_mcp(policy.mcp_allow, policy.mcp_deny, allowed, required, &r->arena,
                           &verdict, err));
    cx_json_list_put(object, CX_STR("ok"), cx_json_make_bool(verdict.ok));
    CX_TRY(put_words(object, "missing", verdict.missing, err));
    return put_words(object, "unknown", verdict.unknown, err);
}

static cx_status sampling_got(runner *r, const cx_json *item, cx_json_list *object, cx_err *err)
{
    cx_str_list tools;
    CX_TRY(words_of(r, item, "mcp_tools", &tools, err));
    bool requested = cx_run_sampling_requested(tools);
    cx_json_list_put(object, CX_STR("requested"), cx_json_make_bool(requested));
    cx_json_list_put(object, CX_STR("ok"),
                     cx_json_make_bool(!requested || is_true(item, "approved")));
    return CX_SUCCESS;
}

static cx_status concurrency_got(runner *r, const cx_json *item, cx_json_list *object, cx_err *err)
{
    (void)r;
    (void)err;
    cx_json_list_put(object, CX_STR("ok"),
                     cx_json_make_bool(cx_run_gate_concurrency(text_or_none(item, "mode"))));
    return CX_SUCCESS;
}

static cx_status integrated_got(runner *r, const cx_json *item, cx_json_list *object, cx_err *err)
{
    cx_str_list required, integrated;
    cx_run_tool_verdict verdict;
    CX_TRY(words_of(r, item, "required", &required, err));
    CX_TRY(words_of(r, item, "integrated", &integrated, err));
    CX_TRY(cx_run_gate_integrated(required, integrated, &r->arena, &verdict, err));
    cx_json_list_put(object, CX_STR("ok"), cx_json_make_bool(verdict.ok));
    return put_words(object, "missing", verdict.missing, err);
}

cx_status run_simple_gate_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    static const struct {
        const char *gate;
        cx_status (*got)(runner *r, const cx_json *item, cx_json_list *object, cx_err *err);
    } gates[] = {{"network", network_got},
                 {"mcp", mcp_got},
                 {"sampling", sampling_got},
                 {"concurrency", concurrency_got},
                 {"integrated", integrated_got}};
    cx_str name;
    CX_TRY(runner_text(item, "gate", &name, err));
    for (size_t i = 0; i < CX_COUNT_OF(gates); i++) {
        cx_json_list object = cx_json_list_begin(&r->arena);
        if (!cx_str_is(name, gates[i].gate))
            continue;
        CX_TRY(gates[i].got(r, item, &object, err));
        return cx_json_list_end_object(&object, out, err);
    }
    return cx_fail(err, CX_E_UNSUPPORTED, "nobody answers this gate");
}
