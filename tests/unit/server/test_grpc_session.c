/*
 * test_grpc_session.c - one connection of a gRPC client as bytes: how it begins, how long it may
 * wait, and how it ends.
 */
#include <string.h>

#include "server/grpc_session.h"
#include "tests/test.h"

#define SECOND_NS UINT64_C(1000000000)

#define FRAME_GOAWAY 7
#define FRAME_HEADERS 1

static const char hello[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

typedef struct client {
    cx_grpc_library *library;
    cx_grpc_session *session;
    cx_buf out;
    size_t reserved;
    unsigned begun, called, closed, answered;
    cx_grpc_stream *stream; /* the last one that was called */
    cx_err err;
} client;

static int user; /* of every stream */

static void begin_call(void *arg, cx_grpc_stream *stream, const cx_grpc_question *question,
                       void **out_user)
{
    client *c = arg;
    (void)stream;
    CHECK(cx_str_is(question->path, "/a"));
    c->begun++;
    *out_user = &user;
}

static void receive_call(void *arg, cx_grpc_stream *stream, void *its_user,
                         const cx_grpc_message *message)
{
    client *c = arg;
    CHECK(its_user == &user && message->size == 3 && memcmp(message->data, "abc", 3) == 0);
    c->called++;
    c->stream = stream;
    cx_alloc_free(cx_alloc_default(), message->data, message->capacity);
    c->reserved -= message->capacity;
}

static void end_call(void *arg, void *its_user)
{
    CHECK(its_user == &user);
    ((client *)arg)->closed++;
}

static void count_answer(void *arg, cx_grpc_code code)
{
    (void)code;
    ((client *)arg)->answered++;
}

static bool reserve_bytes(void *arg, size_t bytes)
{
    ((client *)arg)->reserved += bytes;
    return true;
}

static void release_bytes(void *arg, size_t bytes)
{
    ((client *)arg)->reserved -= bytes;
}

static bool begin_client(client *c)
{
    *c = (client){.library = NULL};
    const cx_grpc_hooks hooks = {
        c, begin_call, receive_call, end_call, count_answer, reserve_bytes, release_bytes};
    const cx_grpc_limits limits = {.message_bytes = 100,
                                   .header_ms = 1000,
                                   .body_ms = 2000,
                                   .answer_ms = 3000,
                                   .idle_ms = 5000};
    cx_buf_init(&c->out, cx_alloc_default());
    CHECK_STATUS(cx_grpc_library_load(cx_alloc_default(), &c->library, &c->err), &c->err);
    CHECK_STATUS(cx_grpc_session_open(c->library, cx_alloc_default(), &hooks, &limits, SECOND_NS,
                                      &c->session, &c->err),
                 &c->err);
    return c->session != NULL;
}

static void end_client(client *c)
{
    cx_grpc_session_close(c->session);
    cx_grpc_library_free(c->library);
    cx_buf_done(&c->out);
    CHECK_INT(c->reserved, 0);
}

static cx_grpc_end send_bytes(client *c, const char *bytes, size_t size, uint64_t now_ns)
{
    cx_grpc_end end = cx_grpc_session_receive(c->session, cx_bytes_from(bytes, size), now_ns);
    cx_grpc_end sent = cx_grpc_session_output(c->session, &c->out);
    return end == CX_GRPC_GOES_ON ? sent : end;
}

/* A call of POST /a with the message "abc", and its first `size` bytes at most. */
static cx_grpc_end send_call(client *c, size_t cut, uint64_t now_ns)
{
    static const char call[] = "\0\0\x2e\x01\x04\0\0\0\x01"
                               "\x83\x86\x04\x02/a\x01\x01x"
                               "\x0f\x10\x10"
                               "application/grpc"
                               "\x00\x0a"
                               "x-whatever"
                               "\x05"
                               "value"
                               "\0\0\x08\0\x01\0\0\0\x01"
                               "\0\0\0\0\x03"
                               "abc";
    CHECK_INT(sizeof call - 1, 9 + 0x2e + 9 + 8);
    return send_bytes(c, call, sizeof call - 1 - cut, now_ns);
}

/* How many frames of a type there are in what was sent. */
static unsigned count_frames(const client *c, uint8_t type)
{
    unsigned count = 0;
    for (size_t at = 0; at + 9 <= c->out.size;) {
        const uint8_t *head = c->out.data + at;
        count += head[3] == type ? 1u : 0u;
        at += 9 + ((size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2]);
    }
    return count;
}

CX_TEST(a_call_is_begun_called_answered_and_closed_once)
{
    client c;
    REQUIRE(begin_client(&c));
    CHECK_INT(send_bytes(&c, hello, sizeof hello - 1, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK_INT(send_call(&c, 0, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK(c.begun == 1 && c.called == 1 && c.closed == 0);
    REQUIRE(c.stream != NULL);
    cx_grpc_answer(c.stream, cx_bytes_from("", 0));
    cx_grpc_reject(c.stream, CX_GRPC_INTERNAL, CX_STR("too late"), 0); /* S2 */
    CHECK(c.closed == 1 && c.answered == 1);
    CHECK_INT(cx_grpc_session_output(c.session, &c.out), CX_GRPC_GOES_ON);
    CHECK_INT(count_frames(&c, FRAME_HEADERS), 2); /* and trailers */
    end_client(&c);
    CHECK_INT(c.closed, 1);
}

CX_TEST(a_call_that_is_reset_is_closed_without_an_answer)
{
    client c;
    static const char reset[] = "\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";
    REQUIRE(begin_client(&c));
    CHECK_INT(send_bytes(&c, hello, sizeof hello - 1, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK_INT(send_call(&c, 0, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK_INT(send_bytes(&c, reset, sizeof reset - 1, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK(c.called == 1 && c.closed == 1 && c.answered == 0);
    end_client(&c);
    CHECK_INT(c.closed, 1);
}

CX_TEST(half_a_message_is_given_up_after_its_time)
{
    client c;
    unsigned slow = 0;
    REQUIRE(begin_client(&c));
    CHECK_INT(send_bytes(&c, hello, sizeof hello - 1, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK_INT(send_call(&c, 1, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK(c.begun == 1 && c.called == 0);
    CHECK_INT(cx_grpc_session_expire(c.session, 2 * SECOND_NS, &slow), CX_GRPC_GOES_ON);
    CHECK_INT(slow, 0);
    CHECK_INT(cx_grpc_session_expire(c.session, 3 * SECOND_NS, &slow), CX_GRPC_GOES_ON);
    CHECK(slow == 1 && c.closed == 1 && c.answered == 1);
    CHECK_INT(c.reserved, 0);
    end_client(&c);
}

CX_TEST(a_connection_without_calls_ends_with_goaway)
{
    client c;
    unsigned slow = 0;
    REQUIRE(begin_client(&c));
    CHECK_INT(send_bytes(&c, hello, sizeof hello - 1, SECOND_NS), CX_GRPC_GOES_ON);
    CHECK_INT(cx_grpc_session_expire(c.session, 5 * SECOND_NS, &slow), CX_GRPC_GOES_ON);
    CHECK_INT(cx_grpc_session_output(c.session, &c.out), CX_GRPC_GOES_ON);
    CHECK_INT(count_frames(&c, FRAME_GOAWAY), 0);
    CHECK_INT(cx_grpc_session_expire(c.session, 6 * SECOND_NS, &slow), CX_GRPC_GOES_ON);
    CHECK_INT(cx_grpc_session_output(c.session, &c.out), CX_GRPC_ENDS);
    CHECK_INT(count_frames(&c, FRAME_GOAWAY), 1);
    end_client(&c);
}

CX_TEST(a_client_that_says_nothing_is_cut_off)
{
    client c;
    unsigned slow = 0;
    REQUIRE(begin_client(&c));
    CHECK_INT(cx_grpc_session_expire(c.session, SECOND_NS + SECOND_NS / 2, &slow), CX_GRPC_GOES_ON);
    CHECK_INT(cx_grpc_session_output(c.session, &c.out), CX_GRPC_GOES_ON);
    CHECK_INT(c.out.size, 0); /* nothing is said before the client */
    CHECK_INT(cx_grpc_session_expire(c.session, 2 * SECOND_NS, &slow), CX_GRPC_ENDS_SLOW);
    end_client(&c);
}

CX_TEST(other_protocols_are_known_by_their_first_byte)
{
    client c;
    REQUIRE(begin_client(&c));
    CHECK_INT(send_bytes(&c, "\x16\x03\x01", 3, SECOND_NS), CX_GRPC_ENDS_TLS);
    CHECK_INT(c.out.size, 0);
    end_client(&c);
    REQUIRE(begin_client(&c));
    CHECK_INT(send_bytes(&c, "GET / HTTP/1.1\r\n", 16, SECOND_NS), CX_GRPC_ENDS_OTHER);
    CHECK(cx_str_starts(cx_buf_str(&c.out), CX_STR("HTTP/1.1 400 ")));
    end_client(&c);
    REQUIRE(begin_client(&c));
    CHECK_INT(send_bytes(&c, "\x01\x02", 2, SECOND_NS), CX_GRPC_ENDS_OTHER);
    CHECK_INT(c.out.size, 0);
    end_client(&c);
}
