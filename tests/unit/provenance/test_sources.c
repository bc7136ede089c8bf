/*
 * The log is read for links when a question needs them, and not before.
 */
#include "provenance/object.h"
#include "tests/support/home_kit.h"
#include "tests/test.h"

#define FACT_COUNT 3

static bool show(kit *k, const cx_sources *sources, cx_str name, cx_json *out)
{
    const cx_prov_object *objects = NULL;
    size_t count = 0;
    CHECK_STATUS(cx_prov_objects_find(sources, name, &k->arena, &objects, &count, &k->err),
                 &k->err);
    if (count != 1)
        return false;
    CHECK_STATUS(cx_prov_show(sources, &objects[0], &k->arena, out, &k->err), &k->err);
    return true;
}

CX_TEST(links_are_read_when_they_are_asked_for)
{
    kit k;
    cx_sources sources;
    cx_uri uris[FACT_COUNT];
    cx_json shown;
    cx_buf text;
    REQUIRE(kit_init(&k, "sources-links", CX_SCHEME_CORTEX_1));
    for (size_t i = 0; i < FACT_COUNT; i++)
        CHECK_STATUS(kit_write(k.memory, "a statement", &uris[i], &k.err), &k.err);
    CHECK_STATUS(cx_sources_open(k.home, NULL, NULL, &sources, &k.err), &k.err);
    REQUIRE(show(&k, &sources, CX_STR("andrew/1"), &shown));
    CHECK_STR(CX_JSON_GET_STR(&shown, "verdict"), "holds");
    REQUIRE(show(&k, &sources, CX_STR("andrew"), &shown));
    CHECK(*sources.links == NULL);
    cx_buf_init(&text, cx_alloc_default());
    cx_uri_add(&uris[1], &text);
    REQUIRE(show(&k, &sources, cx_buf_str(&text), &shown));
    CHECK_STR(CX_JSON_GET_STR(&shown, "verdict"), "holds");
    CHECK(*sources.links != NULL);
    cx_buf_done(&text);
    cx_sources_done(&sources);
    kit_done(&k);
}

CX_TEST(sources_without_a_data_directory_have_no_links)
{
    cx_sources sources;
    cx_links *links = NULL;
    cx_err err;
    CHECK_STATUS(cx_sources_open(NULL, NULL, NULL, &sources, &err), &err);
    CHECK_STATUS(cx_sources_links(&sources, &links, &err), &err);
    CHECK(links == NULL);
    cx_sources_done(&sources);
}
