/*
 * cmd_fleet_config.c - `cortex fleet config`: the file of settings of a part.
 */
#include "cli/config.h"
#include "cli/fleet/fleet_args.h"
#include "cli/ledger/ledger.h"
#include "cli/objects.h"
#include "fleet/api.h"
#include "json/api.h"

static const cx_str config_name = {CX_CONFIG_NAME, sizeof CX_CONFIG_NAME - 1};

static cx_status write_config(cx_cli_fleet_job *job, cx_str name, const cx_buf *text, bool there,
                              cx_err *err)
{
    cx_str kept = cx_cli_fleet_kept(job, cx_buf_str(text));
    if (kept.data == NULL && text->size != 0)
        return cx_fail_nomem(err);
    if (job->json) {
        cx_json_list json = cx_json_list_begin(&job->cli->arena);
        cx_json_put_str(&json, "part", name);
        if (there)
            cx_json_put_str(&json, "settings", kept);
        else
            cx_json_put_null(&json, "settings");
        return cx_cli_end_json(&json, &job->out, err);
    }
    if (!there)
        cx_buf_printf(&job->out, "the part %.*s has no settings of its own\n", (int)name.size,
                      name.data);
    cx_buf_add(&job->out, kept.data, kept.size);
    return CX_SUCCESS;
}

/* A file that a command would refuse later is refused now.  It is read once: what is stored is what
 * was checked. */
static cx_status set_config(cx_cli_fleet_job *job, unsigned part, const char *path, cx_err *err)
{
    cx_config_file checked = {0};
    CX_TRY(cx_config_read(job->cli, path, CX_CONFIG_HOME, &checked, err));
    CX_TRY(cx_cli_objects_check(&checked, err));
    return cx_fleet_small_write(job->fleet, part, config_name, cx_str_bytes(checked.text), err);
}

static cx_status config_work(cx_cli_fleet_job *job, cx_err *err)
{
    cx_str name = cx_str_z(job->args->operands[0]);
    const char *path = cx_cli_value(job->args, "set");
    cx_fleet_part part;
    cx_buf text;
    CX_TRY(cx_fleet_find(job->fleet, name, &part, err));
    if (path != NULL)
        CX_TRY(set_config(job, part.number, path, err));
    if (cx_cli_has(job->args, "none"))
        CX_TRY(cx_fleet_small_remove(job->fleet, part.number, config_name, err));
    cx_buf_init(&text, job->cli->alloc);
    cx_status status = cx_fleet_small_read(job->fleet, part.number, config_name, &text, err);
    bool there = !cx_failed(status);
    if (there || status.code == CX_E_NOT_FOUND)
        status = write_config(job, name, &text, there, err);
    cx_buf_done(&text);
    return status;
}

static int run_fleet_config(cx_cli *cli, const cx_cli_args *args)
{
    bool writes = cx_cli_has(args, "set") || cx_cli_has(args, "none");
    if (cx_cli_has(args, "set") && cx_cli_has(args, "none"))
        return cx_cli_misuse(args, "expected either --set FILE or --none");
    return cx_cli_fleet_run(cli, args, writes ? CX_CLI_FLEET_WRITES : CX_CLI_FLEET_READS,
                            config_work);
}

static const cx_cli_operand operands[] = {{"PART", CX_CLI_TEXT, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("set", 0, CX_CLI_TEXT, "FILE",
               "The settings of the part from now on, as in a data directory's config.toml."),
    CX_CLI_OPT_FLAG("none", 0, "Take them away: those of the node count."), CX_CLI_OPTION_DATABASE,
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_fleet_config = {
    .name = "fleet config",
    .purpose = "set or show the settings of a part",
    .about = "Shows the settings that the part PART has of its own: retention, holds, limits, and "
             "whatever else a data directory's config.toml may have. With --set they are those of "
             "FILE, which is checked first. They count for every command on the part, and for a "
             "node from when its worker starts: 'cortex fleet drain', or start the node again.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = "0 set, or shown" CX_CLI_EXITS_DATABASE,
    .example = "cortex fleet config team-b --set team-b.toml\n"
               "cortex fleet config team-b",
    .run = run_fleet_config,
};
