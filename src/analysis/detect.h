/*
 * detect.h - statistics over the traces of a fleet: the coherence-ratchet detectors, capacity,
 * N_eff (trace.md §12).  Pure: rows in, findings out, independent of the database.
 *
 * Invariants (cited by tests):
 *
 *   I1  Callers pass verified primary rows only, except where a count of all is needed.
 *   I2  An absent score is NAN and left out; it is never read as 0.
 *   I3  Deviations are of a sample (n - 1).
 *   I4  Alerts come in a fixed order (domain, agent, metric, time), and no two of one detector are
 *       equal in all of these.
 */
#ifndef CX_ANALYSIS_DETECT_H
#define CX_ANALYSIS_DETECT_H

#include "base/api.h"
#include "json/api.h"
#include "analysis/chain.h"

typedef enum cx_tri { CX_NULL = -1, CX_FALSE = 0, CX_TRUE = 1 } cx_tri; /* a boolean column */

/* The columns of an index row that the detectors use.  Texts with NULL data are NULL. */
typedef struct cx_score_row {
    cx_str trace_id, agent, agent_name, trace_type, domain, selected_action;
    int64_t timestamp_ns;
    double csdma, dsdma, coherence, entropy, k_eff, rho;
    double entropy_score, coherence_score, veto_ratio, humility_certainty;
    int8_t fragility_flag, entropy_passed, coherence_passed, veto_passed, humility_passed;
    int8_t conscience_passed, overridden, action_success, has_positive_moment; /* cx_tri */
    bool has_audit_seq;
} cx_score_row;

/*
 * The detectors: X(constant, name, title, days, minimum, warning, critical, function).
 *
 *     title     what an alert of it says, in a few words; the page's title
 *     days      its window; 0 = the whole audit chain
 *     minimum   traces (or values of a day) below which there is no alert
 *     warning   alert above this value; critical: above this one.  0 = the function decides
 *     function  over the rows of the window; NULL: cx_detect_chain, which reads a chain report
 *
 * Everything else is made from this table or compared with it: the enum and cx_detectors below, the
 * loop of recorder/alerts.c, docs/formats/trace.md §12 and the page's MECHANISMS
 * (tools/check_docs.py).
 */
#define CX_DETECTORS(X)                                                                           \
    X(CX_DETECT_CROSS_AGENT_DIVERGENCE, "cross_agent_divergence",                                 \
      "Scores differ from those of other agents", 7, 10, 2.0, 3.0, cx_detect_cross_agent)         \
    X(CX_DETECT_INTRA_AGENT_CONSISTENCY, "intra_agent_consistency", "Inconsistent decisions", 30, \
      5, 0.15, 0.2, cx_detect_intra_agent)                                                        \
    X(CX_DETECT_HASH_CHAIN, "hash_chain", "Broken audit chain", 0, 0, 0, 0, NULL)                 \
    X(CX_DETECT_TEMPORAL_DRIFT, "temporal_drift", "Scores drifted between days", 30, 5, 0.15,     \
      0.25, cx_detect_drift)                                                                      \
    X(CX_DETECT_CONSCIENCE_OVERRIDE, "conscience_override",                                       \
      "Overridden more often than other agents", 7, 20, 2.0, 3.0, cx_detect_override)

typedef enum cx_mechanism {
#define CX_DETECTOR_CONSTANT(id, name, title, days, minimum, warning, critical, function) id,
    CX_DETECTORS(CX_DETECTOR_CONSTANT)
#undef CX_DETECTOR_CONSTANT
        CX_DETECT_COUNT
} cx_mechanism;
const char *cx_mechanism_name(cx_mechanism mechanism); /* "cross_agent_divergence", .. */
#define CX_DETECT_EVIDENCE_MAX 5

/* One alert.  Absent numbers are NAN; absent texts have NULL data. */
typedef struct cx_alert {
    cx_mechanism mechanism;
    bool critical; /* else a warning */
    cx_str agent, domain, metric;
    double value, baseline, deviation;
    int64_t window_end_ns;  /* one alert for each (mechanism, agent, domain, metric, day of this) */
    const cx_str *evidence; /* trace ids, at most CX_DETECT_EVIDENCE_MAX */
    size_t evidence_count;
    cx_str recommended_action;
    cx_json inputs; /* the inputs of the computation: counts, means, deviations */
} cx_alert;

typedef struct cx_alerts {
    const cx_alert *items;
    size_t count;
} cx_alerts;

/* Each uses the rows of its window [now - days, now) and ignores others.  Alerts come in a fixed
 * order (I4); memory from the arena. */
CX_RESULT cx_detect_cross_agent(const cx_score_row *rows, size_t count, int64_t now_ns,
                                cx_arena *arena, cx_alerts *out, cx_err *err);
CX_RESULT cx_detect_intra_agent(const cx_score_row *rows, size_t count, int64_t now_ns,
                                cx_arena *arena, cx_alerts *out, cx_err *err);
CX_RESULT cx_detect_drift(const cx_score_row *rows, size_t count, int64_t now_ns, cx_arena *arena,
                          cx_alerts *out, cx_err *err);
CX_RESULT cx_detect_override(const cx_score_row *rows, size_t count, int64_t now_ns,
                             cx_arena *arena, cx_alerts *out, cx_err *err);
typedef struct cx_detector {
    const char *name, *title;
    int64_t days;
    size_t minimum;
    double warning, critical;
    cx_status (*detect)(const cx_score_row *rows, size_t count, int64_t now_ns, cx_arena *arena,
                        cx_alerts *out, cx_err *err); /* NULL: not over rows */
} cx_detector;
extern const cx_detector cx_detectors[CX_DETECT_COUNT];

/* An alert when the report is broken, none when it is indeterminate. */
CX_RESULT cx_detect_chain(cx_str agent, const cx_chain_report *report, int64_t now_ns,
                          cx_arena *arena, cx_alerts *out, cx_err *err);

/* An alert as JSON: the payload of `trace.alert` entries and the output of `cortex detect --json`.
 * `alert_id` is a digest of the members that make it unique. */
CX_RESULT cx_alert_json(const cx_alert *alert, cx_arena *arena, cx_json *out, cx_err *err);

/* --- capacity --------------------------------------------------------------------------------- */

#define CX_CAPACITY_DAYS 30
typedef struct cx_capacity_input {
    const cx_score_row *rows; /* of the agent, last 30 days, with any action */
    size_t count;
    const cx_score_row *baseline; /* of the 30 days before */
    size_t baseline_count;
    uint64_t received_count; /* all of the 30 days, unverified included */
    cx_verdict chain;        /* broken -> I_int = 0 */
    int64_t now_ns;
} cx_capacity_input;

typedef enum cx_confidence {
    CX_CONFIDENCE_INSUFFICIENT,
    CX_CONFIDENCE_LOW,
    CX_CONFIDENCE_MEDIUM,
    CX_CONFIDENCE_HIGH
} cx_confidence;

typedef struct cx_capacity {
    uint64_t n; /* traces with one of the four actions */
    cx_confidence confidence;
    double c, i_int, r, i_inc, s; /* each 0 .. 1 */
    bool r_known;
    double score, fragility; /* valid unless insufficient */
    const char *category;    /* "high_fragility", "moderate", "healthy", "high_capacity" */
    cx_json inputs;          /* all inputs, by factor */
} cx_capacity;
CX_RESULT cx_capacity_compute(const cx_capacity_input *input, cx_arena *arena, cx_capacity *out,
                              cx_err *err);
CX_RESULT cx_capacity_json(cx_buf *out, cx_str agent, const cx_capacity *capacity, cx_err *err);

/* --- N_eff ------------------------------------------------------------------------------------ */

typedef struct cx_n_eff {
    uint64_t rows_used;
    unsigned columns_used;
    bool enough; /* >= 20 rows and at least one column left */
    double participation, entropy;
    double eigenvalues[17];  /* columns_used of them, descending */
    const char *columns[17]; /* names of those used */
} cx_n_eff;
CX_RESULT cx_n_eff_compute(const cx_score_row *rows, size_t count, cx_arena *arena, cx_n_eff *out,
                           cx_err *err);

#endif
