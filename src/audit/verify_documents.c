/*
 * verify_documents.c - contract and reports: valid under their schemas, of this run, mirrored
 * byte for byte, and every reference in them to a file that is there (run.md §2, §17, §18).
 */
#include "crypto/api.h"
#include "rules/api.h"
#include "audit/verify_internal.h"

#define NESTING_MAX 64

static const struct {
    const char *path, *schema;
} reports[] = {
    {"reports/task_result.json", "task_result.v1.json"},
    {"reports/review_report.json", "review_report.v1.json"},
    {"reports/test_report.json", "test_report.v1.json"},
    {"reports/evidence_bundle.json", "evidence_bundle.v1.json"},
    {"reports/evidence_report.json", "evidence_report.v1.json"},
    {"reports/work_report.json", "work_report.v1.json"},
};

static cx_status check_schema(cx_run_verification *v, cx_run_code code, cx_str path,
                              const char *schema, const cx_json *value)
{
    cx_run_findings found;
    cx_run_findings_init(&found, v->arena);
    cx_status status = cx_run_schema_check(schema, value, cx_run_code_names[code], &found, v->err);
    for (size_t i = 0; !cx_failed(status) && i < found.list.count; i++)
        cx_run_verify_add_finding(v, code, path, "%.*s: %.*s", (int)found.list.items[i].where.size,
                                  found.list.items[i].where.data,
                                  (int)found.list.items[i].message.size,
                                  found.list.items[i].message.data);
    if (!cx_failed(status))
        status = cx_run_findings_check(&found, v->err);
    cx_run_findings_done(&found);
    return status;
}

/* --- references ------------------------------------------------------------------------------- */

/* {path, sha256, size_bytes}: a file of the bundle, and these bytes. */
static cx_status check_ref(cx_run_verification *v, cx_str document, const cx_json *ref, cx_str path,
                           cx_str sha256)
{
    const cx_run_entry *entry = cx_run_bundle_find(v->bundle, path);
    const cx_json *size = CX_JSON_GET(ref, "size_bytes");
    cx_digest stated, found;
    uint64_t bytes;
    if (size == NULL)
        size = CX_JSON_GET(ref, "bytes");
    if (entry == NULL || !entry->regular) {
        cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, document,
                                  "it refers to %.*s, which is not there",
                                  (int)(path.size > 200 ? 200 : path.size), path.data);
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_bundle_digest(v->bundle, path, &found, v->err));
    if (!cx_hex_decode_any(sha256, stated.bytes, sizeof stated.bytes) ||
        !cx_digest_eq(&stated, &found))
        cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, document,
                                  "the sha256 it gives for %.*s is not it",
                                  (int)(path.size > 200 ? 200 : path.size), path.data);
    if (size != NULL && (!cx_json_uint64(size, &bytes) || bytes != entry->size_bytes))
        cx_run_verify_add_finding(v, CX_RUN_REF_MISMATCH, document,
                                  "the size it gives for %.*s is not it",
                                  (int)(path.size > 200 ? 200 : path.size), path.data);
    return CX_SUCCESS;
}

/* Every object with a path and a sha256 is a reference, wherever it is. */
static cx_status check_refs(cx_run_verification *v, cx_str document, const cx_json *value,
                            unsigned depth)
{
    if (depth > NESTING_MAX)
        return CX_SUCCESS;
    if (value->type == CX_JSON_ARRAY) {
        for (uint32_t i = 0; i < value->count; i++)
            CX_TRY(check_refs(v, document, &value->items[i], depth + 1));
    } else if (value->type == CX_JSON_OBJECT) {
        cx_str path = CX_JSON_GET_STR(value, "path"), sha256 = CX_JSON_GET_STR(value, "sha256");
        if (path.data != NULL && sha256.data != NULL)
            return check_ref(v, document, value, path, sha256);
        for (uint32_t i = 0; i < value->count; i++)
            CX_TRY(check_refs(v, document, &value->members[i].value, depth + 1));
    }
    return CX_SUCCESS;
}

/* A contract's inputs that lie in the bundle (§15: evidence of failed attempts). */
static cx_status check_inputs(cx_run_verification *v, cx_str document, const cx_json *contract)
{
    const cx_json *artifacts = cx_json_pointer(contract, CX_STR("/inputs/artifacts"));
    for (uint32_t i = 0;
         artifacts != NULL && artifacts->type == CX_JSON_ARRAY && i < artifacts->count; i++) {
        cx_str uri = CX_JSON_GET_STR(&artifacts->items[i], "uri");
        cx_str sha256 = CX_JSON_GET_STR(&artifacts->items[i], "sha256");
        if (cx_str_starts(uri, CX_STR("artifacts/")) && sha256.data != NULL &&
            cx_run_bundle_find(v->bundle, uri) != NULL)
            CX_TRY(check_ref(v, document, &artifacts->items[i], uri, sha256));
    }
    return CX_SUCCESS;
}

/* --- documents -------------------------------------------------------------------------------- */

/* A document that names a run names this one. */
static void check_run_id(cx_run_verification *v, cx_str path, const cx_json *value)
{
    cx_str run_id = CX_JSON_GET_STR(value, "run_id");
    if (run_id.size != 0 && !cx_str_eq(run_id, v->run_id))
        cx_run_verify_add_finding(v, CX_RUN_ID_MISMATCH, path, "it is of run '%.*s'",
                                  (int)(run_id.size > 128 ? 128 : run_id.size), run_id.data);
}

/* False: not there, or not readable (reported under `code`). */
static cx_status read_json(cx_run_verification *v, cx_run_code code, cx_str path, cx_json *out,
                           bool *out_read)
{
    const cx_run_entry *entry = cx_run_bundle_find(v->bundle, path);
    cx_bytes bytes;
    cx_err why;
    *out_read = false;
    if (entry == NULL || !entry->regular)
        return CX_SUCCESS;
    CX_TRY(cx_run_verify_bytes(v, path, CX_RUN_JSON_BYTES_MAX, &bytes));
    if (bytes.data == NULL) {
        cx_run_verify_add_finding(v, code, path, "it is larger than JSON may be here");
        return CX_SUCCESS;
    }
    cx_status status = cx_run_json_read(cx_bytes_str(bytes), 0, v->arena, out, &why);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(v->err);
    if (cx_failed(status))
        cx_run_verify_add_finding(v, code, path, "%s", why.message);
    *out_read = !cx_failed(status);
    return CX_SUCCESS;
}

static cx_status check_report(cx_run_verification *v, cx_str path, const char *schema)
{
    cx_json value;
    bool read;
    CX_TRY(read_json(v, CX_RUN_REPORT_SCHEMA, path, &value, &read));
    if (!read)
        return CX_SUCCESS;
    CX_TRY(check_schema(v, CX_RUN_REPORT_SCHEMA, path, schema, &value));
    CX_TRY(check_refs(v, path, &value, 0));
    check_run_id(v, path, &value);
    return CX_SUCCESS;
}

/* Of the tasks that the run's own was split into, which have no others. */
static cx_status check_task_reports(cx_run_verification *v)
{
    static const struct {
        const char *path, *schema;
    } own[] = {{"results/%.*s/result.json", "task_result.v1.json"},
               {"reviews/%.*s.json", "review_report.v1.json"},
               {"ci/%.*s/report.json", "test_report.v1.json"}};
    const cx_json *tasks = cx_json_get_typed(&v->manifest, CX_STR("tasks"), CX_JSON_ARRAY);
    for (uint32_t i = 0; tasks != NULL && i < tasks->count; i++) {
        cx_str id = CX_JSON_GET_STR(&tasks->items[i], "task_id"), path;
        for (size_t k = 0; k < CX_COUNT_OF(own); k++) {
            if (id.size == 0 || cx_str_eq(id, v->task_id))
                continue;
            CX_TRY(cx_run_verify_path(v, &path, own[k].path, (int)id.size, id.data));
            CX_TRY(check_report(v, path, own[k].schema));
        }
    }
    return CX_SUCCESS;
}

static cx_status check_reports(cx_run_verification *v)
{
    for (size_t i = 0; i < CX_COUNT_OF(reports); i++)
        CX_TRY(check_report(v, cx_str_z(reports[i].path), reports[i].schema));
    CX_TRY(check_task_reports(v));
    cx_json meta;
    bool read;
    CX_TRY(read_json(v, CX_RUN_REPORT_SCHEMA, CX_STR("meta.json"), &meta, &read));
    if (read)
        check_run_id(v, CX_STR("meta.json"), &meta);
    if (v->manifest.type == CX_JSON_OBJECT)
        CX_TRY(check_refs(v, CX_STR("manifest.json"), &v->manifest, 0));
    return CX_SUCCESS;
}

static bool has_event(const cx_run_verification *v, cx_run_event_type type)
{
    for (size_t i = 0; i < v->projection.moments.count; i++)
        if (v->projection.moments.items[i].kind == type)
            return true;
    return false;
}

/*
 * A contract that was refused may be invalid: that is why.  One that the events call valid may not,
 * and neither may one that the run goes by.
 */
static cx_status check_contracts(cx_run_verification *v)
{
    size_t count;
    const cx_run_entry *entries = cx_run_bundle_entries(v->bundle, &count);
    bool must_be_valid =
        !v->has_projection || v->success || has_event(v, CX_RUN_EVENT_CONTRACT_VALIDATED);
    for (size_t i = 0; i < count; i++) {
        cx_str path = entries[i].path;
        cx_json value;
        bool read;
        if (!cx_str_is(path, "contract.json") &&
            !(cx_str_starts(path, CX_STR("tasks/")) && cx_str_ends(path, CX_STR(".json"))))
            continue;
        CX_TRY(read_json(v, CX_RUN_CONTRACT_SCHEMA, path, &value, &read));
        if (!read)
            continue;
        if (must_be_valid)
            CX_TRY(check_schema(v, CX_RUN_CONTRACT_SCHEMA, path, "task_contract.v1.json", &value));
        CX_TRY(check_inputs(v, path, &value));
    }
    return CX_SUCCESS;
}

/* --- mirrors ---------------------------------------------------------------------------------- */

static cx_status check_mirror(cx_run_verification *v, cx_str path, cx_str mirror)
{
    const cx_run_entry *a = cx_run_bundle_find(v->bundle, path);
    const cx_run_entry *b = cx_run_bundle_find(v->bundle, mirror);
    cx_digest digest[2];
    if (a == NULL || b == NULL || !a->regular || !b->regular)
        return CX_SUCCESS; /* reported as what it is */
    CX_TRY(cx_run_bundle_digest(v->bundle, path, &digest[0], v->err));
    CX_TRY(cx_run_bundle_digest(v->bundle, mirror, &digest[1], v->err));
    if (!cx_digest_eq(&digest[0], &digest[1]))
        cx_run_verify_add_finding(v, CX_RUN_MIRROR_MISMATCH, mirror,
                                  "it differs from %.*s, whose mirror it is", (int)path.size,
                                  path.data);
    return CX_SUCCESS;
}

/* Of the run's task; the documents of a run with several are those of the run as a whole. */
static cx_status check_mirrors(cx_run_verification *v)
{
    static const struct {
        const char *path, *mirror;
    } mirrors[] = {
        {"patch.diff", "results/%.*s/patch.diff"},
        {"patch.diff", "patches/%.*s.diff"},
        {"contract.json", "tasks/%.*s.json"},
        {"reports/task_result.json", "results/%.*s/result.json"},
        {"reports/review_report.json", "reviews/%.*s.json"},
        {"reports/test_report.json", "ci/%.*s/report.json"},
    };
    CX_TRY(check_mirror(v, CX_STR("patch.diff"), CX_STR("git/patch.diff")));
    CX_TRY(check_mirror(v, CX_STR("diff_name_only.txt"), CX_STR("git/diff_name_only.txt")));
    for (size_t i = 0; v->task_id.size != 0 && i < CX_COUNT_OF(mirrors); i++) {
        cx_str mirror;
        CX_TRY(cx_run_verify_path(v, &mirror, mirrors[i].mirror, (int)v->task_id.size,
                                  v->task_id.data));
        CX_TRY(check_mirror(v, cx_str_z(mirrors[i].path), mirror));
    }
    return CX_SUCCESS;
}

cx_status cx_run_verify_documents(cx_run_verification *v)
{
    CX_TRY(check_contracts(v));
    CX_TRY(check_reports(v));
    return check_mirrors(v);
}
