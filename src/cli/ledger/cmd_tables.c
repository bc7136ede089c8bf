/*
 * cmd_tables.c - `cortex tables status` and `tables rebuild`. There are two kinds of tables, both
 * derived from the log: those of the ledger, and the trace index, which may be another program's
 * database.
 */
#include "cli/trace/index_view.h"
#include "cli/trace/trace.h"
#include "ledger/api.h"

/* --- status ----------------------------------------------------------------------------------- */

static cx_status tables_status_job(cx_cli_ledger *l, void *state, cx_err *err)
{
    cx_tables_status tables;
    const char *where;
    cx_cli_index_view index;
    (void)state;
    CX_TRY(cx_home_tables_status(l->home, &tables, err));
    if (cx_cli_has(l->args, "count"))
        CX_TRY(cx_home_count_rows(l->home, &tables.entry_rows, &tables.record_rows, err));
    CX_TRY(cx_cli_index_where(l, &where, err));
    cx_cli_index_inspect(l->home, where, &index);
    index.max_bytes = l->cli->max_index;
    /* Who names an index wants to know about that one. */
    if (!index.there && cx_cli_has(l->args, "db")) {
        *err = index.why_not;
        return (cx_status){index.why_not.code};
    }
    if (!l->json) {
        cx_buf_printf(
            &l->out, "log     %llu commits\ntables  %llu commits, %llu entries, %llu records\n",
            (unsigned long long)tables.log_commits, (unsigned long long)tables.table_commits,
            (unsigned long long)tables.entry_rows, (unsigned long long)tables.record_rows);
        cx_cli_index_print(&l->out, &index, &tables);
        return CX_SUCCESS;
    }
    cx_json_list json = cx_json_list_begin(l->arena);
    cx_json_put_uint(&json, "entries", tables.entry_rows);
    cx_cli_index_json(&json, &index, &tables);
    cx_json_put_uint(&json, "log_commits", tables.log_commits);
    cx_json_put_uint(&json, "records", tables.record_rows);
    cx_json_put_uint(&json, "table_commits", tables.table_commits);
    return cx_cli_end_json(&json, &l->out, err);
}

static int run_tables_status(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {CX_CLI_READ, false, NULL, tables_status_job};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_option status_options[] = {
    CX_CLI_OPT_FLAG("count", 0,
                    "Count the rows of the ledger's tables, which reads all of them, and compare "
                    "with the numbers that are kept."),
    CX_CLI_OPTIONS_TRACES, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_tables_status = {
    .name = "tables status",
    .purpose = "show how far the tables have caught up with the log",
    .about = "The log is the only source of truth. The tables in cortex.db and the trace index "
             "(cirislens.db, or the database that --db names) are derived from it and can be "
             "deleted at any time. The index catches up when it is queried: a lag is not an error.",
    .options = status_options,
    .option_count = CX_COUNT_OF(status_options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex tables status\n"
               "cortex tables status --db postgresql:///traces",
    .run = run_tables_status,
};

/* --- rebuild ---------------------------------------------------------------------------------- */

typedef struct rebuilt {
    cx_rebuild_result tables;
    cx_index_status index; /* engine NULL = left alone */
} rebuilt;

static cx_status empty_index(const char *where, cx_err *err)
{
    cx_index *index;
    CX_TRY(cx_index_open(where, CX_INDEX_WRITE, &index, err));
    cx_status status = cx_index_clear(index, err);
    cx_index_close(index);
    return status;
}

static cx_status reread_index_status(const char *where, cx_index_status *out, cx_err *err)
{
    cx_index *index;
    CX_TRY(cx_index_open(where, CX_INDEX_READ, &index, err));
    cx_status status = cx_index_get_status(index, out, err);
    cx_index_close(index);
    return status;
}

/* Emptied, and filled from the log's beginning. */
static cx_status rebuild_index(cx_cli_ledger *l, cx_index_status *out, cx_err *err)
{
    const char *where;
    cx_home *home = NULL;
    cx_recorder *recorder = NULL;
    const cx_home_options options = cx_cli_home_options(l->cli, CX_CLI_READ, NULL);
    cx_status status;
    CX_TRY(cx_cli_index_where(l, &where, err));
    CX_TRY(empty_index(where, err));
    CX_TRY_GOTO(status, cx_home_open(l->path, &options, &home, err));
    const cx_recorder_options bounded = {
        .index_bytes = cx_cli_number(l->args, "max-index", l->cli->max_index)};
    CX_TRY_GOTO(status, cx_recorder_open(home, &bounded, &recorder, err));
    CX_TRY_GOTO(status, cx_recorder_feed_now(recorder, where, err));
    CX_TRY_GOTO(status, reread_index_status(where, out, err));
done:
    cx_recorder_close(recorder);
    cx_status closed = cx_home_close(home, NULL);
    (void)closed; /* nothing was written */
    return status;
}

static cx_status rebuild_tables(cx_cli_ledger *l, bool verify_only, cx_rebuild_result *out,
                                cx_err *err)
{
    cx_cli_progress progress;
    cx_rebuild_mode mode = verify_only                      ? CX_REBUILD_VERIFY_ONLY
                           : cx_cli_has(l->args, "replace") ? CX_REBUILD_REPLACE
                                                            : CX_REBUILD;
    cx_cli_progress_init(&progress, l->cli->io, "tables");
    if (cx_cli_has(l->args, "progress"))
        cx_cli_progress_ask(&progress);
    cx_home_options options = cx_cli_home_options(l->cli, CX_CLI_WRITE, &progress);
    cx_status status = cx_home_rebuild(l->path, &options, mode, out, err);
    cx_cli_progress_end(&progress);
    return status;
}

static void print_rebuilt(cx_buf *out, const rebuilt *done, bool verify_only)
{
    const cx_rebuild_result *tables = &done->tables;
    cx_buf_printf(out, "%s %llu entries and %llu records from %llu commits%s; the old tables %s\n",
                  verify_only ? "derived" : "made", (unsigned long long)tables->entries,
                  (unsigned long long)tables->records, (unsigned long long)tables->commits,
                  tables->resumed ? " (took up an earlier run)" : "",
                  tables->changed ? "were absent or different" : "were the same");
    if (done->index.engine != NULL)
        cx_buf_printf(out, "rebuilt the index: %llu traces, %llu unverified, %llu alerts (%s)\n",
                      (unsigned long long)done->index.trace_rows,
                      (unsigned long long)done->index.unverified_rows,
                      (unsigned long long)done->index.alert_rows, done->index.engine);
}

static cx_status write_rebuilt_json(cx_arena *arena, const rebuilt *done, cx_buf *out, cx_err *err)
{
    cx_json_list json = cx_json_list_begin(arena), list = cx_json_list_begin(arena);
    cx_json_put_bool(&json, "changed", done->tables.changed);
    cx_json_put_uint(&json, "commits", done->tables.commits);
    cx_json_put_uint(&json, "entries", done->tables.entries);
    cx_json_put_uint(&json, "records", done->tables.records);
    cx_json_put_bool(&json, "resumed", done->tables.resumed);
    if (done->index.engine == NULL) {
        cx_json_put_null(&json, "index");
        return cx_cli_end_json(&json, out, err);
    }
    cx_json_put_uint(&list, "alerts", done->index.alert_rows);
    cx_json_put_str(&list, "engine", cx_str_z(done->index.engine));
    cx_json_put_uint(&list, "traces", done->index.trace_rows);
    cx_json_put_uint(&list, "unverified", done->index.unverified_rows);
    cx_json_put_object(&json, "index", &list);
    return cx_cli_end_json(&json, out, err);
}

static cx_status rebuild_table_set(cx_cli_ledger *l, cx_err *err)
{
    rebuilt done = {0};
    bool verify_only = cx_cli_has(l->args, "verify-only");
    cx_alloc_return_large();
    CX_TRY(cx_cli_home_path(l->cli, l->args, &l->path, err));
    CX_TRY(rebuild_tables(l, verify_only, &done.tables, err));
    if (!verify_only) {
        CX_TRY(cx_links_clear(l->path, err));
        CX_TRY(rebuild_index(l, &done.index, err));
    }
    if (cx_cli_has(l->args, "json"))
        return write_rebuilt_json(l->arena, &done, &l->out, err);
    print_rebuilt(&l->out, &done, verify_only);
    return CX_SUCCESS;
}

static int run_tables_rebuild(cx_cli *cli, const cx_cli_args *args)
{
    cx_err err = {0};
    cx_cli_ledger l = {.cli = cli, .args = args, .arena = &cli->arena};
    if (cx_cli_has(args, "replace") && cx_cli_has(args, "verify-only"))
        return cx_cli_misuse(args, "expected either --replace or --verify-only");
    cx_buf_init(&l.out, cli->alloc);
    int code = cx_failed(rebuild_table_set(&l, &err)) ? cx_cli_ledger_fail(cli, args, &err)
                                                      : cx_cli_answer(cli, &l.out, CX_EXIT_HOLDS);
    cx_buf_done(&l.out);
    return code;
}

static const cx_cli_option rebuild_options[] = {
    CX_CLI_OPT_FLAG("replace", 0, "Use the new tables even where they contradict the old ones."),
    CX_CLI_OPT_FLAG("verify-only", 0,
                    "Compare only; write nothing, and leave the index unchanged."),
    CX_CLI_OPTION_PROGRESS,
    CX_CLI_OPTION_MAX_INDEX,
    CX_CLI_OPTIONS_TRACES,
    CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_tables_rebuild = {
    .name = "tables rebuild",
    .purpose = "rebuild the tables from the log",
    .about = "Derives new tables from the log next to the old ones, compares them with the "
             "manifests and the old tables, and then replaces the old tables. An interrupted "
             "rebuild is resumed; until the end the old tables stay in use. Then the trace index "
             "(in the data directory, or where --db says) is emptied and rebuilt, and links.db is "
             "emptied.",
    .options = rebuild_options,
    .option_count = CX_COUNT_OF(rebuild_options),
    .exits = "0 done\n1 the old tables contradict the log and were not replaced\n2 usage error\n3 "
             "could not be done: no data directory, owned by another process, damaged",
    .example = "cortex tables rebuild\n"
               "cortex tables rebuild --db postgresql:///traces",
    .run = run_tables_rebuild,
};
