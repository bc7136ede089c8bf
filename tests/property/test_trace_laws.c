/*
 * test_trace_laws.c - what no random fleet may change: the order rows come in, the unit scores are
 * in, and another agent's rows in another domain.
 */
#include "tests/support/scores.h"

static double uniform(uint64_t *random)
{
    return (double)(cx_test_random(random) >> 11) / 9007199254740992.0;
}

static int8_t any_flag(uint64_t *random)
{
    return (int8_t)((int)(cx_test_random(random) % 3) - 1);
}

/* Agents of two domains and of none; some stand out, some drift, some waver. */
static void add_fleet(scores *s, uint64_t *random)
{
    static const char *const agents[] = {"a", "b", "c", "d", "e", "f"};
    static const char *const actions[] = {"SPEAK", "TOOL", "PONDER", "DEFER", "FORGET"};
    static const char *const domains[] = {"m", "n", NULL};
    size_t domain_count = 1 + cx_test_random(random) % CX_COUNT_OF(domains);
    for (size_t a = 0; a < CX_COUNT_OF(agents); a++) {
        double around = uniform(random) < 0.3 ? 0.9 : 0.5, spread = uniform(random) * 0.6;
        size_t action_count = 1 + cx_test_random(random) % CX_COUNT_OF(actions);
        for (unsigned i = 0; i < 60; i++) {
            cx_score_row *row = scores_add(s, agents[a]);
            const char *domain = domains[cx_test_random(random) % domain_count];
            row->domain = domain == NULL ? (cx_str){NULL, 0} : cx_str_z(domain);
            row->selected_action = cx_str_z(actions[cx_test_random(random) % action_count]);
            row->agent_name = cx_str_z(agents[cx_test_random(random) % 2]);
            row->timestamp_ns -= (int64_t)(uniform(random) * 8 * (double)SCORES_DAY);
            row->csdma = uniform(random) < 0.1 ? (double)NAN : around + spread * uniform(random);
            row->dsdma = around + 0.1 * uniform(random);
            row->coherence = spread * uniform(random);
            row->entropy = uniform(random);
            row->k_eff = 3 * uniform(random);
            row->overridden = uniform(random) < 0.1 * (double)a ? CX_TRUE : any_flag(random);
            row->action_success = any_flag(random);
            row->entropy_passed = any_flag(random);
        }
    }
}

static void shuffle(scores *s, uint64_t *random)
{
    for (size_t i = s->count; i > 1; i--) {
        size_t other = cx_test_random(random) % i;
        cx_score_row moved = s->rows[i - 1];
        s->rows[i - 1] = s->rows[other];
        s->rows[other] = moved;
    }
}

static scores_detector *const detectors[] = {cx_detect_cross_agent, cx_detect_intra_agent,
                                             cx_detect_drift, cx_detect_override};

/* All alerts of all detectors, as JSON. */
static size_t tell(scores *s, cx_buf *out)
{
    size_t count = 0;
    cx_buf_clear(out);
    for (size_t i = 0; i < CX_COUNT_OF(detectors); i++) {
        count += scores_detect(s, detectors[i]);
        for (size_t k = 0; k < s->alerts.count; k++) {
            cx_json value;
            CHECK_STATUS(cx_alert_json(&s->alerts.items[k], &s->arena, &value, &s->err), &s->err);
            CHECK_STATUS(cx_json_write(out, &value, CX_JSON_PY_COMPACT, &s->err), &s->err);
            cx_buf_add_byte(out, '\n');
        }
    }
    return count;
}

CX_TEST(detectors_do_not_see_the_order_of_rows)
{
    uint64_t random = cx_test_seed();
    size_t alerts = 0;
    for (unsigned round = 0; round < 20; round++) {
        scores s;
        cx_buf before, after;
        scores_init(&s);
        cx_buf_init(&before, cx_alloc_default());
        cx_buf_init(&after, cx_alloc_default());
        add_fleet(&s, &random);
        alerts += tell(&s, &before);
        for (unsigned again = 0; again < 3; again++) {
            shuffle(&s, &random);
            (void)tell(&s, &after);
            CHECK(cx_str_eq(cx_buf_str(&before), cx_buf_str(&after))); /* byte for byte */
        }
        cx_buf_done(&after);
        cx_buf_done(&before);
        scores_done(&s);
    }
    CHECK(alerts > 20); /* or nothing was compared */
}

/* Each alert once: no two share their id, or the second would never be written. */
CX_TEST(detectors_give_each_alert_an_id_of_its_own)
{
    uint64_t random = cx_test_seed() + 1;
    for (unsigned round = 0; round < 10; round++) {
        scores s;
        cx_json ids[SCORES_MAX];
        size_t count = 0;
        scores_init(&s);
        add_fleet(&s, &random);
        for (size_t i = 0; i < CX_COUNT_OF(detectors); i++) {
            (void)scores_detect(&s, detectors[i]);
            for (size_t k = 0; k < s.alerts.count && count < SCORES_MAX; k++)
                CHECK_STATUS(cx_alert_json(&s.alerts.items[k], &s.arena, &ids[count++], &s.err),
                             &s.err);
        }
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < i; k++)
                CHECK(!cx_str_eq(CX_JSON_GET_STR(&ids[i], "alert_id"),
                                 CX_JSON_GET_STR(&ids[k], "alert_id")));
        scores_done(&s);
    }
}

/* z is a ratio: scores in halves (which rounds nothing) give the same alerts. */
CX_TEST(cross_agent_is_the_same_in_another_unit)
{
    uint64_t random = cx_test_seed() + 2;
    size_t alerts = 0;
    for (unsigned round = 0; round < 20; round++) {
        scores s;
        scores_init(&s);
        add_fleet(&s, &random);
        size_t count = scores_detect(&s, cx_detect_cross_agent);
        cx_alerts before = s.alerts;
        for (size_t i = 0; i < s.count; i++) {
            s.rows[i].csdma *= 0.5;
            s.rows[i].dsdma *= 0.5;
            s.rows[i].coherence *= 0.5;
        }
        alerts += count;
        CHECK_INT(scores_detect(&s, cx_detect_cross_agent), count);
        for (size_t i = 0; i < count && i < s.alerts.count; i++) {
            const cx_alert *x = &before.items[i], *y = &s.alerts.items[i];
            CHECK(cx_str_eq(x->agent, y->agent) && cx_str_eq(x->metric, y->metric));
            CHECK(x->value * 0.5 == y->value && x->deviation == y->deviation);
            CHECK_INT(x->critical, y->critical);
            CHECK_INT(x->evidence_count, y->evidence_count);
            for (size_t k = 0; k < x->evidence_count && k < y->evidence_count; k++)
                CHECK(cx_str_eq(x->evidence[k], y->evidence[k]));
        }
        scores_done(&s);
    }
    CHECK(alerts > 10);
}

/* What happens in one domain says nothing of another: alerts of a part are those of the whole. */
CX_TEST(cross_agent_and_override_stay_in_their_domain)
{
    static scores_detector *const of_domains[] = {cx_detect_cross_agent, cx_detect_override};
    uint64_t random = cx_test_seed() + 3;
    for (unsigned round = 0; round < 20; round++) {
        scores s, part;
        scores_init(&s);
        scores_init(&part);
        add_fleet(&s, &random);
        for (size_t i = 0; i < s.count; i++)
            if (s.rows[i].domain.data == NULL)
                part.rows[part.count++] = s.rows[i];
        for (size_t i = 0; i < CX_COUNT_OF(of_domains); i++) {
            size_t first = 0, count = scores_detect(&part, of_domains[i]);
            (void)scores_detect(&s, of_domains[i]);
            while (first < s.alerts.count && s.alerts.items[first].domain.data == NULL)
                first++; /* they come first */
            CHECK_INT(first, count);
            for (size_t k = 0; k < count && k < first; k++) {
                CHECK(cx_str_eq(s.alerts.items[k].agent, part.alerts.items[k].agent));
                CHECK(s.alerts.items[k].value == part.alerts.items[k].value);
                CHECK(s.alerts.items[k].baseline == part.alerts.items[k].baseline);
            }
        }
        scores_done(&part);
        scores_done(&s);
    }
}

/* Standardised columns: N_eff has no unit, and does not see the order of rows. */
CX_TEST(n_eff_has_no_unit)
{
    uint64_t random = cx_test_seed() + 4;
    for (unsigned round = 0; round < 20; round++) {
        scores s;
        cx_n_eff before, after;
        scores_init(&s);
        add_fleet(&s, &random);
        CHECK_STATUS(cx_n_eff_compute(s.rows, s.count, &s.arena, &before, &s.err), &s.err);
        for (size_t i = 0; i < s.count; i++) {
            s.rows[i].csdma = 1000 * s.rows[i].csdma - 7;
            s.rows[i].k_eff = -0.125 * s.rows[i].k_eff;
            s.rows[i].entropy = 3 + s.rows[i].entropy;
        }
        shuffle(&s, &random);
        CHECK_STATUS(cx_n_eff_compute(s.rows, s.count, &s.arena, &after, &s.err), &s.err);
        REQUIRE(before.enough && after.enough);
        CHECK_INT(after.columns_used, before.columns_used);
        CHECK_NEAR(after.participation, before.participation);
        CHECK_NEAR(after.entropy, before.entropy);
        scores_done(&s);
    }
}

CX_TEST(capacity_does_not_see_the_order_of_rows)
{
    uint64_t random = cx_test_seed() + 5;
    for (unsigned round = 0; round < 20; round++) {
        scores s;
        cx_capacity before, after;
        scores_init(&s);
        add_fleet(&s, &random);
        cx_capacity_input input = {.rows = s.rows,
                                   .count = s.count / 2,
                                   .baseline = s.rows + s.count / 2,
                                   .baseline_count = s.count / 2,
                                   .received_count = s.count,
                                   .chain = CX_HOLDS,
                                   .now_ns = SCORES_NOW};
        CHECK_STATUS(cx_capacity_compute(&input, &s.arena, &before, &s.err), &s.err);
        s.count /= 2;
        shuffle(&s, &random);
        CHECK_STATUS(cx_capacity_compute(&input, &s.arena, &after, &s.err), &s.err);
        CHECK(before.n > 0);
        CHECK_INT(after.n, before.n);
        CHECK_NEAR(after.score, before.score);
        CHECK_NEAR(after.i_inc, before.i_inc);
        CHECK_NEAR(after.s, before.s);
        scores_done(&s);
    }
}
