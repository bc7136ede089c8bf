/* Calls without a network: what is refused before a handler runs, and what handlers answer. */
#include "tests/unit/server/asking.h"

#define EVENTS "/api/v1/covenant/events"
#define TRACES "/api/v1/covenant/traces"
#define EMPTY                                                      \
    "{\"events\":[],\"batch_timestamp\":\"2026-01-01T00:00:00Z\"," \
    "\"consent_timestamp\":\"2026-01-01T00:00:00Z\"}"

CX_TEST(service_needs_a_token)
{
    static asking a;
    asking_init(&a, "service-token");
    CHECK_INT(asking_get(&a, "/openapi.json"), 200);
    for (size_t i = 0; i < 7; i++) { /* the word is read in any case */
        a.secret[i] ^= 0x20;
        unsigned code = asking_get(&a, "/openapi.json");
        CHECK_INT(code, a.secret[i] == ' ' || i == 6 ? 401 : 200);
        a.secret[i] ^= 0x20;
    }
    static const char *const others[] = {"Bearer", "Bearer ", "Bearer x", "Basic eDp5", "x", ""};
    for (size_t i = 0; i < CX_COUNT_OF(others); i++) {
        (void)snprintf(a.secret, sizeof a.secret, "%s", others[i]);
        CHECK_INT(asking_get(&a, "/openapi.json"), 401);
        CHECK(asking_says(&a, "\"type\":\"urn:cortex:problem:unauthorized\""));
        CHECK_INT(asking_get(&a, "/healthz"), 200);
        CHECK_INT(asking_get(&a, "/nothing"), 404);
    }
    asking_done(&a);
}

/* Each route with tokens of each kind.  I3, S2 */
CX_TEST(service_every_route_needs_its_scope)
{
    static asking a;
    asking_init(&a, "service-scopes");
    for (unsigned scope = 1; scope <= CX_SCOPES_ALL; scope <<= 1) {
        asking_token(&a, scope, CX_LEVEL_DETAILED);
        for (size_t i = 0; i < cx_route_count; i++) {
            const cx_route *route = &cx_routes[i];
            char target[256];
            size_t size = 0;
            for (const char *c = route->path; *c != 0; c++)
                if (*c != '{' && *c != '}' && *c != '.')
                    target[size++] = *c;
            target[size] = 0;
            bool allowed = route->open || route->scopes == 0 || (route->scopes & scope) != 0;
            allowed &= !route->full_level;
            a.otlp = route->otlp;
            if (route->full_level || !allowed)
                CHECK_INT(asking_ask(&a, route->method, target, CX_STR("")), 403);
        }
    }
    asking_done(&a);
}

/* I3, S2 */
CX_TEST(service_levels_come_from_the_token)
{
    static asking a;
    asking_init(&a, "service-levels");
    asking_token(&a, CX_SCOPE_READ, CX_LEVEL_DETAILED);
    CHECK_INT(asking_get(&a, TRACES "?level=full_traces"), 403);
    CHECK_INT(asking_get(&a, TRACES "?level=other"), 422);
    CHECK_INT(asking_get(&a, TRACES "/x?level=full_traces"), 403);
    CHECK(asking_get(&a, TRACES "?level=detailed") != 403);
    asking_done(&a);
}

CX_TEST(service_bodies)
{
    static asking a;
    asking_init(&a, "service-bodies");
    CHECK_INT(asking_ask(&a, "POST", EVENTS, CX_STR(EMPTY)), 200);
    CHECK(asking_says(&a, "\"status\":\"ok\""));
    CHECK_INT(asking_ask(&a, "POST", EVENTS, CX_STR("{")), 400);
    CHECK_INT(asking_ask(&a, "POST", EVENTS, CX_STR("{}")), 422);
    CHECK(asking_says(&a, "invalid-batch"));
    static const char *const types[] = {"text/plain", "application/jsonx",  "application/jso",
                                        "",           "application/json+x", NULL};
    for (size_t i = 0; i < CX_COUNT_OF(types); i++) {
        a.type = types[i];
        CHECK_INT(asking_ask(&a, "POST", EVENTS, CX_STR(EMPTY)), 415);
    }
    static const char *const good[] = {"application/json", "APPLICATION/JSON",
                                       "application/json;charset=utf-8", "application/json ; x=y"};
    for (size_t i = 0; i < CX_COUNT_OF(good); i++) {
        a.type = good[i];
        CHECK_INT(asking_ask(&a, "POST", EVENTS, CX_STR(EMPTY)), 200);
    }
    a.service->body_max = 10;
    CHECK_INT(asking_ask(&a, "POST", EVENTS, CX_STR(EMPTY)), 413);
    CHECK(asking_says(&a, "\"max_bytes\":10"));
    asking_done(&a);
}

/* I3 */
CX_TEST(service_parameters)
{
    static const struct {
        const char *query, *says;
    } bad[] = {{"limit=0", "from 1 to 1000"},
               {"limit=1001", "from 1 to 1000"},
               {"limit=1x", "limit"},
               {"limit=1&limit=2", "more than once"},
               {"x=1", "unknown parameter"},
               {"verified=2", "true, false or any"},
               {"overridden=any", "true or false"},
               {"from=2026-13-01T00:00:00Z", "from"},
               {"min_plausibility=01", "number"},
               {"min_plausibility=1e400", "number"},
               {"min_plausibility=-", "number"},
               {"min_plausibility=1.", "number"},
               {"task_id=", "1 to 1024 bytes"},
               {"cursor=zz", "cursor"},
               {"a=%00", "UTF-8"}};
    static asking a;
    char target[256];
    asking_init(&a, "service-parameters");
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        (void)snprintf(target, sizeof target, TRACES "?%s", bad[i].query);
        CHECK_INT(asking_get(&a, target), 422);
        if (!asking_says(&a, bad[i].says))
            cx_test_fail(__FILE__, __LINE__, "%s: %.*s", bad[i].query,
                         (int)a.call.response.body.size, (char *)a.call.response.body.data);
    }
    CHECK_INT(asking_get(&a, "/api/v1/proofs/entry?actor=x"), 422);
    CHECK(asking_says(&a, "the parameter is required"));
    asking_done(&a);
}

/* What was sent comes back as plain ASCII, cut where it is long, and is always JSON. */
CX_TEST(service_problems_escape_input)
{
    static asking a;
    static char target[3 * 2500 + 100];
    cx_json json;
    asking_init(&a, "service-escapes");
    int size = snprintf(target, sizeof target, TRACES "?%%3Cscript%%3E%%22%%0a%%26");
    for (int i = 0; i < 1200; i++)
        size += snprintf(target + size, sizeof target - (size_t)size, "%%C3%%A9");
    (void)snprintf(target + size, sizeof target - (size_t)size, "=1");
    CHECK_INT(asking_get(&a, target), 422);
    cx_str body = cx_buf_str(&a.call.response.body);
    CHECK(memchr(body.data, '<', body.size) == NULL && memchr(body.data, '&', body.size) == NULL);
    for (size_t i = 0; i < body.size; i++)
        CHECK((unsigned char)body.data[i] < 0x7f);
    CHECK_STATUS(cx_json_parse_text(body, &a.fixture.arena, &json, &a.fixture.err), &a.fixture.err);
    const cx_json *parameter = cx_json_pointer(&json, CX_STR("/errors/0/parameter"));
    REQUIRE(parameter != NULL);
    CHECK(cx_str_starts(cx_json_text(parameter), CX_STR("<script>\"\n&\xc3\xa9")));
    CHECK_INT(asking_get(&a, "/<\xff\x01\">?secret=1"), 404);
    CHECK(asking_says(&a, "\"instance\":\"/%3C%FF%01%22%3E\""));
    asking_done(&a);
}

static cx_str one_batch(asking *a, maker *m, maker_options trace_options)
{
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    cx_str trace = fixture_make(&a->fixture, m, &trace_options);
    maker_batch_begin(&text);
    maker_batch_add(&text, trace);
    maker_batch_end(&text, trace_options.level);
    cx_str body = cx_arena_copy_str(&a->fixture.arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return body;
}

CX_TEST(service_receives_and_finds_a_trace)
{
    static asking a;
    maker m;
    asking_init(&a, "service-traces");
    maker_init(&m, "alpha");
    maker_options trace_options = MAKER_OPTIONS_INIT;
    trace_options.trace_id = "t/1";
    cx_str body = one_batch(&a, &m, trace_options);
    CHECK_INT(asking_get(&a, TRACES), 503); /* the index does not exist yet */
    CHECK_INT(asking_ask(&a, "POST", EVENTS, body), 200);
    CHECK(asking_says(&a, "Unknown signer key"));
    fixture_trust(&a.fixture, &m);
    CHECK_INT(asking_ask(&a, "POST", EVENTS, body), 200);
    CHECK(asking_says(&a, "\"status\":\"stored\""));
    CHECK_INT(asking_ask(&a, "POST", EVENTS, body), 200);
    CHECK(asking_says(&a, "\"status\":\"duplicate\""));
    CHECK_STATUS(cx_recorder_feed_now(a.fixture.recorder, a.service->index_where, &a.fixture.err),
                 &a.fixture.err);
    CHECK_INT(asking_get(&a, TRACES "?selected_action=HandlerActionType.speak&limit=5"), 200);
    CHECK(asking_says(&a, "\"trace_id\":\"t/1\"") && asking_says(&a, "\"count\":1"));
    CHECK_INT(asking_get(&a, TRACES "?selected_action=TOOL"), 200);
    CHECK(asking_says(&a, "\"count\":0"));
    CHECK_INT(asking_get(&a, TRACES "/t%2F1"), 200);
    CHECK(asking_says(&a, "\"verdict\""));
    CHECK_INT(asking_get(&a, TRACES "/t%2F1?raw=1"), 200);
    CHECK(asking_says(&a, "\"signature\""));
    CHECK_INT(asking_get(&a, TRACES "/t%2F2"), 404);
    CHECK_INT(asking_get(&a, "/metrics"), 200);
    CHECK(asking_says(&a, "cortex_events_total{status=\"stored\"} 1\n"));
    CHECK(asking_says(&a, "cortex_events_total{status=\"duplicate\"} 1\n"));
    asking_done(&a);
}

CX_TEST(service_reports_when_it_cannot_record)
{
    static asking a;
    asking_init(&a, "service-ready");
    CHECK_INT(asking_get(&a, "/readyz"), 200);
    atomic_store(&a.service->stopping, true);
    CHECK_INT(asking_get(&a, "/readyz"), 503);
    atomic_store(&a.service->stopping, false);
    atomic_store(&a.service->ledger_failed, true);
    CHECK_INT(asking_get(&a, "/readyz"), 503);
    CHECK_INT(asking_get(&a, "/healthz"), 200);
    CHECK_INT(asking_get(&a, "/api/v1/feed"), 503);
    asking_done(&a);
}
