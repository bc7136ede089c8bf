/*
 * state_gates.c - the gates between a worktree and an agent, in the order of run.md §13:
 * integrated, concurrency, network, MCP, sampling, sandbox, and the tool gate over the runner's own
 * argv.
 */
#include "crypto/api.h"
#include "command/api.h"
#include "governor/state_internal.h"

static cx_status refuse_gate(cx_governor_task *t, cx_gate_id gate, const char *reason,
                             const cx_texts *violations, cx_err *err)
{
    return cx_task_refuse(t, gate, reason, true, violations, err);
}

/* --- integrated ------------------------------------------------------------------------------- */

cx_ahead cx_task_ahead(cx_governor_task *t)
{
    return (cx_ahead){.governor = t->governor,
                      .contract = &t->contract,
                      .runner = t->runner_config,
                      .settings = &t->settings,
                      .worktree = t->workspace.has_worktree ? t->workspace.worktree.path : NULL,
                      .arena = &t->arena};
}

cx_status cx_gate_integrated(cx_governor_task *t, cx_err *err)
{
    cx_ahead ahead = cx_task_ahead(t);
    cx_texts faults;
    t->gate = CX_GATE_INTEGRATED;
    CX_TRY(cx_ahead_integrated(&ahead, &faults, err));
    CX_TRY(cx_task_gate_event(t, CX_RUN_EVENT_INTEGRATED_GATE_RESULT, faults.count == 0,
                              faults.count == 0 ? NULL : &faults, err));
    return faults.count == 0
               ? CX_SUCCESS
               : refuse_gate(t, CX_GATE_INTEGRATED, "tool_not_integrated", &faults, err);
}

/* --- concurrency, network, MCP, sampling ------------------------------------------------------ */

cx_status cx_gate_concurrency_check(cx_governor_task *t, cx_err *err)
{
    cx_str mode = t->governor->policy.config.mcp_concurrency;
    bool passed = cx_run_gate_concurrency(mode);
    cx_texts violations = {&mode, 1};
    t->gate = CX_GATE_CONCURRENCY;
    CX_TRY(cx_task_gate_event(t, CX_RUN_EVENT_MCP_CONCURRENCY_CHECK, passed,
                              passed ? NULL : &violations, err));
    return passed ? CX_SUCCESS
                  : refuse_gate(t, CX_GATE_CONCURRENCY, "unknown_mode", &violations, err);
}

cx_status cx_gate_network_check(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str scope = CX_STR("network"), policy = t->contract.permissions.network;
    cx_texts scopes = {&scope, 1};
    bool needs = cx_run_task_needs_network(&t->contract, t->runner_config);
    bool granted = cx_governor_scope_granted(g, scope);
    t->gate = CX_GATE_NETWORK;
    const char *fault = cx_run_gate_network(policy, needs, granted);
    if (fault != NULL && t->contract.network == CX_NETWORK_ON_REQUEST && needs) {
        CX_TRY(cx_task_ask_approval(t, &scopes, &granted, err));
        fault = cx_run_gate_network(policy, needs, granted);
    }
    cx_str text = cx_str_z(fault == NULL ? "" : fault);
    cx_texts violations = {&text, 1};
    CX_TRY(cx_task_gate_event(t, CX_RUN_EVENT_NETWORK_GATE_RESULT, fault == NULL,
                              fault == NULL ? NULL : &violations, err));
    if (fault != NULL)
        return refuse_gate(t, CX_GATE_NETWORK, fault, &violations, err);
    t->agent.network_on = t->contract.network == CX_NETWORK_ALLOW ||
                          (t->contract.network == CX_NETWORK_ON_REQUEST && granted);
    return CX_SUCCESS;
}

static cx_status join_tools(cx_governor_task *t, const cx_run_tool_verdict *a,
                            const cx_run_tool_verdict *b, cx_texts *out, cx_err *err)
{
    const cx_str_list lists[] = {a->missing, a->unknown, b->unknown};
    static const char *const names[] = {"missing", "unknown", "unknown"};
    size_t count = a->missing.count + a->unknown.count + b->unknown.count;
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, count + 1);
    size_t used = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t l = 0; l < CX_COUNT_OF(lists); l++) {
        for (size_t i = 0; i < lists[l].count; i++) {
            cx_str text = cx_arena_printf(&t->arena, "%s %.*s", names[l],
                                          (int)lists[l].items[i].size, lists[l].items[i].data);
            if (text.data == NULL)
                return cx_fail_nomem(err);
            if (!cx_str_list_has((cx_str_list){items, used}, text))
                items[used++] = text;
        }
    }
    *out = (cx_texts){items, used};
    return CX_SUCCESS;
}

cx_status cx_gate_mcp_check(cx_governor_task *t, cx_err *err)
{
    const cx_run_policy *policy = &t->governor->policy;
    cx_str_list required = {t->agent.runner->tools, t->agent.runner->tool_count};
    cx_run_tool_verdict tools, set;
    cx_texts faults;
    t->gate = CX_GATE_MCP;
    CX_TRY(cx_run_gate_mcp(policy->mcp_allow, policy->mcp_deny, t->contract.permissions.mcp_tools,
                           required, &t->arena, &tools, err));
    CX_TRY(cx_run_gate_mcp(policy->mcp_allow, policy->mcp_deny, t->contract.mcp_tool_set,
                           (cx_str_list){NULL, 0}, &t->arena, &set, err));
    CX_TRY(join_tools(t, &tools, &set, &faults, err));
    bool passed = tools.ok && set.ok;
    CX_TRY(cx_task_gate_event(t, CX_RUN_EVENT_MCP_TOOL_GATE_RESULT, passed, passed ? NULL : &faults,
                              err));
    return passed ? CX_SUCCESS : refuse_gate(t, CX_GATE_MCP, "tool_not_allowed", &faults, err);
}

cx_status cx_gate_sampling_check(cx_governor_task *t, cx_err *err)
{
    cx_str scope = CX_STR("sampling");
    cx_texts scopes = {&scope, 1};
    bool asked = cx_run_sampling_requested(t->contract.permissions.mcp_tools);
    bool granted = cx_governor_scope_granted(t->governor, scope);
    t->gate = CX_GATE_SAMPLING;
    if (asked && !granted)
        CX_TRY(cx_task_ask_approval(t, &scopes, &granted, err));
    bool passed = !asked || granted;
    CX_TRY(cx_task_gate_event(t, CX_RUN_EVENT_MCP_SAMPLING_GATE_RESULT, passed,
                              passed ? NULL : &scopes, err));
    return passed ? CX_SUCCESS : refuse_gate(t, CX_GATE_SAMPLING, "approval_missing", &scopes, err);
}

/* --- sandbox ---------------------------------------------------------------------------------- */

static cx_status words_as_z(cx_arena *arena, cx_str_list words, const char *const **out,
                            cx_err *err)
{
    const char **items = CX_ARENA_ARRAY(arena, const char *, words.count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < words.count; i++) {
        items[i] = cx_arena_copy_str(arena, words.items[i]).data;
        if (items[i] == NULL)
            return cx_fail_nomem(err);
    }
    *out = items;
    return CX_SUCCESS;
}

static cx_status box_options(cx_governor *g, cx_arena *arena, cx_sandbox_options *out, cx_err *err)
{
    const cx_run_config *config = &g->policy.config;
    const char **hide = CX_ARENA_ARRAY(arena, const char *, 2);
    cx_str *names =
        CX_ARENA_ARRAY(arena, cx_str, config->env.count + g->runner_settings.env_count + 1);
    size_t name_count = 0;
    cx_sandbox_options options = {.program = g->options->program};
    if (hide == NULL || names == NULL)
        return cx_fail_nomem(err);
    hide[options.hide_count++] = g->store.root;
    if (g->options->home != NULL)
        hide[options.hide_count++] = g->options->home;
    options.hide = hide;
    for (size_t i = 0; i < config->env.count; i++)
        names[name_count++] = config->env.items[i];
    for (size_t i = 0; i < g->runner_settings.env_count; i++)
        names[name_count++] = g->runner_settings.env[i];
    CX_TRY(words_as_z(arena, config->trusted_dirs, &options.trusted, err));
    CX_TRY(words_as_z(arena, config->read_only, &options.read, err));
    CX_TRY(words_as_z(arena, (cx_str_list){names, name_count}, &options.env_names, err));
    options.trusted_count = config->trusted_dirs.count;
    options.read_count = config->read_only.count;
    options.env_name_count = name_count;
    options.limits = (cx_sandbox_limits){.processes = config->limits.processes,
                                         .file_bytes = config->limits.file_bytes,
                                         .open_files = config->limits.open_files,
                                         .memory_bytes = config->limits.memory_bytes};
    *out = options;
    return CX_SUCCESS;
}

static void try_sandbox(void *arg)
{
    cx_governor_trial *trial = arg;
    trial->status = cx_sandbox_open(&trial->options, &trial->sandbox, &trial->err);
}

/* Trying the sandbox out takes as long as ten starts of git, and nothing that comes before its gate
 * needs it: it is done while the first events are made durable. */
void cx_governor_begin_trial(cx_governor *g)
{
    cx_governor_trial *trial = &g->trial;
    if (g->sandbox == NULL && !trial->running &&
        !cx_failed(box_options(g, g->arena, &trial->options, NULL)))
        trial->running = cx_thread_start(&trial->thread, try_sandbox, trial);
}

void cx_governor_end_trial(cx_governor *g)
{
    if (g->trial.running)
        cx_thread_join(&g->trial.thread);
    g->trial.running = false;
    cx_sandbox_close(g->trial.sandbox);
    g->trial.sandbox = NULL;
}

cx_status cx_governor_open_box(cx_governor *g, cx_arena *arena, cx_err *err)
{
    CX_ASSERT(g != NULL && arena != NULL);
    cx_sandbox_options options;
    cx_governor_trial *trial = &g->trial;
    if (!trial->running) {
        CX_TRY(box_options(g, arena, &options, err));
        return cx_sandbox_open(&options, &g->sandbox, err);
    }
    cx_thread_join(&trial->thread);
    trial->running = false;
    if (cx_failed(trial->status) && err != NULL)
        *err = trial->err;
    g->sandbox = trial->sandbox;
    trial->sandbox = NULL;
    return trial->status;
}

static cx_status missing_layers(cx_governor_task *t, cx_texts *out, cx_err *err)
{
    const cx_sandbox *box = t->governor->sandbox;
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, CX_SANDBOX_LAYER_COUNT);
    size_t count = 0;
    if (items == NULL)
        return cx_fail_nomem(err);
    for (unsigned i = 0; i < CX_SANDBOX_LAYER_COUNT; i++) {
        if ((box->missing & (1u << i)) == 0)
            continue;
        items[count] =
            cx_arena_printf(&t->arena, "%s: %s", cx_sandbox_layer_name((cx_sandbox_layer)(1u << i)),
                            box->reason[i] == NULL ? "not available" : box->reason[i]);
        if (items[count++].data == NULL)
            return cx_fail_nomem(err);
    }
    *out = (cx_texts){items, count};
    return CX_SUCCESS;
}

/* What the agent of a danger-full-access run gets: nothing of the box, and so the network, too. */
static cx_status write_no_sandbox_event(cx_governor_task *t, cx_json *out, cx_err *err)
{
    cx_json_list object = cx_json_list_begin(&t->arena), list = cx_json_list_begin(&t->arena);
    cx_json layers, missing;
    CX_TRY(cx_json_list_end_array(&list, &layers, err));
    list = cx_json_list_begin(&t->arena);
    for (unsigned i = 0; i < CX_SANDBOX_LAYER_COUNT; i++) {
        if ((CX_SANDBOX_REQUIRED & (1u << i)) == 0)
            continue;
        cx_json item;
        cx_json_list one = cx_json_list_begin(&t->arena);
        cx_json_put_quoted(&one, "layer",
                           cx_str_z(cx_sandbox_layer_name((cx_sandbox_layer)(1u << i))));
        cx_json_put_quoted(&one, "reason", CX_STR("danger-full-access by approval"));
        CX_TRY(cx_json_list_end_object(&one, &item, err));
        cx_json_list_add(&list, item);
    }
    CX_TRY(cx_json_list_end_array(&list, &missing, err));
    cx_json_put_quoted(&object, "mode", CX_STR("none"));
    cx_json_put_quoted(&object, "network", CX_STR("on"));
    cx_json_list_put(&object, CX_STR("layers"), layers);
    cx_json_list_put(&object, CX_STR("missing"), missing);
    return cx_json_list_end_object(&object, out, err);
}

static cx_sandbox_network network_of(const cx_governor_task *t)
{
    return !t->agent.network_on                   ? CX_SANDBOX_OFF
           : t->contract.network_hosts.count == 0 ? CX_SANDBOX_ON
                                                  : CX_SANDBOX_PROXY;
}

static cx_status write_sandbox_event(cx_governor_task *t, cx_err *err)
{
    cx_json described;
    cx_str path = cx_task_file(t, "artifacts/sandbox_report.json");
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (t->governor->unconfined)
        CX_TRY(write_no_sandbox_event(t, &described, err));
    else
        CX_TRY(
            cx_sandbox_describe(t->governor->sandbox, network_of(t), &t->arena, &described, err));
    CX_TRY(cx_run_file_write_json(t->governor->run, path, &described, err));
    CX_TRY(cx_task_add_artifact(t, path, err));
    return cx_task_event_json(t, t->governor->degraded ? CX_RUN_WARN : CX_RUN_INFO,
                              t->governor->degraded ? CX_RUN_EVENT_SANDBOX_DEGRADED
                                                    : CX_RUN_EVENT_SANDBOX_APPLIED,
                              &described, err);
}

/* §4, decision 0019: no contract can ask for it, only an approval signed for this contract. */
static cx_status check_unconfined(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str scope = CX_STR("permission:filesystem=danger-full-access");
    cx_texts scopes = {&scope, 1};
    g->unconfined = cx_governor_scope_granted(g, scope);
    CX_TRY(cx_run_approvals_add_folder(&g->approvals, err));
    if (!g->unconfined && cx_run_approvals_find(&g->approvals, scope) != NULL)
        CX_TRY(cx_task_ask_approval(t, &scopes, &g->unconfined, err));
    if (!g->unconfined)
        return CX_SUCCESS;
    g->degraded = true;
    g->notes = CX_STR("danger-full-access by approval: no sandbox");
    return CX_SUCCESS;
}

/* §16: a missing layer rejects, unless it was asked for on the command line and signed. */
cx_status cx_gate_sandbox(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str scope = CX_STR("sandbox_degraded");
    cx_texts scopes = {&scope, 1}, missing;
    bool granted = false;
    t->gate = CX_GATE_SANDBOX;
    if (g->sandbox == NULL)
        CX_TRY(cx_governor_open_box(g, g->arena, err));
    CX_TRY(check_unconfined(t, err));
    if (g->sandbox->missing == 0)
        return write_sandbox_event(t, err);
    /* Also of an agent without a sandbox: review and tests have theirs. */
    CX_TRY(missing_layers(t, &missing, err));
    if (g->options->allow_degraded_sandbox)
        CX_TRY(cx_task_ask_approval(t, &scopes, &granted, err));
    if (!granted)
        return cx_task_refuse(t, CX_GATE_SANDBOX, "sandbox_layer_missing", true, &missing, err);
    g->degraded = true;
    if (!g->unconfined)
        g->notes = CX_STR("sandbox degraded");
    return write_sandbox_event(t, err);
}

/* --- the runner's own argv -------------------------------------------------------------------- */

static cx_status read_baseline_script(void *arg, cx_str path, cx_str plain, cx_run_script *out,
                                      cx_err *err)
{
    (void)path;
    return cx_task_compare_script(arg, plain, out, err);
}

/* The configuration of the baseline allows exactly this program; all other rows judge it as any
 * other command. */
cx_status cx_task_check_argv(cx_governor_task *t, const cx_runner *runner, bool network,
                             cx_run_command_verdict *out, cx_err *err)
{
    CX_ASSERT(t != NULL && out != NULL);
    cx_run_argv argv, first;
    cx_json payload;
    cx_ahead ahead = cx_task_ahead(t);
    cx_run_trust trust;
    CX_TRY(cx_ahead_trust(&ahead, &trust, err));
    CX_TRY(cx_run_argv_make(runner->argv, runner->argv_count, &t->arena, &argv, err));
    CX_TRY(cx_run_argv_make(runner->argv, 1, &t->arena, &first, err));
    cx_run_command_rules rules = {.pack_known = true, .allow = &first, .allow_count = 1};
    cx_run_command_options options = {.rules = &rules,
                                      .network_policy = network ? CX_STR("allow") : CX_STR("deny"),
                                      .worktree = t->workspace.worktree.path,
                                      .script = read_baseline_script,
                                      .script_arg = t,
                                      .trust = &trust};
    CX_TRY(cx_run_argv_check(&options, &argv, &t->arena, out, err));
    CX_TRY(cx_run_command_verdict_json(out, CX_STR(""), &t->arena, &payload, err));
    return cx_task_event_json(t, out->allow ? CX_RUN_INFO : CX_RUN_ERROR,
                              CX_RUN_EVENT_TOOL_GATE_RESULT, &payload, err);
}

cx_status cx_gate_runner_argv(cx_governor_task *t, cx_err *err)
{
    cx_run_command_verdict verdict;
    t->gate = CX_GATE_TOOL;
    if (t->agent.runner->argv_count == 0)
        return CX_SUCCESS;
    CX_TRY(cx_task_check_argv(t, t->agent.runner, t->agent.network_on, &verdict, err));
    if (verdict.allow) {
        t->agent.program = verdict.executable.path.data;
        return CX_SUCCESS;
    }
    cx_str text =
        cx_arena_printf(&t->arena, "%s %.*s", verdict.rule, (int)t->agent.runner->argv[0].size,
                        t->agent.runner->argv[0].data);
    cx_texts violations = {&text, 1};
    t->refusal.hint = verdict.reason;
    if (text.data == NULL)
        return cx_fail_nomem(err);
    return cx_task_refuse(t, CX_GATE_TOOL, "runner_argv", true, &violations, err);
}

/* --- the acceptance tests' programs ----------------------------------------------------------- */

/* A program that is not there is not there later either: no agent works in vain. */
cx_status cx_gate_test_programs(cx_governor_task *t, cx_err *err)
{
    cx_ahead ahead = cx_task_ahead(t);
    cx_texts faults;
    t->gate = CX_GATE_TESTS;
    CX_TRY(cx_ahead_tests(&ahead, &faults, err));
    if (faults.count == 0)
        return CX_SUCCESS;
    t->refusal.hint = faults.items[0];
    return cx_task_refuse(t, CX_GATE_TESTS, "command_refused", true, &faults, err);
}
