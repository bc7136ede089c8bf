/*
 * run_paths.c - allowed_paths_lint.json, path_match.json, path_overlap.json (run.md §7).
 */
#include "rules/path.h"
#include "tests/runner/run_answers.h"

cx_status run_path_lint_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str path;
    cx_json_list object = cx_json_list_begin(&r->arena);
    CX_TRY(runner_text(item, "path", &path, err));
    const char *rule = cx_run_path_lint(path, NULL);
    cx_json_list_put(&object, CX_STR("valid"), cx_json_make_bool(rule == NULL));
    cx_json_list_put(&object, CX_STR("rule"), run_text_or_null(rule));
    cx_json_list_put(&object, CX_STR("wide"), cx_json_make_bool(cx_run_path_wide(path, NULL)));
    return cx_json_list_end_object(&object, out, err);
}

cx_status run_path_match_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str path, *entries;
    const cx_json *list;
    CX_TRY(runner_text(item, "path", &path, err));
    CX_TRY(runner_member(item, "allowed_paths", CX_JSON_ARRAY, &list, err));
    CX_TRY(runner_texts(r, list, &entries, err));
    *out = cx_json_make_bool(cx_run_path_covered(entries, list->count, path));
    return CX_SUCCESS;
}

cx_status run_path_overlap_got(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_str a, b;
    (void)r;
    CX_TRY(runner_text(item, "a", &a, err));
    CX_TRY(runner_text(item, "b", &b, err));
    switch (cx_run_path_overlap(a, b, NULL)) {
    case CX_RUN_APART:
    case CX_RUN_OVERLAP:
        *out = cx_json_make_bool(cx_run_path_overlap(a, b, NULL) == CX_RUN_OVERLAP);
        break;
    case CX_RUN_OVERLAP_INVALID: *out = cx_json_make_str(CX_STR("invalid")); break;
    }
    return CX_SUCCESS;
}
