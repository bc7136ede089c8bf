/*
 * probe_record.c - see probe_record.h.
 */
#include "cli/live/probe_record.h"

#include <string.h>

#include "cli/ledger/ledger.h"
#include "os/api.h"

#define RECORD_MAX 4096

static const char *record_path(cx_cli *cli, const char *home, cx_live_agent agent)
{
    return cx_arena_printf(&cli->arena, "%s/hooks/probe-%s.json", home, cx_live_agent_name(agent))
        .data;
}

cx_status cx_probe_record_write(cx_cli *cli, const char *home, cx_live_agent agent, cx_str version,
                                const char *verdict, cx_err *err)
{
    const char *path = record_path(cli, home, agent);
    cx_str folder = cx_arena_printf(&cli->arena, "%s/hooks", home);
    cx_json_list root = cx_json_list_begin(&cli->arena);
    cx_buf text;
    if (path == NULL || folder.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_path_make_folders(folder.data, err));
    cx_json_put_uint(&root, "at_ns", cli->io->wall_ns(cli->io));
    cx_json_put_z(&root, "verdict", verdict);
    cx_json_put_str(&root, "version", version);
    cx_buf_init(&text, cli->alloc);
    cx_status status = cx_cli_end_json(&root, &text, err);
    if (!cx_failed(status))
        status = cx_io_replace_private_file(cli->io, path, cx_buf_bytes(&text), err);
    cx_buf_done(&text);
    return status;
}

cx_probe_record cx_probe_record_read(cx_cli *cli, const char *home, cx_live_agent agent)
{
    cx_probe_record record = {.known = false};
    const char *path = record_path(cli, home, agent);
    cx_buf text;
    cx_json value;
    cx_err ignored;
    cx_buf_init(&text, cli->alloc);
    if (path != NULL && !cx_failed(cx_io_read_file(cli->io, path, RECORD_MAX, &text, &ignored))) {
        cx_str kept = cx_arena_copy_str(&cli->arena, cx_buf_str(&text));
        const cx_json *at = NULL;
        if (kept.data != NULL &&
            !cx_failed(cx_json_parse_text(kept, &cli->arena, &value, &ignored)))
            at = CX_JSON_GET(&value, "at_ns");
        if (at != NULL && cx_json_int64(at, &record.at_ns)) {
            record.verdict = CX_JSON_GET_STR(&value, "verdict");
            record.version = CX_JSON_GET_STR(&value, "version");
            record.known = record.verdict.data != NULL && record.version.data != NULL;
        }
    }
    cx_buf_done(&text);
    return record;
}
