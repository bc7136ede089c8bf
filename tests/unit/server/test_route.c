/* The table of routes, and the document that is made from it. */
#include "server/openapi_type.h"
#include "tests/unit/server/asking.h"

static cx_call call;
static char room[1024];

static cx_route_found find(const char *method, const char *target, char allow[64])
{
    call.request.method = cx_str_z(method);
    call.route = NULL;
    CHECK(cx_target_parse(cx_str_z(target), room, &call.target) == CX_TARGET_OK);
    return cx_route_find(&call, allow, 64);
}

CX_TEST(route_captures)
{
    char allow[64];
    REQUIRE(find("GET", "/api/v1/covenant/traces/a%2Fb", allow) == CX_ROUTE_FOUND);
    CHECK_STR(call.captures[0], "a/b");
    REQUIRE(find("GET", "/api/v1/lattice/agent/x/state", allow) == CX_ROUTE_FOUND);
    CHECK_STR(call.captures[0], "agent/x");
    REQUIRE(find("HEAD", "/api/v1/lattice/run/1/governor/state", allow) == CX_ROUTE_FOUND);
    CHECK_STR(call.captures[0], "run/1/governor");
    REQUIRE(find("GET", "/api/v1/lattice/state/state", allow) == CX_ROUTE_FOUND);
    CHECK_STR(call.captures[0], "state");
    REQUIRE(find("POST", "/api/v1/covenant/public-keys/k/revoke", allow) == CX_ROUTE_FOUND);
    CHECK_STR(call.captures[0], "k");
}

CX_TEST(route_alias)
{
    char allow[64];
    REQUIRE(find("POST", "/api/v1/accord/events", allow) == CX_ROUTE_FOUND);
    const cx_route *route = call.route;
    REQUIRE(find("POST", "/api/v1/covenant/events", allow) == CX_ROUTE_FOUND);
    CHECK(call.route == route);
    CHECK(find("GET", "/api/v1/covenant/traces/accord", allow) == CX_ROUTE_FOUND);
    CHECK(find("GET", "/api/accord/events", allow) == CX_ROUTE_NO_PATH);
}

CX_TEST(route_unknown_paths_and_methods)
{
    static const char *const none[] = {"/x",
                                       "/assets",
                                       "/assets/a/b",
                                       "/api",
                                       "/api/v1/lattice/state",
                                       "/api/v1/covenant/traces/a/b",
                                       "/healthz/x"};
    char allow[64];
    for (size_t i = 0; i < CX_COUNT_OF(none); i++)
        CHECK(find("GET", none[i], allow) == CX_ROUTE_NO_PATH);
    CHECK(find("PUT", "/api/v1/covenant/public-keys", allow) == CX_ROUTE_NO_METHOD);
    CHECK_STR(cx_str_z(allow), "POST, GET, HEAD");
    CHECK(find("get", "/healthz", allow) == CX_ROUTE_NO_METHOD);
    CHECK_STR(cx_str_z(allow), "GET, HEAD");
}

/* Every route needs a token but the four that say so: health, and the page's files, and says what
 * it needs. */
CX_TEST(route_table_is_whole)
{
    size_t open = 0;
    for (size_t i = 0; i < cx_route_count; i++) {
        const cx_route *route = &cx_routes[i];
        open += route->open;
        CHECK(route->handler != NULL && route->summary != NULL && route->codes != NULL);
        CHECK(route->param_count <= CX_ROUTE_PARAMS_MAX);
        CHECK(!route->open || route->scopes == 0);
        CHECK(strcmp(route->method, "GET") != 0 || !route->has_body);
        /* What changes something is not there for who may only read; these ask by POST and change
         * nothing. */
        CHECK(!route->has_body || (route->scopes & CX_SCOPE_READ) == 0 ||
              strcmp(route->path, "/mcp") == 0 || strcmp(route->path, "/api/v1/scopes/make") == 0 ||
              strcmp(route->path, "/api/v1/covenant/check") == 0);
        CHECK(!route->full_level || route->scopes == CX_SCOPE_READ);
        for (size_t j = 0; j < route->param_count; j++)
            CHECK(route->params[j].help != NULL && route->params[j].name != NULL);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(cx_routes[j].path, route->path) != 0 ||
                  strcmp(cx_routes[j].method, route->method) != 0);
    }
    CHECK_INT(open, 4);
}

/* What is JSON has a type, on the way in and out; the document does not describe OTLP. */
CX_TEST(route_bodies_have_types)
{
    for (size_t i = 0; i < cx_route_count; i++) {
        const cx_route *route = &cx_routes[i];
        if (route->otlp)
            continue;
        CHECK((route->response_type != NULL) ==
              (route->answers != NULL && strcmp(route->answers, "application/json") == 0));
        CHECK((route->request_type != NULL) == route->has_body);
    }
}

static bool is_schema(const char *notation, const char *expected)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_api_type_schema(notation, &text);
    bool is = cx_str_is(cx_buf_str(&text), expected);
    if (!is)
        printf("%s: %.*s\n", notation, (int)text.size, (const char *)text.data);
    cx_buf_done(&text);
    return is;
}

CX_TEST(type_notation)
{
    CHECK(is_schema("any", "{}"));
    CHECK(is_schema("string", "{\"type\":\"string\"}"));
    CHECK(is_schema("NodeRef", "{\"$ref\":\"#/components/schemas/NodeRef\"}"));
    CHECK(is_schema("'a b'|null", "{\"anyOf\":[{\"const\":\"a b\"},{\"type\":\"null\"}]}"));
    CHECK(is_schema("(integer|null)[][]",
                    "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"anyOf\":"
                    "[{\"type\":\"integer\"},{\"type\":\"null\"}]}}}"));
    CHECK(is_schema("[integer, string[]]",
                    "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":"
                    "\"array\",\"items\":{\"type\":\"string\"}}],\"items\":false,"
                    "\"minItems\":2}"));
    CHECK(is_schema("{}", "{\"type\":\"object\"}"));
    CHECK(is_schema("{*: boolean}",
                    "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}"));
    CHECK(is_schema("{a: {b: string}, c?: number, d: integer, *: any}",
                    "{\"type\":\"object\",\"required\":[\"a\",\"d\"],\"properties\":{\"a\":"
                    "{\"type\":\"object\",\"required\":[\"b\"],\"properties\":{\"b\":{\"type\":"
                    "\"string\"}}},\"c\":{\"type\":\"number\"},\"d\":{\"type\":\"integer\"}},"
                    "\"additionalProperties\":{}}"));
}

/* Every type is well-formed, has one place, and is used by a route or by another type. */
CX_TEST(types_are_used)
{
    cx_buf text;
    cx_err err;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_route_openapi(&text, &err), &err);
    cx_str document = cx_buf_str(&text);
    for (size_t i = 0; i < cx_api_type_count; i++) {
        char reference[96];
        int size = snprintf(reference, sizeof reference, "\"#/components/schemas/%s\"",
                            cx_api_types[i].name);
        REQUIRE(size > 0 && (size_t)size < sizeof reference);
        CHECK(memmem(document.data, document.size, reference, (size_t)size) != NULL);
        CHECK(cx_api_type_find(cx_str_z(cx_api_types[i].name)) == &cx_api_types[i]);
    }
    cx_buf_done(&text);
}

/* The table of kinds (recorder/links/names.c) and the API's type name the same kinds. */
CX_TEST(object_kinds_are_those_of_the_table)
{
    cx_buf names;
    cx_buf_init(&names, cx_alloc_default());
    for (int kind = CX_PROV_NONE + 1; kind < CX_PROV_KIND_COUNT; kind++)
        cx_buf_printf(&names, "%s'%s'", kind == CX_PROV_NONE + 1 ? "" : "|",
                      cx_prov_kind_name((cx_prov_kind)kind));
    const cx_api_type *type = cx_api_type_find(CX_STR("ObjectKind"));
    REQUIRE(type != NULL);
    CHECK(cx_str_is(cx_buf_str(&names), type->notation));
    cx_buf_done(&names);
}

static size_t operations(const cx_json *paths)
{
    size_t count = 0;
    for (uint32_t i = 0; i < paths->count; i++)
        count += paths->members[i].value.count;
    return count;
}

CX_TEST(route_document)
{
    cx_arena arena;
    cx_buf text;
    cx_json document;
    cx_err err;
    size_t expected = cx_route_count;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_route_openapi(&text, &err), &err);
    CHECK_STATUS(cx_json_parse_text(cx_buf_str(&text), &arena, &document, &err), &err);
    CHECK_STR(CX_JSON_GET_STR(&document, "openapi"), "3.1.0");
    const cx_json *paths = CX_JSON_GET(&document, "paths");
    for (size_t i = 0; i < cx_route_count; i++)
        expected -= cx_routes[i].otlp; /* it is described elsewhere */
    for (size_t i = 0; i < cx_route_count; i++)
        expected += cx_str_starts(cx_str_z(cx_routes[i].path), CX_STR("/api/v1/covenant/"));
    CHECK_INT(operations(paths), expected);
    const cx_json *item = cx_json_get(paths, CX_STR("/api/v1/accord/traces/{trace_id}"));
    REQUIRE(item != NULL && CX_JSON_GET(item, "get") != NULL);
    CHECK(cx_json_get(paths, CX_STR("/api/v1/lattice/{branch}/why")) != NULL);
    cx_buf_done(&text);
    cx_arena_done(&arena);
}
