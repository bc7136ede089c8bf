/*
 * cmd_run_cleanup.c - `cortex run cleanup`: ends runs whose process died, and removes what they
 * left (run.md §20, §23).
 */
#include <string.h>

#include "os/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/run_fail.h"
#include "cli/run/run_lease.h"
#include "cli/run/run_ledger.h"
#include "cli/run/run_place.h"
#include "cli/run/run_where.h"
#include "governor/api.h"
#include "git/api.h"

static int run_run_cleanup(cx_cli *cli, const cx_cli_args *args);

static const cx_cli_option options[] = {
    CX_CLI_OPT_FLAG("apply", 0, "Make the changes; without it, only show them."),
    CX_CLI_OPT("older-than", 0, CX_CLI_TEXT, "AGE",
               "Ignore anything younger than AGE: a number followed by s, m, h or d."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_run_cleanup = {
    .name = "run cleanup",
    .purpose = "end runs whose process died and remove what they left",
    .about =
        "Finds unfinished runs whose process died, stale locks, and work trees, branches and "
        "temporary files of ended runs. With --apply such a run is ended: a truncated last "
        "event is repaired, missing files are derived from the events, and the run is sealed "
        "as FAILURE, never as anything else. Finished bundles are not changed; a bundle whose "
        "process died between manifest and seal is sealed when it agrees with the ledger. A "
        "checkout of the main branch that a merge did not update is updated. When runs are "
        "recorded in a part of a fleet, those of all machines whose lease has ended are ended, "
        "too: they can record and merge nothing more, and the journal says by whom, and what it "
        "has of them.",
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 nothing to do, shown, or done\n2 usage error\n3 something could not be done",
    .example = "cortex run cleanup\ncortex run cleanup --apply --older-than 1h",
    .run = run_run_cleanup,
};

typedef struct cleanup_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_run_store store;
    cx_cli_run_ledger ledger;
    cx_str actor;
    bool apply, stuck;
    CX_VEC(cx_str) ended; /* runs of which the lease was ended now */
    cx_json_list items;
    cx_buf text;
} cleanup_job;

static cx_status parse_age(const char *text, uint64_t *out, cx_err *err)
{
    static const char units[] = "smhd";
    static const uint64_t seconds[] = {1, 60, 3600, 86400};
    size_t size = text == NULL ? 0 : strlen(text);
    *out = 0;
    if (text == NULL)
        return CX_SUCCESS;
    const char *unit = size < 2 ? NULL : strchr(units, text[size - 1]);
    uint64_t value = 0;
    for (size_t i = 0; unit != NULL && i + 1 < size; i++) {
        if (text[i] < '0' || text[i] > '9' || value > 1000000)
            unit = NULL;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    if (unit == NULL)
        return cx_fail(err, CX_E_USAGE,
                       "option --older-than: found '%s', expected a number and s, m, h or d", text);
    *out = value * seconds[unit - units];
    return CX_SUCCESS;
}

static void add_item(cleanup_job *t, const char *kind, cx_str name, cx_str reason, bool done)
{
    cx_json_list item = cx_json_list_begin(&t->cli->arena);
    cx_json_put_str(&item, "kind", cx_str_z(kind));
    cx_json_put_str(&item, "name", name);
    cx_json_put_str(&item, "reason", reason);
    cx_json_put_bool(&item, "done", done);
    t->stuck |= t->apply && !done;
    cx_buf_printf(&t->text, "%-8s ", kind);
    cx_shown_add(&t->text, name);
    cx_buf_add_z(&t->text, "  ");
    cx_shown_add(&t->text, reason);
    cx_buf_add_z(&t->text, done ? "  done\n" : t->apply ? "  NOT DONE\n" : "\n");
    cx_json_add_object(&t->items, &item);
}

/* Whether a run that this work tree belongs to may still want it. */
static bool is_wanted(const cleanup_job *t, cx_str run_id)
{
    cx_run_owner owner;
    return !cx_failed(cx_run_active_owner(&t->store, run_id, &t->cli->arena, &owner, NULL)) &&
           cx_run_owner_state_of(&owner) != CX_RUN_OWNER_DEAD;
}

/* Work trees git knows of, below the runtime root. */
static cx_status tidy_worktrees(cleanup_job *t, const cx_git *git, cx_err *err)
{
    cx_worktree_listed *list;
    size_t count;
    CX_TRY(cx_run_worktree_list(git, t->store.root, &t->cli->arena, &list, &count, err));
    for (size_t i = 0; i < count; i++) {
        bool done = false;
        cx_err why = {0};
        cx_str reason = list[i].prunable ? CX_STR("folder_gone") : CX_STR("run_finished");
        if (!list[i].ours || is_wanted(t, list[i].run_id))
            continue;
        if (t->apply) {
            done = !cx_failed(cx_run_worktree_remove_orphan(git, t->store.root, &list[i], &why));
            if (!done)
                reason = cx_arena_copy_str(&t->cli->arena, cx_str_z(why.message));
        }
        if (reason.data == NULL)
            return cx_fail_nomem(err);
        add_item(t, "worktree", list[i].path, reason, done);
    }
    return CX_SUCCESS;
}

/* The user's own branches may be called cortex/.., too: only ids that a run can have count. */
static bool is_wanted_stray(void *arg, cx_str run_id)
{
    return !cx_run_id_is_made(run_id) || is_wanted(arg, run_id);
}

/* Branches and git directories of runs that died while they made a work tree or took one away. */
static cx_status tidy_strays(cleanup_job *t, const cx_git *git, cx_err *err)
{
    cx_worktree_leftover *list;
    size_t count;
    CX_TRY(cx_run_worktree_leftovers(git, t->store.root, is_wanted_stray, t, t->apply,
                                     &t->cli->arena, &list, &count, err));
    for (size_t i = 0; i < count; i++)
        add_item(t, list[i].branch ? "branch" : "worktree", list[i].name,
                 list[i].why.size != 0 ? list[i].why : CX_STR("folder_gone"), list[i].done);
    return CX_SUCCESS;
}

/* A checkout whose branch was moved by a run that died before it had followed. */
static cx_status tidy_checkout(cleanup_job *t, const cx_git *git, cx_err *err)
{
    cx_checkout_update begun;
    cx_file lock;
    cx_err why = {0};
    bool is_stale = false;
    const char *followed;
    CX_TRY(cx_run_worktrees_lock(git, 0, &lock, err));
    cx_status status = cx_checkout_update_find(git, &t->cli->arena, &begun, &is_stale, &why);
    bool begins = status.code != CX_E_NOT_FOUND;
    if (!cx_failed(status) && t->apply)
        status = cx_checkout_update_resume(git, t->store.root, &t->cli->arena, &followed, &why);
    cx_flock_release(lock);
    if (!begins || (!cx_failed(status) && !is_stale))
        return CX_SUCCESS;
    cx_str reason = cx_failed(status) ? cx_arena_copy_str(&t->cli->arena, cx_str_z(why.message))
                                      : CX_STR("branch_moved");
    if (reason.data == NULL)
        return cx_fail_nomem(err);
    add_item(t, "checkout", is_stale ? begun.ref : CX_STR("cortex-follow"), reason,
             t->apply && !cx_failed(status));
    return CX_SUCCESS;
}

/* What is left below worktrees/ when git has let go. */
static cx_status tidy_folder(cleanup_job *t, const cx_run_leftover *left, cx_err *err)
{
    cx_facts facts;
    cx_str path = cx_run_store_path(&t->store, &t->cli->arena, "worktrees", left->name);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_path_facts(path.data, false, &facts, NULL)))
        return CX_SUCCESS;
    bool done = t->apply && !cx_failed(cx_path_remove_tree(path.data, NULL));
    add_item(t, "folder", left->name, left->reason, done);
    return CX_SUCCESS;
}

/* The journal of the repository's runs, when there is a data directory; a run ended without one
 * stays unsealed, which is reported. */
static cx_status open_ledger(cleanup_job *t, const cx_git *git, cx_err *err)
{
    cx_oid root;
    char text[CX_OID_TEXT_SIZE];
    CX_TRY(cx_git_root_commit(git, &root, err));
    cx_oid_text(&root, text);
    CX_TRY(cx_cli_run_actor(text, &t->cli->arena, &t->actor, err));
    cx_status status = cx_cli_run_ledger_open(&t->ledger, t->cli, t->args, t->actor, err);
    if (!cx_failed(status) && t->cli->part != NULL)
        return cx_cli_run_leases_open(&t->ledger, NULL, err);
    if (status.code == CX_E_NOT_FOUND && !cx_cli_has(t->args, "home")) {
        cx_cli_complain("run cleanup: there is no data directory, so the runs are ended without a "
                        "seal; 'cortex init' creates one");
        memset(&t->ledger, 0, sizeof t->ledger);
        return CX_SUCCESS;
    }
    return status;
}

/* --- runs of other machines ------------------------------------------------------------------- */

static bool is_old_enough(const cleanup_job *t, const cx_run_lease *lease, uint64_t older_sec)
{
    int64_t renewed, now = (int64_t)t->cli->io->wall_ns(t->cli->io);
    return older_sec == 0 || (cx_run_time_parse(lease->renewed_at, &renewed) && now > renewed &&
                              (uint64_t)(now - renewed) / UINT64_C(1000000000) >= older_sec);
}

static void end_lease(cleanup_job *t, const cx_run_lease *lease)
{
    const char *why = cx_run_lock_reason_name(
        cx_run_lease_classify(lease, (int64_t)t->cli->io->wall_ns(t->cli->io)));
    const char *ended = NULL;
    cx_err err = {0};
    if (!t->apply) {
        add_item(t, "lease", lease->run_id, cx_str_z(why), false);
        return;
    }
    if (cx_failed(cx_cli_run_leases_end(&t->ledger, lease->run_id, false, &ended, &err))) {
        cx_str reason = cx_arena_copy_str(&t->cli->arena, cx_str_z(err.message));
        add_item(t, "lease", lease->run_id, reason.data == NULL ? CX_STR("") : reason, false);
    } else if (ended != NULL) { /* else it was renewed, or ended, meanwhile */
        add_item(t, "lease", lease->run_id, cx_str_z(ended), true);
        cx_str *slot = cx_vec_push(&t->ended, t->cli->alloc);
        if (slot != NULL) /* else its end has an item of its own */
            *slot = lease->run_id;
    }
}

/* Runs that are recorded in the same part of a fleet and give no sign of life: of whatever machine,
 * also when there is nothing of them here. */
static cx_status end_leases(cleanup_job *t, const cx_git *git, uint64_t older_sec, cx_err *err)
{
    cx_run_leases table;
    if (t->ledger.leases != NULL)
        CX_TRY(cx_cli_run_leases_list(t->ledger.home, t->actor, &t->cli->arena, &table, err));
    else
        CX_TRY(cx_cli_run_leases_peek(t->cli, t->args, git, &table, err));
    for (size_t i = 0; i < table.count; i++) {
        const cx_run_lease *lease = &table.list[i];
        if (cx_run_lock_stale(
                cx_run_lease_classify(lease, (int64_t)t->cli->io->wall_ns(t->cli->io))) &&
            is_old_enough(t, lease, older_sec))
            end_lease(t, lease);
    }
    return CX_SUCCESS;
}

static bool was_ended_now(const cleanup_job *t, cx_str run_id)
{
    for (size_t i = 0; i < t->ended.count; i++)
        if (cx_str_eq(t->ended.items[i], run_id))
            return true;
    return false;
}

/* What the journal has of runs that were ended, and that their own machine did not seal. */
static cx_status note_ends(cleanup_job *t, cx_err *err)
{
    cx_str *ids;
    size_t count;
    if (t->ledger.leases == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_cli_run_leases_unsealed(t->ledger.home, t->actor, &t->cli->arena, &ids, &count, err));
    for (size_t i = 0; i < count; i++) {
        bool done;
        CX_TRY(cx_cli_run_leases_note_end(&t->ledger, ids[i], &done, err));
        if (done && !was_ended_now(t, ids[i]))
            add_item(t, "end", ids[i], CX_STR("unsealed"), true);
    }
    return CX_SUCCESS;
}

/* The index is opened each time: an append may have reopened the data directory. */
static cx_status find_witness(void *ctx, cx_str run_id, cx_arena *arena, cx_run_witness *out,
                              cx_err *err)
{
    cleanup_job *t = ctx;
    cx_run_index *index;
    cx_run_known *known = CX_ARENA_ARRAY(arena, cx_run_known, 1);
    if (known == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_index_open(t->ledger.home, t->cli->alloc, &index, err));
    cx_status status = cx_run_index_find(index, run_id, arena, known, err);
    if (!cx_failed(status))
        *out = known->witness;
    cx_run_index_close(index);
    return status;
}

static cx_status clean_up_store(cleanup_job *t, const cx_git *git, uint64_t older_sec, cx_err *err)
{
    const cx_run_witnesses witnesses = {t, find_witness};
    cx_run_cleanup_options how = {
        .store = &t->store, .witnesses = &witnesses, .apply = t->apply, .older_sec = older_sec};
    cx_run_leftover *list = NULL;
    size_t count = 0;
    if (t->apply && t->ledger.home != NULL)
        how.ledger = &t->ledger.ledger;
    cx_status status = cx_run_cleanup(&how, &t->cli->arena, &list, &count, err);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        if (list[i].kind != CX_RUN_LEFTOVER_FOLDER)
            add_item(t, cx_run_leftover_name(list[i].kind), list[i].name, list[i].reason,
                     list[i].done);
    if (!cx_failed(status))
        status = tidy_checkout(t, git, err);
    if (!cx_failed(status))
        status = tidy_worktrees(t, git, err);
    if (!cx_failed(status))
        status = tidy_strays(t, git, err);
    for (size_t i = 0; i < count && !cx_failed(status); i++)
        if (list[i].kind == CX_RUN_LEFTOVER_FOLDER)
            status = tidy_folder(t, &list[i], err);
    return status;
}

static cx_status clean_up_runs(cleanup_job *t, cx_err *err)
{
    cx_git *git = NULL;
    uint64_t older_sec;
    cx_facts facts;
    const char *repo = cx_cli_value(t->args, "repo");
    CX_TRY(parse_age(cx_cli_value(t->args, "older-than"), &older_sec, err));
    CX_TRY(cx_cli_run_store(t->cli, repo, false, &t->store, err));
    bool shared = cx_cli_run_in_part(t->cli, t->args);
    bool there = cx_path_facts(t->store.root, true, &facts, NULL).code != CX_E_NOT_FOUND;
    if (!there && !shared)
        return CX_SUCCESS; /* no run was ever made */
    cx_status status = cx_git_open(repo == NULL ? "." : repo, NULL, t->cli->alloc, &git, err);
    if (!cx_failed(status) && t->apply)
        status = open_ledger(t, git, err);
    if (!cx_failed(status) && there)
        status = clean_up_store(t, git, older_sec, err);
    if (!cx_failed(status))
        status = end_leases(t, git, older_sec, err);
    if (!cx_failed(status))
        status = note_ends(t, err);
    cx_git_close(git);
    return status;
}

static cx_status answer_cleanup(cleanup_job *t, cx_buf *out, cx_err *err)
{
    if (!cx_cli_has(t->args, "json")) {
        cx_buf_add_str(out, cx_buf_str(&t->text));
        if (t->items.count == 0)
            cx_buf_add_z(out, "Nothing to do.\n");
        else if (!t->apply)
            cx_buf_add_z(out, "Nothing was changed; --apply does it.\n");
        return cx_buf_check(out, err);
    }
    cx_json_list object = cx_json_list_begin(&t->cli->arena);
    cx_json_put_bool(&object, "applied", t->apply);
    cx_json_put_array(&object, "items", &t->items);
    return cx_cli_end_json(&object, out, err);
}

static int run_run_cleanup(cx_cli *cli, const cx_cli_args *args)
{
    cleanup_job t = {.cli = cli, .args = args, .apply = cx_cli_has(args, "apply")};
    cx_err err = {0};
    cx_buf out;
    t.items = cx_json_list_begin(&cli->arena);
    cx_buf_init(&t.text, cli->alloc);
    cx_buf_init(&out, cli->alloc);
    cx_status status = clean_up_runs(&t, &err);
    cx_cli_run_ledger_close(&t.ledger);
    if (!cx_failed(status))
        status = answer_cleanup(&t, &out, &err);
    int code = cx_failed(status)
                   ? cx_cli_run_fail(cli, args, &err)
                   : cx_cli_answer(cli, &out, t.stuck ? CX_EXIT_UNCHECKED : CX_EXIT_HOLDS);
    cx_vec_done(&t.ended, cli->alloc);
    cx_buf_done(&out);
    cx_buf_done(&t.text);
    return code;
}
