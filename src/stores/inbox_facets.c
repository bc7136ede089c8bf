/*
 * inbox_facets.c - the facet counts of the list.
 *
 * An item that matches all choices counts in every facet; an item that matches all but one facet
 * counts in that facet: it would be in the list if its value there were chosen instead.  So one
 * pass over all items gives all counts, as of one moment.
 */
#include <stdlib.h>

#include "base/api.h"
#include "stores/inbox_parts.h"

typedef struct tally {
    cx_str value;
    uint64_t count;
} tally;

typedef struct counting {
    cx_recorder *recorder;
    const cx_inbox_query *query;
    cx_arena *arena;
    cx_inbox_hours chosen_hours, recent_hours[3];
    cx_map by_value[CX_FACETS];
    CX_VEC(tally) tallies[CX_FACETS];
    uint64_t recent[3]; /* 1h 24h 7d */
    uint64_t total;
} counting;

static const char *const recent_names[] = {"1h", "24h", "7d"};

static cx_status add_to_value(counting *c, cx_facet facet, cx_str value, uint64_t count,
                              cx_err *err)
{
    uint64_t *place = cx_map_find(&c->by_value[facet], value);
    if (place == NULL) {
        bool is_new;
        cx_str copy = cx_arena_copy_str(c->arena, value);
        tally *one = cx_vec_push(&c->tallies[facet], cx_alloc_default());
        if (copy.data == NULL || one == NULL)
            return cx_fail_nomem(err);
        *one = (tally){copy, 0};
        CX_TRY(cx_map_put(&c->by_value[facet], copy, &place, &is_new, err));
        *place = c->tallies[facet].count - 1;
    }
    c->tallies[facet].items[*place].count += count;
    return CX_SUCCESS;
}

static cx_status add_time(counting *c, int64_t hour, uint64_t count, cx_err *err)
{
    char text[CX_TRACE_TIME_SIZE];
    if (hour == INT64_MIN)
        return CX_SUCCESS;
    for (size_t i = 0; i < 3; i++)
        if (hour >= c->recent_hours[i].from && hour < c->recent_hours[i].to)
            c->recent[i] += count;
    cx_trace_time_write(hour * CX_HOUR_NS, text);
    return add_to_value(c, CX_FACET_TIME, cx_str_from(text, 10), count, err);
}

/* Counts `count` items with these values and of one hour. */
static cx_status count_values(counting *c, const cx_str values[CX_FACETS], int64_t hour,
                              uint64_t count, cx_err *err)
{
    unsigned misses = 0;
    cx_facet missed = CX_FACETS;
    for (cx_facet f = CX_FACET_KIND; f < CX_FACETS; f++) {
        bool fits = f == CX_FACET_TIME ? hour >= c->chosen_hours.from && hour < c->chosen_hours.to
                                       : cx_inbox_is_value(c->query, f, values[f]);
        if (fits)
            continue;
        misses++;
        missed = f;
    }
    if (misses > 1)
        return CX_SUCCESS;
    if (misses == 0)
        c->total += count;
    for (cx_facet f = CX_FACET_KIND; f < CX_FACET_TIME; f++)
        if (values[f].data != NULL && (misses == 0 || missed == f))
            CX_TRY(add_to_value(c, f, values[f], count, err));
    return misses == 0 || missed == CX_FACET_TIME ? add_time(c, hour, count, err) : CX_SUCCESS;
}

static cx_status count_cell(void *arg, const cx_facet_cell *cell, cx_err *err)
{
    const cx_str values[CX_FACETS] = {
        [CX_FACET_KIND] = CX_STR("trace"),
        [CX_FACET_VERDICT] = cell->verified ? CX_STR("verified") : CX_STR("unverified"),
        [CX_FACET_GATE] = cx_str_z(cx_inbox_gates[cell->gate]),
        [CX_FACET_K_EFF] = cx_str_z(cx_inbox_k_effs[cell->k_eff]),
        [CX_FACET_LEVEL] = cx_str_z(cx_trace_level_name(cell->level)),
        [CX_FACET_AGENT] = cell->agent,
    };
    return count_values(arg, values, cell->hour, cell->traces, err);
}

static cx_status count_all(counting *c, cx_index *index, const cx_inbox_object *objects,
                           size_t count, bool *out_complete, cx_err *err)
{
    cx_inbox_object *all;
    size_t all_count;
    CX_TRY(cx_inbox_gather(index, c->query, objects, count, c->arena, &all, &all_count, err));
    for (size_t i = 0; i < all_count; i++)
        if (cx_inbox_has_words(&all[i], c->query->words))
            CX_TRY(count_values(c, all[i].values, cx_inbox_hour(all[i].when_ns), 1, err));
    *out_complete = true;
    if (index == NULL || !c->query->traces)
        return CX_SUCCESS;
    cx_trace_query wanted = CX_TRACE_QUERY_INIT;
    wanted.words = c->query->words;
    wanted.names_only = c->query->level != CX_LEVEL_FULL;
    return cx_index_facets(index, &wanted, count_cell, c, out_complete, err);
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static int compare_counts(const void *a, const void *b)
{
    const tally *left = a, *right = b;
    if (left->count != right->count)
        return left->count > right->count ? -1 : 1;
    return cx_str_cmp(left->value, right->value);
}

static int compare_days(const void *a, const void *b)
{
    const tally *left = a, *right = b;
    return cx_str_cmp(right->value, left->value);
}

static cx_status put_value(cx_json_list *values, cx_str value, uint64_t count, cx_err *err)
{
    cx_json one;
    cx_json_list list = cx_json_list_begin(values->arena);
    cx_reply_uint(&list, "count", count);
    cx_reply_text(&list, "value", value);
    CX_TRY(cx_json_list_end_object(&list, &one, err));
    cx_json_list_add(values, one);
    return CX_SUCCESS;
}

static cx_status put_facet(counting *c, cx_json_list *facets, cx_facet facet, cx_err *err)
{
    cx_json value;
    tally *items = c->tallies[facet].items;
    size_t count = c->tallies[facet].count, shown = count;
    cx_json_list values = cx_json_list_begin(c->arena), list = cx_json_list_begin(c->arena);
    if (count > 1)
        qsort(items, count, sizeof *items, facet == CX_FACET_TIME ? compare_days : compare_counts);
    if (shown > CX_INBOX_VALUES_MAX)
        shown = CX_INBOX_VALUES_MAX;
    for (size_t i = 0; facet == CX_FACET_TIME && i < 3; i++)
        CX_TRY(put_value(&values, cx_str_z(recent_names[i]), c->recent[i], err));
    /* A chosen value is always shown, even if its count is small. */
    for (size_t i = 0; i < count; i++)
        if (i < shown || (c->query->chosen[facet].data != NULL &&
                          cx_str_eq(items[i].value, c->query->chosen[facet])))
            CX_TRY(put_value(&values, items[i].value, items[i].count, err));
    CX_TRY(cx_json_list_end_array(&values, &value, err));
    cx_reply_uint(&list, "more", count - shown);
    cx_reply_add(&list, "values", value);
    return cx_reply_end_object(facets, cx_facet_name(facet), &list, err);
}

static cx_status facets_json(counting *c, cx_index *index, const cx_inbox_object *objects,
                             size_t count, cx_json *out, cx_err *err)
{
    bool complete;
    cx_json_list list = cx_json_list_begin(c->arena), facets = cx_json_list_begin(c->arena);
    CX_TRY(cx_inbox_put_position(c->recorder, index, &list, err));
    CX_TRY(count_all(c, index, objects, count, &complete, err));
    for (cx_facet f = CX_FACET_KIND; f < CX_FACETS; f++)
        CX_TRY(put_facet(c, &facets, f, err));
    cx_reply_add(&list, "complete", cx_json_make_bool(complete));
    CX_TRY(cx_reply_end_object(&list, "facets", &facets, err));
    cx_reply_uint(&list, "total", c->total);
    return cx_json_list_end_object(&list, out, err);
}

cx_status cx_recorder_inbox_facets(cx_recorder *recorder, cx_index *index,
                                   const cx_inbox_query *query, const cx_inbox_object *objects,
                                   size_t count, cx_buf *out, cx_err *err)
{
    cx_reply reply;
    cx_json value;
    cx_reply_begin(&reply, recorder == NULL ? cx_alloc_default() : recorder->alloc, err);
    counting c = {.recorder = recorder, .query = query, .arena = &reply.arena};
    c.chosen_hours = cx_inbox_hours_of(query->chosen[CX_FACET_TIME], query->now_ns);
    for (size_t i = 0; i < 3; i++)
        c.recent_hours[i] = cx_inbox_hours_of(cx_str_z(recent_names[i]), query->now_ns);
    for (cx_facet f = CX_FACET_KIND; f < CX_FACETS; f++)
        cx_map_init(&c.by_value[f], cx_alloc_default(), cx_io_seed(cx_io_system()));
    cx_status status = facets_json(&c, index, objects, count, &value, err);
    for (cx_facet f = CX_FACET_KIND; f < CX_FACETS; f++) {
        cx_map_done(&c.by_value[f]);
        cx_vec_done(&c.tallies[f], cx_alloc_default());
    }
    return cx_reply_end(&reply, status, &value, out);
}
