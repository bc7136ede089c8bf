/*
 * walk.c - Walk (ledger.md §10): breadth-first over live edges, each memory once, bounded.
 */
#include "base/api.h"
#include "memory/internal.h"

typedef struct walk {
    cx_memory_step *steps; /* space for CX_WALK_NODES_MAX; the map's keys point into it */
    size_t count;
    size_t at; /* whose edges are being read */
    unsigned depth_max;
    bool backwards;
    bool cut;
    cx_map seen;
    cx_arena scratch;
} walk;

static cx_status visit_node(walk *w, const cx_memory_step *step, cx_err *err)
{
    cx_str id = {(const char *)step->id.bytes, sizeof step->id.bytes};
    if (cx_map_find(&w->seen, id) != NULL)
        return CX_SUCCESS;
    if (step->depth > w->depth_max || w->count == CX_WALK_NODES_MAX) {
        w->cut = true;
        return CX_SUCCESS;
    }
    cx_memory_step *slot = &w->steps[w->count];
    uint64_t *value;
    bool is_new;
    *slot = *step;
    CX_TRY(cx_map_put(&w->seen, cx_str_from((const char *)slot->id.bytes, sizeof slot->id.bytes),
                      &value, &is_new, err));
    w->count++;
    return CX_SUCCESS;
}

static cx_status follow_edge(void *arg, cx_bytes key, cx_bytes value, bool *stop, cx_err *err)
{
    walk *w = arg;
    cx_edge edge;
    (void)key;
    cx_arena_mark mark = cx_arena_mark_now(&w->scratch);
    CX_TRY(cx_edge_decode(value, &w->scratch, &edge, err));
    const cx_memory_step step = {.id = w->backwards ? edge.src : edge.dst,
                                 .depth = w->steps[w->at].depth + 1,
                                 .reached_from = w->steps[w->at].id,
                                 .by_type = edge.type};
    bool live = !edge.tombstoned;
    cx_arena_reset(&w->scratch, mark);
    if (live)
        CX_TRY(visit_node(w, &step, err));
    *stop = w->cut && (w->count == CX_WALK_NODES_MAX || step.depth > w->depth_max);
    return CX_SUCCESS;
}

/* The last level is read too, to tell whether there was more. */
static cx_status walk_levels(walk *w, cx_memory *memory, cx_err *err)
{
    for (w->at = 0; w->at < w->count; w->at++) {
        const cx_memory_step *step = &w->steps[w->at];
        if (w->cut && (w->count == CX_WALK_NODES_MAX || step->depth == w->depth_max))
            return CX_SUCCESS;
        cx_memory_key prefix = cx_memory_key_of(w->backwards ? "e/to/" : "e/from/", &step->id);
        CX_TRY(cx_memory_scan(memory, cx_memory_key_bytes(&prefix), (cx_bytes){NULL, 0},
                              follow_edge, w, err));
    }
    return CX_SUCCESS;
}

static cx_status check_start(cx_memory *memory, const cx_id *start, cx_arena *scratch, cx_err *err)
{
    const cx_memory_source from = {.memory = memory, .arena = scratch};
    cx_memory_head head;
    return cx_memory_need_head(&from, start, 0, &head, err);
}

cx_status cx_memory_walk(cx_memory *memory, const cx_id *start, unsigned depth_max, bool backwards,
                         cx_arena *arena, const cx_memory_step **out, size_t *out_count,
                         bool *out_cut, cx_err *err)
{
    CX_ASSERT(memory != NULL);
    if (depth_max > CX_WALK_DEPTH_MAX)
        return cx_fail_at(err, CX_E_LIMIT, "InvalidArgument", CX_NO_OFFSET,
                          "a depth of %u, expected at most %d", depth_max, CX_WALK_DEPTH_MAX);
    walk w = {.steps = CX_ARENA_ARRAY(arena, cx_memory_step, CX_WALK_NODES_MAX),
              .depth_max = depth_max,
              .backwards = backwards};
    if (w.steps == NULL)
        return cx_fail_nomem(err);
    cx_arena_init(&w.scratch, memory->alloc, 0);
    cx_map_init(&w.seen, memory->alloc, cx_io_seed(cx_home_io(memory->home)));
    const cx_memory_step first = {.id = *start};
    cx_status status = check_start(memory, start, &w.scratch, err);
    if (!cx_failed(status))
        status = visit_node(&w, &first, err);
    if (!cx_failed(status))
        status = walk_levels(&w, memory, err);
    cx_map_done(&w.seen);
    cx_arena_done(&w.scratch);
    CX_TRY(status);
    *out = w.steps;
    *out_count = w.count;
    *out_cut = w.cut;
    return CX_SUCCESS;
}
