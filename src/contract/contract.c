/*
 * contract.c - the sequence of a contract's checks, and its legacy hash.
 */
#include "contract/contract.h"

#include "crypto/api.h"

cx_status cx_run_contract_check(cx_str bytes, const cx_run_repo *repo,
                                const cx_run_path_context *ground, const cx_contract_checks *checks,
                                cx_arena *arena, cx_run_findings *findings, cx_contract *out,
                                cx_run_policy *out_policy, cx_err *err)
{
    return cx_run_contract_check_at(bytes, (cx_str){NULL, 0}, repo, ground, checks, arena, findings,
                                    out, out_policy, err);
}

cx_status cx_run_contract_check_at(cx_str bytes, cx_str baseline, const cx_run_repo *repo,
                                   const cx_run_path_context *ground,
                                   const cx_contract_checks *checks, cx_arena *arena,
                                   cx_run_findings *findings, cx_contract *out,
                                   cx_run_policy *out_policy, cx_err *err)
{
    CX_ASSERT(findings != NULL && out != NULL && out_policy != NULL);
    size_t before = findings->refusing;
    memset(out_policy, 0, sizeof *out_policy);
    CX_TRY(cx_run_contract_read(bytes, arena, findings, out, err));
    if (findings->refusing != before)
        return CX_SUCCESS; /* K01: nothing else can be checked */
    if (baseline.size != 0) {
        out->baseline_ref = baseline;
        out->target_ref = (cx_str){NULL, 0}; /* nothing is rolled back */
    }
    CX_TRY(cx_run_contract_baseline(out, repo, findings, err));
    /* Without a baseline there are no policies; with the built-in ones the other lints can run. */
    const cx_run_repo *from = out->baseline_commit.size == 0 ? NULL : repo;
    before = findings->refusing;
    CX_TRY(cx_run_policy_load(from, out->baseline_commit, arena, findings, out_policy, err));
    if (findings->refusing != before)
        return CX_SUCCESS; /* unreadable policies: nothing is checked against them (R1) */
    return cx_run_contract_lint(out, out_policy, repo, ground, checks, arena, findings, err);
}

/* json.dumps(sort_keys=True, ensure_ascii=False): strings as RFC 8785 writes them, numbers as
 * Python does.  Depth is that of the reader. */
static void write_legacy(cx_buf *out, const cx_json *value)
{
    if (value->type == CX_JSON_OBJECT || value->type == CX_JSON_ARRAY) {
        bool object = value->type == CX_JSON_OBJECT;
        cx_buf_add_byte(out, object ? '{' : '[');
        for (uint32_t i = 0; i < value->count; i++) {
            if (i != 0)
                cx_buf_add_z(out, ", ");
            if (object) {
                cx_json_write_str(out, cx_json_text(&value->members[i].name), CX_JSON_JCS);
                cx_buf_add_z(out, ": ");
            }
            write_legacy(out, object ? &value->members[i].value : &value->items[i]);
        }
        cx_buf_add_byte(out, object ? '}' : ']');
    } else if (value->type == CX_JSON_STRING) {
        cx_json_write_str(out, cx_json_text(value), CX_JSON_JCS);
    } else if (cx_json_is_number(value)) {
        cx_json_write_number(out, value, CX_JSON_PY_DEFAULT);
    } else {
        cx_buf_add_z(out, value->type == CX_JSON_NULL   ? "null"
                          : value->type == CX_JSON_TRUE ? "true"
                                                        : "false");
    }
}

cx_status cx_run_contract_legacy_hash(const cx_json *contract, cx_digest *out, cx_err *err)
{
    CX_ASSERT(contract != NULL && out != NULL);
    cx_buf text;
    if ((contract->flags & (CX_JSON_SURROGATE | CX_JSON_OVERFLOW | CX_JSON_NONFINITE)) != 0)
        return cx_fail(err, CX_E_FORMAT,
                       "a lone surrogate or a number out of range has no canonical form");
    cx_buf_init(&text, cx_alloc_default());
    write_legacy(&text, contract);
    cx_status status = cx_buf_check(&text, err);
    if (!cx_failed(status))
        *out = cx_digest_of(cx_buf_bytes(&text));
    cx_buf_done(&text);
    return status;
}
