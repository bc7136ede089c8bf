/*
 * test_uri.c - names of memories and edges: one name, one spelling.
 */
#include "proof/uri.h"

#include "tests/support/proof_util.h"

CX_TEST(uri_vectors)
{
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/matrix-1/keys_uri.json"));
    const cx_json *uris = CX_JSON_GET(&v.root, "uris");
    REQUIRE(uris != NULL && uris->count > 10);
    for (size_t i = 0; i < uris->count; i++) {
        cx_str text = CX_JSON_GET_STR(&uris->items[i], "uri");
        bool good = cx_str_is(CX_JSON_GET_STR(&uris->items[i], "cortex_expects"), "ok");
        cx_uri uri;
        cx_err err;
        cx_buf again;
        cx_buf_init(&again, cx_alloc_default());
        cx_status status = cx_uri_parse(text, &uri, &err);
        if (cx_failed(status) == good)
            cx_test_fail(__FILE__, __LINE__, "%.*s: %s", (int)text.size, text.data,
                         good ? err.message : "accepted");
        if (good && !cx_failed(status)) {
            cx_uri_add(&uri, &again);
            CHECK(cx_str_eq(cx_buf_str(&again), text));
            CHECK_INT(uri.type, member_uint(&uris->items[i], "type"));
            CHECK(
                bytes_eq(cx_bytes_from(uri.id.bytes, 16), member_bytes(&v, &uris->items[i], "id")));
        } else if (!good) {
            CHECK_STR(cx_str_z(err.tag), "BadURI");
        }
        cx_buf_done(&again);
    }
    vectors_close(&v);
}

CX_TEST(ulid_vectors)
{
    vectors v;
    REQUIRE(vectors_open(&v, "vectors/ledger/matrix-1/keys_uri.json"));
    const cx_json *ulids = CX_JSON_GET(&v.root, "ulids");
    for (size_t i = 0; i < ulids->count; i++) {
        cx_str text = CX_JSON_GET_STR(&ulids->items[i], "text");
        cx_id id;
        char again[CX_ULID_SIZE];
        CHECK(cx_ulid_parse(text, &id));
        CHECK(bytes_eq(cx_bytes_from(id.bytes, 16), member_bytes(&v, &ulids->items[i], "id")));
        cx_ulid_format(&id, again);
        CHECK(cx_str_eq(cx_str_from(again, sizeof again), text));
    }
    cx_id id;
    CHECK(!cx_ulid_parse(CX_STR("80000000000000000000000000"), &id));
    CHECK(!cx_ulid_parse(CX_STR("0000000000000000000000000"), &id));
    CHECK(!cx_ulid_parse(CX_STR("0000000000000000000000000U"), &id));
    CHECK(!cx_ulid_parse((cx_str){"0000000000000000000000000\0", 26}, &id));
    vectors_close(&v);
}

CX_TEST(uri_edges)
{
    const char *good =
        "matrix://cortex/edge/01HF7YAT00000000000000000A/derived_from/01HF7YAT00000000000000000B";
    static const char *const bad[] = {
        "matrix://cortex/edge/01HF7YAT00000000000000000A/derived_from/01HF7YAT00000000000000000B#1",
        "matrix://cortex/edge/01HF7YAT00000000000000000A/Derived_from/01HF7YAT00000000000000000B",
        "matrix://cortex/edge/01HF7YAT00000000000000000A//01HF7YAT00000000000000000B",
        "matrix://cortex/edge/01HF7YAT00000000000000000A/derived_from/",
        "matrix://cortex/edge/01HF7YAT00000000000000000A#1",
        "matrix://cortex/Edge/01HF7YAT00000000000000000A/derived_from/01HF7YAT00000000000000000B"};
    cx_uri uri;
    cx_err err;
    cx_buf again;
    cx_buf_init(&again, cx_alloc_default());
    CHECK_STATUS(cx_uri_parse(cx_str_z(good), &uri, &err), &err);
    CHECK(uri.is_edge);
    CHECK_INT(uri.type, 1);
    CHECK_INT(uri.dst.bytes[15], 11);
    cx_uri_add(&uri, &again);
    CHECK_STR(cx_buf_str(&again), good);
    cx_digest key = cx_uri_key(&uri, CX_SCHEME_CORTEX_1);
    cx_digest expected = cx_scheme_edge_key(CX_SCHEME_CORTEX_1, uri.id.bytes, 1, uri.dst.bytes);
    CHECK(cx_digest_eq(&key, &expected));
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK_INT(cx_uri_parse(cx_str_z(bad[i]), &uri, &err).code, CX_E_FORMAT);
    for (uint8_t type = 1; type <= CX_EDGE_TYPE_MAX; type++)
        CHECK_INT(cx_uri_edge_type_code(cx_uri_edge_type_name(type)), type);
    for (uint8_t type = 1; type <= CX_TYPE_MAX; type++)
        CHECK_INT(cx_uri_type_code(cx_uri_type_name(type)), type);
    CHECK_INT(cx_uri_type_name(0).size, 0);
    CHECK_INT(cx_uri_type_name(10).size, 0);
    CHECK_INT(cx_uri_edge_type_name(15).size, 0);
    cx_buf_done(&again);
}
