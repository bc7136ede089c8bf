/*
 * test_tools.c - tools of a server: characters that are not seen, digests, how often; messages.
 */
#include "gateway/api.h"

#include "tests/test.h"

CX_TEST(characters_that_a_person_does_not_see)
{
    static const struct {
        const char *text;
        unsigned expected;
    } rows[] = {
        {"", 0},
        {"plain text, \"quotes\"", 0},
        {"\xc3\xa9\xe2\x80\x99", 0},
        {"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9", 0}, /* a joiner between pictures */
        {"a\xe2\x80\x8d"
         "b",
         CX_GATEWAY_TRICK_ZERO_WIDTH},
        {"a\xe2\x80\x8b", CX_GATEWAY_TRICK_ZERO_WIDTH},
        {"\xef\xbb\xbf", CX_GATEWAY_TRICK_ZERO_WIDTH},
        {"\xf3\xa0\x81\x81", CX_GATEWAY_TRICK_TAG},
        {"\xf3\xa0\x84\x80", CX_GATEWAY_TRICK_TAG},
        {"\xe2\x80\xae", CX_GATEWAY_TRICK_BIDI},
        {"\xe2\x80\x8e", CX_GATEWAY_TRICK_BIDI},                   /* a mark */
        {"1\xef\xb8\x8f\xe2\x83\xa3 \xe2\x9c\x94\xef\xb8\x8f", 0}, /* a keycap, a check mark */
        {"a\xef\xb8\x81", CX_GATEWAY_TRICK_TAG},                   /* a selector of nothing */
        {"\xe2\x9c\x94\xef\xb8\x8f\xef\xb8\x83", CX_GATEWAY_TRICK_TAG},
        {"\xe3\x85\xa4", CX_GATEWAY_TRICK_ZERO_WIDTH}, /* a filler */
        {"\xef\xbf\xb9", CX_GATEWAY_TRICK_ZERO_WIDTH}, /* an anchor of annotations */
        {"\xe2\x81\xaa", CX_GATEWAY_TRICK_ZERO_WIDTH}, /* a format character, deprecated */
        {"a\tb\r\nc", 0},
        {"a\x1b[8mb", CX_GATEWAY_TRICK_CONTROL},
        {"\xc2\x9b", CX_GATEWAY_TRICK_CONTROL},
        {"\xe2\x81\xa6x\xe2\x80\x8b", CX_GATEWAY_TRICK_BIDI | CX_GATEWAY_TRICK_ZERO_WIDTH},
    };
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++)
        CHECK(cx_gateway_tricks(cx_str_z(rows[i].text)) == rows[i].expected);
}

static cx_gateway_tool_digests digests_of(const char *tool)
{
    cx_arena arena;
    cx_json value;
    cx_err err;
    cx_gateway_tool_digests out;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(tool), &arena, &value, &err), &err);
    CHECK_STATUS(cx_gateway_tool_digest(&value, &arena, &out, &err), &err);
    cx_arena_done(&arena);
    return out;
}

CX_TEST(digests_follow_what_a_model_is_told)
{
    const cx_gateway_tool_digests a =
        digests_of("{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{}}");
    const cx_gateway_tool_digests order =
        digests_of("{\"inputSchema\":{},\"description\":\"d\",\"name\":\"t\",\"_meta\":{\"x\":1}}");
    const cx_gateway_tool_digests told =
        digests_of("{\"name\":\"t\",\"description\":\"e\",\"inputSchema\":{}}");
    const cx_gateway_tool_digests schema =
        digests_of("{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{\"a\":1}}");
    const cx_gateway_tool_digests hints =
        digests_of("{\"name\":\"t\",\"description\":\"d\",\"inputSchema\":{},\"annotations\":{"
                   "\"readOnlyHint\":true}}");
    CHECK(cx_digest_eq(&a.all, &order.all));
    CHECK(!cx_gateway_tool_same(&a, &order) && cx_gateway_tool_same(&order, &order));
    cx_gateway_tool_digests earlier = order; /* of a pin that knows nothing of other members */
    earlier.has_rest = false;
    CHECK(cx_gateway_tool_same(&a, &earlier) && !cx_gateway_tool_same(&told, &earlier));
    CHECK(!cx_digest_eq(&a.all, &told.all) && !cx_digest_eq(&a.description, &told.description));
    CHECK(cx_digest_eq(&a.schema, &told.schema));
    CHECK(!cx_digest_eq(&a.all, &schema.all) && cx_digest_eq(&a.description, &schema.description));
    CHECK(!cx_digest_eq(&a.schema, &schema.schema));
    CHECK(!cx_digest_eq(&a.all, &hints.all) && !cx_digest_eq(&a.description, &hints.description));
}

CX_TEST(calls_within_a_minute)
{
    cx_gateway_tools tools;
    cx_gateway_tool tool = {0};
    cx_err err;
    const uint64_t second = UINT64_C(1000000000);
    bool ok;
    cx_gateway_tools_init(&tools, cx_alloc_default());
    CHECK_STATUS(cx_gateway_tool_rate(&tools, &tool, 0, 0, true, &ok, &err), &err);
    CHECK(!ok);
    for (uint64_t n = 0; n < 3; n++) {
        CHECK_STATUS(cx_gateway_tool_rate(&tools, &tool, 3, n * second, true, &ok, &err), &err);
        CHECK(ok);
    }
    CHECK_STATUS(cx_gateway_tool_rate(&tools, &tool, 3, 59 * second, true, &ok, &err), &err);
    CHECK(!ok);
    CHECK_STATUS(cx_gateway_tool_rate(&tools, &tool, 4, 59 * second, false, &ok, &err), &err);
    CHECK(ok);
    CHECK_STATUS(cx_gateway_tool_rate(&tools, &tool, 3, 60 * second, true, &ok, &err), &err);
    CHECK(ok); /* the first is a minute ago, the others are not */
    CHECK_STATUS(cx_gateway_tool_rate(&tools, &tool, 3, 60 * second, true, &ok, &err), &err);
    CHECK(!ok);
    cx_gateway_tools_done(&tools);
}

CX_TEST(names_of_servers)
{
    static const char *const good[] = {"a", "my-server.2", "a_b", "A"};
    static const char *const bad[] = {"", "a__b", "a_", "a b", "a/b", "\xc3\xa9", "a:b"};
    cx_err err;
    for (size_t i = 0; i < CX_COUNT_OF(good); i++)
        CHECK_STATUS(cx_gateway_check_name(cx_str_z(good[i]), &err), &err);
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(cx_gateway_check_name(cx_str_z(bad[i]), &err).code == CX_E_USAGE);
}

/* "request 1 m", "notification m", "answer 1", "error", or the message. */
static void read_message(const char *text, char *out, size_t size)
{
    static const char *const kinds[] = {"request", "notification", "answer"};
    cx_arena arena;
    cx_json value;
    cx_gateway_message message;
    cx_err err;
    cx_arena_init(&arena, cx_alloc_default(), 0);
    CHECK_STATUS(cx_json_parse_text(cx_str_z(text), &arena, &value, &err), &err);
    if (cx_failed(cx_gateway_message_read(&value, &arena, &message, &err)))
        (void)snprintf(out, size, "none");
    else
        (void)snprintf(out, size, "%s %.*s %.*s", kinds[message.kind], (int)message.id.size,
                       message.id.size == 0 ? "" : message.id.data, (int)message.method.size,
                       message.method.size == 0 ? "" : message.method.data);
    cx_arena_done(&arena);
}

CX_TEST(what_is_a_message)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", "request 1 m"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"m\"}", "request \"1\" m"},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\",\"method\":\"\\u006d\"}", "request \"a\" m"},
        {"{\"jsonrpc\":\"2.0\",\"method\":\"m\"}", "notification  m"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}", "answer 1 "},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}", "answer  "},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", "none"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}", "none"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"result\":{}}", "none"},
        {"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"m\"}", "none"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"m\"}", "none"},
        {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"m\"}", "none"},
        {"{\"jsonrpc\":\"2.0\",\"id\":123456789012345678901,\"method\":\"m\"}", "none"},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\"}", "none"},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}", "none"},
        {"{\"id\":1,\"method\":\"m\"}", "none"},
        {"{\"jsonrpc\":\"2.0\"}", "none"},
        {"[]", "none"},
        {"5", "none"},
    };
    char got[128];
    for (size_t i = 0; i < CX_COUNT_OF(rows); i++) {
        read_message(rows[i].text, got, sizeof got);
        CHECK_STR(cx_str_z(got), rows[i].expected);
    }
}
