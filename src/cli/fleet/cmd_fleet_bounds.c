/*
 * cmd_fleet_bounds.c - `cortex fleet quota` and `cortex fleet prune`: what a part may grow to, and
 * what of its past is not needed any more.
 */
#include <inttypes.h>

#include "cli/fleet/fleet_args.h"
#include "cli/ledger/ledger.h"
#include "fleet/api.h"
#include "json/api.h"

#define KEEP_DEFAULT 10000
/* A large part is read for minutes, and its lease must outlast that; F1 stands against the rest. */
#define PRUNE_ANSWER_MS 1800000
#define PRUNE_LEASE_MS 600000

static const cx_cli_operand part_operands[] = {{"PART", CX_CLI_TEXT, NULL, false, false}};

/* --- fleet quota ------------------------------------------------------------------------------ */

typedef struct found_quota {
    unsigned number;
    uint64_t quota, stored;
} found_quota;

static cx_status note_quota(void *arg, const cx_fleet_row *row, cx_err *err)
{
    found_quota *out = arg;
    (void)err;
    if (row->number == out->number) {
        out->quota = row->quota;
        out->stored = row->stored;
    }
    return CX_SUCCESS;
}

static cx_status write_quota(cx_cli_fleet_job *job, cx_str name, const found_quota *found,
                             cx_err *err)
{
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_str(&json, "part", name);
        cx_cli_fleet_put_quota(&json, found->quota, found->stored);
        return cx_cli_end_json(&json, &job->out, err);
    }
    cx_buf_printf(&job->out, "the part %.*s ", (int)name.size, name.data);
    if (found->quota == 0)
        cx_buf_add_z(&job->out, "has no quota\n");
    else
        cx_buf_printf(&job->out, "has a quota of %" PRIu64 " bytes; its log has %" PRIu64 "%s\n",
                      found->quota, found->stored,
                      found->stored >= found->quota ? ": nothing new is recorded" : "");
    return CX_SUCCESS;
}

static cx_status quota_work(cx_cli_fleet_job *job, cx_err *err)
{
    cx_str name = cx_str_z(job->args->operands[0]);
    cx_fleet_part part;
    CX_TRY(cx_fleet_find(job->fleet, name, &part, err));
    if (cx_cli_has(job->args, "bytes") || cx_cli_has(job->args, "none"))
        CX_TRY(
            cx_fleet_set_quota(job->fleet, part.number, cx_cli_number(job->args, "bytes", 0), err));
    found_quota found = {.number = part.number};
    CX_TRY(cx_fleet_list(job->fleet, note_quota, &found, err));
    return write_quota(job, name, &found, err);
}

static int run_fleet_quota(cx_cli *cli, const cx_cli_args *args)
{
    bool given = cx_cli_has(args, "bytes"), none = cx_cli_has(args, "none");
    uint64_t bytes = cx_cli_number(args, "bytes", 1);
    if (given && none)
        return cx_cli_misuse(args, "expected either --bytes SIZE or --none");
    if (bytes == 0 || bytes > INT64_MAX)
        return cx_cli_misuse(args, "option --bytes: expected a size from 1 to 2^63-1; --none takes "
                                   "the quota away");
    return cx_cli_fleet_run(cli, args, given || none ? CX_CLI_FLEET_WRITES : CX_CLI_FLEET_READS,
                            quota_work);
}

static const cx_cli_option quota_options[] = {
    CX_CLI_OPT("bytes", 0, CX_CLI_SIZE, "SIZE",
               "What the log of the part may have, archives as they are stored; with K, M, G as "
               "powers of 1024."),
    CX_CLI_OPT_FLAG("none", 0, "Take the quota away."), CX_CLI_OPTION_DATABASE, CX_CLI_OPTION_JSON,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_quota = {
    .name = "fleet quota",
    .purpose = "limit what a part may record, or show its limit",
    .about =
        "Sets how large the log of the part PART may be; without --bytes and --none it shows that, "
        "and what the log has. A commit that would go beyond is refused by the process that owns "
        "the part, whichever node it is: over HTTP with 507. Reading, erasing, retention and holds "
        "go on. Tables and index come on top, and are not counted. The owner hears of a change "
        "with its next commit or renewal of the lease, within two seconds.\n\nNeeds the owner of "
        "the tables: nodes cannot change quotas.",
    .operands = part_operands,
    .operand_count = CX_COUNT_OF(part_operands),
    .options = quota_options,
    .option_count = CX_COUNT_OF(quota_options),
    .exits = "0 set, or shown" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet quota team-b --bytes 20G\n"
               "cortex fleet quota team-b",
    .run = run_fleet_quota,
};

/* --- fleet prune ------------------------------------------------------------------------------ */

static cx_status write_pruned(cx_cli_fleet_job *job, cx_str name, const cx_fleet_pruned *pruned,
                              cx_err *err)
{
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_uint(&json, "base", pruned->base);
        cx_json_put_uint(&json, "kept", pruned->kept);
        cx_json_put_str(&json, "part", name);
        cx_json_put_uint(&json, "removed", pruned->removed);
        return cx_cli_end_json(&json, &job->out, err);
    }
    if (pruned->removed == 0)
        cx_buf_printf(&job->out, "the part %.*s has nothing to prune\n", (int)name.size, name.data);
    else
        cx_buf_printf(&job->out,
                      "removed %" PRIu64 " commits of the part %.*s; its chain begins at commit "
                      "%" PRIu64 ", and %" PRIu64
                      " before it stay, because their bytes are there\n",
                      pruned->removed, (int)name.size, name.data, pruned->base, pruned->kept);
    return CX_SUCCESS;
}

static cx_status prune_part(cx_fleet *fleet, cx_cli_fleet_job *job, cx_fleet_pruned *out,
                            cx_err *err)
{
    cx_str name = cx_str_z(job->args->operands[0]);
    cx_fleet_part part;
    CX_TRY(cx_fleet_find(fleet, name, &part, err));
    CX_TRY(cx_cli_fleet_take(fleet, &part, name, err));
    cx_status status =
        cx_fleet_prune(fleet, &part, cx_cli_number(job->args, "keep", KEEP_DEFAULT), out, err);
    if (part.owned)
        (void)cx_failed(cx_fleet_give_back(fleet, &part, NULL));
    return status;
}

static cx_status prune_work(cx_cli_fleet_job *job, cx_err *err)
{
    const cx_fleet_options options = {
        .node = "cortex-fleet", .lease_ms = PRUNE_LEASE_MS, .answer_ms = PRUNE_ANSWER_MS};
    cx_fleet_pruned pruned;
    cx_fleet *fleet;
    CX_TRY(cx_fleet_open(job->url, &options, &fleet, err));
    cx_status status = prune_part(fleet, job, &pruned, err);
    cx_fleet_close(fleet);
    CX_TRY(status);
    return write_pruned(job, cx_str_z(job->args->operands[0]), &pruned, err);
}

static int run_fleet_prune(cx_cli *cli, const cx_cli_args *args)
{
    if (cx_cli_number(args, "keep", CX_FLEET_KEEP_MIN) < CX_FLEET_KEEP_MIN)
        return cx_cli_misuse(args, "option --keep: expected at least 128 commits");
    return cx_cli_fleet_run(cli, args, CX_CLI_FLEET_URL, prune_work);
}

static const cx_cli_option prune_options[] = {
    CX_CLI_OPT("keep", 0, CX_CLI_COUNT, "N",
               "So many of the newest commits stay in any case; default 10000, at least 128. "
               "Checkpoints of them can be checked later."),
    CX_CLI_OPTION_DATABASE, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_prune = {
    .name = "fleet prune",
    .purpose = "remove the rows of commits that a part does not need any more",
    .about =
        "A commit is a row of the database, and is needed while a file has bytes of it. This "
        "recomputes the chain of the part PART, removes the other rows but the newest, and records "
        "in the chain where it begins now and which older commits stay. Nothing that is recorded "
        "changes.\n\nA checkpoint over all parts ('cortex fleet checkpoint') that is older than "
        "the new begin is indeterminate afterwards: check it before, and make a new one. No node "
        "may own the part meanwhile: drain it first. Needs the owner of the tables.",
    .operands = part_operands,
    .operand_count = CX_COUNT_OF(part_operands),
    .options = prune_options,
    .option_count = CX_COUNT_OF(prune_options),
    .exits = "0 pruned, or there was nothing to prune\n1 the part was lost to another "
             "process\n2 usage error\n3 could not be done: the chain is broken, a node owns the "
             "part, the database is away, refuses the user, or has no fleet",
    .example = "cortex fleet drain n1\n"
               "cortex fleet prune team-b --keep 100000\n"
               "cortex fleet drain n1 --undo",
    .run = run_fleet_prune,
};
