/*
 * live_feed.c - follows the log for the readers of the feed (invariants: live_feed.h).
 */
#include "server/feed/live_feed.h"

#include "base/api.h"
#include "crypto/api.h"
#include "index/api.h"

#define FRAMES_PER_ROUND 256
#define IDLE_MS 100
#define EVENT_BYTES_MAX 4096

struct cx_live_feed_reader {
    cx_live_feed_reader *next;
    char agent[CX_ACTOR_SIZE_MAX + 1]; /* empty = any */
    bool hints;                        /* events besides those of traces, too */
    cx_position delivered;             /* I2 */
    cx_tail *tail;                     /* until it has caught up; used by the feed's thread only */
    bool caught_up;
    /* Under the lock: */
    cx_buf buffer;
    size_t start; /* of what was not read yet */
    bool is_waiting, has_ended, has_left;
    void (*wake)(void *arg);
    void *arg;
    uint64_t last_ns; /* something was put into the buffer */
};

struct cx_live_feed {
    cx_service *service;
    cx_home *home;
    cx_thread thread;
    cx_lock lock;
    cx_live_feed_reader
        *readers; /* changed only by the thread; new ones are prepended, under the lock */
    size_t reader_count;
    bool ending, woken;
    /* Of the thread: */
    cx_live_feed_reader *first; /* of the readers that a round is about */
    cx_tail *tail;              /* of those who have caught up; NULL while there are none */
    cx_buf event;
    bool event_is_hint;
};

/* --- events ----------------------------------------------------------------------------------- */

bool cx_live_feed_position_parse(cx_str text, cx_position *out)
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

/* A parsed record key: <kind>/<level>/<trace_id>[/<32 bytes>]. */
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
    cx_buf_printf(
        out, "id: %llu.%llu\nevent: %s\ndata: {", (unsigned long long)item->position_after.commit,
        (unsigned long long)item->position_after.frames, about->conflict ? "conflict" : "trace");
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

/* An alert was raised or acknowledged; a step was recorded; a hook was decided; a run began (its
 * first event) or was sealed. NULL: none of these. */
static const char *hint_name_of(const cx_tail_item *item)
{
    cx_str kind = item->entry.kind;
    if (cx_kinds_is(kind, CX_KIND_TRACE_ALERT) || cx_kinds_is(kind, CX_KIND_TRACE_ALERT_ACK))
        return "alert";
    if (cx_kinds_is(kind, CX_KIND_LATTICE_NODE))
        return "step";
    if (cx_str_starts(kind, CX_STR("live.")))
        return "session";
    bool first = cx_kinds_is(kind, CX_KIND_RUN_EVENT) && item->payload.size != 0 &&
                 memmem(item->payload.data, item->payload.size, "\"index\":1,", 10) != NULL;
    return first || cx_kinds_is(kind, CX_KIND_RUN_SEAL) ? "run" : NULL;
}

/* A hint has no content, only that there is news: not every reader may see every kind. */
static bool write_hint(cx_buf *out, const cx_tail_item *item, const char *name)
{
    cx_buf_clear(out);
    cx_buf_printf(out, "id: %llu.%llu\nevent: %s\n",
                  (unsigned long long)item->position_after.commit,
                  (unsigned long long)item->position_after.frames, name);
    write_text(out, "data: {\"kind\":", item->entry.kind);
    cx_buf_add_z(out, "}\n\n");
    return !out->failed && out->size <= EVENT_BYTES_MAX;
}

/* Writes the frame's event to feed->event; false when the frame makes no event. */
static bool make_event(cx_live_feed *feed, const cx_tail_item *item)
{
    subject about;
    cx_trace_record record;
    const char *name = item->has_entry ? hint_name_of(item) : NULL;
    feed->event_is_hint = name != NULL;
    if (name != NULL)
        return write_hint(&feed->event, item, name);
    if (!item->has_entry || !cx_str_starts(item->entry.kind, CX_STR("trace.")))
        return false;
    for (size_t i = 0; i < item->change_count; i++) {
        const cx_change *change = &item->changes[i];
        if (change->removed || change->erased || !read_key(change->key, &about) ||
            cx_failed(cx_trace_record_decode(change->value, &record, NULL)))
            continue;
        write_event(&feed->event, item, &about, &record);
        return !feed->event.failed && feed->event.size <= EVENT_BYTES_MAX;
    }
    return false;
}

/* --- readers ---------------------------------------------------------------------------------- */

static void wake_reader(cx_live_feed_reader *reader)
{
    if (!reader->is_waiting)
        return;
    reader->is_waiting = false;
    reader->wake(reader->arg);
}

static void end_reader(cx_live_feed_reader *reader)
{
    reader->has_ended = true;
    wake_reader(reader);
}

static bool reader_wants(const cx_live_feed *feed, const cx_live_feed_reader *reader, cx_str actor)
{
    return feed->event_is_hint ? reader->hints
                               : reader->agent[0] == 0 || cx_str_is(actor, reader->agent);
}

/* False when the buffer is full. */
static bool buffer_event(cx_live_feed_reader *reader, cx_str text, uint64_t now)
{
    CX_ASSERT(reader->start <= reader->buffer.size);
    if (reader->start == reader->buffer.size) {
        cx_buf_clear(&reader->buffer);
        reader->start = 0;
    }
    if (reader->buffer.size + text.size > CX_LIVE_FEED_BUFFER_BYTES)
        return false;
    cx_buf_add_str(&reader->buffer, text);
    if (reader->buffer.failed)
        return false;
    CX_ASSERT(reader->buffer.size <= CX_LIVE_FEED_BUFFER_BYTES); /* I3 */
    reader->last_ns = now;
    wake_reader(reader);
    return true;
}

static uint64_t now_ns(const cx_live_feed *feed)
{
    return feed->service->io->monotonic_ns(feed->service->io);
}

static void free_reader(cx_live_feed *feed, cx_live_feed_reader *reader)
{
    cx_tail_end(reader->tail);
    cx_buf_done(&reader->buffer);
    cx_alloc_free(feed->service->alloc, reader, sizeof *reader);
}

/* Under the lock.  I1 */
static void free_left_readers(cx_live_feed *feed)
{
    for (cx_live_feed_reader **link = &feed->readers; *link != NULL;) {
        cx_live_feed_reader *reader = *link;
        if (!reader->has_left) {
            link = &reader->next;
            continue;
        }
        *link = reader->next;
        CX_ASSERT(feed->reader_count > 0);
        feed->reader_count--;
        cx_gauge_add(&feed->service->metrics.feed_readers, -1);
        free_reader(feed, reader);
    }
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Whether any event fits, so that catching up never drops a reader. */
static bool has_space(cx_live_feed *feed, cx_live_feed_reader *reader)
{
    cx_lock_enter(&feed->lock);
    bool has_space_now =
        reader->buffer.size + 2 * (size_t)EVENT_BYTES_MAX < CX_LIVE_FEED_BUFFER_BYTES ||
        reader->start == reader->buffer.size;
    has_space_now &= !reader->has_ended && !reader->has_left;
    cx_lock_leave(&feed->lock);
    return has_space_now;
}

static void end_reader_after_error(cx_live_feed *feed, cx_live_feed_reader *reader,
                                   const cx_err *err)
{
    cx_service_log(feed->service, "feed: %s", err->message);
    cx_lock_enter(&feed->lock);
    end_reader(reader);
    cx_lock_leave(&feed->lock);
}

/* Brings one reader nearer to now; true when there was something to do. */
static bool catch_up_reader(cx_live_feed *feed, cx_live_feed_reader *reader)
{
    cx_err err;
    cx_tail_item item;
    bool end = false;
    cx_status status = CX_SUCCESS;
    if (reader->tail == NULL && has_space(feed, reader))
        status = cx_tail_begin(feed->home, reader->delivered, &reader->tail, &err);
    for (unsigned i = 0; i < FRAMES_PER_ROUND && !cx_failed(status); i++) {
        if (!has_space(feed, reader))
            return false;
        status = cx_tail_next(reader->tail, &item, &end, &err);
        if (cx_failed(status) || end)
            break;
        reader->delivered = item.position_after;
        if (!make_event(feed, &item) || !reader_wants(feed, reader, item.actor))
            continue;
        cx_lock_enter(&feed->lock);
        (void)buffer_event(reader, cx_buf_str(&feed->event), now_ns(feed));
        cx_lock_leave(&feed->lock);
        cx_counter_add(&feed->service->metrics.feed_events, 1);
    }
    if (cx_failed(status)) {
        end_reader_after_error(feed, reader, &err);
        return false;
    }
    if (end) {
        cx_tail_end(reader->tail);
        reader->tail = NULL;
        cx_lock_enter(&feed->lock);
        reader->caught_up = true;
        cx_lock_leave(&feed->lock);
    }
    return !end;
}

/* Delivers an event to all readers that have caught up. */
static void deliver_event(cx_live_feed *feed, const cx_tail_item *item)
{
    bool made = make_event(feed, item);
    cx_lock_enter(&feed->lock);
    for (cx_live_feed_reader *r = feed->readers; r != NULL; r = r->next) {
        if (!r->caught_up || !cx_position_before(r->delivered, item->position_after))
            continue;
        r->delivered = item->position_after;
        if (!made || r->has_ended || r->has_left || !reader_wants(feed, r, item->actor))
            continue;
        if (buffer_event(r, cx_buf_str(&feed->event), now_ns(feed))) {
            cx_counter_add(&feed->service->metrics.feed_events, 1);
        } else {
            cx_counter_add(&feed->service->metrics.feed_dropped, 1);
            end_reader(r);
        }
    }
    cx_lock_leave(&feed->lock);
}

/* The first reader that has caught up decides where the common tail begins. */
static cx_status begin_shared_tail(cx_live_feed *feed, cx_err *err)
{
    for (cx_live_feed_reader *r = feed->first; r != NULL && feed->tail == NULL; r = r->next)
        if (r->caught_up)
            CX_TRY(cx_tail_begin(feed->home, r->delivered, &feed->tail, err));
    return CX_SUCCESS;
}

static bool follow_log(cx_live_feed *feed)
{
    cx_err err;
    cx_tail_item item;
    bool end = false;
    cx_status status = begin_shared_tail(feed, &err);
    if (!cx_failed(status) && feed->tail == NULL)
        return false;
    for (unsigned i = 0; i < FRAMES_PER_ROUND && !cx_failed(status); i++) {
        status = cx_tail_next(feed->tail, &item, &end, &err);
        if (cx_failed(status) || end)
            break;
        deliver_event(feed, &item);
    }
    if (!cx_failed(status))
        return !end;
    /* A reader can continue after unreadable frames by reconnecting. */
    cx_tail_end(feed->tail);
    feed->tail = NULL;
    for (cx_live_feed_reader *r = feed->first; r != NULL; r = r->next)
        if (r->caught_up)
            end_reader_after_error(feed, r, &err);
    return false;
}

/* Under the lock. */
static void send_keepalives(cx_live_feed *feed)
{
    uint64_t now = now_ns(feed);
    for (cx_live_feed_reader *r = feed->readers; r != NULL; r = r->next)
        if (!r->has_ended && now - r->last_ns >= CX_LIVE_FEED_KEEPALIVE_MS * UINT64_C(1000000))
            (void)buffer_event(r, CX_STR(":\n\n"), now);
}

static bool serve_round(cx_live_feed *feed)
{
    bool busy = false;
    for (cx_live_feed_reader *r = feed->first; r != NULL; r = r->next)
        if (!r->caught_up)
            busy |= catch_up_reader(feed, r);
    return follow_log(feed) || busy;
}

static void run_feed_thread(void *arg)
{
    cx_live_feed *feed = arg;
    cx_lock_enter(&feed->lock);
    while (!feed->ending) {
        feed->woken = false;
        free_left_readers(feed);
        send_keepalives(feed);
        feed->first = feed->readers;
        bool none = feed->first == NULL;
        cx_lock_leave(&feed->lock);
        if (none) {
            cx_tail_end(feed->tail);
            feed->tail = NULL;
        }
        bool busy = !none && serve_round(feed);
        cx_lock_enter(&feed->lock);
        if (!busy && !feed->woken && !feed->ending)
            cx_lock_wait_for(&feed->lock, none ? CX_LIVE_FEED_KEEPALIVE_MS : IDLE_MS);
    }
    cx_lock_leave(&feed->lock);
}

/* --- public interface ------------------------------------------------------------------------- */

cx_status cx_live_feed_open(cx_service *service, cx_live_feed **out, cx_err *err)
{
    CX_ASSERT(service->recorder != NULL);
    cx_live_feed *feed = cx_alloc_zeroed(service->alloc, 1, sizeof *feed);
    if (feed == NULL)
        return cx_fail_nomem(err);
    feed->service = service;
    feed->home = cx_recorder_home(service->recorder);
    cx_buf_init(&feed->event, service->alloc);
    cx_lock_init(&feed->lock);
    if (!cx_thread_start(&feed->thread, run_feed_thread, feed)) {
        cx_lock_done(&feed->lock);
        cx_alloc_free(service->alloc, feed, sizeof *feed);
        return cx_fail(err, CX_E_BUSY, "cannot start the thread of the live feed");
    }
    *out = feed;
    return CX_SUCCESS;
}

void cx_live_feed_end(cx_live_feed *feed)
{
    cx_lock_enter(&feed->lock);
    feed->ending = true;
    for (cx_live_feed_reader *r = feed->readers; r != NULL; r = r->next)
        end_reader(r);
    cx_lock_wake(&feed->lock);
    cx_lock_leave(&feed->lock);
}

void cx_live_feed_close(cx_live_feed *feed)
{
    if (feed == NULL)
        return;
    cx_live_feed_end(feed);
    cx_thread_join(&feed->thread);
    free_left_readers(feed);
    CX_ASSERT(feed->readers == NULL && feed->reader_count == 0); /* I4: all have left */
    cx_tail_end(feed->tail);
    cx_buf_done(&feed->event);
    cx_lock_done(&feed->lock);
    cx_alloc_free(feed->service->alloc, feed, sizeof *feed);
}

void cx_live_feed_wake(cx_live_feed *feed)
{
    if (feed == NULL)
        return;
    cx_lock_enter(&feed->lock);
    feed->woken = true;
    cx_lock_wake(&feed->lock);
    cx_lock_leave(&feed->lock);
}

static cx_status admit_reader(cx_live_feed *feed, const cx_position *after, cx_position *out,
                              cx_err *err)
{
    uint64_t durable = cx_home_durable(feed->home);
    if (feed->ending || feed->reader_count >= CX_LIVE_FEED_READERS_MAX)
        return cx_fail(err, CX_E_BUSY, "too many readers of the live feed");
    if (after != NULL && after->commit > durable)
        return cx_fail(err, CX_E_USAGE, "the position is past the end of the ledger");
    *out = after == NULL ? (cx_position){durable, 0} : *after;
    return CX_SUCCESS;
}

cx_status cx_live_feed_join(cx_live_feed *feed, const cx_live_filter *filter,
                            const cx_position *after, void (*wake)(void *arg), void *arg,
                            cx_live_feed_reader **out, cx_err *err)
{
    cx_str agent = filter->agent;
    CX_ASSERT(wake != NULL);
    if (agent.size > CX_ACTOR_SIZE_MAX)
        return cx_fail(err, CX_E_USAGE, "the agent's name is too long");
    cx_live_feed_reader *reader = cx_alloc_zeroed(feed->service->alloc, 1, sizeof *reader);
    if (reader == NULL)
        return cx_fail_nomem(err);
    if (agent.size != 0)
        memcpy(reader->agent, agent.data, agent.size);
    reader->hints = filter->hints;
    reader->wake = wake;
    reader->arg = arg;
    reader->last_ns = now_ns(feed);
    cx_buf_init(&reader->buffer, feed->service->alloc);
    cx_lock_enter(&feed->lock);
    cx_status status = admit_reader(feed, after, &reader->delivered, err);
    if (!cx_failed(status)) {
        /* The first bytes make the headers go out. */
        (void)buffer_event(reader, CX_STR(":\n\n"), reader->last_ns);
        reader->next = feed->readers;
        feed->readers = reader;
        feed->reader_count++;
        feed->woken = true;
        cx_gauge_add(&feed->service->metrics.feed_readers, 1);
        cx_lock_wake(&feed->lock);
    }
    cx_lock_leave(&feed->lock);
    if (cx_failed(status)) {
        free_reader(feed, reader);
        return status;
    }
    *out = reader;
    return CX_SUCCESS;
}

void cx_live_feed_leave(cx_live_feed *feed, cx_live_feed_reader *reader)
{
    cx_lock_enter(&feed->lock);
    CX_ASSERT(!reader->has_left); /* I4 */
    reader->has_left = true;
    reader->is_waiting = false;
    feed->woken = true;
    cx_lock_wake(&feed->lock);
    cx_lock_leave(&feed->lock);
}

cx_stream_result cx_live_feed_read(cx_live_feed *feed, cx_live_feed_reader *reader, char *data,
                                   size_t size, size_t *out_size, void (*rest)(void *arg),
                                   void *arg)
{
    cx_stream_result got = CX_STREAM_WAIT;
    cx_lock_enter(&feed->lock);
    CX_ASSERT(!reader->has_left && reader->start <= reader->buffer.size); /* I4 */
    size_t unread = reader->buffer.size - reader->start;
    if (unread != 0) {
        *out_size = unread < size ? unread : size;
        memcpy(data, reader->buffer.data + reader->start, *out_size);
        reader->start += *out_size;
        got = CX_STREAM_BYTES;
        /* A reader that is catching up may have waited for buffer space. */
        if (!reader->caught_up) {
            feed->woken = true;
            cx_lock_wake(&feed->lock);
        }
    } else if (reader->has_ended) {
        got = CX_STREAM_END;
    } else {
        reader->is_waiting = true;
        rest(arg);
    }
    cx_lock_leave(&feed->lock);
    return got;
}

/* --- as the body of a call -------------------------------------------------------------------- */

typedef struct feed_stream {
    cx_stream base;
    cx_live_feed *feed;
    cx_live_feed_reader *reader;
} feed_stream;

static cx_stream_result read_feed_stream(cx_stream *self, char *data, size_t size, size_t *out_size,
                                         void (*rest)(void *arg), void *arg)
{
    feed_stream *s = (feed_stream *)self;
    return cx_live_feed_read(s->feed, s->reader, data, size, out_size, rest, arg);
}

static void leave_feed_stream(cx_stream *self)
{
    feed_stream *s = (feed_stream *)self;
    const cx_alloc *alloc = s->feed->service->alloc;
    cx_live_feed_leave(s->feed, s->reader);
    cx_alloc_free(alloc, s, sizeof *s);
}

cx_status cx_live_feed_stream(cx_call *call, void (*wake)(void *arg), void *arg, cx_stream **out,
                              cx_err *err)
{
    const cx_response *wanted = &call->response;
    cx_live_feed *feed = call->service->feed;
    feed_stream *s = cx_alloc_new(call->service->alloc, sizeof *s);
    if (s == NULL)
        return cx_fail_nomem(err);
    *s = (feed_stream){.base = {read_feed_stream, leave_feed_stream}, .feed = feed};
    const cx_live_filter filter = {.agent = cx_call_text(call, "agent_id_hash"),
                                   .hints = cx_call_flag(call, "hints")};
    cx_status status = cx_live_feed_join(feed, &filter, wanted->has_after ? &wanted->after : NULL,
                                         wake, arg, &s->reader, err);
    if (cx_failed(status))
        cx_alloc_free(call->service->alloc, s, sizeof *s);
    else
        *out = &s->base;
    return status;
}
