/*
 * detect_round.c - the detectors on a schedule: only what is new costs anything (trace.md §12.1).
 *
 * Which chains have news is read from the log, from where the last round ended.  Of each agent the
 * numbers of its new audit entries are looked up, and the chain is checked around them.  A key that
 * was added or changed gives old traces another verdict: the chains of its agents are checked whole
 * then, and so are all chains in the first round of a data directory.
 */
#include <stdlib.h>

#include "recorder/deliveries.h"
#include "recorder/internal.h"

#define DAY_NS (INT64_C(86400) * 1000000000)
/* More new traces of an agent than this: its chain is checked whole. */
#define NEW_MAX 5000

typedef struct new_trace {
    cx_str agent;
    cx_str trace_id; /* data NULL: the whole chain */
} new_trace;

typedef struct news {
    cx_detection *d;
    CX_VEC(new_trace) traces;
    cx_position end; /* what was read */
    uint64_t chains;
} news;

/* --- what is new ------------------------------------------------------------------------------ */

static cx_status add_trace(news *n, cx_str agent, cx_str trace_id, cx_err *err)
{
    new_trace *slot = cx_vec_push(&n->traces, n->d->recorder->alloc);
    if (slot == NULL)
        return cx_fail_nomem(err);
    *slot = (new_trace){.agent = cx_arena_copy_str(n->d->arena, agent)};
    if (trace_id.data != NULL)
        slot->trace_id = cx_arena_copy_str(n->d->arena, trace_id);
    bool failed =
        slot->agent.data == NULL || (trace_id.data != NULL && slot->trace_id.data == NULL);
    return failed ? cx_fail_nomem(err) : CX_SUCCESS;
}

/* The key of a trace's record: trace/<level>/<trace_id>. */
static cx_status add_received(news *n, const cx_tail_item *item, cx_err *err)
{
    for (size_t i = 0; i < item->change_count; i++) {
        cx_str key = cx_bytes_str(item->changes[i].key);
        if (!item->changes[i].removed && key.size > 8 && cx_str_starts(key, CX_STR("trace/")) &&
            key.data[7] == '/')
            CX_TRY(add_trace(n, item->actor, cx_str_from(key.data + 8, key.size - 8), err));
    }
    return CX_SUCCESS;
}

/* A key that was added (in `key`), or revoked. */
static cx_status add_key(news *n, const cx_tail_item *item, cx_err *err)
{
    cx_json change;
    const cx_keyed_row *rows;
    size_t count = 0;
    cx_status status = cx_json_parse_text(cx_bytes_str(item->payload), n->d->arena, &change, NULL);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    if (cx_failed(status) || change.type != CX_JSON_OBJECT)
        return CX_SUCCESS;
    const cx_json *key = CX_JSON_GET(&change, "key");
    cx_str id =
        CX_JSON_GET_STR(key != NULL && key->type == CX_JSON_OBJECT ? key : &change, "key_id");
    if (id.data == NULL)
        return CX_SUCCESS;
    CX_TRY(cx_index_rows_of_key(n->d->index, id, n->d->arena, &rows, &count, err));
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !cx_str_eq(rows[i].agent, rows[i - 1].agent))
            CX_TRY(add_trace(n, rows[i].agent, (cx_str){NULL, 0}, err));
    return CX_SUCCESS;
}

static cx_status add_item(news *n, const cx_tail_item *item, cx_err *err)
{
    if (!item->has_entry)
        return CX_SUCCESS;
    if (cx_str_eq(item->entry.kind, CX_KIND_RECEIVED))
        return add_received(n, item, err);
    if (cx_str_eq(item->entry.kind, CX_KIND_KEY) && cx_str_eq(item->actor, CX_ACTOR_TRUST))
        return add_key(n, item, err);
    return CX_SUCCESS;
}

/* The log from `from` to before commit `end`. */
static cx_status read_news(news *n, cx_position from, uint64_t end, cx_err *err)
{
    cx_tail *tail;
    bool at_end = false;
    n->end = from;
    CX_TRY(cx_tail_begin(n->d->recorder->home, from, &tail, err));
    cx_status status = CX_SUCCESS;
    while (n->end.commit < end) {
        cx_tail_item item;
        status = cx_tail_next(tail, &item, &at_end, err);
        if (cx_failed(status) || at_end)
            break;
        status = add_item(n, &item, err);
        if (cx_failed(status))
            break;
        n->end = item.position_after;
    }
    cx_tail_end(tail);
    return status;
}

/* --- the chains ------------------------------------------------------------------------------- */

static int by_agent(const void *a, const void *b)
{
    const new_trace *x = a, *y = b;
    int order = cx_str_cmp(x->agent, y->agent);
    if (order != 0)
        return order;
    if (x->trace_id.data == NULL || y->trace_id.data == NULL) /* the whole chain first */
        return (x->trace_id.data != NULL) - (y->trace_id.data != NULL);
    return cx_str_cmp(x->trace_id, y->trace_id);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static cx_status check_near(news *n, cx_str agent, int64_t first, int64_t last, cx_err *err)
{
    cx_chain_report report;
    cx_alerts alerts;
    cx_detection *d = n->d;
    n->chains++;
    CX_TRY(
        cx_recorder_chain_near(d->recorder, d->index, agent, first, last, d->arena, &report, err));
    CX_TRY(cx_detect_chain(agent, &report, d->now_ns, d->arena, &alerts, err));
    return cx_detection_collect(d, &alerts, err);
}

/* Numbers in sequence are checked together. */
static cx_status check_numbers(news *n, cx_str agent, int64_t *numbers, size_t count, cx_err *err)
{
    if (count != 0)
        qsort(numbers, count, sizeof *numbers, by_number);
    for (size_t i = 0; i < count;) {
        size_t end = i + 1;
        while (end < count &&
               (numbers[end] == numbers[end - 1] || numbers[end] - 1 == numbers[end - 1]))
            end++;
        CX_TRY(check_near(n, agent, numbers[i], numbers[end - 1], err));
        i = end;
    }
    return CX_SUCCESS;
}

static cx_status check_agent(news *n, const new_trace *traces, size_t count, cx_err *err)
{
    size_t found_count = 0;
    if (traces[0].trace_id.data == NULL || count > NEW_MAX) {
        n->chains++;
        return cx_detection_chain(n->d, traces[0].agent, err);
    }
    int64_t *numbers = CX_ARENA_ARRAY(n->d->arena, int64_t, count);
    if (numbers == NULL)
        return cx_fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        bool found;
        CX_TRY(cx_index_audit_number(n->d->index, traces[i].agent, traces[i].trace_id,
                                     &numbers[found_count], &found, err));
        found_count += found;
    }
    return check_numbers(n, traces[0].agent, numbers, found_count, err);
}

static cx_status check_news(news *n, cx_err *err)
{
    if (n->traces.count != 0)
        qsort(n->traces.items, n->traces.count, sizeof *n->traces.items, by_agent);
    for (size_t i = 0; i < n->traces.count;) {
        size_t end = i + 1;
        while (end < n->traces.count &&
               cx_str_eq(n->traces.items[end].agent, n->traces.items[i].agent))
            end++;
        CX_TRY(check_agent(n, &n->traces.items[i], end - i, err));
        i = end;
    }
    return CX_SUCCESS;
}

/* --- one round -------------------------------------------------------------------------------- */

/* `*out_checked`: up to where, for the next round; `*out_moved`: it is not what it was. */
static cx_status detect_new_chains(cx_detection *d, const cx_detect_schedule *schedule,
                                   uint64_t index_commits, cx_position *out_checked,
                                   bool *out_moved, uint64_t *out_chains, cx_err *err)
{
    news n = {.d = d};
    cx_position from = {0, 0};
    bool known;
    CX_TRY(cx_deliveries_checked(d->recorder, &from, &known, err));
    if (!known || from.commit > cx_home_durable(d->recorder->home)) { /* or an older backup */
        *out_checked = (cx_position){index_commits, 0};
        *out_moved = true;
        *out_chains = 1;
        return cx_detection_chains(d, err);
    }
    *out_checked = from;
    *out_moved = false;
    if (!schedule->has_seen)
        return CX_SUCCESS;
    cx_status status = read_news(&n, from, schedule->seen_commits, err);
    if (!cx_failed(status))
        status = check_news(&n, err);
    cx_vec_done(&n.traces, d->recorder->alloc);
    *out_checked = n.end;
    *out_moved = cx_position_before(from, n.end);
    *out_chains = n.chains;
    return status;
}

static cx_status detect_news(cx_detection *d, cx_detect_schedule *schedule, cx_detect_round *out,
                             cx_err *err)
{
    cx_feed_status feed;
    cx_position checked;
    bool moved;
    int64_t day = d->now_ns / DAY_NS;
    cx_recorder_feed_get_status(d->recorder, &feed);
    /* The windows move with the days, too. */
    if (schedule->scored_day != day || schedule->scored_commits != feed.index_commits)
        CX_TRY(cx_detection_scores(d, err));
    CX_TRY(detect_new_chains(d, schedule, feed.index_commits, &checked, &moved, &out->chains, err));
    out->found = d->found.count;
    CX_TRY(cx_detection_raise(d, &out->raised, err));
    if (moved)
        CX_TRY(cx_deliveries_set_checked(d->recorder, checked, err));
    *schedule = (cx_detect_schedule){.seen_commits = feed.index_commits,
                                     .has_seen = true,
                                     .scored_day = day,
                                     .scored_commits = feed.index_commits};
    return CX_SUCCESS;
}

cx_status cx_recorder_detect_round(cx_recorder *recorder, cx_index *index,
                                   cx_detect_schedule *schedule, cx_detect_round *out, cx_err *err)
{
    cx_arena arena;
    cx_arena_init(&arena, recorder->alloc, 0);
    cx_detection d = {
        .recorder = recorder, .index = index, .arena = &arena, .now_ns = cx_recorder_now(recorder)};
    *out = (cx_detect_round){0};
    cx_status status = detect_news(&d, schedule, out, err);
    cx_vec_done(&d.found, recorder->alloc);
    cx_arena_done(&arena);
    return status;
}
