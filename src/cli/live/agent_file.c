/*
 * agent_file.c - see agent_file.h.
 */
#include "cli/live/agent_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crypto/api.h"
#include "os/api.h"

/* --- where ------------------------------------------------------------------------------------ */

const char *cx_agent_scope_name(cx_agent_scope scope)
{
    static const char *const names[] = {"user", "project", "local", "managed"};
    return names[scope];
}

typedef struct agent_places {
    const char *variable; /* that names the user's folder; NULL = none */
    const char *folder;   /* below HOME */
    const char *file;     /* in it */
    const char *project;
    const char *local; /* NULL = none */
    const char *managed;
} agent_places;

static const agent_places places[] = {
    [CX_LIVE_CLAUDE] = {"CLAUDE_CONFIG_DIR", ".claude", "settings.json", ".claude/settings.json",
                        ".claude/settings.local.json", "/etc/claude-code/managed-settings.json"},
    [CX_LIVE_CODEX] = {"CODEX_HOME", ".codex", "hooks.json", ".codex/hooks.json", NULL, NULL},
    [CX_LIVE_GEMINI] = {NULL, ".gemini", "settings.json", ".gemini/settings.json", NULL,
                        "/etc/gemini-cli/settings.json"},
    [CX_LIVE_CURSOR] = {NULL, ".cursor", "hooks.json", ".cursor/hooks.json", NULL,
                        "/etc/cursor/hooks.json"},
    [CX_LIVE_COPILOT] = {"COPILOT_HOME", ".copilot", "hooks/cortex.json",
                         ".github/hooks/cortex.json", NULL,
                         "/etc/github-copilot/policy.d/cortex.json"},
};

static cx_status keep_text(cx_str text, const char **out, cx_err *err)
{
    *out = text.data;
    return text.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

cx_status cx_agent_user_folder(cx_cli *cli, cx_live_agent agent, const char **out, cx_err *err)
{
    const agent_places *p = &places[agent];
    const char *set = p->variable == NULL ? NULL : getenv(p->variable);
    const char *home = getenv("HOME");
    if (set != NULL && set[0] == '/')
        return keep_text(cx_arena_copy_str(&cli->arena, cx_str_z(set)), out, err);
    if (set != NULL && set[0] != 0)
        return cx_fail(err, CX_E_USAGE, "%s is '%s': expected an absolute path", p->variable, set);
    if (home == NULL || home[0] != '/')
        return cx_fail(err, CX_E_NOT_FOUND,
                       "HOME is not set to an absolute path: the agent's files cannot be found");
    return keep_text(cx_arena_printf(&cli->arena, "%s/%s", home, p->folder), out, err);
}

/* The folder with .git at or above the current one; else the current one. */
static cx_status project_folder(cx_cli *cli, const char **out, cx_err *err)
{
    cx_buf real;
    cx_facts facts;
    cx_buf_init(&real, cli->alloc);
    cx_status status = cx_path_real(".", &real, err);
    cx_str here =
        cx_failed(status) ? (cx_str){NULL, 0} : cx_arena_copy_str(&cli->arena, cx_buf_str(&real));
    cx_buf_done(&real);
    CX_TRY(status);
    CX_TRY(keep_text(here, out, err));
    for (size_t size = here.size; size != 0; size--) {
        if (size != here.size && here.data[size] != '/')
            continue;
        cx_str git = cx_arena_printf(&cli->arena, "%.*s/.git", (int)size, here.data);
        if (git.data == NULL)
            return cx_fail_nomem(err);
        if (!cx_failed(cx_path_facts(git.data, false, &facts, NULL)))
            return keep_text(cx_arena_copy_str(&cli->arena, cx_str_from(here.data, size)), out,
                             err);
    }
    return CX_SUCCESS;
}

cx_status cx_agent_file_path(cx_cli *cli, cx_live_agent agent, cx_agent_scope scope,
                             const char **out, cx_err *err)
{
    const agent_places *p = &places[agent];
    const char *folder;
    const char *file = scope == CX_SCOPE_USER      ? p->file
                       : scope == CX_SCOPE_PROJECT ? p->project
                       : scope == CX_SCOPE_LOCAL   ? p->local
                                                   : p->managed;
    if (file == NULL)
        return cx_fail(err, CX_E_NOT_FOUND, "%s has no %s configuration that this command writes",
                       cx_live_agent_name(agent), cx_agent_scope_name(scope));
    if (scope == CX_SCOPE_MANAGED)
        return keep_text(cx_str_z(file), out, err);
    if (scope == CX_SCOPE_USER)
        CX_TRY(cx_agent_user_folder(cli, agent, &folder, err));
    else
        CX_TRY(project_folder(cli, &folder, err));
    return keep_text(cx_arena_printf(&cli->arena, "%s/%s", folder, file), out, err);
}

/* --- reading ---------------------------------------------------------------------------------- */

static const char *parent_of(cx_cli *cli, const char *path)
{
    const char *slash = strrchr(path, '/');
    return cx_arena_copy_str(&cli->arena, cx_str_from(path, (size_t)(slash - path))).data;
}

/* A1, of a file or folder that is there. */
static cx_status check_own(const char *path, const cx_facts *facts, cx_file_kind kind, cx_err *err)
{
    static const char *const names[] = {"a file", "a folder", "a symbolic link",
                                        "a device, pipe or socket"};
    if (facts->kind != kind)
        return cx_fail(err, CX_E_DENIED, "%s is %s, expected %s: nothing is changed through it",
                       path, names[facts->kind], names[kind]);
    if (facts->owner_id != cx_user_id())
        return cx_fail(err, CX_E_DENIED,
                       "%s belongs to another user (id %u): only its owner's configuration is "
                       "changed",
                       path, facts->owner_id);
    if ((facts->mode & 0002) != 0)
        return cx_fail(err, CX_E_DENIED,
                       "%s can be written by every user (mode %04o), so its hooks protect nothing: "
                       "'chmod o-w' it first",
                       path, facts->mode);
    if (kind == CX_FILE_REGULAR && facts->link_count > 1)
        return cx_fail(err, CX_E_DENIED, "%s has %llu names (hard links): expected one", path,
                       (unsigned long long)facts->link_count);
    return CX_SUCCESS;
}

cx_status cx_agent_file_read(cx_cli *cli, const char *path, bool strict, cx_agent_file *out,
                             cx_err *err)
{
    cx_facts facts;
    cx_buf text;
    const char *folder = parent_of(cli, path);
    if (folder == NULL)
        return cx_fail_nomem(err);
    *out = (cx_agent_file){.path = path, .text = CX_STR("")};
    cx_status status = cx_path_facts(folder, !strict, &facts, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    out->folder_there = true;
    if (strict)
        CX_TRY(check_own(folder, &facts, CX_FILE_FOLDER, err));
    status = cx_path_facts(path, !strict, &facts, err);
    if (status.code == CX_E_NOT_FOUND)
        return CX_SUCCESS;
    CX_TRY(status);
    if (strict)
        CX_TRY(check_own(path, &facts, CX_FILE_REGULAR, err));
    if (facts.kind != CX_FILE_REGULAR)
        return cx_fail(err, CX_E_DENIED, "%s is no regular file", path);
    out->there = true;
    out->mode = facts.mode;
    cx_buf_init(&text, cli->alloc);
    status = cx_io_read_file(cli->io, path, CX_LIVE_CONFIG_MAX, &text, err);
    if (!cx_failed(status)) {
        out->text = cx_arena_copy_str(&cli->arena, cx_buf_str(&text));
        if (out->text.data == NULL)
            status = cx_fail_nomem(err);
    }
    cx_buf_done(&text);
    return status.code == CX_E_LIMIT
               ? cx_fail(err, CX_E_DENIED,
                         "%s is longer than 1 MiB: no agent's configuration is, and nothing is "
                         "changed",
                         path)
               : status;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A2 */
static cx_status check_unchanged(cx_cli *cli, const cx_agent_file *file, cx_err *err)
{
    cx_agent_file now;
    CX_TRY(cx_agent_file_read(cli, file->path, true, &now, err));
    if (now.there != file->there || !cx_str_eq(now.text, file->text))
        return cx_fail(err, CX_E_CONFLICT,
                       "%s changed while the question was asked, and nothing was written: start "
                       "again",
                       file->path);
    return CX_SUCCESS;
}

static cx_status write_in(cx_cli *cli, cx_file folder, const cx_agent_file *file, cx_str text,
                          uint32_t mode, cx_err *err)
{
    const cx_io *io = cli->io;
    const char *name = strrchr(file->path, '/') + 1;
    cx_file made;
    cx_str temporary =
        cx_arena_printf(&cli->arena, ".%s.%016llx.tmp", name, (unsigned long long)cx_io_seed(io));
    if (temporary.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_folder_open_in(folder, temporary.data, CX_IO_WRITE | CX_IO_CREATE | CX_IO_EXCLUSIVE,
                             &made, err));
    cx_status status = cx_io_write_all(io, made, file->path, text.data, text.size, err);
    int failed = 0;
    if (!cx_failed(status) && (failed = io->sync(io, made, false)) != 0)
        status = cx_fail_os(err, -failed, "cannot sync %s", file->path);
    if ((failed = io->close(io, made)) != 0 && !cx_failed(status))
        status = cx_fail_os(err, -failed, "cannot close %s", file->path);
    if (!cx_failed(status))
        status = cx_folder_set_mode(folder, temporary.data, mode, err);
    if (!cx_failed(status))
        status = check_unchanged(cli, file, err);
    if (!cx_failed(status))
        status = cx_folder_rename(folder, temporary.data, name, err);
    if (cx_failed(status)) {
        cx_err ignored;
        cx_status removed = cx_folder_remove(folder, temporary.data, &ignored);
        (void)removed;
    }
    return status;
}

cx_status cx_agent_file_write(cx_cli *cli, const cx_agent_file *file, cx_str text, uint32_t mode,
                              cx_err *err)
{
    cx_file folder;
    const char *path = parent_of(cli, file->path);
    if (path == NULL)
        return cx_fail_nomem(err);
    if (!file->folder_there) {
        CX_TRY(cx_path_make_folders(path, err));
        if ((mode & 0044) != 0) /* an administrator's and a project's: as readable as the file */
            CX_TRY(cx_path_set_mode(path, 0755, err));
    }
    CX_TRY(cx_folder_open(path, &folder, err));
    cx_status status = write_in(cli, folder, file, text, file->there ? file->mode : mode, err);
    cx_folder_close(folder);
    CX_TRY(status);
    return cx_io_sync_folder(cli->io, path, err);
}

cx_status cx_agent_file_remove(cx_cli *cli, const cx_agent_file *file, cx_err *err)
{
    const char *path = parent_of(cli, file->path);
    if (path == NULL)
        return cx_fail_nomem(err);
    CX_TRY(check_unchanged(cli, file, err));
    int failed = cli->io->unlink(cli->io, file->path);
    if (failed != 0)
        return cx_fail_os(err, -failed, "cannot remove %s", file->path);
    return cx_io_sync_folder(cli->io, path, err);
}

/* --- what was there before -------------------------------------------------------------------- */

static cx_status undo_path(cx_cli *cli, const char *home, const char *path, const char **out,
                           cx_err *err)
{
    char hex[65] = "";
    cx_digest digest = cx_digest_of(cx_str_bytes(cx_str_z(path)));
    cx_hex_encode(cx_bytes_from(digest.bytes, 32), hex);
    return keep_text(cx_arena_printf(&cli->arena, "%s/hooks/%.32s.json", home, hex), out, err);
}

static cx_status read_keys(cx_cli *cli, const cx_json *value, cx_agent_undo *out, cx_err *err)
{
    const cx_json *list = cx_json_get_typed(value, CX_STR("keys"), CX_JSON_ARRAY);
    size_t count = list == NULL ? 0 : list->count;
    cx_str *keys = CX_ARENA_ARRAY(&cli->arena, cx_str, count + 1);
    if (keys == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (list->items[i].type == CX_JSON_STRING)
            keys[out->key_count++] = cx_json_text(&list->items[i]);
    out->keys = keys;
    return CX_SUCCESS;
}

cx_status cx_agent_undo_read(cx_cli *cli, const char *home, const char *path, cx_agent_undo *out,
                             cx_err *err)
{
    const char *record;
    cx_buf text;
    cx_json value;
    *out = (cx_agent_undo){.known = false};
    CX_TRY(undo_path(cli, home, path, &record, err));
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_io_read_file(cli->io, record, CX_LIVE_CONFIG_MAX * 8, &text, err);
    if (status.code == CX_E_NOT_FOUND) {
        cx_buf_done(&text);
        return CX_SUCCESS;
    }
    cx_str kept = cx_arena_copy_str(&cli->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    CX_TRY(status);
    if (kept.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_json_parse_text(kept, &cli->arena, &value, err));
    const cx_json *before = CX_JSON_GET(&value, "before"),
                  *only = CX_JSON_GET(&value, "managed_only");
    out->was_there = before != NULL && before->type == CX_JSON_STRING;
    out->before = out->was_there ? cx_json_text(before) : CX_STR("");
    out->managed_only = only != NULL && only->type == CX_JSON_TRUE;
    if (!cx_str_is(CX_JSON_GET_STR(&value, "path"), path) ||
        !cx_digest_parse(CX_JSON_GET_STR(&value, "wrote_sha256"), &out->wrote))
        return cx_fail(err, CX_E_FORMAT,
                       "%s does not describe %s: expected path, before and "
                       "wrote_sha256; remove it to go on without",
                       record, path);
    out->known = true;
    return read_keys(cli, &value, out, err);
}

/* A3 */
cx_status cx_agent_undo_write(cx_cli *cli, const char *home, const char *path,
                              const cx_agent_undo *undo, cx_err *err)
{
    const char *record;
    cx_buf text;
    cx_json_list list = cx_json_list_begin(&cli->arena);
    cx_json value;
    CX_TRY(undo_path(cli, home, path, &record, err));
    CX_TRY(cx_path_make_folders(parent_of(cli, record), err));
    if (undo->was_there)
        cx_json_put(&list, "before", cx_json_make_str(undo->before));
    else
        cx_json_put_null(&list, "before");
    cx_json_put_strs(&list, "keys", undo->keys, undo->key_count);
    cx_json_put_bool(&list, "managed_only", undo->managed_only);
    cx_json_put_z(&list, "path", path);
    cx_json_put_uint(&list, "v", 1);
    cx_json_put_digest(&list, "wrote_sha256", &undo->wrote);
    CX_TRY(cx_json_list_end_object(&list, &value, err));
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_json_write(&text, &value, CX_JSON_PY_COMPACT, err);
    cx_buf_add_byte(&text, '\n');
    if (!cx_failed(status))
        status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        status = cx_io_replace_private_file(cli->io, record, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}

cx_status cx_agent_undo_forget(cx_cli *cli, const char *home, const char *path, cx_err *err)
{
    const char *record;
    CX_TRY(undo_path(cli, home, path, &record, err));
    int failed = cli->io->unlink(cli->io, record);
    cx_status status =
        failed == 0 ? CX_SUCCESS : cx_fail_os(err, -failed, "cannot remove %s", record);
    return status.code == CX_E_NOT_FOUND ? CX_SUCCESS : status;
}
