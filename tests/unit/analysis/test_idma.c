/*
 * test_idma.c - k_eff recomputed, phases at their edges, and what is missing (trace.md §6).
 */
#include <math.h>

#include "base/bytes.h"
#include "tests/test.h"
#include "analysis/idma.h"

static cx_idma_input full(double k_eff, double rho, uint64_t sources)
{
    return (cx_idma_input){.has_k_eff = true,
                           .has_rho = true,
                           .has_sources = true,
                           .has_flag = true,
                           .k_eff = k_eff,
                           .rho = rho,
                           .source_count = sources,
                           .fragility_flag = k_eff < 2.0};
}

static cx_idma_result judge(cx_idma_input input)
{
    cx_idma_result result;
    cx_idma_judge(&input, &result);
    return result;
}

static void check_is(cx_idma_input input, const char *check)
{
    CHECK_STR(cx_str_z(cx_idma_check_name(judge(input).check)), check);
}

static void phase_is(double k_eff, bool established, const char *phase)
{
    cx_idma_input input = {.has_k_eff = true, .k_eff = k_eff, .established = established};
    CHECK_STR(cx_str_z(cx_idma_phase_name(judge(input).phase)), phase);
}

/* The seed's own example: two sources correlated by 0.2 are 1.667, not 2. */
CX_TEST(idma_example_of_the_seed_is_a_mismatch)
{
    cx_idma_result result = judge(full(2.0, 0.2, 2));
    CHECK(result.has_computed);
    CHECK(fabs(result.computed - 2 / 1.2) < 1e-12);
    CHECK_INT(result.check, CX_IDMA_MISMATCH);
}

CX_TEST(idma_formula_at_its_ends)
{
    CHECK(judge(full(5, 0, 5)).computed == 5);   /* independent sources all count */
    CHECK(judge(full(1, 1, 5)).computed == 1);   /* equal ones are one */
    CHECK(judge(full(0, 0.5, 0)).computed == 0); /* none is none, not a division by nothing */
    CHECK(judge(full(0, 1, 0)).computed == 0);
    CHECK(judge(full(1, 0.5, 1)).computed == 1);
    check_is(full(5, 0, 5), "consistent");
    check_is(full(1, 1, 5), "consistent");
    check_is(full(0, 1, 0), "consistent");
}

CX_TEST(idma_tolerance_is_a_hundredth)
{
    check_is(full(4 + 0.0099, 0, 4), "consistent");
    check_is(full(4 - 0.0099, 0, 4), "consistent");
    check_is(full(4 + 0.0101, 0, 4), "mismatch");
    check_is(full(4 - 0.0101, 0, 4), "mismatch");
}

CX_TEST(idma_correlation_outside_its_range_is_said)
{
    check_is(full(2, -0.0001, 3), "input_out_of_range");
    check_is(full(2, 1.0001, 3), "input_out_of_range");
    CHECK(!judge(full(2, 1.0001, 3)).has_computed);
    CHECK_INT(judge(full(2, 7, 3)).phase, CX_PHASE_HEALTHY);
    CHECK_INT(judge(full(2, 7, 3)).flag, CX_FLAG_CONSISTENT);
}

CX_TEST(idma_missing_input_is_indeterminate)
{
    cx_idma_input input = full(4, 0, 4);
    input.has_sources = false;
    check_is(input, "indeterminate");
    CHECK(!judge(input).has_computed);
    input = full(4, 0, 4);
    input.has_rho = false;
    check_is(input, "indeterminate");
    CHECK(!judge(input).has_computed);
    input = full(4, 0, 4);
    input.has_k_eff = false;
    check_is(input, "indeterminate");
    CHECK(judge(input).has_computed); /* it can still be said what it would have been */
    CHECK_INT(judge(input).phase, CX_PHASE_UNKNOWN);
    CHECK_STR(cx_str_z(cx_idma_phase_name(CX_PHASE_UNKNOWN)), "");
    CHECK_INT(judge(input).flag, CX_FLAG_INDETERMINATE);
}

CX_TEST(idma_numbers_that_are_none_are_missing)
{
    check_is(full((double)NAN, 0, 4), "indeterminate");
    check_is(full((double)INFINITY, 0, 4), "indeterminate");
    check_is(full(4, (double)NAN, 4), "indeterminate");
    CHECK_INT(judge(full((double)NAN, 0, 4)).phase, CX_PHASE_UNKNOWN);
}

CX_TEST(idma_phases_at_their_edges)
{
    phase_is(2.0, false, "healthy");
    phase_is(2.0, true, "healthy");
    phase_is(nextafter(2.0, 0), false, "emerging");
    phase_is(nextafter(2.0, 0), true, "fragile");
    phase_is(nextafter(1.05, 2), false, "emerging");
    phase_is(1.05, false, "nascent");
    phase_is(1.05, true, "fragile");
    phase_is(0, false, "nascent");
    phase_is(0, true, "fragile");
}

CX_TEST(idma_flag_is_whether_k_eff_is_below_two)
{
    for (unsigned below = 0; below < 2; below++)
        for (unsigned said = 0; said < 2; said++) {
            cx_idma_input input = full(below ? 1.999 : 2.0, 0, 2);
            input.fragility_flag = said;
            CHECK_INT(judge(input).flag, below == said ? CX_FLAG_CONSISTENT : CX_FLAG_MISMATCH);
            input.has_flag = false;
            CHECK_INT(judge(input).flag, CX_FLAG_INDETERMINATE);
        }
}
