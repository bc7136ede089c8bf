/*
 * test_otlp_scan.c - what is in a request, and what is not taken of it.
 */
#include "import/otlp_scan.h"

#include "base/alloc.h"
#include "tests/test.h"

#define T "0af7651916cd43dd8448eb211c80319c"
#define S "00f067aa0ba902b7"

static cx_status scan(cx_arena *arena, cx_otlp_signal signal, bool is_json, cx_str text,
                      cx_otlp_request *out, cx_err *err)
{
    return cx_otlp_scan(signal, is_json, cx_str_bytes(text), arena, out, err);
}

static cx_otlp_fault fault_of(const char *span)
{
    cx_arena arena;
    cx_otlp_request request = {.count = 0};
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str text =
        cx_arena_printf(&arena, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[%s]}]}]}", span);
    CHECK_STATUS(scan(&arena, CX_OTLP_TRACES, true, text, &request, &err), &err);
    cx_otlp_fault fault = request.count == 1 ? request.records[0].fault : CX_OTLP_NO_OBJECT;
    CHECK_INT(request.count, 1);
    cx_arena_done(&arena);
    return fault;
}

CX_TEST(otlp_scan_faults)
{
    CHECK_INT(fault_of("{\"traceId\":\"" T "\",\"spanId\":\"" S "\"}"), CX_OTLP_FINE);
    CHECK_INT(fault_of("{\"traceId\":\"0AF7651916CD43DD8448EB211C80319C\",\"spanId\":\"" S "\"}"),
              CX_OTLP_FINE);
    CHECK_INT(fault_of("{\"traceId\":\"CvdlGRbNQ92ESOshHIAxnA==\",\"spanId\":\"APBnqgupArc=\"}"),
              CX_OTLP_FINE);
    CHECK_INT(fault_of("{\"traceId\":\"" T "\"}"), CX_OTLP_SPAN_ID);
    CHECK_INT(fault_of("{\"traceId\":\"" T "\",\"spanId\":\"0000000000000000\"}"), CX_OTLP_SPAN_ID);
    CHECK_INT(fault_of("{\"traceId\":\"" T "0\",\"spanId\":\"" S "\"}"), CX_OTLP_TRACE_ID);
    CHECK_INT(fault_of("{\"traceId\":7,\"spanId\":\"" S "\"}"), CX_OTLP_TRACE_ID);
    CHECK_INT(fault_of("{}"), CX_OTLP_TRACE_ID);
    CHECK_INT(fault_of("[]"), CX_OTLP_NO_OBJECT);
}

/* Spelling does not matter to the content, values do. */
CX_TEST(otlp_scan_content)
{
    cx_arena arena;
    cx_otlp_request request;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_str text =
        CX_STR("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":["
               "{\"a\":1,\"b\":\"\\u0041\"},{ \"b\":\"A\", \"a\":1 },{\"a\":1.0,\"b\":\"A\"}"
               "]}],\"instrumentationLibraryLogs\":[{\"logRecords\":[{}]}]}]}");
    CHECK_STATUS(scan(&arena, CX_OTLP_LOGS, true, text, &request, &err), &err);
    REQUIRE(request.count == 4);
    CHECK(cx_digest_eq(&request.records[0].content, &request.records[1].content));
    CHECK(!cx_digest_eq(&request.records[0].content, &request.records[2].content));
    CHECK_INT(request.records[3].fault, CX_OTLP_FINE);
    cx_arena_done(&arena);
}

static cx_digest content_of(cx_arena *arena, const char *more)
{
    cx_otlp_request request = {.count = 0};
    cx_err err;
    cx_str text =
        cx_arena_printf(arena,
                        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"" T
                        "\",\"spanId\":\"" S "\"%s%s}]}]}]}",
                        more[0] == 0 ? "" : ",", more);
    CHECK_STATUS(scan(arena, CX_OTLP_TRACES, true, text, &request, &err), &err);
    CHECK_INT(request.count, 1);
    return request.count == 1 ? request.records[0].content : (cx_digest){{0}};
}

#define ATTRIBUTE(value) "\"attributes\":[{\"key\":\"k\",\"value\":{" value "}}]"

/* What a protobuf reader takes for the same is the same content; what it tells apart is not. */
CX_TEST(otlp_scan_meaning)
{
    static const struct {
        const char *one, *other;
        bool same;
    } rows[] = {
        {ATTRIBUTE("\"intValue\":1"), ATTRIBUTE("\"intValue\":\"1\""), true},
        {ATTRIBUTE("\"intValue\":-7"), ATTRIBUTE("\"intValue\":\"-7\""), true},
        {ATTRIBUTE("\"intValue\":\"007\""), ATTRIBUTE("\"intValue\":7.0"), true},
        {ATTRIBUTE("\"intValue\":9007199254740993"), ATTRIBUTE("\"intValue\":\"9007199254740993\""),
         true},
        {ATTRIBUTE("\"doubleValue\":1"), ATTRIBUTE("\"doubleValue\":1.0"), true},
        {ATTRIBUTE("\"bytesValue\":\"_-8=\""), ATTRIBUTE("\"bytesValue\":\"/+8=\""), true},
        {ATTRIBUTE("\"arrayValue\":{}"), ATTRIBUTE("\"arrayValue\":{\"values\":[]}"), true},
        {"\"kind\":2", "\"kind\":\"SPAN_KIND_SERVER\"", true},
        {"\"status\":{\"code\":\"STATUS_CODE_ERROR\"}", "\"status\":{\"code\":2}", true},
        {"", "\"attributes\":[],\"events\":[],\"links\":null,\"kind\":0,\"status\":{}", true},
        {"", "\"traceState\":\"\",\"parentSpanId\":\"\",\"flags\":0", true},
        {"\"startTimeUnixNano\":5", "\"startTimeUnixNano\":\"5\"", true},
        {"\"parentSpanId\":\"00F067AA0BA902B7\"", "\"parentSpanId\":\"00f067aa0ba902b7\"", true},
        {"\"parentSpanId\":\"APBnqgupArc=\"", "\"parentSpanId\":\"00f067aa0ba902b7\"", true},
        {ATTRIBUTE("\"intValue\":1"), ATTRIBUTE("\"doubleValue\":1"), false},
        {ATTRIBUTE("\"intValue\":0"), ATTRIBUTE(""), false},
        {ATTRIBUTE("\"stringValue\":\"\""), ATTRIBUTE(""), false},
        {ATTRIBUTE("\"stringValue\":\"1\""), ATTRIBUTE("\"intValue\":\"1\""), false},
        {ATTRIBUTE("\"intValue\":\"18446744073709551616\""), ATTRIBUTE("\"intValue\":0"), false},
        {"\"kind\":1", "\"kind\":2", false},
        {"\"name\":\"a\"", "\"name\":\"A\"", false},
        {"\"x\":1", "\"x\":\"1\"", false},
        {"\"x\":0", "", false},
    };
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        const cx_digest one = content_of(&arena, rows[i].one);
        const cx_digest other = content_of(&arena, rows[i].other);
        if (cx_digest_eq(&one, &other) != rows[i].same)
            cx_test_fail(__FILE__, __LINE__, "row %zu: %s, %s", i, rows[i].one, rows[i].other);
    }
    cx_arena_done(&arena);
}

CX_TEST(otlp_scan_refuses)
{
    static const struct {
        const char *text, *tag;
    } bad[] = {
        {"", "U_SYNTAX"},
        {"[]", "U_SHAPE"},
        {"{\"resourceSpans\":7}", "U_SHAPE"},
        {"{\"resourceSpans\":[7]}", "U_SHAPE"},
        {"{\"resourceSpans\":[{\"scopeSpans\":{}}]}", "U_SHAPE"},
        {"{\"resourceSpans\":[{\"scopeSpans\":[[]]}]}", "U_SHAPE"},
        {"{\"resourceSpans\":[],\"x\":1e999}", "U_NUMBER"},
        {"{\"resourceSpans\":[],\"resourceSpans\":[]}", "U_DUPKEY"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        cx_arena arena;
        cx_otlp_request request;
        cx_err err = {0};
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK(cx_failed(scan(&arena, CX_OTLP_TRACES, true, cx_str_z(bad[i].text), &request, &err)));
        CHECK_STR(cx_str_z(err.tag == NULL ? "" : err.tag), bad[i].tag);
        cx_arena_done(&arena);
    }
}
