/*
 * grpc_session.c - HTTP/2 by libnghttp2, and unary gRPC calls above it.
 */
#include "server/grpc_session.h"

#include <nghttp2/nghttp2.h>

#include "os/api.h"

#define STREAM_WINDOW ((int32_t)1 << 20)
#define CONNECTION_WINDOW ((int32_t)4 << 20)
#define MESSAGE_STEP ((size_t)16 << 10)

/* S4: a bucket of frames that carry no request; it refills evenly. */
#define FRAMES_BURST 2000.0
#define FRAMES_PER_SECOND 200.0
#define FRAME_COST 1.0
#define RESET_COST 10.0

/* --- the library ------------------------------------------------------------------------------ */

#define FUNCTIONS(X)                                                \
    X(nghttp2_session_callbacks_new)                                \
    X(nghttp2_session_callbacks_del)                                \
    X(nghttp2_session_callbacks_set_on_begin_headers_callback)      \
    X(nghttp2_session_callbacks_set_on_header_callback)             \
    X(nghttp2_session_callbacks_set_on_begin_frame_callback)        \
    X(nghttp2_session_callbacks_set_on_frame_recv_callback)         \
    X(nghttp2_session_callbacks_set_on_invalid_frame_recv_callback) \
    X(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)    \
    X(nghttp2_session_callbacks_set_on_frame_send_callback)         \
    X(nghttp2_session_callbacks_set_on_stream_close_callback)       \
    X(nghttp2_session_server_new)                                   \
    X(nghttp2_session_del)                                          \
    X(nghttp2_session_mem_recv)                                     \
    X(nghttp2_session_mem_send)                                     \
    X(nghttp2_session_want_read)                                    \
    X(nghttp2_session_want_write)                                   \
    X(nghttp2_session_get_stream_user_data)                         \
    X(nghttp2_session_set_stream_user_data)                         \
    X(nghttp2_session_get_last_proc_stream_id)                      \
    X(nghttp2_session_set_local_window_size)                        \
    X(nghttp2_session_terminate_session)                            \
    X(nghttp2_submit_settings)                                      \
    X(nghttp2_submit_response)                                      \
    X(nghttp2_submit_trailer)                                       \
    X(nghttp2_submit_rst_stream)                                    \
    X(nghttp2_submit_goaway)

#define DECLARE(name) __typeof__(&name) name;
struct cx_grpc_library {
    const cx_alloc *alloc;
    cx_library *library;
    nghttp2_session_callbacks *callbacks;
    FUNCTIONS(DECLARE)
};

struct cx_grpc_session {
    const cx_grpc_library *h2;
    const cx_alloc *alloc;
    cx_grpc_hooks hooks;
    cx_grpc_limits limits;
    nghttp2_session *session;
    cx_grpc_stream *streams;
    size_t stream_count;
    uint64_t now_ns, opened_ns, idle_ns, refilled_ns;
    double frames_left;
    bool has_settings; /* of the client */
    bool has_magic;    /* its first bytes were those of HTTP/2 */
    bool finishing;
    cx_grpc_end end;
    bool explains; /* to a client of HTTP/1 */
};

typedef enum phase {
    PHASE_HEADERS,
    PHASE_MESSAGE,
    PHASE_CALL,    /* the owner has the message */
    PHASE_ANSWERED /* its answer is on its way */
} phase;

struct cx_grpc_stream {
    cx_grpc_session *session;
    cx_grpc_stream *next, **link;
    int32_t id;
    phase phase;
    bool is_whole; /* the client has sent all of it */
    bool is_from_page;
    bool with_user;
    void *user;
    size_t header_bytes;
    uint64_t limit_ns;    /* ours, for this phase */
    uint64_t deadline_ns; /* the caller's; UINT64_MAX = none */
    cx_grpc_prefix prefix;
    uint8_t *message;
    size_t message_size, message_capacity;
    cx_buf answer;
    size_t answer_sent;
    char method[8], path[96], authorization[512], content_type[64], encoding[32], timeout[16];
};

/* --- streams ---------------------------------------------------------------------------------- */

static uint64_t after_ms(uint64_t now_ns, uint32_t ms)
{
    return now_ns + (uint64_t)ms * 1000000;
}

static cx_grpc_stream *stream_of(cx_grpc_session *s, int32_t id)
{
    return s->h2->nghttp2_session_get_stream_user_data(s->session, id);
}

static void release_message(cx_grpc_stream *stream)
{
    cx_grpc_session *s = stream->session;
    if (stream->message_capacity == 0)
        return;
    cx_alloc_free(s->alloc, stream->message, stream->message_capacity);
    s->hooks.release(s->hooks.arg, stream->message_capacity);
    stream->message = NULL;
    stream->message_size = stream->message_capacity = 0;
}

/* S1 */
static void release_user(cx_grpc_stream *stream)
{
    cx_grpc_session *s = stream->session;
    if (stream->with_user)
        s->hooks.closed(s->hooks.arg, stream->user);
    stream->with_user = false;
    stream->user = NULL;
}

static void free_stream(cx_grpc_stream *stream)
{
    cx_grpc_session *s = stream->session;
    release_user(stream);
    release_message(stream);
    cx_buf_done(&stream->answer);
    *stream->link = stream->next;
    if (stream->next != NULL)
        stream->next->link = stream->link;
    s->stream_count--;
    s->idle_ns = s->now_ns;
    cx_alloc_free(s->alloc, stream, sizeof *stream);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    cx_grpc_session *s = arg;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    cx_grpc_stream *stream = cx_alloc_zeroed(s->alloc, 1, sizeof *stream);
    if (stream == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    stream->session = s;
    stream->id = frame->hd.stream_id;
    stream->limit_ns = after_ms(s->now_ns, s->limits.header_ms);
    stream->deadline_ns = UINT64_MAX;
    cx_buf_init(&stream->answer, s->alloc);
    stream->next = s->streams;
    stream->link = &s->streams;
    if (stream->next != NULL)
        stream->next->link = &stream->next;
    s->streams = stream;
    s->stream_count++;
    (void)s->h2->nghttp2_session_set_stream_user_data(session, stream->id, stream);
    return 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

typedef struct header_list {
    nghttp2_nv items[8];
    size_t count;
} header_list;

static void add_header(header_list *list, const char *name, cx_str value)
{
    CX_ASSERT(list->count < CX_COUNT_OF(list->items));
    /* The library copies both. */
    list->items[list->count++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                                              .value = (uint8_t *)(uintptr_t)value.data,
                                              .namelen = strlen(name),
                                              .valuelen = value.size,
                                              .flags = NGHTTP2_NV_FLAG_NONE};
}

static void begin_answer(cx_grpc_stream *stream, cx_grpc_code code)
{
    cx_grpc_session *s = stream->session;
    release_message(stream);
    release_user(stream);
    stream->phase = PHASE_ANSWERED;
    stream->limit_ns = after_ms(s->now_ns, s->limits.answer_ms);
    s->hooks.answered(s->hooks.arg, code);
}

/* An answer that cannot be made ends the stream, and the caller tries again. */
static void reset_stream(cx_grpc_stream *stream, uint32_t code)
{
    cx_grpc_session *s = stream->session;
    (void)s->h2->nghttp2_submit_rst_stream(s->session, NGHTTP2_FLAG_NONE, stream->id, code);
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *out, size_t size,
                           uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    cx_grpc_session *s = arg;
    cx_grpc_stream *stream = source->ptr;
    size_t left = stream->answer.size - stream->answer_sent;
    size_t part = left < size ? left : size;
    memcpy(out, stream->answer.data + stream->answer_sent, part);
    stream->answer_sent += part;
    if (part < left)
        return (ssize_t)part;
    header_list trailers = {.count = 0};
    add_header(&trailers, "grpc-status", CX_STR("0"));
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (s->h2->nghttp2_submit_trailer(session, id, trailers.items, trailers.count) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return (ssize_t)part;
}

static void add_head(header_list *list, const char *status)
{
    add_header(list, ":status", cx_str_z(status));
    add_header(list, "content-type", CX_STR("application/grpc"));
    add_header(list, "grpc-accept-encoding", CX_STR("identity,gzip"));
}

void cx_grpc_answer(cx_grpc_stream *stream, cx_bytes message)
{
    cx_grpc_session *s = stream->session;
    header_list head = {.count = 0};
    if (stream->phase == PHASE_ANSWERED)
        return;
    begin_answer(stream, CX_GRPC_OK);
    cx_grpc_message_add(&stream->answer, message);
    add_head(&head, "200");
    const nghttp2_data_provider body = {.source = {.ptr = stream}, .read_callback = read_answer};
    if (stream->answer.failed ||
        s->h2->nghttp2_submit_response(s->session, stream->id, head.items, head.count, &body) != 0)
        reset_stream(stream, NGHTTP2_INTERNAL_ERROR);
}

static void reject_with(cx_grpc_stream *stream, const char *http, cx_grpc_code code, cx_str text,
                        unsigned retry_s)
{
    cx_grpc_session *s = stream->session;
    header_list head = {.count = 0};
    cx_buf shown, number, retry;
    if (stream->phase == PHASE_ANSWERED)
        return;
    begin_answer(stream, code);
    cx_buf_init(&shown, s->alloc);
    cx_buf_init(&number, s->alloc);
    cx_buf_init(&retry, s->alloc);
    cx_buf_add_u64(&number, (uint64_t)code);
    cx_grpc_text_add(&shown, text);
    add_head(&head, http);
    add_header(&head, "grpc-status", cx_buf_str(&number));
    add_header(&head, "grpc-message", cx_buf_str(&shown));
    if (retry_s != 0) {
        cx_grpc_retry_add(&retry, (unsigned)code, text, retry_s);
        add_header(&head, "grpc-status-details-bin", cx_buf_str(&retry));
    }
    if (shown.failed || number.failed || retry.failed ||
        s->h2->nghttp2_submit_response(s->session, stream->id, head.items, head.count, NULL) != 0)
        reset_stream(stream, NGHTTP2_INTERNAL_ERROR);
    cx_buf_done(&shown);
    cx_buf_done(&number);
    cx_buf_done(&retry);
}

void cx_grpc_reject(cx_grpc_stream *stream, cx_grpc_code code, cx_str text, unsigned retry_s)
{
    CX_ASSERT(code != CX_GRPC_OK);
    reject_with(stream, "200", code, text, retry_s);
}

/* An answer that came before the end of the request: the client need not send the rest
 * (RFC 9113 §8.1). */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    cx_grpc_session *s = arg;
    (void)session;
    if (frame->hd.type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    cx_grpc_stream *stream = stream_of(s, frame->hd.stream_id);
    if (stream != NULL && !stream->is_whole)
        reset_stream(stream, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    cx_grpc_session *s = arg;
    cx_grpc_stream *stream = stream_of(s, id);
    (void)code;
    if (stream != NULL) {
        (void)s->h2->nghttp2_session_set_stream_user_data(session, id, NULL);
        free_stream(stream);
    }
    return 0;
}

/* --- limits of frames ------------------------------------------------------------------------- */

/* S4 */
static void spend_frames(cx_grpc_session *s, double cost)
{
    double passed = (double)(s->now_ns - s->refilled_ns) * 1e-9 * FRAMES_PER_SECOND;
    s->refilled_ns = s->now_ns;
    s->frames_left =
        s->frames_left + passed > FRAMES_BURST ? FRAMES_BURST : s->frames_left + passed;
    s->frames_left -= cost;
    if (s->frames_left >= 0 || s->end != CX_GRPC_GOES_ON)
        return;
    s->end = CX_GRPC_ENDS_FLOOD;
    (void)s->h2->nghttp2_session_terminate_session(s->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *arg)
{
    (void)session;
    if (head->type == NGHTTP2_HEADERS ||
        (head->type == NGHTTP2_DATA &&
         (head->length != 0 || (head->flags & NGHTTP2_FLAG_END_STREAM) != 0)))
        return 0;
    spend_frames(arg, head->type == NGHTTP2_RST_STREAM ? RESET_COST : FRAME_COST);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int code,
                            void *arg)
{
    (void)session;
    (void)frame;
    (void)code;
    spend_frames(arg, RESET_COST);
    return 0;
}

/* --- headers ---------------------------------------------------------------------------------- */

/* The first of a name counts; a longer value is cut, and then is none that we accept. */
static void keep_value(char *out, size_t size, const uint8_t *value, size_t value_size)
{
    if (out[0] != 0)
        return;
    size_t kept = value_size < size - 1 ? value_size : size - 1;
    memcpy(out, value, kept);
    out[kept] = 0;
}

#define KEEP(field) keep_value(stream->field, sizeof stream->field, value, value_size)

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *arg)
{
    cx_grpc_stream *stream = stream_of(arg, frame->hd.stream_id);
    cx_str key = cx_str_from((const char *)name, name_size);
    (void)session;
    (void)flags;
    if (stream == NULL || stream->phase != PHASE_HEADERS)
        return 0;
    /* As HTTP/2 counts them (RFC 9113 §6.5.2). */
    stream->header_bytes += name_size + value_size + 32;
    if (cx_str_is(key, ":method"))
        KEEP(method);
    else if (cx_str_is(key, ":path"))
        KEEP(path);
    else if (cx_str_is(key, "authorization"))
        KEEP(authorization);
    else if (cx_str_is(key, "content-type"))
        KEEP(content_type);
    else if (cx_str_is(key, "grpc-encoding"))
        KEEP(encoding);
    else if (cx_str_is(key, "grpc-timeout"))
        KEEP(timeout);
    else if (cx_str_is(key, "origin"))
        stream->is_from_page = true;
    return 0;
}

/* True when the headers are those of a call. */
static bool check_headers(cx_grpc_stream *stream)
{
    uint64_t timeout_ns = 0, now_ns = stream->session->now_ns;
    if (stream->header_bytes > CX_GRPC_HEADER_BYTES_MAX)
        cx_grpc_reject(stream, CX_GRPC_RESOURCE_EXHAUSTED,
                       CX_STR("the metadata of this call is longer than 16384 bytes"), 0);
    else if (strcmp(stream->method, "POST") != 0)
        reject_with(stream, "405", CX_GRPC_UNIMPLEMENTED, CX_STR("expected the method POST"), 0);
    else if (!cx_grpc_is_content_type(cx_str_z(stream->content_type)))
        reject_with(stream, "415", CX_GRPC_INVALID_ARGUMENT,
                    CX_STR("expected content-type: application/grpc; OTLP/HTTP has a port of its "
                           "own, 4318 by default"),
                    0);
    else if (stream->encoding[0] != 0 && strcmp(stream->encoding, "identity") != 0 &&
             strcmp(stream->encoding, "gzip") != 0)
        cx_grpc_reject(stream, CX_GRPC_UNIMPLEMENTED,
                       CX_STR("expected grpc-encoding: gzip or identity"), 0);
    else if (stream->timeout[0] != 0 &&
             !cx_grpc_timeout_parse(cx_str_z(stream->timeout), &timeout_ns))
        cx_grpc_reject(stream, CX_GRPC_INVALID_ARGUMENT,
                       CX_STR("grpc-timeout: expected at most eight digits and one of H M S m u n"),
                       0);
    else if (stream->timeout[0] != 0)
        stream->deadline_ns = timeout_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + timeout_ns;
    return stream->phase != PHASE_ANSWERED;
}

static void finish_headers(cx_grpc_stream *stream)
{
    cx_grpc_session *s = stream->session;
    stream->phase = PHASE_MESSAGE;
    stream->limit_ns = after_ms(s->now_ns, s->limits.body_ms);
    if (!check_headers(stream))
        return;
    const cx_grpc_question question = {.path = cx_str_z(stream->path),
                                       .authorization = stream->authorization[0] == 0
                                                            ? (cx_str){NULL, 0}
                                                            : cx_str_z(stream->authorization),
                                       .from_page = stream->is_from_page};
    void *user = NULL;
    s->hooks.begin(s->hooks.arg, stream, &question, &user);
    if (stream->phase == PHASE_ANSWERED)
        return;
    stream->user = user;
    stream->with_user = true;
}

/* --- messages --------------------------------------------------------------------------------- */

/* S3: grows with what arrives, not with what is announced. */
static bool reserve_message(cx_grpc_stream *stream, size_t needed)
{
    cx_grpc_session *s = stream->session;
    size_t length = cx_grpc_prefix_length(&stream->prefix), wanted = stream->message_capacity * 2;
    if (needed <= stream->message_capacity)
        return true;
    if (wanted < MESSAGE_STEP)
        wanted = MESSAGE_STEP;
    if (wanted < needed)
        wanted = needed;
    if (wanted > length)
        wanted = length;
    size_t grown = wanted - stream->message_capacity;
    if (!s->hooks.reserve(s->hooks.arg, grown))
        return false;
    uint8_t *message =
        s->alloc->resize(s->alloc->ctx, stream->message, stream->message_capacity, wanted);
    if (message == NULL) {
        s->hooks.release(s->hooks.arg, grown);
        return false;
    }
    stream->message = message;
    stream->message_capacity = wanted;
    return true;
}

/* The prefix is whole: what it announces is checked before any of it is kept. */
static void check_prefix(cx_grpc_stream *stream)
{
    char text[96];
    uint8_t flag = cx_grpc_prefix_flag(&stream->prefix);
    size_t max = stream->session->limits.message_bytes;
    if (flag > 1) {
        cx_grpc_reject(stream, CX_GRPC_INVALID_ARGUMENT,
                       CX_STR("the message begins with a flag that is neither 0 nor 1"), 0);
    } else if (flag == 1 && strcmp(stream->encoding, "gzip") != 0) {
        cx_grpc_reject(stream, CX_GRPC_INTERNAL,
                       CX_STR("the message is compressed, and grpc-encoding does not say how"), 0);
    } else if (cx_grpc_prefix_length(&stream->prefix) > max) {
        (void)snprintf(text, sizeof text, "the message is longer than %zu bytes", max);
        cx_grpc_reject(stream, CX_GRPC_RESOURCE_EXHAUSTED, cx_str_z(text), 0);
    }
}

static void receive_message(cx_grpc_stream *stream, cx_bytes bytes)
{
    if (!cx_grpc_prefix_is_whole(&stream->prefix)) {
        size_t taken = cx_grpc_prefix_take(&stream->prefix, bytes);
        bytes = cx_bytes_from(bytes.data + taken, bytes.size - taken);
        if (!cx_grpc_prefix_is_whole(&stream->prefix))
            return;
        check_prefix(stream);
    }
    if (bytes.size == 0 || stream->phase != PHASE_MESSAGE)
        return;
    if (bytes.size > cx_grpc_prefix_length(&stream->prefix) - stream->message_size) {
        cx_grpc_reject(stream, CX_GRPC_UNIMPLEMENTED,
                       CX_STR("expected one message, found bytes after it"), 0);
        return;
    }
    if (!reserve_message(stream, stream->message_size + bytes.size)) {
        cx_grpc_reject(stream, CX_GRPC_UNAVAILABLE,
                       CX_STR("too many messages are in progress; nothing of this one was stored"),
                       1);
        return;
    }
    memcpy(stream->message + stream->message_size, bytes.data, bytes.size);
    stream->message_size += bytes.size;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t size, void *arg)
{
    cx_grpc_stream *stream = stream_of(arg, id);
    (void)session;
    (void)flags;
    if (stream != NULL && stream->phase == PHASE_MESSAGE)
        receive_message(stream, cx_bytes_from(data, size));
    return 0;
}

static void finish_message(cx_grpc_stream *stream)
{
    cx_grpc_session *s = stream->session;
    if (stream->prefix.size == 0) {
        cx_grpc_reject(stream, CX_GRPC_UNIMPLEMENTED, CX_STR("expected one message, found none"),
                       0);
        return;
    }
    if (!cx_grpc_prefix_is_whole(&stream->prefix) ||
        stream->message_size < cx_grpc_prefix_length(&stream->prefix)) {
        cx_grpc_reject(stream, CX_GRPC_INVALID_ARGUMENT,
                       CX_STR("the message is shorter than its prefix says"), 0);
        return;
    }
    const cx_grpc_message message = {.data = stream->message,
                                     .size = stream->message_size,
                                     .capacity = stream->message_capacity,
                                     .is_gzip = cx_grpc_prefix_flag(&stream->prefix) == 1};
    stream->message = NULL;
    stream->message_size = stream->message_capacity = 0;
    stream->phase = PHASE_CALL;
    stream->limit_ns = UINT64_MAX;
    s->hooks.call(s->hooks.arg, stream, stream->user, &message);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    cx_grpc_session *s = arg;
    (void)session;
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0)
        s->has_settings = true;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    cx_grpc_stream *stream = stream_of(s, frame->hd.stream_id);
    if (stream == NULL)
        return 0;
    stream->is_whole = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (stream->phase == PHASE_HEADERS)
        finish_headers(stream);
    if (stream->is_whole && stream->phase == PHASE_MESSAGE)
        finish_message(stream);
    return 0;
}

/* --- sessions --------------------------------------------------------------------------------- */

static cx_status load_functions(cx_grpc_library *out, cx_err *err)
{
    if (cx_failed(cx_library_load("libnghttp2.so.14", &out->library, NULL)))
        return cx_fail_at(err, CX_E_UNSUPPORTED, "LibraryMissing", CX_NO_OFFSET,
                          "cannot load libnghttp2: install the package libnghttp2-14");
#define LOAD(name) CX_TRY(cx_library_symbol(out->library, #name, &out->name, err));
    FUNCTIONS(LOAD)
    if (out->nghttp2_session_callbacks_new(&out->callbacks) != 0)
        return cx_fail_nomem(err);
    nghttp2_session_callbacks *c = out->callbacks;
    out->nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    out->nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    out->nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
    out->nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    out->nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, on_invalid_frame);
    out->nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    out->nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
    out->nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    return CX_SUCCESS;
}

cx_status cx_grpc_library_load(const cx_alloc *alloc, cx_grpc_library **out, cx_err *err)
{
    cx_grpc_library *library = cx_alloc_zeroed(alloc, 1, sizeof *library);
    if (library == NULL)
        return cx_fail_nomem(err);
    library->alloc = alloc;
    cx_status status = load_functions(library, err);
    if (cx_failed(status))
        cx_grpc_library_free(library);
    else
        *out = library;
    return status;
}

void cx_grpc_library_free(cx_grpc_library *library)
{
    if (library == NULL)
        return;
    if (library->callbacks != NULL)
        library->nghttp2_session_callbacks_del(library->callbacks);
    cx_library_close(library->library);
    cx_alloc_free(library->alloc, library, sizeof *library);
}

static cx_status begin_session(cx_grpc_session *s, cx_err *err)
{
    const cx_grpc_library *h2 = s->h2;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, CX_GRPC_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, (uint32_t)STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)CX_GRPC_HEADER_BYTES_MAX}};
    if (h2->nghttp2_session_server_new(&s->session, h2->callbacks, s) != 0 ||
        h2->nghttp2_submit_settings(s->session, NGHTTP2_FLAG_NONE, settings,
                                    CX_COUNT_OF(settings)) != 0 ||
        h2->nghttp2_session_set_local_window_size(s->session, NGHTTP2_FLAG_NONE, 0,
                                                  CONNECTION_WINDOW) != 0)
        return cx_fail_nomem(err);
    return CX_SUCCESS;
}

cx_status cx_grpc_session_open(const cx_grpc_library *library, const cx_alloc *alloc,
                               const cx_grpc_hooks *hooks, const cx_grpc_limits *limits,
                               uint64_t now_ns, cx_grpc_session **out, cx_err *err)
{
    cx_grpc_session *s = cx_alloc_zeroed(alloc, 1, sizeof *s);
    if (s == NULL)
        return cx_fail_nomem(err);
    s->h2 = library;
    s->alloc = alloc;
    s->hooks = *hooks;
    s->limits = *limits;
    s->now_ns = s->opened_ns = s->idle_ns = s->refilled_ns = now_ns;
    s->frames_left = FRAMES_BURST;
    cx_status status = begin_session(s, err);
    if (cx_failed(status))
        cx_grpc_session_close(s);
    else
        *out = s;
    return status;
}

void cx_grpc_session_close(cx_grpc_session *session)
{
    if (session == NULL)
        return;
    while (session->streams != NULL)
        free_stream(session->streams);
    if (session->session != NULL)
        session->h2->nghttp2_session_del(session->session);
    cx_alloc_free(session->alloc, session, sizeof *session);
}

static const char not_http_2[] =
    "this port takes OTLP over gRPC (HTTP/2); OTLP over HTTP has a port of its own, 4318 by "
    "default\n";

/* What is connected does not speak HTTP/2.  Its user is told in a way that it can show. */
static void explain_magic(cx_grpc_session *s, uint8_t first)
{
    s->end = first == 0x16 ? CX_GRPC_ENDS_TLS : CX_GRPC_ENDS_OTHER;
    if (first >= 'A' && first <= 'Z')
        s->explains = true;
}

cx_grpc_end cx_grpc_session_receive(cx_grpc_session *session, cx_bytes bytes, uint64_t now_ns)
{
    cx_grpc_session *s = session;
    s->now_ns = now_ns;
    if (s->end != CX_GRPC_GOES_ON || bytes.size == 0)
        return s->end;
    ssize_t taken = s->h2->nghttp2_session_mem_recv(s->session, bytes.data, bytes.size);
    if (taken == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        explain_magic(s, s->has_magic ? 0 : bytes.data[0]);
        return s->end;
    }
    if (taken == NGHTTP2_ERR_FLOODED)
        s->end = CX_GRPC_ENDS_FLOOD;
    else if (taken < 0)
        s->end = CX_GRPC_ENDS;
    s->has_magic = true;
    return s->end;
}

cx_grpc_end cx_grpc_session_output(cx_grpc_session *session, cx_buf *out)
{
    cx_grpc_session *s = session;
    const uint8_t *part = NULL;
    if (s->explains)
        cx_buf_printf(out,
                      "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                      "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
                      sizeof not_http_2 - 1, not_http_2);
    s->explains = false;
    /* Frames before the client has said that it wants some would garble that text. */
    if (!s->has_magic || s->end == CX_GRPC_ENDS_TLS || s->end == CX_GRPC_ENDS_OTHER)
        return s->end;
    while (out->size < CX_GRPC_PENDING_MAX && !out->failed) {
        ssize_t size = s->h2->nghttp2_session_mem_send(s->session, &part);
        if (size < 0 && s->end == CX_GRPC_GOES_ON)
            s->end = CX_GRPC_ENDS;
        if (size <= 0)
            break;
        cx_buf_add(out, part, (size_t)size);
    }
    if (s->end == CX_GRPC_GOES_ON && s->h2->nghttp2_session_want_read(s->session) == 0 &&
        s->h2->nghttp2_session_want_write(s->session) == 0)
        s->end = CX_GRPC_ENDS;
    return s->end;
}

/* True when the stream was ended by a limit of time. */
static bool expire_stream(cx_grpc_stream *stream)
{
    cx_grpc_session *s = stream->session;
    if (stream->phase != PHASE_ANSWERED && stream->phase != PHASE_HEADERS &&
        s->now_ns >= stream->deadline_ns) {
        cx_grpc_reject(stream, CX_GRPC_DEADLINE_EXCEEDED,
                       stream->phase == PHASE_CALL
                           ? CX_STR("the call's own timeout has passed; what was sent may have "
                                    "been stored, and sending it again is safe")
                           : CX_STR("the call's own timeout has passed; nothing of it was stored"),
                       0);
        return false;
    }
    if (s->now_ns < stream->limit_ns)
        return false;
    if (stream->phase == PHASE_MESSAGE) {
        cx_grpc_reject(stream, CX_GRPC_DEADLINE_EXCEEDED,
                       CX_STR("the message took too long to arrive; nothing of it was stored"), 0);
    } else {
        /* Half a header holds the whole connection, and an answer that is not read as well. */
        s->end = CX_GRPC_ENDS_SLOW;
        (void)s->h2->nghttp2_session_terminate_session(s->session, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    return true;
}

cx_grpc_end cx_grpc_session_expire(cx_grpc_session *session, uint64_t now_ns, unsigned *out_slow)
{
    cx_grpc_session *s = session;
    s->now_ns = now_ns;
    *out_slow = 0;
    if (s->end != CX_GRPC_GOES_ON)
        return s->end;
    if (!s->has_settings && now_ns >= after_ms(s->opened_ns, s->limits.header_ms)) {
        s->end = CX_GRPC_ENDS_SLOW;
        return s->end;
    }
    for (cx_grpc_stream *stream = s->streams, *next; stream != NULL; stream = next) {
        next = stream->next;
        *out_slow += expire_stream(stream) ? 1u : 0u;
    }
    if (s->stream_count == 0 && now_ns >= after_ms(s->idle_ns, s->limits.idle_ms))
        cx_grpc_session_finish(s);
    return s->end;
}

void cx_grpc_session_finish(cx_grpc_session *session)
{
    cx_grpc_session *s = session;
    if (s->finishing || s->end != CX_GRPC_GOES_ON)
        return;
    s->finishing = true;
    (void)s->h2->nghttp2_submit_goaway(s->session, NGHTTP2_FLAG_NONE,
                                       s->h2->nghttp2_session_get_last_proc_stream_id(s->session),
                                       NGHTTP2_NO_ERROR, NULL, 0);
}
