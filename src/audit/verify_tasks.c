/*
 * verify_tasks.c - the tasks that the run's own was split into: their documents, what they say of
 * each other, and what each was allowed to change (run.md §14, §17, §18).
 */
#include "rules/api.h"
#include "audit/verify_internal.h"

#define PATCH_BYTES_MAX ((size_t)256 << 20)

typedef struct one_task {
    cx_run_verification *v;
    cx_str id;
    cx_str status;                          /* as the manifest has it */
    const cx_run_projection_task *recorded; /* NULL: no event of it, or no events */
} one_task;

static cx_status path_of(const one_task *one, const char *format, cx_str *out)
{
    return cx_run_verify_path(one->v, out, format, (int)one->id.size, one->id.data);
}

/* A document of the task; null when it is not there or no JSON, which is reported elsewhere. */
static cx_status read_document(const one_task *one, const char *format, cx_str *out_path,
                               cx_json *out)
{
    cx_err why;
    CX_TRY(path_of(one, format, out_path));
    const cx_run_entry *entry = cx_run_bundle_find(one->v->bundle, *out_path);
    *out = cx_json_make_null();
    if (entry == NULL || !entry->regular || entry->size_bytes > CX_RUN_JSON_BYTES_MAX)
        return CX_SUCCESS;
    cx_status status = cx_run_bundle_json(one->v->bundle, *out_path, out, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(one->v->err);
    if (cx_failed(status))
        *out = cx_json_make_null();
    return CX_SUCCESS;
}

static cx_status check_result(const one_task *one)
{
    cx_json result;
    cx_str path;
    CX_TRY(read_document(one, "results/%.*s/result.json", &path, &result));
    if (result.type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    cx_str status = CX_JSON_GET_STR(&result, "status");
    if (!cx_str_eq(status, one->status))
        cx_run_verify_add_finding(one->v, CX_RUN_STATUS_MISMATCH, path,
                                  "its status is not the one in the manifest");
    if (!cx_str_eq(CX_JSON_GET_STR(&result, "task_id"), one->id))
        cx_run_verify_add_finding(one->v, CX_RUN_REF_MISMATCH, path, "it is of another task");
    const cx_json *gates = cx_json_get_typed(&result, CX_STR("gates"), CX_JSON_OBJECT);
    for (unsigned i = 0; gates != NULL && i < CX_RUN_GATE_COUNT; i++) {
        const cx_json *gate = cx_json_get(gates, cx_str_z(cx_run_gate_names[i]));
        bool passed =
            gate != NULL && cx_json_get_typed(gate, CX_STR("passed"), CX_JSON_TRUE) != NULL;
        bool recorded = one->recorded != NULL &&
                        cx_run_projection_task_passed(&one->v->projection, one->recorded, i);
        if (cx_str_is(status, "SUCCESS") && !passed)
            cx_run_verify_add_finding(one->v, CX_RUN_STATUS_MISMATCH, path,
                                      "it is SUCCESS, but %s has not passed", cx_run_gate_names[i]);
        if (passed && one->v->has_projection && !recorded)
            cx_run_verify_add_finding(one->v, CX_RUN_STATUS_MISMATCH, path,
                                      "%s has passed here, by the events it has not",
                                      cx_run_gate_names[i]);
    }
    return CX_SUCCESS;
}

static cx_status texts_of(const one_task *one, const cx_json *array, cx_str **out,
                          size_t *out_count)
{
    uint32_t count = array == NULL ? 0 : array->count;
    *out = CX_ARENA_ARRAY(one->v->arena, cx_str, (size_t)count + 1);
    *out_count = 0;
    if (*out == NULL)
        return cx_fail_nomem(one->v->err);
    for (uint32_t i = 0; i < count; i++)
        if (array->items[i].type == CX_JSON_STRING)
            (*out)[(*out_count)++] = cx_json_text(&array->items[i]);
    return CX_SUCCESS;
}

/* What a task that succeeded has changed lies in its own paths, and those in the paths of the
 * whole. */
static cx_status check_scope(const one_task *one)
{
    cx_run_verification *v = one->v;
    cx_json contract;
    cx_str contract_path, patch_path, *allowed, *whole, *changed;
    size_t allowed_count, whole_count, changed_count;
    cx_bytes patch;
    bool readable;
    CX_TRY(read_document(one, "tasks/%.*s.json", &contract_path, &contract));
    CX_TRY(path_of(one, "results/%.*s/patch.diff", &patch_path));
    CX_TRY(texts_of(one, cx_json_get_typed(&contract, CX_STR("allowed_paths"), CX_JSON_ARRAY),
                    &allowed, &allowed_count));
    CX_TRY(texts_of(one, cx_json_get_typed(&v->contract, CX_STR("allowed_paths"), CX_JSON_ARRAY),
                    &whole, &whole_count));
    CX_TRY(cx_run_verify_bytes(v, patch_path, PATCH_BYTES_MAX, &patch));
    if (patch.data == NULL || contract.type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    CX_TRY(cx_run_patch_paths(cx_bytes_str(patch), v->arena, &changed, &changed_count, &readable,
                              v->err));
    if (!readable)
        cx_run_verify_add_finding(v, CX_RUN_PATCH_NAMES, patch_path,
                                  "it is no patch as git writes it");
    for (size_t i = 0; i < changed_count; i++)
        if (!cx_run_path_covered(allowed, allowed_count, changed[i]) ||
            !cx_run_path_covered(whole, whole_count, changed[i]))
            cx_run_verify_add_finding(v, CX_RUN_DIFF_SCOPE, patch_path,
                                      "%.*s is outside the task's allowed_paths, or the run's",
                                      (int)(changed[i].size > 200 ? 200 : changed[i].size),
                                      changed[i].data);
    return CX_SUCCESS;
}

static cx_status check_mirror(const one_task *one)
{
    cx_str path, mirror;
    cx_digest digest[2];
    CX_TRY(path_of(one, "results/%.*s/patch.diff", &path));
    CX_TRY(path_of(one, "patches/%.*s.diff", &mirror));
    const cx_run_entry *a = cx_run_bundle_find(one->v->bundle, path);
    const cx_run_entry *b = cx_run_bundle_find(one->v->bundle, mirror);
    if (a == NULL || b == NULL || !a->regular || !b->regular)
        return CX_SUCCESS;
    CX_TRY(cx_run_bundle_digest(one->v->bundle, path, &digest[0], one->v->err));
    CX_TRY(cx_run_bundle_digest(one->v->bundle, mirror, &digest[1], one->v->err));
    if (!cx_digest_eq(&digest[0], &digest[1]))
        cx_run_verify_add_finding(one->v, CX_RUN_MIRROR_MISMATCH, mirror,
                                  "it differs from %.*s, whose mirror it is", (int)path.size,
                                  path.data);
    return CX_SUCCESS;
}

cx_status cx_run_verify_tasks(cx_run_verification *v)
{
    const cx_json *tasks = cx_json_get_typed(&v->manifest, CX_STR("tasks"), CX_JSON_ARRAY);
    for (uint32_t i = 0; tasks != NULL && i < tasks->count; i++) {
        one_task one = {.v = v,
                        .id = CX_JSON_GET_STR(&tasks->items[i], "task_id"),
                        .status = CX_JSON_GET_STR(&tasks->items[i], "status")};
        if (one.id.size == 0 || cx_str_eq(one.id, v->task_id))
            continue;
        if (v->has_projection)
            one.recorded = cx_run_projection_find(&v->projection, one.id);
        CX_TRY(check_result(&one));
        CX_TRY(check_mirror(&one));
        if (cx_str_is(one.status, "SUCCESS"))
            CX_TRY(check_scope(&one));
    }
    return CX_SUCCESS;
}
