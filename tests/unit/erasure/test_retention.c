/*
 * test_retention.c - rules of retention, and what they cover (erasure.md §5).
 */
#include "base/api.h"
#include "erasure/internal.h"
#include "tests/test.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

static bool parses(const char *text)
{
    cx_retention_rule rule;
    cx_err err;
    return !cx_failed(cx_retention_rule_parse(cx_str_z(text), &rule, &err));
}

CX_TEST(rules_have_a_kind_a_level_and_an_age)
{
    cx_retention_rule rule;
    cx_err err;
    CHECK_STATUS(cx_retention_rule_parse(CX_STR("trace.received/full_traces 30d"), &rule, &err),
                 &err);
    CHECK(cx_str_is(rule.kind, "trace.received") && rule.has_level);
    CHECK(rule.level == CX_LEVEL_FULL && rule.age_ns == 30 * DAY_NS);
    CHECK_STATUS(cx_retention_rule_parse(CX_STR("* never"), &rule, &err), &err);
    CHECK(!rule.has_level && rule.age_ns == INT64_MAX);
    CHECK(parses("session.* 1y") && parses("memory 12h") && parses("trace.*/generic 4w"));
    static const char *const wrong[] = {
        "",         "trace.received", "trace.received  30d",      "x.* 0d",    "x.* 30", "x.* 30x",
        "x.* 101y", "X 30d",          "trace.received/all 30d",   "x.*.y 30d", " 30d",   "x/ 30d",
        "x.* -1d",  "x.* 30d ",       "x.* 99999999999999999999d"};
    for (size_t i = 0; i < CX_COUNT_OF(wrong); i++)
        CHECK(!parses(wrong[i]));
}

CX_TEST(the_first_rule_that_covers_a_record_decides)
{
    static const char *const texts[] = {"trace.received/generic never", "trace.received 30d",
                                        "trace.* 60d"};
    cx_retention_rule rules[3];
    cx_err err;
    for (size_t i = 0; i < 3; i++)
        CHECK_STATUS(cx_retention_rule_parse(cx_str_z(texts[i]), &rules[i], &err), &err);
    const cx_erasure_filter filter = {
        .before_ns = CX_TIME_NONE, .rules = rules, .rule_count = 3, .now_ns = 100 * DAY_NS};
    cx_erasure_candidate candidate = {
        .kind = CX_STR("trace.received"), .has_level = true, .level = CX_LEVEL_GENERIC};
    CHECK(!cx_erasure_covers(&filter, &candidate));
    candidate.level = CX_LEVEL_FULL;
    CHECK(cx_erasure_covers(&filter, &candidate));
    candidate.last_ns = 70 * DAY_NS;
    CHECK(!cx_erasure_covers(&filter, &candidate));
    candidate.last_ns = 70 * DAY_NS - 1;
    CHECK(cx_erasure_covers(&filter, &candidate));
    candidate.kind = CX_STR("trace.batch");
    CHECK(!cx_erasure_covers(&filter, &candidate));
    candidate.last_ns = 40 * DAY_NS - 1;
    CHECK(cx_erasure_covers(&filter, &candidate));
    candidate.kind = CX_STR("session.codex");
    CHECK(!cx_erasure_covers(&filter, &candidate));
}
