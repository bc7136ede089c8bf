/*
 * exec_places.c - the folders of a command in a sandbox.  P1, P2: exec_places.h.
 */
#include "cli/exec/exec_places.h"

#include <stdlib.h>
#include <string.h>

/* What programs outside of the sandbox obey later: read-only in each writable folder. */
static const char *const protected_names[] = {
    /* git, this program, agents */
    ".git",
    "policies",
    ".claude",
    ".claude.json",
    ".mcp.json",
    ".claude-plugin",
    ".codex",
    ".codex-plugin",
    ".gemini",
    ".cursor",
    ".copilot",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".agents",
    ".aider.conf.yml",
    /* hooks and servers that build */
    ".github",
    ".husky",
    ".githooks",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    ".lefthook.yml",
    /* editors, debuggers, shells */
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
    ".devcontainer.json",
    ".envrc",
    ".mise.toml",
    "mise.toml",
    ".exrc",
    ".vimrc",
    ".vim",
    ".nvimrc",
    ".nvim.lua",
    ".lvimrc",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    /* package managers: where packages come from, what is started with them */
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".cargo",
};

_Static_assert(CX_COUNT_OF(protected_names) <= CX_CLI_EXEC_NAMES_MAX - 1,
               "one more is watched in each folder: HEAD");

static bool is_below(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    if (size == 1)
        return true;
    return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == 0);
}

cx_status cx_cli_exec_real_path(cx_cli *cli, const char *path, const char **out, cx_err *err)
{
    cx_buf real;
    cx_buf_init(&real, cli->alloc);
    cx_status status = cx_path_real(path, &real, err);
    if (!cx_failed(status)) {
        *out = cx_arena_copy_str(&cli->arena, cx_buf_str(&real)).data;
        status = *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
    }
    cx_buf_done(&real);
    return status;
}

static cx_status join(const cx_cli_exec_places *p, const char *folder, const char *name,
                      const char **out, cx_err *err)
{
    *out = cx_arena_printf(&p->cli->arena, "%s/%s", folder, name).data;
    return *out == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

static bool facts_of(const char *path, bool follow, cx_facts *out)
{
    cx_err ignored;
    return !cx_failed(cx_path_facts(path, follow, out, &ignored));
}

static cx_cli_file_id file_id(const char *path, bool follow)
{
    cx_facts facts;
    return facts_of(path, follow, &facts) ? (cx_cli_file_id){facts.device, facts.inode}
                                          : (cx_cli_file_id){0, 0};
}

static bool is_same_file(cx_cli_file_id a, cx_cli_file_id b)
{
    return a.device == b.device && a.inode == b.inode;
}

static cx_status add_bind(cx_cli_exec_places *p, const char *path, bool writable, cx_err *err)
{
    if (p->bind_count == CX_CLI_EXEC_BINDS_MAX)
        return cx_fail(err, CX_E_LIMIT, "more than %d folders are shown", CX_CLI_EXEC_BINDS_MAX);
    p->binds[p->bind_count++] = (cx_sandbox_bind){path, writable};
    return CX_SUCCESS;
}

/* --- what is never writable ------------------------------------------------------------------- */

static bool has_entry(const char *folder, size_t folder_size, const char *name, bool is_folder)
{
    char path[4096];
    cx_facts facts;
    int size = snprintf(path, sizeof path, "%.*s/%s", (int)folder_size, folder, name);
    return size > 0 && (size_t)size < sizeof path && facts_of(path, is_folder, &facts) &&
           (!is_folder || facts.kind == CX_FILE_FOLDER);
}

/* As git finds one: a .git, one of a linked work tree, or a bare repository under any name. */
static bool is_git_folder(const char *path, size_t size)
{
    return has_entry(path, size, "HEAD", false) &&
           (has_entry(path, size, "commondir", false) ||
            (has_entry(path, size, "objects", true) && has_entry(path, size, "refs", true)));
}

/* The size of the part of `path` that is a directory of git; 0 = none is. */
static size_t git_folder_above(const char *path)
{
    for (size_t size = strlen(path); size > 1; size--)
        if ((path[size] == '/' || path[size] == 0) && is_git_folder(path, size))
            return size;
    return 0;
}

/* A component below `root` that is a protected name, or NULL. */
static const char *protected_component(const char *path, const char *root)
{
    const char *at = path + (root == NULL ? 0 : strlen(root));
    while (*at != 0) {
        at += *at == '/';
        size_t size = strcspn(at, "/");
        for (size_t i = 0; i < CX_COUNT_OF(protected_names); i++)
            if (strlen(protected_names[i]) == size && memcmp(at, protected_names[i], size) == 0 &&
                (root != NULL || at[0] == '.'))
                return protected_names[i];
        at += size;
    }
    return NULL;
}

/* The working folder, which is writable without being named. */
static cx_status check_unnamed(const cx_cli_exec_places *p, const char *path, cx_err *err)
{
    const char *home = getenv("HOME"), *real_home = NULL;
    cx_err ignored;
    if (home != NULL && home[0] == '/' &&
        !cx_failed(cx_cli_exec_real_path(p->cli, home, &real_home, &ignored)) &&
        is_below(real_home, path))
        return cx_fail(err, CX_E_USAGE,
                       "the working folder %s has your home in it; name what may be written with "
                       "--write PATH, or nothing with --read-only",
                       path);
    bool inside = p->repo != NULL && is_below(path, p->repo->worktree);
    const char *name = protected_component(path, inside ? p->repo->worktree : NULL);
    if (name != NULL)
        return cx_fail(err, CX_E_USAGE,
                       "the working folder %s is in %s, which other programs obey; name what may "
                       "be written with --write PATH, or nothing with --read-only",
                       path, name);
    return CX_SUCCESS;
}

static cx_status check_writable(const cx_cli_exec_places *p, const char *path, bool named,
                                cx_err *err)
{
    const char *data = NULL;
    CX_TRY(cx_cli_exec_real_path(p->cli, p->data, &data, err));
    if (is_below(path, data) || (is_below(data, path) && strcmp(path, "/") == 0))
        return cx_fail(err, CX_E_USAGE, "%s: the data directory is never writable inside", path);
    size_t git = git_folder_above(path);
    if (git != 0)
        return cx_fail(err, CX_E_USAGE,
                       "%s: %.*s is a directory of git, which obeys its hooks and configuration: "
                       "it is never writable inside; use another folder, or --read-only",
                       path, (int)git, path);
    return named ? CX_SUCCESS : check_unnamed(p, path, err);
}

/* --- what the options name -------------------------------------------------------------------- */

static void watch(cx_cli_exec_places *p, const char *path)
{
    CX_ASSERT(p->watched_count < CX_CLI_EXEC_WATCHED_MAX);
    p->watched[p->watched_count++] =
        (cx_cli_watched_name){path, file_id(path, false), file_id(path, true)};
}

static cx_status add_writable(cx_cli_exec_places *p, const char *given, bool named, cx_err *err)
{
    const char *path, *inner;
    cx_facts facts;
    CX_TRY(cx_cli_exec_real_path(p->cli, given, &path, err));
    CX_TRY(check_writable(p, path, named, err));
    if (p->write_count == CX_CLI_EXEC_WRITES_MAX)
        return cx_fail(err, CX_E_LIMIT, "option --write: expected at most %d",
                       CX_CLI_EXEC_WRITES_MAX);
    p->writes[p->write_count++] = path;
    CX_TRY(add_bind(p, path, true, err));
    for (size_t i = 0; i < CX_COUNT_OF(protected_names); i++) {
        CX_TRY(join(p, path, protected_names[i], &inner, err));
        if (facts_of(inner, false, &facts) && facts.kind != CX_FILE_LINK)
            CX_TRY(add_bind(p, inner, false, err));
        else
            watch(p, inner);
    }
    return CX_SUCCESS;
}

/* P1: where a link leads to.  Only what could be written anyway: nothing else becomes visible. */
static cx_status protect_targets(cx_cli_exec_places *p, cx_err *err)
{
    for (size_t i = 0; i < p->watched_count; i++) {
        const char *real;
        cx_err ignored;
        bool writable = false;
        if (p->watched[i].target.inode == 0 ||
            cx_failed(cx_cli_exec_real_path(p->cli, p->watched[i].path, &real, &ignored)))
            continue;
        for (size_t k = 0; k < p->write_count && !writable; k++)
            writable = is_below(real, p->writes[k]);
        if (writable)
            CX_TRY(add_bind(p, real, false, err));
    }
    return CX_SUCCESS;
}

static cx_status add_contract_paths(cx_cli_exec_places *p, const cx_contract *contract, cx_err *err)
{
    const char *root = p->repo != NULL ? p->repo->worktree : p->cwd;
    cx_facts facts;
    for (size_t i = 0; i < contract->allowed_paths.count && contract->filesystem != CX_FS_READ_ONLY;
         i++) {
        cx_str path = cx_arena_printf(&p->cli->arena, "%s/%.*s", root,
                                      (int)contract->allowed_paths.items[i].size,
                                      contract->allowed_paths.items[i].data);
        if (path.data == NULL)
            return cx_fail_nomem(err);
        if (!facts_of(path.data, true, &facts))
            cx_cli_complain("exec: note: %s does not exist yet, so nothing can be written there",
                            path.data);
        else
            CX_TRY(add_writable(p, path.data, true, err));
    }
    return CX_SUCCESS;
}

static cx_status add_writes(cx_cli_exec_places *p, const cx_cli_args *args,
                            const cx_contract *contract, cx_err *err)
{
    const cx_cli_given *given = NULL;
    bool named = cx_cli_has(args, "write");
    if (contract != NULL && !named)
        return add_contract_paths(p, contract, err);
    if (!named && !cx_cli_has(args, "read-only"))
        return add_writable(p, p->cwd, false, err);
    while ((given = cx_cli_next(args, "write", given)) != NULL)
        CX_TRY(add_writable(p, given->values[0], true, err));
    return CX_SUCCESS;
}

cx_status cx_cli_exec_places_find(cx_cli_exec_places *p, const cx_cli_args *args,
                                  const cx_contract *contract, cx_err *err)
{
    const cx_cli_given *given = NULL;
    const char *path;
    if (cx_cli_has(args, "write") && cx_cli_has(args, "read-only"))
        return cx_fail(err, CX_E_USAGE, "options --write and --read-only exclude each other");
    if (p->repo != NULL) {
        const char *common = cx_git_common_dir(p->repo->git);
        CX_TRY(add_bind(p, p->repo->worktree, false, err));
        if (!is_below(common, p->repo->worktree))
            CX_TRY(add_bind(p, common, false, err));
    }
    CX_TRY(add_bind(p, p->cwd, false, err));
    p->reads = CX_ARENA_ARRAY(&p->cli->arena, const char *, args->given_count + 1);
    if (p->reads == NULL)
        return cx_fail_nomem(err);
    while ((given = cx_cli_next(args, "read", given)) != NULL) {
        CX_TRY(cx_cli_exec_real_path(p->cli, given->values[0], &path, err));
        CX_TRY(add_bind(p, path, false, err));
        p->reads[p->read_count++] = path;
    }
    CX_TRY(add_writes(p, args, contract, err));
    return protect_targets(p, err);
}

/* --- what the command made -------------------------------------------------------------------- */

static void put_one(const cx_cli_exec_places *p, const char *path, cx_json_list *made)
{
    cx_json_list_add(made, cx_json_make_str(cx_json_shown(cx_str_z(path), &p->cli->arena)));
    cx_cli_complain("exec: the command made %s, which other programs obey: look at it first", path);
}

void cx_cli_exec_places_put_made(const cx_cli_exec_places *p, cx_json_list *list)
{
    cx_json_list made = cx_json_list_begin(&p->cli->arena);
    for (size_t i = 0; i < p->watched_count; i++) {
        const cx_cli_watched_name *w = &p->watched[i];
        cx_cli_file_id now = file_id(w->path, false);
        if (now.inode != 0 &&
            (!is_same_file(now, w->itself) || !is_same_file(file_id(w->path, true), w->target)))
            put_one(p, w->path, &made);
    }
    /* A bare repository: git obeys its configuration as soon as it is started there. */
    for (size_t i = 0; i < p->write_count; i++)
        if (is_git_folder(p->writes[i], strlen(p->writes[i]))) {
            cx_str head = cx_arena_printf(&p->cli->arena, "%s/HEAD", p->writes[i]);
            if (head.data != NULL)
                put_one(p, head.data, &made);
        }
    cx_json_put_array(list, "made", &made);
}
