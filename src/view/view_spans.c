/*
 * view_spans.c - when the steps of a window began and ended (docs/formats/view.md).
 *
 *   "span":[began,ended, ..]   seconds; null, null where it is not known
 *
 *   S1  A step with `duration_ns` took that long.  Of spans and messages with a beginning its time
 *       is the beginning; what is written once it is over (steps of SDKs, answers of tools, lines
 *       of some sessions) has the time of its end.
 *   S2  A call without a duration lasts until its answer, the node with its `call_id` and a result,
 *       as far as that is in the window.
 *   S3  Events are read until they are BYTES_MAX together; those after that have no span.
 */
#include <math.h>

#include "lattice/answer.h"
#include "view/view_internal.h"

#define BYTES_MAX ((uint64_t)64 << 20)

typedef struct span {
    double began, ended; /* NAN = not known */
} span;

typedef struct spans {
    const cx_lattice_view *view;
    uint32_t first; /* row of items[0] */
    span *items;
    cx_map calls; /* call_id -> place in items; ids in `ids` */
    cx_arena ids;
    cx_arena event; /* of one node */
} spans;

/* S1 */
static bool is_written_after(const cx_json *event)
{
    cx_str source = CX_JSON_GET_STR(event, "source");
    return CX_JSON_GET(event, "at") == NULL || cx_str_is(source, "claude-code") ||
           cx_str_is(source, "cursor") ||
           (CX_JSON_GET(event, "result") != NULL && CX_JSON_GET(event, "arguments") == NULL);
}

static cx_status note_call(spans *s, const cx_json *call, uint32_t place, double t, cx_err *err)
{
    cx_str id = CX_JSON_GET_STR(call, "call_id");
    bool asks = CX_JSON_GET(call, "arguments") != NULL,
         answers = CX_JSON_GET(call, "result") != NULL;
    uint64_t *slot;
    if (id.size == 0 || asks == answers)
        return CX_SUCCESS;
    if (asks) {
        cx_str kept = cx_arena_copy_str(&s->ids, id);
        if (kept.data == NULL)
            return cx_fail_nomem(err);
        CX_TRY(cx_map_put(&s->calls, kept, &slot, NULL, err));
        *slot = place;
        return CX_SUCCESS;
    }
    slot = cx_map_find(&s->calls, id);
    if (slot == NULL ||
        t < cx_lattice_view_time(s->view->lattice, s->view->l.rows[s->first + *slot].node))
        return CX_SUCCESS;
    span *of = &s->items[*slot];
    if (isnan(of->began)) {
        of->began = cx_lattice_view_time(s->view->lattice, s->view->l.rows[s->first + *slot].node);
        of->ended = t;
    } else if (of->ended < t) {
        of->ended = t; /* one of several calls of a message */
    }
    return CX_SUCCESS;
}

static cx_status note_event(spans *s, const cx_json *event, uint32_t place, double t, cx_err *err)
{
    const cx_json *took = CX_JSON_GET(event, "duration_ns"),
                  *calls = CX_JSON_GET(event, "tool_calls");
    double ns;
    if (took != NULL && cx_json_is_number(took) && cx_json_double(took, &ns) && ns >= 0) {
        bool after = is_written_after(event);
        s->items[place] = (span){after ? t - ns / 1e9 : t, after ? t : t + ns / 1e9};
        return CX_SUCCESS;
    }
    CX_TRY(note_call(s, event, place, t, err));
    for (uint32_t i = 0; calls != NULL && calls->type == CX_JSON_ARRAY && i < calls->count; i++)
        CX_TRY(note_call(s, &calls->items[i], place, t, err));
    return CX_SUCCESS;
}

/* An event that cannot be read again has no span; the picture is complete without. */
static cx_status note_row(spans *s, uint32_t place, cx_err *err)
{
    const layout_row *row = &s->view->l.rows[s->first + place];
    cx_arena_mark mark = cx_arena_mark_now(&s->event);
    cx_json source;
    cx_err ignored;
    cx_status status = cx_lattice_source(s->view->lattice, row->node, &s->event, &source, &ignored);
    if (status.code == CX_E_NOMEM)
        return cx_fail_nomem(err);
    const cx_json *event =
        cx_failed(status) ? NULL : cx_json_get_typed(&source, CX_STR("event"), CX_JSON_OBJECT);
    status = event == NULL ? CX_SUCCESS
                           : note_event(s, event, place,
                                        cx_lattice_view_time(s->view->lattice, row->node), err);
    cx_arena_reset(&s->event, mark);
    return status;
}

/* About how much of the file is read for a node; in documents it may lie anywhere. */
static uint64_t bytes_of(const cx_lattice *lattice, cx_node n)
{
    uint64_t at = node_at(lattice, n)->offset;
    uint64_t next = n + 1 < lattice->nodes.count ? node_at(lattice, n + 1)->offset : at;
    return next > at ? next - at : 0;
}

static cx_status note_rows(spans *s, uint32_t count, cx_err *err)
{
    uint64_t read = 0;
    for (uint32_t i = 0; i < count; i++)
        s->items[i] = (span){(double)NAN, (double)NAN};
    if (!s->view->l.timed)
        return CX_SUCCESS;
    for (uint32_t i = 0; i < count && read < BYTES_MAX; i++) {
        const layout_row *row = &s->view->l.rows[s->first + i];
        if (row->folded != 0)
            continue;
        read += bytes_of(s->view->lattice, row->node);
        CX_TRY(note_row(s, i, err));
    }
    return CX_SUCCESS;
}

cx_status cx_lattice_view_put_spans(cx_buf *out, const cx_lattice_view *view, uint32_t first,
                                    uint32_t last, cx_err *err)
{
    const cx_alloc *alloc = view->lattice->alloc;
    uint32_t count = last - first;
    spans s = {.view = view, .first = first};
    s.items = cx_alloc_zeroed(alloc, (size_t)count + 1, sizeof *s.items);
    if (s.items == NULL)
        return cx_fail_nomem(err);
    cx_map_init(&s.calls, alloc, view->lattice->seed);
    cx_arena_init(&s.ids, alloc, 0);
    cx_arena_init(&s.event, alloc, 0);
    cx_status status = note_rows(&s, count, err);
    cx_buf_add_z(out, "\"span\":[");
    for (uint32_t i = 0; i < count && !cx_failed(status); i++) {
        cx_buf_add_z(out, i == 0 ? "" : ",");
        cx_lattice_view_put_double(out, s.items[i].began);
        cx_buf_add_byte(out, ',');
        cx_lattice_view_put_double(out, s.items[i].ended);
    }
    cx_buf_add_z(out, "],");
    cx_arena_done(&s.event);
    cx_arena_done(&s.ids);
    cx_map_done(&s.calls);
    cx_alloc_free(alloc, s.items, ((size_t)count + 1) * sizeof *s.items);
    return status;
}
