/*
 * fuzz_egress.c - what the proxy of a sandbox reads: the first byte chooses a head of a request, a
 * ClientHello, a body in chunks, a policy, or a host (docs/formats/egress.md).
 */
#include <string.h>

#include "egress/api.h"
#include "egress/proxy_internal.h"
#include "fuzz/fuzz.h"

/* What is written of a request is read as the same request. */
static void check_head(cx_str bytes)
{
    static cx_egress_request request, again;
    cx_egress_fault fault;
    size_t size = cx_egress_head_size(bytes);
    if (!cx_egress_request_parse(cx_str_from(bytes.data, size), &request, &fault)) {
        FUZZ_CHECK(strlen(fault.rule) == 3 && fault.status >= 400 && fault.why != NULL);
        return;
    }
    FUZZ_CHECK(request.host.size != 0 && request.host.port != 0);
    FUZZ_CHECK(request.header_count <= CX_EGRESS_HEADERS_MAX);
    if (request.connect)
        return;
    cx_buf out, absolute;
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&absolute, cx_alloc_default());
    cx_egress_request_write(&request, &out);
    cx_buf_add_z(&out, "\r\n");
    FUZZ_CHECK(cx_egress_head_size(cx_buf_str(&out)) == out.size);
    bool v6 = request.host.is_address && request.host.address.is_v6;
    size_t method = request.method.size + 1;
    cx_buf_add(&absolute, out.data, method);
    cx_buf_printf(&absolute, "http://%s%s%s:%u", v6 ? "[" : "", request.host.name, v6 ? "]" : "",
                  (unsigned)request.host.port);
    cx_buf_add(&absolute, out.data + method, out.size - method);
    bool good = cx_egress_request_parse(cx_buf_str(&absolute), &again, &fault);
    FUZZ_CHECK(good || fault.status == 431 || fault.status == 414);
    if (good) {
        FUZZ_CHECK(cx_str_eq(request.method, again.method));
        FUZZ_CHECK(cx_str_eq(request.target, again.target));
        FUZZ_CHECK(strcmp(request.host.name, again.host.name) == 0);
        FUZZ_CHECK(request.framing == again.framing && request.length == again.length);
        FUZZ_CHECK(request.header_count == again.header_count);
    }
    cx_buf_done(&out);
    cx_buf_done(&absolute);
}

/* More bytes change nothing about a hello that was read, or refuse it. */
static void check_hello(cx_bytes bytes)
{
    cx_egress_hello hello, shorter;
    cx_egress_hello_state state = cx_egress_hello_read(bytes, &hello);
    if (state == CX_EGRESS_HELLO_BAD)
        FUZZ_CHECK(hello.why != NULL);
    if (hello.has_name && state == CX_EGRESS_HELLO_READ)
        FUZZ_CHECK(hello.name.size != 0 && !hello.name.is_address && hello.name.port == 0);
    if (bytes.size == 0)
        return;
    bytes.size--;
    cx_egress_hello_state before = cx_egress_hello_read(bytes, &shorter);
    FUZZ_CHECK(before != CX_EGRESS_HELLO_BAD || state == CX_EGRESS_HELLO_BAD);
}

static void check_host(cx_str text)
{
    cx_egress_host host, again;
    cx_egress_pattern pattern;
    if (cx_egress_host_parse(text, &host) == NULL) {
        char written[CX_EGRESS_NAME_MAX + 16];
        bool v6 = host.is_address && host.address.is_v6;
        FUZZ_CHECK(host.size == strlen(host.name) && host.size <= CX_EGRESS_NAME_MAX);
        FUZZ_CHECK(!cx_egress_host_is_number_form(text));
        (void)snprintf(written, sizeof written, "%s%s%s", v6 ? "[" : "", host.name, v6 ? "]" : "");
        FUZZ_CHECK(cx_egress_host_parse(cx_str_z(written), &again) == NULL);
        FUZZ_CHECK(strcmp(host.name, again.name) == 0 && host.is_address == again.is_address);
        if (host.is_address)
            (void)cx_egress_address_class(&host.address);
    }
    if (cx_egress_pattern_parse(text, &pattern) == NULL && !pattern.wildcard) {
        if (pattern.host.port == 0)
            pattern.host.port = 443;
        FUZZ_CHECK(cx_egress_pattern_covers(&pattern, &pattern.host));
    }
}

/* Returns whether the body is complete; it is fed in pieces of `step` bytes. */
static bool pass_chunks(cx_bytes bytes, size_t step, cx_buf *out)
{
    static const cx_egress_request request = {.framing = CX_EGRESS_CHUNKED};
    egress_body body;
    egress_body_init(&body, &request);
    for (size_t at = 0; at < bytes.size; at += step)
        if (!egress_body_filter(
                &body,
                cx_bytes_from(bytes.data + at, bytes.size - at < step ? bytes.size - at : step),
                out))
            return false;
    return body.complete;
}

/* What is written of a body is a body, and the same in whatever pieces it came. */
static void check_body(cx_bytes bytes)
{
    cx_buf whole, pieces, again;
    cx_buf_init(&whole, cx_alloc_default());
    cx_buf_init(&pieces, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    bool complete = pass_chunks(bytes, bytes.size + 1, &whole);
    FUZZ_CHECK(pass_chunks(bytes, 1, &pieces) == complete);
    if (complete) {
        FUZZ_CHECK(pass_chunks(cx_buf_bytes(&whole), 7, &again));
        cx_buf_clear(&again);
        FUZZ_CHECK(pass_chunks(cx_buf_bytes(&whole), whole.size, &again));
        FUZZ_CHECK(cx_str_eq(cx_buf_str(&whole), cx_buf_str(&again)));
    }
    cx_buf_done(&whole);
    cx_buf_done(&pieces);
    cx_buf_done(&again);
}

static void check_policy(cx_str text)
{
    cx_egress_policy policy;
    cx_arena arena;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    if (!cx_failed(cx_egress_policy_read(text, "policy", &arena, &policy, &err)))
        FUZZ_CHECK(policy.limits.connections != 0 && policy.list_count <= 1);
    cx_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    cx_bytes bytes = {data + 1, size - 1};
    if (data[0] == 'H')
        check_head(cx_bytes_str(bytes));
    else if (data[0] == 'T')
        check_hello(bytes);
    else if (data[0] == 'B')
        check_body(bytes);
    else if (data[0] == 'P')
        check_policy(cx_bytes_str(bytes));
    else
        check_host(cx_bytes_str(bytes));
    return 0;
}
