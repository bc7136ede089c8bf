/*
 * machine_start.c - before the first event: which repository, where its runs live, what the
 * contract says, which commit it starts from; and giving all of that back.
 */
#include "crypto/api.h"
#include "contract/api.h"
#include "governor/state_internal.h"

#define GIT_VERSION_MIN 23800 /* §9: merge-tree --write-tree */

/* --- where ------------------------------------------------------------------------------------ */

static cx_status open_git(cx_governor *m, cx_err *err)
{
    const char *folder = m->options->repo == NULL ? "." : m->options->repo;
    cx_git_options options = CX_GIT_OPTIONS_INIT;
    unsigned version;
    CX_TRY(cx_git_version(NULL, &version, err));
    if (version < GIT_VERSION_MIN)
        return cx_fail(err, CX_E_UNSUPPORTED, "git %u.%u is too old: 2.38 or newer is needed",
                       version / 10000, version / 100 % 100);
    CX_TRY(cx_git_open(folder, &options, m->alloc, &m->git, err));
    m->repo_root = cx_git_worktree(m->git);
    if (cx_git_is_linked(m->git))
        return cx_fail_at(err, CX_E_USAGE, "LinkedWorktree", CX_NO_OFFSET,
                          "%s is a linked worktree; start runs in the main checkout", m->repo_root);
    return CX_SUCCESS;
}

/* R2: what runs leave behind must never be committed by accident. */
static cx_status open_store(cx_governor *m, cx_err *err)
{
    const char *root;
    bool ignored = false;
    CX_TRY(cx_run_store_root(m->repo_root, m->options->runtime_root, m->arena, &root, err));
    m->store.root = root;
    m->ground = cx_run_ground_of(m->repo_root, root);
    cx_str inside = m->ground.runtime_root;
    if (inside.size != 0) {
        CX_TRY(cx_git_is_ignored(m->git, inside.data, &ignored, err));
        if (!ignored)
            return cx_fail_at(err, CX_E_DENIED, "RuntimeRootNotIgnored", CX_NO_OFFSET,
                              "%s is not ignored by git; 'cortex init' adds it to .gitignore, or "
                              "set " CX_RUN_ROOT_ENV " to a folder outside",
                              inside.data);
    }
    return m->dry ? CX_SUCCESS : cx_run_store_open(&m->store, root, true, m->io, m->alloc, err);
}

/* --- what ------------------------------------------------------------------------------------- */

/* K15: files of the bundle that a contract of the fix loop refers to. */
static cx_status read_artifact(void *arg, cx_str path, size_t limit_bytes, cx_arena *arena,
                               cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    cx_governor *m = arg;
    cx_buf buf;
    *out_kind = CX_BLOB_NONE;
    if (m->run == NULL || !cx_run_file_exists(m->run, path))
        return CX_SUCCESS;
    cx_buf_init(&buf, m->alloc);
    cx_status status = cx_run_file_read(m->run, path, limit_bytes, &buf, err);
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
typedef struct machine_repo {
    cx_run_git_repo git;
    cx_run_repo plain;
    cx_governor *m;
} machine_repo;

static cx_status resolve_baseline(void *arg, cx_str ref, cx_arena *arena, cx_str *out, cx_err *err)
{
    const machine_repo *r = arg;
    return r->plain.resolve(r->plain.arg, ref, arena, out, err);
}

static cx_status is_in_head(void *arg, cx_str commit, bool *out, cx_err *err)
{
    const machine_repo *r = arg;
    return r->plain.in_head(r->plain.arg, commit, out, err);
}

static cx_status read_blob(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                           cx_arena *arena, cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const machine_repo *r = arg;
    return r->plain.read(r->plain.arg, commit, path, limit_bytes, arena, out_kind, out, err);
}

static cx_status list_files(void *arg, cx_str commit, cx_arena *arena, cx_run_tree *out,
                            cx_err *err)
{
    const machine_repo *r = arg;
    return r->plain.list(r->plain.arg, commit, arena, out, err);
}

static cx_status read_input_artifact(void *arg, cx_str path, size_t limit_bytes, cx_arena *arena,
                                     cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const machine_repo *r = arg;
    return read_artifact(r->m, path, limit_bytes, arena, out_kind, out, err);
}

static cx_status open_repository(cx_governor *m, cx_err *err)
{
    machine_repo *r = CX_ARENA_NEW(m->arena, machine_repo);
    if (r == NULL)
        return cx_fail_nomem(err);
    r->m = m;
    r->plain = cx_run_git_repo_init(&r->git, m->git, m->arena);
    m->repo =
        (cx_run_repo){r, resolve_baseline, is_in_head, read_blob, list_files, read_input_artifact};
    return CX_SUCCESS;
}

static cx_status store_resolved_contract(cx_governor *m, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, m->alloc);
    cx_status status = cx_run_contract_resolve(&m->contract, &m->policy, m->arena, &text, err);
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status)) {
        m->contract_text = cx_arena_copy_str(m->arena, cx_buf_str(&text));
        if (m->contract_text.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

/* A refused contract is kept as it was given: the refusal is evidence. */
static cx_status read_contract(cx_governor *m, cx_err *err)
{
    cx_str given = cx_bytes_str(m->given);
    cx_run_findings_init(&m->findings, m->arena);
    CX_TRY(cx_run_contract_check(given, &m->repo, &m->ground, &cx_run_contract_judges, m->arena,
                                 &m->findings, &m->contract, &m->policy, err));
    if (m->pm != NULL)
        cx_governor_check_intent(m);
    CX_TRY(cx_run_findings_check(&m->findings, err));
    m->contract_ok = m->findings.refusing == 0;
    /* A refused contract stays as it is: where it only names a commit, none is bound to the run. */
    if (m->contract_ok || cx_str_eq(m->contract.baseline_ref, m->contract.baseline_commit))
        m->baseline = m->contract.baseline_commit;
    if (m->baseline.size != 0 && !cx_oid_parse(m->baseline, &m->baseline_oid))
        return cx_fail(err, CX_E_FORMAT, "git names a commit '%.*s'", (int)m->baseline.size,
                       m->baseline.data);
    m->contract_text = given;
    if (m->contract_ok) {
        CX_TRY(store_resolved_contract(m, err));
        CX_TRY(m->repo.list(m->repo.arg, m->baseline, m->arena, &m->tree, err));
    }
    m->contract_sha256 = cx_digest_of(cx_str_bytes(m->contract_text));
    return CX_SUCCESS;
}

cx_status cx_governor_open(cx_governor *m, cx_err *err)
{
    if (m->options->contract.size > CX_RUN_CONTRACT_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a contract has at most %u bytes",
                       (unsigned)CX_RUN_CONTRACT_BYTES_MAX);
    CX_TRY(open_git(m, err));
    CX_TRY(open_store(m, err));
    CX_TRY(open_repository(m, err));
    m->given = m->options->contract;
    if (m->options->intent.size != 0) {
        CX_TRY(cx_governor_plan_intent(m, err));
        if (m->pm->refused)
            return CX_SUCCESS;
    }
    return read_contract(m, err);
}

/* --- the bundle ------------------------------------------------------------------------------- */

/* The contract as run: what the resolved text says is what every gate judges. */
static cx_status decode_resolved(cx_governor *m, cx_err *err)
{
    cx_run_findings findings;
    cx_contract contract;
    cx_run_findings_init(&findings, m->arena);
    cx_status status = cx_run_contract_read(m->contract_text, m->arena, &findings, &contract, err);
    if (!cx_failed(status) && findings.refusing != 0)
        status = cx_fail(err, CX_E_FORMAT, "the resolved contract is not valid");
    cx_run_findings_done(&findings);
    CX_TRY(status);
    contract.baseline_commit = m->baseline;
    contract.output_schema_file = m->contract.output_schema_file;
    for (size_t i = 0; i < contract.artifact_count; i++)
        if (m->contract.output_schema != NULL &&
            cx_str_eq(contract.artifacts[i].name, m->contract.output_schema->name))
            contract.output_schema = &contract.artifacts[i];
    m->contract = contract;
    return CX_SUCCESS;
}

static cx_status make_task(cx_governor *m, cx_err *err)
{
    m->task_count = 1;
    if (m->pm != NULL && m->pm->refused) {
        m->tasks = m->pm; /* there is no other */
        return CX_SUCCESS;
    }
    /* With room for parts: a task stays where it is. */
    m->tasks = CX_ARENA_ARRAY(m->arena, cx_governor_task, 1 + CX_RUN_PARTS_MAX);
    m->task_count = m->tasks != NULL;
    if (m->tasks == NULL)
        return cx_fail_nomem(err);
    memset(m->tasks, 0, sizeof *m->tasks);
    cx_governor_task_init(&m->tasks[0], m, m->contract.task_id);
    m->tasks[0].contract = m->contract;
    m->tasks[0].contract_text = m->contract_text;
    m->tasks[0].started_at = m->created_at;
    m->tasks[0].settings = m->runner_settings;
    m->tasks[0].settings.task_id = m->tasks[0].id;
    m->tasks[0].runner_config = m->runner_config;
    return CX_SUCCESS;
}

void cx_governor_task_init(cx_governor_task *t, cx_governor *m, cx_str id)
{
    t->m = m;
    t->id = id;
    cx_arena_init(&t->arena, m->alloc, 0);
    cx_buf_init(&t->transcript, m->alloc);
    cx_buf_init(&t->session, m->alloc);
    cx_agent_objects_init(&t->objects);
}

cx_str cx_governor_now(cx_governor *m, cx_arena *arena)
{
    char text[28];
    cx_run_time_text((int64_t)m->io->wall_ns(m->io), text);
    return cx_arena_copy_str(arena, cx_str_z(text));
}

static cx_status write_first_files(cx_governor *m, cx_err *err)
{
    cx_str trace = cx_run_trace_id(m->run);
    cx_arena *arena = m->arena;
    cx_str own = cx_arena_printf(arena, "tasks/%.*s.json", (int)m->contract.task_id.size,
                                 m->contract.task_id.data);
    cx_str line = cx_arena_printf(arena, "%.*s\n", (int)trace.size, trace.data);
    cx_str base = cx_arena_printf(arena, "%.*s\n", (int)m->baseline.size, m->baseline.data);
    if (own.data == NULL || line.data == NULL || base.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_file_write(m->run, CX_STR("contract.json"), cx_str_bytes(m->contract_text), err));
    CX_TRY(cx_run_file_write(m->run, own, cx_str_bytes(m->contract_text), err));
    CX_TRY(cx_run_file_write(m->run, CX_STR("trace/trace_id.txt"), cx_str_bytes(line), err));
    return cx_run_file_write(m->run, CX_STR("git/baseline_commit.txt"), cx_str_bytes(base), err);
}

static cx_status write_created(cx_governor *m, cx_err *err)
{
    cx_str inside = m->ground.runtime_root;
    cx_json_list payload = cx_json_list_begin(m->arena);
    /* No machine path leaves the machine. */
    cx_json_put_quoted(&payload, "runtime_root", inside.size == 0 ? CX_STR("external") : inside);
    cx_json_put_digest(&payload, "contract_sha256", &m->contract_sha256);
    cx_json_put_quoted(&payload, "baseline_commit", m->baseline);
    return cx_governor_event(m, CX_RUN_INFO, CX_RUN_EVENT_RUN_CREATED, &payload, err);
}

/* §13: the journal knows of a nonce before it is used; what cannot be recorded is not used. */
static cx_status record_nonce(void *arg, const cx_run_approval *approval, bool *out_first,
                              cx_err *err)
{
    cx_governor *m = arg;
    return cx_run_approval_record(m->options->ledger, cx_run_id(m->run), approval, out_first, err);
}

static cx_status open_approvals(cx_governor *m, cx_err *err)
{
    const cx_run_options *options = m->options;
    m->approval_context = (cx_run_approval_context){
        .io = m->io,
        .runtime_root = m->store.root,
        .policy = m->contract_ok ? &m->policy : NULL,
        .run_id = cx_run_id(m->run),
        .contract_sha256 = cx_digest_of(m->given),
        .resolved_sha256 = m->contract_sha256,
        .agent_id = m->contract.assigned.agent_id,
        .now_ns = (int64_t)m->io->wall_ns(m->io),
        .record = record_nonce,
        .record_arg = m,
    };
    cx_run_approvals_init(&m->approvals, &m->approval_context, m->arena);
    m->approvals_open = true;
    for (size_t i = 0; i < options->approval_count; i++)
        CX_TRY(cx_run_approvals_add_file(&m->approvals, options->approvals[i], err));
    return CX_SUCCESS;
}

cx_status cx_governor_begin_bundle(cx_governor *m, cx_str task_id, cx_err *err)
{
    CX_TRY(cx_run_mask_init(&m->mask, NULL, m->arena, err));
    m->masking = true;
    cx_run_begin_options begin = {.store = &m->store,
                                  .task_id = task_id,
                                  .ledger = m->options->ledger,
                                  .mask = cx_run_mask_json,
                                  .mask_arg = &m->mask};
    CX_TRY(cx_run_begin(&begin, &m->run, err));
    m->created_at = cx_governor_now(m, m->arena);
    return m->created_at.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_governor_begin(cx_governor *m, cx_err *err)
{
    if (!cx_run_task_id_ok(m->contract.task_id))
        return CX_SUCCESS; /* nothing to name a bundle by: the outcome alone says why */
    if (m->contract_ok) {
        CX_TRY(decode_resolved(m, err));
        CX_TRY(cx_governor_choose_runner(m, err));
        cx_governor_begin_trial(m);
    }
    if (m->run == NULL)
        CX_TRY(cx_governor_begin_bundle(m, m->contract.task_id, err));
    CX_TRY(write_first_files(m, err));
    CX_TRY(make_task(m, err));
    CX_TRY(open_approvals(m, err));
    CX_TRY(write_created(m, err));
    return m->pm == NULL ? CX_SUCCESS : cx_governor_record_intent(m, err);
}

/* --- giving back ------------------------------------------------------------------------------ */

static void close_task(cx_governor_task *t)
{
    cx_task_stop_runner(t);
    cx_task_drop(t);
    cx_snapshot_close(t->snapshot);
    cx_agent_objects_done(&t->objects);
    if (t->has_diff)
        cx_diff_report_done(&t->diff);
    cx_vec_done(&t->artifacts, t->m->alloc);
    cx_buf_done(&t->transcript);
    cx_buf_done(&t->session);
    cx_arena_done(&t->arena);
}

void cx_governor_close(cx_governor *m)
{
    for (size_t i = m->task_count; i-- > 0;) /* parts borrow from the task they are of */
        close_task(&m->tasks[i]);
    if (m->pm != NULL && m->pm != m->tasks)
        close_task(m->pm);
    if (m->keeping)
        cx_run_lock_keep_end(&m->keeper);
    if (m->approvals_open)
        cx_run_approvals_done(&m->approvals);
    if (m->masking)
        cx_run_mask_done(&m->mask);
    cx_governor_end_trial(m);
    cx_sandbox_close(m->box);
    cx_run_end(m->run);
    cx_run_findings_done(&m->findings);
    cx_git_close(m->git);
}
