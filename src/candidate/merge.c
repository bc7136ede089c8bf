/*
 * merge.c - bringing a candidate to the main branch (run.md §15).
 *
 * Invariants:
 *   I1  main moves once, from the value that was checked to the commit that was checked.
 *   I2  A checkout of main that has changes of its own, or ignored files where new ones come, is
 *       never touched; a clean one is updated.
 *   I3  While a run brings a checkout to where main has moved, no other process reads it: until it
 *       is updated, it only seems to have changes.
 *   I4  An update that a dead process left unfinished is finished by the next process that finds
 *       it.
 *   I5  A checkout of main belongs to the user, or this run made it and no agent can write it.
 */
#include "candidate/merge.h"

#include <stdio.h>

#include "candidate/merge_way.h"
#include "os/api.h"
#include "git/api.h"

#define MESSAGE_BYTES_MAX 4096
#define NOTES_REF "refs/notes/cortex"

static cx_status refuse_plan(cx_merge_plan *out, const char *reason, cx_str detail, cx_err *err)
{
    out->kind = CX_MERGE_REFUSED;
    out->reason = cx_str_z(reason);
    out->detail = detail;
    return detail.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- the checkout of main --------------------------------------------------------------------- */

/* Whether tracked files or the index differ from HEAD.  This is the user's own checkout and is
 * asked with his own filters. */
static cx_status is_dirty(const cx_git *checkout, bool *out, cx_err *err)
{
    cx_buf text;
    CX_TRY(cx_checkout_refresh_index(checkout, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("status", "--porcelain=v2", "-z",
                                            "--untracked-files=no", "--ignore-submodules=none")};
    cx_status status = cx_git_call_run(checkout, &call, &text, NULL, err);
    *out = text.size != 0;
    cx_buf_done(&text);
    return status;
}

/* Whether `read-tree -m -u` from one to the other would lose nothing (untracked files in its way).
 */
static cx_status is_updatable(const cx_git *checkout, const cx_oid *from, const cx_oid *to,
                              bool *out, cx_err *err)
{
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    int code = 0;
    cx_oid_text(from, a);
    cx_oid_text(to, b);
    cx_git_call call = {.args = CX_GIT_ARGS("read-tree", "-n", "-m", "-u", a, b)};
    CX_TRY(cx_git_call_run(checkout, &call, NULL, &code, err));
    *out = code == 0;
    return CX_SUCCESS;
}

/* Refuses when the checkout is in the way. */
static cx_status check_checkout(const cx_merge_options *o, const cx_git *checkout, cx_arena *arena,
                                cx_merge_plan *out, cx_err *err)
{
    bool dirty = false, follows = true;
    cx_str ignored = CX_STR("");
    CX_TRY(is_dirty(checkout, &dirty, err));
    if (!dirty)
        CX_TRY(is_updatable(checkout, &out->old, &out->commit, &follows, err));
    if (dirty || !follows)
        return refuse_plan(
            out, "checked_out_dirty",
            cx_arena_printf(arena, "%s is checked out with %s; commit or remove them",
                            o->main_ref.data, dirty ? "changes" : "untracked files in the way"),
            err);
    CX_TRY(cx_merge_find_in_way(checkout, &out->old, &out->commit, arena, &ignored, err));
    if (ignored.size != 0)
        return refuse_plan(out, "checked_out_dirty",
                           cx_arena_printf(arena,
                                           "%s is checked out with %.*s in the way, which git "
                                           "ignores: it would be lost; move it elsewhere",
                                           o->main_ref.data, (int)ignored.size, ignored.data),
                           err);
    out->checkout = cx_arena_copy_str(arena, cx_str_z(cx_git_worktree(checkout))).data;
    out->checkout_git_dir = cx_arena_copy_str(arena, cx_str_z(cx_git_dir(checkout))).data;
    return out->checkout == NULL || out->checkout_git_dir == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* Finds the work tree that has main checked out. */
static cx_status find_checkout(const cx_merge_options *o, cx_arena *arena, cx_merge_plan *out,
                               cx_err *err)
{
    cx_git *found = NULL;
    if (o->own_checkout != NULL)
        return check_checkout(o, o->own_checkout, arena, out, err);
    CX_TRY(cx_checkout_update_target(o->git, o->runtime_root, o->main_ref, arena, &found, err));
    if (found == NULL)
        return CX_SUCCESS;
    cx_status status = check_checkout(o, found, arena, out, err);
    cx_git_close(found);
    return status;
}

/* --- the commit ------------------------------------------------------------------------------- */

static cx_status add_trailers(const cx_merge_options *o, char *message, size_t size, size_t *out,
                              cx_err *err)
{
    const cx_str parts[] = {o->run_id, o->task_id, o->contract_sha256};
    for (size_t i = 0; i < CX_COUNT_OF(parts); i++)
        for (size_t k = 0; k < parts[i].size; k++)
            if ((uint8_t)parts[i].data[k] < 0x20 || parts[i].data[k] == 0x7f)
                return cx_fail(err, CX_E_USAGE, "an id of a run has a control character");
    int length = snprintf(message, size,
                          "cortex: merge %.*s\n\nCortex-Run: %.*s\nCortex-Task: %.*s\n"
                          "Cortex-Contract-SHA256: %.*s\n",
                          (int)o->task_id.size, o->task_id.data, (int)o->run_id.size,
                          o->run_id.data, (int)o->task_id.size, o->task_id.data,
                          (int)o->contract_sha256.size, o->contract_sha256.data);
    if (length < 0 || (size_t)length >= size)
        return cx_fail(err, CX_E_LIMIT, "the ids of a run are too long for a commit's message");
    *out = (size_t)length;
    return CX_SUCCESS;
}

/* The first line of merge-tree's answer is the tree; exit 1 is a conflict. */
static cx_status merge_trees(const cx_merge_options *o, const cx_oid *ours, cx_oid *out_tree,
                             bool *out_clean, cx_err *err)
{
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    int code = 0;
    cx_buf text;
    cx_oid_text(ours, a);
    cx_oid_text(&o->candidate, b);
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args =
                            CX_GIT_ARGS("merge-tree", "--write-tree", "--no-messages", "-z", a, b),
                        .bare = true};
    cx_status status = cx_git_call_run(o->git, &call, &text, &code, err);
    size_t digits = 2 * cx_git_oid_size(o->git);
    *out_clean = code == 0;
    if (!cx_failed(status) && code != 0 && code != 1) {
        status = cx_git_check_version(o->git, err);
        if (!cx_failed(status))
            status = cx_fail(err, CX_E_FORMAT, "git merge-tree failed (exit %d)", code);
    }
    if (!cx_failed(status) && code == 0 &&
        (text.size < digits || !cx_oid_parse((cx_str){(const char *)text.data, digits}, out_tree)))
        status = cx_fail(err, CX_E_FORMAT, "git merge-tree names no tree");
    cx_buf_done(&text);
    return status;
}

static cx_status plan_merge(const cx_merge_options *o, cx_arena *arena, cx_merge_plan *out,
                            cx_err *err)
{
    char message[MESSAGE_BYTES_MAX];
    size_t size = 0;
    bool clean = false;
    const cx_oid parents[2] = {out->old, o->candidate};
    CX_TRY(merge_trees(o, &out->old, &out->tree, &clean, err));
    if (!clean)
        return refuse_plan(
            out, "conflict",
            cx_arena_printf(arena, "the candidate and %s changed the same lines", o->main_ref.data),
            err);
    CX_TRY(add_trailers(o, message, sizeof message, &size, err));
    cx_commit_facts facts = {.tree = out->tree,
                             .parents = parents,
                             .parent_count = 2,
                             .message = {message, size},
                             .time_s = o->time_s};
    out->kind = CX_MERGE_REAL;
    return cx_git_commit_tree(o->git, &facts, &out->commit, err);
}

static cx_status plan_for_tip(const cx_merge_options *o, cx_arena *arena, cx_merge_plan *out,
                              cx_err *err)
{
    bool contains = false;
    cx_status status = cx_git_ref(o->git, o->main_ref, &out->old, err);
    if (status.code == CX_E_NOT_FOUND)
        return refuse_plan(out, "main_missing",
                           cx_arena_printf(arena, "there is no %s", o->main_ref.data), err);
    CX_TRY(status);
    CX_TRY(cx_git_is_ancestor(o->git, &o->baseline, &out->old, &contains, err));
    if (!contains)
        return refuse_plan(
            out, "baseline_not_in_main",
            cx_arena_printf(arena, "%s does not contain the baseline any more", o->main_ref.data),
            err);
    if (cx_oid_eq(&out->old, &o->baseline)) {
        out->kind = CX_MERGE_FAST_FORWARD;
        out->commit = o->candidate;
        CX_TRY(cx_git_tree_of(o->git, &out->commit, &out->tree, err));
    } else {
        out->kind = CX_MERGE_REAL;
        CX_TRY(plan_merge(o, arena, out, err));
    }
    return out->kind == CX_MERGE_REFUSED ? CX_SUCCESS : find_checkout(o, arena, out, err);
}

cx_status cx_run_merge_plan(const cx_merge_options *options, cx_arena *arena, cx_merge_plan *out,
                            cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    cx_merge_options o = *options;
    memset(out, 0, sizeof *out);
    /* Terminated, as messages want it. */
    o.main_ref = cx_arena_copy_str(arena, options->main_ref);
    if (o.main_ref.data == NULL)
        return cx_fail_nomem(err);
    cx_file lock;
    CX_TRY(cx_run_worktrees_lock(o.git, 0, &lock, err)); /* I3 */
    /* I4; what cannot follow is found in the way below. */
    const char *followed;
    cx_status status = cx_checkout_update_resume(o.git, o.runtime_root, arena, &followed, NULL);
    if (status.code == CX_E_NOMEM)
        status = cx_fail_nomem(err);
    else
        status = plan_for_tip(&o, arena, out, err);
    cx_flock_release(lock);
    return status;
}

/* --- applying --------------------------------------------------------------------------------- */

static cx_status move_ref(const cx_merge_options *o, cx_merge_plan *plan, cx_arena *arena,
                          cx_err *err)
{
    cx_err why;
    cx_status status = cx_git_ref_set(o->git, o->main_ref, &plan->commit, &plan->old, &why);
    if (status.code == CX_E_CONFLICT)
        return refuse_plan(plan, "moved", cx_arena_copy_str(arena, cx_str_z(why.message)), err);
    if (cx_failed(status) && err != NULL)
        *err = why;
    return status;
}

/* Main has moved, and that is what was asked for; a checkout that cannot be updated is reported. */
static void update_checkout(const cx_merge_options *o, cx_merge_plan *plan, bool lasting,
                            cx_arena *arena)
{
    cx_err why;
    cx_git *checkout;
    const cx_git_checkout where = {.path = plan->checkout, .git_dir = plan->checkout_git_dir};
    cx_status status = cx_git_open_checkout(o->git, &where, &checkout, &why);
    if (!cx_failed(status)) {
        status = cx_checkout_update_apply(checkout, &plan->old, &plan->commit, &why);
        cx_git_close(checkout);
    }
    if (!cx_failed(status) && lasting)
        status = cx_checkout_update_end(o->git, &why);
    if (cx_failed(status))
        plan->detail = cx_arena_printf(arena,
                                       "%s moved, but its checkout did not follow: %s; 'cortex run "
                                       "cleanup --apply' tries it again",
                                       o->main_ref.data, why.message);
}

static cx_status apply_locked(const cx_merge_options *options, cx_merge_plan *plan, cx_arena *arena,
                              cx_err *err)
{
    const cx_checkout_update what = {options->main_ref, plan->old, plan->commit};
    bool lasting = plan->checkout != NULL && options->own_checkout == NULL;
    if (lasting)
        CX_TRY(cx_checkout_update_begin(options->git, &what, err)); /* I4 */
    cx_status status = move_ref(options, plan, arena, err);
    bool moved = !cx_failed(status) && plan->kind != CX_MERGE_REFUSED;
    if (moved && plan->checkout != NULL)
        update_checkout(options, plan, lasting, arena);
    if (!moved && lasting)
        (void)cx_failed(
            cx_checkout_update_end(options->git, NULL)); /* left, it would be passed over */
    return status;
}

cx_status cx_run_merge_apply(const cx_merge_options *options, cx_merge_plan *plan, cx_arena *arena,
                             cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL);
    cx_file lock;
    if (plan->kind == CX_MERGE_REFUSED)
        return cx_fail(err, CX_E_USAGE, "a merge that was refused cannot be applied");
    CX_TRY(cx_run_worktrees_lock(options->git, 0, &lock, err));
    cx_status status = apply_locked(options, plan, arena, err);
    cx_flock_release(lock);
    return status;
}

cx_status cx_run_note_add(const cx_git *git, const cx_oid *commit, cx_str text, int64_t time_s,
                          cx_err *err)
{
    char name[CX_OID_TEXT_SIZE], author[64], committer[64];
    cx_oid_text(commit, name);
    (void)snprintf(author, sizeof author, "GIT_AUTHOR_DATE=@%lld +0000", (long long)time_s);
    (void)snprintf(committer, sizeof committer, "GIT_COMMITTER_DATE=@%lld +0000",
                   (long long)time_s);
    const char *const env[] = {"GIT_AUTHOR_NAME=cortex",
                               "GIT_AUTHOR_EMAIL=cortex@localhost",
                               "GIT_COMMITTER_NAME=cortex",
                               "GIT_COMMITTER_EMAIL=cortex@localhost",
                               author,
                               committer,
                               NULL};
    cx_git_call call = {.args =
                            CX_GIT_ARGS("notes", "--ref=" NOTES_REF, "add", "-f", "-F", "-", name),
                        .input = cx_str_bytes(text),
                        .env = env,
                        .bare = true};
    return cx_git_call_run(git, &call, NULL, NULL, err);
}
