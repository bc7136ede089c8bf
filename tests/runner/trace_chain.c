/*
 * trace_chain.c - the vectors of audit chains and of IDMA.
 */
#include "tests/runner/trace.h"

#include "base/hex.h"
#include "analysis/chain.h"
#include "analysis/idma.h"

/* --- chains ---------------------------------------------------------------------------------- */

static cx_status read_entry(const cx_json *item, cx_chain_entry *out, cx_err *err)
{
    const cx_json *success = CX_JSON_GET(item, "success");
    *out = (cx_chain_entry){.action = CX_JSON_GET_STR(item, "action")};
    if (!cx_json_int64(CX_JSON_GET(item, "seq"), &out->seq))
        return cx_fail(err, CX_E_FORMAT, "an entry of the case has no number");
    CX_TRY(runner_text(item, "timestamp", &out->timestamp, err));
    CX_TRY(runner_trace_time(item, "timestamp", &out->timestamp_ns, err));
    CX_TRY(runner_text(item, "trace_id", &out->trace_id, err));
    out->has_hash = cx_digest_parse(CX_JSON_GET_STR(item, "hash"), &out->hash);
    out->has_success =
        success != NULL && (success->type == CX_JSON_TRUE || success->type == CX_JSON_FALSE);
    out->success = out->has_success && success->type == CX_JSON_TRUE;
    return CX_SUCCESS;
}

static cx_status check_chain(runner *r, const cx_json *item, cx_chain_report *out, cx_err *err)
{
    const cx_json *list;
    cx_chain_options options = {.profile = CX_CHAIN_AUTO};
    cx_digest genesis;
    cx_str profile, hex = CX_JSON_GET_STR(item, "genesis");
    CX_TRY(runner_member(item, "entries", CX_JSON_ARRAY, &list, err));
    CX_TRY(runner_text(item, "profile", &profile, err));
    if (!cx_chain_profile_parse(profile, &options.profile))
        return cx_fail(err, CX_E_FORMAT, "the case names an unknown profile");
    if (hex.data != NULL && !cx_digest_parse(hex, &genesis))
        return cx_fail(err, CX_E_FORMAT, "'genesis' of the case is no hash");
    options.genesis = hex.data != NULL ? &genesis : NULL;
    cx_chain_entry *entries = CX_ARENA_ARRAY(&r->arena, cx_chain_entry, (size_t)list->count + 1);
    if (entries == NULL)
        return cx_fail_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        CX_TRY(read_entry(&list->items[i], &entries[i], err));
        entries[i].arrival = i;
    }
    return cx_chain_check(entries, list->count, &options, &r->arena, out, err);
}

cx_status runner_trace_chain(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    cx_chain_report report;
    cx_buf text;
    CX_TRY(check_chain(r, item, &report, err));
    cx_buf_init(&text, cx_alloc_default());
    cx_status status = cx_chain_json(&text, CX_STR("agent"), &report, err);
    if (!cx_failed(status))
        status = runner_parse(r, &text, out, err);
    cx_buf_done(&text);
    return status;
}

/* --- IDMA ------------------------------------------------------------------------------------ */

cx_status runner_trace_idma(runner *r, const cx_json *item, cx_json *out, cx_err *err)
{
    const cx_json *sources = CX_JSON_GET(item, "sources");
    const cx_json *flag = CX_JSON_GET(item, "fragility_flag");
    const cx_json *established = CX_JSON_GET(item, "established");
    cx_idma_input input = {.established = established != NULL && established->type == CX_JSON_TRUE};
    cx_idma_result result;
    (void)err;
    input.has_k_eff = cx_json_double(CX_JSON_GET(item, "k_eff"), &input.k_eff);
    input.has_rho = cx_json_double(CX_JSON_GET(item, "correlation_risk"), &input.rho);
    input.has_sources = sources != NULL && sources->type == CX_JSON_ARRAY;
    input.source_count = input.has_sources ? sources->count : 0;
    input.has_flag = flag != NULL && (flag->type == CX_JSON_TRUE || flag->type == CX_JSON_FALSE);
    input.fragility_flag = input.has_flag && flag->type == CX_JSON_TRUE;
    cx_idma_judge(&input, &result);
    cx_json_list list = cx_json_list_begin(&r->arena);
    cx_json_list_put(&list, CX_STR("computed"),
                     result.has_computed ? cx_json_make_double(&r->arena, result.computed)
                                         : cx_json_make_null());
    cx_json_list_put(&list, CX_STR("check"),
                     cx_json_make_str(cx_str_z(cx_idma_check_name(result.check))));
    cx_json_list_put(&list, CX_STR("phase"),
                     cx_json_make_str(cx_str_z(cx_idma_phase_name(result.phase))));
    cx_json_list_put(&list, CX_STR("flag"),
                     cx_json_make_str(cx_str_z(cx_idma_flag_name(result.flag))));
    return cx_json_list_end_object(&list, out, err);
}
