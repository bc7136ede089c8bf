/*
 * hub.c - following the log for those who listen.
 *
 *   H1  Only the hub's thread reads the log and frees readers; the lock guards what it shares with
 *       the threads that send: the lists, buffers and flags.
 *   H2  A reader has been given every event behind the position it began at, up to `given`, once
 *       and in order.
 */
#include "server/feed/hub.h"

#include "base/api.h"
#include "crypto/api.h"
#include "index/api.h"

#define ROUND_FRAMES 256
#define IDLE_MS 100
#define EVENT_BYTES_MAX 4096

struct cx_hub_reader {
    cx_hub_reader *next;
    char agent[CX_ACTOR_SIZE_MAX + 1]; /* empty = any */
    bool hints;                        /* events besides those of traces, too */
    cx_position given;                 /* H2 */
    cx_tail *tail;                     /* until it has caught up; of the hub's thread */
    bool caught_up;
    /* Under the lock: */
    cx_buf buffer;
    size_t start; /* of what was not read yet */
    bool resting, over, left;
    void (*wake)(void *arg);
    void *arg;
    uint64_t last_ns; /* something was put into the buffer */
};

struct cx_hub {
    cx_service *service;
    cx_home *home;
    cx_thread thread;
    cx_lock lock;
    cx_hub_reader *readers; /* changed only by the thread; new ones come in front, under the lock */
    size_t reader_count;
    bool ending, woken;
    /* Of the thread: */
    cx_hub_reader *first; /* of the readers that a round is about */
    cx_tail *tail;        /* of those who have caught up; NULL while there are none */
    cx_buf event;
    bool event_is_hint;
};

/* --- events ----------------------------------------------------------------------------------- */

bool cx_hub_position_parse(cx_str text, cx_position *out)
{
    uint64_t parts[2] = {0, 0};
    size_t part = 0, digits = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == '.' && part == 0 && digits != 0) {
            part = 1;
            digits = 0;
        } else if (c >= '0' && c <= '9' && ++digits <= 18) {
            parts[part] = parts[part] * 10 + (uint64_t)(c - '0');
        } else {
            return false;
        }
    }
    *out = (cx_position){parts[0], parts[1]};
    return part == 1 && digits != 0;
}

/* What a record's key says: <kind>/<level>/<trace_id>[/<32 bytes>]. */
typedef struct subject {
    bool conflict;
    cx_trace_level level;
    cx_str trace_id;
} subject;

static bool read_key(cx_bytes key, subject *out)
{
    cx_str text = cx_bytes_str(key);
    size_t start = cx_str_starts(text, CX_STR("trace/"))      ? 6
                   : cx_str_starts(text, CX_STR("conflict/")) ? 9
                                                              : 0;
    size_t end = start == 9 && text.size > 33 ? text.size - 33 : text.size;
    if (start == 0 || end < start + 2 || text.data[start + 1] != '/')
        return false;
    out->conflict = start == 9;
    out->level = text.data[start] == 'g'   ? CX_LEVEL_GENERIC
                 : text.data[start] == 'd' ? CX_LEVEL_DETAILED
                                           : CX_LEVEL_FULL;
    out->trace_id = cx_str_from(text.data + start + 2, end - start - 2);
    return true;
}

static void write_text(cx_buf *out, const char *name, cx_str text)
{
    cx_buf_add_z(out, name);
    cx_json_write_str(out, text, CX_JSON_PY_COMPACT);
}

/* Only what the lowest level may show. */
static void write_event(cx_buf *out, const cx_tail_item *item, const subject *about,
                        const cx_trace_record *record)
{
    char time[CX_TRACE_TIME_SIZE];
    cx_trace_time_write(record->received_ns, time);
    cx_buf_clear(out);
    cx_buf_printf(out, "id: %llu.%llu\nevent: %s\ndata: {", (unsigned long long)item->behind.commit,
                  (unsigned long long)item->behind.frames, about->conflict ? "conflict" : "trace");
    write_text(out, "\"agent_id_hash\":", item->actor);
    write_text(out, ",\"canonical_form\":", cx_str_z(cx_trace_form_name(record->form)));
    cx_buf_add_z(out, ",\"content_sha256\":\"");
    cx_hex_add(out, cx_bytes_from(record->content.bytes, sizeof record->content.bytes));
    write_text(out, "\",\"entry\":{\"actor\":", item->actor);
    cx_buf_printf(out, ",\"seq\":%llu},\"received_at\":\"%s\"", (unsigned long long)item->entry.seq,
                  time);
    write_text(out, ",\"trace_id\":", about->trace_id);
    write_text(out, ",\"trace_level\":", cx_str_z(cx_trace_level_name(about->level)));
    cx_buf_printf(out, ",\"verified\":%s}\n\n", record->verified ? "true" : "false");
}

/* A finding was made or marked; a run began (its first event) or was sealed.  NULL: neither. */
static const char *name_of(const cx_tail_item *item)
{
    cx_str kind = item->entry.kind;
    if (cx_str_is(kind, "trace.alert") || cx_str_is(kind, "trace.alert_ack"))
        return "alert";
    bool first = cx_str_is(kind, "run.event") && item->payload.size != 0 &&
                 memmem(item->payload.data, item->payload.size, "\"index\":1,", 10) != NULL;
    return first || cx_str_is(kind, "run.seal") ? "run" : NULL;
}

/* That there is something to ask for, and nothing of it: not every reader may see every kind. */
static bool write_hint(cx_buf *out, const cx_tail_item *item, const char *name)
{
    cx_buf_clear(out);
    cx_buf_printf(out, "id: %llu.%llu\nevent: %s\n", (unsigned long long)item->behind.commit,
                  (unsigned long long)item->behind.frames, name);
    write_text(out, "data: {\"kind\":", item->entry.kind);
    cx_buf_add_z(out, "}\n\n");
    return !out->failed && out->size <= EVENT_BYTES_MAX;
}

/* Puts the frame's event into hub->event; false when it is of no interest. */
static bool make_event(cx_hub *hub, const cx_tail_item *item)
{
    subject about;
    cx_trace_record record;
    const char *name = item->has_entry ? name_of(item) : NULL;
    hub->event_is_hint = name != NULL;
    if (name != NULL)
        return write_hint(&hub->event, item, name);
    if (!item->has_entry || !cx_str_starts(item->entry.kind, CX_STR("trace.")))
        return false;
    for (size_t i = 0; i < item->change_count; i++) {
        const cx_change *change = &item->changes[i];
        if (change->removed || change->erased || !read_key(change->key, &about) ||
            cx_failed(cx_trace_record_decode(change->value, &record, NULL)))
            continue;
        write_event(&hub->event, item, &about, &record);
        return !hub->event.failed && hub->event.size <= EVENT_BYTES_MAX;
    }
    return false;
}

/* --- readers ---------------------------------------------------------------------------------- */

static void wake_reader(cx_hub_reader *reader)
{
    if (!reader->resting)
        return;
    reader->resting = false;
    reader->wake(reader->arg);
}

static void end_reader(cx_hub_reader *reader)
{
    reader->over = true;
    wake_reader(reader);
}

static bool wants(const cx_hub *hub, const cx_hub_reader *reader, cx_str actor)
{
    return hub->event_is_hint ? reader->hints
                              : reader->agent[0] == 0 || cx_str_is(actor, reader->agent);
}

/* False when there was no room. */
static bool put(cx_hub_reader *reader, cx_str text, uint64_t now)
{
    if (reader->start == reader->buffer.size) {
        cx_buf_clear(&reader->buffer);
        reader->start = 0;
    }
    if (reader->buffer.size + text.size > CX_HUB_BUFFER_BYTES)
        return false;
    cx_buf_add_str(&reader->buffer, text);
    if (reader->buffer.failed)
        return false;
    reader->last_ns = now;
    wake_reader(reader);
    return true;
}

static uint64_t now_ns(const cx_hub *hub)
{
    return hub->service->io->monotonic_ns(hub->service->io);
}

static void free_reader(cx_hub *hub, cx_hub_reader *reader)
{
    cx_tail_end(reader->tail);
    cx_buf_done(&reader->buffer);
    cx_alloc_free(hub->service->alloc, reader, sizeof *reader);
}

/* Under the lock.  H1 */
static void collect(cx_hub *hub)
{
    for (cx_hub_reader **link = &hub->readers; *link != NULL;) {
        cx_hub_reader *reader = *link;
        if (!reader->left) {
            link = &reader->next;
            continue;
        }
        *link = reader->next;
        hub->reader_count--;
        cx_gauge_add(&hub->service->metrics.feed_readers, -1);
        free_reader(hub, reader);
    }
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Room for an event whatever it is, so that catching up never drops anybody. */
static bool has_room(cx_hub *hub, cx_hub_reader *reader)
{
    cx_lock_enter(&hub->lock);
    bool room = reader->buffer.size + 2 * (size_t)EVENT_BYTES_MAX < CX_HUB_BUFFER_BYTES ||
                reader->start == reader->buffer.size;
    room &= !reader->over && !reader->left;
    cx_lock_leave(&hub->lock);
    return room;
}

static void fail_reader(cx_hub *hub, cx_hub_reader *reader, const cx_err *err)
{
    cx_service_log(hub->service, "feed: %s", err->message);
    cx_lock_enter(&hub->lock);
    end_reader(reader);
    cx_lock_leave(&hub->lock);
}

/* Brings one reader nearer to now; true when there was something to do. */
static bool catch_up(cx_hub *hub, cx_hub_reader *reader)
{
    cx_err err;
    cx_tail_item item;
    bool end = false;
    cx_status status = CX_SUCCESS;
    if (reader->tail == NULL && has_room(hub, reader))
        status = cx_tail_begin(hub->home, reader->given, &reader->tail, &err);
    for (unsigned i = 0; i < ROUND_FRAMES && !cx_failed(status); i++) {
        if (!has_room(hub, reader))
            return false;
        status = cx_tail_next(reader->tail, &item, &end, &err);
        if (cx_failed(status) || end)
            break;
        reader->given = item.behind;
        if (!make_event(hub, &item) || !wants(hub, reader, item.actor))
            continue;
        cx_lock_enter(&hub->lock);
        (void)put(reader, cx_buf_str(&hub->event), now_ns(hub));
        cx_lock_leave(&hub->lock);
        cx_counter_add(&hub->service->metrics.feed_events, 1);
    }
    if (cx_failed(status)) {
        fail_reader(hub, reader, &err);
        return false;
    }
    if (end) {
        cx_tail_end(reader->tail);
        reader->tail = NULL;
        cx_lock_enter(&hub->lock);
        reader->caught_up = true;
        cx_lock_leave(&hub->lock);
    }
    return !end;
}

/* An event for everybody who has caught up. */
static void spread(cx_hub *hub, const cx_tail_item *item)
{
    bool made = make_event(hub, item);
    cx_lock_enter(&hub->lock);
    for (cx_hub_reader *r = hub->readers; r != NULL; r = r->next) {
        if (!r->caught_up || !cx_position_before(r->given, item->behind))
            continue;
        r->given = item->behind;
        if (!made || r->over || r->left || !wants(hub, r, item->actor))
            continue;
        if (put(r, cx_buf_str(&hub->event), now_ns(hub))) {
            cx_counter_add(&hub->service->metrics.feed_events, 1);
        } else {
            cx_counter_add(&hub->service->metrics.feed_dropped, 1);
            end_reader(r);
        }
    }
    cx_lock_leave(&hub->lock);
}

/* The first reader that has caught up decides where the common tail begins. */
static cx_status need_tail(cx_hub *hub, cx_err *err)
{
    for (cx_hub_reader *r = hub->first; r != NULL && hub->tail == NULL; r = r->next)
        if (r->caught_up)
            CX_TRY(cx_tail_begin(hub->home, r->given, &hub->tail, err));
    return CX_SUCCESS;
}

static bool follow(cx_hub *hub)
{
    cx_err err;
    cx_tail_item item;
    bool end = false;
    cx_status status = need_tail(hub, &err);
    if (!cx_failed(status) && hub->tail == NULL)
        return false;
    for (unsigned i = 0; i < ROUND_FRAMES && !cx_failed(status); i++) {
        status = cx_tail_next(hub->tail, &item, &end, &err);
        if (cx_failed(status) || end)
            break;
        spread(hub, &item);
    }
    if (!cx_failed(status))
        return !end;
    /* They can go on behind what cannot be read by coming back. */
    cx_tail_end(hub->tail);
    hub->tail = NULL;
    for (cx_hub_reader *r = hub->first; r != NULL; r = r->next)
        if (r->caught_up)
            fail_reader(hub, r, &err);
    return false;
}

/* Under the lock. */
static void beat(cx_hub *hub)
{
    uint64_t now = now_ns(hub);
    for (cx_hub_reader *r = hub->readers; r != NULL; r = r->next)
        if (!r->over && now - r->last_ns >= CX_HUB_BEAT_MS * UINT64_C(1000000))
            (void)put(r, CX_STR(":\n\n"), now);
}

static bool round_of(cx_hub *hub)
{
    bool busy = false;
    for (cx_hub_reader *r = hub->first; r != NULL; r = r->next)
        if (!r->caught_up)
            busy |= catch_up(hub, r);
    return follow(hub) || busy;
}

static void work(void *arg)
{
    cx_hub *hub = arg;
    cx_lock_enter(&hub->lock);
    while (!hub->ending) {
        hub->woken = false;
        collect(hub);
        beat(hub);
        hub->first = hub->readers;
        bool none = hub->first == NULL;
        cx_lock_leave(&hub->lock);
        if (none) {
            cx_tail_end(hub->tail);
            hub->tail = NULL;
        }
        bool busy = !none && round_of(hub);
        cx_lock_enter(&hub->lock);
        if (!busy && !hub->woken && !hub->ending)
            cx_lock_wait_for(&hub->lock, none ? CX_HUB_BEAT_MS : IDLE_MS);
    }
    cx_lock_leave(&hub->lock);
}

/* --- the door --------------------------------------------------------------------------------- */

cx_status cx_hub_open(cx_service *service, cx_hub **out, cx_err *err)
{
    cx_hub *hub = cx_alloc_zeroed(service->alloc, 1, sizeof *hub);
    if (hub == NULL)
        return cx_fail_nomem(err);
    hub->service = service;
    hub->home = cx_recorder_home(service->recorder);
    cx_buf_init(&hub->event, service->alloc);
    cx_lock_init(&hub->lock);
    if (!cx_thread_start(&hub->thread, work, hub)) {
        cx_lock_done(&hub->lock);
        cx_alloc_free(service->alloc, hub, sizeof *hub);
        return cx_fail(err, CX_E_BUSY, "a thread for the feed cannot be started");
    }
    *out = hub;
    return CX_SUCCESS;
}

void cx_hub_end(cx_hub *hub)
{
    cx_lock_enter(&hub->lock);
    hub->ending = true;
    for (cx_hub_reader *r = hub->readers; r != NULL; r = r->next)
        end_reader(r);
    cx_lock_wake(&hub->lock);
    cx_lock_leave(&hub->lock);
}

void cx_hub_close(cx_hub *hub)
{
    if (hub == NULL)
        return;
    cx_hub_end(hub);
    cx_thread_join(&hub->thread);
    collect(hub);
    CX_ASSERT(hub->readers == NULL);
    cx_tail_end(hub->tail);
    cx_buf_done(&hub->event);
    cx_lock_done(&hub->lock);
    cx_alloc_free(hub->service->alloc, hub, sizeof *hub);
}

void cx_hub_wake(cx_hub *hub)
{
    if (hub == NULL)
        return;
    cx_lock_enter(&hub->lock);
    hub->woken = true;
    cx_lock_wake(&hub->lock);
    cx_lock_leave(&hub->lock);
}

static cx_status admit(cx_hub *hub, const cx_position *after, cx_position *out, cx_err *err)
{
    uint64_t durable = cx_home_durable(hub->home);
    if (hub->ending || hub->reader_count >= CX_HUB_READERS_MAX)
        return cx_fail(err, CX_E_BUSY, "there are too many readers of the feed");
    if (after != NULL && after->commit > durable)
        return cx_fail(err, CX_E_USAGE, "the position is past the end of the ledger");
    *out = after == NULL ? (cx_position){durable, 0} : *after;
    return CX_SUCCESS;
}

cx_status cx_hub_join(cx_hub *hub, const cx_hub_wish *wish, const cx_position *after,
                      void (*wake)(void *arg), void *arg, cx_hub_reader **out, cx_err *err)
{
    cx_str agent = wish->agent;
    if (agent.size > CX_ACTOR_SIZE_MAX)
        return cx_fail(err, CX_E_USAGE, "no agent has a name that long");
    cx_hub_reader *reader = cx_alloc_zeroed(hub->service->alloc, 1, sizeof *reader);
    if (reader == NULL)
        return cx_fail_nomem(err);
    if (agent.size != 0)
        memcpy(reader->agent, agent.data, agent.size);
    reader->hints = wish->hints;
    reader->wake = wake;
    reader->arg = arg;
    reader->last_ns = now_ns(hub);
    cx_buf_init(&reader->buffer, hub->service->alloc);
    cx_lock_enter(&hub->lock);
    cx_status status = admit(hub, after, &reader->given, err);
    if (!cx_failed(status)) {
        /* The first bytes make the headers go out. */
        (void)put(reader, CX_STR(":\n\n"), reader->last_ns);
        reader->next = hub->readers;
        hub->readers = reader;
        hub->reader_count++;
        hub->woken = true;
        cx_gauge_add(&hub->service->metrics.feed_readers, 1);
        cx_lock_wake(&hub->lock);
    }
    cx_lock_leave(&hub->lock);
    if (cx_failed(status)) {
        free_reader(hub, reader);
        return status;
    }
    *out = reader;
    return CX_SUCCESS;
}

void cx_hub_leave(cx_hub *hub, cx_hub_reader *reader)
{
    cx_lock_enter(&hub->lock);
    reader->left = true;
    reader->resting = false;
    hub->woken = true;
    cx_lock_wake(&hub->lock);
    cx_lock_leave(&hub->lock);
}

cx_stream_got cx_hub_read(cx_hub *hub, cx_hub_reader *reader, char *data, size_t size,
                          size_t *out_size, void (*rest)(void *arg), void *arg)
{
    cx_stream_got got = CX_STREAM_NOTHING;
    cx_lock_enter(&hub->lock);
    size_t there = reader->buffer.size - reader->start;
    if (there != 0) {
        *out_size = there < size ? there : size;
        memcpy(data, reader->buffer.data + reader->start, *out_size);
        reader->start += *out_size;
        got = CX_STREAM_BYTES;
        /* Somebody who is catching up may have waited for room. */
        if (!reader->caught_up) {
            hub->woken = true;
            cx_lock_wake(&hub->lock);
        }
    } else if (reader->over) {
        got = CX_STREAM_OVER;
    } else {
        reader->resting = true;
        rest(arg);
    }
    cx_lock_leave(&hub->lock);
    return got;
}

/* --- as the body of a call -------------------------------------------------------------------- */

typedef struct hub_stream {
    cx_stream base;
    cx_hub *hub;
    cx_hub_reader *reader;
} hub_stream;

static cx_stream_got read_hub_stream(cx_stream *self, char *data, size_t size, size_t *out_size,
                                     void (*rest)(void *arg), void *arg)
{
    hub_stream *s = (hub_stream *)self;
    return cx_hub_read(s->hub, s->reader, data, size, out_size, rest, arg);
}

static void leave_hub_stream(cx_stream *self)
{
    hub_stream *s = (hub_stream *)self;
    const cx_alloc *alloc = s->hub->service->alloc;
    cx_hub_leave(s->hub, s->reader);
    cx_alloc_free(alloc, s, sizeof *s);
}

cx_status cx_hub_stream(cx_call *call, void (*wake)(void *arg), void *arg, cx_stream **out,
                        cx_err *err)
{
    const cx_response *wanted = &call->response;
    cx_hub *hub = call->service->hub;
    hub_stream *s = cx_alloc_new(call->service->alloc, sizeof *s);
    if (s == NULL)
        return cx_fail_nomem(err);
    *s = (hub_stream){.base = {read_hub_stream, leave_hub_stream}, .hub = hub};
    const cx_hub_wish wish = {.agent = cx_call_text(call, "agent_id_hash"),
                              .hints = cx_call_flag(call, "hints")};
    cx_status status = cx_hub_join(hub, &wish, wanted->after_given ? &wanted->after : NULL, wake,
                                   arg, &s->reader, err);
    if (cx_failed(status))
        cx_alloc_free(call->service->alloc, s, sizeof *s);
    else
        *out = &s->base;
    return status;
}
