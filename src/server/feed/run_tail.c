/*
 * run_tail.c - events of runs as server-sent events (run.md §21).
 *
 *     id: <index>
 *     event: <event_type>
 *     data: <the line of events.jsonl>
 *
 *   T1  Only the thread reads files and frees readers; the lock guards what it shares with the
 *       threads that send: the list, buffers and flags.
 *   T2  A reader gets every event after `after`, once and in order.  For a slow reader, reading
 *       pauses: its buffer has a limit, the file has none.
 */
#include "server/feed/run_tail.h"

#include <stdio.h>

#include "base/api.h"
#include "os/api.h"
#include "bundle/api.h"
#include "server/feed/runs.h"

#define POLL_MS 100
#define BUFFER_MAX ((size_t)256 << 10) /* put ready for one reader; one event may go beyond it */
#define READ_BYTES ((size_t)64 << 10)

typedef struct tail {
    cx_stream base; /* first */
    struct tail *next;
    cx_run_tails *tails;
    /* Of the thread: */
    cx_file file;
    uint64_t offset; /* of the file: what was read */
    uint64_t index;  /* of the last event that was read */
    uint64_t after;
    cx_buf line; /* the beginning of a line whose end is not there yet */
    bool finished;
    /* Under the lock: */
    cx_buf buffer;
    size_t start; /* of what was not sent yet */
    bool resting, over, left;
    void (*wake)(void *arg);
    void *arg;
    uint64_t last_ns;
} tail;

struct cx_run_tails {
    const cx_io *io;
    const cx_alloc *alloc;
    cx_thread thread;
    cx_lock lock;
    tail *first; /* changed only by the thread; new ones are prepended, under the lock */
    size_t count;
    bool ending, closing;
    cx_arena arena; /* of the thread: one event */
};

static uint64_t now_ns(const cx_run_tails *tails)
{
    return tails->io->monotonic_ns(tails->io);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void wake_tail(tail *t)
{
    if (!t->resting)
        return;
    t->resting = false;
    t->wake(t->arg);
}

static void end_tail(tail *t)
{
    t->over = true;
    wake_tail(t);
}

/* Under the lock. */
static void write_event(tail *t, cx_str line, cx_str type)
{
    cx_buf_printf(&t->buffer, "id: %llu\nevent: ", (unsigned long long)t->index);
    /* A type is a word; other bytes must not end the line. */
    for (size_t i = 0; i < type.size; i++)
        cx_buf_add_byte(&t->buffer, (uint8_t)type.data[i] > 0x20 ? (uint8_t)type.data[i] : '_');
    cx_buf_add_z(&t->buffer, "\ndata: ");
    for (size_t i = 0; i < line.size; i++) /* a carriage return would also end the line */
        if (line.data[i] != '\r')
            cx_buf_add_byte(&t->buffer, (uint8_t)line.data[i]);
    cx_buf_add_z(&t->buffer, "\n\n");
    t->last_ns = now_ns(t->tails);
}

static void queue_event_line(tail *t, cx_str line)
{
    cx_run_tails *tails = t->tails;
    cx_run_event_read event;
    cx_arena_mark mark = cx_arena_mark_now(&tails->arena);
    t->index++;
    bool read = !cx_failed(cx_run_event_parse(line, t->index, &tails->arena, &event, NULL));
    cx_str type = read ? event.type : CX_STR("unreadable");
    cx_lock_enter(&tails->lock);
    if (t->index > t->after)
        write_event(t, line, type);
    if (t->buffer.failed)
        end_tail(t);
    cx_lock_leave(&tails->lock);
    t->finished = read && cx_str_is(event.type, "RUN_FINISHED");
    cx_arena_reset(&tails->arena, mark);
}

/* Reads what was appended since the last poll, as far as the buffer has space. */
static void read_more(tail *t)
{
    const cx_io *io = t->tails->io;
    uint8_t *space = cx_buf_reserve(&t->line, READ_BYTES);
    int64_t got = space == NULL ? -1 : io->pread(io, t->file, space, READ_BYTES, t->offset);
    if (got <= 0) {
        if (space == NULL)
            t->finished = true;
        return;
    }
    cx_buf_advance(&t->line, (size_t)got);
    t->offset += (uint64_t)got;
    cx_str rest = cx_buf_str(&t->line), line;
    while (!t->finished && cx_run_next_line(&rest, &line))
        queue_event_line(t, line);
    if (rest.size != 0)
        memmove(t->line.data, rest.data, rest.size);
    t->line.size = rest.size;
    if (rest.size >
        CX_RUN_EVENT_BYTES_MAX) /* not an event: the lines after it cannot be delimited */
        t->finished = true;
}

static size_t unread_bytes(cx_run_tails *tails, tail *t)
{
    cx_lock_enter(&tails->lock);
    size_t size = t->buffer.size - t->start;
    if (t->start != 0 && size == 0)
        t->buffer.size = t->start = 0;
    cx_lock_leave(&tails->lock);
    return size;
}

static void fill_buffer(cx_run_tails *tails, tail *t)
{
    uint64_t before;
    while (!t->finished && unread_bytes(tails, t) < BUFFER_MAX) {
        before = t->offset;
        read_more(t);
        if (t->offset == before)
            break;
    }
    cx_lock_enter(&tails->lock);
    if (now_ns(tails) - t->last_ns > (uint64_t)CX_RUN_TAIL_KEEPALIVE_MS * 1000000 && !t->over) {
        cx_buf_add_z(&t->buffer, ":\n\n");
        t->last_ns = now_ns(tails);
    }
    if (t->finished || tails->ending)
        t->over = true;
    if (t->over || t->buffer.size != t->start)
        wake_tail(t);
    cx_lock_leave(&tails->lock);
}

static void free_tail(cx_run_tails *tails, tail *t)
{
    cx_folder_close(t->file);
    cx_buf_done(&t->line);
    cx_buf_done(&t->buffer);
    cx_alloc_free(tails->alloc, t, sizeof *t);
}

static void free_left_tails(cx_run_tails *tails)
{
    tail *gone = NULL;
    cx_lock_enter(&tails->lock);
    for (tail **place = &tails->first; *place != NULL;) {
        tail *t = *place;
        if (!t->left) {
            place = &t->next;
            continue;
        }
        *place = t->next;
        tails->count--;
        t->next = gone;
        gone = t;
    }
    cx_lock_leave(&tails->lock);
    while (gone != NULL) {
        tail *next = gone->next;
        free_tail(tails, gone);
        gone = next;
    }
}

static void run_tail_thread(void *arg)
{
    cx_run_tails *tails = arg;
    for (bool closing = false; !closing;) {
        cx_lock_enter(&tails->lock);
        if (!tails->closing && tails->first == NULL)
            cx_lock_wait(&tails->lock);
        else if (!tails->closing)
            cx_lock_wait_for(&tails->lock, POLL_MS);
        closing = tails->closing;
        tail *first = tails->first;
        cx_lock_leave(&tails->lock);
        for (tail *t = first; t != NULL; t = t->next)
            fill_buffer(tails, t);
        free_left_tails(tails);
    }
}

/* --- senders ---------------------------------------------------------------------------------- */

static cx_stream_result read_tail(cx_stream *self, char *data, size_t size, size_t *out_size,
                                  void (*rest)(void *arg), void *arg)
{
    tail *t = (tail *)self;
    cx_stream_result got = CX_STREAM_WAIT;
    cx_lock_enter(&t->tails->lock);
    size_t there = t->buffer.failed ? 0 : t->buffer.size - t->start;
    if (there != 0) {
        *out_size = there < size ? there : size;
        memcpy(data, t->buffer.data + t->start, *out_size);
        t->start += *out_size;
        got = CX_STREAM_BYTES;
        if (t->start == t->buffer.size)
            cx_lock_wake(&t->tails->lock); /* there is space again */
    } else if (t->over) {
        got = CX_STREAM_END;
    } else {
        t->resting = true;
        rest(arg);
    }
    cx_lock_leave(&t->tails->lock);
    return got;
}

static void leave_tail(cx_stream *self)
{
    tail *t = (tail *)self;
    cx_run_tails *tails = t->tails;
    cx_lock_enter(&tails->lock);
    t->left = true;
    t->resting = false;
    cx_lock_wake(&tails->lock);
    cx_lock_leave(&tails->lock);
}

/* --- opening ---------------------------------------------------------------------------------- */

static cx_status open_file(const cx_run_store *store, cx_str run_id, cx_file *out, cx_err *err)
{
    char path[CX_RUN_ID_BYTES_MAX + 32];
    cx_file root;
    CX_ASSERT(run_id.size <= CX_RUN_ID_BYTES_MAX);
    (void)snprintf(path, sizeof path, "runs/%.*s/events.jsonl", (int)run_id.size, run_id.data);
    CX_TRY(cx_folder_open(store->root, &root, err));
    cx_status status = cx_folder_open_in(root, path, CX_IO_READ, out, err);
    cx_folder_close(root);
    return status;
}

cx_status cx_run_tails_join(cx_run_tails *tails, const cx_run_store *store, cx_str run_id,
                            uint64_t after, void (*wake)(void *arg), void *arg, cx_stream **out,
                            cx_err *err)
{
    cx_file file;
    CX_TRY(open_file(store, run_id, &file, err));
    tail *t = cx_alloc_zeroed(tails->alloc, 1, sizeof *t);
    if (t == NULL) {
        cx_folder_close(file);
        return cx_fail_nomem(err);
    }
    t->base = (cx_stream){read_tail, leave_tail};
    t->tails = tails;
    t->file = file;
    t->after = after;
    t->wake = wake;
    t->arg = arg;
    t->last_ns = now_ns(tails);
    cx_buf_init(&t->line, tails->alloc);
    cx_buf_init(&t->buffer, tails->alloc);
    cx_buf_add_z(&t->buffer, ":\n\n"); /* the first bytes make the headers go out */
    cx_lock_enter(&tails->lock);
    bool space = !tails->ending && tails->count < CX_RUN_TAILS_MAX;
    if (space) {
        t->next = tails->first;
        tails->first = t;
        tails->count++;
        cx_lock_wake(&tails->lock);
    }
    cx_lock_leave(&tails->lock);
    if (!space) {
        free_tail(tails, t);
        return cx_fail(err, CX_E_BUSY, "too many live readers of runs");
    }
    *out = &t->base;
    return CX_SUCCESS;
}

cx_status cx_run_tails_open(const cx_io *io, const cx_alloc *alloc, cx_run_tails **out, cx_err *err)
{
    cx_run_tails *tails = cx_alloc_zeroed(alloc, 1, sizeof *tails);
    if (tails == NULL)
        return cx_fail_nomem(err);
    tails->io = io;
    tails->alloc = alloc;
    cx_lock_init(&tails->lock);
    cx_arena_init(&tails->arena, alloc, 0);
    if (!cx_thread_start(&tails->thread, run_tail_thread, tails)) {
        cx_run_tails_close(tails);
        return cx_fail(err, CX_E_BUSY, "cannot start the thread of live events");
    }
    *out = tails;
    return CX_SUCCESS;
}

void cx_run_tails_end(cx_run_tails *tails)
{
    if (tails == NULL)
        return;
    cx_lock_enter(&tails->lock);
    tails->ending = true;
    cx_lock_wake(&tails->lock);
    cx_lock_leave(&tails->lock);
}

void cx_run_tails_close(cx_run_tails *tails)
{
    if (tails == NULL)
        return;
    cx_lock_enter(&tails->lock);
    tails->ending = tails->closing = true;
    cx_lock_wake(&tails->lock);
    cx_lock_leave(&tails->lock);
    cx_thread_join(&tails->thread);
    while (tails->first != NULL) {
        tail *next = tails->first->next;
        free_tail(tails, tails->first);
        tails->first = next;
    }
    cx_arena_done(&tails->arena);
    cx_lock_done(&tails->lock);
    cx_alloc_free(tails->alloc, tails, sizeof *tails);
}
