/*
 * The envelope of POST /events: strict as a whole, each event on its own.
 */
#include "tests/support/recorder_fixture.h"

#define TIMES \
    "\"batch_timestamp\":\"2026-01-12T00:00:00Z\",\"consent_timestamp\":\"2026-01-01T00:00:00Z\""

static void check_whole(fixture *s, unsigned line, const char *body, int http, const char *type)
{
    fixture_take(s, cx_str_z(body));
    if (s->took.problem.http != http || (type != NULL && strcmp(s->took.problem.type, type) != 0))
        printf("line %u: %d %s\n", line, s->took.problem.http,
               s->took.problem.http == 0 ? "" : s->took.problem.type);
    CHECK_INT(s->took.problem.http, http);
}
#define WHOLE(body, http, type) check_whole(&s, __LINE__, (body), (http), (type))

CX_TEST(batch_whole)
{
    fixture s;
    fixture_init(&s, "batch", NULL);
    WHOLE("{\"events\":[]," TIMES "}", 0, NULL);
    CHECK_INT(s.took.received, 0);
    WHOLE(" \n{ \"events\" : [ ] ," TIMES "} ", 0, NULL);
    WHOLE("{\"\\u0065vents\":[]," TIMES "}", 0, NULL);
    WHOLE("", 400, "malformed-json");
    WHOLE("{", 400, "malformed-json");
    WHOLE("nonsense", 400, "malformed-json");
    WHOLE("{\"events\":[]," TIMES "}}", 400, "malformed-json");
    WHOLE("{\"events\":[]," TIMES ",}", 400, "malformed-json");
    WHOLE("{\"events\":[,]," TIMES "}", 400, "malformed-json");
    WHOLE("{\"events\":[1 2]," TIMES "}", 400, "malformed-json");
    WHOLE("{\"events\":[tru]," TIMES "}", 400, "malformed-json");
    WHOLE("{\"events\":[{\"trace\":{\"a\":}}]," TIMES "}", 400, "malformed-json");
    WHOLE("{\"events\":[{\"event_type\":\"complete_trace\",\"trace\":{\"a\":01}}]," TIMES "}", 400,
          "malformed-json");
    WHOLE("{\"events\":[{\"a\":\"\xff\"}]," TIMES "}", 400, "invalid-utf8");
    WHOLE("{\"events\":[],\"x\":\"\xc0\x80\"," TIMES "}", 400, "invalid-utf8");
    WHOLE("{\"events\":[],\"events\":[]," TIMES "}", 400, "duplicate-key");
    WHOLE("{\"events\":[],\"\\u0065vents\":[]," TIMES "}", 400, "duplicate-key");
    WHOLE("{\"events\":[],\"x\":NaN," TIMES "}", 400, "malformed-json");
    WHOLE("[]", 422, "invalid-batch");
    WHOLE("{\"events\":{}," TIMES "}", 422, "invalid-batch");
    WHOLE("{" TIMES "}", 422, "invalid-batch");
    WHOLE("{\"events\":[],\"batch_timestamp\":\"2026-01-12T00:00:00Z\"}", 422, "invalid-batch");
    WHOLE("{\"events\":[],\"batch_timestamp\":\"2026-02-30T00:00:00Z\","
          "\"consent_timestamp\":\"2026-01-01T00:00:00Z\"}",
          422, "invalid-batch");
    WHOLE("{\"events\":[],\"trace_level\":\"most\"," TIMES "}", 422, "invalid-batch");
    WHOLE("{\"events\":[],\"trace_level\":7," TIMES "}", 422, "invalid-batch");
    fixture_done(&s);
}

static cx_trace_reason reason(const fixture *s, size_t event)
{
    return s->took.events[event].verdict.problem.reason;
}

/* One bad event costs its neighbours nothing (§14.22, §14.29). */
CX_TEST(batch_events_are_on_their_own)
{
    fixture s;
    maker m;
    static const maker_options trace_options = MAKER_OPTIONS_INIT;
    fixture_init(&s, "batch", NULL);
    maker_init(&m, "alpha");
    fixture_trust(&s, &m);
    cx_str trace = fixture_make(&s, &m, &trace_options);
    cx_str doubled = fixture_replace(&s, fixture_make(&s, &m, &trace_options), "{\"trace_id\"",
                                     "{\"x\":1,\"x\":2,\"trace_id\"");
    cx_str not_finite = fixture_replace(&s, fixture_make(&s, &m, &trace_options), "0.9", "NaN");
    cx_str body = cx_arena_printf(
        &s.arena,
        "{\"events\":[{\"event_type\":\"complete_trace\",\"trace\":%s},"
        "{\"event_type\":\"complete_trace\",\"trace\":%s},"
        "{\"event_type\":\"complete_trace\",\"event_type\":\"complete_trace\",\"trace\":{}},"
        "7,{\"trace\":{}},{\"event_type\":\"other\",\"trace\":{}},"
        "{\"event_type\":\"complete_trace\"},"
        "{\"event_type\":\"complete_trace\",\"trace\":{},\"trace_level\":\"most\"},"
        "{\"event_type\":\"complete_trace\",\"tr\\u0061ce\":%s}]," TIMES "}",
        doubled.data, not_finite.data, trace.data);
    fixture_take(&s, body);
    CHECK_INT(s.took.problem.http, 0);
    REQUIRE(s.took.received == 9);
    CHECK(reason(&s, 0) == CX_REASON_DUPLICATE_KEY);
    CHECK(reason(&s, 1) == CX_REASON_NUMBER_NOT_FINITE);
    CHECK(reason(&s, 2) == CX_REASON_DUPLICATE_KEY);
    CHECK(reason(&s, 3) == CX_REASON_FIELD_TYPE);
    CHECK(reason(&s, 4) == CX_REASON_MISSING_FIELD);
    CHECK(reason(&s, 5) == CX_REASON_FIELD_TYPE);
    CHECK(reason(&s, 6) == CX_REASON_MISSING_FIELD);
    CHECK(reason(&s, 7) == CX_REASON_LEVEL_UNKNOWN);
    CHECK_INT(s.took.events[8].status, CX_INTAKE_STORED);
    CHECK_INT(s.took.accepted, 1);
    fixture_done(&s);
}

CX_TEST(batch_limits)
{
    fixture s;
    cx_buf body;
    fixture_init(&s, "batch", NULL);
    cx_buf_init(&body, cx_alloc_default());
    cx_buf_add_z(&body, "{" TIMES ",\"events\":[1");
    for (unsigned i = 1; i < CX_BATCH_EVENTS_MAX; i++)
        cx_buf_add_z(&body, ",1");
    size_t size = body.size;
    cx_buf_add_z(&body, "]}");
    fixture_take(&s, cx_buf_str(&body));
    CHECK_INT(s.took.received, CX_BATCH_EVENTS_MAX);
    body.size = size;
    cx_buf_add_z(&body, ",1]}");
    fixture_take(&s, cx_buf_str(&body));
    CHECK_INT(s.took.problem.http, 422);
    /* Depth costs no stack, and only its own event. */
    cx_buf_clear(&body);
    cx_buf_add_z(&body, "{" TIMES ",\"events\":[{\"event_type\":\"complete_trace\",\"trace\":");
    for (unsigned i = 0; i < 1000000; i++)
        cx_buf_add_byte(&body, '[');
    for (unsigned i = 0; i < 1000000; i++)
        cx_buf_add_byte(&body, ']');
    cx_buf_add_z(&body, "}]}");
    fixture_take(&s, cx_buf_str(&body));
    CHECK_INT(s.took.received, 1);
    CHECK(reason(&s, 0) == CX_REASON_DEPTH_EXCEEDED);
    /* At the limit of bytes, and one more. */
    cx_buf_clear(&body);
    cx_buf_add_z(&body, "{\"events\":[]," TIMES "}");
    while (body.size < CX_BATCH_BYTES_MAX)
        cx_buf_add_byte(&body, ' ');
    fixture_take(&s, cx_buf_str(&body));
    CHECK_INT(s.took.problem.http, 0);
    cx_buf_add_byte(&body, ' ');
    fixture_take(&s, cx_buf_str(&body));
    CHECK_INT(s.took.problem.http, 413);
    cx_buf_done(&body);
    fixture_done(&s);
}
