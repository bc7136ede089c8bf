/*
 * answer_fleet.c - all agents side by side, day by day: what the fleet's screen draws.
 *
 *   {"agents":[{"agent","capacity":[score|null, ..],"chain":{"entries","gap","mismatch",..,
 *    "verdict"},"fragile","k_eff":[mean|null, ..],"last","overridden","plausibility":[mean|null,
 *    ..],"traces":[count, ..]}],"days":["YYYY-MM-DD", ..],"more":B}
 *
 * Lists have one item a day.  Means are of what is there; a day without is null, never 0.
 */
#include <math.h>

#include "recorder/reply.h"

#define DAY_NS (INT64_C(86400) * 1000000000)
/* A capacity asks the index how much was received, so it is not computed for every day. */
#define CAPACITY_POINTS 10
#define CAPACITY_AGENTS 50

typedef struct fleet {
    cx_recorder *recorder;
    cx_index *index;
    cx_arena *arena;
    unsigned days;
    int64_t from_ns, to_ns; /* whole days */
} fleet;

typedef struct mean {
    double sum;
    uint32_t count;
} mean;

static void add_to(mean *m, double value)
{
    if (!isnan(value)) {
        m->sum += value;
        m->count++;
    }
}

static cx_status put_means(const fleet *f, cx_json_list *list, const char *name, const mean *means,
                           cx_err *err)
{
    cx_json_list items = cx_json_list_begin(f->arena);
    cx_json value;
    for (unsigned d = 0; d < f->days; d++)
        cx_json_list_add(&items, means[d].count == 0
                                     ? cx_json_make_null()
                                     : cx_json_make_double(f->arena,
                                                           means[d].sum / means[d].count));
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_reply_put(list, name, value);
    return CX_SUCCESS;
}

/* --- one agent -------------------------------------------------------------------------------- */

typedef struct agent_rows {
    cx_str agent;
    const cx_score_row *rows; /* by time, from two months before the first day on */
    size_t count;
    cx_chain_report chain;
} agent_rows;

/* The rows with from <= timestamp < to. */
static const cx_score_row *between(const agent_rows *r, int64_t from, int64_t to, size_t *out_count)
{
    size_t first = 0;
    while (first < r->count && r->rows[first].timestamp_ns < from)
        first++;
    size_t last = first;
    while (last < r->count && r->rows[last].timestamp_ns < to)
        last++;
    *out_count = last - first;
    return r->rows + first;
}

/* As GET /capacity would have answered at that time; the chain is judged as it is now. */
static cx_status capacity_at(const fleet *f, const agent_rows *r, int64_t at, mean *out,
                             cx_err *err)
{
    const int64_t month = CX_CAPACITY_DAYS * DAY_NS;
    cx_capacity_input input = {.now_ns = at, .chain = r->chain.verdict};
    cx_capacity capacity;
    input.rows = between(r, at - month, at, &input.count);
    input.baseline = between(r, at - 2 * month, at - month, &input.baseline_count);
    CX_TRY(cx_index_received_count(f->index, r->agent, at - month, at, &input.received_count, err));
    CX_TRY(cx_capacity_compute(&input, f->arena, &capacity, err));
    if (capacity.confidence != CX_CONFIDENCE_INSUFFICIENT)
        add_to(out, capacity.score);
    return CX_SUCCESS;
}

static cx_status put_capacity(const fleet *f, cx_json_list *list, const agent_rows *r, bool wanted,
                              cx_err *err)
{
    mean points[CX_FLEET_DAYS_MAX] = {{0}};
    unsigned step = (f->days + CAPACITY_POINTS - 1) / CAPACITY_POINTS;
    for (unsigned back = 0; wanted && back < f->days; back += step) {
        unsigned d = f->days - 1 - back;
        CX_TRY(capacity_at(f, r, f->from_ns + (int64_t)(d + 1) * DAY_NS, &points[d], err));
    }
    return put_means(f, list, "capacity", points, err);
}

static cx_status put_days(const fleet *f, cx_json_list *list, const agent_rows *r, cx_err *err)
{
    mean k_eff[CX_FLEET_DAYS_MAX] = {{0}}, plausibility[CX_FLEET_DAYS_MAX] = {{0}};
    uint32_t traces[CX_FLEET_DAYS_MAX] = {0};
    uint64_t fragile = 0, overridden = 0;
    size_t count;
    const cx_score_row *rows = between(r, f->from_ns, f->to_ns, &count);
    for (size_t i = 0; i < count; i++) {
        unsigned d = (unsigned)((rows[i].timestamp_ns - f->from_ns) / DAY_NS);
        traces[d]++;
        add_to(&k_eff[d], rows[i].k_eff);
        add_to(&plausibility[d], rows[i].csdma);
        fragile += rows[i].fragility_flag == CX_TRUE;
        overridden += rows[i].overridden == CX_TRUE;
    }
    cx_json_list items = cx_json_list_begin(f->arena);
    cx_json value;
    for (unsigned d = 0; d < f->days; d++)
        cx_json_list_add(&items, cx_json_make_int(f->arena, traces[d]));
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_reply_put(list, "traces", value);
    cx_reply_uint(list, "fragile", fragile);
    cx_reply_uint(list, "overridden", overridden);
    CX_TRY(put_means(f, list, "k_eff", k_eff, err));
    return put_means(f, list, "plausibility", plausibility, err);
}

static cx_status put_chain(const fleet *f, cx_json_list *list, const cx_chain_report *chain,
                           cx_err *err)
{
    uint64_t counts[CX_CHAIN_UNCHECKED + 1] = {0};
    cx_json_list items = cx_json_list_begin(f->arena);
    for (size_t i = 0; i < chain->finding_count; i++)
        counts[chain->findings[i].kind]++;
    for (unsigned kind = 0; kind < CX_COUNT_OF(counts); kind++)
        cx_reply_uint(&items, cx_chain_kind_name((cx_chain_kind)kind), counts[kind]);
    cx_reply_uint(&items, "entries", chain->entry_count);
    cx_reply_z(&items, "profile", cx_chain_profile_name(chain->profile));
    cx_reply_z(&items, "verdict", cx_verdict_name(chain->verdict));
    return cx_reply_end_object(list, "chain", &items, err);
}

static cx_status agent_json(const fleet *f, cx_str agent, bool with_capacity, cx_json *out,
                            cx_err *err)
{
    const cx_chain_options options = {.profile = CX_CHAIN_AUTO};
    agent_rows r = {.agent = agent};
    CX_TRY(cx_index_scores(f->index, agent, f->from_ns - 2 * CX_CAPACITY_DAYS * DAY_NS, f->to_ns,
                           f->arena, &r.rows, &r.count, err));
    CX_TRY(cx_recorder_chain(f->recorder, f->index, agent, &options, f->arena, &r.chain, err));
    cx_json_list list = cx_json_list_begin(f->arena);
    cx_reply_text(&list, "agent", agent);
    CX_TRY(put_chain(f, &list, &r.chain, err));
    cx_reply_time(&list, "last", r.count == 0 ? CX_TIME_NONE : r.rows[r.count - 1].timestamp_ns);
    CX_TRY(put_days(f, &list, &r, err));
    CX_TRY(put_capacity(f, &list, &r, with_capacity, err));
    return cx_json_list_end_object(&list, out, err);
}

/* --- all of them ------------------------------------------------------------------------------ */

/* The end of the day of `to_ns`, or of the newest verified trace. */
static cx_status find_end(fleet *f, int64_t to_ns, cx_err *err)
{
    cx_trace_query query = CX_TRACE_QUERY_INIT;
    const cx_found_row *rows;
    size_t count = 0;
    bool more;
    query.limit = 1;
    if (to_ns == CX_TIME_NONE)
        CX_TRY(cx_index_find(f->index, &query, f->arena, &rows, &count, &more, err));
    if (to_ns == CX_TIME_NONE)
        to_ns = count == 0 ? cx_recorder_now(f->recorder) : rows[0].timestamp_ns;
    f->to_ns = to_ns - to_ns % DAY_NS + DAY_NS;
    f->from_ns = f->to_ns - (int64_t)f->days * DAY_NS;
    return CX_SUCCESS;
}

static cx_status put_dates(const fleet *f, cx_json_list *list, cx_err *err)
{
    cx_json_list items = cx_json_list_begin(f->arena);
    cx_json value;
    for (unsigned d = 0; d < f->days; d++) {
        char text[CX_TRACE_TIME_SIZE];
        cx_trace_time_write(f->from_ns + (int64_t)d * DAY_NS, text);
        cx_str day = cx_arena_copy_str(f->arena, cx_str_from(text, 10));
        if (day.data == NULL)
            return cx_fail_nomem(err);
        cx_json_list_add(&items, cx_json_make_str(day));
    }
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_reply_put(list, "days", value);
    return CX_SUCCESS;
}

static cx_status fleet_json(fleet *f, int64_t to_ns, cx_json *out, cx_err *err)
{
    const cx_str *agents;
    size_t count = 0;
    cx_json value;
    CX_TRY(find_end(f, to_ns, err));
    CX_TRY(cx_index_agents(f->index, f->arena, &agents, &count, err));
    cx_json_list items = cx_json_list_begin(f->arena);
    for (size_t i = 0; i < count && i < CX_FLEET_AGENTS_MAX; i++) {
        cx_json item;
        CX_TRY(agent_json(f, agents[i], i < CAPACITY_AGENTS, &item, err));
        cx_json_list_add(&items, item);
    }
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_json_list list = cx_json_list_begin(f->arena);
    cx_reply_put(&list, "agents", value);
    CX_TRY(put_dates(f, &list, err));
    cx_reply_put(&list, "more", cx_json_make_bool(count > CX_FLEET_AGENTS_MAX));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_fleet(cx_recorder *recorder, cx_index *index, unsigned days,
                                   int64_t to_ns, cx_buf *out, cx_err *err)
{
    cx_reply reply;
    cx_json value;
    if (days < 1 || days > CX_FLEET_DAYS_MAX)
        return cx_fail(err, CX_E_USAGE, "days: found %u, expected 1 to %d", days,
                       CX_FLEET_DAYS_MAX);
    cx_reply_begin(&reply, recorder->alloc, err);
    fleet f = {.recorder = recorder, .index = index, .arena = &reply.arena, .days = days};
    return cx_reply_end(&reply, fleet_json(&f, to_ns, &value, err), &value, out);
}
