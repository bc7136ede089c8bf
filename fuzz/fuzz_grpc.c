/*
 * fuzz_grpc.c - any bytes as a connection of a gRPC client: what the session makes of them, and
 * that it takes back all memory.  The first byte chooses: 1 the preface of HTTP/2 and an empty
 * SETTINGS come first, 2 byte by byte, 4 calls are answered later, 8 time passes.
 */
#include <string.h>

#include "fuzz/fuzz.h"
#include "server/grpc_session.h"

#define MEMORY_MAX ((size_t)1 << 20)
#define OPEN_MAX 16

typedef struct calls {
    size_t reserved;
    size_t open; /* begun and not closed */
    cx_grpc_stream *waiting[OPEN_MAX];
    size_t waiting_count;
    bool answers_later;
} calls;

static char a_user; /* one is enough: they are only counted */

static void begin_call(void *arg, cx_grpc_stream *stream, const cx_grpc_question *question,
                       void **out_user)
{
    calls *c = arg;
    if (question->authorization.data != NULL) {
        cx_grpc_reject(stream, CX_GRPC_UNAUTHENTICATED, question->authorization, 0);
        return;
    }
    if (question->from_page || question->path.size == 0) {
        cx_grpc_reject(stream, CX_GRPC_UNIMPLEMENTED, question->path, 1);
        return;
    }
    c->open++;
    *out_user = &a_user;
}

static void end_call(void *arg, void *user)
{
    calls *c = arg;
    FUZZ_CHECK(user == &a_user && c->open > 0);
    c->open--;
    /* Which one is not known, so none is answered any more. */
    c->waiting_count = 0;
}

static bool reserve_bytes(void *arg, size_t bytes)
{
    calls *c = arg;
    if (bytes > MEMORY_MAX - c->reserved)
        return false;
    c->reserved += bytes;
    return true;
}

static void release_bytes(void *arg, size_t bytes)
{
    calls *c = arg;
    FUZZ_CHECK(bytes <= c->reserved);
    c->reserved -= bytes;
}

static void receive_call(void *arg, cx_grpc_stream *stream, void *user,
                         const cx_grpc_message *message)
{
    calls *c = arg;
    FUZZ_CHECK(user == &a_user && message->size <= message->capacity);
    if (c->answers_later && c->waiting_count < OPEN_MAX)
        c->waiting[c->waiting_count++] = stream;
    else
        cx_grpc_answer(stream, cx_bytes_from(message->data, message->size));
    if (message->capacity != 0) {
        cx_alloc_free(cx_alloc_default(), message->data, message->capacity);
        release_bytes(c, message->capacity);
    }
}

static void count_answer(void *arg, cx_grpc_code code)
{
    (void)arg;
    FUZZ_CHECK(cx_grpc_code_name(code) != NULL);
}

static cx_grpc_end drain_output(cx_grpc_session *session)
{
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    cx_grpc_end end = cx_grpc_session_output(session, &out);
    cx_buf_done(&out);
    return end;
}

static cx_grpc_end feed(cx_grpc_session *session, calls *c, cx_bytes bytes, uint64_t now_ns)
{
    unsigned slow;
    cx_grpc_end end = cx_grpc_session_receive(session, bytes, now_ns);
    while (c->waiting_count != 0)
        cx_grpc_answer(c->waiting[--c->waiting_count], cx_bytes_from("", 0));
    if (end == CX_GRPC_GOES_ON)
        end = cx_grpc_session_expire(session, now_ns, &slow);
    cx_grpc_end sent = drain_output(session);
    return end == CX_GRPC_GOES_ON ? sent : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cx_grpc_library *library;
    static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    cx_err err;
    calls c = {.reserved = 0};
    cx_grpc_session *session;
    const cx_grpc_hooks hooks = {&c,           begin_call,    receive_call, end_call,
                                 count_answer, reserve_bytes, release_bytes};
    const cx_grpc_limits limits = {.message_bytes = 4096,
                                   .header_ms = 1000,
                                   .body_ms = 1000,
                                   .answer_ms = 1000,
                                   .idle_ms = 5000};
    if (library == NULL && cx_failed(cx_grpc_library_load(cx_alloc_default(), &library, &err)))
        return 0; /* it is not installed */
    if (size == 0 || cx_failed(cx_grpc_session_open(library, cx_alloc_default(), &hooks, &limits, 1,
                                                    &session, &err)))
        return 0;
    uint64_t now_ns = 1, pass_ns = (data[0] & 8) != 0 ? 300000000 : 1000;
    size_t step = (data[0] & 2) != 0 ? 1 : size;
    c.answers_later = (data[0] & 4) != 0;
    cx_grpc_end end = CX_GRPC_GOES_ON;
    if ((data[0] & 1) != 0)
        end = feed(session, &c, cx_bytes_from(hello, sizeof hello - 1), now_ns);
    for (size_t at = 1; at < size && end == CX_GRPC_GOES_ON; at += step) {
        size_t part = size - at < step ? size - at : step;
        now_ns += pass_ns;
        end = feed(session, &c, cx_bytes_from(data + at, part), now_ns);
    }
    cx_grpc_session_finish(session);
    (void)drain_output(session);
    cx_grpc_session_close(session);
    FUZZ_CHECK(c.open == 0 && c.reserved == 0);
    return 0;
}
