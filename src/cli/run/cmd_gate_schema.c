/*
 * cmd_gate_schema.c - `cortex gate schema`: whether a JSON file matches a schema (run.md §2).
 */
#include <stdio.h>
#include <string.h>

#include "cli/run/gate_report.h"
#include "cli/ledger/ledger.h"
#include "rules/api.h"

#define FORMATS "none|date-time|all"

/* The schema that the first operand means: one the program carries, or a file. */
typedef struct chosen {
    const cx_schema *schema;
    cx_schema *own; /* the same when it was compiled from a file; to be closed */
} chosen;

static cx_status read_json(cx_cli *cli, const char *path, cx_json *out, cx_err *err)
{
    cx_bytes bytes;
    CX_TRY(cx_cli_read_file(cli, path, &bytes, err));
    return cx_run_json_read(cx_bytes_str(bytes), 0, &cli->arena, out, err);
}

static cx_status choose_schema(cx_cli *cli, const cx_cli_args *args, chosen *out, cx_err *err)
{
    const char *name = args->operands[0];
    const char *draft = cx_cli_value(args, "draft");
    bool has_ending = cx_str_ends(cx_str_z(name), CX_STR(".json"));
    cx_str file = cx_arena_printf(&cli->arena, "%s%s", name, has_ending ? "" : ".json");
    if (file.data == NULL)
        return cx_fail_nomem(err);
    cx_status status = cx_run_schema(file.data, &out->schema, err);
    if (status.code != CX_E_NOT_FOUND)
        return status;
    cx_schema_options options = CX_SCHEMA_OPTIONS_INIT;
    cx_json document;
    options.strict = !cx_cli_has(args, "lenient");
    options.draft =
        draft != NULL && strcmp(draft, "07") == 0 ? CX_SCHEMA_DRAFT_07 : CX_SCHEMA_2020_12;
    CX_TRY(read_json(cli, name, &document, err));
    CX_TRY(cx_schema_compile(&options, &document, &out->own, err));
    out->schema = out->own;
    return CX_SUCCESS;
}

static cx_schema_format asked_format(const cx_cli_args *args)
{
    const char *word = cx_cli_value(args, "assert");
    if (word != NULL && strcmp(word, "none") == 0)
        return CX_SCHEMA_FORMAT_NONE;
    return word != NULL && strcmp(word, "all") == 0 ? CX_SCHEMA_FORMAT_ALL
                                                    : CX_SCHEMA_FORMAT_DATE_TIME;
}

/* {allow, schema, file, violations: [{rule, path, message, schema}], cut} */
static cx_status make_gate_json(cx_cli *cli, const cx_cli_args *args,
                                const cx_schema_report *report, cx_json *out, cx_err *err)
{
    cx_json_list violations = cx_json_list_begin(&cli->arena);
    cx_json value;
    for (size_t i = 0; i < report->error_count; i++) {
        const cx_schema_error *error = &report->errors[i];
        cx_json_list one = cx_json_list_begin(&cli->arena);
        cx_json_list_put(&one, CX_STR("rule"), cx_json_make_str(cx_str_z(error->keyword)));
        cx_json_list_put(&one, CX_STR("path"), cx_json_make_str(error->instance));
        cx_json_list_put(&one, CX_STR("message"), cx_json_make_str(error->message));
        cx_json_list_put(&one, CX_STR("schema"), cx_json_make_str(error->schema));
        CX_TRY(cx_json_list_end_object(&one, &value, err));
        cx_json_list_add(&violations, value);
    }
    CX_TRY(cx_json_list_end_array(&violations, &value, err));
    cx_json_list all = cx_json_list_begin(&cli->arena);
    cx_json_list_put(&all, CX_STR("allow"), cx_json_make_bool(report->valid));
    cx_json_list_put(&all, CX_STR("schema"), cx_cli_json_str(&all, cx_str_z(args->operands[0])));
    cx_json_list_put(&all, CX_STR("file"), cx_cli_json_str(&all, cx_str_z(args->operands[1])));
    cx_json_list_put(&all, CX_STR("violations"), value);
    cx_json_list_put(&all, CX_STR("cut"), cx_json_make_bool(report->cut));
    return cx_json_list_end_object(&all, out, err);
}

static cx_status check_document(cx_cli *cli, const cx_cli_args *args, const cx_schema *schema,
                                cx_run_findings *findings, cx_cli_gate_report *out, cx_err *err)
{
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report;
    cx_json instance;
    how.format = asked_format(args);
    CX_TRY(read_json(cli, args->operands[1], &instance, err));
    CX_TRY(cx_schema_check(schema, &instance, &how, &cli->arena, &report, err));
    for (size_t i = 0; i < report.error_count; i++)
        cx_run_findings_reject(findings, report.errors[i].keyword, report.errors[i].instance,
                               report.errors[i].schema, "%.*s", (int)report.errors[i].message.size,
                               report.errors[i].message.data);
    if (report.cut)
        cx_run_findings_inform(findings, "schema", CX_STR(""), CX_STR(""),
                               "only the first %u places are listed", (unsigned)how.errors_max);
    CX_TRY(cx_run_findings_check(findings, err));
    *out = (cx_cli_gate_report){.gate = "schema",
                                .subject = args->operands[1],
                                .allow = report.valid,
                                .findings = findings};
    return make_gate_json(cli, args, &report, &out->json, err);
}

static int run_gate_schema(cx_cli *cli, const cx_cli_args *args)
{
    chosen schema = {NULL, NULL};
    cx_run_findings findings;
    cx_cli_gate_report report;
    cx_err err = {0};
    int code;
    cx_run_findings_init(&findings, &cli->arena);
    if (cx_failed(choose_schema(cli, args, &schema, &err)))
        code = cx_cli_fail(cli, args->operands[0], &err, cx_cli_gate_json(args));
    else if (cx_failed(check_document(cli, args, schema.schema, &findings, &report, &err)))
        code = cx_cli_fail(cli, args->operands[1], &err, cx_cli_gate_json(args));
    else
        code = cx_cli_gate_answer(cli, args, &report);
    cx_schema_close(schema.own);
    cx_run_findings_done(&findings);
    return code;
}

static const cx_cli_operand operands[] = {{"SCHEMA", CX_CLI_FILE, NULL, false, false},
                                          {"FILE", CX_CLI_FILE, NULL, false, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("draft", 0, CX_CLI_CHOICE, "2020-12|07",
               "What a schema is read as that has no \"$schema\"; default 2020-12."),
    CX_CLI_OPT(
        "assert", 0, CX_CLI_CHOICE, FORMATS,
        "Which values of \"format\" must hold; default date-time, as in every gate of a run."),
    CX_CLI_OPT_FLAG(
        "lenient", 0,
        "Ignore keywords that no vocabulary knows, and allow a schema to refer to itself "
        "without end; checking still ends."),
    CX_CLI_OPTIONS_GATE, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_gate_schema = {
    .name = "gate schema",
    .purpose = "validate a JSON file against a JSON Schema",
    .about = "SCHEMA is a file with a schema of draft 2020-12 or draft-07, or the name of a "
             "built-in schema: task_contract.v1, run_manifest.v1 and the others of a run, and "
             "those of the commands' answers with --json: show.v1, why.v1, status.v1, doctor.v1, "
             "config.v1, roots.v1, runs.v1, alerts.v1, evidence_verdict.v1, error.v1. Write ./NAME "
             "for a file of such a name.\n\nEach mismatch is reported with its JSON pointer, the "
             "keyword that failed and its place in the schema. Without --lenient, the schema must "
             "not have unknown keywords or references outside itself.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_GATE,
    .example =
        "cortex gate schema task_contract.v1 contract.json\n"
        "cortex status --json >status.json; cortex gate schema status.v1 status.json\n"
        "cortex gate schema ./answer.schema.json answer.json --format junit --output schema.xml",
    .run = run_gate_schema,
};
