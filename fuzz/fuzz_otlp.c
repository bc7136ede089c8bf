/*
 * fuzz_otlp.c - any bytes as OTLP in protobuf: what is accepted is one JSON value, and the same
 * again.
 */
#include <string.h>

#include "base/arena.h"
#include "fuzz/fuzz.h"
#include "import/otlp_proto.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cx_arena arena;
    cx_buf out, again;
    cx_json json;
    cx_err err;
    cx_otlp_signal signal = size != 0 && (data[0] & 0x80) != 0 ? CX_OTLP_LOGS : CX_OTLP_TRACES;
    cx_bytes request = size == 0 ? cx_bytes_from(data, 0) : cx_bytes_from(data + 1, size - 1);
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&out, cx_alloc_default());
    cx_buf_init(&again, cx_alloc_default());
    if (cx_failed(cx_otlp_json(signal, request, &out, NULL, &err))) {
        FUZZ_CHECK(err.tag != NULL && err.offset <= request.size && out.size == 0);
    } else {
        FUZZ_CHECK(!cx_failed(cx_json_parse_text(cx_buf_str(&out), &arena, &json, &err)));
        FUZZ_CHECK(!cx_failed(cx_otlp_json(signal, request, &again, NULL, &err)));
        FUZZ_CHECK(again.size == out.size && memcmp(again.data, out.data, out.size) == 0);
    }
    cx_buf_done(&again);
    cx_buf_done(&out);
    cx_arena_done(&arena);
    return 0;
}
