/*
 * trusted.c - row C16 of the command gate: where a program comes from (run.md §8).
 *
 * The governor's PATH is never used.  A name is searched in the trusted folders in their order; the
 * first regular executable of that name decides.  It must be changeable only by root or the
 * configured owner, and be in a folder that no agent writes.
 */
#include "base/api.h"
#include "os/api.h"
#include "crypto/api.h"
#include "command/command.h"

enum { CHUNK = 1 << 16 };

static const cx_str default_folders[] = {
    {"/usr/local/bin", 14},
    {"/usr/bin", 8},
    {"/bin", 4},
};

static bool is_path_below(cx_str path, cx_str folder)
{
    while (folder.size > 1 && folder.data[folder.size - 1] == '/')
        folder.size--;
    return cx_str_starts(path, folder) &&
           (folder.size == 1 || path.size == folder.size || path.data[folder.size] == '/');
}

static cx_status resolve_real_path(cx_str path, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf real;
    cx_str text = cx_arena_copy_str(arena, path);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&real, arena->alloc);
    cx_status status = cx_path_real(text.data, &real, err);
    if (!cx_failed(status))
        status = cx_buf_check(&real, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&real));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&real);
    return status;
}

/* Whether `path` is in a folder that agents or the governor write to, given or resolved. */
static cx_status is_in_forbidden_folder(const cx_run_trust *trust, cx_str path, cx_arena *arena,
                                        bool *out, cx_err *err)
{
    *out = false;
    for (size_t i = 0; trust != NULL && i < trust->forbidden_count; i++) {
        cx_str folder = trust->forbidden[i], real;
        cx_err why;
        if (folder.size == 0)
            continue;
        if (is_path_below(path, folder)) {
            *out = true;
            return CX_SUCCESS;
        }
        cx_status status = resolve_real_path(folder, arena, &real, &why);
        if (status.code == CX_E_NOT_FOUND)
            continue; /* a work tree that does not exist yet */
        if (cx_failed(status))
            return cx_fail(err, status.code, "%s", why.message);
        if (is_path_below(path, real)) {
            *out = true;
            return CX_SUCCESS;
        }
    }
    return CX_SUCCESS;
}

static cx_status hash_open_file(const cx_io *io, cx_file file, const char *path, cx_digest *out,
                                cx_err *err)
{
    uint8_t *chunk = cx_alloc_new(cx_alloc_default(), CHUNK);
    cx_sha256 hash;
    size_t got = CHUNK;
    cx_status status = CX_SUCCESS;
    if (chunk == NULL)
        return cx_fail_nomem(err);
    cx_sha256_init(&hash);
    while (got == CHUNK && !cx_failed(status)) {
        status = cx_io_read_some(io, file, path, chunk, CHUNK, &got, err);
        if (!cx_failed(status))
            cx_sha256_add(&hash, chunk, got);
    }
    if (!cx_failed(status))
        *out = cx_sha256_end(&hash);
    cx_alloc_free(cx_alloc_default(), chunk, CHUNK);
    return status;
}

/* Checks and hashes one open file, so the checked file is the hashed one. */
static cx_status check_executable(const cx_run_trust *trust, cx_str path, cx_run_executable *out,
                                  const char **out_why, cx_err *err)
{
    const cx_io *io = cx_io_system();
    cx_file file;
    cx_facts facts;
    if (io->open(io, path.data, CX_IO_READ | CX_IO_NO_LINKS, &file) != 0) {
        *out_why = "it cannot be read";
        return CX_SUCCESS;
    }
    uint32_t owner = trust == NULL ? 0 : trust->owner_uid;
    cx_status status = cx_file_facts(file, &facts, err);
    if (cx_failed(status)) {
        /* returned below */
    } else if (facts.kind != CX_FILE_REGULAR || (facts.mode & 0111) == 0) {
        *out_why = "it is not a regular executable file";
    } else if (facts.owner_id != 0 && facts.owner_id != owner) {
        *out_why = "its owner is neither root nor the configured owner";
    } else if ((facts.mode & 0022) != 0) {
        *out_why = "it is writable by group or others";
    } else {
        if (trust == NULL || !trust->unhashed)
            status = hash_open_file(io, file, path.data, &out->sha256, err);
        out->path = out->name = path;
        out->in_repository = false;
    }
    (void)io->close(io, file);
    return status;
}

static bool is_executable_file(const char *path)
{
    cx_facts facts;
    cx_err err;
    return !cx_failed(cx_path_facts(path, true, &facts, &err)) && facts.kind == CX_FILE_REGULAR &&
           (facts.mode & 0111) != 0;
}

cx_status cx_run_trusted_find(const cx_run_trust *trust, cx_str name, cx_arena *arena,
                              cx_run_executable *out, const char **out_why, cx_err *err)
{
    CX_ASSERT(trust == NULL || trust->forbidden_count == 0 || trust->forbidden != NULL);
    bool use_defaults = trust == NULL || trust->folders == NULL;
    const cx_str *folders = use_defaults ? default_folders : trust->folders;
    size_t count = use_defaults ? CX_COUNT_OF(default_folders) : trust->folder_count;
    cx_run_executable found = {0};
    *out_why =
        "no trusted folder has an executable of that name (trusted_dirs in policies/cortex.json)";
    if (name.size == 0 || memchr(name.data, '/', name.size) != NULL || cx_str_is(name, ".") ||
        cx_str_is(name, ".."))
        return CX_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        cx_str real;
        bool forbidden = false;
        if (folders[i].size == 0 || folders[i].data[0] != '/')
            continue;
        cx_str path = cx_arena_printf(arena, "%.*s/%.*s", (int)folders[i].size, folders[i].data,
                                      (int)name.size, name.data);
        if (path.data == NULL)
            return cx_fail_nomem(err);
        if (!is_executable_file(path.data))
            continue;
        CX_TRY(is_in_forbidden_folder(trust, path, arena, &forbidden, err));
        CX_TRY(resolve_real_path(path, arena, &real, err));
        if (!forbidden)
            CX_TRY(is_in_forbidden_folder(trust, real, arena, &forbidden, err));
        if (forbidden) {
            *out_why = "it is inside the worktree, the repository or the runtime root";
            return CX_SUCCESS;
        }
        *out_why = NULL;
        CX_TRY(check_executable(trust, real, &found, out_why, err));
        if (*out_why == NULL)
            *out = found;
        return CX_SUCCESS;
    }
    return CX_SUCCESS;
}

cx_status cx_run_trusted_script(const char *worktree, cx_str plain, cx_arena *arena,
                                cx_run_executable *out, const char **out_why, cx_err *err)
{
    CX_ASSERT(worktree[0] == '/');
    CX_ASSERT(plain.size != 0 && plain.data[0] != '/'); /* row C14 has normalised it */
    const cx_io *io = cx_io_system();
    cx_file folder, file;
    cx_facts facts;
    cx_str path = cx_arena_printf(arena, "%s/%.*s", worktree, (int)plain.size, plain.data);
    if (path.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open(worktree, &folder, err));
    *out_why = NULL;
    cx_status status =
        cx_folder_open_in(folder, path.data + strlen(worktree) + 1, CX_IO_READ, &file, err);
    cx_folder_close(folder);
    CX_TRY(status);
    status = cx_file_facts(file, &facts, err);
    if (!cx_failed(status) && (facts.kind != CX_FILE_REGULAR || (facts.mode & 0100) == 0))
        *out_why = "the script is not a regular executable file";
    if (!cx_failed(status) && *out_why == NULL)
        status = hash_open_file(io, file, path.data, &out->sha256, err);
    (void)io->close(io, file);
    if (!cx_failed(status) && *out_why == NULL) {
        out->path = path;
        out->name = (cx_str){path.data + strlen(worktree) + 1, plain.size};
        out->in_repository = true;
    }
    return status;
}
