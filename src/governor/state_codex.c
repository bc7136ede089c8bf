/*
 * state_codex.c - the settings folder that an agent of a run gets: one for each row of the
 * registry, aside of what agents may write, gone when the task ends (codex_home.h).
 */
#include "os/api.h"
#include "agent/api.h"
#include "governor/state_internal.h"
#include "git/api.h"

/* The last component of the row's codex_home, else the agent's id. */
static cx_str name_of(const cx_run_agent *row, cx_str agent_id, cx_arena *arena)
{
    cx_str path = row == NULL ? CX_STR("") : row->codex_home;
    while (path.size != 0 && path.data[path.size - 1] == '/')
        path.size--;
    size_t from = path.size;
    while (from != 0 && path.data[from - 1] != '/')
        from--;
    cx_str name = {path.data + from, path.size - from};
    return cx_run_ref_component(name.size == 0 || name.size > 80 ? agent_id : name, arena);
}

const char *cx_codex_home_of(const char *env)
{
    return strchr(env, '=') + 1;
}

cx_status cx_task_codex_home(cx_governor_task *t, const cx_run_agent *row, cx_str agent_id,
                             const char **out_env, cx_json *out_evidence, cx_err *err)
{
    const char *base = t->governor->options->codex_base_home;
    cx_json made;
    *out_env = NULL;
    if (base == NULL || base[0] == '\0')
        return CX_SUCCESS;
    cx_str name = name_of(row, agent_id, &t->arena);
    cx_str env = cx_arena_printf(&t->arena, "CODEX_HOME=%s/codex/%s", t->workspace.private_folder,
                                 name.data);
    if (name.data == NULL || env.data == NULL)
        return cx_fail_nomem(err);
    const char *folder = cx_codex_home_of(env.data);
    CX_TRY(cx_path_remove_tree(folder, err)); /* of the attempt before */
    CX_TRY(cx_codex_home_make(base, folder, &t->governor->mask, &t->arena, &made, err));
    cx_json_list evidence = cx_json_list_begin(&t->arena);
    cx_json_put_quoted(&evidence, "name", name);
    for (uint32_t i = 0; i < made.count; i++)
        cx_json_list_put(&evidence, cx_json_text(&made.members[i].name), made.members[i].value);
    CX_TRY(cx_json_list_end_object(&evidence, out_evidence, err));
    *out_env = env.data;
    return CX_SUCCESS;
}

cx_status cx_task_worker_codex_home(cx_governor_task *t, cx_err *err)
{
    const cx_contract_agent *agent = &t->contract.assigned;
    t->gate = CX_GATE_RUNNER;
    if (t->agent.runner->argv_count == 0) /* a script: no program reads settings */
        return CX_SUCCESS;
    const cx_run_agent *row =
        cx_run_policy_agent(&t->governor->policy, agent->role_name, agent->agent_id);
    return cx_task_codex_home(t, row, agent->agent_id, &t->agent.spec_env[0], &t->agent.codex_home,
                              err);
}
