/*
 * test_n_eff.c - how many independent quantities scores measure (trace.md §12), where the answer is
 * known beforehand.
 */
#include "tests/support/scores.h"

static cx_n_eff compute(scores *s)
{
    cx_n_eff n;
    CHECK_STATUS(cx_n_eff_compute(s->rows, s->count, &s->arena, &n, &s->err), &s->err);
    return n;
}

/* Signs of a Hadamard matrix of 32 rows: columns of it are orthogonal, and of mean 0 but the 0th.
 */
static double sign(unsigned row, unsigned column)
{
    unsigned common = row & column, odd = 0;
    for (; common != 0; common &= common - 1)
        odd ^= 1;
    return odd ? -1 : 1;
}

/* 32 rows with csdma and k_eff from columns 1 and 2. */
static void add_orthogonal(scores *s)
{
    for (unsigned i = 0; i < 32; i++) {
        cx_score_row *row = scores_add(s, "a");
        row->csdma = 0.5 + 0.25 * sign(i, 1);
        row->k_eff = 2 + sign(i, 2);
    }
}

CX_TEST(n_eff_of_independent_scores_is_their_number)
{
    scores s;
    scores_init(&s);
    add_orthogonal(&s);
    cx_n_eff n = compute(&s);
    REQUIRE(n.enough);
    CHECK_INT(n.columns_used, 2);
    CHECK_STR(cx_str_z(n.columns[0]), "csdma");
    CHECK_STR(cx_str_z(n.columns[1]), "k_eff");
    CHECK_NEAR(n.participation, 2);
    CHECK_NEAR(n.entropy, 2);
    for (unsigned i = 0; i < 32; i++) {
        s.rows[i].dsdma = sign(i, 4);
        s.rows[i].entropy = 1e-3 * sign(i, 8);
        s.rows[i].rho = 1e6 * sign(i, 16);
        s.rows[i].overridden = sign(i, 3) > 0 ? CX_TRUE : CX_FALSE;
    }
    n = compute(&s);
    CHECK_INT(n.columns_used, 6);
    CHECK_NEAR(n.participation, 6);
    CHECK_NEAR(n.entropy, 6);
    for (unsigned i = 0; i < n.columns_used; i++)
        CHECK_NEAR(n.eigenvalues[i], 1);
    scores_done(&s);
}

CX_TEST(n_eff_of_one_thing_told_many_times_is_one)
{
    scores s;
    scores_init(&s);
    add_orthogonal(&s);
    for (unsigned i = 0; i < 32; i++) {
        cx_score_row *row = &s.rows[i];
        row->k_eff = 7 - 3 * row->csdma; /* sign and scale make no difference */
        row->dsdma = row->coherence = row->csdma * 100;
        row->entropy_passed = row->csdma > 0.5 ? CX_TRUE : CX_FALSE;
    }
    cx_n_eff n = compute(&s);
    CHECK_INT(n.columns_used, 5);
    CHECK_NEAR(n.participation, 1);
    CHECK_NEAR(n.entropy, 1);
    CHECK_NEAR(n.eigenvalues[0], 5);
    for (unsigned i = 1; i < 5; i++)
        CHECK(n.eigenvalues[i] >= 0 && n.eigenvalues[i] < 1e-9);
    scores_done(&s);
}

/* Of two columns with correlation r the eigenvalues are 1 + r and 1 - r. */
CX_TEST(n_eff_of_two_correlated_scores)
{
    scores s;
    scores_init(&s);
    add_orthogonal(&s);
    for (unsigned i = 0; i < 32; i++)
        s.rows[i].k_eff = 2 + 0.6 * sign(i, 1) + 0.8 * sign(i, 2);
    cx_n_eff n = compute(&s);
    REQUIRE(n.columns_used == 2);
    CHECK_NEAR(n.eigenvalues[0], 1.6);
    CHECK_NEAR(n.eigenvalues[1], 0.4);
    CHECK_NEAR(n.participation, 4 / (1.6 * 1.6 + 0.4 * 0.4));
    CHECK_NEAR(n.entropy, exp(-0.8 * log(0.8) - 0.2 * log(0.2)));
    scores_done(&s);
}

CX_TEST(n_eff_needs_twenty_rows_with_both)
{
    scores s;
    scores_init(&s);
    add_orthogonal(&s);
    for (unsigned i = 20; i < 32; i++) {
        s.rows[i].csdma = i % 2 == 0 ? s.rows[i].csdma : (double)NAN;
        s.rows[i].k_eff = i % 2 == 1 ? s.rows[i].k_eff : (double)NAN;
    }
    cx_n_eff n = compute(&s);
    CHECK(n.enough);
    CHECK_INT(n.rows_used, 20);
    s.rows[0].k_eff = NAN;
    n = compute(&s);
    CHECK(!n.enough);
    CHECK_INT(n.rows_used, 19);
    scores_done(&s);
}

CX_TEST(n_eff_drops_columns_that_say_nothing)
{
    scores s;
    scores_init(&s);
    add_orthogonal(&s);
    for (unsigned i = 0; i < 32; i++) {
        s.rows[i].dsdma = 0.7;
        s.rows[i].coherence = 0.7 + 1e-10 * sign(i, 4);
        s.rows[i].entropy = 0.7 + 2e-9 * sign(i, 4);
        s.rows[i].conscience_passed = CX_TRUE;
    }
    s.rows[4].rho = 0.3; /* one value: the others are filled with it */
    cx_n_eff n = compute(&s);
    REQUIRE(n.columns_used == 3);
    CHECK_STR(cx_str_z(n.columns[1]), "entropy_level");
    for (unsigned i = 0; i < 32; i++)
        s.rows[i].csdma = s.rows[i].k_eff = s.rows[i].entropy = 1;
    CHECK(!compute(&s).enough); /* nothing is left */
    scores_done(&s);
}

/* Gaps become the mean: they take from the deviation, and from what goes with other columns. */
CX_TEST(n_eff_fills_gaps_with_the_mean)
{
    scores s;
    scores_init(&s);
    add_orthogonal(&s);
    for (unsigned i = 0; i < 32; i++)
        s.rows[i].dsdma = i < 16 ? s.rows[i].csdma : (double)NAN;
    cx_n_eff n = compute(&s);
    REQUIRE(n.columns_used == 3);
    /* dsdma is csdma in half of the rows and its mean in the others: correlation sqrt(1/2). */
    CHECK_NEAR(n.eigenvalues[0], 1 + sqrt(0.5));
    CHECK_NEAR(n.eigenvalues[1], 1);
    CHECK_NEAR(n.eigenvalues[2], 1 - sqrt(0.5));
    scores_done(&s);
}

/* Seventeen columns, some nearly the same: the sum stays, nothing is below zero or out of order. */
CX_TEST(n_eff_of_all_columns)
{
    scores s;
    uint64_t random = cx_test_seed();
    scores_init(&s);
    for (unsigned i = 0; i < 200; i++) {
        cx_score_row *row = scores_add(&s, "a");
        double *const numbers[] = {&row->csdma,         &row->dsdma,
                                   &row->coherence,     &row->entropy,
                                   &row->k_eff,         &row->rho,
                                   &row->entropy_score, &row->coherence_score,
                                   &row->veto_ratio,    &row->humility_certainty};
        int8_t *const flags[] = {&row->fragility_flag,   &row->entropy_passed,
                                 &row->coherence_passed, &row->veto_passed,
                                 &row->humility_passed,  &row->conscience_passed,
                                 &row->overridden};
        double common = (double)(cx_test_random(&random) % 1000);
        for (size_t k = 0; k < CX_COUNT_OF(numbers); k++)
            *numbers[k] = common + 1e-5 * (double)k * (double)(cx_test_random(&random) % 1000);
        for (size_t k = 0; k < CX_COUNT_OF(flags); k++)
            *flags[k] = cx_test_random(&random) % 3 == 0 ? CX_TRUE : CX_FALSE;
    }
    cx_n_eff n = compute(&s);
    REQUIRE(n.columns_used == 17);
    double sum = 0;
    for (unsigned i = 0; i < 17; i++) {
        sum += n.eigenvalues[i];
        CHECK(n.eigenvalues[i] >= 0);
        CHECK(i == 0 || n.eigenvalues[i] <= n.eigenvalues[i - 1]);
    }
    CHECK_NEAR(sum, 17);
    CHECK(n.participation >= 1 && n.participation <= n.entropy && n.entropy <= 17);
    scores_done(&s);
}

/* A column whose deviation no double holds says nothing, and spoils nothing. */
CX_TEST(n_eff_of_absurd_scores)
{
    scores s;
    scores_init(&s);
    add_orthogonal(&s);
    for (unsigned i = 0; i < 32; i++) {
        s.rows[i].dsdma = 1.7e308 * sign(i, 4);
        s.rows[i].entropy = 1e200 * sign(i, 8);
    }
    cx_n_eff n = compute(&s);
    REQUIRE(n.columns_used == 2);
    CHECK_NEAR(n.participation, 2);
    for (unsigned i = 0; i < 32; i++)
        s.rows[i].csdma = s.rows[i].k_eff = 1e200 * sign(i, 1);
    CHECK(!compute(&s).enough);
    scores_done(&s);
}
