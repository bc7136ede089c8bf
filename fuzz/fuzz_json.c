/*
 * fuzz_json.c - any bytes through the JSON module.
 *
 * What is accepted must come back the same: canonical text parses to an equal value, and the
 * canonical text of that is the same text.  A prefix of an accepted document is never wrong, only
 * cut.
 */
#include "fuzz/fuzz.h"
#include "json/json.h"

static void check_style(const cx_json *value, cx_json_style style, cx_arena *arena)
{
    cx_buf first, second;
    cx_json again;
    cx_err err;
    cx_buf_init(&first, cx_alloc_default());
    cx_buf_init(&second, cx_alloc_default());
    if (!cx_failed(cx_json_write(&first, value, style, &err))) {
        cx_status status = cx_json_parse_text(cx_buf_str(&first), arena, &again, &err);
        FUZZ_CHECK(!cx_failed(status));
        FUZZ_CHECK(!cx_failed(cx_json_write(&second, &again, style, &err)));
        FUZZ_CHECK(cx_str_eq(cx_buf_str(&first), cx_buf_str(&second)));
        FUZZ_CHECK(style == CX_JSON_JCS || cx_json_equal(value, &again));
    }
    cx_buf_done(&first);
    cx_buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cx_json_parser parser;
    static bool ready;
    cx_arena arena;
    cx_json value;
    cx_err err;
    cx_str text = {(const char *)data, size};
    if (!ready) {
        cx_json_parser_init(&parser, cx_alloc_default(), NULL);
        ready = true;
    }
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_status status = cx_json_parse(&parser, text, &arena, &value, &err);
    if (cx_failed(status)) {
        FUZZ_CHECK(err.tag != NULL && err.offset <= size && err.line >= 1 && err.column >= 1);
    } else {
        check_style(&value, CX_JSON_PY_COMPACT, &arena);
        check_style(&value, CX_JSON_PY_DEFAULT, &arena);
        check_style(&value, CX_JSON_JCS, &arena);
        cx_json cut;
        size_t used, at = size == 0 ? 0 : data[size / 2] % size;
        status = cx_json_parse_prefix(&parser, (cx_str){text.data, at}, false, &arena, &cut, &used,
                                      &err);
        FUZZ_CHECK(!cx_failed(status) || status.code == CX_E_MORE);
    }
    cx_arena_done(&arena);
    return 0;
}
