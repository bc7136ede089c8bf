/*
 * cmd_run_read.c - `cortex run list|show|events|diff|reports|spans`: looking at runs (run.md §20,
 * §21).
 */
#include <string.h>

#include "candidate/api.h"
#include "cli/ledger/ledger.h"
#include "cli/run/failed_tests.h"
#include "cli/run/run_fail.h"
#include "cli/run/run_place.h"
#include "cli/run/run_where.h"
#include "cli/run/telemetry.h"

typedef struct read_job {
    cx_cli *cli;
    const cx_cli_args *args;
    cx_run_bundle *bundle;
    cx_buf out;
    bool json;
    bool exact; /* the answer is a file of the bundle, or lines of one */
} read_job;

static cx_status add_value(read_job *l, const cx_json *value, cx_err *err)
{
    CX_TRY(cx_json_write(&l->out, value, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&l->out, '\n');
    return cx_buf_check(&l->out, err);
}

/* Runs `work`, on the run that the first operand names when there is one. */
static int run_read_job(cx_cli *cli, const cx_cli_args *args,
                        cx_status (*work)(read_job *, cx_err *))
{
    read_job l = {.cli = cli, .args = args, .json = cx_cli_has(args, "json")};
    cx_err err = {0};
    cx_status status = CX_SUCCESS;
    int code;
    cx_buf_init(&l.out, cli->alloc);
    if (args->operand_count != 0)
        status = cx_cli_run_find(cli, args, args->operands[0], &l.bundle, &err);
    if (!cx_failed(status))
        status = work(&l, &err);
    if (cx_failed(status))
        code = cx_cli_run_fail(cli, args, &err);
    else
        code = l.exact ? cx_cli_answer_exact(cli, &l.out, CX_EXIT_HOLDS)
                       : cx_cli_answer(cli, &l.out, CX_EXIT_HOLDS);
    cx_run_bundle_close(l.bundle);
    cx_buf_done(&l.out);
    return code;
}

#define RUN_OPERAND                                \
    {                                              \
        "RUN|DIR", CX_CLI_FILE, NULL, false, false \
    }
#define EXITS "0 answered\n2 usage error\n3 could not be answered: no such run, unreadable"

/* --- run list --------------------------------------------------------------------------------- */

static const cx_cli_option list_options[] = {
    CX_CLI_OPT("status", 0, CX_CLI_CHOICE, "RUNNING|SUCCESS|FAILURE", "Only runs that ended so."),
    CX_CLI_OPT("limit", 'n', CX_CLI_COUNT, "N", "At most N runs; default 50, at most 1000."),
    CX_CLI_OPT("cursor", 0, CX_CLI_TEXT, "ID",
               "Continue after this run: `next` of the previous page."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_COMMON,
};

static void add_padded(cx_buf *out, cx_str text, size_t width)
{
    size_t start = out->size;
    cx_shown_add(out, text);
    for (size_t i = out->size - start; i < width; i++)
        cx_buf_add_byte(out, ' ');
}

static void add_cell(cx_buf *out, const cx_json *item, const char *name, size_t width)
{
    cx_str text = cx_json_get_str(item, cx_str_z(name));
    add_padded(out, text.data == NULL ? CX_STR("-") : text, width + 1);
}

static cx_status run_list_job(read_job *l, cx_err *err)
{
    const char *status = cx_cli_value(l->args, "status"), *cursor = cx_cli_value(l->args, "cursor");
    cx_run_list_query query = {.limit = (size_t)cx_cli_number(l->args, "limit", 0)};
    cx_run_store store;
    cx_json page;
    if (status != NULL)
        query.status = cx_str_z(status);
    if (cursor != NULL)
        query.cursor = cx_str_z(cursor);
    if (query.limit > CX_RUN_PAGE_MAX)
        return cx_fail(err, CX_E_USAGE, "option --limit: expected at most %d", CX_RUN_PAGE_MAX);
    CX_TRY(cx_cli_run_store(l->cli, cx_cli_value(l->args, "repo"), false, &store, err));
    CX_TRY(cx_cli_run_page(l->cli, l->args, &store, &query, &page, err));
    if (l->json)
        return add_value(l, &page, err);
    const cx_json *items = CX_JSON_GET(&page, "items");
    for (uint32_t i = 0; items != NULL && i < items->count; i++) {
        const cx_json *item = &items->items[i];
        add_cell(&l->out, item, "run_id", 52);
        add_cell(&l->out, item, "status", 7);
        add_cell(&l->out, item, "created_at", 27);
        add_cell(&l->out, item, "failed_gate", 14); /* "output_schema" */
        cx_shown_add(&l->out, CX_JSON_GET_STR(item, "task_id"));
        cx_buf_add_byte(&l->out, '\n');
    }
    if (items == NULL || items->count == 0)
        cx_buf_add_z(&l->out, "No runs.\n");
    cx_str next = CX_JSON_GET_STR(&page, "next");
    if (next.data != NULL) {
        cx_buf_add_z(&l->out, "More: --cursor ");
        cx_shown_add(&l->out, next);
        cx_buf_add_byte(&l->out, '\n');
    }
    return cx_buf_check(&l->out, err);
}

static int run_run_list(cx_cli *cli, const cx_cli_args *args)
{
    return run_read_job(cli, args, run_list_job);
}

const cx_cli_command cx_cli_run_list = {
    .name = "run list",
    .purpose = "list the runs of this repository, newest first",
    .about = "Lists bundles below the runtime root ($CORTEXPILOT_RUNTIME_ROOT, else "
             ".runtime-cache/cortexpilot of the repository). A run without a manifest is shown as "
             "RUNNING; `cortex run cleanup` ends those whose process died. `sealed` shows whether "
             "the ledger has a seal of the run; `cortex run verify` checks it.",
    .options = list_options,
    .option_count = CX_COUNT_OF(list_options),
    .exits = EXITS,
    .example = "cortex run list --status FAILURE",
    .run = run_run_list,
};

/* --- run show --------------------------------------------------------------------------------- */

static const cx_cli_operand run_operands[] = {RUN_OPERAND};
static const cx_cli_option show_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                             CX_CLI_OPTION_REPO, CX_CLI_OPTIONS_COMMON};

static void add_row(cx_buf *out, const char *label, cx_str text)
{
    if (text.size == 0)
        return;
    cx_buf_printf(out, "%-10s ", label);
    cx_shown_add(out, text);
    cx_buf_add_byte(out, '\n');
}

/* "D07 README.md: a path outside allowed_paths was changed" */
static void add_violation(cx_buf *out, cx_str violation)
{
    char rule[4] = "";
    const char *message = NULL;
    for (size_t i = 0; i < violation.size && i < sizeof rule - 1; i++)
        rule[i] = violation.data[i];
    if (violation.size <= 3 || violation.data[3] == ' ')
        message = cx_diff_rule_text(rule);
    cx_buf_add_z(out, "violation   ");
    cx_shown_add(out, violation);
    if (message != NULL)
        cx_buf_printf(out, ": %s", message);
    cx_buf_add_byte(out, '\n');
}

/* The violations that the event of a moment names; NULL when it has none. */
static cx_status read_violations(read_job *l, const cx_run_moment *moment, const cx_json **out,
                                 cx_err *err)
{
    cx_json event;
    CX_TRY(cx_run_json_read(moment->line, 0, &l->cli->arena, &event, err));
    const cx_json *payload = cx_json_get_typed(&event, CX_STR("payload"), CX_JSON_OBJECT);
    *out = payload == NULL ? NULL : cx_json_get_typed(payload, CX_STR("violations"), CX_JSON_ARRAY);
    return CX_SUCCESS;
}

/* Those of the last gate_failed, or of the policy_violation that its task recorded with it. */
static cx_status add_violations(read_job *l, const cx_run_projection *projection, cx_err *err)
{
    const cx_json *violations = NULL;
    const cx_run_moment *failed = NULL;
    for (size_t i = projection->moments.count; i-- > 0 && violations == NULL;) {
        const cx_run_moment *moment = &projection->moments.items[i];
        if (moment->kind == CX_RUN_EVENT_GATE_FAILED && failed != NULL)
            break;
        if (moment->kind == CX_RUN_EVENT_GATE_FAILED)
            failed = moment;
        else if (failed == NULL || moment->kind != CX_RUN_EVENT_POLICY_VIOLATION ||
                 !cx_str_eq(moment->task_id, failed->task_id))
            continue;
        CX_TRY(read_violations(l, moment, &violations, err));
    }
    for (uint32_t i = 0; violations != NULL && i < violations->count; i++)
        if (violations->items[i].type == CX_JSON_STRING)
            add_violation(&l->out, cx_json_text(&violations->items[i]));
    return CX_SUCCESS;
}

static cx_status add_gates(read_job *l, cx_err *err)
{
    cx_run_projection projection;
    cx_status status = cx_run_view_projection(l->bundle, &l->cli->arena, &projection, err);
    for (unsigned i = 0; !cx_failed(status) && i < CX_RUN_GATE_COUNT; i++) {
        bool reached = false;
        for (size_t t = 0; t < projection.tasks.count; t++)
            reached |= projection.tasks.items[t].gates[i].reached;
        cx_buf_printf(&l->out, "%-12s %s\n", cx_run_gate_names[i],
                      cx_run_projection_passed(&projection, i) ? "passed"
                      : reached                                ? "not passed"
                                                               : "not run");
    }
    if (!cx_failed(status) && projection.failed_gate.size != 0) {
        cx_buf_add_z(&l->out, "failed at  ");
        cx_shown_add(&l->out, projection.failed_gate);
        cx_buf_add_z(&l->out, ": ");
        cx_shown_add(&l->out, projection.reason);
        cx_buf_add_byte(&l->out, '\n');
        status = add_violations(l, &projection, err);
    }
    cx_run_projection_done(&projection, &l->cli->arena);
    return status;
}

/* "unit: 12 passed, 0 failed, 1 skipped (junit)", and what of it was not as demanded. */
static void add_test(cx_buf *out, const cx_json *command)
{
    static const char *const counts[] = {"passed", "failed", "skipped"};
    const cx_json *report = cx_json_get_typed(command, CX_STR("report"), CX_JSON_OBJECT);
    const char *between = ": ";
    if (report == NULL)
        return;
    cx_buf_printf(out, "%-12s ", "report");
    cx_shown_add(out, CX_JSON_GET_STR(command, "name"));
    for (size_t i = 0; i < CX_COUNT_OF(counts); i++) {
        const cx_json *count = cx_json_get(report, cx_str_z(counts[i]));
        if (count == NULL || !cx_json_is_number(count))
            continue;
        cx_buf_add_z(out, between);
        cx_buf_add_str(out, cx_json_text(count));
        cx_buf_printf(out, " %s", counts[i]);
        between = ", ";
    }
    cx_buf_add_z(out, " (");
    cx_shown_add(out, CX_JSON_GET_STR(report, "format"));
    cx_buf_add_z(out, ")");
    if (CX_JSON_GET(report, "problem") != NULL) {
        cx_buf_add_z(out, ": ");
        cx_shown_add(out, CX_JSON_GET_STR(report, "problem"));
    }
    cx_buf_add_byte(out, '\n');
}

/* Reports of tests; a bundle that has none, or one that cannot be read, has nothing to show
 * here. */
static cx_status add_tests(read_job *l, cx_err *err)
{
    cx_bytes bytes;
    cx_json report;
    cx_err why = {0};
    cx_status status = cx_run_bundle_read(l->bundle, CX_STR("reports/test_report.json"),
                                          CX_RUN_JSON_BYTES_MAX, &bytes, &why);
    if (!cx_failed(status))
        status = cx_run_json_read(cx_bytes_str(bytes), 0, &l->cli->arena, &report, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *commands = cx_failed(status) ? NULL : CX_JSON_GET(&report, "commands");
    for (uint32_t i = 0; commands != NULL && commands->type == CX_JSON_ARRAY && i < commands->count;
         i++)
        add_test(&l->out, &commands->items[i]);
    return CX_SUCCESS;
}

static cx_status run_show_job(read_job *l, cx_err *err)
{
    cx_run_known known;
    cx_json view;
    CX_TRY(cx_cli_run_known(l->cli, l->args, cx_run_bundle_name(l->bundle), &known, err));
    CX_TRY(cx_run_view_show(l->bundle, &known.witness, &l->cli->arena, &view, err));
    if (l->json)
        return add_value(l, &view, err);
    const cx_json *repo = CX_JSON_GET(&view, "repo");
    add_row(&l->out, "run", CX_JSON_GET_STR(&view, "run_id"));
    add_row(&l->out, "task", CX_JSON_GET_STR(&view, "task_id"));
    add_row(&l->out, "asked", CX_JSON_GET_STR(&view, "user_request"));
    add_row(&l->out, "status", CX_JSON_GET_STR(&view, "status"));
    add_row(&l->out, "state", CX_JSON_GET_STR(&view, "state"));
    add_row(&l->out, "verdict", CX_JSON_GET_STR(&view, "verdict"));
    add_row(&l->out, "created", CX_JSON_GET_STR(&view, "created_at"));
    add_row(&l->out, "finished", CX_JSON_GET_STR(&view, "finished_at"));
    if (repo != NULL) {
        add_row(&l->out, "baseline", CX_JSON_GET_STR(repo, "baseline_ref"));
        add_row(&l->out, "final", CX_JSON_GET_STR(repo, "final_ref"));
    }
    CX_TRY(add_gates(l, err));
    CX_TRY(add_tests(l, err));
    const cx_json *failed = CX_JSON_GET(&view, "failed_tests");
    if (failed != NULL)
        cx_cli_add_failed_tests(&l->out, failed);
    return cx_buf_check(&l->out, err);
}

static int run_run_show(cx_cli *cli, const cx_cli_args *args)
{
    return run_read_job(cli, args, run_show_job);
}

const cx_cli_command cx_cli_run_show = {
    .name = "run show",
    .purpose = "show one run: request, result, gates",
    .about = "RUN is a run id of this repository, or the folder or archive of a bundle. Of tests "
             "that failed, the end of their output is shown. With --json: the manifest with "
             "`sealed`, `verdict`, `state` and the read models added. "
             "The read models have no authority: execution_authority names what has.",
    .operands = run_operands,
    .operand_count = CX_COUNT_OF(run_operands),
    .options = show_options,
    .option_count = CX_COUNT_OF(show_options),
    .exits = EXITS,
    .example = "cortex run show run_20260101_000000_aee408847d35e44e99430f0979c3357b",
    .run = run_run_show,
};

/* --- run events ------------------------------------------------------------------------------- */

static const cx_cli_option events_options[] = {
    CX_CLI_OPT("from", 0, CX_CLI_COUNT, "N", "Begin with event N; the first is 1."),
    CX_CLI_OPT("limit", 'n', CX_CLI_COUNT, "N", "At most N events; default: all."),
    CX_CLI_OPT("type", 0, CX_CLI_TEXT, "TYPE", "Only events of this type."),
    CX_CLI_OPT_FLAG("json", 0, "The lines of events.jsonl, byte for byte."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_COMMON,
};

static cx_status run_events_job(read_job *l, cx_err *err)
{
    const char *type = cx_cli_value(l->args, "type");
    uint64_t from = cx_cli_number(l->args, "from", 1);
    uint64_t left = cx_cli_number(l->args, "limit", UINT64_MAX);
    cx_run_projection projection;
    l->exact = l->json;
    cx_status status = cx_run_view_projection(l->bundle, &l->cli->arena, &projection, err);
    for (size_t i = 0; !cx_failed(status) && i < projection.moments.count && left != 0; i++) {
        const cx_run_moment *moment = &projection.moments.items[i];
        if (moment->index < from || (type != NULL && !cx_str_is(moment->type, type)))
            continue;
        left--;
        if (l->json) {
            cx_buf_add_str(&l->out, moment->line);
        } else {
            cx_buf_printf(&l->out, "%5llu  ", (unsigned long long)moment->index);
            cx_shown_add(&l->out, moment->ts);
            cx_buf_add_z(&l->out, "  ");
            add_padded(&l->out, moment->level, 6);
            cx_buf_add_byte(&l->out, ' ');
            cx_shown_add(&l->out, moment->type);
        }
        cx_buf_add_byte(&l->out, '\n');
    }
    cx_run_projection_done(&projection, &l->cli->arena);
    return cx_failed(status) ? status : cx_buf_check(&l->out, err);
}

static int run_run_events(cx_cli *cli, const cx_cli_args *args)
{
    return run_read_job(cli, args, run_events_job);
}

const cx_cli_command cx_cli_run_events = {
    .name = "run events",
    .purpose = "list the events of a run",
    .about = "Shows events.jsonl, of a run that is going on too.",
    .operands = run_operands,
    .operand_count = CX_COUNT_OF(run_operands),
    .options = events_options,
    .option_count = CX_COUNT_OF(events_options),
    .exits = EXITS,
    .example = "cortex run events bundle/ --type gate_failed --json",
    .run = run_run_events,
};

/* --- run diff --------------------------------------------------------------------------------- */

static const cx_cli_option diff_options[] = {
    CX_CLI_OPT_FLAG("name-only", 0, "Only the paths that changed, one a line."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_JSON,
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_COMMON,
};

#define DIFF_BYTES_MAX ((size_t)256 << 20)

static cx_status run_diff_job(read_job *l, cx_err *err)
{
    bool names = cx_cli_has(l->args, "name-only");
    cx_bytes bytes;
    cx_str path = names ? CX_STR("diff_name_only.txt") : CX_STR("patch.diff");
    CX_TRY(cx_run_bundle_read(l->bundle, path, DIFF_BYTES_MAX, &bytes, err));
    if (!l->json) {
        l->exact = true;
        cx_buf_add(&l->out, bytes.data, bytes.size);
        return cx_buf_check(&l->out, err);
    }
    cx_digest digest;
    cx_str text = cx_bytes_str(bytes), line;
    CX_TRY(cx_run_bundle_digest(l->bundle, path, &digest, err));
    cx_json_list object = cx_json_list_begin(&l->cli->arena);
    cx_json_put_str(&object, "run_id", cx_run_bundle_name(l->bundle));
    cx_json_put_digest(&object, "sha256", &digest);
    if (names) {
        cx_json_list list = cx_json_list_begin(&l->cli->arena);
        while (cx_run_next_line(&text, &line))
            cx_json_list_add(&list, cx_cli_json_str(&list, line));
        cx_json_put_array(&object, "names", &list);
    } else {
        cx_json_put_bytes(&object, "patch", bytes);
    }
    return cx_cli_end_json(&object, &l->out, err);
}

static int run_run_diff(cx_cli *cli, const cx_cli_args *args)
{
    return run_read_job(cli, args, run_diff_job);
}

const cx_cli_command cx_cli_run_diff = {
    .name = "run diff",
    .purpose = "show the patch of a run",
    .about = "Prints patch.diff of the bundle, byte for byte, as input for `git apply`. On a "
             "terminal, control characters and text direction marks are escaped, as \\u001b.",
    .operands = run_operands,
    .operand_count = CX_COUNT_OF(run_operands),
    .options = diff_options,
    .option_count = CX_COUNT_OF(diff_options),
    .exits = EXITS,
    .example = "cortex run diff RUN | git apply --check",
    .run = run_run_diff,
};

/* --- run reports ------------------------------------------------------------------------------ */

static const cx_cli_operand reports_operands[] = {
    RUN_OPERAND,
    {"NAME", CX_CLI_TEXT, NULL, true, false},
};

static const cx_cli_option reports_options[] = {CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON,
                                                CX_CLI_OPTION_REPO, CX_CLI_OPTIONS_COMMON};

static cx_status run_reports_job(read_job *l, cx_err *err)
{
    cx_json files;
    cx_bytes bytes;
    if (l->args->operand_count > 1) {
        const char *name = l->args->operands[1];
        cx_str path = cx_arena_printf(&l->cli->arena, "reports/%s%s", name,
                                      cx_str_ends(cx_str_z(name), CX_STR(".json")) ? "" : ".json");
        if (path.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_run_bundle_read(l->bundle, path, CX_RUN_JSON_BYTES_MAX, &bytes, err));
        l->exact = true;
        cx_buf_add(&l->out, bytes.data, bytes.size);
        return cx_buf_check(&l->out, err);
    }
    CX_TRY(cx_run_view_files(l->bundle, CX_STR("reports/"), &l->cli->arena, &files, err));
    if (l->json)
        return add_value(l, &files, err);
    const cx_json *items = CX_JSON_GET(&files, "items");
    for (uint32_t i = 0; items != NULL && i < items->count; i++) {
        add_cell(&l->out, &items->items[i], "name", 24);
        cx_shown_add(&l->out, CX_JSON_GET_STR(&items->items[i], "sha256"));
        cx_buf_add_byte(&l->out, '\n');
    }
    return cx_buf_check(&l->out, err);
}

static int run_run_reports(cx_cli *cli, const cx_cli_args *args)
{
    return run_read_job(cli, args, run_reports_job);
}

const cx_cli_command cx_cli_run_reports = {
    .name = "run reports",
    .purpose = "show the reports of a run",
    .about = "Without NAME lists them; with NAME (task_result, review_report, test_report, "
             "evidence_bundle, evidence_report, work_report) prints the file as it is stored.",
    .operands = reports_operands,
    .operand_count = CX_COUNT_OF(reports_operands),
    .options = reports_options,
    .option_count = CX_COUNT_OF(reports_options),
    .exits = EXITS,
    .example = "cortex run reports RUN test_report",
    .run = run_run_reports,
};

/* --- run spans -------------------------------------------------------------------------------- */

static const cx_cli_option spans_options[] = {
    CX_CLI_OPT("output", 'o', CX_CLI_FILE, "FILE", "Write to this file instead."),
    CX_CLI_OPT("to", 0, CX_CLI_TEXT, "URL",
               "Send them to this OTLP/HTTP endpoint instead, such as http://127.0.0.1:4318."),
    CX_CLI_OPT_MANY("header", 0, CX_CLI_TEXT, "HEADER|@FILE",
                    "A header of that request, 'Name: value', beside those of "
                    "$OTEL_EXPORTER_OTLP_HEADERS; @FILE keeps a token out of the process list."),
    CX_CLI_OPT_FLAG("json", 0, "The output is JSON in any case; this makes errors JSON, too."),
    CX_CLI_OPTION_HOME,
    CX_CLI_OPTION_REPO,
    CX_CLI_OPTIONS_COMMON,
};

static cx_status add_headers(read_job *l, cx_cli_telemetry *to, cx_err *err)
{
    const cx_cli_given *given = NULL;
    while ((given = cx_cli_next(l->args, "header", given)) != NULL) {
        cx_bytes text;
        CX_TRY(cx_cli_read_text(l->cli, given->values[0], &text, err));
        while (text.size != 0 && (text.data[text.size - 1] == '\n' ||
                                  text.data[text.size - 1] == '\r')) /* of a file */
            text.size--;
        cx_str line = cx_arena_copy_str(&l->cli->arena, cx_bytes_str(text));
        if (line.data == NULL)
            return cx_fail_nomem(err);
        if (memchr(line.data, 0, line.size) != NULL)
            line = CX_STR("");
        CX_TRY(cx_cli_telemetry_add_header(l->cli, to, line.data, err));
    }
    return CX_SUCCESS;
}

/* Nothing is recorded: the run's own sending is (telemetry.h T1). */
static cx_status send_spans(read_job *l, const char *to, cx_err *err)
{
    cx_cli_telemetry telemetry;
    cx_cli_sent sent;
    cx_json value;
    CX_TRY(cx_cli_telemetry_read(l->cli, to, &telemetry, err));
    CX_TRY(add_headers(l, &telemetry, err));
    CX_TRY(cx_cli_telemetry_send(l->cli, &telemetry, l->bundle, &sent, err));
    if (!sent.accepted)
        return cx_fail(err, CX_E_IO, "the spans were not sent to %s (%u of %d attempts): %s", to,
                       sent.attempts, CX_CLI_TELEMETRY_ATTEMPTS,
                       sent.message == NULL ? "out of memory" : sent.message);
    if (l->json) {
        CX_TRY(cx_cli_telemetry_json(&telemetry, &sent, &l->cli->arena, &value, err));
        return add_value(l, &value, err);
    }
    cx_buf_printf(&l->out, "%llu spans sent\n", (unsigned long long)sent.spans);
    return cx_buf_check(&l->out, err);
}

static cx_status run_spans_job(read_job *l, cx_err *err)
{
    const char *path = cx_cli_value(l->args, "output"), *to = cx_cli_value(l->args, "to");
    if (to != NULL && path != NULL)
        return cx_fail(err, CX_E_USAGE, "option --to: expected it without --output");
    if (to == NULL && cx_cli_has(l->args, "header"))
        return cx_fail(err, CX_E_USAGE, "option --header: expected --to URL with it");
    if (to != NULL)
        return send_spans(l, to, err);
    cx_run_projection projection;
    cx_json spans;
    l->exact = true;
    cx_status status = cx_run_view_projection(l->bundle, &l->cli->arena, &projection, err);
    if (!cx_failed(status))
        status = cx_run_view_spans(&projection, &l->cli->arena, &spans, err);
    cx_run_projection_done(&projection, &l->cli->arena);
    CX_TRY(status);
    CX_TRY(add_value(l, &spans, err));
    if (path == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_io_replace_file(l->cli->io, path, cx_buf_bytes(&l->out), err));
    cx_buf_clear(&l->out);
    return CX_SUCCESS;
}

static int run_run_spans(cx_cli *cli, const cx_cli_args *args)
{
    return run_read_job(cli, args, run_spans_job);
}

const cx_cli_command cx_cli_run_spans = {
    .name = "run spans",
    .purpose = "export a run as OpenTelemetry spans",
    .about =
        "Prints OTLP/JSON, one export request, under the run's trace id: a span for the run, "
        "for each state of each task and for each tool call; gates are events of the run's "
        "span. Span ids depend on the run only, so that sending it twice is no second run. With "
        "--to they are sent to a collector, with at most 3 attempts; 'cortex run --otlp-endpoint "
        "URL' does so when a run has ended.",
    .operands = run_operands,
    .operand_count = CX_COUNT_OF(run_operands),
    .options = spans_options,
    .option_count = CX_COUNT_OF(spans_options),
    .exits = "0 answered, or accepted by the receiver\n2 usage error\n3 could not be answered, or "
             "not sent: no such run, unreadable, refused",
    .example = "cortex run spans RUN -o spans.json\ncortex run spans RUN --to "
               "http://127.0.0.1:4318",
    .run = run_run_spans,
};
