/*
 * detect.c - the coherence-ratchet detectors (trace.md §12).
 *
 * Rows are sorted by what a detector groups by; a group is a run of rows.  An agent is compared
 * with the *other* agents: if it were included, none of a few agents could ever deviate enough.
 */
#include "analysis/detect.h"

#include <stdlib.h>

#include "base/api.h"
#include "analysis/stats.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

#define CROSS_AGENTS_MIN 4
#define CROSS_FLAT 0.1        /* difference that alerts when the others do not differ at all */
#define OVERRIDE_FROM_ZERO 10 /* alert above one in this many, when the others have none */

const cx_detector cx_detectors[CX_DETECT_COUNT] = {
#define CX_DETECTOR_ROW(id, name, title, days, minimum, warning, critical, function) \
    [id] = {name, title, days, minimum, warning, critical, function},
    CX_DETECTORS(CX_DETECTOR_ROW)
#undef CX_DETECTOR_ROW
};

static const cx_detector *const cross_rule = &cx_detectors[CX_DETECT_CROSS_AGENT_DIVERGENCE];
static const cx_detector *const intra_rule = &cx_detectors[CX_DETECT_INTRA_AGENT_CONSISTENCY];
static const cx_detector *const drift_rule = &cx_detectors[CX_DETECT_TEMPORAL_DRIFT];
static const cx_detector *const override_rule = &cx_detectors[CX_DETECT_CONSCIENCE_OVERRIDE];

const char *cx_mechanism_name(cx_mechanism mechanism)
{
    CX_ASSERT(mechanism < CX_DETECT_COUNT);
    return cx_detectors[mechanism].name;
}

/* --- rows in groups --------------------------------------------------------------------------- */

typedef struct detecting {
    const cx_score_row **rows;
    size_t count;
    int64_t now_ns;
    cx_arena *arena;
    CX_VEC(cx_alert) alerts;
} detecting;

typedef struct row_span {
    size_t first, end;
} row_span;

/* NULL is a value and sorts first. */
static int compare_text(cx_str a, cx_str b)
{
    if (a.data == NULL || b.data == NULL)
        return (a.data != NULL) - (b.data != NULL);
    return cx_str_cmp(a, b);
}

static int compare_time(const cx_score_row *a, const cx_score_row *b)
{
    if (a->timestamp_ns != b->timestamp_ns)
        return a->timestamp_ns < b->timestamp_ns ? -1 : 1;
    return compare_text(a->trace_id, b->trace_id);
}

static const cx_score_row *row_at_slot(const void *slot)
{
    return *(const cx_score_row *const *)slot;
}

static int by_domain(const void *x, const void *y)
{
    const cx_score_row *a = row_at_slot(x), *b = row_at_slot(y);
    int order = compare_text(a->domain, b->domain);
    if (order == 0)
        order = compare_text(a->agent, b->agent);
    return order != 0 ? order : compare_time(a, b);
}

static int by_type(const void *x, const void *y)
{
    const cx_score_row *a = row_at_slot(x), *b = row_at_slot(y);
    int order = compare_text(a->agent, b->agent);
    if (order == 0)
        order = compare_text(a->trace_type, b->trace_type);
    return order != 0 ? order : compare_time(a, b);
}

static int by_agent(const void *x, const void *y)
{
    const cx_score_row *a = row_at_slot(x), *b = row_at_slot(y);
    int order = compare_text(a->agent, b->agent);
    return order != 0 ? order : compare_time(a, b);
}

static cx_status begin_detector(detecting *d, const cx_score_row *rows, size_t count, int64_t days,
                                int (*order)(const void *, const void *), cx_err *err)
{
    d->rows = CX_ARENA_ARRAY(d->arena, const cx_score_row *, count + 1);
    if (d->rows == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        if (rows[i].timestamp_ns < d->now_ns && rows[i].timestamp_ns >= d->now_ns - days * DAY_NS)
            d->rows[d->count++] = &rows[i];
    if (d->count > 1)
        qsort(d->rows, d->count, sizeof *d->rows, order);
    return CX_SUCCESS;
}

/* No two alerts of one detector are equal in all of these. */
static int compare_alerts(const void *x, const void *y)
{
    const cx_alert *a = x, *b = y;
    int order = compare_text(a->domain, b->domain);
    if (order == 0)
        order = compare_text(a->agent, b->agent);
    if (order == 0)
        order = compare_text(a->metric, b->metric);
    if (order == 0)
        order = (a->window_end_ns > b->window_end_ns) - (a->window_end_ns < b->window_end_ns);
    return order;
}

static cx_status end_detector(detecting *d, cx_status status, cx_alerts *out, cx_err *err)
{
    size_t count = d->alerts.count;
    cx_alert *items = cx_failed(status) ? NULL : CX_ARENA_ARRAY(d->arena, cx_alert, count + 1);
    if (items != NULL && count != 0)
        memcpy(items, d->alerts.items, count * sizeof *items);
    cx_vec_done(&d->alerts, d->arena->alloc);
    CX_TRY(status);
    if (items == NULL)
        return cx_fail_nomem(err);
    if (count > 1)
        qsort(items, count, sizeof *items, compare_alerts);
    *out = (cx_alerts){items, count};
    return CX_SUCCESS;
}

/* The rows from `first` to at most `within` that are equal in one text. */
static row_span equal_rows(const detecting *d, size_t first, size_t within, size_t member_offset)
{
    size_t at = first;
    cx_str value = *(const cx_str *)((const char *)d->rows[first] + member_offset);
    while (at < within &&
           compare_text(*(const cx_str *)((const char *)d->rows[at] + member_offset), value) == 0)
        at++;
    return (row_span){first, at};
}
#define EQUAL_ROWS(d, first, within, member) \
    equal_rows((d), (first), (within), offsetof(cx_score_row, member))

typedef struct metric {
    const char *name;
    size_t offset;
} metric;
#define METRIC(text, member)                   \
    {                                          \
        (text), offsetof(cx_score_row, member) \
    }

static double value_of(const cx_score_row *row, const metric *m)
{
    return *(const double *)((const char *)row + m->offset);
}

static cx_stats stats_of(const detecting *d, row_span rows, const metric *m)
{
    cx_stats stats = {0};
    for (size_t i = rows.first; i < rows.end; i++)
        cx_stats_add(&stats, value_of(d->rows[i], m));
    return stats;
}

/* --- alerts ----------------------------------------------------------------------------------- */

static cx_json number_or_null(cx_arena *arena, double value)
{
    return isfinite(value) ? cx_json_make_double(arena, value) : cx_json_make_null();
}

typedef struct input {
    const char *name;
    double value;
} input;

static cx_status inputs_json(cx_arena *arena, const input *inputs, size_t count, cx_json *out,
                             cx_err *err)
{
    cx_json_list list = cx_json_list_begin(arena);
    for (size_t i = 0; i < count; i++)
        cx_json_list_put(&list, cx_str_z(inputs[i].name),
                         inputs[i].value == floor(inputs[i].value) && fabs(inputs[i].value) < 1e15
                             ? cx_json_make_int(arena, (int64_t)inputs[i].value)
                             : number_or_null(arena, inputs[i].value));
    return cx_json_list_end_object(&list, out, err);
}

/* The rows that are furthest from `from`; of equal ones the earlier. */
static cx_status add_evidence(detecting *d, row_span rows, const metric *m, double from,
                              cx_alert *alert, cx_err *err)
{
    double best[CX_DETECT_EVIDENCE_MAX];
    cx_str *ids = CX_ARENA_ARRAY(d->arena, cx_str, CX_DETECT_EVIDENCE_MAX);
    size_t count = 0;
    if (ids == NULL)
        return cx_fail_nomem(err);
    for (size_t i = rows.first; i < rows.end; i++) {
        double distance = fabs(value_of(d->rows[i], m) - from);
        if (!isfinite(distance))
            continue;
        size_t at = count < CX_DETECT_EVIDENCE_MAX ? count : CX_DETECT_EVIDENCE_MAX;
        while (at > 0 && distance > best[at - 1])
            at--;
        if (at == CX_DETECT_EVIDENCE_MAX)
            continue;
        count += count < CX_DETECT_EVIDENCE_MAX;
        for (size_t k = count - 1; k > at; k--) {
            best[k] = best[k - 1];
            ids[k] = ids[k - 1];
        }
        best[at] = distance;
        ids[at] = d->rows[i]->trace_id;
    }
    alert->evidence = ids;
    alert->evidence_count = count;
    return CX_SUCCESS;
}

static cx_status add_alert(detecting *d, const cx_alert *alert, const input *inputs, size_t count,
                           cx_err *err)
{
    cx_alert *slot = cx_vec_push(&d->alerts, d->arena->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = *alert;
    return inputs_json(d->arena, inputs, count, &slot->inputs, err);
}

/* --- cross_agent_divergence ------------------------------------------------------------------- */

static const metric cross_metrics[] = {METRIC("csdma", csdma), METRIC("dsdma", dsdma),
                                       METRIC("coherence", coherence)};

typedef struct agent_mean {
    row_span rows;
    cx_stats stats;
    cx_stats before; /* of the means of the agents before this one */
    cx_stats others; /* of all but this one */
} agent_mean;

/* The statistics of the union of two sets (Chan et al.).  Removing a value from a sum would cancel
 * the digits that tell whether the others are equal; adding never does. */
static cx_stats merge_stats(const cx_stats *a, const cx_stats *b)
{
    if (a->count == 0 || b->count == 0)
        return a->count == 0 ? *b : *a;
    size_t count = a->count + b->count;
    double apart = b->mean - a->mean, part = (double)b->count / (double)count;
    return (cx_stats){.count = count,
                      .mean = a->mean + apart * part,
                      .squares = a->squares + b->squares + apart * apart * (double)a->count * part};
}

/* For each agent the statistics of the others: those before it and those after it, in two passes.
 */
static void find_others(agent_mean *agents, size_t count)
{
    cx_stats before = {0}, after = {0};
    for (size_t i = 0; i < count; i++) {
        agents[i].before = before;
        cx_stats_add(&before, agents[i].stats.mean);
    }
    for (size_t i = count; i-- > 0;) {
        agents[i].others = merge_stats(&agents[i].before, &after);
        cx_stats_add(&after, agents[i].stats.mean);
    }
}

static cx_status compare_agent(detecting *d, const agent_mean *agent, size_t count, const metric *m,
                               cx_err *err)
{
    double mean = agent->stats.mean, others_mean = agent->others.mean;
    double difference = fabs(mean - others_mean), spread = cx_stats_deviation(&agent->others);
    bool differ = spread >= CX_STATS_FLAT;
    double z = differ ? difference / spread : (double)NAN;
    if (isnan(spread) || !(differ ? z > cross_rule->warning : difference > CROSS_FLAT))
        return CX_SUCCESS; /* NAN: the others' means overflow a double */
    const cx_score_row *row = d->rows[agent->rows.first];
    cx_alert alert = {.mechanism = CX_DETECT_CROSS_AGENT_DIVERGENCE,
                      .critical = differ && z > cross_rule->critical,
                      .agent = row->agent,
                      .domain = row->domain,
                      .metric = cx_str_z(m->name),
                      .value = mean,
                      .baseline = others_mean,
                      .deviation = z,
                      .window_end_ns = d->now_ns,
                      .recommended_action = CX_STR("Compare this agent's traces with those of the"
                                                   " others in its domain")};
    const input inputs[] = {{"agents", (double)count},
                            {"traces", (double)agent->stats.count},
                            {"mean", mean},
                            {"others_mean", others_mean},
                            {"others_deviation", spread}};
    CX_TRY(add_evidence(d, agent->rows, m, others_mean, &alert, err));
    return add_alert(d, &alert, inputs, CX_COUNT_OF(inputs), err);
}

static cx_status compare_domain(detecting *d, row_span domain, const metric *m, cx_err *err)
{
    size_t count = 0, most = (domain.end - domain.first) / cross_rule->minimum;
    agent_mean *agents = CX_ARENA_ARRAY(d->arena, agent_mean, most + 1);
    if (agents == NULL)
        return cx_fail_nomem(err);
    for (size_t at = domain.first; at < domain.end;) {
        row_span rows = EQUAL_ROWS(d, at, domain.end, agent);
        cx_stats stats = stats_of(d, rows, m);
        if (stats.count >= cross_rule->minimum)
            agents[count++] = (agent_mean){.rows = rows, .stats = stats};
        at = rows.end;
    }
    find_others(agents, count);
    for (size_t i = 0; count >= CROSS_AGENTS_MIN && i < count; i++)
        CX_TRY(compare_agent(d, &agents[i], count, m, err));
    return CX_SUCCESS;
}

static cx_status detect_divergence(detecting *d, cx_err *err)
{
    for (size_t at = 0; at < d->count;) {
        row_span domain = EQUAL_ROWS(d, at, d->count, domain);
        for (size_t i = 0; i < CX_COUNT_OF(cross_metrics); i++)
            CX_TRY(compare_domain(d, domain, &cross_metrics[i], err));
        at = domain.end;
    }
    return CX_SUCCESS;
}

cx_status cx_detect_cross_agent(const cx_score_row *rows, size_t count, int64_t now_ns,
                                cx_arena *arena, cx_alerts *out, cx_err *err)
{
    detecting d = {.now_ns = now_ns, .arena = arena};
    CX_TRY(begin_detector(&d, rows, count, cross_rule->days, by_domain, err));
    return end_detector(&d, detect_divergence(&d, err), out, err);
}

/* --- intra_agent_consistency ------------------------------------------------------------------ */

static const metric csdma = METRIC("csdma", csdma);

static cx_status distinct_actions(detecting *d, row_span rows, size_t *out, cx_err *err)
{
    size_t count = rows.end - rows.first;
    cx_arena_mark mark = cx_arena_mark_now(d->arena);
    cx_str *actions = CX_ARENA_ARRAY(d->arena, cx_str, count);
    if (actions == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        actions[i] = d->rows[rows.first + i]->selected_action;
    *out = cx_stats_distinct(actions, count);
    cx_arena_reset(d->arena, mark);
    return CX_SUCCESS;
}

static cx_status check_group(detecting *d, row_span rows, cx_err *err)
{
    cx_stats stats = stats_of(d, rows, &csdma);
    size_t traces = rows.end - rows.first, actions = 0;
    double spread = cx_stats_deviation(&stats);
    if (traces < intra_rule->minimum || !(spread > intra_rule->warning))
        return CX_SUCCESS;
    CX_TRY(distinct_actions(d, rows, &actions, err));
    if (actions <= 2)
        return CX_SUCCESS;
    const cx_score_row *row = d->rows[rows.first];
    cx_str type = row->trace_type.data != NULL ? row->trace_type : CX_STR("other");
    cx_alert alert = {.mechanism = CX_DETECT_INTRA_AGENT_CONSISTENCY,
                      .critical = actions > 3 && spread > intra_rule->critical,
                      .agent = row->agent,
                      .metric = cx_arena_printf(d->arena, "csdma:%.*s", (int)type.size, type.data),
                      .value = spread,
                      .baseline = intra_rule->warning,
                      .deviation = spread - intra_rule->warning,
                      .window_end_ns = d->now_ns,
                      .recommended_action = CX_STR("Look at why the same kind of task ends in"
                                                   " different actions")};
    if (alert.metric.data == NULL)
        return cx_fail_nomem(err);
    const input inputs[] = {{"traces", (double)traces},
                            {"distinct_actions", (double)actions},
                            {"csdma_mean", cx_stats_mean(&stats)},
                            {"csdma_deviation", spread}};
    CX_TRY(add_evidence(d, rows, &csdma, stats.mean, &alert, err));
    return add_alert(d, &alert, inputs, CX_COUNT_OF(inputs), err);
}

static cx_status detect_inconsistency(detecting *d, cx_err *err)
{
    for (size_t at = 0; at < d->count;) {
        row_span agent = EQUAL_ROWS(d, at, d->count, agent);
        for (size_t first = agent.first; first < agent.end;) {
            row_span rows = EQUAL_ROWS(d, first, agent.end, trace_type);
            CX_TRY(check_group(d, rows, err));
            first = rows.end;
        }
        at = agent.end;
    }
    return CX_SUCCESS;
}

cx_status cx_detect_intra_agent(const cx_score_row *rows, size_t count, int64_t now_ns,
                                cx_arena *arena, cx_alerts *out, cx_err *err)
{
    detecting d = {.now_ns = now_ns, .arena = arena};
    CX_TRY(begin_detector(&d, rows, count, intra_rule->days, by_type, err));
    return end_detector(&d, detect_inconsistency(&d, err), out, err);
}

/* --- temporal_drift --------------------------------------------------------------------------- */

static const metric drift_metrics[] = {METRIC("csdma", csdma), METRIC("coherence", coherence)};

static int64_t day_of(const cx_score_row *row)
{
    int64_t day = row->timestamp_ns / DAY_NS;
    return row->timestamp_ns % DAY_NS < 0 ? day - 1 : day;
}

static cx_status drift_between(detecting *d, const cx_stats *before, row_span rows,
                               const cx_stats *now, const metric *m, cx_err *err)
{
    double difference = fabs(now->mean - before->mean);
    if (!(difference > drift_rule->warning))
        return CX_SUCCESS;
    const cx_score_row *row = d->rows[rows.first];
    cx_alert alert = {.mechanism = CX_DETECT_TEMPORAL_DRIFT,
                      .critical = difference > drift_rule->critical,
                      .agent = row->agent,
                      .metric = cx_str_z(m->name),
                      .value = now->mean,
                      .baseline = before->mean,
                      .deviation = difference,
                      .window_end_ns = (day_of(row) + 1) * DAY_NS - 1,
                      .recommended_action =
                          CX_STR("Ask what changed between the two days: model, prompt, task")};
    const input inputs[] = {{"values", (double)now->count},
                            {"mean", now->mean},
                            {"previous_values", (double)before->count},
                            {"previous_mean", before->mean}};
    CX_TRY(add_evidence(d, rows, m, before->mean, &alert, err));
    return add_alert(d, &alert, inputs, CX_COUNT_OF(inputs), err);
}

static cx_status drift_of_agent(detecting *d, row_span agent, const metric *m, cx_err *err)
{
    cx_stats before = {0};
    for (size_t at = agent.first; at < agent.end;) {
        row_span rows = {at, at};
        while (rows.end < agent.end && day_of(d->rows[rows.end]) == day_of(d->rows[at]))
            rows.end++;
        cx_stats now = stats_of(d, rows, m);
        if (now.count >= drift_rule->minimum) {
            if (before.count != 0)
                CX_TRY(drift_between(d, &before, rows, &now, m, err));
            before = now;
        }
        at = rows.end;
    }
    return CX_SUCCESS;
}

static cx_status detect_drift(detecting *d, cx_err *err)
{
    for (size_t at = 0; at < d->count;) {
        row_span agent = EQUAL_ROWS(d, at, d->count, agent);
        for (size_t i = 0; i < CX_COUNT_OF(drift_metrics); i++)
            CX_TRY(drift_of_agent(d, agent, &drift_metrics[i], err));
        at = agent.end;
    }
    return CX_SUCCESS;
}

cx_status cx_detect_drift(const cx_score_row *rows, size_t count, int64_t now_ns, cx_arena *arena,
                          cx_alerts *out, cx_err *err)
{
    detecting d = {.now_ns = now_ns, .arena = arena};
    CX_TRY(begin_detector(&d, rows, count, drift_rule->days, by_agent, err));
    return end_detector(&d, detect_drift(&d, err), out, err);
}

/* --- conscience_override ---------------------------------------------------------------------- */

typedef struct tally {
    uint64_t known, overridden;
} tally;

static tally tally_of(const detecting *d, row_span rows)
{
    tally t = {0, 0};
    for (size_t i = rows.first; i < rows.end; i++) {
        t.known += d->rows[i]->overridden != CX_NULL;
        t.overridden += d->rows[i]->overridden == CX_TRUE;
    }
    return t;
}

static cx_status overridden_evidence(detecting *d, row_span rows, cx_alert *alert, cx_err *err)
{
    cx_str *ids = CX_ARENA_ARRAY(d->arena, cx_str, CX_DETECT_EVIDENCE_MAX);
    if (ids == NULL)
        return cx_fail_nomem(err);
    alert->evidence = ids;
    for (size_t i = rows.end; i-- > rows.first && alert->evidence_count < CX_DETECT_EVIDENCE_MAX;)
        if (d->rows[i]->overridden == CX_TRUE)
            ids[alert->evidence_count++] = d->rows[i]->trace_id; /* the newest */
    return CX_SUCCESS;
}

static cx_status compare_overrides(detecting *d, row_span rows, tally own, tally domain,
                                   cx_err *err)
{
    tally others = {domain.known - own.known, domain.overridden - own.overridden};
    if (own.known < override_rule->minimum || others.known == 0)
        return CX_SUCCESS;
    double rate = (double)own.overridden / (double)own.known;
    double baseline = (double)others.overridden / (double)others.known;
    /* Rates are compared as fractions: exactly twice the others' rate must not exceed it by
     * rounding. */
    uint64_t own_share = own.overridden * others.known, share = others.overridden * own.known;
    if (share != 0 ? own_share <= (uint64_t)override_rule->warning * share
                   : own.overridden * OVERRIDE_FROM_ZERO <= own.known)
        return CX_SUCCESS;
    const cx_score_row *row = d->rows[rows.first];
    cx_alert alert = {.mechanism = CX_DETECT_CONSCIENCE_OVERRIDE,
                      .critical =
                          share != 0 && own_share > (uint64_t)override_rule->critical * share,
                      .agent = row->agent,
                      .domain = row->domain,
                      .metric = CX_STR("override_rate"),
                      .value = rate,
                      .baseline = baseline,
                      .deviation = share != 0 ? rate / baseline : (double)NAN,
                      .window_end_ns = d->now_ns,
                      .recommended_action = CX_STR("Read what the conscience overrode, and why")};
    const input inputs[] = {{"traces", (double)own.known},
                            {"overridden", (double)own.overridden},
                            {"others_traces", (double)others.known},
                            {"others_overridden", (double)others.overridden}};
    CX_TRY(overridden_evidence(d, rows, &alert, err));
    return add_alert(d, &alert, inputs, CX_COUNT_OF(inputs), err);
}

static cx_status detect_overrides(detecting *d, cx_err *err)
{
    for (size_t at = 0; at < d->count;) {
        row_span domain = EQUAL_ROWS(d, at, d->count, domain);
        tally all = tally_of(d, domain);
        for (size_t first = domain.first; first < domain.end;) {
            row_span rows = EQUAL_ROWS(d, first, domain.end, agent);
            CX_TRY(compare_overrides(d, rows, tally_of(d, rows), all, err));
            first = rows.end;
        }
        at = domain.end;
    }
    return CX_SUCCESS;
}

cx_status cx_detect_override(const cx_score_row *rows, size_t count, int64_t now_ns,
                             cx_arena *arena, cx_alerts *out, cx_err *err)
{
    detecting d = {.now_ns = now_ns, .arena = arena};
    CX_TRY(begin_detector(&d, rows, count, override_rule->days, by_domain, err));
    return end_detector(&d, detect_overrides(&d, err), out, err);
}

/* --- hash_chain ------------------------------------------------------------------------------- */

static cx_status chain_evidence(detecting *d, const cx_chain_report *report, cx_alert *alert,
                                cx_err *err)
{
    cx_str *ids = CX_ARENA_ARRAY(d->arena, cx_str, CX_DETECT_EVIDENCE_MAX);
    if (ids == NULL)
        return cx_fail_nomem(err);
    alert->evidence = ids;
    for (size_t i = 0; i < report->finding_count; i++) {
        const cx_chain_finding *finding = &report->findings[i];
        bool seen = finding->kind == CX_CHAIN_UNCHECKED || finding->trace_id.data == NULL;
        for (size_t k = 0; k < alert->evidence_count && !seen; k++)
            seen = cx_str_eq(ids[k], finding->trace_id);
        if (!seen && alert->evidence_count < CX_DETECT_EVIDENCE_MAX)
            ids[alert->evidence_count++] = finding->trace_id;
    }
    return CX_SUCCESS;
}

static cx_status alert_broken_chain(detecting *d, cx_str agent, const cx_chain_report *report,
                                    cx_err *err)
{
    cx_alert alert = {.mechanism = CX_DETECT_HASH_CHAIN,
                      .critical = true,
                      .agent = agent,
                      .metric = CX_STR("audit_chain"),
                      .value = (double)report->finding_count,
                      .baseline = 0,
                      .deviation = (double)NAN,
                      .window_end_ns = d->now_ns,
                      .recommended_action = CX_STR("Fetch the records named and compare them with"
                                                   " the agent's own audit log")};
    double counts[CX_CHAIN_UNCHECKED + 1] = {0};
    for (size_t i = 0; i < report->finding_count; i++)
        counts[report->findings[i].kind]++;
    const input inputs[] = {
        {"entries", (double)report->entry_count},  {"gap", counts[CX_CHAIN_GAP]},
        {"duplicate", counts[CX_CHAIN_DUPLICATE]}, {"fork", counts[CX_CHAIN_FORK]},
        {"reorder", counts[CX_CHAIN_REORDER]},     {"mismatch", counts[CX_CHAIN_MISMATCH]}};
    CX_TRY(chain_evidence(d, report, &alert, err));
    return add_alert(d, &alert, inputs, CX_COUNT_OF(inputs), err);
}

cx_status cx_detect_chain(cx_str agent, const cx_chain_report *report, int64_t now_ns,
                          cx_arena *arena, cx_alerts *out, cx_err *err)
{
    CX_ASSERT(report != NULL && out != NULL);
    detecting d = {.now_ns = now_ns, .arena = arena};
    cx_status status = CX_SUCCESS;
    if (report->verdict == CX_BROKEN)
        status = alert_broken_chain(&d, agent, report, err);
    return end_detector(&d, status, out, err);
}
