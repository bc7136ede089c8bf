/*
 * cmd_tables.c - `cortex tables status`, `tables rebuild`, and `backup`: looking after a home.
 */
#include "cli/ledger.h"
#include "ledger/verify.h"

/* --- status -------------------------------------------------------------------------------------
 */

static cx_status do_status(cx_cli_ledger *l, void *state, cx_err *err)
{
    cx_tables_status tables;
    (void)state;
    CX_TRY(cx_home_tables_status(l->home, &tables, err));
    if (!l->json) {
        cx_buf_printf(
            &l->out, "log     %llu commits\ntables  %llu commits, %llu entries, %llu records\n",
            (unsigned long long)tables.log_commits, (unsigned long long)tables.table_commits,
            (unsigned long long)tables.entry_rows, (unsigned long long)tables.record_rows);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_cli_put_uint(&json, "entries", tables.entry_rows);
    cx_cli_put_uint(&json, "log_commits", tables.log_commits);
    cx_cli_put_uint(&json, "records", tables.record_rows);
    cx_cli_put_uint(&json, "table_commits", tables.table_commits);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_status(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, do_status};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option status_options[] = {CX_CLI_OPTIONS_LEDGER, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_tables_status = {
    .name = "tables status",
    .purpose = "how far the tables have followed the log",
    .about = "The log is the only truth; the tables in cortex.db are made from it, and can be "
             "deleted at any time.",
    .options = status_options,
    .option_count = CX_COUNT_OF(status_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex tables status",
    .run = run_status,
};

/* --- rebuild ------------------------------------------------------------------------------------
 */

static cx_status rebuild(cx_cli *cli, const cx_cli_args *args, cx_buf *out, cx_err *err)
{
    const char *path;
    cx_rebuild_result done;
    cx_cli_progress progress;
    bool verify_only = cx_cli_has(args, "verify-only");
    cx_rebuild_mode mode = verify_only                   ? CX_REBUILD_VERIFY_ONLY
                           : cx_cli_has(args, "replace") ? CX_REBUILD_REPLACE
                                                         : CX_REBUILD;
    CX_TRY(cx_cli_home_path(cli, args, &path, err));
    cx_cli_progress_init(&progress, cli->io, "tables");
    cx_home_options options = cx_cli_home_options(cli, CX_CLI_WRITE, &progress);
    cx_status status = cx_home_rebuild(path, &options, mode, &done, err);
    cx_cli_progress_end(&progress);
    CX_TRY(status);
    if (!cx_cli_has(args, "json")) {
        cx_buf_printf(out,
                      "%s %llu entries and %llu records from %llu commits%s; the old tables %s\n",
                      verify_only ? "derived" : "made", (unsigned long long)done.entries,
                      (unsigned long long)done.records, (unsigned long long)done.commits,
                      done.resumed ? " (took up an earlier run)" : "",
                      done.changed ? "were absent or different" : "were the same");
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(&cli->arena);
    cx_cli_put_bool(&json, "changed", done.changed);
    cx_cli_put_uint(&json, "commits", done.commits);
    cx_cli_put_uint(&json, "entries", done.entries);
    cx_cli_put_uint(&json, "records", done.records);
    cx_cli_put_bool(&json, "resumed", done.resumed);
    return cx_cli_end_json(&json, out, err);
}

static int run_rebuild(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_buf out;
    if (cx_cli_has(args, "replace") && cx_cli_has(args, "verify-only"))
        return cx_cli_misuse(args, "expected either --replace or --verify-only");
    cx_buf_init(&out, cli->alloc);
    int code = cx_failed(rebuild(cli, args, &out, &err)) ? cx_cli_ledger_fail(cli, args, &err)
                                                         : cx_cli_answer(cli, &out, CX_EXIT_HOLDS);
    cx_buf_done(&out);
    return code;
}

static const cx_cli_option rebuild_options[] = {
    CX_CLI_OPT_FLAG("replace", 0, "Take the new tables even where the old ones say otherwise."),
    CX_CLI_OPT_FLAG("verify-only", 0, "Compare only; write nothing."), CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_tables_rebuild = {
    .name = "tables rebuild",
    .purpose = "make the tables anew from the log",
    .about = "Derives all tables from the log beside the old ones, compares them with the "
             "manifests and with the old ones, and puts them in their place. A run that was "
             "interrupted is taken up again; until the end the old tables stay.",
    .options = rebuild_options,
    .option_count = CX_COUNT_OF(rebuild_options),
    .exits = "0 done\n1 the old tables say otherwise: they stay\n2 usage error\n"
             "3 it could not be done: no home, held by another process, damaged",
    .example = "cortex tables rebuild",
    .run = run_rebuild,
};

/* --- backup -------------------------------------------------------------------------------------
 */

static cx_status do_backup(cx_cli_ledger *l, void *state, cx_err *err)
{
    const char *to = l->args->operands[0];
    (void)state;
    CX_TRY(cx_home_backup(l->home, to, err));
    if (!l->json) {
        cx_buf_add_z(&l->out, "copied to ");
        cx_cli_add_text(&l->out, cx_str_z(to));
        cx_buf_add_byte(&l->out, '\n');
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_cli_put_str(&json, "backup", cx_str_z(to));
    cx_cli_put_str(&json, "home", cx_str_z(l->path));
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_backup(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, do_backup};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_operand backup_operands[] = {{"DIR", CX_CLI_FILE, NULL, false, false}};

const cx_cli_command cx_cli_backup = {
    .name = "backup",
    .purpose = "copy a home while it is written to",
    .about = "Copies everything acknowledged so far to the new folder DIR, which is a home of its "
             "own right. Others may go on writing meanwhile. 'cortex verify --home DIR' checks the "
             "copy.",
    .operands = backup_operands,
    .operand_count = CX_COUNT_OF(backup_operands),
    .options = status_options,
    .option_count = CX_COUNT_OF(status_options),
    .exits = "0 copied\n1 DIR exists\n2 usage error\n"
             "3 it could not be copied: no home, unreadable, full disk",
    .example = "cortex backup /mnt/backup/cortex-2026-11-21",
    .run = run_backup,
};
