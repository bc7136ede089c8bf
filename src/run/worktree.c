/*
 * worktree.c - the work trees of runs (run.md §11).
 *
 * Invariants:
 *   I1  the list of work trees changes under the lock alone, whichever process changes it.
 *   I2  a commit that evidence names stays reachable: a branch is deleted only when it was merged,
 * or under another name already.
 */
#include "run/worktree.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/folder.h"
#include "run/git_parts.h"

#define LOCK_WAIT_MS UINT64_C(60000)
#define REF_MAX 700

/* --- names ------------------------------------------------------------------------------------ */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

cx_str cx_run_ref_component(cx_str id, cx_arena *arena)
{
    static const char digits[] = "0123456789ABCDEF";
    char *out = CX_ARENA_ARRAY(arena, char, 3 * id.size + 1);
    size_t size = 0;
    if (out == NULL)
        return (cx_str){NULL, 0};
    for (size_t i = 0; i < id.size; i++) {
        char c = id.data[i];
        /* Git refuses "..", a first or last dot, and ".lock" at the end; a first '-' is an option.
         */
        bool dot = c == '.' && (i == 0 || i + 1 == id.size || id.data[i - 1] == '.' ||
                                cx_str_is((cx_str){id.data + i, id.size - i}, ".lock"));
        if (is_plain(c) && !dot && !(c == '-' && i == 0)) {
            out[size++] = c;
            continue;
        }
        out[size++] = '%';
        out[size++] = digits[(uint8_t)c >> 4];
        out[size++] = digits[(uint8_t)c & 15];
    }
    out[size] = '\0';
    return (cx_str){out, size};
}

typedef struct names {
    const char *path;     /* absolute */
    const char *relative; /* from the runtime root */
    cx_str branch;        /* empty when detached */
    cx_str kept;          /* refs/cortex/runs/.. */
} names;

static cx_status check_id(const char *what, cx_str id, cx_err *err)
{
    return id.size != 0 && id.size <= 128
               ? CX_SUCCESS
               : cx_fail(err, CX_E_USAGE, "a %s has 1 to 128 bytes", what);
}

static cx_status make_names(const cx_worktree_options *o, cx_arena *arena, names *out, cx_err *err)
{
    CX_TRY(check_id("run id", o->run_id, err));
    CX_TRY(check_id("task id", o->task_id, err));
    if (o->runtime_root == NULL || o->runtime_root[0] != '/')
        return cx_fail(err, CX_E_USAGE, "the runtime root is given by an absolute path");
    cx_str run = cx_run_ref_component(o->run_id, arena);
    cx_str task = cx_run_ref_component(o->task_id, arena);
    if (run.data == NULL || task.data == NULL)
        return cx_fail_nomem(err);
    const char *suffix = o->suffix.size == 0 ? "" : cx_arena_copy_str(arena, o->suffix).data;
    if (suffix == NULL)
        return cx_fail_nomem(err);
    if (o->serial && o->suffix.size == 0)
        out->relative = cx_arena_printf(arena, "worktrees/%s", run.data).data;
    else if (o->serial) /* beside it, as nothing may stand inside */
        out->relative = cx_arena_printf(arena, "worktrees/%s%s", run.data, suffix).data;
    else
        out->relative =
            cx_arena_printf(arena, "worktrees/%s/%s%s", run.data, task.data, suffix).data;
    if (out->relative == NULL)
        return cx_fail_nomem(err);
    out->path = cx_arena_printf(arena, "%s/%s", o->runtime_root, out->relative).data;
    out->branch = o->suffix.size != 0
                      ? CX_STR("")
                      : cx_arena_printf(arena, "refs/heads/cortex/%s/%s", run.data, task.data);
    out->kept = cx_arena_printf(arena, "refs/cortex/runs/%s/%s", run.data, task.data);
    if (out->path == NULL || out->branch.data == NULL || out->kept.data == NULL)
        return cx_fail_nomem(err);
    return strlen(out->path) > CX_PATH_BYTES_MAX - 256
               ? cx_fail(err, CX_E_LIMIT, "the path of the work tree would be too long")
               : CX_SUCCESS;
}

/* --- under the lock --------------------------------------------------------------------------- */

cx_status cx_run_worktrees_lock(const cx_git *repo, uint64_t wait_ms, cx_file *out, cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1];
    int size = snprintf(path, sizeof path, "%s/cortex-worktrees.lock", cx_git_common_dir(repo));
    if (size < 0 || (size_t)size >= sizeof path)
        return cx_fail(err, CX_E_LIMIT, "the path of the repository is too long");
    return cx_flock_take(path, wait_ms != 0 ? wait_ms : LOCK_WAIT_MS, out, err);
}

static cx_status prune(const cx_git *repo, cx_err *err)
{
    cx_git_call call = {.args = CX_GIT_ARGS("worktree", "prune"), .bare = true};
    return cx_git_call_run(repo, &call, NULL, NULL, err);
}

static cx_status make_parent(const char *path, cx_err *err)
{
    char parent[CX_PATH_BYTES_MAX + 1];
    const char *slash = strrchr(path, '/');
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return cx_path_make_folders(parent, err);
}

static cx_status check_absent(const names *n, cx_err *err)
{
    cx_facts facts;
    cx_status status = cx_path_facts(n->path, false, &facts, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    return cx_fail(err, CX_E_EXISTS, "there is a work tree %s already", n->relative);
}

/* The user's line endings are not what the candidate is made of. */
#define ADD_CONFIG "-c", "core.autocrlf=false"

static cx_status remove_locked(const cx_git *repo, const char *path, cx_err *err);

/* What a failed `git worktree add` leaves: git takes back its folder, but not the branch. */
static void undo_add(const cx_git *repo, const names *n, const cx_oid *commit)
{
    const cx_oid none = {.size = 0};
    (void)!cx_failed(remove_locked(repo, n->path, NULL));
    if (n->branch.size != 0) /* fails when the branch is elsewhere, or was not made */
        (void)!cx_failed(cx_git_ref_set(repo, n->branch, &none, commit, NULL));
}

static cx_status add_locked(const cx_git *repo, const cx_worktree_options *o, const names *n,
                            cx_err *err)
{
    char commit[CX_OID_TEXT_SIZE], object[CX_OID_TEXT_SIZE + 16];
    cx_oid_text(&o->commit, commit);
    (void)snprintf(object, sizeof object, "%s^{commit}", commit);
    CX_TRY(prune(repo, err));
    int code = 0;
    cx_git_call exists = {.args = CX_GIT_ARGS("cat-file", "-e", object), .bare = true};
    CX_TRY(cx_git_call_run(repo, &exists, NULL, &code, err));
    if (code != 0)
        return cx_fail(err, CX_E_NOT_FOUND, "the repository has no commit %s", commit);
    CX_TRY(check_absent(n, err));
    CX_TRY(make_parent(n->path, err));
    const char *branch = n->branch.size == 0 ? NULL : n->branch.data + strlen("refs/heads/");
    cx_git_call add = {.args = branch == NULL
                                   ? CX_GIT_ARGS(ADD_CONFIG, "worktree", "add", "--quiet",
                                                 "--detach", n->path, commit)
                                   : CX_GIT_ARGS(ADD_CONFIG, "worktree", "add", "--quiet",
                                                 "--no-track", "-b", branch, n->path, commit),
                       .bare = true};
    cx_status status = cx_git_call_run(repo, &add, NULL, NULL, err);
    if (cx_failed(status)) {
        undo_add(repo, n, &o->commit);
        return status;
    }
    return CX_SUCCESS;
}

cx_status cx_run_worktree_add(const cx_git *repo, const cx_worktree_options *options,
                              cx_arena *arena, cx_worktree *out, cx_err *err)
{
    names n;
    cx_file lock;
    cx_oid existing;
    memset(out, 0, sizeof *out);
    CX_TRY(make_names(options, arena, &n, err));
    CX_TRY(cx_run_worktrees_lock(repo, options->wait_ms, &lock, err));
    cx_status status = CX_SUCCESS;
    if (n.branch.size != 0) {
        status = cx_git_ref(repo, n.branch, &existing, err);
        if (!cx_failed(status))
            status = cx_fail(err, CX_E_EXISTS, "there is a branch %s already",
                             n.branch.data + strlen("refs/heads/"));
        else if (status.code == CX_E_NOT_FOUND)
            status = CX_SUCCESS;
    }
    if (!cx_failed(status))
        status = add_locked(repo, options, &n, err);
    cx_flock_release(lock);
    CX_TRY(status);
    *out = (cx_worktree){.path = n.path, .relative = n.relative, .branch = n.branch};
    cx_git_options how = cx_git_options_of(repo);
    return cx_git_open(n.path, &how, NULL, &out->git, err);
}

/* --- removing --------------------------------------------------------------------------------- */

/* Git first, which knows its own entry; what it will not remove is removed here. */
static cx_status remove_locked(const cx_git *repo, const char *path, cx_err *err)
{
    int code = 0;
    cx_git_call call = {.args = CX_GIT_ARGS("worktree", "remove", "--force", "--force", path),
                        .bare = true};
    CX_TRY(cx_git_call_run(repo, &call, NULL, &code, err));
    CX_TRY(cx_path_remove_tree(path, err));
    return prune(repo, err);
}

/* `branch` ends; what it pointed at stays reachable as `kept` unless it was merged. */
static cx_status end_branch(const cx_git *repo, cx_str branch, cx_str kept, bool merged,
                            cx_err *err)
{
    cx_oid now, old;
    cx_status status = cx_git_ref(repo, branch, &now, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    if (!merged) {
        status = cx_git_ref(repo, kept, &old, err);
        if (status.code == CX_E_NOT_FOUND)
            old.size = 0;
        else
            CX_TRY(status);
        CX_TRY(cx_git_ref_set(repo, kept, &now, &old, err));
    }
    const cx_oid none = {.size = 0};
    return cx_git_ref_set(repo, branch, &none, &now, err);
}

typedef struct stray_search {
    cx_arena *arena;
    cx_str prefix; /* "refs/heads/cortex/<run>/" */
    const cx_worktree_listed *listed;
    size_t listed_count;
    CX_VEC(cx_str) strays;
    bool failed;
} stray_search;

static bool note_stray(void *arg, const char *name)
{
    stray_search *s = arg;
    size_t size = strlen(name);
    for (size_t i = 0; i < s->listed_count; i++) {
        cx_str branch = s->listed[i].branch;
        if (branch.size == s->prefix.size + size && cx_str_starts(branch, s->prefix) &&
            memcmp(branch.data + s->prefix.size, name, size) == 0)
            return true;
    }
    cx_str kept = cx_arena_copy_str(s->arena, cx_str_z(name));
    cx_str *slot = kept.data == NULL ? NULL : cx_vec_push(&s->strays, s->arena->alloc);
    s->failed = slot == NULL;
    if (slot != NULL)
        *slot = kept;
    return slot != NULL;
}

/*
 * An agent may write where its branch is, so that it can commit (§11).  What lies there and is no
 * branch of a work tree goes: references beside its own are no evidence, the diff gate has judged
 * them (D03), and the repository is to be what it was.
 */
static cx_status sweep_branches(const cx_git *repo, cx_str branch, cx_arena *arena, cx_err *err)
{
    stray_search s = {.arena = arena, .prefix = branch};
    cx_worktree_listed *listed = NULL;
    cx_file folder;
    while (s.prefix.size != 0 && s.prefix.data[s.prefix.size - 1] != '/')
        s.prefix.size--;
    cx_str path = cx_arena_printf(arena, "%s/%.*s", cx_git_common_dir(repo), (int)s.prefix.size - 1,
                                  s.prefix.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    if (cx_failed(cx_folder_open(path.data, &folder, NULL)))
        return CX_SUCCESS; /* nobody left anything */
    cx_status status = cx_run_worktree_list(repo, "/", arena, &listed, &s.listed_count, err);
    s.listed = listed;
    if (!cx_failed(status))
        status = cx_folder_list(folder, "", note_stray, &s, err);
    if (!cx_failed(status) && s.failed)
        status = cx_fail_nomem(err);
    for (size_t i = 0; i < s.strays.count && !cx_failed(status); i++)
        status = cx_folder_remove_tree(folder, s.strays.items[i].data, err);
    cx_vec_done(&s.strays, arena->alloc);
    cx_folder_close(folder);
    return status;
}

/* The run's folder goes with its last work tree. */
static void remove_empty_parent(const char *path)
{
    char parent[CX_PATH_BYTES_MAX + 1];
    cx_file folder;
    const char *slash = strrchr(path, '/'), *name = slash;
    while (name > path && name[-1] != '/')
        name--;
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path);
    char last[CX_PATH_BYTES_MAX + 1];
    (void)snprintf(last, sizeof last, "%.*s", (int)(slash - name), name);
    if (strcmp(last, "worktrees") == 0 || cx_failed(cx_folder_open(parent, &folder, NULL)))
        return;
    cx_status ignored = cx_folder_remove(folder, last, NULL); /* fails while others are there */
    (void)ignored;
    cx_folder_close(folder);
}

cx_status cx_run_worktree_remove(const cx_git *repo, const cx_worktree_options *options,
                                 cx_worktree *worktree, bool merged, cx_err *err)
{
    names n;
    cx_file lock;
    cx_arena arena;
    cx_git_close(worktree->git);
    worktree->git = NULL;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = make_names(options, &arena, &n, err);
    if (!cx_failed(status))
        status = cx_run_worktrees_lock(repo, options->wait_ms, &lock, err);
    if (!cx_failed(status)) {
        status = remove_locked(repo, n.path, err);
        if (!cx_failed(status) && n.branch.size != 0)
            status = end_branch(repo, n.branch, n.kept, merged, err);
        if (!cx_failed(status) && n.branch.size != 0)
            status = sweep_branches(repo, n.branch, &arena, err);
        remove_empty_parent(n.path);
        cx_flock_release(lock);
    }
    cx_arena_done(&arena);
    return status;
}

/* --- listing ---------------------------------------------------------------------------------- */

static void take_attribute(cx_str field, cx_worktree_listed *item)
{
    static const cx_str head = {"HEAD ", 5}, branch = {"branch ", 7}, prunable = {"prunable", 8};
    if (cx_str_starts(field, head))
        (void)cx_oid_parse((cx_str){field.data + head.size, field.size - head.size}, &item->head);
    else if (cx_str_starts(field, branch))
        item->branch = (cx_str){field.data + branch.size, field.size - branch.size};
    else if (cx_str_starts(field, prunable))
        item->prunable = true;
}

/* Whether it stands below ROOT/worktrees, and for which run. */
static void take_owner(const char *root, cx_worktree_listed *item)
{
    size_t size = strlen(root);
    cx_str rest = item->path;
    if (!cx_str_starts(rest, (cx_str){root, size}))
        return;
    rest.data += size;
    rest.size -= size;
    if (!cx_str_starts(rest, CX_STR("/worktrees/")))
        return;
    rest.data += 11;
    rest.size -= 11;
    const char *slash = rest.size == 0 ? NULL : memchr(rest.data, '/', rest.size);
    item->ours = rest.size != 0;
    item->run_id = (cx_str){rest.data, slash == NULL ? rest.size : (size_t)(slash - rest.data)};
}

static cx_status parse_list(cx_str text, const char *root, cx_arena *arena,
                            cx_worktree_listed **out, size_t *out_count, cx_err *err)
{
    size_t room = 1, count = 0;
    cx_git_fields fields = {text, false};
    cx_str field;
    while (cx_git_field(&fields, &field))
        room += cx_str_starts(field, CX_STR("worktree "));
    cx_worktree_listed *items = CX_ARENA_ARRAY(arena, cx_worktree_listed, room);
    if (items == NULL)
        return cx_fail_nomem(err);
    fields = (cx_git_fields){text, false};
    while (cx_git_field(&fields, &field)) {
        if (cx_str_starts(field, CX_STR("worktree "))) {
            memset(&items[count], 0, sizeof *items);
            items[count].path = (cx_str){field.data + 9, field.size - 9};
            items[count].branch = CX_STR("");
            take_owner(root, &items[count]);
            count++;
        } else if (count != 0) {
            take_attribute(field, &items[count - 1]);
        }
    }
    *out = items;
    *out_count = count;
    return CX_SUCCESS;
}

cx_status cx_run_worktree_list(const cx_git *repo, const char *runtime_root, cx_arena *arena,
                               cx_worktree_listed **out, size_t *out_count, cx_err *err)
{
    cx_buf text, real;
    cx_buf_init(&text, cx_alloc_default());
    cx_buf_init(&real, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("worktree", "list", "--porcelain", "-z"), .bare = true};
    /* Git names real paths; a root that is not there yet has no work trees below it. */
    const char *root = runtime_root;
    if (!cx_failed(cx_path_real(runtime_root, &real, NULL)))
        root = cx_buf_z(&real);
    cx_status status =
        root == NULL ? cx_fail_nomem(err) : cx_git_call_run(repo, &call, &text, NULL, err);
    cx_str kept = {NULL, 0};
    if (!cx_failed(status))
        kept = cx_arena_copy_str(arena, cx_buf_str(&text));
    if (!cx_failed(status))
        status = kept.data == NULL ? cx_fail_nomem(err)
                                   : parse_list(kept, root, arena, out, out_count, err);
    cx_buf_done(&text);
    cx_buf_done(&real);
    return status;
}

cx_status cx_run_worktree_drop(const cx_git *repo, const char *runtime_root,
                               const cx_worktree_listed *listed, cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1], kept[REF_MAX];
    static const cx_str ours = {"refs/heads/cortex/", 18};
    cx_file lock;
    if (!listed->ours || listed->path.size > CX_PATH_BYTES_MAX || runtime_root == NULL)
        return cx_fail(err, CX_E_USAGE, "only work trees of runs are dropped");
    (void)snprintf(path, sizeof path, "%.*s", (int)listed->path.size, listed->path.data);
    CX_TRY(cx_run_worktrees_lock(repo, 0, &lock, err));
    cx_status status = remove_locked(repo, path, err);
    if (!cx_failed(status) && cx_str_starts(listed->branch, ours)) {
        int size =
            snprintf(kept, sizeof kept, "refs/cortex/runs/%.*s",
                     (int)(listed->branch.size - ours.size), listed->branch.data + ours.size);
        status = size < 0 || (size_t)size >= sizeof kept
                     ? cx_fail(err, CX_E_LIMIT, "the name of a branch is too long")
                     : end_branch(repo, listed->branch, cx_str_z(kept), false, err);
    }
    remove_empty_parent(path);
    cx_flock_release(lock);
    return status;
}
