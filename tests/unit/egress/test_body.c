/*
 * test_body.c - bodies in chunks, read and written again; heads of answers.
 */
#include "egress/proxy_internal.h"

#include "tests/test.h"

/* Feeds `text` in steps; "!" when it is refused, "?" when it is not complete. */
static void pass(const char *text, size_t step, char *out, size_t size)
{
    cx_egress_request request = {.framing = CX_EGRESS_CHUNKED};
    egress_body body;
    cx_buf got;
    bool good = true;
    size_t all = strlen(text);
    cx_buf_init(&got, cx_alloc_default());
    egress_body_init(&body, &request);
    for (size_t at = 0; at < all && good; at += step)
        good = egress_body_filter(
            &body, cx_bytes_from(text + at, all - at < step ? all - at : step), &got);
    (void)snprintf(out, size, "%s%.*s",
                   !good           ? "!"
                   : body.complete ? ""
                                   : "?",
                   (int)got.size, got.size == 0 ? "" : (const char *)got.data);
    cx_buf_done(&got);
}

CX_TEST(chunks_are_measured_again)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"3\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n"},
        {"003\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n"},
        {"A\r\n0123456789\r\n0\r\n\r\n", "a\r\n0123456789\r\n0\r\n\r\n"},
        {"1\r\na\r\n1\r\nb\r\n0\r\nX: y\r\nZ: z\r\n\r\n", "1\r\na\r\n1\r\nb\r\n0\r\n\r\n"},
        {"0\r\n\r\n", "0\r\n\r\n"},
        {"3\r\nab", "?2\r\nab\r\n"},
        {"", "?"},
        {"3;x=y\r\nabc\r\n0\r\n\r\n", "!"},
        {" 3\r\nabc\r\n", "!"},
        {"3 \r\nabc\r\n", "!"},
        {"0x3\r\nabc\r\n", "!"},
        {"-3\r\nabc\r\n", "!"},
        {"\r\nabc\r\n", "!"},
        {"3\nabc\r\n", "!"},
        {"3\r\nabcd\r\n", "!3\r\nabc\r\n"},
        {"3\r\nabc\n0\r\n", "!3\r\nabc\r\n"},
        {"1000000000000000\r\n", "!"},
        {"0\r\nX\n\r\n", "!"},
    };
    char got[200];
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        pass(rows[i].text, 1000, got, sizeof got);
        if (strcmp(got, rows[i].expected) != 0)
            cx_test_fail(__FILE__, __LINE__, "'%s' is '%s', expected '%s'", rows[i].text, got,
                         rows[i].expected);
        pass(rows[i].text, 1, got, sizeof got); /* the same verdict in any pieces */
        CHECK((got[0] == '!') == (rows[i].expected[0] == '!'));
        CHECK((got[0] == '?') == (rows[i].expected[0] == '?'));
    }
}

CX_TEST(trailers_have_a_limit)
{
    static char text[20000], got[64];
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "0\r\n", 3);
    pass(text, 100, got, sizeof got);
    CHECK(strcmp(got, "!") == 0);
}

static void answer(const char *text, size_t step, char *out, size_t size)
{
    egress_head head = {.done = false};
    cx_buf got;
    bool good = true;
    size_t all = strlen(text);
    cx_buf_init(&got, cx_alloc_default());
    cx_buf_init(&head.held, cx_alloc_default());
    for (size_t at = 0; at < all && good; at += step)
        good = egress_head_filter(
            &head, cx_bytes_from(text + at, all - at < step ? all - at : step), &got);
    (void)snprintf(out, size, "%s%.*s", good ? "" : "!", (int)got.size,
                   got.size == 0 ? "" : (const char *)got.data);
    cx_buf_done(&got);
    cx_buf_done(&head.held);
}

CX_TEST(answers_end_with_their_connection)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nA: b\r\nKeep-Alive: x\r\nconnection: keep-alive\r\n\r\nbody\r\n\r\n",
         "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\nbody\r\n\r\n"},
        {"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx",
         "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx"},
        {"HTTP/1.0 404 No\r\n\r\n", "HTTP/1.0 404 No\r\nConnection: close\r\n\r\n"},
        {"SSH-2.0-x\r\n\r\n", "!"},
        {"HTTP/1.1 2", ""},
    };
    char got[400];
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        for (size_t step = 1; step < 200; step += 33) {
            answer(rows[i].text, step, got, sizeof got);
            if (strcmp(got, rows[i].expected) != 0)
                cx_test_fail(__FILE__, __LINE__, "'%s' is '%s', expected '%s'", rows[i].text, got,
                             rows[i].expected);
        }
}
