/*
 * Building objects: each type of member, and the three forms of text that is not UTF-8.
 */
#include "json/api.h"
#include "tests/test.h"

#include <math.h>

static void check_object(cx_json_list *list, const char *expected)
{
    cx_json value;
    cx_err err;
    cx_buf out;
    cx_buf_init(&out, cx_alloc_default());
    REQUIRE(!cx_failed(cx_json_list_end_object(list, &value, &err)));
    CHECK_STATUS(cx_json_write(&out, &value, CX_JSON_PY_COMPACT, &err), &err);
    CHECK_STR(cx_buf_str(&out), expected);
    cx_buf_done(&out);
}

CX_TEST(put_writes_each_type)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    static const uint8_t bytes[] = {0xff, 0x00};
    cx_digest digest = {{0xab}};
    cx_json_list list = cx_json_list_begin(&arena), inner = cx_json_list_begin(&arena);
    cx_json_put_str(&list, "a", CX_STR("x"));
    cx_json_put_str(&list, "b", (cx_str){NULL, 0});
    cx_json_put_maybe(&list, "c", CX_STR(""));
    cx_json_put_maybe(&list, "d", CX_STR("y"));
    cx_json_put_uint(&list, "e", UINT64_MAX);
    cx_json_put_int(&list, "f", INT64_MIN);
    cx_json_put_bool(&list, "g", true);
    cx_json_put_float(&list, "h", 0.5f);
    cx_json_put_float(&list, "i", INFINITY);
    cx_json_put_float(&list, "j", NAN);
    cx_json_put_hex(&list, "k", cx_bytes_from(bytes, sizeof bytes));
    cx_json_put_bytes(&list, "l", cx_bytes_from(bytes, sizeof bytes));
    cx_json_put_bytes(&list, "m", cx_bytes_from("z", 1));
    cx_json_put_z(&inner, "n", "in");
    cx_json_put_object(&list, "o", &inner);
    check_object(&list,
                 "{\"a\":\"x\",\"b\":\"\",\"c\":null,\"d\":\"y\",\"e\":18446744073709551615,"
                 "\"f\":-9223372036854775808,\"g\":true,\"h\":0.5,\"i\":null,\"j\":null,"
                 "\"k\":\"ff00\",\"l\":{\"hex\":\"ff00\"},\"m\":\"z\",\"o\":{\"n\":\"in\"}}");
    list = cx_json_list_begin(&arena);
    cx_json_put_digest(&list, "d", &digest);
    check_object(&list, "{\"d\":\"ab"
                        "00000000000000000000000000000000000000000000000000000000000000\"}");
    cx_arena_done(&arena);
}

CX_TEST(put_has_three_forms_of_text_that_is_not_utf8)
{
    cx_arena arena;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    const cx_str texts[] = {CX_STR("a\xff\x62"), CX_STR("fine \xc3\xa9")};
    cx_json_list list = cx_json_list_begin(&arena);
    cx_json_put_quoted(&list, "q", texts[0]);
    cx_json_put_utf8(&list, "u", texts[0]);
    cx_json_put_quoted_strs(&list, "v", texts, 2);
    check_object(&list, "{\"q\":\"a\\\\377b\",\"u\":\"a\\ufffdb\","
                        "\"v\":[\"a\\\\377b\",\"fine \\u00e9\"]}");
    /* The form of a terminal is cx_shown_add's, which has tests of its own: here it is UTF-8. */
    CHECK(cx_utf8_valid(cx_json_shown(texts[0], &arena)));
    CHECK(!cx_str_eq(cx_json_shown(texts[0], &arena), texts[0]));
    CHECK(cx_json_shown(texts[1], &arena).data == texts[1].data);
    cx_arena_done(&arena);
}

CX_TEST(put_reports_what_failed_inside_when_the_outer_list_ends)
{
    cx_arena arena;
    cx_json value;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_json_list list = cx_json_list_begin(&arena), inner = cx_json_list_begin(&arena);
    inner.failed = true;
    cx_json_put_object(&list, "a", &inner);
    CHECK(cx_json_list_end_object(&list, &value, &err).code == CX_E_NOMEM);
    cx_arena_done(&arena);
}
