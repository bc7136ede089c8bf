/*
 * part_home.c - a data directory in a database, for commands that know folders.
 */
#include "cli/fleet/part_home.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/api.h"
#include "os/api.h"

bool cx_cli_is_database(const char *home)
{
    return strncmp(home, "postgresql://", 13) == 0 || strncmp(home, "postgres://", 11) == 0;
}

cx_status cx_cli_split_database(cx_arena *arena, const char *home, const char **out_url,
                                cx_str *out_part, cx_err *err)
{
    const char *hash = strrchr(home, '#');
    size_t size = hash == NULL ? strlen(home) : (size_t)(hash - home);
    if (size > CX_FLEET_URL_MAX)
        return cx_fail(err, CX_E_USAGE, "the database's address is longer than %d bytes",
                       CX_FLEET_URL_MAX);
    cx_str url = cx_arena_printf(arena, "%.*s", (int)size, home);
    if (url.data == NULL)
        return cx_fail_nomem(err);
    *out_url = url.data;
    *out_part = hash == NULL ? CX_STR(CX_FLEET_MAIN) : cx_str_z(hash + 1);
    if (out_part->size == 0 || out_part->size > CX_FLEET_PART_NAME_MAX)
        return cx_fail(err, CX_E_USAGE,
                       "after the # in the database's address: expected the name of a part, 1 to "
                       "%d characters",
                       CX_FLEET_PART_NAME_MAX);
    return CX_SUCCESS;
}

cx_status cx_cli_part_denied(cx_status status, cx_err *err)
{
    char message[CX_ERR_MESSAGE_SIZE];
    if (status.code != CX_E_DENIED)
        return status;
    (void)snprintf(message, sizeof message, "%s", err->message);
    return cx_fail_at(err, CX_E_IO, err->tag == NULL ? "DatabaseAway" : err->tag, CX_NO_OFFSET,
                      "%s", message);
}

cx_status cx_cli_part_open_with(cx_cli *cli, const char *home, cx_fleet_files_options *options,
                                const char **out_path, cx_err *err)
{
    cx_fleet_files *files;
    const char *url;
    CX_ASSERT(cli->part == NULL);
    CX_TRY(cx_cli_split_database(&cli->arena, home, &url, &options->part, err));
    options->url = url;
    CX_TRY(cx_cli_part_denied(cx_fleet_files_open(options, &files, err), err));
    const char *path = cx_fleet_files_path(files);
    const cx_io *io = cx_fleet_files_io(files);
    cx_str prefix = cx_arena_printf(&cli->arena, "%s/", path);
    cx_status status =
        prefix.data == NULL ? cx_fail_nomem(err) : cx_db_use_files(prefix.data, io, err);
    if (cx_failed(status)) {
        cx_fleet_files_close(files);
        return status;
    }
    cx_path_use_files(path, io);
    cli->part = files;
    cli->files = *io;
    *out_path = path;
    return CX_SUCCESS;
}

cx_status cx_cli_part_open(cx_cli *cli, const char *home, const char **out_path, cx_err *err)
{
    cx_fleet_files_options options = {0};
    if (cli->part == NULL)
        return cx_cli_part_open_with(cli, home, &options, out_path, err);
    *out_path = cx_fleet_files_path(cli->part);
    return CX_SUCCESS;
}

cx_fleet_files *cx_cli_part_files(const cx_cli *cli)
{
    return cli->part;
}

cx_status cx_cli_part_room(void *arg, uint64_t bytes, cx_err *err)
{
    cx_cli *cli = arg;
    return cli->part == NULL ? CX_SUCCESS : cx_fleet_files_room(cli->part, bytes, err);
}

void cx_cli_part_renew(cx_cli *cli)
{
    if (cli->part != NULL)
        cx_fleet_files_renew_state(cli->part);
}

cx_status cx_cli_part_index(cx_cli *cli, const char **out_path, cx_err *err)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *user = getenv("HOME");
    char name[2 * 16 + 1];
    uint8_t id[16];
    cx_str folder = CX_STR("");
    if (cache != NULL && cache[0] == '/')
        folder = cx_arena_printf(&cli->arena, "%s/cortex", cache);
    else if (user != NULL && user[0] != 0)
        folder = cx_arena_printf(&cli->arena, "%s/.cache/cortex", user);
    if (folder.data == NULL)
        return cx_fail_nomem(err);
    if (folder.size == 0)
        return cx_fail(err, CX_E_USAGE,
                       "expected --db FILE: neither $XDG_CACHE_HOME nor $HOME is set");
    CX_TRY(cx_path_make_folders(folder.data, err));
    cx_fleet_files_id(cli->part, id);
    cx_hex_encode(cx_bytes_from(id, sizeof id), name);
    name[sizeof name - 1] = 0;
    cx_str path = cx_arena_printf(&cli->arena, "%s/part-%s.db", folder.data, name);
    *out_path = path.data;
    return path.data == NULL ? cx_fail_nomem(err) : CX_SUCCESS;
}

void cx_cli_part_explain(cx_cli *cli, cx_err *err)
{
    char said[CX_ERR_MESSAGE_SIZE];
    cx_str owner = CX_STR("");
    if (cli->part == NULL)
        return;
    (void)snprintf(said, sizeof said, "%s", err->message);
    if (err->tag != NULL && strcmp(err->tag, "Locked") == 0) {
        (void)cx_failed(cx_fleet_files_owner(cli->part, &cli->arena, &owner, NULL));
        (void)snprintf(err->message, sizeof err->message,
                       "%s is owned by the node %.*s: set CORTEX_URL to the address of a node and "
                       "CORTEX_TOKEN to a token of scope home:write, and the command writes "
                       "through it; or drain that one",
                       cx_fleet_files_path(cli->part), (int)owner.size,
                       owner.size == 0 ? "" : owner.data);
        return;
    }
    /* What failed, and in place of the system's word for its number those of the database. */
    const char *why = cx_fleet_files_why(cli->part), *number = strrchr(said, ':');
    if (why[0] != 0 && err->os_errno != 0 && strstr(said, why) == NULL)
        (void)snprintf(err->message, sizeof err->message, "%.*s: %s",
                       (int)(number == NULL ? strlen(said) : (size_t)(number - said)), said, why);
}

void cx_cli_part_close(cx_cli *cli)
{
    cx_cli_part_reach_end(cli);
    if (cli->part == NULL)
        return;
    cx_err ignored;
    cx_path_use_files(NULL, NULL);
    (void)cx_failed(cx_db_use_files(NULL, NULL, &ignored));
    cx_fleet_files_close(cli->part);
    cli->part = NULL;
    cli->files = *cx_io_system();
}
