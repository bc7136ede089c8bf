/*
 * state_enter.c - what a task needs before its agent starts: a worktree of its own, a snapshot of
 * it, its locks, the gates of §13, its sandbox and its runner (run.md §11, §13).
 */
#include "os/api.h"
#include "candidate/api.h"
#include "governor/state_internal.h"
#include "rules/api.h"

#define ACTIVE "active/runs"

/* --- worktree --------------------------------------------------------------------------------- */

static cx_status add_worktree(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    t->gate = CX_GATE_WORKTREE;
    t->workspace.options = (cx_worktree_options){.runtime_root = g->store.root,
                                                 .run_id = cx_run_id(g->run),
                                                 .task_id = t->id,
                                                 .commit = g->baseline_oid};
    CX_TRY(
        cx_run_worktree_add(g->git, &t->workspace.options, &t->arena, &t->workspace.worktree, err));
    t->workspace.has_worktree = true;
    t->workspace.ref = cx_str_z(t->workspace.worktree.relative);
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_z(&payload, "mode", "P1");
    cx_json_put_quoted(&payload, "path", t->workspace.ref);
    cx_json_put_quoted(&payload, "baseline_commit", g->baseline);
    CX_TRY(cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_WORKTREE_CREATED, &payload, err));
    return cx_snapshot_read(t->workspace.worktree.git, NULL, &t->workspace.snapshot, err);
}

/* --- locks ------------------------------------------------------------------------------------ */

static cx_status write_reclaimed(cx_governor_task *t, const cx_run_lock_result *result, cx_err *err)
{
    for (size_t i = 0; i < result->reclaimed_count; i++) {
        cx_json_list payload = cx_json_list_begin(&t->arena);
        cx_json_put_quoted(&payload, "path", result->reclaimed[i].path);
        cx_json_put_z(&payload, "reason", cx_run_lock_reason_name(result->reclaimed_why[i]));
        cx_json_list_put(&payload, CX_STR("lock"), result->reclaimed[i].content);
        CX_TRY(cx_task_event(t, CX_RUN_WARN, CX_RUN_EVENT_LOCK_RECLAIMED, &payload, err));
    }
    return CX_SUCCESS;
}

static cx_status write_lock_refusal(cx_governor_task *t, const cx_run_lock_result *result,
                                    cx_err *err)
{
    cx_json_list payload = cx_json_list_begin(&t->arena);
    bool invalid = result->invalid_count != 0;
    size_t count = invalid ? result->invalid_count : result->conflict_count;
    cx_str *items = CX_ARENA_ARRAY(&t->arena, cx_str, count + 1);
    if (items == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const cx_run_lock *other = invalid ? NULL : &result->conflicts[i];
        items[i] = invalid ? result->invalid[i]
                           : cx_arena_printf(&t->arena, "%.*s held by %.*s", (int)other->path.size,
                                             other->path.data, (int)other->run_id.size,
                                             other->run_id.data);
        if (items[i].data == NULL)
            return cx_fail_nomem(err);
    }
    cx_texts texts = {items, count};
    const char *reason = invalid ? "invalid_path" : "path_locked";
    cx_json_put_z(&payload, "reason", reason);
    cx_json_put_quoted_strs(&payload, "conflicts", items, count);
    CX_TRY(cx_task_event(t, CX_RUN_ERROR, CX_RUN_EVENT_LOCK_FAILED, &payload, err));
    return cx_task_refuse(t, CX_GATE_LOCK, reason, false, &texts, err);
}

/* The same locks, where other machines see them.  Refused there, they are let go of here. */
static cx_status acquire_shared_locks(cx_governor_task *t, const cx_run_lock_request *request,
                                      cx_err *err)
{
    const cx_run_shared_locks *shared = t->governor->options->shared_locks;
    cx_run_lock_result result;
    if (shared == NULL)
        return CX_SUCCESS;
    CX_TRY(shared->acquire(shared->ctx, request, &t->arena, &result, err));
    CX_TRY(write_reclaimed(t, &result, err));
    return result.ok ? CX_SUCCESS : write_lock_refusal(t, &result, err);
}

static cx_status release_files(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str *paths;
    size_t count;
    cx_run_lock_renewer_expect_fewer(&g->keeper, t->workspace.lock_count);
    t->workspace.lock_count = 0;
    t->workspace.has_locks = false;
    return cx_run_lock_release(&g->store, cx_run_id(g->run), t->id, &t->arena, &paths, &count, err);
}

static cx_status acquire_locks(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_run_lock_result result;
    uint64_t ttl = g->policy.config.limits.lock_ttl_sec;
    cx_str_list paths = t->contract.allowed_paths;
    t->gate = CX_GATE_LOCK;
    if (t->plans) /* its parts lock what is theirs */
        return CX_SUCCESS;
    cx_run_lock_request request = {.run_id = cx_run_id(g->run),
                                   .task_id = t->id,
                                   .paths = paths.items,
                                   .path_count = paths.count,
                                   .ttl_sec = ttl,
                                   .contract_sha256 = &g->contract_sha256,
                                   .shares_in_run = t->part};
    CX_TRY(cx_run_lock_acquire(&g->store, &request, &t->arena, &result, err));
    CX_TRY(write_reclaimed(t, &result, err));
    if (!result.ok)
        return write_lock_refusal(t, &result, err);
    t->workspace.has_locks = true;
    if (!g->locks_renewed) {
        CX_TRY(cx_run_lock_renewer_start(&g->keeper, &g->store, cx_run_id(g->run), 0, ttl, err));
        g->locks_renewed = true;
    }
    t->workspace.lock_count = result.taken_count - result.passed_count;
    cx_run_lock_renewer_expect_more(&g->keeper, t->workspace.lock_count);
    CX_TRY(acquire_shared_locks(t, &request, err));
    if (t->refused)
        return release_files(t, err);
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted_strs(&payload, "paths", paths.items, paths.count);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_LOCK_ACQUIRED, &payload, err);
}

/* --- runner ----------------------------------------------------------------------------------- */

static cx_status open_runner(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_ahead ahead = cx_task_ahead(t);
    const char *reason;
    cx_texts violations;
    t->gate = CX_GATE_RUNNER;
    CX_TRY(cx_ahead_runner(&ahead, &reason, &violations, err));
    if (reason != NULL) {
        t->refusal.hint = violations.items[0];
        return cx_task_refuse(t, CX_GATE_RUNNER, reason, false, &violations, err);
    }
    return cx_runner_open(&t->settings, g->alloc, g->io, &t->agent.runner, err);
}

static cx_status write_runner_selected(cx_governor_task *t, cx_err *err)
{
    const cx_runner_settings *settings = &t->settings;
    cx_json_list payload = cx_json_list_begin(&t->arena);
    cx_json_put_quoted(&payload, "runner", settings->name);
    if (settings->profile.size != 0)
        cx_json_put_quoted(&payload, "profile", settings->profile);
    if (cx_governor_is_diagnostic(t->governor))
        cx_json_put_bool(&payload, "diagnostic", true);
    if (t->agent.spec_env[0] != NULL)
        cx_json_list_put(&payload, CX_STR("codex_home"), t->agent.codex_home);
    return cx_task_event(t, CX_RUN_INFO, CX_RUN_EVENT_RUNNER_SELECTED, &payload, err);
}

/* --- scratch ---------------------------------------------------------------------------------- */

/* The bytes of the bound schema (§6), as K04 has found them. */
static cx_status read_schema(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_run_findings findings;
    cx_bytes bytes = {NULL, 0};
    if (t->contract.output_schema == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "the contract binds no output schema");
    cx_run_findings_init(&findings, &t->arena);
    cx_status status = cx_run_contract_artifact(&t->contract, t->contract.output_schema,
                                                CX_STR("/inputs/artifacts"), &g->repo, &t->arena,
                                                &findings, &bytes, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = cx_fail(err, CX_E_DENIED, "the bound output schema is not what the contract says");
    cx_run_findings_done(&findings);
    t->agent.schema = cx_bytes_str(bytes);
    return status;
}

static cx_status make_scratch(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str run = cx_run_id(g->run), id = cx_run_ref_component(t->id, &t->arena);
    cx_str folder = cx_arena_printf(&t->arena, "%s/" ACTIVE "/%.*s/scratch/%.*s", g->store.root,
                                    (int)run.size, run.data, (int)id.size, id.data);
    cx_str schema = cx_arena_printf(&t->arena, "%s/output_schema.json", folder.data);
    if (id.data == NULL || folder.data == NULL || schema.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(read_schema(t, err));
    CX_TRY(cx_path_make_folders(folder.data, err));
    CX_TRY(cx_run_write_file(g->io, schema.data, cx_str_bytes(t->agent.schema), err));
    cx_str aside = cx_arena_printf(&t->arena, "%s/" ACTIVE "/%.*s/aside/%.*s", g->store.root,
                                   (int)run.size, run.data, (int)id.size, id.data);
    if (aside.data == NULL)
        return cx_fail_nomem(err);
    t->workspace.scratch = folder.data;
    t->workspace.private_folder = aside.data;
    t->agent.schema_path = schema.data;
    return CX_SUCCESS;
}

/* --- sandbox ---------------------------------------------------------------------------------- */

/* <common>/refs/heads/cortex/<run>: the folder of the task's branch. */
static cx_status ref_folder(cx_governor_task *t, const char **out, cx_err *err)
{
    cx_str branch = t->workspace.worktree.branch;
    size_t size = branch.size;
    while (size != 0 && branch.data[size - 1] != '/')
        size--;
    *out = NULL;
    if (size == 0)
        return CX_SUCCESS;
    cx_str path =
        cx_arena_printf(&t->arena, "%s/%.*s", cx_git_common_dir(t->workspace.worktree.git),
                        (int)(size - 1), branch.data);
    *out = path.data;
    return path.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

const cx_agent_git *cx_task_agent_git(const cx_governor_task *t)
{
    return t->agent.git.git_dir == NULL ? NULL : &t->agent.git;
}

/* An agent without a sandbox writes in the repository itself; only its objects are apart. */
static cx_status show_repository(cx_governor_task *t, cx_err *err)
{
    cx_str objects = cx_arena_printf(&t->arena, "%s/objects", t->workspace.scratch);
    if (objects.data == NULL)
        return cx_fail_nomem(err);
    t->agent.spec_git.object_dir = objects.data;
    return cx_path_make_folders(objects.data, err);
}

/*
 * Git in the sandbox: the repository is read-only, and where the agent must write lie copies of its
 * own.  Without mounts a copy cannot lie over another place: then git can look, and change nothing.
 */
static cx_status make_git_view(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    /* The spec outlives the worktree: meta.json names its environment. */
    cx_str common =
        cx_arena_copy_str(&t->arena, cx_str_z(cx_git_common_dir(t->workspace.worktree.git)));
    cx_str own = cx_arena_copy_str(&t->arena, cx_str_z(cx_git_dir(t->workspace.worktree.git)));
    if (common.data == NULL || own.data == NULL)
        return cx_fail_nomem(err);
    t->agent.spec_git = (cx_sandbox_git){.common_dir = common.data, .git_dir = own.data};
    CX_TRY(cx_git_public_config(g->git, &t->arena, &t->agent.spec_git.config, err));
    if (t->agent.spec.read_only)
        return CX_SUCCESS;
    if (g->unconfined)
        return show_repository(t, err);
    if (g->sandbox == NULL || (g->sandbox->layers & CX_SANDBOX_FILES) == 0)
        return CX_SUCCESS;
    /* The branches of all parts of a run lie in one folder: none of them may write there. */
    CX_TRY(cx_agent_git_make(&t->workspace.worktree, t->workspace.private_folder,
                             t->workspace.scratch, t->plans || t->part, &t->arena, &t->agent.git,
                             err));
    t->agent.spec_git.git_dir_copy = t->agent.git.git_dir;
    t->agent.spec_git.object_dir = t->agent.git.object_dir;
    t->agent.spec_git.ref_dir_copy = t->agent.git.ref_dir;
    if (t->agent.git.ref_dir != NULL) {
        CX_TRY(ref_folder(t, &t->agent.spec_git.ref_dir, err));
        CX_TRY(cx_path_make_folders(t->agent.spec_git.ref_dir, err)); /* packed, it has no folder */
    }
    return CX_SUCCESS;
}

/* What the agent's processes may see and do; the tests have a spec of their own. */
static cx_status make_sandbox_spec(cx_governor_task *t, cx_err *err)
{
    cx_governor *g = t->governor;
    cx_str run = cx_arena_copy_str(&t->arena, cx_run_id(g->run));
    cx_str id = cx_arena_copy_str(&t->arena, t->id);
    if (run.data == NULL || id.data == NULL)
        return cx_fail_nomem(err);
    t->agent.spec_binds[0] = (cx_sandbox_bind){t->workspace.scratch, true};
    t->agent.spec = CX_SANDBOX_SPEC_INIT;
    t->agent.spec.worktree = t->workspace.worktree.path;
    t->agent.spec.read_only = t->plans || t->contract.filesystem == CX_FS_READ_ONLY;
    t->agent.spec.cwd = t->workspace.worktree.path;
    t->agent.spec.binds = t->agent.spec_binds;
    t->agent.spec.bind_count = 1;
    if (t->agent.spec_env[0] != NULL)
        t->agent.spec_binds[t->agent.spec.bind_count++] =
            (cx_sandbox_bind){cx_codex_home_of(t->agent.spec_env[0]), true};
    t->agent.spec.git = &t->agent.spec_git;
    t->agent.spec.network = t->agent.network_on;
    t->agent.spec.env = t->agent.spec_env;
    t->agent.spec.run_id = run.data;
    t->agent.spec.task_id = id.data;
    t->agent.spec.may_miss = g->degraded ? g->sandbox->missing : 0;
    t->agent.spec.unconfined = g->unconfined;
    t->agent.spec.cancel = g->options->cancel;
    return make_git_view(t, err);
}

cx_status cx_task_enter(cx_governor_task *t, cx_err *err)
{
#define STEP(name) name,
    static cx_governor_step *const steps[] = {add_worktree,
                                              acquire_locks,
                                              make_scratch,
                                              open_runner,
                                              CX_ENTRY_GATES(STEP) cx_task_worker_codex_home,
                                              make_sandbox_spec,
                                              cx_task_open_egress,
                                              write_runner_selected,
                                              CX_COMMAND_GATES(STEP)};
#undef STEP
    for (size_t i = 0; i < CX_COUNT_OF(steps); i++) {
        CX_TRY(steps[i](t, err));
        if (t->refused)
            return CX_SUCCESS;
    }
    return CX_SUCCESS;
}
