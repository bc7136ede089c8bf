/*
 * rollback.c - restores a worktree after a refusal (run.md §15).
 *
 * Files and git directory are checked out from the baseline, into new folders that replace
 * the old ones: nothing that an agent left is given to git, and what the agent still has open is
 * not in the work tree any more.  Then a new snapshot is compared with the one from before the
 * agent: what the comparison does not confirm is not a rollback.
 *
 * References and files of the repository that an agent without a sandbox changed are not put back:
 * the snapshot has their hashes, not their contents.  The comparison says so.
 */
#include "candidate/candidate.h"

#include <stdio.h>

#include "git/api.h"
#include "candidate/isolation.h"

/* --- the branch ------------------------------------------------------------------------------- */

static cx_status read_current_head(const cx_git *git, cx_str ref, cx_oid *out, cx_err *err)
{
    cx_status status = cx_git_ref(git, ref, out, err);
    if (status.code != CX_E_NOT_FOUND)
        return status;
    out->size = 0;
    return CX_SUCCESS;
}

/* The branch names the commit, wherever the agent left it. */
static cx_status set_branch(const cx_rollback_options *o, const cx_oid *to, cx_err *err)
{
    char name[1024];
    cx_oid now;
    if (o->branch.size == 0)
        return CX_SUCCESS;
    int size = snprintf(name, sizeof name, "%.*s", (int)o->branch.size, o->branch.data);
    if (size < 0 || (size_t)size >= sizeof name)
        return cx_fail(err, CX_E_LIMIT, "the name of the task branch is too long");
    /* A branch that the agent made a name for another one is a branch of its own again. */
    cx_git_call plain = {.args = CX_GIT_ARGS("symbolic-ref", "--delete", "--quiet", name),
                         .bare = true};
    int code;
    CX_TRY(cx_git_call_run(o->git, &plain, NULL, &code, err));
    CX_TRY(read_current_head(o->git, o->branch, &now, err));
    return cx_oid_eq(&now, to) ? CX_SUCCESS : cx_git_ref_set(o->git, o->branch, to, &now, err);
}

/* Empty folders, and modes, are in no commit. */
static cx_status restore_folders(const cx_rollback_options *o, cx_err *err)
{
    cx_file root;
    CX_TRY(cx_folder_open(cx_git_worktree(o->git), &root, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < o->snapshot->file_count && !cx_failed(status); i++) {
        const cx_snap_file *was = &o->snapshot->files[i];
        cx_facts facts;
        if (was->facts.kind != CX_FILE_FOLDER && was->facts.kind != CX_FILE_REGULAR)
            continue;
        bool found = !cx_failed(cx_folder_facts(root, was->path.data, &facts, NULL));
        if (!found && was->facts.kind == CX_FILE_FOLDER) {
            status = cx_folder_make_folders(root, was->path.data, was->facts.mode, err);
            found = !cx_failed(status) &&
                    !cx_failed(cx_folder_facts(root, was->path.data, &facts, NULL));
        }
        if (found && facts.kind == was->facts.kind && facts.mode != was->facts.mode)
            status = cx_folder_set_mode(root, was->path.data, was->facts.mode, err);
    }
    cx_folder_close(root);
    return status;
}

/* --- verifying -------------------------------------------------------------------------------- */

/* Files, index, and HEAD's branch are what they were; times do not count. */
static cx_status verify_restored(const cx_rollback_options *o, const cx_oid *head, cx_arena *arena,
                                 cx_rollback_report *out, cx_err *err)
{
    cx_snapshot *after;
    cx_run_findings findings;
    CX_TRY(cx_snapshot_read(o->git, NULL, &after, err));
    cx_run_findings_init(&findings, arena);
    /* Others may have moved references meanwhile; what the agent did to them is reported by the
     * gate.
     */
    cx_run_isolation_compare(o->snapshot, after, true, &findings);
    const cx_run_finding *first = NULL;
    for (size_t i = 0; i < findings.list.count && first == NULL; i++) {
        const cx_run_finding *finding = &findings.list.items[i];
        /* HEAD is compared below: a revert moves it forward. */
        if (!finding->informs && !cx_str_is(finding->detail, "head"))
            first = finding;
    }
    bool on_branch = cx_str_eq(after->head_ref, o->snapshot->head_ref);
    out->head = after->head;
    if (first != NULL)
        out->reason =
            cx_arena_printf(arena, "%.*s: %.*s", (int)first->where.size, first->where.data,
                            (int)first->message.size, first->message.data);
    else if (!on_branch || !cx_oid_eq(&after->head, head))
        out->reason = cx_arena_copy_str(arena, CX_STR("HEAD is not where it was"));
    else
        out->verified = !findings.failed;
    cx_run_findings_done(&findings);
    cx_snapshot_close(after);
    return !out->verified && out->reason.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- the strategies --------------------------------------------------------------------------- */

static cx_status reset_to(const cx_rollback_options *o, const cx_oid *to, cx_arena *arena,
                          cx_rollback_report *out, cx_err *err)
{
    CX_TRY(set_branch(o, to, err));
    CX_TRY(cx_run_worktree_renew(o->git, o->git, o->branch, to, err));
    CX_TRY(restore_folders(o, err));
    return verify_restored(o, to, arena, out, err);
}

/* One commit on top of what is reverted, with the baseline's tree: what reverting each of them in
 * turn comes to, and it cannot conflict. */
static cx_status revert_commits(const cx_rollback_options *o, cx_arena *arena,
                                cx_rollback_report *out, cx_err *err)
{
    cx_oid head, target = o->target, tree, commit;
    char base[CX_OID_TEXT_SIZE], text[CX_OID_TEXT_SIZE], message[512];
    bool above = false;
    CX_TRY(read_current_head(o->git, o->branch, &head, err));
    if (head.size == 0)
        head = o->baseline;
    target = target.size == 0 ? head : target;
    CX_TRY(cx_git_is_ancestor(o->git, &target, &head, &above, err));
    if (!above || !cx_oid_eq(&target, &head)) {
        out->reason = CX_STR("the commit to revert is not the newest of the task branch");
        return CX_SUCCESS;
    }
    if (cx_oid_eq(&head, &o->baseline))
        return reset_to(o, &o->baseline, arena, out, err);
    CX_TRY(cx_git_tree_of(o->git, &o->baseline, &tree, err));
    cx_oid_text(&o->baseline, base);
    cx_oid_text(&head, text);
    int size = snprintf(message, sizeof message,
                        "cortex: revert to the baseline\n\nThis reverts the commits %s..%s.\n",
                        base, text);
    cx_commit_facts facts = {.tree = tree,
                             .parents = &head,
                             .parent_count = 1,
                             .message = {message, (size_t)size},
                             .time_s = o->time_s};
    CX_TRY(cx_git_commit_tree(o->git, &facts, &commit, err));
    return reset_to(o, &commit, arena, out, err);
}

static cx_status drop_worktree(const cx_rollback_options *o, cx_rollback_report *out, cx_err *err)
{
    cx_facts facts;
    const char *path = cx_git_worktree(o->git);
    if (!cx_git_is_linked(o->git))
        return cx_fail(err, CX_E_USAGE, "the main checkout is not dropped");
    cx_file lock;
    CX_TRY(cx_run_worktrees_lock(o->git, 0, &lock, err));
    cx_status status = cx_path_remove_tree(path, err);
    if (!cx_failed(status))
        status = cx_path_remove_tree(cx_git_dir(o->git), err);
    cx_flock_release(lock);
    CX_TRY(status);
    out->verified = cx_path_facts(path, false, &facts, NULL).code == CX_E_NOT_FOUND &&
                    cx_path_facts(cx_git_dir(o->git), false, &facts, NULL).code == CX_E_NOT_FOUND;
    if (!out->verified)
        out->reason = CX_STR("the work tree is still there");
    return CX_SUCCESS;
}

cx_status cx_run_rollback(const cx_rollback_options *options, cx_arena *arena,
                          cx_rollback_report *out, cx_err *err)
{
    CX_ASSERT(options != NULL && arena != NULL && out != NULL);
    memset(out, 0, sizeof *out);
    out->reason = CX_STR("");
    if (options->strategy != CX_ROLL_WORKTREE_DROP && options->snapshot == NULL)
        return cx_fail(err, CX_E_USAGE, "a rollback is verified by the snapshot from before");
    switch (options->strategy) {
    case CX_ROLL_RESET_HARD: return reset_to(options, &options->baseline, arena, out, err);
    case CX_ROLL_REVERT_COMMIT: return revert_commits(options, arena, out, err);
    case CX_ROLL_WORKTREE_DROP: return drop_worktree(options, out, err);
    }
    return cx_fail(err, CX_E_USAGE, "there is no such strategy");
}
