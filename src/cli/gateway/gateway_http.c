/*
 * gateway_http.c - a server at an address (MCP, streamable HTTP), for an agent that speaks over
 * pipes.
 *
 *   U1  Each message of the agent is a POST of its own, on a thread of its own.  What the threads
 *       receive waits in one list for the main thread, which alone knows the gateway.
 *   U2  Notifications, answers and initialize arrive before what the agent sent after them.
 *   U3  Nothing is resumed: a stream that breaks off before its answer is an error to the agent.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/gateway/gateway.h"
#include "os/api.h"

#define POSTS_MAX 32
#define QUEUE_MAX ((size_t)16 << 20)
#define LINGER_MS 60000
#define NOTIFY_MS 30000 /* for what has no answer */
#define DELETE_MS 2000
#define REOPEN_MS 1000 /* before the server's own stream is asked for again */
#define SESSION_MAX 1024

typedef enum body_kind { BODY_NONE, BODY_JSON, BODY_EVENTS } body_kind;

struct http_job;

/* One exchange; the thread has it until `ended`. */
typedef struct post {
    struct http_job *h;
    cx_thread thread;
    cx_arena arena;     /* headers, and what follows */
    const char *method; /* NULL: the place is free */
    cx_str body, id;    /* id empty: no answer is awaited */
    bool is_barrier;    /* U2 */
    bool is_init;
    const char *headers[24];
    size_t header_count;
    uint32_t timeout_ms;
    atomic_bool cancel;
    /* Of the response. */
    body_kind kind;
    cx_gateway_sse events;
    cx_gateway_reader json; /* its body, as one message */
    unsigned status;
    cx_err why; /* code CX_OK: it came to its end */
} post;

typedef enum item_kind { ITEM_MESSAGE, ITEM_TOO_LONG, ITEM_SESSION, ITEM_END } item_kind;

typedef struct item {
    struct item *next;
    item_kind kind;
    post *from;
    cx_gateway_skim skim;
    uint64_t dropped_bytes;
    size_t size;
    char text[];
} item;

typedef struct http_job {
    cx_gateway_job *job;
    cx_file wake;
    post posts[POSTS_MAX];
    post stream; /* what the server says by itself */
    bool wants_stream, stream_refused;
    uint64_t stream_ns; /* not before */
    char session[SESSION_MAX + 1];
    cx_lock lock; /* guards what follows */
    item *first, *last;
    size_t queued_bytes;
    bool stopped;
} http_job;

/* --- on the threads --------------------------------------------------------------------------- */

/* False when memory ran out, or everything ends. */
static bool push_item(post *p, item_kind kind, cx_str text, const cx_gateway_skim *skim,
                      uint64_t dropped_bytes)
{
    http_job *h = p->h;
    item *one = cx_alloc_new(cx_alloc_default(), sizeof *one + text.size);
    if (one == NULL)
        return false;
    memset(one, 0, sizeof *one);
    one->kind = kind;
    one->from = p;
    one->dropped_bytes = dropped_bytes;
    one->size = text.size;
    if (skim != NULL)
        one->skim = *skim;
    /* JSON has line breaks between its values only; on a pipe they would end the message. */
    for (size_t i = 0; i < text.size; i++)
        one->text[i] = text.data[i] == '\n' || text.data[i] == '\r' ? ' ' : text.data[i];
    cx_lock_enter(&h->lock);
    while (kind != ITEM_END && h->queued_bytes > QUEUE_MAX && !h->stopped &&
           !atomic_load(&p->cancel))
        cx_lock_wait_for(&h->lock, 1000);
    if (h->last == NULL)
        h->first = one;
    else
        h->last->next = one;
    h->last = one;
    h->queued_bytes += text.size;
    bool goes_on = !h->stopped;
    cx_lock_leave(&h->lock);
    cx_relay_wake(h->wake);
    return goes_on;
}

static bool push_frame(post *p, cx_gateway_frame frame, cx_str text, const cx_gateway_skim *skim,
                       uint64_t dropped_bytes)
{
    if (frame == CX_GATEWAY_FRAME_MORE)
        return true;
    if (frame == CX_GATEWAY_FRAME_MESSAGE)
        return push_item(p, ITEM_MESSAGE, text, NULL, 0);
    return push_item(p, ITEM_TOO_LONG, CX_STR(""), skim, dropped_bytes);
}

static bool same_word(cx_str text, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i < size && text.size >= size; i++) {
        char c = text.data[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c + 32) : c) != word[i])
            return false;
    }
    return text.size >= size;
}

static bool is_name(cx_str name, const char *lower)
{
    return name.size == strlen(lower) && same_word(name, lower);
}

/* Printable ASCII without spaces, as the specification demands. */
static bool is_session(cx_str value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < 0x21 || value.data[i] > 0x7e)
            return false;
    return value.size != 0 && value.size <= SESSION_MAX;
}

static bool take_header(void *arg, cx_str name, cx_str value)
{
    post *p = arg;
    if (is_name(name, "content-type"))
        p->kind = same_word(value, "text/event-stream")  ? BODY_EVENTS
                  : same_word(value, "application/json") ? BODY_JSON
                                                         : BODY_NONE;
    if (p->is_init && is_name(name, "mcp-session-id") && is_session(value))
        return push_item(p, ITEM_SESSION, value, NULL, 0);
    return true;
}

static bool take_events(post *p, cx_bytes part)
{
    cx_gateway_frame frame;
    cx_str text = CX_STR("");
    cx_err ignored;
    while (part.size != 0) {
        if (cx_failed(cx_gateway_sse_next(&p->events, &part, &frame, &text, &ignored)) ||
            !push_frame(p, frame, text, &p->events.skim, p->events.dropped_bytes))
            return false;
    }
    return true;
}

/* A body is one message, line breaks or not. */
static bool take_json(post *p, cx_bytes part)
{
    cx_gateway_frame frame;
    cx_str text;
    cx_err ignored;
    while (part.size != 0) {
        const uint8_t *end = memchr(part.data, '\n', part.size);
        cx_bytes line =
            cx_bytes_from(part.data, end == NULL ? part.size : (size_t)(end - part.data));
        cx_bytes rest = line.size == part.size ? cx_bytes_from(part.data, 0)
                                               : cx_bytes_from(end + 1, part.size - line.size - 1);
        cx_bytes space = cx_str_bytes(CX_STR(" "));
        if (cx_failed(cx_gateway_reader_next(&p->json, &line, &frame, &text, &ignored)) ||
            (end != NULL &&
             cx_failed(cx_gateway_reader_next(&p->json, &space, &frame, &text, &ignored))))
            return false;
        part = rest;
    }
    return true;
}

static bool take_body(void *arg, unsigned status, cx_bytes part)
{
    post *p = arg;
    if (p->kind == BODY_EVENTS && status == 200)
        return take_events(p, part);
    return p->kind == BODY_JSON ? take_json(p, part) : true;
}

static void run_post(void *arg)
{
    post *p = arg;
    cx_gateway_frame frame;
    cx_str text = CX_STR("");
    cx_err ignored;
    const cx_http_stream request = {.url = p->h->job->url,
                                    .method = p->method,
                                    .headers = p->headers,
                                    .header_count = p->header_count,
                                    .body = cx_str_bytes(p->body),
                                    .timeout_ms = p->timeout_ms,
                                    .cancel = &p->cancel,
                                    .arg = p,
                                    .header = take_header,
                                    .received = take_body};
    cx_status status = cx_http_stream_send(&request, &p->status, &p->why);
    if (!cx_failed(status)) {
        p->why.code = CX_OK;
        if (!cx_failed(cx_gateway_reader_end(&p->json, &frame, &text, &ignored)))
            (void)push_frame(p, frame, text, &p->json.skim, p->json.dropped_bytes);
    }
    /* Without memory for it the thread is joined at the end. */
    (void)push_item(p, ITEM_END, CX_STR(""), NULL, 0);
}

/* --- headers ---------------------------------------------------------------------------------- */

static void add_header(post *p, cx_str line)
{
    if (line.data != NULL && p->header_count < CX_COUNT_OF(p->headers))
        p->headers[p->header_count++] = line.data;
}

/* Values that are not plain ASCII are sent as base64 (MCP 2026-07-28, transports). */
static void add_text_header(post *p, const char *name, cx_str value)
{
    bool plain = value.size != 0 && value.data[0] != ' ' && value.data[value.size - 1] != ' ' &&
                 !cx_str_starts(value, CX_STR("=?"));
    for (size_t i = 0; i < value.size; i++)
        plain &= value.data[i] >= ' ' && value.data[i] <= '~';
    if (plain) {
        add_header(p, cx_arena_printf(&p->arena, "%s: %.*s", name, (int)value.size, value.data));
        return;
    }
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_base64_add(&text, cx_str_bytes(value), CX_BASE64);
    if (!text.failed)
        add_header(p, cx_arena_printf(&p->arena, "%s: =?base64?%.*s?=", name, (int)text.size,
                                      (const char *)text.data));
    cx_buf_done(&text);
}

static void add_headers(post *p, const cx_gateway_message *m)
{
    http_job *h = p->h;
    const cx_json *meta = m->params == NULL ? NULL : CX_JSON_GET(m->params, "_meta");
    cx_str version = meta == NULL
                         ? CX_STR("")
                         : CX_JSON_GET_STR(meta, "io.modelcontextprotocol/protocolVersion");
    add_header(p, CX_STR("Content-Type: application/json"));
    add_header(p, CX_STR("Accept: application/json, text/event-stream"));
    if (version.size != 0) {
        cx_str name = CX_JSON_GET_STR(m->params, "name"), uri = CX_JSON_GET_STR(m->params, "uri");
        add_text_header(p, "Mcp-Method", m->method);
        if (name.size != 0 || uri.size != 0)
            add_text_header(p, "Mcp-Name", name.size != 0 ? name : uri);
    } else {
        version = cx_gateway_protocol(h->job->gateway);
    }
    if (version.size != 0 && !p->is_init)
        add_text_header(p, "MCP-Protocol-Version", version);
    if (h->session[0] != 0 && !p->is_init)
        add_header(p, cx_arena_printf(&p->arena, "Mcp-Session-Id: %s", h->session));
    for (size_t i = 0; i < h->job->header_count; i++)
        add_header(p, cx_str_z(h->job->headers[i]));
}

/* --- sending ---------------------------------------------------------------------------------- */

static void begin_post(http_job *h, post *p, const char *method)
{
    p->h = h;
    p->method = method;
    p->header_count = 0;
    p->id = p->body = CX_STR("");
    p->is_barrier = p->is_init = false;
    p->timeout_ms = 0;
    p->kind = BODY_NONE;
    p->status = 0;
    atomic_store(&p->cancel, false);
    cx_arena_init(&p->arena, cx_alloc_default(), 0);
    cx_gateway_sse_init(&p->events, cx_alloc_default(), CX_GATEWAY_MESSAGE_MAX);
    cx_gateway_reader_init(&p->json, cx_alloc_default(), CX_GATEWAY_MESSAGE_MAX);
}

static void end_post(post *p)
{
    cx_thread_join(&p->thread);
    cx_gateway_sse_done(&p->events);
    cx_gateway_reader_done(&p->json);
    cx_arena_done(&p->arena);
    p->method = NULL;
}

static cx_status fail_post(post *p, cx_str why, cx_err *err)
{
    if (p->id.size == 0)
        return CX_SUCCESS;
    return cx_gateway_fail_request(p->h->job->gateway, p->id, why, err);
}

static cx_status start_post(post *p, cx_err *err)
{
    if (cx_thread_start(&p->thread, run_post, p))
        return CX_SUCCESS;
    cx_status status = fail_post(p, CX_STR("cortex: no thread can be started"), err);
    end_post(p);
    return status;
}

/* What the gateway has let pass is one message. */
static cx_status send_line(http_job *h, post *p, cx_str line, cx_err *err)
{
    cx_json root;
    cx_gateway_message m;
    begin_post(h, p, "POST");
    p->body = cx_arena_copy_str(&p->arena, line);
    cx_status status = p->body.data == NULL ? cx_fail_nomem(err)
                                            : cx_json_parse_text(p->body, &p->arena, &root, err);
    if (!cx_failed(status))
        status = cx_gateway_message_read(&root, &p->arena, &m, err);
    if (cx_failed(status)) {
        end_post(p);
        return status;
    }
    p->is_init = cx_str_is(m.method, "initialize");
    p->is_barrier = p->is_init || m.kind != CX_GATEWAY_REQUEST;
    p->timeout_ms = m.kind == CX_GATEWAY_REQUEST ? 0 : NOTIFY_MS;
    if (m.kind == CX_GATEWAY_REQUEST)
        p->id = m.id;
    if (p->is_init)
        h->session[0] = 0;
    if (cx_str_is(m.method, "notifications/initialized"))
        h->wants_stream = true;
    add_headers(p, &m);
    return start_post(p, err);
}

static post *free_post(http_job *h)
{
    for (size_t i = 0; i < POSTS_MAX; i++)
        if (h->posts[i].method != NULL && h->posts[i].is_barrier)
            return NULL; /* U2 */
    for (size_t i = 0; i < POSTS_MAX; i++)
        if (h->posts[i].method == NULL)
            return &h->posts[i];
    return NULL;
}

static cx_status send_lines(http_job *h, cx_err *err)
{
    cx_buf *out = cx_gateway_out(h->job->gateway, CX_GATEWAY_SERVER);
    size_t at = 0;
    post *p;
    cx_status status = CX_SUCCESS;
    while (at < out->size && !cx_failed(status) && (p = free_post(h)) != NULL) {
        const uint8_t *end = memchr(out->data + at, '\n', out->size - at);
        CX_ASSERT(end != NULL);
        cx_str line = cx_str_from((const char *)out->data + at, (size_t)(end - out->data) - at);
        at += line.size + 1;
        status = send_line(h, p, line, err);
    }
    memmove(out->data, out->data + at, out->size - at);
    out->size -= at;
    return status;
}

/* Servers up to 2025-11-25 say by themselves what they want to on a stream that is asked for. */
static cx_status open_stream(http_job *h, cx_err *err)
{
    const cx_io *io = h->job->cli->io;
    static const cx_gateway_message none = {.kind = CX_GATEWAY_NOTIFICATION};
    if (!h->wants_stream || h->stream_refused || h->stream.method != NULL ||
        io->monotonic_ns(io) < h->stream_ns)
        return CX_SUCCESS;
    h->stream_ns = io->monotonic_ns(io) + REOPEN_MS * UINT64_C(1000000);
    begin_post(h, &h->stream, "GET");
    add_headers(&h->stream, &none);
    h->stream.headers[0] = "Accept: text/event-stream";
    h->stream.headers[1] = "Cache-Control: no-store";
    return start_post(&h->stream, err);
}

/* --- on the main thread ----------------------------------------------------------------------- */

static cx_status take_end(http_job *h, post *p, cx_err *err)
{
    cx_status status = CX_SUCCESS;
    cx_str why;
    cx_thread_join(&p->thread);
    if (p == &h->stream) {
        h->stream_refused = p->status != 200;
    } else if (p->why.code != CX_OK) {
        why = cx_arena_printf(&p->arena, "cortex: the server at %s did not answer: %s", h->job->url,
                              p->why.message);
        status = why.data == NULL ? cx_fail_nomem(err) : fail_post(p, why, err);
    } else if (p->status == 404 && h->session[0] != 0) {
        h->session[0] = 0;
        status = fail_post(p,
                           CX_STR("cortex: the server has ended the session (HTTP 404): "
                                  "connect to it again"),
                           err);
    } else if (p->status < 200 || p->status >= 300) {
        why = cx_arena_printf(&p->arena, "cortex: the server answered with HTTP %u", p->status);
        if (p->id.size == 0 && why.data != NULL)
            h->job->options.say(h->job->options.arg, why);
        status = why.data == NULL ? cx_fail_nomem(err) : fail_post(p, why, err);
    } else {
        status = fail_post(p, CX_STR("cortex: the server's answer ended without a result"), err);
    }
    end_post(p);
    return status;
}

static cx_status take_item(http_job *h, const item *one, cx_err *err)
{
    cx_gateway *gateway = h->job->gateway;
    post *p = one->from;
    cx_str text = cx_str_from(one->text, one->size);
    switch (one->kind) {
    case ITEM_MESSAGE: CX_TRY(cx_gateway_line(gateway, CX_GATEWAY_SERVER, text, err)); break;
    case ITEM_TOO_LONG:
        CX_TRY(
            cx_gateway_too_long(gateway, CX_GATEWAY_SERVER, &one->skim, one->dropped_bytes, err));
        break;
    case ITEM_SESSION:
        memcpy(h->session, text.data, text.size);
        h->session[text.size] = 0;
        return CX_SUCCESS;
    case ITEM_END: return take_end(h, p, err);
    }
    /* Its id may be used again by the client: it is no concern of this exchange any more. */
    if (p->id.size != 0 && !cx_gateway_awaits(gateway, p->id))
        p->id = CX_STR("");
    return CX_SUCCESS;
}

static item *pop_item(http_job *h)
{
    cx_lock_enter(&h->lock);
    item *one = h->first;
    if (one != NULL) {
        h->first = one->next;
        h->last = h->first == NULL ? NULL : h->last;
        h->queued_bytes -= one->size;
        cx_lock_wake(&h->lock);
    }
    cx_lock_leave(&h->lock);
    return one;
}

static bool has_room(const http_job *h)
{
    return cx_gateway_out(h->job->gateway, CX_GATEWAY_CLIENT)->size < QUEUE_MAX;
}

static cx_status on_tick(void *arg, cx_err *err)
{
    http_job *h = arg;
    item *one;
    while (has_room(h) && (one = pop_item(h)) != NULL) {
        cx_status status = take_item(h, one, err);
        cx_alloc_free(cx_alloc_default(), one, sizeof *one + one->size);
        CX_TRY(status);
    }
    CX_TRY(cx_gateway_tick(h->job->gateway, err));
    CX_TRY(send_lines(h, err));
    return open_stream(h, err);
}

static cx_status on_received(void *arg, cx_relay_side from, cx_bytes bytes, cx_err *err)
{
    http_job *h = arg;
    CX_ASSERT(from == CX_RELAY_NEAR);
    CX_TRY(cx_cli_gateway_feed(h->job, CX_GATEWAY_CLIENT, bytes, err));
    return send_lines(h, err);
}

static uint32_t due_ms(void *arg)
{
    http_job *h = arg;
    const cx_io *io = h->job->cli->io;
    uint32_t ms = cx_gateway_due_ms(h->job->gateway);
    uint64_t now = io->monotonic_ns(io);
    cx_lock_enter(&h->lock);
    bool waits = h->first != NULL;
    cx_lock_leave(&h->lock);
    if (waits && has_room(h))
        return 0;
    if (h->wants_stream && !h->stream_refused && h->stream.method == NULL) {
        uint32_t left = h->stream_ns <= now ? 0 : (uint32_t)((h->stream_ns - now) / 1000000u + 1);
        ms = left < ms ? left : ms;
    }
    return ms;
}

static bool is_idle(void *arg)
{
    http_job *h = arg;
    bool busy = false;
    for (size_t i = 0; i < POSTS_MAX; i++)
        busy |= h->posts[i].method != NULL;
    cx_lock_enter(&h->lock);
    busy |= h->first != NULL;
    cx_lock_leave(&h->lock);
    return !busy;
}

static void end_far(void *arg)
{
    (void)arg;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void stop_posts(http_job *h)
{
    cx_lock_enter(&h->lock);
    h->stopped = true;
    for (size_t i = 0; i < POSTS_MAX; i++)
        atomic_store(&h->posts[i].cancel, true);
    atomic_store(&h->stream.cancel, true);
    cx_lock_wake(&h->lock);
    cx_lock_leave(&h->lock);
    for (size_t i = 0; i < POSTS_MAX; i++)
        if (h->posts[i].method != NULL)
            end_post(&h->posts[i]);
    if (h->stream.method != NULL)
        end_post(&h->stream);
    for (item *one = pop_item(h); one != NULL; one = pop_item(h))
        cx_alloc_free(cx_alloc_default(), one, sizeof *one + one->size);
}

/* The server may forget the session. */
static void delete_session(http_job *h)
{
    static const cx_gateway_message none = {.kind = CX_GATEWAY_NOTIFICATION};
    if (h->session[0] == 0)
        return;
    h->stopped = false;
    begin_post(h, &h->stream, "DELETE");
    h->stream.timeout_ms = DELETE_MS;
    add_headers(&h->stream, &none);
    if (cx_thread_start(&h->stream.thread, run_post, &h->stream))
        end_post(&h->stream);
    for (item *one = pop_item(h); one != NULL; one = pop_item(h))
        cx_alloc_free(cx_alloc_default(), one, sizeof *one + one->size);
}

static cx_status run_http(http_job *h, cx_err *err)
{
    int signal = 0;
    const cx_relay relay = {.near_in = STDIN_FILENO,
                            .near_out = STDOUT_FILENO,
                            .far_in = CX_FILE_NONE,
                            .far_out = CX_FILE_NONE,
                            .far_process = CX_FILE_NONE,
                            .wake = h->wake,
                            .to_near = cx_gateway_out(h->job->gateway, CX_GATEWAY_CLIENT),
                            .to_far = cx_gateway_out(h->job->gateway, CX_GATEWAY_SERVER),
                            .queue_max = QUEUE_MAX,
                            .linger_ms = LINGER_MS,
                            .arg = h,
                            .received = on_received,
                            .tick = on_tick,
                            .due_ms = due_ms,
                            .end_far = end_far,
                            .is_idle = is_idle};
    cx_status status = cx_relay_run(&relay, &signal, err);
    stop_posts(h);
    if (!cx_failed(status)) {
        delete_session(h);
        h->job->exit_code = signal != 0 ? 128 + signal : 0;
        status = cx_gateway_server_gone(
            h->job->gateway, CX_STR("cortex: the gateway ended before the answer came"), err);
    }
    return status;
}

cx_status cx_cli_gateway_http(cx_gateway_job *job, cx_err *err)
{
    http_job *h = cx_alloc_zeroed(cx_alloc_default(), 1, sizeof *h);
    if (h == NULL)
        return cx_fail_nomem(err);
    h->job = job;
    h->wake = cx_relay_wake_open();
    cx_lock_init(&h->lock);
    cx_status status = cx_http_post_ready(err);
    if (!cx_failed(status) && h->wake == CX_FILE_NONE)
        status = cx_fail(err, CX_E_IO, "the system has no event file left");
    if (!cx_failed(status))
        status = run_http(h, err);
    cx_relay_wake_close(h->wake);
    cx_lock_done(&h->lock);
    cx_alloc_free(cx_alloc_default(), h, sizeof *h);
    return status;
}
