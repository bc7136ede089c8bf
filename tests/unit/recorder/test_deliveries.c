/*
 * test_deliveries.c - the queue of alerts on their way out (invariants: deliveries.h).
 */
#include "recorder/internal.h"
#include "recorder/deliveries.h"
#include "tests/support/recorder_fixture.h"

#define SECOND_NS INT64_C(1000000000)
#define DAY_NS (86400 * SECOND_NS)

static void raise_one(fixture *s, const char *trace_id)
{
    bool raised = false;
    uint64_t commit = 0;
    const cx_conflict_alert alert = {
        .agent = CX_STR("agent-a"), .trace_id = cx_str_z(trace_id), .at_ns = s->now_ns};
    CHECK_STATUS(cx_recorder_raise_conflict(s->recorder, &alert, &raised, &commit, &s->err),
                 &s->err);
    CHECK(raised);
}

static void begin(fixture *s, cx_destination destination)
{
    CHECK_STATUS(cx_deliveries_begin(s->recorder, destination, &s->err), &s->err);
}

static uint64_t collect(fixture *s, cx_destination destination)
{
    uint64_t count = 0;
    CHECK_STATUS(cx_deliveries_collect(s->recorder, destination, &count, &s->err), &s->err);
    return count;
}

/* The next message; false when none waits.  `*out_wait_s` until it is due. */
static bool next(fixture *s, cx_destination destination, cx_delivery *out, int64_t *out_wait_s)
{
    int64_t due = 0;
    CHECK_STATUS(cx_deliveries_next(s->recorder, destination, &s->arena, out, &due, &s->err),
                 &s->err);
    *out_wait_s = due == CX_TIME_NONE || due <= s->now_ns ? 0 : (due - s->now_ns) / SECOND_NS;
    return due != CX_TIME_NONE;
}

static cx_delivery_state attempt(fixture *s, const cx_delivery *delivery, cx_attempt_result result,
                                 uint32_t retry_after_s)
{
    cx_delivery_state state = CX_DELIVERY_STATES;
    const cx_delivery_attempt how = {.result = result,
                                     .error =
                                         result == CX_ATTEMPT_DELIVERED ? CX_STR("") : CX_STR("no"),
                                     .retry_after_s = retry_after_s};
    CHECK_STATUS(cx_deliveries_record(s->recorder, delivery, &how, &state, &s->err), &s->err);
    return state;
}

static cx_str shown(fixture *s, cx_str alert_id)
{
    cx_json value;
    cx_buf text;
    cx_buf_init(&text, cx_alloc_default());
    CHECK_STATUS(cx_deliveries_json(s->recorder, alert_id, &s->arena, &value, &s->err), &s->err);
    CHECK_STATUS(cx_json_write(&text, &value, CX_JSON_PY_COMPACT, &s->err), &s->err);
    cx_str copy = cx_arena_copy_str(&s->arena, cx_buf_str(&text));
    cx_buf_done(&text);
    return copy;
}

/* V1, V2 */
CX_TEST(each_entry_is_one_message_and_a_restart_loses_nothing)
{
    fixture s;
    cx_delivery first, again, second;
    int64_t wait;
    fixture_init(&s, "deliveries", NULL);
    raise_one(&s, "before");
    begin(&s, CX_TO_WEBHOOK);
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 0); /* older than the destination */
    raise_one(&s, "one");
    raise_one(&s, "two");
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 2);
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 0);
    CHECK(next(&s, CX_TO_WEBHOOK, &first, &wait) && wait == 0);
    fixture_reopen(&s); /* before its outcome was recorded */
    begin(&s, CX_TO_WEBHOOK);
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 0);
    CHECK(next(&s, CX_TO_WEBHOOK, &again, &wait));
    CHECK(cx_str_eq(again.id, first.id) && cx_str_eq(again.body, first.body));
    CHECK_INT(attempt(&s, &again, CX_ATTEMPT_DELIVERED, 0), CX_DELIVERY_DELIVERED);
    CHECK(next(&s, CX_TO_WEBHOOK, &second, &wait));
    CHECK(!cx_str_eq(second.id, first.id));
    fixture_reopen(&s);
    begin(&s, CX_TO_WEBHOOK);
    CHECK(next(&s, CX_TO_WEBHOOK, &again, &wait) && cx_str_eq(again.id, second.id));
    CHECK_INT(attempt(&s, &again, CX_ATTEMPT_DELIVERED, 0), CX_DELIVERY_DELIVERED);
    CHECK(!next(&s, CX_TO_WEBHOOK, &again, &wait));
    /* Another destination has its own queue. */
    begin(&s, CX_TO_COMMAND);
    CHECK_INT(collect(&s, CX_TO_COMMAND), 0);
    fixture_done(&s);
}

/* V3 */
CX_TEST(pauses_double_up_to_five_minutes_and_a_week_is_the_end)
{
    static const int64_t pauses[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300};
    fixture s;
    cx_delivery delivery;
    cx_deliveries_waiting waiting[CX_DESTINATIONS];
    int64_t wait, at;
    fixture_init(&s, "deliveries_wait", NULL);
    begin(&s, CX_TO_WEBHOOK);
    at = s.now_ns;
    raise_one(&s, "one");
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 1);
    for (size_t i = 0; i < CX_COUNT_OF(pauses); i++) {
        CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait) && wait == 0);
        CHECK_INT(delivery.attempts, i);
        CHECK_INT(attempt(&s, &delivery, CX_ATTEMPT_AGAIN, 0), CX_DELIVERY_WAITING);
        CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait));
        CHECK_INT(wait, pauses[i]);
        s.now_ns += wait * SECOND_NS;
    }
    /* The receiver may ask for more, not for less. */
    CHECK_INT(attempt(&s, &delivery, CX_ATTEMPT_AGAIN, 3600), CX_DELIVERY_WAITING);
    CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait) && wait == 3600);
    CHECK_INT(attempt(&s, &delivery, CX_ATTEMPT_AGAIN, 1), CX_DELIVERY_WAITING);
    CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait) && wait == 300);
    /* After a restart it is tried at once. */
    begin(&s, CX_TO_WEBHOOK);
    CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait) && wait == 0);
    CHECK_STATUS(cx_deliveries_waiting_now(s.recorder, waiting, &s.err), &s.err);
    CHECK(waiting[CX_TO_WEBHOOK].count == 1 && waiting[CX_TO_WEBHOOK].oldest_ns == at);
    CHECK(waiting[CX_TO_COMMAND].count == 0 && waiting[CX_TO_COMMAND].oldest_ns == CX_TIME_NONE);
    s.now_ns = at + CX_DELIVERY_DAYS * DAY_NS;
    CHECK_INT(attempt(&s, &delivery, CX_ATTEMPT_AGAIN, 0), CX_DELIVERY_WAITING);
    CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait));
    s.now_ns++;
    CHECK_INT(attempt(&s, &delivery, CX_ATTEMPT_AGAIN, 0), CX_DELIVERY_EXPIRED);
    CHECK(!next(&s, CX_TO_WEBHOOK, &delivery, &wait));
    fixture_done(&s);
}

/* V3 */
CX_TEST(a_message_that_is_refused_fails_and_the_next_one_is_sent)
{
    fixture s;
    cx_delivery delivery, other;
    int64_t wait;
    fixture_init(&s, "deliveries_refused", NULL);
    begin(&s, CX_TO_WEBHOOK);
    raise_one(&s, "one");
    raise_one(&s, "two");
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 2);
    for (unsigned i = 1; i <= CX_DELIVERY_REFUSALS_MAX; i++) {
        CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait));
        CHECK_INT(attempt(&s, &delivery, CX_ATTEMPT_REFUSED, 0),
                  i < CX_DELIVERY_REFUSALS_MAX ? CX_DELIVERY_WAITING : CX_DELIVERY_FAILED);
    }
    CHECK(next(&s, CX_TO_WEBHOOK, &other, &wait) && wait == 0);
    CHECK(!cx_str_eq(other.id, delivery.id));
    cx_str said = shown(&s, delivery.alert_id);
    CHECK(
        cx_str_starts(said, CX_STR("[{\"attempts\":5,\"destination\":\"webhook\",\"error\":\"no\","
                                   "\"event\":\"alert.raised\",\"id\":\"")));
    said = shown(&s, other.alert_id);
    CHECK(cx_str_starts(said,
                        CX_STR("[{\"attempts\":0,\"destination\":\"webhook\",\"error\":null,")));
    CHECK_STR(shown(&s, CX_STR("no such alert")), "[]");
    fixture_done(&s);
}

/* V4 */
CX_TEST(the_queue_is_bounded_and_the_journal_keeps_the_rest)
{
    fixture s;
    cx_delivery delivery;
    int64_t wait;
    uint64_t total = 0, count;
    char name[24];
    fixture_init(&s, "deliveries_many", NULL);
    begin(&s, CX_TO_WEBHOOK);
    for (unsigned i = 0; i < CX_DELIVERY_WAITING_MAX + 10; i++) {
        (void)snprintf(name, sizeof name, "t%u", i);
        raise_one(&s, name);
    }
    while ((count = collect(&s, CX_TO_WEBHOOK)) != 0)
        total += count;
    CHECK_INT(total, CX_DELIVERY_WAITING_MAX);
    CHECK(next(&s, CX_TO_WEBHOOK, &delivery, &wait));
    CHECK_INT(attempt(&s, &delivery, CX_ATTEMPT_DELIVERED, 0), CX_DELIVERY_DELIVERED);
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 1);
    fixture_done(&s);
}

CX_TEST(marks_come_with_their_alert_and_alertmanager_only_hears_of_the_end)
{
    fixture s;
    cx_delivery raised, marked;
    cx_json body;
    int64_t wait;
    fixture_init(&s, "deliveries_marks", NULL);
    begin(&s, CX_TO_WEBHOOK);
    begin(&s, CX_TO_ALERTMANAGER);
    raise_one(&s, "one");
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 1);
    CHECK(next(&s, CX_TO_WEBHOOK, &raised, &wait));
    CHECK_STATUS(cx_recorder_alert_mark(s.recorder, raised.alert_id, false, CX_STR("ann"),
                                        CX_STR("looking"), &s.err),
                 &s.err);
    CHECK_STATUS(cx_recorder_alert_mark(s.recorder, raised.alert_id, true, CX_STR("ann"),
                                        CX_STR("done"), &s.err),
                 &s.err);
    CHECK_INT(collect(&s, CX_TO_WEBHOOK), 2);
    CHECK_INT(collect(&s, CX_TO_ALERTMANAGER), 2);
    CHECK_INT(attempt(&s, &raised, CX_ATTEMPT_DELIVERED, 0), CX_DELIVERY_DELIVERED);
    CHECK(next(&s, CX_TO_WEBHOOK, &marked, &wait));
    CHECK_STR(marked.event, "alert.acknowledged");
    CHECK_STATUS(cx_json_parse_text(marked.body, &s.arena, &body, &s.err), &s.err);
    CHECK_STR(cx_json_text(cx_json_pointer(&body, CX_STR("/data/mark/notes"))), "looking");
    CHECK_STR(cx_json_text(cx_json_pointer(&body, CX_STR("/data/alert/evidence_traces/0"))), "one");
    CHECK(next(&s, CX_TO_ALERTMANAGER, &raised, &wait));
    CHECK_INT(attempt(&s, &raised, CX_ATTEMPT_DELIVERED, 0), CX_DELIVERY_DELIVERED);
    CHECK(next(&s, CX_TO_ALERTMANAGER, &marked, &wait));
    CHECK_STR(marked.event, "alert.resolved");
    /* A mark of an alert from before: said without it, and nothing that Alertmanager knows. */
    begin(&s, CX_TO_COMMAND);
    CHECK_STATUS(cx_recorder_alert_mark(s.recorder, marked.alert_id, true, CX_STR("ann"),
                                        CX_STR("again"), &s.err),
                 &s.err);
    CHECK_INT(collect(&s, CX_TO_COMMAND), 1);
    fixture_done(&s);
}

CX_TEST(the_position_of_the_detectors_is_kept)
{
    fixture s;
    cx_position at = {0, 0};
    bool found = true;
    fixture_init(&s, "deliveries_position", NULL);
    CHECK_STATUS(cx_deliveries_checked(s.recorder, &at, &found, &s.err), &s.err);
    CHECK(!found);
    CHECK_STATUS(cx_deliveries_set_checked(s.recorder, (cx_position){7, 2}, &s.err), &s.err);
    CHECK_STATUS(cx_deliveries_set_checked(s.recorder, (cx_position){9, 1}, &s.err), &s.err);
    fixture_reopen(&s);
    CHECK_STATUS(cx_deliveries_checked(s.recorder, &at, &found, &s.err), &s.err);
    CHECK(found && at.commit == 9 && at.frames == 1);
    fixture_done(&s);
}
