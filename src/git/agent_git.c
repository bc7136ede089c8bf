/*
 * agent_git.c - creates the writable part of git for an agent, and imports from it afterwards.
 *
 * Invariants I1 and I2: agent_git.h.
 */
#include "git/agent_git.h"

#include "os/api.h"
#include "git/git_index.h"
#include "git/git_pack.h"
#include "git/git_parts.h"

#define OBJECTS_MAX 200000
#define IMPORT_TIMEOUT_MS UINT64_C(120000) /* all packs: a small one can expand to a terabyte */
#define SMALL_FILE_BYTES_MAX ((size_t)64 << 10)

/* --- creating it ------------------------------------------------------------------------------ */

static cx_status copy_small_file(cx_file from, cx_file to, const char *name, size_t limit_bytes,
                                 cx_err *err)
{
    cx_buf contents;
    cx_file file;
    cx_buf_init(&contents, cx_alloc_default());
    cx_status status = cx_folder_read_file(from, name, limit_bytes, &contents, err);
    if (!cx_failed(status))
        status = cx_folder_open_in(
            to, name, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE | CX_IO_PUBLIC, &file, err);
    if (!cx_failed(status)) {
        status = cx_io_write_all(cx_io_system(), file, name, contents.data, contents.size, err);
        cx_folder_close(file);
    }
    cx_buf_done(&contents);
    return status;
}

static cx_status copy_git_dir(const char *from, const char *to, cx_err *err)
{
    static const char *const names[] = {"HEAD", "commondir", "gitdir"};
    cx_file source, target;
    CX_TRY(cx_folder_open(from, &source, err));
    cx_status status = cx_folder_open(to, &target, err);
    if (cx_failed(status)) {
        cx_folder_close(source);
        return status;
    }
    for (size_t i = 0; i < CX_COUNT_OF(names) && !cx_failed(status); i++)
        status = copy_small_file(source, target, names[i], SMALL_FILE_BYTES_MAX, err);
    if (!cx_failed(status))
        status = copy_small_file(source, target, "index", CX_INDEX_BYTES_MAX, err);
    cx_folder_close(source);
    cx_folder_close(target);
    return status;
}

/* Writes the branch as a loose file, even if the repository stores it in packed-refs. */
static cx_status copy_branch(const cx_worktree *worktree, const cx_agent_git *into, cx_err *err)
{
    char line[CX_OID_TEXT_SIZE + 1];
    cx_oid oid;
    cx_file folder, file;
    const char *name = worktree->branch.data + into->ref_prefix.size;
    CX_TRY(cx_git_ref(worktree->git, worktree->branch, &oid, err));
    cx_oid_text(&oid, line);
    size_t size = strlen(line);
    line[size++] = '\n';
    CX_TRY(cx_folder_open(into->ref_dir, &folder, err));
    cx_status status =
        cx_folder_open_in(folder, name, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file, err);
    if (!cx_failed(status)) {
        status = cx_io_write_all(cx_io_system(), file, name, line, size, err);
        cx_folder_close(file);
    }
    cx_folder_close(folder);
    return status;
}

cx_status cx_agent_git_make(const cx_worktree *worktree, const char *hidden, const char *scratch,
                            bool without_refs, cx_arena *arena, cx_agent_git *out, cx_err *err)
{
    CX_ASSERT(cx_git_is_hostile(worktree->git));
    CX_ASSERT(hidden[0] == '/' && scratch[0] == '/');
    cx_str git_dir = cx_arena_printf(arena, "%s/git", hidden);
    cx_str ref_dir = cx_arena_printf(arena, "%s/refs", hidden);
    cx_str object_dir = cx_arena_printf(arena, "%s/objects", scratch);
    cx_agent_git made = {.git_dir = git_dir.data, .object_dir = object_dir.data};
    if (git_dir.data == NULL || ref_dir.data == NULL || object_dir.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_path_make_folders(made.git_dir, err));
    CX_TRY(cx_path_make_folders(made.object_dir, err));
    CX_TRY(copy_git_dir(cx_git_dir(worktree->git), made.git_dir, err));
    if (!without_refs && worktree->branch.size != 0) {
        made.ref_dir = ref_dir.data;
        made.ref_prefix = worktree->branch;
        while (made.ref_prefix.size != 0 && made.ref_prefix.data[made.ref_prefix.size - 1] != '/')
            made.ref_prefix.size--;
        CX_TRY(cx_path_make_folders(made.ref_dir, err));
        CX_TRY(copy_branch(worktree, &made, err));
    }
    *out = made;
    return CX_SUCCESS;
}

/* --- importing from it ------------------------------------------------------------------------ */

void cx_agent_objects_init(cx_agent_objects *objects)
{
    cx_map_init(&objects->names, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_arena_init(&objects->arena, cx_alloc_default(), 0);
}

void cx_agent_objects_done(cx_agent_objects *objects)
{
    cx_map_done(&objects->names);
    cx_arena_done(&objects->arena);
}

typedef struct object_walk {
    cx_agent_objects *imported;
    CX_VEC(cx_str) loose; /* paths of new objects, in the arena of `imported` */
    CX_VEC(cx_str) packs;
    size_t count;
    cx_status status;
    cx_err *err;
} object_walk;

static bool is_hex(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

static bool is_loose_path(cx_str path)
{
    return (path.size == 41 || path.size == 65) && path.data[2] == '/' && is_hex(path.data, 2) &&
           is_hex(path.data + 3, path.size - 3);
}

static cx_status record_new_object(object_walk *w, cx_str path, bool loose)
{
    cx_str copy;
    if (cx_map_find(&w->imported->names, path) != NULL)
        return CX_SUCCESS;
    copy = cx_arena_copy_str(&w->imported->arena, path);
    cx_str *slot = copy.data == NULL ? NULL
                   : loose           ? cx_vec_push(&w->loose, cx_alloc_default())
                                     : cx_vec_push(&w->packs, cx_alloc_default());
    if (slot == NULL)
        return cx_fail_nomem(w->err);
    *slot = copy;
    return CX_SUCCESS;
}

static cx_walk_step visit_agent_object(void *arg, const cx_walk_entry *entry)
{
    object_walk *w = arg;
    cx_str path = {entry->path, entry->path_size};
    if (entry->facts.kind != CX_FILE_REGULAR)
        return CX_WALK_ON;
    if (++w->count > OBJECTS_MAX) {
        w->status =
            cx_fail(w->err, CX_E_LIMIT, "the agent made more than %d git objects", OBJECTS_MAX);
        return CX_WALK_STOP;
    }
    bool loose = is_loose_path(path);
    if (loose || (cx_str_starts(path, CX_STR("pack/")) && cx_str_ends(path, CX_STR(".pack"))))
        w->status = record_new_object(w, path, loose);
    return cx_failed(w->status) ? CX_WALK_STOP : CX_WALK_ON;
}

/* "ab/cdef.." names the object. */
static bool object_name_matches(const cx_oid *oid, cx_str path)
{
    char text[CX_OID_TEXT_SIZE];
    cx_oid_text(oid, text);
    return strncmp(text, path.data, 2) == 0 && strcmp(text + 2, path.data + 3) == 0;
}

static cx_status add_object_if_named(cx_git_pack *pack, cx_object_type type, cx_bytes contents,
                                     cx_str path, cx_err *err)
{
    cx_oid oid = cx_git_object_oid(pack->oid_size, cx_git_type_name(type), contents);
    if (!object_name_matches(&oid, path))
        return cx_fail(err, CX_E_FORMAT,
                       "the git object %s of the agent has another name than its "
                       "contents",
                       path.data);
    return cx_git_pack_add(pack, type, contents, err);
}

static cx_status pack_loose_object(cx_git_pack *pack, cx_file folder, cx_str path, cx_err *err)
{
    cx_buf file, contents;
    cx_object_type type = CX_OBJECT_BLOB;
    cx_buf_init(&file, cx_alloc_default());
    cx_buf_init(&contents, cx_alloc_default());
    cx_status status = cx_folder_read_file(folder, path.data, CX_GIT_OBJECT_BYTES_MAX, &file, err);
    if (!cx_failed(status))
        status =
            cx_git_loose_parse(cx_buf_bytes(&file), CX_GIT_OBJECT_BYTES_MAX, &type, &contents, err);
    if (!cx_failed(status))
        status = add_object_if_named(pack, type, cx_buf_bytes(&contents), path, err);
    cx_buf_done(&file);
    cx_buf_done(&contents);
    return status;
}

static cx_status import_loose_objects(const cx_git *git, cx_file folder, const object_walk *w,
                                      cx_err *err)
{
    cx_git_pack pack;
    cx_status status = CX_SUCCESS;
    cx_git_pack_init(&pack, cx_git_oid_size(git));
    for (size_t i = 0; i < w->loose.count && !cx_failed(status); i++)
        status = pack_loose_object(&pack, folder, w->loose.items[i], err);
    if (!cx_failed(status))
        status = cx_git_pack_store(&pack, git, true, err);
    cx_git_pack_done(&pack);
    return status;
}

static cx_status import_packs(const cx_git *git, cx_file folder, const object_walk *w, cx_err *err)
{
    const cx_io *io = cx_io_system();
    uint64_t since = io->monotonic_ns(io);
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < w->packs.count && !cx_failed(status); i++) {
        cx_buf pack;
        uint64_t spent_ms = (io->monotonic_ns(io) - since) / UINT64_C(1000000);
        if (spent_ms >= IMPORT_TIMEOUT_MS)
            return cx_fail(err, CX_E_TIMEOUT,
                           "importing the agent's git objects took longer than %d s",
                           (int)(IMPORT_TIMEOUT_MS / 1000));
        cx_buf_init(&pack, cx_alloc_default());
        status =
            cx_folder_read_file(folder, w->packs.items[i].data, CX_GIT_PACK_BYTES_MAX, &pack, err);
        if (!cx_failed(status))
            status = cx_git_pack_store_bytes(git, cx_buf_bytes(&pack), IMPORT_TIMEOUT_MS - spent_ms,
                                             err);
        cx_buf_done(&pack);
    }
    return status;
}

static cx_status mark_imported(cx_agent_objects *imported, const cx_str *paths, size_t count,
                               cx_err *err)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t *value;
        bool fresh;
        CX_TRY(cx_map_put(&imported->names, paths[i], &value, &fresh, err));
    }
    return CX_SUCCESS;
}

cx_status cx_agent_git_import_objects(const cx_git *git, const char *object_dir,
                                      cx_agent_objects *imported, cx_err *err)
{
    CX_ASSERT(object_dir[0] == '/');
    object_walk w = {.imported = imported, .status = CX_SUCCESS, .err = err};
    cx_file folder;
    CX_TRY(cx_folder_open(object_dir, &folder, err));
    cx_status status = cx_folder_walk(folder, NULL, visit_agent_object, &w, err);
    if (!cx_failed(status))
        status = w.status;
    if (!cx_failed(status))
        status = import_packs(git, folder, &w, err);
    if (!cx_failed(status))
        status = import_loose_objects(git, folder, &w, err);
    if (!cx_failed(status))
        status = mark_imported(imported, w.loose.items, w.loose.count, err);
    if (!cx_failed(status))
        status = mark_imported(imported, w.packs.items, w.packs.count, err);
    cx_vec_done(&w.loose, cx_alloc_default());
    cx_vec_done(&w.packs, cx_alloc_default());
    cx_folder_close(folder);
    return status;
}
