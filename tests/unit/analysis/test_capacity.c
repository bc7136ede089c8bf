/*
 * test_capacity.c - the five factors of capacity, each moved alone, and the classes they end in
 * (trace.md §12).
 */
#include "tests/support/fault.h"
#include "tests/support/scores.h"

/* An agent with nothing wrong: every factor is 1. */
static void add_good(scores *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        cx_score_row *row = scores_add(s, "a");
        row->agent_name = CX_STR("Datum");
        row->selected_action = CX_STR("SPEAK");
        row->csdma = row->dsdma = row->coherence = 1;
        row->entropy = 0.1;
        row->conscience_passed = row->action_success = CX_TRUE;
        row->overridden = CX_FALSE;
        row->has_audit_seq = true;
    }
}

static cx_capacity_input input_of(const scores *s)
{
    return (cx_capacity_input){.rows = s->rows,
                               .count = s->count,
                               .received_count = s->count,
                               .chain = CX_HOLDS,
                               .now_ns = SCORES_NOW};
}

static cx_capacity compute(scores *s, cx_capacity_input input)
{
    cx_capacity capacity = {.n = 0};
    CHECK_STATUS(cx_capacity_compute(&input, &s->arena, &capacity, &s->err), &s->err);
    return capacity;
}

static cx_capacity compute_all(scores *s)
{
    return compute(s, input_of(s));
}

static double input_value(const cx_capacity *capacity, const char *factor, const char *name)
{
    const cx_json *object = cx_json_get(&capacity->inputs, cx_str_z(factor));
    return object == NULL ? (double)NAN : scores_input(object, name);
}

CX_TEST(capacity_of_a_good_agent_is_one)
{
    scores s;
    scores_init(&s);
    add_good(&s, 20);
    cx_capacity capacity = compute_all(&s);
    CHECK_INT(capacity.n, 20);
    CHECK_INT(capacity.confidence, CX_CONFIDENCE_LOW);
    CHECK_NEAR(capacity.c, 1);
    CHECK_NEAR(capacity.i_int, 1);
    CHECK_NEAR(capacity.r, 1);
    CHECK(!capacity.r_known);
    CHECK_NEAR(capacity.i_inc, 1);
    CHECK_NEAR(capacity.s, 1);
    CHECK_NEAR(capacity.score, 1);
    CHECK_NEAR(capacity.fragility, 1 / 1.001);
    CHECK_STR(cx_str_z(capacity.category), "high_capacity");
    scores_done(&s);
}

CX_TEST(capacity_confidence_by_count)
{
    static const struct {
        unsigned count;
        cx_confidence confidence;
    } cases[] = {{0, CX_CONFIDENCE_INSUFFICIENT}, {9, CX_CONFIDENCE_INSUFFICIENT},
                 {10, CX_CONFIDENCE_LOW},         {29, CX_CONFIDENCE_LOW},
                 {30, CX_CONFIDENCE_MEDIUM},      {99, CX_CONFIDENCE_MEDIUM},
                 {100, CX_CONFIDENCE_HIGH}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s;
        scores_init(&s);
        add_good(&s, cases[i].count);
        CHECK_INT(compute_all(&s).confidence, cases[i].confidence);
        scores_done(&s);
    }
}

/* Only what the agent did to the world: pondering does not count. */
CX_TEST(capacity_counts_four_actions)
{
    static const char *const actions[] = {"SPEAK", "TOOL",  "MEMORIZE", "FORGET", "PONDER",
                                          "DEFER", "speak", "RECALL",   "",       NULL};
    scores s;
    scores_init(&s);
    add_good(&s, 10);
    for (size_t i = 0; i < 10; i++) {
        s.rows[i].selected_action = actions[i] == NULL ? (cx_str){NULL, 0} : cx_str_z(actions[i]);
        s.rows[i].overridden = i < 4 ? CX_FALSE : CX_TRUE;
    }
    cx_capacity capacity = compute_all(&s);
    CHECK_INT(capacity.n, 4);
    CHECK_NEAR(capacity.c, 1);
    scores_done(&s);
}

CX_TEST(capacity_c_of_names_and_overrides)
{
    scores s;
    scores_init(&s);
    add_good(&s, 20);
    s.rows[3].agent_name = CX_STR("Other");
    s.rows[9].agent_name = CX_STR("Other");
    s.rows[5].agent_name = CX_STR("Third");
    s.rows[6].agent_name = (cx_str){NULL, 0}; /* no name is no other name */
    CHECK_NEAR(compute_all(&s).c, exp(-5 * 2 / 20.0));
    s.rows[0].overridden = CX_TRUE;
    s.rows[1].overridden = CX_NULL;
    cx_capacity capacity = compute_all(&s);
    CHECK_NEAR(capacity.c, exp(-5 * 2 / 20.0) * exp(-10 / 20.0));
    CHECK_NEAR(input_value(&capacity, "c", "agent_names"), 3);
    CHECK_NEAR(input_value(&capacity, "c", "overridden"), 1);
    scores_done(&s);
}

CX_TEST(capacity_integrity)
{
    scores s;
    scores_init(&s);
    add_good(&s, 20);
    cx_capacity_input input = input_of(&s);
    input.received_count = 40;
    CHECK_NEAR(compute(&s, input).i_int, 0.5);
    for (size_t i = 0; i < 20; i++) { /* four of the ten columns, in half of the rows */
        if (i % 2 == 0)
            continue;
        s.rows[i].csdma = s.rows[i].dsdma = NAN;
        s.rows[i].conscience_passed = CX_NULL;
        s.rows[i].has_audit_seq = false;
    }
    CHECK_NEAR(compute(&s, input).i_int, 0.5 * 0.8);
    input.chain = CX_INDETERMINATE;
    CHECK_NEAR(compute(&s, input).i_int, 0.5 * 0.8);
    input.received_count = 1000;
    CHECK_NEAR(compute(&s, input).i_int, 0.1); /* at least */
    input.chain = CX_BROKEN;
    cx_capacity capacity = compute(&s, input);
    CHECK(capacity.i_int == 0); /* but for a broken chain */
    CHECK(capacity.score == 0);
    CHECK_NEAR(capacity.fragility, 1000);
    CHECK_STR(cx_str_z(capacity.category), "high_fragility");
    scores_done(&s);
}

/* A score of 0 is there; an absent one is not. */
CX_TEST(capacity_zero_is_a_value)
{
    scores s;
    scores_init(&s);
    add_good(&s, 10);
    for (size_t i = 0; i < 10; i++)
        s.rows[i].csdma = s.rows[i].dsdma = 0;
    CHECK_NEAR(compute_all(&s).i_int, 1);
    scores_done(&s);
}

CX_TEST(capacity_resilience)
{
    static const struct {
        double now, before;
        unsigned baseline;
        double r;
    } cases[] = {{0.5, 0.5, 20, 1},
                 {0.5, 0.549, 20, 1},
                 {0.5, 0.6, 20, 0.5},
                 {0.6, 0.5, 20, 0.5},
                 {0.5, 0.65001, 20, 0},
                 {0.5, 0.6, 19, 1 - 0.5 * 0.75},
                 {0.5, 0.6, 10, 1 - 0.5 * 0.75},
                 {0.5, 0.6, 9, 0.75},
                 {0.5, 0.9, 9, 0.5},
                 {0.5, 0.9, 10, 0.25},
                 {0.5, 0.9, 20, 0}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s, before;
        scores_init(&s);
        scores_init(&before);
        add_good(&s, 10);
        add_good(&before, cases[i].baseline);
        for (size_t k = 0; k < 10; k++)
            s.rows[k].csdma = cases[i].now;
        for (size_t k = 0; k < before.count; k++)
            before.rows[k].csdma = cases[i].before;
        cx_capacity_input input = input_of(&s);
        input.baseline = before.rows;
        input.baseline_count = before.count;
        cx_capacity capacity = compute(&s, input);
        CHECK(capacity.r_known);
        CHECK_NEAR(capacity.r, cases[i].r);
        CHECK_NEAR(input_value(&capacity, "r", "baseline_traces"), cases[i].baseline);
        scores_done(&before);
        scores_done(&s);
    }
}

CX_TEST(capacity_resilience_without_scores_is_unknown)
{
    scores s, before;
    scores_init(&s);
    scores_init(&before);
    add_good(&s, 10);
    add_good(&before, 30);
    for (size_t i = 0; i < 30; i++)
        before.rows[i].csdma = NAN;
    cx_capacity_input input = input_of(&s);
    input.baseline = before.rows;
    input.baseline_count = before.count;
    cx_capacity capacity = compute(&s, input);
    CHECK(!capacity.r_known);
    CHECK_NEAR(capacity.r, 1);
    scores_done(&before);
    scores_done(&s);
}

CX_TEST(capacity_calibration)
{
    scores s;
    scores_init(&s);
    add_good(&s, 20);
    CHECK_NEAR(compute_all(&s).i_inc, 1); /* an error of 0 is 0, not absent */
    for (size_t i = 0; i < 20; i++) {
        s.rows[i].csdma = i < 10 ? 0.25 : 0.95;
        s.rows[i].action_success = i % 2 == 0 ? CX_TRUE : CX_FALSE;
    }
    cx_capacity capacity = compute_all(&s);
    CHECK_NEAR(input_value(&capacity, "i_inc", "ece"), 0.5 * 0.25 + 0.5 * 0.45);
    CHECK_NEAR(capacity.i_inc, 1 - 0.35);
    for (size_t i = 0; i < 10; i++)
        s.rows[i].action_success = CX_NULL; /* left out, not failed */
    capacity = compute_all(&s);
    CHECK_NEAR(input_value(&capacity, "i_inc", "ece"), 0.45);
    CHECK_NEAR(input_value(&capacity, "i_inc", "calibrated_traces"), 10);
    scores_done(&s);
}

/* Buckets are [0, 0.1) .. [0.9, 1.0]: scores of one bucket are averaged, others are not. */
CX_TEST(capacity_calibration_buckets)
{
    static const struct {
        double low, high;
        double error; /* the lower fails, the higher succeeds */
    } cases[] = {
        {0.5, 0.59375, 0.5 - 0.546875 + 0.09375}, /* one bucket: |0.546875 - 0.5| */
        {0.5, 0.625, (0.5 + 0.375) / 2},          /* two */
        {0.9375, 1.0, 0.96875 - 0.5},             /* 1.0 is in the last */
        {0.875, 1.0, (0.875 + 0) / 2},
        {0, 0.0625, 0.5 - 0.03125},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s;
        scores_init(&s);
        add_good(&s, 20);
        for (size_t k = 0; k < 20; k++) {
            s.rows[k].csdma = k % 2 == 0 ? cases[i].low : cases[i].high;
            s.rows[k].action_success = k % 2 == 0 ? CX_FALSE : CX_TRUE;
        }
        cx_capacity capacity = compute_all(&s);
        CHECK_NEAR(input_value(&capacity, "i_inc", "ece"), cases[i].error);
        scores_done(&s);
    }
}

/* Without data the error is taken as a tenth. */
CX_TEST(capacity_calibration_unknown)
{
    scores s;
    scores_init(&s);
    add_good(&s, 20);
    for (size_t i = 0; i < 20; i++)
        s.rows[i].csdma = NAN;
    cx_capacity capacity = compute_all(&s);
    CHECK_NEAR(capacity.i_inc, 0.9);
    CHECK(isnan(input_value(&capacity, "i_inc", "ece")));
    s.rows[0].entropy = s.rows[1].entropy = 0.51;
    s.rows[0].action_success = s.rows[1].action_success = CX_FALSE;
    CHECK_NEAR(compute_all(&s).i_inc, 0.9 * 0.9);
    scores_done(&s);
}

CX_TEST(capacity_uncertain_failures)
{
    scores s;
    scores_init(&s);
    add_good(&s, 20);
    s.rows[0].entropy = 0.5; /* not above */
    s.rows[0].action_success = CX_FALSE;
    s.rows[1].entropy = 0.6; /* above, and it went well */
    s.rows[2].entropy = 0.6;
    s.rows[2].action_success = CX_NULL;
    s.rows[3].entropy = NAN;
    s.rows[3].action_success = CX_FALSE;
    s.rows[4].entropy = 0.6;
    s.rows[4].action_success = CX_FALSE;
    cx_capacity capacity = compute_all(&s);
    CHECK_NEAR(input_value(&capacity, "i_inc", "uncertain_failures"), 1);
    CHECK_NEAR(input_value(&capacity, "i_inc", "u"), 1 / 20.0);
    scores_done(&s);
}

CX_TEST(capacity_coherence_fades)
{
    scores s;
    scores_init(&s);
    add_good(&s, 10);
    for (size_t i = 0; i < 10; i++) {
        s.rows[i].coherence = i < 5 ? 0.8 : 0.2;
        s.rows[i].timestamp_ns = SCORES_NOW - (i < 5 ? 20 : 10) * SCORES_DAY;
    }
    CHECK_NEAR(compute_all(&s).s, (0.8 * exp(-1) + 0.2 * exp(-0.5)) / (exp(-1) + exp(-0.5)));
    for (size_t i = 0; i < 5; i++)
        s.rows[i].coherence = NAN;
    CHECK_NEAR(compute_all(&s).s, 0.2);
    for (size_t i = 0; i < 10; i++)
        s.rows[i].coherence = NAN;
    CHECK_NEAR(compute_all(&s).s, 0.5);
    for (size_t i = 0; i < 10; i++)
        s.rows[i].coherence = 0;
    CHECK_NEAR(compute_all(&s).s, 0);
    scores_done(&s);
}

CX_TEST(capacity_coherence_is_raised_by_moments_and_faculties)
{
    scores s;
    scores_init(&s);
    add_good(&s, 10);
    for (size_t i = 0; i < 10; i++) {
        cx_score_row *row = &s.rows[i];
        row->coherence = 0.5;
        row->has_positive_moment = i < 4 ? CX_TRUE : i < 8 ? CX_FALSE : CX_NULL;
        row->entropy_passed = row->coherence_passed = row->veto_passed = CX_TRUE;
        row->humility_passed = i < 2 ? CX_TRUE : i < 6 ? CX_FALSE : CX_NULL;
    }
    CHECK_NEAR(compute_all(&s).s, 0.5 * (1 + 0.15 * 0.4) * (1 + 0.10 * 0.2));
    for (size_t i = 0; i < 10; i++) {
        s.rows[i].coherence = 0.95;
        s.rows[i].has_positive_moment = CX_TRUE;
    }
    CHECK_NEAR(compute_all(&s).s, 1); /* never above */
    scores_done(&s);
}

/* Whatever an agent sends, a factor is in [0, 1]. */
CX_TEST(capacity_of_absurd_scores_stays_in_range)
{
    static const double absurd[] = {-5, 7, 1e300, -1e300};
    for (size_t i = 0; i < CX_COUNT_OF(absurd); i++) {
        scores s;
        scores_init(&s);
        add_good(&s, 12);
        for (size_t k = 0; k < s.count; k++) {
            s.rows[k].csdma = k % 3 == 0 ? -absurd[i] : absurd[i];
            s.rows[k].coherence = absurd[i];
        }
        cx_capacity capacity = compute_all(&s);
        const double factors[] = {capacity.c,     capacity.i_int, capacity.r,
                                  capacity.i_inc, capacity.s,     capacity.score};
        for (size_t k = 0; k < CX_COUNT_OF(factors); k++)
            CHECK(factors[k] >= 0 && factors[k] <= 1);
        scores_done(&s);
    }
}

/* The score is the product, and the classes end where §12 says. */
CX_TEST(capacity_classes)
{
    static const struct {
        double coherence;
        const char *category;
    } cases[] = {{0.2999, "high_fragility"}, {0.3001, "moderate"}, {0.5999, "moderate"},
                 {0.6001, "healthy"},        {0.8499, "healthy"},  {0.8501, "high_capacity"}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s;
        scores_init(&s);
        add_good(&s, 10);
        for (size_t k = 0; k < 10; k++)
            s.rows[k].coherence = cases[i].coherence;
        cx_capacity capacity = compute_all(&s);
        CHECK_NEAR(capacity.score, cases[i].coherence);
        CHECK_NEAR(capacity.fragility, 1 / (0.001 + cases[i].coherence));
        CHECK_STR(cx_str_z(capacity.category), cases[i].category);
        scores_done(&s);
    }
}

/* --- reports ---------------------------------------------------------------------------------- */

CX_TEST(capacity_reports_every_factor_with_its_inputs)
{
    scores s;
    cx_buf text;
    cx_json value;
    scores_init(&s);
    cx_buf_init(&text, cx_alloc_default());
    add_good(&s, 9);
    cx_capacity capacity = compute_all(&s);
    CHECK_STATUS(cx_capacity_json(&text, CX_STR("a"), &capacity, &s.err), &s.err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&text), &s.arena, &value, &s.err), &s.err);
    CHECK_STR(CX_JSON_GET_STR(&value, "confidence"), "insufficient");
    static const char *const none[] = {"score", "fragility", "category"};
    for (size_t i = 0; i < CX_COUNT_OF(none); i++) {
        const cx_json *member = cx_json_get(&value, cx_str_z(none[i]));
        CHECK(member != NULL && member->type == CX_JSON_NULL);
    }
    const cx_json *factors = CX_JSON_GET(&value, "factors");
    static const char *const names[] = {"c", "i_int", "r", "i_inc", "s"};
    for (size_t i = 0; i < CX_COUNT_OF(names); i++) {
        const cx_json *factor = cx_json_get(factors, cx_str_z(names[i]));
        const cx_json *inputs = cx_json_get(CX_JSON_GET(&value, "inputs"), cx_str_z(names[i]));
        REQUIRE(factor != NULL && inputs != NULL);
        CHECK_INT(factor->type == CX_JSON_NULL, i == 2); /* R is unknown, and says so */
        CHECK_NEAR(scores_input(inputs, "value"), 1);
    }
    cx_buf_done(&text);
    scores_done(&s);
}

CX_TEST(capacity_without_memory_is_an_error)
{
    scores s;
    scores_init(&s);
    add_good(&s, 50);
    for (uint64_t at = 1;; at++) {
        fault_alloc memory;
        cx_arena arena;
        cx_capacity capacity;
        cx_capacity_input input = input_of(&s);
        fault_alloc_init(&memory, at, true);
        cx_arena_init(&arena, &memory.alloc, 0);
        bool failed = cx_failed(cx_capacity_compute(&input, &arena, &capacity, &s.err));
        cx_arena_done(&arena);
        CHECK_INT(atomic_load(&memory.live_bytes), 0);
        CHECK_INT(failed, atomic_load(&memory.fired) != 0);
        if (!failed || at > 100)
            break;
        CHECK_INT(s.err.code, CX_E_NOMEM);
    }
    scores_done(&s);
}
