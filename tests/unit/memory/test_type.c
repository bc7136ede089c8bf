/*
 * test_type.c - names and codes.
 */
#include "memory/type.h"

#include "tests/unit/memory/fixture.h"

CX_TEST(vocabularies_go_both_ways)
{
    static const char *const types[] = {"Identity", "Fact",       "Preference", "Belief", "Event",
                                        "Goal",     "Constraint", "Capability", "Pattern"};
    for (uint8_t code = 0; code < 255; code++) {
        cx_str verb = cx_verb_name(code), kind = cx_kind_name(code),
               seen = cx_visibility_name(code), type = cx_uri_type_name(code),
               edge = cx_uri_edge_type_name(code);
        CHECK((verb.size != 0) == (code >= 1 && code <= CX_VERB_MAX));
        CHECK((kind.size != 0) == (code >= 1 && code <= CX_KIND_MAX));
        CHECK((seen.size != 0) == (code >= 1 && code <= 3));
        CHECK((type.size != 0) == (code >= CX_TYPE_MIN && code <= CX_TYPE_MAX));
        CHECK((edge.size != 0) == (code >= CX_EDGE_TYPE_MIN && code <= CX_EDGE_TYPE_MAX));
        CHECK_INT(cx_verb_code(verb), verb.size != 0 ? code : 0);
        CHECK_INT(cx_kind_code(kind), kind.size != 0 ? code : 0);
        CHECK_INT(cx_visibility_code(seen), seen.size != 0 ? code : 0);
        CHECK_INT(cx_uri_type_code(type), type.size != 0 ? code : 0);
        CHECK_INT(cx_uri_edge_type_code(edge), edge.size != 0 ? code : 0);
    }
    for (size_t i = 0; i < CX_COUNT_OF(types); i++)
        CHECK_STR(cx_uri_type_name((uint8_t)(i + 1)), types[i]);
    CHECK_STR(cx_verb_name(2), "acquire");
    CHECK_STR(cx_verb_name(10), "delegate");
    CHECK_STR(cx_kind_name(8), "capability");
    CHECK_STR(cx_uri_edge_type_name(CX_EDGE_CAUSED_BY), "caused_by");
    CHECK_INT(cx_verb_code(CX_STR("Find")), 0);
}

CX_TEST(sources)
{
    CHECK(cx_source_ok(CX_STR("user_input")) && cx_source_ok(CX_STR("derived")) &&
          cx_source_ok(CX_STR("observed")) && cx_source_ok(CX_STR("imported")));
    CHECK(!cx_source_ok(CX_STR("")) && !cx_source_ok(CX_STR("Observed")) &&
          !cx_source_ok(CX_STR("observed ")));
}

/* keys_uri.json: idx/frame .. ref='gpu_inference', idx/tag tag='x'. */
CX_TEST(hashes_of_references_and_tags)
{
    fixture kit;
    uint8_t tag[8];
    fixture_init(&kit);
    cx_id object = cx_obj_hash(CX_STR("gpu_inference"));
    CHECK(fixture_same(cx_bytes_from(object.bytes, 16),
                       fixture_hex(&kit, CX_STR("f3a2d007cad3b0ab1171e0e953a3dbdc"))));
    cx_tag_hash(CX_STR("x"), tag);
    CHECK(fixture_same(cx_bytes_from(tag, 8), fixture_hex(&kit, CX_STR("2d711642b726b044"))));
    fixture_done(&kit);
}
