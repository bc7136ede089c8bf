/*
 * idma.c - recomputes k_eff from its inputs, derives the phase, and compares it with the agent's
 * claim (trace.md §6).
 */
#include "analysis/idma.h"

#include <math.h>

#define HEALTHY 2.0
#define NASCENT 1.05

/* False when an input is missing or outside the formula's domain. */
static bool compute_k_eff(const cx_idma_input *input, cx_idma_result *out)
{
    if (!input->has_rho || !input->has_sources || !isfinite(input->rho))
        return false;
    if (input->rho < 0 || input->rho > 1) {
        out->check = CX_IDMA_OUT_OF_RANGE;
        return false;
    }
    double k = (double)input->source_count;
    out->has_computed = true;
    out->computed = input->source_count == 0 ? 0 : k / (1 + input->rho * (k - 1));
    return true;
}

static cx_idma_phase phase_of(double k_eff, bool established)
{
    if (k_eff >= HEALTHY)
        return CX_PHASE_HEALTHY;
    if (established)
        return CX_PHASE_FRAGILE;
    return k_eff > NASCENT ? CX_PHASE_EMERGING : CX_PHASE_NASCENT;
}

void cx_idma_judge(const cx_idma_input *input, cx_idma_result *out)
{
    *out = (cx_idma_result){
        .check = CX_IDMA_INDETERMINATE, .phase = CX_PHASE_UNKNOWN, .flag = CX_FLAG_INDETERMINATE};
    bool has_k_eff = input->has_k_eff && isfinite(input->k_eff);
    if (compute_k_eff(input, out) && has_k_eff)
        out->check = fabs(input->k_eff - out->computed) <= CX_IDMA_TOLERANCE ? CX_IDMA_CONSISTENT
                                                                             : CX_IDMA_MISMATCH;
    if (!has_k_eff)
        return;
    out->phase = phase_of(input->k_eff, input->established);
    if (input->has_flag)
        out->flag = input->fragility_flag == (input->k_eff < HEALTHY) ? CX_FLAG_CONSISTENT
                                                                      : CX_FLAG_MISMATCH;
}

const char *cx_idma_check_name(cx_idma_check check)
{
    static const char *const names[] = {"consistent", "mismatch", "input_out_of_range",
                                        "indeterminate"};
    return names[check];
}

const char *cx_idma_phase_name(cx_idma_phase phase)
{
    static const char *const names[] = {"", "healthy", "fragile", "emerging", "nascent"};
    return names[phase];
}

const char *cx_idma_flag_name(cx_idma_flag flag)
{
    static const char *const names[] = {"consistent", "mismatch", "indeterminate"};
    return names[flag];
}
