/*
 * contract_repo.c - answers questions about commits with git.
 */
#include "contract/contract_repo.h"

static cx_status resolve_commit(void *arg, cx_str ref, cx_arena *arena, cx_str *out_commit,
                                cx_err *err)
{
    const cx_run_git_repo *repo = arg;
    char text[CX_OID_TEXT_SIZE];
    cx_oid commit;
    cx_status status = cx_git_resolve(repo->git, ref, &commit, err);
    *out_commit = cx_str_from(NULL, 0);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    if (cx_failed(status))
        return status;
    cx_oid_text(&commit, text);
    *out_commit = cx_arena_copy_str(arena, cx_str_z(text));
    return out_commit->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status is_commit_in_head(void *arg, cx_str commit, bool *out, cx_err *err)
{
    const cx_run_git_repo *repo = arg;
    cx_oid asked, head;
    *out = false;
    if (!cx_oid_parse(commit, &asked))
        return cx_fail(err, CX_E_FORMAT, "expected the full name of a commit");
    CX_TRY(cx_git_resolve(repo->git, CX_STR("HEAD"), &head, err));
    return cx_git_is_ancestor(repo->git, &asked, &head, out, err);
}

/* The tree of `commit`, read once. */
static cx_status load_commit_tree(cx_run_git_repo *repo, cx_str commit, cx_err *err)
{
    cx_oid oid;
    cx_git_tree tree;
    if (repo->commit.size != 0 && cx_str_eq(repo->commit, commit))
        return CX_SUCCESS;
    if (!cx_oid_parse(commit, &oid))
        return cx_fail(err, CX_E_FORMAT, "expected the full name of a commit");
    cx_str copy = cx_arena_copy_str(repo->arena, commit);
    if (copy.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_git_tree_read(repo->git, &oid, repo->arena, &tree, err));
    cx_str *files = CX_ARENA_ARRAY(repo->arena, cx_str, tree.count + 1);
    if (files == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < tree.count; i++)
        files[i] = tree.entries[i].path;
    repo->commit = copy;
    repo->tree = tree;
    repo->files = (cx_run_tree){files, tree.count};
    return CX_SUCCESS;
}

/* Whether a file is below `path`, so that `path` is a folder. */
static bool is_folder(const cx_git_tree *tree, cx_str path)
{
    for (size_t i = 0; i < tree->count; i++) {
        cx_str file = tree->entries[i].path;
        if (cx_str_starts(file, path) && file.size > path.size && file.data[path.size] == '/')
            return true;
    }
    return false;
}

static cx_status read_blob(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                           cx_arena *arena, cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    cx_run_git_repo *repo = arg;
    cx_oid oid;
    cx_buf bytes;
    cx_err own = {0};
    uint32_t mode = 0;
    CX_TRY(load_commit_tree(repo, commit, err));
    const cx_git_entry *entry = cx_git_tree_find(&repo->tree, path);
    *out = (cx_bytes){NULL, 0};
    if (entry == NULL || (entry->mode & 0170000) != 0100000) {
        bool other = entry != NULL || is_folder(&repo->tree, path);
        *out_kind = other ? CX_BLOB_OTHER : CX_BLOB_NONE;
        return CX_SUCCESS;
    }
    if (!cx_oid_parse(commit, &oid))
        return cx_fail(err, CX_E_FORMAT, "expected the full name of a commit");
    cx_buf_init(&bytes, cx_alloc_default());
    cx_status status = cx_git_show(repo->git, &oid, path, limit_bytes, &bytes, &mode, &own);
    if (status.code == CX_E_LIMIT) {
        *out_kind = CX_BLOB_TOO_BIG;
        status = CX_SUCCESS;
    } else if (!cx_failed(status)) {
        cx_str copy = cx_arena_copy_str(arena, cx_buf_str(&bytes));
        *out = cx_str_bytes(copy);
        *out_kind = CX_BLOB_FILE;
        if (copy.data == NULL)
            status = cx_fail_nomem(err);
    } else if (err != NULL) {
        *err = own;
    }
    cx_buf_done(&bytes);
    return status;
}

static cx_status list_files(void *arg, cx_str commit, cx_arena *arena, cx_run_tree *out,
                            cx_err *err)
{
    cx_run_git_repo *repo = arg;
    (void)arena; /* the tree lives in the arena of the repository */
    CX_TRY(load_commit_tree(repo, commit, err));
    *out = repo->files;
    return CX_SUCCESS;
}

cx_run_repo cx_run_git_repo_init(cx_run_git_repo *out, const cx_git *git, cx_arena *arena)
{
    CX_ASSERT(git != NULL && arena != NULL);
    *out = (cx_run_git_repo){.git = git, .arena = arena};
    return (cx_run_repo){out, resolve_commit, is_commit_in_head, read_blob, list_files, NULL};
}

cx_run_path_context cx_run_path_context_of(const char *worktree, const char *runtime_root)
{
    CX_ASSERT(worktree[0] == '/' && runtime_root[0] == '/');
    size_t size = strlen(worktree);
    cx_run_path_context ground = {CX_STR("")};
    if (strncmp(worktree, runtime_root, size) == 0 && runtime_root[size] == '/')
        ground.runtime_root = cx_str_z(runtime_root + size + 1);
    return ground;
}
