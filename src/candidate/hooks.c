/*
 * hooks.c - installing hooks, removing them, saying what is there (run.md §19).
 *
 * A script of ours is known by its second line.  A hook that was there before is renamed to
 * NAME.before-cortex and run by ours when `cortex hook` allowed; removing puts it back.
 */
#include "candidate/hooks.h"

#include <stdio.h>

#include "os/api.h"

#define MARK \
    "# cortex hook: installed by 'cortex hooks install', removed by 'cortex hooks remove'\n"
#define KEPT ".before-cortex"
#define SCRIPT_BYTES_MAX 65536

static const char *const names[CX_HOOK_COUNT] = {"pre-commit", "pre-push"};

const char *cx_hook_state_name(cx_hook_state state)
{
    switch (state) {
    case CX_HOOK_INSTALLED: return "installed";
    case CX_HOOK_OUTDATED: return "outdated";
    case CX_HOOK_EXTERNAL: return "foreign";
    case CX_HOOK_ABSENT: break;
    }
    return "absent";
}

const char *cx_hook_enforce_name(cx_hook_enforce enforce)
{
    switch (enforce) {
    case CX_HOOK_ENFORCE_RUNS: return "runs";
    case CX_HOOK_ENFORCE_PEOPLE: return "people";
    case CX_HOOK_ENFORCE_UNKNOWN: break;
    }
    return NULL;
}

/* Standard input is read once and given to both: pre-push has its references there. */
static void add_script(cx_buf *out, const char *name, const char *program, cx_hook_enforce enforce)
{
    cx_buf_add_z(out, "#!/bin/sh\n" MARK "input=$(cat; echo .)\ninput=${input%.}\nprintf %s "
                      "\"$input\" | ");
    cx_buf_add_sh_quoted(out, cx_str_z(program));
    cx_buf_printf(out, " hook %s --enforce %s || exit $?\n", name, cx_hook_enforce_name(enforce));
    cx_buf_printf(out, "before=\"${0%%/*}/%s" KEPT "\"\n", name);
    cx_buf_add_z(out, "if [ -x \"$before\" ]; then\n    printf %s \"$input\" | \"$before\" \"$@\"\n"
                      "    exit $?\nfi\nexit 0\n");
}

/* --- where hooks are -------------------------------------------------------------------------- */

/* core.hooksPath of the repository, else its folder `hooks`; absolute. */
static cx_status find_folder(const cx_git *git, cx_arena *arena, const char **out, cx_err *err)
{
    cx_buf text;
    int code = 0;
    cx_str config = cx_arena_printf(arena, "%s/config", cx_git_common_dir(git));
    if (config.data == NULL)
        return cx_fail_nomem(err);
    cx_buf_init(&text, cx_alloc_default());
    cx_git_call call = {
        .args = CX_GIT_ARGS("config", "--file", config.data, "--null", "--get", "core.hooksPath"),
        .bare = true};
    cx_status status = cx_git_call_run(git, &call, &text, &code, err);
    const char *path = cx_failed(status) ? NULL : cx_buf_z(&text);
    cx_str found = {NULL, 0};
    if (path != NULL && code == 0 && path[0] == '/')
        found = cx_arena_printf(arena, "%s", path);
    else if (path != NULL && code == 0 && path[0] != '\0')
        found = cx_arena_printf(arena, "%s/%s", cx_git_main_worktree(git), path);
    else if (!cx_failed(status))
        found = cx_arena_printf(arena, "%s/hooks", cx_git_common_dir(git));
    cx_buf_done(&text);
    CX_TRY(status);
    *out = found.data;
    return found.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* --- looking ---------------------------------------------------------------------------------- */

/* Sets `enforce` when it is a script that this program would write. */
static cx_status compare_script(cx_str have, const char *program, cx_hook *hook, cx_err *err)
{
    static const cx_hook_enforce kinds[] = {CX_HOOK_ENFORCE_RUNS, CX_HOOK_ENFORCE_PEOPLE};
    cx_buf want;
    cx_buf_init(&want, cx_alloc_default());
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < CX_COUNT_OF(kinds) && !cx_failed(status); i++) {
        cx_buf_clear(&want);
        add_script(&want, hook->name, program, kinds[i]);
        status = cx_buf_check(&want, err);
        if (!cx_failed(status) && cx_str_eq(have, cx_buf_str(&want)))
            hook->enforce = kinds[i];
    }
    cx_buf_done(&want);
    return status;
}

static cx_status read_hook(cx_file folder, const char *program, cx_hook *hook, cx_err *err)
{
    cx_facts facts;
    cx_buf have;
    char stored[64];
    (void)snprintf(stored, sizeof stored, "%s" KEPT, hook->name);
    hook->chained = !cx_failed(cx_folder_facts(folder, stored, &facts, NULL));
    hook->state = CX_HOOK_ABSENT;
    hook->enforce = CX_HOOK_ENFORCE_UNKNOWN;
    cx_status status = cx_folder_facts(folder, hook->name, &facts, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    hook->state = CX_HOOK_EXTERNAL;
    if (facts.kind != CX_FILE_REGULAR || facts.size_bytes > SCRIPT_BYTES_MAX)
        return CX_SUCCESS;
    cx_buf_init(&have, cx_alloc_default());
    status = cx_folder_read_file(folder, hook->name, SCRIPT_BYTES_MAX, &have, err);
    if (!cx_failed(status))
        status = compare_script(cx_buf_str(&have), program, hook, err);
    if (!cx_failed(status) && hook->enforce != CX_HOOK_ENFORCE_UNKNOWN)
        hook->state = (facts.mode & 0111) != 0 ? CX_HOOK_INSTALLED : CX_HOOK_OUTDATED;
    else if (!cx_failed(status) && cx_str_starts(cx_buf_str(&have), CX_STR("#!/bin/sh\n" MARK)))
        hook->state = CX_HOOK_OUTDATED;
    cx_buf_done(&have);
    return status;
}

/* Opens the folder of hooks (CX_FILE_NONE when there is none and `make` is false) and looks. */
static cx_status find_hooks(const cx_git *git, const char *program, bool make, cx_arena *arena,
                            cx_file *out_folder, cx_hook out[CX_HOOK_COUNT], cx_err *err)
{
    const char *path;
    *out_folder = CX_FILE_NONE;
    CX_TRY(find_folder(git, arena, &path, err));
    for (size_t i = 0; i < CX_HOOK_COUNT; i++) {
        out[i] = (cx_hook){names[i], cx_arena_printf(arena, "%s/%s", path, names[i]).data,
                           CX_HOOK_ABSENT, CX_HOOK_ENFORCE_UNKNOWN, false};
        if (out[i].path == NULL)
            return cx_fail_nomem(err);
    }
    if (make)
        CX_TRY(cx_path_make_folders(path, err));
    cx_status status = cx_folder_open(path, out_folder, err);
    if (status.code == CX_E_NOT_FOUND && !make)
        return CX_SUCCESS;
    for (size_t i = 0; i < CX_HOOK_COUNT && !cx_failed(status); i++)
        status = read_hook(*out_folder, program, &out[i], err);
    if (cx_failed(status)) {
        cx_folder_close(*out_folder);
        *out_folder = CX_FILE_NONE;
    }
    return status;
}

cx_status cx_hooks_status(const cx_git *git, const char *program, cx_arena *arena,
                          cx_hook out[CX_HOOK_COUNT], cx_err *err)
{
    cx_file folder;
    CX_TRY(find_hooks(git, program, false, arena, &folder, out, err));
    cx_folder_close(folder);
    return CX_SUCCESS;
}

/* --- changing --------------------------------------------------------------------------------- */

static cx_status write_hook(cx_file folder, const cx_hook *hook, const char *program,
                            cx_hook_enforce enforce, cx_err *err)
{
    cx_buf script;
    cx_buf_init(&script, cx_alloc_default());
    add_script(&script, hook->name, program, enforce);
    cx_status status = cx_buf_check(&script, err);
    if (!cx_failed(status))
        status = cx_run_write_file(cx_io_system(), hook->path, cx_buf_bytes(&script), err);
    if (!cx_failed(status))
        status = cx_folder_set_mode(folder, hook->name, 0755, err);
    cx_buf_done(&script);
    return status;
}

static cx_status install_one(cx_file folder, cx_hook *hook, const char *program,
                             cx_hook_enforce enforce, cx_err *err)
{
    char stored[64];
    (void)snprintf(stored, sizeof stored, "%s" KEPT, hook->name);
    if (hook->state == CX_HOOK_INSTALLED && hook->enforce == enforce)
        return CX_SUCCESS;
    if (hook->state == CX_HOOK_EXTERNAL)
        CX_TRY(cx_folder_rename(folder, hook->name, stored, err));
    return write_hook(folder, hook, program, enforce, err);
}

cx_status cx_hooks_install(const cx_git *git, const char *program, cx_hook_enforce enforce,
                           cx_arena *arena, cx_hook out[CX_HOOK_COUNT], cx_err *err)
{
    CX_ASSERT(arena != NULL && cx_hook_enforce_name(enforce) != NULL);
    cx_file folder;
    CX_TRY(find_hooks(git, program, true, arena, &folder, out, err));
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < CX_HOOK_COUNT && !cx_failed(status); i++)
        if (out[i].state == CX_HOOK_EXTERNAL && out[i].chained)
            status = cx_fail(err, CX_E_EXISTS,
                             "%s was not installed by cortex, and the earlier hook %s" KEPT
                             " is still stored: merge the two into one, then install again",
                             out[i].path, out[i].name);
    for (size_t i = 0; i < CX_HOOK_COUNT && !cx_failed(status); i++)
        status = install_one(folder, &out[i], program, enforce, err);
    for (size_t i = 0; i < CX_HOOK_COUNT && !cx_failed(status); i++)
        status = read_hook(folder, program, &out[i], err);
    cx_folder_close(folder);
    return status;
}

static cx_status remove_one(cx_file folder, const cx_hook *hook, cx_err *err)
{
    char stored[64];
    (void)snprintf(stored, sizeof stored, "%s" KEPT, hook->name);
    if (hook->state != CX_HOOK_INSTALLED && hook->state != CX_HOOK_OUTDATED)
        return CX_SUCCESS;
    if (hook->chained)
        return cx_folder_rename(folder, stored, hook->name, err);
    return cx_folder_remove(folder, hook->name, err);
}

cx_status cx_hooks_remove(const cx_git *git, const char *program, cx_arena *arena,
                          cx_hook out[CX_HOOK_COUNT], cx_err *err)
{
    CX_ASSERT(arena != NULL);
    cx_file folder;
    CX_TRY(find_hooks(git, program, false, arena, &folder, out, err));
    if (folder == CX_FILE_NONE)
        return CX_SUCCESS;
    cx_status status = CX_SUCCESS;
    for (size_t i = 0; i < CX_HOOK_COUNT && !cx_failed(status); i++)
        status = remove_one(folder, &out[i], err);
    for (size_t i = 0; i < CX_HOOK_COUNT && !cx_failed(status); i++)
        status = read_hook(folder, program, &out[i], err);
    cx_folder_close(folder);
    return status;
}
