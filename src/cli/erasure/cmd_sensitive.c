/*
 * cmd_sensitive.c - `cortex sensitive`: in which records secrets and personal data were found, and
 * where in them; never what was found.
 */
#include <string.h>

#include "cli/ledger/ledger.h"
#include "recorder/api.h"

#define LIMIT_DEFAULT 100

static void show_text(cx_buf *out, const cx_json *object, const char *name)
{
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    if (value != NULL && value->type == CX_JSON_STRING)
        cx_shown_add(out, cx_json_text(value));
}

static uint64_t number_of(const cx_json *object, const char *name)
{
    uint64_t number = 0;
    const cx_json *value = cx_json_get(object, cx_str_z(name));
    return value != NULL && cx_json_uint64(value, &number) ? number : 0;
}

static void show_finding(cx_buf *out, const cx_json *finding)
{
    const cx_json *level = CX_JSON_GET(finding, "level");
    uint64_t line = number_of(finding, "line");
    cx_buf_add_z(out, "  ");
    show_text(out, finding, "action");
    cx_buf_add_byte(out, ' ');
    show_text(out, finding, "class");
    cx_buf_add_z(out, " (");
    show_text(out, finding, "pattern");
    cx_buf_add_z(out, ")  ");
    if (line != 0)
        cx_buf_printf(out, "line %llu  ", (unsigned long long)line);
    show_text(out, finding, "pointer");
    if (CX_JSON_GET(finding, "name") != NULL)
        cx_buf_add_z(out, "  (in the name)");
    if (level != NULL) {
        cx_buf_add_z(out, "  (not in it at level ");
        show_text(out, finding, "level");
        cx_buf_add_byte(out, ')');
    }
    cx_buf_add_byte(out, '\n');
}

static void show_record(cx_buf *out, const cx_json *record)
{
    const cx_json *findings = CX_JSON_GET(record, "findings");
    const cx_json *is_signed = CX_JSON_GET(record, "signed");
    uint64_t count = number_of(record, "count");
    show_text(out, record, "actor");
    cx_buf_printf(out, "/%llu  %llu found, %llu masked%s\n",
                  (unsigned long long)number_of(record, "seq"), (unsigned long long)count,
                  (unsigned long long)number_of(record, "masked"),
                  is_signed != NULL && is_signed->type == CX_JSON_TRUE
                      ? "; signed, so nothing in it is changed"
                      : "");
    for (uint32_t i = 0; findings != NULL && i < findings->count; i++)
        show_finding(out, &findings->items[i]);
    if (findings != NULL && count > CX_SENSITIVE_LISTED_MAX)
        cx_buf_printf(out, "  only the first %d have a place\n", CX_SENSITIVE_LISTED_MAX);
}

static void show_records(cx_buf *out, const cx_json *answer)
{
    const cx_json *records = CX_JSON_GET(answer, "records"), *more = CX_JSON_GET(answer, "more");
    if (records == NULL || records->count == 0)
        cx_buf_add_z(out, "nothing was found in what was recorded; 'cortex help serve' says under "
                          "--sensitive how to look for it\n");
    for (uint32_t i = 0; records != NULL && i < records->count; i++)
        show_record(out, &records->items[i]);
    if (more != NULL && more->type == CX_JSON_TRUE)
        cx_buf_add_z(out, "there are more: ask with --limit, --class or an ACTOR\n");
}

static cx_status list_marks(cx_cli_ledger *l, void *state, cx_err *err)
{
    const char *name = cx_cli_value(l->args, "class");
    const uint64_t limit = cx_cli_number(l->args, "limit", LIMIT_DEFAULT);
    cx_marks_wanted wanted = {.class_of = CX_SENSITIVE_CLASS_COUNT, .limit = (uint32_t)limit};
    cx_json answer;
    (void)state;
    if (name != NULL)
        wanted.class_of = cx_sensitive_class_of(cx_str_z(name));
    if (limit == 0 || limit > CX_MARKS_MAX)
        return cx_fail(err, CX_E_USAGE, "option --limit: expected 1 to %d", CX_MARKS_MAX);
    if (l->args->operand_count != 0)
        wanted.actor = cx_str_z(l->args->operands[0]);
    CX_TRY(cx_recorder_answer_marks(l->home, &wanted, l->arena, &answer, err));
    if (!l->json) {
        show_records(&l->out, &answer);
        return cx_buf_check(&l->out, err);
    }
    CX_TRY(cx_json_write(&l->out, &answer, CX_JSON_PY_COMPACT, err));
    cx_buf_add_byte(&l->out, '\n');
    return cx_buf_check(&l->out, err);
}

static int run_sensitive(cx_cli *cli, const cx_cli_args *args)
{
    static const cx_cli_job job = {.access = CX_CLI_READ, .work = list_marks};
    return cx_cli_run_job(cli, args, &job, NULL);
}

static const cx_cli_operand operands[] = {{"ACTOR", CX_CLI_TEXT, NULL, true, false}};

static const cx_cli_option options[] = {
    CX_CLI_OPT("class", 0, CX_CLI_CHOICE, "token|private-key|password|custom|email|phone|card|iban",
               "Only records with findings of this class."),
    CX_CLI_OPT("limit", 0, CX_CLI_COUNT, "N", "At most so many records, up to 1000; default 100."),
    CX_CLI_OPTION_HOME, CX_CLI_OPTION_JSON, CX_CLI_OPTIONS_COMMON};

const cx_cli_command cx_cli_sensitive = {
    .name = "sensitive",
    .purpose = "list where secrets and personal data were found in what was recorded",
    .about =
        "Lists the records in which something was found when they came in, as the policy asked "
        "for ([intake] in the configuration, or --sensitive of serve, watch, record and "
        "lattice append): the entry, the class, the pattern, and the place as a JSON pointer, "
        "but never what was found. A finding is marked (it is in the record) or masked (it is "
        "nowhere). What was signed is only marked; of a trace the level is named at which it "
        "is not contained.\n\nACTOR is the journal: an agent, 'otel', 'sessions' or 'batches'. "
        "Records from before the policy, or from another class, are not in the list.",
    .operands = operands,
    .operand_count = CX_COUNT_OF(operands),
    .options = options,
    .option_count = CX_COUNT_OF(options),
    .exits = CX_CLI_EXITS_READ,
    .example = "cortex sensitive --class card",
    .run = run_sensitive,
};
