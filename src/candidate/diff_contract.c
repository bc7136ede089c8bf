/*
 * diff_contract.c - what a contract says about the diff gate.
 */
#include "candidate/diff_contract.h"

cx_status cx_diff_options_contract(const cx_contract *contract, const cx_run_config *config,
                                   cx_arena *arena, cx_diff_options *out, cx_err *err)
{
    CX_ASSERT(arena != NULL && out != NULL);
    cx_str *binary = CX_ARENA_ARRAY(arena, cx_str, contract->output_count + 1);
    size_t count = 0;
    if (binary == NULL)
        return cx_fail_nomem(err);
    /* D12: an exact path, listed as an output of type file whose acceptance says so. */
    for (size_t i = 0; i < contract->output_count; i++)
        if (cx_str_is(contract->outputs[i].type, "file") &&
            cx_str_starts(contract->outputs[i].acceptance, CX_STR("binary-ok")))
            binary[count++] = contract->outputs[i].name;
    out->baseline =
        contract->baseline_commit.size != 0 ? contract->baseline_commit : contract->baseline_ref;
    out->allowed_paths = contract->allowed_paths.items;
    out->allowed_count = contract->allowed_paths.count;
    out->binary_ok = binary;
    out->binary_ok_count = count;
    if (config != NULL) {
        out->max_paths = config->limits.changed_paths;
        out->max_bytes = config->limits.changed_bytes;
    }
    return CX_SUCCESS;
}
