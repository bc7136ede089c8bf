/*
 * state_start.c - before the first event: which repository, where its runs live, what the
 * contract says, which commit it starts from; and giving all of that back.
 */
#include "crypto/api.h"
#include "contract/api.h"
#include "governor/state_internal.h"

/* --- where ------------------------------------------------------------------------------------ */

static cx_status open_git(cx_governor *g, cx_err *err)
{
    const char *folder = g->options->repo == NULL ? "." : g->options->repo;
    cx_git_options options = CX_GIT_OPTIONS_INIT;
    CX_TRY(cx_git_check_version(NULL, err));
    CX_TRY(cx_git_open(folder, &options, g->alloc, &g->git, err));
    g->repo_root = cx_git_worktree(g->git);
    if (cx_git_is_linked(g->git))
        return cx_fail_at(err, CX_E_USAGE, "LinkedWorktree", CX_NO_OFFSET,
                          "%s is a linked worktree; start runs in the main checkout", g->repo_root);
    return CX_SUCCESS;
}

/* R2: what runs leave after must never be committed by accident. */
static cx_status open_store(cx_governor *g, cx_err *err)
{
    const char *root;
    bool ignored = false;
    CX_TRY(cx_run_store_root(g->repo_root, g->options->runtime_root, g->arena, &root, err));
    g->store.root = root;
    g->ground = cx_run_path_context_of(g->repo_root, root);
    cx_str inside = g->ground.runtime_root;
    if (inside.size != 0) {
        CX_TRY(cx_git_is_ignored(g->git, inside.data, &ignored, err));
        if (!ignored)
            return cx_fail_at(err, CX_E_DENIED, "RuntimeRootNotIgnored", CX_NO_OFFSET,
                              "%s is not ignored by git; 'cortex init' adds it to .gitignore, or "
                              "set " CX_RUN_ROOT_ENV " to a folder outside",
                              inside.data);
    }
    return g->dry ? CX_SUCCESS : cx_run_store_open(&g->store, root, true, g->io, g->alloc, err);
}

/* --- what ------------------------------------------------------------------------------------- */

/* K15: files of the bundle that a contract of the fix loop refers to. */
static cx_status read_artifact(void *arg, cx_str path, size_t limit_bytes, cx_arena *arena,
                               cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    cx_governor *g = arg;
    cx_buf buf;
    *out_kind = CX_BLOB_NONE;
    if (g->run == NULL || !cx_run_file_exists(g->run, path))
        return CX_SUCCESS;
    cx_buf_init(&buf, g->alloc);
    cx_status status = cx_run_file_read(g->run, path, limit_bytes, &buf, err);
    if (status.code == CX_E_LIMIT) {
        *out_kind = CX_BLOB_TOO_BIG;
        status = CX_SUCCESS;
    } else if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&buf));
        if (copy.data == NULL)
            status = cx_fail_nomem(err);
        *out_kind = CX_BLOB_FILE;
        *out = cx_str_bytes(copy);
    }
    cx_buf_done(&buf);
    return status;
}

/* The repository's answers, and the bundle's for artifacts. */
typedef struct governor_repo {
    cx_run_git_repo git;
    cx_run_repo plain;
    cx_governor *governor;
} governor_repo;

static cx_status resolve_baseline(void *arg, cx_str ref, cx_arena *arena, cx_str *out, cx_err *err)
{
    const governor_repo *r = arg;
    return r->plain.resolve(r->plain.arg, ref, arena, out, err);
}

static cx_status is_in_head(void *arg, cx_str commit, bool *out, cx_err *err)
{
    const governor_repo *r = arg;
    return r->plain.in_head(r->plain.arg, commit, out, err);
}

static cx_status read_blob(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                           cx_arena *arena, cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const governor_repo *r = arg;
    return r->plain.read(r->plain.arg, commit, path, limit_bytes, arena, out_kind, out, err);
}

static cx_status list_files(void *arg, cx_str commit, cx_arena *arena, cx_run_tree *out,
                            cx_err *err)
{
    const governor_repo *r = arg;
    return r->plain.list(r->plain.arg, commit, arena, out, err);
}

static cx_status read_input_artifact(void *arg, cx_str path, size_t limit_bytes, cx_arena *arena,
                                     cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const governor_repo *r = arg;
    return read_artifact(r->governor, path, limit_bytes, arena, out_kind, out, err);
}

static cx_status open_repository(cx_governor *g, cx_err *err)
{
    governor_repo *r = CX_ARENA_NEW(g->arena, governor_repo);
    if (r == NULL)
        return cx_fail_nomem(err);
    r->governor = g;
    r->plain = cx_run_git_repo_init(&r->git, g->git, g->arena);
    g->repo =
        (cx_run_repo){r, resolve_baseline, is_in_head, read_blob, list_files, read_input_artifact};
    return CX_SUCCESS;
}

static cx_status store_resolved_contract(cx_governor *g, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, g->alloc);
    cx_status status = cx_run_contract_resolve(&g->contract, &g->policy, g->arena, &text, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        g->contract_text = cx_arena_copy_str(g->arena, cx_buf_str(&text));
        if (g->contract_text.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* A refused contract is kept as it was given: the refusal is evidence. */
static cx_status read_contract(cx_governor *g, cx_err *err)
{
    cx_str given = cx_bytes_str(g->contract_bytes);
    cx_run_findings_init(&g->findings, g->arena);
    CX_TRY(cx_run_contract_check(given, &g->repo, &g->ground, &cx_run_contract_command_checks,
                                 g->arena, &g->findings, &g->contract, &g->policy, err));
    if (g->planner != NULL)
        cx_governor_check_intent(g);
    CX_TRY(cx_run_findings_check(&g->findings, err));
    g->contract_ok = g->findings.refusing == 0;
    /* A refused contract stays as it is: where it only names a commit, none is bound to the run. */
    if (g->contract_ok || cx_str_eq(g->contract.baseline_ref, g->contract.baseline_commit))
        g->baseline = g->contract.baseline_commit;
    if (g->baseline.size != 0 && !cx_oid_parse(g->baseline, &g->baseline_oid))
        return cx_fail(err, CX_E_FORMAT, "git names a commit '%.*s'", (int)g->baseline.size,
                       g->baseline.data);
    g->contract_text = given;
    if (g->contract_ok) {
        CX_TRY(store_resolved_contract(g, err));
        CX_TRY(g->repo.list(g->repo.arg, g->baseline, g->arena, &g->tree, err));
    }
    g->contract_sha256 = cx_digest_of(cx_str_bytes(g->contract_text));
    return CX_SUCCESS;
}

cx_status cx_governor_open(cx_governor *g, cx_err *err)
{
    if (g->options->contract.size > CX_RUN_CONTRACT_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a contract has at most %u bytes",
                       (unsigned)CX_RUN_CONTRACT_BYTES_MAX);
    CX_TRY(open_git(g, err));
    CX_TRY(open_store(g, err));
    CX_TRY(open_repository(g, err));
    g->contract_bytes = g->options->contract;
    if (g->options->intent.size != 0) {
        CX_TRY(cx_governor_plan_intent(g, err));
        if (g->planner->refused)
            return CX_SUCCESS;
    }
    return read_contract(g, err);
}

/* --- the bundle ------------------------------------------------------------------------------- */

/* The contract as run: what the resolved text says is what every gate judges. */
static cx_status decode_resolved(cx_governor *g, cx_err *err)
{
    cx_run_findings findings;
    cx_contract contract;
    cx_run_findings_init(&findings, g->arena);
    cx_status status = cx_run_contract_read(g->contract_text, g->arena, &findings, &contract, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = cx_fail(err, CX_E_FORMAT, "the resolved contract is not valid");
    cx_run_findings_done(&findings);
    CX_TRY(status);
    contract.baseline_commit = g->baseline;
    contract.output_schema_file = g->contract.output_schema_file;
    for (size_t i = 0; i < contract.artifact_count; i++)
        if (g->contract.output_schema != NULL &&
            cx_str_eq(contract.artifacts[i].name, g->contract.output_schema->name))
            contract.output_schema = &contract.artifacts[i];
    g->contract = contract;
    return CX_SUCCESS;
}

static cx_status make_task(cx_governor *g, cx_err *err)
{
    g->task_count = 1;
    if (g->planner != NULL && g->planner->refused) {
        g->tasks = g->planner; /* there is no other */
        return CX_SUCCESS;
    }
    /* With room for parts: a task stays where it is. */
    g->tasks = CX_ARENA_ARRAY(g->arena, cx_governor_task, 1 + CX_RUN_PARTS_MAX);
    g->task_count = g->tasks != NULL;
    if (g->tasks == NULL)
        return cx_fail_nomem(err);
    memset(g->tasks, 0, sizeof *g->tasks);
    cx_governor_task_init(&g->tasks[0], g, g->contract.task_id);
    g->tasks[0].contract = g->contract;
    g->tasks[0].contract_text = g->contract_text;
    g->tasks[0].started_at = g->created_at;
    g->tasks[0].settings = g->runner_settings;
    g->tasks[0].settings.task_id = g->tasks[0].id;
    g->tasks[0].runner_config = g->runner_config;
    return CX_SUCCESS;
}

void cx_governor_task_init(cx_governor_task *t, cx_governor *g, cx_str id)
{
    CX_ASSERT(t != NULL && g != NULL);
    t->governor = g;
    t->id = id;
    cx_arena_init(&t->arena, g->alloc, 0);
    cx_buf_init(&t->agent.transcript, g->alloc);
    cx_buf_init(&t->agent.session, g->alloc);
    cx_agent_objects_init(&t->agent.objects);
}

cx_str cx_governor_now(cx_governor *g, cx_arena *arena)
{
    char text[28];
    cx_run_time_text((int64_t)g->io->wall_ns(g->io), text);
    return cx_arena_copy_str(arena, cx_str_z(text));
}

static cx_status write_first_files(cx_governor *g, cx_err *err)
{
    cx_str trace = cx_run_trace_id(g->run);
    cx_arena *arena = g->arena;
    cx_str own = cx_arena_printf(arena, "tasks/%.*s.json", (int)g->contract.task_id.size,
                                 g->contract.task_id.data);
    cx_str line = cx_arena_printf(arena, "%.*s\n", (int)trace.size, trace.data);
    cx_str base = cx_arena_printf(arena, "%.*s\n", (int)g->baseline.size, g->baseline.data);
    if (own.data == NULL || line.data == NULL || base.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_file_write(g->run, CX_STR("contract.json"), cx_str_bytes(g->contract_text), err));
    CX_TRY(cx_run_file_write(g->run, own, cx_str_bytes(g->contract_text), err));
    CX_TRY(cx_run_file_write(g->run, CX_STR("trace/trace_id.txt"), cx_str_bytes(line), err));
    return cx_run_file_write(g->run, CX_STR("git/baseline_commit.txt"), cx_str_bytes(base), err);
}

static cx_status write_created(cx_governor *g, cx_err *err)
{
    cx_str inside = g->ground.runtime_root;
    cx_json_list payload = cx_json_list_begin(g->arena);
    /* No path of this computer leaves it. */
    cx_json_put_quoted(&payload, "runtime_root", inside.size == 0 ? CX_STR("external") : inside);
    cx_json_put_digest(&payload, "contract_sha256", &g->contract_sha256);
    cx_json_put_quoted(&payload, "baseline_commit", g->baseline);
    return cx_governor_event(g, CX_RUN_INFO, CX_RUN_EVENT_RUN_CREATED, &payload, err);
}

/* §13: the journal knows of a nonce before it is used; what cannot be recorded is not used. */
static cx_status record_nonce(void *arg, const cx_run_approval *approval, bool *out_first,
                              cx_err *err)
{
    cx_governor *g = arg;
    return cx_run_approval_record(g->options->ledger, cx_run_id(g->run), approval, out_first, err);
}

static cx_status open_approvals(cx_governor *g, cx_err *err)
{
    const cx_run_options *options = g->options;
    g->approval_context = (cx_run_approval_context){
        .io = g->io,
        .runtime_root = g->store.root,
        .policy = g->contract_ok ? &g->policy : NULL,
        .run_id = cx_run_id(g->run),
        .contract_sha256 = cx_digest_of(g->contract_bytes),
        .resolved_sha256 = g->contract_sha256,
        .agent_id = g->contract.assigned.agent_id,
        .now_ns = (int64_t)g->io->wall_ns(g->io),
        .record = record_nonce,
        .record_arg = g,
    };
    cx_run_approvals_init(&g->approvals, &g->approval_context, g->arena);
    g->approvals_open = true;
    for (size_t i = 0; i < options->approval_count; i++)
        CX_TRY(cx_run_approvals_add_file(&g->approvals, options->approvals[i], err));
    return CX_SUCCESS;
}

cx_status cx_governor_begin_bundle(cx_governor *g, cx_str task_id, cx_err *err)
{
    CX_TRY(cx_run_mask_init(&g->mask, NULL, g->arena, err));
    g->masking = true;
    cx_run_begin_options begin = {.store = &g->store,
                                  .task_id = task_id,
                                  .ledger = g->options->ledger,
                                  .mask = cx_run_mask_json,
                                  .mask_arg = &g->mask};
    CX_TRY(cx_run_begin(&begin, &g->run, err));
    g->created_at = cx_governor_now(g, g->arena);
    return g->created_at.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_governor_begin(cx_governor *g, cx_err *err)
{
    if (!cx_run_task_id_ok(g->contract.task_id))
        return CX_SUCCESS; /* nothing to name a bundle by: the outcome alone says why */
    if (g->contract_ok) {
        CX_TRY(decode_resolved(g, err));
        CX_TRY(cx_governor_choose_runner(g, err));
        cx_governor_begin_trial(g);
    }
    if (g->run == NULL)
        CX_TRY(cx_governor_begin_bundle(g, g->contract.task_id, err));
    CX_TRY(write_first_files(g, err));
    CX_TRY(make_task(g, err));
    CX_TRY(open_approvals(g, err));
    CX_TRY(write_created(g, err));
    return g->planner == NULL ? CX_SUCCESS : cx_governor_record_intent(g, err);
}

/* --- giving back ------------------------------------------------------------------------------ */

static void close_task(cx_governor_task *t)
{
    cx_task_stop_runner(t);
    cx_task_release_silently(t);
    cx_snapshot_close(t->workspace.snapshot);
    cx_agent_objects_done(&t->agent.objects);
    if (t->candidate.has_diff)
        cx_diff_report_done(&t->candidate.diff);
    cx_vec_done(&t->reports.artifacts, t->governor->alloc);
    cx_buf_done(&t->agent.transcript);
    cx_buf_done(&t->agent.session);
    cx_arena_done(&t->arena);
}

void cx_governor_close(cx_governor *g)
{
    for (size_t i = g->task_count; i-- > 0;) /* parts borrow from the task they are of */
        close_task(&g->tasks[i]);
    if (g->planner != NULL && g->planner != g->tasks)
        close_task(g->planner);
    if (g->locks_renewed)
        cx_run_lock_renewer_stop(&g->keeper);
    if (g->approvals_open)
        cx_run_approvals_done(&g->approvals);
    if (g->masking)
        cx_run_mask_done(&g->mask);
    cx_governor_end_trial(g);
    cx_sandbox_close(g->sandbox);
    cx_run_end(g->run);
    cx_run_findings_done(&g->findings);
    cx_git_close(g->git);
}
