/*
 * test_links.c - URIs that link modules (decision 0022).
 */
#include "recorder/links.h"

#include "tests/test.h"

static bool names(const char *uri, cx_prov_kind wanted, const char *id)
{
    cx_prov_kind kind = CX_PROV_NONE;
    cx_str found = {NULL, 0};
    return cx_prov_of_uri(cx_str_z(uri), &kind, &found) && kind == wanted && cx_str_is(found, id);
}

static bool is_none(const char *uri)
{
    cx_prov_kind kind;
    cx_str id;
    return !cx_prov_of_uri(cx_str_z(uri), &kind, &id);
}

CX_TEST(uris_name_objects)
{
    CHECK(names("cortex://trace/trace-1", CX_PROV_TRACE, "trace-1"));
    CHECK(names("cortex://run/run_20260101_000000_aee408847d35e44e99430f0979c3357b", CX_PROV_RUN,
                "run_20260101_000000_aee408847d35e44e99430f0979c3357b"));
    CHECK(names("cortex://run/run-1", CX_PROV_RUN, "run-1"));
    CHECK(names("matrix://cortex/Fact/01HF7YAT000000000000000003#1", CX_PROV_MEMORY,
                "matrix://cortex/Fact/01HF7YAT000000000000000003#1"));
    CHECK(names("matrix://cortex/edge/01HF7YAT000000000000000003/derived_from/"
                "01HF7YAT000000000000000004",
                CX_PROV_EDGE,
                "matrix://cortex/edge/01HF7YAT000000000000000003/derived_from/"
                "01HF7YAT000000000000000004"));
}

CX_TEST(other_texts_name_nothing)
{
    CHECK(is_none(""));
    CHECK(is_none("cortex://trace/"));
    CHECK(is_none("cortex://run/"));
    CHECK(is_none("cortex://run/a/b"));
    CHECK(is_none("cortex://run/..x"));
    CHECK(is_none("cortex://memory/x"));
    CHECK(is_none("matrix://cortex/Fact/01HF7YAT000000000000000003"));
    CHECK(is_none("matrix://cortex/fact/01HF7YAT000000000000000003#1"));
    CHECK(is_none("https://example.invalid/cortex://trace/x"));
}

CX_TEST(uris_are_found_in_texts)
{
    cx_str text =
        CX_STR("see cortex://trace/a. \"matrix://cortex/Fact/01HF7YAT000000000000000003#1\","
               "://x https://y cortex://run/(b) cortex://run/run-2?");
    static const char *const wanted[] = {"a", "matrix://cortex/Fact/01HF7YAT000000000000000003#1",
                                         "run-2"};
    cx_prov_kind kind;
    cx_str id;
    for (size_t i = 0; i < CX_COUNT_OF(wanted); i++)
        CHECK(cx_prov_next_uri(&text, &kind, &id) && cx_str_is(id, wanted[i]));
    CHECK(!cx_prov_next_uri(&text, &kind, &id));
    text = CX_STR("");
    CHECK(!cx_prov_next_uri(&text, &kind, &id));
}

CX_TEST(every_kind_has_a_name)
{
    for (int kind = CX_PROV_NONE; kind < CX_PROV_KIND_COUNT; kind++)
        CHECK(cx_prov_kind_name((cx_prov_kind)kind)[0] != 0);
    for (int kind = CX_PROV_NONE; kind < CX_PROV_KIND_COUNT; kind++) {
        cx_str prefix = cx_prov_kind_info_of((cx_prov_kind)kind)->uri_prefix;
        cx_prov_kind found;
        cx_str id;
        if (prefix.data == NULL)
            continue;
        cx_buf uri;
        cx_buf_init(&uri, cx_alloc_default());
        cx_buf_add_str(&uri, prefix);
        cx_buf_add_z(&uri, "run_20260101_000000_0123456789abcdef");
        CHECK(cx_prov_of_uri(cx_buf_str(&uri), &found, &id) && (int)found == kind);
        CHECK(!cx_prov_of_uri(prefix, &found, &id));
        cx_buf_done(&uri);
    }
}
