/*
 * fleet_job.c - one command about a fleet: its database, its work, its answer.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/fleet/fleet_args.h"
#include "cli/fleet/part_home.h"
#include "cli/ledger/ledger.h"

cx_status cx_cli_fleet_url(const cx_cli_args *args, const char **out, cx_err *err)
{
    const char *url = cx_cli_value(args, cx_cli_takes(args, "fleet") ? "fleet" : "database");
    if (url == NULL)
        url = getenv("CORTEX_FLEET");
    if (url == NULL || url[0] == 0)
        return cx_fail(err, CX_E_USAGE,
                       "no database is named; expected --database postgresql://USER@HOST/NAME, or "
                       "$CORTEX_FLEET");
    if (!cx_cli_is_database(url))
        return cx_fail(err, CX_E_USAGE,
                       "the database's address cannot be read; expected "
                       "postgresql://USER@HOST:PORT/DATABASE");
    if (strlen(url) > CX_FLEET_URL_MAX)
        return cx_fail(err, CX_E_LIMIT, "the database's address is longer than %d bytes",
                       CX_FLEET_URL_MAX);
    *out = url;
    return CX_SUCCESS;
}

static cx_status open_and_work(cx_cli_fleet_job *job, cx_cli_fleet_use use, cx_cli_fleet_work *work,
                               cx_err *err)
{
    const cx_fleet_options options = {.node = "cortex-fleet",
                                      .read_only = use == CX_CLI_FLEET_READS};
    CX_TRY(cx_fleet_open(job->url, &options, &job->fleet, err));
    cx_status status = work(job, err);
    cx_fleet_close(job->fleet);
    return status;
}

int cx_cli_fleet_run(cx_cli *cli, const cx_cli_args *args, cx_cli_fleet_use use,
                     cx_cli_fleet_work *work)
{
    cx_err err = {0};
    cx_cli_fleet_job job = {.cli = cli, .args = args, .json = cx_cli_has(args, "json")};
    cx_buf_init(&job.out, cli->alloc);
    cx_status status = cx_cli_fleet_url(args, &job.url, &err);
    if (!cx_failed(status))
        status = use == CX_CLI_FLEET_URL ? work(&job, &err) : open_and_work(&job, use, work, &err);
    status = cx_cli_part_denied(status, &err);
    int code = cx_failed(status) ? cx_cli_ledger_fail(cli, args, &err)
                                 : cx_cli_answer(cli, &job.out, job.code);
    cx_buf_done(&job.out);
    return code;
}

cx_str cx_cli_fleet_kept(const cx_cli_fleet_job *job, cx_str text)
{
    return cx_arena_copy_str(&job->cli->arena, text);
}

void cx_cli_fleet_put_quota(cx_json_list *json, uint64_t quota, uint64_t stored)
{
    if (quota == 0) {
        cx_json_put_null(json, "quota_bytes");
        cx_json_put_null(json, "stored_bytes");
        return;
    }
    cx_json_put_uint(json, "quota_bytes", quota);
    cx_json_put_uint(json, "stored_bytes", stored);
}

cx_status cx_cli_fleet_take(cx_fleet *fleet, cx_fleet_part *part, cx_str name, cx_err *err)
{
    bool taken = false;
    CX_TRY(cx_fleet_take(fleet, part, &taken, err));
    if (taken)
        return CX_SUCCESS;
    return cx_fail_at(err, CX_E_BUSY, "Locked", CX_NO_OFFSET,
                      "the part %.*s is owned by a node; drain it first ('cortex fleet drain')",
                      (int)name.size, name.data);
}
