/*
 * part_watch.c - a fleet as its database says (part_watch.h).
 */
#include "server/feed/part_watch.h"

#include <string.h>

#include "fleet/api.h"

#define ASK_MS 2000
#define ANSWER_MS 3000  /* of the database */
#define SILENT_MS 5000  /* a node says every second that it is there */
#define GONE_MS 3600000 /* .. and is not told of any more */
#define ROWS_MAX 4096
#define MS UINT64_C(1000000)

struct cx_part_watch {
    cx_part_watch_options options;
    cx_thread thread;
    cx_fleet *fleet; /* of the thread */
    cx_lock lock;    /* guards what follows */
    bool ends, away, known, strict;
    uint8_t id[16];
    uint64_t asked_ns;
    cx_arena arena; /* of the rows */
    CX_VEC(cx_watched_part) parts;
    CX_VEC(cx_watched_node) nodes;
    CX_VEC(cx_watched_event) events;
};

static uint64_t now_ns(void)
{
    const cx_io *io = cx_io_system();
    return io->monotonic_ns(io);
}

/* PW2 */
static bool is_told(const cx_part_watch *w, cx_str part)
{
    return cx_str_is(w->options.part, CX_FLEET_MAIN) || cx_str_eq(part, w->options.part);
}

/* --- asking ----------------------------------------------------------------------------------- */

/* What is being read; the lock is not held meanwhile. */
typedef struct reading {
    const cx_part_watch *watch;
    cx_arena arena;
    CX_VEC(cx_watched_part) parts;
    CX_VEC(cx_watched_node) nodes;
    CX_VEC(cx_watched_event) events;
} reading;

static cx_str kept(reading *r, cx_str text)
{
    return text.size == 0 ? CX_STR("") : cx_arena_copy_str(&r->arena, text);
}

/* Of "NODE/process". */
static cx_str node_of(cx_str owner)
{
    size_t size = owner.size;
    while (size != 0 && owner.data[size - 1] != '/')
        size--;
    return size > 1 ? cx_str_from(owner.data, size - 1) : CX_STR("");
}

static cx_status note_part(void *arg, const cx_fleet_row *row, cx_err *err)
{
    reading *r = arg;
    if (!is_told(r->watch, row->name) || r->parts.count == ROWS_MAX)
        return CX_SUCCESS;
    cx_watched_part *part = cx_vec_push(&r->parts, cx_alloc_default());
    if (part == NULL)
        return cx_fail_nomem(err);
    *part = (cx_watched_part){
        .number = row->number,
        .epoch = row->epoch,
        .commits = row->next,
        .bytes = row->bytes,
        .files = row->files,
        .fences = row->fences,
        .handed = row->handed,
        .quota = row->quota,
        .stored = row->stored,
        .name = kept(r, row->name),
        .node = row->lease_left_ms > 0 ? kept(r, node_of(row->owner)) : CX_STR(""),
        .address = row->lease_left_ms > 0 ? kept(r, row->address) : CX_STR(""),
        .moved_to = kept(r, row->moved_to),
        .going_to = kept(r, row->going_to),
        .lease_left_ms = row->lease_left_ms > 0 ? row->lease_left_ms : 0,
        .stopped = row->stopped};
    memcpy(part->id, row->id, sizeof part->id);
    return CX_SUCCESS;
}

static cx_status note_node(void *arg, const cx_fleet_node_row *row, cx_err *err)
{
    reading *r = arg;
    if (!is_told(r->watch, row->part) || row->silent_ms > GONE_MS || r->nodes.count == ROWS_MAX)
        return CX_SUCCESS;
    cx_watched_node *node = cx_vec_push(&r->nodes, cx_alloc_default());
    if (node == NULL)
        return cx_fail_nomem(err);
    *node = (cx_watched_node){.name = kept(r, row->node),
                              .part = kept(r, row->part),
                              .address = kept(r, row->address),
                              .version = kept(r, row->version),
                              .silent_ms = row->silent_ms,
                              .up_ms = row->up_ms,
                              .draining = row->draining,
                              .has_relay = row->has_counts,
                              .relay = {row->counts.open, row->counts.held, row->counts.own,
                                        row->counts.accepted, row->counts.given_up,
                                        row->counts.refused},
                              .alive = row->silent_ms <= SILENT_MS};
    return CX_SUCCESS;
}

static cx_status note_event(void *arg, const cx_fleet_event *row, cx_err *err)
{
    reading *r = arg;
    cx_watched_event *event = cx_vec_push(&r->events, cx_alloc_default());
    if (event == NULL)
        return cx_fail_nomem(err);
    *event = (cx_watched_event){.part = kept(r, row->part),
                                .node = kept(r, node_of(row->owner)),
                                .kind = kept(r, row->kind),
                                .detail = kept(r, row->detail),
                                .at = kept(r, row->at),
                                .epoch = row->epoch,
                                .ago_ms = row->ago_ms,
                                .ended_lease = row->ended_lease};
    return CX_SUCCESS;
}

static cx_status read_rows(cx_part_watch *w, reading *r, cx_err *err)
{
    const cx_fleet_options options = {
        .node = "cortex-watch", .answer_ms = ANSWER_MS, .read_only = true};
    if (w->fleet == NULL)
        CX_TRY(cx_fleet_open(w->options.url, &options, &w->fleet, err));
    CX_TRY(cx_fleet_list(w->fleet, note_part, r, err));
    CX_TRY(cx_fleet_list_nodes(w->fleet, note_node, r, err));
    /* PW2 */
    return cx_fleet_list_events(
        w->fleet, cx_str_is(w->options.part, CX_FLEET_MAIN) ? CX_STR("") : w->options.part,
        CX_WATCHED_EVENTS_MAX, note_event, r, err);
}

static void done_reading(reading *r)
{
    cx_vec_done(&r->parts, cx_alloc_default());
    cx_vec_done(&r->nodes, cx_alloc_default());
    cx_vec_done(&r->events, cx_alloc_default());
    cx_arena_done(&r->arena);
}

/* What was known goes out with `r`. */
static void exchange(cx_part_watch *w, reading *r)
{
    reading old = {.arena = w->arena};
    memcpy(&old.parts, &w->parts, sizeof old.parts);
    memcpy(&old.nodes, &w->nodes, sizeof old.nodes);
    memcpy(&old.events, &w->events, sizeof old.events);
    memcpy(&w->parts, &r->parts, sizeof w->parts);
    memcpy(&w->nodes, &r->nodes, sizeof w->nodes);
    memcpy(&w->events, &r->events, sizeof w->events);
    w->arena = r->arena;
    *r = old;
    w->known = true;
    w->asked_ns = now_ns();
    w->strict = cx_fleet_is_strict(w->fleet);
    cx_fleet_id(w->fleet, w->id);
}

static void ask(cx_part_watch *w)
{
    reading r = {.watch = w};
    cx_arena_init(&r.arena, cx_alloc_default(), 0);
    cx_err ignored;
    cx_status status = read_rows(w, &r, &ignored);
    cx_lock_enter(&w->lock);
    w->away = cx_failed(status);
    if (!w->away)
        exchange(w, &r);
    cx_lock_leave(&w->lock);
    done_reading(&r);
}

static void run_watch(void *arg)
{
    cx_part_watch *w = arg;
    cx_lock_enter(&w->lock);
    while (!w->ends) {
        cx_lock_leave(&w->lock);
        ask(w);
        cx_lock_enter(&w->lock);
        if (!w->ends)
            cx_lock_wait_for(&w->lock, ASK_MS);
    }
    cx_lock_leave(&w->lock);
}

/* --- opening ---------------------------------------------------------------------------------- */

cx_status cx_part_watch_open(const cx_part_watch_options *options, cx_part_watch **out, cx_err *err)
{
    cx_part_watch *w = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *w);
    if (w == NULL)
        return cx_fail_nomem(err);
    w->options = *options;
    cx_lock_init(&w->lock);
    cx_arena_init(&w->arena, cx_alloc_default(), 0);
    if (!cx_thread_start(&w->thread, run_watch, w)) {
        cx_part_watch_close(w);
        return cx_fail(err, CX_E_BUSY, "a thread cannot be started");
    }
    *out = w;
    return CX_SUCCESS;
}

void cx_part_watch_close(cx_part_watch *w)
{
    if (w == NULL)
        return;
    if (w->thread.started) {
        cx_lock_enter(&w->lock);
        w->ends = true;
        cx_lock_wake(&w->lock);
        cx_lock_leave(&w->lock);
        cx_thread_join(&w->thread);
    }
    cx_fleet_close(w->fleet);
    cx_vec_done(&w->parts, cx_alloc_default());
    cx_vec_done(&w->nodes, cx_alloc_default());
    cx_vec_done(&w->events, cx_alloc_default());
    cx_arena_done(&w->arena);
    cx_lock_done(&w->lock);
    cx_alloc_free(cx_alloc_default(), w, sizeof *w);
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool copy_texts(cx_arena *arena, cx_str **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        *texts[i] = texts[i]->size == 0 ? CX_STR("") : cx_arena_copy_str(arena, *texts[i]);
        if (texts[i]->data == NULL)
            return false;
    }
    return true;
}

/* With the lock held. */
static bool copy_rows(const cx_part_watch *w, cx_arena *arena, cx_watched_fleet *out)
{
    cx_watched_part *parts = CX_ARENA_ARRAY(arena, cx_watched_part, w->parts.count + 1);
    cx_watched_node *nodes = CX_ARENA_ARRAY(arena, cx_watched_node, w->nodes.count + 1);
    cx_watched_event *events = CX_ARENA_ARRAY(arena, cx_watched_event, w->events.count + 1);
    if (parts == NULL || nodes == NULL || events == NULL)
        return false;
    for (size_t i = 0; i < w->parts.count; i++) {
        parts[i] = w->parts.items[i];
        cx_str *texts[] = {&parts[i].name, &parts[i].node, &parts[i].address, &parts[i].moved_to,
                           &parts[i].going_to};
        if (!copy_texts(arena, texts, CX_COUNT_OF(texts)))
            return false;
    }
    for (size_t i = 0; i < w->nodes.count; i++) {
        nodes[i] = w->nodes.items[i];
        cx_str *texts[] = {&nodes[i].name, &nodes[i].part, &nodes[i].address, &nodes[i].version};
        if (!copy_texts(arena, texts, CX_COUNT_OF(texts)))
            return false;
    }
    for (size_t i = 0; i < w->events.count; i++) {
        events[i] = w->events.items[i];
        cx_str *texts[] = {&events[i].part, &events[i].node, &events[i].kind, &events[i].detail,
                           &events[i].at};
        if (!copy_texts(arena, texts, CX_COUNT_OF(texts)))
            return false;
    }
    out->parts = parts;
    out->nodes = nodes;
    out->events = events;
    out->event_count = w->events.count;
    out->part_count = w->parts.count;
    out->node_count = w->nodes.count;
    return true;
}

cx_status cx_part_watch_read(cx_part_watch *w, cx_arena *arena, cx_watched_fleet *out, cx_err *err)
{
    const cx_part_watch_options *o = &w->options;
    *out = (cx_watched_fleet){.part = o->part, .node = o->node};
    cx_lock_enter(&w->lock);
    bool copied = copy_rows(w, arena, out);
    out->known = w->known;
    out->away = w->away;
    out->strict = w->strict;
    out->age_ms = w->known ? (now_ns() - w->asked_ns) / MS : 0;
    memcpy(out->id, w->id, sizeof out->id);
    cx_lock_leave(&w->lock);
    if (!copied)
        return cx_fail_nomem(err);
    if (o->relay != NULL)
        o->relay(o->arg, &out->relay);
    out->has_tables_age = o->tables_age != NULL && o->tables_age(o->arg, &out->tables_age_ms);
    return CX_SUCCESS;
}
