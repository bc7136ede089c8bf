/*
 * state_dry.c - `--dry-run`: what would be refused before an agent starts, without writing
 * anything.
 */
#include "governor/state_internal.h"

static void put_texts_gate(cx_json_list *gates, cx_arena *arena, const char *name,
                           const cx_texts *violations)
{
    cx_json_list object = cx_json_list_begin(arena);
    cx_json value;
    cx_json_put_bool(&object, "passed", violations->count == 0);
    cx_json_put_quoted_strs(&object, "violations", violations->items, violations->count);
    if (cx_failed(cx_json_list_end_object(&object, &value, NULL)))
        gates->failed = true;
    else
        cx_json_list_put(gates, cx_str_z(name), value);
}

static cx_status check_policy(cx_governor *g, cx_arena *arena, cx_texts *out, cx_err *err)
{
    cx_run_findings findings;
    cx_run_findings_init(&findings, arena);
    cx_status status =
        cx_run_gate_policy(&g->policy, &g->contract, &g->tree, &g->ground, NULL, &findings, err);
    if (!cx_failed(status))
        status = cx_findings_texts(&findings, arena, out, err);
    cx_run_findings_done(&findings);
    return status;
}

static cx_texts list_of_one(cx_arena *arena, const char *text)
{
    cx_str *item = CX_ARENA_NEW(arena, cx_str);
    if (text == NULL || item == NULL)
        return (cx_texts){NULL, 0};
    *item = cx_str_z(text);
    return (cx_texts){item, 1};
}

static cx_status check_tools(cx_governor *g, cx_arena *arena, cx_texts *out, cx_err *err)
{
    cx_run_tool_verdict verdict;
    CX_TRY(cx_run_gate_mcp(g->policy.mcp_allow, g->policy.mcp_deny,
                           g->contract.permissions.mcp_tools, (cx_str_list){NULL, 0}, arena,
                           &verdict, err));
    *out = (cx_texts){verdict.unknown.items, verdict.unknown.count};
    return CX_SUCCESS;
}

static cx_status put_gates(cx_governor *g, cx_arena *arena, cx_json_list *out, bool *allow,
                           cx_err *err)
{
    cx_json_list gates = cx_json_list_begin(arena);
    cx_json value;
    cx_texts policy, tools, runner, integrated, argv, tests;
    const char *reason;
    cx_ahead ahead = {.governor = g,
                      .contract = &g->contract,
                      .runner = g->runner_config,
                      .settings = &g->runner_settings,
                      .arena = arena};
    bool needs = cx_run_task_needs_network(&g->contract, g->runner_config);
    CX_TRY(check_policy(g, arena, &policy, err));
    CX_TRY(check_tools(g, arena, &tools, err));
    CX_TRY(cx_ahead_runner(&ahead, &reason, &runner, err));
    CX_TRY(cx_ahead_integrated(&ahead, &integrated, err));
    CX_TRY(cx_ahead_runner_argv(&ahead, &argv, err));
    CX_TRY(cx_ahead_tests(&ahead, &tests, err));
    cx_texts network =
        list_of_one(arena, cx_run_gate_network(g->contract.permissions.network, needs, false));
    cx_texts sampling = list_of_one(
        arena,
        cx_run_sampling_requested(g->contract.permissions.mcp_tools) ? "approval_missing" : NULL);
    cx_texts concurrency = list_of_one(
        arena, cx_run_gate_concurrency(g->policy.config.mcp_concurrency) ? NULL : "unknown_mode");
    put_texts_gate(&gates, arena, "policy", &policy);
    put_texts_gate(&gates, arena, "runner", &runner);
    put_texts_gate(&gates, arena, "integrated", &integrated);
    put_texts_gate(&gates, arena, "tool", &argv);
    put_texts_gate(&gates, arena, "tests", &tests);
    put_texts_gate(&gates, arena, "network", &network);
    put_texts_gate(&gates, arena, "mcp", &tools);
    put_texts_gate(&gates, arena, "sampling", &sampling);
    put_texts_gate(&gates, arena, "concurrency", &concurrency);
    *allow = policy.count + network.count + tools.count + sampling.count + concurrency.count +
                 runner.count + integrated.count + argv.count + tests.count ==
             0;
    CX_TRY(cx_json_list_end_object(&gates, &value, err));
    cx_json_list_put(out, CX_STR("gates"), value);
    return CX_SUCCESS;
}

static cx_status describe_contract(cx_governor *g, cx_arena *arena, cx_json *out, bool *allow,
                                   cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    cx_json errors, role;
    *allow = g->contract_ok;
    CX_TRY(cx_run_findings_json(&g->findings, arena, &errors, err));
    cx_json_put_bool(&list, "valid", g->contract_ok);
    cx_json_list_put(&list, CX_STR("errors"), errors);
    cx_json_put_quoted(&list, "baseline_commit", g->baseline);
    if (g->contract_ok) {
        cx_str runner = g->runner_settings.name;
        CX_TRY(put_gates(g, arena, &list, allow, err));
        CX_TRY(cx_run_role_summary(&g->contract, &g->policy, arena, &role, err));
        cx_json_list_put(&list, CX_STR("role_contract_summary"), role);
        cx_json_put_quoted(&list, "runner", runner.size == 0 ? CX_STR("none") : runner);
        cx_json_put_quoted_strs(&list, "lock_paths", g->contract.allowed_paths.items,
                                g->contract.allowed_paths.count);
    }
    cx_json_put_bool(&list, "allow", *allow);
    CX_TRY(cx_json_list_end_object(&list, out, err));
    return cx_json_copy(out, arena, out, err);
}

cx_status cx_run_dry(const cx_run_options *options, cx_arena *arena, cx_json *out, bool *out_allow,
                     cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    cx_governor g = {.options = options,
                     .alloc = options->alloc == NULL ? cx_alloc_default() : options->alloc,
                     .io = options->io == NULL ? cx_io_system() : options->io,
                     .arena = arena,
                     .dry = true};
    cx_status status = cx_governor_open(&g, err);
    if (!cx_failed(status) && g.contract_ok)
        status = cx_governor_choose_runner(&g, err);
    if (!cx_failed(status))
        status = describe_contract(&g, arena, out, out_allow, err);
    cx_governor_close(&g);
    return status;
}
