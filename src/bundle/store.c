/*
 * store.c - the runtime root, ids of runs, and who a process is (run.md §1 R2, R5, R6, §11).
 */
#include "bundle/store.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/api.h"
#include "crypto/api.h"

#define OWNER_BYTES_MAX 65536
#define LISTED_MAX 1000000

/* --- where ------------------------------------------------------------------------------------ */

cx_status cx_run_store_root(const char *repo, const char *configured, cx_arena *arena,
                            const char **out, cx_err *err)
{
    CX_ASSERT(arena != NULL);
    cx_str path;
    if (configured != NULL && configured[0] != '\0') {
        if (configured[0] != '/')
            return cx_fail(err, CX_E_USAGE,
                           CX_RUN_ROOT_ENV " is '%.200s', expected an absolute path", configured);
        path = cx_arena_copy_str(arena, cx_str_z(configured));
    } else {
        path = cx_arena_printf(arena, "%s/" CX_RUN_ROOT_DEFAULT, repo);
    }
    if (path.data == NULL)
        return cx_fail_nomem(err);
    *out = path.data;
    return CX_SUCCESS;
}

static const char *const folders[] = {"runs",      "worktrees", "locks",
                                      "approvals", "active",    "active/runs"};

cx_status cx_run_store_open(cx_run_store *store, const char *root, bool make, const cx_io *io,
                            const cx_alloc *alloc, cx_err *err)
{
    CX_ASSERT(store != NULL);
    cx_facts facts;
    if (root[0] != '/')
        return cx_fail(err, CX_E_USAGE, "the runtime root is '%.200s', expected an absolute path",
                       root);
    if (make)
        CX_TRY(cx_path_make_folders(root, err));
    cx_status found = cx_path_facts(root, true, &facts, err);
    bool absent = !make && found.code == CX_E_NOT_FOUND; /* no run yet: nothing will be found */
    if (cx_failed(found) && !absent)
        return found;
    if (!absent && facts.kind != CX_FILE_FOLDER)
        return cx_fail(err, CX_E_FORMAT, "%.300s is no folder, expected the runtime root", root);
    if (make) {
        cx_file folder;
        cx_status status = CX_SUCCESS;
        CX_TRY(cx_folder_open(root, &folder, err));
        for (size_t i = 0; i < CX_COUNT_OF(folders) && !cx_failed(status); i++)
            status = cx_folder_make_folders(folder, folders[i], 0700, err);
        cx_folder_close(folder);
        CX_TRY(status);
    }
    *store = (cx_run_store){io != NULL ? io : cx_io_system(),
                            alloc != NULL ? alloc : cx_alloc_default(), root};
    return CX_SUCCESS;
}

cx_str cx_run_store_path(const cx_run_store *store, cx_arena *arena, const char *name, cx_str more)
{
    if (more.size == 0)
        return cx_arena_printf(arena, "%s/%s", store->root, name);
    return cx_arena_printf(arena, "%s/%s/%.*s", store->root, name, (int)more.size, more.data);
}

/* --- ids -------------------------------------------------------------------------------------- */

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool cx_run_id_valid(cx_str id)
{
    if (id.size == 0 || id.size > CX_RUN_ID_BYTES_MAX || !is_alnum(id.data[0]))
        return false;
    for (size_t i = 1; i < id.size; i++) {
        char c = id.data[i];
        if (!is_alnum(c) && c != '.' && c != '_' && c != '-')
            return false;
        if (c == '.' && id.data[i - 1] == '.')
            return false;
    }
    return true;
}

bool cx_run_id_is_made(cx_str id)
{
    static const char form[] = "run_00000000_000000_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    if (id.size != sizeof form - 1)
        return false;
    for (size_t i = 0; i < id.size; i++) {
        char c = id.data[i];
        bool is_digit = c >= '0' && c <= '9';
        if (form[i] == '0'              ? !is_digit
            : form[i] == 'a' && i >= 20 ? !is_digit && (c < 'a' || c > 'f')
                                        : c != form[i])
            return false;
    }
    return true;
}

cx_status cx_run_id_make(const cx_io *io, char out[CX_RUN_ID_SIZE], cx_err *err)
{
    char time[28], hex[33] = {0};
    uint8_t random[16];
    int failed = io->random(io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "no random bytes for a run's id");
    cx_hex_encode(cx_bytes_from(random, sizeof random), hex);
    cx_run_time_text((int64_t)io->wall_ns(io), time);
    /* 2026-01-01T00:00:00.000000Z */
    (void)snprintf(out, CX_RUN_ID_SIZE, "run_%.4s%.2s%.2s_%.2s%.2s%.2s_%s", time, time + 5,
                   time + 8, time + 11, time + 14, time + 17, hex);
    return CX_SUCCESS;
}

/* --- listing ---------------------------------------------------------------------------------- */

typedef struct listing {
    cx_arena *arena;
    CX_VEC(cx_str) names;
    bool failed;
} listing;

static bool add_run_id(void *arg, const char *name)
{
    listing *l = arg;
    cx_str text = cx_str_z(name);
    if (!cx_run_id_valid(text))
        return true;
    cx_str *slot = l->names.count < LISTED_MAX ? cx_vec_push(&l->names, l->arena->alloc) : NULL;
    if (slot != NULL)
        *slot = cx_arena_copy_str(l->arena, text);
    l->failed = slot == NULL || slot->data == NULL;
    return !l->failed;
}

static int by_text(const void *a, const void *b)
{
    return cx_str_cmp(*(const cx_str *)a, *(const cx_str *)b);
}

/* The valid ids among the names of a folder, sorted; a folder that is not there has none. */
static cx_status list_ids(const cx_run_store *store, const char *name, cx_arena *arena,
                          cx_str **out, size_t *out_count, cx_err *err)
{
    listing l = {.arena = arena};
    cx_str path = cx_run_store_path(store, arena, name, CX_STR(""));
    cx_status status = CX_SUCCESS;
    if (path.data == NULL)
        return cx_fail_nomem(err);
    int failed = store->io->list(store->io, path.data, add_run_id, &l);
    if (failed != 0) {
        status = cx_fail_os(err, -failed, "%s", path.data);
        if (status.code == CX_E_NOT_FOUND)
            status = CX_SUCCESS;
    } else if (l.failed) {
        status = cx_fail_nomem(err);
    }
    if (!cx_failed(status)) {
        *out = CX_ARENA_ARRAY(arena, cx_str, l.names.count + 1);
        *out_count = l.names.count;
        if (*out == NULL)
            status = cx_fail_nomem(err);
        else if (l.names.count != 0) {
            memcpy(*out, l.names.items, l.names.count * sizeof **out);
            qsort(*out, l.names.count, sizeof **out, by_text);
        }
    }
    cx_vec_done(&l.names, arena->alloc);
    return status;
}

cx_status cx_run_store_list(const cx_run_store *store, cx_arena *arena, cx_str **out,
                            size_t *out_count, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    size_t kept_count = 0;
    CX_TRY(list_ids(store, "runs", arena, out, out_count, err));
    for (size_t i = 0; i < *out_count; i++) { /* files and links are no runs */
        cx_facts facts;
        cx_str path = cx_run_store_path(store, arena, "runs", (*out)[i]);
        if (path.data == NULL)
            return cx_fail_nomem(err);
        if (!cx_failed(cx_path_facts(path.data, false, &facts, NULL)) &&
            facts.kind == CX_FILE_FOLDER)
            (*out)[kept_count++] = (*out)[i];
    }
    *out_count = kept_count;
    for (size_t i = 0, j = *out_count; i + 1 < j; i++) {
        cx_str stored = (*out)[i];
        (*out)[i] = (*out)[--j];
        (*out)[j] = stored;
    }
    return CX_SUCCESS;
}

cx_status cx_run_active_list(const cx_run_store *store, cx_arena *arena, cx_str **out,
                             size_t *out_count, cx_err *err)
{
    return list_ids(store, "active/runs", arena, out, out_count, err);
}

/* --- processes -------------------------------------------------------------------------------- */

static cx_status machine_text(cx_status (*read)(cx_buf *out, cx_err *err), cx_arena *arena,
                              cx_str *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, arena->alloc);
    cx_status status = read(&text, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&text));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status;
}

cx_status cx_run_owner_self(cx_arena *arena, cx_run_owner *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    const cx_io *io = cx_io_system();
    cx_run_owner self = {.pid = io->process_id(io)};
    CX_TRY(machine_text(cx_machine_host, arena, &self.host, err));
    CX_TRY(machine_text(cx_machine_boot_id, arena, &self.boot_id, err));
    CX_TRY(cx_machine_process_start(self.pid, &self.start_time, err));
    *out = self;
    return CX_SUCCESS;
}

cx_run_owner_state cx_run_owner_state_of(const cx_run_owner *owner)
{
    cx_run_owner self;
    uint64_t start;
    cx_arena arena;
    cx_run_owner_state state = CX_RUN_OWNER_ALIVE; /* what cannot be found out keeps its lock */
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_run_owner_self(&arena, &self, NULL))) {
        if (!cx_str_eq(self.host, owner->host))
            state = CX_RUN_OWNER_ELSEWHERE;
        else if (!cx_str_eq(self.boot_id, owner->boot_id))
            state = CX_RUN_OWNER_DEAD;
        else {
            cx_status status = cx_machine_process_start(owner->pid, &start, NULL);
            if (status.code == CX_E_NOT_FOUND || (!cx_failed(status) && start != owner->start_time))
                state = CX_RUN_OWNER_DEAD;
        }
    }
    cx_arena_done(&arena);
    return state;
}

/* --- runs that are going on ------------------------------------------------------------------- */

cx_status cx_run_active_contract(const cx_run_store *store, cx_str run_id, cx_bytes contract,
                                 cx_err *err)
{
    CX_ASSERT(store != NULL);
    cx_arena arena;
    cx_file folder = CX_FILE_NONE;
    cx_arena_init(&arena, store->alloc, 0);
    cx_str path = cx_run_store_path(store, &arena, "active/runs", run_id);
    cx_status status =
        path.data == NULL ? cx_fail_nomem(err) : cx_folder_open(path.data, &folder, err);
    if (!cx_failed(status))
        status = cx_run_write_file_in(store->io, folder, "contract.json", contract, err);
    cx_folder_close(folder);
    cx_arena_done(&arena);
    return status;
}

cx_status cx_run_active_owner(const cx_run_store *store, cx_str run_id, cx_arena *arena,
                              cx_run_owner *out, cx_err *err)
{
    CX_ASSERT(store != NULL && arena != NULL && out != NULL);
    cx_buf text;
    cx_json value;
    cx_run_owner owner;
    if (!cx_run_id_valid(run_id))
        return cx_fail(err, CX_E_NOT_FOUND, "no run has the id '%.*s'", (int)run_id.size,
                       run_id.data);
    cx_str path = cx_arena_printf(arena, "%s/active/runs/%.*s/owner.json", store->root,
                                  (int)run_id.size, run_id.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, arena->alloc);
    cx_status status = cx_io_read_file(store->io, path.data, OWNER_BYTES_MAX, &text, err);
    if (!cx_failed(status)) {
        cx_str stored = cx_arena_copy_str(arena, cx_buf_str(&text));
        status = stored.data == NULL
                     ? cx_fail_nomem(err)
                     : cx_run_json_read(stored, OWNER_BYTES_MAX, arena, &value, err);
    }
    cx_buf_done(&text);
    CX_TRY(status);
    owner.host = CX_JSON_GET_STR(&value, "host");
    owner.boot_id = CX_JSON_GET_STR(&value, "boot_id");
    const cx_json *pid = CX_JSON_GET(&value, "pid"), *start = CX_JSON_GET(&value, "start_time");
    if (owner.host.data == NULL || owner.boot_id.data == NULL || pid == NULL || start == NULL ||
        !cx_json_uint64(pid, &owner.pid) || !cx_json_uint64(start, &owner.start_time))
        return cx_fail(err, CX_E_FORMAT, "%s names no process", path.data);
    *out = owner;
    return CX_SUCCESS;
}

/* --- writing ---------------------------------------------------------------------------------- */

static cx_status write_and_sync(const cx_io *io, cx_file file, const char *path, cx_bytes contents,
                                cx_err *err)
{
    CX_TRY(cx_io_write_all(io, file, path, contents.data, contents.size, err));
    int failed = io->sync(io, file, false);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "%s", path);
}

static cx_status sync_folder_of(const cx_io *io, cx_file folder, const char *path, cx_err *err)
{
    cx_file opened;
    CX_TRY(cx_folder_open_in(folder, path, CX_IO_READ | CX_IO_DIRECTORY, &opened, err));
    int failed = io->sync(io, opened, false);
    cx_folder_close(opened);
    return failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "%s", path[0] == '\0' ? "." : path);
}

cx_status cx_run_write_file_in(const cx_io *io, cx_file folder, const char *path, cx_bytes contents,
                               cx_err *err)
{
    char parent[CX_PATH_BYTES_MAX + 1], temporary[CX_PATH_BYTES_MAX + 64];
    uint8_t random[8];
    char hex[2 * sizeof random + 1] = {0};
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t parent_size = slash == NULL ? 0 : (size_t)(slash - path);
    cx_file file;
    if (parent_size + strlen(name) > CX_PATH_BYTES_MAX || name[0] == '\0')
        return cx_fail(err, CX_E_LIMIT, "a path has %zu bytes, expected 1 to %d", strlen(path),
                       CX_PATH_BYTES_MAX);
    memcpy(parent, path, parent_size);
    parent[parent_size] = '\0';
    if (parent_size != 0)
        CX_TRY(cx_folder_make_folders(folder, parent, 0700, err));
    int failed = io->random(io, random, sizeof random);
    if (failed != 0)
        return cx_fail_os(err, -failed, "no random bytes for a temporary name");
    cx_hex_encode(cx_bytes_from(random, sizeof random), hex);
    (void)snprintf(temporary, sizeof temporary, "%s%s.%s.%s.tmp", parent,
                   parent_size == 0 ? "" : "/", name, hex);
    CX_TRY(cx_folder_open_in(folder, temporary, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE, &file,
                             err));
    cx_status status = write_and_sync(io, file, path, contents, err);
    failed = io->close(io, file);
    if (!cx_failed(status) && failed != 0)
        status = cx_fail_os(err, -failed, "%s", path);
    if (!cx_failed(status))
        status = cx_folder_rename(folder, temporary, path, err);
    if (cx_failed(status)) {
        (void)!cx_failed(cx_folder_remove(folder, temporary, NULL));
        return status;
    }
    return sync_folder_of(io, folder, parent, err);
}

cx_status cx_run_write_file(const cx_io *io, const char *path, cx_bytes contents, cx_err *err)
{
    char parent[CX_PATH_BYTES_MAX + 1];
    const char *slash = strrchr(path, '/');
    size_t parent_size = slash == NULL ? 0 : (size_t)(slash - path);
    cx_file folder;
    if (parent_size > CX_PATH_BYTES_MAX)
        return cx_fail(err, CX_E_LIMIT, "a path is longer than %d bytes", CX_PATH_BYTES_MAX);
    memcpy(parent, slash == NULL ? "." : path, slash == NULL ? 1 : parent_size);
    parent[slash == NULL ? 1 : parent_size] = '\0';
    CX_TRY(cx_folder_open(parent[0] == '\0' ? "/" : parent, &folder, err));
    cx_status status =
        cx_run_write_file_in(io, folder, slash == NULL ? path : slash + 1, contents, err);
    cx_folder_close(folder);
    return status;
}
