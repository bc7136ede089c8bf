/* The inbox: one list of traces, alerts and histories, and how it divides; by pages, under writing,
 * with wrong and hostile parameters, and without anything. */
#include "tests/unit/server/asking.h"

#include "base/map.h"
#include "base/thread.h"
#include "stores/inbox.h"

#define INBOX "/api/v1/inbox"
#define FACETS INBOX "/facets"

typedef struct inbox_stage {
    asking a;
    maker alpha, beta;
    cx_arena arena;
} inbox_stage;

static void feed(asking *a)
{
    CHECK_STATUS(
        cx_recorder_feed_now(a->fixture.recorder, a->service->index_where, &a->fixture.err),
        &a->fixture.err);
}

/* Traces of one maker, one batch; the n-th is overridden when n % 3 == 0, and every fourth has a
 * rationale. */
static void send(inbox_stage *s, maker *m, unsigned count, const char *rationale)
{
    cx_buf batch;
    cx_buf_init(&batch, cx_alloc_default());
    maker_batch_begin(&batch);
    for (unsigned i = 0; i < count; i++) {
        maker_options trace_options = MAKER_OPTIONS_INIT;
        trace_options.level = "full_traces";
        trace_options.overridden = i % 3 == 0;
        trace_options.passed = i % 2 == 0;
        trace_options.k_eff = i % 5 == 0 ? 1.5 : 3.0;
        trace_options.rationale = i % 4 == 0 ? rationale : "nothing of note";
        maker_batch_add(&batch, fixture_make(&s->a.fixture, m, &trace_options));
    }
    maker_batch_end(&batch, "full_traces");
    fixture_take(&s->a.fixture, cx_arena_copy_str(&s->a.fixture.arena, cx_buf_str(&batch)));
    CHECK_INT(s->a.fixture.took.accepted, count);
    cx_buf_done(&batch);
}

static void begin(inbox_stage *s, const char *name)
{
    asking_init(&s->a, name);
    cx_arena_init(&s->arena, cx_alloc_default(), 0);
    maker_init(&s->alpha, "alpha");
    maker_init(&s->beta, "beta");
    fixture_trust(&s->a.fixture, &s->alpha);
    fixture_trust(&s->a.fixture, &s->beta);
}

static void end(inbox_stage *s)
{
    cx_arena_done(&s->arena);
    asking_done(&s->a);
}

/* The answer; checks that it is JSON. */
static cx_json answer(inbox_stage *s, const char *target, unsigned status)
{
    cx_json value = cx_json_make_null();
    unsigned got = asking_get(&s->a, target);
    if (got != status)
        cx_test_fail(__FILE__, __LINE__, "%s: %u %.*s", target, got,
                     (int)s->a.call.response.body.size, (char *)s->a.call.response.body.data);
    cx_str text = cx_arena_copy_str(&s->arena, cx_buf_str(&s->a.call.response.body));
    CHECK_STATUS(cx_json_parse_text(text, &s->arena, &value, &s->a.fixture.err), &s->a.fixture.err);
    return value;
}

static uint64_t number(const cx_json *object, const char *name)
{
    uint64_t value = UINT64_MAX;
    const cx_json *member = cx_json_get(object, cx_str_z(name));
    CHECK(member != NULL && cx_json_uint64(member, &value));
    return value;
}

/* The count of a value; 0 when it is not there. */
static uint64_t facet(const cx_json *answer, const char *name, const char *value)
{
    const cx_json *facets = CX_JSON_GET(answer, "facets");
    const cx_json *one = facets == NULL ? NULL : cx_json_get(facets, cx_str_z(name));
    const cx_json *values = one == NULL ? NULL : CX_JSON_GET(one, "values");
    CHECK(values != NULL);
    for (uint32_t i = 0; values != NULL && i < values->count; i++)
        if (cx_str_is(cx_json_get_str(&values->items[i], CX_STR("value")), value))
            return number(&values->items[i], "count");
    return 0;
}

static uint64_t sum(const cx_json *answer, const char *name)
{
    const cx_json *facets = CX_JSON_GET(answer, "facets");
    const cx_json *values = CX_JSON_GET(cx_json_get(facets, cx_str_z(name)), "values");
    uint64_t all = 0;
    for (uint32_t i = 0; i < values->count; i++)
        all += number(&values->items[i], "count");
    return all;
}

/* All pages of a query, `limit` at a time: how many items, each once, by time. */
static size_t walk(inbox_stage *s, const char *query, unsigned limit)
{
    char target[2048];
    cx_str cursor = {NULL, 0}, previous = CX_STR("9999");
    size_t count = 0;
    cx_map seen;
    cx_map_init(&seen, cx_alloc_default(), 1);
    do {
        (void)snprintf(target, sizeof target, INBOX "?limit=%u%s%s%s%.*s", limit,
                       query[0] == 0 ? "" : "&", query,
                       cursor.data == NULL ? "" : "&cursor=", (int)cursor.size,
                       cursor.data == NULL ? "" : cursor.data);
        const cx_json page = answer(s, target, 200);
        const cx_json *items = CX_JSON_GET(&page, "items");
        cursor = CX_JSON_GET_STR(&page, "next_cursor");
        CHECK(items != NULL && items->count <= limit);
        CHECK(cursor.size == 0 || items->count == limit);
        for (uint32_t i = 0; i < items->count; i++, count++) {
            const cx_json *item = &items->items[i];
            cx_str when = CX_JSON_GET_STR(item, "when");
            CHECK(when.size == 0 || cx_str_cmp(when, previous) <= 0);
            previous = when.size == 0 ? CX_STR("") : when;
            cx_str name = cx_arena_printf(
                &s->arena, "%.*s %.*s", (int)CX_JSON_GET_STR(item, "kind").size,
                CX_JSON_GET_STR(item, "kind").data, (int)CX_JSON_GET_STR(item, "id").size,
                CX_JSON_GET_STR(item, "id").data);
            uint64_t *place;
            bool is_new = false;
            CHECK_STATUS(cx_map_put(&seen, name, &place, &is_new, &s->a.fixture.err),
                         &s->a.fixture.err);
            CHECK(is_new);
        }
        if (cursor.size == 0)
            cursor = (cx_str){NULL, 0};
    } while (cursor.data != NULL && count < 10000);
    cx_map_done(&seen);
    return count;
}

CX_TEST(inbox_of_an_empty_home)
{
    static inbox_stage s;
    begin(&s, "inbox-empty");
    CHECK_INT(asking_get(&s.a, INBOX), 503); /* the index is yet to be made */
    feed(&s.a);
    cx_json list = answer(&s, INBOX, 200);
    CHECK_INT(CX_JSON_GET(&list, "items")->count, 0);
    CHECK_INT(CX_JSON_GET(&list, "next_cursor")->type, CX_JSON_NULL);
    cx_json facets = answer(&s, FACETS, 200);
    CHECK_INT(number(&facets, "total"), 0);
    CHECK_INT(facet(&facets, "time", "24h"), 0);
    facets = answer(&s, FACETS "?q=x&kind=trace&agent=nobody", 200);
    CHECK_INT(number(&facets, "total"), 0);
    end(&s);
}

CX_TEST(inbox_pages_and_facets_agree)
{
    static const char *const queries[] = {
        "",
        "kind=trace",
        "kind=history",
        "kind=alert",
        "kind=run",
        "verdict=verified",
        "verdict=unverified",
        "verdict=open",
        "gate=overridden",
        "gate=passed",
        "gate=not_passed",
        "gate=unknown",
        "gate=whatever",
        "k_eff=below_2",
        "k_eff=2_to_5",
        "k_eff=5_and_more",
        "k_eff=unknown",
        "level=full_traces",
        "level=generic",
        "time=1h",
        "time=24h",
        "time=7d",
        "time=2026-01-01",
        "time=1999-01-01",
        "q=harbour",
        "q=HARB%20alpha",
        "q=zzz",
        "q=TASK_",
        "gate=overridden&k_eff=below_2",
        "q=note&gate=overridden&time=2026-01-01",
        "kind=trace&verdict=verified&level=full_traces&gate=passed",
        "q=%20%20",
        "q=%22%27%3B--"};
    static inbox_stage s;
    char target[512], query[256];
    begin(&s, "inbox-pages");
    send(&s, &s.alpha, 40, "the harbour was closed");
    send(&s, &s.beta, 23, "a ship came in");
    feed(&s.a);
    for (size_t i = 0; i < CX_COUNT_OF(queries); i++) {
        (void)snprintf(target, sizeof target, FACETS "?%s", queries[i]);
        const cx_json facets = answer(&s, target, 200);
        CHECK(CX_JSON_GET(&facets, "complete")->type == CX_JSON_TRUE);
        CHECK_INT(walk(&s, queries[i], i % 2 == 0 ? 7 : 500), number(&facets, "total"));
        if (i < 8)
            CHECK_INT(walk(&s, queries[i], 1), number(&facets, "total"));
    }
    const cx_json all = answer(&s, FACETS, 200);
    CHECK_INT(number(&all, "total"), 65); /* and the two agents' histories */
    CHECK_INT(facet(&all, "kind", "trace"), 63);
    CHECK_INT(facet(&all, "kind", "history"), 2);
    CHECK_INT(facet(&all, "gate", "overridden"), 14 + 8);
    CHECK_INT(sum(&all, "gate"), 63);
    CHECK_INT(sum(&all, "agent"), 65);
    CHECK_INT(facet(&all, "agent", s.alpha.agent), 41);
    /* A count is of what choosing the value would show, with what else is chosen. */
    (void)snprintf(query, sizeof query, "agent=%s&gate=overridden", s.alpha.agent);
    (void)snprintf(target, sizeof target, FACETS "?%s", query);
    const cx_json chosen = answer(&s, target, 200);
    CHECK_INT(number(&chosen, "total"), 14);
    CHECK_INT(facet(&chosen, "agent", s.beta.agent), 8);
    CHECK_INT(facet(&chosen, "gate", "passed") + facet(&chosen, "gate", "not_passed"), 26);
    CHECK_INT(walk(&s, query, 3), 14);
    end(&s);
}

CX_TEST(inbox_rejects_bad_queries)
{
    static const struct {
        const char *query, *says;
    } bad[] = {{"limit=0", "from 1 to 500"},   {"limit=501", "from 1 to 500"},
               {"limit=-1", "limit"},          {"kind=mood", "one of alert|run|history|trace"},
               {"verdict=good", "verdict"},    {"k_eff=2", "k_eff"},
               {"level=all", "level"},         {"time=", "time"},
               {"time=2h", "2026-01-31"},      {"time=2026-02-30", "2026-01-31"},
               {"time=2026-1-1", "time"},      {"time=9999-01-01", "time"},
               {"gate=", "1 to 256 bytes"},    {"q=", "1 to 256 bytes"},
               {"q=a&q=b", "more than once"},  {"q=a+b+c+d+e+f+g", "6 words"},
               {"cursor=", "cursor"},          {"cursor=AAAA", "cursor"},
               {"cursor=%00", "UTF-8"},        {"agent=%ff", "UTF-8"},
               {"mood=1", "unknown parameter"}};
    static inbox_stage s;
    static char target[4096];
    begin(&s, "inbox-bad");
    feed(&s.a);
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        for (unsigned k = 0; k < 2; k++) {
            bool of_list =
                strncmp(bad[i].query, "limit", 5) == 0 || strncmp(bad[i].query, "cursor", 6) == 0;
            (void)snprintf(target, sizeof target, "%s?%s", k == 0 ? INBOX : FACETS, bad[i].query);
            CHECK_INT(asking_get(&s.a, target), 422);
            CHECK(asking_says(&s.a, "urn:cortex:problem:"));
            if (!asking_says(&s.a, bad[i].says) && !(k == 1 && of_list))
                cx_test_fail(__FILE__, __LINE__, "%s: %.*s", bad[i].query,
                             (int)s.a.call.response.body.size, (char *)s.a.call.response.body.data);
        }
    for (size_t size = 257; size <= 1025; size += 768) {
        int at = snprintf(target, sizeof target, INBOX "?q=");
        memset(target + at, 'x', size);
        target[(size_t)at + size] = 0;
        CHECK_INT(asking_get(&s.a, target), 422);
    }
    CHECK_INT(asking_ask(&s.a, "POST", INBOX, CX_STR("{}")), 405);
    CHECK_INT(asking_get(&s.a, INBOX "/more"), 404);
    end(&s);
}

/* A cursor is of this home and of the inbox, and none that was changed. */
CX_TEST(inbox_cursors_cannot_be_made_up)
{
    static inbox_stage s;
    static char target[1024];
    begin(&s, "inbox-cursor");
    send(&s, &s.alpha, 5, "x");
    feed(&s.a);
    const cx_json page = answer(&s, INBOX "?limit=2", 200);
    cx_str cursor = cx_arena_copy_str(&s.arena, CX_JSON_GET_STR(&page, "next_cursor"));
    CHECK(cursor.size > 40);
    for (size_t i = 0; i < cursor.size; i++) {
        int at = snprintf(target, sizeof target, INBOX "?limit=2&cursor=");
        memcpy(target + at, cursor.data, cursor.size);
        target[(size_t)at + cursor.size] = 0;
        target[(size_t)at + i] = target[(size_t)at + i] == 'A' ? 'B' : 'A';
        CHECK_INT(asking_get(&s.a, target), 422);
        target[(size_t)at + i] = 0; /* cut there */
        CHECK_INT(asking_get(&s.a, target), 422);
    }
    const cx_json other = answer(&s, "/api/v1/covenant/traces?limit=1", 200);
    (void)snprintf(target, sizeof target, INBOX "?cursor=%.*s",
                   (int)CX_JSON_GET_STR(&other, "next_cursor").size,
                   CX_JSON_GET_STR(&other, "next_cursor").data);
    CHECK_INT(asking_get(&s.a, target), 422);
    end(&s);
}

/* What a token may not see is neither listed nor counted, nor found by its words. */
CX_TEST(inbox_respects_scopes_and_levels)
{
    static inbox_stage s;
    begin(&s, "inbox-tokens");
    send(&s, &s.alpha, 8, "the harbour was closed");
    feed(&s.a);
    asking_token(&s.a, CX_SCOPE_READ, CX_LEVEL_GENERIC);
    cx_json facets = answer(&s, FACETS, 200);
    CHECK_INT(number(&facets, "total"), 8);
    CHECK_INT(facet(&facets, "kind", "history"), 0);
    facets = answer(&s, FACETS "?q=harbour", 200);
    CHECK_INT(number(&facets, "total"), 0);
    CHECK_INT(walk(&s, "q=harbour", 100), 0);
    CHECK_INT(walk(&s, "q=task_", 100), 8);
    (void)answer(&s, INBOX, 200);
    CHECK(!asking_says(&s.a, "harbour"));
    facets = answer(&s, FACETS "?level=full_traces", 200);
    CHECK_INT(number(&facets, "total"), 8);
    asking_token(&s.a, CX_SCOPE_RUN_READ, CX_LEVEL_GENERIC);
    facets = answer(&s, FACETS, 200);
    CHECK_INT(number(&facets, "total"), 0);
    CHECK_INT(walk(&s, "", 100), 0);
    asking_token(&s.a, CX_SCOPE_WRITE | CX_SCOPE_KEYS, CX_LEVEL_FULL);
    CHECK_INT(asking_get(&s.a, INBOX), 403);
    CHECK_INT(asking_get(&s.a, FACETS), 403);
    end(&s);
}

/* Findings are in the list, with whether they have been dealt with. */
CX_TEST(inbox_has_alerts)
{
    static inbox_stage s;
    cx_buf out;
    uint64_t found = 0;
    cx_index *index = NULL;
    begin(&s, "inbox-alerts");
    send(&s, &s.alpha, 3, "x");
    s.alpha.count += 4; /* a gap in its audit chain */
    send(&s, &s.alpha, 3, "x");
    feed(&s.a);
    cx_buf_init(&out, cx_alloc_default());
    CHECK_STATUS(cx_index_open(s.a.service->index_where, CX_INDEX_READ, &index, &s.a.fixture.err),
                 &s.a.fixture.err);
    CHECK_STATUS(
        cx_recorder_detect(s.a.fixture.recorder, index, true, &out, &found, &s.a.fixture.err),
        &s.a.fixture.err);
    CHECK(found > 0);
    feed(&s.a);
    cx_json facets = answer(&s, FACETS "?kind=alert", 200);
    CHECK_INT(number(&facets, "total"), found);
    CHECK_INT(facet(&facets, "verdict", "open"), found);
    const cx_json list = answer(&s, INBOX "?kind=alert&q=HASH_chain", 200);
    const cx_json *items = CX_JSON_GET(&list, "items");
    CHECK(items->count > 0);
    CHECK(cx_str_is(CX_JSON_GET_STR(&items->items[0], "agent"), s.alpha.agent));
    CHECK_STATUS(cx_recorder_alert_mark(s.a.fixture.recorder,
                                        CX_JSON_GET_STR(&items->items[0], "id"), true, CX_STR("me"),
                                        CX_STR("seen"), &s.a.fixture.err),
                 &s.a.fixture.err);
    feed(&s.a);
    facets = answer(&s, FACETS "?kind=alert", 200);
    CHECK_INT(facet(&facets, "verdict", "resolved"), 1);
    CHECK_INT(walk(&s, "verdict=resolved", 10), 1);
    cx_index_close(index);
    cx_buf_done(&out);
    end(&s);
}

typedef struct writer {
    inbox_stage *s;
    atomic_bool done;
} writer;

static void write_on(void *arg)
{
    writer *w = arg;
    for (unsigned i = 0; i < 40; i++) {
        send(w->s, &w->s->alpha, 5, "written meanwhile");
        feed(&w->s->a);
    }
    atomic_store(&w->done, true);
}

/* Counts are of one moment while others write: every facet of traces adds up to the same, nothing
 * is ever counted back, and in the end all are there. */
CX_TEST(inbox_facets_under_writing)
{
    static const char *const names[] = {"verdict", "gate", "k_eff", "level"};
    static inbox_stage s;
    static asking reader;
    cx_thread thread;
    writer w = {.s = &s};
    uint64_t before = 0, asked = 0;
    begin(&s, "inbox-writing");
    send(&s, &s.alpha, 5, "at first");
    feed(&s.a);
    /* A worker context and a call of its own; the home is the writer's. */
    reader.service = s.a.service;
    cx_worker_init(&reader.worker, s.a.service);
    memcpy(reader.secret, s.a.secret, sizeof reader.secret);
    reader.type = "application/json";
    CHECK(cx_thread_start(&thread, write_on, &w));
    for (bool last = false; !last; asked++) {
        cx_arena arena;
        cx_json value;
        cx_err err = {0};
        last = atomic_load(&w.done);
        cx_arena_init(&arena, cx_alloc_default(), 0);
        CHECK_INT(asking_get(&reader, FACETS "?kind=trace"), 200);
        CHECK_STATUS(
            cx_json_parse_text(cx_buf_str(&reader.call.response.body), &arena, &value, &err), &err);
        uint64_t total = number(&value, "total");
        CHECK(total >= before && total % 5 == 0);
        for (size_t i = 0; i < CX_COUNT_OF(names); i++)
            CHECK_INT(sum(&value, names[i]), total);
        before = total;
        cx_arena_done(&arena);
    }
    cx_thread_join(&thread);
    CHECK_INT(before, 205);
    CHECK(asked > 0);
    asking_forget(&reader);
    cx_worker_done(&reader.worker);
    end(&s);
}
