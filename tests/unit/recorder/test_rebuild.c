/*
 * test_rebuild.c - the index is a function of the ledger: a history of traces, keys and erasures
 * that was fed in random steps gives the rows that feeding all of it at once gives (trace.md §10).
 */
#include <stdlib.h>
#include <unistd.h>

#include "memory/memory.h"
#include "tests/support/home_kit.h"
#include "tests/support/index_dump.h"
#include "tests/support/recorder_fixture.h"

enum { AGENTS = 3, SENT_MAX = 400 };

typedef struct history_test {
    fixture s;
    uint64_t dice;
    maker agents[AGENTS];
    bool registered[AGENTS];
    cx_str sent[SENT_MAX];
    unsigned sent_count;
    const char *index; /* fed as the history goes */
} history_test;

static uint64_t roll(history_test *t, uint64_t sides)
{
    return cx_test_random(&t->dice) % sides;
}

static const char *const levels[] = {"generic", "detailed", "full_traces"};

/* --- what happens ----------------------------------------------------------------------------- */

static void send(history_test *t, cx_str trace)
{
    int status = fixture_send(&t->s, trace, levels[0]);
    CHECK(status >= CX_INTAKE_STORED && status <= CX_INTAKE_REJECTED);
    if (t->sent_count < SENT_MAX)
        t->sent[t->sent_count++] = trace;
}

static void send_new(history_test *t)
{
    char same[32];
    maker_options trace_options = MAKER_OPTIONS_INIT;
    maker *m = &t->agents[roll(t, AGENTS)];
    trace_options.level = levels[roll(t, 3)];
    trace_options.rationale = "words of a reason";
    trace_options.k_eff = roll(t, 4) == 0 ? 2.5 : roll(t, 4) == 0 ? 1.0 : 0;
    trace_options.overridden = roll(t, 5) == 0;
    trace_options.success = roll(t, 5) != 0;
    (void)snprintf(same, sizeof same, "trace-of-all-%llu", (unsigned long long)roll(t, 6));
    if (roll(t, 5) == 0)
        trace_options.trace_id = same; /* so that conflicts come */
    send(t, fixture_make(&t->s, m, &trace_options));
}

/* Form B does not sign the level, nor the id. */
static void send_again(history_test *t)
{
    if (t->sent_count == 0)
        return;
    cx_str trace = t->sent[roll(t, t->sent_count)];
    const char *from = levels[roll(t, 3)], *to = levels[roll(t, 3)];
    cx_str other = fixture_replace(&t->s, trace, from, to);
    if (roll(t, 8) == 0)
        other = fixture_replace(&t->s, trace, "\"trace-", "\"replayed-");
    send(t, other.data == NULL ? trace : other);
}

static void change_key(history_test *t)
{
    fixture *s = &t->s;
    unsigned agent = (unsigned)roll(t, AGENTS);
    maker *m = &t->agents[agent];
    if (!t->registered[agent]) {
        fixture_trust(s, m);
        t->registered[agent] = true;
        return;
    }
    int64_t since = roll(t, 2) == 0
                        ? CX_TIME_NONE
                        : MAKER_START_NS + (int64_t)roll(t, m->count + 2) * INT64_C(60000000000);
    if (roll(t, 3) == 0)
        CHECK_STATUS(cx_recorder_key_revoke(s->recorder, cx_str_z(m->key_id), CX_STR("lost"),
                                            CX_STR("me"), since, &s->err),
                     &s->err);
}

static void in_journal(history_test *t, cx_str actor, cx_str kind, bool raw)
{
    fixture *s = &t->s;
    cx_memory *memory;
    uint64_t seq = 0, count = fixture_entries(s, actor);
    if (count == 0)
        return;
    CHECK_STATUS(cx_memory_open(s->home, actor, NULL, &memory, &s->err), &s->err);
    if (raw) {
        static const char *const payloads[] = {"nonsense",
                                               "{}",
                                               "[]",
                                               "{\"op\":\"revoke\",\"key_id\":\"nobody\"}",
                                               "{\"op\":\"add\",\"key\":{}}",
                                               "{\"alert_id\":\"x\"}"};
        cx_str payload = cx_str_z(payloads[roll(t, CX_COUNT_OF(payloads))]);
        CHECK_STATUS(cx_memory_raw(memory, kind, cx_str_bytes(payload), roll(t, 2) == 0,
                                   CX_STR("me"), &seq, &s->err),
                     &s->err);
    } else {
        cx_status status =
            cx_memory_redact(memory, roll(t, count), CX_STR("asked"), CX_STR("me"), &s->err);
        CHECK(!cx_failed(status) || status.code == CX_E_CONFLICT || status.code == CX_E_EXISTS);
    }
    cx_memory_close(memory);
}

static cx_str some_journal(history_test *t)
{
    uint64_t which = roll(t, AGENTS + 1);
    return which == AGENTS ? CX_STR("batches") : cx_str_z(t->agents[which].agent);
}

/* What is written by hand under our names means nothing, and stops nothing. */
static void write_by_hand(history_test *t)
{
    static const char *const kinds[] = {"trace.key",   "trace.received", "trace.conflict",
                                        "trace.batch", "trace.alert",    "trace.alert_ack"};
    static const char *const actors[] = {"trust", "batches", "alerts"};
    cx_str actor = roll(t, 2) == 0 ? some_journal(t) : cx_str_z(actors[roll(t, 3)]);
    in_journal(t, actor, cx_str_z(kinds[roll(t, CX_COUNT_OF(kinds))]), true);
}

static void feed_into(history_test *t, const char *index)
{
    fixture *s = &t->s;
    CHECK_STATUS(cx_recorder_feed_now(s->recorder, index, &s->err), &s->err);
}

static void happen(history_test *t)
{
    uint64_t what = roll(t, 100);
    t->s.now_ns += INT64_C(1000000000);
    if (what < 45)
        send_new(t);
    else if (what < 55)
        send_again(t);
    else if (what < 62)
        change_key(t);
    else if (what < 70)
        in_journal(t, some_journal(t), (cx_str){NULL, 0}, false);
    else if (what < 73)
        write_by_hand(t);
    else if (what < 75)
        fixture_reopen(&t->s);
    else
        feed_into(t, t->index);
}

/* --- both indexes ----------------------------------------------------------------------------- */

static void dump(history_test *t, const char *where, cx_buf *out)
{
    cx_index *index = NULL;
    fixture *s = &t->s;
    CHECK_STATUS(cx_index_open(where, CX_INDEX_READ, &index, &s->err), &s->err);
    if (index != NULL)
        CHECK_STATUS(index_dump(index, out, &s->err), &s->err);
    cx_index_close(index);
}

static void say_difference(cx_str a, cx_str b)
{
    size_t at = 0, line = 0;
    while (at < a.size && at < b.size && a.data[at] == b.data[at]) {
        at++;
        if (a.data[at - 1] == '\n')
            line = at;
    }
    size_t a_end = line, b_end = line;
    while (a_end < a.size && a.data[a_end] != '\n')
        a_end++;
    while (b_end < b.size && b.data[b_end] != '\n')
        b_end++;
    printf("as it went: %.*s\nat once:    %.*s\n", (int)(a_end - line), a.data + line,
           (int)(b_end - line), b.data + line);
}

static bool same_rows(history_test *t)
{
    cx_buf stepwise, at_once;
    const char *other = cx_arena_printf(&t->s.arena, "%s/other.db", t->s.path).data;
    cx_buf_init(&stepwise, cx_alloc_default());
    cx_buf_init(&at_once, cx_alloc_default());
    feed_into(t, t->index);
    feed_into(t, other);
    dump(t, t->index, &stepwise);
    dump(t, other, &at_once);
    bool same = stepwise.size != 0 && cx_str_eq(cx_buf_str(&stepwise), cx_buf_str(&at_once));
    if (!same)
        say_difference(cx_buf_str(&stepwise), cx_buf_str(&at_once));
    (void)unlink(other);
    cx_buf_done(&stepwise);
    cx_buf_done(&at_once);
    return same;
}

static bool tell(uint64_t seed, unsigned length)
{
    static const cx_recorder_options keep = {.keep_unknown = true};
    static const char *const names[AGENTS] = {"alpha", "beta", "gamma"};
    history_test *t = calloc(1, sizeof *t);
    CX_ASSERT(t != NULL);
    t->dice = seed;
    fixture_init(&t->s, "rebuild", &keep);
    t->index = cx_recorder_index_path(t->s.path, &t->s.arena);
    for (unsigned i = 0; i < AGENTS; i++)
        maker_init(&t->agents[i], names[i]);
    bool same = true;
    for (unsigned i = 0; same && i < length; i++) {
        happen(t);
        if (i % 40 == 39)
            same = same_rows(t);
    }
    same = same && same_rows(t);
    fixture_done(&t->s);
    free(t);
    return same;
}

CX_TEST(rebuild_gives_equal_rows)
{
    const char *given = getenv("CORTEX_STORIES");
    uint64_t histories = given != NULL ? strtoull(given, NULL, 10) : 3;
    for (uint64_t i = 0; i < histories; i++)
        if (!tell(cx_test_seed() * 1000 + i, 120)) {
            cx_test_fail(__FILE__, __LINE__, "history %llu of seed %llu", (unsigned long long)i,
                         (unsigned long long)cx_test_seed());
            break;
        }
}
