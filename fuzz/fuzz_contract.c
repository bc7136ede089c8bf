/*
 * fuzz_contract.c - any bytes as a task contract, or after a 'c' as policies/cortex.json, after a
 * 'p' as one of the policy files: what is accepted resolves to a contract that is accepted.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "contract/contract_command.h"

typedef struct one_file {
    const char *path;
    cx_bytes bytes;
} one_file;

static cx_status resolve(void *arg, cx_str ref, cx_arena *arena, cx_str *out_commit, cx_err *err)
{
    (void)arg, (void)ref, (void)arena, (void)err;
    *out_commit = CX_STR("0123456789012345678901234567890123456789");
    return CX_SUCCESS;
}

static cx_status in_head(void *arg, cx_str commit, bool *out, cx_err *err)
{
    (void)arg, (void)commit, (void)err;
    *out = true;
    return CX_SUCCESS;
}

static cx_status read_file(void *arg, cx_str commit, cx_str path, size_t limit_bytes,
                           cx_arena *arena, cx_run_blob *out_kind, cx_bytes *out, cx_err *err)
{
    const one_file *file = arg;
    (void)commit, (void)limit_bytes, (void)arena, (void)err;
    bool found = file->path != NULL && cx_str_is(path, file->path);
    *out = found ? file->bytes : (cx_bytes){NULL, 0};
    *out_kind = found ? CX_BLOB_FILE : CX_BLOB_NONE;
    return CX_SUCCESS;
}

static void check_policies(cx_bytes bytes, cx_arena *arena)
{
    static const char *const paths[] = {
        "policies/agent_registry.json", "policies/packs/low.json", "policies/mcp_allowlist.json",
        "policies/skills_bundle_registry.json", "policies/approvers.json"};
    for (size_t i = 0; i < CX_COUNT_OF(paths); i++) {
        one_file file = {paths[i], bytes};
        const cx_run_repo repo = {&file, resolve, in_head, read_file, NULL, NULL};
        cx_run_findings findings;
        cx_run_policy policy;
        cx_err err;
        cx_run_findings_init(&findings, arena);
        FUZZ_CHECK(
            !cx_failed(cx_run_policy_load(&repo, CX_STR("0123456789012345678901234567890123456789"),
                                          arena, &findings, &policy, &err)));
        FUZZ_CHECK(policy.approver_count == 0); /* these bytes are not pinned */
        cx_run_findings_done(&findings);
    }
}

static void check_contract(cx_bytes bytes, cx_arena *arena)
{
    one_file file = {NULL, {NULL, 0}};
    const cx_run_repo repo = {&file, resolve, in_head, read_file, NULL, NULL};
    cx_run_findings findings, again;
    cx_contract contract, resolved;
    cx_run_policy policy;
    cx_err err;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_run_findings_init(&findings, arena);
    cx_run_findings_init(&again, arena);
    FUZZ_CHECK(!cx_failed(cx_run_contract_check(cx_bytes_str(bytes), &repo, NULL,
                                                &cx_run_contract_command_checks, arena, &findings,
                                                &contract, &policy, &err)));
    if (findings.refusing == 0) {
        FUZZ_CHECK(contract.output_schema != NULL && contract.baseline_commit.size != 0);
        FUZZ_CHECK(cx_run_task_id_ok(contract.task_id));
        FUZZ_CHECK(!cx_failed(cx_run_contract_resolve(&contract, &policy, arena, &out, &err)));
        FUZZ_CHECK(!cx_failed(cx_run_contract_check(cx_buf_str(&out), &repo, NULL,
                                                    &cx_run_contract_command_checks, arena, &again,
                                                    &resolved, &policy, &err)));
        FUZZ_CHECK(again.refusing == 0);
    }
    cx_run_findings_done(&findings);
    cx_run_findings_done(&again);
    cx_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_run_config config;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (size != 0 && data[0] == 'p')
        check_policies((cx_bytes){data + 1, size - 1}, &arena);
    else if (size == 0 || data[0] != 'c')
        check_contract((cx_bytes){data, size}, &arena);
    else if (!cx_failed(cx_run_config_read(cx_str_from((const char *)data + 1, size - 1), &arena,
                                           &config, &err)))
        FUZZ_CHECK(cx_run_config_runner(&config, config.default_runner) != NULL);
    cx_arena_done(&arena);
    return 0;
}
