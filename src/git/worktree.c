/*
 * worktree.c - the work trees of runs (run.md §11).
 *
 * Invariants I1, I2 and I3: worktree.h.
 */
#include "git/worktree.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/api.h"
#include "crypto/api.h"
#include "git/git_parts.h"
#include "git/snapshot.h"

#define LOCK_WAIT_MS UINT64_C(60000)
#define REF_MAX 700
#define ADMIN_PREFIX "cortex-"
#define ADMIN_HASH_BYTES 16
#define SMALL_FILE_BYTES_MAX ((size_t)CX_PATH_BYTES_MAX + 16)
#define LISTED_MAX 10000

/* --- names ------------------------------------------------------------------------------------ */

static bool is_plain_ref_byte(char c)
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
        if (is_plain_ref_byte(c) && !dot && !(c == '-' && i == 0)) {
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

typedef struct worktree_names {
    const char *path;     /* absolute */
    const char *git_dir;  /* <common>/worktrees/cortex-<hash of path> */
    const char *relative; /* from the runtime root */
    cx_str branch;        /* empty when detached */
    cx_str evidence_ref;  /* refs/cortex/runs/.. */
} worktree_names;

static cx_status check_id_size(const char *what, cx_str id, cx_err *err)
{
    return id.size != 0 && id.size <= 128
               ? CX_SUCCESS
               : cx_fail(err, CX_E_USAGE, "a %s has 1 to 128 bytes", what);
}

/* The git directory of a work tree, named by a hash of its path: the name identifies the owner even
 * if the files in it are changed. */
static const char *make_git_dir_path(const cx_git *repo, const char *path, cx_arena *arena)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * ADMIN_HASH_BYTES + 1] = "";
    cx_digest digest = cx_digest_of(cx_str_bytes(cx_str_z(path)));
    for (size_t i = 0; i < ADMIN_HASH_BYTES; i++) {
        hex[2 * i] = digits[digest.bytes[i] >> 4];
        hex[2 * i + 1] = digits[digest.bytes[i] & 15];
    }
    return cx_arena_printf(arena, "%s/worktrees/" ADMIN_PREFIX "%s", cx_git_common_dir(repo), hex)
        .data;
}

static cx_status make_worktree_names(const cx_git *repo, const cx_worktree_options *o,
                                     cx_arena *arena, worktree_names *out, cx_err *err)
{
    CX_TRY(check_id_size("run id", o->run_id, err));
    CX_TRY(check_id_size("task id", o->task_id, err));
    if (o->runtime_root == NULL || o->runtime_root[0] != '/')
        return cx_fail(err, CX_E_USAGE, "the runtime root must be an absolute path");
    cx_str run = cx_run_ref_component(o->run_id, arena);
    cx_str task = cx_run_ref_component(o->task_id, arena);
    if (run.data == NULL || task.data == NULL)
        return cx_fail_nomem(err);
    const char *suffix = o->suffix.size == 0 ? "" : cx_arena_copy_str(arena, o->suffix).data;
    if (suffix == NULL)
        return cx_fail_nomem(err);
    if (o->serial && o->suffix.size == 0)
        out->relative = cx_arena_printf(arena, "worktrees/%s", run.data).data;
    else if (o->serial) /* a sibling, because the work tree must not contain it */
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
    out->evidence_ref = cx_arena_printf(arena, "refs/cortex/runs/%s/%s", run.data, task.data);
    if (out->path == NULL || out->branch.data == NULL || out->evidence_ref.data == NULL)
        return cx_fail_nomem(err);
    out->git_dir = make_git_dir_path(repo, out->path, arena);
    if (out->git_dir == NULL)
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
    return cx_flock_acquire(path, wait_ms != 0 ? wait_ms : LOCK_WAIT_MS, out, err);
}

static cx_status make_parent(const char *path, cx_err *err)
{
    char parent[CX_PATH_BYTES_MAX + 1];
    const char *slash = strrchr(path, '/');
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return cx_path_make_folders(parent, err);
}

static cx_status check_worktree_absent(const worktree_names *n, cx_err *err)
{
    cx_facts facts;
    cx_status status = cx_path_facts(n->path, false, &facts, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    return cx_fail(err, CX_E_EXISTS, "the work tree %s exists already", n->relative);
}

/* --- a folder with the files of a commit ------------------------------------------------------ */

static cx_status write_text(cx_file folder, const char *name, cx_str text, cx_err *err)
{
    cx_file file;
    CX_TRY(cx_folder_open_in(
        folder, name, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE | CX_IO_PUBLIC, &file, err));
    cx_status status = cx_io_write_all(cx_io_system(), file, name, text.data, text.size, err);
    cx_folder_close(file);
    return status;
}

/* Writes a line that contains a path, which may hold any byte but a line break. */
static cx_status write_line(cx_file folder, const char *name, const char *before, cx_str text,
                            const char *after, cx_err *err)
{
    cx_buf line;
    cx_buf_init(&line, cx_alloc_default());
    cx_buf_printf(&line, "%s%.*s%s\n", before, (int)text.size, text.data, after);
    cx_status status = cx_buf_check(&line, err);
    if (!cx_failed(status))
        status = write_text(folder, name, cx_buf_str(&line), err);
    cx_buf_done(&line);
    return status;
}

/* gitrepository-layout: what makes a folder the git directory of a work tree. */
static cx_status make_git_dir(const char *git_dir, const char *path, cx_str branch,
                              const cx_oid *commit, cx_err *err)
{
    char text[CX_OID_TEXT_SIZE];
    cx_file folder;
    cx_oid_text(commit, text);
    CX_TRY(cx_path_make_folders(git_dir, err));
    CX_TRY(cx_folder_open(git_dir, &folder, err));
    cx_status status = write_line(folder, "commondir", "", CX_STR("../.."), "", err);
    if (!cx_failed(status))
        status = write_line(folder, "gitdir", "", cx_str_z(path), "/.git", err);
    if (!cx_failed(status))
        status = branch.size != 0 ? write_line(folder, "HEAD", "ref: ", branch, "", err)
                                  : write_line(folder, "HEAD", "", cx_str_z(text), "", err);
    cx_folder_close(folder);
    return status;
}

static cx_status make_worktree_folder(const char *path, const char *git_dir, cx_err *err)
{
    cx_file folder;
    CX_TRY(cx_path_make_folders(path, err));
    CX_TRY(cx_folder_open(path, &folder, err));
    cx_status status = write_line(folder, ".git", "gitdir: ", cx_str_z(git_dir), "", err);
    cx_folder_close(folder);
    return status;
}

/* Ignores the user's settings for line endings and sparse paths: the candidate must not depend on
 * them. */
static cx_status check_out_files(const cx_git *repo, const char *path, const char *git_dir,
                                 const cx_oid *commit, cx_err *err)
{
    char text[CX_OID_TEXT_SIZE];
    cx_git *git;
    const cx_git_checkout where = {.path = path, .git_dir = git_dir};
    cx_oid_text(commit, text);
    CX_TRY(cx_git_open_checkout(repo, &where, &git, err));
    cx_git_call call = {.args = CX_GIT_ARGS("-c", "core.autocrlf=false", "-c",
                                            "core.sparseCheckout=false", "read-tree", "--reset",
                                            "-u", text)};
    cx_status status = cx_git_call_run(git, &call, NULL, NULL, err);
    cx_git_close(git);
    return status;
}

/* Both folders are absent. */
static cx_status make_checkout(const cx_git *repo, const char *path, const char *git_dir,
                               cx_str branch, const cx_oid *commit, cx_err *err)
{
    CX_TRY(make_git_dir(git_dir, path, branch, commit, err));
    CX_TRY(make_worktree_folder(path, git_dir, err));
    return check_out_files(repo, path, git_dir, commit, err);
}

/* Removes the folder of git directories with the last of them, as git does. */
static void remove_empty_list(const cx_git *repo)
{
    cx_file folder;
    if (cx_failed(cx_folder_open(cx_git_common_dir(repo), &folder, NULL)))
        return;
    (void)cx_failed(cx_folder_remove(folder, "worktrees", NULL));
    cx_folder_close(folder);
}

static cx_status remove_worktree_locked(const cx_git *repo, const char *path, const char *git_dir,
                                        cx_err *err)
{
    CX_TRY(cx_path_remove_tree(path, err));
    CX_TRY(cx_path_remove_tree(git_dir, err));
    remove_empty_list(repo);
    return CX_SUCCESS;
}

/* Removes what a failed cx_run_worktree_add left. */
static void undo_worktree_add(const cx_git *repo, const worktree_names *n, const cx_oid *commit)
{
    const cx_oid none = {.size = 0};
    (void)cx_failed(remove_worktree_locked(repo, n->path, n->git_dir, NULL));
    if (n->branch.size != 0) /* fails when the branch is elsewhere, or was not made */
        (void)cx_failed(cx_git_ref_set(repo, n->branch, &none, commit, NULL));
}

static cx_status add_worktree_locked(const cx_git *repo, const cx_worktree_options *o,
                                     const worktree_names *n, cx_err *err)
{
    char text[CX_OID_TEXT_SIZE];
    cx_oid commit;
    const cx_oid none = {.size = 0};
    cx_oid_text(&o->commit, text);
    if (cx_failed(cx_git_resolve(repo, cx_str_z(text), &commit, NULL)))
        return cx_fail(err, CX_E_NOT_FOUND, "the repository has no commit %s", text);
    CX_TRY(check_worktree_absent(n, err));
    CX_TRY(cx_path_remove_tree(n->git_dir, err)); /* of a work tree that no longer exists */
    CX_TRY(make_parent(n->path, err));
    if (n->branch.size != 0)
        CX_TRY(cx_git_ref_set(repo, n->branch, &commit, &none, err));
    cx_status status = make_checkout(repo, n->path, n->git_dir, n->branch, &commit, err);
    if (cx_failed(status))
        undo_worktree_add(repo, n, &commit);
    return status;
}

static cx_status check_branch_absent(const cx_git *repo, cx_str branch, cx_err *err)
{
    cx_oid existing;
    if (branch.size == 0)
        return CX_SUCCESS;
    cx_status status = cx_git_ref(repo, branch, &existing, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    return cx_fail(err, CX_E_EXISTS, "the branch %s exists already",
                   branch.data + strlen("refs/heads/"));
}

cx_status cx_run_worktree_add(const cx_git *repo, const cx_worktree_options *options,
                              cx_arena *arena, cx_worktree *out, cx_err *err)
{
    worktree_names n;
    cx_file lock;
    memset(out, 0, sizeof *out);
    CX_TRY(make_worktree_names(repo, options, arena, &n, err));
    CX_TRY(cx_run_worktrees_lock(repo, options->wait_ms, &lock, err));
    cx_status status = check_branch_absent(repo, n.branch, err);
    if (!cx_failed(status))
        status = add_worktree_locked(repo, options, &n, err);
    cx_flock_release(lock);
    CX_TRY(status);
    *out = (cx_worktree){.path = n.path, .relative = n.relative, .branch = n.branch};
    const cx_git_checkout where = {.path = n.path, .git_dir = n.git_dir, .hostile = true};
    return cx_git_open_checkout(repo, &where, &out->git, err);
}

/*
 * The new folder is created next to the old one and renamed over it: a process that has the old
 * folder open or mounted keeps the old one.
 */
cx_status cx_run_worktree_renew(const cx_git *repo, const cx_git *worktree, cx_str branch,
                                const cx_oid *commit, cx_err *err)
{
    CX_ASSERT(cx_git_is_hostile(worktree)); /* I3 */
    char new_path[CX_PATH_BYTES_MAX + 1];
    cx_file lock;
    const char *path = cx_git_worktree(worktree), *git_dir = cx_git_dir(worktree);
    if (!cx_git_is_linked(worktree))
        return cx_fail(err, CX_E_USAGE, "the main checkout cannot be recreated");
    int size = snprintf(new_path, sizeof new_path, "%s.new", path);
    if (size < 0 || (size_t)size >= sizeof new_path)
        return cx_fail(err, CX_E_LIMIT, "the path of the work tree is too long");
    CX_TRY(cx_run_worktrees_lock(repo, 0, &lock, err));
    cx_status status = remove_worktree_locked(repo, new_path, git_dir, err);
    if (!cx_failed(status))
        status = make_git_dir(git_dir, path, branch, commit, err);
    if (!cx_failed(status))
        status = make_worktree_folder(new_path, git_dir, err);
    if (!cx_failed(status))
        status = check_out_files(repo, new_path, git_dir, commit, err);
    if (!cx_failed(status))
        status = cx_path_remove_tree(path, err);
    if (!cx_failed(status)) {
        const cx_io *io = cx_io_system();
        int failed = io->rename(io, new_path, path);
        if (failed != 0)
            status = cx_fail_os(err, -failed, "%s", path);
    }
    cx_flock_release(lock);
    return status;
}

/* --- removing --------------------------------------------------------------------------------- */

/* Deletes `branch`; unless it was merged, its commit stays reachable as `evidence_ref` (I2). */
static cx_status retire_branch(const cx_git *repo, cx_str branch, cx_str evidence_ref, bool merged,
                               cx_err *err)
{
    cx_oid now, old;
    cx_status status = cx_git_ref(repo, branch, &now, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    if (!merged) {
        status = cx_git_ref(repo, evidence_ref, &old, err);
        if (status.code == CX_E_NOT_FOUND)
            old.size = 0;
        else
            CX_TRY(status);
        CX_TRY(cx_git_ref_set(repo, evidence_ref, &now, &old, err));
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

static bool record_stray_branch(void *arg, const char *name)
{
    stray_search *s = arg;
    size_t size = strlen(name);
    for (size_t i = 0; i < s->listed_count; i++) {
        cx_str branch = s->listed[i].branch;
        if (branch.size == s->prefix.size + size && cx_str_starts(branch, s->prefix) &&
            memcmp(branch.data + s->prefix.size, name, size) == 0)
            return true;
    }
    cx_str evidence_ref = cx_arena_copy_str(s->arena, cx_str_z(name));
    cx_str *slot = evidence_ref.data == NULL ? NULL : cx_vec_push(&s->strays, s->arena->alloc);
    s->failed = slot == NULL;
    if (slot != NULL)
        *slot = evidence_ref;
    return slot != NULL;
}

/*
 * An agent without a sandbox may write in the folder of its branch. References there that no work
 * tree has checked out are deleted: they are no evidence, the diff gate has rejected them (D03),
 * and the repository returns to its earlier state.
 */
static cx_status delete_stray_branches(const cx_git *repo, cx_str branch, cx_arena *arena,
                                       cx_err *err)
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
        return CX_SUCCESS; /* no such folder: nothing was left */
    cx_status status = cx_run_worktree_list(repo, "/", arena, &listed, &s.listed_count, err);
    s.listed = listed;
    if (!cx_failed(status))
        status = cx_folder_list(folder, "", record_stray_branch, &s, err);
    if (!cx_failed(status) && s.failed)
        status = cx_fail_nomem(err);
    for (size_t i = 0; i < s.strays.count && !cx_failed(status); i++)
        status = cx_folder_remove_tree(folder, s.strays.items[i].data, err);
    cx_vec_done(&s.strays, arena->alloc);
    cx_folder_close(folder);
    return status;
}

/* Removes the run's folder with its last work tree. */
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
    worktree_names n;
    cx_file lock;
    cx_arena arena;
    cx_git_close(worktree->git);
    worktree->git = NULL;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = make_worktree_names(repo, options, &arena, &n, err);
    if (!cx_failed(status))
        status = cx_run_worktrees_lock(repo, options->wait_ms, &lock, err);
    if (!cx_failed(status)) {
        status = remove_worktree_locked(repo, n.path, n.git_dir, err);
        if (!cx_failed(status) && n.branch.size != 0)
            status = retire_branch(repo, n.branch, n.evidence_ref, merged, err);
        if (!cx_failed(status) && n.branch.size != 0)
            status = delete_stray_branches(repo, n.branch, &arena, err);
        remove_empty_parent(n.path);
        cx_flock_release(lock);
    }
    cx_arena_done(&arena);
    return status;
}

/* --- listing ---------------------------------------------------------------------------------- */

/* Determines whether a work tree is below ROOT/worktrees, and of which run it is. */
static void find_owner_run(const char *root, cx_worktree_listed *item)
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
    item->of_a_run = item->of_a_run || item->ours;
    item->run_id = (cx_str){rest.data, slash == NULL ? rest.size : (size_t)(slash - rest.data)};
}

typedef struct worktree_lister {
    const cx_git *repo;
    const char *root;     /* the real path */
    const char *git_dirs; /* <common>/worktrees */
    cx_arena *arena;
    CX_VEC(cx_worktree_listed) list;
    cx_status status;
    cx_err *err;
} worktree_lister;

/* The one line of a small file, in the arena; empty when it is absent or not a regular file. */
static cx_str read_small_file(worktree_lister *l, cx_file folder, const char *name)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_str line = CX_STR("");
    if (!cx_failed(cx_folder_read_file(folder, name, SMALL_FILE_BYTES_MAX, &text, NULL)))
        line = cx_buf_str(&text);
    while (line.size != 0 && (line.data[line.size - 1] == '\n' || line.data[line.size - 1] == ' '))
        line.size--;
    line = cx_arena_copy_str(l->arena, line);
    if (line.data == NULL)
        l->status = cx_fail_nomem(l->err);
    cx_buf_done(&text);
    return line;
}

static void read_worktree_head(worktree_lister *l, cx_file folder, cx_worktree_listed *item)
{
    cx_str line = read_small_file(l, folder, "HEAD");
    cx_oid oid;
    item->branch = CX_STR("");
    if (cx_failed(l->status))
        return;
    if (cx_str_starts(line, CX_STR("ref: ")))
        item->branch = (cx_str){line.data + 5, line.size - 5};
    else if (cx_oid_parse(line, &oid) && oid.size == cx_git_oid_size(l->repo))
        item->head = oid;
}

/* "<path>/.git"; since git 2.48 it may be relative to the git directory. */
static cx_str parse_gitdir_path(worktree_lister *l, cx_str git_dir, cx_str line)
{
    cx_buf real;
    if (!cx_str_ends(line, CX_STR("/.git")) || memchr(line.data, '\n', line.size) != NULL)
        return CX_STR("");
    line.size -= 5;
    if (line.size != 0 && line.data[0] == '/')
        return line;
    cx_str joined = cx_arena_printf(l->arena, "%s/%.*s", git_dir.data, (int)line.size, line.data);
    cx_buf_init(&real, cx_alloc_default());
    cx_str path = CX_STR("");
    if (joined.data != NULL && !cx_failed(cx_path_real(joined.data, &real, NULL)))
        path = cx_arena_copy_str(l->arena, cx_buf_str(&real));
    if (joined.data == NULL || path.data == NULL)
        l->status = cx_fail_nomem(l->err);
    cx_buf_done(&real);
    return path;
}

static bool is_path_missing(cx_str path, cx_arena *arena)
{
    cx_facts facts;
    cx_str pointer = cx_arena_printf(arena, "%.*s/.git", (int)path.size, path.data);
    return pointer.data == NULL ||
           cx_path_facts(pointer.data, false, &facts, NULL).code == CX_E_NOT_FOUND;
}

static bool list_git_dir(void *arg, const char *name)
{
    worktree_lister *l = arg;
    cx_file folder;
    cx_worktree_listed item = {.branch = {"", 0}, .run_id = {"", 0}};
    item.git_dir = cx_arena_printf(l->arena, "%s/%s", l->git_dirs, name);
    item.of_a_run = cx_str_starts(cx_str_z(name), CX_STR(ADMIN_PREFIX));
    if (item.git_dir.data == NULL) {
        l->status = cx_fail_nomem(l->err);
        return false;
    }
    item.path = item.git_dir;
    item.broken = true;
    if (!cx_failed(cx_folder_open(item.git_dir.data, &folder, NULL))) {
        cx_str line = read_small_file(l, folder, "gitdir");
        cx_str path = cx_failed(l->status) ? line : parse_gitdir_path(l, item.git_dir, line);
        if (!cx_failed(l->status) && path.size != 0) {
            item.path = path;
            item.broken = false;
            item.prunable = is_path_missing(path, l->arena);
            read_worktree_head(l, folder, &item);
        }
        cx_folder_close(folder);
    }
    find_owner_run(l->root, &item);
    cx_worktree_listed *slot =
        cx_failed(l->status) ? NULL : cx_vec_push(&l->list, cx_alloc_default());
    if (slot == NULL && !cx_failed(l->status))
        l->status = cx_fail_nomem(l->err);
    else if (slot != NULL)
        *slot = item;
    if (l->list.count > LISTED_MAX)
        l->status =
            cx_fail(l->err, CX_E_LIMIT, "the repository has more than %d work trees", LISTED_MAX);
    return !cx_failed(l->status);
}

/* Reads core.bare of the repository: if set, there is no main checkout. */
static cx_status read_core_bare(const cx_git *repo, bool *out, cx_err *err)
{
    cx_buf text;
    int code = 0;
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("config", "--type=bool", "--get", "core.bare"),
                        .bare = true,
                        .common = true};
    cx_status status = cx_git_call_run(repo, &call, &text, &code, err);
    *out = code == 0 && cx_str_is(cx_buf_str(&text), "true\n");
    cx_buf_done(&text);
    return status;
}

static cx_status list_main_checkout(worktree_lister *l)
{
    cx_file folder;
    cx_worktree_listed item = {.branch = {"", 0}, .run_id = {"", 0}};
    bool bare = false;
    item.path = cx_arena_copy_str(l->arena, cx_str_z(cx_git_main_worktree(l->repo)));
    item.git_dir = cx_arena_copy_str(l->arena, cx_str_z(cx_git_common_dir(l->repo)));
    if (item.path.data == NULL || item.git_dir.data == NULL)
        return cx_fail_nomem(l->err);
    CX_TRY(read_core_bare(l->repo, &bare, l->err));
    if (bare) {
        item.path = item.git_dir;
    } else if (!cx_failed(cx_folder_open(item.git_dir.data, &folder, NULL))) {
        read_worktree_head(l, folder, &item);
        cx_folder_close(folder);
    }
    cx_worktree_listed *slot = cx_vec_push(&l->list, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(l->err);
    *slot = item;
    return l->status;
}

static int compare_listed(const void *a, const void *b)
{
    return cx_str_cmp(((const cx_worktree_listed *)a)->path, ((const cx_worktree_listed *)b)->path);
}

/* Resolves the commits of branches in one call; a branch that does not exist yet has none. */
static cx_status resolve_branches(worktree_lister *l)
{
    cx_buf text;
    cx_snap_ref *refs = NULL;
    size_t count = 0;
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("for-each-ref",
                                            "--format=%(objectname) %(symref) %(refname)",
                                            "refs/heads/"),
                        .bare = true,
                        .common = true};
    cx_status status = cx_git_call_run(l->repo, &call, &text, NULL, l->err);
    if (!cx_failed(status))
        status = cx_refs_parse(cx_buf_str(&text), cx_git_oid_size(l->repo), l->arena, &refs, &count,
                               l->err);
    for (size_t i = 0; i < l->list.count && !cx_failed(status); i++)
        for (size_t k = 0; k < count; k++)
            if (cx_str_eq(refs[k].name, l->list.items[i].branch))
                l->list.items[i].head = refs[k].oid;
    cx_buf_done(&text);
    return status;
}

static cx_status list_worktrees(worktree_lister *l)
{
    CX_TRY(list_main_checkout(l));
    const cx_io *io = cx_io_system();
    int failed = io->list(io, l->git_dirs, list_git_dir, l);
    CX_TRY(l->status);
    if (failed != 0 && cx_fail_os(NULL, -failed, "list").code != CX_E_NOT_FOUND)
        return cx_fail_os(l->err, -failed, "%s", l->git_dirs);
    if (l->list.count > 1)
        qsort(l->list.items + 1, l->list.count - 1, sizeof *l->list.items, compare_listed);
    return resolve_branches(l);
}

cx_status cx_run_worktree_list(const cx_git *repo, const char *runtime_root, cx_arena *arena,
                               cx_worktree_listed **out, size_t *out_count, cx_err *err)
{
    cx_buf real;
    worktree_lister l = {.repo = repo, .root = runtime_root, .arena = arena, .err = err};
    l.status = CX_SUCCESS;
    l.git_dirs = cx_arena_printf(arena, "%s/worktrees", cx_git_common_dir(repo)).data;
    if (l.git_dirs == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&real, cx_alloc_default());
    /* Listed paths are resolved; a root that does not exist yet has no work trees below it. */
    if (!cx_failed(cx_path_real(runtime_root, &real, NULL)))
        l.root = cx_buf_z(&real);
    cx_status status = l.root == NULL ? cx_fail_nomem(err) : list_worktrees(&l);
    if (!cx_failed(status)) {
        *out = CX_ARENA_ARRAY(arena, cx_worktree_listed, l.list.count);
        *out_count = l.list.count;
        if (*out == NULL)
            status = cx_fail_nomem(err);
        else
            memcpy(*out, l.list.items, l.list.count * sizeof **out);
    }
    cx_vec_done(&l.list, cx_alloc_default());
    cx_buf_done(&real);
    return status;
}

cx_status cx_run_worktree_remove_orphan(const cx_git *repo, const char *runtime_root,
                                        const cx_worktree_listed *listed, cx_err *err)
{
    char path[CX_PATH_BYTES_MAX + 1], evidence_ref[REF_MAX];
    static const cx_str ours = {"refs/heads/cortex/", 18};
    cx_file lock;
    if (!listed->ours || listed->path.size > CX_PATH_BYTES_MAX || runtime_root == NULL)
        return cx_fail(err, CX_E_USAGE, "only work trees of runs can be removed");
    (void)snprintf(path, sizeof path, "%.*s", (int)listed->path.size, listed->path.data);
    CX_TRY(cx_run_worktrees_lock(repo, 0, &lock, err));
    cx_status status = remove_worktree_locked(repo, path, listed->git_dir.data, err);
    if (!cx_failed(status) && cx_str_starts(listed->branch, ours)) {
        int size =
            snprintf(evidence_ref, sizeof evidence_ref, "refs/cortex/runs/%.*s",
                     (int)(listed->branch.size - ours.size), listed->branch.data + ours.size);
        status = size < 0 || (size_t)size >= sizeof evidence_ref
                     ? cx_fail(err, CX_E_LIMIT, "the name of a branch is too long")
                     : retire_branch(repo, listed->branch, cx_str_z(evidence_ref), false, err);
    }
    remove_empty_parent(path);
    cx_flock_release(lock);
    return status;
}

/* --- branches and git directories without a work tree ----------------------------------------- */

typedef struct stray_sweep {
    const cx_git *repo;
    cx_worktree_is_needed *is_needed;
    void *needed_arg;
    bool apply;
    cx_arena *arena;
    CX_VEC(cx_worktree_leftover) list;
} stray_sweep;

static const cx_str run_branches = {"refs/heads/cortex/", 18};

/* Decodes the run id from a branch name (see cx_run_ref_component); empty when the name has another
 * form. */
static cx_str decode_branch_run_id(cx_str branch, cx_arena *arena, cx_err *err, cx_status *status)
{
    cx_str rest = {branch.data + run_branches.size, branch.size - run_branches.size};
    const char *slash = memchr(rest.data, '/', rest.size);
    size_t size = slash == NULL ? 0 : (size_t)(slash - rest.data), count = 0;
    char *id = CX_ARENA_ARRAY(arena, char, size + 1);
    *status = id == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    for (size_t i = 0; id != NULL && i < size; i++) {
        char c = rest.data[i];
        if (c == '%') {
            char digits[3] = {i + 1 < size ? rest.data[i + 1] : '?',
                              i + 2 < size ? rest.data[i + 2] : '?', 0};
            char *end;
            c = (char)strtoul(digits, &end, 16);
            if (end != digits + 2 || c == '/' || c == 0)
                return (cx_str){"", 0};
            i += 2;
        }
        id[count++] = c;
    }
    return (cx_str){id, count};
}

static cx_status record_stray(stray_sweep *s, cx_str name, bool branch, cx_status ended,
                              const cx_err *why, cx_err *err)
{
    cx_worktree_leftover *slot = cx_vec_push(&s->list, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (cx_worktree_leftover){.name = name, .branch = branch, .why = {"", 0}};
    slot->done = s->apply && !cx_failed(ended);
    if (cx_failed(ended))
        slot->why = cx_arena_copy_str(s->arena, cx_str_z(why->message));
    return slot->why.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status sweep_stray_branch(stray_sweep *s, cx_str branch, const cx_worktree_listed *listed,
                                    size_t count, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_err why = {0};
    for (size_t i = 0; i < count; i++)
        if (cx_str_eq(listed[i].branch, branch))
            return CX_SUCCESS;
    cx_str run_id = decode_branch_run_id(branch, s->arena, err, &status);
    if (cx_failed(status) || run_id.size == 0 || s->is_needed(s->needed_arg, run_id))
        return status;
    cx_str evidence_ref =
        cx_arena_printf(s->arena, "refs/cortex/runs/%.*s", (int)(branch.size - run_branches.size),
                        branch.data + run_branches.size);
    if (evidence_ref.data == NULL)
        return cx_fail_nomem(err);
    if (s->apply)
        status = retire_branch(s->repo, branch, evidence_ref, false, &why);
    return record_stray(s, branch, true, status, &why, err);
}

/* A process that creates or removes a work tree holds the lock, so an incomplete git directory seen
 * under the lock is that of a crashed run. */
static cx_status sweep_stray_git_dirs(stray_sweep *s, const cx_worktree_listed *listed, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_err why = {0};
    cx_str name = listed->git_dir;
    cx_str before = cx_str_z(cx_git_common_dir(s->repo));
    if (!listed->broken || !listed->of_a_run || name.size <= before.size + 1)
        return CX_SUCCESS;
    name = (cx_str){name.data + before.size + 1, name.size - before.size - 1};
    if (s->apply)
        status = cx_path_remove_tree(listed->git_dir.data, &why);
    return record_stray(s, name, false, status, &why, err);
}

static cx_status sweep_strays(stray_sweep *s, const char *runtime_root, cx_err *err)
{
    cx_worktree_listed *listed = NULL;
    cx_snap_ref *refs = NULL;
    size_t count = 0, ref_count = 0;
    cx_buf text;
    CX_TRY(cx_run_worktree_list(s->repo, runtime_root, s->arena, &listed, &count, err));
    for (size_t i = 0; i < count; i++)
        CX_TRY(sweep_stray_git_dirs(s, &listed[i], err));
    if (s->apply)
        remove_empty_list(s->repo);
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {.args = CX_GIT_ARGS("for-each-ref",
                                            "--format=%(objectname) %(symref) %(refname)",
                                            "refs/heads/cortex/"),
                        .bare = true,
                        .common = true};
    cx_status status = cx_git_call_run(s->repo, &call, &text, NULL, err);
    if (!cx_failed(status))
        status = cx_refs_parse(cx_buf_str(&text), cx_git_oid_size(s->repo), s->arena, &refs,
                               &ref_count, err);
    for (size_t i = 0; i < ref_count && !cx_failed(status); i++)
        status = sweep_stray_branch(s, refs[i].name, listed, count, err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_run_worktree_leftovers(const cx_git *repo, const char *runtime_root,
                                    cx_worktree_is_needed *is_needed, void *needed_arg, bool apply,
                                    cx_arena *arena, cx_worktree_leftover **out, size_t *out_count,
                                    cx_err *err)
{
    CX_ASSERT(is_needed != NULL);
    stray_sweep s = {.repo = repo,
                     .is_needed = is_needed,
                     .needed_arg = needed_arg,
                     .apply = apply,
                     .arena = arena};
    cx_file lock;
    CX_TRY(cx_run_worktrees_lock(repo, 0, &lock, err));
    cx_status status = sweep_strays(&s, runtime_root, err);
    cx_flock_release(lock);
    if (!cx_failed(status)) {
        *out = CX_ARENA_ARRAY(arena, cx_worktree_leftover, s.list.count + 1);
        *out_count = s.list.count;
        if (*out == NULL)
            status = cx_fail_nomem(err);
        else if (s.list.count != 0)
            memcpy(*out, s.list.items, s.list.count * sizeof **out);
    }
    cx_vec_done(&s.list, cx_alloc_default());
    return status;
}
