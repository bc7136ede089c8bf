/* The feed: each event once, in order, from any position; slow readers are dropped. */
#include "server/feed/live_feed.h"

#include "base/thread.h"
#include "tests/unit/server/asking.h"

/* A reader that sleeps until it is woken. */
typedef struct listener {
    cx_live_feed *feed;
    cx_live_feed_reader *reader;
    cx_lock lock;
    bool resting;
    cx_buf heard;
} listener;

static void rest(void *arg)
{
    listener *l = arg;
    cx_lock_enter(&l->lock);
    l->resting = true;
    cx_lock_leave(&l->lock);
}

static void wake(void *arg)
{
    listener *l = arg;
    cx_lock_enter(&l->lock);
    CHECK(l->resting);
    l->resting = false;
    cx_lock_wake(&l->lock);
    cx_lock_leave(&l->lock);
}

static cx_status join(listener *l, cx_live_feed *feed, const char *agent, const cx_position *after,
                      cx_err *err)
{
    memset(l, 0, sizeof *l);
    l->feed = feed;
    cx_lock_init(&l->lock);
    cx_buf_init(&l->heard, cx_alloc_default());
    const cx_live_filter filter = {.agent = cx_str_z(agent), .hints = true};
    return cx_live_feed_join(feed, &filter, after, wake, l, &l->reader, err);
}

static void leave(listener *l)
{
    cx_live_feed_leave(l->feed, l->reader);
    cx_buf_done(&l->heard);
    cx_lock_done(&l->lock);
}

static size_t events_of(const cx_buf *heard)
{
    size_t count = 0;
    for (size_t i = 0; i + 6 <= heard->size; i++)
        count += memcmp(heard->data + i, "\ndata:", 6) == 0;
    return count;
}

/* Reads until so many events were heard, or it is over; false after some seconds. */
static bool listen(listener *l, size_t events, bool *out_over)
{
    char data[700];
    *out_over = false;
    for (unsigned tries = 0; tries < 200 && events_of(&l->heard) < events;) {
        size_t size;
        cx_stream_result got =
            cx_live_feed_read(l->feed, l->reader, data, sizeof data, &size, rest, l);
        if (got == CX_STREAM_BYTES)
            cx_buf_add(&l->heard, data, size);
        *out_over = got == CX_STREAM_END;
        if (*out_over)
            return true;
        cx_lock_enter(&l->lock);
        for (; l->resting && tries < 200; tries++)
            cx_lock_wait_for(&l->lock, 50);
        cx_lock_leave(&l->lock);
    }
    return events_of(&l->heard) >= events;
}

/* Stores traces `from` .. `to` - 1 of the maker, in one batch. */
static void store(asking *a, maker *m, unsigned from, unsigned to)
{
    cx_buf batch;
    char id[32];
    cx_buf_init(&batch, cx_alloc_default());
    maker_batch_begin(&batch);
    for (unsigned i = from; i < to; i++) {
        maker_options trace_options = MAKER_OPTIONS_INIT;
        (void)snprintf(id, sizeof id, "hub-%u", i);
        trace_options.trace_id = id;
        maker_batch_add(&batch, fixture_make(&a->fixture, m, &trace_options));
    }
    maker_batch_end(&batch, "generic");
    fixture_take(&a->fixture, cx_arena_copy_str(&a->fixture.arena, cx_buf_str(&batch)));
    CHECK_INT(a->fixture.took.accepted, to - from);
    cx_buf_done(&batch);
}

/* Position of the n-th event heard. */
static cx_position position_of(const listener *l, size_t n)
{
    cx_position position = {0, 0};
    const char *text = (const char *)l->heard.data;
    for (size_t i = 0; i + 4 <= l->heard.size; i++)
        if (memcmp(text + i, "id: ", 4) == 0 && n-- == 0) {
            size_t end = i + 4;
            while (text[end] != '\n')
                end++;
            CHECK(cx_live_feed_position_parse(cx_str_from(text + i + 4, end - i - 4), &position));
        }
    return position;
}

static bool has(const listener *l, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= l->heard.size; i++)
        if (memcmp(l->heard.data + i, word, size) == 0)
            return true;
    return false;
}

static void begin(asking *a, maker *m, const char *name, cx_live_feed **feed)
{
    asking_init(a, name);
    maker_init(m, "alpha");
    fixture_trust(&a->fixture, m);
    CHECK_STATUS(cx_live_feed_open(a->service, feed, &a->fixture.err), &a->fixture.err);
}

/* I2 */
CX_TEST(live_feed_sends_new_events)
{
    static asking a;
    maker m;
    cx_live_feed *feed;
    listener all, other;
    bool over;
    begin(&a, &m, "hub-new", &feed);
    store(&a, &m, 0, 3);
    CHECK_STATUS(join(&all, feed, "", NULL, &a.fixture.err), &a.fixture.err);
    CHECK_STATUS(join(&other, feed, "nobody", NULL, &a.fixture.err), &a.fixture.err);
    store(&a, &m, 3, 6);
    cx_live_feed_wake(feed);
    CHECK(listen(&all, 3, &over) && !over);
    store(&a, &m, 6, 7);
    CHECK(listen(&all, 4, &over) && !over);
    CHECK(!has(&all, "hub-2\"") && has(&all, "hub-3\"") && has(&all, "hub-6\""));
    CHECK(has(&all, "\"verified\":true") && has(&all, "event: trace\n"));
    CHECK_INT(events_of(&all.heard), 4);
    cx_live_feed_end(feed);
    CHECK(listen(&other, 1, &over) && over);
    CHECK_INT(events_of(&other.heard), 0);
    leave(&all);
    leave(&other);
    cx_live_feed_close(feed);
    asking_done(&a);
}

/* I2 */
CX_TEST(live_feed_continues_after_a_position)
{
    static asking a;
    maker m;
    cx_live_feed *feed;
    listener first, second;
    bool over;
    const cx_position start = {0, 0}, far = {1u << 30, 0};
    begin(&a, &m, "hub-resume", &feed);
    for (unsigned i = 0; i < 5; i++)
        store(&a, &m, 4 * i, 4 * i + 4);
    CHECK_STATUS(join(&first, feed, "", &start, &a.fixture.err), &a.fixture.err);
    CHECK(listen(&first, 20, &over) && !over);
    for (unsigned at = 0; at < 20; at++) {
        /* What follows it of the first twenty, and one more from each turn before. */
        cx_position after = position_of(&first, at);
        CHECK_STATUS(join(&second, feed, "", &after, &a.fixture.err), &a.fixture.err);
        CHECK(listen(&second, 19, &over) && !over);
        if (at < 19) {
            cx_position next = position_of(&first, at + 1), got = position_of(&second, 0);
            CHECK(got.commit == next.commit && got.frames == next.frames);
        }
        store(&a, &m, 20 + at, 21 + at);
        CHECK(listen(&second, 20, &over) && !over);
        CHECK_INT(events_of(&second.heard), 20);
        leave(&second);
    }
    CHECK(cx_failed(join(&second, feed, "", &far, &a.fixture.err)));
    cx_buf_done(&second.heard);
    cx_lock_done(&second.lock);
    leave(&first);
    cx_live_feed_close(feed);
    asking_done(&a);
}

/* I3 */
CX_TEST(live_feed_drops_readers_that_do_not_read)
{
    static asking a;
    maker m;
    cx_live_feed *feed;
    listener slow, quick;
    bool over = false;
    begin(&a, &m, "hub-slow", &feed);
    CHECK_STATUS(join(&slow, feed, "", NULL, &a.fixture.err), &a.fixture.err);
    CHECK_STATUS(join(&quick, feed, "", NULL, &a.fixture.err), &a.fixture.err);
    unsigned stored = 0;
    /* More than its buffer holds; the other one reads along. */
    for (; stored < 1000 && cx_counter(&a.service->metrics.feed_dropped) == 0; stored += 50) {
        store(&a, &m, stored, stored + 50);
        CHECK(listen(&quick, stored + 50, &over) && !over);
    }
    CHECK_INT(cx_counter(&a.service->metrics.feed_dropped), 1);
    CHECK(listen(&slow, 100000, &over) && over);
    CHECK(events_of(&slow.heard) < stored && events_of(&slow.heard) > 100);
    leave(&slow);
    leave(&quick);
    cx_live_feed_close(feed);
    asking_done(&a);
}

CX_TEST(live_feed_positions_parse)
{
    static const char *const bad[] = {"",      ".",   "1",    "1.",   ".1",
                                      "1.2.3", "a.1", "-1.0", "1.1 ", "1234567890123456789.0"};
    cx_position position;
    for (size_t i = 0; i < CX_COUNT_OF(bad); i++)
        CHECK(!cx_live_feed_position_parse(cx_str_z(bad[i]), &position));
    REQUIRE(cx_live_feed_position_parse(CX_STR("17.2"), &position));
    CHECK_INT(position.commit, 17);
    CHECK_INT(position.frames, 2);
}
