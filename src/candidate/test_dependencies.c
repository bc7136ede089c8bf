/*
 * test_dependencies.c - links installed packages into the checkout of tests.
 */
#include "candidate/test_dependencies.h"

#include <string.h>

#include "os/api.h"

static cx_status real_path(const char *path, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_buf real;
    cx_buf_init(&real, arena->alloc);
    cx_status status = cx_path_real(path, &real, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(arena, cx_buf_str(&real));
        if (out->data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&real);
    return status;
}

static cx_str trim_slashes(cx_str path)
{
    while (path.size != 0 && path.data[path.size - 1] == '/')
        path.size--;
    return path;
}

/* The folder's real path, in the arena: no part of `path` may be a link. */
static cx_status resolve_folder(const char *root, cx_str path, cx_arena *arena, cx_str *out,
                                cx_err *err)
{
    cx_facts facts;
    cx_err why;
    cx_str real_root, source = cx_arena_printf(arena, "%s/%.*s", root, (int)path.size, path.data);
    if (source.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(real_path(root, arena, &real_root, err));
    if (cx_failed(cx_path_facts(source.data, true, &facts, &why)) || facts.kind != CX_FILE_FOLDER)
        return cx_fail(
            err, CX_E_NOT_FOUND,
            "test_dependencies: %.*s is not a folder of the main checkout; install it there",
            (int)path.size, path.data);
    CX_TRY(real_path(source.data, arena, out, err));
    /* A link may be the commit of an earlier run, and lead to records of runs or the git
     * directory. */
    cx_str expected = cx_arena_printf(arena, "%.*s/%.*s", (int)real_root.size, real_root.data,
                                      (int)path.size, path.data);
    if (expected.data == NULL)
        return cx_fail_nomem(err);
    if (!cx_str_eq(*out, expected))
        return cx_fail(err, CX_E_DENIED,
                       "test_dependencies: %.*s is reached by a link; expected a folder of the "
                       "main checkout itself",
                       (int)path.size, path.data);
    return CX_SUCCESS;
}

typedef struct python_search {
    cx_arena *arena;
    cx_str found; /* "python3.11" */
    bool is_found;
} python_search;

static bool on_name(void *arg, const char *name)
{
    python_search *search = arg;
    search->is_found = strncmp(name, "python3.", 8) == 0;
    if (search->is_found)
        search->found = cx_arena_copy_str(search->arena, cx_str_z(name));
    return !search->is_found;
}

/* <folder>/lib/python3.x/site-packages; data NULL when it is no virtual environment. */
static cx_status find_site_packages(cx_str path, cx_arena *arena, cx_str *out, cx_err *err)
{
    cx_facts facts;
    cx_err why;
    cx_file folder = CX_FILE_NONE;
    python_search search = {.arena = arena};
    *out = (cx_str){NULL, 0};
    CX_TRY(cx_folder_open(path.data, &folder, err));
    bool is_venv = !cx_failed(cx_folder_facts(folder, "pyvenv.cfg", &facts, &why)) &&
                   !cx_failed(cx_folder_facts(folder, "lib", &facts, &why)) &&
                   facts.kind == CX_FILE_FOLDER;
    cx_status status = is_venv ? cx_folder_list(folder, "lib", on_name, &search, err) : CX_SUCCESS;
    cx_folder_close(folder);
    if (cx_failed(status) || !search.is_found)
        return status;
    if (search.found.data == NULL)
        return cx_fail_nomem(err);
    *out = cx_arena_printf(arena, "%s/lib/%s/site-packages", path.data, search.found.data);
    return out->data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static cx_status link_folder(cx_str source, const char *checkout, cx_str path, cx_arena *arena,
                             cx_err *err)
{
    cx_facts facts;
    cx_err why;
    cx_file folder = CX_FILE_NONE;
    cx_str target = cx_arena_copy_str(arena, path); /* terminated */
    if (target.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open(checkout, &folder, err));
    cx_status status;
    if (cx_failed(cx_folder_facts(folder, target.data, &facts, &why)))
        status = cx_folder_make_link(folder, source.data, target.data, err);
    else
        status =
            cx_fail(err, CX_E_EXISTS, "test_dependencies: the commit has %s itself", target.data);
    cx_folder_close(folder);
    return status;
}

cx_status cx_test_dependencies_link(const cx_str *paths, size_t count, const char *root,
                                    const char *checkout, cx_arena *arena,
                                    cx_test_dependencies *out, cx_err *err)
{
    CX_ASSERT(root != NULL && checkout != NULL && arena != NULL && out != NULL);
    cx_sandbox_bind *binds = CX_ARENA_ARRAY(arena, cx_sandbox_bind, count + 1);
    const char **env = CX_ARENA_ARRAY(arena, const char *, 3);
    if (binds == NULL || env == NULL)
        return cx_fail_nomem(err);
    memset(env, 0, 3 * sizeof *env);
    for (size_t i = 0; i < count; i++) {
        cx_str folder, packages, path = trim_slashes(paths[i]);
        CX_TRY(resolve_folder(root, path, arena, &folder, err));
        CX_TRY(link_folder(folder, checkout, path, arena, err));
        binds[i] = (cx_sandbox_bind){folder.data, false};
        CX_TRY(find_site_packages(folder, arena, &packages, err));
        if (packages.data == NULL || env[0] != NULL)
            continue;
        env[0] = cx_arena_printf(arena, "PYTHONPATH=%s", packages.data).data;
        env[1] = cx_arena_printf(arena, "VIRTUAL_ENV=%s", folder.data).data;
        if (env[0] == NULL || env[1] == NULL)
            return cx_fail_nomem(err);
    }
    *out = (cx_test_dependencies){binds, count, env};
    return CX_SUCCESS;
}
