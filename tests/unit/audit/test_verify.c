/* What is done to a finished bundle is found, each time under its name (§18). */
#include "audit/verify.h"

#include <stdio.h>

#include "os/folder.h"
#include "base/hex.h"
#include "audit/verify_internal.h"
#include "tests/support/fault.h"
#include "tests/support/tamper.h"
#include "tests/test.h"

#define GOLDEN "vectors/run/golden/success/"
#define RUN "run_20260101_000000_aee408847d35e44e99430f0979c3357b"

typedef struct tampering {
    const char *ops;  /* as in tamper.json */
    const char *code; /* that must be among those found without a ledger; NULL = none is found */
} tampering;

static const tampering tamperings[] = {
    {"[]", NULL},
    {"[[\"mkdir\",\"artifacts/empty\"]]", NULL},
    {"[[\"chmod\",\"contract.json\",\"644\"]]", NULL},
    {"[[\"reformat\",\"manifest.json\"]]", NULL},
    /* files */
    {"[[\"append\",\"patch.diff\",\"x\"]]", "file_hash_mismatch"},
    {"[[\"write\",\"tests/stdout.log\",\"\"]]", "file_hash_mismatch"},
    {"[[\"crlf\",\"tests/command.txt\"]]", "file_hash_mismatch"},
    {"[[\"write_b64\",\"artifacts/runner_result.json\",\"AAECAw==\"]]", "file_hash_mismatch"},
    {"[[\"write\",\"events.lock\",\"\"]]", "file_uncovered"},
    {"[[\"write\",\"codex/golden_success/more.txt\",\"x\"]]", "file_uncovered"},
    {"[[\"delete\",\"trace/trace_id.txt\"]]", "file_missing"},
    {"[[\"delete\",\"codex/golden_success/thread_id.txt\"],[\"rehash\"]]", "file_missing"},
    {"[[\"delete\",\"results/golden_success/patch.diff\"],[\"rehash\"]]", "file_missing"},
    {"[[\"symlink_to_copy\",\"events.jsonl\"]]", "bundle_special_file"},
    {"[[\"symlink_to_copy\",\"manifest.json\"]]", "bundle_special_file"},
    /* manifest */
    {"[[\"write\",\"manifest.json\",\"\"]]", "manifest_invalid"},
    {"[[\"write\",\"manifest.json\",\"[]\"]]", "manifest_invalid"},
    {"[[\"write\",\"manifest.json\",\"{}\"]]", "manifest_schema"},
    {"[[\"write\",\"manifest.json\",\"{\\\"a\\\":1,\\\"a\\\":2}\"]]", "manifest_invalid"},
    {"[[\"json_del\",\"manifest.json\",\"/trace_id\"]]", "manifest_schema"},
    {"[[\"json_set\",\"manifest.json\",\"/unknown\",1]]", "manifest_schema"},
    {"[[\"json_del\",\"manifest.json\",\"/evidence_hashes/patch.diff\"]]", "file_uncovered"},
    {"[[\"json_set\",\"manifest.json\",\"/run_id\",\"run_other\"]]", "run_id_mismatch"},
    {"[[\"json_set\",\"manifest.json\",\"/tasks/0/status\",\"FAILED\"]]", "status_mismatch"},
    {"[[\"json_set\",\"manifest.json\",\"/integrity/contract_sha256\","
     "\"0000000000000000000000000000000000000000000000000000000000000000\"]]",
     "ref_mismatch"},
    {"[[\"json_set\",\"manifest.json\",\"/tasks/0/result/size_bytes\",1]]", "ref_mismatch"},
    {"[[\"json_set\",\"manifest.json\",\"/repo/baseline_ref\","
     "\"0000000000000000000000000000000000000000\"]]",
     "baseline_mismatch"},
    {"[[\"json_set\",\"manifest.json\",\"/repo/final_ref\","
     "\"0000000000000000000000000000000000000000\"]]",
     "ref_mismatch"},
    {"[[\"json_set\",\"reports/task_result.json\",\"/git/head_ref\","
     "\"0000000000000000000000000000000000000000\"],[\"copy_file\","
     "\"reports/task_result.json\",\"results/golden_success/result.json\"],[\"rehash\"]]",
     "ref_mismatch"},
    /* contract */
    {"[[\"json_set\",\"contract.json\",\"/allowed_paths\",[\"docs/\"]],[\"copy_file\","
     "\"contract.json\",\"tasks/golden_success.json\"],[\"rehash\"]]",
     "diff_scope"},
    {"[[\"json_del\",\"contract.json\",\"/task_type\"],[\"json_del\",\"contract.json\",\"/"
     "inputs\"],"
     "[\"rehash\"]]",
     "contract_schema"},
    {"[[\"append\",\"tasks/golden_success.json\",\" \"],[\"rehash\"]]", "mirror_mismatch"},
    {"[[\"json_set\",\"contract.json\",\"/task_id\",\"another_task\"],[\"rehash\"]]",
     "ref_mismatch"},
    {"[[\"json_set\",\"contract.json\",\"/acceptance_tests/0/cmd\",\"true\"],[\"copy_file\","
     "\"contract.json\",\"tasks/golden_success.json\"],[\"rehash\"]]",
     "tests_outside_contract"},
    /* reports */
    {"[[\"json_set\",\"reports/task_result.json\",\"/gates/diff_gate/"
     "passed\",false],[\"copy_file\","
     "\"reports/task_result.json\",\"results/golden_success/result.json\"],[\"rehash\"]]",
     "status_mismatch"},
    {"[[\"json_set\",\"reports/task_result.json\",\"/status\",\"FAILED\"],[\"rehash\"]]",
     "status_mismatch"},
    {"[[\"json_set\",\"reports/review_report.json\",\"/verdict\",\"FAIL\"],[\"copy_file\","
     "\"reports/review_report.json\",\"reviews/golden_success.json\"],[\"rehash\"]]",
     "status_mismatch"},
    {"[[\"json_set\",\"reports/test_report.json\",\"/commands/0/exit_code\",1],[\"copy_file\","
     "\"reports/test_report.json\",\"ci/golden_success/report.json\"],[\"rehash\"]]",
     "status_mismatch"},
    {"[[\"json_set\",\"reports/test_report.json\",\"/commands\",[]],[\"copy_file\","
     "\"reports/test_report.json\",\"ci/golden_success/report.json\"],[\"rehash\"]]",
     "tests_outside_contract"},
    {"[[\"json_set\",\"reports/test_report.json\",\"/run_id\",\"run_other\"],[\"rehash\"]]",
     "run_id_mismatch"},
    {"[[\"write\",\"reports/work_report.json\",\"no\"],[\"rehash\"]]", "report_schema"},
    {"[[\"json_set\",\"reports/work_report.json\",\"/status\",\"fail\"],[\"rehash\"]]",
     "status_mismatch"},
    {"[[\"json_set\",\"reports/review_report.json\",\"/evidence/0/"
     "path\",\"nowhere\"],[\"copy_file\","
     "\"reports/review_report.json\",\"reviews/golden_success.json\"],[\"rehash\"]]",
     "ref_mismatch"},
    {"[[\"write\",\"trace/trace_id.txt\",\"0\\n\"],[\"rehash\"]]", "ref_mismatch"},
    {"[[\"append\",\"tests/command.txt\",\"true\\n\"],[\"rehash\"]]", "tests_outside_contract"},
    /* events */
    {"[[\"write\",\"events.jsonl\",\"\"],[\"rechain\"],[\"rehash\"]]", "state_order"},
    {"[[\"delete_line\",\"events.jsonl\",1],[\"rechain\"],[\"rehash\"]]", "state_order"},
    {"[[\"delete_line\",\"events.jsonl\",24],[\"rechain\"],[\"rehash\"]]", "state_order"},
    {"[[\"drop_last_lines\",\"events.jsonl\",1],[\"rechain\"],[\"rehash\"]]", "state_order"},
    {"[[\"append_event\",\"LOG_RECOVERED\"],[\"rechain\"],[\"rehash\"]]", "state_order"},
    {"[[\"append_event\",\"RUN_FINISHED\"],[\"rechain\"],[\"rehash\"]]", "state_order"},
    {"[[\"replace_line\",\"events.jsonl\",6,\"contract_accepted\",\"because\"],[\"rechain\"],"
     "[\"rehash\"]]",
     "state_order"},
    {"[[\"replace_line\",\"events.jsonl\",36,\"SUCCESS\",\"FAILURE\"],[\"rechain\"],[\"rehash\"]]",
     "status_mismatch"},
    {"[[\"replace_line\",\"events.jsonl\",22,\"\\\"passed\\\":true\",\"\\\"passed\\\":false\"],"
     "[\"replace_line\",\"events.jsonl\",31,\"\\\"passed\\\":true\",\"\\\"passed\\\":false\"],"
     "[\"rechain\"],[\"rehash\"]]",
     "status_mismatch"},
    {"[[\"replace_line\",\"events.jsonl\",5,\"\\\"level\\\":\\\"INFO\\\"\","
     "\"\\\"level\\\":\\\"info\\\"\"],[\"rechain\"],[\"rehash\"]]",
     "event_schema"},
    {"[[\"replace_line\",\"events.jsonl\",5,\"\\\"attempt\\\":0\",\"\\\"attempt\\\":\\\"0\\\"\"],"
     "[\"rechain\"],[\"rehash\"]]",
     "event_schema"},
    {"[[\"replace_line\",\"events.jsonl\",5,\"2026-01-01T\",\"2026-13-01T\"],[\"rechain\"],"
     "[\"rehash\"]]",
     "event_schema"},
    {"[[\"replace_line\",\"events.jsonl\",5,\"9116120105\",\"0000000000\"],[\"rechain\"],"
     "[\"rehash\"]]",
     "event_run_id"},
    {"[[\"insert_line\",\"events.jsonl\",3,\"[1]\"],[\"rechain\"],[\"rehash\"]]", "event_not_json"},
    {"[[\"delete_line\",\"events.hashchain.jsonl\",36],[\"rehash\"]]", "chain_invalid"},
    {"[[\"append\",\"events.hashchain.jsonl\",\"{}\\n\"],[\"rehash\"]]", "chain_invalid"},
    {"[[\"swap_lines\",\"events.hashchain.jsonl\",2,3],[\"rehash\"]]", "chain_invalid"},
    {"[[\"strip_last_newline\",\"events.hashchain.jsonl\"],[\"rehash\"]]", "chain_invalid"},
    /* patch */
    {"[[\"append_patch\",\"src/app/other.c\"],[\"rehash\"]]", "patch_names_mismatch"},
    {"[[\"append_patch\",\".github/x\"],[\"rehash\"]]", "diff_scope"},
    {"[[\"write\",\"diff_name_only.txt\",\"\"],[\"write\",\"git/diff_name_only.txt\",\"\"],"
     "[\"rehash\"]]",
     "patch_names_mismatch"},
    {"[[\"write\",\"diff_name_only.txt\",\"src/app/main.c\\nsrc/app/helper.c\\n\"],[\"copy_file\","
     "\"diff_name_only.txt\",\"git/diff_name_only.txt\"],[\"rehash\"]]",
     "patch_names_mismatch"},
    {"[[\"append\",\"git/patch.diff\",\"x\"],[\"rehash\"]]", "mirror_mismatch"},
    {"[[\"write\",\"git/baseline_commit.txt\",\"93b8680ba499415e135df3981f4ad09433e69a54\"],"
     "[\"rehash\"]]",
     "baseline_mismatch"},
};

static char scratch[FOLDER_PATH_SIZE];

static cx_status read_json(const char *path, cx_arena *arena, cx_json *out, cx_err *err)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_io_read_file(cx_io_system(), path, 1 << 20, &text, err);
    if (!cx_failed(status))
        status = cx_run_json_read(cx_arena_copy_str(arena, cx_buf_str(&text)), 0, arena, out, err);
    cx_buf_done(&text);
    return status;
}

static cx_status judge(const char *folder, const cx_run_witness *witness, cx_arena *arena,
                       cx_run_verdict *out, cx_err *err)
{
    cx_run_bundle *bundle;
    CX_TRY(cx_run_bundle_open(NULL, NULL, folder, &bundle, err));
    cx_status status = cx_run_verify(bundle, witness, arena, out, err);
    cx_run_bundle_close(bundle);
    return status;
}

static void try_one(const tampering *t, const cx_json *seal, cx_arena *arena)
{
    tampered changed;
    cx_json ops;
    cx_err err = {0};
    cx_run_verdict without, with;
    cx_run_witness witness = {.seal = seal};
    char root[FOLDER_PATH_SIZE];
    (void)snprintf(root, sizeof root, "%s", cx_test_path(GOLDEN "bundle"));
    (void)!cx_failed(cx_path_remove_tree(scratch, NULL));
    cx_status status = cx_json_parse_text(cx_str_z(t->ops), arena, &ops, &err);
    if (!cx_failed(status))
        status = tamper_copy(root, scratch, RUN, &changed, &err);
    if (!cx_failed(status))
        status = tamper_apply(&changed, &ops, &err);
    if (!cx_failed(status))
        status = judge(changed.folder, NULL, arena, &without, &err);
    if (cx_failed(status)) {
        cx_test_fail(__FILE__, __LINE__, "%s: %s", t->ops, err.message);
        return;
    }
    bool found = t->code == NULL ? without.verdict == CX_INDETERMINATE
                                 : cx_run_findings_have(&without.findings, t->code);
    if (!found)
        cx_test_fail(
            __FILE__, __LINE__, "%s: %s is not found (%zu findings, first %s)", t->ops,
            t->code == NULL ? "the verdict indeterminate" : t->code, without.findings.list.count,
            without.findings.list.count == 0 ? "none" : without.findings.list.items[0].rule);
    cx_run_findings_done(&without.findings);
    /* Whatever was changed in a file, the seal does not agree any more. */
    CHECK_STATUS(judge(changed.folder, &witness, arena, &with, &err), &err);
    bool untouched = t->code == NULL && strstr(t->ops, "reformat") == NULL;
    if (untouched != (with.verdict == CX_HOLDS))
        cx_test_fail(__FILE__, __LINE__, "%s: with the seal it is %s", t->ops,
                     cx_verdict_name(with.verdict));
    cx_run_findings_done(&with.findings);
}

CX_TEST(verify_finds_every_tampering)
{
    cx_arena arena;
    cx_json seal;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(scratch, "verify");
    CHECK_STATUS(read_json(cx_test_path(GOLDEN "seal.json"), &arena, &seal, &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(tamperings); i++) {
        cx_arena_mark mark = cx_arena_mark_now(&arena);
        try_one(&tamperings[i], &seal, &arena);
        cx_arena_reset(&arena, mark);
    }
    (void)!cx_failed(cx_path_remove_tree(scratch, NULL));
    cx_arena_done(&arena);
}

CX_TEST(verify_asks_the_ledger_for_every_event)
{
    cx_arena arena;
    cx_json seal;
    cx_err err;
    cx_run_verdict verdict;
    tampered copy;
    cx_digest events[40];
    char root[FOLDER_PATH_SIZE];
    cx_run_bundle *bundle;
    cx_bytes chain;
    cx_str text, line;
    size_t count = 0;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(scratch, "verify_ledger");
    (void)snprintf(root, sizeof root, "%s", cx_test_path(GOLDEN "bundle"));
    CHECK_STATUS(read_json(cx_test_path(GOLDEN "seal.json"), &arena, &seal, &err), &err);
    CHECK_STATUS(tamper_copy(root, scratch, RUN, &copy, &err), &err);
    CHECK_STATUS(cx_run_bundle_open(NULL, NULL, copy.folder, &bundle, &err), &err);
    CHECK_STATUS(
        cx_run_bundle_read(bundle, CX_STR("events.hashchain.jsonl"), 1 << 20, &chain, &err), &err);
    for (text = cx_bytes_str(chain); count < 40 && cx_run_next_line(&text, &line);) {
        cx_json link;
        CHECK_STATUS(cx_json_parse_text(line, &arena, &link, &err), &err);
        CHECK(cx_hex_decode(CX_JSON_GET_STR(&link, "hash"), events[count++].bytes, 32));
    }
    cx_run_bundle_close(bundle);
    CHECK_INT(count, 36);
    cx_run_witness witness = {
        .seal = &seal, .has_events = true, .events = events, .event_count = count};
    CHECK_STATUS(judge(copy.folder, &witness, &arena, &verdict, &err), &err);
    CHECK_INT(verdict.verdict, CX_HOLDS);
    cx_run_findings_done(&verdict.findings);
    events[7].bytes[3] ^= 1;
    CHECK_STATUS(judge(copy.folder, &witness, &arena, &verdict, &err), &err);
    CHECK(cx_run_findings_have(&verdict.findings, "ledger_entry_missing"));
    cx_run_findings_done(&verdict.findings);
    events[7].bytes[3] ^= 1;
    witness.event_count = 35;
    CHECK_STATUS(judge(copy.folder, &witness, &arena, &verdict, &err), &err);
    CHECK(cx_run_findings_have(&verdict.findings, "ledger_entry_missing"));
    cx_run_findings_done(&verdict.findings);
    /* The ledger saw the events and no end: the seal was removed, or there never was one. */
    witness.event_count = 36;
    witness.seal = NULL;
    CHECK_STATUS(judge(copy.folder, &witness, &arena, &verdict, &err), &err);
    CHECK(cx_run_findings_have(&verdict.findings, "seal_missing"));
    CHECK_INT(cx_run_verdict_exit(&verdict), 1);
    cx_run_findings_done(&verdict.findings);
    (void)!cx_failed(cx_path_remove_tree(scratch, NULL));
    cx_arena_done(&arena);
}

/* --- names in patches ------------------------------------------------------------------------- */

static void check_paths(const char *patch, bool readable, const char *expected)
{
    cx_arena arena;
    cx_str *paths;
    size_t count;
    bool got;
    cx_err err;
    cx_buf text;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_run_patch_paths(cx_str_z(patch), &arena, &paths, &count, &got, &err), &err);
    CHECK_INT(got, readable);
    for (size_t i = 0; got && i < count; i++)
        cx_buf_printf(&text, "%.*s|", (int)paths[i].size, paths[i].data);
    if (got)
        CHECK_STR(cx_buf_str(&text), expected);
    cx_buf_done(&text);
    cx_arena_done(&arena);
}

CX_TEST(patch_paths_are_read_as_git_writes_them)
{
    check_paths("", true, "");
    check_paths("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", true, "x|");
    check_paths("diff --git a/a b/c b/a b/c\nnew file mode 100644\nindex 0..1\n", true, "a b/c|");
    check_paths("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", true,
                "x|y|");
    check_paths("diff --git a/x b/y\nsimilarity index 90%\ncopy from x\ncopy to y\n--- a/x\n+++ "
                "b/y\n@@ -1 +1 @@\n-a\n+b\n",
                true, "x|y|");
    check_paths("diff --git \"a/\\\"q\\303\\244\" \"b/\\\"q\\303\\244\"\nindex 0..1\n", true,
                "\"q\xc3\xa4|");
    check_paths("diff --git a/x b/x\nindex 0..1\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- a/other\n"
                "+++ b/other\n",
                true, "x|"); /* removed and added lines that look like names */
    check_paths("diff --git a/with blank b/with blank\n--- a/with blank\t\n+++ b/with blank\t\n",
                true, "with blank|");
    check_paths("diff --git a/x b/x\nGIT binary patch\nliteral 3\nKc$@\n", true, "x|");
    check_paths("no patch\n", false, "");
    check_paths("diff --git a/x b/y\nindex 0..1\n", false, "");
    check_paths("diff --git a/x b/x\n--- /etc/passwd\n+++ b/x\n", false, "");
    check_paths("diff --git a/x b/x\n--- a/x\n+++ b/x", false, ""); /* torn */
}

/* --- faults ----------------------------------------------------------------------------------- */

/* When memory runs out there is an error or the right verdict, never another one, and no leak. */
CX_TEST(verify_survives_any_failing_allocation)
{
    tampered copy;
    cx_err err;
    char root[FOLDER_PATH_SIZE];
    bool fired = true;
    folder_fresh(scratch, "verify_memory");
    (void)snprintf(root, sizeof root, "%s", cx_test_path(GOLDEN "bundle"));
    CHECK_STATUS(tamper_copy(root, scratch, RUN, &copy, &err), &err);
    for (uint64_t n = 1; fired && n < 100000; n += n < 60 ? 1 : 7) {
        fault_alloc memory;
        cx_run_bundle *bundle = NULL;
        cx_run_verdict verdict;
        cx_arena arena;
        fault_alloc_init(&memory, n, false);
        cx_arena_init(&arena, &memory.alloc, 0);
        cx_status status = cx_run_bundle_open(NULL, &memory.alloc, copy.folder, &bundle, &err);
        if (!cx_failed(status)) {
            status = cx_run_verify(bundle, NULL, &arena, &verdict, &err);
            if (!cx_failed(status)) {
                if (verdict.verdict != CX_INDETERMINATE)
                    cx_test_fail(__FILE__, __LINE__, "allocation %llu: %s", (unsigned long long)n,
                                 verdict.findings.list.items[0].rule);
                cx_run_findings_done(&verdict.findings);
            }
        }
        fired = atomic_load(&memory.fired) != 0;
        if (cx_failed(status))
            CHECK(fired && status.code == CX_E_NOMEM);
        cx_run_bundle_close(bundle);
        cx_arena_done(&arena);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
    }
    CHECK(!fired);
    (void)!cx_failed(cx_path_remove_tree(scratch, NULL));
}

CX_TEST(verify_says_so_when_a_file_cannot_be_read)
{
    tampered copy;
    cx_err err;
    char root[FOLDER_PATH_SIZE];
    bool fired = true;
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    folder_fresh(scratch, "verify_io");
    (void)snprintf(root, sizeof root, "%s", cx_test_path(GOLDEN "bundle"));
    CHECK_STATUS(tamper_copy(root, scratch, RUN, &copy, &err), &err);
    for (uint64_t n = 1; fired && n < 1000; n++) {
        fault_io files;
        cx_run_bundle *bundle = NULL;
        cx_run_verdict verdict;
        fault_io_init(&files, cx_io_system(), FAULT_READ | FAULT_PREAD, n, false);
        cx_status status = cx_run_bundle_open(&files.io, NULL, copy.folder, &bundle, &err);
        if (!cx_failed(status)) {
            status = cx_run_verify(bundle, NULL, &arena, &verdict, &err);
            if (!cx_failed(status)) {
                CHECK_INT(verdict.verdict, CX_INDETERMINATE);
                cx_run_findings_done(&verdict.findings);
            }
        }
        fired = atomic_load(&files.fired) != 0;
        CHECK(fired == cx_failed(status));
        cx_run_bundle_close(bundle);
    }
    CHECK(!fired);
    (void)!cx_failed(cx_path_remove_tree(scratch, NULL));
    cx_arena_done(&arena);
}
