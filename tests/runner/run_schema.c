/*
 * run_schema.c - report_schema.json (run.md §2): whether a document matches the schema of its kind,
 * with date-time as an annotation and asserted.
 */
#include "rules/schemas.h"
#include "tests/runner/run_answers.h"

static cx_status holds(runner *r, const cx_schema *schema, const cx_json *instance,
                       cx_schema_format format, cx_json *out, cx_err *err)
{
    cx_schema_check_options how = CX_SCHEMA_CHECK_INIT;
    cx_schema_report report;
    how.format = format;
    CX_TRY(cx_schema_check(schema, instance, &how, &r->arena, &report, err));
    *out = cx_json_make_bool(report.valid);
    return CX_SUCCESS;
}

cx_status run_report_schema_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str name;
    const cx_schema *schema;
    const cx_json *instance = CX_JSON_GET(item, "instance");
    cx_json plain, asserted;
    if (instance == NULL)
        return cx_fail(err, CX_E_FORMAT, "the case has no 'instance'");
    CX_TRY(runner_text(item, "schema", &name, err));
    name = cx_arena_copy_str(&r->arena, name);
    if (name.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_schema(name.data, &schema, err));
    CX_TRY(holds(r, schema, instance, CX_SCHEMA_FORMAT_NONE, &plain, err));
    CX_TRY(holds(r, schema, instance, CX_SCHEMA_FORMAT_DATE_TIME, &asserted, err));
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("valid"), plain);
    cx_json_list_put(&list, CX_STR("valid_with_format"), asserted);
    return cx_json_list_end_object(&list, out, err);
}
