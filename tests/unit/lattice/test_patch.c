/*
 * test_patch.c - merge patches on persistent maps: the vectors, and what they leave out.
 */
#include "lattice/patch.h"

#include "lattice/state.h"
#include "tests/test.h"

static void check_patch(const cx_json *old, const cx_json *delta, cx_str expected)
{
    cx_err err;
    cx_buf got;
    cx_buf_init(&got, cx_alloc_default());
    CHECK_STATUS(cx_state_patch_json(old, delta, cx_alloc_default(), &got, &err), &err);
    if (!cx_str_eq(cx_buf_str(&got), expected))
        cx_test_fail(__FILE__, __LINE__, "got %.*s, expected %.*s", (int)got.size,
                     (const char *)got.data, (int)expected.size, expected.data);
    cx_buf_done(&got);
}

CX_TEST(patch_vectors)
{
    cx_err err;
    cx_buf file, expected;
    cx_arena arena;
    cx_json cases;
    cx_buf_init(&file, cx_alloc_default());
    cx_buf_init(&expected, cx_alloc_default());
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_io_read_file(cx_io_system(), cx_test_path("vectors/lattice/patch.json"),
                                 1 << 24, &file, &err),
                 &err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&file), &arena, &cases, &err), &err);
    CHECK(cases.count >= 14);
    for (uint32_t i = 0; i < cases.count; i++) {
        const cx_json *item = &cases.items[i];
        cx_buf_clear(&expected);
        CHECK_STATUS(cx_json_write(&expected, CX_JSON_GET(item, "new"), CX_JSON_PY_COMPACT, &err),
                     &err);
        check_patch(CX_JSON_GET(item, "old"), CX_JSON_GET(item, "delta"), cx_buf_str(&expected));
    }
    cx_arena_done(&arena);
    cx_buf_done(&expected);
    cx_buf_done(&file);
}

CX_TEST(patch_table)
{
    static const char *const table[][3] = {
        {"{\"e\":null}", "{\"x\":1}", "{\"e\":null,\"x\":1}"},
        {"{\"a\":1}", "{\"a\":{\"b\":null,\"c\":{\"d\":null}}}", "{\"a\":{\"c\":{}}}"},
        /* Names with escapes are compared decoded, in order of code points. */
        {"{\"\\u007a\":1,\"\\\"\":2}", "{\"z\":3,\"\\\\\":4}", "{\"\\\"\":2,\"\\\\\":4,\"z\":3}"},
        {"{\"\\uff5e\":1}", "{\"\\ud83d\\ude00\":2}", "{\"\\uff5e\":1,\"\\ud83d\\ude00\":2}"},
        {"{\"\\ud800\":1}", "{\"\\ud800\":{\"x\":2}}", "{\"\\ud800\":{\"x\":2}}"},
        {"{\"\":1}", "{\"\":null}", "{}"},
        {"{\"a\":\"}\\\\\"}", "{\"b\":[\"]\\\"\",{\"c\":null}]}",
         "{\"a\":\"}\\\\\",\"b\":[\"]\\\"\",{\"c\":null}]}"},
        /* A marker is started afresh, wherever `__conflict` stands and whatever it says. */
        {"{\"a\":{\"__conflict\":false,\"b\":1}}", "{\"a\":{\"c\":2}}", "{\"a\":{\"c\":2}}"},
        {"{\"a\":{\"b\":1,\"confidence\":0.5}}", "{\"a\":{\"c\":2}}",
         "{\"a\":{\"b\":1,\"c\":2,\"confidence\":0.5}}"},
    };
    for (size_t i = 0; i < CX_COUNT_OF(table); i++) {
        cx_err err;
        cx_arena arena;
        cx_json old, delta;
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK_STATUS(cx_json_parse_text(cx_str_z(table[i][0]), &arena, &old, &err), &err);
        CHECK_STATUS(cx_json_parse_text(cx_str_z(table[i][1]), &arena, &delta, &err), &err);
        check_patch(&old, &delta, cx_str_z(table[i][2]));
        cx_arena_done(&arena);
    }
}

CX_TEST(canon_walk_finds_members_and_items)
{
    cx_str name, v;
    canon_walk walk = cx_canon_walk(CX_STR("{\"a,\\\"\":[1,{\"b\":2}],\"c\":-1.5e-07}"));
    CHECK(cx_canon_member(&walk, &name, &v));
    CHECK_STR(name, "a,\\\"");
    CHECK_STR(v, "[1,{\"b\":2}]");
    canon_walk items = cx_canon_walk(v);
    CHECK(cx_canon_item(&items, &v));
    CHECK_STR(v, "1");
    CHECK(cx_canon_item(&items, &v));
    CHECK_STR(v, "{\"b\":2}");
    CHECK(!cx_canon_item(&items, &v));
    CHECK(cx_canon_member(&walk, &name, &v));
    CHECK_STR(v, "-1.5e-07");
    CHECK(!cx_canon_member(&walk, &name, &v));
    walk = cx_canon_walk(CX_STR("{}"));
    CHECK(!cx_canon_member(&walk, &name, &v));
}
