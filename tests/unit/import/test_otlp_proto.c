/*
 * test_otlp_proto.c - OTLP requests in protobuf, written here byte by byte, as JSON; and every way
 * of cutting or bending one.
 */
#include "import/otlp_proto.h"

#include <stdlib.h>

#include "base/arena.h"
#include "json/json.h"
#include "tests/test.h"

/* --- a small writer --------------------------------------------------------------------------- */

static void put_varint(cx_buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        cx_buf_add_byte(out, (uint8_t)(value | 0x80));
    cx_buf_add_byte(out, (uint8_t)value);
}

static void put_number(cx_buf *out, unsigned field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, value);
}

static void put_fixed(cx_buf *out, unsigned field, uint64_t value, size_t size)
{
    put_varint(out, (uint64_t)field << 3 | (size == 8 ? 1 : 5));
    for (size_t i = 0; i < size; i++)
        cx_buf_add_byte(out, (uint8_t)(value >> 8 * i));
}

static void put_bytes(cx_buf *out, unsigned field, const void *data, size_t size)
{
    put_varint(out, (uint64_t)field << 3 | 2);
    put_varint(out, size);
    cx_buf_add(out, data, size);
}

static void put_text(cx_buf *out, unsigned field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

/* Puts `inner` into `out` as a field and empties it. */
static void put_inner(cx_buf *out, unsigned field, cx_buf *inner)
{
    put_bytes(out, field, inner->data, inner->size);
    cx_buf_clear(inner);
}

/* --- checks ----------------------------------------------------------------------------------- */

static void expect(cx_otlp_signal signal, const cx_buf *request, uint64_t records, const char *json)
{
    cx_buf out;
    cx_err err = {0};
    uint64_t found = 0;
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_otlp_json(signal, cx_buf_bytes(request), &out, &found, &err), &err);
    CHECK(found == records);
    CHECK_STR(cx_buf_str(&out), json);
    cx_buf_done(&out);
}

static void wrap(cx_buf *record, cx_buf *request)
{
    cx_buf inner, outer;
    cx_buf_init(&inner, cx_alloc_default());
    cx_buf_init(&outer, cx_alloc_default());
    put_inner(&inner, 2, record); /* ScopeSpans.spans */
    put_inner(&outer, 2, &inner); /* ResourceSpans.scope_spans */
    put_inner(request, 1, &outer);
    cx_buf_done(&inner);
    cx_buf_done(&outer);
}

/* A span with one of everything; in `request`. */
static void make_span(cx_buf *request)
{
    static const uint8_t trace[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xFF};
    static const double weight = 0.1;
    cx_buf span, pair, value, event;
    uint64_t bits;
    cx_buf_init(&span, cx_alloc_default());
    cx_buf_init(&pair, cx_alloc_default());
    cx_buf_init(&value, cx_alloc_default());
    cx_buf_init(&event, cx_alloc_default());
    put_bytes(&span, 1, trace, 16);
    put_bytes(&span, 2, trace, 8);
    put_text(&span, 5, "chat \"x\"");
    put_number(&span, 6, 3);
    put_fixed(&span, 7, UINT64_C(1700000000000000001), 8);
    put_text(&pair, 1, "n");
    put_number(&value, 3, (uint64_t)-5);
    put_inner(&pair, 2, &value);
    put_inner(&span, 9, &pair);
    put_text(&event, 2, "e");
    put_inner(&span, 11, &event);
    memcpy(&bits, &weight, sizeof bits);
    put_text(&pair, 1, "w");
    put_fixed(&value, 4, bits, 8);
    put_inner(&pair, 2, &value);
    put_inner(&span, 9, &pair); /* apart from the first */
    put_fixed(&span, 16, 0x80000001, 4);
    put_text(&span, 99, "new");
    wrap(&span, request);
    cx_buf_done(&span);
    cx_buf_done(&pair);
    cx_buf_done(&value);
    cx_buf_done(&event);
}

static const char span_json[] =
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{"
    "\"traceId\":\"0102030405060708090a0b0c0d0e0fff\",\"spanId\":\"0102030405060708\","
    "\"name\":\"chat \\\"x\\\"\",\"kind\":3,\"startTimeUnixNano\":\"1700000000000000001\","
    "\"attributes\":[{\"key\":\"n\",\"value\":{\"intValue\":\"-5\"}},"
    "{\"key\":\"w\",\"value\":{\"doubleValue\":0.1}}],"
    "\"events\":[{\"name\":\"e\"}],\"flags\":2147483649,"
    "\"_unknown\":[{\"field\":99,\"value\":\"6e6577\",\"wire\":\"bytes\"}]}]}]}]}";

CX_TEST(otlp_span_with_one_of_everything)
{
    cx_buf request;
    cx_buf_init(&request, cx_alloc_default());
    expect(CX_OTLP_TRACES, &request, 0, "{}");
    make_span(&request);
    expect(CX_OTLP_TRACES, &request, 1, span_json);
    cx_buf_done(&request);
}

CX_TEST(otlp_a_field_that_came_twice_is_kept_twice)
{
    cx_buf span, request;
    cx_buf_init(&span, cx_alloc_default());
    cx_buf_init(&request, cx_alloc_default());
    put_text(&span, 5, "first");
    put_text(&span, 5, "last");
    put_number(&span, 5, 7); /* a name is no number */
    wrap(&span, &request);
    expect(CX_OTLP_TRACES, &request, 1,
           "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"name\":\"last\",\"_unknown\":["
           "{\"field\":5,\"value\":\"6669727374\",\"wire\":\"bytes\"},"
           "{\"field\":5,\"value\":\"7\",\"wire\":\"varint\"}]}]}]}]}");
    cx_buf_done(&span);
    cx_buf_done(&request);
}

CX_TEST(otlp_values_of_every_kind_in_a_log_record)
{
    static const uint64_t reals[] = {UINT64_C(0x7FF8000000000000), UINT64_C(0x7FF0000000000000),
                                     UINT64_C(0xFFF0000000000000)};
    cx_buf record, list, value, request;
    cx_buf_init(&record, cx_alloc_default());
    cx_buf_init(&list, cx_alloc_default());
    cx_buf_init(&value, cx_alloc_default());
    cx_buf_init(&request, cx_alloc_default());
    for (size_t i = 0; i < 3; i++) {
        put_fixed(&value, 4, reals[i], 8);
        put_inner(&list, 1, &value);
    }
    put_number(&value, 2, 1);
    put_inner(&list, 1, &value);
    put_bytes(&value, 7, "\0\xFF", 2);
    put_inner(&list, 1, &value);
    put_inner(&value, 5, &list);
    put_inner(&record, 5, &value);
    put_fixed(&record, 1, 5, 8);
    put_number(&record, 2, 9);
    wrap(&record, &request);
    expect(CX_OTLP_LOGS, &request, 1,
           "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{\"timeUnixNano\":\"5\","
           "\"severityNumber\":9,\"body\":{\"arrayValue\":{\"values\":[{\"doubleValue\":\"NaN\"},"
           "{\"doubleValue\":\"Infinity\"},{\"doubleValue\":\"-Infinity\"},{\"boolValue\":true},"
           "{\"bytesValue\":\"AP8=\"}]}}}]}]}]}");
    cx_buf_done(&record);
    cx_buf_done(&list);
    cx_buf_done(&value);
    cx_buf_done(&request);
}

CX_TEST(otlp_deep_values_and_bad_text_are_refused)
{
    cx_buf value, inner, request;
    cx_err err;
    cx_buf_init(&value, cx_alloc_default());
    cx_buf_init(&inner, cx_alloc_default());
    cx_buf_init(&request, cx_alloc_default());
    for (int depth = 0; depth < 100; depth++) {
        put_inner(&inner, 1, &value); /* ArrayValue.values */
        put_inner(&value, 5, &inner); /* AnyValue.array_value */
    }
    put_inner(&inner, 5, &value);
    wrap(&inner, &request);
    CHECK(cx_otlp_json(CX_OTLP_LOGS, cx_buf_bytes(&request), &value, NULL, &err).code ==
          CX_E_LIMIT);
    CHECK(strcmp(err.tag, "U_DEPTH") == 0);
    cx_buf_clear(&request);
    put_text(&inner, 5, "\xC3(");
    wrap(&inner, &request);
    CHECK(cx_otlp_json(CX_OTLP_TRACES, cx_buf_bytes(&request), &value, NULL, &err).code ==
          CX_E_FORMAT);
    CHECK(strcmp(err.tag, "U_UTF8") == 0);
    cx_buf_done(&value);
    cx_buf_done(&inner);
    cx_buf_done(&request);
}

/* Whatever is accepted is one JSON value; what is not says where, and leaves the buffer alone. */
CX_TEST(otlp_cut_and_bent_requests)
{
    cx_buf request, out;
    cx_arena arena;
    cx_json json;
    cx_err err;
    cx_buf_init(&request, cx_alloc_default());
    cx_buf_init(&out, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    make_span(&request);
    size_t refused = 0;
    for (size_t bit = 0; bit < request.size * 8; bit++) {
        uint8_t *bent = malloc(request.size); /* its own block: reading beyond it is seen */
        REQUIRE(bent != NULL);
        memcpy(bent, request.data, request.size);
        bent[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cx_buf_clear(&out);
        cx_status status =
            cx_otlp_json(CX_OTLP_TRACES, cx_bytes_from(bent, request.size), &out, NULL, &err);
        if (cx_failed(status)) {
            refused++;
            CHECK(out.size == 0 && err.offset <= request.size);
        } else {
            CHECK_STATUS(cx_json_parse_text(cx_buf_str(&out), &arena, &json, &err), &err);
        }
        free(bent);
    }
    CHECK(refused != 0);
    for (size_t size = 1; size < request.size; size++) {
        cx_buf_clear(&out);
        CHECK(cx_failed(
            cx_otlp_json(CX_OTLP_TRACES, cx_bytes_from(request.data, size), &out, NULL, &err)));
    }
    cx_arena_done(&arena);
    cx_buf_done(&out);
    cx_buf_done(&request);
}
