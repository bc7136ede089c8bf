/*
 * state_runner.c - which runner serves a run, and talking with it: what it is given, what it may
 * ask, what is kept of the session.
 */
#include "governor/state_internal.h"

/* --- which one -------------------------------------------------------------------------------- */

static const char *kind_name(cx_run_runner_kind kind)
{
    return kind == CX_RUNNER_MCP ? CX_RUNNER_NAME_MCP : CX_RUNNER_NAME_EXEC;
}

/* The default runner when it is of that kind, else the first that is. */
static const cx_run_runner_config *of_kind(const cx_run_config *config, cx_run_runner_kind kind)
{
    const cx_run_runner_config *usual = cx_run_config_runner(config, config->default_runner);
    if (usual != NULL && usual->kind == kind)
        return usual;
    for (size_t i = 0; i < config->runner_count; i++)
        if (config->runners[i].kind == kind)
            return &config->runners[i];
    return NULL;
}

/* A configured name, else a kind. */
static const cx_run_runner_config *find_named(const cx_run_config *config, cx_str name)
{
    const cx_run_runner_config *found = cx_run_config_runner(config, name);
    if (found == NULL && cx_str_is(name, CX_RUNNER_NAME_MCP))
        found = of_kind(config, CX_RUNNER_MCP);
    if (found == NULL && cx_str_is(name, CX_RUNNER_NAME_EXEC))
        found = of_kind(config, CX_RUNNER_EXEC);
    return found;
}

void cx_governor_settings_from(const cx_governor *g, const cx_run_runner_config *config,
                               cx_runner_settings *out)
{
    CX_ASSERT(g != NULL && out != NULL);
    *out = (cx_runner_settings){
        .name = cx_str_z(kind_name(config->kind)),
        .profile = config->name,
        .argv = config->argv.items,
        .argv_count = config->argv.count,
        .env = config->env.items,
        .env_count = config->env.count,
        .model = config->model,
        .provider = g->contract.provider,
        .config = config->sent,
        .network = config->needs_network,
        .connect_ms = config->connect_sec * 1000,
        .close_ms = config->close_sec * 1000,
    };
}

/* A script that is not there is a mistake of the call, not of the run. */
static cx_status find_script(const cx_governor *g, cx_err *err)
{
    cx_file file;
    const char *path = g->options->script;
    int failed = g->io->open(g->io, path, CX_IO_READ, &file);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot open %s", path);
    (void)g->io->close(g->io, file);
    return CX_SUCCESS;
}

static cx_str wanted_name(const cx_governor *g)
{
    const cx_run_config *config = &g->policy.config;
    cx_str by_role = config->role_runners[g->contract.assigned.role];
    if (g->options->runner != NULL)
        return cx_str_z(g->options->runner);
    if (g->contract.runner.size != 0)
        return g->contract.runner;
    return by_role.size != 0 ? by_role : config->default_runner;
}

cx_status cx_governor_choose_runner(cx_governor *g, cx_err *err)
{
    const cx_run_options *options = g->options;
    bool script = options->runner == NULL ? options->script != NULL
                                          : strcmp(options->runner, CX_RUNNER_NAME_SCRIPT) == 0;
    if (script) {
        if (options->script == NULL)
            return cx_fail(err, CX_E_USAGE, "runner replay-script: expected --script FILE");
        g->runner_settings =
            (cx_runner_settings){.name = CX_STR(CX_RUNNER_NAME_SCRIPT), .script = options->script};
        return find_script(g, err);
    }
    cx_str name = wanted_name(g);
    if (options->script != NULL)
        return cx_fail(err, CX_E_USAGE, "option --script: only for the runner replay-script");
    g->runner_config = find_named(&g->policy.config, name);
    if (g->runner_config == NULL && cx_agent_preset_find(name) != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "agent '%.*s' is built in, but policies/cortex.json of the baseline does "
                       "not pin its program: run 'cortex runner add %.*s' and commit the file",
                       (int)name.size, name.data, (int)name.size, name.data);
    if (g->runner_config == NULL && options->runner != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "runner '%s' is not in policies/cortex.json of the baseline; add it to "
                       "`runners`, or use --runner replay-script",
                       options->runner);
    if (g->runner_config == NULL)
        g->runner_settings = (cx_runner_settings){.profile = name};
    else
        cx_governor_settings_from(g, g->runner_config, &g->runner_settings);
    return CX_SUCCESS;
}

void cx_task_choose_runner(cx_governor_task *t)
{
    const cx_governor *g = t->governor;
    const cx_run_config *config = &g->policy.config;
    cx_str by_role = config->role_runners[t->contract.assigned.role];
    cx_str name = t->contract.runner.size != 0 ? t->contract.runner
                  : by_role.size != 0          ? by_role
                                               : config->default_runner;
    t->settings = g->runner_settings;
    t->runner_config = g->runner_config;
    if (g->options->runner == NULL && g->options->script == NULL) {
        t->runner_config = find_named(config, name);
        t->settings = (cx_runner_settings){.profile = name};
        if (t->runner_config != NULL)
            cx_governor_settings_from(g, t->runner_config, &t->settings);
        t->settings.provider = t->contract.provider;
    }
    t->settings.task_id = t->id;
}

/* Decision 0018: exec next to mcp_only is a diagnosis, and never merges. */
bool cx_governor_is_diagnostic(const cx_governor *g)
{
    bool exec = cx_str_is(g->runner_settings.name, CX_RUNNER_NAME_EXEC);
    for (size_t i = 0; i < g->task_count && !exec; i++)
        exec = cx_str_is(g->tasks[i].settings.name, CX_RUNNER_NAME_EXEC);
    return g->planner_diagnostic || (g->options->diagnostic && exec);
}

/* --- what a runner may ask -------------------------------------------------------------------- */

static cx_status on_tool_call(void *arg, const cx_json *payload, cx_err *err)
{
    cx_governor_task *t = arg;
    cx_governor_enter(t->governor);
    cx_status status =
        cx_task_event_json(t, CX_RUN_INFO, CX_RUN_EVENT_TOOL_INVOCATION, payload, err);
    cx_governor_leave(t->governor);
    return status;
}

static cx_status write_request_event(cx_governor_task *t, const cx_runner_request *request,
                                     bool granted, cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "tool", "approval_request");
    cx_json_put_quoted(&payload, "kind", request->kind);
    if (request->command.size != 0)
        cx_json_put_quoted(&payload, "command", request->command);
    cx_json_put_bool(&payload, "granted", granted);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_TOOL_INVOCATION, &payload, err);
}

/* §5: deny - a violation; never - denied; on-request, untrusted - the approval flow. */
static cx_status check_requested_command(cx_governor_task *t, const cx_runner_request *request,
                                         bool *out_granted, cx_err *err)
{
    cx_str scope = cx_str_is(request->kind, "sampling")
                       ? CX_STR("sampling")
                       : cx_arena_printf(&t->arena, "permission:shell=%s",
                                         cx_run_shell_name(t->contract.shell));
    cx_texts scopes = {&scope, 1};
    *out_granted = false;
    if (scope.data == NULL)
        return cx_fail_nomem(err);
    if (cx_str_is(request->kind, "sampling")) {
        *out_granted = cx_governor_scope_granted(t->governor, scope);
        return write_request_event(t, request, *out_granted, err);
    }
    if (t->contract.shell == CX_SHELL_DENY || t->contract.shell == CX_SHELL_UNKNOWN) {
        CX_TRY(write_request_event(t, request, false, err));
        return cx_fail_at(err, CX_E_DENIED, "ShellDenied", CX_NO_OFFSET,
                          "the agent asked to run a command; tool_permissions.shell is deny");
    }
    if (t->contract.shell != CX_SHELL_NEVER) {
        *out_granted = cx_governor_scope_granted(t->governor, scope);
        if (!*out_granted)
            CX_TRY(cx_task_ask_approval(t, &scopes, out_granted, err));
    }
    return write_request_event(t, request, *out_granted, err);
}

static cx_status on_approval_request(void *arg, const cx_runner_request *request, bool *out_granted,
                                     cx_err *err)
{
    cx_governor_task *t = arg;
    cx_governor_enter(t->governor);
    cx_status status = check_requested_command(t, request, out_granted, err);
    cx_governor_leave(t->governor);
    return status;
}

/* Of the task alone, and so without the lock. */
static cx_status on_raw_output(void *arg, cx_bytes line, cx_err *err)
{
    cx_governor_task *t = arg;
    if (t->agent.session.size + line.size > CX_RUN_OUTPUT_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "the session is longer than %llu bytes",
                       (unsigned long long)CX_RUN_OUTPUT_BYTES_MAX);
    cx_buf_add(&t->agent.session, line.data, line.size);
    cx_buf_add_byte(&t->agent.session, '\n');
    return cx_buf_check(&t->agent.session, err);
}

cx_runner_host cx_task_host(cx_governor_task *t)
{
    return (cx_runner_host){t, on_tool_call, on_approval_request, on_raw_output,
                            cx_task_add_transcript};
}

void cx_task_stop_runner(cx_governor_task *t)
{
    if (t->agent.runner != NULL)
        t->agent.runner->stop(t->agent.runner);
    t->agent.runner = NULL;
}
