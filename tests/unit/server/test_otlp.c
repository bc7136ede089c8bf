/*
 * test_otlp.c - the listener for OTLP without a network: who is let in, and what is answered.
 */
#include "tests/unit/server/asking.h"

#include "server/otlp_answer.h"

static void be_exporter(asking *a, bool open, const char *type)
{
    a->otlp = true;
    a->otlp_open = open;
    a->type = type;
}

CX_TEST(otlp_encodings)
{
    CHECK_INT(cx_otlp_encoding_of(CX_STR("application/x-protobuf")), CX_OTLP_AS_PROTOBUF);
    CHECK_INT(cx_otlp_encoding_of(CX_STR("Application/X-Protobuf ; v=1")), CX_OTLP_AS_PROTOBUF);
    CHECK_INT(cx_otlp_encoding_of(CX_STR("application/json")), CX_OTLP_AS_JSON);
    CHECK_INT(cx_otlp_encoding_of(CX_STR("application/json;charset=utf-8")), CX_OTLP_AS_JSON);
    CHECK_INT(cx_otlp_encoding_of(CX_STR("application/jso")), CX_OTLP_NEITHER);
    CHECK_INT(cx_otlp_encoding_of(CX_STR("application/json5")), CX_OTLP_NEITHER);
    CHECK_INT(cx_otlp_encoding_of(CX_STR("")), CX_OTLP_NEITHER);
}

CX_TEST(otlp_listener_has_its_own_paths)
{
    static asking a;
    asking_init(&a, "otlp-paths");
    CHECK_INT(asking_ask(&a, "POST", "/v1/traces", CX_STR("{}")), 404);
    be_exporter(&a, true, "application/json");
    CHECK_INT(asking_ask(&a, "POST", "/v1/traces", CX_STR("{}")), 200);
    CHECK(asking_says(&a, "{}"));
    CHECK_INT(asking_ask(&a, "POST", "/api/v1/covenant/events", CX_STR("{}")), 404);
    CHECK(asking_says(&a, "{\"code\":12,\"message\":"));
    CHECK_INT(asking_get(&a, "/healthz"), 404);
    CHECK_INT(asking_get(&a, "/v1/logs"), 405);
    asking_done(&a);
}

CX_TEST(otlp_tokens)
{
    static asking a;
    asking_init(&a, "otlp-tokens");
    be_exporter(&a, false, "application/json");
    a.secret[0] = 0;
    CHECK_INT(asking_ask(&a, "POST", "/v1/logs", CX_STR("{}")), 401);
    CHECK(asking_says(&a, "{\"code\":16,\"message\":"));
    asking_token(&a, CX_SCOPE_READ, CX_LEVEL_FULL);
    CHECK_INT(asking_ask(&a, "POST", "/v1/logs", CX_STR("{}")), 403);
    /* A token that is sent must be good, also where none is needed. */
    a.otlp_open = true;
    CHECK_INT(asking_ask(&a, "POST", "/v1/logs", CX_STR("{}")), 403);
    asking_token(&a, CX_SCOPE_WRITE, CX_LEVEL_FULL);
    CHECK_INT(asking_ask(&a, "POST", "/v1/logs", CX_STR("{}")), 200);
    asking_done(&a);
}

/* Status {1: 3, 2: text}, in protobuf when the request was. */
CX_TEST(otlp_failures_are_statuses)
{
    static asking a;
    asking_init(&a, "otlp-status");
    be_exporter(&a, true, CX_OTLP_PROTOBUF);
    CHECK_INT(asking_ask(&a, "POST", "/v1/traces", CX_STR("\x0a\x05")), 400);
    cx_buf *body = &a.call.response.body;
    REQUIRE(body->size > 4);
    CHECK(memcmp(body->data, "\x08\x03\x12", 3) == 0);
    CHECK_INT(body->data[3], (int)body->size - 4);
    CHECK_STR(cx_str_z(a.call.response.content_type), CX_OTLP_PROTOBUF);
    be_exporter(&a, true, "text/plain");
    CHECK_INT(asking_ask(&a, "POST", "/v1/traces", CX_STR("x")), 415);
    CHECK_STR(cx_str_z(a.call.response.content_type), "application/json");
    asking_done(&a);
}

CX_TEST(otlp_partial_success)
{
    static asking a;
    const char *none =
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":\"00\"},7]}]}]}";
    asking_init(&a, "otlp-partial");
    be_exporter(&a, true, "application/json");
    CHECK_INT(asking_ask(&a, "POST", "/v1/traces", cx_str_z(none)), 200);
    CHECK(asking_says(&a, "\"rejectedSpans\":\"2\""));
    be_exporter(&a, true, CX_OTLP_PROTOBUF);
    /* One span without anything in it. */
    CHECK_INT(asking_ask(&a, "POST", "/v1/traces", cx_str_from("\x0a\x04\x12\x02\x12\x00", 6)),
              200);
    cx_buf *body = &a.call.response.body;
    REQUIRE(body->size > 6);
    CHECK(body->data[0] == 0x0a && memcmp(body->data + 2, "\x08\x01\x12", 3) == 0);
    asking_done(&a);
}
