/*
 * view_tests.c - the end of what failed tests printed (view.h).
 */
#include "audit/view.h"
#include "bundle/api.h"

/* What is read of a log: enough that masking sees a secret whole when it crosses the cut. */
#define WINDOW_BYTES ((size_t)64 << 10)

typedef struct failed_tests {
    cx_run_bundle *bundle;
    cx_arena *arena;
    cx_run_mask mask;
    cx_json_list list;
    size_t count;
} failed_tests;

/* --- the end of a log ------------------------------------------------------------------------- */

/* Without the first line when that may begin in the middle: half of a secret is not recognised. */
static cx_str drop_partial_line(cx_str text)
{
    const char *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    size_t skip = end == NULL ? text.size : (size_t)(end - text.data) + 1;
    return (cx_str){text.data + skip, text.size - skip};
}

static bool is_continuation(char byte)
{
    return ((uint8_t)byte & 0xC0) == 0x80;
}

/* The last lines, as many as the limits allow. */
static cx_str take_end(cx_str text)
{
    size_t start = text.size, lines = 0;
    while (start != 0 && text.size - start < CX_RUN_OUTPUT_END_BYTES) {
        if (text.data[start - 1] == '\n' && start != text.size &&
            ++lines == CX_RUN_OUTPUT_END_LINES)
            break;
        start--;
    }
    while (start < text.size && is_continuation(text.data[start]))
        start++;
    return (cx_str){text.data + start, text.size - start};
}

static cx_status put_output(failed_tests *f, cx_json_list *object, const char *name,
                            const cx_json *command, cx_err *err)
{
    const cx_json *ref = cx_json_get_typed(command, cx_str_z(name), CX_JSON_OBJECT);
    cx_str path = ref == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(ref, "path");
    cx_bytes bytes = {NULL, 0};
    uint64_t size = 0;
    cx_err why;
    cx_str text;
    cx_json_list one = cx_json_list_begin(f->arena);
    if (path.size == 0)
        return CX_SUCCESS;
    cx_status status =
        cx_run_bundle_read_end(f->bundle, path, WINDOW_BYTES, f->arena, &bytes, &size, &why);
    if (cx_failed(status))
        return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
    text = cx_json_utf8(cx_bytes_str(bytes), f->arena);
    if (text.data == NULL)
        return cx_fail_nomem(err);
    CX_TRY(cx_run_mask_text(&f->mask, text, f->arena, &text, err));
    cx_str whole = text;
    if (size > bytes.size)
        text = drop_partial_line(text);
    text = take_end(text);
    cx_json_put_utf8(&one, "path", path);
    cx_json_put_uint(&one, "bytes", size);
    cx_json_put_bool(&one, "cut", size > bytes.size || text.size != whole.size);
    cx_json_put_utf8(&one, "text", text);
    cx_json_put_object(object, name, &one);
    return CX_SUCCESS;
}

/* --- commands --------------------------------------------------------------------------------- */

static bool has_failed(const cx_json *command, const cx_json **out_exit, cx_str *out_problem)
{
    const cx_json *report = cx_json_get_typed(command, CX_STR("report"), CX_JSON_OBJECT);
    *out_exit = CX_JSON_GET(command, "exit_code");
    *out_problem = report == NULL ? (cx_str){NULL, 0} : CX_JSON_GET_STR(report, "problem");
    if (out_problem->size != 0)
        return true;
    return *out_exit != NULL && cx_json_is_number(*out_exit) &&
           !cx_str_is(cx_json_text(*out_exit), "0");
}

static cx_status add_command(failed_tests *f, cx_str task, const cx_json *command, cx_err *err)
{
    const cx_json *exit_code = NULL;
    cx_str problem;
    if (command->type != CX_JSON_OBJECT || !has_failed(command, &exit_code, &problem) ||
        f->count == CX_RUN_FAILED_TESTS_MAX)
        return CX_SUCCESS;
    f->count++;
    cx_json_list object = cx_json_list_begin(f->arena);
    cx_json_put_utf8(&object, "task_id", task);
    cx_json_put_utf8(&object, "name", CX_JSON_GET_STR(command, "name"));
    cx_json_put(&object, "exit_code", exit_code == NULL ? cx_json_make_null() : *exit_code);
    if (problem.size != 0)
        cx_json_put_utf8(&object, "problem", problem);
    CX_TRY(put_output(f, &object, "stdout", command, err));
    CX_TRY(put_output(f, &object, "stderr", command, err));
    cx_json_add_object(&f->list, &object);
    return CX_SUCCESS;
}

static cx_status add_report(failed_tests *f, cx_str path, cx_err *err)
{
    cx_json report;
    cx_err why;
    cx_status status = cx_run_bundle_json(f->bundle, path, &report, &why);
    if (cx_failed(status))
        return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
    const cx_json *commands = cx_json_get_typed(&report, CX_STR("commands"), CX_JSON_ARRAY);
    for (uint32_t i = 0; commands != NULL && i < commands->count; i++)
        CX_TRY(add_command(f, CX_JSON_GET_STR(&report, "task_id"), &commands->items[i], err));
    return CX_SUCCESS;
}

/* The report of the run, and those of its parts (`ci/ID/report.json`); that of the run's own task
 * is there twice. */
static cx_status add_reports(failed_tests *f, cx_err *err)
{
    cx_json manifest;
    cx_err why;
    CX_TRY(add_report(f, CX_STR("reports/test_report.json"), err));
    cx_status status = cx_run_bundle_json(f->bundle, CX_STR("manifest.json"), &manifest, &why);
    if (cx_failed(status))
        return status.code == CX_E_NOMEM ? cx_fail_nomem(err) : CX_SUCCESS;
    const cx_json *tasks = cx_json_get_typed(&manifest, CX_STR("tasks"), CX_JSON_ARRAY);
    for (uint32_t i = 1; tasks != NULL && i < tasks->count; i++) {
        const cx_json *ref =
            cx_json_get_typed(&tasks->items[i], CX_STR("test_report"), CX_JSON_OBJECT);
        if (ref != NULL)
            CX_TRY(add_report(f, CX_JSON_GET_STR(ref, "path"), err));
    }
    return CX_SUCCESS;
}

cx_status cx_run_view_failed_tests(cx_run_bundle *bundle, cx_arena *arena, cx_json *out,
                                   cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL);
    failed_tests f = {.bundle = bundle, .arena = arena, .list = cx_json_list_begin(arena)};
    CX_TRY(cx_run_mask_init(&f.mask, NULL, arena, err));
    cx_status status = add_reports(&f, err);
    cx_run_mask_done(&f.mask);
    CX_TRY(status);
    return cx_json_list_end_array(&f.list, out, err);
}
