/*
 * diff_rules.c - the rules of the diff gate over what the views found (run.md §9).
 *
 * One path may break several rules in several views: each is reported once per view.  What is below
 * a protected name is refused as such (D06), whether or not the contract allows it (D07).
 */
#include "candidate/diff_parts.h"

#include "base/api.h"
#include "git/api.h"
#include "rules/api.h"

#define REFUSED_MAX 2000 /* findings of one gate; beyond, the first say enough */

static void add_finding(cx_diff_job *job, const char *rule, cx_str where, cx_str view,
                        const char *message)
{
    if (job->findings->list.count < REFUSED_MAX)
        cx_run_findings_reject(job->findings, rule, where, view, "%s", message);
}

/* --- names ------------------------------------------------------------------------------------ */

bool cx_diff_is_git_name(cx_str name)
{
    char folded[4 * 256 + 16];
    size_t size;
    if (name.size < 4 || name.size > 255)
        return false;
    uint8_t first = (uint8_t)name.data[0];
    /* Only these can fold to ".git", and they are rare. */
    if (first != '.' && first != 'g' && first != 'G' && first < 0x80)
        return false;
    return cx_run_path_fold(name, folded, sizeof folded, &size) &&
           cx_str_eq((cx_str){folded, size}, CX_STR(".git"));
}

/* --- D06, D07, D09..D12 ----------------------------------------------------------------------- */

static bool is_binary(const cx_diff_job *job, uint32_t mode, const cx_oid *oid)
{
    const cx_diff_blob *blob = cx_mode_is_file(mode) ? cx_diff_blob_find(job, oid) : NULL;
    /* Contents that no object store has cannot be called text. */
    return cx_mode_is_file(mode) && !cx_oid_is_zero(oid) &&
           (blob == NULL || blob->missing || blob->binary);
}

static bool may_be_binary(const cx_diff_job *job, cx_str path)
{
    for (size_t i = 0; i < job->options->binary_ok_count; i++)
        if (cx_str_eq(job->options->binary_ok[i], path))
            return true;
    return false;
}

static bool has_kind(const cx_diff_change *change, uint32_t kind)
{
    return (change->old_mode & CX_MODE_KIND) == kind || (change->new_mode & CX_MODE_KIND) == kind;
}

static void check_modes(cx_diff_job *job, const cx_diff_view *view, const cx_diff_change *change)
{
    uint32_t mode = change->new_mode;
    if (has_kind(change, CX_MODE_LINK))
        add_finding(job, "D09", change->path, view->name,
                    "a symbolic link was added, removed or changed; links are refused");
    if (has_kind(change, CX_MODE_GITLINK))
        add_finding(job, "D10", change->path, view->name,
                    "a submodule (gitlink) was added, removed or moved; submodules are refused");
    if (cx_mode_is_file(mode) && mode != 0100644 && mode != 0100755)
        add_finding(job, "D11", change->path, view->name, "the mode is neither 100644 nor 100755");
    if (cx_mode_is_file(mode) && cx_mode_is_file(change->old_mode) && mode != change->old_mode &&
        cx_str_is(view->name, "disk"))
        cx_run_findings_inform(job->findings, "D11", change->path, view->name,
                               "mode %06o became %06o", change->old_mode, mode);
}

/* The contract decides about everything else: a change to it is not its own to allow. */
static bool is_contract(const cx_diff_job *job, cx_str path)
{
    return job->options->contract_path.size != 0 &&
           cx_run_path_overlap(job->options->contract_path, path, job->options->ground) !=
               CX_RUN_APART;
}

static void check_change(cx_diff_job *job, const cx_diff_view *view, const cx_diff_change *change)
{
    const cx_diff_options *options = job->options;
    if (cx_run_path_protected(change->path, options->ground))
        add_finding(job, "D06", change->path, view->name,
                    "the path is protected: no run may change it");
    else if (is_contract(job, change->path))
        add_finding(job, "D06", change->path, view->name,
                    "it is the contract itself, which people change in a change of its own");
    else if (!cx_run_path_covered(options->allowed_paths, options->allowed_count, change->path))
        add_finding(job, "D07", change->path, view->name,
                    "the path is outside allowed_paths; undo the change or widen the contract");
    check_modes(job, view, change);
    if ((is_binary(job, change->old_mode, &change->old_oid) ||
         is_binary(job, change->new_mode, &change->new_oid)) &&
        !may_be_binary(job, change->path))
        add_finding(job, "D12", change->path, view->name,
                    "the contents are binary; list the exact path as an output with acceptance "
                    "binary-ok to allow it");
}

/* --- D14 -------------------------------------------------------------------------------------- */

/* Normal form C and case folding, no more (D14): trailing dots are another name.  False when the
 * text is not UTF-8 or cannot be folded here; then it stands for itself. */
static bool fold_name(cx_str path, char *out, size_t capacity, size_t *out_size)
{
    int32_t codes[CX_RUN_PATH_BYTES_MAX];
    size_t count = 0;
    bool ascii = true;
    for (size_t i = 0; i < path.size && ascii; i++) {
        char c = path.data[i];
        ascii = (uint8_t)c < 0x80;
        out[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    *out_size = path.size;
    if (ascii)
        return true;
    if (path.size > CX_COUNT_OF(codes) || !cx_utf8_valid(path))
        return false;
    for (size_t at = 0, step; at < path.size; at += step)
        codes[count++] = (int32_t)cx_utf8_decode((const uint8_t *)path.data + at, &step);
    return cx_unicode_compose(codes, count, true, out, capacity, out_size);
}

static cx_status fold_path(cx_arena *arena, cx_str path, cx_str *out, cx_err *err)
{
    size_t room = 4 * path.size + 16, size;
    char *folded = CX_ARENA_ARRAY(arena, char, room);
    if (folded == NULL)
        return cx_fail_nomem(err);
    *out = fold_name(path, folded, room, &size) ? (cx_str){folded, size} : path;
    return CX_SUCCESS;
}

/* Folds every path of the candidate; a change whose fold is taken by another path collides. */
static cx_status fill_folds(cx_diff_job *job, cx_map *folds, cx_err *err)
{
    CX_TRY(cx_map_reserve(folds, job->candidate_count, err));
    for (size_t i = 0; i < job->candidate_count; i++) {
        cx_str folded;
        uint64_t *value;
        bool fresh;
        CX_TRY(fold_path(job->arena, job->candidate[i].path, &folded, err));
        CX_TRY(cx_map_put(folds, folded, &value, &fresh, err));
        /* The number of the path, or that there is more than one. */
        *value = fresh ? i + 1 : UINT64_MAX;
    }
    return CX_SUCCESS;
}

static cx_status check_name(cx_diff_job *job, const cx_diff_view *view,
                            const cx_diff_change *change, const cx_map *folds, cx_err *err)
{
    cx_str folded;
    if (!cx_run_text_is_nfc(change->path))
        add_finding(job, "D14", change->path, view->name,
                    "the name is not UTF-8 in normal form C; rename it");
    else if (cx_run_text_has_ignorable(change->path))
        add_finding(job, "D14", change->path, view->name,
                    "the name has a character that shows nothing; rename it");
    if (change->new_mode == 0)
        return CX_SUCCESS;
    CX_TRY(fold_path(job->arena, change->path, &folded, err));
    const uint64_t *other = cx_map_find(folds, folded);
    if (other != NULL &&
        (*other == UINT64_MAX || !cx_str_eq(job->candidate[*other - 1].path, change->path)))
        add_finding(job, "D14", change->path, view->name,
                    "another path differs from it in case or form alone; rename it");
    return CX_SUCCESS;
}

static cx_status check_names(cx_diff_job *job, cx_err *err)
{
    bool any = false;
    cx_map folds;
    for (size_t v = 0; v < job->views.count; v++)
        any = any || job->views.items[v].count != 0;
    if (!any)
        return CX_SUCCESS;
    cx_map_init(&folds, job->arena->alloc, cx_io_seed(cx_io_system()));
    cx_status status = fill_folds(job, &folds, err);
    for (size_t v = 0; v < job->views.count; v++) {
        const cx_diff_view *view = &job->views.items[v];
        for (size_t i = 0; i < view->count && !cx_failed(status); i++)
            status = check_name(job, view, &view->changes[i], &folds, err);
    }
    cx_map_done(&folds);
    return status;
}

cx_status cx_diff_check_paths(cx_diff_job *job, cx_err *err)
{
    for (size_t v = 0; v < job->views.count; v++) {
        const cx_diff_view *view = &job->views.items[v];
        for (size_t i = 0; i < view->count; i++)
            check_change(job, view, &view->changes[i]);
    }
    return check_names(job, err);
}

/* --- D13 -------------------------------------------------------------------------------------- */

/* Whether something of D13's kind was added: it is long enough to be told from chance. */
static bool is_copy_target(const cx_diff_job *job, const cx_diff_change *change)
{
    const cx_diff_blob *blob;
    if (change->old_mode != 0 || !cx_mode_is_file(change->new_mode) || change->ignored)
        return false;
    blob = cx_diff_blob_find(job, &change->new_oid);
    return blob != NULL && !blob->missing && blob->size_bytes >= CX_DIFF_BLOB_MIN;
}

static bool is_outside_file(const cx_diff_job *job, const cx_git_entry *entry)
{
    return entry != NULL && cx_mode_is_file(entry->mode) &&
           !cx_run_path_covered(job->options->allowed_paths, job->options->allowed_count,
                                entry->path);
}

static void add_copy_finding(cx_diff_job *job, const cx_diff_change *change, cx_str view,
                             cx_str source, unsigned score)
{
    if (job->findings->list.count < REFUSED_MAX)
        cx_run_findings_reject(job->findings, "D13", change->path, view,
                               "the new file is %u %% that of %.*s, which is outside allowed_paths",
                               score, (int)(source.size > 120 ? 120 : source.size), source.data);
}

/* Names of the contents of files outside, and where they are. */
static cx_status fill_outside(const cx_diff_job *job, cx_map *outside, cx_err *err)
{
    for (size_t i = 0; i < job->base.count; i++) {
        const cx_git_entry *entry = &job->base.entries[i];
        uint64_t *value;
        bool fresh;
        if (!is_outside_file(job, entry))
            continue;
        CX_TRY(cx_map_put(outside, (cx_str){(const char *)entry->oid.bytes, entry->oid.size},
                          &value, &fresh, err));
        if (fresh)
            *value = i;
    }
    return CX_SUCCESS;
}

/* Finds identical copies; counts what is left to be looked at for likeness in each view. */
static size_t check_identical_copies(cx_diff_job *job, const cx_diff_view *view,
                                     const cx_map *outside)
{
    size_t left = 0;
    for (size_t i = 0; i < view->count; i++) {
        const cx_diff_change *change = &view->changes[i];
        if (!is_copy_target(job, change))
            continue;
        const uint64_t *source = cx_map_find(
            outside, (cx_str){(const char *)change->new_oid.bytes, change->new_oid.size});
        if (source != NULL)
            add_copy_finding(job, change, view->name, job->base.entries[*source].path, 100);
        else
            left++;
    }
    return left;
}

static const cx_diff_change *find_change(const cx_diff_view *view, cx_str path)
{
    for (size_t i = 0; i < view->count; i++)
        if (cx_str_eq(view->changes[i].path, path))
            return &view->changes[i];
    return NULL;
}

/* What git's likeness of >= 50 % finds between two trees, the tree of the baseline first. */
static cx_status check_similar_copies(cx_diff_job *job, const cx_diff_view *view,
                                      const cx_git_call *call, cx_err *err)
{
    cx_buf text;
    cx_raw_diff raw = {.count = 0};
    cx_buf_init(&text, job->arena->alloc);
    cx_status status = cx_git_call_run(job->git, call, &text, NULL, err);
    if (!cx_failed(status))
        status = cx_raw_parse(cx_buf_str(&text), cx_git_oid_size(job->git), false, job->arena, &raw,
                              err);
    cx_buf_done(&text);
    for (size_t i = 0; i < raw.count && !cx_failed(status); i++) {
        const cx_raw_change *found = &raw.changes[i];
        if ((found->status != 'R' && found->status != 'C') || found->score == 100)
            continue; /* identical ones were reported already */
        const cx_diff_change *change = find_change(view, found->path);
        if (change != NULL && is_copy_target(job, change) &&
            is_outside_file(job, cx_git_tree_find(&job->base, found->from)))
            add_copy_finding(job, change, view->name, found->from, found->score);
    }
    return status;
}

#define ALIKE "-r", "-z", "--raw", "--no-abbrev", "-M", "-C", "--find-copies-harder", "-l0"

static cx_status alike_trees(cx_diff_job *job, const cx_diff_view *view, const cx_oid *to,
                             cx_err *err)
{
    char a[CX_OID_TEXT_SIZE], b[CX_OID_TEXT_SIZE];
    cx_oid_text(&job->baseline, a);
    cx_oid_text(to, b);
    cx_git_call call = {.args = CX_GIT_ARGS("diff-tree", ALIKE, a, b), .bare = true};
    return check_similar_copies(job, view, &call, err);
}

static cx_status alike_disk(cx_diff_job *job, const cx_diff_view *view, cx_err *err)
{
    cx_oid tree;
    CX_TRY(cx_diff_tree_oid(job->candidate, job->candidate_count, cx_git_oid_size(job->git), &tree,
                            err));
    CX_TRY(cx_diff_tree_write(job->git, &job->baseline, job->disk, job->disk_count, &tree, err));
    return alike_trees(job, view, &tree, err);
}

/* The index as a tree: its contents were taken over from the agent, or git says what is missing. */
static cx_status alike_index(cx_diff_job *job, const cx_diff_view *view, cx_err *err)
{
    const cx_snapshot *after = job->after;
    cx_git_entry *entries = CX_ARENA_ARRAY(job->arena, cx_git_entry, after->index_count + 1);
    size_t count = 0;
    cx_oid tree;
    if (entries == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < after->index_count; i++)
        if (after->index[i].stage == 0 && !(after->index[i].flags & CX_INDEX_INTENT_TO_ADD))
            entries[count++] =
                (cx_git_entry){after->index[i].path, after->index[i].mode, after->index[i].oid};
    CX_TRY(cx_diff_tree_store(job->git, entries, count, &tree, err));
    return alike_trees(job, view, &tree, err);
}

/* Against the baseline, not the commit's parent: what it was copied from is a file of the baseline.
 */
static cx_status alike_commit(cx_diff_job *job, const cx_diff_view *view, cx_err *err)
{
    cx_oid commit;
    cx_str id = {view->name.data + 7, view->name.size - 7}; /* "commit <id>" */
    if (!cx_oid_parse(id, &commit))
        return CX_SUCCESS;
    return alike_trees(job, view, &commit, err);
}

/* Whether every file that a view added is on disk too: then the disk's view answers for it. */
static bool is_on_disk(const cx_diff_job *job, const cx_diff_view *view)
{
    for (size_t i = 0; i < view->count; i++) {
        if (!is_copy_target(job, &view->changes[i]))
            continue;
        bool found = false;
        for (size_t k = 0; k < job->disk_count && !found; k++)
            found = cx_str_eq(job->disk[k].path, view->changes[i].path) &&
                    cx_oid_eq(&job->disk[k].new_oid, &view->changes[i].new_oid);
        if (!found)
            return false;
    }
    return true;
}

static cx_status check_likeness(cx_diff_job *job, const cx_diff_view *view, cx_err *err)
{
    if (cx_str_is(view->name, "disk"))
        return alike_disk(job, view, err);
    if (is_on_disk(job, view))
        return CX_SUCCESS;
    if (cx_str_is(view->name, "index"))
        return alike_index(job, view, err);
    if (cx_str_is(view->name, "head"))
        return alike_trees(job, view, &job->after->head, err);
    return alike_commit(job, view, err);
}

cx_status cx_diff_check_copies(cx_diff_job *job, cx_err *err)
{
    cx_map outside;
    bool any = false;
    for (size_t v = 0; v < job->views.count && !any; v++)
        for (size_t i = 0; i < job->views.items[v].count && !any; i++)
            any = is_copy_target(job, &job->views.items[v].changes[i]);
    if (!any)
        return CX_SUCCESS;
    cx_map_init(&outside, job->arena->alloc, cx_io_seed(cx_io_system()));
    cx_status status = fill_outside(job, &outside, err);
    for (size_t v = 0; v < job->views.count && !cx_failed(status); v++) {
        const cx_diff_view *view = &job->views.items[v];
        if (check_identical_copies(job, view, &outside) != 0 && outside.used != 0)
            status = check_likeness(job, view, err);
    }
    cx_map_done(&outside);
    return status;
}

/* --- D02, D03, D04 ---------------------------------------------------------------------------- */

/* What the user's own git, or another run, changes in passing.  Alternates are not among it. */
static bool is_of_other_owner(const cx_diff_job *job, cx_str name)
{
    return job->options->shared && (cx_str_starts(name, CX_STR("worktrees/")) ||
                                    cx_str_starts(name, CX_STR("objects/info/packs")) ||
                                    cx_str_starts(name, CX_STR("objects/info/commit-graph")));
}

static void add_repository_finding(cx_diff_job *job, const char *rule, cx_str name, bool others,
                                   const char *message)
{
    if (others)
        cx_run_findings_inform(job->findings, rule, name, CX_STR("repository"),
                               "%s, by another process: the agent cannot write there", message);
    else
        add_finding(job, rule, name, CX_STR("repository"), message);
}

static void check_metadata(cx_diff_job *job)
{
    const cx_snapshot *a = job->before, *b = job->after;
    size_t i = 0, k = 0;
    while (i < a->meta_count || k < b->meta_count) {
        int order = i == a->meta_count   ? 1
                    : k == b->meta_count ? -1
                                         : cx_str_cmp(a->metas[i].name, b->metas[k].name);
        cx_str name = order <= 0 ? a->metas[i].name : b->metas[k].name;
        bool same = order == 0 && a->metas[i].kind_mode == b->metas[k].kind_mode &&
                    cx_digest_eq(&a->metas[i].sha256, &b->metas[k].sha256);
        i += order <= 0;
        k += order >= 0;
        if (!same)
            add_repository_finding(job, "D02", name, is_of_other_owner(job, name),
                                   "a file of the repository itself was changed");
    }
    if (!cx_str_eq(a->head_ref, b->head_ref))
        add_finding(job, "D02", CX_STR("HEAD"), CX_STR("repository"),
                    "HEAD names another branch than before");
}

/* The folder of the task's branch is where the agent may write, so that it can commit (§11). */
static bool is_sibling_branch(const cx_snapshot *before, cx_str name)
{
    cx_str folder = before->head_ref;
    while (folder.size != 0 && folder.data[folder.size - 1] != '/')
        folder.size--;
    return folder.size > strlen("refs/heads/") && cx_str_starts(name, folder);
}

static void check_refs(cx_diff_job *job)
{
    const cx_snapshot *a = job->before, *b = job->after;
    size_t i = 0, k = 0;
    while (i < a->ref_count || k < b->ref_count) {
        int order = i == a->ref_count   ? 1
                    : k == b->ref_count ? -1
                                        : cx_str_cmp(a->refs[i].name, b->refs[k].name);
        const cx_snap_ref *old = order <= 0 ? &a->refs[i] : NULL;
        const cx_snap_ref *now = order >= 0 ? &b->refs[k] : NULL;
        cx_str name = old != NULL ? old->name : now->name;
        i += order <= 0;
        k += order >= 0;
        if (old != NULL && now != NULL && cx_oid_eq(&old->oid, &now->oid) &&
            cx_str_eq(old->target, now->target))
            continue;
        if (a->head_ref.size != 0 && cx_str_eq(name, a->head_ref)) {
            if (now == NULL || now->oid.size == 0)
                add_finding(job, "D03", name, CX_STR("repository"), "the task branch is gone");
            else if (now->target.size != 0)
                add_finding(job, "D03", name, CX_STR("repository"),
                            "the task branch became a name for another reference");
            continue;
        }
        add_repository_finding(job, "D03", name,
                               job->options->shared &&
                                   (job->options->has_siblings || !is_sibling_branch(a, name)),
                               old == NULL   ? "a reference was created"
                               : now == NULL ? "a reference was deleted"
                                             : "a reference was moved");
    }
}

static void check_index_flags(cx_diff_job *job)
{
    for (size_t i = 0; i < job->after->index_count; i++) {
        const cx_index_entry *entry = &job->after->index[i];
        if (entry->stage != 0)
            add_finding(job, "D04", entry->path, CX_STR("index"), "the index has it unmerged");
        else if (entry->flags & CX_INDEX_SKIP_WORKTREE)
            add_finding(job, "D04", entry->path, CX_STR("index"),
                        "the index marks it skip-worktree");
        else if (entry->flags & (CX_INDEX_ASSUME_UNCHANGED | CX_INDEX_FSMONITOR_VALID))
            add_finding(job, "D04", entry->path, CX_STR("index"),
                        "the index marks it assume-unchanged or fsmonitor-valid");
    }
}

cx_status cx_diff_check_repository(cx_diff_job *job, cx_err *err)
{
    bool descends = true;
    if (job->before != NULL) {
        check_metadata(job);
        check_refs(job);
    }
    check_index_flags(job);
    if (job->after->head.size == 0)
        descends = false;
    else if (!cx_oid_eq(&job->after->head, &job->baseline))
        CX_TRY(cx_git_is_ancestor(job->git, &job->baseline, &job->after->head, &descends, err));
    if (!descends)
        add_finding(job, "D03", CX_STR("HEAD"), CX_STR("head"),
                    "HEAD is not a descendant of the baseline");
    return CX_SUCCESS;
}
