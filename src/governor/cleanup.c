/*
 * cleanup.c - finding and removing what dead runs left.
 */
#include "governor/cleanup.h"

#include <stdio.h>

#include "os/api.h"
#include "rules/api.h"

#define NS_PER_SEC INT64_C(1000000000)
/* A temporary file belongs to a process for a moment; one that is older is left over. */
#define TEMPORARY_MIN_SEC 60

typedef struct cleaning {
    const cx_run_cleanup_options *options;
    const cx_run_store *store;
    cx_arena *arena;
    cx_err *err;
    int64_t now_ns;
    CX_VEC(cx_run_leftover) list;
    cx_status status;
} cleaning;

const char *cx_run_leftover_name(cx_run_leftover_kind kind)
{
    static const char *const names[] = {"run", "active", "lock", "file", "folder"};
    CX_ASSERT((size_t)kind < CX_COUNT_OF(names));
    return names[kind];
}

static void add(cleaning *c, cx_run_leftover_kind kind, cx_str name, cx_str reason, bool done)
{
    cx_run_leftover *slot = cx_vec_push(&c->list, c->arena->alloc);
    cx_str stored = cx_arena_copy_str(c->arena, name), why = cx_arena_copy_str(c->arena, reason);
    if (slot == NULL || stored.data == NULL || why.data == NULL) {
        c->status = cx_fail_nomem(c->err);
        if (slot != NULL)
            c->list.count--;
        return;
    }
    *slot = (cx_run_leftover){kind, stored, why, done};
}

static bool is_old(const cleaning *c, int64_t since_ns, uint64_t least_sec)
{
    uint64_t older = c->options->older_sec > least_sec ? c->options->older_sec : least_sec;
    if (since_ns > c->now_ns)
        return older == 0;
    return (uint64_t)(c->now_ns - since_ns) / (uint64_t)NS_PER_SEC >= older;
}

static cx_str join_path(cleaning *c, const char *folder, cx_str name, const char *file)
{
    cx_str path = cx_arena_printf(c->arena, "%s/%s/%.*s%s", c->store->root, folder, (int)name.size,
                                  name.data, file);
    if (path.data == NULL)
        c->status = cx_fail_nomem(c->err);
    return path;
}

static bool path_exists(cx_str path, cx_facts *facts)
{
    return path.data != NULL && !cx_failed(cx_path_facts(path.data, false, facts, NULL));
}

/* --- runs ------------------------------------------------------------------------------------- */

/* The state of a run's owner; a run whose owner cannot be read counts as without one. */
static cx_run_owner_state owner_of(cleaning *c, cx_str run_id)
{
    cx_run_owner owner;
    cx_status status = cx_run_active_owner(c->store, run_id, c->arena, &owner, NULL);
    if (status.code == CX_E_NOMEM || status.code == CX_E_IO)
        return CX_RUN_OWNER_ALIVE;
    return cx_failed(status) ? CX_RUN_OWNER_DEAD : cx_run_owner_state_of(&owner);
}

static void recover_dead_run(cleaning *c, cx_str run_id)
{
    cx_run_sealed sealed;
    cx_err err = {0};
    if (!c->options->apply) {
        add(c, CX_RUN_LEFTOVER_RUN, run_id, CX_STR("owner_dead"), false);
        return;
    }
    cx_status status =
        cx_run_recover(c->store, run_id, c->options->ledger, c->arena, &sealed, &err);
    add(c, CX_RUN_LEFTOVER_RUN, run_id,
        cx_failed(status) ? cx_str_z(err.message) : CX_STR("owner_dead"), !cx_failed(status));
}

static void clean_runs(cleaning *c)
{
    cx_str *ids;
    size_t count;
    c->status = cx_run_store_list(c->store, c->arena, &ids, &count, c->err);
    for (size_t i = count; !cx_failed(c->status) && i-- > 0;) {
        cx_facts manifest, folder;
        cx_str path = join_path(c, "runs", ids[i], "/manifest.json");
        if (cx_failed(c->status) || path_exists(path, &manifest) ||
            !path_exists(join_path(c, "runs", ids[i], ""), &folder) ||
            folder.kind != CX_FILE_FOLDER || !is_old(c, folder.modified_ns, 0) ||
            owner_of(c, ids[i]) != CX_RUN_OWNER_DEAD)
            continue;
        recover_dead_run(c, ids[i]);
    }
}

/*
 * An entry outlives its run's manifest only when the process died before the seal, or right after
 * it. False: the entry has to stay, for another try.
 */
static bool seal_finished_bundle(cleaning *c, cx_str run_id)
{
    const cx_run_witnesses *known = c->options->witnesses;
    cx_run_witness witness = {0};
    cx_run_sealed sealed;
    cx_err err = {0};
    bool agrees = false;
    if (known == NULL || c->options->ledger == NULL)
        return true;
    cx_status status = known->find(known->ctx, run_id, c->arena, &witness, &err);
    if (!cx_failed(status) && (witness.seal != NULL || !witness.has_events))
        return true;
    if (!cx_failed(status))
        status = cx_run_seal_late(c->store, run_id, &witness, c->options->ledger, c->arena, &agrees,
                                  &sealed, &err);
    if (cx_failed(status))
        add(c, CX_RUN_LEFTOVER_RUN, run_id, cx_str_z(err.message), false);
    else
        add(c, CX_RUN_LEFTOVER_RUN, run_id,
            agrees
                ? CX_STR("seal_missing")
                : CX_STR("not sealed: it does not agree with the ledger; see 'cortex run verify'"),
            agrees);
    return !cx_failed(status);
}

/* Entries of runs that have ended, or of which there is no bundle. */
static void clean_active(cleaning *c)
{
    cx_str *ids;
    size_t count;
    c->status = cx_run_active_list(c->store, c->arena, &ids, &count, c->err);
    for (size_t i = 0; !cx_failed(c->status) && i < count; i++) {
        cx_facts facts;
        cx_str entry = join_path(c, "active/runs", ids[i], "");
        bool bundle = path_exists(join_path(c, "runs", ids[i], ""), &facts);
        bool ended = path_exists(join_path(c, "runs", ids[i], "/manifest.json"), &facts);
        if (cx_failed(c->status) || !path_exists(entry, &facts) ||
            !is_old(c, facts.modified_ns, 0) || (bundle && !ended) ||
            owner_of(c, ids[i]) != CX_RUN_OWNER_DEAD)
            continue;
        if (ended && c->options->apply && !seal_finished_bundle(c, ids[i]))
            continue;
        bool done = c->options->apply && !cx_failed(cx_path_remove_tree(entry.data, NULL));
        add(c, CX_RUN_LEFTOVER_ACTIVE, ids[i], ended ? CX_STR("run_finished") : CX_STR("no_bundle"),
            done);
    }
}

/* --- locks ------------------------------------------------------------------------------------ */

static void clean_locks(cleaning *c)
{
    cx_run_lock *locks = NULL;
    cx_run_lock_reason *reasons = NULL;
    size_t count = 0;
    bool apply = c->options->apply && c->options->older_sec == 0;
    c->status = apply ? cx_run_lock_reclaim(c->store, c->arena, &locks, &reasons, &count, c->err)
                      : cx_run_lock_list(c->store, c->arena, &locks, &reasons, &count, c->err);
    if (c->status.code == CX_E_NOT_FOUND)
        c->status = CX_SUCCESS;
    for (size_t i = 0; !cx_failed(c->status) && i < count; i++) {
        int64_t renewed;
        bool done = apply;
        if (!cx_run_lock_stale(reasons[i]))
            continue;
        if (!apply && (!cx_run_time_parse(locks[i].renewed_at, &renewed) || !is_old(c, renewed, 0)))
            continue;
        if (!apply && c->options->apply) {
            cx_run_lock forced;
            done = !cx_failed(cx_run_lock_force(c->store, locks[i].path, c->arena, &forced, NULL));
        }
        add(c, CX_RUN_LEFTOVER_LOCK, locks[i].path, cx_str_z(cx_run_lock_reason_name(reasons[i])),
            done);
    }
}

/* --- files and folders ------------------------------------------------------------------------ */

static bool is_temporary(const char *name)
{
    return name[0] == '.' && cx_str_ends(cx_str_z(name), CX_STR(".tmp"));
}

/* Everywhere but in bundles and work trees, which are not ours to clear. */
static cx_walk_step check_temporary_file(void *arg, const cx_walk_entry *entry)
{
    cleaning *c = arg;
    if (entry->facts.kind == CX_FILE_FOLDER)
        return strcmp(entry->path, "runs") == 0 || strcmp(entry->path, "worktrees") == 0
                   ? CX_WALK_SKIP
                   : CX_WALK_ON;
    if (entry->facts.kind == CX_FILE_REGULAR && is_temporary(entry->name) &&
        is_old(c, entry->facts.modified_ns, TEMPORARY_MIN_SEC)) {
        bool done =
            c->options->apply && !cx_failed(cx_folder_remove(entry->parent, entry->name, NULL));
        add(c, CX_RUN_LEFTOVER_FILE, cx_str_from(entry->path, entry->path_size),
            CX_STR("temporary"), done);
    }
    return cx_failed(c->status) ? CX_WALK_STOP : CX_WALK_ON;
}

static void clean_files(cleaning *c)
{
    cx_file folder;
    c->status = cx_folder_open(c->store->root, &folder, c->err);
    if (cx_failed(c->status))
        return;
    cx_status status = cx_folder_walk(folder, NULL, check_temporary_file, c, c->err);
    if (!cx_failed(c->status))
        c->status = status;
    cx_folder_close(folder);
}

static bool check_worktree_folder(void *arg, const char *name)
{
    cleaning *c = arg;
    cx_facts facts;
    cx_str run_id = cx_str_z(name);
    if (!cx_run_id_valid(run_id) || owner_of(c, run_id) != CX_RUN_OWNER_DEAD)
        return true;
    cx_str path = join_path(c, "worktrees", run_id, "");
    if (path_exists(path, &facts) && facts.kind == CX_FILE_FOLDER &&
        is_old(c, facts.modified_ns, 0))
        add(c, CX_RUN_LEFTOVER_FOLDER, run_id, CX_STR("run_finished"), false);
    return !cx_failed(c->status);
}

static void clean_folders(cleaning *c)
{
    cx_str path = cx_run_store_path(c->store, c->arena, "worktrees", CX_STR(""));
    if (path.data == NULL) {
        c->status = cx_fail_nomem(c->err);
        return;
    }
    int failed = c->store->io->list(c->store->io, path.data, check_worktree_folder, c);
    if (failed != 0 && cx_fail_os(NULL, -failed, "list").code != CX_E_NOT_FOUND)
        c->status = cx_fail_os(c->err, -failed, "%s", path.data);
}

cx_status cx_run_cleanup(const cx_run_cleanup_options *options, cx_arena *arena,
                         cx_run_leftover **out, size_t *out_count, cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL);
    static void (*const steps[])(cleaning *) = {clean_runs, clean_active, clean_locks, clean_files,
                                                clean_folders};
    cleaning c = {.options = options,
                  .store = options->store,
                  .arena = arena,
                  .err = err,
                  .now_ns = (int64_t)options->store->io->wall_ns(options->store->io)};
    for (size_t i = 0; i < CX_COUNT_OF(steps) && !cx_failed(c.status); i++)
        steps[i](&c);
    if (!cx_failed(c.status)) {
        *out = CX_ARENA_ARRAY(arena, cx_run_leftover, c.list.count + 1);
        *out_count = c.list.count;
        if (*out == NULL)
            c.status = cx_fail_nomem(err);
        else if (c.list.count != 0)
            memcpy(*out, c.list.items, c.list.count * sizeof **out);
    }
    cx_vec_done(&c.list, arena->alloc);
    return c.status;
}
