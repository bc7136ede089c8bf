/*
 * scores.h - rows for the tests of detectors, capacity and N_eff: everything in them is absent but
 * what a test says.
 */
#ifndef CX_TESTS_UNIT_TRACE_SCORES_H
#define CX_TESTS_UNIT_TRACE_SCORES_H

#include <math.h>

#include "tests/test.h"
#include "analysis/detect.h"

#define SCORES_DAY (INT64_C(86400) * 1000000000)
#define SCORES_HOUR (SCORES_DAY / 24)
#define SCORES_NOW (INT64_C(20460) * SCORES_DAY + 12 * SCORES_HOUR) /* 2026-01-07, at noon */
#define SCORES_MAX 512

typedef struct scores {
    cx_arena arena;
    cx_err err;
    cx_score_row rows[SCORES_MAX];
    size_t count;
    cx_alerts alerts;
} scores;

static inline void scores_init(scores *s)
{
    memset(s, 0, sizeof *s);
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
}

static inline void scores_done(scores *s)
{
    cx_arena_done(&s->arena);
}

/* A row an hour before now; its id is its number, t000 the first. */
static inline cx_score_row *scores_add(scores *s, const char *agent)
{
    cx_score_row *row = &s->rows[s->count];
    *row = (cx_score_row){.trace_id = cx_arena_printf(&s->arena, "t%03zu", s->count),
                          .agent = cx_str_z(agent),
                          .timestamp_ns = SCORES_NOW - SCORES_HOUR,
                          .csdma = NAN,
                          .dsdma = NAN,
                          .coherence = NAN,
                          .entropy = NAN,
                          .k_eff = NAN,
                          .rho = NAN,
                          .entropy_score = NAN,
                          .coherence_score = NAN,
                          .veto_ratio = NAN,
                          .humility_certainty = NAN,
                          .fragility_flag = CX_NULL,
                          .entropy_passed = CX_NULL,
                          .coherence_passed = CX_NULL,
                          .veto_passed = CX_NULL,
                          .humility_passed = CX_NULL,
                          .conscience_passed = CX_NULL,
                          .overridden = CX_NULL,
                          .action_success = CX_NULL,
                          .has_positive_moment = CX_NULL};
    s->count += s->count < SCORES_MAX - 1;
    return row;
}

typedef cx_status scores_detector(const cx_score_row *rows, size_t count, int64_t now_ns,
                                  cx_arena *arena, cx_alerts *out, cx_err *err);

static inline size_t scores_detect(scores *s, scores_detector *detector)
{
    s->alerts = (cx_alerts){NULL, 0};
    CHECK_STATUS(detector(s->rows, s->count, SCORES_NOW, &s->arena, &s->alerts, &s->err), &s->err);
    return s->alerts.count;
}

/* Two numbers that differ by no more than rounding. */
#define CHECK_NEAR(got, expected)                                                            \
    do {                                                                                     \
        double near_got_ = (got), near_expected_ = (expected);                               \
        if (!(fabs(near_got_ - near_expected_) <= 1e-9))                                     \
            cx_test_fail(__FILE__, __LINE__, "%s is %.17g, expected %.17g", #got, near_got_, \
                         near_expected_);                                                    \
    } while (0)

/* A member of an alert's or a capacity's inputs. */
static inline double scores_input(const cx_json *inputs, const char *name)
{
    double value = NAN;
    const cx_json *member = cx_json_get(inputs, cx_str_z(name));
    return member != NULL && cx_json_double(member, &value) ? value : (double)NAN;
}

#endif
