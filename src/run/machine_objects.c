/*
 * machine_objects.c - git objects that an agent made, taken over into the repository (run.md §11).
 *
 * The agent writes objects into a folder of its own.  They are never linked or copied: git packs them
 * and unpacks them again, so that every one is read, its name computed anew, and its bytes limited.
 */
#include "base/folder.h"
#include "run/machine_internal.h"

#define OBJECTS_MAX 200000
#define PACK_BYTES_MAX (UINT64_C(512) << 20)

typedef struct object_list {
    cx_buf names; /* of loose objects, a line each */
    CX_VEC(cx_str) packs;
    cx_arena *arena;
    size_t count;
    bool failed;
} object_list;

static bool is_hex(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return true;
}

static cx_walk_step visit(void *arg, const cx_walk_entry *entry)
{
    object_list *list = arg;
    cx_str path = {entry->path, entry->path_size};
    if (entry->facts.kind != CX_FILE_REGULAR)
        return CX_WALK_ON;
    if (++list->count > OBJECTS_MAX) {
        list->failed = true;
        return CX_WALK_STOP;
    }
    if (path.size > 3 && path.data[2] == '/' && is_hex(path.data, 2) &&
        is_hex(path.data + 3, path.size - 3)) {
        cx_buf_add(&list->names, path.data, 2);
        cx_buf_add(&list->names, path.data + 3, path.size - 3);
        cx_buf_add_byte(&list->names, '\n');
    } else if (cx_str_starts(path, CX_STR("pack/")) && cx_str_ends(path, CX_STR(".pack"))) {
        cx_str *slot = cx_vec_push(&list->packs, list->arena->alloc);
        if (slot == NULL) {
            list->failed = true;
            return CX_WALK_STOP;
        }
        *slot = cx_arena_copy_str(list->arena, path);
    }
    return CX_WALK_ON;
}

static cx_status unpack(cx_machine_task *t, cx_bytes pack, cx_err *err)
{
    cx_git_call call = {
        .args = CX_GIT_ARGS("unpack-objects", "-q", "--strict"), .input = pack, .bare = true};
    return cx_git_call_run(t->worktree.git, &call, NULL, NULL, err);
}

static cx_status take_loose(cx_machine_task *t, const object_list *list, cx_err *err)
{
    cx_str own = cx_arena_printf(&t->arena, "GIT_OBJECT_DIRECTORY=%s", t->spec_git.object_dir);
    cx_str others = cx_arena_printf(&t->arena, "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s/objects",
                                    t->spec_git.common_dir);
    const char *env[] = {own.data, others.data, NULL};
    cx_buf pack;
    if (own.data == NULL || others.data == NULL)
        return cx_fail_nomem(err);
    cx_git_call call = {.args = CX_GIT_ARGS("pack-objects", "-q", "--stdout"),
                        .input = cx_buf_bytes(&list->names),
                        .env = env,
                        .output_limit_bytes = PACK_BYTES_MAX,
                        .bare = true};
    cx_buf_init(&pack, t->m->alloc);
    cx_status status = cx_git_call_run(t->worktree.git, &call, &pack, NULL, err);
    if (!cx_failed(status))
        status = unpack(t, cx_buf_bytes(&pack), err);
    cx_buf_done(&pack);
    return status;
}

static cx_status take_packs(cx_machine_task *t, cx_file folder, const object_list *list, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < list->packs.count && !cx_failed(status); i++) {
        cx_buf pack;
        cx_buf_init(&pack, t->m->alloc);
        status = list->packs.items[i].data == NULL
                     ? cx_fail_nomem(err)
                     : cx_folder_read_file(folder, list->packs.items[i].data, PACK_BYTES_MAX, &pack,
                                           err);
        if (!cx_failed(status))
            status = unpack(t, cx_buf_bytes(&pack), err);
        cx_buf_done(&pack);
    }
    return status;
}

cx_status cx_task_take_objects(cx_machine_task *t, cx_err *err)
{
    object_list list = {.arena = &t->arena};
    cx_file folder;
    CX_TRY(cx_folder_open(t->spec_git.object_dir, &folder, err));
    cx_buf_init(&list.names, t->m->alloc);
    cx_status status = cx_folder_walk(folder, NULL, visit, &list, err);
    if (!cx_failed(status) && list.failed)
        status = cx_fail(err, CX_E_LIMIT, "the agent made more than %d git objects", OBJECTS_MAX);
    if (!cx_failed(status))
        status = cx_buf_check(&list.names, err);
    if (!cx_failed(status) && list.packs.count != 0)
        status = take_packs(t, folder, &list, err);
    if (!cx_failed(status) && list.names.size != 0)
        status = take_loose(t, &list, err);
    cx_vec_done(&list.packs, list.arena->alloc);
    cx_buf_done(&list.names);
    cx_folder_close(folder);
    return status;
}
