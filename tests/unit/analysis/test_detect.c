/*
 * test_detect.c - the five detectors at their thresholds and minima (trace.md §12), and alerts as
 * they are written down.
 */
#include "tests/support/fault.h"
#include "tests/support/scores.h"

/* `count` rows with one csdma. */
static void add_scores(scores *s, const char *agent, unsigned count, double csdma)
{
    for (unsigned i = 0; i < count; i++)
        scores_add(s, agent)->csdma = csdma;
}

/* How many alerts name one agent; the last of them, for looking at. */
static size_t alerts_of(scores *s, scores_detector *detector, const char *agent,
                        const cx_alert **out)
{
    size_t count = 0;
    (void)scores_detect(s, detector);
    for (size_t i = 0; i < s->alerts.count; i++)
        if (cx_str_is(s->alerts.items[i].agent, agent)) {
            *out = &s->alerts.items[i];
            count++;
        }
    return count;
}

static cx_str ids(scores *s, const cx_alert *alert)
{
    cx_str text = CX_STR("");
    for (size_t i = 0; i < alert->evidence_count; i++)
        text =
            cx_arena_printf(&s->arena, "%.*s%s%.*s", (int)text.size, text.data, i == 0 ? "" : " ",
                            (int)alert->evidence[i].size, alert->evidence[i].data);
    return text;
}

/* --- the table -------------------------------------------------------------------------------- */

CX_TEST(every_detector_has_its_row)
{
    for (cx_mechanism m = 0; m < CX_DETECT_COUNT; m++) {
        const cx_detector *detector = &cx_detectors[m];
        CHECK(detector->name != NULL && detector->name[0] != '\0');
        CHECK(detector->title != NULL && detector->title[0] != '\0');
        CHECK(strcmp(detector->name, cx_mechanism_name(m)) == 0);
        CHECK((detector->detect == NULL) == (detector->days == 0));
        CHECK(detector->critical >= detector->warning);
        for (cx_mechanism other = 0; other < m; other++)
            CHECK(strcmp(detector->name, cx_detectors[other].name) != 0);
    }
}

/* --- cross_agent_divergence ------------------------------------------------------------------- */

/* Others at 0.4, 0.5, 0.6: mean 0.5, sample deviation 0.1. */
static void add_fleet(scores *s, unsigned traces, double odd)
{
    add_scores(s, "b", traces, 0.4);
    add_scores(s, "c", traces, 0.5);
    add_scores(s, "d", traces, 0.6);
    add_scores(s, "a", traces, odd);
}

CX_TEST(cross_agent_is_measured_against_the_others)
{
    scores s;
    scores_init(&s);
    add_fleet(&s, 10, 0.75);
    REQUIRE(scores_detect(&s, cx_detect_cross_agent) == 1);
    const cx_alert *alert = &s.alerts.items[0];
    CHECK_STR(alert->agent, "a");
    CHECK(alert->domain.data == NULL);
    CHECK_STR(alert->metric, "csdma");
    CHECK_NEAR(alert->value, 0.75);
    CHECK_NEAR(alert->baseline, 0.5);
    CHECK_NEAR(alert->deviation, 2.5);
    CHECK(!alert->critical);
    CHECK(alert->window_end_ns == SCORES_NOW);
    CHECK_NEAR(scores_input(&alert->inputs, "agents"), 4);
    CHECK_NEAR(scores_input(&alert->inputs, "traces"), 10);
    CHECK_NEAR(scores_input(&alert->inputs, "others_mean"), 0.5);
    CHECK_NEAR(scores_input(&alert->inputs, "others_deviation"), 0.1);
    scores_done(&s);
}

CX_TEST(cross_agent_thresholds)
{
    static const struct {
        double odd;
        int alerts, critical;
    } cases[] = {{0.6999, 0, 0}, {0.7001, 1, 0}, {0.7999, 1, 0},
                 {0.8001, 1, 1}, {0.3001, 0, 0}, {0.1999, 1, 1}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s;
        scores_init(&s);
        add_fleet(&s, 10, cases[i].odd);
        const cx_alert *alert = NULL;
        CHECK_INT(alerts_of(&s, cx_detect_cross_agent, "a", &alert), cases[i].alerts);
        if (alert != NULL)
            CHECK_INT(alert->critical, cases[i].critical);
        scores_done(&s);
    }
}

/* Exactly twice is not more than twice: scores are eighths, so that nothing is rounded. */
CX_TEST(cross_agent_exactly_two_deviations_is_none)
{
    scores s;
    scores_init(&s);
    add_scores(&s, "b", 10, 0.25);
    add_scores(&s, "c", 10, 0.375);
    add_scores(&s, "d", 10, 0.5);
    add_scores(&s, "a", 10, 0.625);
    const cx_alert *alert = NULL;
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 0);
    for (size_t i = 30; i < 40; i++)
        s.rows[i].csdma = nextafter(0.625, 1);
    CHECK_INT(alerts_of(&s, cx_detect_cross_agent, "a", &alert), 1);
    scores_done(&s);
}

CX_TEST(cross_agent_minima)
{
    scores s;
    scores_init(&s);
    add_fleet(&s, 10, 0.9);
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 1);
    s.rows[35].csdma = NAN; /* nine values are too few, and three agents */
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 0);
    s.rows[35].csdma = 0.9;
    s.rows[5].csdma = NAN; /* also of another */
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 0);
    s.rows[5].csdma = 0; /* zero is a value */
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 1);
    scores_done(&s);
}

/* Others that do not differ at all have no deviation to count in. */
CX_TEST(cross_agent_others_alike)
{
    static const double odds[] = {0.59, 0.61, 0.39};
    for (size_t i = 0; i < CX_COUNT_OF(odds); i++) {
        scores s;
        scores_init(&s);
        add_scores(&s, "b", 10, 0.5);
        add_scores(&s, "c", 10, 0.5);
        add_scores(&s, "d", 10, 0.5);
        add_scores(&s, "a", 10, odds[i]);
        CHECK_INT(scores_detect(&s, cx_detect_cross_agent), i == 0 ? 0 : 1);
        if (s.alerts.count == 1) {
            CHECK(isnan(s.alerts.items[0].deviation));
            CHECK(!s.alerts.items[0].critical);
        }
        scores_done(&s);
    }
}

/* The same scores in another order have the same mean but for rounding, which is no divergence. */
CX_TEST(cross_agent_rounding_is_no_divergence)
{
    static const double values[10] = {0.1, 0.7, 0.3, 0.9, 0.2, 0.6, 0.8, 0.15, 0.35, 0.55};
    static const char *const agents[] = {"a", "b", "c", "d", "e"};
    scores s;
    scores_init(&s);
    for (unsigned a = 0; a < 5; a++)
        for (unsigned i = 0; i < 10; i++) /* 3 and 7 have no factor in common with 10 */
            scores_add(&s, agents[a])->csdma = values[(i * (a % 2 == 0 ? 3 : 7) + a) % 10];
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 0);
    scores_done(&s);
}

/* Domains are apart, and no domain is one; each score is judged for itself. */
CX_TEST(cross_agent_domains_and_metrics)
{
    scores s;
    scores_init(&s);
    add_fleet(&s, 10, 0.9);
    for (size_t i = 0; i < s.count; i++) {
        s.rows[i].domain = CX_STR("m");
        s.rows[i].dsdma = s.rows[i].csdma;
    }
    static const char *const agents[] = {"b", "c", "d", "a"};
    for (size_t i = 0; i < CX_COUNT_OF(agents); i++) /* without a domain: no agent stands out */
        add_scores(&s, agents[i], 10, i % 2 == 0 ? 0.4 : 0.6);
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 2);
    REQUIRE(s.alerts.count == 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK_STR(s.alerts.items[i].domain, "m");
        CHECK_NEAR(s.alerts.items[i].value, 0.9);
    }
    CHECK_STR(s.alerts.items[0].metric, "csdma");
    CHECK_STR(s.alerts.items[1].metric, "dsdma");
    for (size_t i = 0; i < 40; i++)
        s.rows[i].domain = (cx_str){NULL, 0}; /* all in one: csdma has twenty values of each */
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 2);
    REQUIRE(s.alerts.count == 2);
    CHECK(s.alerts.items[0].domain.data == NULL);
    CHECK_NEAR(s.alerts.items[0].value, 0.75);
    CHECK_NEAR(s.alerts.items[1].value, 0.9);
    scores_done(&s);
}

CX_TEST(cross_agent_window_is_seven_days)
{
    scores s;
    scores_init(&s);
    add_fleet(&s, 10, 0.9);
    s.rows[39].timestamp_ns = SCORES_NOW - 7 * SCORES_DAY;
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 1);
    s.rows[39].timestamp_ns--;
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 0);
    s.rows[39].timestamp_ns = SCORES_NOW; /* not yet */
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 0);
    s.rows[39].timestamp_ns = SCORES_NOW - 1;
    CHECK_INT(scores_detect(&s, cx_detect_cross_agent), 1);
    scores_done(&s);
}

CX_TEST(evidence_is_what_deviates_most_and_of_equals_the_earlier)
{
    scores s;
    scores_init(&s);
    add_fleet(&s, 12, 0.9);
    static const double values[12] = {0.9, 0.95, 0.9, 1.0, 0.9, 0.95, 0.9, 0.9, 0.9, 0.9, 0.85, 1};
    for (size_t i = 0; i < 12; i++)
        s.rows[36 + i].csdma = values[i];
    s.rows[46].csdma = 0.1; /* as far as a 0.9 on the other side would be, and less far than 1 */
    s.rows[44].timestamp_ns -= SCORES_HOUR; /* the earliest of those with 0.9 */
    REQUIRE(scores_detect(&s, cx_detect_cross_agent) == 1);
    CHECK_STR(ids(&s, &s.alerts.items[0]), "t039 t047 t037 t041 t044");
    scores_done(&s);
}

/* --- intra_agent_consistency ------------------------------------------------------------------ */

/* Rows whose csdma is 0.5 - half and 0.5 + half in turn, and whose actions go round. */
static void add_unsteady(scores *s, unsigned count, double half, unsigned actions)
{
    static const char *const names[] = {"SPEAK", "TOOL", "PONDER", "DEFER", "FORGET", "MEMORIZE"};
    for (unsigned i = 0; i < count; i++) {
        cx_score_row *row = scores_add(s, "a");
        row->csdma = i % 2 == 0 ? 0.5 - half : 0.5 + half;
        row->selected_action = cx_str_z(names[i % actions]);
    }
}

CX_TEST(intra_agent_needs_actions_and_spread)
{
    static const struct {
        unsigned count, actions;
        double half;
        int alerts, critical;
    } cases[] = {
        {6, 3, 0.2, 1, 0},  {6, 2, 0.2, 0, 0}, {6, 3, 0.13, 0, 0}, {6, 3, 0.14, 1, 0},
        {6, 4, 0.17, 1, 0}, {6, 4, 0.2, 1, 1}, {6, 6, 0.2, 1, 1},  {6, 3, 0.4, 1, 0},
        {4, 4, 0.4, 0, 0},  {5, 4, 0.4, 1, 1},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s;
        scores_init(&s);
        add_unsteady(&s, cases[i].count, cases[i].half, cases[i].actions);
        CHECK_INT(scores_detect(&s, cx_detect_intra_agent), cases[i].alerts);
        if (s.alerts.count == 1) {
            const cx_alert *alert = &s.alerts.items[0];
            CHECK_INT(alert->critical, cases[i].critical);
            CHECK_STR(alert->metric, "csdma:other");
            CHECK_NEAR(scores_input(&alert->inputs, "distinct_actions"), cases[i].actions);
            CHECK_NEAR(alert->baseline, 0.15);
        }
        scores_done(&s);
    }
}

/* n - 1: dividing by n would give 0.14 and miss it. */
CX_TEST(intra_agent_deviation_is_of_a_sample)
{
    scores s;
    scores_init(&s);
    add_unsteady(&s, 6, 0.14, 3);
    REQUIRE(scores_detect(&s, cx_detect_intra_agent) == 1);
    CHECK_NEAR(s.alerts.items[0].value, 0.14 * sqrt(6.0 / 5));
    scores_done(&s);
}

CX_TEST(intra_agent_groups_are_of_a_type)
{
    scores s;
    scores_init(&s);
    add_unsteady(&s, 12, 0.3, 3);
    for (size_t i = 0; i < 6; i++)
        s.rows[i].trace_type = CX_STR("VERIFY_IDENTITY");
    REQUIRE(scores_detect(&s, cx_detect_intra_agent) == 2);
    CHECK_STR(s.alerts.items[0].metric, "csdma:VERIFY_IDENTITY");
    CHECK_STR(s.alerts.items[1].metric, "csdma:other");
    for (size_t i = 0; i < 12; i++) /* a type of each action: no agent wavers */
        s.rows[i].trace_type = s.rows[i].selected_action;
    CHECK_INT(scores_detect(&s, cx_detect_intra_agent), 0);
    scores_done(&s);
}

/* I2 */
CX_TEST(intra_agent_absent_actions_and_scores_are_left_out)
{
    scores s;
    scores_init(&s);
    add_unsteady(&s, 6, 0.2, 3);
    s.rows[2].selected_action = s.rows[5].selected_action = (cx_str){NULL, 0};
    CHECK_INT(scores_detect(&s, cx_detect_intra_agent), 0); /* absent is no third action */
    scores_done(&s);
    scores_init(&s);
    add_unsteady(&s, 6, 0, 3);
    for (size_t i = 1; i < 6; i++)
        s.rows[i].csdma = NAN; /* read as 0 they would differ */
    CHECK_INT(scores_detect(&s, cx_detect_intra_agent), 0);
    s.rows[1].csdma = 1;
    CHECK_INT(scores_detect(&s, cx_detect_intra_agent), 1);
    scores_done(&s);
}

CX_TEST(intra_agent_window_is_thirty_days)
{
    scores s;
    scores_init(&s);
    add_unsteady(&s, 5, 0.4, 3);
    s.rows[0].timestamp_ns = SCORES_NOW - 30 * SCORES_DAY;
    CHECK_INT(scores_detect(&s, cx_detect_intra_agent), 1);
    s.rows[0].timestamp_ns--;
    CHECK_INT(scores_detect(&s, cx_detect_intra_agent), 0);
    scores_done(&s);
}

/* --- temporal_drift --------------------------------------------------------------------------- */

/* `count` values `days_ago` UTC days before that of now. */
static void add_day(scores *s, unsigned days_ago, unsigned count, double csdma)
{
    for (unsigned i = 0; i < count; i++) {
        cx_score_row *row = scores_add(s, "a");
        row->csdma = csdma;
        row->timestamp_ns = SCORES_NOW - days_ago * SCORES_DAY - i * (int64_t)1000000000;
    }
}

CX_TEST(drift_thresholds)
{
    static const struct {
        double to;
        int alerts, critical;
    } cases[] = {{0.6499, 0, 0}, {0.6501, 1, 0}, {0.7499, 1, 0},
                 {0.7501, 1, 1}, {0.3501, 0, 0}, {0.3499, 1, 0}};
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s;
        scores_init(&s);
        add_day(&s, 2, 5, 0.5);
        add_day(&s, 1, 5, cases[i].to);
        CHECK_INT(scores_detect(&s, cx_detect_drift), cases[i].alerts);
        if (s.alerts.count == 1) {
            CHECK_INT(s.alerts.items[0].critical, cases[i].critical);
            CHECK_NEAR(s.alerts.items[0].value, cases[i].to);
            CHECK_NEAR(s.alerts.items[0].baseline, 0.5);
        }
        scores_done(&s);
    }
}

/* Days with fewer than five values are none: the day before with data may be longer ago. */
CX_TEST(drift_is_from_the_last_day_with_data)
{
    scores s;
    scores_init(&s);
    add_day(&s, 9, 5, 0.5);
    add_day(&s, 5, 4, 0.1);
    add_day(&s, 2, 5, 0.5);
    CHECK_INT(scores_detect(&s, cx_detect_drift), 0);
    add_day(&s, 5, 1, 0.1);
    REQUIRE(scores_detect(&s, cx_detect_drift) == 2);
    CHECK(s.alerts.items[0].window_end_ns < s.alerts.items[1].window_end_ns);
    s.rows[5].csdma = NAN; /* four values again */
    CHECK_INT(scores_detect(&s, cx_detect_drift), 0);
    scores_done(&s);
}

/* Days are those of UTC: at midnight another begins. */
CX_TEST(drift_days_end_at_midnight)
{
    const int64_t midnight = SCORES_NOW / SCORES_DAY * SCORES_DAY;
    scores s;
    scores_init(&s);
    add_scores(&s, "a", 10, 0.5);
    for (size_t i = 0; i < 10; i++) {
        s.rows[i].timestamp_ns = i < 5 ? midnight - 1 : midnight;
        s.rows[i].csdma = i < 5 ? 0.2 : 0.8;
    }
    REQUIRE(scores_detect(&s, cx_detect_drift) == 1);
    CHECK(s.alerts.items[0].window_end_ns == midnight + SCORES_DAY - 1);
    for (size_t i = 0; i < 10; i++)
        s.rows[i].timestamp_ns++; /* now all are of one day */
    CHECK_INT(scores_detect(&s, cx_detect_drift), 0);
    scores_done(&s);
}

CX_TEST(drift_of_each_score_and_agent)
{
    scores s;
    scores_init(&s);
    add_day(&s, 2, 5, 0.5);
    add_day(&s, 1, 5, 0.5);
    for (size_t i = 0; i < 10; i++)
        s.rows[i].coherence = i < 5 ? 0.9 : 0;
    REQUIRE(scores_detect(&s, cx_detect_drift) == 1);
    CHECK_STR(s.alerts.items[0].metric, "coherence");
    CHECK(s.alerts.items[0].critical);
    CHECK_NEAR(s.alerts.items[0].value, 0); /* zero is a score */
    for (size_t i = 5; i < 10; i++)
        s.rows[i].agent = CX_STR("b");
    CHECK_INT(scores_detect(&s, cx_detect_drift), 0);
    scores_done(&s);
}

/* --- conscience_override ---------------------------------------------------------------------- */

static void add_overrides(scores *s, const char *agent, unsigned overridden, unsigned of)
{
    for (unsigned i = 0; i < of; i++)
        scores_add(s, agent)->overridden = i < overridden ? CX_TRUE : CX_FALSE;
}

CX_TEST(override_is_measured_against_the_others_pooled)
{
    static const struct {
        unsigned own, of, others, others_of;
        int alerts, critical;
    } cases[] = {
        {4, 20, 10, 100, 0, 0},                          /* exactly twice */
        {5, 20, 10, 100, 1, 0},                          /* 2.5 times */
        {6, 20, 10, 100, 1, 0},                          /* exactly three times */
        {7, 20, 10, 100, 1, 1},  {2, 20, 0, 100, 0, 0},  /* exactly a tenth, of nothing */
        {3, 20, 0, 100, 1, 0},   {20, 20, 0, 100, 1, 0}, /* nothing has no multiples */
        {14, 49, 7, 49, 0, 0},                           /* twice, which division would round */
        {19, 19, 10, 100, 0, 0},                         /* too few */
        {20, 20, 99, 100, 0, 0},
    };
    for (size_t i = 0; i < CX_COUNT_OF(cases); i++) {
        scores s;
        scores_init(&s);
        add_overrides(&s, "a", cases[i].own, cases[i].of);
        add_overrides(&s, "b", cases[i].others, cases[i].others_of - 10);
        add_overrides(&s, "c", 0, 10);
        const cx_alert *alert = NULL;
        int alerts = (int)alerts_of(&s, cx_detect_override, "a", &alert);
        if (alert != NULL) {
            CHECK_INT(alert->critical, cases[i].critical);
            CHECK_NEAR(alert->value, cases[i].own / (double)cases[i].of);
            CHECK_NEAR(alert->baseline, cases[i].others / (double)cases[i].others_of);
            CHECK_INT(isnan(alert->deviation), cases[i].others == 0);
            CHECK_NEAR(scores_input(&alert->inputs, "others_traces"), cases[i].others_of);
        }
        if (alerts != cases[i].alerts)
            cx_test_fail(__FILE__, __LINE__, "case %zu: %d alerts, expected %d", i, alerts,
                         cases[i].alerts);
        scores_done(&s);
    }
}

/* Of two agents none could exceed twice a mean that holds itself: here one does. */
CX_TEST(override_of_two_agents)
{
    scores s;
    scores_init(&s);
    add_overrides(&s, "a", 20, 20);
    add_overrides(&s, "b", 5, 20);
    REQUIRE(scores_detect(&s, cx_detect_override) == 1);
    CHECK_STR(s.alerts.items[0].agent, "a");
    CHECK(s.alerts.items[0].critical);
    CHECK_STR(ids(&s, &s.alerts.items[0]), "t019 t018 t017 t016 t015");
    scores_done(&s);
}

CX_TEST(override_needs_others_of_the_domain)
{
    scores s;
    scores_init(&s);
    add_overrides(&s, "a", 20, 20);
    CHECK_INT(scores_detect(&s, cx_detect_override), 0); /* alone there is nothing to compare */
    add_overrides(&s, "b", 0, 20);
    CHECK_INT(scores_detect(&s, cx_detect_override), 1);
    for (size_t i = 20; i < 40; i++)
        s.rows[i].domain = CX_STR("m");
    CHECK_INT(scores_detect(&s, cx_detect_override), 0);
    scores_done(&s);
}

CX_TEST(override_unknown_is_left_out)
{
    scores s;
    scores_init(&s);
    add_overrides(&s, "a", 10, 20);
    add_overrides(&s, "b", 1, 10);
    for (size_t i = 0; i < 10; i++)
        (void)scores_add(&s, "b"); /* read as `not overridden` they would halve the rate */
    REQUIRE(scores_detect(&s, cx_detect_override) == 1);
    CHECK_NEAR(s.alerts.items[0].baseline, 0.1);
    s.rows[19].overridden = CX_NULL;
    CHECK_INT(scores_detect(&s, cx_detect_override), 0); /* nineteen */
    scores_done(&s);
}

/* --- hash_chain ------------------------------------------------------------------------------- */

CX_TEST(chain_alert_only_when_broken)
{
    static const cx_chain_finding findings[] = {
        {.kind = CX_CHAIN_GAP, .seq = 1, .trace_id = {"x", 1}, .other_id = {"y", 1}},
        {.kind = CX_CHAIN_MISMATCH, .seq = 2, .trace_id = {"y", 1}},
        {.kind = CX_CHAIN_MISMATCH, .seq = 2, .trace_id = {"y", 1}},
        {.kind = CX_CHAIN_UNCHECKED, .seq = 3, .trace_id = {"z", 1}}};
    cx_chain_report report = {.verdict = CX_INDETERMINATE,
                              .findings = findings,
                              .finding_count = CX_COUNT_OF(findings),
                              .entry_count = 9};
    scores s;
    scores_init(&s);
    CHECK_STATUS(cx_detect_chain(CX_STR("a"), &report, SCORES_NOW, &s.arena, &s.alerts, &s.err),
                 &s.err);
    CHECK_INT(s.alerts.count, 0);
    report.verdict = CX_HOLDS;
    CHECK_STATUS(cx_detect_chain(CX_STR("a"), &report, SCORES_NOW, &s.arena, &s.alerts, &s.err),
                 &s.err);
    CHECK_INT(s.alerts.count, 0);
    report.verdict = CX_BROKEN;
    CHECK_STATUS(cx_detect_chain(CX_STR("a"), &report, SCORES_NOW, &s.arena, &s.alerts, &s.err),
                 &s.err);
    REQUIRE(s.alerts.count == 1);
    CHECK(s.alerts.items[0].critical);
    CHECK_STR(ids(&s, &s.alerts.items[0]), "x y");
    CHECK_NEAR(scores_input(&s.alerts.items[0].inputs, "mismatch"), 2);
    CHECK_NEAR(scores_input(&s.alerts.items[0].inputs, "entries"), 9);
    scores_done(&s);
}

/* --- alerts ----------------------------------------------------------------------------------- */

CX_TEST(alerts_come_by_domain_agent_metric)
{
    scores s;
    scores_init(&s);
    for (unsigned domain = 0; domain < 2; domain++)
        for (unsigned i = 0; i < 6; i++)
            for (unsigned k = 0; k < 10; k++) {
                static const char *const agents[] = {"b", "z", "c", "d", "a", "e"};
                cx_score_row *row = scores_add(&s, agents[i]);
                row->csdma = row->coherence = i == 1 ? 0 : i == 4 ? 1 : 0.5 + 0.01 * i;
                if (domain == 0)
                    row->domain = CX_STR("m");
            }
    size_t count = scores_detect(&s, cx_detect_cross_agent);
    CHECK(count >= 4);
    for (size_t i = 1; i < count; i++) {
        const cx_alert *x = &s.alerts.items[i - 1], *y = &s.alerts.items[i];
        int domain = (x->domain.data != NULL) - (y->domain.data != NULL);
        int agent = cx_str_cmp(x->agent, y->agent), metric = cx_str_cmp(x->metric, y->metric);
        CHECK(domain < 0 || (domain == 0 && (agent < 0 || (agent == 0 && metric < 0))));
    }
    scores_done(&s);
}

CX_TEST(alert_json_is_what_the_index_keeps)
{
    scores s;
    cx_json value;
    cx_buf text;
    scores_init(&s);
    cx_buf_init(&text, cx_alloc_default());
    add_overrides(&s, "a", 10, 20);
    add_overrides(&s, "b", 0, 25);
    REQUIRE(scores_detect(&s, cx_detect_override) == 1);
    CHECK_STATUS(cx_alert_json(&s.alerts.items[0], &s.arena, &value, &s.err), &s.err);
    CHECK_STATUS(cx_json_write(&text, &value, CX_JSON_PY_COMPACT, &s.err), &s.err);
    /* printf '["conscience_override","a",null,"override_rate","2026-01-07"]' | sha256sum */
    CHECK_STR(cx_buf_str(&text),
              "{\"agent_id_hash\":\"a\",\"alert_id\":\"bf0ae85319db08a3e073c983aedaf613\","
              "\"baseline\":0.0,\"detection_mechanism\":\"conscience_override\",\"deviation\":null,"
              "\"domain\":null,\"evidence_traces\":[\"t009\",\"t008\",\"t007\",\"t006\",\"t005\"],"
              "\"inputs\":{\"others_overridden\":0,\"others_traces\":25,\"overridden\":10,"
              "\"traces\":20},\"metric\":\"override_rate\",\"recommended_action\":\"Read what the "
              "conscience overrode, and why\",\"severity\":\"warning\",\"value\":0.5,"
              "\"window_end\":\"2026-01-07T12:00:00.000000000Z\"}");
    cx_buf_done(&text);
    scores_done(&s);
}

/* Once per mechanism, agent, domain, metric and day: the time of day makes no other alert. */
CX_TEST(alert_id_is_one_a_day)
{
    scores s;
    cx_json first, other;
    scores_init(&s);
    cx_alert alert = {.mechanism = CX_DETECT_TEMPORAL_DRIFT,
                      .agent = CX_STR("a"),
                      .metric = CX_STR("csdma"),
                      .value = 1,
                      .baseline = NAN,
                      .deviation = NAN,
                      .window_end_ns = SCORES_NOW,
                      .recommended_action = CX_STR("-"),
                      .inputs = cx_json_make_null()};
    CHECK_STATUS(cx_alert_json(&alert, &s.arena, &first, &s.err), &s.err);
    CHECK_INT(CX_JSON_GET_STR(&first, "alert_id").size, 32);
    for (unsigned change = 0; change < 7; change++) {
        cx_alert changed = alert;
        if (change == 0) {
            changed.window_end_ns += 11 * SCORES_HOUR;
            changed.value = 2;
            changed.critical = true;
        } else if (change == 1) {
            changed.window_end_ns += 12 * SCORES_HOUR;
        } else if (change == 2) {
            changed.agent = CX_STR("b");
        } else if (change == 3) {
            changed.domain = CX_STR("m");
        } else if (change == 4) {
            changed.metric = CX_STR("coherence");
        } else if (change == 5) {
            changed.domain = CX_STR(""); /* a domain without a name is not none */
        } else {
            changed.mechanism = CX_DETECT_HASH_CHAIN;
        }
        CHECK_STATUS(cx_alert_json(&changed, &s.arena, &other, &s.err), &s.err);
        CHECK_INT(
            cx_str_eq(CX_JSON_GET_STR(&first, "alert_id"), CX_JSON_GET_STR(&other, "alert_id")),
            change == 0);
    }
    scores_done(&s);
}

CX_TEST(detectors_of_nothing_find_nothing)
{
    static scores_detector *const all[] = {cx_detect_cross_agent, cx_detect_intra_agent,
                                           cx_detect_drift, cx_detect_override};
    scores s;
    scores_init(&s);
    for (size_t i = 0; i < CX_COUNT_OF(all); i++)
        CHECK_INT(scores_detect(&s, all[i]), 0);
    (void)scores_add(&s, "a"); /* and a row with nothing in it */
    for (size_t i = 0; i < CX_COUNT_OF(all); i++)
        CHECK_INT(scores_detect(&s, all[i]), 0);
    scores_done(&s);
}

/* An agent may send any number; none makes an alert of what is not comparable. */
CX_TEST(detectors_of_absurd_scores)
{
    static scores_detector *const all[] = {cx_detect_cross_agent, cx_detect_intra_agent,
                                           cx_detect_drift};
    scores s;
    scores_init(&s);
    add_fleet(&s, 10, 0.5);
    for (size_t i = 0; i < s.count; i++) {
        s.rows[i].dsdma = i % 3 == 0 ? 1.7e308 : -1.7e308;
        s.rows[i].coherence = i % 2 == 0 ? (double)INFINITY : (double)NAN;
        s.rows[i].timestamp_ns -= (int64_t)(i % 5) * SCORES_DAY;
        s.rows[i].selected_action = cx_arena_printf(&s.arena, "A%zu", i);
    }
    for (size_t i = 0; i < CX_COUNT_OF(all); i++) {
        (void)scores_detect(&s, all[i]);
        for (size_t k = 0; k < s.alerts.count; k++) {
            CHECK(!isnan(s.alerts.items[k].value));
            CHECK(!cx_str_is(s.alerts.items[k].metric, "coherence"));
        }
    }
    scores_done(&s);
}

/* The order of rows says nothing: any gives the same alerts, with the same evidence. */
/* I4 */
CX_TEST(detectors_of_rows_in_any_order)
{
    static scores_detector *const all[] = {cx_detect_cross_agent, cx_detect_intra_agent,
                                           cx_detect_drift, cx_detect_override};
    static const char *const actions[] = {"SPEAK", "TOOL", "DEFER", "PONDER"};
    uint64_t random = cx_test_seed();
    scores s;
    scores_init(&s);
    for (unsigned i = 0; i < 240; i++) {
        static const char *const agents[] = {"a", "b", "c", "d", "e", "f"};
        cx_score_row *row = scores_add(&s, agents[i % 6]);
        row->domain = i % 12 < 6 ? CX_STR("m") : (cx_str){NULL, 0};
        row->selected_action = cx_str_z(actions[cx_test_random(&random) % 4]);
        row->timestamp_ns -= (int64_t)(cx_test_random(&random) % 4) * SCORES_DAY;
        /* Of sixteenths every sum is exact, so that any order has the same mean. */
        row->csdma = (double)(cx_test_random(&random) % 17) / 16;
        row->coherence = i % 6 == 0 ? 0.125 : 0.5 + (double)(i % 5) / 16;
        row->overridden = i % 6 == 1 && i % 4 != 0 ? CX_TRUE : CX_FALSE;
    }
    for (size_t which = 0; which < CX_COUNT_OF(all); which++) {
        cx_str expected = {NULL, 0};
        for (unsigned round = 0; round < 20; round++) {
            for (size_t i = s.count - 1; i > 0; i--) {
                size_t other = (size_t)(cx_test_random(&random) % (i + 1));
                cx_score_row moved = s.rows[i];
                s.rows[i] = s.rows[other];
                s.rows[other] = moved;
            }
            cx_buf text;
            cx_buf_init(&text, cx_alloc_default());
            CHECK(scores_detect(&s, all[which]) != 0);
            for (size_t i = 0; i < s.alerts.count; i++) {
                cx_json value;
                CHECK_STATUS(cx_alert_json(&s.alerts.items[i], &s.arena, &value, &s.err), &s.err);
                CHECK_STATUS(cx_json_write(&text, &value, CX_JSON_PY_COMPACT, &s.err), &s.err);
            }
            if (round == 0)
                expected = cx_arena_copy_str(&s.arena, cx_buf_str(&text));
            else
                CHECK(cx_str_eq(cx_buf_str(&text), expected));
            cx_buf_done(&text);
        }
    }
    scores_done(&s);
}

/* The others of each of many agents, one by one: what a sum from both ends must come to. */
CX_TEST(cross_agent_others_of_many)
{
    static const char *const agents[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    static const double means[] = {0.5, 0.51, 0.02, 0.52, 0.49, 0.5, 0.97, 0.48, 0.5, 0.51};
    scores s;
    scores_init(&s);
    for (size_t i = 0; i < CX_COUNT_OF(agents); i++)
        add_scores(&s, agents[i], 10, means[i]);
    for (size_t i = 0; i < CX_COUNT_OF(agents); i++) {
        double sum = 0, squares = 0;
        for (size_t k = 0; k < CX_COUNT_OF(agents); k++)
            sum += k == i ? 0 : means[k];
        for (size_t k = 0; k < CX_COUNT_OF(agents); k++)
            squares += k == i ? 0 : (means[k] - sum / 9) * (means[k] - sum / 9);
        double z = fabs(means[i] - sum / 9) / sqrt(squares / 8);
        const cx_alert *alert = NULL;
        CHECK_INT(alerts_of(&s, cx_detect_cross_agent, agents[i], &alert), z > 2);
        if (alert != NULL) {
            CHECK_NEAR(alert->deviation, z);
            CHECK_INT(alert->critical, z > 3);
        }
    }
    CHECK_INT(s.alerts.count, 2);
    scores_done(&s);
}

/* Means that no double holds are no others: an agent is not measured against nothing. */
CX_TEST(cross_agent_others_without_a_mean)
{
    scores s;
    scores_init(&s);
    add_fleet(&s, 10, 0.9);
    for (size_t i = 0; i < 30; i++)
        s.rows[i].csdma = i % 2 == 0 ? 1.7e308 : -1.7e308;
    const cx_alert *alert = NULL;
    CHECK_INT(alerts_of(&s, cx_detect_cross_agent, "a", &alert), 0);
    scores_done(&s);
}

CX_TEST(detectors_without_memory_are_an_error)
{
    static scores_detector *const all[] = {cx_detect_cross_agent, cx_detect_intra_agent,
                                           cx_detect_drift, cx_detect_override};
    scores s;
    scores_init(&s);
    add_fleet(&s, 25, 0.95);
    for (size_t i = 0; i < s.count; i++) {
        static const char *const actions[] = {"SPEAK", "TOOL", "DEFER", "PONDER"};
        s.rows[i].selected_action = cx_str_z(actions[i % 4]);
        s.rows[i].overridden = i >= 90 ? CX_TRUE : CX_FALSE;
        s.rows[i].csdma += i % 2 == 0 ? 0.4 : 0;
        s.rows[i].timestamp_ns -= i % 2 == 0 ? SCORES_DAY : 0;
    }
    for (size_t i = 0; i < CX_COUNT_OF(all); i++) {
        for (uint64_t at = 1;; at++) {
            fault_alloc memory;
            cx_arena arena;
            cx_alerts alerts = {NULL, 0};
            fault_alloc_init(&memory, at, true);
            cx_arena_init(&arena, &memory.alloc, 0);
            cx_status status = all[i](s.rows, s.count, SCORES_NOW, &arena, &alerts, &s.err);
            bool failed = cx_failed(status);
            CHECK(failed || alerts.count != 0);
            cx_arena_done(&arena);
            CHECK_INT(atomic_load(&memory.live_bytes), 0);
            CHECK_INT(failed, atomic_load(&memory.fired) != 0);
            if (!failed || at > 100)
                break;
        }
    }
    scores_done(&s);
}
