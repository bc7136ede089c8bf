/*
 * verify.c - the verdict on a bundle (run.md §18): reads what several checks need, runs them, and
 * compares with what the ledger knows.
 */
#include "audit/verify_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "crypto/api.h"
#include "rules/api.h"

#define SAID_MAX 20 /* findings of one code */

const char *const cx_run_code_names[CX_RUN_CODE_COUNT] = {
    "manifest_missing",   "manifest_invalid",     "manifest_schema", "run_id_mismatch",
    "seal_missing",       "seal_mismatch",        "file_missing",    "file_uncovered",
    "file_hash_mismatch", "bundle_special_file",  "contract_schema", "report_schema",
    "event_not_json",     "event_schema",         "event_order",     "event_run_id",
    "events_torn",        "chain_missing",        "chain_invalid",   "state_order",
    "mirror_mismatch",    "patch_names_mismatch", "diff_scope",      "tests_outside_contract",
    "status_mismatch",    "baseline_mismatch",    "ref_mismatch",    "ledger_entry_missing",
    "stored_changed",     "stored_missing",       "stored_erased",   "stored_unreachable",
    "ended_by_another",
};

void cx_run_verify_add_finding(cx_run_verification *v, cx_run_code code, cx_str path,
                               const char *format, ...)
{
    char message[400];
    va_list args;
    if (v->said[code]++ >= SAID_MAX)
        return;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    cx_run_findings_reject(&v->out->findings, cx_run_code_names[code], path, CX_STR(""), "%s",
                           message);
}

cx_status cx_run_verify_bytes(cx_run_verification *v, cx_str path, size_t limit_bytes,
                              cx_bytes *out)
{
    CX_ASSERT(v != NULL && out != NULL);
    cx_status status = cx_run_bundle_read(v->bundle, path, limit_bytes, out, v->err);
    if (!cx_failed(status))
        return status;
    *out = (cx_bytes){NULL, 0};
    return status.code == CX_E_NOT_FOUND || status.code == CX_E_FORMAT || status.code == CX_E_LIMIT
               ? CX_SUCCESS
               : status;
}

cx_status cx_run_verify_path(cx_run_verification *v, cx_str *out, const char *format, ...)
{
    CX_ASSERT(v != NULL && out != NULL);
    char text[CX_RUN_BUNDLE_PATH_MAX + 1];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    *out = cx_arena_copy_str(v->arena, cx_str_z(text));
    return out->data == NULL ? cx_fail_nomem(v->err) : CX_SUCCESS;
}

/* --- the manifest ----------------------------------------------------------------------------- */

static cx_status read_manifest(cx_run_verification *v)
{
    static const char name[] = "manifest.json";
    cx_run_findings schema;
    cx_digest digest;
    char hex[65] = {0};
    if (cx_run_bundle_find(v->bundle, CX_STR(name)) == NULL) {
        cx_run_verify_add_finding(v, CX_RUN_MANIFEST_MISSING, CX_STR(name),
                                  "the bundle has no manifest");
        return CX_SUCCESS;
    }
    cx_err why;
    cx_status status = cx_run_bundle_json(v->bundle, CX_STR(name), &v->manifest, &why);
    if (cx_failed(status)) {
        v->manifest = (cx_json){0};
        if (status.code == CX_E_IO || status.code == CX_E_NOMEM || status.code == CX_E_DENIED) {
            if (v->err != NULL)
                *v->err = why;
            return status;
        }
        cx_run_verify_add_finding(v, CX_RUN_MANIFEST_INVALID, CX_STR(name), "%s", why.message);
        return CX_SUCCESS;
    }
    CX_TRY(cx_run_bundle_digest(v->bundle, CX_STR(name), &digest, v->err));
    cx_hex_encode(cx_bytes_from(digest.bytes, sizeof digest.bytes), hex);
    v->out->manifest_sha256 = cx_arena_copy_str(v->arena, cx_str_from(hex, 64));
    if (v->out->manifest_sha256.data == NULL)
        return cx_fail_nomem(v->err);
    if (v->manifest.type != CX_JSON_OBJECT) {
        cx_run_verify_add_finding(v, CX_RUN_MANIFEST_INVALID, CX_STR(name),
                                  "found %s, expected an object", cx_json_type_name(&v->manifest));
        v->manifest = (cx_json){0};
        return CX_SUCCESS;
    }
    cx_run_findings_init(&schema, v->arena);
    status = cx_run_schema_check("run_manifest.v1.json", &v->manifest, "manifest_schema", &schema,
                                 v->err);
    for (size_t i = 0; !cx_failed(status) && i < schema.list.count; i++)
        cx_run_verify_add_finding(
            v, CX_RUN_MANIFEST_SCHEMA, CX_STR(name), "%.*s: %.*s",
            (int)schema.list.items[i].where.size, schema.list.items[i].where.data,
            (int)schema.list.items[i].message.size, schema.list.items[i].message.data);
    if (!cx_failed(status))
        status = cx_run_findings_check(&schema, v->err);
    cx_run_findings_done(&schema);
    return status;
}

/* Who the run is: what the manifest says, and everything else must agree with. */
static void set_run_id(cx_run_verification *v)
{
    cx_str name = cx_run_bundle_name(v->bundle);
    cx_str recorded = CX_JSON_GET_STR(&v->manifest, "run_id");
    v->run_id = recorded.data != NULL ? recorded : name;
    v->out->run_id = v->run_id;
    v->task_id = CX_JSON_GET_STR(&v->manifest, "task_id");
    if (v->task_id.data == NULL) {
        const cx_json *first = cx_json_pointer(&v->manifest, CX_STR("/tasks/0"));
        v->task_id = first == NULL ? CX_STR("") : CX_JSON_GET_STR(first, "task_id");
    }
    v->trace_id = CX_JSON_GET_STR(&v->manifest, "trace_id");
    v->success = cx_str_is(CX_JSON_GET_STR(&v->manifest, "status"), "SUCCESS");
    if (recorded.data != NULL && !cx_str_eq(recorded, name))
        cx_run_verify_add_finding(v, CX_RUN_ID_MISMATCH, CX_STR("manifest.json"),
                                  "the manifest is of run %.*s, the folder is called %.*s",
                                  (int)(recorded.size > 128 ? 128 : recorded.size), recorded.data,
                                  (int)(name.size > 128 ? 128 : name.size), name.data);
}

/* --- the ledger ------------------------------------------------------------------------------- */

static void compare_seal(cx_run_verification *v, const char *member, cx_str found)
{
    cx_str sealed = cx_json_get_str(v->witness->seal, cx_str_z(member));
    if (sealed.data == NULL || !cx_str_eq(sealed, found))
        cx_run_verify_add_finding(
            v, CX_RUN_SEAL_MISMATCH, CX_STR("manifest.json"),
            "the seal says %s '%.*s', the bundle '%.*s'", member,
            (int)(sealed.size > 100 ? 100 : sealed.size), sealed.data == NULL ? "" : sealed.data,
            (int)(found.size > 100 ? 100 : found.size), found.data == NULL ? "" : found.data);
}

static cx_status check_seal(cx_run_verification *v)
{
    const cx_json *seal = v->witness->seal;
    cx_digest contract;
    char hex[65] = {0};
    uint64_t events;
    if (seal == NULL) {
        /* A ledger that saw the events but no seal: the run never came to its end. */
        if (v->witness->has_events && v->witness->event_count != 0)
            cx_run_verify_add_finding(v, CX_RUN_SEAL_MISSING, CX_STR("manifest.json"),
                                      "the ledger knows events of this run, but no seal");
        return CX_SUCCESS;
    }
    compare_seal(v, "type", CX_STR("cortex.run.seal.v1"));
    compare_seal(v, "run_id", v->run_id);
    compare_seal(v, "manifest_sha256", v->out->manifest_sha256);
    compare_seal(v, "chain_head", v->out->chain_head);
    const cx_json *count = CX_JSON_GET(seal, "events_count");
    if (count == NULL || !cx_json_uint64(count, &events) || events != v->out->event_count)
        cx_run_verify_add_finding(v, CX_RUN_SEAL_MISMATCH, CX_STR("events.jsonl"),
                                  "the seal counts other events than the %llu that are there",
                                  (unsigned long long)v->out->event_count);
    if (v->manifest.type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    compare_seal(v, "task_id", v->task_id);
    compare_seal(v, "status", CX_JSON_GET_STR(&v->manifest, "status"));
    const cx_json *repo = CX_JSON_GET(&v->manifest, "repo");
    compare_seal(v, "baseline_commit",
                 repo == NULL ? CX_STR("") : CX_JSON_GET_STR(repo, "baseline_ref"));
    if (repo != NULL && CX_JSON_GET(repo, "final_ref") != NULL)
        compare_seal(v, "final_commit", CX_JSON_GET_STR(repo, "final_ref"));
    const cx_run_entry *entry = cx_run_bundle_find(v->bundle, CX_STR("contract.json"));
    if (entry == NULL || !entry->regular)
        return CX_SUCCESS;
    CX_TRY(cx_run_bundle_digest(v->bundle, CX_STR("contract.json"), &contract, v->err));
    cx_hex_encode(cx_bytes_from(contract.bytes, sizeof contract.bytes), hex);
    compare_seal(v, "contract_sha256", cx_str_from(hex, 64));
    return CX_SUCCESS;
}

/* --- all of it -------------------------------------------------------------------------------- */

static cx_status read_document(cx_run_verification *v, const char *path, cx_json *out)
{
    cx_bytes bytes;
    *out = (cx_json){0};
    CX_TRY(cx_run_verify_bytes(v, cx_str_z(path), CX_RUN_JSON_BYTES_MAX, &bytes));
    if (bytes.data == NULL)
        return CX_SUCCESS;
    cx_status status = cx_run_json_read(cx_bytes_str(bytes), 0, v->arena, out, v->err);
    if (status.code == CX_E_NOMEM)
        return status;
    if (cx_failed(status) || out->type != CX_JSON_OBJECT)
        *out = (cx_json){0};
    return CX_SUCCESS;
}

static cx_status read_projection(cx_run_verification *v)
{
    cx_bytes events;
    CX_TRY(cx_run_verify_bytes(v, CX_STR("events.jsonl"), CX_RUN_EVENTS_BYTES_MAX, &events));
    if (events.data == NULL)
        return CX_SUCCESS;
    cx_status status =
        cx_run_projection_read(cx_bytes_str(events), v->arena, &v->projection, v->err);
    if (status.code == CX_E_NOMEM)
        return status;
    v->has_projection = !cx_failed(status);
    return CX_SUCCESS;
}

static cx_status run_checks(cx_run_verification *v)
{
    CX_TRY(read_manifest(v));
    set_run_id(v);
    CX_TRY(read_document(v, "contract.json", &v->contract));
    CX_TRY(read_document(v, "reports/task_result.json", &v->task_result));
    CX_TRY(read_document(v, "reports/review_report.json", &v->review_report));
    CX_TRY(read_document(v, "reports/test_report.json", &v->test_report));
    CX_TRY(read_document(v, "reports/work_report.json", &v->work_report));
    CX_TRY(cx_run_verify_events(v)); /* reads events.jsonl, which is then hashed from memory */
    CX_TRY(read_projection(v));
    CX_TRY(cx_run_verify_files(v));
    CX_TRY(cx_run_verify_documents(v));
    if (v->has_projection)
        CX_TRY(cx_run_verify_states(v));
    if (v->manifest.type == CX_JSON_OBJECT)
        CX_TRY(cx_run_verify_agreement(v));
    CX_TRY(cx_run_verify_patch(v));
    CX_TRY(cx_run_verify_tasks(v));
    return check_seal(v);
}

cx_status cx_run_verify(cx_run_bundle *bundle, const cx_run_witness *witness, cx_arena *arena,
                        cx_run_verdict *out, cx_err *err)
{
    CX_ASSERT(bundle != NULL && arena != NULL && out != NULL);
    static const cx_run_witness no_witness;
    cx_run_verification v = {
        .bundle = bundle,
        .witness = witness != NULL ? witness : &no_witness,
        .arena = arena,
        .out = out,
        .err = err,
    };
    size_t entries;
    *out = (cx_run_verdict){.reason = ""};
    cx_run_findings_init(&out->findings, arena);
    cx_run_projection_init(&v.projection);
    (void)cx_run_bundle_entries(bundle, &entries);
    out->file_count = entries;
    cx_status status = run_checks(&v);
    if (!cx_failed(status))
        status = cx_run_findings_check(&out->findings, err);
    cx_run_projection_done(&v.projection, arena);
    if (cx_failed(status)) {
        cx_run_findings_done(&out->findings);
        return status;
    }
    if (out->findings.refusing != 0) {
        out->verdict = CX_BROKEN;
    } else if (v.witness->seal == NULL) {
        out->verdict = CX_INDETERMINATE;
        out->reason = "unsealed";
    } else {
        out->verdict = CX_HOLDS;
    }
    out->sealed = v.witness->seal != NULL && v.said[CX_RUN_SEAL_MISMATCH] == 0;
    return CX_SUCCESS;
}

cx_status cx_run_verify_unread(cx_str run_id, cx_run_unread why, cx_str message, cx_arena *arena,
                               cx_run_verdict *out, cx_err *err)
{
    static const struct {
        cx_run_code code;
        const char *reason;
    } of[] = {[CX_RUN_UNREAD_CHANGED] = {CX_RUN_STORED_CHANGED, ""},
              [CX_RUN_UNREAD_MISSING] = {CX_RUN_STORED_MISSING, "missing"},
              [CX_RUN_UNREAD_ERASED] = {CX_RUN_STORED_ERASED, "erased"},
              [CX_RUN_UNREAD_AWAY] = {CX_RUN_STORED_UNREACHABLE, "unreachable"},
              [CX_RUN_UNREAD_ENDED] = {CX_RUN_ENDED_BY_ANOTHER, "ended"}};
    CX_ASSERT(arena != NULL && out != NULL && why < CX_COUNT_OF(of));
    *out = (cx_run_verdict){.run_id = run_id,
                            .verdict = why == CX_RUN_UNREAD_CHANGED ? CX_BROKEN : CX_INDETERMINATE,
                            .reason = of[why].reason};
    cx_run_findings_init(&out->findings, arena);
    cx_run_findings_reject(&out->findings, cx_run_code_names[of[why].code], CX_STR(""), CX_STR(""),
                           "%.*s", (int)message.size, message.data);
    cx_status status = cx_run_findings_check(&out->findings, err);
    if (cx_failed(status))
        cx_run_findings_done(&out->findings);
    return status;
}

int cx_run_verdict_exit(const cx_run_verdict *verdict)
{
    switch (verdict->verdict) {
    case CX_HOLDS: return 0;
    case CX_BROKEN: return 1;
    case CX_INDETERMINATE: break;
    }
    return 3;
}

cx_status cx_run_verdict_codes(const cx_run_verdict *verdict, cx_arena *arena,
                               const char *const **out, size_t *out_count, cx_err *err)
{
    CX_ASSERT(arena != NULL);
    const char **codes = CX_ARENA_ARRAY(arena, const char *, CX_RUN_CODE_COUNT);
    size_t count = 0;
    if (codes == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < CX_RUN_CODE_COUNT; i++)
        if (cx_run_findings_have(&verdict->findings, cx_run_code_names[i]))
            codes[count++] = cx_run_code_names[i];
    *out = codes;
    *out_count = count;
    return CX_SUCCESS;
}

cx_status cx_run_verdict_json(const cx_run_verdict *verdict, cx_arena *arena, cx_json *out,
                              cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    const char *const *codes;
    size_t count;
    cx_json names, details;
    CX_TRY(cx_run_verdict_codes(verdict, arena, &codes, &count, err));
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_add(&list, cx_json_make_str(cx_str_z(codes[i])));
    CX_TRY(cx_json_list_end_array(&list, &names, err));
    list = cx_json_list_begin(arena);
    for (size_t i = 0; i < verdict->findings.list.count; i++) {
        const cx_run_finding *finding = &verdict->findings.list.items[i];
        cx_json one;
        cx_json_list object = cx_json_list_begin(arena);
        cx_json_list_put(&object, CX_STR("code"), cx_json_make_str(cx_str_z(finding->rule)));
        cx_json_list_put(&object, CX_STR("path"), cx_json_make_str(finding->where));
        cx_json_list_put(&object, CX_STR("message"), cx_json_make_str(finding->message));
        CX_TRY(cx_json_list_end_object(&object, &one, err));
        cx_json_list_add(&list, one);
    }
    CX_TRY(cx_json_list_end_array(&list, &details, err));
    list = cx_json_list_begin(arena);
    cx_json_list_put(&list, CX_STR("run_id"), cx_json_make_str(verdict->run_id));
    cx_json_list_put(&list, CX_STR("verdict"),
                     cx_json_make_str(cx_str_z(cx_verdict_name(verdict->verdict))));
    cx_json_list_put(&list, CX_STR("reason"), cx_json_make_str(cx_str_z(verdict->reason)));
    cx_json_list_put(&list, CX_STR("codes"), names);
    cx_json_list_put(&list, CX_STR("details"), details);
    cx_json_list_put(&list, CX_STR("files"), cx_json_make_uint(arena, verdict->file_count));
    cx_json_list_put(&list, CX_STR("events"), cx_json_make_uint(arena, verdict->event_count));
    cx_json_list_put(&list, CX_STR("seal"),
                     cx_json_make_str(verdict->sealed ? CX_STR("agrees") : CX_STR("none")));
    cx_json_list_put(&list, CX_STR("manifest_sha256"),
                     verdict->manifest_sha256.size == 0
                         ? cx_json_make_null()
                         : cx_json_make_str(verdict->manifest_sha256));
    cx_json_list_put(&list, CX_STR("chain_head"), cx_json_make_str(verdict->chain_head));
    return cx_json_list_end_object(&list, out, err);
}
