/*
 * verify_files.c - every file is what the manifest says, and there is no other (run.md §17, §18).
 */
#include "crypto/api.h"
#include "audit/verify_internal.h"

/* Files that always exist (§17, marked +); TASK stands for the run's task. */
static const char *const always[] = {
    "contract.json",
    "manifest.json",
    "meta.json",
    "worktree_ref.txt",
    "events.jsonl",
    "events.hashchain.jsonl",
    "patch.diff",
    "diff_name_only.txt",
    "reports/task_result.json",
    "reports/review_report.json",
    "reports/test_report.json",
    "reports/evidence_bundle.json",
    "reports/evidence_report.json",
    "reports/work_report.json",
    "git/baseline_commit.txt",
    "git/patch.diff",
    "git/diff_name_only.txt",
    "tests/command.txt",
    "tests/stdout.log",
    "tests/stderr.log",
    "trace/trace_id.txt",
    "artifacts/runner_result.json",
};

static const char *const always_of_task[] = {
    "tasks/%.*s.json",         "results/%.*s/result.json", "results/%.*s/patch.diff",
    "patches/%.*s.diff",       "reviews/%.*s.json",        "ci/%.*s/report.json",
    "codex/%.*s/events.jsonl", "codex/%.*s/transcript.md", "codex/%.*s/thread_id.txt",
};

static void check_required_files(cx_run_verification *v, cx_str path)
{
    if (cx_run_bundle_find(v->bundle, path) == NULL && !cx_str_is(path, "manifest.json"))
        cx_run_verify_add_finding(v, CX_RUN_FILE_MISSING, path, "the file is not there");
}

static cx_status check_hash(cx_run_verification *v, cx_str path, const cx_json *stated)
{
    const cx_run_entry *entry = cx_run_bundle_find(v->bundle, path);
    cx_digest expected, found;
    if (entry == NULL) {
        cx_run_verify_add_finding(v, CX_RUN_FILE_MISSING, path,
                                  "the manifest covers it; it is not there");
        return CX_SUCCESS;
    }
    if (!entry->regular)
        return CX_SUCCESS; /* reported as what it is */
    CX_TRY(cx_run_bundle_digest(v->bundle, path, &found, v->err));
    if (stated->type != CX_JSON_STRING ||
        !cx_hex_decode_any(cx_json_text(stated), expected.bytes, sizeof expected.bytes) ||
        !cx_digest_eq(&expected, &found)) {
        char hex[65] = {0};
        cx_hex_encode(cx_bytes_from(found.bytes, sizeof found.bytes), hex);
        cx_run_verify_add_finding(v, CX_RUN_FILE_HASH_MISMATCH, path,
                                  "its sha256 is %s, the manifest says another", hex);
    }
    return CX_SUCCESS;
}

cx_status cx_run_verify_files(cx_run_verification *v)
{
    const cx_json *hashes =
        cx_json_get_typed(&v->manifest, CX_STR("evidence_hashes"), CX_JSON_OBJECT);
    size_t count;
    const cx_run_entry *entries = cx_run_bundle_entries(v->bundle, &count);
    for (size_t i = 0; i < count; i++) {
        cx_str path = entries[i].path;
        if (!entries[i].regular)
            cx_run_verify_add_finding(v, CX_RUN_SPECIAL_FILE, path,
                                      "a bundle has regular files only, no links and no devices");
        else if (hashes != NULL && !cx_str_is(path, "manifest.json") &&
                 cx_json_get(hashes, path) == NULL)
            cx_run_verify_add_finding(v, CX_RUN_FILE_UNCOVERED, path,
                                      "the manifest does not know it");
    }
    for (uint32_t i = 0; hashes != NULL && i < hashes->count; i++)
        CX_TRY(check_hash(v, cx_json_text(&hashes->members[i].name), &hashes->members[i].value));
    for (size_t i = 0; i < CX_COUNT_OF(always); i++)
        if (hashes == NULL || cx_json_get(hashes, cx_str_z(always[i])) == NULL)
            check_required_files(v, cx_str_z(always[i]));
    for (size_t i = 0; v->task_id.size != 0 && i < CX_COUNT_OF(always_of_task); i++) {
        cx_str path;
        CX_TRY(
            cx_run_verify_path(v, &path, always_of_task[i], (int)v->task_id.size, v->task_id.data));
        if (hashes == NULL || cx_json_get(hashes, path) == NULL)
            check_required_files(v, path);
    }
    return CX_SUCCESS;
}
