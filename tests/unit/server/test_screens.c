/* What the page's screens ask (docs/formats/view.md), without a network: right, wrong and hostile
 * parameters, limits, homes without anything, and one file instead of a home. */
#include "recorder/step.h"
#include "tests/unit/server/asking.h"

#define TRACES "/api/v1/covenant/traces"
#define FLEET "/api/v1/covenant/fleet"
#define CHECK_TRACES "/api/v1/covenant/check"
#define DAY_NS (INT64_C(86400) * 1000000000)

typedef struct screens {
    asking a;
    maker alpha;
    cx_arena arena;
    char view[128]; /* /api/v1/view/agent/<alpha> */
} screens;

static void feed(asking *a)
{
    CHECK_STATUS(
        cx_recorder_feed_now(a->fixture.recorder, a->service->index_where, &a->fixture.err),
        &a->fixture.err);
}

static void begin(screens *s, const char *name)
{
    asking_init(&s->a, name);
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    maker_init(&s->alpha, "alpha");
    fixture_trust(&s->a.fixture, &s->alpha);
    (void)snprintf(s->view, sizeof s->view, "/api/v1/view/agent/%s", s->alpha.agent);
}

static void end(screens *s)
{
    cx_arena_done(&s->arena);
    asking_done(&s->a);
}

/* So many traces, `step_ns` apart. */
static void record(screens *s, maker *m, unsigned count, int64_t first_ns, int64_t step_ns)
{
    char id[32];
    cx_buf batch;
    cx_buf_init(&batch, cx_alloc_default());
    maker_batch_begin(&batch);
    for (unsigned i = 0; i < count; i++) {
        maker_options trace_options = MAKER_OPTIONS_INIT;
        (void)snprintf(id, sizeof id, "s-%.8s-%u", m->agent, i);
        trace_options.trace_id = id;
        trace_options.level = "full_traces";
        trace_options.rationale = "because";
        trace_options.at_ns = first_ns + (int64_t)i * step_ns;
        maker_batch_add(&batch, fixture_make(&s->a.fixture, m, &trace_options));
    }
    maker_batch_end(&batch, "full_traces");
    fixture_take(&s->a.fixture, cx_arena_copy_str(&s->a.fixture.arena, cx_buf_str(&batch)));
    CHECK_INT(s->a.fixture.took.accepted, count);
    cx_buf_done(&batch);
    feed(&s->a);
}

/* The answer of that status, which is JSON: a problem unless it is 200. */
static cx_json ask(screens *s, const char *target, unsigned status)
{
    cx_json value = cx_json_make_null();
    unsigned got = asking_get(&s->a, target);
    if (got != status)
        cx_test_fail(__FILE__, __LINE__, "%s: %u %.*s", target, got,
                     (int)s->a.call.response.body.size, (char *)s->a.call.response.body.data);
    cx_str text = cx_arena_copy_str(&s->arena, cx_buf_str(&s->a.call.response.body));
    CHECK_STATUS(cx_json_parse_text(text, &s->arena, &value, &s->a.fixture.err), &s->a.fixture.err);
    if (status != 200)
        CHECK(cx_str_starts(CX_JSON_GET_STR(&value, "type"), CX_STR("urn:cortex:problem:")));
    return value;
}

static const char *at(screens *s, const char *end)
{
    return cx_arena_printf(&s->arena, "%s%s%c", s->view, end, 0).data;
}

static uint64_t number(const cx_json *object, const char *name)
{
    uint64_t value = UINT64_MAX;
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    CHECK(member != NULL && cx_json_uint64(member, &value));
    return value;
}

static uint32_t length(const cx_json *object, const char *name)
{
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    CHECK(member != NULL && member->type == CX_JSON_ARRAY);
    return member == NULL ? 0 : member->count;
}

/* --- one history ------------------------------------------------------------------------------ */

CX_TEST(screens_of_a_history)
{
    static screens s;
    begin(&s, "screens-history");
    record(&s, &s.alpha, 5, MAKER_START_NS, 60 * INT64_C(1000000000));
    cx_json list = ask(&s, "/api/v1/view", 200);
    CHECK_INT(length(&list, "histories"), 1);
    const cx_json summary = ask(&s, at(&s, "/summary"), 200);
    CHECK_INT(number(&summary, "nodes"), 30); /* six components each */
    CHECK_INT(number(&summary, "errors"), 0);
    const cx_json folded = ask(&s, at(&s, "/summary?fold=true"), 200);
    CHECK(number(&folded, "columns") <= number(&summary, "columns"));
    const cx_json window = ask(&s, at(&s, "/window?from=0&to=0&max=7&labels=true"), 200);
    CHECK_INT(length(CX_JSON_GET(&window, "nodes"), "n"), 7);
    CHECK(CX_JSON_GET(&window, "cut")->type == CX_JSON_TRUE);
    const cx_json far = ask(&s, at(&s, "/window?from=4000000000"), 200);
    CHECK_INT(length(CX_JSON_GET(&far, "nodes"), "n"), 0);
    const cx_json bins = ask(&s, at(&s, "/overview?bins=3"), 200);
    CHECK_INT(number(&bins, "bins"), 3);
    const cx_json node = ask(&s, at(&s, "/node?node=%232"), 200);
    CHECK(length(&node, "changes") > 0);
    const cx_json values = ask(&s, at(&s, "/values?node=%2329&pointer=/memory&max=1"), 200);
    CHECK_INT(length(&values, "entries"), 1);
    (void)ask(&s, at(&s, "/values?node=%2329"), 200);
    (void)ask(&s, at(&s, "/writes?node=%2329&section=memory&key=ACTION_RESULT"), 200);
    const cx_json pair = ask(&s, at(&s, "/compare?a=%230&b=%2329&max=400"), 200);
    CHECK_INT(length(&pair, "counts"), 2);
    const cx_json heat = ask(&s, at(&s, "/heat?layer=cost&axis=order&bins=400"), 200);
    CHECK_INT(number(&heat, "bins"), 400);
    end(&s);
}

/* --- in parts --------------------------------------------------------------------------------- */

static void take_steps(screens *s, const char *lines)
{
    cx_step *steps = NULL;
    cx_step_taken taken[16];
    size_t count = 0;
    fixture *f = &s->a.fixture;
    CHECK_STATUS(cx_steps_read_lines(cx_str_z(lines), &s->arena, &steps, &count, &f->err), &f->err);
    REQUIRE(count <= CX_COUNT_OF(taken));
    CHECK_STATUS(cx_recorder_steps_take(f->recorder, steps, count, CX_STR("t"), taken, &f->err),
                 &f->err);
    for (size_t i = 0; i < count; i++)
        CHECK_INT(taken[i].status, CX_STEP_STORED);
}

CX_TEST(screens_of_a_part_say_what_the_whole_says)
{
    static const char *const same[] = {"summary", "overview?bins=3", "window?labels=true",
                                       "steps?max=9", "node?node=@desk"};
    static const char *const whole_only[] = {
        "values?node=@desk",        "writes?node=@desk&section=memory&key=k",
        "said?node=@desk&text=one", "reach?node=@desk",
        "compare?a=@desk&b=%230",   "heat"};
    static screens s;
    begin(&s, "screens-part");
    take_steps(&s, "{\"agent\":\"desk\",\"event\":{\"text\":\"one\"},\"state_delta\":"
                   "{\"memory\":{\"k\":1}}}\n"
                   "{\"agent\":\"desk\",\"event\":{\"text\":\"two\"}}\n"
                   "{\"agent\":\"desk\",\"state_delta\":{\"memory\":{\"k\":2}}}\n");
    for (size_t i = 0; i < CX_COUNT_OF(same); i++) {
        cx_arena_mark mark = cx_arena_mark_now(&s.arena);
        (void)ask(&s, cx_arena_printf(&s.arena, "/api/v1/view/agent/desk/%s%c", same[i], 0).data,
                  200);
        cx_str whole = cx_arena_copy_str(&s.arena, cx_buf_str(&s.a.call.response.body));
        (void)ask(&s,
                  cx_arena_printf(&s.arena, "/api/v1/view/part/0/agent/desk/%s%c", same[i], 0).data,
                  200);
        CHECK(cx_str_eq(whole, cx_buf_str(&s.a.call.response.body)));
        cx_arena_reset(&s.arena, mark);
    }
    for (size_t i = 0; i < CX_COUNT_OF(whole_only); i++) {
        (void)ask(&s,
                  cx_arena_printf(&s.arena, "/api/v1/view/agent/desk/%s%c", whole_only[i], 0).data,
                  200);
        (void)ask(
            &s,
            cx_arena_printf(&s.arena, "/api/v1/view/part/0/agent/desk/%s%c", whole_only[i], 0).data,
            422);
    }
    const cx_json later = ask(&s, "/api/v1/view/part/1/agent/desk/summary", 200);
    CHECK_INT(number(&later, "nodes"), 2);
    CHECK_INT(number(&later, "errors"), 0);
    const cx_json extent = ask(&s, "/api/v1/view/agent/desk/extent", 200);
    CHECK_INT(number(&extent, "entries"), 3);
    CHECK(CX_JSON_GET(&extent, "parts")->type == CX_JSON_TRUE);
    CHECK(CX_JSON_GET(&extent, "entry")->type == CX_JSON_NULL);
    static const char *const gone[] = {"part/3/agent/desk",
                                       "part/x/agent/desk",
                                       "part/01/agent/desk",
                                       "part//agent/desk",
                                       "part/0/all",
                                       "part/0/part/0/agent/desk",
                                       "part/0",
                                       "part/99999999999999999999/agent/desk"};
    for (size_t i = 0; i < CX_COUNT_OF(gone); i++)
        (void)ask(&s, cx_arena_printf(&s.arena, "/api/v1/view/%s/summary%c", gone[i], 0).data, 404);
    end(&s);
}

CX_TEST(screens_of_traces_have_no_parts)
{
    static screens s;
    begin(&s, "screens-part-trace");
    record(&s, &s.alpha, 2, MAKER_START_NS, 60 * INT64_C(1000000000));
    const cx_json extent = ask(&s, at(&s, "/extent"), 200);
    CHECK(CX_JSON_GET(&extent, "parts")->type == CX_JSON_FALSE);
    (void)ask(
        &s,
        cx_arena_printf(&s.arena, "/api/v1/view/part/0/agent/%s/summary%c", s.alpha.agent, 0).data,
        404);
    /* Steps under the name of the traces: a node of a trace depends on all before it. */
    take_steps(&s, cx_arena_printf(&s.arena, "{\"agent\":\"%s\"}\n%c", s.alpha.agent, 0).data);
    (void)ask(
        &s,
        cx_arena_printf(&s.arena, "/api/v1/view/part/0/agent/%s/summary%c", s.alpha.agent, 0).data,
        501);
    (void)ask(
        &s,
        cx_arena_printf(&s.arena, "/api/v1/view/part/2/agent/%s/summary%c", s.alpha.agent, 0).data,
        200);
    end(&s);
}

CX_TEST(screens_reject_bad_queries)
{
    static const struct {
        const char *end;
        unsigned status;
    } asked[] = {{"/window?max=0", 422},
                 {"/window?max=4001", 422},
                 {"/window?from=-1", 422},
                 {"/window?from=4294967296", 422},
                 {"/window?labels=maybe", 422},
                 {"/window?mood=1", 422},
                 {"/overview?bins=0", 422},
                 {"/overview?bins=99999999", 422},
                 {"/summary?fold=2", 422},
                 {"/summary?node=x", 422},
                 {"/node", 422},
                 {"/node?node=", 422},
                 {"/node?node=nobody", 404},
                 {"/node?node=%2399999999999999999999", 404},
                 {"/node?node=%23-1", 404},
                 {"/node?node=@nobody", 404},
                 {"/node?node=%3Cscript%3Ealert(1)%3C/script%3E", 404},
                 {"/node?node=%E2%80%AEx", 404},
                 {"/node?node=%1b%5b31m", 404},
                 {"/node?node=%00", 422},
                 {"/node?node=%ff", 422},
                 {"/values?node=%230&max=501", 422},
                 {"/values?node=%230&pointer=/nothing/there", 404},
                 {"/values?node=%230&pointer=memory", 422},
                 {"/writes?node=%230&section=memory", 422},
                 {"/writes?node=%230&key=x", 422},
                 {"/compare?a=%230", 422},
                 {"/compare?a=%230&b=nobody", 404},
                 {"/compare?a=%230&b=%231&max=401", 422},
                 {"/heat?layer=mood", 422},
                 {"/heat?axis=place", 422},
                 {"/heat?bins=401", 422},
                 {"/heat?from=nan", 422},
                 {"/heat?from=1e400", 422},
                 {"/nothing", 404}};
    static screens s;
    static char longer[6000];
    begin(&s, "screens-refuse");
    record(&s, &s.alpha, 1, MAKER_START_NS, 0);
    for (size_t i = 0; i < CX_COUNT_OF(asked); i++)
        (void)ask(&s, at(&s, asked[i].end), asked[i].status);
    for (size_t size = 1025; size < 5000; size += 3200) {
        int used = snprintf(longer, sizeof longer, "%s/node?node=", s.view);
        memset(longer + used, 'n', size);
        longer[(size_t)used + size] = 0;
        (void)ask(&s, longer, 422);
    }
    /* A range that ends before it begins holds nothing. */
    const cx_json none = ask(&s, at(&s, "/window?from=5&to=2"), 200);
    CHECK_INT(length(CX_JSON_GET(&none, "nodes"), "n"), 0);
    (void)ask(&s, at(&s, "/heat?from=9&to=1"), 200);
    end(&s);
}

CX_TEST(screens_of_an_empty_home)
{
    static const char *const gone[] = {"/api/v1/view/all/summary", "/api/v1/view/agent/x/summary",
                                       "/api/v1/view/agent/x/heat", TRACES "/x/around",
                                       "/api/v1/view/otel/service/x/window"};
    static screens s;
    asking_init(&s.a, "screens-empty");
    cx_arena_init(&s.arena, cx_alloc_default(), 0);
    (void)ask(&s, FLEET, 503); /* the index does not exist yet */
    feed(&s.a);
    for (size_t i = 0; i < CX_COUNT_OF(gone); i++)
        (void)ask(&s, gone[i], 404);
    const cx_json list = ask(&s, "/api/v1/view", 200);
    CHECK_INT(length(&list, "histories"), 0);
    const cx_json fleet = ask(&s, FLEET "?days=90", 200);
    CHECK_INT(length(&fleet, "agents"), 0);
    CHECK_INT(length(&fleet, "days"), 90);
    CHECK_INT(number(CX_JSON_GET(&fleet, "left_out"), "agents"), 0);
    const cx_json alerts = ask(&s, "/api/v1/covenant/alerts?status=all", 200);
    CHECK_INT(length(&alerts, "alerts"), 0);
    (void)ask(&s, "/api/v1/view/run/x/summary", 501);
    end(&s);
}

/* What needs contents needs a token that may see them. */
CX_TEST(screens_need_their_scope_and_level)
{
    static const char *const full[] = {"/summary",
                                       "/window",
                                       "/overview",
                                       "/node?node=%230",
                                       "/values?node=%230",
                                       "/compare?a=%230&b=%230",
                                       "/heat"};
    static screens s;
    begin(&s, "screens-scope");
    record(&s, &s.alpha, 1, MAKER_START_NS, 0);
    asking_token(&s.a, CX_SCOPE_READ, CX_LEVEL_DETAILED);
    for (size_t i = 0; i < CX_COUNT_OF(full); i++)
        (void)ask(&s, at(&s, full[i]), 403);
    (void)ask(&s, "/api/v1/view", 403);
    (void)ask(&s, FLEET, 200);
    asking_token(&s.a, CX_SCOPE_WRITE | CX_SCOPE_RUN_READ, CX_LEVEL_FULL);
    (void)ask(&s, FLEET, 403);
    (void)ask(&s, at(&s, "/summary"), 403);
    (void)ask(&s, TRACES "/x/around", 403);
    end(&s);
}

/* --- a trace ---------------------------------------------------------------------------------- */

CX_TEST(screens_of_a_trace)
{
    static screens s;
    char target[256];
    begin(&s, "screens-trace");
    record(&s, &s.alpha, 3, MAKER_START_NS, 60 * INT64_C(1000000000));
    (void)snprintf(target, sizeof target, TRACES "/s-%.8s-1/around", s.alpha.agent);
    cx_json around = ask(&s, target, 200);
    CHECK(CX_JSON_GET(&around, "previous")->type == CX_JSON_OBJECT);
    CHECK(CX_JSON_GET(&around, "next")->type == CX_JSON_OBJECT);
    CHECK_INT(length(&around, "nodes"), 0);
    (void)snprintf(target, sizeof target, TRACES "/s-%.8s-2/around?nodes=true", s.alpha.agent);
    around = ask(&s, target, 200);
    CHECK(CX_JSON_GET(&around, "next")->type == CX_JSON_NULL);
    CHECK_INT(length(&around, "nodes"), 6);
    (void)snprintf(target, sizeof target, TRACES "/s-%.8s-2/around?agent_id_hash=other",
                   s.alpha.agent);
    (void)ask(&s, target, 404);
    (void)ask(&s, TRACES "/%3Cscript%3E/around", 404);
    (void)ask(&s, TRACES "/x/around?nodes=perhaps", 422);
    static const char *const bodies[] = {"",
                                         "{",
                                         "[]",
                                         "{}",
                                         "null",
                                         "{\"a\":1,\"a\":2}",
                                         "\xff",
                                         "{\"events\":[]}",
                                         "{\"events\":{}}",
                                         "[[[[[[[[[["};
    for (size_t i = 0; i < CX_COUNT_OF(bodies); i++) {
        unsigned got = asking_ask(&s.a, "POST", CHECK_TRACES, cx_str_z(bodies[i]));
        CHECK(got == 200 || got == 400 || got == 422);
        CHECK(!asking_says(&s.a, "\"verdict\":\"holds\""));
    }
    end(&s);
}

/* --- the fleet -------------------------------------------------------------------------------- */

/* The capacity of a day is what GET /capacity would say with that clock, for every day and
 * agent. */
CX_TEST(screens_fleet_has_every_day)
{
    static screens s;
    static maker many[60];
    char name[16];
    begin(&s, "screens-fleet");
    record(&s, &s.alpha, 30, MAKER_START_NS, DAY_NS / 3); /* ten days */
    for (size_t i = 0; i < CX_COUNT_OF(many); i++) {
        (void)snprintf(name, sizeof name, "agent-%zu", i);
        maker_init(&many[i], name);
        fixture_trust(&s.a.fixture, &many[i]);
        record(&s, &many[i], 12, MAKER_START_NS + 9 * DAY_NS, 60 * INT64_C(1000000000));
    }
    const cx_json fleet = ask(&s, FLEET "?days=10", 200);
    const cx_json *agents = CX_JSON_GET(&fleet, "agents");
    CHECK_INT(agents->count, 61);
    CHECK_INT(number(&fleet, "capacity_step"), 1);
    CHECK(CX_JSON_GET(&fleet, "more")->type == CX_JSON_FALSE);
    for (uint32_t i = 0; i < agents->count; i++) {
        const cx_json *one = &agents->items[i], *capacity = CX_JSON_GET(one, "capacity");
        CHECK_INT(length(one, "k_eff"), 10);
        CHECK_INT(length(one, "traces"), 10);
        CHECK_INT(capacity->count, 10);
        CHECK(capacity->items[9].type != CX_JSON_NULL); /* also of the sixtieth agent */
    }
    /* Most traces first; its capacity is there as soon as ten traces are. */
    CHECK(cx_str_is(CX_JSON_GET_STR(&agents->items[0], "agent"), s.alpha.agent));
    const cx_json *first = CX_JSON_GET(&agents->items[0], "capacity");
    CHECK(first->items[2].type == CX_JSON_NULL && first->items[5].type != CX_JSON_NULL);
    char target[256];
    (void)snprintf(target, sizeof target, FLEET "?days=10&agent=%s", many[7].agent);
    const cx_json single = ask(&s, target, 200);
    CHECK_INT(length(&single, "agents"), 1);
    const cx_json no_agent = ask(&s, FLEET "?agent=%3Cscript%3E", 200);
    CHECK_INT(length(&no_agent, "agents"), 0);
    end(&s);
}

/* As GET /capacity at the end of the newest day. */
CX_TEST(screens_fleet_says_what_capacity_says)
{
    static screens s;
    char target[256];
    double score = -1, of_fleet = -2;
    begin(&s, "screens-capacity");
    record(&s, &s.alpha, 40, MAKER_START_NS, DAY_NS / 4);
    const cx_json fleet = ask(&s, FLEET "?days=3", 200);
    const cx_json *capacity = CX_JSON_GET(&CX_JSON_GET(&fleet, "agents")->items[0], "capacity");
    CHECK(cx_json_double(&capacity->items[2], &of_fleet));
    s.a.fixture.now_ns = MAKER_START_NS + 10 * DAY_NS;
    s.a.fixture.now_ns += DAY_NS - s.a.fixture.now_ns % DAY_NS;
    (void)snprintf(target, sizeof target, "/api/v1/covenant/capacity/%s", s.alpha.agent);
    const cx_json one = ask(&s, target, 200);
    const cx_json *value = CX_JSON_GET(&one, "score");
    if (value == NULL && CX_JSON_GET(&one, "capacity") != NULL)
        value = CX_JSON_GET(CX_JSON_GET(&one, "capacity"), "score");
    CHECK(value != NULL && cx_json_double(value, &score));
    CHECK(score > 0 && score < 1);
    CHECK(score - of_fleet < 1e-9 && of_fleet - score < 1e-9);
    end(&s);
}

/* Two hundred are shown, those with most traces; the others are counted and can be asked for. */
CX_TEST(screens_fleet_counts_what_it_leaves_out)
{
    enum { AGENTS = CX_FLEET_AGENTS_MAX + 3 };
    static screens s;
    static maker many[AGENTS];
    char name[16], target[128];
    cx_buf batch;
    begin(&s, "screens-fleet-many");
    cx_buf_init(&batch, cx_alloc_default());
    maker_batch_begin(&batch);
    for (unsigned i = 0; i < AGENTS; i++) {
        (void)snprintf(name, sizeof name, "agent-%u", i);
        maker_init(&many[i], name);
        fixture_trust(&s.a.fixture, &many[i]);
        for (unsigned k = 0; k < (i < 3 ? 1u : 2u); k++) { /* three have fewer than the others */
            maker_options trace_options = MAKER_OPTIONS_INIT;
            maker_batch_add(&batch, fixture_make(&s.a.fixture, &many[i], &trace_options));
        }
    }
    maker_batch_end(&batch, "generic");
    fixture_take(&s.a.fixture, cx_arena_copy_str(&s.a.fixture.arena, cx_buf_str(&batch)));
    CHECK_INT(s.a.fixture.took.accepted, 2 * AGENTS - 3);
    feed(&s.a);
    const cx_json fleet = ask(&s, FLEET "?days=1", 200), *left = CX_JSON_GET(&fleet, "left_out");
    const cx_json *agents = CX_JSON_GET(&fleet, "agents");
    CHECK_INT(agents->count, CX_FLEET_AGENTS_MAX);
    CHECK_INT(number(left, "agents"), 3);
    CHECK_INT(number(left, "traces"), 3);
    CHECK(CX_JSON_GET(&fleet, "more")->type == CX_JSON_TRUE);
    for (uint32_t i = 0; i < agents->count; i++)
        for (unsigned k = 0; k < 3; k++)
            CHECK(!cx_str_is(CX_JSON_GET_STR(&agents->items[i], "agent"), many[k].agent));
    (void)snprintf(target, sizeof target, FLEET "?days=1&agent=%s", many[0].agent);
    const cx_json one = ask(&s, target, 200);
    CHECK_INT(length(&one, "agents"), 1);
    CHECK_INT(number(CX_JSON_GET(&one, "left_out"), "agents"), 0);
    cx_buf_done(&batch);
    end(&s);
}

CX_TEST(screens_fleet_refuses)
{
    static const char *const bad[] = {"?days=0",        "?days=91",      "?days=x",
                                      "?days=1&days=2", "?to=yesterday", "?to=2026-13-01T00:00:00Z",
                                      "?agent=",        "?agent=%00",    "?agents=x"};
    static screens s;
    char target[64];
    begin(&s, "screens-fleet-bad");
    feed(&s.a);
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++) {
        (void)snprintf(target, sizeof target, FLEET "%s", bad[i]);
        (void)ask(&s, target, 422);
    }
    (void)ask(&s, FLEET "?to=1970-01-01T00:00:00Z&days=90", 200);
    (void)ask(&s, FLEET "?to=2262-01-01T00:00:00Z", 200);
    end(&s);
}

/* --- one file instead of a home --------------------------------------------------------------- */

static const char lines[] =
    "{\"node_id\":\"a0\",\"agent_id\":\"a\",\"seq\":0,\"timestamp\":1,\"event\":{},\"state_delta\":"
    "{\"memory\":{\"k\":1}},\"prev_hash\":\"\",\"hash\":\"x\",\"parents\":[]}\n";

CX_TEST(screens_of_one_file)
{
    static const struct {
        const char *target;
        unsigned status;
    } asked[] = {{"/api/v1/inbox", 200},
                 {"/api/v1/inbox/facets?q=file", 200},
                 {"/api/v1/inbox?cursor=AAAA", 422},
                 {"/api/v1/view", 200},
                 {"/api/v1/view/file/summary", 200},
                 {"/api/v1/view/file/node?node=%230", 200},
                 {"/api/v1/view/all/summary", 404},
                 {"/api/v1/view/agent/a/summary", 404},
                 {FLEET, 404},
                 {TRACES, 404},
                 {TRACES "/x/around", 404}};
    static asking a;
    cx_err err;
    cx_lattice *lattice = NULL;
    cx_lattice_options reading = CX_LATTICE_OPTIONS_INIT;
    cx_token token = {.scopes = CX_SCOPE_READ, .level = CX_LEVEL_FULL, .expires_ns = CX_TIME_NONE};
    memset(&a, 0, sizeof a);
    reading.keep_deltas = true;
    CHECK_STATUS(cx_lattice_open_bytes(cx_str_bytes(cx_str_z(lines)), &reading, &lattice, &err),
                 &err);
    CHECK_STATUS(cx_token_make_text(cx_io_system(), a.secret + 7, &token.digest, &err), &err);
    memcpy(a.secret, "Bearer ", 7);
    const cx_service_options options = {
        .file_path = "lines", .only_lattice = lattice, .only_token = &token};
    CHECK_STATUS(cx_service_open(&options, &a.service, &err), &err);
    cx_worker_init(&a.worker, a.service);
    for (size_t i = 0; i < CX_COUNT_OF(asked); i++)
        CHECK_INT(asking_get(&a, asked[i].target), asked[i].status);
    CHECK_INT(asking_get(&a, "/api/v1/inbox"), 200);
    CHECK(asking_says(&a, "\"kind\":\"history\"") && asking_says(&a, "\"index\":null"));
    asking_forget(&a);
    cx_worker_done(&a.worker);
    cx_service_close(a.service);
    cx_lattice_close(lattice);
}
