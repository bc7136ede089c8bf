/*
 * test_request.c - heads of requests (request.h R1 to R3).
 */
#include "egress/request.h"

#include "tests/test.h"

static bool parse(const char *head, cx_egress_request *out, cx_egress_fault *fault)
{
    *fault = (cx_egress_fault){"", 0, ""};
    return cx_egress_request_parse(cx_str_z(head), out, fault);
}

static void check_refused(const char *head, const char *rule, unsigned status)
{
    static cx_egress_request request;
    cx_egress_fault fault;
    if (parse(head, &request, &fault) || strcmp(fault.rule, rule) != 0 || fault.status != status)
        cx_test_fail(__FILE__, __LINE__, "'%.60s': %s %u %s", head, fault.rule, fault.status,
                     fault.why);
}

CX_TEST(connect_names_host_and_port)
{
    static cx_egress_request request;
    cx_egress_fault fault;
    CHECK(parse("CONNECT Example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nA: b\r\n\r\n",
                &request, &fault));
    CHECK(request.connect && strcmp(request.host.name, "example.org") == 0);
    CHECK(request.host.port == 443 && request.framing == CX_EGRESS_NO_BODY);
    CHECK(parse("CONNECT [2606:4700::1]:8443 HTTP/1.0\r\n\r\n", &request, &fault));
    CHECK(request.host.is_address && request.host.port == 8443);
    CHECK(parse("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n", &request, &fault));
    check_refused("CONNECT example.org HTTP/1.1\r\nHost: example.org\r\n\r\n", "E02", 400);
    check_refused("CONNECT a.b:443 HTTP/1.1\r\nHost: c.d:443\r\n\r\n", "E06", 400);
    check_refused("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:80\r\n\r\n", "E06", 400);
    check_refused("CONNECT a.b:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\n", "E02", 400);
    check_refused("CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n", "E03", 403);
    check_refused("CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", "E03", 403);
    check_refused("CONNECT 0177.0.0.1:443 HTTP/1.1\r\n\r\n", "E03", 403);
    check_refused("CONNECT user@a.b:443 HTTP/1.1\r\n\r\n", "E02", 400);
    check_refused("CONNECT http://a.b:443 HTTP/1.1\r\n\r\n", "E02", 400);
}

CX_TEST(requests_are_rewritten)
{
    static cx_egress_request request;
    cx_egress_fault fault;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    CHECK(parse("POST HTTP://A.b.:80/x?y=1 HTTP/1.1\r\nhost:  A.B \r\nProxy-Authorization: x\r\n"
                "Connection: close, X-Mine\r\nx-mine: 1\r\nAccept: */*\r\nContent-Length: 007\r\n"
                "Expect: 100-Continue\r\nTE: trailers\r\nUpgrade: h2c\r\n\r\n",
                &request, &fault));
    cx_egress_request_write(&request, &out);
    CHECK(cx_str_is(cx_buf_str(&out), "POST /x?y=1 HTTP/1.1\r\nHost: a.b\r\nAccept: */*\r\n"
                                      "Content-Length: 7\r\nConnection: close\r\n"));
    CHECK(request.wants_continue && request.length == 7);
    cx_buf_clear(&out);
    CHECK(parse("GET http://[2606::1]:8080?q HTTP/1.0\r\n\r\n", &request, &fault));
    cx_egress_request_write(&request, &out);
    CHECK(cx_str_is(cx_buf_str(&out),
                    "GET /?q HTTP/1.1\r\nHost: [2606::1]:8080\r\nConnection: close\r\n"));
    cx_buf_clear(&out);
    CHECK(parse("PUT http://a.b HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: Chunked\r\n\r\n",
                &request, &fault));
    cx_egress_request_write(&request, &out);
    CHECK(cx_str_is(cx_buf_str(&out), "PUT / HTTP/1.1\r\nHost: a.b\r\nTransfer-Encoding: chunked"
                                      "\r\nConnection: close\r\n"));
    cx_buf_done(&out);
}

#define GET "GET http://a.b/ HTTP/1.1\r\nHost: a.b\r\n"

CX_TEST(two_readings_are_refused)
{
    check_refused(GET "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "E02", 400);
    check_refused(GET "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", "E02", 400);
    check_refused(GET "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", "E02", 400);
    check_refused(GET "Content-Length: 1, 1\r\n\r\n", "E02", 400);
    check_refused(GET "Content-Length: +1\r\n\r\n", "E02", 400);
    check_refused(GET "Content-Length: 0x1\r\n\r\n", "E02", 400);
    check_refused(GET "Content-Length:\r\n\r\n", "E02", 400);
    check_refused(GET "Content-Length: 9999999999999999999\r\n\r\n", "E02", 400);
    check_refused(GET "Transfer-Encoding: gzip, chunked\r\n\r\n", "E02", 400);
    check_refused(GET "Transfer-Encoding: identity\r\n\r\n", "E02", 400);
    check_refused(GET "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "E02",
                  400);
    check_refused(GET "Transfer-Encoding : chunked\r\n\r\n", "E02", 400);
    check_refused(GET " Transfer-Encoding: chunked\r\n\r\n", "E02", 400);
    check_refused(GET "A: b\n\r\n", "E02", 400);
    check_refused(GET "A: b\nTransfer-Encoding: chunked\r\n\r\n", "E02", 400);
    check_refused(GET "A: b\rc\r\n\r\n", "E02", 400);
    check_refused(GET "A: b\r\n c\r\n\r\n", "E02", 400);
    check_refused(GET "A: \001\r\n\r\n", "E02", 400);
    check_refused(GET ": b\r\n\r\n", "E02", 400);
    check_refused(GET "A\r\n\r\n", "E02", 400);
    check_refused(GET "Host: a.b\r\n\r\n", "E02", 400);
    check_refused(GET "Expect: nothing\r\n\r\n", "E02", 417);
    check_refused("GET http://a.b/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "E02", 400);
}

CX_TEST(targets_are_checked)
{
    check_refused("GET / HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET https://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET ftp://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET http:///x HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET http://u:p@a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET http://a.b/#x HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET http://a.b\\@c.d/ HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET http://a.b/ x HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET http://a.b/ HTTP/2.0\r\nHost: a.b\r\n\r\n", "E02", 505);
    check_refused("GET http://a.b/\r\nHost: a.b\r\n\r\n", "E02", 505);
    check_refused("G@T http://a.b/ HTTP/1.1\r\nHost: a.b\r\n\r\n", "E02", 400);
    check_refused("GET http://a.b/ HTTP/1.1\r\n\r\n", "E06", 400);
    check_refused("GET http://a.b/ HTTP/1.1\r\nHost: c.d\r\n\r\n", "E06", 400);
    check_refused("GET http://a.b:8080/ HTTP/1.1\r\nHost: a.b:80\r\n\r\n", "E06", 400);
    check_refused("GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n", "E03", 403);
    check_refused("\r\n\r\n", "E02", 400);
    check_refused("", "E02", 400);
}

CX_TEST(heads_have_limits)
{
    static char head[CX_EGRESS_HEAD_MAX + 64];
    int size = snprintf(head, sizeof head, GET);
    for (int i = 0; i < CX_EGRESS_HEADERS_MAX - 1; i++)
        size += snprintf(head + size, sizeof head - (size_t)size, "A: b\r\n");
    int full = size;
    size += snprintf(head + size, sizeof head - (size_t)size, "\r\n");
    static cx_egress_request request;
    cx_egress_fault fault;
    CHECK(parse(head, &request, &fault));
    CHECK(request.header_count == CX_EGRESS_HEADERS_MAX - 1);
    size = full + snprintf(head + full, sizeof head - (size_t)full, "A: b\r\n\r\n");
    check_refused(head, "E02", 431);
    size = snprintf(head, sizeof head, GET "A: ");
    memset(head + size, 'b', CX_EGRESS_HEAD_MAX);
    memcpy(head + size + CX_EGRESS_HEAD_MAX, "\r\n\r\n", 5);
    check_refused(head, "E02", 431);
    CHECK(cx_egress_head_size(CX_STR("a\r\n\r\nb")) == 5);
    CHECK(cx_egress_head_size(CX_STR("a\r\n\r")) == 0);
}
