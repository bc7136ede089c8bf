/*
 * answer_fleet.c - all agents side by side, day by day: what the fleet's screen draws.
 *
 *   {"agents":[{"agent","capacity":[score|null, ..],"chain":{"entries","gap","mismatch",..,
 *    "verdict"},"fragile","k_eff":[mean|null, ..],"last","overridden","plausibility":[mean|null,
 *    ..],"traces":[count, ..]}],"capacity_step":N,"days":["YYYY-MM-DD", ..],
 *    "left_out":{"agents","traces"},"more":B}
 *
 * Lists have one item a day.  Means are of what is there; a day without is null, never 0.
 *
 * Reading an agent costs its traces, so what is answered is bounded by these, and says so:
 *
 *   F1  Agents are those with most traces in the days shown, ROWS_MAX traces together, one always.
 *       How many are left out, and how many traces of these days they have, is counted.
 *   F2  A capacity looks at sixty days of traces.  It is computed for every day when that looks at
 *       FLEET_AGENTS_MAX traces at most, else for every second, third, ..: capacity_step.  The last
 *       day is always one of them.
 */
#include <math.h>
#include <stdlib.h>

#include "base/api.h"
#include "recorder/answer/reply.h"

#define DAY_NS (INT64_C(86400) * 1000000000)
#define ROWS_MAX 200000
#define FLEET_AGENTS_MAX 10000000
/* Days that received traces are counted for: those shown, and the month before the first. */
#define COUNTED_DAYS (CX_FLEET_DAYS_MAX + CX_CAPACITY_DAYS)

typedef struct counted_agent {
    cx_str agent;
    uint64_t all, verified, shown; /* of all times; verified ones; in the days shown */
    uint64_t days[COUNTED_DAYS];   /* received: [0] is the first day that is counted */
} counted_agent;

typedef struct fleet {
    cx_recorder *recorder;
    cx_index *index;
    cx_arena *arena;
    unsigned days;
    int64_t from_ns, to_ns; /* whole days */
    cx_str only;            /* data NULL = all agents */
    cx_map by_agent;        /* -> place in `agents` */
    CX_VEC(counted_agent) agents;
    size_t shown_count; /* the first of them, after choosing */
    unsigned step;      /* F2 */
    uint64_t left_agents, left_traces;
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

static cx_status add_means(const fleet *f, cx_json_list *list, const char *name, const mean *means,
                           cx_err *err)
{
    cx_json_list items = cx_json_list_begin(f->arena);
    cx_json value;
    for (unsigned d = 0; d < f->days; d++)
        cx_json_list_add(&items,
                         means[d].count == 0
                             ? cx_json_make_null()
                             : cx_json_make_double(f->arena, means[d].sum / means[d].count));
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_reply_add(list, name, value);
    return CX_SUCCESS;
}

/* --- one agent -------------------------------------------------------------------------------- */

typedef struct agent_rows {
    const counted_agent *counted;
    const cx_score_row *rows; /* by time, from two months before the first day on */
    size_t count;
    cx_chain_report chain;
} agent_rows;

/* The first row at that time or later. */
static size_t first_at(const agent_rows *r, int64_t ns)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->rows[middle].timestamp_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The rows with from <= timestamp < to. */
static const cx_score_row *rows_between(const agent_rows *r, int64_t from, int64_t to,
                                        size_t *out_count)
{
    size_t first = first_at(r, from);
    *out_count = first_at(r, to) - first;
    return r->rows + first;
}

/* As GET /capacity would have answered at the end of that day; the chain is verified as it is
 * now. */
static cx_status capacity_components_of(const fleet *f, const agent_rows *r, unsigned day,
                                        mean *out, cx_err *err)
{
    const int64_t month = CX_CAPACITY_DAYS * DAY_NS, at = f->from_ns + (int64_t)(day + 1) * DAY_NS;
    cx_capacity_input input = {.now_ns = at, .chain = r->chain.verdict};
    cx_capacity capacity;
    input.rows = rows_between(r, at - month, at, &input.count);
    input.baseline = rows_between(r, at - 2 * month, at - month, &input.baseline_count);
    for (unsigned d = day + 1; d < day + 1 + CX_CAPACITY_DAYS; d++)
        input.received_count += r->counted->days[d];
    CX_TRY(cx_capacity_compute(&input, f->arena, &capacity, err));
    if (capacity.confidence != CX_CONFIDENCE_INSUFFICIENT)
        add_to(out, capacity.score);
    return CX_SUCCESS;
}

static cx_status add_capacity(const fleet *f, cx_json_list *list, const agent_rows *r, cx_err *err)
{
    mean points[CX_FLEET_DAYS_MAX] = {{0}};
    for (unsigned back = 0; back < f->days; back += f->step) {
        unsigned d = f->days - 1 - back;
        cx_arena_mark mark = cx_arena_mark_now(f->arena);
        CX_TRY(capacity_components_of(f, r, d, &points[d], err));
        cx_arena_reset(f->arena, mark);
    }
    return add_means(f, list, "capacity", points, err);
}

static cx_status add_days(const fleet *f, cx_json_list *list, const agent_rows *r, cx_err *err)
{
    mean k_eff[CX_FLEET_DAYS_MAX] = {{0}}, plausibility[CX_FLEET_DAYS_MAX] = {{0}};
    uint32_t traces[CX_FLEET_DAYS_MAX] = {0};
    uint64_t fragile = 0, overridden = 0;
    size_t count;
    const cx_score_row *rows = rows_between(r, f->from_ns, f->to_ns, &count);
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
    cx_reply_add(list, "traces", value);
    cx_reply_uint(list, "fragile", fragile);
    cx_reply_uint(list, "overridden", overridden);
    CX_TRY(add_means(f, list, "k_eff", k_eff, err));
    return add_means(f, list, "plausibility", plausibility, err);
}

static cx_status add_chain(const fleet *f, cx_json_list *list, const cx_chain_report *chain,
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

static cx_status agent_json(const fleet *f, const counted_agent *counted, cx_json *out, cx_err *err)
{
    const cx_chain_options options = {.profile = CX_CHAIN_AUTO};
    agent_rows r = {.counted = counted};
    CX_TRY(cx_index_scores(f->index, counted->agent, f->from_ns - 2 * CX_CAPACITY_DAYS * DAY_NS,
                           f->to_ns, f->arena, &r.rows, &r.count, err));
    CX_TRY(cx_recorder_chain(f->recorder, f->index, counted->agent, &options, f->arena, &r.chain,
                             err));
    cx_json_list list = cx_json_list_begin(f->arena);
    cx_reply_text(&list, "agent", counted->agent);
    CX_TRY(add_chain(f, &list, &r.chain, err));
    cx_reply_time(&list, "last", r.count == 0 ? CX_TIME_NONE : r.rows[r.count - 1].timestamp_ns);
    CX_TRY(add_days(f, &list, &r, err));
    CX_TRY(add_capacity(f, &list, &r, err));
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

static cx_status count_cell(void *arg, const cx_facet_cell *cell, cx_err *err)
{
    fleet *f = arg;
    bool is_new;
    uint64_t *place = cx_map_find(&f->by_agent, cell->agent);
    if (f->only.data != NULL && !cx_str_eq(f->only, cell->agent))
        return CX_SUCCESS;
    if (place == NULL) {
        counted_agent *made = cx_vec_push(&f->agents, cx_alloc_default());
        cx_str name = cx_arena_copy_str(f->arena, cell->agent);
        if (made == NULL || name.data == NULL)
            return cx_fail_nomem(err);
        memset(made, 0, sizeof *made);
        made->agent = name;
        CX_TRY(cx_map_put(&f->by_agent, name, &place, &is_new, err));
        *place = f->agents.count - 1;
    }
    counted_agent *one = &f->agents.items[*place];
    const int64_t start = f->from_ns / DAY_NS - CX_CAPACITY_DAYS, day = cell->hour / 24 - start;
    one->all += cell->traces;
    one->verified += cell->verified ? cell->traces : 0;
    if (day >= 0 && day < CX_CAPACITY_DAYS + (int64_t)f->days) {
        one->days[day] += cell->traces;
        if (day >= CX_CAPACITY_DAYS && cell->verified)
            one->shown += cell->traces;
    }
    return CX_SUCCESS;
}

static int compare_agents(const void *a, const void *b)
{
    const counted_agent *left = a, *right = b;
    if (left->shown != right->shown)
        return left->shown > right->shown ? -1 : 1;
    return cx_str_cmp(left->agent, right->agent);
}

/* Agents without a verified trace are none (cx_index_agents). */
static void drop_unverified(fleet *f)
{
    size_t stored = 0;
    for (size_t i = 0; i < f->agents.count; i++)
        if (f->agents.items[i].verified != 0)
            f->agents.items[stored++] = f->agents.items[i];
    f->agents.count = stored;
}

/* F1, F2 */
static cx_status choose_agents(fleet *f, cx_err *err)
{
    cx_trace_query all = CX_TRACE_QUERY_INIT;
    uint64_t rows = 0;
    bool complete;
    CX_TRY(cx_index_facets(f->index, &all, count_cell, f, &complete, err));
    drop_unverified(f);
    if (f->agents.count > 1)
        qsort(f->agents.items, f->agents.count, sizeof *f->agents.items, compare_agents);
    for (size_t i = 0; i < f->agents.count; i++) {
        const counted_agent *one = &f->agents.items[i];
        if (f->shown_count == i && i < CX_FLEET_AGENTS_MAX &&
            (i == 0 || rows + one->all <= ROWS_MAX)) {
            rows += one->all;
            f->shown_count++;
        } else {
            f->left_agents++;
            f->left_traces += one->shown;
        }
    }
    for (f->step = 1; f->step < f->days && rows * (f->days / f->step) > FLEET_AGENTS_MAX;)
        f->step++;
    return CX_SUCCESS;
}

static cx_status add_dates(const fleet *f, cx_json_list *list, cx_err *err)
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
    cx_reply_add(list, "days", value);
    return CX_SUCCESS;
}

static cx_status fleet_json(fleet *f, int64_t to_ns, cx_json *out, cx_err *err)
{
    cx_json value;
    CX_TRY(find_end(f, to_ns, err));
    CX_TRY(choose_agents(f, err));
    cx_json_list items = cx_json_list_begin(f->arena);
    for (size_t i = 0; i < f->shown_count; i++) {
        cx_json item;
        CX_TRY(agent_json(f, &f->agents.items[i], &item, err));
        cx_json_list_add(&items, item);
    }
    CX_TRY(cx_json_list_end_array(&items, &value, err));
    cx_json_list list = cx_json_list_begin(f->arena), left = cx_json_list_begin(f->arena);
    cx_reply_add(&list, "agents", value);
    cx_reply_uint(&list, "capacity_step", f->step);
    CX_TRY(add_dates(f, &list, err));
    cx_reply_uint(&left, "agents", f->left_agents);
    cx_reply_uint(&left, "traces", f->left_traces);
    CX_TRY(cx_reply_end_object(&list, "left_out", &left, err));
    cx_reply_add(&list, "more", cx_json_make_bool(f->left_agents != 0));
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_answer_fleet(cx_recorder *recorder, cx_index *index,
                                   const cx_fleet_wanted *wanted, cx_buf *out, cx_err *err)
{
    cx_reply reply;
    cx_json value;
    if (wanted->days < 1 || wanted->days > CX_FLEET_DAYS_MAX)
        return cx_fail(err, CX_E_USAGE, "days: found %u, expected 1 to %d", wanted->days,
                       CX_FLEET_DAYS_MAX);
    cx_reply_begin(&reply, recorder->alloc, err);
    fleet f = {.recorder = recorder,
               .index = index,
               .arena = &reply.arena,
               .days = wanted->days,
               .only = wanted->agent};
    cx_map_init(&f.by_agent, cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_status status = fleet_json(&f, wanted->to_ns, &value, err);
    cx_map_done(&f.by_agent);
    cx_vec_done(&f.agents, cx_alloc_default());
    return cx_reply_end(&reply, status, &value, out);
}
